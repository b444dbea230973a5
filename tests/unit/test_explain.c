/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of `relay explain`: the bad program draws its code, the good one no error. */
#include "base/diag.h"
#include "repl/session.h"
#include "tests/unit/check.h"

static void ignore(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)text;
    (void)n;
}

static void collect(void *ctx, const char *text, size_t n) { str_add_n(ctx, text, n); }

/* What a program has to say. */
static const char *run(const char *program) {
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    options.diag_style = DIAG_STYLE_SHORT;
    options.memory_bytes = 64 << 20; /* the program that uses all of it comes to an end */
    Session *s = session_new(&options);
    Str said = {0};
    if (!s)
        return "no session";
    SessionSink sink = {ignore, collect, &said};
    session_set_sink(s, &sink);
    session_run_text(s, "example", program, strlen(program), false);
    session_fini(s);
    return str_text(&said);
}

static DiagCode code;

TEST(example) {
    const DiagInfo *info = diag_get_info(code);
    if (info->bad[0]) {
        const char *said = run(info->bad);
        if (!strstr(said, fmt_text("[%s]", info->name)))
            check_fail(__FILE__, __LINE__, "the bad program says\n%s", said);
    }
    if (info->good[0]) {
        const char *said = run(info->good);
        if (strstr(said, "error["))
            check_fail(__FILE__, __LINE__, "the good program says\n%s", said);
    }
}

int main(void) {
    for (int c = DIAG_NONE + 1; c < DIAG_COUNT; c++) {
        code = (DiagCode)c;
        check_run(diag_get_info(code)->name, test_example);
    }
    return check_result();
}
