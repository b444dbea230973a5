/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar programs run on one lane, without tensors. The bits are those of the recipe. */
#ifndef OPS_RECIPE_SCALAR_EVAL_H
#define OPS_RECIPE_SCALAR_EVAL_H

#include "ops/recipe/recipe.h"

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

/* args: nargs of them. Returns a kernel status (KERNEL_DIVIDE, KERNEL_SHIFT). */
int32_t scalar_program_run(const ScalarProgram *p, const ScalarValue *args, ScalarValue *out);

#endif
