/* SPDX-License-Identifier: Apache-2.0 */
/* nn.pad and nn.mirror_pad, and the sums that undo them in derivatives. Padding with a constant
 * places data in a filled tensor; the other modes read data at a place computed along each axis. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

typedef enum PadMode {
    PAD_CONSTANT,
    PAD_EDGE,      /* a a | a b c | c c */
    PAD_REFLECT,   /* c b | a b c | b a */
    PAD_SYMMETRIC, /* b a | a b c | c b */
} PadMode;

typedef struct Padding {
    PadMode mode;
    int64_t before[TENSOR_MAX_RANK], after[TENSOR_MAX_RANK];
} Padding;

static PadMode pad_mode(const Op *op, const Attrs *attrs) {
    static const struct {
        const char *name;
        PadMode mode;
        bool mirror;
    } names[] = {
        {"constant", PAD_CONSTANT, false}, {"edge", PAD_EDGE, false},
        {"reflect", PAD_REFLECT, false},   {"SYMMETRIC", PAD_SYMMETRIC, true},
        {"REFLECT", PAD_REFLECT, true},
    };
    bool mirror = strstr(op->name, "mirror") != NULL;
    const char *mode = attrs_text(attrs, mirror ? "mode" : "pad_mode");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].mirror == mirror && !strcmp(mode, names[i].name))
            return names[i].mode;
    }
    return PAD_CONSTANT;
}

/* The numbers or sizes before and after each axis; a problem, or NULL. */
static const char *pad_pairs(const Attrs *attrs, int rank, const AttrValue **pairs) {
    const AttrValue *v = attrs_get(attrs, "pad_width");
    if (v->kind != ATTR_LIST)
        return "pad_width is a list with a pair for each axis";
    bool flat = v->list.n == 2 && rank == 1 && v->list.items[0].kind != ATTR_LIST;
    if (!flat && (int)v->list.n != rank)
        return "pad_width has a pair for each axis of `data`";
    for (int i = 0; i < rank; i++) {
        const AttrValue *pair = flat ? v : &v->list.items[i];
        if (pair->kind != ATTR_LIST || pair->list.n != 2)
            return "pad_width is a list with a pair of numbers for each axis";
        pairs[i] = pair->list.items;
    }
    return NULL;
}

static const char *pad_read(const Op *op, const Attrs *attrs, int rank, Padding *p) {
    const AttrValue *pairs[TENSOR_MAX_RANK];
    const char *problem = pad_pairs(attrs, rank, pairs);
    p->mode = pad_mode(op, attrs);
    for (int i = 0; i < rank && !problem; i++) {
        if (!attr_get_int(&pairs[i][0], &p->before[i]) || !attr_get_int(&pairs[i][1], &p->after[i]))
            problem = "pad_width is a list with a pair of numbers for each axis";
    }
    return problem;
}

/* What a mode needs of the size: something to repeat, and a reflection not longer than the data. */
static const char *pad_fits(const Padding *p, int i, int64_t size) {
    int64_t most = p->before[i] > p->after[i] ? p->before[i] : p->after[i];
    switch (p->mode) {
    case PAD_CONSTANT: return NULL;
    case PAD_EDGE: return most && !size ? "has no edge to repeat" : NULL;
    case PAD_REFLECT: return most && most >= size ? "is too short to reflect" : NULL;
    case PAD_SYMMETRIC: return most > size ? "is too short to reflect" : NULL;
    }
    return NULL;
}

static bool pad_shape(const OpCall *call, const Tensor *x, Padding *p, int64_t *dims) {
    const char *problem = pad_read(call->op, call->attrs, x->rank, p);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s (`data` has %d)", problem, x->rank);
        return false;
    }
    for (int i = 0; i < x->rank; i++) {
        problem = pad_fits(p, i, x->shape[i]);
        if (problem) {
            shape_error(call, DIAG_R0316, "axis %d of `data`, of size %lld, %s", i,
                        (long long)x->shape[i], problem);
            return false;
        }
        dims[i] = size_add(size_add(x->shape[i], p->before[i]), p->after[i]);
        if (dims[i] < 0) {
            shape_error(call, DIAG_R0316,
                        "pad_width takes %lld elements from axis %d of `data`, of size %lld",
                        (long long)(x->shape[i] - dims[i]), i, (long long)x->shape[i]);
            return false;
        }
    }
    return true;
}

