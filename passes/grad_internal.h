/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the derivative transformation: the walk over all forms (twin.c), what
 * becomes of an operator in reverse (grad.c) and in forward mode (jvp.c), the functions that start
 * a derivative (template.c). */
#ifndef PASSES_GRAD_INTERNAL_H
#define PASSES_GRAD_INTERNAL_H

#include "base/weak.h"
#include "passes/build.h"
#include "passes/grad.h"
#include "types/op.h"

/* One application of the transformation to one function. */
typedef struct Twin {
    PassCtx *ctx;
    AdMode mode;
    Expr *tape;    /* the variable of the tape (reverse) or level (forward) */
    unsigned drop; /* `drop` of the calls that the transformation emits */
    Map done;      /* Expr -> its transform */
    bool failed;
} Twin;

Expr *twin_expr(Twin *t, Expr *e);

/* The transform of an operator call whose arguments are transformed already. */
Expr *grad_op_call(Twin *t, Expr *call, Expr **args);
Expr *jvp_op_call(Twin *t, Expr *call, Expr **args);
/* A name for what is stored. A function is one of any type: its twin has the tape before its parameters, one that is called by its
 * code's path has not. */
Expr *block_own(Block *block, Expr *x);
/* The transform of `ad.own(x)`, of x as it is transformed already. */
Expr *grad_own(Twin *t, const Expr *call, Expr *x);
Expr *jvp_own(Twin *t, const Expr *call, Expr *x);

/* What is made once a session. */
typedef struct GradState {
    WeakMap twins[AD_MODES];        /* EXPR_FN -> its twin */
    WeakMap derived[GRAD_KINDS][2]; /* EXPR_FN -> its ReverseFamily; with values merged or not */
    WeakMap prepared;               /* EXPR_FN -> what it is after the passes: known.c */
    WeakMap loops;                  /* EXPR_FN that vmap_to_run made -> what it was made of */
    VEC(const Op *) row_ops;        /* operators at all rows (ops/rows.h) that batch.c made */
    Map tangents;        /* Op -> the functions that twins share for its tangents (jvp.c) */
    TypeDecl *functions; /* of the constructors of functions that are data (reverse/functions.c) */
    Expr *accumulate;    /* global ad.accumulate: fn (D, x, ct) adds ct into x's cells */
    Global *cellwise[3]; /* what adds to cells one by one: reverse/cellwise.c */
    Map templates[GRAD_KINDS]; /* number of parameters + 1 -> EXPR_FN */
    Map kinds; /* the functions that these give -> the address of their kind's templates */
} GradState;
GradState *grad_state(PassCtx *ctx);
/* A reference to the global function that adds a cotangent into the cells of a lifted value. */
Expr *grad_accumulate(PassCtx *ctx);

/* The rule of an operator call as a block: parameters bound to primals, result and cotangent (or
 * tangents), then the rule's value. */
Expr *rule_expand(const Rule *rule, const Expr *call, Expr **args, uint32_t n);

/* Whether a value of this type can hold a float: true also where the type is open. */
bool type_may_hold_float(Type *t);

bool expr_is_unit(const Expr *e);
/* Whether a rule's value is a tuple of cotangents: of one argument it may be the cotangent itself. */
bool rule_gives_tuple(Expr *value);
/* Whether the rule says that nothing flows back, whatever the arguments: floor, argmax. */
bool rule_is_zero(const Rule *rule);
/* Whether the rule gives () for argument i: of that argument the result has neither derivative nor tangent. */
bool rule_ignores(const Rule *rule, uint32_t i);

/* Functions whose derivative is not that of their code (custom.c), of n parameters. */
Expr *custom_template(PassCtx *ctx, const Build *b, uint32_t n);
Expr *checkpoint_template(PassCtx *ctx, const Build *b, uint32_t n);

#endif
