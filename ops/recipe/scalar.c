/* SPDX-License-Identifier: Apache-2.0 */
/* Building scalar programs: instructions. The functions stand in scalar_math.c. */
#include "ops/recipe/scalar.h"

#include "base/diag.h"

static Sc append(ScalarBuilder *b, Scalar c) {
    vec_push(&b->code, c);
    return (Sc)b->code.len - 1;
}

/* Leaves are shared: the same constant, parameter or load twice is one instruction. */
static Sc leaf(ScalarBuilder *b, Scalar c) {
    for (size_t i = 0; i < b->code.len; i++) {
        const Scalar *d = &b->code.data[i];
        if (d->op == c.op && d->type == c.type && d->a == c.a && d->b == c.b && d->c == c.c &&
            d->imm.i == c.imm.i)
            return (Sc)i;
    }
    return append(b, c);
}

static const Scalar *at(const ScalarBuilder *b, Sc v) {
    if (v < 0 || (size_t)v >= b->code.len)
        BUG("scalar program: no value %d", v);
    return &b->code.data[v];
}

DType sc_type(const ScalarBuilder *b, Sc v) { return scalar_result(at(b, v)); }

Sc sc_int(ScalarBuilder *b, DType type, int64_t v) {
    if (dtype_is_float(type))
        return sc_float(b, type, (double)v);
    int64_t stored = 0;
    elem_set_int(&stored, type, v);
    return leaf(b, (Scalar){.op = SC_CONST, .type = type, .imm.i = elem_get_int(&stored, type)});
}

Sc sc_float(ScalarBuilder *b, DType type, double v) {
    return leaf(
        b, (Scalar){.op = SC_CONST, .type = type, .imm.f = type == DT_F32 ? (double)(float)v : v});
}

Sc sc_param(ScalarBuilder *b, DType type, int number) {
    return leaf(b, (Scalar){.op = SC_PARAM, .type = type, .a = number});
}

Sc sc_iota(ScalarBuilder *b, int axis) {
    return leaf(b, (Scalar){.op = SC_IOTA, .type = DT_I64, .a = axis});
}

Sc sc_load(ScalarBuilder *b, int operand, DType stored) {
    return leaf(b, (Scalar){.op = SC_LOAD, .type = sc_type_of(stored), .a = operand});
}

Sc sc_load_at(ScalarBuilder *b, int operand, DType stored, Sc offset) {
    return append(
        b, (Scalar){.op = SC_LOAD_AT, .type = sc_type_of(stored), .a = operand, .b = offset});
}

Sc sc_load_if(ScalarBuilder *b, int operand, DType stored, Sc offset, Sc cond, double otherwise) {
    Scalar c = {.op = SC_LOAD_IF, .type = sc_type_of(stored), .a = operand, .b = offset, .c = cond};
    if (dtype_is_float((DType)c.type)) {
        c.imm.f = otherwise;
    } else {
        int64_t v = 0;
        elem_set_float(&v, (DType)c.type, otherwise);
        c.imm.i = elem_get_int(&v, (DType)c.type);
    }
    return append(b, c);
}

Sc sc_acc(ScalarBuilder *b, DType type) { return leaf(b, (Scalar){.op = SC_ACC, .type = type}); }

Sc sc_check(ScalarBuilder *b, Sc cond, int32_t status) {
    return append(b, (Scalar){.op = SC_CHECK, .type = DT_BOOL, .a = cond, .imm.i = status});
}

Sc sc_op1(ScalarBuilder *b, ScalarOp op, Sc x) {
    return append(b, (Scalar){.op = op, .type = sc_type(b, x), .a = x});
}

Sc sc_op2(ScalarBuilder *b, ScalarOp op, Sc x, Sc y) {
    if (sc_type(b, x) != sc_type(b, y))
        BUG("scalar program: operands of %s and %s", dtype_info[sc_type(b, x)].name,
            dtype_info[sc_type(b, y)].name);
    return append(b, (Scalar){.op = op, .type = sc_type(b, x), .a = x, .b = y});
}

Sc sc_fma(ScalarBuilder *b, Sc x, Sc y, Sc z) {
    return append(b, (Scalar){.op = SC_FMA, .type = sc_type(b, x), .a = x, .b = y, .c = z});
}

Sc sc_select(ScalarBuilder *b, Sc cond, Sc x, Sc y) {
    if (sc_type(b, cond) != DT_BOOL || sc_type(b, x) != sc_type(b, y))
        BUG("scalar program: select of %s and %s", dtype_info[sc_type(b, x)].name,
            dtype_info[sc_type(b, y)].name);
    return append(b, (Scalar){.op = SC_SELECT, .type = sc_type(b, x), .a = cond, .b = x, .c = y});
}

Sc sc_cast(ScalarBuilder *b, Sc x, DType to) {
    DType from = sc_type(b, x);
    return from == to ? x : append(b, (Scalar){.op = SC_CAST, .type = to, .from = from, .a = x});
}

Sc sc_convert(ScalarBuilder *b, Sc x, DType stored) {
    if (stored != DT_F16 && stored != DT_BF16)
        return sc_cast(b, x, stored);
    DType from = sc_type(b, x);
    return from == DT_F32 || from == DT_F64 ? x : sc_cast(b, x, DT_F64);
}

Sc sc_bits(ScalarBuilder *b, Sc x, DType to) {
    DType from = sc_type(b, x);
    return from == to ? x : append(b, (Scalar){.op = SC_BITS, .type = to, .from = from, .a = x});
}

Sc sc_call1(ScalarBuilder *b, MathFn fn, Sc x) {
    return append(b, (Scalar){.op = SC_CALL1, .type = sc_type(b, x), .a = x, .imm.i = fn});
}

Sc sc_call2(ScalarBuilder *b, MathFn fn, Sc x, Sc y) {
    return append(b, (Scalar){.op = SC_CALL2, .type = sc_type(b, x), .a = x, .b = y, .imm.i = fn});
}

Sc sc_call_if(ScalarBuilder *b, MathFn fn, Sc x, Sc cond, Sc otherwise) {
    return append(b, (Scalar){.op = SC_CALL_IF,
                              .type = sc_type(b, x),
                              .a = x,
                              .b = cond,
                              .c = otherwise,
                              .imm.i = fn});
}
