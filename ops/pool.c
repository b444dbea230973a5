/* SPDX-License-Identifier: Apache-2.0 */
/* Two-dimensional pools and their derivatives. The domain is the result's four axes and the two of
 * the window; an element of the window that lies in the padding is not read. */
#include <string.h>

#include "base/mem.h"
#include "ops/window.h"

typedef struct Pool {
    Window w;
    int axis[2]; /* where H and W stand */
    bool ceil_mode, include_pad;
    int64_t size[2], count[2];
} Pool;

static const char *pool_attrs(const Attrs *attrs, Pool *p) {
    int place[4];
    int64_t size[2];
    layout_read(attrs_text(attrs, "layout"), "NCHW", place);
    const char *out = attrs_text(attrs, "out_layout");
    if (*out && strcmp(out, attrs_text(attrs, "layout")))
        return "out_layout must be that of data";
    int n = attr_int_list(attrs, "pool_size", size, 2);
    if (n < 1 || size[0] < 1 || size[n - 1] < 1)
        return "pool_size is one or two numbers from 1";
    const AttrValue *include = attrs_find(attrs, "count_include_pad");
    p->axis[0] = place[2];
    p->axis[1] = place[3];
    p->ceil_mode = attrs_bool(attrs, "ceil_mode");
    p->include_pad = include && include->i;
    p->w.kernel[0] = size[0];
    p->w.kernel[1] = size[n - 1];
    return window_attrs(attrs, &p->w);
}

/* x is what is pooled. */
static bool pool_resolve(const OpCall *call, int arg, Pool *p) {
    const Tensor *x = call->in[arg];
    const char *problem = pool_attrs(call->attrs, p);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return false;
    }
    if (!shape_check_rank(call, arg, 4))
        return false;
    for (int j = 0; j < 2; j++) {
        p->size[j] = x->shape[p->axis[j]];
        p->count[j] = window_count(&p->w, j, p->size[j], p->ceil_mode);
        if (p->count[j] < 0) {
            shape_error(call, DIAG_R0316, "a window of %s %lld does not fit axis %d of size %lld",
                        j ? "width" : "height", (long long)p->w.kernel[j], p->axis[j],
                        (long long)p->size[j]);
            return false;
        }
    }
    return true;
}

static void pooled_shape(const Pool *p, const Tensor *x, int64_t *dims) {
    memcpy(dims, x->shape, 4 * sizeof *dims);
    for (int j = 0; j < 2; j++)
        dims[p->axis[j]] = p->count[j];
}

static int shape_pool(const OpCall *call, OutSpec *out) {
    Pool p;
    int64_t dims[4];
    if (!pool_resolve(call, 0, &p))
        return -1;
    pooled_shape(&p, call->in[0], dims);
    return shape_set(call, out, call->in[0]->dtype, 4, dims) ? 1 : -1;
}

static RelStatus relate_pool(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status)) /* two of nn.max_pool2d_pick */
        return status;
    Pool p;
    uint32_t rank;
    Type **dims;
    const char *problem = pool_attrs(r->attrs, &p);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    if (!rel_make_rank(s, r, 0, 4))
        return REL_FAIL;
    rel_rank_in(r->args[0], &rank, &dims);
    if (rank != 4) {
        rel_error(s, r, DIAG_R0313, "`%s`: `data` has %u axes and needs 4", r->op->name, rank);
        return REL_FAIL;
    }
    Type **out = rel_copy_dims(4, dims, 0);
    for (int j = 0; j < 2; j++)
        out[p.axis[j]] = window_count_dim(r, &p.w, j, dims[p.axis[j]], NULL, p.ceil_mode);
    return rel_result(s, r, out, 4, rel_dtype_in(r->args[0])) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* ---- the window of a place in the result ------------------------------------------------------
 */

/* A step over (result, window): x at the element of the window, `otherwise` in the padding. */
static void window_strides(const Pool *p, const Tensor *x, int64_t *strides, int64_t *offset) {
    memcpy(strides, x->strides, 4 * sizeof *strides);
    *offset = 0;
    for (int j = 0; j < 2; j++) {
        int64_t s = x->strides[p->axis[j]];
        strides[p->axis[j]] = p->w.stride[j] * s;
        strides[4 + j] = p->w.dilation[j] * s;
        *offset -= p->w.before[j] * s;
    }
}

