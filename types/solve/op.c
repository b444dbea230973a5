/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator's entry says, read from it. The table of entries itself is ops/ops.c's. */
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

const char *op_subject(const Op *op) {
    static const char *const infix[][2] = {
        {"add", "+"},    {"subtract", "-"},    {"multiply", "*"}, {"divide", "/"},
        {"power", "**"}, {"matmul", "@@"},     {"equal", "=="},   {"not_equal", "!="},
        {"less", "<"},   {"less_equal", "<="}, {"greater", ">"},  {"greater_equal", ">="},
    };
    for (size_t i = 0; i < sizeof infix / sizeof *infix; i++)
        if (strcmp(op->name, infix[i][0]) == 0)
            return infix[i][1];
    return op->name;
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
    arg.name = fmt_text("%.*s", (int)len, p);
    arg.optional = p[len] == '=';
    if (arg.optional)
        arg.n = strtoll(p + len + 1, NULL, 10);
    return arg;
}
