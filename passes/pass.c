/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/pass.h"

#include "types/core/check.h"

#include <stdarg.h>
#include <string.h>

#define PASS(name, run, level, doc) Expr *run(PassCtx *ctx, Expr *e);
#include "passes/passes.def"
#undef PASS

static const Pass table[] = {
#define PASS(name, run, level, doc) {#name, run, level, doc},
#include "passes/passes.def"
#undef PASS
};

const Pass *pass_find(const char *name) {
    for (size_t i = 0; i < pass_count(); i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

size_t pass_count(void) { return sizeof table / sizeof *table; }

const Pass *pass_at(size_t i) { return &table[i]; }

/* More tell nobody anything. */
enum { NOTES = 100 };

void pass_note(PassCtx *ctx, const char *fmt, ...) {
    Str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    if (ctx->notes.len < NOTES)
        vec_push(&ctx->notes, str_text(&text));
}

void pass_check(const PassCtx *ctx, Expr *e, const VarVec *given, const char *after) {
    const char *wrong = ctx->check ? core_check(e, given) : NULL;
    if (wrong)
        BUG("after %s: %s", after, wrong);
}

Expr *pass_run(PassCtx *ctx, const Pass *pass, Expr *e) {
    e = pass->run(ctx, e);
    if (e)
        pass_check(ctx, e, NULL, pass->name);
    return e;
}
