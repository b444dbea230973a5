/* SPDX-License-Identifier: Apache-2.0 */
/* Types as written, to Types.
 *
 * The kind wanted travels down: `n` in the place of a size is a Dim. A type parameter without a
 * written kind gets that of its first use; a second kind is an error that shows both. */
#include <string.h>

#include "types/infer/state.h"

const char *kind_name(Kind kind) {
    switch (kind) {
    case KIND_TYPE: return "Type";
    case KIND_SHAPE: return "Shape";
    case KIND_DTYPE: return "BaseType";
    case KIND_DIM: return "Dim";
    case KIND_EFFECT: return "Effect";
    }
    return "";
}

bool kind_find(const Symbol *name, Kind *out) {
    static const Kind kinds[] = {KIND_TYPE, KIND_SHAPE, KIND_DTYPE, KIND_DIM};
    for (int i = 0; i < 4; i++) {
        if (strcmp(kind_name(kinds[i]), name->text) == 0) {
            *out = kinds[i];
            return true;
        }
    }
    return false;
}

static const char *kind_words(Kind kind) {
    switch (kind) {
    case KIND_TYPE: return "a type";
    case KIND_SHAPE: return "a shape";
    case KIND_DTYPE: return "a dtype";
    case KIND_DIM: return "a size";
    case KIND_EFFECT: return "an effect";
    }
    return "";
}

static const Origin *annotation_origin(const Infer *I, Span span) {
    Origin *o = mem_new(Origin);
    o->kind = ORIGIN_ANNOTATION;
    o->span = span;
    o->place = I->annotates;
    return o;
}

/* The type in place of one that could not be read. */
static Type *broken(Infer *I, Kind kind) {
    return kind == KIND_TYPE ? type_error() : solver_var(I->s, kind);
}

static Type *wrong_kind(Infer *I, Span span, TypePlace place, Kind is, Kind wanted) {
    infer_error(I, DIAG_R0107, span, "%s is %s, where %s is wanted", type_place_text(&place),
                kind_words(is), kind_words(wanted));
    return broken(I, wanted);
}

static Type *param_type(Infer *I, TypeParam *p, Kind kind, Span span) {
    if (!p->kind_known) {
        p->kind_known = true;
        p->kind = kind;
        p->use = span;
    }
    if (p->kind != kind) {
        Diag *d = infer_error(I, DIAG_R0107, span, "`%s` is %s, where %s is wanted", p->name->text,
                              kind_words(p->kind), kind_words(kind));
        if (d && p->use.source) {
            diag_set_label(d, "%s here", kind_words(kind));
            diag_add_label(d, p->use, "%s here", kind_words(p->kind));
            diag_add_fact(d, "a parameter has one kind: Type, Shape, BaseType or Dim");
        }
        return broken(I, kind);
    }
    if (!p->type)
        p->type = p->open && kind == KIND_TYPE ? solver_var_named(I->s, kind, p->name)
                                               : solver_rigid(I->s, p->kind, p->name);
    return p->type;
}

Type *type_param_rigid(Infer *I, TypeParam *p) {
    Type *t = p->rigid ? p->rigid : param_type(I, p, p->kind_known ? p->kind : KIND_TYPE, p->span);
    return p->rigid ? t : type_resolve(t);
}

/* A size of a shape or of data: a number is not negative. */
static Type *size_type(Infer *I, const AstType *t) {
    Type *size = infer_ast_type(I, t, KIND_DIM);
    int64_t n;
    if (!type_get_int(size, &n) || n >= 0)
        return size;
    infer_error(I, DIAG_R0301, t->span, "a size is not negative, and this is %lld", (long long)n);
    return broken(I, KIND_DIM);
}

