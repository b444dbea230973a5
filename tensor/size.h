/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of sizes. A size is an int64 of at most SIZE_MOST, so that the strides and the bytes of a
 * tensor that has some fit too. What grows past that stays above it, SIZE_TOO_LARGE, which no tensor
 * has: shape_count refuses it. */
#ifndef TENSOR_SIZE_H
#define TENSOR_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define SIZE_MOST ((int64_t)1 << 47)
#define SIZE_TOO_LARGE INT64_MAX

/* Of sizes that are not negative, or too large. */
static inline int64_t size_add(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) || sum > SIZE_MOST ? SIZE_TOO_LARGE : sum;
}

static inline int64_t size_multiply(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > SIZE_MOST ? SIZE_TOO_LARGE : product;
}

#endif
