/* SPDX-License-Identifier: Apache-2.0 */
/* partial_eval: runs what a derivative does with its tape, as far as control flow is known.
 *
 *   fn (d) { let D = ad.tape(…); let l = ad.lift(D, d); … (!ad.chain(D))(); … }
 *   becomes   fn (d) { (d, (ones_like(d),)) }                            (thesis figure 4.2)
 *
 * A function that starts a derivative is evaluated with its parameters unknown. Tapes, duals, cells
 * and the closures made inside are values here; a call of an operator is left over, as a binding of
 * the new function, in the order in which it would run. Where something unknown decides (an `if` on
 * a value, a call of an unknown function, a write to an unknown reference) the function stays as it
 * was: so nothing is ever done twice, left out or moved. */
#include <string.h>

#include "passes/build.h"
#include "passes/pass.h"
#include "types/op.h"

Expr *pass_partial_eval(PassCtx *ctx, Expr *e);

typedef enum Known { K_EXPR, K_TUPLE, K_BOOL, K_REF, K_FN, K_TAPE, K_DUAL } Known;

/* What is known of a value. */
typedef struct Sym {
    Known known;
    bool truth; /* of a BOOL */
    uint32_t n; /* TUPLE */
    struct Sym **items;
    Expr *expr;          /* EXPR: a name or literal of the new function; FN: the literal */
    struct Sym *content; /* REF: what it holds; TAPE: the reference to the chain */
    struct Sym *primal;  /* DUAL */
    struct Sym *cell, *tape;
    Map env; /* FN: Var -> Sym, what it captured */
} Sym;

typedef struct Partial {
    Build b;
    Block block; /* the code that is left to run */
    uint32_t fuel;
    bool stuck;     /* something unknown decides how to go on */
    bool exhausted; /* it is stuck because fuel or the C stack ran out */
} Partial;

enum { FUEL = 100000 }; /* steps for one derivative */

static Sym *eval(Partial *p, Map *env, Expr *e);

static Sym *sym_new(Known known) {
    Sym *s = mem_new(Sym);
    s->known = known;
    return s;
}

static Sym *stuck(Partial *p) {
    p->stuck = true;
    return sym_new(K_TUPLE);
}

static Sym *sym_unit(void) { return sym_new(K_TUPLE); }

static Sym *sym_bool(bool truth) {
    Sym *s = sym_new(K_BOOL);
    s->truth = truth;
    return s;
}

static Sym *sym_expr(Expr *e) {
    Sym *s = sym_new(K_EXPR);
    s->expr = e;
    return s;
}

static bool is_unit(const Sym *s) { return s->known == K_TUPLE && s->n == 0; }

/* The value as code of the new function. */
static Expr *residual(Partial *p, const Sym *s) {
    switch (s->known) {
    case K_EXPR: return s->expr;
    case K_BOOL: return expr_bool(s->truth, p->b.span);
    case K_TUPLE: {
        Expr **args = mem_new_n(Expr *, s->n + 1);
        for (uint32_t i = 0; i < s->n; i++)
            args[i] = residual(p, s->items[i]);
        return expr_tuple(args, s->n, p->b.span);
    }
    case K_REF:
    case K_FN:
    case K_TAPE:
    case K_DUAL: break;
    }
    p->stuck = true;
    return expr_unit(p->b.span);
}

static Sym *leave(Partial *p, const char *name, Expr *e) {
    return sym_expr(block_let(&p->block, name, e));
}

typedef enum Floats { FLOATS_NO, FLOATS_YES, FLOATS_OPEN } Floats;

/* Whether code stands for one tensor of floats, or surely holds none. */
static Floats floats_of(const Sym *s) {
    if (s->known == K_BOOL)
        return FLOATS_NO;
    if (s->known != K_EXPR)
        return FLOATS_OPEN;
    Type *t = type_resolve(s->expr->type);
    if (t->tag == TY_STRING)
        return FLOATS_NO;
    if (t->tag != TY_TENSOR)
        return FLOATS_OPEN;
    DTypeSet set = type_dtype_set(t->tensor.dtype);
    return !(set & ~DTS_FLOAT) ? FLOATS_YES : set & DTS_FLOAT ? FLOATS_OPEN : FLOATS_NO;
}

static Sym *like(Partial *p, const Op *op, const Sym *s) {
    while (s->known == K_DUAL)
        s = s->primal;
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = residual(p, s);
    return leave(p, "z", b_op(&p->b, op, args, 1, args[0]->type));
}

