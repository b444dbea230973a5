/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_elements, scatter_nd and gather_nd. Updates are applied in row-major order; negative
 * indices count from the end, and an index outside ends the evaluation. */
#include <string.h>

#include "base/mem.h"
#include "ops/gather.h"
#include "ops/relate/solve.h"

static Combine combine_named(const char *name) {
    static const struct {
        const char *name;
        Combine combine;
    } names[] = {
        {"update", COMBINE_NONE}, {"add", COMBINE_SUM}, {"mul", COMBINE_PROD},
        {"min", COMBINE_MIN},     {"max", COMBINE_MAX},
    };
    size_t i = 0;
    while (strcmp(name, names[i].name))
        i++;
    return names[i].combine;
}

static bool check_combine(const OpCall *call, const char *attr) {
    const char *name = attrs_text(call->attrs, attr);
    Combine c = combine_named(name);
    if ((c == COMBINE_SUM || c == COMBINE_PROD) && call->in[0]->dtype == DT_BOOL) {
        shape_error(call, DIAG_R0310, "%s=\"%s\" does not take bools", attr, name);
        return false;
    }
    return true;
}

/* As many updates as indices, which have as many axes as data. */
static bool scattered_elements(Solver *s, Relation *r) {
    uint32_t ni, nu;
    Type **i, **u;
    if (!rel_same_rank(s, r, 0, 1) || !rel_same_rank(s, r, 1, 2) || !rel_same_rank(s, r, 0, 1))
        return false;
    if (!rel_rank_in(r->args[1], &ni, &i) || !rel_rank_in(r->args[2], &nu, &u) || ni != nu)
        return true;
    for (uint32_t k = 0; k < ni; k++)
        if (!rel_unify_dim(s, r, u[k], i[k], 2, (int)k))
            return false;
    return true;
}

/* With m coordinates: data (…m, z…) and indices (m, y…) are updated by (y…, z…). */
static bool scattered_nd(Solver *s, Relation *r) {
    uint32_t nx, ni, nu;
    Type **x, **i, **u;
    int64_t m;
    if (!rel_rank_in(r->args[0], &nx, &x) || !rel_rank_in(r->args[1], &ni, &i) || ni == 0 ||
        !type_get_int(type_resolve(i[0]), &m) || m > nx)
        return true;
    if (!rel_give_rank(s, r, 2, (int64_t)ni - 1 + nx - m))
        return false;
    if (!rel_rank_in(r->args[2], &nu, &u) || nu != ni - 1 + nx - m)
        return true;
    for (uint32_t k = 0; k < nu; k++)
        if (!rel_unify_dim(s, r, u[k], k + 1 < ni ? i[k + 1] : x[k + 1 - ni + m], 2, (int)k))
            return false;
    return true;
}

enum { BY_POINTS, BY_ELEMENTS };

/* The result has data's type; updates share its dtype. */
static RelStatus relate_scatter(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT, DTS_ALL}, &status))
        return status;
    Type *u = type_tensor(rel_shape_in(r->args[2]), rel_dtype_in(r->args[0]));
    if (!rel_unify(s, r, 2, u))
        return REL_FAIL;
    if (rel_result_type(s, r, r->args[0]) == REL_FAIL)
        return REL_FAIL;
    if (r->op->variant == BY_ELEMENTS ? !scattered_elements(s, r) : !scattered_nd(s, r))
        return REL_FAIL;
    return rel_settled(r);
}

/* ---- scatter_elements ------------------------------------------------------------------------ */

