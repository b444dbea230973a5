/* SPDX-License-Identifier: Apache-2.0 */
/* image.resize1d, 2d and 3d, and nn.upsampling, which is one of them. All methods are linear, and do one axis
 * after the other: place i of the result is at the coordinate
 *
 *     (i + a) * num / den + c
 *
 * of data, where the mode of coordinates tells the four numbers, and the element there is a sum of 1, 2 or 4
 * neighbours times weights. Neighbours and weights are tables, which a step of their own makes from the formula;
 * the derivative reads the same tables the other way. Places beyond the ends are those at the ends. */
#include <string.h>

#include "base/mem.h"
#include "ops/packed.h"
#include "ops/window.h"

typedef enum Method { NEAREST, LINEAR, CUBIC } Method;
enum { RESIZE_RANK = 2 + WINDOW_SIDES };

typedef struct Resize {
    int sides, rank, axis[WINDOW_SIDES];
    int64_t in[WINDOW_SIDES], out[WINDOW_SIDES];
    Method method;
    const char *mode, *rounding;
    double
        roi[2 * WINDOW_SIDES]; /* where the part of data begins and ends, of tf_crop_and_resize */
    double alpha, outside;     /* of cubic weights; what stands outside of data */
    bool crops, exclude;
} Resize;

/* ---- attributes and sizes ---------------------------------------------------------------------- */

static Method read_method(const char *text) {
    if (strstr(text, "nearest"))
        return NEAREST;
    return strstr(text, "cubic") ? CUBIC : LINEAR;
}

static const char *read_roi(const Attrs *attrs, Resize *z) {
    const AttrValue *roi = attrs_find(attrs, "roi");
    z->crops = strcmp(z->mode, "tf_crop_and_resize") == 0;
    if (!z->crops)
        return NULL;
    int n = 2 * z->sides;
    if (!roi || roi->kind != ATTR_LIST || (int)roi->list.n != n)
        return "roi has a beginning for each side, then an end for each";
    for (int i = 0; i < n; i++) {
        const AttrValue *v = &roi->list.items[i];
        z->roi[i] = v->kind == ATTR_FLOAT ? v->f : (double)v->i;
    }
    return NULL;
}

/* What does not follow from sizes. */
static const char *read_resize(const Attrs *attrs, Resize *z) {
    int place[RESIZE_RANK];
    const char *layout = attrs_text(attrs, "layout");
    const AttrValue *mode = attrs_find(attrs, "coordinate_transformation_mode"),
                    *corners = attrs_find(attrs, "align_corners"),
                    *rounding = attrs_find(attrs, "rounding_method"),
                    *alpha = attrs_find(attrs, "cubic_alpha"),
                    *exclude = attrs_find(attrs, "cubic_exclude"),
                    *outside = attrs_find(attrs, "extrapolation_value");
    *z = (Resize){.rank = (int)strlen(layout), .alpha = -0.5};
    z->sides = z->rank - 2;
    layout_read(layout, layout_letters("NC", z->sides), place);
    memcpy(z->axis, place + 2, sizeof *place * (size_t)z->sides);
    z->method = read_method(attrs_text(attrs, "method"));
    z->mode = mode ? mode->text : corners && corners->i ? "align_corners" : "asymmetric";
    z->rounding = rounding && *rounding->text             ? rounding->text
                  : strcmp(z->mode, "align_corners") == 0 ? "round"
                                                          : "floor";
    if (alpha)
        z->alpha = attrs_float(attrs, "cubic_alpha");
    if (outside)
        z->outside = attrs_float(attrs, "extrapolation_value");
    z->exclude = exclude && exclude->i;
    return read_roi(attrs, z);
}

/* nn.upsampling: the factor of side j; 0 where the attributes have sizes. */
static double scale_of(const Attrs *attrs, int sides, int j) {
    static const char *const names[] = {"scale_d", "scale_h", "scale_w"};
    const char *name = names[WINDOW_SIDES - sides + j];
    return attrs_find(attrs, name) ? attrs_float(attrs, name) : 0;
}

