/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that types name (Note [Named parameters] in types/type/named.c): read in signatures and function types,
 * given their sizes at calls, inferred for the results of function literals.
 *
 *   Γ, n : int32 ⊢ e : U     U' is U with the type's name for n in place of n's own size
 *   -----------------------------------------------------------------------------------
 *   Γ ⊢ fn (n : int32) { e } : fn(n : int32) -> U'
 */
#include "types/infer/state.h"

/* ---- reading --------------------------------------------------------------------------------- */

void named_open(Infer *I, NamedScope *scope, const Symbol **names, Type **types, uint32_t n) {
    *scope = (NamedScope){.outer = I->naming, .names = names, .types = types};
    scope->named = mem_new_n(Type *, n + 1);
    I->naming = scope;
}

Type **named_close(Infer *I) {
    NamedScope *scope = I->naming;
    I->naming = scope->outer;
    return scope->any ? scope->named : NULL;
}

/* A parameter that is a size is one integer, and int32 where nothing else says what it is. */
static bool make_size(Infer *I, Type *type, Span span) {
    Type *dtype = solver_var(I->s, KIND_DTYPE);
    if (!solver_restrict(I->s, dtype, DTS_INT) ||
        !solver_unify(I->s, type, type_tensor(type_shape(NULL, 0), dtype))) {
        infer_error(I, DIAG_R0201, span, "a size is one integer, and this parameter is %s",
                    type_text(type));
        return false;
    }
    dtype = type_resolve(dtype);
    if (dtype->tag == TY_VAR) {
        Fallback f = {dtype, DT_I32};
        vec_push(&I->fallbacks, f);
    }
    return true;
}

static Var *find_parameter(const Infer *I, const Symbol *name) {
    const Local *l = map_find(&I->locals, name);
    for (const FnCtx *fn = I->fn; l && fn; fn = fn->outer)
        for (uint32_t i = 0; i < fn->nparams; i++)
            if (fn->params[i] == l->var)
                return l->var;
    return NULL;
}

Type *named_find(Infer *I, const Symbol *name, Span span) {
    for (NamedScope *scope = I->naming; scope; scope = scope->outer)
        for (uint32_t i = scope->n; i-- > 0;) {
            if (scope->names[i] != name)
                continue;
            if (!scope->named[i] && !make_size(I, scope->types[i], span))
                return solver_var(I->s, KIND_DIM);
            if (!scope->named[i])
                scope->named[i] = type_any_named(name);
            scope->any = true;
            return scope->named[i];
        }
    Var *v = type_scope_find(I, name) ? NULL : find_parameter(I, name);
    if (!v)
        return NULL;
    return make_size(I, v->type, span) ? var_size(v) : solver_var(I->s, KIND_DIM);
}

/* Whether a name stands elsewhere than in a tensor or a tuple of them. */
static bool stands_inside(Type *t, Type *const *named, uint32_t n) {
    t = type_resolve(t);
    bool found = false;
    for (uint32_t i = 0; t->tag == TY_TUPLE && i < t->nargs && !found; i++)
        found = stands_inside(t->args[i], named, n);
    if (t->tag == TY_TUPLE || t->tag == TY_TENSOR)
        return found;
    Map seen = {0};
    TypeVec unknowns = {0};
    type_collect(t, TY_ANY, &seen, &unknowns);
    for (uint32_t i = 0; i < n; i++)
        found = found || (named[i] && map_has(&seen, named[i]));
    return found;
}

