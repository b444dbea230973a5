/* SPDX-License-Identifier: Apache-2.0 */
/* image.crop_and_resize: boxes of images, each resized to one size. A box is two corners (y1, x1, y2, x2) from 0 to
 * 1, the centres of the first and the last place of the image; its places are read between those of data, as TensorFlow
 * does. The derivative (prelude/derivatives_nn.rly) is made of image.sample, at the grid that the boxes are. */
#include <string.h>

#include "ops/window.h"

#include "ops/relate/signature.h"

enum { SIDES = 2 };

static const char *refuse_crop(const Attrs *attrs, const int *ranks) {
    int64_t size[SIDES];
    (void)ranks;
    return attr_int_list(attrs, "crop_size", size, SIDES) == SIDES && size[0] >= 0 && size[1] >= 0
               ? NULL
               : "crop_size is the height and the width of the results, from 0";
}

/* A place along a side of the image: the one at or below the point, how far the point lies above it (a float of
 * 0 to 1), and whether the point is within the image. */
typedef struct Point {
    Sc low, rest, inside;
} Point;

/* side: 0 is the height; n places of the result lie along `axis` of the step, size places of data. */
static Point find_point(StepBuilder *s, const Tensor *boxes, DType t, int side, int axis, int64_t n,
                        int64_t size) {
    ScalarBuilder *b = &s->body;
    int64_t strides[RECIPE_MAX_AXES] = {boxes->strides[0]};
    Sc ends[2];
    for (int k = 0; k < 2; k++) {
        int in = step_in_strided(s, boxes, strides, (side + SIDES * k) * boxes->strides[1]);
        ends[k] = sc_cast(b, sc_load(b, in, boxes->dtype), t);
    }
    Sc span = step_fparam(s, b, t, (double)(size - 1)), x;
    if (n > 1) {
        Sc step = sc_div(b, sc_mul(b, sc_sub(b, ends[1], ends[0]), span),
                         step_fparam(s, b, t, (double)(n - 1)));
        x = sc_add(b, sc_mul(b, ends[0], span), sc_mul(b, sc_cast(b, sc_iota(b, axis), t), step));
    } else {
        x = sc_mul(b, sc_mul(b, sc_add(b, ends[0], ends[1]), sc_float(b, t, 0.5)), span);
    }
    Point p = {.inside = sc_and(b, sc_ge(b, x, sc_float(b, t, 0)), sc_le(b, x, span))};
    Sc floor = sc_floor(b, x);
    p.low = sc_cast(b, sc_select(b, p.inside, floor, sc_float(b, t, 0)), DT_I64);
    p.rest = sc_sub(b, x, floor);
    return p;
}

/* Data at the place (low + dy, low + dx), as the number type; 0 where it is none. */
static Sc read_corner(StepBuilder *s, const Tensor *data, const int *place, int in, Sc image,
                      const Point *p, const Sc *shift, Sc inside, DType t) {
    ScalarBuilder *b = &s->body;
    Sc offset = image;
    for (int j = 0; j < SIDES; j++) {
        Sc last = step_iparam(s, b, DT_I64, data->shape[place[2 + j]] - 1);
        Sc at = sc_min(b, sc_add(b, p[j].low, shift[j]), last);
        offset = sc_add(b, offset,
                        sc_mul(b, at, step_iparam(s, b, DT_I64, data->strides[place[2 + j]])));
    }
    return sc_cast(b, sc_load_if(b, in, data->dtype, offset, inside, 0), t);
}

/* p where the rest is 0, q where it is 1. */
static Sc mix(ScalarBuilder *b, Sc p, Sc q, Sc rest) {
    Sc one = sc_float(b, sc_type(b, rest), 1);
    return sc_add(b, sc_mul(b, p, sc_sub(b, one, rest)), sc_mul(b, q, rest));
}

