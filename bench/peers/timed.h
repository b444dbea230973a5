/* SPDX-License-Identifier: Apache-2.0 */
/* What the peers by hand share: reading the input, and the time of a function and of its derivative. For one source file
 * a program. */
#ifndef BENCH_PEERS_TIMED_H
#define BENCH_PEERS_TIMED_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Some doubles: the input, or room for results. */
static double *room(size_t n) { return calloc(n + 1, sizeof(double)); }

/* An evaluation: its sizes, its input x of `have` numbers, its derivative g of `n`, and what it works with. */
typedef struct Work {
    long size[3];
    const double *x;
    double *g, *own;
    size_t have, n;
} Work;

typedef struct Evaluation {
    const char *name;
    void (*begin)(Work *w); /* sets n and own */
    double (*value)(Work *w);
    void (*derivative)(Work *w);
} Evaluation;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static volatile double kept; /* so that no value is left out */

/* The median of processor time over about so many seconds, and three times at least. */
static double milliseconds(const Evaluation *e, Work *w, int derivative, double seconds) {
    enum { MOST = 100000 };
    static double times[MOST];
    size_t n = 0;
    double begun = now();
    while (n < MOST && (n < 3 || now() - begun < seconds * 1e3)) {
        double start = now();
        if (derivative)
            e->derivative(w);
        else
            kept = e->value(w);
        times[n++] = now() - start;
    }
    qsort(times, n, sizeof *times, compare);
    return times[n / 2];
}

/* PROGRAM SECONDS EVALUATION SIZE... < float64: prints the value, the sum of the absolute derivative, and the milliseconds
 * of both. */
static int time_evaluations(const Evaluation *all, size_t many, int argc, char **argv) {
    const Evaluation *e = NULL;
    for (size_t i = 0; argc > 2 && i < many; i++)
        e = strcmp(argv[2], all[i].name) == 0 ? &all[i] : e;
    if (!e || argc > 6) {
        fprintf(stderr, "%s SECONDS EVALUATION SIZE... < float64\n", argv[0]);
        return 2;
    }
    Work w = {.n = 0};
    for (int i = 3; i < argc; i++)
        w.size[i - 3] = atol(argv[i]);
    size_t most = 1 << 16;
    double *x = malloc(most * sizeof *x);
    for (size_t got; (got = fread(x + w.have, sizeof *x, most - w.have, stdin)) > 0;)
        if ((w.have += got) == most)
            x = realloc(x, (most *= 2) * sizeof *x);
    w.x = x;
    e->begin(&w);
    w.g = room(w.n);
    double value = e->value(&w), sum = 0.0;
    e->derivative(&w);
    for (size_t i = 0; i < w.n; i++)
        sum += fabs(w.g[i]);
    double seconds = atof(argv[1]), forth = milliseconds(e, &w, 0, seconds);
    printf("%.17g %.17g %.6g %.6g\n", value, sum, forth, milliseconds(e, &w, 1, seconds));
    return 0;
}

#endif
