/* SPDX-License-Identifier: Apache-2.0 */
/* derive: a derivative of a function that is known becomes the code that runs for it (reverse.h).
 *
 *   deriv(fn (x) { x * x })   becomes   fn (x1) { let T = fn.fwd(x1); fn.bwd(T, 1.0) }
 *
 * and the passes behind it put fn.fwd and fn.bwd in place of their calls. The function is a literal, a definition, what a
 * `let` binds to a literal, or a derivative of such a function. A derivative of which no code is made stays, and a note
 * says why. Function literals that are not called here are left alone: they may run as part of a derivative, which is made
 * of the function as it was written (Note [Calls that stay] in passes/inline.c). So is a derivative that is no callee, as in
 * `hessian(f)`, which takes `jvp` of `deriv(f)`: of code for it twins would lose what cotangents add up, where no code is made
 * of `jvp`. The run makes code for it. */
#include "passes/build.h"
#include "passes/grad_internal.h"
#include "passes/reverse/reverse.h"
#include "passes/subst.h"

typedef struct Deriver {
    PassCtx *ctx;
    Expr *root;
    Map handed; /* variables that are used other than by being called, once it is asked */
    bool knows_handed;
    Map done;     /* Expr -> what became of it */
    Map literals; /* Var of a `let` -> the function literal it is bound to */
    Map rows;     /* of leads_to_rows */
    Map called; /* functions, literals and derivatives, that are called where they stand, and nothing else */
} Deriver;

/* A function that is to be differentiated, and the bindings that stand before what is made of it. */
typedef struct Original {
    Expr *literal, *atom; /* the function, and a name for it */
    VEC(Expr *) links;    /* `let`s without bodies */
    bool is_left;         /* all ways to make code of its derivative were tried */
} Original;

static Expr *bind_function(Deriver *d, Original *s, const char *name, Expr *fn) {
    Var *v = var_new(sym_intern(name), fn->type, fn->span);
    Expr *link = expr_new(EXPR_LET, fn->type, fn->span);
    link->var = v;
    link->a = fn;
    vec_push(&s->links, link);
    map_set(&d->literals, v, fn);
    return expr_var(v, fn->span);
}

/* The code reads by number what its function captured. */
static void keep_captured(Expr *fn) {
    VarVec captured = {0};
    expr_free_vars(fn, &captured);
    fn->fn->keeps_captured |= captured.len > 0;
}

/* A function literal that `name` is bound to (or NULL), with the literals that `let`s bind what it captured to; NULL
 * where it captured none. */
static struct Known *known_literal(const Deriver *d, Expr *fn, const Var *name, int depth) {
    enum { CAPTURED_DEPTH = 8 };
    VarVec captured = {0};
    expr_free_vars(fn, &captured);
    uint32_t n = (uint32_t)captured.len, self = n, known = 0;
    struct Known **of = mem_new_n(struct Known *, n + 1);
    for (uint32_t i = 0; i < n && depth < CAPTURED_DEPTH; i++) {
        const Var *v = captured.data[i];
        Expr *literal = map_find(&d->literals, v);
        if (!literal)
            continue;
        known++;
        if (v == name)
            self = i;
        else
            of[i] = known_literal(d, literal, v, depth + 1);
    }
    keep_captured(fn);
    return known || depth ? reverse_known(fn, of, self) : NULL;
}

static void note_left(const Deriver *d, const Expr *literal, GradKind kind, const char *why) {
    const Symbol *name = literal->fn->name;
    pass_note(d->ctx, "no code was made for `%s` of %s, which is differentiated while it runs: %s",
              grad_kind_name(kind), name ? fmt_text("`%s`", name->text) : "a function", why);
}

