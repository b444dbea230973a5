/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives of einsum. E(d1, …, dn) is linear in each tensor, so its derivatives are sums of
 * einsums in which some tensors are replaced:
 *
 *     einsum_grad(g, d)        for each j: g against the others, by j's letters
 *     einsum_tangent(d, t)     sum over i of E with d_i replaced by t_i
 *     einsum_cross(g, d, t)    for each j: sum over i ≠ j of g against the others, d_i replaced by
 * t_i einsum_pairs(t, u)       sum over i ≠ j of E(t_i, u_j), for at most two tensors
 *
 * Each is the derivative of another. einsum_pairs leaves no tensor for a third derivative, so more
 * than two tensors have derivatives of the first and second order. */
#include "ops/einsum.h"

#include <string.h>

#include "base/mem.h"

/* The call's arguments: `lead` tensors, then `tuples` tuples of n. */
static bool read_parts(const OpCall *call, uint32_t lead, uint32_t tuples, uint32_t *n, Einsum *e) {
    *n = (call->nin - lead) / tuples;
    if (*n * tuples + lead != call->nin) {
        shape_error(call, DIAG_R0316, "the tuples have different lengths");
        return false;
    }
    if (!einsum_read(call, lead, *n, e))
        return false;
    for (uint32_t i = lead + *n; i < call->nin; i++) {
        int like = (int)(lead + (i - lead) % *n);
        if (!shape_check_same_dtype(call, like, (int)i) ||
            !shape_check_rank(call, (int)i, call->in[like]->rank))
            return false;
        for (int j = 0; j < call->in[i]->rank; j++)
            if (!shape_check_dims(call, like, j, (int)i, j))
                return false;
    }
    int64_t dims[TENSOR_MAX_RANK];
    int rank = einsum_result(e, dims);
    const Tensor *g = call->in[0];
    bool fits = !lead || g->rank == rank;
    for (int j = 0; lead && j < rank && fits; j++)
        fits = g->shape[j] == dims[j];
    if (!fits)
        shape_error(call, DIAG_R0314, "`grad` has shape %s, the result %s",
                    shape_text(g->rank, g->shape), shape_text(rank, dims));
    return fits && (!lead || shape_check_same_dtype(call, 0, 1));
}

/* The factors of term: `g` (or none) and all tensors but `without`; tensor `other` is replaced. */
static void add_term(EinsumSum *sum, uint32_t n, Tensor *const *d, Tensor *g, uint32_t without,
                     uint32_t other, Tensor *replacement) {
    Tensor *factors[EINSUM_MAX_INPUTS + 1];
    int terms[EINSUM_MAX_INPUTS + 1], count = 0;
    if (g) {
        factors[count] = g;
        terms[count++] = (int)n;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (i == without)
            continue;
        factors[count] = i == other ? replacement : d[i];
        terms[count++] = (int)i;
    }
    einsum_add(sum, count, factors, terms);
}

static const uint32_t none = UINT32_MAX;

/* ---- results like the tuple ------------------------------------------------------------------ */

enum { ONE_TUPLE = 1, TWO_TUPLES = 2 }; /* of the arguments, after the first */

static int shape_parts(const OpCall *call, OutSpec *out) {
    Einsum e;
    uint32_t n;
    if (!read_parts(call, 1, (uint32_t)call->op->variant, &n, &e))
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        const Tensor *t = call->in[1 + i];
        if (!shape_set(call, &out[i], t->dtype, t->rank, t->shape))
            return -1;
    }
    return (int)n;
}

static RelStatus relate_parts(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM, DTS_NUM}, &status))
        return status;
    if (r->nargs == 4 && !rel_unify(s, r, 2, r->args[1]))
        return REL_FAIL;
    return rel_result_type(s, r, r->args[1]) == REL_FAIL ? REL_FAIL : rel_settled(r);
}

static bool lower_grad(const OpCall *call, Tensor *const *out, Plan *plan) {
    Einsum e;
    EinsumSum sum;
    uint32_t n;
    if (!read_parts(call, 1, 1, &n, &e))
        return false;
    for (uint32_t j = 0; j < n; j++) {
        einsum_begin(&sum, &e, plan, out[j], (int)j);
        add_term(&sum, n, call->in + 1, call->in[0], j, none, NULL);
        if (!einsum_end(&sum))
            return false;
    }
    return true;
}

static bool lower_cross(const OpCall *call, Tensor *const *out, Plan *plan) {
    Einsum e;
    EinsumSum sum;
    uint32_t n;
    if (!read_parts(call, 1, 2, &n, &e))
        return false;
    for (uint32_t j = 0; j < n; j++) {
        einsum_begin(&sum, &e, plan, out[j], (int)j);
        for (uint32_t i = 0; i < n; i++)
            if (i != j)
                add_term(&sum, n, call->in + 1, call->in[0], j, i, call->in[1 + n + i]);
        if (!einsum_end(&sum))
            return false;
    }
    return true;
}

