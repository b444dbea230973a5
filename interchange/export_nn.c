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

bool export_has_usual_layouts(const Attrs *attrs, int sides) {
    static const char *const names[] = {"layout", "data_layout", "out_layout", "kernel_layout"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (attrs_find(attrs, names[i]) && !is_usual(attrs, names[i], sides, names[i][0] == 'k'))
            return false;
    return true;
}

bool export_read_pads(const Attrs *attrs, int sides, int64_t *out) {
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
    if (!export_read_pads(c->attrs, sides, pads))
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
    if (!export_read_pads(c->attrs, sides, pads) || (dilated && !is_max) ||
        !dtype_is_float(x->dtype))
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

/* ---- normalisation of groups ----------------------------------------------------------------- */

/* A vector of `n` equal numbers. */
static Traced *filled_vector(Export *ex, DType dtype, int64_t n, int value) {
    Traced *one = traced_int(ex, dtype, value);
    return emit_expand(ex, one, traced_ints(&n, 1), 1);
}

/* Mean 0 and variance 1 in each channel of each element of the batch. */
static Traced *normalise(Export *ex, const ExportCall *c, Traced *x, Traced *scale, Traced *add) {
    Traced *in[] = {x, scale, add};
    Str attrs = {0};
    onnx_add_float(&attrs, "epsilon", attrs_float(c->attrs, "epsilon"));
    return export_node(ex, "InstanceNormalization", in, 3, &attrs, x->dtype, x->rank);
}

Traced *export_instance_norm(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *in[3];
    int axis = axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    if (x->rank < 3)
        return call_refuse(ex, c, "of a matrix");
    read_scales(ex, c, in);
    return swap_axes(ex, normalise(ex, c, swap_axes(ex, x, 1, axis), in[1], in[2]), 1, axis);
}

/* The groups as channels of their own, then back: this opset has no node for it. */
Traced *export_group_norm(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *in[3];
    int64_t groups = attrs_int(c->attrs, "num_groups"), apart[] = {0, groups, -1};
    uint32_t n = 0;
    if (x->rank < 3 || axis_from_front(attrs_int(c->attrs, "axis"), x->rank) != 1)
        return call_refuse(ex, c, "of a matrix, or along another axis than 1");
    if (groups < 1)
        return export_instance_norm(ex, c);
    read_scales(ex, c, in);
    Traced *split[] = {x, traced_ints(apart, 3)};
    Traced *y = export_node(ex, "Reshape", split, 2, NULL, x->dtype, 3);
    y = normalise(ex, c, y, filled_vector(ex, x->dtype, groups, 1),
                  filled_vector(ex, x->dtype, groups, 0));
    Traced *joined[] = {y, emit_shape(ex, x)};
    y = export_node(ex, "Reshape", joined, 2, NULL, x->dtype, x->rank);
    int64_t axes[TENSOR_MAX_RANK];
    for (int i = 2; i < x->rank; i++)
        axes[n++] = i - 1;
    y = emit_binary(ex, "Mul", y, emit_unsqueeze(ex, in[1], axes, n));
    return emit_binary(ex, "Add", y, emit_unsqueeze(ex, in[2], axes, n));
}

Traced *export_lrn(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    Str attrs = {0};
    if (axis_from_front(attrs_int(c->attrs, "axis"), x->rank) != 1)
        return call_refuse(ex, c, "along another axis than 1");
    onnx_add_int(&attrs, "size", attrs_int(c->attrs, "size"));
    onnx_add_float(&attrs, "alpha", attrs_float(c->attrs, "alpha"));
    onnx_add_float(&attrs, "beta", attrs_float(c->attrs, "beta"));
    onnx_add_float(&attrs, "bias", attrs_float(c->attrs, "bias"));
    return export_node(ex, "LRN", &x, 1, &attrs, x->dtype, x->rank);
}

/* ---- places of images ------------------------------------------------------------------------ */

/* DepthToSpace and back. */
Traced *export_blocks(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    bool to_space = c->op == &op_nn_depth_to_space;
    const char *mode = attrs_text(c->attrs, "mode");
    Str attrs = {0};
    if (strcmp(attrs_text(c->attrs, "layout"), "NCHW") != 0 ||
        (!to_space && strcmp(mode, "DCR") != 0))
        return call_refuse(ex, c, "of another layout than NCHW, or of another mode than DCR");
    onnx_add_int(&attrs, "blocksize", attrs_int(c->attrs, "block_size"));
    if (to_space)
        onnx_add_text(&attrs, "mode", mode);
    return export_node(ex, to_space ? "DepthToSpace" : "SpaceToDepth", &x, 1, &attrs, x->dtype, 4);
}

Traced *export_transposed_convolution(Export *ex, const ExportCall *c) {
    static const char *const weights[] = {"IOW", "IOHW", "IODHW"};
    Traced *x = c->args[0];
    DType out;
    int sides = x->rank - 2;
    int64_t pads[6];
    Str attrs = {0};
    if (sides < 1 || sides > 3 || !is_usual(c->attrs, "data_layout", sides, false) ||
        !is_usual(c->attrs, "out_layout", sides, false) ||
        strcmp(attrs_text(c->attrs, "kernel_layout"), weights[sides - 1]) != 0)
        return call_refuse(ex, c, "of another layout than NCHW and IOHW");
    if ((attrs_dtype(c->attrs, "out_dtype", &out) && out != x->dtype) || !share_dtype(c->args, 2) ||
        !dtype_is_float(x->dtype) || !export_read_pads(c->attrs, sides, pads))
        return call_refuse(ex, c, "of these dtypes, or with padding that is not known");
    add_sides(&attrs, c->attrs, "strides", "strides", sides);
    add_sides(&attrs, c->attrs, "dilation", "dilations", sides);
    onnx_add_ints(&attrs, "pads", pads, 2 * (uint32_t)sides);
    const int64_t *more = NULL;
    uint32_t n = 0;
    if (attrs_ints(c->attrs, "output_padding", &more, &n) && (int)n == sides)
        onnx_add_ints(&attrs, "output_padding", more, n);
    onnx_add_int(&attrs, "group", attrs_int(c->attrs, "groups"));
    return export_node(ex, "ConvTranspose", c->args, 2, &attrs, x->dtype, x->rank);
}

/* Where the sizes are known and divide: a pool of as many windows. */
Traced *export_adaptive_pool(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    const int64_t *asked = NULL;
    uint32_t n = 0;
    int sides = x->rank - 2;
    int64_t window[3];
    bool is_max = c->op == &op_nn_adaptive_max_pool1d || c->op == &op_nn_adaptive_max_pool2d ||
                  c->op == &op_nn_adaptive_max_pool3d;
    bool one = attrs_ints(c->attrs, "output_size", &asked, &n) && n > 0, fits = x->shape != NULL;
    Str attrs = {0};
    if (!is_usual(c->attrs, "layout", sides, false) || !dtype_is_float(x->dtype) || !n)
        return call_refuse(ex, c, "of another layout than NCHW, or of integers");
    for (int i = 0; i < sides; i++) {
        int64_t out = asked[n == 1 ? 0 : i];
        one &= out == 1;
        fits &= x->shape && out > 0 && x->shape[i + 2] % out == 0;
        window[i] = fits ? x->shape[i + 2] / out : 1;
    }
    if (one)
        return emit_unary(ex, is_max ? "GlobalMaxPool" : "GlobalAveragePool", x);
    if (!fits)
        return call_refuse(ex, c, "whose windows have several sizes");
    onnx_add_ints(&attrs, "kernel_shape", window, (uint32_t)sides);
    onnx_add_ints(&attrs, "strides", window, (uint32_t)sides);
    return export_node(ex, is_max ? "MaxPool" : "AveragePool", &x, 1, &attrs, x->dtype, x->rank);
}

/* ---- sizes of images ------------------------------------------------------------------------- */

/* The attributes of Resize that both operators have; false for what it has not. */
static bool add_resizing(Str *attrs, const char *method, const char *where, const char *rounding) {
    bool nearest = strncmp(method, "nearest", 7) == 0, cubic = strstr(method, "cubic") != NULL;
    const char *how = strcmp(rounding, "floor") == 0                ? "floor"
                      : strcmp(rounding, "ceil") == 0               ? "ceil"
                      : strcmp(rounding, "round_prefer_floor") == 0 ? "round_prefer_floor"
                                                                    : "round_prefer_ceil";
    bool known = strcmp(where, "half_pixel") == 0 || strcmp(where, "align_corners") == 0 ||
                 strcmp(where, "asymmetric") == 0;
    onnx_add_text(attrs, "mode", nearest ? "nearest" : cubic ? "cubic" : "linear");
    onnx_add_text(attrs, "coordinate_transformation_mode", where);
    if (nearest)
        onnx_add_text(attrs, "nearest_mode", how);
    return known;
}

Traced *export_resize(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    const int64_t *sides;
    uint32_t n;
    DType out;
    Str attrs = {0};
    const char *method = attrs_text(c->attrs, "method");
    if (!attrs_ints(c->attrs, "size", &sides, &n) || (int)n != x->rank - 2 ||
        !is_usual(c->attrs, "layout", x->rank - 2, false) || !dtype_is_float(x->dtype) ||
        (attrs_dtype(c->attrs, "out_dtype", &out) && out != x->dtype))
        return call_refuse(
            ex, c, "of another layout than NCHW, to sizes that are not known, or of integers");
    if (!add_resizing(&attrs, method, attrs_text(c->attrs, "coordinate_transformation_mode"),
                      attrs_text(c->attrs, "rounding_method")))
        return call_refuse(ex, c, "of a part");
    if (strstr(method, "cubic")) {
        onnx_add_float(&attrs, "cubic_coeff_a", attrs_float(c->attrs, "cubic_alpha"));
        onnx_add_int(&attrs, "exclude_outside", attrs_int(c->attrs, "cubic_exclude"));
    }
    int64_t zero = 0, two = 2, step = 1;
    Traced *first = emit_slice(ex, emit_shape(ex, x), &zero, &two, &zero, &step, 1);
    Traced *both[] = {first, traced_ints(sides, n)};
    Str joined = {0};
    onnx_add_int(&joined, "axis", 0);
    Traced *sizes = export_node(ex, "Concat", both, 2, &joined, DT_I64, 1);
    Traced *in[] = {x, NULL, NULL, sizes};
    return export_node(ex, "Resize", in, 4, &attrs, x->dtype, x->rank);
}

Traced *export_upsampling(Export *ex, const ExportCall *c) {
    static const char *const names[] = {"scale_d", "scale_h", "scale_w"};
    Traced *x = c->args[0];
    int sides = x->rank - 2;
    int64_t rank = x->rank;
    bool deep = c->op == &op_nn_upsampling3d;
    Str attrs = {0};
    const char *where = deep ? attrs_text(c->attrs, "coordinate_transformation_mode")
                        : attrs_bool(c->attrs, "align_corners") ? "align_corners"
                                                                : "asymmetric";
    if (!is_usual(c->attrs, "layout", sides, false) || !dtype_is_float(x->dtype) ||
        !add_resizing(&attrs, attrs_text(c->attrs, "method"), where, "floor"))
        return call_refuse(ex, c, "of another layout than NCHW, or of integers");
    Tensor *scales = tensor_new(DT_F32, 1, &rank);
    float *to = tensor_data(scales);
    for (int i = 0; i < x->rank; i++)
        to[i] = i < 2 ? 1.0f : (float)attrs_float(c->attrs, names[i - 2 + 3 - sides]);
    Traced *in[] = {x, NULL, traced_constant(scales)};
    return export_node(ex, "Resize", in, 3, &attrs, x->dtype, x->rank);
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

/* `pad_width` as ONNX has it: what comes before each axis, then what comes after. False where a number is not known. */
static bool read_widths(const ExportCall *c, int64_t *pads) {
    const AttrValue *width = attrs_get(c->attrs, "pad_width");
    int rank = c->args[0]->rank;
    for (int i = 0; i < 2 * rank; i++) {
        const AttrValue *v = &width->list.items[i % rank].list.items[i / rank];
        if (v->kind != ATTR_INT)
            return false;
        pads[i] = v->i;
    }
    return true;
}

Traced *export_pad(Export *ex, const ExportCall *c) {
    const char *mode = attrs_text(c->attrs, "pad_mode");
    Traced *x = c->args[0];
    int64_t pads[2 * TENSOR_MAX_RANK];
    Str attrs = {0};
    if (!read_widths(c, pads))
        return call_refuse(ex, c, "by numbers that are not known");
    Traced *in[] = {x, traced_ints(pads, 2 * (uint32_t)x->rank),
                    export_cast(ex, c->args[1], x->dtype)};
    onnx_add_text(&attrs, "mode", mode);
    return export_node(ex, "Pad", in, strcmp(mode, "constant") == 0 ? 3 : 2, &attrs, x->dtype,
                       x->rank);
}

Traced *export_mirror_pad(Export *ex, const ExportCall *c) {
    Traced *in[2] = {c->args[0], NULL};
    int64_t pads[2 * TENSOR_MAX_RANK];
    Str attrs = {0};
    if (strcmp(attrs_text(c->attrs, "mode"), "REFLECT") != 0)
        return call_refuse(ex, c, "that repeats the edge");
    if (!read_widths(c, pads))
        return call_refuse(ex, c, "by numbers that are not known");
    in[1] = traced_ints(pads, 2 * (uint32_t)in[0]->rank);
    onnx_add_text(&attrs, "mode", "reflect");
    return export_node(ex, "Pad", in, 2, &attrs, in[0]->dtype, in[0]->rank);
}
