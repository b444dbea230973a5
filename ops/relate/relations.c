/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of element-wise, reducing and initialising operators. Those of the structured
 * operators stand beside their entries. */
#include "ops/relate/relations.h"

#include "base/mem.h"
#include "ops/relate/solve.h"
#include "types/core/core.h"

#include <string.h>

/* ---- helpers --------------------------------------------------------------------------------- */

/* The documented name of an argument. */
static const char *arg_name(const Relation *r, int arg) {
    if (arg == (int)r->nargs - 1)
        return "the result";
    const char *name = r->op ? op_arg(r->op, arg).name : NULL;
    return name ? fmt_text("`%s`", name) : fmt_text("argument %d", arg + 1);
}

static const char *op_name(const Relation *r) { return r->op ? r->op->name : r->def->name; }

Type *rel_result_arg(const Relation *r) { return r->args[r->nargs - 1]; }

bool rel_tensor(Solver *s, Relation *r, int arg, DTypeSet set, Type **shape, Type **dtype) {
    Type *t = type_resolve(r->args[arg]);
    bool result = arg == (int)r->nargs - 1;
    if (t->tag == TY_ERROR) {
        *shape = solver_var(s, KIND_SHAPE);
        *dtype = solver_var(s, KIND_DTYPE);
        return true;
    }
    if (t->tag != TY_TENSOR) {
        if (!rel_unify(s, r, result ? -1 : arg, solver_tensor_var(s)))
            return false;
        t = type_resolve(r->args[arg]);
        if (t->tag != TY_TENSOR)
            BUG("`%s`: argument %d is no tensor after unification", op_name(r), arg);
    }
    *shape = t->tensor.shape;
    *dtype = t->tensor.dtype;
    if (set == DTS_ALL)
        return true;
    if (solver_restrict(s, *dtype, set)) {
        int only = __builtin_ctzll(set); /* a set of one is that dtype */
        return set != DT_BIT(only) || type_resolve(*dtype)->tag != TY_VAR ||
               solver_unify(s, *dtype, type_dtype((DType)only));
    }
    if (type_resolve(*dtype)->tag == TY_PARAM)
        rel_error(s, r, DIAG_R0304, "`%s` is not known to be %s, which `%s` needs of %s",
                  type_text(*dtype), dtype_class_name(set), op_name(r), arg_name(r, arg));
    else
        rel_error(s, r, DIAG_R0310, "`%s`: the elements of %s must be %s, they are %s", op_name(r),
                  arg_name(r, arg), dtype_class_words(set), type_text(*dtype));
    return false;
}

/* The dims of an argument of known rank; false while it is not known. */
static bool rel_dims(Relation *r, int arg, uint32_t *rank, Type ***dims) {
    return type_get_rank(r->args[arg], rank, dims);
}

RelStatus rel_result_type(Solver *s, Relation *r, Type *type) {
    return rel_unify(s, r, -1, type) ? REL_DONE : REL_FAIL;
}

static bool is_same(Span a, Span b) {
    return a.source == b.source && a.begin == b.begin && a.end == b.end;
}

/* In a definition it is the operator there, where that can be shown. */
static Span operator_span(const Relation *r) {
    bool inside = r->inner.source && !(r->inner.source->flags & SOURCE_INTERNAL);
    return inside ? r->inner : r->span;
}

const Origin *rel_origin(const Relation *r) {
    Origin *o = mem_new(Origin);
    *o = (Origin){.kind = ORIGIN_OPERATOR,
                  .span = operator_span(r),
                  .place = {.kind = r->op ? PLACE_NAME : PLACE_NONE,
                            .name = r->op ? op_subject(r->op) : NULL}};
    if (!is_same(o->span, r->span) && r->inner_name) {
        o->of = r->inner_name->text;
        o->call = r->span;
    }
    return o;
}

const Origin *rel_attr_origin(const Relation *r, const char *attr, const AttrValue *item) {
    if (!item->span.source)
        return rel_origin(r);
    Origin *o = mem_new(Origin);
    *o = (Origin){.kind = ORIGIN_ARGUMENT,
                  .span = item->span,
                  .place = place_of_name(attr),
                  .of = op_name(r)};
    return o;
}

