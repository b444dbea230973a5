/* SPDX-License-Identifier: Apache-2.0 */
/* dce: removes a binding whose name is not used and whose value has no effect that would be missed.
 *
 *   let a = x * x; let b = x + 1; let c = 1 / n; b   becomes   let b = x + 1; let c = 1 / n; b
 *
 * It keeps what may fail or not end, and whatever else can be seen from outside (effects.h), but a
 * reference that is made and never used goes, and so does an operator of a derivative, which fits where
 * the operator did that ran before. It does not look for code that is never reached, nor for parameters
 * and fields that nobody reads.
 *
 * A block is walked from its value back to its first binding: all uses of a name stand behind its binding,
 * so one walk decides. */
#include "passes/effects.h"

Expr *pass_dce(PassCtx *ctx, Expr *e);

typedef struct Cleaner {
    PassCtx *ctx;
    Effects *effects; /* of root, once a binding is unused that may have any */
    Map done;         /* Expr -> what became of it */
    Map used;         /* Var that what is kept so far mentions */
    Expr *root;
} Cleaner;

static Expr *clean(Cleaner *c, Expr *e);

static Expr *clean_child(void *ctx, Expr *child) { return clean(ctx, child); }

/* Whether e does nothing, as is seen without knowing the program. */
static bool is_idle(const Expr *e) {
    bool takes_parts = e->kind == EXPR_PROJ || e->kind == EXPR_FIELD;
    if ((takes_parts && e->a->kind == EXPR_VAR) || e->kind == EXPR_FN || e->kind == EXPR_VAR ||
        (e->kind == EXPR_LIT && !e->like))
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->args[i]->kind != EXPR_VAR)
            return false;
    return e->kind == EXPR_TUPLE;
}

static bool is_unused(Cleaner *c, const Expr *link) {
    enum { UNSEEN = EFFECT_READS | EFFECT_MAKES | EFFECT_MISFITS };
    if (link->var && map_has(&c->used, link->var))
        return false;
    if (is_idle(link->a))
        return true;
    if (!c->effects)
        c->effects = effects_new(c->ctx, c->root);
    return !(effects_at(c->effects, link->a) & ~(unsigned)UNSEEN);
}

static Expr *clean_block(Cleaner *c, Expr *e) {
    VEC(Expr *) links = {0};
    for (; e->kind == EXPR_LET; e = e->body)
        vec_push(&links, e);
    Expr *result = clean(c, e);
    while (links.len) {
        Expr *link = vec_pop(&links);
        pass_visit(c->ctx);
        if (is_unused(c, link)) {
            effects_depend(c->ctx, link->a);
            continue;
        }
        Expr *value = clean(c, link->a);
        if (value != link->a || result != link->body) {
            link = expr_copy(link);
            link->a = value;
            link->body = result;
        }
        result = link;
    }
    return result;
}

static Expr *clean(Cleaner *c, Expr *e) {
    if (e->kind == EXPR_VAR)
        map_enter(&c->used, e->var);
    Expr *known = expr_is_leaf(e) ? e : map_find(&c->done, e);
    if (known)
        return known;
    pass_visit(c->ctx);
    if (e->kind == EXPR_FN && e->fn->keeps_captured && e != c->root) {
        VarVec captured = {0};
        expr_free_vars(e, &captured);
        for (size_t i = 0; i < captured.len; i++)
            map_set(&c->used, captured.data[i], captured.data[i]);
        return e;
    }
    Expr *result = e->kind == EXPR_LET ? clean_block(c, e) : expr_map_children(e, clean_child, c);
    map_set(&c->done, e, result);
    return result;
}

Expr *pass_dce(PassCtx *ctx, Expr *e) {
    Cleaner c = {.ctx = ctx, .root = e};
    MapRoom done, used;
    map_begin(&c.done, &done);
    map_begin(&c.used, &used);
    e = clean(&c, e);
    map_end(&c.done);
    map_end(&c.used);
    if (c.effects)
        effects_end(c.effects);
    return e;
}
