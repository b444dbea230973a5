/* SPDX-License-Identifier: Apache-2.0 */
/* Items: groups of definitions, lets, expressions, operators, derivative rules.
 *
 * Note [Groups]. The definitions of a strongly connected group are checked together: each name has
 * one type, without parameters, until all bodies are done; then they are generalised as one tuple,
 * and each gets the part of that scheme which its type reaches. All signatures are read before the first body, which
 * so meets the others' types as they are written. */
#include <string.h>

#include "types/infer/state.h"

static void keep_uses(Infer *I, Global *g) {
    vec_clear(&g->uses);
    const void *key;
    void *value;
    for (size_t i = 0; map_next(I->used, &i, &key, &value);)
        vec_push(&g->uses, (Global *)value);
}

static void begin(Infer *I, Global *g) {
    infer_begin_item(I);
    I->current = g;
    I->used = mem_new(Map);
}

static void begin_alone(Infer *I, Item *item, Global *g) {
    Item **items = mem_new_n(Item *, 1);
    Global **globals = mem_new_n(Global *, 1);
    items[0] = item;
    globals[0] = g;
    begin(I, g);
    I->checked = (Checked){items, g ? globals : NULL, 1};
}

/* ---- groups ---------------------------------------------------------------------------------- */

static bool relation_touches(const Relation *r, const Map *reached) {
    Map seen = {0};
    TypeVec own = {0};
    for (uint32_t i = 0; i < r->nargs; i++)
        type_collect(r->args[i], TY_PARAM, &seen, &own);
    for (size_t i = 0; i < own.len; i++) {
        if (map_has(reached, own.data[i]))
            return true;
    }
    return false;
}

/* The part of a group's scheme that the type `t` reaches. */
static Scheme *scheme_part(const Scheme *whole, Type *t, uint32_t mark) {
    Map reached = {0};
    TypeVec params = {0};
    type_collect(t, TY_PARAM, &reached, &params);
    Scheme *s = mem_new(Scheme);
    *s = *whole;
    s->type = type_resolve(t);
    scheme_note_unknowns(s, mark);
    s->relations = mem_new_n(Relation *, whole->nrelations + 1);
    s->nrelations = 0;
    bool *in = mem_new_n(bool, whole->nrelations + 1);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < whole->nrelations; i++) {
            if (in[i] || !relation_touches(whole->relations[i], &reached))
                continue;
            in[i] = more = true;
            Relation *r = whole->relations[i];
            for (uint32_t k = 0; k < r->nargs; k++)
                type_collect(r->args[k], TY_PARAM, &reached, &params);
        }
    }
    for (uint32_t i = 0; i < whole->nrelations; i++) {
        if (in[i])
            s->relations[s->nrelations++] = whole->relations[i];
    }
    scheme_restrict_early(s, &reached);
    s->includes = mem_new_n(Type *, 2 * whole->nincludes + 1);
    s->nincludes = 0;
    for (uint32_t i = 0; i < whole->nincludes; i++) {
        Type *sub = whole->includes[2 * i], *sup = whole->includes[2 * i + 1];
        Map seen = {0};
        TypeVec own = {0};
        type_collect(sub, TY_PARAM, &seen, &own);
        type_collect(sup, TY_PARAM, &seen, &own);
        bool all = true;
        for (size_t k = 0; k < own.len; k++)
            all &= map_has(&reached, own.data[k]);
        if (!all)
            continue;
        s->includes[2 * s->nincludes] = sub;
        s->includes[2 * s->nincludes + 1] = sup;
        s->nincludes++;
    }
    s->params = mem_new_n(Type *, whole->nparams + 1);
    s->nparams = s->ndeclared = 0;
    for (uint32_t i = 0; i < whole->nparams; i++) {
        if (map_has(&reached, whole->params[i]))
            s->params[s->nparams++] = whole->params[i];
    }
    s->joins = scheme_joins(s);
    s->weak = mem_new_n(Type *, whole->nweak + 1);
    s->nweak = 0;
    for (uint32_t i = 0; i < whole->nweak; i++) {
        if (map_has(&reached, whole->weak[i]))
            s->weak[s->nweak++] = whole->weak[i];
    }
    return s;
}

