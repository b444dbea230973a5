/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-point multiplication, changes between floats and quantised numbers and between scales, and
 * element-wise operators of quantised numbers: see ops/qnn.h. */
#include "ops/qnn.h"

#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

/* ---- formulas -------------------------------------------------------------------------------- */

static Sc i32(ScalarBuilder *b, int64_t v) { return sc_int(b, DT_I32, v); }

/* x times m / 2^31 * 2^(left - right), all int64; the result is int32. */
static Sc multiply_fixed(ScalarBuilder *b, Sc x, Sc m, Sc left, Sc right, Rounding rounding) {
    Sc product = sc_mul(b, sc_shl(b, x, left), m), zero = sc_i64(b, 0);
    Sc places = sc_add(b, right, sc_i64(b, 31));
    Sc half = sc_shl(b, sc_i64(b, 1), sc_sub(b, places, sc_i64(b, 1)));
    if (rounding == ROUND_TONEAREST)
        half = sc_select(b, sc_ge(b, product, zero), half, sc_sub(b, half, sc_i64(b, 1)));
    return sc_cast(b, sc_shr(b, sc_add(b, product, half), places), DT_I32);
}

/* x (int32) times a number above 0 (float64), whose binary digits become a multiplier and a shift. */
static Sc multiply_scale(ScalarBuilder *b, Sc x, Sc by, Rounding rounding) {
    Sc bits = sc_bits(b, by, DT_I64), zero = sc_i64(b, 0), top = sc_i64(b, 1ll << 31);
    Sc exponent = sc_and(b, sc_shr(b, bits, sc_i64(b, 52)), sc_i64(b, 0x7ff));
    Sc digits = sc_and(b, bits, sc_i64(b, (1ll << 52) - 1));
    digits = sc_or(b, digits, sc_i64(b, 1ll << 52)); /* 53 bits, of which 31 are kept */
    Sc m = sc_shr(b, sc_add(b, digits, sc_i64(b, 1ll << 21)), sc_i64(b, 22));
    Sc shift = sc_sub(b, exponent, sc_i64(b, 1022)), carry = sc_eq(b, m, top);
    m = sc_select(b, carry, sc_i64(b, 1ll << 30), m);
    shift = sc_select(b, carry, sc_add(b, shift, sc_i64(b, 1)), shift);
    m = sc_select(b, sc_eq(b, exponent, zero), zero, m);
    Sc left = sc_max(b, shift, zero), right = sc_max(b, sc_neg(b, shift), zero);
    return multiply_fixed(b, sc_cast(b, x, DT_I64), m, left, right, rounding);
}

static Sc multiply_number(ScalarBuilder *b, Sc x, double by) {
    return multiply_scale(b, x, sc_float(b, DT_F64, by), ROUND_UPWARD);
}

Sc qnn_rescale(ScalarBuilder *b, Sc x, Sc from, QParams to, Rounding rounding) {
    return sc_add(b, multiply_scale(b, x, sc_div(b, from, to.scale), rounding), to.zero);
}

static int64_t least_of(DType t) {
    return dtype_info[t].cls == DTC_UINT ? 0 : -(1ll << (dtype_info[t].bits - 1));
}

static int64_t greatest_of(DType t) {
    return (1ll << (dtype_info[t].bits - (dtype_info[t].cls != DTC_UINT))) - 1;
}

Sc qnn_clamp(ScalarBuilder *b, Sc x, DType dtype) {
    if (dtype != DT_I32)
        x = sc_max(b, sc_min(b, x, i32(b, greatest_of(dtype))), i32(b, least_of(dtype)));
    return sc_cast(b, x, dtype);
}

/* A vector along one axis of a step's domain, or a scalar. */
static Sc load_param(StepBuilder *s, const Tensor *t, int axis) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    if (t->rank == 1 && t->shape[0] != 1)
        strides[axis] = t->strides[0];
    return sc_load(&s->body, step_in_strided(s, t, strides, 0), t->dtype);
}

QParams qnn_load_params(StepBuilder *s, const Tensor *scale, const Tensor *zero, int axis) {
    Sc f = sc_cast(&s->body, load_param(s, scale, axis), DT_F64);
    return (QParams){f, load_param(s, zero, axis)};
}

Sc qnn_load(StepBuilder *s, int operand, DType dtype, Sc zero) {
    return sc_sub(&s->body, sc_cast(&s->body, sc_load(&s->body, operand, dtype), DT_I32), zero);
}

