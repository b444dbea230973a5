/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of tokens. The signs of infix operators stand in parser/infix.def. */
#ifndef PARSER_TOKEN_H
#define PARSER_TOKEN_H

/* TOKEN(name, how messages spell it), MARK(name, its text) */
#define TOKENS(TOKEN, MARK)                                                                        \
    TOKEN(EOF, "the end")                                                                          \
    TOKEN(ERROR, "a character that means nothing here")                                            \
    TOKEN(IDENT, "a name")                                                                         \
    TOKEN(LOCAL, "a name with `%`")                                                                \
    TOKEN(GLOBAL, "a name with `@`")                                                               \
    TOKEN(GRAPH, "a graph binding")                                                                \
    TOKEN(NUMBER, "a number")                                                                      \
    TOKEN(STRING, "a string")                                                                      \
    MARK(LPAREN, "(")                                                                              \
    MARK(RPAREN, ")")                                                                              \
    MARK(LBRACKET, "[")                                                                            \
    MARK(RBRACKET, "]")                                                                            \
    MARK(LBRACE, "{")                                                                              \
    MARK(RBRACE, "}")                                                                              \
    MARK(COMMA, ",")                                                                               \
    MARK(SEMI, ";")                                                                                \
    MARK(COLON, ":")                                                                               \
    MARK(EQUAL, "=")                                                                               \
    MARK(BAR, "|")                                                                                 \
    MARK(BANG, "!")                                                                                \
    MARK(ARROW, "->")                                                                              \
    MARK(FATARROW, "=>")                                                                           \
    MARK(DOT, ".")                                                                                 \
    MARK(ELLIPSIS, "...")                                                                          \
    MARK(QUESTION, "?")                                                                            \
    MARK(HASH, "#[")

typedef enum TokenKind {
#define TOKEN(name, text) TOK_##name,
#define INFIX(name, token, ...) TOK_##token,
    TOKENS(TOKEN, TOKEN)
#include "parser/infix.def"
#undef TOKEN
#undef INFIX
} TokenKind;

enum {
    TOKEN_COUNT = 0
#define TOKEN(name, text) +1
#define INFIX(...) +1
    TOKENS(TOKEN, TOKEN)
#include "parser/infix.def"
#undef TOKEN
#undef INFIX
};

/* "a name", "`(`", "`==`". */
const char *token_kind_text(TokenKind kind);

#endif
