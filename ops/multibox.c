/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes of single-shot detectors: vision.multibox_prior, the boxes that predictions are relative to, and
 * vision.multibox_transform_loc, the boxes that are predicted. And vision.yolo_reorg, which moves places into channels.
 *
 * W. Liu et al., SSD: Single Shot MultiBox Detector, ECCV 2016. */
#include <math.h>

#include "ops/boxes.h"
#include "ops/relate/signature.h"

/* ---- vision.multibox_prior -------------------------------------------------------------------- */

typedef struct Prior {
    Anchors anchors;
    double steps[2], offsets[2]; /* y before x */
} Prior;

static const char *read_prior(const Attrs *attrs, Prior *p) {
    const char *problem = anchors_read(attrs, "sizes", &p->anchors);
    if (problem)
        return problem;
    return attr_floats(attrs, "steps", p->steps, 2) == 2 &&
                   attr_floats(attrs, "offsets", p->offsets, 2) == 2
               ? NULL
               : "steps and offsets are two numbers, of the height and the width";
}

static const char *refuse_prior(const Attrs *attrs, const int *ranks) {
    Prior p;
    (void)ranks;
    return read_prior(attrs, &p);
}

static bool measure_prior(const OpCall *call, OutSpec *out) {
    Prior p;
    read_prior(call->attrs, &p);
    out[0].shape[1] = size_multiply(size_multiply(call->in[0]->shape[2], call->in[0]->shape[3]),
                                    p.anchors.nsizes + p.anchors.nratios - 1);
    return true;
}

/* Box `number` of each place: all sizes with the first ratio, then the first size with the others. A size is that of
 * the height; of the width it is as many places. */
static void plan_prior(Plan *plan, Tensor *out, const Prior *p, const int64_t *places, int number,
                       bool clip) {
    bool plain = number < p->anchors.nsizes;
    double root = plain ? 1 : sqrt(p->anchors.ratios[number - p->anchors.nsizes + 1]);
    double size = p->anchors.sizes[plain ? number : 0], half[] = {size / root / 2, size * root / 2};
    half[1] *= (double)places[0] / (double)places[1];
    int64_t extents[] = {places[0], places[1], 4},
            each = 4 * (p->anchors.nsizes + p->anchors.nratios - 1);
    int64_t strides[RECIPE_MAX_AXES] = {places[1] * each, each, 1};
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 3, extents);
    ScalarBuilder *b = &s.body;
    DType t = sc_type_of(out->dtype);
    Sc corner = sc_iota(b, 2), sides[2];
    Sc low = sc_lt(b, corner, sc_i64(b, 2));
    for (int j = 0; j < 2; j++) {
        double step = p->steps[j] > 0 ? p->steps[j] : 1 / (double)places[j];
        Sc at = sc_add(b, sc_cast(b, sc_iota(b, j), t), step_fparam(&s, b, t, p->offsets[j]));
        Sc middle = sc_mul(b, at, step_fparam(&s, b, t, step));
        Sc by = step_fparam(&s, b, t, half[j]);
        sides[j] = sc_add(b, middle, sc_select(b, low, sc_neg(b, by), by));
    }
    Sc is_x = sc_eq(b, sc_rem(b, corner, sc_i64(b, 2)), sc_i64(b, 0));
    Sc v = sc_select(b, is_x, sides[1], sides[0]);
    if (clip)
        v = sc_max(b, sc_min(b, v, sc_float(b, t, 1)), sc_float(b, t, 0));
    step_result(&s, v);
    step_out_strided(&s, out, strides, 4 * number);
    step_end(&s);
}

static bool lower_prior(const OpCall *call, Tensor *const *out, Plan *plan) {
    Prior p;
    read_prior(call->attrs, &p);
    if (out[0]->count == 0)
        return true;
    for (int i = 0; i < p.anchors.nsizes + p.anchors.nratios - 1; i++)
        plan_prior(plan, out[0], &p, call->in[0]->shape + 2, i, attrs_bool(call->attrs, "clip"));
    return true;
}

