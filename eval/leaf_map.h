/* SPDX-License-Identifier: Apache-2.0 */
/* Maps over data: each float tensor in a value, a leaf, is given to a function, and what comes back
 * stands in its place. The rest of the data is rebuilt around them, or kept. Long lists take no stack;
 * other data that is nested too deeply is a diagnostic. */
#ifndef EVAL_LEAF_MAP_H
#define EVAL_LEAF_MAP_H

#include "eval/builtin.h"

/* Maps the leaves of x, each with the leaf of y that stands in the same place. A leaf that fails
 * reports, and sets `failed`. */
typedef struct LeafMap {
    const BuiltinCall *call;
    uint64_t level;                                     /* of a derivative (eval/ad.c) */
    Value (*leaf)(struct LeafMap *m, Value x, Value y); /* y is () where it has no such part */
    void *ctx;                                          /* the leaf function's own */
    bool all_tensors; /* tensors of any dtype are leaves, and not floats only */
    bool keep_other;  /* what is no leaf stays; else it becomes (), as in D(T) */
    bool paired;      /* y was given, and must have the constructors of x */
    const char *role; /* what y is, for messages; NULL: "cotangent or tangent" */
    Tensor
        *filled; /* the last tensor of value_filled_like (eval/ad.h): others share its elements */
    bool failed;
} LeafMap;

/* False after a diagnostic. */
bool leaf_map_run(LeafMap *m, Value x, Value y, Value *out);
/* Gives the leaves to the function in the same order and makes nothing: what comes back is not looked at. */
bool leaf_map_visit(LeafMap *m, Value x, Value y);
/* Appends the leaves of x, in order, to out. all_tensors: as in LeafMap. False after a diagnostic. */
typedef VEC(Value) LeafVec;
bool leaf_map_list(const BuiltinCall *call, Value x, bool all_tensors, LeafVec *out);
/* Part i of a tuple or of data, () where there is none. */
Value leaf_map_item(Value v, uint32_t i);

#endif
