/* SPDX-License-Identifier: Apache-2.0 */
/* A whole derivative: its instances, made again until nothing new is learnt, and the function that starts it. */
#include "passes/reverse/beside.h"

void reverse_refuse(Program *p, const char *why) {
    if (!p->why)
        p->why = why;
}

void reverse_lack(Program *p, const char *why) {
    p->lacks_function |= !p->why;
    reverse_refuse(p, why);
}

void reverse_lack_data(Program *p, const char *why) {
    p->lacks_data |= !p->why;
    reverse_lack(p, why);
}

void reverse_give_up(Program *p, const char *why) {
    p->tries_again |= !p->why;
    reverse_refuse(p, why);
}

void reverse_outgrow(Program *p, const char *why) {
    p->is_too_large |= !p->why;
    reverse_give_up(p, why);
}

/* ---- what is made ---------------------------------------------------------------------------- */

static void mark_reached(Instance *n);

static void mark_steps(Steps *steps) {
    for (size_t i = 0; i < steps->steps.len; i++) {
        Step *s = steps->steps.data[i];
        if (s->kind == STEP_CALL && s->instance)
            mark_reached(s->instance);
        for (uint32_t k = 0; s->kind == STEP_BRANCH && k < s->nchoices; k++)
            mark_steps(s->choices[k].steps);
    }
    if (steps->end == END_BRANCH)
        for (uint32_t k = 0; k < steps->branch->nchoices; k++)
            mark_steps(steps->branch->choices[k].steps);
}

static void mark_reached(Instance *n) {
    if (n->reached)
        return;
    n->reached = true;
    for (size_t i = 0; i < n->calls.len; i++)
        mark_reached(n->calls.data[i]);
    if (!n->forward)
        mark_steps(n->body);
}

/* A type that says all, or some type. */
static Type *known_type(Type *t, const char *name) {
    return type_is_closed(t) ? t : b_some_type(name);
}

/* The type of the cotangent or tangent of a tensor, or some type. */
static Type *tensor_type(Type *t, const char *name) {
    return type_resolve(t)->tag == TY_TENSOR && type_may_hold_float(t) ? known_type(t, name)
                                                                       : b_some_type(name);
}

static bool is_scalar(Type *t) { return type_has_rank0(t) && type_is_closed(t); }

static Expr *ones_like(const Build *b, Expr *y) {
    DType t;
    if (is_scalar(y->type) && type_get_dtype(y->type, &t))
        return expr_float(1.0, t, b->span);
    return b_builtin(b, "ad.ones", y, NULL);
}

/* ct with zeros where it is absent, as the outline tells, which is read on. What is there keeps its cell, which a derivative around
 * this one may add to (Program.merges: there is none). */
static Expr *dense_ct(const Program *p, Block *block, const char **outline, Expr *arg, Expr *ct) {
    const Build *b = block->b;
    const Type *type = type_resolve(arg->type);
    bool there = outline_presence(*outline) == PRESENT;
    if (!p->merges && **outline == '(' && type->tag == TY_TUPLE && ct->kind == EXPR_TUPLE) {
        Expr **parts = mem_new_n(Expr *, ct->nargs + 1);
        ++*outline;
        for (uint32_t i = 0; i < ct->nargs; i++)
            parts[i] = dense_ct(p, block, outline,
                                expr_proj(arg, (int32_t)i, type->args[i], b->span), ct->args[i]);
        ++*outline;
        return b_tuple(b, parts, ct->nargs);
    }
    int depth = 0;
    do
        depth += (**outline == '(') - (**outline == ')');
    while (++*outline, depth);
    if (there && is_scalar(arg->type))
        return ct;
    if (!there || type->tag != TY_TENSOR || p->merges)
        ct = b_builtin(b, "ad.dense", arg, ct, NULL);
    return block_let(block, "ct", ct); /* so that it goes where nobody reads it */
}

