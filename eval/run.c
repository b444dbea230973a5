/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that runs code.
 *
 * Scalars of the four common dtypes are computed here, with exactly the meaning of the operator's
 * recipe: integers wrap at their width, float32 is rounded after each operation (computing in
 * double and rounding once is the same for + - * /). Everything else goes through apply.c.
 *
 * Errors leave by `goto failed`, interrupts by `goto stopped`: both drop the activations of this
 * run. in->code, in->pc, in->fp and in->top are saved before anything that may fail, allocate
 * or be traced, and lag behind elsewhere. */
#include "eval/ad.h"
#include "eval/leaf_map.h"
#include "eval/machine.h"
#include "eval/run_parts.h"
#include "eval/run_scalar.h"
#include "eval/verify.h"

#include <math.h>

/* The call by which the activation above this frame came. */
static Expr *frame_call(const Frame *f) {
    if (f->tail || !f->code->origin)
        return f->tail;
    return f->code->origin[f->pc - 1 - f->code->instrs];
}

static inline void save(Interp *in, Code *code, const Instr *pc, Frame *fp, Value *base) {
    in->code = code;
    in->pc = pc;
    in->fp = fp;
    in->top = base + code->nslots;
}

#define R(x) ((const Value *)(bases[(x)&3] + (uintptr_t)(x)))

/* Data that DATA_OF has made of other fields than those of its layout gets one that is theirs; so will the next. */
static void change_layout(Code *code, const Instr *pc, const uintptr_t *bases, Data *d) {
    Value fields[DATA_OF_MOST];
    for (uint32_t i = 0; i < d->layout->n; i++)
        fields[i] = *R(code->lists[pc->b + (int32_t)i]);
    d->layout = data_layout(d->layout->ctor, fields);
    code->consts[(pc->c >> 4) + 1].p = (void *)(uintptr_t)d->layout;
}

enum { CLEARED_EACH = 32 /* calls */ };

