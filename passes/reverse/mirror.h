/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives whose accumulators are cells: Note [Mirrors] in mirror.c. */
#ifndef PASSES_REVERSE_MIRROR_H
#define PASSES_REVERSE_MIRROR_H

#include "passes/reverse/internal.h"

/* Whether it makes, reads or writes a cell or reference: a call of `ad.mirror…`, `ref(x)`, `!r` or `r := x`. */
bool is_of_cells(const Expr *e);
/* Its arguments, at most 4; returns how many. */
uint32_t args_of_cells(const Expr *e, Expr **args);
/* Before a function is read: whether it has any that the program follows. */
void note_cells(Program *p, Expr *fn);
/* Whether some of these are in e, which are active then, whatever they are made of. */
bool makes_cells(const Program *p, Expr *e);
/* The same where e calls what has them. */
bool touches_cells(Reader *r, Expr *e);
/* Whether there is a reference in e, or in what it calls. */
bool meets_references(Reader *r, Expr *e);
/* Leaves a program whose references are followed, and that is given some from outside. */
void references_check_source(Program *p, const Expr *fn);
/* The same where one from outside, which nothing stands beside, is handed on. */
void references_check_atom(Reader *r, const Expr *atom);
/* Reads `ref(x)`, `!r` or `r := x` where references are followed. */
Expr *read_of_reference(Reader *r, Expr *e);
/* Reads such a call, whose arguments are atoms. */
Expr *read_mirror_call(Reader *r, Expr *call);
/* It as a call of what adds to cells one by one: cellwise.c. NULL: it adds to none. */
Expr *cellwise(PassCtx *ctx, const Expr *call);
/* Binds the value of such a step, and its tangent. */
void follow_mirror(Way *w, const Step *s);
/* Whether a step adds to cells, or may. */
bool step_touches_cells(Instance *n, const Step *s);
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
