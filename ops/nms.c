/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes and their scores: vision.get_valid_counts, and the greedy suppression of boxes that overlap one of a
 * higher score (vision.non_max_suppression, of rows that hold all; vision.all_class_non_max_suppression, of
 * boxes and scores by class). Which boxes a suppression keeps depends on those before, so it has no recipes. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ops/boxes.h"
#include "ops/relate/signature.h"
#include "ops/relate/structured.h"

static void *at3(const Tensor *t, int64_t a, int64_t b, int64_t c) {
    int64_t at[] = {a, b, c}, offset = 0;
    for (int i = 0; i < t->rank; i++)
        offset += at[i] * t->strides[i];
    return (char *)tensor_data(t) + offset * (int64_t)dtype_size(t->dtype);
}

double box_get(const Tensor *t, int64_t a, int64_t b, int64_t c) {
    return elem_get_float(at3(t, a, b, c), t->dtype);
}

int64_t box_get_int(const Tensor *t, int64_t a, int64_t b, int64_t c) {
    return elem_get_int(at3(t, a, b, c), t->dtype);
}

const char *anchors_read(const Attrs *attrs, const char *sizes, Anchors *out) {
    out->nsizes = attr_floats(attrs, sizes, out->sizes, ANCHORS_MOST);
    out->nratios = attr_floats(attrs, "ratios", out->ratios, ANCHORS_MOST);
    if (out->nsizes < 1 || out->nratios < 1)
        return fmt_text("%s and ratios are lists of 1 to %d numbers", sizes, ANCHORS_MOST);
    for (int i = 0; i < out->nratios; i++)
        if (!(out->ratios[i] > 0))
            return "ratios are above 0";
    return NULL;
}

void box_set(Tensor *t, int64_t a, int64_t b, int64_t c, double v) {
    if (dtype_is_float(t->dtype))
        elem_set_float(at3(t, a, b, c), t->dtype, v);
    else
        elem_set_int(at3(t, a, b, c), t->dtype, (int64_t)v);
}

void box_fill(Tensor *t, double v) {
    int64_t n[3];
    for (int i = 0; i < 3; i++)
        n[i] = i < t->rank ? t->shape[i] : 1;
    for (int64_t a = 0; a < n[0]; a++)
        for (int64_t b = 0; b < n[1]; b++)
            for (int64_t c = 0; c < n[2]; c++)
                box_set(t, a, b, c, v);
}

/* ---- rows that move to the front -------------------------------------------------------------- */

Tensor *box_places(Plan *plan, const int64_t *sizes, BoxKeep keep, const void *ctx, Tensor *count) {
    Tensor *places = plan_temp(plan, DT_I64, 2, sizes);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCAN, 2, sizes);
    step_combine(&s, COMBINE_SUM, DT_I64);
    s.last = true;
    sc_cast(&s.body, keep(&s, ctx), DT_I64);
    step_out(&s, places);
    step_end(&s);
    step_begin(&s, plan, RECIPE_REDUCE, 1, sizes);
    step_reduce_over(&s, 1, sizes + 1);
    step_combine(&s, COMBINE_SUM, DT_I64);
    sc_cast(&s.body, keep(&s, ctx), DT_I64);
    sc_cast(&s.epilogue, sc_acc(&s.epilogue, DT_I64), count->dtype);
    step_out(&s, count);
    step_end(&s);
    return places;
}

void box_begin_rows(StepBuilder *s, Plan *plan, Tensor *out, const Tensor *places) {
    int64_t extents[] = {out->shape[0], places->shape[1], out->rank > 2 ? out->shape[2] : 1};
    if (dtype_is_float(out->dtype))
        plan_fill_float(plan, out, -1);
    else
        plan_fill_int(plan, out, -1);
    step_begin(s, plan, RECIPE_SCATTER, out->rank, extents);
    step_combine(s, COMBINE_NONE, sc_type_of(out->dtype));
}

