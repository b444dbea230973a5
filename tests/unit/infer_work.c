/* SPDX-License-Identifier: Apache-2.0 */
/* How much work inference does: counted, not timed. Twice the program is twice the work; a
 * definition is inferred once; an edit at the prompt re-checks what depends on it and no more. */
#include "parser/parser.h"
#include "tests/unit/check.h"
#include "types/core/env_impl.h"
#include "types/mend/mend.h"

static Env *env;
static Diags diags;

static bool check(const char *text, InferMode mode) {
    Module *module = NULL;
    ParseOptions options = {.prompt = mode == INFER_PROMPT};
    CoreItemVec items = {0};
    diags = (Diags){0};
    parse_module(source_new("test", text, strlen(text), 0), &options, &diags, &module);
    return diags.errors == 0 && mend_infer_module(env, module, mode, &diags, &items);
}

static const char *type_of(const char *name) {
    Str s = {0};
    Binding b = env_find(env, sym_intern(name), SIGIL_NONE);
    if (b.kind == BIND_GLOBAL && b.global->scheme)
        scheme_print(&s, b.global->scheme, NULL);
    return str_text(&s);
}

/* A program of size n. */
typedef void Write(Str *out, int n);

static InferCounts work(Write *program, int n) {
    Str text = {0};
    program(&text, n);
    env = env_new(NULL);
    CHECK(check(str_text(&text), INFER_FILE));
    return env_counts(env);
}

/* The work of 8 n is less than 9 times that of n, and less than `most` a unit. */
static void check_linear(const char *name, Write *program, int n, uint64_t most) {
    InferCounts small = work(program, n), large = work(program, 8 * n);
    bool runs = large.runs <= 9 * small.runs + 100, steps = large.steps <= 9 * small.steps + 1000;
    if (!runs || !steps || large.runs > most * 8 * (uint64_t)n)
        printf("%s: %d: %llu runs, %llu steps; %d: %llu runs, %llu steps\n", name, n,
               (unsigned long long)small.runs, (unsigned long long)small.steps, 8 * n,
               (unsigned long long)large.runs, (unsigned long long)large.steps);
    CHECK(runs && steps);
    CHECK(large.runs <= most * 8 * (uint64_t)n);
}

static void repeat(Str *out, const char *begin, const char *part, const char *end, int n) {
    str_add(out, begin);
    for (int i = 0; i < n; i++)
        str_add(out, part);
    str_add(out, end);
}

static void one_operand(Str *out, int n) { repeat(out, "def f(x) { x", " + x", " }", n); }
static void literals(Str *out, int n) { repeat(out, "def f(x) { x", " * 2.0 + 1", " }", n); }
static void two_operands(Str *out, int n) { repeat(out, "def f(x, y) { x", " + y * x", " }", n); }
static void known(Str *out, int n) {
    repeat(out, "def f(x: Tensor[(3,), float32], y) { x", " + y", " }", n);
}
static void products(Str *out, int n) { repeat(out, "def f(x, w) { x", " @@ w", " }", n); }
static void fields(Str *out, int n) { repeat(out, "def f(p) { p.w", " + p.b * p.w", " }", n); }
static void lets(Str *out, int n) { repeat(out, "def f(x) { ", "let x = x + 1; ", "x }", n); }
static void lets_of_two(Str *out, int n) {
    repeat(out, "def f(x, y) { ", "let x = x + y; ", "x }", n);
}
static void closures(Str *out, int n) {
    repeat(out, "def f(x) { ", "let g = fn (y) { y + x }; let x = g(x); ", "x }", n);
}
static void parameters(Str *out, int n) /* n variables in one set */
{
    str_add(out, "def f(x0");
    for (int i = 1; i < n; i++)
        str_printf(out, ", x%d", i);
    str_add(out, ") { x0");
    for (int i = 1; i < n; i++)
        str_printf(out, " + x%d", i);
    str_add(out, " }");
}
static void sums(Str *out, int n) /* n sets */
{
    str_add(out, "def f(x, y) { (x");
    for (int i = 0; i < n; i++)
        str_printf(out, ", x(%d) + y(%d)", i, i);
    str_add(out, ") }");
}
static void calls(Str *out, int n) {
    repeat(out, "def g(a, b) { a + b }  def f(x, y) { x", " |> fn (z) { g(z, y) }", " }", n);
}

