/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse mode: what becomes of an operator call (thesis figure 4.1, the case of operators).
 *
 *   op(a, b)   becomes   let v = op(ad.primal(D, a), ad.primal(D, b));
 *                        if ad.is_active(D, a, b) {
 *                          let r = ad.lift(D, v);                 // v with a fresh cell
 *                          let before = !ad.chain(D);
 *                          ad.chain(D) := fn () {                 // the backpropagator
 *                            if ad.has_cotangent(D, r) {
 *                              let ct = ad.cotangent(D, r);
 *                              if ad.is_active(D, a) { ad.accumulate(D, a, rule_a(…, v, ct)) };
 *                              if ad.is_active(D, b) { ad.accumulate(D, b, rule_b(…, v, ct)) } };
 *                            before() };
 *                          r
 *                        } else { v }
 *
 * Everything emitted is ordinary Relay in the world outside this derivative, so an enclosing
 * derivative transforms it like any other code: that is how derivatives nest. */
#include <string.h>

#include "passes/grad_internal.h"
#include "passes/subst.h"

bool expr_is_unit(const Expr *e) { return e->kind == EXPR_TUPLE && e->nargs == 0; }

static bool holds_float(Type *t, Map *seen) {
    t = type_resolve(t);
    if (t->tag == TY_TUPLE && !map_enter(seen, t))
        return false;
    switch (t->tag) {
    case TY_TENSOR: {
        DType d;
        return !type_get_dtype(t, &d) || dtype_is_float(d);
    }
    case TY_TUPLE:
        for (uint32_t i = 0; i < t->nargs; i++)
            if (holds_float(t->args[i], seen))
                return true;
        return false;
    case TY_STRING: return false;
    default: return true; /* an open type or data: the value decides */
    }
}

bool type_may_hold_float(Type *t) {
    Map seen = {0};
    return !t || holds_float(t, &seen);
}

/* An argument that can never be active: a literal, or an integer by its type. */
static bool is_inactive(Expr *original, Expr *arg) {
    return arg->kind == EXPR_LIT || arg->kind == EXPR_CONST || !type_may_hold_float(original->type);
}

Expr *rule_expand(const Rule *rule, const Expr *call, Expr **args, uint32_t n) {
    Fn *fn = rule->fn->fn;
    if (fn->nparams != n)
        BUG("the derivative of `%s` takes %u values, its call has %u", rule->op->name, fn->nparams,
            n);
    Subst s = {.call = call};
    for (uint32_t i = 0; i < n; i++)
        map_set(&s.vars, fn->params[i], args[i]);
    return expr_substitute(&s, fn->body);
}

bool rule_gives_tuple(Expr *value) {
    while (value->kind == EXPR_LET)
        value = value->body;
    Type *t = type_resolve(value->type);
    return value->kind == EXPR_TUPLE || (t->tag == TY_TUPLE && t->nargs > 0);
}

static Expr *accumulate(Twin *t, const Build *b, Expr *into, Expr *ct) {
    Expr **add = mem_new_n(Expr *, 3);
    add[0] = t->tape;
    add[1] = into;
    add[2] = ct;
    return b_call(b, grad_accumulate(t->ctx), add, 3, 0);
}

/* Adds the rule's cotangents into the arguments' cells. */
static Expr *backward(Twin *t, const Build *b, Expr *rule_value, Expr **args, const bool *inactive,
                      uint32_t n) {
    Block block = {.b = b};
    Expr *value = rule_value;
    for (; value->kind == EXPR_LET; value = value->body)
        block_bind(&block, value, value->a);
    bool parts = value->kind == EXPR_TUPLE && value->nargs == n && n > 0;
    bool tuple = n > 1 || rule_gives_tuple(value);
    if (!parts)
        value = block_let(&block, "cts", value);
    for (uint32_t i = 0; i < n; i++) {
        Expr *ct = parts ? value->args[i] : tuple ? b_proj(b, value, i) : value;
        if (inactive[i] || expr_is_unit(ct))
            continue;
        Expr *active = b_builtin(b, "ad.is_active", t->tape, args[i], NULL);
        block_do(&block, b_if(b, active, accumulate(t, b, args[i], ct), b_unit(b)));
    }
    return block_end(&block, b_unit(b));
}

bool rule_is_zero(const Rule *rule) {
    Expr *value = rule->fn->fn->body;
    while (value->kind == EXPR_LET)
        value = value->body;
    if (expr_is_unit(value))
        return true;
    if (value->kind != EXPR_TUPLE)
        return false;
    for (uint32_t i = 0; i < value->nargs; i++)
        if (!expr_is_unit(value->args[i]))
            return false;
    return true;
}

bool rule_ignores(const Rule *rule, uint32_t i) {
    const Expr *value = rule->fn->fn->body;
    while (value->kind == EXPR_LET)
        value = value->body;
    const Type *t = type_resolve(value->type);
    return t->tag == TY_TUPLE && i < t->nargs && type_is_unit(t->args[i]);
}

static Expr *refuse(Twin *t, const Build *b, const Op *op, Expr **args, uint32_t n) {
    Expr *name = expr_new(EXPR_STRING, type_string(), b->span);
    name->text = op->name;
    name->text_len = strlen(op->name);
    Expr **check = mem_new_n(Expr *, n + 2);
    check[0] = t->tape;
    check[1] = name;
    for (uint32_t i = 0; i < n; i++)
        check[i + 2] = args[i];
    return b_builtin_n(b, "ad.refuse", check, n + 2);
}

