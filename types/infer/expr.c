/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions: one function a form, reached from infer_expr. The rules of MAPL'18 figure 6 stand
 * beside the forms they type. */
#include <string.h>

#include "types/infer/state.h"

Relation *infer_post(Infer *I, const RelDef *def, Type **args, uint32_t n, const Attrs *attrs,
                     Span span, const Expr *call, Expr *const *operands, uint32_t noperands) {
    Relation *r = solver_post(I->s, def, args, n, attrs, span);
    Span *spans = mem_new_n(Span, noperands + 1);
    for (uint32_t i = 0; i < noperands; i++)
        spans[i] = operands[i]->span;
    r->arg_spans = spans;
    r->expr = call;
    r->fn = I->fn;
    r->time = I->time;
    return r;
}

static bool expr_is_trivial(const Expr *e) {
    switch (e->kind) {
    case EXPR_LIT:
    case EXPR_CONST:
    case EXPR_STRING:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_FN:
    case EXPR_ERROR: return true;
    case EXPR_BUILTIN:
    case EXPR_CALL:
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_MATCH:
    case EXPR_TUPLE:
    case EXPR_PROJ:
    case EXPR_FIELD:
    case EXPR_UPDATE:
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_WRITE:
    case EXPR_BANG:
    case EXPR_EQUAL:
    case EXPR_TENSOR:
    case EXPR_INDEX:
    case EXPR_DIM_OF:
    case EXPR_ZERO:
    case EXPR_CHECK:
    case EXPR_GRAD: break;
    }
    return false;
}

Expr *let_stack_add(LetStack *lets, Expr *e, const char *name) {
    if (expr_is_trivial(e))
        return e;
    Var *v = var_new(sym_intern(name), e->type, e->span);
    vec_push(&lets->vars, v);
    vec_push(&lets->values, e);
    return expr_var(v, e->span);
}

Expr *let_stack_wrap(LetStack *lets, Expr *body) {
    for (size_t i = lets->vars.len; i-- > 0;) {
        Span span = body->span;
        body = expr_let(lets->vars.data[i], lets->values.data[i], body);
        body->span = span;
    }
    return body;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A transformation as a value is `fn (f) { grad f }`, of its declared type. */
static Expr *grad_value(Global *g, Type *type, Span span) {
    Type *t = type_resolve(type);
    Var *f = var_new(sym_intern("f"), t->args[0], span);
    Expr *body = expr_new(EXPR_GRAD, t->fn.result, span);
    GradKind kind;
    grad_kind_find(g->symbol, &kind);
    body->mode = (uint8_t)kind;
    body->a = expr_var(f, span);
    return expr_fn(&f, 1, body, type, span);
}

static bool is_grad(const Global *g) {
    GradKind kind;
    return g->kind == GLOBAL_BUILTIN && g->symbol && grad_kind_find(g->symbol, &kind);
}

/* Whether the type arguments of f<b>(…), inside of the f that is being checked, are the parameters of f in their
 * order: f has one type there. */
static bool own_type_args(Infer *I, const Global *g, Type **type_args, uint32_t n, Span span) {
    const AstTypeParamVec *declared = &g->item->fn->type_params;
    for (uint32_t i = 0; i < n; i++) {
        TypeParam *p = g == I->current && i < declared->len
                           ? type_scope_find(I, declared->data[i].name)
                           : NULL;
        if (p && !p->type && type_args[i] && p->kind_known && p->kind == type_args[i]->kind)
            p->type = solver_rigid(I->s, p->kind, p->name);
        if (p && (!type_args[i] || (p->type && solver_unify(I->s, type_args[i], p->type))))
            continue;
        Diag *d = infer_error(I, DIAG_R0108, span,
                              "inside itself `%s` has its own type parameters and no others",
                              g->name->text);
        if (d)
            diag_add_fact(d, "with all parameters and the result annotated it may be used at "
                             "other types");
        return false;
    }
    return true;
}

static bool has_hole(Type *const *type_args, uint32_t n) {
    uint32_t i = 0;
    while (i < n && type_args[i] && !type_has_vars(type_args[i]))
        i++;
    return i < n;
}

/* The n type arguments of a definition that runs as copies, fresh ones where none is written; infer_settle_copy
 * chooses the copy. */
static Type **open_type_args(Infer *I, const Scheme *scheme, uint32_t n, Type *const *written,
                             uint32_t nwritten) {
    Type **args = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0, k = 0; i < scheme->nparams && k < n; i++) {
        if (scheme->params[i]->kind == KIND_EFFECT)
            continue;
        args[k] = k < nwritten && written[k] ? written[k]
                                             : solver_var(I->s, scheme->params[i]->kind);
        k++;
    }
    return args;
}

