/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions whose derivative is not that of their code: `checkpoint(f)` and `custom_grad(f, df)`.
 *
 *   checkpoint(f)(x)         forwards   v = f(x), and nothing is kept but x
 *                            back       F = f.fwd(x), and then f.bwd(F, ct, …)
 *   custom_grad(f, df)(x)    forwards   v = f(x)
 *                            back       the parts of df(x, ct) are added to the arguments
 *
 * What is called is the closure that the evaluator makes of the template (passes/custom.c): it captured f, or the tuple
 * (f, df). So it is known by the template's function literal. checkpoint runs f twice, between seals that forbid it to
 * write to references made before, and to read those that are written between; a function that may do so is left to the
 * twins. */
#include "passes/reverse/internal.h"
#include "passes/subst.h"

#include <string.h>

static Expr *own_function(PassCtx *ctx, GradKind kind, uint32_t nparams) {
    Expr *template = grad_template(ctx, kind, nparams);
    return template ? template->fn->body : NULL;
}

bool own_is(PassCtx *ctx, const Expr *fn, GradKind kind) {
    return fn->fn->own_twins[AD_REVERSE] && own_function(ctx, kind, fn->fn->nparams) == fn;
}

/* ---- what is known ---------------------------------------------------------------------------- */

static Known *own_known(Program *p, Expr *e, Known *of) {
    Type *type = type_resolve(e->type);
    Expr *fn = type->tag == TY_FN ? own_function(p->ctx, (GradKind)e->mode, type->nargs) : NULL;
    if (!fn || (e->mode == GRAD_CHECKPOINT && !of))
        return NULL;
    Known *k = known_new(fn);
    k->known[0] = e->mode == GRAD_CHECKPOINT ? of : NULL;
    return k;
}

Expr *own_unfold(Reader *r, Expr *e) {
    const Global *g = e->kind == EXPR_CALL && e->a->kind == EXPR_GLOBAL ? e->a->global : NULL;
    if (!g || g->kind != GLOBAL_DEF || !g->value || g->value->kind != EXPR_FN)
        return e;
    const Fn *f = g->value->fn;
    if (f->body->kind != EXPR_GRAD || f->body->mode != GRAD_CUSTOM || f->nparams != e->nargs)
        return e;
    use_global(r->p, e->a->global);
    Subst s = {0};
    for (uint32_t i = 0; i < f->nparams; i++)
        map_set(&s.vars, f->params[i], e->args[i]);
    Expr *made = expr_copy(expr_substitute(&s, f->body));
    made->type = e->type;
    return made;
}

Known *own_of_global(Reader *r, Global *g) {
    Expr *e = g->value;
    while (e && e->kind == EXPR_LET)
        e = e->body;
    e = e ? own_unfold(r, e) : NULL;
    if (!e || e->kind != EXPR_GRAD || (e->mode != GRAD_CHECKPOINT && e->mode != GRAD_CUSTOM))
        return NULL;
    Expr *f = e->a;
    Known *of = NULL;
    if (e->mode == GRAD_CHECKPOINT)
        of = f->kind == EXPR_FN ? known_prepared(r->p, f) : known_of(r, f);
    if (of && of->captured.len && f->kind == EXPR_FN)
        return NULL;
    Known *k = own_known(r->p, e, of);
    if (k)
        use_global(r->p, g);
    return k;
}

Expr *read_own(Reader *r, Expr *e) {
    Expr *copy = expr_copy(e);
    copy->a = read_value(r, e->a);
    Place *inner = place_of(r->n, copy->a), *p = NULL;
    Known *k = own_known(r->p, e, known_of(r, copy->a));
    Expr *v = add_plain(r, "f", copy);
    if (inner && (e->mode == GRAD_CUSTOM || !k || inner->form != PLACE_CLOSURE)) {
        reverse_refuse(r->p,
                       "an active value is captured by a function with a derivative of its own");
        return v;
    }
    if (inner) {
        k->active[0] = true;
        p = place_of_closure(r->n, k);
        p->parts[0] = inner;
    }
    name_place(r, v->var, p, k);
    return v;
}

/* ---- whether a function meets references --------------------------------------------------------------- */

typedef struct Meets {
    Reader *r;
    Map seen;
    bool writes; /* only writing one counts */
    bool found;
} Meets;

