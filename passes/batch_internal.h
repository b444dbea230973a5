/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by batch.c, which goes through the forms of a function, batch_rule.c, which has the rules of operators, and
 * batch_derivative.c, which has those of what derivatives are made of. */
#ifndef PASSES_BATCH_INTERNAL_H
#define PASSES_BATCH_INTERNAL_H

#include "passes/batch.h"
#include "passes/build.h"
#include "passes/effects.h"

/* A value of the function at all rows. It is one of these:
 *
 *   a tensor that has the rows as its first axis           e, has_rows
 *   a value that is the same for all rows                  e
 *   a tuple of which some part is one of the other kinds   parts; `()`, an absent cotangent, too
 *   what a constructor makes of such parts                 ctor, parts
 *   one of two values of different forms                    when, yes, no: an absent cotangent and one that is there
 *   a function that captures what differs                  fn alone; with e where it captures nothing that does */
typedef struct Row {
    Expr *e;
    bool has_rows;
    uint32_t nparts;
    struct Row **parts; /* of a tuple or data, as far as they are known */
    Ctor *ctor;         /* of data whose constructor is known, or NULL */
    const struct Row
        *when; /* a truth value for each row: what it is where that is True, and elsewhere */
    struct Row *yes, *no;
    Expr *fn;                 /* the literal that it is known to be, or NULL */
    const struct Row *narrow; /* what it is broadcast from, or NULL */
    Type *type;               /* of one row */
} Row;

/* What is known of a condition in a branch that it decides. */
typedef struct Assumption {
    const Row *condition;
    bool holds;
} Assumption;

typedef struct Batch {
    PassCtx *ctx;
    Build b;
    Block *block; /* that is being written */
    Type *count;
    Expr *has_count;           /* a tensor with the rows as its first axis */
    Map rows;                  /* Var -> Row */
    const struct Batch *outer; /* within another vmap: that one */
    Effects *effects;
    VEC(Assumption) assumed;
    bool follows;   /* a derivative follows what is made */
    uint32_t calls; /* of functions, which were taken apart */
    BatchRefusal *refusal;
} Batch;

/* Says why, unless that was said before. NULL. */
Row *batch_give_up(Batch *m, const char *why, Span span);
bool batch_gave_up(const Batch *m);

/* The value of e at all rows; NULL where it has none. What binds names goes into the block. */
Row *batch_expr(Batch *m, Expr *e);

Row *row_same(Expr *e, Type *type);
Row *row_tuple(Row **parts, uint32_t n);
/* The same, which is a value that all rows share where its parts are. */
Row *batch_tuple_of(Batch *m, Row **parts, uint32_t n);
/* What a variable stands for that is bound to r, which is the same for all rows. What is known of r stays known. */
Row *row_of_name(const Batch *m, const Row *r, Expr *name);
bool row_depends(const Row *r);
bool row_is_unit(const Row *r);
bool row_is_literal(const Row *r);
Row *row_part(Batch *m, const Row *r, uint32_t i);
/* The same value with its parts, where it is a tuple or data of a known constructor, or the only one of its type; NULL otherwise. */
Row *row_open(Batch *m, const Row *r);
/* A tuple, or what `like` has been made by, of other parts. */
Row *row_like(Batch *m, const Row *like, Row **parts, uint32_t n);

/* batch_choice.c. What a value of two forms is in the branch that is gone through. */
Row *batch_assume(const Batch *m, const Row *r);
/* It as the tensors that it is made of; NULL where it is none. */
Row *batch_decide(Batch *m, Row *r);
Row *batch_if(Batch *m, Expr *e);
/* a where the condition holds, else b, for each row. Where both are tensors of one type, the choice is made here; of other
 * forms it stays open. */
Row *batch_choose(Batch *m, const Row *c, Row *a, Row *b, Span span);

/* Binds e, whose rows are of that type. */
Row *batch_bind(Batch *m, Expr *e, Type *row);
/* The type of all rows of which one has the type t, a tensor of known rank. */
Type *batch_type(const Batch *m, Type *t);
/* The tensor r with the rows as its first axis, also where it is the same for all; NULL where it is no tensor. */
Expr *batch_with_rows(Batch *m, const Row *r);
/* x, which has rows, with each of them broadcast to the type `row`; NULL where sizes are not known. */
Row *batch_broadcast(Batch *m, const Row *x, Type *row);
/* A call of an operator with attributes as they stand by themselves, of rows that are tensors. */
Row *batch_call(Batch *m, const Op *op, Row **in, uint32_t n, const Attrs *attrs, Type *type,
                Span span);
/* The call of an operator; in: its arguments; call: with the types that they have here, and its own. */
Row *batch_operator_rows(Batch *m, const Expr *call, Row **in);
/* x with `axes` new axes of size 1 before axis `at`. */
Expr *batch_insert_axes(Batch *m, Expr *x, int64_t at, int64_t axes);

/* The values of the arguments; NULL where one has none. */
Row **batch_all(Batch *m, Expr **args, uint32_t n);
/* The literal that a callee is known to be, or NULL. */
Expr *batch_known_function(Batch *m, Expr *callee);
/* The row as the variable `name` has it, which is bound to it where it is the same for all rows. */
Row *batch_name_row(Batch *m, Row *row, Expr *name);

/* Whether what `update` is added to, the part of data that indices without vectors name, has as many axes, so that it is no
 * number for all of the part. */
bool batch_is_whole_part(const char *spec, Type *data, Type *update);

/* batch_inner.c. A call of vmap(f) inside. */
Row *batch_inner(Batch *m, Expr *e);
/* batch_rows of a `vmap` inside: `outer` knows the functions that fn captures. */
Expr *batch_rows_within(Batch *outer, Expr *fn, Expr **args, Type *count, Span span);

/* batch_data.c: constructors, fields, `match`. */
Row *batch_constructor(Batch *m, Expr *e, Ctor *ctor);
/* Data of those parts, which are given names. */
Row *batch_data(Batch *m, Ctor *ctor, Row **parts, Type *type, Span span);
Row *batch_field(Batch *m, Expr *e);
Row *batch_update(Batch *m, Expr *e);
Row *batch_match(Batch *m, Expr *e);

/* The expression e gives one of n rows, each out of a block of its own: what they give there goes into values[], and the
 * result is what e is behind it, which `made` makes of the values. NULL where they have not one form. */
typedef Expr *(*MadeOfBranches)(void *ctx, Expr **values);
Row *batch_join(Batch *m, Row *const *rows, Block *blocks, uint32_t n, Span span,
                MadeOfBranches made, void *ctx);

/* A call of a function of types/core/ad.def. */
Row *batch_derivative(Batch *m, const Expr *call, Row **in);
/* The zero gradient of x; call: what asks for it. */
Row *batch_zeros(Batch *m, const Row *x, const Expr *call);

/* batch_order.c. The body with what is the same for all rows first; args: what the n arguments are, at all rows. */
Expr *batch_order(PassCtx *ctx, Expr *body, Expr *const *args, uint32_t n);

/* batch_tree.c. Whether the callee is one of the prelude's builtins that look for the tensors in data, and a call of it. */
bool batch_is_tree(const Expr *callee);
Row *batch_tree(Batch *m, const Expr *call, Row **in);

#endif
