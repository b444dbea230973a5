/* SPDX-License-Identifier: Apache-2.0 */
/* Syntax as bracketed text, for the tests of the reader: `1 + x` is `(+ 1 x)`. Independent of the
 * printer, which would hide what the two have wrong in common. */
#ifndef TESTS_UNIT_PARSE_DUMP_H
#define TESTS_UNIT_PARSE_DUMP_H

#include "base/mem.h"
#include "parser/parser.h"
#include "tests/unit/check.h"

static void dump_expr(Str *s, const Ast *e);

static void dump_name(Str *s, Name name) {
    str_add(s, name.sigil == SIGIL_LOCAL ? "%" : name.sigil == SIGIL_GLOBAL ? "@" : "");
    str_add(s, name.sym ? name.sym->text : "?");
}

static void dump_params(Str *s, const AstTypeParamVec *params) {
    for (size_t i = 0; i < params->len; i++) {
        str_printf(s, "%s%s", i ? " " : "", params->data[i].name->text);
        if (params->data[i].kind)
            str_printf(s, ":%s", params->data[i].kind->text);
    }
}

static void dump_type(Str *s, const AstType *t);

static void dump_types(Str *s, const AstTypeVec *types) {
    for (size_t i = 0; i < types->len; i++) {
        str_add_char(s, ' ');
        dump_type(s, types->data[i]);
    }
}

static void dump_value(Str *s, const AstAttrValue *v) {
    switch (v->kind) {
    case AST_ATTR_INT: str_printf(s, "%lld", (long long)v->i); break;
    case AST_ATTR_FLOAT: str_add_float(s, v->f, 64); break;
    case AST_ATTR_BOOL: str_add(s, v->i ? "True" : "False"); break;
    case AST_ATTR_STRING: str_add_quoted(s, v->text, v->text_len); break;
    case AST_ATTR_NONE: str_add(s, "None"); break;
    case AST_ATTR_LIST:
        str_add_char(s, '[');
        for (size_t i = 0; i < v->items.len; i++) {
            str_add(s, i ? " " : "");
            dump_value(s, v->items.data[i]);
        }
        str_add_char(s, ']');
        break;
    case AST_ATTR_NAME: str_add(s, v->name->text); break;
    case AST_ATTR_META: str_printf(s, "meta[%s][%lld]", v->text, (long long)v->i); break;
    case AST_ATTR_DIM: dump_type(s, v->dim); break;
    case AST_ATTR_EXPR: dump_expr(s, v->expr); break;
    }
}

static void dump_attrs(Str *s, const AstAttrVec *attrs) {
    for (size_t i = 0; i < attrs->len; i++) {
        str_printf(s, " %s=", attrs->data[i].name->text);
        dump_value(s, attrs->data[i].value);
    }
}

static void dump_where(Str *s, const AstConstraintVec *where) {
    for (size_t i = 0; i < where->len; i++) {
        str_printf(s, " (where %s", where->data[i].name->text);
        dump_types(s, &where->data[i].args);
        if (where->data[i].attrs)
            dump_attrs(s, where->data[i].attrs);
        str_add_char(s, ')');
    }
}

static void dump_type(Str *s, const AstType *t) {
    static const char *const ops[] = {"int", "?", "+", "-", "*", "floordiv", "min", "max"};
    switch (t->kind) {
    case AST_TYPE_NAME:
        str_printf(s, t->args.len ? "(%s" : "%s", t->name->text);
        dump_types(s, &t->args);
        str_add(s, t->args.len ? ")" : "");
        break;
    case AST_TYPE_TENSOR:
        str_add(s, "(Tensor ");
        dump_type(s, t->shape);
        str_add_char(s, ' ');
        dump_type(s, t->dtype);
        str_add_char(s, ')');
        break;
    case AST_TYPE_SHAPE:
        str_add(s, "(shape");
        dump_types(s, &t->args);
        str_add_char(s, ')');
        break;
    case AST_TYPE_DIM:
        if (t->op == DIM_INT) {
            str_printf(s, "%lld", (long long)t->value);
        } else if (t->op == DIM_ANY) {
            str_add_char(s, '?');
            if (t->value)
                str_printf(s, "%lld", (long long)t->value);
        } else {
            str_printf(s, "(%s", ops[t->op]);
            dump_types(s, &t->args);
            str_add_char(s, ')');
        }
        break;
    case AST_TYPE_FN:
        str_add(s, "(fn [");
        dump_params(s, &t->params);
        str_add_char(s, ']');
        dump_types(s, &t->args);
        str_add(s, " -> ");
        dump_type(s, t->result);
        dump_where(s, &t->where);
        str_add_char(s, ')');
        break;
    case AST_TYPE_TUPLE:
        str_add(s, "(tuple");
        dump_types(s, &t->args);
        str_add_char(s, ')');
        break;
    case AST_TYPE_REF:
        str_add(s, "(ref ");
        dump_type(s, t->result);
        str_add_char(s, ')');
        break;
    case AST_TYPE_DERIV:
        str_add(s, "(D ");
        dump_type(s, t->result);
        str_add_char(s, ')');
        break;
    case AST_TYPE_FORALL:
        str_add(s, "(forall [");
        dump_params(s, &t->params);
        str_add(s, "] ");
        dump_type(s, t->result);
        dump_where(s, &t->where);
        str_add_char(s, ')');
        break;
    case AST_TYPE_HOLE: str_add_char(s, '_'); break;
    }
}

