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
 * The lines with their marks are diag_excerpt.c's. Of our own text there is only ASCII. */
#include "base/diag_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum {
    MIN_WIDTH = 40,
    MAX_SHOWN = 5,
    MAX_QUOTED = 30, /* columns of the program's text in a listed label */
};

static void add_place(DiagPrinter *p, const char *arrow, Span span, const char *heading) {
    uint32_t line, column;
    span_locate(span, &line, &column);
    str_printf(p->out, " %*s", p->digits, "");
    diag_add_painted(p, PAINT_GUTTER, arrow);
    str_printf(p->out, " %s:%u:%u%s%s", span.source->name, line, column, *heading ? ", " : "",
               heading);
    diag_end_row(p);
    diag_gutter(p, 0, "|");
    diag_end_row(p);
}

enum {
    MAX_LINES = 4,
    MAX_COLUMNS = 16,
    COLUMN_GAP = 3, /* so many blanks divide two columns of a text that is laid out */
};

/* A text of some lines whose columns begin at the same places. */
typedef struct Columns {
    const char *lines[MAX_LINES];
    size_t lens[MAX_LINES], starts[MAX_COLUMNS + 1];
    size_t nlines, n;
} Columns;

/* Finds the columns that the first line has beside what leads each line; false where there are none. */
static bool find_columns(const char *text, Columns *c) {
    *c = (Columns){0};
    for (const char *line = text; c->nlines < MAX_LINES; line += c->lens[c->nlines - 1] + 1) {
        c->lines[c->nlines] = line;
        c->lens[c->nlines++] = strcspn(line, "\n");
        if (!line[c->lens[c->nlines - 1]])
            break;
    }
    size_t blanks = 0;
    for (size_t i = 0; i < c->lens[0] && c->n < MAX_COLUMNS; i++) {
        if (c->lines[0][i] != ' ' && blanks >= COLUMN_GAP && i > blanks)
            c->starts[c->n++] = i;
        blanks = c->lines[0][i] == ' ' ? blanks + 1 : 0;
    }
    c->starts[c->n] = SIZE_MAX;
    return c->n && c->nlines > 1 && c->lens[1] > c->starts[0];
}

static void add_trimmed(Str *out, const Columns *c, size_t line, size_t begin, size_t end) {
    end = end < c->lens[line] ? end : c->lens[line];
    while (end > begin && c->lines[line][end - 1] == ' ')
        end--;
    if (end > begin)
        str_add_n(out, c->lines[line] + begin, end - begin);
}

/* A text in columns that is wider than the terminal: its columns one below the other. */
static bool add_stacked(DiagPrinter *p, const char *text) {
    Columns c;
    size_t widest = 0, indent = (size_t)p->digits + 4;
    if (p->width == SIZE_MAX || !find_columns(text, &c))
        return false;
    for (size_t i = 0; i < c.nlines; i++)
        widest = c.lens[i] > widest ? c.lens[i] : widest;
    if (widest + indent <= p->width)
        return false;
    str_printf(p->out, " %*s ", p->digits, "");
    diag_add_painted(p, PAINT_GUTTER, "= ");
    add_trimmed(p->out, &c, 0, 0, c.starts[0]);
    str_add(p->out, ", ");
    add_trimmed(p->out, &c, 1, 0, c.starts[0]);
    diag_end_row(p);
    for (size_t k = 0; k < c.n; k++)
        for (size_t i = 0; i < c.nlines; i++) {
            Str part = {0};
            add_trimmed(&part, &c, i, c.starts[k], c.starts[k + 1]);
            if (!part.len)
                continue;
            str_printf(p->out, "%*s%s", (int)indent + 2, "", str_text(&part));
            diag_end_row(p);
        }
    return true;
}

/* `= head text`, further rows of the text below its beginning. A text of several lines is laid out
 * already. */
static void add_note(DiagPrinter *p, const char *head, const char *text) {
    size_t indent = (size_t)p->digits + 4, used = indent + strlen(head);
    bool laid_out = strchr(text, '\n');
    if (laid_out && !*head && add_stacked(p, text))
        return;
    for (bool first = true;; first = false) {
        size_t room = p->width == SIZE_MAX || laid_out ? SIZE_MAX
                      : p->width > used                ? p->width - used
                                                       : 0;
        size_t line = strcspn(text, "\n"), n = diag_first_row(text, line, room);
        str_printf(p->out, " %*s ", p->digits, "");
        diag_add_painted(p, first ? PAINT_GUTTER : PAINT_NONE, first ? "= " : "  ");
        if (first && *head)
            diag_add_painted(p, PAINT_NOTE, head);
        diag_add_text(p->out, text, n);
        diag_end_row(p);
        text += n;
        if (!*text)
            return;
        text++;
        used = indent;
    }
}

/* A label that had no room: what it marks, and what it says. */
static void add_listed(DiagPrinter *p, const DiagMark *m) {
    const char *text = m->source->text + m->begin;
    size_t n = (m->whole > m->end ? m->whole : m->end) - m->begin, to = 0, columns = 0, k;
    for (; to < n && columns < MAX_QUOTED; to += k)
        columns += diag_char_columns(text + to, n - to, &k);
    Str s = {0};
    str_add_char(&s, '`');
    diag_add_text(&s, text, to);
    str_printf(&s, "%s`: %s", to < n ? "..." : "", m->text);
    add_note(p, "", str_text(&s));
}

