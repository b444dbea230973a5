/* SPDX-License-Identifier: Apache-2.0 */
/* Fused operators: a tree of element-wise operators on float tensors, with products, reductions and the like below them and
 * perhaps a reduction on top, runs as one call whose steps are merged (ops/recipe/fuse.h), so that no
 * intermediate tensor is written. The values are those of the single operators, to the bit.
 *
 *     let t = a * b; let u = t + c; sum(tanh(u) * a)       one kernel that reads a, b, c
 *     nn.relu(x @@ w + b)                                  one kernel: a product with an epilogue
 *
 * Taken together is what types say to be float tensors with axes: scalars are faster one by one,
 * and integers may divide by zero, which is reported at its own operator. A `let` is taken in where its name is used in
 * the operators of one later binding or of the value alone, past bindings that cannot fail. */
#ifndef EVAL_FUSE_H
#define EVAL_FUSE_H

#include "eval/resolve.h"

typedef VEC(Expr *) ExprVec;

typedef struct Group Group;

/* Emits one instruction for several operators, if they make a group. */
bool resolve_fused(Resolver *r, Expr *e, int32_t dst);
/* Emits one instruction for the sum of a cotangent and a product, which may wait (eval/waiting.h). */
bool resolve_added_product(Resolver *r, Expr *e, int32_t dst);
/* Emits a group for the bindings from e on; gives what follows them. NULL: there is none. */
Expr *resolve_row(Resolver *r, Expr *e);

/* The group of the operator call e, and the expressions it takes, in order of evaluation. NULL when
 * there is nothing to fuse. */
Group *fuse_group(Resolver *r, Expr *e, ExprVec *leaves);

/* Whether the `let` is taken into the operators of what follows: it needs no code of its own. */
bool fuse_let(Resolver *r, Expr *let, bool in_row);
/* The value of a name that was taken in; NULL for other names. */
Expr *fuse_value_of(const Resolver *r, const Var *v);

/* A group of bindings that follow each other: Note [Groups of bindings] in fuse_let.c. */
enum { GROUP_RESULTS = 16 };
typedef struct FusedRow {
    ExprVec leaves;               /* what it takes */
    ExprVec accesses;             /* bindings that stand between, to be resolved before */
    Expr *results[GROUP_RESULTS]; /* the bindings of its results */
    uint32_t nresults;
    Expr *next; /* what follows */
} FusedRow;

/* Where a group was emitted. */
typedef struct GroupSite {
    const Expr *at; /* the first `let`, or the operator call */
    const Group *group;
    FusedRow row; /* of a call its leaves alone */
    size_t instr;
} GroupSite;

/* The group that begins with a `let`; NULL where there is none. */
Group *fuse_row(Resolver *r, Expr *let, FusedRow *out);

/* Its plan on tensors without elements, one a leaf. NULL: a size does not fit. */
struct Template *group_template(const Group *g, Tensor *const *in);

/* Runs the group of the site. More results than one are left in Interp.more. dying: the arguments that it may take over, a
 * bit each (eval/own.h). */
bool fuse_apply(Interp *in, const Site *site, const Value *args, uint64_t dying, Value *out);

#endif