/* Whether place (iota of result axis, `in_window`) lies in x along side j. */
static Sc side_inside(StepBuilder *s, const Pool *p, int j, Sc in_window) {
    ScalarBuilder *b = &s->body;
    Sc at = sc_mul(b, sc_iota(b, p->axis[j]), step_iparam(s, b, DT_I64, p->w.stride[j]));
    at = sc_add(b, at, sc_mul(b, in_window, step_iparam(s, b, DT_I64, p->w.dilation[j])));
    at = sc_sub(b, at, step_iparam(s, b, DT_I64, p->w.before[j]));
    return sc_in_range(b, at, step_iparam(s, b, DT_I64, p->size[j]));
}

/* Windows may reach outside x: there is padding, or a last window hangs over the edge. */
static bool pool_reaches_out(const Pool *p) {
    for (int j = 0; j < 2; j++) {
        int64_t last = (p->count[j] - 1) * p->w.stride[j] + (p->w.kernel[j] - 1) * p->w.dilation[j];
        if (p->w.before[j] || last >= p->size[j])
            return true;
    }
    return false;
}

static double lowest(DType t) {
    switch (dtype_info[t].cls) {
    case DTC_FLOAT: return -__builtin_inf();
    case DTC_INT: return -(double)(1ull << (dtype_info[t].bits - 1));
    case DTC_UINT:
    case DTC_BOOL: break;
    }
    return 0;
}

static void fold_windows(Plan *plan, const Pool *p, Tensor *out, const Tensor *x, Combine combine,
                         DType acc, bool last) {
    int64_t strides[6], offset;
    window_strides(p, x, strides, &offset);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, 4, out->shape);
    step_reduce_over(&s, 2, p->w.kernel);
    step_combine(&s, combine, acc);
    s.last = last;
    ScalarBuilder *b = &s.body;
    int in = step_in_strided(&s, x, strides, offset);
    Sc v;
    if (pool_reaches_out(p)) {
        Sc inside = sc_and(b, side_inside(&s, p, 0, sc_iota(b, 4)),
                           side_inside(&s, p, 1, sc_iota(b, 5)));
        v = sc_load_if(b, in, x->dtype, sc_i64(b, 0), inside,
                       combine == COMBINE_SUM ? 0 : lowest(sc_type_of(x->dtype)));
    } else {
        v = sc_load(b, in, x->dtype);
    }
    sc_cast(b, v, acc);
    if (combine == COMBINE_ARGMAX)
        sc_acc(&s.epilogue, DT_I64);
    step_out(&s, out);
    step_end(&s);
}

/* ---- nn.max_pool2d --------------------------------------------------------------------------- */

static bool lower_max_pool2d(const OpCall *call, Tensor *const *out, Plan *plan) {
    Pool p;
    if (!pool_resolve(call, 0, &p))
        return false;
    fold_windows(plan, &p, out[0], call->in[0], COMBINE_MAX, sc_type_of(out[0]->dtype), false);
    return true;
}

