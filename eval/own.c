/* SPDX-License-Identifier: Apache-2.0 */
/* See Note [Owners] in eval/own.h. Jumps only lead forward, so one pass backward tells which slots are read
 * later, and one pass forward which tensor each slot holds. */
#include "eval/own.h"

#include <string.h>

enum {
    WORK_MOST = 1 << 20, /* instructions times slots: above it nothing is owned */
};

typedef struct Owning {
    Resolver *r;
    uint32_t n, nslots, words;
    uint64_t *before,
        *after; /* a row an instruction: the slots that it or a later one reads; a later one */
    int32_t **arrived; /* of a jump's target: what the slots hold there, or NULL */
    int32_t *holds;    /* slot -> number of its tensor, 0: not known */
    int32_t next;      /* the next number; those of parameters begin at 1 */
    bool reached;      /* the instruction before leads here */
} Owning;

/* ---- what instructions read ------------------------------------------------------------------ */

typedef enum Use { USE_BORROW, USE_KEEP } Use;

/* A row of slots that an instruction reads. */
typedef struct Reads {
    struct {
        uint32_t first, n;
        Use use;
    } row[3];
    int nrows;
    const Make *make; /* captured variables, which are kept */
} Reads;

static void add_slots(Reads *reads, int32_t at, uint32_t n, Use use) {
    if ((at & 3) != BASE_SLOT || !n)
        return;
    reads->row[reads->nrows].first = (uint32_t)at >> 4;
    reads->row[reads->nrows].n = n;
    reads->row[reads->nrows++].use = use;
}

static bool is_jump(const Instr *i) {
    return i->op == CODE_JUMP || (i->op >= CODE_JUMP_IF && i->op <= CODE_JUMP_ABSENT) ||
           i->op == CODE_TEST_DATA || i->op == CODE_TEST_NULLARY || i->op == CODE_TEST_VALUE;
}

static bool ends(const Instr *i) {
    return i->op == CODE_JUMP || i->op == CODE_RETURN || i->op == CODE_TAIL ||
           i->op == CODE_TAIL_GLOBAL || i->op == CODE_NO_MATCH || i->op == CODE_HALT;
}

/* False where the function is not to be looked at. *to: the slot written, or -1. *makes: it is a tensor that
 * nothing else refers to. */
