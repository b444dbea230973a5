/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels against recipe_run, bit for bit (nans are equal): random recipes of every kind,
 * over every dtype, with broadcast, transposed, reversed and gapped operands, at every vector width
 * this processor can pretend to have, on one thread and on three. */
#include "jit/internal.h"
#include "jit/jit.h"
#include "ops/recipe/scalar.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t rng_state;
static uint64_t rng(void) {
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state * 0x2545f4914f6cdd1du >> 11;
}
static int below(int n) { return (int)(rng() % (uint64_t)n); }

typedef struct Launch {
    Recipe r;
    KernelArgs args;
    char *in[RECIPE_MAX_OPERANDS], *out[RECIPE_MAX_OPERANDS], *out2[RECIPE_MAX_OPERANDS];
    size_t in_bytes[RECIPE_MAX_OPERANDS], out_bytes[RECIPE_MAX_OPERANDS];
    char *blocks[RECIPE_MAX_OPERANDS];
    ScalarBuilder body, epilogue;
} Launch;

static void fill_random(char *p, DType t, int64_t n) {
    static const double odd[] = {0.0, -0.0,  1.0,  -1.0, INFINITY, -INFINITY,
                                 NAN, 65504, 1e-7, 6e-8, 3e38};
    for (int64_t i = 0; i < n; i++, p += dtype_size(t)) {
        int kind = below(40);
        if (dtype_is_float(t))
            elem_set_float(p, t,
                           kind < 11 ? odd[kind] : (double)((int64_t)rng() % 20001 - 10000) / 1000);
        else
            elem_set_int(p, t,
                         kind == 0   ? INT64_MIN
                         : kind == 1 ? -1
                         : kind < 4  ? (int64_t)rng()
                                     : below(19) - 9);
    }
}

static const DType value_types[] = {DT_F32, DT_F32, DT_F64, DT_I32, DT_I64, DT_I8,
                                    DT_U8,  DT_I16, DT_U16, DT_U32, DT_U64, DT_BOOL};
enum { NVALUES = sizeof value_types / sizeof *value_types };

/* Strides over `naxes`: a random order, some broadcast, some reversed or gapped. Sets the span. */
static int64_t layout(const int64_t *extents, int naxes, int64_t *strides, int64_t *first,
                      bool output) {
    int order[RECIPE_MAX_AXES];
    for (int i = 0; i < naxes; i++)
        order[i] = i;
    if (below(3) == 0)
        for (int i = naxes - 1; i > 0; i--) {
            int k = below(i + 1), t = order[i];
            order[i] = order[k];
            order[k] = t;
        }
    int64_t step = !output && below(6) == 0 ? 2 : 1;
    *first = 0;
    for (int i = naxes; i-- > 0;) {
        int a = order[i];
        strides[a] = step;
        if (!output && below(5) == 0) {
            strides[a] = 0;
            continue;
        }
        if (below(12) == 0) {
            strides[a] = -step;
            *first += step * (extents[a] - 1);
        }
        step *= extents[a];
        if (below(8) == 0)
            step++;
    }
    return step;
}

/* Inputs end, or begin, at a page that cannot be read: compiled code is not watched otherwise. */
enum { PAGE = 4096 };
static size_t guarded_bytes(size_t n) { return (n + PAGE - 1) / PAGE * PAGE; }
static char *guarded_new(size_t n, char **block, size_t align) {
    size_t whole = guarded_bytes(n);
    char *p = mmap(NULL, whole + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p + PAGE, whole, PROT_READ | PROT_WRITE);
    *block = p;
    return p + PAGE + (below(2) ? 0 : (whole - n) / align * align);
}

/* Operand k of n elements, the first of the launch `first` after theirs. */
static void fill_input(Launch *l, int k, DType t, int64_t n, int64_t first) {
    l->r.in_types[k] = (uint8_t)t;
    l->in_bytes[k] = (size_t)n * dtype_size(t);
    l->in[k] = guarded_new(l->in_bytes[k], &l->blocks[k], dtype_size(t));
    fill_random(l->in[k], t, n);
    l->args.in[k] = l->in[k] + first * (int64_t)dtype_size(t);
}

static int add_input(Launch *l, DType t, int naxes, int64_t slack) {
    int k = l->r.noperands++;
    int64_t first, n = layout(l->args.extents, naxes, l->args.in_strides[k], &first, false) + slack;
    fill_input(l, k, t, n, first);
    return k;
}

