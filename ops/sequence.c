/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that keep data's shape and choose by place: trilu, reverse_sequence, sequence_mask, and those of
 * places themselves: unravel_index, invert_permutation, searchsorted. */
#include <string.h>

#include "base/mem.h"
#include "ops/gather.h"
#include "ops/relate/solve.h"

/* A vector along one axis of a step's domain, or a scalar (axis < 0). */
static int along(StepBuilder *s, const Tensor *v, int axis) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    if (axis >= 0)
        strides[axis] = v->strides[0];
    return step_in_strided(s, v, strides, 0);
}

static RelStatus done(RelStatus status) { return status == REL_FAIL ? REL_FAIL : REL_DONE; }

static Sc zero_of(ScalarBuilder *b, DType t) {
    return dtype_is_float(t) ? sc_float(b, t, 0) : sc_int(b, t, 0);
}

/* ---- trilu ------------------------------------------------------------------------------------- */

static int shape_trilu(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    if (!shape_check_min_rank(call, 0, 2) || !shape_check_dtype(call, 1, DTS_INT) ||
        !shape_check_rank(call, 1, 0))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_trilu(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT}, &status))
        return status;
    uint32_t rank;
    Type **dims;
    if (!rel_need_rank(s, r, 1, 0) || rel_result_type(s, r, r->args[0]) == REL_FAIL)
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    if (rank >= 2)
        return REL_DONE;
    rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes, at least %d are needed", r->op->name,
              "data", rank, 2);
    return REL_FAIL;
}

static bool lower_trilu(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *k = call->in[1];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, x), x->dtype);
    Sc diagonal = sc_sub(b, sc_iota(b, x->rank - 1), sc_iota(b, x->rank - 2));
    Sc at = sc_index_load(b, along(&s, k, -1), k->dtype);
    bool upper = attrs_bool(call->attrs, "upper");
    Sc kept = upper ? sc_ge(b, diagonal, at) : sc_le(b, diagonal, at);
    sc_select(b, kept, v, zero_of(b, sc_type(b, v)));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec trilu_attrs[] = {
    {"upper", AT_BOOL, "True", "keep what is on the diagonal and above it; else below it"},
};
static const RelDef rel_trilu = {"Trilu", relate_trilu, 3, false};
const Op op_trilu = {
    .name = "trilu",
    .args = "data, k",
    .nargs = 2,
    .attrs = trilu_attrs,
    .nattrs = 1,
    .relation = &rel_trilu,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_trilu,
    .lower = lower_trilu,
    .doc = "The upper or lower triangle of the matrices in the last two axes, and 0 elsewhere; k "
           "is the\n"
           "number of the diagonal, 0 the main one, 1 that above it.",
    .example = "trilu([[1, 2], [3, 4]], 0)",
    .example_result = "[[1, 2],\n [0, 4]] : Tensor[(2, 2), int32]",
    .see_also = "matrix_set_diag, where",
};

/* ---- reverse_sequence, sequence_mask ----------------------------------------------------------- */

/* Along which axis sequences run, and along which the lengths of each lie. */
static bool read_axes(const OpCall *call, const char *sequence, const char *batch, int *axis,
                      int *along_batch) {
    const Tensor *x = call->in[0];
    if (!shape_check_min_rank(call, 0, 2) || !shape_check_rank(call, 1, 1) ||
        !shape_one_axis(call, sequence, x->rank, axis))
        return false;
    if (batch ? !shape_one_axis(call, batch, x->rank, along_batch) : *axis > 1) {
        if (!batch)
            shape_error(call, DIAG_R0316, "axis is 0 or 1");
        return false;
    }
    if (!batch)
        *along_batch = 1 - *axis;
    if (*axis != *along_batch)
        return shape_check_dims(call, 0, *along_batch, 1, 0);
    shape_error(call, DIAG_R0316, "the axes of sequences and of the batch are one");
    return false;
}

