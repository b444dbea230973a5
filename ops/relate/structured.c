/* SPDX-License-Identifier: Apache-2.0 */
/* Relations and attributes of the structured operators; their common steps. */
#include "ops/relate/structured.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"

/* ---- types ----------------------------------------------------------------------------------- */

Type *rel_shape_in(Type *t) {
    t = type_resolve(t);
    return t->tag == TY_TENSOR ? type_resolve(t->tensor.shape) : NULL;
}

Type *rel_dtype_in(Type *t) {
    t = type_resolve(t);
    return t->tag == TY_TENSOR ? type_resolve(t->tensor.dtype) : NULL;
}

bool rel_rank_in(Type *t, uint32_t *rank, Type ***dims) {
    Type *shape = rel_shape_in(t);
    return shape && type_get_rank(shape, rank, dims);
}

bool rel_parts(Relation *r, int arg, uint32_t *n, Type ***parts) {
    Type *t = type_resolve(r->args[arg]);
    if (t->tag != TY_TUPLE)
        return false;
    *n = t->nargs;
    *parts = t->args;
    return true;
}

Type *rel_int_dim(Relation *r, int64_t n) { return type_dim_int(n, rel_origin(r)); }
Type *rel_unknown_dim(Relation *r) { return type_any(KIND_DIM, rel_origin(r)); }

/* A size of the result that an attribute lists: that of an AT_DIMS with as many elements. */
static Type *listed_dim(Relation *r, int rank, int axis, int64_t n) {
    for (int i = 0; r->attrs && i < r->op->nattrs; i++) {
        const AttrValue *v = &r->attrs->values[i];
        AttrType type = r->op->attrs[i].type;
        if ((type != AT_DIMS && type != AT_DIMS_OPT) || v->kind != ATTR_LIST ||
            (int)v->list.n != rank)
            continue;
        const AttrValue *item = &v->list.items[axis];
        if (item->kind == ATTR_INT && item->i == n)
            return type_dim_int(n, rel_attr_origin(r, r->op->attrs[i].name, item));
    }
    return rel_int_dim(r, n);
}

Type *rel_unknown_broadcast(Solver *s, Relation *r, Type *a, Type *b, int axis) {
    int64_t n;
    a = type_resolve(a);
    b = type_resolve(b);
    if (!((a->flags | b->flags) & TYPE_HAS_ANY) || rel_dim_open(a) || rel_dim_open(b))
        return NULL;
    solver_add_residual(s, a, b, r->span, place_of_broadcast(axis, relation_subject(r)));
    return type_get_int(a, &n) ? a : type_get_int(b, &n) ? b : rel_unknown_dim(r);
}

Type *rel_product(Relation *r, uint32_t n, Type *const *dims) {
    if (n == 0)
        return rel_int_dim(r, 1);
    Type *p = dims[0];
    for (uint32_t i = 1; i < n; i++)
        p = dim_mul(p, dims[i]);
    return p;
}

bool rel_dim_open(Type *dim) { return type_has_vars(dim); }

