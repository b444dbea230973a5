/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of interest: vision.roi_align and vision.roi_pool, with the maps back that their derivatives are. How many
 * places of data a region covers follows from its numbers, so these are read when a call is planned, and each region is
 * a step of its own; the recipe is the same for all.
 *
 * A bin is the mean of its samples, or the one sample that is the largest, of which a step before finds the number:
 * values, a derivative and the derivative of that then read or write at the same places. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ops/relate/signature.h"

/* ---- elements --------------------------------------------------------------------------------- */

static void *place(const Tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
    int64_t at[] = {a, b, c, d}, offset = 0;
    for (int i = 0; i < t->rank; i++)
        offset += at[i] * t->strides[i];
    return (char *)tensor_data(t) + offset * (int64_t)dtype_size(t->dtype);
}

static double get(const Tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
    return elem_get_float(place(t, a, b, c, d), t->dtype);
}

/* ---- regions ---------------------------------------------------------------------------------- */

enum { ALIGN, POOL }; /* Op.variant */

typedef struct Regions {
    const OpCall *call;
    const Tensor *data, *rois;
    const Tensor *values;       /* what is read where data says; data itself but for the picks */
    int64_t pooled[2], size[2]; /* of the result and of data: heights, then widths */
    int64_t ratio;              /* samples along a side of a bin; at most 0: as many as places */
    double scale;
    bool largest; /* the largest sample counts, else their mean */
} Regions;

/* An image, whatever its layout, seen as n, c, h, w. */
static Tensor *as_planes(const OpCall *call, Tensor *t) {
    const int64_t *n = t->shape, *s = t->strides;
    if (strcmp(attrs_text(call->attrs, "layout"), "NHWC"))
        return t;
    return tensor_view(t, t->rank, (int64_t[]){n[0], n[3], n[1], n[2]},
                       (int64_t[]){s[0], s[3], s[1], s[2]}, t->offset);
}

/* The batch that a region is of; false after a report. */
static bool region_batch(const Regions *g, int64_t r, int64_t *batch) {
    double n = get(g->rois, r, 0, 0, 0);
    *batch = (int64_t)n;
    if (n >= 0 && n < (double)g->data->shape[0])
        return true;
    shape_error(g->call, DIAG_R0602, "region %lld is of batch %g, there are %lld", (long long)r, n,
                (long long)g->data->shape[0]);
    return false;
}

static Regions read_regions(const OpCall *call, int arg) {
    const Tensor *data = as_planes(call, call->in[arg]);
    Regions g = {.call = call, .data = data, .values = data, .rois = call->in[1], .largest = true};
    const AttrValue *mode = attrs_find(call->attrs, "mode");
    attr_int_list(call->attrs, "pooled_size", g.pooled, 2);
    for (int j = 0; j < 2; j++)
        g.size[j] = data->shape[2 + j];
    g.scale = attrs_float(call->attrs, "spatial_scale");
    if (mode) {
        g.largest = strcmp(mode->text, "max") == 0;
        g.ratio = attrs_int(call->attrs, "sample_ratio");
    }
    return g;
}

/* ---- one region ------------------------------------------------------------------------------- */

enum { MOST_SAMPLES = 1 << 20 }; /* along a side of a bin */

/* Region r: its bins (c, y, x), and in each samples (i, j), of which there are as many in all. */
typedef struct Region {
    const Regions *g;
    int64_t r, batch, samples[2];
    double start[2], bin[2]; /* in places of data */
} Region;

static bool read_region(const Regions *g, int64_t r, Region *at) {
    *at = (Region){.g = g, .r = r};
    if (!region_batch(g, r, &at->batch))
        return false;
    for (int j = 0; j < 2; j++) {
        bool pools = g->call->op->variant == POOL;
        double low = get(g->rois, r, 2 - j, 0, 0) * g->scale,
               high = get(g->rois, r, 4 - j, 0, 0) * g->scale;
        double side = pools ? round(high) - round(low) + 1 : high - low;
        at->start[j] = pools ? round(low) : low;
        at->bin[j] = (side > 1 ? side : 1) / (double)g->pooled[j];
        /* A bin of whole places begins anywhere between two of them. */
        double most = pools ? fmin(ceil(at->bin[j]) + 1, (double)g->size[j]) : ceil(at->bin[j]);
        at->samples[j] = !pools && g->ratio > 0 ? g->ratio : (int64_t)fmin(most, MOST_SAMPLES);
        if (pools || at->samples[j] < MOST_SAMPLES)
            continue;
        shape_error(g->call, DIAG_R0602, "region %lld has bins of %g places", (long long)r,
                    at->bin[j]);
        return false;
    }
    return true;
}

