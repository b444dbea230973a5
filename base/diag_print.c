/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics with the user's own lines, after rustc's: each line that has marks is shown once,
 * `^` under the primary place and `-` under secondary ones, the rightmost label behind its mark,
 * the others hanging below on `|`.
 *
 *     error[R0312]: these shapes do not broadcast
 *       --> train.rly:4:13
 *        |
 *      4 |   let h = x + w;
 *        |           - ^ - Tensor[(4,), float32]
 *        |           |
 *        |           Tensor[(3,), float32]
 *        = axis 0 is 3 on the left and 4 on the right
 *
 * A place that covers several lines is marked on its first. Of a line wider than MAX_WIDTH only a
 * window around the place is read and shown. Control characters and bytes that are not UTF-8 show
 * as U+FFFD, so that a source cannot drive the terminal. */
#include "base/diag.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WIDTH = 240, WINDOW_BEFORE = 60, WINDOW_AFTER = 100, TAB = 4, MAX_SHOWN = 5 };

typedef enum Paint { PAINT_NONE, PAINT_ERROR, PAINT_WARNING, PAINT_NOTE, PAINT_GUTTER } Paint;

static const char *const paint_codes[] = {"", "\033[1;31m", "\033[1;33m", "\033[1;36m",
                                          "\033[1;34m"};

typedef struct Mark {
    const Source *source;
    const char *text;
    uint32_t line; /* from 1 */
    uint32_t begin, end;
    bool primary;
    size_t col, width; /* within the shown line, in display columns */
} Mark;

typedef struct Printer {
    Str *out;
    bool color;
    int digits; /* of the largest line number shown */
    Paint main; /* of the header and the primary marks */
} Printer;

static void paint(Printer *p, Paint what) {
    if (p->color && what != PAINT_NONE)
        str_add(p->out, paint_codes[what]);
}

static void unpaint(Printer *p, Paint what) {
    if (p->color && what != PAINT_NONE)
        str_add(p->out, "\033[0m");
}

static void add_painted(Printer *p, Paint what, const char *text) {
    paint(p, what);
    str_add(p->out, text);
    unpaint(p, what);
}

static void gutter(Printer *p, uint32_t line, const char *mark) {
    const char *number = line ? fmt_text("%u", line) : "";
    paint(p, PAINT_GUTTER);
    str_printf(p->out, " %*s %s", p->digits, number, mark);
    unpaint(p, PAINT_GUTTER);
}

static void end_row(Printer *p) {
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

/* Appends [from, to) of the line as shown, and sets the columns of the marks that begin there. */
static void add_shown(Str *shown, const char *text, size_t from, size_t to, size_t line_at,
                      Mark *marks, size_t n) {
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
    const Mark *a = x, *b = y;
    if (a->col != b->col)
        return a->col > b->col ? -1 : 1;
    if (a->width != b->width)
        return a->width > b->width ? -1 : 1;
    return (int)b->primary - (int)a->primary;
}

static Paint mark_paint(const Printer *p, const Mark *m) {
    return m->primary ? p->main : PAINT_GUTTER;
}

/* One row below the line: `cells` holds the index of the mark that owns each column, +1. */
static void add_cells(Printer *p, const uint16_t *cells, size_t width, const Mark *marks,
                      bool bars) {
    uint16_t last = 0;
    for (size_t c = 0; c < width; c++) {
        if (cells[c] != last) {
            if (last)
                unpaint(p, mark_paint(p, &marks[last - 1]));
            if (cells[c])
                paint(p, mark_paint(p, &marks[cells[c] - 1]));
            last = cells[c];
        }
        str_add_char(p->out, !cells[c] ? ' ' : bars ? '|' : marks[cells[c] - 1].primary ? '^' : '-');
    }
    if (last)
        unpaint(p, mark_paint(p, &marks[last - 1]));
}

/* A label's text from column `column`, further lines of it aligned below, with the bars of the
 * marks still waiting. */
static void add_label(Printer *p, const Mark *m, const uint16_t *bars, size_t column,
                      const Mark *marks) {
    const char *text = m->text;
    for (;;) {
        size_t n = strcspn(text, "\n");
        paint(p, mark_paint(p, m));
        str_add_n(p->out, text, n);
        unpaint(p, mark_paint(p, m));
        end_row(p);
        if (!text[n])
            return;
        text += n + 1;
        gutter(p, 0, "| ");
        add_cells(p, bars, column, marks, true);
    }
}

/* The rows of marks and labels below a shown line. */
static void add_marks(Printer *p, Mark *marks, size_t n) {
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
            const Mark *old = cells[c] ? &marks[cells[c] - 1] : NULL;
            if (!old || marks[i].width < old->width ||
                (marks[i].width == old->width && marks[i].primary))
                cells[c] = (uint16_t)(i + 1);
        }
    gutter(p, 0, "| ");
    add_cells(p, cells, width, marks, false);

    size_t first = 0; /* the first label that hangs below */
    bool inside = n && marks[0].text[0] && marks[0].col + marks[0].width == width;
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
        end_row(p);
    }

    bool any = false;
    for (size_t i = first; i < n; i++)
        any |= marks[i].text[0] != '\0';
    if (any) {
        gutter(p, 0, "| ");
        add_cells(p, cells, width, marks, true);
        end_row(p);
    }
    for (size_t i = first; i < n; i++) {
        if (!marks[i].text[0])
            continue;
        gutter(p, 0, "| ");
        add_cells(p, cells, marks[i].col, marks, true);
        cells[marks[i].col] = 0;
        for (size_t k = i + 1; k < n; k++) /* another label may hang from the same column */
            if (marks[k].text[0] && marks[k].col == marks[i].col)
                cells[marks[i].col] = (uint16_t)(k + 1);
        add_label(p, &marks[i], cells, marks[i].col, marks);
    }
}