static Type *decl_type(Infer *I, TypeDecl *decl, const AstType *t) {
    if (t->args.len != decl->nparams) {
        Diag *d = infer_error(I, DIAG_R0108, t->span,
                              "type `%s` takes %u argument%s, and %zu %s given", decl->name->text,
                              decl->nparams, decl->nparams == 1 ? "" : "s", t->args.len,
                              t->args.len == 1 ? "is" : "are");
        if (d)
            d->missing = decl->name;
        return type_error();
    }
    Type **args = mem_new_n(Type *, decl->nparams + 1);
    for (uint32_t i = 0; i < decl->nparams; i++) {
        bool several = decl->params[i]->kind == KIND_TYPE;
        I->of_several += several;
        Kind kind = decl->params[i]->kind;
        args[i] = kind == KIND_DIM ? size_type(I, t->args.data[i])
                                   : infer_ast_type(I, t->args.data[i], kind);
        I->of_several -= several;
    }
    return type_data(decl, args, decl->nparams);
}

/* The dtype of which the name has lanes, `int8` of int8x4, as TVM prints vectors of a machine; else NULL. */
static const char *find_lanes(const Symbol *name) {
    const char *x = strrchr(name->text, 'x');
    DType dtype;
    if (!x || !x[1] || x[1 + strspn(x + 1, "0123456789")] ||
        !dtype_find(name->text, (size_t)(x - name->text), &dtype))
        return NULL;
    return dtype_info[dtype].name;
}

static Type *unknown_name(Infer *I, const AstType *t, Kind kind) {
    const char *element = find_lanes(t->name);
    if (element) {
        Diag *d = infer_error(I, DIAG_R0102, t->span,
                              "`%s` is a vector of lanes, which Relay does not have",
                              t->name->text);
        if (d) {
            d->cause = DIAG_CAUSE_LANES;
            diag_add_help(d, "a tensor with one more axis holds the same: its elements are %s",
                          element);
        }
        return broken(I, kind);
    }
    Diag *d = infer_error(I, DIAG_R0102, t->span, "there is no %s `%s`",
                          kind == KIND_DIM     ? "size"
                          : kind == KIND_SHAPE ? "shape"
                          : kind == KIND_DTYPE ? "dtype"
                                               : "type",
                          t->name->text);
    if (!d)
        return broken(I, kind);
    d->missing = t->name;
    SymbolVec near = {0};
    for (size_t i = 0; i < I->type_trail.len; i++)
        vec_push(&near, I->type_trail.data[i]->name);
    const Symbol *found = sym_find_nearest(t->name, near.data, near.len, &I->env->budget);
    if (!found && (kind == KIND_TYPE || kind == KIND_DTYPE))
        found = env_suggest(I->env, t->name, true);
    if (found) {
        diag_set_guess(d, found);
    } else if (I->type_trail.len == 0 && t->name->len == 1) {
        diag_add_fact(d,
                      I->in_decl ? "type parameters are declared in brackets: `type T[%s] { ... }`"
                                 : "type parameters are declared in brackets: `def f[%s](...)`",
                      t->name->text);
    }
    return broken(I, kind);
}

/* Whether all declarations that the type leads to are read to their ends. */
static bool is_declared(Type *t, Map *seen) {
    t = t ? type_resolve(t) : NULL;
    if (!t || map_has(seen, t))
        return t != NULL;
    map_set(seen, t, t);
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!is_declared(t->args[i], seen))
            return false;
    if (t->tag != TY_DATA || map_has(seen, t->decl))
        return true;
    map_set(seen, t->decl, t->decl);
    for (uint32_t i = 0; i < t->decl->nctors; i++) {
        const Ctor *c = t->decl->ctors[i];
        for (uint32_t k = 0; k < c->nfields; k++)
            if (!c->fields || !is_declared(c->fields[k], seen))
                return false;
        if (!c->fields)
            return false;
    }
    return true;
}

bool ast_type_is_declared(TypeDecl *decl) {
    Map seen = {0};
    return is_declared(type_data(decl, decl->params, decl->nparams), &seen);
}

/* Rows[n, T] */
static Type *rows_type(Infer *I, const AstType *t) {
    Type *n = size_type(I, t->args.data[0]), *row = infer_ast_type(I, t->args.data[1], KIND_TYPE);
    Map seen = {0};
    bool declared = is_declared(row, &seen);
    Type *all = declared ? type_rows(row, n) : NULL;
    if (all)
        return all;
    Diag *d = infer_error(I, DIAG_R0319, t->args.data[1]->span, "nothing is known of rows of %s",
                          type_text(row));
    if (d)
        diag_add_fact(d, declared ? "`Rows` is of tensors, and of tuples and data of them"
                                  : "values of it hold some of this type; a parameter has "
                                    "room for any: `type T[a] { ... }`");
    return type_error();
}

