/* SPDX-License-Identifier: Apache-2.0 */
/* Types as written, to Types.
 *
 * The kind wanted travels down: `n` in the place of a size is a Dim. A type parameter without a
 * written kind gets that of its first use; a second kind is an error that shows both. */
#include <string.h>

#include "types/infer_state.h"

const char *kind_name(Kind kind)
{
    switch (kind) {
    case KIND_TYPE: return "Type";
    case KIND_SHAPE: return "Shape";
    case KIND_DTYPE: return "BaseType";
    case KIND_DIM: return "Dim";
    case KIND_EFFECT: return "Effect";
    }
    return "";
}

bool kind_find(const Symbol *name, Kind *out)
{
    static const Kind kinds[] = {KIND_TYPE, KIND_SHAPE, KIND_DTYPE, KIND_DIM};
    for (int i = 0; i < 4; i++) {
        if (strcmp(kind_name(kinds[i]), name->text) == 0) {
            *out = kinds[i];
            return true;
        }
    }
    return false;
}

static const char *kind_words(Kind kind)
{
    switch (kind) {
    case KIND_TYPE: return "a type";
    case KIND_SHAPE: return "a shape";
    case KIND_DTYPE: return "a dtype";
    case KIND_DIM: return "a size";
    case KIND_EFFECT: return "an effect";
    }
    return "";
}

static const Origin *annotation_origin(Span span)
{
    Origin *o = mem_new(Origin);
    o->kind = ORIGIN_ANNOTATION;
    o->span = span;
    return o;
}

/* What stands for a type that could not be read. */
static Type *broken(Infer *I, Kind kind)
{
    return kind == KIND_TYPE ? type_error() : solver_var(I->s, kind);
}

static Type *wrong_kind(Infer *I, Span span, const char *what, Kind is, Kind wanted)
{
    infer_error(I, DIAG_R0107, span, "%s is %s, where %s is wanted", what, kind_words(is),
                kind_words(wanted));
    return broken(I, wanted);
}

static Type *param_type(Infer *I, TypeParam *p, Kind kind, Span span)
{
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
    if (!p->type) p->type = solver_rigid(I->s, p->kind, p->name);
    return p->type;
}

static Type *decl_type(Infer *I, TypeDecl *decl, const AstType *t)
{
    if (t->args.len != decl->nparams) {
        infer_error(I, DIAG_R0108, t->span, "type `%s` takes %u argument%s, and %zu %s given",
                    decl->name->text, decl->nparams, decl->nparams == 1 ? "" : "s", t->args.len,
                    t->args.len == 1 ? "is" : "are");
        return type_error();
    }
    Type **args = mem_new_n(Type *, decl->nparams + 1);
    for (uint32_t i = 0; i < decl->nparams; i++)
        args[i] = infer_ast_type(I, t->args.data[i], decl->params[i]->kind);
    return type_data(decl, args, decl->nparams);
}

static Type *unknown_name(Infer *I, const AstType *t, Kind kind)
{
    Diag *d = infer_error(I, DIAG_R0102, t->span, "there is no %s `%s`",
                          kind == KIND_DIM     ? "size"
                          : kind == KIND_SHAPE ? "shape"
                          : kind == KIND_DTYPE ? "dtype"
                                               : "type",
                          t->name->text);
    if (!d) return broken(I, kind);
    SymbolVec near = {0};
    for (size_t i = 0; i < I->type_trail.len; i++) vec_push(&near, I->type_trail.data[i]->name);
    const Symbol *found = sym_find_nearest(t->name, near.data, near.len);
    if (!found && (kind == KIND_TYPE || kind == KIND_DTYPE))
        found = env_suggest(I->env, t->name, true);
    if (found) {
        diag_set_label(d, "did you mean `%s`?", found->text);
    } else if (I->type_trail.len == 0 && t->name->len == 1) {
        diag_add_fact(d, I->in_decl ? "type parameters are declared in brackets: `type T[%s] { ... }`"
                                    : "type parameters are declared in brackets: `def f[%s](...)`",
                      t->name->text);
    }
    return broken(I, kind);
}

