/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts as TVM writes them: a capital letter is an axis, a number and a small letter the places within a block of it,
 * so NCHW8c is (n, c / 8, h, w, 8). And operators on tensors of such layouts, as the same operator on tensors whose
 * blocks are joined: NCHW8c becomes NCHW, before and, for the result, after it.
 *
 * `roles` says which attribute has the layout of each argument and, behind `>`, of the result: D data_layout, K
 * kernel_layout, O out_layout (where it is empty data_layout), L layout, P out_layout (where it is empty layout), - none:
 * it is taken as it is. Of an argument with a small letter only the sizes matter. With `!` behind it the operator takes its
 * layouts in few orders, so what is joined is put in that of their defaults too.
 *
 * A weight may have an axis of its groups, GOIHW: (g, o / g, i / g, h, w). Joined, it is OIHW, whose o counts
 * the channels of one group after those of another. */
#ifndef OPS_PACKED_H
#define OPS_PACKED_H

#include "ops/recipe/plan.h"
#include "types/solve/solver.h"

typedef struct LayoutAxis {
    char letter;   /* the capital one */
    int64_t block; /* of a small letter: how many places; 0: the axis itself */
} LayoutAxis;

typedef struct Layout {
    int rank;
    LayoutAxis axes[TENSOR_MAX_RANK];
} Layout;

const char *layout_parse(const char *text, Layout *l); /* NULL, or what is wrong with it */
/* How many places a block of the axis has; 1 where it is not split. */
int64_t layout_block(const Layout *l, char letter);
int layout_find(const Layout *l, char letter, bool block); /* -1: there is no such axis */
/* out = x with its axes in another order, split into blocks or joined. */
void plan_layout(Plan *plan, Tensor *out, const Tensor *x, const Layout *from, const Layout *to);

/* Whether each of the layouts of a call is one that `choices` lists: "NCHW NHWC OIHW". */
bool packed_is_listed(const Attrs *attrs, const char *choices);
/* Whether a call has a layout with blocks or groups, or one of the result that is not data's. */
bool packed_is(const Attrs *attrs);
/* The shape function, relation and lowering of such a call. */
int packed_shape(const OpCall *call, OutSpec *out, const char *roles);
RelStatus packed_relate(Solver *s, Relation *r, const char *roles);
/* The shape function and relation of an operator with a signature, of which data and result may have blocks and the
 * weight, which was transformed or cut into tiles, is what it is. */
#define PACKED_DATA "D->O"
int packed_shape_data(const OpCall *call, OutSpec *out);
RelStatus packed_relate_data(Solver *s, Relation *r);
bool packed_lower(const OpCall *call, Tensor *const *out, Plan *plan, const char *roles);

#endif
