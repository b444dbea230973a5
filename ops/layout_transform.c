/* SPDX-License-Identifier: Apache-2.0 */
/* layout_transform: data's axes in another order, some of them split into blocks. A layout is written as TVM does:
 * a capital letter is an axis, a number and a small letter the places within a block of it, so NCHW8c is
 * (n, c / 8, h, w, 8). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

typedef struct LayoutAxis {
    char letter;   /* the capital one */
    int64_t block; /* of a small letter: how many places; 0: the axis itself */
} LayoutAxis;

typedef struct Layout {
    int rank;
    LayoutAxis axes[TENSOR_MAX_RANK];
} Layout;

/* How many places a block of the axis has; 1 where it is not split. */
static int64_t block_of(const Layout *l, char letter) {
    for (int i = 0; i < l->rank; i++)
        if (l->axes[i].letter == letter && l->axes[i].block)
            return l->axes[i].block;
    return 1;
}

static int find_axis(const Layout *l, char letter, bool block) {
    for (int i = 0; i < l->rank; i++)
        if (l->axes[i].letter == letter && (l->axes[i].block != 0) == block)
            return i;
    return -1;
}

/* NULL, or what is wrong with it. */
static const char *read_layout(const char *text, Layout *l) {
    *l = (Layout){0};
    for (const char *p = text; *p; p++) {
        char *end;
        int64_t n = isdigit((unsigned char)*p) ? strtoll(p, &end, 10) : 0;
        p = n ? end : p;
        bool small = islower((unsigned char)*p);
        char letter = (char)toupper((unsigned char)*p);
        if (l->rank == TENSOR_MAX_RANK || !isalpha((unsigned char)*p) || small != (n > 0) ||
            n > INT32_MAX || find_axis(l, letter, small) >= 0)
            return "a layout is letters, of which small ones follow their size, each once: NCHW8c";
        l->axes[l->rank++] = (LayoutAxis){letter, n};
    }
    for (int i = 0; i < l->rank; i++)
        if (find_axis(l, l->axes[i].letter, false) < 0)
            return "a layout with a block has its axis too: NCHW8c";
    return l->rank ? NULL : "a layout has axes";
}

static const char *read_layouts(const Attrs *attrs, Layout *from, Layout *to) {
    const char *problem = read_layout(attrs_text(attrs, "src_layout"), from);
    problem = problem ? problem : read_layout(attrs_text(attrs, "dst_layout"), to);
    for (int i = 0; !problem && i < from->rank + to->rank; i++) {
        char letter = i < from->rank ? from->axes[i].letter : to->axes[i - from->rank].letter;
        if (find_axis(i < from->rank ? to : from, letter, false) < 0)
            problem = "the layouts have different axes";
    }
    return problem;
}

static int shape_transform(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    Layout from, to;
    int64_t dims[TENSOR_MAX_RANK];
    const char *problem = read_layouts(call->attrs, &from, &to);
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return -1;
    }
    if (!shape_check_rank(call, 0, from.rank))
        return -1;
    for (int i = 0; i < from.rank; i++) {
        if (!from.axes[i].block || x->shape[i] == from.axes[i].block)
            continue;
        shape_error(call, DIAG_R0314, "axis %d of `data` is %lld, and a block has %lld", i,
                    (long long)x->shape[i], (long long)from.axes[i].block);
        return -1;
    }
    for (int i = 0; i < to.rank; i++) {
        char letter = to.axes[i].letter;
        int axis = find_axis(&from, letter, false);
        int64_t size = size_multiply(x->shape[axis], block_of(&from, letter)),
                n = block_of(&to, letter);
        if (size % n) {
            shape_error(call, DIAG_R0316, "axis %d of `data` has %lld places, no multiple of %lld",
                        axis, (long long)size, (long long)n);
            return -1;
        }
        dims[i] = to.axes[i].block ? n : size / n;
    }
    return shape_set(call, out, x->dtype, to.rank, dims) ? 1 : -1;
}

