/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a few bits: nn.bitpack lays bit after bit of several elements into one word; nn.bitserial_dense and
 * nn.bitserial_conv2d are products of such numbers. Their definition adds, over all bits i of data and j of the weight,
 * the number of places where both are 1 (unipolar: less those where only data's is) times 2^(i + j). That is the product
 * of the numbers that the bits are, where a bit of the weight stands for 0 or 1, unipolar for -1 or 1. */
#include <string.h>

#include "base/mem.h"
#include "ops/conv.h"
#include "ops/packed.h"
#include "ops/relate/signature.h"
#include "ops/relate/solve.h"

static DType pack_dtype(const Attrs *attrs, const char *name) {
    DType t;
    return attrs_dtype(attrs, name, &t) ? t : DT_U32;
}

static int64_t word_bits(DType t) { return dtype_info[t].bits; }

static bool is_word(DType t) {
    return dtype_info[t].cls == DTC_UINT && word_bits(t) >= 8 && t != DT_BOOL;
}

/* ---- nn.bitpack ------------------------------------------------------------------------------- */

/* The axis of data that is packed and that of the result where the bits stand; NULL, or a problem. */
static const char *read_pack(const Attrs *attrs, int rank, int *pack, int *bit) {
    int64_t bits = attrs_int(attrs, "bits"), p = attrs_int(attrs, "pack_axis"),
            b = attrs_int(attrs, "bit_axis");
    if (bits < 1 || bits > 8)
        return "bits is 1 to 8";
    if (!is_word(pack_dtype(attrs, "pack_type")))
        return "pack_type is uint8, uint16, uint32 or uint64";
    if (rank < 0)
        return NULL;
    if (p < -rank || p >= rank)
        return fmt_text("pack_axis=%lld is not one of the %d axes", (long long)p, rank);
    if (b < -rank - 1 || b > rank)
        return fmt_text("bit_axis=%lld is not one of the %d axes of the result", (long long)b,
                        rank + 1);
    *pack = (int)(p < 0 ? p + rank : p);
    *bit = (int)(b < 0 ? b + rank + 1 : b);
    return NULL;
}

static int shape_bitpack(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    DType word = pack_dtype(call->attrs, "pack_type");
    int64_t dims[TENSOR_MAX_RANK + 1];
    int pack = 0, bit = 0;
    if (!shape_check_dtype(call, 0, DTS_INT))
        return -1;
    const char *problem = read_pack(call->attrs, x->rank, &pack, &bit);
    if (problem || x->rank == TENSOR_MAX_RANK) {
        shape_error(call, problem ? DIAG_R0316 : DIAG_R0313, "%s",
                    problem ? problem : "the result would have too many axes");
        return -1;
    }
    if (x->shape[pack] % word_bits(word)) {
        shape_error(call, DIAG_R0316, "axis %d of `data` has %lld places, no multiple of %lld",
                    pack, (long long)x->shape[pack], (long long)word_bits(word));
        return -1;
    }
    for (int i = 0, axis = 0; i <= x->rank; i++) {
        if (i == bit) {
            dims[i] = attrs_int(call->attrs, "bits");
            continue;
        }
        dims[i] = axis == pack ? x->shape[axis] / word_bits(word) : x->shape[axis];
        axis++;
    }
    return shape_set(call, out, word, x->rank + 1, dims) ? 1 : -1;
}

static RelStatus relate_bitpack(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_INT}, &status))
        return status;
    uint32_t rank;
    Type **dims, *out[TENSOR_MAX_RANK + 1];
    int pack = 0, bit = 0;
    DType word = pack_dtype(r->attrs, "pack_type");
    bool known = rel_rank_in(r->args[0], &rank, &dims);
    const char *problem = read_pack(r->attrs, known ? (int)rank : -1, &pack, &bit);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`nn.bitpack`: %s", problem);
        return REL_FAIL;
    }
    if (!known)
        return type_has_unknown_rank(r->args[0]) ? rel_unknown_rank(s, r, type_dtype(word))
                                                 : rel_wait(s, r, type_dtype(word));
    for (int i = 0, axis = 0; i <= (int)rank; i++) {
        if (i == bit) {
            out[i] = rel_int_dim(r, attrs_int(r->attrs, "bits"));
            continue;
        }
        out[i] = axis == pack ? rel_quotient(s, dims[axis], rel_int_dim(r, word_bits(word)))
                              : dims[axis];
        axis++;
    }
    if (rel_result(s, r, out, rank + 1, type_dtype(word)) == REL_FAIL)
        return REL_FAIL;
    return rel_settled(r);
}