/* like: the tensor whose sides are those of the result, or NULL. */
static bool resolve(const OpCall *call, int arg, const Tensor *like, Resize *z) {
    const Tensor *x = call->in[arg];
    int64_t size[WINDOW_SIDES];
    const char *problem = read_resize(call->attrs, z);
    bool scaled = scale_of(call->attrs, z->sides, 0) != 0;
    if (!problem && !like && !scaled && !window_list(call->attrs, "size", z->sides, 0, size))
        problem = "size is one number a side from 0";
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return false;
    }
    if (!shape_check_dtype(call, arg, DTS_NUM) || !shape_check_rank(call, arg, z->rank))
        return false;
    for (int j = 0; j < z->sides; j++) {
        z->in[j] = x->shape[z->axis[j]];
        double scale = scaled && !like ? scale_of(call->attrs, z->sides, j) : 1;
        double wanted = __builtin_floor((double)z->in[j] * scale + 0.5);
        if (!(scale > 0) || wanted > (double)INT32_MAX) {
            shape_error(call, DIAG_R0316, "a scale is a number above 0");
            return false;
        }
        z->out[j] = like ? like->shape[z->axis[j]] : scaled ? (int64_t)wanted : size[j];
        if (z->out[j] > 0 && z->in[j] == 0) {
            shape_error(call, DIAG_R0318, "axis %d has no elements", z->axis[j]);
            return false;
        }
    }
    return true;
}

static void resized_shape(const Resize *z, const Tensor *x, int64_t *dims) {
    memcpy(dims, x->shape, sizeof *dims * (size_t)z->rank);
    for (int j = 0; j < z->sides; j++)
        dims[z->axis[j]] = z->out[j];
}

static int shape_resize(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, "L>L");
    Resize z;
    int64_t dims[RESIZE_RANK];
    if (!resolve(call, 0, NULL, &z))
        return -1;
    resized_shape(&z, call->in[0], dims);
    DType t = call->in[0]->dtype;
    if (attrs_find(call->attrs, "out_dtype"))
        t = shape_attr_dtype(call, "out_dtype", t);
    return shape_set(call, out, t, z.rank, dims) ? 1 : -1;
}

