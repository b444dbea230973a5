/* SPDX-License-Identifier: Apache-2.0 */
/* References that are only read and written become the values that they hold.
 *
 * Note [References as values]. Where all uses of a reference are seen, what it holds is known by name:
 *
 *   let s = ref(x);                                        let s_1 = x;
 *   let go = fn (n) {                                      let go = fn (n, s_2) {
 *     if (n > 0) { s := !s * x; go(n - 1) } else { () }      if (n > 0) { let s_3 = s_2 * x; go(n - 1, s_3) } else { ((), s_2) }
 *   };                                                     };
 *   go(5);                                                 let r = go(5, s_1);
 *   !s                                                     r.1
 *
 * So it is for a reference that is bound by a `let`, read and written by that name (or another one that a `let` gives it), in the
 * function that makes it, in local functions that are only called, and in definitions that it is given to, which are copied
 * for that, after passes: they take what it holds behind their own parameters, or in its place, and give what it holds
 * then beside their result. A derivative inside that captured it calls such definitions, too, as it has become code by then
 * (prepared_by_passes in known.c). What runs, and in which order, stays as it is, and a value has the cell that it had: what was
 * written is what is read.
 *
 * All other references stay: those in data of which the parts are not known (open.c), that a branch or call gives, that a function
 * captured which is handed on, or that a guard reads. A program in which an active value reaches one is read again with another
 * reference beside each: Note [References beside references] in beside.c. */
#include "passes/cells.h"
#include "passes/reverse/internal.h"

#include <string.h>

typedef struct Func Func;

typedef struct Ref {
    Var *var;
    Type *type;  /* of what it holds */
    Func *owner; /* the function that makes it, or of which it is a parameter */
    bool is_param;
    bool stays;
} Ref;
typedef VEC(Ref *) RefVec;

/* A call of a definition that is given references: one for each parameter, NULL where that is none. */
typedef struct Given {
    Func *callee;
    Ref **refs;
} Given;

struct Func {
    Expr *fn;
    Func *outer;     /* in which it is written; NULL of the whole and of definitions */
    Global *global;  /* or NULL: a literal */
    bool is_handed;  /* it is used other than by being called */
    bool is_row;     /* `vmap` is given it, or a function around it: it stays as it was written */
    bool is_dropped; /* a definition that is not copied */
    Ref **params;    /* of a definition: the parameters that are references */
    RefVec touched,
        written; /* references of functions around it, by what it calls, too; of a definition its parameters, too */
    VEC(Func *) calls;
    VEC(Given *) gives;
    Var *made_var;
    Global *made_global;
};

typedef struct Values {
    Program *p;
    Map refs;    /* Var -> Ref */
    Map funcs;   /* Var -> Func */
    Map globals; /* Global -> Func */
    Map gives;   /* EXPR_CALL -> Given */
    VEC(Func *) all;
    RefVec all_refs;
    uint32_t work;
} Values;

enum { MOST = 20000 }; /* nodes that are made anew */

/* ---- what is used how ------------------------------------------------------------------------ */

static Func *func_new(Values *v, Expr *fn, Func *outer) {
    Func *f = mem_new(Func);
    f->fn = fn;
    f->outer = outer;
    f->is_row = outer && outer->is_row;
    vec_push(&v->all, f);
    return f;
}

static Ref *ref_new(Values *v, Var *var, Type *type, Func *owner) {
    Ref *r = mem_new(Ref);
    *r = (Ref){.var = var, .type = type, .owner = owner, .stays = owner->is_row};
    map_set(&v->refs, var, r);
    vec_push(&v->all_refs, r);
    return r;
}

static Ref *ref_of(const Values *v, const Expr *e) {
    return e->kind == EXPR_VAR ? map_find(&v->refs, e->var) : NULL;
}

static bool is_in(const RefVec *refs, const Ref *r) {
    for (size_t i = 0; i < refs->len; i++)
        if (refs->data[i] == r)
            return true;
    return false;
}