/* Sample (i, j) of the bin at hand: int64 values. */
typedef struct Sample {
    Sc i[2];
} Sample;

/* What is read for a sample: along each side a place, the next one, and how far the point is between them. */
typedef struct Point {
    Sc low[2], high[2], rest[2], inside;
} Point;

/* The step's axes 1 and 2 are (y, x). */
static Point align_point(StepBuilder *s, const Region *at, Sample z) {
    ScalarBuilder *b = &s->body;
    Point p;
    for (int j = 0; j < 2; j++) {
        Sc bin = step_fparam(s, b, DT_F64, at->bin[j]);
        Sc start = step_fparam(s, b, DT_F64, at->start[j]);
        Sc count = step_fparam(s, b, DT_F64, (double)at->samples[j]);
        Sc side = step_fparam(s, b, DT_F64, (double)at->g->size[j]);
        Sc last = sc_sub(b, side, sc_float(b, DT_F64, 1)), zero = sc_float(b, DT_F64, 0);
        Sc first = sc_add(b, start, sc_mul(b, sc_cast(b, sc_iota(b, 1 + j), DT_F64), bin));
        Sc half = sc_add(b, sc_cast(b, z.i[j], DT_F64), sc_float(b, DT_F64, 0.5));
        Sc x = sc_add(b, first, sc_div(b, sc_mul(b, half, bin), count));
        Sc inside = sc_and(b, sc_ge(b, x, sc_float(b, DT_F64, -1)), sc_le(b, x, side));
        p.inside = j ? sc_and(b, p.inside, inside) : inside;
        x = sc_select(b, inside, sc_min(b, sc_max(b, x, zero), last), zero);
        Sc low = sc_floor(b, x);
        p.rest[j] = sc_sub(b, x, low);
        p.low[j] = sc_cast(b, low, DT_I64);
        p.high[j] = sc_cast(b, sc_min(b, sc_add(b, low, sc_float(b, DT_F64, 1)), last), DT_I64);
    }
    return p;
}

/* The place of data that a sample is, and whether it lies in the bin. */
static Point pool_point(StepBuilder *s, const Region *at, Sample z) {
    ScalarBuilder *b = &s->body;
    Point p;
    for (int j = 0; j < 2; j++) {
        Sc bin = step_fparam(s, b, DT_F64, at->bin[j]);
        Sc start = step_fparam(s, b, DT_F64, at->start[j]);
        Sc side = step_fparam(s, b, DT_F64, (double)at->g->size[j]), zero = sc_float(b, DT_F64, 0);
        Sc number = sc_cast(b, sc_iota(b, 1 + j), DT_F64);
        Sc next = sc_add(b, number, sc_float(b, DT_F64, 1));
        Sc from = sc_add(b, sc_floor(b, sc_mul(b, number, bin)), start);
        Sc to = sc_add(b, sc_ceil(b, sc_mul(b, next, bin)), start);
        from = sc_min(b, sc_max(b, from, zero), side);
        to = sc_min(b, sc_max(b, to, zero), side);
        Sc place = sc_add(b, sc_cast(b, from, DT_I64), z.i[j]);
        Sc inside = sc_lt(b, place, sc_cast(b, to, DT_I64));
        p.inside = j ? sc_and(b, p.inside, inside) : inside;
        p.low[j] = place;
    }
    return p;
}

/* ---- reading and writing ---------------------------------------------------------------------- */

static bool pools(const Region *at) { return at->g->call->op->variant == POOL; }

static Point find_point(StepBuilder *s, const Region *at, Sample z) {
    return pools(at) ? pool_point(s, at, z) : align_point(s, at, z);
}