/* Whether a size of the result is one of an argument, and not computed. */
static bool is_of_argument(const Relation *r, Type *dim) {
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        uint32_t n;
        Type **own, *t = type_resolve(r->args[i]);
        bool tuple = t->tag == TY_TUPLE;
        for (uint32_t k = 0; k < (tuple ? t->nargs : 1); k++) {
            if (!type_get_rank(tuple ? type_resolve(t->args[k]) : t, &n, &own))
                continue;
            for (uint32_t j = 0; j < n; j++)
                if (type_resolve(own[j]) == dim)
                    return true;
        }
    }
    return false;
}

/* Sizes that were computed come from this operator, whatever its operands came from. */
static Type **made_here(const Relation *r, Type **dims, uint32_t rank) {
    Type **made = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++) {
        Type *d = type_resolve(dims[i]);
        const Origin *o = d->origin;
        bool own = o && ((o->kind == ORIGIN_ARGUMENT && o->of) ||
                         (o->kind == ORIGIN_OPERATOR && is_same(o->span, operator_span(r))));
        bool kept = d->tag != TY_DIM || own || is_of_argument(r, d);
        made[i] = kept ? dims[i] : type_dim_made(d, rel_origin(r));
    }
    return made;
}

RelStatus rel_result(Solver *s, Relation *r, Type **dims, uint32_t rank, Type *dtype) {
    if (rank > TENSOR_MAX_RANK) {
        rel_error(s, r, DIAG_R0317, "`%s`: the result would have %u axes; a tensor has at most %d",
                  op_name(r), rank, TENSOR_MAX_RANK);
        return REL_FAIL;
    }
    return rel_result_type(s, r, type_tensor(type_shape(made_here(r, dims, rank), rank), dtype));
}

RelStatus rel_unknown_rank(Solver *s, Relation *r, Type *dtype) {
    return rel_result_type(s, r, type_tensor(type_any(KIND_SHAPE, rel_origin(r)), dtype));
}

bool rel_attrs_open(const Relation *r) { return r->attrs && attrs_have_refs(r->attrs); }

bool rel_axis(Solver *s, Relation *r, const char *attr, int64_t axis, uint32_t rank,
              uint32_t *out) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
        rel_error(s, r, DIAG_R0315, "`%s`: %s %lld does not exist: the tensor has %u ax%s",
                  op_name(r), attr, (long long)axis, rank, rank == 1 ? "is" : "es");
        return false;
    }
    *out = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
    return true;
}

static bool rel_axes(Solver *s, Relation *r, const char *attr, bool exclude, uint32_t rank,
                     uint32_t *out) {
    const int64_t *axes;
    uint32_t n, set = 0, all = (1u << rank) - 1;
    if (attrs_is_none(r->attrs, attr)) {
        *out = all;
        return true;
    }
    if (!attrs_ints(r->attrs, attr, &axes, &n)) {
        rel_error(s, r, DIAG_R0316, "`%s`: `%s` must be a list of integers", op_name(r), attr);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis;
        if (!rel_axis(s, r, attr, axes[i], rank, &axis))
            return false;
        if (set >> axis & 1) {
            rel_error(s, r, DIAG_R0315, "`%s`: %s %lld is named twice", op_name(r), attr,
                      (long long)axes[i]);
            return false;
        }
        set |= 1u << axis;
    }
    *out = exclude ? all & ~set : set;
    return true;
}

Type *rel_attr_dim(const AttrValue *v) {
    return v->kind == ATTR_DIM ? v->dim : type_dim_int(v->i, NULL);
}

Type *rel_attr_item(Relation *r, const char *attr, int i) {
    const AttrValue *v = attrs_get(r->attrs, attr);
    const AttrValue *item = v->kind == ATTR_LIST ? &v->list.items[v->list.n == 1 ? 0 : i] : v;
    return item->kind == ATTR_DIM ? item->dim : type_dim_int(item->i, rel_origin(r));
}

