/* SPDX-License-Identifier: Apache-2.0 */
/* Entries in insertion order plus an open-addressed index of positions (as Python's dict). A removed
 * entry leaves the index at once, those behind it moving up: a name bound and dropped again and again,
 * as a parameter is, would else search through all its former places. A map of few entries, as most
 * are, has no index: its entries are looked through. */
#include "base/map.h"

#include "base/mem.h"

#include <string.h>

enum { FEW = 8 };

/* Note [Storage of walks]. Walks follow each other by the thousand, and what their maps need beyond the room on the stack was
 * a quarter of all memory that passes took. Storage that such a map leaves waits for the next one, by its size: zero but
 * for its first entry, whose key is the next of that size and whose value is its index. */
enum { LEAST_STORAGE = 2 * MAP_ROOM, STORAGES = 9 };
static MapEntry *storages[STORAGES]; /* of LEAST_STORAGE << i entries */

static MapEntry **storages_of(size_t cap) {
    int i = 0;
    while (i < STORAGES && (size_t)LEAST_STORAGE << i < cap)
        i++;
    return i < STORAGES && (size_t)LEAST_STORAGE << i == cap ? &storages[i] : NULL;
}

static size_t index_size(const Map *m) { return m->cap * 2; } /* a power of two */

static size_t slot_of(const Map *m, const void *key) {
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;
    return (size_t)(h ^ h >> 32) & (index_size(m) - 1);
}

static MapEntry *find(const Map *m, const void *key) {
    if (!m->cap || !key)
        return NULL;
    if (!m->index) {
        for (size_t i = 0; i < m->used; i++)
            if (m->entries[i].key == key)
                return &m->entries[i];
        return NULL;
    }
    size_t mask = index_size(m) - 1;
    for (size_t i = slot_of(m, key);; i = (i + 1) & mask) {
        uint32_t at = m->index[i];
        if (at == 0)
            return NULL;
        if (m->entries[at - 1].key == key)
            return &m->entries[at - 1];
    }
}

static void insert_index(Map *m, const void *key, size_t position) {
    if (!m->index)
        return;
    size_t mask = index_size(m) - 1, i = slot_of(m, key);
    while (m->index[i])
        i = (i + 1) & mask;
    m->index[i] = (uint32_t)position + 1;
}

static const MapRoom no_room; /* of maps that begin with none */

void map_begin(Map *m, MapRoom *room) {
    if (!room) {
        *m = (Map){.room = &no_room};
        return;
    }
    memset(room->index, 0, sizeof room->index);
    *m = (Map){.entries = room->entries, .index = room->index, .cap = MAP_ROOM, .room = room};
}

void map_end(Map *m) {
    bool is_apart = m->room && m->cap && m->entries != m->room->entries;
    MapEntry **same = is_apart ? storages_of(m->cap) : NULL;
    if (same) {
        memset(m->entries, 0, sizeof(MapEntry) * m->used);
        m->entries[0] = (MapEntry){*same, m->index};
        *same = m->entries;
    } else if (is_apart) {
        mem_free(m->entries);
        mem_free(m->index);
    }
    *m = (Map){0};
}

/* Room for so many entries; what waits for a walk is taken where m is the map of one. */
static void find_storage(Map *m) {
    MapEntry **same = m->room ? storages_of(m->cap) : NULL;
    if (same && *same) {
        m->entries = *same;
        m->index = m->entries[0].value;
        *same = (MapEntry *)(uintptr_t)m->entries[0].key;
        m->entries[0] = (MapEntry){NULL, NULL};
    } else {
        m->entries = mem_new_n(MapEntry, m->cap);
        if (m->cap > FEW)
            m->index = mem_bytes(sizeof(uint32_t) * index_size(m));
    }
    if (m->index)
        memset(m->index, 0, sizeof(uint32_t) * index_size(m));
}

