/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/session_internal.h"

enum { MOST_STEPS = 200 }; /* without questions */

static const char step_help[] =
    "s step (or Enter), n next at this depth, o out of the function, u LINE until a line, "
    "v values in scope, c continue, q quit";

typedef enum Going { GO_STEP, GO_NEXT, GO_OUT, GO_UNTIL, GO_ON } Going;

typedef struct Stepper {
    Session *s;
    bool asks, has_quit;
    size_t steps;
    Going going;
    int depth;     /* where `next` and `out` were said */
    uint32_t line; /* that `until` waits for */
} Stepper;

/* ---- showing --------------------------------------------------------------------------------- */

static const char *value_text(Value v) {
    Str out = {0};
    ValuePrintOptions options = {
        .one_line = true, .nested = true, .digits = 6, .max_elements = 8, .edge = 3, .width = 50};
    value_print(&out, value_primal(v), &options);
    return out.len > 60 ? fmt_text("%.56s ...", str_text(&out)) : str_text(&out);
}

static bool is_unit(Value v) { return v.tag == VAL_TUPLE && !v.p; }

static uint32_t line_of(Span span) {
    uint32_t line = 0, column = 0;
    if (span.source && !(span.source->flags & SOURCE_INTERNAL))
        span_locate(span, &line, &column);
    return line;
}

/* The source, or what stands for it where it is Relay's own. */
static const char *source_text(const WatchEvent *e) {
    Span at = e->span;
    Str out = {0};
    if (!line_of(at) || at.end <= at.begin)
        return e->what ? e->what : "fn";
    for (uint32_t i = at.begin; i < at.end && out.len < 56; i++) {
        char c = at.source->text[i];
        bool blank = c == '\n' || c == ' ' || c == '\t';
        if (!blank)
            str_add_char(&out, c);
        else if (out.len && out.text[out.len - 1] != ' ')
            str_add_char(&out, ' ');
    }
    if (out.len >= 56)
        str_add(&out, " ...");
    return str_text(&out);
}

static void add_place(Str *out, const WatchEvent *e) {
    uint32_t line = line_of(e->span);
    if (line)
        str_printf(out, "%s:%u ", e->span.source->name, line);
    str_pad(out, 12);
    str_printf(out, " %*s", 2 * (e->depth < 20 ? e->depth : 20), "");
}

static void add_gifts(Str *out, const WatchEvent *e) {
    bool any = false;
    for (uint32_t i = 0; e->gave && i < e->n; i++)
        if (!is_unit(e->gave[i])) {
            str_printf(out, "%s argument %u gets %s", any ? "," : ":", i + 1,
                       value_text(e->gave[i]));
            any = true;
        }
    if (!any && e->gave)
        str_add(out, ": nothing goes on");
}

static void add_event(Str *out, const WatchEvent *e) {
    add_place(out, e);
    switch (e->kind) {
    case WATCH_CALL:
        str_printf(out, "enter %s(", e->what ? e->what : "fn");
        for (uint32_t i = 0; i < e->n; i++)
            str_printf(out, "%s%s", i ? ", " : "", value_text(e->args[i]));
        str_add(out, ")");
        break;
    case WATCH_VALUE: str_printf(out, "%s  =  %s", source_text(e), value_text(e->value)); break;
    case WATCH_STORE: return;
    case WATCH_BEGIN: str_add(out, "a derivative begins"); break;
    case WATCH_SEED:
        str_printf(out, "the way back begins at %s, with d 1", value_text(e->value));
        break;
    case WATCH_BACK:
        str_printf(out, "back over %s, d %s", source_text(e), value_text(e->cotangent));
        add_gifts(out, e);
        break;
    }
    str_add_char(out, '\n');
}

static void show_variables(const Stepper *t, const WatchEvent *e) {
    const char *name;
    Value v;
    Str out = {0};
    for (size_t i = 0; i < 40 && watch_variable(e->scope, i, &name, &v); i++)
        if (name[0] != '_')
            str_printf(&out, "  %s = %s\n", name, value_text(v));
    session_say(t->s, out.len ? str_text(&out) : "  no variable is in scope\n");
}

/* ---- asking ---------------------------------------------------------------------------------- */

static bool is_due(const Stepper *t, const WatchEvent *e) {
    switch (t->going) {
    case GO_STEP: return true;
    case GO_NEXT: return e->depth <= t->depth;
    case GO_OUT: return e->depth < t->depth;
    case GO_UNTIL: return line_of(e->span) == t->line;
    case GO_ON: break;
    }
    return false;
}

/* Reads commands until one goes on. False to end the evaluation. */
static bool ask(Stepper *t, const WatchEvent *e) {
    char line[80];
    for (;;) {
        session_say(t->s, "step> ");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) {
            clearerr(stdin);
            session_say(t->s, "\n");
            return false;
        }
        char *end = line + strcspn(line, "\n");
        *end = '\0';
        t->depth = e->depth;
        switch (line[0]) {
        case '\0':
        case 's': t->going = GO_STEP; return true;
        case 'n': t->going = GO_NEXT; return true;
        case 'o': t->going = GO_OUT; return true;
        case 'c': t->going = GO_ON; return true;
        case 'q': t->has_quit = true; return false;
        case 'v': show_variables(t, e); break;
        case 'u':
            t->line = (uint32_t)strtoul(line + strcspn(line, "0123456789"), NULL, 10);
            t->going = GO_UNTIL;
            if (t->line)
                return true; /* fall through */
        default: session_say(t->s, session_fill(t->s, step_help));
        }
    }
}

static bool watch(void *ctx, const WatchEvent *e) {
    Stepper *t = ctx;
    Str out = {0};
    if (e->is_inner || e->kind == WATCH_STORE || !is_due(t, e))
        return true;
    if (!t->asks && t->steps++ == MOST_STEPS) {
        session_say(t->s, "... and so on\n");
        t->going = GO_ON;
        return true;
    }
    add_event(&out, e);
    session_say(t->s, session_fold(t->s, &out));
    return !t->asks || ask(t, e);
}

static void say_result(Session *s, Value result) {
    Str line = {0};
    str_printf(&line, "the value is %s\n", value_text(result));
    session_say(s, session_fold(s, &line));
}

void step_run(Session *s, const char *expr, bool asks) {
    Stepper t = {.s = s, .asks = asks};
    Value result;
    if (session_watch(s, expr, watch, &t, &result))
        say_result(s, result);
    else if (t.has_quit)
        session_say(s, "given up\n");
}
