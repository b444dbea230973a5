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
 * A parameter of it that stands for types stands for types of rows: that of Rows[n, Adam[float32]] is Tensor[(n,), float32].
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
    case TY_DERIV: return field_takes_axis(t->elem, seen);
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

/* Whether there is room for an axis in each tensor of a declaration. */
static bool field_has_rows(Type *t, Map *seen) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        return !type_get_rank(t, &rank, &dims) || rank < TENSOR_MAX_RANK;
    if (t->tag == TY_DERIV)
        return field_has_rows(t->elem, seen);
    if (t->tag == TY_DATA && !has_rows(t->decl, seen))
        return false;
    for (uint32_t i = 0; i < t->nargs && (t->tag == TY_DATA || t->tag == TY_TUPLE); i++)
        if (!field_has_rows(t->args[i], seen))
            return false;
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

/* in_decl: in a declaration of rows, whose parameters stand for types of rows already. */
static Type *rows_of(Type *row, Type *n, bool in_decl);

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
        c->fields[k] = rows_of(of->fields[k], rows->params[0], true);
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

static Type *rows_of_shape(Type *shape, Type *n, bool in_decl) {
    uint32_t rank;
    Type **dims;
    shape = type_resolve(shape);
    if (shape->tag == TY_PARAM && in_decl)
        return shape;
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

static Type *rows_of_parts(Type *row, Type *n, bool in_decl) {
    bool takes = row->tag == TY_TUPLE || type_decl_takes_axis(row->decl);
    TypeDecl *decl = row->tag == TY_TUPLE ? NULL : takes ? row->decl : type_decl_rows(row->decl);
    if (!takes && !decl)
        return NULL;
    uint32_t first = takes ? 0 : 1;
    Type **args = mem_new_n(Type *, (size_t)row->nargs + 2);
    args[0] = n;
    for (uint32_t i = 0; i < row->nargs; i++) {
        Kind kind = type_resolve(row->args[i])->kind;
        Type *arg = kind == KIND_TYPE    ? rows_of(row->args[i], n, in_decl)
                    : kind == KIND_SHAPE ? rows_of_shape(row->args[i], n, in_decl)
                                         : row->args[i];
        if (!arg)
            return NULL;
        args[first + i] = arg;
    }
    return decl ? type_data(decl, args, first + row->nargs) : type_tuple(args, row->nargs);
}

static Type *rows_of(Type *row, Type *n, bool in_decl) {
    row = type_resolve(row);
    switch (row->tag) {
    case TY_TENSOR: {
        Type *shape = rows_of_shape(row->tensor.shape, n, in_decl);
        return shape ? type_tensor(shape, row->tensor.dtype) : NULL;
    }
    case TY_TUPLE:
    case TY_DATA: return rows_of_parts(row, n, in_decl);
    case TY_DERIV: {
        Type *of = rows_of(row->elem, n, in_decl);
        return of ? type_deriv(of) : NULL;
    }
    case TY_STRING:
    case TY_FN:
    case TY_REF:
    case TY_ERROR: return row;
    default: return in_decl ? row : NULL;
    }
}

Type *type_rows(Type *row, Type *n) { return rows_of(row, n, false); }

Type *type_row(Type *all) {
    uint32_t rank;
    Type **dims;
    all = type_resolve(all);
    if (all->kind == KIND_SHAPE)
        return type_get_rank(all, &rank, &dims) && rank ? type_shape(dims + 1, rank - 1) : all;
    if (all->tag == TY_TENSOR)
        return type_tensor(type_row(all->tensor.shape), all->tensor.dtype);
    if (all->tag == TY_DERIV)
        return type_deriv(type_row(all->elem));
    if (all->tag != TY_TUPLE && all->tag != TY_DATA)
        return all;
    TypeDecl *row = all->tag == TY_DATA ? all->decl->row : NULL;
    uint32_t first = row ? 1 : 0, n = all->nargs - first;
    Type **args = mem_new_n(Type *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Kind kind = type_resolve(all->args[first + i])->kind;
        args[i] = kind == KIND_TYPE || kind == KIND_SHAPE ? type_row(all->args[first + i])
                                                          : all->args[first + i];
    }
    return all->tag == TY_TUPLE ? type_tuple(args, n) : type_data(row ? row : all->decl, args, n);
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
