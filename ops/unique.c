/* SPDX-License-Identifier: Apache-2.0 */
/* unique and argwhere: how large the results are depends on the elements. argwhere counts before it
 * writes; unique writes up to its bound, the size of data, and is cut to what it found (TVM leaves
 * the rest in the result, undefined). */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"
#include "ops/sort.h"

/* ---- argwhere -------------------------------------------------------------------------------- */

static bool is_true(const Tensor *t, const void *p) {
    if (dtype_is_float(t->dtype))
        return elem_get_float(p, t->dtype) != 0; /* nan is */
    return elem_get_int(p, t->dtype) != 0;
}

static int shape_argwhere(const OpCall *call, OutSpec *out) {
    const Tensor *t = tensor_contiguous(call->in[0]);
    const char *p = tensor_data(t);
    int64_t dims[2] = {0, t->rank}, step = (int64_t)dtype_size(t->dtype);
    for (int64_t i = 0; i < t->count; i++)
        dims[0] += is_true(t, p + i * step);
    return shape_set(call, out, DT_I32, 2, dims) ? 1 : -1;
}

static RelStatus relate_argwhere(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank;
    Type **dims;
    int64_t n;
    if (rel_rank_in(rel_result_arg(r), &rank, &dims) && rank == 2 &&
        type_get_int(type_resolve(dims[1]), &n) && !rel_give_rank(s, r, 0, n))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait_rank(s, r, 2, type_dtype(DT_I32));
    Type *out[2] = {rel_unknown_dim(r), rel_int_dim(r, rank)};
    return rel_result(s, r, out, 2, type_dtype(DT_I32)) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* The places in x, as row-major order numbers them, of the elements that are not zero. One that is zero writes -1 where
 * the next one that is not will stand, or at the last place, and the larger number stays. */
static Tensor *plan_true_places(Plan *plan, const Tensor *x, int64_t found) {
    const Tensor *flat = plan_contiguous(plan, x);
    Tensor *before = plan_temp(plan, DT_I64, 1, &x->count);
    Tensor *places = plan_temp(plan, DT_I64, 1, &found);
    int64_t along[RECIPE_MAX_AXES] = {1}, none[RECIPE_MAX_AXES] = {0};
    plan_fill_int(plan, places, -1);
    for (int pass = 0; pass < 2; pass++) {
        StepBuilder s;
        step_begin(&s, plan, pass ? RECIPE_SCATTER : RECIPE_SCAN, 1, &x->count);
        step_combine(&s, pass ? COMBINE_MAX : COMBINE_SUM, DT_I64);
        ScalarBuilder *b = &s.body;
        Sc v = sc_load(b, step_in_strided(&s, flat, along, 0), x->dtype);
        Sc is_true = sc_ne(b, v, sc_int(b, sc_type(b, v), 0)); /* nan is */
        if (pass) {
            Sc to = sc_load(b, step_in_strided(&s, before, along, 0), DT_I64);
            step_result(&s, sc_select(b, is_true, sc_iota(b, 0), sc_i64(b, -1)));
            step_result(&s, sc_min(b, to, step_iparam(&s, b, DT_I64, found - 1)));
        } else {
            s.last = true;
            sc_cast(b, is_true, DT_I64);
        }
        step_out_strided(&s, pass ? places : before, pass ? none : along, 0);
        step_end(&s);
    }
    return places;
}

static bool lower_argwhere(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t found = out[0]->shape[0], inner = x->count;
    if (out[0]->count == 0)
        return true;
    const Tensor *places = plan_true_places(plan, x, found);
    for (int axis = 0; axis < x->rank; axis++) {
        int64_t along[RECIPE_MAX_AXES] = {1}, to[RECIPE_MAX_AXES] = {out[0]->strides[0]};
        StepBuilder s;
        inner /= x->shape[axis];
        step_begin(&s, plan, RECIPE_MAP, 1, &found);
        ScalarBuilder *b = &s.body;
        Sc place = sc_load(b, step_in_strided(&s, places, along, 0), DT_I64);
        place = sc_div(b, place, step_iparam(&s, b, DT_I64, inner));
        sc_cast(b, sc_rem(b, place, step_iparam(&s, b, DT_I64, x->shape[axis])), DT_I32);
        step_out_strided(&s, out[0], to, axis * out[0]->strides[1]);
        step_end(&s);
    }
    return true;
}

static const RelDef rel_argwhere = {"ArgWhere", relate_argwhere, 2, false};
const Op op_argwhere = {
    .name = "argwhere",
    .args = "condition",
    .nargs = 1,
    .relation = &rel_argwhere,
    .dtypes = DTS_ALL,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_OPAQUE,
    .shape = shape_argwhere,
    .lower = lower_argwhere,
    .doc =
        "The places of the elements that are not zero, one a row, in row-major order. Rank 0: no "
        "or one\nempty row.",
    .example = "argwhere([[1, 0], [2, 3]])",
    .example_result = "[[0, 0],\n [1, 0],\n [1, 1]] : Tensor[(?, 2), int32]",
    .see_also = "where, unique",
};

/* ---- unique ---------------------------------------------------------------------------------- */

enum { VALUES, INDICES, INVERSE, COUNT, COUNTS };

static int shape_unique(const OpCall *call, OutSpec *out) {
    const Tensor *t = call->in[0];
    int n = attrs_bool(call->attrs, "return_counts") ? 5 : 4;
    if (!shape_check_rank(call, 0, 1))
        return -1;
    for (int i = 0; i < n; i++) {
        int64_t size = i == COUNT ? 1 : t->shape[0];
        if (!shape_set(call, &out[i], i == VALUES ? t->dtype : DT_I32, 1, &size))
            return -1;
    }
    return n;
}

/* What was found, of all that has one element for each. */
static void cut_unique(const OpCall *call, Tensor *const *out, OutSpec *actual) {
    (void)call;
    int64_t found = elem_get_int(tensor_at(out[COUNT], 0), DT_I32);
    actual[VALUES].shape[0] = actual[INDICES].shape[0] = actual[COUNTS].shape[0] = found;
}

static RelStatus relate_unique(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    if (!rel_make_rank(s, r, 0, 1))
        return REL_FAIL;
    uint32_t rank, n = attrs_bool(r->attrs, "return_counts") ? 5 : 4;
    Type **dims, *found = rel_unknown_dim(r), *out[5];
    if (!rel_rank_in(r->args[0], &rank, &dims) || rank != 1) {
        rel_error(s, r, DIAG_R0313, "`unique`: `data` has %u axes, not 1", rank);
        return REL_FAIL;
    }
    for (uint32_t i = 0; i < n; i++) {
        Type *size = i == COUNT ? rel_int_dim(r, 1) : i == INVERSE ? dims[0] : found;
        out[i] = type_tensor(type_shape(&size, 1),
                             i == VALUES ? rel_dtype_in(r->args[0]) : type_dtype(DT_I32));
    }
    return rel_result_type(s, r, type_tuple(out, n)) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static void put(Tensor *const *out, int which, int64_t i, int64_t v) {
    elem_set_int(tensor_at(out[which], i), DT_I32, v);
}

/* In sorted order equal elements stand together, the first of them first. */
static bool eval_unique(const OpCall *call, Tensor *const *out) {
    const Tensor *t = call->in[0];
    int64_t n = t->count, found = 0;
    int64_t *order = mem_bytes(sizeof *order * (size_t)(3 * n + 1)), *first = order + n,
            *place = first + n; /* first[i]: the first element equal to i; place: of a first one */
    sort_vector(call, t, order);
    for (int64_t k = 0; k < n; k++) {
        bool again = k && sort_is_equal(t, order[k - 1], order[k]);
        first[order[k]] = again ? first[order[k - 1]] : order[k];
    }
    bool sorted = attrs_bool(call->attrs, "sorted"),
         counts = attrs_bool(call->attrs, "return_counts");
    for (int64_t k = 0; k < n; k++) {
        int64_t i = sorted ? order[k] : k;
        if (first[i] != i)
            continue;
        memcpy(tensor_at(out[VALUES], found), tensor_at(t, i), dtype_size(t->dtype));
        put(out, INDICES, found, i);
        if (counts)
            put(out, COUNTS, found, 0);
        place[i] = found++;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = place[first[i]];
        put(out, INVERSE, i, at);
        if (counts)
            put(out, COUNTS, at, elem_get_int(tensor_at(out[COUNTS], at), DT_I32) + 1);
    }
    put(out, COUNT, 0, found);
    return true;
}

static const RelDef rel_unique = {"Unique", relate_unique, 2, false};
static const AttrSpec unique_attrs[] = {
    {"sorted", AT_BOOL, "True", "the smallest first, nan last; False: as they first occur"},
    {"return_counts", AT_BOOL, "False", "a fifth result: how often each occurs"},
};
const Op op_unique = {
    .name = "unique",
    .args = "data",
    .nargs = 1,
    .attrs = unique_attrs,
    .nattrs = 2,
    .relation = &rel_unique,
    .dtypes = DTS_ALL,
    .shape_mode = SHAPE_BOUND,
    .pattern = OP_OPAQUE,
    .shape = shape_unique,
    .tuple = true,
    .cut = cut_unique,
    .eval = eval_unique,
    .reference_only = "it sorts, and what is equal stands together",
    .doc = "Of a vector: each value once, the place where it first occurs, the number of its value "
           "for each\nelement, and how many values there are. All nan are one value, 0.0 and -0.0 "
           "another.",
    .example = "unique([5, 2, 5])",
    .example_result =
        "([2, 5], [1, 0], [1, 0, 1], [2]) : (Tensor[(?1,), int32], Tensor[(?1,), int32], "
        "Tensor[(3,), int32], Tensor[(1,), int32])",
    .see_also = "argwhere, sort",
};
