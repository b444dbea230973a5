/* SPDX-License-Identifier: Apache-2.0 */
/* Data that holds references, taken apart where it was made.
 *
 *   let s = Sums { all: ref(x), n: 2 };      let all = ref(x); let n = 2;
 *   s.all := !s.all * w;                     all := !all * w;
 *   match (s) { Sums(r, k) => !r * k }       let r = all; let k = n; !r * k
 *
 * So a reference in data becomes one that is read and written by name, which is the value that it holds (Note [References as
 * values] in references.c). Data that is used in another way stays beside that, and its references then, too. A definition
 * that takes apart what it is given, as `hd(list[r, s])` does, stands where it is called. */
#include "passes/cells.h"
#include "passes/reverse/internal.h"

enum { MOST = 20000, DEEPEST = 8 /* definitions in each other */ };

typedef struct Opener {
    Program *p;
    Map known;     /* Var -> EXPR_TUPLE, or a call of a constructor, of atoms */
    uint32_t work; /* MOST: too much, and nothing is changed */
    int depth;
} Opener;

typedef VEC(Expr *) LetLinks; /* EXPR_LETs without bodies */

static Expr *open_form(void *ctx, Expr *e);

static bool is_data(const Expr *e) {
    return e->nargs && (e->kind == EXPR_TUPLE || (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR));
}

static Expr *known_data(const Opener *o, const Expr *e) {
    return e->kind == EXPR_VAR ? map_find(&o->known, e->var) : NULL;
}

/* Whether a reference is a part of the data, or of a part that is known. */
static bool holds_reference(const Opener *o, const Expr *e) {
    for (uint32_t i = 0; i < e->nargs; i++) {
        const Expr *part = e->args[i];
        if (type_resolve(part->type)->tag == TY_REF || known_data(o, part) ||
            (is_data(part) && holds_reference(o, part)))
            return true;
    }
    return false;
}

/* The value behind the links, without names of data that nothing mentions any more. */
static Expr *with_links(const Opener *o, const LetLinks *links, Expr *value) {
    for (size_t i = links->len; i-- > 0;) {
        Expr *link = links->data[i];
        bool is_known = link->var && map_has(&o->known, link->var);
        if (is_known && !expr_mentions(value, link->var))
            continue;
        link->body = value;
        link->type = value->type;
        value = link;
    }
    return value;
}

static void add_link(LetLinks *links, Var *var, Expr *value) {
    Expr *link = expr_new(EXPR_LET, value->type, value->span);
    link->var = var;
    link->a = value;
    vec_push(links, link);
}

/* The data with names for its parts. */
static Expr *name_parts(Opener *o, LetLinks *links, Expr *e) {
    Expr *copy = expr_copy(e);
    copy->args = mem_new_n(Expr *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++) {
        Expr *part = e->args[i];
        copy->args[i] = part;
        if (is_atom(part))
            continue;
        Var *var = var_new(sym_intern("part"), part->type, part->span);
        if (is_data(part) && holds_reference(o, part)) {
            part = name_parts(o, links, part);
            map_set(&o->known, var, part);
        }
        add_link(links, var, part);
        copy->args[i] = expr_var(var, part->span);
    }
    return copy;
}

/* What is known of e, which was opened, with what comes before it as links; NULL: nothing, and no links were added. */
static Expr *data_of(Opener *o, LetLinks *links, Expr *e) {
    Expr *end = e;
    while (end->kind == EXPR_LET)
        end = end->body;
    bool is_made = is_data(end) && holds_reference(o, end);
    Expr *known = known_data(o, end);
    if (!is_made && !known)
        return NULL;
    for (; e->kind == EXPR_LET; e = e->body)
        vec_push(links, expr_copy(e));
    return is_made ? name_parts(o, links, end) : known;
}

/* What stands for e, of which that is known, behind the links. */
static Expr *name_of(const Opener *o, Expr *e, Expr *data) {
    while (e->kind == EXPR_LET)
        e = e->body;
    return known_data(o, e) ? e : data;
}

/* ---- what takes it apart ------------------------------------------------------------------------- */

static Expr *part_of(const Expr *data, const Expr *e) {
    if (e->kind == EXPR_PROJ)
        return data->kind == EXPR_TUPLE && (uint32_t)e->index < data->nargs ? data->args[e->index]
                                                                            : NULL;
    const Ctor *ctor = data->kind == EXPR_CALL ? data->a->ctor : NULL;
    for (uint32_t i = 0; ctor && ctor->field_names && i < data->nargs; i++)
        if (ctor->field_names[i] == e->field)
            return data->args[i];
    return NULL;
}

