/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that repeat elements, tile, repeat and meshgrid, and the sums over the repetitions that
 * undo them in derivatives. A repetition is an axis of stride 0. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

/* ---- tile ------------------------------------------------------------------------------------ */

/* reps and data's shape are aligned at the right; the shorter one is padded with 1s. */
typedef struct Tiling {
    int rank;
    int64_t reps[TENSOR_MAX_RANK];
} Tiling;

static const char *tiling(const Attrs *attrs, int rank, Tiling *t) {
    int64_t reps[TENSOR_MAX_RANK];
    int n = attr_int_list(attrs, "reps", reps, TENSOR_MAX_RANK);
    if (n < 0)
        return "must be a list of known numbers";
    t->rank = n > rank ? n : rank;
    int axes = t->rank;
    for (int i = 0; i < t->rank; i++) {
        int k = i - (t->rank - n);
        t->reps[i] = k < 0 ? 1 : reps[k];
        if (t->reps[i] < 0)
            return "must not be negative";
        axes += t->reps[i] != 1;
    }
    return axes > RECIPE_MAX_AXES ? "repeats more axes than can be" : NULL;
}

static int shape_tile(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    Tiling t;
    int64_t dims[TENSOR_MAX_RANK];
    const char *problem = tiling(call->attrs, x->rank, &t);
    if (problem) {
        shape_error(call, DIAG_R0316, "reps %s", problem);
        return -1;
    }
    for (int i = 0; i < t.rank; i++) {
        int k = i - (t.rank - x->rank);
        dims[i] = size_multiply(t.reps[i], k < 0 ? 1 : x->shape[k]);
    }
    return shape_set(call, out, x->dtype, t.rank, dims) ? 1 : -1;
}

/* Data has as many axes as the result where that has more than are repeated; or as many, of which
 * the first is not all repetitions of nothing. */
static bool rank_of_tiled(Solver *s, Relation *r, uint32_t n, Type *const *reps) {
    int64_t d, rep;
    uint32_t rank;
    Type **dims;
    if (!rel_rank_in(rel_result_arg(r), &rank, &dims))
        return true;
    bool all = rank > n || rank == 0 ||
               (rank == n && type_get_int(type_resolve(dims[0]), &d) &&
                type_get_int(type_resolve(reps[0]), &rep) && d != rep);
    return !all || rel_rank_of_result(s, r, 0, 0);
}

static bool tiles_are_sizes(Solver *s, Relation *r) {
    const AttrValue *reps = attrs_get(r->attrs, "reps");
    int64_t n;
    for (uint32_t i = 0; i < reps->list.n; i++)
        if (attr_get_int(&reps->list.items[i], &n) && n < 0) {
            rel_error(s, r, DIAG_R0316, "`tile`: reps must not be negative");
            return false;
        }
    return true;
}

static RelStatus relate_tile(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank, n;
    Type **dims, **reps;
    if (!tiles_are_sizes(s, r) || !rel_attr_dims(s, r, "reps", &n, &reps) ||
        !rank_of_tiled(s, r, n, reps))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    uint32_t most = n > rank ? n : rank; /* the shape function counts those that are repeated */
    Type **out = mem_new_n(Type *, most + 1);
    for (uint32_t i = 0; i < most; i++) {
        Type *d = i + rank < most ? NULL : dims[i + rank - most],
             *rep = i + n < most ? NULL : reps[i + n - most];
        out[i] = !d ? rep : !rep || rel_is_one(rep) ? d : dim_mul(d, rep);
    }
    status = rel_result(s, r, out, most, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

/* Data axis i of the tiled tensor has its own stride, and one for each repetition of the whole
 * axis. */
static bool lower_tile(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    Tiling t;
    tiling(call->attrs, x->rank, &t);
    int64_t extents[RECIPE_MAX_AXES], from[RECIPE_MAX_AXES], to[RECIPE_MAX_AXES];
    int n = 0;
    for (int i = 0; i < t.rank; i++) {
        int k = i - (t.rank - x->rank);
        int64_t size = k < 0 ? 1 : x->shape[k];
        if (t.reps[i] != 1) {
            extents[n] = t.reps[i];
            from[n] = 0;
            to[n++] = size * out[0]->strides[i];
        }
        extents[n] = size;
        from[n] = k < 0 ? 0 : x->strides[k];
        to[n++] = out[0]->strides[i];
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, n, extents);
    sc_load(&s.body, step_in_strided(&s, x, from, 0), x->dtype);
    step_out_strided(&s, out[0], to, 0);
    step_end(&s);
    return true;
}

static const RelDef rel_tile = {"Tile", relate_tile, 2, false};
static const AttrSpec tile_attrs[] = {
    {"reps", AT_DIMS, NULL, "how often along each axis; aligned with the last axes"},
};
const Op op_tile = {
    .name = "tile",
    .args = "data",
    .nargs = 1,
    .attrs = tile_attrs,
    .nattrs = 1,
    .relation = &rel_tile,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_tile,
    .resizes = true,
    .refuses_sizes = true,
    .lower = lower_tile,
    .doc = "The whole tensor laid out several times along its axes.",
    .example = "tile([1, 2], reps=[2, 2])",
    .example_result = "[[1, 2, 1, 2],\n [1, 2, 1, 2]] : Tensor[(2, 4), int32]",
    .see_also = "repeat",
};

/* (x, data): a result of data's shape. The last word on the sizes is x's, which must be what the
 * forward operator makes of data. */
static RelStatus relate_sum_like(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_ALL}, &status))
        return status;
    Type *t = type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0]));
    return rel_result_type(s, r, t) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static int sum_like(const OpCall *call, int rank, const int64_t *want, OutSpec *out) {
    const Tensor *x = call->in[0], *like = call->in[1];
    bool fits = x->rank == rank;
    for (int i = 0; i < rank && fits; i++)
        fits = x->shape[i] == want[i];
    if (!fits) {
        shape_error(call, DIAG_R0314, "`%s` of shape %s does not repeat `data` of shape %s",
                    shape_arg_name(call, 0), shape_text(x->rank, x->shape),
                    shape_text(like->rank, like->shape));
        return -1;
    }
    return shape_set(call, out, x->dtype, like->rank, like->shape) ? 1 : -1;
}

