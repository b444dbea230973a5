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
 * result of a call is the same: the frame holds the number of the return. Where y is x, no cotangent of y is left when
 * the way back comes to the branch, which does nothing then. A value of which this is found becomes an Alias, and all
 * ways back are made again. Of a result that is a tuple, or data of a type with one constructor, each part may have two
 * names by itself: `(x, k)` of a loop whose x is used elsewhere, or a record that a loop of no steps gives as it is.
 * What was one value so far is taken apart then. Where data of a type with several constructors have two names,
 * accumulators are cells: Note [Mirrors] in mirror.c. A part may be another name of a part before it, where what both
 * are is not known outside: the second adds to the first.
 *
 * What leaves an arm or a function may have two names itself, as y does in `if (d) { y } else { z }` or `fn (x) { …; y }`. There a
 * step (Naming) finds on the way forth which of the values that are known outside it is, as a number that the frame holds: so the
 * test is a short one, however many calls y went through. */
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

static bool is_always(const Alias *a) { return a->number == ALWAYS && !a->whose.var; }

Place *alias_settled(const Place *p) {
    while (p->aliases.len && is_always(&p->aliases.data[0]))
        p = p->aliases.data[0].place;
    return (Place *)p;
}

/* Where the frame holds that variable. */
static uint32_t index_in_frame(Program *p, const Whose *whose) {
    size_t i = 0;
    while (i < whose->saved->len && whose->saved->data[i] != whose->var)
        i++;
    if (i == whose->saved->len) {
        vec_push(whose->saved, whose->var);
        p->changed = true;
    }
    return whose->head + (uint32_t)i;
}

static Expr *part_is(const Build *b, const Var *frame, uint32_t index, uint32_t number) {
    Expr **two = mem_new_n(Expr *, 2);
    two[0] = expr_proj(b_ref(b, (Var *)frame), (int32_t)index, type_scalar(DT_I32), b->span);
    two[1] = expr_int(number, DT_I32, b->span);
    return b_op(b, &op_equal, two, 2, type_scalar(DT_BOOL));
}

/* Whether the value has that name, as the frame tells. */
static Expr *alias_test(Program *p, const Build *b, const Alias *a) {
    Expr *here = a->number == ALWAYS ? NULL : part_is(b, a->frame, a->index, a->number);
    if (!a->whose.var)
        return here;
    Expr *inner = part_is(b, a->frame, index_in_frame(p, &a->whose), a->whose.number);
    if (!here)
        return inner;
    Expr *both = b_if(b, here, inner, expr_bool(false, b->span));
    both->type = type_scalar(DT_BOOL);
    return both;
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
    if (is_always(&p->aliases.data[0])) {
        run_name(w, names, 0);
        return;
    }
    Expr **tests = mem_new_n(Expr *, n);
    for (uint32_t i = 0; i < n; i++)
        tests[i] = alias_test(w->n->program, &w->build, &p->aliases.data[i]);
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
    AddToPlace *add;
} Adding;

static void run_add(Way *w, void *ctx) {
    const Adding *a = ctx;
    a->add(w, a->place, a->ct);
}

bool alias_add(Way *w, Place *p, Expr *ct, AddToPlace *add) {
    if (!find_open(p))
        return false;
    Adding a = {p, ct, add};
    alias_each(w, &p, 1, run_add, &a);
    return true;
}

/* ---- learning ---------------------------------------------------------------------------------- */

/* Whether its parts are there wherever it is. */
static bool has_parts(const Place *p) {
    return p->form == PLACE_TUPLE || (p->form == PLACE_DATA && p->ctor->decl->nctors == 1);
}

/* The part that the path tells of a place that has parts; NULL where it has not. */
static Place *part_at(const Place *p, const Path *at, uint32_t i) {
    return has_parts(p) && p->nparts == at->of[i] ? p->parts[at->part[i]] : NULL;
}

