/* SPDX-License-Identifier: Apache-2.0 */
/* Reading images between their places: image.grid_sample, whose derivatives image.sample and image.sample_add
 * are, image.crop_and_resize and image.affine_grid.
 *
 * An element of the result is a sum over 1, 2 or 4 neighbours a side of the point that the grid names, each
 * times the product of its weights along the sides. A weight is a function of the distance, so the derivative
 * by the grid is the same sum with the derivative of one side's weights: `order` (depth, height, width) says how
 * often those of each side are differentiated. image.sample_add is the transpose of image.sample by its data. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/signature.h"
#include "ops/window.h"

typedef enum Method { NEAREST, LINEAR, CUBIC } Method;
typedef enum Outside { ZEROS, BORDER, REFLECTION } Outside;

typedef struct Sampler {
    int sides, taps;
    Method method;
    Outside outside;
    bool corners;        /* -1 and 1 are the centres of the first and last place, not their edges */
    const Tensor *order; /* (3,), int32; NULL: nothing is differentiated */
    int64_t size[WINDOW_SIDES]; /* of the data */
} Sampler;

static Method read_method(const char *text) {
    if (strstr(text, "nearest"))
        return NEAREST;
    return strstr(text, "cubic") ? CUBIC : LINEAR;
}

static Sampler read_sampler(const Attrs *attrs, const Tensor *data, const Tensor *order) {
    const char *outside = attrs_text(attrs, "padding_mode");
    Sampler z = {.sides = data->rank - 2,
                 .method = read_method(attrs_text(attrs, "method")),
                 .outside = outside[0] == 'z'   ? ZEROS
                            : outside[0] == 'b' ? BORDER
                                                : REFLECTION,
                 .corners = attrs_bool(attrs, "align_corners"),
                 .order = order};
    z.taps = z.method == NEAREST ? 1 : z.method == LINEAR ? 2 : 4;
    for (int j = 0; j < z.sides; j++)
        z.size[j] = data->shape[2 + j];
    return z;
}

/* ---- one side --------------------------------------------------------------------------------- */

/* A coordinate along a side, and its derivative by the grid's. */
typedef struct Point {
    Sc x, slope;
} Point;

static Sc number(ScalarBuilder *b, Sc like, double v) { return sc_float(b, sc_type(b, like), v); }

/* The coordinate that g, from -1 to 1, stands for. */
static Point place_point(StepBuilder *s, const Sampler *z, int j, Sc g) {
    ScalarBuilder *b = &s->body;
    DType t = sc_type(b, g);
    double half = (double)(z->size[j] - z->corners) / 2;
    Sc slope = step_fparam(s, b, t, half), x = sc_mul(b, sc_add(b, g, number(b, g, 1)), slope);
    return (Point){z->corners ? x : sc_sub(b, x, number(b, g, 0.5)), slope};
}

/* x kept within the side; where it is not, nothing depends on it. */
static Point clip_point(StepBuilder *s, const Sampler *z, int j, Point p) {
    ScalarBuilder *b = &s->body;
    Sc zero = number(b, p.x, 0),
       last = step_fparam(s, b, sc_type(b, p.x), (double)(z->size[j] - 1));
    Sc out = sc_or(b, sc_le(b, p.x, zero), sc_ge(b, p.x, last));
    return (Point){sc_max(b, sc_min(b, p.x, last), zero), sc_select(b, out, zero, p.slope)};
}

