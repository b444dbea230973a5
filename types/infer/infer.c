/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of one source: state, order of items, what is bound at the end. infer.h is the manual;
 * infer/state.h says how the work is done. */
#include "types/infer/infer.h"

#include <stdarg.h>
#include <string.h>

#include "types/infer/module.h"

/* ---- errors ---------------------------------------------------------------------------------- */

bool infer_failed(const Infer *I) {
    return I->diags->errors > I->item_errors || solver_is_spent(I->s);
}

Diag *infer_error(Infer *I, DiagCode code, Span span, const char *fmt, ...) {
    if (infer_failed(I))
        return NULL;
    va_list ap;
    va_start(ap, fmt);
    Str s = {0};
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return diag_error(I->diags, code, span_inside(span), "%s", str_text(&s));
}

Diag *infer_warning(Infer *I, DiagCode code, Span span, const char *fmt, ...) {
    if (infer_failed(I))
        return NULL;
    va_list ap;
    va_start(ap, fmt);
    Str s = {0};
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    Diag *d = diag_new(code, span, "%s", str_text(&s));
    diag_report(I->diags, d);
    return d;
}

/* ---- state ----------------------------------------------------------------------------------- */

void infer_init(Infer *I, Env *env, const Module *module, InferMode mode, Diags *diags) {
    memset(I, 0, sizeof *I);
    I->env = env;
    I->s = solver_new(diags);
    solver_set_budget(I->s, &env->budget, false);
    solver_list_operators(I->s, env->list_checks);
    infer_know_records(I);
    I->diags = diags;
    I->module = module;
    I->mode = mode;
    I->effect = solver_var(I->s, KIND_EFFECT);
}

void infer_begin_trial(Infer *I) {
    I->unread = true;
    solver_set_budget(I->s, &I->env->budget, true);
}

void infer_count(const Infer *I) {
    SolverCounts counts = solver_counts(I->s);
    I->env->counts.runs += counts.runs;
    I->env->counts.steps += counts.steps;
}

void infer_begin_item(Infer *I) {
    scope_restore(I, 0);
    type_scope_restore(I, 0);
    vec_clear(&I->all);
    vec_clear(&I->pending);
    vec_clear(&I->fallbacks);
    vec_clear(&I->schemes);
    I->fn = NULL;
    I->checked.n = 0;
    I->rule_op = NULL;
    I->in_decl = false;
    I->item_errors = I->diags->errors;
    I->uses_failed = false;
    I->item_diags = I->diags->list.len;
    I->effect = solver_var(I->s, KIND_EFFECT);
    map_clear(&I->graph_sites);
    map_clear(&I->graph_lazy);
}

/* Keeps only the first error of an item. Relations report by themselves, also what is a consequence of it. */
static void keep_first_error(Infer *I) {
    size_t kept = I->item_diags;
    bool seen = false;
    DiagCode first = DIAG_NONE; /* every hole is answered */
    for (size_t i = kept; i < I->diags->list.len; i++) {
        Diag *d = I->diags->list.data[i];
        bool error = diag_get_info(d->code)->severity == SEVERITY_ERROR;
        if (error && seen && !(first == DIAG_R0110 && d->code == first)) {
            I->diags->errors--;
            continue;
        }
        if (error && !seen)
            first = d->code;
        seen |= error;
        I->diags->list.data[kept++] = d;
    }
    I->diags->list.len = kept;
}

bool infer_finish_item(Infer *I) {
    if (!infer_failed(I) && solver_run(I->s))
        solver_check_early(I->s);
    solver_drop_early(I->s);
    if (!infer_failed(I))
        infer_settle(I);
    if (infer_failed(I))
        keep_first_error(I);
    return !infer_failed(I);
}

bool infer_too_deep(Infer *I, const char *what, Span span) {
    if (solver_level(I->s) < TYPE_MAX_DEPTH)
        return false;
    infer_error(I, DIAG_R0009, span, "%s nest more than %d deep", what, TYPE_MAX_DEPTH);
    return true;
}

