/* SPDX-License-Identifier: Apache-2.0 */
/* How a large session answers: processor time of `:type` and of redefinitions, in one process.
 *
 *     bench/session PROGRAM.rly [DEFINITIONS]
 *
 * The program's parts, which blank lines separate (bench/ordinary.py), are entered one by one as at
 * the prompt until there are so many definitions (2,000). Printed are medians over many questions. */
#include "repl/session.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 25 };

static Session *session;
static bool failed;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, size_t n) {
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

static void quiet(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)text;
    (void)n;
}

static void complain(void *ctx, const char *text, size_t n) {
    (void)ctx;
    if (memmem(text, n, "error[", 6)) {
        failed = true;
        fwrite(text, 1, n, stderr);
    }
}

static double enter(const char *text, size_t n) {
    double t = now();
    if (session_enter(session, text, n, false) != SESSION_OK)
        failed = true;
    return now() - t;
}

/* ---- the program ----------------------------------------------------------------------------- */

static Str read_all(const char *path) {
    FILE *f = fopen(path, "r");
    Str s = {0};
    char block[1 << 16];
    size_t n;
    while (f && (n = fread(block, 1, sizeof block, f)) > 0)
        str_add_n(&s, block, n);
    if (f)
        fclose(f);
    return s;
}

static VEC(const char *) names; /* of functions defined */

/* Definitions in a part; their names are kept. */
static int definitions(const char *part, size_t n) {
    int count = 0;
    for (const char *p = part, *end = part + n; p < end;) {
        count += strncmp(p, "def ", 4) == 0 || strncmp(p, "let ", 4) == 0 ||
                 strncmp(p, "type ", 5) == 0;
        if (strncmp(p, "def ", 4) == 0)
            vec_push(&names, mem_strndup(p + 4, strcspn(p + 4, "[(")));
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : end;
    }
    return count;
}

static int enter_program(const char *text, int wanted) {
    int count = 0;
    while (*text && count < wanted) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        count += definitions(text, n);
        enter(text, n);
        text = end ? end + 2 : text + n;
    }
    return count;
}

/* ---- questions ------------------------------------------------------------------------------- */

static void ask(const char *what, const char *const *questions, size_t n) {
    double *times = mem_new_n(double, n *RUNS), worst = 0;
    size_t len = 0;
    for (int run = 0; run < RUNS; run++)
        for (size_t i = 0; i < n; i++) {
            Str out = {0};
            double t = now();
            if (!session_type_of(session, questions[i], false, &out))
                failed = true;
            times[len++] = now() - t;
        }
    double m = median(times, len);
    worst = times[len * 99 / 100];
    printf("%-42s %8.3f ms   (99 %%: %.3f)\n", what, m * 1e3, worst * 1e3);
}

static void chain(int n) {
    enter("def base(x: int32) { x }", 24);
    for (int i = 0; i < n; i++) {
        const char *text = i ? fmt_text("def link_%d(x) { link_%d(x) }", i, i - 1)
                             : "def link_0(x) { base(x) }";
        enter(text, strlen(text));
    }
}

/* base at another type each time: the chain over it is checked again, nothing else. */
static double redefine_base(void) {
    static const char *const texts[] = {"def base(x: int32) { x }", "def base(x: float32) { x }"};
    double times[RUNS];
    for (int i = 0; i < RUNS; i++)
        times[i] = enter(texts[(i + 1) % 2], strlen(texts[(i + 1) % 2]));
    return median(times, RUNS);
}

static void redefinitions(void) {
    enum { SMALL = 10, LARGE = 1000 };
    double alone[RUNS], new[RUNS];
    for (int i = 0; i < RUNS; i++) {
        const char *text = fmt_text("def fresh_%d(x: int32) { x + %d }", i, i);
        new[i] = enter(text, strlen(text));
        text = fmt_text("def lonely(x: %s) { x }", i % 2 ? "int32" : "float32");
        alone[i] = enter(text, strlen(text));
    }
    printf("%-42s %8.3f ms\n", "a new definition", median(new, RUNS) * 1e3);
    printf("%-42s %8.3f ms\n", "redefined, nothing depends on it", median(alone, RUNS) * 1e3);
    chain(SMALL);
    double small = redefine_base();
    printf("%-42s %8.3f ms\n", "redefined, 10 definitions depend on it", small * 1e3);
    chain(LARGE);
    double large = redefine_base();
    printf("%-42s %8.3f ms   %.1f us each\n", "redefined, 1,000 definitions depend on it",
           large * 1e3, (large - small) / (LARGE - SMALL) * 1e6);
}

static void run(char **argv) {
    int wanted = argv[2] ? atoi(argv[2]) : 2000;
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    session = session_new(&options);
    SessionSink sink = {quiet, complain, NULL, true};
    session_set_sink(session, &sink);
    static const char *const questions[] = {
        "fn (x, y) { x + y * x }",
        "map(fn (x) { x * x }, range(10))",
        "nn.dense(ones(shape=[64, 784]), zeros(shape=[128, 784]))",
        "grad(fn (x) { sin(x) })(1.0)",
        "(1, 2.5, \"text\")",
    };
    enum { N = sizeof questions / sizeof *questions };
    ask("`:type` in an empty session", questions, N);
    Str program = read_all(argv[1]);
    double t = now();
    int count = enter_program(str_text(&program), wanted);
    t = now() - t;
    printf("%-42s %8.3f ms   %.1f us each\n", fmt_text("%d definitions entered", count), t * 1e3,
           t / count * 1e6);
    ask("`:type` of five expressions", questions, N);
    ask("`:type` of every function", names.data, names.len);
    redefinitions();
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench/session PROGRAM.rly [DEFINITIONS]\n");
        return 2;
    }
    mem_init();
    run(argv);
    return failed;
}
