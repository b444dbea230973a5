/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers from explicit keys: Threefry-4x64-20 (Salmon et al., "Parallel random numbers: as
 * easy as 1, 2, 3", SC'11), a hash of a key and a counter, split as in Claessen and Palka
 * ("Splittable pseudorandom number generators using cryptographic hashing", 2013, encoding e4).
 * TVM's layout of a key, ten uint64:
 *
 *     0..3 key    4, 5 path of splits    6, 7 counter    8, 9 one bit: the next place in the path
 *
 * The same numbers on every machine, engine and number of threads. Normal numbers use the C
 * library's log and cos in float64, rounded once. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ops/relate/signature.h"
#include "ops/relate/structured.h"

typedef struct Key {
    uint64_t w[10];
} Key;

static uint64_t rotate(uint64_t x, int n) { return x << n | x >> (64 - n); }

/* out = Threefry of the counter under the key. */
static void threefry(const uint64_t key[4], const uint64_t counter[4], uint64_t out[4]) {
    static const int rotations[8][2] = {{14, 16}, {52, 57}, {23, 40}, {5, 37},
                                        {25, 33}, {46, 12}, {58, 22}, {32, 32}};
    uint64_t k[5], x[4];
    k[4] = 0x1BD11BDAA9FC1A22u;
    for (int i = 0; i < 4; i++) {
        k[i] = key[i];
        k[4] ^= key[i];
        x[i] = counter[i] + key[i];
    }
    for (int round = 0; round < 20; round++) {
        const int *r = rotations[round % 8];
        x[0] += x[1];
        x[1] = rotate(x[1], r[0]) ^ x[0];
        x[2] += x[3];
        x[3] = rotate(x[3], r[1]) ^ x[2];
        uint64_t t = x[1];
        x[1] = x[3];
        x[3] = t;
        if (round % 4 != 3)
            continue;
        uint64_t s = (uint64_t)(round / 4 + 1);
        for (int i = 0; i < 4; i++)
            x[i] += k[(s + (uint64_t)i) % 5];
        x[3] += s;
    }
    memcpy(out, x, sizeof x);
}

static void key_load(const Tensor *t, Key *k) {
    for (int i = 0; i < 10; i++)
        k->w[i] = (uint64_t)elem_get_int(tensor_at(t, i), DT_U64);
}

static void key_store(Tensor *t, const Key *k) {
    for (int i = 0; i < 10; i++)
        elem_set_int(tensor_at(t, i), DT_U64, (int64_t)k->w[i]);
}

static void path_next(Key *k) {
    k->w[9] = k->w[9] >> 1 | k->w[8] << 63;
    k->w[8] >>= 1;
}

static bool path_full(const Key *k) { return k->w[8] == 0 && k->w[9] == 0; }

/* A fresh key from all there is of this one, its path and counter zero. */
static void key_renew(Key *k, const uint64_t counter[4]) {
    Key fresh = {{0}};
    threefry(k->w, counter, fresh.w);
    fresh.w[8] = 1ull << 63;
    *k = fresh;
}

/* Room for n blocks of numbers: when the counter is used up, the path is extended, or the key
 * renewed. */
static void key_reserve(Key *k, uint64_t n) {
    if (k->w[7] < UINT64_MAX - n)
        return;
    if (path_full(k)) {
        static const uint64_t ones[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
        key_renew(k, ones);
        return;
    }
    k->w[4] |= k->w[8];
    k->w[5] |= k->w[9];
    k->w[6] = k->w[7] = 0;
    path_next(k);
}

/* Number i of what `generate` gives. The last four are kept: numbers are asked for in order. */
typedef struct Stream {
    Key key;
    uint64_t block, words[4];
} Stream;

static void stream_init(Stream *s, const Tensor *key, int64_t n) {
    key_load(key, &s->key);
    key_reserve(&s->key, (uint64_t)n);
    s->block = UINT64_MAX;
}

static uint64_t stream_at(Stream *s, uint64_t i) {
    if (i / 4 != s->block) {
        uint64_t counter[4] = {s->key.w[4], s->key.w[5], s->key.w[6], s->key.w[7] + i / 4};
        threefry(s->key.w, counter, s->words);
        s->block = i / 4;
    }
    return s->words[i % 4];
}

static void stream_end(Stream *s, Tensor *key, int64_t n) {
    s->key.w[7] += (uint64_t)n; /* TVM counts numbers, not blocks */
    key_store(key, &s->key);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static const int64_t ten = 10;

static bool check_key(const OpCall *call) {
    if (!shape_check_dtype(call, 0, DT_BIT(DT_U64)) || !shape_check_rank(call, 0, 1))
        return false;
    if (call->in[0]->shape[0] == 10)
        return true;
    shape_error(call, DIAG_R0314, "`key` has %lld elements, a key has 10",
                (long long)call->in[0]->shape[0]);
    return false;
}

static Type *key_type(Relation *r) {
    Type *n = rel_int_dim(r, 10);
    return type_tensor(type_shape(&n, 1), type_dtype(DT_U64));
}

static const char reason[] = "a key is unpacked and renewed by hand; its cost is the hash";

/* ---- random.threefry_key ----------------------------------------------------------------------
 */

static int shape_threefry_key(const OpCall *call, OutSpec *out) {
    if (!shape_check_dtype(call, 0, DTS_INT) || !shape_check_rank(call, 0, 0))
        return -1;
    return shape_set(call, out, DT_U64, 1, &ten) ? 1 : -1;
}

static RelStatus relate_threefry_key(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_INT}, &status))
        return status;
    if (!rel_unify(s, r, 0, type_tensor(type_shape(NULL, 0), rel_dtype_in(r->args[0]))))
        return REL_FAIL;
    return rel_result_type(s, r, key_type(r)) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool eval_threefry_key(const OpCall *call, Tensor *const *out) {
    const Tensor *seed = call->in[0];
    Key k = {{(uint64_t)elem_get_int(tensor_data(seed), seed->dtype)}};
    k.w[8] = 1ull << 63;
    key_store(out[0], &k);
    return true;
}

static const RelDef rel_threefry_key = {"ThreefryKey", relate_threefry_key, 2, false};
const Op op_random_threefry_key = {
    .name = "random.threefry_key",
    .args = "seed",
    .nargs = 1,
    .relation = &rel_threefry_key,
    .dtypes = DTS_INT,
    .pattern = OP_OPAQUE,
    .shape = shape_threefry_key,
    .eval = eval_threefry_key,
    .reference_only = reason,
    .doc =
        "A key from a seed: ten uint64, for random.threefry_split, random.uniform and the others.",
    .example = "random.threefry_key(7)[0]",
    .example_result = "7 : uint64",
    .see_also = "random.threefry_split, random.uniform",
};

/* ---- random.threefry_generate ------------------------------------------------------------------
 */

static bool out_shape(const OpCall *call, DType dtype, OutSpec *out) {
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    return shape_attr_dims(call, "out_shape", &rank, dims) &&
           shape_set(call, &out[0], DT_U64, 1, &ten) && shape_set(call, &out[1], dtype, rank, dims);
}

static int shape_generate(const OpCall *call, OutSpec *out) {
    return check_key(call) && out_shape(call, DT_U64, out) ? 2 : -1;
}

static RelStatus sample_result(Solver *s, Relation *r, Type *dtype) {
    uint32_t rank;
    Type **dims;
    if (!rel_unify(s, r, 0, key_type(r)))
        return REL_FAIL;
    if (!rel_attr_dims(s, r, "out_shape", &rank, &dims))
        return REL_FAIL;
    Type *parts[2] = {key_type(r), type_tensor(type_shape(dims, rank), dtype)};
    return rel_result_type(s, r, type_tuple(parts, 2)) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static RelStatus relate_generate(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DT_BIT(DT_U64)}, &status))
        return status;
    return sample_result(s, r, type_dtype(DT_U64));
}

