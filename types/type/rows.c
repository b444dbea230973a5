/* SPDX-License-Identifier: Apache-2.0 */
/* Rows[n, T]: n values of the type T, stacked, as `vmap` takes apart and gives them (docs/language.md).
 *
 * Note [Rows of data]. Data whose declaration has a parameter wherever a tensor stands is stacked in its parameters: n of
 * List[Tensor[(3,), b]] are a List[Tensor[(n, 3), b]]. A declaration that says how many axes its tensors have
 *
 *     type Lin[m] { Lin { w: Tensor[(m, 4), float32], s: String } }
 *
 * gets a declaration of rows beside it, made when it is first asked for:
 *
 *     Rows[n, Lin[m]]  =  type data of (n, m) { Lin { w: Tensor[(n, m, 4), float32], s: String } }
 *
 * It is a declaration like any other to whoever reads types, and rows of rows are made of it again. But it has no name of
 * its own, and no values: what stands in core and in values are the constructors of T, the root of such a chain
 * (ctor_of_values). A constructor as a type has it is found by ctor_of_type. */
#include "base/mem.h"
#include "tensor/tensor.h"
#include "types/type/type.h"

/* ---- declarations whose parameters take the axis ------------------------------------------------- */

static bool takes_axis(TypeDecl *decl, Map *seen);

static bool field_takes_axis(Type *t, Map *seen) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    switch (t->tag) {
    case TY_TENSOR:
        return !type_get_rank(t, &rank, &dims) && type_resolve(t->tensor.shape)->tag == TY_PARAM;
    case TY_DATA:
        if (!takes_axis(t->decl, seen))
            return false;
        break;
    case TY_TUPLE: break;
    default: return true;
    }
    for (uint32_t i = 0; i < t->nargs; i++)
        if (type_resolve(t->args[i])->kind == KIND_TYPE && !field_takes_axis(t->args[i], seen))
            return false;
    return true;
}

static bool takes_axis(TypeDecl *decl, Map *seen) {
    if (map_has(seen, decl))
        return true;
    map_set(seen, decl, decl);
    for (uint32_t i = 0; i < decl->nctors; i++)
        for (uint32_t k = 0; k < decl->ctors[i]->nfields; k++)
            if (!field_takes_axis(decl->ctors[i]->fields[k], seen))
                return false;
    return true;
}

bool type_decl_takes_axis(TypeDecl *decl) {
    Map seen = {0};
    return takes_axis(decl, &seen);
}

/* ---- declarations of rows ------------------------------------------------------------------------ */

static bool has_rows(TypeDecl *decl, Map *seen);

/* Whether type_rows has an answer for what stands in a declaration. */
static bool field_has_rows(Type *t, Map *seen) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    switch (t->tag) {
    case TY_TENSOR:
        if (type_get_rank(t, &rank, &dims))
            return rank < TENSOR_MAX_RANK;
        return type_resolve(t->tensor.shape)->tag == TY_ANY;
    case TY_DATA:
        if (!type_decl_takes_axis(t->decl))
            return has_rows(t->decl, seen);
        break;
    case TY_TUPLE: break;
    case TY_STRING:
    case TY_FN:
    case TY_REF:
    case TY_ERROR: return true;
    default: return false;
    }
    for (uint32_t i = 0; i < t->nargs; i++) {
        Type *arg = type_resolve(t->args[i]);
        if (arg->kind == KIND_TYPE ? !field_has_rows(arg, seen)
                                   : arg->kind == KIND_SHAPE && arg->tag == TY_PARAM)
            return false;
    }
    return true;
}

static bool has_rows(TypeDecl *decl, Map *seen) {
    if (map_has(seen, decl))
        return true;
    map_set(seen, decl, decl);
    for (uint32_t i = 0; i < decl->nctors; i++)
        for (uint32_t k = 0; k < decl->ctors[i]->nfields; k++)
            if (!field_has_rows(decl->ctors[i]->fields[k], seen))
                return false;
    return true;
}

static Ctor *make_ctor(TypeDecl *rows, const Ctor *of) {
    Ctor *c = mem_new(Ctor);
    *c = (Ctor){.name = of->name,
                .decl = rows,
                .tag = of->tag,
                .nfields = of->nfields,
                .fields = mem_new_n(Type *, (size_t)of->nfields + 1),
                .field_names = of->field_names,
                .span = of->span};
    for (uint32_t k = 0; k < of->nfields; k++)
        c->fields[k] = type_rows(of->fields[k], rows->params[0]);
    return c;
}

