/* SPDX-License-Identifier: Apache-2.0 */
/* nn.conv2d and its two partial derivatives. Each is one product over eight axes: batch n, group g,
 * output channel o and input channel c within the group, place y, x in the result, place i, j in
 * the kernel:
 *
 *     out[n, g o, y, x] = sum c i j   data[n, g c, y*sh + i*dh, x*sw + j*dw] * weight[g o, c, i, j]
 *
 * so that every tensor is read by plain strides. Padding, and the zeros between the places that a
 * stride above 1 skips in the derivative by data, are written out in a temporary first: a copy
 * costs little beside the product, whose loops then have no tests in them. */
#include <string.h>

#include "base/mem.h"
#include "ops/window.h"

enum { N_, C_, H_, W_ }; /* data and result */
enum { O_, I_ };         /* kernel, then H_ and W_ */

typedef struct Conv {
    Window w;
    int data[4], kernel[4], out[4]; /* where N C H W (kernel: O I H W) stand */
    int64_t n, groups, o, c;        /* o and c: of one group */
    int64_t size[2], count[2];      /* of the data and of the result */
} Conv;

static const char *conv_layouts(const Attrs *attrs, Conv *v) {
    const char *data = attrs_text(attrs, "data_layout"), *out = attrs_text(attrs, "out_layout");
    layout_read(data, "NCHW", v->data);
    layout_read(attrs_text(attrs, "kernel_layout"), "OIHW", v->kernel);
    layout_read(*out ? out : data, "NCHW", v->out);
    v->groups = attrs_int(attrs, "groups");
    return v->groups < 1 ? "groups is at least 1" : window_attrs(attrs, &v->w);
}

/* data and weight by their shapes; wrank etc. were checked. */
static bool conv_resolve(const OpCall *call, int rank, const int64_t *data, int wrank,
                         const int64_t *weight, Conv *v) {
    const char *problem = conv_layouts(call->attrs, v);
    if (!problem && (rank != 4 || wrank != 4))
        problem = "data and weight have 4 axes each";
    if (problem) {
        shape_error(call, rank != 4 || wrank != 4 ? DIAG_R0313 : DIAG_R0316, "%s", problem);
        return false;
    }
    v->n = data[v->data[N_]];
    v->c = weight[v->kernel[I_]];
    int64_t channels = data[v->data[C_]], o = weight[v->kernel[O_]];
    if (channels != v->c * v->groups) {
        shape_error(call, DIAG_R0314, "data has %lld channels; the weight wants %lld%s",
                    (long long)channels, (long long)(v->c * v->groups),
                    v->groups > 1 ? " over all groups" : "");
        return false;
    }
    if (o % v->groups) {
        shape_error(call, DIAG_R0316, "groups=%lld does not divide the %lld output channels",
                    (long long)v->groups, (long long)o);
        return false;
    }
    v->o = o / v->groups;
    const AttrValue *given = attrs_get(call->attrs, "channels");
    if (given->kind == ATTR_INT && given->i != o) {
        shape_error(call, DIAG_R0314, "channels=%lld, and the weight has %lld", (long long)given->i,
                    (long long)o);
        return false;
    }
    int64_t size[2];
    int nsize = attr_int_list(call->attrs, "kernel_size", size, 2);
    for (int j = 0; j < 2; j++) {
        v->w.kernel[j] = weight[v->kernel[H_ + j]];
        v->size[j] = data[v->data[H_ + j]];
        if (nsize > 0 && size[nsize == 1 ? 0 : j] != v->w.kernel[j]) {
            shape_error(call, DIAG_R0314, "kernel_size=[%lld, %lld] is not that of the weight %s",
                        (long long)size[0], (long long)size[nsize - 1], shape_text(4, weight));
            return false;
        }
        v->count[j] = window_count(&v->w, j, v->size[j], false);
        if (v->count[j] < 0 || v->w.kernel[j] < 1) {
            shape_error(call, DIAG_R0316, "a kernel of %s %lld does not fit %s of %lld",
                        j ? "width" : "height", (long long)v->w.kernel[j],
                        j ? "a width" : "a height", (long long)v->size[j]);
            return false;
        }
    }
    return true;
}

static void conv_out_shape(const Conv *v, int64_t *dims) {
    dims[v->out[N_]] = v->n;
    dims[v->out[C_]] = v->groups * v->o;
    dims[v->out[H_]] = v->count[0];
    dims[v->out[W_]] = v->count[1];
}

