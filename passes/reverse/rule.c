/* SPDX-License-Identifier: Apache-2.0 */
/* The way back of an operator: its rule (prelude/derivatives.rly), written out with the types of this call. Of a rule
 * that gives several cotangents only those lets remain that an active argument needs. */
#include "passes/reverse/internal.h"

#include <string.h>

#include "base/str.h"
#include "passes/known_type.h"
#include "types/solve/attrs.h"

/* ---- types ----------------------------------------------------------------------------------- */

/* The type of an operator's result, where those of its arguments say it. */
static void settle_operator(Expr *e) {
    Type *result = known_type_of_operator(e);
    if (result)
        e->type = result;
}

bool is_identity(const Expr *e) {
    const Op *op = e->a->op;
    return (op == &op_collapse_sum_like || op == &op_broadcast_to_like || op == &op_cast_like) &&
           type_is_closed(e->args[0]->type) && type_is_closed(e->args[1]->type) &&
           type_resolve(e->args[0]->type)->tag == TY_TENSOR &&
           type_equal(e->args[0]->type, e->args[1]->type);
}

extern const Op op_take;

/* That operator on x alone, so that the way back need not keep what x is like already. */
static Expr *like_itself(Expr *e) {
    Expr *x = e->args[0], *copy = expr_copy(e);
    Var *v = x->kind == EXPR_VAR ? x->var : var_new(sym_intern("ct"), x->type, x->span);
    copy->args = mem_new_n(Expr *, 2);
    copy->args[0] = copy->args[1] = x->kind == EXPR_VAR ? x : expr_var(v, x->span);
    return x->kind == EXPR_VAR ? copy : expr_let(v, x, copy);
}

typedef struct Settling {
    Map map; /* Expr -> what it became */
    RuleUse *use;
    Map shapes; /* Expr that something became -> its Shape */
} Settling;

static Expr *settle(Settling *s, Expr *e);

static Expr *settle_child(void *ctx, Expr *child) { return settle(ctx, child); }

static Expr *settle_literal(Expr *e) {
    DType t;
    if (!e->like || !type_get_dtype(e->like->type, &t))
        return e;
    Expr *lit = expr_copy(e);
    lit->like = NULL;
    lit->type = type_scalar(t);
    return lit;
}

static const Shape *shape_of(Settling *s, const Expr *e) {
    const Shape *known = map_find(&s->shapes, e);
    if (!known) {
        known = shape_of_atom(s->use->n, &s->use->shapes, e);
        map_set(&s->shapes, e, (void *)(uintptr_t)known);
    }
    return known;
}

/* An operator's call with what is known of shapes; its first argument where that has the shape already. */
static Expr *settle_shapes(Settling *s, const Expr *e) {
    const Shape **args = mem_new_n(const Shape *, e->nargs + 1);
    Expr *call = expr_copy(e);
    call->args = mem_new_n(Expr *, e->nargs + 1);
    call->follows = s->use->follows;
    memcpy(call->args, e->args, e->nargs * sizeof *call->args);
    bool identity = is_identity(call);
    if (identity) /* one call of five is, and to ask its relation took a fortieth of all time */
        call->type = type_zonk(call->args[0]->type);
    else
        settle_operator(call);
    for (uint32_t i = 0; i < call->nargs; i++)
        args[i] = shape_of(s, call->args[i]);
    if (identity || shape_is_kept(call, args)) {
        Expr *same = s->use->identities ? like_itself(call) : shape_kept(call);
        map_set(&s->shapes, same, (void *)(uintptr_t)args[0]);
        return same;
    }
    const Shape *shape = shape_of_call(s->use->n, call, args);
    if (!shape)
        return call;
    Expr *like = s->use->identities ? NULL : shape_operand(s->use, call, shape);
    if (like)
        call->args[call->nargs - 1] = like;
    Type *type = type_is_closed(call->type) ? NULL : shape_type(call, args, shape);
    if (type)
        call->type = type;
    map_set(&s->shapes, call, (void *)(uintptr_t)shape);
    return call;
}

static Expr *settle_block(Settling *s, Expr *e) {
    VEC(Expr *) links = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        Expr *link = expr_copy(e);
        link->a = settle(s, e->a);
        if (link->var) { /* the rule was copied: the variable is its own */
            link->var->type = link->a->type;
            shape_know(&s->use->shapes, link->var, shape_of(s, link->a));
        }
        vec_push(&links, link);
    }
    Expr *value = settle(s, e);
    for (size_t i = links.len; i-- > 0;) {
        links.data[i]->body = value;
        links.data[i]->type = value->type;
        value = links.data[i];
    }
    return value;
}