/* Where t, (n, c, h, w), has the place (y, x). */
static Sc offset_of(StepBuilder *s, const Tensor *t, Sc y, Sc x) {
    ScalarBuilder *b = &s->body;
    return sc_add(b, sc_mul(b, y, step_iparam(s, b, DT_I64, t->strides[2])),
                  sc_mul(b, x, step_iparam(s, b, DT_I64, t->strides[3])));
}

/* t at a sample, in float64: between four places, or at one. Where there is none it is `otherwise`. */
static Sc read_point(StepBuilder *s, const Region *at, const Tensor *t, Point p, double otherwise) {
    ScalarBuilder *b = &s->body;
    int64_t strides[RECIPE_MAX_AXES] = {t->strides[1]};
    int in = step_in_strided(s, t, strides, at->batch * t->strides[0]);
    Sc corner[2][2], one = sc_float(b, DT_F64, 1);
    if (pools(at)) {
        Sc offset = offset_of(s, t, p.low[0], p.low[1]);
        return sc_cast(b, sc_load_if(b, in, t->dtype, offset, p.inside, otherwise), DT_F64);
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            Sc offset = offset_of(s, t, i ? p.high[0] : p.low[0], j ? p.high[1] : p.low[1]);
            corner[i][j] = sc_cast(b, sc_load_if(b, in, t->dtype, offset, p.inside, 0), DT_F64);
        }
    Sc sum = sc_float(b, DT_F64, 0);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            Sc wy = i ? p.rest[0] : sc_sub(b, one, p.rest[0]);
            Sc wx = j ? p.rest[1] : sc_sub(b, one, p.rest[1]), w = sc_mul(b, wy, wx);
            Sc term = sc_mul(b, w, corner[i][j]);
            /* a place of no weight is not read, whatever stands there */
            Sc zero = sc_float(b, DT_F64, 0);
            sum = sc_add(b, sum, sc_select(b, sc_eq(b, w, zero), zero, term));
        }
    return sum;
}

/* The bins of a region, (c, y, x). */
static void bin_extents(const Region *at, int64_t *extents) {
    extents[0] = at->g->data->shape[1];
    extents[1] = at->g->pooled[0];
    extents[2] = at->g->pooled[1];
}

/* t, (r, c, y, x), at the bin, whose region is this one. */
static int64_t bin_strides(const Region *at, const Tensor *t, int64_t *strides) {
    for (int j = 0; j < 3; j++)
        strides[j] = t->strides[1 + j];
    return at->r * t->strides[0];
}

static Sample samples_of(StepBuilder *s, int axis) {
    return (Sample){{sc_iota(&s->body, axis), sc_iota(&s->body, axis + 1)}};
}

/* The number of the largest sample of each bin. */
static Tensor *plan_largest(Plan *plan, const Region *at) {
    int64_t extents[3];
    bin_extents(at, extents);
    Tensor *largest = plan_temp(plan, DT_I64, 3, extents);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, 3, extents);
    step_reduce_over(&s, 2, at->samples);
    step_combine(&s, COMBINE_ARGMAX, DT_F64);
    step_result(&s,
                read_point(&s, at, at->g->data, find_point(&s, at, samples_of(&s, 3)), -INFINITY));
    step_out(&s, largest);
    step_end(&s);
    return largest;
}

/* The sample that plan_largest found. */
static Sample largest_of(StepBuilder *s, const Region *at, const Tensor *largest) {
    ScalarBuilder *b = &s->body;
    int64_t strides[RECIPE_MAX_AXES] = {largest->strides[0], largest->strides[1], 1};
    Sc number = sc_load(b, step_in_strided(s, largest, strides, 0), DT_I64);
    Sc width = step_iparam(s, b, DT_I64, at->samples[1]);
    return (Sample){{sc_div(b, number, width), sc_rem(b, number, width)}};
}