static int shape_reverse(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis, batch;
    if (!shape_check_dtype(call, 1, DTS_INT) ||
        !read_axes(call, "seq_axis", "batch_axis", &axis, &batch))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static int shape_mask(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int axis, batch;
    if (!shape_check_dtype(call, 0, DTS_NUM) || !shape_check_dtype(call, 1, DTS_NUM) ||
        !read_axes(call, "axis", NULL, &axis, &batch))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

enum { REVERSE, MASK };

static RelStatus relate_lengths(Solver *s, Relation *r) {
    RelStatus status;
    bool mask = r->op->variant == MASK;
    DTypeSet sets[] = {mask ? DTS_NUM : DTS_ALL, mask ? DTS_NUM : DTS_INT};
    if (rel_known(s, r, sets, &status))
        return status;
    uint32_t rank, n, axis, batch;
    Type **dims, **lengths;
    if (!rel_need_rank(s, r, 1, 1) || rel_result_type(s, r, r->args[0]) == REL_FAIL)
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    if (rank < 2) {
        rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes, at least %d are needed", r->op->name,
                  "data", rank, 2);
        return REL_FAIL;
    }
    if (!rel_one_axis(s, r, mask ? "axis" : "seq_axis", rank, &axis))
        return REL_FAIL;
    if (mask && axis > 1) {
        rel_error(s, r, DIAG_R0316, "`%s`: axis is 0 or 1", r->op->name);
        return REL_FAIL;
    }
    batch = 1 - axis;
    if (!mask && !rel_one_axis(s, r, "batch_axis", rank, &batch))
        return REL_FAIL;
    if (axis == batch) {
        rel_error(s, r, DIAG_R0316, "`%s`: the axes of sequences and of the batch are one",
                  r->op->name);
        return REL_FAIL;
    }
    rel_rank_in(r->args[1], &n, &lengths);
    return rel_unify_dim(s, r, dims[batch], lengths[0], 0, (int)batch) ? REL_DONE : REL_FAIL;
}

static bool lower_reverse_sequence(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *lengths = call->in[1];
    int axis = lower_axis(call, "seq_axis", x->rank);
    int batch = lower_axis(call, "batch_axis", x->rank);
    int64_t strides[TENSOR_MAX_RANK];
    memcpy(strides, x->strides, sizeof *strides * (size_t)x->rank);
    strides[axis] = 0;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc i = sc_iota(b, axis), size = step_iparam(&s, b, DT_I64, x->shape[axis]);
    Sc n = sc_min(b, sc_index_load(b, along(&s, lengths, batch), lengths->dtype), size);
    Sc back = sc_sub(b, sc_sub(b, n, sc_i64(b, 1)), i);
    Sc at = sc_select(b, sc_lt(b, i, n), back, i);
    at = sc_mul(b, at, step_iparam(&s, b, DT_I64, x->strides[axis]));
    sc_load_at(b, step_in_strided(&s, x, strides, 0), x->dtype, at);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static bool lower_sequence_mask(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *lengths = call->in[1];
    int axis = lower_axis(call, "axis", x->rank);
    double fill = attrs_float(call->attrs, "mask_value");
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, x), x->dtype);
    DType t = sc_type(b, v), wide = dtype_is_float(lengths->dtype) ? DT_F64 : DT_I64;
    Sc n = sc_cast(b, sc_load(b, along(&s, lengths, 1 - axis), lengths->dtype), wide);
    Sc inside = sc_lt(b, sc_cast(b, sc_iota(b, axis), wide), n);
    Sc mask = dtype_is_float(t) ? step_fparam(&s, b, t, fill)
                                : step_iparam(&s, b, t, (int64_t)fill);
    sc_select(b, inside, v, mask);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec reverse_attrs[] = {
    {"seq_axis", AT_INT, "1", "the axis along which sequences run"},
    {"batch_axis", AT_INT, "0", "the axis of the sequences, along which their lengths lie"},
};
static const RelDef rel_reverse_sequence = {"ReverseSequence", relate_lengths, 3, false};
const Op op_reverse_sequence = {
    .name = "reverse_sequence",
    .args = "data, seq_lengths",
    .nargs = 2,
    .attrs = reverse_attrs,
    .nattrs = 2,
    .relation = &rel_reverse_sequence,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .variant = REVERSE,
    .shape = shape_reverse,
    .lower = lower_reverse_sequence,
    .doc =
        "Of each sequence its first elements, as many as its length says, in reverse; the others\n"
        "stay.",
    .example = "reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3])",
    .example_result = "[[2, 1, 3],\n [6, 5, 4]] : Tensor[(2, 3), int32]",
    .see_also = "reverse, sequence_mask",
};
static const AttrSpec mask_attrs[] = {
    {"mask_value", AT_FLOAT, "0.0", "what stands behind the end of a sequence"},
    {"axis", AT_INT, "0",
     "the axis along which sequences run, 0 or 1; the other is that of sequences"},
};
static const RelDef rel_sequence_mask = {"SequenceMask", relate_lengths, 3, false};
const Op op_sequence_mask = {
    .name = "sequence_mask",
    .args = "data, valid_length",
    .nargs = 2,
    .attrs = mask_attrs,
    .nattrs = 2,
    .relation = &rel_sequence_mask,
    .dtypes = DTS_NUM,
    .pattern = OP_INJECTIVE,
    .variant = MASK,
    .shape = shape_mask,
    .lower = lower_sequence_mask,
    .doc = "data, with mask_value behind the end of each sequence, which valid_length tells.",
    .example = "sequence_mask([[1, 2], [3, 4]], [1, 2])",
    .example_result = "[[1, 2],\n [0, 4]] : Tensor[(2, 2), int32]",
    .see_also = "reverse_sequence",
};

/* ---- unravel_index, invert_permutation --------------------------------------------------------- */

enum { MOST_AXES = TENSOR_MAX_RANK };

static int shape_unravel(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *sizes = call->in[1];
    int64_t dims[TENSOR_MAX_RANK + 1];
    if (!shape_check_dtype(call, 0, DTS_INT) || !shape_check_dtype(call, 1, DTS_INT) ||
        !shape_check_rank(call, 1, 1))
        return -1;
    if (sizes->shape[0] > MOST_AXES) {
        shape_error(call, DIAG_R0316, "`shape` has at most %d sizes", MOST_AXES);
        return -1;
    }
    dims[0] = sizes->shape[0];
    memcpy(dims + 1, x->shape, sizeof *dims * (size_t)x->rank);
    return shape_set(call, out, x->dtype, x->rank + 1, dims) ? 1 : -1;
}

static RelStatus relate_unravel(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_INT, DTS_INT}, &status))
        return status;
    uint32_t rank, one;
    Type **dims, **sizes;
    if (!rel_need_rank(s, r, 1, 1) || !rel_rank_of_result(s, r, 0, -1))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    rel_rank_in(r->args[1], &one, &sizes);
    Type **out = mem_new_n(Type *, rank + 1);
    out[0] = sizes[0];
    for (uint32_t i = 0; i < rank; i++)
        out[i + 1] = dims[i];
    return done(rel_result(s, r, out, rank + 1, rel_dtype_in(r->args[0])));
}

