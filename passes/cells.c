/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/cells.h"

#include "passes/build.h"
#include "passes/inline.h"

bool cells_is_own(const Expr *e) { return expr_calls_builtin(e, "ad.own"); }

bool cells_in_type(Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        return type_dtype_set(t->tensor.dtype) & DTS_FLOAT;
    return t->tag == TY_PARAM || t->tag == TY_VAR;
}

static bool may_be_tensor(const Expr *e) {
    return e->kind != EXPR_LIT && e->kind != EXPR_CONST && e->type && cells_in_type(e->type);
}

/* The same, or a function. */
static bool may_be_owned(const Expr *e) {
    return may_be_tensor(e) || (e->type && type_resolve(e->type)->tag == TY_FN);
}

static Expr *own_call(Expr *e) {
    Build b = {e->span};
    Expr *call = b_builtin(&b, "ad.own", e, NULL);
    call->type = e->type;
    return call;
}

static Expr *own_captured(void *ctx, Expr *use) {
    (void)ctx;
    return cells_in_type(use->type) ? own_call(use) : use;
}

/* Whether of each variable that a literal captured it is known whether it is a tensor. */
static bool tells_captured(Expr *fn) {
    VarVec captured = {0};
    expr_free_vars(fn, &captured);
    for (size_t i = 0; i < captured.len; i++) {
        TypeTag tag = type_resolve(captured.data[i]->type)->tag;
        if (tag == TY_PARAM || tag == TY_VAR)
            return false;
    }
    return true;
}

Expr *cells_of_literal(Expr *fn) {
    bool tells = !fn->fn->as_data && tells_captured(fn);
    return tells ? literal_with_names(fn, own_captured, NULL) : NULL;
}

static Expr *own_part(Expr *e) { return may_be_owned(e) ? own_call(e) : e; }

/* The same, where a literal captures these cells by name: it is known where it is taken out again. */
static Expr *own_part_by_names(Expr *e) {
    Expr *literal = e->kind == EXPR_FN ? cells_of_literal(e) : NULL;
    return literal ? literal : own_part(e);
}

static Expr *expose_parts(Expr *e, Expr *(*own)(Expr *part)) {
    if (!e->own_cells)
        return e;
    Expr *copy = expr_copy(e);
    copy->own_cells = false;
    copy->args = mem_new_n(Expr *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++)
        copy->args[i] = own(e->args[i]);
    return copy;
}

Expr *cells_of_parts(Expr *e) { return expose_parts(e, own_part); }

static Expr *cells_by_names(Expr *e) { return expose_parts(e, own_part_by_names); }

/* What is to be changed: most functions have nothing of it. */
typedef struct Change {
    bool (*applies)(void *ctx, const Expr *e);
    Expr *(*change)(Expr *e);
    bool (*keeps)(const Expr *e); /* what stays as it is; NULL: nothing */
} Change;

typedef struct Walk {
    const Change *change;
    Map done;
} Walk;

static Expr *walk(void *ctx, Expr *e) {
    Walk *w = ctx;
    Expr *known = expr_is_leaf(e) ? e : map_find(&w->done, e);
    if (known)
        return known;
    if (w->change->keeps && w->change->keeps(e))
        return e;
    Expr *result = e->kind == EXPR_LET ? expr_map_block(e, walk, w) : expr_map_children(e, walk, w);
    if (w->change->keeps && result != e && e->kind == EXPR_FN)
        result->fn->is_remade = true;
    if (w->change->applies(NULL, result))
        result = w->change->change(result);
    map_set(&w->done, e, result);
    return result;
}

static Expr *change_all(Expr *e, const Change *change) {
    if (!expr_any(e, change->applies, NULL))
        return e;
    Walk w = {.change = change};
    MapRoom room;
    map_begin(&w.done, &room);
    e = walk(&w, e);
    map_end(&w.done);
    return e;
}

static bool has_own_cells(void *ctx, const Expr *e) {
    (void)ctx;
    return e->own_cells;
}

Expr *cells_expose(Expr *e) {
    return change_all(e, &(Change){has_own_cells, cells_by_names, expr_is_vmap_of_literal});
}

static bool gives_own(void *ctx, const Expr *e) {
    (void)ctx;
    return cells_is_own(e);
}

static Expr *drop(Expr *e) { return e->args[0]; }

Expr *cells_drop(Expr *e) { return change_all(e, &(Change){gives_own, drop, NULL}); }

/* What the block binds to v, or NULL. */
static const Expr *bound_in(const Expr *block, const Var *v) {
    for (; block->kind == EXPR_LET; block = block->body)
        if (block->var == v)
            return block->a;
    return NULL;
}

bool cells_are_new(const Expr *e) {
    const Expr *result = e;
    while (result->kind == EXPR_LET)
        result = result->body;
    if (!may_be_owned(result))
        return true;
    const Expr *bound = result->kind == EXPR_VAR ? bound_in(e, result->var) : NULL;
    bool new = true;
    switch (result->kind) {
    case EXPR_VAR: return bound && cells_are_new(bound);
    case EXPR_CALL: return result->a->kind == EXPR_OP;
    case EXPR_TENSOR: return true;
    case EXPR_IF: return cells_are_new(result->b) && cells_are_new(result->c);
    case EXPR_MATCH:
        for (uint32_t i = 0; i < result->narms && new; i++)
            new = cells_are_new(result->arms[i].body);
        return new;
    default: return false;
    }
}
