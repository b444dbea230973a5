/* SPDX-License-Identifier: Apache-2.0 */
/* Slots (LANGUAGE §7). A global is a slot for each name and type. At the prompt a definition of the
 * same or a more general type replaces the code in the slot, for everyone; one of another type gets
 * a new slot, and the definitions that mention the name are checked again: those that come out at
 * their old type keep their slots, others get new ones in turn, those that fail are named and
 * refuse to run until they check. Closures and values already made keep the old slot. A type declared
 * anew is another type: the definitions that mention the old one are checked again against the new one.
 *
 * Here too: copies of definitions for explicit type arguments. */
#include <string.h>

#include "types/infer/state.h"

static const char *scheme_text(const Scheme *s) {
    Str out = {0};
    TypeNamer namer = {0};
    scheme_print(&out, s, &namer);
    return str_text(&out);
}

bool scheme_same(const Scheme *a, const Scheme *b) {
    enum { LONGEST = 1000 }; /* a longer type is shown in part */
    const char *x = scheme_text(a), *y = scheme_text(b);
    return a == b || (strlen(x) < LONGEST && strcmp(x, y) == 0);
}

/* Whether `now` can stand wherever `old` stood. */
static bool scheme_same_or_more_general(const Scheme *now, const Scheme *old) {
    if (scheme_same(now, old)) {
        return !type_has_vars(now->type) || now->type == old->type;
    }
    if (type_has_vars(old->type) || old->nrelations)
        return false;
    Diags scratch = {0};
    Solver *s = solver_new(&scratch);
    solver_enter(s);
    Type *t = scheme_instantiate(s, now, span_none(), NULL, 0, NULL);
    bool ok = solver_unify(s, t, old->type) && solver_run(s) && solver_check_early(s);
    return ok && scratch.errors == 0 && solver_nwaiting(s) == 0;
}

/* Whether both schemes keep the same operators for their callers (early.c): these are no part of the type. */
static bool scheme_asks_same(const Scheme *a, const Scheme *b) {
    return (!a->early_count && !b->early_count) ||
           strcmp(scheme_early_text(a), scheme_early_text(b)) == 0;
}

typedef struct Relink {
    Map seen;
    const Global *from;
    Global *to;
} Relink;

static void relink(void *ctx, Expr *e) {
    Relink *r = ctx;
    while (e) {
        if (map_has(&r->seen, e))
            return;
        map_set(&r->seen, e, e);
        if (e->kind == EXPR_GLOBAL && e->global == r->from)
            e->global = r->to;
        if (e->kind != EXPR_LET)
            break;
        relink(ctx, e->a); /* a chain is walked in a loop */
        e = e->body;
    }
    if (e)
        expr_each_child(e, relink, ctx);
}

static void relink_value(Expr *value, const Global *from, Global *to) {
    Relink r = {.from = from, .to = to};
    if (value)
        relink(&r, value);
}

/* Copies the definition `now` into the slot `old`. */
static void replace(Global *old, Global *now) {
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
        if (old->uses.data[i] == now)
            old->uses.data[i] = old;
    }
}

/* Notes under each name that g mentions that g mentions it. */
static void note_uses(Env *env, Global *g) {
    if (g->kind != GLOBAL_DEF)
        return;
    for (size_t i = 0; i < g->uses.len; i++) {
        const Symbol *name = g->uses.data[i]->name;
        Map *users = map_find(&env->dependents, name);
        if (!users)
            map_set(&env->dependents, name, users = mem_new(Map));
        map_set(users, g, g);
    }
}

Global *env_slot(Infer *I, Global *g) {
    Env *env = I->env;
    Global *old = map_find(&env->here->globals, g->name);
    bool prompt = I->mode == INFER_PROMPT;
    if (prompt && old && old != g && old->scheme && g->scheme && old->kind == g->kind &&
        !old->size && /* its value may have entered types */
        scheme_same_or_more_general(g->scheme, old->scheme)) {
        Changed c = {old->name, scheme_asks_same(g->scheme, old->scheme)};
        replace(old, g);
        /* items of this source were checked against g */
        for (size_t i = 0; i < I->module->items.len; i++) {
            FileName *f = map_find(&I->names, I->module->items.data[i]->name.sym);
            for (; f; f = f->earlier) {
                if (f->global && f->global != old)
                    relink_value(f->global->value, g, old);
            }
        }
        note_uses(env, old);
        vec_push(&I->changed, c);
        return old;
    }
    env_bind_global(env, g);
    if (prompt) {
        note_uses(env, g);
        Changed c = {g->name, false};
        if (old && old != g)
            vec_push(&I->changed, c);
    }
    return g;
}