/* What a declaration does not declare is own to each value: sizes, and in the library dtypes. */
static bool is_own_part(const Infer *I, const AstType *t, Kind kind) {
    bool of_library = t->span.source && (t->span.source->flags & SOURCE_INTERNAL);
    return I->in_decl && t->args.len == 0 &&
           (kind == KIND_DIM || (kind == KIND_DTYPE && of_library));
}

/* A name as a type: a parameter, a dtype, String, a declared type. */
static Type *name_type(Infer *I, const AstType *t, Kind kind) {
    const Symbol *name = t->name;
    Type *size = kind == KIND_DIM && !t->args.len ? named_find(I, name, t->span) : NULL;
    if (size)
        return size;
    TypeParam *p = type_scope_find(I, name);
    if (p) {
        if (t->args.len) {
            infer_error(I, DIAG_R0108, t->span, "`%s` is a type parameter and takes no arguments",
                        name->text);
            return broken(I, kind);
        }
        return param_type(I, p, kind, t->span);
    }
    DType dtype;
    bool is_string = strcmp(name->text, "String") == 0;
    if (t->args.len && (is_string || dtype_find(name->text, name->len, &dtype))) {
        infer_error(I, DIAG_R0108, t->span, "`%s` takes no arguments", name->text);
        return broken(I, kind);
    }
    if (dtype_find(name->text, name->len, &dtype)) {
        if (kind == KIND_TYPE) {
            Type *b = type_dtype(dtype);
            b->origin = annotation_origin(I, t->span);
            return type_tensor(type_shape(NULL, 0), b);
        }
        if (kind == KIND_DTYPE)
            return type_dtype(dtype);
        return wrong_kind(I, t->span, place_of_name(name->text), KIND_DTYPE, kind);
    }
    bool is_type = kind == KIND_TYPE;
    if (is_string)
        return is_type ? type_string()
                       : wrong_kind(I, t->span, place_of_name("String"), KIND_TYPE, kind);
    TypeDecl *decl = env_find_type(I->env, name);
    if (decl) {
        if (!is_type)
            return wrong_kind(I, t->span, place_of_name(name->text), KIND_TYPE, kind);
        return decl_type(I, decl, t);
    }
    if (is_type && t->args.len == 2 && strcmp(name->text, "Rows") == 0)
        return rows_type(I, t);
    if (is_own_part(I, t, kind)) {
        AstTypeParam declared = {.name = name, .span = t->span};
        p = type_scope_bind(I, &declared);
        vec_push(&I->own_dims, p);
        return param_type(I, p, kind, t->span);
    }
    return unknown_name(I, t, kind);
}

void signature_enter(Infer *I) { I->signature++; }

void signature_leave(Infer *I) {
    if (--I->signature == 0)
        vec_clear(&I->numbered);
}

/* `?`, or `?1`: the same unknown wherever the type has this number. */
static Type *unknown_type(Infer *I, const AstType *t, Kind kind) {
    for (size_t i = 0; t->value && i < I->numbered.len; i++) {
        Type *found = I->numbered.data[i].unknown;
        if (I->numbered.data[i].number == t->value)
            return found->kind == kind
                       ? found
                       : wrong_kind(I, t->span,
                                    (TypePlace){.kind = PLACE_UNKNOWN, .index = (uint32_t)t->value},
                                    found->kind, kind);
    }
    const Origin *origin = annotation_origin(I, t->span);
    bool each = I->of_several || I->in_decl || (I->of_calls && !t->value);
    NumberedUnknown made = {t->value, each ? type_any_each(kind, origin) : type_any(kind, origin)};
    if (t->value)
        vec_push(&I->numbered, made);
    return made.unknown;
}

