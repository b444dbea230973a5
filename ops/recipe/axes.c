/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recipe/axes.h"

static void insert(Axes *axes, int at, Axis axis) {
    for (int i = axes->n++; i > at; i--)
        axes->at[i] = axes->at[i - 1];
    axes->at[at] = axis;
}

bool axes_find(Axes *axes, int rank, const int64_t *extents, const int64_t *strides) {
    axes->n = 0;
    for (int a = 0; a < rank; a++) {
        Axis axis = {extents[a], strides[a], a, 1};
        if (axis.extent == 1)
            continue;
        int at = 0;
        while (at < axes->n && axes->at[at].stride < axis.stride)
            at++;
        insert(axes, at, axis);
    }
    int64_t next = 1;
    for (int i = 0; i < axes->n; i++) {
        if (axes->at[i].stride != next)
            return false;
        next *= axes->at[i].extent;
    }
    return true;
}

/* Cuts the axes where another's begin. */
static bool cut_at(Axes *axes, const Axes *other) {
    for (int k = 0; k < other->n; k++) {
        int64_t begin = other->at[k].stride;
        for (int i = 0; i < axes->n; i++) {
            Axis *axis = &axes->at[i], outer = *axis;
            if (begin <= axis->stride || begin >= axis->stride * axis->extent)
                continue;
            int64_t inner = begin / axis->stride;
            if (begin % axis->stride != 0 || axis->extent % inner != 0 ||
                axes->n == RECIPE_MAX_AXES)
                return false;
            outer.extent /= inner;
            outer.stride = begin;
            outer.times *= inner;
            axis->extent = inner;
            insert(axes, i + 1, outer);
            break;
        }
    }
    return true;
}

bool axes_match(Axes *a, Axes *b) {
    if (!cut_at(a, b) || !cut_at(b, a) || a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->at[i].extent != b->at[i].extent)
            return false;
    return true;
}
