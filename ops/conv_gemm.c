/* SPDX-License-Identifier: Apache-2.0 */
/* nn.contrib_conv2d_gemm_weight_transform and nn.contrib_conv2d_gemm_without_weight_transform: a convolution whose weight
 * stands in the tiles that a product of matrices reads one after the other. It is put back, and is that of nn.conv2d. */
#include <string.h>

#include "ops/conv.h"
#include "ops/packed.h"
#include "ops/relate/signature.h"

static const char *refuse_tiles(const Attrs *attrs, const int *ranks) {
    (void)ranks;
    return attrs_int(attrs, "tile_N") > 0 && attrs_int(attrs, "tile_K") > 0
               ? NULL
               : "tile_N and tile_K are above 0";
}

static int64_t tiles_of(int64_t n, int64_t tile) { return n / tile + (n % tile != 0); }

static bool measure_gemm_weight(const OpCall *call, OutSpec *out) {
    const int64_t *w = call->in[0]->shape;
    int64_t n = attrs_int(call->attrs, "tile_N"), k = attrs_int(call->attrs, "tile_K");
    out[0].shape[0] = tiles_of(w[3], n);
    out[0].shape[1] = tiles_of(size_multiply(size_multiply(w[0], w[1]), w[2]), k);
    out[0].shape[2] = n;
    out[0].shape[3] = k;
    return true;
}

/* Element (a, b, x, y) of the tiles is that of row b * tile_K + y, of (i, j, c), and column a * tile_N + x. */
static bool lower_gemm_weight(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *w = plan_contiguous(plan, call->in[0]);
    int64_t none[RECIPE_MAX_AXES] = {0}, columns = w->shape[3],
            rows = w->shape[0] * w->shape[1] * w->shape[2];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 4, out[0]->shape);
    ScalarBuilder *b = &s.body;
    Sc at[2];
    for (int i = 0; i < 2; i++)
        at[i] = sc_add(b,
                       sc_mul(b, sc_iota(b, i), step_iparam(&s, b, DT_I64, out[0]->shape[2 + i])),
                       sc_iota(b, 2 + i));
    Sc n = step_iparam(&s, b, DT_I64, columns);
    Sc inside = sc_and(b, sc_lt(b, at[0], n), sc_lt(b, at[1], step_iparam(&s, b, DT_I64, rows)));
    Sc offset = sc_add(b, sc_mul(b, at[1], n), at[0]);
    sc_load_if(b, step_in_strided(&s, w, none, 0), w->dtype, offset, inside, 0);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec gemm_tile_attrs[] = {
    {"tile_N", AT_DIM, NULL, "columns of a tile, output channels"},
    {"tile_K", AT_DIM, NULL, "rows of a tile, places of the kernel and input channels"},
};
SIGNATURE_OP(
    nn_contrib_conv2d_gemm_weight_transform, "Conv2DGemmWeightTransform",
    "nn.contrib_conv2d_gemm_weight_transform", "weights", 1,
    (.text = "num(i, j, c, o) -> =0(?, ?, ?, ?)", .refuse = refuse_tiles,
     .measure = measure_gemm_weight),
    .attrs = gemm_tile_attrs, .nattrs = 2, .dtypes = DTS_NUM, .pattern = OP_INJECTIVE,
    .lower = lower_gemm_weight,
    .doc = "The weight (i, j, c, o) as a matrix with a row for each (i, j, c), in tiles that are\n"
           "transposed: (o / tile_N, rows / tile_K, tile_N, tile_K), with zeros in the last ones.",
    .example = "nn.contrib_conv2d_gemm_weight_transform([[[[1.0, 2.0], [3.0, 4.0]]]], tile_N=2, "
               "tile_K=2)[0, 0]",
    .example_result = "[[1.0, 3.0],\n [2.0, 4.0]] : Tensor[(2, 2), float32]",
    .see_also = "nn.contrib_conv2d_gemm_without_weight_transform")

static const char *refuse_gemm(const Attrs *attrs, const int *ranks) {
    Conv v;
    int64_t size[WINDOW_SIDES];
    const char *problem = conv_read(attrs, &v);
    (void)ranks;
    if (problem)
        return problem;
    if (!window_list(attrs, "kernel_size", 2, 1, size) ||
        attrs_get(attrs, "channels")->kind != ATTR_INT)
        return "channels and kernel_size must be given";
    return v.groups == 1 ? NULL : "groups of a convolution of tiles are 1";
}