static const RelDef rel_max_pool2d = {"MaxPool2D", relate_pool, 2, false};
static const AttrSpec pool_specs[] = {
    {"pool_size", AT_INTS, NULL, "height and width of the window"},
    {"strides", AT_INTS, "[1, 1]", "steps of the window"},
    {"dilation", AT_INTS, "[1, 1]", "steps within the window"},
    {"padding", AT_INTS, "[0, 0]",
     "places around that hold nothing: both; height, width; or top, left, "
     "bottom, right"},
    {"layout", AT_STRING, "\"NCHW\"", "what data's axes are"},
    {"out_layout", AT_STRING, "\"\"", "the same"},
    {"ceil_mode", AT_BOOL, "False", "a last window that hangs over the edge counts"},
    {"count_include_pad", AT_BOOL, "False", "the average counts places of the padding, as zeros"},
};
enum { NMAX = 7, NAVG = 8 }; /* attributes */
const Op op_nn_max_pool2d = {
    .name = "nn.max_pool2d",
    .args = "data",
    .nargs = 1,
    .attrs = pool_specs,
    .nattrs = NMAX,
    .choices = "layout: *NCHW; out_layout: *NCHW -",
    .relation = &rel_max_pool2d,
    .dtypes = DTS_NUM,
    .pattern = OP_REDUCE,
    .shape = shape_pool,
    .refuses_sizes = true,
    .lower = lower_max_pool2d,
    .doc = "The largest element of each window of data (n, c, h, w).",
    .example = "nn.max_pool2d([[[[1.0, 3.0, 2.0, 0.0]]]], pool_size=[1, 2], strides=[1, 2])",
    .example_result = "[[[[3.0, 2.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.avg_pool2d, nn.global_max_pool2d",
};

/* (grad, data) of the result's shape and data's. */
static bool pool_pair(const OpCall *call, Pool *p) {
    const Tensor *g = call->in[0];
    int64_t dims[4];
    if (!pool_resolve(call, 1, p) || !shape_check_same_dtype(call, 0, 1))
        return false;
    pooled_shape(p, call->in[1], dims);
    if (g->rank == 4 && !memcmp(g->shape, dims, sizeof dims))
        return true;
    shape_error(call, DIAG_R0314, "`grad` has shape %s, the pool %s", shape_text(g->rank, g->shape),
                shape_text(4, dims));
    return false;
}

static int shape_pool_grad(const OpCall *call, OutSpec *out) {
    Pool p;
    if (!pool_pair(call, &p))
        return -1;
    return shape_set(call, out, call->in[1]->dtype, 4, call->in[1]->shape) ? 1 : -1;
}

static RelStatus relate_pool_grad(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    Type *g = type_tensor(rel_shape_in(r->args[0]), rel_dtype_in(r->args[1]));
    if (!rel_unify(s, r, 0, g) || !rel_make_rank(s, r, 0, 4) || !rel_make_rank(s, r, 1, 4))
        return REL_FAIL;
    return rel_result_type(s, r, r->args[1]) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* The number, in its window, of the first largest element: (n, c, y, x), int64. */
static Tensor *window_argmax(Plan *plan, const Pool *p, const Tensor *x) {
    int64_t dims[4];
    pooled_shape(p, x, dims);
    Tensor *at = plan_temp(plan, DT_I64, 4, dims);
    fold_windows(plan, p, at, x, COMBINE_ARGMAX, sc_type_of(x->dtype), false);
    return at;
}

/* From that number: whether it lies inside x (a window may hold only padding), and the offset in
 * elements from the window's corner. */
static Sc argmax_offset(StepBuilder *s, const Pool *p, const Tensor *x, const Tensor *at,
                        Sc *inside) {
    ScalarBuilder *b = &s->body;
    Sc k = sc_load(b, step_in(s, at), DT_I64);
    Sc width = step_iparam(s, b, DT_I64, p->w.kernel[1]);
    Sc window[2], offset[2];
    window[0] = sc_div(b, k, width);
    window[1] = sc_rem(b, k, width);
    *inside = sc_and(b, side_inside(s, p, 0, window[0]), side_inside(s, p, 1, window[1]));
    for (int j = 0; j < 2; j++) {
        int64_t stride = p->w.dilation[j] * x->strides[p->axis[j]];
        offset[j] = sc_mul(b, window[j], step_iparam(s, b, DT_I64, stride));
    }
    return sc_add(b, offset[0], offset[1]);
}

static bool lower_max_pool2d_grad(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *g = call->in[0], *x = call->in[1];
    Pool p;
    if (!pool_pair(call, &p))
        return false;
    Tensor *at = window_argmax(plan, &p, x);
    plan_fill_int(plan, out[0], 0);
    int64_t strides[6], corner;
    window_strides(&p, out[0], strides, &corner);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, 4, g->shape);
    step_combine(&s, COMBINE_SUM, sc_type_of(g->dtype));
    ScalarBuilder *b = &s.body;
    Sc inside, v = sc_load(b, step_in(&s, g), g->dtype);
    Sc offset = argmax_offset(&s, &p, out[0], at, &inside);
    /* Nothing is added at element 0 for a window without an element: its place, from the address
     * the strides give, is where the window's corner is not. */
    Sc here = step_iparam(&s, b, DT_I64, corner);
    offset = sc_add(b, offset, here);
    Sc home = sc_i64(b, 0);
    for (int i = 0; i < 4; i++)
        home = sc_sub(b, home, sc_mul(b, sc_iota(b, i), step_iparam(&s, b, DT_I64, strides[i])));
    offset = sc_select(b, inside, offset, home);
    DType t = sc_type_of(g->dtype);
    v = sc_select(b, inside, v, dtype_is_float(t) ? sc_float(b, t, 0) : sc_int(b, t, 0));
    step_result(&s, v);
    step_result(&s, offset);
    step_out_strided(&s, out[0], strides, 0);
    step_end(&s);
    return true;
}

