/* SPDX-License-Identifier: Apache-2.0 */
/* Structural equality of syntax, up to spans and comments. Chains are compared in loops. */
#include <math.h>
#include <string.h>

#include "parser/print.h"

static bool equal_text(const char *a, size_t na, const char *b, size_t nb) {
    return na == nb && (!na || memcmp(a, b, na) == 0);
}

static bool equal_str(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool equal_name(const Name *a, const Name *b) {
    return a->sym == b->sym && a->sigil == b->sigil;
}

static bool equal_names(const NameVec *a, const NameVec *b) {
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (!equal_name(&a->data[i], &b->data[i]))
            return false;
    return true;
}

/* The same literal: all nan are one, the two zeros are two. */
static bool equal_float(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

static bool equal_type(const AstType *a, const AstType *b);
static bool equal_expr(const Ast *a, const Ast *b);

static bool equal_types(const AstTypeVec *a, const AstTypeVec *b) {
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (!equal_type(a->data[i], b->data[i]))
            return false;
    return true;
}

static bool equal_type_params(const AstTypeParamVec *a, const AstTypeParamVec *b) {
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (a->data[i].name != b->data[i].name || a->data[i].kind != b->data[i].kind)
            return false;
    return true;
}

static bool equal_attr_value(const AstAttrValue *a, const AstAttrValue *b) {
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case AST_ATTR_INT:
    case AST_ATTR_BOOL: return a->i == b->i;
    case AST_ATTR_FLOAT: return equal_float(a->f, b->f);
    case AST_ATTR_STRING: return equal_text(a->text, a->text_len, b->text, b->text_len);
    case AST_ATTR_NONE: return true;
    case AST_ATTR_NAME: return a->name == b->name;
    case AST_ATTR_META: return a->i == b->i && equal_str(a->text, b->text);
    case AST_ATTR_DIM: return equal_type(a->dim, b->dim);
    case AST_ATTR_EXPR: return equal_expr(a->expr, b->expr);
    case AST_ATTR_LIST:
        if (a->items.len != b->items.len)
            return false;
        for (size_t i = 0; i < a->items.len; i++)
            if (!equal_attr_value(a->items.data[i], b->items.data[i]))
                return false;
        return true;
    }
    return false;
}

static void each_expr(const AstAttrValue *v, void (*visit)(void *ctx, Ast *e), void *ctx) {
    if (v->kind == AST_ATTR_EXPR)
        visit(ctx, v->expr);
    for (size_t i = 0; v->kind == AST_ATTR_LIST && i < v->items.len; i++)
        each_expr(v->items.data[i], visit, ctx);
}

void ast_attrs_each(const AstAttrVec *attrs, void (*visit)(void *ctx, Ast *e), void *ctx) {
    for (size_t i = 0; i < attrs->len; i++)
        each_expr(attrs->data[i].value, visit, ctx);
}

static bool equal_attrs(const AstAttrVec *a, const AstAttrVec *b) {
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (a->data[i].name != b->data[i].name ||
            !equal_attr_value(a->data[i].value, b->data[i].value))
            return false;
    return true;
}

static bool equal_where(const AstConstraintVec *a, const AstConstraintVec *b) {
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        const AstConstraint *x = &a->data[i], *y = &b->data[i];
        static const AstAttrVec none = {0};
        if (x->name != y->name || !equal_types(&x->args, &y->args) ||
            !equal_attrs(x->attrs ? x->attrs : &none, y->attrs ? y->attrs : &none))
            return false;
    }
    return true;
}

/* All of a type but its arguments. */
static bool equal_type_rest(const AstType *a, const AstType *b) {
    if (a->kind != b->kind || a->name != b->name || a->args.len != b->args.len ||
        a->arg_names.len != b->arg_names.len)
        return false;
    for (size_t i = 0; i < a->arg_names.len; i++)
        if (a->arg_names.data[i] != b->arg_names.data[i])
            return false;
    if (a->kind == AST_TYPE_DIM &&
        (a->op != b->op || ((a->op == DIM_INT || a->op == DIM_ANY) && a->value != b->value)))
        return false;
    return equal_type(a->shape, b->shape) && equal_type(a->dtype, b->dtype) &&
           equal_type(a->result, b->result) && equal_type_params(&a->params, &b->params) &&
           equal_where(&a->where, &b->where);
}

/* Down the first arguments, where sums are long, in a loop. */
static bool equal_type(const AstType *a, const AstType *b) {
    while (a != b) {
        if (!a || !b || !equal_type_rest(a, b))
            return false;
        if (!a->args.len)
            return true;
        for (size_t i = 1; i < a->args.len; i++)
            if (!equal_type(a->args.data[i], b->args.data[i]))
                return false;
        a = a->args.data[0];
        b = b->args.data[0];
    }
    return true;
}

