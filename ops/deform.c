/* SPDX-License-Identifier: Apache-2.0 */
/* nn.deformable_conv2d: a convolution whose windows read data between its places, each of their places moved by an
 * offset (y, x) of its own. What the windows read are the columns (n, c, i, j, y, x), nn.deform_columns; the rest is a
 * convolution with steps as long as its kernel. As in TVM a point before the first place or at the end of a side or
 * behind it reads 0, and so does the neighbour behind the last place.
 *
 * A column is the sum of two neighbours a side, each times its weights, which are linear in the offset: `order`
 * (height, width) says how often those of each side are differentiated. nn.deform_columns_add is the transpose by data. */
#include <string.h>

#include "base/mem.h"
#include "ops/conv.h"
#include "ops/packed.h"
#include "ops/relate/signature.h"

enum { SIDES = 2, RANK = 2 + SIDES, TAPS = 2 };
/* Axes of a step over columns; the neighbours of each side come last. Those of height come before those of width. */
enum {
    AX_N,
    AX_G,
    AX_C,
    AX_I,
    AX_Y = AX_I + SIDES,
    AX_TAP = AX_Y + SIDES,
    AX_COUNT = AX_TAP + SIDES
};

typedef struct Deform {
    Window w;
    int data[RANK], kernel[RANK]; /* where the letters stand; those of data are the offset's too */
    int64_t groups;               /* channels of a group are moved alike */
    int64_t n, c;                 /* c: of one group */
    int64_t size[SIDES], count[SIDES];
} Deform;

static const char *read_deform(const Attrs *attrs, Deform *d) {
    *d = (Deform){.w = {.sides = SIDES}, .groups = attrs_int(attrs, "deformable_groups")};
    bool whole = attrs_find(attrs, "kernel_layout") != NULL;
    if (!layout_read(attrs_text(attrs, "data_layout"), "NCHW", d->data) ||
        !layout_read(whole ? attrs_text(attrs, "kernel_layout") : "OIHW", "OIHW", d->kernel))
        return "the layouts have different axes";
    if (whole && attrs_int(attrs, "groups") < 1)
        return "groups is at least 1";
    return d->groups < 1 ? "deformable_groups is at least 1" : window_attrs(attrs, &d->w);
}

static const char *refuse_deform(const Attrs *attrs, const int *ranks) {
    Deform d;
    (void)ranks;
    return read_deform(attrs, &d);
}

static const char *refuse_conv(const Attrs *attrs, const int *ranks) {
    DType t;
    if (attrs_dtype(attrs, "out_dtype", &t) && !(DTS_FLOAT & DT_BIT(t)))
        return "out_dtype is a float";
    return refuse_deform(attrs, ranks);
}

/* The sizes of a call where the arguments of these numbers are data, the offset and the weight; or reports. */
static bool size_deform(const OpCall *call, int data, int offset, int weight, Deform *d) {
    const Tensor *x = call->in[data], *moved = call->in[offset], *w = call->in[weight];
    const char *problem = read_deform(call->attrs, d);
    int64_t channels = x->shape[d->data[CONV_C]], want[RANK];
    if (!problem && channels % d->groups)
        problem = fmt_text("deformable_groups=%lld does not divide the %lld channels",
                           (long long)d->groups, (long long)channels);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return false;
    }
    d->n = x->shape[d->data[CONV_N]];
    d->c = channels / d->groups;
    want[d->data[CONV_N]] = d->n;
    want[d->data[CONV_C]] = size_multiply(2, d->groups);
    for (int j = 0; j < SIDES; j++) {
        d->size[j] = x->shape[d->data[CONV_SIDE + j]];
        d->w.kernel[j] = w->shape[d->kernel[CONV_SIDE + j]];
        d->count[j] = window_count(&d->w, j, d->size[j], false);
        if (d->w.kernel[j] < 1 || d->count[j] < 0) {
            const char *side = side_name(SIDES, j);
            shape_error(call, DIAG_R0316, "a kernel of %s %lld does not fit a %s of %lld", side,
                        (long long)d->w.kernel[j], side, (long long)d->size[j]);
            return false;
        }
        want[d->data[CONV_SIDE + j]] = d->count[j];
        want[d->data[CONV_C]] = size_multiply(want[d->data[CONV_C]], d->w.kernel[j]);
    }
    if (!memcmp(want, moved->shape, sizeof want))
        return true;
    shape_error(call, DIAG_R0314, "`offset` has shape %s, and the windows want %s",
                shape_text(RANK, moved->shape), shape_text(RANK, want));
    return false;
}

