/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts of tensors at an index: reading one, or adding to it, costs less than planning a kernel for it. */
#ifndef RELAY_EVAL_SMALL_PART_H
#define RELAY_EVAL_SMALL_PART_H

#include "eval/value.h"

enum { PART_BYTES = 4096 };

typedef struct SmallPart {
    char *data;    /* of its first element, the others behind it */
    int64_t count; /* at least 1 */
    int rank;      /* 0: one element */
    int64_t shape[TENSOR_MAX_RANK];
} SmallPart;

/* The part t[i, …, a:b] of integers for the first axes and perhaps a range of the next one, in the words of `index`'s spec,
 * where it lies together and takes at most PART_BYTES. False where it is another one, or a mistake. */
bool small_part_find(const Tensor *t, const char *spec, const Value *args, uint32_t n,
                     SmallPart *part);

#endif