static void add_output(Launch *l, DType t, int64_t slack) {
    int k = l->r.noutputs++;
    int64_t first,
        n = layout(l->args.extents, l->r.rank, l->args.out_strides[k], &first, true) + slack;
    l->r.out_types[k] = (uint8_t)t;
    l->out_bytes[k] = (size_t)n * dtype_size(t);
    l->out[k] = malloc(l->out_bytes[k] + 1);
    l->out2[k] = malloc(l->out_bytes[k] + 1);
    fill_random(l->out[k], t, n);
    memcpy(l->out2[k], l->out[k], l->out_bytes[k]);
    l->args.out[k] = l->out[k] + first * (int64_t)dtype_size(t);
}

static DType stored_as(DType t) {
    if (t == DT_F32 || t == DT_F64) {
        int k = below(6);
        return k == 0 ? DT_F16 : k == 1 ? DT_BF16 : t;
    }
    return t;
}

static Sc leaf(Launch *l, ScalarBuilder *b, DType t, int naxes, bool body) {
    int kind = below(10);
    if (kind == 0)
        return dtype_is_float(t) ? sc_float(b, t, below(100) / 8.0 - 3)
                                 : sc_int(b, t, below(9) - 3);
    if (kind == 1)
        return sc_param(b, t, below(4));
    if (kind == 2 && naxes > 0)
        return sc_cast(b, sc_iota(b, below(naxes)), t);
    if (l->r.noperands >= 6)
        return sc_int(b, t, 3);
    DType stored = t == DT_F32 ? stored_as(DT_F32) : t;
    if (kind == 3 && body) {
        Sc i = sc_op2(b, SC_AND, naxes ? sc_iota(b, below(naxes)) : sc_int(b, DT_I64, 2),
                      sc_int(b, DT_I64, 7));
        return sc_load_at(b, add_input(l, stored, naxes, 8), stored, i);
    }
    if (kind == 4 && body) {
        Sc i = naxes ? sc_iota(b, below(naxes)) : sc_int(b, DT_I64, 2);
        Sc cond = sc_op2(b, SC_LT, i, sc_int(b, DT_I64, below(20)));
        Sc at = below(2) ? sc_int(b, DT_I64, 0) : sc_int(b, DT_I64, 3);
        return sc_load_if(b, add_input(l, stored, naxes, 8), stored, at, cond, 2.5);
    }
    return sc_load(b, add_input(l, stored, naxes, 0), stored);
}

static Sc expression(Launch *l, ScalarBuilder *b, DType t, int depth, int naxes, bool body) {
    if (depth <= 0)
        return leaf(l, b, t, naxes, body);
    int kind = below(12);
    if (kind == 0) { /* by another dtype */
        DType u = value_types[below(NVALUES)];
        return sc_cast(b, expression(l, b, u, depth - 1, naxes, body), t);
    }
    if (kind == 1 || t == DT_BOOL) {
        DType u = value_types[below(NVALUES)];
        Sc x = expression(l, b, u, depth - 1, naxes, body);
        Sc y = expression(l, b, u, depth - 1, naxes, body);
        Sc c = sc_op2(b, (ScalarOp)(SC_EQ + below(6)), x, y);
        if (t == DT_BOOL)
            return below(3) ? c : sc_op2(b, (ScalarOp)(SC_AND + below(3)), c, sc_op1(b, SC_NOT, c));
        x = expression(l, b, t, depth - 1, naxes, body);
        return sc_select(b, c, x, expression(l, b, t, depth - 2, naxes, body));
    }
    Sc x = expression(l, b, t, depth - 1, naxes, body);
    if (dtype_is_float(t)) {
        static const ScalarOp unary[] = {SC_NEG,  SC_ABS,   SC_SQRT, SC_FLOOR,
                                         SC_CEIL, SC_TRUNC, SC_ROUND};
        static const ScalarOp binary[] = {SC_ADD, SC_SUB, SC_MUL, SC_DIV, SC_MIN, SC_MAX, SC_REM};
        switch (below(9)) {
        case 0:
        case 1: return sc_op1(b, unary[below(7)], x);
        case 2: return sc_fma(b, x, expression(l, b, t, depth - 2, naxes, body), x);
        case 3: return below(2) ? sc_tanh(b, x) : sc_exp(b, x);
        case 4: return below(2) ? sc_call1(b, MATH_ATAN, x) : sc_sin(b, x);
        case 5: {
            DType u = t == DT_F32 ? DT_I32 : DT_I64;
            return sc_bits(b, sc_op2(b, SC_XOR, sc_bits(b, x, u), sc_int(b, u, 1)), t);
        }
        }
        return sc_op2(b, binary[below(7)], x, expression(l, b, t, depth - 2, naxes, body));
    }
    static const ScalarOp binary[] = {SC_ADD, SC_SUB, SC_MUL, SC_AND,
                                      SC_OR,  SC_XOR, SC_MIN, SC_MAX};
    switch (below(6)) {
    case 0: return sc_op1(b, below(2) ? SC_NEG : below(2) ? SC_ABS : SC_NOT, x);
    case 1: {
        Sc y = expression(l, b, t, depth - 2, naxes, body), one = sc_int(b, t, 1);
        Sc zero = sc_op2(b, SC_EQ, y, sc_int(b, t, 0));
        return sc_op2(b, below(2) ? SC_DIV : SC_REM, x, below(30) ? sc_select(b, zero, one, y) : y);
    }
    case 2: {
        Sc y = sc_op2(b, SC_AND, expression(l, b, t, depth - 2, naxes, body), sc_int(b, t, 127));
        return sc_op2(b, below(2) ? SC_SHL : SC_SHR, x, y);
    }
    }
    return sc_op2(b, binary[below(8)], x, expression(l, b, t, depth - 2, naxes, body));
}

