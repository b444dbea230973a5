/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are stored with their bits inverted, so that the collector does not take them for references.
 * An entry's links are memory that is not scanned, which the collector clears when the object is gone.
 * The key is watched in every entry: its address may be given to another object, which must not find
 * what was kept of the dead one. Dead entries are dropped when the table has doubled, so a table is at
 * most twice as large as what lives. */
#include "base/weak.h"

#include "base/mem.h"

enum { SWEEP_FIRST = 64 };

typedef struct WeakEntry {
    void **key;   /* holds the key, or NULL once that was collected */
    void **value; /* the same of the value; NULL in an entry that its key owns */
    void *owned;  /* the value of such an entry */
} WeakEntry;

static bool is_alive(const WeakEntry *e) { return *e->key && (!e->value || *e->value); }

static const void *hide(const void *key) { return (const void *)~(uintptr_t)key; }

void *weak_find(const WeakMap *m, const void *key) {
    const WeakEntry *e = map_find(&m->entries, hide(key));
    if (!e || !is_alive(e))
        return NULL;
    return e->value ? *e->value : e->owned;
}

static void sweep(WeakMap *m) {
    Map live = {0};
    const void *key;
    void *value;
    for (size_t i = 0; map_next(&m->entries, &i, &key, &value);)
        if (is_alive(value))
            map_set(&live, key, value);
    m->entries = live;
    m->sweep_at = live.len < SWEEP_FIRST ? SWEEP_FIRST : live.len * 2;
}

static void set(WeakMap *m, const void *key, void *value, void *owned) {
    if (m->entries.len >= m->sweep_at)
        sweep(m);
    WeakEntry *e = mem_new(WeakEntry);
    e->key = mem_watch((void *)(uintptr_t)key);
    e->value = value ? mem_watch(value) : NULL;
    e->owned = owned;
    map_set(&m->entries, hide(key), e);
}

void weak_set(WeakMap *m, const void *key, void *value) { set(m, key, value, NULL); }

void weak_set_owned(WeakMap *m, const void *key, void *value) { set(m, key, NULL, value); }

size_t weak_size(const WeakMap *m) { return m->entries.len; }
