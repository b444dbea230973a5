/* SPDX-License-Identifier: Apache-2.0 */
/* Type declarations: all of a source together, mutually recursive as they like.
 *
 * First the kinds of undeclared parameters are found, by unifying kind slots over all fields (so
 * that `type A[x] { A(B[x]) }  type B[y] { B(Tensor[(y,), float32]) }` makes both Dim); then the
 * fields are converted. Dims a declaration does not declare become its own (`exists`): parameters
 * that belong to each value. */
#include <string.h>

#include "types/infer/state.h"

/* ---- kinds ----------------------------------------------------------------------------------- */

typedef struct KindSlot KindSlot;
struct KindSlot {
    KindSlot *link;
    bool known;
    Kind kind;
    Span span; /* the place that settled the kind */
};

typedef struct DeclKinds {
    Infer *I;
    Map slots; /* TypeDecl -> the slots of its parameters */
    Map scope; /* Symbol -> KindSlot: the parameters of the declaration being walked */
} DeclKinds;

static KindSlot *slot_root(KindSlot *s) {
    while (s->link)
        s = s->link;
    return s;
}

static void slot_set(DeclKinds *k, KindSlot *s, Kind kind, const AstType *at) {
    s = slot_root(s);
    if (!s->known) {
        s->known = true;
        s->kind = kind;
        s->span = at->span;
    } else if (s->kind != kind && at->name) {
        Diag *d = infer_error(k->I, DIAG_R0107, at->span, "`%s` has two kinds: %s and %s",
                              at->name->text, kind_name(s->kind), kind_name(kind));
        if (!d)
            return;
        diag_set_label(d, "%s here", kind_name(kind));
        diag_add_label(d, s->span, "%s here", kind_name(s->kind));
        diag_add_fact(d, "a parameter has one kind: Type, Shape, BaseType or Dim");
    }
}

static void slot_unify(DeclKinds *k, KindSlot *a, KindSlot *b, const AstType *at) {
    a = slot_root(a);
    b = slot_root(b);
    if (a == b)
        return;
    if (!a->known) {
        a->link = b;
    } else if (b->known) {
        slot_set(k, a, b->kind, at);
    } else {
        b->link = a;
    }
}

/* Whether a name is the `Rows` of Rows[n, T]. decl: the type of that name, or NULL. */
static bool is_rows_name(const AstType *t, const TypeDecl *decl) {
    return t->kind == AST_TYPE_NAME && !decl && t->args.len == 2 &&
           strcmp(t->name->text, "Rows") == 0;
}

/* Notes the kinds of the names in a type, which stands where `kind` is wanted, or the kind of the slot `want`. */
static void collect_kinds(DeclKinds *k, const AstType *t, Kind kind, KindSlot *want) {
    if (!t)
        return;
    switch (t->kind) {
    case AST_TYPE_NAME: {
        KindSlot *s = map_find(&k->scope, t->name);
        if (s) {
            if (want) {
                slot_unify(k, s, want, t);
            } else {
                slot_set(k, s, kind, t);
            }
            return;
        }
        TypeDecl *decl = env_find_type(k->I->env, t->name);
        KindSlot *params = decl ? map_find(&k->slots, decl) : NULL;
        if (is_rows_name(t, decl)) {
            collect_kinds(k, t->args.data[0], KIND_DIM, NULL);
            collect_kinds(k, t->args.data[1], KIND_TYPE, NULL);
        }
        for (size_t i = 0; i < t->args.len; i++) {
            if (decl && i < decl->nparams) {
                if (params) {
                    collect_kinds(k, t->args.data[i], KIND_TYPE, &params[i]);
                } else {
                    collect_kinds(k, t->args.data[i], decl->params[i]->kind, NULL);
                }
            }
        }
        return;
    }
    case AST_TYPE_TENSOR:
        collect_kinds(k, t->shape, KIND_SHAPE, NULL);
        collect_kinds(k, t->dtype, KIND_DTYPE, NULL);
        return;
    case AST_TYPE_SHAPE:
    case AST_TYPE_DIM:
        if (want && !slot_root(want)->known)
            slot_set(k, want, t->kind == AST_TYPE_DIM ? KIND_DIM : KIND_SHAPE, t);
        for (size_t i = 0; i < t->args.len; i++)
            collect_kinds(k, t->args.data[i], KIND_DIM, NULL);
        return;
    case AST_TYPE_FN:
    case AST_TYPE_TUPLE:
    case AST_TYPE_REF:
    case AST_TYPE_DERIV:
    case AST_TYPE_FORALL:
        for (size_t i = 0; i < t->args.len; i++)
            collect_kinds(k, t->args.data[i], KIND_TYPE, NULL);
        collect_kinds(k, t->result, KIND_TYPE, NULL);
        return;
    case AST_TYPE_HOLE: return;
    }
}

