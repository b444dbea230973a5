/* SPDX-License-Identifier: Apache-2.0 */
/* Chains: let, `;`, graph bindings, free_var. Links are checked in a loop and the core is built
 * from the last to the first, so 90,000 of them need no stack.
 *
 *   Γ ⊢ e1 : T ! ε1      Γ, x : gen(T) ⊢ e2 : U ! ε2
 *   ------------------------------------------------      gen only if ε1 is pure: Note [Effects]
 *   Γ ⊢ let x = e1; e2 : U ! ε1 ∪ ε2
 */
#include <string.h>

#include "types/infer/state.h"

typedef struct Link {
    Var *var;     /* NULL: value; rest */
    Local *local; /* the variable of a `let` that should be used, or NULL */
    Expr *value;
    bool rec;
} Link;

typedef VEC(Link) LinkVec;

static bool has_own_params(const AstType *t) {
    return t->kind == AST_TYPE_FORALL || (t->kind == AST_TYPE_FN && t->params.len);
}

static TypePlace let_place(const Name *name) {
    return name ? place_of_name(name->sym->text) : place_of_words("this binding");
}

/* A `let` of a function literal is recursive. Inside of the literal its name is monomorphic. */
static LetValue let_fn(Infer *I, const Name *name, const AstType *annotation, Ast *e, Var *var,
                       Global *global) {
    LetValue out = {.rec = true};
    FnHead head = {0};
    fn_begin(I, e->fn, &head);
    Type *want = annotation ? infer_ast_type(I, annotation, KIND_TYPE) : NULL;
    fn_use_hint(I, &head, want);
    var->type = head.type;
    size_t mark = scope_mark(I);
    Local *self = NULL;
    if (global) {
        global->scheme = scheme_mono(head.type);
    } else {
        self = scope_bind(I, name->sym, name->sigil != SIGIL_NONE, var);
    }
    head.global = global;
    head.self = self;
    if (annotation) {
        out.value = fn_body(I, &head, name->sym, e->span);
        out.value = infer_flow(I, out.value, want, place_of_name(name->sym->text),
                               annotation->span);
    } else {
        out.value = fn_body(I, &head, name->sym, e->span);
    }
    scope_restore(I, mark);
    out.rec = self && self->used;
    Type *found = type_resolve(out.value->type);
    bool forgets = want && found->tag == TY_FN &&
                   found->fn.named; /* the annotation lacks its names */
    out.scheme = fn_end(I, &head, forgets ? want : out.value->type, name->sym);
    return out;
}

/* A `let` that is declared polymorphic: `let f : fn [a](a) -> a = e`. It may not make a reference, because all
 * instances would share it. A function literal may call itself at any instance. */
static LetValue let_declared(Infer *I, const Name *name, const AstType *annotation,
                             const AstPattern *pattern, Ast *e, Var *var, Global *global) {
    LetValue out = {0};
    size_t mark = scope_mark(I);
    if (e->kind == AST_FN && name && !pattern) {
        var->scheme = annotation_announce(I, annotation);
        var->type = var->scheme->type;
        if (global) {
            global->scheme = var->scheme;
        } else {
            scope_bind(I, name->sym, name->sigil != SIGIL_NONE, var);
            out.rec = true;
        }
    }
    solver_enter(I->s);
    AnnotationHead head;
    Type *want = annotation_begin(I, annotation, &head), *outer = I->effect;
    Type *effect = I->effect = solver_var(I->s, KIND_EFFECT);
    TypePlace place = let_place(name);
    out.value = infer_check(I, e, want, place, annotation->span);
    solver_run(I->s);
    if (pattern)
        infer_take_apart(I, pattern, want);
    if (head.ndeclared && solver_effect_allocates(I->s, effect)) {
        Diag *d = infer_error(I, DIAG_R0221, e->span,
                              "%s makes a reference, so its type cannot have parameters",
                              type_place_text(&place));
        if (d)
            diag_add_fact(d, "one reference would serve every type; make it inside a function, "
                             "or write a type without parameters");
    }
    infer_fall_back(I);
    out.scheme = scheme_generalise_declared(I->s, want, head.declared, head.ndeclared,
                                            head.has_where);
    if (!out.scheme)
        out.scheme = scheme_mono(type_error());
    if (name)
        out.scheme->name = name->sym;
    if (out.scheme->nrelations)
        vec_push(&I->schemes, out.scheme);
    annotation_end(I, &head);
    I->effect = outer;
    solver_effect_include(I->s, effect, outer);
    solver_leave(I->s);
    scope_restore(I, mark);
    return out;
}

