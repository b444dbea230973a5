/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are ended with CR LF and never by writing past the last column, of which terminals have different
 * ideas; after the last column is written, the cursor is moved from the row's beginning. */
#include "repl/line/screen.h"

#include <string.h>

static const char *const sgr_texts[] = {
#define STYLE(name, sgr) sgr,
    LINE_STYLES(STYLE)
#undef STYLE
};

/* ---- building -------------------------------------------------------------------------------- */

enum { MIN_COLUMNS = 2, TAB_COLUMNS = 4 };

static Row *begin_row(Screen *s) {
    Row row = {0};
    vec_push(&s->next.rows, row);
    return &vec_last(&s->next.rows);
}

void screen_begin(Screen *s, size_t columns, size_t height) {
    s->columns = columns > MIN_COLUMNS ? columns : MIN_COLUMNS;
    s->height = height ? height : 1;
    s->next = (Frame){0};
    begin_row(s);
}

static void add_cell(Screen *s, const char *text, size_t len, size_t width, Style style) {
    Row *row = &vec_last(&s->next.rows);
    if (row->width + width > s->columns)
        row = begin_row(s);
    Cell cell = {(uint32_t)row->text.len, (uint16_t)len, (uint8_t)width, (uint8_t)style};
    str_add_n(&row->text, text, len);
    vec_push(&row->cells, cell);
    row->width += width;
}

void screen_add(Screen *s, const char *text, size_t n, Style style) {
    enum { MAX_CLUSTER = 64 };
    for (size_t i = 0, len, width; i < n; i += len) {
        len = text_first_cluster(text + i, n - i, &width);
        if (text[i] == '\n') {
            begin_row(s);
        } else if (text[i] == '\t') {
            do
                add_cell(s, " ", 1, 1, style);
            while (vec_last(&s->next.rows).width % TAB_COLUMNS);
        } else if (width == 0 || width > MIN_COLUMNS || len > MAX_CLUSTER) {
            /* A mark without its letter, or more of them than a terminal draws in one place. */
            add_cell(s, width ? "#" : "?", 1, 1, style);
        } else {
            add_cell(s, text + i, len, width, style);
        }
    }
}

void screen_mark_cursor(Screen *s) {
    if (vec_last(&s->next.rows).width >= s->columns)
        begin_row(s);
    s->next.row = s->next.rows.len - 1;
    s->next.column = vec_last(&s->next.rows).width;
}

size_t screen_room(const Screen *s) { return s->columns - vec_last(&s->next.rows).width; }

/* Keeps of the new frame the rows that the terminal has room for, with the cursor's among them. */
static void choose_rows(Screen *s) {
    Frame *f = &s->next;
    if (f->rows.len <= s->height) {
        s->first = 0;
        return;
    }
    if (s->first > f->rows.len - s->height)
        s->first = f->rows.len - s->height;
    if (f->row < s->first)
        s->first = f->row;
    if (f->row >= s->first + s->height)
        s->first = f->row + 1 - s->height;
    f->rows.data += s->first;
    f->rows.len = s->height;
    f->rows.cap = 0;
    f->row -= s->first;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void set_style(Screen *s, Style style, Str *out) {
    if (!s->colors || style == s->style)
        return;
    if (s->style != STYLE_PLAIN || style == STYLE_PLAIN)
        str_add(out, "\033[0m");
    if (style != STYLE_PLAIN)
        str_printf(out, "\033[%sm", sgr_texts[style]);
    s->style = style;
}

static void move_to(Screen *s, size_t row, size_t column, Str *out) {
    if (row < s->row)
        str_printf(out, "\033[%zuA", s->row - row);
    else if (row > s->row)
        str_printf(out, "\033[%zuB", row - s->row);
    if (column == 0 || s->column >= s->columns) {
        str_add_char(out, '\r');
        s->column = 0;
    }
    if (column > s->column)
        str_printf(out, "\033[%zuC", column - s->column);
    else if (column < s->column)
        str_printf(out, "\033[%zuD", s->column - column);
    s->row = row;
    s->column = column;
}

static bool same_cell(const Row *a, const Cell *x, const Row *b, const Cell *y, bool colors) {
    return x->len == y->len && (x->style == y->style || !colors) &&
           memcmp(a->text.text + x->begin, b->text.text + y->begin, x->len) == 0;
}

/* Turns row i of the terminal, which shows `old`, into `row`. */
static void draw_row(Screen *s, size_t i, const Row *old, const Row *row, Str *out) {
    size_t same = 0, column = 0, last = row->cells.len;
    while (same < row->cells.len && same < old->cells.len &&
           same_cell(old, &old->cells.data[same], row, &row->cells.data[same], s->colors))
        column += row->cells.data[same++].width;
    if (same == row->cells.len && same == old->cells.len)
        return;
    if (old->width == row->width && old->cells.len == row->cells.len)
        while (last > same &&
               same_cell(old, &old->cells.data[last - 1], row, &row->cells.data[last - 1],
                         s->colors) &&
               old->cells.data[last - 1].width == 1)
            last--;
    if (same < last)
        move_to(s, i, column, out);
    for (size_t k = same; k < last; k++) {
        const Cell *c = &row->cells.data[k];
        set_style(s, c->style, out);
        str_add_n(out, row->text.text + c->begin, c->len);
        s->column += c->width;
    }
    if (row->width < old->width) {
        set_style(s, STYLE_PLAIN, out);
        move_to(s, i, row->width, out);
        str_add(out, "\033[K");
    }
}

void screen_show(Screen *s, Str *out) {
    choose_rows(s);
    size_t nrows = s->next.rows.len, shown = s->drawn.rows.len;
    if (nrows < shown) {
        move_to(s, nrows, 0, out);
        str_add(out, "\033[J");
    }
    static const Row empty;
    for (size_t i = 0; i < nrows; i++) {
        if (i > 0 && i >= shown) {
            move_to(s, i - 1, s->row == i - 1 && s->column < s->columns ? s->column : 0, out);
            str_add(out, "\r\n");
            s->row = i;
            s->column = 0;
        }
        draw_row(s, i, i < shown ? &s->drawn.rows.data[i] : &empty, &s->next.rows.data[i], out);
    }
    set_style(s, STYLE_PLAIN, out);
    if (s->row != s->next.row || s->column != s->next.column)
        move_to(s, s->next.row, s->next.column, out);
    s->drawn = s->next;
    s->next = (Frame){0};
}

void screen_leave(Screen *s, Str *out) {
    if (s->drawn.rows.len)
        move_to(s, s->drawn.rows.len - 1, 0, out);
    str_add(out, "\r\n");
    screen_forget(s);
}

void screen_erase(Screen *s, Str *out) {
    move_to(s, 0, 0, out);
    str_add(out, "\033[J");
    screen_forget(s);
}

void screen_resize(Screen *s, size_t columns, Str *out) {
    size_t above = 0;
    columns = columns > MIN_COLUMNS ? columns : MIN_COLUMNS;
    for (size_t i = 0; i < s->row && i < s->drawn.rows.len; i++) {
        size_t width = s->drawn.rows.data[i].width;
        above += width > columns ? (width + columns - 1) / columns : 1;
    }
    if (s->column)
        above += (s->column < s->columns ? s->column : s->columns - 1) / columns;
    if (above)
        str_printf(out, "\033[%zuA", above);
    str_add(out, "\r\033[J");
    screen_forget(s);
}

void screen_forget(Screen *s) {
    s->drawn = (Frame){0};
    s->row = s->column = s->first = 0;
    s->style = STYLE_PLAIN;
}
