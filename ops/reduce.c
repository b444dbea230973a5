/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: sum mean max min prod logsumexp all any argmax argmin variance var std.
 *
 * Corner cases, as NumPy has them: `axis=None` is all axes and `axis=[]` none; sum, prod, all and
 * any of nothing are 0, 1, True and False, max and min of nothing an error; a nan makes max, min,
 * argmax and argmin nan or its place; integers wrap. Otherwise than there, and as in TVM, the
 * result keeps the dtype of the data, so the mean of integers is truncated. Halves are summed in
 * float32. */
#include "ops/recipe/plan.h"
#include "ops/relate/relations.h"
#include "ops/relate/shape_util.h"

#include <string.h>

/* ---- shapes ---------------------------------------------------------------------------------- */

static bool axes_of(const OpCall *call, uint32_t *axes) {
    return shape_axes(call, "axis", attrs_bool(call->attrs, "exclude"), call->in[0]->rank, axes);
}

/* How many elements go into each result; *kept: how many results. */
static int64_t reduced_count(const Tensor *t, uint32_t axes, int64_t *kept) {
    int64_t n = 1;
    *kept = 1;
    for (int axis = 0; axis < t->rank; axis++) {
        int64_t *of = axes >> axis & 1 ? &n : kept;
        *of = size_multiply(*of, t->shape[axis]);
    }
    return n;
}

static bool set_reduced(const OpCall *call, OutSpec *out, DType dtype, uint32_t axes) {
    const Tensor *t = call->in[0];
    bool keepdims = attrs_bool(call->attrs, "keepdims");
    int64_t shape[TENSOR_MAX_RANK];
    int rank = 0;
    for (int axis = 0; axis < t->rank; axis++) {
        if (!(axes >> axis & 1))
            shape[rank++] = t->shape[axis];
        else if (keepdims)
            shape[rank++] = 1;
    }
    return shape_set(call, out, dtype, rank, shape);
}

static bool has_elements(const OpCall *call, uint32_t axes) {
    int64_t kept, n = reduced_count(call->in[0], axes, &kept);
    if (n == 0 && kept > 0) {
        Diag *d = shape_error(call, DIAG_R0318, "there is nothing to reduce");
        diag_add_fact(d, "`data` has shape %s", shape_text(call->in[0]->rank, call->in[0]->shape));
        return false;
    }
    return true;
}

static int reduce_shape(const OpCall *call, OutSpec *out) {
    uint32_t axes;
    if (!shape_check_dtype(call, 0, call->op->dtypes) || !axes_of(call, &axes) ||
        !set_reduced(call, out, call->in[0]->dtype, axes))
        return -1;
    bool strict = call->op->needs_elements & DT_BIT(call->in[0]->dtype);
    return !strict || has_elements(call, axes) ? 1 : -1;
}

static int arg_shape(const OpCall *call, OutSpec *out) {
    uint32_t axes;
    int64_t kept;
    if (reduce_shape(call, out) < 0 || !axes_of(call, &axes))
        return -1;
    out->dtype = reduced_count(call->in[0], axes, &kept) > INT32_MAX ? DT_I64 : DT_I32;
    return 1;
}

static int variance_shape(const OpCall *call, OutSpec *out) {
    uint32_t axes;
    const Tensor *t = call->in[0], *mean = call->in[1];
    if (reduce_shape(call, out) < 0 || !axes_of(call, &axes) ||
        !shape_check_same_dtype(call, 0, 1) || !shape_check_rank(call, 1, t->rank))
        return -1;
    for (int axis = 0; axis < t->rank; axis++) {
        int64_t wanted = axes >> axis & 1 ? 1 : t->shape[axis];
        if (mean->shape[axis] != wanted) {
            Diag *d = shape_error(call, DIAG_R0314, "axis %d of `mean` is %lld, it must be %lld",
                                  axis, (long long)mean->shape[axis], (long long)wanted);
            diag_add_fact(d, "`mean` is the mean of `data` over the same axes with keepdims=True");
            return -1;
        }
    }
    return 1;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static bool lower_combine(const OpCall *call, Tensor *const *out, Plan *plan, Combine combine) {
    uint32_t axes;
    axes_of(call, &axes);
    plan_reduce(plan, out[0], call->in[0], axes, combine);
    return true;
}

#define LOWER(name, combine)                                                                       \
    static bool lower_##name(const OpCall *call, Tensor *const *out, Plan *plan) {                 \
        return lower_combine(call, out, plan, combine);                                            \
    }
LOWER(sum, COMBINE_SUM)
LOWER(prod, COMBINE_PROD)
LOWER(max, COMBINE_MAX)
LOWER(min, COMBINE_MIN)
LOWER(all, COMBINE_ALL)
LOWER(any, COMBINE_ANY)

