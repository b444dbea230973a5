/* SPDX-License-Identifier: Apache-2.0 */
/* Layers made of a few steps: softmax and its logarithm, normalisations, bias, dropout, and the
 * cross entropies. Intermediate values are float32 for halves and rounded once at the end. */
#include <string.h>

#include "base/mem.h"
#include "ops/norm.h"

/* ---- reductions over one axis, kept with size 1 -----------------------------------------------
 */

/* A reduction over `axes` of tensors that all have the result's rank: its parallel axes are all
 * axes, those reduced with extent 1; strides of an operand over them, then over the reduced ones.
 */
typedef struct Kept {
    int rank, nreduce;
    uint32_t axes;
    int64_t shape[TENSOR_MAX_RANK], reduced[TENSOR_MAX_RANK];
    int64_t count; /* elements reduced into one */
} Kept;

static void kept_init(Kept *k, const Tensor *x, uint32_t axes) {
    *k = (Kept){.rank = x->rank, .axes = axes, .count = 1};
    for (int i = 0; i < x->rank; i++) {
        bool reduced = axes >> i & 1;
        k->shape[i] = reduced ? 1 : x->shape[i];
        if (!reduced)
            continue;
        k->reduced[k->nreduce++] = x->shape[i];
        k->count = size_multiply(k->count, x->shape[i]);
    }
}

static void kept_begin(StepBuilder *s, Plan *plan, const Kept *k, Combine combine, DType acc) {
    step_begin(s, plan, RECIPE_REDUCE, k->rank, k->shape);
    step_reduce_over(s, k->nreduce, k->reduced);
    step_combine(s, combine, acc);
}

/* x has all axes, or 1 where they are reduced. */
static int kept_in(StepBuilder *s, const Kept *k, const Tensor *x) {
    int64_t strides[RECIPE_MAX_AXES];
    for (int i = 0, n = k->rank; i < k->rank; i++) {
        bool reduced = k->axes >> i & 1;
        int64_t stride = x->shape[i] == 1 ? 0 : x->strides[i];
        strides[i] = reduced ? 0 : stride;
        if (reduced)
            strides[n++] = stride;
    }
    return step_in_strided(s, x, strides, 0);
}

static Tensor *kept_temp(Plan *plan, const Kept *k, DType t) {
    return plan_temp(plan, t, k->rank, k->shape);
}

/* A vector that lies along `axis` of a domain. */
int norm_vector_in(StepBuilder *s, const Tensor *v, int axis) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    strides[axis] = v->strides[0];
    return step_in_strided(s, v, strides, 0);
}

static int shape_with_axis(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis;
    if (!shape_check_dtype(call, 0, call->op->dtypes) || !shape_check_min_rank(call, 0, 1) ||
        !shape_one_axis(call, "axis", x->rank, &axis))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

/* (data, vectors along axis…): the vectors have one element for each place of the axis. */
bool norm_check_vectors(const OpCall *call, int axis) {
    for (int i = 1; i < (int)call->nin; i++)
        if (!shape_check_same_dtype(call, 0, i) || !shape_check_rank(call, i, 1) ||
            !shape_check_dims(call, 0, axis, i, 0))
            return false;
    return true;
}

/* data has axes n, c, h, w, … with c at `axis`; the other arguments have c elements. */
void norm_write_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    static const char *const others[] = {"n", "h", "w", "d"};
    int rank = nin && ranks[0] > 0 ? ranks[0] : 2, at = (int)attrs_int(attrs, "axis");
    at = at < 0 ? at + rank : at;
    for (int i = 0, k = 0; i < rank; i++) {
        const char *name = i == at ? "c" : k < 4 ? others[k] : fmt_text("d%d", k - 2);
        k += i != at;
        str_printf(out, "%s%s", i ? ", " : "(", name);
    }
    for (uint32_t i = 1; i < nin; i++)
        str_add(out, "), (c");
    str_add(out, ")");
}

