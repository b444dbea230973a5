/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting along an axis: a stable merge sort of places by keys. nan comes last, whether ascending
 * or descending; -0.0 and 0.0 are equal. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"
#include "ops/sort.h"

/* ---- one lane -------------------------------------------------------------------------------- */

typedef struct Lane {
    const char *keys; /* the first key */
    int64_t stride;   /* in bytes */
    DType dtype;
    bool ascend;
} Lane;

/* Whether the key at a goes strictly before the key at b. */
static bool goes_before(const Lane *l, int64_t a, int64_t b) {
    const void *p = l->keys + a * l->stride, *q = l->keys + b * l->stride;
    switch (dtype_info[l->dtype].cls) {
    case DTC_FLOAT: {
        double x = elem_get_float(p, l->dtype), y = elem_get_float(q, l->dtype);
        if (x != x || y != y)
            return x == x && y != y;
        return l->ascend ? x < y : x > y;
    }
    case DTC_UINT: {
        uint64_t x = (uint64_t)elem_get_int(p, l->dtype), y = (uint64_t)elem_get_int(q, l->dtype);
        return l->ascend ? x < y : x > y;
    }
    case DTC_INT:
    case DTC_BOOL: break;
    }
    int64_t x = elem_get_int(p, l->dtype), y = elem_get_int(q, l->dtype);
    return l->ascend ? x < y : x > y;
}

/* order[0 .. n-1] becomes the places in sorted order; both arrays have n elements. */
static void lane_sort(const OpCall *call, const Lane *l, int64_t n, int64_t *order,
                      int64_t *spare) {
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t at = 0; at < n; at += 2 * width) {
            if (op_interrupted(call))
                return;
            int64_t mid = at + width < n ? at + width : n,
                    end = at + 2 * width < n ? at + 2 * width : n;
            int64_t i = at, j = mid, k = at;
            while (i < mid && j < end)
                spare[k++] = goes_before(l, order[j], order[i]) ? order[j++] : order[i++];
            while (i < mid)
                spare[k++] = order[i++];
            while (j < end)
                spare[k++] = order[j++];
        }
        memcpy(order, spare, sizeof *order * (size_t)n);
    }
}

static Lane vector_lane(const Tensor *t) {
    return (Lane){tensor_data(t), t->strides[0] * (int64_t)dtype_size(t->dtype), t->dtype, true};
}

void sort_vector(const OpCall *call, const Tensor *t, int64_t *order) {
    Lane lane = vector_lane(t);
    int64_t *spare = mem_bytes(sizeof *spare * (size_t)t->count + 1);
    lane_sort(call, &lane, t->count, order, spare);
}

bool sort_is_equal(const Tensor *t, int64_t a, int64_t b) {
    Lane lane = vector_lane(t);
    return !goes_before(&lane, a, b) && !goes_before(&lane, b, a);
}

/* ---- all lanes ------------------------------------------------------------------------------- */

/* Calls `lane` for each lane of keys along `axis`, with the sorted order and the offsets, in
 * elements, of the lane's first place in each of three tensors (NULL: none). */
typedef struct Lanes {
    const OpCall *call;
    const Tensor *keys;
    int axis;
    bool ascend;
    const Tensor *others[3];
} Lanes;
typedef void (*LaneFn)(const Lanes *l, const int64_t *order, const int64_t *offsets);

static void each_lane(const Lanes *l, LaneFn fn) {
    const Tensor *x = l->keys;
    int64_t n = x->shape[l->axis], place[TENSOR_MAX_RANK] = {0}, offsets[3] = {0}, at = 0;
    if (x->count == 0)
        return;
    int64_t *order = mem_bytes(sizeof *order * (size_t)n * 2 + 1), *spare = order + n;
    for (;;) {
        int64_t bytes = (int64_t)dtype_size(x->dtype);
        Lane lane = {(const char *)tensor_data(x) + at * bytes, x->strides[l->axis] * bytes,
                     x->dtype, l->ascend};
        lane_sort(l->call, &lane, n, order, spare);
        if (op_interrupted(l->call))
            return;
        fn(l, order, offsets);
        int i = x->rank - 1;
        for (; i >= 0; i--) {
            if (i == l->axis)
                continue;
            int64_t by = ++place[i] < x->shape[i] ? 1 : 1 - x->shape[i];
            at += by * x->strides[i];
            for (int k = 0; k < 3; k++)
                if (l->others[k])
                    offsets[k] += by * l->others[k]->strides[i];
            if (by == 1)
                break;
            place[i] = 0;
        }
        if (i < 0)
            return;
    }
}

