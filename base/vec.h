/* SPDX-License-Identifier: Apache-2.0 */
/* Growable arrays, collected. `VEC(Expr *) v = {0}; vec_push(&v, e); v.data[i]; v.len`.
 * The element type may hold pointers: storage is scanned. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/mem.h"

#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *data;                                                                                   \
        size_t len, cap;                                                                           \
    }

#define vec_reserve(v, n) vec_reserve_((void **)&(v)->data, &(v)->cap, (n), sizeof *(v)->data)
#define vec_push(v, x)                                                                             \
    ((v)->len < (v)->cap ? (void)0 : vec_reserve((v), (v)->len + 1),                               \
     (void)((v)->data[(v)->len++] = (x)))
#define vec_pop(v) ((v)->data[--(v)->len])
#define vec_last(v) ((v)->data[(v)->len - 1])
#define vec_clear(v) ((void)((v)->len = 0))

void vec_reserve_(void **data, size_t *cap, size_t wanted, size_t elem_size);

#endif
