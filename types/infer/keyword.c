/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of definitions by name: `plot.functions(fs, from=-2.0, to=2.0)`.
 *
 * The grammar reads `name=value` as an attribute of an operator. Where the callee is a definition, the values
 * become arguments at the places of its parameters; these are also the order in which they are evaluated. So do
 * those values of an operator's call that have the names of its arguments: `nn.dense(data=x, weight=w)`. An argument that
 * is left out at other times, as the `checkpoint` of `loop`, is a parameter of another form of the definition, of the
 * prelude. */
#include "types/infer/infer.h"
#include "types/infer/state.h"

#include <string.h>

static Ast *value_expr(const AstAttrValue *v);

static Ast *node(AstKind kind, Span span) {
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

const char *infer_call_text(const AstFn *fn, const char *who) {
    Str call = {0};
    str_printf(&call, "%s(", who);
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

/* ---- arguments of operators ------------------------------------------------------------------ */

/* The place of the operator's argument of that name, or -1. */
static int find_operand(const Op *op, const Symbol *name) {
    for (int i = 0; i < op->nargs; i++)
        if (strcmp(op_arg(op, i).name, name->text) == 0)
            return i;
    return -1;
}

/* Takes the attributes that name arguments out of the call to their places. False after an error. */
static bool take_operands(Infer *I, const Op *op, const Ast *call, Ast **places, AstAttrVec *rest) {
    for (size_t i = 0; i < call->attrs.len; i++) {
        const AstAttr *a = &call->attrs.data[i];
        int place = op_attr_index(op, a->name->text) < 0 ? find_operand(op, a->name) : -1;
        if (place < 0) {
            vec_push(rest, *a);
            continue;
        }
        places[place] = value_expr(a->value);
        if (!places[place]) {
            infer_error(I, DIAG_R0117, a->value->span, "this is no value");
            return false;
        }
    }
    return true;
}

/* Puts the arguments without names at their places. Where the operator has optional arguments, they go to the
 * places without a value: to those that must be given first, then to the optional ones from the left. */
static bool place_unnamed(Infer *I, const Op *op, const Ast *call, Ast **places) {
    size_t needed = 0, next = 0, n = call->args.len;
    bool has_optional = false;
    for (int i = 0; i < op->nargs; i++) {
        needed += !places[i] && !op_arg(op, i).optional;
        has_optional |= op_arg(op, i).optional;
    }
    size_t spare = n > needed ? n - needed : 0;
    for (int i = 0; i < op->nargs; i++) {
        OpArg arg = op_arg(op, i);
        if (places[i] && !has_optional && (size_t)i < n) {
            Diag *d = infer_error(I, DIAG_R0117, places[i]->span, "`%s` of `%s` is given twice",
                                  arg.name, op->name);
            if (d)
                diag_add_label(d, call->args.data[i]->span, "by its position here");
            return false;
        }
        if (places[i])
            continue;
        if (arg.optional && !spare) {
            places[i] = node(AST_INT, call->span);
            places[i]->i = arg.n;
            continue;
        }
        spare -= arg.optional;
        if (next == n) {
            Diag *d = infer_error(I, DIAG_R0203, call->span, "`%s` is not given its `%s`", op->name,
                                  arg.name);
            if (d)
                diag_add_fact(d, "its arguments are (%s)", op->args);
            return false;
        }
        places[i] = call->args.data[next++];
    }
    if (next == n)
        return true;
    Diag *d = infer_error(I, DIAG_R0117, call->args.data[next]->span,
                          "`%s` has no argument left for this", op->name);
    if (d)
        diag_add_fact(d, "its arguments are (%s), and the others have their values", op->args);
    return false;
}

static bool has_unknown_attribute(const Op *op, const AstAttrVec *attrs) {
    for (size_t i = 0; i < attrs->len; i++)
        if (op_attr_index(op, attrs->data[i].name->text) < 0)
            return true;
    return false;
}

Ast *infer_place_operands(Infer *I, const Op *op, Ast *call) {
    Ast **places = mem_new_n(Ast *, (size_t)op->nargs + 1);
    AstAttrVec rest = {0};
    if (!take_operands(I, op, call, places, &rest))
        return NULL;
    if (rest.len == call->attrs.len)
        return call;
    Ast *placed = mem_new(Ast);
    *placed = *call;
    placed->attrs = rest;
    if (has_unknown_attribute(op, &rest))
        return placed; /* reading the attributes reports it, and it may be the argument that is missing */
    if (!place_unnamed(I, op, call, places))
        return NULL;
    placed->args = (AstVec){0};
    for (int i = 0; i < op->nargs; i++)
        vec_push(&placed->args, places[i]);
    return placed;
}