/* Gives the literals of a `let` their default dtypes, so that its name is never weak. A literal inside of a
 * function takes the dtype of the function's parameter instead: `let g = deriv(fn (x) { x ** 3.0 })`. */
static void default_literals(Infer *I, size_t from) {
    Map supplied = {0}, open = {0};
    for (size_t i = from; i < I->pending.len; i++) {
        const Pending *p = &I->pending.data[i];
        if (p->kind != PENDING_LIT && p->kind != PENDING_DIM)
            continue;
        Type *t = type_resolve(p->expr->type);
        Type *dtype = t->tag == TY_TENSOR ? type_resolve(t->tensor.dtype) : t;
        if (dtype->tag != TY_VAR || !dtype->var.weak || map_has(&open, dtype))
            continue;
        if (p->fn && supply_dtype(I, p, dtype)) {
            map_set(&supplied, dtype, dtype);
        } else {
            map_set(&open, dtype, dtype);
            map_remove(&supplied, dtype);
        }
    }
    solver_default_weak_but(I->s, &supplied);
}

LetValue infer_let_value(Infer *I, const Name *name, const AstType *annotation,
                         const AstPattern *pattern, Ast *e, Var *var, Global *global) {
    LetValue out = {0};
    if (infer_too_deep(I, "the values of `let`s", e->span)) {
        out.value = infer_error_expr(e->span);
        out.scheme = scheme_mono(out.value->type);
        return out;
    }
    if (annotation && has_own_params(annotation))
        return let_declared(I, name, annotation, pattern, e, var, global);
    solver_enter(I->s);
    if (e->kind == AST_FN && name && !pattern) {
        out = let_fn(I, name, annotation, e, var, global);
        solver_leave(I->s);
        return out;
    }
    Type *outer = I->effect;
    Type *effect = I->effect = solver_var(I->s, KIND_EFFECT);
    Type *want = annotation ? infer_ast_type(I, annotation, KIND_TYPE) : NULL;
    size_t pending = I->pending.len;
    out.value = infer_expr(I, e, want);
    Type *type = out.value->type;
    if (want) {
        const Expr *call = out.value;
        out.value = infer_flow(I, out.value, want, let_place(name), annotation->span);
        type = want;
        infer_note_file(I, call, want);
    }
    if (solver_run(I->s) && pattern) {
        infer_take_apart(I, pattern, type);
        solver_run(I->s);
    }
    bool mono = infer_failed(I) || solver_effect_allocates(I->s, effect);
    if (e->kind != AST_FN) {
        infer_fall_back(I);
        if (mono || type_resolve(type)->tag != TY_FN) {
            solver_default_weak(I->s);
            infer_default_typed(I, pending);
        } else {
            default_literals(I, pending);
        }
    }
    out.scheme = infer_generalise(I, type, mono);
    I->effect = outer;
    solver_effect_include(I->s, effect, outer);
    solver_leave(I->s);
    return out;
}

static void finish_let(LinkVec *links, Var *var, const LetValue *v) {
    var->type = v->scheme->type;
    if (v->scheme->nparams || v->scheme->nunknowns || v->scheme->nouter)
        var->scheme = v->scheme;
    infer_note_constant(v->value, &var->size);
    Link link = {var, NULL, v->value, v->rec};
    vec_push(links, link);
}

static bool is_blank(const Symbol *name) { return name->len == 1 && name->text[0] == '_'; }

/* of_param: it binds a part of a parameter, which may go unused as the parameter may. */
static void let_link(Infer *I, LinkVec *links, Ast *e, bool of_param) {
    bool blank = is_blank(e->name.sym);
    Var *var = var_new(e->name.sym, type_error(), e->name.span);
    OpenBinding here = {e, I->binding};
    I->binding = &here;
    LetValue v = infer_let_value(I, blank ? NULL : &e->name, e->type, e->pattern, e->a, var, NULL);
    I->binding = here.outer;
    finish_let(links, var, &v);
    if (blank)
        return;
    scope_warn_hidden(I, &e->name);
    Local *local = scope_bind(I, e->name.sym, e->name.sigil != SIGIL_NONE, var);
    bool should_be_used = e->name.sigil == SIGIL_NONE && e->name.sym->text[0] != '_' &&
                          !symbol_is_hidden(e->name.sym) && !of_param;
    if (should_be_used)
        vec_last(links).local = local;
}

