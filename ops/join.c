/* SPDX-License-Identifier: Apache-2.0 */
/* Operators between one tensor and several: concatenate, stack, split. One copy a piece, to or from
 * a slice of the whole. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

/* ---- slices of the whole --------------------------------------------------------------------- */

enum { MOST_TOGETHER = 8 };

/* How many pieces, from the first on, have its shape: those are moved by one step, as the gates of an LSTM. */
static uint32_t count_alike(uint32_t n, Tensor *const *pieces) {
    const Tensor *first = pieces[0];
    uint32_t same = 1;
    while (same < n && same < MOST_TOGETHER && first->count &&
           !memcmp(pieces[same]->shape, first->shape, (size_t)first->rank * sizeof *first->shape))
        same++;
    return same;
}

/* Pieces of one shape, written to the whole at those strides, each `apart` elements behind the one before it. */
static void place_alike(Plan *plan, Tensor *whole, const int64_t *strides, int64_t offset,
                        int64_t apart, uint32_t n, Tensor *const *pieces) {
    StepBuilder s;
    if (n == 1) {
        plan_place_strided(plan, whole, strides, offset, pieces[0]);
        return;
    }
    step_begin(&s, plan, RECIPE_MAP, pieces[0]->rank, pieces[0]->shape);
    for (uint32_t i = 0; i < n; i++) {
        step_result(&s, sc_load(&s.body, step_in(&s, pieces[i]), whole->dtype));
        step_out_strided(&s, whole, strides, offset + i * apart);
    }
    step_end(&s);
}

/* Pieces laid one after the other along `axis` of the whole. */
static void place_pieces(Plan *plan, Tensor *whole, int axis, uint32_t n, Tensor *const *pieces) {
    int64_t offset = 0;
    for (uint32_t i = 0, k; i < n; i += k) {
        int64_t apart = pieces[i]->shape[axis] * whole->strides[axis];
        k = count_alike(n - i, pieces + i);
        place_alike(plan, whole, whole->strides, offset, apart, k, pieces + i);
        offset += k * apart;
    }
}

static void take_pieces(Plan *plan, const Tensor *whole, int axis, int n, Tensor *const *pieces) {
    int64_t offset = 0;
    for (int i = 0; i < n; i++) {
        plan_gather_strided(plan, pieces[i], whole, whole->strides, offset);
        offset += pieces[i]->shape[axis] * whole->strides[axis];
    }
}

/* Strides of the whole without `axis`: those of one of the tensors stacked on it. */
static void without_axis(const Tensor *whole, int axis, int64_t *strides) {
    for (int i = 0, n = 0; i < whole->rank; i++)
        if (i != axis)
            strides[n++] = whole->strides[i];
}

/* Parts first .. first + n of the call have one dtype and rank, and equal sizes but on `axis` (-1:
 * on all axes). */
static bool check_parts(const OpCall *call, uint32_t first, int axis) {
    const Tensor *a = call->in[first];
    for (uint32_t i = first + 1; i < call->nin; i++) {
        if (!shape_check_same_dtype(call, (int)first, (int)i))
            return false;
        if (!shape_check_rank(call, (int)i, a->rank))
            return false;
        for (int j = 0; j < a->rank; j++)
            if (j != axis && !shape_check_dims(call, (int)first, j, (int)i, j))
                return false;
    }
    return true;
}

static bool some_parts(const OpCall *call, uint32_t first) {
    if (call->nin > first)
        return true;
    shape_error(call, DIAG_R0316, "the tuple is empty");
    return false;
}

/* ---- concatenate ----------------------------------------------------------------------------- */

static int shape_concatenate(const OpCall *call, OutSpec *out) {
    int axis;
    int64_t dims[TENSOR_MAX_RANK];
    if (!some_parts(call, 0))
        return -1;
    const Tensor *a = call->in[0];
    if (!shape_check_min_rank(call, 0, 1))
        return -1;
    if (!shape_one_axis(call, "axis", a->rank, &axis) || !check_parts(call, 0, axis))
        return -1;
    memcpy(dims, a->shape, sizeof(int64_t) * (size_t)a->rank);
    for (uint32_t i = 1; i < call->nin; i++)
        dims[axis] = size_add(dims[axis], call->in[i]->shape[axis]);
    return shape_set(call, out, a->dtype, a->rank, dims) ? 1 : -1;
}