static const AttrSpec prior_attrs[] = {
    {"sizes", AT_FLOATS, "[1.0]", "the heights of boxes, as parts of the image's"},
    {"ratios", AT_FLOATS, "[1.0]",
     "how wide boxes are to their heights; the first goes with all sizes"},
    {"steps", AT_FLOATS, "[-1.0, -1.0]", "from place to place; below 0: the image over the places"},
    {"offsets", AT_FLOATS, "[0.5, 0.5]", "of the first middle, in steps"},
    {"clip", AT_BOOL, "False", "boxes end at the image's edges"},
};
SIGNATURE_OP(
    vision_multibox_prior, "MultiBoxPrior", "vision.multibox_prior", "data", 1,
    (.text = "float(n, c, h, w) -> =0(1, ?, 4)", .refuse = refuse_prior, .measure = measure_prior),
    .attrs = prior_attrs, .nattrs = 5, .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE,
    .lower = lower_prior,
    .doc = "The boxes (x1, y1, x2, y2) that predictions at the places of data are relative to:\n"
           "at each place one of each size, and one of each other ratio. They lie from 0 to 1.",
    .example = "vision.multibox_prior(zeros(shape=[1, 3, 1, 2]), sizes=[0.5])",
    .example_result = "[[[0.125,  0.25, 0.375,  0.75],\n  [0.625,  0.25, 0.875,  0.75]]] : "
                      "Tensor[(1, 2, 4), float32]",
    .see_also = "vision.multibox_transform_loc")

/* ---- vision.multibox_transform_loc ------------------------------------------------------------ */

static const char *refuse_variances(const Attrs *attrs, const int *ranks) {
    double variances[4];
    (void)ranks;
    return attr_floats(attrs, "variances", variances, 4) == 4 ? NULL : "variances are four numbers";
}

static bool measure_boxes(const OpCall *call, OutSpec *out) {
    int64_t n = call->in[0]->shape[2], have = call->in[1]->shape[1];
    (void)out;
    if (have == size_multiply(4, n))
        return true;
    shape_error(call, DIAG_R0314, "`loc_pred` has %lld numbers for %lld boxes", (long long)have,
                (long long)n);
    return false;
}

/* The best class of each box, and its score; a score counts where it is above -1. */
typedef struct Best {
    const Tensor *score, *class; /* (b, n) */
    double least;
} Best;

static Tensor *plan_best(Plan *plan, const Tensor *scores, int64_t first, bool class) {
    int64_t sizes[] = {scores->shape[0], scores->shape[2]}, classes = scores->shape[1] - first;
    int64_t strides[RECIPE_MAX_AXES] = {scores->strides[0], scores->strides[2], scores->strides[1]};
    DType t = sc_type_of(scores->dtype);
    Tensor *best = plan_temp(plan, class ? DT_I64 : t, 2, sizes);
    classes = classes > 0 ? classes : 0;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, 2, sizes);
    step_reduce_over(&s, 1, &classes);
    step_combine(&s, class ? COMBINE_ARGMAX : COMBINE_MAX, t);
    ScalarBuilder *b = &s.body;
    int in = step_in_strided(&s, scores, strides, first * scores->strides[1]);
    Sc v = sc_load(b, in, scores->dtype), none = sc_float(b, t, -1);
    sc_select(b, sc_gt(b, v, none), v, none); /* nan is no score */
    step_out(&s, best);
    step_end(&s);
    return best;
}

static Sc load_of_box(StepBuilder *s, const Tensor *t) {
    int64_t strides[RECIPE_MAX_AXES] = {t->strides[0], t->strides[1]};
    return sc_load(&s->body, step_in_strided(s, t, strides, 0), t->dtype);
}

static Sc keep_best(StepBuilder *s, const void *ctx) {
    const Best *best = ctx;
    ScalarBuilder *b = &s->body;
    Sc score = sc_cast(b, load_of_box(s, best->score), DT_F64);
    Sc least = step_fparam(s, b, DT_F64, best->least);
    return sc_and(b, sc_gt(b, score, sc_float(b, DT_F64, -1)), sc_ge(b, score, least));
}

/* Element `column` of t at the current box, in float64. */
static Sc load_column(StepBuilder *s, const Tensor *t, const int64_t *strides, Sc column,
                      int64_t step) {
    ScalarBuilder *b = &s->body;
    Sc offset = sc_mul(b, column, step_iparam(s, b, DT_I64, step));
    return sc_cast(b, sc_load_at(b, step_in_strided(s, t, strides, 0), t->dtype, offset), DT_F64);
}

