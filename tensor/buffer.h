/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of tensor elements: see tensor/tensor.h for the rules. Used by tensor.c and packed.c alone. */
#ifndef TENSOR_BUFFER_H
#define TENSOR_BUFFER_H

#include "tensor/tensor.h"

enum { BUFFER_ALIGNMENT = 64 }; /* of elements, in bytes */
/* Aligned so, contents undefined, owners 1. Never NULL. */
Buffer *buffer_new(size_t bytes);
/* Whether a Buffer of so many bytes may be part of another block, as nothing is done when it becomes unreachable. */
bool buffer_is_plain(size_t bytes);
void buffer_init_plain(Buffer *b, size_t bytes);
/* Whether such a Buffer that was given back may serve again, and that for as many lines of BUFFER_ALIGNMENT bytes. */
bool buffer_may_renew(const Buffer *b);
void buffer_renew_plain(Buffer *b, size_t bytes);
/* Over memory of somebody else, which is only read (owners is 2, so that nobody writes over it): release(ctx) is called
 * some time after the Buffer became unreachable. */
Buffer *buffer_borrow(void *data, size_t bytes, void (*release)(void *ctx), void *ctx);
/* Without storage: data is NULL. */
Buffer *buffer_blank(void);
/* Whether b, of one owner, now has so many bytes, which are no fewer than it had; its elements stay, but may have moved. */
bool buffer_lengthen(Buffer *b, size_t bytes);
/* Gives the storage back at once; the Buffer must not be used again. */
void buffer_release(Buffer *b);
/* Whether so many bytes more stay below the limit as things are. */
bool buffer_has_room(size_t bytes);
/* Of collected heap and buffers together; 1 GB where none is set. */
size_t buffer_limit(void);

#endif
