/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of one, two and three dimensions, and their partial derivatives. Each is one product over
 * batch n, group g, output channel o and input channel c within the group, places y in the result and
 * places i in the kernel, one of each a side (two sides here):
 *
 *     out[n, g o, y, x] = sum c i j   data[n, g c, y*sh + i*dh, x*sw + j*dw] * weight[g o, c, i, j]
 *
 * so that every tensor is read by plain strides. Padding, and the zeros between the places that a
 * stride above 1 skips in the derivative by data, are written out in a temporary first: a copy
 * costs little beside the product, whose loops then have no tests in them.
 *
 * Three linear maps make all operators: conv, conv_data and conv_weight. A transposed convolution
 * is conv_data, with the names of layouts, data and channels as it has them (`transposed`). */
#ifndef OPS_CONV_H
#define OPS_CONV_H

#include "ops/window.h"

enum { CONV_N, CONV_C, CONV_SIDE };    /* letters of data and result; the sides follow */
enum { CONV_O, CONV_I };               /* letters of the kernel; the sides follow at CONV_SIDE */
enum { CONV_RANK = 2 + WINDOW_SIDES }; /* at most */

typedef struct Conv {
    Window w;
    bool transposed;
    int rank;
    int data[CONV_RANK], kernel[CONV_RANK], out[CONV_RANK]; /* where the letters stand */
    int64_t n, groups, o, c;                                /* o and c: of one group */
    int64_t size[WINDOW_SIDES], count[WINDOW_SIDES];        /* of the data and of the result */
} Conv;

/* The attributes that all of them have, and those of the three maps, of any number of sides. */
#define CONV_ATTRS(ones, zeros, data, kernel)                                                      \
    {"strides", AT_DIMS, ones, "steps of the window, one a side"},                                 \
        {"padding", AT_DIMS, zeros,                                                                \
         "zeros around: one number; one a side; or those before each side, then those after"},     \
        {"dilation", AT_DIMS, ones, "steps within the window"},                                    \
        {"groups", AT_INT, "1", "channels are split into this many independent groups"},           \
        {"channels", AT_DIM, "None", "output channels, where the weight is determined by it"},     \
        {"kernel_size", AT_DIMS_OPT, "None", "the sides of the window, likewise"},                 \
        {"data_layout", AT_STRING, "\"" data "\"", "what data's axes are"},                        \
        {"kernel_layout", AT_STRING, "\"" kernel "\"", "what the weight's axes are"},              \
        {"out_layout", AT_STRING, "\"\"", "what the result's axes are; empty: as data's"}, {       \
        "out_dtype", AT_DTYPE, "None", "of the result; None: that of the arguments"                \
    }
#define CONV_LAYOUTS(data, kernel)                                                                 \
    "data_layout: " data "; kernel_layout: " kernel "; out_layout: " data " -"
#define CONV_LAYOUTS_ANY CONV_LAYOUTS("+NCHW +NCW +NCDHW", "+OIHW +GOIHW +OIW +OIDHW")
enum { CONV_NATTRS = 10, CONV_NATTRS_ANY = 11 };
extern const AttrSpec conv_attrs_any[];
enum { CONV_TRANSPOSED = 1 }; /* Op.variant */

/* The attributes of a call; NULL, or a problem. data_layout says how many sides there are. */
const char *conv_read(const Attrs *attrs, Conv *v);
/* Fills what follows from the weight alone: channels and the kernel's sides. Or reports. */
bool conv_resolve_weight(const OpCall *call, int rank, int wrank, const int64_t *weight, Conv *v);
/* Fills the sizes from those of data and weight, as the convolution has them; or reports. */
bool conv_resolve(const OpCall *call, int rank, const int64_t *data, int wrank,
                  const int64_t *weight, Conv *v);
/* The same of the arguments with these numbers, which have one dtype. */
bool conv_call(const OpCall *call, int data, int weight, Conv *v);
void conv_out_shape(const Conv *v, int64_t *dims);
/* Whether argument `arg` has the result's shape; or reports. */
bool conv_check_result(const OpCall *call, int arg, const Conv *v);
void conv_write_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks);

/* For relations; both are false after a report. Gives the weight the sizes that channels and kernel_size tell; data: sizes of the first argument. */
bool conv_solve_weight(Solver *s, Relation *r, const Conv *v, Type **data, Type *dtype);
/* That, the attributes, and the ranks of (data, weight), whose sizes it gives. */
bool conv_relate(Solver *s, Relation *r, Conv *v, Type ***data, Type ***weight);

/* out = the convolution of x and weight; the derivative by data of g; that by the weight. */
void conv_plan_forward(Plan *plan, const Conv *v, Tensor *out, const Tensor *x,
                       const Tensor *weight);
void conv_plan_data(Plan *plan, const Conv *v, Tensor *out, const Tensor *g, const Tensor *weight);
void conv_plan_weight(Plan *plan, const Conv *v, Tensor *out, const Tensor *g, const Tensor *data);

#endif
