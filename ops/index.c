/* SPDX-License-Identifier: Apache-2.0 */
/* `t[0, 1:, rows, ..., None]`: reading a part of a tensor, adding to it, setting it. What a part is stands in
 * ops/index_view.h. */
#include "base/mem.h"
#include "ops/index_view.h"

#include <stdlib.h>
#include <string.h>

static int shape_index(const OpCall *call, OutSpec *out) {
    IndexView view;
    if (!index_view(call, call->in[0], 1, call->nin - 1, &view))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, view.part.rank, view.part.shape) ? 1 : -1;
}

static RelStatus relate_index(Solver *s, Relation *r) {
    RelStatus status, letters = rel_index_letters(s, r, 1);
    if (letters == REL_FAIL)
        return REL_FAIL;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT | DTS_BOOL}, &status))
        return status;
    uint32_t rank, n = 0;
    Type **dims, **part;
    if (!rel_rank_in(r->args[0], &rank, &dims)) {
        IndexCount count;
        /* The part is another unknown than the whole, whatever the indices turn out to be. */
        if (type_has_unknown_rank(r->args[0]) && !rel_rank_in(rel_result_arg(r), &rank, &dims))
            return rel_unknown_rank(s, r, rel_dtype_in(r->args[0]));
        if (letters == REL_WAIT || !rel_rank_in(rel_result_arg(r), &rank, &dims) ||
            !index_count(attrs_text(r->attrs, "spec"), &count))
            return rel_wait(s, r, rel_dtype_in(r->args[0]));
        int data = (int)rank - count.results + count.axes; /* as many axes as the result tells */
        if (!rel_make_rank(s, r, 0, (uint32_t)(data < count.axes ? count.axes : data)) ||
            !rel_rank_in(r->args[0], &rank, &dims))
            return REL_FAIL;
    }
    status = rel_index_part(s, r, 1, rank, dims, &part, &n);
    if (status == REL_WAIT)
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    if (status == REL_DONE)
        status = rel_result(s, r, part, n, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static bool lower_index(const OpCall *call, Tensor *const *out, Plan *plan) {
    IndexView view;
    if (!index_view(call, call->in[0], 1, call->nin - 1, &view))
        return false;
    plan_index_get(plan, out[0], call->in[0], &view);
    return true;
}

static const RelDef rel_op_index = {"IndexAt", relate_index, 3, false};
static const AttrSpec index_attrs[] = {
    {"spec", AT_STRING, NULL, "what stands between the brackets, one letter an index"},
    {"sizes", AT_DIMS_OPT, "None", "the integers as far as they are constants, `?` for the others"},
};
const Op op_index = {
    .name = "index",
    .args = "data, (at)",
    .nargs = 2,
    .attrs = index_attrs,
    .nattrs = 2,
    .relation = &rel_op_index,
    .dtypes = DTS_ALL,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_INJECTIVE,
    .untried = true,
    .shape = shape_index,
    .resizes = true,
    .lower = lower_index,
    .doc = "What `data[…]` means: integers take one place (negative: from the end, an error "
           "outside),\n"
           "slices a range (cut off at the edges), a vector of integers those places, a vector of "
           "bools "
           "the\nplaces that are True, `...` all other axes, None a new axis of size 1.",
    .example = "[1, 2, 3, 4][-2]",
    .example_result = "3 : int32",
    .see_also = "index_set, strided_slice, take",
};

/* ---- index_add ------------------------------------------------------------------------------- */

static int shape_index_add(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *u = call->in[1];
    IndexView view;
    const SliceView *v = &view.part;
    if (!shape_check_same_dtype(call, 0, 1) || !index_view(call, x, 2, call->nin - 2, &view))
        return -1;
    bool fits = u->rank == v->rank || u->rank == 0;
    for (int i = 0; i < u->rank && fits; i++)
        fits = u->shape[i] == v->shape[i];
    if (!fits) {
        shape_error(call, DIAG_R0314, "`update` has shape %s and the indexed part %s",
                    shape_text(u->rank, u->shape), shape_text(v->rank, v->shape));
        return -1;
    }
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_index_add(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM, DTS_INT | DTS_BOOL}, &status))
        return status;
    Type *u = type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0]));
    if (!rel_unify(s, r, 1, u))
        return REL_FAIL;
    return rel_result_type(s, r, r->args[0]) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_index_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    IndexView view;
    if (!index_view(call, out[0], 2, call->nin - 2, &view))
        return false;
    plan_copy(plan, out[0], call->in[0]);
    plan_index_put(plan, out[0], &view, call->in[1], true);
    return true;
}

/* x[view] += u of few elements, without a kernel, which would have to be planned for each call. False where it is
 * another case. */