/* The result has data's type; other arguments are vectors along `axis`, which data determines. */
RelStatus norm_relate(Solver *s, Relation *r) {
    RelStatus status;
    DTypeSet set = r->op->dtypes;
    if (rel_known(s, r, (DTypeSet[]){set, set, set, set, set}, &status))
        return status;
    uint32_t rank, axis;
    Type **dims, *dtype = rel_dtype_in(r->args[0]);
    if (!r->op->tuple && rel_result_type(s, r, r->args[0]) == REL_FAIL)
        return REL_FAIL;
    bool ranked = rel_rank_in(r->args[0], &rank, &dims);
    if (ranked && !rel_one_axis(s, r, "axis", rank, &axis))
        return REL_FAIL;
    Type *n = ranked ? dims[axis] : solver_var(s, KIND_DIM);
    for (uint32_t i = 1; i + 1 < r->nargs; i++) {
        Type **own;
        uint32_t nown;
        if (rel_rank_in(r->args[i], &nown, &own) && nown == 1) {
            if (!rel_unify(s, r, (int)i, type_tensor(rel_shape_in(r->args[i]), dtype)))
                return REL_FAIL;
            if (!rel_unify_dim(s, r, n, own[0], (int)i, 0))
                return REL_FAIL;
        } else if (!rel_unify(s, r, (int)i, type_tensor(type_shape(&n, 1), dtype))) {
            return REL_FAIL;
        }
    }
    if (r->op->tuple) {
        Type *parts[3] = {r->args[0], r->args[3], r->args[4]};
        if (rel_result_type(s, r, type_tuple(parts, 3)) == REL_FAIL)
            return REL_FAIL;
    }
    return ranked ? REL_DONE : REL_WAIT;
}

/* ---- nn.softmax, nn.log_softmax ---------------------------------------------------------------
 */

enum { PLAIN, LOGARITHM };

