/* SPDX-License-Identifier: Apache-2.0 */
/* Slices with constant bounds (strided_slice), with bounds that are tensors (dyn.strided_slice,
 * strided_set), and in the shape of another tensor (slice_like). */
#include "ops/slice.h"

#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

void slice_resolve(const SliceRange *r, int64_t size, int64_t *first, int64_t *count) {
    int64_t low = r->step > 0 ? 0 : -1, high = r->step > 0 ? size : size - 1;
    int64_t b = r->step > 0 ? low : high, e = r->step > 0 ? high : low;
    if (r->has_begin) {
        b = r->begin < 0 ? r->begin + size : r->begin;
        b = b < low ? low : b > high ? high : b;
    }
    if (r->has_end) {
        e = r->end < 0 ? r->end + size : r->end;
        e = e < low ? low : e > high ? high : e;
    }
    *first = b;
    if (r->step > 0)
        *count = e > b ? (e - b - 1) / r->step + 1 : 0;
    else
        *count = b > e ? (int64_t)((uint64_t)(b - e - 1) / (0 - (uint64_t)r->step)) + 1 : 0;
}

/* ---- symbolic sizes -------------------------------------------------------------------------- */

/* A place on an axis of size d: k from the front, but at most d; or k from the end, at least 0. */
typedef struct Place {
    bool from_end;
    Type *k;
} Place;

/* Numbers beyond this are outside of any axis. */
static const int64_t far = (int64_t)1 << 60;

/* past: the place after the one that `at` names. */
static Place place_of(Relation *r, Type *at, bool past) {
    int64_t v;
    if (!type_get_int(type_resolve(at), &v))
        return (Place){false, past ? dim_add_int(at, 1) : at};
    bool from_end = v < 0;
    if (v >= far || v <= -far)
        return (Place){!from_end, rel_int_dim(r, 0)};
    return (Place){from_end, rel_int_dim(r, from_end ? -v - past : v + past)};
}

static Type *difference(Relation *r, Type *a, Type *b) {
    return dim_max(dim_sub(a, b), rel_int_dim(r, 0));
}

/* max(high - low, 0) on an axis of size d. */
static Type *distance(Relation *r, Type *d, Place low, Place high) {
    if (!low.from_end && high.from_end)
        return difference(r, d, dim_add(low.k, high.k));
    if (!low.from_end)
        return dim_min(difference(r, d, low.k), difference(r, high.k, low.k));
    if (high.from_end)
        return dim_min(difference(r, d, high.k), difference(r, low.k, high.k));
    Type *between = dim_sub(dim_add(high.k, low.k), d), *least = dim_min(d, dim_min(high.k, low.k));
    return dim_max(dim_min(between, least), rel_int_dim(r, 0));
}

Type *rel_slice_size(Relation *r, Type *d, Type *begin, Type *end, int64_t step) {
    Place low = {false, rel_int_dim(r, 0)}, high = {true, rel_int_dim(r, 0)};
    if (step > 0 ? begin : end)
        low = place_of(r, step > 0 ? begin : end, step < 0);
    if (step > 0 ? end : begin)
        high = place_of(r, step > 0 ? end : begin, step < 0);
    Type *n = distance(r, d, low, high);
    if (step <= -far || step >= far)
        return dim_min(n, rel_int_dim(r, 1));
    int64_t by = step < 0 ? -step : step;
    return dim_floordiv(dim_add_int(n, by - 1), rel_int_dim(r, by));
}

void plan_slice_set(Plan *plan, Tensor *out, const SliceView *view, const Tensor *t, bool add) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, view->rank, view->shape);
    ScalarBuilder *b = &s.body;
    DType type = sc_type_of(out->dtype);
    Sc x = sc_cast(b, sc_load(b, step_in(&s, t), t->dtype), type);
    if (add) {
        int old = step_in_strided(&s, out, view->strides, view->offset);
        Sc y = sc_load(b, old, out->dtype);
        sc_add(b, y, x);
    }
    step_out_strided(&s, out, view->strides, view->offset);
    step_end(&s);
}

