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

#include "eval/leaf_map.h"

#define AD(name, nargs, fn, effects, gives) bool fn(const BuiltinCall *call, Value *out);
#include "types/core/ad.def"
#undef AD

/* A tensor of `fill`, the same in all calls of one map, with the shape and dtype of the float tensor v (through its
 * duals). The tensors of one map share their elements where they can, so that a list of which one element was used has
 * a derivative that is hardly larger than that element's. */
Value value_filled_like(LeafMap *m, Value v, double fill);
/* A reference inside of a derivative. */
Value ad_new_ref(Value v);
/* Whether b has the dtype and shape of the float tensor a. */
bool value_has_form(Value a, Value b);
/* Whether a dual of a level from `least` to `most` is in v, closures and references included. */
bool value_holds_dual(Value v, uint64_t least, uint64_t most);
/* The same of the levels above `epoch`. */
bool value_is_active_above(Value v, uint64_t epoch);

#endif
