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

/* Of at least so many bytes; all but the first word is zero, or given by the caller at once. */
static inline void *cell_new(Interp *in, size_t bytes) {
    size_t size = (bytes + 15) / 16;
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
    size_t size = (bytes + 15) / 16;
    if (UNLIKELY(size >= CELL_SIZES))
        return;
    *(void **)cell = in->free_cells[size];
    in->free_cells[size] = cell;
}

/* A tuple of `many` operands of a list. */
#define MAKE_TUPLE(at, list, many)                                                                 \
    do {                                                                                           \
        uint32_t left = (many);                                                                    \
        const int32_t *item = (list);                                                              \
        Tuple *made = cell_new(in, sizeof(Tuple) + left * sizeof(Value));                          \
        *(void **)made = NULL;                                                                     \
        made->n = left;                                                                            \
        for (Value *made_item = made->items; left; made_item++, item++, left--)                    \
            copy_value(made_item, R(*item));                                                       \
        (at) = (Value){.tag = VAL_TUPLE, .p = made};                                               \
    } while (0)

#endif