static EvalStatus run_loop(Interp *in, Closure *closure, Code *code, Value *base, Value *out) {
    static const Instr halt[2] = {{CODE_CALL, 0, 0, 0, 0}, {CODE_HALT, 0, 0, 0, 0}};
    static const void *const direct[ALL_OPCODES] = {
#define X(name, ...) &&do_##name,
        OPCODES(X)
#undef X
#define F(name, form) &&do_##name##_##form,
            FORMS(F)
#undef F
    };
    /* Every instruction leads to `count` first: what is not counted does not pay for it. */
    static const void *const counted[ALL_OPCODES] = {
#define X(name, ...) &&count,
        OPCODES(X) FORMS(X)
#undef X
    };
    const void *const *labels = in->counts ? counted : direct;
    const Instr *pc;
    uintptr_t bases[BASES]; /* each less its number, which an operand has in its low bits */
    Frame *fp = in->fp;
    Closure *callee;
    Code *next;
    const Symbol *want;
    const Value *f;
    uint64_t calls = 0, given;

    *fp++ = (Frame){in->idle_closure, in->idle_code, &halt[1], NULL};

#define CONST(x) ((const Value *)((const char *)code->consts + ((x)-BASE_CONST)))
#define SLOT(x) (*(Value *)((char *)base + (x)))
#define S(x) (&SLOT(x))
#define SET_BASES()                                                                                \
    do {                                                                                           \
        bases[BASE_SLOT] = (uintptr_t)base;                                                        \
        bases[BASE_CONST] = (uintptr_t)code->consts - BASE_CONST;                                  \
        bases[BASE_CAPTURED] = (uintptr_t)closure->captured - BASE_CAPTURED;                       \
    } while (0)
#define DISPATCH() goto *labels[pc->op]
#define NEXT()                                                                                     \
    do {                                                                                           \
        pc++;                                                                                      \
        DISPATCH();                                                                                \
    } while (0)
#define SAVE() save(in, code, pc, fp, base)
#define ORIGIN() (code->origin[pc - code->instrs])
#define TRY(e)                                                                                     \
    do {                                                                                           \
        SAVE();                                                                                    \
        if (UNLIKELY(!(e)))                                                                        \
            goto failed;                                                                           \
    } while (0)

start: /* an activation whose frame is pushed and whose arguments are at base */
    bases[BASE_CONST] = (uintptr_t)code->consts - BASE_CONST;
same_code: /* the same of the code that ran last */
    bases[BASE_SLOT] = (uintptr_t)base;
    bases[BASE_CAPTURED] = (uintptr_t)closure->captured - BASE_CAPTURED;
    pc = code->instrs;
    Value *top = base + code->nslots;
    if (UNLIKELY(top > in->stack_soft || fp >= in->frames_soft))
        TRY(stack_grow(in, top, fp));
    /* what earlier activations left here would keep their data alive; what a tail call of the same code leaves is
     * cleared now and then */
    for (Value *v = base + code->nparams; v < top; v++) {
        v->p = NULL;
        __asm__("" : "+r"(v)); /* mostly two or three: the compiler would call memset */
    }
    if (UNLIKELY(in->interrupt))
        goto stopped;
    DISPATCH();

count:
    in->counts[pc->op]++;
    goto *direct[pc->op];

do_RESOLVE:
    TRY(code_resolve(in, code));
    goto start;

do_COUNT:
    if (LIKELY(--code->heat > 0 && in->stats.launches < code->hot_at))
        NEXT();
    SAVE();
    next = code_heated(code);
    if (closure->code == code)
        closure->code = next;
    code = next;
    goto start;

do_MOVE:
    copy_value(&SLOT(pc->a), R(pc->b));
    NEXT();

    MOVES_OF(, pc->x, R)
    MOVES_OF(_2, 2, S)
    MOVES_OF(_3, 3, S)
    MOVES_OF(_4, 4, S)

do_GLOBAL:
    TRY(global_value(in, R(pc->b)->p, R(pc->b)[1].p, &SLOT(pc->a)));
    NEXT();

do_LIKE : {
    const Value *v = R(pc->b);
    DType t = (DType)v->aux;
    if (UNLIKELY(v->tag != VAL_SCALAR) && !dtype_of_value(*v, &t))
        BUG("a literal takes its dtype from a value that is no tensor");
    SLOT(pc->a) = R(pc->c)[t];
    NEXT();
}

/* Back to where the caller goes on. */
#define RESUME()                                                                                   \
    do {                                                                                           \
        fp--;                                                                                      \
        closure = fp->closure;                                                                     \
        code = fp->code;                                                                           \
        pc = fp->pc;                                                                               \
        base = (Value *)((char *)base - pc[-1].c);                                                 \
        in->owned = 0;                                                                             \
        SET_BASES();                                                                               \
    } while (0)

do_RETURN:
    f = R(pc->b);
return_value:
    RESUME();
    copy_value(&SLOT(pc[-1].a), f);
    DISPATCH();

    OWNED_RESULTS

    RETURN_FORMS

    GIVE_ARGUMENTS

do_CALL_GLOBAL:
    given = 0;
call_global : {
    Global *g = CONST(pc->b)->p;
    Cell *cell = CONST(pc->b)[1].p;
    if (UNLIKELY(cell->source != g->value || g->broken)) {
        Value ignored;
        TRY(global_value(in, g, cell, &ignored));
    }
    callee = cell->value.p;
    next = callee->code;
    if (LIKELY(next->path == code->path))
        goto enter;
    want = code->path;
    goto call_twin;
}

    CALL_SELF_FORM

do_PATH:
    given = 0;
call_path:
    want = R(pc->b)->p;
    pc++;
    f = R(pc->b);
    if (pc->op == CODE_TAIL || pc->op == CODE_TAIL_OF)
        goto tail_at;
    goto call_at;

do_CALL:
    given = 0;
call:
    f = R(pc->b);
    want = code->path;
call_at:
    if (UNLIKELY(f->tag != VAL_CLOSURE))
        goto not_a_function;
    callee = f->p;
    next = callee->code;
    if (LIKELY(next->path == want))
        goto enter;
call_twin:
    SAVE();
    next = code_twin(in, next, want);
    if (!next)
        goto failed;
enter:
    if (UNLIKELY(next->nparams != pc->x))
        goto wrong_arity;
    calls++;
    in->owned = given;
    *fp++ = (Frame){closure, code, pc + 1, NULL};
    closure = callee;
    code = next;
    base = (Value *)((char *)base + pc->c);
    goto start;

do_TAIL_GLOBAL:
do_TAIL_GLOBAL_OF : {
    Global *g = CONST(pc->b)->p;
    Cell *cell = CONST(pc->b)[1].p;
    if (UNLIKELY(cell->source != g->value || g->broken)) {
        Value ignored;
        TRY(global_value(in, g, cell, &ignored));
    }
    callee = cell->value.p;
    next = callee->code;
    want = code->path;
    if (UNLIKELY(next != code || pc->a >> 1 || pc->op == CODE_TAIL_GLOBAL))
        goto tail_code;
    /* a function that calls itself, as loops do: nothing else changes than what was moved */
    const int32_t *move = code->lists + pc->c;
    for (int32_t left = *move++; left; left--, move += 2)
        copy_value(&SLOT(move[0]), R(move[1]));
    goto again;
}

    TAIL_FORM(0)
    TAIL_FORM(1)
    TAIL_FORM(2)

again: /* the same code from its beginning; what is to be moved was moved */
    calls++;
    in->owned = 0;
    if (pc->a & 1 && code->internal)
        fp[-1].tail = ORIGIN();
    if (UNLIKELY(!(calls % CLEARED_EACH)))
        goto start; /* where an interrupt is seen, too */
    pc = code->instrs;
    DISPATCH();

do_TAIL:
do_TAIL_OF:
    f = R(pc->b);
    want = code->path;
tail_at:
    if (UNLIKELY(f->tag != VAL_CLOSURE))
        goto not_a_function;
    callee = f->p;
    next = callee->code;
tail_code:
    if (UNLIKELY(next->path != want)) {
        SAVE();
        next = code_twin(in, next, want);
        if (!next)
            goto failed;
    }
    if (UNLIKELY(next->nparams != pc->x))
        goto wrong_arity;
    calls++;
    in->owned = pc->a >> 1 ? owned_of(in, code->gives[(pc->a >> 1) - 1]) : 0;
    if (next->internal && pc->a & 1)
        fp[-1].tail = ORIGIN();
    if (pc->op != CODE_TAIL && pc->op != CODE_TAIL_GLOBAL) {
        const int32_t *list = code->lists + pc->c, *end = list + 2 * *list;
        for (list++; list <= end; list += 2)
            copy_value(&SLOT(list[0]), R(list[1]));
    } else {
        const Value *from = (const Value *)((char *)base + pc->c);
        for (uint32_t i = 0; i < next->nparams; i++)
            copy_value(base + i, from + i);
    }
    closure = callee;
    if (next != code || !(calls % CLEARED_EACH)) {
        code = next;
        goto start;
    }
    bases[BASE_CAPTURED] = (uintptr_t)closure->captured - BASE_CAPTURED;
    pc = code->instrs;
    if (UNLIKELY(in->interrupt))
        goto stopped;
    DISPATCH();

do_HOLE : {
    Value whole, last;
    copy_value(&whole, R(pc->b));
    copy_value(&last, R(pc->c));
    if (LIKELY(fp[-1].code == in->fill)) {
        fill_hole(base - FILL_VALUE, whole);
        base[FILL_LAST - FILL_VALUE] = last;
        NEXT();
    }
    SAVE();
    if (UNLIKELY(in->top + FILL_VALUE > in->stack_soft || fp >= in->frames_soft) &&
        !stack_grow(in, in->top + FILL_VALUE, fp))
        goto failed;
    memmove(base + FILL_VALUE, base, (size_t)(in->top - base) * sizeof *base);
    base[FILL_WHOLE] = whole;
    base[FILL_LAST] = last;
    *fp = (Frame){in->idle_closure, in->fill, in->fill->instrs + 1, frame_call(fp - 1)};
    fp++;
    base += FILL_VALUE;
    bases[BASE_SLOT] = (uintptr_t)base;
    NEXT();
}

do_FILL:
    fill_hole(base, base[FILL_VALUE]);
    NEXT();

do_CLOSURE : {
    const Make *m = &code->makes[pc->b];
    SAVE();
    Closure *c = closure_alloc(m->code);
    put_pointer(&SLOT(pc->a), VAL_CLOSURE, c); /* stored first, because it may capture itself */
    for (uint32_t i = 0; i < c->ncaptured; i++)
        c->captured[i] = *R(m->captured[i]);
    NEXT();
}

do_GRAD:
    TRY(grad_of(in, (GradKind)pc->x, pc->c, *R(pc->b), &SLOT(pc->a)));
    NEXT();

do_JUMP:
    pc = code->instrs + pc->a;
    DISPATCH();

do_JUMP_ABSENT : {
    const Value *v = R(pc->b);
    BRANCH(v->tag == VAL_TUPLE && !v->p);
}

do_JUMP_IF : {
    const Value *v = R(pc->b);
    if (UNLIKELY(v->tag != VAL_SCALAR))
        BUG("a condition that is no bool");
    BRANCH(v->i != 0);
}

    COMPARE(LT, <)
    COMPARE(LE, <=)
    COMPARE(GT, >)
    COMPARE(GE, >=)

do_JUMP_EQ : {
    const Value *l = R(pc->b), *r = R(pc->c);
    uint64_t h = head(l);
    if (LIKELY(h == head(r) && (uint32_t)h == VAL_SCALAR)) {
        if (dtype_is_float((DType)l->aux))
            BRANCH(l->f == r->f);
        BRANCH(l->i == r->i);
    }
    Value v;
    TRY(equal_values(in, ORIGIN(), *l, *r, false, &v));
    BRANCH(v.i != 0);
}

do_EQUAL : {
    const Value *l = R(pc->b), *r = R(pc->c);
    uint64_t h = head(l);
    if (LIKELY(h == head(r) && (uint32_t)h == VAL_SCALAR)) {
        bool same = dtype_is_float((DType)l->aux) ? l->f == r->f : l->i == r->i;
        SLOT(pc->a) = value_bool(same != pc->x);
        NEXT();
    }
    TRY(equal_values(in, ORIGIN(), *l, *r, pc->x, &SLOT(pc->a)));
    NEXT();
}

    ARITH(ADD, +)
    ARITH(SUB, -)
    ARITH(MUL, *)
    ARITH_I(ADD, +)
    ARITH_I(SUB, -)
    ORDER_I(LT, <)
    ORDER_I(LE, <=)
    ORDER_I(GT, >)
    ORDER_I(GE, >=)
    EQUAL_I(EQ, ==)
    EQUAL_I(NE, !=)

do_DIV : {
    const Value *l = R(pc->b), *r = R(pc->c);
    if (UNLIKELY(!divide_scalars(l, r, &SLOT(pc->a))))
        TRY(apply_arith(in, CODE_DIV, *l, *r, &SLOT(pc->a)));
    NEXT();
}

    STRONG(STRONG_MUL, *)
    STRONG(STRONG_DIV, /)
    NEG_STRONG(STRONG_MUL, *)
    NEG_STRONG(STRONG_DIV, /)

    INT_FORM(ADD, +)
    INT_FORM(SUB, -)
    INT_FORM(MUL, *)
    FLOAT_FORMS_OF(ADD, l + r)
    FLOAT_FORMS_OF(SUB, l - r)
    FLOAT_FORMS_OF(MUL, l * r)
    FLOAT_FORMS_OF(DIV, l / r)
    PRODUCT_FORMS_OF(STRONG_MUL, strong(l * r, l))
    PRODUCT_FORMS_OF(STRONG_DIV, strong(l / r, l))
    PRODUCT_FORMS_OF(NEG_STRONG_MUL, -strong(l * r, l))
    PRODUCT_FORMS_OF(NEG_STRONG_DIV, -strong(l / r, l))
    FLOAT_FORM(ADD_CT, SS, S, S, l + r)
    NEGATIVE_FORM

do_NEG : {
    const Value *l = R(pc->b);
    if (UNLIKELY(!negate_scalar(l, &SLOT(pc->a))))
        TRY(apply_arith(in, CODE_NEG, *l, *l, &SLOT(pc->a)));
    NEXT();
}

do_NOT : {
    const Value *l = R(pc->b);
    if (LIKELY(head(l) == HEAD_OF(DT_BOOL)))
        SLOT(pc->a) = value_bool(!l->i);
    else
        TRY(apply_arith(in, CODE_NOT, *l, *l, &SLOT(pc->a)));
    NEXT();
}

do_OPERATOR : {
    Site *s = &code->sites[pc->c];
    const Value *args = &SLOT(pc->b);
    SAVE();
    if (!apply_scalar(in, s, args, &SLOT(pc->a)) &&
        !run_operator(in, s, args, ORIGIN()->span, &SLOT(pc->a)))
        goto failed;
    if (UNLIKELY(in->interrupt))
        goto stopped;
    NEXT();
}

do_MORE:
    SLOT(pc->a) = in->more[pc->c];
    NEXT();

do_BUILTIN : {
    const Site *s = &code->sites[pc->c];
    BuiltinCall call = {in,       ORIGIN()->span, &SLOT(pc->b),
                        s->nargs, s->type,        owned_of(in, s->owners)};
    TRY(s->builtin->fn(&call, &SLOT(pc->a)));
    NEXT();
}

do_ADD_CT : {
    const Value *l = R(pc->b), *r = R(pc->c);
    if (LIKELY(add_floats(l, r, &SLOT(pc->a))))
        NEXT();
    in->dying = dying_operands(in, pc->x) | dying_sum(pc->x >> 8, *r) << 1;
    TRY(apply_add_ct(in, ORIGIN()->span, *l, *r, &SLOT(pc->a)));
    NEXT();
}

do_ADD_PRODUCT:
    TRY(apply_add_product(in, &code->sites[pc->c], &SLOT(pc->b), ORIGIN()->span, &SLOT(pc->a)));
    NEXT();

do_DATA:
    SAVE();
    SLOT(pc->a) = value_data(R(pc->c)->p, &SLOT(pc->b));
    NEXT();

    DATA_OF(, layout->n, R)
    DATA_OF(_2, 2, S)
    DATA_OF(_3, 3, S)
    DATA_OF(_4, 4, S)

do_TUPLE:
    SAVE();
    SLOT(pc->a) = owning_tuple(&SLOT(pc->b), (uint32_t)pc->c, code->items_owned[pc->x]);
    NEXT();

    TUPLE_OF(, (uint32_t)pc->c, R, code->items_owned[pc->x])
    TUPLE_OF(_2, 2, S, 0)
    TUPLE_OF(_3, 3, S, 0)
    TUPLE_OF(_4, 4, S, 0)

do_PROJ : {
    const Value *v = R(pc->b);
    const Tuple *t = v->p;
    if (UNLIKELY(v->tag != VAL_TUPLE || !t || (uint32_t)pc->c >= t->n))
        BUG("projection %d of a value with tag %u", pc->c, v->tag);
    copy_value(&SLOT(pc->a), &t->items[pc->c]);
    NEXT();
}

do_UNPACK_FRAME : {
    const Tuple *t = frame_at(R(pc->b));
    Value *to = &SLOT(pc->c);
    copy_value(to, t->items);
    if (UNLIKELY(to->tag == VAL_TUPLE && !to->p))
        NEXT();
    copy_values(to + 1, t->items + 1, pc->x - 1u);
    pc = code->instrs + pc->a;
    DISPATCH();
}

do_POP_FRAME : {
    Tuple *t = frame_at(R(pc->b));
    Value *to = &SLOT(pc->c);
    copy_value(to, t->items);
    if (UNLIKELY(to->tag == VAL_TUPLE && !to->p))
        NEXT();
    take_frame(in, t, t->n, 0, pc->x, to);
    pc = code->instrs + pc->a;
    DISPATCH();
}

do_NEXT_FRAME : {
    Value *at = &SLOT(pc->b);
    Tuple *t = frame_at(at);
    copy_value(at, t->items);
    if (UNLIKELY(at->tag == VAL_TUPLE && !at->p))
        NEXT();
    take_frame(in, t, t->n, 1, pc->x - 1u, &SLOT(pc->c) + 1);
    pc = code->instrs + pc->a;
    DISPATCH();
}

do_UNPACK_LAST : {
    const Value *v = R(pc->b);
    Tuple *t = v->p;
    if (UNLIKELY(v->tag != VAL_TUPLE || !t || (uint32_t)pc->c + pc->x > t->n))
        BUG("a frame is a value with tag %u", v->tag);
    take_frame(in, t, t->n, (uint32_t)pc->c, pc->x, &SLOT(pc->a));
    NEXT();
}

    FRAME_FORMS(2)
    FRAME_FORMS(3)
    FRAME_FORMS(4)

do_UNPACK_CALLED:
do_UNPACK : {
    const Value *v = R(pc->b);
    const Tuple *t = v->p;
    if (UNLIKELY(v->tag != VAL_TUPLE || !t || (uint32_t)pc->c + pc->x > t->n))
        BUG("projection %d of a value with tag %u", pc->c + pc->x - 1, v->tag);
    copy_values(&SLOT(pc->a), t->items + pc->c, pc->x);
    NEXT();
}

do_FIELD:
    SAVE();
    data_field(ORIGIN(), *R(pc->b), &SLOT(pc->a));
    NEXT();

do_UPDATE:
    SAVE();
    data_update(ORIGIN(), *R(pc->b), &SLOT(pc->c), &SLOT(pc->a));
    NEXT();

do_REF : {
    SAVE();
    Ref *r = mem_new(Ref);
    copy_value(&r->value, R(pc->b));
    r->epoch = in->level;
    put_pointer(&SLOT(pc->a), VAL_REF, r);
    NEXT();
}

do_READ : {
    const Value *v = R(pc->b);
    if (UNLIKELY(v->tag != VAL_REF))
        BUG("reading a value that is no reference (tag %u)", v->tag);
    if (UNLIKELY(in->again))
        TRY(ref_may_be_read(in, v->p));
    copy_value(&SLOT(pc->a), &((const Ref *)v->p)->value);
    NEXT();
}

do_WRITE : {
    const Value *v = R(pc->b);
    if (UNLIKELY(v->tag != VAL_REF))
        BUG("writing to a value that is no reference (tag %u)", v->tag);
    Ref *r = v->p;
    if (UNLIKELY(in->running && r->epoch < in->level))
        TRY(ref_write(in, r, *R(pc->c)));
    else
        copy_value(&r->value, R(pc->c));
    put_pointer(&SLOT(pc->a), VAL_TUPLE, NULL);
    NEXT();
}

do_BANG : {
    const Value *v = R(pc->b);
    if (UNLIKELY(v->tag == VAL_REF && in->again))
        TRY(ref_may_be_read(in, v->p));
    if (v->tag == VAL_REF)
        copy_value(&SLOT(pc->a), &((const Ref *)v->p)->value);
    else
        SLOT(pc->a) = value_bool(!v->i);
    NEXT();
}

do_TENSOR : {
    TRY(stack_tensors(in, ORIGIN(), &SLOT(pc->b), (uint32_t)pc->c, &SLOT(pc->a)));
    NEXT();
}

do_INDEX:
    TRY(apply_index(in, ORIGIN(), *R(pc->b), &SLOT(pc->c), &SLOT(pc->a)));
    NEXT();

do_DIM_OF:
    SAVE();
    int64_t size;
    if (!tensor_axis_size(*R(pc->b), pc->c, &size))
        BUG("no axis %d to take the size of", pc->c);
    if (UNLIKELY(!fits_dtype(size, ORIGIN()->type, &SLOT(pc->a)))) {
        machine_fail_at(in, ORIGIN()->span, DIAG_R0614, "a size is %lld, which %s does not hold",
                        (long long)size, type_text(type_resolve(ORIGIN()->type)));
        goto failed;
    }
    NEXT();

do_CHECK : {
    int64_t found = R(pc->b)->i, expected = R(pc->c)->i;
    if (UNLIKELY(found != expected)) {
        const Check *check = &ORIGIN()->checks[pc->a];
        SAVE();
        Diag *d = machine_fail_at(in, check->span, DIAG_R0604, "%s is %lld, not %lld",
                                  type_place_text(&check->place), (long long)found,
                                  (long long)expected);
        diag_add_fact(d, "this size was not known before running");
        clash_explain_size(d, check->found, found);
        clash_explain_size(d, check->expected, expected);
        goto failed;
    }
    NEXT();
}

do_CHECK_SHAPE:
    TRY(clash_check_shape(in, &ORIGIN()->checks[pc->a], *R(pc->b), *R(pc->c)));
    NEXT();

do_TEST_DATA : {
    const Value *v = R(pc->b);
    if (v->tag == VAL_CTOR && ((const Data *)v->p)->layout->ctor == R(pc->c)->p)
        NEXT();
    if (v->tag == VAL_CLOSURE && ctor_of_closure(v->p) == R(pc->c)->p)
        NEXT();
    pc = code->instrs + pc->a;
    DISPATCH();
}

do_TEST_NULLARY:
    if (R(pc->b)->p == R(pc->c)->p)
        NEXT();
    pc = code->instrs + pc->a;
    DISPATCH();

do_TEST_VALUE:
    SAVE();
    if (value_is_literal(*R(pc->b), *R(pc->c)))
        NEXT();
    pc = code->instrs + pc->a;
    DISPATCH();

do_GET_FIELD:
    SLOT(pc->a) = data_get(*R(pc->b), (uint32_t)pc->c);
    NEXT();

do_GET_CAPTURED:
    SLOT(pc->a) = ((const Closure *)R(pc->b)->p)->captured[pc->c];
    NEXT();

    FIELDS(, pc->x)
    FIELDS(_2, 2)
    FIELDS(_3, 3)
    FIELDS(_4, 4)

do_GET_ITEM:
    copy_value(&SLOT(pc->a), &((const Tuple *)R(pc->b)->p)->items[pc->c]);
    NEXT();

do_PART_OF_CT:
    SLOT(pc->a) = leaf_map_item(*R(pc->b), (uint32_t)pc->c);
    NEXT();

do_PARTS_OF_CT : {
    Value whole = *R(pc->b), *to = &SLOT(pc->a);
    const Tuple *t = whole.p;
    if (LIKELY(whole.tag == VAL_TUPLE && t && (uint32_t)pc->c + pc->x <= t->n))
        copy_values(to, t->items + pc->c, pc->x);
    else
        for (uint32_t i = 0; i < pc->x; i++)
            to[i] = leaf_map_item(whole, (uint32_t)pc->c + i);
    NEXT();
}

    PARTS_FORM(2)
    PARTS_FORM(3)
    PARTS_FORM(4)

do_NO_MATCH:
    SAVE();
    fail_no_match(in, *R(pc->b));
    goto failed;

do_VERIFY:
    SAVE();
    verify_run(code, pc, &SLOT(pc->a), *R(pc->b));
    NEXT();

do_HALT:
    SAVE();
    *out = base[0];
    in->stats.calls += calls;
    return EVAL_OK;

not_a_function:
    BUG("calling a value that is no function (tag %u)", f->tag);

wrong_arity:
    BUG("`%s` takes %u arguments, its call has %u",
        next->fn->kind == EXPR_FN && next->fn->fn->name ? next->fn->fn->name->text : "fn",
        next->nparams, pc->x);

failed:
    in->stats.calls += calls;
    return in->interrupt ? EVAL_INTERRUPTED : EVAL_FAILED;

stopped:
    in->stats.calls += calls;
    return EVAL_INTERRUPTED;
}

EvalStatus machine_run(Interp *in, Closure *closure, Code *code, const Value *args, uint32_t n,
                       Value *out) {
    Value *base = in->top;
    Frame *frames = in->fp;
    jmp_buf *outer = in->escape, here;
    EvalStatus status;
    size_t since = in->diags->list.len;
    in->escape = &here;
    stack_forget(false);
    if (setjmp(here) == 0) {
        if (stack_grow(in, base + n + 1, frames + 1)) {
            for (uint32_t i = 0; i < n; i++)
                base[i] = args[i];
            in->top = base + n + 1;
            in->owned = 0;
            status = run_loop(in, closure, code, base, out);
        } else {
            status = EVAL_FAILED;
        }
    } else {
        status = stack_escaped(in);
    }
    if (status == EVAL_FAILED)
        stack_trace(in, since);
    in->escape = outer;
    in->fp = frames;
    in->top = base;
    in->owned = in->dying = in->owned_items = 0;
    if (status != EVAL_OK) {
        in->code = NULL;
        stack_trim(in);
        stack_forget(true);
    }
    return status;
}
