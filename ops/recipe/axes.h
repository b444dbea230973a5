/* SPDX-License-Identifier: Apache-2.0 */
/* Two steps that walk the same elements may have cut them into other axes: (m, n) here, (m n) there. Their axes are
 * cut further until they are the same. */
#ifndef OPS_RECIPE_AXES_H
#define OPS_RECIPE_AXES_H

#include "ops/recipe/recipe.h"

/* An axis along which the elements of a tensor lie. */
typedef struct Axis {
    int64_t extent, stride; /* in elements of the tensor */
    int of;                 /* the axis of its step that it is a part of */
    int64_t times;          /* one step here is so many steps there */
} Axis;

typedef struct Axes {
    int n;
    Axis at[2 * RECIPE_MAX_AXES]; /* the innermost first */
} Axes;

/* The axes of a step by the strides of a tensor that it reads or writes; those of extent 1 are left out. False where it
 * does not walk elements without gaps, each exactly once. */
bool axes_find(Axes *axes, int rank, const int64_t *extents, const int64_t *strides);

/* Cuts both where the other's axes begin. False where they are not the same then. */
bool axes_match(Axes *a, Axes *b);

#endif