void box_end_rows(StepBuilder *s, Tensor *out, const Tensor *places, Sc keep, Sc v) {
    ScalarBuilder *b = &s->body;
    int64_t from[RECIPE_MAX_AXES] = {places->strides[0], places->strides[1]};
    int64_t to[RECIPE_MAX_AXES] = {out->strides[0], 0, out->rank > 2 ? out->strides[2] : 0};
    Sc place = sc_load(b, step_in_strided(s, places, from, 0), DT_I64);
    step_result(s, sc_select(b, keep, v, sc_int(b, sc_type(b, v), -1)));
    step_result(s, sc_mul(b, place, step_iparam(s, b, DT_I64, out->strides[1])));
    step_out_strided(s, out, to, 0);
    step_end(s);
}

/* ---- vision.get_valid_counts ------------------------------------------------------------------ */

static const char *refuse_columns(const Attrs *attrs, const int *ranks) {
    const AttrValue *first = attrs_find(attrs, "coord_start");
    (void)ranks;
    return attrs_int(attrs, "score_index") < 0 || (first && first->i < 0)
               ? "score_index and coord_start are columns, from 0"
               : NULL;
}

/* The columns that the attributes name are there. */
static bool check_columns(const OpCall *call, OutSpec *out) {
    static const char *const names[] = {"score_index", "id_index", "coord_start"};
    int64_t n = call->in[0]->shape[2];
    (void)out;
    for (int i = 0; i < 3; i++) {
        const AttrValue *v = attrs_find(call->attrs, names[i]);
        if (!v || v->i + (i == 2 ? 3 : 0) < n)
            continue;
        shape_error(call, DIAG_R0316, "%s=%lld, and a row has %lld numbers", names[i],
                    (long long)v->i, (long long)n);
        return false;
    }
    return true;
}

/* What box_places is asked of vision.get_valid_counts. */
static Sc keep_valid(StepBuilder *s, const void *ctx) {
    const OpCall *call = ctx;
    const Tensor *data = call->in[0];
    ScalarBuilder *b = &s->body;
    int64_t strides[RECIPE_MAX_AXES] = {data->strides[0], data->strides[1]};
    int64_t none[RECIPE_MAX_AXES] = {0}, step = data->strides[2];
    int64_t score = attrs_int(call->attrs, "score_index"), id = attrs_int(call->attrs, "id_index");
    int of_score = step_in_strided(s, data, strides, score * step);
    int least = step_in_strided(s, call->in[1], none, 0);
    Sc keep = sc_gt(b, sc_load(b, of_score, data->dtype), sc_load(b, least, data->dtype));
    if (id < 0)
        return keep;
    Sc class = sc_load(b, step_in_strided(s, data, strides, id * step), data->dtype);
    return sc_and(b, keep, sc_ge(b, class, sc_float(b, sc_type(b, class), 0)));
}

static bool lower_valid_counts(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *data = call->in[0],
                 *places = box_places(plan, data->shape, keep_valid, call, out[0]);
    for (int i = 1; i < 3; i++) {
        StepBuilder s;
        box_begin_rows(&s, plan, out[i], places);
        ScalarBuilder *b = &s.body;
        int64_t strides[RECIPE_MAX_AXES] = {data->strides[0], data->strides[1], data->strides[2]};
        Sc v = i == 1 ? sc_load(b, step_in_strided(&s, data, strides, 0), data->dtype)
                      : sc_cast(b, sc_iota(b, 1), DT_I32);
        box_end_rows(&s, out[i], places, keep_valid(&s, call), v);
    }
    return true;
}

#define ORDER "which boxes stay depends on those before"
static const AttrSpec valid_attrs[] = {
    {"id_index", AT_INT, "0", "the column of classes, below 0 for none; -1 as a class is no box"},
    {"score_index", AT_INT, "1", "the column of scores"},
};
SIGNATURE_OP(vision_get_valid_counts, "GetValidCount", "vision.get_valid_counts",
             "data, score_threshold", 2,
             (.text = "float(b, n, k), =0() -> int32(b), =0(b, n, k), int32(b, n)",
              .refuse = refuse_columns, .measure = check_columns),
             .attrs = valid_attrs, .nattrs = 2, .dtypes = DTS_FLOAT, .tuple = true,
             .pattern = OP_OPAQUE, .lower = lower_valid_counts,
             .doc = "Of each batch of boxes, rows of data (b, n, k), those with a score above the\n"
                    "threshold: how many, these rows first (-1 in the others), and their numbers.",
             .example = "vision.get_valid_counts([[[0.0, 0.2], [0.0, 0.9]]], 0.5).0",
             .example_result = "[1] : Tensor[(1,), int32]",
             .see_also = "vision.non_max_suppression")