static bool lower_arg(const OpCall *call, Tensor *const *out, Plan *plan, Combine combine) {
    const Tensor *t = call->in[0];
    uint32_t axes;
    StepBuilder s;
    axes_of(call, &axes);
    step_begin_reduce(&s, plan, RECIPE_REDUCE, t, axes);
    sc_load(&s.body, step_in_reduced(&s, t, axes), t->dtype);
    step_combine(&s, combine, sc_type_of(t->dtype));
    s.last = attrs_bool(call->attrs, "select_last_index");
    sc_cast(&s.epilogue, sc_acc(&s.epilogue, DT_I64), out[0]->dtype);
    step_out_reduced(&s, out[0], t, axes);
    step_end(&s);
    return true;
}

static bool lower_argmax(const OpCall *call, Tensor *const *out, Plan *plan) {
    return lower_arg(call, out, plan, COMBINE_ARGMAX);
}

static bool lower_argmin(const OpCall *call, Tensor *const *out, Plan *plan) {
    return lower_arg(call, out, plan, COMBINE_ARGMIN);
}

/* The epilogue acc / n. Integers are summed in 64 bits, so that the mean itself never wraps. */
static void divide_by(StepBuilder *s, Tensor *out, DType acc, int64_t n) {
    ScalarBuilder *b = &s->epilogue;
    Sc total = sc_acc(b, acc);
    Sc count = dtype_is_float(acc) ? step_fparam(s, b, acc, (double)n) : step_iparam(s, b, acc, n);
    sc_cast(b, sc_div(b, total, count), sc_type_of(out->dtype));
}

static bool lower_mean(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *t = call->in[0];
    DType acc = dtype_info[t->dtype].cls == DTC_INT    ? DT_I64
                : dtype_info[t->dtype].cls == DTC_UINT ? DT_U64
                                                       : sc_type_of(t->dtype);
    uint32_t axes;
    int64_t kept;
    StepBuilder s;
    axes_of(call, &axes);
    step_begin_reduce(&s, plan, RECIPE_REDUCE, t, axes);
    sc_cast(&s.body, sc_load(&s.body, step_in_reduced(&s, t, axes), t->dtype), acc);
    step_combine(&s, COMBINE_SUM, acc);
    divide_by(&s, out[0], acc, reduced_count(t, axes, &kept));
    step_out_reduced(&s, out[0], t, axes);
    step_end(&s);
    return true;
}

static bool lower_variance(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *t = call->in[0];
    DType acc = sc_type_of(t->dtype);
    uint32_t axes;
    int64_t kept;
    StepBuilder s;
    axes_of(call, &axes);
    step_begin_reduce(&s, plan, RECIPE_REDUCE, t, axes);
    Sc x = sc_load(&s.body, step_in_reduced(&s, t, axes), t->dtype);
    Sc mean = sc_load(&s.body, step_in_reduced(&s, call->in[1], axes), t->dtype);
    Sc d = sc_sub(&s.body, x, mean);
    sc_mul(&s.body, d, d);
    step_combine(&s, COMBINE_SUM, acc);
    int64_t n = reduced_count(t, axes, &kept) - attrs_bool(call->attrs, "unbiased");
    divide_by(&s, out[0], acc, n < 0 ? 0 : n);
    step_out_reduced(&s, out[0], t, axes);
    step_end(&s);
    return true;
}

/* The mean first, then the mean of the squares of what is left; `root`: the square root of that. */
static bool lower_spread(const OpCall *call, Tensor *const *out, Plan *plan, bool root) {
    const Tensor *t = call->in[0];
    DType acc = sc_type_of(t->dtype);
    uint32_t axes;
    int64_t results, kept[TENSOR_MAX_RANK];
    StepBuilder s;
    axes_of(call, &axes);
    int64_t n = reduced_count(t, axes, &results);
    for (int axis = 0; axis < t->rank; axis++)
        kept[axis] = axes >> axis & 1 ? 1 : t->shape[axis];
    Tensor *mean = plan_temp(plan, acc, t->rank, kept);
    step_begin_reduce(&s, plan, RECIPE_REDUCE, t, axes);
    sc_load(&s.body, step_in_reduced(&s, t, axes), t->dtype);
    step_combine(&s, COMBINE_SUM, acc);
    divide_by(&s, mean, acc, n);
    step_out_reduced(&s, mean, t, axes);
    step_end(&s);
    step_begin_reduce(&s, plan, RECIPE_REDUCE, t, axes);
    Sc x = sc_load(&s.body, step_in_reduced(&s, t, axes), t->dtype);
    Sc d = sc_sub(&s.body, x, sc_load(&s.body, step_in_reduced(&s, mean, axes), acc));
    sc_mul(&s.body, d, d);
    step_combine(&s, COMBINE_SUM, acc);
    ScalarBuilder *e = &s.epilogue;
    n -= attrs_bool(call->attrs, "unbiased");
    Sc of_squares = sc_div(e, sc_acc(e, acc), step_fparam(&s, e, acc, n < 0 ? 0 : (double)n));
    sc_cast(e, root ? sc_sqrt(e, of_squares) : of_squares, sc_type_of(out[0]->dtype));
    step_out_reduced(&s, out[0], t, axes);
    step_end(&s);
    return true;
}

