/* SPDX-License-Identifier: Apache-2.0 */
/* The work that programs are, counted: plans made and kernels run. Nothing here is timed. */
#include "repl/session.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

static Session *session;
static Str shown;

static void show(void *ctx, const char *text, size_t n) {
    (void)ctx;
    str_add_n(&shown, text, n);
}

static void begin(void) {
    SessionOptions options;
    session_options_init(&options);
    options.jit = false; /* every step is one operator run by reference */
    session = session_new(&options);
    session_set_sink(session, &(SessionSink){show, show, NULL, true});
}

static void enter(const char *text) {
    shown.len = 0;
    if (session_enter(session, text, strlen(text), false) != SESSION_OK)
        check_fail(__FILE__, __LINE__, "%s\n%s", text, str_text(&shown));
}

/* A number of `:info session`. */
static long count_of(const char *what) {
    Str info = {0};
    session_info(session, "session", &info);
    const char *at = strstr(str_text(&info), what);
    if (!at)
        BUG("`:info session` does not say `%s`", what);
    return strtol(at + strlen(what) + 2, NULL, 10);
}

typedef struct Work {
    long plans, steps, over;
} Work;

static Work count_work(void) {
    return (Work){count_of("plans made"), count_of("operators run by reference"),
                  count_of("results written over an argument")};
}

static Work work_of(const char *text) {
    Work before = count_work();
    enter(text);
    Work after = count_work();
    return (Work){after.plans - before.plans, after.steps - before.steps, after.over - before.over};
}

TEST(plans_are_kept) {
    begin();
    enter("def loop[n](i: int32, x: Tensor[(n,), float32]) -> Tensor[(n,), float32] {"
          "    if (i == 0) { x } else { loop(i - 1, nn.relu(x) * x) }"
          "}");
    Work w = work_of("loop(1000, full(1.0, shape=(16,), dtype=float32))");
    CHECK(w.steps >= 1000);
    CHECK(w.plans > 0 && w.plans < 4);
    enter("let v = full(1.0, shape=(16,), dtype=float32);");
    CHECK_INT(work_of("loop(1000, v)").plans, 0);
    session_fini(session);
}

/* Forty lengths over and over make forty plans. */
TEST(lengths_take_turns) {
    begin();
    enter("def double[n](x: Tensor[(n,), float32]) -> Tensor[(n,), float32] { x + x }");
    enter("def turn(x: Tensor[(40,), float32]) {"
          "    let p1 = double(x[0:10]); let p2 = double(x[0:20]); let p3 = double(x[0:30]);"
          "    sum(p1) + sum(p2) + sum(p3)"
          "}");
    enter("def loop(i: int32, x: Tensor[(40,), float32], s: float32) -> float32 {"
          "    if (i == 0) { s } else { loop(i - 1, x, s + turn(x)) }"
          "}");
    Work w = work_of("loop(100, ones(shape=(40,), dtype=float32), 0.0)");
    CHECK(w.plans < 16);
    session_fini(session);
}

/* Where a part begins belongs to no plan: one copies all of these columns, and another one adds them up. */
TEST(parts_share_a_plan) {
    begin();
    enter("def columns(i: int32, m: Tensor[(30, 20), float32], s: float32) -> float32 {"
          "    if (i == 0) { s } else {"
          "        let part = m[:, i - 1 : i + 1];"
          "        columns(i - 1, m, s + sum(part) + m[3, i])"
          "    }"
          "}");
    enter("let v = ones(shape=(30, 20), dtype=float32);");
    CHECK_INT(work_of("columns(18, v, 0.0)").plans, 2);
    CHECK(strstr(str_text(&shown), "1098"));
    CHECK_INT(work_of("columns(18, v, 0.0)").plans, 0);
    session_fini(session);
}

/* Ever new sizes: no more plans than calls, and the right values. */
TEST(the_table_is_bounded) {
    begin();
    enter("def loop(i: int64, s: int64) -> int64 {"
          "    if (i == 0) { s } else {"
          "        let x = arange(i, dtype=int64);"
          "        loop(i - 1, s + sum(x + x))"
          "    }"
          "}");
    enter("loop(6000, 0)");
    CHECK(strstr(str_text(&shown), "71999998000"));
    enter("loop(6000, 0)");
    CHECK(strstr(str_text(&shown), "71999998000"));
    session_fini(session);
}