static bool add_ref(RefVec *to, Ref *r) {
    if (is_in(to, r))
        return false;
    vec_push(to, r);
    return true;
}

static bool is_made_in(const Func *f, const Ref *r) { return r->owner == f && !r->is_param; }

static void note_use(Func *f, Ref *r, bool writes) {
    for (Func *at = f; at != r->owner; at = at->outer)
        if (!at || at->is_handed) {
            r->stays = true;
            return;
        }
    if (is_made_in(f, r))
        return;
    add_ref(&f->touched, r);
    if (writes)
        add_ref(&f->written, r);
}

typedef struct Visit {
    Values *v;
    Func *f; /* in which that is written */
} Visit;

static void visit(void *ctx, Expr *e);

static void visit_body(Values *v, Func *f) {
    Visit inner = {v, f};
    visit(&inner, f->fn->fn->body);
}

/* The type of what a reference holds that is given to the parameter: what the parameter says, unless that may be anything. NULL:
 * it is no parameter for references. */
static Type *held_by_param(const Var *param, const Ref *given) {
    const Type *t = type_resolve(param->type);
    return t->tag == TY_REF ? t->elem : t->tag == TY_PARAM ? given->type : NULL;
}

/* The definition that is given references by the call, or NULL. */
static Func *func_of_global(Values *v, const Expr *call) {
    Global *g = call->a->global;
    if (g->kind != GLOBAL_DEF || g->broken || g->by_types || !g->value ||
        g->value->kind != EXPR_FN || !fn_has_own_code(g->value) || call->mode || call->drop ||
        g->value->fn->nparams != call->nargs)
        return NULL;
    Func *f = map_find(&v->globals, g);
    bool is_new = !f;
    if (is_new) {
        Expr *fn = g->value;
        if (!fn->fn->is_remade)
            fn = open_references(v->p, cells_expose(function_after_passes(v->p, fn)));
        f = func_new(v, fn, NULL);
        f->global = g;
        f->params = mem_new_n(Ref *, call->nargs + 1);
        map_set(&v->globals, g, f);
        use_global(v->p, g);
    }
    for (uint32_t i = 0; i < call->nargs; i++) {
        Var *param = f->fn->fn->params[i];
        const Ref *given = ref_of(v, call->args[i]);
        Type *held = given ? held_by_param(param, given) : NULL;
        if (held && is_new)
            (f->params[i] = ref_new(v, param, held, f))->is_param = true;
        f->is_dropped |= given ? !f->params[i] || !type_equal(held, f->params[i]->type)
                               : f->params[i] != NULL;
    }
    if (is_new)
        visit_body(v, f);
    return f;
}

static void visit_call(Visit *at, Expr *e) {
    Values *v = at->v;
    Func *local = e->a->kind == EXPR_VAR ? map_find(&v->funcs, e->a->var) : NULL;
    bool gives = false;
    if (local && !e->mode && !e->drop && local->fn->fn->nparams == e->nargs)
        vec_push(&at->f->calls, local);
    else
        visit(at, e->a);
    for (uint32_t i = 0; i < e->nargs; i++)
        gives |= ref_of(v, e->args[i]) != NULL;
    Func *callee = gives && e->a->kind == EXPR_GLOBAL ? func_of_global(v, e) : NULL;
    Given *given = callee ? mem_new(Given) : NULL;
    if (given) {
        given->callee = callee;
        given->refs = mem_new_n(Ref *, e->nargs + 1);
        vec_push(&at->f->gives, given);
        map_set(&v->gives, e, given);
    }
    for (uint32_t i = 0; i < e->nargs; i++) {
        Ref *r = given ? ref_of(v, e->args[i]) : NULL;
        if (r) {
            given->refs[i] = r;
            note_use(at->f, r, false);
        } else {
            visit(at, e->args[i]);
        }
    }
    for (uint32_t i = 0; i < e->nsizes; i++)
        visit(at, e->sizes[i]);
}

