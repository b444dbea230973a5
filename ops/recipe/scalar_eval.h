/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators on single elements, for the evaluator's rank-0 fast path: the scalar
 * program of the operator run on one lane, without tensors. The bits are those of the recipe.
 *
 *     const ScalarProgram *p = scalar_program_find(op, DT_F32);   // once a call site
 *     if (p && scalar_program_run(p, args, &result) == KERNEL_DONE) … */
#ifndef OPS_RECIPE_SCALAR_EVAL_H
#define OPS_RECIPE_SCALAR_EVAL_H

#include "ops/recipe/recipe.h"
#include "types/op.h"

typedef union ScalarValue {
    int64_t i; /* integers and bool, sign- or zero-extended (uint64 by its bits) */
    double f;  /* floats, exactly representable in the dtype */
} ScalarValue;

typedef struct ScalarProgram {
    const Scalar *code;
    int n, nargs;
    DType in, out; /* dtypes of the arguments and of the result, as stored */
    int32_t result;
} ScalarProgram;

/* The program of an element-wise operator without attributes (elementwise.def) on arguments of
 * `dtype`; NULL when it is another operator or does not take it. Built on first use. */
const ScalarProgram *scalar_program_find(const Op *op, DType dtype);

/* args: nargs of them. Returns a kernel status (KERNEL_DIVIDE, KERNEL_SHIFT). */
int32_t scalar_program_run(const ScalarProgram *p, const ScalarValue *args, ScalarValue *out);

/* Both in one: false when there is no such program. *status is the kernel status. */
bool op_scalar_eval1(const Op *op, DType dtype, ScalarValue x, DType *out_dtype, ScalarValue *out,
                     int32_t *status);
bool op_scalar_eval2(const Op *op, DType dtype, ScalarValue x, ScalarValue y, DType *out_dtype,
                     ScalarValue *out, int32_t *status);

#endif
