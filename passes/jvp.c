/* SPDX-License-Identifier: Apache-2.0 */
/* Forward mode by twins: what becomes of an operator call. Most programs do not come here: passes/reverse/tangent.c.
 *
 *   op(a, b)   becomes   let v = op(ad.primal(L, a), ad.primal(L, b));
 *                        if ad.is_active(L, a, b) { ad.pair(L, v, <tangent>) } else { v }
 *
 * The tangent is the operator's `tangent` rule; where it has none, it comes from the derivative. A
 * derivative rule is linear in the cotangent: h(ct) = Jᵀ ct, so J t is the derivative of ⟨h(ct), t⟩
 * with respect to ct, at any ct: vjp(h)(0, t). (J. Bradbury et al. call this the double-vjp trick;
 * the rule is transposed by transforming it, not by running anything twice.) An inactive argument
 * has the tangent (): with zeros, x ** 3 at a negative x would give 0 * log(x). Likewise a result has none where only
 * arguments are active for which the rule gives (). */
#include <string.h>

#include "passes/grad_internal.h"
#include "passes/subst.h"

static Expr *tangent_of(Twin *t, const Build *b, Expr *arg) {
    return b_builtin(b, "ad.tangent", t->tape, arg, NULL);
}

/* Note [Shared tangents]. A tangent that is made of the derivative is a function by itself, and all calls of the operator
 * with the same attributes and forms of arguments call one: code for its `vjp` is made once, not for each of them. */
typedef struct Tangent {
    const Attrs *attrs; /* of these calls, and how many arguments they have */
    uint32_t nargs;
    const Expr *rule; /* of the operator, when the function was made */
    const Fn *fn;
    Expr *
        callee; /* a definition of it; NULL: its types are not open enough, and each call has one of its own */
    struct Tangent *next;
} Tangent;

/* Whether it is a tensor of known dtype, and which. */
static bool is_of_dtype(Type *t, DType *dtype) {
    return t->tag == TY_TENSOR && type_get_dtype(t, dtype);
}

/* Whether code for arguments of the one type serves those of the other: they have one dtype, and both are scalars or
 * neither is. */
static bool has_form(Type *a, Type *b) {
    DType s, t;
    a = type_resolve(a);
    b = type_resolve(b);
    if (a->tag == TY_TUPLE || b->tag == TY_TUPLE) {
        bool same = a->tag == b->tag && a->nargs == b->nargs;
        for (uint32_t i = 0; same && i < a->nargs; i++)
            same = has_form(a->args[i], b->args[i]);
        return same;
    }
    bool known = is_of_dtype(a, &s);
    return known == is_of_dtype(b, &t) &&
           (!known || (s == t && type_has_rank0(a) == type_has_rank0(b)));
}

