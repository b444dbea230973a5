/* SPDX-License-Identifier: Apache-2.0 */
/* Running a call of an operator by its entry. types/op.h has the table of entries. */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "ops/recipe/plan.h"

/* Checks, allocates and runs one operator call by its entry: shape, lower or eval, run. Fills
 * out[] (at most OP_MAX_OUTPUTS) and returns their number; OP_FAILED after a diagnostic;
 * OP_INTERRUPTED, with none, when a kernel saw the interrupt flag. runner NULL: the reference. */
enum { OP_FAILED = -1, OP_INTERRUPTED = -2 };
int op_run(const OpCall *call, Tensor **out, StepRunner runner, void *ctx);
/* As op_run; *interrupt is what kernels poll (NULL: never). */
int op_run_interruptible(const OpCall *call, Tensor **out, StepRunner runner, void *ctx,
                         const volatile int *interrupt);
/* Reports a status other than DONE and INTERRUPTED at the call: R0601 division by zero, R0602
 * index out of range, R0603 negative shift or exponent. */
void op_report_status(const OpCall *call, int32_t status);

/* Only derivatives are made of it: no program needs to call it. */
bool op_is_internal(const Op *op);

#endif