static void *lane_at(const Lanes *l, int which, int64_t offset, int64_t place) {
    const Tensor *t = l->others[which];
    return (char *)tensor_data(t) +
           (offset + place * t->strides[l->axis]) * (int64_t)dtype_size(t->dtype);
}

/* others[0] = others[1] in sorted order. */
static void take_lane(const Lanes *l, const int64_t *order, const int64_t *offsets) {
    int64_t n = l->others[0]->shape[l->axis];
    size_t size = dtype_size(l->others[0]->dtype);
    for (int64_t i = 0; i < n; i++)
        memcpy(lane_at(l, 0, offsets[0], i), lane_at(l, 1, offsets[1], order[i]), size);
}

/* others[0] = others[1] put back from sorted order. */
static void put_lane(const Lanes *l, const int64_t *order, const int64_t *offsets) {
    int64_t n = l->others[0]->shape[l->axis];
    size_t size = dtype_size(l->others[0]->dtype);
    for (int64_t i = 0; i < n; i++)
        memcpy(lane_at(l, 0, offsets[0], order[i]), lane_at(l, 1, offsets[1], i), size);
}

/* others[2] = the places, as many as it has. */
static void places_lane(const Lanes *l, const int64_t *order, const int64_t *offsets) {
    const Tensor *t = l->others[2];
    for (int64_t i = 0; i < t->shape[l->axis]; i++) {
        void *p = lane_at(l, 2, offsets[2], i);
        if (dtype_is_float(t->dtype))
            elem_set_float(p, t->dtype, (double)order[i]);
        else
            elem_set_int(p, t->dtype, order[i]);
    }
}

static Lanes lanes_of(const OpCall *call, const Tensor *keys) {
    return (Lanes){.call = call,
                   .keys = keys,
                   .axis = lower_axis(call, "axis", keys->rank),
                   .ascend = attrs_bool(call->attrs, "is_ascend")};
}

/* ---- sort, argsort --------------------------------------------------------------------------- */

enum { VALUES, PLACES };

static int shape_sort(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis;
    if (!shape_check_min_rank(call, 0, 1) || !shape_one_axis(call, "axis", x->rank, &axis))
        return -1;
    DType dtype = call->op->variant == PLACES ? shape_attr_dtype(call, "dtype", DT_I32) : x->dtype;
    return shape_set(call, out, dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_sort(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank, axis;
    Type **dims, *dtype = rel_dtype_in(r->args[0]);
    if (r->op->variant == PLACES)
        dtype = rel_attr_dtype(r, "dtype", type_dtype(DT_I32));
    if (rel_result_type(s, r, type_tensor(rel_shape_in(r->args[0]), dtype)) == REL_FAIL)
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    return rel_one_axis(s, r, "axis", rank, &axis) ? REL_DONE : REL_FAIL;
}

static bool eval_sort(const OpCall *call, Tensor *const *out) {
    Lanes l = lanes_of(call, call->in[0]);
    l.others[0] = out[0];
    l.others[1] = call->in[0];
    each_lane(&l, take_lane);
    return true;
}

static bool eval_argsort(const OpCall *call, Tensor *const *out) {
    Lanes l = lanes_of(call, call->in[0]);
    l.others[2] = out[0];
    each_lane(&l, places_lane);
    return true;
}

static const char reason[] = "sorting is a loop whose steps depend on the elements";
static const AttrSpec sort_attrs[] = {
    {"axis", AT_INT, "-1", "along this axis"},
    {"is_ascend", AT_BOOL, "True", "the smallest first"},
    {"dtype", AT_DTYPE, "None", "of places; None: int32"},
};
static const RelDef rel_sort = {"Sort", relate_sort, 2, false};
const Op op_sort = {
    .name = "sort",
    .args = "data",
    .nargs = 1,
    .attrs = sort_attrs,
    .nattrs = 2,
    .relation = &rel_sort,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .variant = VALUES,
    .shape = shape_sort,
    .eval = eval_sort,
    .reference_only = reason,
    .doc = "The elements along an axis in order; nan last.",
    .example = "sort([3, 1, 2])",
    .example_result = "[1, 2, 3] : Tensor[(3,), int32]",
    .see_also = "argsort, topk",
};
static const RelDef rel_argsort = {"Argsort", relate_sort, 2, false};
const Op op_argsort = {
    .name = "argsort",
    .args = "data",
    .nargs = 1,
    .attrs = sort_attrs,
    .nattrs = 3,
    .relation = &rel_argsort,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .variant = PLACES,
    .shape = shape_sort,
    .eval = eval_argsort,
    .reference_only = reason,
    .doc = "The places along an axis of the elements in order; equal elements keep theirs.",
    .example = "argsort([30, 10, 20])",
    .example_result = "[1, 2, 0] : Tensor[(3,), int32]",
    .see_also = "sort, topk",
};

/* ---- sort_by, unsort_by ---------------------------------------------------------------------- */

static int shape_sort_by(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *keys = call->in[1];
    int axis;
    if (!shape_check_min_rank(call, 0, 1) || !shape_check_rank(call, 1, x->rank) ||
        !shape_one_axis(call, "axis", x->rank, &axis))
        return -1;
    for (int i = 0; i < keys->rank; i++)
        if (!shape_check_dims(call, 0, i, 1, i))
            return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_sort_by(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_ALL}, &status))
        return status;
    if (rel_result_type(s, r, r->args[0]) == REL_FAIL)
        return REL_FAIL;
    Type *keys = type_tensor(rel_shape_in(r->args[0]), rel_dtype_in(r->args[1]));
    return rel_unify(s, r, 1, keys) ? REL_DONE : REL_FAIL;
}

