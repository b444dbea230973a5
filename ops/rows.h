/* SPDX-License-Identifier: Apache-2.0 */
/* An operator at all rows at once: what `vmap` runs where no other operator does the same (passes/batch.h).
 *
 *   sort(x), at the rows of X         gives a tensor whose rows are sort(X[0]), sort(X[1]), …
 *
 * Some of the tensors of a call have the rows as their first axis, the others are the same for all rows; the results have
 * the rows as their first axis. The call is planned as that of one row would be, and each recipe gets the rows as an axis
 * more, outside of all others: so there are as many launches as for one row, and every row has the bits that it has
 * alone. Operators without recipes, and those whose sizes follow from elements, do one row after the other. There is at
 * least one row.
 *
 * Such an operator is no part of the table. It has no relation: whoever makes a call of it says the type of the result, which has
 * room for an axis more. It may fail without a diagnostic: whoever runs it finds the error row by row. Its attributes are those of
 * the operator that it is made of. */
#ifndef OPS_ROWS_H
#define OPS_ROWS_H

#include "types/op.h"

typedef struct OpRows {
    const Op *of;
    uint32_t n;           /* tensors of a call, those of a tuple counted one by one */
    const bool *has_rows; /* which of them have the rows as their first axis; at least one */
} OpRows;

const Op *op_over_rows(const Op *of, const bool *has_rows, uint32_t n);

#endif
