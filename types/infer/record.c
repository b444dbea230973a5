/* SPDX-License-Identifier: Apache-2.0 */
/* Records: literals, fields, `with`; lists. */
#include <string.h>

#include "types/infer/state.h"

static bool is_error(const Expr *e) { return type_resolve(e->type)->tag == TY_ERROR; }

static int field_index(const Ctor *c, const Symbol *name) {
    for (uint32_t i = 0; c->field_names && i < c->nfields; i++) {
        if (c->field_names[i] == name)
            return (int)i;
    }
    return -1;
}

/* The names of a variable's own dims. They are opened once, because its value does not change (LANGUAGE §2). */
Type **infer_opened(Infer *I, const Expr *value, const Ctor *ctor) {
    uint32_t n = ctor->decl->nexists;
    if (!n)
        return NULL;
    Type **own = NULL;
    Local *l = NULL;
    if (value && value->kind == EXPR_VAR) {
        l = map_find(&I->locals, value->var->name);
        while (l && l->var != value->var)
            l = l->shadowed;
        if (l && l->opened)
            own = map_find(l->opened, ctor->decl);
    }
    if (own)
        return own;
    own = mem_new_n(Type *, n);
    for (uint32_t i = 0; i < n; i++)
        own[i] = ctor_open_own(I, ctor->decl->exists[i]);
    if (l) {
        if (!l->opened)
            l->opened = mem_new(Map);
        map_set(l->opened, ctor->decl, own);
    }
    return own;
}

/* Γ ⊢ e : C[…] with a field w : T   ⟹   e.w : T */
Expr *infer_field(Infer *I, Ast *e) {
    Name name;
    if (callee_name(I, e, &name)) { /* a member of a module, `nn.dense` */
        Resolved r = scope_resolve(I, &name);
        if (r.kind != NAME_NONE) {
            Ast as = *e;
            as.kind = AST_NAME;
            as.name = name;
            return infer_name(I, &as, NULL, 0, NULL);
        }
    }
    Expr *a = infer_expr(I, e->a, NULL);
    if (is_error(a))
        return infer_error_expr(e->span);
    Expr *f = expr_new(EXPR_FIELD, NULL, e->span);
    f->a = a;
    f->field = e->field;
    f->index = -1;
    Type *t = type_resolve(a->type);
    if (t->tag == TY_DATA && t->decl->nctors == 1) {
        const Ctor *c = t->decl->ctors[0];
        int i = field_index(c, e->field);
        if (i >= 0) {
            CtorInstance inst = ctor_instantiate(I, c, t->args, OPEN_UNKNOWN,
                                                 infer_opened(I, a, c));
            f->index = i;
            f->type = inst.fields[i];
            return f;
        }
    }
    f->type = solver_var(I->s, KIND_TYPE);
    Relation *r = solver_post_field(I->s, a->type, e->field, f->type, e->span);
    Span *spans = mem_new(Span);
    *spans = a->span;
    r->arg_spans = spans;
    r->expr = f;
    r->read_var = f->a->kind == EXPR_VAR ? f->a->var : NULL;
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    infer_note(I, PENDING_FIELD, f);
    return f;
}

static void add_field_names(Infer *I, Diag *d, const Ctor *c, const Symbol *near_to) {
    d->missing = near_to;
    const Symbol *near = sym_find_nearest(near_to, c->field_names, c->nfields, &I->env->budget);
    if (near) {
        diag_set_guess(d, near);
        return;
    }
    Str all = {0};
    for (uint32_t i = 0; i < c->nfields; i++)
        str_printf(&all, "%s`%s`", i ? ", " : "", c->field_names[i]->text);
    diag_add_fact(d, "its fields are %s", str_text(&all));
}

static TypePlace field_place(const Ctor *ctor, const Symbol *field) {
    return (TypePlace){.kind = PLACE_FIELD, .name = field->text, .of = ctor->name->text};
}

