/* SPDX-License-Identifier: Apache-2.0 */
/* The text that is being edited: lines separated by '\n', a cursor, undo, and a kill ring that outlives
 * the text.
 *
 * Invariants, which tests/unit/test_line.c holds it to under random keys: the text is UTF-8, the cursor
 * stands between two characters as a reader sees them, and undoing everything gives the text that
 * buffer_set made. Positions are bytes. */
#ifndef REPL_LINE_BUFFER_H
#define REPL_LINE_BUFFER_H

#include "base/str.h"
#include "base/vec.h"

/* A change: at `at`, the text `removed` became `added`. */
typedef struct Change {
    size_t at, cursor; /* cursor: where it stood before */
    const char *removed, *added;
    size_t nremoved, nadded;
    bool typed; /* one character after the other: undone together */
} Change;

enum { KILL_RING = 16 };

typedef struct Buffer {
    Str text;
    size_t cursor;
    VEC(Change) changes;
    size_t done; /* of the changes; those after were undone */
    const char *kills[KILL_RING];
    size_t nkills, yanked; /* yanked: which kill the last yank took, from the newest */
    size_t yank_begin, yank_end;
    bool joins_kill; /* the last command killed: the next kill adds to it */
    bool was_yank;
} Buffer;

typedef enum Direction { BACKWARD, FORWARD } Direction;

/* Forgets the changes. */
void buffer_set(Buffer *b, const char *text, size_t n);
void buffer_set_cursor(Buffer *b, size_t at);
/* Puts the cursor behind the text. What is no UTF-8 of it, and control characters, are left out. */
void buffer_insert(Buffer *b, const char *text, size_t n);
/* As one change. */
void buffer_replace(Buffer *b, size_t begin, size_t end, const char *text, size_t n);
bool buffer_undo(Buffer *b);
bool buffer_redo(Buffer *b);

/* The position a step from `at`: one character, one word. */
size_t buffer_find_char(const Buffer *b, size_t at, Direction d);
size_t buffer_find_word(const Buffer *b, size_t at, Direction d);
/* The line that holds a position. */
size_t buffer_line_begin(const Buffer *b, size_t at);
size_t buffer_line_end(const Buffer *b, size_t at);
/* Moves the cursor to the line above or below, at the same column of it; false: there is none. */
bool buffer_move_line(Buffer *b, Direction d);

/* Removes a range into the kill ring. Kills that follow one another are one. */
void buffer_kill(Buffer *b, size_t begin, size_t end);
void buffer_yank(Buffer *b);
void buffer_yank_older(Buffer *b); /* right after a yank: the kill before it instead */
/* Every command but a kill or a yank calls it: chains of those end. */
void buffer_end_chain(Buffer *b);

void buffer_exchange_chars(Buffer *b); /* the two around the cursor */

#endif
