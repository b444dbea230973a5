/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products along an axis, in order. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

static int shape_scan(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    DType dtype = shape_attr_dtype(call, "dtype", x->dtype);
    int axis;
    if (dtype == DT_BOOL) {
        shape_error(call, DIAG_R0310, "the result cannot be of bools: give a dtype");
        return -1;
    }
    if (attrs_is_none(call->attrs, "axis"))
        return shape_set(call, out, dtype, 1, &x->count) ? 1 : -1;
    if (!shape_one_axis(call, "axis", x->rank, &axis))
        return -1;
    return shape_set(call, out, dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_scan(Solver *s, Relation *r) {
    RelStatus status;
    bool given = attrs_get(r->attrs, "dtype")->kind == ATTR_DTYPE;
    if (rel_known(s, r, (DTypeSet[]){given ? DTS_ALL : DTS_NUM}, &status))
        return status;
    uint32_t rank, axis;
    Type **dims, *dtype = rel_attr_dtype(r, "dtype", rel_dtype_in(r->args[0]));
    if (attrs_is_none(r->attrs, "axis")) {
        if (!rel_rank_in(r->args[0], &rank, &dims))
            return rel_wait_rank(s, r, 1, dtype);
        Type *n = rel_product(r, rank, dims);
        return rel_result(s, r, &n, 1, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
    }
    if (rel_result_type(s, r, type_tensor(rel_shape_in(r->args[0]), dtype)) == REL_FAIL)
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return REL_WAIT;
    return rel_one_axis(s, r, "axis", rank, &axis) ? REL_DONE : REL_FAIL;
}

static bool lower_scan(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t extents[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK];
    int n = 0, axis = 0, rank = out[0]->rank;
    if (attrs_is_none(call->attrs, "axis")) {
        x = plan_contiguous(plan, x);
        extents[n] = x->count;
        from[n] = to[n] = 1;
        n++;
    } else {
        axis = lower_axis(call, "axis", rank);
        for (int i = 0; i <= rank; i++) {
            int k = i == rank ? axis : i; /* the scanned axis last */
            if (i == axis)
                continue;
            extents[n] = x->shape[k];
            from[n] = x->strides[k];
            to[n++] = out[0]->strides[k];
        }
    }
    DType acc = reduce_acc_type(out[0]->dtype);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCAN, n, extents);
    step_combine(&s, (Combine)call->op->variant, acc);
    s.last = attrs_bool(call->attrs, "exclusive");
    Sc v = sc_load(&s.body, step_in_strided(&s, x, from, 0), x->dtype);
    sc_cast(&s.body, v, acc);
    step_out_strided(&s, out[0], to, 0);
    step_end(&s);
    return true;
}

static const AttrSpec scan_attrs[] = {
    {"axis", AT_INT_OPT, "None", "along this axis; None: of the flattened tensor"},
    {"dtype", AT_DTYPE, "None", "of the result; None: data's, which then is not bool"},
    {"exclusive", AT_BOOL, "False", "of the elements before, without this one"},
};
static const RelDef rel_cumsum = {"Cumsum", relate_scan, 2, false};
const Op op_cumsum = {
    .name = "cumsum",
    .args = "data",
    .nargs = 1,
    .attrs = scan_attrs,
    .nattrs = 3,
    .relation = &rel_cumsum,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .variant = COMBINE_SUM,
    .shape = shape_scan,
    .lower = lower_scan,
    .doc = "Running sums along an axis, added in order.",
    .example = "cumsum([1, 2, 3], axis=0)",
    .example_result = "[1, 3, 6] : Tensor[(3,), int32]",
    .see_also = "cumprod, sum",
};
static const RelDef rel_cumprod = {"Cumprod", relate_scan, 2, false};
const Op op_cumprod = {
    .name = "cumprod",
    .args = "data",
    .nargs = 1,
    .attrs = scan_attrs,
    .nattrs = 3,
    .relation = &rel_cumprod,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .variant = COMBINE_PROD,
    .shape = shape_scan,
    .lower = lower_scan,
    .doc = "Running products along an axis, multiplied in order.",
    .example = "cumprod([1, 2, 3], axis=0, exclusive=True)",
    .example_result = "[1, 1, 2] : Tensor[(3,), int32]",
    .see_also = "cumsum, prod",
};
