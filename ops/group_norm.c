/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations over groups of channels (nn.group_norm; nn.instance_norm, where each channel is a group),
 * along axes (nn.l2_normalize), among neighbouring channels (nn.lrn), and nn.prelu. Means over groups
 * (group_mean) and sums over neighbours (window_sum) are operators, which are linear and their own
 * transposes: derivatives are written with them. */
#include <string.h>

#include "base/mem.h"
#include "ops/norm.h"

/* ---- groups of channels ----------------------------------------------------------------------- */

/* data with its axis of channels in two: n, …, group, channel in it, …. The parallel axes of a reduction over
 * groups are those of `kept`, which has 1 for all but n and the group. */
typedef struct Groups {
    int rank, axis; /* of data; the group is at axis, the channel behind it */
    int64_t split[TENSOR_MAX_RANK + 1], kept[TENSOR_MAX_RANK + 1];
    int64_t count; /* elements of a group */
} Groups;

static bool groups_init(const OpCall *call, Groups *g) {
    const Tensor *x = call->in[0];
    const AttrValue *given = attrs_find(call->attrs, "num_groups");
    if (!shape_check_dtype(call, 0, DTS_FLOAT) || !shape_check_min_rank(call, 0, 2) ||
        !shape_one_axis(call, "axis", x->rank, &g->axis))
        return false;
    int64_t channels = x->shape[g->axis], n = given && given->i ? given->i : channels;
    if (g->axis == 0 || x->rank >= TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0316, g->axis ? "`data` has too many axes" : "axis 0 is the batch");
        return false;
    }
    if (n < 0 || (n ? channels % n : channels)) {
        shape_error(call, DIAG_R0316, "num_groups=%lld does not divide the %lld channels",
                    (long long)n, (long long)channels);
        return false;
    }
    g->rank = x->rank;
    g->count = 1;
    for (int i = 0, k = 0; i < x->rank; i++, k++) {
        g->split[k] = x->shape[i];
        g->kept[k] = i ? 1 : x->shape[i];
        if (i == g->axis) {
            g->split[k] = g->kept[k] = n;
            g->split[++k] = n ? channels / n : 0;
            g->kept[k] = 1;
        }
        if (i)
            g->count = size_multiply(g->count, g->split[k]);
    }
    return true;
}

/* The strides of a tensor with data's sizes over the split axes. */
static void split_strides(const Groups *g, const Tensor *t, int64_t *strides) {
    for (int i = 0, k = 0; i < g->rank; i++, k++) {
        strides[k] = t->strides[i];
        if (i != g->axis)
            continue;
        strides[k] = t->strides[i] * g->split[k + 1];
        strides[++k] = t->strides[i];
    }
}

static int split_in(StepBuilder *s, const Groups *g, const Tensor *t) {
    int64_t strides[TENSOR_MAX_RANK + 1];
    split_strides(g, t, strides);
    return step_in_strided(s, t, strides, 0);
}

static int split_vector_in(StepBuilder *s, const Groups *g, const Tensor *v) {
    int64_t strides[TENSOR_MAX_RANK + 1] = {0};
    strides[g->axis] = v->strides[0] * g->split[g->axis + 1];
    strides[g->axis + 1] = v->strides[0];
    return step_in_strided(s, v, strides, 0);
}

static void split_out(StepBuilder *s, const Groups *g, Tensor *out) {
    int64_t strides[TENSOR_MAX_RANK + 1];
    split_strides(g, out, strides);
    step_out_strided(s, out, strides, 0);
}

/* A reduction of x over groups: the reduced axes are all but n and the group. */
static int reduced_in(StepBuilder *s, const Groups *g, const Tensor *x) {
    int64_t own[TENSOR_MAX_RANK + 1], strides[RECIPE_MAX_AXES + TENSOR_MAX_RANK] = {0};
    split_strides(g, x, own);
    for (int k = 0, n = g->rank + 1; k <= g->rank; k++) {
        if (k == 0 || k == g->axis)
            strides[k] = own[k];
        else
            strides[n++] = own[k];
    }
    return step_in_strided(s, x, strides, 0);
}

