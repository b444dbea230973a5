/* SPDX-License-Identifier: Apache-2.0 */
/* Forward mode as code: a function whose active values are followed by their tangents.
 *
 *   fn (x, n) { if n == 0 { x } else { f(sin(x) * x, n - 1) } }      becomes, of an active x,
 *
 *   fn (x, n, dx) { if n == 0 { (x, dx) }
 *                   else { let v = sin(x); let dv = dx * cos(x);
 *                          let w = v * x;  let dw = dx * v + dv * x;  f.fwd(w, n - 1, dw) } }
 *
 * The steps are those of reverse mode (read.c), and the accumulator of a place holds its tangent. Nothing is kept for
 * a way back: calls in tail position stay there, and a loop is the loop it was.
 *
 * Note [Tangents of operators]. The tangent is the operator's `tangent` rule. Where it has none, it is made of the
 * derivative, while this code is written: a derivative h(ct) = Jᵀ ct is linear in the cotangent, so J t is what the
 * way back through h gives for ct when the results of h have the cotangents t (the double-vjp trick, J. Bradbury et
 * al.). The rule is read into steps like any function, and of its own values those remain that the way back reads.
 *
 * Note [Absent tangents]. A value that may be active is inactive at times (`if (c) { x } else { 1.0 }`); then its
 * tangent is () and adds nothing: with a zero in its place, x ** 3 at a negative x would give 0 * log(x). Presence is
 * found as far as it can be; what is left is asked when running. Of an argument for which the derivative gives (), as of
 * the second one of `expand_like`, the result has no tangent either. */
#include "passes/reverse/internal.h"
#include "passes/subst.h"

#include <string.h>

enum { MAX_PERHAPS = 5 }; /* arguments of one operator, for each subset of which code is written */

/* ---- presence -------------------------------------------------------------------------------- */

Presence tangent_presence(Place *p) {
    if (!p)
        return ABSENT;
    p = place_here(p);
    if (p->form == PLACE_LEAF)
        return p->presence;
    Presence all = p->partial ? ABSENT : UNKNOWN;
    bool any = false;
    for (uint32_t i = 0; i < p->nparts; i++) {
        if (!p->parts[i])
            continue;
        Presence part = tangent_presence(p->parts[i]);
        if (part == UNKNOWN)
            return UNKNOWN;
        all = presence_join(all, part);
        any = true;
    }
    return any ? all : p->is_empty ? PRESENT : ABSENT;
}

static bool lacks_part(const Place *p) {
    p = place_here(p);
    bool lacks = p->lacks;
    for (uint32_t i = 0; i < p->nparts && !lacks; i++)
        lacks = p->parts[i] && lacks_part(p->parts[i]);
    return lacks;
}

/* For other functions and ends: a tangent that is there has all parts, so one that lacks a part is there perhaps. */
static Presence presence_elsewhere(Place *p) {
    Presence presence = tangent_presence(p);
    return presence == PRESENT && lacks_part(p) ? PERHAPS : presence;
}

static bool is_there(Presence p) { return p == PRESENT || p == PERHAPS; }

/* ---- operators ------------------------------------------------------------------------------- */

/* Of the links from `begin` on those go whose variables nothing reads. */
static void drop_unread(Block *block, size_t begin, Expr *value) {
    Map read = {0};
    VarVec vars = {0};
    expr_free_vars(value, &vars);
    size_t n = block->links.len;
    bool *keep = mem_new_n(bool, n + 1);
    for (size_t i = n;; i--) {
        for (size_t k = 0; k < vars.len; k++)
            map_set(&read, vars.data[k], vars.data[k]);
        if (i == begin)
            break;
        const Expr *link = block->links.data[i - 1];
        vec_clear(&vars);
        keep[i - 1] = !link->var || map_has(&read, link->var);
        if (keep[i - 1])
            expr_free_vars(link->a, &vars);
    }
    block->links.len = begin;
    for (size_t i = begin; i < n; i++)
        if (keep[i])
            vec_push(&block->links, block->links.data[i]);
}