/* ---- overlap ---------------------------------------------------------------------------------- */

static Box read_box(const Tensor *t, int64_t b, int64_t i, int64_t first) {
    Box box = {.number = i};
    for (int j = 0; j < 2; j++) {
        double p = box_get(t, b, i, first + j), q = box_get(t, b, i, first + 2 + j);
        box.low[j] = p < q ? p : q;
        box.high[j] = p < q ? q : p;
    }
    return box;
}

/* The area that two boxes share over the area of both together. */
static double overlap(const Box *p, const Box *q) {
    double shared = 1, areas[2] = {1, 1};
    for (int j = 0; j < 2; j++) {
        double low = fmax(p->low[j], q->low[j]), high = fmin(p->high[j], q->high[j]);
        shared *= high > low ? high - low : 0;
        areas[0] *= p->high[j] - p->low[j];
        areas[1] *= q->high[j] - q->low[j];
    }
    double whole = areas[0] + areas[1] - shared;
    return whole > 0 ? shared / whole : 0;
}

void box_sort(Box *boxes, Box *spare, int64_t n) {
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t at = 0; at < n; at += 2 * width) {
            int64_t mid = at + width < n ? at + width : n, end = mid + width < n ? mid + width : n;
            int64_t i = at, j = mid, k = at;
            while (i < mid && j < end)
                spare[k++] = boxes[j].score > boxes[i].score ? boxes[j++] : boxes[i++];
            while (i < mid)
                spare[k++] = boxes[i++];
            while (j < end)
                spare[k++] = boxes[j++];
        }
        memcpy(boxes, spare, sizeof *boxes * (size_t)n);
    }
}

/* Keeps of n sorted boxes those that overlap none before them by the threshold, at most `most`; how many. At
 * the threshold itself a box goes where `equal`. Boxes of different classes do not meet, unless `force`. */
static int64_t suppress(const OpCall *call, Box *boxes, int64_t n, int64_t most, double threshold,
                        bool equal, bool force) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n && kept < most && !op_interrupted(call); i++) {
        bool stays = true;
        for (int64_t k = 0; k < kept && stays; k++) {
            double share = overlap(&boxes[k], &boxes[i]);
            bool meets = force || boxes[k].id == boxes[i].id;
            stays = !meets || !(equal ? share >= threshold : share > threshold);
        }
        if (stays)
            boxes[kept++] = boxes[i];
    }
    return kept;
}

/* ---- vision.non_max_suppression --------------------------------------------------------------- */

static int64_t count_of(const OpCall *call, int64_t b) {
    int64_t n = box_get_int(call->in[1], b, 0, 0), all = call->in[0]->shape[1];
    return n < 0 ? 0 : n < all ? n : all;
}

static bool eval_nms(const OpCall *call, Tensor *const *out) {
    const Tensor *data = call->in[0];
    const Attrs *attrs = call->attrs;
    int64_t id = attrs_int(attrs, "id_index"), score = attrs_int(attrs, "score_index");
    int64_t first = attrs_int(attrs, "coord_start"), top = attrs_int(attrs, "top_k");
    int64_t most = box_get_int(call->in[3], 0, 0, 0), all = data->shape[1];
    bool numbers = attrs_bool(attrs, "return_indices");
    Box *boxes = mem_bytes(sizeof *boxes * (size_t)(2 * all + 1)), *spare = boxes + all;
    box_fill(out[0], -1);
    for (int64_t b = 0; b < data->shape[0] && !op_interrupted(call); b++) {
        int64_t n = count_of(call, b);
        for (int64_t i = 0; i < n; i++) {
            boxes[i] = read_box(data, b, i, first);
            boxes[i].score = box_get(data, b, i, score);
            boxes[i].id = id >= 0 ? box_get(data, b, i, id) : 0;
        }
        box_sort(boxes, spare, n);
        n = top > 0 && top < n ? top : n;
        int64_t kept = suppress(call, boxes, n, most > 0 ? most : n, box_get(call->in[4], 0, 0, 0),
                                true, attrs_bool(attrs, "force_suppress") || id < 0);
        for (int64_t i = 0; i < kept; i++) {
            if (numbers)
                box_set(out[0], b, i, 0, (double)box_get_int(call->in[2], b, boxes[i].number, 0));
            for (int64_t k = 0; !numbers && k < data->shape[2]; k++)
                box_set(out[0], b, i, k, box_get(data, b, boxes[i].number, k));
        }
        if (numbers)
            box_set(out[1], b, 0, 0, (double)kept);
    }
    return true;
}