static void begin_groups(StepBuilder *s, Plan *plan, const Groups *g, DType t) {
    int64_t reduced[TENSOR_MAX_RANK];
    int n = 0;
    for (int k = 1; k <= g->rank; k++)
        if (k != g->axis)
            reduced[n++] = g->split[k];
    step_begin(s, plan, RECIPE_REDUCE, g->rank + 1, g->kept);
    step_reduce_over(s, n, reduced);
    step_combine(s, COMBINE_SUM, t);
}

static void end_mean(StepBuilder *s, const Groups *g, DType t, Tensor *out) {
    Sc acc = sc_acc(&s->epilogue, t);
    sc_div(&s->epilogue, acc, step_fparam(s, &s->epilogue, t, (double)g->count));
    step_out(s, out);
    step_end(s);
}

static Tensor *plan_mean(Plan *plan, const Groups *g, const Tensor *x) {
    DType t = sc_type_of(x->dtype);
    Tensor *mean = plan_temp(plan, t, g->rank + 1, g->kept);
    StepBuilder s;
    begin_groups(&s, plan, g, t);
    sc_load(&s.body, reduced_in(&s, g, x), x->dtype);
    end_mean(&s, g, t, mean);
    return mean;
}

static int shape_group_mean(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    Groups g;
    if (!groups_init(call, &g) || !norm_check_vectors(call, g.axis))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_groups(Solver *s, Relation *r) {
    uint32_t rank, axis;
    Type **dims;
    if (rel_rank_in(r->args[0], &rank, &dims) && !rel_attrs_open(r)) {
        if (rank < 2) {
            rel_error(s, r, DIAG_R0313, "`%s`: `data` has %u axes, at least 2 are needed",
                      r->op->name, rank);
            return REL_FAIL;
        }
        if (!rel_one_axis(s, r, "axis", rank, &axis))
            return REL_FAIL;
        if (axis == 0) {
            rel_error(s, r, DIAG_R0316, "`%s`: axis 0 is the batch", r->op->name);
            return REL_FAIL;
        }
    }
    return norm_relate(s, r);
}

static bool lower_group_mean(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    Groups g;
    if (!groups_init(call, &g))
        return false;
    Tensor *mean = plan_mean(plan, &g, x);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, g.rank + 1, g.split);
    sc_load(&s.body, step_in(&s, mean), mean->dtype);
    split_out(&s, &g, out[0]);
    step_end(&s);
    return true;
}

static bool lower_group_norm(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *gamma = call->in[1], *beta = call->in[2];
    DType t = sc_type_of(x->dtype);
    Groups g;
    if (!groups_init(call, &g))
        return false;
    Tensor *mean = plan_mean(plan, &g, x);
    Tensor *scale = plan_temp(plan, t, g.rank + 1, g.kept);
    StepBuilder s;
    begin_groups(&s, plan, &g, t);
    ScalarBuilder *b = &s.body, *e = &s.epilogue;
    int64_t strides[RECIPE_MAX_AXES + TENSOR_MAX_RANK] = {0};
    memcpy(strides, mean->strides, sizeof *strides * (size_t)mean->rank);
    Sc v = sc_load(b, reduced_in(&s, &g, x), x->dtype);
    Sc d = sc_sub(b, v, sc_load(b, step_in_strided(&s, mean, strides, 0), t));
    sc_mul(b, d, d);
    Sc acc = sc_acc(e, t), var = sc_div(e, acc, step_fparam(&s, e, t, (double)g.count));
    sc_rsqrt(e, sc_add(e, var, step_fparam(&s, e, t, attrs_float(call->attrs, "epsilon"))));
    step_out(&s, scale);
    step_end(&s);

    step_begin(&s, plan, RECIPE_MAP, g.rank + 1, g.split);
    b = &s.body;
    v = sc_load(b, split_in(&s, &g, x), x->dtype);
    d = sc_sub(b, v, sc_load(b, step_in(&s, mean), t));
    Sc y = sc_mul(b, d, sc_load(b, step_in(&s, scale), t));
    if (attrs_bool(call->attrs, "scale"))
        y = sc_mul(b, y, sc_load(b, split_vector_in(&s, &g, gamma), gamma->dtype));
    if (attrs_bool(call->attrs, "center"))
        sc_add(b, y, sc_load(b, split_vector_in(&s, &g, beta), beta->dtype));
    split_out(&s, &g, out[0]);
    step_end(&s);
    return true;
}

