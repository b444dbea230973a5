/* SPDX-License-Identifier: Apache-2.0 */
/* The generated pages of docs/ are those that `make docs` would write; the documented example of
 * each operator and word gives what it says, and every name of the library has one. */
#include "docs/pages.h"
#include "repl/doc.h"
#include "repl/library.h"
#include "repl/session_internal.h"
#include "tests/unit/check.h"
#include "types/op.h"

static const Page *page;
static Session *session;
static Str said;

static void collect(void *ctx, const char *text, size_t n) {
    (void)ctx;
    str_add_n(&said, text, n);
}

/* The first line that differs. */
static int compare(const char *a, const char *b, const char **line) {
    int number = 1;
    for (; *a && *a == *b; a++, b++)
        if (*a == '\n')
            number++;
    while (number > 1 && b > *line && b[-1] != '\n')
        b--;
    *line = mem_strndup(b, strcspn(b, "\n"));
    return *a == *b ? 0 : number;
}

static bool unavailable;

TEST(page) {
    const char *old = page_read(fmt_text("%s/docs/%s.md", RLY_SRCDIR, page->name));
    const char *why = NULL;
    Str text = {0};
    check_tried();
    if (!old)
        check_fail(__FILE__, __LINE__, "docs/%s.md cannot be read", page->name);
    else if (!page_print(page, session, old, &text, &why)) {
        unavailable = strncmp(why, "no kernels", 10) == 0;
        if (!unavailable)
            check_fail(__FILE__, __LINE__, "%s", why);
    } else {
        const char *line = str_text(&text);
        int number = compare(old, line, &line);
        if (number)
            check_fail(__FILE__, __LINE__,
                       "line %d of docs/%s.md should be\n%s\n`make docs` mends it", number,
                       page->name, line);
    }
}

static void check_example(const char *name, const char *example, const char *result) {
    said = (Str){0};
    session_run_text(session, "example", example, strlen(example), false);
    const char *text = str_text(&said);
    size_t n = strlen(result);
    check_tried();
    if (strncmp(text, result, n) != 0 || strcmp(text + n, "\n") != 0)
        check_fail(__FILE__, __LINE__, "%s: the example gives\n%s\nnot\n%s", name, text, result);
}

TEST(examples) {
    const WordDoc *w;
    for (size_t i = 0; i < op_count(); i++)
        check_example(op_at(i)->name, op_at(i)->example, op_at(i)->example_result);
    for (size_t i = 0; (w = word_doc_at(i)); i++)
        check_example(w->word, w->example, w->result);
}

/* That each example is true is seen where docs/library.md runs (tests/docs.py). */
TEST(library_has_examples) {
    LibraryItemVec items = {0};
    library_list(NULL, &items);
    for (size_t i = 0; i < items.len; i++) {
        check_tried();
        if (!items.data[i].example || !*items.data[i].doc)
            check_fail(__FILE__, __LINE__, "%s %s: the comment above it lacks a text or an example",
                       items.data[i].module, items.data[i].name);
    }
}

static void run_all(void *arg) {
    (void)arg;
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    options.diag_style = DIAG_STYLE_SHORT;
    session = session_new(&options);
    SessionSink sink = {collect, collect, NULL, true};
    session_set_sink(session, &sink);
    RUN(examples);
    RUN(library_has_examples);
    for (int i = 0; i < PAGE_COUNT; i++) {
        page = &pages[i];
        check_run(page->name, test_page);
        if (unavailable)
            printf("skip %s: there are no kernels here\n", page->name);
        unavailable = false;
    }
    session_fini(session);
}

int main(void) {
    mem_init();
    session_with_stack(NULL, run_all, NULL);
    return check_result();
}