Pending *infer_note(Infer *I, PendingKind kind, Expr *expr) {
    Pending p = {.kind = kind, .expr = expr, .fn = I->fn, .time = I->time, .span = expr->span};
    vec_push(&I->pending, p);
    return &vec_last(&I->pending);
}

/* ---- `:type` --------------------------------------------------------------------------------- */

typedef struct TypeOf {
    Env *env;
    Ast *expr;
    Diags *diags;
    Scheme *result;
} TypeOf;

static void type_of(void *arg) {
    TypeOf *t = arg;
    Module module = {.source = t->expr->span.source};
    Infer I;
    infer_init(&I, t->env, &module, INFER_PROMPT, t->diags);
    I.position = UINT32_MAX;
    infer_begin_item(&I);
    solver_enter(I.s);
    I.effect = solver_var(I.s, KIND_EFFECT);
    Expr *e = infer_expr(&I, t->expr, NULL);
    solver_run(I.s);
    bool mono = solver_effect_allocates(I.s, I.effect);
    Scheme *scheme = infer_failed(&I) ? NULL : infer_generalise(&I, e->type, mono);
    solver_leave(I.s);
    if (infer_failed(&I))
        return;
    if (infer_finish_item(&I))
        t->result = scheme;
}

void infer_on_stack(void (*fn)(void *), void *arg) {
    if (mem_stack_left() >= mem_stack_share(CHECK_STACK) / 2) {
        fn(arg);
    } else {
        mem_call_on_stack(CHECK_STACK, fn, arg);
    }
}

Scheme *infer_type_of(Env *env, Ast *expr, Diags *diags) {
    TypeOf t = {env, expr, diags, NULL};
    infer_on_stack(type_of, &t);
    return t.result;
}

/* ---- a module -------------------------------------------------------------------------------- */

static bool binds_name(const Item *item) {
    switch (item->kind) {
    case ITEM_DEF:
    case ITEM_LET:
    case ITEM_GRAPH_LET:
    case ITEM_FREE_VAR:
    case ITEM_OPERATOR: return true;
    case ITEM_TYPE:
    case ITEM_EXTERN_TYPE:
    case ITEM_DERIVATIVE:
    case ITEM_TANGENT:
    case ITEM_NO_DERIVATIVE:
    case ITEM_IMPORT:
    case ITEM_EXPR:
    case ITEM_ERROR: break;
    }
    return false;
}

const Symbol *infer_item_symbol(const Item *item) {
    if (item->kind == ITEM_GRAPH_LET)
        return sym_intern(fmt_text("%%%lld", (long long)item->index));
    return item->name.sym;
}

static GlobalKind global_kind(const Item *item) {
    if (item->kind == ITEM_DEF)
        return GLOBAL_DEF;
    if (item->kind == ITEM_FREE_VAR)
        return GLOBAL_FREE_VAR;
    if (item->kind == ITEM_OPERATOR)
        return GLOBAL_BUILTIN;
    return GLOBAL_LET;
}

static bool is_builtin(const Item *item) {
    return item->kind == ITEM_OPERATOR && item->path && strcmp(item->path, "builtin") == 0 &&
           (item->span.source->flags &
            SOURCE_INTERNAL); /* the evaluator relies on the types of builtins */
}

Global *infer_make_global(Infer *I, Item *item) {
    Global *g = mem_new(Global);
    g->kind = global_kind(item);
    g->name = infer_item_symbol(item);
    g->sigil = item->name.sigil != SIGIL_NONE;
    if (item->kind == ITEM_OPERATOR && (item->span.source->flags & SOURCE_INTERNAL))
        g->sigil = false;
    g->span = item->name.span.source ? item->name.span : item->span;
    g->doc = item->doc;
    g->item = item;
    g->internal = I->module->source && (I->module->source->flags & SOURCE_INTERNAL);
    g->versioned = I->module->versioned;
    return g;
}

