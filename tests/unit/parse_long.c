/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of any length are read in loops; nesting beyond the limit is a diagnostic. */
#include "base/str.h"
#include "tests/unit/parse_dump.h"

enum { LINKS = 200000, LEVELS = 99990 };

static void repeat(Str *s, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        str_add(s, text);
}

static Reading read_repeated(const char *before, const char *text, size_t n, const char *after) {
    Str s = {0};
    str_add(&s, before);
    repeat(&s, text, n);
    str_add(&s, after);
    Reading r = {.text = str_text(&s), .len = s.len, .quiet = true};
    reading_start(&r);
    return r;
}

static void check_chain(const char *before, const char *link, const char *after) {
    Reading r = read_repeated(before, link, LINKS, after);
    check_tried();
    if (r.status != PARSE_OK)
        check_fail(__FILE__, __LINE__, "`%s%s…`: %s", before, link, r.dump);
}

TEST(chains) {
    check_chain("1", "+1", "");
    check_chain("", "1::", "Nil");
    check_chain("{", "f();", "1}");
    check_chain("{", "let x=1;", "x}");
    check_chain("", "let x=1 in ", "x");
    check_chain("", "let x=1;", "");
    check_chain("{", "%0=1;", "%0}");
    check_chain("", "%0=1;", "%0");
    check_chain("f", " >> f", "");
    check_chain("f", " |> f", "");
    check_chain("f", " := f", "");
    check_chain("f", "(1)", "");
    check_chain("x", ".1", "");
    check_chain("list[", "1,", "]");
    check_chain("match x {", "_::", "_ => 1}");
    check_chain("let x : L[1", "+1", "] = 1;");
    check_chain("1", "*2+3", "");
    check_chain("", ";", "");
    check_chain("", "x\n", "");
}

static void check_depth(const char *before, const char *open, const char *middle, const char *close,
                        const char *after) {
    Str s = {0};
    str_add(&s, middle);
    repeat(&s, close, LEVELS);
    str_add(&s, after);
    Reading r = read_repeated(before, open, LEVELS, str_text(&s));
    check_tried();
    if (r.status != PARSE_OK)
        check_fail(__FILE__, __LINE__, "`%s%s…`: %d diagnostics", before, open,
                   (int)r.diags.list.len);
    r = read_repeated(before, open, 3 * LEVELS, "");
    if (r.status != PARSE_FAILED || r.diags.list.len != 1 ||
        r.diags.list.data[0]->code != DIAG_R0009)
        check_fail(__FILE__, __LINE__, "`%s%s…` too deep: %d diagnostics", before, open,
                   (int)r.diags.list.len);
}

TEST(nesting) {
    check_depth("", "(", "1", ")", "");
    check_depth("", "[", "", "]", "");
    check_depth("", "{", "1", "}", "");
    check_depth("", "f(", "", ")", "");
    check_depth("", "-", "x", "", "");
    check_depth("", "!", "x", "", "");
    check_depth("", "2 **", "x", "", "");
    check_depth("", "sq ", "x", "", "");
    check_depth("let x : ", "(", "", ")", " = 1;");
    check_depth("let x : ", "A -> ", "B", "", " = 1;");
    check_depth("match x { ", "(", "", ")", " => 1 }");
    check_depth("f(a=", "[", "", "]", ")");
}

static void on_small_stack(void *arg) {
    Reading *r = arg;
    Source *source = source_new("test.rly", r->text, r->len, 0);
    r->status = parse_module(source, &r->options, &r->diags, &r->module);
}

TEST(small_stack) {
    Str s = {0};
    repeat(&s, "(", LEVELS);
    Reading r = {.text = str_text(&s), .len = s.len};
    mem_call_on_stack((size_t)4 << 20, on_small_stack, &r);
    CHECK_INT(r.status, PARSE_FAILED);
    CHECK(r.diags.list.len == 1 && r.diags.list.data[0]->code == DIAG_R0009);
}

/* A line of 10 MB of `1 + 1 + …` is five million nodes. */
TEST(nodes_are_small) { CHECK(sizeof(Ast) < 192); }

int main(void) {
    RUN(chains);
    RUN(nodes_are_small);
    RUN(nesting);
    RUN(small_stack);
    (void)read_prompt;
    (void)read_text;
    return check_result();
}
