/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "repl/prompt.h"

#include "repl/commands.h"
#include "repl/editor.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

typedef struct Prompt {
    Session *session;
    Editor *editor;
    Str entry;              /* the lines read so far of an item that goes on */
    struct timespec cancel; /* when Ctrl-C was last pressed on an empty line */
} Prompt;

static void complete(void *ctx, const char *text, size_t len, EditWords *out, size_t *begin) {
    Prompt *p = ctx;
    TextVec words = {0};
    if (text[0] == ':' && !memchr(text, ' ', len)) {
        *begin = 0;
        command_complete(text, len, &words);
    } else {
        session_complete(p->session, text, len, &words, begin);
    }
    for (size_t i = 0; i < words.len; i++)
        vec_push(out, words.data[i]);
}

/* What people type who know other prompts; not names here unless they are defined. */
static const char *find_pointer(Session *s, const char *line) {
    static const struct {
        const char *word, *answer;
    } pointers[] = {
        {"exit", "Ctrl-D or :quit leaves"},
        {"exit()", "Ctrl-D or :quit leaves"},
        {"help", ":help lists the commands, :doc NAME explains a name"},
        {"quit", "Ctrl-D or :quit leaves"},
        {"quit()", "Ctrl-D or :quit leaves"},
    };
    if (line[0] == '?')
        return ":doc NAME explains a name, :info NAME says what it is";
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        if (strcmp(line, pointers[i].word) == 0) {
            size_t n = strcspn(line, "(");
            bool bound = env_find(session_env(s), sym_intern_n(line, n), SIGIL_NONE).kind !=
                         BIND_NONE;
            return bound ? NULL : pointers[i].answer;
        }
    return NULL;
}

static bool is_blank(const char *text) { return text[strspn(text, " \t\r\n")] == '\0'; }

/* An entry as one line of history. Line breaks inside an unfinished item mean nothing, so they become
 * blanks; an entry with a comment keeps its lines apart. */
static void remember(Prompt *p, const char *entry) {
    bool comment = strstr(entry, "//") != NULL;
    Str line = {0};
    for (const char *c = entry;; c++) {
        if (*c == '\0' || (*c == '\n' && comment)) {
            if (!is_blank(str_text(&line)))
                editor_remember(p->editor, str_text(&line));
            line = (Str){0};
            if (!*c)
                return;
        } else {
            str_add_char(&line, *c == '\n' ? ' ' : *c);
        }
    }
}

static void on_cancel(Prompt *p) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!p->entry.len && p->cancel.tv_sec && now.tv_sec - p->cancel.tv_sec <= 2)
        puts("Ctrl-D or :quit leaves");
    p->cancel = now;
    p->entry = (Str){0};
}

/* One line or paste; false to leave. */
static bool take(Prompt *p, const char *line, bool paste) {
    bool begins = p->entry.len == 0;
    if (begins && is_blank(line))
        return true;
    if (begins && line[0] == ':') {
        editor_remember(p->editor, line);
        return command_run(p->session, line) == COMMAND_DONE;
    }
    const char *pointer = begins ? find_pointer(p->session, line) : NULL;
    if (pointer) {
        puts(pointer);
        return true;
    }
    bool drop = !begins && !paste && is_blank(line);
    if (!drop) {
        if (p->entry.len)
            str_add_char(&p->entry, '\n');
        str_add(&p->entry, line);
    }
    session_set_width(p->session, terminal_width(STDOUT_FILENO), terminal_width(STDERR_FILENO));
    SessionStatus status = session_enter(p->session, str_text(&p->entry), p->entry.len, !drop);
    if (status == SESSION_INCOMPLETE)
        return true;
    remember(p, str_text(&p->entry));
    p->entry = (Str){0};
    return true;
}

int prompt_run(Session *s) {
    Prompt *p = mem_new(Prompt);
    mem_pin(p);
    p->session = s;
    p->editor = editor_new(complete, p);
    puts("Relay " PACKAGE_VERSION "   :help for commands, Ctrl-D to leave");
    for (bool go_on = true; go_on;) {
        Str line;
        fflush(stdout);
        switch (editor_read(p->editor, p->entry.len ? "  ...> " : "relay> ", &line)) {
        case EDIT_LINE: go_on = take(p, str_text(&line), false); break;
        case EDIT_PASTE: go_on = take(p, str_text(&line), true); break;
        case EDIT_CANCEL: on_cancel(p); break;
        case EDIT_END:
            putchar('\n');
            go_on = false;
            break;
        }
    }
    editor_fini(p->editor);
    mem_unpin(p);
    return 0;
}
