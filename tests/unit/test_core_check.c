/* SPDX-License-Identifier: Apache-2.0 */
/* core_check refuses core that breaks one rule each, and takes what inference makes of the prelude and the
 * rules of derivatives. */
#include "tests/unit/check.h"

#include "repl/prelude.h"
#include "repl/session.h"
#include "types/core/check.h"
#include "types/op.h"

static Session *session;

static Type *f32(void) { return type_scalar(DT_F32); }
static Type *tensor_of(int64_t n) {
    Type *dim = type_dim_int(n, NULL);
    return type_tensor(type_shape(&dim, 1), type_dtype(DT_F32));
}
static Var *new_var(const char *name, Type *t) { return var_new(sym_intern(name), t, span_none()); }
static Expr *use(Var *v) { return expr_var(v, span_none()); }
static Expr *one(void) { return expr_float(1.0, DT_F32, span_none()); }

static Expr *add(Expr *a, Expr *b, Type *t) {
    Expr *args[] = {a, b};
    const Op *op = &op_add;
    return expr_call_op(op, args, 2, attrs_defaults(op), t, span_none());
}

/* fn (x) { body }, of a function of x's type */
static Expr *function(Var *x, Expr *body, Type *effect) {
    return expr_fn(&x, 1, body, type_fn(&x->type, 1, body->type, effect), span_none());
}

static void refused(Expr *e, const char *words) {
    const char *wrong = core_check(e, NULL);
    CHECK_TEXT(wrong ? wrong : "it is taken", words);
}

static void taken(Expr *e) {
    const char *wrong = core_check(e, NULL);
    CHECK_TEXT(wrong ? wrong : "it is taken", "it is taken");
}

TEST(sound_core_is_taken) {
    Var *x = new_var("x", f32()), *y = new_var("y", f32());
    Expr *sum = add(use(x), use(x), f32());
    taken(function(x, expr_let(y, sum, add(use(y), sum, f32())), type_pure()));
    Type *open = type_param(sym_intern("a"), KIND_TYPE);
    Var *z = new_var("z", open);
    taken(function(z, add(use(z), one(), f32()), type_pure()));
}

TEST(a_node_without_a_type) {
    Expr *e = one();
    e->type = NULL;
    refused(e, "a node of kind 0 has no type");
    e->type = type_error();
    refused(e, "a node of kind 0 has no type");
    Type *parts[] = {f32(), type_error()};
    Expr *args[] = {one(), one()};
    Expr *tuple = expr_tuple(args, 2, span_none());
    tuple->type = type_tuple(parts, 2);
    refused(tuple, "a node of kind 13 has no type");
    refused(expr_new(EXPR_ERROR, f32(), span_none()), "an expression that was already refused");
}

TEST(scopes) {
    Var *x = new_var("x", f32()), *y = new_var("y", f32());
    refused(use(x), "the variable `x` is used where it is not bound");
    refused(expr_let(x, use(x), one()), "the variable `x` is used where it is not bound");
    refused(expr_let(x, one(), expr_let(x, one(), use(x))), "the variable `x` is bound twice");
    refused(function(x, expr_let(x, one(), use(x)), type_pure()),
            "the variable `x` is bound twice");
    /* a node that stands in two places, in one of which its variable is not bound */
    Expr *shared = add(use(y), one(), f32());
    Expr *args[] = {expr_let(y, one(), shared), shared};
    refused(expr_tuple(args, 2, span_none()), "the variable `y` is used where it is not bound");
    VarVec given = {0};
    vec_push(&given, x);
    CHECK(!core_check(use(x), &given));
}

TEST(missing_parts) {
    Expr *e = expr_if(expr_bool(true, span_none()), one(), NULL, f32(), span_none());
    refused(e, "a branch is missing");
    Expr *let = expr_let(new_var("x", f32()), one(), one());
    let->body = NULL;
    refused(let, "what follows a binding is missing");
    let = expr_let(new_var("f", f32()), one(), one());
    let->rec = true;
    refused(let, "a recursive binding of what is no function");
}