static bool add_few(Tensor *x, const SliceView *v, const Tensor *u) {
    enum { FEW = 1024 };
    if ((x->dtype != DT_F32 && x->dtype != DT_F64) || u->dtype != x->dtype || u->count > FEW ||
        !tensor_is_contiguous(u) || u->rank != v->rank)
        return false;
    for (int axis = 0; axis < v->rank; axis++)
        if (u->shape[axis] != v->shape[axis])
            return false;
    int64_t index[TENSOR_MAX_RANK] = {0}, at = x->offset + v->offset;
    for (int64_t done = 0; done < u->count; done++) {
        if (x->dtype == DT_F32)
            ((float *)x->buffer->data)[at] += ((const float *)tensor_data(u))[done];
        else
            ((double *)x->buffer->data)[at] += ((const double *)tensor_data(u))[done];
        for (int axis = v->rank; axis-- > 0;) {
            at += v->strides[axis];
            if (++index[axis] < v->shape[axis])
                break;
            at -= v->strides[axis] * v->shape[axis];
            index[axis] = 0;
        }
    }
    return true;
}

typedef struct Place {
    int64_t place, at;
} Place;

static int compare_places(const void *a, const void *b) {
    const Place *x = a, *y = b;
    return x->place != y->place ? (x->place > y->place) - (x->place < y->place)
                                : (x->at > y->at) - (x->at < y->at);
}

/* Leaves each place in the view once, and gives which of them each was; NULL: none is there twice. */
static Tensor *join_equal_places(IndexView *view) {
    int64_t n = view->places->count, distinct = 0, *place = tensor_data(view->places);
    Place *sorted = mem_bytes(sizeof *sorted * (size_t)(n + 1));
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (Place){place[i], i};
    qsort(sorted, (size_t)n, sizeof *sorted, compare_places);
    for (int64_t i = 0; i < n; i++)
        distinct += i == 0 || sorted[i].place != sorted[i - 1].place;
    if (distinct == n)
        return NULL;
    Tensor *which = tensor_new(DT_I64, 1, &n), *joined = tensor_new(DT_I64, 1, &distinct);
    int64_t *of = tensor_data(which), *to = tensor_data(joined), next = -1;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || sorted[i].place != sorted[i - 1].place)
            to[++next] = sorted[i].place;
        of[sorted[i].at] = next;
    }
    view->places = joined;
    view->part.shape[view->axis] = distinct;
    return which;
}

/* What goes to one place is added together first, as in a tensor of zeros that is added then. */
static Tensor *join_update(Plan *plan, const IndexView *view, Tensor *which, const Tensor *update) {
    const SliceView *v = &view->part;
    Tensor *sum = tensor_new(update->dtype, v->rank, v->shape);
    IndexView to = {.part = {.rank = v->rank}, .places = which, .axis = view->axis};
    memset(tensor_data(sum), 0, (size_t)sum->count * dtype_size(sum->dtype));
    for (int i = 0; i < v->rank; i++) {
        to.part.shape[i] = i == view->axis ? which->count : v->shape[i];
        to.part.strides[i] = i == view->axis ? 0 : sum->strides[i];
    }
    to.stride = sum->strides[view->axis];
    plan_index_put(plan, sum, &to, update, true);
    return sum;
}

int32_t index_add_into(const OpCall *call, StepRunner runner, void *ctx,
                       const volatile int *interrupt) {
    IndexView view;
    Plan plan = {0};
    Tensor *update = call->in[1], *which;
    if (!index_view(call, call->in[0], 2, call->nin - 2, &view))
        return KERNEL_INDEX;
    if (!view.places && add_few(call->in[0], &view.part, update))
        return KERNEL_DONE;
    if (view.places && (which = join_equal_places(&view)))
        update = join_update(&plan, &view, which, update);
    plan_index_put(&plan, call->in[0], &view, update, true);
    return plan_run(&plan, runner, ctx, interrupt);
}

static const RelDef rel_op_index_add = {"IndexAdd", relate_index_add, 4, false};
const Op op_index_add = {
    .name = "index_add",
    .args = "data, update, (at)",
    .nargs = 3,
    .attrs = index_attrs,
    .nattrs = 2,
    .relation = &rel_op_index_add,
    .dtypes = DTS_NUM,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_INJECTIVE,
    .shape = shape_index_add,
    .lower = lower_index_add,
    .doc = "data with update, which has the shape of that part or is one number, added to the part "
           "that\n"
           "`index` with the same spec takes: with zeros as data, the derivative of indexing.",
    .example = "index_add([1, 2, 3], 10, (1,), spec=\"i\")",
    .example_result = "[1, 12, 3] : Tensor[(3,), int32]",
    .see_also = "index",
};

/* ---- index_set ------------------------------------------------------------------------------- */