static int shape_scatter_elements(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *i = call->in[1];
    int axis;
    if (!shape_check_dtype(call, 1, DTS_INT) || !shape_check_same_dtype(call, 0, 2) ||
        !check_combine(call, "reduction") || !shape_check_min_rank(call, 0, 1) ||
        !shape_check_rank(call, 1, x->rank) || !shape_check_rank(call, 2, x->rank) ||
        !shape_one_axis(call, "axis", x->rank, &axis))
        return -1;
    for (int k = 0; k < x->rank; k++) {
        if (!shape_check_dims(call, 1, k, 2, k))
            return -1;
        if (k == axis || i->shape[k] <= x->shape[k])
            continue;
        shape_error(call, DIAG_R0314, "axis %d of `indices` has size %lld and of `data` only %lld",
                    k, (long long)i->shape[k], (long long)x->shape[k]);
        return -1;
    }
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static bool lower_scatter_elements(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *i = call->in[1], *u = call->in[2];
    Tensor *y = out[0];
    int axis = lower_axis(call, "axis", y->rank);
    int64_t ys[TENSOR_MAX_RANK];
    Combine combine = combine_named(attrs_text(call->attrs, "reduction"));
    memcpy(ys, y->strides, sizeof(int64_t) * (size_t)y->rank);
    ys[axis] = 0;
    plan_copy(plan, y, call->in[0]);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, i->rank, i->shape);
    step_combine(&s, combine, sc_type_of(y->dtype));
    ScalarBuilder *b = &s.body;
    int at = step_in(&s, i), from = step_in(&s, u);
    Sc n = step_iparam(&s, b, DT_I64, y->shape[axis]);
    Sc stride = step_iparam(&s, b, DT_I64, y->strides[axis]);
    Sc place = sc_place(b, sc_index_load(b, at, i->dtype), n, INDEX_CHECK);
    Sc offset = sc_mul(b, place, stride);
    Sc value = sc_load(b, from, u->dtype);
    step_result(&s, value);
    step_result(&s, offset);
    step_out_strided(&s, y, ys, 0);
    step_end(&s);
    return true;
}

static const RelDef rel_scatter_elements = {"ScatterElements", relate_scatter, 4, false};
static const AttrSpec scatter_elements_attrs[] = {
    {"axis", AT_INT, "0", "the axis that the indices are about"},
    {"reduction", AT_STRING, "\"update\"", "\"update\", \"add\", \"mul\", \"min\" or \"max\""},
};
/* As many updates as indices; along other axes than `axis` no more than data. */
static void write_scatter_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    int rank = nin && ranks[0] > 0 ? ranks[0] : 0, axis = (int)attrs_int(attrs, "axis");
    axis = axis < 0 ? axis + rank : axis;
    for (int arg = 0; arg < 3; arg++) {
        str_add(out, arg ? ", (" : "(");
        for (int i = 0; i < rank; i++)
            str_printf(out, "%s%s%d", i ? ", " : "", i != axis && arg ? "<=n" : arg ? "k" : "n", i);
        str_add(out, ")");
    }
}

const Op op_scatter_elements = {
    .name = "scatter_elements",
    .args = "data, indices, updates",
    .nargs = 3,
    .write_sizes = write_scatter_sizes,
    .attrs = scatter_elements_attrs,
    .nattrs = 2,
    .choices = "reduction: update add mul min max",
    .relation = &rel_scatter_elements,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .variant = BY_ELEMENTS,
    .blame_index = blame_index_of_axis,
    .shape = shape_scatter_elements,
    .refuses_sizes = true,
    .lower = lower_scatter_elements,
    .doc =
        "data, changed by each update at the update's own place, but on one axis where the index\n"
        "says. Of several updates of one element by \"update\" the last one counts.",
    .example = "scatter_elements([1, 2, 3], [2, 0], [10, 20], axis=0, reduction=\"add\")",
    .example_result = "[21, 2, 13] : Tensor[(3,), int32]",
    .see_also = "gather, scatter_nd",
};

/* ---- nd: the first axis of indices holds the coordinates ------------------------------------- */

/* indices (m, y…): m coordinates of axes batch .. batch + m - 1 of data, after `batch` shared axes.
 */
typedef struct Nd {
    int m, batch;
    int rank; /* of what is read or written: y…, then data's remaining axes */
    int64_t shape[2 * TENSOR_MAX_RANK];
} Nd;

static const char *nd_ranks(const Attrs *attrs, int rank, int nindex, int64_t m, Nd *nd) {
    const AttrValue *v = attrs_find(attrs, "batch_dims");
    int64_t batch = v && v->kind == ATTR_INT ? v->i : 0;
    if (nindex < 1)
        return "`indices` needs an axis for the coordinates";
    if (batch < 0 || batch > nindex - 1)
        return "batch_dims is more than the axes of `indices`";
    if (batch + m > rank)
        return "there are more coordinates than axes of `data`";
    if (nindex - 1 + rank - batch - m > TENSOR_MAX_RANK)
        return "the result would have too many axes";
    nd->m = (int)m;
    nd->batch = (int)batch;
    return NULL;
}

