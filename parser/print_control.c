/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of functions, `if`, `match` and blocks: short ones on one line, several
 * statements always one a line. */
#include <inttypes.h>

#include "parser/print_internal.h"

/* ---- functions ------------------------------------------------------------------------------- */

/* (params) -> T where … */
static Doc *print_head(Printer *p, const AstFn *fn) {
    DocVec parts = {0};
    Rows rows = {0};
    for (size_t i = 0; i < fn->params.len; i++) {
        const AstParam *param = &fn->params.data[i];
        rows_next(p, &rows, param->name.span.begin);
        Doc *name = print_bound(p, param->pattern, &param->name);
        vec_push(&rows.in, param->type
                               ? doc_cat3(name, doc_text(": "), print_inner_type(p, param->type))
                               : name);
    }
    for (size_t i = 0; i < fn->attrs.len; i++) {
        rows_next(p, &rows, fn->attrs.data[i].span.begin);
        vec_push(&rows.in, print_attr(p, &fn->attrs.data[i]));
    }
    vec_push(&parts, rows_end(p, &rows, "(", ")", 0));
    if (fn->result) {
        vec_push(&parts, doc_text(" -> "));
        vec_push(&parts, print_inner_type(p, fn->result));
    }
    if (fn->has_where)
        vec_push(&parts, print_where(p, &fn->where));
    return doc_cat(parts);
}

/* A function that branches stands on one line only if it is short. */
enum { SHORT = 80 };

Doc *print_fn_rest(Printer *p, const AstFn *fn) {
    size_t mark = print_scope_mark(p);
    Doc *head = print_head(p, fn);
    const Ast *written = print_written(p, fn->body);
    Doc *body = print_block(p, written);
    bool branches = written->kind == AST_IF || written->kind == AST_MATCH;
    if (branches && doc_flat_width(head, SHORT) + doc_flat_width(body, SHORT) > SHORT)
        body = doc_break(body);
    print_scope_release(p, mark);
    return doc_cat3(doc_group(head), doc_text(" "), body);
}

Doc *print_fn(Printer *p, const AstFn *fn) {
    Doc *params = print_type_params(p, &fn->type_params);
    return doc_cat3(doc_text("fn "), params, print_fn_rest(p, fn));
}

/* ---- if and match ---------------------------------------------------------------------------- */

/* What stands between `if` or `match` and a brace: in parentheses, which a tuple has. */
static Doc *print_scrutinee(Printer *p, const Ast *e) {
    Doc *d = print_expr(p, e, PREC_SEQ + 1);
    return e->kind == AST_TUPLE ? d : doc_cat3(doc_text("("), d, doc_text(")"));
}

Doc *print_if(Printer *p, const Ast *e) {
    DocVec parts = {0};
    for (;;) {
        vec_push(&parts, doc_text("if "));
        vec_push(&parts, print_scrutinee(p, e->a));
        vec_push(&parts, doc_text(" "));
        vec_push(&parts, print_open_block(p, e->b));
        vec_push(&parts, doc_text(" else "));
        if (e->c->kind != AST_IF || p->options->tvm)
            break;
        e = e->c;
    }
    vec_push(&parts, print_open_block(p, e->c));
    return doc_group(doc_cat(parts));
}