/* The place of a part of p, which is taken apart where it was a leaf; NULL where it cannot. */
static Place *find_part(Instance *n, Place *p, const Path *at) {
    bool split;
    for (uint32_t i = 0; i < at->n && p; i++) {
        if (p->form == PLACE_LEAF && !p->aliases.len) {
            if (at->ctor[i])
                place_as_data(n, p, at->ctor[i], &split);
            else
                place_make_tuple(n, p, at->of[i]);
        }
        p = part_at(p, at, i);
    }
    return p && is_whole(p) ? p : NULL;
}

/* Adds the step to part i of the place. */
static void path_enter(Path *at, const Place *p, uint32_t i) {
    at->part[at->n] = i;
    at->of[at->n] = p->nparts;
    at->ctor[at->n++] = p->form == PLACE_DATA ? p->ctor : NULL;
}

/* Whether the place is p or a part of it, and which. */
static bool find_path(const Place *p, const Place *place, Path *at) {
    if (p == place)
        return true;
    for (uint32_t i = 0; has_parts(p) && i < p->nparts && at->n < MAX_PATH; i++) {
        if (!p->parts[i])
            continue;
        path_enter(at, p, i);
        if (find_path(p->parts[i], place, at))
            return true;
        at->n--;
    }
    return false;
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
    for (uint32_t i = 0; i < at->n && p; i++)
        p = part_at(p, at, i);
    for (size_t k = 0; p && k < p->aliases.len; k++)
        if (p->aliases.data[k].number == from->choice)
            return true;
    return false;
}

/* The part of the result that the value is, too; NULL: none that was seen. */
static const Path *find_given(const Leaving *from, const Place *value) {
    for (size_t i = 0; i < from->given.len; i++)
        if (from->given.data[i].place == value)
            return &from->given.data[i].path;
    return NULL;
}

static bool is_visible(const Steps *around, const Place *p) {
    for (; around; around = around->around)
        if (around == p->home)
            return true;
    return false;
}

static bool learn_choice(Way *w, const Leaving *from, Place *result, const Path *at,
                         const Whose *whose) {
    Step *s = from->branch;
    const Path *first = find_given(from, result);
    Place *value = result;
    if (!is_visible(s->choices[from->choice].steps->around, result))
        value = first ? find_part(w->n, s->place, first) : NULL;
    Place *part = value && is_whole(result) ? find_part(w->n, s->place, at) : NULL;
    if (!part)
        return false;
    vec_push(&part->aliases, ((Alias){s->frame, 1, from->choice, value, *whose}));
    return w->n->program->changed = true;
}

static bool learn_return(Instance *n, const Leaving *from, const Place *result, const Path *at,
                         const Whose *whose) {
    const Path *given = find_given(from, result);
    Path first = {0};
    uint32_t slot = 0;
    while (slot < n->nslots && !find_path(n->slots[slot], result, &first))
        slot++;
    bool is_slot = slot < n->nslots && n->slots[slot]->shared;
    if (!is_whole(result) || (!is_slot && !given))
        return false;
    Return r = {from->end->number, is_slot ? slot : IN_RESULT, *at, is_slot ? first : *given,
                *whose};
    vec_push(&n->named, r);
    return n->program->changed = true;
}

static bool learn(Way *w, const Leaving *from, Place *result, const Path *at, const Whose *whose) {
    return from->branch ? learn_choice(w, from, result, at, whose)
                        : learn_return(w->n, from, result, at, whose);
}

/* ---- results that are open themselves ----------------------------------------------------------- */

static Steps *steps_of(const Leaving *from) {
    return from->branch ? from->branch->choices[from->choice].steps : (Steps *)from->end;
}

static Naming *find_naming(const Leaving *from, const Path *at) {
    Steps *steps = steps_of(from);
    for (size_t i = 0; i < steps->namings.len; i++)
        if (same_path(&steps->namings.data[i].path, at))
            return &steps->namings.data[i];
    return NULL;
}