bool rel_attr_dims(Solver *s, Relation *r, const char *attr, uint32_t *rank, Type ***dims) {
    const AttrValue *v = attrs_get(r->attrs, attr);
    const AttrValue *items = v->kind == ATTR_LIST ? v->list.items : v;
    uint32_t n = v->kind == ATTR_LIST ? v->list.n : 1;
    Type **out = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (items[i].kind == ATTR_DIM) {
            out[i] = items[i].dim;
        } else if (items[i].kind == ATTR_INT && items[i].i >= 0) {
            out[i] = type_dim_int(items[i].i, rel_attr_origin(r, attr, &items[i]));
        } else {
            Str text = {0};
            attr_print(&text, &items[i]);
            rel_error(s, r, DIAG_R0316, "`%s`: `%s` must be a list of sizes, %s is none",
                      op_name(r), attr, str_text(&text));
            return false;
        }
    }
    *rank = n;
    *dims = out;
    return true;
}

Type *rel_attr_dtype(Relation *r, const char *attr, Type *otherwise) {
    DType t;
    return attrs_dtype(r->attrs, attr, &t) ? type_dtype(t) : otherwise;
}

bool rel_is_one(Type *dim) {
    int64_t n;
    return type_get_int(dim, &n) && n == 1;
}

static DTypeSet first_set(const Relation *r) { return r->op ? r->op->dtypes : DTS_ALL; }

static Type *scalar_of(Type *dtype) { return type_tensor(type_shape(NULL, 0), dtype); }

/* The places of n operands: those of r's arguments, and one more for its attribute `shape`. */
static const Span *with_attr(const Relation *r, const Span *spans, uint32_t n) {
    if (!spans || n < r->nargs)
        return spans;
    Span *out = mem_new_n(Span, n + 1);
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        out[i] = spans[i];
    const AttrValue *v = attrs_find(r->attrs, "shape");
    if (v && v->kind == ATTR_LIST && v->list.n) {
        Span first = v->list.items[0].span, last = v->list.items[v->list.n - 1].span;
        if (first.source && first.source == last.source) {
            const char *text = first.source->text;
            bool bracket = first.begin > 0 && text[first.begin - 1] == '[' && text[last.end] == ']';
            out[n - 1] = (Span){first.source, first.begin - bracket, last.end + bracket};
        }
    }
    return out;
}

/* The last of n types is the broadcast of the others: an equation of its own, so that the laws of
 * Broadcast apply to it. */
static RelStatus post_broadcast(Solver *s, Relation *r, Type *const *types, uint32_t n) {
    Type **args = mem_new_n(Type *, n);
    memcpy(args, types, sizeof(Type *) * n);
    Relation *equation = solver_post(s, &rel_broadcast, args, n, NULL, r->span);
    equation->op = r->op;
    equation->expr = r->expr;
    equation->instance = r->instance;
    equation->inner = r->inner;
    equation->inner_name = r->inner_name;
    equation->arg_spans = with_attr(r, r->arg_spans, n - 1);
    equation->inner_spans = with_attr(r, r->inner_spans, n - 1);
    return REL_DONE;
}

/* ---- element-wise ---------------------------------------------------------------------------- */

static RelStatus relate_identity(Solver *s, Relation *r) {
    Type *shape, *dtype;
    if (!rel_tensor(s, r, 0, first_set(r), &shape, &dtype))
        return REL_FAIL;
    for (int i = 1; i + 1 < (int)r->nargs; i++)
        if (!rel_unify(s, r, i, r->args[0]))
            return REL_FAIL;
    return rel_result_type(s, r, r->args[0]);
}

static RelStatus relate_identity_compare(Solver *s, Relation *r) {
    Type *shape, *dtype;
    if (!rel_tensor(s, r, 0, first_set(r), &shape, &dtype))
        return REL_FAIL;
    return rel_result_type(s, r, type_tensor(shape, type_dtype(DT_BOOL)));
}