/* ---- ad.… ------------------------------------------------------------------------------------ */

/* Applies f to each leaf of a tuple. */
static Sym *map_leaves(Partial *p, Sym *tape, Sym *x, Sym *(*f)(Partial *p, Sym *tape, Sym *leaf)) {
    if (x->known != K_TUPLE)
        return f(p, tape, x);
    Sym *out = sym_new(K_TUPLE);
    out->n = x->n;
    out->items = mem_new_n(Sym *, x->n + 1);
    for (uint32_t i = 0; i < x->n; i++)
        out->items[i] = map_leaves(p, tape, x->items[i], f);
    return out;
}

static Sym *lift(Partial *p, Sym *tape, Sym *leaf) {
    Floats floats = floats_of(leaf);
    if (leaf->known != K_DUAL && floats != FLOATS_YES)
        return floats == FLOATS_NO ? leaf : stuck(p);
    Sym *s = sym_new(K_DUAL);
    s->primal = leaf;
    s->tape = tape;
    s->cell = sym_new(K_REF);
    s->cell->content = sym_unit();
    return s;
}

static Sym *primal(Partial *p, Sym *tape, Sym *leaf) {
    (void)p;
    return leaf->known == K_DUAL && leaf->tape == tape ? leaf->primal : leaf;
}

static Sym *cotangent(Partial *p, Sym *tape, Sym *leaf) {
    if (leaf->known == K_DUAL) {
        if (leaf->tape == tape && !is_unit(leaf->cell->content))
            return leaf->cell->content;
        return like(p, &op_zeros_like, leaf);
    }
    Floats floats = floats_of(leaf);
    return floats == FLOATS_YES  ? like(p, &op_zeros_like, leaf)
           : floats == FLOATS_NO ? sym_unit()
                                 : stuck(p);
}

static Sym *ones(Partial *p, Sym *tape, Sym *leaf) {
    (void)tape;
    Floats floats = floats_of(leaf);
    if (leaf->known == K_DUAL || floats == FLOATS_YES)
        return like(p, &op_ones_like, leaf);
    return floats == FLOATS_NO ? sym_unit() : stuck(p);
}

static bool is_active(const Sym *tape, const Sym *x, bool with_cotangent) {
    if (x->known == K_DUAL && x->tape == tape)
        return !with_cotangent || !is_unit(x->cell->content);
    for (uint32_t i = 0; x->known == K_TUPLE && i < x->n; i++)
        if (is_active(tape, x->items[i], with_cotangent))
            return true;
    return false;
}

static void accumulate(Partial *p, Sym *tape, Sym *x, Sym *ct) {
    if (is_unit(ct))
        return;
    if (x->known == K_TUPLE) {
        bool parts = ct->known == K_TUPLE && ct->n == x->n;
        for (uint32_t i = 0; i < x->n; i++) {
            Sym *part = parts ? ct->items[i] : leave(p, "ct", b_proj(&p->b, residual(p, ct), i));
            accumulate(p, tape, x->items[i], part);
        }
        return;
    }
    if (x->known != K_DUAL || x->tape != tape)
        return;
    Sym *old = x->cell->content;
    if (is_unit(old)) {
        x->cell->content = ct;
        return;
    }
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = residual(p, old);
    args[1] = residual(p, ct);
    x->cell->content = leave(p, "ct", b_op(&p->b, &op_add, args, 2, args[0]->type));
}

static Sym *leaf_type_checked(Partial *p, const Sym *y) {
    while (y->known == K_DUAL)
        y = y->primal;
    return floats_of(y) == FLOATS_YES ? sym_unit() : stuck(p);
}