static bool nd_plan(const OpCall *call, const Tensor *x, const Tensor *i, Nd *nd) {
    const char *problem = nd_ranks(call->attrs, x->rank, i->rank, i->rank ? i->shape[0] : 0, nd);
    if (problem && i->rank == 0) {
        shape_error(call, DIAG_R0313, "%s", problem);
        return false;
    }
    if (problem) {
        shape_error(call, DIAG_R0316, "%s (`data` has shape %s, `indices` %s)", problem,
                    shape_text(x->rank, x->shape), shape_text(i->rank, i->shape));
        return false;
    }
    nd->rank = 0;
    for (int k = 1; k < i->rank; k++) {
        if (k <= nd->batch && i->shape[k] != x->shape[k - 1]) {
            shape_error(call, DIAG_R0314,
                        "batch axis %d has size %lld in `data` and %lld in `indices`", k - 1,
                        (long long)x->shape[k - 1], (long long)i->shape[k]);
            return false;
        }
        nd->shape[nd->rank++] = i->shape[k];
    }
    for (int k = nd->batch + nd->m; k < x->rank; k++)
        nd->shape[nd->rank++] = x->shape[k];
    return true;
}

static void nd_strides(const Nd *nd, const Tensor *x, const Tensor *i, int64_t *xs, int64_t *is) {
    int n = 0;
    for (int k = 1; k < i->rank; k++) {
        is[n] = i->strides[k];
        xs[n++] = k <= nd->batch ? x->strides[k - 1] : 0;
    }
    for (int k = nd->batch + nd->m; k < x->rank; k++) {
        is[n] = 0;
        xs[n++] = x->strides[k];
    }
}

/* The offset into x of the coordinates at the current place. */
static Sc nd_offset(StepBuilder *s, const Nd *nd, const Tensor *x, const Tensor *i, int at) {
    ScalarBuilder *b = &s->body;
    Sc sum = sc_i64(b, 0);
    for (int k = 0; k < nd->m; k++) {
        Sc skip = step_iparam(s, b, DT_I64, k * i->strides[0]);
        Sc index = sc_cast(b, sc_load_at(b, at, i->dtype, skip), DT_I64);
        Sc n = step_iparam(s, b, DT_I64, x->shape[nd->batch + k]);
        Sc stride = step_iparam(s, b, DT_I64, x->strides[nd->batch + k]);
        sum = sc_add(b, sum, sc_mul(b, sc_place(b, index, n, INDEX_CHECK), stride));
    }
    return sum;
}

/* At most ten coordinates: each takes three parameters of a kernel. */
static bool nd_fits(const OpCall *call, const Nd *nd) {
    if (3 * nd->m <= RECIPE_MAX_PARAMS)
        return true;
    shape_error(call, DIAG_R0316, "takes at most %d coordinates", RECIPE_MAX_PARAMS / 3);
    return false;
}

static int shape_gather_nd(const OpCall *call, OutSpec *out) {
    Nd nd;
    if (!shape_check_dtype(call, 1, DTS_INT) || !nd_plan(call, call->in[0], call->in[1], &nd) ||
        !nd_fits(call, &nd))
        return -1;
    const Tensor *i = call->in[1];
    if (!attrs_is_none(call->attrs, "index_rank") && i->rank &&
        i->shape[0] != attrs_int(call->attrs, "index_rank")) {
        shape_error(call, DIAG_R0314, "axis 0 of `indices` is %lld, index_rank=%lld",
                    (long long)i->shape[0], (long long)attrs_int(call->attrs, "index_rank"));
        return -1;
    }
    return shape_set(call, out, call->in[0]->dtype, nd.rank, nd.shape) ? 1 : -1;
}

