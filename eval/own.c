/* SPDX-License-Identifier: Apache-2.0 */
/* See Note [Owners] in eval/own.h. Jumps only lead forward, so one pass backward tells which slots are read
 * later, and one pass forward which tensor each slot holds. */
#include "eval/own.h"

#include "eval/ad.h"
#include "eval/fuse.h"
#include "eval/operands.h"

#include <string.h>

enum {
    WORK_MOST = 1 << 20, /* instructions times slots: above it nothing is owned */
    OF_BUILTIN = 3,      /* an accumulator, its form, and what is added: eval/accumulate.c */
};

/* An instruction that is put before another. */
typedef struct Added {
    size_t before;
    Instr instr;
} Added;
typedef VEC(Added) AddedVec;

/* Of a tensor that was taken from a cotangent with parts: who reads it. See Note [Sums that end]. */
typedef struct CtPart {
    bool is_part, is_settled;
    uint32_t whole; /* the slot that holds the cotangent */
} CtPart;

typedef struct Owning {
    Resolver *r;
    uint32_t n, nslots, words;
    uint64_t *before,
        *after; /* a row an instruction: the slots that it or a later one reads; a later one */
    int32_t **arrived; /* of a jump's target: what the slots hold there, or NULL */
    int32_t *
        holds; /* slot -> number of its tensor, 0: not known; below 0: of a tuple that was made here */
    int32_t next;        /* the next number; those of parameters begin at 1 */
    size_t *made;        /* of each number, the instruction whose result it is */
    uint8_t *item;       /* of each number, which item of the frame it is, or 0 */
    uint32_t *results;   /* of each number of an operator's tuple, a bit an item that was read */
    CtPart *part;        /* of each number */
    int32_t frame;       /* the slot of the parameter that is the frame, or -1 */
    bool takes_item;     /* something takes an item of it */
    bool called;         /* since the machine knew which items it owns */
    bool *called_before; /* the same, of a jump's target */
    bool goes_back;      /* it takes frames apart, and nothing differentiates it */
    AddedVec added;
    bool reached; /* the instruction before leads here */
} Owning;

/* ---- what instructions do -------------------------------------------------------------------- */

/* What is made by tighten.c or by hand, and what may read anything, is not looked at; HOLE is said to do so because it
 * moves the activation, with what its slots hold. */
static bool is_plain(const Instr *i) {
    const OpcodeInfo *info = instr_info(i);
    if (i->op == CODE_HOLE)
        return true;
    return info->b != PART_ANY && info->b != PART_LIST_X && info->b != PART_LIST_C &&
           info->b != PART_LIST_CTOR && info->c != PART_PAIRS && info->result != RESULT_SEVERAL;
}

static void find_reads(const Resolver *r, size_t at, Reads *out) {
    const Instr *i = &r->instrs.data[at];
    instr_reads(r, NULL, at, out);
    if (i->op == CODE_HOLE)
        *out = (Reads){.row = {{(uint32_t)i->b >> 4, 1}, {(uint32_t)i->c >> 4, 1}}, .nrows = 2};
}

static bool calls(const Resolver *r, const Instr *i, BuiltinFn fn) {
    return i->op == CODE_BUILTIN && r->sites.data[i->c].builtin->fn == fn;
}

/* The slot whose tensor is the result, too, or -1. Of an accumulator that is made dense it is the second argument. */
static int32_t passed_on(const Resolver *r, const Instr *i) {
    if ((i->b & 3) != BASE_SLOT)
        return -1;
    return i->op == CODE_MOVE || calls(r, i, ad_settle) ? i->b >> 4
           : calls(r, i, ad_dense)                      ? (i->b >> 4) + 1
                                                        : -1;
}

/* What an instruction does with its operands. A sum to a part of which is added may be written over, and nobody else
 * knows what comes of it. */
static Use use_of(const Resolver *r, const Instr *i) {
    return passed_on(r, i) >= 0        ? USE_BORROW
           : calls(r, i, ad_add_index) ? USE_TAKE
                                       : instr_info(i)->use;
}

static bool keeps(const Resolver *r, const Instr *i) {
    Use use = use_of(r, i);
    return use == USE_KEEP || use == USE_KEEP_OR_TAKE;
}

static bool takes(const Resolver *r, const Instr *i) {
    Use use = use_of(r, i);
    return use == USE_TAKE || use == USE_KEEP_OR_TAKE;
}

