/* SPDX-License-Identifier: Apache-2.0 */
/* Where comments go: behind the piece whose line they share, on lines of their own before the next
 * one, or, a block comment on the line of what follows, directly before it. A piece is an item, a
 * statement, an arm, or an element of a list; comments inside smaller things move to the next. */
#include <string.h>

#include "parser/print_internal.h"

typedef enum Place { PLACE_BEHIND, PLACE_OWN, PLACE_INLINE } Place;

typedef struct CommentDoc {
    Doc *doc;
    Place place;
    uint32_t begin, end;
} CommentDoc;
typedef VEC(CommentDoc) CommentVec;

/* Whether number `n` is a block comment, the code that follows it is on its line, and this is the
 * piece that begins at `at`. */
static bool is_inline(const Printer *p, size_t n, uint32_t at) {
    const Module *m = p->module;
    const char *text = m->source->text;
    bool same_line = true, code = false;
    uint32_t i = m->comments.data[n].span.end;
    if (text[m->comments.data[n].span.begin + 1] != '*' || at > m->source->len)
        return false;
    for (n++; i < at; i++) {
        if (n < m->comments.len && m->comments.data[n].span.begin == i) {
            same_line &= code || text[i + 1] == '*';
            i = m->comments.data[n++].span.end - 1;
        } else if (text[i] == '(' || text[i] == '{') {
            code = true;
        } else if (text[i] == '\n') {
            same_line &= code;
        } else if (!strchr(" \t\r\f\v", text[i])) {
            return false;
        }
    }
    return same_line;
}

/* The comments that begin before `at`. */
static CommentVec take_comments(Printer *p, uint32_t at) {
    CommentVec out = {0};
    if (!p->module)
        return out;
    for (; p->next_comment < p->module->comments.len; p->next_comment++) {
        const Comment *c = &p->module->comments.data[p->next_comment];
        if (c->span.begin >= at)
            break;
        const char *text = c->span.source->text + c->span.begin;
        size_t len = c->span.end - c->span.begin;
        while (len && strchr(" \t\r\n\f\v", text[len - 1]))
            len--;
        Place place = is_inline(p, p->next_comment, at) ? PLACE_INLINE
                      : c->own_line                     ? PLACE_OWN
                                                        : PLACE_BEHIND;
        CommentDoc d = {doc_text(mem_strndup(text, len)), place, c->span.begin, c->span.end};
        vec_push(&out, d);
    }
    for (size_t i = out.len; i-- > 1;) /* only what directly touches the piece is in its line */
        if (out.data[i].place != PLACE_INLINE && out.data[i - 1].place == PLACE_INLINE)
            out.data[i - 1].place = PLACE_OWN;
    return out;
}

bool print_has_blank(const Printer *p, uint32_t from, uint32_t at) {
    if (!p->module || !p->module->source || at > p->module->source->len)
        return false;
    int breaks = 0;
    for (uint32_t i = from; i < at; i++) {
        char c = p->module->source->text[i];
        if (c == '\n' && ++breaks > 1)
            return true;
        if (!strchr(" \t\r\n\f\v", c))
            breaks = 0;
    }
    return false;
}

/* A block's span is that of its braces, and so is that of what it holds. */
uint32_t print_begin(const Printer *p, const Ast *e) {
    const Source *s = e->span.source;
    uint32_t i = e->span.begin;
    size_t c = p->next_comment;
    if (!p->module || !s)
        return i;
    while (i < s->len && strchr(" \t\r\n\f\v({/", s->text[i])) {
        while (c < p->module->comments.len && p->module->comments.data[c].span.begin < i)
            c++;
        if (s->text[i] != '/')
            i++;
        else if (c < p->module->comments.len && p->module->comments.data[c].span.begin == i)
            i = p->module->comments.data[c].span.end;
        else
            break;
    }
    return i;
}

