/* SPDX-License-Identifier: Apache-2.0 */
#include "parser/doc.h"

#include <stdarg.h>
#include <string.h>

typedef enum DocKind {
    DOC_TEXT,
    DOC_LINE,
    DOC_SOFT,
    DOC_HARD,
    DOC_BLANK,
    DOC_CAT,
    DOC_NEST,
    DOC_GROUP
} DocKind;

struct Doc {
    DocKind kind;
    bool hard;        /* holds a break that no group can undo */
    int indent;       /* NEST */
    int width;        /* TEXT: display columns */
    const char *text; /* TEXT */
    Doc *inner;       /* NEST, GROUP */
    DocVec parts;     /* CAT */
};

static Doc *doc_new(DocKind kind) {
    Doc *d = mem_new(Doc);
    d->kind = kind;
    return d;
}

Doc *doc_text(const char *text) {
    Doc *d = doc_new(DOC_TEXT);
    d->text = text;
    d->width = (int)text_width(text, strlen(text));
    return d;
}

Doc *doc_textf(const char *fmt, ...) {
    Str s = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return doc_text(str_text(&s));
}

Doc *doc_line(void) { return doc_new(DOC_LINE); }

Doc *doc_soft(void) { return doc_new(DOC_SOFT); }

Doc *doc_hard(void) {
    Doc *d = doc_new(DOC_HARD);
    d->hard = true;
    return d;
}

Doc *doc_cat(DocVec parts) {
    Doc *d = doc_new(DOC_CAT);
    d->parts = parts;
    for (size_t i = 0; i < parts.len; i++)
        d->hard |= parts.data[i]->hard;
    return d;
}

Doc *doc_cat2(Doc *a, Doc *b) {
    DocVec v = {0};
    vec_push(&v, a);
    vec_push(&v, b);
    return doc_cat(v);
}

Doc *doc_cat3(Doc *a, Doc *b, Doc *c) {
    DocVec v = {0};
    vec_push(&v, a);
    vec_push(&v, b);
    vec_push(&v, c);
    return doc_cat(v);
}

Doc *doc_nest(int indent, Doc *inner) {
    Doc *d = doc_new(DOC_NEST);
    d->indent = indent;
    d->inner = inner;
    d->hard = inner->hard;
    return d;
}

Doc *doc_group(Doc *inner) {
    Doc *d = doc_new(DOC_GROUP);
    d->inner = inner;
    d->hard = inner->hard;
    return d;
}

Doc *doc_list(const char *open, DocVec items, const char *separator, const char *close, bool pad) {
    if (!items.len)
        return doc_textf("%s%s", open, close);
    DocVec in = {0};
    vec_push(&in, pad ? doc_line() : doc_soft());
    for (size_t i = 0; i < items.len; i++) {
        vec_push(&in, items.data[i]);
        if (i + 1 < items.len) {
            vec_push(&in, doc_text(separator));
            vec_push(&in, doc_line());
        }
    }
    DocVec all = {0};
    vec_push(&all, doc_text(open));
    vec_push(&all, doc_nest(2, doc_cat(in)));
    vec_push(&all, pad ? doc_line() : doc_soft());
    vec_push(&all, doc_text(close));
    return doc_group(doc_cat(all));
}

bool doc_has_hard(const Doc *d) { return d->hard; }

int doc_flat_width(Doc *d, int limit) {
    VEC(Doc *) stack = {0};
    int width = 0;
    vec_push(&stack, d);
    while (stack.len && width <= limit) {
        Doc *x = vec_pop(&stack);
        switch (x->kind) {
        case DOC_TEXT: width += x->width; break;
        case DOC_LINE: width++; break;
        case DOC_SOFT: break;
        case DOC_HARD:
        case DOC_BLANK: return limit + 1;
        case DOC_CAT:
            for (size_t i = x->parts.len; i-- > 0;)
                vec_push(&stack, x->parts.data[i]);
            break;
        case DOC_NEST:
        case DOC_GROUP: vec_push(&stack, x->inner); break;
        }
    }
    return width;
}

Doc *doc_break(Doc *group) {
    group->hard = true;
    return group;
}

/* ---- layout ---------------------------------------------------------------------------------- */

typedef struct Frame {
    Doc *doc;
    int indent;
    bool flat;
} Frame;
typedef VEC(Frame) FrameVec;

static void push_parts(FrameVec *stack, Frame f) {
    for (size_t i = f.doc->parts.len; i-- > 0;)
        vec_push(stack, ((Frame){f.doc->parts.data[i], f.indent, f.flat}));
}

/* Whether `f` flat, and what follows it up to the next possible break, fits in `room` columns. */
static bool fits(Frame f, const FrameVec *rest, int room) {
    FrameVec stack = {0};
    size_t below = rest->len;
    vec_push(&stack, f);
    while (room >= 0) {
        if (!stack.len) {
            if (!below)
                return true;
            vec_push(&stack, rest->data[--below]);
        }
        Frame g = vec_pop(&stack);
        switch (g.doc->kind) {
        case DOC_TEXT: room -= g.doc->width; break;
        case DOC_LINE:
            if (!g.flat)
                return true;
            room--;
            break;
        case DOC_SOFT:
            if (!g.flat)
                return true;
            break;
        case DOC_HARD:
        case DOC_BLANK: return true;
        case DOC_CAT: push_parts(&stack, g); break;
        case DOC_NEST: vec_push(&stack, ((Frame){g.doc->inner, g.indent, g.flat})); break;
        case DOC_GROUP:
            vec_push(&stack, ((Frame){g.doc->inner, g.indent, g.flat && !g.doc->hard}));
            break;
        }
    }
    return false;
}

static void new_line(Str *out, int indent) {
    while (out->len && out->text[out->len - 1] == ' ')
        out->text[--out->len] = 0;
    str_add_char(out, '\n');
    for (int i = 0; i < indent; i++)
        str_add_char(out, ' ');
}

void doc_print(Str *out, Doc *d, int width) {
    FrameVec stack = {0};
    int column = 0;
    vec_push(&stack, ((Frame){d, 0, false}));
    while (stack.len) {
        Frame f = vec_pop(&stack);
        switch (f.doc->kind) {
        case DOC_TEXT: {
            str_add(out, f.doc->text);
            const char *last = strrchr(f.doc->text, '\n');
            column = last ? (int)text_width(last + 1, strlen(last + 1)) : column + f.doc->width;
            break;
        }
        case DOC_LINE:
        case DOC_SOFT:
            if (f.flat) {
                if (f.doc->kind == DOC_LINE) {
                    str_add_char(out, ' ');
                    column++;
                }
                break;
            }
            new_line(out, f.indent);
            column = f.indent;
            break;
        case DOC_HARD:
            new_line(out, f.indent);
            column = f.indent;
            break;
        case DOC_BLANK:
            new_line(out, 0);
            new_line(out, f.indent);
            column = f.indent;
            break;
        case DOC_CAT: push_parts(&stack, f); break;
        case DOC_NEST:
            vec_push(&stack, ((Frame){f.doc->inner, f.indent + f.doc->indent, f.flat}));
            break;
        case DOC_GROUP: {
            Frame flat = {f.doc->inner, f.indent, true};
            bool one_line = !f.doc->hard && (f.flat || fits(flat, &stack, width - column));
            flat.flat = one_line;
            vec_push(&stack, flat);
            break;
        }
        }
    }
}