/* `error[R0312]: message`, further rows indented. */
static void add_header(DiagPrinter *p, const Diag *d) {
    enum { INDENT = 4 };
    const DiagInfo *info = diag_get_info(d->code);
    const char *head = fmt_text("%s[%s]", severity_name(info->severity), info->name);
    const char *text = d->message;
    size_t used = strlen(head) + 2;
    diag_add_painted(p, p->main, head);
    str_add(p->out, ": ");
    for (;;) {
        size_t room = p->width == SIZE_MAX ? SIZE_MAX : p->width - used;
        size_t line = strcspn(text, "\n"), n = diag_first_row(text, line, room);
        diag_add_text(p->out, text, n);
        diag_end_row(p);
        text += n;
        if (!*text)
            return;
        text++;
        used = INDENT;
        str_printf(p->out, "%*s", INDENT, "");
    }
}

/* The mark that says what the excerpt is of, or NULL. */
static DiagMark *find_heading(DiagMark *marks, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (marks[i].heads)
            return &marks[i];
    return NULL;
}

static void print_full(Str *out, const Diag *d, const DiagLook *look) {
    const DiagInfo *info = diag_get_info(d->code);
    DiagPrinter p = {.out = out, .color = look->color, .digits = 1, .width = SIZE_MAX};
    if (look->width > 0)
        p.width = look->width < MIN_WIDTH ? MIN_WIDTH : (size_t)look->width;
    switch (info->severity) {
    case SEVERITY_ERROR: p.main = PAINT_ERROR; break;
    case SEVERITY_WARNING: p.main = PAINT_WARNING; break;
    case SEVERITY_NOTE: p.main = PAINT_NOTE; break;
    }
    add_header(&p, d);

    VEC(DiagMark) marks = {0};
    for (size_t i = 0; i <= d->labels.len; i++) {
        DiagLabel label = i ? d->labels.data[i - 1] : d->primary;
        if (!label.span.source)
            continue;
        DiagMark mark = diag_make_mark(label, i == 0), end;
        vec_push(&marks, mark);
        if (diag_make_end_mark(&mark, label.span, &end))
            vec_push(&marks, end);
    }
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
                DiagMark m = marks.data[i];
                memmove(&marks.data[n + 1], &marks.data[n], (i - n) * sizeof m);
                marks.data[n++] = m;
            }
        if (done) {
            diag_gutter(&p, 0, "|");
            diag_end_row(&p);
        }
        DiagMark *first = &marks.data[done], *head = done ? find_heading(first, n - done) : NULL;
        const DiagMark *at = head ? head : first;
        add_place(&p, done ? ":::" : "-->", (Span){s, at->begin, at->end}, head ? head->text : "");
        if (head)
            head->text = "";
        diag_add_source(&p, &marks.data[done], n - done);
        done = n;
    }
    for (size_t i = 0; i < p.listed.len; i++)
        add_listed(&p, &p.listed.data[i]);
    for (size_t i = 0; i < d->facts.len; i++)
        add_note(&p, "", d->facts.data[i]);
    for (size_t i = 0; i < d->fixes.len; i++) {
        const char *message = d->fixes.data[i]->message;
        size_t n = strlen(message); /* the label may say it, and more in the place of its `?` */
        if (n == 0 || strncmp(message, d->primary.text, n - 1) != 0)
            add_note(&p, "help: ", message);
    }
    for (size_t i = 0; i < d->helps.len; i++)
        add_note(&p, "help: ", d->helps.data[i].text);
}

void diag_print(Str *out, const Diag *d, const DiagLook *look) {
    switch (look->style) {
    case DIAG_STYLE_FULL: print_full(out, d, look); break;
    case DIAG_STYLE_SHORT: diag_print_short(out, d); break;
    case DIAG_STYLE_JSON: diag_print_json(out, d); break;
    }
}

typedef struct Place {
    Diag *diag;
    uint32_t source; /* in order of appearance */
    size_t position; /* in the list */
} Place;

static int by_place(const void *x, const void *y) {
    const Place *a = x, *b = y;
    uint32_t p = a->diag->primary.span.begin, q = b->diag->primary.span.begin;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (p != q)
        return p < q ? -1 : 1;
    return a->position < b->position ? -1 : 1;
}

/* Source by source, and in each by place. */
static Place *in_order(const Diags *diags) {
    size_t n = diags->list.len;
    Place *list = mem_new_n(Place, n + 1);
    Map sources = {0};
    uint32_t last = 0;
    for (size_t i = 0; i < n; i++) {
        const Source *s = diags->list.data[i]->primary.span.source;
        uintptr_t seen = s ? (uintptr_t)map_find(&sources, s) : last;
        if (!seen) {
            seen = ++last;
            if (s)
                map_set(&sources, s, (void *)seen);
        }
        list[i] = (Place){diags->list.data[i], (uint32_t)seen, i};
    }
    qsort(list, n, sizeof *list, by_place);
    return list;
}

void diags_print(Str *out, const Diags *diags, const DiagLook *look) {
    size_t errors = 0, others = 0;
    bool full = look->style == DIAG_STYLE_FULL;
    Place *list = in_order(diags);
    for (size_t i = 0; i < diags->list.len; i++) {
        const Diag *d = list[i].diag;
        size_t *count = diag_get_info(d->code)->severity == SEVERITY_ERROR ? &errors : &others;
        if (++*count > MAX_SHOWN && full)
            continue;
        diag_print(out, d, look);
    }
    if (full && errors > MAX_SHOWN)
        str_printf(out, "and %zu more\n", errors - MAX_SHOWN);
    if (full && others > MAX_SHOWN)
        str_printf(out, "and %zu more warnings\n", others - MAX_SHOWN);
}
