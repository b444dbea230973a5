/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the canonical printer: types, expressions, items. */
#ifndef PARSER_PRINT_INTERNAL_H
#define PARSER_PRINT_INTERNAL_H

#include "base/diag.h"
#include "base/map.h"
#include "parser/doc.h"
#include "parser/print.h"

typedef struct Printer {
    const PrintOptions *options;
    const Module *module;  /* NULL: an expression or type alone */
    size_t next_comment;   /* of module->comments */
    bool versioned;        /* strings are raw */
    Map locals, globals;   /* tvm: names bound so far: Symbol -> itself */
} Printer;

/* Precedence, loosest first, as LANGUAGE §3 lists them from the other end. */
enum {
    PREC_SEQ, PREC_ASSIGN, PREC_PIPE, PREC_COMPOSE, PREC_OR, PREC_AND, PREC_EQUAL, PREC_COMPARE,
    PREC_CONS, PREC_ADD, PREC_MUL, PREC_UNARY, PREC_POWER, PREC_BANG, PREC_CALL, PREC_ATOM,
};

Doc *print_type(Printer *p, const AstType *t);
Doc *print_type_params(Printer *p, const AstTypeParamVec *params); /* [A, n: Dim], or nothing */
Doc *print_where(Printer *p, const AstConstraintVec *where);       /* ` where R(a), S(b)` */
Doc *print_attr_value(Printer *p, const AstAttrValue *v);
void print_attrs(Printer *p, const AstAttrVec *attrs, DocVec *out); /* one `k=v` each */

/* In a place whose operator binds as `prec`: parentheses where e binds looser. */
Doc *print_expr(Printer *p, const Ast *e, int prec);
/* { … }, with the statements of a chain on lines of their own. end: where its source ends, for
 * comments before the closing brace. */
Doc *print_block(Printer *p, const Ast *e);
Doc *print_pattern(Printer *p, const AstPattern *pattern);
/* (params) -> T where … { body } */
Doc *print_fn_rest(Printer *p, const AstFn *fn);
Doc *print_name(Printer *p, const Name *name, bool binding);
Doc *print_string(Printer *p, const char *text, size_t len);

/* Comments that begin before byte `at` of the module's source, each on a line of its own. Those on
 * the line of the statement before go to `trailing`. */
void print_comments(Printer *p, uint32_t at, DocVec *own, DocVec *trailing);
bool print_blank_before(const Printer *p, uint32_t from, uint32_t at);

void print_metadata(Str *out, const Module *m);

#endif
