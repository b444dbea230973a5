/* SPDX-License-Identifier: Apache-2.0 */
/* Values copied, and cells made and given back, by the instructions of run.c. */
#ifndef EVAL_RUN_PARTS_H
#define EVAL_RUN_PARTS_H

#include "eval/machine.h"
#include "eval/run_scalar.h"
#include "eval/waiting.h"

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

/* Where the number of parts is a constant, the loop over them is written out. */
#define EACH_PART _Pragma("GCC unroll 4")

/* n fields of data, from `first` on. What they refer to is looked at soon. */
static inline void copy_fields(Value *to, const Data *d, uint32_t first, uint32_t n) {
    const uint64_t *words = d->words + first, *heads = d->layout->heads + first;
    EACH_PART for (uint32_t i = 0; i < n; i++) {
        memcpy(&to[i], &heads[i], sizeof *heads);
        memcpy(&to[i].i, &words[i], sizeof *words);
        if (to[i].tag == VAL_CTOR)
            __builtin_prefetch(to[i].p);
    }
}

/* The constructor by which code of derivatives knows a closure; NULL: it is of none. */
static inline const Ctor *ctor_of_closure(const Closure *c) {
    const Expr *base = c->fn->fn->base;
    return (base ? base : c->fn)->fn->as_data;
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
    return UNLIKELY(size >= CELL_SIZES) ? mem_alloc(bytes) : mem_cell(&in->free_cells[size], bytes);
}

/* A cell of so many bytes that nothing refers to. */
static inline void cell_free(Interp *in, void *cell, size_t bytes) {
    size_t size = cell_words(bytes);
    if (UNLIKELY(size >= CELL_SIZES))
        return;
    *(void **)cell = in->free_cells[size];
    in->free_cells[size] = cell;
}

/* A cell of so many bytes. The state is saved only where the collector may run. */
#define NEW_CELL(type, name, bytes)                                                                \
    type *name = cell_take(in, bytes);                                                             \
    if (UNLIKELY(!name)) {                                                                         \
        SAVE();                                                                                    \
        name = cell_new(in, bytes);                                                                \
    }

static inline Value owning_tuple(const Value *items, uint32_t n, uint32_t owned) {
    Value v = value_tuple(items, n);
    if (owned)
        ((Tuple *)v.p)->owned = owned;
    return v;
}

/* A tuple of `many` operands of a list, which `get` finds. */
#define MAKE_TUPLE(at, list, many, get, owns)                                                      \
    do {                                                                                           \
        uint32_t all = (many);                                                                     \
        const int32_t *item = (list);                                                              \
        size_t bytes = sizeof(Tuple) + all * sizeof(Value);                                        \
        NEW_CELL(Tuple, made, bytes)                                                               \
        *(void **)made = NULL;                                                                     \
        made->n = all;                                                                             \
        made->owned = (owns);                                                                      \
        EACH_PART for (uint32_t part = 0; part < all; part++)                                      \
            copy_value(&made->items[part], get(item[part]));                                       \
        put_pointer(&(at), VAL_TUPLE, made);                                                       \
    } while (0)

/* What a value refers to is looked at soon, and lies where nobody was since the way forward. */
static inline void fetch_early(const Value *v) {
    enum { LINE = 64 };
    if (v->tag == VAL_SCALAR)
        return;
    __builtin_prefetch(v->p);
    if (v->tag == VAL_TENSOR)
        __builtin_prefetch((const char *)v->p + LINE);
}

/* Copies n items of a frame of so many, from `first` on, and gives the frame back. Nothing is kept alive by it. */
static inline void take_frame(Interp *in, Tuple *t, uint32_t all, uint32_t first, uint32_t n,
                              Value *to) {
    cell_free(in, t, sizeof(Tuple) + all * sizeof(Value));
    for (uint32_t i = 0; i < first; i++)
        t->items[i].p = NULL;
    EACH_PART for (uint32_t i = 0; i < n; i++) {
        copy_value(&to[i], &t->items[first + i]);
        fetch_early(&to[i]);
        t->items[first + i].p = NULL;
    }
    for (uint32_t i = first + n; i < all; i++)
        t->items[i].p = NULL;
}

