/* SPDX-License-Identifier: Apache-2.0 */
/* vmap(f) as the loop that it means (LANGUAGE §3): f at each index of the first axis of every tensor in its arguments, in
 * order, and the results stacked.
 *
 * Note [Loops of vmap]. `vmap(f)` stays an EXPR_GRAD of the kind GRAD_VMAP until it runs or is differentiated, and then
 * becomes ordinary Relay. Where its arguments and results are tensors and tuples of them, that is
 *
 *   vmap(f)   becomes   fn (x, y) {
 *                         let n = vmap.size((x, y));      a number, where the types say it
 *                         if n == 0 { <a result without rows> }
 *                         else {
 *                           let rows = map(fn (i) { f(x[i], (y.0[i], y.1[i])) }, range(n));
 *                           vmap.check(rows);
 *                           _vmap_stack(rows) } }
 *
 * so its derivatives, of any order, are those of that code, or of all rows at once: where a derivative follows a value that
 * goes in, the loop asks first, on every engine alike, for a function of all rows that does the same:
 *
 *   else {
 *     let plan = vmap.plan(f, (x, y));         (True, f at all rows), or (False, ()): eval/rows.c
 *     if plan.0 { plan.1(x, y) } else { <the loop> } }
 *
 * Which function f is, what it captured, sizes, and the constructors of data are known when running. A derivative that is made
 * into code asks itself where it knows them, too: Note [Rows of known functions] in passes/reverse/rows.c. The loop takes data apart and puts
 * it together when running, as the prelude's `_vmap_run` does; code for all rows is made for its constructors (row_form.h). Where the number of arguments is not known before running, the closure says it. */
#ifndef PASSES_VMAP_H
#define PASSES_VMAP_H

#include "passes/batch.h"
#include "passes/pass.h"
#include "passes/row_form.h"

/* What runs in place of e, an EXPR_GRAD: the loop, or e itself where it is no vmap or has an unknown number of
 * arguments. */
Expr *vmap_to_run(PassCtx *ctx, Expr *e);
/* The function literal that vmap_to_run made, trying all rows at once before it runs the loop: with the same parameters, and
 * capturing no more. NULL where fn is none.
 *
 * Note [All rows at once]. Which function it is, what that captures, and sizes are known when running, so it is there that
 * code for all rows is asked for (`vmap.rows` in eval/rows.c), once for each function, and the constructors and sizes of a row:
 *
 *   else {
 *     let all = vmap.rows(f, (x, y));          (True, f at all rows), or (False, ())
 *     if all.0 { all.1 } else { <the loop> } } } */
Expr *vmap_batched(PassCtx *ctx, Expr *fn);
/* The f of which that loop was made, an atom; NULL where it is none. */
Expr *vmap_function(PassCtx *ctx, const Expr *loop);

/* What is to run at all rows. */
typedef struct VmapSource {
    Expr *fn;          /* a literal, a derivative, a definition or an operator */
    VEC(Expr *) links; /* `let`s without bodies that bind what it captures of functions */
    VarVec
        given; /* the other variables that it captures: their types are closed, or they are no tensors */
    RowForm *const *rows; /* what it takes, of closed types */
    uint32_t n;
    Span span;
    bool follows; /* a derivative will follow the code, which takes none itself */
} VmapSource;

/* Functions that capture functions: so many, one in another, are followed to make a source. */
enum { VMAP_DEEPEST = 6 };

/* A name for a value that the function captures, bound before it. */
Expr *vmap_source_link(VmapSource *source, const Var *var, Expr *value);
/* A derivative of f, or `vmap(f)`, of a type that is found with the rows. */
Expr *vmap_source_derivative(GradKind kind, Expr *f);
/* The literal, a loop that `vmap` became as `vmap` again, with other expressions for the variables that it captures. rows: what its
 * parameters are, where that is known, or NULL. */
Expr *vmap_source_literal(PassCtx *ctx, Expr *fn, const VarVec *captured, Expr *const *are,
                          RowForm *const *rows, uint32_t n);

/* fn (given…, x1, …, xn) { … }, where x1, …, xn have the rows as their first axis, at least one. It calls only what `deps` is told.
 * NULL: *refusal says why. */
Expr *vmap_at_all_rows(PassCtx *ctx, const VmapSource *source, DependencyVec *deps,
                       BatchRefusal *refusal);

/* Tells `:why` of each `vmap` in e what it will run. */
void vmap_tell(PassCtx *ctx, Expr *e);

/* The first tensor in a tensor or tuples of them, or NULL. */
Type *vmap_tensor_in(Type *t);
/* A tensor's type without its first axis, also in tuples; NULL where it has none. */
Type *vmap_type_of_row(Type *t);

/* The same as fn (f) { fn (x1, …, xn) { … } }, for any f of n parameters. */
Expr *vmap_template(PassCtx *ctx, uint32_t n);

#endif
