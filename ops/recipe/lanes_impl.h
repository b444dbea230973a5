/* SPDX-License-Identifier: Apache-2.0 */
/* The body of ops/recipe/lanes.h: included by lanes.c and lanes_fma.c, which define LANE_TABLE. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "fp-contract=off")
#endif

#include "ops/recipe/lanes.h"
#ifndef LANE_TABLE
#define LANE_TABLE lanes_plain
#endif

#include <math.h>
#include <string.h>

#define UNUSED(x) ((void)(x))
#define LANE_FN(name)                                                                              \
    static int32_t name(void *restrict d_, const void *restrict a_, const void *restrict b_,       \
                        const void *restrict c_, int n)
/* X(suffix, C type, unsigned C type, DType) */
/* clang-format off */
#define SIGNED_TYPES(X) X(i8, int8_t, uint8_t, I8) X(i16, int16_t, uint16_t, I16)                  \
    X(i32, int32_t, uint32_t, I32) X(i64, int64_t, uint64_t, I64)
#define UNSIGNED_TYPES(X) X(u8, uint8_t, uint8_t, U8) X(u16, uint16_t, uint16_t, U16)              \
    X(u32, uint32_t, uint32_t, U32) X(u64, uint64_t, uint64_t, U64)
/* clang-format on */
#define INT_TYPES(X) SIGNED_TYPES(X) UNSIGNED_TYPES(X)
#define FLOAT_TYPES(X) X(f32, float, float, F32) X(f64, double, double, F64)
#define NUMBER_TYPES(X) INT_TYPES(X) FLOAT_TYPES(X)
#define BOOL_TYPES(X) X(b8, uint8_t, uint8_t, BOOL)
#define VALUE_TYPES(X) BOOL_TYPES(X) NUMBER_TYPES(X)

/* ---- element by element: T is the type of operands, U the one computed in -------------------- */

#define UNARY(name, T, U, expr)                                                                    \
    LANE_FN(name) {                                                                                \
        T *restrict d = d_;                                                                        \
        const T *restrict a = a_;                                                                  \
        UNUSED(b_), UNUSED(c_);                                                                    \
        for (int i = 0; i < n; i++) {                                                              \
            U x = (U)a[i];                                                                         \
            d[i] = (T)(expr);                                                                      \
        }                                                                                          \
        return KERNEL_DONE;                                                                        \
    }
#define BINARY_TO(name, D, T, U, expr)                                                             \
    LANE_FN(name) {                                                                                \
        D *restrict d = d_;                                                                        \
        const T *restrict a = a_, *restrict b = b_;                                                \
        UNUSED(c_);                                                                                \
        for (int i = 0; i < n; i++) {                                                              \
            U x = (U)a[i], y = (U)b[i];                                                            \
            d[i] = (D)(expr);                                                                      \
        }                                                                                          \
        return KERNEL_DONE;                                                                        \
    }
#define BINARY(name, T, U, expr) BINARY_TO(name, T, T, U, expr)

/* As BINARY, but lanes where `bad` holds end the kernel; they compute with y = 1. */
#define CHECKED(name, T, U, bad, expr, status)                                                     \
    LANE_FN(name) {                                                                                \
        T *restrict d = d_;                                                                        \
        const T *restrict a = a_, *restrict b = b_;                                                \
        int failed = 0;                                                                            \
        UNUSED(c_);                                                                                \
        for (int i = 0; i < n; i++) {                                                              \
            T x = a[i], y = b[i];                                                                  \
            if (bad) {                                                                             \
                failed = 1;                                                                        \
                y = 1;                                                                             \
            }                                                                                      \
            d[i] = (T)(expr);                                                                      \
        }                                                                                          \
        return failed ? (status) : KERNEL_DONE;                                                    \
    }

#define MAX_OF(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define MIN_OF(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))

