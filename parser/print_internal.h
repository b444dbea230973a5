/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the canonical printer: types, expressions, items. */
#ifndef PARSER_PRINT_INTERNAL_H
#define PARSER_PRINT_INTERNAL_H

#include "base/diag.h"
#include "base/map.h"
#include "parser/doc.h"
#include "parser/infix.h"
#include "parser/print.h"

typedef struct Printer {
    const PrintOptions *options;
    const Module *module;  /* NULL: an expression or type alone */
    size_t next_comment;   /* of module->comments */
    bool versioned;        /* strings are raw */
    bool weak_floats;      /* tvm: floats without a suffix stay so */
    bool compound;         /* names that hold `.`, `/`, `::` are bound somewhere */
    bool imports;          /* names may come from elsewhere */
    bool rule;             /* in a derivative's rule, where attributes are bare names */
    NameVec bound;         /* tvm: locals in scope, innermost last */
    Map locals;            /* tvm: Symbol -> how many of them, bare and with a sigil */
    Map globals, ctors;    /* tvm: of the module: Symbol -> Item */
    Map params;            /* tvm: type parameters met so far, which are bare as sizes */
    Map plain;             /* tvm: hidden symbol -> the name that is written for it */
    bool module_versioned; /* bare names are operators and constructors already */
} Printer;

Doc *print_type(Printer *p, const AstType *t);
/* Where a `where` would be taken for another's: in lists and results, a function with one stands in
 * parentheses. */
Doc *print_inner_type(Printer *p, const AstType *t);
Doc *print_type_atom(Printer *p, const AstType *t); /* behind `Zero` */
bool print_takes_more(const Printer *p,
                      const AstType *t); /* an operator after that type joins it */
Doc *print_type_params(Printer *p, const AstTypeParamVec *params); /* [A, n: Dim], or nothing */
Doc *print_where(Printer *p, const AstConstraintVec *where);       /* ` where R(a), S(b)` */
Doc *print_attr_value(Printer *p, const AstAttrValue *v);
Doc *print_attr(Printer *p, const AstAttr *attr); /* k=v */

/* In a place whose operator binds as `prec`: parentheses where e binds looser. */
Doc *print_expr(Printer *p, const Ast *e, int prec);
/* { … }, with the statements of a chain on lines of their own. */
Doc *print_block(Printer *p, const Ast *e);
/* The same, broken when what it stands in is. */
Doc *print_open_block(Printer *p, const Ast *e);
Doc *print_pattern(Printer *p, const AstPattern *pattern);
/* (params) -> T where … { body } */
Doc *print_fn_rest(Printer *p, const AstFn *fn);
Doc *print_fn(Printer *p, const AstFn *fn);
Doc *print_if(Printer *p, const Ast *e);
Doc *print_match(Printer *p, const Ast *e);
/* let x : T = e, free_var x : T; binds x. */
Doc *print_binding(Printer *p, const char *word, const AstPattern *pattern, const Name *name,
                   const AstType *type, const Ast *value);
/* What is bound: a name, or a pattern. TVM has no such patterns, and gets the bindings that one stands for. */
Doc *print_bound(Printer *p, const AstPattern *pattern, const Name *name);
/* e without the links at its head that a pattern made, where the pattern is printed. */
const Ast *print_written(const Printer *p, const Ast *e);
static inline bool ast_is_chain(const Ast *e) {
    return e->kind == AST_LET || e->kind == AST_GRAPH_LET || e->kind == AST_FREE_VAR ||
           e->kind == AST_SEQ;
}
Doc *print_string(Printer *p, const char *text, size_t len, Span span);

/* Names. tvm: every local gets its %, every global its @; operators and constructors stay bare. */
Doc *print_name(Printer *p, const Name *name);
Sigil print_sigil(const Printer *p, const Name *name);
Doc *print_binder(Printer *p, const Name *name); /* and binds it */
Doc *print_field(const Name *name);
void print_bind_items(Printer *p, const Module *m);
bool print_is_ctor(const Printer *p, const Symbol *sym);
static inline size_t print_scope_mark(const Printer *p) { return p->bound.len; }
void print_scope_release(Printer *p, size_t mark);
/* Whether the text of the module has a parenthesis where e begins: it is kept. */
bool print_is_parenthesised(const Ast *e);

/* What lies between two pieces, the second of which begins at `at`: comments behind the first, a
 * break (`line`, or a hard one), comments on lines of their own, empty lines when `blanks`. first:
 * there is no piece before. from: where the first one ended. */
typedef struct Gap {
    uint32_t from, at;
    bool first, blanks;
} Gap;
void print_gap(Printer *p, Gap gap, Doc *line, DocVec *out);
/* Where the text of e begins, its brackets passed. */
uint32_t print_begin(const Printer *p, const Ast *e);
/* Comments up to `at`, where a bracket closes or the text ends; true if there were any. */
bool print_last_comments(Printer *p, uint32_t at, bool first, DocVec *out);
bool print_has_blank(const Printer *p, uint32_t from, uint32_t at);

/* A bracketed list whose elements may have comments between them:
 * rows_next(…); vec_push(&rows.in, element); … rows_end(…). */
typedef struct Rows {
    DocVec in;
    size_t n;
    bool pad;  /* blanks inside when on one line */
    bool fill; /* as many a line as fit */
    bool hug;  /* a last element of several lines begins on the line of the bracket */
} Rows;
void rows_next(Printer *p, Rows *rows, uint32_t begin);
/* end: where the last element ended, 0 when there is none. */
Doc *rows_end(Printer *p, Rows *rows, const char *open, const char *close, uint32_t end);

#endif