static void make(Launch *l, RecipeKind kind) {
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 70};
    memset(l, 0, sizeof *l);
    Recipe *r = &l->r;
    r->kind = kind;
    r->rank = (uint8_t)below(4);
    if (kind == RECIPE_SCAN && r->rank == 0)
        r->rank = 1;
    if (kind == RECIPE_REDUCE || kind == RECIPE_PRODUCT)
        r->nreduce = (uint8_t)(1 + below(3));
    int naxes = r->rank + r->nreduce;
    int64_t total = 1, window = kind == RECIPE_REDUCE && below(3) == 0;
    for (int a = 0; a < naxes; a++) {
        int64_t n = below(60) == 0 ? 0 : sizes[below(window && a >= r->rank ? 4 : 14)];
        if (total * n > 30000)
            n = 2;
        l->args.extents[a] = n;
        total *= n ? n : 1;
    }
    for (int i = 0; i < 4; i++) {
        l->args.iparams[i] = below(9) - 3;
        l->args.fparams[i] = below(90) / 16.0;
    }
    DType t = value_types[below(NVALUES)];
    ScalarBuilder *b = &l->body;
    int depth = below(4);
    if (kind == RECIPE_PRODUCT) {
        t = below(4) ? DT_F32 : below(2) ? DT_F64 : DT_I32;
        depth = below(4) == 0;
        Sc x = expression(l, b, t, depth, naxes, true), y = expression(l, b, t, depth, naxes, true);
        r->results[0] = sc_op2(b, SC_MUL, x, y);
    } else if (kind == RECIPE_SCATTER) {
        if (t == DT_BOOL)
            t = DT_F32;
        Sc v = expression(l, b, t, depth, naxes, true);
        Sc at = sc_cast(b, expression(l, b, DT_I32, 1, naxes, true), DT_I64);
        r->results[0] = v;
        r->results[1] = sc_op2(b, SC_AND, at, sc_int(b, DT_I64, 15));
    } else {
        r->results[0] = expression(l, b, t, depth, naxes, true);
    }
    r->acc_type = (uint8_t)t;
    DType out = stored_as(t);
    if (kind == RECIPE_MAP) {
        add_output(l, out, 0);
        if (below(3) == 0) {
            DType u = value_types[below(NVALUES)];
            r->results[1] = expression(l, b, u, below(3), naxes, true);
            add_output(l, stored_as(u), 0);
        }
    } else {
        r->combine = (Combine)(COMBINE_SUM + below(4));
        if (t == DT_BOOL)
            r->combine = below(2) ? COMBINE_ALL : COMBINE_ANY;
        if (kind == RECIPE_PRODUCT)
            r->combine = COMBINE_SUM;
        if (kind == RECIPE_SCATTER && below(4) == 0)
            r->combine = COMBINE_NONE;
        if (kind == RECIPE_SCAN)
            r->last = below(2);
        ScalarBuilder *e = &l->epilogue;
        if (kind == RECIPE_REDUCE && below(4) == 0) {
            r->combine = below(2) ? COMBINE_ARGMAX : COMBINE_ARGMIN;
            r->last = below(2);
            Sc acc = sc_acc(e, DT_I64);
            out = below(2) ? DT_I32 : DT_I64;
            sc_cast(e, acc, out);
        } else if ((kind == RECIPE_REDUCE || kind == RECIPE_PRODUCT) && below(2) && t != DT_BOOL) {
            Sc acc = sc_acc(e, t);
            sc_op2(e, SC_ADD, acc, expression(l, e, t, below(2), r->rank, false));
        }
        if (kind == RECIPE_SCATTER && t == DT_F64)
            out = DT_F64; /* a half is combined in float32 */
        add_output(l, out, kind == RECIPE_SCATTER ? 16 : 0);
    }
}

