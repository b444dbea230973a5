/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map from pointer identity (a Symbol, an Expr, an Op) to pointer. Open addressing,
 * collected. A zeroed Map is an empty map. Iteration order is insertion order. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct MapEntry {
    const void *key; /* NULL once deleted */
    void *value;
} MapEntry;

/* Room on the stack for the first entries of a map that serves one walk: most walks need no more, and take nothing from
 * the collector. */
enum { MAP_ROOM = 32 };
typedef struct MapRoom {
    MapEntry entries[MAP_ROOM];
    uint32_t index[2 * MAP_ROOM];
} MapRoom;

typedef struct Map {
    MapEntry *entries; /* in insertion order, deleted ones with key NULL */
    uint32_t *index;   /* open-addressed positions into entries, +1 */
    size_t len, used, cap;
    const MapRoom *room; /* where a map of one walk began; or NULL */
} Map;

/* An empty map that begins in the room; NULL: it has none. Nobody copies it, and who began it ends it: its memory serves the next such map.
 * One that is left by a jump is collected. */
void map_begin(Map *m, MapRoom *room);
void map_end(Map *m);

void *map_find(const Map *m, const void *key); /* NULL when absent */
bool map_has(const Map *m, const void *key);
void map_set(Map *m, const void *key, void *value); /* key must not be NULL */
/* Where the value of the key stands, until another is set: NULL where the key is new. */
void **map_at(Map *m, const void *key);
/* Sets the key to itself; whether it was not there. */
bool map_enter(Map *m, const void *key);
bool map_remove(Map *m, const void *key);
void map_clear(Map *m);
void map_add(Map *to, const Map *from); /* all that is there */

/* for (size_t i = 0; map_next(m, &i, &key, &value);) */
bool map_next(const Map *m, size_t *i, const void **key, void **value);

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);

#endif
