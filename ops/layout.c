/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements by strides: transpose, reverse, and the maps that undo reductions
 * in derivatives. Each is one copy that reads its argument in another order. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

/* ---- transpose ------------------------------------------------------------------------------- */

/* perm[i] is the axis of data that axis i of the result is (for transpose_inverse: the reverse). */
static const char *transpose_perm(const Attrs *attrs, int rank, bool inverse, int *perm) {
    int64_t axes[TENSOR_MAX_RANK];
    int n = attr_int_list(attrs, "axes", axes, TENSOR_MAX_RANK);
    if (n <= 0 && rank > 0) {
        for (int i = 0; i < rank; i++)
            perm[i] = rank - 1 - i;
        return NULL;
    }
    if (n > 0 && n != rank)
        return "must name every axis once";
    uint32_t seen = 0;
    for (int i = 0; i < rank; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (a < 0 || a >= rank || seen >> a & 1)
            return "must name every axis once";
        seen |= 1u << a;
        if (inverse)
            perm[a] = i;
        else
            perm[i] = (int)a;
    }
    return NULL;
}

enum { FORWARD, INVERSE };

static int shape_transpose(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int perm[TENSOR_MAX_RANK];
    int64_t dims[TENSOR_MAX_RANK];
    const char *problem = transpose_perm(call->attrs, x->rank, call->op->variant == INVERSE, perm);
    if (problem) {
        shape_error(call, DIAG_R0315, "axes %s of the %d of `data`", problem, x->rank);
        return -1;
    }
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->shape[perm[i]];
    return shape_set(call, out, x->dtype, x->rank, dims) ? 1 : -1;
}

