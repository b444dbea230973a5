/* SPDX-License-Identifier: Apache-2.0 */
/* Graph bindings as TVM prints them: `%0 = e;` stands where it was first met, and may be used in
 * other blocks:
 *
 *     if (c) { %0 = f(x); %0 } else { g(%0) }
 *
 * Where all uses lie in its own block it is a let. Else it is evaluated on first demand: before the
 * link of the innermost chain that holds the binding and all uses, a cell is made,
 *
 *     let cell = ref(fn () { error });
 *     cell := fn () { let v = e; cell := fn () { v }; v };
 *
 * and each use is (!cell)(). A body is walked once before it is checked, for those sites. */
#include <string.h>

#include "types/infer/state.h"

typedef struct Block Block;
struct Block {
    Block *outer;
    const Ast *link; /* the link of the outer block in which this block stands */
    uint32_t depth;
};

typedef struct Site {
    Ast *def;
    Block *home;
    Block *around;   /* the block that holds all uses so far */
    const Ast *link; /* the link of `around` before which the cell is made */
    bool lazy;
    struct Site *next; /* the next site of the same link */
} Site;

typedef struct GraphWalk {
    Infer *I;
    Map sites; /* symbol of the number -> the latest Site in the text */
    VEC(Site *) all;
} GraphWalk;

static const Symbol *graph_symbol(int64_t i) {
    return sym_intern(fmt_text("%%%lld", (long long)i));
}

static void find_uses(GraphWalk *w, Ast *e, Block *b, const Ast *link);

static void note_use(GraphWalk *w, int64_t number, Block *b) {
    Site *s = map_find(&w->sites, graph_symbol(number));
    if (!s)
        return;
    /* Find the innermost block around the site and this use, and in it the link that holds the site. */
    Block *x = s->around, *y = b;
    const Ast *link = s->link;
    while (x != y) {
        if (x->depth >= y->depth) {
            link = x->link;
            x = x->outer;
        } else {
            y = y->outer;
        }
    }
    if (x == s->around)
        return;
    s->around = x;
    s->link = link;
    s->lazy = true;
}

static void find_uses_in_chain(GraphWalk *w, Ast *e, Block *outer, const Ast *outer_link) {
    Block *b = mem_new(Block);
    b->outer = outer;
    b->link = outer_link;
    b->depth = outer->depth + 1;
    while (e) {
        bool link = e->kind == AST_LET || e->kind == AST_GRAPH_LET || e->kind == AST_FREE_VAR ||
                    e->kind == AST_SEQ;
        if (!link) {
            find_uses(w, e, b, e);
            return;
        }
        if (e->a)
            find_uses(w, e->a, b, e);
        if (e->kind == AST_GRAPH_LET) {
            Site *s = mem_new(Site);
            s->def = e;
            s->home = s->around = b;
            s->link = e;
            map_set(&w->sites, graph_symbol(e->i), s);
            vec_push(&w->all, s);
        }
        e = e->body;
    }
}

typedef struct SizeUses {
    GraphWalk *w;
    Block *b;
    const Ast *link;
} SizeUses;

static void find_uses_in_size(void *uses, Ast *e) {
    const SizeUses *u = uses;
    find_uses(u->w, e, u->b, u->link);
}

