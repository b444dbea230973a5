/* SPDX-License-Identifier: Apache-2.0 */
/* The editor's state, shared by its files: editor.c (reading and pastes), editor_keys.c (what keys do),
 * editor_walk.c (the way through the history), editor_view.c (what is shown). */
#ifndef REPL_LINE_EDITOR_INTERNAL_H
#define REPL_LINE_EDITOR_INTERNAL_H

#include "repl/line/buffer.h"
#include "repl/line/editor.h"
#include "repl/line/keys.h"
#include "repl/line/screen.h"

struct Editor {
    EditHooks hooks;
    bool on_screen; /* false: plain lines */
    Buffer buffer;
    Screen screen;
    KeyReader keys;
    History history;
    char input[1 << 16]; /* bytes read, of which `used` were fed to `keys` */
    size_t ninput, used;
    Str paste;

    EditHint hint;
    EditChoices choices; /* of the list that is shown */
    size_t list_from;    /* its first choice on the screen */
    bool listing;
    size_t auto_indent; /* how many blanks before the cursor nobody typed */
    size_t auto_line;   /* how many lines were begun so */

    /* A walk through the history: by arrows, through entries that begin as what was typed; by Ctrl-R
     * (searching), through those that hold the query. */
    bool walking, searching;
    size_t place;         /* in the history's items */
    const char *original; /* the text when the walk began, to come back to */
    size_t original_cursor;
    Str query;
};

/* editor_keys.c: what a key asks for, beside its change of the buffer. */
typedef enum Outcome {
    OUTCOME_NONE,
    OUTCOME_ENTRY,
    OUTCOME_CANCEL,
    OUTCOME_END,
    OUTCOME_SUSPEND,
    OUTCOME_CLEAR,
    OUTCOME_PASTE
} Outcome;
Outcome editor_press(Editor *e, const Key *key);

/* editor_walk.c */
void walk_to_entry(Editor *e, Direction d); /* Up and Down */
void walk_begin_search(Editor *e);
/* A key while a search goes on. False: the search has ended, and the key is an ordinary one. */
bool walk_press(Editor *e, const Key *key);
void walk_end(Editor *e);

/* editor_view.c */
void view_draw(Editor *e, bool plain);        /* plain: without hints and lists, as it stays */
void view_leave(Editor *e, const char *mark); /* the entry as it stays, and the cursor below it */
size_t view_list_rows(const Editor *e);

#endif
