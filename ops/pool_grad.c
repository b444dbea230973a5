/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives of pools, and of these: see ops/pool.h. */
#include <string.h>

#include "base/mem.h"
#include "ops/packed.h"
#include "ops/pool.h"

enum { STEP_RANK = POOL_RANK + WINDOW_SIDES }; /* the result's axes, and the window's */

/* (grad, data) of the result's shape and data's. */
static bool pool_pair(const OpCall *call, Pool *p) {
    const Tensor *g = call->in[0];
    int64_t dims[POOL_RANK];
    if (!pool_resolve(call, 1, p) || !shape_check_same_dtype(call, 0, 1))
        return false;
    pool_out_shape(p, call->in[1], dims);
    if (g->rank == p->rank && !memcmp(g->shape, dims, sizeof *dims * (size_t)p->rank))
        return true;
    shape_error(call, DIAG_R0314, "`grad` has shape %s, the pool %s", shape_text(g->rank, g->shape),
                shape_text(p->rank, dims));
    return false;
}

static int shape_pool_grad(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, "PL>L");
    Pool p;
    if (!pool_pair(call, &p))
        return -1;
    return shape_set(call, out, call->in[1]->dtype, p.rank, call->in[1]->shape) ? 1 : -1;
}

static RelStatus relate_pool_grad(Solver *s, Relation *r) {
    if (!rel_attrs_open(r) && packed_is(r->attrs))
        return packed_relate(s, r, "PL>L");
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    int rank = (int)strlen(attrs_text(r->attrs, "layout"));
    Type *g = type_tensor(rel_shape_in(r->args[0]), rel_dtype_in(r->args[1]));
    if (!rel_unify(s, r, 0, g) || !window_make_ranks(s, r, 2, rank))
        return REL_FAIL;
    return rel_result_type(s, r, r->args[1]) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* ---- of the largest -------------------------------------------------------------------------- */

/* The number, in its window, of the first largest element: of the result's shape, int64. */
static Tensor *window_argmax(Plan *plan, const Pool *p, const Tensor *x) {
    int64_t dims[POOL_RANK];
    pool_out_shape(p, x, dims);
    Tensor *at = plan_temp(plan, DT_I64, p->rank, dims);
    pool_fold(plan, p, at, x, COMBINE_ARGMAX, sc_type_of(x->dtype));
    return at;
}

/* From that number: whether it lies inside x (a window may hold only padding), and the offset in
 * elements from the window's corner. */
static Sc argmax_offset(StepBuilder *s, const Pool *p, const Tensor *x, const Tensor *at,
                        Sc *inside) {
    ScalarBuilder *b = &s->body;
    PoolPlace place = pool_place(s, p);
    Sc k = sc_load(b, step_in(s, at), DT_I64), offset = pool_skip(s, p, &place, x);
    for (int j = p->w.sides - 1; j >= 0; j--) {
        Sc n = step_iparam(s, b, DT_I64, p->w.kernel[j]), window = j ? sc_rem(b, k, n) : k;
        k = j ? sc_div(b, k, n) : k;
        Sc in = pool_inside(s, p, &place, j, window);
        *inside = j == p->w.sides - 1 ? in : sc_and(b, *inside, in);
        int64_t stride = p->w.dilation[j] * x->strides[p->axis[j]];
        offset = sc_add(b, offset, sc_mul(b, window, step_iparam(s, b, DT_I64, stride)));
    }
    return offset;
}

/* What a SCATTER over the first `rank` axes does where nothing is to be added: 0 goes to element 0, whose
 * place from the address that the strides give is their opposite. */
static void scatter_inside(StepBuilder *s, int rank, const int64_t *strides, Sc v, Sc offset,
                           Sc inside) {
    ScalarBuilder *b = &s->body;
    DType t = sc_type(b, v);
    Sc home = sc_i64(b, 0);
    for (int i = 0; i < rank; i++)
        home = sc_sub(b, home, sc_mul(b, sc_iota(b, i), step_iparam(s, b, DT_I64, strides[i])));
    offset = sc_select(b, inside, offset, home);
    step_result(s,
                sc_select(b, inside, v, dtype_is_float(t) ? sc_float(b, t, 0) : sc_int(b, t, 0)));
    step_result(s, offset);
}

static bool lower_max_pool_grad(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "PL>L");
    const Tensor *g = call->in[0], *x = call->in[1];
    Pool p;
    if (!pool_pair(call, &p))
        return false;
    Tensor *at = window_argmax(plan, &p, x);
    plan_fill_int(plan, out[0], 0);
    int64_t strides[STEP_RANK], corner;
    pool_strides(&p, out[0], strides, &corner);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, p.rank, g->shape);
    step_combine(&s, COMBINE_SUM, sc_type_of(g->dtype));
    ScalarBuilder *b = &s.body;
    Sc inside, v = sc_load(b, step_in(&s, g), g->dtype);
    Sc offset = argmax_offset(&s, &p, out[0], at, &inside);
    offset = sc_add(b, offset, step_iparam(&s, b, DT_I64, corner));
    scatter_inside(&s, p.rank, strides, v, offset, inside);
    step_out_strided(&s, out[0], strides, 0);
    step_end(&s);
    return true;
}

