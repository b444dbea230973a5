/* SPDX-License-Identifier: Apache-2.0 */
/* The values of number and string tokens (LANGUAGE §1). */
#ifndef PARSER_LITERAL_H
#define PARSER_LITERAL_H

#include "base/diag.h"
#include "parser/ast.h"

typedef struct Number {
    bool is_float;
    const char *dtype;  /* the suffix as a dtype name, or NULL: weak */
    uint64_t magnitude; /* when !is_float */
    double f;           /* when is_float: rounded once to dtype, or to float64 when weak */
    size_t digits;      /* bytes of the text before the suffix */
    DiagCode error;     /* DIAG_NONE, R0005 (suffix: the text from `digits` on), R0006 */
} Number;

/* Reads a TOK_NUMBER, or `inf`, `nan` with a suffix. `negative`: a minus stands before it, which
 * counts towards what the dtype can represent; f is then negated, magnitude is not. */
Number literal_read_number(const char *text, size_t len, bool negative);

/* Whether a name is `inf`, `nanf`, `inff64` …, as TVM prints them. */
bool literal_is_special(const char *text, size_t len);

/* The value of a weak AST_INT or AST_FLOAT at a float dtype, rounded once from its text. */
double literal_round(const Ast *literal, const char *dtype);

/* The bytes of a TOK_STRING with its quotes. raw: a backslash is itself. On a bad escape returns
 * NULL and its place within text. The result is NUL-terminated; *len may count NULs inside. */
char *literal_read_string(const char *text, size_t n, bool raw, size_t *len, size_t *bad_at,
                          size_t *bad_len);

#endif
