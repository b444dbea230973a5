/* SPDX-License-Identifier: Apache-2.0 */
/* Data that is too wide for its line, as a tree: a field a line, nested by two.
 *
 *     Model {
 *       layers: list[
 *         Layer { w: [[0.1, 0.2], [0.3, 0.4]], b: [0.0, 0.0] },
 *         Layer { w: [[0.5, 0.6], [0.7, 0.8]], b: [0.0, 0.0] }
 *       ],
 *       rate: 0.1
 *     }
 *
 * Each part is first tried on one line and cut off where that has no room, so a value takes time in
 * proportion to its nodes, the width and the depth. A tensor that has no room on its line is shown row
 * by row, if it has few rows; else as many elements at its edges as fit. A list of short elements fills
 * lines. What holds a single part (`Some(…)`, a 1-tuple, a reference) takes no line of its own for it. */
#include <string.h>

#include "eval/value_print_impl.h"

enum { INDENT = 2, LEAST_ROOM = 24, FILLED_PER_LINE = 3 };

/* Where a value stands: the margin of the line it begins on, and the columns that its last line has
 * to leave for what follows it. */
typedef struct Place {
    size_t margin, after;
    int depth;
} Place;

static void lay_out(Printer *p, Value v, Place at);

static size_t column_of(const Str *out) {
    size_t begin = out->len;
    while (begin > 0 && out->text[begin - 1] != '\n')
        begin--;
    return text_width(out->text + begin, out->len - begin);
}

static void start_line(Printer *p, size_t margin) { str_printf(p->out, "\n%*s", (int)margin, ""); }

/* The columns left on this line. Deep nesting still gets a few. */
static size_t room_for(const Printer *p, Place at) {
    size_t used = column_of(p->out) + at.after, width = (size_t)p->width;
    size_t room = width > used ? width - used : 0;
    return room > LEAST_ROOM || at.depth == 0 ? room : LEAST_ROOM;
}

static void print_part(Printer *p, Value v, int depth, bool summarise) {
    if (summarise)
        print_tensor(p, v.p, false, true);
    else
        print_value(p, v, depth);
}

/* Appends the value on one line when it takes at most `room` columns. */
static bool add_if_fits(Printer *p, Value v, int depth, size_t room, bool summarise) {
    Str *out = p->out, text = {0};
    size_t nodes = p->nodes;
    p->out = &text;
    p->limit = room * 4; /* bytes: a column takes at most four */
    print_part(p, v, depth, summarise);
    bool fits = !print_is_stopped(p) && text_width(text.text, text.len) <= room;
    p->out = out;
    p->limit = SIZE_MAX;
    if (fits)
        str_add_n(out, text.text, text.len);
    else
        p->nodes = nodes;
    return fits;
}

/* Appends the tensor row by row, each below the first, when its rows are few, whole and have room there. */
static bool add_rows(Printer *p, Value v, Place at) {
    enum { MOST_ROWS = 8 };
    Str *out = p->out, text = {0}, rows = {0};
    size_t margin = column_of(out), count = 0, width = (size_t)p->width;
    if (((const Tensor *)v.p)->rank < 2)
        return false;
    p->out = &text;
    p->limit = MOST_ROWS * width * 4; /* bytes, as above */
    print_tensor(p, v.p, true, false);
    bool fits = !print_is_stopped(p) && !strstr(str_text(&text), "...");
    p->out = out;
    p->limit = SIZE_MAX;
    for (const char *line = str_text(&text), *end; fits && line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        size_t n = end ? (size_t)(end - line) : strlen(line), after = end ? 0 : at.after;
        fits = ++count <= MOST_ROWS && margin + text_width(line, n) + after <= width;
        if (count > 1)
            str_printf(&rows, "\n%*s", n ? (int)margin : 0, "");
        str_add_n(&rows, line, n);
    }
    if (fits)
        str_add_n(out, rows.text, rows.len);
    return fits;
}

/* A tensor with no room for all of its elements. */
static void summarise_tensor(Printer *p, Value v, Place at) {
    int64_t edge = p->edge;
    bool fits = false;
    for (int64_t shown = edge; shown >= 0 && !fits && !print_is_stopped(p); shown--) {
        p->edge = shown;
        fits = add_if_fits(p, v, at.depth, room_for(p, at), true);
    }
    if (!fits)
        print_tensor(p, v.p, false, true);
    p->edge = edge;
}

/* The only part of something: it begins on the line of `open`. */
static void lay_out_single(Printer *p, const char *open, Value v, const char *close, Place at) {
    str_add(p->out, open);
    lay_out(p, v, (Place){at.margin, at.after + strlen(close), at.depth + 1});
    str_add(p->out, close);
}

/* The parts of a tuple or of data, each on a line of its own. names may be NULL. */
static void lay_out_parts(Printer *p, const char *open, const Symbol *const *names, Value whole,
                          const char *close, Place at) {
    str_add(p->out, open);
    for (uint32_t i = 0, n = value_count(whole); i < n && !print_is_stopped(p); i++) {
        start_line(p, at.margin + INDENT);
        if (names)
            str_printf(p->out, "%s: ", names[i]->text);
        lay_out(p, value_part(whole, i), (Place){at.margin + INDENT, i + 1 < n, at.depth + 1});
        if (i + 1 < n)
            str_add_char(p->out, ',');
    }
    start_line(p, at.margin);
    str_add(p->out, close);
}

/* ---- lists ----------------------------------------------------------------------------------- */

