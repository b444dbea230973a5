/* SPDX-License-Identifier: Apache-2.0 */
/* Relay-to-Relay passes: pure functions on the typed core, one file each, listed in passes.def.
 * Programs are DAGs: every traversal is memoised by node; let chains are loops. */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "types/infer/infer.h"

typedef struct PassCtx {
    Env *env;
    Diags *diags;
    struct GradState *grad; /* what differentiation makes once: helper functions, templates */
} PassCtx;

typedef struct Pass {
    const char *name;
    Expr *(*run)(PassCtx *ctx, Expr *e);
    const char *doc;
} Pass;

const Pass *pass_find(const char *name); /* NULL when there is none */
size_t pass_count(void);
const Pass *pass_at(size_t i);
Expr *pass_run(PassCtx *ctx, const Pass *pass, Expr *e);

#endif
