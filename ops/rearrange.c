/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that cut axes into blocks and put the parts elsewhere: nn.depth_to_space and nn.space_to_depth,
 * nn.space_to_batch_nd and nn.batch_to_space_nd, nn.dilate, sliding_window. Each is one copy over a domain in
 * which both tensors are read by plain strides, and each undoes another. */
#include <string.h>

#include "base/mem.h"
#include "ops/window.h"

/* A domain in which data and result lie by strides. */
typedef struct Move {
    int n;
    int64_t extents[RECIPE_MAX_AXES], from[RECIPE_MAX_AXES], to[RECIPE_MAX_AXES];
} Move;

static void move_axis(Move *m, int64_t extent, int64_t from, int64_t to) {
    m->extents[m->n] = extent;
    m->from[m->n] = from;
    m->to[m->n++] = to;
}

static void plan_move(Plan *plan, const Move *m, Tensor *out, int64_t to_offset, const Tensor *x,
                      int64_t from_offset) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, m->n, m->extents);
    sc_load(&s.body, step_in_strided(&s, x, m->from, from_offset), x->dtype);
    step_out_strided(&s, out, m->to, to_offset);
    step_end(&s);
}

static void plan_fill(Plan *plan, Tensor *out, double v) {
    if (dtype_is_float(out->dtype))
        plan_fill_float(plan, out, v);
    else
        plan_fill_int(plan, out, (int64_t)v);
}

static RelStatus done(RelStatus status) { return status == REL_FAIL ? REL_FAIL : REL_DONE; }

/* ---- nn.depth_to_space, nn.space_to_depth ------------------------------------------------------ */

enum { TO_SPACE, TO_DEPTH };
enum { N_, C_, H_, W_ };

static int64_t read_depth(const Attrs *attrs, int *place) {
    layout_read(attrs_text(attrs, "layout"), "NCHW", place);
    return attrs_int(attrs, "block_size");
}

static int shape_depth(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int place[4];
    int64_t b = read_depth(call->attrs, place), dims[4];
    if (!shape_check_rank(call, 0, 4))
        return -1;
    memcpy(dims, x->shape, sizeof dims);
    int64_t *c = &dims[place[C_]], *h = &dims[place[H_]], *w = &dims[place[W_]];
    bool deep = call->op->variant == TO_DEPTH;
    if (b < 1 || b > INT16_MAX || (deep ? *h % b || *w % b : *c % (b * b))) {
        shape_error(call, DIAG_R0316, "block_size=%lld does not divide shape %s", (long long)b,
                    shape_text(4, x->shape));
        return -1;
    }
    *c = deep ? size_multiply(*c, b * b) : *c / (b * b);
    *h = deep ? *h / b : size_multiply(*h, b);
    *w = deep ? *w / b : size_multiply(*w, b);
    return shape_set(call, out, x->dtype, 4, dims) ? 1 : -1;
}

static RelStatus relate_depth(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    int place[4];
    uint32_t rank;
    Type **dims;
    int64_t b = read_depth(attrs_with_unit_sizes(r->attrs), place);
    if (b < 1 || b > INT16_MAX) {
        rel_error(s, r, DIAG_R0316, "`%s`: block_size is a number from 1", r->op->name);
        return REL_FAIL;
    }
    if (!window_make_ranks(s, r, 1, 4))
        return REL_FAIL;
    rel_rank_in(r->args[0], &rank, &dims);
    Type **out = rel_copy_dims(4, dims, 0), *one = rel_attr_item(r, "block_size", 0),
         *two = dim_mul(one, one);
    bool deep = r->op->variant == TO_DEPTH;
    out[place[C_]] = deep ? dim_mul(dims[place[C_]], two) : dim_floordiv(dims[place[C_]], two);
    for (int k = H_; k <= W_; k++)
        out[place[k]] = deep ? dim_floordiv(dims[place[k]], one) : dim_mul(dims[place[k]], one);
    return done(rel_result(s, r, out, 4, rel_dtype_in(r->args[0])));
}

/* The channels of the deep tensor are blocks of those of the wide one ("DCR"), or each of them has its block
 * ("CRD"). */