/* A convolution: batch, group, channel of the result, two sides; channel and two sides of the window. */
static void make_windows(Launch *l) {
    enum { AXES = 8, RANK = 5 };
    memset(l, 0, sizeof *l);
    Recipe *r = &l->r;
    *r = (Recipe){
        .kind = RECIPE_PRODUCT, .combine = COMBINE_SUM, .rank = RANK, .nreduce = AXES - RANK};
    const int most[AXES] = {3, 2, 24, 9, 12, 6, 4, 5};
    int64_t *n = l->args.extents, *x = l->args.in_strides[0], *w = l->args.in_strides[1];
    for (int a = 0; a < AXES; a++)
        n[a] = below(2) ? 1 + below(most[a]) : most[a];
    int64_t step = 1 + below(2), gap = 1 + below(2);
    int64_t wide = (n[4] - 1) * step + (n[7] - 1) * gap + 1;
    int64_t high = (n[3] - 1) * step + (n[6] - 1) * gap + 1, size = wide * high, first[2] = {0};
    const int64_t data[AXES] = {n[1] * n[5] * size, n[5] * size, 0, step * wide, step, size,
                                gap * wide,         gap};
    const int64_t weight[AXES] = {
        0, n[2] * n[5] * n[6] * n[7], n[5] * n[6] * n[7], 0, 0, n[6] * n[7], n[7], 1};
    for (int a = 0; a < AXES; a++) {
        int back = below(8) == 0 ? -1 : 1;
        x[a] = data[a] * back;
        w[a] = weight[a] * back;
        first[0] += back < 0 ? data[a] * (n[a] - 1) : 0;
        first[1] += back < 0 ? weight[a] * (n[a] - 1) : 0;
    }
    DType t = below(4) ? DT_F32 : below(2) ? DT_F64 : DT_I32;
    r->acc_type = (uint8_t)t;
    r->noperands = 2;
    DType stored = t == DT_F32 ? stored_as(t) : t;
    fill_input(l, 0, stored, data[0] * n[0], first[0]);
    fill_input(l, 1, stored, weight[1] * n[1], first[1]);
    Sc by = sc_load(&l->body, 1, stored);
    r->results[0] = sc_op2(&l->body, SC_MUL, sc_load(&l->body, 0, stored), by);
    if (below(2)) {
        Sc acc = sc_acc(&l->epilogue, t);
        sc_op2(&l->epilogue, SC_ADD, acc, expression(l, &l->epilogue, t, below(2), RANK, false));
    }
    add_output(l, stored_as(t), 0);
}

/* Sums of many outer products, whose reduction may be cut: batch, rows, lanes; steps. */
static void make_long(Launch *l) {
    enum { AXES = 4, RANK = 3 };
    memset(l, 0, sizeof *l);
    Recipe *r = &l->r;
    *r = (Recipe){
        .kind = RECIPE_PRODUCT, .combine = COMBINE_SUM, .rank = RANK, .nreduce = AXES - RANK};
    int64_t *n = l->args.extents, *x = l->args.in_strides[0], *y = l->args.in_strides[1];
    n[0] = 1 + below(2);
    n[1] = 20 + below(30);
    n[2] = 20 + below(30);
    n[3] = 250 + below(400);
    const int64_t left[AXES] = {n[3] * n[1], 1, 0, n[1]}, right[AXES] = {n[3] * n[2], 0, 1, n[2]};
    memcpy(x, left, sizeof left);
    memcpy(y, right, sizeof right);
    DType t = below(2) ? DT_F64 : below(3) ? DT_F32 : DT_I32;
    r->acc_type = (uint8_t)t;
    r->noperands = 2;
    fill_input(l, 0, t, n[0] * n[3] * n[1], 0);
    fill_input(l, 1, t, n[0] * n[3] * n[2], 0);
    r->results[0] = sc_op2(&l->body, SC_MUL, sc_load(&l->body, 0, t), sc_load(&l->body, 1, t));
    if (below(4) == 0) {
        Sc acc = sc_acc(&l->epilogue, t);
        sc_op2(&l->epilogue, SC_ADD, acc, expression(l, &l->epilogue, t, below(2), RANK, false));
    }
    add_output(l, below(4) ? t : stored_as(t), 0);
}

static void drop(Launch *l) {
    for (int k = 0; k < l->r.noperands; k++)
        munmap(l->blocks[k], guarded_bytes(l->in_bytes[k]) + 2 * PAGE);
    for (int k = 0; k < l->r.noutputs; k++) {
        free(l->out[k]);
        free(l->out2[k]);
    }
}

static bool same(const char *a, const char *b, DType t) {
    if (memcmp(a, b, dtype_size(t)) == 0)
        return true;
    return dtype_is_float(t) && isnan(elem_get_float(a, t)) && isnan(elem_get_float(b, t));
}