/* Shows one line with its marks. All marks are of this line; of a very long line, those near the
 * first are shown, and the line again for the others. */
static void add_line(Printer *p, Mark *marks, size_t n) {
    const Source *s = marks[0].source;
    size_t len;
    const char *text = line_text(s, marks[0].line, &len);
    size_t at = (size_t)(text - s->text);
    while (n) {
        size_t from = 0, to = len, taken = n;
        Str shown = {0};
        if (len > MAX_WIDTH) {
            size_t begin = marks[0].begin - at;
            from = begin > WINDOW_BEFORE ? begin - WINDOW_BEFORE : 0;
            to = len - from > WINDOW_BEFORE + WINDOW_AFTER ? from + WINDOW_BEFORE + WINDOW_AFTER
                                                           : len;
            while (from > 0 && ((unsigned char)text[from] & 0xC0) == 0x80)
                from--;
            while (to < len && ((unsigned char)text[to] & 0xC0) == 0x80)
                to++;
            taken = 0;
            for (size_t i = 0; i < n; i++) /* partition: those in the window first */
                if (marks[i].begin - at >= from && marks[i].begin - at <= to) {
                    Mark m = marks[i];
                    memmove(&marks[taken + 1], &marks[taken], (i - taken) * sizeof m);
                    marks[taken++] = m;
                }
            if (from)
                str_add(&shown, "...");
        }
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
        gutter(p, marks[0].line, "| ");
        str_add_n(p->out, shown.text, shown.len);
        end_row(p);
        add_marks(p, marks, taken);
        marks += taken;
        n -= taken;
    }
}

static void add_plain_line(Printer *p, const Source *s, uint32_t line) {
    size_t len;
    const char *text = line_text(s, line, &len);
    Str shown = {0};
    size_t to = len > MAX_WIDTH ? MAX_WIDTH : len;
    while (to < len && ((unsigned char)text[to] & 0xC0) == 0x80)
        to++;
    add_shown(&shown, text, 0, to, 0, NULL, 0);
    if (to < len)
        str_add(&shown, "...");
    gutter(p, line, "| ");
    str_add_n(p->out, str_text(&shown), shown.len);
    end_row(p);
}

static int by_line(const void *x, const void *y) {
    const Mark *a = x, *b = y;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (int)b->primary - (int)a->primary;
}

/* All marks of one source: its lines in order, a line between two shown too, more left out. */
static void add_source(Printer *p, Mark *marks, size_t n) {
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
            add_painted(p, PAINT_GUTTER, "...");
            end_row(p);
        }
        add_line(p, &marks[i], k - i);
        last = line;
        i = k;
    }
}

static Mark make_mark(DiagLabel label, bool primary) {
    const Source *s = label.span.source;
    uint32_t line, column;
    span_locate(label.span, &line, &column);
    Mark m = {.source = s, .text = label.text ? label.text : "", .line = line, .primary = primary};
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
    return m;
}