/* ---- the product ----------------------------------------------------------------------------- */

enum { AX_N, AX_G, AX_O, AX_C, AX_Y, AX_X, AX_I, AX_J, AX_COUNT };

typedef struct ConvAxes {
    int64_t extents[AX_COUNT], target[AX_COUNT], x[AX_COUNT], y[AX_COUNT];
    int64_t x_offset;
} ConvAxes;

/* target = x * y: the axes in `parallel` are the target's, ordered as they lie in it, the others
 * are summed over. */
static void conv_plan(Plan *plan, Tensor *target, const ConvAxes *a, uint32_t parallel,
                      const Tensor *x, const Tensor *y) {
    int order[AX_COUNT], n = 0;
    for (int i = 0; i < AX_COUNT; i++)
        if (parallel >> i & 1)
            order[n++] = i;
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && a->target[order[j - 1]] < a->target[order[j]]; j--) {
            int t = order[j];
            order[j] = order[j - 1];
            order[j - 1] = t;
        }
    Product p = {.rank = n, .x_offset = a->x_offset};
    for (int i = 0; i < AX_COUNT; i++)
        if (!(parallel >> i & 1))
            order[n++] = i;
    p.nreduce = n - p.rank;
    for (int i = 0; i < n; i++) {
        p.extents[i] = a->extents[order[i]];
        p.out_strides[i] = a->target[order[i]];
        p.x_strides[i] = a->x[order[i]];
        p.y_strides[i] = a->y[order[i]];
    }
    plan_product(plan, target, &p, x, y);
}

static void weight_strides(const Conv *v, const Tensor *w, int64_t *s) {
    s[AX_G] = v->o * w->strides[v->kernel[O_]];
    s[AX_O] = w->strides[v->kernel[O_]];
    s[AX_C] = w->strides[v->kernel[I_]];
    s[AX_I] = w->strides[v->kernel[H_]];
    s[AX_J] = w->strides[v->kernel[W_]];
}

static void result_strides(const Conv *v, const Tensor *t, int64_t *s) {
    s[AX_N] = t->strides[v->out[N_]];
    s[AX_G] = v->o * t->strides[v->out[C_]];
    s[AX_O] = t->strides[v->out[C_]];
    s[AX_Y] = t->strides[v->out[H_]];
    s[AX_X] = t->strides[v->out[W_]];
}

/* data with its padding, read through the windows. */
static void data_strides(const Conv *v, const Tensor *t, int64_t *s) {
    int64_t h = t->strides[v->data[H_]], w = t->strides[v->data[W_]];
    s[AX_N] = t->strides[v->data[N_]];
    s[AX_G] = v->c * t->strides[v->data[C_]];
    s[AX_C] = t->strides[v->data[C_]];
    s[AX_Y] = v->w.stride[0] * h;
    s[AX_X] = v->w.stride[1] * w;
    s[AX_I] = v->w.dilation[0] * h;
    s[AX_J] = v->w.dilation[1] * w;
}

static const Tensor *padded(Plan *plan, const Conv *v, const Tensor *data) {
    int64_t size[2], one[2] = {1, 1};
    bool any = false;
    for (int j = 0; j < 2; j++) {
        size[j] = v->size[j] + v->w.before[j] + v->w.after[j];
        any |= size[j] != v->size[j];
    }
    return any ? plan_spread(plan, data, v->data + H_, v->w.before, one, size) : data;
}

static void conv_axes(const Conv *v, ConvAxes *a) {
    *a = (ConvAxes){.extents = {v->n, v->groups, v->o, v->c, v->count[0], v->count[1],
                                v->w.kernel[0], v->w.kernel[1]}};
}

/* ---- nn.conv2d ------------------------------------------------------------------------------- */

static bool conv_call(const OpCall *call, int data, int weight, Conv *v) {
    const Tensor *x = call->in[data], *w = call->in[weight];
    return shape_check_same_dtype(call, data, weight) &&
           conv_resolve(call, x->rank, x->shape, w->rank, w->shape, v);
}

