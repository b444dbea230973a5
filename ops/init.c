/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors out of nothing, or out of a shape: zeros ones full arange and the _like forms, shape_of
 * and ndarray_size. */
#include "ops/recipe/plan.h"
#include "ops/relate/relations.h"
#include "ops/relate/shape_util.h"

#include <math.h>
#include <string.h>

static bool scalar_arg(const OpCall *call, int arg) { return shape_check_rank(call, arg, 0); }

/* ---- zeros, ones, full ----------------------------------------------------------------------- */

static int init_shape(const OpCall *call, OutSpec *out) {
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    if ((call->nin && !scalar_arg(call, 0)) || !shape_attr_dims(call, "shape", &rank, dims))
        return -1;
    DType otherwise = call->nin ? call->in[0]->dtype : DT_F32;
    return shape_set(call, out, shape_attr_dtype(call, "dtype", otherwise), rank, dims) ? 1 : -1;
}

static int like_shape(const OpCall *call, OutSpec *out) {
    const Tensor *t = call->in[0];
    if (!shape_check_dtype(call, 0, call->op->dtypes) || (call->nin > 1 && !scalar_arg(call, 1)))
        return -1;
    return shape_set(call, out, t->dtype, t->rank, t->shape) ? 1 : -1;
}

static bool lower_zeros(const OpCall *call, Tensor *const *out, Plan *plan) {
    (void)call;
    plan_fill_int(plan, out[0], 0);
    return true;
}

static bool lower_ones(const OpCall *call, Tensor *const *out, Plan *plan) {
    (void)call;
    plan_fill_int(plan, out[0], 1);
    return true;
}

/* The value is the last argument. */
static bool lower_full(const OpCall *call, Tensor *const *out, Plan *plan) {
    plan_copy(plan, out[0], call->in[call->nin - 1]);
    return true;
}

/* ---- arange ---------------------------------------------------------------------------------- */

/* max(0, ceil((end - start) / step)); false where it does not exist or is too large. */
static bool arange_count(const OpCall *call, int64_t *n) {
    const void *p[3];
    for (int i = 0; i < 3; i++)
        p[i] = tensor_data(call->in[i]);
    DType t = call->in[0]->dtype;
    if (dtype_is_float(t)) {
        double start = elem_get_float(p[0], t), end = elem_get_float(p[1], t);
        double count = ceil((end - start) / elem_get_float(p[2], t));
        if (isnan(count) || count > 0x1p47)
            return false;
        *n = count > 0 ? (int64_t)count : 0;
        return true;
    }
    bool is_unsigned = dtype_info[t].cls == DTC_UINT;
    __int128 v[3];
    for (int i = 0; i < 3; i++) {
        int64_t e = elem_get_int(p[i], t);
        v[i] = is_unsigned ? (__int128)(uint64_t)e : (__int128)e;
    }
    if (v[2] == 0)
        return false;
    __int128 distance = v[2] > 0 ? v[1] - v[0] : v[0] - v[1], step = v[2] > 0 ? v[2] : -v[2];
    __int128 count = distance > 0 ? (distance + step - 1) / step : 0;
    if (count > (__int128)1 << 47)
        return false;
    *n = (int64_t)count;
    return true;
}

static int arange_shape(const OpCall *call, OutSpec *out) {
    int64_t n;
    for (int i = 0; i < 3; i++)
        if (!scalar_arg(call, i) || !shape_check_dtype(call, i, DTS_NUM) ||
            !shape_check_same_dtype(call, 0, i))
            return -1;
    if (!arange_count(call, &n)) {
        shape_error(call, DIAG_R0316,
                    "no number of elements follows from `start`, `stop`, `step`: "
                    "a step of 0, a nan, or too many");
        return -1;
    }
    DType t = shape_attr_dtype(call, "dtype", call->in[0]->dtype);
    return shape_set(call, out, t, 1, &n) ? 1 : -1;
}

