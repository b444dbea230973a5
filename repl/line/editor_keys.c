/* SPDX-License-Identifier: Apache-2.0 */
/* What keys do: those of Emacs and readline, and those that keyboards have names for. A key without a
 * meaning does nothing. docs/prompt.md lists them. */
#include "repl/line/editor_internal.h"

#include <ctype.h>
#include <string.h>

#include "repl/line/paint.h"

enum { INDENT = 2 };

/* ---- typing ---------------------------------------------------------------------------------- */

static size_t count_blanks(const Buffer *b, size_t at) {
    return strspn(str_text(&b->text) + at, " ");
}

/* The indentation of a line that begins at the cursor: a step further in than the line with the innermost
 * open bracket, or where nothing is open, as the line before. */
static size_t find_indent(const Buffer *b, size_t at) {
    size_t innermost, open = paint_count_open(str_text(&b->text), at, &innermost);
    size_t line = buffer_line_begin(b, open ? innermost : at);
    return count_blanks(b, line) + (open ? INDENT : 0);
}

static void break_line(Editor *e) {
    Buffer *b = &e->buffer;
    size_t indent = find_indent(b, b->cursor);
    Str text = {0};
    str_add_char(&text, '\n');
    size_t after = b->cursor + count_blanks(b, b->cursor);
    if (after < b->text.len && strchr(")]}", b->text.text[after]) && indent >= INDENT)
        indent -= INDENT;
    str_pad(&text, indent);
    buffer_replace(b, b->cursor, after, str_text(&text), text.len);
    e->auto_indent = indent;
    e->auto_line++;
}

static bool is_on_blank_line(const Buffer *b) {
    size_t begin = buffer_line_begin(b, b->cursor), end = buffer_line_end(b, b->cursor);
    return begin + count_blanks(b, begin) == end;
}

/* Blanks typed at the beginning of a line are meant instead of those put there; a closing bracket goes
 * under the line that opens it. */
static void type(Editor *e, const char *text) {
    Buffer *b = &e->buffer;
    size_t indent = e->auto_indent;
    if (indent && text[0] == ' ') {
        buffer_replace(b, b->cursor - indent, b->cursor, "", 0);
    } else if (strchr(")]}", text[0]) && is_on_blank_line(b) && b->cursor) {
        size_t begin = buffer_line_begin(b, b->cursor);
        size_t innermost, open = paint_count_open(str_text(&b->text), begin, &innermost);
        size_t wanted = open ? count_blanks(b, buffer_line_begin(b, innermost)) : 0;
        if (open && begin + wanted < b->cursor)
            buffer_replace(b, begin + wanted, b->cursor, "", 0);
    }
    buffer_insert(b, text, strlen(text));
}

static Outcome enter(Editor *e) {
    Buffer *b = &e->buffer;
    bool given_up = b->cursor == b->text.len && is_on_blank_line(b) &&
                    buffer_line_begin(b, b->cursor) > 0;
    if (given_up || e->hooks.is_complete(e->hooks.ctx, str_text(&b->text), b->text.len))
        return OUTCOME_ENTRY;
    break_line(e);
    return OUTCOME_NONE;
}

/* ---- completion ------------------------------------------------------------------------------ */

