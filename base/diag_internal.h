/* SPDX-License-Identifier: Apache-2.0 */
/* The full style at work: what diag_print.c (the message around) and diag_excerpt.c (the lines of the
 * source with their marks) share. Private to both. */
#ifndef BASE_DIAG_INTERNAL_H
#define BASE_DIAG_INTERNAL_H

#include "base/diag.h"

typedef enum DiagPaint {
    PAINT_NONE,
    PAINT_ERROR,
    PAINT_WARNING,
    PAINT_NOTE,
    PAINT_GUTTER,
} DiagPaint;

typedef struct DiagMark {
    const Source *source;
    const char *text;
    uint32_t line; /* from 1 */
    uint32_t begin, end;
    uint32_t whole; /* its end before a narrow row cut it */
    bool primary, heads;
    size_t col, width; /* within the shown line, in display columns */
} DiagMark;

typedef struct DiagPrinter {
    Str *out;
    bool color;
    size_t width;         /* of a row; SIZE_MAX: rows are not broken */
    int digits;           /* of the largest line number shown */
    DiagPaint main;       /* of the header and the primary marks */
    VEC(DiagMark) listed; /* labels that did not fit beside their lines */
} DiagPrinter;

void diag_paint(DiagPrinter *p, DiagPaint what);
void diag_unpaint(DiagPrinter *p, DiagPaint what);
void diag_add_painted(DiagPrinter *p, DiagPaint what, const char *text);
/* ` 12 | `: the number (0: none) right-aligned, and what stands behind it. */
void diag_gutter(DiagPrinter *p, uint32_t line, const char *mark);
void diag_end_row(DiagPrinter *p); /* drops blanks at the end */
/* Text of a message: what cannot be shown becomes U+FFFD. */
void diag_add_text(Str *out, const char *text, size_t n);
/* The bytes of text's first row when `room` columns are left: up to the last blank that fits, or to
 * the first one where no word does. */
size_t diag_first_row(const char *text, size_t n, size_t room);
size_t diag_char_columns(const char *p, size_t n, size_t *len); /* as shown; *len: its bytes */

/* On the first line of the place; clipped to it. */
DiagMark diag_make_mark(DiagLabel label, bool primary);
/* The mark of the last line of a place of several, or false. */
bool diag_make_end_mark(const DiagMark *first, Span span, DiagMark *out);
/* All marks of one source: its lines in order, a line between two shown too, more left out. */
void diag_add_source(DiagPrinter *p, DiagMark *marks, size_t n);

#endif
