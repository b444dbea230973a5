/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/build.h"

#include "types/core/builtin.h"

#include <stdarg.h>
#include <string.h>

Type *b_some_type(const char *name) { return type_param(sym_intern(name), KIND_TYPE); }

Type *b_fn_type(Var *const *params, uint32_t n, Type *result) {
    Type **types = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = params[i]->type;
    return type_fn(types, n, result, type_allocates());
}

Type *b_twin_type(Type *fn) {
    fn = type_resolve(fn);
    if (fn->tag != TY_FN)
        return b_some_type("f");
    Type **types = mem_new_n(Type *, fn->nargs + 1);
    types[0] = type_tape();
    for (uint32_t i = 0; i < fn->nargs; i++)
        types[i + 1] = fn->args[i];
    return type_fn(types, fn->nargs + 1, fn->fn.result, type_allocates());
}

Var *b_var(const Build *b, const char *name, Type *type) {
    return var_new(sym_intern(name), type, b->span);
}

Expr *b_ref(const Build *b, Var *v) { return expr_var(v, b->span); }

void b_stands_for(Expr *operand, const Expr *call, uint32_t i) {
    Span made = operand->span;
    operand->type = call->args[i]->type;
    if (made.begin == call->span.begin && made.end == call->span.end)
        operand->span = call->args[i]->span;
}

typedef enum Gives {
    GIVES_TAPE,
    GIVES_UNIT,
    GIVES_BOOL,
    GIVES_CHAIN,
    GIVES_LAST,
    GIVES_SECOND,
    GIVES_COTANGENT,
    GIVES_CELL,
    GIVES_ITEM
} Gives;

static Gives builtin_gives(const char *name) {
    static const Gives table[] = {
#define AD(name, nargs, fn, effects, gives) GIVES_##gives,
#include "types/core/ad.def"
#undef AD
    };
    size_t number = (size_t)builtin_number(name);
    if (number >= sizeof table / sizeof *table)
        BUG("no derivative makes `%s`", name);
    return table[number];
}

static Type *type_of_builtin(const char *name, Expr **args, uint32_t n) {
    switch (builtin_gives(name)) {
    case GIVES_TAPE: return type_tape();
    case GIVES_UNIT: return type_unit();
    case GIVES_BOOL: return type_scalar(DT_BOOL);
    case GIVES_CHAIN: return type_ref(type_fn(NULL, 0, type_unit(), type_allocates()));
    case GIVES_LAST: return args[n - 1]->type;
    case GIVES_SECOND: return args[1]->type;
    case GIVES_COTANGENT: return type_deriv(args[n - 1]->type);
    case GIVES_CELL: return type_ref(type_deriv(args[0]->type));
    case GIVES_ITEM: return b_some_type("item");
    }
    BUG("a builtin that gives nothing known");
}

Expr *b_builtin_n(const Build *b, const char *name, Expr **args, uint32_t n) {
    return expr_call_builtin(name, args, n, type_of_builtin(name, args, n), b->span);
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
    Type *fn = type_resolve(callee->type);
    Type *type = fn->tag == TY_FN ? fn->fn.result : b_some_type("r");
    Expr *e = expr_call(callee, args, n, NULL, type, b->span);
    e->drop = (uint8_t)drop;
    return e;
}

Expr *b_op(const Build *b, const Op *op, Expr **args, uint32_t n, Type *type) {
    return expr_call_op(op, args, n, attrs_defaults(op), type, b->span);
}

Expr *b_grad(const Build *b, GradKind kind, Expr *fn, Type *type) {
    Expr *e = expr_new(EXPR_GRAD, type, b->span);
    e->mode = (uint8_t)kind;
    e->a = fn;
    return e;
}

Expr *index_as_call(const Expr *e) {
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = e->a;
    args[1] = expr_tuple(e->args, e->nargs, e->span);
    Attrs *attrs = mem_new(Attrs);
    *attrs = *e->attrs;
    attrs->op = &op_index;
    return expr_call_op(&op_index, args, 2, attrs, e->type, e->span);
}

Expr *b_vjp(const Build *b, Expr *h) {
    const Fn *fn = h->fn;
    Type *x = fn->params[0]->type, *y = fn->body->type, *cotangent = type_deriv(x);
    Type *takes[] = {x, type_deriv(y)}, *both[] = {y, type_tuple(&cotangent, 1)};
    return b_grad(b, GRAD_VJP, h, type_fn(takes, 2, type_tuple(both, 2), type_allocates()));
}

Expr *b_fn(const Build *b, const char *name, Var **params, uint32_t n, Expr *body) {
    Var **copy = mem_new_n(Var *, n ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = params[i];
    Expr *e = expr_fn(copy, n, body, b_fn_type(params, n, body->type), b->span);
    e->fn->name = sym_intern(name);
    return e;
}

Expr *b_if(const Build *b, Expr *c, Expr *t, Expr *e) { return expr_if(c, t, e, t->type, b->span); }

Expr *b_read(const Build *b, Expr *ref) {
    Type *t = type_resolve(ref->type);
    Expr *e = expr_new(EXPR_READ, t->tag == TY_REF ? t->elem : b_some_type("a"), b->span);
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

Expr *b_unreachable(const Build *b, const char *words, Type *type) {
    Expr *text = expr_new(EXPR_STRING, type_string(), b->span);
    text->text = words;
    text->text_len = strlen(words);
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = text;
    return expr_call_builtin("error", args, 1, type, b->span);
}

Expr *b_absent(const Build *b, Type *type) {
    Expr *e = expr_new(EXPR_ZERO, type, b->span);
    e->zero_type = type_unit();
    return e;
}

Expr *b_tuple(const Build *b, Expr **args, uint32_t n) { return expr_tuple(args, n, b->span); }

Expr *b_proj(const Build *b, Expr *tuple, uint32_t index) {
    Type *t = type_resolve(tuple->type);
    bool known = t->tag == TY_TUPLE && index < t->nargs;
    return expr_proj(tuple, index, known ? t->args[index] : b_some_type("item"), b->span);
}

Pattern *b_pattern(const Build *b, PatternKind kind, Type *type) {
    Pattern *p = mem_new(Pattern);
    *p = (Pattern){.kind = kind, .type = type, .span = b->span};
    return p;
}

Expr *b_match(const Build *b, Expr *value, Pattern *pattern, Expr *body) {
    Expr *e = expr_new(EXPR_MATCH, body->type, b->span);
    e->a = value;
    e->narms = 1;
    e->arms = mem_new(Arm);
    *e->arms = (Arm){.pattern = pattern, .body = body};
    return e;
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
    default: /* any other form must run once, so it is bound to a name */ break;
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
