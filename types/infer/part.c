/* SPDX-License-Identifier: Apache-2.0 */
/* One item of a module checked again, edited; module.h has the manual.
 *
 * A definition is put into its slot of the file's names for the time of the check, so that what
 * mentions it finds the new one; afterwards all is as before. So it is with type declarations, which
 * take the place of the old ones in a copy of the namespace. A change that concerns an item whose type
 * is open (a reference that others fill) is a matter of the whole module: what two items say of such a
 * type they say to each other. */
#include <string.h>

#include "types/infer/module.h"

typedef struct Slot {
    FileName *name;
    Item *item;
    Global *global;
} Slot;

struct Parts {
    const ModuleCheck *c;
    size_t n;
    IndexVec *users; /* of each item: the items that mention it */
    uint32_t *group; /* of each item: its group in the unedited module */
    /* The module as it was checked. A check of a part replaces items and puts them back. */
    Module module;
    IndexVec *edges;
    Global **globals;
    CoreItem *core;
    bool *reached, *news, *concerned;
    uint32_t *index;
    /* the check under way */
    PartCheck *now;
    Infer I;
    IndexVec list; /* the items that may be affected, the edited one first */
    VEC(Slot) slots;
    const Symbol *was, *is; /* the name that the item bound and binds, or NULL */
    bool renamed;
    Map declared;   /* a set of TypeDecl: those of this check */
    size_t nwanted; /* how many items are still to be checked */
};

Parts *parts_new(const ModuleCheck *c) {
    Parts *p = mem_new(Parts);
    size_t n = c->module->items.len;
    p->c = c;
    p->n = n;
    p->module = *c->module;
    p->module.items.data = mem_new_n(Item *, n + 1);
    p->module.items.cap = n + 1;
    p->edges = mem_new_n(IndexVec, n + 1);
    p->globals = mem_new_n(Global *, n + 1);
    p->core = mem_new_n(CoreItem, n + 1);
    p->users = mem_new_n(IndexVec, n + 1);
    p->group = mem_bytes((n + 1) * sizeof *p->group);
    p->index = mem_bytes((n + 1) * sizeof *p->index);
    p->reached = mem_new_n(bool, n + 1);
    p->news = mem_new_n(bool, n + 1);
    p->concerned = mem_new_n(bool, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        p->module.items.data[i] = c->module->items.data[i];
        p->edges[i] = c->edges[i];
        p->globals[i] = c->globals[i];
        for (size_t k = 0; k < c->edges[i].len; k++)
            vec_push(&p->users[c->edges[i].data[k]], i);
    }
    for (uint32_t g = 0; g < c->groups.len; g++) {
        const IndexVec *group = &c->groups.data[g];
        for (size_t i = 0; i < group->len; i++)
            p->group[group->data[i]] = g;
    }
    return p;
}

/* ---- names ----------------------------------------------------------------------------------- */

static FileName *name_of(const Parts *p, const Symbol *symbol, uint32_t position) {
    FileName *f = symbol ? map_find(&p->c->I->names, symbol) : NULL;
    while (f && f->position != position)
        f = f->earlier;
    return f;
}

/* Takes a name out of the list of its symbol, or puts it in, the last one in the file first. */
static void unlink_name(Parts *p, const Symbol *symbol, FileName *f) {
    Map *names = &p->c->I->names;
    FileName *first = map_find(names, symbol);
    if (first == f) {
        if (f->earlier)
            map_set(names, symbol, f->earlier);
        else
            map_remove(names, symbol);
        return;
    }
    while (first->earlier != f)
        first = first->earlier;
    first->earlier = f->earlier;
}

static void link_name(Parts *p, const Symbol *symbol, FileName *f) {
    Map *names = &p->c->I->names;
    FileName *first = map_find(names, symbol);
    if (!first || first->position < f->position) {
        f->earlier = first;
        map_set(names, symbol, f);
        return;
    }
    while (first->earlier && first->earlier->position > f->position)
        first = first->earlier;
    f->earlier = first->earlier;
    first->earlier = f;
}

