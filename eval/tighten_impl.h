/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of tighten.h share: private to eval/tighten.c and eval/tighten_tail.c. */
#ifndef EVAL_TIGHTEN_IMPL_H
#define EVAL_TIGHTEN_IMPL_H

#include "eval/operands.h"
#include "eval/tighten.h"

typedef struct Tightener {
    Resolver *r;
    VEC(int32_t) lists;
    bool *targets; /* instruction -> some jump leads to it */
    bool *gone;    /* instruction -> another one does its work */
} Tightener;

enum { LONGEST = DATA_OF_MOST /* arguments */, FARTHEST = 64 /* instructions looked back */ };

static inline Instr *tighten_at(const Tightener *t, size_t i) { return &t->r->instrs.data[i]; }

static inline bool is_slot(int32_t operand_of) { return (operand_of & 3) == BASE_SLOT; }

/* Whether only the slot `a` is written. */
static inline bool writes_a_only(const Instr *i) {
    return instr_info(i)->result == RESULT_VALUE || instr_info(i)->result == RESULT_FRESH;
}

/* Whether instruction i may read the slot. */
bool tighten_may_read(const Tightener *t, size_t i, int32_t slot_of);
/* Whether the slot is written before it is read, on each way from instruction i; the ways end soon. */
bool tighten_is_dead(const Tightener *t, size_t i, int32_t slot_of);
/* Where the n arguments in the slots from `first` of instruction `use` can be read instead: from[k] is what a
 * MOVE put there, and moves[k] that MOVE; else the slot itself. */
void tighten_find_sources(const Tightener *t, size_t use, uint32_t first, uint32_t n, int32_t *from,
                          size_t *moves);
/* Leaves the moves out. */
void tighten_drop_moves(Tightener *t, const size_t *moves, uint32_t n);
/* Where the items stand among the lists of operands. */
int32_t tighten_add_list(Tightener *t, const int32_t *items, uint32_t n);

/* ---- eval/tighten_tail.c ---- */
/* TAIL, TAIL_GLOBAL: the arguments go from where they are to the callee's parameters, or are made there. */
void tighten_tail(Tightener *t, size_t i);
/* A row of several that instruction i writes, of which one is only handed on by tail calls in place of the slot that
 * i takes apart: it is written there at once. */
void tighten_handed_on(Tightener *t, size_t i);

#endif
