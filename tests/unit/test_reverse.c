/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives as code (passes/reverse/): which functions are taken, and that what is made of a first-order function
 * calls definitions alone, makes no reference and reads none. Their values are compared with the other engines by the
 * goldens. */
#include "config.h"

#include "tests/unit/check.h"

#include "passes/reverse/reverse.h"
#include "repl/session.h"

static Session *session;

static void run(const char *text) { session_run_text(session, "test", text, strlen(text), false); }

static GradKind kind = GRAD_VJP;
static bool merges = true; /* what is made is not differentiated again */
static uint64_t work;      /* nodes that the last derivative looked at */

static Expr *find(const char *name) {
    return env_find(session_env(session), sym_intern(name), SIGIL_GLOBAL).global->value;
}

static ReverseCode *derive(const char *name) {
    PassCtx ctx = {.env = session_env(session), .check = true};
    ReverseCode *code = reverse_derive(&ctx, kind, merges, find(name), NULL);
    work = ctx.work;
    return code;
}

typedef struct Count {
    Map seen;
    const Var *of; /* the function that is differentiated */
    int references, unknown_calls, closures;
} Count;

static void count(void *ctx, Expr *e) {
    Count *c = ctx;
    if (map_has(&c->seen, e))
        return;
    map_set(&c->seen, e, e);
    c->references += e->kind == EXPR_REF || e->kind == EXPR_READ || e->kind == EXPR_WRITE;
    c->closures += e->kind == EXPR_FN;
    c->unknown_calls += e->kind == EXPR_CALL &&
                        ((e->a->kind == EXPR_VAR && e->a->var != c->of) || e->a->kind == EXPR_CALL);
    if (e->kind == EXPR_GLOBAL && e->global->value) {
        c->closures--; /* the definition itself */
        count(c, e->global->value);
    }
    if (e->kind == EXPR_LET) {
        count(c, e->a);
        count(c, e->body);
        return;
    }
    expr_each_child(e, count, c);
}

static void check_taken(const char *name) {
    ReverseCode *code = derive(name);
    CHECK_TEXT(code->why ? code->why : "taken", "taken");
    if (!code->fn)
        return;
    Count c = {.of = code->of};
    count(&c, code->fn);
    CHECK_INT(c.references, 0);
    CHECK_INT(c.unknown_calls, 0);
}

/* Backwards and forwards. */
static void check_all_taken(const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        check_taken(names[i]);
    kind = GRAD_JVP;
    for (size_t i = 0; i < n; i++)
        check_taken(names[i]);
    kind = GRAD_VJP;
}

static void check_left(const char *name, const char *why) {
    ReverseCode *code = derive(name);
    CHECK(!code->fn);
    CHECK_TEXT(code->why ? code->why : "taken", why);
}

TEST(first_order_functions_are_taken) {
    run("def square(x: float32) { x * x }\n"
        "def newton(x: float64, a: float64, n: int32) -> float64 {\n"
        "  if (n == 0) { x } else { newton(x - (x * x - a) / (2.0f64 * x), a, n - 1) } }\n"
        "type Tree { Leaf(float32), Node(Tree, Tree) }\n"
        "def total(t: Tree) -> float32 {\n"
        "  match (t) { Leaf(x) => x * x, Node(l, r) => total(l) + total(r) } }\n"
        "def even(x: float32, n: int32) -> float32 { if (n == 0) { x } else { odd(x * x, n - 1) } "
        "}\n"
        "def odd(x: float32, n: int32) -> float32 { if (n == 0) { -x } else { even(x * 0.5, n - 1) "
        "} }\n"
        "type Point { Point { a: float32, b: float32 } }\n"
        "def area(p: Point) { p.a * p.b + p.a }\n"
        "def choose(x: float32) { let y = if (x > 0.0) { x * 2.0 } else { x * 3.0 }; y * y + x }\n"
        "def two_names(x: float32) { let y = if (x > 0.0) { x } else { x * x }; y * x }\n"
        "def same(x: float32) { x }\n"
        "def same_again(x: float32) { let y = same(x); y * x * sin(y) }\n"
        "def product(x: float32, y: float32, n: int32) -> float32 { if (n == 0) { x } else { "
        "y * product(x, y, n - 1) } }\n"
        "def power(x: float32) { product(x, x, 5) }\n"
        "def reads(x: Tensor[(3,), float32]) { x[0] * x[1] + sum(x) }\n"
        "def moved(p: Point) { let q = { p with a = p.a * p.b }; q.a * q.b + p.a }\n"
        "def pair(x: float32) { let h = x * x; (h, (h, x)) }\n"
        "def of_pair(x: float32) { let (a, (b, c)) = pair(x); a * a * b + b * c + x }\n"
        "def go(n: int32, y: float32, w: (float32, float32)) -> float32 {\n"
        "  if (n == 0) { y * w.1 } else { go(n - 1, w.0, w) } }\n"
        "def of_part(x: float32) { let w = (x * 2.0, x * 3.0); go(3, x, w) + w.1 }\n");
    const char *const names[] = {"square", "newton",  "total",     "even",       "area",
                                 "choose", "reads",   "two_names", "same_again", "power",
                                 "moved",  "of_pair", "of_part"};
    check_all_taken(names, sizeof names / sizeof *names);
}