static RelStatus relate_resize(Solver *s, Relation *r) {
    if (!rel_attrs_open(r) && packed_is(r->attrs))
        return packed_relate(s, r, "L>L");
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM}, &status))
        return status;
    Resize z;
    uint32_t rank;
    Type **dims, *dtype = rel_dtype_in(r->args[0]);
    uint32_t nsizes = 0;
    Type **size = NULL;
    const char *problem = read_resize(r->attrs, &z);
    bool scaled = scale_of(r->attrs, z.sides, 0) != 0;
    if (!problem && !scaled) {
        const AttrValue *sizes = attrs_get(r->attrs, "size");
        bool fits = sizes->list.n == 1 || (int)sizes->list.n == z.sides;
        for (uint32_t i = 0; i < sizes->list.n; i++)
            fits = fits && (sizes->list.items[i].kind == ATTR_DIM || sizes->list.items[i].i >= 0);
        if (fits && !rel_attr_dims(s, r, "size", &nsizes, &size))
            return REL_FAIL;
        if (!fits)
            problem = "size is one number a side from 0";
    }
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    if (!window_make_ranks(s, r, 1, z.rank))
        return REL_FAIL;
    rel_rank_in(r->args[0], &rank, &dims);
    Type **out = rel_copy_dims(rank, dims, 0);
    for (int j = 0; j < z.sides; j++) {
        double scale = scale_of(r->attrs, z.sides, j);
        int64_t n;
        Type *own = type_resolve(dims[z.axis[j]]), **to = &out[z.axis[j]];
        if (!scaled)
            *to = size[nsizes == 1 ? 0 : j];
        else if (scale == __builtin_floor(scale) && scale >= 1 && scale < INT16_MAX)
            *to = dim_mul(own, rel_int_dim(r, (int64_t)scale));
        else if (type_get_int(own, &n) && scale > 0 && scale < INT16_MAX)
            *to = rel_int_dim(r, (int64_t)__builtin_floor((double)n * scale + 0.5));
        else
            *to = rel_unknown_dim(r);
    }
    if (r->attrs && attrs_find(r->attrs, "out_dtype"))
        dtype = rel_attr_dtype(r, "out_dtype", dtype);
    return rel_result(s, r, out, rank, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* ---- tables ------------------------------------------------------------------------------------ */

typedef struct Table {
    int64_t n, taps;     /* places of the result; neighbours of each */
    Tensor *at, *weight; /* (n, taps): which place of data, int64, and its weight; NULL: 1 */
    Tensor *outside;     /* (n,): whether the place is outside of data; NULL: none is */
} Table;

/* The coordinate of place iota(0), in float64. */
static Sc coordinate(StepBuilder *s, const Resize *z, int j) {
    ScalarBuilder *b = &s->body;
    double in = (double)z->in[j], out = (double)z->out[j], a = 0, num = in, den = out, c = 0;
    if (strcmp(z->mode, "half_pixel") == 0 || strcmp(z->mode, "pytorch_half_pixel") == 0) {
        bool one = z->mode[0] == 'p' && z->out[j] <= 1;
        a = 0.5;
        c = one ? 0 : -0.5;
        num = one ? 0 : num;
    } else if (strcmp(z->mode, "align_corners") == 0) {
        num = z->out[j] > 1 ? in - 1 : 0;
        den = z->out[j] > 1 ? out - 1 : 1;
    } else if (strcmp(z->mode, "tf_half_pixel_for_nn") == 0) {
        a = 0.5;
    } else if (z->crops) {
        double from = z->roi[j], to = z->roi[z->sides + j];
        bool one = z->out[j] <= 1;
        num = one ? 0 : (to - from) * (in - 1);
        den = one ? 1 : out - 1;
        c = (one ? 0.5 * (from + to) : from) * (in - 1);
    }
    Sc i = sc_cast(b, sc_iota(b, 0), DT_F64);
    Sc x = sc_mul(b, sc_add(b, i, step_fparam(s, b, DT_F64, a)), step_fparam(s, b, DT_F64, num));
    x = sc_div(b, x, step_fparam(s, b, DT_F64, den));
    return sc_add(b, x, step_fparam(s, b, DT_F64, c));
}

static Sc round_nearest(ScalarBuilder *b, const char *how, Sc x) {
    Sc half = sc_float(b, DT_F64, 0.5);
    if (strcmp(how, "floor") == 0)
        return sc_floor(b, x);
    if (strcmp(how, "ceil") == 0)
        return sc_ceil(b, x);
    if (strcmp(how, "round_prefer_floor") == 0)
        return sc_ceil(b, sc_sub(b, x, half));
    return sc_floor(b, sc_add(b, x, half));
}

/* The first of the neighbours, of which there are 1, 2 or 4. */
static Sc first_neighbour(ScalarBuilder *b, const Resize *z, Sc x) {
    if (z->method == NEAREST)
        return round_nearest(b, z->rounding, x);
    Sc low = sc_floor(b, x);
    return z->method == LINEAR ? low : sc_sub(b, low, sc_float(b, DT_F64, 1));
}

/* The weight of a neighbour at distance d: 1 - d; or Keys' cubic, whose coefficient is a. */
static Sc weight_at(ScalarBuilder *b, const Resize *z, Sc d, Sc a) {
    Sc one = sc_float(b, DT_F64, 1);
    if (z->method == LINEAR)
        return sc_sub(b, one, d);
    Sc a2 = sc_add(b, a, sc_float(b, DT_F64, 2)), a3 = sc_add(b, a, sc_float(b, DT_F64, 3));
    Sc near = sc_mul(b, sc_sub(b, sc_mul(b, a2, d), a3), sc_mul(b, d, d));
    near = sc_add(b, near, one);
    Sc far = sc_sub(b, sc_mul(b, a, d), sc_mul(b, a, sc_float(b, DT_F64, 5)));
    far = sc_add(b, sc_mul(b, far, d), sc_mul(b, a, sc_float(b, DT_F64, 8)));
    far = sc_sub(b, sc_mul(b, far, d), sc_mul(b, a, sc_float(b, DT_F64, 4)));
    return sc_select(b, sc_le(b, d, one), near, far);
}

/* The weights of neighbours outside of data become 0, and the others sum to 1. */
static Tensor *normalised(Plan *plan, const Resize *z, const Table *t, DType type) {
    Tensor *sum = plan_temp(plan, DT_F64, 1, &t->n), *out = plan_temp(plan, type, 2, t->at->shape);
    plan_reduce(plan, sum, t->weight, 2, COMBINE_SUM);
    StepBuilder s;
    (void)z;
    step_begin(&s, plan, RECIPE_MAP, 2, t->at->shape);
    Sc w = sc_load(&s.body, step_in(&s, t->weight), DT_F64);
    int64_t strides[] = {1, 0};
    Sc q = sc_div(&s.body, w, sc_load(&s.body, step_in_strided(&s, sum, strides, 0), DT_F64));
    sc_cast(&s.body, q, type);
    step_out(&s, out);
    step_end(&s);
    return out;
}

/* type: in which it is computed. */
static Table make_table(Plan *plan, const Resize *z, int j, DType type) {
    Table t = {.n = z->out[j], .taps = z->method == NEAREST ? 1 : z->method == LINEAR ? 2 : 4};
    bool exclude = z->method == CUBIC && z->exclude;
    int64_t shape[] = {t.n, t.taps};
    StepBuilder s;
    for (int weights = 0; weights <= (z->method != NEAREST); weights++) {
        step_begin(&s, plan, RECIPE_MAP, 2, shape);
        ScalarBuilder *b = &s.body;
        Sc x = coordinate(&s, z, j), k = sc_cast(b, sc_iota(b, 1), DT_F64);
        Sc at = sc_add(b, first_neighbour(b, z, x), k);
        Sc last = step_fparam(&s, b, DT_F64, (double)(z->in[j] - 1)), zero = sc_float(b, DT_F64, 0);
        if (weights) {
            Sc alpha = step_fparam(&s, b, DT_F64, z->alpha);
            Sc w = weight_at(b, z, sc_abs(b, sc_sub(b, x, at)), alpha);
            if (exclude)
                w = sc_select(b, sc_and(b, sc_ge(b, at, zero), sc_le(b, at, last)), w, zero);
            t.weight = plan_temp(plan, exclude ? DT_F64 : type, 2, shape);
            sc_cast(b, w, t.weight->dtype);
            step_out(&s, t.weight);
        } else {
            t.at = plan_temp(plan, DT_I64, 2, shape);
            sc_cast(b, sc_max(b, sc_min(b, at, last), zero), DT_I64);
            step_out(&s, t.at);
        }
        step_end(&s);
    }
    if (exclude)
        t.weight = normalised(plan, z, &t, type);
    if (z->crops) {
        t.outside = plan_temp(plan, DT_BOOL, 1, shape);
        step_begin(&s, plan, RECIPE_MAP, 1, shape);
        ScalarBuilder *b = &s.body;
        Sc x = coordinate(&s, z, j), last = step_fparam(&s, b, DT_F64, (double)(z->in[j] - 1));
        sc_or(b, sc_lt(b, x, sc_float(b, DT_F64, 0)), sc_gt(b, x, last));
        step_out(&s, t.outside);
        step_end(&s);
    }
    return t;
}

/* A table as an operand of a step over `rank` axes and then the neighbours: n lies along `axis`. */
static int table_in(StepBuilder *s, const Tensor *table, int rank, int axis) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    strides[axis] = table->strides[0];
    if (table->rank == 2)
        strides[rank] = table->strides[1];
    return step_in_strided(s, table, strides, 0);
}