static void module(Str *out, int n) {
    for (int i = 0; i < n; i++) {
        if (i % 4 == 0)
            str_printf(out, "def f%d(x, y) { x * y + x }\n", i);
        else if (i % 4 == 3)
            str_printf(out, "def f%d(x, y) { f%d(f%d(x, y), y) }\n", i, i - 1, i - 2);
        else
            str_printf(out, "def f%d(x, y) { f%d(x, y) + y }\n", i, i - 1);
    }
}
static void module_of_callers(Str *out, int n) /* one definition that all use */
{
    str_add(out, "def f(x, y) { x + y }\n");
    for (int i = 0; i < n; i++)
        str_printf(out, "def g%d(x, y) { f(x, f(y, x)) }\n", i);
}
static void module_in_a_row(Str *out, int n) {
    str_add(out, "def f0(x, y) { x + y }\n");
    for (int i = 1; i < n; i++)
        str_printf(out, "def f%d(x, y) { f%d(f%d(x, y), y) }\n", i, i - 1, i - 1);
}
static void module_of_windows(Str *out, int n) /* called with sizes that the first may refuse */
{
    str_add(out, "def f0(x) { nn.max_pool2d(x, pool_size=[2, 2], padding=[0, 0, 1, 1]) }\n");
    for (int i = 1; i < n; i++)
        str_printf(out,
                   "def f%d(x) { f%d(f%d(x) + max(x)) }\n"
                   "let y%d = f%d(ones(shape=[1, 1, 9, 9]));\n",
                   i, i - 1, i - 1, i, i);
}
static void module_of_products(Str *out,
                               int n) /* relations that no law joins: n in the last scheme */
{
    str_add(out, "def f0(x, w) { x @@ w }\n");
    for (int i = 1; i < n; i++)
        str_printf(out, "def f%d(x, w) { f%d(x, w) @@ w }\n", i, i - 1);
}
static void module_of_squares(Str *out, int n) /* each the one before, twice */
{
    str_add(out, "def f0(x) { x @@ x }\n");
    for (int i = 1; i < n; i++)
        str_printf(out, "def f%d(x) { f%d(x) @@ f%d(x) }\n", i, i - 1, i - 1);
}
static void products_of_known(Str *out, int n) /* and called: all are checked once */
{
    module_of_products(out, n);
    str_printf(out, "let y = f%d(ones(shape=[2, 3]), ones(shape=[3, 3]));\n", n - 1);
}
static void module_recursive(Str *out, int n) /* one group of definitions that call one another */
{
    for (int i = 0; i < n; i++)
        str_printf(out, "def f%d(x) { if (x == 0) { x } else { f%d(x - 1) } }\n", i, (i + 1) % n);
}

TEST(chains_are_linear) {
    check_linear("x + x", one_operand, 1250, 3);
    check_linear("x * 2.0 + 1", literals, 625, 6);
    check_linear("x + y * x", two_operands, 625, 6);
    check_linear("a known operand", known, 1250, 3);
    check_linear("x @@ w", products, 1250, 3);
    check_linear("fields", fields, 400, 12);
    check_linear("lets", lets, 1250, 3);
    check_linear("lets of two", lets_of_two, 1250, 3);
    check_linear("closures", closures, 400, 8);
    check_linear("calls", calls, 400, 8);
    check_linear("parameters", parameters, 200, 3);
    check_linear("sums", sums, 200, 6);
}

static void ones(Str *out, int n) { repeat(out, "1", " + 1", "", n); }
static void signed_floats(Str *out, int n) { repeat(out, "1.0", " - 1 * 2.5", "", n); }
static void known_scalar(Str *out, int n) { repeat(out, "let x = 2.0; x", " * x + 1", "", n); }
static void comparisons(Str *out, int n) { repeat(out, "(1 < 2", ", 1 + 1 < 2", ")", n); }

/* The chain is as long as its text, and the solver has as few relations to run for 8 n links as for n. */
static void check_no_relations(const char *name, Write *program) {
    enum { N = 500 };
    InferCounts small = work(program, N), large = work(program, 8 * N);
    if (large.runs != small.runs || large.steps > 9 * small.steps)
        printf("%s: %llu and %llu runs, %llu and %llu steps\n", name,
               (unsigned long long)small.runs, (unsigned long long)large.runs,
               (unsigned long long)small.steps, (unsigned long long)large.steps);
    CHECK_INT(large.runs, small.runs);
    CHECK(large.steps <= 9 * small.steps);
}

TEST(scalars_need_no_relation) {
    check_no_relations("1 + 1", ones);
    check_no_relations("1.0 - 1 * 2.5", signed_floats);
    check_no_relations("x * x + 1", known_scalar);
    check_no_relations("1 + 1 < 2", comparisons);
}

