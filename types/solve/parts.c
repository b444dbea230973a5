/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of tensors: those whose sizes follow from values, as of `x[mask]` and `argwhere(x)`, and those that are joined. */
#include <string.h>

#include "types/op.h"
#include "types/solve/solver_impl.h"

/* Whether `x[v]` may be `x[mask]`. */
static bool may_select(const Relation *r) {
    Type *at = type_resolve(r->args[1]);
    bool vector = strpbrk(attrs_text(r->attrs, "spec"), "vo") != NULL, found = false;
    for (uint32_t i = 0; vector && !found && at->tag == TY_TUPLE && i < at->nargs; i++) {
        Type *t = type_resolve(at->args[i]);
        found = t->tag != TY_TENSOR || (type_dtype_set(t->tensor.dtype) & DTS_BOOL);
    }
    return vector && (at->tag != TY_TUPLE || found);
}

bool relation_reads_values(const Relation *r) {
    if (!r->op || r->op->shape_mode == SHAPE_OF_SHAPES)
        return false;
    if (r->def == &rel_index)
        return r->attrs && may_select(r);
    /* `{ x with [mask] = v }` asks for values, too, but its result has the type of x. */
    return r->def == r->op->relation && !type_equal(r->args[0], r->args[r->nargs - 1]);
}

/* The shape of a tensor whose rank is not known, or NULL. */
static const Type *find_open_shape(Type *t) {
    t = type_resolve(t);
    Type *shape = t->tag == TY_TENSOR ? type_resolve(t->tensor.shape) : NULL;
    return shape && shape->tag == TY_PARAM ? shape : NULL;
}

bool scheme_adds_parts(const Scheme *scheme, const Type *shape) {
    bool found = false;
    for (uint32_t i = 0; i < scheme->nrelations && !found; i++) {
        const Relation *r = scheme->relations[i];
        const Type *parts = type_resolve(r->args[0]);
        if (!r->op || !r->op->adds_sizes || r->def != r->op->relation || parts->tag != TY_TUPLE ||
            parts->nargs < 2 || find_open_shape(r->args[r->nargs - 1]) != shape)
            continue;
        for (uint32_t k = 0; k < parts->nargs; k++)
            found |= find_open_shape(parts->args[k]) == shape;
    }
    return found;
}

bool scheme_mixes_parts(const Scheme *scheme, const Type *shape) {
    const Type *fn = type_resolve(scheme->type);
    for (uint32_t i = 0; i < scheme->nrelations; i++) {
        const Relation *r = scheme->relations[i];
        Type *part = (Type *)find_open_shape(r->args[r->nargs - 1]);
        if (!part || !relation_reads_values(r) ||
            (part != shape && find_open_shape(r->args[0]) != shape))
            continue;
        for (uint32_t k = 0; k < fn->nargs; k++)
            if (type_mentions(fn->args[k], &part, 1))
                return true;
    }
    return false;
}
