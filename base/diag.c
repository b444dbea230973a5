/* SPDX-License-Identifier: Apache-2.0 */
/* Building and collecting diagnostics, the table of codes, and the one-line styles. The full style
 * with source lines and carets is diag_print.c. */
#include "base/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const DiagInfo infos[DIAG_COUNT] = {
    [DIAG_NONE] = {"R0000", SEVERITY_ERROR, "", "", "", ""},
#define DIAG(code, severity, title, explanation, bad, good)                                        \
    [DIAG_##code] = {#code, severity, title, explanation, bad, good},
#include "base/diag.def"
#undef DIAG
};

const DiagInfo *diag_get_info(DiagCode code) { return &infos[code]; }

DiagCode diag_find_code(const char *name) {
    for (int c = DIAG_NONE + 1; c < DIAG_COUNT; c++)
        if (strcmp(infos[c].name, name) == 0)
            return (DiagCode)c;
    return DIAG_NONE;
}

/* A name or a type may be of any length: of a line longer than this the beginning and the end are
 * kept. */
enum { LINE_MAX_BYTES = 2000, LINE_BEGIN = 1200, LINE_END = 400 };

static bool is_inside(char c) { return ((unsigned char)c & 0xC0) == 0x80; } /* of a character */

static const char *shorten(const char *text) {
    Str out = {0};
    for (;;) {
        size_t n = strcspn(text, "\n"), head = LINE_BEGIN, tail = n > LINE_END ? n - LINE_END : 0;
        if (n <= LINE_MAX_BYTES) {
            str_add_n(&out, text, n);
        } else {
            while (is_inside(text[head]))
                head--;
            while (tail < n && is_inside(text[tail]))
                tail++;
            str_add_n(&out, text, head);
            str_printf(&out, " ... %zu more bytes ... ", tail - head);
            str_add_n(&out, text + tail, n - tail);
        }
        if (!text[n])
            return str_text(&out);
        str_add_char(&out, '\n');
        text += n + 1;
    }
}

static const char *vformat(const char *fmt, va_list ap) {
    Str s = {0};
    str_vprintf(&s, fmt, ap);
    return s.len > LINE_MAX_BYTES ? shorten(str_text(&s)) : str_text(&s);
}

Diag *diag_new(DiagCode code, Span span, const char *fmt, ...) {
    Diag *d = mem_new(Diag);
    va_list ap;
    va_start(ap, fmt);
    d->code = code;
    d->message = vformat(fmt, ap);
    d->primary = (DiagLabel){.span = span, .text = ""};
    d->axis = -1;
    va_end(ap);
    return d;
}

void diag_set_label(Diag *d, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    d->primary.text = vformat(fmt, ap);
    va_end(ap);
}

void diag_add_label(Diag *d, Span span, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = vformat(fmt, ap);
    va_end(ap);
    if (span.source)
        vec_push(&d->labels, ((DiagLabel){.span = span, .text = text}));
    else if (*text)
        vec_push(&d->facts, text);
}

void diag_add_heading(Diag *d, Span span, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = vformat(fmt, ap);
    va_end(ap);
    if (span.source)
        vec_push(&d->labels, ((DiagLabel){.span = span, .text = text, .role = DIAG_ROLE_HEADING}));
}

void diag_add_label_of(Diag *d, DiagRole role, Span span, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = vformat(fmt, ap);
    va_end(ap);
    vec_push(&d->labels, ((DiagLabel){.span = span, .text = text, .role = role}));
}

void diag_add_fact(Diag *d, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = vformat(fmt, ap);
    va_end(ap);
    vec_push(&d->facts, text);
}

void diag_add_help(Diag *d, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = vformat(fmt, ap);
    va_end(ap);
    vec_push(&d->helps, (DiagHelp){.text = text});
}

void diag_add_name_help(Diag *d, const Symbol *name, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = vformat(fmt, ap);
    va_end(ap);
    vec_push(&d->helps, ((DiagHelp){.text = text, .name = name}));
}

void diag_set_guess(Diag *d, const Symbol *guess) {
    d->guess = guess;
    diag_set_label(d, "did you mean `%s`?", guess->text);
}

void diag_add_guess_fact(Diag *d, const Symbol *guess) {
    d->guess = guess;
    diag_add_fact(d, "did you mean `%s`?", guess->text);
    d->guess_fact = d->facts.len;
}

void diag_drop_fact(Diag *d, size_t fact) {
    for (size_t i = fact + 1; i < d->facts.len; i++)
        d->facts.data[i - 1] = d->facts.data[i];
    d->facts.len--;
    for (size_t i = 0; i < d->origins.len; i++)
        d->origins.data[i].fact -= d->origins.data[i].fact > fact;
}