#define GROUP_COUNT                                                                                \
    { "num_groups", AT_INT, "0", "channels are normalised in so many groups; 0: each alone" }
#define CHANNEL_AXIS                                                                               \
    { "axis", AT_INT, "1", "the axis of the channels" }
static const AttrSpec group_attrs[] = {
    GROUP_COUNT,
    CHANNEL_AXIS,
    {"epsilon", AT_FLOAT, "1e-5", "added to the variance"},
    {"center", AT_BOOL, "True", "add beta"},
    {"scale", AT_BOOL, "True", "multiply by gamma"},
};
static const RelDef rel_group_norm = {"GroupNorm", relate_groups, 4, false};
const Op op_nn_group_norm = {
    .name = "nn.group_norm",
    .args = "data, gamma, beta",
    .nargs = 3,
    .write_sizes = norm_write_sizes,
    .attrs = group_attrs,
    .nattrs = 5,
    .relation = &rel_group_norm,
    .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE,
    .shape = shape_group_mean,
    .refuses_sizes = true,
    .lower = lower_group_norm,
    .doc =
        "(data - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance of each\n"
        "group of channels of each element of the batch (axis 0); gamma and beta lie along axis.",
    .example = "nn.group_norm([[1.0, 3.0, 5.0, 9.0]], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], "
               "num_groups=2, epsilon=0.0)",
    .example_result = "[[-1.0,  1.0, -1.0,  2.0]] : Tensor[(1, 4), float32]",
    .see_also = "nn.instance_norm, nn.layer_norm",
};
static const RelDef rel_instance_norm = {"InstanceNorm", relate_groups, 4, false};
const Op op_nn_instance_norm = {
    .name = "nn.instance_norm",
    .args = "data, gamma, beta",
    .nargs = 3,
    .write_sizes = norm_write_sizes,
    .attrs = group_attrs + 1,
    .nattrs = 4,
    .relation = &rel_instance_norm,
    .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE,
    .shape = shape_group_mean,
    .refuses_sizes = true,
    .lower = lower_group_norm,
    .doc = "nn.group_norm with each channel alone in its group.",
    .example = "nn.instance_norm([[[1.0, 3.0]]], [2.0], [1.0], epsilon=0.0)",
    .example_result = "[[[-1.0,  3.0]]] : Tensor[(1, 1, 2), float32]",
    .see_also = "nn.group_norm, nn.batch_norm",
};
static const AttrSpec group_mean_attrs[] = {GROUP_COUNT, CHANNEL_AXIS};
static const RelDef rel_group_mean = {"GroupMean", relate_groups, 2, false};
const Op op_group_mean = {
    .name = "group_mean",
    .args = "data",
    .nargs = 1,
    .attrs = group_mean_attrs,
    .nattrs = 2,
    .relation = &rel_group_mean,
    .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE,
    .shape = shape_group_mean,
    .refuses_sizes = true,
    .lower = lower_group_mean,
    .doc =
        "Each element replaced by the mean of its group of channels in its element of the batch:\n"
        "what nn.group_norm subtracts.",
    .example = "group_mean([[1.0, 3.0, 5.0, 9.0]], num_groups=2)",
    .example_result = "[[2.0, 2.0, 7.0, 7.0]] : Tensor[(1, 4), float32]",
    .see_also = "nn.group_norm",
};

/* ---- nn.l2_normalize -------------------------------------------------------------------------- */

static int shape_l2_normalize(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    uint32_t axes;
    if (!shape_check_dtype(call, 0, DTS_FLOAT) ||
        !shape_axis_set(call, "axis", false, x->rank, &axes))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_l2_normalize(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_FLOAT}, &status))
        return status;
    uint32_t rank, axes;
    Type **dims;
    if (rel_result_type(s, r, r->args[0]) == REL_FAIL)
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    return rel_axis_set(s, r, "axis", false, rank, &axes) ? REL_DONE : REL_FAIL;
}