/* x reflected at the ends of the side as often as it takes. */
static Point reflect_point(StepBuilder *s, const Sampler *z, int j, Point p) {
    ScalarBuilder *b = &s->body;
    double low = z->corners ? 0 : -0.5, span = (double)(z->size[j] - z->corners);
    Sc zero = number(b, p.x, 0), least = number(b, p.x, low);
    if (span <= 0)
        return (Point){zero, zero};
    Sc width = step_fparam(s, b, sc_type(b, p.x), span), from = sc_sub(b, p.x, least);
    Sc way = sc_select(b, sc_lt(b, from, zero), sc_neg(b, p.slope), p.slope);
    from = sc_abs(b, from);
    Sc rest = sc_rem(b, from, width), turns = sc_floor(b, sc_div(b, from, width));
    Sc two = number(b, p.x, 2), even = sc_eq(b, sc_rem(b, turns, two), zero);
    Sc x = sc_select(b, even, sc_add(b, rest, least), sc_add(b, sc_sub(b, width, rest), least));
    return clip_point(s, z, j, (Point){x, sc_select(b, even, way, sc_neg(b, way))});
}

static Point bound_point(StepBuilder *s, const Sampler *z, int j, Point p) {
    return z->outside == BORDER       ? clip_point(s, z, j, p)
           : z->outside == REFLECTION ? reflect_point(s, z, j, p)
                                      : p;
}

/* c0 + c1 d + c2 d^2 + c3 d^3, differentiated `order` times. */
static Sc polynomial(ScalarBuilder *b, Sc d, const double *c, int order) {
    Sc v = number(b, d, 0);
    for (int k = 3; k >= order; k--) {
        double f = c[k];
        for (int i = 0; i < order; i++)
            f *= k - i;
        v = sc_add(b, sc_mul(b, v, d), number(b, d, f));
    }
    return v;
}

/* The weight of a neighbour at the distance d, which may be below 0, or its derivative by d. Keys' cubic with
 * the coefficient -0.75, as PyTorch and TVM have it. */
static Sc weight_at(ScalarBuilder *b, Method method, Sc d, int order) {
    static const double constant[] = {1, 0, 0, 0}, linear[] = {1, -1, 0, 0};
    static const double near[] = {1, 0, -2.25, 1.25}, far[] = {3, -6, 3.75, -0.75};
    Sc below = sc_lt(b, d, number(b, d, 0)), dist = sc_abs(b, d);
    Sc v;
    if (method == CUBIC)
        v = sc_select(b, sc_le(b, dist, number(b, d, 1)), polynomial(b, dist, near, order),
                      polynomial(b, dist, far, order));
    else
        v = polynomial(b, dist, method == LINEAR ? linear : constant, order);
    return order % 2 ? sc_select(b, below, sc_neg(b, v), v) : v;
}

/* That of side j, differentiated by the grid as often as the sampler's order says: above the third time it is 0. */
static Sc weigh(StepBuilder *s, const Sampler *z, int j, Sc d, Sc slope) {
    ScalarBuilder *b = &s->body;
    Sc w = weight_at(b, z->method, d, 0), by = slope;
    if (!z->order)
        return w;
    int64_t none[RECIPE_MAX_AXES] = {0};
    int in = step_in_strided(s, z->order, none, (3 - z->sides + j) * z->order->strides[0]);
    Sc order = sc_load(b, in, DT_I32), v = number(b, d, 0);
    for (int k = 1; k <= 3 && z->method != NEAREST; k++, by = sc_mul(b, by, slope)) {
        Sc term = sc_mul(b, weight_at(b, z->method, d, k), by);
        v = sc_select(b, sc_eq(b, order, sc_int(b, DT_I32, k)), term, v);
    }
    return sc_select(b, sc_eq(b, order, sc_int(b, DT_I32, 0)), w, v);
}

/* A neighbour along a side: which place it is (a float), whether it is one, and its weight. */
typedef struct Tap {
    Sc at, inside, weight;
} Tap;

