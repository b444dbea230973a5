/* SPDX-License-Identifier: Apache-2.0 */
/* A function at all rows at once: what `vmap` runs in place of its loop where that gives the same.
 *
 *   fn (x) { tanh(w @@ x) + b }   at the rows of X   becomes   let t = w @@ expand_dims(X, axis=2); …; tanh(…) + b
 *
 * Values that depend on no row stay as they are and are computed once; the others have the rows as their first axis,
 * and each operator has a rule that says how it goes along with that (batch.def). The rules change no bit. Since all
 * rows go through one operator before any goes through the next, the function may do nothing but give a value, and what
 * depends on a row may not fail: its sizes are known, and its operators fail for no element. Where something has no rule, the
 * loop stays as a whole. */
#ifndef PASSES_BATCH_H
#define PASSES_BATCH_H

#include "passes/pass.h"

/* The body of the function literal fn, where args are the rows of its arguments, in tensors and tuples of them, whose
 * first axes have the size `count`. NULL: *why says in words what has no rule. */
Expr *batch_rows(PassCtx *ctx, Expr *fn, Expr **args, Type *count, Span span, const char **why);

#endif
