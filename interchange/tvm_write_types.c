/* SPDX-License-Identifier: Apache-2.0 */
/* Types of a graph that is written. A size that is no number is `?`; a type that is not known, or over dtypes or shapes
 * that are parameters, is left open, as TVM leaves what its inference has to find. */
#include <inttypes.h>

#include "interchange/tvm_writer.h"

static size_t write(Writer *w, Type *t, bool *open);
static size_t write_decl(Writer *w, TypeDecl *decl);

const char *tvm_unique_name(Writer *w, const char *name) {
    const char *unique = name;
    for (int i = 1; map_has(&w->names, sym_intern(unique)); i++)
        unique = fmt_text("%s_%d", name, i);
    map_set(&w->names, sym_intern(unique), w);
    return unique;
}

static size_t write_tensor(Writer *w, Type *t, bool *open) {
    DType dtype;
    uint32_t rank;
    Type **dims;
    if (!type_get_dtype(t, &dtype) || !type_get_rank(t, &rank, &dims)) {
        *open = true;
        return 0;
    }
    size_t *sizes = mem_new_n(size_t, rank + 1);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t n;
        sizes[i] = type_get_int(dims[i], &n)
                       ? tvm_write_int(w, n)
                       : tvm_shared_node(w, "tir.Any", "dtype", "int32", "span", "0", NULL);
    }
    return tvm_shared_node(w, "relay.TensorType", "dtype", dtype_info[dtype].name, "shape",
                           tvm_number(tvm_write_list(w, sizes, rank)), "span", "0", NULL);
}

static size_t write_all(Writer *w, Type **types, uint32_t n, bool *open) {
    size_t *items = mem_new_n(size_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        items[i] = write(w, types[i], open);
    return tvm_write_list(w, items, n);
}

/* Sizes are no arguments of TVM's data types: they are `?` in its fields. */
static size_t write_data(Writer *w, Type *t, bool *open) {
    size_t header = write_decl(w, t->decl), *items = mem_new_n(size_t, t->nargs + 1), n = 0;
    for (uint32_t i = 0; i < t->nargs; i++)
        if (type_resolve(t->decl->params[i])->kind == KIND_TYPE)
            items[n++] = write(w, t->args[i], open);
    return tvm_shared_node(w, "relay.TypeCall", "args", tvm_number(tvm_write_list(w, items, n)),
                           "func", tvm_number(header), "span", "0", NULL);
}

static size_t write(Writer *w, Type *t, bool *open) {
    t = type_resolve(t);
    switch (t->tag) {
    case TY_TENSOR: return write_tensor(w, t, open);
    case TY_TUPLE:
        return tvm_shared_node(w, "TupleType", "fields",
                               tvm_number(write_all(w, t->args, t->nargs, open)), "span", "0",
                               NULL);
    case TY_FN: {
        size_t args = write_all(w, t->args, t->nargs, open), none = tvm_write_list(w, NULL, 0);
        return tvm_shared_node(w, "FuncType", "arg_types", tvm_number(args), "ret_type",
                               tvm_number(write(w, t->fn.result, open)), "span", "0",
                               "type_constraints", tvm_number(none), "type_params",
                               tvm_number(none), NULL);
    }
    case TY_REF:
        return tvm_shared_node(w, "RelayRefType", "span", "0", "value",
                               tvm_number(write(w, t->elem, open)), NULL);
    case TY_DATA:
        *open |= t->decl->row != NULL; /* rows have no constructors of their own */
        return t->decl->row ? 0 : write_data(w, t, open);
    default: break;
    }
    size_t known = (size_t)(uintptr_t)map_find(&w->types, t);
    *open |= !known;
    return known;
}

size_t tvm_write_type(Writer *w, Type *type) {
    bool open = false;
    size_t node = write(w, type, &open);
    return open ? 0 : node;
}

static size_t write_params(Writer *w, TypeDecl *decl) {
    size_t *items = mem_new_n(size_t, decl->nparams + 1), n = 0;
    for (uint32_t i = 0; i < decl->nparams; i++) {
        Type *p = type_resolve(decl->params[i]);
        if (p->kind == KIND_DTYPE || p->kind == KIND_SHAPE)
            tvm_refuse(w, decl->span,
                       fmt_text("the parameters of type `%s`, which are not all types or sizes",
                                decl->name->text));
        if (p->kind != KIND_TYPE)
            continue;
        size_t name = tvm_write_text(w, p->param.name ? p->param.name->text : "A");
        items[n] = tvm_node(w, "TypeVar", "kind", "0", "name_hint", tvm_number(name), "span", "0",
                            NULL);
        map_set(&w->types, p, (void *)(uintptr_t)items[n++]);
    }
    return tvm_write_list(w, items, n);
}

static size_t write_fields(Writer *w, const Ctor *ctor) {
    size_t *items = mem_new_n(size_t, ctor->nfields + 1);
    for (uint32_t i = 0; i < ctor->nfields; i++) {
        items[i] = tvm_write_type(w, ctor->fields[i]);
        if (!items[i])
            tvm_refuse(w, ctor->span, fmt_text("a field of `%s`", ctor->name->text));
    }
    return tvm_write_list(w, items, ctor->nfields);
}

/* The name of the type; its declaration is written with it. */
static size_t write_decl(Writer *w, TypeDecl *decl) {
    uintptr_t known = (uintptr_t)map_find(&w->types, decl);
    if (known)
        return known;
    size_t name = tvm_write_text(w, tvm_unique_name(w, decl->name->text));
    size_t header = tvm_node(w, "GlobalTypeVar", "kind", "5", "name_hint", tvm_number(name), "span",
                             "0", NULL);
    map_set(&w->types, decl, (void *)(uintptr_t)header);
    size_t vars = write_params(w, decl), *ctors = mem_new_n(size_t, decl->nctors + 1);
    for (uint32_t i = 0; i < decl->nctors; i++) {
        const Ctor *c = decl->ctors[i];
        ctors[i] = tvm_expr(w, "relay.Constructor", "belong_to", tvm_number(header), "inputs",
                            tvm_number(write_fields(w, c)), "name_hint",
                            tvm_number(tvm_write_text(w, c->name->text)), "tag",
                            fmt_text("%u", c->tag), NULL);
        map_set(&w->types, c, (void *)(uintptr_t)ctors[i]);
    }
    vec_push(&w->headers, header);
    vec_push(&w->headers,
             tvm_node(w, "relay.TypeData", "constructors",
                      tvm_number(tvm_write_list(w, ctors, decl->nctors)), "header",
                      tvm_number(header), "span", "0", "type_vars", tvm_number(vars), NULL));
    return header;
}

size_t tvm_write_ctor(Writer *w, const Ctor *ctor, Span span) {
    (void)write_decl(w, ctor->decl);
    size_t node = (size_t)(uintptr_t)map_find(&w->types, ctor);
    return node ? node : tvm_refuse(w, span, fmt_text("constructor `%s`", ctor->name->text));
}
