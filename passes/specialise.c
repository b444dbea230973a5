/* SPDX-License-Identifier: Apache-2.0 */
/* specialise: a call that gives a definition functions becomes a call of a copy made for these functions.
 *
 *   map(fn (x) { x * w }, xs)   becomes   map__1(w, xs)   where
 *   def map__1(w, xs) { match (xs) { Cons(x, rest) => { let y = x * w; Cons(y, map__1(w, rest)) }, Nil => Nil } }
 *
 * What the function captures becomes parameters, and a call of the definition by itself that hands the function on
 * becomes a call of the copy. A local function that is only called is made a definition so, too, where its calls stay
 * (Note [Calls that stay] in inline.c): no closure of it is made, and its derivative is that of a definition. The copy
 * (an *instance*) is a function of its own: it has the name of what it is a copy of in messages, and a trace shows it as
 * that.
 *
 * An instance is kept for its definition and the function literals it was made for, MOST of them a definition: a new
 * one then takes the place of the oldest. It is not made within an instance of the same definition unless it is that
 * instance, so a function that calls itself with a new function each time is copied once; and one that is made while an
 * instance is optimised, which may call itself with a function that the passes changed, is one deeper, MOST_DEEP at
 * most. The types that the call knows are those of the copy (mono.h), unless it calls its definition with others.
 * Whatever is not specialised runs as it stands.
 *
 * It does not look into data that holds functions, nor at functions that a call gives. */
#include "passes/cells.h"
#include "passes/inline.h"

#include "types/op.h"

#include <string.h>

Expr *pass_specialise(PassCtx *ctx, Expr *e);

enum {
    MOST = 64,            /* instances of a definition */
    AT_ONCE = 32,         /* instances made while one function is optimised */
    LARGEST = 600,        /* nodes of a function that is copied */
    LARGEST_LOCAL = 4000, /* of a local one or code of a derivative, which only the copy uses */
    DEEPEST = 4,          /* functions that capture functions */
    MOST_DEEP = 8,        /* instances made for instances */
};

typedef VEC(const void *) Key;

typedef struct Instance {
    Key key, types;
    Global *global;
    DependencyVec deps;
    bool strayed; /* it calls its definition, and not itself */
} Instance;

typedef struct Family {
    VEC(Instance *) members;
    size_t oldest;
} Family;

typedef struct Instances {
    Map families;           /* the Fn as it was written -> Family */
    VEC(const Fn *) making; /* those of which an instance is being made */
    uint32_t made;          /* for the function that is being optimised */
    uint8_t depth;          /* of that */
    bool strays; /* an instance calls its definition with types that are not known to be its own */
    unsigned long long numbers;
} Instances;

static Instances *instances_of(PassCtx *ctx) {
    if (!ctx->instances)
        ctx->instances = mem_new(Instances);
    return ctx->instances;
}

size_t specialise_known(const PassCtx *ctx) { return ctx->instances ? ctx->instances->numbers : 0; }

/* A call under consideration: what it gives to which function, as an instance would take it. */
typedef struct Site {
    Inliner *in;
    Expr *fn;          /* the function called, with the variables it captures */
    const Expr *local; /* the `let` of a local function; or NULL */
    bool is_derived;   /* made by a derivative; a copy of it is not, as copies may grow */
    Var *self;         /* of a local function that may call itself */
    Key key;
    VEC(Var *) params; /* of the instance */
    VEC(Expr *) args;  /* of its call */
    VEC(Expr *) links; /* `let`s without bodies: the functions that are known */
    Map given;         /* Var of the caller -> that of the instance */
    Map named;  /* Var of the instance: one that is a parameter or a captured variable of fn */
    Subst vars; /* of fn: its parameters and captured variables -> the instance's; and its types */
    Key types;  /* of the instance: parameters and what they are, as interned texts */
    bool pays;
} Site;

/* depth: 0 for what the function called has, more for what is of the caller, whose types are its own. Both may have parameters
 * of one definition, where that is called within a copy of itself. */