static void view_of(const Tensor *t, SliceView *v) {
    v->rank = t->rank;
    v->offset = 0;
    memcpy(v->shape, t->shape, sizeof(int64_t) * (size_t)t->rank);
    memcpy(v->strides, t->strides, sizeof(int64_t) * (size_t)t->rank);
}

static void view_slice(SliceView *v, int axis, const SliceRange *r) {
    int64_t first, count;
    slice_resolve(r, v->shape[axis], &first, &count);
    if (count)
        v->offset += first * v->strides[axis];
    v->strides[axis] *= r->step;
    v->shape[axis] = count;
}

/* ---- strided_slice --------------------------------------------------------------------------- */

/* Which item of the lists is about each axis of data, or -1; a problem, or NULL. */
static const char *slice_items(const Attrs *attrs, int rank, int *items) {
    int64_t axes[TENSOR_MAX_RANK];
    const AttrValue *begin = attrs_get(attrs, "begin"), *end = attrs_get(attrs, "end"),
                    *step = attrs_get(attrs, "strides");
    int na = attr_int_list(attrs, "axes", axes, TENSOR_MAX_RANK);
    int nb = begin->kind == ATTR_LIST ? (int)begin->list.n : -1,
        ne = end->kind == ATTR_LIST ? (int)end->list.n : -1, n = nb > ne ? nb : ne;
    if (n < 0 && step->kind == ATTR_LIST) /* strides alone name the axes */
        n = (int)step->list.n;
    if (na >= 0 && na < n)
        return "axes are fewer than the slices";
    if (na >= 0)
        n = na;
    if (n > rank && na < 0)
        return "there are more slices than axes";
    for (int i = 0; i < rank; i++)
        items[i] = -1;
    for (int i = 0; i < n; i++) {
        int64_t axis = na >= 0 ? axes[i] : i;
        if (axis < 0)
            axis += rank;
        if (axis < 0 || axis >= rank || items[axis] >= 0)
            return "axes name an axis that is not there, or one twice";
        items[axis] = i;
    }
    return NULL;
}

/* Item i of a list, or NULL. */
static const AttrValue *item_of(const Attrs *attrs, const char *name, int i) {
    const AttrValue *v = attrs_get(attrs, name);
    return v->kind == ATTR_LIST && i < (int)v->list.n ? &v->list.items[i] : NULL;
}

/* The step of item i, or NULL: a lone stride is every item's. */
static const AttrValue *step_item(const Attrs *attrs, int i) {
    const AttrValue *strides = attrs_get(attrs, "strides");
    bool by_size = !strcmp(attrs_text(attrs, "slice_mode"), "size");
    bool lone = strides->kind == ATTR_LIST && strides->list.n == 1;
    return by_size ? NULL : item_of(attrs, "strides", lone ? 0 : i);
}

/* 1 where it is a size that is no number yet. */
static int64_t slice_step(const Attrs *attrs, int i) {
    const AttrValue *step = step_item(attrs, i);
    int64_t n;
    return step && attr_get_int(step, &n) ? n : 1;
}

/* Of a range whose end is the number of places: where it ends. A number below 0 is all that is left. */
static void size_to_end(SliceRange *r) {
    if (!r->has_end)
        return;
    if (r->end < 0)
        r->has_end = false;
    else if (__builtin_add_overflow(r->end, r->begin, &r->end))
        r->end = INT64_MAX;
    else if (r->has_begin && r->begin < 0 && r->end >= 0)
        r->has_end = false;
}

/* The range of item i, whose bounds are numbers. */
static SliceRange slice_range(const Attrs *attrs, int i) {
    const AttrValue *begin = item_of(attrs, "begin", i), *end = item_of(attrs, "end", i);
    SliceRange r = {.step = slice_step(attrs, i)};
    r.has_begin = begin && attr_get_int(begin, &r.begin);
    r.has_end = end && attr_get_int(end, &r.end);
    if (!strcmp(attrs_text(attrs, "slice_mode"), "size"))
        size_to_end(&r);
    return r;
}

