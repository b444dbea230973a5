/* SPDX-License-Identifier: Apache-2.0 */
/* inline: `let x = y; e` where y is a name or a literal becomes e with y for x, and a call of a
 * function literal becomes lets.
 *
 *   let x = y; (fn (a) { f(a, x) })(g(z))   becomes   let a = g(z); f(a, y)
 *   let a = f(x); (x, a)                    becomes   (x, f(x))
 *
 * It runs nothing twice, leaves nothing out and keeps the order: a call moves into the tuple behind it
 * only past names and literals, which have no effect and none on them. A global that is bound by `let` stays
 * where it is read, since it may be given another value at the prompt. It does not look for functions
 * that are bound to names, nor for definitions.
 *
 * Every variable is bound once (core_check), so one map from variables to what stands for them serves the
 * whole expression, and a node is walked once. A literal that stands at several places gives its binders to
 * the first; the others get copies. */
#include "passes/pass.h"
#include "passes/subst.h"

Expr *pass_inline(PassCtx *ctx, Expr *e);

typedef struct Inliner {
    PassCtx *ctx;
    Map done;  /* Expr -> what became of it */
    Map atoms; /* Var -> the name or literal that stands for it */
    Map taken; /* the function literals whose binders already stand in the result */
} Inliner;

static Expr *inline_expr(Inliner *in, Expr *e);

static Expr *inline_child(void *ctx, Expr *child) { return inline_expr(ctx, child); }

static bool is_atom(const Expr *e) {
    if (e->kind == EXPR_GLOBAL)
        return e->global->kind == GLOBAL_DEF || e->global->kind == GLOBAL_BUILTIN;
    return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like) || e->kind == EXPR_CONST ||
           e->kind == EXPR_OP;
}

/* The literal itself the first time, and later copies with binders of their own. */
static Expr *take_literal(Inliner *in, Expr *fn) {
    if (map_has(&in->taken, fn)) {
        Subst s = {0};
        fn = expr_substitute(&s, fn);
    }
    map_set(&in->taken, fn, fn);
    return fn;
}

static bool is_call_of_literal(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_FN && !e->mode && !e->drop &&
           !e->a->fn->path && e->a->fn->nparams == e->nargs;
}

/* How often v stands in e, if e is made of names and tuples only; otherwise many times. */
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

static Expr *put_into_tuple(const Expr *e, const Var *v, Expr *value) {
    if (e->kind == EXPR_VAR && e->var == v)
        return value;
    if (e->kind != EXPR_TUPLE)
        return (Expr *)(uintptr_t)e;
    Expr **args = mem_new_n(Expr *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++)
        args[i] = put_into_tuple(e->args[i], v, value);
    Expr *copy = expr_copy(e);
    copy->args = args;
    return copy;
}

typedef VEC(Expr *) Links;

/* Binds v to value before what follows, unless value is a name or literal that can replace v. */
static void bind(Inliner *in, Links *links, Expr *let, Var *v, Expr *value) {
    if (v && !let->rec && is_atom(value)) {
        map_set(&in->atoms, v, value);
        return;
    }
    let->var = v;
    let->a = value;
    vec_push(links, let);
}

/* Inlines in a block: in its bindings, and in calls of literals, whose bodies continue the block. */
static Expr *inline_block(Inliner *in, Expr *e) {
    Links links = {0};
    for (;;) {
        in->ctx->work++;
        if (e->kind == EXPR_LET) {
            bind(in, &links, expr_copy(e), e->var, inline_expr(in, e->a));
            e = e->body;
        } else if (is_call_of_literal(e)) {
            Expr *fn = take_literal(in, e->a);
            for (uint32_t i = 0; i < e->nargs; i++)
                bind(in, &links, expr_new(EXPR_LET, e->type, e->span), fn->fn->params[i],
                     inline_expr(in, e->args[i]));
            e = fn->fn->body;
        } else {
            break;
        }
    }
    Expr *result = inline_expr(in, e);
    Expr *last = links.len ? vec_last(&links) : NULL;
    if (last && last->var && !last->rec && last->a->kind == EXPR_CALL &&
        uses_in_tuple(result, last->var) == 1) {
        result = put_into_tuple(result, last->var, last->a);
        links.len--;
    }
    while (links.len) {
        Expr *link = vec_pop(&links);
        link->body = result;
        link->type = result->type;
        result = link;
    }
    return result;
}

/* What stands for a variable, with the place of this use of it: messages speak of the operand that is there.
 * A literal keeps its type, which says its dtype. */
static Expr *atom_at(Inliner *in, Expr *use) {
    Expr *atom = map_find(&in->atoms, use->var);
    if (!atom)
        return use;
    atom = expr_copy(atom);
    atom->span = use->span;
    return atom;
}

static Expr *inline_expr(Inliner *in, Expr *e) {
    if (e->kind == EXPR_VAR)
        return atom_at(in, e);
    Expr *known = map_find(&in->done, e);
    if (known)
        return known;
    in->ctx->work++;
    Expr *result;
    if (e->kind == EXPR_LET || is_call_of_literal(e))
        result = inline_block(in, e);
    else
        result = expr_map_children(e->kind == EXPR_FN ? take_literal(in, e) : e, inline_child, in);
    map_set(&in->done, e, result);
    return result;
}

Expr *pass_inline(PassCtx *ctx, Expr *e) {
    Inliner in = {.ctx = ctx};
    return inline_expr(&in, e);
}