TEST(types_that_do_not_fit) {
    Var *x = new_var("x", f32());
    refused(expr_let(new_var("t", type_string()), one(), one()),
            "a binding's value has the type float32, not String");
    refused(expr_if(one(), one(), one(), f32(), span_none()),
            "a condition has the type float32, not bool");
    refused(
        expr_if(expr_bool(true, span_none()), one(), expr_unit(span_none()), f32(), span_none()),
        "a branch has the type (), not float32");
    Expr *arg = expr_unit(span_none());
    refused(expr_call(function(x, use(x), type_pure()), &arg, 1, NULL, f32(), span_none()),
            "an argument has the type (), not float32");
    Var *y = new_var("y", f32());
    refused(expr_call(function(y, use(y), type_pure()), NULL, 0, NULL, f32(), span_none()),
            "a call has 0 arguments, its function takes 1");
    refused(expr_call(one(), NULL, 0, NULL, f32(), span_none()),
            "what is called has the type float32");
    refused(expr_proj(one(), 0, f32(), span_none()), "part 0 of a float32");
    Expr *pair = expr_tuple((Expr *[]){one(), one()}, 2, span_none());
    refused(expr_proj(pair, 2, f32(), span_none()), "part 2 of a (float32, float32)");
    Expr *read = expr_new(EXPR_READ, f32(), span_none());
    read->a = one();
    refused(read, "a float32 stands for a reference");
    Expr *lit = one();
    lit->type = type_scalar(DT_I32);
    refused(lit, "a literal of a float has the type int32");
}

TEST(relations_that_do_not_hold) {
    Var *x = new_var("x", tensor_of(3)), *y = new_var("y", tensor_of(4)),
        *z = new_var("z", tensor_of(3));
    Var *both[] = {x, y};
    Expr *sum = add(use(x), use(y), tensor_of(3));
    const char *wrong = core_check(
        expr_fn(both, 2, sum, type_fn((Type *[]){x->type, y->type}, 2, sum->type, type_pure()),
                span_none()),
        NULL);
    CHECK(wrong && strstr(wrong, "`add` does not take these"));
    refused(function(z, add(use(z), one(), tensor_of(5)), type_pure()),
            "add has the type Tensor[(5,), float32], not Tensor[(3,), float32]");
}

TEST(an_effect_that_is_denied) {
    Var *x = new_var("x", f32()), *y = new_var("y", f32());
    Expr *ref = expr_new(EXPR_REF, type_ref(f32()), span_none());
    ref->a = use(x);
    refused(function(x, ref, type_pure()), "a function makes a reference, which its type denies");
    ref = expr_new(EXPR_REF, type_ref(f32()), span_none());
    ref->a = use(y);
    taken(function(y, ref, type_allocates()));
}

TEST(the_prelude_is_sound) {
    CHECK(prelude_load_all(session));
    SymbolVec names = {0};
    prelude_each_name(session, &names);
    for (size_t i = 0; i < names.len; i++) {
        Global *g = env_find(session_env(session), names.data[i], SIGIL_GLOBAL).global;
        const char *wrong = g && g->value && !g->by_types ? core_check(g->value, NULL) : NULL;
        if (wrong)
            check_fail(__FILE__, __LINE__, "%s: %s", g->name->text, wrong);
    }
}

TEST(rules_are_sound) {
    CHECK(op_count() > 100);
    for (size_t i = 0; i < op_count(); i++) {
        for (int kind = RULE_DERIVATIVE; kind <= RULE_TANGENT; kind++) {
            const Rule *rule = env_find_rule(session_env(session), op_at(i), (RuleKind)kind);
            const char *wrong = rule ? core_check(rule->fn, NULL) : NULL;
            if (wrong)
                check_fail(__FILE__, __LINE__, "%s: %s", op_at(i)->name, wrong);
        }
    }
}

int main(void) {
    mem_init();
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    session = session_new(&options);
    RUN(sound_core_is_taken);
    RUN(a_node_without_a_type);
    RUN(scopes);
    RUN(missing_parts);
    RUN(types_that_do_not_fit);
    RUN(relations_that_do_not_hold);
    RUN(an_effect_that_is_denied);
    RUN(the_prelude_is_sound);
    RUN(rules_are_sound);
    return check_result();
}