TEST(modules_are_linear) {
    check_linear("module", module, 250, 8);
    check_linear("callers of one", module_of_callers, 250, 8);
    check_linear("each the one before, twice", module_in_a_row, 250, 8);
    check_linear("windows", module_of_windows, 400, 20);
    check_linear("a chain of products", module_of_products, 100, 8);
    check_linear("squares of squares", module_of_squares, 100, 12);
    check_linear("a chain of products, called", products_of_known, 100, 16);
    check_linear("one recursive group", module_recursive, 50, 10);
}

TEST(a_definition_is_inferred_once) {
    InferCounts c = work(module, 2000);
    CHECK_INT(c.definitions, 2000);
    CHECK_INT(c.again, 0);
    CHECK_TEXT(type_of("f1999"), "fn [a, b, c](a, b) -> c where Broadcast(a, b, c)");
    c = work(module_in_a_row, 30);
    CHECK_INT(c.definitions, 30);
    CHECK_TEXT(type_of("f29"), "fn [a, b, c](a, b) -> c where Broadcast(a, b, c)");
}

/* What is called with known types is checked through all of the definitions. */
TEST(a_chain_of_products_is_checked_when_called) {
    Str text = {0};
    module_of_products(&text, 100);
    env = env_new(NULL);
    CHECK(check(str_text(&text), INFER_PROMPT));
    CHECK_TEXT(type_of("f99"),
               "fn [n, m, b](Tensor[(n, m), b], Tensor[(m, m), b]) -> Tensor[(n, m), b]");
    CHECK(check("let y = f99(ones(shape=[2, 3]), ones(shape=[3, 3]))", INFER_PROMPT));
    CHECK_TEXT(type_of("y"), "Tensor[(2, 3), float32]");
    CHECK(!check("let z = f99(ones(shape=[2, 3]), ones(shape=[3, 4]))", INFER_PROMPT));
    CHECK(!check("let z = f99(ones(shape=[2, 4]), ones(shape=[3, 3]))", INFER_PROMPT));
    CHECK(check("def g(x) { f99(x, x) }", INFER_PROMPT));
    CHECK_TEXT(type_of("g"), "fn [m, b](Tensor[(m, m), b]) -> Tensor[(m, m), b]");
}

/* n lets, each in the value of the one before, around names that are unknown: as a derivative is printed. */
static void unknown_names(Str *out, int n) {
    str_add(out, "def f(p, xs) { let d = ad.tape(p); let l = ad.lift(d, p); let y = ");
    for (int i = 0; i < n; i++)
        str_add(out, "{ let x = ");
    str_add(out, "l.w");
    for (int i = 0; i < n; i++)
        str_add(out, "; let a = ad.primal(d, x); let b = ad.primal(d, xs); let v = a * b;"
                     " if (ad.is_active(d, x)) { let r = ad.lift(d, v); ad.chain(d) := fn () {"
                     " if (ad.is_active(d, r)) { ad.accumulate(d, x, r * b + a) } else { () } };"
                     " r } else { v } }");
    str_add(out, "; y }");
}

/* The steps of a program that does not check; nothing is suggested. */
static uint64_t steps_of_failure(Write *program, int n) {
    Str text = {0};
    program(&text, n);
    env = env_new(NULL);
    env->no_mending = true;
    CHECK(!check(str_text(&text), INFER_FILE));
    CHECK_INT(diags.errors, 1);
    return env_counts(env).steps;
}

TEST(a_mistake_inside_lets_is_linear) {
    uint64_t small = steps_of_failure(unknown_names, 25);
    CHECK(steps_of_failure(unknown_names, 200) <= 9 * small + 1000);
}

/* The definitions checked again after one edit. */
static uint64_t edit(const char *text) {
    uint64_t before = env_counts(env).again;
    CHECK(check(text, INFER_PROMPT));
    return env_counts(env).again - before;
}

TEST(an_edit_checks_what_depends_on_it) {
    env = env_new(NULL);
    Str text = {0};
    for (int i = 0; i < 1000; i++) {
        text = (Str){0};
        str_printf(&text, "def a%d(x) { x }", i);
        CHECK(check(str_text(&text), INFER_PROMPT));
    }
    CHECK(check("def f(x: int32) { x }", INFER_PROMPT));
    CHECK(check("def g(x) { f(x) }", INFER_PROMPT));
    CHECK(check("def h(x) { (g(x), g(x)) }", INFER_PROMPT));
    CHECK(check("def k(x) { a7(x) }", INFER_PROMPT));
    uint64_t runs = env_counts(env).runs;
    CHECK_INT(edit("def f(x: int32) { x + 1 }"), 0); /* the same type: new code in the slot */
    CHECK_INT(edit("def f(x: float32) { x }"), 2);   /* g and h */
    CHECK_TEXT(type_of("h"), "fn(float32) -> (float32, float32)");
    CHECK_INT(edit("def g(x: float32) { f(x) }"), 0);      /* as it was */
    CHECK_INT(edit("def g(x: float32) { (f(x), 1) }"), 1); /* h */
    CHECK_INT(edit("def a3(x: int32) { x }"), 0);          /* nobody uses it */
    CHECK_INT(edit("def a7(x: int32) { x }"), 1);          /* k */
    CHECK(env_counts(env).runs - runs < 20);
    CHECK_INT(env_counts(env).definitions - env_counts(env).again, 1000 + 4 + 6);
}

