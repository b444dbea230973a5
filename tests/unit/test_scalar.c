/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar functions against the C library in long double: at most 2 ulp (2.5: tanh of float32), the special values, and
 * the same bits from the plain lanes, the vectorised lanes and the one-lane evaluator. */
#include "ops/elementwise.h"
#include "ops/recipe/lanes.h"
#include "ops/recipe/scalar.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

static long double sigmoid_l(long double x) { return 1 / (1 + expl(-x)); }
static long double rsqrt_l(long double x) { return 1 / sqrtl(x); }

typedef struct Function {
    const char *name;
    Sc (*build)(ScalarBuilder *b, Sc x);
    long double (*exact)(long double x);
    double range; /* beyond 2^60 the long double reduction of sin and cos is not good enough */
} Function;
static const Function functions[] = {
    {"exp", sc_exp, expl, INFINITY},       {"log", sc_log, logl, INFINITY},
    {"tanh", sc_tanh, tanhl, INFINITY},    {"sigmoid", sc_sigmoid, sigmoid_l, INFINITY},
    {"sin", sc_sin, sinl, 0x1p40},         {"cos", sc_cos, cosl, 0x1p40},
    {"rsqrt", sc_rsqrt, rsqrt_l, INFINITY}};
enum { NFUNCTIONS = sizeof functions / sizeof functions[0], SAMPLES = 60000 };

static uint64_t seed = 88172645463325252u;
static uint64_t random64(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static const double special[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0x1p-149,
                                 -0x1p-149,
                                 0x1p-126,
                                 0x1p-1074,
                                 0x1p-1022,
                                 88.7228,
                                 89.0,
                                 -87.3,
                                 -103.9,
                                 -104.0,
                                 709.78,
                                 710.0,
                                 -745.1,
                                 -746.0,
                                 0.625,
                                 -0.625,
                                 3.141592653589793,
                                 1.5707963267948966,
                                 0x1p30,
                                 -0x1p31,
                                 1e22,
                                 0.5,
                                 2.0};

static double sample(DType t, int64_t i) {
    uint64_t r = random64();
    if (i < (int64_t)(sizeof special / sizeof special[0]))
        return special[i];
    switch (i % 4) {
    case 0: return ((double)(int64_t)r) * 0x1p-63 * 20;
    case 1: return ((double)(int64_t)r) * 0x1p-63 * (t == DT_F32 ? 110 : 750);
    case 2: return ((double)(int64_t)r) * 0x1p-63 * 1e6;
    }
    unsigned char bits[8];
    memcpy(bits, &r, sizeof bits);
    return elem_get_float(bits, t); /* any bit pattern */
}

/* The error in units in the last place of the exact value at its dtype. */
static double ulps(double got, long double exact, int digits, int least) {
    if (isnan(exact))
        return isnan(got) ? 0 : INFINITY;
    double rounded = digits == 24 ? (double)(float)exact : (double)exact;
    if (!isfinite(rounded) || !isfinite(got))
        return got == rounded || (isinf(got) && fabsl(exact) > 0.99999L * fabs(rounded)) ? 0
                                                                                         : INFINITY;
    int e;
    frexpl(fabsl(exact), &e);
    int place = e - digits < least ? least : e - digits;
    return (double)(fabsl((long double)got - exact) / ldexpl(1, place));
}

static Recipe map_of(ScalarBuilder *b, Sc (*build)(ScalarBuilder *, Sc), DType t) {
    memset(b, 0, sizeof *b);
    Recipe r = {.kind = RECIPE_MAP, .rank = 1, .noperands = 1, .noutputs = 1};
    r.results[0] = build(b, sc_load(b, 0, t));
    r.in_types[0] = r.out_types[0] = (uint8_t)t;
    r.nbody = (uint16_t)b->code.len;
    r.body = b->code.data;
    return r;
}

static void launch(const Recipe *r, const void *in, void *out, int64_t n) {
    KernelArgs *args = calloc(1, sizeof *args);
    args->in[0] = in;
    args->out[0] = out;
    args->extents[0] = n;
    args->in_strides[0][0] = args->out_strides[0][0] = 1;
    CHECK_INT(recipe_run(r, args), KERNEL_DONE);
    free(args);
}

static void check_function(const Function *f, DType t) {
    size_t size = dtype_size(t);
    char *in = malloc(SAMPLES * size), *out = malloc(SAMPLES * size);
    for (int64_t i = 0; i < SAMPLES; i++)
        elem_set_float(in + (size_t)i * size, t, sample(t, i));
    ScalarBuilder b;
    Recipe r = map_of(&b, f->build, t);
    launch(&r, in, out, SAMPLES);
    double worst = 0, at = 0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        double x = elem_get_float(in + (size_t)i * size, t);
        double y = elem_get_float(out + (size_t)i * size, t);
        if (isfinite(x) && fabs(x) > f->range)
            continue;
        double e = t == DT_F32 ? ulps(y, f->exact(x), 24, -149) : ulps(y, f->exact(x), 53, -1074);
        if (!(e <= worst)) {
            worst = e;
            at = x;
        }
    }
    double bound = f->build == sc_tanh && t == DT_F32 ? 2.5 : 2.0;
    if (!(worst <= bound))
        check_fail(__FILE__, __LINE__, "%s of %s: %.3f ulp at %a", f->name, dtype_info[t].name,
                   worst, at);
    else
        printf("   %s %s: %.2f ulp\n", f->name, dtype_info[t].name, worst);
    free(in);
    free(out);
}

