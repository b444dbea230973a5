/* SPDX-License-Identifier: Apache-2.0 */
/* The reference evaluation of recipes: what they mean, written plainly. A block of up to 256
 * lanes goes through the program instruction by instruction (ops/recipe/lanes.h), so it is not slow
 * either.
 *
 * A block walks some axes of the domain, [low, high), from a start given by `at`, row-major; the
 * other axes stand still. A MAP walks its parallel axes. A REDUCE walks its reduction axes for each
 * output, or, where these are few, its parallel axes for each element of the reduction: the
 * sixteen accumulators of an output are fed in the same order either way. */
#include "ops/recipe/lanes.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Run {
    const Recipe *r;
    const KernelArgs *args;
    const LaneTable *lanes;
    int naxes, low, high;        /* axes walked by the current block */
    int64_t at[RECIPE_MAX_AXES]; /* the first lane's indices, all axes */
    int n;                       /* lanes of the current block */
    const void *acc;             /* epilogue: folded values, one a lane */
} Run;

/* One program with its registers. A register is a block's storage; several values share one
 * when their lives do not overlap. Constants are filled once. */
typedef struct Program {
    const Scalar *code;
    int n;
    void **values;    /* where each value of the current block lies */
    char **registers; /* its own storage */
    char *storage;
} Program;

typedef double (*Math1)(double);
typedef double (*Math2)(double, double);
typedef float (*Math1f)(float);
typedef float (*Math2f)(float, float);
typedef union MathEntry {
    Math1 d1;
    Math2 d2;
    void (*any)(void);
} MathEntry;
typedef union MathEntryF {
    Math1f f1;
    Math2f f2;
    void (*any)(void);
} MathEntryF;
static const MathEntry math_f64[MATH_FN_COUNT] = {
#define X(e, name, n) {.d##n = name},
    MATH_FNS(X)
#undef X
};
static const MathEntryF math_f32[MATH_FN_COUNT] = {
#define X(e, name, n) {.f##n = name##f},
    MATH_FNS(X)
#undef X
};

/* ---- registers ------------------------------------------------------------------------------- */

static bool is_constant(const Scalar *c) { return c->op == SC_CONST || c->op == SC_PARAM; }

static void fill_constant(const Scalar *c, const KernelArgs *args, char *to, int n) {
    DType t = (DType)c->type;
    size_t size = dtype_size(t);
    if (dtype_is_float(t)) {
        double v = c->op == SC_CONST ? c->imm.f : args->fparams[c->a];
        elem_set_float(to, t, v);
    } else {
        elem_set_int(to, t, c->op == SC_CONST ? c->imm.i : args->iparams[c->a]);
    }
    int done = 1; /* twice as many each time: one by one costs a third of a short run */
    for (; done <= n / 2; done *= 2)
        memcpy(to + (size_t)done * size, to, (size_t)done * size);
    memcpy(to + (size_t)done * size, to, (size_t)(n - done) * size);
}

static bool is_result(const Recipe *r, const Scalar *code, int i) {
    if (code == r->epilogue)
        return i == r->nepilogue - 1;
    for (int k = 0; k < (r->kind == RECIPE_SCATTER ? 2 : r->noutputs); k++)
        if (r->results[k] == i)
            return true;
    /* A PRODUCT reads the factors of its last multiplication. */
    if (r->kind == RECIPE_PRODUCT) {
        const Scalar *product = &code[r->results[0]];
        return i == product->a || i == product->b;
    }
    return false;
}