static bool lower_depth(const OpCall *call, Tensor *const *out, Plan *plan) {
    bool deep = call->op->variant == TO_DEPTH;
    const Tensor *x = call->in[0], *thick = deep ? out[0] : x, *wide = deep ? x : out[0];
    int place[4];
    int64_t b = read_depth(call->attrs, place), c = wide->shape[place[C_]];
    bool blocks = strcmp(attrs_text(call->attrs, "mode"), "DCR") == 0;
    int64_t sc = thick->strides[place[C_]], block = blocks ? c * sc : sc;
    int64_t h = wide->strides[place[H_]], w = wide->strides[place[W_]];
    Move m = {0};
    move_axis(&m, wide->shape[place[N_]], thick->strides[place[N_]], wide->strides[place[N_]]);
    move_axis(&m, c, blocks ? sc : b * b * sc, wide->strides[place[C_]]);
    move_axis(&m, thick->shape[place[H_]], thick->strides[place[H_]], b * h);
    move_axis(&m, b, b * block, h);
    move_axis(&m, thick->shape[place[W_]], thick->strides[place[W_]], b * w);
    move_axis(&m, b, block, w);
    for (int i = 0; i < m.n && deep; i++) {
        int64_t t = m.from[i];
        m.from[i] = m.to[i];
        m.to[i] = t;
    }
    plan_move(plan, &m, out[0], 0, x, 0);
    return true;
}

static const AttrSpec depth_attrs[] = {
    {"block_size", AT_DIM, "1", "the sides of the square that becomes channels, or comes of them"},
    {"layout", AT_STRING, "\"NCHW\"", "what data's axes are"},
    {"mode", AT_STRING, "\"DCR\"",
     "\"DCR\": the places of a block come before the channels; \"CRD\": behind them"},
};
#define DEPTH(symbol, op_name, rel, kind, text, shown, value, see)                                 \
    static const RelDef rel_##symbol = {rel, relate_depth, 2, false};                              \
    const Op op_##symbol = {                                                                       \
        .name = op_name,                                                                           \
        .args = "data",                                                                            \
        .nargs = 1,                                                                                \
        .attrs = depth_attrs,                                                                      \
        .nattrs = 3,                                                                               \
        .choices = "layout: *NCHW; mode: DCR CRD",                                                 \
        .relation = &rel_##symbol,                                                                 \
        .dtypes = DTS_ALL,                                                                         \
        .pattern = OP_INJECTIVE,                                                                   \
        .variant = kind,                                                                           \
        .shape = shape_depth,                                                                      \
        .refuses_sizes = true,                                                                     \
        .lower = lower_depth,                                                                      \
        .doc = text,                                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = see,                                                                           \
    };
DEPTH(nn_depth_to_space, "nn.depth_to_space", "DepthToSpace", TO_SPACE,
      "Channels become squares of places: (n, c, h, w) to (n, c / b / b, h * b, w * b).",
      "nn.depth_to_space([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]], block_size=2)",
      "[[[[1.0, 2.0],\n   [3.0, 4.0]]]] : Tensor[(1, 1, 2, 2), float32]", "nn.space_to_depth")
DEPTH(nn_space_to_depth, "nn.space_to_depth", "SpaceToDepth", TO_DEPTH,
      "Squares of places become channels: (n, c, h, w) to (n, c * b * b, h / b, w / b).",
      "nn.space_to_depth([[[[1.0, 2.0], [3.0, 4.0]]]], block_size=2)",
      "[[[[1.0]],\n  [[2.0]],\n  [[3.0]],\n  [[4.0]]]] : Tensor[(1, 4, 1, 1), float32]",
      "nn.depth_to_space")

/* ---- nn.space_to_batch_nd, nn.batch_to_space_nd ------------------------------------------------ */

enum { TO_BATCH, FROM_BATCH };

typedef struct Blocks {
    int n; /* how many axes behind the first are cut */
    int64_t size[TENSOR_MAX_RANK], before[TENSOR_MAX_RANK], after[TENSOR_MAX_RANK], all;
} Blocks;