static bool lower_var(const OpCall *call, Tensor *const *out, Plan *plan) {
    return lower_spread(call, out, plan, false);
}

static bool lower_std(const OpCall *call, Tensor *const *out, Plan *plan) {
    return lower_spread(call, out, plan, true);
}

/* The largest element, of all that go into one result, is taken off before `exp` and added after `log`, so
 * that nothing overflows. Where it is infinite 0 is: then the sum itself says what the result is. */
static bool lower_logsumexp(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *t = call->in[0];
    DType acc = sc_type_of(t->dtype);
    uint32_t axes;
    StepBuilder s;
    axes_of(call, &axes);
    int64_t kept[TENSOR_MAX_RANK];
    for (int axis = 0; axis < t->rank; axis++)
        kept[axis] = axes >> axis & 1 ? 1 : t->shape[axis];
    Tensor *top = plan_temp(plan, acc, t->rank, kept);
    step_begin_reduce(&s, plan, RECIPE_REDUCE, t, axes);
    sc_load(&s.body, step_in_reduced(&s, t, axes), t->dtype);
    step_combine(&s, COMBINE_MAX, acc);
    ScalarBuilder *e = &s.epilogue;
    Sc m = sc_acc(e, acc);
    sc_select(e, sc_isinf(e, m), sc_float(e, acc, 0), m);
    step_out_reduced(&s, top, t, axes);
    step_end(&s);
    step_begin_reduce(&s, plan, RECIPE_REDUCE, t, axes);
    Sc x = sc_load(&s.body, step_in_reduced(&s, t, axes), t->dtype);
    int shift = step_in_reduced(&s, top, axes);
    sc_fast_exp(&s.body, sc_sub(&s.body, x, sc_load(&s.body, shift, acc)));
    step_combine(&s, COMBINE_SUM, acc);
    Sc log = sc_log(e, sc_acc(e, acc));
    sc_add(e, log, sc_load(e, shift, acc));
    step_out_reduced(&s, out[0], t, axes);
    step_end(&s);
    return true;
}

/* ---- entries --------------------------------------------------------------------------------- */

#define AXIS                                                                                       \
    {"axis", AT_INTS_OPT, "None",                                                                  \
     "the axes to reduce, counted from the end when negative; None: "                              \
     "all"},                                                                                       \
    {                                                                                              \
        "keepdims", AT_BOOL, "False", "whether reduced axes stay, with size 1"                     \
    }
#define EXCLUDE                                                                                    \
    { "exclude", AT_BOOL, "False", "whether `axis` names the axes to keep instead" }

static const AttrSpec reduce_attrs[] = {AXIS, EXCLUDE};
static const AttrSpec arg_attrs[] = {
    AXIS,
    {"select_last_index", AT_BOOL, "False", "of equal elements the last, not the first"},
    EXCLUDE};
static const AttrSpec variance_attrs[] = {
    AXIS, EXCLUDE, {"unbiased", AT_BOOL, "False", "whether to divide by n - 1 instead of n"}};

#define REDUCE(symbol, set, strict, text, sample, value, also)                                     \
    const Op op_##symbol = {.name = #symbol,                                                       \
                            .args = "data",                                                        \
                            .nargs = 1,                                                            \
                            .attrs = reduce_attrs,                                                 \
                            .nattrs = 3,                                                           \
                            .relation = &rel_reduce,                                               \
                            .dtypes = set,                                                         \
                            .pattern = OP_REDUCE,                                                  \
                            .shape = reduce_shape,                                                 \
                            .refuses_sizes = strict != 0,                                          \
                            .needs_elements = strict,                                              \
                            .lower = lower_##symbol,                                               \
                            .doc = text,                                                           \
                            .example = sample,                                                     \
                            .example_result = value,                                               \
                            .see_also = also};
REDUCE(all, DTS_BOOL, 0, "Whether all elements hold; True of none.",
       "all([[True, False], [True, True]], axis=[1])", "[False, True] : Tensor[(2,), bool]", "any")
REDUCE(any, DTS_BOOL, 0, "Whether some element holds; False of none.",
       "any([[True, False], [False, False]], axis=[1])", "[True, False] : Tensor[(2,), bool]",
       "all")
REDUCE(
    logsumexp, DTS_FLOAT, 0,
    "log(sum(exp(data))), stable: nothing overflows. Its derivative is the softmax. Of none: -inf.",
    "logsumexp([[0.0, 0.0], [1000.0, 1000.0]], axis=[1])",
    "[0.6931472, 1000.6932] : Tensor[(2,), float32]", "nn.log_softmax, max, sum")