/* Puts a fresh global of the item into its slot. */
static void fill_slot(Parts *p, uint32_t at) {
    Item *item = p->module.items.data[at];
    bool edited = at == p->now->at;
    FileName *f = name_of(p, edited ? p->is : infer_item_symbol(item), at);
    if (!f || !f->global)
        return;
    Slot slot = {f, f->item, f->global};
    vec_push(&p->slots, slot);
    f->item = item;
    f->global = p->globals[at] = infer_make_global(&p->I, item);
}

/* ---- what is concerned ----------------------------------------------------------------------- */

static void reach(Parts *p, uint32_t at) {
    if (p->reached[at])
        return;
    p->reached[at] = true;
    vec_push(&p->list, at);
}

static void concern(Parts *p, uint32_t at) {
    reach(p, at);
    p->concerned[at] = true;
}

static void reach_users(Parts *p) {
    for (size_t i = 0; i < p->list.len; i++) {
        const IndexVec *users = &p->users[p->list.data[i]];
        for (size_t k = 0; k < users->len; k++)
            reach(p, users->data[k]);
    }
}

/* Finds anew what the item mentions, and where its name changed, what the items with either name mention. */
static void mention_anew(Parts *p) {
    PartCheck *t = p->now;
    if (t->types) {
        for (size_t k = 0; k < t->namers->len; k++)
            concern(p, t->namers->data[k]);
        reach_users(p);
        return;
    }
    concern(p, t->at);
    for (size_t k = 0; p->renamed && k < p->users[t->at].len; k++)
        concern(p, p->users[t->at].data[k]);
    const IndexVec *group = &p->c->groups.data[p->group[t->at]];
    for (size_t i = 0; i < group->len; i++)
        concern(p, group->data[i]);
    for (size_t i = 0; i < p->list.len; i++) {
        uint32_t at = p->list.data[i];
        if (at != t->at && !p->renamed)
            continue;
        p->edges[at] = (IndexVec){0};
        ast_item_mentions(&p->I, p->module.items.data[at], at, &p->edges[at]);
    }
    for (size_t k = 0; p->renamed && k < t->namers->len && t->bytes <= t->most_bytes; k++) {
        uint32_t at = t->namers->data[k];
        IndexVec edges = {0};
        if (p->reached[at] || !infer_in_groups(p->module.items.data[at]))
            continue;
        ast_item_mentions(&p->I, p->module.items.data[at], at, &edges);
        Span s = p->module.items.data[at]->span;
        t->bytes += (s.end - s.begin) / 8; /* reading is less work than checking */
        for (size_t e = 0; e < edges.len && !p->reached[at]; e++) {
            if (edges.data[e] != t->at)
                continue;
            concern(p, at);
            p->edges[at] = edges;
        }
    }
    reach_users(p);
}

/* The groups of the affected items, in order of dependency. */
static void reached_groups(Parts *p, GroupVec *out) {
    size_t n = p->list.len;
    IndexVec *edges = mem_new_n(IndexVec, n + 1);
    for (uint32_t i = 0; i < n; i++)
        p->index[p->list.data[i]] = i;
    for (size_t i = 0; i < n; i++) {
        const IndexVec *e = &p->edges[p->list.data[i]];
        for (size_t k = 0; k < e->len; k++) {
            if (p->reached[e->data[k]])
                vec_push(&edges[i], p->index[e->data[k]]);
        }
    }
    item_groups(n, edges, NULL, out);
    for (size_t g = 0; g < out->len; g++) {
        IndexVec *group = &out->data[g];
        for (size_t i = 0; i < group->len; i++)
            group->data[i] = p->list.data[group->data[i]];
    }
}

static bool is_concerned(const Parts *p, const IndexVec *group) {
    for (size_t i = 0; i < group->len; i++) {
        uint32_t at = group->data[i];
        if (p->concerned[at])
            return true;
        for (size_t k = 0; k < p->edges[at].len; k++) {
            if (p->news[p->edges[at].data[k]])
                return true;
        }
    }
    return false;
}

static bool touches_open(const Parts *p, uint32_t at) {
    const bool *open = p->c->open;
    if (open[at])
        return true;
    for (size_t k = 0; k < p->edges[at].len; k++) {
        if (open[p->edges[at].data[k]])
            return true;
    }
    return false;
}

/* Looks in a type for errors, and for types that are declared anew, whose text is that of the old ones. */
typedef struct NewsSearch {
    const Map *declared;
    Map seen;
    bool found;
} NewsSearch;

