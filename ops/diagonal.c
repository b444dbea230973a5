/* SPDX-License-Identifier: Apache-2.0 */
/* matrix_set_diag, and matrix_diag_part, by which it is differentiated. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/structured.h"

/* Diagonals k1 to k2 of matrices (m, n), the upper ones first, each in a row of `most` places, at its left or
 * right end. */
typedef struct Diagonals {
    int64_t k1, k2, m, n, most;
    bool several, super_right, sub_right;
} Diagonals;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void read_diagonals(const Attrs *attrs, Diagonals *d) {
    d->k1 = attrs_int(attrs, "k1");
    d->k2 = attrs_int(attrs, "k2");
    d->several = d->k1 != d->k2;
    d->super_right = attrs_bool(attrs, "super_diag_right_align");
    d->sub_right = attrs_bool(attrs, "sub_diag_right_align");
}

/* (data, diagonal): their shapes agree. */
static bool check_diagonals(const OpCall *call, Diagonals *d) {
    const Tensor *x = call->in[0], *g = call->in[1];
    if (!shape_check_min_rank(call, 0, 2))
        return false;
    read_diagonals(call->attrs, d);
    d->m = x->shape[x->rank - 2];
    d->n = x->shape[x->rank - 1];
    if (d->k1 > d->k2 || d->k1 <= -d->m || d->k2 >= d->n) {
        shape_error(call, DIAG_R0316, "k1=%lld to k2=%lld are no diagonals of shape %s",
                    (long long)d->k1, (long long)d->k2, shape_text(x->rank, x->shape));
        return false;
    }
    d->most = least(d->m + least(d->k2, 0), d->n - (d->k1 > 0 ? d->k1 : 0));
    int64_t want[TENSOR_MAX_RANK];
    int rank = x->rank - 2;
    memcpy(want, x->shape, sizeof *want * (size_t)rank);
    if (d->several)
        want[rank++] = d->k2 - d->k1 + 1;
    want[rank++] = d->most;
    if (g->rank == rank && !memcmp(want, g->shape, sizeof *want * (size_t)rank))
        return shape_check_same_dtype(call, 0, 1);
    shape_error(call, DIAG_R0314, "`diagonal` has shape %s, not %s", shape_text(g->rank, g->shape),
                shape_text(rank, want));
    return false;
}

enum { SET, PART };

static int shape_diagonals(const OpCall *call, OutSpec *out) {
    Diagonals d;
    if (!check_diagonals(call, &d))
        return -1;
    const Tensor *like = call->in[call->op->variant == PART];
    return shape_set(call, out, like->dtype, like->rank, like->shape) ? 1 : -1;
}

static RelStatus relate_diagonals(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_ALL}, &status))
        return status;
    uint32_t rank, own;
    Type **dims, **given, *dtype = rel_dtype_in(r->args[0]);
    Diagonals d;
    read_diagonals(r->attrs, &d);
    if (!rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)) ||
        rel_result_type(s, r, r->args[r->op->variant == PART]) == REL_FAIL)
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    if (rank < 2 || d.k1 > d.k2) {
        rel_error(s, r, DIAG_R0316, "`%s`: k1 to k2 are diagonals of the last two axes",
                  r->op->name);
        return REL_FAIL;
    }
    uint32_t want = rank - 1 + d.several;
    if (!rel_make_rank(s, r, 1, want))
        return REL_FAIL;
    rel_rank_in(r->args[1], &own, &given);
    if (own != want) {
        rel_error(s, r, DIAG_R0313, "`%s`: `diagonal` has %u axes, not %u", r->op->name, own, want);
        return REL_FAIL;
    }
    for (uint32_t i = 0; i + 2 < rank; i++)
        if (!rel_unify_dim(s, r, dims[i], given[i], 0, (int)i))
            return REL_FAIL;
    if (d.several &&
        !rel_unify_dim(s, r, rel_int_dim(r, d.k2 - d.k1 + 1), given[rank - 2], 1, (int)rank - 2))
        return REL_FAIL;
    return REL_DONE;
}

/* How many places diagonal k has, and where it starts in its row. */
static void diagonal_row(StepBuilder *s, const Diagonals *d, Sc k, Sc *length, Sc *start) {
    ScalarBuilder *b = &s->body;
    Sc zero = sc_i64(b, 0);
    Sc down = sc_add(b, step_iparam(s, b, DT_I64, d->m), sc_min(b, k, zero));
    Sc across = sc_sub(b, step_iparam(s, b, DT_I64, d->n), sc_max(b, k, zero));
    *length = sc_min(b, down, across);
    Sc rest = sc_sub(b, step_iparam(s, b, DT_I64, d->most), *length);
    Sc above = d->super_right ? rest : zero, below = d->sub_right ? rest : zero;
    *start = sc_select(
        b, sc_gt(b, k, zero), above,
        sc_select(b, sc_lt(b, k, zero), below, d->super_right || d->sub_right ? rest : zero));
}

