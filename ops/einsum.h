/* SPDX-License-Identifier: Apache-2.0 */
/* Products summed by names, for einsum and its derivatives. */
#ifndef OPS_EINSUM_H
#define OPS_EINSUM_H

#include "ops/relate/structured.h"

enum { EINSUM_MAX_INPUTS = 16, EINSUM_LABELS = 52 + TENSOR_MAX_RANK };

/* An equation read for tensors of some ranks. Labels 0..51 are letters, 52 + i the i-th axis of the
 * ellipsis counted from the right. The last term is the result. */
typedef struct Einsum {
    const OpCall *call;
    int ninputs;
    int naxes[EINSUM_MAX_INPUTS + 1];
    int labels[EINSUM_MAX_INPUTS + 1][TENSOR_MAX_RANK];
    int64_t sizes[EINSUM_LABELS]; /* -1 where the label does not occur */
} Einsum;

/* Reads the call's equation for n of its tensors from `first` on; false after a report. */
bool einsum_read(const OpCall *call, uint32_t first, uint32_t n, Einsum *e);
/* The shape of the result; its rank. */
int einsum_result(const Einsum *e, int64_t *dims);

/* A sum under way: target[its letters] += product of factors, over all places of all letters. `term` is the number of
 * the target's term, terms[i] of factor i. Floats are added as matmul adds them; halves are rounded once. */
typedef struct EinsumSum {
    const Einsum *e;
    Plan *plan;
    Tensor *target, *sums; /* in the dtype that is summed in */
    int term, n;           /* of what was added */
    bool failed;
} EinsumSum;
void einsum_begin(EinsumSum *s, const Einsum *e, Plan *plan, Tensor *target, int term);
void einsum_add(EinsumSum *s, int n, Tensor *const *factors, const int *terms);
bool einsum_end(EinsumSum *s); /* false after a report */

/* The relation of what has einsum's result: the first argument is the tuple of tensors. */
RelStatus relate_einsum(Solver *s, Relation *r);
extern const AttrSpec einsum_attrs[1];

#endif
