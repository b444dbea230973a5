/* SPDX-License-Identifier: Apache-2.0 */
/* Short hands for writing core expressions in C, for passes that emit code. What they emit carries
 * the span given at the start, and no types where nothing reads them (values describe themselves). */
#ifndef PASSES_BUILD_H
#define PASSES_BUILD_H

#include "types/core/core.h"
#include "types/op.h"

typedef struct Build {
    Span span;
} Build;

Var *b_var(const Build *b, const char *name);
Expr *b_ref(const Build *b, Var *v);
/* The operand of a call that was made of argument i of the program's: of its type, and at its place. */
void b_stands_for(Expr *operand, const Expr *call, uint32_t i);
/* A call of an `ad.…` function of the evaluator; arguments end with NULL. */
Expr *b_builtin(const Build *b, const char *name, ...) __attribute__((sentinel));
Expr *b_builtin_n(const Build *b, const char *name, Expr **args, uint32_t n);
Expr *b_call(const Build *b, Expr *callee, Expr **args, uint32_t n, unsigned drop);
Expr *b_op(const Build *b, const Op *op, Expr **args, uint32_t n);
Expr *b_fn(const Build *b, const char *name, Var **params, uint32_t n, Expr *body);
Expr *b_if(const Build *b, Expr *c, Expr *t, Expr *e);
Expr *b_read(const Build *b, Expr *ref);
Expr *b_write(const Build *b, Expr *ref, Expr *value);
Expr *b_unit(const Build *b);
Expr *b_tuple(const Build *b, Expr **args, uint32_t n);
Expr *b_proj(const Build *b, Expr *tuple, uint32_t index);

/* A block under construction: bindings and statements in order, then its value. */
typedef struct Block {
    const Build *b;
    VEC(Expr *) links; /* EXPR_LETs without bodies */
} Block;
Expr *block_let(Block *block, const char *name, Expr *value);  /* the variable */
Expr *block_atom(Block *block, const char *name, Expr *value); /* value itself when it is a name */
void block_do(Block *block, Expr *statement);
void block_bind(Block *block, Expr *let_link, Expr *value); /* a copy of an EXPR_LET's binding */
Expr *block_end(Block *block, Expr *value);

#endif
