/* SPDX-License-Identifier: Apache-2.0 */
/* A PRODUCT of few steps as a MAP: what is folded is written out, so that steps around it join it (ops/recipe/fuse.h).
 *
 *     t[i, j] = sum r < 2: x[r, i] * y[r, j]            PRODUCT over (i, j | r)
 *     ⇒ t[i, j] = fma(x[1, i], y[1, j], fma(x[0, i], y[0, j], 0))      MAP over (i, j)
 *
 * The multiply-adds are those of the PRODUCT, from the same 0 and in the same order, so the bits are the same. */
#ifndef OPS_RECIPE_UNROLL_H
#define OPS_RECIPE_UNROLL_H

#include "ops/recipe/plan.h"

/* Makes a MAP of a step that is a PRODUCT of floats with at most `most` steps an element. False: it stays as it is. */
bool step_unroll(Step *step, int64_t most);

#endif