static bool infer_one(Infer *I, Item *item, Global *g) {
    begin_alone(I, item, g);
    scope_hide_ctor(I, &item->name);
    solver_enter(I->s);
    FnHead head = {0};
    fn_begin(I, item->fn, &head);
    head.global = g;
    if (!ast_fn_is_annotated(item->fn))
        g->scheme = scheme_mono(head.type);
    if (I->has_graph && item->fn->body)
        infer_graph_plan(I, item->fn->body);
    Expr *value = fn_body(I, &head, g->name, item->span);
    Scheme *scheme = NULL;
    if (infer_failed(I)) {
        infer_widen_sizes(I, item->fn, head.type);
        fn_drop(I, &head);
    } else {
        scheme = fn_end(I, &head, head.type, g->name);
        infer_widen_parts(I, item->fn, scheme, head.recursive);
        if (head.recursive)
            infer_widen_result(I, item->fn, scheme->type);
    }
    solver_leave(I->s);
    bool ok = infer_finish_item(I);
    g->scheme = ok ? scheme : NULL;
    g->value = value;
    keep_uses(I, g);
    return ok;
}

/* Definitions that mention one another. */
typedef struct Group {
    Item *const *items;
    Global *const *globals;
    uint32_t n;
} Group;

static bool infer_group(Infer *I, void *group) {
    const Group *of = group;
    Item *const *items = of->items;
    Global *const *globals = of->globals;
    uint32_t n = of->n;
    if (n == 1)
        return infer_one(I, items[0], globals[0]);
    begin(I, NULL);
    I->checked = (Checked){items, globals, n};
    uint32_t mark = type_next_id();
    solver_enter(I->s);
    Type **types = mem_new_n(Type *, n);
    FnHead *heads = mem_new_n(FnHead, n);
    VEC(Type *) declared = {0};
    bool has_where = false;
    size_t facts = solver_count_facts(I->s); /* the facts of all members belong to the one scheme */
    for (uint32_t i = 0; i < n; i++)
        heads[i].result = solver_var(I->s, KIND_TYPE);
    uint32_t params = type_next_id();
    for (uint32_t i = 0; i < n; i++) {
        I->current = globals[i];
        fn_begin(I, items[i]->fn, &heads[i]);
        fn_close(I, &heads[i]);
        types[i] = heads[i].type;
        globals[i]->scheme = scheme_mono(types[i]);
    }
    uint32_t bodies = type_next_id();
    Map *used = I->used;
    for (uint32_t i = 0; i < n; i++) {
        I->used = mem_new(Map);
        I->current = globals[i];
        scope_hide_ctor(I, &items[i]->name);
        if (I->has_graph && items[i]->fn->body)
            infer_graph_plan(I, items[i]->fn->body);
        FnHead *head = &heads[i];
        fn_reopen(I, head);
        head->recursive = true;
        head->params = params;
        head->mark = bodies;
        globals[i]->value = fn_body(I, head, globals[i]->name, items[i]->span);
        for (size_t k = 0; k < head->declared.len; k++) {
            if (head->declared.data[k]->type)
                vec_push(&declared, type_param_rigid(I, head->declared.data[k]));
        }
        has_where |= items[i]->fn->has_where;
        fn_close(I, head);
        keep_uses(I, globals[i]);
    }
    I->used = used;
    I->current = NULL;
    solver_run(I->s);
    infer_fall_back(I);
    Scheme *whole = NULL;
    for (uint32_t i = 0; i < n; i++)
        types[i] = solver_open_parameters(I->s, types[i]);
    if (!infer_failed(I)) {
        Type *all = type_tuple(types, n);
        whole = declared.len ? scheme_generalise_declared(I->s, all, declared.data,
                                                          (uint32_t)declared.len, has_where)
                             : scheme_generalise(I->s, all, false);
    }
    solver_forget_facts(I->s, facts);
    if (whole && whole->nrelations)
        vec_push(&I->schemes, whole);
    for (uint32_t i = 0; whole && i < n; i++)
        scheme_name_inside(whole, items[i]->span, globals[i]->name);
    solver_leave(I->s);
    for (uint32_t i = 0; i < n && whole; i++) {
        globals[i]->scheme = scheme_part(whole, types[i], mark);
        globals[i]->scheme->name = globals[i]->name;
        infer_widen_parts(I, items[i]->fn, globals[i]->scheme, true);
        infer_widen_result(I, items[i]->fn, globals[i]->scheme->type);
        fn_has_many_unknowns(I, globals[i]->scheme, globals[i]->name, globals[i]->span);
    }
    bool ok = infer_finish_item(I) && whole;
    for (uint32_t i = 0; i < n && !ok; i++)
        globals[i]->scheme = NULL;
    return ok;
}

