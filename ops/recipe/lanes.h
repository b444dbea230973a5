/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar instructions over a block of lanes: what the reference evaluation (ops/recipe/reference.c) is
 * made of. One file, lanes_impl.h, is compiled twice: plainly, and for processors with AVX2 and
 * fused multiply-add, where the compiler vectorises it. Both give the same bits. */
#ifndef OPS_RECIPE_LANES_H
#define OPS_RECIPE_LANES_H

#include "ops/recipe/recipe.h"

enum { LANES = 256 /* of a block; a multiple of the 16 accumulators */ };

/* d never overlaps a, b or c. Returns a kernel status. */
typedef int32_t (*LaneFn)(void *d, const void *a, const void *b, const void *c, int n);

typedef struct LaneTable {
    LaneFn op[SCALAR_OP_COUNT][DTYPE_COUNT]; /* by Scalar.type; NULL: no such instruction */
    LaneFn cast[DTYPE_COUNT][DTYPE_COUNT];   /* [from][to]; from float64 also to the halves */
    /* n elements from src by stride, widened. */
    void (*load[DTYPE_COUNT])(void *d, const void *src, int64_t stride, int n);
    /* d[i] = src[i * stride + at[i]] where cond is NULL or cond[i], else *otherwise. */
    void (*load_at[DTYPE_COUNT])(void *d, const void *src, int64_t stride, const int64_t *at,
                                 const uint8_t *cond, const void *otherwise, int n);
    /* n values of [value dtype] to dst by stride, rounded. */
    void (*store[DTYPE_COUNT])(void *dst, int64_t stride, const void *v, int n);
    void (*store_f64_half[2])(void *dst, int64_t stride, const void *v,
                              int n); /* float16, bfloat16 */
    /* acc[i mod 16] = acc[i mod 16] ∘ v[i]. */
    void (*fold[COMBINE_ARGMIN + 1][DTYPE_COUNT])(void *acc, const void *v, int n);
    /* acc[i] = acc[i] ∘ v[i]. */
    void (*join[COMBINE_ARGMIN + 1][DTYPE_COUNT])(void *acc, const void *v, int n);
    /* acc[i] = fma(x[i], y[i], acc[i]); and acc[0] over all i in order. */
    void (*multiply_add[DTYPE_COUNT])(void *acc, const void *x, const void *y, int n);
    void (*dot[DTYPE_COUNT])(void *acc, const void *x, const void *y, int n);
} LaneTable;

const LaneTable *lanes_get(void); /* the best for this processor */
extern const LaneTable lanes_plain, lanes_fma;

#endif
