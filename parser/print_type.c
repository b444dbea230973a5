/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of types and attributes. */
#include <inttypes.h>

#include <math.h>

#include "parser/print_internal.h"

static Doc *print_types(Printer *p, const char *open, const AstTypeVec *types, const char *close) {
    DocVec items = {0};
    for (size_t i = 0; i < types->len; i++)
        vec_push(&items, print_inner_type(p, types->data[i]));
    return doc_list(open, items, ",", close, false);
}

static Doc *parenthesise(Doc *d) { return doc_cat3(doc_text("("), d, doc_text(")")); }

/* A type inside of another: in parentheses if it ends in a `where`, which would go on past it. In a
 * versioned text it stays bare, since `(T)` is a tuple there. */
Doc *print_inner_type(Printer *p, const AstType *t) {
    const AstType *last = t;
    while (last->kind == AST_TYPE_FORALL && !last->where.len)
        last = last->result;
    Doc *d = print_type(p, t);
    return last->where.len && !p->versioned ? parenthesise(d) : d;
}

static bool is_sum(const AstType *t) {
    return t->kind == AST_TYPE_DIM && (t->op == DIM_ADD || t->op == DIM_SUB || t->op == DIM_MUL ||
                                       (t->op == DIM_INT && t->value < 0));
}

static bool is_open(const AstType *t) {
    return t->kind == AST_TYPE_FN || t->kind == AST_TYPE_FORALL || is_sum(t);
}

Doc *print_type_atom(Printer *p, const AstType *t) {
    return is_open(t) && !p->versioned ? parenthesise(print_type(p, t)) : print_type(p, t);
}

bool print_takes_more(const Printer *p, const AstType *t) { return is_open(t) && p->versioned; }

Doc *print_type_params(Printer *p, const AstTypeParamVec *params) {
    for (size_t i = 0; i < params->len && p->options->tvm; i++)
        map_set(&p->params, params->data[i].name, (void *)params);
    if (!params->len)
        return doc_text("");
    DocVec items = {0};
    for (size_t i = 0; i < params->len; i++) {
        const AstTypeParam *t = &params->data[i];
        vec_push(&items, t->kind ? doc_textf("%s: %s", t->name->text, t->kind->text)
                                 : doc_text(t->name->text));
    }
    return doc_list("[", items, ",", "]", false);
}

Doc *print_where(Printer *p, const AstConstraintVec *where) {
    DocVec items = {0};
    vec_push(&items, doc_line());
    vec_push(&items, doc_text("where "));
    for (size_t i = 0; i < where->len; i++) {
        const AstConstraint *c = &where->data[i];
        DocVec args = {0};
        for (size_t k = 0; k < c->args.len; k++)
            vec_push(&args, print_inner_type(p, c->args.data[k]));
        for (size_t k = 0; c->attrs && k < c->attrs->len; k++)
            vec_push(&args, print_attr(p, &c->attrs->data[k]));
        if (i) {
            vec_push(&items, doc_text(","));
            vec_push(&items, doc_line());
        }
        vec_push(&items, doc_text(c->name->text));
        vec_push(&items, doc_list("(", args, ",", ")", false));
    }
    return doc_nest(4, doc_cat(items));
}

/* The infix operator of a size, or NULL. */
static const Infix *dim_infix(const AstType *t) {
    if (t->kind != AST_TYPE_DIM)
        return NULL;
    switch (t->op) {
    case DIM_ADD: return &infix_table[BINOP_ADD];
    case DIM_SUB: return &infix_table[BINOP_SUB];
    case DIM_MUL: return &infix_table[BINOP_MUL];
    case DIM_INT:
    case DIM_ANY:
    case DIM_FLOORDIV:
    case DIM_MIN:
    case DIM_MAX: break;
    }
    return NULL;
}