/* The first iteration makes a tensor of its own, which the others overwrite. */
TEST(a_loop_overwrites_its_argument) {
    begin();
    enter("def loop[n](i: int32, x: Tensor[(n,), float32], b: Tensor[(n,), float32],"
          "            c: Tensor[(n,), float32]) -> Tensor[(n,), float32] {"
          "    if (i == 0) { x } else { let y = x * b; loop(i - 1, tanh(y + c) * b, b, c) }"
          "}");
    enter("let a = full(0.5, shape=(5000,), dtype=float32);");
    size_t live = tensor_bytes_live();
    Work w = work_of("let r = loop(1000, a, a, a);");
    CHECK(w.steps <= 1000 + 2);
    CHECK(w.over >= 999);
    CHECK(tensor_bytes_live() - live < 100000);
    session_fini(session);
}

/* The result of a call is its caller's own, and what a tail call leaves behind unread is given back. */
TEST(results_of_calls_are_given_back) {
    begin();
    enter("def twice(x: Tensor[(?,), float32]) { x + x }"
          "def last[a](n: int32, f: fn(a) -> a, x: a) -> a {"
          "    let y = f(x); if (n == 0) { y } else { last(n - 1, f, x) }"
          "}"
          "def first(n: int32, f: fn(Tensor[(?,), float32]) -> Tensor[(?,), float32], x) {"
          "    let y = f(x); if (n > 0) { first(n - 1, f, x) } else { y }"
          "}");
    enter("let a = full(0.5, shape=(50000,), dtype=float32);");
    size_t mapped = tensor_mappings();
    enter("sum(last(300, twice, a))");
    CHECK(strstr(str_text(&shown), "50000.0"));
    enter("sum(first(300, twice, a))");
    CHECK(strstr(str_text(&shown), "50000.0"));
    CHECK(tensor_mappings() - mapped <= 4);
    /* what else refers to it stays */
    enter("def keep(n: int32, f: fn(Tensor[(?,), float32]) -> Tensor[(?,), float32], x, all) {"
          "    let y = f(x); if (n == 0) { all } else { keep(n - 1, f, x, y :: all) }"
          "}");
    enter("list.sum(map(fn (y) { sum(y) }, keep(3, twice, a, Nil)))");
    CHECK(strstr(str_text(&shown), "150000.0"));
    enter("def same(x: Tensor[(?,), float32]) { x }");
    enter("sum(last(3, same, a)) + sum(last(3, same, a))");
    CHECK(strstr(str_text(&shown), "50000.0"));
    Work w = work_of("def more(n: int32, f, x: Tensor[(?,), float32]) -> Tensor[(?,), float32] {"
                     "    if (n == 0) { x } else { more(n - 1, f, f(x) * 0.5) }"
                     "}"
                     "sum(more(100, twice, a))");
    CHECK(strstr(str_text(&shown), "25000.0"));
    CHECK(w.over >= 99);
    session_fini(session);
}

/* n updates of one tensor copy it once. */
TEST(updates_are_in_place) {
    begin();
    enter("def fill(i: int32, x: Tensor[(?,), float32]) -> Tensor[(?,), float32] {"
          "    if (i == 0) { x } else { fill(i - 1, { x with [i - 1] = 1.0 }) }"
          "}");
    Work w = work_of("sum(fill(1000, zeros(shape=[1000])))");
    CHECK(w.over >= 999);
    CHECK(strstr(str_text(&shown), "1000.0"));
    enter("def put(i: int32, x: Tensor[(?,), float32]) -> Tensor[(?,), float32] {"
          "    if (i == 0) { x } else { put(i - 1, { x with [[i - 1, 0]] = [1.0, 2.0] }) }"
          "}");
    CHECK(work_of("put(1000, zeros(shape=[1000]))").over >= 999);
    session_fini(session);
}

/* By how much an entry raises such a number. */
static long more_of(const char *name, const char *text) {
    long before = count_of(name);
    enter(text);
    return count_of(name) - before;
}

/* How many calls of derivatives kept a tape. */
static long tapes_of(const char *text) { return more_of("derivatives that kept a tape", text); }

/* A derivative of a closure is made into code for the functions that the closure captured. */
TEST(captured_functions_are_known) {
    begin();
    enter("def slope(f, x: float64) { deriv(fn (y: float64) { f(y) * f(y) })(x) }");
    enter("def curve(f, x: float64) { deriv(deriv(fn (y: float64) -> float64 { f(y) }))(x) }");
    enter("def twice(f) { fn (x) { f(f(x)) } }");
    enter("def power(n: int32) { let go = fn (x, n) { if (n == 0) { 1.0f64 } else { x * go(x, n - "
          "1) } }; fn (x) { go(x, n) } }");
    CHECK_INT(tapes_of("slope(fn (x) { x * x }, 3.0f64)"), 0);
    CHECK_INT(tapes_of("slope(sin, 3.0f64)"), 0);
    CHECK_INT(tapes_of("slope(twice(twice(cos)), 3.0f64)"), 0);
    CHECK_INT(tapes_of("slope(power(4), 3.0f64)"), 0);
    CHECK_INT(tapes_of("curve(fn (x) { x * x * x }, 3.0f64)"), 0);
    CHECK_INT(tapes_of("jvp(fn (x) { slope(sin, x) })(3.0f64, 1.0f64)"), 0);
    session_fini(session);
}