/* The ranges that the attributes name, one an axis of data; a problem, or NULL. */
static const char *slice_ranges(const Attrs *attrs, int rank, SliceRange *ranges, uint32_t *named) {
    int items[TENSOR_MAX_RANK];
    const char *problem = slice_items(attrs, rank, items);
    *named = 0;
    for (int axis = 0; axis < rank && !problem; axis++) {
        ranges[axis] = (SliceRange){.step = 1};
        if (items[axis] < 0)
            continue;
        *named |= 1u << axis;
        ranges[axis] = slice_range(attrs, items[axis]);
        const AttrValue *end = item_of(attrs, "end", items[axis]);
        int64_t n;
        if (ranges[axis].step == 0)
            problem = "a stride is 0";
        else if (end && (end->is_size || end->kind == ATTR_DIM) && attr_get_int(end, &n) && n < 0 &&
                 !strcmp(attrs_text(attrs, "slice_mode"), "size"))
            problem = "a size is negative";
    }
    return problem;
}

static bool slice_view(const OpCall *call, const Tensor *x, SliceView *view) {
    SliceRange ranges[TENSOR_MAX_RANK];
    uint32_t named;
    const char *problem = slice_ranges(call->attrs, x->rank, ranges, &named);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s (`data` has %d)", problem, x->rank);
        return false;
    }
    view_of(x, view);
    for (int i = 0; i < x->rank; i++)
        if (named >> i & 1)
            view_slice(view, i, &ranges[i]);
    return true;
}

static int shape_strided_slice(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    /* The relation's tensors have no strides. */
    SliceRange ranges[TENSOR_MAX_RANK];
    uint32_t named;
    int64_t dims[TENSOR_MAX_RANK], first;
    const char *problem = slice_ranges(call->attrs, x->rank, ranges, &named);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s (`data` has %d)", problem, x->rank);
        return -1;
    }
    for (int i = 0; i < x->rank; i++)
        slice_resolve(&ranges[i], x->shape[i], &first, &dims[i]);
    return shape_set(call, out, x->dtype, x->rank, dims) ? 1 : -1;
}

/* Whether the bound is computed from values: it may be counted from either end, so nothing is known of the slice. */
static bool is_unknown(const AttrValue *v) {
    int64_t n;
    Type *t = v && !attr_get_int(v, &n) ? type_resolve(v->dim) : NULL;
    return t && (t->flags & TYPE_HAS_ANY || !dim_is_size(t));
}

static bool is_size(const AttrValue *v) {
    int64_t n;
    return v && !attr_get_int(v, &n);
}

/* Whether a call has still to say what the bound is. */
static bool is_open(const AttrValue *v) {
    return v && v->kind == ATTR_DIM && rel_dim_open(type_resolve(v->dim));
}

/* The size of an axis of size d that item i slices. */
static Type *sliced_size(Relation *r, Type *d, int i) {
    const AttrValue *low = item_of(r->attrs, "begin", i), *high = item_of(r->attrs, "end", i);
    bool by_size = !strcmp(attrs_text(r->attrs, "slice_mode"), "size");
    int64_t size, first, count;
    if (is_unknown(low) || is_unknown(high) || is_size(step_item(r->attrs, i)))
        return rel_unknown_dim(r);
    if (is_size(low) || is_size(high)) {
        Type *begin = low ? rel_attr_dim(low) : NULL, *end = high ? rel_attr_dim(high) : NULL;
        int64_t n;
        if (by_size && low && attr_get_int(low, &n) && n < 0)
            return rel_unknown_dim(r);
        if (by_size && high)
            end = attr_get_int(high, &n) && n < 0 ? NULL : begin ? dim_add(begin, end) : end;
        return rel_slice_size(r, d, begin, end, slice_step(r->attrs, i));
    }
    SliceRange g = slice_range(r->attrs, i);
    if (type_get_int(type_resolve(d), &size)) {
        slice_resolve(&g, size, &first, &count);
        return rel_int_dim(r, count);
    }
    Type *begin = g.has_begin ? rel_int_dim(r, g.begin) : NULL;
    /* TVM writes the largest int32 for all that is left. */
    bool cut = g.has_end && (g.step < 0 || g.end < INT32_MAX);
    return rel_slice_size(r, d, begin, cut ? rel_int_dim(r, g.end) : NULL, g.step);
}