/* All parts have one dtype; those of known rank lend it to the others. False after a report;
 * *rank is NO_RANK while one is not known. */
static const uint32_t NO_RANK = UINT32_MAX;

/* The result has `more` axes than each of them. */
static bool unify_parts(Solver *s, Relation *r, int arg, uint32_t n, Type **parts, uint32_t more,
                        uint32_t *rank) {
    Type **of_result;
    if (!rel_rank_in(rel_result_arg(r), rank, &of_result) || *rank < 1)
        *rank = NO_RANK;
    else
        *rank -= more;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k;
        Type **dims;
        if (rel_rank_in(parts[i], &k, &dims))
            *rank = k;
        if (!solver_unify(s, rel_dtype_in(parts[i]), rel_dtype_in(parts[0]))) {
            rel_error(s, r, DIAG_R0311, "`%s`: the tensors of argument %d are of %s and %s",
                      r->op->name, arg + 1, type_text(rel_dtype_in(parts[0])),
                      type_text(rel_dtype_in(parts[i])));
            return false;
        }
    }
    uint32_t all = *rank;
    for (uint32_t i = 0; i < n && all != NO_RANK; i++) {
        uint32_t k;
        Type **dims;
        if (rel_rank_in(parts[i], &k, &dims)) {
            if (k == all)
                continue;
            rel_error(s, r, DIAG_R0313, "`%s`: the tensors have %u and %u axes", r->op->name, all,
                      k);
            return false;
        }
        if (type_has_unknown_rank(parts[i])) {
            rel_lend_rank(s, r, arg, i, all);
            continue;
        }
        Type **fresh = mem_new_n(Type *, all + 1);
        for (uint32_t j = 0; j < all; j++)
            fresh[j] = solver_var(s, KIND_DIM);
        if (rel_shape_in(parts[i])->tag != TY_VAR ||
            !solver_unify(s, rel_shape_in(parts[i]), type_shape(fresh, all)))
            *rank = NO_RANK;
    }
    return true;
}

