/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a JSON graph, as tvm.c and tvm_attrs.c read them. Every reference is checked where it is followed;
 * the first thing that is damaged counts, and what has no counterpart is gathered. */
#ifndef INTERCHANGE_TVM_GRAPH_H
#define INTERCHANGE_TVM_GRAPH_H

#include <jansson.h>

#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "parser/ast.h"
#include "types/op.h"

typedef struct TvmGraph {
    const char *path;
    json_t *root, *nodes, *arrays;
    const char *damage; /* the first, or NULL */
    VEC(const char *) missing;
    size_t work; /* what is shared in the graph is written out several times in types: bounded */
    int depth;
} TvmGraph;

enum { TVM_NOWHERE = 0, TVM_MAX_WORK = 1 << 22, TVM_MAX_DEPTH = 2000 };

/* Always false. The first message counts. */
bool tvm_damaged(TvmGraph *g, size_t node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void tvm_missing(TvmGraph *g, const char *what);
/* Counts a step of a recursion: false where it is too deep or too long. */
bool tvm_enter(TvmGraph *g, size_t node);
void tvm_leave(TvmGraph *g);

const char *tvm_kind(TvmGraph *g, size_t node); /* its type_key as v0.18 has it; "" of null */
bool tvm_is(TvmGraph *g, size_t node, const char *kind);
const char *tvm_text(TvmGraph *g, size_t node, const char *key); /* an attribute, or NULL */
/* The node that an attribute names; 0: null, or not there. */
size_t tvm_ref(TvmGraph *g, size_t node, const char *key);
size_t tvm_list_len(TvmGraph *g, size_t list);
size_t tvm_list_at(TvmGraph *g, size_t list, size_t i); /* 0 after a complaint */
/* A string that is an attribute itself, as of v0.6, or a node of its own. Never NULL. */
const char *tvm_string(TvmGraph *g, size_t node, const char *key);
const char *tvm_repr(TvmGraph *g, size_t node); /* of a string or an operator, or NULL */

/* The attributes of a call as `key=value, …`. */
void tvm_add_attrs(TvmGraph *g, const Op *op, size_t attrs, Str *out);
/* Whether TVM holds an attribute that is a number as an object, so that its text names a node. */
bool tvm_is_held_as_object(const Op *op, const char *name);
/* A value in a graph: an integer, a list of them, `None`; NULL: it has no counterpart. */
const char *tvm_value(TvmGraph *g, size_t node);

#endif