/* Layer { w: e, b: e }: fields in any order, evaluated as written. */
Expr *infer_record(Infer *I, Ast *e, Type *want) {
    const Ctor *ctor = scope_find_ctor(I, e->name.sym);
    if (!ctor) {
        Diag *d = infer_error(I, DIAG_R0113, e->name.span, "there is no constructor `%s`",
                              e->name.sym->text);
        if (d)
            d->missing = e->name.sym;
        const Symbol *near = d ? env_suggest(I->env, e->name.sym, false) : NULL;
        if (near)
            diag_set_guess(d, near);
        return infer_error_expr(e->span);
    }
    if (!ctor->field_names) {
        infer_error(I, DIAG_R0213, e->span, "constructor `%s` has no named fields",
                    ctor->name->text);
        return infer_error_expr(e->span);
    }
    ctor = ctor_of_type(ctor, want);
    CtorInstance inst = ctor_instantiate(I, ctor, NULL, OPEN_FLEXIBLE, NULL);
    uint32_t n = (uint32_t)e->fields.len;
    Expr **args = mem_new_n(Expr *, ctor->nfields + 1);
    LetStack lets = {0};
    bool in_order = n == ctor->nfields;
    size_t *flows = mem_new_n(size_t, ctor->nfields + 1);
    for (uint32_t i = 0; i < n && in_order; i++)
        in_order = e->fields.data[i].sym == ctor->field_names[i];
    for (uint32_t i = 0; i < n; i++) {
        const Name *f = &e->fields.data[i];
        int k = field_index(ctor, f->sym);
        if (k < 0) {
            Diag *d = infer_error(I, DIAG_R0213, f->span, "`%s` has no field `%s`",
                                  ctor->name->text, f->sym->text);
            if (d)
                add_field_names(I, d, ctor, f->sym);
            return infer_error_expr(e->span);
        }
        Expr *x = infer_check(I, e->args.data[i], inst.fields[k], field_place(ctor, f->sym),
                              span_none());
        flows[k] = infer_last_flow(I, x);
        args[k] = in_order ? x : let_stack_add(&lets, x, f->sym->text);
    }
    for (uint32_t k = 0; k < ctor->nfields; k++) {
        if (args[k])
            continue;
        Diag *d = infer_error(I, DIAG_R0213, e->span, "`%s` is not given its field `%s`",
                              ctor->name->text, ctor->field_names[k]->text);
        if (d)
            d->missing = ctor->field_names[k];
        return infer_error_expr(e->span);
    }
    Expr *callee = expr_new(EXPR_CTOR, inst.data, e->name.span);
    callee->ctor = ctor_of_values(ctor);
    if (ctor->nfields == 0)
        return callee;
    callee->type = type_fn(inst.fields, ctor->nfields, inst.data, type_pure());
    Expr *call = expr_call(callee, args, ctor->nfields, NULL, inst.data, e->span);
    call->own_cells = true;
    infer_tie_flows(I, call, flows);
    return let_stack_wrap(&lets, call);
}

/* Every value of the type has all these fields. */
static bool has_fields(const TypeDecl *decl, const Symbol *const *fields, uint32_t n) {
    for (uint32_t c = 0; c < decl->nctors; c++) {
        for (uint32_t f = 0; f < n; f++) {
            if (field_index(decl->ctors[c], fields[f]) < 0)
                return false;
        }
    }
    return decl->nctors > 0;
}

/* The one type in sight that has all these fields. */
static TypeDecl *find_by_fields(void *ctx, const Symbol *const *fields, uint32_t n) {
    const Infer *I = ctx;
    TypeDecl *found = NULL;
    const Namespace *spaces[] = {I->env->here, I->env->prelude};
    for (int k = 0; k < 2; k++) {
        const void *key;
        void *value;
        for (size_t i = 0; map_next(&spaces[k]->types, &i, &key, &value);) {
            TypeDecl *decl = value;
            if (decl->superseded || decl == found || !has_fields(decl, fields, n))
                continue;
            if (found)
                return NULL;
            found = decl;
        }
    }
    return found;
}

void infer_know_records(Infer *I) { solver_set_records(I->s, find_by_fields, I); }

/* { r with w = e } where sizes among the fields are known only when running: the record is built anew,
 * so that what the fields left as they are and the new ones must agree in is checked as in a record. */
static Expr *build_anew(Infer *I, Ast *e, Expr *base, const Ctor *ctor, const CtorInstance *old,
                        const CtorInstance *now, const int *index) {
    LetStack lets = {0};
    Expr *record = let_stack_add(&lets, base, "record");
    Expr **args = mem_new_n(Expr *, ctor->nfields + 1);
    size_t *flows = mem_new_n(size_t, ctor->nfields + 1);
    for (uint32_t i = 0; i < e->fields.len; i++) {
        const Symbol *f = e->fields.data[i].sym;
        Expr *x = infer_check(I, e->args.data[i], now->fields[index[i]], field_place(ctor, f),
                              span_none());
        flows[index[i]] = infer_last_flow(I, x);
        args[index[i]] = let_stack_add(&lets, x, f->text);
    }
    for (uint32_t k = 0; k < ctor->nfields; k++) {
        if (args[k])
            continue;
        Expr *kept = expr_new(EXPR_FIELD, old->fields[k], base->span);
        kept->a = record;
        kept->field = ctor->field_names[k];
        kept->index = (int32_t)k;
        args[k] = infer_flow(I, kept, now->fields[k],
                             (TypePlace){.kind = PLACE_KEPT_FIELD,
                                         .name = kept->field->text,
                                         .of = ctor->name->text},
                             span_none());
        flows[k] = infer_last_flow(I, args[k]);
    }
    Expr *callee = expr_new(EXPR_CTOR, type_fn(now->fields, ctor->nfields, now->data, type_pure()),
                            e->span);
    callee->ctor = ctor_of_values(ctor);
    Expr *call = expr_call(callee, args, ctor->nfields, NULL, now->data, e->span);
    call->own_cells = true;
    infer_tie_flows(I, call, flows);
    return let_stack_wrap(&lets, call);
}

