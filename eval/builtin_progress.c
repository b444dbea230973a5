/* SPDX-License-Identifier: Apache-2.0 */
/* The line that `progress` keeps on standard error: how far it is, how fast, how long it will take, what it notes last,
 * and of numbers how they went. */
#include "eval/builtin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/output.h"
#include "eval/builtin_all.h"
#include "eval/machine.h"

enum { MARKS = 16, BAR = 18 };

/* Of the loop that runs. */
typedef struct Progress {
    double began, shown; /* in seconds; shown: when a line was last written */
    double marks[MARKS]; /* numbers noted, of which every `every`th is kept */
    unsigned nmarks, every, seen;
    bool has_last;
    double last;
} Progress;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Whether a line of progress can be written over on standard error. */
static bool can_write_over(void) {
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

/* A terminal is told at most ten times a second and at the end, a file and a dumb terminal at each power of two. */
bool builtin_progress_wanted(const BuiltinCall *call, Value *out) {
    Interp *in = call->in;
    int64_t i = call->args[0].i, n = call->args[1].i;
    double t = now();
    if (i <= 1 || !in->progress) {
        in->progress = mem_new(Progress);
        *in->progress = (Progress){.began = t, .shown = t, .every = 1};
    }
    bool wanted = i == n || (i & (i - 1)) == 0;
    if (can_write_over())
        wanted = i == n || t - in->progress->shown >= 0.1;
    if (in->options.no_progress || in->hides_progress)
        wanted = false;
    if (wanted)
        in->progress->shown = t;
    *out = value_bool(wanted);
    return true;
}

/* ---- parts of the line ----------------------------------------------------------------------- */

static void add_duration(Str *s, double seconds) {
    long long t = (long long)(seconds + 0.5);
    if (t >= 3600)
        str_printf(s, "%lld:%02lld:%02lld", t / 3600, t / 60 % 60, t % 60);
    else
        str_printf(s, "%lld:%02lld", t / 60, t % 60);
}

/* "41,200/s", to three digits. */
static void add_rate(Str *s, double rate) {
    if (rate < 1000) {
        str_printf(s, "%.3g/s", rate);
        return;
    }
    double unit = pow(10, floor(log10(rate)) - 2);
    const char *digits = fmt_text("%.0f", rint(rate / unit) * unit);
    size_t n = strlen(digits);
    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            str_add_char(s, ',');
        str_add_char(s, digits[i]);
    }
    str_add(s, "/s");
}

static void add_bar(Str *s, double part, bool utf8) {
    int full = (int)(part * BAR + 0.5);
    for (int i = 0; i < BAR; i++)
        str_add(s, i < full ? utf8 ? "█" : "#" : utf8 ? "░" : ".");
}

/* How the numbers went, each as high as it is between the least and the greatest; of several orders of magnitude, as
 * their logarithms are. */
static void add_sparkline(Str *s, const Progress *p, bool utf8) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char signs[] = "_.-=+*%#";
    double all[MARKS + 1], least = INFINITY, most = -INFINITY;
    unsigned n = p->nmarks;
    memcpy(all, p->marks, n * sizeof *all);
    if (p->has_last)
        all[n++] = p->last;
    for (unsigned i = 0; i < n; i++) {
        least = isfinite(all[i]) && all[i] < least ? all[i] : least;
        most = isfinite(all[i]) && all[i] > most ? all[i] : most;
    }
    bool logs = least > 0 && most > 20 * least;
    for (unsigned i = 0; i < n; i++) {
        double at = logs ? log(all[i] / least) / log(most / least)
                         : (all[i] - least) / (most - least);
        int level = most > least ? (int)(at * 7 + 0.5) : 0;
        if (!isfinite(all[i]))
            str_add_char(s, isnan(all[i]) ? '?' : '!');
        else if (utf8)
            str_add(s, bars[level]);
        else
            str_add_char(s, signs[level]);
    }
}