/* The first of the elements in a word is its highest bit. */
static bool lower_bitpack(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    DType word = out[0]->dtype;
    int64_t width = word_bits(word), strides[RECIPE_MAX_AXES] = {0};
    int pack, bit, rank = out[0]->rank;
    read_pack(call->attrs, x->rank, &pack, &bit);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, rank, out[0]->shape);
    step_reduce_over(&s, 1, &width);
    step_combine(&s, COMBINE_SUM, word);
    ScalarBuilder *b = &s.body;
    for (int i = 0, axis = 0; i < rank; i++) {
        if (i == bit)
            continue;
        strides[i] = x->strides[axis] * (axis == pack ? width : 1);
        axis++;
    }
    strides[rank] = x->strides[pack];
    Sc v = sc_index_load(b, step_in_strided(&s, x, strides, 0), x->dtype);
    v = sc_and(b, sc_shr(b, v, sc_iota(b, bit)), sc_i64(b, 1));
    v = sc_shl(b, v, sc_sub(b, sc_i64(b, width - 1), sc_iota(b, rank)));
    sc_cast(b, v, word);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec bitpack_attrs[] = {
    {"bits", AT_INT, "1", "how many bits of each element there are, the lowest ones"},
    {"pack_axis", AT_INT, "1", "the axis of data whose elements share words"},
    {"bit_axis", AT_INT, "-1",
     "the axis of the result along which the bits lie; below 0 from its end"},
    {"pack_type", AT_DTYPE, "uint32", "of the words"},
    {"name", AT_STRING, "\"BitPack\"", "TVM's name of the computation; not used"},
};
static const RelDef rel_bitpack = {"BitPack", relate_bitpack, 2, false};
const Op op_nn_bitpack = {
    .name = "nn.bitpack",
    .args = "data",
    .nargs = 1,
    .attrs = bitpack_attrs,
    .nattrs = 5,
    .choices = "name: BitPack QuantizeInput QuantizeWeight",
    .relation = &rel_bitpack,
    .dtypes = DTS_INT,
    .pattern = OP_OPAQUE,
    .shape = shape_bitpack,
    .refuses_sizes = true,
    .lower = lower_bitpack,
    .doc =
        "Bit after bit of data, each with the elements along an axis laid into words, the first\n"
        "one highest: (..., n, ...) becomes (..., n / width, ..., bits).",
    .example = "nn.bitpack([[1, 0, 2, 3, 0, 0, 0, 1]], bits=2, pack_type=uint8)",
    .example_result = "[[[145,  48]]] : Tensor[(1, 1, 2), uint8]",
    .see_also = "nn.bitserial_dense, nn.bitserial_conv2d",
};

/* ---- numbers of bits -------------------------------------------------------------------------- */

/* out = t's lowest bits, as the number that they are; unipolar: 2 times that less all bits. `axes` of out lie in t by
 * these strides. */
static void plan_bits(Plan *plan, Tensor *out, const Tensor *t, const int64_t *strides,
                      int64_t bits, bool unipolar) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, out->rank, out->shape);
    ScalarBuilder *b = &s.body;
    int64_t all = (1ll << bits) - 1;
    Sc v = sc_index_load(b, step_in_strided(&s, t, strides, 0), t->dtype);
    v = sc_and(b, v, sc_i64(b, all));
    if (unipolar)
        v = sc_sub(b, sc_shl(b, v, sc_i64(b, 1)), sc_i64(b, all));
    sc_cast(b, v, sc_type_of(out->dtype));
    step_out(&s, out);
    step_end(&s);
}

/* The same of a packed tensor: axis `pack` of out counts places in its words, axis `bit` of t its bits. */
static void plan_unpack(Plan *plan, Tensor *out, const Tensor *t, int pack, int bit,
                        bool unipolar) {
    int64_t width = word_bits(t->dtype), bits = t->shape[bit], strides[RECIPE_MAX_AXES] = {0};
    for (int i = 0, axis = 0; axis < t->rank; axis++)
        if (axis != bit) {
            strides[i] = i == pack ? 0 : t->strides[axis];
            i++;
        }
    int from = pack < bit ? pack : pack + 1; /* in t */
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, out->rank, out->shape);
    step_reduce_over(&s, 1, &bits);
    step_combine(&s, COMBINE_SUM, DT_I64);
    strides[out->rank] = t->strides[bit];
    ScalarBuilder *b = &s.body;
    Sc k = sc_iota(b, pack), n = sc_i64(b, width), one = sc_i64(b, 1);
    Sc word = sc_mul(b, sc_div(b, k, n), step_iparam(&s, b, DT_I64, t->strides[from]));
    Sc v = sc_load_at(b, step_in_strided(&s, t, strides, 0), t->dtype, word);
    Sc place = sc_sub(b, sc_i64(b, width - 1), sc_rem(b, k, n));
    v = sc_and(b, sc_shr(b, sc_cast(b, v, DT_I64), place), one);
    if (unipolar)
        v = sc_sub(b, sc_shl(b, v, one), one);
    sc_shl(b, v, sc_iota(b, out->rank));
    sc_cast(&s.epilogue, sc_acc(&s.epilogue, DT_I64), sc_type_of(out->dtype));
    step_out(&s, out);
    step_end(&s);
}

