/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators. It is put together from ops.def and elementwise.def and sorted on first
 * use; after that it never changes. */
#include "base/diag.h"
#include "ops/elementwise.h"
#include "types/op.h"

#include <stdlib.h>
#include <string.h>

#define OP(symbol) extern const Op op_##symbol;
#define UNARY(symbol, ...) OP(symbol)
#define TEST(symbol, ...) OP(symbol)
#define BINARY(symbol, ...) OP(symbol)
#define COMPARE(symbol, ...) OP(symbol)
#include "ops/elementwise.def"
#include "ops/ops.def"
#undef OP

#define OP(symbol) &op_##symbol,
static const Op *table[] = {
#include "ops/elementwise.def"
#include "ops/ops.def"
};
#undef OP

static int by_name(const void *a, const void *b) {
    return strcmp((*(const Op *const *)a)->name, (*(const Op *const *)b)->name);
}

static const Op *const *sorted(void) {
    static bool ready;
    if (!ready) {
        ready = true;
        qsort(table, op_count(), sizeof table[0], by_name);
    }
    return table;
}

size_t op_count(void) { return sizeof table / sizeof table[0]; }
const Op *op_at(size_t i) { return sorted()[i]; }

static int compare_name(const void *name, const void *op) {
    return strcmp(name, (*(const Op *const *)op)->name);
}

const Op *op_find(const Symbol *name) {
    const Op *const *found = bsearch(name->text, sorted(), op_count(), sizeof table[0],
                                     compare_name);
    return found ? *found : NULL;
}
