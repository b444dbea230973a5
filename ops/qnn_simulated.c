/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation that leaves floats: the values that quantised numbers would have, for networks that are to be
 * quantised. Which dtype is simulated is an argument, a code: 0 none, 1 int8, 2 uint8, 3 int32. */
#include <string.h>

#include "ops/qnn.h"

enum { CODE_NONE, CODE_INT8, CODE_UINT8, CODE_INT32 };

static const char *refuse_lane(const Attrs *attrs, const int *ranks) {
    if (ranks[0] != 0)
        return refuse_axis(attrs, "axis", ranks[0]);
    return ranks[2] == 1 || ranks[3] == 1 ? "a scalar has no axis along which a vector lies" : NULL;
}

static int axis_of(const OpCall *call) {
    int rank = call->in[0]->rank;
    return rank ? lower_axis(call, "axis", rank) : 0;
}

static bool measure_lanes(const OpCall *call, OutSpec *out) {
    (void)out;
    return qnn_check_param(call, 2, 0, axis_of(call)) && qnn_check_param(call, 3, 0, axis_of(call));
}

/* An argument of the step that is a scalar, or a vector along `axis`. */
static Sc load_lane(StepBuilder *s, const Tensor *t, int axis, DType as) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    if (t->rank == 1 && t->shape[0] != 1)
        strides[axis] = t->strides[0];
    return sc_cast(&s->body, sc_load(&s->body, step_in_strided(s, t, strides, 0), t->dtype), as);
}

/* x kept to what the dtype of this code holds. */
static Sc clamp(ScalarBuilder *b, Sc x, Sc is_code, double least, double greatest) {
    DType t = sc_type(b, x);
    Sc v = sc_max(b, sc_min(b, x, sc_float(b, t, greatest)), sc_float(b, t, least));
    return sc_select(b, is_code, v, x);
}

enum { QUANTIZE, DEQUANTIZE }; /* Op.variant */

static bool lower_simulated(const OpCall *call, Tensor *const *out, Plan *plan) {
    static const struct {
        double least, greatest;
    } ranges[] = {{0, 0}, {-128, 127}, {0, 255}, {-2147483648.0, 2147483647.0}};
    const Tensor *x = call->in[0];
    int64_t none[RECIPE_MAX_AXES] = {0};
    int axis = axis_of(call);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, x), x->dtype);
    DType t = sc_type(b, v);
    Sc code = sc_index_load(b, step_in_strided(&s, call->in[1], none, 0), call->in[1]->dtype);
    sc_check(b, sc_in_range(b, code, sc_i64(b, CODE_INT32 + 1)), KERNEL_INDEX);
    Sc scale = load_lane(&s, call->in[2], axis, t), zero = load_lane(&s, call->in[3], axis, t), q;
    if (call->op->variant == QUANTIZE) {
        q = sc_add(b, sc_round(b, sc_div(b, v, scale)), zero);
        for (int k = CODE_INT8; k <= CODE_INT32; k++)
            q = clamp(b, q, sc_eq(b, code, sc_i64(b, k)), ranges[k].least, ranges[k].greatest);
    } else {
        q = sc_mul(b, sc_sub(b, v, zero), scale);
    }
    step_result(&s, sc_select(b, sc_eq(b, code, sc_i64(b, CODE_NONE)), v, q));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec quantize_attrs[] = {
    {"axis", AT_INT, "-1", "the axis along which vectors of scales and zero points lie"},
};
static const AttrSpec dequantize_attrs[] = {
    {"axis", AT_INT, "-1", "the axis along which vectors of scales and zero points lie"},
};
#define SIMULATED(symbol, rel, op_name, names, kind, op_attrs, words, shown, value, see)           \
    SIGNATURE_OP(symbol, rel, op_name, names, 4,                                                   \
                 (.text = "float(...), int32(), " QNN_VECTOR " -> =0(...)", .refuse = refuse_lane, \
                  .measure = measure_lanes),                                                       \
                 .attrs = op_attrs, .nattrs = 1, .dtypes = DTS_FLOAT, .pattern = OP_ELEMWISE,      \
                 .variant = kind, .lower = lower_simulated, .doc = words, .example = shown,        \
                 .example_result = value, .see_also = see)