static RelStatus relate_strided_slice(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank;
    Type **dims;
    int items[TENSOR_MAX_RANK];
    if (!rel_rank_of_result(s, r, 0, 0))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    const char *problem = slice_items(r->attrs, (int)rank, items);
    for (uint32_t i = 0; i < rank && !problem; i++)
        if (items[i] >= 0 && slice_step(r->attrs, items[i]) == 0)
            problem = "a stride is 0";
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`strided_slice`: %s (`data` has %u)", problem, rank);
        return REL_FAIL;
    }
    for (uint32_t i = 0; i < rank; i++) /* a number below 0 would count from the end */
        if (items[i] >= 0 &&
            (is_open(item_of(r->attrs, "begin", items[i])) ||
             is_open(item_of(r->attrs, "end", items[i])) || is_open(step_item(r->attrs, items[i]))))
            return rel_wait_rank(s, r, rank, rel_dtype_in(r->args[0]));
    Type **out = rel_copy_dims(rank, dims, 0);
    for (uint32_t i = 0; i < rank; i++)
        if (items[i] >= 0)
            out[i] = sliced_size(r, dims[i], items[i]);
    status = rel_result(s, r, out, rank, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static bool lower_strided_slice(const OpCall *call, Tensor *const *out, Plan *plan) {
    SliceView v;
    if (!slice_view(call, call->in[0], &v))
        return false;
    plan_gather_strided(plan, out[0], call->in[0], v.strides, v.offset);
    return true;
}

static const RelDef rel_strided_slice = {"StridedSlice", relate_strided_slice, 2, false};
static const AttrSpec slice_attrs[] = {
    {"begin", AT_DIMS_OPT, "None", "first place on each axis; negative: from the end"},
    {"end", AT_DIMS_OPT, "None", "place after the last"},
    {"strides", AT_DIMS_OPT, "None", "steps; None: 1"},
    {"slice_mode", AT_STRING, "\"end\"", "\"size\": end holds sizes, -1 for all the rest"},
    {"axes", AT_INTS_OPT, "None", "the axes that the lists are about; None: the first ones"},
};
const Op op_strided_slice = {
    .name = "strided_slice",
    .args = "data",
    .nargs = 1,
    .attrs = slice_attrs,
    .nattrs = 5,
    .choices = "slice_mode: end size",
    .relation = &rel_strided_slice,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_strided_slice,
    .resizes = true,
    .refuses_sizes = true,
    .lower = lower_strided_slice,
    .doc = "A rectangular part: from begin to before end on each axis, cut off at the edges.",
    .example = "strided_slice([1, 2, 3, 4], begin=[1], end=[4], strides=[2])",
    .example_result = "[2, 4] : Tensor[(2,), int32]",
    .see_also = "take, split, slice_like",
};

/* ---- strided_slice_add ----------------------------------------------------------------------- */

/* (update, data): zeros of data's shape with update in the slice. */
static int shape_strided_slice_add(const OpCall *call, OutSpec *out) {
    const Tensor *u = call->in[0], *x = call->in[1];
    OpCall forward = *call;
    OutSpec part;
    forward.in = &call->in[1];
    forward.nin = 1;
    if (shape_strided_slice(&forward, &part) < 0)
        return -1;
    bool fits = u->rank == part.rank;
    for (int i = 0; i < part.rank && fits; i++)
        fits = u->shape[i] == part.shape[i];
    if (!fits) {
        shape_error(call, DIAG_R0314, "`update` has shape %s and the slice %s",
                    shape_text(u->rank, u->shape), shape_text(part.rank, part.shape));
        return -1;
    }
    return shape_set(call, out, u->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_second_shape(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_ALL}, &status))
        return status;
    Type *t = type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0]));
    if (rel_result_type(s, r, t) == REL_FAIL || !rel_same_rank(s, r, 0, 1))
        return REL_FAIL;
    return REL_DONE;
}

static bool lower_strided_slice_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    SliceView v;
    if (!slice_view(call, out[0], &v))
        return false;
    plan_fill_int(plan, out[0], 0);
    plan_slice_set(plan, out[0], &v, call->in[0], false);
    return true;
}

