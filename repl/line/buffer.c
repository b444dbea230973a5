/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/line/buffer.h"

#include <string.h>

/* ---- changes --------------------------------------------------------------------------------- */

static void splice(Buffer *b, size_t at, size_t nremoved, const char *added, size_t nadded) {
    Str text = {0};
    str_add_n(&text, str_text(&b->text), at);
    str_add_n(&text, added, nadded);
    str_add_n(&text, str_text(&b->text) + at + nremoved, b->text.len - at - nremoved);
    b->text = text;
}

void buffer_set(Buffer *b, const char *text, size_t n) {
    b->text = (Str){0};
    b->cursor = 0;
    vec_clear(&b->changes);
    b->done = 0;
    buffer_insert(b, text, n);
    vec_clear(&b->changes);
    b->done = 0;
    buffer_end_chain(b);
}

/* The nearest place at or before `at` that no character spans. */
static size_t boundary(const Buffer *b, size_t at) {
    size_t begin = buffer_line_begin(b, at), columns;
    for (size_t next = begin; next < at; begin = next) {
        next = begin + text_first_cluster(b->text.text + begin, b->text.len - begin, &columns);
        if (next > at)
            return begin;
    }
    return at;
}

void buffer_set_cursor(Buffer *b, size_t at) {
    b->cursor = boundary(b, at < b->text.len ? at : b->text.len);
}

/* Whether a typed character goes on with the word typed so far. */
static bool continues(const Buffer *b, size_t at, const char *text, size_t n) {
    if (!b->done || b->done != b->changes.len)
        return false;
    const Change *last = &vec_last(&b->changes);
    return last->typed && at == last->at + last->nadded && n <= 4 && text[0] != '\n' &&
           !(text[0] == ' ' && last->added[last->nadded - 1] != ' ');
}

void buffer_replace(Buffer *b, size_t begin, size_t end, const char *text, size_t n) {
    if (begin == end && !n)
        return;
    if (begin == end && continues(b, begin, text, n)) {
        Change *last = &vec_last(&b->changes);
        Str added = {0};
        str_add_n(&added, last->added, last->nadded);
        str_add_n(&added, text, n);
        last->added = str_text(&added);
        last->nadded = added.len;
    } else {
        Change c = {.at = begin,
                    .cursor = b->cursor,
                    .removed = mem_strndup(str_text(&b->text) + begin, end - begin),
                    .nremoved = end - begin,
                    .added = mem_strndup(text, n),
                    .nadded = n,
                    .typed = begin == end && n <= 4 && text[0] != '\n'};
        b->changes.len = b->done;
        vec_push(&b->changes, c);
        b->done++;
    }
    splice(b, begin, end - begin, text, n);
    buffer_set_cursor(b, begin + n);
}

void buffer_insert(Buffer *b, const char *text, size_t n) {
    Str clean = {0};
    for (size_t i = 0, bad; i < n;) {
        if (text_is_utf8(text + i, n - i, &bad))
            bad = n - i;
        for (size_t k = i; k < i + bad; k++)
            if ((unsigned char)text[k] >= ' ' ? text[k] != 0x7F
                                              : text[k] == '\n' || text[k] == '\t')
                str_add_char(&clean, text[k]);
        i += bad + 1;
    }
    buffer_replace(b, b->cursor, b->cursor, str_text(&clean), clean.len);
}

bool buffer_undo(Buffer *b) {
    buffer_end_chain(b);
    if (!b->done)
        return false;
    const Change *c = &b->changes.data[--b->done];
    splice(b, c->at, c->nadded, c->removed, c->nremoved);
    buffer_set_cursor(b, c->cursor);
    return true;
}

bool buffer_redo(Buffer *b) {
    buffer_end_chain(b);
    if (b->done == b->changes.len)
        return false;
    const Change *c = &b->changes.data[b->done++];
    splice(b, c->at, c->nremoved, c->added, c->nadded);
    buffer_set_cursor(b, c->at + c->nadded);
    return true;
}

/* ---- motion ---------------------------------------------------------------------------------- */

size_t buffer_line_begin(const Buffer *b, size_t at) {
    while (at > 0 && b->text.text[at - 1] != '\n')
        at--;
    return at;
}

