/* SPDX-License-Identifier: Apache-2.0 */
/* Note [Ctrl-C]. While a line is edited, the terminal sends no signal for Ctrl-C: libedit's terminal
 * settings have the interrupt character off and the key is bound to a function. As soon as el_gets
 * returns, the terminal is in its own mode again, and Ctrl-C is SIGINT for the evaluation. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "repl/editor.h"

#include "repl/history.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#ifdef HAVE_LIBEDIT
#include <histedit.h>
#endif

struct Editor {
    EditComplete complete;
    void *ctx;
    HistoryFile file;
    const char *prompt;
    Str paste;
    bool cancelled, pasted;
#ifdef HAVE_LIBEDIT
    EditLine *el; /* NULL: plain lines */
    History *history;
#endif
};

int terminal_width(int fd) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    if (n > 0 && n < 10000)
        return n;
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* A line without an editor. EINTR is Ctrl-C: the handler is installed without SA_RESTART. */
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

#ifdef HAVE_LIBEDIT

static Editor *editor_of(EditLine *el) {
    Editor *e = NULL;
    el_get(el, EL_CLIENTDATA, &e);
    return e;
}

static char *show_prompt(EditLine *el) { return (char *)(uintptr_t)editor_of(el)->prompt; }

/* Pushed by a key function that ends the line: libedit's own newline puts the cursor right. */
static const char enter[] = "\n";

static unsigned char on_interrupt(EditLine *el, int key) {
    (void)key;
    Editor *e = editor_of(el);
    e->cancelled = true;
    const LineInfo *info = el_line(el);
    el_cursor(el, (int)(info->lastchar - info->cursor));
    el_insertstr(el, "^C");
    el_push(el, enter);
    return CC_REFRESH;
}

static unsigned char on_suspend(EditLine *el, int key) {
    (void)key;
    el_set(el, EL_PREP_TERM, 0);
    fputc('\n', stdout);
    fflush(stdout);
    raise(SIGTSTP);
    el_set(el, EL_PREP_TERM, 1);
    return CC_REDISPLAY;
}

/* Length of what all words begin with. */
static size_t common_length(const EditWords *words) {
    size_t n = strlen(words->data[0]);
    for (size_t i = 1; i < words->len; i++) {
        size_t k = 0;
        while (k < n && words->data[i][k] == words->data[0][k])
            k++;
        n = k;
    }
    return n;
}

static void list_words(const EditWords *words) {
    enum { MOST = 200 };
    size_t widest = 0, shown = words->len < MOST ? words->len : MOST;
    for (size_t i = 0; i < shown; i++) {
        size_t w = text_width(words->data[i], strlen(words->data[i]));
        widest = w > widest ? w : widest;
    }
    int columns = terminal_width(STDOUT_FILENO);
    size_t per_row = columns > 0 ? (size_t)columns / (widest + 2) : 1;
    if (!per_row)
        per_row = 1;
    size_t rows = (shown + per_row - 1) / per_row;
    putchar('\n');
    for (size_t r = 0; r < rows; r++) {
        Str line = {0};
        for (size_t c = 0; c < per_row; c++)
            if (c * rows + r < shown) {
                str_pad(&line, c * (widest + 2));
                str_add(&line, words->data[c * rows + r]);
            }
        puts(str_text(&line));
    }
    if (shown < words->len)
        printf("and %zu more\n", words->len - shown);
    fflush(stdout);
}

static unsigned char on_tab(EditLine *el, int key) {
    (void)key;
    Editor *e = editor_of(el);
    const LineInfo *info = el_line(el);
    size_t len = (size_t)(info->cursor - info->buffer), begin = len;
    const char *text = mem_strndup(info->buffer, len);
    if (strspn(text, " ") == len) { /* nothing to complete: indent */
        el_insertstr(el, "    ");
        return CC_REFRESH;
    }
    EditWords words = {0};
    e->complete(e->ctx, text, len, &words, &begin);
    if (!words.len)
        return CC_REFRESH_BEEP;
    size_t common = common_length(&words);
    if (begin + common > len) {
        const char *more = mem_strndup(words.data[0] + (len - begin), begin + common - len);
        el_insertstr(el, more);
        return CC_REFRESH;
    }
    if (words.len == 1)
        return CC_REFRESH;
    list_words(&words);
    return CC_REDISPLAY;
}

/* After ESC [ 200 ~: the text up to ESC [ 201 ~. */
static unsigned char on_paste(EditLine *el, int key) {
    (void)key;
    Editor *e = editor_of(el);
    static const char end[] = "\033[201~";
    Str text = {0};
    char c;
    while (el_getc(el, &c) == 1) {
        str_add_char(&text, c == '\r' ? '\n' : c);
        size_t n = sizeof end - 1;
        if (text.len >= n && memcmp(text.text + text.len - n, end, n) == 0) {
            text.text[text.len -= n] = '\0';
            break;
        }
    }
    char *tail = strrchr(str_text(&text), '\n');
    if (!tail) {
        if (text.len)
            el_insertstr(el, str_text(&text));
        return CC_REFRESH;
    }
    /* Several lines: an entry of its own, with what was typed before. */
    const LineInfo *info = el_line(el);
    size_t before = (size_t)(info->cursor - info->buffer);
    e->paste = (Str){0};
    str_add_n(&e->paste, info->buffer, before);
    str_add(&e->paste, str_text(&text));
    e->pasted = true;
    const char *first = mem_strndup(text.text, strcspn(text.text, "\n"));
    if (*first)
        el_insertstr(el, first);
    el_push(el, enter);
    return CC_REFRESH;
}

