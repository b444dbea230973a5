/* SPDX-License-Identifier: Apache-2.0 */
/* The prelude is read item by item when used; here every item is, so a mistake in one that no other
 * test uses is found. And an item checked alone has the type it has when all are checked before. */
#include "repl/prelude.h"
#include "tests/unit/check.h"

static Session *open_session(void) {
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    return session_new(&options);
}

TEST(every_item_checks) { CHECK(prelude_load_all(open_session())); }

TEST(alone_or_among_the_others) {
    Session *all = open_session(), *some = open_session();
    CHECK(prelude_load_all(all));
    SymbolVec names = {0};
    prelude_each_name(all, &names);
    CHECK(names.len > 50);
    for (size_t i = 0; i < names.len; i++) {
        Binding x = env_find(session_env(all), names.data[i], SIGIL_GLOBAL);
        Binding y = env_find(session_env(some), names.data[i], SIGIL_GLOBAL);
        Str s = {0}, t = {0};
        scheme_print(&s, x.global->scheme, NULL);
        scheme_print(&t, y.global->scheme, NULL);
        CHECK_TEXT(str_text(&s), str_text(&t));
    }
}

/* Stands for fmt_text in this program (tests/local.am). */
char *__wrap_fmt_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int formatted;

char *__wrap_fmt_text(const char *fmt, ...) {
    formatted++;
    Str s = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return s.text;
}

static int count_formatted(Session *s, const char *text) {
    formatted = 0;
    session_run_text(s, "test", text, strlen(text), false);
    return formatted;
}

/* A message is formatted where there is one to write, so a program without a mistake formats none. */
TEST(no_mistake_formats_nothing) {
    Session *s = open_session();
    formatted = 0;
    CHECK(prelude_load_all(s));
#ifdef RLY_DEBUG /* core_check is told what it checks, in words */
    return;
#endif
    CHECK_INT(formatted, 0);
    const char *text =
        "type Layer { Layer { w: Tensor[(2, 3), float32], b: Tensor[(3,), float32] } }\n"
        "type Pair[a] { Pair(a, a) }\n"
        "def apply(l: Layer, x: Tensor[(4, 2), float32]) -> Tensor[(4, 3), float32] {\n"
        "    x @@ l.w + l.b\n}\n"
        "def swap(p) { match (p) { Pair(x, y) => Pair(y, x) } }\n"
        "def loss(l) { let y: Tensor[(4, 3), float32] = apply(l, ones(shape=[4, 2])); mean(y * y) }"
        "\ndef slope(l) { grad(loss)(l) }\n"
        "def both(a, b) { if (a < 1.0 && b) { [a, 2.0] } else { [a, a] } }\n";
    CHECK_INT(count_formatted(s, text), 0);
    CHECK(count_formatted(s, "def wrong(l: Layer) { l.w @@ l.w }") > 0);
}

int main(void) {
    mem_init();
    RUN(every_item_checks);
    RUN(alone_or_among_the_others);
    RUN(no_mistake_formats_nothing);
    return check_result();
}
