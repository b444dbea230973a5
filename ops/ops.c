/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators. It is put together from ops.def and elementwise.def and sorted on first
 * use; after that it never changes. */
#include "base/diag.h"
#include "ops/elementwise.h"
#include "types/op.h"

#include <stdlib.h>
#include <string.h>

#define OP(symbol) extern const Op op_##symbol;
#include "ops/ops.def"
#undef OP

static const Op *const structured[] = {
#define OP(symbol) &op_##symbol,
#include "ops/ops.def"
#undef OP
};

enum { NSTRUCTURED = sizeof structured / sizeof structured[0] };

static const Op *table[NSTRUCTURED + ELEMENTWISE_COUNT];

static int by_name(const void *a, const void *b) {
    return strcmp((*(const Op *const *)a)->name, (*(const Op *const *)b)->name);
}

static const Op *const *sorted(void) {
    if (!table[0]) {
        for (size_t i = 0; i < ELEMENTWISE_COUNT; i++)
            table[NSTRUCTURED + i] = &elementwise_table[i].op;
        memcpy(table, structured, sizeof structured);
        qsort(table, op_count(), sizeof table[0], by_name);
        for (size_t i = 0; i < op_count(); i++) /* for the `where` of a signature */
            if (!rel_find(sym_intern(table[i]->relation->name)))
                rel_register(table[i]->relation);
    }
    return table;
}

size_t op_count(void) { return sizeof table / sizeof table[0]; }
const Op *op_at(size_t i) { return sorted()[i]; }

static int compare_name(const void *name, const void *op) {
    return strcmp(name, (*(const Op *const *)op)->name);
}

static const Op *find(const char *name) {
    const Op *const *found = bsearch(name, sorted(), op_count(), sizeof table[0], compare_name);
    return found ? *found : NULL;
}

const Op *op_find(const Symbol *name) { return find(name->text); }

const Op *op_get(const char *name) {
    const Op *op = find(name);
    if (!op)
        BUG("no operator %s", name);
    return op;
}