/* Whether v was bound before, since a node stands twice: that both are the same is not looked at, so nothing becomes a value. */
static bool is_bound_again(Values *v, const Var *var) {
    bool again = var && (map_has(&v->refs, var) || map_has(&v->funcs, var));
    if (again)
        v->work = MOST;
    return again;
}

static void visit_binding(Visit *at, Expr *let) {
    Values *v = at->v;
    Ref *same = let->var ? ref_of(v, let->a) : NULL;
    Func *named = let->var && let->a->kind == EXPR_VAR ? map_find(&v->funcs, let->a->var) : NULL;
    if (is_bound_again(v, let->var))
        return;
    if (same) {
        map_set(&v->refs, let->var, same);
    } else if (named) {
        map_set(&v->funcs, let->var, named);
    } else if (let->var && let->a->kind == EXPR_REF) {
        visit(at, let->a->a);
        ref_new(v, let->var, let->a->a->type, at->f);
    } else if (let->var && let->a->kind == EXPR_FN && !let->a->fn->keeps_captured) {
        Func *f = func_new(v, let->a, at->f);
        map_set(&v->funcs, let->var, f);
        visit_body(v, f);
    } else {
        visit(at, let->a);
    }
}

static void visit(void *ctx, Expr *e) {
    Visit *at = ctx;
    Values *v = at->v;
    for (v->work++; e->kind == EXPR_LET && v->work < MOST; e = e->body, v->work++)
        visit_binding(at, e);
    if (v->work >= MOST)
        return;
    Ref *r = e->a && (e->kind == EXPR_READ || e->kind == EXPR_BANG || e->kind == EXPR_WRITE)
                 ? ref_of(v, e->a)
                 : NULL;
    if (mem_stack_left() < SPARE_STACK) {
        v->work = MOST;
    } else if (r) {
        note_use(at->f, r, e->kind == EXPR_WRITE);
        if (e->kind == EXPR_WRITE)
            visit(at, e->b);
    } else if (e->kind == EXPR_VAR) {
        Func *f = map_find(&v->funcs, e->var);
        if (f)
            f->is_handed = true;
        if ((r = ref_of(v, e)))
            r->stays = true;
    } else if (e->kind == EXPR_CALL) {
        visit_call(at, e);
    } else if (e->kind == EXPR_FN || expr_is_vmap_of_literal(e)) {
        Func *f = func_new(v, e->kind == EXPR_FN ? e : e->a, at->f);
        f->is_handed = true;
        f->is_row |= e->kind != EXPR_FN;
        visit_body(v, f);
    } else if (e->kind == EXPR_MATCH) {
        visit(at, e->a);
        for (uint32_t i = 0; i < e->narms; i++) {
            if (e->arms[i].guard) {
                Func *guard = func_new(v, e->arms[i].guard, at->f); /* no value is named in it */
                guard->is_handed = true;
                visit(&(Visit){v, guard}, e->arms[i].guard);
            }
            visit(at, e->arms[i].body);
        }
    } else {
        expr_each_child(e, visit, at);
    }
}

/* ---- what may be a value --------------------------------------------------------------------- */

/* What f does to references by what it calls. Whether that is more than was known. */
static bool learn_calls(Func *f) {
    bool changed = false;
    for (size_t i = 0; i < f->calls.len; i++) {
        const Func *callee = f->calls.data[i];
        for (size_t k = 0; k < callee->touched.len; k++)
            if (!is_made_in(f, callee->touched.data[k]))
                changed |= add_ref(&f->touched, callee->touched.data[k]);
        for (size_t k = 0; k < callee->written.len; k++)
            if (!is_made_in(f, callee->written.data[k]))
                changed |= add_ref(&f->written, callee->written.data[k]);
    }
    for (size_t i = 0; i < f->gives.len; i++) {
        const Given *g = f->gives.data[i];
        for (uint32_t k = 0; k < g->callee->fn->fn->nparams; k++) {
            Ref *param = g->callee->params[k];
            if (param && is_in(&g->callee->written, param) && g->refs[k] &&
                !is_made_in(f, g->refs[k]))
                changed |= add_ref(&f->written, g->refs[k]);
        }
    }
    return changed;
}