void rel_round_once(Solver *s, const Relation *r, uint32_t i, Type *dtype) {
    if (r->expr && r->expr->kind == EXPR_CALL && i < r->expr->nargs)
        solver_round_once(s, r->expr->args[i], dtype);
}

static RelStatus relate_cast(Solver *s, Relation *r) {
    Type *shape, *dtype, *result_shape, *result_dtype;
    if (!rel_tensor(s, r, 0, DTS_ALL, &shape, &dtype))
        return REL_FAIL;
    if (!rel_attrs_open(r)) {
        rel_round_once(s, r, 0, rel_attr_dtype(r, "dtype", dtype));
        return rel_result_type(s, r, type_tensor(shape, rel_attr_dtype(r, "dtype", dtype)));
    }
    if (!rel_tensor(s, r, 1, DTS_ALL, &result_shape, &result_dtype))
        return REL_FAIL;
    return rel_unify(s, r, -1, type_tensor(shape, result_dtype)) ? REL_WAIT : REL_FAIL;
}

static RelStatus relate_cast_like(Solver *s, Relation *r) {
    Type *shape, *dtype, *like_shape, *like_dtype;
    if (!rel_tensor(s, r, 0, DTS_ALL, &shape, &dtype) ||
        !rel_tensor(s, r, 1, DTS_ALL, &like_shape, &like_dtype))
        return REL_FAIL;
    rel_round_once(s, r, 0, like_dtype);
    return rel_result_type(s, r, type_tensor(shape, like_dtype));
}

static RelStatus relate_where(Solver *s, Relation *r) {
    Type *shape, *dtype, *x_shape, *x_dtype;
    if (!rel_tensor(s, r, 0, DTS_BOOL, &shape, &dtype) ||
        !rel_tensor(s, r, 1, DTS_ALL, &x_shape, &x_dtype))
        return REL_FAIL;
    Type *types[] = {type_tensor(shape, x_dtype), r->args[1], r->args[2], rel_result_arg(r)};
    return post_broadcast(s, r, types, 4);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* The product of the known dims in or out of a set; -1 when one is not known. */
static int64_t known_product(Type **dims, uint32_t rank, uint32_t set, bool in) {
    int64_t product = 1, n;
    bool known = true;
    for (uint32_t i = 0; i < rank; i++) {
        if ((set >> i & 1) != in)
            continue;
        if (!type_get_int(dims[i], &n))
            known = false;
        else if (n == 0)
            return 0;
        else
            product = size_multiply(product, n);
    }
    return known ? product : -1;
}

/* The operator has no value for no elements, whatever the dtype turns out to be. */
static bool needs_elements(const Relation *r) {
    DTypeSet set = r->op ? r->op->needs_elements : 0;
    DType t;
    return set == DTS_ALL || (type_get_dtype(r->args[0], &t) && (set & DT_BIT(t)));
}

/* True when the reduction of nothing would be asked for; reported. */
static bool reduces_nothing(Solver *s, Relation *r, Type **dims, uint32_t rank, uint32_t set) {
    if (!needs_elements(r) || known_product(dims, rank, set, true) != 0 ||
        known_product(dims, rank, set, false) <= 0)
        return false;
    rel_error(s, r, DIAG_R0318, "`%s`: there is nothing to reduce", op_name(r));
    return true;
}

/* Result dims: dims without the set, or with 1 there. */
static uint32_t reduced_dims(Relation *r, Type **dims, uint32_t rank, uint32_t set, bool keepdims,
                             Type **out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (!(set >> i & 1))
            out[n++] = dims[i];
        else if (keepdims)
            out[n++] = type_dim_int(1, rel_origin(r));
    }
    return n;
}

static bool rank_too_large(Solver *s, Relation *r, uint32_t rank) {
    if (rank <= TENSOR_MAX_RANK)
        return false;
    rel_error(s, r, DIAG_R0317, "`%s`: a tensor has at most %d axes", op_name(r), TENSOR_MAX_RANK);
    return true;
}

