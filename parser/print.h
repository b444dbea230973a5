/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of syntax: `relay fmt`. parse(print(m)) equals m up to spans, and printing
 * that again gives the same text. Comments are kept. */
#ifndef PARSER_PRINT_H
#define PARSER_PRINT_H

#include "base/diag.h"
#include "base/str.h"
#include "parser/ast.h"

typedef enum BareName { BARE_NOTHING, BARE_CTOR, BARE_OPERATOR, BARE_GLOBAL } BareName;

typedef struct PrintOptions {
    bool tvm;  /* sigils and TVM's layout; metadata section for tensor constants */
    int width; /* columns to fit, 0 = 100 */
    /* tvm: what a bare name that the text does not bind means: a global gets its `@`. NULL: nothing
     * is known. */
    BareName (*find_bare)(void *ctx, const Symbol *name);
    /* tvm: whether the operator has an argument of that name. NULL: nothing is known. */
    bool (*has_operand)(void *ctx, const Symbol *op, const Symbol *name);
    void *ctx;
    Diags *diags; /* tvm: what has no form there is reported here; may be NULL */
} PrintOptions;

void ast_print_module(Str *out, const Module *module, const PrintOptions *options);

/* Structural equality up to spans and comments. */
bool ast_module_equal(const Module *a, const Module *b);

#endif
