/* SPDX-License-Identifier: Apache-2.0 */
/* How DLPack describes a tensor in memory (github.com/dmlc/dlpack, the unversioned structures of 0.x, which 1.x keeps).
 * Foreign operators take their tensors so, and relay.h gives and takes them; whoever is on the other side includes
 * DLPack's own header, or declares the same. */
#ifndef TENSOR_DLPACK_H
#define TENSOR_DLPACK_H

#include "tensor/tensor.h"

typedef struct DLDevice {
    int32_t device_type, device_id;
} DLDevice;

typedef struct DLDataType {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major */
    uint64_t byte_offset;
} DLTensor;

struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self); /* may be NULL */
};

enum { DLPACK_CPU = 1 };

/* The tensor as it lies, with its sizes and strides where the caller keeps them. strides NULL: it is contiguous. */
DLTensor dlpack_of(const Tensor *t, int64_t *shape, int64_t *strides);
/* Why a tensor is not taken, NULL where it is; then *dtype is that of its elements. */
const char *dlpack_refuses(const DLTensor *t, DType *dtype);

#endif
