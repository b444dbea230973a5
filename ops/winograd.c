/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolutions: nn.contrib_conv2d_winograd_weight_transform and its like give the weight transformed, and
 * nn.contrib_conv2d_winograd_without_weight_transform and its like convolve with that. Along each side m places of the
 * result come from m + r - 1 of data, by as many products:
 *
 *     result = A^T ((G weight G^T) * (B^T data B)) A
 *
 * A, B and G follow from the points at which polynomials are compared, Cook and Toom's way; TVM's points, so that
 * transformed weights are TVM's. The transformed weight is (m + r - 1, m + r - 1, o, c). In three dimensions the depth is
 * transformed too where its kernel is as wide as the others; else it is an ordinary sum, and its axis stands third.
 *
 * A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016; B. Barabasz et al., Error Analysis and
 * Improving the Accuracy of Winograd Convolution for Deep Neural Networks, 2018 (the points). */
#include <string.h>

#include "base/mem.h"
#include "ops/conv.h"
#include "ops/packed.h"
#include "ops/relate/signature.h"

enum { MAX_SIDE = 16 }; /* m + r - 1 */

/* ---- the matrices ----------------------------------------------------------------------------- */

typedef struct Matrix {
    int rows, columns;
    double v[MAX_SIDE * MAX_SIDE];
} Matrix;

typedef enum Which { MATRIX_A, MATRIX_B, MATRIX_G, MATRIX_NNPACK } Which;

/* The n points for tiles of n + 1 places, of which infinity is one more. */
static void points_of(int n, double *p) {
    static const double common[] = {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 4};
    for (int i = 0; i < n && i < 9; i++)
        p[i] = common[i];
    if (n == 5)
        p[4] = -2;
    else if (n == 6)
        p[4] = -2, p[5] = -0.5;
    static const double more[][13] = {
        [10] = {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 0.75, -4.0 / 3},
        [11] = {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 4, 0.75, -4.0 / 3},
        [12] = {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 4, 0.75, -4.0 / 3, 0.25},
        [13] = {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 4, 0.25, -0.75, 4.0 / 3, -4},
    };
    if (n >= 10)
        memcpy(p, more[n], sizeof *p * (size_t)n);
}

/* The product of the differences of point i to the others; that of the first is made positive. */
static double spread_of(const double *p, int n, int i) {
    double f = 1;
    for (int k = 0; k < n; k++)
        f *= k == i ? 1 : p[i] - p[k];
    return f;
}

/* Rows of powers 0 .. columns - 1 of the points, and of infinity. */
static void powers(const double *p, int n, int columns, Matrix *out) {
    *out = (Matrix){n + 1, columns, {0}};
    for (int i = 0; i < n; i++) {
        double power = 1;
        for (int j = 0; j < columns; j++, power *= p[i])
            out->v[i * columns + j] = power;
    }
    out->v[n * columns + columns - 1] = 1;
}

/* A (m + r - 1, m), B (m + r - 1, m + r - 1) and G (m + r - 1, r). */
static void make_matrix(Which which, int m, int r, Matrix *out) {
    int size = m + r - 1, n = size - 1;
    double p[MAX_SIDE] = {0};
    if (which == MATRIX_NNPACK) { /* G of 6 places and a kernel of 3, as NNPACK scales it */
        static const double g[] = {1,         0,          0,        -2.0 / 9,  -2.0 / 9,  -2.0 / 9,
                                   -2.0 / 9,  2.0 / 9,    -2.0 / 9, 1.0 / 90,  1.0 / 45,  2.0 / 45,
                                   1.0 / 90,  -1.0 / 45,  2.0 / 45, 32.0 / 45, 16.0 / 45, 8.0 / 45,
                                   32.0 / 45, -16.0 / 45, 8.0 / 45, 0,         0,         1};
        *out = (Matrix){8, 3, {0}};
        memcpy(out->v, g, sizeof g);
        return;
    }
    points_of(n, p);
    if (which == MATRIX_A) {
        powers(p, n, m, out);
        return;
    }
    double sign = spread_of(p, n, 0) < 0 ? -1 : 1;
    if (which == MATRIX_G) {
        powers(p, n, r, out);
        for (int i = 0; i < n; i++) {
            double f = spread_of(p, n, i) * (i == 0 ? sign : 1);
            for (int j = 0; j < r; j++)
                out->v[i * r + j] /= f;
        }
        return;
    }
    /* Column i < n: the coefficients of the product of x - p[k] over the others, as a polynomial; the last column of the
     * product of all. B is this, its first column with the sign. */
    *out = (Matrix){size, size, {0}};
    for (int i = 0; i <= n; i++) {
        double c[MAX_SIDE + 1] = {1};
        int degree = 0;
        for (int k = 0; k < n; k++) {
            if (k == i)
                continue;
            for (int j = ++degree; j >= 0; j--)
                c[j] = (j ? c[j - 1] : 0) - p[k] * (j < degree ? c[j] : 0);
        }
        for (int j = 0; j <= degree; j++)
            out->v[j * size + i] = c[j] * (i == 0 ? sign : 1);
    }
}

