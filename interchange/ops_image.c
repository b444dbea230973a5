/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's operators of images: other sizes, and other places. */
#include <math.h>
#include <string.h>

#include "interchange/ops_impl.h"

/* The list says something of all axes, or of those that `axes` names; the others keep their size. `all` then has one of each
 * axis. False where it is neither. */
static bool spread_over_axes(Node *n, int rank, size_t len, size_t *place) {
    OnnxInts axes;
    bool some = attr_ints(n, "axes", &axes);
    for (int i = 0; i < rank; i++)
        place[i] = some ? len : (size_t)i;
    if (some && axes.len != len)
        return false;
    for (size_t i = 0; some && i < len; i++) {
        int64_t axis = node_axis(n, axes.data[i], rank);
        if (n->failed)
            return false;
        place[axis] = i;
    }
    return some || len == (size_t)rank;
}

/* What `scale` makes of a size; false after a refusal. The sizes alone say how far places lie apart, so that they must give
 * the scale. */
static bool scaled_size(Node *n, Num before, double scale, Num *out) {
    if (!before.known) {
        if (scale != floor(scale) || scale < 1 || scale > 1 << 16)
            return node_refuse(n, "of sizes that are not known");
        *out = num_size(fmt_text("(%s * %lld)", before.text, (long long)scale));
        return true;
    }
    if (before.n < 1)
        return node_refuse(n, "of an axis without elements");
    double size = floor((double)before.n * scale);
    *out = num_int(size >= 1 && size < 1 << 30 ? (int64_t)size : 0);
    return (out->n >= 1 && fabs((double)before.n * scale - (double)out->n) <= 1e-4) ||
           node_refuse(n, "by scales that do not give whole sizes");
}

/* The sizes of the result, from `sizes` or `scales`. False after a refusal. */
static bool resized_sizes(Node *n, int rank, Num *out) {
    Val *in = node_in(n, 0);
    Nums sizes = {0};
    double *scales = NULL;
    size_t nscales = 0, place[8];
    bool by_sizes = node_has(n, 3);
    if (by_sizes ? !node_nums(n, 3, "its sizes", &sizes)
                 : !node_floats(n, 2, "its scales", &scales, &nscales))
        return false;
    if (!spread_over_axes(n, rank, by_sizes ? sizes.len : nscales, place))
        return node_refuse(n, "with another number of sizes than axes");
    for (int i = 0; i < rank; i++) {
        bool given = place[i] < (by_sizes ? sizes.len : nscales);
        Num before = val_dim(in, i);
        if (!given)
            out[i] = before;
        else if (by_sizes)
            out[i] = sizes.data[place[i]];
        else if (scales[place[i]] == 1.0)
            out[i] = before;
        else if (!scaled_size(n, before, scales[place[i]], &out[i]))
            return false;
        if (i < 2 && !num_is(out[i], before))
            return node_refuse(n, "of axes 0 or 1");
        if (out[i].known && out[i].n < 1)
            return node_refuse(n, "to a size of %lld", (long long)out[i].n);
    }
    return true;
}

/* How Relay calls the way coordinates go; NULL where it has none. */
static const char *coordinates(const char *mode, const Num *out, int rank) {
    static const char *const same[] = {"half_pixel", "align_corners", "asymmetric"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(mode, same[i]) == 0)
            return mode;
    for (int i = 2; i < rank; i++)
        if (!out[i].known || out[i].n < 2)
            return NULL; /* the only place is the first there, and the middle by half_pixel */
    return strcmp(mode, "pytorch_half_pixel") == 0 ? "half_pixel" : NULL;
}