/* Puts the way back of a step before those that stand on the tape: `flow`, where its result r has a cotangent. */
static void record(Twin *t, const Build *b, Block *active, const char *name, Expr *r, Expr *flow) {
    Expr *before = block_let(active, "before", b_read(b, b_builtin(b, "ad.chain", t->tape, NULL)));
    Block body = {.b = b};
    block_do(&body, b_if(b, b_builtin(b, "ad.has_cotangent", t->tape, r, NULL), flow, b_unit(b)));
    Expr *propagate = b_fn(b, name, NULL, 0, block_end(&body, b_call(b, before, NULL, 0, 0)));
    block_do(active, b_write(b, b_builtin(b, "ad.chain", t->tape, NULL), propagate));
}

Expr *block_own(Block *block, Expr *x) {
    Expr *name = block_atom(block, "x", x);
    if (name != x && type_resolve(x->type)->tag == TY_FN)
        name->type = name->var->type = b_some_type("f");
    return name;
}

/* let c = ad.own_captured(D, ad.own(f)); if ad.is_active(D, c.2) { … }; c.0: a function that captured cells of its own. */
static Expr *own_function(Twin *t, const Build *b, Expr *f) {
    Block block = {.b = b}, active = {.b = b}, back = {.b = b};
    Expr *own = b_builtin(b, "ad.own", f, NULL);
    Expr *c = block_let(&block, "c", b_builtin(b, "ad.own_captured", t->tape, own, NULL));
    Expr *made = block_let(&block, "made", expr_proj(c, 2, b_some_type("made"), b->span));
    Expr *before = expr_proj(c, 1, b_some_type("before"), b->span);
    Expr *cts = block_let(&back, "cts", b_builtin(b, "ad.added", t->tape, made, NULL));
    record(t, b, &active, "own", made, block_end(&back, accumulate(t, b, before, cts)));
    Expr *is_active = b_builtin(b, "ad.is_active", t->tape, made, NULL);
    block_do(&block, b_if(b, is_active, block_end(&active, b_unit(b)), b_unit(b)));
    return block_end(&block, expr_proj(c, 0, f->type, b->span));
}

/* if ad.is_dual(D, x) { let r = ad.lift(D, ad.own(ad.primal(D, x))); …; r } else { ad.own(x) } */
Expr *grad_own(Twin *t, const Expr *call, Expr *x) {
    Build b = {call->span};
    Block block = {.b = &b}, active = {.b = &b}, back = {.b = &b};
    TypeTag tag = type_resolve(x->type)->tag;
    x = block_own(&block, x);
    if (tag == TY_FN)
        return block_end(&block, own_function(t, &b, x));
    Expr *other = tag == TY_TENSOR ? b_builtin(&b, "ad.own", x, NULL) : own_function(t, &b, x);
    Expr *v = b_builtin(&b, "ad.own", b_builtin(&b, "ad.primal", t->tape, x, NULL), NULL);
    Expr *r = block_let(&active, "r", b_builtin(&b, "ad.lift", t->tape, v, NULL));
    Expr *ct = block_let(&back, "ct", b_builtin(&b, "ad.cotangent", t->tape, r, NULL));
    record(t, &b, &active, "own", r, block_end(&back, accumulate(t, &b, x, ct)));
    return block_end(&block, b_if(&b, b_builtin(&b, "ad.is_dual", t->tape, x, NULL),
                                  block_end(&active, r), other));
}

Expr *grad_op_call(Twin *t, Expr *call, Expr **args) {
    Build b = {call->span};
    Block block = {.b = &b};
    uint32_t n = call->nargs;
    const Op *op = call->a->op;
    bool *inactive = mem_new_n(bool, n ? n : 1);
    bool all_inactive = true;
    for (uint32_t i = 0; i < n; i++) {
        inactive[i] = is_inactive(call->args[i], args[i]);
        all_inactive &= inactive[i];
    }
    Expr *plain = expr_copy(call);
    plain->args = args;
    if (all_inactive)
        return plain;

    /* evaluate each operand once, then apply the operator to their primals */
    Expr **primals = mem_new_n(Expr *, n + 2); /* and out, ct for the rule */
    for (uint32_t i = 0; i < n; i++) {
        args[i] = block_atom(&block, "x", args[i]);
        primals[i] = inactive[i] ? args[i]
                                 : block_let(&block, "p",
                                             b_builtin(&b, "ad.primal", t->tape, args[i], NULL));
        b_stands_for(primals[i], call, i);
    }
    plain->args = mem_new_n(Expr *, n);
    for (uint32_t i = 0; i < n; i++)
        plain->args[i] = primals[i];

    const Rule *rule = env_find_rule(t->ctx->env, op, RULE_DERIVATIVE);
    if (!type_may_hold_float(call->type) || (rule && rule_is_zero(rule)))
        return block_end(&block, plain);
    if (!rule) {
        block_do(&block, refuse(t, &b, op, args, n));
        return block_end(&block, plain);
    }

    Expr *v = block_let(&block, "v", plain);
    Block active = {.b = &b};
    Expr *r = block_let(&active, "r", b_builtin(&b, "ad.lift", t->tape, v, NULL));
    Block back = {.b = &b};
    primals[n] = v;
    primals[n + 1] = block_let(&back, "ct", b_builtin(&b, "ad.cotangent", t->tape, r, NULL));
    Expr *rule_value = rule_expand(rule, call, primals, n + 2);
    Expr *flow = block_end(&back, backward(t, &b, rule_value, args, inactive, n));
    record(t, &b, &active, op->name, r, flow);

    Expr **watched = mem_new_n(Expr *, n + 1);
    watched[0] = t->tape;
    uint32_t nwatched = 1;
    for (uint32_t i = 0; i < n; i++)
        if (!inactive[i])
            watched[nwatched++] = args[i];
    Expr *is_active = b_builtin_n(&b, "ad.is_active", watched, nwatched);
    return block_end(&block, b_if(&b, is_active, block_end(&active, r), v));
}