static const RelDef rel_strided_slice_add = {"StridedSliceAdd", relate_second_shape, 3, false};
const Op op_strided_slice_add = {
    .name = "strided_slice_add",
    .args = "update, data",
    .nargs = 2,
    .attrs = slice_attrs,
    .nattrs = 5,
    .choices = "slice_mode: end size",
    .relation = &rel_strided_slice_add,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_strided_slice_add,
    .refuses_sizes = true,
    .lower = lower_strided_slice_add,
    .doc = "Zeros in data's shape with update in the slice: the derivative of strided_slice.",
    .example = "strided_slice_add([1, 2], [0, 0, 0], begin=[1], end=[3])",
    .example_result = "[0, 1, 2] : Tensor[(3,), int32]",
    .see_also = "strided_slice",
};

/* ---- slices whose bounds are tensors --------------------------------------------------------- */

/* begin, end and strides stand from argument `first` on: vectors, one element an axis. */
static bool dynamic_view(const OpCall *call, uint32_t first, const Tensor *x, SliceView *view) {
    view_of(x, view);
    for (uint32_t i = 0; i < 3; i++) {
        const Tensor *t = call->in[first + i];
        if (!shape_check_dtype(call, (int)(first + i), DTS_INT))
            return false;
        if (!shape_check_rank(call, (int)(first + i), 1))
            return false;
        if (t->count > x->rank) {
            shape_error(call, DIAG_R0316, "`%s` has %lld elements; `data` has %d axes",
                        shape_arg_name(call, (int)(first + i)), (long long)t->count, x->rank);
            return false;
        }
    }
    const Tensor *begin = call->in[first], *end = call->in[first + 1], *step = call->in[first + 2];
    bool by_size = !strcmp(attrs_text(call->attrs, "slice_mode"), "size");
    for (int64_t i = 0; i < x->rank; i++) {
        SliceRange r = {.has_begin = i < begin->count, .has_end = i < end->count, .step = 1};
        if (r.has_begin)
            r.begin = elem_get_int(tensor_at(begin, i), begin->dtype);
        if (r.has_end)
            r.end = elem_get_int(tensor_at(end, i), end->dtype);
        if (by_size)
            size_to_end(&r);
        else if (i < step->count)
            r.step = elem_get_int(tensor_at(step, i), step->dtype);
        if (r.step == 0) {
            shape_error(call, DIAG_R0316, "the stride of axis %lld is 0", (long long)i);
            return false;
        }
        view_slice(view, (int)i, &r);
    }
    return true;
}

static int shape_dyn_strided_slice(const OpCall *call, OutSpec *out) {
    SliceView v;
    if (!dynamic_view(call, 1, call->in[0], &v))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, v.rank, v.shape) ? 1 : -1;
}

static bool bounds_are_vectors(Solver *s, Relation *r, int first) {
    return rel_give_rank(s, r, first, 1) && rel_give_rank(s, r, first + 1, 1) &&
           rel_give_rank(s, r, first + 2, 1);
}