/* ---- steps ------------------------------------------------------------------------------------ */

static void column_extents(const Deform *d, int64_t *extents) {
    extents[AX_N] = d->n;
    extents[AX_G] = d->groups;
    extents[AX_C] = d->c;
    for (int j = 0; j < SIDES; j++) {
        extents[AX_I + j] = d->w.kernel[j];
        extents[AX_Y + j] = d->count[j];
        extents[AX_TAP + j] = TAPS;
    }
}

/* How columns (n, c, i, j, y, x) lie along those axes. */
static void column_strides(const Deform *d, const Tensor *columns, int64_t *strides) {
    memset(strides, 0, sizeof *strides * RECIPE_MAX_AXES);
    strides[AX_N] = columns->strides[0];
    strides[AX_G] = d->c * columns->strides[1];
    strides[AX_C] = columns->strides[1];
    for (int j = 0; j < SIDES; j++) {
        strides[AX_I + j] = columns->strides[2 + j];
        strides[AX_Y + j] = columns->strides[2 + SIDES + j];
    }
}

/* How data lies along them, beside the places that the points tell. */
static void data_strides(const Deform *d, const Tensor *data, int64_t *strides) {
    memset(strides, 0, sizeof *strides * RECIPE_MAX_AXES);
    strides[AX_N] = data->strides[d->data[CONV_N]];
    strides[AX_G] = d->c * data->strides[d->data[CONV_C]];
    strides[AX_C] = data->strides[d->data[CONV_C]];
}

/* The offsets of side j. */
static int offset_in(StepBuilder *s, const Deform *d, const Tensor *offset, int j) {
    int64_t strides[RECIPE_MAX_AXES] = {0}, pair = offset->strides[d->data[CONV_C]];
    strides[AX_N] = offset->strides[d->data[CONV_N]];
    strides[AX_I + 1] = 2 * pair;
    strides[AX_I] = strides[AX_I + 1] * d->w.kernel[1];
    strides[AX_G] = strides[AX_I] * d->w.kernel[0];
    for (int k = 0; k < SIDES; k++)
        strides[AX_Y + k] = offset->strides[d->data[CONV_SIDE + k]];
    return step_in_strided(s, offset, strides, j * pair);
}

/* A neighbour of the current point: where it lies in data, whether it is one, and its weight. */
typedef struct Tap {
    Sc at, inside, weight;
} Tap;

static Sc number(ScalarBuilder *b, Sc like, double v) { return sc_float(b, sc_type(b, like), v); }

/* The neighbour's weight at the distance t behind the first; order NULL: it is not differentiated. */
static Sc weigh(StepBuilder *s, const Tensor *order, int j, Sc t, Sc first) {
    ScalarBuilder *b = &s->body;
    Sc one = number(b, t, 1), w = sc_select(b, first, sc_sub(b, one, t), t);
    if (!order)
        return w;
    int64_t none[RECIPE_MAX_AXES] = {0};
    Sc n = sc_load(b, step_in_strided(s, order, none, j * order->strides[0]), DT_I32);
    Sc slope = sc_select(b, first, number(b, t, -1), one);
    slope = sc_select(b, sc_eq(b, n, sc_int(b, DT_I32, 1)), slope, number(b, t, 0));
    return sc_select(b, sc_eq(b, n, sc_int(b, DT_I32, 0)), w, slope);
}