/* Assigns registers by each value's last use. False: no memory. */
static bool program_init(Program *p, const Run *run, const Scalar *code, int n, int lanes) {
    size_t block = (size_t)lanes * 8;
    *p = (Program){.code = code, .n = n};
    if (n == 0)
        return true;
    size_t words = (size_t)n;
    char *memory = malloc(words * (sizeof(void *) * 2 + sizeof(int) * 3));
    if (!memory)
        return false;
    p->values = (void **)memory;
    p->registers = (char **)(memory + words * sizeof(void *));
    int *last_use = (int *)(memory + words * sizeof(void *) * 2);
    int *number = last_use + n, *idle = number + n;
    int nidle = 0, count = 0;
    for (int i = 0; i < n; i++)
        last_use[i] = is_constant(&code[i]) || is_result(run->r, code, i) ? n : i;
    for (int i = 0; i < n; i++) {
        const int32_t *read = code[i].at;
        ScalarReads reads = scalar_reads(&code[i]);
        for (int k = reads.first; k < reads.end; k++)
            if (last_use[read[k]] < i)
                last_use[read[k]] = i;
    }
    for (int i = 0; i < n; i++) {
        number[i] = nidle && !is_constant(&code[i]) ? idle[--nidle] : count++;
        const int32_t *read = code[i].at;
        ScalarReads reads = scalar_reads(&code[i]);
        for (int k = reads.first; k < reads.end; k++) {
            bool again = false;
            for (int j = reads.first; j < k; j++)
                again |= read[j] == read[k];
            if (last_use[read[k]] == i && !again)
                idle[nidle++] = number[read[k]];
        }
        if (last_use[i] == i)
            idle[nidle++] = number[i];
    }
    p->storage = malloc((size_t)count * block + 64);
    if (!p->storage)
        return false;
    char *base = p->storage + (-(uintptr_t)p->storage & 63);
    for (int i = 0; i < n; i++) {
        p->registers[i] = base + (size_t)number[i] * block;
        p->values[i] = p->registers[i];
        if (is_constant(&code[i]))
            fill_constant(&code[i], run->args, p->registers[i], lanes);
    }
    return true;
}

static void program_fini(Program *p) {
    free(p->storage);
    free(p->values);
}

/* ---- walking the domain ---------------------------------------------------------------------- */

static int64_t offset_of(const Run *run, const int64_t *strides) {
    int64_t offset = 0;
    for (int axis = 0; axis < run->naxes; axis++)
        offset += run->at[axis] * strides[axis];
    return offset;
}

/* A row: lanes that differ in the last walked axis only. */
typedef struct Rows {
    int64_t at[RECIPE_MAX_AXES];
    int64_t offset; /* of the operand, at the row's first lane */
    int lane, n;    /* the row's first lane and length */
} Rows;

static void rows_begin(Rows *w, const Run *run, const int64_t *strides) {
    memcpy(w->at, run->at, sizeof(int64_t) * (size_t)run->naxes);
    w->offset = offset_of(run, strides);
    w->lane = 0;
    w->n = run->n;
    if (run->high > run->low) {
        int64_t left = run->args->extents[run->high - 1] - run->at[run->high - 1];
        if (left < w->n)
            w->n = (int)left;
    }
}

/* Moves to the next row; false after the last. */
static bool rows_next(Rows *w, const Run *run, const int64_t *strides) {
    w->lane += w->n;
    if (w->lane >= run->n)
        return false;
    const int64_t *extents = run->args->extents;
    int axis = run->high - 1;
    w->offset -= w->at[axis] * strides[axis];
    w->at[axis] = 0;
    while (axis-- > run->low) {
        w->offset += strides[axis];
        if (++w->at[axis] < extents[axis])
            break;
        w->offset -= extents[axis] * strides[axis];
        w->at[axis] = 0;
    }
    int64_t row = extents[run->high - 1];
    w->n = row < run->n - w->lane ? (int)row : run->n - w->lane;
    return true;
}

/* Sets `at` to flat position i (row-major) of the axes [low, high). */
static void seek(Run *run, int low, int high, int64_t i) {
    for (int axis = high; axis-- > low;) {
        run->at[axis] = i % run->args->extents[axis];
        i /= run->args->extents[axis];
    }
}

/* Sets the axes [low, high) that the next block runs along, and the number of its lanes. */
static void set_axes(Run *run, int low, int high, int n) {
    run->low = low;
    run->high = high;
    run->n = n;
}

static int64_t inner_stride(const Run *run, const int64_t *strides) {
    return run->high > run->low ? strides[run->high - 1] : 0;
}