/* The plain weight's sizes (i, j, c, o), and the convolution; false after a report. */
static bool size_gemm(const OpCall *call, Conv *v, int64_t *dims) {
    const Tensor *x = call->in[0], *w = call->in[1];
    int64_t size[WINDOW_SIDES], plain[4];
    conv_read(call->attrs, v);
    window_list(call->attrs, "kernel_size", 2, 1, size);
    dims[0] = size[0];
    dims[1] = size[1];
    dims[2] = x->shape[v->data[CONV_C]];
    dims[3] = attrs_int(call->attrs, "channels");
    int64_t rows = size_multiply(size_multiply(size[0], size[1]), dims[2]);
    if (w->shape[2] < 1 || w->shape[3] < 1 || w->shape[0] != tiles_of(dims[3], w->shape[2]) ||
        w->shape[1] != tiles_of(rows, w->shape[3])) {
        shape_error(call, DIAG_R0314, "a weight of %s is not one of %lld rows and %lld columns",
                    shape_text(4, w->shape), (long long)rows, (long long)dims[3]);
        return false;
    }
    plain[v->kernel[CONV_O]] = dims[3];
    plain[v->kernel[CONV_I]] = dims[2];
    for (int j = 0; j < 2; j++)
        plain[v->kernel[CONV_SIDE + j]] = size[j];
    return conv_resolve(call, x->rank, x->shape, 4, plain, v);
}

static bool measure_gemm(const OpCall *call, OutSpec *out) {
    Conv v;
    int64_t dims[4];
    if (!size_gemm(call, &v, dims))
        return false;
    conv_out_shape(&v, out[0].shape);
    return true;
}

static bool lower_gemm(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, PACKED_DATA);
    const Tensor *w = call->in[1];
    Conv v;
    int64_t dims[4], none[RECIPE_MAX_AXES] = {0};
    if (!size_gemm(call, &v, dims))
        return false;
    Tensor *plain = plan_temp(plan, w->dtype, 4, dims);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 4, dims);
    ScalarBuilder *b = &s.body;
    Sc row = sc_iota(b, 0), offset = sc_i64(b, 0);
    for (int i = 1; i < 3; i++)
        row = sc_add(b, sc_mul(b, row, step_iparam(&s, b, DT_I64, dims[i])), sc_iota(b, i));
    for (int i = 0; i < 2; i++) {
        Sc at = i ? row : sc_iota(b, 3), tile = step_iparam(&s, b, DT_I64, w->shape[2 + i]);
        Sc outer = sc_mul(b, sc_div(b, at, tile), step_iparam(&s, b, DT_I64, w->strides[i]));
        Sc inner = sc_mul(b, sc_rem(b, at, tile), step_iparam(&s, b, DT_I64, w->strides[2 + i]));
        offset = sc_add(b, offset, sc_add(b, outer, inner));
    }
    sc_load_at(b, step_in_strided(&s, w, none, 0), w->dtype, offset);
    step_out(&s, plain);
    step_end(&s);
    static const int order[] = {3, 2, 0, 1}; /* o, c, i, j among its axes */
    memcpy(v.kernel, order, sizeof order);
    conv_plan_forward(plan, &v, out[0], call->in[0], plain);
    return true;
}

static const AttrSpec gemm_attrs[] = {CONV_ATTRS("[1, 1]", "[0, 0]", "NHWC", "HWIO")};
SIGNATURE_OP_BY(packed_relate_data, packed_shape_data,
                nn_contrib_conv2d_gemm_without_weight_transform, "Conv2DGemm",
                "nn.contrib_conv2d_gemm_without_weight_transform", "data, weight", 2,
                (.text = "num(a, b, c, d), =0(e, f, g, h) -> @out_dtype(?, ?, ?, ?)",
                 .refuse = refuse_gemm, .measure = measure_gemm),
                .attrs = gemm_attrs, .nattrs = CONV_NATTRS,
                .choices = CONV_LAYOUTS("+NCHW", "+OIHW"), .dtypes = DTS_NUM, .pattern = OP_OPAQUE,
                .lower = lower_gemm,
                .doc = "nn.conv2d of data (n, h, w, c) with a weight that "
                       "nn.contrib_conv2d_gemm_weight_transform\n"
                       "made; channels and kernel_size say what it was.",
                .example = "nn.contrib_conv2d_gemm_without_weight_transform([[[[1.0, 10.0]]]], "
                           "[[[[1.0, 3.0], [2.0, 4.0]]]], "
                           "channels=2, kernel_size=[1, 1])",
                .example_result = "[[[[31.0, 42.0]]]] : Tensor[(1, 1, 1, 2), float32]",
                .see_also = "nn.conv2d, nn.contrib_conv2d_gemm_weight_transform")