/* How many bytes all choices begin with, which ends between two characters. */
static size_t common_length(const EditChoices *c) {
    const char *first = c->list.data[0].text;
    size_t n = strlen(first);
    for (size_t i = 1; i < c->list.len; i++) {
        size_t k = 0;
        while (k < n && c->list.data[i].text[k] == first[k])
            k++;
        n = k;
    }
    while (n > 0 && (first[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* The notes of the choices on the screen. */
static void describe_list(Editor *e) {
    size_t end = e->list_from + view_list_rows(e);
    for (size_t i = e->list_from; i < end && i < e->choices.list.len; i++) {
        EditChoice *c = &e->choices.list.data[i];
        if (!c->note)
            c->note = e->hooks.describe(e->hooks.ctx, str_text(&e->buffer.text), e->choices.begin,
                                        c->text);
        if (!c->note)
            c->note = "";
    }
}

static void complete(Editor *e) {
    Buffer *b = &e->buffer;
    size_t line = buffer_line_begin(b, b->cursor);
    if (line + count_blanks(b, line) >= b->cursor) { /* nothing to complete: a step in */
        buffer_insert(b, "    ", INDENT);
        return;
    }
    EditChoices choices = {.begin = b->cursor};
    e->hooks.complete(e->hooks.ctx, str_text(&b->text), b->cursor, &choices);
    if (!choices.list.len)
        return;
    size_t common = common_length(&choices), typed = b->cursor - choices.begin;
    const char *word = choices.list.data[0].text;
    bool extends = common >= typed && strncmp(word, b->text.text + choices.begin, typed) == 0;
    if (choices.list.len == 1 || (extends && common > typed)) {
        buffer_replace(b, choices.begin, b->cursor, word, common);
        return;
    }
    e->choices = choices;
    e->list_from = 0;
    e->listing = true;
    describe_list(e);
}

static void turn_list(Editor *e) {
    e->list_from += view_list_rows(e);
    if (e->list_from >= e->choices.list.len)
        e->list_from = 0;
    describe_list(e);
}

/* At the end of the text, a motion forward takes what is offered in grey. */
static bool take_hint(Editor *e) {
    Buffer *b = &e->buffer;
    if (!e->hint.rest || b->cursor != b->text.len)
        return false;
    buffer_insert(b, e->hint.rest, strlen(e->hint.rest));
    return true;
}

/* ---- motion and removal ---------------------------------------------------------------------- */

static void move(Editor *e, size_t at) { buffer_set_cursor(&e->buffer, at); }

static void remove_back(Editor *e) {
    Buffer *b = &e->buffer;
    size_t line = buffer_line_begin(b, b->cursor);
    size_t n = b->cursor - line;
    if (n && n % INDENT == 0 && count_blanks(b, line) >= n) /* in the indentation: a step */
        buffer_replace(b, b->cursor - INDENT, b->cursor, "", 0);
    else
        buffer_replace(b, buffer_find_char(b, b->cursor, BACKWARD), b->cursor, "", 0);
}

static void remove_char(Editor *e) {
    Buffer *b = &e->buffer;
    buffer_replace(b, b->cursor, buffer_find_char(b, b->cursor, FORWARD), "", 0);
}

static size_t find_blank(const Buffer *b) {
    size_t at = b->cursor;
    while (at > 0 && strchr(" \t\n", b->text.text[at - 1]))
        at--;
    while (at > 0 && !strchr(" \t\n", b->text.text[at - 1]))
        at--;
    return at;
}

static void kill_line(Editor *e) {
    Buffer *b = &e->buffer;
    size_t end = buffer_line_end(b, b->cursor);
    buffer_kill(b, b->cursor, end > b->cursor || end == b->text.len ? end : end + 1);
}

/* Upper, lower, or capital letters up to the end of the word. */
static void change_case(Editor *e, char how) {
    Buffer *b = &e->buffer;
    size_t end = buffer_find_word(b, b->cursor, FORWARD), begin = b->cursor;
    char *text = mem_strndup(str_text(&b->text) + begin, end - begin);
    bool first = true;
    for (char *p = text; *p; p++) {
        if ((unsigned char)*p >= 0x80 || !isalpha(*p))
            continue;
        *p = (char)(how == 'U' || (how == 'C' && first) ? toupper(*p) : tolower(*p));
        first = false;
    }
    buffer_replace(b, begin, end, text, end - begin);
}

static void move_vertically(Editor *e, Direction d) {
    if (e->walking || !buffer_move_line(&e->buffer, d))
        walk_to_entry(e, d);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* A key that is no kill ends the chain of kills, and one that is no step ends the walk. */
static bool continues_walk(const Key *key) {
    bool control = key->kind == KEY_CONTROL && !key->alt;
    return key->kind == KEY_UP || key->kind == KEY_DOWN || key->kind == KEY_UNKNOWN ||
           (control && strchr("PNRS", key->text[0]));
}

static bool continues_chain(const Key *key) {
    if (key->kind == KEY_CONTROL)
        return strchr("KUWY", key->text[0]) != NULL;
    if (key->kind == KEY_TEXT)
        return key->alt && strchr("dDyY", key->text[0]) != NULL;
    return key->kind == KEY_UNKNOWN ||
           ((key->kind == KEY_BACKSPACE || key->kind == KEY_DELETE) && (key->alt || key->ctrl));
}

static Outcome press_control(Editor *e, char letter) {
    Buffer *b = &e->buffer;
    switch (letter) {
    case 'A': move(e, buffer_line_begin(b, b->cursor)); break;
    case 'B': move(e, buffer_find_char(b, b->cursor, BACKWARD)); break;
    case 'C': return OUTCOME_CANCEL;
    case 'D':
        if (!b->text.len)
            return OUTCOME_END;
        if (b->cursor == b->text.len && is_on_blank_line(b))
            return OUTCOME_CANCEL;
        remove_char(e);
        break;
    case 'E':
        if (!take_hint(e))
            move(e, buffer_line_end(b, b->cursor));
        break;
    case 'F':
        if (!take_hint(e))
            move(e, buffer_find_char(b, b->cursor, FORWARD));
        break;
    case 'K': kill_line(e); break;
    case 'L': return OUTCOME_CLEAR;
    case 'N': walk_to_entry(e, FORWARD); break;
    case 'P': walk_to_entry(e, BACKWARD); break;
    case 'R': walk_begin_search(e); break;
    case 'T': buffer_exchange_chars(b); break;
    case 'U': buffer_kill(b, buffer_line_begin(b, b->cursor), b->cursor); break;
    case 'W': buffer_kill(b, find_blank(b), b->cursor); break;
    case 'Y': buffer_yank(b); break;
    case 'Z': return OUTCOME_SUSPEND;
    case '_': buffer_undo(b); break;
    }
    return OUTCOME_NONE;
}

static void press_alt(Editor *e, char letter) {
    Buffer *b = &e->buffer;
    switch (letter) {
    case 'b':
    case 'B': move(e, buffer_find_word(b, b->cursor, BACKWARD)); break;
    case 'f':
    case 'F': move(e, buffer_find_word(b, b->cursor, FORWARD)); break;
    case 'd':
    case 'D': buffer_kill(b, b->cursor, buffer_find_word(b, b->cursor, FORWARD)); break;
    case 'u':
    case 'U': change_case(e, 'U'); break;
    case 'l':
    case 'L': change_case(e, 'L'); break;
    case 'c':
    case 'C': change_case(e, 'C'); break;
    case 'y':
    case 'Y': buffer_yank_older(b); break;
    case '<': move(e, 0); break;
    case '>': move(e, b->text.len); break;
    case '_':
    case '/': buffer_redo(b); break;
    }
}

static Outcome press(Editor *e, const Key *key) {
    Buffer *b = &e->buffer;
    bool word = key->alt || key->ctrl;
    switch (key->kind) {
    case KEY_TEXT:
        if (key->alt)
            press_alt(e, key->text[0]);
        else
            type(e, key->text);
        break;
    case KEY_CONTROL: return key->alt ? OUTCOME_NONE : press_control(e, key->text[0]);
    case KEY_ENTER:
        if (!key->alt && !key->shift && !key->ctrl)
            return enter(e);
        break_line(e);
        break;
    case KEY_TAB:
        if (!key->shift && !key->alt)
            complete(e);
        break;
    case KEY_BACKSPACE:
        if (word)
            buffer_kill(b, buffer_find_word(b, b->cursor, BACKWARD), b->cursor);
        else
            remove_back(e);
        break;
    case KEY_DELETE:
        if (word)
            buffer_kill(b, b->cursor, buffer_find_word(b, b->cursor, FORWARD));
        else
            remove_char(e);
        break;
    case KEY_UP: move_vertically(e, BACKWARD); break;
    case KEY_DOWN: move_vertically(e, FORWARD); break;
    case KEY_LEFT:
        move(e, word ? buffer_find_word(b, b->cursor, BACKWARD)
                     : buffer_find_char(b, b->cursor, BACKWARD));
        break;
    case KEY_RIGHT:
        if (!take_hint(e))
            move(e, word ? buffer_find_word(b, b->cursor, FORWARD)
                         : buffer_find_char(b, b->cursor, FORWARD));
        break;
    case KEY_HOME: move(e, word ? 0 : buffer_line_begin(b, b->cursor)); break;
    case KEY_END:
        if (!take_hint(e))
            move(e, word ? b->text.len : buffer_line_end(b, b->cursor));
        break;
    case KEY_PASTE: return OUTCOME_PASTE;
    case KEY_ESCAPE:
    case KEY_PAGE_UP:
    case KEY_PAGE_DOWN:
    case KEY_UNKNOWN: break;
    }
    return OUTCOME_NONE;
}

Outcome editor_press(Editor *e, const Key *key) {
    if (key->kind == KEY_UNKNOWN)
        return OUTCOME_NONE;
    if (e->searching && walk_press(e, key))
        return OUTCOME_NONE;
    if (e->listing && key->kind == KEY_TAB) {
        turn_list(e);
        return OUTCOME_NONE;
    }
    e->listing = false;
    if (!continues_walk(key))
        walk_end(e);
    if (!continues_chain(key))
        buffer_end_chain(&e->buffer);
    size_t line = e->auto_line;
    Outcome outcome = press(e, key);
    if (e->auto_line == line) /* no other line was begun */
        e->auto_indent = 0;
    return outcome;
}
