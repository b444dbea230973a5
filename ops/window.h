/* SPDX-License-Identifier: Apache-2.0 */
/* What convolutions and pools share: layouts, strides, padding, and the sizes of windows. */
#ifndef OPS_WINDOW_H
#define OPS_WINDOW_H

#include "ops/relate/structured.h"

/* Axis 0 is the height, 1 the width. */
typedef struct Window {
    int64_t kernel[2], stride[2], dilation[2];
    int64_t before[2], after[2]; /* padding */
} Window;

/* Reads strides, dilation and padding (1, 2 or 4 numbers: both; height and width; top, left,
 * bottom, right). NULL, or a problem. */
const char *window_attrs(const Attrs *attrs, Window *w);
/* Where each letter of `letters` ("NCHW") stands in a layout that is one of its orders. */
void layout_read(const char *layout, const char *letters, int *place);

/* How many windows fit on a side of this size, or -1 when none does. */
int64_t window_count(const Window *w, int side, int64_t size, bool ceil_mode);
/* The same of a symbolic size; kernel: the window's, where it is a size too, or NULL. */
Type *window_count_dim(Relation *r, const Window *w, int side, Type *size, Type *kernel,
                       bool ceil_mode);

/* t with zeros around on two of its axes, `space` behind each element (dilated by stride), in a
 * temporary: element i of side j lies at before[j] + i * spread[j] of size[j]. */
Tensor *plan_spread(Plan *plan, const Tensor *t, const int *axes, const int64_t *before,
                    const int64_t *spread, const int64_t *size);

#endif
