/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"
#include "tests/unit/check.h"

/* The place of the k'th occurrence of `what`. */
static Span at(Source *s, const char *what, int k) {
    const char *p = s->text - 1;
    while (k-- >= 0)
        p = strstr(p + 1, what);
    uint32_t begin = (uint32_t)(p - s->text);
    return (Span){s, begin, begin + (uint32_t)strlen(what)};
}

static Source *source(const char *name, const char *text) {
    return source_new(name, text, strlen(text), 0);
}

static const char *full(const Diag *d) {
    Str s = {0};
    diag_print(&s, d, &(DiagLook){.style = DIAG_STYLE_FULL});
    return str_text(&s);
}

TEST(labels) {
    Source *s = source("train.rly", "\n\n\n  let h = x + w;\n");
    Diag *d = diag_new(DIAG_R0001, at(s, "+", 0), "these shapes do not broadcast");
    diag_add_label(d, at(s, "x", 0), "Tensor[(3,), float32]");
    diag_add_label(d, at(s, "w", 0), "Tensor[(4,), float32]");
    diag_add_fact(d, "axis 0 is 3 on the left\nand 4 on the right");
    diag_add_help(d, "`x`");
    CHECK_TEXT(full(d), "error[R0001]: these shapes do not broadcast\n"
                        "  --> train.rly:4:13\n"
                        "   |\n"
                        " 4 |   let h = x + w;\n"
                        "   |           - ^ - Tensor[(4,), float32]\n"
                        "   |           |\n"
                        "   |           Tensor[(3,), float32]\n"
                        "   = axis 0 is 3 on the left\n"
                        "     and 4 on the right\n"
                        "   = help: `x`\n");
}

TEST(lines_and_sources) {
    Source *s = source("a.rly", "one\ntwo\nthree\n4\n5\n6\n7\n8\n9\nten\n");
    Source *t = source("prompt 3", "\tdef \xe6\x97\xa5 x");
    Diag *d = diag_new(DIAG_R0001, at(s, "three", 0), "m");
    diag_set_label(d, "here");
    diag_add_label(d, at(t, "x", 0), "x\nof two lines");
    diag_add_label(d, at(s, "one", 0), "first");
    diag_add_label(d, at(s, "ten", 0), "");
    CHECK_TEXT(full(d), "error[R0001]: m\n"
                        "   --> a.rly:3:1\n"
                        "    |\n"
                        "  1 | one\n"
                        "    | --- first\n"
                        "  2 | two\n"
                        "  3 | three\n"
                        "    | ^^^^^ here\n"
                        "...\n"
                        " 10 | ten\n"
                        "    | ---\n"
                        "    |\n"
                        "   ::: prompt 3:1:8\n"
                        "    |\n"
                        "  1 |     def \xe6\x97\xa5 x\n"
                        "    |            - x\n"
                        "    |              of two lines\n");
}

TEST(odd_places) {
    Source *s = source("a", "let x =  \r\ny\n\x1b[31m\xff z");
    Diag *d = diag_new(DIAG_R0001, (Span){s, 4, (uint32_t)s->len}, "m");
    CHECK_TEXT(full(d), "error[R0001]: m\n  --> a:1:5\n   |\n 1 | let x =\n   |     ^^^\n 2 | y\n"
                        " 3 | \xef\xbf\xbd[31m\xef\xbf\xbd z\n   | ^^^^^^^^\n");
    d = diag_new(DIAG_R0001, at(s, "z", 0), "m");
    CHECK_TEXT(full(d), "error[R0001]: m\n  --> a:3:8\n   |\n"
                        " 3 | \xef\xbf\xbd[31m\xef\xbf\xbd z\n   |        ^\n");
    s = source("b", "x\n");
    d = diag_new(DIAG_R0001, (Span){s, 2, 2}, "m");
    diag_set_label(d, "the end");
    CHECK_TEXT(full(d), "error[R0001]: m\n  --> b:2:1\n   |\n 2 |\n   | ^ the end\n");
    d = diag_new(DIAG_R0001, span_none(), "nowhere");
    diag_add_label(d, span_none(), "a fact");
    CHECK_TEXT(full(d), "error[R0001]: nowhere\n   = a fact\n");
}

TEST(long_lines) {
    enum { N = 10000000 };
    char *big = mem_bytes(N);
    memset(big, 'a', N);
    memcpy(big + N / 2, "HERE", 4);
    Source *s = source_new("big", big, N, 0);
    Diag *d = diag_new(DIAG_R0001, (Span){s, N / 2, N / 2 + 4}, "m");
    diag_set_label(d, "here");
    diag_add_label(d, (Span){s, N - 1, N}, "end");
    diag_add_label(d, (Span){s, 0, N}, "all");
    const char *text = full(d);
    CHECK(strlen(text) < 2000);
    CHECK(strstr(text, "HERE") && strstr(text, "^^^^ here") && strstr(text, "- end"));
}

