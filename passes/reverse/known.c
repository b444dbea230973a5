/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are known where they are called, and what a step may do that is not differentiated. */
#include "passes/reverse/beside.h"
#include "passes/subst.h"

#include <string.h>

/* ---- known functions ------------------------------------------------------------------------- */

Known *known_new(Expr *fn) {
    Known *k = mem_new(Known);
    k->fn = k->original = fn;
    expr_free_vars(fn, &k->captured);
    k->known = mem_new_n(Known *, k->captured.len + 1);
    k->active = mem_new_n(bool, k->captured.len + 1);
    return k;
}

Known *reverse_known(Expr *fn, Known *const *captured, uint32_t self) {
    Known *k = known_new(fn);
    for (uint32_t i = 0; i < k->captured.len; i++)
        k->known[i] = i == self ? k : captured[i];
    return k;
}

void reverse_known_hold(Known *k, const HeldFunctions *held) { k->held = held; }

/* The same function as its closure is, with nothing active in what it captured. */
Known *known_inactive(const Known *k) {
    Known *made = known_new(k->original);
    made->sizes = k->sizes;
    for (uint32_t i = 0; i < k->captured.len; i++)
        made->known[i] = !k->known[i]       ? NULL
                         : k->known[i] == k ? made
                                            : known_inactive(k->known[i]);
    return made;
}

/* Whether a function is known among what it captured. */
bool known_captured_any(const Known *k) {
    for (uint32_t i = 0; i < k->captured.len; i++)
        if (k->known[i])
            return true;
    return false;
}

bool reverse_known_is(const Known *a, const Known *b) { return known_equal(a, b); }

static bool is_held(const HeldFunctions *in, const HeldFunction *f) {
    for (size_t i = 0; i < in->all.len; i++) {
        const HeldFunction *g = &in->all.data[i];
        bool same = g->literal == f->literal && g->self == f->self && g->is_known == f->is_known &&
                    g->op == f->op && !g->type == !f->type;
        if (same && (!g->type || strcmp(type_text(g->type), type_text(f->type)) == 0))
            return true;
    }
    return false;
}

/* Whether both hold the same functions, however many of each. */
static bool hold_same(const HeldFunctions *a, const HeldFunctions *b) {
    if (a == b || !a || !b || a->all.len != b->all.len)
        return a == b;
    for (size_t i = 0; i < a->all.len; i++)
        if (!is_held(b, &a->all.data[i]))
            return false;
    return true;
}

bool known_equal(const Known *a, const Known *b) {
    if (a == b)
        return true;
    if (!a || !b || a->fn != b->fn || a->sizes != b->sizes || !hold_same(a->held, b->held))
        return false;
    for (uint32_t i = 0; i < a->captured.len; i++) {
        bool self_a = a->known[i] == a, self_b = b->known[i] == b;
        if (a->active[i] != b->active[i] || self_a != self_b ||
            (!self_a && !known_equal(a->known[i], b->known[i])))
            return false;
    }
    return true;
}

void use_global(Program *p, Global *g) {
    if (map_has(&p->used, g))
        return;
    map_set(&p->used, g, g);
    vec_push(&p->code->uses, ((Dependency){g, g->value, g->values}));
}

/* Note [Prepared functions]. What is differentiated has gone through the passes: calls of small functions stand
 * inlined, so that one frame is kept where there were several, and `while`, `foldl` and the like are copies that call
 * no closure. Accumulators are handed on (Note [Places] in reverse.h), so that changes no order of additions. Where functions
 * are data, one that is left with literals which are data already, as code of derivatives is, is read as it stands: passes
 * make copies of such a literal, each perhaps with a body for what it captured, and all are of one constructor. So is one
 * that takes a derivative: the code of that reads by number what a literal captured, as it was written. */
static bool is_data_literal(void *root, const Expr *e) {
    return e->kind == EXPR_GRAD || (e->kind == EXPR_FN && e != root && e->fn->as_data);
}

typedef struct Prepared {
    Expr *made;
    bool holds_data;
    DependencyVec deps;
} Prepared;

static bool meets_reference(void *ctx, const Expr *e) {
    (void)ctx;
    return e->kind == EXPR_REF || (e->kind == EXPR_VAR && type_resolve(e->type)->tag == TY_REF);
}

static bool is_any_derivative(void *ctx, const Expr *e) {
    (void)ctx;
    return is_derivative(e);
}

bool takes_derivative(Expr *fn) { return expr_any(fn, is_any_derivative, NULL); }

/* A derivative inside may have captured references. It becomes code first, of functions that are given them as any other is:
 * Note [References as values] in references.c. */
