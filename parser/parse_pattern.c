/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns (LANGUAGE §3). Whether a bare name is a constructor is decided by inference; a name that
 * could be a variable is bound for the arm, which is what names with a sigil need to be cut right. */
#include "parser/parse_internal.h"

#include <string.h>

static AstPattern *pattern_node(Parser *p, AstPatternKind kind, uint32_t begin) {
    AstPattern *pat = mem_new(AstPattern);
    pat->kind = kind;
    pat->span = parse_span_from(p, begin);
    return pat;
}

static void read_patterns(Parser *p, TokenKind close, AstPatternVec *args) {
    while (!p->panic && p->tok.kind != close) {
        vec_push(args, parse_pattern(p));
        if (!parse_more(p, close))
            break;
    }
}

/* '(' p, … ')': a tuple, () and (p,) too; (p) is AST_PAT_PAREN. */
static AstPattern *read_round(Parser *p) {
    uint32_t begin = p->tok.begin;
    AstPattern *pat = pattern_node(p, AST_PAT_TUPLE, begin);
    bool comma = false;
    Opened opened = parse_open(p);
    while (!p->panic && !parse_at(p, TOK_RPAREN)) {
        vec_push(&pat->args, parse_pattern(p));
        if (!parse_at(p, TOK_COMMA))
            break;
        comma = true;
        parse_advance(p);
    }
    parse_close(p, TOK_RPAREN, opened);
    pat->span = parse_span_from(p, begin);
    if (pat->args.len == 1 && !comma)
        pat->kind = AST_PAT_PAREN;
    return pat;
}

/* A name that may be a variable: a constructor of a module, `m.C`, is none. */
static void bind_variable(Parser *p, Name name) {
    char c = name.sym->text[0];
    if (name.sigil == SIGIL_NONE && strchr(name.sym->text, '.'))
        return;
    if (name.sigil != SIGIL_NONE || ((c >= 'a' && c <= 'z') || (c == '_' && name.sym->len > 1)))
        parse_scope_bind(p, name);
}

/* C '{' w, b ':' p, … '}' */
static AstPattern *read_record(Parser *p, Name name, uint32_t begin) {
    AstPattern *pat = pattern_node(p, AST_PAT_RECORD, begin);
    pat->name = name;
    Opened opened = parse_open(p);
    while (!p->panic && !parse_at(p, TOK_RBRACE)) {
        Name field = parse_binder(p, false, "the name of a field");
        AstPattern *arg;
        if (parse_accept(p, TOK_COLON)) {
            arg = parse_pattern(p);
        } else {
            arg = pattern_node(p, AST_PAT_NAME, field.span.begin);
            arg->name = field;
            if (!p->panic)
                bind_variable(p, field);
        }
        vec_push(&pat->fields, field);
        vec_push(&pat->args, arg);
        if (!parse_more(p, TOK_RBRACE))
            break;
    }
    parse_close(p, TOK_RBRACE, opened);
    parse_check_twice(p, &pat->fields, "field");
    pat->span = parse_span_from(p, begin);
    return pat;
}

/* literal, with its minus */
static AstPattern *read_literal(Parser *p) {
    uint32_t begin = p->tok.begin;
    bool negative = parse_accept(p, TOK_MINUS);
    AstPattern *pat = pattern_node(p, AST_PAT_WILDCARD, begin);
    Token t = p->tok;
    if (negative && !parse_at_literal_number(p)) {
        parse_unexpected(p, "a number");
        return pat;
    }
    pat->literal = parse_literal(p, negative);
    pat->literal->span.begin = begin;
    pat->kind = t.kind == TOK_STRING                          ? AST_PAT_STRING
                : t.word == WORD_TRUE || t.word == WORD_FALSE ? AST_PAT_BOOL
                : pat->literal->kind == AST_FLOAT             ? AST_PAT_FLOAT
                                                              : AST_PAT_INT;
    pat->span = parse_span_from(p, begin);
    return pat;
}

/* x [':' T] | C | C '(' p, … ')' | C '{' … '}' | 'list' '[' p, … ']' | '_' */
static AstPattern *read_name(Parser *p) {
    uint32_t begin = p->tok.begin;
    bool dotted = parse_at(p, TOK_IDENT) && parse_peek(p).kind == TOK_DOT;
    if (parse_at_soft(p, WORD_LIST) && parse_peek(p).kind == TOK_LBRACKET) {
        parse_advance(p);
        AstPattern *pat = pattern_node(p, AST_PAT_LIST, begin);
        Opened opened = parse_open(p);
        read_patterns(p, TOK_RBRACKET, &pat->args);
        parse_close(p, TOK_RBRACKET, opened);
        pat->span = parse_span_from(p, begin);
        return pat;
    }
    Name name = dotted ? parse_dotted(p, "a pattern") : parse_binder(p, false, "a pattern");
    if (!p->panic && parse_at(p, TOK_LPAREN) && name.sigil == SIGIL_NONE) {
        AstPattern *pat = pattern_node(p, AST_PAT_CTOR, begin);
        pat->name = name;
        Opened opened = parse_open(p);
        read_patterns(p, TOK_RPAREN, &pat->args);
        parse_close(p, TOK_RPAREN, opened);
        pat->span = parse_span_from(p, begin);
        return pat;
    }
    if (!p->panic && parse_at(p, TOK_LBRACE) && name.sigil == SIGIL_NONE)
        return read_record(p, name, begin);
    bool wildcard = name.sigil == SIGIL_NONE && strcmp(name.sym->text, "_") == 0;
    AstPattern *pat = pattern_node(p, wildcard ? AST_PAT_WILDCARD : AST_PAT_NAME, begin);
    pat->name = name;
    if (parse_accept(p, TOK_COLON)) {
        unsigned ctx = p->ctx;
        p->ctx |= CTX_NO_ARROW;
        pat->type = parse_type_any(p);
        p->ctx = ctx;
        pat->span = parse_span_from(p, begin);
    }
    if (!p->panic && !wildcard)
        bind_variable(p, name);
    return pat;
}

static AstPattern *read_atom(Parser *p) {
    switch ((int)p->tok.kind) {
    case TOK_LPAREN: return read_round(p);
    case TOK_MINUS:
    case TOK_NUMBER:
    case TOK_STRING: return read_literal(p);
    case TOK_IDENT:
        if (p->tok.word == WORD_TRUE || p->tok.word == WORD_FALSE || parse_at_literal_number(p))
            return read_literal(p);
        return read_name(p);
    case TOK_LOCAL: return read_name(p);
    }
    parse_unexpected(p, "a pattern");
    return pattern_node(p, AST_PAT_WILDCARD, p->tok.begin);
}

/* atom ('::' atom)*, to the right */
AstPattern *parse_pattern(Parser *p) {
    AstPatternVec links = {0};
    if (!parse_enter(p)) {
        parse_leave(p);
        return pattern_node(p, AST_PAT_WILDCARD, p->tok.begin);
    }
    do
        vec_push(&links, read_atom(p));
    while (parse_accept(p, TOK_COLONCOLON));
    parse_leave(p);
    AstPattern *pat = vec_last(&links);
    for (size_t i = links.len - 1; i-- > 0;) {
        AstPattern *head = links.data[i], *cons = mem_new(AstPattern);
        cons->kind = AST_PAT_CONS;
        cons->span = span_join(head->span, pat->span);
        vec_push(&cons->args, head);
        vec_push(&cons->args, pat);
        pat = cons;
    }
    return pat;
}