static Doc *print_dim_atom(Printer *p, const AstType *t) {
    switch (t->op) {
    case DIM_INT: return doc_textf("%" PRId64, t->value);
    case DIM_ANY: return t->value ? doc_textf("?%" PRId64, t->value) : doc_text("?");
    case DIM_FLOORDIV: return doc_cat2(doc_text("floordiv"), print_types(p, "(", &t->args, ")"));
    case DIM_MIN: return doc_cat2(doc_text("min"), print_types(p, "(", &t->args, ")"));
    case DIM_MAX: return doc_cat2(doc_text("max"), print_types(p, "(", &t->args, ")"));
    case DIM_ADD:
    case DIM_SUB:
    case DIM_MUL: break;
    }
    BUG("no such form of size: %d", (int)t->op);
}

/* A dim inside arithmetic: sums in products are parenthesised. Sums go to the left, in a loop. */
static Doc *print_dim(Printer *p, const AstType *t, Prec prec) {
    const Infix *infix = dim_infix(t), *link = infix;
    if (!infix)
        return t->kind == AST_TYPE_DIM ? print_dim_atom(p, t) : print_type(p, t);
    Prec own = infix->prec;
    VEC(const AstType *) links = {0};
    for (; link && link->prec == own; link = dim_infix(t)) {
        vec_push(&links, t);
        t = t->args.data[0];
    }
    DocVec parts = {0};
    vec_push(&parts, print_dim(p, t, own));
    for (size_t i = links.len; i-- > 0;) {
        vec_push(&parts, doc_textf(" %s ", dim_infix(links.data[i])->sign));
        vec_push(&parts, print_dim(p, links.data[i]->args.data[1], own + 1));
    }
    return prec > own ? parenthesise(doc_cat(parts)) : doc_cat(parts);
}

/* A shape of ordinary rank stays on one line: a signature breaks between its parameters. */
static Doc *print_shape(Printer *p, const AstType *t) {
    if (t->kind != AST_TYPE_SHAPE)
        return print_type(p, t);
    if (t->args.len && t->args.len <= 8) {
        DocVec parts = {0};
        for (size_t i = 0; i < t->args.len; i++) {
            vec_push(&parts, doc_text(i ? ", " : "("));
            vec_push(&parts, print_type(p, t->args.data[i]));
        }
        vec_push(&parts, doc_text(t->args.len == 1 ? ",)" : ")"));
        return doc_cat(parts);
    }
    return print_types(p, "(", &t->args, t->args.len == 1 ? ",)" : ")");
}

static Doc *print_fn_params(Printer *p, const AstType *t) {
    DocVec items = {0};
    for (size_t i = 0; i < t->args.len; i++) {
        const Symbol *name = t->arg_names.data[i];
        Doc *type = print_inner_type(p, t->args.data[i]);
        vec_push(&items, name ? doc_cat2(doc_textf("%s: ", name->text), type) : type);
    }
    return doc_list("(", items, ",", ")", false);
}

static Doc *print_fn_type(Printer *p, const AstType *t) {
    DocVec parts = {0};
    vec_push(&parts, doc_text(t->params.len ? "fn " : "fn"));
    vec_push(&parts, print_type_params(p, &t->params));
    vec_push(&parts, t->arg_names.len ? print_fn_params(p, t) : print_types(p, "(", &t->args, ")"));
    vec_push(&parts, doc_text(" -> "));
    vec_push(&parts, print_inner_type(p, t->result));
    if (t->where.len)
        vec_push(&parts, print_where(p, &t->where));
    return doc_group(doc_cat(parts));
}

static Doc *print_forall(Printer *p, const AstType *t) {
    DocVec parts = {0};
    vec_push(&parts, doc_text("forall ("));
    for (size_t i = 0; i < t->params.len; i++) {
        const AstTypeParam *a = &t->params.data[i];
        vec_push(&parts, doc_textf("%s%s%s%s", i ? ", " : "", a->name->text, a->kind ? " : " : "",
                                   a->kind ? a->kind->text : ""));
    }
    vec_push(&parts, doc_text("), "));
    bool takes = t->result->kind == AST_TYPE_FN || t->result->kind == AST_TYPE_FORALL;
    Doc *inner = print_type(p, t->result);
    vec_push(&parts, takes && t->where.len ? parenthesise(inner) : inner);
    if (t->where.len)
        vec_push(&parts, print_where(p, &t->where));
    return doc_group(doc_cat(parts));
}

