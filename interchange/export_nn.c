/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of networks as ONNX nodes: convolutions, pools, normalisation. */
#include <string.h>

#include "interchange/export_ops.h"

Traced *export_softmax(Export *ex, const ExportCall *c) {
    Str attrs = {0};
    onnx_add_int(&attrs, "axis", attrs_int(c->attrs, "axis"));
    return export_node(ex, c->op == &op_nn_log_softmax ? "LogSoftmax" : "Softmax", c->args, 1,
                       &attrs, c->args[0]->dtype, c->args[0]->rank);
}

/* Whether a layout is TVM's default for this number of sides, or left out. */
static bool is_usual(const Attrs *attrs, const char *name, int sides, bool weights) {
    static const char *const usual[2][3] = {{"NCW", "NCHW", "NCDHW"}, {"OIW", "OIHW", "OIDHW"}};
    const char *layout = attrs_text(attrs, name);
    return !*layout || strcmp(layout, usual[weights][sides - 1]) == 0;
}

/* The pads before each side, then those after, of what TVM writes: one number, one a side, or all. */
static bool read_pads(const Attrs *attrs, int sides, int64_t *out) {
    const int64_t *pads;
    uint32_t n;
    if (!attrs_ints(attrs, "padding", &pads, &n))
        return false;
    for (int i = 0; i < 2 * sides; i++)
        out[i] = n == 1 ? pads[0] : (int)n == sides ? pads[i % sides] : pads[i];
    return n == 1 || (int)n == sides || (int)n == 2 * sides;
}

/* A list with an entry for each side, of which TVM may write one for all. */
static void add_sides(Str *out, const Attrs *attrs, const char *name, const char *onnx, int sides) {
    const int64_t *list = NULL;
    uint32_t n = 0;
    int64_t all[3] = {1, 1, 1};
    if (attrs_find(attrs, name) && attrs_ints(attrs, name, &list, &n))
        for (int i = 0; i < sides && n; i++)
            all[i] = list[(int)n == sides ? i : 0];
    onnx_add_ints(out, onnx, all, (uint32_t)sides);
}

Traced *export_convolution(Export *ex, const ExportCall *c) {
    DType out;
    int sides = c->args[0]->rank - 2;
    int64_t pads[6];
    Str attrs = {0};
    if (sides < 1 || sides > 3 || !is_usual(c->attrs, "data_layout", sides, false) ||
        !is_usual(c->attrs, "out_layout", sides, false) ||
        !is_usual(c->attrs, "kernel_layout", sides, true))
        return call_refuse(ex, c, "of another layout than NCHW and OIHW");
    if ((attrs_dtype(c->attrs, "out_dtype", &out) && out != c->args[0]->dtype) ||
        !share_dtype(c->args, 2) || !dtype_is_float(c->args[0]->dtype))
        return call_refuse(ex, c, "of these dtypes");
    if (!read_pads(c->attrs, sides, pads))
        return call_refuse(ex, c, "with padding that is not known");
    add_sides(&attrs, c->attrs, "strides", "strides", sides);
    add_sides(&attrs, c->attrs, "dilation", "dilations", sides);
    onnx_add_ints(&attrs, "pads", pads, 2 * (uint32_t)sides);
    onnx_add_int(&attrs, "group", attrs_int(c->attrs, "groups"));
    return export_node(ex, "Conv", c->args, 2, &attrs, c->args[0]->dtype, sides + 2);
}

static bool is_max_pool(const Op *op) {
    return op == &op_nn_max_pool1d || op == &op_nn_max_pool2d || op == &op_nn_max_pool3d;
}

Traced *export_pool(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    int sides = x->rank - 2;
    int64_t pads[6];
    const int64_t *dilation = NULL;
    uint32_t n = 0;
    bool is_max = is_max_pool(c->op), dilated = false;
    Str attrs = {0};
    if (sides < 1 || sides > 3 || !is_usual(c->attrs, "layout", sides, false) ||
        !is_usual(c->attrs, "out_layout", sides, false))
        return call_refuse(ex, c, "of another layout than NCHW");
    if (attrs_ints(c->attrs, "dilation", &dilation, &n))
        for (uint32_t i = 0; i < n; i++)
            dilated |= dilation[i] != 1;
    if (!read_pads(c->attrs, sides, pads) || (dilated && !is_max) || !dtype_is_float(x->dtype))
        return call_refuse(ex, c, "of integers, or with steps within its windows");
    add_sides(&attrs, c->attrs, "pool_size", "kernel_shape", sides);
    add_sides(&attrs, c->attrs, "strides", "strides", sides);
    onnx_add_ints(&attrs, "pads", pads, 2 * (uint32_t)sides);
    onnx_add_int(&attrs, "ceil_mode", attrs_bool(c->attrs, "ceil_mode"));
    if (is_max)
        add_sides(&attrs, c->attrs, "dilation", "dilations", sides);
    else
        onnx_add_int(&attrs, "count_include_pad", attrs_bool(c->attrs, "count_include_pad"));
    return export_node(ex, is_max ? "MaxPool" : "AveragePool", &x, 1, &attrs, x->dtype, x->rank);
}