static int shape_tile_sum(const OpCall *call, OutSpec *out) {
    const Tensor *like = call->in[1];
    Tiling t;
    int64_t want[TENSOR_MAX_RANK];
    const char *problem = tiling(call->attrs, like->rank, &t);
    if (problem) {
        shape_error(call, DIAG_R0316, "reps %s", problem);
        return -1;
    }
    for (int i = 0; i < t.rank; i++) {
        int k = i - (t.rank - like->rank);
        want[i] = t.reps[i] * (k < 0 ? 1 : like->shape[k]);
    }
    return sum_like(call, t.rank, want, out);
}

static bool lower_tile_sum(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *like = call->in[1];
    Tiling t;
    tiling(call->attrs, like->rank, &t);
    int64_t strides[RECIPE_MAX_AXES], extents[RECIPE_MAX_AXES];
    int n = 0;
    for (int i = 0; i < t.rank; i++) {
        int k = i - (t.rank - like->rank);
        if (k >= 0)
            strides[k] = x->strides[i];
        if (t.reps[i] == 1)
            continue;
        extents[n] = t.reps[i];
        strides[like->rank + n++] = x->strides[i] * (k < 0 ? 1 : like->shape[k]);
    }
    plan_sum_strided(plan, out[0], n, extents, x, strides, 0);
    return true;
}

static const RelDef rel_tile_sum = {"TileSum", relate_sum_like, 3, false};
const Op op_tile_sum = {
    .name = "tile_sum",
    .args = "tiled, data",
    .nargs = 2,
    .attrs = tile_attrs,
    .nattrs = 1,
    .relation = &rel_tile_sum,
    .dtypes = DTS_NUM,
    .pattern = OP_REDUCE,
    .shape = shape_tile_sum,
    .refuses_sizes = true,
    .lower = lower_tile_sum,
    .doc = "The sum over the repetitions that tile made, in data's shape: the derivative of tile.",
    .example = "tile_sum([1, 2, 3, 4], [0, 0], reps=[2])",
    .example_result = "[4, 6] : Tensor[(2,), int32]",
    .see_also = "tile",
};

/* ---- repeat ---------------------------------------------------------------------------------- */

/* The axis, or -1 for None: data is flattened first. */
static bool repeat_axis(const OpCall *call, int rank, int *axis) {
    *axis = -1;
    return attrs_is_none(call->attrs, "axis") || shape_one_axis(call, "axis", rank, axis);
}

static int repeated_shape(const OpCall *call, const Tensor *x, int64_t *dims) {
    int64_t n = attrs_int(call->attrs, "repeats");
    int axis;
    if (n < 0 || x->rank >= RECIPE_MAX_AXES) {
        shape_error(call, DIAG_R0316,
                    n < 0 ? "repeats must not be negative" : "`data` has too many axes");
        return -1;
    }
    if (!repeat_axis(call, x->rank, &axis))
        return -1;
    if (axis < 0) {
        dims[0] = size_multiply(x->count, n);
        return 1;
    }
    memcpy(dims, x->shape, sizeof(int64_t) * (size_t)x->rank);
    dims[axis] = size_multiply(dims[axis], n);
    return x->rank;
}