/* A call of g as it is written here, with type arguments of the kinds that it takes: `nn.linear<2, 3>(...)`. */
static const char *example_with_types(const Global *g, Span span) {
    Str out = {0};
    const char *name = span.source
                           ? mem_strndup(span.source->text + span.begin, span.end - span.begin)
                           : g->name->text;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < g->scheme->nparams; i++) {
        Kind kind = g->scheme->params[i]->kind;
        if (kind == KIND_EFFECT)
            continue;
        str_add(&out, shown ? ", " : "");
        if (kind == KIND_DIM)
            str_printf(&out, "%u", shown + 2);
        else
            str_add(&out, kind == KIND_SHAPE ? "(2, 3)" : "float32");
        shown++;
    }
    return fmt_text("%s<%s>(...)", name, str_text(&out));
}

/* Whether the prelude binds g to a number without a suffix, as it does `pi`: a mention of g is such a literal (LANGUAGE
 * §8), which takes the dtype of what it meets. */
static bool is_prelude_number(const Infer *I, const Global *g) {
    if (g->kind != GLOBAL_LET || g->home != I->env->prelude || !g->item || !g->item->value)
        return false;
    const Ast *value = g->item->value;
    return (value->kind == AST_INT || value->kind == AST_FLOAT) && !value->dtype;
}

static Expr *global_expr(Infer *I, Global *g, Span span, Type **type_args, uint32_t n) {
    if (g->broken) {
        Diag *d = infer_error(I, DIAG_R0104, span, "`%s` no longer checks and cannot be used",
                              g->name->text);
        if (d)
            diag_add_label(d, g->span, "since a definition it uses changed");
        return infer_error_expr(span);
    }
    if (!g->scheme && g == I->current && ast_fn_is_annotated(g->item->fn))
        infer_announce_def(I, g->item, g); /* a recursive call, at the annotated type */
    if (!g->scheme) {                      /* the error was reported at the item that binds it */
        I->uses_failed = true;
        return infer_error_expr(span);
    }
    if (n && !g->scheme->nparams && !g->value && g->item && g->item->fn &&
        g->item->fn->type_params.len) {
        if (!own_type_args(I, g, type_args, n, span))
            return infer_error_expr(span);
        return expr_global(infer_specialised(I, g, type_args, n, span), g->scheme->type, span);
    }
    if (is_prelude_number(I, g) && !n) {
        Ast *number = mem_new(Ast);
        *number = *g->item->value;
        number->span = span;
        return infer_literal(I, number, false);
    }
    bool by_types = g->by_types && (!n || has_hole(type_args, n));
    const Scheme *scheme = n || by_types ? scheme_open_uses(g->scheme)
                                         : g->scheme; /* all its parameters */
    uint32_t params = 0;
    for (uint32_t i = 0; i < scheme->nparams; i++)
        params += scheme->params[i]->kind != KIND_EFFECT;
    if (n > params) {
        infer_error(I, DIAG_R0108, span, "`%s` has %u type parameter%s, and %u arguments are given",
                    g->name->text, params, params == 1 ? "" : "s", n);
        return infer_error_expr(span);
    }
    if (by_types) {
        type_args = open_type_args(I, scheme, params, type_args, n);
        n = params;
    }
    size_t posted = solver_nposted(I->s);
    Type *t = scheme_instantiate(I->s, scheme, span, n ? type_args : NULL, n, NULL);
    Expr *use = expr_global(g, t, span);
    solver_set_instance(I->s, posted, use);
    solver_run(I->s);
    if (is_grad(g))
        return grad_value(g, t, span);
    if (by_types)
        infer_note(I, PENDING_COPY, use)->from = type_tuple(type_args, n);
    else if (n)
        use->global = infer_specialised(I, g, type_args, n, span);
    infer_note_read(I, use);
    infer_note_typed(I, use);
    return use;
}

