/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that a function's type names (LANGUAGE §4, docs/sizes.md).
 *
 * Note [Named parameters]. fn(n: int32) -> Tensor[(n,), float32] says of each result that its size is the argument. The
 * name is an unknown of the type's own, fn.named[0], which stands where `n` is written. It is an `each` unknown (Note
 * [Each its own size] in solve/unknown.c), so that whoever knows nothing of names reads fn(int32) -> Tensor[(?,), float32]
 * there: that is how a name is forgotten. A call puts the size that its argument is in place of the name
 * (type_fn_give). Two functions with names are compared after one was given the names of the other (type_fn_rename).
 *
 * Names come from function literals, definitions and annotations. Types after a parameter may have its name; in those of
 * other parameters it stands in tensors and tuples of them only, and the body compares what it is given with it. */
#include "base/mem.h"
#include "types/type/type.h"

bool type_fn_names(const Type *fn, uint32_t param) {
    const Type *name = fn->fn.named ? fn->fn.named[param] : NULL;
    Map seen = {0};
    TypeVec found = {0};
    for (uint32_t i = 0; name && i < fn->nargs; i++)
        type_collect(fn->args[i], TY_ANY, &seen, &found);
    if (name)
        type_collect(fn->fn.result, TY_ANY, &seen, &found);
    for (size_t i = 0; i < found.len; i++)
        if (found.data[i] == name)
            return true;
    return false;
}

Type *type_fn_give(Type *fn, uint32_t param, Type *size) {
    Type *name = fn->fn.named ? fn->fn.named[param] : NULL;
    return name ? type_substitute(fn, &name, &size, 1) : fn;
}

Type *type_fn_rename(Type *b, const Type *a) {
    TypeVec from = {0}, to = {0};
    for (uint32_t i = 0; b->fn.named && a->fn.named && i < b->nargs; i++) {
        if (!b->fn.named[i] || !a->fn.named[i] || a->fn.named[i] == b->fn.named[i])
            continue;
        vec_push(&from, b->fn.named[i]);
        vec_push(&to, a->fn.named[i]);
    }
    return from.len ? type_substitute(b, from.data, to.data, (uint32_t)from.len) : b;
}