static RelStatus relate_transpose(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank;
    Type **dims;
    int perm[TENSOR_MAX_RANK];
    int64_t axes[TENSOR_MAX_RANK];
    bool inverse = r->op->variant == INVERSE;
    if (!rel_rank_in(r->args[0], &rank, &dims)) {
        uint32_t nout;
        Type **outs;
        int n = attr_int_list(r->attrs, "axes", axes, TENSOR_MAX_RANK);
        if (n > 0)
            rank = (uint32_t)n;
        else if (rel_rank_in(rel_result_arg(r), &nout, &outs))
            rank = nout;
        else
            return rel_wait(s, r, rel_dtype_in(r->args[0]));
        dims = mem_new_n(Type *, rank + 1);
        for (uint32_t i = 0; i < rank; i++)
            dims[i] = solver_var(s, KIND_DIM);
        if (!rel_unify(s, r, 0, type_tensor(type_shape(dims, rank), rel_dtype_in(r->args[0]))))
            return REL_FAIL;
    }
    const char *problem = transpose_perm(r->attrs, (int)rank, inverse, perm);
    if (problem) {
        rel_error(s, r, DIAG_R0315, "`%s`: axes %s of the %u of `data`", r->op->name, problem,
                  rank);
        return REL_FAIL;
    }
    Type **out = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++)
        out[i] = dims[perm[i]];
    status = rel_result(s, r, out, rank, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static bool lower_transpose(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int perm[TENSOR_MAX_RANK];
    int64_t strides[TENSOR_MAX_RANK];
    transpose_perm(call->attrs, x->rank, call->op->variant == INVERSE, perm);
    for (int i = 0; i < x->rank; i++)
        strides[i] = x->strides[perm[i]];
    plan_gather_strided(plan, out[0], x, strides, 0);
    return true;
}

static const RelDef rel_transpose = {"Transpose", relate_transpose, 2, false};
static const RelDef rel_transpose_inverse = {"TransposeInverse", relate_transpose, 2, false};
static const AttrSpec transpose_attrs[] = {
    {"axes", AT_INTS_OPT, "None", "axis i of the result is axis axes[i] of data; None: reversed"},
};
const Op op_transpose = {
    .name = "transpose",
    .args = "data",
    .nargs = 1,
    .attrs = transpose_attrs,
    .nattrs = 1,
    .relation = &rel_transpose,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .variant = FORWARD,
    .shape = shape_transpose,
    .lower = lower_transpose,
    .doc = "Axes in another order, by default the opposite one.",
    .example = "transpose([[1, 2, 3], [4, 5, 6]])",
    .example_result = "[[1, 4],\n [2, 5],\n [3, 6]] : Tensor[(3, 2), int32]",
    .see_also = "reshape, reverse",
};
const Op op_transpose_inverse = {
    .name = "transpose_inverse",
    .args = "data",
    .nargs = 1,
    .attrs = transpose_attrs,
    .nattrs = 1,
    .relation = &rel_transpose_inverse,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .variant = INVERSE,
    .shape = shape_transpose,
    .lower = lower_transpose,
    .doc = "Undoes transpose with the same axes: axis axes[i] of the result is axis i of data.",
    .example = "transpose_inverse([[1, 2, 3], [4, 5, 6]], axes=[1, 0])",
    .example_result = "[[1, 4],\n [2, 5],\n [3, 6]] : Tensor[(3, 2), int32]",
    .see_also = "transpose",
};

/* ---- reverse --------------------------------------------------------------------------------- */

static int shape_reverse(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    uint32_t axes;
    if (!shape_axis_set(call, "axis", false, x->rank, &axes))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_reverse(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank, axes;
    Type **dims;
    if (rel_result_type(s, r, r->args[0]) == REL_FAIL)
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return attrs_is_none(r->attrs, "axis") ? REL_DONE : REL_WAIT;
    return rel_axis_set(s, r, "axis", false, rank, &axes) ? REL_DONE : REL_FAIL;
}

static bool lower_reverse(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    uint32_t axes = lower_axis_set(call, "axis", false, x->rank);
    int64_t strides[TENSOR_MAX_RANK], offset = 0;
    for (int i = 0; i < x->rank; i++) {
        strides[i] = x->strides[i];
        if (!(axes >> i & 1) || x->shape[i] == 0)
            continue;
        strides[i] = -strides[i];
        offset += (x->shape[i] - 1) * x->strides[i];
    }
    plan_gather_strided(plan, out[0], x, strides, offset);
    return true;
}

static const RelDef rel_reverse = {"Reverse", relate_reverse, 2, false};
static const AttrSpec reverse_attrs[] = {
    {"axis", AT_INT_OPT, "None", "the axis to reverse; None: all of them"},
};
const Op op_reverse = {
    .name = "reverse",
    .args = "data",
    .nargs = 1,
    .attrs = reverse_attrs,
    .nattrs = 1,
    .relation = &rel_reverse,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_reverse,
    .lower = lower_reverse,
    .doc = "The elements along an axis from last to first.",
    .example = "reverse([1, 2, 3], axis=0)",
    .example_result = "[3, 2, 1] : Tensor[(3,), int32]",
    .see_also = "transpose",
};

/* ---- flatten_axes, unflatten_axes ------------------------------------------------------------ */

/* The axes of a reduction, moved behind the others and merged: row-major over (kept, reduced). The
 * domain of the copy is data's shape; `strides` say where each of its axes lies in the flat one. */
static void flatten_strides(const Tensor *data, uint32_t axes, const Tensor *flat,
                            int64_t *strides) {
    int kept = flat->rank - 1;
    int64_t inner = flat->strides[kept];
    for (int i = data->rank - 1; i >= 0; i--) {
        if (axes >> i & 1) {
            strides[i] = inner;
            inner = size_multiply(inner, data->shape[i]);
        } else {
            strides[i] = flat->strides[--kept];
        }
    }
}

static bool exclude_of(const Attrs *attrs) { return attrs_bool(attrs, "exclude"); }

static int shape_flatten_axes(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    uint32_t axes;
    int64_t dims[TENSOR_MAX_RANK + 1], merged = 1;
    int rank = 0;
    if (!shape_axis_set(call, "axis", exclude_of(call->attrs), x->rank, &axes))
        return -1;
    for (int i = 0; i < x->rank; i++) {
        if (axes >> i & 1)
            merged = size_multiply(merged, x->shape[i]);
        else
            dims[rank++] = x->shape[i];
    }
    if (rank == TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0313, "the result would have more than %d axes", TENSOR_MAX_RANK);
        return -1;
    }
    dims[rank++] = merged;
    return shape_set(call, out, x->dtype, rank, dims) ? 1 : -1;
}

static RelStatus relate_flatten_axes(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank, axes, n = 0, m = 0;
    Type **dims;
    int64_t list[TENSOR_MAX_RANK];
    int named = attr_int_list(r->attrs, "axis", list, TENSOR_MAX_RANK);
    if (named >= 0 && !exclude_of(r->attrs) && !rel_rank_of_result(s, r, 0, named - 1))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return named >= 0 && !exclude_of(r->attrs)
                   ? rel_wait(s, r, rel_dtype_in(r->args[0]))
                   : rel_wait_rank(s, r, named < 0 ? 1 : (uint32_t)named + 1,
                                   rel_dtype_in(r->args[0]));
    if (!rel_axis_set(s, r, "axis", exclude_of(r->attrs), rank, &axes))
        return REL_FAIL;
    Type **out = mem_new_n(Type *, rank + 2), **merged = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++) {
        if (axes >> i & 1)
            merged[m++] = dims[i];
        else
            out[n++] = dims[i];
    }
    out[n++] = rel_product(r, m, merged);
    status = rel_result(s, r, out, n, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static bool lower_flatten_axes(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t strides[TENSOR_MAX_RANK];
    flatten_strides(x, lower_axis_set(call, "axis", exclude_of(call->attrs), x->rank), out[0],
                    strides);
    plan_place_strided(plan, out[0], strides, 0, x);
    return true;
}

static const RelDef rel_flatten_axes = {"FlattenAxes", relate_flatten_axes, 2, false};
static const AttrSpec axes_attrs[] = {
    {"axis", AT_INTS_OPT, "None", "the axes to merge; None: all"},
    {"exclude", AT_BOOL, "False", "merge the other axes instead"},
};
const Op op_flatten_axes = {
    .name = "flatten_axes",
    .args = "data",
    .nargs = 1,
    .attrs = axes_attrs,
    .nattrs = 2,
    .relation = &rel_flatten_axes,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_flatten_axes,
    .lower = lower_flatten_axes,
    .doc = "Some axes moved behind the others and merged into one.",
    .example = "flatten_axes([[1, 2], [3, 4]], axis=[0])",
    .example_result = "[[1, 3],\n [2, 4]] : Tensor[(2, 2), int32]",
    .see_also = "unflatten_axes, reshape",
};

/* (flat, data): flat has the shape that flatten_axes gives data. */
static int shape_unflatten_axes(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *like = call->in[1];
    OpCall forward = *call;
    OutSpec flat;
    forward.in = &call->in[1];
    forward.nin = 1;
    if (shape_flatten_axes(&forward, &flat) < 0)
        return -1;
    bool fits = x->rank == flat.rank;
    for (int i = 0; i < flat.rank && fits; i++)
        fits = x->shape[i] == flat.shape[i];
    if (!fits) {
        shape_error(call, DIAG_R0314, "`flat` has shape %s, and data flattened so %s",
                    shape_text(x->rank, x->shape), shape_text(flat.rank, flat.shape));
        return -1;
    }
    return shape_set(call, out, x->dtype, like->rank, like->shape) ? 1 : -1;
}

static RelStatus relate_like_second(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_ALL}, &status))
        return status;
    Type *t = type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0]));
    return rel_result_type(s, r, t) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_unflatten_axes(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t strides[TENSOR_MAX_RANK];
    flatten_strides(out[0], lower_axis_set(call, "axis", exclude_of(call->attrs), out[0]->rank), x,
                    strides);
    plan_gather_strided(plan, out[0], x, strides, 0);
    return true;
}