static int shape_conv2d(const OpCall *call, OutSpec *out) {
    Conv v;
    int64_t dims[4];
    if (!conv_call(call, 0, 1, &v))
        return -1;
    conv_out_shape(&v, dims);
    DType dtype = shape_attr_dtype(call, "out_dtype", call->in[0]->dtype);
    return shape_set(call, out, dtype, 4, dims) ? 1 : -1;
}

/* What of channels and kernel size is given, and the data, tell the weight's sizes. */
static bool solve_weight(Solver *s, Relation *r, const Conv *v, Type **data, Type *dtype) {
    int64_t size[2];
    int n = attr_int_list(r->attrs, "kernel_size", size, 2);
    const AttrValue *channels = attrs_get(r->attrs, "channels");
    bool outer = channels->kind == ATTR_INT;
    if (n < 1 && !outer)
        return true;
    Type *dims[4];
    for (int i = 0; i < 4; i++)
        dims[i] = solver_var(s, KIND_DIM);
    if (outer)
        dims[v->kernel[O_]] = rel_int_dim(r, channels->i);
    if (n >= 1 && outer)
        dims[v->kernel[I_]] = v->groups == 1
                                  ? data[v->data[C_]]
                                  : dim_floordiv(data[v->data[C_]], rel_int_dim(r, v->groups));
    if (n >= 1) {
        dims[v->kernel[H_]] = rel_int_dim(r, size[0]);
        dims[v->kernel[W_]] = rel_int_dim(r, size[n - 1]);
    }
    return rel_unify(s, r, 1, type_tensor(type_shape(dims, 4), dtype));
}

static RelStatus relate_conv2d(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    Conv v;
    const char *problem = conv_layouts(r->attrs, &v);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`nn.conv2d`: %s", problem);
        return REL_FAIL;
    }
    uint32_t rank;
    Type **data, **weight, *dtype = rel_dtype_in(r->args[0]);
    if (!rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)))
        return REL_FAIL;
    for (int i = 0; i < 2; i++) {
        if (!rel_make_rank(s, r, i, 4))
            return REL_FAIL;
        rel_rank_in(r->args[i], &rank, &data);
        if (rank == 4)
            continue;
        rel_error(s, r, DIAG_R0313, "`nn.conv2d`: `%s` has %u axes and needs 4",
                  i ? "weight" : "data", rank);
        return REL_FAIL;
    }
    rel_rank_in(r->args[0], &rank, &data);
    if (!solve_weight(s, r, &v, data, dtype))
        return REL_FAIL;
    rel_rank_in(r->args[1], &rank, &weight);
    Type *c = weight[v.kernel[I_]];
    if (v.groups != 1)
        c = dim_mul(c, rel_int_dim(r, v.groups));
    if (!rel_unify_dim(s, r, data[v.data[C_]], c, 0, v.data[C_]))
        return REL_FAIL;
    Type *out[4];
    out[v.out[N_]] = data[v.data[N_]];
    out[v.out[C_]] = weight[v.kernel[O_]];
    for (int j = 0; j < 2; j++) {
        Type *k = weight[v.kernel[H_ + j]];
        out[v.out[H_ + j]] = window_count_dim(r, &v.w, j, data[v.data[H_ + j]], k, false);
    }
    dtype = rel_attr_dtype(r, "out_dtype", dtype);
    return rel_result(s, r, out, 4, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_conv2d(const OpCall *call, Tensor *const *out, Plan *plan) {
    Conv v;
    ConvAxes a;
    if (!conv_call(call, 0, 1, &v))
        return false;
    conv_axes(&v, &a);
    const Tensor *x = padded(plan, &v, call->in[0]);
    data_strides(&v, x, a.x);
    weight_strides(&v, call->in[1], a.y);
    result_strides(&v, out[0], a.target);
    uint32_t parallel = 1u << AX_N | 1u << AX_G | 1u << AX_O | 1u << AX_Y | 1u << AX_X;
    conv_plan(plan, out[0], &a, parallel, x, call->in[1]);
    return true;
}

/* Data and weight, in the order of their layouts: n, c, h, w and o, c / groups, i, j. */
static void write_conv_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    static const char *const of_data[] = {"n", "c", "h", "w"};
    static const char *const of_weight[] = {"o", "c", "i", "j"};
    Conv v;
    (void)nin;
    (void)ranks;
    if (conv_layouts(attrs, &v))
        return;
    for (int arg = 0; arg < 2; arg++) {
        str_add(out, arg ? ", (" : "(");
        for (int place = 0; place < 4; place++)
            for (int k = 0; k < 4; k++) {
                if ((arg ? v.kernel : v.data)[k] != place)
                    continue;
                str_printf(out, "%s%s", place ? ", " : "", (arg ? of_weight : of_data)[k]);
                if (arg && k == I_ && v.groups > 1)
                    str_printf(out, "/%lld", (long long)v.groups);
            }
        str_add(out, ")");
    }
}