static bool equal_pattern(const AstPattern *a, const AstPattern *b) {
    for (; a->kind == AST_PAT_CONS && b->kind == AST_PAT_CONS;
         a = a->args.data[1], b = b->args.data[1])
        if (!equal_type(a->type, b->type) || !equal_pattern(a->args.data[0], b->args.data[0]))
            return false;
    if (a->kind != b->kind || !equal_type(a->type, b->type) || a->args.len != b->args.len ||
        !equal_names(&a->fields, &b->fields))
        return false;
    bool named = a->kind == AST_PAT_NAME || a->kind == AST_PAT_CTOR || a->kind == AST_PAT_RECORD;
    if (named && !equal_name(&a->name, &b->name))
        return false;
    for (size_t i = 0; i < a->args.len; i++)
        if (!equal_pattern(a->args.data[i], b->args.data[i]))
            return false;
    return a->literal == b->literal ||
           (a->literal && b->literal && equal_expr(a->literal, b->literal));
}

static bool equal_pattern_or_none(const AstPattern *a, const AstPattern *b) {
    return a && b ? equal_pattern(a, b) : a == b;
}

/* Past the links that a pattern made. */
static const Ast *skip_derived(const Ast *e) {
    while (e && e->kind == AST_LET && e->flag)
        e = e->body;
    return e;
}

/* What is bound: of a pattern the name says nothing. */
static bool equal_bound(const AstPattern *a, const Name *x, const AstPattern *b, const Name *y) {
    return a || b ? equal_pattern_or_none(a, b) : equal_name(x, y);
}

static bool equal_fn(const AstFn *a, const AstFn *b) {
    if (a == b)
        return true;
    if (!a || !b || a->params.len != b->params.len || a->has_where != b->has_where)
        return false;
    for (size_t i = 0; i < a->params.len; i++)
        if (!equal_bound(a->params.data[i].pattern, &a->params.data[i].name,
                         b->params.data[i].pattern, &b->params.data[i].name) ||
            !equal_type(a->params.data[i].type, b->params.data[i].type))
            return false;
    return equal_type_params(&a->type_params, &b->type_params) &&
           equal_attrs(&a->attrs, &b->attrs) && equal_type(a->result, b->result) &&
           equal_where(&a->where, &b->where) && equal_expr(a->body, b->body);
}

static bool equal_arms(const Ast *a, const Ast *b) {
    if (a->arms.len != b->arms.len)
        return false;
    for (size_t i = 0; i < a->arms.len; i++) {
        const AstArm *x = &a->arms.data[i], *y = &b->arms.data[i];
        if (!equal_pattern(x->pattern, y->pattern) || !equal_expr(x->guard, y->guard) ||
            !equal_expr(x->body, y->body))
            return false;
    }
    return true;
}

static bool equal_indices(const Ast *a, const Ast *b) {
    if (a->indices.len != b->indices.len)
        return false;
    for (size_t i = 0; i < a->indices.len; i++) {
        const AstIndex *x = &a->indices.data[i], *y = &b->indices.data[i];
        if (x->kind != y->kind || !equal_expr(x->at, y->at) || !equal_expr(x->begin, y->begin) ||
            !equal_expr(x->end, y->end) || !equal_expr(x->step, y->step))
            return false;
    }
    return true;
}

static bool equal_payload(const Ast *a, const Ast *b) {
    switch (a->kind) {
    case AST_FLOAT: return a->dtype == b->dtype && equal_float(a->f, b->f);
    case AST_INT: return a->dtype == b->dtype && a->i == b->i;
    case AST_BOOL:
    case AST_GRAPH_VAR:
    case AST_GRAPH_LET:
    case AST_PROJ: return a->i == b->i;
    case AST_META: return a->i == b->i && equal_str(a->text, b->text);
    case AST_STRING: return equal_text(a->text, a->text_len, b->text, b->text_len);
    case AST_LET: return equal_bound(a->pattern, &a->name, b->pattern, &b->name);
    case AST_NAME:
    case AST_FREE_VAR: return equal_name(&a->name, &b->name);
    case AST_RECORD: return a->name.sym == b->name.sym && equal_names(&a->fields, &b->fields);
    case AST_WITH: return equal_names(&a->fields, &b->fields);
    case AST_CALL:
        return equal_attrs(&a->attrs, &b->attrs) && equal_types(&a->type_args, &b->type_args);
    case AST_INSTANTIATE: return equal_types(&a->type_args, &b->type_args);
    case AST_FN: return equal_fn(a->fn, b->fn);
    case AST_WITH_AT:
    case AST_INDEX: return equal_indices(a, b);
    case AST_UNARY:
    case AST_BINARY: return a->op == b->op;
    case AST_MATCH: return a->flag == b->flag && equal_arms(a, b);
    case AST_FIELD: return a->field == b->field;
    case AST_HOLE:
    case AST_SEQ:
    case AST_IF:
    case AST_TUPLE:
    case AST_TENSOR:
    case AST_LIST:
    case AST_CAST:
    case AST_ZERO:
    case AST_REF:
    case AST_REF_READ:
    case AST_GRAD:
    case AST_ERROR: return true;
    }
    return false;
}

