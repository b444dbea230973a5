/* SPDX-License-Identifier: Apache-2.0 */
/* The documentation of an operator, read from its entry and its derivative rule: for `:doc`,
 * `relay doc` and docs/operators.md. */
#ifndef REPL_DOC_H
#define REPL_DOC_H

#include "parser/parser.h"
#include "types/infer/infer.h"
#include "types/op.h"

/* "add" of "+", "matmul" of "@@"; any other text is itself. */
const char *op_name_of_sign(const char *text);

/* `sum(data, axis=None, keepdims=False)`, broken at `width` with later lines indented; 0: never. */
void op_print_signature(Str *out, const Op *op, size_t width);
/* "numbers (integers and floats)", "float32, float64". */
const char *dtype_set_text(DTypeSet set);
/* The text of its derivative rule as written; NULL when there is none. */
const char *op_rule_text(Env *env, const Op *op);
/* Its type with its default attributes: a Relay type as `:type` prints it; NULL when it needs some. */
const char *op_type_text(Env *env, const Op *op);

/* width: the columns it may take. */
void op_print_doc(Str *out, Env *env, const Op *op, size_t width);

/* A text whose later lines are indented by n blanks, and which ends without a line break. */
/* The lines of a comment as paragraphs: a line break stays where the next line is empty, indented or an entry
 * of a list. */
const char *join_lines(const char *text);
void str_add_indented(Str *out, const char *text, size_t n);

/* A word of the language (`let`, `match`): how it is written, what it does, and a program with what that shows. */
typedef struct WordDoc {
    const char *word, *form, *text, *example, *result;
} WordDoc;
const WordDoc *word_doc_at(size_t i); /* NULL behind the last */
/* False: there is no such word. */
bool word_print_doc(Str *out, const char *text);

#endif