static const char *read_blocks(const Op *op, const Attrs *attrs, Blocks *b) {
    const AttrValue *pairs = attrs_get(attrs, op->variant == TO_BATCH ? "paddings" : "crops");
    b->n = attr_int_list(attrs, "block_shape", b->size, TENSOR_MAX_RANK);
    b->all = 1;
    bool fits = b->n >= 0 && pairs->kind == ATTR_LIST && (int)pairs->list.n == b->n;
    for (int i = 0; i < b->n && fits; i++) {
        const AttrValue *pair = &pairs->list.items[i];
        fits = pair->kind == ATTR_LIST && pair->list.n == 2 && b->size[i] >= 1;
        for (int k = 0; k < 2 && fits; k++)
            fits = pair->list.items[k].kind == ATTR_INT && pair->list.items[k].i >= 0 &&
                   pair->list.items[k].i <= WINDOW_MOST;
        if (!fits)
            break;
        b->before[i] = pair->list.items[0].i;
        b->after[i] = pair->list.items[1].i;
        b->all = size_multiply(b->all, b->size[i]);
    }
    return fits ? NULL : "block_shape has numbers from 1, and for each there is a pair from 0";
}

static int shape_blocks(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int64_t dims[TENSOR_MAX_RANK];
    Blocks b;
    const char *problem = read_blocks(call->op, call->attrs, &b);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return -1;
    }
    if (!shape_check_dtype(call, 0, DTS_NUM) || !shape_check_min_rank(call, 0, 1 + b.n))
        return -1;
    if (x->rank + b.n > RECIPE_MAX_AXES) {
        shape_error(call, DIAG_R0316, "`data` has too many axes");
        return -1;
    }
    memcpy(dims, x->shape, sizeof *dims * (size_t)x->rank);
    bool gather = call->op->variant == TO_BATCH, whole = gather || x->shape[0] % b.all == 0;
    dims[0] = gather ? size_multiply(x->shape[0], b.all) : x->shape[0] / b.all;
    for (int i = 0; i < b.n; i++) {
        int64_t d = x->shape[1 + i], rest = b.before[i] + b.after[i];
        dims[1 + i] = gather ? (d + rest) / b.size[i] : size_multiply(d, b.size[i]) - rest;
        whole &= gather ? (d + rest) % b.size[i] == 0 : dims[1 + i] >= 0;
    }
    if (!whole) {
        shape_error(call, DIAG_R0316, "blocks of %s do not fit shape %s", shape_text(b.n, b.size),
                    shape_text(x->rank, x->shape));
        return -1;
    }
    return shape_set(call, out, x->dtype, x->rank, dims) ? 1 : -1;
}

static RelStatus relate_blocks(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM}, &status))
        return status;
    uint32_t rank;
    Type **dims;
    Blocks b;
    const char *problem = read_blocks(r->op, attrs_with_unit_sizes(r->attrs), &b);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    if ((int)rank < 1 + b.n) {
        rel_error(s, r, DIAG_R0313, "`%s`: `data` has %u axes, at least %d are needed", r->op->name,
                  rank, 1 + b.n);
        return REL_FAIL;
    }
    Type **out = rel_copy_dims(rank, dims, 0), *all = rel_int_dim(r, 1);
    bool gather = r->op->variant == TO_BATCH;
    const AttrValue *pairs = attrs_get(r->attrs, gather ? "paddings" : "crops");
    for (int i = 0; i < b.n; i++) {
        const AttrValue *pair = pairs->list.items[i].list.items;
        Type *size = rel_attr_item(r, "block_shape", i), *d = dims[1 + i];
        Type *rest = dim_add(rel_attr_dim(&pair[0]), rel_attr_dim(&pair[1]));
        all = dim_mul(all, size);
        out[1 + i] = gather ? dim_floordiv(dim_add(d, rest), size)
                            : dim_sub(dim_mul(d, size), rest);
    }
    out[0] = gather ? dim_mul(dims[0], all) : dim_floordiv(dims[0], all);
    return done(rel_result(s, r, out, rank, rel_dtype_in(r->args[0])));
}

/* The wide tensor, with its padding or what is cropped, has the places of block after block; the other one has
 * all first places of blocks in its first elements of the batch, then all second ones. */