/* Half of what is kept goes when there is no room for more. */
static void keep_mark(Progress *p, double x) {
    p->last = x;
    p->has_last = p->seen++ % p->every != 0;
    if (p->has_last)
        return;
    if (p->nmarks == MARKS) {
        for (unsigned i = 0; i < MARKS / 2; i++)
            p->marks[i] = p->marks[2 * i];
        p->nmarks = MARKS / 2;
        p->every *= 2;
    }
    p->marks[p->nmarks++] = x;
}

/* The note as text, and whether it is a number. */
static const char *read_note(Value v, double *number, bool *is_number) {
    Str s = {0};
    ValuePrintOptions options = {.one_line = true, .digits = 4, .max_elements = 8, .edge = 3};
    v = value_primal(v);
    *is_number = false;
    if (v.tag == VAL_TUPLE && !v.p)
        return "";
    if (v.tag == VAL_STRING) {
        const String *text = v.p;
        str_add_n(&s, text->text, text->len);
        for (char *c = s.text; c && *c; c++) /* it is one line */
            if ((unsigned char)*c < ' ')
                *c = ' ';
        while (s.len && s.text[s.len - 1] == ' ')
            s.text[--s.len] = '\0';
        const char *word = strrchr(str_text(&s), ' ');
        word = word ? word + 1 : str_text(&s);
        char *end;
        *number = strtod(word, &end);
        *is_number = *word && !*end;
        return str_text(&s);
    }
    *is_number = v.tag == VAL_SCALAR && v.aux != DT_BOOL;
    if (*is_number)
        *number = dtype_is_float((DType)v.aux) ? v.f : (double)v.i;
    value_print(&s, v, &options);
    return str_text(&s);
}

/* ---- the line -------------------------------------------------------------------------------- */

/* Appends a part and the blanks before it, if it still fits. */
static void add_part(Str *line, const Str *part, size_t width) {
    size_t w = text_width(str_text(part), part->len);
    if (!w || (width && text_width(str_text(line), line->len) + 2 + w > width))
        return;
    str_add(line, line->len ? "  " : "");
    str_add_n(line, part->text, part->len);
}

static size_t width_of_terminal(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79;
}

bool builtin_progress_report(const BuiltinCall *call, Value *out) {
    Progress *p = call->in->progress;
    int64_t i = call->args[0].i, n = call->args[1].i;
    double spent = now() - p->began, number;
    bool tty = can_write_over(), utf8 = tty && output_is_utf8(), is_number;
    size_t width = tty ? width_of_terminal() : 0;
    const char *note = read_note(call->args[2], &number, &is_number);
    if (is_number)
        keep_mark(p, number);
    Str line = {0}, count = {0}, bar = {0}, rate = {0}, left = {0}, said = {0}, went = {0};
    double part = n > 0 ? (double)i / (double)n : 1;
    str_printf(&count, "%lld/%lld", (long long)i, (long long)n);
    if (!tty)
        str_printf(&count, " %3.0f%%", 100 * part);
    else if (width >= 60)
        add_bar(&bar, part, utf8);
    if (spent > 0 && i > 1)
        add_rate(&rate, (double)(i - 1) / spent);
    if (i < n && i > 1) {
        add_duration(&left, spent / (double)(i - 1) * (double)(n - i));
        str_add(&left, " left");
    }
    str_add(&said, note);
    if (is_number && tty)
        add_sparkline(&went, p, utf8);
    add_part(&line, &count, width);
    add_part(&line, &bar, width);
    if (width && width < 60) { /* the note comes first where room is short */
        add_part(&line, &said, width);
        said.len = 0;
    }
    add_part(&line, &rate, width);
    add_part(&line, &left, width);
    add_part(&line, &said, width);
    add_part(&line, &went, width);
    fprintf(stderr, "%s%s%s%s", tty ? "\r" : "", str_text(&line), tty ? "\033[K" : "",
            !tty || i == n ? "\n" : "");
    fflush(stderr);
    *out = value_unit();
    return true;
}