/* The matrix as a tensor: a step chooses each element from the constants. */
static Tensor *plan_matrix(Plan *plan, DType dtype, Which which, int m, int r) {
    Matrix a;
    make_matrix(which, m, r, &a);
    int64_t shape[] = {a.rows, a.columns};
    Tensor *t = plan_temp(plan, dtype, 2, shape);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, 2, shape);
    ScalarBuilder *b = &s.body;
    DType type = sc_type_of(dtype);
    Sc at = sc_add(b, sc_mul(b, sc_iota(b, 0), sc_i64(b, a.columns)), sc_iota(b, 1));
    Sc v = sc_float(b, type, a.v[0]);
    for (int i = 1; i < a.rows * a.columns; i++)
        v = sc_select(b, sc_eq(b, at, sc_i64(b, i)), sc_float(b, type, a.v[i]), v);
    step_result(&s, v);
    step_out(&s, t);
    step_end(&s);
    return t;
}

/* ---- the weight ------------------------------------------------------------------------------- */

static const char *refuse_tile(const Attrs *attrs, const int *ranks) {
    int64_t m = attrs_int(attrs, "tile_size");
    (void)ranks;
    return m >= 2 && m <= 8 ? NULL : "tile_size is 2 to 8";
}

static bool check_kernel(const OpCall *call, int64_t r) {
    if (r >= 3 && r <= 7)
        return true;
    shape_error(call, DIAG_R0316, "a kernel of %lld is not 3 to 7", (long long)r);
    return false;
}

/* The depth is transformed as the other sides are. */
static bool depth_is_transformed(int64_t depth, int64_t r) { return depth == r; }

static bool measure_weight(const OpCall *call, OutSpec *out) {
    const Tensor *w = call->in[0];
    int last = w->rank - 1;
    int64_t m = attrs_int(call->attrs, "tile_size"), r = w->shape[last];
    if (!check_kernel(call, r) || !shape_check_dims(call, 0, last, 0, last - 1))
        return false;
    bool depth = w->rank == 5 && depth_is_transformed(w->shape[2], r);
    int sides = w->rank - 2;
    for (int j = 0; j < sides; j++)
        out[0].shape[j] = m + r - 1;
    if (sides == 3 && !depth)
        out[0].shape[2] = w->shape[2];
    return true;
}

/* out = x with axis `axis` of it replaced by the rows of g, an axis that stands at `to` among out's: plans the product. */
static void plan_rows(Plan *plan, Tensor *out, int to, const Tensor *x, int axis, const Tensor *g) {
    Product p = {.rank = out->rank, .nreduce = 1};
    for (int i = 0, from = 0; i < out->rank; i++) {
        p.extents[i] = out->shape[i];
        p.out_strides[i] = out->strides[i];
        if (i == to) {
            p.y_strides[i] = g->strides[0];
            continue;
        }
        from += from == axis;
        p.x_strides[i] = x->strides[from++];
    }
    p.extents[out->rank] = x->shape[axis];
    p.x_strides[out->rank] = x->strides[axis];
    p.y_strides[out->rank] = g->strides[1];
    plan_product(plan, out, &p, x, g);
}

