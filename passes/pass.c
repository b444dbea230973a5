/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/pass.h"

#include "passes/effects.h"
#include "passes/grad_internal.h"
#include "passes/inline.h"
#include "types/core/check.h"

#include <stdarg.h>
#include <stdio.h>
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

void pass_tell(PassCtx *ctx, TellingKind kind, const char *pass, Span span, const char *fmt, ...) {
    if (!ctx->tellings)
        return;
    Str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    vec_push(ctx->tellings, ((Telling){kind, pass, span, str_text(&text)}));
}

void passes_abandon(PassCtx *ctx) {
    ctx->deps = NULL;
    ctx->derives_source = ctx->derives_values = false;
    ctx->tellings = NULL;
    ctx->instances = NULL; /* one of them may be half made, and so may a derivative */
    if (ctx->grad)
        memset(ctx->grad->derived, 0, sizeof ctx->grad->derived);
}

void passes_trim(PassCtx *ctx) {
    enum { MANY_EFFECTS = 1024, MANY_COPIES = 128 }; /* copies are kept whole */
    if (effects_known(ctx) > MANY_EFFECTS)
        passes_forget(ctx);
    if (specialise_known(ctx) > MANY_COPIES)
        ctx->instances = NULL;
}

void pass_check(const PassCtx *ctx, Expr *e, const VarVec *given, const char *after) {
    const char *wrong = ctx->check ? core_check(e, given) : NULL;
    if (wrong)
        BUG("after %s: %s", after, wrong);
}

void pass_print_after(const PassCtx *ctx, const Pass *pass, const Symbol *name, Expr *e) {
    Str text = {0};
    if (!ctx->opt || !ctx->opt->print_after || strcmp(ctx->opt->print_after, pass->name) != 0)
        return;
    expr_print(&text, e, NULL);
    fprintf(stderr, "// %s of %s%s%s:\n%s\n", pass->name, name ? "`" : "",
            name ? name->text : "an expression", name ? "`" : "", str_text(&text));
}

Expr *pass_run(PassCtx *ctx, const Pass *pass, Expr *e) {
    e = pass->run(ctx, e);
    if (e)
        pass_check(ctx, e, NULL, pass->name);
    return e;
}

Expr *open_links(Links *links, Expr *block) {
    for (; block->kind == EXPR_LET; block = block->body)
        vec_push(links, expr_copy(block));
    return block;
}

Expr *close_links(Links *links, Expr *result) {
    while (links->len) {
        Expr *link = vec_pop(links);
        link->body = result;
        link->type = result->type;
        result = link;
    }
    return result;
}

Expr *share_links(Links *links, Expr *result) {
    while (links->len) {
        Expr *link = vec_pop(links);
        if (link->body != result) {
            link = expr_copy(link);
            link->body = result;
            link->type = result->type;
        }
        result = link;
    }
    return result;
}