static void add_place(Printer *p, const char *arrow, Span span) {
    uint32_t line, column;
    span_locate(span, &line, &column);
    str_printf(p->out, " %*s", p->digits, "");
    add_painted(p, PAINT_GUTTER, arrow);
    str_printf(p->out, " %s:%u:%u", span.source->name, line, column);
    end_row(p);
    gutter(p, 0, "|");
    end_row(p);
}

/* `= head text`, further lines of the text below its beginning. */
static void add_note(Printer *p, const char *head, const char *text) {
    for (bool first = true;; first = false) {
        size_t n = strcspn(text, "\n");
        str_printf(p->out, " %*s ", p->digits, "");
        add_painted(p, first ? PAINT_GUTTER : PAINT_NONE, first ? "= " : "  ");
        if (first && *head)
            add_painted(p, PAINT_NOTE, head);
        str_add_n(p->out, text, n);
        end_row(p);
        if (!text[n])
            return;
        text += n + 1;
    }
}

static void print_full(Str *out, const Diag *d, bool color) {
    const DiagInfo *info = diag_get_info(d->code);
    Printer p = {.out = out, .color = color, .digits = 1};
    switch (info->severity) {
    case SEVERITY_ERROR:
        p.main = PAINT_ERROR;
        break;
    case SEVERITY_WARNING:
        p.main = PAINT_WARNING;
        break;
    case SEVERITY_NOTE:
        p.main = PAINT_NOTE;
        break;
    }
    paint(&p, p.main);
    str_printf(out, "%s[%s]", severity_name(info->severity), info->name);
    unpaint(&p, p.main);
    str_printf(out, ": %s\n", d->message);

    VEC(Mark) marks = {0};
    if (d->primary.span.source)
        vec_push(&marks, make_mark(d->primary, true));
    for (size_t i = 0; i < d->labels.len; i++)
        vec_push(&marks, make_mark(d->labels.data[i], false));
    uint32_t highest = 0;
    for (size_t i = 0; i < marks.len; i++)
        if (marks.data[i].line > highest)
            highest = marks.data[i].line;
    for (; highest >= 10; highest /= 10)
        p.digits++;

    /* Source by source, the primary's first; the place after the arrow is the first mark's. */
    size_t done = 0;
    while (done < marks.len) {
        const Source *s = marks.data[done].source;
        size_t n = done;
        for (size_t i = done; i < marks.len; i++)
            if (marks.data[i].source == s) {
                Mark m = marks.data[i];
                memmove(&marks.data[n + 1], &marks.data[n], (i - n) * sizeof m);
                marks.data[n++] = m;
            }
        if (done) {
            gutter(&p, 0, "|");
            end_row(&p);
        }
        add_place(&p, done ? ":::" : "-->",
                  (Span){s, marks.data[done].begin, marks.data[done].end});
        add_source(&p, &marks.data[done], n - done);
        done = n;
    }
    for (size_t i = 0; i < d->facts.len; i++)
        add_note(&p, "", d->facts.data[i]);
    for (size_t i = 0; i < d->helps.len; i++)
        add_note(&p, "help: ", d->helps.data[i]);
}

void diag_print(Str *out, const Diag *d, DiagStyle style, bool color) {
    switch (style) {
    case DIAG_STYLE_FULL:
        print_full(out, d, color);
        break;
    case DIAG_STYLE_SHORT:
        diag_print_short(out, d);
        break;
    case DIAG_STYLE_JSON:
        diag_print_json(out, d);
        break;
    }
}

void diags_print(Str *out, const Diags *diags, DiagStyle style, bool color) {
    size_t errors = 0, others = 0;
    bool full = style == DIAG_STYLE_FULL;
    for (size_t i = 0; i < diags->list.len; i++) {
        const Diag *d = diags->list.data[i];
        size_t *count =
            diag_get_info(d->code)->severity == SEVERITY_ERROR ? &errors : &others;
        if (++*count > MAX_SHOWN && full)
            continue;
        diag_print(out, d, style, color);
    }
    if (full && errors > MAX_SHOWN)
        str_printf(out, "and %zu more\n", errors - MAX_SHOWN);
    if (full && others > MAX_SHOWN)
        str_printf(out, "and %zu more warnings\n", others - MAX_SHOWN);
}