static const RelDef rel_max_pool2d_grad = {"MaxPool2DGrad", relate_pool_grad, 3, false};
const Op op_nn_max_pool2d_grad = {
    .name = "nn.max_pool2d_grad",
    .args = "grad, data",
    .nargs = 2,
    .attrs = pool_specs,
    .nattrs = NMAX,
    .choices = "layout: *NCHW; out_layout: *NCHW -",
    .relation = &rel_max_pool2d_grad,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .shape = shape_pool_grad,
    .refuses_sizes = true,
    .lower = lower_max_pool2d_grad,
    .doc =
        "The derivative of nn.max_pool2d: each element of grad is added where the first largest\n"
        "element of its window stands in data.",
    .example = "nn.max_pool2d_grad([[[[5.0]]]], [[[[1.0, 3.0]]]], pool_size=[1, 2])",
    .example_result = "[[[[0.0, 5.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.max_pool2d",
};

/* ---- nn.max_pool2d_pick ---------------------------------------------------------------------- */

/* (values, data), both of data's shape. */
static int shape_pick(const OpCall *call, OutSpec *out) {
    Pool p;
    int64_t dims[4];
    if (!pool_resolve(call, 1, &p) || !shape_check_rank(call, 0, 4) ||
        !shape_check_same_dtype(call, 0, 1))
        return -1;
    for (int i = 0; i < 4; i++)
        if (!shape_check_dims(call, 0, i, 1, i))
            return -1;
    pooled_shape(&p, call->in[1], dims);
    return shape_set(call, out, call->in[0]->dtype, 4, dims) ? 1 : -1;
}

static RelStatus relate_pick(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    if (!rel_unify(s, r, 0, r->args[1]))
        return REL_FAIL;
    return relate_pool(s, r);
}

static bool lower_pick(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *values = call->in[0];
    Pool p;
    if (!pool_resolve(call, 1, &p))
        return false;
    Tensor *at = window_argmax(plan, &p, call->in[1]);
    int64_t strides[6], corner;
    window_strides(&p, values, strides, &corner);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 4, out[0]->shape);
    int in = step_in_strided(&s, values, strides, corner);
    Sc inside, offset = argmax_offset(&s, &p, values, at, &inside);
    sc_load_if(&s.body, in, values->dtype, offset, inside, 0);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_pick = {"MaxPool2DPick", relate_pick, 3, false};
const Op op_nn_max_pool2d_pick = {
    .name = "nn.max_pool2d_pick",
    .args = "values, data",
    .nargs = 2,
    .attrs = pool_specs,
    .nattrs = NMAX,
    .choices = "layout: *NCHW; out_layout: *NCHW -",
    .relation = &rel_pick,
    .dtypes = DTS_NUM,
    .pattern = OP_INJECTIVE,
    .shape = shape_pick,
    .refuses_sizes = true,
    .lower = lower_pick,
    .doc = "For each window the element of values that stands where data is largest: the "
           "derivative of\n"
           "nn.max_pool2d_grad.",
    .example = "nn.max_pool2d_pick([[[[7.0, 8.0]]]], [[[[1.0, 3.0]]]], pool_size=[1, 2])",
    .example_result = "[[[[8.0]]]] : Tensor[(1, 1, 1, 1), float32]",
    .see_also = "nn.max_pool2d",
};

