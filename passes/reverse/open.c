/* SPDX-License-Identifier: Apache-2.0 */
/* Data that holds references, taken apart where it was made.
 *
 *   let s = Sums { all: ref(x), n: 2 };      let all = ref(x); let n = 2;
 *   s.all := !s.all * w;                     all := !all * w;
 *   match (s) { Sums(r, k) => !r * k }       let r = all; let k = n; !r * k
 *
 * So a reference in data becomes one that is read and written by name, which is the value that it holds (Note [References as
 * values] in references.c). Data that is used in another way stays beside that, and its references then, too. A definition
 * that takes apart what it is given, as `hd(list[r, s])` does, stands where it is called. Any other one that is given such
 * data is copied for it, and takes the parts; a local function that is only called captures these. A function that captured a
 * reference is opened as that is, and passes make copies of definitions for it:
 *
 *   def fill(s, n) { s.all := …; fill(s, n - 1) }      def fill(all, n, k) { all := …; fill(all, n, k - 1) }
 *   fill(s, 3)                                         fill(all, n, 3) */
#include "passes/cells.h"
#include "passes/reverse/internal.h"
#include "passes/subst.h"

enum { MOST = 20000, DEEPEST = 8 /* definitions in each other */ };

typedef struct Opener {
    Program *p;
    Map known;    /* Var -> EXPR_TUPLE, or a call of a constructor, of atoms */
    Map touching; /* Var of a `let` -> the EXPR_FN that it is bound to, which captured a reference */
    Map *copies;  /* Symbol: a definition and what it is given -> Global */
    Map *handed;  /* Var that is used other than by being called */
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

/* Whether e is a function that captured a reference, or one that did. */
static bool is_touching(const Opener *o, Expr *e) {
    VarVec captured = {0};
    if (e->kind == EXPR_VAR)
        return map_has(&o->touching, e->var);
    if (e->kind != EXPR_FN)
        return false;
    expr_free_vars(e, &captured);
    for (size_t i = 0; i < captured.len; i++)
        if (type_resolve(captured.data[i]->type)->tag == TY_REF ||
            map_has(&o->touching, captured.data[i]))
            return true;
    return false;
}

static void note_touching(Opener *o, Var *var, Expr *value) {
    if (is_touching(o, value))
        map_set(&o->touching, var,
                value->kind == EXPR_VAR ? map_find(&o->touching, value->var) : value);
}

/* Such a function that is stored, behind names for the cells that it has there; any other expression as it is. */
static Expr *open_stored(const Opener *o, Expr *e) {
    Expr *of = cells_is_own(e) ? e->args[0] : NULL;
    Expr *fn = of && of->kind == EXPR_VAR ? map_find(&o->touching, of->var) : NULL;
    Expr *stored = fn ? cells_of_literal(fn) : NULL;
    return stored == NULL ? e : stored == fn ? of : stored;
}

/* Whether a reference is a part of the data, or of a part that is known, or is captured by a function in it. */
static bool holds_reference(const Opener *o, const Expr *e) {
    for (uint32_t i = 0; i < e->nargs; i++) {
        Expr *part = e->args[i];
        if (type_resolve(part->type)->tag == TY_REF || known_data(o, part) ||
            is_touching(o, part) || (is_data(part) && holds_reference(o, part)))
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
        note_touching(o, var, part);
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

/* ---- what is given to a definition --------------------------------------------------------------- */

/* Adds the parts of known data, those of its parts one by one, and what distinguishes it from other data. */
static void add_parts(const Opener *o, Str *key, Exprs *parts, const Expr *data) {
    str_printf(key, "%p(", data->kind == EXPR_CALL ? (const void *)data->a->ctor : NULL);
    for (uint32_t i = 0; i < data->nargs; i++) {
        Expr *part = data->args[i];
        const Expr *known = known_data(o, part);
        if (known)
            add_parts(o, key, parts, known);
        else
            vec_push(parts, part);
        str_add_char(key, ',');
    }
    str_add_char(key, ')');
}

/* The types of the parts of such data where it has that type; NULL: it has not. */
static Type **types_of_parts(const Expr *data, Type *type) {
    const Type *t = type_resolve(type);
    Type **types = mem_new_n(Type *, data->nargs + 1);
    if (data->kind == EXPR_TUPLE)
        return t->tag == TY_TUPLE && t->nargs == data->nargs ? t->args : NULL;
    if (t->tag != TY_DATA || t->decl != data->a->ctor->decl)
        return NULL;
    for (uint32_t i = 0; i < data->nargs; i++)
        types[i] = place_field_type(type, data->a->ctor, i);
    return types;
}

/* Data like this, of that type, with new variables for its parts; NULL where it has no such type. */
static Expr *data_of_params(Opener *o, LetLinks *links, VarVec *params, const Expr *data,
                            Type *type) {
    Type **types = types_of_parts(data, type);
    Expr *copy = expr_copy(data);
    if (!types)
        return NULL;
    copy->type = type;
    copy->args = mem_new_n(Expr *, data->nargs + 1);
    if (data->kind == EXPR_CALL) {
        copy->a = expr_copy(data->a);
        copy->a->type = type_fn(types, data->nargs, type, type_pure());
    }
    for (uint32_t i = 0; i < data->nargs; i++) {
        const Expr *known = known_data(o, data->args[i]);
        Var *part = var_new(sym_intern("part"), types[i], data->span);
        Expr *inner = known ? data_of_params(o, links, params, known, types[i]) : NULL;
        if (known && !inner)
            return NULL;
        if (inner) {
            add_link(links, part, inner);
            map_set(&o->known, part, inner);
        } else {
            vec_push(params, part);
        }
        copy->args[i] = expr_var(part, data->span);
    }
    return copy;
}

/* Whether a `let` binds a local function that is only called. */
static bool is_local(const Opener *o, const Expr *let) {
    const Fn *fn = let->var && let->a->kind == EXPR_FN ? let->a->fn : NULL;
    return fn && !fn->keeps_captured && !fn->as_data && !map_has(o->handed, let->var);
}

/* Gives a copy of the definition, which is given that data (NULL: no such) by the call, the parts as parameters; false where these are
 * no parts of what it takes. */
static bool write_copy(Opener *o, Global *copy, const Expr *call, Expr *const *data) {
    Global *g = call->a->global;
    Expr *fn = cells_expose(function_after_passes(o->p, g->value));
    Subst s = {.mono = mono_of_derivative(fn, call->args, call->nargs)};
    fn = expr_substitute(&s, fn);
    LetLinks links = {0};
    VarVec params = {0};
    for (uint32_t i = 0; i < call->nargs; i++) {
        Var *param = fn->fn->params[i];
        if (!data[i]) {
            vec_push(&params, param);
            continue;
        }
        Expr *made = data_of_params(o, &links, &params, data[i], param->type);
        if (!made)
            return false;
        add_link(&links, param, made);
        map_set(&o->known, param, made);
    }
    expr_find_handed(fn->fn->body, o->handed);
    Expr *body = with_links(o, &links, open_form(o, fn->fn->body));
    uint32_t n = (uint32_t)params.len;
    Type **types = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = params.data[i]->type;
    copy->value = fn_remade(fn, body);
    copy->value->fn->params = params.data;
    copy->value->fn->nparams = n;
    copy->value->type = type_fn(types, n, body->type, type_allocates());
    return true;
}

/* The call of a definition that is given known data, as one of a copy that takes its parts; NULL: it stays. */
static Expr *call_with_parts(Opener *o, const Expr *call, Expr *const *data) {
    Global *g = call->a->global, *copy;
    Exprs args = {0};
    Str key = {0};
    str_printf(&key, "%p", (const void *)g);
    for (uint32_t i = 0; i < call->nargs; i++) {
        str_printf(&key, ", %s ", type_text(call->args[i]->type));
        if (data[i])
            add_parts(o, &key, &args, data[i]);
        else
            vec_push(&args, call->args[i]);
    }
    const Symbol *name = sym_intern(str_text(&key));
    copy = map_find(o->copies, name);
    if (!copy) {
        copy = instance_global(g->name->text);
        copy->internal = g->internal;
        use_global(o->p, g);
        map_set(o->copies, name, copy);
        o->depth++;
        bool ok = write_copy(o, copy, call, data);
        o->depth--;
        if (!ok) {
            map_set(o->copies, name, g);
            return NULL;
        }
    }
    if (copy == g)
        return NULL;
    Expr *made = expr_copy(call);
    made->a = expr_global(copy, b_some_type("f"), call->a->span);
    made->args = args.data;
    made->nargs = (uint32_t)args.len;
    return made;
}

/* Whether the definition does nothing but take apart the parameter. */
static bool takes_apart(const Expr *fn) {
    const Expr *e = fn->fn->body;
    bool is_part = e->kind == EXPR_MATCH || e->kind == EXPR_PROJ || e->kind == EXPR_FIELD;
    return fn->fn->nparams == 1 && is_part && e->a->kind == EXPR_VAR &&
           e->a->var == fn->fn->params[0];
}

/* A definition that takes apart what it is given, in place of a call of it with known data. */
static Expr *open_body(Opener *o, LetLinks *links, const Expr *call, Expr *data) {
    use_global(o->p, call->a->global);
    Var *arg = var_new(sym_intern("arg"), call->args[0]->type, call->span);
    add_link(links, arg, name_of(o, call->args[0], data));
    map_set(&o->known, arg, data);
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = expr_var(arg, call->span);
    Expr *copy = expr_copy(call);
    copy->args = args;
    o->depth++;
    Expr *body = open_form(o, body_of_call(call->a->global->value, copy));
    o->depth--;
    return with_links(o, links, body);
}

/* A call of a definition with known data; any other call as it is. */
static Expr *open_call(Opener *o, Expr *e) {
    Expr *made = expr_map_children(e, open_form, o);
    const Global *g = made->kind == EXPR_CALL && made->a->kind == EXPR_GLOBAL ? made->a->global
                                                                              : NULL;
    bool is_known = g && g->kind == GLOBAL_DEF && !g->broken && !g->by_types && g->value &&
                    g->value->kind == EXPR_FN && fn_has_own_code(g->value) && !made->mode &&
                    !made->drop && made->nargs == g->value->fn->nparams && o->depth < DEEPEST;
    if (!is_known)
        return open_stored(o, made);
    LetLinks links = {0};
    Expr **data = mem_new_n(Expr *, made->nargs + 1), **args = mem_new_n(Expr *, made->nargs + 1);
    bool any = false;
    for (uint32_t i = 0; i < made->nargs; i++) {
        Expr *arg = made->args[i];
        data[i] = data_of(o, &links, arg);
        any |= data[i] != NULL;
        args[i] = data[i] ? name_of(o, arg, data[i]) : arg;
        if (data[i] || is_atom(arg) || arg->kind == EXPR_FN || arg->kind == EXPR_OP)
            continue;
        Var *var = var_new(sym_intern("arg"), arg->type, arg->span);
        add_link(&links, var, arg);
        args[i] = expr_var(var, arg->span);
    }
    if (!any)
        return made;
    if (takes_apart(g->value))
        return open_body(o, &links, made, data[0]);
    Expr *copy = expr_copy(made);
    copy->args = args;
    Expr *call = call_with_parts(o, copy, data);
    return call ? with_links(o, &links, call) : made;
}

/* ---- blocks -------------------------------------------------------------------------------------- */

/* A function that captures parts of data in place of that. One that is stored would capture cells of its own for these. */
static Expr *open_local(Opener *o, Expr *fn) {
    Expr *body = open_form(o, fn->fn->body);
    return body == fn->fn->body ? fn : fn_remade(fn, body);
}

static Expr *open_block(Opener *o, Expr *e) {
    LetLinks links = {0};
    for (; e->kind == EXPR_LET && o->work < MOST; e = e->body, o->work++) {
        bool local = is_local(o, e);
        Expr *link = expr_copy(e), *a = local ? open_local(o, e->a) : open_form(o, e->a);
        Expr *data = e->var ? data_of(o, &links, a) : NULL;
        for (; !data && a != e->a && a->kind == EXPR_LET; a = a->body) /* it may be a reference */
            vec_push(&links, expr_copy(a));
        link->a = data ? name_of(o, a, data) : a;
        if (data)
            map_set(&o->known, e->var, data);
        else if (e->var && !e->rec)
            note_touching(o, e->var, a);
        vec_push(&links, link);
    }
    return with_links(o, &links, open_form(o, e));
}

static Expr *open_function(Opener *o, Expr *e) {
    Opener inner = *o;
    inner.known = inner.touching = (Map){0}; /* what it captures stays */
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
        return cells_is_own(e) && type_resolve(e->type)->tag == TY_FN;
    for (uint32_t i = 0; i < e->nargs; i++) {
        TypeTag tag = type_resolve(e->args[i]->type)->tag;
        if (tag == TY_REF || tag == TY_FN)
            return true;
    }
    return false;
}

/* Whether a definition is given a function that captured a reference. */
static bool hands_function(void *ctx, const Expr *e) {
    Opener *o = ctx;
    if (e->kind == EXPR_LET && e->var && !e->rec)
        note_touching(o, e->var, e->a);
    bool found = false;
    for (uint32_t i = 0; e->kind == EXPR_CALL && e->a->kind == EXPR_GLOBAL && i < e->nargs; i++)
        found |= is_touching(o, e->args[i]);
    return found;
}

static bool keeps_captured(void *root, const Expr *e) {
    return e->kind == EXPR_FN && e != root && e->fn->keeps_captured;
}

static Expr *open_data(Program *p, Expr *fn) {
    if (!expr_any(fn, holds_one, NULL))
        return fn;
    Map copies = {0}, handed = {0};
    Opener o = {.p = p, .copies = &copies, .handed = &handed};
    expr_find_handed(fn->fn->body, &handed);
    Expr *body = open_form(&o, fn->fn->body);
    return o.work >= MOST || body == fn->fn->body ? fn : fn_remade(fn, body);
}

/* Functions that were taken out of data are known where they are handed on, and passes make copies for them. */
Expr *open_references(Program *p, Expr *fn) {
    Opener o = {.p = p};
    Expr *opened = open_data(p, fn);
    bool again = expr_any(opened, hands_function, &o) && !expr_any(opened, keeps_captured, opened);
    return again ? function_after_passes(p, opened) : opened;
}
