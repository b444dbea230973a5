/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor headers, views and copies. */
#include "tensor/tensor.h"

#include "base/mem.h"
#include "tensor/buffer.h"
#include "tensor/spare.h"

#include <string.h>

int64_t shape_count(int rank, const int64_t *shape, DType dtype) {
    int64_t count = (int64_t)dtype_size(dtype);
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0 || shape[i] > SIZE_MOST)
            return -1;
        empty = empty || shape[i] == 0;
        count = size_multiply(count, shape[i]);
    }
    return empty ? 0 : count > SIZE_MOST ? -1 : count / (int64_t)dtype_size(dtype);
}

/* The strides stand behind the shape in one block, and behind them so many bytes more. */
static Tensor *header_new(Tensor *reused, DType dtype, int rank, const int64_t *shape,
                          size_t more) {
    Tensor *t = reused;
    if (t) {
        t->offset = 0;
        t->accumulates = 0;
    } else {
        t = mem_alloc(sizeof(Tensor) + 2 * sizeof(int64_t) * (size_t)rank + more);
    }
    t->dtype = dtype;
    t->rank = rank;
    t->strides = t->shape + rank;
    t->count = 1;
    for (int i = rank; i-- > 0;) {
        t->shape[i] = shape[i];
        t->strides[i] = t->count;
        t->count = size_multiply(t->count, shape[i]);
    }
    return t;
}

static Buffer *own_buffer(const Tensor *t) { return (Buffer *)(uintptr_t)(t->shape + 2 * t->rank); }

Tensor *tensor_new(DType dtype, int rank, const int64_t *shape) {
    int64_t count = shape_count(rank, shape, dtype);
    if (count < 0)
        mem_out_of_memory((size_t)1 << 47);
    size_t bytes = (size_t)count * dtype_size(dtype);
    bool plain = buffer_is_plain(bytes);
    Tensor *reused = plain ? spare_take(spare_of(rank, bytes)) : NULL;
    Tensor *t = header_new(reused, dtype, rank, shape, plain ? sizeof(Buffer) : 0);
    t->buffer = plain ? own_buffer(t) : buffer_new(bytes);
    if (reused)
        buffer_renew_plain(t->buffer, bytes);
    else if (plain)
        buffer_init_plain(t->buffer, bytes);
    t->count = count;
    return t;
}

Tensor *tensor_new_zero(DType dtype, int rank, const int64_t *shape) {
    Tensor *t = tensor_new(dtype, rank, shape);
    memset(t->buffer->data, 0, (size_t)t->count * dtype_size(dtype));
    return t;
}

Tensor *tensor_scalar_int(DType dtype, int64_t v) {
    Tensor *t = tensor_new(dtype, 0, NULL);
    elem_set_int(t->buffer->data, dtype, v);
    return t;
}

Tensor *tensor_scalar_float(DType dtype, double v) {
    Tensor *t = tensor_new(dtype, 0, NULL);
    elem_set_float(t->buffer->data, dtype, v);
    return t;
}

Tensor *tensor_from(DType dtype, int rank, const int64_t *shape, const void *data) {
    Tensor *t = tensor_new(dtype, rank, shape);
    if (t->count)
        memcpy(t->buffer->data, data, (size_t)t->count * dtype_size(dtype));
    return t;
}

Tensor *tensor_borrow(DType dtype, int rank, const int64_t *shape, const int64_t *strides,
                      void *data, void (*release)(void *ctx), void *ctx) {
    Tensor *t = header_new(NULL, dtype, rank, shape, 0);
    if (rank && strides)
        memcpy(t->strides, strides, sizeof(int64_t) * (size_t)rank);
    t->buffer = buffer_borrow(data, (size_t)t->count * dtype_size(dtype), release, ctx);
    return t;
}

Tensor *tensor_view(const Tensor *t, int rank, const int64_t *shape, const int64_t *strides,
                    int64_t offset) {
    Tensor *view = header_new(spare_take(spare_view(rank)), t->dtype, rank, shape, 0);
    if (rank)
        memcpy(view->strides, strides, sizeof(int64_t) * (size_t)rank);
    view->offset = offset;
    view->buffer = t->buffer;
    view->buffer->owners++;
    return view;
}

Tensor *tensor_blank(DType dtype, int rank, const int64_t *shape) {
    Tensor *t = header_new(NULL, dtype, rank, shape, 0);
    t->count = shape_count(rank, shape, dtype);
    if (t->count < 0)
        mem_out_of_memory((size_t)1 << 47);
    t->buffer = buffer_blank();
    return t;
}

Tensor *tensor_blank_like(const Tensor *t) {
    Tensor *blank = tensor_blank(t->dtype, t->rank, t->shape);
    if (t->rank)
        memcpy(blank->strides, t->strides, sizeof(int64_t) * (size_t)t->rank);
    return blank;
}

bool tensor_is_contiguous(const Tensor *t) {
    int64_t expected = 1;
    if (t->count == 0)
        return true;
    for (int i = t->rank; i-- > 0;) {
        if (t->shape[i] != 1 && t->strides[i] != expected)
            return false;
        expected *= t->shape[i];
    }
    return true;
}

