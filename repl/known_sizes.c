/* SPDX-License-Identifier: Apache-2.0 */
/* At the prompt an unknown size of a value that has been made is the size it has (LANGUAGE §4): what
 * follows is checked with it. */
#include "repl/session_internal.h"

static Type *with_sizes(Type *t, Value v);

static Type *tensor_with_sizes(Type *t, Value v) {
    uint32_t rank;
    Type **dims;
    const Tensor *tensor = v.tag == VAL_TENSOR ? v.p : NULL;
    bool known = type_get_rank(t, &rank, &dims);
    if (!tensor || (known && (int)rank != tensor->rank))
        return t;
    Type *sizes[TENSOR_MAX_RANK];
    bool changed = !known;
    for (int i = 0; i < tensor->rank; i++) {
        int64_t n;
        Type *d = known ? type_resolve(dims[i]) : NULL;
        bool literal = d && type_get_int(d, &n);
        sizes[i] = literal ? d : type_dim_int(tensor->shape[i], d ? d->origin : NULL);
        changed |= !literal;
    }
    return changed ? type_tensor(type_shape(sizes, (uint32_t)tensor->rank), t->tensor.dtype) : t;
}

static Type *tuple_with_sizes(Type *t, const Tuple *v) {
    Type **parts = mem_new_n(Type *, (size_t)t->nargs + 1);
    bool changed = false;
    for (uint32_t i = 0; i < t->nargs; i++) {
        parts[i] = with_sizes(t->args[i], v->items[i]);
        changed |= parts[i] != t->args[i];
    }
    return changed ? type_tuple(parts, t->nargs) : t;
}

static Type *with_sizes(Type *t, Value v) {
    Type *known = type_resolve(t);
    if (known->tag == TY_TENSOR && (known->flags & TYPE_HAS_ANY)) {
        Type *sized = tensor_with_sizes(known, v);
        return sized == known ? t : sized;
    }
    if (known->tag == TY_TUPLE && known->nargs && v.tag == VAL_TUPLE && v.p)
        return tuple_with_sizes(known, v.p);
    return t;
}

Scheme *scheme_with_known_sizes(Scheme *scheme, Value v) {
    if (!scheme || scheme->nparams || scheme->nrelations)
        return scheme;
    Type *type = with_sizes(scheme->type, v);
    return type == scheme->type ? scheme : scheme_mono(type);
}
