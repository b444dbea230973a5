/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of interest: vision.roi_align and vision.roi_pool, with the maps back that their derivatives are. How many
 * places of data a region covers follows from its numbers, so there are no recipes: the loops are written out,
 * once, and what is done at each place is a function. */
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

static void add(Tensor *t, int64_t a, int64_t b, int64_t c, int64_t d, double v) {
    elem_set_float(place(t, a, b, c, d), t->dtype, get(t, a, b, c, d) + v);
}

static void clear(Tensor *t) { memset(tensor_data(t), 0, (size_t)t->count * dtype_size(t->dtype)); }

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

/* ---- one bin ---------------------------------------------------------------------------------- */

/* The four places around a point, and their weights; all 0 where the point is far outside. */
typedef struct Corners {
    int64_t at[2][2]; /* low and high, of the height and of the width */
    double weight[2][2];
} Corners;

static Corners find_corners(const Regions *g, const double *point) {
    Corners c = {0};
    double high[2];
    for (int j = 0; j < 2; j++) {
        double x = point[j];
        int64_t last = g->size[j] - 1;
        if (!(x >= -1 && x <= (double)g->size[j]) || last < 0)
            return (Corners){0};
        x = x > 0 ? x : 0;
        c.at[j][0] = (int64_t)x < last ? (int64_t)x : last;
        c.at[j][1] = c.at[j][0] < last ? c.at[j][0] + 1 : last;
        high[j] = c.at[j][0] < last ? x - (double)c.at[j][0] : 0;
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            c.weight[i][k] = (i ? high[0] : 1 - high[0]) * (k ? high[1] : 1 - high[1]);
    return c;
}

/* What is done with a bin: of channel k of the batch, into element (r, k, y, x) of the result. Either reads
 * data into out, or adds grad to `into`. */
typedef struct Bin {
    const Regions *g;
    int64_t r, batch, k, y, x;
    Tensor *out, *into;
    const Tensor *grad;
} Bin;

static double sample(const Bin *b, const Tensor *t, const Corners *c) {
    double v = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (c->weight[i][j] != 0)
                v += c->weight[i][j] * get(t, b->batch, b->k, c->at[0][i], c->at[1][j]);
    return v;
}

static void spread(const Bin *b, const Corners *c, double v) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (c->weight[i][j] != 0)
                add(b->into, b->batch, b->k, c->at[0][i], c->at[1][j], c->weight[i][j] * v);
}

static void align_bin(const Bin *b) {
    const Regions *g = b->g;
    double start[2], bin[2];
    int64_t n[2], at[] = {b->y, b->x};
    for (int j = 0; j < 2; j++) {
        start[j] = get(g->rois, b->r, 2 - j, 0, 0) * g->scale;
        double side = get(g->rois, b->r, 4 - j, 0, 0) * g->scale - start[j];
        side = side > 1 ? side : 1;
        bin[j] = side / (double)g->pooled[j];
        n[j] = g->ratio > 0 ? g->ratio : (int64_t)ceil(bin[j]);
        start[j] += (double)at[j] * bin[j];
    }
    double sum = 0, best = -INFINITY, count = (double)(n[0] * n[1]);
    double given = b->grad ? get(b->grad, b->r, b->k, b->y, b->x) : 0;
    Corners first = {0};
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++) {
            double point[] = {start[0] + ((double)i + 0.5) * bin[0] / (double)n[0],
                              start[1] + ((double)j + 0.5) * bin[1] / (double)n[1]};
            Corners c = find_corners(g, point);
            if (b->grad && !g->largest) {
                spread(b, &c, given / count);
                continue;
            }
            double v = sample(b, g->data, &c);
            sum += g->largest ? 0 : sample(b, g->values, &c);
            if (v > best) {
                best = v;
                first = c;
            }
        }
    if (b->grad && g->largest)
        spread(b, &first, given);
    else if (!b->grad)
        elem_set_float(place(b->out, b->r, b->k, b->y, b->x), b->out->dtype,
                       g->largest ? sample(b, g->values, &first) : sum / count);
}