/* Whether a type that a copy is made for is known: closed, or of declared parameters, which copies of the definition
 * around it know. */
static bool is_known_type(const Infer *I, Type *t) {
    t = type_resolve(t);
    if (type_has_vars(t) || (t->flags & TYPE_HAS_ANY))
        return false;
    if (!(t->flags & TYPE_HAS_PARAMS))
        return true;
    const AstFn *fn = I->current && I->current->item ? I->current->item->fn : NULL;
    TypeVec params = {0};
    Map seen = {0};
    type_collect(t, TY_PARAM, &seen, &params);
    for (size_t i = 0; i < params.len; i++) {
        size_t k = 0, n = fn ? fn->type_params.len : 0;
        while (k < n && fn->type_params.data[k].name != params.data[i]->param.name)
            k++;
        if (k == n)
            return false;
    }
    return true;
}

void infer_settle_copy(Infer *I, Expr *use, Type *args) {
    for (uint32_t i = 0; i < args->nargs; i++) {
        if (is_known_type(I, args->args[i]))
            continue;
        Diag *d = infer_error(I, DIAG_R0214, use->span,
                              "`%s` needs its type arguments: no argument "
                              "supplies them when running",
                              use->global->name->text);
        if (d)
            diag_add_fact(d, "as in `%s`; the declared type of what it makes gives them too",
                          example_with_types(use->global, use->span));
        return;
    }
    use->global = infer_specialised(I, use->global, args->args, args->nargs, use->span);
}

Expr *infer_local(Infer *I, Local *l, Span span) {
    if (l->slot)
        return infer_slot_read(I, l->slot, span);
    if (l->lazy) {
        Expr *e = expr_copy(l->lazy);
        e->span = span;
        return e;
    }
    if (!l->var->scheme)
        l->var->type = solver_open_each(l->var->type);
    Expr *e = expr_var(l->var, span);
    size_t posted = solver_nposted(I->s);
    if (l->var->scheme)
        e->type = scheme_instantiate(I->s, l->var->scheme, span, NULL, 0, NULL);
    solver_set_instance(I->s, posted, e);
    return e;
}

/* An operator as a value, with its default attributes. */
static Expr *op_value(Infer *I, const Op *op, Span span) {
    const Attrs *attrs = attrs_defaults(op);
    if (!attrs && op->nattrs) {
        static const AstAttrVec none;
        infer_attrs(I, op, &none, span); /* reports the attribute that is missing */
        return infer_error_expr(span);
    }
    uint32_t n = (uint32_t)op->nargs;
    Type **args = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i <= n; i++)
        args[i] = solver_var(I->s, KIND_TYPE);
    Expr *e = expr_op(op, NULL, span);
    e->attrs = attrs;
    e->type = type_fn(args, n, args[n],
                      op->foreign ? type_allocates() : solver_var(I->s, KIND_EFFECT));
    Relation *r = infer_post(I, op->relation, args, n + 1, attrs, span, e, NULL, 0);
    r->op = op;
    r->arg_spans = NULL;
    solver_run(I->s);
    return e;
}

static Expr *ctor_value(Infer *I, const Ctor *ctor, Span span, Type **type_args, uint32_t n) {
    Type **args = mem_new_n(Type *, ctor->decl->nparams + 1);
    for (uint32_t i = 0; i < n && i < ctor->decl->nparams; i++)
        args[i] = type_args[i];
    CtorInstance c = ctor_instantiate(I, ctor, args, OPEN_FLEXIBLE, NULL);
    Expr *e = expr_new(EXPR_CTOR, c.data, span);
    e->ctor = ctor_of_values(ctor);
    if (ctor->nfields)
        e->type = type_fn(c.fields, ctor->nfields, c.data, solver_var(I->s, KIND_EFFECT));
    return e;
}

