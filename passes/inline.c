/* SPDX-License-Identifier: Apache-2.0 */
/* inline: `let x = y; e` where y is a name or a literal becomes e with y for x, and a call of a
 * function literal becomes lets.
 *
 *   let x = y; (fn (a) { f(a, x) })(g(z))   becomes   let a = g(z); f(a, y)
 *   let a = f(x); (x, a)                    becomes   (x, f(x))
 *
 * It does not duplicate work and does not look inside recursive functions' callers. */
#include "passes/pass.h"
#include "passes/subst.h"

Expr *pass_inline(PassCtx *ctx, Expr *e);

typedef struct Inliner {
    Map done;
} Inliner;

static Expr *walk(Inliner *in, Expr *e);

static Expr *walk_child(void *ctx, Expr *child) { return walk(ctx, child); }

static bool is_atom(const Expr *e) {
    return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like) || e->kind == EXPR_CONST ||
           e->kind == EXPR_GLOBAL || e->kind == EXPR_OP;
}

/* (fn (a, b) { e })(x, y): let a = x; let b = y; e */
static Expr *beta(Expr *call) {
    Fn *fn = call->a->fn;
    Subst s = {0};
    VEC(Expr *) lets = {0};
    for (uint32_t i = 0; i < fn->nparams; i++) {
        if (is_atom(call->args[i])) {
            map_set(&s.vars, fn->params[i], call->args[i]);
            continue;
        }
        Var *v = var_new(fn->params[i]->name, fn->params[i]->type, fn->params[i]->span);
        map_set(&s.vars, fn->params[i], expr_var(v, v->span));
        Expr *let = expr_new(EXPR_LET, call->type, call->span);
        let->var = v;
        let->a = call->args[i];
        vec_push(&lets, let);
    }
    Expr *body = expr_substitute(&s, fn->body);
    for (size_t i = lets.len; i-- > 0;) {
        lets.data[i]->body = body;
        body = lets.data[i];
    }
    return body;
}

/* How often v stands in e, which may be made of names and tuples only; else many. */
static uint32_t uses_in_tuple(const Expr *e, const Var *v) {
    enum { MANY = 1000 };
    if (is_atom(e))
        return e->kind == EXPR_VAR && e->var == v;
    if (e->kind != EXPR_TUPLE)
        return MANY;
    uint32_t uses = 0;
    for (uint32_t i = 0; i < e->nargs && uses < MANY; i++)
        uses += uses_in_tuple(e->args[i], v);
    return uses;
}

static Expr *walk_chain(Inliner *in, Expr *e) {
    VEC(Expr *) links = {0};
    while (e->kind == EXPR_LET) {
        Expr *value = walk(in, e->a);
        if (e->var && !e->rec && is_atom(value)) {
            Subst s = {0};
            map_set(&s.vars, e->var, value);
            e = expr_substitute(&s, e->body);
            continue;
        }
        Expr *copy = expr_copy(e);
        copy->a = value;
        vec_push(&links, copy);
        e = e->body;
    }
    Expr *result = walk(in, e);
    Expr *last = links.len ? vec_last(&links) : NULL;
    if (last && last->var && !last->rec && last->a->kind == EXPR_CALL &&
        uses_in_tuple(result, last->var) == 1) {
        Subst s = {0};
        map_set(&s.vars, last->var, last->a);
        result = expr_substitute(&s, result);
        links.len--;
    }
    for (size_t i = links.len; i-- > 0;) {
        links.data[i]->body = result;
        result = links.data[i];
    }
    return result;
}

static Expr *walk(Inliner *in, Expr *e) {
    Expr *known = map_find(&in->done, e);
    if (known)
        return known;
    Expr *result = e->kind == EXPR_LET ? walk_chain(in, e) : expr_map_children(e, walk_child, in);
    if (result->kind == EXPR_CALL && result->a->kind == EXPR_FN && !result->mode &&
        result->a->fn->nparams == result->nargs && !result->a->fn->path)
        result = walk(in, beta(result));
    map_set(&in->done, e, result);
    return result;
}

Expr *pass_inline(PassCtx *ctx, Expr *e) {
    (void)ctx;
    Inliner in = {0};
    return walk(&in, e);
}
