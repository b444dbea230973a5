/* SPDX-License-Identifier: Apache-2.0 */
/* What fuse.c (groups) and fuse_let.c (bindings) share. */
#ifndef EVAL_FUSE_IMPL_H
#define EVAL_FUSE_IMPL_H

#include "eval/fuse.h"

enum {
    MAX_NODES = 64,  /* operators in a group */
    MAX_LEAVES = 20, /* a kernel has RECIPE_MAX_OPERANDS operands, results among them */
    MAX_ARGS = 4,
    GROUP_OPERANDS = MAX_LEAVES,
};

/* One operator: its arguments are earlier nodes (>= 0) or leaves (~number). */
typedef struct Node {
    Site site;
    Span span;
    int32_t args[MAX_ARGS];
} Node;

struct Group {
    uint32_t nleaves, nnodes, nresults;
    int32_t results[GROUP_RESULTS]; /* nodes */
    Node nodes[];                   /* in order of evaluation */
};

/* A group while its operators are found. */
typedef struct Collector {
    Resolver *r;
    ExprVec *leaves;
    Map numbers; /* Expr -> its number in Node.args, plus MAX_LEAVES + 1 */
    Map members; /* Var bound to a value of the group -> its node, plus 1 */
    VEC(Node) nodes;
    uint32_t entered; /* nodes so far, with those whose arguments are still being collected */
    uint32_t
        elsewhere; /* folds and moves around: what they read is not read at the place of the result */
    bool folds;    /* products, reductions and moves are taken in below the root */
    bool at_once; /* no operand is to be computed before the group */
    bool failed;
} Collector;

/* The node of e, or the leaf: its number in Node.args. */
int32_t fuse_collect(Collector *c, Expr *e, bool root);
/* The group of what was collected. results: nodes. */
Group *fuse_group_of(const Collector *c, const int32_t *results, uint32_t nresults);
/* An instruction that fails where the operator e does: Note [Parts between a value and its reader] in fuse_let.c. */
void resolve_check(Resolver *r, Expr *e);

/* ---- what is fused --------------------------------------------------------------------------- */

/* The type of an operand; passes find out more about variables (passes/known_type.h). */
static inline Type *type_of(const Expr *e) { return e->kind == EXPR_VAR ? e->var->type : e->type; }
bool is_float_tensor(Type *t);
bool is_operator(const Expr *e);
bool is_elementwise(const Expr *e);
/* What may be a binding of a row: Note [Groups of bindings] in fuse_let.c. */
bool is_member(const Expr *e);
bool is_product(const Expr *e);
/* A product, or an operator as softmax is: it reads what it reads more than once. */
bool reads_again(const Expr *e);
/* Whether e adds two cotangents by `ad.add`. */
bool is_sum_of_cotangents(const Expr *e);
/* An operator that puts the elements of a tensor elsewhere: what reads its result may read the tensor instead. */
bool is_move(const Expr *e);
/* `take`: what reads its result may read the tensor at the index. That tensor is written first, and so is the index. */
bool is_gather(const Expr *e);
/* `stack` or `concatenate` of a few tensors, which it may compute where they lie in the whole. */
bool is_laid_together(const Expr *e);
/* What an operator of a group reads: its arguments, or the parts of a tuple of them. */
typedef struct NodeOperands {
    Expr *const *at;
    uint32_t n;
} NodeOperands;
NodeOperands node_operands(const Expr *e);
/* Whether a reader takes an operand into its group, where that is one of a group's operators. */
bool takes_in(const Expr *reader, const Expr *operand);
/* What may be below the root of a group: element-wise operators, and folds whose epilogue they become. */
bool is_inner(const Expr *e);
/* The root of a group may also be a reduction to a scalar. */
bool is_root(const Expr *e);
/* Whether e may be evaluated before the operators around it: at most another of two mistakes is met first. */
bool may_evaluate_early(const Expr *e);
/* Whether evaluating e has no effect but its value, which is there at once. */
bool is_access(const Expr *e);

#endif
