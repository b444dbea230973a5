/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of items and modules, and where comments go: before the statement they stood
 * before, or behind the one whose line they shared. */
#include <inttypes.h>
#include <string.h>

#include "parser/print_internal.h"

/* ---- comments --------------------------------------------------------------------------------- */

static bool is_doc_comment(const char *text, size_t len)
{
    return len >= 3 && strncmp(text, "///", 3) == 0;
}

void print_comments(Printer *p, uint32_t at, DocVec *own, DocVec *trailing)
{
    if (!p->module)
        return;
    for (; p->next_comment < p->module->comments.len; p->next_comment++) {
        const Comment *c = &p->module->comments.data[p->next_comment];
        if (c->span.begin >= at)
            return;
        const char *text = c->span.source->text + c->span.begin;
        size_t len = c->span.end - c->span.begin;
        while (len && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' '))
            len--;
        if (is_doc_comment(text, len)) /* printed with its item */
            continue;
        vec_push(c->own_line ? own : trailing, doc_text(mem_strndup(text, len)));
    }
}

bool print_blank_before(const Printer *p, uint32_t from, uint32_t at)
{
    if (!p->module || !p->module->source || at > p->module->source->len)
        return false;
    int breaks = 0;
    for (uint32_t i = from; i < at; i++) {
        char c = p->module->source->text[i];
        if (c == '\n' && ++breaks > 1)
            return true;
        if (c != '\n' && c != ' ' && c != '\t' && c != '\r')
            breaks = 0;
    }
    return false;
}

/* ---- items ------------------------------------------------------------------------------------ */

static Doc *print_ctor(Printer *p, const AstCtor *c)
{
    DocVec fields = {0};
    for (size_t i = 0; i < c->fields.len; i++) {
        Doc *type = print_type(p, c->fields.data[i].type);
        vec_push(&fields, c->named ? doc_cat3(doc_text(c->fields.data[i].name->text), doc_text(": "), type)
                                   : type);
    }
    Doc *name = doc_text(c->name.sym->text);
    if (c->named)
        return doc_cat3(name, doc_text(" "), doc_list("{", fields, ",", "}", true));
    return fields.len ? doc_cat2(name, doc_list("(", fields, ",", ")", false)) : name;
}

static Doc *print_type_item(Printer *p, const Item *item)
{
    DocVec ctors = {0};
    for (size_t i = 0; i < item->ctors.len; i++)
        vec_push(&ctors, print_ctor(p, &item->ctors.data[i]));
    DocVec parts = {0};
    vec_push(&parts, doc_textf("type %s", item->name.sym->text));
    vec_push(&parts, print_type_params(p, &item->type_params));
    vec_push(&parts, doc_text(" "));
    vec_push(&parts, doc_list("{", ctors, ",", "}", true));
    return doc_cat(parts);
}

static Doc *print_rule(Printer *p, const Item *item)
{
    DocVec parts = {0};
    vec_push(&parts, doc_textf("%s %s(", item->kind == ITEM_TANGENT ? "tangent" : "derivative",
                               item->name.sym->text));
    for (size_t i = 0; i < item->fn->params.len; i++)
        vec_push(&parts, doc_textf("%s%s", i ? ", " : "", item->fn->params.data[i].name.sym->text));
    for (size_t i = 0; i < item->extra.len; i++)
        vec_push(&parts, doc_textf("%s%s", i ? ", " : "; ", item->extra.data[i].sym->text));
    vec_push(&parts, doc_text(") "));
    vec_push(&parts, print_block(p, item->fn->body));
    return doc_cat(parts);
}

static Doc *print_import(Printer *p, const Item *item)
{
    if (item->path)
        return doc_cat3(doc_text("import "), print_string(p, item->path, strlen(item->path)), doc_text(";"));
    Str s = {0};
    str_printf(&s, "import %s", item->name.sym->text);
    if (item->as)
        str_printf(&s, " as %s", item->as->text);
    if (item->has_names) {
        str_add(&s, " (");
        for (size_t i = 0; i < item->names.len; i++)
            str_printf(&s, "%s%s", i ? ", " : "", item->names.data[i].sym->text);
        str_add(&s, ")");
    }
    str_add(&s, ";");
    return doc_text(str_text(&s));
}

static Doc *print_binding_item(Printer *p, const Item *item, const char *word)
{
    Doc *name = print_name(p, &item->name, true);
    DocVec parts = {0};
    vec_push(&parts, doc_text(word));
    vec_push(&parts, name);
    if (item->type) {
        vec_push(&parts, doc_text(": "));
        vec_push(&parts, print_type(p, item->type));
    }
    if (item->value) {
        vec_push(&parts, doc_text(" = "));
        vec_push(&parts, print_expr(p, item->value, PREC_SEQ + 1));
    }
    vec_push(&parts, doc_text(";"));
    return doc_cat(parts);
}

