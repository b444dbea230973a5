/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of definitions by name: `plot.functions(fs, from=-2.0, to=2.0)`.
 *
 * The grammar reads `name=value` as an attribute of an operator. Where the callee is a definition, the values
 * become arguments at the places of its parameters; these are also the order in which they are evaluated. */
#include "types/infer/infer.h"
#include "types/infer/state.h"

static Ast *value_expr(const AstAttrValue *v);

static Ast *node(AstKind kind, Span span) {
#include <string.h>

    Ast *e = mem_new(Ast);
    e->kind = kind;
    e->span = e->op_span = span;
    return e;
}

/* `[a, b]` is a tensor and `(a, b)` a tuple. */
static Ast *list_expr(const AstAttrValue *v) {
    bool square = v->span.source->text[v->span.begin] == '[';
    Ast *e = node(square ? AST_TENSOR : AST_TUPLE, v->span);
    for (size_t i = 0; i < v->items.len; i++) {
        Ast *item = value_expr(v->items.data[i]);
        if (!item)
            return NULL;
        vec_push(&e->args, item);
    }
    return e;
}

/* An attribute's value as the expression that the same text is, or NULL where it is none. */
static Ast *value_expr(const AstAttrValue *v) {
    if (v->expr)
        return v->expr;
    Ast *e;
    switch (v->kind) {
    case AST_ATTR_INT:
        e = node(AST_INT, v->span);
        e->i = v->i;
        return e;
    case AST_ATTR_BOOL:
        e = node(AST_BOOL, v->span);
        e->i = v->i;
        return e;
    case AST_ATTR_NONE: /* the constructor of an Option */
    case AST_ATTR_NAME:
        e = node(AST_NAME, v->span);
        e->name = (Name){.sym = v->kind == AST_ATTR_NONE ? sym_intern("None") : v->name,
                         .span = v->span};
        return e;
    case AST_ATTR_META:
        e = node(AST_META, v->span);
        e->i = v->i;
        e->text = v->text;
        e->text_len = v->text_len;
        return e;
    case AST_ATTR_LIST: return list_expr(v);
    case AST_ATTR_FLOAT:  /* these have their */
    case AST_ATTR_STRING: /* expressions */
    case AST_ATTR_EXPR:
    case AST_ATTR_DIM: break;
    }
    return NULL;
}

const AstFn *infer_parameters(const Global *global) {
    const Item *item = global->item;
    if (!item)
        return NULL;
    if (item->fn)
        return item->fn;
    bool bound = item->kind == ITEM_LET && item->value && item->value->kind == AST_FN;
    return bound ? item->value->fn : NULL;
}

const char *infer_call_text(const AstFn *fn, const char *who) {
    Str call = {0};
    str_printf(&call, "%s(", who);
Global *infer_find_form(Infer *I, const Global *g, const AstAttrVec *given) {
    for (size_t i = 0; g->home == I->env->prelude && i < given->len; i++) {
        const char *name = fmt_text("_%s.%s", given->data[i].name->text, g->name->text);
        Global *form = env_prelude_global(I->env, sym_intern(name));
        if (form && form->kind == GLOBAL_DEF)
            return form;
    }
    return NULL;
}

const char *infer_name_shown(const Global *g) {
    const char *name = g->name->text, *dot = strchr(name, '.');
    return g->internal && name[0] == '_' && dot ? dot + 1 : name;
}

    for (size_t i = 0; i < fn->params.len; i++) {
        const AstParam *p = &fn->params.data[i];
        str_printf(&call, "%s%s", i ? ", " : "", p->pattern ? "_" : p->name.sym->text);
    }
    str_add(&call, ")");
    return str_text(&call);
}

/* The parameter of that name, or NULL after an error. */
static const AstParam *find_parameter(Infer *I, const AstFn *fn, const AstAttr *a,
                                      const char *who) {
    SymbolVec names = {0};
    for (size_t i = 0; i < fn->params.len; i++) {
        const AstParam *p = &fn->params.data[i];
        if (p->pattern)
            continue;
        if (p->name.sym == a->name)
            return p;
        vec_push(&names, p->name.sym);
    }
    Diag *d = infer_error(I, DIAG_R0117, a->span, "`%s` has no parameter `%s`", who, a->name->text);
    if (!d)
        return NULL;
    const Symbol *near = sym_find_nearest(a->name, names.data, names.len, &I->env->budget);
    Span name = {a->span.source, a->span.begin, a->span.begin + a->name->len};
    if (near)
        diag_add_fix(d, name, near->text, NULL, "did you mean `%s`?", near->text);
    diag_add_fact(d, "it is `%s`", infer_call_text(fn, who));
    return NULL;
}

Ast *infer_place_arguments(Infer *I, const Ast *call, const AstFn *fn, const char *who) {
    size_t n = fn->params.len;
    Ast *placed = mem_new(Ast);
    *placed = *call;
    placed->attrs = (AstAttrVec){0};
    placed->args = (AstVec){0};
    for (size_t i = 0; i < n || i < call->args.len; i++)
        vec_push(&placed->args, i < call->args.len ? call->args.data[i] : NULL);
    for (size_t i = 0; i < call->attrs.len; i++) {
        const AstAttr *a = &call->attrs.data[i];
        const AstParam *p = find_parameter(I, fn, a, who);
        if (!p)
            return NULL;
        Ast **place = &placed->args.data[p - fn->params.data];
        if (*place) {
            Diag *d = infer_error(I, DIAG_R0117, a->span, "`%s` of `%s` is given twice",
                                  a->name->text, who);
            if (d)
                diag_add_label(d, (*place)->span, "by its position here");
            return NULL;
        }
        *place = value_expr(a->value);
        if (!*place) {
            infer_error(I, DIAG_R0117, a->value->span, "this is no value");
            return NULL;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (placed->args.data[i])
            continue;
        Diag *d = infer_error(I, DIAG_R0203, call->span, "`%s` is not given its `%s`", who,
                              fn->params.data[i].name.sym->text);
        if (d)
            diag_add_fact(d, "it is `%s`", infer_call_text(fn, who));
        return NULL;
    }
    return placed;
}