/* ---- one block ------------------------------------------------------------------------------- */

static void load(const Run *run, Program *p, int i) {
    const Scalar *c = &p->code[i];
    const int64_t *strides = run->args->in_strides[c->a];
    DType stored = (DType)run->r->in_types[c->a];
    const char *base = run->args->in[c->a];
    size_t size = dtype_size(stored), wide = dtype_size((DType)c->type);
    int64_t inner = inner_stride(run, strides);
    Rows w;
    rows_begin(&w, run, strides);
    p->values[i] = p->registers[i];
    if (c->op == SC_LOAD && w.n == run->n && inner == 1 && stored == (DType)c->type &&
        stored != DT_BOOL) {
        p->values[i] = (void *)(base + w.offset * (int64_t)size); /* as it lies */
        return;
    }
    unsigned char otherwise[8];
    if (c->op == SC_LOAD_IF) {
        if (dtype_is_float((DType)c->type))
            elem_set_float(otherwise, (DType)c->type, c->imm.f);
        else
            elem_set_int(otherwise, (DType)c->type, c->imm.i);
    }
    do {
        char *to = p->registers[i] + (size_t)w.lane * wide;
        const char *from = base + w.offset * (int64_t)size;
        if (c->op == SC_LOAD)
            run->lanes->load[stored](to, from, inner, w.n);
        else
            run->lanes->load_at[stored](
                to, from, inner, (const int64_t *)p->values[c->b] + w.lane,
                c->op == SC_LOAD_IF ? (const uint8_t *)p->values[c->c] + w.lane : NULL, otherwise,
                w.n);
    } while (rows_next(&w, run, strides));
}

static void iota(const Run *run, int axis, int64_t *to) {
    static const int64_t none[RECIPE_MAX_AXES];
    Rows w;
    rows_begin(&w, run, none);
    int64_t step = axis == run->high - 1 && run->high > run->low;
    do {
        for (int l = 0; l < w.n; l++)
            to[w.lane + l] = w.at[axis] + step * l;
    } while (rows_next(&w, run, none));
}

static void call_if(const Scalar *c, void *to, const void *x, const uint8_t *cond, const void *y,
                    int n) {
    memcpy(to, y, dtype_size((DType)c->type) * (size_t)n);
    for (int i = 0; i < n; i++)
        if (cond[i] && c->type == DT_F32)
            ((float *)to)[i] = math_f32[c->imm.i].f1(((const float *)x)[i]);
        else if (cond[i])
            ((double *)to)[i] = math_f64[c->imm.i].d1(((const double *)x)[i]);
}

static void call(const Scalar *c, void *to, const void *x, const void *y, int n) {
    if (c->type == DT_F32) {
        float *d = to;
        const float *a = x, *b = y;
        for (int i = 0; i < n; i++)
            d[i] = c->op == SC_CALL1 ? math_f32[c->imm.i].f1(a[i])
                                     : math_f32[c->imm.i].f2(a[i], b[i]);
    } else {
        double *d = to;
        const double *a = x, *b = y;
        for (int i = 0; i < n; i++)
            d[i] = c->op == SC_CALL1 ? math_f64[c->imm.i].d1(a[i])
                                     : math_f64[c->imm.i].d2(a[i], b[i]);
    }
}

