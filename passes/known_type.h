/* SPDX-License-Identifier: Apache-2.0 */
/* Types that follow from those of the parts. An inlined body keeps the types of its definition, whose sizes and dtypes
 * are often parameters; where it stands now they may be known:
 *
 *   def layer(w, x) { relu(x @@ w) }      inlined at  w: Tensor[(784, 128), float32], x: Tensor[(64, 784), float32]
 *                                         `x @@ w` is a Tensor[(64, 128), float32]
 *
 * A pass that walks bindings in order tells each of them, and asks. */
#ifndef PASSES_KNOWN_TYPE_H
#define PASSES_KNOWN_TYPE_H

#include "passes/pass.h"

typedef struct KnownTypes {
    PassCtx *ctx;
    Map values; /* Var -> what it is bound to */
    Map types;  /* Var -> its type, where that had to be worked out */
    uint32_t steps;
} KnownTypes;

/* The type of e if nothing of it is left open, else NULL. */
Type *known_type(KnownTypes *k, const Expr *e);

/* That of an operator's result, where the types of its arguments leave nothing of it open; else NULL. */
Type *known_type_of_operator(const Expr *call);

/* Notes what v is bound to: value, with the types of its operators as far as they are known now. v gets its type, too. */
Expr *known_types_bind(KnownTypes *k, Var *v, Expr *value);

/* Whether e is `ad.settle(ct)`, which gives its argument, a cotangent, as it is. */
bool is_settling(const Expr *e);

#endif