REDUCE(max, DTS_ALL, DTS_ALL, "The greatest element; nan if there is one. Of none: an error.",
       "max([[1.0, 5.0], [3.0, 2.0]], axis=[1])", "[5.0, 3.0] : Tensor[(2,), float32]",
       "argmax, maximum, min")
REDUCE(mean, DTS_NUM, DTS_INT,
       "The mean. That of integers is their sum in 64 bits divided by their number, truncated "
       "towards 0; of no integers it is an error, of no floats nan.",
       "mean([[1.0, 2.0], [3.0, 4.0]], axis=[0])", "[2.0, 3.0] : Tensor[(2,), float32]",
       "sum, variance")
REDUCE(min, DTS_ALL, DTS_ALL, "The least element; nan if there is one. Of none: an error.",
       "min([[1.0, 5.0], [3.0, 2.0]], axis=[1])", "[1.0, 2.0] : Tensor[(2,), float32]",
       "argmin, minimum, max")
REDUCE(prod, DTS_NUM, 0, "The product of the elements; 1 of none. Integers wrap.",
       "prod([1.0, 2.0, 3.0, 4.0])", "24.0 : float32", "sum")
REDUCE(sum, DTS_NUM, 0,
       "The sum of the elements; 0 of none. Integers wrap. Of bools it is their count, "
       "an int32.",
       "sum([[1.0, 2.0], [3.0, 4.0]], axis=[1], keepdims=True)",
       "[[3.0],\n [7.0]] : Tensor[(2, 1), float32]", "mean, prod, cumsum")

#define ARG(symbol, text, sample, value, also)                                                     \
    const Op op_##symbol = {.name = #symbol,                                                       \
                            .args = "data",                                                        \
                            .nargs = 1,                                                            \
                            .attrs = arg_attrs,                                                    \
                            .nattrs = 4,                                                           \
                            .relation = &rel_arg_reduce,                                           \
                            .dtypes = DTS_ALL,                                                     \
                            .pattern = OP_REDUCE,                                                  \
                            .shape = arg_shape,                                                    \
                            .refuses_sizes = true,                                                 \
                            .needs_elements = DTS_ALL,                                             \
                            .lower = lower_##symbol,                                               \
                            .doc = text,                                                           \
                            .example = sample,                                                     \
                            .example_result = value,                                               \
                            .see_also = also};
ARG(argmax, "The place of the greatest element, row-major over the axes; a nan counts as greatest.",
    "argmax([[1.0, 5.0], [3.0, 2.0]], axis=[1])", "[1, 0] : Tensor[(2,), int32]", "max, topk")
ARG(argmin, "The place of the least element, row-major over the axes; a nan counts as least.",
    "argmin([[1.0, 5.0], [3.0, 2.0]], axis=[1])", "[0, 1] : Tensor[(2,), int32]", "min")

const Op op_variance = {
    .name = "variance",
    .args = "data, mean",
    .nargs = 2,
    .attrs = variance_attrs,
    .nattrs = 4,
    .relation = &rel_variance,
    .dtypes = DTS_FLOAT,
    .pattern = OP_REDUCE,
    .shape = variance_shape,
    .refuses_sizes = true,
    .lower = lower_variance,
    .doc = "The mean of (data - mean)^2, where mean is that of data over the same axes with "
           "keepdims=True.",
    .example = "variance([1.0, 2.0, 3.0, 4.0], [2.5], axis=[0])",
    .example_result = "1.25 : float32",
    .see_also = "mean"};

#define SPREAD(symbol, text, sample, value, also)                                                  \
    const Op op_##symbol = {.name = #symbol,                                                       \
                            .args = "data",                                                        \
                            .nargs = 1,                                                            \
                            .attrs = variance_attrs,                                               \
                            .nattrs = 4,                                                           \
                            .relation = &rel_reduce,                                               \
                            .dtypes = DTS_FLOAT,                                                   \
                            .pattern = OP_REDUCE,                                                  \
                            .shape = reduce_shape,                                                 \
                            .lower = lower_##symbol,                                               \
                            .doc = text,                                                           \
                            .example = sample,                                                     \
                            .example_result = value,                                               \
                            .see_also = also};
SPREAD(std, "The standard deviation: the square root of the variance. Of none: nan.",
       "std([1.0, 2.0, 3.0, 4.0])", "1.118034 : float32", "mean, var")
SPREAD(var, "The variance: the mean of the squares of the distances from the mean. Of none: nan.",
       "var([[1.0, 3.0], [2.0, 6.0]], axis=[1])", "[1.0, 4.0] : Tensor[(2,), float32]",
       "mean, std, variance")