static bool eval_generate(const OpCall *call, Tensor *const *out) {
    Stream s;
    int64_t n = out[1]->count;
    stream_init(&s, call->in[0], n);
    for (int64_t i = 0; i < n && (i % OP_POLL || !op_interrupted(call)); i++)
        elem_set_int(tensor_at(out[1], i), DT_U64, (int64_t)stream_at(&s, (uint64_t)i));
    stream_end(&s, out[0], n);
    return true;
}

static const RelDef rel_generate = {"ThreefryGenerate", relate_generate, 2, false};
static const AttrSpec generate_attrs[] = {{"out_shape", AT_DIMS, NULL, "of the numbers"}};
const Op op_random_threefry_generate = {
    .name = "random.threefry_generate",
    .args = "key",
    .nargs = 1,
    .attrs = generate_attrs,
    .nattrs = 1,
    .relation = &rel_generate,
    .dtypes = DT_BIT(DT_U64),
    .pattern = OP_OPAQUE,
    .shape = shape_generate,
    .tuple = true,
    .eval = eval_generate,
    .reference_only = reason,
    .doc = "(next key, random uint64 numbers). Use each key once.",
    .example = "random.threefry_generate(random.threefry_key(0), out_shape=[1]).1",
    .example_result = "[657963966844654903] : Tensor[(1,), uint64]",
    .see_also = "random.threefry_key, random.uniform",
};

