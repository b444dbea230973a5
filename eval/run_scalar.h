/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of run.c that are alike for several operators, as macros of their names and C's signs: arithmetic on two
 * scalars of one dtype, all other operands being left to apply_arith. */
#ifndef EVAL_RUN_SCALAR_H
#define EVAL_RUN_SCALAR_H

#define ARITH(name, op)                                                                            \
    do_##name : {                                                                                  \
        const Value *l = R(pc->b), *r = R(pc->c);                                                  \
        uint64_t h = head(l);                                                                      \
        if (LIKELY(h == head(r))) {                                                                \
            if (h == HEAD_OF(DT_I32)) {                                                            \
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

#endif