/* Finds the kinds of all parameters. bad: the declarations that had an error. */
static void find_kinds(Infer *I, Item *const *items, size_t n, TypeDecl **decls, bool *bad) {
    DeclKinds k = {.I = I};
    for (size_t i = 0; i < n; i++) {
        if (!decls[i])
            continue;
        KindSlot *slots = mem_new_n(KindSlot, decls[i]->nparams + 1);
        for (uint32_t p = 0; p < decls[i]->nparams; p++) {
            const AstTypeParam *declared = &items[i]->type_params.data[p];
            slots[p].span = declared->span;
            slots[p].known = declared->kind && kind_find(declared->kind, &slots[p].kind);
        }
        map_set(&k.slots, decls[i], slots);
    }
    for (size_t i = 0; i < n; i++) {
        if (!decls[i])
            continue;
        infer_begin_item(I);
        KindSlot *slots = map_find(&k.slots, decls[i]);
        map_clear(&k.scope);
        for (uint32_t p = 0; p < decls[i]->nparams; p++)
            map_set(&k.scope, items[i]->type_params.data[p].name, &slots[p]);
        for (size_t c = 0; c < items[i]->ctors.len; c++) {
            const AstCtor *ctor = &items[i]->ctors.data[c];
            for (size_t f = 0; f < ctor->fields.len; f++)
                collect_kinds(&k, ctor->fields.data[f].type, KIND_TYPE, NULL);
        }
        bad[i] = infer_failed(I);
    }
    for (size_t i = 0; i < n; i++) {
        if (!decls[i])
            continue;
        KindSlot *slots = map_find(&k.slots, decls[i]);
        for (uint32_t p = 0; p < decls[i]->nparams; p++) {
            KindSlot *s = slot_root(&slots[p]);
            decls[i]->params[p] = type_param(items[i]->type_params.data[p].name,
                                             s->known ? s->kind : KIND_TYPE);
        }
    }
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void report_ctors_twice(Infer *I, const TypeDecl *decl) {
    Map seen = {0}; /* Symbol -> Ctor */
    for (uint32_t i = 0; i < decl->nctors; i++) {
        Ctor *ctor = decl->ctors[i], *first = map_find(&seen, ctor->name);
        if (!first) {
            map_set(&seen, ctor->name, ctor);
            continue;
        }
        Diag *d = infer_error(I, DIAG_R0103, ctor->span, "constructor `%s` is declared twice",
                              ctor->name->text);
        if (d)
            diag_add_label(d, first->span, "first here");
    }
}

static void convert_ctor(Infer *I, const AstCtor *ast, Ctor *ctor) {
    ctor->nfields = (uint32_t)ast->fields.len;
    ctor->fields = mem_new_n(Type *, ctor->nfields + 1);
    if (ast->named)
        ctor->field_names = mem_new_n(const Symbol *, ctor->nfields + 1);
    for (uint32_t f = 0; f < ctor->nfields; f++) {
        const AstField *field = &ast->fields.data[f];
        if (ast->named)
            ctor->field_names[f] = field->name;
        I->annotates = (TypePlace){.kind = ast->named ? PLACE_THE_FIELD : PLACE_FIELD,
                                   .name = ast->named ? field->name->text : NULL,
                                   .of = ctor->name->text,
                                   .index = f + 1};
        ctor->fields[f] = infer_ast_type(I, field->type, KIND_TYPE);
        I->annotates = (TypePlace){0};
    }
}

static void convert_decl(Infer *I, const Item *item, TypeDecl *decl) {
    size_t mark = type_scope_mark(I);
    for (uint32_t p = 0; p < decl->nparams; p++) {
        TypeParam *param = type_scope_bind_to(I, item->type_params.data[p].name, decl->params[p]);
        param->span = param->use = item->type_params.data[p].span;
    }
    vec_clear(&I->own_dims);
    I->in_decl = true;
    for (uint32_t c = 0; c < decl->nctors; c++)
        convert_ctor(I, &item->ctors.data[c], decl->ctors[c]);
    report_ctors_twice(I, decl);
    I->in_decl = false;
    decl->nexists = (uint32_t)I->own_dims.len;
    decl->exists = mem_new_n(Type *, decl->nexists + 1);
    for (uint32_t i = 0; i < decl->nexists; i++)
        decl->exists[i] = I->own_dims.data[i]->type;
    type_scope_restore(I, mark);
}

static TypeDecl *announce(Item *item) {
    TypeDecl *decl = mem_new(TypeDecl);
    decl->name = item->name.sym;
    decl->item = item;
    decl->span = item->name.span.source ? item->name.span : item->span;
    decl->doc = item->doc;
    decl->is_extern = item->kind == ITEM_EXTERN_TYPE;
    decl->nparams = (uint32_t)item->type_params.len;
    decl->params = mem_new_n(Type *, decl->nparams + 1);
    decl->nctors = (uint32_t)item->ctors.len;
    decl->ctors = mem_new_n(Ctor *, decl->nctors + 1);
    for (uint32_t i = 0; i < decl->nctors; i++) {
        Ctor *c = mem_new(Ctor);
        c->name = item->ctors.data[i].name.sym;
        c->span = item->ctors.data[i].name.span;
        c->decl = decl;
        c->tag = i;
        decl->ctors[i] = c;
    }
    return decl;
}

static void report_twice(Infer *I, const TypeDecl *a, const TypeDecl *b) {
    if (a->name == b->name) {
        Diag *d = infer_error(I, DIAG_R0103, b->span, "type `%s` is declared twice", b->name->text);
        if (d)
            diag_add_label(d, a->span, "first here");
    }
}

static void hide_names(Infer *I, const TypeDecl *decl) {
    for (uint32_t c = 0; decl && c < decl->nctors; c++) {
        bool in_prelude;
        Global *bound = env_find_global(I->env, decl->ctors[c]->name, &in_prelude);
        decl->ctors[c]->hides = in_prelude ? NULL : bound;
        const Ctor *old = env_find_ctor(I->env, decl->ctors[c]->name, &in_prelude);
        if (!old || old->decl->name == decl->name)
            continue;
        Diag *d = infer_warning(I, DIAG_R0904, decl->ctors[c]->span,
                                "constructor `%s` hides the one of type `%s`", old->name->text,
                                old->decl->name->text);
        if (d && old->span.source && !(old->span.source->flags & SOURCE_INTERNAL))
            diag_add_label(d, old->span, "declared here before");
        if (d)
            diag_add_fact(d, "from here on `%s` is that of `%s`, also in patterns", old->name->text,
                          decl->name->text);
    }
}

/* Binds the name of `decl` to `old` again, or to nothing if that is NULL. */
static void unbind_type(Env *env, TypeDecl *decl, TypeDecl *old) {
    for (uint32_t i = 0; i < decl->nctors; i++) {
        if (map_find(&env->here->ctors, decl->ctors[i]->name) == decl->ctors[i])
            map_remove(&env->here->ctors, decl->ctors[i]->name);
    }
    if (!old) {
        map_remove(&env->here->types, decl->name);
        return;
    }
    map_set(&env->here->types, decl->name, old);
    map_set(&env->versions, decl->name, (void *)(uintptr_t)(old->version - 1));
    old->superseded = false;
    old->version = 0;
}

/* Whether a type is of rows of a declaration that is not read to its end. in_rows: the type stands within `Rows`. */
static bool type_waits(Infer *I, const AstType *t, bool in_rows) {
    if (!t)
        return false;
    TypeDecl *decl = t->kind == AST_TYPE_NAME ? env_find_type(I->env, t->name) : NULL;
    if (in_rows && decl && !ast_type_is_declared(decl))
        return true;
    bool are_rows = in_rows || is_rows_name(t, decl);
    for (size_t i = 0; i < t->args.len; i++)
        if (type_waits(I, t->args.data[i], are_rows))
            return true;
    return type_waits(I, t->result, in_rows);
}

static bool decl_waits(Infer *I, const Item *item) {
    for (size_t c = 0; c < item->ctors.len; c++)
        for (size_t f = 0; f < item->ctors.data[c].fields.len; f++)
            if (type_waits(I, item->ctors.data[c].fields.data[f].type, false))
                return true;
    return false;
}

/* Converts declarations that are not done: all, or those that wait for no other. Whether there were some. */
static bool convert_some(Infer *I, Item *const *items, size_t n, TypeDecl **decls, bool *done,
                         bool all) {
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!decls[i] || done[i] || (!all && decl_waits(I, items[i])))
            continue;
        infer_begin_item(I);
        convert_decl(I, items[i], decls[i]);
        done[i] = any = true;
    }
    return any;
}