/* n definitions, each of which applies the one before; the names in `wrong` of them are misspelt. */
static uint64_t tried(int n, int wrong, bool annotated, size_t *fixes) {
    Str text = {0};
    const char *type = annotated ? ": float32" : "";
    str_printf(&text, "def scale(x%s) { x * 2.0 }\ndef step0(x) { scale(x) }\n", type);
    for (int i = 1; i <= n; i++)
        str_printf(&text, "def step%d(x%s) { %s(step%d(x)) }\n", i, type,
                   i % (n / wrong) == n / wrong / 2 ? "scael" : "scale", i - 1);
    env = env_new(NULL);
    CHECK(!check(str_text(&text), INFER_FILE));
    CHECK_INT(diags.errors, wrong);
    *fixes = 0;
    for (size_t i = 0; i < diags.list.len; i++)
        *fixes += diags.list.data[i]->fixes.len;
    CHECK_INT(env_counts(env).definitions, n + 2 + env_counts(env).tried);
    return env_counts(env).tried;
}

/* However long the file is. What depends on the mended item is looked at where its type changed: here to the
 * end of the file, unless that is far. */
TEST(a_suggestion_costs_its_item) {
    size_t fixes;
    CHECK_INT(tried(200, 1, true, &fixes), 2); /* it, and the one that could not know its type */
    CHECK_INT(fixes, 1);
    CHECK_INT(tried(4000, 1, true, &fixes), 2);
    CHECK_INT(fixes, 1);
    CHECK_INT(tried(200, 1, false, &fixes), 101);
    CHECK_INT(fixes, 1);
    CHECK(tried(16000, 1, false, &fixes) < 3000);
    uint64_t few = tried(200, 5, true, &fixes);
    CHECK_INT(fixes, 5);
    CHECK(tried(4000, 20, true, &fixes) <= few);
    CHECK_INT(fixes, 5);
}

/* A change to a type costs the items that mention it, however long the file is. */
static uint64_t tried_after(const char *types, int n) {
    Str text = {0};
    str_add(&text, types);
    for (int i = 1; i <= n; i++)
        str_printf(&text, "def step%d(x) { x * %d.0 }\n", i, i);
    env = env_new(NULL);
    CHECK(!check(str_text(&text), INFER_FILE));
    CHECK_INT(diags.errors, 1);
    CHECK_INT(diags.list.data[0]->fixes.len, 1);
    return env_counts(env).tried;
}

static uint64_t tried_type(int n) {
    uint64_t tried = tried_after(
        "type Shape { Cirkle(float32), Square(float32) }\n"
        "type Tree { Leaf, Node(Tree, Shape, Tree) }\n"
        "def area(s) { match (s) { Circle(r) => r * r, Square(a) => a } }\n"
        "def total(t) { match (t) { Leaf => 0.0, Node(l, s, r) => "
        "total(l) + area(s) + total(r) } }\n"
        "def count(t) { match (t) { Leaf => 0, Node(l, _, r) => count(l) + count(r) } }\n"
        "def both(t) { (total(t), count(t)) }\n"
        "def one() { total(Node(Leaf, Circle(1.0), Leaf)) }\n",
        n);
    CHECK_INT(diags.list.len, 1);
    CHECK_INT(diags.list.data[0]->primary.span.begin, 13);
    return tried;
}

TEST(a_change_to_a_type_costs_what_mentions_it) {
    CHECK_INT(tried_type(4000), tried_type(10));
    CHECK(tried_type(10) < 30);
}

/* So does a declaration that does not check, after which nothing else was checked. */
static uint64_t tried_declaration(int n) {
    return tried_after("type Shape { Circle(flot32), Square(float32) }\n"
                       "type Tree { Leaf, Node(Tree, Shape, Tree) }\n"
                       "def square(x) { x * x }\n"
                       "def area(s) { match (s) { Circle(r) => square(r), Square(a) => a } }\n"
                       "def one() { area(Circle(1.0)) }\n",
                       n);
}

