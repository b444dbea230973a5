/* SPDX-License-Identifier: Apache-2.0 */
/* The symbol table: an open-addressed set that only grows. One of the two pieces of global state;
 * used from the session's thread alone. */
#include "base/symbol.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static const Symbol **table;
static size_t table_len, table_cap;

static void grow(void) {
    size_t cap = table_cap ? table_cap * 2 : 1024;
    const Symbol **bigger = mem_new_n(const Symbol *, cap);
    for (size_t i = 0; i < table_cap; i++)
        if (table[i]) {
            size_t at = table[i]->hash & (cap - 1);
            while (bigger[at])
                at = (at + 1) & (cap - 1);
            bigger[at] = table[i];
        }
    table = bigger;
    table_cap = cap;
}

const Symbol *sym_intern_n(const char *text, size_t len) {
    if (table_len * 2 >= table_cap)
        grow();
    uint32_t hash = (uint32_t)hash_bytes(text, len, 0);
    size_t at = hash & (table_cap - 1);
    for (; table[at]; at = (at + 1) & (table_cap - 1))
        if (table[at]->hash == hash && table[at]->len == len &&
            memcmp(table[at]->text, text, len) == 0)
            return table[at];
    Symbol *s = mem_new(Symbol);
    *s = (Symbol){hash, (uint32_t)len, mem_strndup(text, len)};
    table[at] = s;
    table_len++;
    return s;
}

const Symbol *sym_intern(const char *text) { return sym_intern_n(text, strlen(text)); }

const Symbol *sym_qualify(const Symbol *prefix, const Symbol *name) {
    Str text = {0};
    str_add_n(&text, prefix->text, prefix->len);
    str_add_char(&text, '.');
    str_add_n(&text, name->text, name->len);
    return sym_intern_n(text.text, text.len);
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

enum { MAX_COMPARED = 128 };

/* Optimal string alignment distance: insert, delete, replace, swap neighbours. A change of case
 * alone costs a third of an edit; the unit is a third. Gives up above `limit`. */
static unsigned edit_distance(const Symbol *a, const Symbol *b, unsigned limit) {
    unsigned rows[3][MAX_COMPARED + 1];
    for (size_t j = 0; j <= b->len; j++)
        rows[0][j] = (unsigned)j * 3;
    for (size_t i = 1; i <= a->len; i++) {
        unsigned *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        unsigned best = row[0] = (unsigned)i * 3;
        for (size_t j = 1; j <= b->len; j++) {
            char x = a->text[i - 1], y = b->text[j - 1];
            unsigned d = up[j - 1] + (x == y ? 0 : lower(x) == lower(y) ? 1 : 3);
            if (up[j] + 3 < d)
                d = up[j] + 3;
            if (row[j - 1] + 3 < d)
                d = row[j - 1] + 3;
            if (i > 1 && j > 1 && x == b->text[j - 2] && a->text[i - 2] == y && up2[j - 2] + 3 < d)
                d = up2[j - 2] + 3;
            row[j] = d;
            if (d < best)
                best = d;
        }
        if (best > limit)
            return limit + 1;
    }
    return rows[a->len % 3][b->len];
}

const Symbol *sym_find_nearest(const Symbol *name, const Symbol *const *candidates, size_t n,
                               Budget *budget) {
    if (name->len == 0 || name->len > MAX_COMPARED || !budget_draw(budget, (int64_t)n / 2))
        return NULL;
    /* One edit in three letters; one in two-letter names; only case in one-letter names. */
    unsigned limit = name->len == 1 ? 1 : name->len < 6 ? 3 : name->len / 3 * 3;
    if (limit > 12)
        limit = 12;
    const Symbol *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        const Symbol *c = candidates[i];
        uint32_t gap = c->len > name->len ? c->len - name->len : name->len - c->len;
        if (c == name || c->len > MAX_COMPARED || gap * 3 > limit)
            continue;
        if (!budget_draw(budget, (int64_t)name->len * c->len / 4))
            return NULL;
        unsigned d = edit_distance(name, c, limit);
        if (d <= limit) {
            nearest = c;
            if (d == 0)
                break;
            limit = d - 1; /* only a nearer one replaces it */
        }
    }
    return nearest;
}