/* Each declaration after those of whose rows it holds some, as far as there is such an order. */
static void convert_all(Infer *I, Item *const *items, size_t n, TypeDecl **decls) {
    bool *done = mem_new_n(bool, n + 1);
    find_kinds(I, items, n, decls, done);
    while (convert_some(I, items, n, decls, done, false))
        continue;
    (void)convert_some(I, items, n, decls, done, true);
}

static bool fields_are_superseded(const TypeDecl *decl, const Map *names) {
    for (uint32_t c = 0; c < decl->nctors; c++) {
        for (uint32_t f = 0; f < decl->ctors[c]->nfields; f++) {
            if (type_is_superseded(decl->ctors[c]->fields[f], names))
                return true;
        }
    }
    return false;
}

/* Declares the session's types that mention a redeclared type anew, all together. Where one of them fails, all stay
 * as they were and mean the old type. */
static void declare_dependents(Infer *I) {
    Env *env = I->env;
    VEC(TypeDecl *) old = {0}, now = {0};
    VEC(Item *) items = {0};
    for (bool more = true; more;) {
        more = false;
        const void *key;
        void *value;
        for (size_t i = 0; !more && map_next(&env->here->types, &i, &key, &value);) {
            TypeDecl *decl = value;
            if (!decl->item || decl->superseded || !fields_are_superseded(decl, &I->types_anew))
                continue;
            vec_push(&old, decl);
            vec_push(&now, announce(decl->item));
            vec_push(&items, decl->item);
            env_bind_type(env, vec_last(&now));
            map_set(&I->types_anew, decl->name, decl);
            more = true;
        }
    }
    if (!old.len)
        return;
    Diags *diags = I->diags, scratch = {0};
    I->diags = &scratch;
    infer_begin_item(I);
    convert_all(I, items.data, items.len, now.data);
    I->diags = diags;
    infer_begin_item(I);
    if (!scratch.errors)
        return;
    for (size_t i = old.len; i-- > 0;) {
        unbind_type(env, now.data[i], old.data[i]);
        map_remove(&I->types_anew, old.data[i]->name);
        for (uint32_t c = 0; c < old.data[i]->nctors; c++)
            map_set(&env->here->ctors, old.data[i]->ctors[c]->name, old.data[i]->ctors[c]);
    }
    vec_push(&I->failed_types, fmt_text("type `%s`, which still means the old one: %s",
                                        old.data[0]->name->text, scratch.list.data[0]->message));
}

