/* SPDX-License-Identifier: Apache-2.0 */
/* The reader: bytes to a Module, or *incomplete*, or diagnostics.
 *
 * It never fails silently and never recurses over chains: `let`, `;`, graph bindings, `::` and
 * operator chains of 100,000 links read in a loop; nesting deeper than PARSE_MAX_DEPTH is a
 * diagnostic. Recovery skips to the next `;` or `}` at the level of the mistake, or the next line
 * that begins an item. */
#ifndef PARSER_PARSER_H
#define PARSER_PARSER_H

#include "base/diag.h"
#include "parser/ast.h"

enum { PARSE_MAX_DEPTH = 100000 };

typedef enum ParseStatus {
    PARSE_OK,
    PARSE_INCOMPLETE, /* the text may be continued: the prompt asks for another line */
    PARSE_FAILED,     /* diagnostics were reported; module holds what could be read */
} ParseStatus;

/* What the reader must know of names bound before this text: a name with a sigil ends at its
 * longest bound prefix, and `f[T](a)` instantiates when f is a def, constructor or operator. */
typedef enum KnownName {
    KNOWN_NOTHING,
    KNOWN_VALUE /* a let */,
    KNOWN_DEF /* def, constructor, operator */
} KnownName;
typedef struct ParseScope {
    KnownName (*find_global)(void *ctx, const Symbol *name);
    void *ctx;
} ParseScope;

typedef struct ParseOptions {
    bool prompt;             /* a complete line is an item; report PARSE_INCOMPLETE */
    const ParseScope *scope; /* may be NULL */
    size_t begin;            /* reading starts here, at the beginning of a line: a part of a text
                                whose places are those of the whole */
} ParseOptions;

ParseStatus parse_module(const Source *source, const ParseOptions *options, Diags *diags,
                         Module **module);

/* An item of a module that was read, again, from a text that begins with it: as it would be read among the
 * module's others. Reads no further; NULL after a diagnostic. */
Item *parse_item_again(const Source *source, const ParseOptions *options, const Module *module,
                       Diags *diags);

/* A type alone, for `:search` and tests. NULL after a diagnostic. */
AstType *parse_type(const Source *source, Diags *diags);

#endif
