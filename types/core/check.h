/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that core keeps from inference to the evaluator, through every pass:
 *
 *   typed      every node has a type, and no type holds the error type
 *   scope      a variable is used where it is bound, and bound once in the whole expression
 *   shape      a node has the parts that its kind asks for, as many as their types say; constructors are those of values
 *   types      parts fit their places: arguments their parameters, arms the match, a value its variable.
 *              A type that is not known (a parameter, a variable, `?`) fits any of its kind
 *   relations  an operator's relation holds of its arguments, where their types are known
 *   effects    a function whose type says that it makes no reference makes none
 *
 * A mistake found here is ours, never the user's. */
#ifndef TYPES_CORE_CHECK_H
#define TYPES_CORE_CHECK_H

#include "types/core/core.h"

/* What e breaks first, in words; NULL when it is sound. given: variables that are bound around it, or NULL
 * for none. */
const char *core_check(Expr *e, const VarVec *given);

/* Whether a value of one type may be of the other. */
bool core_types_fit(Type *a, Type *b);
/* The type that an operator's relation gives the result of a call, where the types of the arguments are closed and no
 * attribute waits for a value. NULL where they are not, or where the relation does not hold: then *wrong says why. */
Type *core_type_of_call(const Expr *call, const char **wrong);

#endif
