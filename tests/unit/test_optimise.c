/* SPDX-License-Identifier: Apache-2.0 */
/* When code is optimised and when that is made anew, and that passes over calls stay linear. */
#include "tests/unit/check.h"

#include "eval/machine.h"
#include "passes/effects.h"
#include "passes/inline.h"
#include "repl/session_internal.h"

static Session *session;

static void drop(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)text;
    (void)n;
}

static void begin(int level, bool at_once) {
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    options.opt.level = level;
    options.opt.at_once = at_once;
    session = session_new(&options);
    SessionSink sink = {drop, drop, NULL, true};
    session_set_sink(session, &sink);
}

static void enter(const char *text) {
    CHECK_INT(session_enter(session, text, strlen(text), false), SESSION_OK);
}

typedef struct Counts {
    unsigned long long optimised, passes, anew;
} Counts;

static Counts counts(void) {
    Str out = {0};
    Counts c = {0};
    CHECK(session_info(session, "session", &out));
    CHECK_INT(sscanf(str_text(&out), "functions optimised: %llu, by %llu passes; made anew: %llu",
                     &c.optimised, &c.passes, &c.anew),
              3);
    return c;
}

TEST(cold_code_is_left_alone) {
    begin(2, false);
    enter("def f(x: int32) -> int32 { let y = x; y + 1 }");
    enter("f(f(1))");
    CHECK_INT(counts().optimised, 0);
    enter("def n(i: int32) -> int32 { if (i == 0) { 0 } else { n(i - 1) } }");
    enter("n(1000)");
    CHECK_INT(counts().optimised, 1);
    enter("n(1000)");
    CHECK_INT(counts().optimised, 1);
}

TEST(redefinition_drops_what_depends_on_it_and_nothing_else) {
    begin(2, true);
    enter("def f(x: int32) -> int32 { x + 1 }");
    enter("def g(x: int32) -> int32 { x * 2 }");
    enter("def uses_f(n: int32, a: int32) -> int32 { if (n == 0) { a } else { uses_f(n - 1, f(a)) "
          "} }");
    enter("def uses_g(n: int32, a: int32) -> int32 { if (n == 0) { a } else { uses_g(n - 1, g(a)) "
          "} }");
    enter("let before = uses_f(10, 0) + uses_g(2, 1);");
    Counts first = counts();
    CHECK_INT(first.anew, 0);
    enter("def f(x: int32) -> int32 { x + 3 }");
    enter("let after = uses_f(10, 0) + uses_g(2, 1);");
    CHECK_INT(counts().anew, 1);
    enter("assert(before == 14 && after == 34, \"the new definition is not used\")");
}

TEST(redefinition_reaches_copies) {
    begin(2, true);
    enter("def add(a: int32, x: int32) -> int32 { a + x }");
    enter("def total(xs: List[int32]) -> int32 { foldl(add, 0, xs) }");
    enter("assert(total(list[1, 2, 3]) == 6, \"wrong\")");
    enter("def add(a: int32, x: int32) -> int32 { a + x * 10 }");
    enter("assert(total(list[1, 2, 3]) == 60, \"the copy of foldl has the old function\")");
    enter("def add(a: int32, x: int32) -> int32 { a - x }");
    enter("assert(total(list[1, 2, 3]) == -6, \"the copy of foldl has an older function\")");
}

/* Two copies of `foldl`, for two functions. When one of these is redefined, what runs the other is entered as it is, and
 * what runs this one is made again, with its copy. */
TEST(redefinition_drops_the_copies_that_depend_on_it_and_no_others) {
    begin(2, true);
    enter("def times(a: int32, x: int32) -> int32 { a * x }");
    enter("def product(xs: List[int32]) -> int32 { foldl(times, 1, xs) }");
    enter("let xs = list[1, 2, 3, 4];");
    enter("let p = product(xs);");
    enter("def add(a: int32, x: int32) -> int32 { a + x }");
    enter("def total(xs: List[int32]) -> int32 { foldl(add, 0, xs) }");
    Counts before = counts();
    enter("let t = total(xs);");
    Counts first = counts();
    CHECK(first.optimised > before.optimised + 1); /* the item, and more than that */
    enter("def add(a: int32, x: int32) -> int32 { a - x }");
    enter("let q = product(xs);");
    Counts other = counts();
    CHECK_INT(other.anew, 1);
    CHECK_INT(other.optimised, first.optimised + 1); /* the item alone */
    enter("let u = total(xs);");
    CHECK_INT(counts().anew, 1);
    CHECK_INT(counts().optimised - other.optimised, first.optimised - before.optimised);
    enter("assert(p == 24 && q == 24 && t == 10 && u == -10, \"an old copy is used\")");
}

/* A definition that hands on a new function each time it calls itself is copied once. */
TEST(copies_of_copies_end) {
    begin(2, true);
    enter("def fact(n: int32, k: fn(int32) -> int32) -> int32 {"
          "  if (n == 0) { k(1) } else { fact(n - 1, fn (r: int32) -> int32 { k(n * r) }) } }");
    enter("assert(fact(10, fn (r) { r }) == 3628800, \"wrong\")");
    CHECK(counts().optimised < 30);
}

static Type *f32(void) { return type_scalar(DT_F32); }

