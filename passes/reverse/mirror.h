/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives whose accumulators are cells: Note [Mirrors] in mirror.c. */
#ifndef PASSES_REVERSE_MIRROR_H
#define PASSES_REVERSE_MIRROR_H

#include "passes/reverse/internal.h"

/* Gives the places of a function that was read variables for their mirrors. */
void mirrors_find(Instance *n);
/* The mirror of the value of an atom; absent where that is a constant. */
Expr *mirror_of(Instance *n, const Build *b, const Expr *atom);
/* Those of the slots of a call, in their order. */
Expr **mirrors_of_slots(const Build *b, const Step *call);
/* (value, its mirror). */
Expr *mirror_pair(Instance *n, const Build *b, Expr *atom);
/* Binds the value of a step and its mirror to what such a pair holds. */
void mirror_take(const Step *s, Expr *pair, Block *into);
/* Binds the mirrors of the parts of a place, whose own is bound. */
void mirror_bind_parts(const Place *p, Block *into);
/* Binds the mirror of what a step gives that is no call of an instance and no branch: before the step where that adds to
 * what it reads in place, else behind it. */
void mirror_before_step(Instance *n, const Step *s, Block *into);
void mirror_step(Instance *n, const Step *s, Block *into);
/* Binds those of what the pattern of an arm takes apart. */
void mirror_enter(const Choice *c, Block *into);
/* The way back of a call of an instance. ct: absent. */
void mirror_way_call(Way *w, const Step *s, Expr *ct);
/* The way back of a builtin by the mirrors of what it reads; false where its cotangent is added as that of an operator is, and
 * of other steps. */
bool mirror_way_builtin(Way *w, const Step *s);

#endif
