/* SPDX-License-Identifier: Apache-2.0 */
/* nn.nll_loss: the negative log-likelihood of targets under predictions. */
#include <string.h>

#include "base/mem.h"
#include "ops/gather.h"
#include "ops/relate/structured.h"

/* predictions (n, c, d…), targets (n, d…), weights (c,). */
static int shape_nll_loss(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *t = call->in[1];
    if (!shape_check_dtype(call, 0, DTS_FLOAT) || !shape_check_dtype(call, 1, DTS_INT) ||
        !shape_check_same_dtype(call, 0, 2) || !shape_check_min_rank(call, 0, 2) ||
        !shape_check_rank(call, 1, x->rank - 1) || !shape_check_rank(call, 2, 1) ||
        !shape_check_dims(call, 0, 1, 2, 0))
        return -1;
    for (int i = 0; i < t->rank; i++)
        if (!shape_check_dims(call, 1, i, 0, i ? i + 1 : 0))
            return -1;
    bool none = strcmp(attrs_text(call->attrs, "reduction"), "none") == 0;
    return shape_set(call, out, x->dtype, none ? t->rank : 0, t->shape) ? 1 : -1;
}

static RelStatus relate_nll_loss(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_FLOAT, DTS_INT, DTS_FLOAT}, &status))
        return status;
    uint32_t rank, own;
    Type **dims, **given, *dtype = rel_dtype_in(r->args[0]), *weight = solver_var(s, KIND_DIM);
    bool none = strcmp(attrs_text(r->attrs, "reduction"), "none") == 0;
    if (!rel_unify(s, r, 2, type_tensor(type_shape(&weight, 1), dtype)))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return none ? rel_wait(s, r, dtype)
                    : (rel_result(s, r, NULL, 0, dtype) == REL_FAIL ? REL_FAIL : REL_WAIT);
    if (rank < 2) {
        rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes, at least %d are needed", r->op->name,
                  "predictions", rank, 2);
        return REL_FAIL;
    }
    if (!rel_make_rank(s, r, 1, rank - 1))
        return REL_FAIL;
    rel_rank_in(r->args[1], &own, &given);
    if (own != rank - 1) {
        rel_error(s, r, DIAG_R0313, "`%s`: `targets` has %u axes, not %u", r->op->name, own,
                  rank - 1);
        return REL_FAIL;
    }
    if (!rel_unify_dim(s, r, dims[1], weight, 0, 1))
        return REL_FAIL;
    for (uint32_t i = 0; i < own; i++)
        if (!rel_unify_dim(s, r, dims[i ? i + 1 : 0], given[i], 0, (int)(i ? i + 1 : 0)))
            return REL_FAIL;
    status = rel_result(s, r, given, none ? own : 0, dtype);
    return status == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* The weight of each target, 0 where it is ignored; and with `loss` that times the prediction, negative. */
static Tensor *target_step(Plan *plan, const OpCall *call, DType t, bool loss) {
    const Tensor *x = call->in[0], *targets = call->in[1], *weights = call->in[2];
    Tensor *out = plan_temp(plan, t, targets->rank, targets->shape);
    int64_t strides[TENSOR_MAX_RANK], none[TENSOR_MAX_RANK] = {0};
    for (int i = 0; i < targets->rank; i++)
        strides[i] = x->strides[i ? i + 1 : 0];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, targets->rank, targets->shape);
    ScalarBuilder *b = &s.body;
    int w = step_in_strided(&s, weights, none, 0), p = step_in_strided(&s, x, strides, 0);
    Sc at = sc_index_load(b, step_in(&s, targets), targets->dtype);
    Sc ignored = step_iparam(&s, b, DT_I64, attrs_int(call->attrs, "ignore_index"));
    Sc counts = sc_ne(b, at, ignored);
    Sc inside = sc_in_range(b, at, step_iparam(&s, b, DT_I64, x->shape[1]));
    sc_check(b, sc_or(b, sc_not(b, counts), inside), KERNEL_INDEX);
    counts = sc_and(b, counts, inside);
    Sc step = sc_mul(b, at, step_iparam(&s, b, DT_I64, weights->strides[0]));
    Sc v = sc_load_if(b, w, weights->dtype, step, counts, 0);
    if (loss) {
        step = sc_mul(b, at, step_iparam(&s, b, DT_I64, x->strides[1]));
        sc_neg(b, sc_mul(b, v, sc_load_if(b, p, x->dtype, step, counts, 0)));
    }
    step_out(&s, out);
    step_end(&s);
    return out;
}

static bool lower_nll_loss(const OpCall *call, Tensor *const *out, Plan *plan) {
    DType t = sc_type_of(out[0]->dtype);
    const char *how = attrs_text(call->attrs, "reduction");
    Tensor *loss = target_step(plan, call, t, true);
    uint32_t all = (uint32_t)((1ull << loss->rank) - 1);
    if (strcmp(how, "none") == 0) {
        plan_copy(plan, out[0], loss);
        return true;
    }
    if (strcmp(how, "sum") == 0) {
        plan_reduce(plan, out[0], loss, all, COMBINE_SUM);
        return true;
    }
    Tensor *sum = plan_temp(plan, t, 0, NULL), *weight = plan_temp(plan, t, 0, NULL);
    plan_reduce(plan, sum, loss, all, COMBINE_SUM);
    plan_reduce(plan, weight, target_step(plan, call, t, false), all, COMBINE_SUM);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 0, NULL);
    Sc v = sc_load(&s.body, step_in(&s, sum), t);
    sc_div(&s.body, v, sc_load(&s.body, step_in(&s, weight), t));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const char *blame_target(const OpCall *call) {
    int64_t n = call->in[0]->shape[1], ignored = attrs_int(call->attrs, "ignore_index"), target;
    return find_index_outside(call->in[1], 0, n, &ignored, &target)
               ? fmt_text("target %lld is none of %lld class%s", (long long)target, (long long)n,
                          n == 1 ? "" : "es")
               : NULL;
}

static const AttrSpec nll_attrs[] = {
    {"reduction", AT_STRING, "\"mean\"",
     "\"mean\": the sum divided by that of the weights; \"sum\"; or \"none\""},
    {"ignore_index", AT_INT, "-100", "targets that do not count"},
};
static const RelDef rel_nll_loss = {"NLLLoss", relate_nll_loss, 4, false};
const Op op_nn_nll_loss = {
    .name = "nn.nll_loss",
    .args = "predictions, targets, weights",
    .nargs = 3,
    .attrs = nll_attrs,
    .nattrs = 2,
    .choices = "reduction: mean sum none",
    .relation = &rel_nll_loss,
    .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE,
    .shape = shape_nll_loss,
    .blame_index = blame_target,
    .lower = lower_nll_loss,
    .doc = "The negative log-likelihood: of predictions (n, c, d…) those at targets (n, d…), times "
           "the\n"
           "weights (c,) of their classes, negative, and their mean.",
    .example = "nn.nll_loss([[-1.0, -2.0], [-3.0, -4.0]], [0, 1], [1.0, 1.0])",
    .example_result = "2.5 : float32",
    .see_also = "nn.log_softmax, nn.cross_entropy",
};
