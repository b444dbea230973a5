/* SPDX-License-Identifier: Apache-2.0 */
/* ad: writes out derivatives (thesis figure 4.1).
 *
 *   grad(fn (x) { x * x })   becomes   fn (x1) { let D = ad.tape(…); let l = ad.lift(D, x1);
 *                                                let y = (fn (tape, x) { … })(D, l); … }
 *
 * `deriv` is written as the `grad` of which it is a part. jvp and vjp are written out likewise; custom_grad and
 * checkpoint are not: their twins stand as they are in custom.c. A derivative is written out where its function is a
 * literal that calls operators and constructors only, and holds no function. Others stay as they are: which code their
 * callees have is decided by the values, when running (Note [Twins]); a function that is written out has no twins. */
#include "passes/grad.h"
#include "passes/subst.h"

Expr *pass_ad(PassCtx *ctx, Expr *e);

typedef struct Expander {
    PassCtx *ctx;
    Map done;
} Expander;

/* A derivative, a function, or a call of one that is not known. */
static bool is_higher(void *ctx, const Expr *e) {
    (void)ctx;
    bool known = e->kind != EXPR_CALL || e->a->kind == EXPR_OP || e->a->kind == EXPR_CTOR ||
                 e->a->kind == EXPR_BUILTIN;
    return e->kind == EXPR_GRAD || e->kind == EXPR_FN || !known;
}

static bool is_first_order(Expr *fn) { return !expr_any(fn->fn->body, is_higher, NULL); }

/* The function literal itself, or the one a global is bound to. */
static Expr *literal_of(Expr *e) {
    if (e->kind == EXPR_GLOBAL && e->global->kind == GLOBAL_DEF)
        e = e->global->value;
    return e && e->kind == EXPR_FN && is_first_order(e) ? e : NULL;
}

typedef struct Settled {
    Map done;  /* Expr -> what it became */
    Span span; /* of the derivative: for what has no place of its own, and may fail */
} Settled;

/* Takes the mark off the template's call: it calls a literal, so no twin has to be found. What the twin calls in the
 * world outside the derivative is now called in the world the code stands in. */
static Expr *settle_calls(void *ctx, Expr *e) {
    Settled *s = ctx;
    Expr *known = map_find(&s->done, e);
    if (known)
        return known;
    Expr *result = e->kind == EXPR_LET ? expr_map_block(e, settle_calls, s)
                                       : expr_map_children(e, settle_calls, s);
    bool settled = result->kind == EXPR_CALL && result->mode && result->a->kind == EXPR_FN;
    if (result->kind == EXPR_CALL && (settled || result->drop)) {
        result = expr_copy(result);
        result->mode = settled ? 0 : result->mode;
        result->drop -= result->drop > 0;
    }
    if (result->kind == EXPR_CALL && result->a->kind == EXPR_BUILTIN && !result->span.source) {
        result = expr_copy(result);
        result->span = s->span;
    }
    map_set(&s->done, e, result);
    return result;
}

/* Gives the new function the parameter names of the literal, and the type of the derivative. */
static void name_params(Expr *made, const Expr *literal, Type *type) {
    if (made->kind != EXPR_FN)
        return;
    for (uint32_t i = 0; i < made->fn->nparams; i++) {
        Var *v = made->fn->params[i];
        if (i < literal->fn->nparams)
            v->name = literal->fn->params[i]->name;
        if (type->tag == TY_FN && i < type->nargs)
            v->type = type->args[i];
    }
    if (type->tag == TY_FN)
        made->type = type;
}

/* fn (x1, …) { grad(literal)(x1, …).1 }, the `grad` having the type that the literal says. */
static Expr *deriv_as_grad(PassCtx *ctx, Expr *literal) {
    uint32_t n = literal->fn->nparams;
    Expr *template = grad_template(ctx, GRAD_DERIV, n);
    Subst copy_literal = {0}, fill = {0};
    map_set(&fill.vars, template->fn->params[0], expr_substitute(&copy_literal, literal));
    Expr *made = expr_substitute(&fill, template->fn->body), *call = made->fn->body;
    while (call->kind == EXPR_PROJ)
        call = call->a;
    Type *fn = type_resolve(literal->type);
    if (fn->tag != TY_FN)
        return made;
    Type **cotangents = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        cotangents[i] = type_deriv(fn->args[i]);
        made->fn->params[i]->type = call->args[i]->type = fn->args[i];
    }
    Type *both[] = {fn->fn.result, type_tuple(cotangents, n)};
    call->a->type = type_fn(fn->args, n, type_tuple(both, 2), type_allocates());
    return made;
}

static Expr *expand(Expander *x, Expr *e);

static Expr *expand_child(void *ctx, Expr *child) { return expand(ctx, child); }

static Expr *expand(Expander *x, Expr *e) {
    Expr *known = map_find(&x->done, e);
    if (known)
        return known;
    Expr *result = e->kind == EXPR_LET ? expr_map_block(e, expand_child, x)
                                       : expr_map_children(e, expand_child, x);
    bool starts = result->kind == EXPR_GRAD && result->mode != GRAD_CUSTOM &&
                  result->mode != GRAD_CHECKPOINT && result->mode != GRAD_VMAP;
    Expr *literal = starts ? literal_of(result->a) : NULL;
    if (literal && result->mode == GRAD_DERIV) {
        Type *type = type_resolve(result->type);
        result = expand(x, deriv_as_grad(x->ctx, literal));
        name_params(result, literal, type);
    } else if (literal) {
        GradKind kind = (GradKind)result->mode;
        Expr *template = grad_template(x->ctx, kind, literal->fn->nparams);
        Expr *twin = grad_twin(x->ctx, literal, kind == GRAD_JVP ? AD_FORWARD : AD_REVERSE);
        if (twin) {
            Settled settled = {.span = e->span};
            Subst copy_twin = {0}, fill = {0};
            map_set(&fill.vars, template->fn->params[0], expr_substitute(&copy_twin, twin));
            Type *type = type_resolve(result->type);
            result = settle_calls(&settled, expr_substitute(&fill, template->fn->body));
            name_params(result, literal, type);
        }
    }
    map_set(&x->done, e, result);
    return result;
}

Expr *pass_ad(PassCtx *ctx, Expr *e) {
    Expander x = {.ctx = ctx};
    return expand(&x, e);
}
