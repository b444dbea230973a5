/* SPDX-License-Identifier: Apache-2.0 */
/* Values of one derivative that are equal become one.
 *
 * Note [Merging]. Where tangents are carried forward nothing is added up, so two operators that are applied alike may
 * become one, and `1.0 * x` may be x, and no bit changes. Without that a derivative of n-th order holds 3^n copies of
 * what it began with. A way back adds the cotangents of each copy by itself, and addition is not associative: code that
 * is differentiated backwards once more is left as it is (Program.merges). */
#include "passes/reverse/internal.h"

Expr *merge_atom(Reader *r, Expr *atom) {
    Expr *of = atom->kind == EXPR_VAR ? map_find(&r->n->aliases, atom->var) : NULL;
    if (!of || of->kind != EXPR_VAR)
        return of ? of : atom;
    Expr *first = expr_copy(atom); /* of the type that is known of this name */
    first->var = of->var;
    return first;
}

static bool merges(const Reader *r) { return r->p->merges && r->n->forward; }

void merge_alias(Reader *r, Var *v, Expr *atom) {
    bool literal = merges(r) && atom->kind == EXPR_LIT && !atom->like;
    if (literal || atom->kind == EXPR_VAR)
        map_set(&r->n->aliases, v, atom);
}

static bool same_atom(const Expr *a, const Expr *b) {
    if (a->kind != b->kind)
        return false;
    if (a->kind == EXPR_VAR)
        return a->var == b->var;
    if (a->kind == EXPR_TUPLE) {
        bool same = a->nargs == b->nargs;
        for (uint32_t i = 0; same && i < a->nargs; i++)
            same = same_atom(a->args[i], b->args[i]);
        return same;
    }
    return a->kind == EXPR_LIT && !a->like && !b->like && a->is_float == b->is_float &&
           a->i == b->i && type_equal(a->type, b->type);
}

static bool same_call(const Expr *a, const Expr *b) {
    if (a->a->op != b->a->op || a->nargs != b->nargs || a->nsizes || b->nsizes)
        return false;
    for (uint32_t i = 0; i < a->nargs; i++)
        if (!same_atom(a->args[i], b->args[i]))
            return false;
    return a->attrs == b->attrs || (a->attrs && b->attrs && attrs_equal_values(a->attrs, b->attrs));
}

static void *number_of(const Expr *call) {
    uintptr_t h = (uintptr_t)call->a->op;
    for (uint32_t i = 0; i < call->nargs; i++) {
        const Expr *arg = call->args[i];
        uintptr_t of = arg->kind == EXPR_VAR ? arg->var->id : (uintptr_t)arg->i;
        h = (h ^ of) * (uintptr_t)0x9e3779b97f4a7c15u;
    }
    return (void *)(h | 1);
}

typedef struct Applied { /* steps with one number */
    Step *step;
    struct Applied *next;
} Applied;

static bool is_one(const Expr *e) {
    return e->kind == EXPR_LIT && !e->like && (e->is_float ? e->f == 1.0 : e->i == 1);
}

/* 1.0 * x and x * 1.0 of scalars of one dtype. */
static Expr *product_with_one(const Expr *call) {
    if (call->a->op != &op_multiply && call->a->op != &op_strong_multiply)
        return NULL;
    for (int i = 0; i < 2; i++) {
        DType t, u;
        const Expr *one = call->args[i];
        Expr *x = call->args[1 - i];
        if (is_one(one) && type_get_dtype(one->type, &t) && type_get_dtype(x->type, &u) && t == u &&
            dtype_is_float(t) && type_equal(x->type, call->type))
            return x;
    }
    return NULL;
}

Expr *merge_operator(Reader *r, Expr *call) {
    if (!merges(r))
        return NULL;
    bool identity = is_identity(call) || shape_keeps(r->n, call);
    Expr *x = identity ? shape_kept(call) : product_with_one(call);
    if (x)
        return x;
    void *number = number_of(call);
    for (const Steps *at = r->steps; at; at = at->around)
        for (const Applied *a = map_find(&at->merged, number); a; a = a->next)
            if (same_call(a->step->e, call))
                return expr_var(a->step->var, call->span);
    return NULL;
}

void merge_step(Reader *r, Step *s) {
    if (!merges(r))
        return;
    void *number = number_of(s->e);
    Applied *a = mem_new(Applied);
    a->step = s;
    a->next = map_find(&r->steps->merged, number);
    map_set(&r->steps->merged, number, a);
}
