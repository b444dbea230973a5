/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: signatures with declared parameters, bodies, function literals.
 *
 *   Γ, x : T ⊢ e : U ! ε
 *   ------------------------------------
 *   Γ ⊢ fn (x : T) -> U { e } : T -ε-> U
 */
#include "types/infer/state.h"

bool ast_fn_is_annotated(const AstFn *fn) {
    if (!ast_type_is_full(fn->result))
        return false;
    for (size_t i = 0; i < fn->params.len; i++) {
        if (!ast_type_is_full(fn->params.data[i].type))
            return false;
    }
    /* Without a `where` the relations of declared parameters are inferred. */
    return fn->type_params.len == 0 || fn->has_where || fn->where.len == 0;
}

/* Refuses def f[n](x: Tensor[(n,), float32], n: int32), where `n` in a type would be either. */
static void refuse_two_meanings(Infer *I, const FnHead *head, Type *const *params) {
    for (size_t d = 0; d < head->declared.len; d++)
        for (size_t i = 0; i < head->fn->params.len; i++) {
            const TypeParam *p = head->declared.data[d];
            const Name *name = &head->fn->params.data[i].name;
            uint32_t rank;
            Type **dims;
            if (p->name != name->sym || !p->kind_known || p->kind != KIND_DIM ||
                !type_get_rank(params[i], &rank, &dims) || rank)
                continue;
            Diag *diag = infer_error(I, DIAG_R0103, name->span,
                                     "`%s` is a size and a parameter, and a type could mean either",
                                     p->name->text);
            if (diag && p->span.source)
                diag_add_label(diag, p->span, "declared as a size here");
        }
}

/* Under declared type parameters without a `where`, the relations of the body are inferred. */
static void set_infer_where(Infer *I, const AstFn *fn) {
    if (!fn->type_params.len)
        return;
    I->infer_where = !fn->has_where;
    solver_set_infer_where(I->s, I->infer_where);
}

void fn_begin(Infer *I, const AstFn *fn, FnHead *head) {
    head->fn = fn;
    head->type_mark = type_scope_mark(I);
    head->facts = solver_count_facts(I->s);
    head->infer_where = I->infer_where;
    head->declared.len = 0;
    for (size_t i = 0; i < fn->type_params.len; i++)
        vec_push(&head->declared, type_scope_bind(I, &fn->type_params.data[i]));
    uint32_t n = (uint32_t)fn->params.len;
    Type **params = mem_new_n(Type *, n + 1);
    Type *result = NULL;
    if (!fn->result) /* it is made before the types that calls give, and so older */
        result = head->result ? head->result : solver_var(I->s, KIND_TYPE);
    head->params = type_next_id();
    const Symbol **names = mem_new_n(const Symbol *, n + 1);
    NamedScope scope;
    signature_enter(I);
    where_open(I, head->declared.data, head->declared.len, &fn->where);
    named_open(I, &scope, names, params, n);
    for (uint32_t i = 0; i < n; i++) {
        const AstType *t = fn->params.data[i].type;
        const Symbol *name = names[i] = fn->params.data[i].name.sym;
        if (t && name)
            I->annotates = (TypePlace){.kind = PLACE_PARAMETER, .name = name->text};
        params[i] = t ? infer_ast_type(I, t, KIND_TYPE) : solver_var(I->s, KIND_TYPE);
        I->annotates = (TypePlace){0};
        if (t)
            named_check_places(I, &scope, params[i], t->span);
        scope.n++;
    }
    head->mark = type_next_id();
    if (fn->result) {
        I->of_calls++;
        result = infer_ast_type(I, fn->result, KIND_TYPE);
        I->of_calls--;
    }
    head->named = named_close(I);
    refuse_two_meanings(I, head, params);
    set_infer_where(I, fn);
    if (fn->where.len) {
        where_assume(I, head->declared.data, head->declared.len, &fn->where);
        for (uint32_t i = 0; i < n; i++)
            params[i] = type_zonk(params[i]);
        result = type_zonk(result);
    }
    signature_leave(I);
    head->type = type_fn_named(params, n, result, solver_var(I->s, KIND_EFFECT), head->named);
}