static Prepared *prepared_by_passes(PassCtx *ctx, Expr *fn) {
    Prepared *p = mem_new(Prepared);
    VarVec given = {0};
    expr_free_vars(fn, &given);
    p->made = optimise_source(ctx, fn, fn->fn->name, &given, &p->deps, false);
    if (expr_any(p->made, meets_reference, NULL) && takes_derivative(p->made))
        p->made = optimise_source(ctx, p->made, fn->fn->name, &given, &p->deps, true);
    p->holds_data = expr_any(p->made, is_data_literal, p->made);
    return p;
}

/* A function is differentiated in more than one way: by `vjp` and `jvp`, again with what is known of the functions that it
 * captured, and inside of others. It is prepared once, unless somebody watches the passes. */
Expr *function_after_passes(Program *p, Expr *fn) {
    PassCtx *ctx = p->ctx;
    if (!p->prepares)
        return fn;
    bool is_watched = ctx->tellings || ctx->opt->bisects || ctx->opt->print_after;
    WeakMap *all = &grad_state(ctx)->prepared;
    Prepared *known = is_watched ? NULL : weak_find(all, fn);
    if (!known || !dependencies_hold(&known->deps)) {
        known = prepared_by_passes(ctx, fn);
        weak_set(all, fn, known);
    }
    if (functions_are_data(p) && known->holds_data)
        return fn;
    for (size_t i = 0; known->made != fn && i < known->deps.len; i++)
        use_global(p, known->deps.data[i].global);
    return known->made;
}

static Expr *prepare(Program *p, Expr *fn) {
    Expr *known = map_find(&p->prepared, fn);
    if (known || mem_stack_left() < SPARE_STACK)
        return known ? known : fn;
    Expr *made = references_as_values(p, function_after_passes(p, fn));
    if (p->splits)
        made = split_choices(p->ctx, made);
    map_set(&p->prepared, fn, made);
    map_set(&p->prepared, made, made);
    return made;
}

Known *known_prepared(Program *p, Expr *fn) {
    Known *k = known_new(fn);
    k->fn = prepare(p, fn);
    return k;
}

Known *known_prepared_all(Program *p, const Known *k) {
    Known *made = known_prepared(p, k->original);
    made->held = k->held;
    made->sizes = k->sizes;
    for (uint32_t i = 0; i < k->captured.len; i++)
        made->known[i] = !k->known[i]       ? NULL
                         : k->known[i] == k ? made
                                            : known_prepared_all(p, k->known[i]);
    return made;
}

/* Which unknowns of a type are each value's own, as its text does not say. */
static void add_each(Str *key, Type *t) {
    TypeVec unknowns = {0};
    Map seen = {0};
    type_collect(t, TY_ANY, &seen, &unknowns);
    for (size_t i = 0; i < unknowns.len; i++)
        str_add_char(key, unknowns.data[i]->param.each ? '*' : '?');
}

/* Note [Functions of any record]. `def width(p) { sum(p.w) }` serves every record with a field w. Where it is
 * differentiated, the cotangent of p.w is a part of that of p, so which record p is must be known: such a function is
 * read in a copy where p has the type of the argument (passes/mono.h), one for all calls with these types. `w[0]` is the
 * same: w is a tensor or a tuple. So is `w * 2.0` of any dtype: with the dtype known, operators of the way back are groups. */
Known *known_at_types(Program *p, Known *k, Expr *const *args, uint32_t nargs) {
    enum { LONGEST = 1000 };
    Mono *mono = k->captured.len ? NULL : mono_of_derivative(k->original, args, nargs);
    if (!mono)
        return k;
    Str key = {0};
    str_printf(&key, "%p", (const void *)k->original);
    for (size_t i = 0; i < mono->from.len; i++) {
        const char *type = type_text(mono->to.data[i]);
        if (strlen(type) > LONGEST)
            return k;
        str_printf(&key, ", %p is %s", (const void *)mono->from.data[i], type);
        add_each(&key, mono->to.data[i]);
    }
    const Symbol *name = sym_intern(str_text(&key));
    Expr *copy = map_find(&p->typed, name);
    if (!copy) {
        Subst s = {.mono = mono};
        copy = expr_substitute(&s, k->original);
        map_set(&p->typed, name, copy);
    }
    return known_prepared(p, copy);
}

bool fn_has_own_code(const Expr *fn) {
    const Fn *f = fn->fn;
    for (int m = 0; m < AD_MODES; m++)
        if (f->own_twins[m])
            return false;
    return !f->path || !f->path->len;
}

Expr *fn_remade(const Expr *fn, Expr *body) {
    Expr *copy = expr_fn_with_body(fn, body);
    copy->fn->is_remade = true;
    return copy;
}