TEST(errors_are_small) {
    for (int k = 0; k < NFUNCTIONS; k++) {
        check_function(&functions[k], DT_F32);
        check_function(&functions[k], DT_F64);
    }
}

/* Where exp has a normal result, fast_exp has its bits; it has no subnormal ones. */
TEST(fast_exp_is_exp_or_zero) {
    static char in[SAMPLES * 8], exact[SAMPLES * 8], fast[SAMPLES * 8];
    for (int k = 0; k < 2; k++) {
        DType t = k ? DT_F64 : DT_F32;
        size_t size = dtype_size(t);
        double least = k ? 0x1p-1022 : 0x1p-126;
        for (int64_t i = 0; i < SAMPLES; i++)
            elem_set_float(in + (size_t)i * size, t, sample(t, i));
        ScalarBuilder b;
        Recipe r = map_of(&b, sc_exp, t);
        launch(&r, in, exact, SAMPLES);
        r = map_of(&b, sc_fast_exp, t);
        launch(&r, in, fast, SAMPLES);
        int zeros = 0;
        for (int64_t i = 0; i < SAMPLES; i++) {
            double e = elem_get_float(exact + (size_t)i * size, t);
            double y = elem_get_float(fast + (size_t)i * size, t);
            CHECK(isnan(e) ? isnan(y) : y == (e < 1.4142 * least ? 0 : e) || e < 1.4143 * least);
            CHECK(y == 0 || isnan(y) || y >= least);
            zeros += y == 0 && e > 0;
        }
        CHECK(zeros > 0);
    }
}

TEST(signs_of_zero) {
    static Sc (*const odd[])(ScalarBuilder *, Sc) = {sc_sin, sc_tanh, sc_sqrt, sc_round};
    for (int k = 0; k < 4; k++) {
        ScalarBuilder b;
        double zero = -0.0, got;
        Recipe r = map_of(&b, odd[k], DT_F64);
        launch(&r, &zero, &got, 1);
        CHECK(got == 0 && signbit(got));
    }
}

/* Elements of any dtype, small enough for shifts and powers to be interesting. */
static void fill(char *p, DType t, int n) {
    for (int i = 0; i < n; i++)
        if (dtype_is_float(t))
            elem_set_float(p + (size_t)i * dtype_size(t), t, sample(DT_F32, i * 5));
        else
            elem_set_int(p + (size_t)i * dtype_size(t), t,
                         i % 3 ? (int64_t)random64() : (int64_t)(random64() % 19) - 4);
}

