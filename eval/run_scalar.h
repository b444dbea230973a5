/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of run.c that are alike for several operators, as macros of their names and C's signs: arithmetic on two
 * scalars of one dtype, all other operands being left to apply_arith. */
#ifndef EVAL_RUN_SCALAR_H
#define EVAL_RUN_SCALAR_H

#include "eval/value.h"

#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define HEAD_OF(t) ((uint64_t)(t) << 32)

/* Tag and dtype as one word. */
static inline uint64_t head(const Value *v) { return value_head(v); }

static inline Value make_int(uint64_t h, int64_t i) {
    return (Value){.tag = VAL_SCALAR, .aux = (uint32_t)(h >> 32), .i = i};
}

static inline Value make_float(uint64_t h, double f) {
    return (Value){.tag = VAL_SCALAR, .aux = (uint32_t)(h >> 32), .f = f};
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "head() reads tag, then aux");

#define BRANCH(taken)                                                                              \
    do {                                                                                           \
        if ((taken) == pc->x)                                                                      \
            pc = code->instrs + pc->a;                                                             \
        else                                                                                       \
            pc++;                                                                                  \
        DISPATCH();                                                                                \
    } while (0)

/* clang-format off */
#define COMPARE(name, op)                                                                          \
    do_JUMP_##name : {                                                                             \
        const Value *l = R(pc->b), *r = R(pc->c);                                                  \
        uint64_t h = head(l);                                                                      \
        if (LIKELY(h == head(r))) {                                                                \
            if (h == HEAD_OF(DT_I32) || h == HEAD_OF(DT_I64))                                      \
                BRANCH(l->i op r->i);                                                              \
            if (h == HEAD_OF(DT_F32) || h == HEAD_OF(DT_F64))                                      \
                BRANCH(l->f op r->f);                                                              \
        }                                                                                          \
        Value v;                                                                                   \
        TRY(apply_arith(in, CODE_##name, *l, *r, &v));                                             \
        BRANCH(v.i != 0);                                                                          \
    }                                                                                              \
    do_##name : {                                                                                  \
        const Value *l = R(pc->b), *r = R(pc->c);                                                  \
        uint64_t h = head(l);                                                                      \
        if (LIKELY(h == head(r))) {                                                                \
            if (h == HEAD_OF(DT_I32) || h == HEAD_OF(DT_I64)) {                                    \
                SLOT(pc->a) = value_bool(l->i op r->i);                                            \
                NEXT();                                                                            \
            }                                                                                      \
            if (h == HEAD_OF(DT_F32) || h == HEAD_OF(DT_F64)) {                                    \
                SLOT(pc->a) = value_bool(l->f op r->f);                                            \
                NEXT();                                                                            \
            }                                                                                      \
        }                                                                                          \
        TRY(apply_arith(in, CODE_##name, *l, *r, &SLOT(pc->a)));                                   \
        NEXT();                                                                                    \
    }
/* clang-format on */

#define ARITH(name, op)                                                                            \
    do_##name : {                                                                                  \
        const Value *l = R(pc->b), *r = R(pc->c);                                                  \
        uint64_t h = head(l);                                                                      \
        if (LIKELY(h == head(r))) {                                                                \
            if (LIKELY(h == HEAD_OF(DT_I32))) {                                                    \
                SLOT(pc->a) = make_int(h, (int32_t)((uint32_t)l->i op(uint32_t) r->i));            \
                NEXT();                                                                            \
            }                                                                                      \
            if (h == HEAD_OF(DT_F32)) {                                                            \
                SLOT(pc->a) = make_float(h, (float)(l->f op r->f));                                \
                NEXT();                                                                            \
            }                                                                                      \
            if (h == HEAD_OF(DT_F64)) {                                                            \
                SLOT(pc->a) = make_float(h, l->f op r->f);                                         \
                NEXT();                                                                            \
            }                                                                                      \
            if (h == HEAD_OF(DT_I64)) {                                                            \
                SLOT(pc->a) = make_int(h, (int64_t)((uint64_t)l->i op(uint64_t) r->i));            \
                NEXT();                                                                            \
            }                                                                                      \
        }                                                                                          \
        TRY(apply_arith(in, CODE_##name, *l, *r, &SLOT(pc->a)));                                   \
        NEXT();                                                                                    \
    }

/* The same with a constant of int32, which stands in the instruction. */
#define ARITH_I(name, op)                                                                          \
    do_##name##_I : {                                                                              \
        const Value *l = &SLOT(pc->b);                                                             \
        if (LIKELY(head(l) == HEAD_OF(DT_I32))) {                                                  \
            uint32_t n = (uint32_t)l->i op(uint32_t)(int16_t) pc->x;                               \
            SLOT(pc->a) = make_int(HEAD_OF(DT_I32), (int32_t)n);                                   \
            NEXT();                                                                                \
        }                                                                                          \
        TRY(apply_arith(in, CODE_##name, *l, *R(pc->c), &SLOT(pc->a)));                            \
        NEXT();                                                                                    \
    }

#define JUMP_I(name, op, slow)                                                                     \
    do_JUMP_##name##_I : {                                                                         \
        const Value *l = &SLOT(pc->b);                                                             \
        bool holds = l->i op(int16_t) pc->x;                                                       \
        if (UNLIKELY(head(l) != HEAD_OF(DT_I32))) {                                                \
            Value v;                                                                               \
            TRY(slow);                                                                             \
            holds = v.i != 0;                                                                      \
        }                                                                                          \
        pc = holds ? code->instrs + pc->a : pc + 1;                                                \
        DISPATCH();                                                                                \
    }
#define ORDER_I(name, op) JUMP_I(name, op, apply_arith(in, CODE_##name, *l, *R(pc->c), &v))
#define EQUAL_I(name, op) JUMP_I(name, op, equal_values(in, ORIGIN(), *l, *R(pc->c), 0 op 1, &v))

/* Where the result is nan and the first operand zero, the zero (strong_multiply, strong_divide). */
#define STRONG(name, op)                                                                           \
    do_##name : {                                                                                  \
        const Value *l = R(pc->b), *r = R(pc->c);                                                  \
        uint64_t h = head(l);                                                                      \
        if (LIKELY(h == head(r) && (h == HEAD_OF(DT_F32) || h == HEAD_OF(DT_F64)))) {              \
            double v = h == HEAD_OF(DT_F32) ? (float)(l->f op r->f) : l->f op r->f;                \
            SLOT(pc->a) = make_float(h, UNLIKELY(v != v) && l->f == 0.0 ? l->f : v);               \
            NEXT();                                                                                \
        }                                                                                          \
        TRY(apply_arith(in, CODE_##name, *l, *r, &SLOT(pc->a)));                                   \
        NEXT();                                                                                    \
    }

/* The negative of that, of scalars. */
#define NEG_STRONG(name, op)                                                                       \
    do_NEG_##name : {                                                                              \
        const Value *l = R(pc->b), *r = R(pc->c);                                                  \
        uint64_t h = head(l);                                                                      \
        if (LIKELY(h == head(r) && (h == HEAD_OF(DT_F32) || h == HEAD_OF(DT_F64)))) {              \
            double v = h == HEAD_OF(DT_F32) ? (float)(l->f op r->f) : l->f op r->f;                \
            SLOT(pc->a) = make_float(h, -(UNLIKELY(v != v) && l->f == 0.0 ? l->f : v));            \
            NEXT();                                                                                \
        }                                                                                          \
        Value product;                                                                             \
        TRY(apply_arith(in, CODE_##name, *l, *r, &product));                                       \
        TRY(apply_arith(in, CODE_NEG, product, product, &SLOT(pc->a)));                            \
        NEXT();                                                                                    \
    }

static inline void put_float(Value *to, uint64_t h, double f) {
    memcpy(to, &h, sizeof h);
    to->f = f;
}

/* The product or quotient v, or the zero on its left. */
static inline double strong(double v, double left) {
    return UNLIKELY(v != v) && left == 0.0 ? left : v;
}

/* Forms (Note [Forms] in eval/code.h): what an operator makes of the floats l and r, rounded once. */
#define FLOAT_FORM(name, form, left, right, value)                                                 \
    do_##name##_##form : {                                                                         \
        const Value *left_at = left(pc->b), *right_at = right(pc->c);                              \
        uint64_t h = head(left_at);                                                                \
        if (UNLIKELY(h != head(right_at)))                                                         \
            goto do_##name;                                                                        \
        double l = left_at->f, r = right_at->f, v = value;                                         \
        if (LIKELY(h == HEAD_OF(DT_F64)))                                                          \
            put_float(&SLOT(pc->a), h, v);                                                         \
        else if (LIKELY(h == HEAD_OF(DT_F32)))                                                     \
            put_float(&SLOT(pc->a), h, (float)v);                                                  \
        else                                                                                       \
            goto do_##name;                                                                        \
        NEXT();                                                                                    \
    }
/* The product or quotient goes into the sum that the next instruction makes of it and `other`, an operand of that. */
#define ADDED_FORM(name, form, product_of, other, sum)                                             \
    do_##name##_##form : {                                                                         \
        const Value *left_at = S(pc->b), *right_at = S(pc->c), *other_at = S(pc[1].other);         \
        uint64_t h = head(left_at);                                                                \
        if (UNLIKELY(h != head(right_at) || h != head(other_at)))                                  \
            goto do_##name;                                                                        \
        double l = left_at->f, r = right_at->f, added = other_at->f, product = product_of;         \
        if (LIKELY(h == HEAD_OF(DT_F64))) {                                                        \
            put_float(&SLOT(pc[1].a), h, sum);                                                     \
        } else if (LIKELY(h == HEAD_OF(DT_F32))) {                                                 \
            product = (float)product;                                                              \
            put_float(&SLOT(pc[1].a), h, (float)(sum));                                            \
        } else {                                                                                   \
            goto do_##name;                                                                        \
        }                                                                                          \
        pc += 2;                                                                                   \
        DISPATCH();                                                                                \
    }
/* The same of two int32 in slots. */
#define INT_FORM(name, op)                                                                         \
    do_##name##_II : {                                                                             \
        const Value *l = S(pc->b), *r = S(pc->c);                                                  \
        if (UNLIKELY(head(l) != HEAD_OF(DT_I32) || head(r) != HEAD_OF(DT_I32)))                    \
            goto do_##name;                                                                        \
        SLOT(pc->a) = make_int(HEAD_OF(DT_I32), (int32_t)((uint32_t)l->i op(uint32_t) r->i));      \
        NEXT();                                                                                    \
    }
#define FLOAT_FORMS_OF(name, value)                                                                \
    FLOAT_FORM(name, SS, S, S, value)                                                              \
    FLOAT_FORM(name, SK, S, CONST, value)                                                          \
    FLOAT_FORM(name, KS, CONST, S, value)
#define PRODUCT_FORMS_OF(name, value)                                                              \
    FLOAT_FORMS_OF(name, value)                                                                    \
    ADDED_FORM(name, PL, value, c, product + added)                                                \
    ADDED_FORM(name, PR, value, b, added + product)
#define NEGATIVE_FORM                                                                              \
    do_NEG_S : {                                                                                   \
        const Value *l = S(pc->b);                                                                 \
        uint64_t h = head(l);                                                                      \
        if (UNLIKELY(h != HEAD_OF(DT_F64) && h != HEAD_OF(DT_F32)))                                \
            goto do_NEG;                                                                           \
        put_float(&SLOT(pc->a), h, -l->f);                                                         \
        NEXT();                                                                                    \
    }

/* The same for operators that are alone of their kind: false where the operands are of another. */
static inline bool divide_scalars(const Value *l, const Value *r, Value *out) {
    uint64_t h = head(l);
    if (h != head(r))
        return false;
    if (h == HEAD_OF(DT_F32))
        *out = make_float(h, (float)(l->f / r->f));
    else if (h == HEAD_OF(DT_F64))
        *out = make_float(h, l->f / r->f);
    else if ((h == HEAD_OF(DT_I32) || h == HEAD_OF(DT_I64)) && r->i != 0 && r->i != -1)
        *out = make_int(h, l->i / r->i);
    else
        return false;
    return true;
}

static inline bool negate_scalar(const Value *l, Value *out) {
    uint64_t h = head(l);
    if (h == HEAD_OF(DT_F32) || h == HEAD_OF(DT_F64))
        *out = make_float(h, -l->f);
    else if (h == HEAD_OF(DT_I32))
        *out = make_int(h, (int32_t)(0u - (uint32_t)l->i));
    else
        return false;
    return true;
}

static inline bool add_floats(const Value *l, const Value *r, Value *out) {
    uint64_t h = head(l);
    if (h != head(r) || (h != HEAD_OF(DT_F32) && h != HEAD_OF(DT_F64)))
        return false;
    *out = make_float(h, h == HEAD_OF(DT_F32) ? (float)(l->f + r->f) : l->f + r->f);
    return true;
}

#endif