static const RelDef rel_unflatten_axes = {"UnflattenAxes", relate_like_second, 3, false};
const Op op_unflatten_axes = {
    .name = "unflatten_axes",
    .args = "flat, data",
    .nargs = 2,
    .attrs = axes_attrs,
    .nattrs = 2,
    .relation = &rel_unflatten_axes,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_unflatten_axes,
    .refuses_sizes = true,
    .lower = lower_unflatten_axes,
    .doc = "Undoes flatten_axes: flat in the shape of data, whose elements do not matter.",
    .example = "unflatten_axes([[1, 3], [2, 4]], [[0, 0], [0, 0]], axis=[0])",
    .example_result = "[[1, 2],\n [3, 4]] : Tensor[(2, 2), int32]",
    .see_also = "flatten_axes",
};

/* ---- expand_like ----------------------------------------------------------------------------- */

static int shape_expand_like(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *like = call->in[1];
    uint32_t axes;
    bool keep = attrs_bool(call->attrs, "keepdims"), fits = true;
    if (!shape_axis_set(call, "axis", exclude_of(call->attrs), like->rank, &axes))
        return -1;
    int n = 0;
    for (int i = 0; i < like->rank; i++) {
        if (axes >> i & 1 && !keep)
            continue;
        int64_t want = axes >> i & 1 ? 1 : like->shape[i];
        fits &= n < x->rank && x->shape[n] == want;
        n++;
    }
    if (!fits || n != x->rank) {
        shape_error(call, DIAG_R0314, "shape %s is not that of a reduction of shape %s",
                    shape_text(x->rank, x->shape), shape_text(like->rank, like->shape));
        return -1;
    }
    return shape_set(call, out, x->dtype, like->rank, like->shape) ? 1 : -1;
}