/* The weight as numbers; out_dtype wraps as sums in it do. */
static Tensor *plan_weight(Plan *plan, const OpCall *call, DType dtype, int rank,
                           const int64_t *shape, int pack, int bit) {
    const Tensor *w = call->in[1];
    bool unipolar = attrs_bool(call->attrs, "unipolar");
    Tensor *out = plan_temp(plan, dtype, rank, shape);
    if (w->rank == rank)
        plan_bits(plan, out, w, w->strides, attrs_int(call->attrs, "weight_bits"), unipolar);
    else
        plan_unpack(plan, out, w, pack, bit, unipolar);
    return out;
}

static const char *refuse_bits(const Attrs *attrs, const char *of_data) {
    DType t;
    int64_t data = attrs_int(attrs, of_data), weight = attrs_int(attrs, "weight_bits");
    if (data < 1 || data > 8 || weight < 1 || weight > 8)
        return fmt_text("%s and weight_bits are 1 to 8", of_data);
    if (!is_word(pack_dtype(attrs, "pack_dtype")))
        return "pack_dtype is uint8, uint16, uint32 or uint64";
    return attrs_dtype(attrs, "out_dtype", &t) && DTS_INT & DT_BIT(t) && t != DT_BOOL
               ? NULL
               : "out_dtype is an integer";
}

/* A packed weight has words of pack_dtype and as many bits as the attribute says. */
static bool check_packed(const OpCall *call, int bit, int64_t words, int64_t channels) {
    const Tensor *w = call->in[1];
    DType word = pack_dtype(call->attrs, "pack_dtype");
    if (w->dtype != word) {
        shape_error(call, DIAG_R0310, "a packed weight has words of %s, not %s",
                    dtype_info[word].name, dtype_info[w->dtype].name);
        return false;
    }
    if (w->shape[bit] != attrs_int(call->attrs, "weight_bits") ||
        size_multiply(words, word_bits(word)) != channels) {
        shape_error(call, DIAG_R0314,
                    "a packed weight of %lld words and %lld bits for %lld channels",
                    (long long)words, (long long)w->shape[bit], (long long)channels);
        return false;
    }
    return true;
}

#define BIT_ATTRS(of_data)                                                                         \
    {of_data, AT_INT, "1", "the bits of data that count"},                                         \
        {"weight_bits", AT_INT, "1", "those of the weight"},                                       \
        {"pack_dtype", AT_DTYPE, "uint32", "the words of a packed weight"},                        \
        {"out_dtype", AT_DTYPE, "int16", "of the result"}, {                                       \
        "unipolar", AT_BOOL, "True", "bits of the weight stand for -1 and 1; else for 0 and 1"     \
    }

/* ---- nn.bitserial_dense ----------------------------------------------------------------------- */

static const char *refuse_dense(const Attrs *attrs, const int *ranks) {
    if (ranks[1] >= 0 && ranks[1] != 2 && ranks[1] != 3)
        return "the weight has 2 axes, packed 3";
    return refuse_bits(attrs, "data_bits");
}

static bool measure_dense(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *w = call->in[1];
    const AttrValue *units = attrs_get(call->attrs, "units");
    if (w->rank == 3 ? !check_packed(call, 1, w->shape[2], x->shape[1])
                     : !shape_check_dims(call, 0, 1, 1, 1))
        return false;
    if (units->kind == ATTR_INT && units->i != w->shape[0]) {
        shape_error(call, DIAG_R0314, "units=%lld, and the weight has %lld", (long long)units->i,
                    (long long)w->shape[0]);
        return false;
    }
    out[0].shape[1] = w->shape[0];
    return true;
}