void named_check_places(Infer *I, const NamedScope *scope, Type *type, Span span) {
    if (!scope->any || !stands_inside(type, scope->named, scope->n))
        return;
    Diag *d = infer_error(I, DIAG_R0209, span,
                          "a parameter's name stands in a tensor, or a tuple of tensors");
    if (d)
        diag_add_fact(d,
                      "what a call is given is compared with it, and inside of data and functions "
                      "nothing compares: write `?`");
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* The type with the body's own sizes of the parameters in place of their names. */
static Type *with_own_sizes(const Fn *f, Type *const *named, Type *t) {
    TypeVec from = {0}, to = {0};
    for (uint32_t i = 0; named && i < f->nparams; i++) {
        if (!named[i] || !f->params[i])
            continue;
        vec_push(&from, named[i]);
        vec_push(&to, var_size(f->params[i]));
    }
    return type_substitute(t, from.data, to.data, (uint32_t)from.len);
}

/* A type that was found through a variable: its unknowns are particular sizes, and take no others (solve/flow.c). */
static Type *particular(Infer *I, Type *t) {
    Type *v = solver_var(I->s, KIND_TYPE);
    v->var.link = t;
    return v;
}

Type *named_of_param(const Fn *f, Type *const *named, Type *t) {
    return named ? with_own_sizes(f, named, t) : t;
}

Type *named_of_result(Infer *I, const Fn *f, Type *const *named, Type *t) {
    Type *own = named ? with_own_sizes(f, named, t) : t;
    return own == t ? t : particular(I, own);
}

/* The type with an unknown for each size that has a name in it. */
static Type *with_any_sizes(Type *t) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    bool tensor = t->tag == TY_TENSOR && type_get_rank(t, &rank, &dims);
    if (!tensor && t->tag != TY_TUPLE)
        return t;
    uint32_t n = tensor ? rank : t->nargs;
    Type **args = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        args[i] = !tensor                    ? with_any_sizes(t->args[i])
                  : solver_has_each(dims[i]) ? type_any(KIND_DIM, NULL)
                                             : dims[i];
    return tensor ? type_tensor(type_shape(args, n), t->tensor.dtype) : type_tuple(args, n);
}

/* The function takes what it is given as `arg`, of any size; the parameter itself is that value once it was compared. */
Expr *named_compare_arguments(Infer *I, Fn *f, const Type *type, Expr *body) {
    for (uint32_t i = f->nparams; type->fn.named && i-- > 0;) {
        Var *v = f->params[i];
        if (v->type == type->args[i])
            continue;
        Var *arg = var_new(v->name, with_any_sizes(type->args[i]), v->span);
        Expr *at = expr_var(arg, v->span);
        Pending *p = infer_note(I, PENDING_FLOW, at);
        p->from = arg->type;
        p->to = particular(I, v->type);
        p->place = (TypePlace){.kind = PLACE_PARAMETER, .name = v->name->text};
        f->params[i] = arg;
        body = expr_let(v, at, body);
    }
    return body;
}

Type *named_result(const Fn *f, Type *const *written, Type ***named, Type *result) {
    TypeVec from = {0}, to = {0};
    *named = (Type **)written;
    for (uint32_t i = 0; i < f->nparams; i++) {
        Type *size = f->params[i]->size;
        if (!size || size->tag != TY_ANY)
            continue;
        if (!from.len) {
            *named = mem_new_n(Type *, f->nparams);
            for (uint32_t k = 0; written && k < f->nparams; k++)
                (*named)[k] = written[k];
        }
        if (!(*named)[i])
            (*named)[i] = type_any_named(f->params[i]->name);
        vec_push(&from, size);
        vec_push(&to, (*named)[i]);
    }
    return type_substitute(result, from.data, to.data, (uint32_t)from.len);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The size that an argument is: of a constant, a variable, a dim; else an unknown, whose value the argument is.
 * Arithmetic of values wraps, so it is no polynomial of them. */
static Type *size_of_argument(Infer *I, const Expr *arg) {
    int64_t n;
    Type *size = expr_is_integer(arg) ? expr_size(arg) : NULL;
    bool exact = arg->kind == EXPR_VAR || arg->kind == EXPR_GLOBAL || arg->kind == EXPR_DIM_OF;
    if (size && type_get_int(size, &n)) {
        Origin *origin = mem_new(Origin);
        *origin = (Origin){.kind = ORIGIN_LITERAL, .span = arg->span};
        return type_dim_int(n, origin);
    }
    if (size && exact)
        return size;
    size = type_any_value(NULL, type_next_id(), NULL);
    map_set(&I->argument_sizes, arg, size);
    return size;
}

void named_note_sizes(const Fn *f, Scheme *scheme) {
    for (uint32_t i = 0; f && scheme->nunknowns && i < f->nparams; i++)
        for (uint32_t k = 0; f->params[i]->size && k < scheme->nunknowns; k++) {
            if (scheme->unknowns[k] != f->params[i]->size)
                continue;
            if (!scheme->sizes)
                scheme->sizes = mem_new_n(Type *, f->nparams);
            scheme->sizes[i] = scheme->unknowns[k];
        }
}

Type *named_give(Infer *I, Type *fn, Type *const *sizes, uint32_t i, const Expr *arg) {
    Type *open = sizes ? sizes[i] : NULL;
    if (!open && (!fn->fn.named || !fn->fn.named[i]))
        return fn;
    Type *size = size_of_argument(I, arg);
    if (open)
        solver_give_size(I->s, open, size);
    return type_resolve(type_fn_give(fn, i, size));
}
