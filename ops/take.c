/* SPDX-License-Identifier: Apache-2.0 */
/* take, gather and one_hot: reading at places that are elements of a tensor of indices. The domain
 * is the result's; the indexed axis of data has stride 0 there and the index supplies the offset.
 */
#include <string.h>

#include "base/mem.h"
#include "ops/gather.h"
#include "ops/relate/solve.h"

Sc sc_place(ScalarBuilder *b, Sc index, Sc n, IndexMode mode) {
    Sc zero = sc_i64(b, 0);
    switch (mode) {
    case INDEX_CLIP: {
        Sc last = sc_sub(b, n, sc_i64(b, 1));
        return sc_max(b, sc_min(b, index, last), zero);
    }
    case INDEX_WRAP: return sc_floor_mod(b, index, n);
    case INDEX_CHECK: break;
    }
    Sc back = sc_add(b, index, n);
    Sc place = sc_select(b, sc_lt(b, index, zero), back, index);
    sc_check(b, sc_in_range(b, place, n), KERNEL_INDEX);
    return place;
}

bool find_index_outside(const Tensor *at, int64_t least, int64_t n, const int64_t *ignored,
                        int64_t *index) {
    const Tensor *all = tensor_contiguous(at);
    const char *p = tensor_data(all);
    for (int64_t i = 0; i < all->count; i++, p += dtype_size(all->dtype)) {
        *index = elem_get_int(p, all->dtype);
        if ((*index < least || *index >= n) && !(ignored && *index == *ignored))
            return true;
    }
    return false;
}

const char *blame_index_of_axis(const OpCall *call) {
    const Tensor *x = call->in[0];
    bool flat = attrs_is_none(call->attrs, "axis");
    int axis = flat ? 0 : lower_axis(call, "axis", x->rank);
    int64_t n = flat ? x->count : x->shape[axis], index;
    if (!find_index_outside(call->in[1], -n, n, NULL, &index))
        return NULL;
    return flat ? fmt_text("index %lld is out of range for %lld element%s", (long long)index,
                           (long long)n, n == 1 ? "" : "s")
                : fmt_text("index %lld is out of range for axis %d of size %lld", (long long)index,
                           axis, (long long)n);
}

/* ---- take ------------------------------------------------------------------------------------ */

typedef struct Take {
    int axis, batch; /* axis -1: data is flattened */
    int rank;        /* of the result */
    int64_t shape[2 * TENSOR_MAX_RANK];
    IndexMode mode;
} Take;

/* Sizes are numbers (t not NULL) or types. */
static const char *take_axes(const Attrs *attrs, int rank, int nindex, Take *t) {
    const char *mode = attrs_text(attrs, "mode");
    if (!strcmp(mode, "clip"))
        t->mode = INDEX_CLIP;
    else if (!strcmp(mode, "wrap"))
        t->mode = INDEX_WRAP;
    else
        t->mode = INDEX_CHECK;
    int64_t batch = attrs_int(attrs, "batch_dims");
    if (batch < 0)
        batch += nindex;
    if (batch < 0 || batch > nindex)
        return "batch_dims is more than the axes of `indices`";
    t->batch = (int)batch;
    t->axis = -1;
    if (attrs_is_none(attrs, "axis"))
        return batch ? "batch_dims needs an axis" : NULL;
    int64_t axis = attrs_int(attrs, "axis");
    if (axis < 0)
        axis += rank;
    if (axis < 0 || axis >= rank)
        return "axis is none of `data`";
    if (batch > axis)
        return "batch_dims is more than axis";
    t->axis = (int)axis;
    if (rank - 1 + nindex - t->batch > TENSOR_MAX_RANK)
        return "the result would have too many axes";
    return NULL;
}