void fn_close(Infer *I, FnHead *head) {
    type_scope_restore(I, head->type_mark);
    I->infer_where = head->infer_where;
    solver_set_infer_where(I->s, I->infer_where);
}

void fn_reopen(Infer *I, FnHead *head) {
    head->type_mark = type_scope_mark(I);
    for (size_t i = 0; i < head->declared.len; i++)
        type_scope_enter(I, head->declared.data[i]);
    set_infer_where(I, head->fn);
}

static void end_signature(Infer *I, FnHead *head) {
    fn_close(I, head);
    solver_forget_facts(I->s, head->facts);
}

static Type **declared_types(Infer *I, FnHead *head) {
    Type **types = mem_new_n(Type *, head->declared.len + 1);
    for (size_t i = 0; i < head->declared.len; i++)
        types[i] = type_param_rigid(I, head->declared.data[i]);
    return types;
}

/* Refuses a definition of too many unknown sizes. Each use of a definition has its own, so a chain of definitions
 * that each use the one before twice doubles them. */
bool fn_has_many_unknowns(Infer *I, const Scheme *scheme, const Symbol *name, Span span) {
    enum { MOST = 4096 };
    if (scheme->nunknowns <= MOST)
        return false;
    infer_error(I, DIAG_R0009, span, "the type of %s has %u unknown sizes, and may have %d",
                name ? fmt_text("`%s`", name->text) : "this function", scheme->nunknowns, MOST);
    return true;
}

Scheme *fn_end(Infer *I, FnHead *head, Type *type, const Symbol *name) {
    uint32_t n = (uint32_t)head->declared.len;
    Scheme *scheme;
    infer_fall_back(I);
    solver_run(I->s);
    type = solver_open_parameters(I->s, type);
    if (n) {
        scheme = scheme_generalise_declared(I->s, type, declared_types(I, head), n,
                                            head->fn->has_where);
    } else {
        scheme = scheme_generalise(I->s, type, infer_failed(I));
    }
    Span span = head->global     ? head->global->span
                : head->fn->body ? head->fn->body->span
                                 : span_none();
    if (!scheme || fn_has_many_unknowns(I, scheme, name, span))
        scheme = scheme_mono(type_error());
    scheme->name = name;
    named_note_sizes(head->made, scheme);
    if (scheme->nrelations)
        vec_push(&I->schemes, scheme);
    end_signature(I, head);
    return scheme;
}

void fn_drop(Infer *I, FnHead *head) { end_signature(I, head); }