static Var *fresh_like(const Site *s, const Var *v, int depth) {
    Mono *mono = depth ? NULL : s->vars.mono;
    Var *fresh = var_new(v->name, mono_type(mono, v->type), v->span);
    fresh->scheme = v->scheme;
    return fresh;
}

static Expr *link_of(Var *v, Expr *value, bool rec) {
    Expr *link = expr_new(EXPR_LET, v->type, v->span);
    link->var = v;
    link->a = value;
    link->rec = rec;
    return link;
}

/* An argument that is handed on as a value: the instance's parameter for it. `like`: whose name and type it takes. */
static Var *take_value(Site *s, Expr *arg, const Var *like, int depth) {
    Expr *atom = inline_atom(s->in, arg);
    Var *known = atom->kind == EXPR_VAR ? map_find(&s->given, atom->var) : NULL;
    if (!known) {
        known = fresh_like(s, like, depth);
        vec_push(&s->params, known);
        vec_push(&s->args, arg);
        if (atom->kind == EXPR_VAR)
            map_set(&s->given, atom->var, known);
    }
    size_t at = 0;
    while (s->params.data[at] != known)
        at++;
    vec_push(&s->key, (const void *)(at * 2 + 1));
    return known;
}

static bool is_named_function(const Expr *e) {
    switch (e->kind) {
    case EXPR_GLOBAL: return e->global->kind == GLOBAL_DEF && !e->global->by_types;
    case EXPR_OP: return true;
    default: return false;
    }
}

static Var *take_function(Site *s, Expr *fn, const Var *self, const Var *like, int depth);

/* What stands in the instance for something given to it. */
static Var *take(Site *s, Expr *arg, const Var *like, int depth) {
    Expr *atom = inline_atom(s->in, arg);
    if (is_named_function(atom)) {
        Var *v = fresh_like(s, like, depth);
        vec_push(&s->links, link_of(v, atom, false));
        vec_push(&s->key, atom->kind == EXPR_OP ? (const void *)atom->op : atom->global);
        return v;
    }
    Expr *fn = inline_known_literal(s->in, atom);
    const Var *self = atom->kind == EXPR_VAR ? atom->var : NULL;
    return fn && depth < DEEPEST ? take_function(s, fn, self, like, depth)
                                 : take_value(s, arg, like, depth);
}

/* self: what the function may call itself by */
static Var *take_function(Site *s, Expr *fn, const Var *self, const Var *like, int depth) {
    VarVec free = {0};
    expr_free_vars(fn, &free);
    vec_push(&s->key, fn_written(fn));
    vec_push(&s->types,
             sym_intern(type_text(fn->type))); /* copies of one literal may have several */
    Subst within = {.renames = true};
    Var *made = fresh_like(s, like, depth);
    Map tensors = {0};
    bool rec = false;
    for (size_t i = 0; i < free.len; i++) {
        if (free.data[i] == self) {
            map_set(&within.vars, self, expr_var(made, fn->span));
            rec = true;
            continue;
        }
        Var *v = take(s, expr_var(free.data[i], fn->span), free.data[i], depth + 1);
        bool again = cells_in_type(v->type) && !map_enter(&tensors, v);
        if (again || fn->fn->keeps_captured) { /* two that are one value stay two */
            Var *own = fresh_like(s, v, depth + 1);
            vec_push(&s->links, link_of(own, expr_var(v, v->span), false));
            v = own;
        }
        map_set(&within.vars, free.data[i], expr_var(v, v->span));
    }
    vec_push(&s->links, link_of(made, expr_substitute(&within, fn), rec));
    return made;
}

/* ---- what pays ------------------------------------------------------------------------------- */

typedef struct Search {
    const Var *v;
    Map seen;
    bool found;
} Search;

