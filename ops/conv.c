/* SPDX-License-Identifier: Apache-2.0 */
/* nn.conv1d, nn.conv2d, nn.conv3d and nn.conv, which is all of them: see ops/conv.h. */
#include "ops/conv.h"

#include <string.h>

#include "base/mem.h"
#include "ops/packed.h"

/* ---- attributes and sizes -------------------------------------------------------------------- */

const char *conv_read(const Attrs *attrs, Conv *v) {
    const AttrValue *transposed = attrs_find(attrs, "transposed");
    const char *data = attrs_text(attrs, "data_layout"), *out = attrs_text(attrs, "out_layout");
    if (!*out)
        out = data;
    v->transposed = transposed ? transposed->i : attrs->op->variant == CONV_TRANSPOSED;
    v->rank = (int)strlen(data);
    v->w.sides = v->rank - CONV_SIDE;
    if (!layout_read(v->transposed ? out : data, layout_letters("NC", v->w.sides), v->data) ||
        !layout_read(v->transposed ? data : out, layout_letters("NC", v->w.sides), v->out) ||
        !layout_read(attrs_text(attrs, "kernel_layout"),
                     layout_letters(v->transposed ? "IO" : "OI", v->w.sides), v->kernel))
        return "the layouts have different axes";
    v->groups = attrs_int(attrs, "groups");
    return v->groups < 1 ? "groups is at least 1" : window_attrs(attrs, &v->w);
}

static const char *list_text(int n, const int64_t *list) {
    Str s = {0};
    for (int i = 0; i < n; i++)
        str_printf(&s, "%s%lld", i ? ", " : "[", (long long)list[i]);
    str_add(&s, "]");
    return str_text(&s);
}

/* The sides of the kernel are those of the weight, and kernel_size says nothing else. */
static bool resolve_kernel(const OpCall *call, const int64_t *weight, Conv *v) {
    int64_t size[WINDOW_SIDES];
    int n = attr_int_list(call->attrs, "kernel_size", size, WINDOW_SIDES);
    for (int j = 0; j < v->w.sides; j++) {
        v->w.kernel[j] = weight[v->kernel[CONV_SIDE + j]];
        if (n > 0 && size[n == 1 ? 0 : j] != v->w.kernel[j]) {
            shape_error(call, DIAG_R0314, "kernel_size=%s is not that of the weight %s",
                        list_text(n, size), shape_text(v->rank, weight));
            return false;
        }
    }
    return true;
}

static bool check_channels(const OpCall *call, int64_t channels) {
    const AttrValue *given = attrs_get(call->attrs, "channels");
    if (given->kind != ATTR_INT || given->i == channels)
        return true;
    shape_error(call, DIAG_R0314, "channels=%lld, and the weight has %lld", (long long)given->i,
                (long long)channels);
    return false;
}

bool conv_resolve_weight(const OpCall *call, int rank, int wrank, const int64_t *weight, Conv *v) {
    const char *problem = conv_read(call->attrs, v);
    bool ranks = rank == v->rank && wrank == v->rank;
    if (!problem && !ranks)
        problem = fmt_text("data and weight have %d axes each", v->rank);
    if (problem) {
        shape_error(call, !ranks ? DIAG_R0313 : DIAG_R0316, "%s", problem);
        return false;
    }
    int64_t o = weight[v->kernel[CONV_O]];
    v->c = weight[v->kernel[CONV_I]];
    if (o % v->groups) {
        shape_error(call, DIAG_R0316, "groups=%lld does not divide the %lld %s channels",
                    (long long)v->groups, (long long)o, v->transposed ? "input" : "output");
        return false;
    }
    v->o = o / v->groups;
    return check_channels(call, v->transposed ? size_multiply(v->c, v->groups) : o) &&
           resolve_kernel(call, weight, v);
}

bool conv_resolve(const OpCall *call, int rank, const int64_t *data, int wrank,
                  const int64_t *weight, Conv *v) {
    if (!conv_resolve_weight(call, rank, wrank, weight, v))
        return false;
    v->n = data[v->data[CONV_N]];
    int64_t channels = data[v->data[CONV_C]];
    if (channels != size_multiply(v->c, v->groups)) {
        shape_error(call, DIAG_R0314, "data has %lld channels; the weight wants %lld%s",
                    (long long)channels, (long long)size_multiply(v->c, v->groups),
                    v->groups > 1 ? " over all groups" : "");
        return false;
    }
    for (int j = 0; j < v->w.sides; j++) {
        v->size[j] = data[v->data[CONV_SIDE + j]];
        v->count[j] = window_count(&v->w, j, v->size[j], false);
        if (v->count[j] < 0 || v->w.kernel[j] < 1) {
            const char *side = side_name(v->w.sides, j);
            shape_error(call, DIAG_R0316, "a kernel of %s %lld does not fit a %s of %lld", side,
                        (long long)v->w.kernel[j], side, (long long)v->size[j]);
            return false;
        }
    }
    return true;
}

