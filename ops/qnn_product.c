/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised operators of two tensors and pools. Convolutions and products subtract the zero points and are
 * then those of int32, whose sizes, layouts and types they have; padding is the zero point, so 0. Sums are of
 * arguments brought to the result's scale; a product is brought there from the product of the scales. */
#include "ops/qnn.h"

#include <string.h>

#include "base/mem.h"
#include "ops/conv.h"
#include "ops/packed.h"
#include "ops/pool.h"
#include "ops/relate/solve.h"

/* ---- as another operator ---------------------------------------------------------------------- */

/* The plain operator under the name of the quantised one: what messages say. */
static const Op *named_as(const Op *plain, const Op *quantised) {
    Op *op = mem_new(Op);
    *op = *plain;
    op->name = quantised->name;
    return op;
}

/* The first n tensors without elements, of this dtype (DTYPE_COUNT: of their own): what a shape function reads. */
static Tensor **as_dtype(const OpCall *call, uint32_t n, DType dtype) {
    Tensor **in = mem_new_n(Tensor *, n);
    for (uint32_t i = 0; i < n; i++) {
        const Tensor *t = call->in[i];
        in[i] = mem_alloc(sizeof(Tensor) + (size_t)t->rank * sizeof *t->shape);
        in[i]->rank = t->rank;
        in[i]->count = t->count;
        in[i]->dtype = dtype == DTYPE_COUNT ? t->dtype : dtype;
        memcpy(in[i]->shape, t->shape, (size_t)t->rank * sizeof *t->shape);
    }
    return in;
}

/* The dtypes that argument i may have behind n quantised ones. */
static DTypeSet param_dtypes(uint32_t i, uint32_t n) {
    return i < n ? QNN_DTYPES : (i - n) % 2 ? DT_BIT(DT_I32) : DT_BIT(DT_F32);
}

/* The result of the plain operator on the first n tensors, which are of `dtype` there. */
static int shape_as(const OpCall *call, OutSpec *out, const Op *plain, uint32_t n, DType dtype) {
    OpCall sub = *call;
    sub.op = named_as(plain, call->op);
    sub.nin = n;
    sub.in = as_dtype(call, n, dtype);
    for (uint32_t i = 0; i < call->nin; i++)
        if (!shape_check_dtype(call, (int)i, param_dtypes(i, n)))
            return -1;
    return plain->shape(&sub, out);
}

/* Scales and zero points, from argument n on, are scalars; those of a pair in the set `vectors` may be vectors along
 * axis at[] of argument of[]. */
static bool check_params(const OpCall *call, uint32_t n, uint32_t vectors, const int *at) {
    for (uint32_t i = n; i < call->nin; i++) {
        uint32_t pair = (i - n) / 2;
        if (!(vectors >> pair & 1)) {
            if (!shape_check_rank(call, (int)i, 0))
                return false;
            continue;
        }
        if (call->in[i]->rank > 1) {
            shape_error(call, DIAG_R0313, "`%s` has %d axes, it is a scalar or a vector",
                        shape_arg_name(call, (int)i), call->in[i]->rank);
            return false;
        }
        if (!qnn_check_param(call, (int)i, (int)pair, at[pair]))
            return false;
    }
    return true;
}

/* The first n arguments are quantised, then scales (float32) and zero points (int32) follow in pairs. False
 * after a report. */
static bool relate_params(Solver *s, Relation *r, uint32_t n, uint32_t vectors) {
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        Type *shape, *dtype;
        uint32_t rank;
        Type **dims;
        if (!rel_tensor(s, r, (int)i, param_dtypes(i, n), &shape, &dtype))
            return false;
        bool vector = i < n || vectors >> ((i - n) / 2) & 1;
        if (!vector && !rel_need_rank(s, r, (int)i, 0))
            return false;
        if (i < n || !rel_rank_in(r->args[i], &rank, &dims) || rank <= 1)
            continue;
        rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes, it is a scalar or a vector",
                  r->op->name, op_arg(r->op, (int)i).name, rank);
        return false;
    }
    return true;
}

/* The relation of the plain operator between the shapes of the first n arguments and the result. Its dtype is
 * `dtype`, or NULL for that of the arguments, which is then one. */