/* Enters the names that the file binds. A second def, operator or free_var of a name is an error, except at the
 * prompt. */
static bool enter_names(Infer *I, Global **globals) {
    bool ok = true;
    for (uint32_t i = 0; i < I->module->items.len; i++) {
        Item *item = I->module->items.data[i];
        if (!binds_name(item))
            continue;
        bool foreign = item->kind == ITEM_OPERATOR && !is_builtin(item);
        FileName *f = mem_new(FileName);
        f->item = item;
        f->position = i;
        if (!foreign)
            f->global = globals[i] = infer_make_global(I, item);
        const Symbol *name = infer_item_symbol(item);
        f->earlier = map_find(&I->names, name);
        map_set(&I->names, name, f);
        if (!f->earlier || I->mode == INFER_PROMPT)
            continue;
        if (item->kind == ITEM_DEF || item->kind == ITEM_OPERATOR) {
            for (FileName *e = f->earlier; e; e = e->earlier) {
                if (e->item->kind != item->kind)
                    continue;
                Diag *d = diag_error(I->diags, DIAG_R0103, item->name.span, "`%s` is defined twice",
                                     name->text);
                diag_add_label(d, e->item->name.span, "first here");
                ok = false;
                break;
            }
        }
    }
    return ok;
}

FileName *file_name_at(const Infer *I, const Symbol *name, uint32_t position, bool def_only) {
    FileName *later_def = NULL;
    for (FileName *f = map_find(&I->names, name); f; f = f->earlier) {
        bool def = f->item->kind == ITEM_DEF || f->item->kind == ITEM_OPERATOR;
        if (def_only && !def)
            continue;
        bool fn = f->item->value && f->item->value->kind == AST_FN;
        /* a def, and a let of a function literal, is in its own scope */
        if (f->position < position || ((def || fn) && f->position == position))
            return f;
        if (def)
            later_def = f;
    }
    return later_def;
}

static CoreItem core_item(CoreItemKind kind, Item *item) {
    return (CoreItem){.kind = kind, .item = item};
}

/* Checks a group of items. */
static bool check_group(Infer *I, const IndexVec *group, Global **globals, CoreItem *core) {
    Item *const *items = I->module->items.data;
    Item *first = items[group->data[0]];
    I->position = group->data[0];
    if (first->kind == ITEM_DEF) {
        Item **defs = mem_new_n(Item *, group->len);
        Global **gs = mem_new_n(Global *, group->len);
        for (size_t i = 0; i < group->len; i++) {
            defs[i] = items[group->data[i]];
            gs[i] = globals[group->data[i]];
            core[group->data[i]] = core_item(CORE_DEF, defs[i]);
            core[group->data[i]].global = gs[i];
        }
        return infer_defs(I, defs, gs, (uint32_t)group->len);
    }
    uint32_t at = group->data[0];
    CoreItem *out = &core[at];
    *out = core_item(CORE_LET, first);
    out->global = globals[at];
    switch (first->kind) {
    case ITEM_LET:
    case ITEM_GRAPH_LET:
    case ITEM_FREE_VAR: return infer_let_item(I, first, globals[at]);
    case ITEM_EXPR: return infer_expr_item(I, first, out);
    case ITEM_OPERATOR: return infer_operator_item(I, first, out);
    case ITEM_DERIVATIVE:
    case ITEM_TANGENT:
    case ITEM_NO_DERIVATIVE: *out = core_item(CORE_RULE, first); return infer_rule_item(I, first);
    case ITEM_DEF:
    case ITEM_TYPE:
    case ITEM_EXTERN_TYPE:
    case ITEM_IMPORT:
    case ITEM_ERROR: break;
    }
    return true;
}

