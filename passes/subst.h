/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of core expressions with fresh binders, variables replaced, and the attributes of a
 * derivative rule settled. */
#ifndef PASSES_SUBST_H
#define PASSES_SUBST_H

#include "passes/mono.h"

typedef struct Subst {
    Map vars;   /* Var -> Expr that stands for it */
    Map copied; /* Expr -> its copy, while one is made: sharing survives */
    const Expr *
        call; /* the operator's call that a rule is expanded for, or NULL: it says the attributes */
    bool
        renames; /* what stands for a variable is a variable: its uses keep their places and types */
    const Inlined *site; /* the call that e, a function's body, replaces; or NULL */
    Mono *mono;          /* the types of the copy, or NULL: as they are */
    Map sites;           /* Inlined of a part of e -> the same within `site` */
} Subst;

/* A copy of e: bound variables are fresh, free ones replaced as `s->vars` says. What two copies share is copied twice. */
Expr *expr_substitute(Subst *s, Expr *e);

#endif
