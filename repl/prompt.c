/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "repl/prompt.h"

#include "repl/commands.h"
#include "repl/complete.h"
#include "repl/edit.h"
#include "repl/line/editor.h"
#include "repl/line/place.h"
#include "repl/line/terminal.h"
#include "repl/pieces.h"
#include "repl/session_internal.h"
#include "repl/tutor.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

typedef struct Prompt {
    Session *main;    /* of the whole sitting */
    Session *session; /* what is typed now goes here: `main`, or a lesson's */
    Tutor *tutor;
    Editor *editor;
    Str entry;                /* plain lines: those read so far of an item that goes on */
    VEC(const char *) worked; /* entries, for :save */
    const char *last;         /* entry, whether it worked or not, for :edit; or NULL */
    const char *initial;      /* what stands in the next line to begin with */
    struct timespec cancel;   /* when Ctrl-C was last pressed on an empty line */
} Prompt;

/* ---- what the editor asks -------------------------------------------------------------------- */

static bool is_complete(void *ctx, const char *text, size_t len) {
    Prompt *p = ctx;
    return text[0] == ':' || session_read_status(p->session, text, len) != PARSE_INCOMPLETE;
}

static void complete(void *ctx, const char *text, size_t len, EditChoices *out) {
    Prompt *p = ctx;
    Completions found = {0};
    complete_text(p->session, text, len, &found);
    out->begin = found.begin;
    for (size_t i = 0; i < found.list.len; i++) {
        EditChoice choice = {found.list.data[i].text, found.list.data[i].note};
        vec_push(&out->list, choice);
    }
}

static const char *describe(void *ctx, const char *text, size_t len, const char *word) {
    Prompt *p = ctx;
    size_t n = len; /* a member is described by its whole name */
    while (n > 0 && (isalnum((unsigned char)text[n - 1]) || strchr("_.", text[n - 1])))
        n--;
    return complete_describe(p->session, fmt_text("%.*s%s", (int)(len - n), text + n, word));
}

/* The rest of the only word there is, and what the name at the cursor is. */
static void hint(void *ctx, const char *text, size_t len, size_t cursor, EditHint *out) {
    Prompt *p = ctx;
    Completions found = {0};
    *out = (EditHint){0};
    if (cursor == len && (isalnum((unsigned char)text[len - 1]) || text[len - 1] == '_')) {
        complete_text(p->session, text, len, &found);
        size_t typed = len - found.begin;
        if (found.list.len == 1 && typed >= 2 && strlen(found.list.data[0].text) > typed)
            out->rest = found.list.data[0].text + typed;
    }
    if (!out->rest)
        out->note = complete_hint(p->session, text, len, cursor);
}

/* ---- entries --------------------------------------------------------------------------------- */

static bool is_blank(const char *text) { return text[strspn(text, " \t\r\n")] == '\0'; }

/* Of an entry without the blanks and the empty lines at its end. */
static size_t length_without_end(const char *entry) {
    size_t n = strlen(entry);
    while (n && strchr(" \t\n", entry[n - 1]))
        n--;
    return n;
}

static void remember(Prompt *p, const char *entry) {
    editor_remember(p->editor, mem_strndup(entry, length_without_end(entry)));
}

static void set_width(Prompt *p) {
    int width = terminal_width(STDOUT_FILENO), diag_width = terminal_width(STDERR_FILENO);
    session_set_width(p->main, width, diag_width);
    if (p->session != p->main)
        session_set_width(p->session, width, diag_width);
}

static void on_cancel(Prompt *p) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!p->entry.len && p->cancel.tv_sec && now.tv_sec - p->cancel.tv_sec <= 2)
        puts("Ctrl-D or :quit leaves");
    p->cancel = now;
    p->entry = (Str){0};
}

static void print_history(Prompt *p, const char *argument) {
    History *h = editor_history(p->editor);
    size_t want = *argument ? strtoul(argument, NULL, 10) : 20, from = h->items.len;
    history_refresh(h);
    from = h->items.len;
    for (size_t n = 0; from > 0 && n < want; from--)
        n += h->items.data[from - 1] != NULL;
    for (; from < h->items.len; from++)
        if (h->items.data[from])
            puts(h->items.data[from]->text);
}

