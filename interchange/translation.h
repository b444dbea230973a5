/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one translation: translate.c and node.c. */
#ifndef INTERCHANGE_TRANSLATION_H
#define INTERCHANGE_TRANSLATION_H

#include "interchange/translator.h"

/* `let name = text;` and the node it comes from. */
typedef struct Statement {
    const char *name, *text;
    const char *type; /* ": List[…]", or NULL */
    const OnnxNode *node;
} Statement;

/* One graph being translated, within the graph that has it. */
struct Scope {
    Translation *t;
    Scope *outer;
    Map values; /* Symbol of a name in the graph -> Val */
    VEC(Statement) statements;
    int64_t opset;
    int indent;
};

typedef struct Reason {
    const char *what, *nodes;
    size_t count;
} Reason;

struct Translation {
    const OnnxModel *model;
    const OnnxKnowns *known;
    Map used;    /* Symbol: names that the text has */
    Map members; /* OnnxTensor -> OnnxMember */
    Map inputs;  /* Symbol of an input whose value is known -> OnnxKnown */
    VEC(Reason) reasons;
    bool imports; /* functions of the module `onnx` are called */
    int depth;
};

/* A name that nothing else has, like `hint`. */
const char *translation_name(Translation *t, const char *hint);
void translation_refuse(Translation *t, const OnnxNode *node, const char *what);
const char *node_described(const OnnxNode *n); /* Conv "conv1" */
Val *graph_find(const Scope *s, const char *name);
void graph_bind(Scope *s, const char *name, Val *v);
/* A tensor of the model as a value: a literal, or a field of weights or constants. */
Val *translation_tensor(Translation *t, const OnnxTensor *tensor);
void scope_translate(Scope *s, OnnxNode *const *nodes, size_t n);
/* Its `let`s that `result` needs, each on a line of its own, then the result. */
void scope_print(const Scope *s, const char *result, Str *out);
const char *value_tuple_text(Val *const *v, size_t n);

#endif