/* ---- checking again ------------------------------------------------------------------------------------
 *
 * Definitions that mention a changed name, themselves or through others, are gone through in order of
 * dependency, and checked again where a name they mention has another type now: so each is checked
 * once, against names that are settled, and those that nothing reaches are not looked at. */

static bool is_current(const Env *env, const Global *g) {
    return map_find(&env->here->globals, g->name) == g;
}

/* What is new of a definition: its type or what its callers are checked for, or only that it checks again. */
typedef enum News { NEWS_NONE, NEWS_TYPE, NEWS_MENDED /* it checks again, at its old type */ } News;

typedef struct Recheck {
    Infer *I;
    Map news;          /* Symbol -> News */
    GlobalVec reached; /* the globals that mention a changed name, directly or not */
    Map index;         /* Global -> its place in `reached` + 1 */
    Map by_type; /* a set of Global: those that mention a type as it was before it was declared anew */
    VEC(const char *) failed;
} Recheck;

/* Finds all globals that mention one of the names, directly or not, except those that this source has just
 * defined. */
static void reach(Recheck *r, SymbolVec *names, const Map *own) {
    Env *env = r->I->env;
    for (size_t n = 0; n < names->len; n++) {
        const Map *users = map_find(&env->dependents, names->data[n]);
        const void *key;
        void *value;
        for (size_t i = 0; users && map_next(users, &i, &key, &value);) {
            Global *g = value;
            if (map_has(&r->index, g) || map_has(own, g) || !is_current(env, g) || !g->item)
                continue;
            vec_push(&r->reached, g);
            map_set(&r->index, g, (void *)r->reached.len);
            vec_push(names, g->name);
        }
    }
}

/* The groups of mutually recursive definitions, in order of dependency. */
static void reached_groups(const Recheck *r, GroupVec *out) {
    IndexVec *edges = mem_new_n(IndexVec, r->reached.len);
    for (size_t i = 0; i < r->reached.len; i++) {
        const Global *g = r->reached.data[i];
        for (size_t k = 0; k < g->uses.len; k++) {
            const Global *used = map_find(&r->I->env->here->globals, g->uses.data[k]->name);
            size_t at = used ? (size_t)map_find(&r->index, used) : 0;
            if (at)
                vec_push(&edges[i], (uint32_t)at - 1);
        }
    }
    item_groups(r->reached.len, edges, NULL, out);
}

static bool is_concerned(const Recheck *r, const Global *g) {
    if (map_has(&r->by_type, g))
        return true;
    for (size_t i = 0; i < g->uses.len; i++) {
        News news = (News)(uintptr_t)map_find(&r->news, g->uses.data[i]->name);
        if (news == NEWS_TYPE || (news == NEWS_MENDED && g->broken))
            return true;
    }
    return false;
}

static void note_news(Recheck *r, const Symbol *name, News news) {
    if ((News)(uintptr_t)map_find(&r->news, name) != NEWS_TYPE)
        map_set(&r->news, name, (void *)(uintptr_t)news);
}

static Global *fresh_slot(const Global *old) {
    Global *g = mem_new(Global);
    *g = *old;
    g->scheme = NULL;
    g->value = NULL;
    g->broken = false;
    g->uses.data = NULL;
    g->uses.len = g->uses.cap = 0;
    return g;
}