/* An operator on the slots from `args` on. The tuple that was made for it alone is given back. */
static inline bool run_operator(Interp *in, const Site *s, const Value *args, Span span,
                                Value *out) {
    Tuple *spent = s->spent ? args[s->spent - 1].p
                            : NULL; /* read first: the result may stand there */
    in->dying = owned_of(in, s->owners);
    if (!apply_op(in, s, args, span, out))
        return false;
    if (spent)
        take_frame(in, spent, spent->n, 0, 0, NULL);
    return true;
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

/* ---- instructions with forms: Note [Forms] in eval/code.h ---- */

#define MOVES_OF(form, n, get)                                                                     \
    do_MOVES##form : {                                                                             \
        Value *to = &SLOT(pc->a);                                                                  \
        const int32_t *from = code->lists + pc->b;                                                 \
        EACH_PART for (uint32_t i = 0; i < (n); i++) copy_value(&to[i], get(from[i]));             \
        NEXT();                                                                                    \
    }

/* The parts that the caller takes go to its slots. */
#define HAND_PARTS(n, from, get)                                                                   \
    do {                                                                                           \
        Value items[PARTS_MOST];                                                                   \
        EACH_PART for (uint32_t i = 0; i < (n); i++) copy_value(&items[i], get((from)[i]));        \
        RESUME();                                                                                  \
        Value *to = &SLOT(pc->a);                                                                  \
        EACH_PART for (uint32_t i = 0; i < (n); i++) copy_value(&to[i], &items[i]);                \
        NEXT();                                                                                    \
    } while (0)

/* A function that calls itself: its constants are at hand, and nothing is asked but whether it is still the same. */
#define CALL_SELF_FORM                                                                             \
    do_CALL_GLOBAL_SELF : {                                                                        \
        const Cell *cell = CONST(pc->b)[1].p;                                                      \
        const Global *g = CONST(pc->b)->p;                                                         \
        callee = cell->value.p;                                                                    \
        if (UNLIKELY(cell->source != g->value || g->broken || callee->code != code))               \
            goto do_CALL_GLOBAL;                                                                   \
        calls++;                                                                                   \
        in->owned = 0;                                                                             \
        *fp++ = (Frame){closure, code, pc + 1, NULL};                                              \
        closure = callee;                                                                          \
        base = (Value *)((char *)base + pc->c);                                                    \
        goto same_code;                                                                            \
    }

/* What eval/own.h says of the arguments of the call that follows. */
#define GIVE_ARGUMENTS                                                                             \
    do_GIVE:                                                                                       \
    given = owned_of(in, code->gives[pc->a]);                                                      \
    pc++;                                                                                          \
    if (UNLIKELY(in->counts != NULL))                                                              \
        in->counts[pc->op]++;                                                                      \
    if (pc->op == CODE_CALL)                                                                       \
        goto call;                                                                                 \
    if (pc->op == CODE_PATH)                                                                       \
        goto call_path;                                                                            \
    goto call_global;

/* What eval/own.h says of results. */
#define OWNED_RESULTS                                                                              \
    do_RETURN_OWN : {                                                                              \
        f = R(pc->b);                                                                              \
        given = given_result(in, pc->x);                                                           \
        RESUME();                                                                                  \
        in->owned = given;                                                                         \
        copy_value(&SLOT(pc[-1].a), f);                                                            \
        DISPATCH();                                                                                \
    }                                                                                              \
    do_DROP:                                                                                       \
    drop_owned(in, *R(pc->b), pc->x);                                                              \
    NEXT();                                                                                        \
    do_OWNED:                                                                                      \
    in->owned_items = frame_at(R(pc->b))->owned;                                                   \
    SLOT(pc->a) = value_int(DT_I64, in->owned_items);                                              \
    NEXT();                                                                                        \
    do_OWNED_AGAIN:                                                                                \
    in->owned_items = (uint32_t)R(pc->b)->i;                                                       \
    NEXT();

