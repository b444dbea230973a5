/* SPDX-License-Identifier: Apache-2.0 */
/* vmap(f) as the loop that it means (LANGUAGE §3): f at each index of the first axis of every tensor in its arguments, in
 * order, and the results stacked.
 *
 * Note [Loops of vmap]. `vmap(f)` stays an EXPR_GRAD of the kind GRAD_VMAP until it runs or is differentiated, and then
 * becomes ordinary Relay. Where its arguments and results are tensors and tuples of them, that is
 *
 *   vmap(f)   becomes   fn (x, y) {
 *                         let n = vmap.size((x, y));
 *                         if n == 0 { <a result without rows> }
 *                         else {
 *                           let rows = map(fn (i) { f(x[i], (y.0[i], y.1[i])) }, range(n));
 *                           vmap.check(rows);
 *                           _vmap_stack(rows, n) } }
 *
 * so its derivatives, of any order, are those of that code. Data is taken apart and put together when running, as
 * the prelude's `_vmap_run` does. Where the number of arguments is not known before running, the closure says it. */
#ifndef PASSES_VMAP_H
#define PASSES_VMAP_H

#include "passes/pass.h"

/* What runs in place of e, an EXPR_GRAD: the loop, or e itself where it is no vmap or has an unknown number of
 * arguments. */
Expr *vmap_to_run(PassCtx *ctx, Expr *e);
/* The function literal that vmap_to_run made, at all rows at once (passes/batch.h) where that gives the same: with the same
 * parameters, and capturing no more. NULL where it is none, or has to run as the loop. Derivatives are those of the loop. */
Expr *vmap_batched(PassCtx *ctx, Expr *fn, DependencyVec *deps);
/* The same as fn (f) { fn (x1, …, xn) { … } }, for any f of n parameters. */
Expr *vmap_template(PassCtx *ctx, uint32_t n);

#endif