/* ---- nn.avg_pool2d --------------------------------------------------------------------------- */

/* How many elements of the window at the current place lie in x, along one side; at least 1 over
 * both is taken by the caller. The first inside is k0 = ceil((before - at) / dilation). */
static Sc inside_count(StepBuilder *s, const Pool *p, int j) {
    ScalarBuilder *b = &s->body;
    Sc zero = sc_i64(b, 0), one = sc_i64(b, 1);
    Sc before = step_iparam(s, b, DT_I64, p->w.before[j]),
       d = step_iparam(s, b, DT_I64, p->w.dilation[j]);
    Sc n = step_iparam(s, b, DT_I64, p->size[j]), k = step_iparam(s, b, DT_I64, p->w.kernel[j]);
    Sc at = sc_mul(b, sc_iota(b, p->axis[j]), step_iparam(s, b, DT_I64, p->w.stride[j]));
    Sc start = sc_sub(b, at, before);
    Sc low = sc_max(b, zero, sc_neg(b, sc_floor_div(b, start, d)));
    Sc high = sc_min(b, k, sc_add(b, sc_floor_div(b, sc_sub(b, sc_sub(b, n, one), start), d), one));
    return sc_max(b, zero, sc_sub(b, high, low));
}

/* out = x / (number of elements in the window), over the result's domain. */
static void divide_by_count(Plan *plan, const Pool *p, Tensor *out, const Tensor *x) {
    DType t = sc_type_of(x->dtype);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 4, out->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, x), x->dtype), n;
    if (p->include_pad || !pool_reaches_out(p)) {
        n = step_iparam(&s, b, DT_I64, p->w.kernel[0] * p->w.kernel[1]);
    } else {
        n = sc_mul(b, inside_count(&s, p, 0), inside_count(&s, p, 1));
        n = sc_max(b, n, sc_i64(b, 1));
    }
    v = sc_div(b, v, sc_cast(b, n, t));
    sc_cast(b, v, sc_type_of(out->dtype));
    step_out(&s, out);
    step_end(&s);
}

static bool lower_avg_pool2d(const OpCall *call, Tensor *const *out, Plan *plan) {
    Pool p;
    if (!pool_resolve(call, 0, &p))
        return false;
    DType acc = reduce_acc_type(out[0]->dtype);
    Tensor *sum = plan_temp(plan, acc, 4, out[0]->shape);
    fold_windows(plan, &p, sum, call->in[0], COMBINE_SUM, acc, false);
    divide_by_count(plan, &p, out[0], sum);
    return true;
}

static const RelDef rel_avg_pool2d = {"AvgPool2D", relate_pool, 2, false};
const Op op_nn_avg_pool2d = {
    .name = "nn.avg_pool2d",
    .args = "data",
    .nargs = 1,
    .attrs = pool_specs,
    .nattrs = NAVG,
    .choices = "layout: *NCHW; out_layout: *NCHW -",
    .relation = &rel_avg_pool2d,
    .dtypes = DTS_NUM,
    .pattern = OP_REDUCE,
    .shape = shape_pool,
    .refuses_sizes = true,
    .lower = lower_avg_pool2d,
    .doc = "The mean of each window of data (n, c, h, w), of the elements that are not padding.",
    .example = "nn.avg_pool2d([[[[1.0, 3.0, 2.0, 0.0]]]], pool_size=[1, 2], strides=[1, 2])",
    .example_result = "[[[[2.0, 1.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.max_pool2d, nn.global_avg_pool2d",
};

/* Place h of data gets from result y = (h + before - k * dilation) / stride, for each k of the
 * window where that is a place of the result. */
