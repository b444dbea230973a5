/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a line from a person: libedit on a terminal that can move its cursor, else plain lines.
 *
 * Ctrl-C gives EDIT_CANCEL, Ctrl-D on an empty line EDIT_END. A bracketed paste of several lines
 * comes back whole, as EDIT_PASTE, line breaks inside; a pasted line without a break is as if typed.
 * Tab completes through the callback, Up and Down search for what stands before the cursor, Ctrl-R
 * searches backwards. */
#ifndef REPL_EDITOR_H
#define REPL_EDITOR_H

#include "base/str.h"
#include "base/vec.h"

typedef struct Editor Editor;

typedef enum EditStatus { EDIT_LINE, EDIT_PASTE, EDIT_CANCEL, EDIT_END } EditStatus;

/* Completions of the word that ends at text[len], each the whole word; *begin is where it starts. */
typedef VEC(const char *) EditWords;
typedef void (*EditComplete)(void *ctx, const char *text, size_t len, EditWords *out,
                             size_t *begin);

Editor *editor_new(EditComplete complete, void *ctx);
void editor_fini(Editor *e);

/* `line` is replaced; it has no line break at its end. */
EditStatus editor_read(Editor *e, const char *prompt, Str *line);
/* Remembers an entry, here and in the history file. */
void editor_remember(Editor *e, const char *entry);
/* Columns of the terminal that fd is, as COLUMNS or the terminal says; 0 when it is none. */
int terminal_width(int fd);

#endif
