/* SPDX-License-Identifier: Apache-2.0 */
/* Completion at the prompt: what may stand at a place, found from the tokens before it. Nothing runs. */
#ifndef REPL_COMPLETE_H
#define REPL_COMPLETE_H

#include "repl/session.h"

typedef struct Completion {
    const char *text; /* the whole word, from Completions.begin on */
    const char *note; /* "an integer or None"; NULL: complete_describe may know */
} Completion;

typedef struct Completions {
    size_t begin;
    VEC(Completion) list; /* the most fitting first */
} Completions;

/* Of the word that ends at text[len]. Files stand in strings and after `:load`, modules after `import`,
 * fields after a value's dot, members after a module's, attributes and their values in the call of an operator,
 * constructors where a pattern begins, types where a type stands, commands after `:`; names elsewhere. */
void complete_text(Session *s, const char *text, size_t len, Completions *out);

/* The type of a name, or the arguments of an operator; NULL when it is neither. */
const char *complete_describe(Session *s, const char *name);
/* About the name that the cursor is in or behind, or the operator whose arguments it is in; or NULL. */
const char *complete_hint(Session *s, const char *text, size_t len, size_t cursor);

#endif
