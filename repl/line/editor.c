/* SPDX-License-Identifier: Apache-2.0 */
/* A key changes the buffer, and the frame is built anew from it. A hint may take longer to find than a
 * key to show, so it is asked for only when no further key waits, and what was typed stands there
 * before it. */
#include "repl/line/editor_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "repl/line/paste.h"
#include "repl/line/terminal.h"

const char editor_prompt[] = "relay> ", editor_prompt_more[] = "  ...> ";

enum { ESCAPE_PAUSE = 50 }; /* milliseconds after which ESC is a key by itself */

Editor *editor_new(const EditHooks *hooks, bool colors) {
    Editor *e = mem_new(Editor);
    e->hooks = *hooks;
    e->on_screen = terminal_can_edit();
    e->screen.colors = colors;
    history_open(&e->history);
    return e;
}

bool editor_is_screen(const Editor *e) { return e->on_screen; }

History *editor_history(Editor *e) { return &e->history; }

void editor_remember(Editor *e, const char *entry) { history_add(&e->history, entry); }

/* ---- plain lines ----------------------------------------------------------------------------- */

/* EINTR is Ctrl-C: the handler is installed without SA_RESTART. */
static EditStatus read_plain(const char *prompt, Str *line) {
    fputs(prompt, stdout);
    fflush(stdout);
    for (;;) {
        char c;
        ssize_t n = read(STDIN_FILENO, &c, 1);
        if (n < 0 && errno == EINTR) {
            fputs("\n", stdout);
            return EDIT_CANCEL;
        }
        if (n <= 0)
            return line->len ? EDIT_LINE : EDIT_END;
        if (c == '\n')
            return EDIT_LINE;
        str_add_char(line, c);
    }
}

/* ---- pastes ---------------------------------------------------------------------------------- */

/* The bytes up to ESC [ 201 ~, which may never come: Ctrl-C ends it too. */
static void read_paste(Editor *e, Str *out) {
    static const char end[] = "\033[201~";
    size_t n = sizeof end - 1;
    Str text = {0};
    for (;;) {
        for (; e->used < e->ninput; e->used++) {
            char c = e->input[e->used];
            if (c == '\003') {
                e->used++;
                return;
            }
            str_add_char(&text, c);
            if (c == '~' && text.len >= n && memcmp(text.text + text.len - n, end, n) == 0) {
                e->used++;
                paste_clean(text.text, text.len - n, out);
                return;
            }
        }
        e->used = 0;
        e->ninput = sizeof e->input;
        TerminalEvent event = terminal_read(e->input, &e->ninput, -1);
        if (event != TERMINAL_BYTES)
            e->ninput = 0;
        if (event == TERMINAL_GONE || event == TERMINAL_INTERRUPT)
            return;
    }
}

/* A paste within a line is as if typed. Of several lines it goes to the caller, with what stood around
 * it. */