Local *infer_chain_bind(Infer *I, void *links, const Name *name, const Symbol *bound,
                        const AstType *annotation, Ast *value) {
    Var *var = var_new(name->sym, type_error(), name->span);
    LetValue v = infer_let_value(I, name, annotation, NULL, value, var, NULL);
    finish_let(links, var, &v);
    return scope_bind(I, bound, true, var);
}

static void graph_link(Infer *I, LinkVec *links, Ast *e) {
    Name name = {.sym = sym_intern(fmt_text("%%%lld", (long long)e->i)),
                 .sigil = SIGIL_LOCAL,
                 .span = e->span};
    name.span.end = e->op_span.source ? e->op_span.begin : e->a->span.begin;
    if (infer_graph_is_lazy(I, e))
        return;
    infer_chain_bind(I, links, &name, name.sym, NULL, e->a);
}

static void free_var_link(Infer *I, Ast *e) {
    Global *g = mem_new(Global);
    g->kind = GLOBAL_FREE_VAR;
    g->name = e->name.sym;
    g->sigil = e->name.sigil != SIGIL_NONE;
    g->span = e->name.span;
    Type *t = e->type ? infer_ast_type(I, e->type, KIND_TYPE) : solver_var(I->s, KIND_TYPE);
    g->scheme = scheme_mono(t);
    Var *var = var_new(e->name.sym, t, e->name.span);
    scope_bind(I, e->name.sym, g->sigil, var)->lazy = expr_global(g, t, e->name.span);
    if (I->used)
        map_set(I->used, g, g);
}

static void seq_link(Infer *I, LinkVec *links, Ast *e) {
    Link link = {NULL, NULL, infer_expr(I, e->a, NULL), false};
    infer_note(I, PENDING_DISCARD, link.value);
    vec_push(links, link);
}

static bool is_link(const Ast *e) {
    return e->kind == AST_LET || e->kind == AST_GRAPH_LET || e->kind == AST_FREE_VAR ||
           e->kind == AST_SEQ;
}

static void add_link(Infer *I, LinkVec *links, Ast *e, bool of_param) {
    if (e->kind == AST_LET)
        let_link(I, links, e, of_param);
    else if (e->kind == AST_GRAPH_LET)
        graph_link(I, links, e);
    else if (e->kind == AST_FREE_VAR)
        free_var_link(I, e);
    else
        seq_link(I, links, e);
}

Expr *infer_chain(Infer *I, Ast *e, Type *want) {
    LinkVec links = {0};
    size_t mark = scope_mark(I);
    Expr *last = NULL;
    Ast *whole = e;
    bool of_param = true; /* what patterns of parameters bind stands first */
    while (e && !last) {
        if (I->graph_sites.used)
            infer_graph_enter_link(I, e, &links);
        if (!is_link(e)) {
            last = infer_expr(I, e, want);
            break;
        }
        Ast *link = infer_memory_link(I, &links, e);
        if (link) {
            of_param &= link->kind != AST_LET || link->flag;
            add_link(I, &links, link, of_param);
        }
        e = e->body;
    }
    if (!last)
        last = expr_unit(whole->span);
    for (size_t i = links.len; i-- > 0;) {
        Link *l = &links.data[i];
        if (l->local && !l->local->used && !(whole->span.source->flags & SOURCE_INTERNAL)) {
            Diag *d = infer_warning(I, DIAG_R0905, l->var->span, "`%s` is never used",
                                    l->var->name->text);
            Span s = l->var->span;
            if (d && s.end - s.begin == l->var->name->len)
                diag_add_fix(d, s, fmt_text("_%s", l->var->name->text), NULL,
                             "`_%s` says that it is meant", l->var->name->text);
        }
        last = expr_let(l->var, l->value, last);
        last->rec = l->rec && l->value->kind == EXPR_FN;
    }
    scope_restore(I, mark);
    return last;
}

void infer_chain_emit(void *links, Var *var, Expr *value) {
    Link link = {var, NULL, value, false};
    vec_push((LinkVec *)links, link);
}

Expr *infer_root(Infer *I, Ast *e, Type *want) {
    if (!I->graph_sites.used || !map_has(&I->graph_sites, e))
        return infer_expr(I, e, want);
    if (is_link(e))
        return infer_chain(I, e, want);
    LinkVec links = {0};
    size_t mark = scope_mark(I);
    infer_graph_enter_link(I, e, &links);
    Expr *last = infer_expr(I, e, want);
    for (size_t i = links.len; i-- > 0;)
        last = expr_let(links.data[i].var, links.data[i].value, last);
    scope_restore(I, mark);
    return last;
}