/* Corner 0 to 3 of the predicted box: the anchor, moved and scaled. */
static Sc predict_corner(StepBuilder *s, const OpCall *call, Sc corner) {
    const Tensor *loc = call->in[1], *anchor = call->in[2];
    ScalarBuilder *b = &s->body;
    int64_t of_loc[RECIPE_MAX_AXES] = {loc->strides[0], 4 * loc->strides[1]};
    int64_t of_anchor[RECIPE_MAX_AXES] = {0, anchor->strides[1]};
    double variances[4];
    attr_floats(call->attrs, "variances", variances, 4);
    Sc side = sc_and(b, corner, sc_i64(b, 1)), far = sc_add(b, side, sc_i64(b, 2));
    Sc is_y = sc_eq(b, side, sc_i64(b, 1)), two = sc_float(b, DT_F64, 2), by[2];
    for (int j = 0; j < 2; j++)
        by[j] = sc_select(b, is_y, step_fparam(s, b, DT_F64, variances[2 * j + 1]),
                          step_fparam(s, b, DT_F64, variances[2 * j]));
    Sc low = load_column(s, anchor, of_anchor, side, anchor->strides[2]);
    Sc high = load_column(s, anchor, of_anchor, far, anchor->strides[2]);
    Sc move = load_column(s, loc, of_loc, side, loc->strides[1]);
    Sc scale = load_column(s, loc, of_loc, far, loc->strides[1]);
    Sc size = sc_sub(b, high, low);
    Sc middle = sc_add(b, sc_mul(b, sc_mul(b, move, by[0]), size),
                       sc_div(b, sc_add(b, low, high), two));
    Sc half = sc_div(b, sc_mul(b, sc_exp(b, sc_mul(b, scale, by[1])), size), two);
    Sc v = sc_select(b, sc_lt(b, corner, sc_i64(b, 2)), sc_sub(b, middle, half),
                     sc_add(b, middle, half));
    if (attrs_bool(call->attrs, "clip"))
        v = sc_max(b, sc_min(b, v, sc_float(b, DT_F64, 1)), sc_float(b, DT_F64, 0));
    return v;
}

static bool lower_transform(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *scores = call->in[0];
    int64_t first = !attrs_bool(call->attrs, "keep_background");
    int64_t sizes[] = {scores->shape[0], scores->shape[2]};
    Best best = {plan_best(plan, scores, first, false), plan_best(plan, scores, first, true),
                 attrs_float(call->attrs, "threshold")};
    const Tensor *places = box_places(plan, sizes, keep_best, &best, out[1]);
    StepBuilder s;
    box_begin_rows(&s, plan, out[0], places);
    ScalarBuilder *b = &s.body;
    Sc column = sc_iota(b, 2), zero = sc_i64(b, 0);
    Sc corner = sc_max(b, sc_sub(b, column, sc_i64(b, 2)), zero);
    Sc class = sc_cast(b, load_of_box(&s, best.class), DT_F64);
    Sc head = sc_select(b, sc_eq(b, column, zero), class,
                        sc_cast(b, load_of_box(&s, best.score), DT_F64));
    Sc v = sc_select(b, sc_lt(b, column, sc_i64(b, 2)), head, predict_corner(&s, call, corner));
    v = sc_cast(b, v, sc_type_of(out[0]->dtype));
    box_end_rows(&s, out[0], places, keep_best(&s, &best), v);
    return true;
}

