/* SPDX-License-Identifier: Apache-2.0 */
/* The generated pages of docs/ are those that `make docs` would write; the documented example of
 * each operator gives what it says. */
#include "docs/pages.h"
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

TEST(examples) {
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        said = (Str){0};
        session_run_text(session, "example", op->example, strlen(op->example), false);
        const char *text = str_text(&said);
        size_t n = strlen(op->example_result);
        check_tried();
        if (strncmp(text, op->example_result, n) != 0 || strcmp(text + n, "\n") != 0)
            check_fail(__FILE__, __LINE__, "%s: the example gives\n%s\nnot\n%s", op->name, text,
                       op->example_result);
    }
}

static void run_all(void *arg) {
    (void)arg;
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    options.diag_style = DIAG_STYLE_SHORT;
    session = session_new(&options);
    SessionSink sink = {collect, collect, NULL};
    session_set_sink(session, &sink);
    RUN(examples);
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