/* Puts a group that checked into its slots, or into new ones where its type changed. */
static void take_slots(Recheck *r, Global *const *old, Global *const *now, uint32_t n) {
    Env *env = r->I->env;
    for (uint32_t i = 0; i < n; i++) {
        if (scheme_same_or_more_general(now[i]->scheme, old[i]->scheme)) {
            bool same = scheme_asks_same(now[i]->scheme, old[i]->scheme);
            for (uint32_t k = 0; k < n; k++)
                relink_value(now[k]->value, now[i], old[i]);
            replace(old[i], now[i]);
            note_uses(env, old[i]);
            note_news(r, old[i]->name, same ? NEWS_MENDED : NEWS_TYPE);
        } else {
            env_bind_global(env, now[i]);
            note_uses(env, now[i]);
            note_news(r, now[i]->name, NEWS_TYPE);
        }
    }
}

/* Checks a group of mutually recursive definitions again, with the names as they are now. */
static void check_again(Recheck *r, Global **old, uint32_t n) {
    Infer *I = r->I;
    Diags diags = {0};
    Module module = {.source = old[0]->span.source, .versioned = I->module->versioned};
    Infer J;
    infer_init(&J, I->env, &module, INFER_FILE, &diags);
    Item **items = mem_new_n(Item *, n);
    Global **now = mem_new_n(Global *, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i] = old[i]->item;
        now[i] = fresh_slot(old[i]);
        vec_push(&module.items, old[i]->item);
        FileName *f = mem_new(FileName);
        f->item = old[i]->item;
        f->global = now[i];
        f->position = i;
        map_set(&J.names, old[i]->name, f);
        IndexVec mentions = {0};
        ast_item_mentions(&J, old[i]->item, i,
                          &mentions); /* finds out whether the item has graph bindings */
    }
    bool ok = infer_defs(&J, items, now, n) && diags.errors == 0;
    I->env->counts.again += n;
    infer_count(&J);
    if (ok) {
        take_slots(r, old, now, n);
        return;
    }
    const char *why = diags.list.len ? diags.list.data[0]->message : "it does not check";
    for (uint32_t i = 0; i < n; i++) {
        old[i]->broken = true;
        vec_push(&r->failed, fmt_text("`%s`: %s", old[i]->name->text, why));
    }
}

static void check_reached(Recheck *r) {
    GroupVec groups = {0};
    reached_groups(r, &groups);
    for (size_t i = 0; i < groups.len; i++) {
        const IndexVec *group = &groups.data[i];
        bool concerned = false;
        GlobalVec old = {0};
        for (size_t k = 0; k < group->len; k++) {
            Global *g = r->reached.data[group->data[k]];
            vec_push(&old, g);
            concerned |= is_concerned(r, g);
        }
        if (concerned)
            check_again(r, old.data, (uint32_t)old.len);
    }
}

/* ---- types declared anew --------------------------------------------------------------------- */

typedef struct Mentions {
    const Map *names; /* the names of types declared anew */
    Map seen;         /* the types and expressions that were looked at */
    bool found;
} Mentions;

static bool is_superseded(const Mentions *m, const TypeDecl *decl) {
    decl = type_decl_of_values(decl);
    return decl->superseded && map_has(m->names, decl->name);
}

static void look_at_type(void *ctx, Type *t) {
    Mentions *m = ctx;
    t = t ? type_resolve(t) : NULL;
    if (!t || m->found || map_has(&m->seen, t))
        return;
    map_set(&m->seen, t, t);
    if (t->tag == TY_DATA)
        m->found = is_superseded(m, t->decl);
    type_each_part(t, look_at_type, m);
}

bool type_is_superseded(Type *t, const Map *names) {
    Mentions m = {.names = names};
    look_at_type(&m, t);
    return m.found;
}

static void look_at_pattern(Mentions *m, const Pattern *p) {
    look_at_type(m, p->type);
    if (p->kind == PAT_CTOR)
        m->found |= is_superseded(m, p->ctor->decl);
    for (uint32_t i = 0; i < p->nargs; i++)
        look_at_pattern(m, p->args[i]);
}

static void look_at_expr(void *ctx, Expr *e) {
    Mentions *m = ctx;
    for (; e && !m->found && !map_has(&m->seen, e); e = e->body) {
        map_set(&m->seen, e, e);
        look_at_type(m, e->type);
        if (e->kind == EXPR_CTOR)
            m->found |= is_superseded(m, e->ctor->decl);
        if (e->kind == EXPR_FN) {
            for (uint32_t i = 0; i < e->fn->nparams; i++)
                look_at_type(m, e->fn->params[i]->type);
        }
        for (uint32_t i = 0; e->kind == EXPR_MATCH && i < e->narms; i++)
            look_at_pattern(m, e->arms[i].pattern);
        if (e->kind != EXPR_LET) {
            expr_each_child(e, look_at_expr, m);
            return;
        }
        look_at_type(m, e->var ? e->var->type : NULL);
        look_at_expr(m, e->a); /* chains in a loop */
    }
}