static bool lower_avg_pool2d_grad(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *g = call->in[0];
    Pool p;
    if (!pool_pair(call, &p))
        return false;
    DType acc = reduce_acc_type(g->dtype);
    Tensor *share = plan_temp(plan, acc, 4, g->shape);
    divide_by_count(plan, &p, share, g);
    int64_t strides[6];
    memcpy(strides, share->strides, 4 * sizeof *strides);
    for (int j = 0; j < 2; j++)
        strides[p.axis[j]] = strides[4 + j] = 0;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, 4, out[0]->shape);
    step_reduce_over(&s, 2, p.w.kernel);
    step_combine(&s, COMBINE_SUM, acc);
    ScalarBuilder *b = &s.body;
    int in = step_in_strided(&s, share, strides, 0);
    Sc zero = sc_i64(b, 0), inside = -1, offset = -1;
    for (int j = 0; j < 2; j++) {
        Sc k = sc_mul(b, sc_iota(b, 4 + j), step_iparam(&s, b, DT_I64, p.w.dilation[j]));
        Sc h = sc_add(b, sc_iota(b, p.axis[j]), step_iparam(&s, b, DT_I64, p.w.before[j]));
        Sc u = sc_sub(b, h, k), step = step_iparam(&s, b, DT_I64, p.w.stride[j]);
        Sc y = sc_div(b, u, step);
        Sc ok = sc_and(b, sc_ge(b, u, zero), sc_eq(b, sc_rem(b, u, step), zero));
        ok = sc_and(b, ok, sc_lt(b, y, step_iparam(&s, b, DT_I64, p.count[j])));
        Sc skip = sc_mul(b, y, step_iparam(&s, b, DT_I64, share->strides[p.axis[j]]));
        inside = j ? sc_and(b, inside, ok) : ok;
        offset = j ? sc_add(b, offset, skip) : skip;
    }
    sc_load_if(b, in, acc, offset, inside, 0);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_avg_pool2d_grad = {"AvgPool2DGrad", relate_pool_grad, 3, false};
const Op op_nn_avg_pool2d_grad = {
    .name = "nn.avg_pool2d_grad",
    .args = "grad, data",
    .nargs = 2,
    .attrs = pool_specs,
    .nattrs = NAVG,
    .choices = "layout: *NCHW; out_layout: *NCHW -",
    .relation = &rel_avg_pool2d_grad,
    .dtypes = DTS_NUM,
    .pattern = OP_REDUCE,
    .shape = shape_pool_grad,
    .refuses_sizes = true,
    .lower = lower_avg_pool2d_grad,
    .doc =
        "The derivative of nn.avg_pool2d: each element of grad spread evenly over its window. Of\n"
        "data only the shape matters.",
    .example = "nn.avg_pool2d_grad([[[[4.0]]]], [[[[0.0, 0.0]]]], pool_size=[1, 2])",
    .example_result = "[[[[2.0, 2.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.avg_pool2d",
};

/* ---- global pools ---------------------------------------------------------------------------- */

static int shape_global_pool(const OpCall *call, OutSpec *out) {
    int place[4];
    int64_t dims[4];
    const Tensor *x = call->in[0];
    layout_read(attrs_text(call->attrs, "layout"), "NCHW", place);
    if (!shape_check_rank(call, 0, 4))
        return -1;
    memcpy(dims, x->shape, sizeof dims);
    if (dims[place[2]] == 0 || dims[place[3]] == 0) {
        shape_error(call, DIAG_R0318, "a plane of shape (%lld, %lld) has no elements",
                    (long long)dims[place[2]], (long long)dims[place[3]]);
        return -1;
    }
    dims[place[2]] = dims[place[3]] = 1;
    return shape_set(call, out, x->dtype, 4, dims) ? 1 : -1;
}