/* `def f` of an entry that defines f; NULL for others. */
static const char *definition_head(const char *entry) {
    size_t word = strncmp(entry, "def ", 4) == 0 ? 4 : strncmp(entry, "type ", 5) == 0 ? 5 : 0;
    size_t n = word;
    while (word && (isalnum((unsigned char)entry[n]) || strchr("_@%", entry[n])) && entry[n])
        n++;
    return word ? mem_strndup(entry, n) : NULL;
}

/* Whether a later entry defines the same anew, which a file may not do. */
static bool is_superseded(const Prompt *p, size_t i) {
    const char *head = definition_head(p->worked.data[i]);
    for (size_t k = i + 1; head && k < p->worked.len; k++) {
        const char *later = definition_head(p->worked.data[k]);
        if (later && strcmp(head, later) == 0)
            return true;
    }
    return false;
}

/* Whether an entry speaks of the value shown before it, which a file has not. */
static bool mentions_it(const char *entry) {
    for (const char *at = entry; (at = strstr(at, "it")); at += 2) {
        bool begins = at == entry || !(isalnum((unsigned char)at[-1]) || strchr("_.", at[-1]));
        if (begins && !isalnum((unsigned char)at[2]) && at[2] != '_')
            return true;
    }
    return false;
}

/* Each entry as an item of a file, where a line break ends it too. */
static void save_entries(Prompt *p, const char *path) {
    FILE *f = fopen(path, "wx");
    if (!f) {
        fprintf(stderr, errno == EEXIST ? "`%s` is there already\n" : "cannot write `%s`\n", path);
        return;
    }
    size_t written = 0;
    for (size_t i = 0; i < p->worked.len; i++) {
        const char *entry = p->worked.data[i];
        if (is_superseded(p, i) || mentions_it(entry))
            continue;
        fprintf(f, "%s\n", entry);
        written++;
    }
    bool lost = ferror(f);
    if (fclose(f) != 0 || lost)
        fprintf(stderr, "cannot write `%s`\n", path);
    else
        printf("%zu entries in `%s`\n", written, path);
}

/* Whether an entry binds this name. */
static bool defines(const char *entry, const char *name) {
    static const char *const words[] = {"def ", "let ", "type "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = entry + strlen(words[i]);
        if (strncmp(entry, words[i], strlen(words[i])) != 0)
            continue;
        at += strspn(at, " @");
        size_t n = strlen(name);
        return strncmp(at, name, n) == 0 && !isalnum((unsigned char)at[n]) && at[n] != '_';
    }
    return false;
}

/* The item of the file or entry from which a name of the session has its definition; NULL: it has none. */
static const char *find_item_of(Session *s, const char *name) {
    Binding b = env_find(session_env(s), sym_intern(name), SIGIL_NONE);
    Span at = b.kind == BIND_GLOBAL ? b.global->span : span_none();
    if (!at.source || (at.source->flags & SOURCE_INTERNAL))
        return NULL;
    PieceVec pieces = {0};
    Str text = {0}; /* the last item of a file may be without a line break */
    str_add_n(&text, at.source->text, at.source->len);
    str_add_char(&text, '\n');
    pieces_cut(s, str_text(&text), text.len, &pieces);
    for (size_t i = 0; i < pieces.len; i++)
        if (pieces.data[i].begin <= at.begin && at.begin < pieces.data[i].end)
            return mem_strndup(text.text + pieces.data[i].begin,
                               pieces.data[i].end - pieces.data[i].begin);
    return NULL;
}

static const char *find_entry(const Prompt *p, const char *name) {
    if (!*name)
        return p->last;
    for (size_t i = p->worked.len; i-- > 0;)
        if (defines(p->worked.data[i], name))
            return p->worked.data[i];
    return find_item_of(p->session, name);
}

static bool take_paste(Prompt *p, const char *text, size_t len);

/* False to leave. */
static bool edit_entry(Prompt *p, const char *name) {
    const char *entry = find_entry(p, name), *why;
    Str text = {0};
    if (!entry) {
        if (*name)
            session_complain(p->session, "`%s` is not defined by an entry or a file\n", name);
        else
            session_complain(p->session, "nothing was entered yet\n");
        return true;
    }
    entry = fmt_text("%s\n", mem_strndup(entry, length_without_end(entry)));
    if ((why = edit_text(entry, &text))) {
        session_complain(p->session, "%s; nothing is entered\n", why);
        return true;
    }
    if (strcmp(str_text(&text), entry) == 0) {
        session_say(p->session, "nothing was changed\n");
        return true;
    }
    str_add_char(&text, '\n');
    return take_paste(p, str_text(&text), text.len);
}

