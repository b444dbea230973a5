/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes of one item: locals, type parameters, and how a name is resolved (LANGUAGE §1).
 *
 * Locals stand in one map from name to innermost binding; a trail undoes what a block bound, so
 * that chains of 90,000 lets cost what they are long. */
#include "types/infer/state.h"

size_t scope_mark(const Infer *I) { return I->trail.len; }

void scope_warn_hidden(Infer *I, const Name *name) {
    const Source *source = name->span.source;
    const Ctor *hidden = name->sigil == SIGIL_NONE && name->sym && source &&
                                 !(source->flags & SOURCE_INTERNAL)
                             ? scope_find_ctor(I, name->sym)
                             : NULL;
    Diag *d = hidden ? infer_warning(I, DIAG_R0904, name->span,
                                     "`%s` hides the constructor of type `%s`", name->sym->text,
                                     hidden->decl->name->text)
                     : NULL;
    if (d)
        diag_add_fact(d, "in patterns `%s` is still the constructor", name->sym->text);
}

void scope_hide_ctor(Infer *I, const Name *name) {
    Ctor *hidden = name->sigil == SIGIL_NONE && name->sym ? scope_find_ctor(I, name->sym) : NULL;
    scope_warn_hidden(I, name);
    if (hidden)
        hidden->hides = NULL;
}

Local *scope_bind(Infer *I, const Symbol *name, bool sigil, Var *var) {
    Local *l = mem_new(Local);
    l->name = name;
    l->var = var;
    l->sigil = sigil;
    l->enter = ++I->time;
    l->leave = UINT32_MAX;
    l->shadowed = map_find(&I->locals, name);
    map_set(&I->locals, name, l);
    vec_push(&I->trail, l);
    vec_push(&I->all, l);
    return l;
}

void scope_restore(Infer *I, size_t mark) {
    if (I->trail.len > mark)
        I->time++;
    while (I->trail.len > mark) {
        Local *l = vec_pop(&I->trail);
        l->leave = I->time;
        if (l->shadowed) {
            map_set(&I->locals, l->name, l->shadowed);
        } else {
            map_remove(&I->locals, l->name);
        }
    }
}

size_t type_scope_mark(const Infer *I) { return I->type_trail.len; }

void type_scope_enter(Infer *I, TypeParam *p) {
    p->shadowed = map_find(&I->type_params, p->name);
    map_set(&I->type_params, p->name, p);
    vec_push(&I->type_trail, p);
}

static TypeParam *type_scope_push(Infer *I, const Symbol *name) {
    TypeParam *p = mem_new(TypeParam);
    p->name = name;
    type_scope_enter(I, p);
    return p;
}

TypeParam *type_scope_bind(Infer *I, const AstTypeParam *declared) {
    TypeParam *p = type_scope_push(I, declared->name);
    p->span = declared->span;
    if (declared->kind) {
        if (!kind_find(declared->kind, &p->kind))
            BUG("the reader let kind `%s` through", declared->kind->text);
        p->kind_known = true;
        p->use = declared->span;
    }
    return p;
}

TypeParam *type_scope_bind_to(Infer *I, const Symbol *name, Type *type) {
    TypeParam *p = type_scope_push(I, name);
    p->type = type;
    p->kind = type->kind;
    p->kind_known = true;
    return p;
}

void type_scope_restore(Infer *I, size_t mark) {
    while (I->type_trail.len > mark) {
        TypeParam *p = vec_pop(&I->type_trail);
        if (p->shadowed) {
            map_set(&I->type_params, p->name, p->shadowed);
        } else {
            map_remove(&I->type_params, p->name);
        }
    }
}

TypeParam *type_scope_find(const Infer *I, const Symbol *name) {
    return map_find(&I->type_params, name);
}

Ctor *scope_find_ctor(Infer *I, const Symbol *name) {
    bool in_prelude;
    return env_find_ctor(I->env, name, &in_prelude);
}