static Expr *make_code(Deriver *d, Original *s, GradKind kind, bool merges) {
    bool is_source = d->ctx->derives_source;
    merges = merges && !is_source;
    const ReverseCode *code = reverse_get(d->ctx, kind, merges, s->literal, NULL);
    const Var *self = s->atom->kind == EXPR_VAR ? s->atom->var : NULL;
    struct Known *given = NULL;
    if (code->lacks_function)
        given = known_literal(d, s->literal, self, 0);
    if (given)
        code = reverse_get(d->ctx, kind, merges, s->literal, given);
    if (!code->fn) {
        if (!is_source) /* that of a source is told when its own code is made */
            note_left(d, s->literal, kind, code->why);
        s->is_left = code->tried_all;
        return NULL;
    }
    for (size_t i = 0; i < code->uses.len; i++)
        pass_depend(d->ctx, code->uses.data[i].global);
    Subst with_function = {0};
    map_set(&with_function.vars, code->of, s->atom);
    return expr_substitute(&with_function, code->fn);
}

/* fn (x1: T1, …) { f(x1, …) } for a function f of which a parameter may be anything, where it is used at closed types: a
 * call with these is read in a copy that has them (Note [Functions of any record] in known.c), or of any size, where sizes matter
 * (Note [Sizes of a call] in rows.c). NULL: f serves as it is. */
static Expr *function_at_types(Deriver *d, Expr *f, Expr *literal) {
    const Fn *fn = literal->fn;
    const Type *type = type_resolve(f->type);
    bool open = false, sizes_matter = leads_to_rows(&d->rows, literal);
    if (type->tag != TY_FN || type->nargs != fn->nparams || expr_is_internal(literal))
        return NULL;
    Var **params = mem_new_n(Var *, fn->nparams + 1);
    Expr **args = mem_new_n(Expr *, fn->nparams + 1);
    for (uint32_t i = 0; i < fn->nparams; i++) {
        const Type *param = type_resolve(fn->params[i]->type);
        bool may_be_any = param->tag == TY_PARAM && param->kind == KIND_TYPE;
        open |= (may_be_any || (!type_is_closed(fn->params[i]->type) && sizes_matter)) &&
                type_is_closed(type->args[i]);
        params[i] = var_new(fn->params[i]->name, type->args[i], fn->params[i]->span);
        args[i] = expr_var(params[i], literal->span);
    }
    if (!open)
        return NULL;
    Build b = {literal->span};
    Expr *made = expr_fn(params, fn->nparams, b_call(&b, f, args, fn->nparams, 0), f->type,
                         literal->span);
    made->fn->name = fn->name;
    return made;
}

static bool find_source(Deriver *d, Expr *e, bool is_forward, Original *s) {
    Expr *made;
    switch (e->kind) {
    case EXPR_FN:
        s->literal = e;
        s->atom = bind_function(d, s, e->fn->name ? e->fn->name->text : "f", e);
        keep_captured(e);
        return true;
    case EXPR_VAR:
        s->literal = map_find(&d->literals, e->var);
        s->atom = e;
        if (s->literal)
            keep_captured(s->literal);
        return s->literal != NULL;
    case EXPR_GLOBAL:
        if (e->global->kind != GLOBAL_DEF || e->global->broken || e->global->by_types ||
            !e->global->value || e->global->value->kind != EXPR_FN)
            return false;
        pass_depend(d->ctx, e->global);
        made = function_at_types(d, e, e->global->value);
        s->literal = made ? made : e->global->value;
        s->atom = made ? bind_function(d, s, e->global->name->text, made) : e;
        return true;
    case EXPR_OP:
        s->literal = function_of_op(e);
        s->atom = s->literal ? bind_function(d, s, e->op->name, s->literal) : NULL;
        return s->literal != NULL;
    case EXPR_GRAD:
        if (!is_derivative(e) || !find_source(d, e->a, e->mode == GRAD_JVP, s))
            return false;
        made = make_code(d, s, (GradKind)e->mode, is_forward);
        if (!made)
            return false;
        s->literal = made;
        s->atom = bind_function(d, s, grad_kind_name((GradKind)e->mode), made);
        return true;
    default: return false;
    }
}

/* The same derivative, of which it is not tried to make code while it runs either: what is read then is this function
 * after some more passes, and all ways to prepare it were tried. */
static Expr *leave_derivative(Expr *e) {
    Expr *copy = expr_copy(e);
    copy->is_left = true;
    return copy;
}

