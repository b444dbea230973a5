/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives of convolutions and pools as ONNX nodes, of sizes that are known: transposed convolutions, convolutions
 * over the batch, and the places of what is largest. */
#include <string.h>

#include "interchange/export_ops.h"
#include "ops/ops.h"

typedef struct Window {
    int sides;
    int64_t kernel[3], strides[3], dilation[3], pads[6]; /* pads: before each side, then after */
} Window;

static void read_sides(const Attrs *attrs, const char *name, int sides, int64_t *out) {
    const int64_t *list = NULL;
    uint32_t n = 0;
    bool given = attrs_find(attrs, name) && attrs_ints(attrs, name, &list, &n) && n;
    for (int i = 0; i < sides; i++)
        out[i] = given ? list[(int)n == sides ? i : 0] : 1;
}

static bool read_window(const ExportCall *c, const Traced *data, Window *w) {
    w->sides = data->rank - 2;
    if (w->sides < 1 || w->sides > 3 || !data->shape || !c->args[0]->shape ||
        !export_read_pads(c->attrs, w->sides, w->pads))
        return false;
    read_sides(c->attrs, "strides", w->sides, w->strides);
    read_sides(c->attrs, "dilation", w->sides, w->dilation);
    return true;
}

static void add_window(Str *attrs, const Window *w, const int64_t *strides,
                       const int64_t *dilation) {
    onnx_add_ints(attrs, "strides", strides, (uint32_t)w->sides);
    onnx_add_ints(attrs, "dilations", dilation, (uint32_t)w->sides);
    onnx_add_ints(attrs, "pads", w->pads, 2 * (uint32_t)w->sides);
}

/* x spread by the weight over the shape of data. Places behind the last window get nothing. */
static Traced *spread(Export *ex, Traced *x, Traced *weight, const Traced *data, const Window *w,
                      int64_t groups) {
    int64_t more[3];
    Str attrs = {0};
    for (int i = 0; i < w->sides; i++)
        more[i] = data->shape[i + 2] -
                  ((x->shape[i + 2] - 1) * w->strides[i] - w->pads[i] - w->pads[i + w->sides] +
                   w->dilation[i] * (w->kernel[i] - 1) + 1);
    add_window(&attrs, w, w->strides, w->dilation);
    onnx_add_ints(&attrs, "output_padding", more, (uint32_t)w->sides);
    onnx_add_int(&attrs, "group", groups);
    Traced *in[] = {x, weight};
    return export_node(ex, "ConvTranspose", in, 2, &attrs, x->dtype, x->rank);
}

static bool is_plain(const ExportCall *c, int sides) {
    return export_has_usual_layouts(c->attrs, sides) && !attrs_bool(c->attrs, "transposed") &&
           share_dtype(c->args, 3) && dtype_is_float(c->args[0]->dtype);
}

/* (grad, weight, data) */
Traced *export_conv_data(Export *ex, const ExportCall *c) {
    Window w;
    const Traced *weight = c->args[1], *data = c->args[2];
    if (!read_window(c, data, &w) || !weight->shape || !is_plain(c, w.sides))
        return call_refuse(ex, c, "of sizes that are not known, or of another layout than NCHW");
    for (int i = 0; i < w.sides; i++)
        w.kernel[i] = weight->shape[i + 2];
    return spread(ex, c->args[0], c->args[1], data, &w, attrs_int(c->attrs, "groups"));
}

static Traced *reshaped(Export *ex, Traced *x, const int64_t *sizes, int rank) {
    return emit_reshape(ex, x, traced_ints(sizes, (uint32_t)rank), rank);
}