typedef enum Fit { FITS, FITS_NOT, FIT_UNKNOWN } Fit;

/* Whether a pattern takes the value, which is an atom or known data; binds its variables. */
static Fit fit(const Opener *o, LetLinks *links, const Pattern *p, Expr *value) {
    const Expr *data = is_data(value) ? value : known_data(o, value);
    switch (p->kind) {
    case PAT_WILDCARD: return FITS;
    case PAT_VAR:
        if (is_data(value))
            return FIT_UNKNOWN;
        add_link(links, p->var, value);
        return FITS;
    case PAT_LIT:
    case PAT_STRING: return FIT_UNKNOWN;
    case PAT_CTOR:
        if (!data || data->kind != EXPR_CALL || data->a->ctor->decl != p->ctor->decl)
            return FIT_UNKNOWN;
        if (data->a->ctor != p->ctor)
            return FITS_NOT;
        break;
    case PAT_TUPLE:
        if (!data || data->kind != EXPR_TUPLE)
            return FIT_UNKNOWN;
        break;
    }
    if (p->nargs != data->nargs)
        return FIT_UNKNOWN;
    for (uint32_t i = 0; i < p->nargs; i++) {
        Fit part = fit(o, links, p->args[i], data->args[i]);
        if (part != FITS)
            return part;
    }
    return FITS;
}

/* The arm that a match of that data takes, as links, and its body; NULL: it is not known. */
static Expr *arm_of(const Opener *o, LetLinks *links, const Expr *match, Expr *data) {
    for (uint32_t i = 0; i < match->narms; i++) {
        LetLinks bound = {0};
        Fit found = fit(o, &bound, match->arms[i].pattern, data);
        if (found == FIT_UNKNOWN || (found == FITS && match->arms[i].guard))
            return NULL;
        if (found == FITS_NOT)
            continue;
        for (size_t k = 0; k < bound.len; k++)
            vec_push(links, bound.data[k]);
        return match->arms[i].body;
    }
    return NULL;
}

static Expr *open_part(Opener *o, Expr *e) {
    Expr *a = open_form(o, e->a);
    LetLinks links = {0};
    const Expr *data = data_of(o, &links, a);
    Expr *part = data ? part_of(data, e) : NULL;
    if (part)
        return with_links(o, &links, part);
    if (a == e->a)
        return e;
    Expr *copy = expr_copy(e);
    copy->a = a;
    return copy;
}

/* { s with all = r } as a record of the fields of s and of r. */
static Expr *open_update(Opener *o, Expr *e) {
    Expr *copy = expr_map_children(e, open_form, o);
    LetLinks links = {0};
    Expr *data = data_of(o, &links, copy->a);
    if (!data || data->kind != EXPR_CALL || !data->a->ctor->field_names)
        return copy;
    Expr *made = expr_copy(data);
    made->type = e->type;
    made->args = mem_new_n(Expr *, data->nargs + 1);
    for (uint32_t i = 0; i < data->nargs; i++)
        made->args[i] = data->args[i];
    for (uint32_t k = 0; k < copy->nargs; k++) {
        Var *var = var_new(copy->field_names[k], copy->args[k]->type, e->span);
        add_link(&links, var, copy->args[k]);
        for (uint32_t i = 0; i < data->nargs; i++)
            if (data->a->ctor->field_names[i] == copy->field_names[k])
                made->args[i] = expr_var(var, e->span);
    }
    return with_links(o, &links, made);
}

static void learn_names(Opener *o, const LetLinks *links) {
    for (size_t i = 0; i < links->len; i++) {
        const Expr *link = links->data[i];
        Expr *data = link->var ? known_data(o, link->a) : NULL;
        if (data)
            map_set(&o->known, link->var, data);
    }
}

static Expr *open_match(Opener *o, Expr *e) {
    Expr *a = open_form(o, e->a), *copy;
    LetLinks links = {0};
    Expr *data = data_of(o, &links, a);
    size_t before = links.len;
    Expr *body = data ? arm_of(o, &links, e, data) : NULL;
    if (body) {
        learn_names(o, &links);
        return with_links(o, &links, open_form(o, body));
    }
    links.len = before;
    copy = expr_copy(e);
    copy->a = a;
    copy->arms = mem_new_n(Arm, e->narms + 1);
    for (uint32_t i = 0; i < e->narms; i++) {
        copy->arms[i] = e->arms[i];
        copy->arms[i].body = open_form(o, e->arms[i].body);
    }
    return copy;
}

