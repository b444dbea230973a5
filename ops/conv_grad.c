/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives of convolutions by data and by weight, and the transposed convolutions, which are the
 * first of these: see ops/conv.h. */
#include <string.h>

#include "base/mem.h"
#include "ops/conv.h"
#include "ops/packed.h"
#include "ops/table.h"

/* ---- by data --------------------------------------------------------------------------------- */

/* (grad, weight, data): data's shape. */
static int shape_conv_data(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, "OKd>D");
    Conv v;
    if (!conv_call(call, 2, 1, &v) || !shape_check_same_dtype(call, 0, 1) ||
        !conv_check_result(call, 0, &v))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, v.rank, call->in[2]->shape) ? 1 : -1;
}

static RelStatus relate_third(Solver *s, Relation *r) {
    if (!rel_attrs_open(r) && packed_is(r->attrs))
        return packed_relate(s, r, r->op == &op_nn_conv_data ? "OKd>D" : "ODk>K");
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM, DTS_NUM}, &status))
        return status;
    Conv v;
    const char *problem = conv_read(attrs_with_unit_sizes(r->attrs), &v);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    Type *dtype = rel_dtype_in(r->args[0]);
    if (!window_make_ranks(s, r, 3, v.rank))
        return REL_FAIL;
    for (int i = 0; i < 3; i++)
        if (!rel_unify(s, r, i, type_tensor(rel_shape_in(r->args[i]), dtype)))
            return REL_FAIL;
    return rel_result_type(s, r, r->args[2]) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_conv_data(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "OKd>D");
    Conv v;
    if (!conv_call(call, 2, 1, &v))
        return false;
    conv_plan_data(plan, &v, out[0], call->in[0], call->in[1]);
    return true;
}

static const RelDef rel_conv_data = {"ConvData", relate_third, 4, false};
const Op op_nn_conv_data = {
    .name = "nn.conv_data",
    .args = "grad, weight, data",
    .nargs = 3,
    .attrs = conv_attrs_any,
    .nattrs = CONV_NATTRS_ANY,
    .choices = CONV_LAYOUTS_ANY,
    .relation = &rel_conv_data,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_conv_data,
    .refuses_sizes = true,
    .lower = lower_conv_data,
    .doc = "The derivative of nn.conv by data, of which only the shape matters: a transposed\n"
           "convolution of grad.",
    .example = "nn.conv_data([[[[1.0, 2.0]]]], [[[[1.0, 10.0]]]], [[[[0.0, 0.0, 0.0]]]])",
    .example_result = "[[[[ 1.0, 12.0, 20.0]]]] : Tensor[(1, 1, 1, 3), float32]",
    .see_also = "nn.conv2d, nn.conv2d_transpose",
};

/* ---- by weight ------------------------------------------------------------------------------- */

/* (grad, data, weight): the weight's shape. */
static int shape_conv_weight(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, "ODk>K");
    Conv v;
    if (!conv_call(call, 1, 2, &v) || !shape_check_same_dtype(call, 0, 1) ||
        !conv_check_result(call, 0, &v))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, v.rank, call->in[2]->shape) ? 1 : -1;
}

static bool lower_conv_weight(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "ODk>K");
    Conv v;
    if (!conv_call(call, 1, 2, &v))
        return false;
    conv_plan_weight(plan, &v, out[0], call->in[0], call->in[1]);
    return true;
}

static const RelDef rel_conv_weight = {"ConvWeight", relate_third, 4, false};
const Op op_nn_conv_weight = {
    .name = "nn.conv_weight",
    .args = "grad, data, weight",
    .nargs = 3,
    .attrs = conv_attrs_any,
    .nattrs = CONV_NATTRS_ANY,
    .choices = CONV_LAYOUTS_ANY,
    .relation = &rel_conv_weight,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_conv_weight,
    .refuses_sizes = true,
    .lower = lower_conv_weight,
    .doc = "The derivative of nn.conv by its weight, of which only the shape matters.",
    .example = "nn.conv_weight([[[[1.0, 2.0]]]], [[[[1.0, 2.0, 3.0]]]], [[[[0.0, 0.0]]]])",
    .example_result = "[[[[5.0, 8.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.conv2d",
};