/* All but the child that a chain continues in: body for bindings, a or b for operators. */
static bool equal_rest(const Ast *a, const Ast *b, bool skip_a, bool skip_b) {
    if (a->kind != b->kind || !equal_payload(a, b) || !equal_type(a->type, b->type) ||
        a->args.len != b->args.len)
        return false;
    for (size_t i = 0; i < a->args.len; i++)
        if (!equal_expr(a->args.data[i], b->args.data[i]))
            return false;
    return (skip_a || equal_expr(a->a, b->a)) && (skip_b || equal_expr(a->b, b->b)) &&
           equal_expr(a->c, b->c);
}

static bool equal_expr(const Ast *a, const Ast *b) {
    for (;;) {
        a = skip_derived(a);
        b = skip_derived(b);
        if (a == b)
            return true;
        if (!a || !b)
            return false;
        bool right = a->kind == AST_BINARY && infix_table[a->op].right;
        bool left = (a->kind == AST_BINARY && !right) || a->kind == AST_CALL ||
                    a->kind == AST_PROJ || a->kind == AST_FIELD || a->kind == AST_INDEX;
        bool chain = a->body || b->body;
        if (!equal_rest(a, b, left, right))
            return false;
        if (chain) {
            a = a->body;
            b = b->body;
        } else if (left) {
            a = a->a;
            b = b->a;
        } else if (right) {
            a = a->b;
            b = b->b;
        } else {
            return true;
        }
    }
}

static bool equal_ctors(const Item *a, const Item *b) {
    if (a->ctors.len != b->ctors.len)
        return false;
    for (size_t i = 0; i < a->ctors.len; i++) {
        const AstCtor *x = &a->ctors.data[i], *y = &b->ctors.data[i];
        if (x->name.sym != y->name.sym || x->named != y->named || x->fields.len != y->fields.len)
            return false;
        for (size_t k = 0; k < x->fields.len; k++)
            if (x->fields.data[k].name != y->fields.data[k].name ||
                !equal_type(x->fields.data[k].type, y->fields.data[k].type))
                return false;
    }
    return true;
}

/* Blanks at the ends of lines aside. */
static bool equal_doc(const char *a, const char *b) {
    if (!a || !b)
        return a == b;
    for (;;) {
        size_t m = strcspn(a, "\n"), n = strcspn(b, "\n"), i = m, k = n;
        while (i && strchr(" \t\f\v", a[i - 1]))
            i--;
        while (k && strchr(" \t\f\v", b[k - 1]))
            k--;
        if (!equal_text(a, i, b, k) || a[m] != b[n])
            return false;
        if (!a[m])
            return true;
        a += m + 1;
        b += n + 1;
    }
}

static bool equal_item(const Item *a, const Item *b) {
    return a->kind == b->kind && equal_bound(a->pattern, &a->name, b->pattern, &b->name) &&
           equal_fn(a->fn, b->fn) && equal_names(&a->extra, &b->extra) &&
           equal_type_params(&a->type_params, &b->type_params) && equal_ctors(a, b) &&
           equal_type(a->type, b->type) && equal_expr(a->value, b->value) && a->index == b->index &&
           a->shown == b->shown && equal_str(a->path, b->path) && equal_str(a->symbol, b->symbol) &&
           a->as == b->as && equal_names(&a->names, &b->names) && a->has_names == b->has_names &&
           equal_doc(a->doc, b->doc);
}

static bool equal_constant(const MetaConstant *a, const MetaConstant *b) {
    return a->code == b->code && a->bits == b->bits && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0 &&
           a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static size_t skip_derived_items(const Module *m, size_t i) {
    while (i < m->items.len && m->items.data[i]->derived)
        i++;
    return i;
}

bool ast_module_equal(const Module *a, const Module *b) {
    if (a->versioned != b->versioned || a->constants.len != b->constants.len)
        return false;
    for (size_t i = 0, k = 0;; i++, k++) {
        i = skip_derived_items(a, i);
        k = skip_derived_items(b, k);
        if (i == a->items.len || k == b->items.len) {
            if (i != a->items.len || k != b->items.len)
                return false;
            break;
        }
        if (!equal_item(a->items.data[i], b->items.data[k]))
            return false;
    }
    for (size_t i = 0; i < a->constants.len; i++)
        if (!equal_constant(a->constants.data[i], b->constants.data[i]))
            return false;
    return true;
}
