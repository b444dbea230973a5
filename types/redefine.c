/* SPDX-License-Identifier: Apache-2.0 */
/* Slots (LANGUAGE §7). A global is a slot for each name and type. At the prompt a definition of the
 * same or a more general type replaces the code in the slot, for everyone; one of another type gets
 * a new slot, and the definitions that mention the name are checked again: those that come out at
 * their old type keep their slots, others get new ones in turn, those that fail are named and
 * refuse to run until they check. Closures and values already made keep the old slot.
 *
 * Here too: copies of definitions for explicit type arguments. */
#include <string.h>

#include "types/infer_state.h"

static const char *scheme_text(const Scheme *s)
{
    Str out = {0};
    TypeNamer namer = {0};
    scheme_print(&out, s, &namer);
    return str_text(&out);
}

/* Whether `now` can stand wherever `old` stood. */
static bool same_or_more_general(const Scheme *now, const Scheme *old)
{
    if (strcmp(scheme_text(now), scheme_text(old)) == 0) {
        return !type_has_vars(now->type) || now->type == old->type;
    }
    if (type_has_vars(old->type) || old->nrelations) return false;
    Diags scratch = {0};
    Solver *s = solver_new(&scratch);
    solver_enter(s);
    Type *t = scheme_instantiate(s, now, span_none(), NULL, 0, NULL);
    bool ok = solver_unify(s, t, old->type) && solver_run(s);
    return ok && scratch.errors == 0 && solver_nwaiting(s) == 0;
}

typedef struct Relink {
    Map seen;
    const Global *from;
    Global *to;
} Relink;

static void relink(void *ctx, Expr *e)
{
    Relink *r = ctx;
    while (e) {
        if (map_has(&r->seen, e)) return;
        map_set(&r->seen, e, e);
        if (e->kind == EXPR_GLOBAL && e->global == r->from) e->global = r->to;
        if (e->kind != EXPR_LET) break;
        relink(ctx, e->a); /* chains in a loop */
        e = e->body;
    }
    if (e) expr_each_child(e, relink, ctx);
}

static void relink_value(Expr *value, const Global *from, Global *to)
{
    Relink r = {.from = from, .to = to};
    if (value) relink(&r, value);
}

/* Puts what `now` is into the slot `old`. */
static void replace(Global *old, Global *now)
{
    relink_value(now->value, now, old);
    old->kind = now->kind;
    old->value = now->value;
    old->scheme = now->scheme;
    old->span = now->span;
    old->doc = now->doc;
    old->item = now->item;
    old->symbol = now->symbol;
    old->sigil = now->sigil;
    old->by_types = now->by_types;
    old->broken = false;
    old->uses.data = now->uses.data;
    old->uses.len = now->uses.len;
    old->uses.cap = now->uses.cap;
    for (size_t i = 0; i < old->uses.len; i++) {
        if (old->uses.data[i] == now) old->uses.data[i] = old;
    }
}

/* The definitions that mention a name, by name. */
static void note_uses(Env *env, Global *g)
{
    if (g->kind != GLOBAL_DEF) return;
    for (size_t i = 0; i < g->uses.len; i++) {
        const Symbol *name = g->uses.data[i]->name;
        GlobalVec *users = map_find(&env->dependents, name);
        if (!users) map_set(&env->dependents, name, users = mem_new(GlobalVec));
        bool known = false;
        for (size_t k = 0; k < users->len && !known; k++) known = users->data[k] == g;
        if (!known) vec_push(users, g);
    }
}

Global *env_slot(Infer *I, Global *g)
{
    Env *env = I->env;
    Global *old = map_find(&env->here->globals, g->name);
    bool prompt = I->mode == INFER_PROMPT;
    if (prompt && old && old != g && old->scheme && g->scheme && old->kind == g->kind &&
        same_or_more_general(g->scheme, old->scheme)) {
        replace(old, g);
        /* items of this source that were checked against g */
        for (size_t i = 0; i < I->module->items.len; i++) {
            FileName *f = map_find(&I->names, I->module->items.data[i]->name.sym);
            for (; f; f = f->earlier) {
                if (f->global && f->global != old) relink_value(f->global->value, g, old);
            }
        }
        note_uses(env, old);
        Changed c = {old->name, true};
        vec_push(&I->changed, c);
        return old;
    }
    env_bind_global(env, g);
    if (prompt) {
        note_uses(env, g);
        Changed c = {g->name, false};
        if (old && old != g) vec_push(&I->changed, c);
    }
    return g;
}