static void look_for_news(void *ctx, Type *t) {
    NewsSearch *e = ctx;
    t = t ? type_resolve(t) : NULL;
    if (!t || e->found || map_has(&e->seen, t))
        return;
    map_set(&e->seen, t, t);
    e->found = t->tag == TY_ERROR || (t->tag == TY_DATA && map_has(e->declared, t->decl));
    type_each_part(t, look_for_news, e);
}

/* Whether an item is what it was, as far as the items that mention it can tell. */
static bool is_as_before(const Parts *p, uint32_t at) {
    const Global *was = p->c->globals[at], *is = p->globals[at];
    if (!was || !is)
        return true;
    if (was->by_types || is->by_types || !was->scheme || !is->scheme)
        return false;
    NewsSearch news = {.declared = &p->declared};
    look_for_news(&news, was->scheme->type);
    look_for_news(&news, is->scheme->type);
    for (uint32_t i = 0; i < is->scheme->nrelations; i++)
        for (uint32_t k = 0; k < is->scheme->relations[i]->nargs; k++)
            look_for_news(&news, is->scheme->relations[i]->args[k]);
    return !news.found && scheme_same(is->scheme, was->scheme);
}

/* ---- checking -------------------------------------------------------------------------------- */

static PartVerdict check_reached_group(Parts *p, const IndexVec *group) {
    PartCheck *t = p->now;
    for (size_t i = 0; i < group->len; i++) {
        uint32_t at = group->data[i];
        bool in_circle = group->len > 1 && p->module.items.data[at]->kind != ITEM_DEF;
        if (in_circle || touches_open(p, at))
            return PART_UNSURE;
        Span s = p->module.items.data[at]->span;
        t->bytes += s.end - s.begin;
        p->c->env->counts.tried++;
        fill_slot(p, at);
    }
    size_t errors = t->diags->errors;
    bool good = infer_component(&p->I, group, p->edges, p->globals, p->core) &&
                t->diags->errors == errors;
    for (size_t i = 0; i < group->len; i++) {
        uint32_t at = group->data[i];
        const Global *g = p->globals[at];
        if (good && g && g->scheme && type_has_vars(g->scheme->type))
            return PART_UNSURE;
        bool failed = p->c->failed[at];
        bool may_fail = (int32_t)at == t->may_fail;
        if (may_fail)
            t->it_failed = !good;
        if (!good && (!failed || (!may_fail && (at == t->at || t->wanted[at]))))
            return PART_WORSE;
        p->nwanted -= good && t->wanted[at];
        t->mended += good && failed;
        p->news[at] = good && (failed || !is_as_before(p, at));
    }
    return PART_CHECKED;
}

/* Whether the file now has two definitions of a name. */
static bool is_defined_twice(const Parts *p, const FileName *f) {
    if (f->item->kind != ITEM_DEF || p->c->mode == INFER_PROMPT)
        return false;
    for (const FileName *e = map_find(&p->c->I->names, p->is); e; e = e->earlier) {
        if (e != f && e->item->kind == f->item->kind)
            return true;
    }
    return false;
}

/* Whether each item that runs finds what it needs before it. */
static bool runs_in_order(Parts *p) {
    GroupVec groups = {0};
    item_groups(p->n, p->edges, NULL, &groups);
    bool *failed = mem_new_n(bool, p->n + 1);
    return infer_order(&p->I, &groups, p->edges, failed);
}

static PartVerdict check_all(Parts *p) {
    mention_anew(p);
    if (p->now->bytes > p->now->most_bytes)
        return PART_WORSE;
    for (size_t i = 0; i < p->n; i++) {
        if (p->now->wanted[i] && !p->reached[i])
            return PART_WORSE;
        p->nwanted += p->now->wanted[i];
    }
    GroupVec groups = {0};
    reached_groups(p, &groups);
    p->now->bytes += 4 * p->list.len;
    for (size_t g = 0; g < groups.len; g++) {
        if (!is_concerned(p, &groups.data[g]))
            continue;
        if (p->now->bytes > p->now->most_bytes)
            return PART_WORSE;
        PartVerdict v = check_reached_group(p, &groups.data[g]);
        if (v != PART_CHECKED)
            return v;
    }
    if (p->nwanted > p->now->it_failed)
        return PART_WORSE;
    size_t failed = 0;
    for (size_t i = 0; i < p->n; i++)
        failed += p->c->failed[i];
    if (failed == p->now->mended && p->c->mode != INFER_PROMPT && !runs_in_order(p))
        return PART_WORSE;
    return PART_CHECKED;
}