Type **rel_copy_dims(uint32_t n, Type *const *dims, uint32_t extra) {
    Type **out = mem_new_n(Type *, n + extra + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = dims[i];
    return out;
}

/* A tensor of unknown rank as one of this rank: the operator sees to it when it runs. */
static Type *lent_rank(Solver *s, Relation *r, Type *t, uint32_t rank) {
    Type **dims = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = rel_unknown_dim(r);
    Type *shape = type_shape(dims, rank);
    solver_add_residual(s, rel_shape_in(t), shape, r->span, (TypePlace){0});
    return type_tensor(shape, rel_dtype_in(t));
}

void rel_lend_rank(Solver *s, Relation *r, int arg, uint32_t part, uint32_t rank) {
    Type *t = type_resolve(r->args[arg]), **parts = mem_new_n(Type *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        parts[i] = i == part ? lent_rank(s, r, t->args[i], rank) : t->args[i];
    r->args[arg] = type_tuple(parts, t->nargs);
}

bool rel_make_rank(Solver *s, Relation *r, int arg, uint32_t rank) {
    uint32_t known;
    Type **dims;
    if (rel_rank_in(r->args[arg], &known, &dims))
        return true;
    if (type_has_unknown_rank(r->args[arg])) {
        r->args[arg] = lent_rank(s, r, r->args[arg], rank);
        return true;
    }
    dims = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = solver_var(s, KIND_DIM);
    Type *t = type_tensor(type_shape(dims, rank), rel_dtype_in(r->args[arg]));
    return rel_unify(s, r, arg, t);
}

bool rel_rank_of_result(Solver *s, Relation *r, int arg, int more) {
    uint32_t rank;
    Type **dims, *shape = rel_shape_in(r->args[arg]);
    if (!shape || type_resolve(shape)->tag != TY_VAR ||
        !rel_rank_in(rel_result_arg(r), &rank, &dims))
        return true;
    int wanted = (int)rank + more;
    return wanted < 0 || wanted > TENSOR_MAX_RANK || rel_make_rank(s, r, arg, (uint32_t)wanted);
}

RelStatus rel_wait(Solver *s, Relation *r, Type *dtype) {
    Type *shape = rel_shape_in(rel_result_arg(r));
    Type *t = type_tensor(shape ? shape : solver_var(s, KIND_SHAPE), dtype);
    return rel_result_type(s, r, t) == REL_FAIL ? REL_FAIL : REL_WAIT;
}

RelStatus rel_settled(Relation *r) {
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        if (type_has_open_sizes(r->args[i]))
            return REL_WAIT;
    return REL_DONE;
}

/* ---- all sizes known ------------------------------------------------------------------------- */

/* An argument as the shape function sees it: no elements. A dtype that is not known yet is stood
 * in for by one the operator takes; two runs with different ones tell whose dtype a result has. */
typedef struct Known {
    uint32_t n, cap;
    Tensor **tensors;
    Type **dtypes; /* NULL: known */
    DTypeSet *sets;
} Known;

/* The first dtype of the set, in the order of literals; the other one for the second run. */
static DType stand_in(DTypeSet set, int run) {
    static const DType order[] = {DT_F32, DT_F64, DT_I32, DT_I64, DT_U64, DT_BOOL, DT_F16,
                                  DT_I8,  DT_U8,  DT_I16, DT_U16, DT_U32, DT_BF16};
    DType found = DT_F32;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (!(set & DT_BIT(order[i])))
            continue;
        found = order[i];
        if (run-- == 0)
            break;
    }
    return found;
}

static bool known_add(Known *k, Type *t, DTypeSet set) {
    uint32_t rank;
    Type **dims;
    if (!rel_rank_in(t, &rank, &dims) || rank > TENSOR_MAX_RANK)
        return false;
    Tensor *x = mem_alloc(sizeof(Tensor) + rank * sizeof(int64_t));
    x->rank = (int)rank;
    x->count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t d;
        if (!type_get_int(type_resolve(dims[i]), &d))
            return false;
        x->shape[i] = d;
        x->count = size_multiply(x->count, d);
    }
    if (k->n == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 8;
        k->tensors = mem_realloc(k->tensors, k->cap * sizeof *k->tensors);
        k->dtypes = mem_realloc(k->dtypes, k->cap * sizeof *k->dtypes);
        k->sets = mem_realloc(k->sets, k->cap * sizeof *k->sets);
    }
    DType d;
    Type *dt = rel_dtype_in(t);
    bool have = type_get_dtype(dt, &d);
    if (have)
        x->dtype = d;
    k->tensors[k->n] = x;
    k->dtypes[k->n] = have ? NULL : dt;
    k->sets[k->n++] = set;
    return true;
}

/* The first operand whose open dtype is that of operand i. */
static uint32_t first_of_dtype(const Known *k, uint32_t i) {
    uint32_t first = 0;
    while (k->dtypes[first] != k->dtypes[i])
        first++;
    return first;
}

/* odd: the operand whose open dtype stands for another one than those of the others do, or k->n. */
static int known_shape(Diags *diags, Relation *r, Known *k, int run, uint32_t odd, OutSpec *out) {
    for (uint32_t i = 0; i < k->n; i++) {
        if (!k->dtypes[i])
            continue;
        uint32_t first = first_of_dtype(k, i);
        k->tensors[i]->dtype = stand_in(k->sets[first], run + (first == odd));
    }
    OpCall call = {.op = r->op,
                   .attrs = r->attrs,
                   .nin = k->n,
                   .in = k->tensors,
                   .diags = diags,
                   .span = r->span,
                   .places = r->arg_spans || r->inner_spans};
    return r->op->shape(&call, out);
}