static void find_reference_in(Meets *s, const Known *k);

static void find_reference(void *ctx, Expr *e) {
    Meets *s = ctx;
    if (mem_stack_left() < SPARE_STACK)
        s->found = true;
    for (; !s->found && !map_has(&s->seen, e); e = e->body) {
        map_set(&s->seen, e, e);
        bool is_function = e->kind == EXPR_VAR || e->kind == EXPR_GLOBAL;
        s->found |= e->kind == EXPR_WRITE ||
                    (!s->writes && (e->kind == EXPR_READ || e->kind == EXPR_BANG));
        if (is_function && e->kind == EXPR_GLOBAL && type_holds_code(e->type) &&
            e->global->kind != GLOBAL_BUILTIN) {
            Known *k = e->global->kind == GLOBAL_DEF && e->global->value &&
                               e->global->value->kind == EXPR_FN
                           ? known_new(e->global->value)
                           : known_of(s->r, e);
            if (e->global->kind == GLOBAL_DEF)
                use_global(s->r->p, e->global);
            if (k)
                find_reference_in(s, k);
            s->found |= !k;
        }
        if (e->kind != EXPR_LET) {
            expr_each_child(e, find_reference, s);
            return;
        }
        find_reference(s, e->a);
    }
}

static void find_reference_in(Meets *s, const Known *k) {
    find_reference(s, k->fn->fn->body);
    for (uint32_t i = 0; i < k->captured.len && !s->found; i++) {
        if (k->known[i] && k->known[i] != k)
            find_reference_in(s, k->known[i]);
        else
            s->found |= !k->known[i] && type_holds_code(k->captured.data[i]->type);
    }
}

bool own_meets_references(Reader *r, const Known *k) {
    Meets s = {.r = r};
    for (uint32_t i = 0; i < k->fn->fn->nparams; i++)
        s.found |= type_holds_code(k->fn->fn->params[i]->type);
    find_reference_in(&s, k);
    return s.found;
}

bool call_may_write(Instance *n, const Step *call) {
    Reader r = {n, n->program, NULL};
    Meets s = {.r = &r, .writes = true};
    const Fn *fn = call->callee->fn->fn;
    for (uint32_t i = 0; i < fn->nparams && !s.found; i++) {
        if (call->known[i])
            find_reference_in(&s, call->known[i]);
        else
            s.found |= type_holds_code(fn->params[i]->type) ||
                       type_holds_code(call->e->args[i]->type);
    }
    find_reference_in(&s, call->callee);
    return s.found;
}

/* ---- the way back ------------------------------------------------------------------------------- */

Expr *own_captured(Way *w, const Step *s) {
    Expr *zero = expr_int(0, DT_I32, w->build.span);
    return way_bind(w, b_builtin(&w->build, "ad.captured", s->e->a, zero, NULL), NULL);
}

Expr *own_run_again(Way *w, const Step *s, Instance *callee) {
    Expr *call = expr_copy(s->e), *none = first_frame(&w->build);
    none->type = b_some_type("frames");
    call->a = own_captured(w, s);
    return way_bind(w, forward_call(callee, call, NULL, none), b_some_type("frame"));
}

void way_custom(Way *w, Step *s, Expr *ct) {
    const Build *b = &w->build;
    uint32_t n = s->e->nargs;
    if (type_resolve(s->e->type)->tag != TY_TENSOR)
        ct = way_bind(w, b_builtin(b, "ad.dense", b_ref(b, s->var), ct, NULL), NULL);
    Expr **args = mem_new_n(Expr *, n + 2);
    memcpy(args, s->e->args, n * sizeof *args);
    args[n] = ct;
    Expr *rule = expr_proj(own_captured(w, s), 1, b_some_type("f"), b->span);
    Expr *cts = way_bind(w, b_call(b, way_bind(w, rule, NULL), args, n + 1, 0), NULL);
    for (uint32_t i = 0; i < n; i++) {
        Expr *part = way_bind(w, b_proj(b, cts, i), NULL);
        block_do(w->block, b_builtin(b, "ad.check_seed", s->e->args[i], part, NULL));
        Place *p = place_of(w->n, s->e->args[i]);
        if (p)
            acc_add(w, p, part);
    }
}
