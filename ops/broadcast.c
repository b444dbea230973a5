/* SPDX-License-Identifier: Apache-2.0 */
/* Repeating along new or unit axes, and its opposite, summing them up: broadcast_to(_like) and
 * collapse_sum_to/_like. */
#include "ops/recipe/plan.h"
#include "ops/relate/relations.h"
#include "ops/relate/shape_util.h"

#include <string.h>

/* Reports unless `small` broadcasts to exactly `large`. */
static bool check_broadcasts(const OpCall *call, int small_rank, const int64_t *small,
                             int large_rank, const int64_t *large) {
    int shift = large_rank - small_rank;
    bool fits = shift >= 0;
    for (int i = 0; fits && i < small_rank; i++)
        fits = small[i] == 1 || small[i] == large[i + shift];
    if (!fits)
        shape_error(call, DIAG_R0312, "%s does not broadcast to %s", shape_text(small_rank, small),
                    shape_text(large_rank, large));
    return fits;
}

/* ---- broadcast ------------------------------------------------------------------------------- */

static int broadcast_shape(const OpCall *call, OutSpec *out) {
    const Tensor *t = call->in[0];
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    if (!shape_attr_dims(call, "shape", &rank, dims) ||
        !check_broadcasts(call, t->rank, t->shape, rank, dims))
        return -1;
    return shape_set(call, out, t->dtype, rank, dims) ? 1 : -1;
}

static int broadcast_like_shape(const OpCall *call, OutSpec *out) {
    const Tensor *t = call->in[0], *like = call->in[1];
    if (!check_broadcasts(call, t->rank, t->shape, like->rank, like->shape))
        return -1;
    return shape_set(call, out, t->dtype, like->rank, like->shape) ? 1 : -1;
}

static bool lower_broadcast(const OpCall *call, Tensor *const *out, Plan *plan) {
    plan_copy(plan, out[0], call->in[0]);
    return true;
}

/* ---- collapse -------------------------------------------------------------------------------- */

static int collapse(const OpCall *call, OutSpec *out, int rank, const int64_t *dims) {
    const Tensor *t = call->in[0];
    if (!shape_check_dtype(call, 0, call->op->dtypes) ||
        !check_broadcasts(call, rank, dims, t->rank, t->shape))
        return -1;
    return shape_set(call, out, t->dtype, rank, dims) ? 1 : -1;
}

static int collapse_like_shape(const OpCall *call, OutSpec *out) {
    return collapse(call, out, call->in[1]->rank, call->in[1]->shape);
}

static int collapse_to_shape(const OpCall *call, OutSpec *out) {
    const Tensor *sizes = call->in[1];
    int64_t dims[TENSOR_MAX_RANK];
    if (!shape_check_dtype(call, 1, DTS_INT) || !shape_check_rank(call, 1, 1))
        return -1;
    if (sizes->count > TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0316, "`shape` has %lld sizes", (long long)sizes->count);
        return -1;
    }
    for (int64_t i = 0; i < sizes->count; i++) {
        dims[i] = elem_get_int(tensor_at(sizes, i), sizes->dtype);
        if (dims[i] < 0) {
            shape_error(call, DIAG_R0316, "`shape` holds the negative size %lld",
                        (long long)dims[i]);
            return -1;
        }
    }
    return collapse(call, out, (int)sizes->count, dims);
}

static bool lower_collapse(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *t = call->in[0];
    uint32_t axes = 0;
    int shift = t->rank - out[0]->rank, kept = 0;
    int64_t strides[TENSOR_MAX_RANK];
    for (int axis = 0; axis < t->rank; axis++) {
        if (axis < shift || (out[0]->shape[axis - shift] == 1 && t->shape[axis] != 1))
            axes |= 1u << axis;
        else
            strides[kept++] = out[0]->strides[axis - shift];
    }
    StepBuilder s;
    step_begin_reduce(&s, plan, axes ? RECIPE_REDUCE : RECIPE_MAP, t, axes);
    sc_load(&s.body, step_in_reduced(&s, t, axes), t->dtype);
    step_combine(&s, axes ? COMBINE_SUM : COMBINE_NONE, reduce_acc_type(t->dtype));
    step_out_strided(&s, out[0], strides, 0);
    step_end(&s);
    return true;
}

/* ---- entries --------------------------------------------------------------------------------- */

static const AttrSpec broadcast_attrs[] = {{"shape", AT_DIMS, NULL, "the sizes of the result"},
                                           {"dtype", AT_DTYPE, "None", "not used: TVM prints it"}};

const Op op_broadcast_to = {
    .name = "broadcast_to",
    .args = "data",
    .nargs = 1,
    .attrs = broadcast_attrs,
    .nattrs = 2,
    .relation = &rel_broadcast_to,
    .dtypes = DTS_ALL,
    .pattern = OP_BROADCAST,
    .shape = broadcast_shape,
    .lower = lower_broadcast,
    .doc = "data repeated along new axes in front and along axes of size 1.",
    .example = "broadcast_to([1, 2], shape=[2, 2])",
    .example_result = "[[1, 2],\n [1, 2]] : Tensor[(2, 2), int32]",
    .see_also = "broadcast_to_like, collapse_sum_to"};
const Op op_broadcast_to_like = {
    .name = "broadcast_to_like",
    .args = "data, broadcast_type",
    .nargs = 2,
    .relation = &rel_broadcast_like,
    .dtypes = DTS_ALL,
    .pattern = OP_BROADCAST,
    .scalar = OP_SCALAR_SELF,
    .like_last = true,
    .shape = broadcast_like_shape,
    .lower = lower_broadcast,
    .doc = "data repeated to the shape of broadcast_type, whose dtype does not matter.",
    .example = "broadcast_to_like(7, [0.0, 0.0])",
    .example_result = "[7, 7] : Tensor[(2,), int32]",
    .see_also = "broadcast_to, collapse_sum_like"};
const Op op_collapse_sum_like = {
    .name = "collapse_sum_like",
    .args = "data, collapse_type",
    .nargs = 2,
    .relation = &rel_collapse_like,
    .dtypes = DTS_NUM,
    .pattern = OP_REDUCE,
    .scalar = OP_SCALAR_SELF,
    .like_last = true,
    .shape = collapse_like_shape,
    .lower = lower_collapse,
    .doc = "data summed over the axes along which collapse_type would be repeated to its shape.",
    .example = "collapse_sum_like([[1.0, 2.0], [3.0, 4.0]], [0.0, 0.0])",
    .example_result = "[4.0, 6.0] : Tensor[(2,), float32]",
    .see_also = "collapse_sum_to, broadcast_to_like"};
const Op op_collapse_sum_to = {
    .name = "collapse_sum_to",
    .args = "data, shape",
    .nargs = 2,
    .relation = &rel_collapse_to,
    .dtypes = DTS_NUM,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_REDUCE,
    .shape = collapse_to_shape,
    .lower = lower_collapse,
    .doc = "data summed down to the sizes given by the integers in shape.",
    .example = "collapse_sum_to([[1.0, 2.0], [3.0, 4.0]], [1, 2])",
    .example_result = "[[4.0, 6.0]] : Tensor[(1, 2), float32]",
    .see_also = "collapse_sum_like"};
