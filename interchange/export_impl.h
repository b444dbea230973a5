/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the export to ONNX: what the function's expressions are as it is followed (onnx_export.c), how nodes
 * are written (export_graph.c), and what operators become (export_ops.c). Nothing outside of these files includes it.
 *
 * What can be computed before the model runs is: an operator on constants gives a constant, an `if` on one takes its
 * branch, so a loop of a known length is written out. A constant becomes an initializer when a node first reads it. */
#ifndef INTERCHANGE_EXPORT_IMPL_H
#define INTERCHANGE_EXPORT_IMPL_H

#include "interchange/onnx.h"
#include "interchange/onnx_export.h"
#include "types/op.h"

typedef enum TracedKind {
    TRACED_BAD, /* already reported */
    TRACED_TENSOR,
    TRACED_TUPLE,
    TRACED_DATA,
    TRACED_FN,
    TRACED_ROWS /* the list of a tensor's rows, whose number is not known */
} TracedKind;
typedef struct Traced {
    TracedKind kind;
    const char *name; /* TENSOR: in the graph; NULL while a constant is read by no node */
    Tensor *constant; /* TENSOR: its value where that is known, else NULL */
    const char *path; /* of a constant that the program names: "net.weight"; else NULL */
    DType dtype;
    int rank;
    const int64_t
        *shape;       /* TENSOR: where all its sizes are known before the model runs, else NULL */
    const Ctor *ctor; /* DATA */
    struct Traced **parts; /* TUPLE, DATA */
    uint32_t nparts;
    struct Traced *rows; /* ROWS */
    Expr *fn;            /* FN, and the variables around it */
    const struct Scope *scope;
} Traced;

typedef struct Export {
    Str *nodes; /* of the graph or the branch that is being written */
    Str initializers;
    uint32_t nsteps, nnames;
    bool stopped;   /* a limit was passed and reported: nothing more is followed */
    uint32_t calls; /* within each other */
    Span site;      /* of the innermost of them that is not written in the prelude or the library */
    Traced bad;
    Map globals;  /* Global -> Traced */
    Map scalars;  /* Symbol of a dtype and a value -> Traced */
    Map reported; /* Symbol of a place and reason */
    Map names;    /* Symbol of a name of the graph */
    Map prepared; /* EXPR_FN -> the same without derivatives */
    const ExportAsk *ask;
    Diags *diags;
} Export;

/* Says once what cannot be exported at a place, however often it is reached; in the prelude or the library, at
 * the call that led there. Gives `bad`. */
Traced *export_refuse(Export *ex, Span span, const char *why);

typedef VEC(Traced *) TracedVec;
/* The tensors of a value, in order. False where there is something else. */
bool export_leaves(const Traced *t, TracedVec *out);
/* A value of the same form whose tensors are those of `leaves`, in order. */
Traced *export_with_leaves(const Traced *t, Traced *const *leaves, size_t *next);
/* Whether two values differ in their tensors only, and these in their sizes only. */
bool export_same_form(const Traced *a, const Traced *b);
/* A call of a function that was traced. */
Traced *export_apply(Export *ex, Span span, Traced *fn, Traced **args, uint32_t n);

/* ---- export_loop.c --------------------------------------------------------------------------- */

/* A call of the prelude that becomes a node Loop, or makes the rows that one goes over; NULL: it is followed as any call. */
Traced *export_loop(Export *ex, const Global *g, Span span, Traced **args, uint32_t n);

/* ---- export_graph.c -------------------------------------------------------------------------- */

/* A name like `hint` that nothing else has; NULL: `v` and a number. */
const char *export_name(Export *ex, const char *hint);
Traced *traced_named(const char *name, DType dtype, int rank);
Traced *traced_constant(Tensor *t);
Traced *traced_scalar(Export *ex, DType dtype, double value);
Traced *traced_int(Export *ex, DType dtype, int64_t value);
Traced *traced_ints(const int64_t *ints, uint32_t n); /* a vector of int64, as ONNX takes sizes */
Traced *traced_tuple(Traced **parts, uint32_t n);
/* The name by which nodes read it: a constant becomes an initializer. */
const char *traced_read(Export *ex, Traced *t);

void onnx_add_message(Str *out, uint32_t number, const Str *message);
void onnx_add_int(Str *attrs, const char *name, int64_t value);
void onnx_add_float(Str *attrs, const char *name, double value);
void onnx_add_text(Str *attrs, const char *name, const char *text);
void onnx_add_ints(Str *attrs, const char *name, const int64_t *values, uint32_t n);
void onnx_add_graph(Str *attrs, const char *name, const Str *graph);
/* A node with one output. An input NULL is left out. attrs: its attributes as written so far, or NULL. */
Traced *export_node(Export *ex, const char *op, Traced *const *in, uint32_t n, const Str *attrs,
                    DType dtype, int rank);
/* A node with several outputs of these names. */
void export_node_outputs(Export *ex, const char *op, Traced *const *in, uint32_t n,
                         const Str *attrs, const char *const *outputs, uint32_t noutputs);
/* A ValueInfoProto: sizes that are no numbers are named as the type prints them. False where rank or dtype is open. */
bool export_port(Str *graph, uint32_t number, const char *name, Type *type, DType *dtype,
                 int *rank);
/* The same of any sizes. */
void export_open_port(Str *graph, uint32_t number, const char *name, DType dtype, int rank);

/* ---- export_ops.c ---------------------------------------------------------------------------- */

/* A call whose attributes are all numbers, where those that are sizes are known. */
typedef struct ExportCall {
    const Op *op;
    const Attrs *attrs;
    Span span;
    Traced **args;
    uint32_t nargs;
    Traced **sizes; /* those of the attributes that are not known, in order: integers */
    uint32_t nsizes;
} ExportCall;
Traced *export_operator(Export *ex, ExportCall call);
/* An operator with its default attributes. */
Traced *export_default(Export *ex, const Op *op, Span span, Traced **args, uint32_t nargs);
/* x[…], by the letters of core.h. */
Traced *export_index(Export *ex, Span span, const char *spec, Traced *x, Traced **args,
                     uint32_t nargs);
Traced *export_cast(Export *ex, Traced *x, DType dtype);
/* The size of an axis, a scalar of dtype. */
Traced *export_size(Export *ex, Traced *x, int axis, DType dtype);

/* x with update added to the part that x[…] is. */
Traced *export_index_add(Export *ex, Span span, const char *spec, Traced *x, Traced *update,
                         Traced **args, uint32_t nargs);

/* ---- export_ad.c ----------------------------------------------------------------------------- */

/* A call of what only code of derivatives calls (types/core/ad.def). A text among its arguments is `bad`. */
Traced *export_ad(Export *ex, const Expr *e, Traced **args);
/* A call of one of `tree`: the float tensors of data as a list, and back. */
Traced *export_tree(Export *ex, const Expr *e, const char *name, Traced **args);
/* The zero of a closed type. */
Traced *export_zero(Export *ex, Span span, Type *type);

#endif
