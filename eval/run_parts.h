/* SPDX-License-Identifier: Apache-2.0 */
/* Values copied, and cells made and given back, by the instructions of run.c. */
#ifndef EVAL_RUN_PARTS_H
#define EVAL_RUN_PARTS_H

#include "eval/machine.h"
#include "eval/run_scalar.h"

/* Copies the two words one by one. Most values were written so, and one load of both would have to wait until the
 * stores reach the cache (a sixth of all time in a loop of derivatives). */
static inline void copy_value(Value *to, const Value *from) {
    uint64_t h = head(from), word;
    memcpy(&word, &from->i, sizeof word);
    __asm__("" : "+r"(h), "+r"(word)); /* the compiler would join them */
    memcpy(to, &h, sizeof h);
    memcpy(&to->i, &word, sizeof word);
}

static inline void copy_values(Value *to, const Value *from, uint32_t n) {
    for (Value *end = to + n; to < end; to++, from++)
        copy_value(to, from);
}

/* n fields of data, from `first` on. What they refer to is looked at soon. */
static inline void copy_fields(Value *to, const Data *d, uint32_t first, uint32_t n) {
    const uint64_t *words = d->words + first, *heads = d->layout->heads + first;
    for (Value *end = to + n; to < end; to++, words++, heads++) {
        memcpy(to, heads, sizeof *heads);
        memcpy(&to->i, words, sizeof *words);
        if (to->tag == VAL_CTOR)
            __builtin_prefetch(to->p);
    }
}

static inline Tuple *frame_at(const Value *v) {
    if (UNLIKELY(v->tag != VAL_TUPLE || !v->p))
        BUG("a frame is a value with tag %u", v->tag);
    return v->p;
}

/* Writes the two words one by one, too: the compiler would clear both and then write the tag alone, and who reads tag
 * and aux as one word would wait until all of these stores have reached the cache. */
static inline void put_pointer(Value *to, ValueTag tag, void *p) {
    uint64_t h = tag;
    memcpy(to, &h, sizeof h);
    to->p = p;
}

/* Lists of cells are by words, not by what the collector rounds these up to: a tuple takes an odd number, so that a tuple
 * of other memory, whose last word is not scanned, may be given back (Note [Whole cells] in base/mem.c). */
static inline size_t cell_words(size_t bytes) { return bytes / sizeof(uint64_t); }

/* The first of the free cells of a size, or NULL; all but the first word is zero, or given by the caller at once. */
static inline void *cell_take(Interp *in, size_t bytes) {
    size_t size = cell_words(bytes);
    void **cell = size < CELL_SIZES ? in->free_cells[size] : NULL;
    if (LIKELY(cell != NULL))
        in->free_cells[size] = *cell;
    return cell;
}

/* The same, made where there is none. */
static inline void *cell_new(Interp *in, size_t bytes) {
    size_t size = cell_words(bytes);
    if (UNLIKELY(size >= CELL_SIZES))
        return mem_alloc(bytes);
    void **cell = in->free_cells[size];
    if (UNLIKELY(!cell))
        cell = mem_cells(bytes);
    in->free_cells[size] = *cell;
    return cell;
}

/* A cell of so many bytes that nothing refers to. */
static inline void cell_free(Interp *in, void *cell, size_t bytes) {
    size_t size = cell_words(bytes);
    if (UNLIKELY(size >= CELL_SIZES))
        return;
    *(void **)cell = in->free_cells[size];
    in->free_cells[size] = cell;
}

/* A tuple of `many` operands of a list. The state is saved only where the collector may run. */
#define MAKE_TUPLE(at, list, many)                                                                 \
    do {                                                                                           \
        uint32_t left = (many);                                                                    \
        const int32_t *item = (list);                                                              \
        size_t bytes = sizeof(Tuple) + left * sizeof(Value);                                       \
        Tuple *made = cell_take(in, bytes);                                                        \
        if (UNLIKELY(!made)) {                                                                     \
            SAVE();                                                                                \
            made = cell_new(in, bytes);                                                            \
        }                                                                                          \
        *(void **)made = NULL;                                                                     \
        made->n = left;                                                                            \
        for (Value *made_item = made->items; left; made_item++, item++, left--)                    \
            copy_value(made_item, R(*item));                                                       \
        put_pointer(&(at), VAL_TUPLE, made);                                                       \
    } while (0)

/* Copies n items of a frame, from `first` on, and gives the frame back. Nothing is kept alive by it. */
static inline void take_frame(Interp *in, Tuple *t, uint32_t first, uint32_t n, Value *to) {
    Value *from = t->items, *end = from + first, *last = from + t->n;
    cell_free(in, t, sizeof(Tuple) + t->n * sizeof(Value));
    for (; from < end; from++)
        from->p = NULL;
    for (end += n; from < end; to++, from++) {
        copy_value(to, from);
        from->p = NULL;
    }
    for (; UNLIKELY(from < last); from++)
        from->p = NULL;
}

/* Puts the last field into the data that waits for it: Note [Calls in a last field]. */
static inline void fill_hole(Value *base, Value v) {
    Data *d = base[FILL_LAST].p;
    uint32_t i = d->layout->n - 1;
    if (LIKELY(value_head(&v) == d->layout->heads[i]))
        memcpy(&d->words[i], &v.i, sizeof v.i);
    else
        data_set(base[FILL_LAST], i, v);
}

#endif
