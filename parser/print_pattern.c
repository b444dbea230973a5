/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of patterns. */
#include <string.h>

#include "parser/print_internal.h"

static Doc *print_pattern_list(Printer *p, const char *open, const AstPatternVec *args,
                               const char *close) {
    DocVec items = {0};
    for (size_t i = 0; i < args->len; i++)
        vec_push(&items, print_pattern(p, args->data[i]));
    return doc_list(open, items, ",", close, false);
}

static Doc *print_record_pattern(Printer *p, const AstPattern *pat) {
    DocVec items = {0};
    for (size_t i = 0; i < pat->fields.len; i++) {
        const AstPattern *arg = pat->args.data[i];
        const Symbol *field = pat->fields.data[i].sym;
        bool abbreviated = arg->kind == AST_PAT_NAME && arg->name.sym == field && !arg->type &&
                           arg->name.sigil == SIGIL_NONE && !p->options->tvm;
        vec_push(&items, abbreviated ? doc_text(field->text)
                                     : doc_cat3(doc_text(field->text), doc_text(": "),
                                                print_pattern(p, arg)));
    }
    return doc_cat2(doc_textf("%s ", pat->name.sym->text), doc_list("{", items, ",", "}", true));
}

/* A constructor stays bare: what has a capital, and what is declared as one. */
static Doc *print_variable(Printer *p, const Name *name) {
    char c = name->sym->text[0];
    bool ctor = name->sigil == SIGIL_NONE &&
                ((c >= 'A' && c <= 'Z') || strchr(name->sym->text, '.') ||
                 print_is_ctor(p, name->sym));
    return ctor ? doc_text(name->sym->text) : print_binder(p, name);
}

/* p :: q :: r, to the right in a loop */
static Doc *print_cons_pattern(Printer *p, const AstPattern *pat) {
    DocVec parts = {0};
    for (; pat->kind == AST_PAT_CONS && !pat->type; pat = pat->args.data[1]) {
        const AstPattern *head = pat->args.data[0];
        Doc *d = print_pattern(p, head);
        bool nested = head->kind == AST_PAT_CONS;
        vec_push(&parts, nested ? doc_cat3(doc_text("("), d, doc_text(")")) : d);
        vec_push(&parts, doc_text(" :: "));
    }
    vec_push(&parts, print_pattern(p, pat));
    return doc_cat(parts);
}

static Doc *print_bare_pattern(Printer *p, const AstPattern *pat) {
    switch (pat->kind) {
    case AST_PAT_WILDCARD: return doc_text("_");
    case AST_PAT_NAME: return print_variable(p, &pat->name);
    case AST_PAT_INT:
    case AST_PAT_FLOAT:
    case AST_PAT_BOOL:
    case AST_PAT_STRING: return print_expr(p, pat->literal, PREC_UNARY);
    case AST_PAT_CTOR:
        return doc_cat2(doc_text(pat->name.sym->text), print_pattern_list(p, "(", &pat->args, ")"));
    case AST_PAT_RECORD: return print_record_pattern(p, pat);
    case AST_PAT_TUPLE:
        return print_pattern_list(p, "(", &pat->args, pat->args.len == 1 ? ",)" : ")");
    case AST_PAT_PAREN: return print_pattern_list(p, "(", &pat->args, ")");
    case AST_PAT_CONS: return print_cons_pattern(p, pat);
    case AST_PAT_LIST: return print_pattern_list(p, "list[", &pat->args, "]");
    }
    BUG("no such form of pattern: %d", (int)pat->kind);
}

Doc *print_pattern(Printer *p, const AstPattern *pat) {
    Doc *d = print_bare_pattern(p, pat);
    return pat->type ? doc_cat3(d, doc_text(": "), print_inner_type(p, pat->type)) : d;
}
