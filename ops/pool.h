/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of one, two and three dimensions. There are two kinds of windows: those of a fixed size (pool_size,
 * strides, …), and adaptive ones, of which the attribute output_size says how many there are: window i of n
 * over a side of m begins at floor(i m / n) and ends before ceil((i + 1) m / n). A global pool is one such
 * window. Adaptive windows that all have one size are taken for those of that size.
 *
 * The domain of a step is the result's axes and then the window's; an element of the window that lies in
 * the padding is not read. */
#ifndef OPS_POOL_H
#define OPS_POOL_H

#include "ops/window.h"

enum { POOL_RANK = 2 + WINDOW_SIDES };       /* at most */
enum { POOL_MAX, POOL_AVG, POOL_VALUE = 1 }; /* bits of Op.variant: what is taken, */
enum { POOL_GLOBAL = 2 };                    /* and whether there is one window */

typedef struct Pool {
    Window w; /* of adaptive windows: the kernel has room for the largest */
    bool adaptive;
    int rank, axis[WINDOW_SIDES]; /* of the data; where its sides stand */
    bool ceil_mode, include_pad;
    int64_t size[WINDOW_SIDES], count[WINDOW_SIDES]; /* of the data and of the result */
} Pool;

/* The sizes of a call that pools argument `arg`; or reports. */
bool pool_resolve(const OpCall *call, int arg, Pool *p);
void pool_out_shape(const Pool *p, const Tensor *x, int64_t *dims);
/* For `relate` of several: the result is `data` (argument 0) pooled. */
RelStatus pool_relate(Solver *s, Relation *r);

/* The strides by which a step over (result, window) reads or writes x, and the offset of the first window's
 * corner; where windows are adaptive, their starts are not in them, but pool_skip gives them. */
void pool_strides(const Pool *p, const Tensor *x, int64_t *strides, int64_t *offset);
/* The window at the current place, in the body of a step: where it starts along each side, and what bounds
 * it (adaptive: how many places it has; else the size of the data). */
typedef struct PoolPlace {
    Sc start[WINDOW_SIDES], bound[WINDOW_SIDES], dilation[WINDOW_SIDES];
} PoolPlace;
PoolPlace pool_place(StepBuilder *s, const Pool *p);
/* Whether place number in_window of side j's window is one of the data. */
Sc pool_inside(StepBuilder *s, const Pool *p, const PoolPlace *at, int j, Sc in_window);
/* The same of the place where a step over (result, window) is, along all sides. */
Sc pool_inside_all(StepBuilder *s, const Pool *p, const PoolPlace *at);
/* What to add to the address that pool_strides give. */
Sc pool_skip(StepBuilder *s, const Pool *p, const PoolPlace *at, const Tensor *x);
/* out = the fold over the windows of x; COMBINE_ARGMAX: the number in its window of the first largest. */
void pool_fold(Plan *plan, const Pool *p, Tensor *out, const Tensor *x, Combine combine, DType acc);
/* out = x / (number of elements in the window), over the result's domain. */
void pool_divide(Plan *plan, const Pool *p, Tensor *out, const Tensor *x);

#define POOL_ATTRS(size, ones, zeros, order)                                                       \
    size, {"strides", AT_DIMS, ones, "steps of the window"},                                       \
        {"dilation", AT_DIMS, ones, "steps within the window"},                                    \
        {"padding", AT_DIMS, zeros,                                                                \
         "places around that hold nothing: one number; one a side; or those before each side, "    \
         "then those after"},                                                                      \
        {"layout", AT_STRING, "\"" order "\"", "what data's axes are"},                            \
        {"out_layout", AT_STRING, "\"\"", "what the result's axes are; empty: as data's"},         \
        {"ceil_mode", AT_BOOL, "False", "a last window that hangs over the edge counts"}, {        \
        "count_include_pad", AT_BOOL, "False",                                                     \
            "the average counts places of the padding, as zeros"                                   \
    }
#define POOL_SIZE                                                                                  \
    { "pool_size", AT_DIMS, NULL, "the sides of the window" }
enum { POOL_NMAX = 7, POOL_NAVG = 8, POOL_NANY = 9 }; /* attributes; max has no count_include_pad */
extern const AttrSpec pool_attrs_2d[], pool_attrs_any[];
#define POOL_LAYOUTS(order) "layout: " order "; out_layout: " order " -"
#define POOL_LAYOUTS_ANY POOL_LAYOUTS("+NCHW +NCW +NCDHW")

#endif