/* New mirrors of the active parameters. */
static Expr **new_mirrors(Block *block, const Instance *top, Expr *const *args) {
    Expr **mirrors = mem_new_n(Expr *, top->nslots + 1);
    for (uint32_t i = 0, slot = 0; i < top->fn->fn->nparams; i++)
        if (top->active[i])
            mirrors[slot++] = block_let(block, "m",
                                        b_builtin(block->b, "ad.mirror", args[i], NULL));
    return mirrors;
}

/* fn (x1, …, xn) { let T = fwd(…); let cts = bwd(T, seed); (T.0, (dense cotangents)) } */
static Expr *start_reverse(Program *p, GradKind kind, Instance *top) {
    Back *way = back_get(top, false, ANY_SEED);
    Build b = {span_none()};
    Block block = {.b = &b};
    const Fn *f = top->fn->fn;
    Var **params = mem_new_n(Var *, f->nparams + 1);
    Expr **args = mem_new_n(Expr *, f->nparams + 2);
    uint32_t nparams = f->nparams, slot = 0;
    for (uint32_t i = 0; i < nparams; i++) {
        params[i] = b_var(&b, f->params[i]->name->text, known_type(f->params[i]->type, "x"));
        args[i] = b_ref(&b, params[i]);
    }
    if (kind == GRAD_VJP)
        params[nparams++] = b_var(&b, "c", b_some_type("ct"));
    Expr *call = b_call(&b, b_ref(&b, p->code->of), args, f->nparams, 0);
    Expr *frame = NULL, *pair = NULL, *value;
    Expr **mirrors = p->mirrors ? new_mirrors(&block, top, args) : NULL;
    call->type = known_type(f->body->type, "y");
    if (top->replays) {
        value = value_call(top, call);
    } else {
        frame = block_let(&block, "T", forward_call(top, call, mirrors, first_frame(&b)));
        value = expr_proj(frame, 0, p->mirrors ? b_some_type("pair") : call->type, b.span);
    }
    if (p->mirrors) {
        pair = block_let(&block, "pair", value);
        value = expr_proj(pair, 0, call->type, b.span);
    }
    Expr *y = block_let(&block, "y", value);
    Expr *seed = kind == GRAD_VJP ? b_ref(&b, params[f->nparams])
                                  : block_let(&block, "seed", ones_like(&b, y));
    if (kind == GRAD_VJP)
        block_do(&block, b_builtin(&b, "ad.check_seed", y, seed, NULL));
    if (pair) {
        Expr *mirror = expr_proj(pair, 1, b_some_type("mirror"), b.span);
        block_do(&block, b_builtin(&b, "ad.mirror_add", mirror, seed, NULL));
        seed = b_absent(&b, b_some_type("ct"));
    }
    Exprs back = {0};
    if (frame)
        vec_push(&back, frame);
    vec_push(&back, seed);
    add_kept_args(top, call, &back);
    Expr *g = expr_global(way->global, b_some_type("f"), b.span);
    Expr *call_back = b_call(&b, g, back.data, (uint32_t)back.len, 0);
    call_back->type = back_type(way);
    Results given = back_results(&block, back_out(way), block_let(&block, "cts", call_back));
    Expr **partials = mem_new_n(Expr *, f->nparams + 1);
    for (uint32_t i = 0; i < f->nparams; i++) {
        Expr *ct = b_absent(&b, b_some_type("ct"));
        const char *outline = top->active[i] ? mirrors ? "?" : given.text : "0";
        if (top->active[i] && mirrors)
            ct = block_let(&block, "ct",
                           b_builtin(&b, "ad.mirror_sum", args[i], mirrors[slot], NULL));
        else if (top->active[i])
            ct = outline_take_result(&given, top->slots[slot], f->params[i]->type);
        slot += top->active[i];
        ct = dense_ct(p, &block, &outline, args[i], ct);
        partials[i] = ct;
    }
    Expr *all = kind == GRAD_DERIV && f->nparams == 1 ? partials[0]
                                                      : b_tuple(&b, partials, f->nparams);
    if (kind != GRAD_DERIV) {
        Expr **both = mem_new_n(Expr *, 2);
        both[0] = y;
        both[1] = all;
        all = b_tuple(&b, both, 2);
    }
    return b_fn(&b, grad_kind_name(kind), params, nparams, block_end(&block, all));
}