Expr *function_of_op(Expr *e) {
    Type *t = type_resolve(e->type);
    if (t->tag != TY_FN || t->nargs != (uint32_t)e->op->nargs)
        return NULL;
    Var **params = mem_new_n(Var *, t->nargs + 1);
    Expr **args = mem_new_n(Expr *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++) {
        params[i] = var_new(sym_intern("x"), t->args[i], span_none());
        args[i] = expr_var(params[i], span_none());
    }
    Expr *body = expr_call_op(e->op, args, t->nargs, attrs_defaults(e->op), t->fn.result,
                              span_none());
    Expr *fn = expr_fn(params, t->nargs, body, t, span_none());
    fn->fn->name = sym_intern(e->op->name);
    return fn;
}

Known *known_of(Reader *r, Expr *atom) {
    switch (atom->kind) {
    case EXPR_VAR: return map_find(&r->n->knowns, atom->var);
    case EXPR_GLOBAL: {
        Global *g = atom->global;
        bool is_code = g->kind == GLOBAL_DEF || g->kind == GLOBAL_LET;
        if (is_code && !g->broken && g->value && g->value->kind != EXPR_FN) {
            Known *own = own_of_global(r, g);
            return own ? own : function_of_let(r, atom);
        }
        if (!is_code || g->broken || g->by_types || !g->value || g->value->kind != EXPR_FN ||
            !fn_has_own_code(g->value))
            return NULL;
        use_global(r->p, g);
        return known_prepared(r->p, g->value);
    }
    default: return NULL; /* no other atom is a function that was written down */
    }
}

/* ---- what needs no care ---------------------------------------------------------------------- */

typedef struct Care {
    Reader *r;
    Map seen;
    VEC(Global *) clean; /* needs none, if what calls it needs none */
    bool found;
    bool
        calls_given; /* it calls what it has another name for, which may come as a value of any type */
} Care;

static void find_care_of(Care *c, Global *g);

/* Whether a function is in a value of that type, or in what it refers to. */
static bool holds_function(Type *t) {
    for (t = type_resolve(t); t->tag == TY_REF; t = type_resolve(t->elem))
        ;
    return type_holds_code(t);
}

/* Whether a global is a function that was written down. */
static bool is_function(const Global *g) {
    bool is_code = g->kind == GLOBAL_DEF || g->kind == GLOBAL_LET;
    return is_code && g->value && g->value->kind == EXPR_FN;
}

/* Finds what a plain step may not do while an active value reaches it: write, differentiate, apply an operator
 * without derivative. What it calls by a name of its own was given to it, and is looked at where that is written. */
static void find_care(void *ctx, Expr *e) {
    Care *c = ctx;
    if (mem_stack_left() < SPARE_STACK)
        c->found = true;
    for (; !c->found && map_enter(&c->seen, e); e = e->body) {
        c->r->p->work++;
        pass_visit(c->r->p->ctx);
        if (e->kind == EXPR_WRITE || e->kind == EXPR_GRAD || e->mode || e->drop ||
            (e->kind == EXPR_CALL && is_of_cells(e)))
            c->found = true;
        c->calls_given |= e->kind == EXPR_CALL && e->a->kind == EXPR_VAR &&
                          !map_has(&c->r->n->knowns, e->a->var);
        if (e->kind == EXPR_CALL && e->a->kind == EXPR_OP) {
            c->found |= type_may_hold_float(e->type) &&
                        !env_find_rule(c->r->p->ctx->env, e->a->op, RULE_DERIVATIVE);
        } else if (e->kind == EXPR_GLOBAL && is_function(e->global)) {
            find_care_of(c, e->global);
        } else if (e->kind == EXPR_GLOBAL && e->global->kind == GLOBAL_LET) {
            c->found |= holds_function(e->type);
        }
        if (e->kind != EXPR_LET) {
            expr_each_child(e, find_care, c);
            return;
        }
        find_care(c, e->a);
    }
}

static void find_care_of(Care *c, Global *g) {
    Program *p = c->r->p;
    void *known = map_find(&p->tame, g);
    if (known || !map_enter(&c->seen, g)) { /* a call of itself adds nothing */
        c->found |= known == (void *)p;
        c->calls_given |= known == (void *)&p->tame;
        return;
    }
    use_global(p, g);
    find_care(c, g->value);
    if (c->found)
        map_set(&p->tame, g, p);
    else
        vec_push(&c->clean, g);
}

/* The same of a function and of all that it captured. */
static void find_care_in(Care *c, const Known *k) {
    if (!map_enter(&c->seen, k))
        return;
    find_care(c, k->fn);
    for (uint32_t i = 0; i < k->captured.len && !c->found; i++) {
        if (k->known[i])
            find_care_in(c, k->known[i]);
        else
            c->found = holds_function(k->captured.data[i]->type);
    }
}