static void dump_pattern(Str *s, const AstPattern *p) {
    static const char *const names[] = {"_",    "",       "",      "",      "",     "",
                                        "ctor", "record", "tuple", "paren", "cons", "list"};
    switch (p->kind) {
    case AST_PAT_WILDCARD: str_add_char(s, '_'); break;
    case AST_PAT_NAME: dump_name(s, p->name); break;
    case AST_PAT_INT:
    case AST_PAT_FLOAT:
    case AST_PAT_BOOL:
    case AST_PAT_STRING: dump_expr(s, p->literal); break;
    case AST_PAT_CTOR:
    case AST_PAT_RECORD:
    case AST_PAT_TUPLE:
    case AST_PAT_PAREN:
    case AST_PAT_CONS:
    case AST_PAT_LIST:
        str_printf(s, "(%s", names[p->kind]);
        if (p->name.sym) {
            str_add_char(s, ' ');
            dump_name(s, p->name);
        }
        for (size_t i = 0; i < p->args.len; i++) {
            str_add_char(s, ' ');
            if (p->kind == AST_PAT_RECORD)
                str_printf(s, "%s:", p->fields.data[i].sym->text);
            dump_pattern(s, p->args.data[i]);
        }
        str_add_char(s, ')');
        break;
    }
    if (p->type) {
        str_add_char(s, ':');
        dump_type(s, p->type);
    }
}

static void dump_list(Str *s, const AstVec *args) {
    for (size_t i = 0; i < args->len; i++) {
        str_add_char(s, ' ');
        dump_expr(s, args->data[i]);
    }
}

static void dump_fields(Str *s, const Ast *e) {
    for (size_t i = 0; i < e->args.len; i++) {
        str_printf(s, " %s:", e->fields.data[i].sym->text);
        dump_expr(s, e->args.data[i]);
    }
}

static void dump_fn(Str *s, const AstFn *fn) {
    str_add(s, "[");
    dump_params(s, &fn->type_params);
    str_add(s, "] (");
    for (size_t i = 0; i < fn->params.len; i++) {
        str_add(s, i ? " " : "");
        dump_name(s, fn->params.data[i].name);
        if (fn->params.data[i].type) {
            str_add_char(s, ':');
            dump_type(s, fn->params.data[i].type);
        }
    }
    dump_attrs(s, &fn->attrs);
    str_add(s, ")");
    if (fn->result) {
        str_add(s, " -> ");
        dump_type(s, fn->result);
    }
    dump_where(s, &fn->where);
    str_add_char(s, ' ');
    dump_expr(s, fn->body);
}

static void dump_body(Str *s, const Ast *e) {
    str_add_char(s, ' ');
    if (e->body)
        dump_expr(s, e->body);
    else
        str_add(s, "end");
    str_add_char(s, ')');
}

static void dump_index(Str *s, const AstIndex *i) {
    const Ast *parts[] = {i->begin, i->end, i->step};
    switch (i->kind) {
    case INDEX_AT: dump_expr(s, i->at); break;
    case INDEX_SLICE:
        for (int k = 0; k < 3; k++) {
            str_add(s, k ? ":" : "");
            if (parts[k])
                dump_expr(s, parts[k]);
        }
        break;
    case INDEX_ELLIPSIS: str_add(s, "..."); break;
    case INDEX_NEW_AXIS: str_add(s, "None"); break;
    }
}

/* (head a b …) */
static void dump_form(Str *s, const char *head, const Ast *a, const Ast *b, const Ast *c) {
    const Ast *parts[] = {a, b, c};
    str_printf(s, "(%s", head);
    for (int i = 0; i < 3; i++)
        if (parts[i]) {
            str_add_char(s, ' ');
            dump_expr(s, parts[i]);
        }
}