static void find_uses(GraphWalk *w, Ast *e, Block *b, const Ast *link) {
    while (e->kind == AST_BINARY && !infix_table[e->op].right) {
        find_uses(w, e->b, b, link);
        e = e->a;
    }
    if (e->kind == AST_GRAPH_VAR) {
        note_use(w, e->i, b);
        return;
    }
    if (e->kind == AST_LET || e->kind == AST_GRAPH_LET || e->kind == AST_FREE_VAR ||
        e->kind == AST_SEQ) {
        find_uses_in_chain(w, e, b, link);
        return;
    }
    if (e->kind == AST_FN) {
        if (e->fn->body)
            find_uses(w, e->fn->body, b, link);
        return;
    }
    if (e->a)
        find_uses(w, e->a, b, link);
    if (e->b)
        find_uses(w, e->b, b, link);
    if (e->c)
        find_uses(w, e->c, b, link);
    for (size_t i = 0; i < e->args.len; i++)
        find_uses(w, e->args.data[i], b, link);
    if (e->kind == AST_CALL) {
        SizeUses uses = {w, b, link};
        ast_attrs_each(&e->attrs, find_uses_in_size, &uses);
    }
    for (size_t i = 0; ast_has_indices(e) && i < e->indices.len; i++) {
        const AstIndex *x = &e->indices.data[i];
        if (x->at)
            find_uses(w, x->at, b, link);
        if (x->begin)
            find_uses(w, x->begin, b, link);
        if (x->end)
            find_uses(w, x->end, b, link);
        if (x->step)
            find_uses(w, x->step, b, link);
    }
    for (size_t i = 0; e->kind == AST_MATCH && i < e->arms.len; i++) {
        if (e->arms.data[i].guard)
            find_uses(w, e->arms.data[i].guard, b, link);
        find_uses(w, e->arms.data[i].body, b, link);
    }
}

void infer_graph_plan(Infer *I, Ast *body) {
    GraphWalk w = {.I = I};
    Block root = {0};
    find_uses(&w, body, &root, body);
    for (size_t i = w.all.len;
         i-- > 0;) { /* backwards, so that each list is in the order of the text */
        Site *s = w.all.data[i];
        if (!s->lazy)
            continue;
        map_set(&I->graph_lazy, s->def, s);
        s->next = map_find(&I->graph_sites, s->link);
        map_set(&I->graph_sites, s->link, s);
    }
}

bool infer_graph_is_lazy(const Infer *I, const Ast *link) { return map_has(&I->graph_lazy, link); }

static Expr *error_thunk(Type *type, Span span) {
    Expr *text = expr_new(EXPR_STRING, type_string(), span);
    text->text = "a graph binding needs itself";
    text->text_len = strlen(text->text);
    Expr *body = expr_call_builtin("error", &text, 1, type->fn.result, span);
    return expr_fn(NULL, 0, body, type, span);
}

static void emit(Infer *I, Site *s, void *links) {
    Span span = s->def->span;
    Type *outer = I->effect;
    Type *effect = I->effect = solver_var(I->s, KIND_EFFECT);
    Expr *value = infer_expr(I, s->def->a, NULL);
    I->effect = outer;
    Type *fn = type_fn(NULL, 0, value->type, effect);
    const Symbol *name = graph_symbol(s->def->i);
    Var *cell = var_new(name, type_ref(fn), span), *v = var_new(name, value->type, span);
    Expr *made = expr_new(EXPR_REF, cell->type, span);
    made->a = error_thunk(fn, span);
    infer_chain_emit(links, cell, made);
    Expr *known = expr_new(EXPR_WRITE, type_unit(), span);
    known->a = expr_var(cell, span);
    known->b = expr_fn(NULL, 0, expr_var(v, span), fn, span);
    Expr *body = expr_let(v, value, expr_let(NULL, known, expr_var(v, span)));
    Expr *set = expr_new(EXPR_WRITE, type_unit(), span);
    set->a = expr_var(cell, span);
    set->b = expr_fn(NULL, 0, body, fn, span);
    infer_chain_emit(links, NULL, set);
    Expr *read = expr_new(EXPR_READ, fn, span);
    read->a = expr_var(cell, span);
    Local *l = scope_bind(I, name, true, v);
    l->lazy = expr_call(read, NULL, 0, NULL, value->type, span);
}

void infer_graph_enter_link(Infer *I, const Ast *link, void *links) {
    Site *s = map_find(&I->graph_sites, link);
    for (; s; s = s->next)
        emit(I, s, links);
}
