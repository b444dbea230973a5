/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised numbers: an integer q stands for scale * (q - zero_point). The operators give, in integers, what
 * TVM's canonical forms of them give (src/relay/qnn/op): a number is brought from one scale to another by a
 * fixed-point multiplication, an integer times m / 2^31 * 2^shift in 64 bits, where 2^30 <= m < 2^31.
 *
 * B. Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
 * Inference, CVPR 2018, section 2.2. */
#ifndef OPS_QNN_H
#define OPS_QNN_H

#include "ops/relate/signature.h"

enum {
    QNN_DTYPES = DT_BIT(DT_I8) | DT_BIT(DT_U8) | DT_BIT(DT_I16) | DT_BIT(DT_U16) | DT_BIT(DT_I32)
};

typedef enum Rounding {
    ROUND_UPWARD,
    ROUND_TONEAREST
} Rounding; /* where halves go: up; away from 0 */

/* Scale (float64) and zero point (int32) in the body of a step. */
typedef struct QParams {
    Sc scale, zero;
} QParams;

/* Scale and zero point as operands of a step: scalars, or vectors along `axis` of its domain. */
QParams qnn_load_params(StepBuilder *s, const Tensor *scale, const Tensor *zero, int axis);
/* The number (int32, zero point subtracted) with the scale `from`, as a quantised int32 of `to`. */
Sc qnn_rescale(ScalarBuilder *b, Sc x, Sc from, QParams to, Rounding rounding);
/* A quantised int32 as the dtype: what it does not hold becomes its least or greatest number. */
Sc qnn_clamp(ScalarBuilder *b, Sc x, DType dtype);
/* Element of t as int32, its zero point subtracted. */
Sc qnn_load(StepBuilder *s, int operand, DType dtype, Sc zero);

/* An int32 tensor: t without its zero point, which is a scalar or a vector along `axis`. */
Tensor *qnn_plan_shift(Plan *plan, const Tensor *t, const Tensor *zero, int axis);
/* A scale or zero point (argument arg) is a scalar, or has as many elements as axis `axis` of data (argument of);
 * or reports. */
bool qnn_check_param(const OpCall *call, int arg, int of, int axis);

/* In the order of TVM's arguments; the sizes of vectors are checked by qnn_check_param. */
#define QNN_SCALAR "float32(), int32()"
#define QNN_VECTOR "float32~, int32~"

#endif