static Type *dim_type(Infer *I, const AstType *t) {
    switch (t->op) {
    case DIM_INT: return type_dim_int(t->value, annotation_origin(I, t->span));
    case DIM_ANY: return unknown_type(I, t, KIND_DIM);
    case DIM_ADD:
    case DIM_SUB:
    case DIM_MUL:
    case DIM_FLOORDIV:
    case DIM_MIN:
    case DIM_MAX: break;
    }
    Type *a = infer_ast_type(I, t->args.data[0], KIND_DIM);
    Type *b = infer_ast_type(I, t->args.data[1], KIND_DIM);
    switch (t->op) {
    case DIM_ADD: return dim_add(a, b);
    case DIM_SUB: return dim_sub(a, b);
    case DIM_MUL: return dim_mul(a, b);
    case DIM_FLOORDIV: return dim_floordiv(a, b);
    case DIM_MIN: return dim_min(a, b);
    case DIM_MAX: return dim_max(a, b);
    case DIM_INT:
    case DIM_ANY: break;
    }
    return a;
}

static Type *shape_type(Infer *I, const AstType *t) {
    Type **dims = mem_new_n(Type *, t->args.len + 1);
    if (t->args.len > TENSOR_MAX_RANK) {
        infer_error(I, DIAG_R0301, t->span, "a tensor has at most %d axes, and this shape has %zu",
                    TENSOR_MAX_RANK, t->args.len);
        return broken(I, KIND_SHAPE);
    }
    for (size_t i = 0; i < t->args.len; i++)
        dims[i] = size_type(I, t->args.data[i]);
    return type_shape(dims, (uint32_t)t->args.len);
}

static Type *fn_type(Infer *I, const AstType *t) {
    if (t->params.len || t->where.len) {
        infer_error(I, DIAG_R0209, t->span,
                    "a type with parameters of its own can only stand as "
                    "a whole annotation");
        return type_error();
    }
    Type **params = mem_new_n(Type *, t->args.len + 1);
    const Symbol **names = mem_new_n(const Symbol *, t->args.len + 1);
    NamedScope scope;
    I->of_calls++;
    named_open(I, &scope, names, params, (uint32_t)t->args.len);
    for (size_t i = 0; i < t->args.len; i++) {
        params[i] = infer_ast_type(I, t->args.data[i], KIND_TYPE);
        named_check_places(I, &scope, params[i], t->args.data[i]->span);
        names[i] = i < t->arg_names.len ? t->arg_names.data[i] : NULL;
        scope.n++;
    }
    Type *result = infer_ast_type(I, t->result, KIND_TYPE);
    Type **named = named_close(I);
    I->of_calls--;
    /* A function in a declaration or a foreign signature may do anything; other effects are inferred. */
    Type *effect = I->in_decl ? type_allocates() : solver_var(I->s, KIND_EFFECT);
    return type_fn_named(params, (uint32_t)t->args.len, result, effect, named);
}

static Type *written(Infer *I, const AstType *t, Kind is, Kind kind, const char *what, Type *type) {
    return is == kind ? type : wrong_kind(I, t->span, place_of_words(what), is, kind);
}

/* The shape in `Tensor[(3,), float32]`. A lone size is none, except in parentheses; `?` is an unknown shape. */
static Type *tensor_shape(Infer *I, const AstType *t) {
    if (t->kind != AST_TYPE_DIM || t->op == DIM_ANY)
        return infer_ast_type(I, t, KIND_SHAPE);
    Diag *d = infer_error(I, DIAG_R0107, t->span, "a size stands where a shape is wanted");
    if (d) {
        const char *text = t->span.source->text + t->span.begin;
        diag_add_fact(d, "a shape has parentheses: `(%.*s,)`", (int)(t->span.end - t->span.begin),
                      text);
    }
    return broken(I, KIND_SHAPE);
}

/* The `_` of an annotation is what inference finds. A declaration has no value to find it from: the first use
 * would settle it for all others. */
static Type *hole_type(Infer *I, const AstType *t, Kind kind) {
    if (!I->in_decl)
        return solver_var(I->s, kind);
    Diag *d = infer_error(I, DIAG_R0102, t->span,
                          "a declaration says its types, and `_` says none");
    if (d && kind == KIND_DIM)
        diag_add_fix(d, t->span, "?", NULL, "`?` is a size that each value has for itself");
    else if (d)
        diag_add_fact(d, "a parameter stands for any: `type T[a] { ... }`");
    return broken(I, kind);
}

