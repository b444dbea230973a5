/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are given one value twice. */
#ifndef PASSES_REVERSE_TWICE_H
#define PASSES_REVERSE_TWICE_H

#include "passes/reverse/internal.h"

/* Two values that are not one where the step runs. */
struct Apart {
    Place *one, *other;
    const Apart *next;
};

typedef enum Twice {
    TWICE_NOT,     /* two slots became one */
    TWICE_NEVER,   /* the call does not run where these are one */
    TWICE_SPLIT,   /* the call became a branch */
    TWICE_IN_PARTS /* one value is part of another */
} Twice;
/* What becomes of a call some of whose slots have one accumulator. */
Twice twice_settle(Instance *n, Step *s);

#endif
