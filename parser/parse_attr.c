/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: `strides=[2, 2], dtype=float32`, after the arguments of a call, in the parameters of a
 * function as TVM prints them, and in a `where`. */
#include "parser/literal.h"
#include "parser/parse_internal.h"

#include <string.h>

static AstAttrValue *read_value(Parser *p);

static AstAttrValue *value_node(Parser *p, AstAttrKind kind, uint32_t begin) {
    AstAttrValue *v = mem_new(AstAttrValue);
    v->kind = kind;
    v->span = parse_span_from(p, begin);
    return v;
}

bool parse_index_number(Parser *p, uint32_t begin, uint32_t end, int64_t *value) {
    Number n = literal_read_number(p->source->text + begin, end - begin, false);
    *value = (int64_t)n.magnitude;
    return n.error == DIAG_NONE && !n.is_float && n.magnitude <= INT64_MAX;
}

/* 'meta' '[' Key ']' '[' N ']' */
bool parse_meta(Parser *p, const char **key, size_t *key_len, int64_t *index) {
    *key = "";
    *key_len = 0;
    *index = 0;
    parse_advance(p);
    if (!parse_at(p, TOK_LBRACKET)) {
        parse_unexpected(p, "`[`");
        return false;
    }
    Opened opened = parse_open(p);
    Name name = parse_dotted(p, "the key of a constant such as `relay.Constant`");
    *key = name.sym->text;
    *key_len = name.sym->len;
    parse_close(p, TOK_RBRACKET, opened);
    if (!p->panic && !parse_at(p, TOK_LBRACKET))
        parse_unexpected(p, "`[`");
    if (p->panic)
        return false;
    opened = parse_open(p);
    if (parse_at(p, TOK_NUMBER) && parse_index_number(p, p->tok.begin, p->tok.end, index))
        parse_advance(p);
    else
        parse_unexpected(p, "the number of a constant");
    return parse_close(p, TOK_RBRACKET, opened);
}

/* '[' value, … ']' | '(' value, … ')'; one value in parentheses is that value, as TVM reads it. */
static AstAttrValue *read_list(Parser *p) {
    uint32_t begin = p->tok.begin;
    bool round = parse_at(p, TOK_LPAREN), comma = false;
    TokenKind close = round ? TOK_RPAREN : TOK_RBRACKET;
    AstAttrValue *v = value_node(p, AST_ATTR_LIST, begin);
    Opened opened = parse_open(p);
    while (!p->panic && p->tok.kind != close) {
        vec_push(&v->items, read_value(p));
        if (!parse_at(p, TOK_COMMA))
            break;
        comma = true;
        parse_advance(p);
    }
    parse_close(p, close, opened);
    v->span = parse_span_from(p, begin);
    return round && !comma && v->items.len == 1 ? v->items.data[0] : v;
}

/* A number of any kind, the minus passed. */
static AstAttrValue *read_number(Parser *p, uint32_t begin) {
    bool negative = p->tok.begin != begin;
    Ast *lit = parse_literal(p, negative);
    AstAttrValue *v = value_node(p, AST_ATTR_INT, begin);
    v->expr = lit;
    if (lit->kind == AST_FLOAT) {
        v->kind = AST_ATTR_FLOAT;
        /* TVM writes doubles as `1e-05f`: the suffix does not round. */
        v->f = lit->text ? literal_round(lit, "float64") : lit->f;
        v->text = lit->text;
        v->text_len = lit->text_len;
    } else if (lit->kind == AST_INT) {
        v->i = lit->i;
    }
    return v;
}

static bool continues_dim(const Parser *p) {
    return parse_at(p, TOK_PLUS) || parse_at(p, TOK_MINUS) || parse_at(p, TOK_STAR);
}

/* Arithmetic over dims, `?`, a dtype or another name: read as a type. */
static AstAttrValue *read_dim(Parser *p) {
    uint32_t begin = p->tok.begin;
    AstType *t = parse_type_any(p);
    AstAttrValue *v = value_node(p, AST_ATTR_DIM, begin);
    v->dim = t;
    if (t->kind == AST_TYPE_NAME && t->args.len == 0) {
        v->kind = AST_ATTR_NAME;
        v->name = t->name;
    } else if (t->kind == AST_TYPE_DIM && t->op == DIM_INT) {
        v->kind = AST_ATTR_INT;
        v->i = t->value;
    }
    return v;
}

static bool at_simple_number(Parser *p) {
    if (parse_at_literal_number(p)) {
        TokenKind next = parse_peek(p).kind;
        return next != TOK_PLUS && next != TOK_MINUS && next != TOK_STAR;
    }
    return false;
}

static AstAttrValue *read_word(Parser *p) {
    Token t = p->tok;
    switch ((int)t.word) {
    case WORD_TRUE:
    case WORD_FALSE: {
        parse_advance(p);
        AstAttrValue *v = value_node(p, AST_ATTR_BOOL, t.begin);
        v->i = t.word == WORD_TRUE;
        return v;
    }
    case WORD_META:
        if (parse_peek(p).kind == TOK_LBRACKET) {
            const char *key;
            size_t len;
            int64_t index;
            parse_meta(p, &key, &len, &index);
            AstAttrValue *v = value_node(p, AST_ATTR_META, t.begin);
            v->text = key;
            v->text_len = len;
            v->i = index;
            return v;
        }
        break;
    }
    if (parse_at_soft(p, WORD_NONE_VALUE) || strcmp(t.sym->text, "nullptr") == 0) {
        parse_advance(p);
        return value_node(p, AST_ATTR_NONE, t.begin);
    }
    if (at_simple_number(p))
        return read_number(p, t.begin);
    return read_dim(p);
}