static RelStatus relate_dyn_strided_slice(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT, DTS_INT, DTS_INT}, &status))
        return status;
    uint32_t rank;
    Type **dims;
    if (!bounds_are_vectors(s, r, 1) || !rel_rank_of_result(s, r, 0, 0))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    Type **out = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++)
        out[i] = rel_unknown_dim(r);
    status = rel_result(s, r, out, rank, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static bool lower_dyn_strided_slice(const OpCall *call, Tensor *const *out, Plan *plan) {
    SliceView v;
    if (!dynamic_view(call, 1, call->in[0], &v))
        return false;
    plan_gather_strided(plan, out[0], call->in[0], v.strides, v.offset);
    return true;
}

static const AttrSpec dynamic_attrs[] = {
    {"slice_mode", AT_STRING, "\"end\"", "\"size\": end holds sizes, -1 for all the rest"},
};
static const RelDef rel_dyn_strided_slice = {"DynStridedSlice", relate_dyn_strided_slice, 5, false};
const Op op_dyn_strided_slice = {
    .name = "dyn.strided_slice",
    .args = "data, begin, end, strides",
    .nargs = 4,
    .attrs = dynamic_attrs,
    .nattrs = 1,
    .choices = "slice_mode: end size",
    .relation = &rel_dyn_strided_slice,
    .dtypes = DTS_ALL,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_INJECTIVE,
    .shape = shape_dyn_strided_slice,
    .resizes = true,
    .lower = lower_dyn_strided_slice,
    .doc = "As strided_slice, with bounds that are vectors of integers.",
    .example = "dyn.strided_slice([1, 2, 3, 4], [1], [3], [1])",
    .example_result = "[2, 3] : Tensor[(?,), int32]",
    .see_also = "strided_slice, strided_set",
};

static int shape_strided_set(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *u = call->in[1];
    SliceView v;
    if (!shape_check_same_dtype(call, 0, 1) || !dynamic_view(call, 2, x, &v))
        return -1;
    bool fits = u->rank == v.rank;
    for (int i = 0; i < v.rank && fits; i++)
        fits = u->shape[i] == v.shape[i];
    if (!fits) {
        shape_error(call, DIAG_R0314, "`v` has shape %s and the slice %s",
                    shape_text(u->rank, u->shape), shape_text(v.rank, v.shape));
        return -1;
    }
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_strided_set(Solver *s, Relation *r) {
    RelStatus status;
    DTypeSet sets[] = {DTS_ALL, DTS_ALL, DTS_INT, DTS_INT, DTS_INT};
    if (rel_known(s, r, sets, &status))
        return status;
    Type *v = type_tensor(solver_var(s, KIND_SHAPE), rel_dtype_in(r->args[0]));
    if (!rel_unify(s, r, 1, v) || !bounds_are_vectors(s, r, 2) ||
        rel_result_type(s, r, r->args[0]) == REL_FAIL || !rel_same_rank(s, r, 0, 1))
        return REL_FAIL;
    return rel_result_type(s, r, r->args[0]) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_strided_set(const OpCall *call, Tensor *const *out, Plan *plan) {
    SliceView v;
    if (!dynamic_view(call, 2, out[0], &v))
        return false;
    plan_copy(plan, out[0], call->in[0]);
    plan_slice_set(plan, out[0], &v, call->in[1], false);
    return true;
}

static const RelDef rel_strided_set = {"StridedSet", relate_strided_set, 6, false};
const Op op_strided_set = {
    .name = "strided_set",
    .args = "data, v, begin, end, strides",
    .nargs = 5,
    .attrs = dynamic_attrs,
    .nattrs = 1,
    .choices = "slice_mode: end size",
    .relation = &rel_strided_set,
    .dtypes = DTS_ALL,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_INJECTIVE,
    .shape = shape_strided_set,
    .lower = lower_strided_set,
    .doc = "data with v in the place of a slice, whose bounds are vectors of integers.",
    .example = "strided_set([1, 2, 3, 4], [8, 9], [1], [3], [1])",
    .example_result = "[1, 8, 9, 4] : Tensor[(4,), int32]",
    .see_also = "strided_slice",
};

/* ---- slice_like, pad_like -------------------------------------------------------------------- */

enum { CUT, PAD };

/* The axes on which the shape is taken: all of pad_like. */
static bool like_axes(const OpCall *call, int rank, uint32_t *axes) {
    int64_t list[TENSOR_MAX_RANK];
    *axes = (uint32_t)((1ull << rank) - 1);
    if (call->op->variant == PAD || attr_int_list(call->attrs, "axes", list, TENSOR_MAX_RANK) <= 0)
        return true;
    return shape_axis_set(call, "axes", false, rank, axes);
}

/* Where no axes are named, those that shape_like lacks are not cut. */
static bool names_axes(const Attrs *attrs) {
    const AttrValue *axes = attrs_find(attrs, "axes");
    return axes && axes->kind == ATTR_LIST && axes->list.n > 0;
}

static int shape_slice_like(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *like = call->in[1];
    uint32_t axes;
    int64_t dims[TENSOR_MAX_RANK];
    bool pad = call->op->variant == PAD;
    if (!like_axes(call, x->rank, &axes))
        return -1;
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->shape[i];
        if (!(axes >> i & 1))
            continue;
        if (i >= like->rank && !pad && !names_axes(call->attrs))
            continue;
        if (i >= like->rank) {
            shape_error(call, DIAG_R0313, "`shape_like` has no axis %d", i);
            return -1;
        }
        dims[i] = like->shape[i];
        if (pad ? dims[i] < x->shape[i] : dims[i] > x->shape[i]) {
            shape_error(call, DIAG_R0314,
                        "axis %d of `shape_like` has size %lld and of `data` %lld", i,
                        (long long)dims[i], (long long)x->shape[i]);
            return -1;
        }
    }
    return shape_set(call, out, x->dtype, x->rank, dims) ? 1 : -1;
}

static RelStatus relate_slice_like(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_ALL}, &status))
        return status;
    uint32_t rank, nlike, axes;
    Type **dims, **like;
    int64_t list[TENSOR_MAX_RANK];
    if (!rel_rank_of_result(s, r, 0, 0))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    axes = (uint32_t)((1ull << rank) - 1);
    if (r->op->variant != PAD && attr_int_list(r->attrs, "axes", list, TENSOR_MAX_RANK) > 0 &&
        !rel_axis_set(s, r, "axes", false, rank, &axes))
        return REL_FAIL;
    Type **out = rel_copy_dims(rank, dims, 0);
    bool ranked = rel_rank_in(r->args[1], &nlike, &like);
    for (uint32_t i = 0; i < rank; i++) {
        if (!(axes >> i & 1))
            continue;
        if (!ranked) {
            out[i] = solver_var(s, KIND_DIM);
            continue;
        }
        if (i >= nlike && r->op->variant != PAD && !names_axes(r->attrs)) {
            out[i] = dims[i];
            continue;
        }
        if (i >= nlike) {
            rel_error(s, r, DIAG_R0313, "`%s`: `shape_like` has no axis %u", r->op->name, i);
            return REL_FAIL;
        }
        out[i] = like[i];
    }
    if (rel_result(s, r, out, rank, rel_dtype_in(r->args[0])) == REL_FAIL)
        return REL_FAIL;
    return ranked || axes == 0 ? REL_DONE : REL_WAIT;
}