static RelStatus relate_concatenate(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t n, rank, axis;
    Type **parts, **dims, **other;
    rel_parts(r, 0, &n, &parts);
    if (n == 0) {
        rel_error(s, r, DIAG_R0316, "`concatenate`: the tuple is empty");
        return REL_FAIL;
    }
    if (!unify_parts(s, r, 0, n, parts, 0, &rank))
        return REL_FAIL;
    rel_parts(r, 0, &n, &parts);
    if (rank == NO_RANK)
        return rel_wait(s, r, rel_dtype_in(parts[0]));
    if (!rel_one_axis(s, r, "axis", rank, &axis))
        return REL_FAIL;
    rel_rank_in(parts[0], &rank, &dims);
    Type **out = rel_copy_dims(rank, dims, 0);
    for (uint32_t i = 1; i < n; i++) {
        rel_rank_in(parts[i], &rank, &other);
        out[axis] = dim_add(out[axis], other[axis]);
        for (uint32_t j = 0; j < rank; j++) {
            if (j == axis)
                continue;
            if (!rel_unify_dim(s, r, dims[j], other[j], 0, (int)j))
                return REL_FAIL;
            int64_t d; /* a known size says more than `?` */
            if (!type_get_int(type_resolve(out[j]), &d))
                out[j] = other[j];
        }
    }
    status = rel_result(s, r, out, rank, rel_dtype_in(parts[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static bool lower_concatenate(const OpCall *call, Tensor *const *out, Plan *plan) {
    place_pieces(plan, out[0], lower_axis(call, "axis", out[0]->rank), call->nin, call->in);
    return true;
}

/* All sizes are equal, but along the axis of a concatenation. */
static void write_parts(Str *out, uint32_t nin, int rank, int axis) {
    for (uint32_t i = 0; i < nin; i++) {
        str_add(out, i ? ", (" : "(");
        for (int k = 0; k < rank; k++) {
            const char *name = rank <= 4 ? fmt_text("%c", "nmkl"[k]) : fmt_text("n%d", k);
            str_printf(out, "%s%s", k ? ", " : "", k == axis ? "_" : name);
        }
        str_add(out, ")");
    }
}

static int first_rank(uint32_t nin, const int *ranks) {
    for (uint32_t i = 0; i < nin; i++)
        if (ranks[i] > 0)
            return ranks[i];
    return 0;
}

static void write_concatenate_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    int rank = first_rank(nin, ranks), axis = (int)attrs_int(attrs, "axis");
    write_parts(out, nin, rank, axis < 0 ? axis + rank : axis);
}

static void write_stack_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    (void)attrs;
    write_parts(out, nin, first_rank(nin, ranks), -1);
}

static const RelDef rel_concatenate = {"Concatenate", relate_concatenate, 2, false};
static const AttrSpec axis_attrs[] = {{"axis", AT_INT, "0", "the axis along which they lie"}};
const Op op_concatenate = {
    .name = "concatenate",
    .args = "(data)",
    .nargs = 1,
    .write_sizes = write_concatenate_sizes,
    .attrs = axis_attrs,
    .nattrs = 1,
    .resizes = true,
    .relation = &rel_concatenate,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_concatenate,
    .lower = lower_concatenate,
    .doc = "The tensors of a tuple joined along an axis; their other sizes are equal.",
    .example = "concatenate(([1, 2], [3]), axis=0)",
    .example_result = "[1, 2, 3] : Tensor[(3,), int32]",
    .see_also = "stack, split",
};

/* ---- stack ----------------------------------------------------------------------------------- */

static int shape_stack(const OpCall *call, OutSpec *out) {
    int axis;
    int64_t dims[TENSOR_MAX_RANK];
    if (!some_parts(call, 0))
        return -1;
    const Tensor *a = call->in[0];
    if (a->rank == TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0313, "the result would have more than %d axes", TENSOR_MAX_RANK);
        return -1;
    }
    if (!shape_one_axis(call, "axis", a->rank + 1, &axis) || !check_parts(call, 0, -1))
        return -1;
    for (int i = 0; i <= a->rank; i++)
        dims[i] = i == axis ? (int64_t)call->nin : a->shape[i < axis ? i : i - 1];
    return shape_set(call, out, a->dtype, a->rank + 1, dims) ? 1 : -1;
}

static RelStatus relate_stack(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t n, rank, axis;
    Type **parts, **dims, **other;
    rel_parts(r, 0, &n, &parts);
    if (n == 0) {
        rel_error(s, r, DIAG_R0316, "`stack`: the tuple is empty");
        return REL_FAIL;
    }
    if (!unify_parts(s, r, 0, n, parts, 1, &rank))
        return REL_FAIL;
    rel_parts(r, 0, &n, &parts);
    if (rank == NO_RANK || !rel_rank_in(parts[0], &rank, &dims))
        return rel_wait(s, r, rel_dtype_in(parts[0]));
    if (!rel_one_axis(s, r, "axis", rank + 1, &axis))
        return REL_FAIL;
    Type **out = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i <= rank; i++)
        out[i] = i == axis ? rel_int_dim(r, n) : dims[i < axis ? i : i - 1];
    for (uint32_t i = 1; i < n; i++) {
        rel_rank_in(parts[i], &rank, &other);
        for (uint32_t j = 0; j < rank; j++) {
            if (!rel_unify_dim(s, r, dims[j], other[j], 0, (int)j))
                return REL_FAIL;
            int64_t d; /* as in concatenate */
            Type **size = &out[j < axis ? j : j + 1];
            if (!type_get_int(type_resolve(*size), &d))
                *size = other[j];
        }
    }
    status = rel_result(s, r, out, rank + 1, rel_dtype_in(parts[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static bool lower_stack(const OpCall *call, Tensor *const *out, Plan *plan) {
    int axis = lower_axis(call, "axis", out[0]->rank);
    int64_t strides[TENSOR_MAX_RANK];
    without_axis(out[0], axis, strides);
    int64_t apart = out[0]->strides[axis];
    for (uint32_t i = 0; i < call->nin; i += MOST_TOGETHER) {
        uint32_t n = call->nin - i < MOST_TOGETHER ? call->nin - i : MOST_TOGETHER;
        place_alike(plan, out[0], strides, i * apart, apart, n, call->in + i);
    }
    return true;
}

static const RelDef rel_stack = {"Stack", relate_stack, 2, false};
static const AttrSpec stack_attrs[] = {{"axis", AT_INT, "0", "where the new axis goes"}};
const Op op_stack = {
    .name = "stack",
    .args = "(data)",
    .nargs = 1,
    .write_sizes = write_stack_sizes,
    .attrs = stack_attrs,
    .nattrs = 1,
    .relation = &rel_stack,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_stack,
    .lower = lower_stack,
    .doc = "The tensors of a tuple, all of one type, joined along a new axis.",
    .example = "stack(([1, 2], [3, 4]), axis=1)",
    .example_result = "[[1, 3],\n [2, 4]] : Tensor[(2, 2), int32]",
    .see_also = "concatenate, split",
};

/* ---- split ----------------------------------------------------------------------------------- */

/* Where the pieces end: cuts[0 .. n-1], the last at `size`. Returns n, or -1 with a problem. */
static int split_cuts(const Attrs *attrs, int64_t size, int64_t *cuts, const char **problem) {
    const AttrValue *v = attrs_get(attrs, "indices_or_sections");
    if (v->kind == ATTR_INT) {
        *problem = v->i > OP_MAX_OUTPUTS ? "makes too many pieces" : "must be at least 1";
        if (v->i < 1 || v->i > OP_MAX_OUTPUTS)
            return -1;
        *problem = "does not divide the axis evenly";
        if (size % v->i)
            return -1;
        for (int i = 0; i < v->i; i++)
            cuts[i] = size / v->i * (i + 1);
        return (int)v->i;
    }
    int n = attr_int_list(attrs, "indices_or_sections", cuts, OP_MAX_OUTPUTS - 1);
    *problem = "must be a number of sections or a list of places";
    if (n < 0)
        return -1;
    *problem = "names places that descend or lie outside the axis";
    for (int i = 0; i < n; i++)
        if (cuts[i] < (i ? cuts[i - 1] : 0) || cuts[i] > size)
            return -1;
    cuts[n] = size;
    return n + 1;
}

static int shape_split(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis;
    int64_t dims[TENSOR_MAX_RANK], cuts[OP_MAX_OUTPUTS];
    const char *problem;
    if (!shape_check_min_rank(call, 0, 1) || !shape_one_axis(call, "axis", x->rank, &axis))
        return -1;
    int n = split_cuts(call->attrs, x->shape[axis], cuts, &problem);
    if (n < 0) {
        shape_error(call, DIAG_R0316, "indices_or_sections %s: axis %d of `data` has size %lld",
                    problem, axis, (long long)x->shape[axis]);
        return -1;
    }
    memcpy(dims, x->shape, sizeof(int64_t) * (size_t)x->rank);
    for (int i = 0; i < n; i++) {
        dims[axis] = cuts[i] - (i ? cuts[i - 1] : 0);
        if (!shape_set(call, &out[i], x->dtype, x->rank, dims))
            return -1;
    }
    return n;
}

/* The pieces are tensors of data's dtype and rank, equal sections of one shape: they tell data's
 * rank. */
static bool unify_pieces(Solver *s, Relation *r) {
    const AttrValue *v = attrs_get(r->attrs, "indices_or_sections");
    const Attrs *attrs = attrs_with_unit_sizes(r->attrs);
    int64_t cuts[OP_MAX_OUTPUTS];
    uint32_t rank, had;
    const char *problem;
    Type **dims, *shape = solver_var(s, KIND_SHAPE);
    if (rel_rank_in(r->args[0], &rank, &dims))
        return true;
    int n = attrs == r->attrs
                ? split_cuts(attrs, v->kind == ATTR_INT ? 0 : INT64_MAX, cuts, &problem)
                : (int)v->list.n + 1;
    if (n < 0) { /* whatever the size is */
        rel_error(s, r, DIAG_R0316, "`split`: indices_or_sections %s", problem);
        return false;
    }
    Type **pieces = mem_new_n(Type *, n + 1);
    for (int i = 0; i < n; i++) {
        if (i && v->kind != ATTR_INT)
            shape = solver_var(s, KIND_SHAPE);
        pieces[i] = type_tensor(shape, rel_dtype_in(r->args[0]));
    }
    if (rel_result_type(s, r, type_tuple(pieces, (uint32_t)n)) == REL_FAIL)
        return false;
    for (int i = 0; i < n; i++)
        if (rel_rank_in(pieces[i], &had, &dims))
            return rel_give_rank(s, r, 0, had);
    return true;
}

/* n equal sections of a size that is known make one of data's. */
static bool join_sections(Solver *s, Relation *r, uint32_t n, uint32_t axis, Type *size) {
    uint32_t npieces, rank;
    Type **pieces, **dims;
    if (type_resolve(size)->tag != TY_VAR || !rel_parts(r, (int)r->nargs - 1, &npieces, &pieces))
        return true;
    for (uint32_t i = 0; i < npieces; i++) {
        if (!rel_rank_in(pieces[i], &rank, &dims) || axis >= rank)
            continue;
        Type *d = type_resolve(dims[axis]);
        if (!(d->flags & (TYPE_HAS_ANY | TYPE_HAS_VARS)))
            return rel_unify_dim(s, r, size, dim_mul(d, rel_int_dim(r, n)), 0, (int)axis);
    }
    return true;
}

static RelStatus relate_split(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank, axis, n;
    Type **dims;
    if (!unify_pieces(s, r))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    if (!rel_one_axis(s, r, "axis", rank, &axis))
        return REL_FAIL;
    const AttrValue *v = attrs_get(r->attrs, "indices_or_sections");
    int64_t cuts[OP_MAX_OUTPUTS], size;
    bool known = type_get_int(type_resolve(dims[axis]), &size);
    const char *problem;
    if (v->kind == ATTR_INT) {
        if (v->i < 1 || v->i > OP_MAX_OUTPUTS || (known && size % v->i))
            goto bad;
        n = (uint32_t)v->i;
    } else {
        const Attrs *attrs = attrs_with_unit_sizes(r->attrs);
        int k = known && attrs == r->attrs
                    ? split_cuts(attrs, size, cuts, &problem)
                    : attr_int_list(attrs, "indices_or_sections", cuts, OP_MAX_OUTPUTS - 1) + 1;
        if (k < 1)
            goto bad;
        n = (uint32_t)k;
    }
    Type **pieces = mem_new_n(Type *, n + 1);
    Type *section = NULL;
    if (v->kind == ATTR_INT) {
        if (!join_sections(s, r, n, axis, dims[axis]))
            return REL_FAIL;
        section = rel_quotient(s, dims[axis], rel_int_dim(r, n));
    }
    for (uint32_t i = 0; i < n; i++) {
        Type **out = rel_copy_dims(rank, dims, 0);
        Type *end = v->kind == ATTR_INT || i + 1 == n ? dims[axis]
                                                      : rel_attr_dim(&v->list.items[i]);
        if (v->kind == ATTR_INT)
            out[axis] = section;
        else
            out[axis] = i ? dim_sub(end, rel_attr_dim(&v->list.items[i - 1])) : end;
        pieces[i] = type_tensor(type_shape(out, rank), rel_dtype_in(r->args[0]));
    }
    if (rel_result_type(s, r, type_tuple(pieces, n)) == REL_FAIL)
        return REL_FAIL;
    return rel_settled(r);
bad:
    rel_error(s, r, DIAG_R0316, "`split`: indices_or_sections does not cut axis %u of %s", axis,
              type_text(r->args[0]));
    return REL_FAIL;
}

static bool lower_split(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int axis = lower_axis(call, "axis", x->rank);
    int64_t cuts[OP_MAX_OUTPUTS];
    const char *problem;
    take_pieces(plan, x, axis, split_cuts(call->attrs, x->shape[axis], cuts, &problem), out);
    return true;
}

static const RelDef rel_split = {"Split", relate_split, 2, false};
static const AttrSpec split_attrs[] = {
    {"indices_or_sections", AT_INT_OR_DIMS, NULL, "how many equal pieces, or where to cut"},
    {"axis", AT_INT, "0", "the axis to cut"},
};
const Op op_split = {
    .name = "split",
    .args = "data",
    .nargs = 1,
    .attrs = split_attrs,
    .nattrs = 2,
    .relation = &rel_split,
    .dtypes = DTS_ALL,
    .pattern = OP_TUPLE,
    .shape = shape_split,
    .refuses_sizes = true,
    .tuple = true,
    .lower = lower_split,
    .doc = "A tuple of pieces: a number of equal sections, or cut at given places.",
    .example = "split([1, 2, 3, 4], indices_or_sections=[1, 2])",
    .example_result = "([1], [2], [3, 4]) : (Tensor[(1,), int32], Tensor[(1,), int32], "
                      "Tensor[(2,), int32])",
    .see_also = "concatenate, strided_slice",
};

/* ---- split_like, unstack_like ---------------------------------------------------------------- */

enum { JOINED, STACKED };

/* (whole, (parts)): the whole cut as the parts would be joined. */
static int shape_like_parts(const OpCall *call, OutSpec *out) {
    const Tensor *whole = call->in[0];
    for (uint32_t i = 1; i < call->nin; i++) {
        const Tensor *p = call->in[i];
        if (!shape_set(call, &out[i - 1], whole->dtype, p->rank, p->shape))
            return -1;
    }
    bool stacked = call->op->variant == STACKED;
    int axis;
    int64_t sum = 0;
    if (!some_parts(call, 1) || !shape_one_axis(call, "axis", whole->rank, &axis))
        return -1;
    if (call->nin - 1 > OP_MAX_OUTPUTS) {
        shape_error(call, DIAG_R0316, "a tuple has at most %d parts here", OP_MAX_OUTPUTS);
        return -1;
    }
    for (uint32_t i = 1; i < call->nin; i++) {
        if (!shape_check_rank(call, (int)i, whole->rank - stacked))
            return -1;
        for (int j = 0; j < whole->rank; j++) {
            int k = stacked && j > axis ? j - 1 : j;
            if (j != axis && !shape_check_dims(call, 0, j, (int)i, k))
                return -1;
        }
        sum = size_add(sum, stacked ? 1 : call->in[i]->shape[axis]);
    }
    if (sum != whole->shape[axis]) {
        shape_error(call, DIAG_R0314, "the parts make %lld of axis %d, which has size %lld",
                    (long long)sum, axis, (long long)whole->shape[axis]);
        return -1;
    }
    return (int)call->nin - 1;
}

static RelStatus relate_like_parts(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_ALL}, &status))
        return status;
    uint32_t n;
    Type **parts;
    rel_parts(r, 1, &n, &parts);
    Type **out = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = type_tensor(rel_shape_in(parts[i]), rel_dtype_in(r->args[0]));
    return rel_result_type(s, r, type_tuple(out, n)) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_split_like(const OpCall *call, Tensor *const *out, Plan *plan) {
    take_pieces(plan, call->in[0], lower_axis(call, "axis", call->in[0]->rank), (int)call->nin - 1,
                out);
    return true;
}

static bool lower_unstack_like(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int axis = lower_axis(call, "axis", x->rank);
    int64_t strides[TENSOR_MAX_RANK];
    without_axis(x, axis, strides);
    for (uint32_t i = 0; i + 1 < call->nin; i++)
        plan_gather_strided(plan, out[i], x, strides, (int64_t)i * x->strides[axis]);
    return true;
}

static const RelDef rel_split_like = {"SplitLike", relate_like_parts, 3, false};
const Op op_split_like = {
    .name = "split_like",
    .args = "whole, (parts)",
    .nargs = 2,
    .attrs = axis_attrs,
    .nattrs = 1,
    .relation = &rel_split_like,
    .dtypes = DTS_ALL,
    .pattern = OP_TUPLE,
    .variant = JOINED,
    .shape = shape_like_parts,
    .refuses_sizes = true,
    .tuple = true,
    .lower = lower_split_like,
    .doc = "Undoes concatenate: whole cut into a tuple of the parts' shapes.",
    .example = "split_like([1, 2, 3], ([0], [0, 0]))",
    .example_result = "([1], [2, 3]) : (Tensor[(1,), int32], Tensor[(2,), int32])",
    .see_also = "split, concatenate",
};
static const RelDef rel_unstack_like = {"UnstackLike", relate_like_parts, 3, false};
const Op op_unstack_like = {
    .name = "unstack_like",
    .args = "whole, (parts)",
    .nargs = 2,
    .attrs = stack_attrs,
    .nattrs = 1,
    .relation = &rel_unstack_like,
    .dtypes = DTS_ALL,
    .pattern = OP_TUPLE,
    .variant = STACKED,
    .shape = shape_like_parts,
    .refuses_sizes = true,
    .tuple = true,
    .lower = lower_unstack_like,
    .doc = "Undoes stack: a tuple of the tensors along an axis, as many as there are parts.",
    .example = "unstack_like([[1, 2], [3, 4]], ([0, 0], [0, 0]))",
    .example_result = "([1, 2], [3, 4]) : (Tensor[(2,), int32], Tensor[(2,), int32])",
    .see_also = "stack",
};

/* ---- nn.fifo_buffer -------------------------------------------------------------------------- */

static int shape_fifo_buffer(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *buffer = call->in[1];
    int axis;
    if (!shape_check_rank(call, 1, x->rank) ||
        !shape_axis(call, "axis", attrs_int(call->attrs, "axis"), x->rank, &axis) ||
        !check_parts(call, 0, axis))
        return -1;
    if (x->shape[axis] > buffer->shape[axis]) {
        shape_error(call, DIAG_R0314, "axis %d of `data` is %lld, and that of `buffer` %lld", axis,
                    (long long)x->shape[axis], (long long)buffer->shape[axis]);
        return -1;
    }
    return shape_set(call, out, x->dtype, x->rank, buffer->shape) ? 1 : -1;
}

static RelStatus relate_fifo_buffer(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_ALL}, &status))
        return status;
    Type *like = type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0])), **x, **buffer;
    uint32_t rank, of_buffer, axis;
    if (!rel_unify(s, r, 1, like) || !rel_same_rank(s, r, 0, 1))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &x) || !rel_rank_in(r->args[1], &of_buffer, &buffer))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    if (rank != of_buffer) {
        rel_error(s, r, DIAG_R0313, "`nn.fifo_buffer`: `buffer` has %u axes, not %u", of_buffer,
                  rank);
        return REL_FAIL;
    }
    if (!rel_one_axis(s, r, "axis", rank, &axis))
        return REL_FAIL;
    for (uint32_t k = 0; k < rank; k++)
        if (k != axis && !rel_unify_dim(s, r, x[k], buffer[k], 0, (int)k))
            return REL_FAIL;
    return rel_result_type(s, r, r->args[1]) == REL_FAIL ? REL_FAIL : rel_settled(r);
}