/* A type of all arguments that have the form of one. */
static Type *type_of_form(Type *t) {
    DType dtype;
    t = type_resolve(t);
    if (is_of_dtype(t, &dtype) && type_has_rank0(t))
        return type_scalar(dtype);
    if (is_of_dtype(t, &dtype))
        return type_tensor(type_param(sym_intern("s"), KIND_SHAPE), type_dtype(dtype));
    if (t->tag != TY_TUPLE)
        return b_some_type("x");
    Type **parts = mem_new_n(Type *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        parts[i] = type_of_form(t->args[i]);
    return type_tuple(parts, t->nargs);
}

/* Whether the value of a rule of n arguments is a tuple of their cotangents. */
static bool gives_tuple(const Rule *rule, uint32_t n) {
    return n > 1 || rule_gives_tuple(rule->fn->fn->body);
}

static bool reads_tangent(const Rule *rule, uint32_t n, uint32_t i) {
    return !gives_tuple(rule, n) || !rule_ignores(rule, i);
}

/* Whether the cotangent that the rule gives has a type of all values of x's form. A rule that chooses by attributes has
 * that of its choices together, which says too much: each choice of `nn.matmul` has other sizes. */
static bool has_open_type(const Expr *linear, bool tuple, uint32_t i, const Var *x) {
    uint32_t rank;
    Type **dims, *ct = type_resolve(linear->type), *of = type_resolve(x->type);
    if (tuple)
        ct = ct->tag == TY_TUPLE && i < ct->nargs ? type_resolve(ct->args[i]) : NULL;
    return !ct || ct->tag != TY_TENSOR || of->tag != TY_TENSOR || type_get_rank(of, &rank, &dims) ||
           !type_get_rank(ct, &rank, &dims);
}

/* fn (x1, …, v, t1, …) { vjp(fn (ct) { rule })(zeros_like(v), (t1, …)).1.0 }, with () for a tangent that is not there,
 * and without those of arguments that the rule ignores. open: for all arguments of these forms; *open: whether the types of
 * the rule are, too. NULL: for these arguments. */
static Expr *tangent_function(const Rule *rule, const Expr *call, bool *open) {
    Build b = {span_none()};
    uint32_t n = call->nargs, nparams = 0;
    Var **params = mem_new_n(Var *, 2 * n + 1);
    Expr **all = mem_new_n(Expr *, n + 2), **tangents = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        params[nparams] = b_var(&b, "x",
                                open ? type_of_form(call->args[i]->type) : call->args[i]->type);
        all[i] = b_ref(&b, params[nparams++]);
    }
    params[nparams] = b_var(&b, "v", open ? type_of_form(call->type) : call->type);
    Expr *v = all[n] = b_ref(&b, params[nparams++]);
    Var *ct = b_var(&b, "ct", type_deriv(v->type));
    all[n + 1] = b_ref(&b, ct);
    Expr *linear = rule_expand(rule, call, all, n + 2);
    for (uint32_t i = 0; i < n; i++) {
        tangents[i] = b_unit(&b);
        if (!reads_tangent(rule, n, i))
            continue;
        if (open)
            *open &= has_open_type(linear, gives_tuple(rule, n), i, params[i]);
        params[nparams] = b_var(&b, "t", b_some_type("t"));
        tangents[i] = b_ref(&b, params[nparams++]);
    }
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = b_builtin(&b, "ad.zeros", v, NULL);
    args[1] = gives_tuple(rule, n) ? b_tuple(&b, tangents, n) : tangents[0];
    Expr *both = b_call(&b, b_vjp(&b, b_fn(&b, "transpose", &ct, 1, linear)), args, 2, 0);
    return b_fn(&b, "ad.tangent", params, nparams, b_proj(&b, b_proj(&b, both, 1), 0));
}

static bool serves(const Tangent *made, const Rule *rule, const Expr *call) {
    Var *const *params = made->fn->params;
    bool same = made->rule == rule->fn && made->nargs == call->nargs &&
                attrs_equal_values(made->attrs, call->attrs) &&
                has_form(params[call->nargs]->type, call->type);
    for (uint32_t i = 0; same && i < call->nargs; i++)
        same = has_form(params[i]->type, call->args[i]->type);
    return same;
}

static Expr *definition_of(PassCtx *ctx, Expr *fn) {
    pass_check(ctx, fn, NULL, "the tangent of an operator");
    Global *g = mem_new(Global);
    g->kind = GLOBAL_DEF;
    g->name = fn->fn->name;
    g->internal = g->is_made = true;
    g->value = fn;
    return expr_global(g, fn->type, fn->span);
}

static Expr *get_tangent(PassCtx *ctx, const Rule *rule, const Expr *call) {
    Map *tangents = &grad_state(ctx)->tangents;
    if (call->nsizes || attrs_have_sizes(call->attrs))
        return tangent_function(rule, call, NULL); /* sizes are known where the call stands */
    Tangent *first = map_find(tangents, call->a->op), *made = first;
    while (made && !serves(made, rule, call))
        made = made->next;
    if (!made) {
        bool open = true;
        Expr *fn = tangent_function(rule, call, &open);
        made = mem_new(Tangent);
        *made = (Tangent){.attrs = call->attrs,
                          .nargs = call->nargs,
                          .rule = rule->fn,
                          .fn = fn->fn,
                          .callee = open ? definition_of(ctx, fn) : NULL,
                          .next = first};
        map_set(tangents, call->a->op, made);
    }
    return made->callee ? made->callee : tangent_function(rule, call, NULL);
}