static void choose_session(Prompt *p) {
    Session *lesson = tutor_session(p->tutor);
    p->session = lesson ? lesson : p->main;
}

/* False to leave. */
static bool do_command(Prompt *p, const char *line) {
    const char *argument;
    switch (command_run(p->session, line, &argument)) {
    case COMMAND_DONE: break;
    case COMMAND_QUIT: return false;
    case COMMAND_CLEAR: editor_clear(p->editor); break;
    case COMMAND_EDIT: return edit_entry(p, argument);
    case COMMAND_HISTORY: print_history(p, argument); break;
    case COMMAND_SAVE: save_entries(p, argument); break;
    case COMMAND_TUTOR:
        tutor_command(p->tutor, argument);
        choose_session(p);
        return true;
    }
    if (tutor_session(p->tutor))
        tutor_take_entry(p->tutor, line);
    choose_session(p);
    return true;
}

static bool run_command(Prompt *p, const char *line) {
    remember(p, line);
    return do_command(p, line);
}

static void enter(Prompt *p, const char *text, size_t len) {
    p->last = mem_strndup(text, len);
    bool worked = session_enter(p->session, text, len, false) == SESSION_OK;
    if (tutor_session(p->tutor))
        tutor_take_entry(p->tutor, mem_strndup(text, len));
    else if (worked)
        vec_push(&p->worked, mem_strndup(text, len));
    choose_session(p);
}

/* A whole entry; false to leave. */
static bool take_entry(Prompt *p, const char *text) {
    set_width(p);
    if (is_blank(text)) {
        tutor_take_empty(p->tutor);
        choose_session(p);
        return true;
    }
    if (text[0] == ':')
        return run_command(p, text);
    if (tutor_is_word(p->tutor, text)) {
        tutor_command(p->tutor, text);
        choose_session(p);
        return true;
    }
    const char *pointer = command_pointer(p->session, text);
    if (pointer) {
        puts(pointer);
        return true;
    }
    remember(p, text);
    enter(p, text, length_without_end(text));
    return true;
}

/* One line where there is no editor; false to leave. */
static bool take_line(Prompt *p, const char *line) {
    bool begins = p->entry.len == 0, blank = is_blank(line);
    if (begins && (blank || line[0] == ':' || command_pointer(p->session, line)))
        return take_entry(p, line);
    if (!begins && !blank)
        str_add_char(&p->entry, '\n');
    if (!blank)
        str_add(&p->entry, line);
    if (!blank && !is_complete(p, str_text(&p->entry), p->entry.len))
        return true;
    Str entry = p->entry;
    p->entry = (Str){0};
    return take_entry(p, str_text(&entry));
}

/* ---- pastes ---------------------------------------------------------------------------------- */

/* Shows what was pasted; of more lines than a screen has, the first ones. */
static void echo(Prompt *p, const char *text, size_t len) {
    enum { SHOWN = 10 };
    size_t lines = 0, head = 0, most = (size_t)terminal_height();
    while (len && text[len - 1] == '\n')
        len--;
    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    if (lines + 1 <= most || lines < 4 * SHOWN) {
        editor_echo(p->editor, text, len);
        return;
    }
    for (size_t n = 0; n < SHOWN; n++)
        head += strcspn(text + head, "\n") + 1;
    editor_echo(p->editor, text, head - 1);
    printf("  ...> and %zu more lines\n", lines + 1 - SHOWN);
}

static void enter_piece(Prompt *p, const char *text, const Piece *piece) {
    size_t end = piece->end;
    while (end > piece->begin && text[end - 1] == '\n')
        end--;
    enter(p, text + piece->begin, end - piece->begin);
}

/* How many pieces from here on are definitions that may mention each other. */
static size_t count_definitions(const char *text, const Piece *pieces, size_t n) {
    size_t count = 0;
    for (; count < n && pieces[count].kind == PIECE_ITEMS; count++) {
        const char *item = text + pieces[count].begin;
        if (strncmp(item, "def ", 4) != 0 && strncmp(item, "type ", 5) != 0)
            break;
    }
    return count;
}