/* (values, data), both of data's shape. */
static int shape_pick(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, "LL>P");
    Pool p;
    int64_t dims[POOL_RANK];
    if (!pool_resolve(call, 1, &p) || !shape_check_rank(call, 0, p.rank) ||
        !shape_check_same_dtype(call, 0, 1))
        return -1;
    for (int i = 0; i < p.rank; i++)
        if (!shape_check_dims(call, 0, i, 1, i))
            return -1;
    pool_out_shape(&p, call->in[1], dims);
    return shape_set(call, out, call->in[0]->dtype, p.rank, dims) ? 1 : -1;
}

static RelStatus relate_pick(Solver *s, Relation *r) {
    if (!rel_attrs_open(r) && packed_is(r->attrs))
        return packed_relate(s, r, "LL>P");
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    if (!rel_unify(s, r, 0, r->args[1]))
        return REL_FAIL;
    return pool_relate(s, r);
}

static bool lower_pick(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "LL>P");
    const Tensor *values = call->in[0];
    Pool p;
    if (!pool_resolve(call, 1, &p))
        return false;
    Tensor *at = window_argmax(plan, &p, call->in[1]);
    int64_t strides[STEP_RANK], corner;
    pool_strides(&p, values, strides, &corner);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, p.rank, out[0]->shape);
    int in = step_in_strided(&s, values, strides, corner);
    Sc inside, offset = argmax_offset(&s, &p, values, at, &inside);
    sc_load_if(&s.body, in, values->dtype, offset, inside, 0);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_pick = {"MaxPoolPick", relate_pick, 3, false};
const Op op_nn_max_pool_pick = {
    .name = "nn.max_pool_pick",
    .args = "values, data",
    .nargs = 2,
    .attrs = pool_attrs_any,
    .nattrs = POOL_NANY,
    .choices = POOL_LAYOUTS_ANY,
    .relation = &rel_pick,
    .dtypes = DTS_NUM,
    .pattern = OP_INJECTIVE,
    .shape = shape_pick,
    .refuses_sizes = true,
    .lower = lower_pick,
    .doc = "For each window the element of values that stands where data is largest: the "
           "derivative of\n"
           "nn.max_pool_grad.",
    .example = "nn.max_pool_pick([[[[7.0, 8.0]]]], [[[[1.0, 3.0]]]], pool_size=[1, 2])",
    .example_result = "[[[[8.0]]]] : Tensor[(1, 1, 1, 1), float32]",
    .see_also = "nn.max_pool2d",
};

/* ---- of the mean ----------------------------------------------------------------------------- */

/* Windows of one size: place h of data gets from result y = (h + before - k * dilation) / stride, for each k
 * of the window where that is a place of the result. */
static void gather_shares(Plan *plan, const Pool *p, Tensor *out, const Tensor *share) {
    int64_t strides[STEP_RANK];
    memcpy(strides, share->strides, sizeof *strides * (size_t)p->rank);
    for (int j = 0; j < p->w.sides; j++)
        strides[p->axis[j]] = strides[p->rank + j] = 0;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, p->rank, out->shape);
    step_reduce_over(&s, p->w.sides, p->w.kernel);
    step_combine(&s, COMBINE_SUM, share->dtype);
    ScalarBuilder *b = &s.body;
    int in = step_in_strided(&s, share, strides, 0);
    Sc zero = sc_i64(b, 0), inside = -1, offset = -1;
    for (int j = 0; j < p->w.sides; j++) {
        Sc k = sc_mul(b, sc_iota(b, p->rank + j), step_iparam(&s, b, DT_I64, p->w.dilation[j]));
        Sc h = sc_add(b, sc_iota(b, p->axis[j]), step_iparam(&s, b, DT_I64, p->w.before[j]));
        Sc u = sc_sub(b, h, k), step = step_iparam(&s, b, DT_I64, p->w.stride[j]);
        Sc y = sc_div(b, u, step);
        Sc ok = sc_and(b, sc_ge(b, u, zero), sc_eq(b, sc_rem(b, u, step), zero));
        ok = sc_and(b, ok, sc_lt(b, y, step_iparam(&s, b, DT_I64, p->count[j])));
        Sc skip = sc_mul(b, y, step_iparam(&s, b, DT_I64, share->strides[p->axis[j]]));
        inside = j ? sc_and(b, inside, ok) : ok;
        offset = j ? sc_add(b, offset, skip) : skip;
    }
    sc_load_if(b, in, share->dtype, offset, inside, 0);
    step_out(&s, out);
    step_end(&s);
}

