/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators with attributes or other arguments: cast cast_like clip where
 * nn.leaky_relu. */
#include "ops/recipe/plan.h"
#include "ops/relate/relations.h"
#include "ops/relate/shape_util.h"

#include <math.h>

static int same_shape(const OpCall *call, OutSpec *out) {
    const Tensor *t = call->in[0];
    if (!shape_check_dtype(call, 0, call->op->dtypes))
        return -1;
    return shape_set(call, out, t->dtype, t->rank, t->shape) ? 1 : -1;
}

/* ---- cast ------------------------------------------------------------------------------------ */

static int cast_shape(const OpCall *call, OutSpec *out) {
    const Tensor *t = call->in[0];
    DType to = call->nin > 1 ? call->in[1]->dtype : shape_attr_dtype(call, "dtype", t->dtype);
    return shape_set(call, out, to, t->rank, t->shape) ? 1 : -1;
}

static bool lower_cast(const OpCall *call, Tensor *const *out, Plan *plan) {
    plan_copy(plan, out[0], call->in[0]);
    return true;
}

/* ---- clip ------------------------------------------------------------------------------------ */

/* Bounds of integers are the nearest ones inside; of halves, they are rounded. */
static bool lower_clip(const OpCall *call, Tensor *const *out, Plan *plan) {
    double low = attrs_float(call->attrs, "a_min"), high = attrs_float(call->attrs, "a_max");
    DType type = sc_type_of(out[0]->dtype);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, out[0]->rank, out[0]->shape);
    ScalarBuilder *b = &s.body;
    Sc x = sc_load(b, step_in(&s, call->in[0]), out[0]->dtype), bounds[2];
    for (int i = 0; i < 2; i++) {
        double bound = i ? high : low;
        unsigned char element[8];
        if (dtype_is_float(type)) {
            elem_set_float(element, out[0]->dtype, bound);
            bounds[i] = step_fparam(&s, b, type, elem_get_float(element, out[0]->dtype));
        } else {
            elem_set_float(element, type, i ? floor(bound) : ceil(bound));
            bounds[i] = step_iparam(&s, b, type, elem_get_int(element, type));
        }
    }
    step_result(&s, sc_clip(b, x, bounds[0], bounds[1]));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

/* ---- where ----------------------------------------------------------------------------------- */

static int where_shape(const OpCall *call, OutSpec *out) {
    if (!shape_check_dtype(call, 0, DTS_BOOL) || !shape_check_same_dtype(call, 1, 2))
        return -1;
    out->rank = 0;
    for (int i = 0; i < 3; i++)
        if (!shape_broadcast_into(call, i, out))
            return -1;
    return shape_set(call, out, call->in[1]->dtype, out->rank, out->shape) ? 1 : -1;
}

static bool lower_where(const OpCall *call, Tensor *const *out, Plan *plan) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, out[0]->rank, out[0]->shape);
    Sc v[3];
    for (int i = 0; i < 3; i++)
        v[i] = sc_load(&s.body, step_in(&s, call->in[i]), call->in[i]->dtype);
    step_result(&s, sc_select(&s.body, v[0], v[1], v[2]));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

/* ---- nn.leaky_relu --------------------------------------------------------------------------- */

static bool lower_leaky_relu(const OpCall *call, Tensor *const *out, Plan *plan) {
    StepBuilder s;
    DType type = sc_type_of(out[0]->dtype);
    step_begin(&s, plan, RECIPE_MAP, out[0]->rank, out[0]->shape);
    ScalarBuilder *b = &s.body;
    Sc x = sc_load(b, step_in(&s, call->in[0]), out[0]->dtype);
    Sc alpha = step_fparam(&s, b, type, attrs_float(call->attrs, "alpha"));
    Sc above = sc_gt(b, x, sc_float(b, type, 0.0));
    step_result(&s, sc_select(b, above, x, sc_mul(b, x, alpha)));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

/* ---- entries --------------------------------------------------------------------------------- */

static const AttrSpec cast_attrs[] = {{"dtype", AT_DTYPE, NULL, "the dtype to convert to"}};
static const AttrSpec clip_attrs[] = {{"a_min", AT_FLOAT, NULL, "the least value"},
                                      {"a_max", AT_FLOAT, NULL, "the greatest value"}};
static const AttrSpec leaky_attrs[] = {{"alpha", AT_FLOAT, "0.25", "the slope below 0"}};

const Op op_cast = {
    .name = "cast",
    .args = "data",
    .nargs = 1,
    .attrs = cast_attrs,
    .nattrs = 1,
    .relation = &rel_cast,
    .dtypes = DTS_ALL,
    .pattern = OP_ELEMWISE,
    .shape = cast_shape,
    .lower = lower_cast,
    .doc =
        "Each element converted. Floats to integers truncate and saturate, nan gives 0; integers "
        "to integers wrap; to bool is != 0. Also written (float32) x.",
    .example = "cast([1.7, -2.7, nan], dtype=int32)",
    .example_result = "[1, -2, 0] : Tensor[(3,), int32]",
    .see_also = "cast_like"};
const Op op_cast_like = {
    .name = "cast_like",
    .args = "data, dtype_like",
    .nargs = 2,
    .relation = &rel_cast_like,
    .dtypes = DTS_ALL,
    .pattern = OP_ELEMWISE,
    .scalar = OP_SCALAR_SELF,
    .shape = cast_shape,
    .lower = lower_cast,
    .doc = "data converted to the dtype of dtype_like, whose shape does not matter.",
    .example = "cast_like([1, 2], 0.5)",
    .example_result = "[1.0, 2.0] : Tensor[(2,), float32]",
    .see_also = "cast"};
const Op op_clip = {.name = "clip",
                    .args = "data",
                    .nargs = 1,
                    .attrs = clip_attrs,
                    .nattrs = 2,
                    .relation = &rel_identity,
                    .dtypes = DTS_NUM,
                    .pattern = OP_ELEMWISE,
                    .shape = same_shape,
                    .lower = lower_clip,
                    .doc = "Elements below a_min become a_min, above a_max a_max; nan stays nan.",
                    .example = "clip([-1.0, 0.5, 3.0], a_min=0.0, a_max=1.0)",
                    .example_result = "[0.0, 0.5, 1.0] : Tensor[(3,), float32]",
                    .see_also = "maximum, minimum"};
const Op op_where = {.name = "where",
                     .args = "condition, x, y",
                     .nargs = 3,
                     .relation = &rel_where,
                     .dtypes = DTS_ALL,
                     .pattern = OP_BROADCAST,
                     .scalar = OP_SCALAR_SELECT,
                     .shape = where_shape,
                     .lower = lower_where,
                     .doc = "x where the condition holds, else y; the three broadcast.",
                     .example = "where([True, False], [1, 2], [3, 4])",
                     .example_result = "[1, 4] : Tensor[(2,), int32]",
                     .see_also = "maximum, clip"};
const Op op_nn_leaky_relu = {.name = "nn.leaky_relu",
                             .args = "data",
                             .nargs = 1,
                             .attrs = leaky_attrs,
                             .nattrs = 1,
                             .relation = &rel_identity,
                             .dtypes = DTS_FLOAT,
                             .pattern = OP_ELEMWISE,
                             .shape = same_shape,
                             .lower = lower_leaky_relu,
                             .doc = "x where it is above 0, else alpha x.",
                             .example = "nn.leaky_relu([-4.0, 2.0])",
                             .example_result = "[-1.0, 2.0] : Tensor[(2,), float32]",
                             .see_also = "nn.relu"};