static bool eval_sort_by(const OpCall *call, Tensor *const *out) {
    Lanes l = lanes_of(call, call->in[1]);
    l.others[0] = out[0];
    l.others[1] = call->in[0];
    each_lane(&l, take_lane);
    return true;
}

static bool eval_unsort_by(const OpCall *call, Tensor *const *out) {
    Lanes l = lanes_of(call, call->in[1]);
    l.others[0] = out[0];
    l.others[1] = call->in[0];
    each_lane(&l, put_lane);
    return true;
}

static const RelDef rel_sort_by = {"SortBy", relate_sort_by, 3, false};
const Op op_sort_by = {
    .name = "sort_by",
    .args = "data, keys",
    .nargs = 2,
    .attrs = sort_attrs,
    .nattrs = 2,
    .relation = &rel_sort_by,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .shape = shape_sort_by,
    .refuses_sizes = true,
    .eval = eval_sort_by,
    .reference_only = reason,
    .doc = "data moved as sort moves keys.",
    .example = "sort_by([1, 2, 3], [30, 10, 20])",
    .example_result = "[2, 3, 1] : Tensor[(3,), int32]",
    .see_also = "sort, unsort_by",
};
static const RelDef rel_unsort_by = {"UnsortBy", relate_sort_by, 3, false};
const Op op_unsort_by = {
    .name = "unsort_by",
    .args = "data, keys",
    .nargs = 2,
    .attrs = sort_attrs,
    .nattrs = 2,
    .relation = &rel_unsort_by,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .shape = shape_sort_by,
    .refuses_sizes = true,
    .eval = eval_unsort_by,
    .reference_only = reason,
    .doc = "data moved back: undoes sort_by with the same keys. The derivative of sort.",
    .example = "unsort_by([2, 3, 1], [30, 10, 20])",
    .example_result = "[1, 2, 3] : Tensor[(3,), int32]",
    .see_also = "sort_by",
};

/* ---- topk ------------------------------------------------------------------------------------ */

typedef enum TopK { TOPK_BOTH, TOPK_VALUES, TOPK_INDICES } TopK;

static TopK topk_result(const Attrs *attrs) {
    const char *type = attrs_text(attrs, "ret_type");
    return !strcmp(type, "both") ? TOPK_BOTH : !strcmp(type, "values") ? TOPK_VALUES : TOPK_INDICES;
}

/* How many are asked for, or NULL for all: None, and a written number below 1 (Note [Sizes are no codes]). */
static const AttrValue *topk_count(const Attrs *attrs) {
    const AttrValue *k = attrs_get(attrs, "k");
    bool all = k->kind == ATTR_NONE || (k->kind == ATTR_INT && k->i < 1 && !k->is_size);
    return all ? NULL : k;
}