static bool wants_equal_dtypes(Relation *r, Known *k, int run, uint32_t odd) {
    OutSpec out[OP_MAX_OUTPUTS];
    Diags tried = {0};
    return known_shape(&tried, r, k, run, odd, out) < 0 && tried.list.data[0]->code == DIAG_R0311;
}

/* Operands whose dtypes are open are tried with two stand-ins, and each with one of its own. An operator that then
 * complains of different dtypes asks for equal ones: those of the same class are made so. True if any was open. */
static bool unify_dtypes(Solver *s, Relation *r, Known *k) {
    bool complains = wants_equal_dtypes(r, k, 0, k->n) || wants_equal_dtypes(r, k, 1, k->n);
    bool any = false;
    for (uint32_t i = 0; i < k->n; i++) {
        if (!k->dtypes[i] || (!complains && !wants_equal_dtypes(r, k, 0, first_of_dtype(k, i))))
            continue;
        for (uint32_t j = 0; k->dtypes[i] && j < k->n; j++) {
            if (j == i || k->sets[j] != k->sets[i] || (k->dtypes[j] && j > i))
                continue;
            Type *other = k->dtypes[j] ? k->dtypes[j] : type_dtype(k->tensors[j]->dtype);
            any |= type_resolve(other) != type_resolve(k->dtypes[i]) &&
                   solver_unify(s, k->dtypes[i], other);
            break;
        }
    }
    return any;
}

/* What the shape function said, with the types of the arguments at their places and, as their sizes
 * are known here by where they came from, laid out once more. */
static RelStatus report_refusal(Solver *s, Relation *r, Diags *refused) {
    for (size_t i = 0; i < refused->list.len; i++) {
        Diag *d = refused->list.data[i];
        rel_add_places(d, r);
        if (r->arg_spans || r->inner_spans)
            rel_add_sizes(s, d, r);
        diag_report(solver_diags(s), d);
    }
    return REL_FAIL;
}

static RelStatus known_result(Solver *s, Relation *r, Known *k) {
    OutSpec a[OP_MAX_OUTPUTS], b[OP_MAX_OUTPUTS];
    bool open = false;
    for (uint32_t i = 0; i < k->n; i++)
        open |= k->dtypes[i] != NULL;
    Diags refused = {0};
    int n = known_shape(&refused, r, k, 0, k->n, a);
    if (n < 0)
        return report_refusal(s, r, &refused);
    DType *first = mem_bytes(sizeof(DType) * (k->n + 1));
    for (uint32_t i = 0; i < k->n; i++)
        first[i] = k->tensors[i]->dtype;
    if (open && known_shape(&refused, r, k, 1, k->n, b) < 0)
        return report_refusal(s, r, &refused);
    Type **results = mem_new_n(Type *, n + 1);
    for (int i = 0; i < n; i++) {
        Type **dims = mem_new_n(Type *, a[i].rank + 1);
        for (int j = 0; j < a[i].rank; j++)
            dims[j] = listed_dim(r, a[i].rank, j, a[i].shape[j]);
        Type *dtype = NULL;
        if (open && a[i].dtype != b[i].dtype)
            for (uint32_t j = 0; j < k->n && !dtype; j++)
                if (k->dtypes[j] && first[j] == a[i].dtype)
                    dtype = k->dtypes[j];
        if (!dtype)
            dtype = type_dtype(a[i].dtype);
        results[i] = type_tensor(type_shape(dims, (uint32_t)a[i].rank), dtype);
    }
    RelStatus status = rel_result_type(
        s, r, r->op->tuple || n != 1 ? type_tuple(results, (uint32_t)n) : results[0]);
    return status == REL_WAIT ? REL_DONE : status;
}

/* A part of a tuple argument becomes a tensor of a dtype in the set. */
static bool part_tensor(Solver *s, Relation *r, int arg, Type *part, DTypeSet set) {
    Type *t = type_resolve(part);
    if (t->tag == TY_ERROR)
        return false;
    if (t->tag != TY_TENSOR) {
        if (!solver_unify(s, t, solver_tensor_var(s))) {
            rel_error(s, r, DIAG_R0310, "`%s` takes a tuple of tensors, and finds %s in it",
                      r->op->name, type_text(t));
            return false;
        }
        t = type_resolve(part);
    }
    if (solver_restrict(s, rel_dtype_in(t), set))
        return true;
    rel_error(s, r, DIAG_R0310, "argument %d of `%s` is a tuple of tensors; %s is not taken",
              arg + 1, r->op->name, type_text(rel_dtype_in(t)));
    return false;
}