/* With return_indices two tensors, else one. */
static int form_of_nms(const Attrs *attrs) { return !attrs_bool(attrs, "return_indices"); }

static const AttrSpec nms_attrs[] = {
    {"force_suppress", AT_BOOL, "False", "boxes of different classes meet too"},
    {"top_k", AT_INT, "-1", "only so many of the highest scores are looked at; -1: all"},
    {"coord_start", AT_INT, "2", "the first of the four columns of two opposite corners"},
    {"score_index", AT_INT, "1", "the column of scores"},
    {"id_index", AT_INT, "0", "the column of classes; below 0: all are of one"},
    {"return_indices", AT_BOOL, "True",
     "the numbers of boxes, and how many; else the rows themselves"},
    {"invalid_to_bottom", AT_BOOL, "False", "not used: boxes that stay are always first"},
};
#define NMS_IN "float(b, n, k), int32(b), int32(b, n), int32(), =0() -> "
SIGNATURE_OP(vision_non_max_suppression, "NMS", "vision.non_max_suppression",
             "data, valid_count, indices, max_output_size, iou_threshold", 5,
             (.text = NMS_IN "int32(b, n), int32(b, 1)|" NMS_IN "=0(b, n, k)",
              .refuse = refuse_columns, .measure = check_columns, .form = form_of_nms),
             .attrs = nms_attrs, .nattrs = 7, .by_attr = true, .dtypes = DTS_FLOAT,
             .pattern = OP_OPAQUE, .eval = eval_nms, .reference_only = ORDER,
             .doc = "Boxes by their scores, without those that overlap one of a higher score by\n"
                    "iou_threshold of the area of both: their numbers in indices, -1 behind them.",
             .example = "vision.non_max_suppression([[[0.0, 0.8, 0.0, 0.0, 2.0, 2.0], "
                        "[0.0, 0.9, 0.0, 0.0, 2.0, 2.1]]], [2], [[0, 1]], -1, 0.5).0",
             .example_result = "[[ 1, -1]] : Tensor[(1, 2), int32]",
             .see_also = "vision.get_valid_counts, vision.all_class_non_max_suppression")

/* ---- vision.all_class_non_max_suppression ----------------------------------------------------- */

static bool eval_all_class(const OpCall *call, Tensor *const *out) {
    const Tensor *corners = call->in[0], *scores = call->in[1];
    bool onnx = call->attrs && strcmp(attrs_text(call->attrs, "output_format"), "onnx") == 0;
    int64_t most = box_get_int(call->in[2], 0, 0, 0), all = corners->shape[1], total = 0;
    double threshold = box_get(call->in[3], 0, 0, 0), least = box_get(call->in[4], 0, 0, 0);
    Box *boxes = mem_bytes(sizeof *boxes * (size_t)(2 * all + 1)), *spare = boxes + all;
    box_fill(out[0], 0);
    if (!onnx)
        box_fill(out[1], 0);
    for (int64_t b = 0; b < scores->shape[0]; b++) {
        total = onnx ? total : 0;
        for (int64_t c = 0; c < scores->shape[1] && !op_interrupted(call); c++) {
            int64_t n = 0;
            for (int64_t i = 0; i < all; i++) {
                double score = box_get(scores, b, c, i);
                if (!(score > least))
                    continue;
                boxes[n] = read_box(corners, b, i, 0);
                boxes[n++].score = score;
            }
            box_sort(boxes, spare, n);
            n = suppress(call, boxes, n, most, threshold, false, true);
            for (int64_t i = 0; i < n; i++, total++) {
                double row[] = {(double)b, (double)c, (double)boxes[i].number};
                for (int k = 0; k < 3; k++)
                    if (onnx)
                        box_set(out[0], total, k, 0, row[k]);
                    else if (k)
                        box_set(out[0], b, total, k - 1, row[k]);
                if (!onnx)
                    box_set(out[1], b, total, 0, boxes[i].score);
            }
        }
        box_set(out[onnx ? 1 : 2], onnx ? 0 : b, 0, 0, (double)total);
    }
    if (onnx && scores->shape[0] == 0)
        box_set(out[1], 0, 0, 0, 0);
    return true;
}

