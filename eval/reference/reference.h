/* SPDX-License-Identifier: Apache-2.0 */
/* The reference evaluator: the meaning of the typed core, written as plainly as it can be, and the
 * oracle that every faster engine is tested against, bit for bit (`--engine=reference`).
 *
 * A walk over the expression: an environment is a list of variables, each form of the core has its
 * case, an operator runs its reference recipe, and nothing is optimised, planned or kept. Derivatives
 * are those of thesis figure 4.1, taken while running: a float tensor that is active is paired with a
 * reference that accumulates its cotangent, each operator adds a step to a tape, and the tape runs
 * backwards (derivative.c). It shares values, their printing, messages, builtins and recipes with
 * the machine, and neither its code nor the passes. */
#ifndef EVAL_REFERENCE_REFERENCE_H
#define EVAL_REFERENCE_REFERENCE_H

#include "eval/interp.h"

typedef struct Reference Reference;

Reference *reference_new(Interp *in);

/* The value of a closed expression, as interp_eval gives it. */
EvalStatus reference_eval(Reference *r, Expr *e, Value *out);
/* Calls a function value that this evaluator made. */
EvalStatus reference_call(Reference *r, Value fn, const Value *args, uint32_t n, Value *out);
/* The value of a function literal without free variables: what a `def` is bound to. */
Value reference_function(Reference *r, Expr *fn);

/* While it runs: the place of what is being evaluated, for messages. */
Span reference_span(const Reference *r);

#endif