Traced *export_global_pool(Export *ex, const ExportCall *c) {
    if (!is_usual(c->attrs, "layout", 2, false) || !is_usual(c->attrs, "out_layout", 2, false) ||
        !dtype_is_float(c->args[0]->dtype))
        return call_refuse(ex, c, "of integers, or of another layout than NCHW");
    bool is_max = c->op == &op_nn_global_max_pool2d;
    return emit_unary(ex, is_max ? "GlobalMaxPool" : "GlobalAveragePool", c->args[0]);
}

/* The scale of a normalisation and what it adds, args[1] and args[2], which `scale` and `center` may leave out. Each is a
 * vector along one axis of the data, and of its dtype. */
static void read_scales(Export *ex, const ExportCall *c, Traced **in) {
    in[1] = attrs_bool(c->attrs, "scale")
                ? c->args[1]
                : export_default(ex, &op_ones_like, c->span, &c->args[1], 1);
    in[2] = attrs_bool(c->attrs, "center")
                ? c->args[2]
                : export_default(ex, &op_zeros_like, c->span, &c->args[2], 1);
}

/* x with two axes in each other's place. */
static Traced *swap_axes(Export *ex, Traced *x, int a, int b) {
    int64_t perm[TENSOR_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        perm[i] = i == a ? b : i == b ? a : i;
    return a == b ? x : emit_permuted(ex, x, perm);
}

/* ONNX has the channels on axis 1. A matrix has them there too: its rows are examples. */
Traced *export_batch_norm(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *in[5] = {0}, **kept = mem_new_n(Traced *, 3);
    int axis = axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    Str attrs = {0};
    if (x->rank < 2)
        return call_refuse(ex, c, "of a vector");
    in[0] = swap_axes(ex, x, 1, axis);
    read_scales(ex, c, in);
    in[3] = kept[1] = c->args[3];
    in[4] = kept[2] = c->args[4];
    onnx_add_float(&attrs, "epsilon", attrs_float(c->attrs, "epsilon"));
    kept[0] = export_node(ex, "BatchNormalization", in, 5, &attrs, x->dtype, x->rank);
    kept[0] = swap_axes(ex, kept[0], 1, axis);
    return traced_tuple(kept, 3);
}

Traced *export_layer_norm(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *in[3] = {0};
    int axis = axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    Str attrs = {0};
    in[0] = swap_axes(ex, x, x->rank - 1, axis);
    read_scales(ex, c, in);
    onnx_add_int(&attrs, "axis", -1);
    onnx_add_float(&attrs, "epsilon", attrs_float(c->attrs, "epsilon"));
    Traced *y = export_node(ex, "LayerNormalization", in, 3, &attrs, x->dtype, x->rank);
    return swap_axes(ex, y, x->rank - 1, axis);
}

Traced *export_flatten(Export *ex, const ExportCall *c) {
    return export_node(ex, "Flatten", c->args, 1, NULL, c->args[0]->dtype, 2);
}

/* The form for evaluation: the argument, and a mask of ones. */
Traced *export_dropout(Export *ex, const ExportCall *c) {
    Traced **parts = mem_new_n(Traced *, 2), *x = c->args[0];
    parts[0] = x;
    parts[1] = emit_expand(ex, traced_int(ex, x->dtype, 1), emit_shape(ex, x), x->rank);
    return traced_tuple(parts, 2);
}

Traced *export_pad(Export *ex, const ExportCall *c) {
    const AttrValue *width = attrs_get(c->attrs, "pad_width");
    const char *mode = attrs_text(c->attrs, "pad_mode");
    Traced *x = c->args[0];
    int64_t pads[2 * TENSOR_MAX_RANK];
    Str attrs = {0};
    for (int i = 0; i < x->rank; i++)
        for (int side = 0; side < 2; side++) {
            const AttrValue *v = &width->list.items[i].list.items[side];
            if (v->kind != ATTR_INT)
                return call_refuse(ex, c, "by numbers that are not known");
            pads[i + side * x->rank] = v->i;
        }
    Traced *in[] = {x, traced_ints(pads, 2 * (uint32_t)x->rank),
                    export_cast(ex, c->args[1], x->dtype)};
    onnx_add_text(&attrs, "mode", mode);
    return export_node(ex, "Pad", in, strcmp(mode, "constant") == 0 ? 3 : 2, &attrs, x->dtype,
                       x->rank);
}