/* Every row fits. */
static void check_rows(const char *text, size_t width) {
    for (const char *row = text; *row; row += strcspn(row, "\n"), row += *row != 0)
        if (text_width(row, strcspn(row, "\n")) > width)
            check_fail(__FILE__, __LINE__, "a row of more than %zu columns in\n%s", width, text);
}

static const char *at_width(const Diag *d, int width) {
    Str s = {0};
    diag_print(&s, d, &(DiagLook){.width = width});
    check_rows(str_text(&s), (size_t)width);
    return str_text(&s);
}

TEST(narrow) {
    Source *s = source("train.rly",
                       "let loss = mean((prediction - truth) ** 2) + decay * sum(weights ** 2);\n");
    Diag *d = diag_new(DIAG_R0001, at(s, "truth", 0),
                       "what cannot be said in few words is said in many of them");
    diag_set_label(d, "Tensor[(3,), float32], of the file");
    diag_add_label(d, at(s, "prediction", 0), "short");
    diag_add_fact(d, "facts are broken at blanks, and go on below where they began");
    diag_add_help(d, "so are helps, which begin further to the right than facts do");
    CHECK_TEXT(at_width(d, 60), "error[R0001]: what cannot be said in few words is said in\n"
                                "    many of them\n"
                                "  --> train.rly:1:31\n"
                                "   |\n"
                                " 1 | ...s = mean((prediction - truth) ** 2) + decay * sum...\n"
                                "   |              ----------   ^^^^^\n"
                                "   |              |            |\n"
                                "   |              |            Tensor[(3,), float32], of the\n"
                                "   |              |            file\n"
                                "   |              short\n"
                                "   = facts are broken at blanks, and go on below where they\n"
                                "     began\n"
                                "   = help: so are helps, which begin further to the right\n"
                                "     than facts do\n");
    /* A label that has no room beside the line. */
    d = diag_new(DIAG_R0001, at(s, "weights", 0), "m");
    diag_set_label(d, "Tensor[(3,), float32], made by `zeros`");
    diag_add_label(d, at(s, "mean", 0), "float32");
    CHECK_TEXT(at_width(d, 72),
               "error[R0001]: m\n"
               "  --> train.rly:1:58\n"
               "   |\n"
               " 1 | ...= mean((prediction - truth) ** 2) + decay * sum(weights ** 2);\n"
               "   |      ----                                          ^^^^^^^\n"
               "   |      |\n"
               "   |      float32\n"
               "   = `weights`: Tensor[(3,), float32], made by `zeros`\n");
    for (int width = 40; width < 120; width++)
        at_width(d, width);
}

TEST(wide_characters) {
    /* wide, combining (e and an acute accent), emoji */
    Source *s = source("w", "\xe6\x97\xa5\xe6\x9c\xac + e\xcc\x81\xf0\x9f\x98\x80 ++\tx");
    Diag *d = diag_new(DIAG_R0001, at(s, "++", 0), "m");
    diag_add_label(d, at(s, "\xe6\x9c\xac", 0), "wide");
    diag_add_label(d, at(s, "x", 0), "");
    CHECK_TEXT(full(d), "error[R0001]: m\n  --> w:1:10\n   |\n"
                        " 1 | \xe6\x97\xa5\xe6\x9c\xac + e\xcc\x81\xf0\x9f\x98\x80 ++    x\n"
                        "   |   --       ^^    -\n"
                        "   |   |\n"
                        "   |   wide\n");
    Str text = {0};
    for (int i = 0; i < 100; i++)
        str_add(&text, "\xe6\x97\xa5");
    s = source("w", str_text(&text));
    for (uint32_t i = 0; i < 300; i += 30) {
        d = diag_new(DIAG_R0001, (Span){s, i, i + 3}, "m");
        const char *shown = at_width(d, 50);
        CHECK(text_is_utf8(shown, strlen(shown), NULL));
    }
}

TEST(by_place) {
    Source *s = source("a", "one two three"), *t = source("b", "x y");
    Diags diags = {0};
    diag_error(&diags, DIAG_R0001, at(s, "three", 0), "e3");
    diag_error(&diags, DIAG_R0001, at(t, "y", 0), "y");
    diag_error(&diags, DIAG_R0001, at(s, "one", 0), "e1");
    diag_error(&diags, DIAG_R0001, at(t, "x", 0), "x");
    diag_error(&diags, DIAG_R0001, at(s, "one", 0), "e1 again");
    Str out = {0};
    diags_print(&out, &diags, &(DiagLook){.style = DIAG_STYLE_SHORT});
    CHECK_TEXT(str_text(&out), "a:1:1: error[R0001]: e1\na:1:1: error[R0001]: e1 again\n"
                               "a:1:9: error[R0001]: e3\nb:1:1: error[R0001]: x\n"
                               "b:1:3: error[R0001]: y\n");
}