/* What cannot be a value because of f. Whether that is more than was known. */
static bool learn_obstacles(Func *f) {
    bool changed = false;
    for (size_t i = 0; f->is_handed && i < f->touched.len; i++) {
        changed |= !f->touched.data[i]->stays;
        f->touched.data[i]->stays = true;
    }
    for (size_t i = 0; i < f->gives.len; i++) {
        const Given *g = f->gives.data[i];
        uint32_t n = g->callee->fn->fn->nparams;
        bool stays = g->callee->is_dropped;
        for (uint32_t k = 0; k < n; k++)
            stays |= (g->refs[k] && g->refs[k]->stays) ||
                     (g->callee->params[k] && g->callee->params[k]->stays);
        for (uint32_t k = 0; stays && k < n; k++) {
            if (!g->refs[k])
                continue;
            changed |= !g->refs[k]->stays;
            g->refs[k]->stays = true;
            if (g->callee->params[k]) {
                changed |= !g->callee->params[k]->stays;
                g->callee->params[k]->stays = true;
            }
        }
    }
    return changed;
}

/* A reference that is given twice would be two values there, which are one while it is only read. */
static void check_twice(const Given *g) {
    const Func *f = g->callee;
    for (uint32_t k = 0; k < f->fn->fn->nparams; k++)
        for (uint32_t i = 0; g->refs[k] && i < f->fn->fn->nparams; i++)
            g->refs[k]->stays |= i != k && g->refs[i] == g->refs[k] && f->params[k] &&
                                 is_in(&f->written, f->params[k]);
}

static void drop_staying(RefVec *refs) {
    size_t left = 0;
    for (size_t i = 0; i < refs->len; i++)
        if (!refs->data[i]->stays)
            refs->data[left++] = refs->data[i];
    refs->len = left;
}

/* Whether any reference becomes a value. */
static bool decide(Values *v) {
    bool changed = true, any = false;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < v->all.len; i++)
            changed |= learn_calls(v->all.data[i]);
    }
    for (size_t i = 0; i < v->all.len; i++)
        for (size_t k = 0; k < v->all.data[i]->gives.len; k++)
            check_twice(v->all.data[i]->gives.data[k]);
    for (changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < v->all.len; i++)
            changed |= learn_obstacles(v->all.data[i]);
    }
    for (size_t i = 0; i < v->all.len; i++) {
        drop_staying(&v->all.data[i]->touched);
        drop_staying(&v->all.data[i]->written);
    }
    for (size_t i = 0; i < v->all_refs.len; i++)
        any |= !v->all_refs.data[i]->stays;
    return any;
}

/* ---- writing it anew ------------------------------------------------------------------------- */

/* What references hold where code is being made. */
typedef struct Held {
    RefVec refs;
    VEC(Expr *) now; /* atoms */
} Held;

typedef struct Writer {
    Values *v;
    Held *held;
    Block *into;
} Writer;

static Ref *value_of_ref(const Values *v, const Expr *e) {
    Ref *r = ref_of(v, e);
    return r && !r->stays ? r : NULL;
}

static Expr **find_held(const Held *h, const Ref *r) {
    for (size_t i = h->refs.len; i-- > 0;)
        if (h->refs.data[i] == r)
            return &h->now.data[i];
    BUG("nothing is known of what the reference `%s` holds", r->var->name->text);
}

static void hold(Held *h, Ref *r, Expr *atom) {
    vec_push(&h->refs, r);
    vec_push(&h->now, atom);
}

static Held held_copy(const Held *h) {
    Held copy = {0};
    for (size_t i = 0; i < h->refs.len; i++)
        hold(&copy, h->refs.data[i], h->now.data[i]);
    return copy;
}