static bool look(const Resolver *r, size_t at, Reads *reads, int32_t *to, bool *makes) {
    const Instr *i = &r->instrs.data[at];
    *reads = (Reads){0};
    *to = i->a >> 4;
    *makes = false;
    switch ((Opcode)i->op) {
    case CODE_MOVE: add_slots(reads, i->b, 1, USE_BORROW); return true; /* handled apart */
    case CODE_GLOBAL: return true;
    case CODE_LIKE:
    case CODE_READ:
    case CODE_BANG:
    case CODE_DIM_OF: add_slots(reads, i->b, 1, USE_BORROW); return true;
    case CODE_RETURN:
        *to = -1;
        add_slots(reads, i->b, 1, USE_KEEP);
        return true;
    case CODE_CALL:
        add_slots(reads, i->b, 1, USE_KEEP);
        add_slots(reads, i->c, i->x, USE_KEEP);
        return true;
    case CODE_CALL_GLOBAL: add_slots(reads, i->c, i->x, USE_KEEP); return true;
    case CODE_PATH:
    case CODE_COUNT: *to = -1; return true;
    case CODE_TAIL:
        *to = -1;
        add_slots(reads, i->b, 1, USE_KEEP);
        add_slots(reads, i->c, i->x, USE_KEEP);
        return true;
    case CODE_TAIL_GLOBAL:
        *to = -1;
        add_slots(reads, i->c, i->x, USE_KEEP);
        return true;
    case CODE_CLOSURE: reads->make = &r->makes.data[i->b]; return true;
    case CODE_JUMP: *to = -1; return true;
    case CODE_JUMP_IF:
    case CODE_JUMP_ABSENT:
    case CODE_TEST_DATA:
    case CODE_TEST_NULLARY:
    case CODE_TEST_VALUE:
    case CODE_NO_MATCH:
        *to = -1;
        add_slots(reads, i->b, 1, USE_BORROW);
        return true;
    case CODE_JUMP_LT:
    case CODE_JUMP_LE:
    case CODE_JUMP_GT:
    case CODE_JUMP_GE:
    case CODE_JUMP_EQ:
    case CODE_CHECK:
    case CODE_CHECK_SHAPE:
        *to = -1;
        add_slots(reads, i->b, 1, USE_BORROW);
        add_slots(reads, i->c, 1, USE_BORROW);
        return true;
    case CODE_ADD:
    case CODE_SUB:
    case CODE_MUL:
    case CODE_DIV:
    case CODE_STRONG_MUL:
    case CODE_STRONG_DIV:
    case CODE_LT:
    case CODE_LE:
    case CODE_GT:
    case CODE_GE:
        add_slots(reads, i->b, 1, USE_BORROW);
        add_slots(reads, i->c, 1, USE_BORROW);
        *makes = true;
        return true;
    case CODE_EQUAL:
        add_slots(reads, i->b, 1, USE_BORROW);
        add_slots(reads, i->c, 1, USE_BORROW);
        return true;
    case CODE_NEG:
    case CODE_NOT:
        add_slots(reads, i->b, 1, USE_BORROW);
        *makes = true;
        return true;
    case CODE_OPERATOR: {
        const Site *s = &r->sites.data[i->c];
        add_slots(reads, i->b, s->nargs + s->nsizes, USE_BORROW);
        *makes = true;
        return true;
    }
    case CODE_MORE: *makes = true; return true;
    case CODE_BUILTIN: add_slots(reads, i->b, r->sites.data[i->c].nargs, USE_KEEP); return true;
    case CODE_DATA:
        add_slots(reads, i->b, ((const Ctor *)r->consts.data[i->c >> 4].p)->nfields, USE_KEEP);
        return true;
    case CODE_TUPLE: add_slots(reads, i->b, (uint32_t)i->c, USE_KEEP); return true;
    case CODE_TENSOR:
        add_slots(reads, i->b, (uint32_t)i->c, USE_BORROW);
        *makes = true;
        return true;
    case CODE_PROJ:
    case CODE_FIELD:
    case CODE_GET_FIELD:
    case CODE_GET_ITEM: add_slots(reads, i->b, 1, USE_BORROW); return true;
    case CODE_INDEX:
        add_slots(reads, i->b, 1, USE_BORROW);
        add_slots(reads, i->c, r->origin.data[at]->nargs, USE_BORROW);
        return true;
    case CODE_GRAD:
    case CODE_REF: add_slots(reads, i->b, 1, USE_KEEP); return true;
    case CODE_UPDATE:
        add_slots(reads, i->b, 1, USE_KEEP);
        add_slots(reads, i->c, r->origin.data[at]->nargs, USE_KEEP);
        return true;
    case CODE_WRITE:
        add_slots(reads, i->b, 1, USE_KEEP);
        add_slots(reads, i->c, 1, USE_KEEP);
        return true;
    case CODE_ADD_CT: /* may give one of them */
        add_slots(reads, i->b, 1, USE_KEEP);
        add_slots(reads, i->c, 1, USE_KEEP);
        return true;
    case CODE_MOVES: /* made later: tighten.h */
    case CODE_TUPLE_OF:
    case CODE_DATA_OF:
    case CODE_UNPACK:
    case CODE_GET_FIELDS:
    case CODE_TAIL_OF:
    case CODE_TAIL_GLOBAL_OF:
    case CODE_HOLE:   /* moves the activation */
    case CODE_FILL:   /* of code made by hand */
    case CODE_VERIFY: /* reads anything */
    case CODE_RESOLVE:
    case CODE_HALT:
    case OPCODE_COUNT: break;
    }
    return false;
}

/* ---- which slots are read later -------------------------------------------------------------- */

static void set(uint64_t *row, uint32_t slot) { row[slot / 64] |= UINT64_C(1) << slot % 64; }
static bool has(const uint64_t *row, uint32_t slot) { return row[slot / 64] >> slot % 64 & 1; }

static void read_all(const Reads *reads, uint64_t *row) {
    for (int k = 0; k < reads->nrows; k++)
        for (uint32_t i = 0; i < reads->row[k].n; i++)
            set(row, reads->row[k].first + i);
    for (uint32_t i = 0; reads->make && i < reads->make->code->ncaptured; i++)
        if ((reads->make->captured[i] & 3) == BASE_SLOT)
            set(row, (uint32_t)reads->make->captured[i] >> 4);
}

