/* SPDX-License-Identifier: Apache-2.0 */
/* Where sizes came from, in words: a place of the same text gets a label, one of an earlier entry at
 * the prompt is told in a sentence. */
#include <string.h>

#include "base/mem.h"
#include "types/type/type.h"

static bool is_shown(Span span) { return span.source && !(span.source->flags & SOURCE_INTERNAL); }

static bool covers(Span outer, Span inner) {
    return outer.source == inner.source && outer.begin <= inner.begin && inner.end <= outer.end;
}

/* ---- sizes that enter a call ----------------------------------------------------------------- */

static Type *enter_tensor(Type *t, Span span, Span call) {
    uint32_t rank;
    Type **dims;
    int64_t n;
    if (t->tag != TY_TENSOR || !type_get_rank(t, &rank, &dims))
        return t;
    Type **entered = NULL;
    for (uint32_t i = 0; i < rank; i++) {
        Type *d = type_resolve(dims[i]);
        if (!type_get_int(d, &n))
            continue;
        if (!entered) {
            entered = mem_new_n(Type *, rank);
            memcpy(entered, dims, rank * sizeof *entered);
        }
        Origin *o = mem_new(Origin);
        *o = (Origin){.kind = ORIGIN_ARGUMENT, .span = span, .call = call, .from = d->origin};
        entered[i] = type_dim_int(n, o);
    }
    return entered ? type_tensor(type_shape(entered, rank), t->tensor.dtype) : t;
}