static int packed, tabled, few, cut;

static void count_forms(Jit *jit, const Launch *l) {
    JitPlan plan;
    jit_plan(jit, jit_recipe_get(jit, &l->r), &l->args, false, &plan);
    tabled += plan.sig.tabled > 0;
    few += plan.sig.form == FORM_FEW;
    cut += (plan.sig.flags & SIG_CUT) != 0;
}

/* As jit_run, by panels made before where the recipe reads an operand in panels. */
static int32_t run_in_panels(Jit *jit, const Recipe *r, const KernelArgs *args) {
    JitPacking packing;
    if (!jit_find_packing(jit, r, args, &packing))
        return jit_run(jit, r, args);
    packed++;
    char *panels = aligned_alloc(64, packing.bytes + 64);
    int32_t status = jit_pack(jit, r, args, panels);
    CHECK(status == KERNEL_DONE);
    status = jit_run_packed(jit, r, args, panels);
    free(panels);
    return status;
}

/* Runs both; a text about the first difference, or NULL. */
static const char *differs(Jit *jit, Launch *l, bool in_panels) {
    int32_t want = recipe_run(&l->r, &l->args);
    KernelArgs args = l->args;
    for (int k = 0; k < l->r.noutputs; k++)
        args.out[k] = l->out2[k] + ((char *)l->args.out[k] - l->out[k]);
    uint64_t before = jit_stats(jit).reference;
    int32_t got = (in_panels ? run_in_panels : jit_run)(jit, &l->r, &args);
    if (jit_stats(jit).reference != before)
        return fmt_text("not compiled: %s", jit_why_reference(jit, &l->r));
    if ((got != 0) != (want != 0))
        return fmt_text("status %d, expected %d", got, want);
    for (int k = 0; want == 0 && k < l->r.noutputs; k++) {
        DType t = (DType)l->r.out_types[k];
        size_t size = dtype_size(t);
        for (size_t i = 0; i < l->out_bytes[k]; i += size) {
            if (same(l->out2[k] + i, l->out[k] + i, t))
                continue;
            Str s = {0};
            if (dtype_is_float(t))
                str_printf(&s, "output %d at %zu: %.9g, expected %.9g", k, i / size,
                           elem_get_float(l->out2[k] + i, t), elem_get_float(l->out[k] + i, t));
            else
                str_printf(&s, "output %d at %zu: %lld, expected %lld", k, i / size,
                           (long long)elem_get_int(l->out2[k] + i, t),
                           (long long)elem_get_int(l->out[k] + i, t));
            return str_text(&s);
        }
        memcpy(l->out2[k], l->out[k], l->out_bytes[k]);
    }
    return NULL;
}

static void report(const Launch *l, uint64_t seed, const char *what) {
    Str s = {0};
    recipe_print(&s, &l->r);
    str_add(&s, "extents");
    int naxes = l->r.rank + l->r.nreduce;
    for (int a = 0; a < naxes; a++)
        str_printf(&s, " %lld", (long long)l->args.extents[a]);
    for (int k = 0; k < l->r.noperands + l->r.noutputs; k++) {
        bool in = k < l->r.noperands;
        str_printf(&s, "\n%s %d by", in ? "in" : "out", in ? k : k - l->r.noperands);
        for (int a = 0; a < (in ? naxes : l->r.rank); a++)
            str_printf(&s, " %lld",
                       (long long)(in ? l->args.in_strides[k][a]
                                      : l->args.out_strides[k - l->r.noperands][a]));
    }
    check_fail(__FILE__, __LINE__, "seed %llu: %s\n%s", (unsigned long long)seed, what,
               str_text(&s));
}

static Jit *open_jit(int bytes, int threads, bool scalar, bool hot) {
    const char *why = NULL;
    Jit *jit = jit_open(&(JitOptions){.cache_dir = "",
                                      .vector_bytes = bytes,
                                      .threads = threads,
                                      .scalar = scalar,
                                      .hot = hot},
                        &why);
    if (!jit)
        printf("no compiler: %s\n", why);
    return jit;
}

typedef enum Draw { ANY, WINDOWS, LONG } Draw;

