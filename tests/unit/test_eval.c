/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter on core built by hand: calls, tail calls, closures, recursion and its bound. */
#include "check.h"

#include "eval/code.h"
#include "eval/interp.h"
#include "eval/machine.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static Diags diags;
static Interp *in;

/* The machine looks at no type but those of literals; the core asks that there is one. */
static Type *any_type(void) { return type_scalar(DT_I32); }

static Expr *num(int64_t i) { return expr_int(i, DT_I32, span_none()); }
static Var *var(const char *name) { return var_new(sym_intern(name), any_type(), span_none()); }
static Expr *ref(Var *v) { return expr_var(v, span_none()); }

static Expr *op2(const char *name, Expr *a, Expr *b) {
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = a;
    args[1] = b;
    const Op *op = op_find(sym_intern(name));
    return expr_call_op(op, args, 2, attrs_defaults(op), any_type(), span_none());
}

static Expr *call(Expr *f, int n, Expr *a, Expr *b, Expr *c) {
    Expr **args = mem_new_n(Expr *, 3);
    args[0] = a;
    args[1] = b;
    args[2] = c;
    return expr_call(f, args, (uint32_t)n, NULL, any_type(), span_none());
}

static Expr *fn(int n, Var *a, Var *b, Var *c, Expr *body) {
    Var **params = mem_new_n(Var *, 3);
    params[0] = a;
    params[1] = b;
    params[2] = c;
    return expr_fn(params, (uint32_t)n, body, any_type(), span_none());
}

static Expr *if_(Expr *c, Expr *a, Expr *b) { return expr_if(c, a, b, any_type(), span_none()); }

static Global *def(const char *name) {
    Global *g = mem_new(Global);
    g->kind = GLOBAL_DEF;
    g->name = sym_intern(name);
    return g;
}

static Expr *global(Global *g) { return expr_global(g, any_type(), span_none()); }

static EvalStatus eval(Expr *e, Value *out) {
    diags = (Diags){0};
    return interp_eval(in, e, out);
}

static const char *show(Expr *e) {
    Value v;
    Str s = {0};
    EvalStatus status = eval(e, &v);
    if (status != EVAL_OK)
        return diags.list.len ? fmt_text("%s", diags.list.data[0]->message) : "no diagnostic";
    value_print(&s, v, NULL);
    return str_text(&s);
}

/* def fib(n) { if (n < 2) { n } else { fib(n - 1) + fib(n - 2) } } */
static Global *fib(void) {
    Global *g = def("fib");
    Var *n = var("n");
    Expr *rec1 = call(global(g), 1, op2("subtract", ref(n), num(1)), NULL, NULL);
    Expr *rec2 = call(global(g), 1, op2("subtract", ref(n), num(2)), NULL, NULL);
    g->value = fn(1, n, NULL, NULL,
                  if_(op2("less", ref(n), num(2)), ref(n), op2("add", rec1, rec2)));
    return g;
}

TEST(calls) {
    Global *g = fib();
    CHECK_TEXT(show(call(global(g), 1, num(30), NULL, NULL)), "832040");
}

/* let count = fn (n, acc) { if (n == 0) { acc } else { count(n - 1, acc + 1) } }; count(…, 0) */
TEST(tail_calls) {
    Var *count = var("count"), *n = var("n"), *acc = var("acc");
    Expr *again = call(ref(count), 2, op2("subtract", ref(n), num(1)), op2("add", ref(acc), num(1)),
                       NULL);
    Expr *eq = expr_new(EXPR_EQUAL, any_type(), span_none());
    eq->a = ref(n);
    eq->b = num(0);
    Expr *let = expr_let(count, fn(2, n, acc, NULL, if_(eq, ref(acc), again)),
                         call(ref(count), 2, num(3000000), num(0), NULL));
    let->rec = true;
    CHECK_TEXT(show(let), "3000000");
    CHECK(interp_stats(in)->stack_peak < 1 << 20);
}

/* def deep(n) { if (n < 1) { 0 } else { 1 + deep(n - 1) } } */
TEST(recursion) {
    Global *g = def("deep");
    Var *n = var("n");
    Expr *again = call(global(g), 1, op2("subtract", ref(n), num(1)), NULL, NULL);
    g->value = fn(1, n, NULL, NULL,
                  if_(op2("less", ref(n), num(1)), num(0), op2("add", num(1), again)));
    CHECK_TEXT(show(call(global(g), 1, num(1000000), NULL, NULL)), "1000000");
    const char *found = show(call(global(g), 1, num(2000000000), NULL, NULL));
    CHECK_TEXT(found, fmt_text("the recursion is too deep: its stack takes %zu MB",
                               interp_stats(in)->stack_peak >> 20));
    CHECK_TEXT(show(call(global(g), 1, num(10), NULL, NULL)), "10");
}

