/* SPDX-License-Identifier: Apache-2.0 */
/* What one operator call runs: a few recipes in order, over its inputs, outputs and temporaries
 * (softmax: maximum, exponentials, sum, quotient). Operators build plans in their `lower`. */
#ifndef OPS_PLAN_H
#define OPS_PLAN_H

#include "base/vec.h"
#include "ops/recipe.h"
#include "types/op.h"

typedef struct Step {
    const Recipe *recipe;
    KernelArgs args;       /* in/out pointers are filled from the tensors below when run */
    Tensor *in[RECIPE_MAX_OPERANDS];
    Tensor *out[RECIPE_MAX_OPERANDS];
    int64_t in_offsets[RECIPE_MAX_OPERANDS];  /* in elements, beyond the tensor's own offset */
    int64_t out_offsets[RECIPE_MAX_OPERANDS];
} Step;

typedef struct Plan {
    VEC(Step *) steps;
    VEC(Tensor *) temps;   /* released after the run */
} Plan;

Tensor *plan_temp(Plan *plan, DType dtype, int rank, const int64_t *shape);

/* How steps are run: by the reference or by compiled kernels (eval/launch.c gives the latter). */
typedef int32_t (*StepRunner)(void *ctx, const Recipe *r, const KernelArgs *args);

/* Checks, allocates and runs one operator call by its entry: shape, lower or eval, run. Fills
 * out[] and returns their number; -1 after a diagnostic. */
int op_run(const OpCall *call, Tensor **out, StepRunner runner, void *ctx);

/* ---- building ------------------------------------------------------------------------------ */

/* Scalar programs under construction: each function appends instructions and returns a position.
 * sc_exp and friends append the one definition of their function for float32 or float64. */
typedef struct ScalarBuilder {
    VEC(Scalar) code;
} ScalarBuilder;

#endif
