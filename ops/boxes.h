/* SPDX-License-Identifier: Apache-2.0 */
/* What operators on boxes share: elements of tensors of up to three axes, boxes by their scores, and what anchors, the
 * boxes that others are relative to, come in. Their loops are written out, since which boxes stay depends on those before. */
#ifndef OPS_BOXES_H
#define OPS_BOXES_H

#include "ops/relate/structured.h"

/* The element (a, b, c), of which the axes that there are count. */
double box_get(const Tensor *t, int64_t a, int64_t b, int64_t c);
int64_t box_get_int(const Tensor *t, int64_t a, int64_t b, int64_t c);
void box_set(Tensor *t, int64_t a, int64_t b, int64_t c, double v);
void box_fill(Tensor *t, double v); /* all elements */

/* Rows of b batches of n that move to the front of their batch, in their order, those that are not kept being -1.
 * What is kept is asked of the step whose first two axes are (b, n): a bool. */
typedef Sc (*BoxKeep)(StepBuilder *s, const void *ctx);
/* How many are kept before each, int64 (b, n), and of each batch how many there are, into count (b,). sizes: b, n. */
Tensor *box_places(Plan *plan, const int64_t *sizes, BoxKeep keep, const void *ctx, Tensor *count);
/* The step that writes `out` (b, n, k) or (b, n), between the two calls: v is the element at the current place. A row
 * that is not kept is written where the next one that is will stand, and there is room for it, since it is one of n. */
void box_begin_rows(StepBuilder *s, Plan *plan, Tensor *out, const Tensor *places);
void box_end_rows(StepBuilder *s, Tensor *out, const Tensor *places, Sc keep, Sc v);

typedef struct Box {
    double low[2], high[2], score;
    int64_t number; /* in the order of the data */
    double id;
} Box;

/* Boxes by their scores, the highest first, equal ones in their order; spare has room for n. */
void box_sort(Box *boxes, Box *spare, int64_t n);

enum { ANCHORS_MOST = 64 };
typedef struct Anchors {
    int nsizes, nratios;
    double sizes[ANCHORS_MOST], ratios[ANCHORS_MOST];
} Anchors;

/* Reads the attribute `ratios` and the one with the sizes; NULL, or a problem. */
const char *anchors_read(const Attrs *attrs, const char *sizes, Anchors *out);

#endif