bool infer_defs(Infer *I, Item *const *items, Global *const *globals, uint32_t n) {
    I->env->counts.definitions += n;
    return infer_widening(I, infer_group, &(Group){items, globals, n});
}

/* Binds a definition at its annotated type before its body is checked. Its effect is not known yet. */
void infer_announce_def(Infer *I, Item *item, Global *g) {
    Type *effect = solver_var(I->s, KIND_EFFECT);
    solver_enter(I->s);
    FnHead head = {0};
    fn_begin(I, item->fn, &head);
    solver_unify(I->s, effect, head.type->fn.effect);
    g->scheme = fn_end(I, &head, head.type, g->name);
    solver_leave(I->s);
}

/* ---- let, expressions ------------------------------------------------------------------------ */

/* Whether the value that a pattern takes apart has failed: that was said of it once. */
static bool whole_failed(Infer *I, const Item *item) {
    const Ast *whole = item->derived ? item->value->a : NULL;
    FileName *f = whole ? file_name_at(I, whole->name.sym, I->position, false) : NULL;
    return f && f->global && !f->global->scheme;
}

typedef struct LetItem {
    Item *item;
    Global *global;
} LetItem;

static bool infer_let_once(Infer *I, void *let) {
    Item *item = ((LetItem *)let)->item;
    Global *g = ((LetItem *)let)->global;
    if (whole_failed(I, item)) {
        g->scheme = NULL;
        return false;
    }
    begin_alone(I, item, g);
    scope_hide_ctor(I, &item->name);
    if (item->kind == ITEM_FREE_VAR) {
        Type *t = item->type ? infer_ast_type(I, item->type, KIND_TYPE)
                             : solver_var(I->s, KIND_TYPE);
        g->scheme = scheme_mono(t);
        return infer_finish_item(I);
    }
    if (I->has_graph)
        infer_graph_plan(I, item->value);
    Name name = item->name;
    name.sym = g->name;
    Var *var = var_new(g->name, type_error(), g->span);
    LetValue v = infer_let_value(I, &name, item->type, item->pattern, item->value, var, g);
    bool ok = infer_finish_item(I);
    g->scheme = ok ? v.scheme : NULL;
    g->value = v.value;
    if (ok && expr_is_integer(v.value)) {
        infer_note_constant(v.value, &g->size);
        if (!g->size)
            g->size = type_any_value(g->name, var->id, NULL);
    }
    keep_uses(I, g);
    return ok;
}

bool infer_let_item(Infer *I, Item *item, Global *g) {
    return infer_widening(I, infer_let_once, &(LetItem){item, g});
}

typedef struct ExprItem {
    Item *item;
    CoreItem *out;
} ExprItem;

static bool infer_expr_once(Infer *I, void *expr) {
    Item *item = ((ExprItem *)expr)->item;
    CoreItem *out = ((ExprItem *)expr)->out;
    begin_alone(I, item, NULL);
    *out = (CoreItem){.kind = CORE_EXPR, .item = item, .shown = item->shown};
    if (I->has_graph)
        infer_graph_plan(I, item->value);
    solver_enter(I->s);
    Type *effect = I->effect = solver_var(I->s, KIND_EFFECT);
    out->expr = infer_root(I, item->value, NULL);
    solver_run(I->s);
    if (item->value->kind != AST_FN) {
        infer_fall_back(I);
        solver_default_weak(I->s);
        if (type_resolve(out->expr->type)->tag != TY_FN)
            infer_default_typed(I, 0);
    }
    if (!infer_failed(I))
        out->scheme = infer_generalise(I, out->expr->type, solver_effect_allocates(I->s, effect));
    solver_leave(I->s);
    if (!item->shown && !infer_failed(I))
        infer_note(I, PENDING_DISCARD, out->expr);
    return infer_finish_item(I);
}

