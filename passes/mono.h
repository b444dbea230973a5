/* SPDX-License-Identifier: Apache-2.0 */
/* Types of one call: a definition that serves many types is copied with those that a call knows.
 *
 *   def scaled[b](x: Tensor[(), b], k) { x * k }    in the copy for  scaled(y: float64, 2.0)  x * k is a float64
 *
 * A copy (an inlined body, an instance of specialise) then has scalars where the definition has values of any form, so
 * fold, fusion and derivatives know what they have. Sizes of axes stay symbolic where they are a parameter of their
 * own; a type that is a parameter is taken as it is. */
#ifndef PASSES_MONO_H
#define PASSES_MONO_H

#include "types/core/core.h"

/* Type parameters of a function and what a call says that they are. */
typedef struct Mono {
    Type **from, **to;
    uint32_t n;
    bool has_sizes; /* sizes and shapes are among them */
    bool opens;     /* what the parameters are has unknown sizes */
    Substitution by;
} Mono;

/* What the arguments say of the parameters of fn. NULL where they say nothing. */
Mono *mono_of_call(const Expr *fn, Expr *const *args, uint32_t nargs);
/* Parameters of a copy of fn in place of those that `known`, which may be NULL, says nothing of. A copy is called within
 * copies of its own definition, too, and has their types of what it takes from them: without, both would be one parameter. */
Mono *mono_apart(const Mono *known, const Expr *fn);
/* The same of variables that stand for values of closed types: sizes of axes are known too. */
Mono *mono_of_rows(Var *const *params, Expr *const *args, uint32_t n);
/* Of no parameter: a copy gets the types that follow from those of its variables. */
Mono *mono_of_nothing(void);
/* The same for a derivative: a size that only the caller can name is unknown in what a parameter is. */
Mono *mono_of_derivative(const Expr *fn, Expr *const *args, uint32_t nargs);
/* A type in a copy. m may be NULL. */
Type *mono_type(Mono *m, Type *t);
/* Gives a node that was just copied, its parts copied already, the type that it has here. */
void mono_settle(Mono *m, Expr *copy);

#endif