/* The one-lane evaluator gives the bits of the recipe, error or not. */
TEST(one_lane_agrees) {
    enum { N = 64 };
    static char x[N * 8], y[N * 8], out[N * 8];
    for (size_t k = 0; k < op_count(); k++) {
        const Op *op = op_at(k);
        for (int t = 0; t < DTYPE_COUNT; t++) {
            const ScalarProgram *p = scalar_program_find(op, (DType)t);
            if (!p)
                continue;
            size_t size = dtype_size(p->in), out_size = dtype_size(p->out);
            fill(x, p->in, N);
            fill(y, p->in, N);
            Recipe r = {.kind = RECIPE_MAP, .rank = 1, .noperands = 2, .noutputs = 1};
            r.in_types[0] = r.in_types[1] = (uint8_t)p->in;
            r.out_types[0] = (uint8_t)p->out;
            r.nbody = (uint16_t)p->n;
            r.body = p->code;
            r.results[0] = p->result;
            for (int i = 0; i < N; i++) {
                KernelArgs *args = calloc(1, sizeof *args);
                args->in[0] = x + (size_t)i * size;
                args->in[1] = y + (size_t)i * size;
                args->out[0] = out;
                args->extents[0] = 1;
                int32_t status = recipe_run(&r, args);
                free(args);
                ScalarValue v[2], got;
                const char *in[2] = {x, y};
                for (int a = 0; a < 2; a++)
                    if (dtype_is_float(p->in))
                        v[a].f = elem_get_float(in[a] + (size_t)i * size, p->in);
                    else
                        v[a].i = elem_get_int(in[a] + (size_t)i * size, p->in);
                int32_t other = scalar_program_run(p, v, &got);
                CHECK_INT(other, status);
                if (status != KERNEL_DONE || other != status)
                    continue;
                char bytes[8];
                if (dtype_is_float(p->out))
                    elem_set_float(bytes, p->out, got.f);
                else
                    elem_set_int(bytes, p->out, got.i);
                bool nan = dtype_is_float(p->out) && isnan(elem_get_float(bytes, p->out)) &&
                           isnan(elem_get_float(out, p->out));
                if (!nan && memcmp(bytes, out, out_size) != 0)
                    check_fail(__FILE__, __LINE__, "%s of %s, element %d", op->name,
                               dtype_info[t].name, i);
            }
        }
    }
}

/* Both compilations of the lanes give the same bits. */
TEST(lanes_agree) {
#if defined(__x86_64__)
    if (lanes_get() == &lanes_plain)
        return;
    enum { N = 256 };
    static char a[N * 8], b[N * 8], c[N * 8], x[N * 8], y[N * 8];
    for (int op = 0; op < SCALAR_OP_COUNT; op++)
        for (int t = 0; t < DTYPE_COUNT; t++) {
            LaneFn plain = lanes_plain.op[op][t], vector = lanes_fma.op[op][t];
            CHECK(!plain == !vector);
            if (!plain || op == SC_CHECK)
                continue;
            fill(a, op == SC_SELECT ? DT_BOOL : (DType)t, N);
            fill(b, (DType)t, N);
            fill(c, (DType)t, N);
            memset(x, 0, sizeof x);
            memset(y, 0, sizeof y);
            CHECK_INT(plain(x, a, b, c, N), vector(y, a, b, c, N));
            bool compares = op >= SC_EQ && op <= SC_GE;
            for (int i = 0; i < N; i++) {
                size_t size = compares ? 1 : dtype_size((DType)t);
                const char *p = x + (size_t)i * size, *q = y + (size_t)i * size;
                bool nan = !compares && dtype_is_float((DType)t) &&
                           isnan(elem_get_float(p, (DType)t)) && isnan(elem_get_float(q, (DType)t));
                CHECK(nan || memcmp(p, q, size) == 0);
            }
        }
#endif
}

int main(void) {
    RUN(errors_are_small);
    RUN(fast_exp_is_exp_or_zero);
    RUN(signs_of_zero);
    RUN(one_lane_agrees);
    RUN(lanes_agree);
    return check_result();
}