/* Whether a variable is called, by `vmap` too, or handed on by a call, or by another name as code of derivatives does. */
static void find_call(void *ctx, Expr *e) {
    Search *s = ctx;
    for (; e->kind == EXPR_LET && !s->found; e = e->body) {
        find_call(s, e->a);
        s->found |= e->a->kind == EXPR_VAR && e->a->var == s->v;
    }
    if (s->found || map_has(&s->seen, e))
        return;
    map_set(&s->seen, e, e);
    if (e->kind == EXPR_CALL && e->a->kind != EXPR_CTOR) {
        s->found = e->a->kind == EXPR_VAR && e->a->var == s->v;
        for (uint32_t i = 0; i < e->nargs && !s->found; i++)
            s->found = e->args[i]->kind == EXPR_VAR && e->args[i]->var == s->v;
    }
    if (e->kind == EXPR_GRAD && e->mode == GRAD_VMAP)
        s->found = e->a->kind == EXPR_VAR && e->a->var == s->v;
    if (!s->found)
        expr_each_child(e, find_call, s);
}

static bool is_called(Expr *fn, const Var *v) {
    Search s = {.v = v};
    find_call(&s, fn->fn->body);
    return s.found;
}

static bool is_function(Inliner *in, Expr *arg) {
    Expr *atom = inline_atom(in, arg);
    return is_named_function(atom) || inline_known_literal(in, atom);
}

bool specialise_local(Inliner *in, const Expr *let) {
    if (!in->specialises || in->nested || !let->var || let->a->kind != EXPR_FN)
        return false;
    void *calls = map_find(&in->calls, let->var);
    return let->rec ? calls != NULL : calls == map_find(&in->uses, let->var);
}

/* ---- instances ------------------------------------------------------------------------------- */

static bool same_key(const Key *a, const Key *b) {
    return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len * sizeof *a->data) == 0);
}

static Instance *find_instance(const Family *family, const Key *key, const Key *types) {
    for (size_t i = 0; i < family->members.len; i++) {
        Instance *m = family->members.data[i];
        if (same_key(&m->key, key) && same_key(&m->types, types) && dependencies_hold(&m->deps))
            return m;
    }
    return NULL;
}

static void note_types(Site *s) {
    const Mono *mono = s->vars.mono;
    for (size_t i = 0; mono && i < mono->from.len; i++) {
        vec_push(&s->types, mono->from.data[i]);
        vec_push(&s->types, sym_intern(type_text(mono->to.data[i])));
    }
}

/* A local function stands in copies of the function around it, each with types of its own. */
static void note_types_of_local(Site *s) {
    for (size_t i = 0; i < s->params.len; i++)
        vec_push(&s->types, sym_intern(type_text(s->params.data[i]->type)));
    vec_push(&s->types, sym_intern(type_text(s->fn->fn->body->type)));
}

static void keep_instance(Family *family, Instance *m) {
    if (family->members.len < MOST)
        vec_push(&family->members, m);
    else
        family->members.data[family->oldest++ % MOST] = m;
}

/* The instance's function, as yet with calls of what it was made for. */
static Expr *instance_function(Site *s) {
    if (s->self) {
        Subst copy = {.renames = true};
        map_add(&copy.vars, &s->vars.vars);
        Var *self = fresh_like(s, s->self, 0);
        map_set(&copy.vars, s->self, expr_var(self, s->self->span));
        map_set(&s->vars.vars, s->self, expr_var(self, s->self->span));
        vec_push(&s->links, link_of(self, expr_substitute(&copy, s->fn), true));
    }
    Expr *body = expr_substitute(&s->vars, s->fn->fn->body);
    while (s->links.len) {
        Expr *link = vec_pop(&s->links);
        link->body = body;
        link->type = body->type;
        body = link;
    }
    Type **types = mem_new_n(Type *, s->params.len + 1);
    for (size_t i = 0; i < s->params.len; i++)
        types[i] = s->params.data[i]->type;
    Type *type = type_fn(types, (uint32_t)s->params.len, body->type, type_allocates());
    Expr *fn = expr_fn(s->params.data, (uint32_t)s->params.len, body, type, s->fn->span);
    fn->fn->name = s->fn->fn->name;
    fn->fn->is_instance = true;
    fn->fn->tails_marked = true;
    return fn;
}

