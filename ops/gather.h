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

#endif
