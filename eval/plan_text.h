/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine does with a program's tensors, as a program: the memory dialect of the thesis (J. Roesch 2020, section
 * 5.4) in Relay's own text, for `relay ir --pass=plan`.
 *
 *     let y = memory.invoke_mut(fn (x, c, Primitive=1, launches=1) { sigmoid(x) * c }(x, c), (memory.reuse(x),));
 *     memory.kill(c);
 *
 * Nothing is decided here. The function is made into instructions as it is when it runs (eval/resolve.h): which
 * operators are one group, which bindings are in it (eval/fuse.h), what ends at it (eval/own.h). Where types say all
 * sizes, the group's template is made as it is at its first run (ops/recipe/template.h), and says in how many launches it
 * runs, how much room it takes besides, and which operands its results may be written over; sizes that are parameters stay
 * so, and where one is not known at all the place of a result is found when it runs.
 *
 * The text is a program: the module `memory` says of each function what the machine does there, and gives the values. */
#ifndef EVAL_PLAN_TEXT_H
#define EVAL_PLAN_TEXT_H

#include "eval/interp.h"

/* e, a function or the expression of an item, after the passes. */
Expr *plan_text(Interp *in, Expr *e);

#endif