bool infer_type_decls(Infer *I, Item *const *items, size_t n, TypeDecl **decls) {
    size_t errors = I->diags->errors;
    Map types = {0}, ctors = {0};
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        decls[i] = NULL;
        if (items[i]->kind != ITEM_TYPE && items[i]->kind != ITEM_EXTERN_TYPE)
            continue;
        any = true;
        infer_begin_item(I);
        decls[i] = announce(items[i]);
        if (strcmp(decls[i]->name->text, "String") == 0)
            infer_error(I, DIAG_R0103, decls[i]->span, "`String` is a type already");
        TypeDecl *earlier = map_find(&types, decls[i]->name);
        if (earlier)
            report_twice(I, earlier, decls[i]);
        map_set(&types, decls[i]->name, decls[i]);
        for (uint32_t c = 0; c < decls[i]->nctors; c++) {
            Ctor *ctor = decls[i]->ctors[c], *first = map_find(&ctors, ctor->name);
            if (first && first->decl != decls[i]) {
                Diag *d = infer_error(I, DIAG_R0103, ctor->span,
                                      "constructor `%s` is declared twice", ctor->name->text);
                if (d)
                    diag_add_label(d, first->span, "first here, of type `%s`",
                                   first->decl->name->text);
            }
            map_set(&ctors, ctor->name, ctor);
        }
    }
    if (!any)
        return true;
    if (I->diags->errors > errors)
        return false;
    for (size_t i = 0; i < n; i++)
        hide_names(I, decls[i]);
    /* restored after a mistake below */
    Namespace saved = *I->env->here;
    Map old_types = {0}, old_ctors = {0};
    const void *key;
    void *value;
    for (size_t i = 0; map_next(&saved.types, &i, &key, &value);)
        map_set(&old_types, key, value);
    for (size_t i = 0; map_next(&saved.ctors, &i, &key, &value);)
        map_set(&old_ctors, key, value);
    TypeDecl **superseded = mem_new_n(TypeDecl *, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!decls[i])
            continue;
        superseded[i] = map_find(&I->env->here->types, decls[i]->name);
        if (superseded[i] && I->mode == INFER_PROMPT)
            map_set(&I->types_anew, decls[i]->name, superseded[i]);
        env_bind_type(I->env, decls[i]);
    }
    infer_begin_item(I);
    convert_all(I, items, n, decls);
    if (I->diags->errors == errors) {
        if (I->types_anew.len)
            declare_dependents(I);
        return true;
    }
    for (size_t i = n; i-- > 0;) {
        if (decls[i])
            unbind_type(I->env, decls[i], superseded[i]);
    }
    I->env->here->types = old_types;
    I->env->here->ctors = old_ctors;
    return false;
}

