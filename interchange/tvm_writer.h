/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the writer of TVM's graphs: nodes (tvm_write_attrs.c), types (tvm_write_types.c), expressions (tvm_write.c),
 * and what they have as others (tvm_lower.c).
 * A node is written after those that it names, so that its number is known; node 0 is null. */
#ifndef INTERCHANGE_TVM_WRITER_H
#define INTERCHANGE_TVM_WRITER_H

#include "interchange/tvm_write.h"
#include "types/op.h"

typedef struct Writer {
    Str nodes, arrays;
    size_t nnodes, narrays;
    Map shared;  /* Symbol of a node's text -> its number + 1: what is the same is one node */
    Map vars;    /* Var -> number */
    Map globals; /* Global -> number of its GlobalVar, or of its value */
    Map types;   /* TypeDecl or Ctor or type parameter -> number */
    Map names;   /* Symbol taken by a global or a data type */
    VEC(Global *) functions; /* to be written; those that it needs come behind it */
    VEC(size_t) headers;     /* GlobalTypeVar, TypeData, in turns */
    Map ops;                 /* Op -> what TVM has of it; filled when it is first asked for */
    Map said;
    ExportFind find;
    void *ctx;
    Diags *diags;
    size_t refused;
} Writer;

/* Says once what has no counterpart. Always 0. */
size_t tvm_refuse(Writer *w, Span span, const char *what);

/* ---- tvm_write_attrs.c ----------------------------------------------------------------------- */

/* A node with the attributes that follow, names and values in turns, until NULL. */
size_t tvm_node(Writer *w, const char *kind, ...);
size_t tvm_shared_node(Writer *w, const char *kind, ...); /* the same text is the same node */
size_t tvm_expr(Writer *w, const char *kind, ...);        /* with what all expressions have */
size_t tvm_write_text(Writer *w, const char *text);
size_t tvm_write_int(Writer *w, int64_t i);
size_t tvm_write_list(Writer *w, const size_t *items, size_t n);
/* keys NULL: the items are keys and values in turns; else n values. */
size_t tvm_write_map(Writer *w, const char *const *keys, const size_t *items, size_t n);
size_t tvm_write_op(Writer *w, const Op *op, Span span);
size_t tvm_write_dyn(Writer *w, const Op *op, Span span); /* dyn.OP */
size_t tvm_write_attrs(Writer *w, const Expr *call, const size_t *args);
const char *tvm_number(size_t node); /* as attributes have it */

/* ---- tvm_lower.c ----------------------------------------------------------------------------- */

/* Each gives calls that can be written, or NULL: there are none. Of x[…], by the letters of core.h; of the size of an axis; of
 * `{ r with … }`; of a call whose attributes have sizes that are computed, in the order of arguments that `form` has. */
Expr *tvm_lower_index(Expr *x, const char *spec, Expr *const *args, uint32_t nargs, Span span);
Expr *tvm_lower_size(const Expr *e);
Expr *tvm_lower_update(const Expr *e);
Expr *tvm_lower_sizes(const Expr *call, const char *form);

/* ---- tvm_write_types.c ----------------------------------------------------------------------- */

/* 0 where the graph leaves the type open. */
size_t tvm_write_type(Writer *w, Type *type);
size_t tvm_write_ctor(Writer *w, const Ctor *ctor, Span span);
const char *tvm_unique_name(Writer *w, const char *name);

#endif