TypeDecl *type_decl_rows(TypeDecl *decl) {
    Map seen = {0};
    if (decl->rows)
        return decl->rows;
    if (!has_rows(decl, &seen))
        return NULL;
    TypeDecl *rows = mem_new(TypeDecl);
    *rows = (TypeDecl){.name = decl->name,
                       .nparams = decl->nparams + 1,
                       .params = mem_new_n(Type *, (size_t)decl->nparams + 1),
                       .exists = decl->exists,
                       .nexists = decl->nexists,
                       .nctors = decl->nctors,
                       .ctors = mem_new_n(Ctor *, (size_t)decl->nctors + 1),
                       .span = decl->span,
                       .doc = decl->doc,
                       .row = decl};
    rows->params[0] = type_param(sym_intern("n"), KIND_DIM);
    for (uint32_t i = 0; i < decl->nparams; i++)
        rows->params[i + 1] = decl->params[i];
    decl->rows = rows; /* before the fields, which may be of this type */
    for (uint32_t i = 0; i < decl->nctors; i++)
        rows->ctors[i] = make_ctor(rows, decl->ctors[i]);
    return rows;
}

Type *type_data_rows(Type *data, Type *n) {
    TypeDecl *rows = type_decl_rows(data->decl);
    if (!rows)
        return NULL;
    Type **args = mem_new_n(Type *, (size_t)rows->nparams + 1);
    args[0] = n;
    for (uint32_t i = 0; i < data->nargs; i++)
        args[i + 1] = data->args[i];
    return type_data(rows, args, rows->nparams);
}

/* ---- what is not stacked -------------------------------------------------------------------------- */

static Type *find_whole(Type *t, Map *seen) {
    Type *found = NULL;
    t = type_resolve(t);
    if (t->tag == TY_STRING || t->tag == TY_FN || t->tag == TY_REF)
        return t;
    if ((t->tag != TY_TUPLE && t->tag != TY_DATA) || map_has(seen, t))
        return NULL;
    map_set(seen, t, t);
    for (uint32_t i = 0; i < t->nargs && !found; i++)
        if (type_resolve(t->args[i])->kind == KIND_TYPE)
            found = find_whole(t->args[i], seen);
    if (t->tag != TY_DATA || map_has(seen, t->decl))
        return found;
    map_set(seen, t->decl, t->decl);
    for (uint32_t i = 0; i < t->decl->nctors; i++)
        for (uint32_t k = 0; k < t->decl->ctors[i]->nfields && !found; k++)
            found = find_whole(t->decl->ctors[i]->fields[k], seen);
    return found;
}

Type *type_find_whole(Type *t) {
    Map seen = {0};
    return find_whole(t, &seen);
}

/* ---- types --------------------------------------------------------------------------------------- */

static Type *rows_of_shape(Type *shape, Type *n) {
    uint32_t rank;
    Type **dims;
    shape = type_resolve(shape);
    if (!type_get_rank(shape, &rank, &dims)) {
        if (shape->tag != TY_ANY)
            return NULL;
        return shape->param.each ? type_any_each(KIND_SHAPE, shape->origin)
                                 : type_any(KIND_SHAPE, shape->origin);
    }
    if (rank >= TENSOR_MAX_RANK)
        return NULL;
    Type **all = mem_new_n(Type *, (size_t)rank + 1);
    all[0] = n;
    for (uint32_t i = 0; i < rank; i++)
        all[i + 1] = dims[i];
    return type_shape(all, rank + 1);
}

Type *type_rows(Type *row, Type *n) {
    row = type_resolve(row);
    switch (row->tag) {
    case TY_TENSOR: {
        Type *shape = rows_of_shape(row->tensor.shape, n);
        return shape ? type_tensor(shape, row->tensor.dtype) : NULL;
    }
    case TY_DATA:
        if (!type_decl_takes_axis(row->decl))
            return type_data_rows(row, n);
        break;
    case TY_TUPLE: break;
    case TY_STRING:
    case TY_FN:
    case TY_REF:
    case TY_ERROR: return row;
    default: return NULL;
    }
    Type **args = mem_new_n(Type *, (size_t)row->nargs + 1);
    for (uint32_t i = 0; i < row->nargs; i++) {
        Kind kind = type_resolve(row->args[i])->kind;
        args[i] = kind == KIND_TYPE    ? type_rows(row->args[i], n)
                  : kind == KIND_SHAPE ? rows_of_shape(row->args[i], n)
                                       : row->args[i];
        if (!args[i])
            return NULL;
    }
    return row->tag == TY_DATA ? type_data(row->decl, args, row->nargs)
                               : type_tuple(args, row->nargs);
}

Type *type_data_row(Type *data) {
    return type_data(data->decl->row, data->args + 1, data->nargs - 1);
}

/* ---- constructors -------------------------------------------------------------------------------- */

const TypeDecl *type_decl_of_values(const TypeDecl *decl) {
    while (decl->row)
        decl = decl->row;
    return decl;
}

Ctor *ctor_of_values(const Ctor *ctor) { return type_decl_of_values(ctor->decl)->ctors[ctor->tag]; }

const Ctor *ctor_of_type(const Ctor *ctor, Type *type) {
    const Type *t = type ? type_resolve(type) : NULL;
    bool is_rows = t && t->tag == TY_DATA && t->decl != ctor->decl &&
                   type_decl_of_values(t->decl) == type_decl_of_values(ctor->decl);
    return is_rows ? t->decl->ctors[ctor->tag] : ctor;
}
