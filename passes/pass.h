/* SPDX-License-Identifier: Apache-2.0 */
/* Relay-to-Relay passes: pure functions on the typed core, one file each, listed in passes.def.
 * Programs are DAGs: every traversal is memoised by node; let chains are loops. */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "passes/optimise.h"
#include "types/infer/infer.h"

typedef struct PassCtx {
    Env *env;
    Diags *diags;
    struct GradState *grad; /* the helper functions and templates of differentiation, made once */
    struct EffectState *effects; /* of definitions (effects.h) */
    bool check;                  /* run core_check on what passes and derivatives make */
    uint32_t fuel;           /* steps that partial_eval takes for a derivative; 0: its own number */
    VEC(const char *) notes; /* where a pass gave up: pass_note */
    uint64_t work;           /* nodes that passes visited so far: for tests, that they are linear */
    const OptOptions *opt;   /* of the passes that code goes through (optimise.h) */
    uint64_t applied;        /* applications of passes to code so far */
    DependencyVec *deps;     /* what the code being optimised depends on, or NULL */
    struct Instances *instances; /* copies of functions made so far (specialise.c) */
} PassCtx;

typedef struct Pass {
    const char *name;
    Expr *(*run)(PassCtx *ctx, Expr *e);
    int level; /* the least at which it runs on code; 0: only where it is named */
    const char *doc;
} Pass;

const Pass *pass_find(const char *name); /* NULL when there is none */
size_t pass_count(void);
const Pass *pass_at(size_t i);
/* Says that a pass left something as it was because its fuel ran out. */
void pass_note(PassCtx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Notes that the code being optimised is right as long as g has the value it has. */
void pass_depend(PassCtx *ctx, Global *g);

/* Forgets what was found about definitions, because they may have changed. */
void passes_forget(PassCtx *ctx);
/* Ends the program with a BUG where ctx->check is set and e breaks a rule (types/core/check.h). after: what
 * made e. */
void pass_check(const PassCtx *ctx, Expr *e, const VarVec *given, const char *after);
Expr *pass_run(PassCtx *ctx, const Pass *pass, Expr *e);

#endif