Doc *print_type(Printer *p, const AstType *t) {
    switch (t->kind) {
    case AST_TYPE_NAME:
        if (!t->args.len)
            return doc_text(t->name->text);
        return doc_cat2(doc_text(t->name->text), print_types(p, "[", &t->args, "]"));
    case AST_TYPE_TENSOR:
        return doc_cat3(doc_text("Tensor["), print_shape(p, t->shape),
                        doc_cat3(doc_text(", "), print_type(p, t->dtype), doc_text("]")));
    case AST_TYPE_SHAPE: { /* `(2, n)` is seen to be a shape by its 2; `(n, m)` would be a tuple */
        bool seen = false;
        for (size_t i = 0; i < t->args.len; i++)
            seen |= t->args.data[i]->kind == AST_TYPE_DIM;
        return seen ? print_shape(p, t)
                    : doc_cat2(doc_text("Shape"), print_types(p, "(", &t->args, ")"));
    }
    case AST_TYPE_DIM: return print_dim(p, t, 0);
    case AST_TYPE_FN: return print_fn_type(p, t);
    case AST_TYPE_TUPLE: return print_types(p, "(", &t->args, t->args.len == 1 ? ",)" : ")");
    case AST_TYPE_REF:
        return doc_cat3(doc_text("ref("), print_inner_type(p, t->result), doc_text(")"));
    case AST_TYPE_DERIV:
        return doc_cat3(doc_text("D("), print_inner_type(p, t->result), doc_text(")"));
    case AST_TYPE_FORALL: return print_forall(p, t);
    case AST_TYPE_HOLE: return doc_text("_");
    }
    BUG("no such form of type: %d", (int)t->kind);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static Doc *print_float_attr(const AstAttrValue *v) {
    Str s = {0};
    if (v->text)
        str_printf(&s, "%s%.*s", signbit(v->f) ? "-" : "", (int)v->text_len, v->text);
    else
        str_add_float(&s, v->f, 64);
    bool whole = true; /* `1f`: without its suffix it would be an integer */
    for (size_t i = 0; i < s.len; i++)
        whole &= s.text[i] == '-' || (s.text[i] >= '0' && s.text[i] <= '9');
    if (whole)
        str_add(&s, ".0");
    return doc_text(str_text(&s));
}

Doc *print_attr_value(Printer *p, const AstAttrValue *v) {
    switch (v->kind) {
    case AST_ATTR_INT: return doc_textf("%" PRId64, v->i);
    case AST_ATTR_FLOAT: return print_float_attr(v);
    case AST_ATTR_BOOL: return doc_text(v->i ? "True" : "False");
    case AST_ATTR_STRING: return print_string(p, v->text, v->text_len, v->span);
    case AST_ATTR_NONE: return doc_text("None");
    case AST_ATTR_NAME: return doc_text(v->name->text);
    case AST_ATTR_META: return doc_textf("meta[%s][%" PRId64 "]", v->text, v->i);
    case AST_ATTR_DIM: return print_type(p, v->dim);
    case AST_ATTR_EXPR: return print_expr(p, v->expr, 0);
    case AST_ATTR_LIST: {
        DocVec items = {0};
        for (size_t i = 0; i < v->items.len; i++)
            vec_push(&items, print_attr_value(p, v->items.data[i]));
        return doc_list("[", items, ",", "]", false);
    }
    }
    BUG("no such form of attribute: %d", (int)v->kind);
}

Doc *print_attr(Printer *p, const AstAttr *a) {
    return doc_cat3(doc_text(a->name->text), doc_text("="), print_attr_value(p, a->value));
}
