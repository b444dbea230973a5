/* SPDX-License-Identifier: Apache-2.0 */
/* Single elements: conversion between dtypes and to and from memory.
 *
 * Every narrowing goes from the widest value to the target in one rounding; float64 to float16 by
 * way of float32 would round twice. Not-a-numbers keep their sign and the top of their payload and
 * become quiet, as the conversion instructions of processors do. */
#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

const DTypeInfo dtype_info[DTYPE_COUNT] = {
#define X(e, name, bytes, cls, bits) {name, bytes, bits, DTC_##cls},
    DTYPES(X)
#undef X
};

bool dtype_find(const char *name, size_t len, DType *out) {
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (strlen(dtype_info[t].name) == len && memcmp(dtype_info[t].name, name, len) == 0) {
            *out = (DType)t;
            return true;
        }
    if (len == 5 && memcmp(name, "uint1", 5) == 0) {
        *out = DT_BOOL;
        return true;
    }
    return false;
}

static uint32_t f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float f32_of_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float bf16_to_f32(uint16_t h) { return f32_of_bits((uint32_t)h << 16); }

uint16_t f32_to_bf16(float f) {
    uint32_t u = f32_bits(f);
    if ((u & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

float f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 0x1F, mantissa = h & 0x3FF;
    if (exponent == 0) /* zero, subnormal: exact in float32 */
        return f32_of_bits(f32_bits((float)mantissa * 0x1p-24f) | sign);
    if (exponent == 31)
        return f32_of_bits(sign | 0x7F800000 | mantissa << 13 | (mantissa ? 0x400000 : 0));
    return f32_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t f32_to_f16(float f) {
    uint32_t u = f32_bits(f), sign = u >> 16 & 0x8000;
    u &= 0x7FFFFFFF;
    if (u > 0x7F800000)
        return (uint16_t)(sign | 0x7E00 | (u >> 13 & 0x3FF));
    if (u >= 0x477FF000) /* 65520 and more */
        return (uint16_t)(sign | 0x7C00);
    if (u < 0x38800000) { /* below 2^-14: adding 0.5 puts the last place of the result last */
        uint32_t v = f32_bits(f32_of_bits(u) + 0.5f) - 0x3F000000;
        return (uint16_t)(sign | v);
    }
    return (uint16_t)(sign | (u + 0xFFF + (u >> 13 & 1) - 0x38000000) >> 13);
}

/* d rounded to `digits` binary digits, least exponent `low` (that of the last place of the
 * subnormals), as a float64 (exact). */
static double round_to(double d, int digits, int low) {
    if (d == 0 || !isfinite(d))
        return d;
    int exponent;
    frexp(d, &exponent);
    int place = exponent - digits < low ? low : exponent - digits;
    return ldexp(nearbyint(ldexp(d, -place)), place);
}

uint16_t f64_to_f16(double d) {
    return f32_to_f16(isnan(d) ? (float)d : (float)round_to(d, 11, -24));
}

uint16_t f64_to_bf16(double d) {
    return f32_to_bf16(isnan(d) ? (float)d : (float)round_to(d, 8, -133));
}

#define GET(type)                                                                                  \
    {                                                                                              \
        type v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }
#define GET_HALF(widen)                                                                            \
    {                                                                                              \
        uint16_t v;                                                                                \
        memcpy(&v, p, sizeof v);                                                                   \
        return widen(v);                                                                           \
    }

static int64_t float_to_int(double v, DType t);

int64_t elem_get_int(const void *p, DType t) {
    switch (t) {
    case DT_BOOL: return *(const uint8_t *)p != 0;
    case DT_I8: GET(int8_t)
    case DT_I16: GET(int16_t)
    case DT_I32: GET(int32_t)
    case DT_I64: GET(int64_t)
    case DT_U8: GET(uint8_t)
    case DT_U16: GET(uint16_t)
    case DT_U32: GET(uint32_t)
    case DT_U64: {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        return (int64_t)v;
    }
    case DT_F16:
    case DT_BF16:
    case DT_F32:
    case DT_F64: return float_to_int(elem_get_float(p, t), DT_I64);
    case DTYPE_COUNT: break;
    }
    return 0;
}

double elem_get_float(const void *p, DType t) {
    switch (t) {
    case DT_BOOL:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_U8:
    case DT_U16:
    case DT_U32: return (double)elem_get_int(p, t);
    case DT_U64: return (double)(uint64_t)elem_get_int(p, t);
    case DT_F16: GET_HALF(f16_to_f32)
    case DT_BF16: GET_HALF(bf16_to_f32)
    case DT_F32: GET(float)
    case DT_F64: GET(double)
    case DTYPE_COUNT: break;
    }
    return 0;
}

#define PUT(type, value)                                                                           \
    {                                                                                              \
        type u = (type)(value);                                                                    \
        memcpy(p, &u, sizeof u);                                                                   \
        return;                                                                                    \
    }

void elem_set_int(void *p, DType t, int64_t v) {
    switch (t) {
    case DT_BOOL: *(uint8_t *)p = v != 0; return;
    case DT_I8:
    case DT_U8: PUT(uint8_t, v)
    case DT_I16:
    case DT_U16: PUT(uint16_t, v)
    case DT_I32:
    case DT_U32: PUT(uint32_t, v)
    case DT_I64:
    case DT_U64: PUT(uint64_t, v)
    case DT_F16: PUT(uint16_t, f64_to_f16((double)v))
    case DT_BF16: PUT(uint16_t, f64_to_bf16((double)v))
    case DT_F32: PUT(float, v)
    case DT_F64: PUT(double, v)
    case DTYPE_COUNT: return;
    }
}

/* Truncates, saturates; nan gives 0. A uint64 is given by its bits. */
static int64_t float_to_int(double v, DType t) {
    if (isnan(v))
        return 0;
    v = trunc(v);
    int bits = dtype_info[t].bits;
    if (dtype_info[t].cls == DTC_INT) {
        double limit = ldexp(1.0, bits - 1);
        if (v >= limit)
            return bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
        return v <= -limit ? (bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1))) : (int64_t)v;
    }
    if (v <= 0)
        return 0;
    if (v >= ldexp(1.0, bits))
        return bits == 64 ? -1 : ((int64_t)1 << bits) - 1;
    return (int64_t)(uint64_t)v;
}

void elem_set_float(void *p, DType t, double v) {
    switch (t) {
    case DT_BOOL: *(uint8_t *)p = v != 0; return;
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_U8:
    case DT_U16:
    case DT_U32:
    case DT_U64: elem_set_int(p, t, float_to_int(v, t)); return;
    case DT_F16: PUT(uint16_t, f64_to_f16(v))
    case DT_BF16: PUT(uint16_t, f64_to_bf16(v))
    case DT_F32: PUT(float, v)
    case DT_F64: PUT(double, v)
    case DTYPE_COUNT: return;
    }
}

void elem_cast(void *to, DType to_type, const void *from, DType from_type) {
    if (to_type == from_type) {
        memmove(to, from, dtype_size(to_type));
    } else if (dtype_is_float(from_type)) {
        elem_set_float(to, to_type, elem_get_float(from, from_type));
    } else if (from_type == DT_U64 && dtype_is_float(to_type)) {
        uint64_t v = (uint64_t)elem_get_int(from, from_type);
        if (to_type == DT_F32) {
            float f = (float)v; /* not by way of float64: one rounding */
            memcpy(to, &f, sizeof f);
        } else {
            elem_set_float(to, to_type, (double)v);
        }
    } else {
        elem_set_int(to, to_type, elem_get_int(from, from_type));
    }
}

bool dtype_holds_int(DType t, int64_t v, bool is_unsigned64) {
    int bits = dtype_info[t].bits;
    switch (dtype_info[t].cls) {
    case DTC_BOOL: return v == 0 || v == 1;
    case DTC_FLOAT: return true;
    case DTC_INT:
        if (is_unsigned64 && v < 0)
            return false;
        return bits == 64 || (v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1));
    case DTC_UINT:
        if (v < 0)
            return is_unsigned64 && bits == 64;
        return bits == 64 || v < (int64_t)1 << bits;
    }
    return false;
}