/* A: a parameter, a dtype, String, a declared type */
static Type *name_type(Infer *I, const AstType *t, Kind kind)
{
    const Symbol *name = t->name;
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
            b->origin = annotation_origin(t->span);
            return type_tensor(type_shape(NULL, 0), b);
        }
        if (kind == KIND_DTYPE) return type_dtype(dtype);
        return wrong_kind(I, t->span, fmt_text("`%s`", name->text), KIND_DTYPE, kind);
    }
    bool is_type = kind == KIND_TYPE;
    if (is_string)
        return is_type ? type_string() : wrong_kind(I, t->span, "`String`", KIND_TYPE, kind);
    TypeDecl *decl = env_find_type(I->env, name);
    if (decl) {
        if (!is_type)
            return wrong_kind(I, t->span, fmt_text("`%s`", name->text), KIND_TYPE, kind);
        return decl_type(I, decl, t);
    }
    if (kind == KIND_DIM && I->in_decl && t->args.len == 0) {
        AstTypeParam declared = {.name = name, .span = t->span};
        p = type_scope_bind(I, &declared);
        vec_push(&I->own_dims, p);
        return param_type(I, p, KIND_DIM, t->span);
    }
    return unknown_name(I, t, kind);
}

void signature_enter(Infer *I) { I->signature++; }

void signature_leave(Infer *I)
{
    if (--I->signature == 0) vec_clear(&I->numbered);
}

/* `?1`: the same unknown wherever the type has this number. */
static Type *numbered_unknown(Infer *I, const AstType *t)
{
    for (size_t i = 0; i < I->numbered.len; i++) {
        if (I->numbered.data[i].number == t->value) return I->numbered.data[i].unknown;
    }
    NumberedUnknown found = {t->value, type_any(annotation_origin(t->span))};
    vec_push(&I->numbered, found);
    return found.unknown;
}