void onnx_resize(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    Num out[8];
    const char *mode = attr_text(n, "mode", "nearest");
    const char *where = attr_text(n, "coordinate_transformation_mode", "half_pixel");
    const char *nearest = attr_text(n, "nearest_mode", "round_prefer_floor");
    double alpha = attr_float(n, "cubic_coeff_a", -0.75);
    int64_t exclude = attr_int(n, "exclude_outside", 0);
    attr_ignore(n, "extrapolation_value"); /* of tf_crop_and_resize, which is refused */
    if (rank < 3 || rank > 5) {
        node_refuse(n, "of %d axes", rank);
        return;
    }
    if (attr_int(n, "antialias", 0) ||
        strcmp(attr_text(n, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0) {
        node_refuse(n, "with `antialias` or `keep_aspect_ratio_policy`");
        return;
    }
    if (!resized_sizes(n, rank, out))
        return;
    const char *how = coordinates(where, out, rank);
    bool is_nearest = strcmp(mode, "nearest") == 0, is_cubic = strcmp(mode, "cubic") == 0;
    if (!how || (is_cubic && rank == 5) || (exclude && !is_cubic)) {
        node_refuse(n, "with coordinates `%s`, or these attributes", where);
        return;
    }
    const char *more = is_nearest ? fmt_text(", rounding_method=\"%s\"", nearest)
                       : is_cubic ? fmt_text(", cubic_alpha=%s, cubic_exclude=%d",
                                             float_text(alpha, DT_F32), exclude != 0)
                                  : "";
    node_bind(n, 0,
              val_tensor(fmt_text("image.resize%dd(%s, size=%s, layout=\"%s\", method=\"%s\", "
                                  "coordinate_transformation_mode=\"%s\"%s)",
                                  rank - 2, in->text, nums_print(out + 2, (size_t)rank - 2),
                                  rank == 3   ? "NCW"
                                  : rank == 4 ? "NCHW"
                                              : "NCDHW",
                                  is_nearest ? "nearest_neighbor" : mode, how, more),
                         node_dtype(n, 0), rank, out));
}

/* Where each place of the result comes from: (x, y) there are theta's columns times the place's own coordinates, and its last
 * column. */
void onnx_affine_grid(Node *n) {
    const Val *theta = node_in(n, 0);
    DType d = node_dtype(n, 0);
    OnnxInts size = {0};
    bool corners = attr_int(n, "align_corners", 0) != 0;
    if (!node_ints(n, 1, "its size", &size))
        return;
    int sides = (int)size.len - 2;
    if (sides < 2 || sides > 3 || node_rank(n, 0) != 3) {
        node_refuse(n, "of %zu sizes", size.len);
        return;
    }
    Num dims[5] = {theta->dims[0]};
    Str text = {0};
    for (int k = 0; k <= sides; k++) {
        const char *column = fmt_text("expand_dims(%s[:, :, %d], axis=1, num_newaxis=%d)",
                                      theta->text, k, sides);
        if (k == sides) {
            str_printf(&text, " + %s", column);
            break;
        }
        int64_t count = size.data[size.len - 1 - (size_t)k], shape[5] = {1, 1, 1, 1, 1};
        shape[sides - k] = count;
        if (count < (corners ? 2 : 1) || count > 1 << 24) {
            node_refuse(n, "of a size of %lld", (long long)count);
            return;
        }
        dims[sides - k] = num_int(count);
        const char *numbers = fmt_text("arange(%s, %s, %s, dtype=%s)", float_text(0.0, d),
                                       float_text((double)count, d), float_text(1.0, d),
                                       dtype_info[d].name);
        const char *place = corners
                                ? fmt_text("%s * %s / %s - %s", numbers, float_text(2.0, d),
                                           float_text((double)(count - 1), d), float_text(1.0, d))
                                : fmt_text("(%s * %s + %s) / %s - %s", numbers, float_text(2.0, d),
                                           float_text(1.0, d), float_text((double)count, d),
                                           float_text(1.0, d));
        place = node_let(n, "places", "reshape(%s, newshape=%s)", place,
                         ints_print(shape, (size_t)sides + 2));
        str_printf(&text, "%s%s * %s", k ? " + " : "", column, place);
    }
    dims[sides + 1] = num_int(sides);
    node_bind(n, 0, val_tensor(str_text(&text), d, sides + 2, dims));
}

/* A number in input i, or the text that stands for one that is not given. */
static const char *number_in(Node *n, uint32_t i, const char *otherwise) {
    return node_has(n, i) ? fmt_text("reshape(%s, newshape=[])", node_text(n, i)) : otherwise;
}

void onnx_non_max_suppression(Node *n) {
    DType d = node_dtype(n, 0);
    const char *boxes = node_text(n, 0);
    if (node_rank(n, 0) != 3 || node_rank(n, 1) != 3) {
        node_refuse(n, "of boxes of %d axes", node_in(n, 0)->rank);
        return;
    }
    if (attr_int(n, "center_point_box", 0)) { /* x, y, width, height */
        const char *parts = node_let(n, "parts", "split(%s, indices_or_sections=4, axis=2)", boxes);
        const char *half = float_text(0.5, d);
        boxes = node_let(n, "corners",
                         "concatenate((%s.1 - %s * %s.3, %s.0 - %s * %s.2, %s.1 + %s * %s.3, "
                         "%s.0 + %s * %s.2), axis=2)",
                         parts, half, parts, parts, half, parts, parts, half, parts, parts, half,
                         parts);
    } else { /* any two corners that lie across */
        const char *parts = node_let(n, "corners", "split(%s, indices_or_sections=2, axis=2)",
                                     boxes);
        boxes = node_let(n, "boxes",
                         "concatenate((minimum(%s.0, %s.1), maximum(%s.0, %s.1)), axis=2)", parts,
                         parts, parts, parts);
    }
    const char *found = node_let(
        n, "found", "vision.all_class_non_max_suppression(%s, %s, %s, %s, %s)", boxes,
        node_text(n, 1), number_in(n, 2, "0i64"), number_in(n, 3, float_text(0.0, d)),
        number_in(n, 4, float_text(-INFINITY, d)));
    Num dims[] = {num_unknown(), num_int(3)};
    node_bind(n, 0, val_tensor(fmt_text("%s.0[0:%s.1[0]]", found, found), DT_I64, 2, dims));
}

/* The middle of the tensor, or the tensor amid zeros; what is one more stands behind. */
void onnx_center_crop_pad(Node *n) {
    const Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    OnnxInts sizes = {0};
    size_t place[8];
    if (rank > 8 || !node_ints(n, 1, "its shape", &sizes))
        return;
    if (!spread_over_axes(n, rank, sizes.len, place)) {
        node_refuse(n, "with another number of sizes than axes");
        return;
    }
    Str slices = {0}, widths = {0};
    Val *v = val_tensor(in->text, node_dtype(n, 0), rank, in->dims);
    bool cut = false, padded = false;
    for (int i = 0; i < rank; i++) {
        bool given = place[i] < sizes.len;
        Num own = in->dims[i];
        if (given && (!own.known || sizes.data[place[i]] < 0)) {
            node_refuse(n, "of a size that is not known");
            return;
        }
        int64_t more = given ? sizes.data[place[i]] - own.n : 0;
        int64_t from = more < 0 ? -more / 2 : 0, before = more > 0 ? more / 2 : 0;
        cut |= more < 0;
        padded |= more > 0;
        str_add(&slices, i ? ", " : "");
        if (more < 0)
            str_printf(&slices, "%lld:%lld", (long long)from, (long long)(from + own.n + more));
        else
            str_add(&slices, ":");
        str_printf(&widths, "%s[%lld, %lld]", i ? ", " : "", (long long)before,
                   (long long)(more > 0 ? more - before : 0));
        v->dims[i] = given ? num_int(own.n + more) : own;
    }
    if (cut)
        v->text = fmt_text("%s[%s]", v->text, str_text(&slices));
    if (padded)
        v->text = fmt_text("nn.pad(%s, %s, pad_width=[%s])", v->text,
                           dtype_is_float(v->dtype) ? float_text(0.0, v->dtype)
                                                    : int_text(0, v->dtype),
                           str_text(&widths));
    if (!cut && !padded)
        v->text = fmt_text("copy(%s)", v->text);
    node_bind(n, 0, v);
}

/* Relay has the coordinates of a point along axis 1, ONNX along the last. */
void onnx_grid_sample(Node *n) {
    Val *in = node_in(n, 0), *grid = node_in(n, 1);
    int rank = node_rank(n, 0);
    const char *mode = attr_text(n, "mode", "linear"), *how = NULL;
    const char *outside = attr_text(n, "padding_mode", "zeros");
    bool corners = attr_int(n, "align_corners", 0) != 0;
    if (strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0)
        how = "bilinear";
    else if (strcmp(mode, "nearest") == 0)
        how = "nearest";
    else if ((strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0) && rank == 4)
        how = "bicubic";
    if (rank < 4 || rank > 5 || node_rank(n, 1) != rank || !how) {
        node_refuse(n, "of %d axes by `%s`", rank, mode);
        return;
    }
    Num dims[5];
    for (int i = 0; i < rank; i++)
        dims[i] = i < 2 ? in->dims[i] : grid->dims[i - 1];
    node_bind(
        n, 0,
        val_tensor(fmt_text("image.grid_sample(%s, transpose(%s, axes=%s), method=\"%s\", "
                            "layout=\"%s\", padding_mode=\"%s\", align_corners=%s)",
                            in->text, grid->text, rank == 4 ? "[0, 3, 1, 2]" : "[0, 4, 1, 2, 3]",
                            how, rank == 4 ? "NCHW" : "NCDHW", outside, corners ? "True" : "False"),
                   node_dtype(n, 0), rank, dims));
}
