/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks among the arguments of a call come before it, where what they compute is seen from behind:
 *
 *   f(g(x), { let y = x * x; y + 1 })               becomes   let t = g(x); let y = x * x; f(t, y + 1)
 *
 * Everything is computed in the order in which it was: what stands before a block gets a name, unless it computes nothing.
 * Inlining leaves such blocks, and `cse` shares what two of them have in common: a Jacobian whose rows are the gradients of
 * one function goes forth once. */
#include "passes/cells.h"
#include "passes/inline.h"

static bool names_function(const Expr *e) {
    return e->kind == EXPR_OP || e->kind == EXPR_CTOR || e->kind == EXPR_BUILTIN ||
           e->kind == EXPR_GLOBAL || e->kind == EXPR_VAR;
}

/* The parts that are computed before e is, in their order. */
static Expr **parts_of(Expr *e, uint32_t *n) {
    switch (e->kind) {
    case EXPR_CALL: *n = names_function(e->a) ? e->nargs : 0; return e->args;
    case EXPR_TUPLE:
    case EXPR_TENSOR: *n = e->nargs; return e->args;
    case EXPR_IF:
    case EXPR_MATCH:
    case EXPR_PROJ:
    case EXPR_FIELD: *n = 1; return &e->a;
    default: *n = 0; return NULL;
    }
}

/* Whether it is the same wherever it stands. */
static bool computes_nothing(const Expr *e) {
    while (e->kind == EXPR_PROJ || e->kind == EXPR_FIELD)
        e = e->a;
    return e->kind == EXPR_VAR || e->kind == EXPR_LIT || e->kind == EXPR_CONST ||
           e->kind == EXPR_STRING || e->kind == EXPR_FN || e->kind == EXPR_OP ||
           e->kind == EXPR_CTOR || (e->kind == EXPR_TUPLE && !e->nargs);
}

/* Whether a tuple or data in a function literal, of which a derivative may be made as it stands, gives a cell of its own
 * (passes/cells.h) to a value that may have one before the blocks behind it run: that is an order in which cotangents are
 * added, and no binding would keep it. */
static bool keeps_order(const Inliner *in, const Expr *e, Expr *const *parts, uint32_t end) {
    for (uint32_t i = 0; in->nested && e->own_cells && i + 1 < end; i++)
        if (!cells_are_new(parts[i]))
            return true;
    return false;
}

/* What stands for a part of which more are to come when all are there. */
static Expr *name_part(Links *links, Expr *part) {
    if (computes_nothing(part))
        return part;
    Expr *let = expr_new(EXPR_LET, part->type, part->span);
    let->var = var_new(sym_intern("t"), part->type, part->span);
    let->a = part;
    let->inlined = part->inlined;
    vec_push(links, let);
    Expr *name = expr_var(let->var, part->span);
    name->inlined = let->inlined;
    return name;
}

Expr *lift_blocks(Inliner *in, Expr *e) {
    uint32_t n, end = 0;
    Expr **parts = parts_of(e, &n);
    for (uint32_t i = 0; i < n; i++)
        if (parts[i]->kind == EXPR_LET)
            end = i + 1;
    if (!end || keeps_order(in, e, parts, end))
        return e;
    Links links = {0};
    Expr *copy = expr_copy(e);
    if (parts != &e->a) {
        copy->args = mem_new_n(Expr *, n + 1);
        for (uint32_t i = 0; i < n; i++)
            copy->args[i] = e->args[i];
    }
    parts = parts_of(copy, &n);
    for (uint32_t i = 0; i < end; i++) {
        parts[i] = inline_open_block(in, &links, parts[i]);
        if (i + 1 < end)
            parts[i] = name_part(&links, parts[i]);
    }
    return close_links(&links, copy);
}
