/* SPDX-License-Identifier: Apache-2.0 */
/* The products that convolutions are: strides of each tensor along the axes of ops/conv.h. */
#include "ops/conv.h"

/* Axes of the product: AX_Y and AX_I stand for one a side each. */
enum { AX_N, AX_G, AX_O, AX_C, AX_Y, AX_I = AX_Y + WINDOW_SIDES, AX_COUNT = AX_I + WINDOW_SIDES };
enum { SIDES = (1 << WINDOW_SIDES) - 1 };
enum { PLACES = SIDES << AX_Y, KERNEL = SIDES << AX_I };

typedef struct ConvAxes {
    uint32_t used; /* the axes that there are */
    int64_t extents[AX_COUNT], target[AX_COUNT], x[AX_COUNT], y[AX_COUNT];
    int64_t x_offset;
} ConvAxes;

static void axes_init(const Conv *v, ConvAxes *a) {
    *a = (ConvAxes){.used = 1u << AX_N | 1u << AX_G | 1u << AX_O | 1u << AX_C,
                    .extents = {v->n, v->groups, v->o, v->c}};
    for (int j = 0; j < v->w.sides; j++) {
        a->used |= 1u << (AX_Y + j) | 1u << (AX_I + j);
        a->extents[AX_Y + j] = v->count[j];
        a->extents[AX_I + j] = v->w.kernel[j];
    }
}

/* target = x * y: the axes in `parallel` are the target's, ordered as they lie in it, the others
 * are summed over. */
static void axes_plan(Plan *plan, Tensor *target, const ConvAxes *a, uint32_t parallel,
                      const Tensor *x, const Tensor *y) {
    int order[AX_COUNT], n = 0;
    for (int i = 0; i < AX_COUNT; i++)
        if ((parallel & a->used) >> i & 1)
            order[n++] = i;
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && a->target[order[j - 1]] < a->target[order[j]]; j--) {
            int t = order[j];
            order[j] = order[j - 1];
            order[j - 1] = t;
        }
    Product p = {.rank = n, .x_offset = a->x_offset};
    for (int i = 0; i < AX_COUNT; i++)
        if ((a->used & ~parallel) >> i & 1)
            order[n++] = i;
    p.nreduce = n - p.rank;
    for (int i = 0; i < n; i++) {
        p.extents[i] = a->extents[order[i]];
        p.out_strides[i] = a->target[order[i]];
        p.x_strides[i] = a->x[order[i]];
        p.y_strides[i] = a->y[order[i]];
    }
    plan_product(plan, target, &p, x, y);
}

static void weight_strides(const Conv *v, const Tensor *w, int64_t *s) {
    s[AX_G] = v->o * w->strides[v->kernel[CONV_O]];
    s[AX_O] = w->strides[v->kernel[CONV_O]];
    s[AX_C] = w->strides[v->kernel[CONV_I]];
    for (int j = 0; j < v->w.sides; j++)
        s[AX_I + j] = w->strides[v->kernel[CONV_SIDE + j]];
}

static void result_strides(const Conv *v, const Tensor *t, int64_t *s) {
    s[AX_N] = t->strides[v->out[CONV_N]];
    s[AX_G] = v->o * t->strides[v->out[CONV_C]];
    s[AX_O] = t->strides[v->out[CONV_C]];
    for (int j = 0; j < v->w.sides; j++)
        s[AX_Y + j] = t->strides[v->out[CONV_SIDE + j]];
}

/* data with its padding, read through the windows. */
static void data_strides(const Conv *v, const Tensor *t, int64_t *s) {
    s[AX_N] = t->strides[v->data[CONV_N]];
    s[AX_G] = v->c * t->strides[v->data[CONV_C]];
    s[AX_C] = t->strides[v->data[CONV_C]];
    for (int j = 0; j < v->w.sides; j++) {
        int64_t step = t->strides[v->data[CONV_SIDE + j]];
        s[AX_Y + j] = v->w.stride[j] * step;
        s[AX_I + j] = v->w.dilation[j] * step;
    }
}

static const Tensor *padded(Plan *plan, const Conv *v, const Tensor *data) {
    int64_t size[WINDOW_SIDES], one[WINDOW_SIDES];
    bool any = false;
    for (int j = 0; j < v->w.sides; j++) {
        one[j] = 1;
        size[j] = v->size[j] + v->w.before[j] + v->w.after[j];
        any |= size[j] != v->size[j];
    }
    return any ? plan_spread(plan, data, v->w.sides, v->data + CONV_SIDE, v->w.before, one, size)
               : data;
}

void conv_plan_forward(Plan *plan, const Conv *v, Tensor *out, const Tensor *data,
                       const Tensor *weight) {
    ConvAxes a;
    axes_init(v, &a);
    const Tensor *x = padded(plan, v, data);
    data_strides(v, x, a.x);
    weight_strides(v, weight, a.y);
    result_strides(v, out, a.target);
    axes_plan(plan, out, &a, 1u << AX_N | 1u << AX_G | 1u << AX_O | PLACES, x, weight);
}

/* data's place h meets the result's place y where h + before = y * stride + i * dilation. So the
 * cotangent is spread out by the stride, with room for the kernel before it, and read backwards. */
void conv_plan_data(Plan *plan, const Conv *v, Tensor *out, const Tensor *grad,
                    const Tensor *weight) {
    ConvAxes a;
    axes_init(v, &a);
    int64_t room[WINDOW_SIDES], size[WINDOW_SIDES];
    for (int j = 0; j < v->w.sides; j++) {
        room[j] = (v->w.kernel[j] - 1) * v->w.dilation[j];
        int64_t last = v->size[j] - 1 + v->w.before[j], spread = (v->count[j] - 1) * v->w.stride[j];
        size[j] = (last > spread ? last : spread) + room[j] + 1;
        if (size[j] < 1)
            size[j] = 1;
    }
    Tensor *g = plan_spread(plan, grad, v->w.sides, v->out + CONV_SIDE, room, v->w.stride, size);
    result_strides(v, g, a.x);
    weight_strides(v, weight, a.y);
    a.target[AX_N] = out->strides[v->data[CONV_N]];
    a.target[AX_G] = v->c * out->strides[v->data[CONV_C]];
    a.target[AX_C] = out->strides[v->data[CONV_C]];
    for (int j = 0; j < v->w.sides; j++) {
        a.x[AX_I + j] = -v->w.dilation[j] * a.x[AX_Y + j];
        a.x_offset += (v->w.before[j] + room[j]) * a.x[AX_Y + j];
        a.extents[AX_Y + j] = v->size[j]; /* here it runs over data's places */
        a.target[AX_Y + j] = out->strides[v->data[CONV_SIDE + j]];
    }
    axes_plan(plan, out, &a, 1u << AX_N | 1u << AX_G | 1u << AX_C | PLACES, g, weight);
}

void conv_plan_weight(Plan *plan, const Conv *v, Tensor *out, const Tensor *grad,
                      const Tensor *data) {
    ConvAxes a;
    axes_init(v, &a);
    const Tensor *x = padded(plan, v, data);
    result_strides(v, grad, a.x);
    data_strides(v, x, a.y);
    weight_strides(v, out, a.target);
    axes_plan(plan, out, &a, 1u << AX_G | 1u << AX_O | 1u << AX_C | KERNEL, grad, x);
}