static RelStatus relate_transform(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    Layout from, to;
    uint32_t rank;
    Type **dims;
    const char *problem = read_layouts(r->attrs, &from, &to);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    if (!rel_need_rank(s, r, 0, (uint32_t)from.rank) || !rel_rank_in(r->args[0], &rank, &dims))
        return REL_FAIL;
    for (int i = 0; i < from.rank; i++)
        if (from.axes[i].block &&
            !rel_unify_dim(s, r, dims[i], rel_int_dim(r, from.axes[i].block), 0, i))
            return REL_FAIL;
    Type **out = mem_new_n(Type *, to.rank + 1);
    for (int i = 0; i < to.rank; i++) {
        char letter = to.axes[i].letter;
        int64_t have = block_of(&from, letter), want = block_of(&to, letter);
        Type *size = dims[find_axis(&from, letter, false)];
        if (to.axes[i].block)
            out[i] = rel_int_dim(r, want);
        else if (have != want)
            out[i] = rel_quotient(s, dim_mul(size, rel_int_dim(r, have)), rel_int_dim(r, want));
        else
            out[i] = size;
    }
    if (rel_result(s, r, out, (uint32_t)to.rank, rel_dtype_in(r->args[0])) == REL_FAIL)
        return REL_FAIL;
    return rel_settled(r);
}

/* Each place of the result is one of data: along an axis its number is that of its block times the block's size
 * plus the place within it. */
static bool lower_transform(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    Layout from, to;
    int64_t none[RECIPE_MAX_AXES] = {0};
    read_layouts(call->attrs, &from, &to);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, to.rank, out[0]->shape);
    ScalarBuilder *b = &s.body;
    Sc offset = sc_i64(b, 0);
    for (int i = 0; i < from.rank; i++) {
        char letter = from.axes[i].letter;
        int inner = find_axis(&to, letter, true);
        Sc n = sc_iota(b, find_axis(&to, letter, false));
        if (inner >= 0)
            n = sc_add(b, sc_mul(b, n, sc_i64(b, block_of(&to, letter))), sc_iota(b, inner));
        int64_t block = block_of(&from, letter);
        if (from.axes[i].block)
            n = sc_rem(b, n, sc_i64(b, block));
        else if (block > 1)
            n = sc_div(b, n, sc_i64(b, block));
        offset = sc_add(b, offset, sc_mul(b, n, step_iparam(&s, b, DT_I64, x->strides[i])));
    }
    sc_load_at(b, step_in_strided(&s, x, none, 0), x->dtype, offset);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

static const AttrSpec transform_attrs[] = {
    {"src_layout", AT_STRING, NULL, "what data's axes are: letters, and blocks as in NCHW8c"},
    {"dst_layout", AT_STRING, NULL, "what the result's axes are"},
};
#define TRANSFORM(symbol, rel, op_name, text)                                                      \
    static const RelDef rel_##symbol = {rel, relate_transform, 2, false};                          \
    const Op op_##symbol = {                                                                       \
        .name = op_name,                                                                           \
        .args = "data",                                                                            \
        .nargs = 1,                                                                                \
        .attrs = transform_attrs,                                                                  \
        .nattrs = 2,                                                                               \
        .relation = &rel_##symbol,                                                                 \
        .dtypes = DTS_ALL,                                                                         \
        .pattern = OP_INJECTIVE,                                                                   \
        .shape = shape_transform,                                                                  \
        .refuses_sizes = true,                                                                     \
        .lower = lower_transform,                                                                  \
        .doc = text,                                                                               \
        .example = op_name "([[1.0, 2.0, 3.0, 4.0]], src_layout=\"NC\", dst_layout=\"CN2c\")",     \
        .example_result = "[[[1.0, 2.0]],\n [[3.0, 4.0]]] : Tensor[(2, 1, 2), float32]",           \
        .see_also = "transpose, reshape",                                                          \
    };
TRANSFORM(layout_transform, "LayoutTransform", "layout_transform",
          "data with its axes in another order, split into blocks or joined again: NCHW8c is NCHW\n"
          "with 8 channels as the last axis.")
TRANSFORM(auto_scheduler_layout_transform, "AutoSchedulerLayoutTransform",
          "auto_scheduler_layout_transform",
          "The same as layout_transform: TVM's name for one that its scheduler made.")
