/* SPDX-License-Identifier: Apache-2.0 */
/* A side table: what one room keeps about another room's objects, found by their identity, without
 * keeping those objects alive. A zeroed WeakMap is an empty one. Keys and values are collected
 * objects, by the address that their allocation returned. */
#ifndef BASE_WEAK_H
#define BASE_WEAK_H

#include "base/map.h"

typedef struct WeakMap {
    Map entries;
    size_t sweep_at; /* how many entries there may be before those of dead objects are dropped */
} WeakMap;

/* NULL when there is none, or its object was collected. */
void *weak_find(const WeakMap *m, const void *key);

/* The entry lasts as long as something else refers to the key and to the value. */
void weak_set(WeakMap *m, const void *key, void *value);

/* The entry lasts as long as the key does and keeps the value alive: for ever, where the value refers
 * to the key. */
void weak_set_owned(WeakMap *m, const void *key, void *value);

size_t weak_size(const WeakMap *m); /* entries, dead ones included: for tests */

#endif
