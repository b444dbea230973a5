/* SPDX-License-Identifier: Apache-2.0 */
/* Infix operators (infix.def), and how tightly every form of expression binds: what the reader
 * groups by, and both printers, of syntax and of the core, put parentheses by. */
#ifndef PARSER_INFIX_H
#define PARSER_INFIX_H

#include <stdbool.h>
#include <stddef.h>

#include "parser/token.h"

/* Loosest first. */
typedef enum Prec {
    PREC_SEQ,
    PREC_ASSIGN,
    PREC_PIPE,
    PREC_COMPOSE,
    PREC_OR,
    PREC_AND,
    PREC_EQUAL,
    PREC_COMPARE,
    PREC_CONS,
    PREC_ADD,
    PREC_MUL,
    PREC_UNARY,
    PREC_POWER,
    PREC_BANG,
    PREC_CALL,
    PREC_ATOM,
} Prec;

typedef enum BinOp {
#define INFIX(name, ...) BINOP_##name,
#include "parser/infix.def"
#undef INFIX
    BINOP_COUNT /* also: none of them */
} BinOp;

typedef struct Infix {
    const char *sign; /* "+" */
    TokenKind token;
    Prec prec;
    bool right;      /* a chain of it leans to the right */
    const char *tvm; /* "power": the call that stands for it in TVM's text; or NULL */
} Infix;

extern const Infix infix_table[BINOP_COUNT];

/* The operator that a token is the sign of; BINOP_COUNT for any other token. */
BinOp infix_find(TokenKind kind);

/* How tightly each operand has to bind to stand without parentheses. */
Prec infix_left(BinOp op);
Prec infix_right(BinOp op);

#endif