/* The rank of data is not known, nor found by the result: that of the result may be. */
static RelStatus reduce_unranked(Solver *s, Relation *r, Type *dtype, bool counts) {
    const int64_t *axes;
    uint32_t n = 0;
    bool none = attrs_is_none(r->attrs, "axis");
    if (counts) /* the dtype depends on sizes */
        dtype = rel_dtype_in(rel_result_arg(r));
    bool unknown = type_has_unknown_rank(r->args[0]);
    if (counts && unknown)
        dtype = type_dtype(DT_I32);
    if (attrs_bool(r->attrs, "keepdims"))
        return unknown ? rel_unknown_rank(s, r, dtype) : REL_WAIT;
    if (none && (!counts || unknown))
        return rel_result(s, r, NULL, 0, dtype);
    if (none)
        return rel_wait_rank(s, r, 0, dtype);
    if (attrs_bool(r->attrs, "exclude") && attrs_ints(r->attrs, "axis", &axes, &n) &&
        n <= TENSOR_MAX_RANK)
        return rel_wait_rank(s, r, n, dtype);
    return unknown ? rel_unknown_rank(s, r, dtype) : REL_WAIT;
}

/* The result has as many axes as data with keepdims, else fewer by those that are named. */
static bool rank_of_reduced(Solver *s, Relation *r) {
    const int64_t *axes;
    uint32_t n;
    if (attrs_bool(r->attrs, "keepdims"))
        return rel_rank_of_result(s, r, 0, 0);
    if (attrs_is_none(r->attrs, "axis") || attrs_bool(r->attrs, "exclude") ||
        !attrs_ints(r->attrs, "axis", &axes, &n))
        return true;
    return rel_rank_of_result(s, r, 0, (int)n);
}

static RelStatus reduce_to(Solver *s, Relation *r, Type *dtype, bool counts) {
    uint32_t rank, set;
    Type **dims, *out[TENSOR_MAX_RANK];
    if (rel_attrs_open(r))
        return REL_WAIT;
    bool keepdims = attrs_bool(r->attrs, "keepdims");
    if (!rank_of_reduced(s, r))
        return REL_FAIL;
    if (!rel_dims(r, 0, &rank, &dims))
        return reduce_unranked(s, r, dtype, counts);
    if (rank_too_large(s, r, rank) ||
        !rel_axes(s, r, "axis", attrs_bool(r->attrs, "exclude"), rank, &set) ||
        reduces_nothing(s, r, dims, rank, set))
        return REL_FAIL;
    if (counts && known_product(dims, rank, set, true) > INT32_MAX)
        dtype = type_dtype(DT_I64);
    return rel_result(s, r, out, reduced_dims(r, dims, rank, set, keepdims, out), dtype);
}

static RelStatus relate_reduce(Solver *s, Relation *r) {
    Type *shape, *dtype, *result_shape, *result_dtype;
    if (!rel_tensor(s, r, 0, first_set(r), &shape, &dtype) ||
        !rel_tensor(s, r, 1, DTS_ALL, &result_shape, &result_dtype) ||
        !rel_unify(s, r, -1, type_tensor(result_shape, dtype)))
        return REL_FAIL;
    return reduce_to(s, r, dtype, false);
}

static RelStatus relate_arg_reduce(Solver *s, Relation *r) {
    Type *shape, *dtype, *result_shape, *result_dtype;
    if (!rel_tensor(s, r, 0, first_set(r), &shape, &dtype) ||
        !rel_tensor(s, r, 1, DTS_INT, &result_shape, &result_dtype))
        return REL_FAIL;
    return reduce_to(s, r, type_dtype(DT_I32), true);
}

