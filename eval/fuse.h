/* SPDX-License-Identifier: Apache-2.0 */
/* Fused operators: a tree of element-wise operators on float tensors, with products and reductions below them and
 * perhaps a reduction on top, runs as one call whose steps are merged (ops/recipe/fuse.h), so that no
 * intermediate tensor is written. The values are those of the single operators, to the bit.
 *
 *     let t = a * b; let u = t + c; sum(tanh(u) * a)       one kernel that reads a, b, c
 *     nn.relu(x @@ w + b)                                  one kernel: a product with an epilogue
 *
 * Taken together is what types say to be float tensors with axes: scalars are faster one by one,
 * and integers may divide by zero, which is reported at its own operator. A `let` is taken in where
 * its name is used once, in the operators of a later binding or of the value, past bindings that cannot fail. */
#ifndef EVAL_FUSE_H
#define EVAL_FUSE_H

#include "eval/resolve.h"

typedef VEC(Expr *) ExprVec;

typedef struct Group Group;

/* The group of the operator call e, and the expressions it takes, in order of evaluation. NULL when
 * there is nothing to fuse. */
Group *fuse_group(Resolver *r, Expr *e, ExprVec *leaves);

/* Whether the `let` is taken into the operators of what follows: it needs no code of its own. */
bool fuse_let(Resolver *r, Expr *let);
/* The value of a name that was taken in; NULL for other names. */
Expr *fuse_value_of(const Resolver *r, const Var *v);

/* dying: the arguments that it may take over, a bit each (eval/own.h). */
bool fuse_apply(Interp *in, const Group *g, const Value *args, uint64_t dying, Value *out);

#endif
