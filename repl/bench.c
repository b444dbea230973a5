/* SPDX-License-Identifier: Apache-2.0 */
/* `:bench e`: the median of several runs. The first, which compiles, is told apart. */
#include <stdlib.h>

#include "repl/session_internal.h"
#include "types/mend/mend.h"

enum { LEAST_RUNS = 5, MOST_RUNS = 1000 };
static const double enough_ms = 500;

typedef struct Bench {
    Session *s;
    const char *text;
    double first, runs[MOST_RUNS];
    size_t nruns;
    bool ok;
} Bench;

static bool run_once(Bench *b, Expr *e, double *ms) {
    Value v;
    double begin = session_now_ms();
    EvalStatus status = interp_eval(b->s->interp, e, &v);
    *ms = session_now_ms() - begin;
    return status == EVAL_OK;
}

static void run_bench(void *arg) {
    Bench *b = arg;
    Session *s = b->s;
    Diags *diags = mem_new(Diags), *before = interp_get_diags(s->interp);
    Expr *e = session_read_expression(s, b->text, diags);
    double total = 0;
    interp_set_diags(s->interp, diags);
    b->ok = e && run_once(b, e, &b->first);
    while (b->ok && b->nruns < MOST_RUNS && (b->nruns < LEAST_RUNS || total < enough_ms)) {
        double ms;
        b->ok = run_once(b, e, &ms);
        b->runs[b->nruns++] = ms;
        total += ms;
    }
    interp_set_diags(s->interp, before);
    session_print_diags(s, diags);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool session_bench(Session *s, const char *expr, Str *out) {
    Bench *b = mem_new(Bench);
    b->s = s;
    b->text = expr;
    interp_resume(s->interp);
    env_begin_run(s->env);
    if (!session_with_stack(s, run_bench, b) || !b->ok)
        return false;
    qsort(b->runs, b->nruns, sizeof *b->runs, by_size);
    str_printf(out, "median %.4g ms, half of %zu runs %.4g to %.4g; the first run %.4g ms\n",
               b->runs[b->nruns / 2], b->nruns, b->runs[b->nruns / 4], b->runs[b->nruns * 3 / 4],
               b->first);
    return true;
}
