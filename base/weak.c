/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are stored with their bits inverted, so that the collector does not take them for references.
 * An entry's link is memory that is not scanned, which the collector clears when the watched object
 * (the value, or the key of an owned entry) is gone. Dead entries are dropped when the table has
 * doubled, so a table is at most twice as large as what lives. */
#include "base/weak.h"

#include "base/mem.h"

enum { SWEEP_FIRST = 64 };

typedef struct WeakEntry {
    void **link; /* to the watched object; NULL in it once that is gone */
    void *owned; /* the value of an entry that its key owns; else NULL, and the link leads to it */
} WeakEntry;

static const void *hide(const void *key) { return (const void *)~(uintptr_t)key; }

void *weak_find(const WeakMap *m, const void *key) {
    const WeakEntry *e = map_find(&m->entries, hide(key));
    if (!e || !*e->link)
        return NULL;
    return e->owned ? e->owned : *e->link;
}

static void sweep(WeakMap *m) {
    Map live = {0};
    const void *key;
    void *value;
    for (size_t i = 0; map_next(&m->entries, &i, &key, &value);)
        if (*((WeakEntry *)value)->link)
            map_set(&live, key, value);
    m->entries = live;
    m->sweep_at = live.len < SWEEP_FIRST ? SWEEP_FIRST : live.len * 2;
}

static void set(WeakMap *m, const void *key, void *watched, void *owned) {
    if (m->entries.len >= m->sweep_at)
        sweep(m);
    WeakEntry *e = mem_new(WeakEntry);
    e->link = mem_watch(watched);
    e->owned = owned;
    map_set(&m->entries, hide(key), e);
}

void weak_set(WeakMap *m, const void *key, void *value) { set(m, key, value, NULL); }

void weak_set_owned(WeakMap *m, const void *key, void *value) {
    set(m, key, (void *)(uintptr_t)key, value);
}

size_t weak_size(const WeakMap *m) { return m->entries.len; }
