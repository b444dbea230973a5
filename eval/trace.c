/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time errors: their place, and the calls that led there.
 *
 * An error inside the prelude or the library is shown at the user's call, with the place inside as
 * a note. The innermost call gets a label, those above are facts, at most eight, repeats folded. Tail calls leave no frame, but
 * the user's tail call into the library is kept in the frame it reuses (Frame.tail). */
#include "eval/machine.h"
#include "eval/reference/reference.h"

enum { SHOWN = 8, KEPT = 1000 };

static bool is_internal(Span s) { return !s.source || (s.source->flags & SOURCE_INTERNAL); }

Span machine_span(const Interp *in) {
    if (in->reference)
        return reference_span(in->reference);
    const Code *code = in->code;
    if (!code || !code->origin || in->pc < code->instrs || in->pc >= code->instrs + code->ninstrs)
        return span_none();
    return code->origin[in->pc - code->instrs]->span;
}

Diag *machine_fail_at(Interp *in, Span span, DiagCode code, const char *fmt, ...) {
    va_list ap;
    Str text = {0};
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    return diag_error(in->diags, code, span, "%s", str_text(&text));
}

Diag *machine_fail(Interp *in, DiagCode code, const char *fmt, ...) {
    va_list ap;
    Str text = {0};
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    return diag_error(in->diags, code, machine_span(in), "%s", str_text(&text));
}

/* An activation, and those above it, in the order in which they are left. */
typedef struct Walk {
    TraceStep step;
    bool (*next)(struct Walk *w);       /* false at the bottom */
    const Frame *frame, *bottom;        /* of the machine: the caller's, and the lowest */
    const TraceStep *rest, *end;        /* of a list: the steps that follow */
    TraceStep within[INLINED_MOST + 1]; /* of the same activation, the innermost last */
    size_t nwithin;
} Walk;

static const char *place(Span s) {
    uint32_t line, column;
    span_locate(s, &line, &column);
    return fmt_text("%s:%u:%u", s.source->name, line, column);
}

static const char *name_text(const Symbol *name) {
    return name ? fmt_text("`%s`", name->text) : "a function";
}

/* Calls of one place that follow each other. */
typedef struct CallLine {
    const Symbol *name;
    Span call;
    unsigned long long repeats; /* besides the first, */
    const Symbol *repeated;     /* which may be a function that the called one ended in */
} CallLine;
typedef VEC(CallLine) CallLines;

/* Whether the place is what is called, as `vmap(f)` in `vmap(f)(x)`: the call says nothing more. */
static bool is_called_at(Span place, Span call) {
    return call.source == place.source && call.begin == place.begin && call.end > place.end;
}

/* The calls of the program above a place, which may be millions: nothing is allocated for one that repeats.
 * *more: those behind the first KEPT lines. */
static void list_calls(Walk w, Span shown, CallLines *out, unsigned long long *more) {
    do {
        Span call = w.step.call;
        if (w.step.internal || w.step.item || is_internal(call) || is_called_at(shown, call))
            continue;
        CallLine *last = out->len ? &out->data[out->len - 1] : NULL;
        if (last && call.source == last->call.source && call.begin == last->call.begin) {
            last->repeats++;
            last->repeated = w.step.name;
        } else if (out->len < KEPT) {
            vec_push(out, ((CallLine){w.step.name, call, 0, NULL}));
        } else {
            ++*more;
        }
    } while (w.next(&w));
}

static void keep_trace(Interp *in, const Diag *d, const CallLines *calls, unsigned long long more) {
    Str *s = &in->last_trace;
    vec_clear(s);
    str_printf(s, "error[%s]: %s\n", diag_get_info(d->code)->name, d->message);
    if (!is_internal(d->primary.span))
        str_printf(s, "  at %s\n", place(d->primary.span));
    for (size_t i = 0; i < calls->len; i++) {
        const CallLine *c = &calls->data[i];
        str_printf(s, "  in %s, called at %s\n", name_text(c->name), place(c->call));
        if (c->repeats)
            str_printf(s, "  ... %llu more of %s\n", c->repeats, name_text(c->repeated));
    }
    if (more)
        str_printf(s, "  ... and %llu more calls above\n", more);
}

/* The calls above the one where the error is shown. */
static void add_calls(Interp *in, Diag *d, Walk w) {
    CallLines calls = {0};
    unsigned long long more = 0;
    list_calls(w, d->primary.span, &calls, &more);
    keep_trace(in, d, &calls, more);
    for (size_t i = 0; i < calls.len; i++) {
        const CallLine *c = &calls.data[i];
        if (i >= SHOWN)
            more += 1 + c->repeats;
        else if (!i)
            diag_add_label(d, c->call, "%s is called here", name_text(c->name));
        else
            diag_add_fact(d, "in %s, called at %s", name_text(c->name), place(c->call));
        if (i < SHOWN && c->repeats)
            diag_add_fact(d, "... %llu more of %s", c->repeats, name_text(c->repeated));
    }
    if (more)
        diag_add_fact(d, "... and %llu more calls above", more);
}