static int shape_pad(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    Padding p;
    int64_t dims[TENSOR_MAX_RANK];
    if (call->nin > 1 && (!shape_check_rank(call, 1, 0) || !shape_check_same_dtype(call, 0, 1)))
        return -1;
    if (!pad_shape(call, x, &p, dims))
        return -1;
    return shape_set(call, out, x->dtype, x->rank, dims) ? 1 : -1;
}

static RelStatus relate_pad(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_ALL}, &status))
        return status;
    uint32_t rank;
    Type **dims, *dtype = rel_dtype_in(r->args[0]);
    if (r->nargs == 3 && !rel_unify(s, r, 1, type_tensor(type_shape(NULL, 0), dtype)))
        return REL_FAIL;
    if (!rel_rank_of_result(s, r, 0, 0))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, dtype);
    const AttrValue *pairs[TENSOR_MAX_RANK];
    const char *problem = pad_pairs(r->attrs, (int)rank, pairs);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s (`data` has %u)", r->op->name, problem, rank);
        return REL_FAIL;
    }
    Type **out = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++)
        out[i] = dim_add(dim_add(dims[i], rel_attr_dim(&pairs[i][0])), rel_attr_dim(&pairs[i][1]));
    return rel_result(s, r, out, rank, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

/* Where place i of the padded axis comes from, in 0 .. n-1: reflections by one step suffice. */
static Sc source_place(StepBuilder *s, const Padding *p, int axis, Sc i, int64_t size) {
    ScalarBuilder *b = &s->body;
    Sc zero = sc_i64(b, 0), n = step_iparam(s, b, DT_I64, size);
    Sc last = sc_sub(b, n, sc_i64(b, 1));
    Sc k = sc_sub(b, i, step_iparam(s, b, DT_I64, p->before[axis]));
    switch (p->mode) {
    case PAD_CONSTANT: return k;
    case PAD_EDGE: return sc_max(b, sc_min(b, k, last), zero);
    case PAD_REFLECT: {
        Sc low = sc_abs(b, k);
        Sc back = sc_sub(b, sc_add(b, last, last), low);
        return sc_select(b, sc_gt(b, low, last), back, low);
    }
    case PAD_SYMMETRIC: {
        Sc minus = sc_sub(b, sc_i64(b, -1), k);
        Sc low = sc_select(b, sc_lt(b, k, zero), minus, k);
        Sc back = sc_sub(b, sc_add(b, last, n), low);
        return sc_select(b, sc_gt(b, low, last), back, low);
    }
    }
    return k;
}

/* The offset into data (of the given strides) of the current place; axes without padding are
 * walked by their stride and add nothing. */
static Sc source_offset(StepBuilder *s, const Padding *p, int rank, const int64_t *shape,
                        const int64_t *data_strides, int64_t *strides) {
    ScalarBuilder *b = &s->body;
    Sc sum = sc_i64(b, 0);
    for (int i = 0; i < rank; i++) {
        strides[i] = data_strides[i];
        if (!p->before[i] && !p->after[i])
            continue;
        strides[i] = 0;
        Sc place = source_place(s, p, i, sc_iota(b, i), shape[i]);
        sum = sc_add(b, sum, sc_mul(b, place, step_iparam(s, b, DT_I64, data_strides[i])));
    }
    return sum;
}

/* At most ten axes are padded by the modes that compute places: three parameters each. */
static bool pad_parameters(const OpCall *call, const Padding *p, int rank) {
    int n = 0;
    for (int i = 0; i < rank; i++)
        n += p->before[i] || p->after[i];
    if (p->mode == PAD_CONSTANT || 3 * n <= RECIPE_MAX_PARAMS)
        return true;
    shape_error(call, DIAG_R0316, "pads at most %d axes by reflection", RECIPE_MAX_PARAMS / 3);
    return false;
}

/* Copies the part of data that is in the padded tensor, to there (pad) or back. A negative pad takes elements away. */
static void copy_inside(Plan *plan, const Padding *p, int rank, const int64_t *shape,
                        const Tensor *from, const int64_t *from_strides, Tensor *to,
                        const int64_t *to_strides, bool pad) {
    int64_t extents[TENSOR_MAX_RANK] = {0}, data_at = 0, padded_at = 0;
    const int64_t *data = pad ? from_strides : to_strides,
                  *padded = pad ? to_strides : from_strides;
    for (int i = 0; i < rank; i++) {
        int64_t first = p->before[i] < 0 ? -p->before[i] : 0;
        int64_t last = shape[i] + (p->after[i] < 0 ? p->after[i] : 0);
        extents[i] = last - first;
        if (extents[i] <= 0)
            return;
        data_at += first * data[i];
        padded_at += (p->before[i] > 0 ? p->before[i] : 0) * padded[i];
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, rank, extents);
    sc_load(&s.body, step_in_strided(&s, from, from_strides, pad ? data_at : padded_at),
            from->dtype);
    step_out_strided(&s, to, to_strides, pad ? padded_at : data_at);
    step_end(&s);
}

static bool takes_away(const Padding *p, int rank) {
    bool any = false;
    for (int i = 0; i < rank; i++)
        any = any || p->before[i] < 0 || p->after[i] < 0;
    return any;
}

static bool lower_pad(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    Padding p;
    int64_t dims[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    if (!pad_shape(call, x, &p, dims) || !pad_parameters(call, &p, x->rank))
        return false;
    if (p.mode == PAD_CONSTANT) {
        plan_copy(plan, out[0], call->in[1]);
        copy_inside(plan, &p, x->rank, x->shape, x, x->strides, out[0], out[0]->strides, true);
        return true;
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, out[0]->shape);
    Sc at = source_offset(&s, &p, x->rank, x->shape, x->strides, strides);
    sc_load_at(&s.body, step_in_strided(&s, x, strides, 0), x->dtype, at);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const RelDef rel_pad = {"Pad", relate_pad, 3, false};
static const AttrSpec pad_attrs[] = {
    {"pad_width", AT_DIM_LISTS, NULL,
     "how much before and after each axis: [[1, 1], [0, 2]]; a negative number takes elements "
     "away"},
    {"pad_mode", AT_STRING, "\"constant\"",
     "\"constant\" pad_value, \"edge\" the last element, "
     "\"reflect\" backwards without it"},
};
const Op op_nn_pad = {
    .name = "nn.pad",
    .args = "data, pad_value",
    .nargs = 2,
    .attrs = pad_attrs,
    .nattrs = 2,
    .choices = "pad_mode: constant edge reflect",
    .relation = &rel_pad,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_pad,
    .resizes = true,
    .refuses_sizes = true,
    .lower = lower_pad,
    .doc = "data with more elements before and after it on each axis.",
    .example = "nn.pad([1, 2], 0, pad_width=[[1, 2]])",
    .example_result = "[0, 1, 2, 0, 0] : Tensor[(5,), int32]",
    .see_also = "nn.mirror_pad, nn.conv2d",
};
static const RelDef rel_mirror_pad = {"MirrorPad", relate_pad, 2, false};
static const AttrSpec mirror_attrs[] = {
    {"mode", AT_STRING, "\"SYMMETRIC\"", "\"SYMMETRIC\" repeats the edge, \"REFLECT\" does not"},
    {"pad_width", AT_DIM_LISTS, NULL, "how much before and after each axis"},
};
const Op op_nn_mirror_pad = {
    .name = "nn.mirror_pad",
    .args = "data",
    .nargs = 1,
    .attrs = mirror_attrs,
    .nattrs = 2,
    .choices = "mode: SYMMETRIC REFLECT",
    .relation = &rel_mirror_pad,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_pad,
    .resizes = true,
    .refuses_sizes = true,
    .lower = lower_pad,
    .doc = "data continued backwards at its edges.",
    .example = "nn.mirror_pad([1, 2, 3], pad_width=[[2, 1]])",
    .example_result = "[2, 1, 1, 2, 3, 3] : Tensor[(6,), int32]",
    .see_also = "nn.pad",
};

/* ---- the sums -------------------------------------------------------------------------------- */

/* (padded, data): data's shape. */
static int shape_pad_sum(const OpCall *call, OutSpec *out) {
    const Tensor *y = call->in[0], *x = call->in[1];
    Padding p;
    int64_t dims[TENSOR_MAX_RANK];
    if (!pad_shape(call, x, &p, dims))
        return -1;
    if (y->rank != x->rank || memcmp(y->shape, dims, sizeof *dims * (size_t)x->rank)) {
        shape_error(call, DIAG_R0314, "`padded` has shape %s, and `data` padded %s",
                    shape_text(y->rank, y->shape), shape_text(x->rank, dims));
        return -1;
    }
    return shape_set(call, out, y->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_pad_sum(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_ALL}, &status))
        return status;
    Type *t = type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0]));
    if (rel_result_type(s, r, t) == REL_FAIL || !rel_same_rank(s, r, 0, 1))
        return REL_FAIL;
    return REL_DONE;
}

