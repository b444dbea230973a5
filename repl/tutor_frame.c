/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/tutor_frame.h"

#include <string.h>

#include "repl/commands.h"
#include "repl/session_internal.h"

/* ---- paragraphs ------------------------------------------------------------------------------ */

/* The words of a line in lines of at most `width` columns, each behind `margin`; a list item hangs. */
static void add_filled(Str *out, const char *text, size_t n, const char *margin, size_t width) {
    size_t column = 0, hang = n > 2 && strncmp(text, "- ", 2) == 0 ? 2 : 0;
    str_add(out, margin);
    for (size_t i = 0; i < n;) {
        size_t len = strcspn(text + i, " \n"), columns = text_width(text + i, len);
        if (column && column + 1 + columns > width) {
            str_printf(out, "\n%s%*s", margin, (int)hang, "");
            column = hang;
        } else if (column) {
            str_add_char(out, ' ');
            column++;
        }
        str_add_n(out, text + i, len);
        column += columns;
        i += len + strspn(text + i + len, " ");
    }
    str_add_char(out, '\n');
}

/* Lines that begin with a blank stay as they are. */
static void add_paragraph(Str *out, const char *text, const char *margin, size_t width) {
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (*text == ' ')
            str_printf(out, "%.*s\n", (int)n, text);
        else
            add_filled(out, text, n, margin, width - strlen(margin));
    }
}

static size_t width_of(const Session *s) {
    int width = s->options.width;
    return width >= 20 && width < FRAME_WIDTH ? (size_t)width : FRAME_WIDTH;
}

void frame_say(Session *s, const char *paragraph) {
    Str out = {0};
    add_paragraph(&out, paragraph, "", width_of(s));
    session_say(s, str_text(&out));
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void drop_text(void *ctx, const char *text, size_t n) { (void)ctx, (void)text, (void)n; }

static void enter_unseen(Session *s, const char *text) {
    SessionSink quiet = {drop_text, drop_text, NULL, true}, sink = session_swap_sink(s, &quiet);
    command_enter_lines(s, text, false);
    session_set_sink(s, &sink);
}

void frame_show(Session *s, const Frame *frame) {
    for (size_t i = 0; i < frame->blocks.len; i++) {
        const Block *b = &frame->blocks.data[i];
        Str out = {0};
        switch (b->kind) {
        case BLOCK_TEXT: add_paragraph(&out, b->text, "", width_of(s)); break;
        case BLOCK_TASK: add_paragraph(&out, b->text, "  > ", width_of(s)); break;
        case BLOCK_SHOW: command_enter_lines(s, b->text, true); break;
        case BLOCK_SETUP: enter_unseen(s, b->text); continue;
        }
        session_say(s, fmt_text("%s\n", str_text(&out)));
    }
}

void frame_run(Session *s, const Frame *frame) {
    for (size_t i = 0; i < frame->blocks.len; i++) {
        const Block *b = &frame->blocks.data[i];
        if (b->kind == BLOCK_SHOW || b->kind == BLOCK_SETUP)
            enter_unseen(s, b->text);
    }
}

void frame_enter_answer(Session *s, const Frame *frame) {
    if (frame->answer && frame->error == DIAG_NONE && frame->answer[0] != ':')
        enter_unseen(s, frame->answer);
}

void frame_show_answer(Session *s, const Frame *frame) {
    if (frame->answer)
        command_enter_lines(s, frame->answer, true);
}
