/* SPDX-License-Identifier: Apache-2.0 */
/* The order of bindings in code for all rows: those come together that can run as one launch (Note [Groups of bindings]
 * in eval/fuse_let.c). What is the same for all rows goes first,
 *
 *   let s = sin(x);  let ds = dx * cos(x);           becomes    let s = sin(x);  let c = s * s;
 *   let c = s * s;   let dc = ds * s + ds * s;                  let ds = dx * cos(x);  let dc = ds * s + ds * s;
 *
 * since a derivative says value and tangent in turn; and what can be fused goes to where others need it:
 *
 *   let a = take(x, i); let b = a * 2.0;             becomes    let a = take(x, i); let c = take(y, i);
 *   let c = take(y, i); b + c                                   let b = a * 2.0; b + c
 *
 * Such values are kept somewhat longer. Nothing in this code is seen from outside but whether it fails, and then the loop
 * runs instead. A block is walked once, and what waits is looked at once for what it reads. */
#include "passes/batch_internal.h"

#include <stdlib.h>

typedef struct Order {
    PassCtx *ctx;
    Map by_row; /* Var -> it, where it differs from row to row */
} Order;

static bool differs(const Order *o, Expr *e) {
    VarVec vars = {0};
    expr_free_vars(e, &vars);
    for (size_t i = 0; i < vars.len; i++)
        if (map_has(&o->by_row, vars.data[i]))
            return true;
    return false;
}

static Expr *order_block(Order *o, Expr *e);

/* The value of a binding, with the blocks of a choice in order. */
static Expr *order_value(Order *o, Expr *e) {
    if (e->kind != EXPR_IF)
        return e;
    Expr *copy = expr_copy(e);
    copy->b = order_block(o, e->b);
    copy->c = order_block(o, e->c);
    return copy;
}

/* Whether it may become part of a kernel with what reads it. */
static bool is_fusible(const Expr *e) {
    if (e->kind != EXPR_CALL || e->a->kind != EXPR_OP || e->nsizes)
        return false;
    switch (e->a->op->pattern) {
    case OP_ELEMWISE:
    case OP_BROADCAST:
    case OP_REDUCE:
    case OP_PRODUCT:
    case OP_ROWS: return true;
    case OP_INJECTIVE: return e->nargs == 1 && type_resolve(e->args[0]->type)->tag == TY_TENSOR;
    case OP_TUPLE:
    case OP_OPAQUE: return false;
    }
    return false;
}

/* Bindings that wait, and the block that they go to. */
typedef struct Waiting {
    Links all, *out;
    Map numbers;       /* Var -> 1 + the number of its binding, while that waits */
    VEC(size_t) asked; /* numbers of bindings that are to be written now */
} Waiting;

static void ask(Waiting *w, Expr *e) {
    VarVec vars = {0};
    expr_free_vars(e, &vars);
    for (size_t i = 0; i < vars.len; i++) {
        uintptr_t number = (uintptr_t)map_find(&w->numbers, vars.data[i]);
        if (!number)
            continue;
        map_set(&w->numbers, vars.data[i], NULL);
        vec_push(&w->asked, number - 1);
    }
}

static int compare_numbers(const void *a, const void *b) {
    const size_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Writes what e reads of what waits, and what that reads. */
static void write_read(Waiting *w, Expr *e) {
    w->asked.len = 0;
    ask(w, e);
    for (size_t i = 0; i < w->asked.len; i++)
        ask(w, w->all.data[w->asked.data[i]]->a);
    if (w->asked.len > 1)
        qsort(w->asked.data, w->asked.len, sizeof *w->asked.data, compare_numbers);
    for (size_t i = 0; i < w->asked.len; i++)
        vec_push(w->out, w->all.data[w->asked.data[i]]);
}

/* Adds the links to the block, each that can be fused as late as others let it. */
static void write_links(Links *out, const Links *links) {
    Waiting w = {.out = out};
    for (size_t i = 0; i < links->len; i++) {
        Expr *link = links->data[i];
        if (link->var && !link->rec && is_fusible(link->a)) {
            vec_push(&w.all, link);
            map_set(&w.numbers, link->var, (void *)(uintptr_t)w.all.len);
            continue;
        }
        write_read(&w, link->a);
        vec_push(out, link);
    }
    for (size_t i = 0; i < w.all.len; i++)
        if (map_find(&w.numbers, w.all.data[i]->var))
            vec_push(out, w.all.data[i]);
}

static Expr *order_block(Order *o, Expr *e) {
    Links same = {0}, by_row = {0}, links = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        pass_visit(o->ctx);
        Expr *link = expr_copy(e);
        link->a = order_value(o, e->a);
        if (!differs(o, link->a)) {
            vec_push(&same, link);
            continue;
        }
        if (e->var)
            map_enter(&o->by_row, e->var);
        vec_push(&by_row, link);
    }
    write_links(&links, &same);
    write_links(&links, &by_row);
    return close_links(&links, order_value(o, e));
}

Expr *batch_order(PassCtx *ctx, Expr *body, Expr *const *args, uint32_t n) {
    Order o = {.ctx = ctx};
    VarVec vars = {0};
    for (uint32_t i = 0; i < n; i++)
        expr_free_vars(args[i], &vars);
    for (size_t i = 0; i < vars.len; i++)
        map_enter(&o.by_row, vars.data[i]);
    return order_block(&o, body);
}