#define RETURN_FORM(n)                                                                             \
    do_RETURN_OF_##n : {                                                                           \
        const Instr *next_pc = fp[-1].pc;                                                          \
        if (UNLIKELY(next_pc->op != CODE_UNPACK_CALLED || next_pc->x != (n) || next_pc->c))        \
            goto do_RETURN_OF;                                                                     \
        HAND_PARTS(n, code->lists + pc->b, S);                                                     \
    }

/* A tuple is not made where the caller takes it apart. */
#define RETURN_FORMS                                                                               \
    do_RETURN_OF : {                                                                               \
        const int32_t *from = code->lists + pc->b;                                                 \
        const Instr *next_pc = fp[-1].pc;                                                          \
        if (UNLIKELY(next_pc->op != CODE_UNPACK_CALLED)) {                                         \
            MAKE_TUPLE(SLOT(pc->a), from, (uint32_t)pc->c, R, code->items_owned[pc->x]);           \
            f = &SLOT(pc->a);                                                                      \
            goto return_value;                                                                     \
        }                                                                                          \
        uint32_t n = next_pc->x;                                                                   \
        from += next_pc->c;                                                                        \
        HAND_PARTS(n, from, R);                                                                    \
    }                                                                                              \
    RETURN_FORM(2) RETURN_FORM(3) RETURN_FORM(4)

/* MADE: the function is always the same, and what is to be done now and then is done at its beginning. */
#define TAIL_FORM(n)                                                                               \
    do_TAIL_GLOBAL_OF_##n : {                                                                      \
        const Cell *cell = CONST(pc->b)[1].p;                                                      \
        const Global *g = CONST(pc->b)->p;                                                         \
        if (UNLIKELY(cell->source != g->value || g->broken ||                                      \
                     ((const Closure *)cell->value.p)->code != code))                              \
            goto do_TAIL_GLOBAL_OF;                                                                \
        const int32_t *move = code->lists + pc->c + 1;                                             \
        EACH_PART for (int i = 0; i < (n); i++) copy_value(S(move[2 * i]), S(move[2 * i + 1]));    \
        goto again;                                                                                \
    }                                                                                              \
    do_TAIL_GLOBAL_OF_MADE_##n : {                                                                 \
        const int32_t *move = code->lists + pc->c + 1;                                             \
        EACH_PART for (int i = 0; i < (n); i++) copy_value(S(move[2 * i]), S(move[2 * i + 1]));    \
        in->owned = 0;                                                                             \
        if (UNLIKELY(!(++calls % CLEARED_EACH)))                                                   \
            goto start;                                                                            \
        pc = code->instrs;                                                                         \
        DISPATCH();                                                                                \
    }

#define DATA_OF(form, many, get)                                                                   \
    do_DATA_OF##form : {                                                                           \
        const DataLayout *layout = CONST(pc->c)[1].p;                                              \
        uint32_t n = (many);                                                                       \
        const int32_t *from = code->lists + pc->b;                                                 \
        size_t bytes = sizeof(Data) + n * sizeof(uint64_t);                                        \
        NEW_CELL(Data, d, bytes)                                                                   \
        d->layout = layout;                                                                        \
        uint64_t differ = 0;                                                                       \
        EACH_PART for (uint32_t i = 0; i < n; i++) {                                               \
            const Value *v = get(from[i]);                                                         \
            differ |= head(v) ^ layout->heads[i];                                                  \
            memcpy(&d->words[i], &v->i, sizeof v->i);                                              \
        }                                                                                          \
        if (UNLIKELY(differ)) {                                                                    \
            SAVE();                                                                                \
            change_layout(code, pc, bases, d);                                                     \
        }                                                                                          \
        put_pointer(&SLOT(pc->a), VAL_CTOR, d);                                                    \
        NEXT();                                                                                    \
    }

