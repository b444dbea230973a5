/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for what cannot be read: a bracket, `;` or `,` that is missing or too many, and what other
 * languages write where this one writes otherwise (`and`, `lambda x: x`, `def f(x) = x`, `# a comment`).
 *
 * As in mend.h nothing is believed: a change is suggested only when the whole text as changed reads and
 * checks. Changes are made near the first mistake, those that cost least first; where one of them
 * lets the reader get further and it then meets another mistake, that is mended in turn, and the suggestion is
 * all of these changes together. The work is drawn from the run's budget (base/budget.h). */
#ifndef TYPES_MEND_READ_H
#define TYPES_MEND_READ_H

#include "parser/lexer.h"
#include "parser/parser.h"
#include "types/infer/infer.h"

/* For the first of the reader's errors in diags->list from `first` on. options: as it was read.
 * expression: the text is to be one. */
void mend_reading(Env *env, const Source *source, const ParseOptions *options, InferMode mode,
                  bool expression, Diags *diags, size_t first);

/* ---- mend/slips.c: what might have been meant ------------------------------------------------ */

typedef struct SlipToken {
    TokenKind kind;
    Word word;
    uint32_t begin, end;
    int32_t partner; /* of a bracket, else -1 */
    uint32_t depth;  /* of brackets around it */
    bool line;       /* the first of its line */
} SlipToken;

typedef struct SlipEdit {
    uint32_t begin, end;
    const char *text;
} SlipEdit;
typedef VEC(SlipEdit) SlipEdits;

typedef struct SlipText {
    const char *text; /* from its begin to its end: a part of the program */
    uint32_t len;
    VEC(SlipToken) tokens;
    size_t at;        /* the token the reader stopped at; tokens.len: the end */
    const Diag *diag; /* what the reader says there, or NULL */
} SlipText;

/* The changes to try, each a set of edits that do not overlap, those more likely first. */
typedef VEC(SlipEdits) SlipChanges;
void slips_propose(SlipText *t, SlipChanges *out);

#endif
