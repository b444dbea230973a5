/* SPDX-License-Identifier: Apache-2.0 */
/* The way back: for each end of a function, its steps in reverse order, each adding to the accumulators of what it
 * read. Nothing is emitted for a value whose accumulator is known to be absent. */
#include "passes/reverse/internal.h"

#include <string.h>

static void refuse(Way *w, const char *why) { reverse_refuse(w->n->program, why); }

/* ---- joining -------------------------------------------------------------------------------- */

typedef struct Saved {
    Presence presence;
    Expr *acc;
} Saved;

/* Of all leaves that there were: what is learnt on the way adds some (alias.c), and this round is for nothing then. */
typedef struct SavedAccs {
    size_t n;
    Saved *leaves;
} SavedAccs;

static SavedAccs save_accs(const Instance *n) {
    SavedAccs s = {n->leaves.len, mem_new_n(Saved, n->leaves.len + 1)};
    for (size_t i = 0; i < s.n; i++)
        s.leaves[i] = (Saved){n->leaves.data[i]->presence, n->leaves.data[i]->acc};
    return s;
}

static Saved saved_acc(const SavedAccs *s, size_t i) {
    return i < s->n ? s->leaves[i] : (Saved){ABSENT, NULL};
}

static void restore_accs(Instance *n, const SavedAccs *s) {
    for (size_t i = 0; i < n->leaves.len; i++) {
        n->leaves.data[i]->presence = saved_acc(s, i).presence;
        n->leaves.data[i]->acc = saved_acc(s, i).acc;
    }
}