/* Rows enough for all boxes of all classes. */
static bool measure_all_class(const OpCall *call, OutSpec *out) {
    const Tensor *scores = call->in[1];
    int64_t n = size_multiply(scores->shape[1], scores->shape[2]);
    if (out[0].rank == 2) {
        out[0].shape[0] = size_multiply(n, scores->shape[0]);
        return true;
    }
    out[0].shape[1] = out[1].shape[1] = n;
    return true;
}

static int form_of_all_class(const Attrs *attrs) {
    return strcmp(attrs_text(attrs, "output_format"), "onnx") != 0;
}

static const AttrSpec all_class_attrs[] = {
    {"output_format", AT_STRING, "\"onnx\"",
     "onnx: rows (batch, class, box), and how many; tensorflow: of each batch rows (class, box), "
     "their scores, and how many"},
};
#define ALL_CLASS "float(b, n, 4), =0(b, c, n), int(), =0(), =0() -> "
SIGNATURE_OP(vision_all_class_non_max_suppression, "AllClassNMS",
             "vision.all_class_non_max_suppression",
             "boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold", 5,
             (.text = ALL_CLASS "int64(?, 3), int64(1)|" ALL_CLASS
                                "int64(b, ?, 2), =0(b, ?), int64(b)",
              .measure = measure_all_class, .form = form_of_all_class),
             .attrs = all_class_attrs, .nattrs = 1, .choices = "output_format: onnx tensorflow",
             .dtypes = DTS_FLOAT, .tuple = true, .pattern = OP_OPAQUE, .eval = eval_all_class,
             .reference_only = ORDER,
             .doc = "Of each batch and class the boxes with a score above score_threshold, the\n"
                    "highest first, without those that overlap one before by more than\n"
                    "iou_threshold. The rows behind the last are 0.",
             .example = "vision.all_class_non_max_suppression([[[0.0, 0.0, 1.0, 1.0], "
                        "[0.0, 0.0, 1.0, 1.1]]], [[[0.8, 0.9]]], 2, 0.5, 0.0)",
             .example_result =
                 "([[0, 0, 1], [0, 0, 0]], [1]) : (Tensor[(2, 3), int64], Tensor[(1,), int64])",
             .see_also = "vision.non_max_suppression")

/* ---- vision.regular_non_max_suppression ------------------------------------------------------- */

static const char *refuse_regular(const Attrs *attrs, const int *ranks) {
    (void)ranks;
    if (attrs_int(attrs, "max_detections_per_class") < 0 || attrs_int(attrs, "max_detections") < 0)
        return "max_detections_per_class and max_detections are not negative";
    return attrs_int(attrs, "num_classes") >= 0 ? NULL : "num_classes is not negative";
}

static bool measure_regular(const OpCall *call, OutSpec *out) {
    int64_t have = call->in[1]->shape[2], n = attrs_int(call->attrs, "num_classes");
    (void)out;
    if (n <= have)
        return true;
    shape_error(call, DIAG_R0316, "num_classes=%lld, and `scores` has %lld", (long long)n,
                (long long)have);
    return false;
}