/* ---- instances ------------------------------------------------------------------------------- */

Type *ctor_open_own(Infer *I, Type *own) {
    own = type_resolve(own);
    return own->kind == KIND_DTYPE ? solver_rigid(I->s, KIND_DTYPE, own->param.name)
                                   : type_any(own->kind, own->origin);
}

CtorInstance ctor_instantiate(Infer *I, const Ctor *ctor, Type **args, Opening opening,
                              Type **exists) {
    const TypeDecl *decl = ctor->decl;
    uint32_t n = decl->nparams + decl->nexists;
    Type **from = mem_new_n(Type *, n + 1), **to = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < decl->nparams; i++) {
        from[i] = decl->params[i];
        to[i] = args && args[i] ? args[i] : solver_var_of_data(I->s, ctor->decl, i);
    }
    for (uint32_t i = 0; i < decl->nexists; i++) {
        uint32_t k = decl->nparams + i;
        from[k] = decl->exists[i];
        to[k] = exists                    ? exists[i]
                : opening == OPEN_UNKNOWN ? ctor_open_own(I, decl->exists[i])
                                          : solver_var(I->s, type_resolve(decl->exists[i])->kind);
    }
    CtorInstance c;
    c.data = type_data((TypeDecl *)decl, to, decl->nparams);
    c.exists = to + decl->nparams;
    c.fields = mem_new_n(Type *, ctor->nfields + 1);
    for (uint32_t i = 0; i < ctor->nfields; i++)
        c.fields[i] = type_substitute(ctor->fields[i], from, to, n);
    return c;
}