static void rehash(Map *m) {
    Map smaller = *m;
    const MapEntry *old = m->entries;
    size_t old_used = m->used, cap = m->room ? LEAST_STORAGE : 4;
    while (cap < m->len * 2)
        cap *= 2;
    Map larger = {.cap = cap, .len = m->len, .room = m->room};
    find_storage(&larger); /* where memory runs out here, the map stays as it was */
    *m = larger;
    for (size_t i = 0; i < old_used; i++)
        if (old[i].key) {
            insert_index(m, old[i].key, m->used);
            m->entries[m->used++] = old[i];
        }
    map_end(&smaller);
}

void *map_find(const Map *m, const void *key) {
    MapEntry *e = find(m, key);
    return e ? e->value : NULL;
}

bool map_has(const Map *m, const void *key) { return find(m, key) != NULL; }

/* The entry of the key; *is_new: it was not there. Where the search ends its position is noted. */
static inline MapEntry *enter(Map *m, const void *key, bool *is_new) {
    *is_new = false;
    if (m->index) {
        size_t mask = index_size(m) - 1, i = slot_of(m, key);
        for (; m->index[i]; i = (i + 1) & mask)
            if (m->entries[m->index[i] - 1].key == key)
                return &m->entries[m->index[i] - 1];
        if (m->used < m->cap)
            m->index[i] = (uint32_t)m->used + 1;
    } else {
        for (size_t i = 0; i < m->used; i++)
            if (m->entries[i].key == key)
                return &m->entries[i];
    }
    if (m->used == m->cap) {
        rehash(m);
        insert_index(m, key, m->used);
    }
    MapEntry *e = &m->entries[m->used++];
    *e = (MapEntry){key, NULL};
    m->len++;
    *is_new = true;
    return e;
}

void **map_at(Map *m, const void *key) {
    bool is_new;
    return &enter(m, key, &is_new)->value;
}

void map_set(Map *m, const void *key, void *value) {
    bool is_new;
    enter(m, key, &is_new)->value = value;
}

bool map_enter(Map *m, const void *key) {
    bool is_new;
    enter(m, key, &is_new)->value = (void *)(uintptr_t)key;
    return is_new;
}

/* Closes the gap at `hole`: an entry further on that could stand there moves into it. */
static void close_gap(Map *m, size_t hole) {
    size_t mask = index_size(m) - 1;
    for (size_t i = (hole + 1) & mask; m->index[i]; i = (i + 1) & mask) {
        size_t home = slot_of(m, m->entries[m->index[i] - 1].key);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->index[hole] = m->index[i];
            hole = i;
        }
    }
    m->index[hole] = 0;
}

bool map_remove(Map *m, const void *key) {
    MapEntry *e = find(m, key);
    if (!e)
        return false;
    if (m->index) {
        size_t i = slot_of(m, key), mask = index_size(m) - 1;
        while (m->index[i] != (uint32_t)(e - m->entries) + 1)
            i = (i + 1) & mask;
        close_gap(m, i);
    }
    *e = (MapEntry){NULL, NULL};
    m->len--;
    while (m->used && !m->entries[m->used - 1].key)
        m->used--;
    return true;
}

void map_clear(Map *m) { *m = (Map){0}; }

void map_add(Map *to, const Map *from) {
    const void *key;
    void *value;
    for (size_t i = 0; map_next(from, &i, &key, &value);)
        map_set(to, key, value);
}

bool map_next(const Map *m, size_t *i, const void **key, void **value) {
    while (*i < m->used) {
        MapEntry *e = &m->entries[(*i)++];
        if (e->key) {
            *key = e->key;
            *value = e->value;
            return true;
        }
    }
    return false;
}

/* FNV-1a over eight bytes at a time, with a final mix (MurmurHash3's). */
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed) {
    const unsigned char *b = p;
    uint64_t h = seed ^ 0xCBF29CE484222325u ^ n * 0x9E3779B97F4A7C15u;
    for (; n >= 8; n -= 8, b += 8) {
        uint64_t w;
        memcpy(&w, b, 8);
        h = (h ^ w) * 0x100000001B3u;
        h ^= h >> 29;
    }
    for (; n; n--, b++)
        h = (h ^ *b) * 0x100000001B3u;
    h ^= h >> 33;
    h *= 0xFF51AFD7ED558CCDu;
    h ^= h >> 33;
    h *= 0xC4CEB9FE1A85EC53u;
    return h ^ h >> 33;
}