/* A size that is computed, as an expression. */
static AstAttrValue *read_expr(Parser *p, uint32_t begin) {
    Ast *e = parse_expr(p);
    AstAttrValue *v = value_node(p, AST_ATTR_EXPR, begin);
    v->expr = e;
    return v;
}

static bool ends_value(TokenKind kind) {
    return kind == TOK_COMMA || kind == TOK_RPAREN || kind == TOK_RBRACKET || kind == TOK_RBRACE ||
           kind == TOK_EOF;
}

/* Whether the word in hand begins an expression that is more than a name. */
static bool begins_size(Parser *p) {
    Token next = parse_peek(p);
    if (p->in_call && p->tok.word == WORD_WHERE)
        return true; /* the operator, whose name is a word */
    bool constant = p->tok.word == WORD_TRUE || p->tok.word == WORD_FALSE ||
                    (p->tok.word == WORD_META && next.kind == TOK_LBRACKET);
    return p->in_call && !constant && !word_is_type(p->tok.word) && !ends_value(next.kind) &&
           !parse_at_literal_number(p);
}

/* value := number | 'True' | 'False' | string | meta | 'None' | list | dtype | size
 * A size is an expression, and in a `where` a dim. */
static AstAttrValue *read_value(Parser *p) {
    uint32_t begin = p->tok.begin;
    Parser before = *p;
    if (!parse_enter(p)) {
        parse_leave(p);
        return value_node(p, AST_ATTR_NONE, begin);
    }
    AstAttrValue *v = NULL;
    Token next;
    switch ((int)p->tok.kind) {
    case TOK_LBRACKET:
    case TOK_LPAREN: v = read_list(p); break;
    case TOK_STRING: {
        Ast *lit = parse_literal(p, false);
        v = value_node(p, AST_ATTR_STRING, begin);
        v->expr = lit;
        v->text = lit->text;
        v->text_len = lit->text_len;
        break;
    }
    case TOK_IDENT: v = begins_size(p) ? read_expr(p, begin) : read_word(p); break;
    case TOK_NUMBER:
        v = at_simple_number(p) ? read_number(p, begin)
            : p->in_call        ? read_expr(p, begin)
                                : read_dim(p);
        break;
    case TOK_MINUS:
        next = parse_peek(p);
        if (next.kind == TOK_NUMBER ||
            (next.kind == TOK_IDENT && literal_is_special(next.sym->text, next.sym->len))) {
            parse_advance(p);
            v = read_number(p, begin);
            break;
        }
        v = p->in_call ? read_expr(p, begin) : read_dim(p);
        break;
    case TOK_QUESTION: v = read_dim(p); break;
    default: /* tokens, not one of our sums: what begins no expression is wrong here */
        if (p->in_call && parse_begins_expr(&p->tok)) {
            v = read_expr(p, begin);
            break;
        }
        parse_unexpected(p,
                         "an attribute's value: a constant, a dtype, a size or `meta[...][...]`");
    }
    parse_leave(p);
    if (v && p->in_call && !p->panic && !ends_value(p->tok.kind)) {
        *p = before; /* `(n + 1) * 2`, `2 * n`: what was read is a part of an expression */
        v = read_expr(p, begin);
    } else if (v && continues_dim(p)) {
        parse_unexpected(p, "`,` or `)`");
    }
    return v ? v : value_node(p, AST_ATTR_NONE, begin);
}

/* Ident ('.' Ident)* '=' */
bool parse_at_attr(Parser *p) {
    Token t = p->tok;
    while (t.kind == TOK_IDENT) {
        lexer_read(&p->lex, t.end, &t);
        if (t.kind == TOK_EQUAL)
            return true;
        if (t.kind != TOK_DOT)
            return false;
        lexer_read(&p->lex, t.end, &t);
    }
    return false;
}

/* (key '=' value) ',' … */
void parse_attrs(Parser *p, TokenKind close, AstAttrVec *attrs) {
    NameVec names = {0};
    while (!p->panic && p->tok.kind != close) {
        uint32_t begin = p->tok.begin;
        if (!parse_at_attr(p)) {
            if (attrs->len > 0 && parse_begins_expr(&p->tok))
                parse_mistake(p, DIAG_R0017, parse_tok_span(p),
                              "arguments stand before the attributes");
            else
                parse_unexpected(p, "an attribute `name=value`");
            break;
        }
        AstAttr attr = {0};
        Name name = parse_dotted(p, "the name of an attribute");
        parse_expect(p, TOK_EQUAL);
        attr.name = name.sym;
        attr.value = read_value(p);
        attr.span = parse_span_from(p, begin);
        vec_push(attrs, attr);
        vec_push(&names, name);
        if (!parse_more(p, close))
            break;
    }
    parse_check_twice(p, &names, "attribute");
}
