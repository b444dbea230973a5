/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: a collected header (dtype, shape, strides in elements, offset) over a buffer that lives
 * outside the collector, with an owner count (the headers, views included).
 *
 * Buffers come from a size-class free list, 64-byte aligned. Finalizers on the Buffer objects (not
 * on views) are the backstop; a collection is forced when outside bytes since the last one exceed
 * max(64 MB, live outside bytes). tensor_new never returns NULL: past the memory limit it calls the
 * out-of-memory handler of base/mem.h. Elements are never changed once a tensor is a value, but by an operator that
 * takes over a tensor which nobody else refers to (eval/own.h). */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include "tensor/dtype.h"
#include "tensor/size.h"

enum { TENSOR_MAX_RANK = 16 };

typedef struct Buffer {
    void *data;      /* 64-byte aligned, outside the collector */
    size_t bytes;    /* as asked for */
    uint32_t owners; /* tensor headers over it */
    uint32_t size_class;
    struct Packed *packed; /* its elements in other orders: tensor/packed.h */
} Buffer;

typedef struct Tensor {
    DType dtype;
    int rank;
    int64_t count;  /* elements; 1 for rank 0 */
    int64_t offset; /* of the first element in the buffer, in elements */
    Buffer *buffer;
    int64_t *strides;        /* rank, in elements; may be 0 or negative */
    struct Waiting *waiting; /* what is still to be added to it, or NULL: eval/waiting.h */
    uint8_t
        accumulates; /* it is added to in place, and no program has seen it: eval/accumulate.c */
    int64_t shape[]; /* rank */
} Tensor;

/* Fresh, contiguous, elements undefined. */
Tensor *tensor_new(DType dtype, int rank, const int64_t *shape);
Tensor *tensor_new_zero(DType dtype, int rank, const int64_t *shape);
Tensor *tensor_scalar_int(DType dtype, int64_t v);
Tensor *tensor_scalar_float(DType dtype, double v);
/* Copies `data` (contiguous, row-major). */
Tensor *tensor_from(DType dtype, int rank, const int64_t *shape, const void *data);
/* Over memory of somebody else, which nobody changes until release(ctx) is called: strides in elements, NULL for
 * row-major. */
Tensor *tensor_borrow(DType dtype, int rank, const int64_t *shape, const int64_t *strides,
                      void *data, void (*release)(void *ctx), void *ctx);
/* Another header over the same buffer. */
Tensor *tensor_view(const Tensor *t, int rank, const int64_t *shape, const int64_t *strides,
                    int64_t offset);
/* A header of the same dtype, shape and strides over a buffer of its own that has no elements: it stands
 * for any tensor of that layout while a call is planned. */
Tensor *tensor_blank_like(const Tensor *t);
/* The same of a contiguous tensor. */
Tensor *tensor_blank(DType dtype, int rank, const int64_t *shape);
Tensor *tensor_contiguous(const Tensor *t); /* t itself when it already is */
bool tensor_is_contiguous(const Tensor *t);
/* For who reads the bits (files, foreign operators): row-major, and every nan the positive quiet one. Which
 * one an operation gives differs between processors and compilers, and nothing else shows it. t itself
 * when it is so already. */
Tensor *tensor_canonical(const Tensor *t);

static inline void *tensor_data(const Tensor *t) /* the first element */
{
    return (char *)t->buffer->data + t->offset * (int64_t)dtype_size(t->dtype);
}
/* The element at flat row-major position i. */
void *tensor_at(const Tensor *t, int64_t i);

/* The number of elements, or -1 when it does not fit or bytes would exceed 2^47. */
int64_t shape_count(int rank, const int64_t *shape, DType dtype);

/* t with room behind its elements, row-major of that shape, where its buffer has one owner and can be lengthened: t itself
 * is dead then. NULL: it stays as it is. */
Tensor *tensor_lengthen(Tensor *t, int rank, const int64_t *shape);

/* Gives the buffer back at once; only where the caller is its one owner (temporaries). */
void tensor_release(Tensor *t);
/* The header is dead: its buffer has an owner less, and is given back with the last one. */
void tensor_drop(Tensor *t);

size_t tensor_bytes_live(void); /* outside the collector, without those that wait for reuse */
size_t tensor_bytes_idle(void); /* freed, and kept for reuse */
size_t tensor_mappings(void);   /* how often memory was taken from the system */

/* What tensors have taken since the program began. */
typedef struct TensorCounts {
    uint64_t asked;    /* bytes of all buffers made */
    uint64_t recycled; /* of these, in storage that an earlier tensor had given back */
    uint64_t returned; /* bytes given back at their last use; the collector finds the others */
    size_t peak;       /* most bytes in use at once, since tensor_watch */
} TensorCounts;
TensorCounts tensor_counts(void);
/* Small tensors, which the collector alone would know of, are counted from now on, and the peak is what is in use now;
 * or not any more. What became garbage is in use until it is found. */
void tensor_watch(bool on);
void tensor_set_limit(size_t bytes_with_heap); /* collected heap and buffers together */

#endif
