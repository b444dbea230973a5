/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a source with their marks and labels.
 *
 * A place that covers several lines is marked on its first and its last. A line wider than the
 * terminal (or than MAX_WIDTH) is shown by a window around its marks; text is broken at blanks, and
 * a label with too little room beside the line is listed below it. Control characters and bytes that
 * are not UTF-8 show as U+FFFD, so that a source cannot drive the terminal. Of our own there is only
 * ASCII. */
#include "base/diag_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_WIDTH = 240, /* where no width is known */
    MIN_LABEL = 24,  /* columns a label wants beside the line */
    TAB = 4,
};

static const char *const paint_codes[] = {"", "\033[1;31m", "\033[1;33m", "\033[1;36m",
                                          "\033[1;34m"};

void diag_paint(DiagPrinter *p, DiagPaint what) {
    if (p->color && what != PAINT_NONE)
        str_add(p->out, paint_codes[what]);
}

void diag_unpaint(DiagPrinter *p, DiagPaint what) {
    if (p->color && what != PAINT_NONE)
        str_add(p->out, "\033[0m");
}

void diag_add_painted(DiagPrinter *p, DiagPaint what, const char *text) {
    diag_paint(p, what);
    str_add(p->out, text);
    diag_unpaint(p, what);
}

void diag_gutter(DiagPrinter *p, uint32_t line, const char *mark) {
    const char *number = line ? fmt_text("%u", line) : "";
    diag_paint(p, PAINT_GUTTER);
    str_printf(p->out, " %*s %s", p->digits, number, mark);
    diag_unpaint(p, PAINT_GUTTER);
}

void diag_end_row(DiagPrinter *p) {
    while (p->out->len && p->out->text[p->out->len - 1] == ' ')
        p->out->text[--p->out->len] = '\0';
    str_add_char(p->out, '\n');
}

static const char *line_text(const Source *s, uint32_t line, size_t *len) {
    size_t begin = s->line_starts[line - 1];
    size_t end = line < s->nlines ? s->line_starts[line] - 1 : s->len;
    if (end > begin && s->text[end - 1] == '\r')
        end--;
    *len = end - begin;
    return s->text + begin;
}

/* The bytes of the character at p, and whether it can be shown as it is. */
static size_t next_char(const char *p, size_t n, bool *clean) {
    unsigned char c = (unsigned char)p[0];
    if (c < 0x80) {
        *clean = c >= 0x20 && c != 0x7F;
        return 1;
    }
    size_t len = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    if (len > n || !text_is_utf8(p, len, NULL)) {
        *clean = false;
        return 1;
    }
    *clean = !(c == 0xC2 && (unsigned char)p[1] < 0xA0); /* C1 controls */
    return len;
}

void diag_add_text(Str *out, const char *text, size_t n) {
    for (size_t i = 0; i < n;) {
        bool clean;
        size_t len = next_char(text + i, n - i, &clean);
        if (clean)
            str_add_n(out, text + i, len);
        else
            str_add(out, text[i] == '\t' ? " " : "\xEF\xBF\xBD");
        i += len;
    }
}

size_t diag_first_row(const char *text, size_t n, size_t room) {
    size_t width = 0, fits = 0;
    for (size_t i = 0; i < n;) {
        bool clean;
        size_t len = next_char(text + i, n - i, &clean);
        if (text[i] == ' ') {
            if (fits && width > room)
                return fits;
            fits = i;
        }
        width += clean ? text_width(text + i, len) : 1;
        i += len;
    }
    return width > room && fits ? fits : n;
}

/* Appends [from, to) of the line as shown, and sets the columns of the marks that begin there. */
static void add_shown(Str *shown, const char *text, size_t from, size_t to, size_t line_at,
                      DiagMark *marks, size_t n) {
    size_t column = text_width(str_text(shown), shown->len);
    for (size_t i = from;;) {
        for (size_t m = 0; m < n; m++) {
            if (marks[m].begin - line_at == i)
                marks[m].col = column;
            if (marks[m].end - line_at == i)
                marks[m].width = column - marks[m].col;
        }
        if (i >= to)
            break;
        bool clean;
        size_t len = next_char(text + i, to - i, &clean);
        /* A mark inside a character belongs to its beginning. */
        for (size_t m = 0; m < n; m++) {
            if (marks[m].begin - line_at > i && marks[m].begin - line_at < i + len)
                marks[m].col = column;
            if (marks[m].end - line_at > i && marks[m].end - line_at < i + len)
                marks[m].end = (uint32_t)(line_at + i + len);
        }
        if (text[i] == '\t') {
            for (int k = 0; k < TAB; k++)
                str_add_char(shown, ' ');
            column += TAB;
        } else if (clean) {
            str_add_n(shown, text + i, len);
            column += text_width(text + i, len);
        } else {
            str_add(shown, "\xEF\xBF\xBD");
            column += 1;
        }
        i += len;
    }
}