TEST(closures) {
    /* let add = fn (x) { fn (y) { x + y } }; add(1)(2) */
    Var *add = var("add"), *x = var("x"), *y = var("y");
    Expr *f = fn(1, x, NULL, NULL, fn(1, y, NULL, NULL, op2("add", ref(x), ref(y))));
    CHECK_TEXT(
        show(expr_let(add, f, call(call(ref(add), 1, num(1), NULL, NULL), 1, num(2), NULL, NULL))),
        "3");
    CHECK_TEXT(show(expr_op(&op_add, NULL, span_none())), "<fn>");
    CHECK_TEXT(show(expr_let(add, expr_op(&op_add, NULL, span_none()),
                             call(ref(add), 2, num(20), num(22), NULL))),
               "42");
}

TEST(chains) {
    /* 90,000 bindings, and a sum of as many */
    Var *first = var("x"), *last = first;
    enum { N = 90000 };
    VEC(Var *) vars = {0};
    for (int i = 0; i < N; i++)
        vec_push(&vars, var("x"));
    last = vars.data[N - 1];
    Expr *body = ref(last);
    for (int i = N; i-- > 0;)
        body = expr_let(vars.data[i], op2("add", i ? ref(vars.data[i - 1]) : ref(first), num(1)),
                        body);
    CHECK_TEXT(show(expr_let(first, num(0), body)), "90000");
    Expr *sum = num(0);
    for (int i = 0; i < N; i++)
        sum = op2("add", sum, num(1));
    CHECK_TEXT(show(sum), "90000");
    Expr *nested = num(0);
    for (int i = 0; i < N; i++)
        nested = op2("add", num(1), nested);
    CHECK_TEXT(show(nested), "90000");
}

TEST(integers) {
    CHECK_TEXT(show(op2("add", num(INT32_MAX), num(1))), "-2147483648");
    CHECK_TEXT(show(op2("divide", num(-7), num(2))), "-3");
    CHECK_TEXT(show(op2("divide", num(INT32_MIN), num(-1))), "-2147483648");
    Value v;
    CHECK(eval(op2("divide", num(1), num(0)), &v) == EVAL_FAILED);
    CHECK_TEXT(diags.list.len ? diag_get_info(diags.list.data[0]->code)->name : "", "R0601");
}

static jmp_buf at_bug;

static void note_bug(const char *message) {
    CHECK(strstr(message, "variable `v` has no place") != NULL);
    longjmp(at_bug, 1);
}

/* A pass that leaves a variable behind its scope is told of. Its slot may hold another value by then, which it gave. */
TEST(scopes) {
    Var *v = var("v"), *w = var("w"), *x = var("x"), *y = var("y");
    Expr *value = expr_let(v, op2("add", ref(x), num(1)), op2("add", ref(v), ref(v)));
    Expr *other = expr_let(w, op2("add", ref(x), num(2)), op2("add", ref(w), ref(v)));
    Expr *body = expr_let(y, if_(op2("less", ref(x), num(9)), value, num(0)), other);
    bug_set_handler(note_bug);
    bool found = setjmp(at_bug) != 0;
    if (!found)
        (void)show(call(fn(1, x, NULL, NULL, body), 1, num(5), NULL, NULL));
    CHECK(found);
    bug_set_handler(NULL);
}

static const char *sum_of(Value acc, Value ct) {
    Value sum;
    Str s = {0};
    CHECK(apply_add_ct(in, span_none(), acc, ct, &sum));
    value_print(&s, sum, NULL);
    return str_text(&s);
}

/* The cotangent of a tuple whose length nobody knew ends with the last part that was added to: of two the longer one counts. */
TEST(cotangents_of_two_lengths) {
    Value one = value_float(DT_F64, 1), two = value_float(DT_F64, 2), parts[] = {one, two};
    Value more[] = {two, value_unit(), one, value_tuple(parts, 2)};
    Value less = value_tuple(parts, 2), all = value_tuple(more, 4);
    CHECK_TEXT(sum_of(less, all), "(3.0, 2.0, 1.0, (1.0, 2.0))");
    CHECK_TEXT(sum_of(all, less), "(3.0, 2.0, 1.0, (1.0, 2.0))");
    CHECK_TEXT(sum_of(all, all), "(4.0, (), 2.0, (2.0, 4.0))");
    CHECK_TEXT(sum_of(value_float(DT_F64, -0.0), value_unit()), "-0.0"); /* nothing is no 0.0 */
}

int main(void) {
    mem_init();
    EnvHooks hooks = {0};
    InterpOptions options = {.memory_bytes = (size_t)512 << 20};
    in = interp_new(env_new(&hooks), &diags, &options);
    RUN(calls);
    RUN(tail_calls);
    RUN(recursion);
    RUN(closures);
    RUN(chains);
    RUN(integers);
    RUN(scopes);
    RUN(cotangents_of_two_lengths);
    return check_result();
}