/* ---- random.threefry_split --------------------------------------------------------------------
 */

static int shape_threefry_split(const OpCall *call, OutSpec *out) {
    if (!check_key(call))
        return -1;
    return shape_set(call, &out[0], DT_U64, 1, &ten) && shape_set(call, &out[1], DT_U64, 1, &ten)
               ? 2
               : -1;
}

static RelStatus relate_threefry_split(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DT_BIT(DT_U64)}, &status))
        return status;
    if (!rel_unify(s, r, 0, key_type(r)))
        return REL_FAIL;
    Type *parts[2] = {key_type(r), key_type(r)};
    return rel_result_type(s, r, type_tuple(parts, 2)) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool eval_threefry_split(const OpCall *call, Tensor *const *out) {
    Key left, right;
    key_load(call->in[0], &left);
    if (path_full(&left))
        key_renew(&left, left.w + 4);
    right = left;
    right.w[4] |= left.w[8];
    right.w[5] |= left.w[9];
    path_next(&left);
    path_next(&right);
    key_store(out[0], &left);
    key_store(out[1], &right);
    return true;
}

static const RelDef rel_threefry_split = {"ThreefrySplit", relate_threefry_split, 2, false};
const Op op_random_threefry_split = {
    .name = "random.threefry_split",
    .args = "key",
    .nargs = 1,
    .relation = &rel_threefry_split,
    .dtypes = DT_BIT(DT_U64),
    .pattern = OP_OPAQUE,
    .shape = shape_threefry_split,
    .tuple = true,
    .eval = eval_threefry_split,
    .reference_only = reason,
    .doc = "Two keys whose numbers have nothing to do with each other, in the place of one.",
    .example = "random.threefry_split(random.threefry_key(0)).1[4]",
    .example_result = "9223372036854775808 : uint64",
    .see_also = "random.threefry_key",
};

/* ---- random.uniform, random.normal ------------------------------------------------------------
 */

static bool check_scalars(const OpCall *call, DType *dtype) {
    *dtype = shape_attr_dtype(call, "out_dtype", call->in[1]->dtype);
    for (int i = 1; i < 3; i++)
        if (!shape_check_dtype(call, i, DTS_FLOAT) || !shape_check_rank(call, i, 0))
            return false;
    if (!shape_check_same_dtype(call, 1, 2))
        return false;
    if (*dtype == call->in[1]->dtype)
        return true;
    shape_error(call, DIAG_R0311, "out_dtype is %s, and `%s` is %s", dtype_info[*dtype].name,
                shape_arg_name(call, 1), dtype_info[call->in[1]->dtype].name);
    return false;
}