static RelStatus relate_as(Solver *s, Relation *r, const Op *plain, uint32_t n, uint32_t vectors,
                           Type *dtype) {
    RelStatus status;
    DTypeSet sets[8];
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        sets[i] = param_dtypes(i, n);
    if (rel_known(s, r, sets, &status))
        return status;
    if (!relate_params(s, r, n, vectors))
        return REL_FAIL;
    Relation sub = *r;
    sub.op = named_as(plain, r->op);
    sub.def = plain->relation;
    sub.nargs = n + 1;
    sub.args = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        sub.args[i] = dtype ? type_tensor(rel_shape_in(r->args[i]), dtype) : r->args[i];
    sub.args[n] = rel_result_arg(r);
    return plain->relation->relate(s, &sub);
}

/* ---- products --------------------------------------------------------------------------------- */

/* The axis of the weight along which its scales and zero points may lie. */
typedef int (*WeightAxis)(const Attrs *attrs, int rank);
enum { WEIGHT_PAIR = 2 };

static int conv_weight_axis(const Attrs *attrs, int rank) {
    Conv v;
    (void)rank;
    return conv_read(attrs, &v) ? -1 : v.kernel[CONV_O];
}

static int first_axis(const Attrs *attrs, int rank) {
    (void)attrs;
    return rank ? 0 : -1;
}

/* NULL: they are scalars. */
static bool has_axis(WeightAxis axis) { return axis != NULL; }

/* Where the blocks of layouts are joined, vectors lie along the joined channels. */
static const char product_roles[] = "DK---->O";

static int shape_product(const OpCall *call, OutSpec *out, const Op *plain, WeightAxis axis) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, product_roles);
    int n = shape_as(call, out, plain, 2, DT_I32);
    const int at[] = {-1, n < 0 || !axis ? -1 : axis(call->attrs, call->in[1]->rank)};
    return n < 0 || !check_params(call, 2, axis ? WEIGHT_PAIR : 0, at) ? -1 : n;
}

static bool lower_product(const OpCall *call, Tensor *const *out, Plan *plan, const Op *plain,
                          WeightAxis axis) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, product_roles);
    int at = axis ? axis(call->attrs, call->in[1]->rank) : 0;
    Tensor *in[] = {qnn_plan_shift(plan, call->in[0], call->in[3], 0),
                    qnn_plan_shift(plan, call->in[1], call->in[5], at)};
    OpCall sub = *call;
    sub.op = plain;
    sub.nin = 2;
    sub.in = in;
    return plain->lower(&sub, out, plan);
}

#define QNN_PRODUCT(fn, rel, arguments, plain, axis, op_attrs, n, layouts, kind, text, shown,      \
                    value, see)                                                                    \
    static int shape_##fn(const OpCall *call, OutSpec *out) {                                      \
        return shape_product(call, out, &plain, axis);                                             \
    }                                                                                              \
    static RelStatus relate_##fn(Solver *s, Relation *r) {                                         \
        return relate_as(s, r, &plain, 2, has_axis(axis) ? WEIGHT_PAIR : 0, type_dtype(DT_I32));   \
    }                                                                                              \
    static bool lower_##fn(const OpCall *call, Tensor *const *out, Plan *plan) {                   \
        return lower_product(call, out, plan, &plain, axis);                                       \
    }                                                                                              \
    static const RelDef rel_##fn = {rel, relate_##fn, 7, false};                                   \
    const Op op_qnn_##fn = {                                                                       \
        .name = "qnn." #fn,                                                                        \
        .args = arguments,                                                                         \
        .nargs = 6,                                                                                \
        .attrs = op_attrs,                                                                         \
        .nattrs = n,                                                                               \
        .choices = layouts,                                                                        \
        .relation = &rel_##fn,                                                                     \
        .dtypes = QNN_DTYPES,                                                                      \
        .pattern = OP_OPAQUE,                                                                      \
        .variant = kind,                                                                           \
        .shape = shape_##fn,                                                                       \
        .refuses_sizes = true,                                                                     \
        .lower = lower_##fn,                                                                       \
        .doc = text,                                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = see,                                                                           \
    };