/* Whether the definition does nothing but take apart the parameter. */
static bool takes_apart(const Expr *fn) {
    const Expr *e = fn->fn->body;
    bool is_part = e->kind == EXPR_MATCH || e->kind == EXPR_PROJ || e->kind == EXPR_FIELD;
    return fn->fn->nparams == 1 && is_part && e->a->kind == EXPR_VAR &&
           e->a->var == fn->fn->params[0];
}

/* A call of such a definition, of known data; any other call as it is. */
static Expr *open_call(Opener *o, Expr *e) {
    Expr *made = expr_map_children(e, open_form, o);
    const Global *g = made->kind == EXPR_CALL && made->a->kind == EXPR_GLOBAL ? made->a->global
                                                                              : NULL;
    bool is_known = g && g->kind == GLOBAL_DEF && !g->broken && g->value &&
                    g->value->kind == EXPR_FN && fn_has_own_code(g->value) && made->nargs == 1 &&
                    o->depth < DEEPEST && takes_apart(g->value);
    LetLinks links = {0};
    Expr *data = is_known ? data_of(o, &links, made->args[0]) : NULL;
    if (!data)
        return made;
    use_global(o->p, made->a->global);
    Var *arg = var_new(sym_intern("arg"), made->args[0]->type, made->span);
    add_link(&links, arg, name_of(o, made->args[0], data));
    map_set(&o->known, arg, data);
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = expr_var(arg, made->span);
    Expr *call = expr_copy(made);
    call->args = args;
    o->depth++;
    Expr *body = open_form(o, body_of_call(g->value, call));
    o->depth--;
    return with_links(o, &links, body);
}

/* ---- blocks -------------------------------------------------------------------------------------- */

static Expr *open_block(Opener *o, Expr *e) {
    LetLinks links = {0};
    for (; e->kind == EXPR_LET && o->work < MOST; e = e->body, o->work++) {
        Expr *link = expr_copy(e), *a = open_form(o, e->a);
        Expr *data = e->var ? data_of(o, &links, a) : NULL;
        for (; !data && a != e->a && a->kind == EXPR_LET; a = a->body) /* it may be a reference */
            vec_push(&links, expr_copy(a));
        link->a = data ? name_of(o, a, data) : a;
        if (data)
            map_set(&o->known, e->var, data);
        vec_push(&links, link);
    }
    return with_links(o, &links, open_form(o, e));
}

static Expr *open_function(Opener *o, Expr *e) {
    Opener inner = {.p = o->p, .work = o->work, .depth = o->depth}; /* what it captures stays */
    Expr *body = open_form(&inner, e->fn->body);
    o->work = inner.work;
    return body == e->fn->body ? e : fn_remade(e, body);
}

static Expr *open_form(void *ctx, Expr *e) {
    Opener *o = ctx;
    if (o->work >= MOST || mem_stack_left() < SPARE_STACK)
        o->work = MOST;
    if (o->work >= MOST || is_atom(e) || expr_is_vmap_of_literal(e))
        return e;
    o->work++;
    pass_visit(o->p->ctx);
    switch (e->kind) {
    case EXPR_LET: return open_block(o, e);
    case EXPR_FN: return open_function(o, e);
    case EXPR_PROJ:
    case EXPR_FIELD: return open_part(o, e);
    case EXPR_UPDATE: return open_update(o, e);
    case EXPR_MATCH: return open_match(o, e);
    case EXPR_CALL: return open_call(o, e);
    default: return expr_map_children(e, open_form, o);
    }
}

static bool holds_one(void *ctx, const Expr *e) {
    (void)ctx;
    if (!is_data(e))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (type_resolve(e->args[i]->type)->tag == TY_REF)
            return true;
    return false;
}

Expr *open_references(Program *p, Expr *fn) {
    if (!expr_any(fn, holds_one, NULL))
        return fn;
    Opener o = {.p = p};
    Expr *body = open_form(&o, fn->fn->body);
    return o.work >= MOST || body == fn->fn->body ? fn : fn_remade(fn, body);
}
