/* SPDX-License-Identifier: Apache-2.0 */
/* Construction and reading of types. Types without parts are constants; the others are collected
 * and never change but for links, which type_resolve follows. */
#include "types/type/type.h"

#include <string.h>

#include "base/mem.h"
#include "types/type/dim.h"

static Type constant_pure = {.tag = TY_PURE, .kind = KIND_EFFECT};
static Type constant_allocates = {.tag = TY_ALLOCATES, .kind = KIND_EFFECT};
static Type constant_unit = {.tag = TY_TUPLE, .kind = KIND_TYPE};
static Type constant_string = {.tag = TY_STRING, .kind = KIND_TYPE};
static Type constant_error = {.tag = TY_ERROR, .kind = KIND_TYPE};
static Type constant_rank0 = {.tag = TY_SHAPE, .kind = KIND_SHAPE};

#define X(e, name, bytes, cls, bits)                                                               \
    [DT_##e] = {.tag = TY_DTYPE, .kind = KIND_DTYPE, .dtype_value = DT_##e},
static Type constant_dtypes[DTYPE_COUNT] = {DTYPES(X)};
#undef X

#define X(e, name, bytes, cls, bits)                                                               \
    [DT_##e] = {.tag = TY_TENSOR,                                                                  \
                .kind = KIND_TYPE,                                                                 \
                .tensor = {&constant_rank0, &constant_dtypes[DT_##e]}},
static Type constant_scalars[DTYPE_COUNT] = {DTYPES(X)};
#undef X

uint32_t type_next_id(void) {
    static uint32_t next;
    return ++next;
}

static Type *new_type(TypeTag tag, Kind kind) {
    static void *cells;
    Type *t = mem_cell(&cells, sizeof *t);
    t->tag = tag;
    t->kind = kind;
    return t;
}

static void check_kind(const Type *t, Kind kind) {
    if (t->kind != kind)
        BUG("a type of kind %d stands where kind %d belongs", (int)t->kind, (int)kind);
}

static void set_args(Type *t, Type **args, uint32_t n) {
    if (n == 0)
        return;
    t->nargs = n;
    t->args = mem_new_n(Type *, n);
    for (uint32_t i = 0; i < n; i++) {
        t->args[i] = args[i];
        t->flags |= args[i]->flags;
    }
}

Type *type_var(Kind kind, int level, const Symbol *hint) {
    Type *t = new_type(TY_VAR, kind);
    t->flags = TYPE_HAS_VARS;
    t->var.id = t->var.age = type_next_id();
    t->var.level = level;
    t->var.hint = hint;
    t->var.dtypes = DTS_ALL;
    return t;
}

Type *type_param(const Symbol *name, Kind kind) {
    Type *t = new_type(TY_PARAM, kind);
    t->flags = TYPE_HAS_PARAMS;
    t->param.name = name;
    t->param.id = type_next_id();
    t->param.dtypes = DTS_ALL;
    return t;
}

Type *type_dim_made(Type *dim, const Origin *origin) {
    if (dim->tag != TY_DIM)
        return dim;
    Type *t = new_type(TY_DIM, KIND_DIM);
    t->flags = dim->flags;
    t->dim = dim->dim;
    t->normal = dim->normal;
    t->origin = origin;
    return t;
}

Type *type_any(Kind kind, const Origin *origin) {
    if (kind != KIND_DIM && kind != KIND_SHAPE)
        BUG("an unknown that is no size and no shape");
    Type *t = new_type(TY_ANY, kind);
    t->flags = TYPE_HAS_ANY;
    t->param.id = type_next_id();
    t->origin = origin;
    return t;
}

Type *type_any_each(Kind kind, const Origin *origin) {
    Type *t = type_any(kind, origin);
    t->param.each = true;
    return t;
}

Type *type_any_value(const Symbol *name, uint32_t id, const Origin *origin) {
    Type *t = new_type(TY_ANY, KIND_DIM);
    t->flags = TYPE_HAS_ANY;
    t->param.name = name;
    t->param.id = id;
    t->param.value = true;
    t->origin = origin;
    return t;
}

Type *type_tensor(Type *shape, Type *dtype) {
    check_kind(shape, KIND_SHAPE);
    check_kind(dtype, KIND_DTYPE);
    Type *t = new_type(TY_TENSOR, KIND_TYPE);
    t->tensor.shape = shape;
    t->tensor.dtype = dtype;
    t->flags = shape->flags | dtype->flags;
    return t;
}

Type *type_scalar(DType dtype) { return &constant_scalars[dtype]; }

Type *type_dtype(DType dtype) { return &constant_dtypes[dtype]; }

Type *type_tuple(Type **args, uint32_t n) {
    if (n == 0)
        return &constant_unit;
    Type *t = new_type(TY_TUPLE, KIND_TYPE);
    set_args(t, args, n);
    return t;
}

Type *type_unit(void) { return &constant_unit; }

Type *type_fn(Type **params, uint32_t n, Type *result, Type *effect) {
    check_kind(result, KIND_TYPE);
    check_kind(effect, KIND_EFFECT);
    Type *t = new_type(TY_FN, KIND_TYPE);
    set_args(t, params, n);
    t->fn.result = result;
    t->fn.effect = effect;
    t->flags |= result->flags | effect->flags;
    return t;
}

Type *type_fn_named(Type **params, uint32_t n, Type *result, Type *effect, Type **named) {
    Type *t = type_fn(params, n, result, effect);
    t->fn.named = named;
    return t;
}

Type *type_any_named(const Symbol *name) {
    Type *t = type_any_each(KIND_DIM, NULL);
    t->param.name = name;
    t->param.value = true;
    return t;
}

Type *type_ref(Type *elem) {
    Type *t = new_type(TY_REF, KIND_TYPE);
    t->elem = elem;
    t->flags = elem->flags;
    return t;
}

Type *type_data(TypeDecl *decl, Type **args, uint32_t n) {
    Type *t = new_type(TY_DATA, KIND_TYPE);
    t->decl = decl;
    set_args(t, args, n);
    return t;
}

Type *type_string(void) { return &constant_string; }

Type *type_error(void) { return &constant_error; }

Type *type_shape(Type **dims, uint32_t rank) {
    if (rank == 0)
        return &constant_rank0;
    Type *t = new_type(TY_SHAPE, KIND_SHAPE);
    for (uint32_t i = 0; i < rank; i++)
        check_kind(dims[i], KIND_DIM);
    set_args(t, dims, rank);
    return t;
}

Type *type_dim_int(int64_t n, const Origin *origin) {
    Type *t = new_type(TY_DIM, KIND_DIM);
    Dim *d = mem_new(Dim);
    d->constant = n;
    t->dim = d;
    t->origin = origin;
    return t;
}

Type *type_pure(void) { return &constant_pure; }

Type *type_allocates(void) { return &constant_allocates; }

/* ---- D(T) ------------------------------------------------------------------------------------ */

DTypeSet type_dtype_set(Type *dtype) {
    dtype = type_resolve(dtype);
    if (dtype->tag == TY_DTYPE)
        return DT_BIT(dtype->dtype_value);
    if (dtype->tag == TY_VAR)
        return dtype->var.dtypes;
    return dtype->param.dtypes;
}

/* Which leaves a type has. The arguments of a data type are entered at each instance. Its fields are entered
 * once, and its parameters are skipped there, because they stand for the arguments. */
typedef struct Leaves {
    bool floats, others, unknown; /* others: leaves whose derivative is () */
    bool code;                    /* functions, references */
    Map seen;                     /* TypeDecl* entered, their parameters, Type* done */
    TypeVec *dtypes;              /* collects the dtypes of float leaves, or NULL */
} Leaves;

static void add_dtype_leaf(Leaves *l, Type *dtype) {
    dtype = type_resolve(dtype);
    if (map_has(&l->seen, dtype))
        return;
    DTypeSet set = type_dtype_set(dtype);
    if (l->dtypes && !(set & ~DTS_FLOAT))
        vec_push(l->dtypes, dtype);
    if (!(set & ~DTS_FLOAT))
        l->floats = true;
    else if (!(set & DTS_FLOAT))
        l->others = true;
    else
        l->unknown = true;
}

static void find_leaves(Leaves *l, Type *t);

static void enter_data(Leaves *l, Type *t) {
    TypeDecl *decl = t->decl;
    for (uint32_t i = 0; i < t->nargs; i++) {
        if (t->args[i]->kind == KIND_TYPE)
            find_leaves(l, t->args[i]);
        else if (t->args[i]->kind == KIND_DTYPE)
            add_dtype_leaf(l, t->args[i]);
    }
    if (decl->is_extern)
        l->others = true;
    if (map_has(&l->seen, decl))
        return;
    map_set(&l->seen, decl, decl);
    for (uint32_t i = 0; i < decl->nparams; i++)
        map_set(&l->seen, decl->params[i], decl);
    for (uint32_t c = 0; c < decl->nctors; c++)
        for (uint32_t f = 0; f < decl->ctors[c]->nfields; f++)
            find_leaves(l, decl->ctors[c]->fields[f]);
}

static void find_leaves(Leaves *l, Type *t) {
    t = type_resolve(t);
    switch (t->tag) {
    case TY_TENSOR: add_dtype_leaf(l, t->tensor.dtype); return;
    case TY_TUPLE:
        if (t->nargs == 0)
            return; /* () is its own derivative */
        if (map_has(&l->seen, t))
            return;
        map_set(&l->seen, t, t);
        for (uint32_t i = 0; i < t->nargs; i++)
            find_leaves(l, t->args[i]);
        return;
    case TY_DATA:
        if (!map_has(&l->seen, t)) {
            map_set(&l->seen, t, t);
            enter_data(l, t);
        }
        return;
    case TY_DERIV:
        find_leaves(l, t->elem); /* its floats are the floats of T; the rest are () */
        return;
    case TY_VAR:
    case TY_PARAM:
        if (!map_has(&l->seen, t))
            l->unknown = true;
        return;
    case TY_ERROR: l->unknown = true; return;
    case TY_FN:
    case TY_REF:
        l->code = true;
        l->others = true;
        return;
    case TY_STRING: l->others = true; return;
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return;
    }
}

Holds type_holds_float(Type *t) {
    Leaves l = {0};
    find_leaves(&l, t);
    return l.floats ? HOLDS_YES : l.unknown ? HOLDS_UNKNOWN : HOLDS_NO;
}

bool type_collect_float_dtypes(Type *t, TypeVec *out) {
    Leaves l = {.dtypes = out};
    find_leaves(&l, t);
    return !l.unknown;
}

bool type_holds_code(Type *t) {
    Leaves l = {0};
    find_leaves(&l, t);
    return l.code;
}

/* D of a resolved type, or NULL while it is not determined (or has no simpler form). */
static Type *reduce_deriv(Type *t) {
    switch (t->tag) {
    case TY_TENSOR: {
        DTypeSet set = type_dtype_set(t->tensor.dtype);
        if (!(set & ~DTS_FLOAT))
            return t;
        return set & DTS_FLOAT ? NULL : type_unit();
    }
    case TY_TUPLE: {
        if (t->nargs == 0)
            return t;
        Type **args = mem_new_n(Type *, t->nargs);
        bool same = true;
        for (uint32_t i = 0; i < t->nargs; i++) {
            args[i] = type_deriv(t->args[i]);
            same = same && args[i] == t->args[i];
        }
        return same ? t : type_tuple(args, t->nargs);
    }
    case TY_DATA: {
        Leaves l = {0};
        find_leaves(&l, t);
        return l.others || l.unknown ? NULL : t;
    }
    case TY_DERIV: /* D(D(T)) = D(T) */
    case TY_ERROR: return t;
    case TY_FN:
    case TY_REF:
    case TY_STRING: return type_unit();
    case TY_VAR:
    case TY_PARAM: return NULL;
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: break;
    }
    BUG("the derivative of a type that is not of kind Type");
}

Type *type_deriv(Type *elem) {
    Type *known = type_resolve(elem);
    Type *reduced = reduce_deriv(known);
    if (reduced)
        return reduced == known ? elem : reduced;
    Type *t = new_type(TY_DERIV, KIND_TYPE);
    t->elem = elem;
    t->flags = elem->flags;
    return t;
}

/* ---- reading --------------------------------------------------------------------------------- */

Type *type_resolve_link(Type *t) {
    for (;;) {
        switch (t->tag) {
        case TY_VAR: {
            if (!t->var.link)
                return t;
            Type *end = t->var.link;
            while (end->tag == TY_VAR && end->var.link)
                end = end->var.link;
            while (t->tag == TY_VAR && t->var.link) { /* compress the path */
                Type *next = t->var.link;
                t->var.link = end;
                t = next;
            }
            t = end;
            if (t->tag == TY_VAR)
                return t;
            continue;
        }
        case TY_DERIV:
            if (t->reduced) {
                t = t->reduced;
                continue;
            }
            if (t->flags & (TYPE_HAS_VARS | TYPE_HAS_PARAMS)) {
                Type *reduced = reduce_deriv(type_resolve(t->elem));
                if (reduced) {
                    t->reduced = reduced;
                    t = reduced;
                    continue;
                }
            }
            return t;
        case TY_DIM: return t->flags & TYPE_HAS_VARS ? dim_normal(t) : t;
        case TY_PARAM:
        case TY_TENSOR:
        case TY_TUPLE:
        case TY_FN:
        case TY_REF:
        case TY_DATA:
        case TY_STRING:
        case TY_ERROR:
        case TY_SHAPE:
        case TY_DTYPE:
        case TY_ANY:
        case TY_PURE:
        case TY_ALLOCATES: return t;
        }
    }
}

bool type_has_rank0(Type *t) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    return t->tag == TY_TENSOR && type_get_rank(t, &rank, &dims) && rank == 0;
}

bool type_is_scalar(Type *t, DType dtype) {
    t = type_resolve(t);
    if (t->tag != TY_TENSOR)
        return false;
    Type *shape = type_resolve(t->tensor.shape);
    DType found;
    return shape->tag == TY_SHAPE && shape->nargs == 0 && type_get_dtype(t, &found) &&
           found == dtype;
}

bool type_is_list(Type *t) {
    t = type_resolve(t);
    return t->tag == TY_DATA && t->nargs == 1 && strcmp(t->decl->name->text, "List") == 0;
}

bool type_is_unit(Type *t) {
    t = type_resolve(t);
    return t->tag == TY_TUPLE && t->nargs == 0;
}

bool type_differs_by_comma(Type *a, Type *b) {
    a = type_resolve(a), b = type_resolve(b);
    bool is_one = a->tag == TY_TUPLE && a->nargs == 1,
         is_other = b->tag == TY_TUPLE && b->nargs == 1;
    return is_one != is_other && a->tag != TY_VAR && b->tag != TY_VAR;
}

bool type_get_dtype(Type *t, DType *out) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        t = type_resolve(t->tensor.dtype);
    if (t->tag != TY_DTYPE)
        return false;
    *out = t->dtype_value;
    return true;
}

bool type_get_int(Type *dim, int64_t *out) {
    dim = type_resolve(dim);
    if (dim->tag != TY_DIM || dim->dim->nterms != 0)
        return false;
    *out = dim->dim->constant;
    return true;
}

bool type_get_rank(Type *t, uint32_t *rank, Type ***dims) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        t = type_resolve(t->tensor.shape);
    if (t->tag != TY_SHAPE)
        return false;
    *rank = t->nargs;
    *dims = t->args;
    return true;
}