/* ---- there, and back --------------------------------------------------------------------------- */

/* out = x resampled along one axis. */
static void resample(Plan *plan, const Resize *z, const Table *t, int axis, Tensor *out,
                     const Tensor *x) {
    int rank = z->rank;
    int64_t strides[RESIZE_RANK + 1] = {0};
    memcpy(strides, x->strides, sizeof *strides * (size_t)rank);
    strides[axis] = 0;
    StepBuilder s;
    step_begin(&s, plan, t->weight ? RECIPE_REDUCE : RECIPE_MAP, rank, out->shape);
    if (t->weight) {
        step_reduce_over(&s, 1, &t->taps);
        step_combine(&s, COMBINE_SUM, sc_type_of(out->dtype));
    }
    ScalarBuilder *b = &s.body, *e = t->weight ? &s.epilogue : b;
    Sc at = sc_load(b, table_in(&s, t->at, rank, axis), DT_I64);
    at = sc_mul(b, at, step_iparam(&s, b, DT_I64, x->strides[axis]));
    Sc v = sc_load_at(b, step_in_strided(&s, x, strides, 0), x->dtype, at);
    if (t->weight) {
        v = sc_cast(b, v, t->weight->dtype);
        sc_mul(b, v, sc_load(b, table_in(&s, t->weight, rank, axis), t->weight->dtype));
        if (t->outside)
            v = sc_acc(e, sc_type_of(out->dtype));
    }
    if (t->outside) {
        DType type = sc_type(e, v);
        Sc o = sc_load(e, table_in(&s, t->outside, rank, axis), DT_BOOL);
        Sc fill = dtype_is_float(type) ? step_fparam(&s, e, type, z->outside)
                                       : step_iparam(&s, e, type, (int64_t)z->outside);
        sc_select(e, o, fill, v);
    }
    step_out(&s, out);
    step_end(&s);
}