static bool lower_blocks(const OpCall *call, Tensor *const *out, Plan *plan) {
    bool gather = call->op->variant == TO_BATCH;
    const Tensor *x = call->in[0];
    Blocks b;
    if (read_blocks(call->op, call->attrs, &b))
        return false;
    const Tensor *narrow = gather ? out[0] : x, *end = gather ? x : out[0];
    int64_t shape[TENSOR_MAX_RANK], offset = 0;
    bool any = false;
    memcpy(shape, end->shape, sizeof *shape * (size_t)x->rank);
    for (int i = 0; i < b.n; i++) {
        shape[1 + i] += b.before[i] + b.after[i];
        any |= b.before[i] || b.after[i];
    }
    Tensor *wide = any ? plan_temp(plan, x->dtype, x->rank, shape) : (Tensor *)(uintptr_t)end;
    for (int i = 0; i < b.n; i++)
        offset += b.before[i] * wide->strides[1 + i];
    if (any && gather) {
        plan_fill(plan, wide, attrs_float(call->attrs, "pad_value"));
        plan_place_strided(plan, wide, wide->strides, offset, x);
    }
    Move m = {0};
    int64_t batch = shape[0] * narrow->strides[0];
    move_axis(&m, shape[0], wide->strides[0], narrow->strides[0]);
    for (int i = x->rank - 1; i > 0; i--) {
        int64_t size = i <= b.n ? b.size[i - 1] : 1;
        move_axis(&m, narrow->shape[i], size * wide->strides[i], narrow->strides[i]);
        if (i > b.n)
            continue;
        move_axis(&m, size, wide->strides[i], batch);
        batch *= size;
    }
    for (int i = 0; i < m.n && !gather; i++) {
        int64_t t = m.from[i];
        m.from[i] = m.to[i];
        m.to[i] = t;
    }
    plan_move(plan, &m, gather ? out[0] : wide, 0, gather ? wide : x, 0);
    if (any && !gather)
        plan_gather_strided(plan, out[0], wide, wide->strides, offset);
    return true;
}

#define BLOCK_SHAPE                                                                                \
    { "block_shape", AT_DIMS, "[1, 1]", "the sides of the blocks, of the axes behind the first" }
static const AttrSpec to_batch_attrs[] = {
    BLOCK_SHAPE,
    {"paddings", AT_DIM_LISTS, NULL, "how many places are added before and behind each axis"},
    {"pad_value", AT_FLOAT, "0.0", "what stands there"},
};
static const AttrSpec from_batch_attrs[] = {
    BLOCK_SHAPE,
    {"crops", AT_DIM_LISTS, NULL, "how many places are taken off before and behind each axis"},
};
#define BATCH(symbol, op_name, rel, kind, op_attrs, n, text, shown, value, see)                    \
    static const RelDef rel_##symbol = {rel, relate_blocks, 2, false};                             \
    const Op op_##symbol = {                                                                       \
        .name = op_name,                                                                           \
        .args = "data",                                                                            \
        .nargs = 1,                                                                                \
        .attrs = op_attrs,                                                                         \
        .nattrs = n,                                                                               \
        .relation = &rel_##symbol,                                                                 \
        .dtypes = DTS_NUM,                                                                         \
        .pattern = OP_INJECTIVE,                                                                   \
        .variant = kind,                                                                           \
        .shape = shape_blocks,                                                                     \
        .refuses_sizes = true,                                                                     \
        .lower = lower_blocks,                                                                     \
        .doc = text,                                                                               \
        .example = shown,                                                                          \
        .example_result = value,                                                                   \
        .see_also = see,                                                                           \
    };
BATCH(
    nn_space_to_batch_nd, "nn.space_to_batch_nd", "SpaceToBatchND", TO_BATCH, to_batch_attrs, 3,
    "Places of blocks become elements of the batch (axis 0): all first places of blocks, then all\n"
    "second ones.",
    "nn.space_to_batch_nd([[1.0, 2.0, 3.0]], block_shape=[2], paddings=[[0, 1]])",
    "[[1.0, 3.0],\n [2.0, 0.0]] : Tensor[(2, 2), float32]", "nn.batch_to_space_nd")