static int by_column(const void *x, const void *y) {
    const DiagMark *a = x, *b = y;
    if (a->col != b->col)
        return a->col > b->col ? -1 : 1;
    if (a->width != b->width)
        return a->width > b->width ? -1 : 1;
    return (int)b->primary - (int)a->primary;
}

static DiagPaint mark_paint(const DiagPrinter *p, const DiagMark *m) {
    return m->primary ? p->main : PAINT_GUTTER;
}

/* One row below the line: `cells` holds the index of the mark that owns each column, +1. */
static void add_cells(DiagPrinter *p, const uint16_t *cells, size_t width, const DiagMark *marks,
                      bool bars) {
    uint16_t last = 0;
    for (size_t c = 0; c < width; c++) {
        if (cells[c] != last) {
            if (last)
                diag_unpaint(p, mark_paint(p, &marks[last - 1]));
            if (cells[c])
                diag_paint(p, mark_paint(p, &marks[cells[c] - 1]));
            last = cells[c];
        }
        str_add_char(p->out, !cells[c]                     ? ' '
                             : bars                        ? '|'
                             : marks[cells[c] - 1].primary ? '^'
                                                           : '-');
    }
    if (last)
        diag_unpaint(p, mark_paint(p, &marks[last - 1]));
}

static size_t gutter_width(const DiagPrinter *p) { return (size_t)p->digits + 4; }

/* The columns from `column` of a shown line to the end of the row. */
static size_t room_from(const DiagPrinter *p, size_t column) {
    size_t used = gutter_width(p) + column;
    return p->width == SIZE_MAX ? SIZE_MAX : p->width > used ? p->width - used : 0;
}

/* Whether a label can stand at `column`, perhaps on several rows. */
static bool has_room(const DiagPrinter *p, const char *text, size_t column) {
    size_t room = room_from(p, column);
    return room >= MIN_LABEL || room >= text_width(text, strlen(text));
}

/* A label's text from column `column`, further rows of it aligned below, with the bars of the
 * marks still waiting. */
static void add_label(DiagPrinter *p, const DiagMark *m, const uint16_t *bars, size_t column,
                      const DiagMark *marks) {
    const char *text = m->text;
    for (;;) {
        size_t line = strcspn(text, "\n"), n = diag_first_row(text, line, room_from(p, column));
        diag_paint(p, mark_paint(p, m));
        diag_add_text(p->out, text, n);
        diag_unpaint(p, mark_paint(p, m));
        diag_end_row(p);
        text += n;
        if (!*text)
            return;
        text++; /* the blank or the line break */
        diag_gutter(p, 0, "| ");
        add_cells(p, bars, column, marks, true);
    }
}

/* The rows of marks and labels below a shown line. */
static void add_marks(DiagPrinter *p, DiagMark *marks, size_t n) {
    size_t width = 0;
    qsort(marks, n, sizeof *marks, by_column);
    for (size_t i = 0; i < n; i++)
        if (marks[i].col + marks[i].width > width)
            width = marks[i].col + marks[i].width;
    uint16_t *cells = mem_bytes((width + 1) * sizeof *cells);
    memset(cells, 0, (width + 1) * sizeof *cells);

    /* Narrow marks over wide ones; of equals the primary on top. */
    for (size_t i = 0; i < n; i++)
        for (size_t c = marks[i].col; c < marks[i].col + marks[i].width; c++) {
            const DiagMark *old = cells[c] ? &marks[cells[c] - 1] : NULL;
            if (!old || marks[i].width < old->width ||
                (marks[i].width == old->width && marks[i].primary))
                cells[c] = (uint16_t)(i + 1);
        }
    diag_gutter(p, 0, "| ");
    add_cells(p, cells, width, marks, false);

    size_t first = 0; /* the first label that hangs below */
    bool inside = n && marks[0].text[0] && marks[0].col + marks[0].width == width &&
                  has_room(p, marks[0].text, width + 1);
    for (size_t i = inside; i < n; i++)
        if (marks[i].text[0] && !has_room(p, marks[i].text, marks[i].col)) {
            vec_push(&p->listed, marks[i]);
            marks[i].text = "";
        }
    if (inside)
        first = 1;
    memset(cells, 0, (width + 1) * sizeof *cells);
    for (size_t i = n; i-- > first;)
        if (marks[i].text[0])
            cells[marks[i].col] = (uint16_t)(i + 1);
    if (inside) {
        str_add_char(p->out, ' ');
        add_label(p, &marks[0], cells, width + 1, marks);
    } else {
        diag_end_row(p);
    }

    bool any = false;
    for (size_t i = first; i < n; i++)
        any |= marks[i].text[0] != '\0';
    if (any) {
        diag_gutter(p, 0, "| ");
        add_cells(p, cells, width, marks, true);
        diag_end_row(p);
    }
    for (size_t i = first; i < n; i++) {
        if (!marks[i].text[0])
            continue;
        diag_gutter(p, 0, "| ");
        add_cells(p, cells, marks[i].col, marks, true);
        cells[marks[i].col] = 0;
        for (size_t k = i + 1; k < n; k++) /* another label may hang from the same column */
            if (marks[k].text[0] && marks[k].col == marks[i].col)
                cells[marks[i].col] = (uint16_t)(k + 1);
        add_label(p, &marks[i], cells, marks[i].col, marks);
    }
}

