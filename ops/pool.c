/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: see ops/pool.h. Their derivatives are in ops/pool_grad.c. */
#include "ops/pool.h"

#include <string.h>

#include "base/mem.h"
#include "ops/packed.h"

/* ---- attributes and sizes -------------------------------------------------------------------- */

/* How many adaptive windows each side has; -1: as many as places. */
static bool read_output_size(const Attrs *attrs, Pool *p) {
    int64_t list[WINDOW_SIDES];
    const AttrValue *given = attrs_find(attrs, "output_size");
    int n = given ? attr_int_list(attrs, "output_size", list, WINDOW_SIDES) : 0;
    bool global = !given && attrs->op->variant & POOL_GLOBAL;
    if (n != 0 && n != 1 && n != p->w.sides)
        return false;
    for (int j = 0; j < p->w.sides; j++) {
        p->count[j] = global ? 1 : n == 0 ? -1 : list[n == 1 ? 0 : j];
        if (n && p->count[j] < 0)
            return false;
        p->w.before[j] = p->w.after[j] = 0;
        p->w.dilation[j] = 1;
    }
    return true;
}

static const char *read_pool(const Attrs *attrs, Pool *p) {
    int place[POOL_RANK];
    const char *layout = attrs_text(attrs, "layout"), *out = attrs_text(attrs, "out_layout");
    *p = (Pool){.rank = (int)strlen(layout)};
    p->w.sides = p->rank - 2;
    layout_read(layout, layout_letters("NC", p->w.sides), place);
    memcpy(p->axis, place + 2, sizeof *place * (size_t)p->w.sides);
    if (*out && strcmp(out, layout))
        return "out_layout must be that of data";
    const AttrValue *size = attrs_find(attrs, "pool_size");
    p->adaptive = !size || size->kind == ATTR_NONE;
    if (p->adaptive)
        return read_output_size(attrs, p) ? NULL : "output_size is one number a side from 0";
    if (!window_list(attrs, "pool_size", p->w.sides, 1, p->w.kernel))
        return p->w.sides == 1   ? "pool_size is one number from 1"
               : p->w.sides == 2 ? "pool_size is one or two numbers from 1"
                                 : "pool_size is one or three numbers from 1";
    const AttrValue *include = attrs_find(attrs, "count_include_pad");
    p->ceil_mode = attrs_bool(attrs, "ceil_mode");
    p->include_pad = include && include->i;
    return window_attrs(attrs, &p->w);
}

static bool resolve_adaptive(const OpCall *call, Pool *p) {
    bool even = true;
    for (int j = 0; j < p->w.sides; j++) {
        if (p->count[j] < 0)
            p->count[j] = p->size[j];
        if (p->size[j] == 0 && p->count[j] > 0) {
            shape_error(call, DIAG_R0318, "axis %d has no elements", p->axis[j]);
            return false;
        }
        even &= p->count[j] > 0 && p->size[j] % p->count[j] == 0;
    }
    p->adaptive = !even;
    for (int j = 0; j < p->w.sides; j++) {
        int64_t each = p->count[j] ? p->size[j] / p->count[j] : 0;
        p->w.kernel[j] = p->w.stride[j] = even ? each : each + 2;
    }
    return true;
}

bool pool_resolve(const OpCall *call, int arg, Pool *p) {
    const Tensor *x = call->in[arg];
    const char *problem = read_pool(call->attrs, p);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return false;
    }
    if (!shape_check_dtype(call, arg, DTS_NUM) || !shape_check_rank(call, arg, p->rank))
        return false;
    for (int j = 0; j < p->w.sides; j++)
        p->size[j] = x->shape[p->axis[j]];
    if (p->adaptive)
        return resolve_adaptive(call, p);
    for (int j = 0; j < p->w.sides; j++) {
        p->count[j] = window_count(&p->w, j, p->size[j], p->ceil_mode);
        if (p->count[j] < 0) {
            shape_error(call, DIAG_R0316, "a window of %s %lld does not fit axis %d of size %lld",
                        side_name(p->w.sides, j), (long long)p->w.kernel[j], p->axis[j],
                        (long long)p->size[j]);
            return false;
        }
    }
    return true;
}

