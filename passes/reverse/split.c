/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a choice between data is put into its arms:
 *
 *   let q = if (c) { p } else { f(p) };   q.a * p.b       becomes      if (c) { p.a * p.b } else { let q = f(p); q.a * p.b }
 *   match (if (c) { Dot(x) } else { Dot(x * x) }) { … }                if (c) { match (Dot(x)) { … } } else { match (Dot(x * x)) { … } }
 *
 * Data of which the run decides whether it is another name of a value (Note [Results with two names] in alias.c) is then known
 * to be that in one arm, and known not to be in the other. What runs, and in which order, stays as it is, so cotangents are
 * added in the order in which they were. It looks into no function literal that is not called where it stands, and stops where
 * the function has grown by MOST nodes. */
#include "passes/cells.h"
#include "passes/inline.h"
#include "passes/reverse/internal.h"

enum { MOST = 4000 };

typedef struct Splitter {
    PassCtx *ctx;
    const Expr *root;
    Map called; /* function literals that are called where they stand */
    Map done;
    uint32_t grown;
} Splitter;

static Expr *split(Splitter *s, Expr *e);

static Expr *split_child(void *ctx, Expr *child) { return split(ctx, child); }

/* The choice that a block ends in; NULL where it ends in something else. */
static Expr *choice_of(Expr *e) {
    while (e->kind == EXPR_LET)
        e = e->body;
    return e->kind == EXPR_IF || (e->kind == EXPR_MATCH && e->narms > 1) ? e : NULL;
}

/* Whether a result of a choice is a name, so that it may be another name of a value. */
static bool gives_name(const Expr *e) {
    while (e->kind == EXPR_LET)
        e = e->body;
    while (e->kind == EXPR_FIELD || e->kind == EXPR_PROJ)
        e = e->a;
    if (e->kind == EXPR_IF)
        return gives_name(e->b) || gives_name(e->c);
    bool gives = e->kind == EXPR_VAR;
    for (uint32_t i = 0; e->kind == EXPR_MATCH && i < e->narms && !gives; i++)
        gives = gives_name(e->arms[i].body);
    return gives;
}

/* Whether it may be data, or hold it, of which some is another name. */
static bool is_unsure(Expr *value) {
    Type *t = value->type ? type_resolve(value->type) : NULL;
    return t && type_may_hold_float(t) && choice_of(value) &&
           (t->tag == TY_DATA || t->tag == TY_FN || gives_name(value));
}

/* What follows a value: `let v = value; rest`, or a `match` of it. */
typedef struct Rest {
    const Expr *of; /* the LET or MATCH */
    bool taken;     /* by the first arm, as it is; the others get copies */
} Rest;

static Expr *follow(Rest *rest, Expr *value) {
    Expr *e = (Expr *)(uintptr_t)rest->of;
    Links links = {0};
    value = open_links(&links, value);
    if (rest->taken) {
        Subst copy = {.renames = true};
        Expr *whole = expr_copy(e); /* its value stands already */
        whole->a = expr_unit(e->span);
        e = expr_substitute(&copy, whole);
    } else {
        e = expr_copy(e);
    }
    rest->taken = true;
    e->a = value;
    return close_links(&links, e);
}

/* e, a block that ends in a choice, with what follows it in the arms. */
static Expr *push(Expr *e, Rest *rest) {
    Links links = {0};
    Expr *choice = expr_copy(open_links(&links, e));
    choice->type = rest->of->type;
    if (choice->kind == EXPR_IF) {
        choice->b = follow(rest, choice->b);
        choice->c = follow(rest, choice->c);
        return close_links(&links, choice);
    }
    Arm *arms = mem_new_n(Arm, choice->narms);
    for (uint32_t i = 0; i < choice->narms; i++) {
        arms[i] = choice->arms[i];
        arms[i].body = follow(rest, arms[i].body);
    }
    choice->arms = arms;
    return close_links(&links, choice);
}

static bool may_push(Splitter *s, const Expr *of) {
    Expr *choice = of->a && !of->rec && is_unsure(of->a) ? choice_of(of->a) : NULL;
    if (!choice)
        return false;
    uint32_t copies = choice->kind == EXPR_IF ? 1 : choice->narms - 1;
    uint32_t size = expr_count((Expr *)(uintptr_t)of, MOST);
    if (s->grown + copies * size > MOST)
        return false;
    s->grown += copies * size;
    return true;
}

static Expr *split_block(Splitter *s, Expr *e) {
    Links links = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        pass_visit(s->ctx);
        Expr *link = expr_copy(e);
        link->a = split(s, e->a);
        if (e->var && may_push(s, link)) {
            Rest rest = {.of = link};
            return close_links(&links, split(s, push(link->a, &rest)));
        }
        vec_push(&links, link);
    }
    return close_links(&links, split(s, e));
}

/* A call or tuple of names, which stand for its arguments, in order, where one of them is a choice: what follows that is
 * the rest of the block. */
static Expr *name_arguments(Splitter *s, Expr *e) {
    bool has_choice = false;
    for (uint32_t i = 0; i < e->nargs; i++)
        has_choice |= is_unsure(e->args[i]);
    if (!has_choice || e->mode || e->drop || (e->kind == EXPR_CALL && e->a->kind == EXPR_FN))
        return e;
    Links links = {0};
    Expr *copy = expr_copy(e);
    copy->args = mem_new_n(Expr *, e->nargs);
    for (uint32_t i = 0; i < e->nargs; i++) {
        Expr *arg = e->args[i];
        if (arg->kind != EXPR_VAR && arg->kind != EXPR_LIT && arg->kind != EXPR_FN) {
            Expr *link = expr_new(EXPR_LET, arg->type, arg->span);
            link->var = var_new(sym_intern("t"), arg->type, arg->span);
            link->a = arg;
            vec_push(&links, link);
            arg = expr_var(link->var, arg->span);
        }
        copy->args[i] = arg;
    }
    return split(s, close_links(&links, copy));
}

static Expr *split(Splitter *s, Expr *e) {
    Expr *known = map_find(&s->done, e), *result;
    bool is_kept = e->kind == EXPR_FN && e != s->root && !map_has(&s->called, e);
    if (known || is_kept || mem_stack_left() < SPARE_STACK)
        return known ? known : e;
    pass_visit(s->ctx);
    if (e->kind == EXPR_CALL && e->a->kind == EXPR_FN && !e->a->fn->keeps_captured)
        map_set(&s->called, e->a, e->a);
    if (e->kind == EXPR_LET) {
        result = split_block(s, e);
    } else if (e->kind == EXPR_MATCH) {
        Expr *match = expr_copy(e);
        match->a = split(s, e->a);
        Rest rest = {.of = match};
        result = may_push(s, match) ? split(s, push(match->a, &rest))
                                    : expr_map_children(e, split_child, s);
    } else {
        result = expr_map_children(e, split_child, s);
        if (result->kind == EXPR_CALL || result->kind == EXPR_TUPLE || result->kind == EXPR_TENSOR)
            result = name_arguments(s, result);
    }
    map_set(&s->done, e, result);
    return result;
}

Expr *split_choices(PassCtx *ctx, Expr *fn) {
    Expr *exposed = cells_expose(fn); /* a cell is made where it was, before the choice behind it */
    Splitter s = {.ctx = ctx, .root = exposed};
    MapRoom room;
    map_begin(&s.done, &room);
    Expr *made = split(&s, exposed);
    map_end(&s.done);
    return s.grown ? made : fn;
}
