/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators on single elements, for the evaluator's rank-0 fast path: the same bits
 * as the recipe gives, without tensors. */
#ifndef OPS_SCALAR_EVAL_H
#define OPS_SCALAR_EVAL_H

#include "types/op.h"

typedef union ScalarValue {
    int64_t i; /* integers and bool, sign- or zero-extended (uint64 by its bits) */
    double f;  /* floats, exactly representable in the dtype */
} ScalarValue;

/* One call, whatever the element-wise operator: arguments of `in` dtypes without attributes. False
 * when the operator is not one of these or does not take the dtype. *status is a kernel status. */
bool op_scalar_eval1(const Op *op, DType dtype, ScalarValue x, DType *out_dtype, ScalarValue *out,
                     int32_t *status);
bool op_scalar_eval2(const Op *op, DType dtype, ScalarValue x, ScalarValue y, DType *out_dtype,
                     ScalarValue *out, int32_t *status);

#endif