static bool take_plan(const OpCall *call, const Tensor *x, const Tensor *i, Take *t) {
    const char *problem = take_axes(call->attrs, x->rank, i->rank, t);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s (`data` has shape %s, `indices` %s)", problem,
                    shape_text(x->rank, x->shape), shape_text(i->rank, i->shape));
        return false;
    }
    t->rank = 0;
    for (int k = 0; k < t->axis; k++) {
        t->shape[t->rank++] = x->shape[k];
        if (k < t->batch && x->shape[k] != i->shape[k]) {
            shape_error(call, DIAG_R0314, "axis %d of `data` has size %lld and of `indices` %lld",
                        k, (long long)x->shape[k], (long long)i->shape[k]);
            return false;
        }
    }
    for (int k = t->batch; k < i->rank; k++)
        t->shape[t->rank++] = i->shape[k];
    for (int k = t->axis + 1; k < x->rank && t->axis >= 0; k++)
        t->shape[t->rank++] = x->shape[k];
    int64_t n = t->axis < 0 ? x->count : x->shape[t->axis], count = 1;
    for (int k = 0; k < t->rank; k++)
        count = size_multiply(count, t->shape[k]);
    if (n == 0 && count) {
        shape_error(call, DIAG_R0602, "there is nothing to take from: `data` has shape %s",
                    shape_text(x->rank, x->shape));
        return false;
    }
    return true;
}

static int shape_take(const OpCall *call, OutSpec *out) {
    Take t;
    if (!shape_check_dtype(call, 1, DTS_INT) || !take_plan(call, call->in[0], call->in[1], &t))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, t.rank, t.shape) ? 1 : -1;
}

/* The axes of the indices, but those shared, replace one of data: two of the three ranks tell the
 * third. */
static bool take_ranks(Solver *s, Relation *r, bool flat) {
    uint32_t rank, nx, ni;
    Type **dims;
    int64_t batch = attrs_int(r->attrs, "batch_dims");
    if (flat)
        return batch >= 0 || rel_give_rank(s, r, 1, -batch);
    if (!rel_rank_in(rel_result_arg(r), &rank, &dims))
        return true;
    bool has_x = rel_rank_in(r->args[0], &nx, &dims), has_i = rel_rank_in(r->args[1], &ni, &dims);
    if (!has_x && batch < 0) /* counted from the indices' last axis */
        return rel_give_rank(s, r, 0, (int64_t)rank + 1 + batch);
    if (!has_x && has_i)
        return rel_give_rank(s, r, 0, (int64_t)rank + 1 - ni + batch);
    return !has_x || has_i || batch < 0 || rel_give_rank(s, r, 1, (int64_t)rank + 1 - nx + batch);
}