extern const Op op_nn_dense, op_nn_batch_matmul, op_nn_conv2d, op_nn_conv2d_transpose,
    op_nn_avg_pool2d, op_concatenate;
#define WEIGHTED "data, weight, input_scale, input_zero_point, weight_scale, weight_zero_point"
static const AttrSpec dense_attrs[] = {
    {"units", AT_DIM, "None", "the rows of weight, where it is determined by it"},
    {"out_dtype", AT_DTYPE, "int32", "of the result"},
};
QNN_PRODUCT(dense, "QDense", WEIGHTED, op_nn_dense, first_axis, dense_attrs, 2, NULL, 0,
            "nn.dense of the numbers without their zero points, in int32: the result stands for\n"
            "input_scale * weight_scale times it.",
            "qnn.dense((int8) [[1, 2]], (int8) [[3, 4]], 0.5, 1, 0.5, 0)",
            "[[4]] : Tensor[(1, 1), int32]", "nn.dense, qnn.requantize")

static const AttrSpec batch_attrs[] = {
    {"out_dtype", AT_DTYPE, "int32", "of the result"},
    {"transpose_a", AT_BOOL, "False", "x is (b, k, n)"},
    {"transpose_b", AT_BOOL, "False", "y is (b, m, k)"},
};
QNN_PRODUCT(
    batch_matmul, "QBatchMatmul", "x, y, x_scale, x_zero_point, y_scale, y_zero_point",
    op_nn_batch_matmul, NULL, batch_attrs, 3, NULL, 0,
    "nn.batch_matmul of the numbers without their zero points, in int32: the result stands\n"
    "for x_scale * y_scale times it.",
    "qnn.batch_matmul((int8) [[[1, 2]]], (int8) [[[3], [4]]], 0.5, 1, 0.5, 0)",
    "[[[4]]] : Tensor[(1, 1, 1), int32]", "nn.batch_matmul, qnn.requantize")

static const AttrSpec conv_attrs[] = {CONV_ATTRS("[1, 1]", "[0, 0]", "NCHW", "OIHW")};
QNN_PRODUCT(conv2d, "QnnConv2D", WEIGHTED, op_nn_conv2d, conv_weight_axis, conv_attrs, CONV_NATTRS,
            CONV_LAYOUTS("+NCHW", "+OIHW +GOIHW"), 0,
            "nn.conv2d of the numbers without their zero points, in int32: the result stands for\n"
            "input_scale * weight_scale times it.",
            "qnn.conv2d((int8) [[[[1, 2, 3]]]], (int8) [[[[1, 2]]]], 0.5, 1, 0.5, 0)",
            "[[[[2, 5]]]] : Tensor[(1, 1, 1, 2), int32]", "nn.conv2d, qnn.requantize")

static const AttrSpec transposed_attrs[] = {
    CONV_ATTRS("[1, 1]", "[0, 0]", "NCHW", "IOHW"),
    {"output_padding", AT_DIMS, "[0, 0]", "so many more places at the end of each side"},
};
QNN_PRODUCT(conv2d_transpose, "QnnConv2DTranspose", WEIGHTED, op_nn_conv2d_transpose, NULL,
            transposed_attrs, CONV_NATTRS + 1, CONV_LAYOUTS("+NCHW", "+OIHW"), CONV_TRANSPOSED,
            "nn.conv2d_transpose of the numbers without their zero points, in int32: the result\n"
            "stands for input_scale * weight_scale times it.",
            "qnn.conv2d_transpose((int8) [[[[1, 2]]]], (int8) [[[[1, 3]]]], 0.5, 0, 0.5, 0)",
            "[[[[1, 5, 6]]]] : Tensor[(1, 1, 1, 3), int32]", "nn.conv2d_transpose")

/* ---- qnn.add, qnn.subtract, qnn.mul ----------------------------------------------------------- */

enum { QNN_ADD, QNN_SUBTRACT, QNN_MUL };
enum { BOTH_SIDES = 3 };

/* The axis of lhs or rhs along which a vector of scales lies; -1: there is no such axis. */
static int side_axis(const Attrs *attrs, int side, int rank) {
    int64_t axis = attrs_int(attrs, side ? "rhs_axis" : "lhs_axis");
    axis = axis < 0 ? axis + rank : axis;
    return axis < rank ? (int)axis : -1;
}