/* What is left of the buffer, then data. */
static bool lower_fifo_buffer(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *buffer = call->in[1];
    int axis = lower_axis(call, "axis", x->rank);
    int64_t shape[TENSOR_MAX_RANK];
    memcpy(shape, buffer->shape, sizeof shape);
    shape[axis] -= x->shape[axis];
    Tensor *rest = tensor_view(buffer, buffer->rank, shape, buffer->strides,
                               buffer->offset + x->shape[axis] * buffer->strides[axis]);
    place_pieces(plan, out[0], axis, 2, (Tensor *const[]){rest, call->in[0]});
    return true;
}

static const RelDef rel_fifo_buffer = {"FIFOBuffer", relate_fifo_buffer, 3, false};
static const AttrSpec fifo_buffer_attrs[] = {
    {"axis", AT_INT, "0", "along which data is appended"},
};
const Op op_nn_fifo_buffer = {
    .name = "nn.fifo_buffer",
    .args = "data, buffer",
    .nargs = 2,
    .attrs = fifo_buffer_attrs,
    .nattrs = 1,
    .relation = &rel_fifo_buffer,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_fifo_buffer,
    .refuses_sizes = true,
    .lower = lower_fifo_buffer,
    .doc =
        "The buffer with data behind it, and as much of its beginning dropped: the last inputs of\n"
        "a convolution over a stream.",
    .example = "nn.fifo_buffer([4.0], [1.0, 2.0, 3.0])",
    .example_result = "[2.0, 3.0, 4.0] : Tensor[(3,), float32]",
    .see_also = "concatenate, strided_slice",
};