/* The mean has data's shape with 1 at the reduced axes. */
static RelStatus relate_variance(Solver *s, Relation *r) {
    Type *shape, *dtype, *mean_shape, *mean_dtype, **dims, *out[TENSOR_MAX_RANK];
    uint32_t rank, set;
    if (!rel_tensor(s, r, 0, first_set(r), &shape, &dtype) ||
        !rel_unify(s, r, -1, type_tensor(solver_var(s, KIND_SHAPE), dtype)) ||
        !rel_tensor(s, r, 1, DTS_ALL, &mean_shape, &mean_dtype) ||
        !rel_unify(s, r, 1, type_tensor(mean_shape, dtype)) || !rel_same_rank(s, r, 0, 1))
        return REL_FAIL;
    if (!rel_attrs_open(r) && !rank_of_reduced(s, r))
        return REL_FAIL;
    if (!rel_attrs_open(r) && rel_dims(r, 0, &rank, &dims)) {
        if (rank_too_large(s, r, rank) ||
            !rel_axes(s, r, "axis", attrs_bool(r->attrs, "exclude"), rank, &set))
            return REL_FAIL;
        uint32_t n = reduced_dims(r, dims, rank, set, true, out);
        if (!rel_unify(s, r, 1, type_tensor(type_shape(out, n), dtype)))
            return REL_FAIL;
    }
    return reduce_to(s, r, dtype, false);
}

/* ---- initialisers ---------------------------------------------------------------------------- */

static RelStatus relate_init(Solver *s, Relation *r) {
    uint32_t rank;
    Type **dims;
    if (rel_attrs_open(r))
        return REL_WAIT;
    if (!rel_attr_dims(s, r, "shape", &rank, &dims))
        return REL_FAIL;
    return rel_result(s, r, dims, rank, rel_attr_dtype(r, "dtype", type_dtype(DT_F32)));
}

static RelStatus relate_full(Solver *s, Relation *r) {
    uint32_t rank;
    Type **dims, *shape, *dtype;
    if (!rel_tensor(s, r, 0, DTS_ALL, &shape, &dtype) || !rel_unify(s, r, 0, scalar_of(dtype)))
        return REL_FAIL;
    if (rel_attrs_open(r))
        return REL_WAIT;
    if (!rel_attr_dims(s, r, "shape", &rank, &dims))
        return REL_FAIL;
    rel_round_once(s, r, 0, rel_attr_dtype(r, "dtype", dtype));
    return rel_result(s, r, dims, rank, rel_attr_dtype(r, "dtype", dtype));
}

static RelStatus relate_full_like(Solver *s, Relation *r) {
    Type *shape, *dtype;
    if (!rel_tensor(s, r, 0, DTS_ALL, &shape, &dtype) ||
        !rel_tensor(s, r, 1, DTS_ALL, &shape, &dtype) || !rel_unify(s, r, 1, scalar_of(dtype)))
        return REL_FAIL;
    rel_round_once(s, r, 1, type_resolve(r->args[0])->tensor.dtype);
    return rel_result_type(s, r, r->args[0]);
}

/* How many elements arange has for these literals at a dtype that holds them; -1: at none. */
static int64_t arange_at(Relation *r, Expr *const *args, DType t) {
    Tensor *in[3];
    Diags ignored = {0};
    OutSpec out;
    for (int i = 0; i < 3; i++) {
        const Expr *e = args[i];
        if (e->is_float ? !dtype_is_float(t)
                        : !dtype_is_float(t) && !dtype_holds_int(t, e->i, false))
            return -1;
        in[i] = tensor_new_zero(t, 0, NULL);
        if (dtype_is_float(t))
            elem_set_float(tensor_data(in[i]), t, e->is_float ? e->f : (double)e->i);
        else
            elem_set_int(tensor_data(in[i]), t, e->i);
    }
    OpCall call = {.op = r->op, .attrs = r->attrs, .nin = 3, .in = in, .diags = &ignored};
    return r->op->shape(&call, &out) < 0 ? -1 : out.shape[0];
}