bool rel_known(Solver *s, Relation *r, const DTypeSet *sets, RelStatus *status) {
    *status = REL_WAIT;
    if (rel_attrs_open(r))
        return true;
    Known k = {0};
    bool all = true;
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        if (op_arg(r->op, (int)i).tuple) {
            Type *t = type_resolve(r->args[i]);
            if (t->tag == TY_ERROR) {
                *status = REL_DONE;
                return true;
            }
            if (t->tag == TY_VAR || t->tag == TY_PARAM) /* of a declared one a fact may tell */
                return true;
            if (t->tag != TY_TUPLE) {
                rel_error(s, r, DIAG_R0310, "`%s` takes a tuple of tensors, found %s", r->op->name,
                          type_text(t));
                *status = REL_FAIL;
                return true;
            }
            for (uint32_t j = 0; j < t->nargs; j++) {
                if (!part_tensor(s, r, (int)i, t->args[j], sets[i])) {
                    *status = REL_FAIL;
                    return true;
                }
                all = all && known_add(&k, t->args[j], sets[i]);
            }
            continue;
        }
        Type *shape, *dtype;
        if (!rel_tensor(s, r, (int)i, sets[i], &shape, &dtype)) {
            *status = REL_FAIL;
            return true;
        }
        all = all && known_add(&k, r->args[i], sets[i]);
    }
    if (!all || r->op->shape_mode != SHAPE_OF_SHAPES || attrs_have_sizes(r->attrs))
        return false;
    bool open = false;
    for (uint32_t i = 0; i < k.n; i++)
        open |= k.dtypes[i] != NULL;
    if (open && unify_dtypes(s, r, &k))
        return rel_known(s, r, sets, status);
    *status = known_result(s, r, &k);
    return true;
}

/* ---- attributes ------------------------------------------------------------------------------ */

bool attr_get_int(const AttrValue *v, int64_t *out) {
    if (v->kind == ATTR_DIM)
        return type_get_int(type_resolve(v->dim), out);
    *out = v->i;
    return v->kind == ATTR_INT;
}

int attr_floats(const Attrs *attrs, const char *name, double *out, int max) {
    const AttrValue *v = attrs_get(attrs, name);
    if (v->kind != ATTR_LIST || v->list.n > (uint32_t)max)
        return -1;
    for (uint32_t i = 0; i < v->list.n; i++) {
        const AttrValue *item = &v->list.items[i];
        if (item->kind != ATTR_FLOAT && item->kind != ATTR_INT)
            return -1;
        out[i] = item->kind == ATTR_FLOAT ? item->f : (double)item->i;
    }
    return (int)v->list.n;
}

int attr_int_list(const Attrs *attrs, const char *name, int64_t *out, int max) {
    const AttrValue *v = attrs_get(attrs, name);
    if (v->kind == ATTR_INT) {
        out[0] = v->i;
        return 1;
    }
    if (v->kind != ATTR_LIST)
        return -1;
    int n = 0;
    for (uint32_t i = 0; i < v->list.n; i++) {
        const AttrValue *item = &v->list.items[i];
        if (n == max || !attr_get_int(item, &out[n]))
            return -1;
        n++;
    }
    return n;
}

/* -1: fine; else the offending axis is in *bad. */
static bool axis_set(const Attrs *attrs, const char *attr, bool exclude, int rank, uint32_t *out,
                     int64_t *bad) {
    int64_t axes[TENSOR_MAX_RANK];
    uint32_t all = (uint32_t)((1ull << rank) - 1), set = 0;
    int n = attr_int_list(attrs, attr, axes, TENSOR_MAX_RANK);
    if (n < 0) {
        *out = all;
        return true;
    }
    for (int i = 0; i < n; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];
        *bad = axes[i];
        if (a < 0 || a >= rank || set & (1u << a))
            return false;
        set |= 1u << a;
    }
    *out = exclude ? all & ~set : set;
    return true;
}

