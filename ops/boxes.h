/* SPDX-License-Identifier: Apache-2.0 */
/* What operators on boxes share: elements of tensors of up to three axes, boxes by their scores, and what anchors, the
 * boxes that others are relative to, come in. Their loops are written out, since which boxes stay depends on those before. */
#ifndef OPS_BOXES_H
#define OPS_BOXES_H

#include "types/op.h"

/* The element (a, b, c), of which the axes that there are count. */
double box_get(const Tensor *t, int64_t a, int64_t b, int64_t c);
int64_t box_get_int(const Tensor *t, int64_t a, int64_t b, int64_t c);
void box_set(Tensor *t, int64_t a, int64_t b, int64_t c, double v);
void box_fill(Tensor *t, double v); /* all elements */

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
