/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions a value holds that was there before a derivative is made. */
#ifndef EVAL_HELD_H
#define EVAL_HELD_H

#include "eval/interp.h"
#include "eval/value.h"
#include "passes/reverse/reverse.h"

/* PassCtx.find_held of an Interp: the functions in the value that g has, which is of that type. type NULL: what the value itself
 * is, alone. False where g has no value yet, or not all of them are known. */
bool held_find(void *interp, const Global *g, Type *type, HeldFunctions *out);

/* The functions in data that a closure captured, and what it captured in turn; NULL where there are none, or not all of them are
 * known. code: of the function that the closure is of. */
HeldFunctions *held_by_closure(Interp *in, const Closure *c, const struct Code *code);

#endif