static Tap find_tap(StepBuilder *s, const Deform *d, const Tensor *data, const Tensor *offset,
                    const Tensor *order) {
    ScalarBuilder *b = &s->body;
    Tap all = {0};
    for (int j = 0; j < SIDES; j++) {
        Sc moved = sc_load(b, offset_in(s, d, offset, j), offset->dtype);
        Sc start = sc_mul(b, sc_iota(b, AX_Y + j), step_iparam(s, b, DT_I64, d->w.stride[j]));
        Sc place = sc_mul(b, sc_iota(b, AX_I + j), step_iparam(s, b, DT_I64, d->w.dilation[j]));
        place = sc_sub(b, sc_add(b, start, place), step_iparam(s, b, DT_I64, d->w.before[j]));
        Sc p = sc_add(b, sc_cast(b, place, sc_type(b, moved)), moved), low = sc_floor(b, p);
        Sc size = step_fparam(s, b, sc_type(b, p), (double)d->size[j]);
        Sc tap = sc_iota(b, AX_TAP + j), at = sc_add(b, low, sc_cast(b, tap, sc_type(b, p)));
        Sc inside = sc_and(b, sc_ge(b, p, number(b, p, 0)), sc_lt(b, p, size));
        inside = sc_and(b, inside, sc_lt(b, at, size));
        Sc w = weigh(s, order, j, sc_sub(b, p, low), sc_eq(b, tap, sc_i64(b, 0)));
        Sc step = step_iparam(s, b, DT_I64, data->strides[d->data[CONV_SIDE + j]]);
        at = sc_mul(b, sc_cast(b, at, DT_I64), step);
        all.at = j ? sc_add(b, all.at, at) : at;
        all.inside = j ? sc_and(b, all.inside, inside) : inside;
        all.weight = j ? sc_mul(b, all.weight, w) : w;
    }
    return all;
}

/* out, which lies along the axes of columns by `to`, is what the windows read. */
static void plan_columns(Plan *plan, const Deform *d, Tensor *out, const int64_t *to,
                         const Tensor *data, const Tensor *offset, const Tensor *order) {
    int64_t extents[AX_COUNT], strides[RECIPE_MAX_AXES];
    column_extents(d, extents);
    data_strides(d, data, strides);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, AX_TAP, extents);
    step_reduce_over(&s, SIDES, extents + AX_TAP);
    step_combine(&s, COMBINE_SUM, sc_type_of(out->dtype));
    ScalarBuilder *b = &s.body;
    Tap t = find_tap(&s, d, data, offset, order);
    Sc x = sc_load_if(b, step_in_strided(&s, data, strides, 0), data->dtype, t.at, t.inside, 0);
    step_result(&s, sc_select(b, t.inside, sc_mul(b, x, t.weight), x));
    step_out_strided(&s, out, to, 0);
    step_end(&s);
}

static bool lower_columns(const OpCall *call, Tensor *const *out, Plan *plan) {
    Deform d;
    int64_t to[RECIPE_MAX_AXES];
    if (!size_deform(call, 0, 1, 2, &d))
        return false;
    column_strides(&d, out[0], to);
    plan_columns(plan, &d, out[0], to, call->in[0], call->in[1], call->in[3]);
    return true;
}

static bool lower_columns_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *grad = call->in[0];
    Deform d;
    int64_t extents[AX_COUNT], from[RECIPE_MAX_AXES], to[RECIPE_MAX_AXES];
    if (!size_deform(call, 2, 1, 3, &d))
        return false;
    plan_fill_int(plan, out[0], 0);
    if (out[0]->count == 0)
        return true;
    column_extents(&d, extents);
    column_strides(&d, grad, from);
    data_strides(&d, out[0], to);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, AX_COUNT, extents);
    step_combine(&s, COMBINE_SUM, sc_type_of(out[0]->dtype));
    ScalarBuilder *b = &s.body;
    Tap t = find_tap(&s, &d, out[0], call->in[1], call->in[4]);
    Sc g = sc_load(b, step_in_strided(&s, grad, from, 0), grad->dtype);
    step_result(&s, sc_select(b, t.inside, sc_mul(b, g, t.weight), number(b, g, 0)));
    step_result(&s, sc_select(b, t.inside, t.at, sc_i64(b, 0)));
    step_out_strided(&s, out[0], to, 0);
    step_end(&s);
    return true;
}

/* Other layouts than these are put in the order of the first. */
#define DEFORM_LAYOUTS "NCHW NHWC OIHW HWIO"
#define DEFORM_ROLES "DDK>O!"

static int shape_deformable(const OpCall *call, OutSpec *out) {
    return packed_is_listed(call->attrs, DEFORM_LAYOUTS) ? shape_by_signature(call, out)
                                                         : packed_shape(call, out, DEFORM_ROLES);
}