static bool lower_softmax(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    bool logarithm = call->op->variant == LOGARITHM;
    DType t = sc_type_of(x->dtype);
    Kept k;
    kept_init(&k, x, 1u << lower_axis(call, "axis", x->rank));
    Tensor *top = kept_temp(plan, &k, t), *sum = kept_temp(plan, &k, t), *e = NULL;
    StepBuilder s;
    kept_begin(&s, plan, &k, COMBINE_MAX, t);
    sc_load(&s.body, kept_in(&s, &k, x), x->dtype);
    step_out(&s, top);
    step_end(&s);
    if (!logarithm) {
        e = plan_temp(plan, t, x->rank, x->shape);
        step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
        Sc v = sc_load(&s.body, step_in(&s, x), x->dtype),
           m = sc_load(&s.body, step_in(&s, top), t);
        sc_exp(&s.body, sc_sub(&s.body, v, m));
        step_out(&s, e);
        step_end(&s);
    }
    kept_begin(&s, plan, &k, COMBINE_SUM, t);
    if (logarithm) {
        Sc v = sc_load(&s.body, kept_in(&s, &k, x), x->dtype);
        Sc m = sc_load(&s.body, kept_in(&s, &k, top), t);
        sc_fast_exp(&s.body, sc_sub(&s.body, v, m));
        sc_log(&s.epilogue, sc_acc(&s.epilogue, t));
    } else {
        sc_load(&s.body, kept_in(&s, &k, e), t);
    }
    step_out(&s, sum);
    step_end(&s);
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    if (logarithm) {
        Sc v = sc_load(b, step_in(&s, x), x->dtype), m = sc_load(b, step_in(&s, top), t);
        Sc d = sc_sub(b, v, m);
        sc_sub(b, d, sc_load(b, step_in(&s, sum), t));
    } else {
        Sc v = sc_load(b, step_in(&s, e), t);
        sc_div(b, v, sc_load(b, step_in(&s, sum), t));
    }
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec last_axis[] = {{"axis", AT_INT, "-1", "the axis along which the sum is 1"}};
static const RelDef rel_softmax = {"Softmax", norm_relate, 2, false};
const Op op_nn_softmax = {
    .name = "nn.softmax",
    .args = "data",
    .nargs = 1,
    .attrs = last_axis,
    .nattrs = 1,
    .relation = &rel_softmax,
    .dtypes = DTS_FLOAT,
    .pattern = OP_ROWS,
    .variant = PLAIN,
    .shape = shape_with_axis,
    .lower = lower_softmax,
    .doc = "exp(x) / sum(exp(x)) along an axis, from the differences to the largest.",
    .example = "nn.softmax([0.0, 0.0])",
    .example_result = "[0.5, 0.5] : Tensor[(2,), float32]",
    .see_also = "nn.log_softmax, nn.cross_entropy",
};
static const RelDef rel_log_softmax = {"LogSoftmax", norm_relate, 2, false};
const Op op_nn_log_softmax = {
    .name = "nn.log_softmax",
    .args = "data",
    .nargs = 1,
    .attrs = last_axis,
    .nattrs = 1,
    .relation = &rel_log_softmax,
    .dtypes = DTS_FLOAT,
    .pattern = OP_ROWS,
    .variant = LOGARITHM,
    .shape = shape_with_axis,
    .lower = lower_softmax,
    .doc = "The logarithm of nn.softmax, exact also where that is 0: x - log(sum(exp(x))).",
    .example = "nn.log_softmax([0.0])",
    .example_result = "[0.0] : Tensor[(1,), float32]",
    .see_also = "nn.softmax, nn.cross_entropy_with_logits",
};

const Op op_nn_fast_softmax = {
    .name = "nn.fast_softmax",
    .args = "data",
    .nargs = 1,
    .attrs = last_axis,
    .nattrs = 1,
    .relation = &rel_softmax,
    .dtypes = DTS_FLOAT,
    .pattern = OP_ROWS,
    .variant = PLAIN,
    .shape = shape_with_axis,
    .lower = lower_softmax,
    .doc = "The same as nn.softmax: TVM's name for one with an approximation of exp.",
    .example = "nn.fast_softmax([0.0, 0.0])",
    .example_result = "[0.5, 0.5] : Tensor[(2,), float32]",
    .see_also = "nn.softmax",
};

/* ---- nn.bias_add ----------------------------------------------------------------------------- */

static int shape_bias_add(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis;
    if (!shape_one_axis(call, "axis", x->rank, &axis) || !norm_check_vectors(call, axis))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static bool lower_bias_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *v = call->in[1];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc a = sc_load(b, step_in(&s, x), x->dtype);
    sc_add(b, a, sc_load(b, norm_vector_in(&s, v, lower_axis(call, "axis", x->rank)), v->dtype));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_bias_add = {"BiasAdd", norm_relate, 3, false};
static const AttrSpec bias_axis[] = {{"axis", AT_INT, "1", "the axis along which bias lies"}};
const Op op_nn_bias_add = {
    .name = "nn.bias_add",
    .args = "data, bias",
    .nargs = 2,
    .write_sizes = norm_write_sizes,
    .attrs = bias_axis,
    .nattrs = 1,
    .relation = &rel_bias_add,
    .dtypes = DTS_NUM,
    .pattern = OP_BROADCAST,
    .shape = shape_bias_add,
    .lower = lower_bias_add,
    .doc = "data plus a vector along an axis.",
    .example = "nn.bias_add([[1, 2], [3, 4]], [10, 20])",
    .example_result = "[[11, 22],\n [13, 24]] : Tensor[(2, 2), int32]",
    .see_also = "nn.dense, add",
};

/* ---- nn.layer_norm --------------------------------------------------------------------------- */

static int shape_layer_norm(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis;
    if (!shape_check_min_rank(call, 0, 1) || !shape_one_axis(call, "axis", x->rank, &axis) ||
        !norm_check_vectors(call, axis))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static bool lower_layer_norm(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *gamma = call->in[1], *beta = call->in[2];
    int axis = lower_axis(call, "axis", x->rank);
    DType t = sc_type_of(x->dtype);
    Kept k;
    kept_init(&k, x, 1u << axis);
    Tensor *mean = kept_temp(plan, &k, t), *scale = kept_temp(plan, &k, t);
    StepBuilder s;
    kept_begin(&s, plan, &k, COMBINE_SUM, t);
    sc_load(&s.body, kept_in(&s, &k, x), x->dtype);
    Sc acc = sc_acc(&s.epilogue, t);
    sc_div(&s.epilogue, acc, step_fparam(&s, &s.epilogue, t, (double)k.count));
    step_out(&s, mean);
    step_end(&s);

    kept_begin(&s, plan, &k, COMBINE_SUM, t);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, kept_in(&s, &k, x), x->dtype), m = sc_load(b, kept_in(&s, &k, mean), t);
    Sc d = sc_sub(b, v, m);
    sc_mul(b, d, d);
    acc = sc_acc(&s.epilogue, t);
    Sc var = sc_div(&s.epilogue, acc, step_fparam(&s, &s.epilogue, t, (double)k.count));
    Sc eps = step_fparam(&s, &s.epilogue, t, attrs_float(call->attrs, "epsilon"));
    sc_rsqrt(&s.epilogue, sc_add(&s.epilogue, var, eps));
    step_out(&s, scale);
    step_end(&s);

    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    b = &s.body;
    v = sc_load(b, step_in(&s, x), x->dtype);
    d = sc_sub(b, v, sc_load(b, step_in(&s, mean), t));
    Sc y = sc_mul(b, d, sc_load(b, step_in(&s, scale), t));
    if (attrs_bool(call->attrs, "scale"))
        y = sc_mul(b, y, sc_load(b, norm_vector_in(&s, gamma, axis), gamma->dtype));
    if (attrs_bool(call->attrs, "center"))
        sc_add(b, y, sc_load(b, norm_vector_in(&s, beta, axis), beta->dtype));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_layer_norm = {"LayerNorm", norm_relate, 4, false};
static const AttrSpec layer_norm_attrs[] = {
    {"axis", AT_INT, "-1", "the axis that is normalised"},
    {"epsilon", AT_FLOAT, "1e-5", "added to the variance"},
    {"center", AT_BOOL, "True", "add beta"},
    {"scale", AT_BOOL, "True", "multiply by gamma"},
};
const Op op_nn_layer_norm = {
    .name = "nn.layer_norm",
    .args = "data, gamma, beta",
    .nargs = 3,
    .write_sizes = norm_write_sizes,
    .attrs = layer_norm_attrs,
    .nattrs = 4,
    .relation = &rel_layer_norm,
    .dtypes = DTS_FLOAT,
    .pattern = OP_ROWS,
    .shape = shape_layer_norm,
    .lower = lower_layer_norm,
    .doc = "(data - mean) / sqrt(variance + epsilon) * gamma + beta, along an axis, on which gamma "
           "and\n"
           "beta lie.",
    .example = "nn.layer_norm([1.0, 3.0], [1.0, 1.0], [0.0, 0.0], epsilon=0.0)",
    .example_result = "[-1.0, 1.0] : Tensor[(2,), float32]",
    .see_also = "nn.batch_norm",
};

/* ---- nn.batch_norm --------------------------------------------------------------------------- */

static int shape_batch_norm(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis;
    if (!shape_one_axis(call, "axis", x->rank, &axis) || !norm_check_vectors(call, axis))
        return -1;
    for (int i = 0; i < 3; i++) {
        const Tensor *t = call->in[i ? i + 2 : 0];
        if (!shape_set(call, &out[i], t->dtype, t->rank, t->shape))
            return -1;
    }
    return 3;
}

/* A factor for each place of the axis first, then data. */
static bool lower_batch_norm(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *gamma = call->in[1], *beta = call->in[2], *mean = call->in[3],
                 *var = call->in[4];
    int axis = lower_axis(call, "axis", x->rank);
    DType t = sc_type_of(x->dtype);
    Tensor *factor = plan_temp(plan, t, 1, var->shape);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 1, var->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, var), var->dtype);
    Sc f = sc_rsqrt(b, sc_add(b, v, step_fparam(&s, b, t, attrs_float(call->attrs, "epsilon"))));
    if (attrs_bool(call->attrs, "scale"))
        sc_mul(b, f, sc_load(b, step_in(&s, gamma), gamma->dtype));
    step_out(&s, factor);
    step_end(&s);

    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    b = &s.body;
    v = sc_load(b, step_in(&s, x), x->dtype);
    Sc d = sc_sub(b, v, sc_load(b, norm_vector_in(&s, mean, axis), mean->dtype));
    f = sc_load(b, norm_vector_in(&s, factor, axis), t);
    if (attrs_bool(call->attrs, "center"))
        sc_fma(b, d, f, sc_load(b, norm_vector_in(&s, beta, axis), beta->dtype));
    else
        sc_mul(b, d, f);
    step_out(&s, out[0]);
    step_end(&s);
    plan_copy(plan, out[1], mean);
    plan_copy(plan, out[2], var);
    return true;
}

static const RelDef rel_batch_norm = {"BatchNorm", norm_relate, 6, false};
static const AttrSpec batch_norm_attrs[] = {
    {"axis", AT_INT, "1", "the axis of the channels, along which the vectors lie"},
    {"epsilon", AT_FLOAT, "1e-5", "added to the variance"},
    {"center", AT_BOOL, "True", "add beta"},
    {"scale", AT_BOOL, "True", "multiply by gamma"},
};
const Op op_nn_batch_norm = {
    .name = "nn.batch_norm",
    .args = "data, gamma, beta, moving_mean, moving_var",
    .nargs = 5,
    .write_sizes = norm_write_sizes,
    .attrs = batch_norm_attrs,
    .nattrs = 4,
    .relation = &rel_batch_norm,
    .dtypes = DTS_FLOAT,
    .pattern = OP_TUPLE,
    .shape = shape_batch_norm,
    .tuple = true,
    .lower = lower_batch_norm,
    .doc = "(data - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta for each channel, "
           "with the\n"
           "two statistics handed through: (out, moving_mean, moving_var).",
    .example = "nn.batch_norm([[3.0]], [2.0], [1.0], [1.0], [4.0], epsilon=0.0).0",
    .example_result = "[[3.0]] : Tensor[(1, 1), float32]",
    .see_also = "nn.layer_norm",
};

/* ---- nn.dropout ------------------------------------------------------------------------------ */

static int shape_dropout(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    double rate = attrs_float(call->attrs, "rate");
    if (!shape_check_dtype(call, 0, call->op->dtypes))
        return -1;
    if (!(rate >= 0 && rate <= 1)) {
        shape_error(call, DIAG_R0316, "rate=%g is not between 0 and 1", rate);
        return -1;
    }
    for (int i = 0; i < 2; i++)
        if (!shape_set(call, &out[i], x->dtype, x->rank, x->shape))
            return -1;
    return 2;
}

static RelStatus relate_dropout(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_FLOAT}, &status))
        return status;
    Type *parts[2] = {r->args[0], r->args[0]};
    return rel_result_type(s, r, type_tuple(parts, 2)) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_dropout(const OpCall *call, Tensor *const *out, Plan *plan) {
    plan_copy(plan, out[0], call->in[0]);
    plan_fill_int(plan, out[1], 1);
    return true;
}