static Tap find_tap(StepBuilder *s, const Sampler *z, int j, Sc g, int tap_axis) {
    ScalarBuilder *b = &s->body;
    Point p = place_point(s, z, j, g);
    bool each = z->method == CUBIC && z->outside != ZEROS; /* each neighbour is bounded by itself */
    if (!each)
        p = bound_point(s, z, j, p);
    Sc first = z->method == NEAREST ? sc_round(b, p.x) : sc_floor(b, p.x);
    Sc k = sc_cast(b, sc_iota(b, tap_axis), sc_type(b, g));
    Sc at = z->method == NEAREST ? first : sc_add(b, first, k);
    if (z->method == CUBIC)
        at = sc_sub(b, at, number(b, g, 1));
    Sc w = weigh(s, z, j, sc_sub(b, p.x, at), p.slope);
    if (each)
        at = bound_point(s, z, j, (Point){at, p.slope}).x;
    Sc last = step_fparam(s, b, sc_type(b, g), (double)(z->size[j] - 1));
    Sc inside = sc_and(b, sc_ge(b, at, number(b, g, 0)), sc_le(b, at, last));
    return (Tap){at, inside, w};
}

/* ---- all sides -------------------------------------------------------------------------------- */

/* The tap at the current place of a step over (n, c, the grid's places, the taps of each side): the offset in
 * `data`, whether it is inside, and its weight. grid (n, sides, …) has x before y. */
typedef struct Taps {
    Sc offset, inside, weight;
} Taps;

static Taps find_taps(StepBuilder *s, const Sampler *z, const Tensor *data, const Tensor *grid) {
    ScalarBuilder *b = &s->body;
    Taps all = {0};
    for (int j = 0; j < z->sides; j++) {
        int64_t strides[RECIPE_MAX_AXES] = {grid->strides[0]};
        for (int i = 0; i < z->sides; i++)
            strides[2 + i] = grid->strides[2 + i];
        int in = step_in_strided(s, grid, strides, (z->sides - 1 - j) * grid->strides[1]);
        Tap tap = find_tap(s, z, j, sc_load(b, in, grid->dtype), 2 + z->sides + j);
        Sc step = step_iparam(s, b, DT_I64, data->strides[2 + j]);
        Sc offset = sc_mul(b, sc_cast(b, tap.at, DT_I64), step);
        all.offset = j ? sc_add(b, all.offset, offset) : offset;
        all.inside = j ? sc_and(b, all.inside, tap.inside) : tap.inside;
        all.weight = j ? sc_mul(b, all.weight, tap.weight) : tap.weight;
    }
    return all;
}

static void tap_extents(const Sampler *z, int64_t *extents) {
    for (int j = 0; j < z->sides; j++)
        extents[j] = z->taps;
}

static void plan_sample(Plan *plan, const Sampler *z, Tensor *out, const Tensor *data,
                        const Tensor *grid) {
    int64_t taps[WINDOW_SIDES], strides[RECIPE_MAX_AXES] = {data->strides[0], data->strides[1]};
    tap_extents(z, taps);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, out->rank, out->shape);
    step_reduce_over(&s, z->sides, taps);
    step_combine(&s, COMBINE_SUM, sc_type_of(out->dtype));
    Taps t = find_taps(&s, z, data, grid);
    int in = step_in_strided(&s, data, strides, 0);
    Sc v = sc_load_if(&s.body, in, data->dtype, t.offset, t.inside, 0);
    step_result(&s, sc_select(&s.body, t.inside, sc_mul(&s.body, v, t.weight), v));
    step_out(&s, out);
    step_end(&s);
}

static void plan_sample_add(Plan *plan, const Sampler *z, Tensor *out, const Tensor *grad,
                            const Tensor *grid) {
    int rank = grad->rank;
    int64_t extents[RECIPE_MAX_AXES], from[RECIPE_MAX_AXES] = {0};
    int64_t to[RECIPE_MAX_AXES] = {out->strides[0], out->strides[1]};
    memcpy(extents, grad->shape, sizeof *extents * (size_t)rank);
    memcpy(from, grad->strides, sizeof *from * (size_t)rank);
    tap_extents(z, extents + rank);
    plan_fill_int(plan, out, 0);
    if (out->count == 0)
        return;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, rank + z->sides, extents);
    step_combine(&s, COMBINE_SUM, sc_type_of(out->dtype));
    ScalarBuilder *b = &s.body;
    Taps t = find_taps(&s, z, out, grid);
    Sc g = sc_load(b, step_in_strided(&s, grad, from, 0), grad->dtype), zero = number(b, g, 0);
    step_result(&s, sc_select(b, t.inside, sc_mul(b, g, t.weight), zero));
    step_result(&s, sc_select(b, t.inside, t.offset, sc_i64(b, 0)));
    step_out_strided(&s, out, to, 0);
    step_end(&s);
}