Doc *print_match(Printer *p, const Ast *e) {
    Rows rows = {.pad = true};
    uint32_t end = 0;
    Doc *scrutinee = print_scrutinee(p, e->a);
    for (size_t i = 0; i < e->arms.len; i++) {
        const AstArm *arm = &e->arms.data[i];
        size_t mark = print_scope_mark(p);
        DocVec parts = {0};
        rows_next(p, &rows, arm->pattern->span.begin);
        vec_push(&parts, print_pattern(p, arm->pattern));
        if (arm->guard) {
            vec_push(&parts, doc_text(" when "));
            vec_push(&parts, print_expr(p, arm->guard, PREC_PIPE));
        }
        vec_push(&parts, doc_text(" => "));
        vec_push(&parts, ast_is_chain(arm->body) ? print_block(p, arm->body)
                                                 : print_expr(p, arm->body, PREC_SEQ + 1));
        vec_push(&rows.in, doc_cat(parts));
        print_scope_release(p, mark);
        end = arm->body->span.end;
    }
    return doc_cat3(doc_text(e->flag ? "match? " : "match "), scrutinee,
                    doc_cat2(doc_text(" "), rows_end(p, &rows, "{", "}", end)));
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A value that is bound; a function in parentheses keeps them, it is not recursive then. */
static Doc *print_value(Printer *p, const Ast *e) {
    Doc *d = print_expr(p, e, PREC_SEQ + 1);
    bool closed = e->kind == AST_FN && print_is_parenthesised(e);
    return closed ? doc_cat3(doc_text("("), d, doc_text(")")) : d;
}

const Ast *print_written(const Printer *p, const Ast *e) {
    while (e && e->kind == AST_LET && e->flag && !p->options->tvm)
        e = e->body;
    return e;
}

Doc *print_bound(Printer *p, const AstPattern *pattern, const Name *name) {
    return pattern && !p->options->tvm ? print_pattern(p, pattern) : print_binder(p, name);
}

Doc *print_binding(Printer *p, const char *word, const AstPattern *pattern, const Name *name,
                   const AstType *type, const Ast *value) {
    DocVec parts = {0};
    bool recursive = value && value->kind == AST_FN && !print_is_parenthesised(value) && !pattern;
    Doc *right = !value || recursive ? NULL : print_value(p, value);
    Doc *left = print_bound(p, pattern, name);
    vec_push(&parts, doc_text(word));
    vec_push(&parts, left);
    if (type) {
        vec_push(&parts, doc_text(": "));
        vec_push(&parts, print_type(p, type));
    }
    if (value) {
        vec_push(&parts, doc_text(" = "));
        vec_push(&parts, recursive ? print_value(p, value) : right);
    }
    return doc_cat(parts);
}

/* One link of a chain, without its `;`. */
static Doc *print_link(Printer *p, const Ast *e) {
    if (e->kind == AST_LET)
        return print_binding(p, "let ", e->pattern, &e->name, e->type, e->a);
    if (e->kind == AST_FREE_VAR)
        return print_binding(p, "free_var ", NULL, &e->name, e->type, NULL);
    Doc *value = print_expr(p, e->a, PREC_SEQ + 1);
    return e->kind == AST_GRAPH_LET ? doc_cat2(doc_textf("%%%" PRId64 " = ", e->i), value) : value;
}

/* Where the text of a link ends, but for its `;`. */
static uint32_t link_end(const Ast *e) {
    return e->a ? e->a->span.end : e->type ? e->type->span.end : e->name.span.end;
}

Doc *print_block(Printer *p, const Ast *e) { return doc_group(print_open_block(p, e)); }

Doc *print_open_block(Printer *p, const Ast *e) {
    DocVec in = {0}, all = {0};
    Gap gap = {.first = true, .blanks = true};
    const Ast *block = e;
    bool many = ast_is_chain(e);
    size_t mark = print_scope_mark(p);
    while (e) {
        bool chain = ast_is_chain(e);
        gap.at = print_begin(p, e);
        print_gap(p, gap, doc_hard(), &in);
        vec_push(&in, chain ? print_link(p, e) : print_expr(p, e, PREC_SEQ + 1));
        if (!chain)
            break;
        const Ast *next = print_written(p, e->body);
        if (next || e->kind != AST_LET)
            vec_push(&in, doc_text(";"));
        gap.first = false;
        gap.from = link_end(e);
        e = next;
    }
    many |= print_last_comments(p, block->span.end, false, &in);
    print_scope_release(p, mark);
    vec_push(&all, doc_text("{"));
    vec_push(&all, doc_nest(2, doc_cat2(many ? doc_hard() : doc_line(), doc_cat(in))));
    vec_push(&all, many ? doc_hard() : doc_line());
    vec_push(&all, doc_text("}"));
    return doc_cat(all);
}
