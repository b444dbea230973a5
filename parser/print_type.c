/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of types and attributes. */
#include <inttypes.h>

#include "parser/print_internal.h"

static Doc *print_types(Printer *p, const char *open, const AstTypeVec *types, const char *close)
{
    DocVec items = {0};
    for (size_t i = 0; i < types->len; i++)
        vec_push(&items, print_type(p, types->data[i]));
    return doc_list(open, items, ",", close, false);
}

Doc *print_type_params(Printer *p, const AstTypeParamVec *params)
{
    (void)p;
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

Doc *print_where(Printer *p, const AstConstraintVec *where)
{
    DocVec items = {0};
    vec_push(&items, doc_text(" where "));
    for (size_t i = 0; i < where->len; i++) {
        const AstConstraint *c = &where->data[i];
        DocVec args = {0};
        for (size_t k = 0; k < c->args.len; k++)
            vec_push(&args, print_type(p, c->args.data[k]));
        if (c->attrs)
            print_attrs(p, c->attrs, &args);
        if (i)
            vec_push(&items, doc_text(", "));
        vec_push(&items, doc_text(c->name->text));
        vec_push(&items, doc_list("(", args, ",", ")", false));
    }
    return doc_cat(items);
}

/* A dim inside arithmetic: sums in products are parenthesised. */
static Doc *print_dim(Printer *p, const AstType *t, int prec)
{
    if (t->kind != AST_TYPE_DIM)
        return print_type(p, t);
    const char *infix = NULL, *call = NULL;
    int own = 3;
    switch (t->op) {
    case DIM_INT: return doc_textf("%" PRId64, t->value);
    case DIM_ANY: return doc_text("?");
    case DIM_ADD: infix = " + "; own = 1; break;
    case DIM_SUB: infix = " - "; own = 1; break;
    case DIM_MUL: infix = " * "; own = 2; break;
    case DIM_FLOORDIV: call = "floordiv"; break;
    case DIM_MIN: call = "min"; break;
    case DIM_MAX: call = "max"; break;
    }
    if (call)
        return doc_cat2(doc_text(call), print_types(p, "(", &t->args, ")"));
    Doc *d = doc_cat3(print_dim(p, t->args.data[0], own), doc_text(infix),
                      print_dim(p, t->args.data[1], own + 1));
    return prec > own ? doc_cat3(doc_text("("), d, doc_text(")")) : d;
}

static Doc *print_shape(Printer *p, const AstType *t)
{
    if (t->kind != AST_TYPE_SHAPE)
        return print_type(p, t);
    return print_types(p, "(", &t->args, t->args.len == 1 ? ",)" : ")");
}

static Doc *print_fn_type(Printer *p, const AstType *t)
{
    DocVec parts = {0};
    vec_push(&parts, doc_text(t->params.len ? "fn " : "fn"));
    vec_push(&parts, print_type_params(p, &t->params));
    vec_push(&parts, print_types(p, "(", &t->args, ")"));
    vec_push(&parts, doc_text(" -> "));
    vec_push(&parts, print_type(p, t->result));
    if (t->where.len)
        vec_push(&parts, print_where(p, &t->where));
    return doc_cat(parts);
}

static Doc *print_forall(Printer *p, const AstType *t)
{
    DocVec parts = {0};
    vec_push(&parts, doc_text("forall ("));
    for (size_t i = 0; i < t->params.len; i++) {
        const AstTypeParam *a = &t->params.data[i];
        vec_push(&parts, doc_textf("%s%s%s%s", i ? ", " : "", a->name->text, a->kind ? " : " : "",
                                   a->kind ? a->kind->text : ""));
    }
    vec_push(&parts, doc_text("), "));
    vec_push(&parts, print_type(p, t->result));
    return doc_cat(parts);
}

Doc *print_type(Printer *p, const AstType *t)
{
    switch (t->kind) {
    case AST_TYPE_NAME:
        if (!t->args.len)
            return doc_text(t->name->text);
        return doc_cat2(doc_text(t->name->text), print_types(p, "[", &t->args, "]"));
    case AST_TYPE_TENSOR:
        return doc_cat3(doc_text("Tensor["), print_shape(p, t->shape),
                        doc_cat3(doc_text(", "), print_type(p, t->dtype), doc_text("]")));
    case AST_TYPE_SHAPE: return print_shape(p, t);
    case AST_TYPE_DIM: return print_dim(p, t, 0);
    case AST_TYPE_FN: return print_fn_type(p, t);
    case AST_TYPE_TUPLE: return print_types(p, "(", &t->args, t->args.len == 1 ? ",)" : ")");
    case AST_TYPE_REF: return doc_cat3(doc_text("ref("), print_type(p, t->result), doc_text(")"));
    case AST_TYPE_FORALL: return print_forall(p, t);
    case AST_TYPE_HOLE: return doc_text("_");
    }
    BUG("no such form of type: %d", (int)t->kind);
}

/* ---- attributes ------------------------------------------------------------------------------- */

static Doc *print_float_attr(double f)
{
    Str s = {0};
    str_add_float(&s, f, 64);
    return doc_text(str_text(&s));
}

Doc *print_attr_value(Printer *p, const AstAttrValue *v)
{
    switch (v->kind) {
    case AST_ATTR_INT: return doc_textf("%" PRId64, v->i);
    case AST_ATTR_FLOAT: return print_float_attr(v->f);
    case AST_ATTR_BOOL: return doc_text(v->i ? "True" : "False");
    case AST_ATTR_STRING: return print_string(p, v->text, v->text_len);
    case AST_ATTR_NONE: return doc_text("None");
    case AST_ATTR_NAME: return doc_text(v->name->text);
    case AST_ATTR_META: return doc_textf("meta[%s][%" PRId64 "]", v->text, v->i);
    case AST_ATTR_DIM: return print_type(p, v->dim);
    case AST_ATTR_LIST: {
        DocVec items = {0};
        for (size_t i = 0; i < v->items.len; i++)
            vec_push(&items, print_attr_value(p, v->items.data[i]));
        return doc_list("[", items, ",", "]", false);
    }
    }
    BUG("no such form of attribute: %d", (int)v->kind);
}

void print_attrs(Printer *p, const AstAttrVec *attrs, DocVec *out)
{
    for (size_t i = 0; i < attrs->len; i++) {
        const AstAttr *a = &attrs->data[i];
        if (!a->name) /* all attributes from the metadata */
            vec_push(out, print_attr_value(p, a->value));
        else
            vec_push(out, doc_cat3(doc_text(a->name->text), doc_text("="), print_attr_value(p, a->value)));
    }
}

void ast_print_type(Str *out, const AstType *type, const PrintOptions *options)
{
    Printer p = {.options = options};
    doc_print(out, print_type(&p, type), options->width ? options->width : 100);
}
