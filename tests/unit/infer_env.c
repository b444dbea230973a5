/* SPDX-License-Identifier: Apache-2.0 */
/* Inference through its interface alone: no prelude, no evaluator. */
#include "parser/parser.h"
#include "tests/unit/check.h"
#include "types/infer/infer.h"

static Env *env;
static Diags diags;
static CoreItemVec items;

static Module *read(const char *text, bool prompt) {
    Module *module = NULL;
    ParseOptions options = {.prompt = prompt};
    diags = (Diags){0};
    items = (CoreItemVec){0};
    parse_module(source_new("test", text, strlen(text), 0), &options, &diags, &module);
    return module;
}

static bool check(const char *text) {
    Module *module = read(text, false);
    return diags.errors == 0 && infer_module(env, module, INFER_FILE, &diags, &items);
}

static bool at_prompt(const char *text) {
    Module *module = read(text, true);
    return diags.errors == 0 && infer_module(env, module, INFER_PROMPT, &diags, &items);
}

static const char *type_of(const char *name) {
    Str s = {0};
    Binding b = env_find(env, sym_intern(name), SIGIL_NONE);
    if (b.kind == BIND_GLOBAL && b.global->scheme)
        scheme_print(&s, b.global->scheme, NULL);
    return str_text(&s);
}

TEST(definitions_are_generalised_over_relations) {
    env = env_new(NULL);
    CHECK(check("def f(x, y) { x + y }  def h(x) { x * 2 }  def id(x) { x }"));
    CHECK_TEXT(type_of("f"), "fn [a, b, c](a, b) -> c where Broadcast(a, b, c)");
    CHECK_TEXT(type_of("h"), "fn [s, b](Tensor[s, b]) -> Tensor[s, b]");
    CHECK_TEXT(type_of("id"), "fn [a](a) -> a");
}

TEST(groups_are_checked_in_order_of_dependency) {
    env = env_new(NULL);
    CHECK(check("def a(x) { b(b(x)) }  def b(x) { x }\n"
                "def even(n) { if (n == 0) { True } else { odd(n - 1) } }\n"
                "def odd(n) { if (n == 0) { False } else { even(n - 1) } }"));
    CHECK_TEXT(type_of("a"), "fn [a](a) -> a");
    CHECK_INT(items.len, 4);
    CHECK(items.data[0].kind == CORE_DEF && items.data[0].global->name == sym_intern("a"));
}

TEST(nothing_is_bound_after_a_mistake) {
    env = env_new(NULL);
    CHECK(!check("type T { A }  def f(x) { x }  def g() { f(1) + \"a\" }"));
    CHECK_INT(diags.errors, 1);
    CHECK(env_find(env, sym_intern("f"), SIGIL_NONE).kind == BIND_NONE);
    CHECK(env_find(env, sym_intern("A"), SIGIL_NONE).kind == BIND_NONE);
    CHECK(env_find_type(env, sym_intern("T")) == NULL);
}

TEST(one_mistake_an_item) {
    env = env_new(NULL);
    CHECK(!check("def f() { (nosuch, other, 1 + \"a\") }  def g() { f() }"));
    CHECK_INT(diags.errors, 1);
}

TEST(a_redefinition_keeps_its_slot_at_the_same_type) {
    env = env_new(NULL);
    CHECK(at_prompt("def f(x: int32) { x }"));
    Global *f = env_find(env, sym_intern("f"), SIGIL_NONE).global;
    CHECK(at_prompt("def g(x) { f(x) }"));
    Global *g = env_find(env, sym_intern("g"), SIGIL_NONE).global;
    CHECK(at_prompt("def f(x: int32) { x + 1 }"));
    CHECK(env_find(env, sym_intern("f"), SIGIL_NONE).global == f);
    CHECK(at_prompt("def f(x: float32) { x }"));
    CHECK(env_find(env, sym_intern("f"), SIGIL_NONE).global != f);
    CHECK(env_find(env, sym_intern("g"), SIGIL_NONE).global != g);
    CHECK_TEXT(type_of("g"), "fn(float32) -> float32");
}

TEST(modules_qualify_their_names) {
    env = env_new(NULL);
    env_begin_module(env, sym_intern("m"));
    CHECK(check("def f(x) { _g(x) }  def _g(x) { x }"));
    env_end_module(env);
    Item import = {.kind = ITEM_IMPORT, .name = {.sym = sym_intern("m")}};
    CHECK(env_open_module(env, &import, &diags));
    CHECK(env_find(env, sym_intern("m.f"), SIGIL_NONE).kind == BIND_GLOBAL);
    CHECK(env_find(env, sym_intern("m._g"), SIGIL_NONE).kind == BIND_NONE);
    CHECK(env_find(env, sym_intern("f"), SIGIL_NONE).kind == BIND_NONE);
}

TEST(residual_checks_are_listed) {
    env = env_new(NULL);
    CHECK(check("def h(y: Tensor[(?,), float32]) -> Tensor[(3,), float32] { y }"));
    CHECK_INT(env_residuals(env)->len, 1);
    const Expr *body = items.data[0].global->value->fn->body;
    CHECK(body->kind == EXPR_CHECK && body->nchecks == 1);
    CHECK(body->checks[0].found->kind == EXPR_DIM_OF);
}

/* A program of n parts, `fmt` between `begin` and `end`. */
static const char *repeat(const char *begin, const char *part, const char *end, int n) {
    Str s = {0};
    str_add(&s, begin);
    for (int i = 0; i < n; i++)
        str_add(&s, part);
    str_add(&s, end);
    return str_text(&s);
}

TEST(long_chains_need_no_stack) {
    env = env_new(NULL);
    CHECK(check(repeat("def f(x) { ", "let x = x + 1; ", "x }", 20000)));
    CHECK_TEXT(type_of("f"), "fn [s, b](Tensor[s, b]) -> Tensor[s, b]");
    CHECK(check(repeat("def g(x) { x", " + x", " }", 10000)));
    CHECK(check(repeat("def h(x) { ", "if (x == 1) { 2 } else ", "{ 3 } }", 5000)));
    CHECK_TEXT(type_of("h"), "fn [b](Tensor[(), b]) -> int32");
}

int main(void) {
    mem_init();
    RUN(definitions_are_generalised_over_relations);
    RUN(groups_are_checked_in_order_of_dependency);
    RUN(nothing_is_bound_after_a_mistake);
    RUN(one_mistake_an_item);
    RUN(a_redefinition_keeps_its_slot_at_the_same_type);
    RUN(modules_qualify_their_names);
    RUN(residual_checks_are_listed);
    RUN(long_chains_need_no_stack);
    return check_result();
}