static Type *dim_type(Infer *I, const AstType *t)
{
    switch (t->op) {
    case DIM_INT: return type_dim_int(t->value, annotation_origin(t->span));
    case DIM_ANY: return t->value ? numbered_unknown(I, t) : type_any(annotation_origin(t->span));
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

static Type *shape_type(Infer *I, const AstType *t)
{
    Type **dims = mem_new_n(Type *, t->args.len + 1);
    if (t->args.len > TENSOR_MAX_RANK) {
        infer_error(I, DIAG_R0301, t->span, "a tensor has at most %d axes, and this shape has %zu",
                    TENSOR_MAX_RANK, t->args.len);
        return broken(I, KIND_SHAPE);
    }
    for (size_t i = 0; i < t->args.len; i++)
        dims[i] = infer_ast_type(I, t->args.data[i], KIND_DIM);
    return type_shape(dims, (uint32_t)t->args.len);
}

static Type *fn_type(Infer *I, const AstType *t)
{
    if (t->params.len || t->where.len) {
        infer_error(I, DIAG_R0209, t->span, "a type with parameters of its own can only stand as "
                                            "a whole annotation");
        return type_error();
    }
    Type **params = mem_new_n(Type *, t->args.len + 1);
    for (size_t i = 0; i < t->args.len; i++)
        params[i] = infer_ast_type(I, t->args.data[i], KIND_TYPE);
    Type *result = infer_ast_type(I, t->result, KIND_TYPE);
    /* What a declaration or a foreign signature holds may do anything; else it is inferred. */
    Type *effect = I->in_decl ? type_allocates() : solver_var(I->s, KIND_EFFECT);
    return type_fn(params, (uint32_t)t->args.len, result, effect);
}

static Type *written(Infer *I, const AstType *t, Kind is, Kind kind, const char *what, Type *type)
{
    return is == kind ? type : wrong_kind(I, t->span, what, is, kind);
}

/* `Tensor[3, float32]`: a size is no shape, but in parentheses it is one. */
static Type *tensor_shape(Infer *I, const AstType *t)
{
    if (t->kind != AST_TYPE_DIM) return infer_ast_type(I, t, KIND_SHAPE);
    Diag *d = infer_error(I, DIAG_R0107, t->span, "a size stands where a shape is wanted");
    if (d) {
        const char *text = t->span.source->text + t->span.begin;
        diag_add_fact(d, "a shape has parentheses: `(%.*s,)`", (int)(t->span.end - t->span.begin),
                      text);
    }
    return broken(I, KIND_SHAPE);
}

static Type *read_type(Infer *I, const AstType *t, Kind kind)
{
    switch (t->kind) {
    case AST_TYPE_NAME: return name_type(I, t, kind);
    case AST_TYPE_TENSOR: {
        if (kind != KIND_TYPE) return wrong_kind(I, t->span, "a tensor type", KIND_TYPE, kind);
        Type *shape = tensor_shape(I, t->shape);
        return type_tensor(shape, infer_ast_type(I, t->dtype, KIND_DTYPE));
    }
    case AST_TYPE_SHAPE:
        if (kind == KIND_TYPE && t->args.len == 0) return type_unit();
        if (kind != KIND_SHAPE) return wrong_kind(I, t->span, "this", KIND_SHAPE, kind);
        return shape_type(I, t);
    case AST_TYPE_DIM:
        if (kind == KIND_SHAPE) { /* (3) is (3,) */
            Type *dim = infer_ast_type(I, t, KIND_DIM);
            return type_shape(&dim, 1);
        }
        if (kind != KIND_DIM) return wrong_kind(I, t->span, "this", KIND_DIM, kind);
        return dim_type(I, t);
    case AST_TYPE_FN:
        if (kind != KIND_TYPE) return wrong_kind(I, t->span, "a function type", KIND_TYPE, kind);
        return fn_type(I, t);
    case AST_TYPE_TUPLE: {
        if (kind == KIND_SHAPE) return shape_type(I, t);
        if (kind != KIND_TYPE) return wrong_kind(I, t->span, "a tuple type", KIND_TYPE, kind);
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
        infer_error(I, DIAG_R0209, t->span, "a type with parameters of its own can only stand as "
                                            "a whole annotation");
        return broken(I, kind);
    case AST_TYPE_HOLE: return solver_var(I->s, kind);
    }
    return broken(I, kind);
}

Type *infer_ast_type(Infer *I, const AstType *t, Kind kind)
{
    signature_enter(I);
    Type *type = read_type(I, t, kind);
    signature_leave(I);
    return type;
}

static bool all_full(const AstTypeVec *v)
{
    for (size_t i = 0; i < v->len; i++) {
        if (!ast_type_is_full(v->data[i])) return false;
    }
    return true;
}

bool ast_type_is_full(const AstType *t)
{
    if (!t || t->kind == AST_TYPE_HOLE) return false;
    if (!all_full(&t->args)) return false;
    if (t->shape && !ast_type_is_full(t->shape)) return false;
    if (t->dtype && !ast_type_is_full(t->dtype)) return false;
    return !t->result || ast_type_is_full(t->result);
}

/* ---- where ------------------------------------------------------------------------------------ */

/* Of the operators that share a relation, as `sum` and `all` do, one that takes most dtypes. */
static const Op *op_of_relation(const RelDef *def)
{
    const Op *found = NULL;
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        if (op->relation == def && (!found || (op->dtypes | found->dtypes) != found->dtypes)) found = op;
    }
    return found;
}

/* Sizes are written where one of the arguments is no mere name: `Same(2 * n, m)`. */
static bool is_of_sizes(const AstConstraint *c)
{
    for (size_t i = 0; i < c->args.len; i++) {
        if (c->args.data[i]->kind == AST_TYPE_DIM) return true;
    }
    return false;
}

static bool one_constraint(Infer *I, const AstConstraint *c, bool assume)
{
    const RelDef *def = rel_find(c->name);
    if (!def) {
        Diag *d = infer_error(I, DIAG_R0106, c->span, "there is no relation `%s`", c->name->text);
        const Symbol *near = rel_find_nearest(c->name);
        if (d && near) diag_set_label(d, "did you mean `%s`?", near->text);
        return false;
    }
    const void *data = NULL;
    const AstType *name = NULL;
    Type **args = mem_new_n(Type *, c->args.len + 1);
    uint32_t n = 0;
    bool named = def == &rel_field || def == &rel_proj;
    bool dtype = def == &rel_num || def == &rel_float || def == &rel_int;
    Kind kind = dtype ? KIND_DTYPE : def == &rel_same && is_of_sizes(c) ? KIND_DIM : KIND_TYPE;
    for (size_t i = 0; i < c->args.len; i++) {
        if (named && i == 1) {
            name = c->args.data[i];
            continue;
        }
        args[n++] = infer_ast_type(I, c->args.data[i], kind);
    }
    if (def->nargs >= 0 && (uint32_t)def->nargs != n) {
        infer_error(I, DIAG_R0106, c->span, "`%s` relates %d type%s, and %u %s given",
                    c->name->text, def->nargs, def->nargs == 1 ? "" : "s", n, n == 1 ? "is" : "are");
        return false;
    }
    if (name && def == &rel_field) data = name->name;
    if (name && def == &rel_proj) data = &name->value;
    const Op *op = op_of_relation(def);
    const Attrs *attrs = NULL;
    if (op && op->nattrs) {
        static const AstAttrVec none;
        attrs = infer_attrs(I, op, c->attrs ? c->attrs : &none, c->span);
        if (!attrs) return false;
    } else if (op && def != &rel_broadcast && def != &rel_broadcast_compare) {
        attrs = attrs_defaults(op); /* none: they say which operator it is */
    }
    /* a class of a declared parameter is part of the parameter */
    if (assume || (dtype && n && type_resolve(args[0])->tag == TY_PARAM)) {
        solver_assume(I->s, def, args, n, attrs, (void *)data, c->span);
    } else {
        Relation *r = solver_post(I->s, def, args, n, attrs, c->span);
        r->data = data;
        r->op = op;
    }
    return true;
}

bool infer_where(Infer *I, const AstConstraintVec *where, bool assume)
{
    bool ok = true;
    for (size_t i = 0; i < where->len; i++) ok &= one_constraint(I, &where->data[i], assume);
    return ok;
}

/* fn [A](T, …) -> U where R(T, …), or forall (A : K), T, at the head of an annotation. */
Type *annotation_begin(Infer *I, const AstType *t, bool assume, AnnotationHead *head)
{
    *head = (AnnotationHead){.facts = solver_mark(I->s), .infer_where = I->infer_where};
    size_t mark = type_scope_mark(I);
    VEC(TypeParam *) declared = {0};
    while (t->kind == AST_TYPE_FORALL) {
        for (size_t i = 0; i < t->params.len; i++)
            vec_push(&declared, type_scope_bind(I, &t->params.data[i]));
        t = t->result;
    }
    AstType plain = *t;
    if (t->kind == AST_TYPE_FN) {
        plain.params.len = plain.where.len = 0;
        for (size_t i = 0; i < t->params.len; i++)
            vec_push(&declared, type_scope_bind(I, &t->params.data[i]));
        head->has_where = t->where.len > 0;
    }
    signature_enter(I);
    Type *type = infer_ast_type(I, &plain, KIND_TYPE);
    if (t->kind == AST_TYPE_FN) infer_where(I, &t->where, assume);
    signature_leave(I);
    head->declared = mem_new_n(Type *, declared.len + 1);
    head->ndeclared = (uint32_t)declared.len;
    for (size_t i = 0; i < declared.len; i++) {
        TypeParam *p = declared.data[i];
        head->declared[i] =
            p->type ? p->type : param_type(I, p, p->kind_known ? p->kind : KIND_TYPE, p->span);
    }
    type_scope_restore(I, mark);
    if (assume) {
        I->infer_where = !head->has_where;
        solver_set_infer_where(I->s, I->infer_where);
    }
    return type;
}

void annotation_end(Infer *I, const AnnotationHead *head)
{
    solver_forget(I->s, head->facts);
    I->infer_where = head->infer_where;
    solver_set_infer_where(I->s, I->infer_where);
}

/* effect: that of calling it, or NULL: nothing is known of it. */
static Scheme *annotation_scheme(Infer *I, const AstType *t, Type *effect)
{
    AnnotationHead head;
    solver_enter(I->s);
    Type *type = annotation_begin(I, t, false, &head);
    if (effect && type->tag == TY_FN) solver_unify(I->s, effect, type->fn.effect);
    solver_run(I->s);
    Scheme *scheme =
        scheme_generalise_declared(I->s, type, head.declared, head.ndeclared, false);
    solver_leave(I->s);
    return scheme;
}

Scheme *infer_ast_scheme(Infer *I, const AstType *t) { return annotation_scheme(I, t, NULL); }

Scheme *annotation_announce(Infer *I, const AstType *t)
{
    return annotation_scheme(I, t, solver_var(I->s, KIND_EFFECT));
}
