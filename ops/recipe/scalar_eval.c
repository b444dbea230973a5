/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar programs on one lane. The same instructions as ops/recipe/lanes_impl.h, over values widened to
 * int64 and double: after each instruction an integer is cut to its dtype and a float32 rounded,
 * which gives the same as computing in the dtype. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#endif
#include "ops/recipe/scalar_eval.h"

#include "base/diag.h"

#include <math.h>
#include <string.h>

/* ---- one lane -------------------------------------------------------------------------------- */

static int64_t cut(int64_t v, DType t) {
    switch (t) {
    case DT_BOOL: return v != 0;
    case DT_I8: return (int8_t)v;
    case DT_I16: return (int16_t)v;
    case DT_I32: return (int32_t)v;
    case DT_U8: return (uint8_t)v;
    case DT_U16: return (uint16_t)v;
    case DT_U32: return (uint32_t)v;
    case DT_I64:
    case DT_U64: return v;
    case DT_F16:
    case DT_BF16:
    case DT_F32:
    case DT_F64:
    case DTYPE_COUNT: break;
    }
    return v;
}

static double round_f32(double v, DType t) { return t == DT_F32 ? (double)(float)v : v; }

/* Reads and writes an element through memory, for casts and bits. */
static void to_memory(void *p, DType t, ScalarValue v) {
    if (dtype_is_float(t))
        elem_set_float(p, t, v.f);
    else
        elem_set_int(p, t, v.i);
}

static ScalarValue from_memory(const void *p, DType t) {
    ScalarValue v;
    if (dtype_is_float(t))
        v.f = elem_get_float(p, t);
    else
        v.i = elem_get_int(p, t);
    return v;
}

/* Not by elem_set_float, which would pass a float32 nan through float64: bits stay bits. */
static ScalarValue bits(ScalarValue x, DType from, DType to) {
    ScalarValue v;
    if (from == DT_F32) {
        float f = (float)x.f;
        int32_t i;
        memcpy(&i, &f, sizeof i);
        v.i = to == DT_U32 ? (int64_t)(uint32_t)i : i;
    } else if (to == DT_F32) {
        float f;
        int32_t i = (int32_t)x.i;
        memcpy(&f, &i, sizeof f);
        v.f = f;
    } else {
        v = x; /* int64, uint64 and double share their bits; of equal width otherwise: cut */
        if (to != DT_F64)
            v.i = cut(v.i, to);
    }
    return v;
}

static double call1(MathFn fn, double x, bool single) {
    switch (fn) {
#define CALL_1(name) return single ? (double)name##f((float)x) : name(x);
#define CALL_2(name) return 0;
#define X(e, name, n)                                                                              \
    case MATH_##e: CALL_##n(name)
        MATH_FNS(X)
#undef X
    case MATH_FN_COUNT: break;
    }
    return 0;
}

static double call2(MathFn fn, double x, double y, bool single) {
    if (fn == MATH_POW)
        return single ? (double)powf((float)x, (float)y) : pow(x, y);
    return single ? (double)atan2f((float)x, (float)y) : atan2(x, y);
}

