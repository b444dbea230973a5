/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed reads back as the same syntax, and prints the same again: random modules from every
 * production, the same with comments strewn in, the project's own files, and long chains. */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/str.h"
#include "parser/parser.h"
#include "parser/print.h"
#include "tests/property/ast_gen.h"
#include "tests/unit/check.h"

enum { MODULES = 12800, LINKS = 90000 };

static const PrintOptions plain = {0};

static Module *read_text(const char *text, size_t len, Diags **diags) {
    Module *m = NULL;
    *diags = mem_new(Diags);
    Source *source = source_new("printed", text, len, 0);
    return parse_module(source, NULL, *diags, &m) == PARSE_OK ? m : NULL;
}

static const char *first_message(const Diags *diags) {
    static char text[600];
    if (!diags->list.len)
        return "no diagnostic";
    const Diag *d = diags->list.data[0];
    uint32_t line = 0, column = 0;
    if (d->primary.span.source)
        span_locate(d->primary.span, &line, &column);
    snprintf(text, sizeof text, "%u:%u: %s", line, column, d->message);
    return text;
}

/* Prints, reads, compares, prints again. what: for messages. */
static bool round_trip(const Module *m, const char *what, Str *text) {
    Diags *diags;
    check_tried();
    Str again = {0};
    ast_print_module(text, m, &plain);
    Module *back = read_text(str_text(text), text->len, &diags);
    if (!back) {
        check_fail(__FILE__, __LINE__, "%s does not read back: %s\n%s", what, first_message(diags),
                   str_text(text));
        return false;
    }
    if (!ast_module_equal(m, back)) {
        ast_print_module(&again, back, &plain);
        check_fail(__FILE__, __LINE__, "%s reads back as something else:\n%s\n---\n%s", what,
                   str_text(text), str_text(&again));
        return false;
    }
    ast_print_module(&again, back, &plain);
    if (strcmp(str_text(text), str_text(&again)) != 0) {
        check_fail(__FILE__, __LINE__, "%s prints differently again:\n%s\n---\n%s", what,
                   str_text(text), str_text(&again));
        return false;
    }
    return true;
}

TEST(random_modules) {
    uint64_t first = check_seed(), n = (uint64_t)check_share(MODULES);
    for (uint64_t seed = first; seed < first + n; seed++) {
        Str text = {0};
        Module *m = gen_module(seed);
        if (!round_trip(m, fmt_text("module %d", (int)seed), &text))
            return;
    }
    if (n >= MODULES / 4) /* fewer need not hold every form */
        CHECK_TEXT(gen_missing(), "");
    check_tried();
}

/* ---- comments -------------------------------------------------------------------------------- */

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* The text with comments `<1>`, `<2>` … behind lines, on lines of their own and in lines. */
static int strew(Str *out, const char *text, uint64_t seed) {
    int n = 0;
    bool quoted = false, raw = strncmp(text, "#[version", 9) == 0;
    uint64_t state = seed;
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        bool doc = strncmp(line, "///", 3) == 0;
        if (strncmp(line, "#[metadata]", 11) == 0) {
            str_add(out, line);
            break;
        }
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned chance = (unsigned)(state >> 33) % 8;
        for (size_t i = 0; i < len; i++) {
            str_add_char(out, line[i]);
            if (line[i] == '\\' && quoted && !raw)
                str_add_char(out, line[++i]);
            else if (line[i] == '"' && !doc)
                quoted = !quoted;
            else if (line[i] == ' ' && i && strchr(",({=", line[i - 1]) && !quoted && !doc &&
                     chance < 2)
                str_printf(out, "/* <%d> */ ", ++n);
        }
        if (chance == 3 && !quoted && !doc)
            str_printf(out, "  // <%d>", ++n);
        str_add_char(out, '\n');
        if (chance == 4 && !quoted && !doc)
            str_printf(out, "// <%d>\n", ++n);
        line += len + (line[len] == '\n');
    }
    return n;
}

static bool keeps_comments(const Module *m, uint64_t seed) {
    Str text = {0}, strewn = {0}, printed = {0}, again = {0};
    Diags *diags;
    ast_print_module(&text, m, &plain);
    int n = strew(&strewn, str_text(&text), seed);
    Module *with = read_text(str_text(&strewn), strewn.len, &diags);
    check_tried();
    if (!with) {
        check_fail(__FILE__, __LINE__, "module %d with comments: %s\n%s", (int)seed,
                   first_message(diags), str_text(&strewn));
        return false;
    }
    ast_print_module(&printed, with, &plain);
    Module *back = read_text(str_text(&printed), printed.len, &diags);
    bool kept = back != NULL;
    for (int i = 1; i <= n; i++)
        kept &= count(str_text(&printed), fmt_text("<%d>", i)) == 1;
    if (back)
        ast_print_module(&again, back, &plain);
    if (!kept || !ast_module_equal(m, back) || strcmp(str_text(&printed), str_text(&again)) != 0) {
        check_fail(__FILE__, __LINE__, "module %d: comments of\n%s\nbecome\n%s\nand then\n%s",
                   (int)seed, str_text(&strewn), str_text(&printed), str_text(&again));
        return false;
    }
    return true;
}

