/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of items and modules. */
#include <inttypes.h>
#include <string.h>

#include "parser/metadata.h"
#include "parser/print_internal.h"

/* ---- items ----------------------------------------------------------------------------------- */

static Doc *print_ctor(Printer *p, const AstCtor *c) {
    Rows rows = {.pad = c->named};
    for (size_t i = 0; i < c->fields.len; i++) {
        const AstField *f = &c->fields.data[i];
        rows_next(p, &rows, f->span.begin);
        Doc *type = print_inner_type(p, f->type);
        vec_push(&rows.in,
                 c->named ? doc_cat3(doc_text(f->name->text), doc_text(": "), type) : type);
    }
    Doc *name = doc_text(c->name.sym->text);
    if (c->named)
        return doc_cat3(name, doc_text(" "), rows_end(p, &rows, "{", "}", 0));
    return c->fields.len ? doc_cat2(name, rows_end(p, &rows, "(", ")", 0)) : name;
}

static Doc *print_type_item(Printer *p, const Item *item) {
    Rows rows = {.pad = true};
    for (size_t i = 0; i < item->ctors.len; i++) {
        rows_next(p, &rows, item->ctors.data[i].name.span.begin);
        vec_push(&rows.in, print_ctor(p, &item->ctors.data[i]));
    }
    DocVec parts = {0};
    vec_push(&parts, doc_textf("type %s", item->name.sym->text));
    vec_push(&parts, print_type_params(p, &item->type_params));
    vec_push(&parts, doc_text(" "));
    vec_push(&parts, rows_end(p, &rows, "{", "}", item->ctors.len ? item->span.end - 1 : 0));
    return doc_cat(parts);
}

static Doc *print_rule(Printer *p, const Item *item) {
    DocVec parts = {0};
    size_t mark = print_scope_mark(p);
    vec_push(&parts, doc_text(item->kind == ITEM_TANGENT ? "tangent " : "derivative "));
    vec_push(&parts, print_field(&item->name));
    for (size_t i = 0; i < item->fn->params.len; i++) {
        vec_push(&parts, doc_text(i ? ", " : "("));
        vec_push(&parts, print_binder(p, &item->fn->params.data[i].name));
    }
    vec_push(&parts, doc_text(item->fn->params.len ? ";" : "(;"));
    for (size_t i = 0; i < item->extra.len; i++) {
        vec_push(&parts, doc_text(i ? ", " : " "));
        vec_push(&parts, print_binder(p, &item->extra.data[i]));
    }
    vec_push(&parts, doc_text(") "));
    p->rule = true;
    vec_push(&parts, print_block(p, item->fn->body));
    p->rule = false;
    print_scope_release(p, mark);
    return doc_cat(parts);
}

static Doc *print_import(Printer *p, const Item *item) {
    DocVec parts = {0};
    vec_push(&parts, doc_text("import "));
    vec_push(&parts, item->path ? print_string(p, item->path, strlen(item->path), item->span)
                                : doc_text(item->name.sym->text));
    if (item->as)
        vec_push(&parts, doc_textf(" as %s", item->as->text));
    if (item->has_names) {
        DocVec names = {0};
        for (size_t i = 0; i < item->names.len; i++)
            vec_push(&names, print_field(&item->names.data[i]));
        vec_push(&parts, doc_list(" (", names, ",", ")", false));
    }
    vec_push(&parts, doc_text(";"));
    return doc_cat(parts);
}

/* def, operator: tvm gives it the @ */
static Doc *print_head_name(const Printer *p, Name name) {
    if (p->options->tvm)
        name.sigil = SIGIL_GLOBAL;
    return print_field(&name);
}

static Doc *print_operator(Printer *p, const Item *item) {
    DocVec parts = {0};
    vec_push(&parts, doc_text("operator "));
    vec_push(&parts, print_head_name(p, item->name));
    vec_push(&parts, doc_text(" : "));
    vec_push(&parts, print_type(p, item->type));
    vec_push(&parts, doc_text(" = "));
    vec_push(&parts, print_string(p, item->symbol, strlen(item->symbol), item->span));
    vec_push(&parts, doc_text(" from "));
    vec_push(&parts, print_string(p, item->path, strlen(item->path), item->span));
    vec_push(&parts, doc_text(";"));
    return doc_cat(parts);
}