/* out, which is 0, gets what resample would have read for each element of g. */
static void resample_add(Plan *plan, const Resize *z, const Table *t, int axis, Tensor *out,
                         const Tensor *g) {
    int rank = z->rank;
    int64_t extents[RESIZE_RANK + 1], from[RESIZE_RANK + 1] = {0}, to[RESIZE_RANK + 1] = {0};
    for (int i = 0; i < rank; i++) {
        extents[i] = g->shape[i];
        from[i] = g->strides[i];
        to[i] = i == axis ? 0 : out->strides[i];
    }
    extents[rank] = t->taps;
    plan_fill_int(plan, out, 0);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, rank + 1, extents);
    step_combine(&s, COMBINE_SUM, out->dtype);
    ScalarBuilder *b = &s.body;
    Sc v = sc_cast(b, sc_load(b, step_in_strided(&s, g, from, 0), g->dtype), out->dtype);
    Sc at = sc_load(b, table_in(&s, t->at, rank, axis), DT_I64);
    if (t->weight)
        v = sc_mul(b, v, sc_load(b, table_in(&s, t->weight, rank, axis), t->weight->dtype));
    if (t->outside) {
        Sc o = sc_load(b, table_in(&s, t->outside, rank, axis), DT_BOOL);
        v = sc_select(b, o, sc_float(b, out->dtype, 0), v);
    }
    step_result(&s, v);
    step_result(&s, sc_mul(b, at, step_iparam(&s, b, DT_I64, out->strides[axis])));
    step_out_strided(&s, out, to, 0);
    step_end(&s);
}

/* In which the sums are: that of floats; integers are resized as float32, but for their nearest. */
static DType compute_type(const Resize *z, DType t) {
    bool exact = z->method == NEAREST || dtype_is_float(t);
    return exact ? sc_type_of(t) : DT_F32;
}

static void plan_resize(Plan *plan, const Resize *z, Tensor *out, const Tensor *x) {
    DType type = compute_type(z, x->dtype);
    int64_t dims[RESIZE_RANK];
    memcpy(dims, x->shape, sizeof *dims * (size_t)z->rank);
    for (int j = 0; j < z->sides; j++) {
        dims[z->axis[j]] = z->out[j];
        Table t = make_table(plan, z, j, type);
        bool last = j == z->sides - 1 && out->dtype == type;
        Tensor *to = last ? out : plan_temp(plan, type, z->rank, dims);
        resample(plan, z, &t, z->axis[j], to, x);
        x = to;
    }
    if (x != out)
        plan_copy(plan, out, x);
}

static bool lower_resize(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "L>L");
    Resize z;
    if (!resolve(call, 0, NULL, &z))
        return false;
    plan_resize(plan, &z, out[0], call->in[0]);
    return true;
}

