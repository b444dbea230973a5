/* SPDX-License-Identifier: Apache-2.0 */
/* Values against types. A value and its type are walked together, breadth first, in a queue of
 * VERIFY_PARTS entries. A field of data has a type over the parameters of its declaration: instead of
 * substituting, each entry carries a Scope that says what they stand for. */
#include "eval/verify.h"

#include "types/type/dim.h"

#include <string.h>

/* ---- what code is compared with -------------------------------------------------------------- */

typedef struct Place {
    Type *type;         /* NULL: the beginning of the function */
    const Symbol *name; /* of the variable, or NULL */
    Span span;
} Place;

struct Verify {
    VEC(Place) places;
    Map open; /* id + 1 of each open part of the types of its places, types of functions aside */
    int32_t notes;
};

/* ---- what is noted of open types ------------------------------------------------------------- */

/* What an open part of a type was found to be. */
typedef struct Note {
    uint32_t id;
    uint32_t form;    /* of a type: the value's tag */
    int64_t size;     /* of a dim; of a dtype and of a tensor's type: the dtype */
    int rank;         /* of a shape */
    int64_t *shape;   /* of a shape */
    const void *decl; /* of a type of data: the declaration; of a tuple: its length */
    const Place *by;
} Note;

typedef struct Notes Notes;
typedef struct Scope Scope;

/* A size that was met when some of its variables were not known. */
typedef struct Waiting {
    Type *dim;
    int64_t size;
} Waiting;

/* Of one activation. */
struct Notes {
    const Verify *of;
    Notes *outer; /* of the function that made the closure */
    bool derived;
    VEC(Note) list;
    VEC(Waiting) waiting;
};

/* What the parameter of a declaration stands for: a type, in a scope of its own. */
typedef struct Meaning {
    Type *type;
    const Scope *scope;
} Meaning;

/* The parameters of a declaration, for the fields of one value. */
struct Scope {
    const TypeDecl *decl;
    Meaning *params;
    int64_t *exists; /* the sizes and dtypes that this value has for itself; -1 while not known */
};

enum { WAITING_MOST = 64 };

/* The notes of the activation that an open part belongs to: of the outermost function in whose types
 * it occurs. */
static Notes *notes_of(Notes *here, uint32_t id) {
    Notes *found = here;
    for (Notes *n = here; n; n = n->outer)
        if (n->of && map_has(&n->of->open, (void *)(uintptr_t)(id + 1)))
            found = n;
    return found;
}

static Note *find_note(Notes *here, uint32_t id) {
    const Notes *n = notes_of(here, id);
    for (size_t i = 0; i < n->list.len; i++)
        if (n->list.data[i].id == id)
            return &n->list.data[i];
    return NULL;
}

static void add_note(Notes *here, Note note) {
    Notes *n = notes_of(here, note.id);
    vec_push(&n->list, note);
}

static uint32_t open_id(const Type *t) { return t->tag == TY_VAR ? t->var.id : t->param.id; }

static bool is_open(const Type *t) {
    return t->tag == TY_VAR || t->tag == TY_PARAM || t->tag == TY_ANY;
}

/* ---- the walk -------------------------------------------------------------------------------- */

typedef struct Part {
    Value value;
    Type *type;
    const Scope *scope;
    bool element; /* of data */
} Part;

typedef struct Walk {
    Notes *notes;
    const Place *place;
    Part parts[VERIFY_PARTS];
    uint32_t n;
    Scope scopes[VERIFY_PARTS];
    Meaning params[2 * VERIFY_PARTS];
    int64_t exists[2 * VERIFY_PARTS];
    uint32_t nscopes, nparams, nexists;
    bool derived, element; /* element: of the part being matched */
    const char *why;       /* what a mismatch is, beyond value and type */
} Walk;

static void add_part(Walk *w, Value v, Type *type, const Scope *scope) {
    if (w->n < VERIFY_PARTS)
        w->parts[w->n++] = (Part){v, type, scope, w->element};
}