/* So are loops with checkpoints, of which tests/golden/grad/checkpoints_bound_memory.rly says what they keep. */
TEST(checkpoints_of_loops_are_code) {
    static const char *const calls[] = {
        "loop(900, f, x, checkpoint=%d)",
        "while(fn (s) { s.1 < 900 }, fn (s) { (f(s.0), s.1 + 1) }, (x, 0), checkpoint=%d).0",
        "foldl(fn (y, i) { f(y) }, x, range(900), checkpoint=%d)"};
    begin();
    enter("let x = full(0.0001, shape=(100,), dtype=float64);");
    enter("let f = fn (y) { sin(y) + 0.0001 };");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int k = 0; k < 60; k += 30)
            CHECK_INT(tapes_of(fmt_text("grad(fn (x) { sum(%s) })(x).0", fmt_text(calls[i], k))),
                      0);
    session_fini(session);
}

/* Checkpoints and derivatives that are written are code, and so is what is called by two names. */
TEST(own_derivatives_keep_no_tape) {
    begin();
    enter("let again = checkpoint(fn (x: float64) { x * x });");
    enter("let clip = custom_grad(fn (x: float64) { x }, fn (x, ct) { (where(ct > 1.0, 1.0, ct),) "
          "});");
    enter("def steps(n: int32, x: float64) -> float64 { if (n == 1) { sin(x) + x } else { let h = "
          "n / 2;"
          "  checkpoint(fn (x: float64) { steps(n - h, x) })(checkpoint(fn (x: float64) { steps(h, "
          "x) })(x)) } }");
    CHECK_INT(tapes_of("grad(fn (x) { again(x) * x })(3.0f64)"), 0);
    CHECK_INT(tapes_of("deriv(fn (x) { x * checkpoint(fn (y) { x * y * y })(x) })(2.0f64)"), 0);
    CHECK_INT(tapes_of("jvp(fn (x) { x * checkpoint(fn (y) { x * y * y })(x) })(2.0f64, 1.0f64)"),
              0);
    CHECK_INT(tapes_of("deriv(fn (x) { steps(64, x) })(0.01f64)"), 0);
    CHECK_INT(tapes_of("grad(fn (x) { clip(x) * clip(x * x) })(3.0f64)"), 0);
    CHECK_INT(tapes_of("grad(fn (xs) { list.sum(map(clip, xs)) })(list[1.0f64, 2.0])"), 0);
    CHECK_INT(
        tapes_of(
            "grad(fn (x, y) { let g = custom_grad(fn (y, z) { y * z }, fn (y, z, ct) { (ct, z) });"
            "  g(x, y) * x })(2.0f64, 3.0f64)"),
        0);
    CHECK_INT(tapes_of("deriv(fn (x) { let y = if (x > 0.0) { x } else { -x }; y * x })(2.0f64)"),
              0);
    session_fini(session);
}

/* Intermediate tensors are given back at their last use: a thousand rounds live in the room of one. */
TEST(intermediate_tensors_are_given_back) {
    begin();
    enter("def round(a: Tensor[(200, 200), float32]) {"
          "    let b = a @@ a; let c = transpose(b) @@ b; let d = nn.relu(c) + b; sum(d @@ c)"
          "}");
    enter("def loop(i: int32, a: Tensor[(200, 200), float32], s: float32) -> float32 {"
          "    if (i == 0) { s } else { loop(i - 1, a, s + round(a)) }"
          "}");
    enter("let a = full(0.01, shape=(200, 200), dtype=float32);");
    size_t mappings = tensor_mappings();
    enter("loop(50, a, 0.0)");
    CHECK(tensor_mappings() - mappings < 10);
    session_fini(session);
}

/* The bytes asked of the collector for each of n elements, where `text` takes their number. */
static size_t bytes_each_of(int n, const char *text) {
    size_t asked[2];
    for (int round = 0; round < 2; round++) /* what the first one prepares is there in the second */
        for (int i = 0; i < 2; i++) {
            const char *entry = fmt_text(text, n * (i + 1));
            mem_collect();
            size_t before = mem_asked_bytes();
            enter(entry);
            mem_collect();
            asked[i] = mem_asked_bytes() - before;
        }
    return asked[1] > asked[0] ? (asked[1] - asked[0] + (size_t)n / 2) / (size_t)n : 0;
}