/* out at the bins of a region, from values. */
static void plan_read(Plan *plan, const Region *at, Tensor *out) {
    bool largest = at->g->largest;
    int64_t extents[3], strides[RECIPE_MAX_AXES] = {0};
    bin_extents(at, extents);
    const Tensor *numbers = largest ? plan_largest(plan, at) : NULL;
    StepBuilder s;
    step_begin(&s, plan, largest ? RECIPE_MAP : RECIPE_REDUCE, 3, extents);
    if (!largest) {
        step_reduce_over(&s, 2, at->samples);
        step_combine(&s, COMBINE_SUM, DT_F64);
    }
    Sample z = largest ? largest_of(&s, at, numbers) : samples_of(&s, 3);
    Sc v = read_point(&s, at, at->g->values, find_point(&s, at, z), 0);
    if (largest) {
        sc_convert(&s.body, v, out->dtype);
    } else {
        ScalarBuilder *e = &s.epilogue;
        double count = (double)at->samples[0] * (double)at->samples[1];
        sc_convert(e, sc_div(e, sc_acc(e, DT_F64), step_fparam(&s, e, DT_F64, count)), out->dtype);
    }
    int64_t from = bin_strides(at, out, strides);
    step_out_strided(&s, out, strides, from);
    step_end(&s);
}

/* Adds grad of the bins of a region to `into`, at the places that were read: axes 3 to 6 are the samples (one, where only
 * the largest counts) and the four places of each (one of a pool). */
static void plan_spread(Plan *plan, const Region *at, Tensor *into, const Tensor *grad) {
    bool largest = at->g->largest;
    int64_t extents[7] = {0, 0, 0, 1, 1, pools(at) ? 1 : 2, pools(at) ? 1 : 2};
    int64_t strides[RECIPE_MAX_AXES] = {0}, to[RECIPE_MAX_AXES] = {into->strides[1]};
    bin_extents(at, extents);
    for (int j = 0; j < 2 && !largest; j++)
        extents[3 + j] = at->samples[j];
    const Tensor *numbers = largest ? plan_largest(plan, at) : NULL;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, 7, extents);
    step_combine(&s, COMBINE_SUM, DT_F64);
    ScalarBuilder *b = &s.body;
    Sample z = largest ? largest_of(&s, at, numbers) : samples_of(&s, 3);
    Point p = find_point(&s, at, z);
    int64_t from = bin_strides(at, grad, strides), zero_at = 0;
    Sc v = sc_cast(b, sc_load(b, step_in_strided(&s, grad, strides, from), grad->dtype), DT_F64);
    Sc one = sc_float(b, DT_F64, 1), zero = sc_float(b, DT_F64, 0), place[2], weight = one;
    for (int j = 0; j < 2; j++) {
        place[j] = p.low[j];
        if (pools(at))
            continue;
        Sc is_high = sc_eq(b, sc_iota(b, 5 + j), sc_i64(b, 1));
        place[j] = sc_select(b, is_high, p.high[j], p.low[j]);
        weight = sc_mul(b, weight, sc_select(b, is_high, p.rest[j], sc_sub(b, one, p.rest[j])));
    }
    if (!largest) {
        double count = (double)at->samples[0] * (double)at->samples[1];
        v = sc_div(b, v, step_fparam(&s, b, DT_F64, count));
    }
    Sc counts = sc_and(b, p.inside, sc_ne(b, weight, zero));
    step_result(&s, sc_select(b, counts, sc_mul(b, weight, v), zero));
    step_result(&s,
                sc_select(b, counts, offset_of(&s, into, place[0], place[1]), sc_i64(b, zero_at)));
    step_out_strided(&s, into, to, at->batch * into->strides[0]);
    step_end(&s);
}

static bool has_places(const Regions *g) { return g->size[0] > 0 && g->size[1] > 0; }

/* out, a bin after the other; where data has no places, all are 0. */
static bool plan_bins(Plan *plan, const Regions *g, Tensor *out) {
    if (!has_places(g))
        plan_fill_int(plan, out, 0);
    for (int64_t r = 0; r < g->rois->shape[0]; r++) {
        Region at;
        if (!read_region(g, r, &at))
            return false;
        if (has_places(g))
            plan_read(plan, &at, out);
    }
    return true;
}

static bool lower_regions(const OpCall *call, Tensor *const *out, Plan *plan) {
    Regions g = read_regions(call, 0);
    return plan_bins(plan, &g, as_planes(call, out[0]));
}