TEST(known_function_arguments_are_taken) {
    run("def product(xs: List[float32]) { foldl(fn (a, x) { a * x }, 1.0, xs) }\n"
        "def scaled(w: float32, xs: List[float32]) { foldl(fn (a, x) { a * x * w }, 1.0, xs) }\n"
        "def grow(x: float32) { while(fn (x) { x < 100.0 }, fn (x) { x * x }, x) }\n"
        "def reversed(xs: List[float32]) { foldl(fn (acc, x) { Cons(x, acc) }, Nil, xs) }\n"
        "def doubled(xs: List[float32]) { map(fn (x) { x * 2.0 }, xs) }\n"
        "def states(x: float32) { list.sum(scan(fn (s, k) { s * s + s * k }, x, list[0.5, 0.25])) "
        "}\n");
    const char *const names[] = {"product", "scaled", "grow", "reversed", "doubled", "states"};
    check_all_taken(names, sizeof names / sizeof *names);
}

TEST(derivatives_inside_are_taken) {
    run("def inner(x: float32, y: float32) { x * y * y }\n"
        "def slope(x: float32) { deriv(fn (y: float32) { inner(x, y) })(x) * x }\n"
        "def along(x: float32) { jvp(fn (y: float32) { inner(x, y) })(x, x).1 }\n"
        "def third(x: float32) { deriv(deriv(deriv(fn (y: float32) { y * sin(y) })))(x) }\n"
        "def power(x: float32, n: int32) -> float32 { if (n == 0) { 1.0 } else { x * power(x, n - "
        "1) } }\n"
        "def slope_of_power(x: float32) { deriv(fn (y: float32) { power(y, 5) })(x) }\n");
    const char *const names[] = {"slope", "along", "third"};
    check_all_taken(names, sizeof names / sizeof *names);
    kind = GRAD_JVP;
    check_taken("slope_of_power");
    kind = GRAD_VJP;
}

TEST(other_functions_keep_the_twins) {
    run("def written(x: float32) { let r = hd(map(fn (y) { ref(y) }, list[x])); r := !r * !r; !r "
        "}\n"
        "def outside(q: ref(float32), x: float32) { q := x; x * !q }\n"
        "def twice_named(x: List[float32], c: bool) { let y = if (c) { x } else { Nil }; "
        "list.sum(y) * list.sum(x) }\n"
        "def both(x: List[float32], p: (List[float32], float32)) -> float32 { match (x) {\n"
        "Cons(h, t) => h * both(t, p) + list.sum(p.0), Nil => p.1 } }\n"
        "def given_twice(x: List[float32]) { both(x, (x, 2.0)) }\n"
        "def given(f: fn (float32) -> float32, x: float32) { f(x) }\n"
        "def slope(x: float32) { deriv(fn (y: float32) { let l = list[y, x]; hd(l) * list.sum(l) "
        "})(x) }\n"
        "def again(x: List[float32]) { checkpoint(fn (v: List[float32]) { list.sum(v) })(drop(1, "
        "x)) * list.sum(x) }\n"
        "type Form { Dot(float32), Bar(float32, float32) }\n"
        "def of_an_arm(f: Form, x: List[float32]) {\n"
        "  let s = given_twice(x);\n"
        "  let y = match (f) { Dot(a) => a, Bar(_, b) => b };\n"
        "  match (f) { Dot(a) => s * y * a, Bar(a, b) => s * y * a * b } }\n");
    CHECK(derive("written")->fn != NULL); /* it makes references */
    check_left("outside", "an active value reaches what may write it or has no derivative");
    check_left("given", "a function comes from outside");
    check_taken("twice_named");
    check_taken("of_an_arm");
    check_taken("given_twice");
    merges = false;
    check_taken("twice_named");
    merges = true;
    check_left("again", "a result is another name of a value that is used elsewhere");
    kind = GRAD_JVP;
    CHECK(derive("slope")->fn != NULL);
    CHECK(derive("written")->fn != NULL);
    kind = GRAD_VJP;
}