/* An attribute of the operator of a derivative rule, as a value: ad.attr("name"). */
static Expr *attr_value(Infer *I, const Symbol *name, Span span) {
    const AttrSpec *spec = &I->rule_op->attrs[op_attr_index(I->rule_op, name->text)];
    Type *dtype = NULL;
    switch (spec->type) {
    case AT_INT:
    case AT_INT_OPT:
    case AT_DIM: dtype = type_dtype(DT_I32); break;
    case AT_FLOAT: dtype = type_dtype(DT_F64); break; /* exact, until cast_like rounds it */
    case AT_BOOL: dtype = type_dtype(DT_BOOL); break;
    case AT_STRING: break;
    case AT_DTYPE:
    case AT_INTS:
    case AT_INTS_OPT:
    case AT_DIMS:
    case AT_DIMS_OPT:
    case AT_DIM_LISTS:
    case AT_INT_OR_DIMS:
    case AT_FLOATS:
        infer_error(I, DIAG_R0116, span,
                    "attribute `%s` is no number: it can only stand as an attribute's value",
                    name->text);
        return infer_error_expr(span);
    }
    Type *type = dtype ? type_tensor(type_shape(NULL, 0), dtype) : type_string();
    Expr *text = expr_new(EXPR_STRING, type_string(), span);
    text->text = name->text;
    text->text_len = name->len;
    return expr_call_builtin("ad.attr", &text, 1, type, span);
}

Expr *infer_name(Infer *I, Ast *e, Type **type_args, uint32_t n, Type *want) {
    Name name = e->name;
    if (e->kind == AST_GRAPH_VAR) {
        name.sym = sym_intern(fmt_text("%%%lld", (long long)e->i));
        name.sigil = SIGIL_LOCAL;
        name.span = e->span;
    }
    Resolved r = scope_resolve(I, &name);
    switch (r.kind) {
    case NAME_LOCAL: return infer_local(I, r.local, e->span);
    case NAME_GLOBAL: return global_expr(I, r.global, e->span, type_args, n);
    case NAME_CTOR:
        return ctor_value(I, n ? r.ctor : ctor_of_type(r.ctor, want), e->span, type_args, n);
    case NAME_OP: return op_value(I, r.op, e->span);
    case NAME_DIM: {
        Type *dtype = solver_weak_dtype(I->s, false, e->span);
        Expr *d = expr_new(EXPR_DIM_OF, type_tensor(type_shape(NULL, 0), dtype), e->span);
        d->zero_type = r.param->type;
        infer_note(I, PENDING_DIM, d)->to = r.param->type;
        return d;
    }
    case NAME_ATTR: return attr_value(I, name.sym, e->span);
    case NAME_NONE: break;
    }
    if (e->kind == AST_GRAPH_VAR) {
        Diag *d = infer_error(I, DIAG_R0114, e->span, "there is no graph binding `%s` here",
                              name.sym->text);
        if (d)
            d->missing = name.sym;
    } else {
        FileName *later = map_find(&I->names, name.sym);
        if (later && later->position >= I->position && later->item->kind != ITEM_DEF) {
            Diag *d = infer_error(I, DIAG_R0104, e->span, "`%s` is bound further down",
                                  name.sym->text);
            if (d && !scope_report_open_binding(I, d, &name))
                diag_add_label(d, later->item->span, "here");
        } else {
            scope_report_unknown(I, &name);
        }
    }
    return infer_error_expr(e->span);
}

static Expr *infer_instantiate_form(Infer *I, Ast *e) {
    if (e->a->kind != AST_NAME)
        BUG("the reader let type arguments of what is no name through");
    Type **types = infer_type_args(I, e);
    return infer_name(I, e->a, types, (uint32_t)e->type_args.len, NULL);
}

/* ---- if -------------------------------------------------------------------------------------- */

static Expr *infer_condition(Infer *I, Ast *e, const char *what) {
    Expr *c = infer_expr(I, e, type_scalar(DT_BOOL));
    if (type_resolve(c->type)->tag == TY_ERROR)
        return c;
    TypePlace place = place_of_words(what);
    solver_set_place(I->s, c->span, place);
    if (!solver_flow(I->s, c->type, type_scalar(DT_BOOL), c->span, place)) {
        Diag *d = infer_error(I, DIAG_R0204, c->span, "%s is one bool, found %s", what,
                              type_text(c->type));
        if (d)
            diag_set_label(d, "%s", type_text(c->type));
    }
    solver_run(I->s);
    return c;
}

