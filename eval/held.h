/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions the value of a `let` holds. */
#ifndef EVAL_HELD_H
#define EVAL_HELD_H

#include "passes/reverse/reverse.h"

/* PassCtx.find_held of an Interp: the functions in the value that g has, which is of that type. type NULL: what the value itself
 * is, alone. False where g has no value yet, or not all of them are known. */
bool held_find(void *interp, const Global *g, Type *type, HeldFunctions *out);

#endif
