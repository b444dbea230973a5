/* SPDX-License-Identifier: Apache-2.0 */
/* What one operator call runs: a few recipes in order, over its inputs, outputs and temporaries
 * (softmax: maximum, exponentials, sum, quotient). Operators build plans in their `lower`. */
#ifndef OPS_RECIPE_PLAN_H
#define OPS_RECIPE_PLAN_H

#include "base/vec.h"
#include "ops/recipe/recipe.h"
#include "ops/recipe/scalar.h"
#include "types/op.h"

typedef struct Step {
    const Recipe *recipe;
    KernelArgs args; /* in/out pointers are filled from the tensors below when run */
    Tensor *in[RECIPE_MAX_OPERANDS];
    Tensor *out[RECIPE_MAX_OPERANDS];
    int64_t in_offsets[RECIPE_MAX_OPERANDS]; /* in elements, beyond the tensor's own offset */
    int64_t out_offsets[RECIPE_MAX_OPERANDS];
} Step;

typedef VEC(Step *) StepVec;

typedef struct Plan {
    StepVec steps;
    VEC(Tensor *) temps; /* released after the run */
    StepVec spares;      /* storage for steps to come, since a Step is large */
    bool blank;          /* temporaries are made without elements: it becomes a template */
} Plan;

/* A tensor of this plan alone, elements undefined. */
Tensor *plan_temp(Plan *plan, DType dtype, int rank, const int64_t *shape);

/* How steps are run: by the reference or by compiled kernels (eval/launch.c gives the latter).
 * Returns a kernel status. */
typedef int32_t (*StepRunner)(void *ctx, const Recipe *r, const KernelArgs *args);

/* Runs the steps of a plan in order, temporaries released; a kernel status. */
int32_t plan_run(Plan *plan, StepRunner runner, void *ctx, const volatile int *interrupt);

/* ---- building -------------------------------------------------------------------------------- */

/* One step under construction. The domain is `rank` parallel axes (those of the output, in its
 * order), then `nreduce` reduction axes. Operands say how they lie in it by a stride an axis.
 *
 *     StepBuilder s;
 *     step_begin(&s, plan, RECIPE_MAP, out->rank, out->shape);
 *     ScalarBuilder *b = &s.body;
 *     Sc x = sc_load(b, step_in(&s, a), a->dtype);      // a broadcasts to the domain
 *     sc_exp(b, x);
 *     step_out(&s, out);
 *     step_end(&s);
 *
 * step_end merges neighbouring axes wherever all operands allow (so that contiguous operands of
 * any rank share one recipe) unless the body uses SC_IOTA; extents of 1 are dropped with them. A
 * domain without elements adds no step for MAP; a REDUCE over nothing writes the unit. */
typedef struct StepBuilder {
    Plan *plan;
    Step *step;
    RecipeKind kind;
    Combine combine;
    bool last;      /* Recipe.last */
    DType acc_type; /* set by step_combine */
    ScalarBuilder body, epilogue;
    int rank, nreduce, nin, nout, niparams, nfparams;
    DType in_types[RECIPE_MAX_OPERANDS], out_types[RECIPE_MAX_OPERANDS];
    int32_t results[RECIPE_MAX_OPERANDS]; /* set by step_result; else the body's last value */
    int nresults;
} StepBuilder;

void step_begin(StepBuilder *s, Plan *plan, RecipeKind kind, int rank, const int64_t *extents);
/* Adds reduction axes after the parallel ones; before any operand is added. */
void step_reduce_over(StepBuilder *s, int nreduce, const int64_t *extents);
/* The combiner of REDUCE, SCAN and SCATTER, and the dtype it folds in (DT_F32 for float16). */
void step_combine(StepBuilder *s, Combine combine, DType acc_type);

/* Input operands; the result is their number, for sc_load. */
int step_in(StepBuilder *s, const Tensor *t); /* its axes are the last *parallel* axes; 1 repeats */
/* strides: rank + nreduce of them in elements, over the tensor's buffer; offset in elements from
 * its first element. */
int step_in_strided(StepBuilder *s, const Tensor *t, const int64_t *strides, int64_t offset);
/* Outputs: the axes of t are the parallel axes. */
int step_out(StepBuilder *s, Tensor *t);
int step_out_strided(StepBuilder *s, Tensor *t, const int64_t *strides, int64_t offset);

/* Reductions of t over `axes` (bit i: axis i): the domain is t's other axes, then those. The
 * output may have the reduced axes as 1 or not at all. */
void step_begin_reduce(StepBuilder *s, Plan *plan, RecipeKind kind, const Tensor *t, uint32_t axes);
int step_in_reduced(StepBuilder *s, const Tensor *t, uint32_t axes); /* t, or one with its rank and
                                                                        1 somewhere */
int step_out_reduced(StepBuilder *s, Tensor *out, const Tensor *t, uint32_t axes);

/* Run-time scalars, which are no part of the recipe: for sc_param. */
Sc step_iparam(StepBuilder *s, ScalarBuilder *b, DType type, int64_t v);
Sc step_fparam(StepBuilder *s, ScalarBuilder *b, DType type, double v);

/* A body built before, which is shared and must not change. */
void step_set_body(StepBuilder *s, const Scalar *code, int n);
/* Names the next result (an output's value; SCATTER: value then offset). */
void step_result(StepBuilder *s, Sc v);
void step_end(StepBuilder *s);

/* ---- common steps ---------------------------------------------------------------------------- */

/* out = t, converted to out's dtype; t broadcasts to out's shape. */
void plan_copy(Plan *plan, Tensor *out, const Tensor *t);
/* out = t read by `strides` (out->rank of them) from `offset`; every layout operator is this. */
void plan_gather_strided(Plan *plan, Tensor *out, const Tensor *t, const int64_t *strides,
                         int64_t offset);
/* t itself where it is contiguous, else a temporary that a step fills from it. */
const Tensor *plan_contiguous(Plan *plan, const Tensor *t);
/* out = v everywhere. */
void plan_fill_int(Plan *plan, Tensor *out, int64_t v);
void plan_fill_float(Plan *plan, Tensor *out, double v);
/* out = combine over `axes` (bit i: axis i of t). out has t's shape without those axes, or with
 * 1 there. The value folded is t's element in acc type. */
void plan_reduce(Plan *plan, Tensor *out, const Tensor *t, uint32_t axes, Combine combine);
/* The dtype a sum or product of dtype t is folded in: float32 for halves, t otherwise. */
DType reduce_acc_type(DType t);

#endif