static Type *read_type(Infer *I, const AstType *t, Kind kind) {
    switch (t->kind) {
    case AST_TYPE_NAME: return name_type(I, t, kind);
    case AST_TYPE_TENSOR: {
        if (kind != KIND_TYPE)
            return wrong_kind(I, t->span, place_of_words("a tensor type"), KIND_TYPE, kind);
        Type *shape = tensor_shape(I, t->shape);
        return type_tensor(shape, infer_ast_type(I, t->dtype, KIND_DTYPE));
    }
    case AST_TYPE_SHAPE:
        if (kind == KIND_TYPE && t->args.len == 0)
            return type_unit();
        if (kind != KIND_SHAPE)
            return wrong_kind(I, t->span, place_of_words("this"), KIND_SHAPE, kind);
        return shape_type(I, t);
    case AST_TYPE_DIM:
        if (kind == KIND_SHAPE && t->op == DIM_ANY)
            return unknown_type(I, t, KIND_SHAPE);
        if (kind == KIND_SHAPE) { /* (3) is (3,) */
            Type *dim = size_type(I, t);
            return type_shape(&dim, 1);
        }
        if (kind != KIND_DIM)
            return wrong_kind(I, t->span, place_of_words("this"), KIND_DIM, kind);
        return dim_type(I, t);
    case AST_TYPE_FN:
        if (kind != KIND_TYPE)
            return wrong_kind(I, t->span, place_of_words("a function type"), KIND_TYPE, kind);
        return fn_type(I, t);
    case AST_TYPE_TUPLE: {
        if (kind == KIND_SHAPE)
            return shape_type(I, t);
        if (kind != KIND_TYPE)
            return wrong_kind(I, t->span, place_of_words("a tuple type"), KIND_TYPE, kind);
        Type **args = mem_new_n(Type *, t->args.len + 1);
        for (size_t i = 0; i < t->args.len; i++)
            args[i] = infer_ast_type(I, t->args.data[i], KIND_TYPE);
        return type_tuple(args, (uint32_t)t->args.len);
    }
    case AST_TYPE_REF: {
        Type *elem = infer_ast_type(I, t->result, KIND_TYPE);
        return written(I, t, KIND_TYPE, kind, "a reference type", type_ref(elem));
    }
    case AST_TYPE_DERIV: {
        Type *of = infer_ast_type(I, t->result, KIND_TYPE);
        return written(I, t, KIND_TYPE, kind, "the type of a derivative", type_deriv(of));
    }
    case AST_TYPE_FORALL:
        infer_error(I, DIAG_R0209, t->span,
                    "a type with parameters of its own can only stand as "
                    "a whole annotation");
        return broken(I, kind);
    case AST_TYPE_HOLE: return hole_type(I, t, kind);
    }
    return broken(I, kind);
}

Type *infer_ast_type(Infer *I, const AstType *t, Kind kind) {
    signature_enter(I);
    Type *type = read_type(I, t, kind);
    signature_leave(I);
    return type;
}

static bool all_full(const AstTypeVec *v) {
    for (size_t i = 0; i < v->len; i++) {
        if (!ast_type_is_full(v->data[i]))
            return false;
    }
    return true;
}

bool ast_type_is_full(const AstType *t) {
    if (!t || t->kind == AST_TYPE_HOLE)
        return false;
    if (!all_full(&t->args))
        return false;
    if (t->shape && !ast_type_is_full(t->shape))
        return false;
    if (t->dtype && !ast_type_is_full(t->dtype))
        return false;
    return !t->result || ast_type_is_full(t->result);
}

/* ---- where ----------------------------------------------------------------------------------- */

/* An operator with this relation. `sum` and `all` share one: the operator that takes most dtypes is chosen. */
static const Op *op_of_relation(const RelDef *def) {
    const Op *found = NULL;
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        if (op->relation == def && (!found || (op->dtypes | found->dtypes) != found->dtypes))
            found = op;
    }
    return found;
}

