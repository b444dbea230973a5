/* SPDX-License-Identifier: Apache-2.0 */
/* --verify-types on core whose types are wrong, which a program cannot have: each mistake is found, and
 * what is right passes. */
#include "check.h"

#include "base/diag.h"
#include "eval/interp.h"
#include "types/type/dim.h"

#include <setjmp.h>

static Diags diags;
static Interp *in;
static jmp_buf here;
static const char *reported;

static void on_bug(const char *message) {
    reported = message;
    longjmp(here, 1);
}

static Type *vector(Type *size) { return type_tensor(type_shape(&size, 1), type_dtype(DT_F32)); }
static Type *size(int64_t n) { return type_dim_int(n, NULL); }
static Type *i32(void) { return type_scalar(DT_I32); }
static Var *var(const char *name, Type *type) {
    return var_new(sym_intern(name), type, span_none());
}

/* n zeros, said to be of this type. */
static Expr *zeros(int64_t n, Type *type) {
    Expr *e = expr_new(EXPR_CONST, type, span_none());
    e->tensor = tensor_new(DT_F32, 1, &n);
    return e;
}

static Expr *text(Type *type) {
    Expr *e = expr_new(EXPR_STRING, type, span_none());
    e->text = "text";
    e->text_len = 4;
    return e;
}

/* What is reported of `let x: type = value; ()`. */
static const char *let(Type *type, Expr *value) {
    Value out;
    reported = "nothing";
    if (setjmp(here) == 0)
        (void)interp_eval(in, expr_let(var("x", type), value, expr_unit(span_none())), &out);
    return reported;
}

#define CHECK_SAYS(found, words) CHECK(strstr(found, words) != NULL)

TEST(sizes) {
    CHECK_TEXT(let(vector(size(3)), zeros(3, vector(size(3)))), "nothing");
    CHECK_SAYS(let(vector(size(3)), zeros(4, NULL)),
               "`x` is Tensor[(4,), float32], but its type is Tensor[(3,), float32]");
    CHECK_SAYS(let(i32(), zeros(4, NULL)), "`x` is Tensor[(4,), float32], but its type is int32");
}

TEST(kinds) {
    CHECK_TEXT(let(type_string(), text(NULL)), "nothing");
    CHECK_SAYS(let(i32(), text(NULL)), "`x` is String, but its type is int32");
    CHECK_SAYS(let(type_unit(), text(NULL)), "`x` is String, but its type is ()");
    CHECK_SAYS(let(type_ref(i32()), text(NULL)), "`x` is String, but its type is ref(int32)");
}

/* let f = fn (x: a, y: b) { y }; f(zeros(m), zeros(n)) */
static const char *call(Type *a, int64_t m, Type *b, int64_t n) {
    Var *params[] = {var("x", a), var("y", b)};
    Expr *args[] = {zeros(m, NULL), zeros(n, NULL)};
    Expr *fn = expr_fn(params, 2, expr_var(params[1], span_none()), NULL, span_none());
    Var *f = var("f", NULL);
    Expr *apply = expr_call(expr_var(f, span_none()), args, 2, NULL, NULL, span_none());
    return let(NULL, expr_let(f, fn, apply));
}

TEST(open_sizes) {
    Type *n = type_param(sym_intern("n"), KIND_DIM), *s = type_param(sym_intern("s"), KIND_SHAPE);
    Type *shaped = type_tensor(s, type_dtype(DT_F32));
    CHECK_TEXT(call(vector(n), 2, vector(n), 2), "nothing");
    CHECK_SAYS(call(vector(n), 2, vector(n), 3), "`y` is Tensor[(3,), float32]");
    CHECK_SAYS(call(vector(n), 2, vector(n), 3), "is 2 here, by `x`");
    CHECK_TEXT(call(vector(n), 2, vector(dim_add_int(n, 1)), 3), "nothing");
    CHECK_SAYS(call(vector(n), 2, vector(dim_add_int(n, 1)), 2), "is 3 here");
    CHECK_SAYS(call(vector(dim_add_int(n, 1)), 3, vector(n), 3), "is 2 here");
    CHECK_SAYS(call(vector(dim_mul(n, n)), 4, vector(n), 3), "is 9 here"); /* waits for n */
    CHECK_SAYS(call(shaped, 2, shaped, 3), "is another here, by `x`");
}

int main(void) {
    mem_init();
    EnvHooks hooks = {0};
    InterpOptions options = {.memory_bytes = (size_t)64 << 20, .verify_types = true};
    in = interp_new(env_new(&hooks), &diags, &options);
    bug_set_handler(on_bug);
    RUN(sizes);
    RUN(kinds);
    RUN(open_sizes);
    return check_result();
}
