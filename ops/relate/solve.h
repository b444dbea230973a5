/* SPDX-License-Identifier: Apache-2.0 */
/* What a relation finds of its arguments from the result and from each other: ranks, and the size
 * that fills a shape.
 *
 * Only what is forced may be found: an argument given a rank here has it in every call that the
 * shape function takes. A rank is given to a shape that is undetermined, and to no declared one. */
#ifndef OPS_RELATE_SOLVE_H
#define OPS_RELATE_SOLVE_H

#include "ops/relate/structured.h"

/* All of these: false after a report. `arg` is an argument, nargs - 1 the result. */

/* The rank of an argument whose shape is undetermined; nothing where it is none of a tensor's. */
bool rel_give_rank(Solver *s, Relation *r, int arg, int64_t rank);
/* The rank of an argument, which its type says or is told. */
bool rel_need_rank(Solver *s, Relation *r, int arg, uint32_t rank);
/* a and b have the same rank: the one that is known gives it to the other. */
bool rel_same_rank(Solver *s, Relation *r, int a, int b);
/* The only rank for which `possible` is true, if there is one. */
bool rel_only_rank(Solver *s, Relation *r, int arg, bool (*possible)(void *ctx, int rank),
                   void *ctx);

/* The sizes of `arg` multiply to as many elements as `others`: where all others and all but one of
 * its own are known, that one is found. */
bool rel_fill(Solver *s, Relation *r, int arg, uint32_t n, Type *const *dims, uint32_t nothers,
              Type *const *others);

/* a / b, which must be whole. While a is open and this is no polynomial, a fresh size: what it turns
 * out to be may tell a, which the floor of the quotient would not. */
Type *rel_quotient(Solver *s, Type *a, Type *b);

/* REL_WAIT, with the result a tensor of this rank and dtype already; done where an argument's rank is
 * unknown, and so are the sizes. */
RelStatus rel_wait_rank(Solver *s, Relation *r, uint32_t rank, Type *dtype);

#endif