/* start + i step, in the arguments' dtype. */
static bool lower_arange(const OpCall *call, Tensor *const *out, Plan *plan) {
    StepBuilder s;
    DType stored = call->in[0]->dtype;
    step_begin(&s, plan, RECIPE_MAP, 1, out[0]->shape);
    ScalarBuilder *b = &s.body;
    Sc start = sc_load(b, step_in(&s, call->in[0]), stored);
    Sc step = sc_load(b, step_in(&s, call->in[2]), stored);
    Sc i = sc_cast(b, sc_iota(b, 0), sc_type_of(stored));
    Sc v = sc_add(b, start, sc_mul(b, i, step));
    step_result(&s, sc_convert(b, v, out[0]->dtype));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

/* ---- shape_of, ndarray_size ------------------------------------------------------------------ */

/* A tensor's size along an axis, or the number of its elements (axis -1), as a value of the result's dtype. */
static bool check_size(const OpCall *call, int axis, int64_t size) {
    DType t = shape_attr_dtype(call, "dtype", DT_I32);
    if (dtype_is_float(t) || dtype_holds_int(t, size, false))
        return true;
    shape_error(call, DIAG_R0614, "%s is %lld, which %s does not hold",
                axis < 0 ? "the number of elements" : fmt_text("axis %d", axis), (long long)size,
                dtype_info[t].name);
    return false;
}

static int shape_of_shape(const OpCall *call, OutSpec *out) {
    int64_t rank = call->in[0]->rank;
    for (int axis = 0; axis < rank; axis++)
        if (!check_size(call, axis, call->in[0]->shape[axis]))
            return -1;
    return shape_set(call, out, shape_attr_dtype(call, "dtype", DT_I32), 1, &rank) ? 1 : -1;
}

static int size_shape(const OpCall *call, OutSpec *out) {
    if (!check_size(call, -1, call->in[0]->count))
        return -1;
    return shape_set(call, out, shape_attr_dtype(call, "dtype", DT_I32), 0, NULL) ? 1 : -1;
}

static void put(Plan *plan, Tensor *out, int64_t place, int64_t v) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 0, NULL);
    ScalarBuilder *b = &s.body;
    step_result(&s, sc_convert(b, step_iparam(&s, b, DT_I64, v), out->dtype));
    step_out_strided(&s, out, (const int64_t[]){0}, place);
    step_end(&s);
}

static bool lower_shape_of(const OpCall *call, Tensor *const *out, Plan *plan) {
    for (int axis = 0; axis < call->in[0]->rank; axis++)
        put(plan, out[0], axis, call->in[0]->shape[axis]);
    return true;
}

static bool lower_ndarray_size(const OpCall *call, Tensor *const *out, Plan *plan) {
    put(plan, out[0], 0, call->in[0]->count);
    return true;
}

/* ---- entries --------------------------------------------------------------------------------- */

#define SHAPE                                                                                      \
    { "shape", AT_DIMS, NULL, "the sizes of the result" }
static const AttrSpec init_attrs[] = {SHAPE, {"dtype", AT_DTYPE, "float32", "the elements' dtype"}};
static const AttrSpec full_attrs[] = {
    SHAPE, {"dtype", AT_DTYPE, "None", "the elements' dtype; None: that of fill_value"}};
static const AttrSpec arange_attrs[] = {
    {"dtype", AT_DTYPE, "None", "the elements' dtype; None: that of the arguments"}};
static const AttrSpec shape_of_attrs[] = {{"dtype", AT_DTYPE, "int32", "the result's dtype"}};

const Op op_zeros = {.name = "zeros",
                     .args = "",
                     .nargs = 0,
                     .attrs = init_attrs,
                     .nattrs = 2,
                     .relation = &rel_init,
                     .dtypes = DTS_ALL,
                     .pattern = OP_INJECTIVE,
                     .shape = init_shape,
                     .lower = lower_zeros,
                     .doc = "A tensor of zeros (of bools: False).",
                     .example = "zeros(shape=[2, 3], dtype=int32)",
                     .example_result = "[[0, 0, 0],\n [0, 0, 0]] : Tensor[(2, 3), int32]",
                     .see_also = "ones, full, zeros_like"};
const Op op_ones = {.name = "ones",
                    .args = "",
                    .nargs = 0,
                    .attrs = init_attrs,
                    .nattrs = 2,
                    .relation = &rel_init,
                    .dtypes = DTS_ALL,
                    .pattern = OP_INJECTIVE,
                    .shape = init_shape,
                    .lower = lower_ones,
                    .doc = "A tensor of ones (of bools: True).",
                    .example = "ones(shape=[3], dtype=float32)",
                    .example_result = "[1.0, 1.0, 1.0] : Tensor[(3,), float32]",
                    .see_also = "zeros, full, ones_like"};