/* That of a part of the result, found behind all that the steps do. */
static Naming *get_naming(Way *w, const Leaving *from, const Path *at) {
    Naming *known = find_naming(from, at);
    if (known)
        return known;
    Steps *steps = steps_of(from);
    Step *s = mem_new(Step);
    s->kind = STEP_PLAIN;
    s->var = b_var(&w->build, "name", type_scalar(DT_I32));
    s->e = expr_int(0, DT_I32, w->build.span);
    vec_push(&steps->steps, s);
    map_set(&steps->defines, s->var, s->var);
    map_set(&w->n->made_by, s->var, s);
    vec_push(&steps->namings, ((Naming){.path = *at, .step = s}));
    return &vec_last(&steps->namings);
}

/* From 1; 0: it is none of them. */
static uint32_t number_of(const Naming *naming, const Place *p) {
    for (size_t i = 0; naming && i < naming->places.len; i++)
        if (naming->places.data[i] == p)
            return (uint32_t)i + 1;
    return 0;
}

/* The number of the value that p is when the code runs. */
static Expr *find_number(Program *program, const Build *b, const Naming *naming, const Place *p) {
    p = alias_settled(p);
    Expr *number = expr_int(number_of(naming, p), DT_I32, b->span);
    for (size_t i = p->aliases.len; i-- > 0;) {
        const Alias *a = &p->aliases.data[i];
        number = b_if(b, alias_test(program, b, a), find_number(program, b, naming, a->place),
                      number);
        number->type = type_scalar(DT_I32);
    }
    return number;
}

/* The same where `own` is none of the values that it may name. */
static Expr *ask_own(Program *program, const Build *b, const Place *own, const Place *other) {
    other = alias_settled(other);
    Expr *answer = expr_bool(own == other, b->span);
    for (size_t i = other->aliases.len; own != other && i-- > 0;) {
        const Alias *a = &other->aliases.data[i];
        answer = b_if(b, alias_test(program, b, a), ask_own(program, b, own, a->place), answer);
        answer->type = type_scalar(DT_BOOL);
    }
    return answer;
}

Expr *alias_ask(Program *program, const Build *b, const Place *one, const Place *other) {
    one = alias_settled(one);
    other = alias_settled(other);
    const Place *open = one->aliases.len ? one : other, *fixed = open == one ? other : one;
    if (!open->aliases.len)
        return expr_bool(one == other, b->span);
    Expr *answer = ask_own(program, b, open, fixed);
    for (size_t i = open->aliases.len; i-- > 0;) {
        const Alias *a = &open->aliases.data[i];
        answer = b_if(b, alias_test(program, b, a), alias_ask(program, b, a->place, fixed), answer);
        answer->type = type_scalar(DT_BOOL);
    }
    return answer;
}

typedef struct Open {
    const Leaving *from;
    Place *place;
    Expr *ct;
    Presence presence;
    const Path *at;
} Open;

static bool learn_open(Way *w, const Open *o, Place *p) {
    Naming *naming = get_naming(w, o->from, o->at);
    const Leaving *from = o->from;
    Whose whose = {.var = naming->step->var, .number = (uint32_t)naming->places.len + 1};
    whose.saved = from->branch ? &from->branch->choices[from->choice].saved
                               : &((Steps *)from->end)->saved;
    whose.head = from->branch ? 2 : frame_head(w->n);
    if (!learn(w, from, p, o->at, &whose))
        return false;
    vec_push(&naming->places, p);
    return true;
}

/* The cotangent of what has been found to be another name. Who calls a function, or reads what a branch gave, adds to that
 * value, so there is none; a seed has one for each part of the result. */
static void add_seed(Way *w, const Leaving *from, Place *p, Expr *ct, Presence presence) {
    if (from->branch || presence == ABSENT)
        return;
    if (acc_is_free(p))
        acc_move(w, p, ct, presence);
    else
        (presence == PRESENT ? acc_add : acc_add_perhaps)(w, p, ct);
}