static void rounds(RecipeKind kind, Draw draw, int n) {
    uint64_t first = check_seed();
    n = (int)check_share(n);
    Jit *jits[6] = {open_jit(0, 1, false, true),  open_jit(0, 3, false, true),
                    open_jit(32, 1, false, true), open_jit(16, 1, false, true),
                    open_jit(0, 1, true, true),   open_jit(0, 1, false, false)};
    if (!jits[0])
        check_skip();
    for (int i = 0; jits[0] && i < n && !check_failures; i++) {
        uint64_t seed = first + (uint64_t)i;
        rng_state = seed * 0x9e3779b97f4a7c15u + (uint64_t)kind;
        for (int k = 0; k < 8; k++)
            rng();
        Launch l;
        switch (draw) {
        case ANY: make(&l, kind); break;
        case WINDOWS: make_windows(&l); break;
        case LONG: make_long(&l); break;
        }
        l.r.body = l.body.code.data;
        l.r.nbody = (uint16_t)l.body.code.len;
        l.r.epilogue = l.epilogue.code.data;
        l.r.nepilogue = (uint16_t)l.epilogue.code.len;
        count_forms(jits[0], &l);
        /* Each width at every third recipe: compiling is what takes the time. */
        for (int j = 0; j < 6 && !check_failures; j++) {
            if (j > 0 && (first + (uint64_t)i + (uint64_t)j) % 5 != 0)
                continue;
            const char *what = differs(jits[j], &l, false);
            if (!what && kind == RECIPE_PRODUCT)
                what = differs(jits[j], &l, true);
            check_tried();
            if (what)
                report(&l, seed, fmt_text("compiler %d: %s", j, what));
        }
        drop(&l);
    }
    for (int j = 0; j < 6; j++)
        jit_close(jits[j]);
}

TEST(map) { rounds(RECIPE_MAP, ANY, 480); }
TEST(reduce) {
    rounds(RECIPE_REDUCE, ANY, 480);
    CHECK(few > 0 || check_share(480) < 100);
}
TEST(product) {
    rounds(RECIPE_PRODUCT, ANY, 480);
    CHECK(packed > 0 || check_share(480) < 100);
}
TEST(windows) {
    tabled = 0;
    rounds(RECIPE_PRODUCT, WINDOWS, 480);
    CHECK(tabled > 0 || check_share(480) < 100);
}
TEST(long_products) {
    rounds(RECIPE_PRODUCT, LONG, 24);
    CHECK(cut > 0 || check_share(24) < 10);
}
TEST(scan) { rounds(RECIPE_SCAN, ANY, 200); }
TEST(scatter) { rounds(RECIPE_SCATTER, ANY, 200); }

/* ---- the cache, interrupts, threads ---------------------------------------------------------- */

enum { N = 100000 };
static float input[N], output[N], expected[N];

static Recipe doubled(ScalarBuilder *b, double by) {
    Sc x = sc_load(b, 0, DT_F32);
    Recipe r = {.kind = RECIPE_MAP, .rank = 1, .noperands = 1, .noutputs = 1};
    r.results[0] = sc_mul(b, x, sc_float(b, DT_F32, by));
    r.in_types[0] = r.out_types[0] = DT_F32;
    r.body = b->code.data;
    r.nbody = (uint16_t)b->code.len;
    return r;
}

static KernelArgs over(int64_t n) {
    KernelArgs args = {.extents = {n}};
    args.in[0] = input;
    args.out[0] = output;
    args.in_strides[0][0] = args.out_strides[0][0] = 1;
    return args;
}

static char cache_dir[64];

static JitStats run_once(const char *dir, double by, bool *ok) {
    const char *why = NULL;
    ScalarBuilder b = {0};
    Recipe r = doubled(&b, by);
    KernelArgs args = over(1000);
    JitStats stats = {0};
    Jit *jit = jit_open(&(JitOptions){.cache_dir = dir, .threads = 1}, &why);
    if (!jit) {
        *ok = true;
        stats.compiled = stats.loaded = UINT64_MAX;
        return stats;
    }
    for (int i = 0; i < 1000; i++)
        input[i] = (float)i;
    *ok = jit_run(jit, &r, &args) == KERNEL_DONE;
    for (int i = 0; i < 1000; i++)
        *ok = *ok && output[i] == (float)i * (float)by;
    stats = jit_stats(jit);
    jit_close(jit);
    return stats;
}