static RelStatus relate_gather_nd(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT}, &status))
        return status;
    uint32_t nx, ni, n = 0;
    Type **x, **i;
    int64_t m;
    Nd nd;
    if (!rel_rank_in(r->args[0], &nx, &x) || !rel_rank_in(r->args[1], &ni, &i))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    bool told = ni && !attrs_is_none(r->attrs, "index_rank");
    m = told ? attrs_int(r->attrs, "index_rank") : 0;
    if (told && !rel_unify_dim(s, r, i[0], rel_int_dim(r, m), 1, 0))
        return REL_FAIL;
    bool known = !ni || told || type_get_int(type_resolve(i[0]), &m);
    const char *problem = nd_ranks(r->attrs, (int)nx, (int)ni, m, &nd);
    for (m = 0; !known && problem && m <= nx; m++) /* whether any number of coordinates fits */
        problem = nd_ranks(r->attrs, (int)nx, (int)ni, m, &nd);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`gather_nd`: %s", problem);
        return REL_FAIL;
    }
    if (!known)
        return rel_dim_open(i[0]) ? rel_wait(s, r, rel_dtype_in(r->args[0]))
                                  : rel_unknown_rank(s, r, rel_dtype_in(r->args[0]));
    Type **out = mem_new_n(Type *, nx + ni + 1);
    for (uint32_t k = 1; k < ni; k++) {
        if ((int)k <= nd.batch && !rel_unify_dim(s, r, i[k], x[k - 1], 1, (int)k))
            return REL_FAIL;
        out[n++] = i[k];
    }
    for (uint32_t k = (uint32_t)(nd.batch + nd.m); k < nx; k++)
        out[n++] = x[k];
    return rel_result(s, r, out, n, rel_dtype_in(r->args[0])) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_gather_nd(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *i = call->in[1];
    Nd nd;
    int64_t xs[2 * TENSOR_MAX_RANK], is[2 * TENSOR_MAX_RANK];
    if (!nd_plan(call, x, i, &nd))
        return false;
    nd_strides(&nd, x, i, xs, is);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, nd.rank, nd.shape);
    int from = step_in_strided(&s, x, xs, 0), at = step_in_strided(&s, i, is, 0);
    Sc offset = nd_offset(&s, &nd, x, i, at);
    sc_load_at(&s.body, from, x->dtype, offset);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_gather_nd = {"GatherND", relate_gather_nd, 3, false};
static const AttrSpec gather_nd_attrs[] = {
    {"batch_dims", AT_INT, "0", "leading axes that data and indices share"},
    {"index_rank", AT_INT_OPT, "None",
     "the number of coordinates: the first size of indices, where that is not known"},
};
const Op op_gather_nd = {
    .name = "gather_nd",
    .args = "data, indices",
    .nargs = 2,
    .attrs = gather_nd_attrs,
    .nattrs = 2,
    .relation = &rel_gather_nd,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_gather_nd,
    .refuses_sizes = true,
    .lower = lower_gather_nd,
    .doc = "The parts of data at coordinates: the first axis of indices holds one coordinate for "
           "each\n"
           "of data's first axes.",
    .example = "gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])",
    .example_result = "[2, 3] : Tensor[(2,), int32]",
    .see_also = "gather, scatter_nd",
};

/* ---- writing at coordinates ------------------------------------------------------------------ */

static void scatter_nd_steps(Plan *plan, Tensor *y, const Nd *nd, const Tensor *i, const Tensor *u,
                             Combine combine, DType acc) {
    int64_t ys[2 * TENSOR_MAX_RANK], is[2 * TENSOR_MAX_RANK];
    nd_strides(nd, y, i, ys, is);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, nd->rank, nd->shape);
    step_combine(&s, combine, acc);
    int at = step_in_strided(&s, i, is, 0), from = step_in(&s, u);
    Sc offset = nd_offset(&s, nd, y, i, at);
    Sc value = sc_load(&s.body, from, u->dtype);
    step_result(&s, value);
    step_result(&s, offset);
    step_out_strided(&s, y, ys, 0);
    step_end(&s);
}

static bool check_updates(const OpCall *call, int arg, const Nd *nd) {
    const Tensor *u = call->in[arg];
    bool fits = u->rank == nd->rank;
    for (int k = 0; k < nd->rank && fits; k++)
        fits = u->shape[k] == nd->shape[k];
    if (fits)
        return true;
    shape_error(call, DIAG_R0314, "`%s` has shape %s and the indices name a part of shape %s",
                shape_arg_name(call, arg), shape_text(u->rank, u->shape),
                shape_text(nd->rank, nd->shape));
    return false;
}