/* Adaptive windows: each adds its share to its places. */
static void scatter_shares(Plan *plan, const Pool *p, Tensor *out, const Tensor *share) {
    int64_t extents[STEP_RANK], from[STEP_RANK] = {0}, to[STEP_RANK], corner;
    pool_strides(p, out, to, &corner);
    for (int i = 0; i < p->rank; i++) {
        extents[i] = share->shape[i];
        from[i] = share->strides[i];
    }
    memcpy(extents + p->rank, p->w.kernel, sizeof *extents * (size_t)p->w.sides);
    plan_fill_int(plan, out, 0);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, p->rank + p->w.sides, extents);
    step_combine(&s, COMBINE_SUM, share->dtype);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in_strided(&s, share, from, 0), share->dtype);
    PoolPlace at = pool_place(&s, p);
    Sc inside = pool_inside_all(&s, p, &at);
    scatter_inside(&s, p->rank + p->w.sides, to, v, pool_skip(&s, p, &at, out), inside);
    step_out_strided(&s, out, to, 0);
    step_end(&s);
}

static bool lower_avg_pool_grad(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "PL>L");
    const Tensor *g = call->in[0];
    Pool p;
    if (!pool_pair(call, &p))
        return false;
    DType acc = reduce_acc_type(g->dtype);
    Tensor *share = plan_temp(plan, acc, p.rank, g->shape);
    pool_divide(plan, &p, share, g);
    if (!p.adaptive) {
        gather_shares(plan, &p, out[0], share);
        return true;
    }
    Tensor *sum = out[0]->dtype == acc ? out[0] : plan_temp(plan, acc, p.rank, out[0]->shape);
    scatter_shares(plan, &p, sum, share);
    if (sum != out[0])
        plan_copy(plan, out[0], sum);
    return true;
}

#define POOL_GRAD(symbol, op_name, rel, op_pattern, op_lower, op_attrs, n, layouts, text, shown,   \
                  value, see)                                                                      \
    static const RelDef rel_##symbol = {rel, relate_pool_grad, 3, false};                          \
    const Op op_##symbol = {                                                                       \
        .name = op_name,                                                                           \
        .args = "grad, data",                                                                      \
        .nargs = 2,                                                                                \
        .attrs = op_attrs,                                                                         \
        .nattrs = n,                                                                               \
        .choices = layouts,                                                                        \
        .relation = &rel_##symbol,                                                                 \
        .dtypes = DTS_NUM,                                                                         \
        .pattern = op_pattern,                                                                     \
        .shape = shape_pool_grad,                                                                  \
        .refuses_sizes = true,                                                                     \
        .lower = op_lower,                                                                         \
        .doc = text,                                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = see,                                                                           \
    };

POOL_GRAD(nn_max_pool2d_grad, "nn.max_pool2d_grad", "MaxPool2DGrad", OP_OPAQUE, lower_max_pool_grad,
          pool_attrs_2d, POOL_NMAX, POOL_LAYOUTS("+NCHW"),
          "The derivative of nn.max_pool2d: each element of grad is added where the first largest\n"
          "element of its window stands in data.",
          "nn.max_pool2d_grad([[[[5.0]]]], [[[[1.0, 3.0]]]], pool_size=[1, 2])",
          "[[[[0.0, 5.0]]]] : Tensor[(1, 1, 1, 2), float32]", "nn.max_pool2d")
POOL_GRAD(nn_max_pool_grad, "nn.max_pool_grad", "MaxPoolGrad", OP_OPAQUE, lower_max_pool_grad,
          pool_attrs_any, POOL_NANY, POOL_LAYOUTS_ANY,
          "The derivative of a pool of the largest, of one to three dimensions, with windows of\n"
          "pool_size or output_size of them.",
          "nn.max_pool_grad([[[5.0, 7.0]]], [[[1.0, 3.0, 2.0]]], output_size=[2], layout=\"NCW\")",
          "[[[ 0.0, 12.0,  0.0]]] : Tensor[(1, 1, 3), float32]", "nn.max_pool2d_grad")
POOL_GRAD(
    nn_avg_pool2d_grad, "nn.avg_pool2d_grad", "AvgPool2DGrad", OP_REDUCE, lower_avg_pool_grad,
    pool_attrs_2d, POOL_NAVG, POOL_LAYOUTS("+NCHW"),
    "The derivative of nn.avg_pool2d: each element of grad spread evenly over its window. Of\n"
    "data only the shape matters.",
    "nn.avg_pool2d_grad([[[[4.0]]]], [[[[0.0, 0.0]]]], pool_size=[1, 2])",
    "[[[[2.0, 2.0]]]] : Tensor[(1, 1, 1, 2), float32]", "nn.avg_pool2d")
POOL_GRAD(nn_avg_pool_grad, "nn.avg_pool_grad", "AvgPoolGrad", OP_OPAQUE, lower_avg_pool_grad,
          pool_attrs_any, POOL_NANY, POOL_LAYOUTS_ANY,
          "The derivative of an average pool, of one to three dimensions, with windows of\n"
          "pool_size or output_size of them.",
          "nn.avg_pool_grad([[[4.0, 6.0]]], [[[0.0, 0.0, 0.0]]], output_size=[2], layout=\"NCW\")",
          "[[[2.0, 5.0, 3.0]]] : Tensor[(1, 1, 3), float32]", "nn.avg_pool2d_grad")