/* Of a batch: the boxes that stay in each class, of all of which the highest are kept. Box.id is the class. */
static int64_t suppress_classes(const OpCall *call, int64_t b, Box *boxes, Box *kept, Box *spare) {
    const Tensor *corners = call->in[0], *scores = call->in[1];
    const Attrs *attrs = call->attrs;
    double least = attrs_float(attrs, "score_threshold");
    int64_t classes = attrs_int(attrs, "num_classes"), most = attrs_int(attrs, "max_detections");
    int64_t total = 0, background = scores->shape[2] - classes;
    for (int64_t c = 0; c < classes && !op_interrupted(call); c++) {
        int64_t n = 0;
        for (int64_t i = 0; i < corners->shape[1]; i++) {
            double score = box_get(scores, b, i, background + c);
            if (!(score >= least))
                continue;
            boxes[n] = read_box(corners, b, i, 0);
            boxes[n].id = (double)c;
            boxes[n++].score = score;
        }
        box_sort(boxes, spare, n);
        n = suppress(call, boxes, n, attrs_int(attrs, "max_detections_per_class"),
                     attrs_float(attrs, "iou_threshold"), false, true);
        memcpy(kept + total, boxes, sizeof *boxes * (size_t)n);
        total += n;
        box_sort(kept, spare, total);
        total = total < most ? total : most;
    }
    return total;
}

static bool eval_regular(const OpCall *call, Tensor *const *out) {
    const Tensor *corners = call->in[0];
    int64_t n = corners->shape[1], most = attrs_int(call->attrs, "max_detections");
    int64_t room = size_add(n, most < INT32_MAX ? most : INT32_MAX);
    Box *boxes = mem_bytes(sizeof *boxes * (size_t)(n + 2 * room + 1));
    for (int k = 0; k < 4; k++)
        box_fill(out[k], 0);
    for (int64_t b = 0; b < corners->shape[0]; b++) {
        Box *kept = boxes + n;
        int64_t found = suppress_classes(call, b, boxes, kept, kept + room);
        for (int64_t i = 0; i < found; i++) {
            for (int k = 0; k < 4; k++)
                box_set(out[0], b, i, k, box_get(corners, b, kept[i].number, k));
            box_set(out[1], b, i, 0, kept[i].id);
            box_set(out[2], b, i, 0, kept[i].score);
        }
        box_set(out[3], b, 0, 0, (double)found);
    }
    return true;
}

static const AttrSpec regular_attrs[] = {
    {"max_detections_per_class", AT_DIM, NULL, "at most so many boxes of a class"},
    {"max_detections", AT_DIM, NULL, "at most so many boxes of a batch"},
    {"num_classes", AT_INT, NULL, "how many classes count, the last ones of `scores`"},
    {"iou_threshold", AT_FLOAT, NULL, "boxes that share more than this part do not both stay"},
    {"score_threshold", AT_FLOAT, NULL, "the least score of a box that counts"},
};
SIGNATURE_OP(
    vision_regular_non_max_suppression, "RegularNMS", "vision.regular_non_max_suppression",
    "boxes, scores", 2,
    (.text = "float(b, n, 4), =0(b, n, c) -> =0(b, @max_detections, 4), =0(b, @max_detections), "
             "=0(b, @max_detections), int32(b)",
     .refuse = refuse_regular, .measure = measure_regular),
    .attrs = regular_attrs, .nattrs = 5, .dtypes = DTS_FLOAT, .tuple = true, .pattern = OP_OPAQUE,
    .eval = eval_regular, .reference_only = ORDER,
    .doc = "Of each batch the boxes of the highest scores, without those that overlap one of\n"
           "their class before them: boxes, classes, scores (0 behind the last), how many.",
    .example = "vision.regular_non_max_suppression([[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9]]], "
               "[[[0.1, 0.8], [0.1, 0.7]]], max_detections_per_class=2, max_detections=2, "
               "num_classes=1, iou_threshold=0.5, score_threshold=0.2).2",
    .example_result = "[[0.8, 0.0]] : Tensor[(1, 2), float32]",
    .see_also = "vision.all_class_non_max_suppression")