/* The user's global of this name: the one that this file binds before the current item, else that of the namespace
 * being filled. */
static Global *find_user_global(Infer *I, const Symbol *name, Global **prelude) {
    *prelude = NULL;
    FileName *f = file_name_at(I, name, I->position, false);
    if (f && f->global)
        return f->global;
    bool in_prelude;
    Global *g = env_find_global(I->env, name, &in_prelude);
    if (g && in_prelude) {
        *prelude = g;
        return NULL;
    }
    return g;
}

static Resolved resolved_global(Infer *I, Global *g) {
    if (I->used)
        map_set(I->used, g, g);
    return (Resolved){.kind = NAME_GLOBAL, .global = g};
}

static Resolved resolved_local(Local *l) {
    l->used = true;
    return (Resolved){.kind = NAME_LOCAL, .local = l};
}

Resolved scope_resolve(Infer *I, const Name *name) {
    const Symbol *sym = name->sym;
    Local *local = map_find(&I->locals, sym);
    Global *prelude;
    switch (name->sigil) {
    case SIGIL_LOCAL: {
        if (local)
            return resolved_local(local);
        Global *g = find_user_global(I, sym, &prelude);
        if (g && g->kind != GLOBAL_DEF && g->kind != GLOBAL_BUILTIN)
            return resolved_global(I, g);
        return (Resolved){.kind = NAME_NONE};
    }
    case SIGIL_GLOBAL: {
        Global *g = find_user_global(I, sym, &prelude);
        if (g)
            return resolved_global(I, g);
        const Op *op = env_find_op(I->env, sym);
        if (op && op->foreign)
            return (Resolved){.kind = NAME_OP, .op = op};
        if (prelude)
            return resolved_global(I, prelude);
        return (Resolved){.kind = NAME_NONE};
    }
    case SIGIL_NONE: break;
    }
    bool versioned = I->module && I->module->versioned;
    bool ctor_in_prelude = false;
    Ctor *ctor = env_find_ctor(I->env, sym, &ctor_in_prelude);
    const Op *op = env_find_op(I->env, sym);
    TypeParam *param = type_scope_find(I, sym);
    if (versioned) { /* sizes and a rule's attributes have no sigil */
        if (ctor)
            return (Resolved){.kind = NAME_CTOR, .ctor = ctor};
        if (op)
            return (Resolved){.kind = NAME_OP, .op = op};
        if (param && param->kind_known && param->kind == KIND_DIM)
            return (Resolved){.kind = NAME_DIM, .param = param};
        if (I->rule_op && op_attr_index(I->rule_op, sym->text) >= 0)
            return (Resolved){.kind = NAME_ATTR};
        return (Resolved){.kind = NAME_NONE};
    }
    if (local && !local->sigil)
        return resolved_local(local);
    if (param && !local && param->kind_known && param->kind == KIND_DIM)
        return (Resolved){.kind = NAME_DIM, .param = param};
    if (I->rule_op && op_attr_index(I->rule_op, sym->text) >= 0)
        return (Resolved){.kind = NAME_ATTR};
    Global *g = find_user_global(I, sym, &prelude);
    bool taken = ctor || op || prelude;
    if (local && !taken)
        return resolved_local(local);
    bool own_ctor = ctor && !ctor_in_prelude;
    if (g && !g->sigil && !(own_ctor && ctor->hides == g))
        return resolved_global(I, g);
    if (own_ctor)
        return (Resolved){.kind = NAME_CTOR, .ctor = ctor};
    if (op)
        return (Resolved){.kind = NAME_OP, .op = op};
    if (ctor)
        return (Resolved){.kind = NAME_CTOR, .ctor = ctor};
    if (prelude)
        return resolved_global(I, prelude);
    if (local)
        return resolved_local(local);
    if (g)
        return resolved_global(I, g);
    if (param && param->kind_known && param->kind == KIND_DIM)
        return (Resolved){.kind = NAME_DIM, .param = param};
    return (Resolved){.kind = NAME_NONE};
}
