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
 * are made again. Of a result that is a tuple each part may have two names by itself: `(x, k)` of a loop whose x is used elsewhere.
 * Data with two names are left to the twins. */
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
        reverse_give_up(w->n->program, "too many values may be one");
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

/* The place of a part of p, which becomes a tuple where it was a leaf; NULL where it cannot. */
static Place *find_part(Instance *n, Place *p, const Path *at) {
    for (uint32_t i = 0; i < at->n && p; i++) {
        if (p->form == PLACE_LEAF && !p->aliases.len)
            place_make_tuple(n, p, at->of[i]);
        if (p->form != PLACE_TUPLE || p->nparts != at->of[i])
            return NULL;
        p = p->parts[at->part[i]];
    }
    return p && is_whole(p) ? p : NULL;
}

static bool same_path(const Path *a, const Path *b) {
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->part[i] != b->part[i] || a->of[i] != b->of[i])
            return false;
    return true;
}

static bool is_named(Way *w, const Leaving *from, const Path *at) {
    const Instance *n = w->n;
    if (!from->branch) {
        for (size_t i = 0; i < n->named.len; i++)
            if (n->named.data[i].number == from->end->number &&
                same_path(&n->named.data[i].path, at))
                return true;
        return false;
    }
    const Place *p = from->branch->place;
    for (uint32_t i = 0; i < at->n; i++) {
        if (p->form != PLACE_TUPLE || p->nparts != at->of[i] || !p->parts[at->part[i]])
            return false;
        p = p->parts[at->part[i]];
    }
    for (size_t k = 0; k < p->aliases.len; k++)
        if (p->aliases.data[k].number == from->choice)
            return true;
    return false;
}

static bool learn_choice(Way *w, const Leaving *from, Place *result, const Path *at) {
    Step *s = from->branch;
    bool visible = false;
    for (const Steps *steps = s->choices[from->choice].steps->around; steps; steps = steps->around)
        visible |= steps == result->home;
    Place *part = visible && is_whole(result) ? find_part(w->n, s->place, at) : NULL;
    if (!part)
        return false;
    vec_push(&part->aliases, ((Alias){s->frame, 1, from->choice, result}));
    return w->n->program->changed = true;
}

static bool learn_return(Instance *n, const Leaving *from, const Place *result, const Path *at) {
    if (!is_whole(result) || !result->shared)
        return false;
    for (uint32_t i = 0; i < n->nslots; i++) {
        if (n->slots[i] != result)
            continue;
        vec_push(&n->named, ((Return){from->end->number, i, *at}));
        return n->program->changed = true;
    }
    return false;
}

static void leave(Way *w, const Leaving *from, Place *p, Expr *ct, Presence presence, Path at) {
    if (is_named(w, from, &at))
        return;
    while (p->aliases.len && p->aliases.data[0].number == ALWAYS)
        p = p->aliases.data[0].place;
    while (p->arm)
        p = p->arm;
    if (!acc_is_free(p) && p->form == PLACE_TUPLE && at.n < MAX_PATH) {
        at.of[at.n] = p->nparts;
        at.n++;
        for (uint32_t i = 0; i < p->nparts && !w->n->program->why; i++) {
            if (!p->parts[i])
                continue;
            at.part[at.n - 1] = i;
            Place part = acc_part(w, p, i, ct, presence);
            leave(w, from, p->parts[i], part.acc, part.presence, at);
        }
        return;
    }
    bool learnt = !acc_is_free(p) &&
                  (from->branch ? learn_choice(w, from, p, &at) : learn_return(w->n, from, p, &at));
    if (!learnt)
        acc_move(w, p, ct, presence);
}

void alias_leave(Way *w, const Leaving *from, Place *result, Expr *ct) {
    leave(w, from, result, ct, PRESENT, (Path){0});
}

static void forget_names(Place *p) {
    p->aliases.len = 0;
    for (uint32_t i = 0; p->form == PLACE_TUPLE && i < p->nparts; i++)
        if (p->parts[i])
            forget_names(p->parts[i]);
}

void alias_take(Way *w, Step *s) {
    Instance *callee = s->instance;
    if (s->named_by == callee && s->nnamed == callee->named.len)
        return;
    forget_names(s->place);
    s->named_by = callee;
    s->nnamed = callee->named.len;
    uint32_t index = frame_head(callee) - 1;
    for (size_t i = 0; i < callee->named.len; i++) {
        const Return *r = &callee->named.data[i];
        Place *p = s->places[r->slot], *part = find_part(w->n, s->place, &r->path);
        if (!part || !is_whole(p)) {
            reverse_give_up(w->n->program,
                            "a result is another name of a value that is used elsewhere");
            return;
        }
        uint32_t number = callee->returns.len == 1 ? ALWAYS : r->number;
        vec_push(&part->aliases, ((Alias){s->frame, index, number, p}));
        w->n->program->changed = true;
    }
}