bool infer_in_groups(const Item *item) {
    switch (item->kind) {
    case ITEM_DEF:
    case ITEM_LET:
    case ITEM_GRAPH_LET:
    case ITEM_FREE_VAR:
    case ITEM_EXPR:
    case ITEM_DERIVATIVE:
    case ITEM_TANGENT:
    case ITEM_NO_DERIVATIVE: return true;
    case ITEM_OPERATOR: /* checked first, since they depend on no other item */
    case ITEM_TYPE:
    case ITEM_EXTERN_TYPE:
    case ITEM_IMPORT:
    case ITEM_ERROR: break;
    }
    return false;
}

static bool is_annotated_def(const Item *item) {
    return item->kind == ITEM_DEF && ast_fn_is_annotated(item->fn);
}

/* Checks a strongly connected group. Fully annotated defs are used at their annotated types, which they get first,
 * so the group is divided again without the edges into them. */
bool infer_component(Infer *I, const IndexVec *group, const IndexVec *edges, Global **globals,
                     CoreItem *core) {
    if (group->len == 1)
        return check_group(I, group, globals, core);
    size_t n = I->module->items.len;
    bool *inside = mem_bytes(n * sizeof *inside);
    memset(inside, 0, n * sizeof *inside);
    for (size_t i = 0; i < group->len; i++)
        inside[group->data[i]] = true;
    IndexVec *local = mem_new_n(IndexVec, group->len);
    uint32_t *index = mem_bytes(n * sizeof *index);
    bool *skip = mem_bytes(group->len * sizeof *skip);
    for (size_t i = 0; i < group->len; i++)
        index[group->data[i]] = (uint32_t)i;
    for (size_t i = 0; i < group->len; i++) {
        skip[i] = is_annotated_def(I->module->items.data[group->data[i]]);
        const IndexVec *e = &edges[group->data[i]];
        for (size_t k = 0; k < e->len; k++) {
            if (inside[e->data[k]])
                vec_push(&local[i], index[e->data[k]]);
        }
    }
    bool ok = true;
    for (size_t i = 0; i < group->len; i++) {
        if (!skip[i])
            continue;
        I->position = group->data[i];
        infer_announce_def(I, I->module->items.data[group->data[i]], globals[group->data[i]]);
    }
    GroupVec groups = {0};
    item_groups(group->len, local, skip, &groups);
    for (size_t g = 0; g < groups.len; g++) {
        IndexVec mapped = {0};
        for (size_t i = 0; i < groups.data[g].len; i++)
            vec_push(&mapped, group->data[groups.data[g].data[i]]);
        ok &= !infer_needs_itself(I, &mapped, edges) && check_group(I, &mapped, globals, core);
    }
    return ok;
}

static bool check_imports(Infer *I, CoreItem *core) {
    for (size_t i = 0; i < I->module->items.len; i++) {
        Item *item = I->module->items.data[i];
        if (item->kind != ITEM_IMPORT)
            continue;
        core[i] = core_item(CORE_IMPORT, item);
        if (!I->env->hooks.import && !env_open_module(I->env, item, I->diags))
            return false;
        if (I->env->hooks.import &&
            !I->env->hooks.import(I->env->hooks.ctx, I->env, item, I->diags))
            return false;
    }
    return infer_import_models(I);
}

/* A later `let` of the same entry binds the name: what stands between reads this one, and the session has
 * that one. */
static bool is_shadowed(const Infer *I, const Global *g) {
    const FileName *last = map_find(&I->names, g->name);
    return I->mode == INFER_PROMPT && g->kind == GLOBAL_LET && last && last->global != g &&
           last->global && last->global->kind == GLOBAL_LET;
}

/* After the whole source was checked: binds its names in the Env and links the definitions that mention a replaced
 * name again. */
