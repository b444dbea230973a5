/* SPDX-License-Identifier: Apache-2.0 */
/* dce: removes a binding whose name is not used and whose value does nothing but make it.
 *
 *   let a = x * x; let b = x + 1; b   becomes   let b = x + 1; b
 *
 * It keeps every call of an unknown function, write and check: they may fail or be seen. */
#include "passes/pass.h"

#include <string.h>

Expr *pass_dce(PassCtx *ctx, Expr *e);

typedef struct Cleaner {
    Map done;
} Cleaner;

typedef struct Purity {
    bool pure;
} Purity;

static void check_pure(void *ctx, Expr *e);

static bool is_pure(Expr *e) {
    Purity p = {true};
    check_pure(&p, e);
    return p.pure;
}

static void check_pure(void *ctx, Expr *e) {
    Purity *p = ctx;
    if (!p->pure || e->kind == EXPR_FN)
        return;
    bool unknown_call = e->kind == EXPR_CALL && e->a->kind != EXPR_OP && e->a->kind != EXPR_CTOR;
    bool harmless_builtin = e->kind == EXPR_CALL && e->a->kind == EXPR_BUILTIN &&
                            strcmp(e->a->symbol->text, "ad.primal") == 0;
    if ((unknown_call && !harmless_builtin) || e->kind == EXPR_WRITE || e->kind == EXPR_CHECK ||
        e->kind == EXPR_MATCH || e->kind == EXPR_ERROR) {
        p->pure = false;
        return;
    }
    expr_each_child(e, check_pure, p);
}

static Expr *walk(Cleaner *c, Expr *e);

static Expr *walk_child(void *ctx, Expr *child) { return walk(ctx, child); }

static void mark_used(Map *used, Expr *e) {
    VarVec free = {0};
    expr_free_vars(e, &free);
    for (size_t i = 0; i < free.len; i++)
        map_set(used, free.data[i], free.data[i]);
}

/* From the last binding back: each is kept if something after it uses it. */
static Expr *walk_chain(Cleaner *c, Expr *e) {
    VEC(Expr *) links = {0};
    for (; e->kind == EXPR_LET; e = e->body)
        vec_push(&links, e);
    Map used = {0};
    mark_used(&used, e);
    Expr *result = walk(c, e);
    for (size_t i = links.len; i-- > 0;) {
        Expr *link = links.data[i];
        if (is_pure(link->a) && !(link->var && map_has(&used, link->var)))
            continue;
        mark_used(&used, link->a);
        Expr *copy = expr_copy(link);
        copy->a = walk(c, link->a);
        copy->body = result;
        result = copy;
    }
    return result;
}

static Expr *walk(Cleaner *c, Expr *e) {
    Expr *known = map_find(&c->done, e);
    if (known)
        return known;
    Expr *result = e->kind == EXPR_LET ? walk_chain(c, e) : expr_map_children(e, walk_child, c);
    map_set(&c->done, e, result);
    return result;
}

Expr *pass_dce(PassCtx *ctx, Expr *e) {
    (void)ctx;
    Cleaner c = {0};
    return walk(&c, e);
}