/* The first two axes exchanged. */
static Traced *turned(Export *ex, Traced *x) {
    int64_t perm[TENSOR_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        perm[i] = i > 1 ? i : 1 - i;
    return emit_permuted(ex, x, perm);
}

/* data (n, g c, …) as (c, g n, …): the batch is what a convolution sums over. */
static Traced *batch_as_channels(Export *ex, Traced *data, int64_t groups) {
    int64_t sizes[TENSOR_MAX_RANK + 1], perm[TENSOR_MAX_RANK + 1];
    int rank = data->rank;
    if (groups == 1)
        return turned(ex, data);
    sizes[0] = data->shape[0];
    sizes[1] = groups;
    sizes[2] = data->shape[1] / groups;
    for (int i = 2; i < rank; i++)
        sizes[i + 1] = data->shape[i];
    for (int i = 0; i <= rank; i++)
        perm[i] = i > 2 ? i : 2 - i;
    Traced *moved = emit_permuted(ex, reshaped(ex, data, sizes, rank + 1), perm);
    sizes[0] = data->shape[1] / groups;
    sizes[1] = groups * data->shape[0];
    for (int i = 2; i < rank; i++)
        sizes[i] = data->shape[i];
    return reshaped(ex, moved, sizes, rank);
}

/* (grad, data, weight): data convolved with grad, whose steps are those within the window and the other way about; what
 * hangs over the weight is cut off. */
Traced *export_conv_weight(Export *ex, const ExportCall *c) {
    Window w;
    Traced *data = c->args[1];
    const Traced *weight = c->args[2];
    int64_t groups = attrs_int(c->attrs, "groups");
    int64_t begin[3], end[3], axes[3], steps[3];
    Str attrs = {0};
    if (!read_window(c, data, &w) || !weight->shape || !is_plain(c, w.sides))
        return call_refuse(ex, c, "of sizes that are not known, or of another layout than NCHW");
    add_window(&attrs, &w, w.dilation, w.strides);
    onnx_add_int(&attrs, "group", groups);
    Traced *in[] = {batch_as_channels(ex, data, groups), turned(ex, c->args[0])};
    Traced *made = export_node(ex, "Conv", in, 2, &attrs, data->dtype, data->rank);
    for (int i = 0; i < w.sides; i++) {
        begin[i] = 0;
        end[i] = weight->shape[i + 2];
        axes[i] = i + 2;
        steps[i] = 1;
    }
    return emit_slice(ex, turned(ex, made), begin, end, axes, steps, (uint32_t)w.sides);
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* (grad, data); a pool that says how many windows it has must have them of one size, beside each other. */
static bool read_pool(const ExportCall *c, Window *w) {
    const Traced *data = c->args[1];
    const int64_t *counts = NULL;
    uint32_t n = 0;
    if (!read_window(c, data, w) || !export_has_usual_layouts(c->attrs, w->sides) ||
        !share_dtype(c->args, 2))
        return false;
    bool counted = attrs_find(c->attrs, "output_size") &&
                   attrs_ints(c->attrs, "output_size", &counts, &n) && n;
    if (!counted) {
        read_sides(c->attrs, "pool_size", w->sides, w->kernel);
        return true;
    }
    for (int i = 0; i < w->sides; i++) {
        int64_t many = c->args[0]->shape[i + 2];
        w->kernel[i] = many ? data->shape[i + 2] / many : 0;
        w->strides[i] = w->kernel[i];
        w->dilation[i] = 1;
        w->pads[i] = w->pads[i + w->sides] = 0;
        if (!many || w->kernel[i] * many != data->shape[i + 2])
            return false;
    }
    return true;
}

static const char *const not_taken = "of sizes that are not known, of windows of several sizes, or "
                                     "of another layout than NCHW";

/* To the first of the largest elements of each window. */
Traced *export_max_pool_grad(Export *ex, const ExportCall *c) {
    Window w;
    Traced *data = c->args[1];
    Str attrs = {0}, adds = {0};
    if (!read_pool(c, &w))
        return call_refuse(ex, c, not_taken);
    const char *names[] = {export_name(ex, NULL), export_name(ex, NULL)};
    add_window(&attrs, &w, w.strides, w.dilation);
    onnx_add_ints(&attrs, "kernel_shape", w.kernel, (uint32_t)w.sides);
    onnx_add_int(&attrs, "ceil_mode", attrs_bool(c->attrs, "ceil_mode"));
    export_node_outputs(ex, "MaxPool", &data, 1, &attrs, names, 2);
    onnx_add_text(&adds, "reduction", "add");
    int64_t all = -1;
    Traced *zeros = export_default(ex, &op_zeros_like, c->span, &data, 1);
    if (zeros->kind != TRACED_TENSOR)
        return zeros;
    Traced *in[] = {reshaped(ex, zeros, &all, 1),
                    reshaped(ex, traced_named(names[1], DT_I64, data->rank), &all, 1),
                    reshaped(ex, c->args[0], &all, 1)};
    Traced *sum = export_node(ex, "ScatterElements", in, 3, &adds, data->dtype, 1);
    return reshaped(ex, sum, data->shape, data->rank);
}

/* How many elements of data lie in each window, one tensor (1, 1, …). */
static Tensor *count_window(const Window *w, const Traced *data, const Traced *grad) {
    int64_t shape[5] = {1, 1};
    for (int i = 0; i < w->sides; i++)
        shape[i + 2] = grad->shape[i + 2];
    Tensor *t = tensor_new(data->dtype, w->sides + 2, shape);
    for (int64_t k = 0; k < t->count; k++) {
        int64_t rest = k, count = 1;
        for (int i = w->sides; i-- > 0; rest /= shape[i + 2]) {
            int64_t from = rest % shape[i + 2] * w->strides[i] - w->pads[i], in = 0;
            for (int64_t j = 0; j < w->kernel[i]; j++) {
                int64_t at = from + j * w->dilation[i];
                in += at >= 0 && at < data->shape[i + 2];
            }
            count *= in;
        }
        double value = (double)(count ? count : 1);
        elem_cast(tensor_at(t, k), t->dtype, &value, DT_F64);
    }
    return t;
}

/* Each window's share to all of its elements: a transposed convolution with ones, each channel for itself. */
Traced *export_avg_pool_grad(Export *ex, const ExportCall *c) {
    Window w;
    Traced *data = c->args[1];
    int64_t shape[5], count = 1;
    if (!read_pool(c, &w) || attrs_bool(c->attrs, "ceil_mode"))
        return call_refuse(ex, c, not_taken);
    shape[0] = data->shape[1];
    shape[1] = 1;
    for (int i = 0; i < w.sides; i++) {
        shape[i + 2] = w.kernel[i];
        count *= w.kernel[i];
    }
    Tensor *ones = tensor_new(data->dtype, w.sides + 2, shape);
    double one = 1.0;
    for (int64_t i = 0; i < ones->count; i++)
        elem_cast(tensor_at(ones, i), ones->dtype, &one, DT_F64);
    bool all = attrs_bool(c->attrs, "count_include_pad");
    Traced *by = all ? traced_int(ex, data->dtype, count)
                     : traced_constant(count_window(&w, data, c->args[0]));
    Traced *share = emit_binary(ex, "Div", c->args[0], by);
    share->shape = c->args[0]->shape;
    return spread(ex, share, traced_constant(ones), data, &w, shape[0]);
}