static void pool_bin(const Bin *b) {
    const Regions *g = b->g;
    int64_t from[2], to[2], at[] = {b->y, b->x}, found[2] = {-1, -1};
    for (int j = 0; j < 2; j++) {
        double start = round(get(g->rois, b->r, 2 - j, 0, 0) * g->scale);
        double side = round(get(g->rois, b->r, 4 - j, 0, 0) * g->scale) - start + 1;
        double bin = (side > 1 ? side : 1) / (double)g->pooled[j], last = (double)g->size[j];
        double low = floor((double)at[j] * bin) + start,
               high = ceil((double)(at[j] + 1) * bin) + start;
        from[j] = (int64_t)fmin(fmax(low, 0), last);
        to[j] = (int64_t)fmin(fmax(high, 0), last);
    }
    double best = 0;
    for (int64_t i = from[0]; i < to[0]; i++)
        for (int64_t j = from[1]; j < to[1]; j++) {
            double v = get(g->data, b->batch, b->k, i, j);
            if (found[0] >= 0 && !(v > best))
                continue;
            best = v;
            found[0] = i;
            found[1] = j;
        }
    if (!b->grad)
        elem_set_float(place(b->out, b->r, b->k, b->y, b->x), b->out->dtype,
                       found[0] < 0 ? 0 : get(g->values, b->batch, b->k, found[0], found[1]));
    else if (found[0] >= 0)
        add(b->into, b->batch, b->k, found[0], found[1], get(b->grad, b->r, b->k, b->y, b->x));
}

/* All bins of all regions; false after a report. */
static bool each_bin(const Regions *g, Bin b) {
    b.g = g;
    for (b.r = 0; b.r < g->rois->shape[0]; b.r++) {
        if (!region_batch(g, b.r, &b.batch))
            return false;
        if (op_interrupted(g->call))
            return true;
        for (b.k = 0; b.k < g->data->shape[1]; b.k++)
            for (b.y = 0; b.y < g->pooled[0]; b.y++)
                for (b.x = 0; b.x < g->pooled[1]; b.x++)
                    if (g->call->op->variant == POOL)
                        pool_bin(&b);
                    else
                        align_bin(&b);
    }
    return true;
}

static bool eval_regions(const OpCall *call, Tensor *const *out) {
    Regions g = read_regions(call, 0);
    return each_bin(&g, (Bin){.out = as_planes(call, out[0])});
}

static bool eval_regions_pick(const OpCall *call, Tensor *const *out) {
    Regions g = read_regions(call, 2);
    g.values = as_planes(call, call->in[0]);
    return each_bin(&g, (Bin){.out = as_planes(call, out[0])});
}

static bool eval_regions_grad(const OpCall *call, Tensor *const *out) {
    Regions g = read_regions(call, 2);
    clear(out[0]);
    Bin b = {.into = as_planes(call, out[0]), .grad = as_planes(call, call->in[0])};
    return each_bin(&g, b);
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

#define REGIONS "a region's numbers tell how many places it covers"
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
                 .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE, .variant = kind, .eval = eval_regions, \
                 .reference_only = REGIONS, .doc = words, .example = shown,                        \
                 .example_result = value)
#define ROI_GRAD(symbol, rel, op_name, kind, op_attrs, n, words, shown, value, see)                \
    SIGNATURE_OP(symbol, rel, op_name, "grad, rois, data", 3,                                      \
                 (.text = ROI_LINES(GRAD_LINE), .refuse = refuse_pooled, .form = form_of_layout),  \
                 .attrs = op_attrs, .nattrs = n, .choices = "layout: NCHW NHWC; mode: avg max",    \
                 .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE, .variant = kind,                       \
                 .eval = eval_regions_grad, .reference_only = REGIONS, .doc = words,               \
                 .example = shown, .example_result = value, .see_also = see)

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
                 .eval = eval_regions_pick, .reference_only = REGIONS,                             \
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