SIMULATED(qnn_simulated_quantize, "QNNSimulatedQuantize", "qnn.simulated_quantize",
          "data, out_dtype, output_scale, output_zero_point", QUANTIZE, quantize_attrs,
          "The numbers that qnn.quantize would give, as floats. out_dtype says which: 1 int8, 2\n"
          "uint8, 3 int32; 0: data as it is.",
          "qnn.simulated_quantize([0.5, -1.0, 100.0], 1, 0.5, 3)",
          "[4.0, 1.0, 127.0] : Tensor[(3,), float32]", "qnn.quantize, qnn.simulated_dequantize")
SIMULATED(qnn_simulated_dequantize, "QNNSimulatedDequantize", "qnn.simulated_dequantize",
          "data, in_dtype, input_scale, input_zero_point", DEQUANTIZE, dequantize_attrs,
          "What qnn.simulated_quantize gave, as the floats that it stands for: input_scale *\n"
          "(data - input_zero_point); where in_dtype is 0, data as it is.",
          "qnn.simulated_dequantize([4.0, 1.0, 127.0], 1, 0.5, 3)",
          "[0.5, -1.0, 62.0] : Tensor[(3,), float32]", "qnn.dequantize, qnn.simulated_quantize")

/* ---- relay.op.annotation.simulated_quantize ---------------------------------------------------- */

static const char *refuse_kind(const Attrs *attrs, const int *ranks) {
    int64_t kind = attrs_int(attrs, "kind");
    (void)ranks;
    if (!attrs_bool(attrs, "sign"))
        return "numbers have a sign";
    return kind >= 0 && kind <= 3 ? NULL : "kind is 0 none, 1 input, 2 weight or 3 activation";
}

static bool lower_annotated(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t none[RECIPE_MAX_AXES] = {0};
    if (attrs_int(call->attrs, "kind") == 0) {
        plan_copy(plan, out[0], x);
        return true;
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, x), x->dtype), arg[4];
    for (int i = 1; i < 4; i++)
        arg[i] = sc_load(b, step_in_strided(&s, call->in[i], none, 0), x->dtype);
    Sc q = sc_max(b, sc_min(b, sc_div(b, v, arg[1]), arg[3]), arg[2]);
    sc_mul(b, sc_round(b, q), arg[1]);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec annotated_attrs[] = {
    {"kind", AT_INT, NULL,
     "what data is: 0 to leave it alone, 1 an input, 2 a weight, 3 an activation"},
    {"sign", AT_BOOL, "True", "numbers have a sign"},
    {"rounding", AT_STRING, "\"round\"", "to the nearest whole number, halves to the even one"},
};
SIGNATURE_OP(
    relay_op_annotation_simulated_quantize, "SimulatedQuantize",
    "relay.op.annotation.simulated_quantize", "data, dom_scale, clip_min, clip_max", 4,
    (.text = "float(...), =0(), =0(), =0() -> =0(...)", .refuse = refuse_kind),
    .attrs = annotated_attrs, .nattrs = 3, .choices = "rounding: round", .dtypes = DTS_FLOAT,
    .pattern = OP_ELEMWISE, .lower = lower_annotated,
    .doc =
        "data in whole steps of dom_scale, of which there are clip_min to clip_max: what is left\n"
        "of it by quantisation.",
    .example = "relay.op.annotation.simulated_quantize([0.6, -3.0], 0.5, -2.0, 2.0, kind=1)",
    .example_result = "[0.5, -1.0] : Tensor[(2,), float32]", .see_also = "qnn.simulated_quantize")
