/* SPDX-License-Identifier: Apache-2.0 */
/* Note [Spare tensors] in tensor/spare.h. */
#include "tensor/spare.h"

#include "base/mem.h"
#include "tensor/buffer.h"

#include <string.h>

enum { RANKS = 4, LINES = 16, VIEW = LINES, KINDS, AHEAD = 4 };

struct Spare {
    Tensor **at; /* a stack; static data is scanned */
    size_t n, room,
        least; /* how many there are; how many there were at least since the last collection */
};

static struct {
    Spare of[RANKS][KINDS];
    bool is_trimmed; /* by collections */
} spares;

Spare *spare_of(int rank, size_t bytes) {
    size_t lines = bytes / BUFFER_ALIGNMENT;
    return rank < RANKS && lines < LINES ? &spares.of[rank][lines] : NULL;
}

Spare *spare_view(int rank) { return rank < RANKS ? &spares.of[rank][VIEW] : NULL; }

/* Lets those go that were not asked for: the lowest ones. */
static void trim(Spare *s) {
    s->n -= s->least;
    if (!s->n) {
        s->at = NULL;
        s->room = 0;
        return;
    }
    memmove(s->at, s->at + s->least, s->n * sizeof *s->at);
    memset(s->at + s->n, 0, s->least * sizeof *s->at);
}

static void trim_all(void *ctx) {
    (void)ctx;
    for (int rank = 0; rank < RANKS; rank++)
        for (int kind = 0; kind < KINDS; kind++) {
            Spare *s = &spares.of[rank][kind];
            if (s->least)
                trim(s);
            s->least = s->n;
        }
}

/* A collection that runs meanwhile may let some go. */
static void make_room(Spare *s) {
    if (!spares.is_trimmed)
        mem_add_roots_callback(trim_all, NULL);
    spares.is_trimmed = true;
    size_t room = s->n ? 2 * s->n : 64;
    s->at = s->at ? mem_realloc(s->at, room * sizeof *s->at) : mem_new_n(Tensor *, room);
    s->room = room;
}

void spare_give(Spare *s, Tensor *t) {
    if (!s || t->waiting)
        return;
    if (s->n == s->room)
        make_room(s);
    s->at[s->n++] = t;
}

Tensor *spare_take(Spare *s) {
    if (!s || !s->n)
        return NULL;
    Tensor *t = s->at[--s->n];
    s->at[s->n] = NULL;
    if (s->n < s->least)
        s->least = s->n;
    if (s->n >= AHEAD) { /* it was read long ago */
        const char *next = (const char *)s->at[s->n - AHEAD];
        __builtin_prefetch(next, 1);
        __builtin_prefetch(next + BUFFER_ALIGNMENT, 1);
    }
    return t;
}
