/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing at places that are elements of a tensor of indices. */
#ifndef OPS_GATHER_H
#define OPS_GATHER_H

#include "ops/relate/structured.h"

/* The place in 0 .. n-1 that an index names. */
typedef enum IndexMode {
    INDEX_CLIP,  /* the nearest place */
    INDEX_WRAP,  /* modulo n */
    INDEX_CHECK, /* negative: from the end; outside: the kernel ends with KERNEL_INDEX */
} IndexMode;
Sc sc_place(ScalarBuilder *b, Sc index, Sc n, IndexMode mode);

/* Finds the first element of `at` that is none of least, …, n - 1, nor ignored, if that is not NULL; false where there is
 * none. */
bool find_index_outside(const Tensor *at, int64_t least, int64_t n, const int64_t *ignored,
                        int64_t *index);
/* For Op.blame_index: which index of the second argument names no place along attribute `axis` of the first. */
const char *blame_index_of_axis(const OpCall *call);

#endif