static int32_t float_step(const Scalar *c, const ScalarValue *v, ScalarValue *out) {
    DType t = (DType)c->type;
    double x = v[c->a].f, y = v[c->b].f;
    switch ((ScalarOp)c->op) {
    case SC_ADD: out->f = round_f32(x + y, t); break; /* a float64 sum of floats, rounded: exact */
    case SC_SUB: out->f = round_f32(x - y, t); break;
    case SC_MUL: out->f = round_f32(x * y, t); break;
    case SC_DIV: out->f = round_f32(x / y, t); break;
    case SC_FMA:
        out->f = t == DT_F32 ? (double)fmaf((float)x, (float)y, (float)v[c->c].f)
                             : fma(x, y, v[c->c].f);
        break;
    case SC_REM: out->f = fmod(x, y); break;
    case SC_NEG: out->f = -x; break;
    case SC_ABS: out->f = fabs(x); break;
    case SC_SQRT: out->f = round_f32(sqrt(x), t); break;
    case SC_FLOOR: out->f = floor(x); break;
    case SC_CEIL: out->f = ceil(x); break;
    case SC_TRUNC: out->f = trunc(x); break;
    case SC_ROUND: out->f = rint(x); break;
    case SC_MIN: out->f = x < y || x != x ? x : y; break;
    case SC_MAX: out->f = x > y || x != x ? x : y; break;
    case SC_EQ: out->i = x == y; break;
    case SC_NE: out->i = x != y; break;
    case SC_LT: out->i = x < y; break;
    case SC_LE: out->i = x <= y; break;
    case SC_GT: out->i = x > y; break;
    case SC_GE: out->i = x >= y; break;
    case SC_CALL1: out->f = call1((MathFn)c->imm.i, x, t == DT_F32); break;
    case SC_CALL2: out->f = call2((MathFn)c->imm.i, x, y, t == DT_F32); break;
    case SC_CALL_IF:
        *out = v[c->c];
        if (v[c->b].i)
            out->f = call1((MathFn)c->imm.i, x, t == DT_F32);
        break;
    case SC_CONST:
    case SC_PARAM:
    case SC_IOTA:
    case SC_LOAD:
    case SC_LOAD_AT:
    case SC_LOAD_IF:
    case SC_ACC:
    case SC_CHECK:
    case SC_AND:
    case SC_OR:
    case SC_XOR:
    case SC_NOT:
    case SC_SHL:
    case SC_SHR:
    case SC_SELECT:
    case SC_CAST:
    case SC_BITS:
    case SCALAR_OP_COUNT: break;
    }
    return KERNEL_DONE;
}

static int32_t int_step(const Scalar *c, const ScalarValue *v, ScalarValue *out) {
    DType t = (DType)c->type;
    bool is_signed = dtype_info[t].cls == DTC_INT;
    int width = dtype_info[t].bits;
    int64_t x = v[c->a].i, y = v[c->b].i;
    uint64_t ux = (uint64_t)x, uy = (uint64_t)y;
    bool less = is_signed ? x < y : ux < uy;
    switch ((ScalarOp)c->op) {
    case SC_ADD: out->i = cut((int64_t)(ux + uy), t); break;
    case SC_SUB: out->i = cut((int64_t)(ux - uy), t); break;
    case SC_MUL: out->i = cut((int64_t)(ux * uy), t); break;
    case SC_DIV:
        if (y == 0)
            return KERNEL_DIVIDE;
        out->i = cut(!is_signed ? (int64_t)(ux / uy) : y == -1 ? (int64_t)(0 - ux) : x / y, t);
        break;
    case SC_REM:
        if (y == 0)
            return KERNEL_DIVIDE;
        out->i = !is_signed ? (int64_t)(ux % uy) : y == -1 ? 0 : x % y;
        break;
    case SC_NEG: out->i = cut((int64_t)(0 - ux), t); break;
    case SC_ABS: out->i = cut(is_signed && x < 0 ? (int64_t)(0 - ux) : x, t); break;
    case SC_MIN: out->i = less ? x : y; break;
    case SC_MAX: out->i = less ? y : x; break;
    case SC_AND: out->i = x & y; break;
    case SC_OR: out->i = x | y; break;
    case SC_XOR: out->i = x ^ y; break;
    case SC_NOT: out->i = t == DT_BOOL ? !x : cut(~x, t); break;
    case SC_SHL:
    case SC_SHR:
        if (is_signed && y < 0)
            return KERNEL_SHIFT;
        if (uy >= (uint64_t)width)
            out->i = c->op == SC_SHR && is_signed && x < 0 ? -1 : 0;
        else if (c->op == SC_SHL)
            out->i = cut((int64_t)(ux << uy), t);
        else
            out->i = is_signed ? x >> y : (int64_t)(ux >> uy);
        break;
    case SC_EQ: out->i = x == y; break;
    case SC_NE: out->i = x != y; break;
    case SC_LT: out->i = less; break;
    case SC_LE: out->i = less || x == y; break;
    case SC_GT: out->i = !less && x != y; break;
    case SC_GE: out->i = !less; break;
    case SC_CHECK: return x ? KERNEL_DONE : (int32_t)c->imm.i;
    case SC_CONST:
    case SC_PARAM:
    case SC_IOTA:
    case SC_LOAD:
    case SC_LOAD_AT:
    case SC_LOAD_IF:
    case SC_ACC:
    case SC_FMA:
    case SC_SQRT:
    case SC_FLOOR:
    case SC_CEIL:
    case SC_TRUNC:
    case SC_ROUND:
    case SC_SELECT:
    case SC_CAST:
    case SC_BITS:
    case SC_CALL1:
    case SC_CALL2:
    case SC_CALL_IF:
    case SCALAR_OP_COUNT: break;
    }
    return KERNEL_DONE;
}