static bool lower_pad_sum(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *y = call->in[0];
    Padding p;
    int64_t dims[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    if (!pad_shape(call, out[0], &p, dims) || !pad_parameters(call, &p, y->rank))
        return false;
    if (p.mode != PAD_CONSTANT || takes_away(&p, y->rank))
        plan_fill_int(plan, out[0], 0);
    if (p.mode == PAD_CONSTANT) {
        copy_inside(plan, &p, y->rank, out[0]->shape, y, y->strides, out[0], out[0]->strides,
                    false);
        return true;
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, y->rank, y->shape);
    step_combine(&s, COMBINE_SUM, sc_type_of(y->dtype));
    Sc at = source_offset(&s, &p, y->rank, out[0]->shape, out[0]->strides, strides);
    Sc v = sc_load(&s.body, step_in(&s, y), y->dtype);
    step_result(&s, v);
    step_result(&s, at);
    step_out_strided(&s, out[0], strides, 0);
    step_end(&s);
    return true;
}

static const RelDef rel_pad_sum = {"PadSum", relate_pad_sum, 3, false};
const Op op_nn_pad_sum = {
    .name = "nn.pad_sum",
    .args = "padded, data",
    .nargs = 2,
    .attrs = pad_attrs,
    .nattrs = 2,
    .choices = "pad_mode: constant edge reflect",
    .relation = &rel_pad_sum,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .shape = shape_pad_sum,
    .refuses_sizes = true,
    .lower = lower_pad_sum,
    .doc = "For each element of data the sum of where nn.pad put it: its derivative. Of data only "
           "the\n"
           "shape matters.",
    .example = "nn.pad_sum([1, 2, 3, 4], [0, 0], pad_width=[[1, 1]], pad_mode=\"edge\")",
    .example_result = "[3, 7] : Tensor[(2,), int32]",
    .see_also = "nn.pad",
};
static const RelDef rel_mirror_pad_sum = {"MirrorPadSum", relate_pad_sum, 3, false};
const Op op_nn_mirror_pad_sum = {
    .name = "nn.mirror_pad_sum",
    .args = "padded, data",
    .nargs = 2,
    .attrs = mirror_attrs,
    .nattrs = 2,
    .choices = "mode: SYMMETRIC REFLECT",
    .relation = &rel_mirror_pad_sum,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .shape = shape_pad_sum,
    .refuses_sizes = true,
    .lower = lower_pad_sum,
    .doc =
        "For each element of data the sum of where nn.mirror_pad put it: its derivative. Of data\n"
        "only the shape matters.",
    .example = "nn.mirror_pad_sum([1, 2, 3, 4], [0, 0], pad_width=[[1, 1]])",
    .example_result = "[3, 7] : Tensor[(2,), int32]",
    .see_also = "nn.mirror_pad",
};