/* TVM's operator takes the kernel's size as an attribute. */
static bool backward_weight(const OpCall *call, Conv *v, int64_t *dims) {
    const Tensor *g = call->in[0], *x = call->in[1];
    const char *problem = conv_read(call->attrs, v);
    int64_t size[WINDOW_SIDES];
    if (!problem && !window_list(call->attrs, "kernel_size", v->w.sides, INT64_MIN, size))
        problem = "kernel_size must be given";
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return false;
    }
    if (!shape_check_rank(call, 0, v->rank) || !shape_check_rank(call, 1, v->rank) ||
        !shape_check_same_dtype(call, 0, 1))
        return false;
    dims[v->kernel[CONV_O]] = g->shape[v->out[CONV_C]];
    dims[v->kernel[CONV_I]] = x->shape[v->data[CONV_C]] / v->groups;
    for (int j = 0; j < v->w.sides; j++)
        dims[v->kernel[CONV_SIDE + j]] = size[j];
    return conv_resolve(call, v->rank, x->shape, v->rank, dims, v) && conv_check_result(call, 0, v);
}

static int shape_backward_weight(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, "OD>K");
    Conv v;
    int64_t dims[CONV_RANK];
    if (!backward_weight(call, &v, dims))
        return -1;
    DType dtype = shape_attr_dtype(call, "out_dtype", call->in[0]->dtype);
    return shape_set(call, out, dtype, v.rank, dims) ? 1 : -1;
}

static RelStatus relate_backward_weight(Solver *s, Relation *r) {
    if (!rel_attrs_open(r) && packed_is(r->attrs))
        return packed_relate(s, r, "OD>K");
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    Conv v;
    uint32_t rank;
    Type **g, **x, *dims[CONV_RANK], *dtype = rel_dtype_in(r->args[0]);
    int64_t size[WINDOW_SIDES];
    const Attrs *attrs = attrs_with_unit_sizes(r->attrs);
    const char *problem = conv_read(attrs, &v);
    if (!problem && !window_list(attrs, "kernel_size", v.w.sides, INT64_MIN, size))
        problem = "kernel_size must be given";
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    if (!rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)) ||
        !window_make_ranks(s, r, 2, v.rank))
        return REL_FAIL;
    rel_rank_in(r->args[0], &rank, &g);
    rel_rank_in(r->args[1], &rank, &x);
    Type *c = x[v.data[CONV_C]];
    dims[v.kernel[CONV_O]] = g[v.out[CONV_C]];
    dims[v.kernel[CONV_I]] = v.groups == 1 ? c : dim_floordiv(c, rel_int_dim(r, v.groups));
    for (int j = 0; j < v.w.sides; j++)
        dims[v.kernel[CONV_SIDE + j]] = rel_attr_item(r, "kernel_size", j);
    dtype = rel_attr_dtype(r, "out_dtype", dtype);
    return rel_result(s, r, dims, (uint32_t)v.rank, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_backward_weight(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "OD>K");
    Conv v;
    int64_t dims[CONV_RANK];
    if (!backward_weight(call, &v, dims))
        return false;
    conv_plan_weight(plan, &v, out[0], call->in[0], call->in[1]);
    return true;
}

static const RelDef rel_backward_weight = {"Conv2DBackwardWeight", relate_backward_weight, 3,
                                           false};
static const AttrSpec conv2d_attrs[] = {CONV_ATTRS("[1, 1]", "[0, 0]", "NCHW", "OIHW")};
const Op op_nn_conv2d_backward_weight = {
    .name = "nn.conv2d_backward_weight",
    .args = "grad, data",
    .nargs = 2,
    .attrs = conv2d_attrs,
    .nattrs = CONV_NATTRS,
    .choices = CONV_LAYOUTS("+NCHW", "+OIHW"),
    .relation = &rel_backward_weight,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_backward_weight,
    .refuses_sizes = true,
    .lower = lower_backward_weight,
    .doc = "The derivative of nn.conv2d by its weight, whose size is the attribute kernel_size.",
    .example =
        "nn.conv2d_backward_weight([[[[1.0, 2.0]]]], [[[[1.0, 2.0, 3.0]]]], kernel_size=[1, 2])",
    .example_result = "[[[[5.0, 8.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.conv2d, nn.conv_weight",
};