/* ---- checking again ------------------------------------------------------------------------------------ */

static bool is_current(const Env *env, const Global *g)
{
    return map_find(&env->here->globals, g->name) == g;
}

/* Definitions to check again after `name` changed: those that mention it (only broken ones when
 * its type is as before), and so on. */
static void collect_dependents(Env *env, const Symbol *name, bool broken_only, Map *seen,
                               GlobalVec *out)
{
    GlobalVec *users = map_find(&env->dependents, name);
    for (size_t i = 0; users && i < users->len; i++) {
        Global *g = users->data[i];
        if (map_has(seen, g) || !is_current(env, g) || !g->item) continue;
        if (broken_only && !g->broken) continue;
        map_set(seen, g, g);
        vec_push(out, g);
    }
}

typedef struct Recheck {
    Infer *I;
    Map seen, done;
    GlobalVec todo;
    VEC(const char *) failed;
} Recheck;

/* Whether `from` mentions `to`, itself or through others. */
static bool reaches(const Global *from, const Global *to, Map *seen)
{
    if (map_has(seen, from)) return false;
    map_set(seen, from, (void *)from);
    for (size_t i = 0; i < from->uses.len; i++) {
        if (from->uses.data[i] == to || reaches(from->uses.data[i], to, seen)) return true;
    }
    return false;
}

/* `first`, and what it is mutually recursive with. */
static void recursive_group(const Env *env, Global *first, GlobalVec *out)
{
    vec_push(out, first);
    Map seen = {0};
    GlobalVec work = {0};
    vec_push(&work, first);
    while (work.len) {
        const Global *g = vec_pop(&work);
        for (size_t i = 0; i < g->uses.len; i++) {
            Global *used = g->uses.data[i];
            if (map_has(&seen, used)) continue;
            map_set(&seen, used, used);
            vec_push(&work, used);
            Map back = {0};
            if (used != first && used->kind == GLOBAL_DEF && used->item && is_current(env, used) &&
                reaches(used, first, &back))
                vec_push(out, used);
        }
    }
}

static Global *fresh_slot(const Global *old)
{
    Global *g = mem_new(Global);
    *g = *old;
    g->scheme = NULL;
    g->value = NULL;
    g->broken = false;
    g->cell = NULL;
    g->uses.data = NULL;
    g->uses.len = g->uses.cap = 0;
    return g;
}

/* Puts a group that checked into its slots, or into new ones where the type is another. */
static void take_slots(Recheck *r, Global *const *old, Global *const *now, uint32_t n)
{
    Env *env = r->I->env;
    for (uint32_t i = 0; i < n; i++) {
        if (same_or_more_general(now[i]->scheme, old[i]->scheme)) {
            for (uint32_t k = 0; k < n; k++) relink_value(now[k]->value, now[i], old[i]);
            replace(old[i], now[i]);
            note_uses(env, old[i]);
        } else {
            env_bind_global(env, now[i]);
            note_uses(env, now[i]);
            map_set(&r->seen, now[i], now[i]);
            collect_dependents(env, now[i]->name, false, &r->seen, &r->todo);
        }
    }
}

/* A definition, with those it is mutually recursive with, against the names as they are now. */
static void check_again(Recheck *r, Global *first)
{
    Infer *I = r->I;
    if (map_has(&r->done, first)) return;
    GlobalVec group = {0};
    recursive_group(I->env, first, &group);
    uint32_t n = (uint32_t)group.len;
    Diags diags = {0};
    Module module = {.source = first->span.source, .versioned = I->module->versioned};
    Infer J;
    infer_init(&J, I->env, &module, INFER_FILE, &diags);
    Item **items = mem_new_n(Item *, n);
    Global **now = mem_new_n(Global *, n);
    for (uint32_t i = 0; i < n; i++) {
        Global *old = group.data[i];
        map_set(&r->done, old, old);
        map_set(&r->seen, old, old);
        items[i] = old->item;
        now[i] = fresh_slot(old);
        vec_push(&module.items, old->item);
        FileName *f = mem_new(FileName);
        f->item = old->item;
        f->global = now[i];
        f->position = i;
        map_set(&J.names, old->name, f);
        IndexVec mentions = {0};
        ast_item_mentions(&J, old->item, i, &mentions); /* whether it has graph bindings */
    }
    if (infer_defs(&J, items, now, n) && diags.errors == 0) {
        take_slots(r, group.data, now, n);
        return;
    }
    const char *why = diags.list.len ? diags.list.data[0]->message : "it does not check";
    for (uint32_t i = 0; i < n; i++) {
        group.data[i]->broken = true;
        vec_push(&r->failed, fmt_text("`%s`: %s", group.data[i]->name->text, why));
    }
}

