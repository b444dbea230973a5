/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time errors: their place, and the calls that led there.
 *
 * An error inside the prelude or the library is shown at the user's call, with the place inside as
 * a note. The innermost call gets a label, those above are facts, at most eight, repeats folded. Tail calls leave no frame, but
 * the user's tail call into the library is kept in the frame it reuses (Frame.tail). */
#include "eval/machine.h"

enum { SHOWN = 8 };

static bool is_internal(Span s) { return !s.source || (s.source->flags & SOURCE_INTERNAL); }

Span machine_span(const Interp *in) {
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

/* One activation and the call it came by. */
typedef struct Walk {
    const Code *code;
    const Frame *frame; /* of its caller */
    const Frame *bottom;
} Walk;

static Walk walk_begin(const Interp *in) { return (Walk){in->code, in->fp - 1, in->frames}; }

/* The place of the call that began this activation; none at the bottom. */
static Span walk_call(const Walk *w) {
    if (w->frame < w->bottom)
        return span_none();
    if (w->frame->tail)
        return w->frame->tail->span;
    const Code *caller = w->frame->code;
    if (!caller->origin)
        return span_none();
    return caller->origin[w->frame->pc - 1 - caller->instrs]->span;
}

static bool walk_next(Walk *w) {
    if (w->frame < w->bottom || !w->frame->code->origin)
        return false;
    w->code = w->frame->code;
    w->frame--;
    return true;
}

static const char *place(Span s) {
    uint32_t line, column;
    span_locate(s, &line, &column);
    return fmt_text("%s:%u:%u", s.source->name, line, column);
}

static const char *name_of(const Code *code) {
    const Symbol *name = code->fn->fn->name;
    return name ? fmt_text("`%s`", name->text) : "a function";
}

/* The calls above the one where the error is shown. */
static void add_calls(Diag *d, Walk w) {
    const char *last = NULL;
    Span last_call = span_none();
    unsigned long long repeats = 0;
    int shown = 0;
    unsigned long long more = 0;
    do {
        Span call = walk_call(&w);
        if (w.code->internal || w.code->item || is_internal(call))
            continue;
        if (shown == SHOWN) {
            more++;
            continue;
        }
        if (last && call.source == last_call.source && call.begin == last_call.begin) {
            repeats++;
            continue;
        }
        if (repeats)
            diag_add_fact(d, "... %llu more of %s", repeats, last);
        repeats = 0;
        last = name_of(w.code);
        last_call = call;
        if (!shown++)
            diag_add_label(d, call, "%s is called here", last);
        else
            diag_add_fact(d, "in %s, called at %s", last, place(call));
    } while (walk_next(&w));
    if (repeats)
        diag_add_fact(d, "... %llu more of %s", repeats, last);
    if (more)
        diag_add_fact(d, "... and %llu more calls above", more);
}

static void trace_add(Interp *in, Diag *d) {
    Walk w = walk_begin(in);
    if (is_internal(d->primary.span)) {
        Span inside = d->primary.span;
        bool found = false;
        do {
            Span call = walk_call(&w);
            if (!is_internal(call)) {
                d->primary.span = call;
                found = true;
            }
        } while (!found && walk_next(&w));
        if (found && inside.source)
            diag_add_fact(d, "raised at %s", place(inside));
        if (!found)
            return;
        /* the activation the call stands in */
        if (!w.frame->tail && !walk_next(&w))
            return;
    }
    add_calls(d, w);
}

void trace_since(Interp *in, size_t since) {
    if (in->fp <= in->frames || !in->code)
        return;
    for (size_t i = since; i < in->diags->list.len; i++)
        if (diag_get_info(in->diags->list.data[i]->code)->severity == SEVERITY_ERROR)
            trace_add(in, in->diags->list.data[i]);
}
