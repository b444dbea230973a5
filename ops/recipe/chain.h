/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion along rows: a fold of rows, what reads its results or folds the same rows again, and what it reads itself become
 * one ROWS, which does all of it on a row while that is in the nearest cache.
 *
 *     m = max(x, axis=[1])                     REDUCE over (m | n)
 *     s = log(sum(exp(x - m), axis=[1]))       REDUCE over (m | n)
 *     y = x - m - s                            MAP over (m, n)
 *     ⇒ m, s, y                                ROWS over (m | n) of three parts
 *
 * The parts are the steps as they were, and what one hands to another goes through memory, so no bit changes and halves
 * round as before. Not done: where rows do not lie contiguous, are shorter than a vector or too long for the caches, or
 * where indices are used. */
#ifndef OPS_RECIPE_CHAIN_H
#define OPS_RECIPE_CHAIN_H

#include "ops/recipe/plan.h"

/* Makes `into` do on each row what `from`, an earlier step, does, and then its own; one of the two folds rows. Its own
 * results stand first. False: it cannot, and nothing changed. */
bool step_chain(Step *into, const Step *from);

#endif
