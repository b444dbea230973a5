/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/packed.h"

#include "base/mem.h"
#include "tensor/buffer.h"

#include <string.h>

enum {
    DUE = 2
}; /* the use at which elements are copied: one product costs about as much as a copy */

struct Packed {
    struct Packed *next;          /* of the same buffer */
    struct Packed *older, *newer; /* of all that have a copy */
    uintptr_t of;                 /* the buffer, hidden from the collector */
    PackedKey key;
    uint32_t uses;
    Buffer *copy; /* or NULL */
};

/* The copies, so that they can be dropped for want of memory. An entry leaves this list before its buffer is
 * reclaimed: packed_forget runs when the buffer is found unreachable. */
static struct {
    struct Packed *newest, *oldest;
    size_t bytes;
} all;

static struct Packed *find(const Buffer *b, const PackedKey *key) {
    for (struct Packed *p = b->packed; p; p = p->next)
        if (memcmp(&p->key, key, sizeof *key) == 0)
            return p;
    return NULL;
}

const void *packed_find(const Buffer *b, const PackedKey *key) {
    const struct Packed *p = find(b, key);
    return p && p->copy ? p->copy->data : NULL;
}

bool packed_is_due(Buffer *b, const PackedKey *key) {
    struct Packed *p = find(b, key);
    if (!p) {
        p = mem_new(struct Packed);
        p->of = ~(uintptr_t)b;
        p->key = *key;
        p->next = b->packed;
        b->packed = p;
    }
    return ++p->uses >= DUE;
}

static void drop(struct Packed *p) {
    if (!p->copy)
        return;
    *(p->older ? &p->older->newer : &all.oldest) = p->newer;
    *(p->newer ? &p->newer->older : &all.newest) = p->older;
    p->older = p->newer = NULL;
    all.bytes -= p->copy->bytes;
    buffer_release(p->copy);
    p->copy = NULL;
    p->uses = 0;
}

void *packed_new(Buffer *b, const PackedKey *key, size_t bytes) {
    struct Packed *p = find(b, key);
    size_t most = buffer_limit() / 4;
    if (!p || p->copy || bytes > most || !buffer_has_room(bytes))
        return NULL;
    while (all.oldest && all.bytes + bytes > most)
        drop(all.oldest);
    p->copy = buffer_new(bytes);
    p->older = all.newest;
    *(all.newest ? &all.newest->newer : &all.oldest) = p;
    all.newest = p;
    all.bytes += bytes;
    return p->copy->data;
}

void packed_forget(Buffer *b) {
    for (struct Packed *p = b->packed; p; p = p->next)
        drop(p);
    b->packed = NULL;
}

bool packed_drop(void) {
    bool any = all.newest != NULL;
    while (all.newest)
        drop(all.newest);
    return any;
}

size_t packed_bytes(void) { return all.bytes; }