static bool mentions_superseded(const Global *g, const Map *names) {
    Mentions m = {.names = names};
    if (g->scheme)
        look_at_type(&m, g->scheme->type);
    if (g->value)
        look_at_expr(&m, g->value);
    return m.found;
}

/* Adds the definitions that mention an old type in their own types or in their code. */
static void reach_by_types(Recheck *r, SymbolVec *names, const Map *own) {
    const void *key;
    void *value;
    const Map *globals = &r->I->env->here->globals;
    for (size_t i = 0; map_next(globals, &i, &key, &value);) {
        Global *g = value;
        if (g->kind != GLOBAL_DEF || !g->item || map_has(own, g))
            continue;
        if (!mentions_superseded(g, &r->I->types_anew))
            continue;
        map_set(&r->by_type, g, g);
        vec_push(&r->reached, g);
        map_set(&r->index, g, (void *)r->reached.len);
        vec_push(names, g->name);
    }
}

void env_recheck(Infer *I) {
    Recheck r = {.I = I};
    Map own = {0};
    for (size_t i = 0; i < I->module->items.len; i++) {
        FileName *f = map_find(&I->names, I->module->items.data[i]->name.sym);
        for (; f; f = f->earlier) {
            if (f->global)
                map_set(&own, f->global, f->global);
        }
    }
    SymbolVec names = {0};
    for (size_t i = 0; i < I->changed.len; i++) {
        const Changed *c = &I->changed.data[i];
        note_news(&r, c->name, c->same_type ? NEWS_MENDED : NEWS_TYPE);
        vec_push(&names, c->name);
    }
    if (I->types_anew.len)
        reach_by_types(&r, &names, &own);
    reach(&r, &names, &own);
    if (r.reached.len)
        check_reached(&r);
    for (size_t i = 0; i < I->failed_types.len; i++)
        vec_push(&r.failed, I->failed_types.data[i]);
    if (!r.failed.len)
        return;
    Diag *d = diag_new(DIAG_R0906, I->module->items.data[0]->span,
                       "%zu definition%s no longer check%s", r.failed.len,
                       r.failed.len == 1 ? "" : "s", r.failed.len == 1 ? "s" : "");
    for (size_t i = 0; i < r.failed.len; i++)
        diag_add_fact(d, "%s", r.failed.data[i]);
    diag_add_fact(d, "they refuse to run until they check again");
    diag_report(I->diags, d);
}

void env_restore(Env *env, const CoreItem *item, Diags *diags) {
    if ((!item->before && !item->was) || !is_current(env, item->global))
        return;
    if (item->was)
        *item->global = *item->was;
    else
        env_bind_global(env, item->before);
    Module module = {.source = item->item->span.source};
    vec_push(&module.items, item->item);
    Infer I;
    infer_init(&I, env, &module, INFER_PROMPT, diags);
    Changed c = {item->global->name, false};
    vec_push(&I.changed, c);
    env_recheck(&I);
}

/* ---- copies for explicit type arguments ------------------------------------------------------ */

typedef struct Copy Copy;
struct Copy {
    const char *types;
    Global *global;
    Copy *next;
};