static Expr *settle(Settling *s, Expr *e) {
    Expr *known = e->kind != EXPR_VAR && expr_is_leaf(e) ? e : map_find(&s->map, e);
    if (known)
        return known;
    Expr *made = e;
    switch (e->kind) {
    case EXPR_VAR:
        if (e->type != e->var->type && type_is_closed(e->var->type)) {
            made = expr_copy(e);
            made->type = e->var->type;
        }
        break;
    case EXPR_LET: made = settle_block(s, e); break;
    case EXPR_LIT:
        made = expr_map_children(e, settle_child, s);
        made = settle_literal(made);
        break;
    case EXPR_TUPLE:
        made = expr_map_children(e, settle_child, s);
        made = expr_tuple(made->args, made->nargs, e->span);
        break;
    case EXPR_CALL:
        made = expr_map_children(e, settle_child, s);
        if (made->a->kind != EXPR_OP)
            break;
        made = settle_shapes(s, made);
        break;
    case EXPR_IF:
        made = expr_map_children(e, settle_child, s);
        if (made->a->kind == EXPR_LIT)
            made = made->a->i ? made->b : made->c; /* a choice by an attribute */
        break;
    default: made = expr_map_children(e, settle_child, s); break;
    }
    map_set(&s->map, e, made);
    return made;
}

Expr *rule_settle(RuleUse *use, Expr *e) {
    Settling s = {.use = use};
    MapRoom room;
    map_begin(&s.map, &room);
    Expr *settled = settle(&s, e);
    map_end(&s.map);
    return settled;
}

/* ---- contributions --------------------------------------------------------------------------- */

/* Emits those of the rule's lets whose variables are wanted. */
static void emit_wanted(Way *w, Expr *const *links, size_t n, Map *wanted) {
    bool *keep = mem_new_n(bool, n + 1);
    for (size_t i = n; i-- > 0;) {
        keep[i] = !links[i]->var || map_has(wanted, links[i]->var);
        VarVec vars = {0};
        if (keep[i])
            expr_free_vars(links[i]->a, &vars);
        for (size_t k = 0; k < vars.len; k++)
            map_set(wanted, vars.data[k], vars.data[k]);
    }
    for (size_t i = 0; i < n; i++)
        if (keep[i])
            block_bind(w->block, links[i], links[i]->a);
}

typedef struct Reading {
    Place *place;
    const Expr *call;
    Expr *ct;
} Reading;

static void run_reading(Way *w, void *ctx) {
    const Reading *r = ctx;
    acc_add_index(w, r->place, r->call, r->ct);
}

static bool is_float_tensor(Type *t) {
    return type_resolve(t)->tag == TY_TENSOR && type_is_closed(t) &&
           !(type_dtype_set(type_resolve(t)->tensor.dtype) & ~DTS_FLOAT);
}

/* The cotangent of a result that is a tuple, without absent parts: the rule reads them all. */
static Expr *dense_parts(Way *w, const Step *s, Expr *ct) {
    const Type *t = type_resolve(s->e->type);
    bool there = ct->kind == EXPR_TUPLE && t->tag == TY_TUPLE && t->nargs == ct->nargs;
    bool tensors = t->tag == TY_TUPLE;
    for (uint32_t i = 0; tensors && i < t->nargs; i++) {
        tensors = is_float_tensor(t->args[i]);
        there = there && tensors && type_resolve(ct->args[i]->type)->tag == TY_TENSOR;
    }
    Expr *value = there ? expr_tuple(ct->args, ct->nargs, w->build.span)
                        : b_builtin(&w->build, "ad.dense", b_ref(&w->build, s->var), ct, NULL);
    return way_bind(w, value, tensors ? s->e->type : NULL);
}

/* `take(x, i, axis=…)` of one place as a reading x[i], to whose derivative only that place adds; any other `take` is
 * NULL. */
