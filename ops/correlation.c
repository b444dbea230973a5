/* SPDX-License-Identifier: Apache-2.0 */
/* nn.correlation: how alike two images are around each place and at each displacement, as FlowNet compares features, and
 * its derivatives. Channel q of the result is the mean, over all channels and the places of a window, of
 *
 *     data1[y + i, x + j] * data2[y + dy(q) + i, x + dx(q) + j]         (or of the absolute difference)
 *
 * which is linear in each image: by one of them its derivative is the map `by_first` or `by_second` of a cotangent; and
 * nn.correlation_tangent is what these are the transposes of. Products have further derivatives of the same kind; the
 * derivative of the difference is constant between its steps.
 *
 * A. Dosovitskiy et al., FlowNet: Learning Optical Flow with Convolutional Networks, ICCV 2015, section 3. */
#include <string.h>

#include "ops/relate/signature.h"
#include "ops/window.h"

enum { SIDES = 2, RANK = 4 };

typedef struct Correlation {
    Window w; /* kernel, padding; stride: stride1 */
    int64_t reach, step, radius,
        across; /* displacements: the largest, from one to the next, how many */
    int64_t size[SIDES], count[SIDES], channels;
    bool multiply;
} Correlation;

static const char *read_correlation(const Attrs *attrs, Correlation *c) {
    int64_t kernel = attrs_int(attrs, "kernel_size"), stride = attrs_int(attrs, "stride1"), p[4];
    *c = (Correlation){.w = {.sides = SIDES},
                       .reach = attrs_int(attrs, "max_displacement"),
                       .step = attrs_int(attrs, "stride2"),
                       .multiply = attrs_bool(attrs, "is_multiply")};
    int n = attr_int_list(attrs, "padding", p, 4);
    if (kernel < 1 || kernel % 2 == 0 || kernel > INT32_MAX)
        return "kernel_size is odd and above 0";
    if (stride < 1 || c->step < 1 || stride > WINDOW_MOST || c->step > WINDOW_MOST)
        return "stride1 and stride2 are above 0, and not too large";
    if (c->reach < 0 || c->reach > INT32_MAX)
        return "max_displacement is not negative";
    if (n != 1 && n != 2 && n != 4)
        return "padding is 1, 2 or 4 numbers";
    for (int j = 0; j < SIDES; j++) {
        c->w.kernel[j] = kernel;
        c->w.stride[j] = stride;
        c->w.dilation[j] = 1;
        c->w.before[j] = p[n == 1 ? 0 : j];
        c->w.after[j] = p[n == 1 ? 0 : n == 2 ? j : 2 + j];
        if (c->w.before[j] < 0 || c->w.after[j] < 0)
            return "padding is not negative";
        if (c->w.before[j] > WINDOW_MOST || c->w.after[j] > WINDOW_MOST)
            return "padding is too large";
    }
    c->radius = c->reach / c->step;
    c->across = 2 * c->radius + 1;
    return NULL;
}

static const char *refuse_correlation(const Attrs *attrs, const int *ranks) {
    Correlation c;
    (void)ranks;
    return read_correlation(attrs, &c);
}

/* The sizes of a call whose argument `data` is the first image; false after a report. */
static bool size_correlation(const OpCall *call, int data, Correlation *c) {
    const Tensor *x = call->in[data];
    read_correlation(call->attrs, c);
    c->channels = x->shape[1];
    for (int j = 0; j < SIDES; j++) {
        c->size[j] = x->shape[2 + j];
        int64_t border = c->reach + (c->w.kernel[j] - 1) / 2;
        int64_t room = c->size[j] + c->w.before[j] + c->w.after[j] - 2 * border;
        c->count[j] = (room + c->w.stride[j] - 1) / c->w.stride[j];
        if (room > 0)
            continue;
        shape_error(call, DIAG_R0316, "a %s of %lld has no place with a border of %lld around",
                    side_name(SIDES, j), (long long)c->size[j], (long long)border);
        return false;
    }
    return true;
}

