/* SPDX-License-Identifier: Apache-2.0 */
/* What the translators of ONNX's operators (ops_….c) share. A translator is a function of a node: it asks for
 * operands and attributes, and emits `let`s that bind the node's outputs. What it cannot do it refuses with the
 * reason; the translation goes on, so that all reasons are listed at once. An attribute that no translator
 * asked for is refused too.
 *
 * Beside its text the translation knows of each value what ONNX's operators depend on: dtype, rank, sizes as far
 * as they are known, and of small integers what they are (Num), so that a reshape to
 * `Concat(Gather(Shape(x), 0), -1)` becomes `reshape(x, newshape=[batch, -1])`. */
#ifndef INTERCHANGE_TRANSLATOR_H
#define INTERCHANGE_TRANSLATOR_H

#include "base/map.h"
#include "interchange/translate.h"

/* An integer: its number, or an expression of Relay, or (text NULL) nothing is known. */
typedef struct Num {
    bool known;
    int64_t n;
    const char *text;
    bool is_size; /* an expression that is not negative */
} Num;
typedef VEC(Num) Nums;

typedef enum OnnxKind { KIND_OF_TENSOR, KIND_OF_SEQUENCE, KIND_OF_OPTIONAL } OnnxKind;

typedef struct Val {
    OnnxKind kind;
    bool bad; /* its node was refused: so is what uses it, silently */
    const char *text;
    bool has_dtype;
    DType dtype;
    int rank;      /* -1: not known */
    Num *dims;     /* rank of them */
    bool has_nums; /* of a few integers or bools (0 and 1), row by row: what they are */
    Nums nums;
    const OnnxTensor *constant; /* elements that are known, or NULL */
    struct Val *of;             /* of a sequence or optional: what is in it; NULL: not known */
} Val;

typedef struct Translation Translation;
typedef struct Scope Scope;

/* A node being translated. */
typedef struct Node {
    Scope *scope;
    const OnnxNode *node;
    const struct OnnxOp *op;
    bool failed;
} Node;

typedef struct OnnxOp {
    const char *name;
    int since; /* the first opset this translator understands */
    void (*translate)(Node *n);
    const char *form; /* of those that share a translator: what differs */
    const char *note; /* what of the operator is left out; NULL: nothing */
} OnnxOp;
extern const OnnxOp onnx_ops[]; /* sorted by name; ends with a NULL name */
const OnnxOp *onnx_op_find(const char *name);

int64_t node_opset(const Node *n);
/* Says that the node cannot be translated, and why; the first reason counts. Always false. */
bool node_refuse(Node *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- operands -------------------------------------------------------------------------------- */
uint32_t node_inputs(const Node *n); /* up to the last one given */
uint32_t node_outputs(const Node *n);
bool node_has(const Node *n, uint32_t i);   /* input i is given */
bool node_wants(const Node *n, uint32_t i); /* output i has a name */
Val *node_in(Node *n, uint32_t i);          /* never NULL: of one that is missing a refusal */
const char *node_text(Node *n, uint32_t i); /* how input i is written */
DType node_dtype(Node *n, uint32_t i);      /* of input i, which must be known */
int node_rank(Node *n, uint32_t i);         /* of input i, which must be known; 0 after a refusal */
/* The integers of input i, which must all be constants. what: in the message. */
bool node_ints(Node *n, uint32_t i, const char *what, OnnxInts *out);
/* The integers of input i as sizes: numbers or expressions. */
bool node_nums(Node *n, uint32_t i, const char *what, Nums *out);
bool node_floats(Node *n, uint32_t i, const char *what, double **out, size_t *len);
int64_t node_axis(Node *n, int64_t axis,
                  int rank); /* counted from 0; refused outside of the rank */

/* ---- attributes ------------------------------------------------------------------------------ */
OnnxAttr *node_attr(Node *n, const char *name); /* NULL: not given */
int64_t attr_int(Node *n, const char *name, int64_t otherwise);
double attr_float(Node *n, const char *name, double otherwise);
const char *attr_text(Node *n, const char *name, const char *otherwise);
bool attr_ints(Node *n, const char *name, OnnxInts *out); /* false: not given */
void attr_ignore(Node *n, const char *name);              /* it does not change values */

/* ---- results --------------------------------------------------------------------------------- */
Num num_int(int64_t n);
/* The sum and the product where they are numbers, else unknown: sizes in models may be anything. */
Num num_plus(int64_t a, int64_t b);
Num num_times(int64_t a, int64_t b);
Num num_text(const char *text);
Num num_size(const char *text); /* of an expression that is not negative */
Num num_unknown(void);
bool num_is(Num a, Num b);                         /* false where that is not known */
const char *num_print(Num n);                      /* NULL: not known */
const char *nums_print(const Num *nums, size_t n); /* "[2, n, 4]"; NULL where one is not known */
/* ---- integers that are known (nums.c) -------------------------------------------------------- */
enum { MOST_NUMS = 64 };
/* Whether the integers are known, as many as its sizes say. */
bool val_has_nums(const Val *v);
/* Each gives `out` its integers where those of `in` and the sizes of `out` are known. Of a tensor with the same elements in
 * the same order, and of one whose element at (i, j, …) is that at offset + i * strides[0] + j * strides[1] + …. */
void nums_take_all(Val *out, const Val *in);
void nums_take_strided(Val *out, const Val *in, int64_t offset, const int64_t *strides);
void nums_strides(const Val *v,
                  int64_t *strides); /* of its own elements; 0 where they are not known */
void nums_concatenate(Val *out, Val *const *in, uint32_t n, int64_t axis);
/* What the element-wise operator of the node makes of its operands, which broadcast. */
void nums_fold(const Node *n, Val *out, Val *const *in, uint32_t nin);
void nums_cast(Val *out, const Val *in);

const char *ints_print(const int64_t *v, size_t n);
/* Size `axis` of a value as an expression: a number, a name, or `shape_of(x)[axis]`. */
Num val_dim(const Val *v, int axis);
Val *val_tensor(const char *text, DType dtype, int rank,
                const Num *dims);              /* dims NULL: not known */
Val *val_like(const Val *v, const char *text); /* dtype and shape of v */

/* `let`s a name that begins as hint says, and gives it. */
const char *node_let(Node *n, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Binds output i: `let`s it the text that `v` has. */
void node_bind(Node *n, uint32_t i, Val *v);
/* Output i is that value, without a `let`. */
void node_alias(Node *n, uint32_t i, Val *v);
/* Output 0 with the dtype and shape of input 0. */
void node_bind_like(Node *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A tensor of an attribute as a value, and as output 0. */
Val *node_tensor(Node *n, const OnnxTensor *t);
void node_constant(Node *n, const OnnxTensor *t);
/* A function of the module `onnx` is used: it is imported. */
void node_import(Node *n);
const char *float_text(double v, DType d); /* as a literal; weak where d is float32 */
const char *int_text(int64_t v, DType d);

/* ---- graphs in attributes -------------------------------------------------------------------- */
/* Translates a graph to a block, `let …; let …; (a, b)`; its inputs are bound to args. The values of its outputs go to `out`. NULL
 * after a refusal. */
typedef VEC(Val *) Vals;
const char *node_graph(Node *n, OnnxGraph *g, Val *const *args, size_t nargs, Vals *out);
const char *node_name(Node *n, const char *hint); /* a fresh name */

/* Shapes of results. */
Val *val_broadcast(const char *text, DType dtype, Val *const *v, size_t n);

#endif