/* The number of elements; NULL while the dtype of literals decides and is open. */
static Type *arange_size(Relation *r, Type *dtype) {
    Expr *const *args = r->expr ? r->expr->args : NULL;
    Type *size[3];
    int64_t step, count = -1;
    DTypeSet set = type_dtype_set(dtype), exact = DT_BIT(DT_I32) | DT_BIT(DT_I64) | DT_BIT(DT_U32) |
                                                  DT_BIT(DT_U64) | DT_BIT(DT_F64);
    Type *unknown = type_any(KIND_DIM, rel_origin(r));
    bool literals = args && r->op;
    for (int i = 0; literals && i < 3; i++)
        literals = args[i]->kind == EXPR_LIT;
    if (literals) {
        for (int t = 0; t < DTYPE_COUNT; t++) {
            int64_t n = set & DTS_NUM & DT_BIT(t) ? arange_at(r, args, (DType)t) : -1;
            if (n >= 0 && count >= 0 && n != count)
                return type_resolve(dtype)->tag == TY_VAR ? NULL : unknown;
            if (n >= 0)
                count = n;
        }
        return count < 0 ? unknown : type_dim_int(count, rel_origin(r));
    }
    for (int i = 0; i < 3; i++) {
        size[i] = args ? expr_size(args[i]) : NULL;
        if (!size[i])
            return unknown;
    }
    if (!type_get_int(size[2], &step) || step == 0 || step == INT64_MIN || !(set & exact))
        return unknown;
    if (set & ~exact) /* a size may not fit */
        return type_resolve(dtype)->tag == TY_VAR ? NULL : unknown;
    for (int i = 0; i < 3; i++)
        expr_check_size(args[i]);
    int64_t by = step < 0 ? -step : step;
    Type *n = step > 0 ? dim_sub(size[1], size[0]) : dim_sub(size[0], size[1]);
    n = dim_max(n, type_dim_int(0, NULL));
    return dim_floordiv(dim_add_int(n, by - 1), type_dim_int(by, NULL));
}

/* (start, end, step): how many elements there are depends on the values, which may be constants. */
static RelStatus relate_arange(Solver *s, Relation *r) {
    Type *shape, *dtype;
    if (!rel_tensor(s, r, 0, DTS_NUM, &shape, &dtype))
        return REL_FAIL;
    for (int i = 0; i < 3; i++)
        if (!rel_unify(s, r, i, scalar_of(dtype)))
            return REL_FAIL;
    if (rel_attrs_open(r))
        return REL_WAIT;
    for (uint32_t i = 0; i < 3; i++)
        rel_round_once(s, r, i, rel_attr_dtype(r, "dtype", dtype));
    Type *size = arange_size(r, dtype);
    Type *dims[] = {size ? size : solver_var(s, KIND_DIM)};
    if (!size)
        dims[0]->var.made = true;
    RelStatus status = rel_result(s, r, dims, 1, rel_attr_dtype(r, "dtype", dtype));
    return status == REL_DONE && !size ? REL_WAIT : status;
}

static RelStatus relate_broadcast_to(Solver *s, Relation *r) {
    Type *shape, *dtype, **dims;
    uint32_t rank;
    if (!rel_tensor(s, r, 0, first_set(r), &shape, &dtype))
        return REL_FAIL;
    if (rel_attrs_open(r))
        return REL_WAIT;
    if (!rel_attr_dims(s, r, "shape", &rank, &dims) ||
        rel_result(s, r, dims, rank, dtype) == REL_FAIL)
        return REL_FAIL;
    Type *target = type_tensor(type_shape(dims, rank), dtype);
    return post_broadcast(s, r, (Type *[]){r->args[0], target, target}, 3);
}

/* The result has like's shape and data's dtype; *other is its type. */
static bool like(Solver *s, Relation *r, Type **other) {
    Type *shape, *dtype, *like_shape, *like_dtype;
    if (!rel_tensor(s, r, 0, first_set(r), &shape, &dtype) ||
        !rel_tensor(s, r, 1, DTS_ALL, &like_shape, &like_dtype))
        return false;
    *other = type_tensor(like_shape, dtype);
    return rel_unify(s, r, -1, *other);
}

static RelStatus relate_broadcast_like(Solver *s, Relation *r) {
    Type *other;
    if (!like(s, r, &other))
        return REL_FAIL;
    return post_broadcast(s, r, (Type *[]){r->args[0], other, other}, 3);
}