/* Whether a type with an unknown size is expected, so that each arm flows into it by itself. */
static bool wants_unknown(Type *want) { return want && (type_resolve(want)->flags & TYPE_HAS_ANY); }

static Expr *infer_arm(Infer *I, Join *join, Ast *e, Type *want) {
    if (wants_unknown(want)) {
        join->type = want;
        return infer_check(I, e, want, place_of_words(join->noun), span_none());
    }
    Expr *arm = infer_expr(I, e, want);
    infer_join(I, join, arm);
    return arm;
}

/* Γ ⊢ c : Tensor[(), bool]   Γ ⊢ t : T   Γ ⊢ e : T   ⟹   if (c) { t } else { e } : T */
static Expr *infer_if(Infer *I, Ast *e, Type *want) {
    /* `else if` chains lean to the right */
    typedef struct Branch {
        Expr *c, *t;
        Span span;
    } Branch;
    VEC(Branch) branches = {0};
    Join join = {.noun = "the branches of `if`", .code = DIAG_R0205};
    Ast *rest = e;
    while (rest->kind == AST_IF) {
        Branch b = {infer_condition(I, rest->a, "the condition of `if`"), NULL, rest->span};
        b.t = infer_arm(I, &join, rest->b, want);
        vec_push(&branches, b);
        rest = rest->c;
    }
    Expr *result = infer_arm(I, &join, rest, want);
    for (size_t i = branches.len; i-- > 0;) {
        Branch *b = &branches.data[i];
        result = expr_if(b->c, b->t, result, join.type, b->span);
    }
    return result;
}

static Expr *infer_guard(Infer *I, Ast *e) { return infer_condition(I, e, "a `when` guard"); }

static Expr *infer_match(Infer *I, Ast *e, Type *want) {
    Expr *a = infer_expr(I, e->a, NULL);
    Expr *m = expr_new(EXPR_MATCH, type_error(), e->span);
    m->a = a;
    m->partial = e->flag;
    m->narms = (uint32_t)e->arms.len;
    m->arms = mem_new_n(Arm, m->narms + 1);
    Join join = {.noun = "the arms of `match`", .code = DIAG_R0206};
    for (uint32_t i = 0; i < m->narms; i++) {
        AstArm *ast = &e->arms.data[i];
        size_t mark = scope_mark(I);
        m->arms[i].pattern = infer_pattern(I, ast->pattern, a->type, a);
        if (ast->guard)
            m->arms[i].guard = infer_guard(I, ast->guard);
        m->arms[i].body = infer_arm(I, &join, ast->body, want);
        scope_restore(I, mark);
    }
    m->type = join.type ? join.type : solver_var(I->s, KIND_TYPE);
    infer_note(I, PENDING_MATCH, m);
    return m;
}

/* ---- references ------------------------------------------------------------------------------ */

/* Γ ⊢ e : T   ⟹   ref(e) : ref(T), and a reference is made */
static Expr *infer_ref(Infer *I, Ast *e, Type *want) {
    Type *w = want ? type_resolve(want) : NULL;
    Expr *a = infer_expr(I, e->a, w && w->tag == TY_REF ? w->elem : NULL);
    Type *elem = a->type;
    if (w && w->tag == TY_REF) {
        a = infer_flow(I, a, w->elem, place_of_words("the value of `ref`"), span_none());
        elem = w->elem;
    }
    Expr *r = expr_new(EXPR_REF, type_ref(elem), e->span);
    r->a = a;
    solver_effect_include(I->s, type_allocates(), I->effect);
    return r;
}

static Type *ref_elem(Infer *I, const Expr *r, const char *form) {
    Type *t = type_resolve(r->type);
    if (t->tag == TY_REF)
        return t->elem;
    Type *elem = solver_var(I->s, KIND_TYPE);
    if (t->tag == TY_ERROR)
        return type_error();
    if (!solver_unify(I->s, t, type_ref(elem))) {
        Diag *d = infer_error(I, DIAG_R0219, r->span, "%s needs a reference, found %s", form,
                              type_text(t));
        if (d)
            diag_set_label(d, "%s", type_text(t));
        return type_error();
    }
    solver_run(I->s);
    return elem;
}