static bool is_name(const Expr *e) {
    return is_atom(e) || e->kind == EXPR_OP || e->kind == EXPR_FN;
}

/* A name for the value, which may be written over: a variable of its own where it is none. */
static Expr *name_of(Writer *w, const char *name, Expr *e) {
    return is_name(e) ? e : block_let(w->into, name, e);
}

static bool is_touching(void *ctx, const Expr *e) {
    const Values *v = ctx;
    const Func *f;
    switch (e->kind) {
    case EXPR_READ:
    case EXPR_BANG:
    case EXPR_WRITE: return value_of_ref(v, e->a) != NULL;
    case EXPR_LET:
        if (e->var && (f = map_find(&v->funcs, e->var)) && f->touched.len)
            return true;
        return e->var && map_has(&v->refs, e->var) && !((Ref *)map_find(&v->refs, e->var))->stays;
    case EXPR_CALL: {
        const Given *g = map_find(&v->gives, e);
        f = e->a->kind == EXPR_VAR ? map_find(&v->funcs, e->a->var) : NULL;
        for (uint32_t i = 0; g && i < e->nargs; i++)
            if (g->refs[i] && !g->refs[i]->stays)
                return true;
        return f && f->touched.len;
    }
    default: return false;
    }
}

static bool touches(const Values *v, Expr *e) {
    return expr_any(e, is_touching, (void *)(uintptr_t)v);
}

static Expr *value(Writer *w, Expr *e);
static Expr *last(Writer *w, Expr *e, const Func *of);

/* The result of a function, with what the references hold that it wrote. */
static Expr *with_written(Writer *w, Expr *result, const Func *of) {
    uint32_t n = of ? (uint32_t)of->written.len : 0;
    if (!n)
        return result;
    Expr **parts = mem_new_n(Expr *, n + 1);
    parts[0] = result;
    for (uint32_t i = 0; i < n; i++)
        parts[i + 1] = *find_held(w->held, of->written.data[i]);
    return expr_tuple(parts, n + 1, result->span);
}

static Type *result_type(Type *result, const Func *of) {
    uint32_t n = of ? (uint32_t)of->written.len : 0;
    if (!n)
        return result;
    Type **parts = mem_new_n(Type *, n + 1);
    parts[0] = result;
    for (uint32_t i = 0; i < n; i++)
        parts[i + 1] = of->written.data[i]->type;
    return type_tuple(parts, n + 1);
}

/* The type of that function. */
static Type *written_type(const Func *f) {
    const Fn *fn = f->fn->fn;
    Type **types = mem_new_n(Type *, fn->nparams + f->touched.len + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < fn->nparams; i++)
        types[n++] = f->params && f->params[i] && !f->params[i]->stays ? f->params[i]->type
                                                                       : fn->params[i]->type;
    for (size_t i = 0; i < f->touched.len; i++)
        if (f->touched.data[i]->owner != f)
            types[n++] = f->touched.data[i]->type;
    return type_fn(types, n, result_type(fn->body->type, f), type_allocates());
}

/* A function that takes what the references hold that it touches, and gives what they hold that it writes. */
static Expr *write_function(Values *v, const Func *f) {
    const Fn *fn = f->fn->fn;
    uint32_t n = fn->nparams, count = 0;
    Build b = {f->fn->span};
    Block block = {.b = &b};
    Held held = {0};
    Writer w = {v, &held, &block};
    Var **params = mem_new_n(Var *, n + f->touched.len + 1);
    for (uint32_t i = 0; i < n; i++) {
        Ref *r = f->params && f->params[i] && !f->params[i]->stays ? f->params[i] : NULL;
        params[count] = r ? b_var(&b, r->var->name->text, r->type) : fn->params[i];
        if (r)
            hold(&held, r, b_ref(&b, params[count]));
        count++;
    }
    for (size_t i = 0; i < f->touched.len; i++) {
        Ref *r = f->touched.data[i];
        if (r->owner == f)
            continue; /* a parameter */
        params[count] = b_var(&b, r->var->name->text, r->type);
        hold(&held, r, b_ref(&b, params[count++]));
    }
    Expr *copy = fn_remade(f->fn, block_end(&block, last(&w, fn->body, f)));
    copy->fn->params = params;
    copy->fn->nparams = count;
    copy->type = written_type(f);
    return copy;
}