void diag_add_comes(Diag *d, const char *sizes, const char *where) {
    for (size_t i = 0; i < d->origins.len; i++) {
        DiagOrigin *o = &d->origins.data[i];
        if (strcmp(o->where, where) != 0)
            continue;
        if (strcmp(o->sizes, sizes) != 0) {
            o->sizes = fmt_text("%s and %s", o->sizes, sizes);
            d->facts.data[o->fact] = fmt_text("%s come from %s", o->sizes, where);
        }
        return;
    }
    vec_push(&d->origins, ((DiagOrigin){d->facts.len, sizes, where}));
    diag_add_fact(d, "%s comes from %s", sizes, where);
}

void diag_note_dtype(Diag *d, const Symbol *dtype) {
    for (size_t i = 0; i < d->dtypes.len; i++) {
        if (d->dtypes.data[i] == dtype)
            return;
    }
    vec_push(&d->dtypes, dtype);
}

void diag_note_size(Diag *d, const Symbol *size) {
    for (size_t i = 0; i < d->sizes.len; i++) {
        if (d->sizes.data[i] == size)
            return;
    }
    vec_push(&d->sizes, size);
}

void diag_note_size_first(Diag *d, const Symbol *size) {
    diag_note_size(d, size);
    size_t at = 0;
    while (d->sizes.data[at] != size)
        at++;
    for (; at > 0; at--)
        d->sizes.data[at] = d->sizes.data[at - 1];
    d->sizes.data[0] = size;
}

void diag_set_expects(Diag *d, const char *what) {
    Str tokens = {0};
    for (const char *begin = what; (begin = strchr(begin, '`'));) {
        size_t n = strcspn(begin + 1, "`");
        str_add_char(&tokens, ' ');
        str_add_n(&tokens, begin + 1, n);
        str_add_char(&tokens, ' ');
        begin += n + 1 + (begin[n + 1] == '`');
    }
    d->expects = str_text(&tokens);
}

bool diag_is_expected(const Diag *d, const char *token) {
    return d->expects && strstr(d->expects, fmt_text(" %s ", token));
}

bool diag_has_same_message(const Diag *a, const Diag *b) {
    return strcmp(a->message, b->message) == 0;
}

bool diag_has_same_fact(const Diag *a, const Diag *b) {
    return !a->facts.len || !b->facts.len || strcmp(a->facts.data[0], b->facts.data[0]) == 0;
}

bool diag_label_says_same(const DiagLabel *a, const DiagLabel *b) {
    return strcmp(a->text, b->text) == 0;
}

bool diag_has_fix(const Diag *d, const char *message) {
    for (size_t i = 0; i < d->fixes.len; i++) {
        if (strcmp(d->fixes.data[i]->message, message) == 0)
            return true;
    }
    return false;
}

DiagFix *diag_add_fix(Diag *d, Span span, const char *replacement, const char *type,
                      const char *fmt, ...) {
    DiagFix *fix = mem_new(DiagFix);
    va_list ap;
    va_start(ap, fmt);
    fix->message = vformat(fmt, ap);
    va_end(ap);
    fix->type = type ? type : "";
    vec_push(&fix->edits, ((DiagEdit){span, replacement}));
    vec_push(&d->fixes, fix);
    return fix;
}

void diag_report(Diags *diags, Diag *d) {
    Severity severity = infos[d->code].severity;
    vec_push(&diags->list, d);
    diags->errors += severity == SEVERITY_ERROR;
    diags->warnings += severity == SEVERITY_WARNING;
}

Diag *diag_error(Diags *diags, DiagCode code, Span span, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *message = vformat(fmt, ap);
    va_end(ap);
    Diag *d = diag_new(code, span, "%s", message);
    diag_report(diags, d);
    return d;
}

const char *severity_name(Severity severity) {
    switch (severity) {
    case SEVERITY_ERROR: return "error";
    case SEVERITY_WARNING: return "warning";
    case SEVERITY_NOTE: return "note";
    }
    return "";
}

/* ---- one line a diagnostic ------------------------------------------------------------------- */

static void add_on_one_line(Str *out, const char *text) {
    for (; *text; text++)
        str_add_char(out, *text == '\n' ? ' ' : *text);
}

/* One line, the first suggestion behind the message. */
void diag_print_short(Str *out, const Diag *d) {
    const DiagInfo *info = &infos[d->code];
    uint32_t line, column;
    if (d->primary.span.source) {
        span_locate(d->primary.span, &line, &column);
        str_printf(out, "%s:%u:%u: ", d->primary.span.source->name, line, column);
    }
    str_printf(out, "%s[%s]: ", severity_name(info->severity), info->name);
    add_on_one_line(out, d->message);
    if (d->fixes.len) {
        str_add(out, "; ");
        add_on_one_line(out, d->fixes.data[0]->message);
    }
    str_add_char(out, '\n');
}