static Expr *infer_ref_read(Infer *I, Ast *e) {
    Expr *a = infer_expr(I, e->a, NULL);
    Expr *r = expr_new(EXPR_READ, solver_open_unknowns(I->s, ref_elem(I, a, "`ref_read`")),
                       e->span);
    r->a = a;
    return r;
}

/* Γ ⊢ r : ref(T)   Γ ⊢ e : T   ⟹   r := e : () */
Expr *infer_ref_write(Infer *I, Ast *e) {
    Expr *w = expr_new(EXPR_WRITE, type_unit(), e->span);
    w->a = infer_expr(I, e->a, NULL);
    Type *elem = ref_elem(I, w->a, "`:=`");
    w->b = infer_check(I, e->b, elem, place_of_words("the value written"), w->a->span);
    return w;
}

static Expr *infer_grad_form(Infer *I, Ast *e) {
    Expr *g = expr_new(EXPR_GRAD, solver_var(I->s, KIND_TYPE), e->span);
    g->mode = GRAD_GRAD;
    g->a = infer_expr(I, e->a, NULL);
    Type **args = mem_new_n(Type *, 2);
    args[0] = g->a->type;
    args[1] = g->type;
    if (type_resolve(args[0])->tag == TY_ERROR)
        return infer_error_expr(e->span);
    infer_post(I, &rel_grad, args, 2, NULL, e->span, g, &g->a, 1);
    solver_run(I->s);
    return g;
}

/* ---- tuples, text, holes --------------------------------------------------------------------- */

static Expr *infer_tuple(Infer *I, Ast *e, Type *want) {
    uint32_t n = (uint32_t)e->args.len;
    Type *w = want ? type_resolve(want) : NULL;
    if (w && (w->tag != TY_TUPLE || w->nargs != n))
        w = NULL;
    Expr **args = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        args[i] = infer_expr(I, e->args.data[i], w ? w->args[i] : NULL);
    Expr *tuple = expr_tuple(args, n, e->span);
    tuple->own_cells = true;
    return tuple;
}

static Expr *infer_string(Ast *e) {
    Expr *s = expr_new(EXPR_STRING, type_string(), e->span);
    s->text = e->text;
    s->text_len = e->text_len;
    return s;
}

static Expr *infer_hole(Infer *I, Ast *e, Type *want) {
    Expr *h = expr_new(EXPR_ERROR, want ? want : solver_var(I->s, KIND_TYPE), e->span);
    infer_note(I, PENDING_HOLE, h)->hole = e;
    /* A name bound to a hole is not generalised, because its uses tell its type. */
    solver_effect_include(I->s, type_allocates(), I->effect);
    return h;
}

/* Whether the expression uses a definition whose type is still open. */
static bool uses_open_type(const Infer *I) {
    const void *key;
    void *value;
    for (size_t i = 0; I->used && map_next(I->used, &i, &key, &value);) {
        const Global *g = value;
        bool own = false;
        for (uint32_t k = 0; k < I->checked.n && I->checked.globals; k++)
            own |= I->checked.globals[k] == g;
        if (!own && g->scheme && !g->scheme->nparams && type_has_vars(g->scheme->type))
            return true;
    }
    return false;
}

/* What inference knows of a hole. It is copied, because the item is forgotten when the next one begins. */
static Hole hole_of(Infer *I, const Pending *p) {
    Hole h = {.note = *p, .uses_open = uses_open_type(I), .position = I->position};
    uint32_t n = h.checked.n = I->checked.n;
    Item **items = mem_new_n(Item *, n);
    for (uint32_t i = 0; i < n; i++)
        items[i] = I->checked.items[i];
    h.checked.items = items;
    if (I->checked.globals) {
        Global **globals = mem_new_n(Global *, n);
        h.globals = mem_new_n(Global, n);
        for (uint32_t i = 0; i < n; i++) {
            globals[i] = I->checked.globals[i];
            h.globals[i] = *globals[i];
        }
        h.checked.globals = globals;
    }
    for (size_t i = 0; i < I->all.len; i++)
        vec_push(&h.locals, I->all.data[i]);
    Type *want = type_resolve(p->expr->type);
    bool anything = want->tag == TY_VAR && !want->var.nwatchers;
    h.want = type_text_with(&h.namer, want);
    h.diag = diag_new(DIAG_R0110, p->expr->span,
                      anything ? "a hole that may be anything" : "a hole of type %s", h.want);
    return h;
}