/* Runs instructions [0, n) of a program over the current block. */
static int32_t evaluate(const Run *run, Program *p, int n) {
    for (int i = 0; i < n; i++) {
        const Scalar *c = &p->code[i];
        void *to = p->registers[i];
        void **v = p->values;
        switch ((ScalarOp)c->op) {
        case SC_CONST:
        case SC_PARAM: break;
        case SC_IOTA: iota(run, c->a, to); break;
        case SC_LOAD:
        case SC_LOAD_AT:
        case SC_LOAD_IF: load(run, p, i); break;
        case SC_ACC: v[i] = (void *)run->acc; break;
        case SC_CALL1: call(c, to, v[c->a], NULL, run->n); break;
        case SC_CALL2: call(c, to, v[c->a], v[c->b], run->n); break;
        case SC_CALL_IF: call_if(c, to, v[c->a], v[c->b], v[c->c], run->n); break;
        case SC_CAST: run->lanes->cast[c->from][c->type](to, v[c->a], NULL, NULL, run->n); break;
        case SC_CHECK:
        case SC_NEG:
        case SC_ABS:
        case SC_SQRT:
        case SC_FLOOR:
        case SC_CEIL:
        case SC_TRUNC:
        case SC_ROUND:
        case SC_NOT:
        case SC_BITS:
        case SC_ADD:
        case SC_SUB:
        case SC_MUL:
        case SC_DIV:
        case SC_REM:
        case SC_MIN:
        case SC_MAX:
        case SC_AND:
        case SC_OR:
        case SC_XOR:
        case SC_SHL:
        case SC_SHR:
        case SC_EQ:
        case SC_NE:
        case SC_LT:
        case SC_LE:
        case SC_GT:
        case SC_GE:
        case SC_FMA:
        case SC_SELECT: {
            int end = scalar_reads(c).end;
            LaneFn fn = run->lanes->op[c->op][c->type];
            int32_t status = fn(to, v[c->a], v[end > 1 ? c->b : 0], v[end > 2 ? c->c : 0], run->n);
            if (status != KERNEL_DONE)
                return c->op == SC_CHECK ? (int32_t)c->imm.i : status;
            break;
        }
        case SCALAR_OP_COUNT: break;
        }
    }
    return KERNEL_DONE;
}

static DType value_type(const Scalar *c) {
    return c->op >= SC_EQ && c->op <= SC_GE ? DT_BOOL : (DType)c->type;
}

static void store(const Run *run, int output, DType type, const void *values) {
    const int64_t *strides = run->args->out_strides[output];
    DType stored = (DType)run->r->out_types[output];
    int64_t inner = inner_stride(run, strides);
    size_t size = dtype_size(type);
    Rows w;
    rows_begin(&w, run, strides);
    do {
        char *to = (char *)run->args->out[output] + w.offset * (int64_t)dtype_size(stored);
        const char *from = (const char *)values + (size_t)w.lane * size;
        if (type == DT_F64 && stored != DT_F64)
            run->lanes->store_f64_half[stored == DT_BF16](to, inner, from, w.n);
        else
            run->lanes->store[stored](to, inner, from, w.n);
    } while (rows_next(&w, run, strides));
}

static bool interrupted(const Run *run) { return run->args->interrupt && *run->args->interrupt; }

static int64_t extent_product(const Run *run, int low, int high) {
    int64_t n = 1;
    for (int axis = low; axis < high; axis++)
        n *= run->args->extents[axis];
    return n;
}

static int block_of(int64_t left) { return left < LANES ? (int)left : LANES; }

/* This thread's piece of n. */
static void piece(const KernelArgs *args, int64_t n, int64_t *begin, int64_t *end) {
    int64_t threads = args->nthreads > 1 ? args->nthreads : 1;
    *begin = n / threads * args->thread + (n % threads < args->thread ? n % threads : args->thread);
    *end = *begin + n / threads + (args->thread < n % threads);
}

/* ---- the kinds ------------------------------------------------------------------------------- */

static int32_t run_map(Run *run, Program *body) {
    const Recipe *r = run->r;
    int64_t i, end;
    piece(run->args, extent_product(run, 0, r->rank), &i, &end);
    while (i < end) {
        if (interrupted(run))
            return KERNEL_INTERRUPTED;
        seek(run, 0, r->rank, i);
        set_axes(run, 0, r->rank, block_of(end - i));
        int32_t status = evaluate(run, body, r->nbody);
        if (status != KERNEL_DONE)
            return status;
        for (int k = 0; k < r->noutputs; k++)
            store(run, k, value_type(&r->body[r->results[k]]), body->values[r->results[k]]);
        i += run->n;
    }
    return KERNEL_DONE;
}

