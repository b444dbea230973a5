/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that find places or go by them, as ONNX nodes: sorting, gathering, scattering, one-hot rows. */
#include <string.h>

#include "interchange/export_ops.h"

/* A size of x as a vector of one int64. */
static Traced *size_vector(Export *ex, Traced *x, int axis) {
    return x->shape ? traced_ints(&x->shape[axis], 1)
                    : emit_unsqueeze(ex, export_size(ex, x, axis, DT_I64), (int64_t[]){0}, 1);
}

/* x as a vector. */
static Traced *flatten(Export *ex, Traced *x) {
    int64_t all = -1;
    Traced *in[] = {x, traced_ints(&all, 1)};
    return x->rank == 1 ? x : export_node(ex, "Reshape", in, 2, NULL, x->dtype, 1);
}

static Traced *as_index(Export *ex, Traced *places) { return export_cast(ex, places, DT_I64); }

/* ---- order ----------------------------------------------------------------------------------- */

/* The first k elements along an axis in order, and their places. Equal ones keep their order in both. */
static void first_in_order(Export *ex, Traced *x, Traced *k, int64_t axis, bool ascend,
                           Traced **values, Traced **places) {
    Traced *in[] = {x, k};
    const char *names[] = {export_name(ex, NULL), export_name(ex, NULL)};
    Str attrs = {0};
    onnx_add_int(&attrs, "axis", axis);
    onnx_add_int(&attrs, "largest", !ascend);
    export_node_outputs(ex, "TopK", in, 2, &attrs, names, 2);
    *values = traced_named(names[0], x->dtype, x->rank);
    *places = traced_named(names[1], DT_I64, x->rank);
}

static DType dtype_of_places(const ExportCall *c) {
    DType dtype = DT_I32;
    (void)attrs_dtype(c->attrs, "dtype", &dtype);
    return dtype;
}

Traced *export_sort(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *values, *places;
    int64_t axis = axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    if (x->dtype == DT_BOOL)
        return call_refuse(ex, c, "of bools");
    first_in_order(ex, x, size_vector(ex, x, (int)axis), axis, attrs_bool(c->attrs, "is_ascend"),
                   &values, &places);
    return c->op == &op_sort ? values : export_cast(ex, places, dtype_of_places(c));
}

Traced *export_topk(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], **both = mem_new_n(Traced *, 2);
    int64_t axis = axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    const char *type = attrs_text(c->attrs, "ret_type");
    const AttrValue *asked = attrs_get(c->attrs, "k");
    bool all = asked->kind == ATTR_NONE || (asked->kind == ATTR_INT && asked->i < 1);
    if ((!all && asked->kind != ATTR_INT) || x->dtype == DT_BOOL)
        return call_refuse(ex, c, "of bools, or of a number of elements that is not known");
    Traced *k = all ? size_vector(ex, x, (int)axis) : traced_ints(&asked->i, 1);
    first_in_order(ex, x, k, axis, attrs_bool(c->attrs, "is_ascend"), &both[0], &both[1]);
    both[1] = export_cast(ex, both[1], dtype_of_places(c));
    return strcmp(type, "both") == 0 ? traced_tuple(both, 2) : both[strcmp(type, "values") != 0];
}

Traced *export_reverse(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    int64_t begin[TENSOR_MAX_RANK], end[TENSOR_MAX_RANK], axes[TENSOR_MAX_RANK],
        steps[TENSOR_MAX_RANK];
    bool all = attrs_is_none(c->attrs, "axis");
    uint32_t n = all ? (uint32_t)x->rank : 1;
    for (uint32_t i = 0; i < n; i++) {
        begin[i] = steps[i] = -1;
        end[i] = INT64_MIN;
        axes[i] = all ? i : axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    }
    return emit_slice(ex, x, begin, end, axes, steps, n);
}

/* ---- by places ------------------------------------------------------------------------------- */

Traced *export_gather(Export *ex, const ExportCall *c) {
    Traced *in[] = {c->args[0], as_index(ex, c->args[1])};
    Str attrs = {0};
    onnx_add_int(&attrs, "axis", attrs_int(c->attrs, "axis"));
    return export_node(ex, "GatherElements", in, 2, &attrs, in[0]->dtype, in[1]->rank);
}

/* Coordinates lie along the first axis of TVM's indices, and along the last of ONNX's. */
static Traced *coordinates_last(Export *ex, Traced *places) {
    int64_t perm[TENSOR_MAX_RANK];
    for (int i = 0; i < places->rank; i++)
        perm[i] = (i + 1) % places->rank;
    places = as_index(ex, places);
    return places->rank < 2 ? places : emit_permuted(ex, places, perm);
}

Traced *export_gather_nd(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *in[] = {x, coordinates_last(ex, c->args[1])};
    int64_t shared = attrs_int(c->attrs, "batch_dims");
    Str attrs = {0};
    if (!c->args[1]->shape)
        return call_refuse(ex, c, "by coordinates of a number that is not known");
    onnx_add_int(&attrs, "batch_dims", shared);
    int rank = in[1]->rank - 1 + x->rank - (int)(c->args[1]->shape[0] + shared);
    return export_node(ex, "GatherND", in, 2, &attrs, x->dtype, rank);
}

