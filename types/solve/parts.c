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

/* Whether the relation is that of a call which changes sizes: of indices those that are slices with bounds. */
static bool relation_resizes(const Relation *r) {
    bool call = r->op && r->op->resizes && r->def == r->op->relation;
    if (r->def != &rel_index && (!call || r->op != &op_index))
        return call;
    const char *spec = r->attrs ? attrs_text(r->attrs, "spec") : "";
    bool bounds = false;
    for (const char *p = spec; (p = strchr(p, ':')); p++)
        bounds |= p[1] && p[1] != '0';
    return bounds;
}

/* Whether the first argument of a call is a tensor of this shape, or joins one with others. */
static bool takes_shape(const Relation *r, const Type *shape) {
    const Type *arg = type_resolve(r->args[0]);
    if (arg->tag != TY_TUPLE)
        return find_open_shape(r->args[0]) == shape;
    bool found = false;
    for (uint32_t k = 0; k < arg->nargs && arg->nargs > 1 && !found; k++)
        found = find_open_shape(arg->args[k]) == shape;
    return found;
}

bool scheme_resizes(const Scheme *scheme, const Type *shape, bool joins) {
    VEC(const Type *) made = {0}; /* shape, and what calls make of it in one or several steps */
    vec_push(&made, shape);
    for (size_t k = 0; k < made.len; k++) {
        for (uint32_t i = 0; i < scheme->nrelations; i++) {
            const Relation *r = scheme->relations[i];
            const Type *result = find_open_shape(r->args[r->nargs - 1]);
            if (!result || !relation_resizes(r) || !takes_shape(r, made.data[k]) ||
                (joins && type_resolve(r->args[0])->tag != TY_TUPLE))
                continue;
            if (result == shape)
                return true;
            bool seen = false;
            for (size_t j = 0; j < made.len && !seen; j++)
                seen = made.data[j] == result;
            if (!seen)
                vec_push(&made, result);
        }
    }
    return false;
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
