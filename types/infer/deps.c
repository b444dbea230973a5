/* SPDX-License-Identifier: Apache-2.0 */
/* In which order the items of a source are checked, and whether they run in theirs: who mentions whom, and the strongly connected
 * groups of that graph (R. Tarjan, Depth-first search and linear graph algorithms, 1972).
 *
 * Mentions respect local scopes: a parameter called `map` is no mention of the definition `map`, or
 * unrelated definitions would be checked together and lose generality. */
#include <stdlib.h>
#include <string.h>

#include "types/infer/state.h"

typedef struct Mentions {
    Infer *I;
    uint32_t position;
    IndexVec *out;
    Map seen;  /* FileName already noted */
    Map bound; /* Symbol -> Mark: the names that are bound locally */
    VEC(const Symbol *) trail;
    VEC(void *) shadowed;
} Mentions;

static const char bound_bare = 0, bound_sigil = 0; /* only their addresses are used */

static void bind(Mentions *m, const Symbol *name, bool sigil) {
    vec_push(&m->trail, name);
    vec_push(&m->shadowed, map_find(&m->bound, name));
    map_set(&m->bound, name, (void *)(sigil ? &bound_sigil : &bound_bare));
}

static void restore(Mentions *m, size_t mark) {
    while (m->trail.len > mark) {
        const Symbol *name = vec_pop(&m->trail);
        void *old = vec_pop(&m->shadowed);
        if (old) {
            map_set(&m->bound, name, old);
        } else {
            map_remove(&m->bound, name);
        }
    }
}

static void mention(Mentions *m, const Name *name) {
    if (name->sigil != SIGIL_GLOBAL) {
        void *local = map_find(&m->bound, name->sym);
        if (local && !(local == &bound_sigil && name->sigil == SIGIL_NONE))
            return;
    }
    FileName *f = file_name_at(m->I, name->sym, m->position, false);
    if (!f || map_has(&m->seen, f))
        return;
    map_set(&m->seen, f, f);
    vec_push(m->out, f->position);
}

static const Symbol *graph_symbol(int64_t i) {
    return sym_intern(fmt_text("%%%lld", (long long)i));
}

static void collect_mentions(Mentions *m, const Ast *e);

static void bind_pattern(Mentions *m, const AstPattern *p) {
    switch (p->kind) {
    case AST_PAT_NAME:
        if (p->name.sigil != SIGIL_NONE || !scope_find_ctor(m->I, p->name.sym))
            bind(m, p->name.sym, p->name.sigil != SIGIL_NONE);
        return;
    case AST_PAT_WILDCARD:
    case AST_PAT_INT:
    case AST_PAT_FLOAT:
    case AST_PAT_BOOL:
    case AST_PAT_STRING: return;
    case AST_PAT_CTOR:
    case AST_PAT_RECORD:
    case AST_PAT_TUPLE:
    case AST_PAT_PAREN:
    case AST_PAT_CONS:
    case AST_PAT_LIST: break;
    }
    for (size_t i = 0; i < p->args.len; i++)
        bind_pattern(m, p->args.data[i]);
}

static void collect_in_fn(Mentions *m, const AstFn *fn, const NameVec *extra) {
    size_t mark = m->trail.len;
    for (size_t i = 0; i < fn->params.len; i++) {
        const Name *n = &fn->params.data[i].name;
        bind(m, n->sym, n->sigil != SIGIL_NONE);
    }
    for (size_t i = 0; extra && i < extra->len; i++)
        bind(m, extra->data[i].sym, false);
    if (fn->body)
        collect_mentions(m, fn->body);
    restore(m, mark);
}

static void visit_size(void *mentions, Ast *e) { collect_mentions(mentions, e); }

/* A name may be a size there, or a dtype, which mentions nothing. */
static void collect_in_value(Mentions *m, const AstAttrValue *v) {
    if (v->kind == AST_ATTR_NAME)
        mention(m, &(Name){.sym = v->name, .span = v->span});
    for (size_t i = 0; v->kind == AST_ATTR_LIST && i < v->items.len; i++)
        collect_in_value(m, v->items.data[i]);
}

static void collect_in_attrs(Mentions *m, const AstAttrVec *attrs) {
    ast_attrs_each(attrs, visit_size, m);
    for (size_t i = 0; i < attrs->len; i++)
        collect_in_value(m, attrs->data[i].value);
}

/* Walks all parts of e but the `body` of a chain. */
static void collect_in_parts(Mentions *m, const Ast *e) {
    if (e->a)
        collect_mentions(m, e->a);
    if (e->b)
        collect_mentions(m, e->b);
    if (e->c)
        collect_mentions(m, e->c);
    for (size_t i = 0; i < e->args.len; i++)
        collect_mentions(m, e->args.data[i]);
    if (e->kind == AST_CALL)
        collect_in_attrs(m, &e->attrs);
    for (size_t i = 0; ast_has_indices(e) && i < e->indices.len; i++) {
        const AstIndex *x = &e->indices.data[i];
        if (x->at)
            collect_mentions(m, x->at);
        if (x->begin)
            collect_mentions(m, x->begin);
        if (x->end)
            collect_mentions(m, x->end);
        if (x->step)
            collect_mentions(m, x->step);
    }
    for (size_t i = 0; e->kind == AST_MATCH && i < e->arms.len; i++) {
        const AstArm *arm = &e->arms.data[i];
        size_t mark = m->trail.len;
        bind_pattern(m, arm->pattern);
        if (arm->guard)
            collect_mentions(m, arm->guard);
        collect_mentions(m, arm->body);
        restore(m, mark);
    }
}

