/* SPDX-License-Identifier: Apache-2.0 */
/* An operator is its `const Op *`: no enum, no switch. Entries stand in ops/, one each; everything
 * an operator needs elsewhere is read from its entry. Its derivative is Relay, in
 * prelude/derivatives.rly. */
#ifndef TYPES_OP_H
#define TYPES_OP_H

#include "parser/infix.h"
#include "tensor/tensor.h"
#include "types/solve/attrs.h"
#include "types/solve/solver.h"

typedef struct Op Op;
typedef struct Signature Signature; /* ops/relate/signature.h */
struct Plan;                        /* ops/recipe/plan.h */
struct Elementwise;                 /* ops/elementwise.h */

/* A call while running. The tensors of a tuple argument (concatenate) stand in `in` one by one, in
 * order; nin counts them all. */
typedef struct OpCall {
    const Op *op;
    const Attrs *attrs;
    uint32_t nin;
    Tensor *const *in;
    Diags *diags; /* where a run-time shape error goes */
    Span span;
    const volatile int
        *interrupt; /* long evaluations poll it and may end when it is set; or NULL */
    bool
        places; /* a message need not name the arguments' types: the caller shows them in the program */
} OpCall;

static inline bool op_interrupted(const OpCall *call) {
    return call->interrupt && *call->interrupt;
}
enum { OP_POLL = 1 << 16 }; /* how many elements are worked on between two polls */

enum { OP_MAX_OUTPUTS = 64 };

typedef struct OutSpec {
    DType dtype;
    int rank;
    int64_t shape[TENSOR_MAX_RANK];
} OutSpec;

/* What a shape function reads: the three modes of the thesis. */
typedef enum ShapeMode {
    SHAPE_OF_SHAPES, /* output shapes follow from input shapes (and attributes) */
    SHAPE_OF_DATA,   /* and from the values of some inputs: arange, index, argwhere */
    SHAPE_BOUND,     /* only an upper bound is known before it has run: unique */
} ShapeMode;
const char *shape_mode_words(ShapeMode mode); /* "the sizes of the arguments" */

/* How elements of the result follow from those of the arguments, as TVM sorts operators for fusion. */
typedef enum OpPattern {
    OP_ELEMWISE,  /* each from the one at its place */
    OP_BROADCAST, /* each from one of each argument, some used several times */
    OP_INJECTIVE, /* each is one of an argument, at another place */
    OP_REDUCE,    /* each from many */
    OP_ROWS,      /* each from all along some axes, which give a result for each of them */
    OP_PRODUCT,   /* each from sums of products: what is element-wise may be fused behind it */
    OP_TUPLE,     /* several results */
    OP_OPAQUE,    /* otherwise */
} OpPattern;

/* What an `operator` item declares. Inference makes its Op (relation, arguments, foreign); the evaluator
 * sets shape and eval and fills handle when the item runs. */
typedef struct Foreign {
    const char *library, *symbol;
    Type *type; /* closed: a function of scalars and tensors */
    Span span;
    void *handle; /* belongs to the evaluator */
} Foreign;

/* What an operator is on single elements, which then need no tensors. */
typedef enum OpScalar {
    OP_SCALAR_NONE,    /* it takes tensors */
    OP_SCALAR_FORMULA, /* its formula */
    OP_SCALAR_SELF,    /* its first argument */
    OP_SCALAR_ZERO,    /* 0 and 1 in the dtype of its argument */
    OP_SCALAR_ONE,
    OP_SCALAR_SELECT, /* its second argument where the first is true, else its third */
} OpScalar;

struct Op {
    const char *name; /* "nn.dense" */
    const char *args; /* "data, weight"; read by op_arg */
    int nargs;
    const AttrSpec *attrs; /* nattrs of them */
    int nattrs;
    /* What its string attributes may be: "mode: clip wrap; layout: *NCHW -". `*` before letters stands
     * for any order of them, `+` also with blocks (NCHW8c), `-` for the empty text. One that is not named is free text. */
    const char *choices;
    const RelDef *relation; /* of the argument types and, last, the result type */
    DTypeSet dtypes;        /* what the first argument may be, for documentation and tests */
    ShapeMode shape_mode;
    OpPattern pattern;
    OpScalar scalar;

    /* Checks the arguments while running and finds the shapes of the results. Fills out[]; returns how
     * many results there are, or -1 after a diagnostic (R03…) that names operator, argument and axis.
     * One result is a tensor, unless `tuple` says that it is a tuple of one. */
    int (*shape)(const OpCall *call, OutSpec *out);
    bool tuple;
    bool by_attr; /* an attribute says whether the result is a tensor or a tuple */
    /* `attr` being `value` asks for the first of the results that `all` gives: topk's "values" are the
     * first of "both". attr is NULL where there is no such value. */
    struct {
        const char *attr, *value, *all;
    } first_of;
    /* `shape` refuses some sizes of a call whose relation was done before they were known. */
    bool refuses_sizes;
    /* It joins, cuts or repeats: its result has the axes of an argument, and other sizes. */
    bool resizes;
    /* Its integers decide what it refuses: `check --residual` does not try it on sizes of its own. */
    bool untried;
    /* `lower` writes a result that is the first argument itself where that is given for it: it then changes
     * a part in place. */
    bool over_first;
    bool like_last; /* of its last argument only the shape matters, which is that of the result */
    DTypeSet needs_elements; /* a reduction of no elements of these dtypes has no value */
    /* Tells apart the operators that share functions: a constant of their file. */
    int variant;