static int shape_repeat(const OpCall *call, OutSpec *out) {
    int64_t dims[TENSOR_MAX_RANK];
    int rank = repeated_shape(call, call->in[0], dims);
    return rank >= 0 && shape_set(call, out, call->in[0]->dtype, rank, dims) ? 1 : -1;
}

static RelStatus relate_repeat(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank, axis;
    Type **dims, **out;
    bool flat = attrs_is_none(r->attrs, "axis");
    if (!flat && !rel_rank_of_result(s, r, 0, 0))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return flat ? rel_wait_rank(s, r, 1, rel_dtype_in(r->args[0]))
                    : rel_wait(s, r, rel_dtype_in(r->args[0]));
    Type *n = rel_attr_dim(attrs_get(r->attrs, "repeats"));
    if (flat) {
        Type *all = dim_mul(rel_product(r, rank, dims), n);
        status = rel_result(s, r, &all, 1, rel_dtype_in(r->args[0]));
    } else {
        if (!rel_one_axis(s, r, "axis", rank, &axis))
            return REL_FAIL;
        out = rel_copy_dims(rank, dims, 0);
        out[axis] = dim_mul(dims[axis], n);
        status = rel_result(s, r, out, rank, rel_dtype_in(r->args[0]));
    }
    return status == REL_FAIL ? status : REL_DONE;
}

/* The strides, in the repeated tensor y, of data's axes and then of the repetition. */
static void repeat_strides(const OpCall *call, const Tensor *data, const Tensor *y,
                           int64_t *strides) {
    int64_t n = attrs_int(call->attrs, "repeats");
    int axis = -1;
    if (!attrs_is_none(call->attrs, "axis"))
        axis = lower_axis(call, "axis", data->rank);
    if (axis < 0) {
        shape_strides(data->rank, data->shape, strides);
        for (int i = 0; i < data->rank; i++)
            strides[i] *= n * y->strides[0];
        strides[data->rank] = y->strides[0];
        return;
    }
    memcpy(strides, y->strides, sizeof(int64_t) * (size_t)y->rank);
    strides[data->rank] = y->strides[axis];
    strides[axis] *= n;
}

static bool lower_repeat(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t extents[RECIPE_MAX_AXES], from[RECIPE_MAX_AXES], to[RECIPE_MAX_AXES];
    repeat_strides(call, x, out[0], to);
    for (int i = 0; i < x->rank; i++) {
        extents[i] = x->shape[i];
        from[i] = x->strides[i];
    }
    extents[x->rank] = attrs_int(call->attrs, "repeats");
    from[x->rank] = 0;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank + 1, extents);
    sc_load(&s.body, step_in_strided(&s, x, from, 0), x->dtype);
    step_out_strided(&s, out[0], to, 0);
    step_end(&s);
    return true;
}

static const RelDef rel_repeat = {"Repeat", relate_repeat, 2, false};
static const AttrSpec repeat_attrs[] = {
    {"repeats", AT_DIM, NULL, "how often each element"},
    {"axis", AT_INT_OPT, "None", "along this axis; None: of the flattened tensor"},
};
const Op op_repeat = {
    .name = "repeat",
    .args = "data",
    .nargs = 1,
    .attrs = repeat_attrs,
    .nattrs = 2,
    .relation = &rel_repeat,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_repeat,
    .resizes = true,
    .refuses_sizes = true,
    .lower = lower_repeat,
    .doc = "Each element several times in a row along an axis.",
    .example = "repeat([1, 2], repeats=2, axis=0)",
    .example_result = "[1, 1, 2, 2] : Tensor[(4,), int32]",
    .see_also = "tile",
};

static int shape_repeat_sum(const OpCall *call, OutSpec *out) {
    int64_t dims[TENSOR_MAX_RANK];
    int rank = repeated_shape(call, call->in[1], dims);
    return rank < 0 ? -1 : sum_like(call, rank, dims, out);
}

static bool lower_repeat_sum(const OpCall *call, Tensor *const *out, Plan *plan) {
    int64_t strides[RECIPE_MAX_AXES], n = attrs_int(call->attrs, "repeats");
    repeat_strides(call, out[0], call->in[0], strides);
    plan_sum_strided(plan, out[0], 1, &n, call->in[0], strides, 0);
    return true;
}