/* A function of which no reference outside is a value, with those inside. */
static Expr *write_literal(Values *v, Expr *fn) {
    Build b = {fn->span};
    Block block = {.b = &b};
    Held held = {0};
    Writer w = {v, &held, &block};
    return fn_remade(fn, block_end(&block, last(&w, fn->fn->body, NULL)));
}

static Global *written_global(Values *v, Func *f) {
    if (!f->made_global) {
        f->made_global = instance_global(f->global->name->text);
        f->made_global->internal = f->global->internal;
        f->made_global->value = write_function(v, f);
    }
    return f->made_global;
}

/* The call of a function that touches references, as it is written now: of its value and of what it wrote. */
static Expr *write_call(Writer *w, Expr *e, Func *callee, const Given *given) {
    uint32_t count = 0;
    Expr *call = expr_copy(e);
    call->args = mem_new_n(Expr *, e->nargs + callee->touched.len + 1);
    for (uint32_t i = 0; i < e->nargs; i++) {
        bool is_ref = given && given->refs[i];
        call->args[count++] = is_ref ? e->args[i] : name_of(w, "v", value(w, e->args[i]));
    }
    for (uint32_t i = 0; given && i < e->nargs; i++)
        if (given->refs[i])
            call->args[i] = *find_held(w->held, given->refs[i]);
    for (size_t i = 0; i < callee->touched.len; i++)
        if (callee->touched.data[i]->owner != callee)
            call->args[count++] = *find_held(w->held, callee->touched.data[i]);
    call->nargs = count;
    if (given)
        call->a = expr_global(written_global(w->v, callee), b_some_type("f"), e->a->span);
    else
        call->a = expr_var(callee->made_var, e->a->span);
    call->type = result_type(e->type, callee);
    return call;
}

/* The reference of the caller that the callee's is. */
static Ref *ref_of_caller(const Func *callee, const Given *given, Ref *r) {
    for (uint32_t i = 0; given && i < callee->fn->fn->nparams; i++)
        if (callee->params[i] == r)
            return given->refs[i];
    return r;
}

static Func *callee_of(const Writer *w, const Expr *e, const Given **given) {
    *given = e->kind == EXPR_CALL ? map_find(&w->v->gives, e) : NULL;
    if (*given)
        return (*given)->callee;
    return e->kind == EXPR_CALL && e->a->kind == EXPR_VAR ? map_find(&w->v->funcs, e->a->var)
                                                          : NULL;
}

static Expr *value_of_call(Writer *w, Expr *e, Func *callee, const Given *given) {
    Expr *call = write_call(w, e, callee, given);
    if (!callee->written.len)
        return call;
    Expr *both = block_let(w->into, "r", call);
    for (size_t i = 0; i < callee->written.len; i++) {
        Ref *r = ref_of_caller(callee, given, callee->written.data[i]);
        Expr *held = expr_proj(both, (uint32_t)i + 1, r->type, e->span);
        *find_held(w->held, r) = block_let(w->into, r->var->name->text, held);
    }
    return expr_proj(both, 0, e->type, e->span);
}

static uint32_t arm_count(const Expr *e) { return e->kind == EXPR_IF ? 2 : e->narms; }

static Expr *arm_of(const Expr *e, uint32_t i) {
    return e->kind == EXPR_MATCH ? e->arms[i].body : i ? e->c : e->b;
}