static Sym *builtin(Partial *p, const char *name, Sym **args, uint32_t n) {
    if (!strcmp(name, "ad.tape")) {
        Sym *tape = sym_new(K_TAPE);
        tape->content = sym_new(K_REF);
        tape->content->content = args[0];
        return tape;
    }
    if (!strcmp(name, "ad.own") && n == 1)
        return args[0];
    Sym *tape = n && args[0]->known == K_TAPE ? args[0] : NULL;
    if (!strcmp(name, "ad.ones") && n == 1)
        return map_leaves(p, NULL, args[0], ones);
    if (!strcmp(name, "ad.check_result") && n == 1)
        return leaf_type_checked(p, args[0]);
    if (!tape)
        return stuck(p);
    if (!strcmp(name, "ad.chain"))
        return tape->content;
    if (!strcmp(name, "ad.end"))
        return sym_unit();
    if (!strcmp(name, "ad.is_active") || !strcmp(name, "ad.has_cotangent")) {
        bool truth = false;
        for (uint32_t i = 1; i < n; i++)
            truth = truth || is_active(tape, args[i], name[3] == 'h');
        return sym_bool(truth);
    }
    if (n != 2)
        return stuck(p);
    if (!strcmp(name, "ad.is_dual"))
        return sym_bool(args[1]->known == K_DUAL && is_active(tape, args[1], false));
    if (!strcmp(name, "ad.lift"))
        return map_leaves(p, tape, args[1], lift);
    if (!strcmp(name, "ad.primal") || !strcmp(name, "ad.strip"))
        return map_leaves(p, tape, args[1], primal);
    if (!strcmp(name, "ad.cotangent"))
        return map_leaves(p, tape, args[1], cotangent);
    return stuck(p);
}

/* ---- all forms ------------------------------------------------------------------------------- */

static Sym *eval_call(Partial *p, Map *env, Expr *e) {
    Expr *callee = e->a;
    Sym *f = NULL;
    bool known = callee->kind == EXPR_OP || callee->kind == EXPR_BUILTIN ||
                 callee->kind == EXPR_GLOBAL;
    if (!known)
        f = eval(p, env, callee);
    Sym **args = mem_new_n(Sym *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs && !p->stuck; i++)
        args[i] = eval(p, env, e->args[i]);
    if (p->stuck || e->nsizes || e->mode)
        return stuck(p);
    if (callee->kind == EXPR_BUILTIN)
        return builtin(p, callee->symbol->text, args, e->nargs);
    if (callee->kind == EXPR_GLOBAL) {
        if (!callee->global->internal || strcmp(callee->global->name->text, "ad.accumulate"))
            return stuck(p);
        accumulate(p, args[0], args[1], args[2]);
        return sym_unit();
    }
    if (callee->kind == EXPR_OP) {
        Expr *copy = expr_copy(e);
        copy->args = mem_new_n(Expr *, e->nargs + 1);
        for (uint32_t i = 0; i < e->nargs; i++)
            copy->args[i] = residual(p, args[i]);
        return leave(p, "v", copy);
    }
    if (f->known != K_FN || f->expr->fn->nparams != e->nargs)
        return stuck(p);
    Map inner = {0};
    const Fn *fn = f->expr->fn;
    VarVec captured = {0};
    expr_free_vars(f->expr, &captured);
    for (size_t i = 0; i < captured.len; i++)
        map_set(&inner, captured.data[i], map_find(&f->env, captured.data[i]));
    for (uint32_t i = 0; i < e->nargs; i++)
        map_set(&inner, fn->params[i], args[i]);
    return eval(p, &inner, fn->body);
}

static Sym *eval_fn(Partial *p, Map *env, Expr *e) {
    Sym *f = sym_new(K_FN);
    f->expr = e;
    VarVec free = {0};
    expr_free_vars(e, &free);
    for (size_t i = 0; i < free.len; i++) {
        Sym *s = map_find(env, free.data[i]);
        if (!s)
            return stuck(p);
        map_set(&f->env, free.data[i], s);
    }
    return f;
}

static Sym *eval_proj(Partial *p, Map *env, Expr *e) {
    Sym *tuple = eval(p, env, e->a);
    if (p->stuck)
        return tuple;
    if (tuple->known == K_TUPLE)
        return (uint32_t)e->index < tuple->n ? tuple->items[e->index] : stuck(p);
    Expr *copy = expr_copy(e);
    copy->a = residual(p, tuple);
    return leave(p, "v", copy);
}

static Sym *eval_literal(Partial *p, Map *env, Expr *e) {
    if (!e->like)
        return sym_expr(e);
    Expr *copy = expr_copy(e);
    copy->like = residual(p, eval(p, env, e->like));
    return sym_expr(copy);
}