static RelStatus relate_deformable(Solver *s, Relation *r) {
    return rel_attrs_open(r) || packed_is_listed(r->attrs, DEFORM_LAYOUTS)
               ? relate_by_signature(s, r)
               : packed_relate(s, r, DEFORM_ROLES);
}

/* The columns are written as an image, window beside window, over which the convolution steps by whole windows. */
static bool lower_deformable(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (!packed_is_listed(call->attrs, DEFORM_LAYOUTS))
        return packed_lower(call, out, plan, DEFORM_ROLES);
    const Tensor *x = call->in[0], *weight = call->in[2];
    Deform d;
    Conv v;
    if (!size_deform(call, 0, 1, 2, &d) ||
        !conv_resolve(call, RANK, x->shape, RANK, weight->shape, &v))
        return false;
    int64_t shape[RANK] = {d.n, d.groups * d.c}, to[RECIPE_MAX_AXES] = {0};
    for (int j = 0; j < SIDES; j++) {
        v.size[j] = shape[2 + j] = size_multiply(d.count[j], d.w.kernel[j]);
        v.w.stride[j] = d.w.kernel[j];
        v.w.dilation[j] = 1;
        v.w.before[j] = v.w.after[j] = 0;
    }
    Tensor *image = plan_temp(plan, x->dtype, RANK, shape);
    for (int k = 0; k < RANK; k++)
        v.data[k] = k;
    to[AX_N] = image->strides[0];
    to[AX_G] = d.c * image->strides[1];
    to[AX_C] = image->strides[1];
    for (int j = 0; j < SIDES; j++) {
        to[AX_I + j] = image->strides[2 + j];
        to[AX_Y + j] = d.w.kernel[j] * image->strides[2 + j];
    }
    plan_columns(plan, &d, image, to, x, call->in[1], NULL);
    conv_plan_forward(plan, &v, out[0], image, weight);
    return true;
}

/* ---- the operators ---------------------------------------------------------------------------- */

static int form_of_data(const Attrs *attrs) { return attrs_text(attrs, "data_layout")[1] == 'H'; }
static int form_of_layouts(const Attrs *attrs) {
    return 2 * form_of_data(attrs) + (attrs_text(attrs, "kernel_layout")[0] == 'H');
}

static bool measure_deformable(const OpCall *call, OutSpec *out) {
    Deform d;
    Conv v;
    (void)out;
    return size_deform(call, 0, 1, 2, &d) &&
           conv_resolve(call, RANK, call->in[0]->shape, RANK, call->in[2]->shape, &v);
}

static bool measure_columns(const OpCall *call, OutSpec *out) {
    Deform d;
    (void)out;
    return size_deform(call, 0, 1, 2, &d);
}

static bool measure_columns_add(const OpCall *call, OutSpec *out) {
    Deform d;
    (void)out;
    return size_deform(call, 2, 1, 3, &d);
}

#define WINDOW_ATTRS                                                                               \
    {"strides", AT_DIMS, "[1, 1]", "steps of the window, one a side"},                             \
        {"padding", AT_DIMS, "[0, 0]",                                                             \
         "zeros around: one number; one a side; or those before each side, then those after"},     \
        {"dilation", AT_DIMS, "[1, 1]", "steps within the window"}, {                              \
        "deformable_groups", AT_INT, "1",                                                          \
            "channels are split into this many groups with offsets of their own"                   \
    }
static const AttrSpec deformable_attrs[] = {
    WINDOW_ATTRS,
    {"groups", AT_INT, "1", "channels are split into this many independent groups"},
    {"channels", AT_DIM, "None", "output channels: those of the weight"},
    {"kernel_size", AT_DIMS_OPT, "None", "the sides of the window: those of the weight"},
    {"data_layout", AT_STRING, "\"NCHW\"", "what the axes of data and offset are"},
    {"kernel_layout", AT_STRING, "\"OIHW\"", "what the weight's axes are"},
    {"out_layout", AT_STRING, "\"\"", "what the result's axes are; empty: those of data"},
    {"out_dtype", AT_DTYPE, "None", "of the result; None: that of the arguments"},
};
static const AttrSpec column_attrs[] = {
    WINDOW_ATTRS,
    {"data_layout", AT_STRING, "\"NCHW\"", "what the axes of data and offset are"},
};

