/* SPDX-License-Identifier: Apache-2.0 */
/* Note [Spare tensors] in tensor/spare.h. */
#include "tensor/spare.h"

#include "base/mem.h"
#include "tensor/buffer.h"

enum { RANKS = 4, LINES = 16, VIEW = LINES, KINDS };

struct Spare {
    Tensor *first; /* linked by `waiting`; static data is scanned */
    size_t n,
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

static Tensor *next_of(const Tensor *t) { return (Tensor *)t->waiting; }

/* Lets those go that were not asked for: the last ones. */
static void trim(Spare *s) {
    s->n -= s->least;
    s->least = s->n;
    if (!s->n) {
        s->first = NULL;
        return;
    }
    Tensor *last = s->first;
    for (size_t i = 1; i < s->n; i++)
        last = next_of(last);
    last->waiting = NULL;
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

void spare_give(Spare *s, Tensor *t) {
    if (!s || t->waiting)
        return;
    if (!spares.is_trimmed)
        mem_add_roots_callback(trim_all, NULL);
    spares.is_trimmed = true;
    t->waiting = (struct Waiting *)s->first;
    s->first = t;
    s->n++;
}

Tensor *spare_take(Spare *s) {
    Tensor *t = s ? s->first : NULL;
    if (!t)
        return NULL;
    s->first = next_of(t);
    __builtin_prefetch(s->first);
    if (--s->n < s->least)
        s->least = s->n;
    t->waiting = NULL;
    return t;
}
