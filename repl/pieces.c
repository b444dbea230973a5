/* SPDX-License-Identifier: Apache-2.0 */
/* The lexer finds the lines that surely go on (a bracket is open, the line ends or the next one begins with
 * a sign that joins), so that the reader is asked once an item and not once a line. */
#include "repl/pieces.h"

#include <string.h>

#include "parser/infix.h"
#include "parser/lexer.h"

typedef struct Cutter {
    Session *session;
    const char *text;
    size_t len;
    Lexer lex;
} Cutter;

/* Tokens after which a line goes on. `!` and closing brackets are none of them. */
static bool joins_next(TokenKind kind) {
    switch ((int)kind) {
    case TOK_COMMA:
    case TOK_COLON:
    case TOK_EQUAL:
    case TOK_BAR:
    case TOK_ARROW:
    case TOK_FATARROW:
    case TOK_DOT: return true;
    }
    return infix_find(kind) != BINOP_COUNT;
}

/* Tokens before which a line goes on: LANGUAGE §2. */
static bool joins_before(const Token *t) {
    switch ((int)t->kind) {
    case TOK_DOT:
    case TOK_COLON:
    case TOK_EQUAL:
    case TOK_ARROW:
    case TOK_FATARROW: return true;
    case TOK_IDENT:
        return t->word == WORD_IN || t->word == WORD_THEN || t->word == WORD_ELSE ||
               t->word == WORD_WITH || t->word == WORD_WHEN || t->word == WORD_WHERE;
    }
    BinOp op = infix_find(t->kind);
    return op != BINOP_COUNT && strcmp(infix_table[op].sign, "-") != 0;
}

/* The first line break at or after `at` where an item may end, as the position behind it; the text's length when there
 * is none. *broken: there was one. */
static size_t find_break(Cutter *c, size_t at, bool *broken) {
    long depth = 0;
    TokenKind last = TOK_EOF;
    Token t = {0};
    for (size_t from = at;; from = t.end) {
        lexer_read(&c->lex, (uint32_t)from, &t);
        const char *line = from > at ? memchr(c->text + from, '\n', t.begin - from) : NULL;
        if (line && depth <= 0 && !joins_next(last) && !joins_before(&t)) {
            *broken = true;
            return (size_t)(line - c->text) + 1;
        }
        if (t.kind == TOK_EOF || t.end <= from)
            break;
        depth += token_depth(t.kind);
        last = t.kind;
    }
    *broken = false;
    return c->len;
}

static size_t skip_blank_lines(const Cutter *c, size_t at) {
    for (;;) {
        size_t n = strspn(c->text + at, " \t\n");
        if (n && at + n < c->len)
            while (n && c->text[at + n - 1] != '\n') /* the indentation of the first line stays */
                n--;
        if (!n)
            return at;
        at += n;
    }
}

void pieces_cut(Session *s, const char *text, size_t len, PieceVec *out) {
    Cutter c = {s, text, len, {0}};
    Source *source = source_new("paste", text, len, SOURCE_PROMPT);
    lexer_init(&c.lex, source, NULL);
    for (size_t at = skip_blank_lines(&c, 0); at < len; at = skip_blank_lines(&c, at)) {
        Piece piece = {PIECE_OPEN, at, len};
        if (text[at] == ':') {
            const char *end = memchr(text + at, '\n', len - at);
            if (end)
                piece = (Piece){PIECE_COMMAND, at, (size_t)(end - text) + 1};
        }
        bool broken = piece.kind == PIECE_OPEN;
        for (size_t end = at; broken && piece.kind == PIECE_OPEN;) {
            end = find_break(&c, end, &broken);
            /* At the end of the text the last line break counts, although nothing follows it. */
            if (!broken && text[len - 1] != '\n')
                break;
            switch (session_read_status(s, text + at, end - at)) {
            case PARSE_OK: piece = (Piece){PIECE_ITEMS, at, end}; break;
            case PARSE_FAILED: piece = (Piece){PIECE_WRONG, at, end}; break;
            case PARSE_INCOMPLETE: break;
            }
        }
        vec_push(out, piece);
        at = piece.end;
    }
}