TEST(a_declaration_that_fails_costs_what_mentions_it) {
    CHECK_INT(tried_declaration(4000), tried_declaration(10));
    CHECK(tried_declaration(10) < 20);
}

/* ---- the budget of suggestions ---- */

/* One misspelt name, and lets that ask for twice as much of `x` as the one before: mended, it is too much. */
static void doubling(Str *out, int n) {
    str_add(out, "def help(x) { x }\ndef f(p) { let q = hepl(p); let f0 = fn (x) { x.a };");
    for (int i = 1; i < n; i++)
        str_printf(out, " let f%d = fn (x) { f%d(f%d(x)) };", i, i - 1, i - 1);
    str_printf(out, " f%d }", n - 1);
}
static void misspelt(Str *out, int n) /* each in an item of its own */
{
    str_add(out, "def threshold(x) { x }\n");
    for (int i = 0; i < n; i++)
        str_printf(out, "def f%d(x) { thresold%d(x) + unknown%d(x) }\n", i, i, i);
}
static void misspelt_in_one(Str *out, int n) {
    str_add(out, "def threshold(x) { x }\ndef f(x) { (x");
    for (int i = 0; i < n; i++)
        str_printf(out, ", thresold%d(x)", i);
    str_add(out, ") }");
}
static void holes(Str *out, int n) {
    repeat(out, "def g(x, y) { x + y }\ndef f(x) { _", " + g(x, _)", " }", n);
}

/* A piece of work is drawn when it is done, so the last one may be more than what was left. */
static void check_budget(Write *program, int n) {
    Str text = {0};
    program(&text, n);
    env = env_new(NULL);
    CHECK(!check(str_text(&text), INFER_FILE));
    CHECK(diags.errors > 0);
    CHECK(env->budget.left < BUDGET_OF_RUN);
    CHECK(env->budget.left > -BUDGET_OF_RUN / 10);
}

TEST(suggestions_keep_to_their_budget) {
    for (int n = 1; n <= 1000; n *= 10) {
        check_budget(misspelt, n);
        check_budget(misspelt_in_one, n);
        check_budget(holes, n);
    }
    for (int n = 1; n <= 30; n++)
        check_budget(doubling, n);
    check_budget(unknown_names, 5);
    check_budget(unknown_names, 100);
}

/* What is mended at little cost is; what would cost too much has its message without a suggestion. */
TEST(without_a_budget_the_message_is_bare) {
    check_budget(doubling, 5);
    CHECK_INT(diags.list.data[0]->fixes.len, 1);
    check_budget(doubling, 30);
    CHECK_INT(diags.list.data[0]->fixes.len, 0);
    CHECK(strstr(diags.list.data[0]->message, "there is no `hepl`") != NULL);
    env_begin_run(env);
    CHECK_INT(env->budget.left, BUDGET_OF_RUN);
}

/* Types are DAGs: printed they would be 2^30 long. */
TEST(pairs_of_pairs_are_small) {
    Str text = {0};
    str_add(&text, "def f0(x) { (x, x) }\n");
    for (int i = 1; i <= 30; i++)
        str_printf(&text, "def f%d(x) { f0(f%d(x)) }\n", i, i - 1);
    str_add(&text, "def g(x) { ");
    for (int i = 0; i < 30; i++)
        str_add(&text, "let x = (x, x); ");
    str_add(&text, "x }\ndef same(c, x) { if (c) { f30(x) } else { f30(x) } }\n"
                   "def f30th(x) { f30(x)");
    for (int i = 0; i < 31; i++)
        str_add(&text, i % 2 ? ".1" : ".0");
    str_add(&text, " }\n");
    env = env_new(NULL);
    CHECK(check(str_text(&text), INFER_FILE));
    CHECK(env_counts(env).steps < 30000);
    CHECK_TEXT(type_of("f30th"), "fn [a](a) -> a");
    CHECK(strlen(type_of("same")) > 2000 && strlen(type_of("same")) < 2200);
}

int main(void) {
    mem_init();
    RUN(chains_are_linear);
    RUN(scalars_need_no_relation);
    RUN(modules_are_linear);
    RUN(a_chain_of_products_is_checked_when_called);
    RUN(a_mistake_inside_lets_is_linear);
    RUN(a_definition_is_inferred_once);
    RUN(an_edit_checks_what_depends_on_it);
    RUN(a_suggestion_costs_its_item);
    RUN(a_change_to_a_type_costs_what_mentions_it);
    RUN(a_declaration_that_fails_costs_what_mentions_it);
    RUN(suggestions_keep_to_their_budget);
    RUN(without_a_budget_the_message_is_bare);
    RUN(pairs_of_pairs_are_small);
    return check_result();
}
