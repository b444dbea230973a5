/* SPDX-License-Identifier: Apache-2.0 */
/* The way back: for each end of a function, its steps in reverse order, each adding to the accumulators of what it
 * read. Nothing is emitted for a value whose accumulator is known to be absent. */
#include "passes/cells.h"
#include "passes/reverse/mirror.h"
#include "passes/reverse/twice.h"
#include "passes/subst.h"

#include <stdlib.h>
#include <string.h>

/* ---- joining -------------------------------------------------------------------------------- */

/* What an arm makes of the accumulators that it changes. */
typedef struct ArmEnd {
    VEC(AccChange) changes;
    Map of; /* Place -> the number of its change, from 1 */
    bool dead;
} ArmEnd;

static AccChange end_of(const ArmEnd *arm, Place *p) {
    uintptr_t number = (uintptr_t)map_find(&arm->of, p);
    return number ? arm->changes.data[number - 1] : (AccChange){p, p->presence, p->acc};
}

/* Runs an arm, and takes back what it did to the accumulators: they are in `end`. */
static void run_arm(Way *w, const Arms *arms, uint32_t i, ArmEnd *end) {
    Instance *n = w->n;
    size_t mark = n->trail.len;
    arms->run(w, arms->ctx, i);
    for (size_t k = mark; k < n->trail.len; k++) {
        Place *p = n->trail.data[k].place;
        void **number = map_at(&end->of, p);
        if (*number)
            continue;
        vec_push(&end->changes, ((AccChange){p, p->presence, p->acc}));
        *number = (void *)(uintptr_t)end->changes.len;
    }
    while (n->trail.len > mark) {
        AccChange was = vec_pop(&n->trail);
        was.place->presence = was.presence;
        was.place->acc = was.acc;
    }
    end->dead = w->is_dead;
    w->is_dead = false;
}

static int compare_leaves(const void *a, const void *b) {
    uint32_t x = (*(Place *const *)a)->leaf, y = (*(Place *const *)b)->leaf;
    return x < y ? -1 : x > y;
}

typedef VEC(Place *) Places;

/* The leaves whose accumulators are not what they were behind some arm that has an end, in the order of leaves. */
static Places changed_leaves(const ArmEnd *ends, uint32_t narms) {
    Places changed = {0};
    Map seen;
    MapRoom room;
    map_begin(&seen, &room);
    for (uint32_t i = 0; i < narms; i++)
        for (size_t k = 0; !ends[i].dead && k < ends[i].changes.len; k++) {
            const AccChange *c = &ends[i].changes.data[k];
            if ((c->presence != c->place->presence || c->acc != c->place->acc) &&
                map_enter(&seen, c->place))
                vec_push(&changed, c->place);
        }
    map_end(&seen);
    if (changed.len)
        qsort(changed.data, changed.len, sizeof *changed.data, compare_leaves);
    return changed;
}

