/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks among the arguments of a call come before it, where what they compute is seen from behind:
 *
 *   f(g(x), { let y = x * x; y + 1 })               becomes   let t = g(x); let y = x * x; f(t, y + 1)
 *
 * Everything is computed in the order in which it was: what stands before a block gets a name, unless it computes nothing.
 * Inlining leaves such blocks, and `cse` shares what two of them have in common: a Jacobian whose rows are the gradients of
 * one function goes forth once. */
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

Expr *lift_blocks(Inliner *in, Expr *e) {
    uint32_t n, end = 0;
    Expr **parts = parts_of(e, &n);
    for (uint32_t i = 0; i < n; i++)
        if (parts[i]->kind == EXPR_LET)
            end = i + 1;
    if (!end)
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
        if (i + 1 == end || computes_nothing(parts[i]))
            continue;
        Expr *let = expr_new(EXPR_LET, parts[i]->type, parts[i]->span);
        let->var = var_new(sym_intern("t"), parts[i]->type, parts[i]->span);
        let->a = parts[i];
        let->inlined = parts[i]->inlined;
        vec_push(&links, let);
        parts[i] = expr_var(let->var, parts[i]->span);
        parts[i]->inlined = let->inlined;
    }
    return close_links(&links, copy);
}