static void bind_names(Infer *I, Global **globals, CoreItem *core) {
    size_t n = I->module->items.len;
    for (size_t i = 0; i < n; i++) {
        if (!globals[i] || is_shadowed(I, globals[i]))
            continue;
        Global *before = map_find(&I->env->here->globals, globals[i]->name);
        Global was = before ? *before : (Global){0};
        globals[i] = env_slot(I, globals[i]);
        if (before != globals[i]) {
            core[i].before = before;
        } else if (was.kind == GLOBAL_LET && was.scheme) {
            core[i].was = mem_new(Global);
            *core[i].was = was;
        }
        if (core[i].global)
            core[i].global = globals[i];
    }
    for (size_t i = 0; i < I->rules.len; i++)
        env_bind_rule(I->env, I->rules.data[i]);
    if (I->mode == INFER_PROMPT)
        env_recheck(I);
}

static void keep_residuals(Infer *I, size_t from) {
    solver_try_operators(I->s);
    for (size_t i = from; i < solver_nresiduals(I->s); i++) {
        const Residual *r = solver_residual_at(I->s, i);
        TypeNamer namer = {0};
        bool internal =
            r->span.source &&
            (r->span.source->flags &
             SOURCE_INTERNAL); /* a check inside of the library is listed at the calls */
        if (r->unlisted || internal)
            continue;
        ResidualInfo info = {r->span,
                             residual_text(r, &namer),
                             r->op ? r->op->name : NULL,
                             r->arg,
                             r->axis,
                             r->inner,
                             r->inner_name};
        vec_push(&I->env->residuals, info);
    }
}

/* Binds type declarations, before the items that use them are checked. They are taken back after a mistake. */
static bool declares(const Module *m) {
    for (size_t i = 0; i < m->items.len; i++) {
        ItemKind k = m->items.data[i]->kind;
        if (k == ITEM_TYPE || k == ITEM_EXTERN_TYPE || k == ITEM_OPERATOR)
            return true;
    }
    return false;
}

/* Completes the items that a trial checks: those it is about, those that were changed, those that mention or
 * mentioned these, and all that they need. */
static void close_wanted(const TrialCheck *t, const IndexVec *edges, size_t n) {
    bool *wanted = t->wanted;
    IndexVec *users = mem_new_n(IndexVec, n + 1);
    VEC(uint32_t) work = {0};
    for (uint32_t i = 0; i < n; i++) {
        for (size_t k = 0; k < edges[i].len; k++)
            vec_push(&users[edges[i].data[k]], i);
        for (size_t k = 0; t->edges && k < t->edges[i].len; k++)
            vec_push(&users[t->edges[i].data[k]], i);
        if (t->edited[i])
            vec_push(&work, i);
    }
    bool *above = mem_new_n(bool, n + 1);
    while (work.len) {
        uint32_t at = vec_pop(&work);
        if (above[at])
            continue;
        above[at] = wanted[at] = true;
        for (size_t k = 0; k < users[at].len; k++)
            vec_push(&work, users[at].data[k]);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (wanted[i])
            vec_push(&work, i);
    }
    while (work.len) {
        const IndexVec *e = &edges[vec_pop(&work)];
        for (size_t k = 0; k < e->len; k++) {
            if (wanted[e->data[k]])
                continue;
            wanted[e->data[k]] = true;
            vec_push(&work, e->data[k]);
        }
    }
}

/* Adds the items that wanted items mention, and so on; false where they are too many. */
static bool add_needs(const TrialCheck *t, Infer *I, IndexVec *edges) {
    size_t bytes = 0;
    VEC(uint32_t) work = {0};
    for (uint32_t i = 0; i < I->module->items.len; i++) {
        if (t->wanted[i])
            vec_push(&work, i);
    }
    while (work.len) {
        uint32_t at = vec_pop(&work);
        Item *item = I->module->items.data[at];
        bytes += item->span.end - item->span.begin;
        if (bytes > t->most_bytes)
            return false;
        if (infer_in_groups(item))
            ast_item_mentions(I, item, at, &edges[at]);
        for (size_t k = 0; k < edges[at].len; k++) {
            uint32_t to = edges[at].data[k];
            if (!t->wanted[to])
                vec_push(&work, to);
            t->wanted[to] = true;
        }
    }
    return true;
}