bool shape_axis_set(const OpCall *call, const char *attr, bool exclude, int rank, uint32_t *out) {
    int64_t bad;
    if (axis_set(call->attrs, attr, exclude, rank, out, &bad))
        return true;
    shape_error(call, DIAG_R0315, "%s=%lld is not an axis of %d, or stands twice", attr,
                (long long)bad, rank);
    return false;
}

bool rel_axis_set(Solver *s, Relation *r, const char *attr, bool exclude, uint32_t rank,
                  uint32_t *out) {
    int64_t bad;
    if (axis_set(r->attrs, attr, exclude, (int)rank, out, &bad))
        return true;
    rel_error(s, r, DIAG_R0315, "`%s`: %s=%lld is not an axis of %u, or stands twice", r->op->name,
              attr, (long long)bad, rank);
    return false;
}

bool shape_one_axis(const OpCall *call, const char *attr, int rank, int *out) {
    return shape_axis(call, attr, attrs_int(call->attrs, attr), rank, out);
}

bool rel_one_axis(Solver *s, Relation *r, const char *attr, uint32_t rank, uint32_t *out) {
    return rel_axis(s, r, attr, attrs_int(r->attrs, attr), rank, out);
}

int lower_axis(const OpCall *call, const char *attr, int rank) {
    int64_t a = attrs_int(call->attrs, attr);
    return (int)(a < 0 ? a + rank : a);
}

uint32_t lower_axis_set(const OpCall *call, const char *attr, bool exclude, int rank) {
    uint32_t set = 0;
    int64_t bad;
    axis_set(call->attrs, attr, exclude, rank, &set, &bad);
    return set;
}

/* ---- steps ----------------------------------------------------------------------------------- */

void plan_place_strided(Plan *plan, Tensor *out, const int64_t *strides, int64_t offset,
                        const Tensor *t) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, t->rank, t->shape);
    Sc x = sc_load(&s.body, step_in(&s, t), t->dtype);
    sc_cast(&s.body, x, sc_type_of(out->dtype));
    step_out_strided(&s, out, strides, offset);
    step_end(&s);
}

void plan_relayout(Plan *plan, Tensor *out, const Tensor *t) {
    int64_t strides[TENSOR_MAX_RANK];
    shape_strides(t->rank, t->shape, strides);
    plan_place_strided(plan, out, strides, 0, t);
}

void plan_sum_strided(Plan *plan, Tensor *out, int nreduce, const int64_t *extents, const Tensor *t,
                      const int64_t *strides, int64_t offset) {
    StepBuilder s;
    DType acc = reduce_acc_type(out->dtype);
    step_begin(&s, plan, RECIPE_REDUCE, out->rank, out->shape);
    step_reduce_over(&s, nreduce, extents);
    step_combine(&s, COMBINE_SUM, acc);
    Sc x = sc_load(&s.body, step_in_strided(&s, t, strides, offset), t->dtype);
    sc_cast(&s.body, x, acc);
    step_out(&s, out);
    step_end(&s);
}

void plan_product(Plan *plan, Tensor *out, const Product *p, const Tensor *x, const Tensor *y) {
    StepBuilder s;
    DType acc = reduce_acc_type(out->dtype);
    step_begin(&s, plan, RECIPE_PRODUCT, p->rank, p->extents);
    step_reduce_over(&s, p->nreduce, p->extents + p->rank);
    step_combine(&s, COMBINE_SUM, acc);
    ScalarBuilder *b = &s.body;
    Sc a = sc_load(b, step_in_strided(&s, x, p->x_strides, p->x_offset), x->dtype);
    Sc c = sc_load(b, step_in_strided(&s, y, p->y_strides, p->y_offset), y->dtype);
    a = sc_cast(b, a, acc);
    c = sc_cast(b, c, acc);
    sc_mul(b, a, c);
    step_out_strided(&s, out, p->out_strides, 0);
    step_end(&s);
}

Sc sc_i64(ScalarBuilder *b, int64_t v) { return sc_int(b, DT_I64, v); }

Sc sc_index_load(ScalarBuilder *b, int operand, DType stored) {
    return sc_cast(b, sc_load(b, operand, stored), DT_I64);
}

Sc sc_in_range(ScalarBuilder *b, Sc i, Sc n) {
    Sc low = sc_ge(b, i, sc_i64(b, 0));
    return sc_and(b, low, sc_lt(b, i, n));
}