/* Declares the edited types in place of the old ones, in copies of the namespace's maps. */
static PartVerdict declare(Parts *p) {
    const PartCheck *t = p->now;
    Namespace *here = p->c->env->here;
    Map types = {0}, ctors = {0};
    map_add(&types, &here->types);
    map_add(&ctors, &here->ctors);
    here->types = types;
    here->ctors = ctors;
    size_t n = t->types->len;
    Item **items = mem_new_n(Item *, n + 1);
    TypeDecl **decls = mem_new_n(TypeDecl *, n + 1);
    for (size_t i = 0; i < n; i++) {
        uint32_t at = t->types->data[i];
        TypeDecl *old = map_find(&here->types, p->c->module->items.data[at]->name.sym);
        if (!old || old->item != p->c->module->items.data[at])
            return PART_UNSURE;
        map_remove(&here->types, old->name);
        for (uint32_t c = 0; c < old->nctors; c++) {
            if (map_find(&here->ctors, old->ctors[c]->name) == old->ctors[c])
                map_remove(&here->ctors, old->ctors[c]->name);
        }
        items[i] = p->module.items.data[at];
        p->now->bytes += items[i]->span.end - items[i]->span.begin;
    }
    if (!infer_type_decls(&p->I, items, n, decls))
        return PART_WORSE;
    for (size_t i = 0; i < n; i++)
        map_set(&p->declared, decls[i], decls[i]);
    return PART_CHECKED;
}

static PartVerdict declare_and_check(Parts *p) {
    Namespace *here = p->c->env->here, saved = *here;
    Map *versions = &p->c->env->versions, own = *versions;
    *versions = (Map){0};
    map_add(versions, &own);
    PartVerdict v = declare(p);
    if (v == PART_CHECKED)
        v = check_all(p);
    *here = saved;
    *versions = own;
    map_clear(&p->declared);
    return v;
}

PartVerdict parts_check(Parts *p, PartCheck *t) {
    const ModuleCheck *c = p->c;
    const Item *before = c->module->items.data[t->at];
    FileName *f = t->types ? NULL : name_of(p, infer_item_symbol(before), t->at);
    p->now = t;
    p->nwanted = 0;
    p->was = t->types ? NULL : infer_item_symbol(before);
    p->is = t->types ? NULL : infer_item_symbol(t->item);
    p->renamed = f && p->was != p->is;
    if (t->item->kind != before->kind || (!t->types && !infer_in_groups(before)))
        return PART_UNSURE;
    if (p->renamed) {
        unlink_name(p, p->was, f);
        link_name(p, p->is, f);
    }
    Map specialised =
        c->env->specialised; /* restored, so that copies made here do not outlive the check */
    c->env->specialised = (Map){0};
    p->module.items.data[t->at] = t->item;
    infer_init(&p->I, c->env, &p->module, c->mode, t->diags);
    infer_begin_trial(&p->I);
    p->I.names = c->I->names;
    p->I.has_graph = c->I->has_graph;
    PartVerdict v = p->renamed && is_defined_twice(p, f) ? PART_WORSE
                    : t->types                           ? declare_and_check(p)
                                                         : check_all(p);
    if (solver_is_spent(p->I.s))
        v = PART_WORSE;
    t->core = p->core[t->at];
    infer_count(&p->I);
    c->env->specialised = specialised;
    while (p->slots.len) {
        Slot s = vec_pop(&p->slots);
        s.name->item = s.item;
        s.name->global = s.global;
    }
    if (p->renamed) {
        unlink_name(p, p->is, f);
        link_name(p, p->was, f);
    }
    for (size_t i = 0; i < p->list.len; i++) {
        uint32_t at = p->list.data[i];
        p->module.items.data[at] = c->module->items.data[at];
        p->edges[at] = c->edges[at];
        p->globals[at] = c->globals[at];
        p->reached[at] = p->news[at] = p->concerned[at] = false;
    }
    p->module.items.data[t->at] = c->module->items.data[t->at];
    vec_clear(&p->list);
    return v;
}