TEST(no_terminal_is_driven) {
    Source *s = source("a", "x");
    Diag *d = diag_new(DIAG_R0001, at(s, "x", 0), "a\033[31m\xff");
    diag_set_label(d, "b\007");
    diag_add_fact(d, "c\r");
    CHECK_TEXT(full(d), "error[R0001]: a\xef\xbf\xbd[31m\xef\xbf\xbd\n  --> a:1:1\n   |\n 1 | x\n"
                        "   | ^ b\xef\xbf\xbd\n   = c\xef\xbf\xbd\n");
}

TEST(fixes) {
    Source *s = source("a", "x @@ y");
    Diag *d = diag_new(DIAG_R0001, at(s, "@@", 0), "m");
    DiagFix *fix = diag_add_fix(d, at(s, "y", 0), "transpose(y)", "Tensor[(2, 3), float32]",
                                "`%s` checks", "x @@ transpose(y)");
    vec_push(&fix->edits, ((DiagEdit){at(s, "x", 0), "z"}));
    CHECK(strstr(full(d), "\n   = help: `x @@ transpose(y)` checks\n"));
    Str out = {0};
    diag_print(&out, d, &(DiagLook){.style = DIAG_STYLE_SHORT});
    CHECK_TEXT(str_text(&out), "a:1:3: error[R0001]: m; `x @@ transpose(y)` checks\n");
    out = (Str){0};
    diag_print(&out, d, &(DiagLook){.style = DIAG_STYLE_JSON});
    CHECK_TEXT(
        strstr(str_text(&out), "\"suggestions\""),
        "\"suggestions\":[{\"message\":\"`x @@ transpose(y)` checks\","
        "\"type\":\"Tensor[(2, 3), float32]\",\"edits\":[{\"file\":\"a\",\"line\":1,\"column\":6,"
        "\"end_line\":1,\"end_column\":7,\"begin\":5,\"end\":6,\"text\":\"transpose(y)\"},"
        "{\"file\":\"a\",\"line\":1,\"column\":1,\"end_line\":1,\"end_column\":2,\"begin\":0,"
        "\"end\":1,"
        "\"text\":\"z\"}]}]}\n");
}

TEST(other_styles) {
    Source *s = source("a\"b", "x + y");
    Diag *d = diag_new(DIAG_R0001, at(s, "+", 0), "two\nlines");
    diag_add_label(d, at(s, "y", 0), "\xff");
    diag_add_help(d, "h");
    Str out = {0};
    diag_print(&out, d, &(DiagLook){.style = DIAG_STYLE_SHORT});
    CHECK_TEXT(str_text(&out), "a\"b:1:3: error[R0001]: two lines\n");
    out = (Str){0};
    diag_print(&out, d, &(DiagLook){.style = DIAG_STYLE_JSON});
    CHECK_TEXT(str_text(&out),
               "{\"severity\":\"error\",\"code\":\"R0001\",\"message\":\"two\\nlines\","
               "\"file\":\"a\\\"b\",\"line\":1,\"column\":3,\"end_line\":1,\"end_column\":4,"
               "\"begin\":2,\"end\":3,\"label\":\"\",\"labels\":[{\"file\":\"a\\\"b\",\"line\":1,"
               "\"column\":5,\"end_line\":1,\"end_column\":6,\"begin\":4,\"end\":5,"
               "\"label\":\"\\ufffd\"}],\"facts\":[],\"helps\":[\"h\"],\"suggestions\":[]}\n");
}

TEST(at_most_five) {
    Diags diags = {0};
    for (int i = 0; i < 17; i++)
        diag_error(&diags, DIAG_R0001, span_none(), "e%d", i);
    Str out = {0};
    diags_print(&out, &diags, &(DiagLook){.style = DIAG_STYLE_FULL});
    CHECK(diags.errors == 17);
    CHECK_TEXT(strstr(str_text(&out), "error[R0001]: e4"), "error[R0001]: e4\nand 12 more\n");
}

TEST(table) {
    for (int c = DIAG_NONE + 1; c < DIAG_COUNT; c++) {
        const DiagInfo *info = diag_get_info((DiagCode)c);
        CHECK(diag_find_code(info->name) == (DiagCode)c);
        CHECK(info->title[0] && info->explanation[0]);
    }
    CHECK(diag_find_code("R9999") == DIAG_NONE);
}

int main(void) {
    RUN(labels);
    RUN(lines_and_sources);
    RUN(odd_places);
    RUN(long_lines);
    RUN(narrow);
    RUN(wide_characters);
    RUN(by_place);
    RUN(no_terminal_is_driven);
    RUN(fixes);
    RUN(other_styles);
    RUN(at_most_five);
    RUN(table);
    return check_result();
}