static const RelDef rel_repeat_sum = {"RepeatSum", relate_sum_like, 3, false};
const Op op_repeat_sum = {
    .name = "repeat_sum",
    .args = "repeated, data",
    .nargs = 2,
    .attrs = repeat_attrs,
    .nattrs = 2,
    .relation = &rel_repeat_sum,
    .dtypes = DTS_NUM,
    .pattern = OP_REDUCE,
    .shape = shape_repeat_sum,
    .refuses_sizes = true,
    .lower = lower_repeat_sum,
    .doc = "The sum over the repetitions that repeat made, in data's shape: its derivative.",
    .example = "repeat_sum([1, 2, 3, 4], [0, 0], repeats=2, axis=0)",
    .example_result = "[3, 7] : Tensor[(2,), int32]",
    .see_also = "repeat",
};

/* ---- meshgrid -------------------------------------------------------------------------------- */

/* The axis of the grid along which input i varies. */
static int grid_axis(const Attrs *attrs, int i, int n) {
    if (n < 2 || i > 1 || strcmp(attrs_text(attrs, "indexing"), "xy"))
        return i;
    return 1 - i;
}

static bool grid_shape(const OpCall *call, uint32_t first, int64_t *dims) {
    int n = (int)(call->nin - first);
    if (n == 0 || n > TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0316, "takes 1 to %d tensors", TENSOR_MAX_RANK);
        return false;
    }
    for (int i = 0; i < n; i++) {
        const Tensor *x = call->in[first + (uint32_t)i];
        if (x->rank > 1) {
            shape_error(call, DIAG_R0313, "`%s` has %d axes; a grid is made of vectors and scalars",
                        shape_arg_name(call, (int)first + i), x->rank);
            return false;
        }
        if (!shape_check_same_dtype(call, (int)first, (int)first + i))
            return false;
        dims[grid_axis(call->attrs, i, n)] = x->count;
    }
    return true;
}

static int shape_meshgrid(const OpCall *call, OutSpec *out) {
    int64_t dims[TENSOR_MAX_RANK];
    if (!grid_shape(call, 0, dims))
        return -1;
    for (uint32_t i = 0; i < call->nin; i++)
        if (!shape_set(call, &out[i], call->in[i]->dtype, (int)call->nin, dims))
            return -1;
    return (int)call->nin;
}

static RelStatus relate_meshgrid(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t n, rank;
    Type **parts, **dims;
    rel_parts(r, 0, &n, &parts);
    if (n == 0 || n > TENSOR_MAX_RANK) {
        rel_error(s, r, DIAG_R0316, "`meshgrid` takes 1 to %d tensors", TENSOR_MAX_RANK);
        return REL_FAIL;
    }
    Type **grid = mem_new_n(Type *, n + 1), **out = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        bool unknown = type_has_unknown_rank(parts[i]);
        bool ranked = rel_rank_in(parts[i], &rank, &dims);
        if (ranked && rank > 1) {
            rel_error(s, r, DIAG_R0313,
                      "`meshgrid`: a tensor has %u axes; a grid is made of "
                      "vectors and scalars",
                      rank);
            return REL_FAIL;
        }
        if (!solver_unify(s, rel_dtype_in(parts[i]), rel_dtype_in(parts[0]))) {
            rel_error(s, r, DIAG_R0311, "`meshgrid`: the tensors are of %s and %s",
                      type_text(rel_dtype_in(parts[0])), type_text(rel_dtype_in(parts[i])));
            return REL_FAIL;
        }
        grid[grid_axis(r->attrs, (int)i, (int)n)] = unknown   ? rel_unknown_dim(r)
                                                    : !ranked ? solver_var(s, KIND_DIM)
                                                    : rank    ? dims[0]
                                                              : rel_int_dim(r, 1);
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = type_tensor(type_shape(grid, n), rel_dtype_in(parts[i]));
    if (rel_result_type(s, r, type_tuple(out, n)) == REL_FAIL)
        return REL_FAIL;
    bool open = false;
    for (uint32_t i = 0; i < n; i++) { /* of 1 element: a vector or a scalar */
        int64_t d;
        Type *size = type_resolve(grid[grid_axis(r->attrs, (int)i, (int)n)]);
        if (type_has_unknown_rank(parts[i]) || rel_rank_in(parts[i], &rank, &dims))
            continue;
        open |= !type_get_int(size, &d) || d == 1 || rel_shape_in(parts[i])->tag != TY_VAR ||
                !solver_unify(s, rel_shape_in(parts[i]), type_shape(&size, 1));
    }
    return open ? REL_WAIT : rel_settled(r);
}