static bool lower_dense(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t shape[] = {out[0]->shape[1], x->shape[1]};
    Tensor *data = plan_temp(plan, out[0]->dtype, 2, x->shape);
    plan_bits(plan, data, x, x->strides, attrs_int(call->attrs, "data_bits"), false);
    Tensor *w = plan_weight(plan, call, out[0]->dtype, 2, shape, 1, 1);
    Product p = {.rank = 2,
                 .nreduce = 1,
                 .extents = {x->shape[0], shape[0], shape[1]},
                 .out_strides = {out[0]->strides[0], out[0]->strides[1]},
                 .x_strides = {data->strides[0], 0, data->strides[1]},
                 .y_strides = {0, w->strides[0], w->strides[1]}};
    plan_product(plan, out[0], &p, data, w);
    return true;
}

static const AttrSpec dense_attrs[] = {
    {"units", AT_DIM, "None", "how many there are, as the weight says too"},
    BIT_ATTRS("data_bits"),
};
SIGNATURE_OP(
    nn_bitserial_dense, "BinaryDense", "nn.bitserial_dense", "data, weight", 2,
    (.text = "int(m, k), int(...) -> @out_dtype(m, ?)", .refuse = refuse_dense,
     .measure = measure_dense),
    .attrs = dense_attrs, .nattrs = 6, .dtypes = DTS_INT, .pattern = OP_OPAQUE,
    .lower = lower_dense,
    .doc = "nn.dense of numbers of a few bits: data (m, k) and weight (units, k), or packed by\n"
           "nn.bitpack with bit_axis=1, (units, weight_bits, k / width).",
    .example = "nn.bitserial_dense([[1, 3, 2]], [[1, 0, 1]], data_bits=2)",
    .example_result = "[[0]] : Tensor[(1, 1), int16]",
    .see_also = "nn.bitpack, nn.bitserial_conv2d")

/* ---- nn.bitserial_conv2d ---------------------------------------------------------------------- */

enum { SIDES = 2, RANK = 4 };

static bool is_last(const Attrs *attrs) {
    return !strcmp(attrs_text(attrs, "data_layout"), "NHWC");
}

static const char *read_bitserial(const Attrs *attrs, Conv *v) {
    *v = (Conv){.w = {.sides = SIDES}, .rank = RANK, .groups = 1};
    bool last = is_last(attrs),
         weight_last = !strncmp(attrs_text(attrs, "kernel_layout"), "HWIO", 4);
    layout_read(last ? "NHWC" : "NCHW", "NCHW", v->data);
    layout_read(last ? "NHWC" : "NCHW", "NCHW", v->out);
    layout_read(weight_last ? "HWIO" : "OIHW", "OIHW", v->kernel);
    return window_attrs_named(attrs, NULL, &v->w);
}

static const char *refuse_conv(const Attrs *attrs, const int *ranks) {
    Conv v;
    const char *problem = read_bitserial(attrs, &v);
    if (!problem && ranks[1] >= 0 && ranks[1] != RANK && ranks[1] != RANK + 1)
        problem = "the weight has 4 axes, packed 5";
    return problem ? problem : refuse_bits(attrs, "activation_bits");
}

/* The weight's sizes as the plain layout has them: its words are unpacked. */
static void unpacked_shape(const OpCall *call, const Conv *v, int64_t *shape) {
    const Tensor *w = call->in[1];
    memcpy(shape, w->shape, sizeof *shape * RANK);
    if (w->rank > RANK)
        shape[v->kernel[CONV_I]] = size_multiply(shape[v->kernel[CONV_I]],
                                                 word_bits(pack_dtype(call->attrs, "pack_dtype")));
}

static bool size_bitserial(const OpCall *call, Conv *v, int64_t *shape) {
    const Tensor *x = call->in[0], *w = call->in[1];
    int64_t given[SIDES];
    read_bitserial(call->attrs, v);
    unpacked_shape(call, v, shape);
    v->n = x->shape[v->data[CONV_N]];
    v->c = x->shape[v->data[CONV_C]];
    v->o = shape[v->kernel[CONV_O]];
    if (w->rank > RANK && !check_packed(call, RANK, w->shape[v->kernel[CONV_I]], v->c))
        return false;
    const AttrValue *channels = attrs_get(call->attrs, "channels");
    if (shape[v->kernel[CONV_I]] != v->c || (channels->kind == ATTR_INT && channels->i != v->o)) {
        shape_error(call, DIAG_R0314, "the weight is of %lld and %lld channels, data has %lld",
                    (long long)v->o, (long long)shape[v->kernel[CONV_I]], (long long)v->c);
        return false;
    }
    bool sized = window_list(call->attrs, "kernel_size", SIDES, INT64_MIN, given);
    for (int j = 0; j < SIDES; j++) {
        v->w.kernel[j] = shape[v->kernel[CONV_SIDE + j]];
        v->size[j] = x->shape[v->data[CONV_SIDE + j]];
        v->count[j] = window_count(&v->w, j, v->size[j], false);
        if (v->w.kernel[j] >= 1 && v->count[j] >= 0 && (!sized || given[j] == v->w.kernel[j]))
            continue;
        const char *side = side_name(SIDES, j);
        shape_error(call, DIAG_R0316,
                    "a kernel of %s %lld does not fit a %s of %lld, or kernel_size", side,
                    (long long)v->w.kernel[j], side, (long long)v->size[j]);
        return false;
    }
    return true;
}