/* A branch in the middle: what its arms write leaves it beside its value. */
static Expr *value_of_branch(Writer *w, Expr *e) {
    Expr *scrutinee = name_of(w, "v", value(w, e->a));
    uint32_t narms = arm_count(e), n = 0;
    Held *ends = mem_new_n(Held, narms + 1);
    Block *blocks = mem_new_n(Block, narms + 1);
    Expr **values = mem_new_n(Expr *, narms + 1);
    RefVec written = {0};
    for (uint32_t i = 0; i < narms; i++) {
        ends[i] = held_copy(w->held);
        blocks[i].b = w->into->b;
        Writer arm = {w->v, &ends[i], &blocks[i]};
        values[i] = value(&arm, arm_of(e, i));
        for (size_t k = 0; k < w->held->refs.len; k++)
            if (ends[i].now.data[k] != w->held->now.data[k])
                add_ref(&written, w->held->refs.data[k]);
    }
    n = (uint32_t)written.len;
    Func all = {.written = written};
    for (uint32_t i = 0; i < narms; i++) {
        Writer arm = {w->v, &ends[i], &blocks[i]};
        Expr *v = n ? name_of(&arm, "v", values[i]) : values[i];
        values[i] = block_end(&blocks[i], with_written(&arm, v, &all));
    }
    Expr *made = expr_with_arms(e, scrutinee, values, result_type(e->type, &all));
    if (!n)
        return made;
    Expr *both = block_let(w->into, "r", made);
    for (uint32_t i = 0; i < n; i++) {
        Expr *held = expr_proj(both, i + 1, written.data[i]->type, e->span);
        *find_held(w->held, written.data[i]) = block_let(w->into, written.data[i]->var->name->text,
                                                         held);
    }
    return expr_proj(both, 0, e->type, e->span);
}

static void write_binding(Writer *w, Expr *let) {
    Values *v = w->v;
    Func *f = let->var ? map_find(&v->funcs, let->var) : NULL;
    Ref *r = let->var ? map_find(&v->refs, let->var) : NULL;
    if (r && !r->stays) {
        if (let->a->kind == EXPR_REF) {
            Expr *held = name_of(w, let->var->name->text, value(w, let->a->a));
            hold(w->held, r, held);
        }
        return;
    }
    if (f && f->touched.len && let->a->kind == EXPR_VAR)
        return;
    if (f && f->touched.len) {
        f->made_var = var_new(let->var->name, written_type(f), let->var->span);
        Expr *made = write_function(v, f);
        Expr *link = expr_copy(let);
        link->var = f->made_var;
        link->a = made;
        vec_push(&w->into->links, link);
        return;
    }
    Expr *made = value(w, let->a);
    if (let->var || !is_name(made))
        block_bind(w->into, let, made);
}

static Expr *write_child(void *ctx, Expr *child) {
    Writer *w = ctx;
    return name_of(w, "v", value(w, child));
}

/* The value of e, of which what comes before it is bound. */
static Expr *value(Writer *w, Expr *e) {
    for (; e->kind == EXPR_LET; e = e->body)
        write_binding(w, e);
    Values *v = w->v;
    const Given *given;
    if (v->work >= MOST || !touches(v, e))
        return e;
    v->work++;
    pass_visit(v->p->ctx);
    Ref *r = e->a ? value_of_ref(v, e->a) : NULL;
    if (r && (e->kind == EXPR_READ || e->kind == EXPR_BANG))
        return *find_held(w->held, r);
    if (r && e->kind == EXPR_WRITE) {
        Expr *held = value(w, e->b);
        *find_held(w->held, r) = name_of(w, r->var->name->text, held);
        return expr_unit(e->span);
    }
    if (e->kind == EXPR_FN)
        return write_literal(v, e);
    if (e->kind == EXPR_IF || e->kind == EXPR_MATCH)
        return value_of_branch(w, e);
    Func *callee = callee_of(w, e, &given);
    if (callee && is_touching(v, e))
        return value_of_call(w, e, callee, given);
    return expr_map_children(e, write_child, w);
}