static const RelDef rel_dropout = {"Dropout", relate_dropout, 2, false};
static const AttrSpec dropout_attrs[] = {
    {"rate", AT_FLOAT, "0.5", "of elements that training would drop"},
};
const Op op_nn_dropout = {
    .name = "nn.dropout",
    .args = "data",
    .nargs = 1,
    .attrs = dropout_attrs,
    .nattrs = 1,
    .relation = &rel_dropout,
    .dtypes = DTS_FLOAT,
    .pattern = OP_TUPLE,
    .shape = shape_dropout,
    .tuple = true,
    .lower = lower_dropout,
    .doc =
        "As in TVM the form for evaluation: (data, a mask of ones). To drop elements in training,\n"
        "multiply by a mask from random.uniform.",
    .example = "nn.dropout([1.0, 2.0]).0",
    .example_result = "[1.0, 2.0] : Tensor[(2,), float32]",
    .see_also = "random.uniform",
};

/* ---- cross entropies ------------------------------------------------------------------------- */

static int shape_cross_entropy(const OpCall *call, OutSpec *out) {
    if (!shape_check_same_dtype(call, 0, 1) || !shape_check_rank(call, 0, 2) ||
        !shape_check_rank(call, 1, 2) || !shape_check_dims(call, 0, 0, 1, 0) ||
        !shape_check_dims(call, 0, 1, 1, 1))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, 0, NULL) ? 1 : -1;
}