static bool lower_meshgrid(const OpCall *call, Tensor *const *out, Plan *plan) {
    for (uint32_t i = 0; i < call->nin; i++) {
        int64_t strides[TENSOR_MAX_RANK] = {0};
        const Tensor *x = call->in[i];
        strides[grid_axis(call->attrs, (int)i, (int)call->nin)] = x->rank ? x->strides[0] : 0;
        plan_gather_strided(plan, out[i], x, strides, 0);
    }
    return true;
}

static const RelDef rel_meshgrid = {"Meshgrid", relate_meshgrid, 2, false};
static const AttrSpec meshgrid_attrs[] = {
    {"indexing", AT_STRING, "\"ij\"",
     "\"ij\": input i along axis i; \"xy\": the first two swapped"},
};
const Op op_meshgrid = {
    .name = "meshgrid",
    .args = "(data)",
    .nargs = 1,
    .attrs = meshgrid_attrs,
    .nattrs = 1,
    .choices = "indexing: ij xy",
    .relation = &rel_meshgrid,
    .dtypes = DTS_ALL,
    .pattern = OP_TUPLE,
    .shape = shape_meshgrid,
    .tuple = true,
    .lower = lower_meshgrid,
    .doc =
        "From n vectors, n tensors of rank n: each vector along its own axis, repeated along the "
        "others.",
    .example = "meshgrid(([1, 2], [3, 4]))",
    .example_result = "([[1, 1], [2, 2]], [[3, 4], [3, 4]]) : (Tensor[(2, 2), int32], "
                      "Tensor[(2, 2), int32])",
    .see_also = "tile, arange",
};

static int shape_meshgrid_sum(const OpCall *call, OutSpec *out) {
    uint32_t n = call->nin / 2;
    int64_t dims[TENSOR_MAX_RANK];
    if (!grid_shape(call, n, dims))
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        const Tensor *grid = call->in[i], *x = call->in[n + i];
        bool fits = grid->rank == (int)n;
        for (uint32_t j = 0; j < n && fits; j++)
            fits = grid->shape[j] == dims[j];
        if (!fits) {
            shape_error(call, DIAG_R0314, "grid %u has shape %s, not %s", i,
                        shape_text(grid->rank, grid->shape), shape_text((int)n, dims));
            return -1;
        }
        if (!shape_set(call, &out[i], grid->dtype, x->rank, x->shape))
            return -1;
    }
    return (int)n;
}

static RelStatus relate_meshgrid_sum(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_ALL}, &status))
        return status;
    return rel_result_type(s, r, r->args[1]) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_meshgrid_sum(const OpCall *call, Tensor *const *out, Plan *plan) {
    int n = (int)(call->nin / 2);
    for (int i = 0; i < n; i++) {
        const Tensor *grid = call->in[i];
        int64_t strides[RECIPE_MAX_AXES], extents[RECIPE_MAX_AXES];
        int axis = grid_axis(call->attrs, i, n), m = 0, rank = out[i]->rank;
        if (rank)
            strides[0] = grid->strides[axis];
        for (int j = 0; j < n; j++) {
            if (j == axis)
                continue;
            extents[m] = grid->shape[j];
            strides[rank + m++] = grid->strides[j];
        }
        plan_sum_strided(plan, out[i], m, extents, grid, strides, 0);
    }
    return true;
}

static const RelDef rel_meshgrid_sum = {"MeshgridSum", relate_meshgrid_sum, 3, false};
const Op op_meshgrid_sum = {
    .name = "meshgrid_sum",
    .args = "(grids), (data)",
    .nargs = 2,
    .attrs = meshgrid_attrs,
    .nattrs = 1,
    .choices = "indexing: ij xy",
    .relation = &rel_meshgrid_sum,
    .dtypes = DTS_NUM,
    .pattern = OP_TUPLE,
    .shape = shape_meshgrid_sum,
    .refuses_sizes = true,
    .tuple = true,
    .lower = lower_meshgrid_sum,
    .doc = "Each grid summed over the axes along which its vector was repeated: the derivative of "
           "meshgrid.",
    .example = "meshgrid_sum(([[1, 2], [3, 4]], [[1, 2], [3, 4]]), ([0, 0], [0, 0]))",
    .example_result = "([3, 7], [4, 6]) : (Tensor[(2,), int32], Tensor[(2,), int32])",
    .see_also = "meshgrid",
};