const Op op_full = {.name = "full",
                    .args = "fill_value",
                    .nargs = 1,
                    .attrs = full_attrs,
                    .nattrs = 2,
                    .relation = &rel_full,
                    .dtypes = DTS_ALL,
                    .pattern = OP_INJECTIVE,
                    .shape = init_shape,
                    .lower = lower_full,
                    .doc = "A tensor whose elements are all fill_value, a scalar.",
                    .example = "full(7, shape=[2])",
                    .example_result = "[7, 7] : Tensor[(2,), int32]",
                    .see_also = "full_like, zeros, ones"};
const Op op_full_like = {
    .name = "full_like",
    .args = "data, fill_value",
    .nargs = 2,
    .relation = &rel_full_like,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = like_shape,
    .lower = lower_full,
    .doc = "A tensor with data's shape and dtype whose elements are all fill_value, a scalar.",
    .example = "full_like([1.0, 2.0], 5.0)",
    .example_result = "[5.0, 5.0] : Tensor[(2,), float32]",
    .see_also = "full, zeros_like"};
const Op op_zeros_like = {.name = "zeros_like",
                          .args = "data",
                          .nargs = 1,
                          .relation = &rel_identity,
                          .dtypes = DTS_ALL,
                          .pattern = OP_ELEMWISE,
                          .scalar = OP_SCALAR_ZERO,
                          .shape = like_shape,
                          .lower = lower_zeros,
                          .doc = "Zeros (of bools: False) with the shape and dtype of data.",
                          .example = "zeros_like([1.5, 2.5])",
                          .example_result = "[0.0, 0.0] : Tensor[(2,), float32]",
                          .see_also = "ones_like, full_like, zeros"};
const Op op_ones_like = {.name = "ones_like",
                         .args = "data",
                         .nargs = 1,
                         .relation = &rel_identity,
                         .dtypes = DTS_ALL,
                         .pattern = OP_ELEMWISE,
                         .scalar = OP_SCALAR_ONE,
                         .shape = like_shape,
                         .lower = lower_ones,
                         .doc = "Ones (of bools: True) with the shape and dtype of data.",
                         .example = "ones_like([1.5, 2.5])",
                         .example_result = "[1.0, 1.0] : Tensor[(2,), float32]",
                         .see_also = "zeros_like, full_like, ones"};
const Op op_arange = {.name = "arange",
                      .args = "start=0, stop, step=1",
                      .nargs = 3,
                      .attrs = arange_attrs,
                      .nattrs = 1,
                      .relation = &rel_arange,
                      .dtypes = DTS_NUM,
                      .shape_mode = SHAPE_OF_DATA,
                      .pattern = OP_INJECTIVE,
                      .untried = true,
                      .shape = arange_shape,
                      .lower = lower_arange,
                      .doc = "start, start + step, … as far as they are before stop: "
                             "`arange(stop)`, `arange(start, stop)`, "
                             "`arange(start, stop, step)`. The arguments are scalars of one dtype.",
                      .example = "arange(0, 10, 3)",
                      .example_result = "[0, 3, 6, 9] : Tensor[(4,), int32]",
                      .see_also = "full"};
const Op op_shape_of = {.name = "shape_of",
                        .args = "data",
                        .nargs = 1,
                        .attrs = shape_of_attrs,
                        .nattrs = 1,
                        .relation = &rel_shape_of,
                        .dtypes = DTS_ALL,
                        .pattern = OP_OPAQUE,
                        .shape = shape_of_shape,
                        .lower = lower_shape_of,
                        .doc = "The sizes of data's axes.",
                        .example = "shape_of([[1.0, 2.0, 3.0]])",
                        .example_result = "[1, 3] : Tensor[(2,), int32]",
                        .see_also = "ndarray_size"};
const Op op_ndarray_size = {.name = "ndarray_size",
                            .args = "data",
                            .nargs = 1,
                            .attrs = shape_of_attrs,
                            .nattrs = 1,
                            .relation = &rel_size,
                            .dtypes = DTS_ALL,
                            .pattern = OP_OPAQUE,
                            .shape = size_shape,
                            .lower = lower_ndarray_size,
                            .doc = "The number of data's elements.",
                            .example = "ndarray_size([[1.0, 2.0, 3.0]])",
                            .example_result = "3 : int32",
                            .see_also = "shape_of"};