/* What a closure captured is looked at where that may cure a refusal, and nowhere else. */
TEST(a_refusal_says_whether_a_function_is_lacking) {
    run("def written_again(x: float32) { let r = ref(x); r := x * x; !r }\n"
        "def given_again(f: fn (float32) -> float32, x: float32) { f(x) }\n"
        "def derived_again(f: fn (float32) -> float32, x: float32) { x * deriv(f)(x) }\n"
        "def inside(f: fn (float32) -> float32, x: float32) { deriv(fn (y: float32) { f(x * y) "
        "})(x) }\n");
    CHECK(!derive("written_again")->lacks_function);
    CHECK(derive("given_again")->lacks_function);
    CHECK(derive("derived_again")->lacks_function);
    CHECK(derive("inside")->lacks_function);
}

static bool is_left_derivative(void *ctx, const Expr *e) {
    (void)ctx;
    return e->kind == EXPR_GRAD && e->is_left;
}

/* Whether the pass marks the derivative in a definition as tried in all ways. */
static bool is_marked(const char *name) {
    PassCtx ctx = {.env = session_env(session), .check = true};
    Global *g = env_find(session_env(session), sym_intern(name), SIGIL_GLOBAL).global;
    return expr_any(pass_find("derive")->run(&ctx, g->value), is_left_derivative, NULL);
}

/* A derivative that was tried in all ways is not tried again while it runs. */
TEST(a_derivative_that_was_tried_in_all_ways_is_marked) {
    run("def named(b: bool, x: List[float32], c: List[float32]) { let y = if (b) { x } else { c "
        "};\n"
        "checkpoint(fn (v: List[float32]) { list.sum(v) })(y) * list.sum(x) }\n"
        "def of_named(x: List[float32], c: List[float32]) { vjp(named)(True, x, c, 1.0).0 }\n"
        "def of_given(f: fn (float32) -> float32) { vjp(fn (x: float32) { f(x) })(1.0, 1.0).0 }\n");
    CHECK(is_marked("of_named"));
    CHECK(!is_marked("of_given"));
}

/* Which of two data a value is, the run decides; what follows is put into the arms of the choice, and taken. */
TEST(what_follows_a_choice_of_data_is_taken) {
    run("type Two { Two { a: float32, b: float32 } }\n"
        "def chosen(c: bool, p: Two, q: Two) { let r = if (c) { p } else { q }; r.a * r.b + p.a * "
        "q.b }\n"
        "def by_list(x: List[float32], c: bool) {\n"
        "  let y = if (c) { x } else { map(fn (v) { v * v }, x) };\n"
        "  match (y) { Cons(a, _) => match (x) { Cons(b, _) => a * b, Nil => a }, Nil => 0.0 } "
        "}\n"
        "def ratio(p: Two) { p.a / p.b }\n"
        "def given(c: bool, p: Two, q: Two) { ratio(if (c) { p } else { q }) * p.b }\n");
    const char *const names[] = {"chosen", "by_list", "given"};
    check_all_taken(names, sizeof names / sizeof *names);
}

