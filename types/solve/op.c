/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an operator's entry. The table of entries itself is in ops/ops.c. */
#include "types/op.h"

#include <stdlib.h>
#include <string.h>

const char *shape_mode_words(ShapeMode mode) {
    switch (mode) {
    case SHAPE_OF_SHAPES: return "the sizes of the arguments";
    case SHAPE_OF_DATA: return "the sizes and values of the arguments";
    case SHAPE_BOUND:
        return "the sizes and values of the arguments; before it has run only a bound is known";
    }
    BUG("an unknown mode of shape functions");
}

#define OP(symbol) &op_##symbol
#define FORM NULL
#define INFIX(name, token, sign, level, side, op, tvm) [BINOP_##name] = op,
const Op *const infix_ops[BINOP_COUNT] = {
#include "parser/infix.def"
};

BinOp op_find_infix(const Op *op) {
    int i = 0;
    while (i < BINOP_COUNT && infix_ops[i] != op)
        i++;
    return (BinOp)i;
}

const char *op_subject(const Op *op) {
    BinOp infix = op_find_infix(op);
    return infix == BINOP_COUNT ? op->name : infix_table[infix].sign;
}

int op_attr_index(const Op *op, const char *name) {
    for (int i = 0; i < op->nattrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return i;
    return -1;
}

OpArg op_arg(const Op *op, int i) {
    OpArg arg = {0};
    const char *p = op->args ? op->args : "";
    for (; i > 0 && *p; i--) {
        p += strcspn(p, ",");
        p += strspn(p, ", ");
    }
    if (i < 0 || !*p)
        return arg;
    arg.tuple = *p == '(';
    p += arg.tuple;
    size_t len = strcspn(p, ",)=");
    arg.name = sym_intern_n(p, len)->text;
    arg.optional = p[len] == '=';
    if (arg.optional)
        arg.n = strtoll(p + len + 1, NULL, 10);
    return arg;
}