static Doc *print_item(Printer *p, const Item *item, const Item *next) {
    switch (item->kind) {
    case ITEM_DEF: {
        Doc *params = print_type_params(p, &item->fn->type_params);
        return doc_cat3(doc_cat2(doc_text("def "), print_head_name(p, item->name)), params,
                        print_fn_rest(p, item->fn));
    }
    case ITEM_TYPE: return print_type_item(p, item);
    case ITEM_EXTERN_TYPE: /* without its `;` a `[` on the next line would be read as parameters */
        return doc_cat3(doc_textf("extern type %s", item->name.sym->text),
                        print_type_params(p, &item->type_params),
                        doc_text(next && next->kind == ITEM_EXPR ? ";" : ""));
    case ITEM_OPERATOR: return print_operator(p, item);
    case ITEM_DERIVATIVE:
    case ITEM_TANGENT: return print_rule(p, item);
    case ITEM_NO_DERIVATIVE:
        return doc_cat3(doc_text("no_derivative "), print_field(&item->name), doc_text(";"));
    case ITEM_LET: /* `%x` is the item in all that follows and, in a def, everywhere */
        return doc_cat2(
            print_binding(p, "let ", item->pattern, &item->name, item->type, item->value),
            doc_text(";"));
    case ITEM_FREE_VAR:
        return doc_cat2(print_binding(p, "free_var ", NULL, &item->name, item->type, NULL),
                        doc_text(";"));
    case ITEM_GRAPH_LET:
        return doc_cat3(doc_textf("%%%" PRId64 " = ", item->index),
                        print_expr(p, item->value, PREC_SEQ + 1), doc_text(";"));
    case ITEM_IMPORT: return print_import(p, item);
    case ITEM_EXPR:
        return doc_cat2(print_expr(p, item->value, PREC_SEQ + 1), doc_text(item->shown ? "" : ";"));
    case ITEM_ERROR: return doc_text("");
    }
    BUG("no such form of item: %d", (int)item->kind);
}

/* The `///` lines of an item. */
static void push_doc(DocVec *out, const char *doc) {
    for (bool more = doc != NULL; more;) {
        size_t n = strcspn(doc, "\n");
        vec_push(out, doc_textf("/// %.*s", (int)n, doc));
        vec_push(out, doc_hard());
        more = doc[n] == '\n';
        doc += n + more;
    }
}

/* Where an item begins, with its documentation, whose lines are comments too: these are passed. */
static uint32_t find_begin(Printer *p, const Item *item, size_t *after) {
    const Module *m = p->module;
    size_t lines = item->doc != NULL, end = p->next_comment;
    for (const char *c = item->doc; c && *c; c++)
        lines += *c == '\n';
    while (end < m->comments.len && m->comments.data[end].span.begin < item->span.begin)
        end++;
    *after = end;
    return lines && end >= lines ? m->comments.data[end - lines].span.begin : item->span.begin;
}

/* A float without a suffix is float32 for TVM. It may be another where the text names one, or where
 * something comes from elsewhere. */
static bool may_mean_other_floats(const Printer *p) {
    const Source *s = p->module->source;
    if (!s || p->imports)
        return true;
    static const char *const signs[] = {"float64", "float16", "f64", "f16", "FloatType"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strstr(s->text, signs[i]))
            return true;
    return false;
}

void ast_print_module(Str *out, const Module *m, const PrintOptions *options) {
    Printer p = {.options = options,
                 .module = m,
                 .versioned = m->versioned || options->tvm,
                 .module_versioned = m->versioned};
    DocVec all = {0};
    Gap gap = {.first = true, .blanks = true};
    print_bind_items(&p, m);
    const char *source = m->source ? m->source->text : "";
    if (strncmp(source, "#!", 2) == 0) { /* #!/usr/bin/env relay */
        gap.from = (uint32_t)strcspn(source, "\n");
        gap.first = false;
        vec_push(&all, doc_text(mem_strndup(source, gap.from)));
    }
    p.weak_floats = m->versioned || may_mean_other_floats(&p);
    if (p.versioned) {
        if (!gap.first)
            vec_push(&all, doc_hard());
        vec_push(&all, doc_textf("#[version = \"%s\"]", m->version ? m->version : "0.0.5"));
        gap.first = false;
    }
    for (size_t i = 0; i < m->items.len; i++) {
        const Item *item = m->items.data[i];
        if (item->derived && !options->tvm)
            continue;
        size_t after;
        gap.at = find_begin(&p, item, &after);
        print_gap(&p, gap, doc_hard(), &all);
        p.next_comment = after;
        push_doc(&all, item->doc);
        vec_push(&all, print_item(&p, item, i + 1 < m->items.len ? m->items.data[i + 1] : NULL));
        gap.first = false;
        gap.from = item->span.end;
    }
    print_last_comments(&p, UINT32_MAX, gap.first, &all);
    if (all.len)
        vec_push(&all, doc_hard());
    doc_print(out, doc_cat(all), options->width ? options->width : 100);
    if (m->constants.len)
        print_metadata(out, m);
}
