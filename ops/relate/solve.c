/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/relate/solve.h"

#include "base/mem.h"

static Type *fresh_shape(Solver *s, uint32_t rank) {
    Type **dims = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = solver_var(s, KIND_DIM);
    return type_shape(dims, rank);
}

bool rel_give_rank(Solver *s, Relation *r, int arg, int64_t rank) {
    Type *shape = rel_shape_in(r->args[arg]);
    if (!shape || shape->tag != TY_VAR || rank < 0 || rank > TENSOR_MAX_RANK)
        return true;
    Type *t = type_tensor(fresh_shape(s, (uint32_t)rank), rel_dtype_in(r->args[arg]));
    return rel_unify(s, r, arg == (int)r->nargs - 1 ? -1 : arg, t);
}

bool rel_need_rank(Solver *s, Relation *r, int arg, uint32_t rank) {
    uint32_t own;
    Type **dims;
    if (!rel_make_rank(s, r, arg, rank))
        return false;
    if (!rel_rank_in(r->args[arg], &own, &dims) || own == rank)
        return true;
    rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes, not %u", r->op->name,
              op_arg(r->op, arg).name, own, rank);
    return false;
}

/* b has `more` axes more than a: the one that is known gives the other its rank. */
static bool rel_ranks_differ(Solver *s, Relation *r, int a, int b, int more) {
    uint32_t rank;
    Type **dims;
    if (rel_rank_in(r->args[a], &rank, &dims))
        return rel_give_rank(s, r, b, (int64_t)rank + more);
    if (rel_rank_in(r->args[b], &rank, &dims))
        return rel_give_rank(s, r, a, (int64_t)rank - more);
    return true;
}

bool rel_same_rank(Solver *s, Relation *r, int a, int b) { return rel_ranks_differ(s, r, a, b, 0); }

bool rel_only_rank(Solver *s, Relation *r, int arg, bool (*possible)(void *ctx, int rank),
                   void *ctx) {
    int found = -1;
    Type *shape = rel_shape_in(r->args[arg]);
    if (!shape || shape->tag != TY_VAR)
        return true;
    for (int rank = 0; rank <= TENSOR_MAX_RANK; rank++) {
        if (!possible(ctx, rank))
            continue;
        if (found >= 0)
            return true;
        found = rank;
    }
    return rel_give_rank(s, r, arg, found);
}

/* The product of sizes that are all known but one, which goes into *open (NULL: there is none). */
static bool product_but_one(uint32_t n, Type *const *dims, int64_t *product, int *open) {
    int64_t d;
    *product = 1;
    *open = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (type_get_int(type_resolve(dims[i]), &d)) {
            if (__builtin_mul_overflow(*product, d, product))
                return false;
        } else if (*open >= 0) {
            return false;
        } else {
            *open = (int)i;
        }
    }
    return true;
}

bool rel_fill(Solver *s, Relation *r, int arg, uint32_t n, Type *const *dims, uint32_t nothers,
              Type *const *others) {
    int64_t product, total;
    int open, none;
    if (!product_but_one(n, dims, &product, &open) || open < 0 ||
        !product_but_one(nothers, others, &total, &none) || none >= 0)
        return true;
    Type *d = type_resolve(dims[open]);
    if (!rel_dim_open(d) || d->flags & (TYPE_HAS_ANY | TYPE_HAS_PARAMS))
        return true;
    if (d->tag == TY_VAR && (product ? total % product : total) != 0) {
        rel_error(s, r, DIAG_R0316, "`%s`: a multiple of %lld elements does not fill %lld",
                  r->op->name, (long long)product, (long long)total);
        return false;
    }
    return rel_unify_dim(s, r, dim_mul(d, rel_int_dim(r, product)), rel_int_dim(r, total), arg,
                         open);
}

Type *rel_quotient(Solver *s, Type *a, Type *b) {
    Type *q = dim_floordiv(a, b);
    bool exact = !rel_dim_open(a) || dim_compare(dim_mul(q, b), a) == DIM_EQUAL;
    return exact ? q : solver_var(s, KIND_DIM);
}

RelStatus rel_wait_rank(Solver *s, Relation *r, uint32_t rank, Type *dtype) {
    Type *shape = rel_shape_in(rel_result_arg(r)), **dims = mem_new_n(Type *, rank + 1);
    bool unknown = false;
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        unknown = unknown || type_has_unknown_rank(r->args[i]);
    for (uint32_t i = 0; unknown && i < rank; i++)
        dims[i] = rel_unknown_dim(r);
    if (unknown)
        return rel_result(s, r, dims, rank, dtype);
    if (!shape || shape->tag != TY_SHAPE || shape->nargs != rank)
        shape = fresh_shape(s, rank);
    Type *t = type_tensor(shape, dtype);
    return rel_result_type(s, r, t) == REL_FAIL ? REL_FAIL : REL_WAIT;
}