Global *infer_specialised(Infer *I, Global *g, Type **type_args, uint32_t n, Span span) {
    if (!g->by_types || !g->item || !g->item->fn)
        return g;
    const AstTypeParamVec *declared = &g->item->fn->type_params;
    Str key = {0};
    for (uint32_t i = 0; i < n; i++) {
        Type *t = type_resolve(type_args[i]);
        if ((t->flags & TYPE_HAS_PARAMS) && I->current) {
            I->current->by_types =
                true; /* the type is known only in copies of the definition that calls this one */
            return g;
        }
        if (type_has_vars(t))
            BUG("a copy of `%s` for a type that is open", g->name->text);
        str_printf(&key, "%s, ", type_text(t));
    }
    if (n < declared->len) {
        infer_error(I, DIAG_R0214, span, "`%s` needs all its %zu type arguments", g->name->text,
                    declared->len);
        return g;
    }
    for (Copy *c = map_find(&I->env->specialised, g); c; c = c->next) {
        if (strcmp(c->types, str_text(&key)) == 0)
            return c->global;
    }
    Copy *c = mem_new(Copy);
    c->types = str_text(&key);
    c->next = map_find(&I->env->specialised, g);
    Global *copy = mem_new(Global);
    *copy = *g;
    copy->by_types = false;
    copy->value = NULL;
    copy->uses.data = NULL;
    copy->uses.len = copy->uses.cap = 0;
    c->global = copy;
    map_set(&I->env->specialised, g, c);
    /* Check the body again, with these types for its parameters. */
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
        if (type_args[i])
            type_scope_bind_to(&J, declared->data[i].name, type_args[i]);
    }
    AstFn plain = *g->item->fn;
    plain.type_params.len = 0;
    plain.where.len = 0;
    solver_enter(J.s);
    FnHead head = {0};
    fn_begin(&J, &plain, &head);
    head.global = g;
    if (J.has_graph && plain.body)
        infer_graph_plan(&J, plain.body);
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

/* The form for known types of a definition of the prelude whose parameters are left open; NULL where it has none. */
static Global *find_typed(const Infer *I, const Global *g) {
    static const char prefix[] = "_typed.";
    char name[64];
    if (g->kind != GLOBAL_DEF || g->home != I->env->prelude || !g->item->fn ||
        ast_fn_is_annotated(g->item->fn) || sizeof prefix + g->name->len > sizeof name)
        return NULL;
    memcpy(name, prefix, sizeof prefix);
    memcpy(name + sizeof prefix - 1, g->name->text, g->name->len + 1);
    return env_prelude_global(I->env, sym_intern(name));
}

void infer_note_typed(Infer *I, Expr *use) {
    if (find_typed(I, use->global))
        infer_note(I, PENDING_TYPED, use);
}

/* The types that `typed` names, as they are in a use of the definition that it is a form of; NULL where the use has
 * another type. */
static Type **types_of_use(Infer *I, const Global *typed, const Expr *use, uint32_t *n) {
    const Scheme *scheme = scheme_open_uses(typed->scheme);
    *n = (uint32_t)typed->item->fn->type_params.len;
    Type **args = mem_new_n(Type *, *n + 1);
    for (uint32_t i = 0; i < *n; i++)
        args[i] = solver_var(I->s, scheme->params[i]->kind);
    Type *type = scheme_instantiate(I->s, scheme, use->span, args, *n, NULL);
    return solver_unify(I->s, type, use->type) ? args : NULL;
}

void infer_default_typed(Infer *I, size_t from) {
    for (size_t i = from; i < I->pending.len && !infer_failed(I); i++) {
        const Expr *use = I->pending.data[i].expr;
        if (I->pending.data[i].kind != PENDING_TYPED)
            continue;
        uint32_t n;
        Type **args = types_of_use(I, find_typed(I, use->global), use, &n);
        for (uint32_t k = 0; args && k < n; k++) {
            Type *t = type_resolve(args[k]);
            if (t->tag == TY_VAR && t->var.level >= solver_level(I->s))
                solver_unify(I->s, t,
                             t->kind == KIND_SHAPE ? type_shape(NULL, 0) : type_dtype(DT_I32));
        }
        solver_run(I->s);
    }
}

void settle_typed(Infer *I, Expr *use) {
    uint32_t n;
    Global *typed = find_typed(I, use->global);
    Type **args = types_of_use(I, typed, use, &n);
    for (uint32_t i = 0; args && i < n; i++)
        if (type_resolve(args[i])->flags & (TYPE_HAS_PARAMS | TYPE_HAS_ANY) ||
            type_has_vars(args[i]))
            return;
    if (!args)
        return;
    const Symbol *name = use->global->name;
    use->global = infer_specialised(I, typed, args, n, use->span);
    use->global->name = name; /* as it is printed, and read back */
}
