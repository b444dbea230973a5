/* SPDX-License-Identifier: Apache-2.0 */
/* What convolutions and pools of one, two and three dimensions share: layouts, strides, padding, and the
 * sizes of windows. A side is a dimension in space: of two, side 0 is the height and 1 the width; of three,
 * 0 is the depth before them. */
#ifndef OPS_WINDOW_H
#define OPS_WINDOW_H

#include "ops/relate/structured.h"

enum { WINDOW_SIDES = 3 }; /* at most */
enum {
    WINDOW_MOST = INT32_MAX
}; /* strides, dilation and padding, so that sums of them are exact */

typedef struct Window {
    int sides;
    int64_t kernel[WINDOW_SIDES], stride[WINDOW_SIDES], dilation[WINDOW_SIDES];
    int64_t before[WINDOW_SIDES], after[WINDOW_SIDES]; /* padding */
} Window;

/* Reads strides, dilation and padding of w->sides sides. Each list has one number for all sides or one a
 * side; padding may also have two a side: all of before, then all of after. NULL, or a problem. */
const char *window_attrs(const Attrs *attrs, Window *w);
/* The same where the attribute of the steps within the window has this name; NULL: they are 1. */
const char *window_attrs_named(const Attrs *attrs, const char *dilation, Window *w);
/* A list of one number for all sides or one a side; false where it is none, or below `least`. */
bool window_list(const Attrs *attrs, const char *name, int sides, int64_t least, int64_t *out);

/* The letters of a layout of this many sides after `first`: "NC" gives "NCHW" for two. */
const char *layout_letters(const char *first, int sides);
/* Where each letter of `letters` ("NCHW") stands in a layout; false where it is no order of them. */
bool layout_read(const char *layout, const char *letters, int *place);
/* "height" of side 0 of two. */
const char *side_name(int sides, int side);

/* How many windows fit on a side of this size, or -1 when none does. */
int64_t window_count(const Window *w, int side, int64_t size, bool ceil_mode);
/* A window whose sizes may be computed: what the relation's attributes say. `around` is all padding of a side; the
 * kernel is filled in by the caller. */
typedef struct WindowDims {
    Type *kernel[WINDOW_SIDES], *stride[WINDOW_SIDES], *dilation[WINDOW_SIDES],
        *around[WINDOW_SIDES];
} WindowDims;
void window_dims(Relation *r, int sides, WindowDims *w);
/* window_count of sizes. */
Type *window_count_dim(Relation *r, const WindowDims *w, int side, Type *size, bool ceil_mode);
/* From its first element to its last, that included. */
int64_t window_reach(const Window *w, int side);

/* For relations: the first nargs arguments have this rank; false after a report. */
bool window_make_ranks(Solver *s, Relation *r, uint32_t nargs, int rank);

/* t with zeros around on the given axes, one a side, `space` behind each element (dilated by stride), in a
 * temporary: element i of side j lies at before[j] + i * spread[j] of size[j]. */
Tensor *plan_spread(Plan *plan, const Tensor *t, int sides, const int *axes, const int64_t *before,
                    const int64_t *spread, const int64_t *size);

#endif