    /* SHAPE_BOUND only: `shape` gives the sizes of what eval writes; `cut`, called after it, lowers
     * those in actual[] to the sizes of the results, which are the leading part of that. */
    void (*cut)(const OpCall *call, Tensor *const *out, OutSpec *actual);

    /* Puts the recipes (ops/recipe/recipe.h) of this call into the plan; out[] are allocated. NULL where
     * `eval` is there instead. */
    bool (*lower)(const OpCall *call, Tensor *const *out, struct Plan *plan);
    bool lower_reads; /* elements of the arguments, so a plan is that of one call */
    /* Says which index a kernel has found to be out of range: "row 0 names place 3 of 3". Or NULL. */
    const char *(*blame_index)(const OpCall *call);

    /* Computes the results in C where there are no recipes (sort, topk, random); reference_only says
     * why. Returns false after a diagnostic. */
    bool (*eval)(const OpCall *call, Tensor *const *out);
    const char *reference_only;

    /* The sizes of its tensors by name, for messages of those that clash: "(..., k), (units, k)".
     * Equal names are equal sizes; `...` any axes, `c/2` a half of c, `b~` b or 1, `<=n` at most n. write_sizes, where
     * they depend on attributes, or on the ranks of the nin tensors (-1: not known). NULL: none. */
    const char *sizes;
    void (*write_sizes)(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks);

    const Signature *signature; /* what its relation and its shape function follow from, or NULL */
    const struct Elementwise *elementwise; /* the formula; NULL when it is not element-wise */

    const char *doc;            /* two lines: meaning, shapes */
    const char *example;        /* "nn.relu([-1.0, 2.0])" */
    const char *example_result; /* "[0.0, 2.0] : Tensor[(2,), float32]" */
    const char *see_also;

    /* A foreign operator (LANGUAGE §2): made at run time by an `operator` item. */
    struct Foreign *foreign;
    const struct OpRows *rows; /* it is another operator at all rows at once: ops/rows.h */
};

/* Whether its plans follow from the sizes and the layout of its arguments. */
static inline bool op_has_kept_plans(const Op *op) {
    return op->lower && !op->lower_reads && !op->cut && op->shape_mode == SHAPE_OF_SHAPES;
}

/* What a sign calls, as parser/infix.def says: op_add of BINOP_ADD. NULL: a form of the language. */
extern const Op *const infix_ops[BINOP_COUNT];
#define OP(symbol) extern const Op op_##symbol;
#define FORM
#define INFIX(name, token, sign, level, side, op, tvm) op
#include "parser/infix.def"
#undef OP
#undef FORM
#undef INFIX
/* The sign that calls an operator; BINOP_COUNT when none does. */
BinOp op_find_infix(const Op *op);
/* What other forms of the language call: `-x`, `!x`, `sq x`, `(T) x`, `[a, b]`, `x[i]`, sizes that are
 * computed while running, literals that take the dtype of another value, derivatives. The reshapes have their -1 settled
 * by the types; types/infer/accept.c takes calls as TVM has them. */
extern const Op op_any, op_broadcast_to, op_broadcast_to_like, op_cast, op_cast_like,
    op_checked_add, op_collapse_sum_like, op_collapse_sum_to, op_contrib_reverse_reshape,
    op_checked_multiply, op_expand_like, op_checked_subtract, op_strong_divide, op_strong_multiply,
    op_floor_divide, op_index, op_index_set, op_logical_not, op_maximum, op_minimum, op_negative,
    op_nn_matmul, op_ones_like, op_reshape, op_stack, op_sum, op_transpose, op_where, op_zeros_like;

const Op *op_find(const Symbol *name); /* of the table in ops/; NULL when there is none */
/* Why TVM's operator of this name is none here, and what there is instead; false where it is no such operator. */
bool op_find_absent(const char *name, const char **why, const char **instead);
/* Whether it is one of those, and a statement of a block here. */
bool op_is_form(const char *name);
size_t op_count(void);
const Op *op_at(size_t i);            /* sorted by name */
const char *op_subject(const Op *op); /* as programs have it: "nn.dense", "+" */
/* A fact that lays out what op.sizes says of the arguments and what they are, where they do not fit.
 * The sizes that clash go into *clash, else NULL does. (types/solve/rel_layout.c) */
void op_add_sizes(Diag *d, const Op *op, const Attrs *attrs, uint32_t nargs, Type *const *args,
                  SizeClash *clash);
/* Whether a diagnostic of this code is about sizes that do not fit. */
static inline bool diag_is_of_sizes(DiagCode code) {
    return code == DIAG_R0303 || code == DIAG_R0312 || code == DIAG_R0313 || code == DIAG_R0314;
}
int op_attr_index(const Op *op, const char *name); /* -1 when there is none */

/* Argument i as `args` declares it: "data", a tuple "(data)", or "step=1", which is the number n where
 * a call leaves it out. */
typedef struct OpArg {
    const char *name;
    bool tuple, optional;
    int64_t n;
} OpArg;
OpArg op_arg(const Op *op, int i); /* its name is NULL where `args` has no such argument */

#endif