static RelStatus relate_cross_entropy(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_FLOAT, DTS_FLOAT}, &status))
        return status;
    Type *dims[2] = {solver_var(s, KIND_DIM), solver_var(s, KIND_DIM)},
         *dtype = rel_dtype_in(r->args[0]);
    if (rel_result(s, r, NULL, 0, dtype) == REL_FAIL)
        return REL_FAIL;
    uint32_t na, nb;
    Type **a, **b;
    if (!rel_rank_in(r->args[0], &na, &a) &&
        !rel_unify(s, r, 0, type_tensor(type_shape(dims, 2), dtype)))
        return REL_FAIL;
    if (!rel_rank_in(r->args[1], &nb, &b) && !rel_unify(s, r, 1, r->args[0]))
        return REL_FAIL;
    if (!rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &na, &a) || !rel_rank_in(r->args[1], &nb, &b))
        return REL_WAIT;
    if (na != 2 || nb != 2) {
        rel_error(s, r, DIAG_R0313, "`%s`: `x` and `y` have 2 axes each", r->op->name);
        return REL_FAIL;
    }
    for (int i = 0; i < 2; i++)
        if (!rel_unify_dim(s, r, b[i], a[i], 1, i))
            return REL_FAIL;
    return REL_DONE;
}

enum { OF_LOGARITHMS, OF_PROBABILITIES };