/* Where the current element of a step over (n, q, y, x), then (c, i, j), reads each image: the offset along its sides,
 * and whether it is a place of it. */
typedef struct Pair {
    Sc first, second, inside_first, inside_second;
} Pair;

static Pair find_pair(StepBuilder *s, const Correlation *c, const Tensor *a, const Tensor *z) {
    ScalarBuilder *b = &s->body;
    Sc q = sc_iota(b, 1), across = sc_i64(b, c->across);
    Sc move[] = {sc_div(b, q, across), sc_rem(b, q, across)};
    Pair p = {0};
    for (int j = 0; j < SIDES; j++) {
        Sc at = sc_mul(b, sc_iota(b, 2 + j), step_iparam(s, b, DT_I64, c->w.stride[j]));
        at = sc_add(b, at, sc_iota(b, RANK + 1 + j));
        at = sc_add(b, at, step_iparam(s, b, DT_I64, c->reach - c->w.before[j]));
        Sc by = sc_mul(b, sc_sub(b, move[j], sc_i64(b, c->radius)), sc_i64(b, c->step));
        Sc other = sc_add(b, at, by), size = step_iparam(s, b, DT_I64, c->size[j]);
        Sc in = sc_in_range(b, at, size), in_other = sc_in_range(b, other, size);
        Sc first = sc_mul(b, at, step_iparam(s, b, DT_I64, a->strides[2 + j]));
        Sc second = sc_mul(b, other, step_iparam(s, b, DT_I64, z->strides[2 + j]));
        p = (Pair){j ? sc_add(b, p.first, first) : first, j ? sc_add(b, p.second, second) : second,
                   j ? sc_and(b, p.inside_first, in) : in,
                   j ? sc_and(b, p.inside_second, in_other) : in_other};
    }
    return p;
}

static Sc read_image(StepBuilder *s, const Tensor *t, Sc offset, Sc inside, DType as) {
    int64_t strides[RECIPE_MAX_AXES] = {t->strides[0]};
    strides[RANK] = t->strides[1];
    int in = step_in_strided(s, t, strides, 0);
    return sc_cast(&s->body, sc_load_if(&s->body, in, t->dtype, offset, inside, 0), as);
}

/* The axes that are summed over: channels, and the window's. */
static void window_extents(const Correlation *c, int64_t *extents) {
    extents[0] = c->channels;
    extents[1] = c->w.kernel[0];
    extents[2] = c->w.kernel[1];
}

static double elements(const Correlation *c) {
    return (double)(c->channels * c->w.kernel[0] * c->w.kernel[1]);
}

/* The sign of v, 0 of 0. */
static Sc sign_of(ScalarBuilder *b, Sc v) {
    DType t = sc_type(b, v);
    Sc zero = sc_float(b, t, 0);
    return sc_select(b, sc_gt(b, v, zero), sc_float(b, t, 1),
                     sc_select(b, sc_lt(b, v, zero), sc_float(b, t, -1), zero));
}

static bool is_second(const Attrs *attrs) {
    return strcmp(attrs_text(attrs, "side"), "second") == 0;
}

/* nn.correlation(data1, data2), and nn.correlation_tangent(change, data1, data2): the same with the change in the
 * place of the image that `side` names. */