/* ---- image.grid_sample, image.sample, image.sample_add ---------------------------------------- */

static bool lower_grid_sample(const OpCall *call, Tensor *const *out, Plan *plan) {
    Sampler z = read_sampler(call->attrs, call->in[0], call->nin > 2 ? call->in[2] : NULL);
    plan_sample(plan, &z, out[0], call->in[0], call->in[1]);
    return true;
}

static bool lower_sample_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    Sampler z = read_sampler(call->attrs, call->in[2], call->in[3]);
    plan_sample_add(plan, &z, out[0], call->in[0], call->in[1]);
    return true;
}

/* Which line of the signature: of two sides or of three. */
static int count_depth(const Attrs *attrs) { return strlen(attrs_text(attrs, "layout")) == 5; }

#define SAMPLE_CHOICES                                                                             \
    "layout: NCHW NCDHW; method: bilinear nearest bicubic; padding_mode: zeros border reflection"
static const AttrSpec sample_attrs[] = {
    {"method", AT_STRING, "\"bilinear\"", "from how many neighbours: 1, 2 or 4 a side"},
    {"layout", AT_STRING, "\"NCHW\"", "what data's axes are, NCHW or NCDHW"},
    {"padding_mode", AT_STRING, "\"zeros\"",
     "what is outside of data: zeros, the nearest place at its border, or its reflection"},
    {"align_corners", AT_BOOL, "True",
     "-1 and 1 are the centres of the first and last place; else their outer edges"},
};
SIGNATURE_OP(image_grid_sample, "GridSample", "image.grid_sample", "data, grid", 2,
             (.text = "float(n, c, h, w), =0(n, 2, y, x) -> =0(n, c, y, x)|"
                      "float(n, c, d, h, w), =0(n, 3, z, y, x) -> =0(n, c, z, y, x)",
              .form = count_depth),
             .attrs = sample_attrs, .nattrs = 4, .choices = SAMPLE_CHOICES, .dtypes = DTS_FLOAT,
             .pattern = OP_OPAQUE, .lower = lower_grid_sample,
             .doc = "data (n, c, h, w) read at the points of grid (n, 2, y, x), each an x and a y\n"
                    "from -1 to 1, between its places: (n, c, y, x). With depth x, y and z.",
             .example = "image.grid_sample([[[[1.0, 3.0]]]], [[[[0.0, 1.0]], [[0.0, 0.0]]]])",
             .example_result = "[[[[2.0, 3.0]]]] : Tensor[(1, 1, 1, 2), float32]",
             .see_also = "image.affine_grid, image.crop_and_resize")
SIGNATURE_OP(image_sample, "Sample", "image.sample", "data, grid, order", 3,
             (.text = "float(n, c, h, w), =0(n, 2, y, x), int32(3) -> =0(n, c, y, x)|"
                      "float(n, c, d, h, w), =0(n, 3, z, y, x), int32(3) -> =0(n, c, z, y, x)",
              .form = count_depth),
             .attrs = sample_attrs, .nattrs = 4, .choices = SAMPLE_CHOICES, .dtypes = DTS_FLOAT,
             .pattern = OP_OPAQUE, .lower = lower_grid_sample,
             .doc =
                 "image.grid_sample, differentiated by the grid as often as order says along the\n"
                 "depth, the height and the width.",
             .example = "image.sample([[[[1.0, 3.0]]]], [[[[0.0]], [[0.0]]]], [0, 0, 1])",
             .example_result = "[[[[1.0]]]] : Tensor[(1, 1, 1, 1), float32]",
             .see_also = "image.grid_sample")
