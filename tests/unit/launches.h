/* SPDX-License-Identifier: Apache-2.0 */
/* Random launches of recipes of every kind, over every dtype, with broadcast, transposed, reversed and gapped operands,
 * for test_jit.c. */
#ifndef TESTS_UNIT_LAUNCHES_H
#define TESTS_UNIT_LAUNCHES_H

#include "ops/recipe/scalar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t rng_state;
static inline uint64_t rng(void) {
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state * 0x2545f4914f6cdd1du >> 11;
}
static inline int below(int n) { return (int)(rng() % (uint64_t)n); }

typedef struct Launch {
    Recipe r;
    KernelArgs args;
    char *in[RECIPE_MAX_OPERANDS], *out[RECIPE_MAX_OPERANDS], *out2[RECIPE_MAX_OPERANDS];
    size_t in_bytes[RECIPE_MAX_OPERANDS], out_bytes[RECIPE_MAX_OPERANDS];
    char *blocks[RECIPE_MAX_OPERANDS];
    int handed
        [RECIPE_MAX_OPERANDS]; /* an operand that is an output of an earlier part: 1 + which */
    bool beside;               /* all outputs lie in the first one's block */
    ScalarBuilder body, epilogue;
} Launch;

static inline void fill_random(char *p, DType t, int64_t n) {
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
static inline int64_t layout(const int64_t *extents, int naxes, int64_t *strides, int64_t *first,
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
static inline size_t guarded_bytes(size_t n) { return (n + PAGE - 1) / PAGE * PAGE; }
static inline char *guarded_new(size_t n, char **block, size_t align) {
    size_t whole = guarded_bytes(n);
    char *p = mmap(NULL, whole + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p + PAGE, whole, PROT_READ | PROT_WRITE);
    *block = p;
    return p + PAGE + (below(2) ? 0 : (whole - n) / align * align);
}

/* Operand k of n elements, the first of the launch `first` after theirs. */
static inline void fill_input(Launch *l, int k, DType t, int64_t n, int64_t first) {
    l->r.in_types[k] = (uint8_t)t;
    l->in_bytes[k] = (size_t)n * dtype_size(t);
    l->in[k] = guarded_new(l->in_bytes[k], &l->blocks[k], dtype_size(t));
    fill_random(l->in[k], t, n);
    l->args.in[k] = l->in[k] + first * (int64_t)dtype_size(t);
}

static inline int add_input(Launch *l, DType t, int naxes, int64_t slack) {
    int k = l->r.noperands++;
    int64_t first, n = layout(l->args.extents, naxes, l->args.in_strides[k], &first, false) + slack;
    fill_input(l, k, t, n, first);
    return k;
}

static inline void add_output_over(Launch *l, DType t, int naxes, int64_t slack) {
    int k = l->r.noutputs++;
    int64_t first, n = layout(l->args.extents, naxes, l->args.out_strides[k], &first, true) + slack;
    l->r.out_types[k] = (uint8_t)t;
    l->out_bytes[k] = (size_t)n * dtype_size(t);
    l->out[k] = malloc(l->out_bytes[k] + 1);
    l->out2[k] = malloc(l->out_bytes[k] + 1);
    fill_random(l->out[k], t, n);
    memcpy(l->out2[k], l->out[k], l->out_bytes[k]);
    l->args.out[k] = l->out[k] + first * (int64_t)dtype_size(t);
}

static inline void add_output(Launch *l, DType t, int64_t slack) {
    add_output_over(l, t, l->r.rank, slack);
}

static inline DType stored_as(DType t) {
    if (t == DT_F32 || t == DT_F64) {
        int k = below(6);
        return k == 0 ? DT_F16 : k == 1 ? DT_BF16 : t;
    }
    return t;
}

static inline Sc leaf(Launch *l, ScalarBuilder *b, DType t, int naxes, bool body) {
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

static inline Sc expression(Launch *l, ScalarBuilder *b, DType t, int depth, int naxes, bool body) {
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

static inline void make(Launch *l, RecipeKind kind) {
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
static inline void make_windows(Launch *l) {
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

/* Sums of many outer products, of few rows or of many, whose reduction may be cut: batch, rows, lanes; steps. */
static inline void make_long(Launch *l) {
    enum { AXES = 4, RANK = 3 };
    memset(l, 0, sizeof *l);
    Recipe *r = &l->r;
    *r = (Recipe){
        .kind = RECIPE_PRODUCT, .combine = COMBINE_SUM, .rank = RANK, .nreduce = AXES - RANK};
    int64_t *n = l->args.extents, *x = l->args.in_strides[0], *y = l->args.in_strides[1];
    n[0] = 1 + (below(3) == 0);
    bool few = below(2);
    n[1] = few ? 1 + below(2) : 20 + below(30);
    n[2] = few ? 200 + below(100) : 20 + below(30);
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

/* Outputs that lie beside each other, as the columns that `stack` puts together, in one block. */
static inline void make_beside(Launch *l) {
    static const int sizes[] = {1, 2, 7, 16, 33, 70};
    memset(l, 0, sizeof *l);
    Recipe *r = &l->r;
    r->kind = RECIPE_MAP;
    r->rank = (uint8_t)(1 + below(2));
    l->beside = true;
    for (int a = 0; a < r->rank; a++)
        l->args.extents[a] = sizes[below(6)];
    DType t = value_types[below(NVALUES)], out = stored_as(t);
    int n = 2 + below(11);
    for (int k = 0; k < n; k++) {
        bool is_wide = dtype_is_float(out) && out != DT_F32 && below(4) == 0; /* rounded twice */
        r->results[k] = expression(l, &l->body, is_wide ? DT_F64 : t, below(8) == 0, r->rank, true);
        r->out_types[k] = (uint8_t)out;
    }
    int64_t step = n + below(3), size = (int64_t)dtype_size(out);
    for (int a = r->rank; a-- > 0; step *= l->args.extents[a])
        for (int k = 0; k < n; k++)
            l->args.out_strides[k][a] = step;
    r->noutputs = (uint8_t)n;
    r->acc_type = (uint8_t)t;
    l->out_bytes[0] = (size_t)(step * size);
    l->out[0] = malloc(l->out_bytes[0]);
    l->out2[0] = malloc(l->out_bytes[0]);
    fill_random(l->out[0], out, step);
    memcpy(l->out2[0], l->out[0], l->out_bytes[0]);
    for (int k = 0; k < n; k++)
        l->args.out[k] = l->out[0] + k * size;
}

/* Output `from` as an operand. */
static inline int hand_on(Launch *l, int from) {
    int k = l->r.noperands++;
    l->handed[k] = from + 1;
    l->r.in_types[k] = l->r.out_types[from];
    l->args.in[k] = l->args.out[from];
    memcpy(l->args.in_strides[k], l->args.out_strides[from], sizeof l->args.in_strides[k]);
    return k;
}

/* A value of the part's own operands, and perhaps of what an earlier part wrote. */
static inline Sc part_value(Launch *l, ScalarBuilder *b, DType t, int naxes) {
    Sc x = expression(l, b, t, below(3), naxes, true);
    if (l->r.noutputs == 0 || below(4) == 0)
        return x;
    int from = below(l->r.noutputs);
    Sc y = sc_cast(b, sc_load(b, hand_on(l, from), (DType)l->r.out_types[from]), t);
    return sc_op2(b, t == DT_BOOL ? SC_OR : SC_ADD, x, y);
}

static inline void add_part(Launch *l) {
    Recipe *r = &l->r;
    RecipePart *part = &r->parts[r->nparts++];
    DType t = value_types[below(NVALUES)], out = stored_as(t);
    ScalarBuilder body = {0}, epilogue = {0};
    bool is_map = below(2);
    part->kind = is_map ? RECIPE_MAP : RECIPE_REDUCE;
    part->out = r->noutputs;
    part->noutputs = 1;
    part->acc_type = (uint8_t)t;
    r->results[part->out] = part_value(l, &body, t, r->rank + 1);
    if (!is_map) {
        part->combine = (uint8_t)(t == DT_BOOL ? COMBINE_ALL : COMBINE_SUM + below(4));
        if (below(6) == 0) {
            part->combine = COMBINE_ARGMAX;
            sc_cast(&epilogue, sc_acc(&epilogue, DT_I64), out = DT_I32);
        } else if (below(2) && t != DT_BOOL) {
            Sc acc = sc_acc(&epilogue, t);
            sc_op2(&epilogue, SC_ADD, acc, expression(l, &epilogue, t, 1, r->rank, false));
        }
    }
    add_output_over(l, out, is_map ? r->rank + 1 : r->rank, 0);
    part->nbody = (uint16_t)body.code.len;
    part->nepilogue = (uint16_t)epilogue.code.len;
    for (size_t i = 0; i < body.code.len; i++)
        vec_push(&l->body.code, body.code.data[i]);
    for (size_t i = 0; i < epilogue.code.len; i++)
        vec_push(&l->epilogue.code, epilogue.code.data[i]);
}

/* Folds of rows and maps over them. */
static inline void make_rows(Launch *l) {
    static const int sizes[] = {1, 2, 3, 8, 10, 15, 16, 17, 33, 64, 70};
    memset(l, 0, sizeof *l);
    l->r.kind = RECIPE_ROWS;
    l->r.rank = (uint8_t)below(3);
    l->r.nreduce = 1;
    for (int a = 0; a <= l->r.rank; a++)
        l->args.extents[a] = sizes[below(11)];
    for (int i = 0; i < 4; i++) {
        l->args.iparams[i] = below(9) - 3;
        l->args.fparams[i] = below(90) / 16.0;
    }
    for (int k = 2 + below(3); k > 0; k--)
        add_part(l);
}

static inline void drop(Launch *l) {
    for (int k = 0; k < l->r.noperands; k++)
        if (!l->handed[k])
            munmap(l->blocks[k], guarded_bytes(l->in_bytes[k]) + 2 * PAGE);
    for (int k = 0; k < l->r.noutputs; k++) {
        free(l->out[k]);
        free(l->out2[k]);
    }
}

#endif