size_t diag_char_columns(const char *p, size_t n, size_t *len) {
    bool clean;
    *len = next_char(p, n, &clean);
    return *p == '\t' ? TAB : clean ? text_width(p, *len) : 1;
}

static size_t back_one(const char *text, size_t i) {
    do
        i--;
    while (i > 0 && ((unsigned char)text[i] & 0xC0) == 0x80);
    return i;
}

/* Widens [*from, *to) of a line by whole characters, as far as `room` columns go: first a part of
 * it before, then all of it behind, then what is left before. */
static void widen(const char *text, size_t len, size_t room, size_t *from, size_t *to) {
    size_t n, w, kept = room - room / 3;
    for (int side = 0; side < 3; side++) {
        size_t keep = side == 0 ? kept : 0;
        while (side == 1 ? *to < len : *from > 0) {
            size_t at = side == 1 ? *to : back_one(text, *from);
            w = diag_char_columns(text + at, len - at, &n);
            if (w + keep > room)
                break;
            room -= w;
            if (side == 1)
                *to += n;
            else
                *from = at;
        }
    }
}

/* The part of a line that is shown: all of it, or a window that holds its marks from the first on,
 * as many as there is room for. */
static void find_window(const DiagPrinter *p, const char *text, size_t len, const DiagMark *marks,
                        size_t n, size_t at, size_t *from, size_t *to) {
    enum { DOTS = 3 };
    size_t room = p->width == SIZE_MAX ? MAX_WIDTH : room_from(p, 0), columns = 0, k;
    *from = 0;
    *to = len;
    for (size_t i = 0; i < len && columns <= room; i += k)
        columns += diag_char_columns(text + i, len - i, &k);
    if (columns <= room)
        return;
    room -= 2 * DOTS;
    size_t lo = n ? marks[0].begin - at : 0, hi = lo, used = 0;
    for (size_t i = 0; i < n; i++) {
        size_t b = marks[i].begin - at, e = marks[i].end - at;
        size_t l = b < lo ? b : lo, h = e > hi ? e : hi, w = 0;
        for (size_t c = l; c < h && w <= room; c += k)
            w += diag_char_columns(text + c, len - c, &k);
        if (w > room)
            continue;
        lo = l;
        hi = h;
        used = w;
    }
    while (lo > 0 && lo < len && ((unsigned char)text[lo] & 0xC0) == 0x80)
        lo--;
    if (hi < lo)
        hi = lo;
    *from = lo;
    *to = hi;
    widen(text, len, room - used, from, to);
    size_t rest = 0; /* instead of dots, what they would stand for */
    for (size_t i = *to; i < len && rest <= DOTS; i += k)
        rest += diag_char_columns(text + i, len - i, &k);
    if (rest <= DOTS)
        *to = len;
    rest = 0;
    for (size_t i = 0; i < *from && rest <= DOTS; i += k)
        rest += diag_char_columns(text + i, len - i, &k);
    if (rest <= DOTS)
        *from = 0;
}

/* Shows one line with its marks. All marks are of this line; those outside of the window that is
 * shown get one of their own. */
