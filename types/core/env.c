/* SPDX-License-Identifier: Apache-2.0 */
/* The environment: namespaces, modules, rules. */
#include "types/core/env_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

Env *env_new(const EnvHooks *hooks) {
    Env *env = mem_new(Env);
    if (hooks)
        env->hooks = *hooks;
    env->prelude = mem_new(Namespace);
    env->session = mem_new(Namespace);
    env->here = env->session;
    env_begin_run(env);
    return env;
}

Namespace *env_enter_prelude(Env *env) {
    Namespace *before = env->here;
    env->here = env->prelude;
    return before;
}

void env_leave_prelude(Env *env, Namespace *before) { env->here = before; }

Namespace *env_copy_types(const Env *env) {
    Namespace *copy = mem_new(Namespace);
    map_add(&copy->types, &env->here->types);
    map_add(&copy->ctors, &env->here->ctors);
    return copy;
}

void env_put_types_back(Env *env, const Namespace *copy) {
    env->here->types = copy->types;
    env->here->ctors = copy->ctors;
}

/* ---- finding --------------------------------------------------------------------------------- */

Global *env_find_global(const Env *env, const Symbol *name, bool *in_prelude) {
    *in_prelude = false;
    Global *g = map_find(&env->here->globals, name);
    if (g)
        return g;
    g = map_find(&env->prelude->globals, name);
    if (!g && env->hooks.load_global) {
        env->hooks.load_global(env->hooks.ctx, name);
        g = map_find(&env->prelude->globals, name);
    }
    *in_prelude = g != NULL && env->here != env->prelude;
    return g;
}

Global *env_find_loaded(Env *env, const Symbol *name) {
    Global *g = map_find(&env->here->globals, name);
    return g ? g : map_find(&env->prelude->globals, name);
}

Global *env_prelude_global(Env *env, const Symbol *name) {
    Global *g = map_find(&env->prelude->globals, name);
    if (!g && env->hooks.load_global) {
        env->hooks.load_global(env->hooks.ctx, name);
        g = map_find(&env->prelude->globals, name);
    }
    return g;
}

Ctor *env_find_ctor(const Env *env, const Symbol *name, bool *in_prelude) {
    *in_prelude = false;
    Ctor *c = map_find(&env->here->ctors, name);
    if (c || env->here == env->prelude)
        return c;
    c = map_find(&env->prelude->ctors, name);
    *in_prelude = c != NULL;
    return c;
}

const Op *env_find_op(const Env *env, const Symbol *name) {
    const Op *op = map_find(&env->here->ops, name);
    if (!op)
        op = op_find(name);
    if (!op)
        op = map_find(&env->prelude->ops, name);
    return op;
}

TypeDecl *env_find_type(Env *env, const Symbol *name) {
    const char *version = strchr(name->text,
                                 '#'); /* the name of a replaced type, as it is printed: T#1 */
    if (version)
        name = sym_intern_n(name->text, (size_t)(version - name->text));
    TypeDecl *d = map_find(&env->here->types, name);
    if (!d)
        d = map_find(&env->prelude->types, name);
    if (!version)
        return d;
    uint32_t n = (uint32_t)strtoul(version + 1, NULL, 10);
    while (d && d->version != n)
        d = d->earlier;
    return n ? d : NULL;
}

TypeDecl *env_prelude_type(const Env *env, const char *name) {
    return map_find(&env->prelude->types, sym_intern(name));
}

Ctor *env_prelude_ctor(const Env *env, const char *name) {
    return map_find(&env->prelude->ctors, sym_intern(name));
}

bool env_has_module(const Env *env, const Symbol *name) { return map_has(&env->modules, name); }