/* How a scatter changes an element, in ONNX's word; NULL where this opset has none. */
static const char *reduction_of(const char *mode) {
    return strcmp(mode, "update") == 0 ? "none"
           : strcmp(mode, "add") == 0  ? "add"
           : strcmp(mode, "mul") == 0  ? "mul"
                                       : NULL;
}

Traced *export_scatter(Export *ex, const ExportCall *c) {
    bool elements = c->op == &op_scatter_elements;
    const char *how = reduction_of(attrs_text(c->attrs, elements ? "reduction" : "mode"));
    Traced *x = c->args[0];
    Str attrs = {0};
    if (!how)
        return call_refuse(ex, c, "by the least or the largest");
    Traced *places = elements ? as_index(ex, c->args[1]) : coordinates_last(ex, c->args[1]);
    Traced *in[] = {x, places, c->args[2]};
    onnx_add_text(&attrs, "reduction", how);
    if (elements)
        onnx_add_int(&attrs, "axis", attrs_int(c->attrs, "axis"));
    return export_node(ex, elements ? "ScatterElements" : "ScatterND", in, 3, &attrs, x->dtype,
                       x->rank);
}

/* Not OneHot, which counts negative places from the end: here such a row has no element that is on. */
Traced *export_one_hot(Export *ex, const ExportCall *c) {
    const AttrValue *depth = attrs_get(c->attrs, "depth");
    DType dtype = c->args[1]->dtype;
    int rank = c->args[0]->rank + 1;
    int64_t axis = axis_from_front(attrs_int(c->attrs, "axis"), rank), shape[TENSOR_MAX_RANK];
    if (depth->kind != ATTR_INT || depth->i < 0 || depth->i > MOST_COUNTED)
        return call_refuse(ex, c, "of a depth that is not known, or a large one");
    (void)attrs_dtype(c->attrs, "dtype", &dtype);
    for (int i = 0; i < rank; i++)
        shape[i] = i == axis ? depth->i : 1;
    Tensor *count = tensor_new(DT_I64, rank, shape);
    for (int64_t i = 0; i < depth->i; i++)
        ((int64_t *)tensor_data(count))[i] = i;
    Traced *places = emit_unsqueeze(ex, as_index(ex, c->args[0]), &axis, 1);
    Traced *pair[] = {places, traced_constant(count)};
    Traced *in[] = {export_node(ex, "Equal", pair, 2, NULL, DT_BOOL, rank),
                    export_cast(ex, c->args[1], dtype), export_cast(ex, c->args[2], dtype)};
    return export_node(ex, "Where", in, 3, NULL, dtype, rank);
}

Traced *export_trilu(Export *ex, const ExportCall *c) {
    Traced *in[] = {c->args[0], as_index(ex, c->args[1])};
    Str attrs = {0};
    onnx_add_int(&attrs, "upper", attrs_bool(c->attrs, "upper"));
    return export_node(ex, "Trilu", in, 2, &attrs, in[0]->dtype, in[0]->rank);
}

/* Element i of the result along the axis is element i / repeats of x. */
Traced *export_repeat(Export *ex, const ExportCall *c) {
    const AttrValue *times = attrs_get(c->attrs, "repeats");
    bool flat = attrs_is_none(c->attrs, "axis");
    Traced *x = flat ? flatten(ex, c->args[0]) : c->args[0];
    int64_t axis = flat ? 0 : axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    if (times->kind != ATTR_INT || times->i < 1 || times->i > MOST_COUNTED)
        return call_refuse(ex, c, "as often as is not known");
    Traced *by = traced_int(ex, DT_I64, times->i);
    Traced *end = emit_binary(ex, "Mul", export_size(ex, x, (int)axis, DT_I64), by);
    Traced *in[] = {traced_int(ex, DT_I64, 0), end, traced_int(ex, DT_I64, 1)};
    Traced *count = export_node(ex, "Range", in, 3, NULL, DT_I64, 1);
    return emit_gather(ex, x, emit_binary(ex, "Div", count, by), axis);
}

/* From start to stop by steps, of numbers that the model computes. */
Traced *export_arange(Export *ex, const ExportCall *c) {
    DType dtype = c->args[0]->dtype;
    (void)attrs_dtype(c->attrs, "dtype", &dtype);
    Traced *in[3];
    for (uint32_t i = 0; i < 3; i++)
        in[i] = export_cast(ex, c->args[i], dtype);
    if (c->nargs != 3 || !share_dtype(in, 3))
        return call_refuse(ex, c, "of numbers that are not known");
    return export_node(ex, "Range", in, 3, NULL, dtype, 1);
}

Traced *export_count(Export *ex, const ExportCall *c) {
    DType dtype = DT_I32;
    (void)attrs_dtype(c->attrs, "dtype", &dtype);
    return export_cast(ex, export_node(ex, "Size", c->args, 1, NULL, DT_I64, 0), dtype);
}