#define COMMON(s, T, U, E)                                                                         \
    BINARY_TO(eq_##s, uint8_t, T, T, x == y)                                                       \
    BINARY_TO(ne_##s, uint8_t, T, T, x != y)                                                       \
    BINARY_TO(lt_##s, uint8_t, T, T, x < y)                                                        \
    BINARY_TO(le_##s, uint8_t, T, T, x <= y)                                                       \
    BINARY_TO(gt_##s, uint8_t, T, T, x > y)                                                        \
    BINARY_TO(ge_##s, uint8_t, T, T, x >= y)                                                       \
    BINARY(max_##s, T, T, MAX_OF(x, y))                                                            \
    BINARY(min_##s, T, T, MIN_OF(x, y))                                                            \
    LANE_FN(select_##s) {                                                                          \
        T *restrict d = d_;                                                                        \
        const uint8_t *restrict a = a_;                                                            \
        const T *restrict b = b_, *restrict c = c_;                                                \
        for (int i = 0; i < n; i++)                                                                \
            d[i] = a[i] ? b[i] : c[i];                                                             \
        return KERNEL_DONE;                                                                        \
    }                                                                                              \
    LANE_FN(bits_##s) {                                                                            \
        UNUSED(b_), UNUSED(c_);                                                                    \
        memcpy(d_, a_, sizeof(T) * (size_t)n);                                                     \
        return KERNEL_DONE;                                                                        \
    }
VALUE_TYPES(COMMON)

#define INTS(s, T, U, E)                                                                           \
    BINARY(add_##s, T, uint64_t, x + y)                                                            \
    BINARY(sub_##s, T, uint64_t, x - y)                                                            \
    BINARY(mul_##s, T, uint64_t, x *y)                                                             \
    BINARY(and_##s, T, T, x &y)                                                                    \
    BINARY(or_##s, T, T, x | y)                                                                    \
    BINARY(xor_##s, T, T, x ^ y)                                                                   \
    UNARY(not_##s, T, T, ~x)                                                                       \
    UNARY(neg_##s, T, uint64_t, 0 - x)
INT_TYPES(INTS)

#define SIGNED(s, T, U, E)                                                                         \
    CHECKED(div_##s, T, U, y == 0, y == -1 ? (T)(0 - (uint64_t)x) : (T)(x / y), KERNEL_DIVIDE)     \
    CHECKED(rem_##s, T, U, y == 0, y == -1 ? 0 : x % y, KERNEL_DIVIDE)                             \
    CHECKED(shl_##s, T, U, y < 0, y >= (T)(8 * sizeof(T)) ? 0 : (uint64_t)x << y, KERNEL_SHIFT)    \
    CHECKED(shr_##s, T, U, y < 0, y >= (T)(8 * sizeof(T)) ? (x < 0 ? -1 : 0) : x >> y,             \
            KERNEL_SHIFT)                                                                          \
    UNARY(abs_##s, T, T, x < 0 ? (T)(0 - (uint64_t)x) : x)
SIGNED_TYPES(SIGNED)

#define UNSIGNED(s, T, U, E)                                                                       \
    CHECKED(div_##s, T, U, y == 0, x / y, KERNEL_DIVIDE)                                           \
    CHECKED(rem_##s, T, U, y == 0, x % y, KERNEL_DIVIDE)                                           \
    BINARY(shl_##s, T, T, y >= 8 * sizeof(T) ? 0 : (uint64_t)x << y)                               \
    BINARY(shr_##s, T, T, y >= 8 * sizeof(T) ? 0 : x >> y)                                         \
    UNARY(abs_##s, T, T, x)
UNSIGNED_TYPES(UNSIGNED)

#define FLOATS(s, T, U, E)                                                                         \
    BINARY(add_##s, T, T, x + y)                                                                   \
    BINARY(sub_##s, T, T, x - y)                                                                   \
    BINARY(mul_##s, T, T, x *y)                                                                    \
    BINARY(div_##s, T, T, x / y)                                                                   \
    UNARY(neg_##s, T, T, -x)
FLOAT_TYPES(FLOATS)

#define FLOAT_FNS(s, T, f)                                                                         \
    BINARY(rem_##s, T, T, fmod##f(x, y))                                                           \
    UNARY(abs_##s, T, T, fabs##f(x))                                                               \
    UNARY(sqrt_##s, T, T, sqrt##f(x))                                                              \
    UNARY(floor_##s, T, T, floor##f(x))                                                            \
    UNARY(ceil_##s, T, T, ceil##f(x))                                                              \
    UNARY(trunc_##s, T, T, trunc##f(x))                                                            \
    UNARY(round_##s, T, T, rint##f(x))                                                             \
    LANE_FN(fma_##s) {                                                                             \
        T *restrict d = d_;                                                                        \
        const T *restrict a = a_, *restrict b = b_, *restrict c = c_;                              \
        for (int i = 0; i < n; i++)                                                                \
            d[i] = __builtin_fma##f(a[i], b[i], c[i]);                                             \
        return KERNEL_DONE;                                                                        \
    }                                                                                              \
    static void multiply_add_##s(void *acc_, const void *x_, const void *y_, int n) {              \
        T *restrict acc = acc_;                                                                    \
        const T *restrict x = x_, *restrict y = y_;                                                \
        for (int i = 0; i < n; i++)                                                                \
            acc[i] = __builtin_fma##f(x[i], y[i], acc[i]);                                         \
    }                                                                                              \
    static void dot_##s(void *acc_, const void *x_, const void *y_, int n) {                       \
        T acc = *(T *)acc_;                                                                        \
        const T *x = x_, *y = y_;                                                                  \
        for (int i = 0; i < n; i++)                                                                \
            acc = __builtin_fma##f(x[i], y[i], acc);                                               \
        *(T *)acc_ = acc;                                                                          \
    }
FLOAT_FNS(f32, float, f)
FLOAT_FNS(f64, double, )

#define INT_PRODUCTS(s, T, U, E)                                                                   \
    static void multiply_add_##s(void *acc_, const void *x_, const void *y_, int n) {              \
        T *restrict acc = acc_;                                                                    \
        const T *restrict x = x_, *restrict y = y_;                                                \
        for (int i = 0; i < n; i++)                                                                \
            acc[i] = (T)((uint64_t)x[i] * (uint64_t)y[i] + (uint64_t)acc[i]);                      \
    }                                                                                              \
    static void dot_##s(void *acc_, const void *x_, const void *y_, int n) {                       \
        uint64_t acc = (uint64_t) * (T *)acc_;                                                     \
        const T *x = x_, *y = y_;                                                                  \
        for (int i = 0; i < n; i++)                                                                \
            acc += (uint64_t)x[i] * (uint64_t)y[i];                                                \
        *(T *)acc_ = (T)acc;                                                                       \
    }
INT_TYPES(INT_PRODUCTS)

BINARY(and_b8, uint8_t, uint8_t, x &y)
BINARY(or_b8, uint8_t, uint8_t, x | y)
BINARY(xor_b8, uint8_t, uint8_t, x ^ y)
UNARY(not_b8, uint8_t, uint8_t, !x)

LANE_FN(check_b8) {
    const uint8_t *a = a_;
    uint8_t all = 1;
    UNUSED(b_), UNUSED(c_), UNUSED(d_);
    for (int i = 0; i < n; i++)
        all &= a[i];
    return all ? KERNEL_DONE : KERNEL_INDEX;
}

/* ---- casts: LANGUAGE §3 ---------------------------------------------------------------------- */

#define CAST(name, D, T, expr)                                                                     \
    LANE_FN(name) {                                                                                \
        D *restrict d = d_;                                                                        \
        const T *restrict a = a_;                                                                  \
        UNUSED(b_), UNUSED(c_);                                                                    \
        for (int i = 0; i < n; i++) {                                                              \
            T x = a[i];                                                                            \
            d[i] = (D)(expr);                                                                      \
        }                                                                                          \
        return KERNEL_DONE;                                                                        \
    }
/* low and high as floats: low is exact, high may be the first float beyond. */
#define SATURATE(D, low, high, low_value, high_value)                                              \
    (x != x ? (D)0 : x <= (low) ? (D)(low_value) : x >= (high) ? (D)(high_value) : (D)x)
#define CAST_FROM_FLOAT(s, T)                                                                      \
    CAST(cast_##s##_b8, uint8_t, T, x != 0)                                                        \
    CAST(cast_##s##_i8, int8_t, T, SATURATE(int8_t, -128, 128, INT8_MIN, INT8_MAX))                \
    CAST(cast_##s##_i16, int16_t, T, SATURATE(int16_t, -32768, 32768, INT16_MIN, INT16_MAX))       \
    CAST(cast_##s##_i32, int32_t, T, SATURATE(int32_t, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX))   \
    CAST(cast_##s##_i64, int64_t, T, SATURATE(int64_t, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX))   \
    CAST(cast_##s##_u8, uint8_t, T, SATURATE(uint8_t, 0, 256, 0, UINT8_MAX))                       \
    CAST(cast_##s##_u16, uint16_t, T, SATURATE(uint16_t, 0, 65536, 0, UINT16_MAX))                 \
    CAST(cast_##s##_u32, uint32_t, T, SATURATE(uint32_t, 0, 0x1p32f, 0, UINT32_MAX))               \
    CAST(cast_##s##_u64, uint64_t, T, SATURATE(uint64_t, 0, 0x1p64f, 0, UINT64_MAX))               \
    CAST(cast_##s##_f32, float, T, x)                                                              \
    CAST(cast_##s##_f64, double, T, x)
CAST_FROM_FLOAT(f32, float)
CAST_FROM_FLOAT(f64, double)

#define CAST_FROM_INT(s, T, U, E)                                                                  \
    CAST(cast_##s##_b8, uint8_t, T, x != 0)                                                        \
    CAST(cast_##s##_i8, int8_t, T, x)                                                              \
    CAST(cast_##s##_i16, int16_t, T, x)                                                            \
    CAST(cast_##s##_i32, int32_t, T, x)                                                            \
    CAST(cast_##s##_i64, int64_t, T, x)                                                            \
    CAST(cast_##s##_u8, uint8_t, T, x)                                                             \
    CAST(cast_##s##_u16, uint16_t, T, x)                                                           \
    CAST(cast_##s##_u32, uint32_t, T, x)                                                           \
    CAST(cast_##s##_u64, uint64_t, T, x)                                                           \
    CAST(cast_##s##_f32, float, T, x)                                                              \
    CAST(cast_##s##_f64, double, T, x)
INT_TYPES(CAST_FROM_INT)
BOOL_TYPES(CAST_FROM_INT)

/* ---- loads and stores ------------------------------------------------------------------------ */

#define LOADS(name, D, S, expr)                                                                    \
    static void load_##name(void *d_, const void *src_, int64_t stride, int n) {                   \
        D *restrict d = d_;                                                                        \
        const S *restrict src = src_;                                                              \
        if (stride == 0) {                                                                         \
            S v = src[0];                                                                          \
            D w = (D)(expr);                                                                       \
            for (int i = 0; i < n; i++)                                                            \
                d[i] = w;                                                                          \
        } else if (stride == 1) {                                                                  \
            for (int i = 0; i < n; i++) {                                                          \
                S v = src[i];                                                                      \
                d[i] = (D)(expr);                                                                  \
            }                                                                                      \
        } else {                                                                                   \
            for (int i = 0; i < n; i++) {                                                          \
                S v = src[i * stride];                                                             \
                d[i] = (D)(expr);                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void load_at_##name(void *d_, const void *src_, int64_t stride, const int64_t *at,      \
                               const uint8_t *cond, const void *otherwise, int n) {                \
        D *restrict d = d_;                                                                        \
        const S *src = src_;                                                                       \
        for (int i = 0; i < n; i++) {                                                              \
            if (cond && !cond[i]) {                                                                \
                d[i] = *(const D *)otherwise;                                                      \
            } else {                                                                               \
                S v = src[i * stride + at[i]];                                                     \
                d[i] = (D)(expr);                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define STORE(name, D, S, expr)                                                                    \
    static void store_##name(void *dst_, int64_t stride, const void *v_, int n) {                  \
        D *restrict dst = dst_;                                                                    \
        const S *restrict src = v_;                                                                \
        if (stride == 1)                                                                           \
            for (int i = 0; i < n; i++) {                                                          \
                S v = src[i];                                                                      \
                dst[i] = (D)(expr);                                                                \
            }                                                                                      \
        else                                                                                       \
            for (int i = 0; i < n; i++) {                                                          \
                S v = src[i];                                                                      \
                dst[i * stride] = (D)(expr);                                                       \
            }                                                                                      \
    }
#define MEMORY(s, T, U, E) LOADS(s, T, T, v) STORE(s, T, T, v)
NUMBER_TYPES(MEMORY)
LOADS(b8, uint8_t, uint8_t, v != 0)
STORE(b8, uint8_t, uint8_t, v)
LOADS(f16, float, uint16_t, f16_to_f32(v))
LOADS(bf16, float, uint16_t, bf16_to_f32(v))
STORE(f16, uint16_t, float, f32_to_f16(v))
STORE(bf16, uint16_t, float, f32_to_bf16(v))
STORE(f64_f16, uint16_t, double, f64_to_f16(v))
STORE(f64_bf16, uint16_t, double, f64_to_bf16(v))

/* ---- folds ----------------------------------------------------------------------------------- */

#define FOLD(name, s, T, expr)                                                                     \
    static void fold_##name##_##s(void *acc_, const void *v_, int n) {                             \
        T acc[16];                                                                                 \
        const T *v = v_;                                                                           \
        memcpy(acc, acc_, sizeof acc);                                                             \
        int i = 0;                                                                                 \
        for (; i + 16 <= n; i += 16)                                                               \
            for (int j = 0; j < 16; j++) {                                                         \
                T x = acc[j], y = v[i + j];                                                        \
                acc[j] = (T)(expr);                                                                \
            }                                                                                      \
        for (int j = 0; i + j < n; j++) {                                                          \
            T x = acc[j], y = v[i + j];                                                            \
            acc[j] = (T)(expr);                                                                    \
        }                                                                                          \
        memcpy(acc_, acc, sizeof acc);                                                             \
    }                                                                                              \
    static void join_##name##_##s(void *acc_, const void *v_, int n) {                             \
        T *restrict acc = acc_;                                                                    \
        const T *restrict v = v_;                                                                  \
        for (int i = 0; i < n; i++) {                                                              \
            T x = acc[i], y = v[i];                                                                \
            acc[i] = (T)(expr);                                                                    \
        }                                                                                          \
    }
#define FOLDS_INT(s, T, U, E)                                                                      \
    FOLD(sum, s, T, (uint64_t)x + (uint64_t)y) FOLD(prod, s, T, (uint64_t)x *(uint64_t)y)
#define FOLDS_FLOAT(s, T, U, E) FOLD(sum, s, T, x + y) FOLD(prod, s, T, x *y)
#define FOLDS_ORDER(s, T, U, E) FOLD(max, s, T, MAX_OF(x, y)) FOLD(min, s, T, MIN_OF(x, y))
INT_TYPES(FOLDS_INT)
FLOAT_TYPES(FOLDS_FLOAT)
VALUE_TYPES(FOLDS_ORDER)
FOLD(all, b8, uint8_t, x &y)
FOLD(any, b8, uint8_t, x | y)

/* ---- the table ------------------------------------------------------------------------------- */

#define ROW(NAME, name, s, E) .op[SC_##NAME][DT_##E] = name##_##s,
/* clang-format off */
#define ROWS_COMMON(s, T, U, E)                                                                    \
    ROW(EQ, eq, s, E) ROW(NE, ne, s, E) ROW(LT, lt, s, E) ROW(LE, le, s, E) ROW(GT, gt, s, E)      \
    ROW(GE, ge, s, E) ROW(MAX, max, s, E) ROW(MIN, min, s, E) ROW(SELECT, select, s, E)            \
    ROW(BITS, bits, s, E)                                                                          \
    .fold[COMBINE_MAX][DT_##E] = fold_max_##s, .fold[COMBINE_MIN][DT_##E] = fold_min_##s,          \
    .join[COMBINE_MAX][DT_##E] = join_max_##s, .join[COMBINE_MIN][DT_##E] = join_min_##s,          \
    .load[DT_##E] = load_##s, .load_at[DT_##E] = load_at_##s, .store[DT_##E] = store_##s,          \
    .cast[DT_##E] = {[DT_BOOL] = cast_##s##_b8, [DT_I8] = cast_##s##_i8,                           \
        [DT_I16] = cast_##s##_i16, [DT_I32] = cast_##s##_i32, [DT_I64] = cast_##s##_i64,           \
        [DT_U8] = cast_##s##_u8, [DT_U16] = cast_##s##_u16, [DT_U32] = cast_##s##_u32,             \
        [DT_U64] = cast_##s##_u64, [DT_F32] = cast_##s##_f32, [DT_F64] = cast_##s##_f64},
#define ROWS_NUMBER(s, T, U, E)                                                                    \
    ROW(ADD, add, s, E) ROW(SUB, sub, s, E) ROW(MUL, mul, s, E) ROW(DIV, div, s, E)                \
    ROW(REM, rem, s, E) ROW(NEG, neg, s, E) ROW(ABS, abs, s, E)                                    \
    .fold[COMBINE_SUM][DT_##E] = fold_sum_##s, .fold[COMBINE_PROD][DT_##E] = fold_prod_##s,        \
    .join[COMBINE_SUM][DT_##E] = join_sum_##s, .join[COMBINE_PROD][DT_##E] = join_prod_##s,        \
    .multiply_add[DT_##E] = multiply_add_##s, .dot[DT_##E] = dot_##s,
#define ROWS_INT(s, T, U, E)                                                                       \
    ROW(AND, and, s, E) ROW(OR, or, s, E) ROW(XOR, xor, s, E) ROW(NOT, not, s, E)                  \
    ROW(SHL, shl, s, E) ROW(SHR, shr, s, E)
#define ROWS_FLOAT(s, T, U, E)                                                                     \
    ROW(FMA, fma, s, E) ROW(SQRT, sqrt, s, E) ROW(FLOOR, floor, s, E) ROW(CEIL, ceil, s, E)        \
    ROW(TRUNC, trunc, s, E) ROW(ROUND, round, s, E)
/* clang-format on */

const LaneTable LANE_TABLE = {
    VALUE_TYPES(ROWS_COMMON) NUMBER_TYPES(ROWS_NUMBER) INT_TYPES(ROWS_INT) FLOAT_TYPES(ROWS_FLOAT)
        ROW(AND, and, b8, BOOL) ROW(OR, or, b8, BOOL) ROW(XOR, xor, b8, BOOL)
            ROW(NOT, not, b8, BOOL) ROW(CHECK, check, b8, BOOL)
                .fold[COMBINE_ALL][DT_BOOL] = fold_all_b8,
    .fold[COMBINE_ANY][DT_BOOL] = fold_any_b8,
    .join[COMBINE_ALL][DT_BOOL] = join_all_b8,
    .join[COMBINE_ANY][DT_BOOL] = join_any_b8,
    .load[DT_F16] = load_f16,
    .load[DT_BF16] = load_bf16,
    .load_at[DT_F16] = load_at_f16,
    .load_at[DT_BF16] = load_at_bf16,
    .store[DT_F16] = store_f16,
    .store[DT_BF16] = store_bf16,
    .store_f64_half = {store_f64_f16, store_f64_bf16},
};