Binding env_find(Env *env, const Symbol *name, Sigil sigil) {
    bool global_in_prelude, ctor_in_prelude;
    Global *g = env_find_global(env, name, &global_in_prelude);
    const Op *op = env_find_op(env, name);
    if (sigil != SIGIL_NONE) {
        if (g)
            return (Binding){.kind = BIND_GLOBAL, .global = g};
        if (op && op->foreign && sigil == SIGIL_GLOBAL)
            return (Binding){.kind = BIND_OP, .op = op};
        return (Binding){.kind = BIND_NONE};
    }
    Ctor *c = env_find_ctor(env, name, &ctor_in_prelude);
    if (c && !ctor_in_prelude)
        return (Binding){.kind = BIND_CTOR, .ctor = c, .decl = c->decl};
    if (g && !global_in_prelude && !g->sigil)
        return (Binding){.kind = BIND_GLOBAL, .global = g};
    if (op)
        return (Binding){.kind = BIND_OP, .op = op};
    if (c)
        return (Binding){.kind = BIND_CTOR, .ctor = c, .decl = c->decl};
    if (g)
        return (Binding){.kind = BIND_GLOBAL, .global = g};
    TypeDecl *d = env_find_type(env, name);
    if (d)
        return (Binding){.kind = BIND_TYPE, .decl = d};
    if (map_has(&env->here->modules, name))
        return (Binding){.kind = BIND_MODULE};
    return (Binding){.kind = BIND_NONE};
}

static int by_text(const void *a, const void *b) {
    const Symbol *const *x = a, *const *y = b;
    return strcmp((*x)->text, (*y)->text);
}

void env_each_name(Env *env, SymbolVec *out) {
    SymbolVec all = {0};
    const Namespace *spaces[] = {env->here, env->prelude};
    for (int k = 0; k < (env->here == env->prelude ? 1 : 2); k++) {
        const Map *maps[] = {&spaces[k]->globals, &spaces[k]->types, &spaces[k]->ctors,
                             &spaces[k]->ops};
        for (int m = 0; m < 4; m++) {
            const void *key;
            void *value;
            for (size_t i = 0; map_next(maps[m], &i, &key, &value);)
                vec_push(&all, key);
        }
    }
    for (size_t i = 0; i < op_count(); i++)
        vec_push(&all, sym_intern(op_at(i)->name));
    if (env->hooks.each_name)
        env->hooks.each_name(env->hooks.ctx, &all);
    if (all.len)
        qsort(all.data, all.len, sizeof *all.data, by_text);
    for (size_t i = 0; i < all.len; i++) {
        if ((i == 0 || all.data[i] != all.data[i - 1]) && !symbol_is_hidden(all.data[i]))
            vec_push(out, all.data[i]);
    }
}

/* ---- binding --------------------------------------------------------------------------------- */

void env_bind_global(Env *env, Global *g) {
    if (!g->home)
        g->home = env->here;
    map_set(&env->here->globals, g->name, g);
}

void env_bind_type(Env *env, TypeDecl *decl) {
    TypeDecl *old = map_find(&env->here->types, decl->name);
    if (old && old != decl) {
        old->superseded = true;
        /* the first one prints as T#1, the next as T#2 */
        uintptr_t n = (uintptr_t)map_find(&env->versions, decl->name) + 1;
        map_set(&env->versions, decl->name, (void *)n);
        old->version = (uint32_t)n;
        decl->earlier = old;
        for (uint32_t i = 0; i < old->nctors; i++) {
            if (map_find(&env->here->ctors, old->ctors[i]->name) == old->ctors[i])
                map_remove(&env->here->ctors, old->ctors[i]->name);
        }
    }
    map_set(&env->here->types, decl->name, decl);
    for (uint32_t i = 0; i < decl->nctors; i++)
        map_set(&env->here->ctors, decl->ctors[i]->name, decl->ctors[i]);
}

void env_bind_op(Env *env, const Op *op) {
    map_set(&env->here->ops, sym_intern(op->name), (void *)op);
}

/* ---- modules --------------------------------------------------------------------------------- */

void env_begin_module(Env *env, const Symbol *module) {
    Namespace *n = mem_new(Namespace);
    n->name = module;
    n->outer = env->here;
    env->here = n;
}

void env_end_module(Env *env) {
    Namespace *n = env->here;
    if (!n->outer)
        BUG("env_end_module without env_begin_module");
    env->here = n->outer;
    n->outer = NULL;
    map_set(&env->modules, n->name, n);
}

static bool is_private(const Symbol *name) {
    const char *dot = strrchr(name->text, '.');
    return (dot ? dot + 1 : name->text)[0] == '_';
}