static void set_unit(void *p, const Recipe *r, int n) {
    DType t = (DType)r->acc_type;
    size_t size = dtype_size(t);
    bool least = r->combine == COMBINE_MAX || r->combine == COMBINE_ARGMAX;
    unsigned char unit[8] = {0};
    switch (r->combine) {
    case COMBINE_NONE:
    case COMBINE_SUM:
    case COMBINE_ANY: break;
    case COMBINE_PROD:
    case COMBINE_ALL: elem_set_int(unit, t, 1); break;
    case COMBINE_MAX:
    case COMBINE_ARGMAX:
    case COMBINE_MIN:
    case COMBINE_ARGMIN:
        if (t == DT_BOOL)
            unit[0] = !least;
        else
            elem_set_float(unit, t, least ? -INFINITY : INFINITY); /* saturates for integers */
        break;
    }
    for (int i = 0; i < n; i++)
        memcpy((char *)p + (size_t)i * size, unit, size);
}

/* Whether value v at index i beats the best so far. */
#define BEATS(T, v, i, w, j)                                                                       \
    ((v) != (v) || (w) != (w) ? ((v) != (v) && ((w) == (w) || FIRST(i, j)))                        \
                              : ((v) == (w) ? FIRST(i, j) : (max ? (v) > (w) : (v) < (w))))
#define FIRST(i, j) (last ? (i) > (j) : (i) < (j))
#define ARG_JOIN(T)                                                                                \
    {                                                                                              \
        T *best = best_;                                                                           \
        const T *v = v_;                                                                           \
        for (int l = 0; l < n; l++) {                                                              \
            int k = modulo ? l & 15 : l;                                                           \
            if (BEATS(T, v[l], index[l], best[k], best_index[k])) {                                \
                best[k] = v[l];                                                                    \
                best_index[k] = index[l];                                                          \
            }                                                                                      \
        }                                                                                          \
        return;                                                                                    \
    }
/* best[k] = the better of best[k] and v[l], where k is l, or l mod 16. */
static void arg_join(const Recipe *r, void *best_, int64_t *best_index, const void *v_,
                     const int64_t *index, int n, bool modulo) {
    bool max = r->combine == COMBINE_ARGMAX, last = r->last;
    switch ((DType)r->acc_type) {
    case DT_BOOL:
    case DT_U8: ARG_JOIN(uint8_t)
    case DT_I8: ARG_JOIN(int8_t)
    case DT_I16: ARG_JOIN(int16_t)
    case DT_I32: ARG_JOIN(int32_t)
    case DT_I64: ARG_JOIN(int64_t)
    case DT_U16: ARG_JOIN(uint16_t)
    case DT_U32: ARG_JOIN(uint32_t)
    case DT_U64: ARG_JOIN(uint64_t)
    case DT_F32: ARG_JOIN(float)
    case DT_F64: ARG_JOIN(double)
    case DT_F16:
    case DT_BF16:
    case DTYPE_COUNT: return;
    }
}

static bool is_arg(const Recipe *r) {
    return r->combine == COMBINE_ARGMAX || r->combine == COMBINE_ARGMIN;
}

enum { ACCUMULATORS = 16 };

/* Storage of a block of outputs being folded: 8 bytes a value, whatever acc_type is. */
typedef struct Folds {
    int64_t *values[ACCUMULATORS]; /* one a lane; when lanes are elements, 16 in values[0] */
    int64_t *index[ACCUMULATORS];  /* ARG… */
    int64_t *now;                  /* LANES indices */
    int64_t *done;                 /* one folded value an output */
    int64_t *storage;
} Folds;

static bool folds_init(Folds *f, bool arg, int n) {
    size_t lanes = (size_t)(n > ACCUMULATORS ? n : ACCUMULATORS);
    int64_t *p = f->storage = malloc(
        sizeof(int64_t) * (lanes * (1 + ACCUMULATORS * (arg ? 2 : 1)) + (arg ? LANES : 0)));
    if (!p)
        return false;
    for (int j = 0; j < ACCUMULATORS; j++, p += lanes)
        f->values[j] = p;
    for (int j = 0; arg && j < ACCUMULATORS; j++, p += lanes)
        f->index[j] = p;
    f->done = p;
    f->now = p + lanes;
    return true;
}

