/* SPDX-License-Identifier: Apache-2.0 */
/* For shape functions: checks of the arguments and attributes of one call, each of which reports
 * a diagnostic that names operator, argument and axis, and returns false. */
#ifndef OPS_RELATE_SHAPE_UTIL_H
#define OPS_RELATE_SHAPE_UTIL_H

#include "types/op.h"

/* `nn.dense`: fmt …; the operator's name is put before. */
Diag *shape_error(const OpCall *call, DiagCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* fmt names the operator itself. */
Diag *shape_mistake(const OpCall *call, DiagCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The documented name of argument i: "data". Arguments of a flattened tuple are "data.0" …. */
const char *shape_arg_name(const OpCall *call, int arg);
const char *shape_text(int rank, const int64_t *shape); /* "(2, 3)", "()", "(2,)" */

bool shape_check_dtype(const OpCall *call, int arg, DTypeSet set); /* R0310 */
bool shape_check_same_dtype(const OpCall *call, int a, int b);     /* R0311 */
bool shape_check_rank(const OpCall *call, int arg, int rank);      /* R0313 */
bool shape_check_min_rank(const OpCall *call, int arg, int rank);  /* R0313 */
/* The sizes of two axes are equal: R0314. */
bool shape_check_dims(const OpCall *call, int a, int axis_a, int b, int axis_b);

/* NumPy broadcasting of argument i into out (which starts as a scalar, or an earlier result);
 * R0312 when they do not. */
bool shape_broadcast_into(const OpCall *call, int arg, OutSpec *out);

/* Negative axes count from the end. R0315 when out of range. */
bool shape_axis(const OpCall *call, const char *attr, int64_t axis, int rank, int *out);
/* The set of axes an attribute names, one bit each; None is all of them; `exclude` complements.
 * An axis given twice is R0315. */
bool shape_axes(const OpCall *call, const char *attr, bool exclude, int rank, uint32_t *out);
/* A list of sizes given as an attribute: R0316 when negative or unknown. */
bool shape_attr_dims(const OpCall *call, const char *attr, int *rank, int64_t *dims);

/* Fills an output; R0317 when it would be too large. */
bool shape_set(const OpCall *call, OutSpec *out, DType dtype, int rank, const int64_t *shape);
/* The dtype attribute, or `otherwise` where it is None. */
DType shape_attr_dtype(const OpCall *call, const char *attr, DType otherwise);

/* Row-major strides in elements. */
void shape_strides(int rank, const int64_t *shape, int64_t *strides);

#endif