void pool_out_shape(const Pool *p, const Tensor *x, int64_t *dims) {
    memcpy(dims, x->shape, sizeof *dims * (size_t)p->rank);
    for (int j = 0; j < p->w.sides; j++)
        dims[p->axis[j]] = p->count[j];
}

static int shape_pool(const OpCall *call, OutSpec *out) {
    if (packed_is(call->attrs))
        return packed_shape(call, out, "L>P");
    Pool p;
    int64_t dims[POOL_RANK];
    if (!pool_resolve(call, 0, &p))
        return -1;
    pool_out_shape(&p, call->in[0], dims);
    return shape_set(call, out, call->in[0]->dtype, p.rank, dims) ? 1 : -1;
}

RelStatus pool_relate(Solver *s, Relation *r) {
    if (!rel_attrs_open(r) && packed_is(r->attrs))
        return packed_relate(s, r, r->nargs == 2 ? "L>P" : "LL>P");
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status)) /* two of nn.max_pool_pick */
        return status;
    Pool p;
    WindowDims w;
    uint32_t rank;
    Type **dims;
    const char *problem = read_pool(attrs_with_unit_sizes(r->attrs), &p);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    if (!window_make_ranks(s, r, 1, p.rank))
        return REL_FAIL;
    rel_rank_in(r->args[0], &rank, &dims);
    Type **out = rel_copy_dims(rank, dims, 0);
    bool global = p.adaptive && !attrs_find(r->attrs, "output_size");
    if (!p.adaptive)
        window_dims(r, p.w.sides, &w);
    for (int j = 0; j < p.w.sides; j++) {
        Type **to = &out[p.axis[j]];
        if (!p.adaptive) {
            w.kernel[j] = rel_attr_item(r, "pool_size", j);
            *to = window_count_dim(r, &w, j, dims[p.axis[j]], p.ceil_mode);
        } else if (p.count[j] >= 0) {
            *to = global ? rel_int_dim(r, 1) : rel_attr_item(r, "output_size", j);
        }
    }
    return rel_result(s, r, out, rank, rel_dtype_in(r->args[0])) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* ---- the window of a place in the result ------------------------------------------------------
 */

void pool_strides(const Pool *p, const Tensor *x, int64_t *strides, int64_t *offset) {
    memcpy(strides, x->strides, sizeof *strides * (size_t)p->rank);
    *offset = 0;
    for (int j = 0; j < p->w.sides; j++) {
        int64_t s = x->strides[p->axis[j]];
        strides[p->axis[j]] = p->adaptive ? 0 : p->w.stride[j] * s;
        strides[p->rank + j] = p->w.dilation[j] * s;
        *offset -= p->w.before[j] * s;
    }
}

PoolPlace pool_place(StepBuilder *s, const Pool *p) {
    ScalarBuilder *b = &s->body;
    PoolPlace at;
    for (int j = 0; j < p->w.sides; j++) {
        Sc i = sc_iota(b, p->axis[j]), size = step_iparam(s, b, DT_I64, p->size[j]);
        if (p->adaptive) { /* from floor(i size / n) to ceil((i + 1) size / n) */
            Sc one = sc_i64(b, 1), n = step_iparam(s, b, DT_I64, p->count[j] ? p->count[j] : 1);
            Sc end = sc_add(b, sc_mul(b, sc_add(b, i, one), size), sc_sub(b, n, one));
            at.start[j] = sc_div(b, sc_mul(b, i, size), n);
            at.bound[j] = sc_sub(b, sc_div(b, end, n), at.start[j]);
        } else {
            at.start[j] = sc_sub(b, sc_mul(b, i, step_iparam(s, b, DT_I64, p->w.stride[j])),
                                 step_iparam(s, b, DT_I64, p->w.before[j]));
            at.bound[j] = size;
            at.dilation[j] = step_iparam(s, b, DT_I64, p->w.dilation[j]);
        }
    }
    return at;
}

Sc pool_inside(StepBuilder *s, const Pool *p, const PoolPlace *at, int j, Sc in_window) {
    ScalarBuilder *b = &s->body;
    if (p->adaptive)
        return sc_lt(b, in_window, at->bound[j]);
    Sc place = sc_add(b, at->start[j], sc_mul(b, in_window, at->dilation[j]));
    return sc_in_range(b, place, at->bound[j]);
}