static const char *name_of(const Expr *fn) { return fn->fn->name ? fn->fn->name->text : "fn"; }

static Instance *instance_new(Site *s, Family *family) {
    Instances *all = instances_of(s->in->ctx);
    Instance *m = mem_new(Instance);
    m->key = s->key;
    m->types = s->types;
    m->global = mem_new(Global);
    const char *name = name_of(s->fn);
    *m->global = (Global){.kind = GLOBAL_DEF,
                          .name = sym_intern(fmt_text("%s__%llu", name, ++all->numbers)),
                          .span = s->fn->span,
                          .internal = true,
                          .is_made = true};
    vec_push(&m->global->uses,
             m->global); /* as most do: it is called, and not put in place of calls */
    keep_instance(family, m);
    return m;
}

/* Of the functions in an instance, too, which are optimised when they first run. */
static bool note_depth(void *depth, const Expr *e) {
    if (e->kind == EXPR_FN)
        e->fn->depth = *(const uint8_t *)depth;
    return false;
}

/* NULL where another call within the same definition makes one already, or many were made. */
static Instance *make_instance(Site *s, Family *family, const Expr *call) {
    PassCtx *ctx = s->in->ctx;
    Instances *all = instances_of(ctx);
    for (size_t i = 0; i < all->making.len; i++)
        if (all->making.data[i] == fn_written(s->fn)) {
            all->strays = true;
            pass_tell(ctx, TOLD_LEFT, "specialise", call->span,
                      "left `%s`: it gives itself another function at each call", name_of(s->fn));
            return NULL;
        }
    if (all->depth == MOST_DEEP) {
        pass_tell(ctx, TOLD_LEFT, "specialise", call->span,
                  "left `%s`: it is called in a copy of a copy of a function, and so on",
                  name_of(s->fn));
        return NULL;
    }
    if (all->made == AT_ONCE) {
        pass_note(ctx, "specialise gave up after %d copies of functions", AT_ONCE);
        all->made++;
    }
    if (all->made > AT_ONCE)
        return NULL;
    uint32_t largest = s->local || s->is_derived ? LARGEST_LOCAL : LARGEST;
    if (expr_count(s->fn, largest) == largest) {
        pass_tell(ctx, TOLD_LEFT, "specialise", call->span, "left `%s`%s: it has %u nodes or more",
                  name_of(s->fn), s->local ? "" : ", which is given functions", largest);
        return NULL;
    }
    all->made++;
    Instance *m = instance_new(s, family);
    vec_push(&all->making, fn_written(s->fn));
    DependencyVec *outer = ctx->deps;
    bool strays = all->strays;
    all->strays = false;
    ctx->deps = &m->deps;
    Inliner in = {.ctx = ctx, .replaces_calls = true, .specialises = true};
    m->global->value = inline_root(&in, instance_function(s));
    m->global->value->fn->is_instance = true;
    uint8_t depth = all->depth + 1;
    expr_any(m->global->value, note_depth, &depth);
    m->strayed = all->strays;
    ctx->deps = outer;
    all->strays = strays;
    all->making.len--;
    pass_check(ctx, m->global->value, NULL, "specialise, in a copy");
    return m;
}

/* Whether e is a literal that may capture the variable and is not to lose it: by number, or as one that has a cell. */
static bool keeps_variable(void *ctx, const Expr *e) {
    const Var *v = ctx;
    return e->kind == EXPR_FN &&
           (e->fn->keeps_captured ||
            (cells_in_type(v->type) && expr_mentions((Expr *)(uintptr_t)e, v)));
}

/* Of two variables of fn that are given one value the second one gets a name of its own where a literal in fn captures
 * both: they stay two. */
static void name_in_instance(Site *s, const Var *of, Var *v) {
    bool again = !map_enter(&s->named, v);
    if (again && expr_any(s->fn->fn->body, keeps_variable, (void *)(uintptr_t)of)) {
        Var *own = fresh_like(s, v, 1);
        vec_push(&s->links, link_of(own, expr_var(v, v->span), false));
        v = own;
    }
    map_set(&s->vars.vars, of, expr_var(v, v->span));
}

