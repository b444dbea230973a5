/* SPDX-License-Identifier: Apache-2.0 */
/* layout_transform: data's axes in another order, some of them split into blocks, as ops/packed.h has them. */
#include <string.h>

#include "base/mem.h"
#include "ops/packed.h"
#include "ops/relate/solve.h"

static const char *read_layouts(const Attrs *attrs, Layout *from, Layout *to) {
    const char *problem = layout_parse(attrs_text(attrs, "src_layout"), from);
    problem = problem ? problem : layout_parse(attrs_text(attrs, "dst_layout"), to);
    for (int i = 0; !problem && i < from->rank + to->rank; i++) {
        char letter = i < from->rank ? from->axes[i].letter : to->axes[i - from->rank].letter;
        if (layout_find(i < from->rank ? to : from, letter, false) < 0)
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
        int axis = layout_find(&from, letter, false);
        int64_t size = size_multiply(x->shape[axis], layout_block(&from, letter)),
                n = layout_block(&to, letter);
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
        int64_t have = layout_block(&from, letter), want = layout_block(&to, letter);
        Type *size = dims[layout_find(&from, letter, false)];
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

static bool lower_transform(const OpCall *call, Tensor *const *out, Plan *plan) {
    Layout from, to;
    read_layouts(call->attrs, &from, &to);
    plan_layout(plan, out[0], call->in[0], &from, &to);
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