/* ---- transposed ------------------------------------------------------------------------------ */

/* Some of the sizes may be still to come; the others are not compared with these. */
static const char *read_transposed(const Attrs *attrs, Conv *v, int64_t *more) {
    const Attrs *known = attrs_with_unit_sizes(attrs);
    const char *problem = conv_read(known, v);
    if (problem)
        return problem;
    if (!window_list(known, "output_padding", v->w.sides, 0, more))
        return "output_padding is one number a side from 0";
    for (int j = 0; j < v->w.sides && known == attrs; j++)
        if (more[j] >= v->w.stride[j])
            return "output_padding is less than the stride";
    return NULL;
}

/* (data, weight), of which data has the shape that the convolution gives; dims: the result's. */
static bool transposed_call(const OpCall *call, Conv *v, int64_t *dims) {
    const Tensor *x = call->in[0], *w = call->in[1];
    int64_t more[WINDOW_SIDES];
    const char *problem = read_transposed(call->attrs, v, more);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return false;
    }
    if (!shape_check_dtype(call, 0, DTS_NUM) || !shape_check_same_dtype(call, 0, 1) ||
        !conv_resolve_weight(call, x->rank, w->rank, w->shape, v))
        return false;
    if (x->shape[v->out[CONV_C]] != v->o * v->groups) {
        shape_error(call, DIAG_R0314, "data has %lld channels; the weight wants %lld",
                    (long long)x->shape[v->out[CONV_C]], (long long)(v->o * v->groups));
        return false;
    }
    dims[v->data[CONV_N]] = x->shape[v->out[CONV_N]];
    dims[v->data[CONV_C]] = size_multiply(v->c, v->groups);
    for (int j = 0; j < v->w.sides; j++) {
        int64_t n = x->shape[v->out[CONV_SIDE + j]];
        int64_t size = size_multiply(n - 1, v->w.stride[j]) + window_reach(&v->w, j) + more[j] -
                       v->w.before[j] - v->w.after[j];
        if (n < 1 || size < 0 || v->w.kernel[j] < 1) {
            shape_error(call, DIAG_R0316, "a %s of %lld leaves no result with this padding",
                        side_name(v->w.sides, j), (long long)n);
            return false;
        }
        dims[v->data[CONV_SIDE + j]] = size;
    }
    return conv_resolve(call, v->rank, dims, v->rank, w->shape, v);
}

static int shape_transposed(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, "DK>O");
    Conv v;
    int64_t dims[CONV_RANK];
    if (!transposed_call(call, &v, dims))
        return -1;
    DType dtype = shape_attr_dtype(call, "out_dtype", call->in[0]->dtype);
    return shape_set(call, out, dtype, v.rank, dims) ? 1 : -1;
}