static RelStatus relate_take(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT}, &status))
        return status;
    uint32_t nx = 0, ni;
    Type **x = NULL, **i, *dtype = rel_dtype_in(r->args[0]);
    bool flat = attrs_is_none(r->attrs, "axis");
    Take t;
    if (!take_ranks(s, r, flat))
        return REL_FAIL;
    const char *problem = flat && rel_rank_in(r->args[1], &ni, &i)
                              ? take_axes(r->attrs, 0, (int)ni, &t)
                          : flat && attrs_int(r->attrs, "batch_dims") > 0
                              ? "batch_dims needs an axis"
                              : NULL;
    if (flat && !problem)
        return rel_result_type(s, r, type_tensor(rel_shape_in(r->args[1]), dtype)) == REL_FAIL
                   ? REL_FAIL
                   : REL_DONE;
    if (!flat && (!rel_rank_in(r->args[0], &nx, &x) || !rel_rank_in(r->args[1], &ni, &i)))
        return rel_wait(s, r, dtype);
    if (!flat)
        problem = take_axes(r->attrs, (int)nx, (int)ni, &t);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`take`: %s", problem);
        return REL_FAIL;
    }
    Type **out = mem_new_n(Type *, nx + ni + 1);
    uint32_t n = 0;
    for (int k = 0; k < t.axis; k++) {
        out[n++] = x[k];
        if (k < t.batch && !rel_unify_dim(s, r, i[k], x[k], 1, k))
            return REL_FAIL;
    }
    for (uint32_t k = (uint32_t)t.batch; k < ni; k++)
        out[n++] = i[k];
    for (uint32_t k = (uint32_t)t.axis + 1; k < nx; k++)
        out[n++] = x[k];
    return rel_result(s, r, out, n, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* Strides of data (or of what is added into) and of the indices over the domain of the result. */
static int64_t take_strides(const Take *t, const Tensor *x, const Tensor *i, int64_t *xs,
                            int64_t *is) {
    int n = 0;
    for (int k = 0; k < t->axis; k++) {
        is[n] = k < t->batch ? i->strides[k] : 0;
        xs[n++] = x->strides[k];
    }
    for (int k = t->batch; k < i->rank; k++) {
        is[n] = i->strides[k];
        xs[n++] = 0;
    }
    for (int k = t->axis + 1; k < x->rank && t->axis >= 0; k++) {
        is[n] = 0;
        xs[n++] = x->strides[k];
    }
    return t->axis < 0 ? 1 : x->strides[t->axis];
}

static bool lower_take(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *i = call->in[1];
    Take t;
    if (!take_plan(call, x, i, &t))
        return false;
    if (t.axis < 0)
        x = plan_contiguous(plan, x);
    int64_t xs[2 * TENSOR_MAX_RANK], is[2 * TENSOR_MAX_RANK];
    int64_t stride = take_strides(&t, x, i, xs, is);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, t.rank, t.shape);
    ScalarBuilder *b = &s.body;
    int from = step_in_strided(&s, x, xs, 0), at = step_in_strided(&s, i, is, 0);
    Sc n = step_iparam(&s, b, DT_I64, t.axis < 0 ? x->count : x->shape[t.axis]);
    Sc step = step_iparam(&s, b, DT_I64, stride);
    Sc place = sc_place(b, sc_index_load(b, at, i->dtype), n, t.mode);
    sc_load_at(b, from, x->dtype, sc_mul(b, place, step));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_take = {"Take", relate_take, 3, false};
static const AttrSpec take_attrs[] = {
    {"batch_dims", AT_INT, "0", "leading axes that data and indices share"},
    {"axis", AT_INT_OPT, "None", "the axis to take from; None: of the flattened tensor"},
    {"mode", AT_STRING, "\"clip\"",
     "index outside: \"clip\" the nearest, \"wrap\" modulo, \"fast\" "
     "negative from the end, else an error"},
};
/* The batch axes, which both have. */
static void write_take_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    int64_t batch = attrs_int(attrs, "batch_dims");
    if (batch < 0 && nin > 1 && ranks[1] > 0)
        batch += ranks[1];
    for (int arg = 0; arg < 2; arg++) {
        str_add(out, arg ? ", (" : "(");
        for (int64_t i = 0; i < batch && i < TENSOR_MAX_RANK; i++)
            str_printf(out, "b%lld, ", (long long)i);
        str_add(out, "...)");
    }
}

const Op op_take = {
    .name = "take",
    .args = "data, indices",
    .nargs = 2,
    .write_sizes = write_take_sizes,
    .attrs = take_attrs,
    .nattrs = 3,
    .choices = "mode: clip wrap fast",
    .relation = &rel_take,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_take,
    .lower = lower_take,
    .blame_index = blame_index_of_axis,
    .doc = "The parts of data along an axis that the indices name; the indices' axes replace that "
           "one.",
    .example = "take([[1, 2], [3, 4]], [1, 0, 1], axis=0)",
    .example_result = "[[3, 4],\n [1, 2],\n [3, 4]] : Tensor[(3, 2), int32]",
    .see_also = "gather, gather_nd, one_hot",
};

/* (update, indices, data) */
static int shape_take_add(const OpCall *call, OutSpec *out) {
    const Tensor *u = call->in[0], *x = call->in[2];
    Take t;
    if (!shape_check_dtype(call, 1, DTS_INT) || !take_plan(call, x, call->in[1], &t))
        return -1;
    bool fits = u->rank == t.rank;
    for (int i = 0; i < t.rank && fits; i++)
        fits = u->shape[i] == t.shape[i];
    if (!fits) {
        shape_error(call, DIAG_R0314, "`update` has shape %s, and what is taken %s",
                    shape_text(u->rank, u->shape), shape_text(t.rank, t.shape));
        return -1;
    }
    return shape_set(call, out, u->dtype, x->rank, x->shape) ? 1 : -1;
}