static void run_leave(Way *w, void *ctx) {
    const Open *o = ctx;
    Place *p = o->place;
    p = place_here(p);
    if (number_of(find_naming(o->from, o->at), p))
        add_seed(w, o->from, p, o->ct, o->presence);
    else if (acc_is_free(p) || !learn_open(w, o, p))
        acc_move(w, p, o->ct, o->presence);
}

static void leave_open(Way *w, Open *o) {
    alias_each(w, &o->place, 1, run_leave, o);
    Naming *naming = find_naming(o->from, o->at);
    if (naming)
        naming->step->e = find_number(w->n->program, &w->build, naming, o->place);
}

static void leave(Way *w, Leaving *from, Place *p, Expr *ct, Presence presence, Path at) {
    bool open = find_naming(from, &at);
    p = place_here(alias_settled(p));
    if (!open && is_named(w, from, &at)) {
        add_seed(w, from, p, ct, presence);
        return;
    }
    if (open || (p->form == PLACE_LEAF && p->aliases.len)) {
        leave_open(w, &(Open){from, p, ct, presence, &at});
        return;
    }
    if (has_parts(p) && at.n < MAX_PATH) {
        for (uint32_t i = 0; i < p->nparts && !w->n->program->why; i++) {
            if (!p->parts[i])
                continue;
            Path of = at;
            path_enter(&of, p, i);
            Place part = acc_part(w, p, i, ct, presence);
            leave(w, from, p->parts[i], part.acc, part.presence, of);
        }
        return;
    }
    bool is_free = acc_is_free(p);
    if (!is_free && learn(w, from, p, &at, &(Whose){0}))
        return;
    Expr *acc = p->acc;
    Presence of_acc = p->presence;
    if (!is_free && place_take_apart(w->n, p, NULL)) { /* its parts may have two names */
        acc_set(w, p, acc, of_acc);
        w->n->program->changed = true;
        leave(w, from, p, ct, presence, at);
        return;
    }
    acc_move(w, p, ct, presence);
    if (is_free)
        vec_push(&from->given, ((PartGiven){p, at}));
}

void alias_leave(Way *w, Leaving *from, Place *result, Expr *ct) {
    leave(w, from, result, ct, PRESENT, (Path){0});
}

void alias_forget(Place *p) {
    p->aliases.len = 0;
    for (uint32_t i = 0; has_parts(p) && i < p->nparts; i++)
        if (p->parts[i])
            alias_forget(p->parts[i]);
}

/* Whether all returns give that slot there. */
static bool is_always_named(const Instance *callee, const Return *r) {
    size_t count = 0;
    for (size_t i = 0; i < callee->named.len; i++) {
        const Return *other = &callee->named.data[i];
        count += other->slot == r->slot && same_path(&other->first, &r->first) &&
                 same_path(&other->path, &r->path) && !other->whose.var;
    }
    return count == callee->returns.len;
}

void alias_take(Way *w, Step *s) {
    Instance *callee = s->instance;
    if (s->named_by == callee && s->nnamed == callee->named.len)
        return;
    alias_forget(s->place);
    s->named_by = callee;
    s->nnamed = callee->named.len;
    uint32_t index = frame_head(callee) - 1;
    for (size_t i = 0; i < callee->named.len; i++) {
        const Return *r = &callee->named.data[i];
        Place *part = find_part(w->n, s->place, &r->path);
        Place *whole = r->slot == IN_RESULT ? s->place : s->places[r->slot];
        Place *p = find_part(w->n, whole, &r->first);
        if (!part || !p) {
            reverse_give_up(w->n->program,
                            "a result is another name of a value that is used elsewhere");
            return;
        }
        if (part->aliases.len && is_always(&part->aliases.data[0]))
            continue;
        uint32_t number = callee->returns.len == 1 || is_always_named(callee, r) ? ALWAYS
                                                                                 : r->number;
        vec_push(&part->aliases, ((Alias){s->frame, index, number, p, r->whose}));
        w->n->program->changed = true;
    }
}