static bool lower_slice_like(const OpCall *call, Tensor *const *out, Plan *plan) {
    plan_gather_strided(plan, out[0], call->in[0], call->in[0]->strides, 0);
    return true;
}

static bool lower_pad_like(const OpCall *call, Tensor *const *out, Plan *plan) {
    plan_fill_int(plan, out[0], 0);
    plan_place_strided(plan, out[0], out[0]->strides, 0, call->in[0]);
    return true;
}

static const RelDef rel_slice_like = {"SliceLike", relate_slice_like, 3, false};
static const AttrSpec slice_like_attrs[] = {
    {"axes", AT_INTS_OPT, "None", "the axes to cut; None: all"},
};
const Op op_slice_like = {
    .name = "slice_like",
    .args = "data, shape_like",
    .nargs = 2,
    .attrs = slice_like_attrs,
    .nattrs = 1,
    .relation = &rel_slice_like,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .variant = CUT,
    .shape = shape_slice_like,
    .refuses_sizes = true,
    .lower = lower_slice_like,
    .doc = "The first elements of each axis, as many as shape_like has.",
    .example = "slice_like([1, 2, 3], [0, 0])",
    .example_result = "[1, 2] : Tensor[(2,), int32]",
    .see_also = "strided_slice, pad_like",
};
static const RelDef rel_pad_like = {"PadLike", relate_slice_like, 3, false};
const Op op_pad_like = {
    .name = "pad_like",
    .args = "data, shape_like",
    .nargs = 2,
    .relation = &rel_pad_like,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .variant = PAD,
    .shape = shape_slice_like,
    .refuses_sizes = true,
    .lower = lower_pad_like,
    .doc =
        "data with zeros behind it on each axis, up to the size of shape_like: the derivative of "
        "slice_like.",
    .example = "pad_like([1, 2], [0, 0, 0])",
    .example_result = "[1, 2, 0] : Tensor[(3,), int32]",
    .see_also = "slice_like, nn.pad",
};
