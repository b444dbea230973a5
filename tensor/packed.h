/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a buffer in another order, kept with the buffer. A product reads its weights in panels
 * (jit/launch.c, Note [Packed operands]); weights that do not change from one product to the next are copied into
 * panels once.
 *
 *     if (packed_is_due(buffer, &key))              // at the second use of these elements
 *         fill(packed_new(buffer, &key, bytes));    // NULL: no room
 *     … packed_find(buffer, &key) …
 *
 * The copies of a buffer are dropped when it is given back, when it is collected, and when it is written to
 * (packed_forget). Together they take at most a quarter of the memory limit, the oldest going first, and all go
 * before memory runs out. */
#ifndef TENSOR_PACKED_H
#define TENSOR_PACKED_H

#include "tensor/tensor.h"

enum { PACKED_AXES = 4 };

/* Which elements, in what order: panels of `width` of them along the last axis, one row a step of the others. Axes
 * that are not used are 0. */
typedef struct PackedKey {
    int64_t offset;                                   /* in bytes, from the buffer's first */
    int64_t extent[PACKED_AXES], stride[PACKED_AXES]; /* strides in bytes */
    int64_t width, element;                           /* in elements; bytes of one */
} PackedKey;

/* The elements in that order, or NULL. */
const void *packed_find(const Buffer *b, const PackedKey *key);
/* Counts a use in the buffer's own order, and says whether a copy is worth while by now. */
bool packed_is_due(Buffer *b, const PackedKey *key);
/* A copy to be filled. NULL where there is no room. */
void *packed_new(Buffer *b, const PackedKey *key, size_t bytes);

void packed_forget(Buffer *b);
/* Drops all copies; false: there were none. */
bool packed_drop(void);
size_t packed_bytes(void); /* of all copies */

#endif