static bool lower_expand_like(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int rank = out[0]->rank, n = 0;
    uint32_t axes = lower_axis_set(call, "axis", exclude_of(call->attrs), rank);
    bool keep = attrs_bool(call->attrs, "keepdims");
    int64_t strides[TENSOR_MAX_RANK], count = 1;
    for (int i = 0; i < rank; i++) {
        bool reduced = axes >> i & 1;
        strides[i] = reduced ? 0 : x->strides[n];
        if (reduced)
            count = size_multiply(count, out[0]->shape[i]);
        if (!reduced || keep)
            n++;
    }
    if (!attrs_bool(call->attrs, "average")) {
        plan_gather_strided(plan, out[0], x, strides, 0);
        return true;
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, rank, out[0]->shape);
    ScalarBuilder *b = &s.body;
    DType t = sc_type_of(x->dtype);
    Sc v = sc_load(b, step_in_strided(&s, x, strides, 0), x->dtype);
    Sc d = dtype_is_float(t) ? step_fparam(&s, b, t, (double)count) : step_iparam(&s, b, t, count);
    sc_div(b, v, d);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_expand_like = {"ExpandLike", relate_like_second, 3, false};
static const AttrSpec expand_like_attrs[] = {
    {"axis", AT_INTS_OPT, "None", "the axes that were reduced; None: all"},
    {"keepdims", AT_BOOL, "False", "they are still there, with size 1"},
    {"exclude", AT_BOOL, "False", "the other axes were reduced instead"},
    {"average", AT_BOOL, "False", "divide by the number of elements reduced into one"},
};
const Op op_expand_like = {
    .name = "expand_like",
    .args = "reduced, data",
    .nargs = 2,
    .attrs = expand_like_attrs,
    .nattrs = 4,
    .relation = &rel_expand_like,
    .dtypes = DTS_NUM,
    .pattern = OP_BROADCAST,
    .like_last = true,
    .shape = shape_expand_like,
    .refuses_sizes = true,
    .lower = lower_expand_like,
    .doc = "Repeats the result of a reduction over the axes that were reduced: data's shape.\n"
           "The derivative of `sum` and, divided by the number of elements, of `mean`.",
    .example = "expand_like([1.0, 2.0], [[0.0, 0.0], [0.0, 0.0]], axis=[1])",
    .example_result = "[[1.0, 1.0],\n [2.0, 2.0]] : Tensor[(2, 2), float32]",
    .see_also = "sum, broadcast_to_like",
};