static bool lower_correlation(const OpCall *call, Tensor *const *out, Plan *plan) {
    bool tangent = call->nin == 3;
    const Tensor *a = call->in[tangent], *z = call->in[tangent + 1];
    Correlation c;
    int64_t extents[3];
    if (!size_correlation(call, tangent, &c))
        return false;
    window_extents(&c, extents);
    DType acc = reduce_acc_type(out[0]->dtype);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, RANK, out[0]->shape);
    step_reduce_over(&s, 3, extents);
    step_combine(&s, COMBINE_SUM, acc);
    ScalarBuilder *b = &s.body;
    Pair p = find_pair(&s, &c, a, z);
    Sc x = read_image(&s, a, p.first, p.inside_first, acc),
       y = read_image(&s, z, p.second, p.inside_second, acc);
    if (!tangent) {
        if (c.multiply)
            sc_mul(b, x, y);
        else
            sc_abs(b, sc_sub(b, x, y));
    } else {
        bool second = is_second(call->attrs);
        Sc t = read_image(&s, call->in[0], second ? p.second : p.first,
                          second ? p.inside_second : p.inside_first, acc);
        Sc slope = c.multiply ? second ? x : y
                              : sign_of(b, second ? sc_sub(b, y, x) : sc_sub(b, x, y));
        sc_mul(b, t, slope);
    }
    ScalarBuilder *e = &s.epilogue;
    sc_div(e, sc_acc(e, acc), step_fparam(&s, e, acc, elements(&c)));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

/* nn.correlation_grad(grad, data1, data2): what each element of grad adds to the image that `side` names. */
static bool lower_correlation_grad(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *g = call->in[0], *a = call->in[1], *z = call->in[2];
    bool second = is_second(call->attrs);
    Correlation c;
    int64_t extents[RANK + 3], strides[RECIPE_MAX_AXES] = {0}, none[RECIPE_MAX_AXES] = {0};
    if (!size_correlation(call, 1, &c))
        return false;
    plan_fill_int(plan, out[0], 0);
    if (out[0]->count == 0)
        return true;
    memcpy(extents, g->shape, sizeof *extents * RANK);
    window_extents(&c, extents + RANK);
    memcpy(strides, g->strides, sizeof *strides * RANK);
    DType t = sc_type_of(g->dtype);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, RANK + 3, extents);
    step_combine(&s, COMBINE_SUM, t);
    ScalarBuilder *b = &s.body;
    Pair p = find_pair(&s, &c, second ? a : out[0], second ? out[0] : z);
    Sc inside = second ? p.inside_second : p.inside_first, to = second ? p.second : p.first;
    Pair at = find_pair(&s, &c, a, z);
    Sc x = read_image(&s, a, at.first, at.inside_first, t),
       y = read_image(&s, z, at.second, at.inside_second, t);
    Sc slope = c.multiply ? second ? x : y : sign_of(b, second ? sc_sub(b, y, x) : sc_sub(b, x, y));
    Sc v = sc_mul(b, sc_load(b, step_in_strided(&s, g, strides, 0), g->dtype), slope);
    v = sc_div(b, v, step_fparam(&s, b, t, elements(&c)));
    to = sc_add(b, to, sc_mul(b, sc_iota(b, 0), step_iparam(&s, b, DT_I64, out[0]->strides[0])));
    to = sc_add(b, to, sc_mul(b, sc_iota(b, RANK), step_iparam(&s, b, DT_I64, out[0]->strides[1])));
    step_result(&s, sc_select(b, inside, v, sc_float(b, t, 0)));
    step_result(&s, sc_select(b, inside, to, sc_i64(b, 0)));
    step_out_strided(&s, out[0], none, 0);
    step_end(&s);
    return true;
}

/* ---- the operators ---------------------------------------------------------------------------- */

static void measure_result(const Correlation *c, int64_t *shape) {
    shape[1] = size_multiply(c->across, c->across);
    shape[2] = c->count[0];
    shape[3] = c->count[1];
}

static bool measure_correlation(const OpCall *call, OutSpec *out) {
    Correlation c;
    if (!size_correlation(call, call->nin == 3, &c))
        return false;
    measure_result(&c, out[0].shape);
    return true;
}

static bool measure_correlation_grad(const OpCall *call, OutSpec *out) {
    Correlation c;
    int64_t want[RANK] = {call->in[0]->shape[0]};
    (void)out;
    if (!size_correlation(call, 1, &c))
        return false;
    measure_result(&c, want);
    if (!memcmp(want, call->in[0]->shape, sizeof want))
        return true;
    shape_error(call, DIAG_R0314, "`grad` has shape %s, the correlation %s",
                shape_text(RANK, call->in[0]->shape), shape_text(RANK, want));
    return false;
}