/* Each function is made where it is first called, so what it gives is known before anything is made by that. */
TEST(functions_are_made_once) {
    run("def line(x: Tensor[(4,), float32], y: float32) { exp(x) * 3.0 + y }\n"
        "def bent(x: Tensor[(4,), float32]) { if (sum(x) > 0.0) { line(x, 2.0) } else { "
        "sin(line(x, 1.0)) } }\n"
        "def both(x: Tensor[(4,), float32]) { line(bent(x), 2.0) }\n"
        "def again(n: int32, x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {\n"
        "  if (n == 0) { x } else { line(again(n - 1, x), 1.0) }\n"
        "}\n"
        "def entry(x: Tensor[(4,), float32]) { x[1] * x[2] }\n");
    for (int i = 0; i < 2; i++) {
        kind = i ? GRAD_JVP : GRAD_VJP;
        CHECK_INT(derive("entry")->rounds, 1);
        CHECK_INT(derive("line")->rounds, 1);
        CHECK_INT(derive("both")->rounds, 1);
        CHECK_INT(derive("again")->rounds, 1); /* the end without a call tells what it gives */
    }
    kind = GRAD_VJP;
}

/* A function that is written in a definition is one function wherever that is called: the next reading finds it again. */
TEST(functions_in_a_copied_body_are_taken) {
    run("def pair(f: fn (float32) -> float32, x: float32) { (f(x), fn (t: float32) { x * t }) }\n"
        "def chained(x: float32) -> float32 {\n"
        "  foldl(fn (a, g) { g(a) }, pair(sin, x).1(x), list[fn (v) { v * x }, fn (v) { sin(v) "
        "}])\n"
        "}\n");
    const ReverseCode *code = derive("chained");
    CHECK_TEXT(code->why ? code->why : "taken", "taken");
    CHECK(code->rounds <= 4);
}

/* What a recursion gives is learnt from the choice that ends it, wherever that stands, and what a loop gives before its end. */
TEST(recursions_are_made_once) {
    run("def looped(n: int32, x: float32) -> float32 { if (n > 0) { looped(n - 1, sin(x)) } else { "
        "x * x } "
        "}\n"
        "def power(xs: List[float32], x: float32) -> float32 {\n"
        "  match (xs) { Cons(a, rest) => { let y = power(rest, x); if (a > 0.0) { x * y } else { y "
        "} }, Nil => x }\n"
        "}\n");
    CHECK_INT(derive("looped")->rounds, 1);
    kind = GRAD_JVP;
    CHECK_INT(derive("looped")->rounds, 1);
    CHECK_INT(derive("power")->rounds, 1);
    kind = GRAD_VJP;
}

static bool is_made_straight(void *ctx, const Expr *e) {
    (void)ctx;
    return e->kind == EXPR_GLOBAL && e->global->value && e->global->value->kind == EXPR_FN &&
           e->global->value->fn->is_straight;
}

/* What calls itself by way of another function does not stand in place of its calls. */
TEST(functions_that_call_each_other_are_not_straight) {
    run("def once(x: float32) { x * x }\n"
        "def down(x: float32, n: int32) -> float32 { if (n == 0) { x } else { sin(up(x, n)) } }\n"
        "def up(x: float32, n: int32) -> float32 { cos(down(x * x, n - 1)) }\n");
    CHECK(expr_any(derive("once")->fn, is_made_straight, NULL));
    CHECK(!expr_any(derive("down")->fn, is_made_straight, NULL));
}

/* The code of a function is kept for each set of functions that its closures captured. */
TEST(code_is_kept_by_what_is_captured) {
    run("def line(x: float32) { x * 3.0 }\n"
        "def bent(x: float32) { x * x }\n"
        "def scaled(f: fn (float32) -> float32) { fn (x: float32) { f(x) * x } }\n");
    PassCtx ctx = {.env = session_env(session), .check = true};
    Expr *literal = find("scaled")->fn->body;
    struct Known *line = reverse_known(find("line"), NULL, 0);
    struct Known *bent = reverse_known(find("bent"), NULL, 0);
    struct Known *first = reverse_known(literal, &line, 1);
    struct Known *second = reverse_known(literal, &bent, 1);
    const ReverseCode *of_line = reverse_get(&ctx, GRAD_VJP, true, literal, first);
    const ReverseCode *of_bent = reverse_get(&ctx, GRAD_VJP, true, literal, second);
    CHECK(of_line->fn && of_bent->fn && of_line != of_bent);
    CHECK(reverse_get(&ctx, GRAD_VJP, true, literal, NULL)->lacks_function);
    CHECK(reverse_get(&ctx, GRAD_VJP, true, literal, first) == of_line);
    CHECK(reverse_get(&ctx, GRAD_VJP, true, literal, second) == of_bent);
}