/* Of so many that what an entry takes by itself, up to 25 kB more in one round than in another, is less than half a byte of each. */
static size_t bytes_each(const char *text) { return bytes_each_of(120000, text); }

/* What derivatives keep and make for an element of a list. */
TEST(derivatives_make_no_more_than_they_keep) {
    begin();
    enter("def ones(n: int32, xs: List[float64]) -> List[float64] { if (n == 0) { xs } else { "
          "ones(n - 1, Cons(1.0, xs)) } }");
    enter("def reversed(xs: List[float64]) { foldl(fn (acc, x) { Cons(x, acc) }, Nil, xs) }");
    enter("def product(xs: List[float64]) { foldl(fn (p, x) { p * x }, 1.0, xs) }");
    size_t list = bytes_each("{ let xs = ones(%d, Nil); 0 }");
    CHECK(list >= 30 && list <= 34);
    size_t seed = bytes_each(
        "{ let xs = ones(%d, Nil); let (_, (g,)) = vjp(reversed)(xs, xs); 0 }");
    CHECK(seed - list <
          70); /* the reversed list and a frame, in whose place the cotangent is made */
    size_t of_fold = bytes_each("{ let xs = ones(%d, Nil); let (_, (g,)) = grad(product)(xs); 0 }");
    CHECK(of_fold - list < 100); /* a frame of three values and the cotangent */
    session_fini(session);
}

/* The way back of a recursion gives its frames back: those of a second call take their place. */
TEST(frames_are_given_back) {
    begin();
    enter("type Tree { Leaf(float64), Node(Tree, Tree) }");
    enter("def make(n: int32) -> Tree { if (n == 0) { Leaf(0.5) } else { Node(make(n - 1), make(n "
          "- 1)) } }");
    enter("def product(t: Tree, a: float64) -> float64 { match (t) { Leaf(x) => x * a,"
          "  Node(l, r) => product(l, a) * product(r, a) } }");
    enter("def again(n: int32, t: Tree, a: float64) -> float64 { if (n == 0) { a } else {"
          "  again(n - 1, t, a + deriv(fn (a) { product(t, a) })(a) * 0.0) } }");
    enter("let t = make(10);");
    enter("again(20, t, 1.0)");
    mem_collect();
    size_t before = mem_asked_bytes();
    enter("again(20, t, 1.0)");
    mem_collect();
    size_t nodes = 20 * 2047, frame = 80;
    CHECK(mem_asked_bytes() - before < nodes * frame / 4);
    session_fini(session);
}

/* What a layer adds to its weights is given back once it was added to the sum of all steps (Note [Sums that end] in
 * eval/own.h): a tensor of 960 bytes a layer and step. */
TEST(sums_of_parts_are_given_back) {
    begin();
    enter("def layer(x, (p: Tensor[(?, ?), float64], h)) {"
          "    let y = x * p[0] + h * p[1]; (y, y)"
          "}"
          "def run(main: Tensor[(?, ?, ?), float64], n: int32) -> float64 {"
          "    let ps = list.rows(main);"
          "    let step = fn ((hs, s), i: int32) {"
          "        let (top, hs) = map_accuml(layer, main[0, 0], zip(ps, hs)); (hs, s + sum(top))"
          "    };"
          "    foldl(step, (map(fn (p) { p[0] }, ps), 0.0), range(n)).1"
          "}"
          "let main = full(0.5, shape=[2, 2, 60], dtype=float64);");
    CHECK(bytes_each_of(400, "grad(fn (m) { run(m, %d) })(main)") < 14000); /* else 15,300 */
    session_fini(session);
}

/* Where the arguments tell all that the way back reads, nothing is made for it: a deep recursion, and all nodes of a tree. */
TEST(arguments_serve_as_frames) {
    begin();
    enter("def handed(w: float64, n: int32) -> float64 {"
          "  if (n == 0) { w } else { w * 0.5 + 0.5 * handed(w, n - 1) } }");
    CHECK(bytes_each("grad(handed)(1.0, %d)") == 0);
    enter("type Tree { Leaf(float64), Node(Tree, Tree) }");
    enter("def make(n: int32) -> Tree {"
          "  if (n == 0) { Leaf(0.5) } else { Node(Leaf(0.5), make(n - 1)) } }");
    enter("def total(t: Tree, a: float64) -> float64 { match (t) { Leaf(x) => x * a,"
          "  Node(l, r) => total(l, a) + total(r, a) } }");
    size_t made = bytes_each("{ let t = make(%d); 0 }");
    size_t summed = bytes_each("{ let t = make(%d); deriv(fn (a) { total(t, a) })(3.0) }");
    CHECK(made > 0 && summed <= made); /* but for what code takes that is made once */
    session_fini(session);
}