static const RelDef rel_conv2d = {"Conv2D", relate_conv2d, 3, false};
static const AttrSpec conv_attrs[] = {
    {"strides", AT_INTS, "[1, 1]", "steps of the window, height and width"},
    {"padding", AT_INTS, "[0, 0]",
     "zeros around: both; height, width; or top, left, bottom, right"},
    {"dilation", AT_INTS, "[1, 1]", "steps within the window"},
    {"groups", AT_INT, "1", "channels are split into this many independent groups"},
    {"channels", AT_INT_OPT, "None", "output channels, where the weight is determined by it"},
    {"kernel_size", AT_INTS_OPT, "None", "height and width of the window, likewise"},
    {"data_layout", AT_STRING, "\"NCHW\"", "what data's axes are"},
    {"kernel_layout", AT_STRING, "\"OIHW\"", "what the weight's axes are"},
    {"out_layout", AT_STRING, "\"\"", "what the result's axes are; empty: as data's"},
    {"out_dtype", AT_DTYPE, "None", "of the result; None: that of the arguments"},
};
const Op op_nn_conv2d = {
    .name = "nn.conv2d",
    .args = "data, weight",
    .nargs = 2,
    .write_sizes = write_conv_sizes,
    .attrs = conv_attrs,
    .nattrs = 10,
    .choices = "data_layout: *NCHW; kernel_layout: *OIHW; out_layout: *NCHW -",
    .relation = &rel_conv2d,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_conv2d,
    .refuses_sizes = true,
    .lower = lower_conv2d,
    .doc = "Two-dimensional convolution (the kernel is not flipped): data (n, c, h, w) and weight\n"
           "(o, c / groups, i, j) give (n, o, y, x).",
    .example = "nn.conv2d([[[[1.0, 2.0, 3.0]]]], [[[[1.0, 10.0]]]])",
    .example_result = "[[[[21.0, 32.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.max_pool2d, nn.pad",
};

/* ---- by data --------------------------------------------------------------------------------- */

static bool check_result(const OpCall *call, int arg, const Conv *v) {
    const Tensor *g = call->in[arg];
    int64_t dims[4];
    conv_out_shape(v, dims);
    if (g->rank == 4 && !memcmp(g->shape, dims, sizeof dims))
        return true;
    shape_error(call, DIAG_R0314, "`%s` has shape %s, the convolution %s",
                shape_arg_name(call, arg), shape_text(g->rank, g->shape), shape_text(4, dims));
    return false;
}

/* (grad, weight, data): data's shape. */
static int shape_conv2d_data(const OpCall *call, OutSpec *out) {
    Conv v;
    if (!conv_call(call, 2, 1, &v) || !shape_check_same_dtype(call, 0, 1) ||
        !check_result(call, 0, &v))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, 4, call->in[2]->shape) ? 1 : -1;
}

static RelStatus relate_third(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM, DTS_NUM}, &status))
        return status;
    Type *dtype = rel_dtype_in(r->args[0]);
    for (int i = 0; i < 3; i++)
        if (!rel_make_rank(s, r, i, 4) ||
            !rel_unify(s, r, i, type_tensor(rel_shape_in(r->args[i]), dtype)))
            return REL_FAIL;
    return rel_result_type(s, r, r->args[2]) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* data's place h meets the result's place y where h + before = y * stride + i * dilation. So the
 * cotangent is spread out by the stride, with room for the kernel before it, and read backwards. */