static bool lower_regions_pick(const OpCall *call, Tensor *const *out, Plan *plan) {
    Regions g = read_regions(call, 2);
    g.values = as_planes(call, call->in[0]);
    return plan_bins(plan, &g, as_planes(call, out[0]));
}

/* Of many regions one place of data gets much, so it is summed in float64. */
static bool lower_regions_grad(const OpCall *call, Tensor *const *out, Plan *plan) {
    Regions g = read_regions(call, 2);
    Tensor *sums = out[0]->dtype == DT_F64 ? out[0]
                                           : plan_temp(plan, DT_F64, out[0]->rank, out[0]->shape);
    plan_fill_int(plan, sums, 0);
    for (int64_t r = 0; r < g.rois->shape[0]; r++) {
        Region at;
        if (!read_region(&g, r, &at))
            return false;
        if (has_places(&g))
            plan_spread(plan, &at, as_planes(call, sums), as_planes(call, call->in[0]));
    }
    if (sums != out[0])
        plan_copy(plan, out[0], sums);
    return true;
}

/* ---- the operators ---------------------------------------------------------------------------- */

static const char *refuse_pooled(const Attrs *attrs, const int *ranks) {
    int64_t size[2];
    (void)ranks;
    return attr_int_list(attrs, "pooled_size", size, 2) == 2 && size[0] > 0 && size[1] > 0
               ? NULL
               : "pooled_size is a height and a width above 0";
}

static int form_of_layout(const Attrs *attrs) {
    return strcmp(attrs_text(attrs, "layout"), "NHWC") == 0;
}

#define ROI_ATTRS                                                                                  \
    {"pooled_size", AT_DIMS, NULL, "the height and the width of what a region becomes"},           \
        {"spatial_scale", AT_FLOAT, NULL, "what the numbers of regions are multiplied with"}, {    \
        "layout", AT_STRING, "\"NCHW\"", "what data's axes are, NCHW or NHWC"                      \
    }
static const AttrSpec pool_attrs[] = {ROI_ATTRS};
static const AttrSpec align_attrs[] = {
    ROI_ATTRS,
    {"sample_ratio", AT_INT, "-1", "points along a side of a bin; -1: as many as it has places"},
    {"mode", AT_STRING, "\"avg\"", "what counts of a bin's points: avg or max"},
};
/* The two lines of a signature: an image and what a region becomes, as the layout has them. */
#define ROI_LINES(line)                                                                            \
    line("(n, c, h, w)", "(r, c, @pooled_size.0, @pooled_size.1)") "|" line(                       \
        "(n, h, w, c)", "(r, @pooled_size.0, @pooled_size.1, c)")
#define ROI_LINE(image, bins) "float" image ", =0(r, 5) -> =0" bins
#define GRAD_LINE(image, bins) "float" bins ", =0(r, 5), =0" image " -> =0" image
#define PICK_LINE(image, bins) "float" image ", =0(r, 5), =0" image " -> =0" bins
#define ROI(symbol, rel, op_name, kind, op_attrs, n, words, shown, value)                          \
    SIGNATURE_OP(symbol, rel, op_name, "data, rois", 2,                                            \
                 (.text = ROI_LINES(ROI_LINE), .refuse = refuse_pooled, .form = form_of_layout),   \
                 .attrs = op_attrs, .nattrs = n, .choices = "layout: NCHW NHWC; mode: avg max",    \
                 .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE, .variant = kind,                       \
                 .lower = lower_regions, .lower_reads = true, .doc = words, .example = shown,      \
                 .example_result = value)
#define ROI_GRAD(symbol, rel, op_name, kind, op_attrs, n, words, shown, value, see)                \
    SIGNATURE_OP(symbol, rel, op_name, "grad, rois, data", 3,                                      \
                 (.text = ROI_LINES(GRAD_LINE), .refuse = refuse_pooled, .form = form_of_layout),  \
                 .attrs = op_attrs, .nattrs = n, .choices = "layout: NCHW NHWC; mode: avg max",    \
                 .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE, .variant = kind,                       \
                 .lower = lower_regions_grad, .lower_reads = true, .doc = words, .example = shown, \
                 .example_result = value, .see_also = see)