size_t buffer_line_end(const Buffer *b, size_t at) {
    while (at < b->text.len && b->text.text[at] != '\n')
        at++;
    return at;
}

size_t buffer_find_char(const Buffer *b, size_t at, Direction d) {
    size_t columns;
    if (d == FORWARD)
        return at < b->text.len
                   ? at + text_first_cluster(b->text.text + at, b->text.len - at, &columns)
                   : at;
    return at > 0 ? boundary(b, at - 1) : 0;
}

static bool is_word_byte(char c) {
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
           (unsigned char)c >= 0x80;
}

size_t buffer_find_word(const Buffer *b, size_t at, Direction d) {
    const char *text = b->text.text;
    if (d == FORWARD) {
        while (at < b->text.len && !is_word_byte(text[at]))
            at++;
        while (at < b->text.len && is_word_byte(text[at]))
            at++;
    } else {
        while (at > 0 && !is_word_byte(text[at - 1]))
            at--;
        while (at > 0 && is_word_byte(text[at - 1]))
            at--;
    }
    return at;
}

bool buffer_move_line(Buffer *b, Direction d) {
    size_t begin = buffer_line_begin(b, b->cursor), columns;
    size_t column = text_width(str_text(&b->text) + begin, b->cursor - begin);
    if (d == BACKWARD ? begin == 0 : buffer_line_end(b, b->cursor) == b->text.len)
        return false;
    size_t at = d == BACKWARD ? buffer_line_begin(b, begin - 1) : buffer_line_end(b, b->cursor) + 1;
    size_t end = buffer_line_end(b, at);
    for (size_t reached = 0; at < end;
         at += text_first_cluster(b->text.text + at, end - at, &columns)) {
        size_t width;
        text_first_cluster(b->text.text + at, end - at, &width);
        if (reached + width > column)
            break;
        reached += width;
    }
    b->cursor = at;
    return true;
}

/* ---- killing --------------------------------------------------------------------------------- */

void buffer_end_chain(Buffer *b) { b->joins_kill = b->was_yank = false; }

void buffer_kill(Buffer *b, size_t begin, size_t end) {
    if (begin == end)
        return;
    const char *text = mem_strndup(b->text.text + begin, end - begin);
    if (b->joins_kill && b->nkills) {
        bool before = end == b->cursor;
        b->kills[0] = before ? fmt_text("%s%s", text, b->kills[0])
                             : fmt_text("%s%s", b->kills[0], text);
    } else {
        memmove(b->kills + 1, b->kills, sizeof *b->kills * (KILL_RING - 1));
        b->kills[0] = text;
        b->nkills += b->nkills < KILL_RING;
    }
    buffer_replace(b, begin, end, "", 0);
    b->joins_kill = true;
    b->was_yank = false;
}

void buffer_yank(Buffer *b) {
    b->joins_kill = false;
    if (!b->nkills)
        return;
    b->yanked = 0;
    b->yank_begin = b->cursor;
    b->yank_end = b->cursor + strlen(b->kills[0]);
    buffer_replace(b, b->cursor, b->cursor, b->kills[0], strlen(b->kills[0]));
    b->was_yank = true;
}

void buffer_yank_older(Buffer *b) {
    if (!b->was_yank)
        return;
    b->yanked = (b->yanked + 1) % b->nkills;
    const char *text = b->kills[b->yanked];
    buffer_replace(b, b->yank_begin, b->yank_end, text, strlen(text));
    b->yank_end = b->yank_begin + strlen(text);
}

void buffer_exchange_chars(Buffer *b) {
    size_t middle = b->cursor == buffer_line_end(b, b->cursor)
                        ? buffer_find_char(b, b->cursor, BACKWARD)
                        : b->cursor;
    if (middle == buffer_line_begin(b, b->cursor))
        return;
    size_t begin = buffer_find_char(b, middle, BACKWARD);
    size_t end = buffer_find_char(b, middle, FORWARD);
    if (begin < buffer_line_begin(b, middle))
        return;
    Str text = {0};
    str_add_n(&text, b->text.text + middle, end - middle);
    str_add_n(&text, b->text.text + begin, middle - begin);
    buffer_replace(b, begin, end, str_text(&text), text.len);
}