void way_choose(Way *w, const Arms *arms) {
    Instance *n = w->n;
    SavedAccs before = save_accs(n), *after = mem_new_n(SavedAccs, arms->narms);
    Block *outer = w->block, *blocks = mem_new_n(Block, arms->narms);
    for (uint32_t i = 0; i < arms->narms && !n->program->why; i++) {
        restore_accs(n, &before);
        blocks[i].b = &w->build;
        w->block = &blocks[i];
        arms->run(w, arms->ctx, i);
        after[i] = save_accs(n);
    }
    w->block = outer;
    restore_accs(n, &before);
    if (n->program->why)
        return;
    VEC(size_t) changed = {0};
    for (size_t k = 0; k < n->leaves.len; k++) {
        bool any = false;
        for (uint32_t i = 0; i < arms->narms; i++)
            any |= saved_acc(&after[i], k).presence != saved_acc(&before, k).presence ||
                   saved_acc(&after[i], k).acc != saved_acc(&before, k).acc;
        if (any)
            vec_push(&changed, k);
    }
    if (!changed.len)
        return;
    Expr *all = NULL;
    for (uint32_t i = arms->narms; i-- > 0;) {
        Expr **values = mem_new_n(Expr *, changed.len);
        for (size_t c = 0; c < changed.len; c++) {
            Saved s = saved_acc(&after[i], changed.data[c]);
            values[c] = s.presence == ABSENT ? absent_value(w) : s.acc;
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
        Presence presence = saved_acc(&after[0], k).presence;
        for (uint32_t i = 1; i < arms->narms; i++)
            presence = presence_join(presence, saved_acc(&after[i], k).presence);
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

void acc_move(Way *w, Place *p, Expr *acc, Presence presence) {
    if (presence == ABSENT)
        return;
    Move m = {p, acc, presence};
    if (p->form == PLACE_LEAF)
        alias_each(w, &p, 1, run_move, &m);
    else
        move_one(w, p, acc, presence);
}

Place acc_part(Way *w, const Place *p, uint32_t i, Expr *acc, Presence presence) {
    Place leaf = {.form = PLACE_LEAF, .type = p->parts[i]->type};
    Place whole = *p;
    whole.parts = mem_new_n(Place *, p->nparts);
    whole.parts[i] = &leaf;
    acc_set(w, &whole, acc, presence);
    return leaf;
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
    for (uint32_t i = 0; i < p->nparts; i++) {
        if (!p->parts[i])
            continue;
        Place part = acc_part(w, p, i, acc, presence);
        acc_move(w, p->parts[i], part.acc, part.presence);
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

/* Note [Cotangents of tuples]. The cotangent of a result that is a tuple goes to the way back part by part, and there is
 * an instance for what is known of the parts: in `jvp(f)(x, t).1` the first one is absent, and with it half of what the
 * way back would ask when running. The text of a cotangent says that: `(0d1)` is a triple whose first part is absent, whose
 * second one is a float64 that is there, and whose last one is there and has the type of that part of the result. */
enum { DEEPEST_SEED = 3, MOST_PARTS = 16, LONGEST_SEED = 64 };

static bool is_tensor(Type *t) { return t && type_resolve(t)->tag == TY_TENSOR; }

/* The type of a part of a result, NULL where the type of the whole does not say it. */
static Type *part_type(Type *result, uint32_t i) {
    result = result ? type_resolve(result) : NULL;
    return result && result->tag == TY_TUPLE && i < result->nargs ? result->args[i] : NULL;
}

static char seed_letter(const Expr *ct, Type *result) {
    Type *t = type_resolve(ct->type), **dims;
    uint32_t rank;
    DType dtype;
    if (ct->kind == EXPR_ZERO)
        return '0';
    if (!is_tensor(t))
        return '?';
    if (type_get_rank(t, &rank, &dims) && rank == 0 && type_get_dtype(t, &dtype) &&
        (dtype == DT_F32 || dtype == DT_F64))
        return dtype == DT_F32 ? 'f' : 'd';
    return is_tensor(result) ? '1' : '?';
}

/* result: the type that the callee says of its result. */
static void describe_seed(const Expr *ct, Type *result, int depth, Str *text) {
    if (ct->kind != EXPR_TUPLE || ct->nargs > MOST_PARTS || depth == DEEPEST_SEED ||
        text->len > LONGEST_SEED) {
        str_add_char(text, seed_letter(ct, result));
        return;
    }
    str_add_char(text, '(');
    for (uint32_t i = 0; i < ct->nargs; i++)
        describe_seed(ct->args[i], part_type(result, i), depth + 1, text);
    str_add_char(text, ')');
}

static const char *seed_of(const Expr *ct, Type *result) {
    Str text = {0};
    if (ct->kind != EXPR_TUPLE)
        return ANY_SEED;
    describe_seed(ct, result, 0, &text);
    return str_text(&text);
}

/* What follows the text of one cotangent. */
static const char *skip_seed(const char *seed) {
    if (*seed != '(')
        return seed + 1;
    for (seed++; *seed != ')';)
        seed = skip_seed(seed);
    return seed + 1;
}

static uint32_t count_parts(const char *seed) {
    uint32_t n = 0;
    for (seed++; *seed != ')'; n++)
        seed = skip_seed(seed);
    return n;
}

/* Adds what holds of both cotangents. */
static void join_seeds(const char *a, const char *b, Str *text) {
    if (*a != '(' || *b != '(' || count_parts(a) != count_parts(b)) {
        str_add_char(text, *a == *b && *a != '(' ? *a : '?');
        return;
    }
    str_add_char(text, '(');
    for (a++, b++; *a != ')'; a = skip_seed(a), b = skip_seed(b))
        join_seeds(a, b, text);
    str_add_char(text, ')');
}

/* The step's call runs forward once, so all its ways back are of one instance. */
static const char *learn_seed(Program *p, Step *s, const char *seed) {
    Str text = {0};
    if (!s->seed)
        s->seed = seed;
    join_seeds(s->seed, seed, &text);
    if (strcmp(s->seed, str_text(&text)) != 0) {
        s->seed = str_text(&text);
        p->changed = true;
    }
    return s->seed;
}

/* Adds the parts of a cotangent with that text to args: those that are not known to be absent. Gives the rest of the text. */
static const char *pass_seed(const char *seed, Expr *ct, Expr **args, uint32_t *nargs) {
    if (*seed != '(') {
        if (*seed != '0')
            args[(*nargs)++] = ct;
        return seed + 1;
    }
    seed++;
    for (uint32_t i = 0; *seed != ')'; i++)
        seed = pass_seed(seed, ct->args[i], args, nargs);
    return seed + 1;
}

/* The cotangent with that text of a result of that type, made of parameters. */
static Expr *take_seed(const Build *b, const char **seed, Type *result, Var **params,
                       uint32_t *nparams) {
    char c = *(*seed)++;
    if (c == '0')
        return b_absent(b, b_some_type("ct"));
    if (c != '(') {
        Type *t = c == 'f'   ? type_scalar(DT_F32)
                  : c == 'd' ? type_scalar(DT_F64)
                  : c == '1' ? type_resolve(result)
                             : b_some_type("ct");
        params[*nparams] = b_var(b, "ct", t);
        return b_ref(b, params[(*nparams)++]);
    }
    Expr **parts = mem_new_n(Expr *, MOST_PARTS);
    uint32_t n = 0;
    for (; **seed != ')'; n++)
        parts[n] = take_seed(b, seed, part_type(result, n), params, nparams);
    ++*seed;
    return b_tuple(b, parts, n);
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
    const char *seed = learn_seed(program, s, seed_of(ct, s->callee->fn->fn->body->type));
    Instance *callee = instance_get(program, s->callee, s->known, s->active, s->shared, seed,
                                    s->nslots, &s->slots);
    if (!callee)
        return;
    s->instance = callee;
    Expr **args = mem_new_n(Expr *, s->nslots + strlen(seed) + 2);
    uint32_t nargs = 0;
    args[nargs++] = s->runs_again ? own_run_again(w, s, callee) : b_ref(&w->build, s->frame);
    pass_seed(seed, ct, args, &nargs);
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
    if (result)
        alias_leave(w, &(Leaving){.branch = b->s, .choice = i}, result, b->ct);
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
    bool in_parts = (s->kind == STEP_CALL && !s->is_custom) || s->kind == STEP_BRANCH;
    if (ct->kind != EXPR_VAR && !in_parts)
        ct = way_bind(w, ct, NULL);
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

/* The cotangent of p, to which no more is added: of a tuple its parts. */
static Expr *settled(Way *w, Place *p) {
    while (p->arm)
        p = p->arm;
    if (acc_presence(p) == ABSENT)
        return absent_value(w);
    if (p->form != PLACE_TUPLE) {
        Expr *ct = acc_get(w, p);
        return acc_settle(w, p, ct->kind == EXPR_VAR ? ct : way_bind(w, ct, NULL));
    }
    Expr **parts = mem_new_n(Expr *, p->nparts + 1);
    for (uint32_t i = 0; i < p->nparts; i++)
        parts[i] = p->parts[i] ? settled(w, p->parts[i]) : absent_value(w);
    return b_tuple(&w->build, parts, p->nparts);
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
        Expr *ct = settled(w, s->place);
        acc_set(w, s->place, NULL, ABSENT);
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
    const Pop *pop = NULL;
    Expr **accs = mem_new_n(Expr *, n->nslots + 1);
    Expr *call = chain ? pop_call(w, chain, &pop) : NULL;
    for (uint32_t i = 0; i < n->nslots; i++) {
        Place *p = n->slots[i].place;
        learn(n->program, &n->slots[i].out, pop ? pop->entry[i] : acc_presence(p));
        if (!pop)
            accs[i] = acc_get(w, p);
    }
    return pop ? call : n->nslots == 1 ? accs[0] : b_tuple(&w->build, accs, n->nslots);
}

/* What follows the frame of that end; free in it are the variables of its frame. entry: of a loop, how the accumulators of
 * the slots are there before it. */
static Expr *make_end(Instance *n, Steps *end, Expr **accs, const Presence *entry, Expr *ct,
                      Expr *chain) {
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
        if (result)
            alias_leave(&w, &(Leaving){.end = end}, result, ct);
    } else {
        const Step *s = end->branch;
        for (uint32_t i = 0; i < n->nslots; i++) {
            if (n->slots[i].place->shared)
                acc_set(&w, s->places[i], accs[i], entry[i]);
            else
                acc_move(&w, s->places[i], accs[i], entry[i]);
        }
    }
    for (Steps *at = end; at && !n->program->why; at = at->outer) {
        way_steps(&w, at);
        if (at->outer)
            leave_arm(&w, at->choice);
    }
    if (n->program->why)
        return NULL;
    Expr *back = block_end(&block, end_value(&w, chain));
    Map outside = {0};
    VarVec vars = {0};
    expr_free_vars(back, &vars);
    for (size_t i = 0; i < vars.len; i++)
        map_set(&outside, vars.data[i], vars.data[i]);
    vec_clear(&vars);
    for (uint32_t i = 0; i < n->nslots; i++)
        if (accs[i])
            expr_free_vars(accs[i], &vars);
    if (ct)
        expr_free_vars(ct, &vars);
    for (size_t i = 0; i < vars.len; i++)
        map_remove(&outside, vars.data[i]);
    if (chain)
        map_remove(&outside, chain->kind == EXPR_PROJ ? chain->a->var : chain->var);
    save_vars(&end->saved, back, &outside);
    return back;
}

static void make_pop(Instance *n, Pop *pop) {
    Build b = {n->fn->span};
    Expr *next = expr_proj(b_ref(&b, pop->params[0]), 0, b_some_type("frames"), b.span);
    pop->backs = mem_new_n(Expr *, n->loops.len + 1);
    for (size_t i = 0; i < n->loops.len && !n->program->why; i++)
        pop->backs[i] = make_end(n, n->loops.data[i], pop->accs, pop->entry, NULL, next);
    pop->fn = b_fn(&b, "pop", pop->params, pop->nparams, b_unit(&b));
}

static Pop *next_pop(const Instance *n, const Map *made) {
    for (size_t i = 0; i < n->pops.len; i++)
        if (n->pops.data[i]->reached && !map_has(made, n->pops.data[i]))
            return n->pops.data[i];
    return NULL;
}

void instance_make_back(Instance *n) {
    Build b = {n->fn->span};
    /* (T, ct, shared accumulators) */
    Var **params = mem_new_n(Var *, n->nslots + strlen(n->seed) + 2);
    Expr **accs = mem_new_n(Expr *, n->nslots + 1);
    uint32_t nparams = 1;
    params[0] = b_var(&b, "T", b_some_type("frame"));
    const char *seed = n->seed;
    Type *result = type_resolve(n->fn->fn->body->type);
    Expr *ct = take_seed(&b, &seed, result, params, &nparams);
    if (ct->kind == EXPR_VAR && result->tag == TY_TENSOR)
        params[1]->type = ct->type = result;
    for (uint32_t i = 0; i < n->nslots; i++) {
        if (!n->slots[i].place->shared)
            continue;
        params[nparams] = b_var(&b, "acc", b_some_type("ct"));
        accs[i] = b_ref(&b, params[nparams++]);
    }
    for (size_t i = 0; i < n->pops.len; i++)
        n->pops.data[i]->reached = false;
    Expr *frame = b_ref(&b, params[0]);
    Expr *chain = n->loops.len ? expr_proj(frame, 1, b_some_type("frames"), b.span) : NULL;
    for (size_t i = 0; i < n->returns.len && !n->program->why; i++) {
        Steps *end = n->returns.data[i];
        end->back = make_end(n, end, accs, NULL, ct, chain);
    }
    n->back_fn = b_fn(&b, "back", params, nparams, b_unit(&b));
    Map made = {0};
    for (Pop *pop; !n->program->why && (pop = next_pop(n, &made));) {
        map_set(&made, pop, pop);
        make_pop(n, pop);
    }
}
