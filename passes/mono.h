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
    TypeVec from, to;
    bool has_sizes; /* sizes and shapes are among them */
    bool opens;     /* what the parameters are has unknown sizes */
    bool in_scope;  /* the copy stands where what the call's types mention is known */
    bool is_apart;  /* sizes that the call does not say have names of the copy's own */
    Map met[2];     /* is_apart: types in which those were looked for, parameters and unknowns */
    Substitution by;
} Mono;

/* What the arguments say of the parameters of fn. NULL where they say nothing. */
Mono *mono_of_call(const Expr *fn, Expr *const *args, uint32_t nargs);
/* The same for a body that stands in the place of the call: it has the caller's types, open as they may be, and
 * parameters of its own where they say nothing. */
Mono *mono_of_inlined(const Expr *fn, Expr *const *args, uint32_t nargs);
/* Gives a copy of fn parameters and unknown sizes of its own in the place of those that `known`, which may be NULL, says
 * nothing of. Two copies, as one within the other, would else have one name for two sizes. */
Mono *mono_apart(Mono *known, const Expr *fn);
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