static bool lower_conv2d_data(const OpCall *call, Tensor *const *out, Plan *plan) {
    Conv v;
    ConvAxes a;
    if (!conv_call(call, 2, 1, &v))
        return false;
    conv_axes(&v, &a);
    int64_t room[2], size[2];
    for (int j = 0; j < 2; j++) {
        room[j] = (v.w.kernel[j] - 1) * v.w.dilation[j];
        int64_t last = v.size[j] - 1 + v.w.before[j], spread = (v.count[j] - 1) * v.w.stride[j];
        size[j] = (last > spread ? last : spread) + room[j] + 1;
        if (size[j] < 1)
            size[j] = 1;
    }
    Tensor *g = plan_spread(plan, call->in[0], v.out + H_, room, v.w.stride, size);
    result_strides(&v, g, a.x);
    a.x[AX_I] = -v.w.dilation[0] * a.x[AX_Y];
    a.x[AX_J] = -v.w.dilation[1] * a.x[AX_X];
    a.x_offset = (v.w.before[0] + room[0]) * a.x[AX_Y] + (v.w.before[1] + room[1]) * a.x[AX_X];
    weight_strides(&v, call->in[1], a.y);
    /* AX_Y and AX_X run over data's places here */
    a.extents[AX_Y] = v.size[0];
    a.extents[AX_X] = v.size[1];
    a.target[AX_N] = out[0]->strides[v.data[N_]];
    a.target[AX_G] = v.c * out[0]->strides[v.data[C_]];
    a.target[AX_C] = out[0]->strides[v.data[C_]];
    a.target[AX_Y] = out[0]->strides[v.data[H_]];
    a.target[AX_X] = out[0]->strides[v.data[W_]];
    uint32_t parallel = 1u << AX_N | 1u << AX_G | 1u << AX_C | 1u << AX_Y | 1u << AX_X;
    conv_plan(plan, out[0], &a, parallel, g, call->in[1]);
    return true;
}

static const RelDef rel_conv2d_data = {"Conv2DData", relate_third, 4, false};
const Op op_nn_conv2d_data = {
    .name = "nn.conv2d_data",
    .args = "grad, weight, data",
    .nargs = 3,
    .attrs = conv_attrs,
    .nattrs = 10,
    .choices = "data_layout: *NCHW; kernel_layout: *OIHW; out_layout: *NCHW -",
    .relation = &rel_conv2d_data,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_conv2d_data,
    .refuses_sizes = true,
    .lower = lower_conv2d_data,
    .doc = "The derivative of nn.conv2d by data, of which only the shape matters: a transposed\n"
           "convolution of grad.",
    .example = "nn.conv2d_data([[[[1.0, 2.0]]]], [[[[1.0, 10.0]]]], [[[[0.0, 0.0, 0.0]]]])",
    .example_result = "[[[[ 1.0, 12.0, 20.0]]]] : Tensor[(1, 1, 1, 3), float32]",
    .see_also = "nn.conv2d",
};

/* ---- by weight ------------------------------------------------------------------------------- */

static void weight_product(Plan *plan, const Conv *v, Tensor *out, const Tensor *grad,
                           const Tensor *data) {
    ConvAxes a;
    conv_axes(v, &a);
    const Tensor *x = padded(plan, v, data);
    result_strides(v, grad, a.x);
    data_strides(v, x, a.y);
    weight_strides(v, out, a.target);
    uint32_t parallel = 1u << AX_G | 1u << AX_O | 1u << AX_C | 1u << AX_I | 1u << AX_J;
    conv_plan(plan, out, &a, parallel, grad, x);
}

/* (grad, data, weight): the weight's shape. */
static int shape_conv2d_weight(const OpCall *call, OutSpec *out) {
    Conv v;
    if (!conv_call(call, 1, 2, &v) || !shape_check_same_dtype(call, 0, 1) ||
        !check_result(call, 0, &v))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, 4, call->in[2]->shape) ? 1 : -1;
}

static bool lower_conv2d_weight(const OpCall *call, Tensor *const *out, Plan *plan) {
    Conv v;
    if (!conv_call(call, 1, 2, &v))
        return false;
    weight_product(plan, &v, out[0], call->in[0], call->in[1]);
    return true;
}

static const RelDef rel_conv2d_weight = {"Conv2DWeight", relate_third, 4, false};
const Op op_nn_conv2d_weight = {
    .name = "nn.conv2d_weight",
    .args = "grad, data, weight",
    .nargs = 3,
    .attrs = conv_attrs,
    .nattrs = 10,
    .choices = "data_layout: *NCHW; kernel_layout: *OIHW; out_layout: *NCHW -",
    .relation = &rel_conv2d_weight,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_conv2d_weight,
    .refuses_sizes = true,
    .lower = lower_conv2d_weight,
    .doc = "The derivative of nn.conv2d by its weight, of which only the shape matters.",
    .example = "nn.conv2d_weight([[[[1.0, 2.0]]]], [[[[1.0, 2.0, 3.0]]]], [[[[0.0, 0.0]]]])",
    .example_result = "[[[[5.0, 8.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.conv2d",
};

