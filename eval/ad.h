/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator's part of differentiation: duals, cells and tapes as values. Note [Twins] in
 * passes/grad.h says how they are used. None of these does arithmetic on floats: that is left to
 * operators in Relay code, so that an enclosing derivative sees it.
 *
 * A tape (reverse) or level (forward) is a pair (number of the derivative, chain): the chain is a
 * reference to the backpropagator so far. Structure maps go through tuples and data, leave
 * functions and references alone, and walk lists in a loop. */
#ifndef EVAL_AD_H
#define EVAL_AD_H

#include "eval/builtin.h"

#define BUILTIN(name, nargs, fn) bool fn(const BuiltinCall *call, Value *out);
#include "eval/ad.def"
#undef BUILTIN

/* Whether v is, or holds (closures included), a dual of a level above `epoch`. */
bool value_is_active_above(Value v, uint64_t epoch);

#endif
