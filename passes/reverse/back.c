/* SPDX-License-Identifier: Apache-2.0 */
/* The way back: for each end of a function, its steps in reverse order, each adding to the accumulators of what it
 * read. Nothing is emitted for a value whose accumulator is known to be absent. */
#include "passes/reverse/internal.h"

static void refuse(Way *w, const char *why) { reverse_refuse(w->n->program, why); }

/* ---- joining -------------------------------------------------------------------------------- */

typedef struct Saved {
    Presence presence;
    Expr *acc;
} Saved;

static Saved *save_accs(Instance *n) {
    Saved *s = mem_new_n(Saved, n->leaves.len + 1);
    for (size_t i = 0; i < n->leaves.len; i++)
        s[i] = (Saved){n->leaves.data[i]->presence, n->leaves.data[i]->acc};
    return s;
}

static void restore_accs(Instance *n, const Saved *s) {
    for (size_t i = 0; i < n->leaves.len; i++) {
        n->leaves.data[i]->presence = s[i].presence;
        n->leaves.data[i]->acc = s[i].acc;
    }
}

void way_choose(Way *w, const Arms *arms) {
    Instance *n = w->n;
    Saved *before = save_accs(n), **after = mem_new_n(Saved *, arms->narms);
    Block *outer = w->block, *blocks = mem_new_n(Block, arms->narms);
    for (uint32_t i = 0; i < arms->narms && !n->program->why; i++) {
        restore_accs(n, before);
        blocks[i].b = &w->build;
        w->block = &blocks[i];
        arms->run(w, arms->ctx, i);
        after[i] = save_accs(n);
    }
    w->block = outer;
    restore_accs(n, before);
    if (n->program->why)
        return;
    VEC(size_t) changed = {0};
    for (size_t k = 0; k < n->leaves.len; k++) {
        bool any = false;
        for (uint32_t i = 0; i < arms->narms; i++)
            any |= after[i][k].presence != before[k].presence || after[i][k].acc != before[k].acc;
        if (any)
            vec_push(&changed, k);
    }
    if (!changed.len)
        return;
    Expr *all = NULL;
    for (uint32_t i = arms->narms; i-- > 0;) {
        Expr **values = mem_new_n(Expr *, changed.len);
        for (size_t c = 0; c < changed.len; c++) {
            const Saved *s = &after[i][changed.data[c]];
            values[c] = s->presence == ABSENT ? absent_value(w) : s->acc;
        }
        Expr *value = changed.len == 1 ? values[0]
                                       : b_tuple(&w->build, values, (uint32_t)changed.len);
        value = block_end(&blocks[i], value);
        if (arms->close)
            value = arms->close(w, arms->ctx, i, value);
        all = all ? b_if(&w->build, arms->tests[i], value, all) : value;
    }
    if (all->kind == EXPR_IF)
        all->type = b_some_type("ct");
    Expr *joined = way_bind(w, all, NULL);
    for (size_t c = 0; c < changed.len; c++) {
        size_t k = changed.data[c];
        Place *p = n->leaves.data[k];
        Presence presence = after[0][k].presence;
        for (uint32_t i = 1; i < arms->narms; i++)
            presence = presence_join(presence, after[i][k].presence);
        Expr *acc = joined;
        if (changed.len > 1)
            acc = way_bind(w, expr_proj(joined, (uint32_t)c, b_some_type("ct"), w->build.span),
                           presence == PRESENT && type_resolve(p->type)->tag == TY_TENSOR ? p->type
                                                                                          : NULL);
        p->presence = presence;
        p->acc = presence == ABSENT ? NULL : acc;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct Move {
    Place *place;
    Expr *acc;
    Presence presence;
} Move;

static void move_one(Way *w, Place *p, Expr *acc, Presence presence);

static void run_move(Way *w, void *ctx) {
    const Move *m = ctx;
    move_one(w, m->place, m->acc, m->presence);
}

/* Moves a cotangent to a result that is another name of p. */
static void acc_move(Way *w, Place *p, Expr *acc, Presence presence) {
    if (presence == ABSENT)
        return;
    Move m = {p, acc, presence};
    if (p->form == PLACE_LEAF)
        alias_each(w, &p, 1, run_move, &m);
    else
        move_one(w, p, acc, presence);
}

static void move_one(Way *w, Place *p, Expr *acc, Presence presence) {
    while (p->arm)
        p = p->arm;
    if (p->form == PLACE_CLOSURE) {
        refuse(w, "an active closure is a result");
        return;
    }
    if (!acc_is_free(p)) {
        refuse(w, "a result is another name of a value that is used elsewhere");
        return;
    }
    if (p->form == PLACE_LEAF) {
        acc_set(w, p, acc, presence);
        return;
    }
    /* one part at a time, so that a part that stands twice is seen */
    Place whole = *p;
    for (uint32_t i = 0; i < p->nparts; i++) {
        if (!p->parts[i])
            continue;
        Place leaf = {.form = PLACE_LEAF, .type = p->parts[i]->type};
        Place *one = &leaf;
        whole.parts = mem_new_n(Place *, p->nparts);
        whole.parts[i] = one;
        acc_set(w, &whole, acc, presence);
        acc_move(w, p->parts[i], leaf.acc, leaf.presence);
    }
}

void enter_arm(Way *w, const Choice *c) {
    for (size_t i = 0; i < c->wholes.len; i++) {
        Place *p = c->wholes.data[i];
        Presence presence = p->presence;
        Expr *acc = p->acc;
        p->arm = c->splits.data[i];
        acc_set(w, p, acc, presence);
    }
}

void leave_arm(Way *w, const Choice *c) {
    for (size_t i = c->wholes.len; i-- > 0;) {
        Place *p = c->wholes.data[i];
        Presence presence = acc_presence(p);
        const Place *arm = p->arm;
        Expr *acc = presence == ABSENT ? NULL : acc_get(w, p);
        acc_set(w, p, NULL, ABSENT);
        p->arm = NULL;
        if (arm && arm->form == PLACE_DATA &&
            !arm->nparts) { /* it is the end of a list: it stands for itself */
            acc = expr_new(EXPR_CTOR, b_some_type("ct"), w->build.span);
            acc->ctor = arm->ctor;
            presence = PRESENT;
        }
        p->presence = presence;
        p->acc = acc;
    }
}

static void collect_leaves(Place *p, Map *seen, bool *twice) {
    while (p->arm)
        p = p->arm;
    if (p->form == PLACE_LEAF) {
        *twice |= map_has(seen, p);
        map_set(seen, p, p);
        return;
    }
    for (uint32_t i = 0; i < p->nparts; i++)
        if (p->parts[i])
            collect_leaves(p->parts[i], seen, twice);
}

static void way_call(Way *w, Step *s, Expr *ct) {
    Program *program = w->n->program;
    if (s->is_custom) {
        way_custom(w, s, ct);
        return;
    }
    Map seen = {0};
    bool twice = false;
    for (uint32_t i = 0; i < s->nslots; i++) {
        collect_leaves(s->places[i], &seen, &twice);
        if (!s->shared[i] && !acc_is_free(s->places[i]))
            s->shared[i] = program->changed = true;
    }
    if (twice) {
        refuse(w, "a call is given one value twice");
        return;
    }
    Instance *callee = instance_get(program, s->callee, s->known, s->active, s->shared, s->nslots,
                                    &s->slots);
    if (!callee)
        return;
    s->instance = callee;
    Expr **args = mem_new_n(Expr *, s->nslots + 2);
    uint32_t nargs = 0;
    args[nargs++] = s->runs_again ? own_run_again(w, s, callee) : b_ref(&w->build, s->frame);
    args[nargs++] = ct;
    for (uint32_t i = 0; i < s->nslots; i++)
        if (s->shared[i])
            args[nargs++] = acc_get(w, s->places[i]);
    if (s->runs_again && callee->named.len)
        refuse(w, "a checkpoint gives a value that is used elsewhere");
    alias_take(w, s);
    Expr *f = expr_global(callee->back, b_some_type("f"), w->build.span);
    Expr *r = way_bind(w, b_call(&w->build, f, args, nargs, 0), NULL);
    for (uint32_t i = 0; i < s->nslots; i++) {
        Place *p = s->places[i];
        Presence out = callee->slots[i].out;
        Expr *acc = r;
        if (s->nslots > 1) {
            bool known = out == PRESENT && type_resolve(p->type)->tag == TY_TENSOR;
            acc = way_bind(w, expr_proj(r, i, b_some_type("ct"), w->build.span),
                           known ? p->type : NULL);
        }
        acc_set(w, p, acc, out);
    }
}

typedef struct BranchWay {
    Step *s;
    Expr *ct;
} BranchWay;

static void run_choice(Way *w, void *ctx, uint32_t i) {
    BranchWay *b = ctx;
    Choice *c = &b->s->choices[i];
    enter_arm(w, c);
    Place *result = place_of(w->n, c->steps->result);
    bool named = alias_is_choice(b->s, i);
    if (result && !named && !acc_is_free(result))
        named = alias_learn_choice(w, b->s, i, result);
    if (result && !named)
        acc_move(w, result, b->ct, PRESENT);
    way_steps(w, c->steps);
    leave_arm(w, c);
}

static void save_vars(VarVec *saved, Expr *code, const Map *defines) {
    VarVec vars = {0};
    expr_free_vars(code, &vars);
    for (size_t i = 0; i < vars.len; i++) {
        Var *v = vars.data[i];
        bool known = !map_has(defines, v);
        for (size_t k = 0; !known && k < saved->len; k++)
            known = saved->data[k] == v;
        if (!known)
            vec_push(saved, v);
    }
}

/* Takes what the arm's way back reads out of the frame of the branch. */
static Expr *close_choice(Way *w, void *ctx, uint32_t i, Expr *body) {
    BranchWay *b = ctx;
    Choice *c = &b->s->choices[i];
    save_vars(&c->saved, body, &c->steps->defines);
    for (size_t k = c->saved.len; k-- > 0;) {
        Var *v = c->saved.data[k];
        Expr *from = expr_proj(b_ref(&w->build, b->s->frame), (uint32_t)k + 2, v->type,
                               w->build.span);
        body = expr_let(v, from, body);
    }
    return body;
}

static Expr *equals(Way *w, Expr *tag, uint32_t i) {
    Expr **two = mem_new_n(Expr *, 2);
    two[0] = tag;
    two[1] = expr_int(i, DT_I32, w->build.span);
    return b_op(&w->build, &op_equal, two, 2, type_scalar(DT_BOOL));
}

static void way_branch(Way *w, Step *s, Expr *ct) {
    BranchWay b = {s, ct};
    Expr *frame = b_ref(&w->build, s->frame);
    Expr *tag = way_bind(w, expr_proj(frame, 1, type_scalar(DT_I32), w->build.span),
                         type_scalar(DT_I32));
    Expr **tests = mem_new_n(Expr *, s->nchoices + 1);
    for (uint32_t i = 0; i + 1 < s->nchoices; i++)
        tests[i] = equals(w, tag, i);
    way_choose(w, &(Arms){s->nchoices, tests, run_choice, close_choice, &b});
}

typedef struct Perhaps {
    Step *s;
    Expr *ct;
} Perhaps;

static void run_call(Way *w, void *ctx) {
    const Perhaps *p = ctx;
    way_call(w, p->s, p->ct);
}

static void run_builtin(Way *w, void *ctx) {
    const Perhaps *p = ctx;
    way_builtin(w, p->s, p->ct);
}

static void way_step(Way *w, Step *s, Expr *ct) {
    Perhaps p = {s, ct};
    Place **places = s->places;
    uint32_t n = s->nslots;
    switch (s->kind) {
    case STEP_PLAIN: return;
    case STEP_OPERATOR: way_operator(w, s, ct); return;
    case STEP_BUILTIN:
        n = s->e->kind == EXPR_PROJ ? 1 : s->e->nargs;
        places = mem_new_n(Place *, n + 1);
        for (uint32_t i = 0; i < n; i++)
            places[i] = place_of(w->n, s->e->kind == EXPR_PROJ ? s->e->a : s->e->args[i]);
        alias_each(w, places, n, run_builtin, &p);
        return;
    case STEP_CALL: alias_each(w, places, n, run_call, &p); return;
    case STEP_BRANCH: way_branch(w, s, ct); return;
    }
}

static void run_perhaps(Way *w, void *ctx, uint32_t i) {
    Perhaps *p = ctx;
    Expr *ct = p->ct;
    if (i != 1)
        return;
    if (type_resolve(p->s->place->type)->tag == TY_TENSOR) { /* here it is there */
        ct = expr_copy(ct);
        ct->type = p->s->place->type;
    }
    way_step(w, p->s, ct);
}

void way_steps(Way *w, Steps *steps) {
    for (size_t i = steps->steps.len; i-- > 0 && !w->n->program->why;) {
        Step *s = steps->steps.data[i];
        if (!s->place || s->kind == STEP_PLAIN)
            continue;
        Presence presence = acc_presence(s->place);
        if (presence == ABSENT)
            continue;
        w->build.span = s->e->span;
        Expr *ct = acc_get(w, s->place);
        if (ct->kind != EXPR_VAR)
            ct = way_bind(w, ct, NULL);
        acc_set(w, s->place, NULL, ABSENT);
        ct = acc_settle(w, s->place, ct);
        if (presence == PRESENT) {
            way_step(w, s, ct);
            continue;
        }
        Perhaps p = {s, ct};
        Expr *test = b_builtin(&w->build, "ad.is_zero", ct, NULL);
        way_choose(w, &(Arms){2, &test, run_perhaps, NULL, &p});
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void enter_path(Way *w, const Steps *end) {
    if (end->outer) {
        enter_path(w, end->outer);
        enter_arm(w, end->choice);
    }
}

static void learn(Program *p, Presence *known, Presence found) {
    Presence joined = presence_join(*known, found);
    p->changed |= joined != *known;
    *known = joined;
}

/* The accumulators of all slots as arguments of the next frame's way back, or as the result. */
static Expr *end_value(Way *w, Expr *chain) {
    Instance *n = w->n;
    Expr **args = mem_new_n(Expr *, n->nslots + 2);
    uint32_t nargs = 0;
    if (chain)
        args[nargs++] = chain;
    for (uint32_t i = 0; i < n->nslots; i++) {
        Slot *slot = &n->slots[i];
        args[nargs++] = acc_get(w, slot->place);
        learn(n->program, chain ? &slot->entry : &slot->out, acc_presence(slot->place));
        if (chain)
            slot->out = slot->entry;
    }
    if (chain)
        return b_call(&w->build, expr_global(n->pop, b_some_type("f"), w->build.span), args, nargs,
                      0);
    return n->nslots == 1 ? args[0] : b_tuple(&w->build, args, n->nslots);
}

/* Makes end->back: what follows the frame of that end; free in it are the variables of its frame. */
static void make_end(Instance *n, Steps *end, Expr **accs, Expr *ct, Expr *chain) {
    Block block = {0};
    Way w = {n, &block, {n->fn->span}};
    block.b = &w.build;
    places_reset(n);
    for (uint32_t i = 0; i < n->nslots; i++)
        if (end->end == END_RETURN && n->slots[i].place->shared)
            acc_set(&w, n->slots[i].place, accs[i], PERHAPS);
    enter_path(&w, end);
    if (end->end == END_RETURN) {
        Place *result = place_of(n, end->result);
        bool named = alias_is_return(n, end);
        if (result && !named && !acc_is_free(result))
            named = alias_learn_return(n, end, result);
        if (result && !named)
            acc_move(&w, result, ct, PRESENT);
    } else {
        const Step *s = end->branch;
        for (uint32_t i = 0; i < n->nslots; i++) {
            if (n->slots[i].place->shared)
                acc_set(&w, s->places[i], accs[i], n->slots[i].entry);
            else
                acc_move(&w, s->places[i], accs[i], n->slots[i].entry);
        }
    }
    for (Steps *at = end; at && !n->program->why; at = at->outer) {
        way_steps(&w, at);
        if (at->outer)
            leave_arm(&w, at->choice);
    }
    if (n->program->why)
        return;
    end->back = block_end(&block, end_value(&w, chain));
    Map own = {0}, outside = {0};
    VarVec vars = {0};
    expr_free_vars(end->back, &vars);
    for (size_t i = 0; i < vars.len; i++)
        map_set(&outside, vars.data[i], vars.data[i]);
    for (uint32_t i = 0; i < n->nslots; i++)
        if (accs[i])
            map_remove(&outside, accs[i]->var);
    if (ct)
        map_remove(&outside, ct->var);
    if (chain)
        map_remove(&outside, chain->kind == EXPR_PROJ ? chain->a->var : chain->var);
    (void)own;
    save_vars(&end->saved, end->back, &outside);
}

void instance_make_back(Instance *n) {
    Build b = {n->fn->span};
    bool loops = n->loops.len > 0;
    /* (T, ct, shared accumulators) */
    Var **params = mem_new_n(Var *, n->nslots + 2);
    Expr **accs = mem_new_n(Expr *, n->nslots + 1);
    uint32_t nparams = 2;
    params[0] = b_var(&b, "T", b_some_type("frame"));
    params[1] = b_var(&b, "ct", b_some_type("ct"));
    Type *result = type_resolve(n->fn->fn->body->type);
    if (result->tag == TY_TENSOR)
        params[1]->type = result;
    for (uint32_t i = 0; i < n->nslots; i++) {
        if (!n->slots[i].place->shared)
            continue;
        params[nparams] = b_var(&b, "acc", b_some_type("ct"));
        accs[i] = b_ref(&b, params[nparams++]);
    }
    Expr *frame = b_ref(&b, params[0]);
    Expr *chain = loops ? expr_proj(frame, 1, b_some_type("frames"), b.span) : NULL;
    for (size_t i = 0; i < n->returns.len && !n->program->why; i++)
        make_end(n, n->returns.data[i], accs, b_ref(&b, params[1]), chain);
    n->back_fn = b_fn(&b, "back", params, nparams, b_unit(&b));
    if (!loops)
        return;
    Var **pop = mem_new_n(Var *, n->nslots + 1);
    Expr **all = mem_new_n(Expr *, n->nslots + 1);
    pop[0] = b_var(&b, "k", b_some_type("frames"));
    for (uint32_t i = 0; i < n->nslots; i++) {
        Place *p = n->slots[i].place;
        bool known = n->slots[i].entry == PRESENT && type_resolve(p->type)->tag == TY_TENSOR;
        pop[i + 1] = b_var(&b, "acc", known ? p->type : b_some_type("ct"));
        all[i] = b_ref(&b, pop[i + 1]);
    }
    Expr *next = expr_proj(b_ref(&b, pop[0]), 0, b_some_type("frames"), b.span);
    for (size_t i = 0; i < n->loops.len && !n->program->why; i++)
        make_end(n, n->loops.data[i], all, NULL, next);
    n->pop_fn = b_fn(&b, "pop", pop, n->nslots + 1, b_unit(&b));
}
