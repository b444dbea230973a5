/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by inline.c, which replaces names and calls by what they stand for, and specialise.c, which makes copies of
 * functions for the functions they are given. */
#ifndef PASSES_INLINE_H
#define PASSES_INLINE_H

#include "passes/pass.h"
#include "passes/subst.h"

typedef struct Inliner {
    PassCtx *ctx;
    Map done;   /* Expr -> what became of it */
    Map atoms;  /* Var -> the name or literal that stands for it */
    Map taken;  /* the function literals whose binders already stand in the result */
    Map known;  /* Var -> the function literal that a `let` or a call binds it to */
    Map data;   /* Var -> the tuple or data that it is */
    Map locals; /* Var of a `let` of a function literal that is called -> the `let` */
    Map uses;   /* Var -> how often it is mentioned */
    Map calls; /* Var -> how often of those it is called, not within a function literal other than its own */
    Map literals;        /* Var of a recursive `let` -> its function literal */
    Map visited;         /* while uses are counted */
    const Expr *counted; /* the literal in which uses are being counted, or NULL */
    const Expr *root;
    bool replaces_calls; /* of functions that are small, or called once */
    bool specialises;
    uint32_t nested; /* function literals around the expression, besides the root */
    uint32_t grown;  /* nodes that replacing calls has added */
} Inliner;

/* The whole of e, which may be an EXPR_FN. */
Expr *inline_root(Inliner *in, Expr *e);
Expr *inline_expr(Inliner *in, Expr *e);
void inline_count_uses(Inliner *in, Expr *e);

/* The bindings of a block go to `links`, and its value is given; of another expression, it itself. */
Expr *inline_open_block(Inliner *in, Links *links, Expr *block);
/* e as a block, where arguments of it are blocks (passes/lift.c). */
Expr *lift_blocks(Inliner *in, Expr *e);

/* The function literal that an expression is known to be: itself, or what its variable is bound to. NULL
 * where it is not known. */
Expr *inline_known_function(Inliner *in, Expr *e);
/* The same of a function that may call itself, which never stands in place of its calls, too. */
Expr *inline_known_literal(Inliner *in, Expr *e);
/* The name or literal that stands for a variable, else e itself. */
Expr *inline_atom(Inliner *in, Expr *e);

/* What the function is a copy of that differs in its variables only, else itself. */
const Fn *fn_written(const Expr *fn);
/* Notes that a pass made `after` of `before`, where these are functions. */
void fn_note_written(Expr *after, const Expr *before);
/* Whether it was made for a derivative and calls no function in a circle, so that it may stand where it is called. */
bool fn_is_straight(const Expr *fn);

/* Nodes of an expression, or `most` where there are more. */
uint32_t expr_count(Expr *e, uint32_t most);

/* A function literal that is not called here, with other names for what it captures: `name` gives that for a use of a
 * variable, or the use itself. Where closures of it must capture what they did, one by one, the names are bound
 * before it. */
Expr *literal_with_names(Expr *fn, Expr *(*name)(void *ctx, Expr *use), void *ctx);

/* The same of any literal that is not called here nor differentiated there: names of their own for the tensors that it
 * captures under several names which `name` makes one; `links` binds them. Otherwise fn itself. */
Expr *literal_with_own_names(Expr *fn, Expr *(*name)(void *ctx, Expr *use), void *ctx,
                             Links *links);

/* A call, not yet visited, as a call of a copy that is made for the functions among its arguments. NULL where
 * there is none. */
Expr *specialise_call(Inliner *in, Expr *call);
/* Whether the function of a `let` becomes a definition of its own where calls of it stay. */
bool specialise_local(Inliner *in, const Expr *let);

/* What `tree.map` or `tree.map2`, the definition g, does in this call where types say which leaves there are
 * (passes/leaves.c); NULL where they do not, or g is another definition. */
Expr *leaves_function(Inliner *in, const Expr *call, const Global *g);

/* How many copies of functions were made that may be kept. */
size_t specialise_known(const PassCtx *ctx);

#endif
