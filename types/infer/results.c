/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of results that something else asked for. Where a type was expected of a call before its
 * arguments were known, and they turn out to have unknown sizes, the relation takes the expected sizes
 * for the result's: nobody compares them but the check made here.
 *
 *     foldl(plus, [0.0], xs)    xs : List[Tensor[(?,), float32]], so plus gives a Tensor[(1,), float32]
 *     foldl(fn (a, x) { let result = plus(a, x); <axis 0 of result is 1> result }, [0.0], xs)
 */
#include <string.h>

#include "types/infer/state.h"

typedef struct Asked {
    Infer *I;
    Expr *const *args; /* variables from which sizes may be read */
    uint32_t nargs;
    Span span;
    const char *what;
    bool ranks; /* not even the rank is known */
    VEC(Check) list;
} Asked;

/* Adds a check for each size of the result's type that can be computed. */
static void ask(Asked *a, Expr *at, Type *type, int depth) {
    Type *t = type_resolve(type);
    for (uint32_t i = 0; t->tag == TY_TUPLE && i < t->nargs && depth; i++)
        ask(a, expr_proj(at, i, t->args[i], at->span), t->args[i], depth - 1);
    uint32_t rank;
    Type **dims;
    if (t->tag != TY_TENSOR)
        return;
    Pending at_call = {.kind = PENDING_FLOW, .span = a->span};
    if (!type_get_rank(t, &rank, &dims)) {
        Expr *like = a->ranks ? supply_shape(a->I, &at_call, t->tensor.shape, a->args, a->nargs)
                              : NULL;
        if (like)
            vec_push(&a->list, ((Check){CHECK_SHAPE, at, like, a->what, a->span}));
        return;
    }
    if (a->ranks) {
        Expr *expected = expr_int(rank, DT_I64, at->span);
        vec_push(&a->list, ((Check){CHECK_RANK, at, expected, a->what, a->span}));
    }
    for (uint32_t k = 0; k < rank; k++) {
        Expr *expected = supply_dim(a->I, &at_call, dims[k], a->args, a->nargs);
        if (!expected)
            continue;
        Expr *found = expr_new(EXPR_DIM_OF, type_scalar(DT_I64), at->span);
        found->a = at;
        found->index = (int32_t)k;
        Check check = {CHECK_SIZE, found, expected, fmt_text("axis %u of %s", k, a->what), a->span};
        vec_push(&a->list, check);
    }
}

/* Turns value into let result = value; <checks> result. */
static Expr *checked(Asked *a, Expr *value) {
    Var *v = var_new(sym_intern("result"), value->type, value->span);
    ask(a, expr_var(v, value->span), value->type, 4);
    if (!a->list.len)
        return value;
    Expr *check = expr_new(EXPR_CHECK, value->type, value->span);
    check->a = expr_var(v, value->span);
    check->checks = a->list.data;
    check->nchecks = (uint32_t)a->list.len;
    return expr_let(v, value, check);
}

/* Turns f into fn (x1, …, xn) { let result = f(x1, …, xn); <checks> result }. */
static Expr *checked_function(Asked *a, Expr *f) {
    Type *t = type_resolve(f->type);
    Var **params = mem_new_n(Var *, t->nargs + 1);
    Expr **args = mem_new_n(Expr *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++) {
        params[i] = var_new(sym_intern("arg"), t->args[i], f->span);
        args[i] = expr_var(params[i], f->span);
    }
    a->args = args;
    a->nargs = t->nargs;
    Expr *call = expr_call(expr_copy(f), args, t->nargs, f->kind == EXPR_OP ? f->attrs : NULL,
                           t->fn.result, f->span);
    Expr *body = checked(a, call);
    return body == call ? f : expr_fn(params, t->nargs, body, f->type, f->span);
}

void settle_results(Infer *I) {
    for (size_t i = 0; i < solver_nresiduals(I->s); i++) {
        const Residual *r = solver_residual_at(I->s, i);
        Expr *e = r->of_result;
        if (!e || map_has(&I->checked_results, e))
            continue;
        map_set(&I->checked_results, e, e);
        Asked a = {.I = I, .span = e->span, .what = r->what, .ranks = r->a->kind == KIND_SHAPE};
        if (strncmp(a.what, "axis ", 5) == 0) {
            const char *of = strstr(a.what, " of ");
            a.what = of ? of + 4 : a.what;
        }
        Expr *now = type_resolve(e->type)->tag == TY_FN ? checked_function(&a, e)
                                                        : checked(&a, expr_copy(e));
        if (a.list.len)
            *e = *now;
    }
}