/* Checks one group; false where a trial need not go on. */
static bool check_one(ModuleCheck *c, Infer *I, const IndexVec *group, const IndexVec *edges,
                      Global **globals, CoreItem *core, bool *ok) {
    size_t errors = I->diags->errors;
    bool good = infer_component(I, group, edges, globals, core) && I->diags->errors == errors;
    *ok &= good;
    for (size_t i = 0; i < group->len; i++) {
        const Global *g = globals[group->data[i]];
        c->open[group->data[i]] = g && g->scheme && type_has_vars(g->scheme->type);
    }
    for (size_t i = 0; i < group->len && !good; i++) {
        c->failed[group->data[i]] = true;
        if (c->trial && !c->trial->may_fail[group->data[i]])
            return false;
    }
    return true;
}

static void check_items(ModuleCheck *c, Infer *I) {
    const Module *module = c->module;
    size_t n = module->items.len;
    c->failed = mem_new_n(bool, n + 1);
    c->open = mem_new_n(bool, n + 1);
    CoreItem *core = mem_new_n(CoreItem, n + 1);
    Global **globals = mem_new_n(Global *, n + 1);
    TypeDecl **decls = mem_new_n(TypeDecl *, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (module->items.data[i]->kind == ITEM_ERROR)
            return;
    }
    if ((!c->trial || c->trial->imports) && !check_imports(I, core))
        return;
    if (!c->trial && declares(module)) {
        c->declares = true;
        map_add(&c->types, &I->env->here->types);
        map_add(&c->ctors, &I->env->here->ctors);
        map_add(&c->ops, &I->env->here->ops);
    }
    if (!enter_names(I, globals))
        return;
    c->I = I;
    if (!infer_type_decls(I, module->items.data, n, decls))
        return;
    for (size_t i = 0; i < n; i++) {
        if (!decls[i])
            continue;
        core[i] = core_item(CORE_TYPE, module->items.data[i]);
        core[i].decl = decls[i];
    }
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        if (module->items.data[i]->kind != ITEM_OPERATOR)
            continue;
        IndexVec one = {0};
        vec_push(&one, i);
        ok &= check_group(I, &one, globals, core);
    }
    if (!ok && c->trial)
        return;
    IndexVec *edges = mem_new_n(IndexVec, n + 1);
    bool by_needs = c->trial && c->trial->by_needs;
    for (uint32_t i = 0; i < n && !by_needs; i++) {
        if (infer_in_groups(module->items.data[i]))
            ast_item_mentions(I, module->items.data[i], i, &edges[i]);
    }
    if (by_needs && !add_needs(c->trial, I, edges))
        return;
    GroupVec groups = {0};
    item_groups(n, edges, NULL, &groups);
    c->edges = edges;
    if (c->trial && !by_needs)
        close_wanted(c->trial, edges, n);
    c->by_item = ok;
    for (size_t g = 0; g < groups.len && I->diags->errors < 100; g++) {
        uint32_t first = groups.data[g].data[0];
        if (!infer_in_groups(module->items.data[first]))
            continue;
        if (c->trial && !c->trial->wanted[first])
            continue;
        if (!check_one(c, I, &groups.data[g], edges, globals, core, &ok))
            return;
    }
    if (!c->trial && I->diags->errors < 100) {
        c->parts = c->by_item;
        c->globals = globals;
        c->groups = groups;
    }
    if (ok && I->mode != INFER_PROMPT) {
        ok = infer_order(I, &groups, edges, c->failed);
        c->parts &= ok;
    }
    if (!c->trial)
        keep_residuals(I, 0);
    c->whole = true;
    c->to_bind = ok || c->trial;
    c->made = globals;
    c->core = core;
}

