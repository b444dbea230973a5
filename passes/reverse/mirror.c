/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives whose accumulators are cells.
 *
 * Note [Mirrors]. A list and what `nth` finds in it have a cell in common, and so have a list and `drop(2, xs)`, or in
 *
 *   foldl(fn (e, x) { e + foldl(fn (s, y) { s + (x - y) * (x - y) }, 0.0, xs) }, 0.0, xs)
 *
 * xs and what the outer fold has left of it. Which ones, the run decides, and neither the slots of a call nor the frame of a branch
 * say it (twice.c, alias.c). A program that is left for that is made once more with the cells of fig. 4.1 themselves. The way forth
 * makes a *mirror* for each value with floats: data of the same form, with a reference in place of each tensor, the cell; () stands for
 * what is a constant. Mirrors go where their values go. Functions take them behind their arguments, and give (value, mirror) in
 * place of the value:
 *
 *   def first(xs) { match (xs) { Cons(x, rest) => x * x, Nil => 0.0 } }
 *
 *   first_fwd(xs, m)   match (xs) { Cons(x, rest) => { let m_1 = ad.item(m, 0); let v = x * x; let m_2 = ad.mirror(v);
 *                                                      ((v, m_2), 0, x, m_1, m_2) }, Nil => ((0.0, ()), 1) }
 *   first_bwd(T)       if T.1 == 0 { let ct = ad.mirror_sum((), T.4); ad.mirror_add(T.3, ct * T.2 + ct * T.2) }
 *
 * So two names of one value have one mirror, and a way back finds in its frame the mirrors that it adds to, and gives nothing. The
 * result of an operator has a cell only where it leaves the steps that it is made in or is given to a call; all others have
 * accumulators, so that arithmetic is the code that it is elsewhere. No slot is shared, no result is another name, and no
 * function is replayed. What does nothing but find and hand on what is there, as `nth`, has no way back.
 *
 * This costs a cell for each tensor in data and each argument, where a tape costs a closure for each operator. A function that calls
 * what `checkpoint` gave keeps its tape.
 *
 * Note [Mirrors of sums]. In a derivative of a derivative, frames and cotangents are data, too: what the second one's frames hold are
 * names of what the first one's hold, so that a third one finds two names of a value in two chains of frames. A part that made code
 * reads, `k.2` or `ad.item(ct, 1)`, has the mirror of that part. A sum of cotangents that may be absent is, where one of them is,
 * the other one, with its mirror; where both are there, a new value, whose cell is added to both on the way back:
 *
 *   let ct = ad.add(a, b)              let m = ad.mirror_join(a, ma, b, mb); …       back:  ad.mirror_split(m, ma, mb)
 *   let ct = ad.add_part(acc, i, b)    the same of part i, and the other parts have the mirrors that they had
 */
#include "passes/reverse/mirror.h"

#include "passes/cells.h"
#include "passes/reverse/beside.h"

/* ---- which places have one --------------------------------------------------------------------- */

/* Gives one to a place that came as a whole, and with it to its parts. */
static void give(Place *p, Steps *where) {
    if (!p || p->mirror || !p->leaf)
        return;
    p->mirror = var_new(sym_intern("m"), b_some_type("mirror"), span_none());
    map_set(&where->defines, p->mirror, p->mirror);
    for (uint32_t i = 0; i < p->nparts; i++)
        give(p->parts[i], where);
}

static bool is_tensor(const Place *p) {
    return p->form == PLACE_LEAF && (p->is_tensor || type_resolve(p->type)->tag == TY_TENSOR);
}

/* Gives one to a value that leaves its steps. */
static void demand(Instance *n, Place *p) {
    if (!p || p->mirror)
        return;
    if (p->form == PLACE_CLOSURE)
        reverse_lack_data(n->program, "an active closure is a result");
    else if (!p->leaf)
        for (uint32_t i = 0; i < p->nparts; i++)
            demand(n, p->parts[i]);
    else if (is_tensor(p) && !p->depth && p->home) /* an operator may give a tuple, too */
        give(p, p->home);
    else
        reverse_refuse(n->program, "the parts of what an operator gives have two names");
}

static void demand_slots(Instance *n, const Step *call) {
    for (uint32_t i = 0; i < call->nslots; i++)
        demand(n, call->places[i]);
}