static bool find_live(Owning *o) {
    Reads reads;
    int32_t to;
    bool makes;
    for (size_t at = o->n; at-- > 0;) {
        const Instr *i = &o->r->instrs.data[at];
        uint64_t *after = o->after + at * o->words, *before = o->before + at * o->words;
        if (!look(o->r, at, &reads, &to, &makes) || (is_jump(i) && (size_t)i->a <= at))
            return false;
        for (uint32_t w = 0; w < o->words; w++) {
            after[w] = ends(i) ? 0 : before[w + o->words];
            if (is_jump(i))
                after[w] |= o->before[(size_t)i->a * o->words + w];
            before[w] = after[w];
        }
        if (to >= 0)
            before[to / 64] &= ~(UINT64_C(1) << to % 64);
        read_all(&reads, before);
    }
    return true;
}

/* ---- which tensor a slot holds --------------------------------------------------------------- */

/* Whether a slot that is read after instruction `at`, which writes `to`, holds the tensor. */
static bool is_read_later(const Owning *o, size_t at, int32_t to, int32_t tensor) {
    const uint64_t *row = o->after + at * o->words;
    for (uint32_t s = 0; s < o->nslots; s++)
        if (o->holds[s] == tensor && (int32_t)s != to && has(row, s))
            return true;
    return false;
}

static void forget_in(int32_t *holds, uint32_t nslots, int32_t tensor) {
    for (uint32_t s = 0; tensor && s < nslots; s++)
        if (holds[s] == tensor)
            holds[s] = 0;
}

/* Adds what the slots hold here to what they hold at a jump's target. Where the two differ, both tensors lose
 * their numbers: the slot may be one more that holds them. */
static void arrive(Owning *o, size_t target) {
    const uint64_t *read = o->before + target * o->words;
    int32_t *there = o->arrived[target], *here = mem_bytes((o->nslots + 1) * sizeof *here);
    for (uint32_t s = 0; s < o->nslots; s++)
        here[s] = has(read, s) ? o->holds[s] : 0;
    if (!there) {
        o->arrived[target] = here;
        return;
    }
    for (uint32_t s = 0; s < o->nslots; s++)
        if (there[s] != here[s]) {
            int32_t one = there[s], other = here[s];
            forget_in(there, o->nslots, one);
            forget_in(there, o->nslots, other);
            forget_in(here, o->nslots, one);
            forget_in(here, o->nslots, other);
        }
}

static void meet_before(Owning *o, size_t at) {
    if (!o->arrived[at])
        return;
    if (o->reached)
        arrive(o, at);
    memcpy(o->holds, o->arrived[at], o->nslots * sizeof *o->holds);
}

static bool is_param(const Owning *o, int32_t tensor) {
    return tensor > 0 && tensor <= (int32_t)o->r->code->nparams;
}

static void own_operands(Owning *o, size_t at, int32_t to) {
    Instr *i = &o->r->instrs.data[at];
    bool is_site = i->op == CODE_OPERATOR;
    Site *site = is_site ? &o->r->sites.data[i->c] : NULL;
    uint32_t n = is_site ? site->nargs : i->op == CODE_NEG || i->op == CODE_NOT ? 1 : 2;
    for (uint32_t k = 0; k < n && k < OWN_ARGS; k++) {
        int32_t from = is_site ? i->b + (int32_t)(k << 4) : k ? i->c : i->b;
        int32_t tensor = (from & 3) == BASE_SLOT ? o->holds[from >> 4] : 0;
        if (!tensor || is_read_later(o, at, to, tensor))
            continue;
        uint32_t owner = is_param(o, tensor) ? OWN_IF + (uint32_t)tensor - 1 : OWN_ALWAYS;
        if (is_site) {
            if (!site->owner) {
                site->owner = mem_bytes(OWN_ARGS);
                memset(site->owner, OWN_NOT, OWN_ARGS);
            }
            site->owner[k] = (uint8_t)owner;
            site->nowned = k + 1;
        } else {
            i->x |= (uint16_t)(owner << (8 * k));
        }
    }
}