bool settle_holes(Infer *I) {
    size_t first = I->holes.len;
    Map seen = {0}; /* the holes met so far: an argument may be inferred twice */
    for (size_t i = 0; i < I->pending.len && !I->trial; i++) {
        const Pending *p = &I->pending.data[i];
        if (p->kind != PENDING_HOLE || map_has(&seen, p->hole))
            continue;
        map_set(&seen, p->hole, p->hole);
        vec_push(&I->holes, hole_of(I, p));
    }
    if (I->holes.len == first)
        return false;
    /* Other messages about an item with holes are dropped, since the program is not complete. */
    size_t kept = I->item_diags;
    for (size_t i = kept; i < I->diags->list.len; i++) {
        Diag *d = I->diags->list.data[i];
        if (d->code == DIAG_R0905)
            I->diags->warnings--;
        else
            I->diags->list.data[kept++] = d;
    }
    I->diags->list.len = kept;
    for (size_t i = first; i < I->holes.len; i++) {
        Hole *h = &I->holes.data[i];
        h->alone = I->holes.len == first + 1;
        diag_report(I->diags, h->diag);
    }
    return true;
}

/* Chains (`x.a.a.a`, `f(1)(1)`) have no bound of their own: what is left of the stack bounds them,
 * with three eighths kept for the walks that come after. */

Expr *infer_expr(Infer *I, Ast *e, Type *want) {
    if (mem_stack_left() < mem_stack_share(CHECK_STACK) / 8 * 3) {
        Diag *d = infer_error(I, DIAG_R0009, e->span, "nested too deeply");
        char words[MEM_LIMIT_WORDS];
        if (d && mem_limit_words(words))
            diag_add_fact(d, "%s", words);
        return infer_error_expr(e->span);
    }
    if (solver_is_spent(I->s))
        return infer_error_expr(e->span);
    switch (e->kind) {
    case AST_INT:
    case AST_FLOAT: return infer_literal(I, e, false);
    case AST_BOOL: return expr_bool(e->i != 0, e->span);
    case AST_STRING: return infer_string(e);
    case AST_NAME:
    case AST_GRAPH_VAR: return infer_name(I, e, NULL, 0, want);
    case AST_HOLE: return infer_hole(I, e, want);
    case AST_CALL: return infer_call(I, e, want);
    case AST_INSTANTIATE: return infer_instantiate_form(I, e);
    case AST_FN: return infer_fn(I, e, NULL, want);
    case AST_LET:
    case AST_GRAPH_LET:
    case AST_FREE_VAR:
    case AST_SEQ: return infer_chain(I, e, want);
    case AST_IF: return infer_if(I, e, want);
    case AST_MATCH: return infer_match(I, e, want);
    case AST_TUPLE: return infer_tuple(I, e, want);
    case AST_PROJ: return infer_proj(I, e);
    case AST_FIELD: return infer_field(I, e);
    case AST_RECORD: return infer_record(I, e, want);
    case AST_WITH: return infer_with(I, e, want);
    case AST_WITH_AT: return infer_with_at(I, e);
    case AST_TENSOR: return infer_tensor(I, e, want);
    case AST_LIST: return infer_list(I, e, want);
    case AST_INDEX: return infer_index(I, e);
    case AST_UNARY: return infer_unary(I, e, want);
    case AST_BINARY: return infer_binary(I, e, want);
    case AST_CAST: return infer_cast(I, e);
    case AST_ZERO: return infer_zero(I, e);
    case AST_REF: return infer_ref(I, e, want);
    case AST_REF_READ: return infer_ref_read(I, e);
    case AST_GRAD: return infer_grad_form(I, e);
    case AST_META: return infer_meta(I, e);
    case AST_ERROR: break;
    }
    return infer_error_expr(e->span);
}