/* The reduction of each output in turn; its elements are the lanes. */
static int32_t fold_inner(Run *run, Program *body, Folds *f, int64_t begin, int n) {
    const Recipe *r = run->r;
    DType t = (DType)r->acc_type;
    size_t size = dtype_size(t);
    int64_t count = extent_product(run, r->rank, run->naxes);
    int32_t status;
    for (int k = 0; k < n; k++) {
        char *acc = (char *)f->values[0], *to = (char *)f->done + (size_t)k * size;
        set_unit(acc, r, ACCUMULATORS);
        for (int j = 0; is_arg(r) && j < ACCUMULATORS; j++)
            f->index[0][j] = r->last ? -1 : INT64_MAX;
        seek(run, 0, r->rank, begin + k);
        for (int64_t j = 0; j < count; j += run->n) {
            if (interrupted(run))
                return KERNEL_INTERRUPTED;
            seek(run, r->rank, run->naxes, j);
            set_axes(run, r->rank, run->naxes, block_of(count - j));
            if (r->kind == RECIPE_PRODUCT) {
                const Scalar *product = &r->body[r->results[0]];
                if ((status = evaluate(run, body, r->results[0])) != KERNEL_DONE)
                    return status;
                run->lanes->dot[t](acc, body->values[product->a], body->values[product->b], run->n);
                continue;
            }
            if ((status = evaluate(run, body, r->nbody)) != KERNEL_DONE)
                return status;
            const void *v = body->values[r->results[0]];
            if (is_arg(r)) {
                for (int l = 0; l < run->n; l++)
                    f->now[l] = j + l;
                arg_join(r, acc, f->index[0], v, f->now, run->n, true);
            } else {
                run->lanes->fold[r->combine][t](acc, v, run->n);
            }
        }
        if (r->kind == RECIPE_PRODUCT) {
            memcpy(to, acc, size);
            continue;
        }
        for (int s = ACCUMULATORS / 2; s > 0; s /= 2) {
            if (is_arg(r))
                arg_join(r, acc, f->index[0], acc + (size_t)s * size, f->index[0] + s, s, false);
            else
                run->lanes->join[r->combine][t](acc, acc + (size_t)s * size, s);
        }
        if (is_arg(r))
            f->done[k] = f->index[0][0];
        else
            memcpy(to, acc, size);
    }
    return KERNEL_DONE;
}

/* The reduction of a block of outputs together; they are the lanes. */
static int32_t fold_outer(Run *run, Program *body, Folds *f, int64_t begin, int n) {
    const Recipe *r = run->r;
    DType t = (DType)r->acc_type;
    size_t size = dtype_size(t);
    int64_t count = extent_product(run, r->rank, run->naxes);
    int32_t status;
    int naccs = r->kind == RECIPE_PRODUCT ? 1 : ACCUMULATORS;
    for (int j = 0; j < naccs; j++) {
        set_unit(f->values[j], r, n);
        for (int l = 0; is_arg(r) && l < n; l++)
            f->index[j][l] = r->last ? -1 : INT64_MAX;
    }
    for (int64_t j = 0; j < count; j++) {
        if (j % 16 == 0 && interrupted(run))
            return KERNEL_INTERRUPTED;
        seek(run, 0, r->rank, begin);
        seek(run, r->rank, run->naxes, j);
        set_axes(run, 0, r->rank, n);
        if (r->kind == RECIPE_PRODUCT) {
            const Scalar *product = &r->body[r->results[0]];
            if ((status = evaluate(run, body, r->results[0])) != KERNEL_DONE)
                return status;
            run->lanes->multiply_add[t](f->values[0], body->values[product->a],
                                        body->values[product->b], n);
            continue;
        }
        if ((status = evaluate(run, body, r->nbody)) != KERNEL_DONE)
            return status;
        const void *v = body->values[r->results[0]];
        if (is_arg(r)) {
            for (int l = 0; l < n; l++)
                f->now[l] = j;
            arg_join(r, f->values[j % 16], f->index[j % 16], v, f->now, n, false);
        } else {
            run->lanes->join[r->combine][t](f->values[j % 16], v, n);
        }
    }
    for (int s = naccs / 2; s > 0; s /= 2)
        for (int j = 0; j < s; j++) {
            if (is_arg(r))
                arg_join(r, f->values[j], f->index[j], f->values[j + s], f->index[j + s], n, false);
            else
                run->lanes->join[r->combine][t](f->values[j], f->values[j + s], n);
        }
    memcpy(f->done, is_arg(r) ? (void *)f->index[0] : (void *)f->values[0],
           (is_arg(r) ? sizeof(int64_t) : size) * (size_t)n);
    return KERNEL_DONE;
}

