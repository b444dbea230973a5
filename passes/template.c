/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that start a derivative, as ordinary Relay. For n parameters:
 *
 *   grad  fn (f) { fn (x1, …, xn) {
 *           let D = ad.tape(fn () { () });
 *           let l1 = ad.lift(D, x1); …
 *           let y = f(D, l1, …, ln);                       // f's reverse twin
 *           ad.check_result(D, y);
 *           ad.accumulate(D, y, ad.ones(ad.primal(D, y)));
 *           (!ad.chain(D))();
 *           let result = (ad.strip(D, y), (ad.cotangent(D, l1), …));
 *           ad.end(D);  result } }
 *   deriv fn (f) { fn (x1, …) { grad(f)(x1, …).1 } }, or .1.0 of one parameter
 *   vjp   the same with a last parameter c: any result, seeded with c
 *   jvp   fn (f) { fn (x1, …, xn, t1, …, tn) {
 *           let L = ad.level();
 *           let y = f(L, ad.pair(L, x1, t1), …);           // f's forward twin
 *           (ad.strip(L, y), ad.tangent(L, y)) } }
 *
 * An enclosing derivative transforms them as it transforms everything. */
#include "passes/grad_internal.h"
#include "passes/vmap.h"

GradState *grad_state(PassCtx *ctx) {
    if (!ctx->grad)
        ctx->grad = mem_new(GradState);
    return ctx->grad;
}

static Expr *call3(const Build *b, Expr *f, Expr *x, Expr *y, Expr *z) {
    Expr **args = mem_new_n(Expr *, 3);
    args[0] = x;
    args[1] = y;
    args[2] = z;
    return b_call(b, f, args, 3, 0);
}

/* fn (D, x, ct) {
 *   if ad.is_zero(ct) { () }
 *   else if ad.is_dual(D, x) {
 *     let c = ad.cell(x);  let old = !c;
 *     c := if ad.is_zero(old) { ct } else { old + ct } }
 *   else { items(D, x, ct, 0) }                       // of a tuple or data
 * } */
static Expr *accumulate_global(const Build *b) {
    Global *acc = mem_new(Global);
    acc->kind = GLOBAL_DEF;
    acc->name = sym_intern("ad.accumulate");
    acc->internal = true;
    Global *items = mem_new(Global);
    items->kind = GLOBAL_DEF;
    items->name = sym_intern("ad.accumulate_items");
    items->internal = true;

    Type *some = b_some_type("a");
    Var *d = b_var(b, "D", type_tape()), *x = b_var(b, "x", some);
    Var *ct = b_var(b, "ct", type_deriv(some)), *i = b_var(b, "i", type_scalar(DT_I32));
    Var *params[] = {d, x, ct, i};
    Type *of_acc = b_fn_type(params, 3, type_unit()), *of_items = b_fn_type(params, 4, type_unit());
    Expr *rd = b_ref(b, d), *rx = b_ref(b, x), *rct = b_ref(b, ct), *ri = b_ref(b, i);

    Block cell = {.b = b};
    Expr *c = block_let(&cell, "c", b_builtin(b, "ad.cell", rx, NULL));
    Expr *old = block_let(&cell, "old", b_read(b, c));
    Expr *operands[] = {old, rct};
    Expr **sum = mem_new_n(Expr *, 2);
    sum[0] = operands[0];
    sum[1] = operands[1];
    Expr *total = b_if(b, b_builtin(b, "ad.is_zero", old, NULL), rct,
                       b_op(b, &op_add, sum, 2, rct->type));
    Expr *into_cell = block_end(&cell, b_write(b, c, total));

    Expr **all = mem_new_n(Expr *, 4);
    all[0] = rd;
    all[1] = rx;
    all[2] = rct;
    all[3] = expr_int(0, DT_I32, b->span);
    Expr *into_items = b_call(b, expr_global(items, of_items, b->span), all, 4, 0);
    Expr *body = b_if(b, b_builtin(b, "ad.is_dual", rd, rx, NULL), into_cell, into_items);
    body = b_if(b, b_builtin(b, "ad.is_zero", rct, NULL), b_unit(b), body);
    acc->value = b_fn(b, "ad.accumulate", params, 3, body);

    /* items(D, x, ct, i) goes through the fields from i on */
    Block step = {.b = b};
    block_do(&step,
             call3(b, expr_global(acc, of_acc, b->span), rd, b_builtin(b, "ad.item", rx, ri, NULL),
                   b_builtin(b, "ad.item", rct, ri, NULL)));
    Expr **next = mem_new_n(Expr *, 4);
    next[0] = rd;
    next[1] = rx;
    next[2] = rct;
    next[3] = b_builtin(b, "ad.next", ri, NULL);
    Expr *rest = b_call(b, expr_global(items, of_items, b->span), next, 4, 0);
    items->value = b_fn(
        b, "ad.accumulate_items", params, 4,
        b_if(b, b_builtin(b, "ad.has_item", rx, ri, NULL), block_end(&step, rest), b_unit(b)));
    return expr_global(acc, of_acc, b->span);
}