typedef VEC(Str) Texts;

/* The text of each element, when all are short. widest: in columns. */
static bool print_short_elements(Printer *p, Value list, int depth, Texts *texts, size_t *widest) {
    Str *out = p->out;
    size_t nodes = p->nodes;
    bool short_enough = true;
    *widest = 0;
    for (int n = 0; short_enough && data_size(list) == 2 && n < PRINT_MAX_LIST; n++) {
        Str text = {0};
        p->out = &text;
        short_enough = add_if_fits(p, data_get(list, 0), depth + 1,
                                   (size_t)p->width / FILLED_PER_LINE, false);
        p->out = out;
        vec_push(texts, text);
        size_t width = text_width(text.text, text.len);
        *widest = width > *widest ? width : *widest;
        list = data_get(list, 1);
    }
    if (!short_enough)
        p->nodes = nodes;
    return short_enough;
}

/* Short elements fill lines below the first one; numbers are aligned. */
static void fill_list(Printer *p, Value list, const Texts *texts, size_t widest, Place at) {
    Value first = value_primal(data_get(list, 0));
    size_t pad = first.tag == VAL_SCALAR ? widest : 0;
    str_add(p->out, "list[");
    size_t margin = column_of(p->out), column = margin;
    bool cut = texts->len == PRINT_MAX_LIST;
    for (size_t i = 0; i < texts->len && !print_is_stopped(p); i++) {
        const Str *text = &texts->data[i];
        size_t width = text_width(text->text, text->len), blanks = pad > width ? pad - width : 0;
        size_t after = i + 1 < texts->len || cut ? 1 : 1 + at.after;
        if (i && column + 1 + blanks + width + after > (size_t)p->width) {
            start_line(p, margin);
            column = margin;
        } else if (i) {
            str_add_char(p->out, ' ');
            column++;
        }
        str_printf(p->out, "%*s", (int)blanks, "");
        str_add_n(p->out, text->text, text->len);
        column += blanks + width + 1;
        if (i + 1 < texts->len)
            str_add_char(p->out, ',');
    }
    str_add(p->out, cut ? ", ...]" : "]");
}

static void lay_out_list(Printer *p, Value list, Place at) {
    Texts texts = {0};
    size_t widest;
    if (print_short_elements(p, list, at.depth, &texts, &widest)) {
        fill_list(p, list, &texts, widest, at);
        return;
    }
    str_add(p->out, "list[");
    for (int n = 0; data_size(list) == 2 && !print_is_stopped(p); n++) {
        Value item = data_get(list, 0);
        start_line(p, at.margin + INDENT);
        if (n == PRINT_MAX_LIST) {
            str_add(p->out, "...");
            break;
        }
        list = data_get(list, 1);
        bool more = data_size(list) == 2;
        lay_out(p, item, (Place){at.margin + INDENT, more, at.depth + 1});
        if (more)
            str_add_char(p->out, ',');
    }
    start_line(p, at.margin);
    str_add_char(p->out, ']');
}

/* ---- one value ------------------------------------------------------------------------------- */

static void lay_out_data(Printer *p, Value v, Place at) {
    const Ctor *c = data_ctor(v);
    if (print_is_list(c))
        lay_out_list(p, v, at);
    else if (c->field_names)
        lay_out_parts(p, fmt_text("%s {", c->name->text), c->field_names, v, "}", at);
    else if (c->nfields == 1)
        lay_out_single(p, fmt_text("%s(", c->name->text), data_get(v, 0), ")", at);
    else
        lay_out_parts(p, fmt_text("%s(", c->name->text), NULL, v, ")", at);
}

static void lay_out_ref(Printer *p, const Ref *r, Place at) {
    for (size_t i = 0; i < p->refs.len; i++)
        if (p->refs.data[i] == r) {
            str_add(p->out, "ref(<cycle>)");
            return;
        }
    vec_push(&p->refs, r);
    lay_out_single(p, "ref(", r->value, ")", at);
    (void)vec_pop(&p->refs);
}

static void lay_out(Printer *p, Value v, Place at) {
    v = value_primal(v);
    if (at.depth > PRINT_MAX_DEPTH || add_if_fits(p, v, at.depth, room_for(p, at), false)) {
        if (at.depth > PRINT_MAX_DEPTH)
            str_add(p->out, "...");
        return;
    }
    switch ((ValueTag)v.tag) {
    case VAL_TENSOR:
        if (!add_rows(p, v, at))
            summarise_tensor(p, v, at);
        return;
    case VAL_TUPLE: {
        const Tuple *t = v.p;
        if (t && t->n == 1)
            lay_out_single(p, "(", t->items[0], ",)", at);
        else
            lay_out_parts(p, "(", NULL, v, ")", at);
        return;
    }
    case VAL_CTOR:
        if (data_size(v))
            lay_out_data(p, v, at);
        else
            print_value(p, v, at.depth);
        return;
    case VAL_REF: lay_out_ref(p, v.p, at); return;
    case VAL_SCALAR:
    case VAL_CLOSURE:
    case VAL_BUILTIN:
    case VAL_STRING:
    case VAL_DUAL:
    case VAL_ABSENT: print_value(p, v, at.depth); return;
    }
}

void print_laid_out(Printer *p, Value v) {
    v = value_primal(v);
    if (v.tag == VAL_TENSOR)
        print_tensor(p, v.p, true, false);
    else
        lay_out(p, v, (Place){0});
}