/* Gives the results of a rule their cotangents, which are the tangents of the operator's arguments. */
static void seed_rule(Way *w, Expr *result, Expr *const *tangents, uint32_t n, bool tuple) {
    Place *p = place_of(w->n, result);
    if (!p)
        return;
    if (!tuple) {
        if (tangents[0])
            acc_add(w, p, tangents[0]);
        return;
    }
    if (p->form == PLACE_TUPLE) {
        for (uint32_t i = 0; i < n && i < p->nparts; i++)
            if (p->parts[i] && tangents[i])
                acc_add(w, p->parts[i], tangents[i]);
        return;
    }
    Expr **parts = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        parts[i] = tangents[i] ? tangents[i] : absent_value(w);
    acc_set(w, p, b_tuple(&w->build, parts, n), PRESENT);
}

/* The derivative rule of an operator with the result v as an instance whose only active value is the cotangent. */
static Instance *read_rule(Instance *around, Expr *rule, Var *ct, const Expr *v) {
    Program *p = around->program;
    Build b = {rule->span};
    Known *self = known_new(b_fn(&b, "transpose", &ct, 1, rule));
    bool active = true;
    SlotMap one = slots_apart(1);
    Instance *h = instance_new(p, self, mem_new_n(Known *, 2), &active, 1, &one);
    h->is_rule = true;
    h->around = around;
    shape_know(&h->shapes, ct, shape_of_atom(around, NULL, v));
    instance_read(h);
    return h;
}

/* Gives the cotangents in the value of a rule the types of the arguments, which they have. */
static void type_parts(Expr *value, const Expr *call) {
    while (value->kind == EXPR_LET)
        value = value->body;
    if (value->kind != EXPR_TUPLE || value->nargs != call->nargs)
        return;
    for (uint32_t i = 0; i < call->nargs; i++) {
        Expr *part = value->args[i];
        Type *type = type_resolve(call->args[i]->type);
        if (part->kind == EXPR_CALL && type->tag == TY_TENSOR &&
            type_resolve(part->type)->tag != TY_TENSOR)
            part->type = type;
    }
}

/* Emits the tangent of an operator's result v from its derivative; NULL in tangents: that argument is inactive. */
static Expr *transpose(Way *w, const Expr *call, Expr *v, const Rule *rule, Expr **tangents) {
    Program *p = w->n->program;
    uint32_t n = call->nargs;
    Var *ct = b_var(&w->build, "ct", call->type);
    Expr **all = mem_new_n(Expr *, n + 2);
    memcpy(all, call->args, n * sizeof *all);
    all[n] = v;
    all[n + 1] = b_ref(&w->build, ct);
    RuleUse use = {w->n, all, n + 1, .identities = true, .follows = expr_is_internal(rule->fn)};
    shape_know(&use.shapes, ct, shape_of_atom(w->n, NULL, v));
    Expr *linear = rule_settle(&use, rule_expand(rule, call, all, n + 2));
    bool tuple = n > 1 || rule_gives_tuple(linear);
    type_parts(linear, call);
    Instance *h = read_rule(w->n, linear, ct, v);
    if (p->why)
        return v;
    Block block = {.b = &w->build};
    Way back = {.n = h, .block = &block, .build = w->build};
    places_reset(h);
    seed_rule(&back, h->body->result, tangents, n, tuple);
    way_steps(&back, h->body);
    if (p->why)
        return v;
    Place *place = h->slots[0];
    Presence presence = acc_presence(place);
    bool tensor = type_resolve(call->type)->tag == TY_TENSOR;
    Expr *dv = acc_get(&back, place);
    if (presence == ABSENT)
        dv = b_builtin(&w->build, "ad.zeros", v, NULL);
    else if (presence == PERHAPS || !tensor)
        dv = b_builtin(&w->build, "ad.dense", v, dv, NULL);
    else
        dv = acc_settle(&back, place->type, dv);
    /* the rule's own values come first; any value stands for the cotangent, of which they read the form */
    size_t begin = w->block->links.len;
    emit_let(w->block, ct, v, false);
    forward_steps(h, h->body, NULL, w->block);
    Subst copy = {0}; /* what an arm saved has the same name on the way back */
    Expr *rest = expr_substitute(&copy, block_end(&block, dv));
    for (; rest->kind == EXPR_LET; rest = rest->body)
        block_bind(w->block, rest, rest->a);
    drop_unread(w->block, begin, rest);
    return rest;
}