static int32_t run_reduce(Run *run, Program *body, Program *epilogue) {
    const Recipe *r = run->r;
    int64_t i, end, count = extent_product(run, r->rank, run->naxes);
    piece(run->args, extent_product(run, 0, r->rank), &i, &end);
    int64_t few = r->kind == RECIPE_PRODUCT ? 32 * (end - i) : 64;
    bool strided = run->naxes > 0 && run->args->in_strides[0][run->naxes - 1] != 1;
    bool outer = end - i > 1 && (count < few || end - i >= 8 * count || (strided && end - i >= 64));
    Folds folds, *f = &folds;
    if (!folds_init(f, is_arg(r), block_of(end - i)))
        return KERNEL_MEMORY;
    int32_t status = KERNEL_DONE;
    for (; i < end && status == KERNEL_DONE; i += block_of(end - i)) {
        int n = block_of(end - i);
        status = interrupted(run) ? KERNEL_INTERRUPTED
                 : outer          ? fold_outer(run, body, f, i, n)
                                  : fold_inner(run, body, f, i, n);
        if (status != KERNEL_DONE)
            break;
        seek(run, 0, r->rank, i);
        memset(run->at + r->rank, 0, sizeof(int64_t) * r->nreduce);
        set_axes(run, 0, r->rank, n);
        run->acc = f->done;
        DType type = is_arg(r) ? DT_I64 : (DType)r->acc_type;
        if (r->nepilogue) {
            status = evaluate(run, epilogue, r->nepilogue);
            type = value_type(&r->epilogue[r->nepilogue - 1]);
            if (status == KERNEL_DONE)
                store(run, 0, type, epilogue->values[r->nepilogue - 1]);
        } else {
            store(run, 0, type, f->done);
        }
    }
    free(f->storage);
    return status;
}

static int32_t run_scan(Run *run, Program *body) {
    const Recipe *r = run->r;
    DType t = (DType)r->acc_type;
    size_t size = dtype_size(t);
    int last = r->rank - 1;
    int64_t row, end, length = run->args->extents[last];
    int64_t acc[2], out[LANES];
    piece(run->args, extent_product(run, 0, last), &row, &end);
    for (; row < end; row++) {
        set_unit(acc, r, 1);
        for (int64_t j = 0; j < length; j += run->n) {
            if (interrupted(run))
                return KERNEL_INTERRUPTED;
            seek(run, 0, last, row);
            run->at[last] = j;
            set_axes(run, last, r->rank, block_of(length - j));
            int32_t status = evaluate(run, body, r->nbody);
            if (status != KERNEL_DONE)
                return status;
            const char *v = body->values[r->results[0]];
            for (int l = 0; l < run->n; l++) {
                if (r->last)
                    memcpy((char *)out + (size_t)l * size, acc, size);
                run->lanes->join[r->combine][t](acc, v + (size_t)l * size, 1);
                if (!r->last)
                    memcpy((char *)out + (size_t)l * size, acc, size);
            }
            store(run, 0, t, out);
        }
    }
    return KERNEL_DONE;
}