/* { r with w = e }: r first. The fields left as they are keep their types; the equations among the
 * fields hold again. */
Expr *infer_with(Infer *I, Ast *e, Type *want) {
    (void)want;
    Expr *base = infer_expr(I, e->a, NULL);
    if (is_error(base))
        return infer_error_expr(e->span);
    Type *t = type_resolve(base->type);
    if (t->tag == TY_VAR) {
        const Symbol **names = mem_new_n(const Symbol *, e->fields.len + 1);
        for (size_t i = 0; i < e->fields.len; i++)
            names[i] = e->fields.data[i].sym;
        const TypeDecl *decl = find_by_fields(I, names, (uint32_t)e->fields.len);
        const Ctor *c = decl && decl->nctors == 1 ? decl->ctors[0] : NULL;
        if (!c) {
            Diag *d = infer_error(I, DIAG_R0220, base->span,
                                  "the type of what `with` changes is not known here");
            if (d)
                diag_add_fact(d, "annotate it: several record types have these fields, or none");
            return infer_error_expr(e->span);
        }
        CtorInstance inst = ctor_instantiate(I, c, NULL, OPEN_UNKNOWN, NULL);
        solver_unify(I->s, t, inst.data);
        t = type_resolve(t);
    }
    if (t->tag != TY_DATA || t->decl->nctors != 1 || !t->decl->ctors[0]->field_names) {
        Diag *d = infer_error(I, DIAG_R0212, base->span, "`with` changes a record, found %s",
                              type_text(t));
        if (d)
            diag_set_label(d, "%s", type_text(t));
        return infer_error_expr(e->span);
    }
    const Ctor *ctor = t->decl->ctors[0];
    CtorInstance old = ctor_instantiate(I, ctor, t->args, OPEN_UNKNOWN,
                                        infer_opened(I, base, ctor));
    CtorInstance now = ctor_instantiate(I, ctor, NULL, OPEN_FLEXIBLE, NULL);
    uint32_t n = (uint32_t)e->fields.len;
    bool *changed = mem_new_n(bool, ctor->nfields + 1);
    int *index = mem_new_n(int, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        index[i] = field_index(ctor, e->fields.data[i].sym);
        if (index[i] < 0) {
            Diag *d = infer_error(I, DIAG_R0213, e->fields.data[i].span, "`%s` has no field `%s`",
                                  ctor->name->text, e->fields.data[i].sym->text);
            if (d)
                add_field_names(I, d, ctor, e->fields.data[i].sym);
            return infer_error_expr(e->span);
        }
        changed[index[i]] = true;
    }
    Expr *u;
    if (ctor->decl->nexists || (t->flags & TYPE_HAS_ANY)) {
        u = build_anew(I, e, base, ctor, &old, &now, index);
    } else {
        for (uint32_t k = 0; k < ctor->nfields; k++) {
            if (!changed[k])
                solver_unify(I->s, now.fields[k], old.fields[k]);
        }
        u = expr_new(EXPR_UPDATE, now.data, e->span);
        u->own_cells = true;
        u->a = base;
        u->nargs = n;
        u->args = mem_new_n(Expr *, n + 1);
        u->field_names = mem_new_n(const Symbol *, n + 1);
        for (uint32_t i = 0; i < n; i++) {
            const Symbol *f = e->fields.data[i].sym;
            u->field_names[i] = f;
            u->args[i] = infer_check(I, e->args.data[i], now.fields[index[i]], field_place(ctor, f),
                                     span_none());
        }
    }
    /* Parameters that no field fixes stay as they were. */
    for (uint32_t p = 0; p < t->nargs; p++) {
        Type *now_arg = type_resolve(now.data->args[p]);
        if (now_arg->tag == TY_VAR)
            solver_unify(I->s, now_arg, t->args[p]);
    }
    return u;
}