static Doc *print_operator(Printer *p, const Item *item)
{
    Name name = item->name;
    if (p->options->tvm)
        name.sigil = SIGIL_GLOBAL;
    return doc_cat3(doc_cat3(doc_text("operator "), print_name(p, &name, false), doc_text(" : ")),
                    print_type(p, item->type),
                    doc_cat3(doc_text(" = "), print_string(p, item->symbol, strlen(item->symbol)),
                             doc_cat3(doc_text(" from "), print_string(p, item->path, strlen(item->path)),
                                      doc_text(";"))));
}

static Doc *print_item(Printer *p, const Item *item)
{
    switch (item->kind) {
    case ITEM_DEF: {
        Name name = item->name;
        if (p->options->tvm)
            name.sigil = SIGIL_GLOBAL;
        return doc_cat3(doc_cat2(doc_text("def "), print_name(p, &name, false)),
                        print_type_params(p, &item->fn->type_params), print_fn_rest(p, item->fn));
    }
    case ITEM_TYPE: return print_type_item(p, item);
    case ITEM_EXTERN_TYPE:
        return doc_cat3(doc_textf("extern type %s", item->name.sym->text),
                        print_type_params(p, &item->type_params), doc_text(""));
    case ITEM_OPERATOR: return print_operator(p, item);
    case ITEM_DERIVATIVE:
    case ITEM_TANGENT: return print_rule(p, item);
    case ITEM_NO_DERIVATIVE: return doc_textf("no_derivative %s;", item->name.sym->text);
    case ITEM_LET: return print_binding_item(p, item, "let ");
    case ITEM_GRAPH_LET:
        return doc_cat3(doc_textf("%%%" PRId64 " = ", item->index),
                        print_expr(p, item->value, PREC_SEQ + 1), doc_text(";"));
    case ITEM_FREE_VAR: return print_binding_item(p, item, "free_var ");
    case ITEM_IMPORT: return print_import(p, item);
    case ITEM_EXPR:
        return doc_cat2(print_expr(p, item->value, PREC_SEQ + 1), doc_text(item->shown ? "" : ";"));
    case ITEM_ERROR: return doc_text("");
    }
    BUG("no such form of item: %d", (int)item->kind);
}

/* The `///` lines of an item. */
static void push_doc(DocVec *out, const char *doc)
{
    while (doc && *doc) {
        size_t n = strcspn(doc, "\n");
        vec_push(out, doc_textf("/// %.*s", (int)n, doc));
        vec_push(out, doc_hard());
        doc += n + (doc[n] == '\n');
    }
}

static void bind_globals(Printer *p, const Module *m)
{
    for (size_t i = 0; i < m->items.len; i++)
        if (m->items.data[i]->kind == ITEM_DEF || m->items.data[i]->kind == ITEM_OPERATOR)
            map_set(&p->globals, m->items.data[i]->name.sym, m->items.data[i]);
}

static bool stands_alone(const Item *item)
{
    return item->kind == ITEM_DEF || item->kind == ITEM_TYPE || item->kind == ITEM_DERIVATIVE ||
           item->kind == ITEM_TANGENT;
}

void ast_print_module(Str *out, const Module *m, const PrintOptions *options)
{
    Printer p = {.options = options, .module = m, .versioned = m->versioned || options->tvm};
    DocVec all = {0};
    bind_globals(&p, m);
    if (m->versioned || options->tvm) {
        vec_push(&all, doc_textf("#[version = \"%s\"]", m->version ? m->version : "0.0.5"));
        vec_push(&all, doc_hard());
    }
    uint32_t last_end = 0;
    for (size_t i = 0; i < m->items.len; i++) {
        const Item *item = m->items.data[i];
        DocVec own = {0}, trailing = {0}, one = {0};
        print_comments(&p, item->span.begin, &own, &trailing);
        for (size_t k = 0; k < trailing.len; k++) {
            if (all.len)
                all.len--; /* the line break behind the item before */
            const char *gap = all.len ? "  " : "";
            vec_push(&all, doc_text(gap));
            vec_push(&all, trailing.data[k]);
            vec_push(&all, doc_hard());
        }
        bool blank = i > 0 && (print_blank_before(&p, last_end, item->span.begin) ||
                               (m->source && m->source->len == 0 && stands_alone(item)));
        if (blank)
            vec_push(&all, doc_hard());
        for (size_t k = 0; k < own.len; k++) {
            vec_push(&one, own.data[k]);
            vec_push(&one, doc_hard());
        }
        push_doc(&one, item->doc);
        vec_push(&one, print_item(&p, item));
        vec_push(&all, doc_cat(one));
        vec_push(&all, doc_hard());
        last_end = item->span.end;
    }
    DocVec own = {0}, trailing = {0};
    print_comments(&p, UINT32_MAX, &own, &trailing);
    for (size_t k = 0; k < trailing.len; k++) {
        if (all.len)
            all.len--;
        const char *gap = all.len ? "  " : "";
        vec_push(&all, doc_text(gap));
        vec_push(&all, trailing.data[k]);
        vec_push(&all, doc_hard());
    }
    for (size_t k = 0; k < own.len; k++) {
        vec_push(&all, own.data[k]);
        vec_push(&all, doc_hard());
    }
    doc_print(out, doc_cat(all), options->width ? options->width : 100);
    if (m->constants.len)
        print_metadata(out, m);
}
