/* SPDX-License-Identifier: Apache-2.0 */
/* A function at all rows at once: what `vmap` runs in place of its loop where that gives the same.
 *
 *   fn (x) { tanh(w @@ x) + b }   at the rows of X   becomes   let t = w @@ expand_dims(X, axis=2); …; tanh(…) + b
 *
 * Values that depend on no row stay as they are and are computed once; the others have the rows as their first axis. Each
 * operator goes along with that by a rule (batch.def), which changes no bit. An `if` whose condition differs from row to
 * row computes both branches and selects. Functions that are known, also those that capture rows, are taken apart
 * where they are called, and a `vmap` inside likewise.
 *
 * All rows go through one operator before any goes through the next, so the function may do nothing but give a value. It may
 * fail: whoever runs this code runs the loop where it failed, which finds the error that comes first. Where something
 * has no rule, the loop stays as a whole. */
#ifndef PASSES_BATCH_H
#define PASSES_BATCH_H

#include "passes/pass.h"

/* What stands in the way of running all rows at once. */
typedef struct BatchRefusal {
    const char *why; /* "a call of a function that calls itself"; NULL: nothing */
    Span span;
} BatchRefusal;

/* The body of the function literal fn, whose type is closed, where args are the rows of its arguments, in tensors and
 * tuples of them, whose first axes have the size `count`, 1 or more. follows: a derivative follows the code, which therefore takes more
 * launches where fewer have no derivative. NULL: *refusal says what has no rule. */
Expr *batch_rows(PassCtx *ctx, Expr *fn, Expr **args, Type *count, Span span, bool follows,
                 BatchRefusal *refusal);

/* A call of the constructor. */
Expr *batch_construct(Ctor *ctor, Expr **fields, Type *type, Span span);

/* How `vmap` takes an operator, for tests and documentation: "rows: a recipe gets the rows as an axis more", …; NULL where
 * it runs the loop, then *why says why. */
const char *batch_way(const Op *op, const char **why);

#endif
