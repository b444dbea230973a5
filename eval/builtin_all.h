/* SPDX-License-Identifier: Apache-2.0 */
/* The builtins of builtin.def, and what they share. */
#ifndef EVAL_BUILTIN_ALL_H
#define EVAL_BUILTIN_ALL_H

#include "eval/builtin.h"

#define BUILTIN(name, nargs, fn, effects) bool fn(const BuiltinCall *call, Value *out);
#include "types/core/builtin.def"
#undef BUILTIN

/* The prelude's List and Option. */
/* A constructor of the prelude. */
Ctor *builtin_ctor(const BuiltinCall *call, const char *name);
Value builtin_list(const BuiltinCall *call, const Value *items, size_t n);
Value builtin_some(const BuiltinCall *call, Value v);
Value builtin_none(const BuiltinCall *call);
/* The next element of a list; false at its end. */
bool builtin_list_next(Value *list, Value *item);

#endif
