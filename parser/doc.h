/* SPDX-License-Identifier: Apache-2.0 */
/* Documents for pretty printing (P. Wadler, "A prettier printer", 2003; the linear-time layout of
 * C. Lindig, "Strictly pretty", 2000). A group is printed on one line if it fits, else each of its
 * own line breaks becomes a new line. Building and layout are loops over explicit stacks. */
#ifndef PARSER_DOC_H
#define PARSER_DOC_H

#include "base/str.h"
#include "base/vec.h"

typedef struct Doc Doc;
typedef VEC(Doc *) DocVec;

Doc *doc_text(const char *text);
Doc *doc_textf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
Doc *doc_line(void); /* a blank, or a new line */
Doc *doc_soft(void); /* nothing, or a new line */
Doc *doc_hard(void); /* always a new line */
Doc *doc_cat(DocVec parts);
Doc *doc_cat2(Doc *a, Doc *b);
Doc *doc_cat3(Doc *a, Doc *b, Doc *c);
Doc *doc_nest(int indent, Doc *d);
Doc *doc_group(Doc *d);
/* open item, item close, broken one item a line with `indent`. pad: blanks inside when flat. */
Doc *doc_list(const char *open, DocVec items, const char *separator, const char *close, bool pad);
bool doc_has_hard(const Doc *d);
/* Columns when on one line; more than `limit` is enough. */
int doc_flat_width(Doc *d, int limit);
/* A group broken whatever would fit. */
Doc *doc_break(Doc *group);

void doc_print(Str *out, Doc *d, int width);

#endif
