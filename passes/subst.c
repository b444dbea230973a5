/* SPDX-License-Identifier: Apache-2.0 */
/* Substitution under fresh binders.
 *
 *   of a: 2 in   let b = a + c; b * a   becomes   let b1 = 2 + c; b1 * 2
 *
 * Types stay as they are, or become those of a call (mono.h); nothing is simplified: that is for inline and dce. Every
 * bound variable gets a copy, so the result can stand inside the code it came from (the rule of `multiply` is expanded
 * inside the transform of a rule that multiplies) without capture. Shared nodes stay shared: a node is copied once.
 * let chains are walked in a loop. */
#include "passes/subst.h"

#include <string.h>

#include "types/op.h"

static Var *fresh_var(Subst *s, Var *v) {
    Var *copy = var_new(v->name, mono_type(s->mono, v->type), v->span);
    copy->scheme = v->scheme;
    map_set(&s->vars, v, expr_var(copy, v->span));
    return copy;
}

static Pattern *copy_pattern(Subst *s, Pattern *p) {
    Pattern *copy = mem_new(Pattern);
    *copy = *p;
    copy->type = mono_type(s->mono, p->type);
    if (p->kind == PAT_VAR)
        copy->var = fresh_var(s, p->var);
    if (p->nargs) {
        copy->args = mem_new_n(Pattern *, p->nargs);
        for (uint32_t i = 0; i < p->nargs; i++)
            copy->args[i] = copy_pattern(s, p->args[i]);
    }
    return copy;
}

/* The number of sizes in a value. */
static uint32_t count_sizes(const AttrValue *v) {
    uint32_t n = v->kind == ATTR_DIM;
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n; i++)
        n += count_sizes(&v->list.items[i]);
    return n;
}

typedef VEC(Expr *) SizeVec;

/* Adds the sizes of the call's attribute i. */
static void add_sizes_of(const Expr *call, int i, SizeVec *out) {
    uint32_t first = 0;
    for (int k = 0; k < i; k++)
        first += count_sizes(&call->attrs->values[k]);
    uint32_t n = count_sizes(&call->attrs->values[i]);
    for (uint32_t k = 0; k < n && first + k < call->nsizes; k++)
        vec_push(out, call->sizes[first + k]);
}

/* Adds the sizes of a value of a rule: those of the attributes of the call that it names. */
static void add_sizes(const Expr *call, const AttrValue *v, SizeVec *out) {
    if (v->kind == ATTR_REF)
        add_sizes_of(call, op_attr_index(call->attrs->op, v->ref->text), out);
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n; i++)
        add_sizes(call, &v->list.items[i], out);
}

/* Gives a call in a rule the attributes that it takes from the rule's call, with the sizes that are computed. */
static void take_attrs(const Expr *call, Expr *copy) {
    SizeVec sizes = {0};
    for (int i = 0; i < copy->attrs->op->nattrs; i++)
        add_sizes(call, &copy->attrs->values[i], &sizes);
    copy->attrs = attrs_substitute(copy->attrs, call->attrs);
    copy->sizes = sizes.data;
    copy->nsizes = (uint32_t)sizes.len;
}

/* The constant an attribute stands for in an expression of a rule. */
static Expr *attr_expr(const AttrValue *v, Span span) {
    switch (v->kind) {
    case ATTR_NONE: return expr_unit(span);
    case ATTR_INT: return expr_int(v->i, DT_I32, span);
    case ATTR_BOOL: return expr_bool(v->i != 0, span);
    case ATTR_FLOAT: return expr_float(v->f, DT_F64, span);
    case ATTR_STRING: {
        Expr *e = expr_new(EXPR_STRING, type_string(), span);
        e->text = v->text;
        e->text_len = strlen(v->text);
        return e;
    }
    case ATTR_LIST: {
        Expr **items = mem_new_n(Expr *, v->list.n);
        for (uint32_t i = 0; i < v->list.n; i++)
            items[i] = attr_expr(&v->list.items[i], span);
        return expr_tuple(items, v->list.n, span);
    }
    case ATTR_DTYPE:
    case ATTR_DIM:
    case ATTR_REF: break;
    }
    BUG("an attribute that is no constant stands in an expression of a derivative rule");
}

static bool is_attr_use(const Expr *e) {
    return expr_calls_builtin(e, "ad.attr") && e->nargs == 1 && e->args[0]->kind == EXPR_STRING;
}

static Expr *copy_of(Subst *s, Expr *e);

/* Where a copy of a node stands: Note [Inlined calls]. */
static const Inlined *site_of_copy(Subst *s, const Inlined *own) {
    if (!own)
        return s->site;
    Inlined *known = map_find(&s->sites, own);
    if (known)
        return known;
    known = mem_new(Inlined);
    *known = *own;
    known->outer = site_of_copy(s, own->outer);
    map_set(&s->sites, own, known);
    return known;
}