static bool reads_part(const Expr *e) {
    return e->kind == EXPR_PROJ || expr_calls_builtin(e, "ad.item");
}

static bool adds_part(const Expr *e) { return expr_calls_builtin(e, "ad.add_part"); }

static bool is_typed_tensor(const Expr *atom) { return type_resolve(atom->type)->tag == TY_TENSOR; }

/* Whether a step adds what may be absent, or have parts: Note [Mirrors of sums]. One of what makes a tensor may be absent. */
static bool joins(const Step *s) {
    const Expr *e = s->e;
    bool is_sum = adds_part(e) || expr_calls_builtin(e, "ad.add");
    return is_sum && !(is_typed_tensor(e->args[0]) && is_typed_tensor(e->args[1]));
}

static void demand_atom(Instance *n, const Expr *atom) { demand(n, place_of(n, atom)); }

static void find_in_builtin(Instance *n, const Step *s, Steps *steps) {
    const Expr *e = s->e;
    if (is_of_cells(e)) {
        Expr *args[MOST_CELL_ARGS];
        uint32_t nargs = args_of_cells(e, args);
        for (uint32_t i = 0; i < nargs; i++)
            if (beside_args(e) >> i & 1)
                demand_atom(n, args[i]);
        give(s->place, steps);
        return;
    }
    const Place *of = cells_is_own(e) ? place_of(n, e->args[0]) : NULL;
    if (reads_part(e)) {
        demand_atom(n, e->kind == EXPR_PROJ ? e->a : e->args[0]);
    } else if (joins(s)) {
        demand_atom(n, e->args[0]);
        demand_atom(n, e->args[e->nargs - 1]);
    } else if (!of) { /* numbers: it has accumulators, as an operator has */
        s->place->is_tensor = true;
        return;
    } else if (!is_tensor(of)) {
        demand_atom(n, e->args[0]);
    }
    give(s->place, steps);
}

static void find_in_steps(Instance *n, Steps *steps);

static void find_in_choices(Instance *n, const Step *s) {
    for (uint32_t i = 0; i < s->nchoices; i++) {
        const Choice *c = &s->choices[i];
        for (size_t k = 0; k < c->splits.len; k++)
            for (uint32_t part = 0; part < c->splits.data[k]->nparts; part++)
                give(c->splits.data[k]->parts[part], c->steps);
        find_in_steps(n, c->steps);
        if (c->steps->end == END_RETURN)
            demand(n, place_of(n, c->steps->result));
    }
}

static void find_in_steps(Instance *n, Steps *steps) {
    for (size_t i = 0; i < steps->steps.len && !n->program->why; i++) {
        Step *s = steps->steps.data[i];
        if (s->kind == STEP_BRANCH) {
            find_in_choices(n, s);
            give(s->place, steps);
        } else if (s->kind == STEP_CALL && s->is_custom) {
            if (!is_tensor(s->place))
                reverse_refuse(n->program, "data with two names has a derivative of its own");
        } else if (s->kind == STEP_CALL) {
            if (s->runs_again)
                reverse_refuse(n->program, "a checkpoint is given what has two names");
            demand_slots(n, s);
            give(s->place, steps);
            s->instance = instance_get(n->program, s->callee, s->known, s->active, s->shared,
                                       s->nslots, &s->slots);
        } else if (s->kind == STEP_BUILTIN) {
            find_in_builtin(n, s, steps);
        }
    }
    if (steps->end == END_LOOP)
        demand_slots(n, steps->branch);
    else if (steps->end == END_BRANCH)
        find_in_choices(n, steps->branch);
}

void mirrors_find(Instance *n) {
    for (uint32_t i = 0; i < n->nslots; i++)
        give(n->slots[i], n->body);
    if (n->program->why)
        return;
    find_in_steps(n, n->body);
    for (size_t i = 0; i < n->returns.len && !n->program->why; i++)
        demand(n, place_of(n, n->returns.data[i]->result));
}

/* ---- the way forth ------------------------------------------------------------------------------ */

static Expr *mirror_of_place(const Build *b, const Place *p) {
    if (!p)
        return b_absent(b, b_some_type("mirror"));
    if (p->mirror)
        return b_ref(b, p->mirror);
    if (p->form == PLACE_LEAF)
        BUG("a value without a mirror leaves its steps");
    Expr **parts = mem_new_n(Expr *, p->nparts + 1);
    for (uint32_t i = 0; i < p->nparts; i++)
        parts[i] = mirror_of_place(b, p->parts[i]);
    return p->form == PLACE_TUPLE ? b_tuple(b, parts, p->nparts)
                                  : ct_of_data(b, p->ctor, parts, p->nparts);
}