/* ---- lists ----------------------------------------------------------------------------------- */

typedef struct ListParts {
    const Ctor *cons, *nil;
} ListParts;

static bool find_list(Infer *I, ListParts *out, Span span) {
    out->cons = env_prelude_ctor(I->env, "Cons");
    out->nil = env_prelude_ctor(I->env, "Nil");
    if (out->cons && out->nil)
        return true;
    infer_error(I, DIAG_R0102, span, "lists need the prelude's type `List`, which is not loaded");
    return false;
}

static Expr *list_node(const ListParts *l, Expr *head, Expr *tail, Type *elem, Type *list,
                       Span span) {
    Type **fields = mem_new_n(Type *, 2);
    fields[0] = elem;
    fields[1] = list;
    Expr *callee = expr_new(EXPR_CTOR, type_fn(fields, 2, list, type_pure()), span);
    callee->ctor = (Ctor *)l->cons;
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = head;
    args[1] = tail;
    Expr *node = expr_call(callee, args, 2, NULL, list, span);
    node->own_cells = true;
    return node;
}

static Type *wanted_elem(const ListParts *l, Type *want) {
    Type *w = want ? type_resolve(want) : NULL;
    return w && w->tag == TY_DATA && w->decl == l->nil->decl ? w->args[0] : NULL;
}

/* The elements joined, then flowing into the joined type; list[…] and `::` differ in their end. */
static Type *join_elements(Infer *I, const ListParts *l, Ast *const *sources, uint32_t n,
                           Expr **out, Type *want) {
    Type *elem = wanted_elem(l, want);
    bool flows = elem && (type_resolve(elem)->flags & TYPE_HAS_ANY);
    Join join = {.noun = "the elements of this list", .code = DIAG_R0207, .elements = true};
    for (uint32_t i = 0; i < n; i++) {
        out[i] = infer_expr(I, sources[i], elem);
        if (flows) {
            out[i] = infer_flow(I, out[i], elem, place_of_words("an element of this list"),
                                span_none());
        } else {
            infer_join(I, &join, out[i]);
        }
    }
    if (flows)
        return elem;
    return join.type ? join.type : solver_var(I->s, KIND_TYPE);
}

Expr *infer_list(Infer *I, Ast *e, Type *want) {
    ListParts l;
    if (!find_list(I, &l, e->span))
        return infer_error_expr(e->span);
    uint32_t n = (uint32_t)e->args.len;
    Expr **items = mem_new_n(Expr *, n + 1);
    Type *elem = join_elements(I, &l, e->args.data, n, items, want);
    Type *list = type_data(l.nil->decl, &elem, 1);
    Expr *result = expr_new(EXPR_CTOR, list, e->span);
    result->ctor = (Ctor *)l.nil;
    LetStack lets = {0};
    for (uint32_t i = n; i-- > 0;)
        result = list_node(&l, items[i], result, elem, list, e->span);
    return let_stack_wrap(&lets, result);
}

/* a :: b :: rest, heads first. */
Expr *infer_cons_chain(Infer *I, Ast *e, Type *want) {
    ListParts l;
    if (!find_list(I, &l, e->span))
        return infer_error_expr(e->span);
    VEC(Ast *) heads = {0};
    VEC(Span) spans = {0};
    while (e->kind == AST_BINARY && e->op == BINOP_CONS) {
        vec_push(&heads, e->a);
        vec_push(&spans, e->span);
        e = e->b;
    }
    uint32_t n = (uint32_t)heads.len;
    Expr **items = mem_new_n(Expr *, n + 1);
    Type *elem = join_elements(I, &l, heads.data, n, items, want);
    Expr *result = infer_expr(I, e, want);
    Type *tail = type_resolve(result->type);
    Type *list = type_data(l.nil->decl, &elem, 1);
    if (tail->tag == TY_DATA && tail->decl == l.nil->decl) {
        Join join = {.noun = "the elements of this list", .code = DIAG_R0207, .elements = true};
        Expr head = *items[0], rest = *result;
        head.type = elem;
        rest.type = tail->args[0];
        infer_join(I, &join, &head);
        infer_join(I, &join, &rest);
        elem = join.type;
        list = type_data(l.nil->decl, &elem, 1);
    } else {
        result = infer_flow(I, result, list, place_of_words("the list after `::`"), span_none());
    }
    for (uint32_t i = n; i-- > 0;)
        result = list_node(&l, items[i], result, elem, list, spans.data[i]);
    return result;
}