void print_gap(Printer *p, Gap gap, Doc *line, DocVec *out) {
    CommentVec comments = take_comments(p, gap.at);
    size_t i = 0;
    uint32_t from = gap.from;
    for (; !gap.first && i < comments.len && comments.data[i].place == PLACE_BEHIND; i++) {
        vec_push(out, doc_text("  "));
        vec_push(out, comments.data[i].doc);
        from = comments.data[i].end;
    }
    bool hard = i > 0, top = gap.first;
    for (size_t k = i; k < comments.len; k++)
        hard |= comments.data[k].place != PLACE_INLINE;
    if (!gap.first)
        vec_push(out, hard ? doc_hard() : line);
    for (; i < comments.len; i++) {
        const CommentDoc *c = &comments.data[i];
        if (gap.blanks && !top && print_has_blank(p, from, c->begin))
            vec_push(out, doc_hard());
        vec_push(out, c->doc);
        vec_push(out, c->place == PLACE_INLINE ? doc_text(" ") : doc_hard());
        from = c->end;
        top = false;
    }
    if (gap.blanks && !top && print_has_blank(p, from, gap.at))
        vec_push(out, doc_hard());
}

bool print_last_comments(Printer *p, uint32_t at, bool first, DocVec *out) {
    CommentVec comments = take_comments(p, at);
    for (size_t i = 0; i < comments.len; i++) {
        bool behind = comments.data[i].place != PLACE_OWN && i == 0 && !first;
        vec_push(out, behind ? doc_text("  ") : doc_hard());
        if (!behind && i > 0 &&
            print_has_blank(p, comments.data[i - 1].end, comments.data[i].begin))
            vec_push(out, doc_hard());
        vec_push(out, comments.data[i].doc);
    }
    return comments.len > 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

void rows_next(Printer *p, Rows *rows, uint32_t begin) {
    Gap gap = {.at = begin, .first = rows->n == 0};
    if (rows->n++)
        vec_push(&rows->in, doc_text(","));
    else
        vec_push(&rows->in, rows->pad ? doc_line() : doc_soft());
    print_gap(p, gap, rows->fill ? doc_group(doc_line()) : doc_line(), &rows->in);
}

/* f(a, fn (x) {
 *   …
 * }) */
static Doc *hug(const Rows *rows, const char *open, const char *close) {
    enum { NARROW = 50 };
    Doc *last = vec_last(&rows->in);
    DocVec before = {0};
    for (size_t i = 1; i + 1 < rows->in.len; i++)
        vec_push(&before, rows->in.data[i]);
    Doc *all = doc_cat(before);
    if (!doc_has_hard(last) || doc_has_hard(all) || doc_flat_width(all, NARROW) > NARROW)
        return NULL;
    return doc_cat3(doc_text(open), doc_group(all), doc_cat2(last, doc_text(close)));
}

/* The bracket behind the last element, which ended at `end`. */
static uint32_t find_close(const Printer *p, uint32_t end) {
    const Module *m = p->module;
    size_t c = p->next_comment, len = m && m->source ? m->source->len : 0;
    for (; end && end < len; end++) {
        while (c < m->comments.len && m->comments.data[c].span.begin < end)
            c++;
        if (c < m->comments.len && m->comments.data[c].span.begin == end)
            end = m->comments.data[c].span.end - 1;
        else if (!strchr(" \t\r\n\f\v,", m->source->text[end]))
            break;
    }
    return end;
}

Doc *rows_end(Printer *p, Rows *rows, const char *open, const char *close, uint32_t end) {
    bool comments = print_last_comments(p, find_close(p, end), rows->n == 0, &rows->in);
    if (!rows->n && !comments)
        return doc_textf("%s%s", open, close);
    Doc *hugged = rows->hug && !comments ? hug(rows, open, close) : NULL;
    if (hugged)
        return hugged;
    DocVec all = {0};
    vec_push(&all, doc_text(open));
    vec_push(&all, doc_nest(2, doc_cat(rows->in)));
    vec_push(&all, comments ? doc_hard() : rows->pad ? doc_line() : doc_soft());
    vec_push(&all, doc_text(close));
    return doc_group(doc_cat(all));
}
