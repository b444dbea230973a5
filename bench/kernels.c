/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels beside hand-written C and OpenBLAS, alternating in one run; medians and ratios.
 *
 *     bench/kernels [ONLY [THREADS]]
 *
 * A line: name, ours, the peer's, peer / ours (above 1 is faster), target. OpenBLAS is opened with
 * OPENBLAS_CORETYPE=SkylakeX where the processor has AVX-512: Debian's takes newer ones for a
 * Prescott. Outputs are reused, so page faults are not counted. */
#include "base/mem.h"
#include "bench/peers/fused.h"
#include "jit/jit.h"
#include "ops/recipe/scalar.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* On one thread the processor's time, which a busy machine disturbs less. */
static clockid_t clock_used = CLOCK_PROCESS_CPUTIME_ID;
static double now(void) {
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static const char *only = "";
static Jit *jit;
static float *data[5];

typedef void (*Peer)(void *ctx);
typedef struct Case {
    const Recipe *r;
    KernelArgs args;
    int64_t m, n, k;
} Case;

static void compare(const char *name, Case *c, Peer peer, double work, const char *unit,
                    const char *target) {
    if (!strstr(name, only))
        return;
    enum { RUNS = 31 };
    double ours[RUNS], theirs[RUNS], t = now();
    jit_run(jit, c->r, &c->args);
    double first = now() - t;
    t = now();
    jit_run(jit, c->r, &c->args);
    double once = now() - t;
    int reps = once < 2e-4 ? (int)(2e-3 / (once + 1e-7)) + 1 : 1;
    for (int i = 0; i < RUNS; i++) {
        t = now();
        for (int k = 0; k < reps; k++)
            jit_run(jit, c->r, &c->args);
        ours[i] = (now() - t) / reps;
        t = now();
        for (int k = 0; k < reps && peer; k++)
            peer(c);
        theirs[i] = (now() - t) / reps;
    }
    qsort(ours, RUNS, sizeof *ours, by_value);
    qsort(theirs, RUNS, sizeof *theirs, by_value);
    double us = ours[RUNS / 2], peer_us = theirs[RUNS / 2];
    printf("%-26s %10.2f us %7.1f %s", name, us * 1e6, work / us * 1e-9, unit);
    if (peer)
        printf("   peer %10.2f us   ratio %5.2f", peer_us * 1e6, peer_us / us);
    else
        printf("%35s", "");
    printf("   first %5.1f ms   %s\n", first * 1e3, target);
    fflush(stdout);
}

static Recipe *recipe(RecipeKind kind, int rank, int nreduce, int noperands, ScalarBuilder *b) {
    Recipe *r = mem_new(Recipe);
    r->kind = kind;
    r->rank = (uint8_t)rank;
    r->nreduce = (uint8_t)nreduce;
    r->noperands = (uint8_t)noperands;
    r->noutputs = 1;
    r->acc_type = DT_F32;
    memset(r->in_types, DT_F32, (size_t)noperands);
    r->out_types[0] = DT_F32;
    r->body = b->code.data;
    r->nbody = (uint16_t)b->code.len;
    r->results[0] = r->nbody - 1;
    return r;
}

static Case flat(Recipe *r, int64_t n) {
    Case c = {.r = r, .n = n};
    c.args.extents[0] = n;
    for (int p = 0; p < r->noperands; p++) {
        c.args.in[p] = data[p + 1];
        c.args.in_strides[p][0] = 1;
    }
    c.args.out[0] = data[0];
    c.args.out_strides[0][0] = 1;
    return c;
}

static void tanh_peer(void *ctx) {
    peer_tanh_fused(data[4], data[1], data[2], data[3], (size_t)((Case *)ctx)->n);
}
static void add_peer(void *ctx) { peer_add(data[4], data[1], data[2], (size_t)((Case *)ctx)->n); }
static void sum_peer(void *ctx) { data[4][0] = peer_sum(data[1], (size_t)((Case *)ctx)->n); }

static void elementwise(void) {
    ScalarBuilder b = {0}, s = {0}, q = {0};
    Sc a = sc_load(&b, 0, DT_F32), x = sc_mul(&b, a, sc_load(&b, 1, DT_F32));
    sc_mul(&b, sc_tanh(&b, sc_add(&b, x, sc_load(&b, 2, DT_F32))), a);
    Recipe *fused = recipe(RECIPE_MAP, 1, 0, 3, &b);
    x = sc_load(&s, 0, DT_F32);
    sc_add(&s, x, sc_load(&s, 1, DT_F32));
    Recipe *add = recipe(RECIPE_MAP, 1, 0, 2, &s);
    sc_load(&q, 0, DT_F32);
    Recipe *sum = recipe(RECIPE_REDUCE, 0, 1, 1, &q);
    sum->combine = COMBINE_SUM;
    static const int64_t sizes[] = {1000, 100000, 10000000};
    for (int i = 0; i < 3; i++) {
        char name[40];
        int64_t n = sizes[i];
        snprintf(name, sizeof name, "tanh(a*b+c)*a %lld", (long long)n);
        Case c = flat(fused, n);
        compare(name, &c, tanh_peer, (double)n, "G/s   ", i == 1 ? "at least 0.7" : "");
        snprintf(name, sizeof name, "a+b %lld", (long long)n);
        c = flat(add, n);
        compare(name, &c, add_peer, (double)n, "G/s   ", "");
        snprintf(name, sizeof name, "sum %lld", (long long)n);
        c = flat(sum, n);
        compare(name, &c, sum_peer, (double)n, "G/s   ", "");
    }
    /* columns: sum over the first axis of a matrix; a transposed copy */
    Recipe *cols = recipe(RECIPE_REDUCE, 1, 1, 1, &q);
    cols->combine = COMBINE_SUM;
    Case c = flat(cols, 1000);
    c.args.extents[1] = 1000;
    c.args.in_strides[0][1] = 1000;
    compare("sum of columns 1000^2", &c, NULL, 1e6, "G/s   ", "");
    c.args.in_strides[0][0] = 1000;
    c.args.in_strides[0][1] = 1;
    compare("sum of rows 1000^2", &c, NULL, 1e6, "G/s   ", "");
    Recipe *turn = recipe(RECIPE_MAP, 2, 0, 1, &q);
    c = flat(turn, 1000);
    c.args.extents[1] = 1000;
    c.args.in_strides[0][1] = 1000;
    c.args.out_strides[0][0] = 1000;
    c.args.out_strides[0][1] = 1;
    compare("transpose 1000^2", &c, NULL, 1e6, "G/s   ", "");
}

/* ---- products -------------------------------------------------------------------------------- */

typedef void (*Sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);
static Sgemm sgemm;

static void gemm_peer(void *ctx) {
    Case *c = ctx;
    int m = (int)c->m, n = (int)c->n, k = (int)c->k;
    sgemm(101, 111, 111, m, n, k, 1, data[1], k, data[2], n, 0, data[4], n);
}
static void dense_peer(void *ctx) {
    Case *c = ctx;
    int m = (int)c->m, n = (int)c->n, k = (int)c->k;
    sgemm(101, 111, 112, m, n, k, 1, data[1], k, data[2], k, 0, data[4], n);
}

static void product(const char *what, int64_t m, int64_t n, int64_t k, bool dense,
                    const char *target) {
    ScalarBuilder b = {0};
    Sc x = sc_load(&b, 0, DT_F32);
    sc_mul(&b, x, sc_load(&b, 1, DT_F32));
    Recipe *r = recipe(RECIPE_PRODUCT, 2, 1, 2, &b);
    r->combine = COMBINE_SUM;
    Case c = {.r = r, .m = m, .n = n, .k = k};
    KernelArgs *a = &c.args;
    a->in[0] = data[1];
    a->in[1] = data[2];
    a->out[0] = data[0];
    a->extents[0] = m, a->extents[1] = n, a->extents[2] = k;
    a->in_strides[0][0] = k, a->in_strides[0][2] = 1;
    a->in_strides[1][1] = dense ? k : 1, a->in_strides[1][2] = dense ? 1 : n;
    a->out_strides[0][0] = n, a->out_strides[0][1] = 1;
    char name[64];
    snprintf(name, sizeof name, "%s %lldx%lldx%lld", what, (long long)m, (long long)n,
             (long long)k);
    compare(name, &c, sgemm ? dense ? dense_peer : gemm_peer : NULL,
            2.0 * (double)m * (double)n * (double)k, "GFLOP/s", target);
    if (!strstr(name, only) || !sgemm)
        return;
    (dense ? dense_peer : gemm_peer)(&c);
    double worst = 0;
    for (int64_t i = 0; i < m * n; i++) {
        double d = fabs((double)data[0][i] - (double)data[4][i]);
        worst = d > worst ? d : worst;
    }
    if (worst > 1e-5 * (double)k)
        printf("  WRONG: off by %g\n", worst);
}

/* A 3×3 convolution of a padded image: c channels of s × s to c channels. */
static void convolution(int64_t c, int64_t s) {
    ScalarBuilder b = {0};
    Sc x = sc_load(&b, 0, DT_F32);
    sc_mul(&b, x, sc_load(&b, 1, DT_F32));
    Recipe *r = recipe(RECIPE_PRODUCT, 3, 3, 2, &b);
    r->combine = COMBINE_SUM;
    Case k = {.r = r};
    KernelArgs *a = &k.args;
    int64_t w = s + 2;
    a->in[0] = data[1];
    a->in[1] = data[2];
    a->out[0] = data[0];
    const int64_t extents[6] = {c, s, s, c, 3, 3}, in[6] = {0, w, 1, w * w, w, 1};
    const int64_t weight[6] = {9 * c, 0, 0, 9, 3, 1}, out[3] = {s * s, s, 1};
    memcpy(a->extents, extents, sizeof extents);
    memcpy(a->in_strides[0], in, sizeof in);
    memcpy(a->in_strides[1], weight, sizeof weight);
    memcpy(a->out_strides[0], out, sizeof out);
    char name[64];
    snprintf(name, sizeof name, "conv 3x3 %lld of %lld^2", (long long)c, (long long)s);
    compare(name, &k, NULL, 2.0 * (double)(c * s * s * c * 9), "GFLOP/s", "");
}

static void open_blas(int threads) {
    if (__builtin_cpu_supports("avx512f"))
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    setenv("OPENBLAS_NUM_THREADS", threads > 1 ? "2" : "1", 1);
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW);
    void *f = lib ? dlsym(lib, "cblas_sgemm") : NULL;
    memcpy(&sgemm, &f, sizeof f);
    char *(*core)(void);
    void *g = lib ? dlsym(lib, "openblas_get_corename") : NULL;
    memcpy(&core, &g, sizeof g);
    printf("OpenBLAS: %s\n", g ? core() : "not there");
}