SIGNATURE_OP(
    image_sample_add, "SampleAdd", "image.sample_add", "grad, grid, data, order", 4,
    (.text = "float(n, c, y, x), =0(n, 2, y, x), =0(n, c, h, w), int32(3) -> =0(n, c, h, w)|"
             "float(n, c, z, y, x), =0(n, 3, z, y, x), =0(n, c, d, h, w), int32(3) -> "
             "=0(n, c, d, h, w)",
     .form = count_depth),
    .attrs = sample_attrs, .nattrs = 4, .choices = SAMPLE_CHOICES, .dtypes = DTS_FLOAT,
    .pattern = OP_OPAQUE, .lower = lower_sample_add,
    .doc = "The derivative of image.sample by data, of which only the shape matters: each\n"
           "element of grad adds to the places it was read from.",
    .example = "image.sample_add([[[[1.0]]]], [[[[0.0]], [[0.0]]]], [[[[0.0, 0.0]]]], [0, 0, 0])",
    .example_result = "[[[[0.5, 0.5]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "image.sample")

/* ---- image.affine_grid ------------------------------------------------------------------------ */

static const char *refuse_target(const Attrs *attrs, const int *ranks) {
    int64_t size[WINDOW_SIDES];
    (void)ranks;
    return attr_int_list(attrs, "target_shape", size, WINDOW_SIDES) == 2 && size[0] >= 0 &&
                   size[1] >= 0
               ? NULL
               : "target_shape is the height and the width, from 0";
}

/* Place i of n from -1 to 1. */
static Sc spread(StepBuilder *s, DType t, int axis, int64_t n) {
    ScalarBuilder *b = &s->body;
    Sc i = sc_cast(b, sc_iota(b, axis), t);
    Sc step = step_fparam(s, b, t, n > 1 ? 2 / (double)(n - 1) : 0);
    return sc_sub(b, sc_mul(b, i, step), sc_float(b, t, 1));
}

static bool lower_affine_grid(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *m = call->in[0];
    int64_t strides[RECIPE_MAX_AXES] = {m->strides[0], m->strides[1]};
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 4, out[0]->shape);
    ScalarBuilder *b = &s.body;
    DType t = sc_type_of(m->dtype);
    Sc at[] = {spread(&s, t, 3, out[0]->shape[3]), spread(&s, t, 2, out[0]->shape[2])};
    Sc v = sc_load(b, step_in_strided(&s, m, strides, 2 * m->strides[2]), m->dtype);
    for (int k = 1; k >= 0; k--) {
        Sc f = sc_load(b, step_in_strided(&s, m, strides, k * m->strides[2]), m->dtype);
        v = sc_fma(b, f, at[k], v);
    }
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec affine_attrs[] = {
    {"target_shape", AT_DIMS, NULL, "the height and the width of the grid"},
};
SIGNATURE_OP(
    image_affine_grid, "AffineGrid", "image.affine_grid", "data", 1,
    (.text = "float(n, 2, 3) -> =0(n, 2, @target_shape.0, @target_shape.1)",
     .refuse = refuse_target),
    .attrs = affine_attrs, .nattrs = 1, .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE,
    .lower = lower_affine_grid,
    .doc = "The grid that each matrix of data (n, 2, 3) takes the points (x, y, 1) to, x\n"
           "and y from -1 to 1: what image.grid_sample reads at.",
    .example = "image.affine_grid([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]], target_shape=[1, 2])",
    .example_result = "[[[[-0.5,  1.5]],\n  [[-1.0, -1.0]]]] : Tensor[(1, 2, 1, 2), float32]",
    .see_also = "image.grid_sample")