BATCH(nn_batch_to_space_nd, "nn.batch_to_space_nd", "BatchToSpaceND", FROM_BATCH, from_batch_attrs,
      2, "What nn.space_to_batch_nd did, undone: crops are its paddings.",
      "nn.batch_to_space_nd([[1.0, 3.0], [2.0, 0.0]], block_shape=[2], crops=[[0, 1]])",
      "[[1.0, 2.0, 3.0]] : Tensor[(1, 3), float32]", "nn.space_to_batch_nd")

/* ---- nn.dilate --------------------------------------------------------------------------------- */

static int shape_dilate(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int64_t steps[TENSOR_MAX_RANK], dims[TENSOR_MAX_RANK];
    int n = attr_int_list(call->attrs, "strides", steps, TENSOR_MAX_RANK);
    if (!shape_check_dtype(call, 0, DTS_NUM))
        return -1;
    if (n != x->rank) {
        shape_error(call, DIAG_R0316, "strides has a number for each axis");
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (steps[i] < 1) {
            shape_error(call, DIAG_R0316, "strides are at least 1");
            return -1;
        }
        if (steps[i] > WINDOW_MOST) {
            shape_error(call, DIAG_R0316, "strides are at most %d", WINDOW_MOST);
            return -1;
        }
        dims[i] = x->shape[i] ? size_multiply(x->shape[i] - 1, steps[i]) + 1 : 0;
    }
    return shape_set(call, out, x->dtype, n, dims) ? 1 : -1;
}

static RelStatus relate_dilate(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM}, &status))
        return status;
    uint32_t rank;
    Type **dims;
    int64_t steps[TENSOR_MAX_RANK];
    int n = attr_int_list(attrs_with_unit_sizes(r->attrs), "strides", steps, TENSOR_MAX_RANK);
    if (n >= 0 && !rel_make_rank(s, r, 0, (uint32_t)n))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims) || (int)rank != n) {
        rel_error(s, r, DIAG_R0316, "`%s`: strides has a number for each axis", r->op->name);
        return REL_FAIL;
    }
    Type **out = rel_copy_dims(rank, dims, 0), *none = rel_int_dim(r, 0);
    for (uint32_t i = 0; i < rank; i++) {
        if (steps[i] < 1) {
            rel_error(s, r, DIAG_R0316, "`%s`: strides are at least 1", r->op->name);
            return REL_FAIL;
        }
        int64_t step;
        Type *by = rel_attr_item(r, "strides", (int)i),
             *last = dim_mul(dim_add_int(dims[i], -1), by);
        if (!type_get_int(by, &step) || step > 1)
            out[i] = dim_max(none, dim_add_int(last, 1));
    }
    return done(rel_result(s, r, out, rank, rel_dtype_in(r->args[0])));
}

