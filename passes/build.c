/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/build.h"

#include <stdarg.h>

Var *b_var(const Build *b, const char *name) {
    return var_new(sym_intern(name), type_error(), b->span);
}

Expr *b_ref(const Build *b, Var *v) { return expr_var(v, b->span); }

void b_stands_for(Expr *operand, const Expr *call, uint32_t i) {
    Span made = operand->span;
    operand->type = call->args[i]->type;
    if (made.begin == call->span.begin && made.end == call->span.end)
        operand->span = call->args[i]->span;
}

Expr *b_builtin_n(const Build *b, const char *name, Expr **args, uint32_t n) {
    Expr *callee = expr_new(EXPR_BUILTIN, type_error(), b->span);
    callee->symbol = sym_intern(name);
    return expr_call(callee, args, n, NULL, type_error(), b->span);
}

Expr *b_builtin(const Build *b, const char *name, ...) {
    VEC(Expr *) args = {0};
    va_list ap;
    va_start(ap, name);
    for (Expr *e; (e = va_arg(ap, Expr *));)
        vec_push(&args, e);
    va_end(ap);
    return b_builtin_n(b, name, args.data, (uint32_t)args.len);
}

Expr *b_call(const Build *b, Expr *callee, Expr **args, uint32_t n, unsigned drop) {
    Expr *e = expr_call(callee, args, n, NULL, type_error(), b->span);
    e->drop = (uint8_t)drop;
    return e;
}

Expr *b_op(const Build *b, const Op *op, Expr **args, uint32_t n) {
    return expr_call_op(op, args, n, attrs_defaults(op), type_error(), b->span);
}

Expr *b_fn(const Build *b, const char *name, Var **params, uint32_t n, Expr *body) {
    Var **copy = mem_new_n(Var *, n ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = params[i];
    Expr *e = expr_fn(copy, n, body, type_error(), b->span);
    e->fn->name = sym_intern(name);
    return e;
}

Expr *b_if(const Build *b, Expr *c, Expr *t, Expr *e) {
    return expr_if(c, t, e, type_error(), b->span);
}

Expr *b_read(const Build *b, Expr *ref) {
    Expr *e = expr_new(EXPR_READ, type_error(), b->span);
    e->a = ref;
    return e;
}

Expr *b_write(const Build *b, Expr *ref, Expr *value) {
    Expr *e = expr_new(EXPR_WRITE, type_unit(), b->span);
    e->a = ref;
    e->b = value;
    return e;
}

Expr *b_unit(const Build *b) { return expr_unit(b->span); }

Expr *b_tuple(const Build *b, Expr **args, uint32_t n) { return expr_tuple(args, n, b->span); }

Expr *b_proj(const Build *b, Expr *tuple, uint32_t index) {
    return expr_proj(tuple, index, type_error(), b->span);
}

Expr *block_let(Block *block, const char *name, Expr *value) {
    Var *v = var_new(sym_intern(name), value->type, value->span);
    Expr *link = expr_new(EXPR_LET, NULL, value->span);
    link->var = v;
    link->a = value;
    vec_push(&block->links, link);
    return b_ref(block->b, v);
}

Expr *block_atom(Block *block, const char *name, Expr *value) {
    switch (value->kind) {
    case EXPR_VAR:
    case EXPR_LIT:
    case EXPR_CONST:
    case EXPR_GLOBAL:
        if (!value->like)
            return value;
        break;
    default: /* every other form is bound to a name: it must run once */ break;
    }
    return block_let(block, name, value);
}

void block_do(Block *block, Expr *statement) {
    Expr *link = expr_new(EXPR_LET, NULL, statement->span);
    link->a = statement;
    vec_push(&block->links, link);
}

void block_bind(Block *block, Expr *let_link, Expr *value) {
    Expr *link = expr_copy(let_link);
    link->a = value;
    link->body = NULL;
    vec_push(&block->links, link);
}

Expr *block_end(Block *block, Expr *value) {
    for (size_t i = block->links.len; i-- > 0;) {
        Expr *link = block->links.data[i];
        link->body = value;
        link->type = value->type;
        value = link;
    }
    return value;
}
