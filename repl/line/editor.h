/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an entry from a person: an editor of several lines on a terminal that can move its cursor, else
 * plain lines.
 *
 * The editor knows nothing of the session; what it asks goes through EditHooks. Its parts: terminal.h
 * (raw mode), keys.h (bytes to keys), buffer.h (text, undo, kills), history.h, paint.h (colours),
 * screen.h (drawing). docs/prompt.md lists the keys. */
#ifndef REPL_LINE_EDITOR_H
#define REPL_LINE_EDITOR_H

#include "base/str.h"
#include "base/vec.h"
#include "repl/line/history.h"

typedef struct Editor Editor;

typedef enum EditStatus {
    EDIT_ENTRY,  /* an entry, complete or given up by an empty line */
    EDIT_LINE,   /* plain lines only: one line of an entry */
    EDIT_PASTE,  /* a paste of several lines, with what stood around it */
    EDIT_CANCEL, /* Ctrl-C, or Ctrl-D in the middle of an entry */
    EDIT_END,    /* Ctrl-D where nothing is typed, or the end of the input */
} EditStatus;

typedef struct EditChoice {
    const char *text; /* replaces the text from EditChoices.begin to the cursor */
    const char *note; /* what it is, for a list; NULL: the hook `describe` is asked */
} EditChoice;

typedef struct EditChoices {
    size_t begin;
    VEC(EditChoice) list; /* the most fitting first */
} EditChoices;

/* Shown in grey and no part of the text. Both may be NULL. */
typedef struct EditHint {
    const char *rest; /* of the word that ends at the cursor */
    const char *note; /* about the name at the cursor */
} EditHint;

typedef struct EditHooks {
    void *ctx;
    /* Whether Enter ends the entry; else it begins another line of it. */
    bool (*is_complete)(void *ctx, const char *text, size_t len);
    /* What may stand in place of the word that ends at text[len]. */
    void (*complete)(void *ctx, const char *text, size_t len, EditChoices *out);
    /* What a choice without a note is, where it would stand at text[len]; NULL: nobody knows. */
    const char *(*describe)(void *ctx, const char *text, size_t len, const char *choice);
    void (*hint)(void *ctx, const char *text, size_t len, size_t cursor, EditHint *out);
} EditHooks;

/* colors: and hints, which nothing else sets off from the text. */
Editor *editor_new(const EditHooks *hooks, bool colors);
/* Whether it edits, or only reads plain lines. */
bool editor_is_screen(const Editor *e);

/* Replaces `entry`. more: the plain reader is in the middle of an entry. initial: what stands in the
 * editor's line to begin with. */
EditStatus editor_read(Editor *e, bool more, const char *initial, Str *entry);
/* Shows a text as if it had been entered: for what was pasted. */
void editor_echo(Editor *e, const char *text, size_t len);
/* Remembers an entry, here and in the history file. */
void editor_remember(Editor *e, const char *entry);
History *editor_history(Editor *e);
void editor_clear(Editor *e); /* the screen */

extern const char editor_prompt[], editor_prompt_more[];

#endif