/* Runs the pieces; false to leave. Definitions side by side are tried together, and one by one when that
 * fails. */
static bool run_pieces(Prompt *p, const char *text, const Piece *pieces, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const Piece *piece = &pieces[i];
        size_t end = i + count_definitions(text, piece, n - i);
        if (piece->kind == PIECE_COMMAND) {
            const char *line = mem_strndup(text + piece->begin, piece->end - piece->begin);
            if (!do_command(p, line))
                return false;
        } else if (end > i + 1 &&
                   session_try_definitions(p->session, text + piece->begin,
                                           pieces[end - 1].end - piece->begin) == SESSION_OK) {
            vec_push(&p->worked,
                     mem_strndup(text + piece->begin, pieces[end - 1].end - piece->begin));
            i = end - 1;
        } else {
            do
                enter_piece(p, text, &pieces[i]);
            while (++i < end);
            i--;
        }
        if (session_was_interrupted(p->session)) /* Ctrl-C gives up the rest too */
            break;
    }
    return true;
}

/* Runs what was pasted and is complete, and leaves the rest to be edited. False to leave. */
static bool take_paste(Prompt *p, const char *text, size_t len) {
    enum { MOST_REMEMBERED = 100 };
    PieceVec pieces = {0};
    set_width(p);
    pieces_cut(p->session, text, len, &pieces);
    size_t n = pieces.len, done = len;
    if (n && pieces.data[n - 1].kind == PIECE_OPEN)
        done = pieces.data[--n].begin;
    if (done < len)
        p->initial = text + done;
    if (n)
        echo(p, text, done);
    for (size_t i = n > MOST_REMEMBERED ? n - MOST_REMEMBERED : 0; i < n; i++)
        remember(
            p, mem_strndup(text + pieces.data[i].begin, pieces.data[i].end - pieces.data[i].begin));
    return run_pieces(p, text, pieces.data, n);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void run_loop(void *arg) {
    Prompt *p = arg;
    for (bool go_on = true; go_on;) {
        Str text;
        fflush(stdout);
        const char *initial = p->initial;
        p->initial = "";
        switch (editor_read(p->editor, p->entry.len > 0, initial, &text)) {
        case EDIT_ENTRY: go_on = take_entry(p, str_text(&text)); break;
        case EDIT_LINE: go_on = take_line(p, str_text(&text)); break;
        case EDIT_PASTE: go_on = take_paste(p, str_text(&text), text.len); break;
        case EDIT_CANCEL: on_cancel(p); break;
        case EDIT_END:
            if (!editor_is_screen(p->editor))
                putchar('\n');
            go_on = p->entry.len > 0; /* it drops an unfinished entry first */
            p->entry = (Str){0};
            break;
        }
    }
}

/* $XDG_CONFIG_HOME/relay/init.rly: what is said of it is mistakes alone. */
static void run_init_file(Session *s) {
    enum { MOST_BYTES = 1 << 20 };
    const char *path = place_of_settings("init.rly");
    FILE *f = path ? fopen(path, "r") : NULL;
    Str text = {0};
    char buffer[4096];
    for (size_t n; f && text.len < MOST_BYTES && (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        str_add_n(&text, buffer, n);
    if (f)
        fclose(f);
    if (text.len)
        command_enter_quietly(s, str_text(&text));
}

int prompt_run(Session *s, bool colors) {
    Prompt *p = mem_new(Prompt);
    EditHooks hooks = {p, is_complete, complete, describe, hint};
    mem_pin(p);
    p->main = p->session = s;
    p->tutor = tutor_new(s);
    run_init_file(s);
    p->initial = "";
    p->editor = editor_new(&hooks, colors);
    set_width(p);
    Str banner = {0};
    str_add(&banner,
            "Relay " PACKAGE_VERSION "   :help for commands, :tutor to learn, Ctrl-D to leave\n");
    session_say(s, session_fold(s, &banner));
    /* One large stack for the whole of it: a paste has many entries, and each would map its own. */
    session_with_stack(NULL, run_loop, p);
    mem_unpin(p);
    return 0;
}
