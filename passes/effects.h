/* SPDX-License-Identifier: Apache-2.0 */
/* What running an expression may do besides giving a value. A pass may drop, duplicate or move only
 * what has none of the effects in question.
 *
 * The answer for a definition is found once and kept in the PassCtx as long as the definition lives:
 * passes_forget drops it, and whoever changes a definition calls that. Out of memory and Ctrl-C are no
 * effects: they may end anything. */
#ifndef PASSES_EFFECTS_H
#define PASSES_EFFECTS_H

#include "passes/pass.h"

typedef enum Effect {
    EFFECT_FAILS = 1,     /* may end in an error: `1 / 0`, a run-time check, an index */
    EFFECT_LOOPS = 2,     /* may not end: recursion */
    EFFECT_READS = 4,     /* reads a reference */
    EFFECT_WRITES = 8,    /* writes one, or the state of a running derivative */
    EFFECT_MAKES = 16,    /* makes one: two runs give two */
    EFFECT_OUTSIDE = 32,  /* meets the world: prints, files, the clock, the seed */
    EFFECT_FOREIGN = 64,  /* runs code that was not written in Relay */
    EFFECT_MISFITS = 128, /* fails only where an operator before it did (Expr.follows) */
    EFFECT_ALL = 255,
} Effect;

/* The effects of an expression and all its parts. Who asks often ends them: other walks get their memory. */
typedef struct Effects Effects;
Effects *effects_new(PassCtx *ctx, Expr *root);
void effects_end(Effects *effects);

/* What evaluating e, a part of the root or made of its parts, may do. The functions that e makes do
 * theirs when they are called. */
unsigned effects_at(Effects *effects, Expr *e);

/* Of a call of the function that g is bound to; EFFECT_ALL where that is not known. */
unsigned effects_of_calling(PassCtx *ctx, Global *g);

/* Notes that the code being optimised is right as long as what e calls, and what that calls, stays as it is. */
void effects_depend(PassCtx *ctx, Expr *e);

/* Whether an element-wise operator fails for some dtype that its first argument, of type `arg`, may have. Other operators
 * may always fail. */
bool op_elements_fail(const Op *op, Type *arg);

/* "fails, loops", in the order above; "none". */
const char *effects_text(unsigned effects);

/* Of how many definitions the effects are kept. */
size_t effects_known(const PassCtx *ctx);

#endif
