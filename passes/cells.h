/* SPDX-License-Identifier: Apache-2.0 */
/* Note [Own cells]. In fig. 4.1 a value has one cell, under all the names it gets, and a cotangent is added to the cell
 * where it arises. What a function gives back, or puts on a list, is added to by code that its own way back does not
 * know; so code of derivatives can hand over a cotangent for each result, and no more than one. Hence a tensor that the
 * program puts into a tuple, a record or data gets a cell of its own there:
 *
 *   let h = f(x);  (h, (h, c))      is      let h = f(x);  (ad.own(h), (ad.own(h), ad.own(c)))
 *
 * On the way back the cell of `ad.own(h)` is added to that of h, at once. The sum is the same, added in another order; it
 * is the same order on every engine, whatever passes run. A function is stored as one that captured `ad.own(x)` for each
 * tensor x that it captured itself, by name: for one of two names twice, `fn (v) { v * x * y }` behind `let y = x`, so passes leave
 * it both (literal_with_own_names in passes/inline.h). A literal is written so, `let w = ad.own(x); (fn (v) { v * w }, 1)`:
 * where it is taken out again, it is known. What is neither is stored as it is: the cells are in it already. Inside of
 * derivatives `ad.own` gives each of them a cell, the innermost last.
 *
 * The core says where that happens by a mark (Expr.own_cells) rather than by calls, which only derivatives need: the
 * reference and the twins act on the mark, and what becomes code of a derivative has the calls in the place of
 * marks before any pass takes a tuple apart. */
#ifndef PASSES_CELLS_H
#define PASSES_CELLS_H

#include "types/core/core.h"

/* Whether a value of that type may be a float tensor, which has a cell. */
bool cells_in_type(Type *t);
/* Whether e is `ad.own(x)`. */
bool cells_is_own(const Expr *e);
/* A tuple, a call of a constructor or an update that is marked, with calls in place of the mark; others as they are. */
Expr *cells_of_parts(Expr *e);
/* The same of all that are in e, but for what is written as an argument of `vmap`: code of all rows is made of that. */
Expr *cells_expose(Expr *e);
/* A function literal behind names for cells of what it captured, or itself where it needs none; NULL where that is not known. */
Expr *cells_of_literal(Expr *fn);
/* Whether nothing else adds to the cells of the tensors that e may be: an operator gives its result a new one. */
bool cells_are_new(const Expr *e);
/* e without these calls: for code that no derivative is made of. */
Expr *cells_drop(Expr *e);

#endif
