/* SPDX-License-Identifier: Apache-2.0 */
/* A budget of work that is useful and not necessary: looking for what a mistake's author may have meant.
 *
 * Everything that looks for suggestions draws from the one budget of its run: texts read again, items
 * checked again and the solver's steps in them, names compared by spelling, walks over tokens. Work is
 * counted and never timed, so what is suggested depends on the program alone. One unit is about ten
 * nanoseconds of work on a machine of 2020; a run has a twentieth of a second, an item half of that.
 * When the budget is spent, the search ends and the message stands without a suggestion. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BUDGET_OF_RUN = 6000000,
    BUDGET_OF_ITEM = BUDGET_OF_RUN / 2,
    /* What a piece of work costs, in units. */
    BUDGET_READ_BYTE = 10,  /* a byte of text read again */
    BUDGET_CHECK_BYTE = 30, /* a byte of an item checked again, besides: */
    BUDGET_SOLVER_STEP = 2, /* a step of the solver, and a relation that it runs */
    BUDGET_SOLVER_RUN = 100,
    BUDGET_TRIAL = 2000, /* setting up the check of an edited text */
};

typedef struct Budget {
    int64_t left;  /* of the run */
    int64_t floor; /* what the item under way leaves of it to others */
} Budget;

void budget_begin_run(Budget *b);
/* The search for one item begins, and ends: it has a share of the run's budget. */
void budget_begin_item(Budget *b);
void budget_end_item(Budget *b);
/* The item under way may draw so much at least, where the run has it. */
void budget_lend(Budget *b, int64_t units);
/* Draws what was done or is about to be, unless the budget is spent already; false when it is then. Without a budget (NULL)
 * nothing is bounded. */
bool budget_draw(Budget *b, int64_t units);
bool budget_is_spent(const Budget *b);
int64_t budget_get_left(const Budget *b); /* for the item under way; never negative */

#endif