static void dump_expr(Str *s, const Ast *e) {
    static const char *const unops[] = {"neg", "!", "sq"};
    switch (e->kind) {
    case AST_INT: str_printf(s, "%lld", (long long)e->i); break;
    case AST_FLOAT: str_add_float(s, e->f, 64); break;
    case AST_BOOL: str_add(s, e->i ? "True" : "False"); break;
    case AST_STRING: str_add_quoted(s, e->text, e->text_len); break;
    case AST_NAME: dump_name(s, e->name); break;
    case AST_GRAPH_VAR: str_printf(s, "%%%lld", (long long)e->i); break;
    case AST_HOLE: str_add_char(s, '_'); break;
    case AST_CALL:
        dump_form(s, "call", e->a, NULL, NULL);
        if (e->type_args.len) {
            str_add(s, " <");
            dump_types(s, &e->type_args);
            str_add(s, ">");
        }
        dump_list(s, &e->args);
        dump_attrs(s, &e->attrs);
        str_add_char(s, ')');
        break;
    case AST_INSTANTIATE:
        dump_form(s, "inst", e->a, NULL, NULL);
        dump_types(s, &e->type_args);
        str_add_char(s, ')');
        break;
    case AST_FN:
        str_add(s, "(fn ");
        dump_fn(s, e->fn);
        str_add_char(s, ')');
        break;
    case AST_LET:
    case AST_FREE_VAR:
        str_add(s, e->kind == AST_LET ? "(let " : "(free_var ");
        dump_name(s, e->name);
        if (e->type) {
            str_add_char(s, ':');
            dump_type(s, e->type);
        }
        if (e->a) {
            str_add_char(s, ' ');
            dump_expr(s, e->a);
        }
        dump_body(s, e);
        break;
    case AST_GRAPH_LET:
        str_printf(s, "(%%%lld = ", (long long)e->i);
        dump_expr(s, e->a);
        dump_body(s, e);
        break;
    case AST_SEQ:
        dump_form(s, "seq", e->a, NULL, NULL);
        dump_body(s, e);
        break;
    case AST_IF:
        dump_form(s, "if", e->a, e->b, e->c);
        str_add_char(s, ')');
        break;
    case AST_MATCH:
        dump_form(s, e->flag ? "match?" : "match", e->a, NULL, NULL);
        for (size_t i = 0; i < e->arms.len; i++) {
            str_add(s, " [");
            dump_pattern(s, e->arms.data[i].pattern);
            if (e->arms.data[i].guard) {
                str_add(s, " when ");
                dump_expr(s, e->arms.data[i].guard);
            }
            str_add(s, " => ");
            dump_expr(s, e->arms.data[i].body);
            str_add_char(s, ']');
        }
        str_add_char(s, ')');
        break;
    case AST_TUPLE:
    case AST_TENSOR:
    case AST_LIST:
        str_add(s, e->kind == AST_TUPLE ? "(tuple" : e->kind == AST_LIST ? "(list" : "(tensor");
        dump_list(s, &e->args);
        str_add_char(s, ')');
        break;
    case AST_PROJ:
        dump_form(s, "proj", e->a, NULL, NULL);
        str_printf(s, " %lld)", (long long)e->i);
        break;
    case AST_FIELD:
        dump_form(s, "field", e->a, NULL, NULL);
        str_printf(s, " %s)", e->field->text);
        break;
    case AST_RECORD:
        str_add(s, "(record ");
        dump_name(s, e->name);
        dump_fields(s, e);
        str_add_char(s, ')');
        break;
    case AST_WITH:
        dump_form(s, "with", e->a, NULL, NULL);
        dump_fields(s, e);
        str_add_char(s, ')');
        break;
    case AST_WITH_AT:
    case AST_INDEX:
        dump_form(s, e->kind == AST_INDEX ? "index" : "with-at", e->a, NULL, NULL);
        for (size_t i = 0; i < e->indices.len; i++) {
            str_add_char(s, ' ');
            dump_index(s, &e->indices.data[i]);
        }
        str_add_char(s, ')');
        break;
    case AST_UNARY:
        dump_form(s, unops[e->op], e->a, NULL, NULL);
        str_add_char(s, ')');
        break;
    case AST_BINARY:
        dump_form(s, infix_table[e->op].sign, e->a, e->b, NULL);
        str_add_char(s, ')');
        break;
    case AST_CAST:
    case AST_ZERO:
        str_add(s, e->kind == AST_CAST ? "(cast " : "(Zero ");
        dump_type(s, e->type);
        if (e->a) {
            str_add_char(s, ' ');
            dump_expr(s, e->a);
        }
        str_add_char(s, ')');
        break;
    case AST_REF:
    case AST_REF_READ:
    case AST_GRAD:
        dump_form(s,
                  e->kind == AST_REF        ? "ref"
                  : e->kind == AST_REF_READ ? "read"
                                            : "Grad",
                  e->a, NULL, NULL);
        str_add_char(s, ')');
        break;
    case AST_META: str_printf(s, "meta[%s][%lld]", e->text, (long long)e->i); break;
    case AST_ERROR: str_add(s, "ERROR"); break;
    }
    if ((e->kind == AST_INT || e->kind == AST_FLOAT) && e->dtype)
        str_printf(s, ":%s", e->dtype->text);
}