bool infer_expr_item(Infer *I, Item *item, CoreItem *out) {
    return infer_widening(I, infer_expr_once, &(ExprItem){item, out});
}

/* ---- operators ------------------------------------------------------------------------------- */

/* The type of a foreign operator at one call. Its named sizes are found from the arguments, and an unknown size of
 * the result is the call's own. */
static Type *foreign_instance(Solver *s, Type *t) {
    Map named = {0}, unknown = {0};
    TypeVec from = {0}, to = {0};
    for (uint32_t i = 0; i < t->nargs; i++) {
        type_collect(t->args[i], TY_PARAM, &named, &from);
        type_collect(t->args[i], TY_ANY, &unknown, &from);
    }
    for (size_t i = 0; i < from.len; i++)
        vec_push(&to, solver_var(s, from.data[i]->kind));
    type_collect(t->fn.result, TY_PARAM, &named, &from);
    type_collect(t->fn.result, TY_ANY, &unknown, &from);
    for (size_t i = to.len; i < from.len; i++)
        vec_push(&to, type_any(from.data[i]->kind, from.data[i]->origin));
    return from.len ? type_substitute(t, from.data, to.data, (uint32_t)from.len) : t;
}

/* The relation of a foreign operator says what its type says. */
static RelStatus relate_foreign(Solver *s, Relation *r) {
    Type *t = foreign_instance(s, r->op->foreign->type);
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        if (!rel_unify(s, r, (int)i, t->args[i]))
            return REL_FAIL;
    }
    return rel_unify(s, r, -1, t->fn.result) ? REL_DONE : REL_FAIL;
}

static const RelDef rel_foreign = {.name = "Foreign", .relate = relate_foreign, .nargs = -1};

static bool is_closed(Type *t) {
    DType dtype;
    t = type_resolve(t);
    return t->tag == TY_TENSOR && type_get_dtype(t, &dtype) && !type_has_vars(t);
}

static bool foreign_item(Infer *I, Item *item, CoreItem *out) {
    I->in_decl = true;
    Type *t = type_resolve(infer_ast_type(I, item->type, KIND_TYPE));
    I->in_decl = false;
    if (infer_failed(I))
        return false;
    bool ok = t->tag == TY_FN && is_closed(t->fn.result);
    for (uint32_t i = 0; ok && i < t->nargs; i++)
        ok = is_closed(t->args[i]);
    if (!ok) {
        infer_error(I, DIAG_R0118, item->type->span,
                    "a foreign operator is a function of scalars and tensors, found %s",
                    type_text(t));
        return false;
    }
    Op *op = mem_new(Op);
    op->name = item->name.sym->text;
    op->nargs = (int)t->nargs;
    Str args = {0};
    for (uint32_t i = 0; i < t->nargs; i++)
        str_printf(&args, "%sx%u", i ? ", " : "", i);
    op->args = str_text(&args);
    op->relation = &rel_foreign;
    op->dtypes = DTS_ALL;
    op->shape_mode = SHAPE_OF_DATA;
    op->pattern = OP_OPAQUE;
    op->doc = item->doc ? item->doc : "a foreign operator";
    op->reference_only = "foreign";
    op->foreign = mem_new(Foreign);
    op->foreign->library = item->path;
    op->foreign->symbol = item->symbol;
    op->foreign->type = t;
    op->foreign->span = item->span;
    env_bind_op(I->env, op);
    out->kind = CORE_OPERATOR;
    out->op = op;
    return true;
}

bool infer_operator_item(Infer *I, Item *item, CoreItem *out) {
    Global *g = out->global;
    begin(I, g);
    if (!g) {
        bool ok = foreign_item(I, item, out);
        FileName *f = ok ? NULL : map_find(&I->names, item->name.sym);
        if (f && f->item == item)
            f->global = infer_make_global(I, item); /* of no type: its uses say nothing more */
        return ok;
    }
    g->scheme = infer_ast_scheme(I, item->type);
    g->symbol = item->symbol;
    Type *t = type_resolve(g->scheme->type);
    if (t->tag == TY_FN && builtin_reads_file(g->symbol)) {
        Type *fn = type_fn(t->args, t->nargs, t->fn.result, type_allocates());
        g->scheme->type = fn;
    }
    g->scheme->name = g->name;
    out->kind = CORE_DEF;
    return infer_finish_item(I);
}