static int32_t run_scatter(Run *run, Program *body) {
    const Recipe *r = run->r;
    DType t = value_type(&r->body[r->results[0]]), stored = (DType)r->out_types[0];
    size_t size = dtype_size(t);
    const int64_t *strides = run->args->out_strides[0];
    int64_t count = extent_product(run, 0, r->rank);
    if (run->args->thread > 0)
        return KERNEL_DONE; /* order matters: one thread does it */
    for (int64_t i = 0; i < count; i += run->n) {
        if (interrupted(run))
            return KERNEL_INTERRUPTED;
        seek(run, 0, r->rank, i);
        set_axes(run, 0, r->rank, block_of(count - i));
        int32_t status = evaluate(run, body, r->nbody);
        if (status != KERNEL_DONE)
            return status;
        const char *v = body->values[r->results[0]];
        const int64_t *offset = body->values[r->results[1]];
        int64_t inner = inner_stride(run, strides);
        Rows w;
        rows_begin(&w, run, strides);
        do {
            for (int l = w.lane; l < w.lane + w.n; l++) {
                int64_t place = w.offset + inner * (l - w.lane) + offset[l];
                char *to = (char *)run->args->out[0] + place * (int64_t)dtype_size(stored);
                const char *value = v + (size_t)l * size;
                int64_t old;
                if (r->combine != COMBINE_NONE) {
                    run->lanes->load[stored](&old, to, 0, 1);
                    run->lanes->join[r->combine][t](&old, value, 1);
                    value = (const char *)&old;
                }
                run->lanes->store[stored](to, 1, value, 1);
            }
        } while (rows_next(&w, run, strides));
    }
    return KERNEL_DONE;
}

/* Part by part: see RecipePart. */
static int32_t run_rows(const Recipe *r, const KernelArgs *args) {
    if (args->thread > 0)
        return KERNEL_DONE; /* parts are cut at other places: one thread does them */
    KernelArgs *own = malloc(sizeof *own);
    if (!own)
        return KERNEL_MEMORY;
    *own = *args;
    own->nthreads = 1;
    int32_t status = KERNEL_DONE;
    for (int k = 0; k < r->nparts && status == KERNEL_DONE; k++) {
        Recipe part;
        recipe_part(r, k, &part);
        for (int i = 0; i < part.noutputs; i++) {
            own->out[i] = args->out[r->parts[k].out + i];
            memcpy(own->out_strides[i], args->out_strides[r->parts[k].out + i],
                   sizeof own->out_strides[i]);
        }
        status = recipe_run(&part, own);
    }
    free(own);
    return status;
}

static int32_t run_kind(Run *run, Program *body, Program *epilogue) {
    switch ((RecipeKind)run->r->kind) {
    case RECIPE_MAP: return run_map(run, body);
    case RECIPE_REDUCE:
    case RECIPE_PRODUCT: return run_reduce(run, body, epilogue);
    case RECIPE_SCAN: return run_scan(run, body);
    case RECIPE_SCATTER: return run_scatter(run, body);
    case RECIPE_ROWS: break; /* never asked: recipe_run */
    }
    return KERNEL_DONE;
}

int32_t recipe_run(const Recipe *r, const KernelArgs *args) {
    if (r->kind == RECIPE_ROWS)
        return run_rows(r, args);
    Run run = {.r = r, .args = args, .lanes = lanes_get(), .naxes = r->rank + r->nreduce};
    int64_t lanes = 1;
    for (int axis = 0; axis < run.naxes; axis++) {
        int64_t e = args->extents[axis];
        if (e == 0 && axis < r->rank)
            return KERNEL_DONE;
        lanes = lanes >= LANES || e >= LANES ? LANES : lanes * (e ? e : 1);
    }
    if (lanes > LANES)
        lanes = LANES;
    Program body, epilogue;
    bool ready = program_init(&body, &run, r->body, r->nbody, (int)lanes);
    ready &= program_init(&epilogue, &run, r->epilogue, r->nepilogue, (int)lanes);
    int32_t status = ready ? KERNEL_DONE : KERNEL_MEMORY;
    if (ready)
        status = run_kind(&run, &body, &epilogue);
    program_fini(&body);
    program_fini(&epilogue);
    return status;
}