static bool lower_cross_entropy(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *y = call->in[1];
    DType t = sc_type_of(x->dtype);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, 0, NULL);
    step_reduce_over(&s, 2, x->shape);
    step_combine(&s, COMBINE_SUM, t);
    ScalarBuilder *b = &s.body;
    Sc p = sc_load(b, step_in_strided(&s, x, x->strides, 0), x->dtype);
    if (call->op->variant == OF_PROBABILITIES)
        p = sc_log(b, p);
    sc_mul(b, p, sc_load(b, step_in_strided(&s, y, y->strides, 0), y->dtype));
    Sc sum = sc_sub(&s.epilogue, sc_float(&s.epilogue, t, 0), sc_acc(&s.epilogue, t));
    sc_div(&s.epilogue, sum, step_fparam(&s, &s.epilogue, t, (double)x->shape[0]));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_cross_entropy = {"CrossEntropy", relate_cross_entropy, 3, false};
const Op op_nn_cross_entropy = {
    .name = "nn.cross_entropy",
    .args = "x, y",
    .nargs = 2,
    .sizes = "(n, classes), (n, classes)",
    .relation = &rel_cross_entropy,
    .dtypes = DTS_FLOAT,
    .pattern = OP_REDUCE,
    .variant = OF_PROBABILITIES,
    .shape = shape_cross_entropy,
    .lower = lower_cross_entropy,
    .doc = "-sum(log(x) * y) / n for probabilities x and targets y, both (n, classes).",
    .example = "nn.cross_entropy([[1.0, 1.0]], [[1.0, 0.0]])",
    .example_result = "0.0 : float32",
    .see_also = "nn.cross_entropy_with_logits, nn.log_softmax",
};
static const RelDef rel_cross_entropy_logits = {"CrossEntropyWithLogits", relate_cross_entropy, 3,
                                                false};
const Op op_nn_cross_entropy_with_logits = {
    .name = "nn.cross_entropy_with_logits",
    .args = "x, y",
    .nargs = 2,
    .sizes = "(n, classes), (n, classes)",
    .relation = &rel_cross_entropy_logits,
    .dtypes = DTS_FLOAT,
    .pattern = OP_REDUCE,
    .variant = OF_LOGARITHMS,
    .shape = shape_cross_entropy,
    .lower = lower_cross_entropy,
    .doc = "-sum(x * y) / n for logarithms of probabilities x (of nn.log_softmax) and targets y, "
           "both\n"
           "(n, classes).",
    .example = "nn.cross_entropy_with_logits([[-2.0, -1.0]], [[1.0, 0.0]])",
    .example_result = "2.0 : float32",
    .see_also = "nn.cross_entropy, nn.log_softmax",
};