static bool lower_crop(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *data = call->in[0], *boxes = call->in[1], *images = call->in[2];
    bool nearest = strcmp(attrs_text(call->attrs, "method"), "bilinear") != 0;
    int place[2 + SIDES];
    layout_read(attrs_text(call->attrs, "layout"), "NCHW", place);
    DType t = data->dtype == DT_F64 || boxes->dtype == DT_F64 ? DT_F64 : DT_F32;
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 4, out[0]->shape);
    ScalarBuilder *b = &s.body;
    int64_t strides[RECIPE_MAX_AXES] = {0}, row[RECIPE_MAX_AXES] = {images->strides[0]};
    strides[place[1]] = data->strides[place[1]];
    Sc image = sc_index_load(b, step_in_strided(&s, images, row, 0), images->dtype);
    sc_check(b, sc_in_range(b, image, step_iparam(&s, b, DT_I64, data->shape[0])), KERNEL_INDEX);
    image = sc_mul(b, image, step_iparam(&s, b, DT_I64, data->strides[0]));
    Point p[SIDES];
    for (int j = 0; j < SIDES; j++)
        p[j] = find_point(&s, boxes, t, j, place[2 + j], out[0]->shape[place[2 + j]],
                          data->shape[place[2 + j]]);
    Sc inside = sc_and(b, p[0].inside, p[1].inside), zero = sc_i64(b, 0), one = sc_i64(b, 1), v;
    int in = step_in_strided(&s, data, strides, 0);
    if (nearest) { /* the middle between two places belongs to the higher one */
        Sc shift[SIDES];
        for (int j = 0; j < SIDES; j++)
            shift[j] = sc_select(b, sc_ge(b, p[j].rest, sc_float(b, t, 0.5)), one, zero);
        v = read_corner(&s, data, place, in, image, p, shift, inside, t);
    } else {
        Sc sides[2];
        for (int i = 0; i < 2; i++) {
            Sc low[] = {i ? one : zero, zero}, high[] = {i ? one : zero, one};
            sides[i] = mix(b, read_corner(&s, data, place, in, image, p, low, inside, t),
                           read_corner(&s, data, place, in, image, p, high, inside, t), p[1].rest);
        }
        v = mix(b, sides[0], sides[1], p[0].rest);
    }
    Sc otherwise = step_fparam(&s, b, t, attrs_float(call->attrs, "extrapolation_value"));
    step_result(&s, sc_convert(b, sc_select(b, inside, v, otherwise), out[0]->dtype));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static int form_of_layout(const Attrs *attrs) {
    return strcmp(attrs_text(attrs, "layout"), "NHWC") == 0;
}

static const AttrSpec crop_attrs[] = {
    {"crop_size", AT_DIMS, NULL, "the height and the width of the results"},
    {"layout", AT_STRING, "\"NCHW\"", "what data's axes are, NCHW or NHWC"},
    {"method", AT_STRING, "\"bilinear\"", "between four places, or the nearest_neighbor"},
    {"extrapolation_value", AT_FLOAT, "0.0", "what is outside of data"},
    {"out_dtype", AT_DTYPE, "None", "of the result; None: data's"},
};
SIGNATURE_OP(
    image_crop_and_resize, "CropAndResize", "image.crop_and_resize", "data, boxes, box_indices", 3,
    (.text = "num(n, c, h, w), float(b, 4), int(b) -> @out_dtype(b, c, @crop_size.0, @crop_size.1)|"
             "num(n, h, w, c), float(b, 4), int(b) -> @out_dtype(b, @crop_size.0, @crop_size.1, c)",
     .refuse = refuse_crop, .form = form_of_layout),
    .attrs = crop_attrs, .nattrs = 5,
    .choices = "layout: NCHW NHWC; method: bilinear nearest_neighbor", .dtypes = DTS_NUM,
    .pattern = OP_INJECTIVE, .lower = lower_crop,
    .doc =
        "The part of image box_indices[i] in the corners boxes[i] = (y1, x1, y2, x2), resized to\n"
        "crop_size. Corners lie from 0 to 1, the centres of the image's first and last place.",
    .example = "image.crop_and_resize([[[[1.0, 3.0, 5.0]]]], [[0.0, 0.25, 0.0, 1.0]], [0], "
               "crop_size=[1, 2])",
    .example_result = "[[[[2.0, 5.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "image.resize2d, image.grid_sample, vision.roi_align")
