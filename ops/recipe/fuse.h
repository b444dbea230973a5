/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion of steps: a MAP whose result one later step alone reads becomes part of that step's body,
 * and the temporary between them is not made. The bits stay: a value goes from producer to consumer
 * as it would be stored and loaded again, so a temporary of a half dtype, which rounds, is kept.
 *
 *     t = x + bias          MAP over (m, n): load x, load bias, add
 *     y = relu(t)           MAP over (m n)
 *     ⇒ y = relu(x + bias)  MAP over (m, n): load x, load bias, add, max
 *
 * A consumer's axis is split where the producer has two. Not done: into SCATTER, and into PRODUCT unless the producer
 * only moves elements, as a transpose does (anything else would be computed again and again); where the consumer repeats or shifts what it reads;
 * where indices (SC_IOTA) would need arithmetic. A MAP that reads what a REDUCE or PRODUCT gives becomes
 * part of that step in turn (ops/recipe/epilogue.h). Then MAPs over the same elements become one (ops/recipe/join.h), and
 * last steps over the same rows (ops/recipe/chain.h). */
#ifndef OPS_RECIPE_FUSE_H
#define OPS_RECIPE_FUSE_H

#include "ops/recipe/plan.h"

/* Fuses the steps of a plan as far as they go; gives how many steps are gone. Only temporaries of
 * the plan disappear. */
int plan_fuse(Plan *plan);
/* Only the last of that, for the plan of one operator: its steps over the same rows become one. */
int plan_chain(Plan *plan);

#endif