/* Whether the arguments of a constraint are sizes: where one is more than a name, as in `Same(2 * n, m)`. */
static bool is_of_sizes(const AstConstraint *c) {
    for (size_t i = 0; i < c->args.len; i++) {
        if (c->args.data[i]->kind == AST_TYPE_DIM)
            return true;
    }
    return false;
}

/* A relation as written. */
typedef struct Written {
    const RelDef *def;
    Type **args;
    uint32_t n;
    const Attrs *attrs;
    const void *data;
    const Op *op;
    bool of_class; /* a dtype class of a declared parameter, which the parameter itself keeps */
} Written;

/* Whether the argument is no type but what Field or Proj reads: a name or a number. */
static bool is_read_name(const AstType *t, const RelDef *def) {
    if (def == &rel_proj)
        return t->kind == AST_TYPE_DIM && t->op == DIM_INT;
    return t->kind == AST_TYPE_NAME && !t->args.len;
}

/* The constant of `Index(a, (0,), b)`, or NULL. */
static const int64_t *constant_index(const AstConstraint *c) {
    const AstType *t = c->args.len == 3 ? c->args.data[1] : NULL;
    bool one = t && (t->kind == AST_TYPE_SHAPE || t->kind == AST_TYPE_TUPLE) && t->args.len == 1;
    const AstType *d = one ? t->args.data[0] : NULL;
    return d && d->kind == AST_TYPE_DIM && d->op == DIM_INT ? &d->value : NULL;
}

static bool read_constraint(Infer *I, const AstConstraint *c, Written *out) {
    const RelDef *def = rel_find(c->name);
    if (!def) {
        Diag *d = infer_error(I, DIAG_R0106, c->span, "there is no relation `%s`", c->name->text);
        if (d)
            d->missing = c->name;
        const Symbol *near = rel_find_nearest(c->name, &I->env->budget);
        if (d && near)
            diag_set_guess(d, near);
        return false;
    }
    const AstType *name = NULL;
    const int64_t *constant = def == &rel_index ? constant_index(c) : NULL;
    Type **args = mem_new_n(Type *, c->args.len + 1);
    uint32_t n = 0;
    bool named = def == &rel_field || def == &rel_proj;
    bool dtype = rel_dtype_class(def) != 0;
    Kind kind = dtype ? KIND_DTYPE : def == &rel_same && is_of_sizes(c) ? KIND_DIM : KIND_TYPE;
    for (size_t i = 0; i < c->args.len; i++) {
        if (named && i == 1) {
            name = c->args.data[i];
            continue;
        }
        Type *one = constant && i == 1 ? type_scalar(DT_I32) : NULL;
        args[n++] = one ? type_tuple(&one, 1) : infer_ast_type(I, c->args.data[i], kind);
    }
    if (def->nargs >= 0 && (uint32_t)def->nargs != n) {
        infer_error(I, DIAG_R0106, c->span, "`%s` relates %d type%s, and %u %s given",
                    c->name->text, def->nargs, def->nargs == 1 ? "" : "s", n,
                    n == 1 ? "is" : "are");
        return false;
    }
    uint32_t least =
        def == &rel_index
            ? 3
            : 1; /* how many arguments a relation has at least, if it takes any number */
    if (def->nargs < 0 && n < least) {
        infer_error(I, DIAG_R0106, c->span, "`%s` relates at least %u type%s, and %u %s given",
                    c->name->text, least, least == 1 ? "" : "s", n, n == 1 ? "is" : "are");
        return false;
    }
    if (named && !is_read_name(name, def)) {
        infer_error(I, DIAG_R0106, name->span, "`%s` has %s here, as in `%s`", c->name->text,
                    def == &rel_proj ? "a number" : "the name of a field",
                    def == &rel_proj ? "Proj(a, 0, b)" : "Field(a, name, b)");
        return false;
    }
    *out = (Written){.def = def, .args = args, .n = n, .data = constant};
    bool broadcasts =
        def == &rel_broadcast ||
        def == &rel_broadcast_compare; /* the relation of every operator that broadcasts */
    out->op = def == &rel_index ? &op_index : broadcasts ? NULL : op_of_relation(def);
    out->of_class = dtype && n && type_resolve(args[0])->tag == TY_PARAM;
    if (name && def == &rel_field)
        out->data = name->name;
    if (name && def == &rel_proj)
        out->data = &name->value;
    if (out->op && out->op->nattrs) {
        static const AstAttrVec none;
        out->attrs = infer_attrs(I, out->op, c->attrs ? c->attrs : &none, c->span);
        return out->attrs != NULL;
    }
    if (out->op)
        out->attrs = attrs_defaults(
            out->op); /* no attribute is written: the operator alone is meant */
    return true;
}