Tensor *qnn_plan_shift(Plan *plan, const Tensor *t, const Tensor *zero, int axis) {
    Tensor *out = plan_temp(plan, DT_I32, t->rank, t->shape);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, t->rank, t->shape);
    Sc shift = load_param(&s, zero, axis);
    qnn_load(&s, step_in(&s, t), t->dtype, shift);
    step_out(&s, out);
    step_end(&s);
    return out;
}

/* ---- attributes and sizes -------------------------------------------------------------------- */

bool qnn_check_param(const OpCall *call, int arg, int of, int axis) {
    const Tensor *p = call->in[arg];
    if (p->rank == 0)
        return true;
    if (axis >= 0 && axis < call->in[of]->rank)
        return p->shape[0] == 1 || shape_check_dims(call, of, axis, arg, 0);
    shape_error(call, DIAG_R0315, "`%s` is a vector, and `%s` has no axis for it",
                shape_arg_name(call, arg), shape_arg_name(call, of));
    return false;
}

static const char *refuse_lanes(const Attrs *attrs, const int *ranks) {
    if (ranks[0] != 0)
        return refuse_axis(attrs, "axis", ranks[0]);
    return ranks[1] == 1 || ranks[2] == 1 ? "a scalar has no axis along which a vector lies" : NULL;
}

static const char *refuse_dtype(const Attrs *attrs, const int *ranks) {
    DType t;
    return !attrs_dtype(attrs, "out_dtype", &t) || QNN_DTYPES & DT_BIT(t)
               ? refuse_lanes(attrs, ranks)
               : "out_dtype is an integer of 8, 16 or 32 bits";
}

static const char *refuse_float(const Attrs *attrs, const int *ranks) {
    DType t;
    return !attrs_dtype(attrs, "out_dtype", &t) || dtype_is_float(t) ? refuse_lanes(attrs, ranks)
                                                                     : "out_dtype is a float";
}

static int axis_of(const OpCall *call) {
    int rank = call->in[0]->rank;
    return rank ? lower_axis(call, "axis", rank) : 0;
}

/* The parameters in arguments 1 and 2 lie along the attribute axis of data. */
static bool measure_axis(const OpCall *call, OutSpec *out) {
    (void)out;
    return qnn_check_param(call, 1, 0, axis_of(call)) && qnn_check_param(call, 2, 0, axis_of(call));
}

/* ---- fixed_point_multiply --------------------------------------------------------------------- */

static const char *refuse_multiplier(const Attrs *attrs, const int *ranks) {
    (void)ranks;
    int64_t m = attrs_int(attrs, "multiplier"), shift = attrs_int(attrs, "shift");
    return m < INT32_MIN || m > INT32_MAX || shift < -32 || shift > 32
               ? "multiplier is an int32, shift from -32 to 32"
               : NULL;
}