/* A block of n lets, each of a call of a function literal. */
static Expr *block_of_calls(int n) {
    Var *x = var_new(sym_intern("x"), f32(), span_none());
    Expr *e = expr_var(x, span_none());
    for (int i = 0; i < n; i++) {
        Var *p = var_new(sym_intern("p"), f32(), span_none());
        Type *type = type_fn((Type *[]){f32()}, 1, f32(), type_pure());
        Expr *fn = expr_fn(&p, 1, expr_var(p, span_none()), type, span_none());
        Expr *one = expr_float(1.0, DT_F32, span_none());
        Expr *call = expr_call(fn, &one, 1, NULL, f32(), span_none());
        call->args = mem_new_n(Expr *, 1);
        call->args[0] = one;
        e = expr_let(i + 1 == n ? x : var_new(sym_intern("y"), f32(), span_none()), call, e);
    }
    return e;
}

static size_t bytes_in_use_after(int rounds) {
    for (int i = 0; i < rounds; i++) {
        enter(fmt_text("def act(z) { tanh(z) * %d.5 }", i));
        enter("grad(loss)(([1.0, 2.0], [2.0, 0.5]))");
    }
    mem_collect();
    mem_run_finalizers();
    mem_collect();
    return mem_heap_bytes();
}

/* What an old definition was made into is dropped with it: its derivative, its code, its plans. */
static void check_memory(bool at_once, int rounds) {
    begin(2, at_once);
    enter("def act(z) { tanh(z) }");
    enter("def loss((w, v)) { mean((act(3.0 * w) * v - 1.0) ** 2.0) }");
    size_t few = bytes_in_use_after(rounds), many = bytes_in_use_after(rounds);
    if (many > few + (4 << 20))
        printf("%zu KB in use after %d rounds, %zu KB after %d\n", few >> 10, rounds, many >> 10,
               2 * rounds);
    CHECK(many <= few + (4 << 20));
}

TEST(redefinition_leaves_nothing_behind) {
#ifdef RLY_GC_STRESS /* each round takes a hundred times as long */
    check_memory(true, 40);
#else
    check_memory(true, 400);
    check_memory(false, 800); /* more than passes_trim leaves */
#endif
}

/* A program of many items keeps no more copies of functions than a prompt does. */
TEST(items_leave_few_copies_behind) {
    enum { ITEMS = 300, MOST = 130 };
    Str text = {0};
    for (int i = 0; i < ITEMS; i++)
        str_printf(&text, "let _ = foldl(fn (a, x) { a * %d.0 + x }, 0.0, list[1.0, 2.0]);\n", i);
    begin(2, true);
    session_run_text(session, "items", str_text(&text), text.len, false);
    size_t copies = specialise_known(&session->interp->passes);
    CHECK(copies > 0 && copies <= MOST);
}

static unsigned long long operators_run(void) {
    Str out = {0};
    unsigned long long n = 0;
    CHECK(session_info(session, "session", &out));
    const char *at = strstr(str_text(&out), "operators run by reference: ");
    CHECK(at && sscanf(at, "operators run by reference: %llu", &n) == 1);
    return n;
}

/* Code for all rows is made when a loop of `vmap` first runs, and again when it has run hot. */
TEST(vmap_takes_all_rows_after_a_collection) {
    enum { RUNS = 100, ROWS = 1000 };
    begin(2, false);
    enter("let f = vmap(fn (x: float32) { x * x + 1.0 });");
    unsigned long long before = operators_run();
    for (int i = 0; i < RUNS; i++) {
        mem_collect();
        enter(fmt_text("let y = f(zeros(shape=[%d], dtype=float32));", ROWS));
    }
    CHECK(operators_run() - before < RUNS * 10);
}

enum { DEFINITIONS = 100 };

/* Asks for the effects of definitions that nobody else holds. */
static __attribute__((noinline)) void ask_effects(PassCtx *ctx, void ***watched) {
    for (int i = 0; i < DEFINITIONS; i++) {
        Global *g = mem_new(Global);
        g->kind = GLOBAL_DEF;
        g->name = sym_intern("made");
        g->value = block_of_calls(1)->a->a;
        CHECK_INT(effects_of_calling(ctx, g), 0);
        watched[i] = mem_watch(g);
    }
}

TEST(effects_keep_no_definition) {
    PassCtx ctx = {.env = session_env(session)};
    void **watched[DEFINITIONS];
    ask_effects(&ctx, watched);
    mem_collect();
    int kept = 0;
    for (int i = 0; i < DEFINITIONS; i++)
        kept += *watched[i] != NULL;
    CHECK(kept < DEFINITIONS / 2); /* some may be seen on the stack */
}

static uint64_t work(const char *pass, Expr *e) {
    DependencyVec deps = {0};
    OptOptions options = {.passes = &pass, .npasses = 1};
    PassCtx ctx = {.env = session_env(session), .opt = &options};
    (void)optimise(&ctx, e, NULL, NULL, &deps);
    return ctx.work;
}

TEST(replacing_calls_is_linear) {
    begin(2, true);
    static const char *const passes[] = {"inline", "specialise"};
    for (int i = 0; i < 2; i++) {
        uint64_t n = work(passes[i], block_of_calls(1000)),
                 n2 = work(passes[i], block_of_calls(2000));
        CHECK(n >= 1000 && n <= 20000);
        CHECK(n2 <= 2 * n + 10);
        CHECK(work(passes[i], block_of_calls(100000)) <= 100 * n + 1000);
    }
}

int main(void) {
    mem_init();
    RUN(cold_code_is_left_alone);
    RUN(redefinition_drops_what_depends_on_it_and_nothing_else);
    RUN(redefinition_drops_the_copies_that_depend_on_it_and_no_others);
    RUN(redefinition_reaches_copies);
    RUN(copies_of_copies_end);
    RUN(items_leave_few_copies_behind);
    RUN(redefinition_leaves_nothing_behind);
    RUN(vmap_takes_all_rows_after_a_collection);
    RUN(effects_keep_no_definition);
    RUN(replacing_calls_is_linear);
    return check_result();
}