/* Row a of the result: data / (the sizes behind a) % size a. */
static bool lower_unravel(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *sizes = call->in[1];
    int64_t n = sizes->shape[0], none[TENSOR_MAX_RANK] = {0};
    for (int64_t a = 0; a < n; a++) {
        StepBuilder s;
        step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
        ScalarBuilder *b = &s.body;
        Sc v = sc_index_load(b, step_in(&s, x), x->dtype), behind = sc_i64(b, 1);
        for (int64_t k = a + 1; k < n; k++) {
            int in = step_in_strided(&s, sizes, none, k * sizes->strides[0]);
            behind = sc_mul(b, behind, sc_index_load(b, in, sizes->dtype));
        }
        int in = step_in_strided(&s, sizes, none, a * sizes->strides[0]);
        v = sc_rem(b, sc_div(b, v, behind), sc_index_load(b, in, sizes->dtype));
        sc_cast(b, v, sc_type_of(x->dtype));
        step_out_strided(&s, out[0], out[0]->strides + 1, a * out[0]->strides[0]);
        step_end(&s);
    }
    return true;
}

static const RelDef rel_unravel = {"UnRavelIndexRel", relate_unravel, 3, false};
const Op op_unravel_index = {
    .name = "unravel_index",
    .args = "data, shape",
    .nargs = 2,
    .relation = &rel_unravel,
    .dtypes = DTS_INT,
    .pattern = OP_INJECTIVE,
    .shape = shape_unravel,
    .lower = lower_unravel,
    .doc =
        "The places along each axis of a tensor of this shape that have these numbers, row-major:\n"
        "one row an axis.",
    .example = "unravel_index([5, 6], [2, 4])",
    .example_result = "[[1, 1],\n [1, 2]] : Tensor[(2, 2), int32]",
    .see_also = "argmax",
};

static int shape_invert(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    if (!shape_check_dtype(call, 0, DTS_INT) || !shape_check_rank(call, 0, 1))
        return -1;
    return shape_set(call, out, x->dtype, 1, x->shape) ? 1 : -1;
}

static RelStatus relate_invert(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_INT}, &status))
        return status;
    return rel_need_rank(s, r, 0, 1) ? done(rel_result_type(s, r, r->args[0])) : REL_FAIL;
}

static const char *blame_number(const OpCall *call) {
    int64_t n = call->in[0]->shape[0], at;
    return find_index_outside(call->in[0], 0, n, NULL, &at)
               ? fmt_text("%lld is none of the places 0 to %lld", (long long)at, (long long)n - 1)
               : NULL;
}

static bool lower_invert(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t none = 0;
    plan_fill_int(plan, out[0], 0);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, 1, x->shape);
    step_combine(&s, COMBINE_NONE, sc_type_of(x->dtype));
    ScalarBuilder *b = &s.body;
    Sc at = sc_index_load(b, step_in(&s, x), x->dtype);
    sc_check(b, sc_in_range(b, at, step_iparam(&s, b, DT_I64, x->shape[0])), KERNEL_INDEX);
    step_result(&s, sc_cast(b, sc_iota(b, 0), sc_type_of(x->dtype)));
    step_result(&s, sc_mul(b, at, step_iparam(&s, b, DT_I64, out[0]->strides[0])));
    step_out_strided(&s, out[0], &none, 0);
    step_end(&s);
    return true;
}