static bool lower_dilate(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    int64_t steps[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    attr_int_list(call->attrs, "strides", steps, TENSOR_MAX_RANK);
    for (int i = 0; i < x->rank; i++)
        strides[i] = steps[i] * out[0]->strides[i];
    plan_fill(plan, out[0], attrs_float(call->attrs, "dilation_value"));
    plan_place_strided(plan, out[0], strides, 0, x);
    return true;
}

static const AttrSpec dilate_attrs[] = {
    {"strides", AT_DIMS, "[1, 1]", "how far apart neighbours come to stand on each axis"},
    {"dilation_value", AT_FLOAT, "0.0", "what stands between them"},
};
static const RelDef rel_dilate = {"Dilate", relate_dilate, 2, false};
const Op op_nn_dilate = {
    .name = "nn.dilate",
    .args = "x",
    .nargs = 1,
    .attrs = dilate_attrs,
    .nattrs = 2,
    .relation = &rel_dilate,
    .dtypes = DTS_NUM,
    .pattern = OP_INJECTIVE,
    .shape = shape_dilate,
    .resizes = true,
    .refuses_sizes = true,
    .lower = lower_dilate,
    .doc = "x with other elements between its own: an axis of n has (n - 1) * stride + 1.",
    .example = "nn.dilate([1.0, 2.0, 3.0], strides=[2])",
    .example_result = "[1.0, 0.0, 2.0, 0.0, 3.0] : Tensor[(5,), float32]",
    .see_also = "nn.pad, strided_slice",
};

/* ---- sliding_window ---------------------------------------------------------------------------- */

/* Windows over the axes from `axis` on; the result has the axes before, one for the windows of each, and
 * those of the window. */
typedef struct Slide {
    int rank, axis, n;
    int64_t window[TENSOR_MAX_RANK], step[TENSOR_MAX_RANK];
} Slide;

static const char *read_slide(const Attrs *attrs, int rank, Slide *w) {
    int64_t axis = attrs_int(attrs, "axis");
    w->rank = rank;
    w->n = attr_int_list(attrs, "window_shape", w->window, TENSOR_MAX_RANK);
    if (w->n < 1 || attr_int_list(attrs, "strides", w->step, TENSOR_MAX_RANK) != w->n)
        return "window_shape and strides have a number for each axis from `axis` on";
    axis = axis < 0 ? axis + rank : axis;
    w->axis = (int)axis;
    if (axis < 0 || axis + w->n != rank)
        return "window_shape and strides have a number for each axis from `axis` on";
    for (int i = 0; i < w->n; i++)
        if (w->window[i] < 1 || w->step[i] < 1)
            return "window_shape and strides are at least 1";
    return rank + w->n > TENSOR_MAX_RANK ? "`data` has too many axes" : NULL;
}

static bool slide_shape(const OpCall *call, int arg, Slide *w, int64_t *dims) {
    const Tensor *x = call->in[arg];
    const char *problem = read_slide(call->attrs, x->rank, w);
    for (int i = 0; i < w->n && !problem; i++)
        if (x->shape[w->axis + i] < w->window[i])
            problem = fmt_text("a window of %lld does not fit axis %d of size %lld",
                               (long long)w->window[i], w->axis + i,
                               (long long)x->shape[w->axis + i]);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return false;
    }
    memcpy(dims, x->shape, sizeof *dims * (size_t)x->rank);
    for (int i = 0; i < w->n; i++) {
        dims[w->axis + i] = (x->shape[w->axis + i] - w->window[i]) / w->step[i] + 1;
        dims[x->rank + i] = w->window[i];
    }
    return true;
}

static int shape_slide(const OpCall *call, OutSpec *out) {
    Slide w;
    int64_t dims[2 * TENSOR_MAX_RANK];
    if (!slide_shape(call, 0, &w, dims))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, w.rank + w.n, dims) ? 1 : -1;
}

static RelStatus relate_slide(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank;
    Type **dims;
    Slide w;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    const char *problem = read_slide(attrs_with_unit_sizes(r->attrs), (int)rank, &w);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    Type **out = rel_copy_dims(rank, dims, (uint32_t)w.n);
    for (int i = 0; i < w.n; i++) {
        Type *window = rel_attr_item(r, "window_shape", i);
        Type *room = dim_sub(dims[w.axis + i], window);
        out[w.axis + i] = dim_add_int(dim_floordiv(room, rel_attr_item(r, "strides", i)), 1);
        out[rank + (uint32_t)i] = window;
    }
    return done(rel_result(s, r, out, rank + (uint32_t)w.n, rel_dtype_in(r->args[0])));
}

static void slide_strides(const Slide *w, const Tensor *x, int64_t *strides) {
    memcpy(strides, x->strides, sizeof *strides * (size_t)w->rank);
    for (int i = 0; i < w->n; i++) {
        strides[w->axis + i] = w->step[i] * x->strides[w->axis + i];
        strides[w->rank + i] = x->strides[w->axis + i];
    }
}

static bool lower_slide(const OpCall *call, Tensor *const *out, Plan *plan) {
    Slide w;
    int64_t dims[2 * TENSOR_MAX_RANK], strides[2 * TENSOR_MAX_RANK];
    if (!slide_shape(call, 0, &w, dims))
        return false;
    slide_strides(&w, call->in[0], strides);
    plan_gather_strided(plan, out[0], call->in[0], strides, 0);
    return true;
}

