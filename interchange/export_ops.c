/* SPDX-License-Identifier: Apache-2.0 */
/* What each operator becomes in an ONNX model: one node where ONNX has the same, else several. The table is at the
 * end. */
#include <string.h>

#include "interchange/export_ops.h"
#include "ops/ops.h"

enum { MOST_COMPUTED = 1 << 22 }; /* elements of a result that is computed now */

typedef struct Entry {
    const Op *op;
    const char *onnx; /* of an element-wise operator that is one of ONNX; else NULL */
    DTypeSet dtypes;  /* of which ONNX means the same */
    bool tests;       /* the result is bool */
    Traced *(*translate)(Export *ex, const ExportCall *c);
} Entry;

Traced *call_refuse(Export *ex, const ExportCall *c, const char *why) {
    return export_refuse(ex, c->span, fmt_text("`%s` %s", c->op->name, why));
}

int64_t axis_from_front(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

int highest_rank(Traced *const *args, uint32_t n) {
    int rank = 0;
    for (uint32_t i = 0; i < n; i++)
        rank = args[i]->rank > rank ? args[i]->rank : rank;
    return rank;
}

/* A node of one input that keeps dtype and rank. */
Traced *emit_unary(Export *ex, const char *onnx, Traced *x) {
    Traced *out = export_node(ex, onnx, &x, 1, NULL, x->dtype, x->rank);
    out->shape = x->shape;
    return out;
}

Traced *emit_binary(Export *ex, const char *onnx, Traced *x, Traced *y) {
    Traced *in[] = {x, y};
    Traced *out = export_node(ex, onnx, in, 2, NULL, x->dtype, highest_rank(in, 2));
    int64_t *shape = mem_bytes(sizeof *shape * (size_t)(out->rank + 1));
    if (!x->shape || !y->shape)
        return out;
    for (int i = 0; i < out->rank; i++) {
        int a = i - (out->rank - x->rank), b = i - (out->rank - y->rank);
        shape[i] = a >= 0 && (b < 0 || y->shape[b] == 1) ? x->shape[a] : y->shape[b];
    }
    out->shape = shape;
    return out;
}

/* ---- elements -------------------------------------------------------------------------------- */

static Traced *element(Export *ex, const ExportCall *c, const Entry *e) {
    if (!share_dtype(c->args, c->nargs))
        return call_refuse(ex, c, "of two dtypes");
    if (!(e->dtypes >> c->args[0]->dtype & 1))
        return call_refuse(ex, c, fmt_text("of dtype %s", dtype_info[c->args[0]->dtype].name));
    return export_node(ex, e->onnx, c->args, c->nargs, NULL, e->tests ? DT_BOOL : c->args[0]->dtype,
                       highest_rank(c->args, c->nargs));
}

static Traced *not_equal(Export *ex, const ExportCall *c) {
    Traced *same = export_operator(ex, (ExportCall){&op_equal, attrs_defaults(&op_equal), c->span,
                                                    c->args, c->nargs, NULL, 0});
    return same->kind == TRACED_BAD ? same : emit_unary(ex, "Not", same);
}

static Traced *rsqrt(Export *ex, const ExportCall *c) {
    return emit_unary(ex, "Reciprocal", emit_unary(ex, "Sqrt", c->args[0]));
}

static Traced *remainder_of(Export *ex, const ExportCall *c) {
    Str attrs = {0};
    bool truncates = c->op != &op_floor_mod;
    if (!share_dtype(c->args, 2) || (dtype_is_float(c->args[0]->dtype) && !truncates))
        return call_refuse(ex, c, "of two dtypes or of floats");
    onnx_add_int(&attrs, "fmod", truncates);
    return export_node(ex, "Mod", c->args, 2, &attrs, c->args[0]->dtype, highest_rank(c->args, 2));
}

static Traced *where(Export *ex, const ExportCall *c) {
    if (!share_dtype(c->args + 1, 2))
        return call_refuse(ex, c, "of two dtypes");
    Traced *in[] = {export_cast(ex, c->args[0], DT_BOOL), c->args[1], c->args[2]};
    return export_node(ex, "Where", in, 3, NULL, in[1]->dtype, highest_rank(in, 3));
}

static Traced *cast(Export *ex, const ExportCall *c) {
    DType dtype = c->args[0]->dtype;
    if (c->op == &op_cast_like)
        dtype = c->args[1]->dtype;
    else
        (void)attrs_dtype(c->attrs, "dtype", &dtype);
    return export_cast(ex, c->args[0], dtype);
}

static Traced *clip(Export *ex, const ExportCall *c) {
    DType dtype = c->args[0]->dtype;
    Traced *in[] = {c->args[0], traced_scalar(ex, dtype, attrs_float(c->attrs, "a_min")),
                    traced_scalar(ex, dtype, attrs_float(c->attrs, "a_max"))};
    if (!dtype_is_float(dtype))
        return call_refuse(ex, c, "of integers");
    return export_node(ex, "Clip", in, 3, NULL, dtype, in[0]->rank);
}

static Traced *leaky_relu(Export *ex, const ExportCall *c) {
    Str attrs = {0};
    onnx_add_float(&attrs, "alpha", attrs_float(c->attrs, "alpha"));
    return export_node(ex, "LeakyRelu", c->args, 1, &attrs, c->args[0]->dtype, c->args[0]->rank);
}

/* A vector along an axis of x, as a tensor that broadcasts with it. */
static Traced *along(Export *ex, Traced *v, const Traced *x, int64_t axis) {
    int64_t axes[TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (axis = axis_from_front(axis, x->rank) + 1; axis < x->rank; axis++)
        axes[n] = n + 1, n++;
    return emit_unsqueeze(ex, v, axes, n);
}

static Traced *bias_add(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    return emit_binary(ex, "Add", x, along(ex, c->args[1], x, attrs_int(c->attrs, "axis")));
}

static Traced *prelu(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    return emit_binary(ex, "PRelu", x, along(ex, c->args[1], x, attrs_int(c->attrs, "axis")));
}

/* ---- products -------------------------------------------------------------------------------- */

/* nn.dense has its weight (m, k); the others may have either side transposed. */
static Traced *product(Export *ex, const ExportCall *c) {
    DType out;
    bool dense = c->op == &op_nn_dense, plain = c->op == &op_matmul;
    bool ta = !dense && !plain && attrs_bool(c->attrs, "transpose_a");
    bool tb = dense || (!plain && attrs_bool(c->attrs, "transpose_b"));
    Traced *x = c->args[0], *y = c->args[1];
    if (!plain && attrs_dtype(c->attrs, "out_dtype", &out) && out != x->dtype)
        return call_refuse(ex, c, "with an `out_dtype`");
    if (!share_dtype(c->args, 2) || !dtype_is_float(x->dtype))
        return call_refuse(ex, c, "of these dtypes");
    if ((ta || tb) && x->rank == 2 && y->rank == 2) {
        Str attrs = {0};
        onnx_add_int(&attrs, "transA", ta);
        onnx_add_int(&attrs, "transB", tb);
        return export_node(ex, "Gemm", c->args, 2, &attrs, x->dtype, 2);
    }
    Traced *in[] = {ta ? emit_flip(ex, x) : x, tb ? emit_flip(ex, y) : y};
    int rank = highest_rank(in, 2);
    rank -= (x->rank == 1) + (y->rank == 1);
    return export_node(ex, "MatMul", in, 2, NULL, x->dtype, rank < 0 ? 0 : rank);
}

static Traced *einsum(Export *ex, const ExportCall *c) {
    Traced *tuple = c->args[0];
    const char *equation = attrs_text(c->attrs, "equation"), *arrow = strstr(equation, "->");
    Str attrs = {0};
    if (tuple->kind != TRACED_TUPLE || !share_dtype(tuple->parts, tuple->nparts) ||
        !dtype_is_float(tuple->parts[0]->dtype) || !arrow || strchr(equation, '.'))
        return call_refuse(ex, c, "without an arrow, or of what are no floats");
    int rank = 0;
    for (const char *p = arrow + 2; *p; p++)
        rank += *p != ' ';
    onnx_add_text(&attrs, "equation", equation);
    return export_node(ex, "Einsum", tuple->parts, tuple->nparts, &attrs, tuple->parts[0]->dtype,
                       rank);
}

/* ---- reductions ------------------------------------------------------------------------------ */

bool axes_of_reduction(const Attrs *attrs, int rank, int64_t *out, uint32_t *nout) {
    const int64_t *axes = NULL;
    uint32_t n = 0;
    bool gone[TENSOR_MAX_RANK] = {false}, all = attrs_is_none(attrs, "axis");
    if (!all && !attrs_ints(attrs, "axis", &axes, &n))
        return false;
    for (uint32_t i = 0; i < n; i++)
        gone[axis_from_front(axes[i], rank)] = true;
    bool exclude = attrs_bool(attrs, "exclude");
    *nout = 0;
    for (int i = 0; i < rank; i++)
        if (all || gone[i] != exclude)
            out[(*nout)++] = i;
    return true;
}

static const char *reduction_name(const Op *op) {
    return op == &op_sum         ? "ReduceSum"
           : op == &op_mean      ? "ReduceMean"
           : op == &op_max       ? "ReduceMax"
           : op == &op_min       ? "ReduceMin"
           : op == &op_logsumexp ? "ReduceLogSumExp"
                                 : "ReduceProd";
}

/* ReduceSum has its axes as an input, the others as an attribute. */
static Traced *reduction(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    int64_t axes[TENSOR_MAX_RANK];
    uint32_t n;
    Str attrs = {0};
    bool keep = attrs_bool(c->attrs, "keepdims"), is_sum = c->op == &op_sum;
    if (!axes_of_reduction(c->attrs, c->args[0]->rank, axes, &n))
        return call_refuse(ex, c, "over axes that are not known");
    if (!dtype_is_float(x->dtype) && (x->dtype != DT_I32 || c->op == &op_mean) &&
        (x->dtype != DT_I64 || c->op == &op_mean))
        return call_refuse(ex, c, fmt_text("of dtype %s", dtype_info[x->dtype].name));
    if (!n)
        return x;
    onnx_add_int(&attrs, "keepdims", keep);
    if (!is_sum)
        onnx_add_ints(&attrs, "axes", axes, n);
    Traced *in[] = {x, is_sum ? traced_ints(axes, n) : NULL};
    return export_node(ex, reduction_name(c->op), in, is_sum ? 2 : 1, &attrs, x->dtype,
                       keep ? x->rank : x->rank - (int)n);
}

/* all and any, of which ONNX has none: the least or the largest of numbers. */
static Traced *truth(Export *ex, const ExportCall *c) {
    Traced *x = export_cast(ex, c->args[0], DT_I32);
    ExportCall of = *c;
    of.op = c->op == &op_all ? &op_min : &op_max;
    of.args = &x;
    Traced *y = reduction(ex, &of);
    return y->kind == TRACED_BAD ? y : export_cast(ex, y, DT_BOOL);
}

/* The variance, about a mean that is given or its own, and its root. */
static Traced *spread(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *mean = c->nargs > 1 ? c->args[1] : NULL;
    int64_t axes[TENSOR_MAX_RANK], count = 1;
    uint32_t n;
    bool keep = attrs_bool(c->attrs, "keepdims"), unbiased = attrs_bool(c->attrs, "unbiased");
    Str over = {0}, kept = {0};
    if (!axes_of_reduction(c->attrs, c->args[0]->rank, axes, &n) || !n || (unbiased && !x->shape))
        return call_refuse(ex, c, "over axes that are not known");
    for (uint32_t i = 0; i < n; i++)
        count *= unbiased ? x->shape[axes[i]] : 1;
    onnx_add_ints(&over, "axes", axes, n);
    onnx_add_int(&over, "keepdims", keep);
    onnx_add_ints(&kept, "axes", axes, n);
    onnx_add_int(&kept, "keepdims", 1);
    if (!mean)
        mean = export_node(ex, "ReduceMean", &x, 1, &kept, x->dtype, x->rank);
    Traced *d = emit_binary(ex, "Sub", x, mean), *square = emit_binary(ex, "Mul", d, d);
    Traced *y = export_node(ex, "ReduceMean", &square, 1, &over, x->dtype,
                            keep ? x->rank : x->rank - (int)n);
    if (unbiased)
        y = emit_binary(ex, "Mul", y,
                        traced_scalar(ex, x->dtype, (double)count / (double)(count - 1)));
    return c->op == &op_std ? emit_unary(ex, "Sqrt", y) : y;
}

/* x / sqrt(max(sum(x * x), eps)) */
static Traced *l2_normalize(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    const int64_t *given;
    int64_t axes[TENSOR_MAX_RANK];
    uint32_t n;
    Str attrs = {0};
    if (!attrs_ints(c->attrs, "axis", &given, &n) || n > TENSOR_MAX_RANK)
        return call_refuse(ex, c, "over axes that are not known");
    for (uint32_t i = 0; i < n; i++)
        axes[i] = axis_from_front(given[i], x->rank);
    for (int i = 0; !n && i < x->rank; i++)
        axes[i] = i;
    onnx_add_int(&attrs, "keepdims", 1);
    Traced *in[] = {emit_binary(ex, "Mul", x, x), traced_ints(axes, n ? n : (uint32_t)x->rank)};
    Traced *sum = export_node(ex, "ReduceSum", in, 2, &attrs, x->dtype, x->rank);
    Traced *least = traced_scalar(ex, x->dtype, attrs_float(c->attrs, "eps"));
    Traced *norm = emit_unary(ex, "Sqrt", emit_binary(ex, "Max", sum, least));
    return emit_binary(ex, "Div", x, norm);
}

static Traced *argument(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    int64_t axes[TENSOR_MAX_RANK], flat = -1;
    uint32_t n;
    Str attrs = {0};
    bool keep = attrs_bool(c->attrs, "keepdims");
    if (!axes_of_reduction(c->attrs, c->args[0]->rank, axes, &n) ||
        (n != 1 && ((int)n != x->rank || keep)))
        return call_refuse(ex, c, "over several axes");
    if (n != 1) {
        Traced *in[] = {x, traced_ints(&flat, 1)};
        x = export_node(ex, "Reshape", in, 2, NULL, x->dtype, 1);
        axes[0] = 0;
    }
    onnx_add_int(&attrs, "axis", axes[0]);
    onnx_add_int(&attrs, "keepdims", keep);
    onnx_add_int(&attrs, "select_last_index", attrs_bool(c->attrs, "select_last_index"));
    return export_cast(ex,
                       export_node(ex, c->op == &op_argmax ? "ArgMax" : "ArgMin", &x, 1, &attrs,
                                   DT_I64, keep ? x->rank : x->rank - 1),
                       DT_I32);
}

static Traced *cumsum(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    DType dtype = x->dtype;
    int64_t all = -1, axis = 0;
    Str attrs = {0};
    (void)attrs_dtype(c->attrs, "dtype", &dtype);
    x = export_cast(ex, x, dtype);
    if (attrs_is_none(c->attrs, "axis"))
        x = emit_reshape(ex, x, traced_ints(&all, 1), 1);
    else
        axis = attrs_int(c->attrs, "axis");
    if (dtype != DT_I32 && dtype != DT_I64 && !dtype_is_float(dtype))
        return call_refuse(ex, c, fmt_text("of dtype %s", dtype_info[dtype].name));
    Traced *in[] = {x, traced_int(ex, DT_I64, axis)};
    onnx_add_int(&attrs, "exclusive", attrs_bool(c->attrs, "exclusive"));
    return export_node(ex, "CumSum", in, 2, &attrs, x->dtype, x->rank);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define SAME(op, onnx, dtypes)                                                                     \
    { &op_##op, onnx, dtypes, false, NULL }
#define ASKS(op, onnx, dtypes)                                                                     \
    { &op_##op, onnx, dtypes, true, NULL }
#define OWN(op, translate)                                                                         \
    { &op_##op, NULL, 0, false, translate }
static const Entry table[] = {
    SAME(abs, "Abs", DTS_NUM),
    SAME(acos, "Acos", DTS_FLOAT),
    SAME(acosh, "Acosh", DTS_FLOAT),
    SAME(add, "Add", DTS_NUM),
    SAME(asin, "Asin", DTS_FLOAT),
    SAME(asinh, "Asinh", DTS_FLOAT),
    SAME(atan, "Atan", DTS_FLOAT),
    SAME(atanh, "Atanh", DTS_FLOAT),
    SAME(ceil, "Ceil", DTS_FLOAT),
    SAME(checked_add, "Add", DTS_INT),
    SAME(checked_multiply, "Mul", DTS_INT),
    SAME(checked_subtract, "Sub", DTS_INT),
    SAME(copy, "Identity", DTS_ALL),
    SAME(cos, "Cos", DTS_FLOAT),
    SAME(cosh, "Cosh", DTS_FLOAT),
    SAME(divide, "Div", DTS_FLOAT),
    ASKS(equal, "Equal", DTS_ALL),
    SAME(erf, "Erf", DTS_FLOAT),
    SAME(exp, "Exp", DTS_FLOAT),
    SAME(fast_erf, "Erf", DTS_FLOAT),
    SAME(fast_exp, "Exp", DTS_FLOAT),
    SAME(fast_tanh, "Tanh", DTS_FLOAT),
    SAME(floor, "Floor", DTS_FLOAT),
    ASKS(greater, "Greater", DTS_NUM),
    ASKS(greater_equal, "GreaterOrEqual", DTS_NUM),
    ASKS(isinf, "IsInf", DTS_FLOAT),
    ASKS(isnan, "IsNaN", DTS_FLOAT),
    ASKS(less, "Less", DTS_NUM),
    ASKS(less_equal, "LessOrEqual", DTS_NUM),
    SAME(log, "Log", DTS_FLOAT),
    ASKS(logical_and, "And", DTS_BOOL),
    ASKS(logical_not, "Not", DTS_BOOL),
    ASKS(logical_or, "Or", DTS_BOOL),
    ASKS(logical_xor, "Xor", DTS_BOOL),
    SAME(maximum, "Max", DTS_NUM),
    SAME(minimum, "Min", DTS_NUM),
    SAME(multiply, "Mul", DTS_NUM),
    SAME(negative, "Neg", DTS_NUM),
    SAME(nn_relu, "Relu", DTS_FLOAT),
    SAME(power, "Pow", DTS_FLOAT),
    SAME(round, "Round", DTS_FLOAT),
    SAME(sigmoid, "Sigmoid", DTS_FLOAT),
    SAME(sign, "Sign", DTS_NUM),
    SAME(sin, "Sin", DTS_FLOAT),
    SAME(sinh, "Sinh", DTS_FLOAT),
    SAME(sqrt, "Sqrt", DTS_FLOAT),
    SAME(stop_gradient, "Identity", DTS_ALL),
    SAME(subtract, "Sub", DTS_NUM),
    SAME(tan, "Tan", DTS_FLOAT),
    SAME(tanh, "Tanh", DTS_FLOAT),
    OWN(all, truth),
    OWN(any, truth),
    OWN(arange, export_arange),
    OWN(argmax, argument),
    OWN(argmin, argument),
    OWN(argsort, export_sort),
    OWN(broadcast_to, export_broadcast_to),
    OWN(broadcast_to_like, export_broadcast_to_like),
    OWN(cast, cast),
    OWN(cast_like, cast),
    OWN(clip, clip),
    OWN(collapse_sum_like, export_collapse_sum_like),
    OWN(collapse_sum_to, export_collapse_sum_to),
    OWN(concatenate, export_joined),
    OWN(cumsum, cumsum),
    OWN(einsum, einsum),
    OWN(expand_dims, export_expand_dims),
    OWN(expand_like, export_expand_like),
    OWN(flatten_axes, export_flatten_axes),
    OWN(floor_mod, remainder_of),
    OWN(full, export_filled),
    OWN(full_like, export_filled),
    OWN(gather, export_gather),
    OWN(gather_nd, export_gather_nd),
    OWN(gather_nd_add, export_added),
    OWN(group_mean, export_group_mean),
    OWN(image_resize1d, export_resize),
    OWN(image_resize2d, export_resize),
    OWN(image_resize3d, export_resize),
    OWN(index, export_index_op),
    OWN(index_add, export_index_add_op),
    OWN(logsumexp, reduction),
    OWN(matmul, product),
    OWN(matmul_lhs, export_matmul_side),
    OWN(matmul_rhs, export_matmul_side),
    OWN(max, reduction),
    OWN(mean, reduction),
    OWN(min, reduction),
    OWN(mod, remainder_of),
    OWN(ndarray_size, export_count),
    OWN(nn_adaptive_avg_pool1d, export_adaptive_pool),
    OWN(nn_adaptive_avg_pool2d, export_adaptive_pool),
    OWN(nn_adaptive_avg_pool3d, export_adaptive_pool),
    OWN(nn_adaptive_max_pool1d, export_adaptive_pool),
    OWN(nn_adaptive_max_pool2d, export_adaptive_pool),
    OWN(nn_adaptive_max_pool3d, export_adaptive_pool),
    OWN(nn_avg_pool1d, export_pool),
    OWN(nn_avg_pool2d, export_pool),
    OWN(nn_avg_pool2d_grad, export_avg_pool_grad),
    OWN(nn_avg_pool3d, export_pool),
    OWN(nn_avg_pool_grad, export_avg_pool_grad),
    OWN(nn_batch_flatten, export_flatten),
    OWN(nn_batch_matmul, product),
    OWN(nn_batch_norm, export_batch_norm),
    OWN(nn_bias_add, bias_add),
    OWN(nn_conv1d, export_convolution),
    OWN(nn_conv1d_transpose, export_transposed_convolution),
    OWN(nn_conv2d, export_convolution),
    OWN(nn_conv2d_transpose, export_transposed_convolution),
    OWN(nn_conv3d, export_convolution),
    OWN(nn_conv3d_transpose, export_transposed_convolution),
    OWN(nn_conv_data, export_conv_data),
    OWN(nn_conv_weight, export_conv_weight),
    OWN(nn_dense, product),
    OWN(nn_dense_weight, export_dense_weight),
    OWN(nn_depth_to_space, export_blocks),
    OWN(nn_dropout, export_dropout),
    OWN(nn_fast_softmax, export_softmax),
    OWN(nn_global_avg_pool2d, export_global_pool),
    OWN(nn_global_max_pool2d, export_global_pool),
    OWN(nn_group_norm, export_group_norm),
    OWN(nn_instance_norm, export_instance_norm),
    OWN(nn_l2_normalize, l2_normalize),
    OWN(nn_layer_norm, export_layer_norm),
    OWN(nn_leaky_relu, leaky_relu),
    OWN(nn_log_softmax, export_softmax),
    OWN(nn_lrn, export_lrn),
    OWN(nn_matmul, product),
    OWN(nn_max_pool1d, export_pool),
    OWN(nn_max_pool2d, export_pool),
    OWN(nn_max_pool2d_grad, export_max_pool_grad),
    OWN(nn_max_pool3d, export_pool),
    OWN(nn_max_pool_grad, export_max_pool_grad),
    OWN(nn_mirror_pad, export_mirror_pad),
    OWN(nn_pad, export_pad),
    OWN(nn_pad_sum, export_pad_sum),
    OWN(nn_prelu, prelu),
    OWN(nn_softmax, export_softmax),
    OWN(nn_space_to_depth, export_blocks),
    OWN(nn_upsampling, export_upsampling),
    OWN(nn_upsampling3d, export_upsampling),
    OWN(not_equal, not_equal),
    OWN(one_hot, export_one_hot),
    OWN(ones, export_filled),
    OWN(ones_like, export_filled),
    OWN(prod, reduction),
    OWN(repeat, export_repeat),
    OWN(repeat_sum, export_added),
    OWN(reshape, export_reshape),
    OWN(reshape_like, export_reshape_like),
    OWN(reverse, export_reverse),
    OWN(rsqrt, rsqrt),
    OWN(scatter_elements, export_scatter),
    OWN(scatter_nd, export_scatter),
    OWN(shape_of, export_shape_op),
    OWN(sort, export_sort),
    OWN(sort_by, export_sorted_by),
    OWN(split, export_split),
    OWN(split_like, export_split_like),
    OWN(squeeze, export_squeeze),
    OWN(stack, export_joined),
    OWN(std, spread),
    OWN(strided_slice, export_strided_slice),
    OWN(strided_slice_add, export_added),
    OWN(strong_divide, export_strong),
    OWN(strong_multiply, export_strong),
    OWN(sum, reduction),
    OWN(take, export_take),
    OWN(take_add, export_added),
    OWN(tile, export_tile),
    OWN(tile_sum, export_added),
    OWN(topk, export_topk),
    OWN(transpose, export_transpose),
    OWN(transpose_inverse, export_transpose_inverse),
    OWN(trilu, export_trilu),
    OWN(trunc_mod, remainder_of),
    OWN(unflatten_axes, export_flatten_axes),
    OWN(unsort_by, export_sorted_by),
    OWN(unstack_like, export_split_like),
    OWN(var, spread),
    OWN(variance, spread),
    OWN(where, where),
    OWN(zeros, export_filled),
    OWN(zeros_like, export_filled),
};

static const Entry *find_entry(const Op *op) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op)
            return &table[i];
    return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The tensors of the arguments, one by one: their values, or tensors without elements that have their sizes.
 * False where one of them is not known. */
static bool all_args(const ExportCall *c, bool values, Tensor **in, uint32_t *n) {
    *n = 0;
    for (uint32_t i = 0; i < c->nargs; i++) {
        Traced *const *parts = &c->args[i];
        uint32_t nparts = 1;
        if (c->args[i]->kind == TRACED_TUPLE) {
            parts = c->args[i]->parts;
            nparts = c->args[i]->nparts;
        }
        for (uint32_t k = 0; k < nparts; k++) {
            const Traced *t = parts[k];
            if (t->kind != TRACED_TENSOR || !t->shape || (values && !t->constant) ||
                *n == OP_MAX_OUTPUTS)
                return false;
            in[(*n)++] = t->constant ? t->constant : tensor_blank(t->dtype, t->rank, t->shape);
        }
    }
    return true;
}

static const int64_t *kept_shape(const OutSpec *spec) {
    int64_t *shape = mem_bytes(sizeof *shape * (size_t)(spec->rank + 1));
    memcpy(shape, spec->shape, sizeof *shape * (size_t)spec->rank);
    return shape;
}

/* What a call on constants gives; NULL where it is left to the model. */
static Traced *computed(Export *ex, const ExportCall *c) {
    Tensor *in[OP_MAX_OUTPUTS], *out[OP_MAX_OUTPUTS];
    OutSpec specs[OP_MAX_OUTPUTS];
    OpCall call = {.op = c->op, .attrs = c->attrs, .in = in, .diags = ex->diags, .span = c->span};
    if (c->nsizes || !c->op->shape || !all_args(c, true, in, &call.nin))
        return NULL;
    int n = c->op->shape(&call, specs);
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        int64_t size = 1;
        for (int axis = 0; axis < specs[i].rank; axis++)
            if (specs[i].shape[axis] && __builtin_mul_overflow(size, specs[i].shape[axis], &size))
                return NULL;
        count += size < MOST_COMPUTED ? size : MOST_COMPUTED;
    }
    if (count >= MOST_COMPUTED)
        return NULL;
    n = n < 0 ? n : op_run(&call, out, NULL, NULL);
    if (n < 0)
        return &ex->bad;
    if (n == 1 && !c->op->tuple)
        return traced_constant(out[0]);
    Traced **parts = mem_new_n(Traced *, n);
    for (int i = 0; i < n; i++)
        parts[i] = traced_constant(out[i]);
    return traced_tuple(parts, (uint32_t)n);
}

/* Notes the sizes of what a call gives, where those of its arguments are known and decide them. */
static void note_shapes(const ExportCall *c, Traced *result) {
    Tensor *in[OP_MAX_OUTPUTS];
    OutSpec specs[OP_MAX_OUTPUTS];
    Diags unheard = {0};
    OpCall call = {.op = c->op, .attrs = c->attrs, .in = in, .diags = &unheard, .span = c->span};
    if (c->nsizes || !c->op->shape || c->op->shape_mode == SHAPE_BOUND ||
        !all_args(c, c->op->shape_mode == SHAPE_OF_DATA, in, &call.nin))
        return;
    int n = c->op->shape(&call, specs);
    if (n > 0 && result->kind == TRACED_TENSOR)
        result->shape = kept_shape(&specs[0]);
    for (int i = 0; i < n && result->kind == TRACED_TUPLE && (uint32_t)i < result->nparts; i++)
        result->parts[i]->shape = kept_shape(&specs[i]);
}

/* The attribute with what is known of its sizes in their place. */
static AttrValue settled_value(const ExportCall *c, AttrValue v, uint32_t *next) {
    if (v.kind == ATTR_LIST) {
        AttrValue *items = mem_new_n(AttrValue, v.list.n);
        for (uint32_t i = 0; i < v.list.n; i++)
            items[i] = settled_value(c, v.list.items[i], next);
        v.list.items = items;
    } else if (v.kind == ATTR_DIM && *next < c->nsizes) {
        const Traced *size = c->sizes[(*next)++];
        int64_t n;
        elem_cast(&n, DT_I64, tensor_data(size->constant), size->dtype);
        v = attr_size(n);
    }
    return v;
}

/* Where all sizes of the attributes are known, they are numbers like others. */
static void settle_sizes(ExportCall *c) {
    for (uint32_t i = 0; i < c->nsizes; i++)
        if (c->sizes[i]->kind != TRACED_TENSOR || !c->sizes[i]->constant)
            return;
    if (!c->nsizes)
        return;
    Attrs *attrs = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, c->op->nattrs);
    uint32_t next = 0;
    for (int i = 0; i < c->op->nattrs; i++)
        values[i] = settled_value(c, c->attrs->values[i], &next);
    *attrs = (Attrs){c->op, values};
    c->attrs = attrs;
    c->nsizes = 0;
}

/* Whether ONNX has the attribute that holds the sizes as an input; what it has as an attribute is constant. */
static bool takes_sizes(const Op *op) {
    return op_attr_index(op, "newshape") >= 0 || op_attr_index(op, "shape") >= 0;
}

Traced *export_operator(Export *ex, ExportCall c) {
    for (uint32_t i = 0; i < c.nargs; i++) {
        if (c.args[i]->kind == TRACED_BAD)
            return &ex->bad;
        if (c.args[i]->kind != TRACED_TENSOR && !op_arg(c.op, (int)i).tuple)
            return call_refuse(ex, &c, "of no tensor");
    }
    for (uint32_t i = 0; i < c.nsizes; i++)
        if (c.sizes[i]->kind == TRACED_BAD)
            return &ex->bad;
    settle_sizes(&c);
    Traced *now = computed(ex, &c);
    const Entry *e = find_entry(c.op);
    if (now)
        return now;
    if (!e)
        return export_refuse(ex, c.span, fmt_text("no counterpart of `%s`", c.op->name));
    if (c.nsizes && !takes_sizes(c.op))
        return call_refuse(ex, &c, "of attributes that are computed");
    Traced *result = e->translate ? e->translate(ex, &c) : element(ex, &c, e);
    if (result->kind != TRACED_BAD)
        note_shapes(&c, result);
    return result;
}

Traced *export_default(Export *ex, const Op *op, Span span, Traced **args, uint32_t nargs) {
    return export_operator(ex, (ExportCall){op, attrs_defaults(op), span, args, nargs, NULL, 0});
}