/* The code of the derivative e, or what stands for it. */
static Expr *derivative_as_code(Deriver *d, Expr *e) {
    Original s = {0};
    if (!find_source(d, e->a, e->mode == GRAD_JVP, &s)) {
        pass_tell(d->ctx, TOLD_LEFT, "derive", e->span,
                  "left `%s`: of which function, the run decides",
                  grad_kind_name((GradKind)e->mode));
        return e;
    }
    Expr *result = make_code(d, &s, (GradKind)e->mode, true);
    if (!result)
        return s.is_left ? leave_derivative(e) : e;
    pass_tell(d->ctx, TOLD_DONE, "derive", e->span, "made `%s` code",
              grad_kind_name((GradKind)e->mode));
    while (s.links.len) {
        Expr *link = vec_pop(&s.links);
        if (!expr_mentions(result, link->var))
            continue;
        link->body = result;
        link->type = result->type;
        result = link;
    }
    return result;
}

/* Whether what a `let` binds is called, and nothing else. */
static bool is_only_called(Deriver *d, const Expr *let) {
    if (!d->knows_handed)
        expr_find_handed(d->root, &d->handed);
    d->knows_handed = true;
    return !let->rec && !map_has(&d->handed, let->var);
}

static void find_literals(Deriver *d, const Expr *block) {
    for (; block->kind == EXPR_LET; block = block->body) {
        if (block->var && block->a->kind == EXPR_FN)
            map_set(&d->literals, block->var, block->a);
        if (block->var && is_derivative(block->a) && is_only_called(d, block))
            map_set(&d->called, block->a, block->a);
    }
}

/* `{ let f = …; fn (x1) { … } }(x)` with the binding, which does nothing, before the call. */
static Expr *call_behind_block(Expr *call) {
    Links links = {0};
    Expr *result = expr_copy(call);
    result->a = open_links(&links, result->a);
    return close_links(&links, result);
}

/* A derivative with the bindings that its function stands behind before it: `deriv({ let w = v; fn (x) { x * w } })`, as a
 * copied literal gets names for what it captured, is `{ let w = v; deriv(fn (x) { x * w }) }`. */
static Expr *open_function(Links *links, Expr *e) {
    if (e->kind == EXPR_LET)
        return open_links(links, e);
    if (!is_derivative(e))
        return e;
    Expr *fn = open_function(links, e->a);
    if (fn == e->a)
        return e;
    Expr *copy = expr_copy(e);
    copy->a = fn;
    return copy;
}

static Expr *derive_expr(void *ctx, Expr *e) {
    Deriver *d = ctx;
    Expr *known = map_find(&d->done, e);
    if (known)
        return known;
    pass_visit(d->ctx);
    Links links = {0};
    Expr *result = is_derivative(e) ? open_function(&links, e) : e;
    if (links.len) {
        result = derive_expr(d, close_links(&links, result));
    } else if (e->kind == EXPR_LET) {
        find_literals(d, e);
        result = expr_map_block(e, derive_expr, d);
    } else if (is_derivative(e)) {
        bool is_callee = map_has(&d->called, e);
        result = is_callee || d->ctx->derives_values ? derivative_as_code(d, e) : e;
    } else if (e->kind != EXPR_FN || e == d->root || map_has(&d->called, e)) {
        if (e->kind == EXPR_CALL && !e->mode && !e->drop)
            map_set(&d->called, e->a, e->a);
        result = expr_map_children(e, derive_expr, d);
        if (e->kind == EXPR_CALL && is_derivative(e->a) && result->a->kind == EXPR_LET)
            result = call_behind_block(result);
    }
    map_set(&d->done, e, result);
    return result;
}

Expr *pass_derive(PassCtx *ctx, Expr *e) {
    if (ctx->keeps_derivatives)
        return e;
    Deriver d = {.ctx = ctx, .root = e};
    MapRoom room;
    map_begin(&d.done, &room);
    e = derive_expr(&d, e);
    map_end(&d.done);
    return e;
}
