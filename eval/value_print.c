/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text (LANGUAGE §6), data on one line; eval/value_layout.c breaks data that is too long.
 *
 * A tensor alone is laid out as NumPy does: rows aligned to the widest element, one blank line
 * between planes of several rows, long rows broken at the width, edges of 3 when it is large. It is
 * large when it has many elements or many rows: a shape of (4278190082, 0) has no element at all.
 * Inside other data it stays on one line. Lists are walked in a loop; other nesting is cut at depth
 * 100, so the recursion here is bounded too, and everything at a number of nodes and elements, since
 * data may share. Every loop stops at an interrupt, and where the text passes the printer's limit,
 * and leaves the text cut short. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/value_print_impl.h"

enum { MAX_NODES = 1 << 20 };

/* ---- elements -------------------------------------------------------------------------------- */

/* The value rounded to so many significant digits. Digits before the point are never lost. */
static double round_to_digits(double value, int digits) {
    enum { MOST_DIGITS = 17 };
    double size = fabs(value);
    int whole = size >= 1 && size < 1e16 ? (int)floor(log10(size)) + 1 : 1;
    digits = digits > whole ? digits : whole;
    char text[40];
    snprintf(text, sizeof text, "%.*e", (digits < MOST_DIGITS ? digits : MOST_DIGITS) - 1, value);
    double rounded = strtod(text, NULL);
    return isfinite(rounded) ? rounded : value;
}

static void print_float(const Printer *p, Str *out, double f, DType t) {
    int bits = t == DT_BF16 ? 17 : dtype_info[t].bits;
    if (p->digits <= 0 || !isfinite(f)) {
        str_add_float(out, f, bits);
        return;
    }
    Str shortest = {0};
    str_add_float(&shortest, f, bits);
    str_add_float(out, round_to_digits(strtod(str_text(&shortest), NULL), p->digits), 64);
}

static void print_int(Str *out, int64_t i, DType t) {
    if (t == DT_BOOL)
        str_add(out, i ? "True" : "False");
    else if (t == DT_U64)
        str_printf(out, "%llu", (unsigned long long)i);
    else
        str_printf(out, "%lld", (long long)i);
}