static void dump_item(Str *s, const Item *item) {
    static const char *const kinds[] = {
        "def", "type",  "extern",   "operator", "derivative", "tangent", "no_derivative",
        "let", "graph", "free_var", "import",   "expr",       "error"};
    if (item->kind == ITEM_EXPR) {
        dump_expr(s, item->value);
        str_add(s, item->shown ? "" : ";");
        return;
    }
    str_printf(s, "(%s ", kinds[item->kind]);
    if (item->kind == ITEM_GRAPH_LET)
        str_printf(s, "%lld", (long long)item->index);
    else if (item->name.sym)
        dump_name(s, item->name);
    if (item->type_params.len) {
        str_add(s, "[");
        dump_params(s, &item->type_params);
        str_add(s, "]");
    }
    if (item->type) {
        str_add_char(s, ':');
        dump_type(s, item->type);
    }
    for (size_t i = 0; i < item->ctors.len; i++) {
        str_add(s, " (");
        dump_name(s, item->ctors.data[i].name);
        for (size_t k = 0; k < item->ctors.data[i].fields.len; k++) {
            const AstField *f = &item->ctors.data[i].fields.data[k];
            str_printf(s, " %s%s", f->name ? f->name->text : "", f->name ? ":" : "");
            dump_type(s, f->type);
        }
        str_add_char(s, ')');
    }
    if (item->fn) {
        str_add_char(s, ' ');
        dump_fn(s, item->fn);
    }
    for (size_t i = 0; i < item->extra.len; i++)
        str_printf(s, " +%s", item->extra.data[i].sym->text);
    if (item->value) {
        str_add_char(s, ' ');
        dump_expr(s, item->value);
    }
    if (item->symbol)
        str_printf(s, " \"%s\"", item->symbol);
    if (item->path)
        str_printf(s, " \"%s\"", item->path);
    if (item->as)
        str_printf(s, " as %s", item->as->text);
    for (size_t i = 0; i < item->names.len; i++)
        str_printf(s, " %s", item->names.data[i].sym->text);
    str_add_char(s, ')');
}

/* ---- reading a text, on a large stack as every caller of the reader does --------------------- */

typedef struct Reading {
    const char *text;
    size_t len;
    ParseOptions options;
    ParseStatus status;
    Module *module;
    Diags diags;
    const char *dump; /* the items, a line each, then the codes of the diagnostics */
    bool quiet;       /* no dump */
} Reading;

static void reading_run(void *arg) {
    Reading *r = arg;
    Source *source = source_new("test.rly", r->text, r->len, 0);
    r->status = parse_module(source, &r->options, &r->diags, &r->module);
    Str s = {0};
    for (size_t i = 0; !r->quiet && i < r->module->items.len; i++) {
        str_add(&s, i ? "\n" : "");
        dump_item(&s, r->module->items.data[i]);
    }
    for (size_t i = 0; i < r->diags.list.len; i++)
        str_printf(&s, "%s%s", s.len ? " " : "", diag_get_info(r->diags.list.data[i]->code)->name);
    r->dump = str_text(&s);
}

static void reading_start(Reading *r) {
    if (!r->len)
        r->len = strlen(r->text);
    mem_call_on_stack((size_t)1 << 30, reading_run, r);
}

static const char *read_text(const char *text) {
    Reading r = {.text = text};
    reading_start(&r);
    return r.dump;
}

static ParseStatus read_prompt(const char *text) {
    Reading r = {.text = text, .options = {.prompt = true}};
    reading_start(&r);
    return r.status;
}

#define READS(text, expected) CHECK_TEXT(read_text(text), expected)

#endif
