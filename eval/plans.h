/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that are kept. What a call of an operator, or of a group of them, plans depends on the operator, its
 * attributes and the dtypes, shapes and strides of its arguments, and on nothing else; so the plan is
 * made once (ops/recipe/template.h) and found again by exactly these.
 *
 * Note [Bounded plans]. There is one table an evaluator, of SETS sets of WAYS plans, in which a new plan takes the
 * place of the one in its set that was used the longest time ago. So a program that meets ever new
 * sizes keeps no more than that, a loop over forty lengths keeps forty, and equal calls at different
 * places share one. A plan holds no elements, and keeps alive no code: those of code that is gone are dropped. */
#ifndef EVAL_PLANS_H
#define EVAL_PLANS_H

#include "eval/machine.h"

/* A call: what is planned, by identity, but for the integers that belong to it. */
typedef struct PlanCall {
    const void *what, *more;
    const Value *sizes;
    uint32_t nsizes;
    bool tuple; /* one result is a tuple of it */
    uint64_t
        dying; /* the arguments that it may take over (eval/own.h); the same plan serves without */
    uint64_t alone; /* those known to be no other argument, too */
    Value *rest;    /* where results go besides the first; NULL: several are a tuple */
} PlanCall;

/* How many tensors the arguments of an operator are: a tuple gives its items. */
uint32_t count_operands(const Value *args, uint32_t n);

/* While a plan runs: the tensor that is its input of that number; NULL for a scalar, and for what is no input. */
const Tensor *plans_input(const Interp *in, uint32_t slot);

/* Plans a call on blank inputs. It reports nothing: NULL where something is wrong with them. */
typedef Template *(*PlanMake)(void *ctx, Tensor *const *in, uint32_t n);

/* Runs the plan of a call, which is made where there is none yet. Gives a kernel status. PLAN_NONE:
 * `make` gave NULL. */
enum { PLAN_NONE = -1 };
int32_t plans_run(Interp *in, const PlanCall *call, const Value *args, uint32_t nargs,
                  PlanMake make, void *ctx, Value *out);

#endif