Sc pool_inside_all(StepBuilder *s, const Pool *p, const PoolPlace *at) {
    Sc all = pool_inside(s, p, at, 0, sc_iota(&s->body, p->rank));
    for (int j = 1; j < p->w.sides; j++)
        all = sc_and(&s->body, all, pool_inside(s, p, at, j, sc_iota(&s->body, p->rank + j)));
    return all;
}

Sc pool_skip(StepBuilder *s, const Pool *p, const PoolPlace *at, const Tensor *x) {
    ScalarBuilder *b = &s->body;
    Sc skip = sc_i64(b, 0);
    for (int j = 0; p->adaptive && j < p->w.sides; j++) {
        Sc stride = step_iparam(s, b, DT_I64, x->strides[p->axis[j]]);
        skip = sc_add(b, skip, sc_mul(b, at->start[j], stride));
    }
    return skip;
}

/* Not every place of every window is one of x: windows differ in size, there is padding, or a last window
 * hangs over the edge. */
static bool reaches_out(const Pool *p) {
    for (int j = 0; j < p->w.sides; j++) {
        int64_t last = (p->count[j] - 1) * p->w.stride[j] + (p->w.kernel[j] - 1) * p->w.dilation[j];
        if (p->adaptive || p->w.before[j] || last >= p->size[j])
            return true;
    }
    return false;
}

static double lowest(DType t) {
    switch (dtype_info[t].cls) {
    case DTC_FLOAT: return -__builtin_inf();
    case DTC_INT: return -(double)(1ull << (dtype_info[t].bits - 1));
    case DTC_UINT:
    case DTC_BOOL: break;
    }
    return 0;
}

void pool_fold(Plan *plan, const Pool *p, Tensor *out, const Tensor *x, Combine combine,
               DType acc) {
    int64_t strides[POOL_RANK + WINDOW_SIDES], offset;
    pool_strides(p, x, strides, &offset);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, p->rank, out->shape);
    step_reduce_over(&s, p->w.sides, p->w.kernel);
    step_combine(&s, combine, acc);
    ScalarBuilder *b = &s.body;
    int in = step_in_strided(&s, x, strides, offset);
    Sc v;
    if (reaches_out(p)) {
        PoolPlace at = pool_place(&s, p);
        Sc inside = pool_inside_all(&s, p, &at);
        v = sc_load_if(b, in, x->dtype, pool_skip(&s, p, &at, x), inside,
                       combine == COMBINE_SUM ? 0 : lowest(sc_type_of(x->dtype)));
    } else {
        v = sc_load(b, in, x->dtype);
    }
    sc_cast(b, v, acc);
    if (combine == COMBINE_ARGMAX)
        sc_acc(&s.epilogue, DT_I64);
    step_out(&s, out);
    step_end(&s);
}

/* How many elements of the window at the current place lie in x, along one side; at least 1 over
 * all is taken by the caller. The first inside is k0 = ceil((before - at) / dilation). */
static Sc inside_count(StepBuilder *s, const Pool *p, const PoolPlace *at, int j) {
    ScalarBuilder *b = &s->body;
    if (p->adaptive)
        return at->bound[j];
    Sc zero = sc_i64(b, 0), one = sc_i64(b, 1), start = at->start[j], d = at->dilation[j];
    Sc last = sc_sub(b, at->bound[j], one), k = step_iparam(s, b, DT_I64, p->w.kernel[j]);
    Sc low = sc_max(b, zero, sc_neg(b, sc_floor_div(b, start, d)));
    Sc high = sc_min(b, k, sc_add(b, sc_floor_div(b, sc_sub(b, last, start), d), one));
    return sc_max(b, zero, sc_sub(b, high, low));
}