#define TUPLE_OF(form, n, get, owns)                                                               \
    do_TUPLE_OF##form : {                                                                          \
        MAKE_TUPLE(SLOT(pc->a), code->lists + pc->b, n, get, owns);                                \
        NEXT();                                                                                    \
    }

/* Of frames that are taken whole; the first of a loop, which is another, is left to the instructions themselves. */
#define FRAME_FORMS(count)                                                                         \
    do_UNPACK_FRAME_##count : {                                                                    \
        const Tuple *t = frame_at(S(pc->b));                                                       \
        if (UNLIKELY(t->n != (count) || (t->items->tag == VAL_TUPLE && !t->items->p)))             \
            goto do_UNPACK_FRAME;                                                                  \
        Value *to = S(pc->c);                                                                      \
        EACH_PART for (uint32_t i = 0; i < (count); i++) copy_value(&to[i], &t->items[i]);         \
        pc = code->instrs + pc->a;                                                                 \
        DISPATCH();                                                                                \
    }                                                                                              \
    do_UNPACK_LAST_##count : {                                                                     \
        Tuple *t = frame_at(S(pc->b));                                                             \
        if (UNLIKELY(t->n != (count) + 1 || pc->c != 1))                                           \
            goto do_UNPACK_LAST;                                                                   \
        take_frame(in, t, (count) + 1, 1, count, S(pc->a));                                        \
        NEXT();                                                                                    \
    }                                                                                              \
    do_POP_FRAME_##count : {                                                                       \
        Tuple *t = frame_at(S(pc->b));                                                             \
        if (UNLIKELY(t->n != (count) || (t->items->tag == VAL_TUPLE && !t->items->p)))             \
            goto do_POP_FRAME;                                                                     \
        take_frame(in, t, count, 0, count, S(pc->c));                                              \
        pc = code->instrs + pc->a;                                                                 \
        DISPATCH();                                                                                \
    }                                                                                              \
    do_NEXT_FRAME_##count : {                                                                      \
        Value *at = S(pc->b);                                                                      \
        Tuple *t = frame_at(at);                                                                   \
        if (UNLIKELY(t->n != (count) || (t->items->tag == VAL_TUPLE && !t->items->p)))             \
            goto do_NEXT_FRAME;                                                                    \
        copy_value(at, t->items);                                                                  \
        take_frame(in, t, count, 1, (count)-1, S(pc->c) + 1);                                      \
        pc = code->instrs + pc->a;                                                                 \
        DISPATCH();                                                                                \
    }

/* Of a cotangent that has so many parts and no more. */
#define PARTS_FORM(count)                                                                          \
    do_PARTS_OF_CT_##count : {                                                                     \
        const Value *whole = S(pc->b);                                                             \
        const Tuple *t = whole->p;                                                                 \
        if (UNLIKELY(whole->tag != VAL_TUPLE || !t || t->n != (count)))                            \
            goto do_PARTS_OF_CT;                                                                   \
        Value *to = S(pc->a);                                                                      \
        EACH_PART for (uint32_t i = 0; i < (count); i++) copy_value(&to[i], &t->items[i]);         \
        NEXT();                                                                                    \
    }

#define FIELDS(form, n)                                                                            \
    do_GET_FIELDS##form : copy_fields(S(pc->a), R(pc->b)->p, (uint32_t)pc->c, n);                  \
    NEXT();                                                                                        \
    do_NEXT_FIELDS##form : {                                                                       \
        Value *at = S(pc->b);                                                                      \
        const Data *d = at->p;                                                                     \
        copy_fields(S(pc->a), d, (uint32_t)pc->c, (n)-1u);                                         \
        copy_fields(at, d, (uint32_t)pc->c + (n)-1, 1);                                            \
        NEXT();                                                                                    \
    }

#endif