bool conv_call(const OpCall *call, int data, int weight, Conv *v) {
    const Tensor *x = call->in[data], *w = call->in[weight];
    return shape_check_dtype(call, data, DTS_NUM) && shape_check_same_dtype(call, data, weight) &&
           conv_resolve(call, x->rank, x->shape, w->rank, w->shape, v);
}

void conv_out_shape(const Conv *v, int64_t *dims) {
    dims[v->out[CONV_N]] = v->n;
    dims[v->out[CONV_C]] = v->groups * v->o;
    for (int j = 0; j < v->w.sides; j++)
        dims[v->out[CONV_SIDE + j]] = v->count[j];
}

bool conv_check_result(const OpCall *call, int arg, const Conv *v) {
    const Tensor *g = call->in[arg];
    int64_t dims[CONV_RANK];
    conv_out_shape(v, dims);
    if (g->rank == v->rank && !memcmp(g->shape, dims, sizeof *dims * (size_t)v->rank))
        return true;
    shape_error(call, DIAG_R0314, "`%s` has shape %s, the convolution %s",
                shape_arg_name(call, arg), shape_text(g->rank, g->shape),
                shape_text(v->rank, dims));
    return false;
}

/* ---- relations ------------------------------------------------------------------------------- */

bool conv_solve_weight(Solver *s, Relation *r, const Conv *v, Type **data, Type *dtype) {
    int64_t size[WINDOW_SIDES];
    bool sized = window_list(attrs_with_unit_sizes(r->attrs), "kernel_size", v->w.sides, INT64_MIN,
                             size);
    const AttrValue *channels = attrs_get(r->attrs, "channels");
    bool outer = channels->kind != ATTR_NONE;
    if (!sized && !outer)
        return true;
    /* the letters of the weight that lie along data's channels and along the result's */
    int from = v->transposed ? CONV_O : CONV_I, to = v->transposed ? CONV_I : CONV_O;
    Type *dims[CONV_RANK], *groups = rel_int_dim(r, v->groups);
    for (int i = 0; i < v->rank; i++)
        dims[i] = solver_var(s, KIND_DIM);
    const int *own = v->transposed ? v->out : v->data;
    Type *in = data[own[CONV_C]], *out = outer ? rel_attr_item(r, "channels", 0) : NULL;
    if (outer)
        dims[v->kernel[to]] = v->transposed && v->groups != 1 ? dim_floordiv(out, groups) : out;
    if (sized && outer)
        dims[v->kernel[from]] = v->transposed || v->groups == 1 ? in : dim_floordiv(in, groups);
    for (int j = 0; sized && j < v->w.sides; j++)
        dims[v->kernel[CONV_SIDE + j]] = rel_attr_item(r, "kernel_size", j);
    return rel_unify(s, r, 1, type_tensor(type_shape(dims, (uint32_t)v->rank), dtype));
}

bool conv_relate(Solver *s, Relation *r, Conv *v, Type ***data, Type ***weight) {
    const char *problem = conv_read(attrs_with_unit_sizes(r->attrs), v);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return false;
    }
    uint32_t rank;
    Type *dtype = rel_dtype_in(r->args[0]);
    if (!rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)) ||
        !window_make_ranks(s, r, 2, v->rank))
        return false;
    rel_rank_in(r->args[0], &rank, data);
    if (!conv_solve_weight(s, r, v, *data, dtype))
        return false;
    rel_rank_in(r->args[1], &rank, weight);
    return true;
}