static int shape_topk(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    TopK what = topk_result(call->attrs);
    const AttrValue *count = topk_count(call->attrs);
    int64_t dims[TENSOR_MAX_RANK];
    int axis, n = 0;
    if (!shape_check_min_rank(call, 0, 1) || !shape_one_axis(call, "axis", x->rank, &axis))
        return -1;
    memcpy(dims, x->shape, sizeof *dims * (size_t)x->rank);
    int64_t k = 0;
    if (count && (!attr_get_int(count, &k) || k < 0 || k > dims[axis])) {
        shape_error(call, DIAG_R0316, "k=%lld, and axis %d of `data` has size %lld", (long long)k,
                    axis, (long long)dims[axis]);
        return -1;
    }
    if (count)
        dims[axis] = k;
    if (what != TOPK_INDICES && !shape_set(call, &out[n++], x->dtype, x->rank, dims))
        return -1;
    if (what != TOPK_VALUES &&
        !shape_set(call, &out[n++], shape_attr_dtype(call, "dtype", DT_I32), x->rank, dims))
        return -1;
    return n;
}

/* The type of the result: values and places of one shape. */
static Type *topk_type(Relation *r, TopK what, Type *shape) {
    Type *both[2] = {type_tensor(shape, rel_dtype_in(r->args[0])),
                     type_tensor(shape, rel_attr_dtype(r, "dtype", type_dtype(DT_I32)))};
    return what == TOPK_BOTH ? type_tuple(both, 2) : both[what == TOPK_INDICES];
}

/* They have as many axes as data. */
static bool topk_rank(Solver *s, Relation *r, TopK what, bool all) {
    uint32_t rank;
    Type **dims, *shape = solver_var(s, KIND_SHAPE);
    if (rel_rank_in(r->args[0], &rank, &dims))
        return true;
    if (all)
        shape = rel_shape_in(r->args[0]);
    return rel_result_type(s, r, topk_type(r, what, shape)) != REL_FAIL &&
           (!type_get_rank(type_resolve(shape), &rank, &dims) || rel_give_rank(s, r, 0, rank));
}

static RelStatus relate_topk(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    TopK what = topk_result(r->attrs);
    const AttrValue *count = topk_count(r->attrs);
    uint32_t rank, axis;
    Type **dims;
    if (!topk_rank(s, r, what, !count))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    if (!rel_one_axis(s, r, "axis", rank, &axis))
        return REL_FAIL;
    Type **out = rel_copy_dims(rank, dims, 0);
    if (count)
        out[axis] = count->kind == ATTR_DIM ? count->dim : rel_int_dim(r, count->i);
    Type *t = topk_type(r, what, type_shape(out, rank));
    return rel_result_type(s, r, t) == REL_FAIL ? REL_FAIL : rel_settled(r);
}

static bool eval_topk(const OpCall *call, Tensor *const *out) {
    TopK what = topk_result(call->attrs);
    Lanes l = lanes_of(call, call->in[0]);
    if (what != TOPK_INDICES) {
        l.others[0] = out[0];
        l.others[1] = call->in[0];
        each_lane(&l, take_lane);
    }
    if (what != TOPK_VALUES) {
        l.others[0] = l.others[1] = NULL;
        l.others[2] = out[what == TOPK_BOTH];
        each_lane(&l, places_lane);
    }
    return true;
}

static const RelDef rel_topk = {"TopK", relate_topk, 2, false};
static const AttrSpec topk_attrs[] = {
    {"k", AT_DIM, "None", "how many; None or a number below 1: all"},
    {"axis", AT_INT, "-1", "along this axis"},
    {"ret_type", AT_STRING, "\"both\"", "\"both\" (values, indices), \"values\" or \"indices\""},
    {"is_ascend", AT_BOOL, "False", "the smallest first"},
    {"dtype", AT_DTYPE, "None", "of the indices; None: int32"},
};
const Op op_topk = {
    .name = "topk",
    .args = "data",
    .nargs = 1,
    .attrs = topk_attrs,
    .nattrs = 5,
    .choices = "ret_type: both values indices",
    .relation = &rel_topk,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .shape = shape_topk,
    .refuses_sizes = true,
    .by_attr = true,
    .first_of = {"ret_type", "values", "both"},
    .eval = eval_topk,
    .reference_only = reason,
    .doc = "The k largest elements along an axis, in order, and their places; nan last.",
    .example = "topk([3, 1, 2], k=2)",
    .example_result = "([3, 2], [0, 2]) : (Tensor[(2,), int32], Tensor[(2,), int32])",
    .see_also = "sort, argsort",
};
