/* SPDX-License-Identifier: Apache-2.0 */
/* Short hands for writing core expressions in C, for passes that emit code. What they emit carries
 * the span given at the start, and types: a dual has the type of its primal, what is known only when
 * running has a parameter that stands for any type. */
#ifndef PASSES_BUILD_H
#define PASSES_BUILD_H

#include "types/core/core.h"
#include "types/op.h"

typedef struct Build {
    Span span;
} Build;

/* A type of which nothing is known: a fresh parameter. */
Type *b_some_type(const char *name);
/* The type of a function that a derivative emits, from its parameters and its result. */
Type *b_fn_type(Var *const *params, uint32_t n, Type *result);
/* The type fn(Tape, …) -> … of the twin of a function of type `fn`, which may be unknown. */
Type *b_twin_type(Type *fn);
Var *b_var(const Build *b, const char *name, Type *type);
Expr *b_ref(const Build *b, Var *v);
/* Gives an operand the type and the place of argument i of the program's call for which it stands. */
void b_stands_for(Expr *operand, const Expr *call, uint32_t i);
/* A call of an `ad.…` function of the evaluator; arguments end with NULL. */
Expr *b_builtin(const Build *b, const char *name, ...) __attribute__((sentinel));
Expr *b_builtin_n(const Build *b, const char *name, Expr **args, uint32_t n);
Expr *b_call(const Build *b, Expr *callee, Expr **args, uint32_t n, unsigned drop);
Expr *b_op(const Build *b, const Op *op, Expr **args, uint32_t n, Type *type);
/* The call of `index` that x[i], an EXPR_INDEX, is where x is a tensor. */
Expr *index_as_call(const Expr *e);
/* vjp(h), h being a function of one argument. */
Expr *b_vjp(const Build *b, Expr *h);
/* A derivative of the function fn; `type` is the derivative's. */
Expr *b_grad(const Build *b, GradKind kind, Expr *fn, Type *type);
Expr *b_fn(const Build *b, const char *name, Var **params, uint32_t n, Expr *body);
Expr *b_if(const Build *b, Expr *c, Expr *t, Expr *e);
Expr *b_read(const Build *b, Expr *ref);
Expr *b_write(const Build *b, Expr *ref, Expr *value);
Expr *b_unit(const Build *b);
/* What stands in an arm that no value takes: an error with these words. */
Expr *b_unreachable(const Build *b, const char *words, Type *type);
/* The value () that stands for a cotangent or tangent of that type, where there is none. */
Expr *b_absent(const Build *b, Type *type);
Expr *b_tuple(const Build *b, Expr **args, uint32_t n);
Expr *b_proj(const Build *b, Expr *tuple, uint32_t index);
Pattern *b_pattern(const Build *b, PatternKind kind, Type *type);
/* match (value) { pattern => body } */
Expr *b_match(const Build *b, Expr *value, Pattern *pattern, Expr *body);

/* A block under construction: bindings and statements in order, then its value. */
typedef struct Block {
    const Build *b;
    VEC(Expr *) links; /* EXPR_LETs without bodies */
} Block;
Expr *block_let(Block *block, const char *name, Expr *value); /* gives the variable */
Expr *block_atom(Block *block, const char *name,
                 Expr *value); /* gives the value itself where it is a name */
void block_do(Block *block, Expr *statement);
void block_bind(Block *block, Expr *let_link,
                Expr *value); /* adds the binding of an EXPR_LET with another value */
Expr *block_end(Block *block, Expr *value);

#endif