Expr *fn_body(Infer *I, FnHead *head, const Symbol *name, Span span) {
    const AstFn *fn = head->fn;
    Type *type = head->type;
    Fn *f = mem_new(Fn);
    head->made = f;
    f->name = name;
    f->nparams = (uint32_t)fn->params.len;
    f->params = mem_new_n(Var *, f->nparams + 1);
    size_t mark = scope_mark(I);
    FnCtx ctx_value = {I->fn, f->params, f->nparams, name};
    FnCtx *ctx = mem_new(FnCtx);
    *ctx = ctx_value;
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Name *n = &fn->params.data[i].name;
        f->params[i] = var_new(n->sym, named_of_param(f, head->named, type->args[i]), n->span);
        if (head->named && head->named[i])
            var_size(f->params[i])->param.declared = true;
        scope_warn_hidden(I, n);
        scope_bind(I, n->sym, n->sigil != SIGIL_NONE, f->params[i]);
    }
    I->fn = ctx;
    for (uint32_t i = 0; i < f->nparams; i++) {
        if (fn->params.data[i].pattern)
            infer_take_apart(I, fn->params.data[i].pattern, type->args[i]);
    }
    Type *effect = I->effect;
    I->effect = type->fn.effect;
    TypePlace place = {.kind = PLACE_RESULT, .of = name ? name->text : NULL};
    solver_enter_body(I->s, head->params, head->mark);
    Type *want = named_of_result(I, f, head->named, type->fn.result);
    if (fn->body) {
        Expr *body = infer_root(I, fn->body, want);
        bool recursive = head->recursive || (head->self && head->self->used) ||
                         (head->global && I->used && map_has(I->used, head->global));
        head->recursive = recursive;
        bool open = !recursive && type_resolve(type->fn.result)->tag == TY_VAR;
        bool own = open &&
                   type_has(body->type, TY_ANY); /* the same type, but for whose its sizes are */
        f->body = body;
        if (open) {
            Type **named, *result = named_result(f, head->named, &named, body->type);
            result = solver_make_each_since(result, head->mark);
            if (!solver_unify(I->s, type->fn.result, result))
                own = false;
            if (own)
                type = head->type = type_fn_named(type->args, f->nparams, type->fn.result,
                                                  type->fn.effect, named);
        }
        solver_set_recursive(I->s, recursive);
        solver_set_given(I->s, fn->result ? type : NULL);
        if (!own)
            f->body = infer_flow(I, body, want, place, fn->result ? fn->result->span : span_none());
        solver_set_given(I->s, NULL);
        if (fn->result && infer_last_flow(I, f->body))
            vec_last(&I->pending).given = type;
        solver_set_recursive(I->s, false);
        f->body = named_compare_arguments(I, f, type, f->body);
    } else {
        f->body = infer_error_expr(span);
    }
    solver_leave_body(I->s);
    I->effect = effect;
    I->fn = ctx->outer;
    scope_restore(I, mark);
    f->nattrs = (uint32_t)fn->attrs.len;
    f->attrs = fn->attrs.data;
    Expr *e = expr_new(EXPR_FN, type, span);
    e->fn = f;
    f->type_params = mem_new_n(Type *, head->declared.len + 1);
    for (size_t i = 0; i < head->declared.len; i++)
        if (head->declared.data[i]->type) /* a parameter that is never used has no type */
            f->type_params[f->ntype_params++] = type_param_rigid(I, head->declared.data[i]);
    return e;
}

/* Takes the types of parameters without annotation from the context. An unknown of which each call has its own is
 * one unknown in the body, as if it were written there. */
void fn_use_hint(Infer *I, FnHead *head, Type *want) {
    Type *type = head->type;
    want = want ? type_resolve(want) : NULL;
    if (!want || want->tag != TY_FN || want->nargs != type->nargs)
        return;
    if (want->fn.named && !head->named) { /* the literal has names of its own */
        want = type_resolve(unknowns_rename(want));
        head->named = want->fn.named;
    }
    Type **params = mem_new_n(Type *, type->nargs + 1);
    for (uint32_t i = 0; i < type->nargs; i++) {
        params[i] = type->args[i];
        if (head->fn->params.data[i].type)
            continue;
        if (solver_has_each(want->args[i]))
            params[i] = solver_open_each_of(want, want->args[i]);
        else
            solver_unify(I->s, params[i], want->args[i]);
    }
    head->type = type_fn_named(params, type->nargs, type->fn.result, type->fn.effect, head->named);
    head->mark = type_next_id();
}

/* A function literal that is not bound by a `let`. Where it declares type parameters, it is an instance of its
 * own scheme. */
Expr *infer_fn(Infer *I, Ast *e, const Symbol *name, Type *want) {
    FnHead head = {0};
    if (infer_too_deep(I, "functions and `let`s", e->span))
        return infer_error_expr(e->span);
    if (e->fn->type_params.len == 0) {
        fn_begin(I, e->fn, &head);
        fn_use_hint(I, &head, want);
        Expr *fn = fn_body(I, &head, name, e->span);
        fn_drop(I, &head);
        return fn;
    }
    solver_enter(I->s);
    fn_begin(I, e->fn, &head);
    Expr *fn = fn_body(I, &head, name, e->span);
    Scheme *scheme = fn_end(I, &head, head.type, name);
    solver_leave(I->s);
    fn->type = scheme_instantiate(I->s, scheme, e->span, NULL, 0, NULL);
    return fn;
}
