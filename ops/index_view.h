/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a tensor that `t[0, 1:, rows, ..., None]` names. The attribute `spec` says what stands between the
 * brackets, one letter an index (types/core/core.h): 'i' an integer, ':' and a digit a slice with the bounds that the
 * digit's bits name, 'v' a vector of integers or bools, '.' the ellipsis, 'n' a new axis, 'o' an integer or a vector,
 * whichever the argument is. Derivatives of `take` write 'c' and 'w' too: an integer that is clipped to the axis, or wraps
 * around it. The integers and the vector follow the tensor as arguments. There is at most one vector; its
 * axis of the part stands where the axis it selects from stood. */
#ifndef OPS_INDEX_VIEW_H
#define OPS_INDEX_VIEW_H

#include "ops/relate/structured.h"
#include "ops/slice.h"

typedef struct IndexCount {
    int taken;   /* arguments that the spec takes */
    int axes;    /* of the tensor */
    int results; /* axes of the part that they leave or make */
} IndexCount;

/* False when it is no spec. Each 'o' counts as an integer. */
bool index_count(const char *spec, IndexCount *count);

/* Which place of an axis of that size the integer at a letter names; one that is none may come out. */
int64_t index_place(char letter, int64_t i, int64_t size);

typedef struct IndexView {
    SliceView part; /* its stride on the vector's axis is 0 */
    Tensor *
        places; /* int64: where on its axis each element of the vector points; NULL without a vector */
    int axis;       /* of the part, the vector's */
    int64_t stride; /* of the tensor on that axis */
    bool some;      /* a place may be -1, which is none (index_keep_last) */
} IndexView;

/* Where the part of x lies that the n arguments from `first` on name. False after a report. */
bool index_view(const OpCall *call, const Tensor *x, uint32_t first, uint32_t n, IndexView *view);
/* Of equal places of the vector only the last stays; `size` is that of the axis. */
void index_keep_last(IndexView *view, int64_t size);

/* out = the part of x. */
void plan_index_get(Plan *plan, Tensor *out, const Tensor *x, const IndexView *view);
/* The part of out = t, which broadcasts to it, or is added to it; of equal places the last one counts, or all. */
void plan_index_put(Plan *plan, Tensor *out, const IndexView *view, const Tensor *t, bool add);

/* Decides each 'o' of the relation's spec that the types of the indices, argument `arg`, decide. FAIL after a report. */
RelStatus rel_index_letters(Solver *s, Relation *r, int arg);

/* The sizes of the part of a tensor of these sizes; argument `arg` is the tuple of indices. WAIT while the dtype of
 * the vector or the rank of an index is open; FAIL after a report. */
RelStatus rel_index_part(Solver *s, Relation *r, int arg, uint32_t rank, Type **dims, Type ***part,
                         uint32_t *nout);

#endif