TEST(disk_cache) {
    strcpy(cache_dir, "/tmp/relay-jit-XXXXXX");
    CHECK(mkdtemp(cache_dir) != NULL);
    const char *dir = fmt_text("%s/a/b", cache_dir);
    bool ok;
    JitStats s = run_once(dir, 3, &ok);
    CHECK(ok);
    if (s.compiled == UINT64_MAX)
        return;
    CHECK_INT(s.compiled, 1);
    s = run_once(dir, 3, &ok);
    CHECK(ok);
    CHECK_INT(s.compiled, 0);
    CHECK_INT(s.loaded, 1);
    /* Another recipe has another entry. */
    s = run_once(dir, 5, &ok);
    CHECK(ok);
    CHECK_INT(s.compiled, 1);
    /* Every entry damaged, in four ways: ignored and made again. */
    for (int how = 0; how < 4; how++) {
        const char *script =
            how == 0 ? "for f in %s/*.o; do head -c 100 \"$f\" >\"$f.x\"; mv \"$f.x\" \"$f\"; done"
            : how == 1 ? "for f in %s/*.o; do : >\"$f\"; done"
            : how == 2 ? "for f in %s/*.o; do printf XXXX | dd of=\"$f\" bs=1 seek=700 "
                         "conv=notrunc 2>/dev/null; done"
                       : "for f in %s/*.o; do printf XXXX | dd of=\"$f\" bs=1 seek=20 conv=notrunc "
                         "2>/dev/null; done";
        CHECK_INT(system(fmt_text(script, dir)), 0);
        s = run_once(dir, 3, &ok);
        CHECK(ok);
        CHECK_INT(s.compiled, 1);
        s = run_once(dir, 3, &ok);
        CHECK(ok);
        CHECK_INT(s.loaded, 1);
    }
    /* No folder can be made there: memory only. */
    s = run_once("/proc/relay/cache", 3, &ok);
    CHECK(ok);
    CHECK_INT(s.compiled, 1);
    CHECK_INT(system(fmt_text("rm -rf %s", cache_dir)), 0);
}

/* Fills a new folder, runs a command on it, and says whether the kernel was taken from there after. */
static JitStats run_after(const char *command, bool *ok) {
    const char *dir = fmt_text("%s/whose", cache_dir);
    CHECK_INT(system(fmt_text("rm -rf %s", dir)), 0);
    JitStats s = run_once(dir, 3, ok);
    CHECK(*ok && s.compiled == 1);
    CHECK_INT(system(fmt_text("cd %s && %s", dir, command)), 0);
    s = run_once(dir, 3, ok);
    CHECK(*ok);
    return s;
}

/* What others could have written is not run: Note [Whose cache] of jit/cache.c. */
TEST(disk_cache_of_others) {
    bool ok;
    strcpy(cache_dir, "/tmp/relay-jit-XXXXXX");
    CHECK(mkdtemp(cache_dir) != NULL);
    if (run_once("", 3, &ok).compiled == UINT64_MAX)
        return;
    CHECK_INT(run_after("true", &ok).loaded, 1);
    CHECK_INT(run_after("test $(stat -c %a .) = 700 && test $(stat -c %a secret) = 600 && "
                        "test $(stat -c %s secret) = 16",
                        &ok)
                  .loaded,
              1);
    static const char *const commands[] = {
        "chmod 666 *.o",
        "chmod 620 *.o",
        "chmod 777 .",
        "chmod 770 .",
        "for f in *.o; do rm $f; mkfifo -m 600 $f; done",
        "for f in *.o; do mv $f real; ln -s real $f; done",
        "for f in *.o; do rm $f; ln -s /dev/zero $f; done",
        "for f in *.o; do rm $f; mkdir $f; done",
        "for f in *.o; do truncate -s 100G $f; done",
        "rm secret",
        "chmod 644 secret",
        "rm secret; mkfifo -m 600 secret",
        "rm secret; head -c 16 /dev/zero >secret; chmod 600 secret",
        "head -c 3 /dev/zero >secret",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        CHECK_INT(run_after(commands[i], &ok).compiled, 1);
    if (geteuid() == 0) {
        CHECK_INT(run_after("chown 65534 *.o", &ok).compiled, 1);
        CHECK_INT(run_after("chown 65534 secret", &ok).compiled, 1);
        CHECK_INT(run_after("chown 65534 .", &ok).compiled, 1);
    }
    /* After a bad secret or entry the folder serves again; one that others may write is left alone. */
    const char *dir = fmt_text("%s/whose", cache_dir);
    run_after("rm secret; mkfifo secret", &ok);
    CHECK_INT(run_once(dir, 3, &ok).loaded, 1);
    run_after("rm -rf *; chmod 777 .", &ok);
    CHECK_INT(system(fmt_text("test -z \"$(ls -A %s)\"", dir)), 0);
    /* A stranger's link leads nowhere. */
    if (geteuid() == 0) {
        run_after("mkdir real && chmod 700 real && ln -s real link && chown -h 65534 link", &ok);
        CHECK_INT(run_once(fmt_text("%s/link", dir), 3, &ok).compiled, 1);
        CHECK_INT(system(fmt_text("test -z \"$(ls -A %s/real)\"", dir)), 0);
    }
    CHECK_INT(system(fmt_text("rm -rf %s", cache_dir)), 0);
}

/* XDG_CACHE_HOME counts when it is absolute; else the home folder. */
TEST(disk_cache_of_the_environment) {
    bool ok;
    strcpy(cache_dir, "/tmp/relay-jit-XXXXXX");
    CHECK(mkdtemp(cache_dir) != NULL);
    if (run_once("", 3, &ok).compiled == UINT64_MAX)
        return;
    setenv("HOME", cache_dir, 1);
    static const char *const odd[] = {"", "relative", "./relative"};
    for (int i = 0; i < 3; i++) {
        setenv("XDG_CACHE_HOME", odd[i], 1);
        CHECK_INT(run_once(NULL, 3, &ok).compiled, i == 0);
        CHECK_INT(system("test ! -e relative && test ! -e relay/secret"), 0);
    }
    CHECK_INT(system(fmt_text("test -f %s/.cache/relay/secret", cache_dir)), 0);
    setenv("XDG_CACHE_HOME", fmt_text("%s/xdg", cache_dir), 1);
    CHECK_INT(run_once(NULL, 3, &ok).compiled, 1);
    CHECK_INT(run_once(NULL, 3, &ok).loaded, 1);
    setenv("HOME", "relative", 1);
    unsetenv("XDG_CACHE_HOME");
    CHECK_INT(run_once(NULL, 3, &ok).compiled, 1);
    CHECK_INT(system(fmt_text("rm -rf %s", cache_dir)), 0);
}

/* Processes that fill one new folder at the same time: each computes, and what is left is whole. */
TEST(disk_cache_of_several_processes) {
    bool ok;
    strcpy(cache_dir, "/tmp/relay-jit-XXXXXX");
    CHECK(mkdtemp(cache_dir) != NULL);
    if (run_once("", 3, &ok).compiled == UINT64_MAX)
        return;
    const char *dir = fmt_text("%s/shared", cache_dir);
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            run_once(dir, 3, &ok);
            _exit(!ok);
        }
    for (int i = 0; i < 4; i++) {
        int status = 1;
        CHECK(wait(&status) > 0 && status == 0);
    }
    CHECK_INT(run_once(dir, 3, &ok).loaded, 1);
    CHECK_INT(system(fmt_text("test -z \"$(ls -A %s | grep tmp)\"", dir)), 0);
    CHECK_INT(system(fmt_text("rm -rf %s", cache_dir)), 0);
}