/* (update, indices, data): a result of data's shape and update's dtype. */
static RelStatus relate_third_shape(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_INT, DTS_ALL}, &status))
        return status;
    Type *t = type_tensor(rel_shape_in(r->args[2]), rel_dtype_in(r->args[0]));
    return rel_result_type(s, r, t) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_take_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *u = call->in[0], *i = call->in[1];
    Take t;
    if (!take_plan(call, out[0], i, &t))
        return false;
    int64_t xs[2 * TENSOR_MAX_RANK], is[2 * TENSOR_MAX_RANK];
    int64_t stride = take_strides(&t, out[0], i, xs, is);
    plan_fill_int(plan, out[0], 0);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, t.rank, t.shape);
    step_combine(&s, COMBINE_SUM, reduce_acc_type(u->dtype));
    ScalarBuilder *b = &s.body;
    int from = step_in(&s, u), at = step_in_strided(&s, i, is, 0);
    Sc n = step_iparam(&s, b, DT_I64, t.axis < 0 ? out[0]->count : out[0]->shape[t.axis]);
    Sc step = step_iparam(&s, b, DT_I64, stride);
    Sc place = sc_place(b, sc_index_load(b, at, i->dtype), n, t.mode);
    Sc offset = sc_mul(b, place, step);
    Sc value = sc_load(b, from, u->dtype);
    step_result(&s, value);
    step_result(&s, offset);
    step_out_strided(&s, out[0], xs, 0);
    step_end(&s);
    return true;
}

static const RelDef rel_take_add = {"TakeAdd", relate_third_shape, 4, false};
const Op op_take_add = {
    .name = "take_add",
    .args = "update, indices, data",
    .nargs = 3,
    .attrs = take_attrs,
    .nattrs = 3,
    .choices = "mode: clip wrap fast",
    .relation = &rel_take_add,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .shape = shape_take_add,
    .refuses_sizes = true,
    .lower = lower_take_add,
    .doc = "Zeros in data's shape, with each part of update added where take would read it: the\n"
           "derivative of take.",
    .example = "take_add([1, 2, 3], [0, 1, 0], [0, 0])",
    .example_result = "[4, 2] : Tensor[(2,), int32]",
    .see_also = "take",
};

/* ---- gather ---------------------------------------------------------------------------------- */

static int shape_gather(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *i = call->in[1];
    int axis;
    if (!shape_check_dtype(call, 1, DTS_INT) || !shape_check_min_rank(call, 0, 1) ||
        !shape_check_rank(call, 1, x->rank) || !shape_one_axis(call, "axis", x->rank, &axis))
        return -1;
    for (int k = 0; k < x->rank; k++) {
        if (k == axis || i->shape[k] <= x->shape[k])
            continue;
        shape_error(call, DIAG_R0314, "axis %d of `indices` has size %lld and of `data` only %lld",
                    k, (long long)i->shape[k], (long long)x->shape[k]);
        return -1;
    }
    return shape_set(call, out, x->dtype, i->rank, i->shape) ? 1 : -1;
}

static RelStatus relate_gather(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT}, &status))
        return status;
    uint32_t nx, ni, axis;
    Type **x, **i;
    Type *t = type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0]));
    if (rel_result_type(s, r, t) == REL_FAIL || !rel_same_rank(s, r, 0, 1))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &nx, &x) || !rel_rank_in(r->args[1], &ni, &i))
        return REL_WAIT;
    if (nx != ni) {
        rel_error(s, r, DIAG_R0313, "`gather`: `data` has %u axes and `indices` %u", nx, ni);
        return REL_FAIL;
    }
    if (!rel_one_axis(s, r, "axis", nx, &axis))
        return REL_FAIL;
    return rel_settled(r);
}