static void trace_add(Interp *in, Diag *d, Walk w) {
    if (is_internal(d->primary.span)) {
        Span inside = d->primary.span;
        bool found = false;
        do {
            if (!is_internal(w.step.call)) {
                d->primary.span = w.step.call;
                found = true;
            }
        } while (!found && w.next(&w));
        if (found && inside.source)
            diag_add_fact(d, "raised at %s", place(inside));
        if (!found)
            return;
        /* the activation the call stands in */
        if (!w.step.by_tail && !w.next(&w))
            return;
    }
    add_calls(in, d, w);
}

static void add_to_errors(Interp *in, size_t since, Walk w) {
    for (size_t i = since; i < in->diags->list.len; i++)
        if (diag_get_info(in->diags->list.data[i]->code)->severity == SEVERITY_ERROR)
            trace_add(in, in->diags->list.data[i], w);
}

/* ---- of the machine -------------------------------------------------------------------------- */

/* By which call an activation began that the call `e` led to. Of an inlined function whose last act was this
 * call, the activation had ended: then it is the call by which that one began (Note [Inlined calls] in core.h), or
 * by which it went from the program into the library. internal: the code of e is the library's. */
static void set_call(TraceStep *step, const Expr *e, bool internal) {
    step->call = e->span;
    const Inlined *i = e->inlined;
    if (!i || e->tail != TAIL_CALL)
        return;
    if (step->internal && !i->internal) {
        step->by_tail = true;
        return;
    }
    for (bool is_over = false; i && !is_over; i = i->outer) {
        bool leaves_program = i->tail && i->internal && !(i->outer ? i->outer->internal : internal);
        step->call = i->call;
        step->by_tail |= leaves_program;
        is_over = !i->tail || leaves_program;
    }
}

static TraceStep step_of(const Code *code, const Frame *frame, const Frame *bottom) {
    TraceStep step = {.call = span_none(), .internal = code->internal, .item = code->item};
    if (code->fn && code->fn->kind == EXPR_FN)
        step.name = code->fn->fn->name;
    if (frame < bottom)
        return step;
    const Expr *tail = frame->tail;
    bool fills = !frame->code->fn; /* then `tail` may be the call that was there before */
    step.by_tail = tail != NULL;
    if (tail && !fills && !(tail->inlined && tail->inlined->internal))
        step.call = tail->span;
    else if (tail)
        set_call(&step, tail, fills);
    else if (frame->code->origin)
        set_call(&step, frame->code->origin[frame->pc - 1 - frame->code->instrs],
                 frame->code->internal);
    return step;
}

/* Puts the activations on the walk that there would be at the node `at` of this code, had nothing been inlined.
 * calls: `at` is the call that led to the activation before. */
static void expand(Walk *w, const Code *code, const Expr *at, bool calls) {
    const Inlined *chain[INLINED_MOST];
    size_t n = 0;
    for (const Inlined *i = at->inlined; i && n < INLINED_MOST; i = i->outer)
        chain[n++] = i;
    w->nwithin = 0;
    w->within[w->nwithin++] = step_of(code, w->frame, w->bottom);
    for (size_t i = n; i-- > 0;) {
        if (!chain[i]->tail)
            w->within[w->nwithin++] = (TraceStep){.call = chain[i]->call};
        TraceStep *step = &w->within[w->nwithin - 1];
        if (chain[i]->tail && chain[i]->internal && !step->internal) {
            step->call = chain[i]->call; /* it is kept in the activation, as Frame.tail is */
            step->by_tail = true;
        }
        step->name = chain[i]->name;
        step->internal = chain[i]->internal;
    }
    if (calls && n && at->tail == TAIL_CALL)
        w->nwithin--; /* it had ended */
}

static bool next_frame(Walk *w) {
    while (!w->nwithin) {
        if (w->frame < w->bottom || !w->frame->code->origin)
            return false;
        const Code *code = w->frame->code;
        const Expr *at = code->origin[w->frame->pc - 1 - code->instrs];
        w->frame--;
        expand(w, code, at, true);
    }
    w->step = w->within[--w->nwithin];
    return true;
}

void trace_since(Interp *in, size_t since) {
    if (in->fp <= in->frames || !in->code)
        return;
    Walk w = {.next = next_frame, .frame = in->fp - 1, .bottom = in->frames};
    const Code *code = in->code;
    if (code->origin && in->pc >= code->instrs && in->pc < code->instrs + code->ninstrs) {
        expand(&w, code, code->origin[in->pc - code->instrs], false);
        w.step = w.within[--w.nwithin];
    } else {
        w.step = step_of(code, w.frame, w.bottom);
    }
    add_to_errors(in, since, w);
}

/* ---- of a list ------------------------------------------------------------------------------- */

static bool next_in_list(Walk *w) {
    if (w->rest == w->end)
        return false;
    w->step = *w->rest++;
    return true;
}

const char *interp_last_trace(Interp *in) { return str_text(&in->last_trace); }

void trace_errors(Interp *in, size_t since, const TraceStep *steps, size_t n) {
    if (n)
        add_to_errors(
            in, since,
            (Walk){.step = steps[0], .next = next_in_list, .rest = steps + 1, .end = steps + n});
}
