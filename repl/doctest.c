/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/doctest.h"

#include <string.h>

#include "repl/commands.h"
#include "repl/session_internal.h"
#include "repl/tutor.h"

static const char first_prompt[] = "relay> ", next_prompt[] = "  ...> ";

typedef struct Line {
    const char *text; /* without blanks at its end */
    size_t number;
    bool ends_block; /* the last of its block */
} Line;
typedef VEC(Line) LineVec;

/* ---- the lines of a page's blocks ------------------------------------------------------------ */

static bool is_manual_page(const char *path) {
    size_t n = strlen(path);
    return n > 2 && path[n - 2] == '.' && path[n - 1] >= '1' && path[n - 1] <= '9';
}

/* A line of a manual page as it is displayed: fonts left out, escaped characters as themselves. */
static const char *without_escapes(const char *line) {
    Str out = {0};
    for (const char *p = line; *p; p++) {
        if (*p != '\\' || !p[1])
            str_add_char(&out, *p);
        else if (*++p == 'f' && p[1])
            p++;
        else if (strncmp(p, "(aq", 3) == 0) {
            str_add_char(&out, '\'');
            p += 2;
        } else if (*p != '&')
            str_add_char(&out, *p == 'e' ? '\\' : *p);
    }
    return str_text(&out);
}

static bool begins_block(const char *line, bool manual) {
    if (manual)
        return strcmp(line, ".nf") == 0 || strcmp(line, ".EX") == 0;
    return strcmp(line, "```relay") == 0;
}

static bool ends_block(const char *line, bool manual) {
    if (manual)
        return strcmp(line, ".fi") == 0 || strcmp(line, ".EE") == 0;
    return strncmp(line, "```", 3) == 0;
}

static void find_lines(const Source *page, bool manual, LineVec *out) {
    size_t number = 0;
    bool inside = false;
    for (const char *p = page->text, *end = p + page->len; p < end;) {
        size_t n = strcspn(p, "\n"), shown = n;
        while (shown && strchr(" \t\r", p[shown - 1]))
            shown--;
        const char *text = mem_strndup(p, shown);
        number++;
        if (inside && ends_block(text, manual)) {
            inside = false;
            if (out->len)
                vec_last(out).ends_block = true;
        } else if (inside) {
            vec_push(out, ((Line){manual ? without_escapes(text) : text, number, false}));
        } else {
            inside = begins_block(text, manual);
        }
        p += n + (p + n < end);
    }
}

/* ---- entering them --------------------------------------------------------------------------- */

static void keep(void *ctx, const char *text, size_t n) { str_add_n(ctx, text, n); }

/* What the prompt would answer. False to end the session. */
static bool enter(Session *s, const char *entry, Str *answer) {
    SessionSink kept = {keep, keep, answer, true}, sink = session_swap_sink(s, &kept);
    const char *argument, *pointer = command_pointer(s, entry);
    bool goes_on = true;
    if (entry[0] == ':') {
        CommandResult result = command_run(s, entry, &argument);
        goes_on = result != COMMAND_QUIT;
        if (goes_on && result != COMMAND_DONE)
            session_complain(s, "`%s` needs the prompt\n", entry);
    } else if (pointer) {
        session_complain(s, "%s\n", pointer);
    } else if (entry[strspn(entry, " \t\n")]) {
        session_enter(s, entry, strlen(entry), false);
    }
    session_set_sink(s, &sink);
    return goes_on;
}

/* `{*}` of the pattern stands for any text. */
static bool matches(const char *pattern, const char *text) {
    const char *star = strstr(pattern, "{*}");
    if (!star)
        return strcmp(pattern, text) == 0;
    size_t n = (size_t)(star - pattern);
    if (strncmp(pattern, text, n) != 0)
        return false;
    for (text += n;; text++) {
        if (matches(star + 3, text))
            return true;
        if (!*text)
            return false;
    }
}

/* The lines without blanks at their ends, and without empty ones at the end of all. */
static TextVec split(const char *text) {
    TextVec out = {0};
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n"), shown = n;
        while (shown && strchr(" \t\r", p[shown - 1]))
            shown--;
        vec_push(&out, mem_strndup(p, shown));
        p += n + (p[n] == '\n');
    }
    while (out.len && !*vec_last(&out))
        out.len--;
    return out;
}

static bool is_same(const TextVec *want, const TextVec *got) {
    bool same = want->len == got->len;
    for (size_t i = 0; same && i < want->len; i++)
        same = matches(want->data[i], got->data[i]);
    return same;
}

static void add_lines(Str *out, const char *mark, const TextVec *lines) {
    for (size_t i = 0; i < lines->len; i++)
        str_printf(out, "  %s %s\n", mark, lines->data[i]);
}

/* The rest of a line behind a prompt, which may have lost its blank; NULL for other lines. */
static const char *behind(const char *line, const char *prompt) {
    size_t n = strlen(prompt);
    if (strncmp(line, prompt, n) == 0)
        return line + n;
    return strncmp(line, prompt, n - 1) == 0 && !line[n - 1] ? line + n - 1 : NULL;
}

/* Enters what begins at lines[*at] and compares. False where the session ends. */
static bool run_entry(Session *s, const char *path, const LineVec *lines, size_t *at,
                      DoctestCount *count, Str *out) {
    const Line *first = &lines->data[*at];
    Str entry = {0}, answer = {0};
    TextVec want = {0};
    bool given_up = false;
    const char *text = behind(first->text, first_prompt);
    str_add(&entry, text);
    for (size_t i = *at; !lines->data[i].ends_block && i + 1 < lines->len; *at = i) {
        const char *line = lines->data[++i].text, *more = behind(line, next_prompt);
        if (behind(line, first_prompt))
            break;
        given_up |= more && !*more;
        if (!more)
            vec_push(&want, line);
        else if (*more)
            str_printf(&entry, "\n%s", more);
    }
    ++*at;
    while (want.len && !*vec_last(&want))
        want.len--;
    if (strcmp(text, "^D") == 0)
        return false;
    bool goes_on = given_up || enter(s, str_text(&entry), &answer);
    TextVec got = split(str_text(&answer));
    bool same = is_same(&want, &got);
    *(same ? &count->passed : &count->failed) += 1;
    if (!same) {
        str_printf(out, "%s:%zu: %s%s\n", path, first->number, first_prompt, text);
        add_lines(out, "-", &want);
        add_lines(out, "+", &got);
    }
    return goes_on;
}

void doctest_run(Session *s, const char *path, DoctestCount *count, Str *out) {
    Diags *diags = mem_new(Diags);
    Source *page = session_read_file(s, path, diags);
    LineVec lines = {0};
    size_t before = count->passed + count->failed;
    session_print_diags(s, diags);
    if (page)
        find_lines(page, is_manual_page(path), &lines);
    for (size_t i = 0; i < lines.len;) {
        if (!behind(lines.data[i].text, first_prompt))
            i++;
        else if (!run_entry(s, path, &lines, &i, count, out))
            break;
    }
    if (count->passed + count->failed > before)
        return;
    count->failed++;
    if (page)
        str_printf(out, "%s: no block fenced as ```relay types anything at `relay> `\n", path);
}

void doctest_play(Session *s, const char *path, bool shows, DoctestCount *count, Str *out) {
    TutorCount played = {0};
    Str play = {0}, wrong = {0};
    tutor_play(s, path, &played, &play, &wrong);
    count->passed += played.passed;
    count->failed += played.failed;
    if (shows)
        str_add(out, str_text(&play));
    str_add(out, str_text(&wrong));
}