SIGNATURE_OP_BY(
    relate_deformable, shape_deformable, nn_deformable_conv2d, "DeformableConv2D",
    "nn.deformable_conv2d", "data, offset, weight", 3,
    (.text = "float(n, c, h, w), =0(n, p, y, x), =0(o, d, i, j) -> @out_dtype(n, o, y, x)|"
             "float(n, c, h, w), =0(n, p, y, x), =0(i, j, d, o) -> @out_dtype(n, o, y, x)|"
             "float(n, h, w, c), =0(n, y, x, p), =0(o, d, i, j) -> @out_dtype(n, y, x, o)|"
             "float(n, h, w, c), =0(n, y, x, p), =0(i, j, d, o) -> @out_dtype(n, y, x, o)",
     .refuse = refuse_conv, .measure = measure_deformable, .form = form_of_layouts),
    .attrs = deformable_attrs, .nattrs = 11,
    .choices = "data_layout: +NCHW; kernel_layout: +OIHW; out_layout: +NCHW -", .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE, .lower = lower_deformable,
    .doc =
        "A convolution that reads data (n, c, h, w) between its places: each place of each window\n"
        "is moved by a y and an x of offset (n, 2 * deformable_groups * i * j, y, x). Outside of\n"
        "data there is 0. With weight (o, c / groups, i, j): (n, o, y, x).",
    .example =
        "nn.deformable_conv2d([[[[1.0, 3.0]]]], [[[[0.0, 0.0]], [[0.5, 0.0]]]], [[[[2.0]]]])",
    .example_result = "[[[[4.0, 6.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.conv2d, image.grid_sample")
SIGNATURE_OP(
    nn_deform_columns, "DeformColumns", "nn.deform_columns", "data, offset, weight, order", 4,
    (.text = "float(n, c, h, w), =0(n, p, y, x), =0(o, d, i, j), int32(2) -> =0(n, c, i, j, y, x)|"
             "float(n, h, w, c), =0(n, y, x, p), =0(o, d, i, j), int32(2) -> =0(n, c, i, j, y, x)",
     .refuse = refuse_deform, .measure = measure_columns, .form = form_of_data),
    .attrs = column_attrs, .nattrs = 5, .choices = "data_layout: NCHW NHWC", .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE, .lower = lower_columns,
    .doc = "What the windows of nn.deformable_conv2d read (n, c, i, j, y, x), differentiated by\n"
           "offset as often as order says along the height and the width. Of weight (o, c, i, j)\n"
           "only the sides matter.",
    .example = "nn.deform_columns([[[[1.0, 3.0]]]], [[[[0.0]], [[0.5]]]], [[[[2.0]]]], [0, 0], "
               "strides=[1, 2])",
    .example_result = "[[[[[[2.0]]]]]] : Tensor[(1, 1, 1, 1, 1, 1), float32]",
    .see_also = "nn.deformable_conv2d")
SIGNATURE_OP(
    nn_deform_columns_add, "DeformColumnsAdd", "nn.deform_columns_add",
    "grad, offset, data, weight, order", 5,
    (.text = "float(n, c, i, j, y, x), =0(n, p, y, x), =0(n, c, h, w), =0(o, d, i, j), int32(2) -> "
             "=0(n, c, h, w)|"
             "float(n, c, i, j, y, x), =0(n, y, x, p), =0(n, h, w, c), =0(o, d, i, j), int32(2) -> "
             "=0(n, h, w, c)",
     .refuse = refuse_deform, .measure = measure_columns_add, .form = form_of_data),
    .attrs = column_attrs, .nattrs = 5, .choices = "data_layout: NCHW NHWC", .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE, .lower = lower_columns_add,
    .doc = "The derivative of nn.deform_columns by data, of which only the shape matters: each\n"
           "element of grad adds to the places it was read from.",
    .example = "nn.deform_columns_add([[[[[[1.0]]]]]], [[[[0.0]], [[0.5]]]], [[[[0.0, 0.0]]]], "
               "[[[[2.0]]]], [0, 0], strides=[1, 2])",
    .example_result = "[[[[0.5, 0.5]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.deform_columns")