Expr *grad_accumulate(PassCtx *ctx) {
    GradState *state = grad_state(ctx);
    if (!state->accumulate) {
        Build b = {span_none()};
        state->accumulate = accumulate_global(&b);
    }
    return state->accumulate;
}

/* The variable f: a function of x1, …, xn, of any types. */
static Var *function_var(const Build *b, Var **params, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        params[i] = b_var(b, fmt_text("x%u", i + 1), b_some_type("a"));
    return b_var(b, "f", b_fn_type(params, n, b_some_type("y")));
}

static Expr *reverse_template(PassCtx *ctx, const Build *b, uint32_t n, bool seeded) {
    Var **params = mem_new_n(Var *, n + 1);
    Var *f = function_var(b, params, n);
    if (seeded)
        params[n] = b_var(b, "c", type_deriv(f->type->fn.result));

    Block block = {.b = b};
    Expr *nothing = b_fn(b, "start", NULL, 0, b_unit(b));
    Expr *tape = block_let(&block, "D", b_builtin(b, "ad.tape", nothing, NULL));
    Expr **args = mem_new_n(Expr *, n + 1);
    args[0] = tape;
    for (uint32_t i = 0; i < n; i++)
        args[i + 1] = block_let(&block, "l",
                                b_builtin(b, "ad.lift", tape, b_ref(b, params[i]), NULL));
    Expr *run = b_call(b, b_ref(b, f), args, n + 1, 0);
    run->mode = 1 + AD_REVERSE;
    Expr *y = block_let(&block, "y", run);
    Expr *seed;
    if (seeded) {
        seed = b_ref(b, params[n]);
        block_do(&block, b_builtin(b, "ad.check_seed", y, seed, NULL));
    } else {
        block_do(&block, b_builtin(b, "ad.check_result", y, NULL));
        seed = b_builtin(b, "ad.ones", y, NULL);
    }
    block_do(&block, call3(b, grad_accumulate(ctx), tape, y, seed));
    Expr *chain = block_let(&block, "chain", b_read(b, b_builtin(b, "ad.chain", tape, NULL)));
    block_do(&block, b_call(b, chain, NULL, 0, 0));
    Expr **partials = mem_new_n(Expr *, n ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        partials[i] = b_builtin(b, "ad.cotangent", tape, args[i + 1], NULL);
    Expr **both = mem_new_n(Expr *, 2);
    both[0] = b_builtin(b, "ad.strip", tape, y, NULL);
    both[1] = b_tuple(b, partials, n);
    Expr *result = block_let(&block, "result", b_tuple(b, both, 2));
    block_do(&block, b_builtin(b, "ad.end", tape, NULL));
    Expr *body = block_end(&block, result);
    Expr *inner = b_fn(b, seeded ? "vjp" : "grad", params, seeded ? n + 1 : n, body);
    return b_fn(b, seeded ? "vjp" : "grad", &f, 1, inner);
}

static Expr *forward_template(const Build *b, uint32_t n) {
    Var **params = mem_new_n(Var *, 2 * n + 1);
    Var *f = function_var(b, params, n);
    for (uint32_t i = 0; i < n; i++)
        params[n + i] = b_var(b, fmt_text("t%u", i + 1), type_deriv(params[i]->type));
    Block block = {.b = b};
    Expr *level = block_let(&block, "L", b_builtin(b, "ad.level", NULL));
    Expr **args = mem_new_n(Expr *, n + 1);
    args[0] = level;
    for (uint32_t i = 0; i < n; i++)
        args[i + 1] = b_builtin(b, "ad.pair", level, b_ref(b, params[i]), b_ref(b, params[n + i]),
                                NULL);
    Expr *run = b_call(b, b_ref(b, f), args, n + 1, 0);
    run->mode = 1 + AD_FORWARD;
    Expr *y = block_let(&block, "y", run);
    Expr **both = mem_new_n(Expr *, 2);
    both[0] = b_builtin(b, "ad.strip", level, y, NULL);
    both[1] = b_builtin(b, "ad.tangent", level, y, NULL);
    Expr *result = block_let(&block, "result", b_tuple(b, both, 2));
    block_do(&block, b_builtin(b, "ad.end", level, NULL));
    Expr *inner = b_fn(b, "jvp", params, 2 * n, block_end(&block, result));
    return b_fn(b, "jvp", &f, 1, inner);
}

/* fn (f) { fn (x1, …) { grad(f)(x1, …).1 } }; of one parameter, its derivative alone. */
static Expr *deriv_template(const Build *b, uint32_t n) {
    Var **params = mem_new_n(Var *, n + 1);
    Var *f = function_var(b, params, n);
    Expr **args = mem_new_n(Expr *, n + 1);
    Type **cotangents = mem_new_n(Type *, n + 1), *y = f->type->fn.result;
    for (uint32_t i = 0; i < n; i++) {
        args[i] = b_ref(b, params[i]);
        cotangents[i] = type_deriv(params[i]->type);
    }
    Type *both = type_tuple((Type *[]){y, type_tuple(cotangents, n)}, 2);
    Expr *grad = b_grad(b, GRAD_GRAD, b_ref(b, f), b_fn_type(params, n, both));
    Expr *partials = b_proj(b, b_call(b, grad, args, n, 0), 1);
    return b_fn(b, "deriv", &f, 1,
                b_fn(b, "deriv", params, n, n == 1 ? b_proj(b, partials, 0) : partials));
}

Expr *grad_template(PassCtx *ctx, GradKind kind, uint32_t n) {
    GradState *state = grad_state(ctx);
    const void *key = (const void *)(uintptr_t)(n + 1);
    Expr *made = map_find(&state->templates[kind], key);
    if (made)
        return made;
    Build b = {span_none()};
    switch (kind) {
    case GRAD_GRAD: made = reverse_template(ctx, &b, n, false); break;
    case GRAD_VJP: made = reverse_template(ctx, &b, n, true); break;
    case GRAD_JVP: made = forward_template(&b, n); break;
    case GRAD_DERIV: made = deriv_template(&b, n); break;
    case GRAD_CUSTOM: made = custom_template(ctx, &b, n); break;
    case GRAD_CHECKPOINT: made = checkpoint_template(ctx, &b, n); break;
    case GRAD_VMAP: made = vmap_template(ctx, n); break;
    case GRAD_KINDS: BUG("no such kind of derivative");
    }
    pass_check(ctx, made, NULL, grad_kind_name(kind));
    map_set(&state->templates[kind], key, made);
    map_set(&state->kinds, made->fn->body, &state->templates[kind]);
    return made;
}

bool grad_is_template(PassCtx *ctx, const Expr *fn, GradKind *kind) {
    GradState *state = grad_state(ctx);
    const Map *of = map_find(&state->kinds, fn);
    if (of)
        *kind = (GradKind)(of - state->templates);
    return of != NULL;
}