static int shape_scatter_nd(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    Nd nd;
    if (!shape_check_dtype(call, 1, DTS_INT) || !shape_check_same_dtype(call, 0, 2) ||
        !check_combine(call, "mode") || !nd_plan(call, x, call->in[1], &nd) ||
        !nd_fits(call, &nd) || !check_updates(call, 2, &nd))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static bool lower_scatter_nd(const OpCall *call, Tensor *const *out, Plan *plan) {
    Nd nd;
    Combine combine = combine_named(attrs_text(call->attrs, "mode"));
    if (!nd_plan(call, out[0], call->in[1], &nd))
        return false;
    plan_copy(plan, out[0], call->in[0]);
    scatter_nd_steps(plan, out[0], &nd, call->in[1], call->in[2], combine,
                     sc_type_of(out[0]->dtype));
    return true;
}

static const RelDef rel_scatter_nd = {"ScatterND", relate_scatter, 4, false};
static const AttrSpec scatter_nd_attrs[] = {
    {"mode", AT_STRING, "\"update\"", "\"update\", \"add\", \"mul\", \"min\" or \"max\""},
};
const Op op_scatter_nd = {
    .name = "scatter_nd",
    .args = "data, indices, updates",
    .nargs = 3,
    .attrs = scatter_nd_attrs,
    .nattrs = 1,
    .choices = "mode: update add mul min max",
    .relation = &rel_scatter_nd,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .variant = BY_POINTS,
    .shape = shape_scatter_nd,
    .refuses_sizes = true,
    .lower = lower_scatter_nd,
    .doc = "data, changed at the coordinates that the first axis of indices holds, as gather_nd "
           "reads\n"
           "them.",
    .example = "scatter_nd([1, 2, 3], [[2, 0]], [10, 20], mode=\"add\")",
    .example_result = "[21, 2, 13] : Tensor[(3,), int32]",
    .see_also = "gather_nd, scatter_elements",
};

/* (update, indices, data) */
static int shape_gather_nd_add(const OpCall *call, OutSpec *out) {
    const Tensor *u = call->in[0], *x = call->in[2];
    Nd nd;
    if (!shape_check_dtype(call, 1, DTS_INT) || !nd_plan(call, x, call->in[1], &nd) ||
        !nd_fits(call, &nd) || !check_updates(call, 0, &nd))
        return -1;
    return shape_set(call, out, u->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_gather_nd_add(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_INT, DTS_ALL}, &status))
        return status;
    Type *t = type_tensor(rel_shape_in(r->args[2]), rel_dtype_in(r->args[0]));
    return rel_result_type(s, r, t) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_gather_nd_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    Nd nd;
    if (!nd_plan(call, out[0], call->in[1], &nd))
        return false;
    plan_fill_int(plan, out[0], 0);
    scatter_nd_steps(plan, out[0], &nd, call->in[1], call->in[0], COMBINE_SUM,
                     reduce_acc_type(out[0]->dtype));
    return true;
}

static const RelDef rel_gather_nd_add = {"GatherNDAdd", relate_gather_nd_add, 4, false};
const Op op_gather_nd_add = {
    .name = "gather_nd_add",
    .args = "update, indices, data",
    .nargs = 3,
    .attrs = gather_nd_attrs,
    .nattrs = 2,
    .relation = &rel_gather_nd_add,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .shape = shape_gather_nd_add,
    .refuses_sizes = true,
    .lower = lower_gather_nd_add,
    .doc =
        "Zeros in data's shape, with each part of update added where gather_nd would read it: its\n"
        "derivative.",
    .example = "gather_nd_add([1, 2, 3], [[0, 1, 0]], [0, 0])",
    .example_result = "[4, 2] : Tensor[(2,), int32]",
    .see_also = "gather_nd",
};

/* ---- sparse_to_dense ------------------------------------------------------------------------- */

/* Sparse indices (n, m), (n,) or () as gather_nd's: (m, n), (1, n) or (1,). */
static Tensor *coordinates_of(const Tensor *i) {
    int64_t n = i->rank ? i->shape[0] : 1, m = i->rank == 2 ? i->shape[1] : 1;
    int64_t strides[2] = {i->rank == 2 ? i->strides[1] : 0, i->rank ? i->strides[0] : 0};
    return tensor_view(i, i->rank ? 2 : 1, (const int64_t[]){m, n}, strides, i->offset);
}