void pool_divide(Plan *plan, const Pool *p, Tensor *out, const Tensor *x) {
    DType t = sc_type_of(x->dtype);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, p->rank, out->shape);
    ScalarBuilder *b = &s.body;
    Sc v = sc_load(b, step_in(&s, x), x->dtype), n;
    if (p->include_pad || !reaches_out(p)) {
        int64_t all = 1;
        for (int j = 0; j < p->w.sides; j++)
            all = size_multiply(all, p->w.kernel[j]);
        n = step_iparam(&s, b, DT_I64, all);
    } else {
        PoolPlace at = pool_place(&s, p);
        n = inside_count(&s, p, &at, 0);
        for (int j = 1; j < p->w.sides; j++)
            n = sc_mul(b, n, inside_count(&s, p, &at, j));
        n = sc_max(b, n, sc_i64(b, 1));
    }
    v = sc_div(b, v, sc_cast(b, n, t));
    sc_cast(b, v, sc_type_of(out->dtype));
    step_out(&s, out);
    step_end(&s);
}

/* ---- the operators --------------------------------------------------------------------------- */

static bool lower_pool(const OpCall *call, Tensor *const *out, Plan *plan) {
    if (packed_is(call->attrs))
        return packed_lower(call, out, plan, "L>P");
    const Tensor *x = call->in[0];
    Pool p;
    if (!pool_resolve(call, 0, &p))
        return false;
    if ((call->op->variant & POOL_VALUE) == POOL_MAX) {
        pool_fold(plan, &p, out[0], x, COMBINE_MAX, sc_type_of(x->dtype));
        return true;
    }
    DType acc = reduce_acc_type(x->dtype);
    Tensor *sum = plan_temp(plan, acc, p.rank, out[0]->shape);
    pool_fold(plan, &p, sum, x, COMBINE_SUM, acc);
    pool_divide(plan, &p, out[0], sum);
    return true;
}

static const AttrSpec attrs_1d[] = {POOL_ATTRS(POOL_SIZE, "[1]", "[0]", "NCW")};
const AttrSpec pool_attrs_2d[] = {POOL_ATTRS(POOL_SIZE, "[1, 1]", "[0, 0]", "NCHW")};
static const AttrSpec attrs_3d[] = {POOL_ATTRS(POOL_SIZE, "[1, 1, 1]", "[0, 0, 0]", "NCDHW")};
#define OUTPUT_SIZE                                                                                \
    { "output_size", AT_DIMS, "[]", "how many windows each side has; empty: one a place" }
#define ANY_SIZE                                                                                   \
    { "pool_size", AT_DIMS_OPT, "None", "the sides of the window; None: output_size counts them" }
const AttrSpec pool_attrs_any[] = {POOL_ATTRS(ANY_SIZE, "[1]", "[0]", "NCHW"), OUTPUT_SIZE};
#define ADAPTIVE_ATTRS(order)                                                                      \
    OUTPUT_SIZE, {"layout", AT_STRING, "\"" order "\"", "what data's axes are"}, {                 \
        "out_layout", AT_STRING, "\"\"", "the same"                                                \
    }
static const AttrSpec adaptive_1d[] = {ADAPTIVE_ATTRS("NCW")};
static const AttrSpec adaptive_2d[] = {ADAPTIVE_ATTRS("NCHW")};
static const AttrSpec adaptive_3d[] = {ADAPTIVE_ATTRS("NCDHW")};

#define POOL(symbol, op_name, rel, kind, op_attrs, n, layouts, text, shown, value, see)            \
    static const RelDef rel_##symbol = {rel, pool_relate, 2, false};                               \
    const Op op_##symbol = {                                                                       \
        .name = op_name,                                                                           \
        .args = "data",                                                                            \
        .nargs = 1,                                                                                \
        .attrs = op_attrs,                                                                         \
        .nattrs = n,                                                                               \
        .choices = layouts,                                                                        \
        .relation = &rel_##symbol,                                                                 \
        .dtypes = DTS_NUM,                                                                         \
        .pattern = OP_REDUCE,                                                                      \
        .variant = kind,                                                                           \
        .shape = shape_pool,                                                                       \
        .refuses_sizes = true,                                                                     \
        .lower = lower_pool,                                                                       \
        .doc = text,                                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = see,                                                                           \
    };

POOL(nn_max_pool1d, "nn.max_pool1d", "MaxPool1D", POOL_MAX, attrs_1d, POOL_NMAX,
     POOL_LAYOUTS("+NCW"), "The largest element of each window of data (n, c, w).",
     "nn.max_pool1d([[[1.0, 3.0, 2.0, 0.0]]], pool_size=[2], strides=[2])",
     "[[[3.0, 2.0]]] : Tensor[(1, 1, 2), float32]", "nn.max_pool2d, nn.avg_pool1d")
