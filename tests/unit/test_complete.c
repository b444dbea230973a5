/* SPDX-License-Identifier: Apache-2.0 */
/* Completion: what is offered where, and that nothing it inserts makes a text unreadable. */
#include "repl/complete.h"

#include <dirent.h>

#include "parser/lexer.h"

#include "check.h"

static Session *session;

static void enter(const char *text) { session_enter(session, text, strlen(text), false); }

static void ignore(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)text;
    (void)n;
}

/* The first completions at the end of a text, separated by blanks. */
static const char *offered(const char *text, size_t most) {
    Completions c = {0};
    Str out = {0};
    complete_text(session, text, strlen(text), &c);
    for (size_t i = 0; i < c.list.len && i < most; i++)
        str_printf(&out, "%s%s", i ? " " : "", c.list.data[i].text);
    return str_text(&out);
}

TEST(places) {
    enter("type Line { Line { slope: float32, begin: float32 } }");
    enter("type Figure { Circle(float32), Square(float32) }");
    enter("let line = Line { slope: 1.0, begin: 0.0 }");
    enter("let figure = Circle(1.0)");
    CHECK_TEXT(offered("line.", 9), "slope begin");
    CHECK_TEXT(offered("1.0 + line.sl", 9), "slope");
    CHECK_TEXT(offered("sum(line, ax", 9), "axis=");
    CHECK_TEXT(offered("sum(line, axis=[1], ke", 9), "keepdims=");
    CHECK_TEXT(offered("sum(line, keepdims=", 9), "True False");
    enter("def slide(line, far, wide) { line.begin + far * wide }");
    CHECK_TEXT(offered("slide(line, fa", 1), "far=");
    CHECK_TEXT(offered("slide(line, wide=1.0, fa", 1), "far=");
    CHECK_TEXT(offered("slide(line, f(1, 2), wi", 1), "wide=");
    CHECK_TEXT(offered("match (figure) { Ci", 9), "Circle");
    CHECK_TEXT(offered("match (figure) { Circle(r) => r, S", 9), "Square");
    CHECK_TEXT(offered("Line { slo", 9), "slope");
    CHECK_TEXT(offered("Line { slope: fig", 9), "figure");
    CHECK_TEXT(offered("type P[n] { P { a: Fig", 9), "Figure");
    CHECK_TEXT(offered("{ line with be", 9), "begin");
    CHECK_TEXT(offered("type P { P { wh", 9), "");
    CHECK_TEXT(offered("nn.bias", 1), "bias_add");
    CHECK_TEXT(offered("import opti", 9), "optim");
    CHECK_TEXT(offered("def f(x: Fig", 9), "Figure");
    CHECK_TEXT(offered("def f(x: Tensor[(3,), float3", 9), "float32");
    CHECK_TEXT(offered(":ty", 1), ":type");
    CHECK_TEXT(offered(":type figu", 9), "figure");
    CHECK_TEXT(offered("take_a", 9), ""); /* only derivatives use it */
    CHECK_TEXT(offered(":nan o", 9), "on off");
    CHECK_TEXT(offered(":set se", 9), "seed");
    CHECK_TEXT(offered(":load ", 9), offered("load(\"", 9));
    CHECK_TEXT(offered("let lin", 9), ""); /* a name to be bound */
    CHECK_TEXT(offered("fn (wh", 9), "");  /* likewise, of a parameter */
    CHECK_TEXT(offered("def f(x, wh", 9), "");
    CHECK_TEXT(offered("fn (Lin", 9), "Line");          /* but in a pattern */
    CHECK_TEXT(offered("1 // li", 9), "");              /* a comment */
    CHECK_TEXT(offered("fn (width) { wi", 1), "width"); /* the nearest first */
}

TEST(hints) {
    CHECK_TEXT(complete_hint(session, "line", 4, 4), "line : Line");
    CHECK_TEXT(complete_hint(session, "line.slope + 1.0", 16, 7), "line.slope : float32");
    CHECK(strncmp(complete_hint(session, "sum(", 4, 4), "sum(data, axis=", 15) == 0);
    CHECK_TEXT(complete_hint(session, "slide(line, ", 12, 12), "slide(line, far, wide)");
    CHECK(complete_hint(session, "nosuch", 6, 6) == NULL);
}

/* ---- the goldens ----------------------------------------------------------------------------- */

static uint64_t state = 1;
static size_t draw(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

static const char *read_text(const char *path) {
    FILE *f = fopen(path, "rb");
    Str text = {0};
    for (int c; f && (c = getc(f)) != EOF;)
        str_add_char(&text, (char)c);
    if (f)
        fclose(f);
    return str_text(&text);
}

/* Cuts one name of a text short and completes it, with what stands behind it left as it is. */
static void complete_within(const char *path, const char *text) {
    Source *source = source_new("text", text, strlen(text), 0);
    Lexer lex;
    lexer_init(&lex, source, NULL);
    VEC(Token) names = {0};
    for (Token t = {0}; lexer_read(&lex, t.end, &t), t.kind != TOK_EOF && t.kind != TOK_ERROR;)
        if (t.kind == TOK_IDENT && t.word == WORD_NONE)
            vec_push(&names, t);
    if (!names.len)
        return;
    Token t = names.data[draw(names.len)];
    size_t cursor = t.begin + 1 + draw(t.end - t.begin);
    Completions c = {0};
    complete_text(session, text, cursor, &c);
    for (size_t i = 0; i < c.list.len && i < 4; i++) {
        const char *word = c.list.data[draw(c.list.len)].text, *rest = text + t.end;
        char last = word[strlen(word) - 1];
        /* It goes on with a member, a value; or brackets follow, which mean types behind a definition, or `=`, behind
         * the name of an argument, where `where` is none: completion does not look at what follows. */
        bool opens = strcmp(word, "Tensor") == 0; /* a type, once it has its brackets */
        if (last == '.' || last == '=' || *rest == '[' || *rest == '=' || opens)
            continue;
        const char *whole = fmt_text("%.*s%s%s", (int)c.begin, text, word, rest);
        check_tried();
        if (session_read_status(session, whole, strlen(whole)) != PARSE_OK)
            check_fail(__FILE__, __LINE__, "%s: `%s` at byte %zu does not read", path, word,
                       c.begin);
    }
}

TEST(still_reads) {
    const char *folder = RLY_SRCDIR "/tests/golden/eval";
    DIR *d = opendir(folder);
    VEC(const char *) paths = {0};
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".rly"))
            vec_push(&paths, fmt_text("%s/%s", folder, e->d_name));
    if (d)
        closedir(d);
    long n = paths.len ? check_share(1500) : 0;
    CHECK(paths.len > 10);
    for (long i = 0; i < n; i++) {
        const char *path = paths.data[draw(paths.len)], *text = read_text(path);
        if (!strchr(text, '#') && session_read_status(session, text, strlen(text)) == PARSE_OK)
            complete_within(path, text);
    }
}

int main(void) {
    mem_init();
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    session = session_new(&options);
    SessionSink sink = {ignore, ignore, NULL, true};
    session_set_sink(session, &sink);
    RUN(places);
    RUN(hints);
    RUN(still_reads);
    return check_result();
}