/* fn (x1, …, xn, dx1, …, dxn) { let F = fwd(x1, …, t1, …); (F.0, F.1 with all parts) } */
static Expr *start_forward(Program *p, Instance *top) {
    Build b = {span_none()};
    Block block = {.b = &b};
    const Fn *f = top->fn->fn;
    uint32_t n = f->nparams, slot = 0;
    Var **params = mem_new_n(Var *, 2 * n + 1);
    Expr **args = mem_new_n(Expr *, n + 1), **tangents = mem_new_n(Expr *, top->nslots + 1);
    for (uint32_t i = 0; i < n; i++) {
        params[i] = b_var(&b, f->params[i]->name->text, known_type(f->params[i]->type, "x"));
        params[n + i] = b_var(&b, fmt_text("d%s", f->params[i]->name->text),
                              tensor_type(f->params[i]->type, "t"));
        args[i] = b_ref(&b, params[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        Type *type = type_resolve(f->params[i]->type);
        Expr *t = b_ref(&b, params[n + i]);
        if (type->tag != TY_TENSOR || !type_is_closed(type))
            t = block_let(&block, "t", b_builtin(&b, "ad.fit", args[i], t, NULL));
        if (top->active[i])
            tangents[slot++] = t;
    }
    Expr *call = b_call(&b, b_ref(&b, p->code->of), args, n, 0);
    Expr *made = tangent_call(top, top, call, tangents), **both = mem_new_n(Expr *, 2);
    if (top->out == ABSENT || top->out == UNKNOWN) {
        both[0] = block_let(&block, "y", made);
        both[1] = b_absent(&b, b_some_type("ct"));
    } else {
        Expr *frame = block_let(&block, "F", made);
        both[0] = block_let(&block, "y",
                            expr_proj(frame, 0, known_type(f->body->type, "y"), b.span));
        both[1] = expr_proj(frame, 1, b_some_type("ct"), b.span);
    }
    Type *result = type_resolve(f->body->type);
    if (top->out != PRESENT || result->tag != TY_TENSOR)
        both[1] = b_builtin(&b, "ad.dense", both[0], both[1], NULL);
    return b_fn(&b, "jvp", params, 2 * n, block_end(&block, b_tuple(&b, both, 2)));
}

bool type_is_open(Type *t, bool dtypes) {
    static const TypeTag open[] = {TY_PARAM, TY_VAR};
    for (int k = 0; k < 2; k++) {
        if (!type_has(t, open[k]))
            continue;
        Map seen = {0};
        TypeVec found = {0};
        type_collect(t, open[k], &seen, &found);
        for (size_t i = 0; i < found.len; i++)
            if (found.data[i]->kind == KIND_TYPE || (dtypes && found.data[i]->kind == KIND_DTYPE))
                return true;
    }
    return false;
}

static Instance *top_instance(Program *p, GradKind kind, Expr *source) {
    uint32_t n = source->fn->nparams, nslots = 0;
    bool *active = mem_new_n(bool, n + 1), *shared = mem_new_n(bool, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        active[i] = type_may_hold_float(source->fn->params[i]->type);
        nslots += active[i];
    }
    if (!nslots) {
        reverse_refuse(p, "no parameter holds a float");
        return NULL;
    }
    Known *self = p->code->given ? known_prepared_all(p, p->code->given)
                                 : known_prepared(p, source);
    self = known_at_sizes(&(Reader){.p = p}, self, NULL, 0);
    Known **known = mem_new_n(Known *, n + 1);
    functions_check_source(p, self);
    SlotMap numbers = slots_apart(nslots);
    if (p->why)
        return NULL;
    if (kind != GRAD_JVP)
        return instance_get(p, self, known, active, shared, nslots, &numbers);
    Presence *given = mem_new_n(Presence, nslots + 1);
    for (uint32_t i = 0, slot = 0; i < n; i++) {
        Type *type = type_resolve(source->fn->params[i]->type);
        bool is_float = nslots == 1 && (type->tag == TY_TENSOR || type->tag == TY_PARAM);
        if (active
                [i]) /* the only one that may hold a float does; others may turn out to be integers */
            given[slot++] = !is_float && type_is_open(type, true) ? PERHAPS : PRESENT;
    }
    return tangent_instance(p, self, known, active, given, nslots, &numbers);
}

/* Makes each way back that the one of `top` leads to. */
static void make_ways_back(Program *p, Instance *top) {
    for (size_t i = 0; i < p->waiting.len; i++)
        back_begin_round(p->waiting.data[i]);
    vec_clear(&p->waiting);
    back_get(top, false, ANY_SEED);
    for (size_t i = 0; i < p->waiting.len && !p->why; i++)
        if (p->waiting.data[i]->state == BACK_WAITS)
            back_make(p->waiting.data[i]);
    if (p->changed)
        return;
    for (size_t i = 0; i < p->waiting.len; i++) /* these have no end: the function never returns */
        if (!back_out(p->waiting.data[i]))
            back_learn_nothing(p->waiting.data[i]);
}

/* Makes each function with tangents that is not there, or was made when less was known of what it calls. One that is called
 * comes before what calls it. */
static void make_tangents(Program *p) {
    for (size_t i = 0; i < p->instances.len; i++)
        p->instances.data[i]->is_made &= tangent_holds(p->instances.data[i]);
    for (size_t i = 0; i < p->instances.len && !p->why; i++)
        if (!p->instances.data[i]->is_made)
            instance_make_tangent(p->instances.data[i]);
    for (size_t i = 0; i < p->instances.len; i++)
        p->changed |= !tangent_holds(p->instances.data[i]);
}

/* Makes the ways back again until nothing new is learnt, or it is learnt that the program is to be read again. */
static void settle_instances(Program *p, GradKind kind, Instance *top) {
    p->changed = true;
    for (uint32_t round = 0; !p->why && p->changed && !functions_grew(p->functions); round++) {
        if (round > MAX_ROUNDS) {
            reverse_give_up(p, "what is shared does not settle");
            break;
        }
        p->code->rounds++;
        p->changed = false;
        p->names = 0;
        if (kind == GRAD_JVP)
            make_tangents(p);
        else
            make_ways_back(p, top);
        functions_find_calls(p);
    }
}

/* A call that nobody reads is no part of a derivative, and stands as it is. What it writes is read for all that: such a
 * function is read, too, which leaves the program to the twins where that is active. */
static void see_writes(Instance *n, const Steps *steps) {
    Program *p = n->program;
    for (size_t i = 0; i < steps->steps.len && !p->why; i++) {
        Step *s = steps->steps.data[i];
        if (s->kind == STEP_CALL && !s->instance && !s->is_custom && call_may_write(n, s)) {
            Instance *seen = instance_see(p, s);
            if (seen && !p->why)
                see_writes(seen, seen->body);
        }
        for (uint32_t k = 0; s->kind == STEP_BRANCH && k < s->nchoices; k++)
            see_writes(n, s->choices[k].steps);
    }
    for (uint32_t k = 0; steps->end == END_BRANCH && k < steps->branch->nchoices; k++)
        see_writes(n, steps->branch->choices[k].steps);
}

/* Whether a function that n calls leads back to n. */
static bool leads_to(Instance *n, const Instance *to, Map *seen);

static bool steps_lead_to(Steps *steps, const Instance *to, Map *seen) {
    for (size_t i = 0; i < steps->steps.len; i++) {
        Step *s = steps->steps.data[i];
        if (s->kind == STEP_CALL && s->instance && leads_to(s->instance, to, seen))
            return true;
        for (uint32_t k = 0; s->kind == STEP_BRANCH && k < s->nchoices; k++)
            if (steps_lead_to(s->choices[k].steps, to, seen))
                return true;
    }
    for (uint32_t k = 0; steps->end == END_BRANCH && k < steps->branch->nchoices; k++)
        if (steps_lead_to(steps->branch->choices[k].steps, to, seen))
            return true;
    return false;
}

static bool leads_to(Instance *n, const Instance *to, Map *seen) {
    if (n == to)
        return true;
    if (map_has(seen, n))
        return false;
    map_set(seen, n, n);
    for (size_t i = 0; i < n->calls.len; i++)
        if (leads_to(n->calls.data[i], to, seen))
            return true;
    return !n->forward && steps_lead_to(n->body, to, seen);
}

bool instance_is_straight(Instance *n) {
    Map seen = {0};
    if (n->loops.len && !n->forward)
        return false;
    for (size_t i = 0; i < n->calls.len; i++)
        if (leads_to(n->calls.data[i], n, &seen))
            return false;
    return n->forward || !steps_lead_to(n->body, n, &seen);
}

/* A function that calls itself, by whatever way, does not stand in place of its calls. */
static void note_calls(Global *made, bool straight) {
    made->value->fn->is_straight = straight;
    if (!straight)
        vec_push(&made->uses, made);
}

static Instance *derive_once(Program *p, GradKind kind, Expr *source) {
    for (int m = 0; m < AD_MODES; m++)
        if (source->fn->own_twins[m])
            reverse_refuse(p, "a function with a derivative of its own");
    if (source->fn->path && source->fn->path->len)
        reverse_refuse(p, "a twin");
    if (p->why)
        return NULL;
    references_check_source(p, source);
    if (p->why)
        return NULL;
    Instance *top = top_instance(p, kind, source);
    settle_instances(p, kind, top);
    if (kind != GRAD_JVP && !p->why && !functions_are_data(p) && !p->mirrors && replay_choose(p))
        settle_instances(p, kind, top);
    for (size_t i = 0; i < p->instances.len && !p->why; i++)
        see_writes(p->instances.data[i], p->instances.data[i]->body);
    return top;
}

static Program program_of(PassCtx *ctx, ReverseCode *code, Functions *functions, bool prepares) {
    return (Program){.ctx = ctx,
                     .code = code,
                     .merges = code->merges,
                     .functions = functions,
                     .prepares = prepares,
                     .most_work = MAX_WORK};
}

/* Reads the program again until all functions that get into data are known, if it is left without that. */
static Instance *derive(Program *p, GradKind kind, Expr *source) {
    enum { MOST_READINGS = 16 };
    Instance *top = derive_once(p, kind, source);
    const Program first = *p;
    bool wants = p->lacks_data || functions_are_data(p);
    for (int i = 0; i < MOST_READINGS && wants && functions_begin(p->functions); i++) {
        Program again = program_of(p->ctx, p->code, p->functions, p->prepares);
        again.splits = p->splits;
        again.mirrors = p->mirrors;
        again.follows_refs = p->follows_refs;
        again.most_work = p->most_work;
        if (i > 0) /* functions are data for the first time: some are read as they were written */
            again.prepared = p->prepared;
        again.typed = p->typed;
        again.made = p->made;
        again.used = p->used;
        *p = again;
        top = derive_once(p, kind, source);
        wants = !p->why || p->lacks_function; /* any other reason holds with more functions, too */
    }
    if (!p->why && functions_are_data(p) && functions_begin(p->functions))
        reverse_outgrow(p, "ever more functions get into data");
    if (p->why && first.why) { /* what is told is why it is left all the same */
        p->lacks_function |= first.lacks_function;
        p->tries_again |= first.tries_again;
        p->is_too_large |= first.is_too_large;
    }
    return top;
}

/* Begins with what was prepared before, split; false where that is as it was. What follows several choices in a row is
 * copied for all their arms, so this reads little more than was read before. */
static bool take_split(Program *p, const Program *before) {
    const void *fn;
    void *prepared;
    bool any = false;
    p->splits = true;
    p->most_work = before->work + MORE_WORK;
    p->typed = before->typed;
    p->made = before->made;
    p->used = before->used;
    for (size_t i = 0; map_next(&before->prepared, &i, &fn, &prepared);) {
        Expr *made = map_find(&p->prepared, prepared);
        if (!made)
            made = split_choices(p->ctx, prepared);
        any |= made != prepared;
        map_set(&p->prepared, prepared, made);
        map_set(&p->prepared, fn, made);
        map_set(&p->prepared, made, made);
    }
    return any;
}

/* Reads a program that was left in another way. Where it is left again, the first reason is kept. */
static Instance *derive_otherwise(Program *p, const Program *other, GradKind kind, Expr *source) {
    const char *why = p->why;
    *p = *other;
    Instance *top = derive(p, kind, source);
    if (p->why)
        *p = (Program){.why = why, .tries_again = true};
    return top;
}

ReverseCode *reverse_derive(PassCtx *ctx, GradKind kind, bool merges, Expr *source, Known *given) {
    ReverseCode *code = mem_new(ReverseCode);
    code->merges = merges;
    code->given = given;
    code->kind = kind;
    code->source = source;
    Build b = {span_none()};
    code->of = b_var(&b, "f", b_some_type("f"));
    bool prepares = ctx->opt && opt_is_on(ctx->opt);
    Program p = program_of(ctx, code, functions_new(), prepares), before, split;
    Instance *top = derive(&p, kind, source);
    before = p;
    if (p.is_too_large && prepares) { /* what was inlined may be too much */
        p = program_of(ctx, code, functions_new(), false);
        top = derive(&p, kind, source);
    }
    split = program_of(ctx, code, before.functions, prepares);
    /* what follows a choice may not know which value it has */
    if (p.tries_again && take_split(&split, &before))
        top = derive_otherwise(&p, &split, kind, source);
    if (p.tries_again && !before.is_too_large) {
        Program mirrored = program_of(ctx, code, before.functions, prepares);
        mirrored.mirrors = kind != GRAD_JVP;
        mirrored.follows_refs = true;
        top = derive_otherwise(&p, &mirrored, kind, source);
    }
    code->why = p.why;
    code->lacks_function = p.lacks_function;
    code->tried_all = p.tries_again;
    if (p.why)
        return code;
    mark_reached(top);
    if (!p.mirrors)
        chains_find(&p, top);
    for (size_t i = 0; i < p.instances.len; i++)
        if (p.instances.data[i]->reached) {
            Instance *n = p.instances.data[i];
            instance_finish(n);
            bool straight = instance_is_straight(n);
            note_calls(n->forward_global, straight);
            for (size_t k = 0; k < n->backs.len; k++)
                if (n->backs.data[k]->state != BACK_UNREACHED)
                    note_calls(n->backs.data[k]->global, straight);
        }
    Expr *fn = kind == GRAD_JVP ? start_forward(&p, top) : start_reverse(&p, kind, top);
    code->fn = pass_find("dce")->run(ctx, fn);
    code->fn->fn->is_straight = true;
    VarVec outside = {0};
    vec_push(&outside, code->of);
    pass_check(ctx, code->fn, &outside, "a derivative");
    return code;
}

bool reverse_is_current(const ReverseCode *code) { return dependencies_hold(&code->uses); }