static RelStatus relate_conv(Solver *s, Relation *r) {
    if (!rel_attrs_open(r) && packed_is(r->attrs))
        return packed_relate(s, r, "DK>O");
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    Conv v;
    WindowDims w;
    Type **data, **weight, *out[CONV_RANK];
    if (!conv_relate(s, r, &v, &data, &weight))
        return REL_FAIL;
    Type *c = weight[v.kernel[CONV_I]];
    if (v.groups != 1)
        c = dim_mul(c, rel_int_dim(r, v.groups));
    if (!rel_unify_dim(s, r, data[v.data[CONV_C]], c, 0, v.data[CONV_C]))
        return REL_FAIL;
    out[v.out[CONV_N]] = data[v.data[CONV_N]];
    out[v.out[CONV_C]] = weight[v.kernel[CONV_O]];
    window_dims(r, v.w.sides, &w);
    for (int j = 0; j < v.w.sides; j++) {
        w.kernel[j] = weight[v.kernel[CONV_SIDE + j]];
        out[v.out[CONV_SIDE + j]] = window_count_dim(r, &w, j, data[v.data[CONV_SIDE + j]], false);
    }
    Type *dtype = rel_attr_dtype(r, "out_dtype", rel_dtype_in(r->args[0]));
    return rel_result(s, r, out, (uint32_t)v.rank, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* Data and weight, in the order of their layouts: n, c, h, w and o, c / groups, i, j. */
void conv_write_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    static const char *const places[] = {"d", "h", "w"}, *const windows[] = {"k", "i", "j"};
    Conv v;
    (void)nin;
    (void)ranks;
    if (conv_read(attrs_with_unit_sizes(attrs), &v))
        return;
    const int *data = v.transposed ? v.out : v.data;
    for (int arg = 0; arg < 2; arg++) {
        str_add(out, arg ? ", (" : "(");
        for (int place = 0; place < v.rank; place++) {
            int k = 0;
            while ((arg ? v.kernel : data)[k] != place)
                k++;
            int side = WINDOW_SIDES - v.w.sides + k - CONV_SIDE;
            const char *name = k >= CONV_SIDE ? (arg ? windows : places)[side]
                               : !arg         ? (k == CONV_N ? "n" : "c")
                                              : ((k == CONV_I) != v.transposed ? "c" : "o");
            str_printf(out, "%s%s", place ? ", " : "", name);
            if (arg && k == CONV_I && v.groups > 1)
                str_printf(out, "/%lld", (long long)v.groups);
        }
        str_add(out, ")");
    }
}

/* ---- the operators --------------------------------------------------------------------------- */

static int shape_conv(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, "DK>O");
    Conv v;
    int64_t dims[CONV_RANK];
    if (!conv_call(call, 0, 1, &v))
        return -1;
    conv_out_shape(&v, dims);
    DType dtype = shape_attr_dtype(call, "out_dtype", call->in[0]->dtype);
    return shape_set(call, out, dtype, v.rank, dims) ? 1 : -1;
}

static bool lower_conv(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "DK>O");
    Conv v;
    if (!conv_call(call, 0, 1, &v))
        return false;
    conv_plan_forward(plan, &v, out[0], call->in[0], call->in[1]);
    return true;
}

const AttrSpec conv_attrs_any[] = {
    CONV_ATTRS("[1]", "[0]", "NCHW", "OIHW"),
    {"transposed", AT_BOOL, "False",
     "names, layouts and channels are those of the transposed convolution"},
};
static const AttrSpec conv1d_attrs[] = {CONV_ATTRS("[1]", "[0, 0]", "NCW", "OIW")};
static const AttrSpec conv2d_attrs[] = {CONV_ATTRS("[1, 1]", "[0, 0]", "NCHW", "OIHW")};
static const AttrSpec conv3d_attrs[] = {CONV_ATTRS("[1, 1, 1]", "[0, 0, 0]", "NCDHW", "OIDHW")};

#define CONVOLUTION(symbol, op_name, rel, op_attrs, n, layouts, text, shown, value, see)           \
    static const RelDef rel_##symbol = {rel, relate_conv, 3, false};                               \
    const Op op_##symbol = {                                                                       \
        .name = op_name,                                                                           \
        .args = "data, weight",                                                                    \
        .nargs = 2,                                                                                \
        .write_sizes = conv_write_sizes,                                                           \
        .attrs = op_attrs,                                                                         \
        .nattrs = n,                                                                               \
        .choices = layouts,                                                                        \
        .relation = &rel_##symbol,                                                                 \
        .dtypes = DTS_NUM,                                                                         \
        .pattern = OP_PRODUCT,                                                                     \
        .shape = shape_conv,                                                                       \
        .refuses_sizes = true,                                                                     \
        .lower = lower_conv,                                                                       \
        .doc = text,                                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = see,                                                                           \
    };