static const Expr *taken_place(Way *w, const Expr *call) {
    uint32_t rank, nindex;
    Type **dims;
    if (call->a->op != &op_take || call->nargs != 2 ||
        !type_get_rank(type_resolve(call->args[0]->type), &rank, &dims) ||
        !type_get_rank(type_resolve(call->args[1]->type), &nindex, &dims) || nindex != 0 ||
        attrs_is_none(call->attrs, "axis") || attrs_int(call->attrs, "batch_dims") != 0)
        return NULL;
    int64_t axis = attrs_int(call->attrs, "axis");
    axis += axis < 0 ? (int64_t)rank : 0;
    if (axis < 0 || axis >= (int64_t)rank)
        return NULL;
    const char *mode = attrs_text(call->attrs, "mode");
    Str spec = {0};
    for (int64_t i = 0; i < axis; i++)
        str_add(&spec, ":0");
    str_add_char(&spec, strcmp(mode, "clip") == 0 ? 'c' : strcmp(mode, "wrap") == 0 ? 'w' : 'i');
    AttrValue *values = mem_new_n(AttrValue, op_index.nattrs);
    values[op_attr_index(&op_index, "spec")] = (AttrValue){.kind = ATTR_STRING,
                                                           .text = str_text(&spec)};
    Attrs *attrs = mem_new(Attrs);
    *attrs = (Attrs){&op_index, values};
    Expr **args = mem_new_n(Expr *, 2), **place = mem_new_n(Expr *, 1);
    place[0] = call->args[1];
    args[0] = call->args[0];
    args[1] = b_tuple(&w->build, place, 1);
    return expr_call_op(&op_index, args, 2, attrs, call->type, call->span);
}

/* Whether the evaluator may let it wait: a product of two tensors and nothing else. */
static bool is_waiting_product(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_OP && e->a->op->pattern == OP_PRODUCT &&
           !e->a->op->nattrs && !e->nsizes && is_float_tensor(e->type);
}

void way_operator(Way *w, Step *s, Expr *ct) {
    Expr *call = s->e;
    uint32_t n = call->nargs;
    const Rule *rule = env_find_rule(w->n->program->ctx->env, call->a->op, RULE_DERIVATIVE);
    Expr **all = mem_new_n(Expr *, n + 2);
    for (uint32_t i = 0; i < n; i++)
        all[i] = call->args[i];
    all[n] = b_ref(&w->build, s->var);
    bool tensor = type_resolve(call->type)->tag == TY_TENSOR;
    if (!tensor)
        ct = dense_parts(w, s, ct);
    all[n + 1] = ct;
    const Expr *reads = call->a->op == &op_index && !call->nsizes ? call : taken_place(w, call);
    Place *read = reads ? place_of(w->n, call->args[0]) : NULL;
    if (read) {
        Reading reading = {read, reads, ct};
        alias_each(w, &read, 1, run_reading, &reading);
        return;
    }
    Map wanted = {0};
    RuleUse use = {w->n, all, n + 1, .identities = !w->n->program->merges,
                   .follows = expr_is_internal(rule->fn)};
    if (ct->kind == EXPR_VAR)
        shape_know(&use.shapes, ct->var, shape_of_atom(w->n, NULL, all[n]));
    Expr *value = rule_settle(&use, rule_expand(rule, call, all, n + 2));
    VEC(Expr *) links = {0};
    for (; value->kind == EXPR_LET; value = value->body)
        vec_push(&links, value);
    bool parts = value->kind == EXPR_TUPLE && value->nargs == n && n > 0;
    bool tuple = n > 1 || rule_gives_tuple(value);
    VarVec vars = {0};
    for (uint32_t i = 0; i < n; i++)
        if (place_of(w->n, call->args[i]))
            expr_free_vars(parts ? value->args[i] : value, &vars);
    for (size_t k = 0; k < vars.len; k++)
        map_set(&wanted, vars.data[k], vars.data[k]);
    emit_wanted(w, links.data, links.len, &wanted);
    if (!parts)
        value = block_let(w->block, "cts", value);
    /* all cotangents first, then they are added in the order of the arguments */
    Expr **cts = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Place *p = place_of(w->n, call->args[i]);
        Expr *part = parts ? value->args[i] : tuple ? b_proj(&w->build, value, i) : value;
        if (!p || expr_is_unit(part) || type_is_unit(part->type))
            continue;
        cts[i] = part->kind == EXPR_VAR ? part : way_bind(w, part, part->type);
        if (is_waiting_product(part))
            map_set(&w->products, cts[i]->var, cts[i]->var);
    }
    for (uint32_t i = 0; i < n; i++)
        if (cts[i])
            acc_add(w, place_of(w->n, call->args[i]), cts[i]);
}
