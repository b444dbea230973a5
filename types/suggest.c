/* SPDX-License-Identifier: Apache-2.0 */
/* Names that might have been meant. The distance is sym_find_nearest's; here the candidates are
 * gathered: locals in scope, type parameters, the file's items, what the session has, operators. */
#include <string.h>

#include "types/infer_state.h"

static void add_keys(SymbolVec *out, const Map *m)
{
    const void *key;
    void *value;
    for (size_t i = 0; map_next(m, &i, &key, &value);) {
        const Symbol *s = key;
        if (s->text[0] != '_') vec_push(out, s);
    }
}

static void add_env_names(SymbolVec *out, const Env *env)
{
    const Namespace *spaces[] = {env->here, env->prelude};
    for (int k = 0; k < (env->here == env->prelude ? 1 : 2); k++) {
        add_keys(out, &spaces[k]->globals);
        add_keys(out, &spaces[k]->ctors);
        add_keys(out, &spaces[k]->ops);
    }
    for (size_t i = 0; i < op_count(); i++) vec_push(out, sym_intern(op_at(i)->name));
    if (env->hooks.each_name) env->hooks.each_name(env->hooks.ctx, out);
}

static void add_type_names(SymbolVec *out, const Env *env)
{
    add_keys(out, &env->here->types);
    if (env->here != env->prelude) add_keys(out, &env->prelude->types);
    for (int t = 0; t < DTYPE_COUNT; t++) vec_push(out, sym_intern(dtype_info[t].name));
    vec_push(out, sym_intern("String"));
    vec_push(out, sym_intern("Tensor"));
}

static const Symbol *nearest(const Symbol *name, const SymbolVec *from)
{
    return sym_find_nearest(name, from->data, from->len);
}

const Symbol *env_suggest(Env *env, const Symbol *name, bool types)
{
    SymbolVec names = {0};
    if (types) {
        add_type_names(&names, env);
    } else {
        add_env_names(&names, env);
    }
    return nearest(name, &names);
}

void scope_report_unknown(Infer *I, const Name *name)
{
    const char *sigil =
        name->sigil == SIGIL_LOCAL ? "%" : name->sigil == SIGIL_GLOBAL ? "@" : "";
    Diag *d = infer_error(I, DIAG_R0101, name->span, "there is no `%s%s`", sigil, name->sym->text);
    if (!d) return;
    const TypeParam *param = name->sigil == SIGIL_NONE ? type_scope_find(I, name->sym) : NULL;
    if (param) {
        const char *b = name->sym->text;
        if (param->kind_known && param->kind == KIND_DTYPE)
            diag_add_fact(d, "`%s` is a dtype; before `(`, `[` or `-` a cast to it is written "
                             "`(Tensor[_, %s]) (...)`", b, b);
        else
            diag_add_fact(d, "`%s` is a type parameter, no value", b);
        return;
    }
    SymbolVec near = {0};
    for (size_t i = 0; i < I->trail.len; i++) vec_push(&near, I->trail.data[i]->name);
    for (size_t i = 0; i < I->type_trail.len; i++) vec_push(&near, I->type_trail.data[i]->name);
    const Symbol *found = nearest(name->sym, &near);
    SymbolVec far = {0};
    if (!found) {
        add_keys(&far, &I->names);
        add_env_names(&far, I->env);
        found = nearest(name->sym, &far);
    }
    const char *dot = strrchr(name->sym->text, '.');
    if (name->sigil == SIGIL_NONE && dot) {
        const Symbol *module = sym_intern_n(name->sym->text, (size_t)(dot - name->sym->text));
        if (env_has_module(I->env, module) &&
            !map_has(&I->env->here->modules, module)) {
            diag_add_help(d, "`import %s;` brings the module's names", module->text);
            return;
        }
    }
    if (!found) return;
    Name as = {.sym = found, .sigil = SIGIL_NONE};
    Resolved r = scope_resolve(I, &as);
    Span where = r.kind == NAME_LOCAL    ? r.local->var->span
                 : r.kind == NAME_GLOBAL ? r.global->span
                                         : span_none();
    bool shown = where.source && !(where.source->flags & SOURCE_INTERNAL);
    if (found == name->sym) {
        if (r.kind == NAME_LOCAL) {
            diag_add_help(d, "there is a local `%s`: write `%s`", found->text, found->text);
        } else if (r.kind == NAME_OP) {
            diag_add_help(d, "`%s` is an operator: write it without `@`", found->text);
        } else {
            diag_add_help(d, "`%s` is a global: write `@%s`", found->text, found->text);
        }
        return;
    }
    if (shown && where.source != d->primary.span.source && (where.source->flags & SOURCE_PROMPT)) {
        diag_set_label(d, "did you mean `%s`, defined at %s?", found->text, where.source->name);
        return;
    }
    diag_set_label(d, "did you mean `%s`?", found->text);
    if (shown) diag_add_label(d, where, "`%s` is defined here", found->text);
}