static const RelDef rel_invert = {"InvertPermutation", relate_invert, 2, false};
const Op op_invert_permutation = {
    .name = "invert_permutation",
    .args = "data",
    .nargs = 1,
    .relation = &rel_invert,
    .dtypes = DTS_INT,
    .pattern = OP_OPAQUE,
    .shape = shape_invert,
    .blame_index = blame_number,
    .lower = lower_invert,
    .doc = "The permutation that undoes data: at place data[i] stands i.",
    .example = "invert_permutation([2, 0, 1])",
    .example_result = "[1, 2, 0] : Tensor[(3,), int32]",
    .see_also = "argsort",
};

/* ---- searchsorted ------------------------------------------------------------------------------ */

/* (sequence, values): one sequence for all values, or one for each row of them. */
static int shape_search(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *v = call->in[1];
    if (!shape_check_dtype(call, 0, DTS_NUM) || !shape_check_same_dtype(call, 0, 1) ||
        !shape_check_min_rank(call, 0, 1) || (x->rank != 1 && !shape_check_rank(call, 1, x->rank)))
        return -1;
    for (int i = 0; i + 1 < x->rank; i++)
        if (!shape_check_dims(call, 0, i, 1, i))
            return -1;
    DType t = shape_attr_dtype(call, "dtype", DT_I32);
    if (t != DT_I32 && t != DT_I64) {
        shape_error(call, DIAG_R0310, "dtype is int32 or int64");
        return -1;
    }
    return shape_set(call, out, t, v->rank, v->shape) ? 1 : -1;
}

static RelStatus relate_search(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    uint32_t rank, n;
    Type **dims, **values, *dtype = rel_dtype_in(r->args[0]);
    DType to = DT_I32;
    attrs_dtype(r->attrs, "dtype", &to);
    if (to != DT_I32 && to != DT_I64) {
        rel_error(s, r, DIAG_R0310, "`%s`: dtype is int32 or int64", r->op->name);
        return REL_FAIL;
    }
    Type *shape = rel_shape_in(r->args[1]);
    if (!rel_unify(s, r, 1, type_tensor(shape, dtype)) ||
        rel_result_type(s, r, type_tensor(shape, type_dtype(to))) == REL_FAIL)
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    if (rank == 0) {
        rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes, at least %d are needed", r->op->name,
                  "sorted_sequence", rank, 1);
        return REL_FAIL;
    }
    if (rank == 1)
        return REL_DONE;
    if (!rel_need_rank(s, r, 1, rank) || !rel_rank_in(r->args[1], &n, &values))
        return REL_FAIL;
    for (uint32_t i = 0; i + 1 < rank; i++)
        if (!rel_unify_dim(s, r, dims[i], values[i], 0, (int)i))
            return REL_FAIL;
    return REL_DONE;
}

/* Of a sorted sequence, the place of a value is the number of elements that stand before it. */
static bool lower_search(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *v = call->in[1];
    int64_t from[RECIPE_MAX_AXES + 1] = {0}, own[RECIPE_MAX_AXES + 1] = {0};
    for (int i = 0; i < v->rank; i++) {
        from[i] = x->rank > 1 && i + 1 < x->rank ? x->strides[i] : 0;
        own[i] = v->strides[i];
    }
    from[v->rank] = x->strides[x->rank - 1];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, v->rank, v->shape);
    step_reduce_over(&s, 1, &x->shape[x->rank - 1]);
    step_combine(&s, COMBINE_SUM, out[0]->dtype);
    ScalarBuilder *b = &s.body;
    Sc e = sc_load(b, step_in_strided(&s, x, from, 0), x->dtype);
    Sc value = sc_load(b, step_in_strided(&s, v, own, 0), v->dtype);
    bool right = attrs_bool(call->attrs, "right");
    sc_cast(b, right ? sc_le(b, e, value) : sc_lt(b, e, value), out[0]->dtype);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec search_attrs[] = {
    {"right", AT_BOOL, "False", "behind the elements that are equal, not before them"},
    {"dtype", AT_DTYPE, "int32", "of the result: int32 or int64"},
};
static const RelDef rel_search = {"SearchSorted", relate_search, 3, false};
const Op op_searchsorted = {
    .name = "searchsorted",
    .args = "sorted_sequence, values",
    .nargs = 2,
    .attrs = search_attrs,
    .nattrs = 2,
    .relation = &rel_search,
    .dtypes = DTS_NUM,
    .pattern = OP_REDUCE,
    .shape = shape_search,
    .lower = lower_search,
    .doc = "Where each value belongs in a sorted vector, or in its row of sorted ones.",
    .example = "searchsorted([1.0, 3.0, 5.0], [0.0, 3.0, 9.0])",
    .example_result = "[0, 1, 3] : Tensor[(3,), int32]",
    .see_also = "sort, argsort",
};
