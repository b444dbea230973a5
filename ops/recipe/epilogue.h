/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion behind a fold: a MAP that reads each result of a REDUCE or PRODUCT once becomes its epilogue, so that bias,
 * activation and residual are applied to sums while they are still in registers.
 *
 *     t = x @@ w                PRODUCT over (m, n | k)
 *     y = relu(t + bias) + x    MAP over (m n)
 *     ⇒ PRODUCT over (m, n | k) with the epilogue: the folded value, load bias, add, max, load x, add
 *
 * Both walk the same elements, but each may have cut them into other axes: axes are cut further until they are
 * the same. What is folded, and in which order, does not change, so neither do the bits. */
#ifndef OPS_RECIPE_EPILOGUE_H
#define OPS_RECIPE_EPILOGUE_H

#include "ops/recipe/plan.h"

/* Makes `map` compute what it reads from its operand of that number, the only output of `fold`, and then its own
 * result. False: it cannot, and nothing changed. */
bool step_finish(Step *map, const Step *fold, int operand);

#endif