static bool lower_set(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *g = call->in[1];
    Diagonals d;
    if (!check_diagonals(call, &d))
        return false;
    int64_t strides[TENSOR_MAX_RANK] = {0}, row = d.several ? g->strides[g->rank - 2] : 0;
    memcpy(strides, g->strides, sizeof *strides * (size_t)(x->rank - 2));
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, x), x->dtype), length, start;
    Sc i = sc_iota(b, x->rank - 2), j = sc_iota(b, x->rank - 1), k = sc_sub(b, j, i);
    diagonal_row(&s, &d, k, &length, &start);
    Sc k2 = step_iparam(&s, b, DT_I64, d.k2);
    Sc on = sc_and(b, sc_ge(b, k, step_iparam(&s, b, DT_I64, d.k1)), sc_le(b, k, k2));
    Sc at = sc_mul(b, sc_add(b, sc_min(b, i, j), start),
                   step_iparam(&s, b, DT_I64, g->strides[g->rank - 1]));
    at = sc_add(b, at, sc_mul(b, sc_sub(b, k2, k), step_iparam(&s, b, DT_I64, row)));
    Sc w = sc_load_if(b, step_in_strided(&s, g, strides, 0), g->dtype, at, on, 0);
    sc_select(b, on, w, v);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static bool lower_part(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *g = call->in[1];
    Diagonals d;
    if (!check_diagonals(call, &d))
        return false;
    int64_t strides[TENSOR_MAX_RANK] = {0};
    memcpy(strides, x->strides, sizeof *strides * (size_t)(x->rank - 2));
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, g->rank, g->shape);
    ScalarBuilder *b = &s.body;
    Sc zero = sc_i64(b, 0), k = step_iparam(&s, b, DT_I64, d.k2), length, start;
    if (d.several)
        k = sc_sub(b, k, sc_iota(b, g->rank - 2));
    diagonal_row(&s, &d, k, &length, &start);
    Sc t = sc_sub(b, sc_iota(b, g->rank - 1), start);
    Sc i = sc_sub(b, t, sc_min(b, k, zero)), j = sc_add(b, t, sc_max(b, k, zero));
    Sc at = sc_add(b, sc_mul(b, i, step_iparam(&s, b, DT_I64, x->strides[x->rank - 2])),
                   sc_mul(b, j, step_iparam(&s, b, DT_I64, x->strides[x->rank - 1])));
    sc_load_if(b, step_in_strided(&s, x, strides, 0), x->dtype, at, sc_in_range(b, t, length), 0);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec diagonal_attrs[] = {
    {"k1", AT_INT, "0", "the lowest diagonal; 0 is the main one, 1 that above it"},
    {"k2", AT_INT, "0", "the highest"},
    {"super_diag_right_align", AT_BOOL, "True", "upper ones end at the right of their rows"},
    {"sub_diag_right_align", AT_BOOL, "False", "and so do lower ones"},
};
static const RelDef rel_set = {"MatrixSetDiag", relate_diagonals, 3, false};
const Op op_matrix_set_diag = {
    .name = "matrix_set_diag",
    .args = "input, diagonal",
    .nargs = 2,
    .attrs = diagonal_attrs,
    .nattrs = 4,
    .relation = &rel_set,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .variant = SET,
    .shape = shape_diagonals,
    .refuses_sizes = true,
    .lower = lower_set,
    .doc = "The matrices in the last two axes with other diagonals: of one, a vector each; of "
           "several,\n"
           "one row a diagonal, the highest first.",
    .example = "matrix_set_diag([[1, 2], [3, 4]], [8, 9])",
    .example_result = "[[8, 2],\n [3, 9]] : Tensor[(2, 2), int32]",
    .see_also = "trilu",
};
static const RelDef rel_part = {"MatrixDiagPart", relate_diagonals, 3, false};
const Op op_matrix_diag_part = {
    .name = "matrix_diag_part",
    .args = "data, diagonal",
    .nargs = 2,
    .attrs = diagonal_attrs,
    .nattrs = 4,
    .relation = &rel_part,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .variant = PART,
    .shape = shape_diagonals,
    .refuses_sizes = true,
    .lower = lower_part,
    .doc =
        "The diagonals of matrices that matrix_set_diag would set, and 0 where a row has none; of\n"
        "diagonal only the shape matters.",
    .example = "matrix_diag_part([[1, 2], [3, 4]], [0, 0])",
    .example_result = "[1, 4] : Tensor[(2,), int32]",
    .see_also = "matrix_set_diag",
};
