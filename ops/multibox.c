/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes of single-shot detectors: vision.multibox_prior, the boxes that predictions are relative to, and
 * vision.multibox_transform_loc, the boxes that are predicted. And vision.yolo_reorg, which moves places into channels.
 *
 * W. Liu et al., SSD: Single Shot MultiBox Detector, ECCV 2016. */
#include <math.h>
#include <string.h>

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

/* The predicted box j of batch i: the anchor, moved and scaled. */
static void predict_box(const OpCall *call, const double *variances, int64_t i, int64_t j,
                        double *corners) {
    const Tensor *loc = call->in[1], *anchor = call->in[2];
    bool clip = attrs_bool(call->attrs, "clip");
    for (int k = 0; k < 2; k++) {
        double low = box_get(anchor, 0, j, k), high = box_get(anchor, 0, j, k + 2),
               size = high - low;
        double middle = box_get(loc, i, 4 * j + k, 0) * variances[k] * size + (low + high) / 2;
        double half = exp(box_get(loc, i, 4 * j + k + 2, 0) * variances[k + 2]) * size / 2;
        corners[k] = middle - half;
        corners[k + 2] = middle + half;
    }
    for (int k = 0; k < 4 && clip; k++)
        corners[k] = fmax(0, fmin(1, corners[k]));
}

static bool eval_transform(const OpCall *call, Tensor *const *out) {
    const Tensor *scores = call->in[0];
    double variances[4], least = attrs_float(call->attrs, "threshold");
    attr_floats(call->attrs, "variances", variances, 4);
    int64_t first = !attrs_bool(call->attrs, "keep_background");
    box_fill(out[0], -1);
    for (int64_t i = 0; i < scores->shape[0] && !op_interrupted(call); i++) {
        int64_t n = 0;
        for (int64_t j = 0; j < scores->shape[2]; j++) {
            double best = -1, row[6];
            int64_t class = -1;
            for (int64_t k = first; k < scores->shape[1]; k++) {
                double score = box_get(scores, i, k, j);
                if (score > best) {
                    class = k - first;
                    best = score;
                }
            }
            if (class < 0 || best < least)
                continue;
            row[0] = (double)class;
            row[1] = best;
            predict_box(call, variances, i, j, row + 2);
            for (int k = 0; k < 6; k++)
                box_set(out[0], i, n, k, row[k]);
            n++;
        }
        box_set(out[1], i, 0, 0, (double)n);
    }
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
    .eval = eval_transform,
    .reference_only = "where a box stands follows from how many before it count",
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
