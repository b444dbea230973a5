/* SPDX-License-Identifier: Apache-2.0 */
/* What the editor shows: the prompt, the entry in colours, a hint in grey, a list of completions. */
#include "repl/line/editor_internal.h"

#include <string.h>
#include <unistd.h>

#include "repl/line/paint.h"
#include "repl/line/terminal.h"

static size_t text_columns(const char *text) { return text_width(text, strlen(text)); }

/* As much of a note as the row has room for. */
static void add_note(Screen *s, const char *note, size_t room) {
    size_t n = strcspn(note, "\n"), columns;
    if (note[n] == '\0' && text_width(note, n) <= room) {
        screen_add(s, note, n, STYLE_HINT);
        return;
    }
    if (room < 8)
        return;
    size_t at = 0;
    for (size_t width = 0; at < n; width += columns) {
        size_t len = text_first_cluster(note + at, n - at, &columns);
        if (width + columns + 2 > room)
            break;
        at += len;
    }
    screen_add(s, note, at, STYLE_HINT);
    screen_add(s, "..", 2, STYLE_HINT);
}

static void add_line_note(Editor *e) {
    Screen *s = &e->screen;
    if (!e->hint.note || screen_room(s) < 14)
        return;
    screen_add(s, "   ", 3, STYLE_PLAIN);
    add_note(s, e->hint.note, screen_room(s) - 1);
}

/* The text with its prompts and colours; the cursor is marked at its place. */
static void add_text(Editor *e, const char *text, size_t len, size_t cursor, bool hints) {
    Screen *s = &e->screen;
    uint8_t *styles = mem_bytes(len + 1);
    memset(styles, 0, len + 1);
    if (s->colors)
        paint_text(text, len, hints ? cursor : SIZE_MAX, styles);
    size_t noted = buffer_line_end(&e->buffer, e->buffer.cursor);
    for (size_t i = 0; i <= len;) {
        if (i == cursor) {
            screen_mark_cursor(s);
            if (hints && e->hint.rest && cursor == len)
                screen_add(s, e->hint.rest, strlen(e->hint.rest), STYLE_HINT);
        }
        if (hints && i == noted)
            add_line_note(e);
        if (i == len)
            break;
        if (text[i] == '\n') {
            screen_add(s, "\n", 1, STYLE_PLAIN);
            screen_add(s, editor_prompt_more, strlen(editor_prompt_more), STYLE_PROMPT);
            i++;
            continue;
        }
        size_t columns, n = 0, from = i;
        do
            n += text_first_cluster(text + from + n, len - from - n, &columns);
        while (from + n < len && from + n != cursor && text[from + n] != '\n' &&
               styles[from + n] == styles[from]);
        screen_add(s, text + from, n, styles[from]);
        i = from + n;
    }
}

enum { LIST_ROWS = 10 };

size_t view_list_rows(const Editor *e) {
    size_t most = e->screen.height > 4 ? e->screen.height / 2 : 1;
    return most < LIST_ROWS ? most : LIST_ROWS;
}

static void add_list(Editor *e) {
    Screen *s = &e->screen;
    size_t end = e->list_from + view_list_rows(e), widest = 0;
    if (end > e->choices.list.len)
        end = e->choices.list.len;
    for (size_t i = e->list_from; i < end; i++) {
        size_t w = text_columns(e->choices.list.data[i].text);
        widest = w > widest ? w : widest;
    }
    if (widest > s->columns / 2)
        widest = s->columns / 2;
    for (size_t i = e->list_from; i < end; i++) {
        const EditChoice *c = &e->choices.list.data[i];
        Str name = {0};
        str_add(&name, c->text);
        str_pad(&name, widest);
        screen_add(s, "\n  ", 3, STYLE_PLAIN);
        screen_add(s, name.text, name.len, STYLE_PLAIN);
        if (c->note && screen_room(s) > 12) {
            screen_add(s, "  ", 2, STYLE_PLAIN);
            add_note(s, c->note, screen_room(s) - 1);
        }
    }
    if (e->choices.list.len > view_list_rows(e)) {
        size_t rest = e->choices.list.len - end;
        const char *more = rest ? fmt_text("\n  and %zu more: Tab", rest) : "\n  the last of them";
        screen_add(s, more, strlen(more), STYLE_HINT);
    }
}

void view_draw(Editor *e, bool plain) {
    Screen *s = &e->screen;
    Buffer *b = &e->buffer;
    Str out = {0};
    int width = terminal_width(STDOUT_FILENO);
    size_t height = plain ? SIZE_MAX : (size_t)terminal_height();
    screen_begin(s, width > 0 ? (size_t)width : 80, height);
    if (e->searching && !plain) {
        const char *prompt = fmt_text("search `%s`: ", str_text(&e->query));
        screen_add(s, prompt, strlen(prompt), STYLE_PROMPT);
    } else {
        screen_add(s, editor_prompt, strlen(editor_prompt), STYLE_PROMPT);
    }
    add_text(e, str_text(&b->text), b->text.len, plain ? b->text.len : b->cursor, !plain);
    if (e->listing && !plain)
        add_list(e);
    screen_show(s, &out);
    terminal_write(str_text(&out), out.len);
}

void view_leave(Editor *e, const char *mark) {
    Str out = {0};
    if (e->screen.drawn.rows.len >= e->screen.height) /* maybe a part: it is written whole */
        screen_erase(&e->screen, &out);
    terminal_write(str_text(&out), out.len);
    view_draw(e, true);
    out = (Str){0};
    str_add(&out, mark);
    screen_leave(&e->screen, &out);
    terminal_write(str_text(&out), out.len);
}