static int shape_index_set(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *t = call->in[call->nin - 1];
    IndexView view;
    const SliceView *v = &view.part;
    if (!shape_check_same_dtype(call, 0, (int)call->nin - 1) ||
        !index_view(call, x, 1, call->nin - 2, &view))
        return -1;
    bool fits = t->rank <= v->rank;
    for (int i = 1; i <= t->rank && fits; i++)
        fits = t->shape[t->rank - i] == 1 || t->shape[t->rank - i] == v->shape[v->rank - i];
    if (!fits) {
        shape_mistake(call, DIAG_R0312,
                      "the new part has shape %s, and the part that it replaces %s",
                      shape_text(t->rank, t->shape), shape_text(v->rank, v->shape));
        return -1;
    }
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

/* Whether a size d of the new part can stand for the size n of the part: WAIT where it may turn out. */
static RelStatus relate_part_size(Solver *s, Relation *r, Type *d, Type *n, int axis) {
    d = type_resolve(d);
    n = type_resolve(n);
    int64_t from, to;
    if (rel_is_one(d) || type_equal(d, n))
        return REL_DONE;
    if (type_get_int(d, &from) && type_get_int(n, &to)) {
        rel_error(s, r, DIAG_R0312, "axis %d of the new part has size %lld, that of the part %lld",
                  axis, (long long)from, (long long)to);
        return REL_FAIL;
    }
    if (rel_dim_open(d) || rel_dim_open(n))
        return REL_WAIT;
    /* where it is no 1 it has the size of the part, which is compared when running */
    return type_get_int(d, &from) && !rel_unify_dim(s, r, d, n, 2, axis) ? REL_FAIL : REL_DONE;
}

static RelStatus relate_index_set(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_index_letters(s, r, 1) == REL_FAIL)
        return REL_FAIL;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT | DTS_BOOL, DTS_ALL}, &status))
        return status;
    if (!rel_unify(s, r, 2, type_tensor(rel_shape_in(r->args[2]), rel_dtype_in(r->args[0]))) ||
        rel_result_type(s, r, r->args[0]) == REL_FAIL)
        return REL_FAIL;
    uint32_t rank, nt, n;
    Type **dims, **t, **part;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    status = rel_index_part(s, r, 1, rank, dims, &part, &n);
    if (status != REL_DONE)
        return status;
    if (!rel_rank_in(r->args[2], &nt, &t))
        return REL_WAIT;
    if (nt > n) {
        rel_error(s, r, DIAG_R0312, "the new part has %u %s, and the part that it replaces %u", nt,
                  nt == 1 ? "axis" : "axes", n);
        return REL_FAIL;
    }
    for (uint32_t i = 1; i <= nt; i++) {
        RelStatus one = relate_part_size(s, r, t[nt - i], part[n - i], (int)(nt - i));
        if (one == REL_FAIL)
            return REL_FAIL;
        status = one == REL_WAIT ? one : status;
    }
    return status;
}

static bool lower_index_set(const OpCall *call, Tensor *const *out, Plan *plan) {
    IndexView view;
    if (!index_view(call, out[0], 1, call->nin - 2, &view))
        return false;
    if (out[0] != call->in[0])
        plan_copy(plan, out[0], call->in[0]);
    plan_index_put(plan, out[0], &view, call->in[call->nin - 1], false);
    return true;
}

static const RelDef rel_op_index_set = {"IndexSet", relate_index_set, 4, false};
const Op op_index_set = {
    .name = "index_set",
    .args = "data, (at), part",
    .nargs = 3,
    .attrs = index_attrs,
    .nattrs = 2,
    .relation = &rel_op_index_set,
    .dtypes = DTS_ALL,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_OPAQUE,
    .untried = true,
    .over_first = true,
    .shape = shape_index_set,
    .lower = lower_index_set,
    .doc = "What `{ data with [at] = part }` means: data with the part that `data[at]` takes "
           "replaced. "
           "`part`\nbroadcasts to it; of equal indices in a vector the last one counts.",
    .example = "index_set([1, 2, 3], (1,), 10, spec=\"i\")",
    .example_result = "[1, 10, 3] : Tensor[(3,), int32]",
    .see_also = "index, strided_set",
};

/* ---- index_last ------------------------------------------------------------------------------ */

static bool lower_index_last(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    IndexView view;
    if (!index_view(call, x, 1, call->nin - 1, &view))
        return false;
    int64_t size = 0;
    for (int i = 0; i < x->rank; i++)
        size = x->shape[i] > size ? x->shape[i] : size;
    index_keep_last(&view, size);
    plan_index_get(plan, out[0], x, &view);
    return true;
}

const Op op_index_last = {
    .name = "index_last",
    .args = "data, (at)",
    .nargs = 2,
    .attrs = index_attrs,
    .nattrs = 2,
    .relation = &rel_op_index,
    .dtypes = DTS_ALL,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_INJECTIVE,
    .untried = true,
    .shape = shape_index,
    .lower = lower_index_last,
    .doc = "What `index` takes, but 0 where a later index of the vector names the same place: the "
           "derivative of\nindex_set by its part.",
    .example = "index_last([1, 2, 3], ([0, 2, 0],), spec=\"v\")",
    .example_result = "[0, 3, 1] : Tensor[(3,), int32]",
    .see_also = "index_set",
};
