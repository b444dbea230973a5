/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/dlpack.h"

#include "base/str.h"

#include <string.h>

typedef enum TypeCode {
    CODE_INT = 0,
    CODE_UINT = 1,
    CODE_FLOAT = 2,
    CODE_BFLOAT = 4,
    CODE_BOOL = 6
} TypeCode;

static TypeCode code_of(DType dtype) {
    switch (dtype_info[dtype].cls) {
    case DTC_BOOL: return CODE_BOOL;
    case DTC_INT: return CODE_INT;
    case DTC_UINT: return CODE_UINT;
    case DTC_FLOAT: break;
    }
    return dtype == DT_BF16 ? CODE_BFLOAT : CODE_FLOAT;
}

static DLDataType type_of(DType dtype) {
    return (DLDataType){(uint8_t)code_of(dtype), (uint8_t)(dtype_size(dtype) * 8), 1};
}

DLTensor dlpack_of(const Tensor *t, int64_t *shape, int64_t *strides) {
    if (t->rank) {
        memcpy(shape, t->shape, sizeof *shape * (size_t)t->rank);
        if (strides)
            memcpy(strides, t->strides, sizeof *strides * (size_t)t->rank);
    }
    return (DLTensor){.data = tensor_data(t),
                      .device = {.device_type = DLPACK_CPU},
                      .ndim = t->rank,
                      .dtype = type_of(t->dtype),
                      .shape = shape,
                      .strides = strides};
}

static bool find_dtype(DLDataType type, DType *out) {
    for (int t = 0; t < DTYPE_COUNT; t++) {
        DLDataType own = type_of((DType)t);
        if (own.code == type.code && own.bits == type.bits && type.lanes == 1) {
            *out = (DType)t;
            return true;
        }
    }
    return false;
}

const char *dlpack_refuses(const DLTensor *t, DType *dtype) {
    if (t->device.device_type != DLPACK_CPU)
        return fmt_text("the tensor lies on a device of type %d, not in the machine's memory",
                        (int)t->device.device_type);
    if (!find_dtype(t->dtype, dtype))
        return fmt_text("elements of DLPack's type (%d, %d bits, %d lanes) are not taken",
                        t->dtype.code, t->dtype.bits, t->dtype.lanes);
    if (t->ndim < 0 || t->ndim > TENSOR_MAX_RANK)
        return fmt_text("a tensor has at most %d axes, this one %d", TENSOR_MAX_RANK, (int)t->ndim);
    int64_t count = shape_count(t->ndim, t->shape, *dtype);
    if (count < 0)
        return "a size is negative, or the tensor larger than memory";
    if (count && !t->data)
        return "the tensor has elements and no data";
    if (((uintptr_t)t->data + t->byte_offset) % dtype_size(*dtype))
        return fmt_text("the elements do not lie at a multiple of their %zu bytes",
                        dtype_size(*dtype));
    return NULL;
}
