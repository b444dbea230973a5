/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of tensor elements: see tensor/tensor.h for the rules. Used by tensor.c alone. */
#ifndef TENSOR_BUFFER_H
#define TENSOR_BUFFER_H

#include "tensor/tensor.h"

/* 64-byte aligned, contents undefined, owners 1. Never NULL. */
Buffer *buffer_new(size_t bytes);
/* Without storage: data is NULL. */
Buffer *buffer_blank(void);
/* Gives the storage back at once; the Buffer must not be used again. */
void buffer_release(Buffer *b);

#endif