static int shape_binary(const OpCall *call, OutSpec *out) {
    int n = shape_as(call, out, &op_add, 2, DTYPE_COUNT);
    const int at[] = {side_axis(call->attrs, 0, call->in[0]->rank),
                      side_axis(call->attrs, 1, call->in[1]->rank)};
    return n < 0 || !check_params(call, 2, BOTH_SIDES, at) ? -1 : n;
}

static RelStatus relate_binary(Solver *s, Relation *r) {
    for (uint32_t i = 2; i < 6 && !rel_attrs_open(r); i++) {
        int side = i >= 4;
        uint32_t own, rank;
        Type **dims;
        if (!rel_rank_in(r->args[i], &own, &dims) || own != 1 ||
            !rel_rank_in(r->args[side], &rank, &dims) || side_axis(r->attrs, side, (int)rank) >= 0)
            continue;
        rel_error(s, r, DIAG_R0315, "`%s`: `%s` is a vector, and `%s` has no axis for it",
                  r->op->name, op_arg(r->op, (int)i).name, op_arg(r->op, side).name);
        return REL_FAIL;
    }
    return relate_as(s, r, &op_add, 2, BOTH_SIDES, NULL);
}

static bool lower_binary(const OpCall *call, Tensor *const *out, Plan *plan) {
    int rank = out[0]->rank;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, rank, out[0]->shape);
    ScalarBuilder *b = &s.body;
    QParams own[2], to = qnn_load_params(&s, call->in[6], call->in[7], 0);
    Sc x[2];
    for (int i = 0; i < 2; i++) {
        int axis = side_axis(call->attrs, i, call->in[i]->rank) + rank - call->in[i]->rank;
        own[i] = qnn_load_params(&s, call->in[2 + 2 * i], call->in[3 + 2 * i], axis);
        x[i] = qnn_load(&s, step_in(&s, call->in[i]), call->in[i]->dtype, own[i].zero);
        if (call->op->variant != QNN_MUL)
            x[i] = qnn_rescale(b, x[i], own[i].scale, to, ROUND_UPWARD);
    }
    Sc v;
    if (call->op->variant == QNN_MUL) {
        Sc scale = sc_cast(b, sc_mul(b, own[0].scale, own[1].scale), DT_F32);
        v = qnn_rescale(b, sc_mul(b, x[0], x[1]), sc_cast(b, scale, DT_F64), to, ROUND_UPWARD);
    } else if (call->op->variant == QNN_ADD) {
        v = sc_sub(b, sc_add(b, x[0], x[1]), to.zero);
    } else {
        v = sc_add(b, sc_sub(b, x[0], x[1]), to.zero);
    }
    qnn_clamp(b, v, out[0]->dtype);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec binary_attrs[] = {
    {"lhs_axis", AT_INT, "-1", "the axis of lhs along which vectors of its scales lie"},
    {"rhs_axis", AT_INT, "-1", "the axis of rhs along which vectors of its scales lie"},
};
#define QNN_BINARY(fn, rel, kind, meaning, shown, value)                                           \
    static const RelDef rel_##fn = {rel, relate_binary, 9, false};                                 \
    const Op op_qnn_##fn = {                                                                       \
        .name = "qnn." #fn,                                                                        \
        .args = "lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, "   \
                "output_zero_point",                                                               \
        .nargs = 8,                                                                                \
        .attrs = binary_attrs,                                                                     \
        .nattrs = 2,                                                                               \
        .relation = &rel_##fn,                                                                     \
        .dtypes = QNN_DTYPES,                                                                      \
        .pattern = OP_BROADCAST,                                                                   \
        .variant = kind,                                                                           \
        .shape = shape_binary,                                                                     \
        .refuses_sizes = true,                                                                     \
        .lower = lower_binary,                                                                     \
        .doc = meaning " of the numbers that two quantised tensors stand for, quantised; they\n"   \
                       "broadcast.",                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = "qnn.requantize",                                                              \
    };
QNN_BINARY(add, "QnnAdd", QNN_ADD, "The sum",
           "qnn.add((int8) [1, 2], (int8) [10, 20], 1.0, 0, 0.5, 0, 1.0, 0)",
           "[6, 12] : Tensor[(2,), int8]")
