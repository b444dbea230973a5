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

/* Adds a suggestion to the first of the reader's errors in diags->list from `first` on. options: those that
 * the text was read with. expression: the text must be a single expression. */
void mend_reading(Env *env, const Source *source, const ParseOptions *options, InferMode mode,
                  bool expression, Diags *diags, size_t first);

/* ---- mend/slips.c: what might have been meant ------------------------------------------------ */

typedef struct SlipToken {
    TokenKind kind;
    Word word;
    uint32_t begin, end;
    int32_t partner; /* the token that closes or opens this bracket; -1: none */
    uint32_t depth;  /* how many brackets are around it */
    bool line;       /* it is the first of its line */
} SlipToken;

typedef struct SlipEdit {
    uint32_t begin, end;
    const char *text;
} SlipEdit;
typedef VEC(SlipEdit) SlipEdits;

typedef struct SlipText {
    const char *text; /* a part of the program */
    uint32_t len;
    VEC(SlipToken) tokens;
    size_t at;        /* the token that the reader stopped at; tokens.len: the end of the text */
    const Diag *diag; /* what the reader says there, or NULL */
} SlipText;

/* The changes to try, likelier ones first. The edits of one change do not overlap. */
typedef VEC(SlipEdits) SlipChanges;
void slips_propose(SlipText *t, SlipChanges *out);

#endif
