/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/small_part.h"

#include "ops/slice.h"

#include <string.h>

/* The number that a scalar argument of an index is. */
static bool next_integer(const Value **at, const Value *end, int64_t *out) {
    if (*at == end || (*at)->tag != VAL_SCALAR)
        return false;
    *out = (*at)++->i;
    return true;
}

bool small_part_find(const Tensor *t, const char *spec, const Value *args, uint32_t n,
                     SmallPart *part) {
    const Value *end = args + n;
    int64_t at = t->offset, count = 1, i, *shape = part->shape;
    int axis = 0;
    if (t->waiting)
        return false;
    for (; *spec == 'i' || *spec == 'o'; spec++, axis++) {
        if (axis >= t->rank || !next_integer(&args, end, &i))
            return false;
        if (i < 0)
            i += t->shape[axis];
        if (i < 0 || i >= t->shape[axis])
            return false;
        at += i * t->strides[axis];
    }
    part->rank = t->rank - axis;
    memcpy(shape, t->shape + axis, sizeof(int64_t) * (size_t)part->rank);
    if (*spec == ':' && axis < t->rank) {
        SliceRange r = {.has_begin = spec[1] & 1, .has_end = spec[1] >> 1 & 1, .step = 1};
        if ((spec[1] >> 2 & 1) || (r.has_begin && !next_integer(&args, end, &r.begin)) ||
            (r.has_end && !next_integer(&args, end, &r.end)))
            return false;
        slice_resolve(&r, t->shape[axis], &i, &shape[0]);
        at += i * t->strides[axis];
        spec += 2;
    }
    for (int k = part->rank; k-- > 0; count *= shape[k])
        if (shape[k] > PART_BYTES || (shape[k] != 1 && t->strides[axis + k] != count))
            return false;
    part->count = count;
    part->data = (char *)t->buffer->data + at * (int64_t)dtype_size(t->dtype);
    return !*spec && args == end && count && count * (int64_t)dtype_size(t->dtype) <= PART_BYTES;
}