static bool lower_gather(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *i = call->in[1];
    int axis = lower_axis(call, "axis", x->rank);
    int64_t xs[TENSOR_MAX_RANK];
    memcpy(xs, x->strides, sizeof(int64_t) * (size_t)x->rank);
    xs[axis] = 0;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, i->rank, i->shape);
    ScalarBuilder *b = &s.body;
    int from = step_in_strided(&s, x, xs, 0), at = step_in(&s, i);
    Sc n = step_iparam(&s, b, DT_I64, x->shape[axis]);
    Sc stride = step_iparam(&s, b, DT_I64, x->strides[axis]);
    Sc place = sc_place(b, sc_index_load(b, at, i->dtype), n, INDEX_CHECK);
    sc_load_at(b, from, x->dtype, sc_mul(b, place, stride));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

/* Along other axes than `axis` there are no more indices than data. */
static void write_gather_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    int rank = nin && ranks[0] > 0 ? ranks[0] : 0, axis = (int)attrs_int(attrs, "axis");
    for (int arg = 0; arg < 2; arg++) {
        str_add(out, arg ? ", (" : "(");
        for (int i = 0; i < rank; i++)
            str_printf(out, i == (axis < 0 ? axis + rank : axis) ? "%s_" : "%s%sn%d", i ? ", " : "",
                       arg ? "<=" : "", i);
        str_add(out, ")");
    }
}

static const RelDef rel_gather = {"Gather", relate_gather, 3, false};
static const AttrSpec gather_attrs[] = {
    {"axis", AT_INT, NULL, "the axis that the indices are about"}};
const Op op_gather = {
    .name = "gather",
    .args = "data, indices",
    .nargs = 2,
    .write_sizes = write_gather_sizes,
    .attrs = gather_attrs,
    .nattrs = 1,
    .relation = &rel_gather,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_gather,
    .blame_index = blame_index_of_axis,
    .refuses_sizes = true,
    .lower = lower_gather,
    .doc =
        "One element of data for each index: at the index's own place, but on one axis where the\n"
        "index says. Negative indices count from the end; outside is an error. On the other axes\n"
        "indices may be smaller than data.",
    .example = "gather([[1, 2], [3, 4]], [[0, 0], [1, 0]], axis=1)",
    .example_result = "[[1, 1],\n [4, 3]] : Tensor[(2, 2), int32]",
    .see_also = "take, scatter_elements",
};

/* ---- one_hot --------------------------------------------------------------------------------- */

static int one_hot_axis(const Attrs *attrs, int rank) {
    int64_t axis = attrs_int(attrs, "axis");
    if (axis < 0)
        axis += rank + 1;
    return axis < 0 || axis > rank ? -1 : (int)axis;
}

static int shape_one_hot(const OpCall *call, OutSpec *out) {
    const Tensor *i = call->in[0];
    int64_t depth = attrs_int(call->attrs, "depth"), dims[TENSOR_MAX_RANK + 1];
    int axis = one_hot_axis(call->attrs, i->rank);
    if (!shape_check_dtype(call, 0, DTS_INT) || !shape_check_rank(call, 1, 0) ||
        !shape_check_rank(call, 2, 0) || !shape_check_same_dtype(call, 1, 2))
        return -1;
    if (axis < 0) {
        shape_error(call, DIAG_R0315, "axis=%lld: `indices` has %d axes, and one is added",
                    (long long)attrs_int(call->attrs, "axis"), i->rank);
        return -1;
    }
    if (depth < 0 || i->rank == TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0316, "depth=%lld: it is a size, and a tensor has at most %d axes",
                    (long long)depth, TENSOR_MAX_RANK);
        return -1;
    }
    for (int k = 0; k <= i->rank; k++)
        dims[k] = k == axis ? depth : i->shape[k < axis ? k : k - 1];
    return shape_set(call, out, shape_attr_dtype(call, "dtype", call->in[1]->dtype), i->rank + 1,
                     dims)
               ? 1
               : -1;
}