static const RelDef rel_einsum_grad = {"EinsumGrad", relate_parts, 3, false};
const Op op_einsum_grad = {
    .name = "einsum_grad",
    .args = "grad, (data)",
    .nargs = 2,
    .attrs = einsum_attrs,
    .nattrs = 1,
    .relation = &rel_einsum_grad,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .variant = ONE_TUPLE,
    .shape = shape_parts,
    .refuses_sizes = true,
    .tuple = true,
    .lower = lower_grad,
    .doc = "The derivative of einsum with the same equation, a tuple with one for each tensor.",
    .example = "einsum_grad(2.0, ([1.0, 2.0], [3.0, 4.0]), equation=\"i,i\")",
    .example_result = "([6.0, 8.0], [2.0, 4.0]) : (Tensor[(2,), float32], Tensor[(2,), float32])",
    .see_also = "einsum",
};
static const RelDef rel_einsum_cross = {"EinsumCross", relate_parts, 4, false};
const Op op_einsum_cross = {
    .name = "einsum_cross",
    .args = "grad, (data), (tangents)",
    .nargs = 3,
    .attrs = einsum_attrs,
    .nattrs = 1,
    .relation = &rel_einsum_cross,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .variant = TWO_TUPLES,
    .shape = shape_parts,
    .refuses_sizes = true,
    .tuple = true,
    .lower = lower_cross,
    .doc = "The derivative of einsum_grad by data, along the tangents of its result.",
    .example = "einsum_cross(2.0, ([1.0], [3.0]), ([5.0], [7.0]), equation=\"i,i\")",
    .example_result = "([14.0], [10.0]) : (Tensor[(1,), float32], Tensor[(1,), float32])",
    .see_also = "einsum_grad",
};

/* ---- results like einsum's ------------------------------------------------------------------- */

enum { FIRST_ORDER, SECOND_ORDER };

static int shape_whole(const OpCall *call, OutSpec *out) {
    Einsum e;
    uint32_t n;
    int64_t dims[TENSOR_MAX_RANK];
    if (!read_parts(call, 0, 2, &n, &e))
        return -1;
    if (n > 2 && call->op->variant == SECOND_ORDER) {
        shape_error(call, DIAG_R0316,
                    "einsum of more than two tensors has no derivative of the third order");
        return -1;
    }
    int rank = einsum_result(&e, dims);
    return shape_set(call, out, call->in[0]->dtype, rank, dims) ? 1 : -1;
}

static RelStatus relate_whole(Solver *s, Relation *r) {
    Type *t = type_resolve(r->args[0]);
    if (t->tag == TY_TUPLE && !rel_attrs_open(r) && !rel_unify(s, r, 1, t))
        return REL_FAIL;
    return relate_einsum(s, r);
}

static bool lower_tangent(const OpCall *call, Tensor *const *out, Plan *plan) {
    Einsum e;
    EinsumSum sum;
    uint32_t n;
    if (!read_parts(call, 0, 2, &n, &e))
        return false;
    einsum_begin(&sum, &e, plan, out[0], (int)n);
    for (uint32_t i = 0; i < n; i++)
        add_term(&sum, n, call->in, NULL, none, i, call->in[n + i]);
    return einsum_end(&sum);
}

/* With two tensors the first is t_0, the second u_1, and the other way round; with one there is no
 * pair. */
static bool lower_pairs(const OpCall *call, Tensor *const *out, Plan *plan) {
    Einsum e;
    EinsumSum sum;
    uint32_t n;
    if (!read_parts(call, 0, 2, &n, &e))
        return false;
    einsum_begin(&sum, &e, plan, out[0], (int)n);
    for (uint32_t i = 0; i < n && n == 2; i++)
        add_term(&sum, n, call->in, NULL, none, i, call->in[n + i]);
    return einsum_end(&sum);
}

static const RelDef rel_einsum_tangent = {"EinsumTangent", relate_whole, 3, false};
const Op op_einsum_tangent = {
    .name = "einsum_tangent",
    .args = "(data), (tangents)",
    .nargs = 2,
    .attrs = einsum_attrs,
    .nattrs = 1,
    .relation = &rel_einsum_tangent,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .variant = FIRST_ORDER,
    .shape = shape_whole,
    .lower = lower_tangent,
    .doc = "How einsum changes along tangents of its tensors.",
    .example = "einsum_tangent(([1.0], [3.0]), ([5.0], [7.0]), equation=\"i,i\")",
    .example_result = "22.0 : float32",
    .see_also = "einsum, einsum_grad",
};
static const RelDef rel_einsum_pairs = {"EinsumPairs", relate_whole, 3, false};
const Op op_einsum_pairs = {
    .name = "einsum_pairs",
    .args = "(first), (second)",
    .nargs = 2,
    .attrs = einsum_attrs,
    .nattrs = 1,
    .relation = &rel_einsum_pairs,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .variant = SECOND_ORDER,
    .shape = shape_whole,
    .lower = lower_pairs,
    .doc = "The sum of the einsums that take one tensor from each tuple, for at most two tensors: "
           "the\n"
           "derivative of einsum_cross.",
    .example = "einsum_pairs(([1.0], [3.0]), ([5.0], [7.0]), equation=\"i,i\")",
    .example_result = "22.0 : float32",
    .see_also = "einsum_cross",
};