Expr *mirror_of(Instance *n, const Build *b, const Expr *atom) {
    return mirror_of_place(b, place_of(n, atom));
}

Expr **mirrors_of_slots(const Build *b, const Step *call) {
    Expr **mirrors = mem_new_n(Expr *, call->nslots + 1);
    for (uint32_t i = 0; i < call->nslots; i++)
        mirrors[i] = mirror_of_place(b, call->places[i]);
    return mirrors;
}

Expr *mirror_pair(Instance *n, const Build *b, Expr *atom) {
    Expr **two = mem_new_n(Expr *, 2);
    two[0] = atom;
    two[1] = mirror_of(n, b, atom);
    return b_tuple(b, two, 2);
}

void mirror_bind_parts(const Place *p, Block *into) {
    for (uint32_t i = 0; p->form != PLACE_LEAF && i < p->nparts; i++) {
        const Place *part = p->parts[i];
        if (!part || !part->mirror)
            continue;
        emit_let(into, part->mirror,
                 b_builtin(into->b, "ad.item", b_ref(into->b, p->mirror),
                           expr_int(i, DT_I32, into->b->span), NULL),
                 false);
        mirror_bind_parts(part, into);
    }
}

void mirror_take(const Step *s, Expr *pair, Block *into) {
    pair = block_let(into, "pair", pair);
    emit_let(into, s->var, expr_proj(pair, 0, s->var->type, into->b->span), false);
    emit_let(into, s->place->mirror, expr_proj(pair, 1, s->place->mirror->type, into->b->span),
             false);
    mirror_bind_parts(s->place, into);
}

/* Part i of an atom, or of a mirror. */
static Expr *item(const Build *b, Expr *of, Expr *i) {
    return b_builtin(b, "ad.item", of, i, NULL);
}

static Expr *join(Instance *n, const Build *b, Expr *one, Expr *of_one, Expr *other) {
    return b_builtin(b, "ad.mirror_join", one, of_one, other, mirror_of(n, b, other), NULL);
}

/* The mirror of a part that is read, or of a sum of what may be absent; NULL of other steps. */
static Expr *mirror_of_parts(Instance *n, const Step *s, Block *into) {
    const Build *b = into->b;
    Expr *e = s->e;
    if (e->kind == EXPR_PROJ)
        return item(b, mirror_of(n, b, e->a), expr_int(e->index, DT_I32, b->span));
    if (reads_part(e))
        return item(b, mirror_of(n, b, e->args[0]), e->args[1]);
    if (!joins(s))
        return NULL;
    Expr *of = mirror_of(n, b, e->args[0]);
    if (!adds_part(e))
        return join(n, b, e->args[0], of, e->args[1]);
    of = block_let(into, "m", of);
    Expr *before = block_let(into, "part", item(b, e->args[0], e->args[1]));
    Expr *of_before = block_let(into, "m", item(b, of, e->args[1]));
    Expr *part = block_let(into, "m", join(n, b, before, of_before, e->args[2]));
    return b_builtin(b, "ad.mirror_with_part", of, e->args[1], part, NULL);
}

static void bind_mirror(Place *p, Expr *made, Block *into) {
    emit_let(into, p->mirror, made, false);
    mirror_bind_parts(p, into);
}

void mirror_before_step(Instance *n, const Step *s, Block *into) {
    bool has = s->kind == STEP_BUILTIN && s->place && s->place->mirror && !is_of_cells(s->e);
    Expr *made = has ? mirror_of_parts(n, s, into) : NULL;
    if (made)
        bind_mirror(s->place, made, into);
}

/* What a builtin of cells does, of those that stand beside them. */
static void mirror_cells(Instance *n, const Step *s, Block *into) {
    Build b = {s->e->span}; /* where a write fails */
    Expr *args[MOST_CELL_ARGS], *of[MOST_CELL_ARGS];
    uint32_t nargs = args_of_cells(s->e, args);
    for (uint32_t i = 0; i < nargs; i++)
        of[i] = beside_args(s->e) >> i & 1 ? mirror_of(n, &b, args[i]) : NULL;
    Expr *made = beside(&b, s->e, of);
    if (!s->place)
        block_do(into, made);
    else if (s->place->mirror)
        bind_mirror(s->place, made, into);
}

