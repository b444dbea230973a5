/* SPDX-License-Identifier: Apache-2.0 */
/* The element types, and conversion of single elements. float16 and bfloat16 are stored as
 * uint16_t, computed in float32 and rounded once (to nearest, ties to even). */
#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(enumerator, name, bytes, class, bits) in the order of promotion within a class. */
/* clang-format off */
#define DTYPES(X)                                                                                  \
    X(BOOL, "bool", 1, BOOL, 1)                                                                    \
    X(I8, "int8", 1, INT, 8)                                                                       \
    X(I16, "int16", 2, INT, 16)                                                                    \
    X(I32, "int32", 4, INT, 32)                                                                    \
    X(I64, "int64", 8, INT, 64)                                                                    \
    X(U8, "uint8", 1, UINT, 8)                                                                     \
    X(U16, "uint16", 2, UINT, 16)                                                                  \
    X(U32, "uint32", 4, UINT, 32)                                                                  \
    X(U64, "uint64", 8, UINT, 64)                                                                  \
    X(F16, "float16", 2, FLOAT, 16)                                                                \
    X(BF16, "bfloat16", 2, FLOAT, 16)                                                              \
    X(F32, "float32", 4, FLOAT, 32)                                                                \
    X(F64, "float64", 8, FLOAT, 64)
/* clang-format on */

typedef enum DType {
#define X(e, name, bytes, cls, bits) DT_##e,
    DTYPES(X)
#undef X
        DTYPE_COUNT
} DType;

typedef enum DTypeClass { DTC_BOOL, DTC_INT, DTC_UINT, DTC_FLOAT } DTypeClass;

typedef struct DTypeInfo {
    const char *name;
    uint8_t bytes, bits;
    DTypeClass cls;
} DTypeInfo;

extern const DTypeInfo dtype_info[DTYPE_COUNT];

static inline size_t dtype_size(DType t) { return dtype_info[t].bytes; }
static inline bool dtype_is_float(DType t) { return dtype_info[t].cls == DTC_FLOAT; }
static inline bool dtype_is_int(DType t) /* signed or unsigned, not bool */
{
    return dtype_info[t].cls == DTC_INT || dtype_info[t].cls == DTC_UINT;
}
bool dtype_find(const char *name, size_t len, DType *out); /* also TVM's "uint1" is bool */

/* Sets of dtypes, one bit each: what an operator takes. */
typedef uint16_t DTypeSet;
#define DT_BIT(t) ((DTypeSet)(1u << (t)))
enum {
    DTS_FLOAT = 0xF << DT_F16,
    DTS_SIGNED = 0xF << DT_I8,
    DTS_UNSIGNED = 0xF << DT_U8,
    DTS_INT = DTS_SIGNED | DTS_UNSIGNED,
    DTS_NUM = DTS_INT | DTS_FLOAT,
    DTS_BOOL = 1,
    DTS_BITS = DTS_INT | DTS_BOOL,
    DTS_ALL = DTS_NUM | DTS_BOOL,
};

float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);
float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float f);
uint16_t f64_to_f16(double d); /* rounded once */
uint16_t f64_to_bf16(double d);

/* One element at p, widened: integers and bool to int64 (uint64 by its bits), floats to double. */
int64_t elem_get_int(const void *p, DType t);
double elem_get_float(const void *p, DType t);
void elem_set_int(void *p, DType t, int64_t v);  /* wraps */
void elem_set_float(void *p, DType t, double v); /* rounds once */

/* LANGUAGE §3 casts of one element: float to int truncates, saturates, nan gives 0; int to int
 * wraps; to bool is != 0. */
void elem_cast(void *to, DType to_type, const void *from, DType from_type);

/* Whether the literal fits: integers by range (float dtypes take any), floats need a float dtype. */
bool dtype_holds_int(DType t, int64_t v, bool is_unsigned64);

#endif