static bool lower_fixed_point(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t shift = attrs_int(call->attrs, "shift");
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_cast(b, sc_load(b, step_in(&s, x), x->dtype), DT_I64);
    Sc m = step_iparam(&s, b, DT_I64, attrs_int(call->attrs, "multiplier"));
    Sc left = step_iparam(&s, b, DT_I64, shift > 0 ? shift : 0);
    Sc right = step_iparam(&s, b, DT_I64, shift < 0 ? -shift : 0);
    multiply_fixed(b, v, m, left, right, ROUND_UPWARD);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec fixed_attrs[] = {
    {"multiplier", AT_INT, NULL, "the factor times 2^31"},
    {"shift", AT_INT, NULL, "the exponent of 2 that the factor is multiplied with"},
};
SIGNATURE_OP(fixed_point_multiply, "FixedPointMultiply", "fixed_point_multiply", "data", 1,
             (.text = "int32(...) -> =0(...)", .refuse = refuse_multiplier), .attrs = fixed_attrs,
             .nattrs = 2, .dtypes = DT_BIT(DT_I32), .pattern = OP_ELEMWISE,
             .lower = lower_fixed_point,
             .doc = "data times multiplier / 2^31 * 2^shift, in 64 bits; halves are rounded up.",
             .example = "fixed_point_multiply([100, -7], multiplier=1073741824, shift=0)",
             .example_result = "[50, -3] : Tensor[(2,), int32]",
             .see_also = "fixed_point_multiply_per_axis, qnn.requantize")

/* The one axis that `axes` names, or -1. */
static int fixed_axis(const Attrs *attrs, int rank) {
    int64_t axes[TENSOR_MAX_RANK];
    int n = attr_int_list(attrs, "axes", axes, TENSOR_MAX_RANK);
    int64_t axis = n != 1 ? -1 : axes[0] < 0 ? axes[0] + rank : axes[0];
    return axis < rank ? (int)axis : -1;
}

static const char *refuse_per_axis(const Attrs *attrs, const int *ranks) {
    return ranks[0] < 0 || fixed_axis(attrs, ranks[0]) >= 0 ? NULL
                                                            : "axes names one axis of `data`";
}

static bool measure_per_axis(const OpCall *call, OutSpec *out) {
    (void)out;
    for (int i = 1; i < 4; i++)
        if (!qnn_check_param(call, i, 0, fixed_axis(call->attrs, call->in[0]->rank)))
            return false;
    return true;
}

static bool lower_per_axis(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int axis = fixed_axis(call->attrs, x->rank);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_cast(b, sc_load(b, step_in(&s, x), x->dtype), DT_I64), at[3];
    static const char *const asked[] = {NULL, "is_lshift_required", "is_rshift_required"};
    for (int i = 0; i < 3; i++)
        at[i] = !asked[i] || attrs_bool(call->attrs, asked[i])
                    ? sc_cast(b, load_param(&s, call->in[i + 1], axis), DT_I64)
                    : sc_i64(b, 0);
    multiply_fixed(b, v, at[0], at[1], at[2], ROUND_UPWARD);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec per_axis_attrs[] = {
    {"is_lshift_required", AT_BOOL, "False", "left_shift counts"},
    {"is_rshift_required", AT_BOOL, "False", "right_shift counts"},
    {"axes", AT_INTS, "[-1]", "the axis along which the other arguments lie"},
};
SIGNATURE_OP(fixed_point_multiply_per_axis, "FixedPointMultiplyPerAxis",
             "fixed_point_multiply_per_axis", "data, fp_multiplier, left_shift, right_shift", 4,
             (.text = "int32(...), int32~, int32~, int32~ -> =0(...)", .refuse = refuse_per_axis,
              .measure = measure_per_axis),
             .attrs = per_axis_attrs, .nattrs = 3, .dtypes = DT_BIT(DT_I32), .pattern = OP_ELEMWISE,
             .lower = lower_per_axis,
             .doc =
                 "fixed_point_multiply with a multiplier and two shifts, to the left and then to\n"
                 "the right, for each place along an axis.",
             .example = "fixed_point_multiply_per_axis([100, 100], [1073741824, 536870912], 0, 0)",
             .example_result = "[50, 25] : Tensor[(2,), int32]", .see_also = "fixed_point_multiply")

/* ---- qnn.quantize, qnn.dequantize, qnn.requantize -------------------------------------------- */

/* round(x / scale) + zero, as the dtype; x and scale are floats of one type. */
static Sc quantize(ScalarBuilder *b, Sc x, Sc scale, Sc zero, DType dtype) {
    DType t = sc_type(b, x);
    Sc q = sc_add(b, sc_round(b, sc_div(b, x, scale)), sc_cast(b, zero, t));
    q = sc_min(b, q, sc_float(b, t, (double)greatest_of(dtype)));
    q = sc_max(b, q, sc_float(b, t, (double)least_of(dtype)));
    return sc_cast(b, q, dtype);
}

static bool lower_quantize(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int axis = axis_of(call);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    Sc scale = load_param(&s, call->in[1], axis), zero = load_param(&s, call->in[2], axis);
    Sc v = sc_load(&s.body, step_in(&s, x), x->dtype);
    quantize(&s.body, v, sc_cast(&s.body, scale, sc_type(&s.body, v)), zero, out[0]->dtype);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec quantize_attrs[] = {
    {"out_dtype", AT_DTYPE, "int8", "of the result"},
    {"axis", AT_INT, "-1", "the axis along which vectors of scales and zero points lie"},
};
SIGNATURE_OP(qnn_quantize, "Quantize", "qnn.quantize", "data, output_scale, output_zero_point", 3,
             (.text = "float(...), " QNN_VECTOR " -> @out_dtype(...)", .refuse = refuse_dtype,
              .measure = measure_axis),
             .attrs = quantize_attrs, .nattrs = 2, .dtypes = DTS_FLOAT, .pattern = OP_ELEMWISE,
             .lower = lower_quantize,
             .doc = "round(data / output_scale) + output_zero_point, the nearest number that\n"
                    "out_dtype holds; halves go to the even one.",
             .example = "qnn.quantize([0.5, -1.0, 100.0], 0.5, 3)",
             .example_result = "[4, 1, 127] : Tensor[(3,), int8]",
             .see_also = "qnn.dequantize, qnn.requantize")

static bool lower_dequantize(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int axis = axis_of(call);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc scale = load_param(&s, call->in[1], axis), zero = load_param(&s, call->in[2], axis);
    Sc v = sc_cast(b, qnn_load(&s, step_in(&s, x), x->dtype, zero), DT_F32);
    step_result(&s, sc_convert(b, sc_mul(b, v, scale), out[0]->dtype));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec dequantize_attrs[] = {
    {"out_dtype", AT_DTYPE, "float32", "of the result"},
    {"axis", AT_INT, "-1", "the axis along which vectors of scales and zero points lie"},
};
SIGNATURE_OP(qnn_dequantize, "Dequantize", "qnn.dequantize", "data, input_scale, input_zero_point",
             3,
             (.text = "quant(...), " QNN_VECTOR " -> @out_dtype(...)", .refuse = refuse_float,
              .measure = measure_axis),
             .attrs = dequantize_attrs, .nattrs = 2, .dtypes = QNN_DTYPES, .pattern = OP_ELEMWISE,
             .lower = lower_dequantize,
             .doc = "input_scale * (data - input_zero_point): the floats that quantised numbers\n"
                    "stand for.",
             .example = "qnn.dequantize((int8) [4, 1, 127], 0.5, 3)",
             .example_result = "[0.5, -1.0, 62.0] : Tensor[(3,), float32]",
             .see_also = "qnn.quantize, qnn.requantize")

static bool lower_requantize(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    bool nearest = strcmp(attrs_text(call->attrs, "rounding"), "TONEAREST") == 0;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    QParams from = qnn_load_params(&s, call->in[1], call->in[2], axis_of(call));
    QParams to = qnn_load_params(&s, call->in[3], call->in[4], 0);
    Sc v = qnn_load(&s, step_in(&s, x), x->dtype, from.zero);
    v = qnn_rescale(&s.body, v, from.scale, to, nearest ? ROUND_TONEAREST : ROUND_UPWARD);
    qnn_clamp(&s.body, v, out[0]->dtype);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec requantize_attrs[] = {
    {"axis", AT_INT, "-1", "the axis along which vectors of scales and zero points lie"},
    {"rounding", AT_STRING, "\"None\"",
     "where halves go: UPWARD, or TONEAREST, away from 0; None: UPWARD"},
    {"out_dtype", AT_DTYPE, "int8", "of the result"},
};
SIGNATURE_OP(qnn_requantize, "Requantize", "qnn.requantize",
             "data, input_scale, input_zero_point, output_scale, output_zero_point", 5,
             (.text = "quant(...), " QNN_VECTOR ", " QNN_SCALAR " -> @out_dtype(...)",
              .refuse = refuse_dtype, .measure = measure_axis),
             .attrs = requantize_attrs, .nattrs = 3, .choices = "rounding: None UPWARD TONEAREST",
             .dtypes = QNN_DTYPES, .pattern = OP_ELEMWISE, .lower = lower_requantize,
             .doc = "Quantised numbers of one scale and zero point as those of another, by a\n"
                    "fixed-point multiplication.",
             .example = "qnn.requantize([10, 20, -30], 0.5, 0, 1.0, 3)",
             .example_result = "[8, 13, -12] : Tensor[(3,), int8]",
             .see_also = "qnn.quantize, fixed_point_multiply")

/* ---- one argument ----------------------------------------------------------------------------- */

/* Dequantised, `formula` of it, quantised again. */
static bool lower_unary(const OpCall *call, Tensor *const *out, Plan *plan,
                        Sc (*formula)(ScalarBuilder *, Sc)) {
    const Tensor *x = call->in[0];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc params[4];
    for (int i = 0; i < 4; i++)
        params[i] = load_param(&s, call->in[i + 1], 0);
    Sc v = sc_cast(b, qnn_load(&s, step_in(&s, x), x->dtype, params[1]), DT_F32);
    v = formula(b, sc_mul(b, v, params[0]));
    quantize(b, v, params[2], params[3], out[0]->dtype);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static Sc hardswish(ScalarBuilder *b, Sc x) {
    Sc shifted = sc_add(b, x, sc_float(b, DT_F32, 3)), zero = sc_float(b, DT_F32, 0);
    shifted = sc_max(b, sc_min(b, shifted, sc_float(b, DT_F32, 6)), zero);
    return sc_mul(b, x, sc_div(b, shifted, sc_float(b, DT_F32, 6)));
}

#define QNN_ARGS "data, scale, zero_point, output_scale, output_zero_point"
#define QNN_UNARY(fn, rel, formula, meaning, shown, value)                                         \
    static bool lower_##fn(const OpCall *call, Tensor *const *out, Plan *plan) {                   \
        return lower_unary(call, out, plan, formula);                                              \
    }                                                                                              \
    SIGNATURE_OP(qnn_##fn, rel, "qnn." #fn, QNN_ARGS, 5,                                           \
                 (.text = "quant(...), " QNN_SCALAR ", " QNN_SCALAR " -> =0(...)"),                \
                 .dtypes = QNN_DTYPES, .pattern = OP_ELEMWISE, .lower = lower_##fn,                \
                 .doc = meaning " of the numbers that data stands for, quantised.",                \
                 .example = "qnn." #fn "(" shown ")",                                              \
                 .example_result = value " : Tensor[(2,), int8]", .see_also = "qnn.dequantize")

static Sc absolute(ScalarBuilder *b, Sc x) { return sc_abs(b, x); }
static Sc root(ScalarBuilder *b, Sc x) { return sc_sqrt(b, x); }

QNN_UNARY(abs, "QnnAbs", absolute, "The absolute value", "(int8) [-4, 4], 0.5, 0, 1.0, 0", "[2, 2]")
QNN_UNARY(erf, "QnnErf", sc_erf, "The error function", "(int8) [0, 4], 0.5, 0, 0.01, 0", "[0, 100]")
QNN_UNARY(exp, "QnnExp", sc_exp, "The exponential", "(int8) [0, 4], 0.5, 0, 0.1, 0", "[10, 74]")
QNN_UNARY(hardswish, "QnnHardswish", hardswish, "x times (x + 3) / 6, that kept in [0, 1],",
          "(int8) [-4, 4], 0.5, 0, 0.1, 0", "[-3, 17]")
QNN_UNARY(log, "QnnLog", sc_log, "The logarithm", "(int8) [2, 4], 0.5, 0, 0.1, 0", "[0, 7]")
QNN_UNARY(rsqrt, "QnnRsqrt", sc_rsqrt, "1 over the square root", "(int8) [2, 8], 0.5, 0, 0.1, 0",
          "[10, 5]")
QNN_UNARY(sigmoid, "QnnSigmoid", sc_sigmoid, "The sigmoid", "(int8) [0, 4], 0.5, 0, 0.01, 0",
          "[50, 88]")
QNN_UNARY(sqrt, "QnnSqrt", root, "The square root", "(int8) [2, 8], 0.5, 0, 0.1, 0", "[10, 20]")
QNN_UNARY(tanh, "QnnTanh", sc_tanh, "The hyperbolic tangent", "(int8) [0, 4], 0.5, 0, 0.01, 0",
          "[0, 96]")

static bool lower_leaky_relu(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    double alpha = attrs_float(call->attrs, "alpha");
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    QParams from = qnn_load_params(&s, call->in[1], call->in[2], 0);
    QParams to = qnn_load_params(&s, call->in[3], call->in[4], 0);
    Sc v = qnn_load(&s, step_in(&s, x), x->dtype, from.zero);
    Sc q = qnn_rescale(b, v, from.scale, to, ROUND_UPWARD);
    Sc low = sc_add(b, multiply_number(b, q, alpha), multiply_number(b, to.zero, 1 - alpha));
    qnn_clamp(b, sc_select(b, sc_lt(b, v, i32(b, 0)), low, q), out[0]->dtype);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const char *refuse_alpha(const Attrs *attrs, const int *ranks) {
    (void)ranks;
    double alpha = attrs_float(attrs, "alpha");
    return alpha >= 0 && alpha <= 1 ? NULL : "alpha is from 0 to 1";
}

static const AttrSpec alpha_attrs[] = {{"alpha", AT_FLOAT, "0.25", "the slope below 0"}};
SIGNATURE_OP(qnn_leaky_relu, "QLeakyRelu", "qnn.leaky_relu", QNN_ARGS, 5,
             (.text = "quant(...), " QNN_SCALAR ", " QNN_SCALAR " -> =0(...)",
              .refuse = refuse_alpha),
             .attrs = alpha_attrs, .nattrs = 1, .dtypes = QNN_DTYPES, .pattern = OP_ELEMWISE,
             .lower = lower_leaky_relu,
             .doc = "Quantised numbers of another scale, those that stand for less than 0 times\n"
                    "alpha.",
             .example = "qnn.leaky_relu((int8) [-8, 8], 1.0, 0, 1.0, 0)",
             .example_result = "[-2, 8] : Tensor[(2,), int8]", .see_also = "nn.leaky_relu")

/* ---- qnn.softmax ------------------------------------------------------------------------------ */

/* Element x of a lane as 2^(8 - q) * (r / 2 + x0): the exponential without floats of Algorithm 1 in
 * https://arxiv.org/abs/2207.01405. x is the element minus the largest of its lane. */
static Sc integer_exp(ScalarBuilder *b, Sc x, Sc x0) {
    Sc p = sc_sub(b, sc_add(b, x, sc_shr(b, x, i32(b, 1))), sc_shr(b, x, i32(b, 4)));
    Sc q = sc_div(b, p, sc_neg(b, x0)), r = sc_add(b, p, sc_mul(b, q, x0));
    Sc linear = sc_add(b, sc_shr(b, r, i32(b, 1)), x0), places = sc_sub(b, i32(b, 8), q);
    Sc down = sc_max(b, sc_neg(b, places), i32(b, 0));
    return sc_shr(b, sc_shl(b, linear, sc_max(b, places, i32(b, 0))), down);
}

/* 1 / scale, rounded. */
static Sc unit_of(StepBuilder *s, const Tensor *scale) {
    ScalarBuilder *b = &s->body;
    Sc one = sc_float(b, DT_F32, 1);
    Sc unit = sc_cast(b, sc_round(b, sc_div(b, one, load_param(s, scale, 0))), DT_I32);
    return sc_max(b, unit, i32(b, 1));
}

static bool lower_softmax(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    uint32_t axes = 1u << axis_of(call);
    int64_t kept[TENSOR_MAX_RANK];
    memcpy(kept, x->shape, sizeof *kept * (size_t)x->rank);
    kept[axis_of(call)] = 1;
    Tensor *shifted = qnn_plan_shift(plan, x, call->in[2], 0);
    Tensor *largest = plan_temp(plan, DT_I32, x->rank, kept);
    Tensor *exps = plan_temp(plan, DT_I32, x->rank, x->shape);
    Tensor *sum = plan_temp(plan, DT_I32, x->rank, kept);
    plan_reduce(plan, largest, shifted, axes, COMBINE_MAX);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, shifted), DT_I32);
    v = sc_sub(b, v, sc_load(b, step_in(&s, largest), DT_I32));
    integer_exp(b, v, unit_of(&s, call->in[1]));
    step_out(&s, exps);
    step_end(&s);
    plan_reduce(plan, sum, exps, axes, COMBINE_SUM);
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    b = &s.body;
    v = sc_load(b, step_in(&s, exps), DT_I32);
    Sc share = sc_div(b, i32(b, 1 << 30), sc_load(b, step_in(&s, sum), DT_I32));
    QParams to = qnn_load_params(&s, call->in[3], call->in[4], 0);
    v = sc_shr(b, sc_mul(b, share, v), i32(b, 30 - 7));
    v = qnn_rescale(b, v, sc_float(b, DT_F64, 1.0 / 128), to, ROUND_UPWARD);
    qnn_clamp(b, v, out[0]->dtype);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const char *refuse_softmax(const Attrs *attrs, const int *ranks) {
    return refuse_axis(attrs, "axis", ranks[0]);
}

static const AttrSpec softmax_attrs[] = {{"axis", AT_INT, "-1", "along this axis"}};
SIGNATURE_OP(qnn_softmax, "QSoftmax", "qnn.softmax", QNN_ARGS, 5,
             (.text = "int8(...), " QNN_SCALAR ", " QNN_SCALAR " -> =0(...)",
              .refuse = refuse_softmax),
             .attrs = softmax_attrs, .nattrs = 1, .dtypes = DT_BIT(DT_I8), .pattern = OP_OPAQUE,
             .lower = lower_softmax,
             .doc = "Softmax of the numbers that data stands for, computed in integers and\n"
                    "quantised.",
             .example = "qnn.softmax((int8) [0, 0], 0.1, 0, 0.01, 0)",
             .example_result = "[49, 49] : Tensor[(2,), int8]", .see_also = "nn.softmax")