static bool set_up_libedit(Editor *e) {
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || strcmp(term, "dumb") == 0)
        return false;
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    e->el = el_init("relay", stdin, stdout, stderr);
    if (!e->el)
        return false;
    HistEvent event;
    e->history = history_init();
    history(e->history, &event, H_SETSIZE, HISTORY_MAX);
    history(e->history, &event, H_SETUNIQUE, 1);
    EditLine *el = e->el;
    el_set(el, EL_CLIENTDATA, e);
    el_set(el, EL_PROMPT, show_prompt);
    el_set(el, EL_EDITOR, "emacs");
    el_set(el, EL_SIGNAL, 0);
    el_set(el, EL_HIST, history, e->history);
    el_set(el, EL_ADDFN, "relay-interrupt", "leave this entry", on_interrupt);
    el_set(el, EL_ADDFN, "relay-suspend", "stop the program", on_suspend);
    el_set(el, EL_ADDFN, "relay-complete", "complete the word", on_tab);
    el_set(el, EL_ADDFN, "relay-paste", "bracketed paste", on_paste);
    el_set(el, EL_SETTY, "-d", "-isig", NULL); /* Note [Ctrl-C] */
    static const char *const keys[][2] = {
        {"^C", "relay-interrupt"},
        {"^Z", "relay-suspend"},
        {"\t", "relay-complete"},
        {"\\e[200~", "relay-paste"},
        {"^R", "em-inc-search-prev"},
        {"\\e[A", "ed-search-prev-history"},
        {"\\e[B", "ed-search-next-history"},
        {"\\eOA", "ed-search-prev-history"},
        {"\\eOB", "ed-search-next-history"},
        {"\\e[H", "ed-move-to-beg"},
        {"\\e[F", "ed-move-to-end"},
        {"\\e[3~", "ed-delete-next-char"},
        {"\\e[1;5C", "em-next-word"},
        {"\\e[1;5D", "ed-prev-word"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        el_set(el, EL_BIND, keys[i][0], keys[i][1], NULL);
    el_source(el, NULL);
    HistoryLines lines = {0};
    history_read(&e->file, &lines);
    for (size_t i = 0; i < lines.len; i++)
        history(e->history, &event, H_ENTER, lines.data[i]);
    return true;
}

static void bracketed_paste(bool on) {
    fputs(on ? "\033[?2004h" : "\033[?2004l", stdout);
    fflush(stdout);
}

#endif

Editor *editor_new(EditComplete complete, void *ctx) {
    Editor *e = mem_new(Editor);
    mem_pin(e); /* libedit holds it */
    e->complete = complete;
    e->ctx = ctx;
    history_open(&e->file);
#ifdef HAVE_LIBEDIT
    set_up_libedit(e);
#endif
    return e;
}

void editor_fini(Editor *e) {
#ifdef HAVE_LIBEDIT
    if (e->el) {
        el_end(e->el);
        history_end(e->history);
    }
#endif
    mem_unpin(e);
}

EditStatus editor_read(Editor *e, const char *prompt, Str *line) {
    *line = (Str){0};
    (void)e;
#ifdef HAVE_LIBEDIT
    if (e->el) {
        int n = 0;
        e->prompt = prompt;
        e->cancelled = e->pasted = false;
        bracketed_paste(true);
        const char *text = el_gets(e->el, &n);
        bracketed_paste(false);
        if (e->cancelled)
            return EDIT_CANCEL;
        if (e->pasted) {
            /* The first line is on the screen; show the others as they would stand. */
            const char *rest = strchr(str_text(&e->paste), '\n');
            while (rest && rest[1]) {
                size_t k = strcspn(rest + 1, "\n");
                printf("  ...> %.*s\n", (int)k, rest + 1);
                rest = rest[1 + k] ? rest + 1 + k : NULL;
            }
            *line = e->paste;
            return EDIT_PASTE;
        }
        if (!text || n <= 0)
            return EDIT_END;
        str_add_n(line, text, (size_t)n - (text[n - 1] == '\n'));
        return EDIT_LINE;
    }
#endif
    return read_plain(prompt, line);
}

void editor_remember(Editor *e, const char *entry) {
    if (!entry[0] || entry[0] == ' ')
        return;
#ifdef HAVE_LIBEDIT
    HistEvent event;
    if (e->el)
        history(e->history, &event, H_ENTER, entry);
#endif
    history_append(&e->file, entry);
}