static void assume(Infer *I, const Written *w, Span span) {
    solver_assume_fact(I->s, w->def, w->args, w->n, w->attrs, w->data, span);
}

static void post(Infer *I, const Written *w, Span span) {
    Relation *r = solver_post(I->s, w->def, w->args, w->n, w->attrs, span);
    r->data = w->data;
    r->op = w->op;
}

/* Note [Declared tensors]. In `fn [a, b, c](a) -> c where Broadcast(a, Tensor[(4,), b], c)` the `where`
 * says of a and c that they are tensors, and with which dtype. So while it is read the parameters are
 * variables, and its relations run: what they find holds of every instance. What is left is made rigid
 * then: a itself where nothing was found, else the parts of its tensor, which stands for a in the body
 * (param.known). The scheme has the parameter again (scheme.c). */
void where_open(Infer *I, TypeParam *const *declared, size_t n, const AstConstraintVec *where) {
    (void)I;
    for (size_t i = 0; i < n && where->len; i++)
        declared[i]->open = true;
}

static bool mentions_var(const Written *w) {
    for (uint32_t i = 0; i < w->n; i++) {
        if (type_has_vars(w->args[i]))
            return true;
    }
    return false;
}

/* Makes the variables of a declared parameter's type rigid: each is itself in every instance. */
static void make_rigid(Infer *I, Type *t) {
    TypeVec vars = {0};
    Map seen = {0};
    type_collect(t, TY_VAR, &seen, &vars);
    for (size_t i = 0; i < vars.len; i++) {
        Type *v = vars.data[i];
        if (v->kind == KIND_EFFECT)
            continue;
        Type *p = solver_rigid(I->s, v->kind, v->kind == KIND_TYPE ? v->var.hint : NULL);
        if (v->kind == KIND_DTYPE)
            p->param.dtypes = v->var.dtypes;
        solver_unify(I->s, v, p);
    }
}

static void close_param(Infer *I, TypeParam *p) {
    p->open = false;
    if (!p->type || p->kind != KIND_TYPE)
        return;
    make_rigid(I, p->type);
    p->type = type_zonk(p->type);
    if (p->type->tag == TY_PARAM && p->type->param.name == p->name)
        return;
    p->rigid = solver_rigid(I->s, KIND_TYPE, p->name);
    p->rigid->param.known = p->type;
    Type *shape = p->type->tag == TY_TENSOR ? p->type->tensor.shape : NULL;
    if (shape && shape->tag == TY_PARAM && !shape->param.name)
        shape->param.known = p->rigid;
}

/* Collects the declared parameters of a signature, and those in the types they are known to be. */
static void collect_own(TypeParam *const *declared, size_t n, Map *own) {
    TypeVec found = {0};
    for (size_t i = 0; i < n; i++) {
        if (declared[i]->type)
            type_collect(declared[i]->type, TY_PARAM, own, &found);
        if (declared[i]->rigid)
            map_set(own, declared[i]->rigid, declared[i]->rigid);
    }
}

static bool is_of_own(const Written *w, const Map *own) {
    Map seen = {0};
    TypeVec found = {0};
    for (uint32_t i = 0; i < w->n; i++)
        type_collect(w->args[i], TY_PARAM, &seen, &found);
    for (size_t i = 0; i < found.len; i++) {
        if (map_has(own, found.data[i]))
            return true;
    }
    return false;
}

/* Assumes a `where`. What it says of the declared parameters is a fact in the body, because every caller has to
 * make it true. What it says of other types must hold here. */