/* (o, c, sides) to (transformed sides, [depth], o, c), one side after the other, the last one first. */
static bool lower_weight(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t m = attrs_int(call->attrs, "tile_size"), r = x->shape[x->rank - 1];
    int sides = x->rank - 2;
    bool depth = sides == 3 && depth_is_transformed(x->shape[2], r);
    DType t = reduce_acc_type(out[0]->dtype);
    Tensor *g = plan_matrix(plan, t, MATRIX_G, (int)m, (int)r);
    const Tensor *cur = x;
    int done = 0;
    for (int j = sides - 1; j >= (sides == 3 && !depth ? 1 : 0); j--, done++) {
        int64_t shape[TENSOR_MAX_RANK] = {m + r - 1};
        int axis = done + 2 + j; /* of the side in cur */
        for (int i = 0, n = 1; i < cur->rank; i++)
            if (i != axis)
                shape[n++] = cur->shape[i];
        Tensor *next = plan_temp(plan, t, cur->rank, shape);
        plan_rows(plan, next, 0, cur, axis, g);
        cur = next;
    }
    int64_t strides[RECIPE_MAX_AXES];
    for (int i = 0; i < cur->rank; i++) /* (…, o, c, depth) becomes (…, depth, o, c) */
        strides[i] = cur->strides[i];
    if (sides == 3 && !depth) {
        strides[2] = cur->strides[4];
        strides[3] = cur->strides[2];
        strides[4] = cur->strides[3];
    }
    plan_gather_strided(plan, out[0], cur, strides, 0);
    return true;
}

static const AttrSpec tile_attrs[] = {
    {"tile_size", AT_INT, NULL, "how many places of the result are computed at once along a side"},
};
SIGNATURE_OP(
    nn_contrib_conv2d_winograd_weight_transform, "Conv2DWinogradWeightTransform",
    "nn.contrib_conv2d_winograd_weight_transform", "weight", 1,
    (.text = "float(o, c, i, j) -> =0(?, ?, o, c)", .refuse = refuse_tile,
     .measure = measure_weight),
    .attrs = tile_attrs, .nattrs = 1, .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE,
    .lower = lower_weight,
    .doc = "The weight (o, c, r, r) of a Winograd convolution, transformed once for all data:\n"
           "(tile_size + r - 1, tile_size + r - 1, o, c).",
    .example = "nn.contrib_conv2d_winograd_weight_transform([[[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], "
               "[0.0, 0.0, 0.0]]]], tile_size=2)[0, :, 0, 0]",
    .example_result = "[1.0, 0.5, 0.5, 0.0] : Tensor[(4,), float32]",
    .see_also = "nn.contrib_conv2d_winograd_without_weight_transform, nn.conv2d")
SIGNATURE_OP(
    nn_contrib_conv3d_winograd_weight_transform, "Conv3DWinogradWeightTransform",
    "nn.contrib_conv3d_winograd_weight_transform", "weight", 1,
    (.text = "float(o, c, k, i, j) -> =0(?, ?, ?, o, c)", .refuse = refuse_tile,
     .measure = measure_weight),
    .attrs = tile_attrs, .nattrs = 1, .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE,
    .lower = lower_weight,
    .doc = "The weight (o, c, k, r, r) of a Winograd convolution in three dimensions, transformed "
           "once\n"
           "for all data. A depth k that is not r is left as it is, the third axis.",
    .example = "nn.contrib_conv3d_winograd_weight_transform([[[[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], "
               "[0.0, 0.0, 0.0]]]]], tile_size=2)[0, :, 0, 0, 0]",
    .example_result = "[1.0, 0.5, 0.5, 0.0] : Tensor[(4,), float32]",
    .see_also = "nn.contrib_conv3d_winograd_without_weight_transform, nn.conv3d")

static const char *refuse_algorithm(const Attrs *attrs, const int *ranks) {
    int64_t algorithm = attrs_int(attrs, "convolution_algorithm");
    (void)ranks;
    return algorithm == 0 || algorithm == 3
               ? NULL
               : "convolution_algorithm is 3, Winograd on 8 by 8, or 0";
}

static bool lower_nnpack(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    DType t = reduce_acc_type(out[0]->dtype);
    Tensor *g = plan_matrix(plan, t, MATRIX_NNPACK, 6, 3);
    int64_t shape[] = {x->shape[0], x->shape[1], 8, 3};
    Tensor *rows = plan_temp(plan, t, 4, shape);
    plan_rows(plan, rows, 2, x, 2, g);
    plan_rows(plan, out[0], 3, rows, 3, g);
    return true;
}

