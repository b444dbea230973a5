/* SPDX-License-Identifier: Apache-2.0 */
/* nn.contrib_dense_pack and qnn.contrib_dense_pack: nn.dense with its weight (units, k) in blocks of b units,
 * (units / b, k, b). Each is the product that nn.dense is, with other strides. */
#include <string.h>

#include "ops/qnn.h"

static bool measure_units(const OpCall *call, OutSpec *out) {
    const Tensor *w = call->in[1];
    int64_t units = size_multiply(w->shape[0], w->shape[2]);
    const AttrValue *given = attrs_get(call->attrs, "units");
    if (given->kind == ATTR_INT && given->i != units) {
        shape_error(call, DIAG_R0314, "units=%lld, and the weight has %lld", (long long)given->i,
                    (long long)units);
        return false;
    }
    out[0].shape[out[0].rank - 1] = units;
    return true;
}

/* out (..., p * b) = x (..., k) times w (p, k, b). */
static void plan_dense_pack(Plan *plan, Tensor *out, const Tensor *x, const Tensor *w) {
    int last = x->rank - 1;
    int64_t unit = out->strides[last];
    Product p = {.rank = last + 2, .nreduce = 1};
    for (int i = 0; i < last; i++) {
        p.extents[i] = x->shape[i];
        p.out_strides[i] = out->strides[i];
        p.x_strides[i] = x->strides[i];
    }
    for (int i = 0; i < 2; i++) {
        p.extents[last + i] = w->shape[2 * i];
        p.out_strides[last + i] = i ? unit : unit * w->shape[2];
        p.y_strides[last + i] = w->strides[2 * i];
    }
    p.extents[last + 2] = x->shape[last];
    p.x_strides[last + 2] = x->strides[last];
    p.y_strides[last + 2] = w->strides[1];
    plan_product(plan, out, &p, x, w);
}

static bool lower_dense_pack(const OpCall *call, Tensor *const *out, Plan *plan) {
    plan_dense_pack(plan, out[0], call->in[0], call->in[1]);
    return true;
}

static const AttrSpec dense_attrs[] = {
    {"units", AT_DIM, "None", "how many there are, as the weight says too"},
    {"out_dtype", AT_DTYPE, "None", "of the result; None: that of the arguments"},
};
SIGNATURE_OP(nn_contrib_dense_pack, "DensePack", "nn.contrib_dense_pack", "data, weight", 2,
             (.text = "num(..., k), =0(p, k, b) -> @out_dtype(..., ?)", .measure = measure_units),
             .attrs = dense_attrs, .nattrs = 2, .dtypes = DTS_NUM, .pattern = OP_PRODUCT,
             .lower = lower_dense_pack,
             .doc = "nn.dense with the weight in blocks of units: data (..., k) and weight\n"
                    "(units / b, k, b) give (..., units).",
             .example = "nn.contrib_dense_pack([[1.0, 2.0]], [[[1.0, 3.0], [10.0, 30.0]]])",
             .example_result = "[[21.0, 63.0]] : Tensor[(1, 2), float32]", .see_also = "nn.dense")

/* ---- of quantised numbers --------------------------------------------------------------------- */

static const char *refuse_wide(const Attrs *attrs, const int *ranks) {
    DType t;
    (void)ranks;
    return attrs_dtype(attrs, "out_dtype", &t) && t == DT_I32 ? NULL : "out_dtype is int32";
}

static bool measure_quantised(const OpCall *call, OutSpec *out) {
    if (!measure_units(call, out))
        return false;
    int64_t units = out[0].shape[out[0].rank - 1];
    for (int i = 4; i < 6; i++) {
        const Tensor *t = call->in[i];
        if (t->rank == 0 || t->shape[0] == 1 || t->shape[0] == units)
            continue;
        shape_error(call, DIAG_R0314, "`%s` has %lld elements, and there are %lld units",
                    shape_arg_name(call, i), (long long)t->shape[0], (long long)units);
        return false;
    }
    return true;
}

/* weight (p, k, b) without its zero point, a scalar or one for each of the p * b units. */
static Tensor *plan_shift_weight(Plan *plan, const Tensor *w, const Tensor *zero) {
    Tensor *out = plan_temp(plan, DT_I32, 3, w->shape);
    int64_t strides[RECIPE_MAX_AXES] = {0};
    if (zero->rank && zero->shape[0] != 1) {
        strides[0] = w->shape[2] * zero->strides[0];
        strides[2] = zero->strides[0];
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 3, w->shape);
    Sc z = sc_load(&s.body, step_in_strided(&s, zero, strides, 0), DT_I32);
    qnn_load(&s, step_in(&s, w), w->dtype, z);
    step_out(&s, out);
    step_end(&s);
    return out;
}

static bool lower_quantised(const OpCall *call, Tensor *const *out, Plan *plan) {
    Tensor *x = qnn_plan_shift(plan, call->in[0], call->in[3], 0);
    plan_dense_pack(plan, out[0], x, plan_shift_weight(plan, call->in[1], call->in[5]));
    return true;
}

static const AttrSpec quantised_attrs[] = {
    {"units", AT_DIM, "None", "how many there are, as the weight says too"},
    {"out_dtype", AT_DTYPE, "int32", "of the result"},
    {"weight_layout", AT_STRING, "\"NC\"",
     "TVM's name of the blocks; the weight's sizes say how they lie"},
};
SIGNATURE_OP(
    qnn_contrib_dense_pack, "QnnDensePack", "qnn.contrib_dense_pack",
    "data, weight, input_scale, input_zero_point, weight_scale, weight_zero_point", 6,
    (.text = "quant(..., k), quant(p, k, b), " QNN_SCALAR ", " QNN_VECTOR " -> @out_dtype(..., ?)",
     .refuse = refuse_wide, .measure = measure_quantised),
    .attrs = quantised_attrs, .nattrs = 3, .choices = "weight_layout: NC NC4n NC8n NC16n NC32n",
    .dtypes = QNN_DTYPES, .pattern = OP_PRODUCT, .lower = lower_quantised,
    .doc = "qnn.dense with the weight in blocks of units, (units / b, k, b); scales only say what "
           "the\n"
           "result stands for.",
    .example =
        "qnn.contrib_dense_pack((int8) [[1, 2]], (int8) [[[1, 3], [10, 30]]], 0.5, 0, 0.5, 1)",
    .example_result = "[[18, 60]] : Tensor[(1, 2), int32]",
    .see_also = "qnn.dense, nn.contrib_dense_pack")