/* Whether a call gives what the function it ends gives. */
static bool gives_same(const Func *callee, const Given *given, const Func *of) {
    size_t n = of ? of->written.len : 0;
    if (callee->written.len != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (ref_of_caller(callee, given, callee->written.data[i]) != of->written.data[i])
            return false;
    return true;
}

/* The end of a function, with what it wrote. */
static Expr *last(Writer *w, Expr *e, const Func *of) {
    for (; e->kind == EXPR_LET; e = e->body)
        write_binding(w, e);
    const Given *given;
    Func *callee = callee_of(w, e, &given);
    if (callee && is_touching(w->v, e) && gives_same(callee, given, of))
        return write_call(w, e, callee, given);
    bool branches = (e->kind == EXPR_IF || e->kind == EXPR_MATCH) && touches(w->v, e);
    if (!branches) {
        Expr *result = value(w, e);
        return with_written(w, of && of->written.len ? name_of(w, "v", result) : result, of);
    }
    uint32_t narms = arm_count(e);
    Expr *scrutinee = name_of(w, "v", value(w, e->a)), **values = mem_new_n(Expr *, narms + 1);
    for (uint32_t i = 0; i < narms; i++) {
        Held held = held_copy(w->held);
        Block block = {.b = w->into->b};
        Writer arm = {w->v, &held, &block};
        values[i] = block_end(&block, last(&arm, arm_of(e, i), of));
    }
    return expr_with_arms(e, scrutinee, values, result_type(e->type, of));
}

static bool makes_reference(void *ctx, const Expr *e) {
    (void)ctx;
    return e->kind == EXPR_REF;
}

/* What the literals captured of which code of a derivative reads that by number. */
typedef struct Kept {
    const Expr *root;
    Map captured; /* the first parameter of a literal -> a VarVec */
    bool is_lost;
} Kept;

static bool is_kept(const Kept *k, const Expr *e) {
    return e->kind == EXPR_FN && e != k->root && e->fn->keeps_captured;
}

static bool note_kept(void *ctx, const Expr *e) {
    Kept *k = ctx;
    if (!is_kept(k, e))
        return false;
    VarVec *captured = mem_new(VarVec);
    expr_free_vars((Expr *)(uintptr_t)e, captured);
    k->is_lost |= !e->fn->nparams;
    if (e->fn->nparams)
        map_set(&k->captured, e->fn->params[0], captured);
    return false;
}

static bool is_otherwise(void *ctx, const Expr *e) {
    const Kept *k = ctx;
    if (!is_kept(k, e))
        return false;
    const VarVec *before = e->fn->nparams ? map_find(&k->captured, e->fn->params[0]) : NULL;
    VarVec now = {0};
    expr_free_vars((Expr *)(uintptr_t)e, &now);
    return before && (before->len != now.len ||
                      (now.len && memcmp(before->data, now.data, now.len * sizeof *now.data)));
}

/* Whether a literal would capture otherwise than code of a derivative reads it: less, where a reference that it wrote first
 * held what it captured. */
static bool loses_captured(Expr *fn, Expr *made) {
    Kept k = {.root = fn};
    expr_any(fn, note_kept, &k);
    k.root = made;
    return k.is_lost || (k.captured.len && expr_any(made, is_otherwise, &k));
}

Expr *references_as_values(Program *p, Expr *fn) {
    if (!expr_any(fn, makes_reference, NULL))
        return fn;
    Expr *exposed = cells_expose(
        fn); /* a cell is made where it was, before what is bound behind it */
    exposed = open_references(p, exposed);
    Values v = {.p = p};
    visit_body(&v, func_new(&v, exposed, NULL));
    if (v.work >= MOST || !decide(&v))
        return fn;
    v.work = 0;
    Expr *made = write_literal(&v, exposed);
    return v.work < MOST && !loses_captured(fn, made) ? made : fn;
}