void env_recheck(Infer *I)
{
    Recheck r = {.I = I};
    for (size_t i = 0; i < I->module->items.len; i++) {
        FileName *f = map_find(&I->names, I->module->items.data[i]->name.sym);
        for (; f; f = f->earlier) {
            if (f->global) map_set(&r.seen, f->global, f->global);
        }
    }
    for (size_t i = 0; i < I->changed.len; i++) {
        const Changed *c = &I->changed.data[i];
        collect_dependents(I->env, c->name, c->same_type, &r.seen, &r.todo);
    }
    for (size_t i = 0; i < r.todo.len; i++) check_again(&r, r.todo.data[i]);
    if (!r.failed.len) return;
    Diag *d = diag_new(DIAG_R0906, I->module->items.data[0]->span,
                       "%zu definition%s no longer check%s", r.failed.len,
                       r.failed.len == 1 ? "" : "s", r.failed.len == 1 ? "s" : "");
    for (size_t i = 0; i < r.failed.len; i++) diag_add_fact(d, "%s", r.failed.data[i]);
    diag_add_fact(d, "they refuse to run until they check again");
    diag_report(I->diags, d);
}

/* ---- copies for explicit type arguments ------------------------------------------------------------------ */

typedef struct Copy Copy;
struct Copy {
    const char *types;
    Global *global;
    Copy *next;
};

Global *infer_specialised(Infer *I, Global *g, Type **type_args, uint32_t n, Span span)
{
    if (!g->by_types || !g->item || !g->item->fn) return g;
    const AstTypeParamVec *declared = &g->item->fn->type_params;
    Str key = {0};
    for (uint32_t i = 0; i < n; i++) {
        Type *t = type_args[i] ? type_resolve(type_args[i]) : NULL;
        if (t && (t->flags & TYPE_HAS_PARAMS) && I->current) {
            I->current->by_types = true; /* known in the copies of the one that calls it */
            return g;
        }
        if (!t || type_has_vars(t)) {
            infer_error(I, DIAG_R0214, span, "the type arguments of `%s` must be written out here",
                        g->name->text);
            return g;
        }
        str_printf(&key, "%s, ", type_text(t));
    }
    if (n < declared->len) {
        infer_error(I, DIAG_R0214, span, "`%s` needs all its %zu type arguments", g->name->text,
                    declared->len);
        return g;
    }
    for (Copy *c = map_find(&I->env->specialised, g); c; c = c->next) {
        if (strcmp(c->types, str_text(&key)) == 0) return c->global;
    }
    Copy *c = mem_new(Copy);
    c->types = str_text(&key);
    c->next = map_find(&I->env->specialised, g);
    Global *copy = mem_new(Global);
    *copy = *g;
    copy->by_types = false;
    copy->cell = NULL;
    copy->value = NULL;
    copy->uses.data = NULL;
    copy->uses.len = copy->uses.cap = 0;
    c->global = copy;
    map_set(&I->env->specialised, g, c);
    /* The body again, its parameters being these types. */
    Infer J;
    Module own = *I->module;
    own.versioned = g->versioned;
    infer_init(&J, I->env, &own, I->mode, I->diags);
    Namespace *here = I->env->here;
    if (g->home && g->home != here) {
        I->env->here = g->home;
    } else {
        J.names = I->names;
        J.position = I->position;
        J.has_graph = I->has_graph;
    }
    infer_begin_item(&J);
    J.used = mem_new(Map);
    J.current = copy;
    for (uint32_t i = 0; i < n; i++) {
        if (type_args[i]) type_scope_bind_to(&J, declared->data[i].name, type_args[i]);
    }
    AstFn plain = *g->item->fn;
    plain.type_params.len = 0;
    plain.where.len = 0;
    solver_enter(J.s);
    FnHead head = {0};
    fn_begin(&J, &plain, &head);
    if (J.has_graph && plain.body) infer_graph_plan(&J, plain.body);
    copy->scheme = g->scheme;
    copy->value = fn_body(&J, &head, g->name, g->item->span);
    if (infer_failed(&J)) {
        fn_drop(&J, &head);
    } else {
        copy->scheme = fn_end(&J, &head, head.type, g->name);
    }
    solver_leave(J.s);
    infer_finish_item(&J);
    I->env->here = here;
    return copy;
}