/* TVM's operator takes the kernel's size as an attribute. */
static bool backward_weight(const OpCall *call, Conv *v, int64_t *dims) {
    const Tensor *g = call->in[0], *x = call->in[1];
    int64_t size[2];
    int n = attr_int_list(call->attrs, "kernel_size", size, 2);
    const char *problem = conv_layouts(call->attrs, v);
    if (!problem && n < 1)
        problem = "kernel_size must be given";
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return false;
    }
    if (!shape_check_rank(call, 0, 4) || !shape_check_rank(call, 1, 4) ||
        !shape_check_same_dtype(call, 0, 1))
        return false;
    dims[v->kernel[O_]] = g->shape[v->out[C_]];
    dims[v->kernel[I_]] = x->shape[v->data[C_]] / v->groups;
    dims[v->kernel[H_]] = size[0];
    dims[v->kernel[W_]] = size[n - 1];
    return conv_resolve(call, 4, x->shape, 4, dims, v) && check_result(call, 0, v);
}

static int shape_backward_weight(const OpCall *call, OutSpec *out) {
    Conv v;
    int64_t dims[4];
    if (!backward_weight(call, &v, dims))
        return -1;
    return shape_set(call, out, shape_attr_dtype(call, "out_dtype", call->in[0]->dtype), 4, dims)
               ? 1
               : -1;
}

static RelStatus relate_backward_weight(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    Conv v;
    uint32_t ng, nx;
    Type **g, **x, *dims[4], *dtype = rel_dtype_in(r->args[0]);
    int64_t size[2];
    int n = attr_int_list(r->attrs, "kernel_size", size, 2);
    const char *problem = conv_layouts(r->attrs, &v);
    if (!problem && n < 1)
        problem = "kernel_size must be given";
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    if (!rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)))
        return REL_FAIL;
    if (!rel_make_rank(s, r, 0, 4) || !rel_make_rank(s, r, 1, 4) ||
        !rel_rank_in(r->args[0], &ng, &g) || !rel_rank_in(r->args[1], &nx, &x))
        return REL_FAIL;
    if (ng != 4 || nx != 4) {
        rel_error(s, r, DIAG_R0313, "`%s`: grad and data have 4 axes each", r->op->name);
        return REL_FAIL;
    }
    dims[v.kernel[O_]] = g[v.out[C_]];
    dims[v.kernel[I_]] = v.groups == 1 ? x[v.data[C_]]
                                       : dim_floordiv(x[v.data[C_]], rel_int_dim(r, v.groups));
    dims[v.kernel[H_]] = rel_int_dim(r, size[0]);
    dims[v.kernel[W_]] = rel_int_dim(r, size[n - 1]);
    dtype = rel_attr_dtype(r, "out_dtype", dtype);
    return rel_result(s, r, dims, 4, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_backward_weight(const OpCall *call, Tensor *const *out, Plan *plan) {
    Conv v;
    int64_t dims[4];
    if (!backward_weight(call, &v, dims))
        return false;
    weight_product(plan, &v, out[0], call->in[0], call->in[1]);
    return true;
}

static const RelDef rel_backward_weight = {"Conv2DBackwardWeight", relate_backward_weight, 3,
                                           false};
const Op op_nn_conv2d_backward_weight = {
    .name = "nn.conv2d_backward_weight",
    .args = "grad, data",
    .nargs = 2,
    .attrs = conv_attrs,
    .nattrs = 10,
    .choices = "data_layout: *NCHW; kernel_layout: *OIHW; out_layout: *NCHW -",
    .relation = &rel_backward_weight,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_backward_weight,
    .refuses_sizes = true,
    .lower = lower_backward_weight,
    .doc = "The derivative of nn.conv2d by its weight, whose size is the attribute kernel_size.",
    .example =
        "nn.conv2d_backward_weight([[[[1.0, 2.0]]]], [[[[1.0, 2.0, 3.0]]]], kernel_size=[1, 2])",
    .example_result = "[[[[5.0, 8.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.conv2d, nn.conv2d_weight",
};
