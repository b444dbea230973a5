/* SPDX-License-Identifier: Apache-2.0 */
/* vision.proposal: regions that a region proposal network proposes. At each place of the feature map stand anchors, one
 * of each ratio and scale; a prediction moves and scales them, those of the highest scores are kept but for the ones
 * that overlap one before. Which stay depends on those before, so there are no recipes.
 *
 * S. Ren et al., Faster R-CNN, NIPS 2015; places count as 1 wide, from x1 to x2 + 1, as there. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ops/boxes.h"
#include "ops/relate/signature.h"

typedef struct Proposal {
    Anchors anchors;
    double threshold;
    int64_t stride, before, after,
        least;    /* boxes before and after the suppression; their least side */
    bool offsets; /* predictions are added to corners */
} Proposal;

static const char *read_proposal(const Attrs *attrs, Proposal *p) {
    *p = (Proposal){.stride = attrs_int(attrs, "feature_stride"),
                    .before = attrs_int(attrs, "rpn_pre_nms_top_n"),
                    .after = attrs_int(attrs, "rpn_post_nms_top_n"),
                    .least = attrs_int(attrs, "rpn_min_size"),
                    .threshold = attrs_float(attrs, "threshold"),
                    .offsets = attrs_bool(attrs, "iou_loss")};
    const char *problem = anchors_read(attrs, "scales", &p->anchors);
    if (problem)
        return problem;
    if (p->stride < 1)
        return "feature_stride is above 0";
    return p->after < 0 ? "rpn_post_nms_top_n is not negative" : NULL;
}

static const char *refuse_proposal(const Attrs *attrs, const int *ranks) {
    Proposal p;
    (void)ranks;
    return read_proposal(attrs, &p);
}

static bool measure_proposal(const OpCall *call, OutSpec *out) {
    Proposal p;
    read_proposal(call->attrs, &p);
    int64_t n = (int64_t)p.anchors.nsizes * p.anchors.nratios;
    for (int i = 0; i < 2; i++) {
        int64_t have = call->in[i]->shape[1], want = (i ? 4 : 2) * n;
        if (have == want)
            continue;
        shape_error(call, DIAG_R0314, "`%s` has %lld channels, and %lld anchors need %lld",
                    shape_arg_name(call, i), (long long)have, (long long)n, (long long)want);
        return false;
    }
    out[0].shape[0] = size_multiply(call->in[0]->shape[0], p.after);
    return true;
}

static double at4(const Tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
    int64_t offset = a * t->strides[0] + b * t->strides[1] + c * t->strides[2] + d * t->strides[3];
    return elem_get_float((char *)tensor_data(t) + offset * (int64_t)dtype_size(t->dtype),
                          t->dtype);
}

/* Width and height of the anchor with this ratio and scale, in whole places before it is scaled. */
static void size_anchor(const Proposal *p, int k, double *size) {
    double ratio = p->anchors.ratios[k / p->anchors.nsizes],
           scale = p->anchors.sizes[k % p->anchors.nsizes];
    double area = floor((double)p->stride * (double)p->stride / ratio);
    double width = floor(sqrt(area) + 0.5);
    size[0] = width * scale;
    size[1] = floor(width * ratio + 0.5) * scale;
}

/* What anchor k at the place (y, x) becomes; x before y. */
static Box propose(const OpCall *call, const Proposal *p, int64_t b, int64_t k, int64_t y,
                   int64_t x) {
    const Tensor *scores = call->in[0], *moves = call->in[1], *info = call->in[2];
    int64_t n = (int64_t)p->anchors.nsizes * p->anchors.nratios, place[] = {x, y};
    double size[2], image[] = {box_get(info, b, 1, 0), box_get(info, b, 0, 0)};
    double least = box_get(info, b, 2, 0) * (double)p->least;
    Box box = {.score = at4(scores, b, n + k, y, x)};
    bool small = false;
    size_anchor(p, (int)k, size);
    for (int j = 0; j < 2; j++) {
        double middle = 0.5 * ((double)p->stride - 1) + (double)(place[j] * p->stride);
        double first = at4(moves, b, 4 * k + j, y, x), second = at4(moves, b, 4 * k + 2 + j, y, x);
        double low = middle - 0.5 * (size[j] - 1), high = middle + 0.5 * (size[j] - 1);
        if (p->offsets) {
            low += first;
            high += second;
        } else {
            double wide = high - low + 1;
            middle = first * wide + low + 0.5 * (wide - 1);
            wide *= exp(second);
            low = middle - 0.5 * (wide - 1);
            high = middle + 0.5 * (wide - 1);
        }
        box.low[j] = fmax(fmin(low, image[j] - 1), 0);
        box.high[j] = fmax(fmin(high, image[j] - 1), 0);
        if ((double)place[j] >= trunc(image[j] / (double)p->stride))
            box.score = -1; /* beyond the image, in the padding of a batch */
        small |= box.high[j] - box.low[j] + 1 < least;
    }
    for (int j = 0; j < 2 && small; j++) {
        box.low[j] -= least / 2;
        box.high[j] += least / 2;
        box.score = -1;
    }
    return box;
}