/* What a local function captures. */
static void take_captured(Site *s, const Expr *call) {
    VarVec free = {0};
    expr_free_vars(s->fn, &free);
    for (size_t i = 0; i < free.len; i++) {
        if (free.data[i] == s->self)
            continue;
        name_in_instance(s, free.data[i],
                         take(s, expr_var(free.data[i], call->span), free.data[i], 0));
    }
}

/* with_types: the copy has the types that the call knows. */
static Expr *specialise_with(Inliner *in, Expr *call, bool with_types) {
    if (!in->specialises || in->nested || call->mode || call->drop || in->ctx->deps == NULL)
        return NULL;
    Expr *callee = inline_atom(in, call->a);
    Site s = {.in = in, .vars.renames = true};
    s.local = callee->kind == EXPR_VAR ? map_find(&in->locals, callee->var) : NULL;
    if (s.local) {
        s.fn = s.local->a;
        s.self = s.local->rec ? s.local->var : NULL;
    } else if (callee->kind == EXPR_GLOBAL) {
        s.fn = inline_known_function(in, callee);
        s.is_derived = s.fn && callee->global->is_made && !s.fn->fn->is_instance;
    }
    if (!s.fn || s.fn->fn->nparams != call->nargs || s.fn->fn->path)
        return NULL;
    for (uint32_t i = 0; i < call->nargs && !s.pays; i++)
        s.pays = is_function(in, call->args[i]) && is_called(s.fn, s.fn->fn->params[i]);
    if (!s.pays && !s.local)
        return NULL;
    expr_mark_tails(s.fn);
    Mono *known = with_types ? mono_of_call(s.fn, call->args, call->nargs) : NULL;
    s.vars.mono = known;
    note_types(&s);
    s.vars.mono = mono_apart(known, s.fn);
    if (s.local)
        take_captured(&s, call);
    for (uint32_t i = 0; i < call->nargs; i++) {
        const Var *param = s.fn->fn->params[i];
        name_in_instance(&s, param, take(&s, call->args[i], param, 0));
    }
    if (s.local)
        note_types_of_local(&s);
    Instances *all = instances_of(in->ctx);
    Family *family = map_find(&all->families, fn_written(s.fn));
    if (!family)
        map_set(&all->families, fn_written(s.fn), family = mem_new(Family));
    Instance *m = find_instance(family, &s.key, &s.types);
    if (!m)
        m = make_instance(&s, family, call);
    if (!m || (m->strayed && known))
        return m ? specialise_with(in, call, false) : NULL;
    if (callee->kind == EXPR_GLOBAL)
        pass_depend(in->ctx, callee->global);
    for (size_t i = 0; i < m->deps.len; i++)
        pass_depend(in->ctx, m->deps.data[i].global);
    pass_tell(in->ctx, TOLD_DONE, "specialise", call->span, "made the call of `%s` one of `%s`, %s",
              name_of(s.fn), m->global->name->text,
              s.local ? "a definition of its own" : "a copy for the functions it is given");
    Expr *result = expr_copy(call);
    Type **types = mem_new_n(Type *, s.args.len + 1);
    for (size_t i = 0; i < s.args.len; i++)
        types[i] = s.params.data[i]->type;
    result->a = expr_global(m->global,
                            type_fn(types, (uint32_t)s.args.len, call->type, type_allocates()),
                            call->a->span);
    result->args = s.args.data;
    result->nargs = (uint32_t)s.args.len;
    return result;
}

Expr *specialise_call(Inliner *in, Expr *call) { return specialise_with(in, call, true); }

Expr *pass_specialise(PassCtx *ctx, Expr *e) {
    Inliner in = {.ctx = ctx, .replaces_calls = ctx->deps != NULL, .specialises = true};
    instances_of(ctx)->made = 0;
    instances_of(ctx)->depth = e->kind == EXPR_FN ? e->fn->depth : 0;
    return inline_root(&in, e);
}
