/* SPDX-License-Identifier: Apache-2.0 */
/* What the editor shows, and the least that a terminal must be told to show it.
 *
 * A frame is rows of cells, built anew for every change: screen_begin, screen_add for each piece of
 * text with its style, screen_mark_cursor where the cursor belongs. screen_show compares it with the frame
 * that is on the terminal and writes the difference. The screen knows no positions of the terminal, only
 * rows relative to the first of the frame, so it asks the terminal nothing. A frame of more rows than
 * the terminal has is shown in part, around the cursor. */
#ifndef REPL_LINE_SCREEN_H
#define REPL_LINE_SCREEN_H

#include "base/str.h"
#include "base/vec.h"

/* STYLE(name, its SGR parameters): the 16 colours every terminal has. */
#define LINE_STYLES(STYLE)                                                                         \
    STYLE(PLAIN, "")                                                                               \
    STYLE(PROMPT, "1")                                                                             \
    STYLE(KEYWORD, "35")                                                                           \
    STYLE(TYPE, "36")                                                                              \
    STYLE(NUMBER, "33")                                                                            \
    STYLE(STRING, "32")                                                                            \
    STYLE(COMMENT, "90")                                                                           \
    STYLE(COMMAND, "34")                                                                           \
    STYLE(WRONG, "4;31")                                                                           \
    STYLE(MATCH, "1;4")                                                                            \
    STYLE(HINT, "90")

typedef enum Style {
#define STYLE(name, sgr) STYLE_##name,
    LINE_STYLES(STYLE)
#undef STYLE
} Style;

typedef struct Cell {
    uint32_t begin; /* in the row's text */
    uint16_t len;
    uint8_t width, style;
} Cell;

typedef struct Row {
    Str text;
    VEC(Cell) cells;
    size_t width;
} Row;

typedef struct Frame {
    VEC(Row) rows;
    size_t row, column; /* of the cursor */
} Frame;

typedef struct Screen {
    size_t columns, height; /* of the terminal */
    bool colors;
    Frame next, drawn;
    size_t first;       /* row of the whole frame that is drawn first */
    size_t row, column; /* where the terminal's cursor is, in the drawn frame */
    Style style;        /* that the terminal writes in */
} Screen;

void screen_begin(Screen *s, size_t columns, size_t height);
/* '\n' begins a row, a tab is blanks; what does not fit goes on in the next row. */
void screen_add(Screen *s, const char *text, size_t n, Style style);
void screen_mark_cursor(Screen *s);
/* The columns that are left in the row being built. */
size_t screen_room(const Screen *s);

/* Appends what makes the terminal show the frame that was built. */
void screen_show(Screen *s, Str *out);
/* Leaves what is shown: the cursor goes to the beginning of the row below, where the next frame begins. */
void screen_leave(Screen *s, Str *out);
void screen_erase(Screen *s, Str *out); /* what is shown; the next frame begins in its place */
/* The terminal's width changed, and it broke the rows it shows anew: erases them. */
void screen_resize(Screen *s, size_t columns, Str *out);
/* Nothing of the frame is on the terminal any more, and its cursor stands in a first column. */
void screen_forget(Screen *s);

#endif
