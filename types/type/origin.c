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
    *o = (Origin){.kind = ORIGIN_FILE,
                  .span = span,
                  .place = {.kind = path ? PLACE_NAME : PLACE_NONE, .name = path}};
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
            *called = (Origin){
                .kind = ORIGIN_OPERATOR, .span = o->call, .place = place_of_name(o->of)};
            return called;
        }
        o = o->from;
    }
    return o;
}

/* "`zeros`", "this literal". */
static const char *maker_words(const Origin *o, bool here) {
    bool known = o->place.kind != PLACE_NONE;
    switch (o->kind) {
    case ORIGIN_LITERAL: return here ? "this literal" : "a literal";
    case ORIGIN_ARGUMENT:
        return o->of ? fmt_text("the argument %s of `%s`", type_place_text(&o->place), o->of)
                     : "this argument";
    case ORIGIN_ANNOTATION:
        return here ? "this annotation" : known ? type_place_text(&o->place) : "an annotation";
    case ORIGIN_OPERATOR:
        if (!known)
            return here ? "this operator" : "an operator";
        return type_place_text(&o->place);
    case ORIGIN_FILE: return known ? fmt_text("the file %s", type_place_text(&o->place)) : "a file";
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

void diag_add_origin(Diag *d, const Type *size, const char *text) {
    const Origin *o = known_to(d, size ? size->origin : NULL);
    if (!o || size->tag == TY_VAR)
        return;
    const char *read = o->kind == ORIGIN_FILE ? ", read" : "";
    if (!is_shown(o->span)) {
        if (o->place.kind != PLACE_NONE && o->kind == ORIGIN_FILE)
            diag_add_comes(d, text, maker_words(o, false));
    } else if (is_marked(d, o)) {
        return;
    } else if ((o->span.source->flags & SOURCE_PROMPT) && !shows_source(d, o->span.source)) {
        const char *at = fmt_text(" at %s", o->span.source->name);
        for (size_t i = 0; i < d->labels.len;
             i++) { /* the label beside the operand says it already */
            if (d->labels.data[i].made == o->span.source)
                return;
        }
        diag_add_comes(d, text, fmt_text("%s%s%s", maker_words(o, false), read, at));
    } else {
        diag_add_label(d, o->span, "%s comes from %s%s%s", text, maker_words(o, true), read,
                       *read ? " here" : "");
    }
}

/* The one earlier entry at the prompt that the sizes come from; NULL: none, or several. */
static const Origin *find_entry(Type *tensor, const Source *here) {
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
    return found;
}

const Source *origin_entry(Type *tensor, const Source *here) {
    const Origin *found = find_entry(tensor, here);
    return found ? found->span.source : NULL;
}

const char *origin_words(Type *tensor, const Source *here) {
    const Origin *found = find_entry(tensor, here);
    if (!found)
        return NULL;
    const char *at = found->span.source->name;
    switch (found->kind) {
    case ORIGIN_LITERAL: return fmt_text("written at %s", at);
    case ORIGIN_ANNOTATION:
        return found->place.kind != PLACE_NONE
                   ? fmt_text("declared at %s by %s", at, type_place_text(&found->place))
                   : fmt_text("declared at %s", at);
    case ORIGIN_FILE: return fmt_text("read at %s from %s", at, maker_words(found, false));
    case ORIGIN_ARGUMENT: return fmt_text("made at %s by `%s`", at, found->of);
    case ORIGIN_OPERATOR: return fmt_text("made at %s by %s", at, maker_words(found, false));
    }
    return NULL;
}

/* ---- what a diagnostic speaks of: Note [Diagnostics are data] in base/diag.h ------------------- */

DiagType diag_type(Type *t) {
    DiagType out = {.form = DIAG_FORM_OTHER};
    t = type_resolve(t);
    uint32_t rank;
    Type **dims;
    switch (t->tag) {
    case TY_TENSOR:
        out.form = type_get_rank(t, &rank, &dims) && rank == 0 ? DIAG_FORM_SCALAR
                                                               : DIAG_FORM_TENSOR;
        Type *dtype = type_resolve(t->tensor.dtype);
        if (dtype->tag == TY_DTYPE)
            out.dtype = sym_intern(dtype_info[dtype->dtype_value].name);
        break;
    case TY_STRING: out.form = DIAG_FORM_STRING; break;
    case TY_TUPLE: out.form = DIAG_FORM_TUPLE; break;
    case TY_REF: out.form = DIAG_FORM_REF; break;
    case TY_DATA:
        if (type_is_list(t))
            out.form = DIAG_FORM_LIST;
        else if (strcmp(t->decl->name->text, "Option") == 0)
            out.form = DIAG_FORM_OPTION; /* a mistaken one is refused when the change is tried */
        break;
    case TY_DTYPE:
    case TY_VAR:
    case TY_PARAM:
    case TY_FN:
    case TY_DERIV:
    case TY_DIM:
    case TY_SHAPE:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES:
    case TY_ERROR: break;
    }
    return out;
}

typedef struct Values {
    Diag *d;
    Map seen;
} Values;

static void note_values(void *ctx, Type *t) {
    Values *v = ctx;
    t = t ? type_resolve(t) : NULL;
    if (!t || map_has(&v->seen, t))
        return;
    map_set(&v->seen, t, t);
    int64_t n;
    if (t->tag == TY_DTYPE)
        diag_note_dtype(v->d, sym_intern(dtype_info[t->dtype_value].name));
    else if (t->tag == TY_DIM && type_get_int(t, &n))
        diag_note_size(v->d, sym_intern(fmt_text("%lld", (long long)n)));
    type_each_part(t, note_values, v);
}

void diag_note_type(Diag *d, Type *t) {
    Values v = {.d = d};
    note_values(&v, t);
}

void diag_label_type(Diag *d, Type *t) {
    diag_note_type(d, t);
    (d->labels.len ? &vec_last(&d->labels) : &d->primary)->type = diag_type(t);
}