static void copy_row(char *to, const char *from, int64_t n, int64_t stride, size_t size) {
    switch (size) {
#define ROW(bytes, type)                                                                           \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((type *)to)[i] = ((const type *)from)[i * stride];                                    \
        break;
        ROW(1, uint8_t)
        ROW(2, uint16_t)
        ROW(4, uint32_t)
        ROW(8, uint64_t)
#undef ROW
    }
}

Tensor *tensor_contiguous(const Tensor *t) {
    if (tensor_is_contiguous(t))
        return (Tensor *)t;
    Tensor *copy = tensor_new(t->dtype, t->rank, t->shape);
    if (copy->count == 0)
        return copy;
    size_t size = dtype_size(t->dtype);
    int last = t->rank - 1; /* not contiguous: rank is at least 1 */
    int64_t index[TENSOR_MAX_RANK] = {0}, row = t->shape[last];
    const char *from = tensor_data(t);
    char *to = copy->buffer->data;
    for (int64_t done = 0; done < copy->count; done += row) {
        copy_row(to, from, row, t->strides[last], size);
        to += (size_t)row * size;
        for (int axis = last; axis-- > 0;) {
            from += t->strides[axis] * (int64_t)size;
            if (++index[axis] < t->shape[axis])
                break;
            from -= t->strides[axis] * t->shape[axis] * (int64_t)size;
            index[axis] = 0;
        }
    }
    return copy;
}

/* Elements as bits: above `infinity`, the sign aside, stands a nan. */
#define MEND_NANS(bits, sign, infinity, quiet)                                                     \
    for (int64_t i = 0; i < t->count; i++)                                                         \
        if ((((const bits *)from)[i] & (bits) ~(sign)) > (infinity) &&                             \
            ((const bits *)from)[i] != (quiet)) {                                                  \
            if (!to)                                                                               \
                return false;                                                                      \
            ((bits *)to)[i] = (quiet);                                                             \
        }                                                                                          \
    return true

/* Writes the canonical nan to `to` wherever another stands at `from`; to NULL: false if one does. */
static bool mend_nans(const Tensor *t, const void *from, void *to) {
    switch (t->dtype) {
    case DT_F16: MEND_NANS(uint16_t, 0x8000u, 0x7c00u, 0x7e00u);
    case DT_BF16: MEND_NANS(uint16_t, 0x8000u, 0x7f80u, 0x7fc0u);
    case DT_F32: MEND_NANS(uint32_t, 0x80000000u, 0x7f800000u, 0x7fc00000u);
    case DT_F64:
        MEND_NANS(uint64_t, UINT64_C(1) << 63, UINT64_C(0x7ff0000000000000),
                  UINT64_C(0x7ff8000000000000));
    case DT_BOOL:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_U8:
    case DT_U16:
    case DT_U32:
    case DT_U64:
    case DTYPE_COUNT: break;
    }
    return true;
}
#undef MEND_NANS

Tensor *tensor_canonical(const Tensor *t) {
    Tensor *own = tensor_contiguous(t);
    if (mend_nans(own, tensor_data(own), NULL))
        return own;
    if (own == t)
        own = tensor_from(t->dtype, t->rank, t->shape, tensor_data(t));
    (void)mend_nans(own, tensor_data(own), tensor_data(own));
    return own;
}

void *tensor_at(const Tensor *t, int64_t i) {
    int64_t at = t->offset;
    for (int axis = t->rank; axis-- > 0;) {
        at += i % t->shape[axis] * t->strides[axis];
        i /= t->shape[axis];
    }
    return (char *)t->buffer->data + at * (int64_t)dtype_size(t->dtype);
}

void tensor_release(Tensor *t) {
    Buffer *b = t->buffer;
    if (!b || b->owners != 1)
        return;
    bool may = b == own_buffer(t) && buffer_may_renew(b);
    t->buffer = NULL;
    buffer_release(b);
    if (may)
        spare_give(spare_of(t->rank, b->bytes), t);
}

void tensor_drop(Tensor *t) {
    if (!t->buffer || t->buffer->owners == 1) {
        tensor_release(t);
        return;
    }
    t->buffer->owners--;
    bool view = t->buffer != own_buffer(t);
    t->buffer = NULL;
    if (view)
        spare_give(spare_view(t->rank), t);
}

Tensor *tensor_lengthen(Tensor *t, int rank, const int64_t *shape) {
    int64_t count = shape_count(rank, shape, t->dtype), strides[TENSOR_MAX_RANK], stride = 1;
    if (count < t->count || t->offset || t->buffer->owners != 1 ||
        !buffer_lengthen(t->buffer, (size_t)count * dtype_size(t->dtype)))
        return NULL;
    for (int i = rank; i-- > 0; stride *= shape[i])
        strides[i] = stride;
    Tensor *longer = tensor_view(t, rank, shape, strides, 0);
    tensor_drop(t);
    return longer;
}