/* What the parameter of a declaration stands for; false for other types. */
static bool leave_scope(Type **t, const Scope **scope) {
    bool moved = false;
    while (*scope && (*t)->tag == TY_PARAM) {
        const TypeDecl *decl = (*scope)->decl;
        uint32_t i = 0;
        while (i < decl->nparams && type_resolve(decl->params[i]) != *t)
            i++;
        if (i == decl->nparams)
            break;
        const Meaning *meaning = &(*scope)->params[i];
        *t = type_resolve(meaning->type);
        *scope = meaning->scope;
        moved = true;
    }
    return moved;
}

/* The place of a size or dtype that the value of this scope has for itself, or NULL. */
static int64_t *own_part(const Type *t, const Scope *scope) {
    if (!scope || t->tag != TY_PARAM)
        return NULL;
    for (uint32_t i = 0; i < scope->decl->nexists; i++)
        if (type_resolve(scope->decl->exists[i]) == t)
            return &scope->exists[i];
    return NULL;
}

/* Whether a dim or shape is no matter: each value has its own. */
static bool is_of_each(const Walk *w, const Type *t) {
    return w->derived || w->element || ((t->tag == TY_ANY || t->tag == TY_PARAM) && t->param.each);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Whose variables a size has. */
typedef struct DimReader {
    Walk *walk;
    const Scope *scope;
} DimReader;

static DimKnown open_value(void *reader, Type *t, int64_t *out) {
    DimReader r = *(const DimReader *)reader;
    if (leave_scope(&t, &r.scope))
        return dim_evaluate(t, open_value, &r, out);
    const int64_t *own = own_part(t, r.scope);
    if (own) {
        *out = *own;
        return *own < 0 ? DIM_NOT_KNOWN : DIM_KNOWN;
    }
    const Note *note = is_open(t) && !is_of_each(r.walk, t) ? find_note(r.walk->notes, open_id(t))
                                                            : NULL;
    if (!note)
        return DIM_NOT_KNOWN;
    *out = note->size;
    return DIM_KNOWN;
}

static DimKnown dim_value(Walk *w, Type *t, const Scope *scope, int64_t *out) {
    DimReader r = {w, scope};
    return dim_evaluate(t, open_value, &r, out);
}

/* The sum of the terms that are known; *rest: the other one, if there is just one. */
static DimKnown sum_value(Walk *w, const Dim *d, const Scope *scope, int64_t *out,
                          const DimMonomial **rest) {
    DimReader r = {w, scope};
    int64_t sum = d->constant, x = 0;
    uint32_t open = 0;
    for (uint32_t i = 0; i < d->nterms; i++) {
        switch (dim_evaluate_term(&d->terms[i], open_value, &r, &x)) {
        case DIM_KNOWN:
            if (__builtin_add_overflow(sum, x, &sum))
                return DIM_NO_SIZE;
            break;
        case DIM_NOT_KNOWN: *rest = open++ ? NULL : &d->terms[i]; break;
        case DIM_NO_SIZE: return DIM_NO_SIZE;
        }
    }
    *out = sum;
    return open ? DIM_NOT_KNOWN : DIM_KNOWN;
}

static const char *noted_by(const Note *note) {
    const Place *by = note->by;
    return by && by->name ? fmt_text(", by `%s`", by->name->text) : "";
}

static bool match_dim(Walk *w, Type *t, const Scope *scope, int64_t size, bool may_wait);

/* Sizes that waited are compared as soon as their variables are known. */
static bool match_waiting(Walk *w) {
    Notes *n = w->notes;
    for (size_t i = 0; i < n->waiting.len; i++) {
        Waiting x = n->waiting.data[i];
        int64_t size;
        if (dim_value(w, x.dim, NULL, &size) == DIM_NOT_KNOWN)
            continue;
        n->waiting.data[i] = n->waiting.data[--n->waiting.len];
        if (!match_dim(w, x.dim, NULL, x.size, false))
            return false;
        i = (size_t)-1; /* from the beginning: it may have told another */
    }
    return true;
}

/* Whether a value is what its own part is; where that is not known, it is found by this value. */
static bool match_own(int64_t *own, int64_t is) {
    if (*own < 0)
        *own = is;
    return *own == is;
}

static bool match_open_dim(Walk *w, Type *t, const Scope *scope, int64_t size) {
    int64_t *own = own_part(t, scope);
    if (own)
        return match_own(own, size);
    if (is_of_each(w, t))
        return true;
    const Note *note = find_note(w->notes, open_id(t));
    if (!note) {
        add_note(w->notes, (Note){.id = open_id(t), .size = size, .by = w->place});
        return match_waiting(w);
    }
    if (note->size != size)
        w->why = fmt_text("`%s` is %lld here%s", type_text(t), (long long)note->size,
                          noted_by(note));
    return note->size == size;
}

static bool match_dim(Walk *w, Type *t, const Scope *scope, int64_t size, bool may_wait) {
    t = type_resolve(t);
    leave_scope(&t, &scope);
    if (is_open(t))
        return match_open_dim(w, t, scope, size);
    if (t->tag != TY_DIM)
        return t->tag == TY_ERROR;
    const DimMonomial *rest = NULL;
    int64_t known;
    switch (sum_value(w, t->dim, scope, &known, &rest)) {
    case DIM_KNOWN:
        if (known != size)
            w->why = fmt_text("`%s` is %lld here", type_text(t), (long long)known);
        return known == size;
    case DIM_NO_SIZE: w->why = fmt_text("`%s` is no size here", type_text(t)); return false;
    case DIM_NOT_KNOWN: break;
    }
    if (rest && rest->natoms == 1 && rest->atoms[0]->kind == DIM_ATOM_TYPE) {
        int64_t left = size - known;
        w->why = fmt_text("`%s` is no integer then", type_text(rest->atoms[0]->type));
        return left % rest->coef == 0 &&
               match_dim(w, rest->atoms[0]->type, scope, left / rest->coef, false);
    }
    if (may_wait && !w->derived && !w->element && !scope && w->notes->waiting.len < WAITING_MOST)
        vec_push(&w->notes->waiting, ((Waiting){t, size}));
    return true;
}

static bool match_shape(Walk *w, Type *t, const Scope *scope, const Tensor *tensor) {
    t = type_resolve(t);
    leave_scope(&t, &scope);
    if (t->tag == TY_SHAPE) {
        /* An `if` of a rule over attributes gives its arms one rank, and only that of the call runs. */
        if (t->nargs != (uint32_t)tensor->rank)
            return w->derived && t->nargs && !(type_resolve(t->args[0])->tag == TY_DIM);
        for (uint32_t i = 0; i < t->nargs; i++)
            if (!match_dim(w, t->args[i], scope, tensor->shape[i], true))
                return false;
        return true;
    }
    if (!is_open(t) || is_of_each(w, t))
        return true;
    size_t bytes = (size_t)tensor->rank * sizeof(int64_t);
    const Note *note = find_note(w->notes, open_id(t));
    if (note) {
        bool same = note->rank == tensor->rank && memcmp(note->shape, tensor->shape, bytes) == 0;
        if (!same)
            w->why = fmt_text("the shape `%s` is another here%s", type_text(t), noted_by(note));
        return same;
    }
    Note made = {.id = open_id(t), .rank = tensor->rank, .by = w->place};
    made.shape = mem_bytes(bytes + 1);
    memcpy(made.shape, tensor->shape, bytes);
    add_note(w->notes, made);
    return true;
}

/* ---- types ----------------------------------------------------------------------------------- */

static bool match_dtype(Walk *w, Type *t, const Scope *scope, DType dtype) {
    t = type_resolve(t);
    leave_scope(&t, &scope);
    if (t->tag == TY_DTYPE)
        return t->dtype_value == dtype;
    if (!is_open(t))
        return t->tag == TY_ERROR;
    int64_t *own = own_part(t, scope);
    if (own)
        return match_own(own, (int64_t)dtype);
    DTypeSet may = type_dtype_set(t);
    if (!(may >> dtype & 1))
        return false;
    if (w->derived)
        return true;
    const Note *note = find_note(w->notes, open_id(t));
    if (!note) {
        add_note(w->notes, (Note){.id = open_id(t), .size = (int64_t)dtype, .by = w->place});
        return true;
    }
    if (note->size != (int64_t)dtype)
        w->why = fmt_text("the dtype `%s` is %s here%s", type_text(t), dtype_info[note->size].name,
                          noted_by(note));
    return note->size == (int64_t)dtype;
}

static bool match_tensor(Walk *w, const Part *p) {
    Tensor scalar = {.rank = 0};
    const Tensor *t = &scalar;
    if (p->value.tag == VAL_SCALAR)
        scalar.dtype = (DType)p->value.aux;
    else if (p->value.tag == VAL_TENSOR)
        t = p->value.p;
    else
        return false;
    return match_dtype(w, p->type->tensor.dtype, p->scope, t->dtype) &&
           match_shape(w, p->type->tensor.shape, p->scope, t);
}

static bool match_tuple(Walk *w, const Part *p) {
    const Tuple *t = p->value.p;
    if (p->value.tag != VAL_TUPLE || (t ? t->n : 0) != p->type->nargs)
        return false;
    for (uint32_t i = 0; t && i < t->n; i++)
        add_part(w, t->items[i], p->type->args[i], p->scope);
    return true;
}

static uint32_t arity(const Closure *c) {
    const Expr *base = c->fn->fn->base;
    return base ? base->fn->nparams : c->fn->fn->nparams;
}

/* A twin's own type has the tape as its first parameter; where the user's code names it, it stands for
 * its base (Note [Twins] in passes/grad.h). */
static bool match_function(const Part *p) {
    if (p->value.tag != VAL_CLOSURE)
        return p->value.tag == VAL_BUILTIN;
    const Closure *c = p->value.p;
    return c->fn->fn->nparams == p->type->nargs || arity(c) == p->type->nargs;
}

static bool match_ref(Walk *w, const Part *p) {
    if (p->value.tag != VAL_REF)
        return false;
    for (const Part *before = w->parts; before < p; before++)
        if (before->value.tag == VAL_REF && before->value.p == p->value.p)
            return true;
    add_part(w, ((const Ref *)p->value.p)->value, p->type->elem, p->scope);
    return true;
}

/* The scope of the fields of one value: that of the value around it where it would be the same; NULL
 * when there is no room for another. */
static const Scope *field_scope(Walk *w, const Type *t, const Scope *around) {
    const TypeDecl *decl = t->decl;
    if (w->nscopes == VERIFY_PARTS || w->nparams + decl->nparams > 2 * VERIFY_PARTS ||
        w->nexists + decl->nexists > 2 * VERIFY_PARTS)
        return NULL;
    Meaning *params = w->params + w->nparams;
    bool same = around && around->decl == decl && !decl->nexists;
    for (uint32_t i = 0; i < decl->nparams; i++) {
        params[i] = (Meaning){type_resolve(t->args[i]), around};
        leave_scope(&params[i].type, &params[i].scope);
        same = same && params[i].type == around->params[i].type &&
               params[i].scope == around->params[i].scope;
    }
    if (same)
        return around;
    Scope *made = &w->scopes[w->nscopes++];
    *made = (Scope){decl, params, w->exists + w->nexists};
    for (uint32_t i = 0; i < decl->nexists; i++)
        made->exists[i] = -1;
    w->nparams += decl->nparams;
    w->nexists += decl->nexists;
    return made;
}

static bool match_data(Walk *w, const Part *p) {
    if (p->value.tag != VAL_CTOR)
        return p->type->decl->is_extern;
    const Ctor *ctor = data_ctor(p->value);
    if (ctor->decl != type_decl_of_values(p->type->decl))
        return false;
    ctor = ctor_of_type(ctor, p->type);
    if (!ctor->nfields)
        return true;
    const Scope *scope = field_scope(w, p->type, p->scope);
    w->element = true;
    for (uint32_t i = 0; scope && i < ctor->nfields; i++)
        add_part(w, data_get(p->value, i), ctor->fields[i], scope);
    return true;
}

/* A value of an open type: of the same form as those before. */
static bool match_form(Walk *w, const Part *p) {
    Note form = {.id = open_id(p->type), .form = p->value.tag, .by = w->place};
    switch ((ValueTag)p->value.tag) {
    case VAL_SCALAR:
        form.form = VAL_TENSOR;
        form.size = p->value.aux;
        break;
    case VAL_TENSOR: form.size = ((const Tensor *)p->value.p)->dtype; break;
    case VAL_TUPLE: form.size = p->value.p ? ((const Tuple *)p->value.p)->n : 0; break;
    case VAL_CTOR: form.decl = data_ctor(p->value)->decl; break;
    case VAL_BUILTIN: form.form = VAL_CLOSURE; break;
    case VAL_CLOSURE:
    case VAL_REF:
    case VAL_STRING:
    case VAL_DUAL: break;
    case VAL_ABSENT: return false;
    }
    if (w->derived)
        return true;
    const Note *note = find_note(w->notes, form.id);
    if (!note) {
        add_note(w->notes, form);
        return true;
    }
    bool same = note->form == form.form && note->size == form.size && note->decl == form.decl;
    if (!same)
        w->why = fmt_text("`%s` is of another kind here%s", type_text(p->type), noted_by(note));
    return same;
}

static bool match_part(Walk *w, Part *p) {
    p->value = value_primal(p->value);
    p->type = type_resolve(p->type);
    leave_scope(&p->type, &p->scope);
    if (p->value.tag == VAL_ABSENT)
        return false;
    if (w->derived && p->value.tag == VAL_TUPLE && !p->value.p)
        return true; /* a cotangent that is absent */
    switch (p->type->tag) {
    case TY_VAR: return match_form(w, p);
    case TY_PARAM: return match_form(w, p);
    case TY_TENSOR: return match_tensor(w, p);
    case TY_TUPLE: return match_tuple(w, p);
    case TY_FN: return match_function(p);
    case TY_REF: return match_ref(w, p);
    case TY_DATA: return match_data(w, p);
    case TY_STRING: return p->value.tag == VAL_STRING;
    case TY_DERIV:
    case TY_ERROR: return true;
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return false;
    }
    return false;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* The type that a value tells of itself, to a small depth. */
static void add_form(Str *out, Value v, int depth) {
    v = value_primal(v);
    switch ((ValueTag)v.tag) {
    case VAL_SCALAR: str_add(out, dtype_info[v.aux].name); return;
    case VAL_TENSOR: {
        const Tensor *t = v.p;
        str_add(out, "Tensor[(");
        for (int i = 0; i < t->rank; i++)
            str_printf(out, t->rank == 1 ? "%lld," : i ? ", %lld" : "%lld", (long long)t->shape[i]);
        str_printf(out, "), %s]", dtype_info[t->dtype].name);
        return;
    }
    case VAL_TUPLE: {
        const Tuple *t = v.p;
        str_add_char(out, '(');
        for (uint32_t i = 0; t && i < t->n; i++) {
            str_add(out, i ? ", " : "");
            if (depth)
                add_form(out, t->items[i], depth - 1);
            else
                str_add(out, "…");
        }
        str_add(out, t && t->n == 1 ? ",)" : ")");
        return;
    }
    case VAL_CTOR: {
        const Ctor *ctor = data_ctor(v);
        str_printf(out, "data `%s` of %s", ctor->name->text, ctor->decl->name->text);
        return;
    }
    case VAL_CLOSURE: str_printf(out, "a function of %u parameters", arity(v.p)); return;
    case VAL_REF: str_add(out, "a reference"); return;
    case VAL_STRING: str_add(out, "String"); return;
    case VAL_BUILTIN: str_add(out, "a builtin"); return;
    case VAL_DUAL:
    case VAL_ABSENT: str_add(out, "no value"); return;
    }
}

static const char *form_text(Value v) {
    Str out = {0};
    add_form(&out, v, 2);
    return str_text(&out);
}

_Noreturn static void report(const Walk *w, const Part *wrong) {
    const Part *whole = &w->parts[0];
    const Place *place = w->place;
    Span span = place->span;
    Str out = {0};
    uint32_t line = 0, column = 0;
    if (span.source)
        span_locate(span, &line, &column);
    str_add(&out, place->name ? fmt_text("`%s`", place->name->text) : "the value here");
    str_printf(&out, " is %s, but its type is %s", form_text(whole->value), type_text(whole->type));
    if (wrong != whole)
        str_printf(&out, "; of it a part is %s, its type %s", form_text(wrong->value),
                   type_text(wrong->type));
    if (w->why)
        str_printf(&out, "; %s", w->why);
    str_printf(&out, " (%s:%u:%u)", span.source ? span.source->name : "?", line, column);
    bug_end(str_text(&out), BUG_STATUS_MISMATCH);
}

static void compare(Notes *notes, const Place *place, Value v) {
    Walk w;
    w.notes = notes;
    w.place = place;
    w.n = w.nscopes = w.nparams = w.nexists = 0;
    w.derived = notes->derived;
    w.element = false;
    w.why = NULL;
    add_part(&w, v, place->type, NULL);
    for (uint32_t i = 0; i < w.n; i++) {
        w.why = NULL;
        w.element = w.parts[i].element;
        if (!match_part(&w, &w.parts[i]))
            report(&w, &w.parts[i]);
    }
}

/* ---- while it runs --------------------------------------------------------------------------- */

/* Of an activation; those of the enclosing function serve where none are its own. */
static Notes *notes_begin(const Code *code, Notes *outer) {
    bool derived = code->path || (outer && outer->derived);
    if (!code->verify->open.len && derived == (outer && outer->derived))
        return outer;
    Notes *made = mem_new(Notes);
    made->of = code->verify;
    made->outer = outer;
    made->derived = derived;
    return made;
}

void verify_run(const Code *code, const Instr *pc, Value *notes, Value v) {
    const Place *place = &code->verify->places.data[pc->c];
    if (!place->type) {
        Notes *outer = v.tag == VAL_ABSENT ? v.p : NULL;
        *notes = (Value){.tag = VAL_ABSENT, .p = notes_begin(code, outer)};
        return;
    }
    Notes none = {0};
    compare(notes->p ? notes->p : &none, place, v);
}

void verify_global(Interp *in, const Global *g, Value v) {
    if (!in->options.verify_types || !g->scheme)
        return;
    Notes notes = {0};
    Place place = {g->scheme->type, g->name, g->span};
    compare(&notes, &place, v);
}

/* ---- while code is made ---------------------------------------------------------------------- */

static void note_open(void *verify, Type *t) {
    Verify *v = verify;
    t = type_resolve(t);
    if (is_open(t))
        map_set(&v->open, (void *)(uintptr_t)(open_id(t) + 1), t);
    else if (t->tag != TY_FN && (t->flags & (TYPE_HAS_VARS | TYPE_HAS_PARAMS | TYPE_HAS_ANY)))
        type_each_part(t, note_open, v);
}

static void add_place(Resolver *r, Expr *origin, int32_t at, Place place) {
    Verify *v = r->code->verify;
    vec_push(&v->places, place);
    emit(r, origin, CODE_VERIFY, 0, v->notes, at, (int32_t)v->places.len - 1);
}

void verify_begin(Resolver *r) {
    Code *code = r->code;
    if (!r->in->options.verify_types)
        return;
    Verify *v = mem_new(Verify);
    code->verify = v;
    v->notes = operand(BASE_SLOT, (uint32_t)slot_new(r));
    int32_t outer = const_value(r, (Value){.tag = VAL_ABSENT});
    if (!code->item && code->ncaptured && !code->captured[code->ncaptured - 1])
        outer = operand(BASE_CAPTURED, code->ncaptured - 1);
    add_place(r, code->fn, outer, (Place){.span = code->fn->span});
    if (code->item)
        return;
    const Fn *fn = code->fn->fn;
    for (uint32_t i = 0; i < fn->nparams; i++)
        verify_operand(r, code->fn, operand(BASE_SLOT, i), fn->params[i]->type,
                       fn->params[i]->name);
    for (uint32_t i = 0; i < code->ncaptured; i++)
        if (code->captured[i])
            verify_operand(r, code->fn, operand(BASE_CAPTURED, i), code->captured[i]->type,
                           code->captured[i]->name);
}

void verify_operand(Resolver *r, Expr *origin, int32_t at, Type *type, const Symbol *name) {
    if (!r->code->verify || !type || origin == r->unverified)
        return;
    note_open(r->code->verify, type);
    add_place(r, origin, at, (Place){type, name, origin->span});
}

int32_t verify_activation(const Resolver *r) { return r->code->verify->notes; }

bool verify_waits_for_checks(const Expr *let) {
    const Expr *body = let->body;
    for (uint32_t i = 0; body->kind == EXPR_CHECK && i < body->nchecks; i++) {
        const Expr *sides[] = {body->checks[i].found, body->checks[i].expected};
        for (int k = 0; k < 2; k++) {
            const Expr *e = sides[k]->kind == EXPR_DIM_OF ? sides[k]->a : sides[k];
            if (e->kind == EXPR_VAR && e->var == let->var)
                return true;
        }
    }
    return false;
}