Type *origin_enter(Type *argument, Span span, Span call) {
    enum { MOST = 16 };
    Type *t = type_resolve(argument);
    if (!is_shown(span))
        return argument;
    if (t->tag != TY_TUPLE || t->nargs > MOST)
        return enter_tensor(t, span, call);
    Type **parts = mem_new_n(Type *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        parts[i] = enter_tensor(type_resolve(t->args[i]), span, call);
    return type_tuple(parts, t->nargs);
}

void origin_read(Type *type, Span span, const char *path) {
    Origin *o = mem_new(Origin);
    Map seen = {0};
    TypeVec unknowns = {0};
    *o = (Origin){.kind = ORIGIN_FILE, .span = span, .what = path ? fmt_text("`%s`", path) : NULL};
    type_collect(type, TY_ANY, &seen, &unknowns);
    for (size_t i = 0; i < unknowns.len; i++) {
        const Origin *old = unknowns.data[i]->origin;
        if (!old || old->kind == ORIGIN_ANNOTATION)
            unknowns.data[i]->origin = o;
    }
}

const Origin *origin_at_call(const Origin *origin, Span call) {
    if (!origin || origin->kind != ORIGIN_FILE || !is_shown(call))
        return origin;
    Origin *o = mem_new(Origin);
    *o = *origin;
    o->span = call;
    return o;
}

/* ---- in words -------------------------------------------------------------------------------- */

/* The origin to tell in d. Which operator inside of a called definition made a size, and by which argument it
 * entered the call, is told only where d is about that call. Elsewhere the call itself is its origin, or the
 * origin is where the argument had the size from. */
static const Origin *known_to(const Diag *d, const Origin *o) {
    while (o && o->call.source && !(d && covers(o->call, d->primary.span))) {
        if (o->kind == ORIGIN_OPERATOR) {
            Origin *called = mem_new(Origin);
            *called = (Origin){.kind = ORIGIN_OPERATOR, .span = o->call, .what = o->of};
            return called;
        }
        o = o->from;
    }
    return o;
}

/* "`zeros`", "this literal". */
static const char *maker_words(const Origin *o, bool here) {
    switch (o->kind) {
    case ORIGIN_LITERAL: return here ? "this literal" : "a literal";
    case ORIGIN_ARGUMENT:
        return o->of ? fmt_text("the argument %s of %s", o->what, o->of) : "this argument";
    case ORIGIN_ANNOTATION: return here ? "this annotation" : o->what ? o->what : "an annotation";
    case ORIGIN_OPERATOR:
        if (!o->what || !o->what[0])
            return here ? "this operator" : "an operator";
        return o->what[0] == '`' ? o->what : fmt_text("`%s`", o->what);
    case ORIGIN_FILE: return o->what ? fmt_text("the file %s", o->what) : "a file";
    }
    return "";
}

/* Whether d has a mark at the place already. A mark of a whole call is none of its arguments. */
static bool marks(Span mark, const Origin *o) {
    return covers(mark, o->span) && (o->kind != ORIGIN_ARGUMENT || o->of || !covers(mark, o->call));
}

static bool is_marked(const Diag *d, const Origin *o) {
    if (marks(d->primary.span, o))
        return true;
    for (size_t i = 0; i < d->labels.len; i++) {
        if (marks(d->labels.data[i].span, o))
            return true;
    }
    return false;
}

static bool shows_source(const Diag *d, const Source *source) {
    if (d->primary.span.source == source)
        return true;
    for (size_t i = 0; i < d->labels.len; i++) {
        if (d->labels.data[i].span.source == source)
            return true;
    }
    return false;
}

/* Adds the size to the fact that lists all sizes from the same place. */
static void add_comes_fact(Diag *d, const char *text, const char *where) {
    const char *one = fmt_text(" comes from %s", where),
               *several = fmt_text(" come from %s", where);
    for (size_t i = 0; i < d->facts.len; i++) {
        const char *fact = d->facts.data[i], *end = strstr(fact, one);
        if (!end)
            end = strstr(fact, several);
        if (!end || (strcmp(end, one) != 0 && strcmp(end, several) != 0))
            continue;
        const char *sizes = mem_strndup(fact, (size_t)(end - fact));
        if (strcmp(sizes, text) != 0)
            d->facts.data[i] = fmt_text("%s and %s%s", sizes, text, several);
        return;
    }
    diag_add_fact(d, "%s%s", text, one);
}

void diag_add_origin(Diag *d, const Type *size, const char *text) {
    const Origin *o = known_to(d, size ? size->origin : NULL);
    if (!o || size->tag == TY_VAR)
        return;
    const char *read = o->kind == ORIGIN_FILE ? ", read" : "";
    if (!is_shown(o->span)) {
        if (o->what && o->kind == ORIGIN_FILE)
            add_comes_fact(d, text, maker_words(o, false));
    } else if (is_marked(d, o)) {
        return;
    } else if ((o->span.source->flags & SOURCE_PROMPT) && !shows_source(d, o->span.source)) {
        const char *at = fmt_text(" at %s", o->span.source->name);
        for (size_t i = 0; i < d->labels.len;
             i++) { /* the label beside the operand says it already */
            const char *label = d->labels.data[i].text;
            if (strstr(label, at) && (!*read || strstr(label, o->what ? o->what : "a file")))
                return;
        }
        add_comes_fact(d, text, fmt_text("%s%s%s", maker_words(o, false), read, at));
    } else {
        diag_add_label(d, o->span, "%s comes from %s%s%s", text, maker_words(o, true), read,
                       *read ? " here" : "");
    }
}

const char *origin_words(Type *tensor, const Source *here) {
    uint32_t rank;
    Type **dims;
    if (!type_get_rank(tensor, &rank, &dims))
        return NULL;
    const Origin *found = NULL;
    for (uint32_t i = 0; i < rank; i++) {
        const Origin *o = known_to(NULL, type_resolve(dims[i])->origin);
        if (!o || !is_shown(o->span) || o->span.source == here ||
            !(o->span.source->flags & SOURCE_PROMPT))
            continue;
        if (found && found->span.source != o->span.source)
            return NULL; /* several entries made sizes of it */
        found = found ? found : o;
    }
    if (!found)
        return NULL;
    const char *at = found->span.source->name;
    switch (found->kind) {
    case ORIGIN_LITERAL: return fmt_text("written at %s", at);
    case ORIGIN_ANNOTATION:
        return found->what ? fmt_text("declared at %s by %s", at, found->what)
                           : fmt_text("declared at %s", at);
    case ORIGIN_FILE: return fmt_text("read at %s from %s", at, maker_words(found, false));
    case ORIGIN_ARGUMENT: return fmt_text("made at %s by %s", at, found->of);
    case ORIGIN_OPERATOR: return fmt_text("made at %s by %s", at, maker_words(found, false));
    }
    return NULL;
}