QNN_BINARY(subtract, "QnnSubtract", QNN_SUBTRACT, "The difference",
           "qnn.subtract((int8) [1, 2], (int8) [10, 20], 1.0, 0, 0.5, 0, 1.0, 0)",
           "[-4, -8] : Tensor[(2,), int8]")
QNN_BINARY(mul, "QnnMul", QNN_MUL, "The product",
           "qnn.mul((int8) [1, 2], (int8) [10, 20], 1.0, 0, 0.5, 0, 1.0, 0)",
           "[5, 20] : Tensor[(2,), int8]")

/* ---- qnn.concatenate, qnn.avg_pool2d ---------------------------------------------------------- */

/* out = t, of scale and zero point `from`, with those of `to`. */
static void plan_requantize(Plan *plan, Tensor *out, const Tensor *t, Tensor *const *from,
                            Tensor *const *to) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, t->rank, t->shape);
    QParams own = qnn_load_params(&s, from[0], from[1], 0);
    QParams wanted = qnn_load_params(&s, to[0], to[1], 0);
    Sc v = qnn_load(&s, step_in(&s, t), t->dtype, own.zero);
    qnn_clamp(&s.body, qnn_rescale(&s.body, v, own.scale, wanted, ROUND_UPWARD), out->dtype);
    step_out(&s, out);
    step_end(&s);
}

/* The tensors are followed by as many scales and zero points, and by those of the result. */
static int shape_concatenate(const OpCall *call, OutSpec *out) {
    uint32_t n = (call->nin - 2) / 3;
    if (call->nin < 5 || (call->nin - 2) % 3 != 0) {
        shape_error(call, DIAG_R0316, "the tuples have different lengths");
        return -1;
    }
    for (uint32_t i = 0; i < call->nin; i++) {
        bool zero = i < 3 * n ? i >= 2 * n : i == 3 * n + 1;
        if (!shape_check_dtype(call, (int)i, i < n ? QNN_DTYPES : param_dtypes(zero, 0)) ||
            (i >= n && !shape_check_rank(call, (int)i, 0)))
            return -1;
    }
    OpCall sub = *call;
    sub.op = named_as(&op_concatenate, call->op);
    sub.nin = n;
    return op_concatenate.shape(&sub, out);
}

static RelStatus relate_concatenate(Solver *s, Relation *r) {
    uint32_t n[3];
    Type **parts[3];
    if (rel_attrs_open(r))
        return REL_WAIT;
    for (int i = 0; i < 3; i++)
        if (!rel_parts(r, i, &n[i], &parts[i]))
            return REL_WAIT;
    if (n[1] != n[0] || n[2] != n[0]) {
        rel_error(s, r, DIAG_R0316, "`%s`: %u tensors have %u scales and %u zero points",
                  r->op->name, n[0], n[1], n[2]);
        return REL_FAIL;
    }
    Type *scale = type_tensor(type_shape(NULL, 0), type_dtype(DT_F32));
    Type *zero = type_tensor(type_shape(NULL, 0), type_dtype(DT_I32));
    for (int i = 1; i < 5; i++) {
        Type **items = mem_new_n(Type *, n[0] + 1), *item = i % 2 ? scale : zero;
        for (uint32_t k = 0; k < n[0]; k++)
            items[k] = item;
        if (!rel_unify(s, r, i, i < 3 ? type_tuple(items, n[0]) : item))
            return REL_FAIL;
    }
    for (uint32_t k = 0; k < n[0]; k++)
        if (rel_dtype_in(parts[0][k]) &&
            !solver_restrict(s, rel_dtype_in(parts[0][k]), QNN_DTYPES)) {
            rel_error(s, r, DIAG_R0310,
                      "`%s`: the elements of `data` must be quantised, they are %s", r->op->name,
                      type_text(rel_dtype_in(parts[0][k])));
            return REL_FAIL;
        }
    Relation sub = *r;
    sub.op = named_as(&op_concatenate, r->op);
    sub.def = op_concatenate.relation;
    sub.nargs = 2;
    sub.args = mem_new_n(Type *, 2);
    sub.args[0] = r->args[0];
    sub.args[1] = rel_result_arg(r);
    return sub.def->relate(s, &sub);
}