/* Here it is the result that broadcasts to data. */
static RelStatus relate_collapse_like(Solver *s, Relation *r) {
    Type *other;
    if (!like(s, r, &other))
        return REL_FAIL;
    return post_broadcast(s, r, (Type *[]){r->args[0], other, r->args[0]}, 3);
}

/* (data, shape): the sizes are the elements of `shape`. */
static RelStatus relate_collapse_to(Solver *s, Relation *r) {
    Type *shape, *dtype, *sizes_shape, *sizes_dtype, **dims, *out[TENSOR_MAX_RANK];
    uint32_t rank;
    int64_t n;
    if (!rel_tensor(s, r, 0, first_set(r), &shape, &dtype) ||
        !rel_tensor(s, r, 1, DTS_INT, &sizes_shape, &sizes_dtype))
        return REL_FAIL;
    if (!rel_dims(r, 1, &rank, &dims))
        return type_resolve(sizes_shape)->tag == TY_ANY ? rel_unknown_rank(s, r, dtype) : REL_WAIT;
    if (rank != 1) {
        rel_error(s, r, DIAG_R0313, "`%s`: `shape` has %u axes, not 1", op_name(r), rank);
        return REL_FAIL;
    }
    if (!type_get_int(dims[0], &n))
        return type_has_vars(dims[0]) ? REL_WAIT : rel_unknown_rank(s, r, dtype);
    if (n > TENSOR_MAX_RANK)
        return rank_too_large(s, r, (uint32_t)n) ? REL_FAIL : REL_WAIT;
    for (int64_t i = 0; i < n; i++)
        out[i] = type_any(KIND_DIM, rel_origin(r));
    return rel_result(s, r, out, (uint32_t)n, dtype);
}

/* shape_of: (rank,) of the attribute's dtype; ndarray_size: a scalar. */
static RelStatus relate_shape_of(Solver *s, Relation *r) {
    Type *shape, *dtype, **dims;
    uint32_t rank;
    if (!rel_tensor(s, r, 0, DTS_ALL, &shape, &dtype))
        return REL_FAIL;
    if (rel_attrs_open(r))
        return REL_WAIT;
    int64_t n;
    dtype = rel_attr_dtype(r, "dtype", type_dtype(DT_I32));
    if (rel_dims(r, 1, &rank, &dims) && rank == 1 && type_get_int(dims[0], &n) &&
        !rel_give_rank(s, r, 0, n))
        return REL_FAIL;
    if (!rel_dims(r, 0, &rank, &dims))
        return rel_wait_rank(s, r, 1, dtype);
    Type *out[] = {type_dim_int(rank, rel_origin(r))};
    return rel_result(s, r, out, 1, dtype);
}

static RelStatus relate_size(Solver *s, Relation *r) {
    Type *shape, *dtype;
    if (!rel_tensor(s, r, 0, DTS_ALL, &shape, &dtype))
        return REL_FAIL;
    if (rel_attrs_open(r))
        return REL_WAIT;
    return rel_result(s, r, NULL, 0, rel_attr_dtype(r, "dtype", type_dtype(DT_I32)));
}

#define REL(symbol, text, n)                                                                       \
    const RelDef rel_##symbol = {.name = text, .relate = relate_##symbol, .nargs = n};
REL(identity, "Identity", -1)
REL(identity_compare, "IdentityCompRel", 2)
REL(reduce, "Reduce", 2)
REL(arg_reduce, "ArgReduce", 2)
REL(variance, "Variance", 3)
REL(cast, "Cast", 2)
REL(cast_like, "CastLike", 3)
REL(where, "Where", 4)
REL(init, "InitOp", 1)
REL(full, "Full", 2)
REL(full_like, "FullLike", 3)
REL(arange, "Arange", 4)
REL(broadcast_to, "BroadCastTo", 2)
REL(broadcast_like, "BroadCastToLike", 3)
REL(collapse_like, "CollapseSumLike", 3)
REL(collapse_to, "CollapseSumTo", 3)
REL(shape_of, "ShapeOf", 2)
REL(size, "NdarraySize", 2)
