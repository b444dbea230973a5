/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/line/paint.h"

#include <string.h>

#include "parser/lexer.h"

typedef struct Painter {
    const char *text;
    size_t len, cursor;
    uint8_t *styles; /* may be NULL */
    VEC(Token) open;
} Painter;

static void fill(Painter *p, size_t begin, size_t end, Style style) {
    if (p->styles)
        memset(p->styles + begin, style, end - begin);
}

/* The blanks before a token: what is not blank there is a comment. */
static void paint_gap(Painter *p, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        fill(p, i, i + 1, strchr(" \t\n", p->text[i]) ? STYLE_PLAIN : STYLE_COMMENT);
}

static TokenKind closer_of(TokenKind opener) {
    switch ((int)opener) {
    case TOK_LPAREN: return TOK_RPAREN;
    case TOK_LBRACKET:
    case TOK_HASH: return TOK_RBRACKET;
    case TOK_LBRACE: return TOK_RBRACE;
    }
    return TOK_EOF;
}

/* The cursor is at a bracket when it stands on it, or behind one with none on it. */
static bool is_at_cursor(const Painter *p, const Token *t) {
    if (p->cursor == t->begin)
        return true;
    return p->cursor == t->end && (p->cursor == p->len || !strchr("()[]{}", p->text[p->cursor]));
}

static void paint_bracket(Painter *p, const Token *t) {
    if (closer_of(t->kind) != TOK_EOF) {
        vec_push(&p->open, *t);
        return;
    }
    if (!p->open.len || closer_of(vec_last(&p->open).kind) != t->kind) {
        fill(p, t->begin, t->end, STYLE_WRONG);
        /* The innermost of its kind is taken for its partner, and what is open inside of that is wrong. */
        size_t i = p->open.len;
        while (i > 0 && closer_of(p->open.data[i - 1].kind) != t->kind)
            i--;
        for (size_t k = i; i > 0 && k < p->open.len; k++)
            fill(p, p->open.data[k].begin, p->open.data[k].end, STYLE_WRONG);
        if (i > 0) {
            fill(p, t->begin, t->end, STYLE_PLAIN);
            p->open.len = i - 1;
        }
        return;
    }
    Token opener = vec_pop(&p->open);
    if (is_at_cursor(p, t) || is_at_cursor(p, &opener)) {
        fill(p, opener.begin, opener.end, STYLE_MATCH);
        fill(p, t->begin, t->end, STYLE_MATCH);
    }
}

static void paint_name(Painter *p, const Token *t) {
    Style style = STYLE_PLAIN;
    switch (word_get_class(t->word)) {
    case WORDCLASS_RESERVED: style = STYLE_KEYWORD; break;
    case WORDCLASS_DTYPE:
    case WORDCLASS_TYPE: style = STYLE_TYPE; break;
    case WORDCLASS_SOFT:
    case WORDCLASS_NONE:
        if (p->text[t->begin] >= 'A' && p->text[t->begin] <= 'Z')
            style = STYLE_TYPE; /* constructors and types */
    }
    fill(p, t->begin, t->end, style);
}

static void paint_token(Painter *p, const Token *t) {
    switch ((int)t->kind) {
    case TOK_IDENT: paint_name(p, t); return;
    case TOK_NUMBER: fill(p, t->begin, t->end, STYLE_NUMBER); return;
    case TOK_STRING: fill(p, t->begin, t->end, STYLE_STRING); return;
    case TOK_LPAREN:
    case TOK_RPAREN:
    case TOK_LBRACKET:
    case TOK_RBRACKET:
    case TOK_HASH:
    case TOK_LBRACE:
    case TOK_RBRACE:
        fill(p, t->begin, t->end, STYLE_PLAIN);
        paint_bracket(p, t);
        return;
    case TOK_ERROR: /* a string or a comment that does not end yet is no mistake */
        if (p->text[t->begin] == '"')
            fill(p, t->begin, t->end, STYLE_STRING);
        else if (strncmp(p->text + t->begin, "/*", 2) == 0)
            fill(p, t->begin, p->len, STYLE_COMMENT);
        else
            fill(p, t->begin, t->end, STYLE_WRONG);
        return;
    default: fill(p, t->begin, t->end, STYLE_PLAIN);
    }
}

static void paint(Painter *p) {
    size_t at = 0;
    if (p->len && p->text[0] == ':') {
        at = strcspn(p->text, " \t\n");
        fill(p, 0, at, STYLE_COMMAND);
    }
    Source *source = source_new("entry", p->text, p->len, SOURCE_PROMPT);
    Lexer lex;
    lexer_init(&lex, source, NULL);
    while (at < p->len) {
        Token t = {0};
        lexer_read(&lex, (uint32_t)at, &t);
        if (t.kind == TOK_EOF || t.end <= at) {
            paint_gap(p, at, p->len);
            return;
        }
        paint_gap(p, at, t.begin);
        paint_token(p, &t);
        at = t.end;
    }
}

void paint_text(const char *text, size_t len, size_t cursor, uint8_t *styles) {
    Painter p = {.text = text, .len = len, .cursor = cursor, .styles = styles};
    if (text_is_utf8(text, len, NULL))
        paint(&p);
}

size_t paint_count_open(const char *text, size_t len, size_t *innermost) {
    Painter p = {.text = text, .len = len, .cursor = SIZE_MAX};
    paint(&p);
    *innermost = p.open.len ? vec_last(&p.open).begin : 0;
    return p.open.len;
}