/* ---- the operators ----------------------------------------------------------------------------- */

#define RESIZE_HOW(order)                                                                          \
    {"roi", AT_FLOATS, "[]", "of tf_crop_and_resize: where the part begins, then where it ends"},  \
        {"layout", AT_STRING, "\"" order "\"", "what data's axes are"},                            \
        {"method", AT_STRING, "\"linear\"", "from how many neighbours: 1, 2 or 4 a side"},         \
        {"coordinate_transformation_mode", AT_STRING, "\"half_pixel\"",                            \
         "where places of the result are in data"},                                                \
        {"rounding_method", AT_STRING, "\"round\"",                                                \
         "which neighbour is the nearest; \"round\": of two the latter"},                          \
        {"cubic_alpha", AT_FLOAT, "-0.5", "the coefficient of cubic weights"},                     \
        {"cubic_exclude", AT_INT, "0", "1: neighbours outside of data do not count"}, {            \
        "extrapolation_value", AT_FLOAT, "0.0", "of tf_crop_and_resize: what is outside of data"   \
    }
enum { NHOW = 8 };
#define RESIZE_ATTRS(order)                                                                        \
    {"size", AT_DIMS, NULL, "the sides of the result"}, RESIZE_HOW(order), {                       \
        "out_dtype", AT_DTYPE, "None", "of the result; None: that of data"                         \
    }
static const AttrSpec resize1d_attrs[] = {RESIZE_ATTRS("NCW")};
static const AttrSpec resize2d_attrs[] = {RESIZE_ATTRS("NCHW")};
static const AttrSpec resize3d_attrs[] = {RESIZE_ATTRS("NCDHW")};
static const AttrSpec how_attrs[] = {RESIZE_HOW("NCHW")};
static const AttrSpec upsampling_attrs[] = {
    {"scale_h", AT_FLOAT, "1.0", "how many times as high"},
    {"scale_w", AT_FLOAT, "1.0", "how many times as wide"},
    {"layout", AT_STRING, "\"NCHW\"", "what data's axes are"},
    {"method", AT_STRING, "\"nearest_neighbor\"", "from how many neighbours: 1, 4 or 16"},
    {"align_corners", AT_BOOL, "False", "the outermost places keep their values"},
};
static const AttrSpec upsampling3d_attrs[] = {
    {"scale_d", AT_FLOAT, "1.0", "how many times as deep"},
    {"scale_h", AT_FLOAT, "1.0", "how many times as high"},
    {"scale_w", AT_FLOAT, "1.0", "how many times as wide"},
    {"layout", AT_STRING, "\"NCDHW\"", "what data's axes are"},
    {"method", AT_STRING, "\"nearest_neighbor\"", "from how many neighbours: 1 or 8"},
    {"coordinate_transformation_mode", AT_STRING, "\"half_pixel\"",
     "where places of the result are in data"},
};
#define MODES                                                                                      \
    "coordinate_transformation_mode: half_pixel align_corners asymmetric pytorch_half_pixel "      \
    "tf_half_pixel_for_nn tf_crop_and_resize"
#define CHOICES(order)                                                                             \
    "layout: " order "; method: nearest_neighbor linear cubic; " MODES                             \
    "; rounding_method: round floor ceil round_prefer_floor round_prefer_ceil -"

#define RESIZE(symbol, op_name, rel, op_attrs, n, op_choices, text, shown, value, see)             \
    static const RelDef rel_##symbol = {rel, relate_resize, 2, false};                             \
    const Op op_##symbol = {                                                                       \
        .name = op_name,                                                                           \
        .args = "data",                                                                            \
        .nargs = 1,                                                                                \
        .attrs = op_attrs,                                                                         \
        .nattrs = n,                                                                               \
        .choices = op_choices,                                                                     \
        .relation = &rel_##symbol,                                                                 \
        .dtypes = DTS_NUM,                                                                         \
        .pattern = OP_OPAQUE,                                                                      \
        .shape = shape_resize,                                                                     \
        .refuses_sizes = true,                                                                     \
        .lower = lower_resize,                                                                     \
        .doc = text,                                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = see,                                                                           \
    };