static Expr *transposed(Twin *t, const Build *b, const Rule *rule, const Expr *call, Expr **primals,
                        Expr **args, Expr *v) {
    uint32_t n = call->nargs, count = n;
    Expr **all = mem_new_n(Expr *, 2 * n + 1);
    memcpy(all, primals, n * sizeof *all);
    all[count++] = v;
    for (uint32_t i = 0; i < n; i++) {
        if (!reads_tangent(rule, n, i))
            continue;
        Expr *tangent = tangent_of(t, b, args[i]);
        all[count++] = b_if(b, b_builtin(b, "ad.is_active", t->tape, args[i], NULL), tangent,
                            b_absent(b, tangent->type));
    }
    Expr *dv = b_call(b, get_tangent(t->ctx, rule, call), all, count, t->drop);
    dv->type = type_deriv(call->type);
    return dv;
}

/* if ad.is_dual(L, x) { ad.pair(L, ad.own(ad.primal(L, x)), ad.tangent(L, x)) } else { ad.own(x) } */
Expr *jvp_own(Twin *t, const Expr *call, Expr *x) {
    Build b = {call->span};
    Block block = {.b = &b};
    x = block_own(&block, x);
    Expr *v = b_builtin(&b, "ad.own", b_builtin(&b, "ad.primal", t->tape, x, NULL), NULL);
    Expr *pair = b_builtin(&b, "ad.pair", t->tape, v, tangent_of(t, &b, x), NULL);
    return block_end(&block, b_if(&b, b_builtin(&b, "ad.is_dual", t->tape, x, NULL), pair,
                                  b_builtin(&b, "ad.own", x, NULL)));
}

Expr *jvp_op_call(Twin *t, Expr *call, Expr **args) {
    Build b = {call->span};
    Block block = {.b = &b};
    uint32_t n = call->nargs;
    const Op *op = call->a->op;
    Expr **primals = mem_new_n(Expr *, n + 2);
    Expr *plain = expr_copy(call);
    plain->args = primals;
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        bool active = args[i]->kind != EXPR_LIT && args[i]->kind != EXPR_CONST &&
                      type_may_hold_float(call->args[i]->type);
        any |= active;
        args[i] = block_atom(&block, "x", args[i]);
        primals[i] = active ? block_let(&block, "p",
                                        b_builtin(&b, "ad.primal", t->tape, args[i], NULL))
                            : args[i];
        b_stands_for(primals[i], call, i);
    }
    if (!any || !type_may_hold_float(call->type))
        return block_end(&block, plain);

    const Rule *tangent = env_find_rule(t->ctx->env, op, RULE_TANGENT);
    const Rule *derivative = env_find_rule(t->ctx->env, op, RULE_DERIVATIVE);
    if (!tangent && !derivative) {
        Expr **check = mem_new_n(Expr *, n + 2);
        check[0] = t->tape;
        check[1] = expr_new(EXPR_STRING, type_string(), b.span);
        check[1]->text = op->name;
        check[1]->text_len = strlen(op->name);
        memcpy(check + 2, args, n * sizeof *check);
        block_do(&block, b_builtin_n(&b, "ad.refuse", check, n + 2));
        return block_end(&block, plain);
    }
    if (!tangent && rule_is_zero(derivative))
        return block_end(&block, plain);

    Expr *v = block_let(&block, "v", plain);
    Expr *dv;
    if (tangent) {
        Expr **all = mem_new_n(Expr *, 2 * n + 1);
        Block lets = {.b = &b};
        memcpy(all, primals, n * sizeof *all);
        all[n] = v;
        for (uint32_t i = 0; i < n; i++)
            all[n + 1 + i] = block_let(&lets, "dx", tangent_of(t, &b, args[i]));
        dv = block_end(&lets, rule_expand(tangent, call, all, 2 * n + 1));
    } else {
        dv = transposed(t, &b, derivative, call, primals, args, v);
    }
    Expr **watched = mem_new_n(Expr *, n + 1);
    uint32_t nwatched = 0;
    watched[nwatched++] = t->tape;
    for (uint32_t i = 0; i < n; i++)
        if (tangent || !rule_ignores(derivative, i))
            watched[nwatched++] = args[i];
    Expr *is_active = b_builtin_n(&b, "ad.is_active", watched, nwatched);
    return block_end(&block,
                     b_if(&b, is_active, b_builtin(&b, "ad.pair", t->tape, v, dv, NULL), v));
}
