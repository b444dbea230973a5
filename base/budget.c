/* SPDX-License-Identifier: Apache-2.0 */
/* Counting work against a budget; budget.h has the prices. */
#include "base/budget.h"

#include <stddef.h>

void budget_begin_run(Budget *b) { *b = (Budget){.left = BUDGET_OF_RUN}; }

void budget_begin_item(Budget *b) {
    b->floor = b->left > BUDGET_OF_ITEM ? b->left - BUDGET_OF_ITEM : 0;
}

void budget_end_item(Budget *b) { b->floor = 0; }

void budget_lend(Budget *b, int64_t units) {
    if (b->left - b->floor < units)
        b->floor = b->left > units ? b->left - units : 0;
}

bool budget_draw(Budget *b, int64_t units) {
    if (b && !budget_is_spent(b))
        b->left -= units;
    return !budget_is_spent(b);
}

bool budget_is_spent(const Budget *b) { return b && b->left <= b->floor; }

int64_t budget_get_left(const Budget *b) {
    return !b ? INT64_MAX : b->left > b->floor ? b->left - b->floor : 0;
}