/* The tuple that a place of an index is serves the next index, and stays where something else reads it. */
TEST(places_are_given_back) {
    begin();
    enter("def reads(x: Tensor[(?, ?), float64], i: int32, s: float64) -> float64 {"
          "  if (i == 0) { s } else { reads(x, i - 1, s + x[mod(i, 2), 1] * s) } }");
    CHECK(bytes_each("reads([[0.5, 0.25], [0.125, 1.0]], %d, 1.0)") == 0);
    enter("def pairs(i: int32, s: float64) -> float64 {"
          "  if (i == 0) { s } else {"
          "    let t = ([s, s], [1.0f64]);"
          "    let c = concatenate(t);"
          "    let (a, b) = t;"
          "    pairs(i - 1, sum(c) - sum(a) + sum(b)) } }");
    enter("pairs(5, 3.0)");
    CHECK_TEXT(str_text(&shown), "2.0 : float64\n");
    session_fini(session);
}

static long derived_by(const char *text) { return more_of("derivatives made into code", text); }

/* A function that holds a value in a reference that came in data is differentiated while it runs. */
TEST(calls_of_one_operator_share_a_tangent) {
    begin();
    /* a reference that holds a function stays with the twins */
    enter("def held(x) { hd(map(fn (y) { ref(fn (_) { y }) }, list[x])) }");
    CHECK_INT(derived_by("let twice = fn (x: Tensor[(?,), float64]) {"
                         "  let r = held(x); sin((!r)(x)) * sin(x) * x };"
                         "jvp(twice)([1.0, 2.0], [1.0, 0.5])"),
              2);
    CHECK_INT(derived_by("jvp(fn (x: Tensor[(3,), float64]) { let r = held(sin(x)); (!r)(x) * x })"
                         "([1.0, 2.0, 3.0], [1.0, 0.5, 0.25])"),
              0);
    CHECK_INT(derived_by("jvp(fn (x: float64) { let r = held(sin(x)); (!r)(x) * x })(1.0, 1.0)"),
              2);
    CHECK_INT(derived_by("jvp(fn (x: Tensor[(2, 2), float64]) {"
                         "  let r = held(sum(x, axis=[0])); (!r)(x) * sum(x, axis=[1]) })"
                         "([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.5], [0.25, 2.0]])"),
              2);
}

static size_t heap_after_sessions(int n) {
    for (int i = 0; i < n; i++) {
        begin();
        enter("let r = ref(Nil); r := map(fn (x) { x * 2 }, range(100)); grad(fn (x) { x * x "
              "})(3.0)");
        session_fini(session);
    }
    session = NULL;
    mem_collect();
    return mem_heap_bytes();
}

/* What a session leaves behind when it has ended: next to nothing. A word that only looks like a pointer may keep one
 * alive at times, so the least of several rounds counts. */
TEST(sessions_end) {
    enum { SESSIONS = 20, LEFT = 16 << 10, ROUNDS = 4 };
    size_t least = SIZE_MAX, before = heap_after_sessions(SESSIONS);
    for (int i = 0; i < ROUNDS; i++) {
        size_t after = heap_after_sessions(SESSIONS), more = after > before ? after - before : 0;
        least = more < least ? more : least;
        before = after;
    }
    CHECK(least < SESSIONS * LEFT);
}

int main(void) {
    RUN(plans_are_kept);
    RUN(lengths_take_turns);
    RUN(parts_share_a_plan);
    RUN(the_table_is_bounded);
    RUN(a_loop_overwrites_its_argument);
    RUN(results_of_calls_are_given_back);
    RUN(updates_are_in_place);
    RUN(captured_functions_are_known);
    RUN(own_derivatives_keep_no_tape);
    RUN(checkpoints_of_loops_are_code);
    RUN(intermediate_tensors_are_given_back);
    RUN(derivatives_make_no_more_than_they_keep);
    RUN(frames_are_given_back);
    RUN(arguments_serve_as_frames);
    RUN(places_are_given_back);
    RUN(sums_of_parts_are_given_back);
    RUN(calls_of_one_operator_share_a_tangent);
    RUN(sessions_end);
    return check_result();
}