RESIZE(image_resize1d, "image.resize1d", "Resize1D", resize1d_attrs, NHOW + 2, CHOICES("+NCW"),
       "data (n, c, w) with another width, by its nearest places, linearly or by cubics.",
       "image.resize1d([[[1.0, 2.0]]], size=[4])",
       "[[[ 1.0, 1.25, 1.75,  2.0]]] : Tensor[(1, 1, 4), float32]", "image.resize2d")
RESIZE(image_resize2d, "image.resize2d", "Resize2D", resize2d_attrs, NHOW + 2, CHOICES("+NCHW"),
       "data (n, c, h, w) with another height and width, by its nearest places, linearly or by\n"
       "cubics. Place i of n over m places of data is at (i + 0.5) m / n - 0.5 (half_pixel),\n"
       "i (m - 1) / (n - 1) (align_corners) or i m / n (asymmetric).",
       "image.resize2d([[[[1.0, 2.0]]]], size=[1, 4], method=\"nearest_neighbor\", "
       "coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\")",
       "[[[[1.0, 1.0, 2.0, 2.0]]]] : Tensor[(1, 1, 1, 4), float32]", "nn.upsampling")
RESIZE(image_resize3d, "image.resize3d", "Resize3d", resize3d_attrs, NHOW + 2, CHOICES("+NCDHW"),
       "data (n, c, d, h, w) with other sides, by its nearest places, linearly or by cubics.",
       "image.resize3d([[[[[1.0, 2.0]]]]], size=[1, 1, 3], "
       "coordinate_transformation_mode=\"align_corners\")",
       "[[[[[1.0, 1.5, 2.0]]]]] : Tensor[(1, 1, 1, 1, 3), float32]", "image.resize2d")
RESIZE(nn_upsampling, "nn.upsampling", "UpSampling", upsampling_attrs, 5,
       "layout: +NCHW; method: nearest_neighbor bilinear bicubic",
       "data (n, c, h, w) made higher and wider: image.resize2d with asymmetric coordinates, or\n"
       "those of align_corners.",
       "nn.upsampling([[[[1.0, 2.0]]]], scale_w=2.0)",
       "[[[[1.0, 1.0, 2.0, 2.0]]]] : Tensor[(1, 1, 1, 4), float32]", "image.resize2d")
RESIZE(nn_upsampling3d, "nn.upsampling3d", "UpSampling3D", upsampling3d_attrs, 6,
       "layout: +NCDHW; method: nearest_neighbor trilinear; " MODES,
       "data (n, c, d, h, w) made deeper, higher and wider: image.resize3d.",
       "nn.upsampling3d([[[[[1.0, 2.0]]]]], scale_w=2.0, method=\"trilinear\")",
       "[[[[[ 1.0, 1.25, 1.75,  2.0]]]]] : Tensor[(1, 1, 1, 1, 4), float32]", "image.resize3d")

/* ---- for derivatives --------------------------------------------------------------------------- */

/* (grad, data): data's shape. (data, like): like's sides. */
enum { GRAD, LIKE };
static const char pair_roles[] = "Ll>L";

static int shape_pair(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, pair_roles);
    bool grad = call->op->variant == GRAD;
    Resize z;
    int64_t dims[RESIZE_RANK];
    const Tensor *g = call->in[0], *x = call->in[grad];
    const char *problem = read_resize(call->attrs, &z);
    if (!shape_check_dtype(call, 0, DTS_FLOAT) || !shape_check_same_dtype(call, 0, 1))
        return -1;
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return -1;
    }
    if (!shape_check_rank(call, 0, z.rank) || !shape_check_rank(call, 1, z.rank) ||
        !resolve(call, grad, call->in[!grad], &z))
        return -1;
    resized_shape(&z, x, dims);
    for (int i = 0; i < z.rank && grad; i++)
        if (g->shape[i] != dims[i] && !shape_check_dims(call, 0, i, 1, i))
            return -1;
    return shape_set(call, out, g->dtype, z.rank, grad ? x->shape : dims) ? 1 : -1;
}

