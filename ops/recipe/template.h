/* SPDX-License-Identifier: Apache-2.0 */
/* A plan made once and run many times. What an operator or a group of operators plans follows from the
 * dtypes, shapes and strides of its arguments alone, so the plan is made on tensors without elements
 * (tensor_blank_like), and a run binds pointers to it: nothing is looked up, checked or allocated again.
 *
 *     Plan plan = {.blank = true};
 *     … shape functions and lowerings on blank tensors …
 *     Template *t = template_new(&plan, in, nin, out, nout);
 *     char **at = …;                    // t->nslots of them: inputs, outputs, room for temporaries
 *     int32_t status = template_run(t, at, runner, ctx, &interrupt);
 *
 * A slot is an input, an output or a temporary. Temporaries of one template share storage where their
 * lives do not overlap. */
#ifndef OPS_RECIPE_TEMPLATE_H
#define OPS_RECIPE_TEMPLATE_H

#include "ops/recipe/plan.h"

typedef struct TemplateStep {
    const Recipe *recipe;
    int64_t elements; /* of the domain */
    const int64_t
        *numbers; /* extents, then the strides of inputs and of outputs, one an axis each */
    uint32_t niparams, nfparams;
    const int64_t *iparams;
    const double *fparams;
    const uint32_t *slot;  /* of the inputs, then the outputs */
    const int64_t *offset; /* in bytes from the slot's first element */
    uint64_t hash;         /* recipe_hash */
    void *made;            /* what the runner keeps with the step; collected, NULL at first */
    bool refused;          /* the runner keeps nothing with it */
} TemplateStep;

/* A result that is a part of an input, its last axis as contiguous as the input's. */
typedef struct TemplateView {
    uint32_t slot;
    int64_t offset; /* in elements, from the input's first */
    int64_t strides[TENSOR_MAX_RANK];
} TemplateView;

typedef struct Template {
    uint32_t nin, nout, nslots, nsteps;
    bool lengthens; /* all that is read of the first input is laid down by the first step where the
                       one result begins */
    OutSpec *out;
    const TemplateView
        *views;        /* one an output where all steps only take parts of inputs; else NULL */
    uint64_t in_place; /* inputs over each of which any one output may be written, a bit each */
    int64_t scratch;   /* bytes of all temporaries */
    const int64_t *temp_at; /* where each begins */
    TemplateStep steps[];
} Template;

/* The template of a plan over blank inputs, outputs and temporaries. NULL where a step reads a tensor that is
 * none of them. */
Template *template_new(const Plan *plan, Tensor *const *in, uint32_t nin, Tensor *const *out,
                       uint32_t nout);

/* Runs a step whose slots have their elements at `at`. Returns a kernel status. */
typedef int32_t (*TemplateRunner)(void *ctx, TemplateStep *step, char *const *at,
                                  const volatile int *interrupt);

int32_t template_run(Template *t, char **at, TemplateRunner runner, void *ctx,
                     const volatile int *interrupt);
/* The same without the first steps, `from` of them. */
int32_t template_run_from(Template *t, uint32_t from, char **at, TemplateRunner runner, void *ctx,
                          const volatile int *interrupt);

/* The launch of a step as recipe_run takes it. What the recipe does not use stays undefined. */
void template_bind(const TemplateStep *step, char *const *at, const volatile int *interrupt,
                   KernelArgs *args);

#endif