static const AttrSpec nnpack_attrs[] = {
    {"convolution_algorithm", AT_INT, NULL, "NNPACK's number of it: 3 is Winograd on 8 by 8"},
    {"out_dtype", AT_DTYPE, "None", "of the result; None: that of the weight"},
};
SIGNATURE_OP(
    nn_contrib_conv2d_winograd_nnpack_weight_transform, "Conv2DWinogradNNPACKWeightTransform",
    "nn.contrib_conv2d_winograd_nnpack_weight_transform", "weight", 1,
    (.text = "float(o, c, 3, 3) -> @out_dtype(o, c, 8, 8)", .refuse = refuse_algorithm),
    .attrs = nnpack_attrs, .nattrs = 2, .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE,
    .lower = lower_nnpack,
    .doc =
        "The weight (o, c, 3, 3) transformed as NNPACK does it for tiles of 6 by 6: (o, c, 8, 8).",
    .example = "nn.contrib_conv2d_winograd_nnpack_weight_transform([[[[1.0, 0.0, 0.0], [0.0, 0.0, "
               "0.0], [0.0, 0.0, 9.0]]]], convolution_algorithm=3)[0, 0, 7]",
    .example_result = "[0.0, -2.0, -2.0, 0.4, 0.4, 1.6, 1.6, 9.0] : Tensor[(8,), float32]",
    .see_also = "nn.contrib_conv2d_winograd_weight_transform")

/* ---- the convolution -------------------------------------------------------------------------- */

typedef struct Winograd {
    Conv v;
    int m, r, first; /* sides before `first` are not transformed */
    int64_t tiles[WINDOW_SIDES];
} Winograd;

static const char *refuse_winograd(const Attrs *attrs, const int *ranks) {
    Conv v;
    const char *problem = conv_read(attrs, &v);
    if (problem)
        return problem;
    for (int j = 0; j < v.w.sides; j++)
        if (v.w.stride[j] != 1 || v.w.dilation[j] != 1)
            return "strides and dilation of a Winograd convolution are 1";
    return v.groups == 1 ? refuse_tile(attrs, ranks) : "groups of a Winograd convolution are 1";
}

/* The sizes of a call; false after a report. */
static bool size_winograd(const OpCall *call, Winograd *z) {
    const Tensor *x = call->in[0], *u = call->in[1];
    *z = (Winograd){.m = (int)attrs_int(call->attrs, "tile_size")};
    conv_read(call->attrs, &z->v);
    int sides = z->v.w.sides;
    int64_t size = u->shape[0], r = size - z->m + 1, dims[CONV_RANK];
    if (!check_kernel(call, r))
        return false;
    z->r = (int)r;
    for (int j = 1; j < 2; j++)
        if (u->shape[j] != size) {
            shape_error(call, DIAG_R0314, "axes 0 and 1 of the weight are %lld and %lld",
                        (long long)size, (long long)u->shape[j]);
            return false;
        }
    bool depth = sides == 3 && u->shape[2] == size;
    z->first = sides == 3 && !depth;
    dims[z->v.kernel[CONV_O]] = u->shape[sides];
    dims[z->v.kernel[CONV_I]] = u->shape[sides + 1];
    for (int j = 0; j < sides; j++)
        dims[z->v.kernel[CONV_SIDE + j]] = j < z->first ? u->shape[2] : r;
    if (!conv_resolve(call, x->rank, x->shape, sides + 2, dims, &z->v))
        return false;
    for (int j = 0; j < sides; j++)
        z->tiles[j] = j < z->first ? z->v.count[j] : (z->v.count[j] + z->m - 1) / z->m;
    return true;
}

/* data with its padding, and zeros behind so that all tiles are whole: (n, c, sides). */
static Tensor *plan_tiled(Plan *plan, const Winograd *z, const Tensor *x, DType t) {
    const Conv *v = &z->v;
    int sides = v->w.sides;
    int64_t shape[CONV_RANK] = {v->n, v->c}, extents[CONV_RANK] = {v->n, v->c};
    int64_t from[RECIPE_MAX_AXES] = {x->strides[v->data[CONV_N]], x->strides[v->data[CONV_C]]};
    int64_t offset = 0;
    for (int j = 0; j < sides; j++) {
        extents[2 + j] = v->size[j];
        shape[2 + j] = j < z->first ? v->size[j] + v->w.before[j] + v->w.after[j]
                                    : z->tiles[j] * z->m + z->r - 1;
        int64_t room = v->w.before[j] + v->size[j];
        shape[2 + j] = shape[2 + j] > room ? shape[2 + j] : room;
        from[2 + j] = x->strides[v->data[CONV_SIDE + j]];
    }
    Tensor *padded = plan_temp(plan, t, sides + 2, shape);
    plan_fill_int(plan, padded, 0);
    for (int j = 0; j < sides; j++)
        offset += v->w.before[j] * padded->strides[2 + j];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, sides + 2, extents);
    sc_cast(&s.body, sc_load(&s.body, step_in_strided(&s, x, from, 0), x->dtype), sc_type_of(t));
    step_out_strided(&s, padded, padded->strides, offset);
    step_end(&s);
    return padded;
}