POOL(nn_max_pool2d, "nn.max_pool2d", "MaxPool2D", POOL_MAX, pool_attrs_2d, POOL_NMAX,
     POOL_LAYOUTS("+NCHW"), "The largest element of each window of data (n, c, h, w).",
     "nn.max_pool2d([[[[1.0, 3.0, 2.0, 0.0]]]], pool_size=[1, 2], strides=[1, 2])",
     "[[[[3.0, 2.0]]]] : Tensor[(1, 1, 1, 2), float32]", "nn.avg_pool2d, nn.global_max_pool2d")
POOL(nn_max_pool3d, "nn.max_pool3d", "MaxPool3D", POOL_MAX, attrs_3d, POOL_NMAX,
     POOL_LAYOUTS("+NCDHW"), "The largest element of each window of data (n, c, d, h, w).",
     "nn.max_pool3d([[[[[1.0, 3.0, 2.0, 0.0]]]]], pool_size=[1, 1, 2], strides=[1, 1, 2])",
     "[[[[[3.0, 2.0]]]]] : Tensor[(1, 1, 1, 1, 2), float32]", "nn.max_pool2d, nn.avg_pool3d")
POOL(nn_avg_pool1d, "nn.avg_pool1d", "AvgPool1D", POOL_AVG, attrs_1d, POOL_NAVG,
     POOL_LAYOUTS("+NCW"),
     "The mean of each window of data (n, c, w), of the elements that are not padding.",
     "nn.avg_pool1d([[[1.0, 3.0, 2.0, 0.0]]], pool_size=[2], strides=[2])",
     "[[[2.0, 1.0]]] : Tensor[(1, 1, 2), float32]", "nn.avg_pool2d, nn.max_pool1d")
POOL(nn_avg_pool2d, "nn.avg_pool2d", "AvgPool2D", POOL_AVG, pool_attrs_2d, POOL_NAVG,
     POOL_LAYOUTS("+NCHW"),
     "The mean of each window of data (n, c, h, w), of the elements that are not padding.",
     "nn.avg_pool2d([[[[1.0, 3.0, 2.0, 0.0]]]], pool_size=[1, 2], strides=[1, 2])",
     "[[[[2.0, 1.0]]]] : Tensor[(1, 1, 1, 2), float32]", "nn.max_pool2d, nn.global_avg_pool2d")
POOL(nn_avg_pool3d, "nn.avg_pool3d", "AvgPool3D", POOL_AVG, attrs_3d, POOL_NAVG,
     POOL_LAYOUTS("+NCDHW"),
     "The mean of each window of data (n, c, d, h, w), of the elements that are not padding.",
     "nn.avg_pool3d([[[[[1.0, 3.0, 2.0, 0.0]]]]], pool_size=[1, 1, 2], strides=[1, 1, 2])",
     "[[[[[2.0, 1.0]]]]] : Tensor[(1, 1, 1, 1, 2), float32]", "nn.avg_pool2d, nn.max_pool3d")

POOL(nn_adaptive_max_pool1d, "nn.adaptive_max_pool1d", "AdaptiveMaxPool1D", POOL_MAX, adaptive_1d,
     3, POOL_LAYOUTS("+NCW"),
     "The largest element of each of output_size windows over data (n, c, w): window i of m over\n"
     "w places is from floor(i w / m) to ceil((i + 1) w / m).",
     "nn.adaptive_max_pool1d([[[1.0, 3.0, 2.0]]], output_size=[2])",
     "[[[3.0, 3.0]]] : Tensor[(1, 1, 2), float32]", "nn.adaptive_avg_pool1d")
POOL(nn_adaptive_max_pool2d, "nn.adaptive_max_pool2d", "AdaptiveMaxPool2D", POOL_MAX, adaptive_2d,
     3, POOL_LAYOUTS("+NCHW"),
     "The largest element of each of output_size windows over data (n, c, h, w).",
     "nn.adaptive_max_pool2d([[[[1.0, 3.0, 2.0]]]], output_size=[1, 2])",
     "[[[[3.0, 3.0]]]] : Tensor[(1, 1, 1, 2), float32]",
     "nn.adaptive_avg_pool2d, nn.global_max_pool2d")