static Sym *eval_form(Partial *p, Map *env, Expr *e) {
    switch (e->kind) {
    case EXPR_LIT: return eval_literal(p, env, e);
    case EXPR_CONST: return sym_expr(e);
    case EXPR_ZERO: return type_is_unit(e->zero_type) ? sym_unit() : stuck(p);
    case EXPR_VAR: {
        Sym *s = map_find(env, e->var);
        return s ? s : sym_expr(e);
    }
    case EXPR_CALL: return eval_call(p, env, e);
    case EXPR_FN: return eval_fn(p, env, e);
    case EXPR_TUPLE: {
        Sym *s = sym_new(K_TUPLE);
        s->n = e->nargs;
        s->items = mem_new_n(Sym *, e->nargs + 1);
        for (uint32_t i = 0; i < e->nargs; i++)
            s->items[i] = eval(p, env, e->args[i]);
        return s;
    }
    case EXPR_PROJ: return eval_proj(p, env, e);
    case EXPR_IF: {
        Sym *c = eval(p, env, e->a);
        return c->known == K_BOOL ? eval(p, env, c->truth ? e->b : e->c) : stuck(p);
    }
    case EXPR_REF: {
        Sym *r = sym_new(K_REF);
        r->content = eval(p, env, e->a);
        return r;
    }
    case EXPR_READ: {
        Sym *r = eval(p, env, e->a);
        return r->known == K_REF ? r->content : stuck(p);
    }
    case EXPR_WRITE: {
        Sym *r = eval(p, env, e->a);
        if (r->known != K_REF)
            return stuck(p);
        r->content = eval(p, env, e->b);
        return sym_unit();
    }
    case EXPR_STRING:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_BUILTIN:
    case EXPR_LET:
    case EXPR_MATCH:
    case EXPR_FIELD:
    case EXPR_UPDATE:
    case EXPR_BANG:
    case EXPR_EQUAL:
    case EXPR_TENSOR:
    case EXPR_INDEX:
    case EXPR_DIM_OF:
    case EXPR_CHECK:
    case EXPR_GRAD:
    case EXPR_ERROR: break;
    }
    return stuck(p);
}

static Sym *eval(Partial *p, Map *env, Expr *e) {
    for (; e->kind == EXPR_LET && !p->stuck; e = e->body) {
        if (e->rec)
            return stuck(p);
        Sym *value = eval(p, env, e->a);
        if (e->var)
            map_set(env, e->var, value);
    }
    p->exhausted |= p->fuel == 0 || mem_stack_left() < 64 * 1024;
    if (p->stuck || p->exhausted)
        return stuck(p);
    p->fuel--;
    return eval_form(p, env, e);
}

/* ---- functions that start a derivative ------------------------------------------------------- */

static bool starts_derivative(const Expr *e) {
    if (e->kind != EXPR_FN || e->fn->body->kind != EXPR_LET)
        return false;
    return expr_calls_builtin(e->fn->body->a, "ad.tape");
}

static Expr *evaluated(PassCtx *ctx, Expr *fn) {
    Partial p = {.b = {fn->span}, .fuel = ctx->fuel ? ctx->fuel : FUEL};
    p.block.b = &p.b;
    Map env = {0};
    for (uint32_t i = 0; i < fn->fn->nparams; i++)
        map_set(&env, fn->fn->params[i], sym_expr(expr_var(fn->fn->params[i], fn->span)));
    Sym *result = eval(&p, &env, fn->fn->body);
    Expr *body = p.stuck ? NULL : residual(&p, result);
    ctx->work += (ctx->fuel ? ctx->fuel : FUEL) - p.fuel;
    if (p.exhausted)
        pass_note(ctx, "partial_eval gave up on a derivative after %u steps",
                  ctx->fuel ? ctx->fuel : FUEL);
    if (p.stuck)
        return fn;
    return expr_fn_with_body(fn, block_end(&p.block, body));
}

typedef struct Rewrite {
    PassCtx *ctx;
    Map done; /* Expr -> what became of it */
} Rewrite;

static Expr *rewrite(void *ctx, Expr *e) {
    Rewrite *w = ctx;
    Expr *known = map_find(&w->done, e);
    if (known)
        return known;
    Expr *result = e->kind == EXPR_LET ? expr_map_block(e, rewrite, w)
                                       : expr_map_children(e, rewrite, w);
    if (starts_derivative(result))
        result = evaluated(w->ctx, result);
    map_set(&w->done, e, result);
    return result;
}

Expr *pass_partial_eval(PassCtx *ctx, Expr *e) {
    Rewrite w = {.ctx = ctx};
    return rewrite(&w, e);
}