void way_choose(Way *w, const Arms *arms) {
    Instance *n = w->n;
    ArmEnd *ends = mem_new_n(ArmEnd, arms->narms + 1);
    Block *outer = w->block, *blocks = mem_new_n(Block, arms->narms);
    uint32_t first = arms->narms; /* of the arms of which all is known */
    n->nchoices++;
    for (uint32_t i = 0; i < arms->narms && !n->program->why; i++) {
        blocks[i].b = &w->build;
        w->block = &blocks[i];
        run_arm(w, arms, i, &ends[i]);
        if (first == arms->narms && !ends[i].dead)
            first = i;
    }
    n->nchoices--;
    w->block = outer;
    w->is_dead = first == arms->narms;
    if (n->program->why || w->is_dead)
        return;
    Places changed = changed_leaves(ends, arms->narms);
    bool writes = false; /* to cells */
    for (uint32_t i = 0; n->program->mirrors && i < arms->narms; i++)
        writes |= blocks[i].links.len > 0;
    if (!changed.len && !writes)
        return;
    Expr *all = NULL;
    for (uint32_t i = arms->narms; i-- > 0;) {
        Expr **values = mem_new_n(Expr *, changed.len);
        for (size_t c = 0; c < changed.len; c++) {
            AccChange end = end_of(&ends[i], changed.data[c]);
            values[c] = end.presence == ABSENT ? absent_value(w) : end.acc;
        }
        Expr *value = !changed.len       ? b_unit(&w->build)
                      : changed.len == 1 ? values[0]
                                         : b_tuple(&w->build, values, (uint32_t)changed.len);
        value = block_end(&blocks[i], value);
        if (arms->close)
            value = arms->close(w, arms->ctx, i, value);
        all = all ? b_if(&w->build, arms->tests[i], value, all) : value;
    }
    if (all->kind == EXPR_IF)
        all->type = changed.len || writes ? b_some_type("ct") : type_unit();
    if (!changed.len) {
        block_do(w->block, all);
        return;
    }
    Expr *joined = way_bind(w, all, NULL);
    for (size_t c = 0; c < changed.len; c++) {
        Place *p = changed.data[c];
        Presence presence = end_of(&ends[first], p).presence;
        for (uint32_t i = first + 1; i < arms->narms; i++)
            if (!ends[i].dead)
                presence = presence_join(presence, end_of(&ends[i], p).presence);
        Expr *acc = joined;
        if (changed.len > 1)
            acc = way_bind(w, expr_proj(joined, (uint32_t)c, b_some_type("ct"), w->build.span),
                           presence == PRESENT && type_resolve(p->type)->tag == TY_TENSOR ? p->type
                                                                                          : NULL);
        acc_put(w, p, presence == ABSENT ? NULL : acc, presence);
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
    p = place_here(p);
    if (p->form == PLACE_CLOSURE) {
        reverse_lack_data(w->n->program, "an active closure is a result");
        return;
    }
    if (!acc_is_free(p)) {
        reverse_give_up(w->n->program,
                        "a result is another name of a value that is used elsewhere");
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
        if (!p->mirror)
            acc_set(w, p, acc, presence);
    }
}

void leave_arm(Way *w, const Choice *c) {
    for (size_t i = c->wholes.len; i-- > 0;) {
        Place *p = c->wholes.data[i];
        if (p->mirror) {
            p->arm = NULL;
            continue;
        }
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
        acc_put(w, p, acc, presence);
    }
}

static void collect_leaves(Place *p, Map *seen, bool *twice) {
    p = place_here(p);
    if (p->form == PLACE_LEAF) {
        *twice |= map_has(seen, p);
        map_set(seen, p, p);
        return;
    }
    for (uint32_t i = 0; i < p->nparts; i++)
        if (p->parts[i])
            collect_leaves(p->parts[i], seen, twice);
}

/* What the callee takes apart is taken apart here, too, so that its parts go to the callee and come from it as they are. */
static void take_apart_like(Way *w, Place *p, Place *like) {
    p = place_here(p);
    like = place_here(like);
    Presence presence = p->presence;
    Expr *acc = p->acc;
    if (place_take_apart(w->n, p, like)) {
        acc_set(w, p, acc, presence);
        w->n->program->changed = true;
    }
    if (p->form != like->form || p->nparts != like->nparts || p->form == PLACE_CLOSURE)
        return;
    for (uint32_t i = 0; i < p->nparts; i++)
        if (p->parts[i] && like->parts[i])
            take_apart_like(w, p->parts[i], like->parts[i]);
}

/* Finds the slots that are shared, each of which is a value of its own. */
static Twice settle_slots(Way *w, Step *s) {
    if (s->kind == STEP_BRANCH)
        return TWICE_SPLIT; /* in this round, under another name */
    for (;;) {
        Map seen = {0};
        bool twice = false;
        for (uint32_t i = 0; i < s->nslots; i++) {
            collect_leaves(s->places[i], &seen, &twice);
            if (!s->shared[i] && !acc_is_free(s->places[i]))
                s->shared[i] = w->n->program->changed = true;
        }
        Twice found = twice ? twice_settle(w->n, s) : TWICE_NOT;
        if (!twice || found != TWICE_NOT)
            return found;
    }
}

static void way_call(Way *w, Step *s, Expr *ct) {
    Program *program = w->n->program;
    if (s->is_custom) {
        way_custom(w, s, ct);
        return;
    }
    if (program->mirrors) {
        mirror_way_call(w, s, ct);
        return;
    }
    switch (settle_slots(w, s)) {
    case TWICE_NOT: break;
    case TWICE_NEVER:
    case TWICE_SPLIT: w->is_dead = true; return;
    case TWICE_IN_PARTS: reverse_give_up(program, "a call is given one value twice"); return;
    }
    Instance *callee = instance_get(program, s->callee, s->known, s->active, s->shared, s->nslots,
                                    &s->slots);
    if (!callee)
        return;
    s->instance = callee;
    callee->runs_again |= s->runs_again;
    if (s->runs_again && callee->named.len)
        reverse_give_up(w->n->program, "a checkpoint gives a value that is used elsewhere");
    alias_take(w, s);
    for (uint32_t i = 0; i < s->nslots; i++) {
        take_apart_like(w, s->places[i], callee->slots[i]);
        if (s->shared[i] && !place_give_form(callee, callee->slots[i], s->places[i]))
            reverse_give_up(w->n->program, "a frame holds another name of a value");
    }
    Expr *frame = callee->replays ? NULL
                  : s->runs_again ? own_run_again(w, s, callee)
                                  : b_ref(&w->build, s->frame);
    Type **types = mem_new_n(Type *, s->nslots + 1);
    for (uint32_t i = 0; i < s->nslots; i++)
        types[i] = s->places[i]->type;
    const char *out;
    Expr *call = back_call(w, callee, s->places, &(CallOfBack){frame, s->e, types, NULL}, ct, &out);
    if (!out) {
        w->is_dead = true;
        return;
    }
    call->type = outline_type(callee, out, types);
    Results given = back_results(w->block, out, way_bind(w, call, call->type));
    for (uint32_t i = 0; i < s->nslots; i++) {
        Presence there = outline_presence(given.text);
        acc_set(w, s->places[i], outline_take_result(&given, callee->slots[i], types[i]), there);
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
    if (result && !w->n->program->mirrors)
        alias_leave(w, &(Leaving){.branch = b->s, .choice = i}, result, b->ct);
    way_steps(w, c->steps);
    leave_arm(w, c);
}

static void save_vars(VarVec *saved, const VarVec *vars, const Map *defines) {
    for (size_t i = 0; i < vars->len; i++) {
        Var *v = vars->data[i];
        bool known = !map_has(defines, v);
        for (size_t k = 0; !known && k < saved->len; k++)
            known = saved->data[k] == v;
        if (!known)
            vec_push(saved, v);
    }
}

/* The variable of which v is another name when the code runs, or v. */
static Var *first_name(Instance *n, Var *v) {
    for (;;) {
        const Step *s = map_find(&n->made_by, v);
        const Expr *of = s && (s->kind == STEP_PLAIN || s->kind == STEP_OPERATOR) ? s->e : NULL;
        if (of && of->kind == EXPR_CALL && step_is_identity(n, s))
            of = of->args[0];
        if (!of || of->kind != EXPR_VAR)
            return v;
        v = of->var;
    }
}

/* Whether the value is a part of a tensor that the way back has the first names of all for. */
static bool is_part_of_read(Instance *n, const Step *s, const Map *firsts) {
    bool is_call = s && (s->kind == STEP_PLAIN || s->kind == STEP_OPERATOR) && !s->rec && s->e &&
                   s->e->kind == EXPR_CALL && s->e->a->kind == EXPR_OP;
    if (!is_call || s->e->a->op != &op_index || type_has_rank0(s->e->type))
        return false;
    VarVec read = {0};
    expr_free_vars(s->e, &read);
    for (size_t i = 0; i < read.len; i++)
        if (!map_has(firsts, first_name(n, read.data[i])))
            return false;
    return true;
}

/* Whether v is bound here by what names first names and parts: in an arm, the variables of that arm. Those from outside
 * are left to the code around it, since a variable is bound once. */
static bool is_bound_here(const Map *defines, const Var *v) {
    return !defines || map_has(defines, v);
}

/* The same code, which reads parts of a tensor that it reads again: a frame keeps the tensor alone. */
static Expr *read_parts_again(Instance *n, Expr *code, VarVec *vars, const Map *defines) {
    Map firsts;
    MapRoom room;
    map_begin(&firsts, &room);
    for (size_t i = 0; i < vars->len; i++)
        map_set(&firsts, first_name(n, vars->data[i]), vars->data[i]);
    size_t left = 0;
    for (size_t i = 0; i < vars->len; i++) {
        Var *v = vars->data[i];
        const Step *s = map_find(&n->made_by, v);
        if (!is_bound_here(defines, v) || first_name(n, v) != v ||
            !is_part_of_read(n, s, &firsts)) {
            vars->data[left++] = v;
            continue;
        }
        map_remove(&firsts, v);
        VarVec read = {0};
        expr_free_vars(s->e, &read);
        Subst named = {0};
        for (size_t k = 0; k < read.len; k++)
            map_set(&named.vars, read.data[k],
                    expr_var(map_find(&firsts, first_name(n, read.data[k])), code->span));
        code = expr_let(v, expr_substitute(&named, s->e), code);
    }
    vars->len = left;
    map_end(&firsts);
    return code;
}

/* The same code, of first names: a frame holds no value twice, and none for a shape that another one has. vars: those that
 * are free in it, as expr_free_vars finds them. defines: the variables of the arm whose way back it is; NULL: of an end. */
static Expr *by_first_names(Instance *n, Expr *code, VarVec *vars, const Map *defines) {
    VarVec others = {0}, firsts = {0};
    expr_free_vars(code, &others);
    if (n->program->merges)
        code = read_parts_again(n, shape_of_kept(n, code, &others), &others, defines);
    Map seen;
    MapRoom room;
    map_begin(&seen, &room);
    for (size_t i = 0; i < others.len; i++) {
        Var *v = others.data[i], *first = first_name(n, v);
        if (first == v || !is_bound_here(defines, v))
            continue;
        Expr *value = expr_var(first, code->span);
        value->type = v->type;
        code = expr_let(v, value, code);
        map_set(&seen, v, v);
        vec_push(&firsts, first);
    }
    while (firsts.len) {
        Var *first = vec_pop(&firsts);
        if (map_enter(&seen, first))
            vec_push(vars, first);
    }
    for (size_t i = 0; i < others.len; i++)
        if (map_enter(&seen, others.data[i]))
            vec_push(vars, others.data[i]);
    map_end(&seen);
    return code;
}

/* Takes what the arm's way back reads out of the frame of the branch. */
static Expr *close_choice(Way *w, void *ctx, uint32_t i, Expr *body) {
    BranchWay *b = ctx;
    Choice *c = &b->s->choices[i];
    VarVec vars = {0};
    body = by_first_names(w->n, body, &vars, &c->steps->defines);
    save_vars(&c->saved, &vars, &c->steps->defines);
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
    if (s->asks)
        s->scrutinee = alias_ask(w->n->program, &w->build, s->asks->one, s->asks->other);
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
    bool in_parts = (s->kind == STEP_CALL && !s->is_custom) || s->kind == STEP_BRANCH ||
                    (s->kind == STEP_OPERATOR && ct->kind == EXPR_TUPLE);
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

/* A cotangent of that type to which no more is added: of a tuple its parts. */
static Expr *settled_value(Way *w, Type *type, Expr *ct) {
    if (ct->kind == EXPR_ZERO)
        return ct;
    if (ct->kind != EXPR_TUPLE)
        return acc_settle(w, type, ct->kind == EXPR_VAR ? ct : way_bind(w, ct, NULL));
    Expr **parts = mem_new_n(Expr *, ct->nargs + 1);
    for (uint32_t i = 0; i < ct->nargs; i++)
        parts[i] = settled_value(w, ct->args[i]->type, ct->args[i]);
    return b_tuple(&w->build, parts, ct->nargs);
}

static Expr *settled(Way *w, Place *p) {
    p = place_here(p);
    if (acc_presence(p) == ABSENT)
        return absent_value(w);
    bool record = p->form == PLACE_DATA && p->ctor->decl->nctors == 1 && p->nparts;
    if (p->form != PLACE_TUPLE && !record)
        return settled_value(w, p->type, acc_get(w, p));
    Expr **parts = mem_new_n(Expr *, p->nparts + 1);
    for (uint32_t i = 0; i < p->nparts; i++)
        parts[i] = p->parts[i] ? settled(w, p->parts[i]) : absent_value(w);
    return record ? ct_of_data(&w->build, p->ctor, parts, p->nparts)
                  : b_tuple(&w->build, parts, p->nparts);
}

/* Hands the cotangent of a stored value over, where that value has no other yet; false where it is to be added. */
static bool move_stored(Way *w, const Step *s, Presence presence) {
    Place *p = place_of(w->n, s->e->args[0]);
    p = place_here(p);
    bool whole = type_resolve(s->place->type)->tag == TY_TENSOR;
    if (whole && (p->aliases.len || !acc_is_free(p)))
        return false;
    Expr *acc = acc_get(w, s->place);
    acc_set(w, s->place, NULL, ABSENT);
    /* what may be data has the cells that are in it, so it may have no other */
    acc_move(w, p, acc, presence);
    return true;
}

/* Goes back through what takes no cotangent, as it is in cells already; false of other steps. */
static bool goes_back_by_cells(Way *w, Step *s) {
    bool is_call = s->kind == STEP_CALL && !s->is_custom;
    if (mirror_way_builtin(w, s))
        return true;
    if (is_call || s->kind == STEP_BRANCH)
        way_step(w, s, absent_value(w));
    return is_call || s->kind == STEP_BRANCH;
}

void way_steps(Way *w, Steps *steps) {
    bool mirrors = w->n->program->mirrors;
    for (size_t i = steps->steps.len; i-- > 0 && !w->n->program->why && !w->is_dead;) {
        Step *s = steps->steps.data[i];
        if (!s->place || s->kind == STEP_PLAIN)
            continue;
        w->build.span = s->e->span;
        if (mirrors && goes_back_by_cells(w, s))
            continue;
        Presence presence = acc_presence(s->place);
        if (presence == ABSENT)
            continue;
        if (!mirrors &&
            ((cells_is_own(s->e) && move_stored(w, s, presence)) || move_part(w, s, presence)))
            continue;
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

/* What follows the frame of that end; free in it are the variables of its frame. chain: the frames before it, where the
 * function is a loop. */
static Expr *make_end(Back *k, Steps *end, Expr *chain) {
    Instance *n = k->of;
    Block block = {0};
    Way w = {.n = n, .block = &block, .build = {n->fn->span}, .back = k};
    block.b = &w.build;
    places_reset(n);
    for (uint32_t i = 0; i < n->nslots; i++)
        if (end->end == END_RETURN && n->slots[i]->shared)
            acc_set(&w, n->slots[i], k->accs[i], k->entry[i]);
    enter_path(&w, end);
    if (n->program->mirrors) {
        /* the cells have all cotangents */
    } else if (end->end == END_RETURN) {
        Place *result = place_of(n, end->result);
        if (result)
            alias_leave(&w, &(Leaving){.end = end}, result, k->ct);
    } else {
        const Step *s = end->branch;
        for (uint32_t i = 0; i < n->nslots; i++)
            if (n->slots[i]->shared)
                acc_set(&w, s->places[i], k->accs[i], k->entry[i]);
        for (uint32_t i = 0; i < n->nslots; i++) /* one of them may be part of what is shared */
            if (!n->slots[i]->shared)
                acc_move(&w, s->places[i], k->accs[i], k->entry[i]);
    }
    for (Steps *at = end; at && !n->program->why; at = at->outer) {
        way_steps(&w, at);
        if (at->outer)
            leave_arm(&w, at->choice);
    }
    if (n->program->why || w.is_dead)
        return b_unit(&w.build);
    Expr *back = block_end(&block, chain ? back_call_loop(&w, chain) : back_give(&w));
    if (n->program->merges)
        back = gather_additions(back);
    VarVec vars = {0};
    back = by_first_names(n, back, &vars, NULL);
    Map outside = {0};
    for (size_t i = 0; i < vars.len; i++)
        map_set(&outside, vars.data[i], vars.data[i]);
    for (uint32_t i = 0; i < k->nparams; i++)
        map_remove(&outside, k->params[i]);
    if (k->before)
        map_remove(&outside, k->before);
    if (k->is_loop || !n->loops.len)
        back = keep_constants(n, back, &vars, &outside);
    save_vars(&end->saved, &vars, &outside);
    return back;
}

/* Whether the way back from that end goes back through calls before it gives anything. */
static bool end_calls(const Steps *end) {
    for (; end; end = end->outer)
        for (size_t i = 0; i < end->steps.len; i++)
            if (step_calls(end->steps.data[i]))
                return true;
    return false;
}

void back_make(Back *k) {
    Instance *n = k->of;
    Build b = {n->fn->span};
    bool is_being_made = n->is_being_made;
    k->state = BACK_MADE;
    n->is_being_made = true;
    Expr *chain = NULL;
    if (n->loops.len)
        chain = b_ref(&b, k->before = b_var(&b, "before", b_some_type("frames")));
    size_t nends = k->is_loop ? n->loops.len : n->returns.len;
    k->ways = mem_new_n(Expr *, nends + 1);
    if (k->is_loop)
        back_give_entry(&b, k);
    for (int calls = 0; calls < 2; calls++)
        for (size_t i = 0; i < nends && !n->program->why; i++) {
            Steps *end = k->is_loop ? n->loops.data[i] : n->returns.data[i];
            if (end_calls(end) == (bool)calls)
                k->ways[i] = make_end(k, end, chain);
        }
    for (size_t i = 0; !k->is_loop && i < n->backs.len && !n->program->why; i++)
        if (n->backs.data[i]->is_loop && n->backs.data[i]->state == BACK_WAITS)
            back_make(n->backs.data[i]); /* they tell what k gives */
    n->is_being_made = is_being_made;
}
