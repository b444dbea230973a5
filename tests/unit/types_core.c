/* SPDX-License-Identifier: Apache-2.0 */
/* Core expressions: free variables, rebuilding, their text. */
#include "tests/unit/check.h"
#include "types/core/core.h"
#include "types/op.h"

static Type *f32(void) { return type_scalar(DT_F32); }

static Var *new_var(const char *name) { return var_new(sym_intern(name), f32(), span_none()); }

static Expr *use(Var *v) { return expr_var(v, span_none()); }

static Expr *call2(const Op *op, Expr *a, Expr *b) {
    Expr *args[] = {a, b};
    return expr_call_op(op, args, 2, NULL, f32(), span_none());
}

static Expr *call1(const Op *op, Expr *a) {
    return expr_call_op(op, &a, 1, NULL, f32(), span_none());
}

static Expr *number(double d) { return expr_float(d, DT_F32, span_none()); }

static Expr *function(Var *param, Expr *body) {
    return expr_fn(&param, 1, body, type_error(), span_none());
}

static const char *text(Expr *e) {
    Str out = {0};
    expr_print(&out, e, NULL);
    return str_text(&out);
}

TEST(the_thesis_form) {
    Var *d = new_var("d");
    Expr *ones = call1(&op_ones_like, use(d)), *inner = expr_tuple(&ones, 1, span_none());
    Expr *both[] = {use(d), inner};
    CHECK_TEXT(text(function(d, expr_tuple(both, 2, span_none()))),
               "fn (d) { (d, (ones_like(d),)) }");
}

TEST(parentheses_are_few) {
    Expr *x = use(new_var("x")), *y = use(new_var("y"));
    CHECK_TEXT(text(call2(&op_multiply, call2(&op_add, x, y), x)), "(x + y) * x");
    CHECK_TEXT(text(call2(&op_add, call2(&op_add, x, y), x)), "x + y + x");
    CHECK_TEXT(text(call2(&op_add, x, call2(&op_add, y, x))), "x + (y + x)");
    CHECK_TEXT(text(call1(&op_negative, call2(&op_power, x, call1(&op_negative, y)))), "-x ** -y");
    CHECK_TEXT(text(call2(&op_power, call1(&op_negative, x), y)), "(-x) ** y");
    CHECK_TEXT(text(call2(&op_power, number(-2), y)), "(-2.0) ** y");
    CHECK_TEXT(text(call2(&op_multiply, number(-2), y)), "-2.0 * y");
    Expr *g = expr_new(EXPR_GRAD, type_error(), span_none());
    g->a = x;
    CHECK_TEXT(text(expr_call(g, &y, 1, NULL, f32(), span_none())), "grad(x)(y)");
}

TEST(names_are_unique) {
    Var *x = new_var("x"), *inner = new_var("x"), *hidden = new_var("_");
    Expr *e = function(x, expr_let(inner, call2(&op_add, use(x), number(1)),
                                   call2(&op_multiply, use(inner), use(x))));
    CHECK_TEXT(text(e), "fn (x) {\n  let x_1 = x + 1.0;\n  x_1 * x\n}");
    e = expr_let(hidden, call1(&op_ones_like, use(x)), use(hidden));
    CHECK_TEXT(text(e), "let t = ones_like(x);\nt");
    Var *shadow = new_var("ones_like");
    CHECK_TEXT(text(function(shadow, call1(&op_ones_like, use(shadow)))),
               "fn (ones_like_1) { ones_like(ones_like_1) }");
}

TEST(free_variables) {
    Var *x = new_var("x"), *y = new_var("y"), *z = new_var("z");
    Expr *e = function(x, expr_let(z, call2(&op_add, use(y), use(x)), use(z)));
    VarVec free = {0};
    expr_free_vars(e, &free);
    CHECK_INT(free.len, 1);
    CHECK(free.data[0] == y);
    Expr *chain = use(y);
    for (int i = 0; i < 200000; i++)
        chain = expr_let(new_var("t"), use(x), chain);
    vec_clear(&free);
    expr_free_vars(chain, &free);
    CHECK_INT(free.len, 2);
}

static Expr *replace(void *ctx, Expr *child) {
    Expr **pair = ctx;
    return child->kind == EXPR_VAR && child->var == pair[0]->var ? pair[1] : child;
}

TEST(unchanged_nodes_stay) {
    Var *x = new_var("x"), *y = new_var("y");
    Expr *e = call2(&op_add, use(x), number(1)), *pair[] = {use(y), number(2)};
    CHECK(expr_map_children(e, replace, pair) == e);
    pair[0] = use(x);
    CHECK_TEXT(text(expr_map_children(e, replace, pair)), "2.0 + 1.0");
    CHECK_TEXT(text(e), "x + 1.0");
}

int main(void) {
    RUN(the_thesis_form);
    RUN(parentheses_are_few);
    RUN(names_are_unique);
    RUN(free_variables);
    RUN(unchanged_nodes_stay);
    return check_result();
}
