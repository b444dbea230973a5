/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/window.h"

#include <string.h>

static const char *pair(const Attrs *attrs, const char *name, int64_t *out, const char *problem) {
    int64_t v[2];
    int n = attr_int_list(attrs, name, v, 2);
    if (n < 1)
        return problem;
    out[0] = v[0];
    out[1] = v[n - 1];
    return out[0] < 1 || out[1] < 1 ? problem : NULL;
}

const char *window_attrs(const Attrs *attrs, Window *w) {
    const char *problem = pair(attrs, "strides", w->stride,
                               "strides are one or two numbers from 1");
    if (!problem)
        problem = pair(attrs, "dilation", w->dilation, "dilation is one or two numbers from 1");
    if (problem)
        return problem;
    int64_t p[4];
    int n = attr_int_list(attrs, "padding", p, 4);
    if (n != 1 && n != 2 && n != 4)
        return "padding is 1, 2 or 4 numbers";
    for (int i = 0; i < n; i++)
        if (p[i] < 0)
            return "padding is not negative";
    w->before[0] = p[0];
    w->before[1] = p[n == 1 ? 0 : 1];
    w->after[0] = p[n == 4 ? 2 : 0];
    w->after[1] = p[n == 4 ? 3 : n == 2 ? 1 : 0];
    return NULL;
}

void layout_read(const char *layout, const char *letters, int *place) {
    for (size_t i = 0; letters[i]; i++)
        place[i] = (int)(strchr(layout, letters[i]) - layout);
}

static int64_t reach(const Window *w, int side) {
    return (w->kernel[side] - 1) * w->dilation[side] + 1;
}

int64_t window_count(const Window *w, int side, int64_t size, bool ceil_mode) {
    int64_t room = size + w->before[side] + w->after[side] - reach(w, side);
    if (room < 0)
        return -1;
    if (ceil_mode)
        room += w->stride[side] - 1;
    return room / w->stride[side] + 1;
}

Type *window_count_dim(Relation *r, const Window *w, int side, Type *size, Type *kernel,
                       bool ceil_mode) {
    int64_t extra = w->before[side] + w->after[side] + w->dilation[side] - 1;
    if (ceil_mode)
        extra += w->stride[side] - 1;
    if (!kernel)
        kernel = rel_int_dim(r, w->kernel[side]);
    Type *reach = dim_mul(kernel, rel_int_dim(r, w->dilation[side]));
    Type *room = dim_sub(dim_add_int(size, extra), reach);
    if (w->stride[side] != 1)
        room = dim_floordiv(room, rel_int_dim(r, w->stride[side]));
    return dim_add_int(room, 1);
}

Tensor *plan_spread(Plan *plan, const Tensor *t, const int *axes, const int64_t *before,
                    const int64_t *spread, const int64_t *size) {
    int64_t shape[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK], offset = 0;
    memcpy(shape, t->shape, sizeof(int64_t) * (size_t)t->rank);
    for (int j = 0; j < 2; j++)
        shape[axes[j]] = size[j];
    Tensor *out = plan_temp(plan, t->dtype, t->rank, shape);
    memcpy(strides, out->strides, sizeof(int64_t) * (size_t)t->rank);
    for (int j = 0; j < 2; j++) {
        offset += before[j] * strides[axes[j]];
        strides[axes[j]] *= spread[j];
    }
    plan_fill_int(plan, out, 0);
    plan_place_strided(plan, out, strides, offset, t);
    return out;
}