POOL(nn_adaptive_max_pool3d, "nn.adaptive_max_pool3d", "AdaptiveMaxPool3D", POOL_MAX, adaptive_3d,
     3, POOL_LAYOUTS("+NCDHW"),
     "The largest element of each of output_size windows over data (n, c, d, h, w).",
     "nn.adaptive_max_pool3d([[[[[1.0, 3.0, 2.0]]]]], output_size=[1, 1, 2])",
     "[[[[[3.0, 3.0]]]]] : Tensor[(1, 1, 1, 1, 2), float32]", "nn.adaptive_avg_pool3d")
POOL(nn_adaptive_avg_pool1d, "nn.adaptive_avg_pool1d", "AdaptiveAvgPool1D", POOL_AVG, adaptive_1d,
     3, POOL_LAYOUTS("+NCW"),
     "The mean of each of output_size windows over data (n, c, w): window i of m over w places\n"
     "is from floor(i w / m) to ceil((i + 1) w / m).",
     "nn.adaptive_avg_pool1d([[[1.0, 3.0, 2.0]]], output_size=[2])",
     "[[[2.0, 2.5]]] : Tensor[(1, 1, 2), float32]", "nn.adaptive_max_pool1d")
POOL(nn_adaptive_avg_pool2d, "nn.adaptive_avg_pool2d", "AdaptiveAvgPool2D", POOL_AVG, adaptive_2d,
     3, POOL_LAYOUTS("+NCHW"), "The mean of each of output_size windows over data (n, c, h, w).",
     "nn.adaptive_avg_pool2d([[[[1.0, 3.0, 2.0]]]], output_size=[1, 2])",
     "[[[[2.0, 2.5]]]] : Tensor[(1, 1, 1, 2), float32]",
     "nn.adaptive_max_pool2d, nn.global_avg_pool2d")
POOL(nn_adaptive_avg_pool3d, "nn.adaptive_avg_pool3d", "AdaptiveAvgPool3D", POOL_AVG, adaptive_3d,
     3, POOL_LAYOUTS("+NCDHW"),
     "The mean of each of output_size windows over data (n, c, d, h, w).",
     "nn.adaptive_avg_pool3d([[[[[1.0, 3.0, 2.0]]]]], output_size=[1, 1, 2])",
     "[[[[[2.0, 2.5]]]]] : Tensor[(1, 1, 1, 1, 2), float32]", "nn.adaptive_max_pool3d")

POOL(nn_global_avg_pool2d, "nn.global_avg_pool2d", "GlobalAvgPool2D", POOL_AVG | POOL_GLOBAL,
     adaptive_2d + 1, 2, POOL_LAYOUTS("+NCHW"),
     "The mean of each plane: (n, c, h, w) to (n, c, 1, 1).",
     "nn.global_avg_pool2d([[[[1.0, 3.0]]]])", "[[[[2.0]]]] : Tensor[(1, 1, 1, 1), float32]",
     "nn.avg_pool2d, mean")
POOL(nn_global_max_pool2d, "nn.global_max_pool2d", "GlobalMaxPool2D", POOL_MAX | POOL_GLOBAL,
     adaptive_2d + 1, 2, POOL_LAYOUTS("+NCHW"),
     "The largest element of each plane: (n, c, h, w) to (n, c, 1, 1).",
     "nn.global_max_pool2d([[[[1.0, 3.0]]]])", "[[[[3.0]]]] : Tensor[(1, 1, 1, 1), float32]",
     "nn.max_pool2d, max")
/* The derivative of the derivative of an average. */
POOL(nn_avg_pool, "nn.avg_pool", "AvgPool", POOL_AVG, pool_attrs_any, POOL_NANY, POOL_LAYOUTS_ANY,
     "The average pool of one to three dimensions that layout names, with windows of pool_size or\n"
     "output_size of them: what derivatives of average pools are made of.",
     "nn.avg_pool([[[1.0, 3.0, 2.0, 0.0]]], output_size=[2], layout=\"NCW\")",
     "[[[2.0, 1.0]]] : Tensor[(1, 1, 2), float32]", "nn.avg_pool2d, nn.avg_pool_grad")