static int shape_sample(const OpCall *call, OutSpec *out) {
    DType dtype;
    return check_key(call) && check_scalars(call, &dtype) && out_shape(call, dtype, out) ? 2 : -1;
}

static RelStatus relate_sample(Solver *s, Relation *r) {
    RelStatus status;
    if (!rel_attrs_open(r)) { /* weak literals take the dtype asked for */
        Type *dtype = rel_attr_dtype(r, "out_dtype", solver_var(s, KIND_DTYPE));
        Type *scalar = type_tensor(type_shape(NULL, 0), dtype);
        for (int i = 1; i < 3; i++)
            if (!rel_unify(s, r, i, scalar))
                return REL_FAIL;
    }
    if (rel_known(s, r, (DTypeSet[]){DT_BIT(DT_U64), DTS_FLOAT, DTS_FLOAT}, &status))
        return status;
    return sample_result(s, r, rel_dtype_in(r->args[1]));
}

/* Fraction bits such that every number is exact, and none rounds up to 1. */
static double unit(uint64_t bits, DType t) {
    int n = t == DT_F64 ? 52 : t == DT_F32 ? 23 : t == DT_F16 ? 10 : 7;
    return ldexp((double)(bits >> (64 - n)), -n);
}

static double scalar(const OpCall *call, int arg) {
    return elem_get_float(tensor_data(call->in[arg]), call->in[arg]->dtype);
}

static bool eval_uniform(const OpCall *call, Tensor *const *out) {
    Stream s;
    DType t = out[1]->dtype;
    int64_t n = out[1]->count;
    double low = scalar(call, 1), span = scalar(call, 2) - low;
    stream_init(&s, call->in[0], n);
    for (int64_t i = 0; i < n && (i % OP_POLL || !op_interrupted(call)); i++)
        elem_set_float(tensor_at(out[1], i), t, unit(stream_at(&s, (uint64_t)i), t) * span + low);
    stream_end(&s, out[0], n);
    return true;
}

/* Box and Muller, as TVM: element i of n from numbers i and n + i. */
static bool eval_normal(const OpCall *call, Tensor *const *out) {
    Stream a, b;
    DType t = out[1]->dtype;
    int64_t n = out[1]->count;
    double mean = scalar(call, 1), scale = scalar(call, 2);
    stream_init(&a, call->in[0], 2 * n);
    b = a;
    for (int64_t i = 0; i < n && (i % OP_POLL || !op_interrupted(call)); i++) {
        double u = 1 - unit(stream_at(&a, (uint64_t)i), DT_F64);
        double v = unit(stream_at(&b, (uint64_t)(n + i)), DT_F64);
        double z = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
        elem_set_float(tensor_at(out[1], i), t, z * scale + mean);
    }
    stream_end(&a, out[0], 2 * n);
    return true;
}