/* ---- derivative rules ------------------------------------------------------------------------ */

/* A rule `derivative op(a, b; out, ct) { … }` as a function of the arguments, the result and the cotangent. Its
 * relations may stay open, because they depend on the attributes of the call for which it is expanded. */
static Expr *rule_fn(Infer *I, Item *item, const Op *op) {
    uint32_t n = (uint32_t)(item->fn->params.len + item->extra.len);
    Var **params = mem_new_n(Var *, n + 1);
    Type **types = mem_new_n(Type *, n + 1);
    size_t mark = scope_mark(I);
    size_t nargs = item->fn->params.len;
    for (uint32_t i = 0; i < n; i++) {
        const Name *name = i < nargs ? &item->fn->params.data[i].name
                                     : &item->extra.data[i - nargs];
        bool tuple = (i == 0 && op_arg(op, 0).tuple) || (i >= nargs && (op->tuple || op->by_attr));
        types[i] = tuple ? solver_var(I->s, KIND_TYPE) : solver_tensor_var(I->s);
        /* a cotangent has the type of the result, a tangent that of its argument */
        if (i > nargs)
            types[i] = item->kind == ITEM_DERIVATIVE ? types[nargs] : types[i - nargs - 1];
        params[i] = var_new(name->sym, types[i], name->span);
        scope_bind(I, name->sym, name->sigil != SIGIL_NONE, params[i]);
    }
    FnCtx *ctx = mem_new(FnCtx);
    *ctx = (FnCtx){NULL, params, n, item->name.sym};
    I->fn = ctx;
    Expr *body = infer_expr(I, item->fn->body, NULL);
    I->fn = NULL;
    scope_restore(I, mark);
    solver_run(I->s);
    Type *result = type_resolve(body->type);
    bool one = nargs == 1 || item->kind == ITEM_TANGENT;
    if (!one && !infer_failed(I) && (result->tag != TY_TUPLE || result->nargs != nargs)) {
        infer_error(I, DIAG_R0116, body->span,
                    "the derivative of `%s` gives a tuple of %zu cotangents, one an argument",
                    op->name, nargs);
    }
    Type *type = type_fn(types, n, body->type, I->effect);
    Expr *fn = expr_fn(params, n, body, type, item->span);
    fn->fn->name = item->name.sym;
    return fn;
}

bool infer_rule_item(Infer *I, Item *item) {
    begin(I, NULL);
    const Op *op = env_find_op(I->env, item->name.sym);
    if (!op) {
        Diag *d = infer_error(I, DIAG_R0116, item->name.span, "there is no operator `%s`",
                              item->name.sym->text);
        if (d)
            d->missing = item->name.sym;
        const Symbol *near = d ? env_suggest(I->env, item->name.sym, false) : NULL;
        if (near && op_find(near))
            diag_set_guess(d, near);
        return false;
    }
    Rule *rule = mem_new(Rule);
    rule->op = op;
    rule->span = item->span;
    rule->kind = item->kind == ITEM_DERIVATIVE ? RULE_DERIVATIVE
                 : item->kind == ITEM_TANGENT  ? RULE_TANGENT
                                               : RULE_NONE;
    vec_push(&I->rules, rule);
    if (rule->kind == RULE_NONE)
        return true;
    size_t extra = rule->kind == RULE_DERIVATIVE ? 2 : 1 + item->fn->params.len;
    if (item->fn->params.len != (size_t)op->nargs || item->extra.len != extra) {
        Diag *d = infer_error(I, DIAG_R0116, item->name.span,
                              "this rule does not fit `%s`, whose arguments are (%s)", op->name,
                              op->args ? op->args : "");
        if (d && rule->kind == RULE_DERIVATIVE)
            diag_add_fact(d, "after them come, behind `;`, the result and its cotangent");
        if (d && rule->kind == RULE_TANGENT)
            diag_add_fact(d, "after them come, behind `;`, the result and a tangent for each");
        return false;
    }
    I->rule_op = op;
    solver_enter(I->s);
    rule->fn = rule_fn(I, item, op);
    if (!infer_failed(I))
        infer_generalise(I, rule->fn->type, false);
    solver_leave(I->s);
    return infer_finish_item(I);
}