/* Side j of x, from place to place of tiles, times B: an axis of tiles, and one of what is multiplied, the last. */
static Tensor *plan_data_side(Plan *plan, const Winograd *z, const Tensor *x, int j,
                              const Tensor *b) {
    int64_t shape[TENSOR_MAX_RANK];
    int rank = x->rank, axis = 2 + j;
    memcpy(shape, x->shape, sizeof *shape * (size_t)rank);
    shape[axis] = z->tiles[j];
    shape[rank] = b->shape[1];
    Tensor *out = plan_temp(plan, x->dtype, rank + 1, shape);
    Product p = {.rank = rank + 1, .nreduce = 1};
    memcpy(p.extents, shape, sizeof *shape * (size_t)(rank + 1));
    memcpy(p.out_strides, out->strides, sizeof *shape * (size_t)(rank + 1));
    memcpy(p.x_strides, x->strides, sizeof *shape * (size_t)rank);
    p.x_strides[axis] *= z->m;
    p.y_strides[rank] = b->strides[1];
    p.extents[rank + 1] = b->shape[0];
    p.x_strides[rank + 1] = x->strides[axis];
    p.y_strides[rank + 1] = b->strides[0];
    plan_product(plan, out, &p, x, b);
    return out;
}

/* The last axis of x times A, as places of side j's tiles. */
static Tensor *plan_result_side(Plan *plan, const Winograd *z, const Tensor *x, int j,
                                const Tensor *a) {
    int64_t shape[TENSOR_MAX_RANK];
    int rank = x->rank - 1, axis = 2 + j;
    memcpy(shape, x->shape, sizeof *shape * (size_t)rank);
    shape[axis] = z->tiles[j] * z->m;
    Tensor *out = plan_temp(plan, x->dtype, rank, shape);
    Product p = {.rank = rank + 1, .nreduce = 1};
    memcpy(p.extents, x->shape, sizeof *shape * (size_t)rank);
    p.extents[rank] = z->m;
    memcpy(p.out_strides, out->strides, sizeof *shape * (size_t)rank);
    p.out_strides[axis] *= z->m;
    p.out_strides[rank] = out->strides[axis];
    memcpy(p.x_strides, x->strides, sizeof *shape * (size_t)rank);
    p.y_strides[rank] = a->strides[1];
    p.extents[rank + 1] = x->shape[rank];
    p.x_strides[rank + 1] = x->strides[rank];
    p.y_strides[rank + 1] = a->strides[0];
    plan_product(plan, out, &p, x, a);
    return out;
}

/* x (n, c, tiles, transformed) and u (transformed, [depth], o, c) give (n, o, tiles, transformed). */
static Tensor *plan_multiply(Plan *plan, const Winograd *z, const Tensor *x, const Tensor *u) {
    int64_t shape[TENSOR_MAX_RANK];
    int rank = x->rank, sides = z->v.w.sides, count = sides - z->first;
    memcpy(shape, x->shape, sizeof *shape * (size_t)rank);
    shape[1] = z->v.o;
    for (int j = 0; j < sides; j++)
        shape[2 + j] = z->tiles[j];
    Tensor *out = plan_temp(plan, x->dtype, rank, shape);
    Product p = {.rank = rank, .nreduce = 1 + z->first};
    memcpy(p.extents, shape, sizeof *shape * (size_t)rank);
    memcpy(p.out_strides, out->strides, sizeof *shape * (size_t)rank);
    memcpy(p.x_strides, x->strides, sizeof *shape * (size_t)rank);
    p.x_strides[1] = 0;
    p.y_strides[1] = u->strides[sides];
    for (int k = 0; k < count; k++)
        p.y_strides[2 + sides + k] = u->strides[k];
    p.extents[rank] = z->v.c;
    p.x_strides[rank] = x->strides[1];
    p.y_strides[rank] = u->strides[sides + 1];
    if (z->first) {
        p.extents[rank + 1] = z->v.w.kernel[0];
        p.x_strides[rank + 1] = x->strides[2];
        p.y_strides[rank + 1] = u->strides[2];
    }
    plan_product(plan, out, &p, x, u);
    return out;
}

