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

/* vjp(fn (ct) { rule })(zeros_like(v), (t1, …)).1.0 */
static Expr *transposed(Twin *t, const Build *b, const Rule *rule, Expr *call, Expr **primals,
                        Expr **args, uint32_t n, Expr *v) {
    Var *ct = b_var(b, "ct", type_deriv(call->type));
    Expr **all = mem_new_n(Expr *, n + 2);
    memcpy(all, primals, n * sizeof *all);
    all[n] = v;
    all[n + 1] = b_ref(b, ct);
    Expr *linear = rule_expand(rule, call, all, n + 2);
    bool tuple = n > 1 || rule_gives_tuple(linear);
    Expr *h = b_fn(b, "transpose", &ct, 1, linear);
    Expr *vjp = b_vjp(b, h);
    Expr **tangents = mem_new_n(Expr *, n ? n : 1);
    for (uint32_t i = 0; i < n; i++) {
        if (tuple && rule_ignores(rule, i)) {
            tangents[i] = b_unit(b);
            continue;
        }
        Expr *tangent = tangent_of(t, b, args[i]);
        tangents[i] = b_if(b, b_builtin(b, "ad.is_active", t->tape, args[i], NULL), tangent,
                           b_absent(b, tangent->type));
    }
    Expr **call_args = mem_new_n(Expr *, 2);
    call_args[0] = b_builtin(b, "ad.zeros", v, NULL);
    call_args[1] = tuple ? b_tuple(b, tangents, n) : tangents[0];
    Expr *both = b_call(b, vjp, call_args, 2, t->drop);
    return b_proj(b, b_proj(b, both, 1), 0);
}

/* if ad.is_dual(L, x) { ad.pair(L, ad.own(ad.primal(L, x)), ad.tangent(L, x)) } else { ad.own(x) } */
Expr *jvp_own(Twin *t, const Expr *call, Expr *x) {
    Build b = {call->span};
    Block block = {.b = &b};
    x = block_atom(&block, "x", x);
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
    bool has_rule = (tangent && tangent->fn) || (derivative && derivative->fn);
    if (!has_rule) {
        Expr **check = mem_new_n(Expr *, n + 2);
        check[0] = t->tape;
        check[1] = expr_new(EXPR_STRING, type_string(), b.span);
        check[1]->text = op->name;
        check[1]->text_len = strlen(op->name);
        memcpy(check + 2, args, n * sizeof *check);
        block_do(&block, b_builtin_n(&b, "ad.refuse", check, n + 2));
        return block_end(&block, plain);
    }
    if (!(tangent && tangent->fn) && rule_is_zero(derivative))
        return block_end(&block, plain);

    Expr *v = block_let(&block, "v", plain);
    Expr *dv;
    if (tangent && tangent->fn) {
        Expr **all = mem_new_n(Expr *, 2 * n + 1);
        Block lets = {.b = &b};
        memcpy(all, primals, n * sizeof *all);
        all[n] = v;
        for (uint32_t i = 0; i < n; i++)
            all[n + 1 + i] = block_let(&lets, "dx", tangent_of(t, &b, args[i]));
        dv = block_end(&lets, rule_expand(tangent, call, all, 2 * n + 1));
    } else {
        dv = transposed(t, &b, derivative, call, primals, args, n, v);
    }
    Expr **watched = mem_new_n(Expr *, n + 1);
    uint32_t nwatched = 0;
    watched[nwatched++] = t->tape;
    for (uint32_t i = 0; i < n; i++)
        if ((tangent && tangent->fn) || !rule_ignores(derivative, i))
            watched[nwatched++] = args[i];
    Expr *is_active = b_builtin_n(&b, "ad.is_active", watched, nwatched);
    return block_end(&block,
                     b_if(&b, is_active, b_builtin(&b, "ad.pair", t->tape, v, dv, NULL), v));
}