/* How many of a row of n are kept. Of a product that waits the sum is the result, and the factors are held by views. */
static uint32_t count_kept(const Instr *i, uint32_t n) { return i->op == CODE_ADD_PRODUCT ? 1 : n; }

/* The slot that is written, or -1. */
static int32_t written(const Instr *i) {
    return instr_info(i)->result == RESULT_NOTHING ? -1 : i->a >> 4;
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

/* False where the function is not to be looked at. */
static bool find_live(Owning *o) {
    Reads reads;
    for (size_t at = o->n; at-- > 0;) {
        const Instr *i = &o->r->instrs.data[at];
        uint64_t *after = o->after + at * o->words, *before = o->before + at * o->words;
        if (!is_plain(i) || (instr_jumps(i) && (size_t)i->a <= at))
            return false;
        for (uint32_t w = 0; w < o->words; w++) {
            after[w] = instr_ends(i) ? 0 : before[w + o->words];
            if (instr_jumps(i))
                after[w] |= o->before[(size_t)i->a * o->words + w];
            before[w] = after[w];
        }
        int32_t to = written(i);
        if (to >= 0)
            before[to / 64] &= ~(UINT64_C(1) << to % 64);
        find_reads(o->r, at, &reads);
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
    o->called_before[target] |= o->called;
    const uint64_t *read = o->before + target * o->words;
    int32_t *there = o->arrived[target], *here = mem_bytes((o->nslots + 1) * sizeof *here);
    memcpy(here, o->holds, o->nslots * sizeof *here);
    if (!there) {
        o->arrived[target] = here;
        return;
    }
    for (uint32_t s = 0; s < o->nslots; s++)
        if (there[s] != here[s] && !has(read, s)) {
            there[s] = here[s] = 0;
        } else if (there[s] != here[s]) {
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
    o->called = o->called_before[at];
}

static bool is_param(const Owning *o, int32_t tensor) {
    return tensor > 0 && tensor <= (int32_t)o->r->code->nparams;
}

static bool is_called(const Owning *o, int32_t tensor) {
    return tensor > 0 && !is_param(o, tensor) &&
           instr_info(&o->r->instrs.data[o->made[tensor]])->result == RESULT_CALLED;
}

static uint32_t owner_of(const Owning *o, int32_t tensor) {
    return tensor <= 0               ? OWN_NOT
           : o->part[tensor].is_part ? OWN_NOT
           : is_param(o, tensor)     ? OWN_IF + (uint32_t)tensor - 1
           : is_called(o, tensor)    ? OWN_CALLED
           : o->item[tensor]         ? OWN_ITEM + o->item[tensor] - 1u
                                     : OWN_ALWAYS;
}

static bool is_tail_call(const Instr *i) { return i->op == CODE_TAIL || i->op == CODE_TAIL_GLOBAL; }

/* The first of the moves that put a tail call's arguments in their places, or the instruction, with the path that a call
 * asks for. */
static size_t first_move(const Owning *o, size_t at) {
    const Instr *all = o->r->instrs.data;
    bool is_tail = is_tail_call(&all[at]);
    if (at > 0 && all[at - 1].op == CODE_PATH)
        at--;
    while (is_tail && at > 0 && !o->arrived[at] && all[at - 1].op == CODE_MOVE)
        at--;
    return at;
}

/* The owner where the tensor is taken over after instruction `at`. */
static uint32_t take(Owning *o, size_t at, int32_t tensor) {
    uint32_t owner = owner_of(o, tensor);
    if (owner < OWN_ITEM)
        return owner;
    if (has(o->after + at * o->words, (uint32_t)o->frame))
        return OWN_NOT; /* the frame is taken apart once more */
    o->takes_item = true;
    if (o->called) {
        Instr again = {CODE_OWNED_AGAIN, 0, 0, slot(o->r->owned), 0};
        vec_push(&o->added, ((Added){first_move(o, at), again}));
        o->called = false;
    }
    return owner;
}

/* The owner where instruction `at` adds the tensor to an accumulator. */
static uint32_t take_sum(Owning *o, size_t at, int32_t tensor) {
    const CtPart *part = tensor > 0 ? &o->part[tensor] : NULL;
    if (part && part->is_settled && !has(o->after + at * o->words, part->whole))
        return OWN_SUM;
    return take(o, at, tensor);
}

/* Says who owns argument k. */
static void add_owner(Owners **owners, uint32_t k, uint32_t owner) {
    if (owner == OWN_NOT)
        return;
    if (!*owners)
        *owners = mem_new(Owners);
    (*owners)->owner[k] = (uint8_t)owner;
    (*owners)->always |= (uint64_t)(owner == OWN_ALWAYS) << k;
    (*owners)->perhaps |= (uint64_t)(owner != OWN_ALWAYS) << k;
}

/* Whether the tensor of the k'th of n slots stands in no other of them. */
static bool is_alone(const int32_t *row, uint32_t n, uint32_t k) {
    for (uint32_t j = 0; j < n; j++)
        if (j != k && row[j] == row[k])
            return false;
    return true;
}

static void own_operands(Owning *o, size_t at, int32_t to) {
    Instr *i = &o->r->instrs.data[at];
    bool is_site = instr_info(i)->b == PART_ROW_SITE || instr_info(i)->b == PART_ROW_ARGS;
    Site *site = is_site ? &o->r->sites.data[i->c] : NULL;
    uint32_t n = i->op == CODE_BUILTIN ? (site->nargs < OF_BUILTIN ? site->nargs : OF_BUILTIN)
                 : is_site             ? site->nargs
                 : i->op == CODE_NEG || i->op == CODE_NOT ? 1
                                                          : 2;
    for (uint32_t k = 0; k < n && k < OWN_ARGS; k++) {
        int32_t from = is_site ? i->b + (int32_t)(k << 4) : k ? i->c : i->b;
        int32_t tensor = (from & 3) == BASE_SLOT ? o->holds[from >> 4] : 0;
        if (!tensor || is_read_later(o, at, to, tensor))
            continue;
        if (tensor < 0) {
            if (i->op == CODE_OPERATOR && !site->group)
                site->spent = k + 1;
            continue;
        }
        uint32_t owner = k == 1 && i->op == CODE_ADD_CT ? take_sum(o, at, tensor)
                                                        : take(o, at, tensor);
        if (is_site) {
            add_owner(&site->owners, k, owner);
            site->alone |= (uint64_t)is_alone(o->holds + (i->b >> 4), site->nargs, k) << k;
        } else {
            i->x |= (uint16_t)(owner << (8 * k));
        }
    }
    /* what was taken over is given back by nobody else */
    for (uint32_t k = 0; k < n && k < OWN_ARGS; k++) {
        int32_t from = is_site ? i->b + (int32_t)(k << 4) : k ? i->c : i->b;
        int32_t tensor = (from & 3) == BASE_SLOT ? o->holds[from >> 4] : 0;
        if (tensor && !is_read_later(o, at, to, tensor))
            forget_in(o->holds, o->nslots, tensor);
    }
}

/* Whether a value of type t may be a tensor that is worth giving back. */
static bool may_be_tensor(Type *t) {
    uint32_t rank;
    Type **dims;
    t = t ? type_resolve(t) : NULL;
    return t && (t->tag == TY_PARAM ||
                 (t->tag == TY_TENSOR && (!type_get_rank(t, &rank, &dims) || rank > 0)));
}

/* Whether argument k of a call may be such a tensor. */
static bool may_be_given(const Expr *call, uint32_t k) {
    return call->kind == EXPR_CALL && k < call->nargs && may_be_tensor(call->args[k]->type);
}

/* The arguments that a call hands over: each tensor that stands in one argument alone, and that nothing reads later. */
static void give_arguments(Owning *o, size_t at) {
    Instr *i = &o->r->instrs.data[at];
    const int32_t *row = o->holds + (i->c >> 4);
    Owners *gives = NULL;
    for (uint32_t k = 0; k < i->x && k < OWN_PARAMS; k++) {
        bool is_last = is_tail_call(i) || !is_read_later(o, at, written(i), row[k]);
        if (row[k] > 0 && is_last && is_alone(row, i->x, k) &&
            may_be_given(o->r->origin.data[at], k))
            add_owner(&gives, k, take(o, at, row[k]));
    }
    if (!gives)
        return;
    vec_push(&o->r->gives, gives);
    if (is_tail_call(i)) {
        i->a |= (int32_t)o->r->gives.len << 1;
    } else {
        Instr give = {CODE_GIVE, 0, (int32_t)o->r->gives.len - 1, 0, 0};
        vec_push(&o->added, ((Added){first_move(o, at), give}));
    }
}

/* ---- what a tail call leaves behind ---------------------------------------------------------- */

static void drop_unread(Owning *o, size_t at) {
    const Instr *i = &o->r->instrs.data[at];
    size_t before = first_move(o, at);
    int32_t args = i->c >> 4;
    for (int32_t s = 0; s < (int32_t)o->nslots; s++) {
        int32_t tensor = o->holds[s];
        if (tensor <= 0 || is_param(o, tensor) || o->part[tensor].is_part ||
            (s >= args && s < args + i->x))
            continue;
        size_t made = o->made[tensor];
        bool given = (i->b & 3) == BASE_SLOT && o->holds[i->b >> 4] == tensor; /* the callee */
        for (int32_t k = args; k < args + i->x; k++)
            given |= o->holds[k] == tensor;
        if (given || made >= before || !may_be_tensor(o->r->origin.data[made]->type))
            continue;
        Instr drop = {CODE_DROP, (uint16_t)take(o, at, tensor), 0, slot(s), 0};
        vec_push(&o->added, ((Added){before, drop}));
        forget_in(o->holds, o->nslots, tensor);
    }
}

/* They are in order. */
static void insert_added(const Owning *o) {
    Resolver *r = o->r;
    size_t n = o->n + o->added.len, *to = mem_bytes((o->n + 1) * sizeof *to), d = 0;
    Instr *instrs = mem_bytes(n * sizeof *instrs);
    Expr **origin = mem_new_n(Expr *, n);
    for (size_t at = 0, k = 0; at < o->n; at++) {
        to[at] = k;
        for (; d < o->added.len && o->added.data[d].before == at; d++) {
            origin[k] = r->origin.data[at];
            instrs[k++] = o->added.data[d].instr;
        }
        origin[k] = r->origin.data[at];
        instrs[k++] = r->instrs.data[at];
    }
    for (size_t k = 0; k < n; k++)
        if (instr_jumps(&instrs[k]))
            instrs[k].a = (int32_t)to[instrs[k].a];
    for (size_t i = 0; i < r->groups.len; i++)
        r->groups.data[i]->instr = to[r->groups.data[i]->instr];
    vec_reserve(&r->instrs, n);
    vec_reserve(&r->origin, n);
    memcpy(r->instrs.data, instrs, n * sizeof *instrs);
    memcpy(r->origin.data, origin, n * sizeof *origin);
    r->instrs.len = r->origin.len = n;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The parameter that is a frame of a derivative and is read by its items alone; of several, the first. Whoever else it is
 * handed to may take the items. */
static int32_t find_frame(const Resolver *r) {
    const Expr *fn = r->code->fn;
    int32_t frame = -1;
    Reads reads;
    for (uint32_t i = 0; i < r->code->nparams && !r->code->item && frame < 0; i++)
        if (fn_has_frames(fn->fn, fn->fn->params[i]))
            frame = (int32_t)i;
    for (size_t at = 0; at < r->instrs.len && frame >= 0; at++) {
        const Instr *i = &r->instrs.data[at];
        find_reads(r, at, &reads);
        if (written(i) == frame || (i->op != CODE_PROJ && reads_slot(&reads, (uint32_t)frame)))
            frame = -1;
    }
    return frame;
}

/* Whether a way leads from one instruction to a later one. */
static bool leads_to(const Owning *o, size_t from, size_t to) {
    bool *on = mem_bytes(to - from + 1);
    memset(on, 0, to - from + 1);
    on[0] = true;
    for (size_t at = from; at < to; at++) {
        const Instr *i = &o->r->instrs.data[at];
        if (on[at - from] && instr_jumps(i) && (size_t)i->a <= to)
            on[(size_t)i->a - from] = true;
        if (on[at - from] && !instr_ends(i))
            on[at + 1 - from] = true;
    }
    return on[to - from];
}

/* Whether the instruction reads an item behind the result from the frame, and no other on the same way does: the item
 * has one name then. */
static bool reads_item(const Owning *o, size_t at) {
    const Instr *all = o->r->instrs.data, *i = &all[at];
    if (i->op != CODE_PROJ || o->frame < 0 || i->b != slot(o->frame) || i->c < 1 ||
        i->c > OWN_ITEMS || !may_be_tensor(o->r->origin.data[at]->type))
        return false;
    for (size_t k = 0; k < o->n; k++)
        if (k != at && all[k].op == CODE_PROJ && all[k].b == i->b && all[k].c == i->c &&
            leads_to(o, k < at ? k : at, k < at ? at : k))
            return false;
    return true;
}

/* Which items belong to a tuple alone: tensors that were made here and that no other slot read later holds. The first
 * is the result, where it is a frame, which the caller reads. As the number of a list of Code.items_owned. */
static uint16_t items_owned(const Owning *o, size_t at) {
    const Instr *i = &o->r->instrs.data[at];
    const int32_t *row = o->holds + (i->b >> 4);
    uint32_t owned = 0;
    for (int32_t k = 1; k < i->c && k <= OWN_ITEMS; k++) {
        bool own = owner_of(o, row[k]) == OWN_ALWAYS && !is_read_later(o, at, i->a >> 4, row[k]);
        if (own && is_alone(row, (uint32_t)i->c, (uint32_t)k) &&
            may_be_tensor(o->r->origin.data[o->made[row[k]]]->type))
            owned |= UINT32_C(1) << (k - 1);
    }
    if (!owned || o->r->items_owned.len > UINT16_MAX)
        return 0;
    if (!o->r->items_owned.len)
        vec_push(&o->r->items_owned, 0);
    vec_push(&o->r->items_owned, owned);
    return (uint16_t)(o->r->items_owned.len - 1);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The number of a result that is made here; of a call's, none that was made by one before. */
static int32_t number_result(Owning *o, size_t at, bool called) {
    for (uint32_t s = 0; called && s < o->nslots; s++)
        if (is_called(o, o->holds[s]))
            o->holds[s] = 0;
    o->made[o->next] = at;
    return o->next++;
}

/* What ad.settle gives is known by another number from here on, and so is its argument. */
static int32_t settle_part(Owning *o, size_t at, int32_t tensor) {
    int32_t settled = number_result(o, at, false);
    o->part[settled] = (CtPart){true, true, o->part[tensor].whole};
    for (uint32_t s = 0; s < o->nslots; s++)
        if (o->holds[s] == tensor)
            o->holds[s] = settled;
    return settled;
}

/* The number of a part of a cotangent, where the function goes back once, or 0. */
static int32_t number_part(Owning *o, size_t at) {
    const Instr *i = &o->r->instrs.data[at];
    if (i->op != CODE_PART_OF_CT || (i->b & 3) != BASE_SLOT || !o->goes_back)
        return 0;
    int32_t part = number_result(o, at, false);
    o->part[part] = (CtPart){true, false, (uint32_t)i->b >> 4};
    return part;
}

/* Whether the instruction reads an item of an operator's tuple, once, that is not read later: nobody else knows the item
 * then. */
static bool reads_result(Owning *o, size_t at, int32_t to) {
    const Instr *i = &o->r->instrs.data[at];
    if (i->op != CODE_PROJ || (i->b & 3) != BASE_SLOT || i->c >= 32)
        return false;
    int32_t tuple = o->holds[i->b >> 4];
    if (tuple <= 0 || is_param(o, tuple) || o->r->instrs.data[o->made[tuple]].op != CODE_OPERATOR)
        return false;
    bool again = o->results[tuple] >> i->c & 1;
    o->results[tuple] |= UINT32_C(1) << i->c;
    return !again && !is_read_later(o, at, to, tuple) && may_be_tensor(o->r->origin.data[at]->type);
}

static void give_result(Owning *o, size_t at) {
    Instr *i = &o->r->instrs.data[at];
    if ((i->b & 3) == BASE_SLOT && may_be_tensor(o->r->origin.data[at]->type))
        i->x = (uint16_t)take(o, at, o->holds[i->b >> 4]);
}

static void run_forward(Owning *o) {
    Reads reads;
    for (uint32_t k = 0; k < o->r->code->nparams && k < OWN_PARAMS && !o->r->code->item; k++)
        o->holds[k] = (int32_t)k + 1;
    o->next = (int32_t)o->r->code->nparams + 1;
    o->reached = true;
    for (size_t at = 0; at < o->n; at++) {
        const Instr *i = &o->r->instrs.data[at];
        meet_before(o, at);
        find_reads(o->r, at, &reads);
        int32_t to = written(i);
        if (i->op == CODE_TUPLE)
            o->r->instrs.data[at].x = items_owned(o, at);
        if (takes(o->r, i))
            own_operands(o, at, to);
        /* the result may be the accumulator, whose shape may be read later */
        if (calls(o->r, i, ad_add_index))
            forget_in(o->holds, o->nslots, o->holds[i->b >> 4]);
        bool called = instr_info(i)->result == RESULT_CALLED;
        if (called || is_tail_call(i))
            give_arguments(o, at);
        if (is_tail_call(i))
            drop_unread(o, at);
        if (i->op == CODE_RETURN)
            give_result(o, at);
        for (int k = 0; k < reads.nrows && keeps(o->r, i); k++)
            for (uint32_t s = 0; s < count_kept(i, reads.row[k].n); s++)
                forget_in(o->holds, o->nslots, o->holds[reads.row[k].first + s]);
        for (uint32_t s = 0; reads.make && s < reads.make->code->ncaptured; s++)
            if ((reads.make->captured[s] & 3) == BASE_SLOT)
                forget_in(o->holds, o->nslots, o->holds[reads.make->captured[s] >> 4]);
        o->called |= called; /* which may take another frame apart */
        bool item = reads_item(o, at);
        bool fresh = instr_info(i)->result == RESULT_FRESH || calls(o->r, i, ad_add_index) ||
                     item || reads_result(o, at, to);
        int32_t value = fresh || called       ? number_result(o, at, called)
                        : i->op == CODE_TUPLE ? -number_result(o, at, false)
                                              : number_part(o, at);
        if (item)
            o->item[value] = (uint8_t)i->c;
        if (passed_on(o->r, i) >= 0)
            value = o->holds[passed_on(o->r, i)];
        if (calls(o->r, i, ad_settle) && value > 0 && o->part[value].is_part)
            value = settle_part(o, at, value);
        if (to >= 0)
            o->holds[to] = value;
        if (called) /* the callee's activation was there */
            for (uint32_t s = (uint32_t)i->c >> 4; s < o->nslots; s++)
                if ((int32_t)s != to)
                    o->holds[s] = 0;
        if (instr_jumps(i))
            arrive(o, (size_t)i->a);
        o->reached = !instr_ends(i);
    }
}

bool own_is_tuple_of_tensors(const Expr *e, uint32_t most) {
    if (e->kind != EXPR_TUPLE || !e->nargs || e->nargs > most)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        Type *t = e->args[i]->type ? type_resolve(e->args[i]->type) : NULL;
        if (!t || t->tag != TY_TENSOR)
            return false;
    }
    return true;
}

bool own_spreads(const Resolver *r, const Expr *call, const Expr *e) {
    return !r->code->verify && call->nargs == 1 && !call->nsizes && call->a->kind == EXPR_OP &&
           op_has_kept_plans(call->a->op) && own_is_tuple_of_tensors(e, OWN_ARGS);
}

void own_code(Resolver *r) {
    Owning o = {.r = r, .n = (uint32_t)r->instrs.len, .nslots = r->max};
    o.words = (r->max + 63) / 64 + 1;
    if (r->code->verify || (uint64_t)o.n * (o.nslots + 64) > WORK_MOST)
        return;
    bool any = false;
    for (size_t at = 0; at < o.n && !any; at++)
        any = takes(r, &r->instrs.data[at]) ||
              instr_info(&r->instrs.data[at])->result == RESULT_CALLED;
    if (!any)
        return;
    size_t rows = (size_t)(o.n + 1) * o.words * sizeof *o.before;
    o.before = mem_bytes(rows);
    o.after = mem_bytes(rows);
    memset(o.before, 0, rows);
    o.arrived = mem_new_n(int32_t *, o.n + 1);
    o.holds = mem_bytes((o.nslots + 1) * sizeof *o.holds);
    memset(o.holds, 0, (o.nslots + 1) * sizeof *o.holds);
    o.made = mem_bytes((o.n + r->code->nparams + 1) * sizeof *o.made);
    o.item = mem_bytes(o.n + r->code->nparams + 1);
    memset(o.item, 0, o.n + r->code->nparams + 1);
    o.results = mem_new_n(uint32_t, o.n + r->code->nparams + 1);
    o.part = mem_bytes((o.n + r->code->nparams + 1) * sizeof *o.part);
    memset(o.part, 0, (o.n + r->code->nparams + 1) * sizeof *o.part);
    o.called_before = mem_bytes(o.n + 1);
    memset(o.called_before, 0, o.n + 1);
    o.frame = find_frame(r);
    o.goes_back = r->code->fn->kind == EXPR_FN && r->code->fn->fn->frames.len > 0;
    if (find_live(&o))
        run_forward(&o);
    if (o.takes_item) {
        Instr owned = {CODE_OWNED, 0, slot(r->owned), slot(o.frame), 0};
        vec_push(&o.added, ((Added){0}));
        memmove(o.added.data + 1, o.added.data, (o.added.len - 1) * sizeof *o.added.data);
        o.added.data[0] = (Added){0, owned};
    }
    if (o.added.len)
        insert_added(&o);
}