static bool lower_l2_normalize(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    DType t = sc_type_of(x->dtype);
    uint32_t axes = lower_axis_set(call, "axis", false, x->rank);
    int64_t shape[TENSOR_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        shape[i] = axes >> i & 1 ? 1 : x->shape[i];
    Tensor *scale = plan_temp(plan, t, x->rank, shape);
    StepBuilder s;
    step_begin_reduce(&s, plan, RECIPE_REDUCE, x, axes);
    step_combine(&s, COMBINE_SUM, t);
    Sc v = sc_load(&s.body, step_in_reduced(&s, x, axes), x->dtype);
    sc_mul(&s.body, v, v);
    ScalarBuilder *e = &s.epilogue;
    Sc least = step_fparam(&s, e, t, attrs_float(call->attrs, "eps"));
    sc_rsqrt(e, sc_max(e, sc_acc(e, t), least));
    step_out_reduced(&s, scale, x, axes);
    step_end(&s);
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    v = sc_load(&s.body, step_in(&s, x), x->dtype);
    sc_mul(&s.body, v, sc_load(&s.body, step_in(&s, scale), t));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec l2_attrs[] = {
    {"eps", AT_FLOAT, NULL, "the least sum of squares that is divided by"},
    {"axis", AT_INTS_OPT, "None", "the axes along which the sum of squares becomes 1; None: all"},
};
static const RelDef rel_l2_normalize = {"L2Normalize", relate_l2_normalize, 2, false};
const Op op_nn_l2_normalize = {
    .name = "nn.l2_normalize",
    .args = "data",
    .nargs = 1,
    .attrs = l2_attrs,
    .nattrs = 2,
    .relation = &rel_l2_normalize,
    .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE,
    .shape = shape_l2_normalize,
    .lower = lower_l2_normalize,
    .doc = "data / sqrt(max(sum(data ** 2), eps)), with the sum over the axes.",
    .example = "nn.l2_normalize([3.0, 4.0], eps=1e-6)",
    .example_result = "[0.6, 0.8] : Tensor[(2,), float32]",
    .see_also = "nn.layer_norm",
};

/* ---- nn.lrn and the sum over neighbours ------------------------------------------------------- */

static int shape_neighbours(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis;
    int64_t size = attrs_int(call->attrs, "size");
    if (!shape_check_dtype(call, 0, DTS_FLOAT) || !shape_check_min_rank(call, 0, 1) ||
        !shape_one_axis(call, "axis", x->rank, &axis))
        return -1;
    if (size < 1 || size % 2 == 0) {
        shape_error(call, DIAG_R0316, "size is an odd number from 1");
        return -1;
    }
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_neighbours(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_FLOAT}, &status))
        return status;
    int64_t size = attrs_int(r->attrs, "size");
    if (size < 1 || size % 2 == 0) {
        rel_error(s, r, DIAG_R0316, "`%s`: size is an odd number from 1", r->op->name);
        return REL_FAIL;
    }
    return norm_relate(s, r);
}

/* A reduction over the neighbours of each element along `axis`: the value of x, 0 beyond the ends. */
static Sc begin_neighbours(StepBuilder *s, Plan *plan, const OpCall *call, const Tensor *x,
                           DType t) {
    int axis = lower_axis(call, "axis", x->rank);
    int64_t size = attrs_int(call->attrs, "size"), half = size / 2, stride = x->strides[axis];
    int64_t strides[RECIPE_MAX_AXES + 1];
    memcpy(strides, x->strides, sizeof *strides * (size_t)x->rank);
    strides[x->rank] = stride;
    step_begin(s, plan, RECIPE_REDUCE, x->rank, x->shape);
    step_reduce_over(s, 1, &size);
    step_combine(s, COMBINE_SUM, t);
    ScalarBuilder *b = &s->body;
    int in = step_in_strided(s, x, strides, -half * stride);
    Sc at = sc_add(b, sc_iota(b, axis), sc_iota(b, x->rank));
    at = sc_sub(b, at, step_iparam(s, b, DT_I64, half));
    Sc inside = sc_in_range(b, at, step_iparam(s, b, DT_I64, x->shape[axis]));
    return sc_load_if(b, in, x->dtype, sc_i64(b, 0), inside, 0);
}