/* JSON wants valid UTF-8: a byte that is not becomes U+FFFD. */
void diag_add_json_text(Str *out, const char *text) {
    size_t n = strlen(text);
    str_add_char(out, '"');
    while (n) {
        size_t good = n;
        text_is_utf8(text, n, &good);
        for (size_t i = 0; i < good; i++) {
            unsigned char c = (unsigned char)text[i];
            if (c == '"' || c == '\\')
                str_add_char(out, '\\'), str_add_char(out, (char)c);
            else if (c == '\n')
                str_add(out, "\\n");
            else if (c < 0x20 || c == 0x7F)
                str_printf(out, "\\u%04x", c);
            else
                str_add_char(out, (char)c);
        }
        text += good;
        n -= good;
        if (n) {
            str_add(out, "\\ufffd");
            text++;
            n--;
        }
    }
    str_add_char(out, '"');
}

void diag_add_json_span(Str *out, Span span) {
    Span end = span;
    uint32_t line, column, end_line, end_column;
    end.begin = end.end;
    span_locate(span, &line, &column);
    span_locate(end, &end_line, &end_column);
    str_add(out, "\"file\":");
    if (span.source)
        diag_add_json_text(out, span.source->name);
    else
        str_add(out, "null");
    str_printf(out, ",\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u", line, column,
               end_line, end_column);
    str_printf(out, ",\"begin\":%u,\"end\":%u", span.begin, span.end);
}

static void add_json_label(Str *out, DiagLabel label) {
    diag_add_json_span(out, label.span);
    str_add(out, ",\"label\":");
    diag_add_json_text(out, label.text);
}

static void add_json_fix(Str *out, const DiagFix *fix) {
    str_add(out, "{\"message\":");
    diag_add_json_text(out, fix->message);
    str_add(out, ",\"type\":");
    if (fix->type[0])
        diag_add_json_text(out, fix->type);
    else
        str_add(out, "null");
    str_add(out, ",\"edits\":[");
    for (size_t i = 0; i < fix->edits.len; i++) {
        str_add(out, i ? ",{" : "{");
        diag_add_json_span(out, fix->edits.data[i].span);
        str_add(out, ",\"text\":");
        diag_add_json_text(out, fix->edits.data[i].text);
        str_add_char(out, '}');
    }
    str_add(out, "]}");
}

static void add_json_list(Str *out, const char *name, const char *const *texts, size_t n) {
    str_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        if (i)
            str_add_char(out, ',');
        diag_add_json_text(out, texts[i]);
    }
    str_add_char(out, ']');
}

void diag_print_json(Str *out, const Diag *d) {
    const DiagInfo *info = &infos[d->code];
    str_printf(out,
               "{\"severity\":\"%s\",\"code\":\"%s\",\"message\":", severity_name(info->severity),
               info->name);
    diag_add_json_text(out, d->message);
    str_add_char(out, ',');
    add_json_label(out, d->primary);
    str_add(out, ",\"labels\":[");
    for (size_t i = 0; i < d->labels.len; i++) {
        str_add(out, i ? ",{" : "{");
        add_json_label(out, d->labels.data[i]);
        str_add_char(out, '}');
    }
    str_add_char(out, ']');
    add_json_list(out, "facts", d->facts.data, d->facts.len);
    VEC(const char *) helps = {0};
    for (size_t i = 0; i < d->helps.len; i++)
        vec_push(&helps, d->helps.data[i].text);
    add_json_list(out, "helps", helps.data, helps.len);
    str_add(out, ",\"suggestions\":[");
    for (size_t i = 0; i < d->fixes.len; i++) {
        if (i)
            str_add_char(out, ',');
        add_json_fix(out, d->fixes.data[i]);
    }
    str_add_char(out, ']');
    str_add(out, "}\n");
}

/* ---- our own mistakes ------------------------------------------------------------------------ */

static void (*bug_handler)(const char *message);

void bug_set_handler(void (*fn)(const char *message)) { bug_handler = fn; }

void bug_end(const char *what, int status) {
    const char *message = fmt_text("this is a bug in Relay: %s", what);
    if (bug_handler)
        bug_handler(message);
    fflush(stdout);
    fprintf(stderr, "%s\n", message);
    exit(status);
}

void bug_(const char *file, int line, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = vformat(fmt, ap);
    va_end(ap);
    bug_end(fmt_text("%s (%s:%d)", what, file, line), BUG_STATUS);
}