/* Two literals have one dtype, the result's where that is given. */
static void settle_on_off(Solver *s, Relation *r) {
    Type *on = type_resolve(r->args[1]), *off = type_resolve(r->args[2]);
    if (on->tag == TY_TENSOR && off->tag == TY_TENSOR)
        solver_unify(s, on->tensor.dtype, off->tensor.dtype); /* else it is reported below */
    for (uint32_t i = 1; i < 3; i++)
        rel_round_once(s, r, i, rel_attr_dtype(r, "dtype", solver_var(s, KIND_DTYPE)));
}

static RelStatus relate_one_hot(Solver *s, Relation *r) {
    RelStatus status;
    if (!rel_attrs_open(r))
        settle_on_off(s, r);
    if (rel_known(s, r, (DTypeSet[]){DTS_INT, DTS_ALL, DTS_ALL}, &status))
        return status;
    uint32_t rank;
    Type **dims;
    Type *scalar = type_tensor(type_shape(NULL, 0), rel_dtype_in(r->args[1]));
    if (!rel_unify(s, r, 1, scalar) || !rel_unify(s, r, 2, scalar) ||
        !rel_rank_of_result(s, r, 0, -1))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, rel_attr_dtype(r, "dtype", rel_dtype_in(r->args[1])));
    int axis = one_hot_axis(r->attrs, (int)rank);
    if (axis < 0) {
        rel_error(s, r, DIAG_R0315,
                  "`one_hot`: axis=%lld, where `indices` has %u axes and one is added",
                  (long long)attrs_int(r->attrs, "axis"), rank);
        return REL_FAIL;
    }
    Type **out = mem_new_n(Type *, rank + 2);
    for (uint32_t k = 0; k < rank; k++)
        out[(int)k < axis ? k : k + 1] = dims[k];
    const AttrValue *depth = attrs_get(r->attrs, "depth");
    out[axis] = depth->kind == ATTR_DIM
                    ? depth->dim
                    : type_dim_int(depth->i, rel_attr_origin(r, "depth", depth));
    Type *dtype = rel_attr_dtype(r, "dtype", rel_dtype_in(r->args[1]));
    return rel_result(s, r, out, rank + 1, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_one_hot(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *i = call->in[0];
    int axis = one_hot_axis(call->attrs, i->rank);
    int64_t is[TENSOR_MAX_RANK];
    for (int k = 0; k <= i->rank; k++)
        is[k] = k == axis ? 0 : i->strides[k < axis ? k : k - 1];
    DType type = sc_type_of(out[0]->dtype);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, i->rank + 1, out[0]->shape);
    ScalarBuilder *b = &s.body;
    int at = step_in_strided(&s, i, is, 0), on = step_in(&s, call->in[1]),
        off = step_in(&s, call->in[2]);
    Sc hit = sc_eq(b, sc_index_load(b, at, i->dtype), sc_iota(b, axis));
    Sc x = sc_cast(b, sc_load(b, on, call->in[1]->dtype), type);
    Sc y = sc_cast(b, sc_load(b, off, call->in[2]->dtype), type);
    sc_select(b, hit, x, y);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_one_hot = {"OneHot", relate_one_hot, 4, false};
static const AttrSpec one_hot_attrs[] = {
    {"depth", AT_DIM, "1", "the size of the new axis"},
    {"axis", AT_INT, "-1", "where the new axis goes"},
    {"dtype", AT_DTYPE, "None", "of the result; None: that of on_value"},
};
const Op op_one_hot = {
    .name = "one_hot",
    .args = "indices, on_value, off_value",
    .nargs = 3,
    .attrs = one_hot_attrs,
    .nattrs = 3,
    .relation = &rel_one_hot,
    .dtypes = DTS_INT,
    .pattern = OP_INJECTIVE,
    .shape = shape_one_hot,
    .lower = lower_one_hot,
    .doc = "A new axis of size depth that holds on_value at each index and off_value elsewhere.\n"
           "An index outside holds off_value everywhere.",
    .example = "one_hot([0, 2], 1.0, 0.0, depth=3)",
    .example_result = "[[1.0, 0.0, 0.0],\n [0.0, 0.0, 1.0]] : Tensor[(2, 3), float32]",
    .see_also = "take",
};
