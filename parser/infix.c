/* SPDX-License-Identifier: Apache-2.0 */
/* The table of infix operators, what is read off it, and how messages spell tokens. */
#include "parser/infix.h"

enum { LEFT = false, RIGHT = true };

const Infix infix_table[BINOP_COUNT] = {
#define INFIX(name, kind, text, level, side, operator, call)                                       \
    [BINOP_##name] = {                                                                             \
        .sign = text, .token = TOK_##kind, .prec = PREC_##level, .right = side, .tvm = call},
#include "parser/infix.def"
#undef INFIX
};

BinOp infix_find(TokenKind kind) {
    /* One more than the operator of a token; 0: none. */
    static const unsigned char after[TOKEN_COUNT] = {
#define INFIX(name, kind, ...) [TOK_##kind] = BINOP_##name + 1,
#include "parser/infix.def"
#undef INFIX
    };
    return after[kind] ? (BinOp)(after[kind] - 1) : BINOP_COUNT;
}

const char *token_kind_text(TokenKind kind) {
    static const char *const texts[TOKEN_COUNT] = {
#define TOKEN(name, text) [TOK_##name] = text,
#define MARK(name, text) [TOK_##name] = "`" text "`",
#define INFIX(name, kind, sign, ...) [TOK_##kind] = "`" sign "`",
        TOKENS(TOKEN, MARK)
#include "parser/infix.def"
#undef TOKEN
#undef MARK
#undef INFIX
    };
    return texts[kind];
}

/* The operand on the side that a chain does not lean to binds tighter. */
Prec infix_left(BinOp op) { return infix_table[op].prec + infix_table[op].right; }

/* A sign may begin what stands behind `**`: `x ** -y`. */
Prec infix_right(BinOp op) {
    if (op == BINOP_POW)
        return PREC_UNARY;
    return infix_table[op].prec + !infix_table[op].right;
}