int main(int argc, char **argv) {
    mem_init();
    only = argc > 1 ? argv[1] : "";
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    clock_used = threads > 1 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    const char *why = NULL;
    jit = jit_open(&(JitOptions){.threads = threads, .cache_dir = ""}, &why);
    if (!jit) {
        printf("no compiler: %s\n", why);
        return 1;
    }
    enum { N = 10000000 };
    for (int i = 0; i < 5; i++) {
        data[i] = aligned_alloc(64, N * sizeof(float));
        for (int k = 0; k < N; k++)
            data[i][k] = (float)((k * (i + 7)) % 97) * 0.01f - 0.4f;
    }
    open_blas(threads);
    elementwise();
    static const int64_t squares[] = {64, 128, 256, 512, 1024};
    for (int i = 0; i < 5; i++)
        product("sgemm", squares[i], squares[i], squares[i], false, i == 2 ? "at least 0.9" : "");
    product("dense", 64, 128, 784, true, "");
    product("dense", 1, 2048, 512, true, "");
    product("dense", 32, 64, 64, true, "");
    product("dense", 256, 256, 256, true, "");
    product("gemv", 1, 2048, 512, false, "");
    convolution(64, 56);
    convolution(128, 28);
    convolution(256, 14);
    convolution(512, 7);
    Str s = {0};
    jit_describe(jit, &s);
    printf("%s; %llu kernels in %.1f ms\n", str_text(&s),
           (unsigned long long)jit_stats(jit).compiled, jit_stats(jit).seconds * 1e3);
    jit_close(jit);
    return 0;
}