static RelStatus relate_transposed(Solver *s, Relation *r) {
    if (!rel_attrs_open(r) && packed_is(r->attrs))
        return packed_relate(s, r, "DK>O");
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    Conv v;
    int64_t more[WINDOW_SIDES];
    WindowDims w;
    Type **data, **weight, *out[CONV_RANK];
    const char *problem = read_transposed(r->attrs, &v, more);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    if (!conv_relate(s, r, &v, &data, &weight) ||
        !rel_unify_dim(s, r, data[v.out[CONV_C]], weight[v.kernel[CONV_O]], 0, v.out[CONV_C]))
        return REL_FAIL;
    Type *c = weight[v.kernel[CONV_I]];
    out[v.data[CONV_N]] = data[v.out[CONV_N]];
    out[v.data[CONV_C]] = v.groups == 1 ? c : dim_mul(c, rel_int_dim(r, v.groups));
    window_dims(r, v.w.sides, &w);
    for (int j = 0; j < v.w.sides; j++) {
        Type *n = dim_mul(dim_add_int(data[v.out[CONV_SIDE + j]], -1), w.stride[j]);
        Type *k = dim_mul(dim_add_int(weight[v.kernel[CONV_SIDE + j]], -1), w.dilation[j]);
        Type *rest = dim_sub(rel_attr_item(r, "output_padding", j), w.around[j]);
        out[v.data[CONV_SIDE + j]] = dim_add_int(dim_add(dim_add(n, k), rest), 1);
    }
    Type *dtype = rel_attr_dtype(r, "out_dtype", rel_dtype_in(r->args[0]));
    return rel_result(s, r, out, (uint32_t)v.rank, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_transposed(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "DK>O");
    Conv v;
    int64_t dims[CONV_RANK];
    if (!transposed_call(call, &v, dims))
        return false;
    conv_plan_data(plan, &v, out[0], call->in[0], call->in[1]);
    return true;
}

#define OUTPUT_PADDING(zeros)                                                                      \
    { "output_padding", AT_DIMS, zeros, "so many more places at the end of each side" }
static const AttrSpec transposed1d[] = {CONV_ATTRS("[1]", "[0]", "NCW", "IOW"),
                                        OUTPUT_PADDING("[0]")};
static const AttrSpec transposed2d[] = {CONV_ATTRS("[1, 1]", "[0, 0]", "NCHW", "IOHW"),
                                        OUTPUT_PADDING("[0, 0]")};
static const AttrSpec transposed3d[] = {CONV_ATTRS("[1, 1, 1]", "[0, 0, 0]", "NCDHW", "IODHW"),
                                        OUTPUT_PADDING("[0, 0, 0]")};

#define TRANSPOSED(symbol, op_name, rel, op_attrs, layouts, text, shown, value, see)               \
    static const RelDef rel_##symbol = {rel, relate_transposed, 3, false};                         \
    const Op op_##symbol = {                                                                       \
        .name = op_name,                                                                           \
        .args = "data, weight",                                                                    \
        .nargs = 2,                                                                                \
        .write_sizes = conv_write_sizes,                                                           \
        .attrs = op_attrs,                                                                         \
        .nattrs = CONV_NATTRS + 1,                                                                 \
        .choices = layouts,                                                                        \
        .relation = &rel_##symbol,                                                                 \
        .dtypes = DTS_NUM,                                                                         \
        .pattern = OP_PRODUCT,                                                                     \
        .variant = CONV_TRANSPOSED,                                                                \
        .shape = shape_transposed,                                                                 \
        .refuses_sizes = true,                                                                     \
        .lower = lower_transposed,                                                                 \
        .doc = text,                                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = see,                                                                           \
    };

TRANSPOSED(
    nn_conv1d_transpose, "nn.conv1d_transpose", "Conv1DTranspose", transposed1d,
    CONV_LAYOUTS("+NCW", "+OIW"),
    "The transpose of nn.conv1d as a linear map: data (n, i, w) and weight (i, o / groups, j)\n"
    "give (n, o, x); each element of data adds the kernel, times it, at its place.",
    "nn.conv1d_transpose([[[1.0, 2.0]]], [[[1.0, 10.0]]])",
    "[[[ 1.0, 12.0, 20.0]]] : Tensor[(1, 1, 3), float32]", "nn.conv1d, nn.conv2d_transpose")
TRANSPOSED(nn_conv2d_transpose, "nn.conv2d_transpose", "Conv2DTranspose", transposed2d,
           CONV_LAYOUTS("+NCHW", "+OIHW"),
           "The transpose of nn.conv2d as a linear map: data (n, i, h, w) and weight\n"
           "(i, o / groups, i, j) give (n, o, y, x).",
           "nn.conv2d_transpose([[[[1.0, 2.0]]]], [[[[1.0, 10.0]]]], strides=[1, 2])",
           "[[[[ 1.0, 10.0,  2.0, 20.0]]]] : Tensor[(1, 1, 1, 4), float32]", "nn.conv2d")
TRANSPOSED(nn_conv3d_transpose, "nn.conv3d_transpose", "Conv3DTranspose", transposed3d,
           CONV_LAYOUTS("+NCDHW", "+OIDHW"),
           "The transpose of nn.conv3d as a linear map: data (n, i, d, h, w) and weight\n"
           "(i, o / groups, k, i, j) give (n, o, z, y, x).",
           "nn.conv3d_transpose([[[[[1.0, 2.0]]]]], [[[[[1.0, 10.0]]]]])",
           "[[[[[ 1.0, 12.0, 20.0]]]]] : Tensor[(1, 1, 1, 1, 3), float32]", "nn.conv3d")