/* The arguments that a tail call hands over: each tensor that stands in one argument alone. */
static void give_arguments(Owning *o, size_t at) {
    Instr *i = &o->r->instrs.data[at];
    Gives *gives = NULL;
    for (uint32_t k = 0; k < i->x && k < OWN_PARAMS; k++) {
        int32_t tensor = o->holds[(i->c >> 4) + (int32_t)k];
        uint32_t times = 0;
        for (uint32_t s = 0; s < i->x; s++)
            times += o->holds[(i->c >> 4) + (int32_t)s] == tensor;
        if (!tensor || times != 1)
            continue;
        if (!gives) {
            gives = mem_new(Gives);
            vec_push(&o->r->gives, gives);
            i->a |= (int32_t)o->r->gives.len << 1;
        }
        gives->n = k + 1;
        gives->owner[k] = (uint8_t)(is_param(o, tensor) ? OWN_IF + (uint32_t)tensor - 1
                                                        : OWN_ALWAYS);
        gives->depends |= is_param(o, tensor);
        gives->always |= (uint64_t)!is_param(o, tensor) << k;
    }
}

static void run_forward(Owning *o) {
    Reads reads;
    int32_t to;
    bool makes;
    for (uint32_t k = 0; k < o->r->code->nparams && k < OWN_PARAMS && !o->r->code->item; k++)
        o->holds[k] = (int32_t)k + 1;
    o->next = (int32_t)o->r->code->nparams + 1;
    o->reached = true;
    for (size_t at = 0; at < o->n; at++) {
        const Instr *i = &o->r->instrs.data[at];
        meet_before(o, at);
        (void)look(o->r, at, &reads, &to, &makes);
        if ((i->op >= CODE_ADD && i->op <= CODE_GE) || i->op == CODE_NEG || i->op == CODE_NOT ||
            i->op == CODE_ADD_CT || i->op == CODE_OPERATOR)
            own_operands(o, at, to);
        if (i->op == CODE_TAIL || i->op == CODE_TAIL_GLOBAL)
            give_arguments(o, at);
        for (int k = 0; k < reads.nrows; k++)
            for (uint32_t s = 0; s < reads.row[k].n && reads.row[k].use == USE_KEEP; s++)
                forget_in(o->holds, o->nslots, o->holds[reads.row[k].first + s]);
        for (uint32_t s = 0; reads.make && s < reads.make->code->ncaptured; s++)
            if ((reads.make->captured[s] & 3) == BASE_SLOT)
                forget_in(o->holds, o->nslots, o->holds[reads.make->captured[s] >> 4]);
        int32_t value = makes ? o->next++ : 0;
        if (i->op == CODE_MOVE && (i->b & 3) == BASE_SLOT)
            value = o->holds[i->b >> 4];
        if (to >= 0)
            o->holds[to] = value;
        if (i->op == CODE_CALL || i->op == CODE_CALL_GLOBAL) /* the callee's activation was there */
            for (uint32_t s = (uint32_t)i->c >> 4; s < o->nslots; s++)
                if ((int32_t)s != to)
                    o->holds[s] = 0;
        if (is_jump(i))
            arrive(o, (size_t)i->a);
        o->reached = !ends(i);
    }
}

void own_code(Resolver *r) {
    Owning o = {.r = r, .n = (uint32_t)r->instrs.len, .nslots = r->max};
    o.words = (r->max + 63) / 64 + 1;
    if (r->code->verify || (uint64_t)o.n * (o.nslots + 64) > WORK_MOST)
        return;
    bool any = false;
    for (size_t at = 0; at < o.n && !any; at++)
        any = r->instrs.data[at].op == CODE_OPERATOR ||
              (r->instrs.data[at].op >= CODE_ADD && r->instrs.data[at].op <= CODE_NEG);
    if (!any)
        return;
    size_t rows = (size_t)(o.n + 1) * o.words * sizeof *o.before;
    o.before = mem_bytes(rows);
    o.after = mem_bytes(rows);
    memset(o.before, 0, rows);
    o.arrived = mem_new_n(int32_t *, o.n + 1);
    o.holds = mem_bytes((o.nslots + 1) * sizeof *o.holds);
    memset(o.holds, 0, (o.nslots + 1) * sizeof *o.holds);
    if (find_live(&o))
        run_forward(&o);
}