static Expr **copy_args(Subst *s, Expr **args, uint32_t n) {
    Expr **copy = mem_new_n(Expr *, n ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = copy_of(s, args[i]);
    return copy;
}

static Expr *copy_fn(Subst *s, Expr *e) {
    Expr *copy = expr_copy(e);
    copy->fn = mem_new(Fn);
    *copy->fn = *e->fn;
    copy->fn->is_instance = false;
    if (!copy->fn->written)
        copy->fn->written = e->fn;
    for (int m = 0; m < AD_MODES; m++)
        copy->fn->own_twins[m] = NULL;
    copy->fn->base = NULL;
    copy->fn->of = NULL;
    copy->fn->path = NULL;
    copy->fn->params = mem_new_n(Var *, e->fn->nparams ? e->fn->nparams : 1);
    copy->fn->frames.data = NULL;
    copy->fn->frames.len = copy->fn->frames.cap = 0;
    for (uint32_t i = 0; i < e->fn->nparams; i++) {
        copy->fn->params[i] = fresh_var(s, e->fn->params[i]);
        if (fn_has_frames(e->fn, e->fn->params[i]))
            vec_push(&copy->fn->frames, copy->fn->params[i]);
    }
    const Inlined *site = s->site; /* what the function does, it does in activations of its own */
    s->site = NULL;
    copy->fn->body = copy_of(s, e->fn->body);
    s->site = site;
    return copy;
}

static Expr *copy_match(Subst *s, Expr *e) {
    Expr *copy = expr_copy(e);
    copy->a = copy_of(s, e->a);
    copy->arms = mem_new_n(Arm, e->narms ? e->narms : 1);
    for (uint32_t i = 0; i < e->narms; i++) {
        copy->arms[i].pattern = copy_pattern(s, e->arms[i].pattern);
        copy->arms[i].guard = e->arms[i].guard ? copy_of(s, e->arms[i].guard) : NULL;
        copy->arms[i].body = copy_of(s, e->arms[i].body);
    }
    return copy;
}

/* Copies a chain of lets, which is built from its end. */
static Expr *copy_chain(Subst *s, Expr *e) {
    VEC(Expr *) links = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        Expr *copy = expr_copy(e);
        if (e->var && e->rec)
            copy->var = fresh_var(s, e->var);
        copy->a = copy_of(s, e->a);
        if (e->var && !e->rec)
            copy->var = fresh_var(s, e->var);
        if (s->mono && e->var && !e->rec && !e->var->scheme && type_is_closed(copy->a->type))
            copy->var->type = copy->a->type;
        if (s->site)
            copy->inlined = site_of_copy(s, e->inlined);
        vec_push(&links, copy);
    }
    Expr *result = copy_of(s, e);
    for (size_t i = links.len; i-- > 0;) {
        links.data[i]->body = result;
        if (s->mono)
            links.data[i]->type = result->type;
        result = links.data[i];
    }
    return result;
}

static Expr *copy_one(Subst *s, Expr *e) {
    if (is_attr_use(e) && s->call && s->call->attrs) {
        int i = op_attr_index(s->call->attrs->op, e->args[0]->text);
        if (i >= 0)
            return attr_expr(&s->call->attrs->values[i], e->span);
    }
    if (e->kind == EXPR_VAR) {
        Expr *stands = map_find(&s->vars, e->var);
        if (!stands || !s->renames)
            return stands ? stands : e;
        Expr *copy = expr_copy(e);
        copy->var = stands->var;
        if (s->mono)
            copy->type = type_is_closed(copy->var->type) && !copy->var->scheme
                             ? copy->var->type
                             : mono_type(s->mono, e->type);
        return copy;
    }
    if (e->kind == EXPR_LET)
        return copy_chain(s, e);
    if (e->kind == EXPR_FN)
        return copy_fn(s, e);
    if (e->kind == EXPR_MATCH)
        return copy_match(s, e);
    Expr *copy = expr_copy(e);
    if (e->a)
        copy->a = copy_of(s, e->a);
    if (e->nargs)
        copy->args = copy_args(s, e->args, e->nargs);
    if (e->b)
        copy->b = copy_of(s, e->b);
    if (e->kind == EXPR_IF)
        copy->c = copy_of(s, e->c);
    if (e->nsizes)
        copy->sizes = copy_args(s, e->sizes, e->nsizes);
    if ((e->kind == EXPR_LIT || e->kind == EXPR_ZERO) && e->like)
        copy->like = copy_of(s, e->like);
    if (e->kind == EXPR_CHECK) {
        copy->checks = mem_new_n(Check, e->nchecks);
        for (uint32_t i = 0; i < e->nchecks; i++) {
            copy->checks[i] = e->checks[i];
            copy->checks[i].found = copy_of(s, e->checks[i].found);
            copy->checks[i].expected = copy_of(s, e->checks[i].expected);
        }
    }
    if (e->attrs && s->call && attrs_have_refs(e->attrs))
        take_attrs(s->call, copy);
    return copy;
}

/* Nothing in it is replaced, and it keeps its type: it stands in the copy itself. */
static bool is_kept(const Subst *s, const Expr *e) {
    return e->kind != EXPR_VAR && !s->mono && expr_is_leaf(e);
}

static Expr *copy_of(Subst *s, Expr *e) {
    if (e->kind == EXPR_VAR && !s->renames) /* what it stands for, or itself */
        return copy_one(s, e);
    Expr *known = is_kept(s, e) ? e : map_find(&s->copied, e);
    if (known)
        return known;
    Expr *copy = copy_one(s, e);
    if (s->mono && copy != e && e->kind != EXPR_VAR && e->kind != EXPR_LET)
        mono_settle(s->mono, copy);
    if (s->site && copy != e && e->kind != EXPR_VAR)
        copy->inlined = site_of_copy(s, e->inlined);
    map_set(&s->copied, e, copy);
    return copy;
}

Expr *expr_substitute(Subst *s, Expr *e) {
    MapRoom room;
    map_begin(&s->copied, &room);
    Expr *copy = copy_of(s, e);
    map_end(&s->copied);
    return copy;
}