static int32_t step(const Scalar *c, const ScalarValue *args, ScalarValue *v, ScalarValue *out) {
    unsigned char from[8], to[8];
    switch ((ScalarOp)c->op) {
    case SC_CONST: memcpy(out, &c->imm, sizeof *out); return KERNEL_DONE;
    case SC_LOAD: *out = args[c->a]; return KERNEL_DONE;
    case SC_SELECT: *out = v[c->a].i ? v[c->b] : v[c->c]; return KERNEL_DONE;
    case SC_BITS: *out = bits(v[c->a], (DType)c->from, (DType)c->type); return KERNEL_DONE;
    case SC_CAST:
        to_memory(from, (DType)c->from, v[c->a]);
        elem_cast(to, (DType)c->type, from, (DType)c->from);
        *out = from_memory(to, (DType)c->type);
        return KERNEL_DONE;
    case SC_PARAM:
    case SC_IOTA:
    case SC_LOAD_AT:
    case SC_LOAD_IF:
    case SC_ACC:
    case SC_CHECK:
    case SC_ADD:
    case SC_SUB:
    case SC_MUL:
    case SC_FMA:
    case SC_DIV:
    case SC_REM:
    case SC_NEG:
    case SC_ABS:
    case SC_SQRT:
    case SC_FLOOR:
    case SC_CEIL:
    case SC_TRUNC:
    case SC_ROUND:
    case SC_MIN:
    case SC_MAX:
    case SC_AND:
    case SC_OR:
    case SC_XOR:
    case SC_NOT:
    case SC_SHL:
    case SC_SHR:
    case SC_EQ:
    case SC_NE:
    case SC_LT:
    case SC_LE:
    case SC_GT:
    case SC_GE:
    case SC_CALL1:
    case SC_CALL2:
    case SC_CALL_IF:
    case SCALAR_OP_COUNT: break;
    }
    return dtype_is_float((DType)c->type) ? float_step(c, v, out) : int_step(c, v, out);
}

enum { MAX_STEPS = 512 }; /* the longest, an integer power of 64 bits, has fewer */

int32_t scalar_program_run(const ScalarProgram *p, const ScalarValue *args, ScalarValue *out) {
    ScalarValue values[MAX_STEPS];
    if (p->n > MAX_STEPS)
        BUG("scalar program of %d instructions", p->n);
    for (int i = 0; i < p->n; i++) {
        int32_t status = step(&p->code[i], args, values, &values[i]);
        if (status != KERNEL_DONE)
            return status;
    }
    *out = values[p->result];
    if (p->out == DT_F16)
        out->f = f16_to_f32(f32_to_f16((float)out->f));
    else if (p->out == DT_BF16)
        out->f = bf16_to_f32(f32_to_bf16((float)out->f));
    return KERNEL_DONE;
}