static bool take_paste(Editor *e, Str *entry) {
    Buffer *b = &e->buffer;
    Str text = {0};
    read_paste(e, &text);
    if (!text.len || !memchr(text.text, '\n', text.len)) {
        buffer_insert(b, str_text(&text), text.len);
        return false;
    }
    str_add_n(entry, str_text(&b->text), b->cursor);
    str_add_n(entry, text.text, text.len);
    str_add(entry, str_text(&b->text) + b->cursor);
    return true;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void redraw_after_wake(Editor *e) {
    Str out = {0};
    int width = terminal_width(STDOUT_FILENO);
    if (terminal_was_stopped())
        screen_forget(&e->screen);
    else if ((size_t)width != e->screen.columns)
        screen_resize(&e->screen, (size_t)width, &out);
    terminal_write(str_text(&out), out.len);
    view_draw(e, false);
}

void editor_clear(Editor *e) {
    static const char clear[] = "\033[H\033[2J";
    if (e->on_screen)
        terminal_write(clear, sizeof clear - 1);
    screen_forget(&e->screen);
}

/* What an outcome means for the reading: true when it ends, with *status. */
static bool act(Editor *e, Outcome outcome, Str *entry, EditStatus *status) {
    Str out = {0};
    switch (outcome) {
    case OUTCOME_NONE: return false;
    case OUTCOME_ENTRY:
        view_leave(e, "");
        str_add(entry, str_text(&e->buffer.text));
        *status = EDIT_ENTRY;
        return true;
    case OUTCOME_CANCEL:
        view_leave(e, "^C");
        *status = EDIT_CANCEL;
        return true;
    case OUTCOME_END:
        view_leave(e, "");
        *status = EDIT_END;
        return true;
    case OUTCOME_SUSPEND:
        view_leave(e, "");
        terminal_suspend();
        return false;
    case OUTCOME_CLEAR: editor_clear(e); return false;
    case OUTCOME_PASTE:
        if (!take_paste(e, entry))
            return false;
        screen_erase(&e->screen, &out);
        terminal_write(str_text(&out), out.len);
        *status = EDIT_PASTE;
        return true;
    }
    return false;
}

/* Feeds the bytes that were read; true when they end the reading. */
static bool feed(Editor *e, Str *entry, EditStatus *status) {
    Key key;
    while (e->used < e->ninput)
        if (keys_feed(&e->keys, (unsigned char)e->input[e->used++], &key)) {
            e->hint = (EditHint){e->used < e->ninput ? NULL : e->hint.rest, NULL};
            Outcome outcome = editor_press(e, &key);
            e->hint = (EditHint){0};
            if (act(e, outcome, entry, status))
                return true;
        }
    return false;
}

static void find_hint(Editor *e) {
    const Buffer *b = &e->buffer;
    e->hint = (EditHint){0};
    if (e->screen.colors && b->text.len && !e->searching && !e->listing)
        e->hooks.hint(e->hooks.ctx, str_text(&b->text), b->text.len, b->cursor, &e->hint);
}

static EditStatus edit(Editor *e, Str *entry) {
    EditStatus status = EDIT_END;
    bool wants_hint = e->buffer.text.len > 0;
    Key key;
    for (;;) {
        if (e->used < e->ninput) {
            if (feed(e, entry, &status))
                return status;
            view_draw(e, false);
            wants_hint = true;
        }
        e->used = 0;
        e->ninput = sizeof e->input;
        bool pending = keys_are_pending(&e->keys);
        TerminalEvent event = terminal_read(e->input, &e->ninput,
                                            wants_hint ? 0
                                            : pending  ? ESCAPE_PAUSE
                                                       : -1);
        if (event != TERMINAL_BYTES)
            e->ninput = 0;
        switch (event) {
        case TERMINAL_BYTES: break;
        case TERMINAL_PAUSE:
            if (wants_hint) {
                wants_hint = false;
                find_hint(e);
            } else if (keys_flush(&e->keys, &key)) {
                act(e, editor_press(e, &key), entry, &status);
            }
            view_draw(e, false);
            break;
        case TERMINAL_WOKEN: redraw_after_wake(e); break;
        case TERMINAL_INTERRUPT: act(e, OUTCOME_CANCEL, entry, &status); return status;
        case TERMINAL_GONE: return EDIT_END;
        }
    }
}

EditStatus editor_read(Editor *e, bool more, const char *initial, Str *entry) {
    *entry = (Str){0};
    if (!e->on_screen || !terminal_enter())
        return read_plain(more ? editor_prompt_more : editor_prompt, entry);
    buffer_set(&e->buffer, initial, strlen(initial));
    walk_end(e);
    e->listing = false;
    e->auto_indent = 0;
    e->hint = (EditHint){0};
    screen_forget(&e->screen);
    if (e->used >= e->ninput)
        view_draw(e, false);
    EditStatus status = edit(e, entry);
    terminal_leave();
    return status;
}

void editor_echo(Editor *e, const char *text, size_t len) {
    buffer_set(&e->buffer, text, len);
    screen_forget(&e->screen);
    view_leave(e, "");
}
