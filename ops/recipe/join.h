/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion of siblings: two MAPs over the same elements become one that writes what both wrote.
 *
 *     s = sigmoid(x)            MAP over (m n): load x, … ⇒ s
 *     y = s * c                 MAP over (m n): load s, load c, mul ⇒ y
 *     ⇒ s, y                    MAP over (m n): load x, …, load c, mul ⇒ y, s
 *
 * A result of the first that the second reads is read from the register, as it would be stored and loaded again: so a
 * half dtype, whose store rounds, is read from memory, and both steps stay. Not done: where indices are used, and where
 * one reads what the other writes at another place. */
#ifndef OPS_RECIPE_JOIN_H
#define OPS_RECIPE_JOIN_H

#include "ops/recipe/plan.h"

/* Makes `into` compute and write what `from`, an earlier step, does: its own results first. kept: which of the results
 * of `from` are written, a bit each. False: it cannot, and nothing changed. */
bool step_join(Step *into, const Step *from, uint32_t kept);

#endif
