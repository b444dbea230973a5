/* SPDX-License-Identifier: Apache-2.0 */
/* Interned names: two equal texts are one pointer, for the life of the process. */
#ifndef BASE_SYMBOL_H
#define BASE_SYMBOL_H

#include "base/budget.h"

#include <stddef.h>
#include <stdint.h>

typedef struct Symbol {
    uint32_t hash, len;
    const char *text; /* NUL-terminated */
} Symbol;

const Symbol *sym_intern(const char *text);
const Symbol *sym_intern_n(const char *text, size_t len);
const Symbol *sym_qualify(const Symbol *prefix, const Symbol *name); /* "prefix.name" */

/* The candidate nearest to `name` by edit distance, or NULL if none is near enough to suggest or the
 * comparisons would cost more than the budget has (NULL: whatever they cost). */
const Symbol *sym_find_nearest(const Symbol *name, const Symbol *const *candidates, size_t n,
                               Budget *budget);

#endif