bool where_assume(Infer *I, TypeParam *const *declared, size_t n, const AstConstraintVec *where) {
    bool ok = true;
    Map own = {0};
    size_t checks = solver_nresiduals(I->s), facts = solver_count_facts(I->s);
    Written *all = mem_new_n(Written, where->len + 1);
    for (size_t i = 0; i < where->len; i++)
        ok &= read_constraint(I, &where->data[i], &all[i]);
    solver_enter(I->s);
    for (size_t i = 0; i < where->len && ok; i++) {
        const Written *w = &all[i];
        if (w->of_class || !mentions_var(w)) {
            assume(I, w, where->data[i].span);
            continue;
        }
        for (uint32_t k = 0; w->def == &rel_broadcast && k < w->n; k++) {
            if (type_resolve(w->args[k])->tag == TY_VAR)
                solver_unify(I->s, w->args[k], solver_tensor_var(I->s));
        }
        post(I, w, where->data[i].span);
    }
    ok = ok && solver_learn_relations(I->s);
    solver_leave(I->s);
    for (size_t i = 0; i < n; i++)
        close_param(I, declared[i]);
    solver_forget_facts(I->s,
                        facts); /* assume the facts anew, in the order in which they were written */
    collect_own(declared, n, &own);
    for (size_t i = 0; i < where->len && ok; i++) {
        if (is_of_own(&all[i], &own))
            assume(I, &all[i], where->data[i].span);
    }
    solver_drop_residuals(I->s, checks);
    for (size_t i = 0; i < where->len && ok; i++) {
        if (!is_of_own(&all[i], &own))
            post(I, &all[i], where->data[i].span);
    }
    return ok;
}

/* fn [A](T, …) -> U where R(T, …), or forall (A : K), T where R(T, …), at the head of an annotation. */
Type *annotation_begin(Infer *I, const AstType *t, AnnotationHead *head) {
    *head = (AnnotationHead){.facts = solver_count_facts(I->s), .infer_where = I->infer_where};
    size_t mark = type_scope_mark(I);
    VEC(TypeParam *) declared = {0};
    AstConstraintVec where = {0};
    for (;; t = t->result) {
        for (size_t i = 0; i < t->params.len; i++)
            vec_push(&declared, type_scope_bind(I, &t->params.data[i]));
        for (size_t i = 0; i < t->where.len; i++)
            vec_push(&where, t->where.data[i]);
        if (t->kind != AST_TYPE_FORALL)
            break;
    }
    AstType plain = *t;
    plain.params.len = plain.where.len = 0;
    head->has_where = where.len > 0;
    signature_enter(I);
    where_open(I, declared.data, declared.len, &where);
    Type *type = infer_ast_type(I, &plain, KIND_TYPE);
    if (head->has_where) {
        where_assume(I, declared.data, declared.len, &where);
        type = type_zonk(type);
    }
    signature_leave(I);
    head->declared = mem_new_n(Type *, declared.len + 1);
    head->ndeclared = (uint32_t)declared.len;
    for (size_t i = 0; i < declared.len; i++)
        head->declared[i] = type_param_rigid(I, declared.data[i]);
    type_scope_restore(I, mark);
    I->infer_where = !head->has_where;
    solver_set_infer_where(I->s, I->infer_where);
    return type;
}

void annotation_end(Infer *I, const AnnotationHead *head) {
    solver_forget_facts(I->s, head->facts);
    I->infer_where = head->infer_where;
    solver_set_infer_where(I->s, I->infer_where);
}

/* effect: that of calling the function, or NULL where it is not known. */
static Scheme *annotation_scheme(Infer *I, const AstType *t, Type *effect) {
    AnnotationHead head;
    solver_enter(I->s);
    Type *type = annotation_begin(I, t, &head);
    if (effect && type->tag == TY_FN)
        solver_unify(I->s, effect, type->fn.effect);
    solver_run(I->s);
    Scheme *scheme = scheme_generalise_declared(I->s, type, head.declared, head.ndeclared, false);
    annotation_end(I, &head);
    solver_leave(I->s);
    return scheme;
}

Scheme *infer_ast_scheme(Infer *I, const AstType *t) { return annotation_scheme(I, t, NULL); }

Scheme *annotation_announce(Infer *I, const AstType *t) {
    return annotation_scheme(I, t, solver_var(I->s, KIND_EFFECT));
}