CONVOLUTION(nn_conv1d, "nn.conv1d", "Conv1D", conv1d_attrs, CONV_NATTRS,
            CONV_LAYOUTS("+NCW", "+OIW"),
            "One-dimensional convolution (the kernel is not flipped): data (n, c, w) and weight\n"
            "(o, c / groups, j) give (n, o, x).",
            "nn.conv1d([[[1.0, 2.0, 3.0]]], [[[1.0, 10.0]]])",
            "[[[21.0, 32.0]]] : Tensor[(1, 1, 2), float32]", "nn.conv2d, nn.conv1d_transpose")
CONVOLUTION(
    nn_conv2d, "nn.conv2d", "Conv2D", conv2d_attrs, CONV_NATTRS,
    CONV_LAYOUTS("+NCHW", "+OIHW +GOIHW"),
    "Two-dimensional convolution (the kernel is not flipped): data (n, c, h, w) and weight\n"
    "(o, c / groups, i, j) give (n, o, y, x). A weight with an axis of groups, GOIHW, is\n"
    "(groups, o / groups, c / groups, i, j).",
    "nn.conv2d([[[[1.0, 2.0, 3.0]]]], [[[[1.0, 10.0]]]])",
    "[[[[21.0, 32.0]]]] : Tensor[(1, 1, 1, 2), float32]", "nn.max_pool2d, nn.pad")
#define CONV_NCHWC(symbol, op_name, rel, text, data, weight, layout, more)                         \
    CONVOLUTION(                                                                                   \
        symbol, op_name, rel, conv2d_attrs, CONV_NATTRS, CONV_LAYOUTS("+NCHW", "+OIHW"), text,     \
        op_name "(" data ", " weight ", data_layout=\"NCHW2c\", kernel_layout=\"" layout           \
                "\", " more ")",                                                                   \
        "[[[[[21.0, 30.0]]]]] : Tensor[(1, 1, 1, 1, 2), float32]", "nn.conv2d, layout_transform")
CONV_NCHWC(nn_contrib_conv2d_NCHWc, "nn.contrib_conv2d_NCHWc", "Conv2DNCHWc",
           "nn.conv2d under the name that TVM has for layouts with blocks of channels, NCHW8c and\n"
           "OIHW8i8o, which nn.conv2d takes too.",
           "[[[[[1.0, 2.0]]]]]", "[[[[[[1.0], [10.0]]]]], [[[[[10.0], [10.0]]]]]]", "OIHW2i1o",
           "out_layout=\"NCHW2c\"")
CONV_NCHWC(nn_contrib_depthwise_conv2d_NCHWc, "nn.contrib_depthwise_conv2d_NCHWc",
           "DepthwiseConv2DNCHWc",
           "The same of as many groups as channels: nn.conv2d, under TVM's name for layouts with\n"
           "blocks of channels.",
           "[[[[[2.1, 3.0]]]]]", "[[[[[[10.0, 10.0]]]]]]", "OIHW1i2o", "groups=2")
CONVOLUTION(nn_conv3d, "nn.conv3d", "Conv3D", conv3d_attrs, CONV_NATTRS,
            CONV_LAYOUTS("+NCDHW", "+OIDHW"),
            "Three-dimensional convolution (the kernel is not flipped): data (n, c, d, h, w) and\n"
            "weight (o, c / groups, k, i, j) give (n, o, z, y, x).",
            "nn.conv3d([[[[[1.0, 2.0, 3.0]]]]], [[[[[1.0, 10.0]]]]])",
            "[[[[[21.0, 32.0]]]]] : Tensor[(1, 1, 1, 1, 2), float32]",
            "nn.conv2d, nn.conv3d_transpose")
CONVOLUTION(
    nn_conv, "nn.conv", "Conv", conv_attrs_any, CONV_NATTRS_ANY, CONV_LAYOUTS_ANY,
    "The convolution of one to three dimensions that data_layout names: what derivatives of\n"
    "convolutions are made of. With transposed, that of which a transposed convolution with\n"
    "these attributes is the derivative by data.",
    "nn.conv([[[1.0, 2.0, 3.0]]], [[[1.0, 10.0]]], data_layout=\"NCW\", "
    "kernel_layout=\"OIW\")",
    "[[[21.0, 32.0]]] : Tensor[(1, 1, 2), float32]", "nn.conv2d, nn.conv_data")
