/* SPDX-License-Identifier: Apache-2.0 */
/* What normalisations share: (data, vectors along `axis`…), each vector with one element for each place of the
 * axis. */
#ifndef OPS_NORM_H
#define OPS_NORM_H

#include "ops/relate/structured.h"

/* The result has data's type, and data tells the vectors' sizes. */
RelStatus norm_relate(Solver *s, Relation *r);
bool norm_check_vectors(const OpCall *call, int axis);
void norm_write_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks);
/* A vector as an operand of a step, along `axis` of its domain. */
int norm_vector_in(StepBuilder *s, const Tensor *v, int axis);

#endif