/* Emits the tangent that a `tangent` rule gives. It takes zeros for what is inactive. */
static Expr *expand_tangent(Way *w, const Expr *call, Expr *v, const Rule *rule, Expr **tangents) {
    uint32_t n = call->nargs;
    Expr **all = mem_new_n(Expr *, 2 * n + 1);
    memcpy(all, call->args, n * sizeof *all);
    all[n] = v;
    for (uint32_t i = 0; i < n; i++) {
        Expr *t = tangents[i] ? tangents[i] : absent_value(w);
        bool whole = tangents[i] && type_resolve(call->args[i]->type)->tag == TY_TENSOR;
        all[n + 1 + i] = whole
                             ? t
                             : way_bind(w, b_builtin(&w->build, "ad.dense", call->args[i], t, NULL),
                                        NULL);
    }
    RuleUse use = {w->n, all, n + 1, .identities = !w->n->program->merges,
                   .follows = expr_is_internal(rule->fn)};
    for (uint32_t i = 0; i < n; i++)
        if (all[n + 1 + i]->kind == EXPR_VAR && call->args[i]->kind == EXPR_VAR)
            shape_know(&use.shapes, all[n + 1 + i]->var, shape_of_atom(w->n, NULL, call->args[i]));
    Expr *dv = rule_settle(&use, rule_expand(rule, call, all, 2 * n + 1));
    for (; dv->kind == EXPR_LET; dv = dv->body)
        block_bind(w->block, dv, dv->a);
    return b_builtin(&w->build, "ad.fit", v, dv, NULL);
}

typedef struct Operation {
    Expr *call, *v;
    const Rule *tangent, *derivative;
    Expr **tangents;    /* of the arguments */
    Presence *presence; /* of these */
} Operation;

/* Emits the tangent of the result where those arguments that are PRESENT have tangents. */
static Expr *operator_tangent(Way *w, const Operation *o) {
    uint32_t n = o->call->nargs;
    Expr **tangents = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        tangents[i] = o->presence[i] == PRESENT ? o->tangents[i] : NULL;
    return o->tangent ? expand_tangent(w, o->call, o->v, o->tangent, tangents)
                      : transpose(w, o->call, o->v, o->derivative, tangents);
}

/* A tangent that may be absent, where it is there: it has the type of its value, and of a tuple all parts. */
static Expr *tangent_there(Way *w, Expr *value, Expr *tangent) {
    switch (type_resolve(value->type)->tag) {
    case TY_TUPLE: return way_bind(w, b_builtin(&w->build, "ad.dense", value, tangent, NULL), NULL);
    case TY_TENSOR:
        tangent = expr_copy(tangent);
        tangent->type = value->type;
        return tangent;
    default: return tangent;
    }
}

/* The same where more arguments may have tangents: each case has code of its own. */
static Expr *tangent_of_cases(Way *w, const Operation *o) {
    uint32_t n = o->call->nargs, i = 0;
    bool any = false;
    for (uint32_t k = 0; k < n; k++)
        any |= o->presence[k] == PRESENT;
    while (i < n && o->presence[i] != PERHAPS)
        i++;
    if (i == n)
        return any ? operator_tangent(w, o) : absent_value(w);
    Operation one = *o;
    Block blocks[2] = {{.b = &w->build}, {.b = &w->build}}, *outer = w->block;
    Expr *values[2];
    for (int k = 0; k < 2; k++) {
        one.presence = mem_new_n(Presence, n + 1);
        memcpy(one.presence, o->presence, n * sizeof *one.presence);
        one.presence[i] = k ? PRESENT : ABSENT;
        w->block = &blocks[k];
        if (k) {
            one.tangents = mem_new_n(Expr *, n + 1);
            memcpy(one.tangents, o->tangents, n * sizeof *one.tangents);
            one.tangents[i] = tangent_there(w, o->call->args[i], o->tangents[i]);
        }
        values[k] = block_end(&blocks[k], tangent_of_cases(w, &one));
    }
    w->block = outer;
    Expr *there = b_builtin(&w->build, "ad.has_tangent", o->tangents[i], NULL);
    Expr *e = b_if(&w->build, there, values[1], values[0]);
    e->type = b_some_type("ct");
    return e;
}

/* The `tangent` rule of an operator; NULL: it has none. */
static const Rule *find_tangent_rule(const Instance *n, const Op *op) {
    return env_find_rule(n->program->ctx->env, op, RULE_TANGENT);
}