static void collect_mentions(Mentions *m, const Ast *e) {
    size_t mark = m->trail.len;
    while (e) {
        switch (e->kind) {
        case AST_NAME: mention(m, &e->name); goto done;
        case AST_GRAPH_VAR: {
            Name n = {.sym = graph_symbol(e->i), .sigil = SIGIL_LOCAL};
            mention(m, &n);
            goto done;
        }
        case AST_FN: collect_in_fn(m, e->fn, NULL); goto done;
        case AST_LET: {
            bool sigil = e->name.sigil != SIGIL_NONE;
            bool rec = e->a && e->a->kind == AST_FN;
            if (rec)
                bind(m, e->name.sym, sigil);
            if (e->a)
                collect_mentions(m, e->a);
            if (!rec)
                bind(m, e->name.sym, sigil);
            e = e->body;
            continue;
        }
        case AST_GRAPH_LET:
            m->I->has_graph = true;
            if (e->a)
                collect_mentions(m, e->a);
            bind(m, graph_symbol(e->i), true);
            e = e->body;
            continue;
        case AST_FREE_VAR:
            bind(m, e->name.sym, e->name.sigil != SIGIL_NONE);
            e = e->body;
            continue;
        case AST_SEQ:
            if (e->a)
                collect_mentions(m, e->a);
            e = e->body;
            continue;
        case AST_BINARY: /* a left-leaning chain is walked in this loop */
            if (infix_table[e->op].right) {
                collect_mentions(m, e->a);
                e = e->b;
            } else {
                collect_mentions(m, e->b);
                e = e->a;
            }
            continue;
        case AST_RECORD: mention(m, &e->name); break;
        case AST_INT:
        case AST_FLOAT:
        case AST_BOOL:
        case AST_STRING:
        case AST_HOLE:
        case AST_CALL:
        case AST_INSTANTIATE:
        case AST_IF:
        case AST_MATCH:
        case AST_TUPLE:
        case AST_PROJ:
        case AST_FIELD:
        case AST_WITH:
        case AST_WITH_AT:
        case AST_TENSOR:
        case AST_LIST:
        case AST_INDEX:
        case AST_UNARY:
        case AST_CAST:
        case AST_ZERO:
        case AST_REF:
        case AST_REF_READ:
        case AST_GRAD:
        case AST_META:
        case AST_ERROR: break;
        }
        collect_in_parts(m, e);
        break;
    }
done:
    restore(m, mark);
}

void ast_item_mentions(Infer *I, const Item *item, uint32_t position, IndexVec *out) {
    Mentions m = {.I = I, .position = position, .out = out};
    if (item->fn)
        collect_in_fn(&m, item->fn, &item->extra);
    if (item->value)
        collect_mentions(&m, item->value);
}

/* ---- strongly connected groups --------------------------------------------------------------- */

typedef struct Tarjan {
    size_t n;
    const IndexVec *edges;
    const bool *skip; /* items whose edges are left out, or NULL */
    uint32_t *index, *low;
    bool *on_stack;
    uint32_t next;
    IndexVec stack;
    GroupVec *out;
} Tarjan;

typedef struct Visit {
    uint32_t node;
    size_t edge;
} Visit;

