/* SPDX-License-Identifier: Apache-2.0 */
/* The order of sort, for operators that sort inside. */
#ifndef OPS_SORT_H
#define OPS_SORT_H

#include "types/op.h"

/* order[0 .. count-1]: the places of a vector's elements in ascending order, equal ones as they
 * stand; nan last. */
void sort_vector(const OpCall *call, const Tensor *t, int64_t *order);
/* Whether two elements stand side by side in that order as one: neither goes before the other. */
bool sort_is_equal(const Tensor *t, int64_t a, int64_t b);

#endif