/* The area that two boxes share over the area of both together. */
static double overlap(const Box *p, const Box *q) {
    double shared = 1, areas[2] = {1, 1};
    for (int j = 0; j < 2; j++) {
        shared *= fmax(0, fmin(p->high[j], q->high[j]) - fmax(p->low[j], q->low[j]) + 1);
        areas[0] *= p->high[j] - p->low[j] + 1;
        areas[1] *= q->high[j] - q->low[j] + 1;
    }
    return shared / (areas[0] + areas[1] - shared);
}

/* Keeps of n sorted boxes those that overlap none before them; how many. */
static int64_t suppress(const OpCall *call, Box *boxes, int64_t n, double threshold) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n && !op_interrupted(call); i++) {
        bool stays = true;
        for (int64_t k = 0; k < kept && stays; k++)
            stays = !(overlap(&boxes[k], &boxes[i]) > threshold);
        if (stays)
            boxes[kept++] = boxes[i];
    }
    return kept;
}

static bool eval_proposal(const OpCall *call, Tensor *const *out) {
    const int64_t *have = call->in[0]->shape;
    Proposal p;
    read_proposal(call->attrs, &p);
    int64_t anchors = (int64_t)p.anchors.nsizes * p.anchors.nratios,
            all = anchors * have[2] * have[3];
    Box *boxes = mem_bytes(sizeof *boxes * (size_t)(2 * all + 1));
    box_fill(out[0], 0);
    for (int64_t b = 0; b < have[0]; b++) {
        int64_t n = 0;
        for (int64_t y = 0; y < have[2]; y++)
            for (int64_t x = 0; x < have[3]; x++)
                for (int64_t k = 0; k < anchors; k++)
                    boxes[n++] = propose(call, &p, b, k, y, x);
        box_sort(boxes, boxes + all, n);
        n = p.before > 0 && p.before < n ? p.before : n;
        n = suppress(call, boxes, n, p.threshold);
        for (int64_t i = 0; i < p.after && n > 0;
             i++) { /* again from the first, where they are few */
            const Box *box = &boxes[i % n];
            double row[] = {(double)b, box->low[0], box->low[1], box->high[0], box->high[1]};
            for (int k = 0; k < 5; k++)
                box_set(out[0], b * p.after + i, k, 0, row[k]);
        }
    }
    return true;
}

static const AttrSpec proposal_attrs[] = {
    {"scales", AT_FLOATS, "[4.0, 8.0, 16.0, 32.0]", "of the anchors, to a place"},
    {"ratios", AT_FLOATS, "[0.5, 1.0, 2.0]", "of the anchors' heights to their widths"},
    {"feature_stride", AT_INT, "16", "places of the image from one place of the map to the next"},
    {"threshold", AT_FLOAT, "0.7", "boxes that share more than this part do not both stay"},
    {"rpn_pre_nms_top_n", AT_INT, "6000",
     "how many of the highest scores are looked at; below 1: all"},
    {"rpn_post_nms_top_n", AT_DIM, "300", "how many boxes are given"},
    {"rpn_min_size", AT_INT, "16", "the least side of a box, times the image's scale"},
    {"iou_loss", AT_BOOL, "False", "predictions are added to corners; else they move and scale"},
};
SIGNATURE_OP(
    vision_proposal, "Proposal", "vision.proposal", "cls_prob, bbox_pred, im_info", 3,
    (.text = "float(b, a, h, w), =0(b, d, h, w), =0(b, 3) -> =0(?, 5)", .refuse = refuse_proposal,
     .measure = measure_proposal),
    .attrs = proposal_attrs, .nattrs = 8, .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE,
    .eval = eval_proposal, .reference_only = "which boxes stay depends on those before",
    .doc =
        "Regions (batch, x1, y1, x2, y2) from the scores and moves of anchors at the places of a\n"
        "feature map; im_info is each image's height, width and scale. Few are given again.",
    .example = "vision.proposal([[[[0.1]], [[0.9]]]], [[[[0.0]], [[0.0]], [[0.0]], [[0.0]]]], "
               "[[32.0, 32.0, 1.0]], scales=[1.0], ratios=[1.0], rpn_post_nms_top_n=1)",
    .example_result = "[[ 0.0,  0.0,  0.0, 15.0, 15.0]] : Tensor[(1, 5), float32]",
    .see_also = "vision.roi_align, vision.non_max_suppression")