/* The name under which a module's `name` is bound by the import. */
static const Symbol *qualified(const Symbol *prefix, const Symbol *name) {
    return prefix ? sym_qualify(prefix, name) : name;
}

/* Copies what `from` binds under `name` into the namespace being filled, as `as`. */
static bool open_name(Env *env, const Namespace *from, const Symbol *name, const Symbol *as) {
    bool found = false;
    void *v;
    if ((v = map_find(&from->globals, name))) {
        map_set(&env->here->globals, as, v);
        found = true;
    }
    if ((v = map_find(&from->types, name))) {
        map_set(&env->here->types, as, v);
        found = true;
    }
    if ((v = map_find(&from->ctors, name))) {
        map_set(&env->here->ctors, as, v);
        found = true;
    }
    if ((v = map_find(&from->ops, name))) {
        map_set(&env->here->ops, as, v);
        found = true;
    }
    return found;
}

static void open_all(Env *env, const Namespace *from, const Symbol *prefix) {
    const Map *maps[] = {&from->globals, &from->types, &from->ctors, &from->ops};
    for (int m = 0; m < 4; m++) {
        const void *key;
        void *value;
        for (size_t i = 0; map_next(maps[m], &i, &key, &value);) {
            const Symbol *name = key;
            if (is_private(name))
                continue;
            const Symbol *as = qualified(prefix, name);
            /* a member never hides an operator */
            if (prefix && op_find(as))
                continue;
            open_name(env, from, name, as);
        }
    }
}

bool env_open_module(Env *env, const Item *import, Diags *diags) {
    const Symbol *module = import->path ? sym_intern(import->path) : import->name.sym;
    Namespace *from = map_find(&env->modules, module);
    if (!from) {
        diag_error(diags, DIAG_R0105, import->name.span.source ? import->name.span : import->span,
                   "there is no module `%s`", module->text)
            ->missing = module;
        return false;
    }
    if (import->has_names) {
        bool ok = true;
        for (size_t i = 0; i < import->names.len; i++) {
            const Name *n = &import->names.data[i];
            if (open_name(env, from, n->sym, n->sym))
                continue;
            ok = false;
            Diag *d = diag_error(diags, DIAG_R0105, n->span, "module `%s` has no `%s`",
                                 module->text, n->sym->text);
            d->missing = n->sym;
            SymbolVec names = {0};
            const Map *maps[] = {&from->globals, &from->types, &from->ctors};
            for (int m = 0; m < 3; m++) {
                const void *key;
                void *value;
                for (size_t k = 0; map_next(maps[m], &k, &key, &value);)
                    vec_push(&names, key);
            }
            const Symbol *near = sym_find_nearest(n->sym, names.data, names.len, &env->budget);
            if (near)
                diag_set_guess(d, near);
        }
        return ok;
    }
    const Symbol *prefix = import->path ? import->as : import->as ? import->as : module;
    if (prefix)
        map_set(&env->here->modules, prefix, from);
    open_all(env, from, prefix);
    if (prefix &&
        map_has(&from->globals, module)) /* after `import plot`, plot(x) is plot.plot(x) */
        (void)open_name(env, from, module, prefix);
    return true;
}

/* ---- rules and residual checks --------------------------------------------------------------- */

const Rule *env_find_rule(Env *env, const Op *op, RuleKind kind) {
    const Rule *rule = map_find(&env->rules[kind], op);
    if (rule || !env->hooks.load_rules || op->foreign)
        return rule;
    env->hooks.load_rules(env->hooks.ctx, sym_intern(op->name));
    return map_find(&env->rules[kind], op);
}

void env_bind_rule(Env *env, const Rule *rule) {
    bool hidden = env->here == env->prelude && map_has(&env->rules[rule->kind], rule->op);
    if (!hidden)
        map_set(&env->rules[rule->kind], rule->op, (void *)rule);
}

InferCounts env_counts(const Env *env) { return env->counts; }

const ResidualVec *env_residuals(Env *env) { return &env->residuals; }

void env_begin_run(Env *env) { budget_begin_run(&env->budget); }

void env_list_checks(Env *env, bool on) { env->list_checks = on; }