static int shape_sparse_to_dense(const OpCall *call, OutSpec *out) {
    const Tensor *i = call->in[0], *v = call->in[1];
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    if (!shape_check_dtype(call, 0, DTS_INT) || !shape_check_same_dtype(call, 1, 2) ||
        !shape_check_rank(call, 2, 0) || !shape_attr_dims(call, "output_shape", &rank, dims))
        return -1;
    if (i->rank > 2 || v->rank > 1) {
        int arg = i->rank > 2 ? 0 : 1;
        shape_error(call, DIAG_R0313, "`%s` has %d axes, at most %d are taken",
                    shape_arg_name(call, arg), call->in[arg]->rank, arg ? 1 : 2);
        return -1;
    }
    int64_t n = i->rank ? i->shape[0] : 1, m = i->rank == 2 ? i->shape[1] : 1;
    if (m != rank || !rank) {
        shape_error(call, DIAG_R0314, "an index has %lld coordinate%s, and output_shape %d axes",
                    (long long)m, m == 1 ? "" : "s", rank);
        return -1;
    }
    if (3 * m > RECIPE_MAX_PARAMS) {
        shape_error(call, DIAG_R0316, "takes at most %d coordinates", RECIPE_MAX_PARAMS / 3);
        return -1;
    }
    if (v->rank && v->shape[0] != n) {
        shape_error(call, DIAG_R0314, "there are %lld indices and %lld values", (long long)n,
                    (long long)v->shape[0]);
        return -1;
    }
    return shape_set(call, out, v->dtype, rank, dims) ? 1 : -1;
}

static RelStatus relate_sparse_to_dense(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_INT, DTS_ALL, DTS_ALL}, &status))
        return status;
    uint32_t rank, ni, nv;
    Type **dims, **i, **v, *dtype = rel_dtype_in(r->args[1]);
    if (!rel_unify(s, r, 2, type_tensor(type_shape(NULL, 0), dtype)))
        return REL_FAIL;
    if (rel_attrs_open(r))
        return rel_wait(s, r, dtype);
    if (!rel_attr_dims(s, r, "output_shape", &rank, &dims))
        return REL_FAIL;
    bool has_i = rel_rank_in(r->args[0], &ni, &i), has_v = rel_rank_in(r->args[1], &nv, &v);
    if ((has_i && ni > 2) || (has_v && nv > 1)) {
        rel_error(s, r, DIAG_R0313, "`sparse_to_dense`: `%s` has %u axes, at most %d are taken",
                  has_i && ni > 2 ? "sparse_indices" : "sparse_values", has_i && ni > 2 ? ni : nv,
                  has_i && ni > 2 ? 2 : 1);
        return REL_FAIL;
    }
    if (has_i && ni < 2 && rank != 1) {
        rel_error(s, r, DIAG_R0314,
                  "`sparse_to_dense`: an index has 1 coordinate, and output_shape %u axes", rank);
        return REL_FAIL;
    }
    if (has_i && ni == 2 && !rel_unify_dim(s, r, i[1], rel_int_dim(r, rank), 0, 1))
        return REL_FAIL;
    if (has_i && has_v && nv && !rel_unify_dim(s, r, v[0], ni ? i[0] : rel_int_dim(r, 1), 1, 0))
        return REL_FAIL;
    if (rel_result(s, r, dims, rank, dtype) == REL_FAIL)
        return REL_FAIL;
    return rel_settled(r);
}

static bool lower_sparse_to_dense(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *i = coordinates_of(call->in[0]);
    Nd nd = {.m = out[0]->rank, .rank = i->rank - 1, .shape = {i->rank > 1 ? i->shape[1] : 1}};
    plan_copy(plan, out[0], call->in[2]);
    scatter_nd_steps(plan, out[0], &nd, i, call->in[1], combine_named("update"),
                     sc_type_of(out[0]->dtype));
    return true;
}

static const RelDef rel_sparse_to_dense = {"SparseToDense", relate_sparse_to_dense, 4, false};
static const AttrSpec sparse_to_dense_attrs[] = {
    {"output_shape", AT_DIMS, NULL, "the sizes of the result"},
};
const Op op_sparse_to_dense = {
    .name = "sparse_to_dense",
    .args = "sparse_indices, sparse_values, default_value",
    .nargs = 3,
    .attrs = sparse_to_dense_attrs,
    .nattrs = 1,
    .relation = &rel_sparse_to_dense,
    .dtypes = DTS_INT,
    .pattern = OP_OPAQUE,
    .shape = shape_sparse_to_dense,
    .lower = lower_sparse_to_dense,
    .doc =
        "default_value everywhere but at the indices, where sparse_values stand: indices (n, m) "
        "of\n"
        "tensors of m axes, (n,) or () of vectors; a value for each, or one for all. Of several\n"
        "values of one element the last one counts.",
    .example = "sparse_to_dense([[0, 1], [1, 2]], [5, 6], 0, output_shape=[2, 3])",
    .example_result = "[[0, 5, 0],\n [0, 0, 6]] : Tensor[(2, 3), int32]",
    .see_also = "scatter_nd, one_hot",
};
