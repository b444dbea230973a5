/* SPDX-License-Identifier: Apache-2.0 */
/* How tightly a form binds, loosest first, as LANGUAGE §3 lists them from the other end: what both
 * printers, of syntax and of the core, put parentheses by. */
#ifndef PARSER_PRECEDENCE_H
#define PARSER_PRECEDENCE_H

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

#endif
