/* SPDX-License-Identifier: Apache-2.0 */
/* What a session has bound, as types/ sees it. env.h has what others need.
 *
 * Names live in namespaces: the prelude's, one for each module, and the session's own. A name is
 * looked for in the namespace being filled, then in the prelude. */
#ifndef TYPES_CORE_ENV_IMPL_H
#define TYPES_CORE_ENV_IMPL_H

#include "types/core/env.h"

typedef struct Namespace Namespace;
struct Namespace {
    const Symbol *name; /* of a module; NULL for the session and the prelude */
    Map globals;        /* Symbol -> Global */
    Map types;          /* Symbol -> TypeDecl */
    Map ctors;          /* Symbol -> Ctor */
    Map ops;            /* Symbol -> Op: foreign operators */
    Map modules;        /* Symbol as written -> Namespace: what `import nn as m` bound */
    Namespace *outer;   /* the one that was being filled when this was begun */
};

typedef VEC(Global *) GlobalVec;

struct Env {
    EnvHooks hooks;
    Namespace *prelude, *session;
    Namespace *here; /* the one being filled */
    Map modules;     /* Symbol of the module -> Namespace, finished ones */
    Map rules[3];    /* by RuleKind: Op -> Rule */
    Map dependents;  /* Symbol -> Map *, a set of Globals: who mentions it (redefine.c) */
    Map versions;    /* Symbol of a type -> how many of the name were superseded */
    Map specialised; /* Global -> copies made for explicit type arguments */
    ResidualVec residuals;
    InferCounts counts;
    Budget budget; /* of the run under way: what looking for suggestions may cost */
    bool list_checks;
    bool no_mending; /* messages as they arise: no changes are tried (types/mend/mend.h) */
};

Global *env_find_global(const Env *env, const Symbol *name, bool *in_prelude);
Ctor *env_find_ctor(const Env *env, const Symbol *name, bool *in_prelude);
const Op *env_find_op(const Env *env, const Symbol *name);
bool env_has_module(const Env *env, const Symbol *name);
void env_bind_op(Env *env, const Op *op);

#endif
