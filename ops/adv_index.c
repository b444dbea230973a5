/* SPDX-License-Identifier: Apache-2.0 */
/* adv_index: the elements of a tensor at places that tensors of integers give, one an axis, as NumPy's x[i, j]. The
 * indices broadcast to one shape, which stands before the axes that have no index. */
#include <string.h>

#include "base/mem.h"
#include "ops/gather.h"
#include "ops/relate/solve.h"

static int shape_adv_index(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->nin ? call->in[0] : NULL;
    OutSpec at = {.rank = 0};
    if (call->nin < 2) {
        shape_error(call, DIAG_R0316, "a tensor, and an index for each of its first axes");
        return -1;
    }
    if ((int)call->nin - 1 > x->rank) {
        shape_error(call, DIAG_R0313, "%u indices for a tensor of %d axes", call->nin - 1, x->rank);
        return -1;
    }
    for (uint32_t i = 1; i < call->nin; i++)
        if (!shape_check_dtype(call, (int)i, DTS_INT) || !shape_broadcast_into(call, (int)i, &at))
            return -1;
    int rest = x->rank - (int)(call->nin - 1);
    if (at.rank + rest > TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0313, "the result would have more than %d axes", TENSOR_MAX_RANK);
        return -1;
    }
    memcpy(at.shape + at.rank, x->shape + x->rank - rest, sizeof *at.shape * (size_t)rest);
    return shape_set(call, out, x->dtype, at.rank + rest, at.shape) ? 1 : -1;
}

/* The size that two sizes broadcast to; NULL where that is not known yet, or after a report. */
static Type *broadcast_dim(Solver *s, Relation *r, Type *a, Type *b, int axis, RelStatus *status) {
    if (!a || rel_is_one(a))
        return b;
    if (rel_is_one(b) || type_resolve(a) == type_resolve(b))
        return a;
    if (rel_dim_open(a) || rel_dim_open(b)) {
        *status = REL_WAIT;
        return NULL;
    }
    Type *both = rel_unknown_broadcast(s, r, a, b, axis);
    if (both)
        return both;
    if (rel_unify_dim(s, r, a, b, 0, axis))
        return a;
    *status = REL_FAIL;
    return NULL;
}

/* Indices are tensors of integers. True: the dtype of one is open, so that rel_known, which tries tensors of all
 * dtypes, cannot be asked. */
static bool has_open_index(Solver *s, Relation *r, RelStatus *status) {
    Type *t = type_resolve(r->args[0]);
    bool open = false;
    *status = REL_DONE;
    for (uint32_t i = 1; t->tag == TY_TUPLE && i < t->nargs; i++) {
        Type *part = type_resolve(t->args[i]);
        DType dtype;
        if (part->tag != TY_TENSOR)
            continue;
        if (!solver_restrict(s, rel_dtype_in(part), DTS_INT)) {
            rel_error(s, r, DIAG_R0310, "`adv_index`: indices are integers, not %s",
                      type_text(rel_dtype_in(part)));
            *status = REL_FAIL;
        }
        open |= !type_get_dtype(part, &dtype);
    }
    return open;
}

static RelStatus relate_adv_index(Solver *s, Relation *r) {
    RelStatus status;
    bool open = has_open_index(s, r, &status);
    if (status == REL_FAIL || (!open && rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status)))
        return status;
    uint32_t n, ranks[TENSOR_MAX_RANK + 1], most = 0;
    Type **parts, **dims[TENSOR_MAX_RANK + 1], *out[TENSOR_MAX_RANK] = {0};
    rel_parts(r, 0, &n, &parts);
    if (n < 2 || n > TENSOR_MAX_RANK + 1) {
        rel_error(s, r, DIAG_R0316,
                  "`adv_index`: a tensor, and an index for each of its first axes");
        return REL_FAIL;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (type_resolve(parts[i])->tag != TY_TENSOR &&
            !solver_unify(s, parts[i], solver_tensor_var(s)))
            return REL_WAIT;
        if (type_resolve(parts[i])->tag == TY_ERROR)
            return REL_DONE;
    }
    Type *dtype = rel_dtype_in(parts[0]);
    for (uint32_t i = 0; i < n; i++) {
        if (!rel_rank_in(parts[i], &ranks[i], &dims[i]))
            return type_has_unknown_rank(parts[i]) ? rel_unknown_rank(s, r, dtype)
                                                   : rel_wait(s, r, dtype);
        if (i)
            most = ranks[i] > most ? ranks[i] : most;
    }
    uint32_t rest = ranks[0] - (n - 1);
    if (n - 1 > ranks[0] || most + rest > TENSOR_MAX_RANK) {
        rel_error(s, r, DIAG_R0313, "`adv_index`: %u indices for a tensor of %u axes", n - 1,
                  ranks[0]);
        return REL_FAIL;
    }
    status = REL_DONE;
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = 0; k < ranks[i]; k++) {
            uint32_t axis = most - ranks[i] + k;
            out[axis] = broadcast_dim(s, r, out[axis], dims[i][k], (int)axis, &status);
            if (!out[axis])
                return status == REL_FAIL ? REL_FAIL : rel_wait_rank(s, r, most + rest, dtype);
        }
    memcpy(out + most, dims[0] + (n - 1), sizeof *out * rest);
    if (rel_result(s, r, out, most + rest, dtype) == REL_FAIL)
        return REL_FAIL;
    return rel_settled(r);
}

static bool lower_adv_index(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int nindex = (int)call->nin - 1, rest = x->rank - nindex, most = out[0]->rank - rest;
    int64_t strides[RECIPE_MAX_AXES] = {0};
    memcpy(strides + most, x->strides + nindex, sizeof *strides * (size_t)rest);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, out[0]->rank, out[0]->shape);
    ScalarBuilder *b = &s.body;
    Sc offset = sc_i64(b, 0);
    for (int i = 0; i < nindex; i++) {
        const Tensor *t = call->in[i + 1];
        int64_t at[RECIPE_MAX_AXES] = {0};
        for (int k = 0; k < t->rank; k++)
            at[most - t->rank + k] = t->shape[k] == 1 ? 0 : t->strides[k];
        Sc index = sc_index_load(b, step_in_strided(&s, t, at, 0), t->dtype);
        Sc place = sc_place(b, index, step_iparam(&s, b, DT_I64, x->shape[i]), INDEX_CHECK);
        offset = sc_add(b, offset, sc_mul(b, place, step_iparam(&s, b, DT_I64, x->strides[i])));
    }
    sc_load_at(b, step_in_strided(&s, x, strides, 0), x->dtype, offset);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_adv_index = {"AdvIndex", relate_adv_index, 2, false};
const Op op_adv_index = {
    .name = "adv_index",
    .args = "(inputs)",
    .nargs = 1,
    .relation = &rel_adv_index,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_adv_index,
    .lower = lower_adv_index,
    .doc = "The elements of the first tensor at the places that the others give, one an axis from "
           "the\n"
           "first: these broadcast, and their shape stands before the axes without one.",
    .example = "adv_index(([[1.0, 2.0], [3.0, 4.0]], [0, 1, -1], [1, 0, 1]))",
    .example_result = "[2.0, 3.0, 4.0] : Tensor[(3,), float32]",
    .see_also = "gather_nd, take",
};
