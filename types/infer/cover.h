/* SPDX-License-Identifier: Apache-2.0 */
/* What the arms of a `match` cover: L. Maranget, "Warnings for pattern matching", JFP 2007, done for
 * all arms at once and over a graph rather than a tree.
 *
 * A matrix has a row for each arm and a column for each place of the value that is still to be
 * looked at. A place is split by the constructors its column names; every branch keeps the rows that
 * may match there. An arm is useful when it is the first row of a matrix without tests left; a value
 * is missing when a branch has no rows. Places that no row tests are dropped, so that branches which
 * differ in nothing meet again: a matrix seen before is not looked at twice.
 *
 * Guarded arms and arms with float literals cover nothing (LANGUAGE §4). A type without values (`type
 * Void {}`, a type that needs itself) has nothing to cover. */
#ifndef TYPES_INFER_COVER_H
#define TYPES_INFER_COVER_H

#include "types/core/core.h"

enum { COVER_ARMS = 3 };

typedef struct Cover {
    bool complete; /* every value has an arm; false also when `gave_up` left it undecided */
    const char
        *missing; /* otherwise a value without an arm, as a pattern; "_" when every value is one */
    const char *arms[COVER_ARMS]; /* patterns that cover all that is missing: */
    uint32_t narms;               /* how many; 0 when there would be more than COVER_ARMS */
    bool gave_up; /* the problem is NP-hard, and the bound on the work was reached */
    bool *useful; /* whether some value reaches an arm; true of arms that were not looked at */
} Cover;

/* What is matched has the type `type`. partial: only whether arms are useful is wanted. */
Cover cover_arms(const Arm *arms, uint32_t n, Type *type, bool partial);

/* The arms before `arm`, which is not useful, that take the values it could match: one where one
 * does, else a smallest set that does it together. Returns how many (at most `max`), 0 when they are
 * more or looking for them costs too much. To be asked of the arms in order. */
typedef struct Covering Covering;
Covering *covering_new(const Arm *arms, uint32_t n, Type *type);
uint32_t covering_find(Covering *c, uint32_t arm, uint32_t *out, uint32_t max);

/* Whether a value of the type can exist; true where it is not known. */
bool cover_is_inhabited(Type *type);

#endif