TEST(comments_survive) {
    uint64_t first = check_seed(), n = (uint64_t)check_share(MODULES / 4);
    for (uint64_t seed = first; seed < first + n; seed++)
        if (!keeps_comments(gen_module(seed), seed))
            return;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *read_file(const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    Str s = {0};
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        str_add_n(&s, block, n);
    fclose(f);
    *len = s.len;
    return str_text(&s);
}

static void check_file(const char *path, int *read) {
    size_t len = 0;
    Diags *diags;
    Str text = {0};
    const char *source = read_file(path, &len);
    Module *m = source ? read_text(source, len, &diags) : NULL;
    if (!m) /* some golden tests are mistakes */
        return;
    *read += 1;
    round_trip(m, path, &text);
    for (size_t i = 0; i < m->comments.len; i++) {
        Span s = m->comments.data[i].span;
        while (s.end > s.begin && strchr(" \t\r\n", s.source->text[s.end - 1]))
            s.end--;
        const char *comment = mem_strndup(s.source->text + s.begin, s.end - s.begin);
        if (!strstr(str_text(&text), comment) && strncmp(comment, "///", 3) != 0)
            check_fail(__FILE__, __LINE__, "%s: lost the comment `%s`", path, comment);
    }
}

static void check_folder(const char *path, int *read) {
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        const char *inner = fmt_text("%s/%s", path, e->d_name);
        size_t n = strlen(e->d_name);
        if (e->d_name[0] == '.' || stat(inner, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode))
            check_folder(inner, read);
        else if (n > 4 && strcmp(e->d_name + n - 4, ".rly") == 0)
            check_file(inner, read);
    }
    if (dir)
        closedir(dir);
}

/* This file's folder is two below the root. */
static const char *root(void) {
    size_t n = strlen(__FILE__), own = strlen("tests/property/ast_roundtrip.c");
    return n > own ? mem_strndup(__FILE__, n - own) : ".";
}

TEST(own_files) {
    static const char *const folders[] = {"prelude", "stdlib", "examples", "tests/golden"};
    int read = 0;
    for (int i = 0; i < 4; i++)
        check_folder(fmt_text("%s/%s", root(), folders[i]), &read);
    if (read < 50)
        check_fail(__FILE__, __LINE__, "only %d files of %s read", read, root());
}

/* ---- canonical files ------------------------------------------------------------------------- */

/* tests/golden/fmt/NAME.rly is its own canonical text, and that of _NAME.rly; tvm….rly is what `fmt
 * --tvm` makes of _tvm….rly, with the program where that was built. */
static void check_canonical(const char *folder, const char *name) {
    size_t len = 0, n = 0;
    Diags *diags;
    const char *source = read_file(fmt_text("%s/%s", folder, name), &len);
    const char *raw = read_file(fmt_text("%s/_%s", folder, name), &n);
    Str other = {0};
    if (strncmp(name, "tvm", 3) != 0) {
        const char *texts[] = {source, raw};
        size_t lens[] = {len, n};
        for (int i = 0; i < 2 && texts[i]; i++) {
            Str text = {0};
            Module *m = read_text(texts[i], lens[i], &diags);
            if (m)
                ast_print_module(&text, m, &plain);
            CHECK_TEXT(str_text(&text), source);
        }
        return;
    }
    char block[4096];
    FILE *f = popen(fmt_text("test -x ./relay && ./relay fmt --tvm '%s/_%s'", folder, name), "r");
    for (size_t k; f && (k = fread(block, 1, sizeof block, f)) > 0;)
        str_add_n(&other, block, k);
    if (f && pclose(f) == 0)
        CHECK_TEXT(str_text(&other), source);
}

TEST(canonical_files) {
    const char *folder = fmt_text("%s/tests/golden/fmt", root());
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strstr(e->d_name, ".rly") && e->d_name[0] != '_') {
            check_canonical(folder, e->d_name);
            n++;
        }
    if (dir)
        closedir(dir);
    CHECK(n >= 4);
}

/* ---- chains ---------------------------------------------------------------------------------- */

static void check_chain(const char *before, const char *link, const char *after) {
    Str s = {0}, text = {0}, tvm = {0};
    Diags *diags;
    check_tried();
    str_add(&s, before);
    for (int i = 0; i < LINKS; i++)
        str_add(&s, link);
    str_add(&s, after);
    Module *m = read_text(str_text(&s), s.len, &diags);
    if (!m) {
        check_fail(__FILE__, __LINE__, "`%s%s…`: %s", before, link, first_message(diags));
        return;
    }
    ast_print_module(&text, m, &plain);
    Module *back = read_text(str_text(&text), text.len, &diags);
    if (!back || !ast_module_equal(m, back))
        check_fail(__FILE__, __LINE__, "`%s%s…` reads back as something else", before, link);
    PrintOptions options = {.tvm = true};
    ast_print_module(&tvm, m, &options);
}

TEST(chains) {
    check_chain("let x = 1", " + 1", ";");
    check_chain("let x = ", "1 :: ", "Nil;");
    check_chain("{ ", "f(); ", "1 }");
    check_chain("{ ", "let x = 1; ", "x }");
    check_chain("{ ", "%0 = f(1); ", "%0 }");
    check_chain("", "let x = 1;\n", "");
    check_chain("", "x\n", "");
    check_chain("f", " |> f", "");
    check_chain("f", " >> f", "");
    check_chain("f", " := f", "");
    check_chain("list[", "1, ", "]");
    check_chain("match x { ", "_ :: ", "_ => 1 }");
    check_chain("let x : L[1", " + 1", "] = 1;");
    check_chain("{ ", "// c\nf();\n", "1 }");
}

int main(void) {
    RUN(random_modules);
    RUN(comments_survive);
    RUN(own_files);
    RUN(canonical_files);
    RUN(chains);
    return check_result();
}