bool tangent_ignores(const Instance *n, const Expr *call, uint32_t i) {
    const Op *op = call->a->op;
    return !find_tangent_rule(n, op) &&
           rule_ignores(env_find_rule(n->program->ctx->env, op, RULE_DERIVATIVE), i);
}

/* Whether a tuple has a part that surely has a tangent, so that the operator sees one: zeros stand for the others'. */
static bool has_tangent_somewhere(Place *p) {
    p = place_here(p);
    bool any = p->form == PLACE_LEAF && p->presence == PRESENT;
    for (uint32_t i = 0; p->form == PLACE_TUPLE && i < p->nparts; i++)
        any |= p->parts[i] && has_tangent_somewhere(p->parts[i]);
    return any;
}

static void follow_operator(Way *w, Step *s) {
    Instance *n = w->n;
    Expr *call = s->e;
    bool identity = n->program->merges && (is_identity(call) || shape_keeps(n, call));
    emit_let(w->block, s->var, identity ? call->args[0] : call, false);
    if (!s->place || !tangent_is_read(&n->read, s->place))
        return;
    Operation o = {.call = call, .v = b_ref(&w->build, s->var)};
    o.tangent = find_tangent_rule(n, call->a->op);
    o.derivative = env_find_rule(n->program->ctx->env, call->a->op, RULE_DERIVATIVE);
    o.tangents = mem_new_n(Expr *, call->nargs + 1);
    o.presence = mem_new_n(Presence, call->nargs + 1);
    uint32_t present = 0, perhaps = 0, unknown = 0;
    for (uint32_t i = 0; i < call->nargs; i++) {
        Place *p = place_of(n, call->args[i]);
        if (tangent_ignores(n, call, i))
            p = NULL;
        o.presence[i] = tangent_presence(p);
        bool fills = o.presence[i] == PERHAPS && has_tangent_somewhere(p) &&
                     type_resolve(call->args[i]->type)->tag == TY_TUPLE;
        if (fills)
            o.presence[i] = PRESENT;
        present += o.presence[i] == PRESENT;
        perhaps += o.presence[i] == PERHAPS;
        unknown += o.presence[i] == UNKNOWN;
        if (!is_there(o.presence[i]))
            continue;
        Expr *t = acc_get(w, p);
        o.tangents[i] = t->kind == EXPR_VAR ? t : way_bind(w, t, NULL);
        if (fills)
            o.tangents[i] = tangent_there(w, call->args[i], o.tangents[i]);
    }
    if (!present && !perhaps) {
        acc_set(w, s->place, NULL, unknown ? UNKNOWN : ABSENT);
        return;
    }
    if (perhaps > MAX_PERHAPS) {
        reverse_refuse(n->program, "an operator of many arguments that may be active");
        return;
    }
    Expr *dv = tangent_of_cases(w, &o);
    Presence out = present ? PRESENT : PERHAPS;
    bool tensor = out == PRESENT && type_resolve(s->place->type)->tag == TY_TENSOR;
    acc_set(w, s->place, way_bind(w, dv, tensor ? s->place->type : NULL), out);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The type of a value and its tangent. */
static Type *type_of_both(Type *value, Presence presence) {
    Type **both = mem_new_n(Type *, 2);
    both[0] = value;
    both[1] = presence == PRESENT && type_resolve(value)->tag == TY_TENSOR ? value
                                                                           : b_some_type("ct");
    return type_tuple(both, 2);
}

/* What is known of the result of n, by which code of `reader` is made. */
static Presence read_out(Instance *reader, Instance *n) {
    vec_push(&reader->outs, ((OutRead){n, n->out}));
    return n->out;
}

bool tangent_holds(const Instance *n) {
    for (size_t i = 0; i < n->outs.len; i++)
        if (n->outs.data[i].of->out != n->outs.data[i].out)
            return false;
    return true;
}

Expr *tangent_call(Instance *caller, Instance *callee, const Expr *call, Expr *const *tangents) {
    Build b = {call->span};
    Expr **args = mem_new_n(Expr *, call->nargs + callee->nslots + 2);
    uint32_t count = 0;
    if (callee->wants_self)
        args[count++] = call->a;
    for (uint32_t i = 0; i < call->nargs; i++)
        args[count++] = call->args[i];
    for (uint32_t i = 0; i < callee->nslots; i++)
        if (is_there(callee->given[i]))
            args[count++] = tangents[i];
    Expr *f = expr_global(callee->forward_global, b_some_type("f"), b.span);
    Expr *made = b_call(&b, f, args, count, 0);
    if (is_there(read_out(caller, callee)))
        made->type = type_of_both(call->type, callee->out);
    return made;
}

Instance *tangent_instance(Program *p, Known *self, Known **known, const bool *active,
                           const Presence *given, uint32_t nslots, const SlotMap *numbers) {
    for (size_t i = 0; i < p->instances.len; i++) {
        Instance *n = p->instances.data[i];
        if (n->forward && instance_is_of(n, self, known, active, numbers) &&
            !memcmp(n->given, given, nslots * sizeof *given))
            return n;
    }
    if (!instance_fits(p, p->instances.len))
        return NULL;
    Instance *n = instance_new(p, self, known, active, nslots, numbers);
    n->forward = true;
    n->given = mem_new_n(Presence, nslots + 1);
    memcpy(n->given, given, nslots * sizeof *given);
    n->out = UNKNOWN;
    vec_push(&p->instances, n);
    instance_read(n);
    return n;
}

/* The call of a step with the tangents of what it is given; NULL where there are too many instances. */
static Expr *make_call(Way *w, Step *s) {
    Program *p = w->n->program;
    if (s->is_custom) {
        reverse_refuse(p, "the tangent of a derivative that was written");
        return NULL;
    }
    Presence *given = mem_new_n(Presence, s->nslots + 1);
    Expr **tangents = mem_new_n(Expr *, s->nslots + 1);
    for (uint32_t i = 0; i < s->nslots; i++) {
        given[i] = presence_elsewhere(s->places[i]);
        if (given[i] == UNKNOWN)
            given[i] = ABSENT; /* of this round */
        if (given[i] != ABSENT)
            tangents[i] = acc_get(w, s->places[i]);
    }
    s->instance = tangent_instance(p, s->callee, s->known, s->active, given, s->nslots, &s->slots);
    if (!s->instance)
        return NULL;
    vec_push(&w->n->calls, s->instance);
    if (!p->why && !s->instance->is_made && mem_stack_left() > 2 * SPARE_STACK)
        instance_make_tangent(s->instance);
    if (!s->runs_again)
        return tangent_call(w->n, s->instance, s->e, tangents);
    Expr *call = expr_copy(s->e);
    call->a = own_captured(w, s);
    return tangent_call(w->n, s->instance, call, tangents);
}

/* Binds the value of a step and its tangent. */
static void bind_both(Way *w, Step *s, Expr *value, Presence presence) {
    if (!is_there(presence)) {
        value->type = s->var->type;
        emit_let(w->block, s->var, value, false);
        acc_set(w, s->place, NULL, presence);
        return;
    }
    bool tensor = presence == PRESENT && type_resolve(s->place->type)->tag == TY_TENSOR;
    s->frame->type = value->type = type_of_both(s->var->type, presence);
    emit_let(w->block, s->frame, value, false);
    Expr *both = b_ref(&w->build, s->frame);
    emit_let(w->block, s->var, expr_proj(both, 0, s->var->type, w->build.span), false);
    Expr *tangent = expr_proj(both, 1, b_some_type("ct"), w->build.span);
    acc_set(w, s->place, way_bind(w, tangent, tensor ? s->place->type : NULL), presence);
}

static void follow_call(Way *w, Step *s) {
    if (!tangent_is_read(&w->n->read, s->place) && !function_is_given(w->n->program, s)) {
        emit_let(w->block, s->var, s->e, false);
        return;
    }
    Expr *call = make_call(w, s);
    if (call)
        bind_both(w, s, call, read_out(w->n, s->instance));
}

/* ---- branches -------------------------------------------------------------------------------- */

static void follow_steps(Way *w, const Steps *steps, size_t n);

static bool choices_call(const Step *s) {
    for (uint32_t i = 0; i < s->nchoices; i++)
        if (steps_call(s->choices[i].steps))
            return true;
    return false;
}

bool step_calls(const Step *s) {
    return s->kind == STEP_CALL || (s->kind == STEP_BRANCH && choices_call(s));
}

bool steps_call(const Steps *steps) {
    for (size_t i = 0; i < steps->steps.len; i++)
        if (step_calls(steps->steps.data[i]))
            return true;
    return steps->end == END_LOOP || (steps->end == END_BRANCH && choices_call(steps->branch));
}

/* The choices in the order in which they are followed. The end of a recursion tells what its calls give, so choices without
 * calls come first. */
static uint32_t *order_of_choices(const Step *s) {
    uint32_t *order = mem_bytes((s->nchoices + 1) * sizeof *order), n = 0;
    for (int calls = 0; calls < 2; calls++)
        for (uint32_t i = 0; i < s->nchoices; i++)
            if (steps_call(s->choices[i].steps) == (bool)calls)
                order[n++] = i;
    return order;
}

/* Tangents are only read: those of the whole are as they were. */
static void close_arm(const Choice *c) {
    for (size_t k = c->wholes.len; k-- > 0;)
        c->wholes.data[k]->arm = NULL;
}

/* Of what leaves an end. */
static Presence result_presence(Way *w, Expr *result) {
    Place *p = place_of(w->n, result);
    if (p && p->form == PLACE_CLOSURE)
        reverse_lack_data(w->n->program, "an active closure is a result");
    return presence_elsewhere(p);
}

/* The value, and its tangent where others have one. */
static Expr *result_of(Way *w, Expr *result, Expr *tangent, bool both) {
    if (!both)
        return result;
    Expr **two = mem_new_n(Expr *, 2);
    two[0] = result;
    two[1] = tangent ? tangent : absent_value(w);
    Expr *e = b_tuple(&w->build, two, 2);
    e->type = b_some_type("frame");
    return e;
}

static Expr *result_tangent(Way *w, Expr *result, Presence presence) {
    return is_there(presence) ? acc_get(w, place_of(w->n, result)) : NULL;
}

static void follow_branch(Way *w, Step *s) {
    Block *outer = w->block, *blocks = mem_new_n(Block, s->nchoices + 1);
    Presence all = UNKNOWN;
    Expr **bodies = mem_new_n(Expr *, s->nchoices + 1);
    const uint32_t *order = order_of_choices(s);
    for (uint32_t k = 0; k < s->nchoices && !w->n->program->why; k++) {
        uint32_t i = order[k];
        const Choice *c = &s->choices[i];
        blocks[i].b = &w->build;
        w->block = &blocks[i];
        enter_arm(w, c);
        follow_steps(w, c->steps, c->steps->steps.len);
        Presence presence = result_presence(w, c->steps->result);
        if (!tangent_is_read(&w->n->read, s->place))
            presence = ABSENT;
        all = presence_join(all, presence);
        bodies[i] = result_tangent(w, c->steps->result, presence);
        close_arm(c);
    }
    w->block = outer;
    if (w->n->program->why)
        return;
    for (uint32_t i = 0; i < s->nchoices; i++)
        bodies[i] = block_end(&blocks[i],
                              result_of(w, s->choices[i].steps->result, bodies[i], is_there(all)));
    bind_both(w, s, choices_of(s, bodies), all);
}

/* ---- steps and ends -------------------------------------------------------------------------- */

static void follow_step(Way *w, Step *s) {
    w->build.span = s->e->span;
    switch (s->kind) {
    case STEP_PLAIN: emit_let(w->block, s->var, s->e, s->rec); return;
    case STEP_OPERATOR: follow_operator(w, s); return;
    case STEP_BUILTIN: follow_builtin(w, s); return;
    case STEP_CALL: follow_call(w, s); return;
    case STEP_BRANCH: follow_branch(w, s); return;
    }
}

static void follow_steps(Way *w, const Steps *steps, size_t n) {
    for (size_t i = 0; i < n && !w->n->program->why; i++)
        follow_step(w, steps->steps.data[i]);
}

static void learn_out(Instance *n, Presence found) { n->out = presence_join(n->out, found); }

/* Whether the result is that of the last step, a call: then the call stays in tail position. */
static Step *tail_call(const Steps *steps) {
    if (steps->end == END_LOOP)
        return steps->branch;
    Step *last = steps->steps.len ? vec_last(&steps->steps) : NULL;
    bool is_result = last && last->kind == STEP_CALL && steps->result->kind == EXPR_VAR &&
                     steps->result->var == last->var;
    return is_result ? last : NULL;
}

static Expr *end_with_call(Way *w, Step *s) {
    Instance *n = w->n;
    w->build.span = s->e->span;
    Expr *call = make_call(w, s);
    if (!call)
        return s->e;
    Presence out = read_out(n, s->instance);
    learn_out(n, out);
    if (is_there(out) == is_there(read_out(n, n)) || out == UNKNOWN)
        return call;
    /* it has no tangent, and other ends have */
    Expr *v = block_let(w->block, "v", call);
    v->type = v->var->type = s->e->type;
    return result_of(w, v, NULL, true);
}

static Expr *follow_end(Way *w, const Steps *steps) {
    Instance *n = w->n;
    Step *call = steps->end == END_BRANCH ? NULL : tail_call(steps);
    bool last = call && steps->end == END_RETURN;
    follow_steps(w, steps, steps->steps.len - last);
    if (n->program->why)
        return b_unit(&w->build);
    if (call)
        return end_with_call(w, call);
    if (steps->end == END_RETURN) {
        Presence presence = result_presence(w, steps->result);
        learn_out(n, presence);
        return result_of(w, steps->result, result_tangent(w, steps->result, presence),
                         is_there(read_out(n, n)));
    }
    const Step *s = steps->branch;
    Block *outer = w->block, *blocks = mem_new_n(Block, s->nchoices + 1);
    Expr **bodies = mem_new_n(Expr *, s->nchoices + 1);
    const uint32_t *order = order_of_choices(s);
    for (uint32_t k = 0; k < s->nchoices && !n->program->why; k++) {
        uint32_t i = order[k];
        const Choice *c = &s->choices[i];
        blocks[i].b = &w->build;
        w->block = &blocks[i];
        enter_arm(w, c);
        bodies[i] = block_end(&blocks[i], follow_end(w, c->steps));
        close_arm(c);
    }
    w->block = outer;
    if (n->program->why)
        return b_unit(&w->build);
    return choices_of(s, bodies);
}

/* The parameter v alone has the place of that slot. */
static bool is_slot_of(const Instance *n, const Var *v, uint32_t slot) {
    const Fn *f = n->fn->fn;
    bool is = false;
    for (uint32_t i = 0; i < f->nparams; i++) {
        Place *p = n->active[i] ? map_find(&n->places, f->params[i]) : NULL;
        if (p != n->slots[slot])
            continue;
        if (f->params[i] != v)
            return false;
        is = true;
    }
    return is;
}

/* Frames that nobody else reads have tangents that nobody else reads. tangents: one a slot, or NULL. */
static void note_frames(const Instance *n, Fn *made, Var *const *tangents) {
    const Fn *f = n->fn->fn;
    for (size_t k = 0; n->program->merges && k < f->frames.len; k++) {
        const Var *v = f->frames.data[k];
        vec_push(&made->frames, v);
        for (uint32_t i = 0; i < n->nslots; i++)
            if (tangents[i] && is_slot_of(n, v, i))
                vec_push(&made->frames, tangents[i]);
    }
}

void instance_make_tangent(Instance *n) {
    Block block = {0};
    Way w = {.n = n, .block = &block, .build = {n->fn->span}};
    block.b = &w.build;
    n->is_made = true; /* before it ends: it may call itself */
    places_reset(n);   /* what gets no tangent has none */
    tangents_find_read(n);
    vec_clear(&n->calls);
    vec_clear(&n->outs);
    uint32_t count;
    Var **params = forward_params(n, &w.build, &block, &count);
    Var **tangents = mem_new_n(Var *, n->nslots + 1);
    for (uint32_t i = 0; i < n->nslots; i++) {
        Place *p = n->slots[i];
        if (!is_there(n->given[i]))
            continue;
        bool tensor = n->given[i] == PRESENT && type_resolve(p->type)->tag == TY_TENSOR;
        Var *d = params[count++] = tangents[i] = b_var(&w.build, "dx",
                                                       tensor ? p->type : b_some_type("ct"));
        acc_set(&w, p, b_ref(&w.build, d), n->given[i]);
    }
    Expr *body = follow_end(&w, n->body);
    w.build.span = n->fn->span;
    n->forward_fn = b_fn(&w.build, "fwd", params, count, block_end(&block, body));
    n->forward_fn->fn->name = n->fn->fn->name;
    note_frames(n, n->forward_fn->fn, tangents);
}