static RelStatus relate_global_pool(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM}, &status))
        return status;
    int place[4];
    uint32_t rank;
    Type **dims;
    if (!rel_make_rank(s, r, 0, 4))
        return REL_FAIL;
    rel_rank_in(r->args[0], &rank, &dims);
    layout_read(attrs_text(r->attrs, "layout"), "NCHW", place);
    if (rank != 4) {
        rel_error(s, r, DIAG_R0313, "`%s` takes 4 axes", r->op->name);
        return REL_FAIL;
    }
    Type **out = rel_copy_dims(4, dims, 0);
    out[place[2]] = rel_int_dim(r, 1);
    out[place[3]] = rel_int_dim(r, 1);
    return rel_result(s, r, out, 4, rel_dtype_in(r->args[0])) == REL_FAIL ? REL_FAIL : REL_DONE;
}

enum { GLOBAL_AVG, GLOBAL_MAX };

static bool lower_global_pool(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int place[4];
    layout_read(attrs_text(call->attrs, "layout"), "NCHW", place);
    uint32_t axes = 1u << place[2] | 1u << place[3];
    if (call->op->variant == GLOBAL_MAX) {
        plan_reduce(plan, out[0], x, axes, COMBINE_MAX);
        return true;
    }
    DType acc = reduce_acc_type(x->dtype);
    int64_t strides[6], extents[2];
    memcpy(strides, x->strides, 4 * sizeof *strides);
    for (int j = 0; j < 2; j++) {
        strides[place[2 + j]] = 0;
        strides[4 + j] = x->strides[place[2 + j]];
        extents[j] = x->shape[place[2 + j]];
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, 4, out[0]->shape);
    step_reduce_over(&s, 2, extents);
    step_combine(&s, COMBINE_SUM, acc);
    Sc v = sc_load(&s.body, step_in_strided(&s, x, strides, 0), x->dtype);
    sc_cast(&s.body, v, acc);
    ScalarBuilder *e = &s.epilogue;
    Sc sum = sc_acc(e, acc), n;
    if (dtype_is_float(acc))
        n = step_fparam(&s, e, acc, (double)(extents[0] * extents[1]));
    else
        n = step_iparam(&s, e, acc, extents[0] * extents[1]);
    sc_div(e, sum, n);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec global_specs[] = {
    {"layout", AT_STRING, "\"NCHW\"", "what data's axes are"},
    {"out_layout", AT_STRING, "\"\"", "the same"},
};
static const RelDef rel_global_avg_pool2d = {"GlobalAvgPool2D", relate_global_pool, 2, false};
const Op op_nn_global_avg_pool2d = {
    .name = "nn.global_avg_pool2d",
    .args = "data",
    .nargs = 1,
    .attrs = global_specs,
    .nattrs = 2,
    .choices = "layout: *NCHW; out_layout: *NCHW -",
    .relation = &rel_global_avg_pool2d,
    .dtypes = DTS_NUM,
    .pattern = OP_REDUCE,
    .variant = GLOBAL_AVG,
    .shape = shape_global_pool,
    .refuses_sizes = true,
    .lower = lower_global_pool,
    .doc = "The mean of each plane: (n, c, h, w) to (n, c, 1, 1).",
    .example = "nn.global_avg_pool2d([[[[1.0, 3.0]]]])",
    .example_result = "[[[[2.0]]]] : Tensor[(1, 1, 1, 1), float32]",
    .see_also = "nn.avg_pool2d, mean",
};
static const RelDef rel_global_max_pool2d = {"GlobalMaxPool2D", relate_global_pool, 2, false};
const Op op_nn_global_max_pool2d = {
    .name = "nn.global_max_pool2d",
    .args = "data",
    .nargs = 1,
    .attrs = global_specs,
    .nattrs = 2,
    .choices = "layout: *NCHW; out_layout: *NCHW -",
    .relation = &rel_global_max_pool2d,
    .dtypes = DTS_NUM,
    .pattern = OP_REDUCE,
    .variant = GLOBAL_MAX,
    .shape = shape_global_pool,
    .refuses_sizes = true,
    .lower = lower_global_pool,
    .doc = "The largest element of each plane: (n, c, h, w) to (n, c, 1, 1).",
    .example = "nn.global_max_pool2d([[[[1.0, 3.0]]]])",
    .example_result = "[[[[3.0]]]] : Tensor[(1, 1, 1, 1), float32]",
    .see_also = "nn.max_pool2d, max",
};