/* Whether a plain step may do to active values what it does, with all functions that its variables are. */
bool is_tame(Reader *r, Expr *e) {
    Care c = {.r = r};
    find_care(&c, e);
    VarVec vars = {0};
    expr_free_vars(e, &vars);
    for (size_t i = 0; i < vars.len && !c.found; i++) {
        Known *k = map_find(&r->n->knowns, vars.data[i]);
        if (k)
            find_care_in(&c, k);
        else
            c.found = type_holds_code(vars.data[i]->type);
    }
    for (size_t i = 0; i < vars.len && c.calls_given; i++)
        c.found |= type_may_be_function(vars.data[i]->type) &&
                   !map_has(&r->n->knowns, vars.data[i]);
    for (size_t i = 0; i < c.clean.len && !c.found; i++)
        map_set(&r->p->tame, c.clean.data[i],
                c.calls_given ? (void *)&r->p->tame : (void *)c.clean.data[i]);
    return !c.found;
}

typedef struct Size {
    Map *sizes; /* Expr -> the number of its nodes */
    uintptr_t sum;
    bool deep;
} Size;

static void add_size(void *ctx, Expr *e) {
    Size *s = ctx;
    if (mem_stack_left() < SPARE_STACK || s->deep) {
        s->deep = true;
        return;
    }
    uintptr_t known = expr_is_leaf(e) ? 1 : (uintptr_t)map_find(s->sizes, e);
    if (!known) {
        Size inner = {s->sizes, 1, false};
        for (Expr *at = e;; at = at->body) {
            if (at->kind != EXPR_LET) {
                expr_each_child(at, add_size, &inner);
                break;
            }
            add_size(&inner, at->a);
        }
        s->deep |= inner.deep;
        known = inner.sum;
        map_set(s->sizes, e, (void *)known);
    }
    s->sum += known;
    s->deep |= s->sum > 1u << 30; /* a shared node counts wherever it stands */
}

typedef struct Lead {
    const Map *known;
    Map seen; /* EXPR_FN */
    bool (*is)(const Expr *e);
} Lead;

static bool leads(Lead *l, Expr *fn);

static bool is_lead(void *l, const Expr *e) {
    bool is_def = e->kind == EXPR_GLOBAL && e->global->kind == GLOBAL_DEF && e->global->value;
    return ((Lead *)l)->is(e) ||
           (is_def && e->global->value->kind == EXPR_FN && leads(l, e->global->value));
}

static bool leads(Lead *l, Expr *fn) {
    void *found = map_find(l->known, fn);
    if (found || !map_enter(&l->seen, fn))
        return found == (void *)fn;
    return mem_stack_left() >= SPARE_STACK && expr_any(fn, is_lead, l);
}

bool code_leads_to(Map *known, Expr *fn, bool (*is)(const Expr *e)) {
    Lead l = {.known = known, .is = is};
    bool found = leads(&l, fn);
    const void *other;
    void *value;
    if (found)
        map_set(known, fn, fn);
    for (size_t i = 0; !found && map_next(&l.seen, &i, &other, &value);)
        map_set(known, other, known);
    return found;
}

/* Whether an active value is named in e, or cells are made there, which are active. Nested forms are asked one in the other, so what
 * that takes is counted. */
bool mentions_active(Reader *r, Expr *e) {
    Size s = {&r->p->sizes, 0, false};
    add_size(&s, e);
    r->p->work += (uint32_t)(s.sum / 16);
    if (s.deep || r->p->work > r->p->most_work) {
        reverse_outgrow(r->p, "the program is too large");
        return false;
    }
    VarVec vars = {0};
    expr_free_vars(e, &vars);
    for (size_t i = 0; i < vars.len; i++)
        if (map_has(&r->n->places, vars.data[i]))
            return true;
    return makes_cells(r->p, e) || makes_references(r, e);
}

/* A function literal that captured nothing is called as a definition is: no closure is asked for its code. */
Expr *plain_callee(Reader *r, Expr *callee) {
    Known *k = callee->kind == EXPR_VAR ? map_find(&r->n->knowns, callee->var) : NULL;
    if (!k || k->captured.len)
        return callee;
    if (!k->plain) {
        k->plain = mem_new(Global);
        k->plain->kind = GLOBAL_DEF;
        k->plain->name = k->fn->fn->name ? k->fn->fn->name : sym_intern("fn");
        k->plain->value = k->fn;
    }
    return expr_global(k->plain, callee->type, callee->span);
}
