/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/tighten_impl.h"

#include <string.h>

static Instr *at(const Tightener *t, size_t i) { return tighten_at(t, i); }

static uint32_t count_fields(const Tightener *t, const Instr *in) {
    return ((const Ctor *)t->r->consts.data[in->c >> 4].p)->nfields;
}

bool tighten_may_read(const Tightener *t, size_t i, int32_t slot_of) {
    Reads reads;
    instr_reads(t->r, t->lists.data, i, &reads);
    return reads_slot(&reads, (uint32_t)slot_of >> 4);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Whether it says something of the call behind it, and touches no argument. */
static bool belongs_to_call(const Instr *i) {
    return i->op == CODE_HOLE || i->op == CODE_PATH || i->op == CODE_GIVE;
}

void tighten_find_sources(const Tightener *t, size_t use, uint32_t first, uint32_t n, int32_t *from,
                          size_t *moves) {
    bool written[LONGEST] = {false}, any = false;
    for (uint32_t k = 0; k < n; k++) {
        from[k] = operand(BASE_SLOT, first + k);
        moves[k] = SIZE_MAX;
    }
    size_t end = use > FARTHEST ? use - FARTHEST : 0;
    VEC(uint32_t) later = {0}; /* slots that instructions behind the one looked at write */
    for (size_t i = use; i-- > end;) {
        if (t->targets[i + 1])
            break;
        const Instr *in = at(t, i);
        if (t->gone[i] || belongs_to_call(in))
            continue;
        if (!writes_a_only(in))
            break;
        uint32_t to = (uint32_t)in->a >> 4, k = to - first;
        if (to >= first && k < n && !written[k]) {
            written[k] = true;
            bool is_free = in->op == CODE_MOVE;
            for (size_t w = 0; w < later.len && is_free; w++)
                is_free = in->b != operand(BASE_SLOT, later.data[w]);
            if (is_free) {
                from[k] = in->b;
                moves[k] = i;
                any = true;
            }
        } else if (to >= first && k < n) {
            break;
        }
        vec_push(&later, to);
    }
    /* An argument that another one is computed from stays where it is. */
    for (size_t i = use; any && i-- > end && !t->targets[i + 1];) {
        const Instr *in = at(t, i);
        if (t->gone[i] || belongs_to_call(in))
            continue;
        if (!writes_a_only(in))
            break;
        for (uint32_t k = 0; k < n; k++) {
            if (moves[k] == SIZE_MAX || moves[k] >= i)
                continue;
            int32_t self = operand(BASE_SLOT, first + k);
            if (tighten_may_read(t, i, self)) {
                moves[k] = SIZE_MAX;
                from[k] = self;
            }
        }
    }
}

void tighten_drop_moves(Tightener *t, const size_t *moves, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        if (moves[k] != SIZE_MAX)
            t->gone[moves[k]] = true;
}

int32_t tighten_add_list(Tightener *t, const int32_t *items, uint32_t n) {
    int32_t from = (int32_t)t->lists.len;
    for (uint32_t i = 0; i < n; i++)
        vec_push(&t->lists, items[i]);
    return from;
}

static void tighten_parts(Tightener *t, size_t i) {
    Instr *in = at(t, i);
    bool is_tuple = in->op == CODE_TUPLE;
    uint32_t n = is_tuple ? (uint32_t)in->c : count_fields(t, in);
    int32_t from[LONGEST];
    size_t moves[LONGEST];
    if (n > LONGEST || !n)
        return;
    tighten_find_sources(t, i, (uint32_t)in->b >> 4, n, from, moves);
    tighten_drop_moves(t, moves, n);
    in->op = is_tuple ? CODE_TUPLE_OF : CODE_DATA_OF;
    in->b = tighten_add_list(t, from, n);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* How many instructions from i on are alike and not jumped into, with a growing by one, and c too. */
static uint32_t count_row(const Tightener *t, size_t i, bool grows) {
    const Instr *first = at(t, i);
    uint32_t n = 1;
    for (; i + n < t->r->instrs.len && !t->targets[i + n] && !t->gone[i + n]; n++) {
        const Instr *in = at(t, i + n);
        if (in->op != first->op || in->a != first->a + (int32_t)(n << 4) || n == UINT16_MAX)
            break;
        if (grows && (in->b != first->b || in->c != first->c + (int32_t)n ||
                      (is_slot(first->b) && at(t, i + n - 1)->a == first->b)))
            break;
    }
    return n;
}

static void drop_row(Tightener *t, size_t i, uint32_t n) {
    for (uint32_t k = 1; k < n; k++)
        t->gone[i + k] = true;
}

static void tighten_row(Tightener *t, size_t i) {
    Instr *in = at(t, i);
    bool moves = in->op == CODE_MOVE;
    uint32_t n = count_row(t, i, !moves);
    if (n < 2)
        return;
    if (moves) {
        int32_t from = (int32_t)t->lists.len;
        for (uint32_t k = 0; k < n; k++)
            vec_push(&t->lists, at(t, i + k)->b);
        in->op = CODE_MOVES;
        in->b = from;
    } else {
        in->op = in->op == CODE_GET_FIELD    ? CODE_GET_FIELDS
                 : in->op == CODE_PART_OF_CT ? CODE_PARTS_OF_CT
                                             : CODE_UNPACK;
    }
    in->x = (uint16_t)n;
    drop_row(t, i, n);
}

/* ---- what is taken apart at once ------------------------------------------------------------- */

static bool is_dead(const Tightener *t, size_t i, int32_t x, int depth);

bool tighten_is_dead(const Tightener *t, size_t i, int32_t slot_of) {
    return is_dead(t, i, slot_of, 0);
}

static bool is_unpacking(const Instr *in) { return in->op == CODE_UNPACK || in->op == CODE_PROJ; }

static uint32_t count_unpacked(const Instr *in) { return in->op == CODE_PROJ ? 1 : in->x; }

/* The first instruction from i on that is left. */
static size_t skip_gone(const Tightener *t, size_t i) {
    while (i < t->r->instrs.len && t->gone[i])
        i++;
    return i;
}

/* Whether instruction i takes the tuple in slot x apart, and nobody reads that slot later. */
static bool is_last_unpacking(const Tightener *t, size_t i, int32_t x) {
    if (i >= t->r->instrs.len || t->gone[i] || !is_unpacking(at(t, i)) || at(t, i)->b != x)
        return false;
    const Instr *in = at(t, i);
    bool over = x >= in->a && x < in->a + (int32_t)(count_unpacked(in) << 4);
    return over || is_dead(t, i + 1, x, 0);
}

/* A tuple that a call gives and of which only the parts are read: a callee that ends by making it need not. */
static void tighten_called(Tightener *t, size_t i) {
    size_t next = skip_gone(t, i + 1);
    if (!is_last_unpacking(t, next, at(t, i)->a) || count_unpacked(at(t, next)) > PARTS_MOST)
        return;
    Instr *in = at(t, next);
    in->x = (uint16_t)count_unpacked(in);
    in->op = CODE_UNPACK_CALLED;
}

static void tighten_return(Tightener *t, size_t i) {
    Instr *tuple = at(t, i);
    size_t next = skip_gone(t, i + 1);
    if (next >= t->r->instrs.len)
        return;
    const Instr *in = at(t, next);
    for (size_t k = i + 1; k <= next; k++)
        if (t->targets[k])
            return;
    if (in->op != CODE_RETURN || in->b != tuple->a)
        return;
    tuple->op = CODE_RETURN_OF;
    t->gone[next] = true;
}

/* Of a tuple of operands that is taken apart by `use`: whether moves in their order read each before it is written. */
static bool is_in_order(const Tightener *t, const Instr *tuple, const Instr *use) {
    uint32_t n = count_unpacked(use);
    const int32_t *from = t->lists.data + tuple->b + use->c;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < k; j++)
            if (from[k] == use->a + (int32_t)(j << 4))
                return false;
    return true;
}

/* Branches that each end in a tuple, which is taken apart where they meet: each moves the parts to their places.
 *
 *     TUPLE_OF s4 <- s2, s3; JUMP L; … TUPLE_OF s4 <- s5, s6; L: UNPACK s4, s5 <- s4 from 0 */
static void tighten_joined(Tightener *t, size_t i) {
    enum { BRANCHES = 8 };
    size_t makers[BRANCHES], n = 0;
    const Instr *use = at(t, i);
    if (!is_last_unpacking(t, i, use->b) || !t->targets[i])
        return;
    size_t before = i;
    while (before-- > 0 && t->gone[before])
        ;
    if (before == SIZE_MAX)
        return;
    for (size_t k = before + 1; k < i; k++)
        if (t->targets[k])
            return;
    if (instr_info(at(t, before))->flow == FLOW_NEXT)
        makers[n++] = before;
    else if (!instr_ends(at(t, before)))
        return;
    for (size_t k = 0; k < i; k++) {
        if (t->gone[k] || !instr_jumps(at(t, k)) || (size_t)at(t, k)->a != i)
            continue;
        size_t maker = k;
        while (maker-- > 0 && t->gone[maker] && !t->targets[maker + 1])
            ;
        if (at(t, k)->op != CODE_JUMP || maker == SIZE_MAX || t->targets[maker + 1] ||
            n == BRANCHES)
            return;
        makers[n++] = maker;
    }
    for (size_t k = 0; k < n; k++) {
        const Instr *maker = at(t, makers[k]);
        if (t->gone[makers[k]] || maker->op != CODE_TUPLE_OF || maker->a != use->b ||
            !is_in_order(t, maker, use))
            return;
    }
    for (size_t k = 0; k < n; k++) {
        Instr *maker = at(t, makers[k]);
        maker->op = CODE_MOVES;
        maker->x = (uint16_t)count_unpacked(use);
        maker->b += use->c;
        maker->a = use->a;
    }
    t->gone[i] = true;
}

/* Whether instruction i is reached by one jump alone. */
static bool is_reached_once(const Tightener *t, size_t i) {
    size_t before = i, times = 0;
    while (before > 0 && t->gone[before - 1])
        if (t->targets[before--])
            times += before + 1 != i;
    if (times || !before || !instr_ends(at(t, before - 1)))
        return false;
    for (size_t k = 0; k < i; k++)
        times += !t->gone[k] && instr_jumps(at(t, k)) && (size_t)at(t, k)->a == i;
    return times == 1;
}

/* Whether the slot is the parameter with frames that are not read elsewhere. */
static bool is_frame(const Tightener *t, int32_t x) {
    const Expr *fn = t->r->code->fn;
    uint32_t param = (uint32_t)x >> 4;
    return is_slot(x) && !t->r->code->item && param < t->r->code->nparams &&
           fn_has_frames(fn->fn, fn->fn->params[param]);
}

/* The same, and only these two instructions read it. */
static bool is_read_once(const Tightener *t, int32_t x, size_t one, size_t other) {
    if (!is_frame(t, x))
        return false;
    for (size_t i = 0; i < t->r->instrs.len; i++)
        if (!t->gone[i] && i != one && i != other && tighten_may_read(t, i, x))
            return false;
    return true;
}

/* PROJ s4 <- s0.0; JUMP_ABSENT s4, not to L; … L: UNPACK s5, s6 <- s0 from 1: a frame of a loop, unless it is the first. */
static void tighten_frame(Tightener *t, size_t i) {
    const Instr *first = at(t, i);
    size_t jump_at = skip_gone(t, i + 1);
    if (jump_at >= t->r->instrs.len || first->c || first->a == first->b)
        return;
    Instr *jump = at(t, jump_at);
    for (size_t k = i + 1; k <= jump_at; k++)
        if (t->targets[k])
            return;
    if (jump->op != CODE_JUMP_ABSENT || jump->x || jump->b != first->a)
        return;
    size_t rest_at = (size_t)jump->a;
    const Instr *rest = at(t, rest_at);
    bool more = !t->gone[rest_at] && is_unpacking(rest) && rest->b == first->b && rest->c == 1 &&
                rest->a == first->a + 16 && is_reached_once(t, rest_at);
    uint32_t n = more ? 1 + count_unpacked(rest) : 1;
    int32_t frame = first->b, to = first->a;
    bool last = is_read_once(t, frame, i, more ? rest_at : i);
    if ((!more && !last) || (frame >= to && frame < to + (int32_t)(n << 4)) || n > UINT16_MAX)
        return;
    Opcode op = last ? CODE_POP_FRAME : CODE_UNPACK_FRAME;
    *jump = (Instr){(uint16_t)op, (uint16_t)n, jump->a, frame, to};
    t->gone[i] = true;
    if (more)
        t->gone[rest_at] = true;
}

/* A frame that is taken apart for the last time, in this arm, where all that is done with it is that. */
static void tighten_last(Tightener *t, size_t i) {
    Instr *in = at(t, i);
    if (!is_frame(t, in->b))
        return;
    bool once = true; /* it is dead behind the one that reads it, however far the ways lead */
    for (size_t k = 0; k < t->r->instrs.len; k++) {
        if (t->gone[k] || !tighten_may_read(t, k, in->b))
            continue;
        if (!is_unpacking(at(t, k)) && at(t, k)->op != CODE_UNPACK_LAST)
            return;
        once = once && k == i;
    }
    if (!once && !is_last_unpacking(t, i, in->b))
        return;
    in->x = (uint16_t)count_unpacked(in);
    in->op = CODE_UNPACK_LAST;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Whether the slot is written before it is read, on each way from instruction i; the ways end soon. */
static bool is_dead(const Tightener *t, size_t i, int32_t x, int depth) {
    enum { STEPS = 48, BRANCHES = 4 };
    for (int steps = 0; steps < STEPS; steps++, i++) {
        if (i >= t->r->instrs.len || depth > BRANCHES)
            return false;
        const Instr *in = at(t, i);
        if (t->gone[i])
            continue;
        if (in->op == CODE_JUMP) {
            i = (size_t)in->a - 1;
            continue;
        }
        if (tighten_may_read(t, i, x))
            return false;
        if (instr_info(in)->flow == FLOW_END)
            return true;
        if (instr_jumps(in) && !is_dead(t, (size_t)in->a, x, depth + 1))
            return false;
        if (writes_a_only(in) && in->a == x)
            return true;
        if (instr_info(in)->result == RESULT_CALLED && (in->a == x || x >= in->c))
            return true; /* the callee's activation was there */
    }
    return false;
}

/* A comparison whose value is only jumped by. */
static void tighten_condition(Tightener *t, size_t i) {
    Instr *test = at(t, i), *jump = i + 1 < t->r->instrs.len ? at(t, i + 1) : NULL;
    if (!jump || jump->op != CODE_JUMP_IF || jump->b != test->a || t->targets[i + 1] ||
        !is_dead(t, i + 2, test->a, 0) || !is_dead(t, (size_t)jump->a, test->a, 0))
        return;
    Opcode op = test->op == CODE_EQUAL ? CODE_JUMP_EQ
                                       : (Opcode)(CODE_JUMP_LT + (test->op - CODE_LT));
    uint16_t sense = test->op == CODE_EQUAL ? jump->x != test->x : jump->x;
    *jump = (Instr){(uint16_t)op, sense, jump->a, test->b, test->c};
    t->r->origin.data[i + 1] = t->r->origin.data[i];
    t->gone[i] = true;
}

/* ---- signs ----------------------------------------------------------------------------------- */

/* The product or quotient in slot x that only instruction i reads, and of which the operands are still there; or SIZE_MAX. */
static size_t find_product(const Tightener *t, size_t i, int32_t x) {
    size_t end = i > FARTHEST ? i - FARTHEST : 0, maker = i;
    while (maker-- > end && !t->targets[maker + 1]) {
        const Instr *in = at(t, maker);
        if (t->gone[maker])
            continue;
        if (!writes_a_only(in))
            return SIZE_MAX;
        if (in->a == x) {
            bool is_strong = in->op == CODE_STRONG_MUL || in->op == CODE_STRONG_DIV;
            for (size_t k = maker + 1; k < i && is_strong; k++)
                is_strong = t->gone[k] || (at(t, k)->a != in->b && at(t, k)->a != in->c);
            return is_strong ? maker : SIZE_MAX;
        }
        if (tighten_may_read(t, maker, x))
            return SIZE_MAX;
    }
    return SIZE_MAX;
}

/* The sign of a product or quotient of scalars that the way back of a quotient needs. */
static void tighten_negative(Tightener *t, size_t i) {
    Instr *negative = at(t, i);
    size_t before = t->targets[i] ? SIZE_MAX : find_product(t, i, negative->b);
    if (before == SIZE_MAX)
        return;
    const Instr *of = at(t, before);
    Type *type = t->r->origin.data[before]->type;
    if (!type || !(type_is_scalar(type, DT_F32) || type_is_scalar(type, DT_F64)) ||
        (of->a != negative->a && !is_dead(t, i + 1, of->a, 0)))
        return;
    Opcode op = of->op == CODE_STRONG_MUL ? CODE_NEG_STRONG_MUL : CODE_NEG_STRONG_DIV;
    *negative = (Instr){(uint16_t)op, 0, negative->a, of->b, of->c};
    t->r->origin.data[i] = t->r->origin.data[before];
    t->gone[before] = true;
}

/* ---- integers -------------------------------------------------------------------------------- */

/* Whether it is a constant of int32 that fits into an instruction. */
static bool is_short(const Tightener *t, int32_t operand_of, int16_t *out) {
    if ((operand_of & 3) != BASE_CONST)
        return false;
    const Value *v = &t->r->consts.data[operand_of >> 4];
    *out = (int16_t)v->i;
    return v->tag == VAL_SCALAR && v->aux == DT_I32 && v->i == *out;
}

/* Of an int32 and a constant. What is jumped by holds of integers exactly if the opposite does not. */
static void tighten_integers(Tightener *t, size_t i) {
    static const Opcode jumps[][2] = {
        [CODE_JUMP_LT - CODE_JUMP_LT] = {CODE_JUMP_GE_I, CODE_JUMP_LT_I},
        [CODE_JUMP_LE - CODE_JUMP_LT] = {CODE_JUMP_GT_I, CODE_JUMP_LE_I},
        [CODE_JUMP_GT - CODE_JUMP_LT] = {CODE_JUMP_LE_I, CODE_JUMP_GT_I},
        [CODE_JUMP_GE - CODE_JUMP_LT] = {CODE_JUMP_LT_I, CODE_JUMP_GE_I},
        [CODE_JUMP_EQ - CODE_JUMP_LT] = {CODE_JUMP_NE_I, CODE_JUMP_EQ_I},
    };
    Instr *in = at(t, i);
    const Expr *origin = t->r->origin.data[i];
    int16_t n;
    if (!is_slot(in->b) || !is_short(t, in->c, &n))
        return;
    if (in->op >= CODE_JUMP_LT && in->op <= CODE_JUMP_EQ)
        in->op = jumps[in->op - CODE_JUMP_LT][in->x];
    else if (origin->type && type_is_scalar(origin->type, DT_I32)) /* so that nobody owns it */
        in->op = in->op == CODE_ADD ? CODE_ADD_I : CODE_SUB_I;
    else
        return;
    in->x = (uint16_t)n;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Leaves out what is gone, and leads jumps to where their targets are now. */
static void close_up(Tightener *t) {
    Resolver *r = t->r;
    uint32_t n = (uint32_t)r->instrs.len, kept = 0;
    int32_t *moved = mem_bytes((n + 1) * sizeof *moved);
    for (uint32_t i = 0; i < n; i++) {
        moved[i] = (int32_t)kept;
        kept += !t->gone[i];
    }
    moved[n] = (int32_t)kept;
    kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (t->gone[i])
            continue;
        Instr in = *at(t, i);
        if (instr_jumps(&in))
            in.a = moved[in.a];
        r->instrs.data[kept] = in;
        r->origin.data[kept++] = r->origin.data[i];
    }
    memset(r->origin.data + kept, 0, (n - kept) * sizeof *r->origin.data);
    r->instrs.len = r->origin.len = kept;
}

void tighten_code(Resolver *r) {
    size_t n = r->instrs.len;
    Tightener t = {.r = r};
    if (r->code->verify)
        return;
    t.targets = mem_bytes(n + 1);
    t.gone = mem_bytes(n + 1);
    memset(t.targets, 0, n + 1);
    memset(t.gone, 0, n + 1);
    for (size_t i = 0; i < n; i++)
        if (instr_jumps(at(&t, i)))
            t.targets[at(&t, i)->a] = true;
    for (size_t i = 0; i < n; i++)
        if ((at(&t, i)->op >= CODE_LT && at(&t, i)->op <= CODE_EQUAL))
            tighten_condition(&t, i);
    for (size_t i = 0; i < n; i++) {
        Opcode op = (Opcode)at(&t, i)->op;
        if (op == CODE_TUPLE || op == CODE_DATA)
            tighten_parts(&t, i);
        else if (op == CODE_TAIL || op == CODE_TAIL_GLOBAL)
            tighten_tail(&t, i);
    }
    for (size_t i = 0; i < n; i++) {
        Opcode op = (Opcode)at(&t, i)->op;
        if (op == CODE_ADD || op == CODE_SUB || (op >= CODE_JUMP_LT && op <= CODE_JUMP_EQ))
            tighten_integers(&t, i);
        if (!t.gone[i] &&
            (op == CODE_MOVE || op == CODE_PROJ || op == CODE_GET_FIELD || op == CODE_PART_OF_CT))
            tighten_row(&t, i);
    }
    for (size_t i = 0; i < n; i++) {
        if (t.gone[i])
            continue;
        Opcode op = (Opcode)at(&t, i)->op;
        if (op == CODE_CALL || op == CODE_CALL_GLOBAL)
            tighten_called(&t, i);
        else if (op == CODE_TUPLE_OF)
            tighten_return(&t, i);
        else if (op == CODE_PROJ)
            tighten_frame(&t, i);
        else if (op == CODE_NEG)
            tighten_negative(&t, i);
        if (is_unpacking(at(&t, i)) && !t.gone[i])
            tighten_joined(&t, i);
        if (is_unpacking(at(&t, i)) && !t.gone[i])
            tighten_last(&t, i);
    }
    for (size_t i = 0; i < n; i++)
        if (!t.gone[i] && (at(&t, i)->op == CODE_POP_FRAME || at(&t, i)->op == CODE_GET_FIELDS))
            tighten_handed_on(&t, i);
    close_up(&t);
    r->lists = t.lists.data;
}