static void add_line(DiagPrinter *p, DiagMark *marks, size_t n) {
    const Source *s = marks[0].source;
    size_t len;
    const char *text = line_text(s, marks[0].line, &len);
    size_t at = (size_t)(text - s->text);
    while (n) {
        size_t from, to, taken = 0;
        Str shown = {0};
        find_window(p, text, len, marks, n, at, &from, &to);
        for (size_t i = 0; i < n; i++) /* partition: those in the window first */
            if (marks[i].begin - at >= from && marks[i].begin - at <= to) {
                DiagMark m = marks[i];
                memmove(&marks[taken + 1], &marks[taken], (i - taken) * sizeof m);
                marks[taken++] = m;
            }
        if (from)
            str_add(&shown, "...");
        for (size_t i = 0; i < taken; i++) {
            if (marks[i].end > at + to)
                marks[i].end = (uint32_t)(at + to);
            if (marks[i].end < marks[i].begin)
                marks[i].end = marks[i].begin;
        }
        add_shown(&shown, text, from, to, at, marks, taken);
        for (size_t i = 0; i < taken; i++)
            if (marks[i].width == 0)
                marks[i].width = 1;
        if (to < len)
            str_add(&shown, "...");
        diag_gutter(p, marks[0].line, "| ");
        str_add_n(p->out, str_text(&shown), shown.len);
        diag_end_row(p);
        add_marks(p, marks, taken);
        marks += taken;
        n -= taken;
    }
}

static void add_plain_line(DiagPrinter *p, const Source *s, uint32_t line) {
    size_t len, from, to;
    const char *text = line_text(s, line, &len);
    Str shown = {0};
    find_window(p, text, len, NULL, 0, 0, &from, &to);
    add_shown(&shown, text, 0, to, 0, NULL, 0);
    if (to < len)
        str_add(&shown, "...");
    diag_gutter(p, line, "| ");
    str_add_n(p->out, str_text(&shown), shown.len);
    diag_end_row(p);
}

static int by_line(const void *x, const void *y) {
    const DiagMark *a = x, *b = y;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (int)b->primary - (int)a->primary;
}

void diag_add_source(DiagPrinter *p, DiagMark *marks, size_t n) {
    qsort(marks, n, sizeof *marks, by_line);
    uint32_t last = 0;
    for (size_t i = 0; i < n;) {
        size_t k = i + 1;
        while (k < n && marks[k].line == marks[i].line)
            k++;
        uint32_t line = marks[i].line;
        if (last && line == last + 2) {
            add_plain_line(p, marks[i].source, last + 1);
        } else if (last && line > last + 2) {
            diag_add_painted(p, PAINT_GUTTER, "...");
            diag_end_row(p);
        }
        add_line(p, &marks[i], k - i);
        last = line;
        i = k;
    }
}

DiagMark diag_make_mark(DiagLabel label, bool primary) {
    const Source *s = label.span.source;
    uint32_t line, column;
    span_locate(label.span, &line, &column);
    DiagMark m = {.source = s,
                  .text = label.text ? label.text : "",
                  .line = line,
                  .primary = primary,
                  .heads = label.role == DIAG_ROLE_HEADING};
    size_t len, at;
    at = (size_t)(line_text(s, line, &len) - s->text);
    m.begin = label.span.begin > at + len ? (uint32_t)(at + len) : label.span.begin;
    m.end = label.span.end;
    if (m.end > at + len) { /* clipped to its first line, without the blanks at its end */
        m.end = (uint32_t)(at + len);
        while (m.end > m.begin + 1 && (s->text[m.end - 1] == ' ' || s->text[m.end - 1] == '\t'))
            m.end--;
    }
    if (m.end < m.begin)
        m.end = m.begin;
    m.whole = m.end;
    return m;
}

bool diag_make_end_mark(const DiagMark *first, Span span, DiagMark *out) {
    const Source *s = first->source;
    Span last = {s, span.end - (span.end > span.begin), span.end};
    uint32_t line, column;
    size_t len;
    span_locate(last, &line, &column);
    if (line <= first->line)
        return false;
    const char *text = line_text(s, line, &len);
    uint32_t begin = (uint32_t)(text - s->text),
             end = span.end < begin + len ? span.end : begin + (uint32_t)len;
    while (begin < end && (s->text[begin] == ' ' || s->text[begin] == '\t'))
        begin++;
    while (end > begin && (s->text[end - 1] == ' ' || s->text[end - 1] == '\t'))
        end--;
    *out = (DiagMark){.source = s,
                      .text = "",
                      .line = line,
                      .begin = begin,
                      .end = end,
                      .primary = first->primary};
    return end > begin;
}