static bool measure_conv(const OpCall *call, OutSpec *out) {
    Conv v;
    int64_t shape[RANK];
    if (!size_bitserial(call, &v, shape))
        return false;
    conv_out_shape(&v, out[0].shape);
    return true;
}

/* Data and result of another layout than these are put in the order of the first. */
#define BITSERIAL_LAYOUTS "NCHW NHWC OIHW HWIO OIHWi HWIOi"
#define BITSERIAL_ROLES "D->D!"

static int shape_bitserial(const OpCall *call, OutSpec *out) {
    return packed_is_listed(call->attrs, BITSERIAL_LAYOUTS)
               ? shape_by_signature(call, out)
               : packed_shape(call, out, BITSERIAL_ROLES);
}

static RelStatus relate_bitserial(Solver *s, Relation *r) {
    return rel_attrs_open(r) || packed_is_listed(r->attrs, BITSERIAL_LAYOUTS)
               ? relate_by_signature(s, r)
               : packed_relate(s, r, BITSERIAL_ROLES);
}

static bool lower_conv(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (!packed_is_listed(call->attrs, BITSERIAL_LAYOUTS))
        return packed_lower(call, out, plan, BITSERIAL_ROLES);
    const Tensor *x = call->in[0];
    Conv v;
    int64_t shape[RANK];
    if (!size_bitserial(call, &v, shape))
        return false;
    Tensor *data = plan_temp(plan, out[0]->dtype, RANK, x->shape);
    plan_bits(plan, data, x, x->strides, attrs_int(call->attrs, "activation_bits"), false);
    Tensor *w = plan_weight(plan, call, out[0]->dtype, RANK, shape, v.kernel[CONV_I], RANK);
    conv_plan_forward(plan, &v, out[0], data, w);
    return true;
}

static int form_of_data(const Attrs *attrs) { return is_last(attrs); }

static const AttrSpec conv_attrs[] = {
    {"strides", AT_DIMS, "[1, 1]", "steps of the window, one a side"},
    {"padding", AT_DIMS, "[0, 0]",
     "zeros around: one number; one a side; or those before each side, then those after"},
    {"kernel_size", AT_DIMS_OPT, "None", "the sides of the window, as the weight says too"},
    {"channels", AT_DIM, "None", "output channels, likewise"},
    {"data_layout", AT_STRING, "\"NCHW\"", "what the axes of data and result are"},
    {"kernel_layout", AT_STRING, "\"OIHW\"", "what the weight's axes are, OIHW or HWIO"},
    BIT_ATTRS("activation_bits"),
};
SIGNATURE_OP_BY(
    relate_bitserial, shape_bitserial, nn_bitserial_conv2d, "BinaryConv2D", "nn.bitserial_conv2d",
    "data, weight", 2,
    (.text = "int(n, c, h, w), int(...) -> @out_dtype(n, ?, ?, ?)|"
             "int(n, h, w, c), int(...) -> @out_dtype(n, ?, ?, ?)",
     .refuse = refuse_conv, .measure = measure_conv, .form = form_of_data),
    .attrs = conv_attrs, .nattrs = 11,
    .choices = "data_layout: +NCHW; kernel_layout: OIHW HWIO OIHWi HWIOi", .dtypes = DTS_INT,
    .pattern = OP_OPAQUE, .lower = lower_conv,
    .doc =
        "nn.conv2d of numbers of a few bits: data (n, c, h, w) and weight (o, c, i, j), or packed\n"
        "by nn.bitpack along its input channels with bit_axis=4.",
    .example = "nn.bitserial_conv2d([[[[1, 3, 2]]]], [[[[1, 0]]]], activation_bits=2)",
    .example_result = "[[[[-2,  1]]]] : Tensor[(1, 1, 1, 2), int16]",
    .see_also = "nn.bitpack, nn.bitserial_dense, nn.conv2d")