static const AttrSpec transform_attrs[] = {
    {"clip", AT_BOOL, "True", "boxes end at 0 and 1"},
    {"threshold", AT_FLOAT, "0.01", "the least score of a box that counts"},
    {"variances", AT_FLOATS, "[0.1, 0.1, 0.2, 0.2]",
     "what predictions of x, y, width and height are multiplied with"},
    {"keep_background", AT_BOOL, "False", "class 0 is one as the others; else it is none"},
};
SIGNATURE_OP(
    vision_multibox_transform_loc, "MultiBoxTransformLoc", "vision.multibox_transform_loc",
    "cls_prob, loc_pred, anchor", 3,
    (.text = "float(b, c, n), =0(b, m), =0(1, n, 4) -> =0(b, n, 6), int32(b)",
     .refuse = refuse_variances, .measure = measure_boxes),
    .attrs = transform_attrs, .nattrs = 4, .dtypes = DTS_FLOAT, .tuple = true, .pattern = OP_OPAQUE,
    .lower = lower_transform,
    .doc = "Rows (class, score, x1, y1, x2, y2) of the boxes whose best class has at least\n"
           "threshold, -1 behind them, and how many: anchors moved and scaled by loc_pred.",
    .example = "vision.multibox_transform_loc([[[0.2, 0.9], [0.8, 0.001]]], [[0.0, 0.0, 0.0, 0.0, "
               "0.0, 0.0, 0.0, 0.0]], [[[0.0, 0.0, 0.5, 1.0], [0.0, 0.0, 1.0, 1.0]]]).1",
    .example_result = "[1] : Tensor[(1,), int32]",
    .see_also = "vision.multibox_prior, vision.non_max_suppression")

/* ---- vision.yolo_reorg ------------------------------------------------------------------------ */

static const char *refuse_stride(const Attrs *attrs, const int *ranks) {
    (void)ranks;
    return attrs_int(attrs, "stride") > 0 ? NULL : "stride is above 0";
}

static bool measure_reorg(const OpCall *call, OutSpec *out) {
    const int64_t *have = call->in[0]->shape;
    int64_t stride = attrs_int(call->attrs, "stride"), block = size_multiply(stride, stride);
    if (have[1] % block || have[2] % stride || have[3] % stride) {
        shape_error(call, DIAG_R0316,
                    "channels, height and width of %s are no multiples of %lld, "
                    "%lld and %lld",
                    shape_text(4, have), (long long)block, (long long)stride, (long long)stride);
        return false;
    }
    out[0].shape[1] = size_multiply(have[1], block);
    out[0].shape[2] = have[2] / stride;
    out[0].shape[3] = have[3] / stride;
    return true;
}

/* With C channels as (dy, dx, c), the result is, element after element, (n, dy, dx, c, y, x) of data laid out as
 * (n, c, y, dy, x, dx). */
static bool lower_reorg(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = plan_contiguous(plan, call->in[0]);
    int64_t stride = attrs_int(call->attrs, "stride"), h = x->shape[2], w = x->shape[3];
    int64_t c = x->shape[1] / (stride * stride), row = w * stride, plane = row * h * stride;
    int64_t extents[] = {x->shape[0], stride, stride, c, h, w};
    int64_t from[RECIPE_MAX_AXES] = {c * plane, row, 1, plane, row * stride, stride};
    int64_t to[RECIPE_MAX_AXES];
    shape_strides(6, extents, to);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 6, extents);
    sc_load(&s.body, step_in_strided(&s, x, from, 0), x->dtype);
    step_out_strided(&s, out[0], to, 0);
    step_end(&s);
    return true;
}

static const AttrSpec reorg_attrs[] = {
    {"stride", AT_DIM, "1", "the sides of the blocks whose places become channels"},
};
SIGNATURE_OP(
    vision_yolo_reorg, "YoloReorg", "vision.yolo_reorg", "data", 1,
    (.text = "all(n, c, h, w) -> =0(n, ?, ?, ?)", .refuse = refuse_stride,
     .measure = measure_reorg),
    .attrs = reorg_attrs, .nattrs = 1, .dtypes = DTS_ALL, .pattern = OP_INJECTIVE,
    .lower = lower_reorg,
    .doc = "data (n, c, h, w) as (n, c * stride^2, h / stride, w / stride), its elements in the\n"
           "order that Darknet's reorg layer has.",
    .example =
        "vision.yolo_reorg([[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]],\n"
        "  [[9.0, 10.0], [11.0, 12.0]], [[13.0, 14.0], [15.0, 16.0]]]], stride=2)[0, :4, 0, 0]",
    .example_result = "[1.0, 3.0, 9.0, 11.0] : Tensor[(4,), float32]",
    .see_also = "nn.space_to_depth")