static bool lower_window_sum(const OpCall *call, Tensor *const *out, Plan *plan) {
    StepBuilder s;
    begin_neighbours(&s, plan, call, call->in[0], sc_type_of(out[0]->dtype));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static bool lower_lrn(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    DType t = sc_type_of(x->dtype);
    double n = (double)attrs_int(call->attrs, "size");
    Tensor *sum = plan_temp(plan, t, x->rank, x->shape);
    StepBuilder s;
    Sc v = begin_neighbours(&s, plan, call, x, t);
    sc_mul(&s.body, v, v);
    step_out(&s, sum);
    step_end(&s);
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    v = sc_load(b, step_in(&s, x), x->dtype);
    Sc f = step_fparam(&s, b, t, attrs_float(call->attrs, "alpha") / n);
    Sc base = sc_fma(b, sc_load(b, step_in(&s, sum), t), f,
                     step_fparam(&s, b, t, attrs_float(call->attrs, "bias")));
    sc_div(b, v, sc_pow(b, base, step_fparam(&s, b, t, attrs_float(call->attrs, "beta"))));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec lrn_attrs[] = {
    {"size", AT_INT, "5", "how many neighbours count, an odd number"},
    {"axis", AT_INT, "1", "the axis along which they are neighbours"},
    {"bias", AT_FLOAT, "2.0", "added to the sum"},
    {"alpha", AT_FLOAT, "0.0001", "the sum is multiplied by alpha / size"},
    {"beta", AT_FLOAT, "0.75", "the exponent"},
};
static const RelDef rel_lrn = {"LRN", relate_neighbours, 2, false};
const Op op_nn_lrn = {
    .name = "nn.lrn",
    .args = "data",
    .nargs = 1,
    .attrs = lrn_attrs,
    .nattrs = 5,
    .relation = &rel_lrn,
    .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE,
    .shape = shape_neighbours,
    .lower = lower_lrn,
    .doc = "Local response normalisation: data / (bias + alpha / size * sum) ** beta, with the sum "
           "of\n"
           "the squares of `size` neighbours along an axis.",
    .example = "nn.lrn([[1.0, 2.0]], size=3, bias=1.0, alpha=3.0, beta=1.0)",
    .example_result = "[[0.16666667, 0.33333334]] : Tensor[(1, 2), float32]",
    .see_also = "nn.l2_normalize",
};
static const RelDef rel_window_sum = {"WindowSum", relate_neighbours, 2, false};
const Op op_window_sum = {
    .name = "window_sum",
    .args = "data",
    .nargs = 1,
    .attrs = lrn_attrs,
    .nattrs = 2,
    .relation = &rel_window_sum,
    .dtypes = DTS_FLOAT,
    .pattern = OP_REDUCE,
    .shape = shape_neighbours,
    .lower = lower_window_sum,
    .doc =
        "The sum of `size` neighbours of each element along an axis: what nn.lrn does to squares.",
    .example = "window_sum([[1.0, 2.0, 4.0]], size=3)",
    .example_result = "[[3.0, 7.0, 6.0]] : Tensor[(1, 3), float32]",
    .see_also = "nn.lrn",
};

/* ---- nn.prelu --------------------------------------------------------------------------------- */

static int shape_prelu(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis;
    if (!shape_check_dtype(call, 0, DTS_FLOAT) || !shape_one_axis(call, "axis", x->rank, &axis) ||
        !norm_check_vectors(call, axis))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static bool lower_prelu(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *alpha = call->in[1];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, x), x->dtype);
    int slope = norm_vector_in(&s, alpha, lower_axis(call, "axis", x->rank));
    Sc low = sc_mul(b, v, sc_load(b, slope, alpha->dtype));
    sc_select(b, sc_gt(b, v, sc_float(b, sc_type(b, v), 0)), v, low);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec prelu_attrs[] = {CHANNEL_AXIS};
static const RelDef rel_prelu = {"PRelu", norm_relate, 3, false};
const Op op_nn_prelu = {
    .name = "nn.prelu",
    .args = "data, alpha",
    .nargs = 2,
    .write_sizes = norm_write_sizes,
    .attrs = prelu_attrs,
    .nattrs = 1,
    .relation = &rel_prelu,
    .dtypes = DTS_FLOAT,
    .pattern = OP_BROADCAST,
    .shape = shape_prelu,
    .lower = lower_prelu,
    .doc = "data where it is above 0, else data times the slope alpha of its channel.",
    .example = "nn.prelu([[-2.0, 3.0]], [0.5, 0.5])",
    .example_result = "[[-1.0,  3.0]] : Tensor[(1, 2), float32]",
    .see_also = "nn.leaky_relu",
};