static void print_element(const Printer *p, Str *out, const Tensor *t, int64_t at) {
    const void *e = (const char *)t->buffer->data + at * (int64_t)dtype_size(t->dtype);
    if (dtype_is_float(t->dtype))
        print_float(p, out, elem_get_float(e, t->dtype), t->dtype);
    else
        print_int(out, elem_get_int(e, t->dtype), t->dtype);
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct Layout {
    Printer *p;
    const Tensor *t;
    bool summarise, lines;
    int64_t head;    /* elements shown before the dots: the edge, or one where the edge is none */
    size_t pad;      /* each element takes at least so many columns */
    size_t measured; /* while measuring: the columns of all elements of a vector */
} Layout;

static bool is_elided(const Layout *l, int64_t n) {
    return l->summarise && n > (l->p->edge ? 2 * l->p->edge : 1);
}

/* The widest of the elements that are shown. */
static size_t measure(Layout *l, int axis, int64_t at) {
    const Tensor *t = l->t;
    if (axis == t->rank) {
        Str text = {0};
        print_element(l->p, &text, t, at);
        l->measured += text.len + 2;
        return text.len;
    }
    size_t widest = 0;
    int64_t n = t->shape[axis];
    for (int64_t i = 0; i < n && !print_is_stopped(l->p); i++) {
        if (is_elided(l, n) && i == l->p->edge)
            i = n - l->p->edge;
        size_t w = measure(l, axis + 1, at + i * t->strides[axis]);
        if (w > widest)
            widest = w;
    }
    return widest;
}

static void new_line(Layout *l, int indent, bool blank_before) {
    if (blank_before)
        str_add_char(l->p->out, '\n');
    str_add_char(l->p->out, '\n');
    for (int i = 0; i < indent; i++)
        str_add_char(l->p->out, ' ');
}

static size_t column(const Str *s) {
    size_t i = s->len;
    while (i > 0 && s->text[i - 1] != '\n')
        i--;
    return s->len - i;
}

/* One item of a row, after a comma when it is not the first; a new line where it does not fit. Room
 * for the closing brackets is kept on every line, as NumPy does. */
static void print_item(Layout *l, int indent, bool first, const Str *item, size_t pad) {
    Str *out = l->p->out;
    size_t n = item->len > pad ? item->len : pad;
    if (!first) {
        str_add_char(out, ',');
        if (l->lines && column(out) + 1 + n + (size_t)l->t->rank > (size_t)l->p->width)
            new_line(l, indent, false);
        else
            str_add_char(out, ' ');
    }
    for (size_t i = item->len; i < pad; i++)
        str_add_char(out, ' ');
    str_add_n(out, item->text, item->len);
}

static void print_row(Layout *l, int64_t at) {
    const Tensor *t = l->t;
    int axis = t->rank - 1;
    int64_t n = t->shape[axis];
    Str dots = {0};
    str_add(&dots, "...");
    for (int64_t i = 0; i < n && !print_is_stopped(l->p); i++) {
        l->p->nodes++;
        if (is_elided(l, n) && i == l->head) {
            print_item(l, t->rank, false, &dots, 0);
            if (!l->p->edge)
                break;
            i = n - l->p->edge;
        }
        Str text = {0};
        print_element(l->p, &text, t, at + i * t->strides[axis]);
        print_item(l, t->rank, i == 0, &text, l->pad);
    }
}

/* How many rows the axes from `axis` on print, `[]` of an empty axis being one; INT64_MAX when there
 * are more. */
static int64_t count_rows(const Tensor *t, int axis) {
    int64_t rows = 1;
    for (int i = axis; i < t->rank - 1 && t->shape[i]; i++)
        if (__builtin_mul_overflow(rows, t->shape[i], &rows))
            return INT64_MAX;
    return rows;
}

static void print_axis(Layout *l, int axis, int64_t at) {
    const Tensor *t = l->t;
    Str *out = l->p->out;
    str_add_char(out, '[');
    if (axis == t->rank - 1) {
        print_row(l, at);
    } else {
        int64_t n = t->shape[axis];
        bool blank = t->rank - axis > 2 && count_rows(t, axis + 1) > 1;
        for (int64_t i = 0; i < n && !print_is_stopped(l->p); i++) {
            bool dots = is_elided(l, n) && i == l->head;
            if (dots && !l->p->edge) {
                str_add(out, ", ...");
                break;
            }
            for (int k = 0; k < (dots ? 2 : 1) && i > 0; k++) {
                str_add(out, k ? "...," : ",");
                if (l->lines)
                    new_line(l, axis + 1, blank);
                else
                    str_add_char(out, ' ');
            }
            if (dots)
                i = n - l->p->edge;
            print_axis(l, axis + 1, at + i * t->strides[axis]);
        }
    }
    str_add_char(out, ']');
}

void print_tensor(Printer *p, const Tensor *t, bool lines, bool summarise) {
    if (t->count == 0 && t->shape[0] == 0) {
        str_add(p->out, "[]");
        return;
    }
    bool large = t->count > p->max_elements || count_rows(t, 0) > p->max_elements;
    Layout l = {.p = p,
                .t = t,
                .lines = lines,
                .head = p->edge ? p->edge : 1,
                .summarise = summarise || large};
    if (lines) {
        l.pad = measure(&l, 0, t->offset);
        if (t->rank == 1 && l.measured <= (size_t)p->width)
            l.pad = 0;
    }
    print_axis(&l, 0, t->offset);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void print_parts(Printer *p, Value whole, int depth) {
    for (uint32_t i = 0, n = value_count(whole); i < n && !print_is_stopped(p); i++) {
        if (i)
            str_add(p->out, ", ");
        print_value(p, value_part(whole, i), depth);
    }
}

/* The prelude's List: `Cons(x, rest)` or `Nil` of a type of that name that no program declared. */
bool print_is_list(const Ctor *c) {
    const TypeDecl *d = c->decl;
    return d && strcmp(d->name->text, "List") == 0 && d->nctors == 2 &&
           (!d->span.source || (d->span.source->flags & SOURCE_INTERNAL));
}

static void print_list(Printer *p, Value v, int depth) {
    str_add(p->out, "list[");
    for (int n = 0; data_size(v) == 2 && !print_is_stopped(p); n++) {
        if (n)
            str_add(p->out, ", ");
        if (n == PRINT_MAX_LIST) {
            str_add(p->out, "...");
            break;
        }
        print_value(p, data_get(v, 0), depth + 1);
        v = data_get(v, 1);
    }
    str_add_char(p->out, ']');
}

static void print_data(Printer *p, Value v, int depth) {
    const Ctor *c = data_ctor(v);
    if (print_is_list(c)) {
        print_list(p, v, depth);
        return;
    }
    str_add(p->out, c->name->text);
    if (c->nfields == 0)
        return;
    if (!c->field_names) {
        str_add_char(p->out, '(');
        print_parts(p, v, depth + 1);
        str_add_char(p->out, ')');
        return;
    }
    str_add(p->out, " { ");
    for (uint32_t i = 0; i < c->nfields && !print_is_stopped(p); i++) {
        if (i)
            str_add(p->out, ", ");
        str_add(p->out, c->field_names[i]->text);
        str_add(p->out, ": ");
        print_value(p, data_get(v, i), depth + 1);
    }
    str_add(p->out, " }");
}

static void print_ref(Printer *p, const Ref *r, int depth) {
    for (size_t i = 0; i < p->refs.len; i++)
        if (p->refs.data[i] == r) {
            str_add(p->out, "ref(<cycle>)");
            return;
        }
    vec_push(&p->refs, r);
    str_add(p->out, "ref(");
    print_value(p, r->value, depth + 1);
    str_add_char(p->out, ')');
    (void)vec_pop(&p->refs);
}

static void print_string(Printer *p, const String *s) {
    enum { PIECE = 1 << 16 };
    str_add_char(p->out, '"');
    for (size_t at = 0, n; at < s->len && !print_is_stopped(p); at += n) {
        n = s->len - at < PIECE ? s->len - at : PIECE;
        while (at + n < s->len && ((unsigned char)s->text[at + n] & 0xC0) == 0x80 && n < PIECE + 4)
            n++; /* keep whole characters */
        str_add_escaped(p->out, s->text + at, n);
    }
    str_add_char(p->out, '"');
}

void print_value(Printer *p, Value v, int depth) {
    v = value_primal(v);
    if (depth > PRINT_MAX_DEPTH || ++p->nodes > MAX_NODES) {
        str_add(p->out, "...");
        return;
    }
    switch ((ValueTag)v.tag) {
    case VAL_SCALAR:
        if (dtype_is_float((DType)v.aux))
            print_float(p, p->out, v.f, (DType)v.aux);
        else
            print_int(p->out, v.i, (DType)v.aux);
        return;
    case VAL_TENSOR: print_tensor(p, v.p, depth == 0, false); return;
    case VAL_TUPLE: {
        const Tuple *t = v.p;
        str_add_char(p->out, '(');
        print_parts(p, v, depth + 1);
        str_add(p->out, t && t->n == 1 ? ",)" : ")");
        return;
    }
    case VAL_CTOR: print_data(p, v, depth); return;
    case VAL_CLOSURE:
    case VAL_BUILTIN: str_add(p->out, "<fn>"); return;
    case VAL_REF: print_ref(p, v.p, depth); return;
    case VAL_STRING: print_string(p, v.p); return;
    case VAL_DUAL:
    case VAL_ABSENT: str_add(p->out, "<absent>"); return;
    }
}

void value_print(Str *out, Value v, const ValuePrintOptions *options) {
    ValuePrintOptions none = {0};
    const ValuePrintOptions *o = options ? options : &none;
    Printer p = {
        .out = out,
        .width = o->width > 0 ? o->width : 80,
        .edge = o->edge > 0 ? o->edge : 3,
        .max_elements = o->max_elements > 0 ? o->max_elements : 1000,
        .digits = o->digits,
        .limit = SIZE_MAX,
        .interrupt = o->interrupt,
    };
    if (o->nested || o->one_line)
        print_value(&p, v, o->nested ? 1 : 0);
    else
        print_laid_out(&p, v);
}
