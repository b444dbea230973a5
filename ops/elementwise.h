/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators: their entries come of one line each in elementwise.def. Private to ops/:
 * the table, scalar_eval.c and tests. */
#ifndef OPS_ELEMENTWISE_H
#define OPS_ELEMENTWISE_H

#include "ops/recipe/scalar.h"
#include "types/op.h"

typedef struct Elementwise {
    Op op; /* first: an `const Op *` of the table is an `const Elementwise *` */
    Sc (*unary)(ScalarBuilder *b, Sc x); /* one of the two */
    Sc (*binary)(ScalarBuilder *b, Sc x, Sc y);
    bool compares; /* the result is bool */
} Elementwise;

enum {
#define UNARY(symbol, ...) ELEMENTWISE_##symbol,
#define TEST(symbol, ...) ELEMENTWISE_##symbol,
#define BINARY(symbol, ...) ELEMENTWISE_##symbol,
#define COMPARE(symbol, ...) ELEMENTWISE_##symbol,
#include "ops/elementwise.def"
#undef UNARY
#undef TEST
#undef BINARY
#undef COMPARE
    ELEMENTWISE_COUNT
};

extern const Elementwise elementwise_table[ELEMENTWISE_COUNT];

/* NULL when the operator is not one of these. */
const Elementwise *elementwise_find(const Op *op);

#endif