static RelStatus relate_pair(Solver *s, Relation *r) {
    if (!rel_attrs_open(r) && packed_is(r->attrs))
        return packed_relate(s, r, pair_roles);
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_FLOAT, DTS_FLOAT}, &status))
        return status;
    bool grad = r->op->variant == GRAD;
    Resize z;
    uint32_t rank;
    Type **own, **other, *dtype = rel_dtype_in(r->args[0]);
    const char *problem = read_resize(r->attrs, &z);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    if (!rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)) ||
        !window_make_ranks(s, r, 2, z.rank))
        return REL_FAIL;
    if (grad)
        return rel_result_type(s, r, r->args[1]) == REL_FAIL ? REL_FAIL : REL_DONE;
    rel_rank_in(r->args[0], &rank, &own);
    rel_rank_in(r->args[1], &rank, &other);
    Type **out = rel_copy_dims(rank, own, 0);
    for (int j = 0; j < z.sides; j++)
        out[z.axis[j]] = other[z.axis[j]];
    return rel_result(s, r, out, rank, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_like(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, pair_roles);
    Resize z;
    if (!resolve(call, 0, call->in[1], &z))
        return false;
    z.outside = 0; /* it is linear */
    plan_resize(plan, &z, out[0], call->in[0]);
    return true;
}

static bool lower_grad(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, pair_roles);
    const Tensor *g = call->in[0];
    Resize z;
    if (!resolve(call, 1, g, &z))
        return false;
    DType type = sc_type_of(g->dtype);
    int64_t dims[RESIZE_RANK];
    memcpy(dims, g->shape, sizeof *dims * (size_t)z.rank);
    for (int j = z.sides - 1; j >= 0; j--) {
        dims[z.axis[j]] = z.in[j];
        Table t = make_table(plan, &z, j, type);
        Tensor *to = j == 0 && out[0]->dtype == type ? out[0] : plan_temp(plan, type, z.rank, dims);
        resample_add(plan, &z, &t, z.axis[j], to, g);
        g = to;
    }
    if (g != out[0])
        plan_copy(plan, out[0], g);
    return true;
}

#define CHOICES_ANY                                                                                \
    "layout: +NCHW +NCW +NCDHW; method: nearest_neighbor linear cubic bilinear bicubic "           \
    "trilinear; " MODES "; rounding_method: round floor ceil round_prefer_floor "                  \
    "round_prefer_ceil -"
#define PAIR(symbol, op_name, op_args, rel, kind, op_lower, text, shown, value)                    \
    static const RelDef rel_##symbol = {rel, relate_pair, 3, false};                               \
    const Op op_##symbol = {                                                                       \
        .name = op_name,                                                                           \
        .args = op_args,                                                                           \
        .nargs = 2,                                                                                \
        .attrs = how_attrs,                                                                        \
        .nattrs = NHOW,                                                                            \
        .choices = CHOICES_ANY,                                                                    \
        .relation = &rel_##symbol,                                                                 \
        .dtypes = DTS_FLOAT,                                                                       \
        .pattern = OP_OPAQUE,                                                                      \
        .variant = kind,                                                                           \
        .shape = shape_pair,                                                                       \
        .refuses_sizes = true,                                                                     \
        .lower = op_lower,                                                                         \
        .doc = text,                                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = "image.resize2d",                                                              \
    };
PAIR(image_resize_grad, "image.resize_grad", "grad, data", "ResizeGrad", GRAD, lower_grad,
     "The derivative of a resize of one to three dimensions by data, of which only the shape\n"
     "matters.",
     "image.resize_grad([[[1.0, 1.0, 1.0, 1.0]]], [[[0.0, 0.0]]], layout=\"NCW\")",
     "[[[2.0, 2.0]]] : Tensor[(1, 1, 2), float32]")
PAIR(image_resize_like, "image.resize_like", "data, like", "ResizeLike", LIKE, lower_like,
     "data with the sides of another tensor, of which only these matter, and 0 outside of data.",
     "image.resize_like([[[1.0, 2.0]]], [[[0.0, 0.0, 0.0, 0.0]]], layout=\"NCW\")",
     "[[[ 1.0, 1.25, 1.75,  2.0]]] : Tensor[(1, 1, 4), float32]")
