/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/window.h"

#include <string.h>

bool window_list(const Attrs *attrs, const char *name, int sides, int64_t least, int64_t *out) {
    int64_t v[WINDOW_SIDES];
    int n = attr_int_list(attrs, name, v, WINDOW_SIDES);
    if (n != 1 && n != sides)
        return false;
    for (int j = 0; j < sides; j++) {
        out[j] = v[n == 1 ? 0 : j];
        if (out[j] < least)
            return false;
    }
    return true;
}

const char *window_attrs(const Attrs *attrs, Window *w) {
    return window_attrs_named(attrs, "dilation", w);
}

const char *window_attrs_named(const Attrs *attrs, const char *dilation, Window *w) {
    int sides = w->sides;
    const char *words = sides == 1   ? "one number"
                        : sides == 2 ? "one or two numbers"
                                     : "one or three numbers";
    if (!window_list(attrs, "strides", sides, 1, w->stride))
        return fmt_text("strides are %s from 1", words);
    for (int j = 0; j < sides; j++)
        w->dilation[j] = 1;
    if (dilation && !window_list(attrs, dilation, sides, 1, w->dilation))
        return fmt_text("%s is %s from 1", dilation, words);
    for (int j = 0; j < sides; j++)
        if (w->stride[j] > WINDOW_MOST || w->dilation[j] > WINDOW_MOST)
            return fmt_text("strides and %s are at most %d", dilation ? dilation : "steps",
                            WINDOW_MOST);
    int64_t p[2 * WINDOW_SIDES];
    int n = attr_int_list(attrs, "padding", p, 2 * WINDOW_SIDES);
    if (n != 1 && n != sides && n != 2 * sides)
        return sides == 1   ? "padding is 1 or 2 numbers"
               : sides == 2 ? "padding is 1, 2 or 4 numbers"
                            : "padding is 1, 3 or 6 numbers";
    for (int i = 0; i < n; i++)
        if (p[i] < 0 || p[i] > WINDOW_MOST)
            return p[i] < 0 ? "padding is not negative"
                            : fmt_text("padding is at most %d", WINDOW_MOST);
    for (int j = 0; j < sides; j++) {
        w->before[j] = p[n == 1 ? 0 : j];
        w->after[j] = p[n == 1 ? 0 : n == sides ? j : sides + j];
    }
    return NULL;
}

const char *layout_letters(const char *first, int sides) {
    return fmt_text("%s%s", first, sides == 1 ? "W" : sides == 2 ? "HW" : "DHW");
}

bool layout_read(const char *layout, const char *letters, int *place) {
    if (strlen(layout) != strlen(letters))
        return false;
    for (size_t i = 0; letters[i]; i++) {
        const char *at = strchr(layout, letters[i]);
        if (!at)
            return false;
        place[i] = (int)(at - layout);
    }
    return true;
}

const char *side_name(int sides, int side) {
    static const char *const names[] = {"depth", "height", "width"};
    return names[WINDOW_SIDES - sides + side];
}

int64_t window_reach(const Window *w, int side) {
    int64_t reach = size_multiply(w->kernel[side] - 1, w->dilation[side]);
    return reach < INT64_MAX / 4 ? reach + 1 : INT64_MAX / 4; /* beyond any side */
}

int64_t window_count(const Window *w, int side, int64_t size, bool ceil_mode) {
    int64_t room = size + w->before[side] + w->after[side] - window_reach(w, side);
    if (room < 0)
        return -1;
    if (ceil_mode)
        room += w->stride[side] - 1;
    return room / w->stride[side] + 1;
}

void window_dims(Relation *r, int sides, WindowDims *w) {
    const AttrValue *padding = attrs_get(r->attrs, "padding");
    int n = padding->kind == ATTR_LIST ? (int)padding->list.n : 1;
    for (int j = 0; j < sides; j++) {
        w->stride[j] = rel_attr_item(r, "strides", j);
        w->dilation[j] = rel_attr_item(r, "dilation", j);
        w->around[j] = dim_add(rel_attr_item(r, "padding", j),
                               rel_attr_item(r, "padding", n == 2 * sides ? sides + j : j));
    }
}

Type *window_count_dim(Relation *r, const WindowDims *w, int side, Type *size, bool ceil_mode) {
    Type *stride = w->stride[side], *dilation = w->dilation[side], *one = rel_int_dim(r, 1);
    Type *room = dim_add(dim_add(size, w->around[side]), dim_sub(dilation, one));
    room = dim_sub(room, dim_mul(w->kernel[side], dilation));
    if (ceil_mode)
        room = dim_add(room, dim_sub(stride, one));
    return dim_add_int(dim_floordiv(room, stride), 1);
}

bool window_make_ranks(Solver *s, Relation *r, uint32_t nargs, int rank) {
    uint32_t own;
    Type **dims;
    for (uint32_t i = 0; i < nargs; i++) {
        if (!rel_make_rank(s, r, (int)i, (uint32_t)rank))
            return false;
        rel_rank_in(r->args[i], &own, &dims);
        if ((int)own == rank)
            continue;
        rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes and needs %d", r->op->name,
                  op_arg(r->op, (int)i).name, own, rank);
        return false;
    }
    return true;
}

Tensor *plan_spread(Plan *plan, const Tensor *t, int sides, const int *axes, const int64_t *before,
                    const int64_t *spread, const int64_t *size) {
    int64_t shape[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK], offset = 0;
    memcpy(shape, t->shape, sizeof(int64_t) * (size_t)t->rank);
    for (int j = 0; j < sides; j++)
        shape[axes[j]] = size[j];
    Tensor *out = plan_temp(plan, t->dtype, t->rank, shape);
    memcpy(strides, out->strides, sizeof(int64_t) * (size_t)t->rank);
    for (int j = 0; j < sides; j++) {
        offset += before[j] * strides[axes[j]];
        strides[axes[j]] *= spread[j];
    }
    plan_fill_int(plan, out, 0);
    plan_place_strided(plan, out, strides, offset, t);
    return out;
}
