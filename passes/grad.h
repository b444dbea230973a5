/* SPDX-License-Identifier: Apache-2.0 */
/* Differentiation by transformation of the typed core (MAPL'18 figure 6, thesis figure 4.1), for
 * the whole language, composing with itself to any order.
 *
 * What a first-order function's reverse mode is made into is told in passes/reverse/reverse.h; this is the way of
 * everything else.
 *
 * Note [Twins]. The reverse transformation T sends a function `fn (x) { e }` to its twin
 * `fn (D, x) { T e }`, where D is the tape: a reference to the backpropagator so far. A float tensor
 * that is *active* (computed from a parameter of the running grad) is a dual value: its primal and
 * a reference that accumulates its cotangent. An inactive value is itself; so lifting costs
 * nothing, tuples, data and references hold duals where floats are active, and T is the identity
 * on all forms but functions, calls and operators:
 *
 *   T(op(a, b))    let v = op(ad.primal(D, a'), ad.primal(D, b'));
 *                  ad.record(D, v, (a', b'), fn (ct) { rule(…; v, ct) })
 *   T(f(a))        f'(D, a')
 *   T(fn (x) {e})  fn (D, x) { T e }, capturing the same variables
 *
 * The tape is a parameter and never captured, so a twin captures what its base captures, and a
 * closure made anywhere may be called at any nesting: the evaluator takes the twin of its base that
 * the calling code's path asks for (Fn.path, one letter a transformation, `r` or `f`, in the order
 * of application). Nested derivatives: the inner grad's body is ordinary Relay, which the outer T
 * transforms like any other, D parameters and all. No tags are confused: a dual knows the level of
 * its grad, and ad.primal(D, ·) opens those of D's level only.
 *
 * The path a call asks of its callee is: the letter of `mode` if the call has one (a template's call
 * of the function it differentiates), then the calling code's path without its first `drop` letters.
 * A program's own calls have drop 0. Code that the j-th transformation of a path emits (it computes
 * cotangents, in the world outside that derivative) calls with drop j. A function that a
 * transformation emits as a whole (a backpropagator) is a base of its own, with path "".
 *
 * A twin captures the variables of its base in the order of its base (expr_free_vars of the base),
 * so retargeting a closure changes its code only. */
#ifndef PASSES_GRAD_H
#define PASSES_GRAD_H

#include "passes/pass.h"

/* The twin of an EXPR_FN under one more transformation; while something refers to it, it is not made
 * again. NULL after a diagnostic. */
Expr *grad_twin(PassCtx *ctx, Expr *fn, AdMode mode);

/* The twin whose path is `path` ("r", "rf", …) of fn's base. */
Expr *grad_twin_at(PassCtx *ctx, Expr *fn, const Symbol *path);

/* The function `fn (f) { fn (x1, …, xn) { … } }` that grad, vjp or jvp of an n-ary function runs. */
Expr *grad_template(PassCtx *ctx, GradKind kind, uint32_t nparams);
/* Whether fn is what such a function gives, and of which kind of derivative. */
bool grad_is_template(PassCtx *ctx, const Expr *fn, GradKind *kind);

#endif
