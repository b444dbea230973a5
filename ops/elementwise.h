/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators: each has one line in elementwise.def, which gives its `const Op` and, here,
 * its formula.
 *
 * On single elements, for the evaluator's rank-0 fast path, the operator's scalar program is run on one
 * lane, without tensors:
 *
 *     const ScalarProgram *p = scalar_program_find(op, DT_F32);   // once a call site
 *     if (p && scalar_program_run(p, args, &result) == KERNEL_DONE) … */
#ifndef OPS_ELEMENTWISE_H
#define OPS_ELEMENTWISE_H

#include "ops/recipe/scalar.h"
#include "ops/recipe/scalar_eval.h"
#include "types/op.h"

typedef struct Elementwise {
    Sc (*unary)(ScalarBuilder *b, Sc x); /* one of the two */
    Sc (*binary)(ScalarBuilder *b, Sc x, Sc y);
    bool compares; /* the result is bool */
} Elementwise;

/* The program of an element-wise operator without attributes (elementwise.def) on arguments of
 * `dtype`; NULL when it is another operator or does not take it. Built on first use. */
const ScalarProgram *scalar_program_find(const Op *op, DType dtype);

/* Both in one: false when there is no such program. *status is the kernel status. */
bool op_scalar_eval1(const Op *op, DType dtype, ScalarValue x, DType *out_dtype, ScalarValue *out,
                     int32_t *status);
bool op_scalar_eval2(const Op *op, DType dtype, ScalarValue x, ScalarValue y, DType *out_dtype,
                     ScalarValue *out, int32_t *status);

#endif
