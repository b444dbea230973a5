/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of tensors at an index of integers and ranges, which say where they lie: reading a small one, or adding to it, costs
 * less than a launch, and where any other lies is an operand that plans are kept for (eval/plans.h).
 *
 * Note [Parts that one group reads]. `t[:, 0] * 2.0 + t[:, 1]` reads the columns where they lie. A part is a view only
 * there, since a view keeps the whole tensor in memory, and what would be written over it is copied. What reads its
 * operands more than once, as a product does, gets a copy that lies together. */
#ifndef RELAY_EVAL_INDEX_PART_H
#define RELAY_EVAL_INDEX_PART_H

#include "eval/machine.h"
#include "ops/slice.h"

enum { PART_BYTES = 4096 };

/* Where the part of t lies that the arguments name in the words of `index`'s spec (ops/index_view.h); the offset is that in
 * t's buffer. False where a vector is among them, something is to be added to t yet, or they are a mistake. */
bool index_part_find(const Tensor *t, const char *spec, const Value *args, uint32_t n,
                     SliceView *part);

/* Its first element. */
static inline char *index_part_data(const Tensor *t, const SliceView *part) {
    return (char *)t->buffer->data + part->offset * (int64_t)dtype_size(t->dtype);
}

/* Whether v is of that dtype and a tensor of the part's shape, or one element. */
bool index_part_fits(const SliceView *part, DType dtype, Value v);

/* A tensor that shares the part's elements. */
Value index_part_view(const Tensor *t, const SliceView *part);
/* Copies the part; gives a kernel status. */
int32_t index_part_copy(Interp *in, const Tensor *t, const SliceView *part, Value *out);

/* Writes `from`, which broadcasts to the part, in its place or adds it there, where nobody else may see t; gives a kernel
 * status. */
int32_t index_part_put(Interp *in, Tensor *t, const SliceView *part, Value from, bool add);

/* Whether the part lies together, has an element and takes at most PART_BYTES; tells how many elements. */
bool index_part_is_small(const SliceView *part, DType dtype, int64_t *count);

#endif