void mirror_step(Instance *n, const Step *s, Block *into) {
    Place *p = s->place, *of = NULL;
    if (n->program->mirrors && s->kind == STEP_BUILTIN && is_of_cells(s->e)) {
        mirror_cells(n, s, into);
        return;
    }
    if (!p || !p->mirror || s->kind == STEP_PLAIN)
        return;
    if (s->kind == STEP_BUILTIN && (reads_part(s->e) || joins(s)))
        return; /* it is there */
    if (cells_is_own(s->e))
        of = place_of(n, s->e->args[0]);
    bind_mirror(
        p,
        of && !is_tensor(of)
            ? b_builtin(into->b, "ad.mirror_own", mirror_of_place(into->b, of), s->e->args[0], NULL)
            : b_builtin(into->b, "ad.mirror", b_ref(into->b, s->var), NULL),
        into);
}

void mirror_enter(const Choice *c, Block *into) {
    for (size_t k = 0; k < c->splits.len; k++) {
        Place whole = *c->splits.data[k];
        whole.mirror = c->wholes.data[k]->mirror;
        mirror_bind_parts(&whole, into);
    }
}

/* ---- the way back ------------------------------------------------------------------------------- */

static bool is_idle(Instance *n, Map *seen);

static bool choices_are_idle(const Step *s, Map *seen);

static bool steps_are_idle(Steps *steps, Map *seen) {
    for (size_t i = 0; i < steps->steps.len; i++) {
        const Step *s = steps->steps.data[i];
        if (!s->place || s->kind == STEP_PLAIN)
            continue;
        if (s->kind == STEP_BRANCH ? !choices_are_idle(s, seen) : !is_idle(s->instance, seen))
            return false;
    }
    return steps->end != END_BRANCH || choices_are_idle(steps->branch, seen);
}

static bool choices_are_idle(const Step *s, Map *seen) {
    for (uint32_t i = 0; i < s->nchoices; i++)
        if (!steps_are_idle(s->choices[i].steps, seen))
            return false;
    return true;
}

/* Whether a function, and what it calls, does nothing but find and hand on what is there, as `nth` does. NULL: no function is
 * called. */
static bool is_idle(Instance *n, Map *seen) {
    return n && (!map_enter(seen, n) || steps_are_idle(n->body, seen));
}

/* A call of which the frame tells all. */
void mirror_way_call(Way *w, const Step *s, Expr *ct) {
    Map seen = {0};
    if (is_idle(s->instance, &seen))
        return;
    const char *out;
    CallOfBack of = {.frame = b_ref(&w->build, s->frame), .call = s->e};
    Expr *call = back_call(w, s->instance, s->places, &of, ct, &out);
    call->type = b_some_type("ct"); /* so that it is read again where a derivative follows it */
    block_do(w->block, call);
}

static void way_join(Way *w, const Step *s) {
    const Build *b = &w->build;
    const Expr *e = s->e;
    Expr *sum = b_ref(b, s->place->mirror), *one = mirror_of(w->n, b, e->args[0]);
    Expr *other = mirror_of(w->n, b, e->args[e->nargs - 1]);
    if (adds_part(e)) {
        sum = block_let(w->block, "m", item(b, sum, e->args[1]));
        one = block_let(w->block, "m", item(b, one, e->args[1]));
    }
    block_do(w->block, b_builtin(b, "ad.mirror_split", sum, one, other, NULL));
}

bool mirror_way_builtin(Way *w, const Step *s) {
    if (s->kind != STEP_BUILTIN || reads_part(s->e) || is_of_cells(s->e))
        return s->kind == STEP_BUILTIN;
    if (joins(s)) {
        way_join(w, s);
        return true;
    }
    const Place *of = cells_is_own(s->e) ? place_of(w->n, s->e->args[0]) : NULL;
    if (!of || (is_tensor(of) && !of->mirror))
        return false;
    block_do(w->block, b_builtin(&w->build, "ad.mirror_move", b_ref(&w->build, s->place->mirror),
                                 mirror_of_place(&w->build, of), NULL));
    return true;
}
