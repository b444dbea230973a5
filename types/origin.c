/* SPDX-License-Identifier: Apache-2.0 */
/* Where sizes came from, in words: a place of the same text gets a label, one of an earlier entry at
 * the prompt is told in a sentence. */
#include <string.h>

#include "types/type.h"

static bool is_shown(Span span)
{
    return span.source && !(span.source->flags & SOURCE_INTERNAL);
}

/* "`zeros`", "this literal". */
static const char *maker_words(const Origin *o, bool here)
{
    switch (o->kind) {
    case ORIGIN_LITERAL: return here ? "this literal" : "a literal";
    case ORIGIN_ARGUMENT: return o->what ? o->what : here ? "this argument" : "an argument";
    case ORIGIN_ANNOTATION: return here ? "this annotation" : "an annotation";
    case ORIGIN_OPERATOR:
        if (!o->what || !o->what[0]) return here ? "this operator" : "an operator";
        return o->what[0] == '`' ? o->what : fmt_text("`%s`", o->what);
    case ORIGIN_FILE: return o->what ? o->what : "a file";
    }
    return "";
}

static bool covers(Span outer, Span inner)
{
    return outer.source == inner.source && outer.begin <= inner.begin && inner.end <= outer.end;
}

/* Whether d marks the place already. */
static bool is_marked(const Diag *d, Span span)
{
    if (covers(d->primary.span, span)) return true;
    for (size_t i = 0; i < d->labels.len; i++) {
        if (covers(d->labels.data[i].span, span)) return true;
    }
    return false;
}

void diag_add_origin(Diag *d, const Type *size, const char *text)
{
    const Origin *o = size ? size->origin : NULL;
    if (!o || size->tag == TY_VAR) return;
    if (!is_shown(o->span)) {
        if (o->what && o->kind == ORIGIN_FILE)
            diag_add_fact(d, "%s comes from %s", text, maker_words(o, false));
    } else if ((o->span.source->flags & SOURCE_PROMPT) && o->span.source != d->primary.span.source) {
        for (size_t i = 0; i < d->labels.len; i++) { /* said beside the operand */
            if (strstr(d->labels.data[i].text, fmt_text("at %s", o->span.source->name))) return;
        }
        diag_add_fact(d, "%s comes from %s at %s", text, maker_words(o, false), o->span.source->name);
    } else if (!is_marked(d, o->span)) {
        diag_add_label(d, o->span, "%s comes from %s", text, maker_words(o, true));
    }
}

const char *origin_words(Type *tensor, const Source *here)
{
    uint32_t rank;
    Type **dims;
    if (!type_get_rank(tensor, &rank, &dims)) return NULL;
    const Origin *found = NULL;
    for (uint32_t i = 0; i < rank; i++) {
        const Origin *o = type_resolve(dims[i])->origin;
        if (!o || !is_shown(o->span) || o->span.source == here ||
            !(o->span.source->flags & SOURCE_PROMPT))
            continue;
        if (found && found->span.source != o->span.source) return NULL; /* of several */
        found = found ? found : o;
    }
    if (!found) return NULL;
    const char *at = found->span.source->name;
    switch (found->kind) {
    case ORIGIN_LITERAL: return fmt_text("written at %s", at);
    case ORIGIN_ANNOTATION: return fmt_text("declared at %s", at);
    case ORIGIN_FILE: return fmt_text("read at %s", at);
    case ORIGIN_ARGUMENT: return fmt_text("given at %s", at);
    case ORIGIN_OPERATOR: return fmt_text("made at %s by %s", at, maker_words(found, false));
    }
    return NULL;
}