static int by_position(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void close_group(Tarjan *t, uint32_t root) {
    IndexVec group = {0};
    uint32_t v;
    do {
        v = vec_pop(&t->stack);
        t->on_stack[v] = false;
        vec_push(&group, v);
    } while (v != root);
    qsort(group.data, group.len, sizeof *group.data,
          by_position); /* check a group in the order of the source */
    vec_push(t->out, group);
}

static void visit(Tarjan *t, uint32_t root) {
    VEC(Visit) work = {0};
    Visit first = {root, 0};
    vec_push(&work, first);
    while (work.len) {
        Visit *v = &vec_last(&work);
        uint32_t node = v->node;
        if (v->edge == 0) {
            t->index[node] = t->low[node] = ++t->next;
            vec_push(&t->stack, node);
            t->on_stack[node] = true;
        }
        bool deeper = false;
        while (v->edge < t->edges[node].len) {
            uint32_t to = t->edges[node].data[v->edge++];
            if (t->skip && t->skip[to])
                continue;
            if (!t->index[to]) {
                Visit next = {to, 0};
                vec_push(&work, next);
                deeper = true;
                break;
            }
            if (t->on_stack[to] && t->index[to] < t->low[node])
                t->low[node] = t->index[to];
        }
        if (deeper)
            continue;
        if (t->low[node] == t->index[node])
            close_group(t, node);
        (void)vec_pop(&work);
        if (work.len) {
            uint32_t parent = vec_last(&work).node;
            if (t->low[node] < t->low[parent])
                t->low[parent] = t->low[node];
        }
    }
}

void item_groups(size_t n, const IndexVec *edges, const bool *skip, GroupVec *out) {
    Tarjan t = {.n = n, .edges = edges, .skip = skip, .out = out};
    t.index = mem_new_n(uint32_t, n + 1);
    t.low = mem_new_n(uint32_t, n + 1);
    t.on_stack = mem_new_n(bool, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (!t.index[i])
            visit(&t, i);
    }
}

/* ---- in which order items run ---------------------------------------------------------------- */

/* Says by which items the item at `at` needs itself: the shortest way, "`m` needs `a`, which needs `m`". */
static void add_way_round(Infer *I, Diag *d, uint32_t at, const IndexVec *edges) {
    Item *const *items = I->module->items.data;
    size_t n = I->module->items.len;
    uint32_t *from = mem_new_n(uint32_t, n);
    bool *seen = mem_new_n(bool, n);
    IndexVec work = {0}, way = {0};
    vec_push(&work, at);
    for (size_t next = 0; next < work.len && !seen[at]; next++) {
        uint32_t i = work.data[next];
        for (size_t k = 0; k < edges[i].len; k++) {
            uint32_t to = edges[i].data[k];
            if (seen[to])
                continue;
            seen[to] = true;
            from[to] = i;
            vec_push(&work, to);
        }
    }
    for (uint32_t i = from[at]; seen[at] && i != at; i = from[i])
        vec_push(&way, i);
    Str text = {0};
    str_printf(&text, "`%s` needs ", infer_item_symbol(items[at])->text);
    while (way.len)
        str_printf(&text, "`%s`, which needs ", infer_item_symbol(items[vec_pop(&way)])->text);
    str_printf(&text, "`%s`", infer_item_symbol(items[at])->text);
    diag_add_fact(d, "%s", str_text(&text));
}

static void report_needs_itself(Infer *I, uint32_t at, const IndexVec *edges) {
    const Item *item = I->module->items.data[at];
    infer_begin_item(I);
    Diag *d = infer_error(I, DIAG_R0104, item->span, "`%s` needs its own value",
                          infer_item_symbol(item)->text);
    if (d)
        add_way_round(I, d, at, edges);
    if (d && item->value && item->value->kind == AST_FN)
        diag_add_help(d, "definitions may call each other: `def %s(…)`",
                      infer_item_symbol(item)->text);
}

bool infer_needs_itself(Infer *I, const IndexVec *group, const IndexVec *edges) {
    for (size_t i = 0; i < group->len && group->len > 1; i++) {
        if (I->module->items.data[group->data[i]]->kind != ITEM_DEF) {
            report_needs_itself(I, group->data[i], edges);
            return true;
        }
    }
    return false;
}

/* Items run in order: a `let` or expression must not need a `let` further down. reach[i] is the
 * last position of a `let` that running item i needs. */
bool infer_order(Infer *I, const GroupVec *groups, const IndexVec *edges, bool *failed) {
    size_t n = I->module->items.len;
    uint32_t *reach = mem_bytes((n + 1) * sizeof *reach);
    uint32_t *self = mem_bytes((n + 1) * sizeof *self);
    memset(reach, 0, (n + 1) * sizeof *reach);
    for (size_t i = 0; i < n; i++) {
        ItemKind k = I->module->items.data[i]->kind;
        bool has_value_at = k == ITEM_LET || k == ITEM_GRAPH_LET || k == ITEM_FREE_VAR;
        self[i] = has_value_at ? (uint32_t)i + 1 : 0; /* + 1, so that zero says none */
    }
    for (size_t g = 0; g < groups->len; g++) {
        const IndexVec *group = &groups->data[g];
        uint32_t last = 0;
        for (size_t i = 0; i < group->len; i++) {
            const IndexVec *e = &edges[group->data[i]];
            for (size_t k = 0; k < e->len; k++) {
                if (e->data[k] == group->data[i])
                    continue; /* a recursive function needs itself only when it is called */
                uint32_t r = self[e->data[k]] > reach[e->data[k]] ? self[e->data[k]]
                                                                  : reach[e->data[k]];
                if (r > last)
                    last = r;
            }
        }
        for (size_t i = 0; i < group->len; i++) {
            uint32_t at = group->data[i];
            reach[at] = last;
            const Item *item = I->module->items.data[at];
            bool runs = item->kind == ITEM_LET || item->kind == ITEM_GRAPH_LET ||
                        item->kind == ITEM_EXPR;
            if (!runs || last <= at)
                continue;
            const Item *needed = I->module->items.data[last - 1];
            failed[at] = true;
            if (needed == item) {
                report_needs_itself(I, at, edges);
                return false;
            }
            infer_begin_item(I);
            Diag *d = infer_error(I, DIAG_R0104, item->span,
                                  "this needs `%s`, which has no value yet",
                                  infer_item_symbol(needed)->text);
            if (d)
                diag_add_label(d, needed->span, "it gets its value here, further down");
            return false;
        }
    }
    return true;
}