static const AttrSpec slide_attrs[] = {
    {"axis", AT_INT, NULL, "the first axis that windows slide over; all behind it are too"},
    {"window_shape", AT_DIMS, NULL, "the sides of the window"},
    {"strides", AT_DIMS, NULL, "its steps"},
};
static const RelDef rel_slide = {"SlidingWindow", relate_slide, 2, false};
const Op op_sliding_window = {
    .name = "sliding_window",
    .args = "data",
    .nargs = 1,
    .attrs = slide_attrs,
    .nattrs = 3,
    .relation = &rel_slide,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_slide,
    .refuses_sizes = true,
    .lower = lower_slide,
    .doc = "The windows over the axes from `axis` on: the axes before it, then one for the windows "
           "of\n"
           "each axis, then those of the window.",
    .example = "sliding_window([1.0, 2.0, 3.0], axis=0, window_shape=[2], strides=[1])",
    .example_result = "[[1.0, 2.0],\n [2.0, 3.0]] : Tensor[(2, 2), float32]",
    .see_also = "nn.max_pool2d, strided_slice",
};

/* (windows, data): data's shape. */
static int shape_slide_add(const OpCall *call, OutSpec *out) {
    const Tensor *g = call->in[0], *x = call->in[1];
    Slide w;
    int64_t dims[2 * TENSOR_MAX_RANK];
    if (!shape_check_dtype(call, 0, DTS_NUM) || !slide_shape(call, 1, &w, dims))
        return -1;
    if (g->rank != w.rank + w.n || memcmp(g->shape, dims, sizeof *dims * (size_t)g->rank)) {
        shape_error(call, DIAG_R0314, "`windows` has shape %s, those of `data` %s",
                    shape_text(g->rank, g->shape), shape_text(w.rank + w.n, dims));
        return -1;
    }
    return shape_set(call, out, g->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_slide_add(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_ALL}, &status))
        return status;
    uint32_t rank, own;
    Type **dims, *t = type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0]));
    Slide w;
    if (rel_result_type(s, r, t) == REL_FAIL)
        return REL_FAIL;
    if (!rel_rank_in(r->args[1], &rank, &dims))
        return REL_WAIT;
    const char *problem = read_slide(attrs_with_unit_sizes(r->attrs), (int)rank, &w);
    if (!problem && rel_rank_in(r->args[0], &own, &dims) && own != rank + (uint32_t)w.n)
        problem = "`windows` has not the axes of windows of `data`";
    if (problem)
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
    return problem ? REL_FAIL : REL_DONE;
}

static bool lower_slide_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *g = call->in[0];
    Slide w;
    int64_t dims[2 * TENSOR_MAX_RANK], strides[2 * TENSOR_MAX_RANK];
    if (!slide_shape(call, 1, &w, dims))
        return false;
    slide_strides(&w, out[0], strides);
    plan_fill_int(plan, out[0], 0);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, g->rank, g->shape);
    step_combine(&s, COMBINE_SUM, sc_type_of(g->dtype));
    Sc v = sc_load(&s.body, step_in(&s, g), g->dtype);
    step_result(&s, v);
    step_result(&s, sc_i64(&s.body, 0));
    step_out_strided(&s, out[0], strides, 0);
    step_end(&s);
    return true;
}

static const RelDef rel_slide_add = {"SlidingWindowAdd", relate_slide_add, 3, false};
const Op op_sliding_window_add = {
    .name = "sliding_window_add",
    .args = "windows, data",
    .nargs = 2,
    .attrs = slide_attrs,
    .nattrs = 3,
    .relation = &rel_slide_add,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .shape = shape_slide_add,
    .refuses_sizes = true,
    .lower = lower_slide_add,
    .doc =
        "Windows added up where they lie in data, of which only the shape matters: the derivative\n"
        "of sliding_window.",
    .example = "sliding_window_add([[1.0, 2.0], [2.0, 3.0]], [0.0, 0.0, 0.0], axis=0, "
               "window_shape=[2], strides=[1])",
    .example_result = "[1.0, 4.0, 3.0] : Tensor[(3,), float32]",
    .see_also = "sliding_window",
};