TEST(interrupt) {
    Jit *jit = open_jit(0, 1, false, true);
    if (!jit)
        return;
    ScalarBuilder b = {0};
    Recipe r = doubled(&b, 2);
    KernelArgs args = over(N);
    int flag = 0;
    args.interrupt = &flag;
    CHECK_INT(jit_run(jit, &r, &args), KERNEL_DONE);
    flag = 1;
    CHECK_INT(jit_run(jit, &r, &args), KERNEL_INTERRUPTED);
    flag = 0;
    CHECK_INT(jit_run(jit, &r, &args), KERNEL_DONE);
    jit_close(jit);
}

/* A softmax-like sum of exponentials by rows: the same bits from one, two and five threads. */
TEST(threads) {
    ScalarBuilder b = {0};
    Sc x = sc_load(&b, 0, DT_F32);
    Recipe r = {.kind = RECIPE_REDUCE,
                .combine = COMBINE_SUM,
                .rank = 1,
                .nreduce = 1,
                .noperands = 1,
                .noutputs = 1,
                .acc_type = DT_F32};
    r.results[0] = sc_exp(&b, x);
    r.in_types[0] = r.out_types[0] = DT_F32;
    r.body = b.code.data;
    r.nbody = (uint16_t)b.code.len;
    KernelArgs args = {.extents = {400, 250}};
    args.in[0] = input;
    args.in_strides[0][0] = 250;
    args.in_strides[0][1] = args.out_strides[0][0] = 1;
    for (int i = 0; i < N; i++)
        input[i] = (float)(i * 37 % 1001) / 200 - 2;
    args.out[0] = expected;
    CHECK_INT(recipe_run(&r, &args), KERNEL_DONE);
    args.out[0] = output;
    for (int threads = 1; threads <= 5; threads += threads) {
        Jit *jit = open_jit(0, threads, false, true);
        if (!jit)
            return;
        for (int i = 0; i < 50; i++) {
            memset(output, 0, 400 * sizeof(float));
            CHECK_INT(jit_run(jit, &r, &args), KERNEL_DONE);
            CHECK(memcmp(output, expected, 400 * sizeof(float)) == 0);
        }
        jit_close(jit);
    }
}

int main(void) {
    RUN(map);
    RUN(reduce);
    RUN(product);
    RUN(windows);
    RUN(long_products);
    RUN(scan);
    RUN(scatter);
    RUN(disk_cache);
    RUN(disk_cache_of_others);
    RUN(disk_cache_of_the_environment);
    RUN(disk_cache_of_several_processes);
    RUN(interrupt);
    RUN(threads);
    return check_result();
}