static bool lower_winograd(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, PACKED_DATA);
    Winograd z;
    if (!size_winograd(call, &z))
        return false;
    DType t = reduce_acc_type(out[0]->dtype);
    int sides = z.v.w.sides;
    Tensor *b = plan_matrix(plan, t, MATRIX_B, z.m, z.r),
           *a = plan_matrix(plan, t, MATRIX_A, z.m, z.r);
    Tensor *cur = plan_tiled(plan, &z, call->in[0], t);
    for (int j = z.first; j < sides; j++)
        cur = plan_data_side(plan, &z, cur, j, b);
    cur = plan_multiply(plan, &z, cur, call->in[1]);
    for (int j = sides - 1; j >= z.first; j--)
        cur = plan_result_side(plan, &z, cur, j, a);
    int64_t strides[RECIPE_MAX_AXES];
    strides[z.v.out[CONV_N]] = cur->strides[0];
    strides[z.v.out[CONV_C]] = cur->strides[1];
    for (int j = 0; j < sides; j++)
        strides[z.v.out[CONV_SIDE + j]] = cur->strides[2 + j];
    plan_gather_strided(plan, out[0], cur, strides, 0);
    return true;
}

static bool measure_winograd(const OpCall *call, OutSpec *out) {
    Winograd z;
    if (!size_winograd(call, &z))
        return false;
    conv_out_shape(&z.v, out[0].shape);
    return true;
}

static const AttrSpec winograd2d_attrs[] = {
    CONV_ATTRS("[1, 1]", "[0, 0]", "NCHW", "OIHW"),
    {"tile_size", AT_INT, NULL, "that of the weight's transform"},
};
static const AttrSpec winograd3d_attrs[] = {
    CONV_ATTRS("[1, 1, 1]", "[0, 0, 0]", "NCDHW", "OIDHW"),
    {"tile_size", AT_INT, NULL, "that of the weight's transform"},
};
SIGNATURE_OP_BY(
    packed_relate_data, packed_shape_data, nn_contrib_conv2d_winograd_without_weight_transform,
    "Conv2DWinograd", "nn.contrib_conv2d_winograd_without_weight_transform", "data, weight", 2,
    (.text = "float(a, b, c, d), =0(e, f, o, i) -> @out_dtype(?, ?, ?, ?)",
     .refuse = refuse_winograd, .measure = measure_winograd),
    .attrs = winograd2d_attrs, .nattrs = CONV_NATTRS + 1, .choices = CONV_LAYOUTS("+NCHW", "+OIHW"),
    .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE, .lower = lower_winograd,
    .doc = "nn.conv2d of steps of 1 with a weight that nn.contrib_conv2d_winograd_weight_transform "
           "made,\n"
           "by fewer products. The kernel's side is the weight's less tile_size - 1.",
    .example = "nn.contrib_conv2d_winograd_without_weight_transform(ones(shape=[1, 1, 3, 3]),\n"
               "  nn.contrib_conv2d_winograd_weight_transform(ones(shape=[1, 1, 3, 3]), "
               "tile_size=2), tile_size=2)",
    .example_result = "[[[[9.0]]]] : Tensor[(1, 1, 1, 1), float32]",
    .see_also = "nn.conv2d, nn.contrib_conv2d_winograd_weight_transform")
SIGNATURE_OP_BY(
    packed_relate_data, packed_shape_data, nn_contrib_conv3d_winograd_without_weight_transform,
    "Conv3DWinograd", "nn.contrib_conv3d_winograd_without_weight_transform", "data, weight", 2,
    (.text = "float(a, b, c, d, e), =0(f, g, h, o, i) -> @out_dtype(?, ?, ?, ?, ?)",
     .refuse = refuse_winograd, .measure = measure_winograd),
    .attrs = winograd3d_attrs, .nattrs = CONV_NATTRS + 1,
    .choices = CONV_LAYOUTS("+NCDHW", "+OIDHW"), .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE,
    .lower = lower_winograd,
    .doc = "nn.conv3d of steps of 1 with a weight that nn.contrib_conv3d_winograd_weight_transform "
           "made,\n"
           "by fewer products.",
    .example = "nn.contrib_conv3d_winograd_without_weight_transform(ones(shape=[1, 1, 3, 3, 3]),\n"
               "  nn.contrib_conv3d_winograd_weight_transform(ones(shape=[1, 1, 3, 3, 3]), "
               "tile_size=2), tile_size=2)",
    .example_result = "[[[[[27.0]]]]] : Tensor[(1, 1, 1, 1, 1), float32]",
    .see_also = "nn.conv3d, nn.contrib_conv3d_winograd_weight_transform")
