/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of one axis, as NumPy reads them: negative places count from the end, and what lies
 * outside is cut off. */
#ifndef OPS_SLICE_H
#define OPS_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/recipe/plan.h"

typedef struct SliceRange {
    bool has_begin, has_end;
    int64_t begin, end, step; /* step is not 0 */
} SliceRange;

/* The first place, and how many there are. */
void slice_resolve(const SliceRange *r, int64_t size, int64_t *first, int64_t *count);

/* A rectangular part of a tensor: its sizes, and the strides and offset at which it lies. */
typedef struct SliceView {
    int rank;
    int64_t shape[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK], offset;
} SliceView;

/* out[view] = t, or out[view] += t, where out is already written. */
void plan_slice_set(Plan *plan, Tensor *out, const SliceView *view, const Tensor *t, bool add);

/* The operator `index_add` in place: the call's first argument is the tensor, which nobody else may see. What goes to one
 * place is added together first, so that the bits are those of adding the part in zeros. Returns a kernel status. */
int32_t index_add_into(const OpCall *call, StepRunner runner, void *ctx,
                       const volatile int *interrupt);

/* The size of the slice begin:end:step of an axis of size d: the bounds are sizes or numbers, negative
 * ones from the end, NULL where there is none; step is not 0. */
Type *rel_slice_size(Relation *r, Type *d, Type *begin, Type *end, int64_t step);

#endif