#define CORRELATION_ATTRS                                                                          \
    {"kernel_size", AT_DIM, "1", "the side of the window, odd"},                                   \
        {"max_displacement", AT_DIM, "1", "how far apart places are compared"},                    \
        {"stride1", AT_DIM, "1", "from one place of the first image to the next"},                 \
        {"stride2", AT_DIM, "1", "from one displacement to the next"},                             \
        {"padding", AT_DIMS, "[0, 0]",                                                             \
         "zeros around: one number; one a side; or those before each side, then those after"},     \
        {"is_multiply", AT_BOOL, "True", "places are multiplied; else their difference is taken"}, \
    {                                                                                              \
        "layout", AT_STRING, "\"NCHW\"", "what the axes are"                                       \
    }
static const AttrSpec correlation_attrs[] = {CORRELATION_ATTRS};
static const AttrSpec side_attrs[] = {
    CORRELATION_ATTRS,
    {"side", AT_STRING, "\"first\"", "the image that it is the derivative by"},
};
SIGNATURE_OP(
    nn_correlation, "Correlation", "nn.correlation", "data1, data2", 2,
    (.text = "float(n, c, h, w), =0(n, c, h, w) -> =0(n, ?, ?, ?)", .refuse = refuse_correlation,
     .measure = measure_correlation),
    .attrs = correlation_attrs, .nattrs = 7, .choices = "layout: NCHW", .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE, .lower = lower_correlation,
    .doc =
        "How alike two images (n, c, h, w) are around each place, at each displacement: the mean\n"
        "product (n, q, y, x) over all channels and a window.",
    .example =
        "nn.correlation([[[[1.0, 2.0, 3.0]]]], [[[[4.0, 5.0, 6.0]]]], padding=[1, 0])[0, :, 0, 0]",
    .example_result = "[0.0, 0.0, 0.0, 8.0, 10.0, 12.0, 0.0, 0.0, 0.0] : "
                      "Tensor[(9,), float32]",
    .see_also = "nn.conv2d")
SIGNATURE_OP(
    nn_correlation_tangent, "CorrelationTangent", "nn.correlation_tangent", "change, data1, data2",
    3,
    (.text = "float(n, c, h, w), =0(n, c, h, w), =0(n, c, h, w) -> =0(n, ?, ?, ?)",
     .refuse = refuse_correlation, .measure = measure_correlation),
    .attrs = side_attrs, .nattrs = 8, .choices = "layout: NCHW; side: first second",
    .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE, .lower = lower_correlation,
    .doc = "How nn.correlation changes with an image, the first or the second, that changes by\n"
           "change.",
    .example = "nn.correlation_tangent([[[[1.0]]]], [[[[2.0]]]], [[[[4.0]]]], max_displacement=0)",
    .example_result = "[[[[4.0]]]] : Tensor[(1, 1, 1, 1), float32]", .see_also = "nn.correlation")
SIGNATURE_OP(
    nn_correlation_grad, "CorrelationGrad", "nn.correlation_grad", "grad, data1, data2", 3,
    (.text = "float(n, q, y, x), =0(n, c, h, w), =0(n, c, h, w) -> =0(n, c, h, w)",
     .refuse = refuse_correlation, .measure = measure_correlation_grad),
    .attrs = side_attrs, .nattrs = 8, .choices = "layout: NCHW; side: first second",
    .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE, .lower = lower_correlation_grad,
    .doc = "The derivative of nn.correlation by the first or the second image.",
    .example = "nn.correlation_grad([[[[3.0]]]], [[[[2.0]]]], [[[[4.0]]]], max_displacement=0)",
    .example_result = "[[[[12.0]]]] : Tensor[(1, 1, 1, 1), float32]", .see_also = "nn.correlation")
