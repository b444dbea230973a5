/* SPDX-License-Identifier: Apache-2.0 */
/* Cells and references where a derivative follows them: Notes [Mirrors of mirrors] and [References beside references] in
 * beside.c. */
#ifndef PASSES_REVERSE_BESIDE_H
#define PASSES_REVERSE_BESIDE_H

#include "passes/reverse/internal.h"

/* Whether it makes, reads or writes a cell or reference: a call of `ad.mirror…`, `ref(x)`, `!r` or `r := x`. */
bool is_of_cells(const Expr *e);
/* Its arguments; returns how many. */
enum { MOST_CELL_ARGS = 4 };
uint32_t args_of_cells(const Expr *e, Expr **args);
/* Which of them have something beside them, a tangent or a mirror: a bit each. */
uint32_t beside_args(const Expr *e);
/* What gives what stands beside its result, of what stands beside these arguments. */
Expr *beside(const Build *b, const Expr *e, Expr *const *of);
/* Before a function is read: whether it has any that the program follows. */
void note_cells(Program *p, Expr *fn);
/* Whether some of these are in e, which are active then, whatever they are made of. */
bool makes_cells(const Program *p, Expr *e);
/* The same where e calls what has them. */
bool touches_cells(Reader *r, Expr *e);
/* Whether e may give references that it makes, where these are followed: they are active, whatever they are made of. */
bool makes_references(Reader *r, Expr *e);
/* Whether there is a reference in e, or in what it calls. */
bool meets_references(Reader *r, Expr *e);
/* Leaves a program whose references are followed, and that is given some from outside. */
void references_check_source(Program *p, const Expr *fn);
/* The same where one from outside, which nothing stands beside, is handed on. */
void references_check_atom(Reader *r, const Expr *atom);
/* Reads `ref(x)`, `!r` or `r := x` where references are followed. */
Expr *read_of_reference(Reader *r, Expr *e);
/* Reads a call of `ad.mirror…`, whose arguments are atoms. */
Expr *read_mirror_call(Reader *r, Expr *call);
/* It as a call of what adds to cells one by one: cellwise.c. NULL: it adds to none. */
Expr *cellwise(PassCtx *ctx, const Expr *call);
/* Binds the value of a step that is of cells, and its tangent. */
void follow_cells(Way *w, const Step *s);
/* Whether a step adds to cells, or may. */
bool step_touches_cells(Instance *n, const Step *s);

#endif
