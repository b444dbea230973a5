/* SPDX-License-Identifier: Apache-2.0 */
/* Results that are another name of a value which is used elsewhere.
 *
 * Note [Results with two names]. In
 *
 *   let y = if (c) { x } else { x * x };   y * x
 *
 * fig. 4.1 gives y the cell of x where c holds, and a cell of its own where not. Cotangents must be added to the cell of
 * x in the order in which they come, so they cannot be collected for y and moved to x later. What is added to y is
 * therefore added to the value that it is, and the frame of the branch tells which: it holds the number of the arm. The
 * result of a call is the same: the frame holds the number of the return. Where y is x, no cotangent of y is left when the way
 * back comes to the branch, which does nothing then. A value of which this is found becomes an Alias, and all ways back
 * are made again. Data and tuples with two names are left to the twins. */
#include "passes/reverse/internal.h"

/* Whether a value may have two names: it is taken apart nowhere. */
static bool is_whole(const Place *p) {
    if (p->form != PLACE_LEAF)
        return false;
    switch (type_resolve(p->type)->tag) {
    case TY_DATA:
    case TY_TUPLE:
    case TY_FN: return false;
    default:
        return true; /* a tensor, or of a type that is not known here, and so not taken apart */
    }
}

static Expr *alias_test(Way *w, const Alias *a) {
    Type *type = type_scalar(DT_I32);
    Expr **two = mem_new_n(Expr *, 2);
    two[0] = way_bind(
        w, expr_proj(b_ref(&w->build, a->frame), (int32_t)a->index, type, w->build.span), type);
    two[1] = expr_int(a->number, DT_I32, w->build.span);
    return b_op(&w->build, &op_equal, two, 2, type_scalar(DT_BOOL));
}

/* ---- what a name stands for ------------------------------------------------------------------- */

typedef struct Names {
    Place *place;
    Place *const *places;
    uint32_t n;
    AliasRun run;
    void *ctx;
} Names;

/* In arm i the place is its i-th alias, in the last one itself. */
static void run_name(Way *w, void *ctx, uint32_t i) {
    const Names *names = ctx;
    Place *p = names->place;
    if (++w->n->program->names > MAX_NAMES) {
        reverse_refuse(w->n->program, "too many values may be one");
        return;
    }
    p->is_own = i == p->aliases.len;
    p->arm = p->is_own ? NULL : p->aliases.data[i].place;
    alias_each(w, names->places, names->n, names->run, names->ctx);
    p->is_own = false;
    p->arm = NULL;
}

static void choose_name(Way *w, Names *names) {
    const Place *p = names->place;
    uint32_t n = (uint32_t)p->aliases.len;
    if (p->aliases.data[0].number == ALWAYS) {
        run_name(w, names, 0);
        return;
    }
    Expr **tests = mem_new_n(Expr *, n);
    for (uint32_t i = 0; i < n; i++)
        tests[i] = alias_test(w, &p->aliases.data[i]);
    way_choose(w, &(Arms){n + 1, tests, run_name, NULL, names});
}

/* A place in p of which it is open what it names. */
static Place *find_open(Place *p) {
    if (!p)
        return NULL;
    if (p->arm)
        return find_open(p->arm);
    if (p->form == PLACE_LEAF)
        return p->aliases.len && !p->is_own ? p : NULL;
    for (uint32_t i = 0; i < p->nparts; i++) {
        Place *open = find_open(p->parts[i]);
        if (open)
            return open;
    }
    return NULL;
}

void alias_each(Way *w, Place *const *places, uint32_t n, AliasRun run, void *ctx) {
    for (uint32_t i = 0; i < n; i++) {
        Place *open = find_open(places[i]);
        if (!open)
            continue;
        choose_name(w, &(Names){open, places, n, run, ctx});
        return;
    }
    run(w, ctx);
}

typedef struct Adding {
    Place *place;
    Expr *ct;
} Adding;

static void run_add(Way *w, void *ctx) {
    const Adding *a = ctx;
    acc_add(w, a->place, a->ct);
}

bool alias_add(Way *w, Place *p, Expr *ct) {
    if (!find_open(p))
        return false;
    Adding a = {p, ct};
    alias_each(w, &p, 1, run_add, &a);
    return true;
}

/* ---- learning ---------------------------------------------------------------------------------- */

bool alias_is_choice(const Step *s, uint32_t i) {
    for (size_t k = 0; k < s->place->aliases.len; k++)
        if (s->place->aliases.data[k].number == i)
            return true;
    return false;
}

bool alias_learn_choice(Way *w, Step *s, uint32_t i, Place *result) {
    bool visible = false;
    for (const Steps *at = s->choices[i].steps->around; at; at = at->around)
        visible |= at == result->home;
    if (!visible || !is_whole(result) || !is_whole(s->place))
        return false;
    vec_push(&s->place->aliases, ((Alias){s->frame, 1, i, result}));
    return w->n->program->changed = true;
}

bool alias_is_return(const Instance *n, const Steps *end) {
    for (size_t i = 0; i < n->named.len; i++)
        if (n->named.data[i].number == end->number)
            return true;
    return false;
}

bool alias_learn_return(Instance *n, const Steps *end, const Place *result) {
    if (!is_whole(result) || !result->shared)
        return false;
    for (uint32_t i = 0; i < n->nslots; i++) {
        if (n->slots[i].place != result)
            continue;
        vec_push(&n->named, ((Return){end->number, i}));
        return n->program->changed = true;
    }
    return false;
}

void alias_take(Way *w, Step *s) {
    const Instance *callee = s->instance;
    Place *result = s->place;
    bool same = result->aliases.len == callee->named.len;
    uint32_t index = frame_head(callee) - 1, count = 0;
    Alias *found = mem_new_n(Alias, callee->named.len + 1);
    for (size_t i = 0; i < callee->named.len; i++) {
        const Return *r = &callee->named.data[i];
        Place *p = s->places[r->slot];
        if (!is_whole(p) || !is_whole(result)) {
            reverse_refuse(w->n->program,
                           "a result is another name of a value that is used elsewhere");
            return;
        }
        uint32_t number = callee->returns.len == 1 ? ALWAYS : r->number;
        found[count] = (Alias){s->frame, index, number, p};
        same = same && result->aliases.data[i].place == p &&
               result->aliases.data[i].number == number && result->aliases.data[i].index == index;
        count++;
    }
    if (same)
        return;
    result->aliases.len = 0;
    for (uint32_t i = 0; i < count; i++)
        vec_push(&result->aliases, found[i]);
    w->n->program->changed = true;
}