ROI(vision_roi_align, "ROIAlign", "vision.roi_align", ALIGN, align_attrs, 5,
    "Of each region, a row (batch, x1, y1, x2, y2) of rois, pooled_size bins: the mean or the\n"
    "largest of points in it, read between the places of data (n, c, h, w).",
    "vision.roi_align([[[[1.0, 3.0]]]], [[0.0, 0.0, 0.0, 1.0, 1.0]], pooled_size=[1, 1], "
    "spatial_scale=1.0)",
    "[[[[2.0]]]] : Tensor[(1, 1, 1, 1), float32]")
ROI(vision_roi_pool, "ROIPool", "vision.roi_pool", POOL, pool_attrs, 3,
    "Of each region, a row (batch, x1, y1, x2, y2) of rois, pooled_size bins: the largest\n"
    "element of data (n, c, h, w) in it.",
    "vision.roi_pool([[[[1.0, 3.0]]]], [[0.0, 0.0, 0.0, 1.0, 0.0]], pooled_size=[1, 1], "
    "spatial_scale=1.0)",
    "[[[[3.0]]]] : Tensor[(1, 1, 1, 1), float32]")
ROI_GRAD(vision_roi_align_grad, "ROIAlignGrad", "vision.roi_align_grad", ALIGN, align_attrs, 5,
         "The derivative of vision.roi_align by data.",
         "vision.roi_align_grad([[[[2.0]]]], [[0.0, 0.0, 0.0, 1.0, 1.0]], [[[[1.0, 3.0]]]], "
         "pooled_size=[1, 1], spatial_scale=1.0)",
         "[[[[1.0, 1.0]]]] : Tensor[(1, 1, 1, 2), float32]", "vision.roi_align")
ROI_GRAD(vision_roi_pool_grad, "ROIPoolGrad", "vision.roi_pool_grad", POOL, pool_attrs, 3,
         "The derivative of vision.roi_pool by data.",
         "vision.roi_pool_grad([[[[2.0]]]], [[0.0, 0.0, 0.0, 1.0, 0.0]], [[[[1.0, 3.0]]]], "
         "pooled_size=[1, 1], spatial_scale=1.0)",
         "[[[[0.0, 2.0]]]] : Tensor[(1, 1, 1, 2), float32]", "vision.roi_pool")

/* The derivative of the derivative. */
#define ROI_PICK(symbol, rel, op_name, kind, op_attrs, n, shown, value, see)                       \
    SIGNATURE_OP(symbol, rel, op_name, "values, rois, data", 3,                                    \
                 (.text = ROI_LINES(PICK_LINE), .refuse = refuse_pooled, .form = form_of_layout),  \
                 .attrs = op_attrs, .nattrs = n, .choices = "layout: NCHW NHWC; mode: avg max",    \
                 .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE, .variant = kind,                       \
                 .lower = lower_regions_pick, .lower_reads = true,                                 \
                 .doc = "values read where " see " reads data.", .example = shown,                 \
                 .example_result = value, .see_also = see)
ROI_PICK(vision_roi_align_pick, "ROIAlignPick", "vision.roi_align_pick", ALIGN, align_attrs, 5,
         "vision.roi_align_pick([[[[2.0, 6.0]]]], [[0.0, 0.0, 0.0, 1.0, 1.0]], [[[[1.0, 3.0]]]], "
         "pooled_size=[1, 1], spatial_scale=1.0)",
         "[[[[4.0]]]] : Tensor[(1, 1, 1, 1), float32]", "vision.roi_align")
ROI_PICK(vision_roi_pool_pick, "ROIPoolPick", "vision.roi_pool_pick", POOL, pool_attrs, 3,
         "vision.roi_pool_pick([[[[5.0, 6.0]]]], [[0.0, 0.0, 0.0, 1.0, 0.0]], [[[[1.0, 3.0]]]], "
         "pooled_size=[1, 1], spatial_scale=1.0)",
         "[[[[6.0]]]] : Tensor[(1, 1, 1, 1), float32]", "vision.roi_pool")
