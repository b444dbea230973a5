/* SPDX-License-Identifier: Apache-2.0 */
/* Tail calls: loops, so each move that they need not make is one a step less. */
#include "eval/tighten_impl.h"

#include <string.h>

/* The arguments of a tail call in an order in which none is overwritten before it is read: pairs of a parameter's
 * slot and an operand. False where there is no such order. */
static bool order_moves(int32_t *from, uint32_t n, int32_t *pairs, uint32_t *npairs) {
    bool done[LONGEST] = {false};
    *npairs = 0;
    for (uint32_t left = n, before = n + 1; left && left < before;) {
        before = left;
        for (uint32_t k = 0; k < n; k++) {
            int32_t to = operand(BASE_SLOT, k);
            bool is_read = false;
            for (uint32_t j = 0; j < n && !done[k]; j++)
                is_read |= j != k && !done[j] && from[j] == to;
            if (done[k] || is_read)
                continue;
            done[k] = true;
            left--;
            if (from[k] == to)
                continue;
            pairs[2 * *npairs] = to;
            pairs[2 * *npairs + 1] = from[k];
            ++*npairs;
        }
        if (!left)
            return true;
    }
    return n == 0;
}

/* Whether the result is written when the operands have been read, so that it may take the place of one. */
static bool writes_last(const Instr *i) {
    return (i->op >= CODE_ADD && i->op <= CODE_SUB_I) || i->op == CODE_TUPLE_OF ||
           i->op == CODE_DATA_OF || i->op == CODE_ADD_CT || i->op == CODE_PART_OF_CT;
}

/* The instruction that computes the slot `from` for the tail call `use` alone and can write it to the slot `to`, which
 * nothing reads from then on; or SIZE_MAX. */
static size_t find_maker(const Tightener *t, size_t use, int32_t from, int32_t to) {
    size_t end = use > FARTHEST ? use - FARTHEST : 0;
    for (size_t i = use; i-- > end && !t->targets[i + 1];) {
        const Instr *in = tighten_at(t, i);
        if (t->gone[i])
            continue;
        if (!writes_a_only(in) || in->a == to)
            break;
        if (in->a == from)
            return writes_last(in) ? i : SIZE_MAX;
        if (tighten_may_read(t, i, from) || tighten_may_read(t, i, to))
            break;
    }
    return SIZE_MAX;
}

/* Lets arguments of the tail call be computed where it wants them. */
static void land_results(Tightener *t, size_t use, int32_t *from, uint32_t n) {
    const Instr *in = tighten_at(t, use);
    for (uint32_t k = 0; k < n; k++) {
        int32_t to = operand(BASE_SLOT, k);
        bool is_alone = is_slot(from[k]) && from[k] != to && in->b != to && in->b != from[k];
        for (uint32_t j = 0; j < n && is_alone; j++)
            is_alone = j == k || (from[j] != to && from[j] != from[k]);
        size_t maker = is_alone ? find_maker(t, use, from[k], to) : SIZE_MAX;
        if (maker == SIZE_MAX)
            continue;
        tighten_at(t, maker)->a = to;
        from[k] = to;
    }
}

void tighten_tail(Tightener *t, size_t i) {
    Instr *in = tighten_at(t, i);
    int32_t from[LONGEST], pairs[2 * LONGEST + 1];
    size_t moves[LONGEST];
    uint32_t n = in->x, npairs;
    if (n > LONGEST)
        return;
    tighten_find_sources(t, i, (uint32_t)in->c >> 4, n, from, moves);
    if (!order_moves(from, n, pairs + 1, &npairs))
        return;
    for (uint32_t k = 0; k < npairs; k++) /* the callee is read last */
        if (in->op == CODE_TAIL && pairs[1 + 2 * k] == in->b)
            return;
    tighten_drop_moves(t, moves, n);
    land_results(t, i, from, n);
    if (!order_moves(from, n, pairs + 1, &npairs))
        BUG("fewer moves have no order");
    pairs[0] = (int32_t)npairs;
    in->c = tighten_add_list(t, pairs, 2 * npairs + 1);
    in->op = in->op == CODE_TAIL ? CODE_TAIL_OF : CODE_TAIL_GLOBAL_OF;
}

/* ---- what is only handed on ------------------------------------------------------------------ */

static bool is_tail_of(const Instr *i) {
    return i->op == CODE_TAIL_OF || i->op == CODE_TAIL_GLOBAL_OF;
}

/* Where in its list the tail call moves `from` to `to`, if that is all it does with it; or -1. */
static int32_t find_pair(const Tightener *t, const Instr *tail, int32_t to, int32_t from) {
    int32_t found = -1, n = t->lists.data[tail->c];
    for (int32_t k = 0; k < n; k++) {
        const int32_t *pair = t->lists.data + tail->c + 1 + 2 * k;
        if (pair[1] != from)
            continue;
        if (pair[0] != to || found >= 0)
            return -1;
        found = k;
    }
    return tail->b == from ? -1 : found;
}

/* Whether instruction i may write the slot. What a callee leaves above the arguments is not looked at. */
static bool may_write(const Tightener *t, size_t i, int32_t slot_of) {
    const Instr *in = tighten_at(t, i);
    bool frame = in->op == CODE_UNPACK_FRAME || in->op == CODE_POP_FRAME;
    bool row = instr_info(in)->result == RESULT_SEVERAL;
    if (frame || row) {
        int32_t first = frame ? in->c : in->a;
        return slot_of >= first && slot_of < first + (int32_t)(in->x << 4);
    }
    return instr_info(in)->result != RESULT_NOTHING && in->a == slot_of;
}

/* Whether all readers of the slot, which instruction i alone writes, are tail calls that hand it on as `to`. */
static bool is_handed_on(const Tightener *t, size_t i, int32_t slot_of, int32_t to) {
    bool any = false;
    for (size_t k = 0; k < t->r->instrs.len; k++) {
        if (t->gone[k] || k == i)
            continue;
        if (may_write(t, k, slot_of))
            return false;
        if (!tighten_may_read(t, k, slot_of))
            continue;
        if (!is_tail_of(tighten_at(t, k)) || find_pair(t, tighten_at(t, k), to, slot_of) < 0)
            return false;
        any = true;
    }
    return any;
}

void tighten_handed_on(Tightener *t, size_t i) {
    Instr *in = tighten_at(t, i);
    bool frame = in->op == CODE_POP_FRAME;
    int32_t row = frame ? in->c : in->a, to = in->b;
    int32_t handed = frame ? row : row + (int32_t)((in->x - 1) << 4);
    if (!is_slot(to) || (to >= row && to < row + (int32_t)(in->x << 4)) ||
        !tighten_is_dead(t, i + 1, to) || (frame && !tighten_is_dead(t, (size_t)in->a, to)) ||
        !is_handed_on(t, i, handed, to))
        return;
    in->op = frame ? CODE_NEXT_FRAME : CODE_NEXT_FIELDS;
    for (size_t k = 0; k < t->r->instrs.len; k++) {
        const Instr *tail = tighten_at(t, k);
        int32_t pair = !t->gone[k] && is_tail_of(tail) ? find_pair(t, tail, to, handed) : -1;
        if (pair < 0)
            continue;
        int32_t *list = t->lists.data + tail->c, *at = list + 1 + 2 * pair;
        size_t left = (size_t)(--*list - pair) * 2;
        memmove(at, at + 2, left * sizeof *at);
    }
}