void module_check(ModuleCheck *c) {
    Infer *I = mem_new(Infer);
    infer_init(I, c->env, c->module, c->mode, c->diags);
    c->errors = c->diags->errors;
    c->first = c->diags->list.len;
    Namespace *here = c->env->here;
    if (!c->trial && declares(c->module)) {
        c->restores = true;
        map_add(&c->before.types, &here->types);
        map_add(&c->before.ctors, &here->ctors);
        map_add(&c->before.ops, &here->ops);
    }
    if (c->trial)
        infer_begin_trial(I);
    check_items(c, I);
    if (c->trial)
        c->trial->ended = !solver_is_spent(I->s);
    infer_count(I);
    if (c->trial)
        module_bind(c);
}

void module_bind(ModuleCheck *c) {
    if (!c->to_bind)
        return;
    if (!c->trial)
        bind_names(c->I, c->made, c->core);
    for (size_t i = 0; i < c->module->items.len; i++) {
        CoreItem item = c->core[i];
        if (item.item)
            vec_push(c->out, item);
    }
    c->ok = c->diags->errors == c->errors;
}

void module_close(ModuleCheck *c) {
    if (c->ok || !c->restores)
        return;
    Namespace *here = c->env->here;
    here->types = c->before.types;
    here->ctors = c->before.ctors;
    here->ops = c->before.ops;
    const void *key;
    void *value;
    for (size_t i = 0; map_next(&here->types, &i, &key, &value);) {
        TypeDecl *decl = value;
        decl->superseded = false;
        decl->version = 0;
    }
}

static void check_and_bind(void *check) {
    module_check(check);
    module_bind(check);
    module_close(check);
}

static void check_trial(void *check) { module_check(check); }

bool infer_module(Env *env, const Module *module, InferMode mode, Diags *diags, CoreItemVec *out) {
    ModuleCheck c = {.env = env, .module = module, .mode = mode, .diags = diags, .out = out};
    infer_on_stack(check_and_bind, &c);
    return c.ok;
}

bool module_checks_apart(Env *env, const Module *module, InferMode mode, Diags *diags,
                         CoreItemVec *out) {
    Namespace *here = env->here, saved = *here, own = {.name = saved.name, .outer = saved.outer};
    const Map *from[] = {&saved.globals, &saved.types, &saved.ctors, &saved.ops, &saved.modules};
    Map *to[] = {&own.globals, &own.types, &own.ctors, &own.ops, &own.modules};
    for (int i = 0; i < 5; i++)
        map_add(to[i], from[i]);
    Map modules = env->modules, versions = env->versions, specialised = env->specialised;
    size_t residuals = env->residuals.len;
    bool mending = !env->no_mending;
    env->modules = env->versions = env->specialised = (Map){0};
    map_add(&env->modules, &modules);
    map_add(&env->versions, &versions);
    *here = own;
    env->no_mending = true;
    if (env->hooks.trial)
        env->hooks.trial(env->hooks.ctx, true);
    size_t n = module->items.len;
    TrialCheck trial = {.wanted = mem_new_n(bool, n + 1),
                        .edited = mem_new_n(bool, n + 1),
                        .may_fail = mem_new_n(bool, n + 1),
                        .imports = true};
    for (size_t i = 0; i < n; i++)
        trial.wanted[i] = true;
    ModuleCheck c = {
        .env = env, .module = module, .mode = mode, .diags = diags, .out = out, .trial = &trial};
    infer_on_stack(check_trial, &c);
    if (env->hooks.trial)
        env->hooks.trial(env->hooks.ctx, false);
    *here = saved;
    env->modules = modules;
    env->versions = versions;
    env->specialised = specialised;
    env->residuals.len = residuals;
    env->no_mending = !mending;
    const void *key;
    void *value;
    for (size_t i = 0; map_next(&saved.types, &i, &key, &value);) {
        TypeDecl *decl = value;
        if (!decl->superseded || map_find(&saved.types, decl->name) != decl)
            continue;
        decl->superseded = false; /* only this text had redeclared it */
        decl->version = 0;
    }
    return c.ok && !diags->errors;
}