static bool lower_concatenate(const OpCall *call, Tensor *const *out, Plan *plan) {
    uint32_t n = (call->nin - 2) / 3;
    Tensor **in = mem_new_n(Tensor *, n);
    for (uint32_t i = 0; i < n; i++) {
        const Tensor *t = call->in[i];
        in[i] = plan_temp(plan, t->dtype, t->rank, t->shape);
        plan_requantize(plan, in[i], t, (Tensor *const[]){call->in[n + i], call->in[2 * n + i]},
                        call->in + 3 * n);
    }
    OpCall sub = *call;
    sub.op = &op_concatenate;
    sub.nin = n;
    sub.in = in;
    return op_concatenate.lower(&sub, out, plan);
}

static const RelDef rel_concatenate = {"QnnConcatenate", relate_concatenate, 6, false};
static const AttrSpec concatenate_attrs[] = {
    {"axis", AT_INT, "0", "the axis along which they lie"}};
const Op op_qnn_concatenate = {
    .name = "qnn.concatenate",
    .args = "(data), (input_scales), (input_zero_points), output_scale, output_zero_point",
    .nargs = 5,
    .attrs = concatenate_attrs,
    .nattrs = 1,
    .relation = &rel_concatenate,
    .dtypes = QNN_DTYPES,
    .pattern = OP_INJECTIVE,
    .shape = shape_concatenate,
    .lower = lower_concatenate,
    .doc = "Quantised tensors, each with its scale and zero point, joined along an axis and\n"
           "requantised to one.",
    .example = "qnn.concatenate(((int8) [2], (int8) [3]), (1.0, 0.5), (0, 1), 0.5, 0)",
    .example_result = "[4, 2] : Tensor[(2,), int8]",
    .see_also = "concatenate, qnn.requantize",
};

static int shape_avg_pool2d(const OpCall *call, OutSpec *out) {
    int n = shape_as(call, out, &op_nn_avg_pool2d, 1, DTYPE_COUNT);
    return n < 0 || !check_params(call, 1, 0, NULL) ? -1 : n;
}

static RelStatus relate_avg_pool2d(Solver *s, Relation *r) {
    return relate_as(s, r, &op_nn_avg_pool2d, 1, 0, NULL);
}

static bool lower_avg_pool2d(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    Tensor *in = plan_temp(plan, DT_I32, x->rank, x->shape);
    Tensor *pooled = plan_temp(plan, DT_I32, out[0]->rank, out[0]->shape);
    plan_requantize(plan, in, x, call->in + 1, call->in + 3);
    OpCall sub = *call;
    sub.op = &op_nn_avg_pool2d;
    sub.nin = 1;
    sub.in = &in;
    if (!op_nn_avg_pool2d.lower(&sub, &pooled, plan))
        return false;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, pooled->rank, pooled->shape);
    qnn_clamp(&s.body, sc_load(&s.body, step_in(&s, pooled), DT_I32), out[0]->dtype);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_avg_pool2d = {"QnnAvgPool2D", relate_avg_pool2d, 6, false};
const Op op_qnn_avg_pool2d = {
    .name = "qnn.avg_pool2d",
    .args = "data, input_scale, input_zero_point, output_scale, output_zero_point",
    .nargs = 5,
    .attrs = pool_attrs_2d,
    .nattrs = POOL_NAVG,
    .choices = POOL_LAYOUTS("+NCHW"),
    .relation = &rel_avg_pool2d,
    .dtypes = QNN_DTYPES,
    .pattern = OP_OPAQUE,
    .variant = POOL_AVG,
    .shape = shape_avg_pool2d,
    .refuses_sizes = true,
    .lower = lower_avg_pool2d,
    .doc = "The mean of each window of the quantised numbers of data (n, c, h, w), requantised,\n"
           "without what stands behind the point.",
    .example = "qnn.avg_pool2d((int8) [[[[2, 4]]]], 0.5, 0, 1.0, 0, pool_size=[1, 2])",
    .example_result = "[[[[1]]]] : Tensor[(1, 1, 1, 1), int8]",
    .see_also = "nn.avg_pool2d",
};