static const RelDef rel_uniform = {"Uniform", relate_sample, 4, false};
static const AttrSpec sample_attrs[] = {
    {"out_shape", AT_DIMS, NULL, "of the sample"},
    {"out_dtype", AT_DTYPE, "None", "of the sample; None: that of the two numbers"},
};
const Op op_random_uniform = {
    .name = "random.uniform",
    .args = "key, low=0, high=1",
    .nargs = 3,
    .attrs = sample_attrs,
    .nattrs = 2,
    .relation = &rel_uniform,
    .dtypes = DT_BIT(DT_U64),
    .pattern = OP_OPAQUE,
    .shape = shape_sample,
    .tuple = true,
    .eval = eval_uniform,
    .reference_only = reason,
    .doc = "(next key, numbers evenly distributed from low to below high).",
    .example = "random.uniform(random.threefry_key(0), 1.0, 1.0, out_shape=[2]).1",
    .example_result = "[1.0, 1.0] : Tensor[(2,), float32]",
    .see_also = "random.normal, random.threefry_key",
};
static const RelDef rel_normal = {"Normal", relate_sample, 4, false};
const Op op_random_normal = {
    .name = "random.normal",
    .args = "key, mean=0, scale=1",
    .nargs = 3,
    .attrs = sample_attrs,
    .nattrs = 2,
    .relation = &rel_normal,
    .dtypes = DT_BIT(DT_U64),
    .pattern = OP_OPAQUE,
    .shape = shape_sample,
    .tuple = true,
    .eval = eval_normal,
    .reference_only = reason,
    .doc = "(next key, normally distributed numbers with a mean and a standard deviation).",
    .example = "random.normal(random.threefry_key(0), 1.0, 0.0, out_shape=[2]).1",
    .example_result = "[1.0, 1.0] : Tensor[(2,), float32]",
    .see_also = "random.uniform, random.threefry_key",
};

/* ---- random.multinomial ----------------------------------------------------------------------- */

/* The first place of a row of n probabilities whose sum with those before is above u; false after a report. */
static bool draw(const OpCall *call, int64_t row, int64_t n, double u, int64_t *found) {
    const Tensor *p = call->in[1];
    double sum = 0, part = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = elem_get_float(tensor_at(p, row * n + i), p->dtype);
        sum += v >= 0 ? v : NAN;
    }
    if (!(sum > 0) || isinf(sum)) {
        shape_error(call, DIAG_R0613, "the probabilities of row %lld sum to %g", (long long)row,
                    sum);
        return false;
    }
    *found = n - 1;
    for (int64_t i = 0; i < n; i++) {
        part += elem_get_float(tensor_at(p, row * n + i), p->dtype);
        if (part <= u * sum)
            continue;
        *found = i;
        break;
    }
    return true;
}

static bool eval_multinomial(const OpCall *call, Tensor *const *out) {
    Stream s;
    const Tensor *p = call->in[1];
    int64_t n = p->shape[p->rank - 1], count = out[1]->count;
    int64_t each = attrs_int(call->attrs, "num_samples");
    stream_init(&s, call->in[0], count);
    for (int64_t i = 0; i < count && (i % OP_POLL || !op_interrupted(call)); i++) {
        int64_t found;
        if (!draw(call, i / each, n, unit(stream_at(&s, (uint64_t)i), DT_F64), &found))
            return false;
        elem_set_int(tensor_at(out[1], i), DT_I32, found);
    }
    stream_end(&s, out[0], count);
    return true;
}

static const char *refuse_samples(const Attrs *attrs, const int *ranks) {
    (void)ranks;
    return attrs_int(attrs, "num_samples") < 0 ? "num_samples is a number from 0" : NULL;
}

static const AttrSpec multinomial_attrs[] = {{"num_samples", AT_DIM, "1", "drawn of each row"}};
SIGNATURE_OP(
    random_multinomial, "Multinomial", "random.multinomial", "key, probs", 2,
    (.text = "uint64(10), float(..., n) -> uint64(10), int32(..., @num_samples)",
     .refuse = refuse_samples),
    .attrs = multinomial_attrs, .nattrs = 1, .tuple = true, .dtypes = DT_BIT(DT_U64),
    .pattern = OP_OPAQUE, .eval = eval_multinomial, .reference_only = reason,
    .doc = "(next key, places of the last axis of probs, drawn with these probabilities, which\n"
           "need not sum to 1).",
    .example = "random.multinomial(random.threefry_key(0), [0.0, 1.0], num_samples=3).1",
    .example_result = "[1, 1, 1] : Tensor[(3,), int32]", .see_also = "random.uniform, argmax")
