/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/index_part.h"

#include "eval/plans.h"
#include "ops/index_view.h"
#include "ops/ops.h"
#include "tensor/packed.h"

#include <string.h>

extern const Op op_index_add;

/* ---- where it lies --------------------------------------------------------------------------- */

/* The number that a scalar argument of an index is. */
static bool next_integer(const Value **at, const Value *end, int64_t *out) {
    if (*at == end || (*at)->tag != VAL_SCALAR)
        return false;
    *out = (*at)++->i;
    return true;
}

static void add_axis(SliceView *part, int64_t size, int64_t stride) {
    part->shape[part->rank] = size;
    part->strides[part->rank++] = stride;
}

/* Takes `count` axes of t from `axis` on whole. */
static void add_axes(SliceView *part, const Tensor *t, int axis, int count) {
    for (; count > 0; count--, axis++)
        add_axis(part, t->shape[axis], t->strides[axis]);
}

static bool is_integer(char letter) {
    return letter == 'i' || letter == 'o' || letter == 'c' || letter == 'w';
}

/* One place of an axis. */
__attribute__((always_inline)) static inline bool take_place(SliceView *part, const Tensor *t,
                                                             int axis, char letter, int64_t i) {
    uint64_t size = (uint64_t)t->shape[axis];
    if ((uint64_t)i >= size) { /* else each letter means i */
        i = index_place(letter, i, t->shape[axis]);
        if ((uint64_t)i >= size)
            return false;
    }
    part->offset += i * t->strides[axis];
    return true;
}

/* A range of an axis, whose digit in the spec says which bounds are given. */
static bool take_range(SliceView *part, const Tensor *t, int axis, char digit, const Value **args,
                       const Value *end) {
    SliceRange r = {.has_begin = digit & 1, .has_end = digit >> 1 & 1, .step = 1};
    int64_t first, count;
    if ((r.has_begin && !next_integer(args, end, &r.begin)) ||
        (r.has_end && !next_integer(args, end, &r.end)) ||
        ((digit >> 2 & 1) && !next_integer(args, end, &r.step)) || r.step == 0)
        return false;
    slice_resolve(&r, t->shape[axis], &first, &count);
    part->offset += count ? first * t->strides[axis] : 0;
    add_axis(part, count, t->strides[axis] * r.step);
    return true;
}

bool index_part_find(const Tensor *t, const char *spec, const Value *args, uint32_t n,
                     SliceView *part) {
    const Value *end = args + n;
    IndexCount count;
    int64_t i;
    int axis = 0;
    part->rank = 0;
    part->offset = t->offset;
    if (t->waiting)
        return false;
    for (; is_integer(*spec); spec++, axis++, args++) /* most are these alone */
        if (axis >= t->rank || args == end || args->tag != VAL_SCALAR ||
            !take_place(part, t, axis, *spec, args->i))
            return false;
    if (!*spec) {
        add_axes(part, t, axis, t->rank - axis);
        return args == end;
    }
    if (!index_count(spec, &count) || axis + count.axes > t->rank ||
        count.results + t->rank - axis - count.axes > TENSOR_MAX_RANK)
        return false;
    int rest = t->rank - axis - count.axes;
    for (; *spec; spec++) {
        if (*spec == 'n') {
            add_axis(part, 1, 0);
        } else if (*spec == '.') {
            add_axes(part, t, axis, rest);
            axis += rest;
            rest = 0;
        } else if (*spec == ':') {
            if (!take_range(part, t, axis++, *++spec, &args, end))
                return false;
        } else if (!is_integer(*spec) || !next_integer(&args, end, &i) ||
                   !take_place(part, t, axis++, *spec, i)) {
            return false;
        }
    }
    add_axes(part, t, axis, rest);
    return args == end;
}

bool index_part_is_small(const SliceView *part, DType dtype, int64_t *count) {
    *count = 1;
    for (int k = part->rank; k-- > 0; *count *= part->shape[k])
        if (part->shape[k] > PART_BYTES || (part->shape[k] != 1 && part->strides[k] != *count))
            return false;
    return *count && *count * (int64_t)dtype_size(dtype) <= PART_BYTES;
}

bool index_part_fits(const SliceView *part, DType dtype, Value v) {
    if (v.tag != VAL_TENSOR)
        return v.tag == VAL_SCALAR && v.aux == dtype;
    const Tensor *t = v.p;
    bool fits = t->dtype == dtype && t->rank == part->rank;
    for (int k = 0; fits && k < part->rank; k++) /* memcmp would wait for what was just written */
        fits = t->shape[k] == part->shape[k];
    return fits;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Note [Plans of parts]. Where a part begins depends on the integers of its index, and its layout does not: so the operand
 * of these plans is the part, as a tensor of its own over the whole one's buffer, and one plan serves for all places. */

static Template *make_copy(void *ctx, Tensor *const *in, uint32_t n) {
    (void)ctx;
    Plan plan = {.blank = true};
    Tensor *out = tensor_blank(in[0]->dtype, in[0]->rank, in[0]->shape);
    plan_copy(&plan, out, in[0]);
    return template_new(&plan, in, n, &out, 1);
}

/* It writes to its first operand and has no result. */
static Template *make_put(const Tensor *part, Tensor *const *in, bool add) {
    Plan plan = {.blank = true};
    SliceView whole = {.rank = part->rank};
    memcpy(whole.shape, part->shape, sizeof(int64_t) * (size_t)part->rank);
    memcpy(whole.strides, part->strides, sizeof(int64_t) * (size_t)part->rank);
    plan_slice_set(&plan, in[0], &whole, in[1], add);
    return template_new(&plan, in, 2, NULL, 0);
}

static Template *make_set(void *ctx, Tensor *const *in, uint32_t n) {
    (void)ctx, (void)n;
    return make_put(in[0], in, false);
}

static Template *make_add(void *ctx, Tensor *const *in, uint32_t n) {
    (void)ctx, (void)n;
    return make_put(in[0], in, true);
}

Value index_part_view(const Tensor *t, const SliceView *part) {
    Tensor *view = tensor_view(t, part->rank, part->shape, part->strides, part->offset);
    return (Value){.tag = VAL_TENSOR, .p = view};
}

int32_t index_part_copy(Interp *in, const Tensor *t, const SliceView *part, Value *out) {
    Value view = index_part_view(t, part);
    PlanCall call = {.what = &op_index};
    int32_t status = plans_run(in, &call, &view, 1, make_copy, NULL, out);
    tensor_drop(view.p);
    return status;
}

int32_t index_part_put(Interp *in, Tensor *t, const SliceView *part, Value from, bool add) {
    Value args[] = {index_part_view(t, part), from}, none;
    PlanCall call = {.what = add ? &op_index_add : &op_index_set};
    if (t->buffer->packed)
        packed_forget(t->buffer);
    int32_t status = plans_run(in, &call, args, 2, add ? make_add : make_set, NULL, &none);
    tensor_drop(args[0].p);
    return status;
}
