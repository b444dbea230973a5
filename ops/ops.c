/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators. It is put together from ops.def and elementwise.def and sorted on first
 * use; after that it never changes. */
#include "base/diag.h"
#include "base/str.h"
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

const char *shape_mode_words(ShapeMode mode) {
    switch (mode) {
    case SHAPE_OF_SHAPES: return "the sizes of the arguments";
    case SHAPE_OF_DATA: return "the sizes and values of the arguments";
    case SHAPE_BOUND:
        return "the sizes and values of the arguments; before it has run only a bound is known";
    }
    BUG("an unknown mode of shape functions");
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

int op_attr_index(const Op *op, const char *name) {
    for (int i = 0; i < op->nattrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return i;
    return -1;
}

OpArg op_arg(const Op *op, int i) {
    OpArg arg = {0};
    const char *p = op->args ? op->args : "";
    for (; i > 0 && *p; i--) {
        p += strcspn(p, ",");
        p += strspn(p, ", ");
    }
    if (i < 0 || !*p)
        return arg;
    arg.tuple = *p == '(';
    p += arg.tuple;
    size_t len = strcspn(p, ",)=");
    arg.name = fmt_text("%.*s", (int)len, p);
    arg.optional = p[len] == '=';
    if (arg.optional)
        arg.n = strtoll(p + len + 1, NULL, 10);
    return arg;
}