/* The passes run over a function once for all its derivatives. */
TEST(a_function_is_prepared_once) {
    run("def line(x: float32) { x * 3.0 }\n"
        "def bent(x: float32) { line(x) * x }\n");
    OptOptions opt;
    opt_options_init(&opt);
    PassCtx ctx = {.env = session_env(session), .check = true, .opt = &opt};
    CHECK(reverse_derive(&ctx, GRAD_VJP, true, find("bent"), NULL)->fn);
    uint64_t applied = ctx.applied;
    CHECK(applied > 0);
    CHECK(reverse_derive(&ctx, GRAD_JVP, true, find("bent"), NULL)->fn);
#ifndef RLY_GC_STRESS /* what is kept is collected there before it is asked for */
    CHECK_INT(ctx.applied, applied);
#endif
    const char *again = "def line(x: float32) { x * 4.0 }";
    session_enter(session, again, strlen(again), false);
    CHECK(reverse_derive(&ctx, GRAD_JVP, true, find("bent"), NULL)->fn);
    CHECK(ctx.applied > applied);
}

/* Code that stands in several places is looked at once. */
TEST(shared_code_is_looked_at_once) {
    run("def pick(x: float32) { if (x > 0.0) { 1 } else { 2 } }\n"
        "def picked(x: float32) { if (pick(x) > 2) { x * x } else { x } }\n");
    Fn *pick = find("pick")->fn;
    for (int i = 0; i < 20; i++) {
        Expr **both = mem_new_n(Expr *, 2);
        both[0] = both[1] = pick->body;
        pick->body = expr_call_op(&op_add, both, 2, attrs_defaults(&op_add), pick->body->type,
                                  span_none());
    }
    check_taken("picked");
}

/* Enters a definition and one that calls it, whose derivative is current until the first one is entered anew. */
static void check_seen(const char *callee, const char *caller, const char *name,
                       const char *again) {
    session_enter(session, callee, strlen(callee), false);
    session_enter(session, caller, strlen(caller), false);
    ReverseCode *code = derive(name);
    CHECK(code->fn && reverse_is_current(code));
    session_enter(session, again, strlen(again), false);
    CHECK(!reverse_is_current(code));
}

TEST(a_changed_definition_is_seen) {
    check_seen("def inner(x: float32) { x * 2.0 }", "def outer(x: float32) { inner(x) * x }",
               "outer", "def inner(x: float32) { x * 3.0 }");
}

/* So is that of a function with a derivative of its own. */
TEST(a_changed_checkpoint_is_seen) {
    check_seen("let kept = checkpoint(fn (x: float32) { x * 2.0 })",
               "def around(x: float32) { kept(x) * x }", "around",
               "let kept = checkpoint(fn (x: float32) { x * 3.0 })");
}

int main(void) {
    mem_init();
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    session = session_new(&options);
    RUN(first_order_functions_are_taken);
    RUN(known_function_arguments_are_taken);
    RUN(derivatives_inside_are_taken);
    RUN(other_functions_keep_the_twins);
    RUN(a_refusal_says_whether_a_function_is_lacking);
    RUN(a_derivative_that_was_tried_in_all_ways_is_marked);
    RUN(what_follows_a_choice_of_data_is_taken);
    RUN(functions_are_made_once);
    RUN(recursions_are_made_once);
    RUN(functions_in_a_copied_body_are_taken);
    RUN(functions_that_call_each_other_are_not_straight);
    RUN(code_is_kept_by_what_is_captured);
    RUN(a_function_is_prepared_once);
    RUN(shared_code_is_looked_at_once);
    RUN(a_changed_definition_is_seen);
    RUN(a_changed_checkpoint_is_seen);
    return check_result();
}
