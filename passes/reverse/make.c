/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that are made of instances. */
#include "passes/reverse/beside.h"
#include "passes/reverse/mirror.h"

#include "passes/subst.h"

#include <string.h>

/* ---- instances ------------------------------------------------------------------------------- */

Global *instance_global(const char *name) {
    Global *g = mem_new(Global);
    g->kind = GLOBAL_DEF;
    g->name = sym_intern(name);
    g->internal = g->is_made = true;
    return g;
}

static bool same_flags(const bool *a, const bool *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

SlotMap slots_apart(uint32_t n) {
    SlotMap m = {n, mem_new_n(uint32_t, n + 1)};
    for (uint32_t i = 0; i < n; i++)
        m.slot[i] = i;
    return m;
}

bool slots_equal(const SlotMap *a, const SlotMap *b) {
    return a->n == b->n && !memcmp(a->slot, b->slot, a->n * sizeof *a->slot);
}

bool instance_is_of(const Instance *n, const Known *self, Known *const *known, const bool *active,
                    const SlotMap *numbers) {
    uint32_t nparams = n->fn->fn->nparams;
    if (n->fn != self->fn || !known_equal(n->self, self) ||
        !same_flags(n->active, active, nparams) || !slots_equal(&n->numbers, numbers))
        return false;
    for (uint32_t i = 0; i < nparams; i++)
        if (!known_equal(n->known[i], known[i]))
            return false;
    return true;
}

Instance *instance_new(Program *p, Known *self, Known **known, const bool *active, uint32_t nslots,
                       const SlotMap *numbers) {
    Instance *n = mem_new(Instance);
    n->program = p;
    n->fn = self->fn;
    n->self = self;
    n->known = known;
    n->active = mem_new_n(bool, n->fn->fn->nparams + 1);
    for (uint32_t i = 0; i < n->fn->fn->nparams; i++)
        n->active[i] = active[i];
    n->nslots = nslots;
    n->numbers = *numbers;
    n->shared = mem_new_n(bool, nslots + 1);
    n->slots = mem_new_n(Place *, nslots + 1);
    const char *name = n->fn->fn->name ? n->fn->fn->name->text : "fn";
    n->forward_global = instance_global(fmt_text("%s.fwd", name));
    return n;
}

/* The place of a parameter or captured variable: p, or that of one which is the same value. */
static Place *take_slot(const Instance *n, Place *p, const Known *k, uint32_t *next, Place **slots,
                        uint32_t *count) {
    if (!k) {
        uint32_t slot = n->numbers.slot[(*next)++];
        if (slot < *count)
            return slots[slot];
        return slots[(*count)++] = p;
    }
    for (uint32_t i = 0; i < k->captured.len; i++)
        if (k->active[i] && k->known[i] != k)
            p->parts[i] = take_slot(n, p->parts[i], k->known[i], next, slots, count);
    return p;
}

void instance_read(Instance *n) {
    Reader r = {n, n->program, mem_new(Steps)};
    n->body = r.steps;
    if (mem_stack_left() < 2 * SPARE_STACK) {
        reverse_outgrow(r.p, "calls are nested too deeply");
        return;
    }
    const Fn *f = n->fn->fn;
    Place **slots = mem_new_n(Place *, n->nslots + 1);
    uint32_t count = 0, next = 0;
    for (uint32_t i = 0; i < f->nparams; i++) {
        Place *p = NULL;
        if (n->active[i] && n->known[i])
            p = place_of_closure(n, n->known[i]);
        else if (n->active[i])
            p = place_new(n, f->params[i]->type);
        if (p)
            p = take_slot(n, p, p->form == PLACE_CLOSURE ? n->known[i] : NULL, &next, slots,
                          &count);
        name_place(&r, f->params[i], p, n->known[i]);
        for (uint32_t k = 0; p && !n->known[i] && k < i; k++) {
            Expr *other = expr_var(f->params[k], n->fn->span);
            if (place_of(n, other) != p)
                continue;
            merge_alias(&r, f->params[i], other); /* it was given the same value */
            break;
        }
        map_set(&n->body->defines, f->params[i], f->params[i]);
    }
    Place *self = place_of_closure(n, n->self);
    take_slot(n, self, n->self, &next, slots, &count);
    if (count != n->nslots)
        BUG("an instance has %u slots, its call %u", count, n->nslots);
    for (uint32_t i = 0; i < count; i++) {
        slots[i]->shared = n->shared[i];
        n->slots[i] = slots[i];
    }
    bool captures = false;
    for (uint32_t i = 0; i < self->nparts; i++)
        captures |= n->self->active[i];
    for (uint32_t i = 0; i < self->nparts; i++) {
        Var *v = n->self->captured.data[i];
        map_set(&n->body->defines, v, v);
        name_place(&r, v, n->self->known[i] == n->self ? (captures ? self : NULL) : self->parts[i],
                   n->self->known[i]);
    }
    n->wants_self = n->self->captured.len > 0;
    n->fn->fn->keeps_captured |= n->wants_self;
    n->self->original->fn->keeps_captured |= n->wants_self;
    note_cells(n->program, n->fn);
    if (n->is_rule) {
        r.steps->end = END_RETURN;
        r.steps->result = read_value(&r, n->fn->fn->body);
    } else {
        read_end(&r, n->fn->fn->body);
    }
}

bool instance_fits(Program *p, size_t count) {
    if (count < MAX_INSTANCES)
        return true;
    p->lacks_data |= !p->why; /* a function that is known grows no more where it is data */
    reverse_outgrow(p, "too many instances");
    return false;
}

Instance *instance_get(Program *p, Known *self, Known **known, const bool *active,
                       const bool *shared, uint32_t nslots, const SlotMap *numbers) {
    for (size_t i = 0; i < p->instances.len; i++) {
        Instance *n = p->instances.data[i];
        if (!n->forward && instance_is_of(n, self, known, active, numbers) &&
            same_flags(n->shared, shared, nslots))
            return n;
    }
    if (!instance_fits(p, p->instances.len))
        return NULL;
    Instance *n = instance_new(p, self, known, active, nslots, numbers);
    for (uint32_t i = 0; i < nslots; i++)
        n->shared[i] = shared[i];
    vec_push(&p->instances, n);
    instance_read(n);
    if (p->mirrors && !p->why)
        mirrors_find(n);
    return n;
}

Instance *instance_see(Program *p, const Step *s) {
    for (size_t i = 0; i < p->seen.len; i++)
        if (instance_is_of(p->seen.data[i], s->callee, s->known, s->active, &s->slots))
            return NULL;
    if (p->seen.len == MAX_INSTANCES) {
        p->lacks_data |= !p->why;
        reverse_outgrow(p, "too many instances");
        return NULL;
    }
    Instance *n = instance_new(p, s->callee, s->known, s->active, s->nslots, &s->slots);
    vec_push(&p->seen, n);
    instance_read(n);
    return n;
}

static Expr *without_unused(PassCtx *ctx, Expr *fn) { return pass_run(ctx, pass_find("dce"), fn); }

/* ---- forward --------------------------------------------------------------------------------- */

uint32_t frame_head(const Instance *n) { return 1 + (n->loops.len > 0) + (n->returns.len > 1); }

static void add_saved(Expr **items, uint32_t *n, const VarVec *saved, Span span) {
    for (size_t i = 0; i < saved->len; i++)
        items[(*n)++] = expr_var(saved->data[i], span);
}

static Expr *frame_of_return(Instance *n, const Steps *end) {
    Build b = {n->fn->span};
    Expr **items = mem_new_n(Expr *, end->saved.len + 3);
    uint32_t count = 0;
    items[count++] = n->program->mirrors ? mirror_pair(n, &b, end->result) : end->result;
    if (n->loops.len)
        items[count++] = b_ref(&b, n->own_chain ? n->own_chain : n->chain);
    if (n->returns.len > 1)
        items[count++] = expr_int(end->number, DT_I32, b.span);
    add_saved(items, &count, &end->saved, b.span);
    return b_tuple(&b, items, count);
}

/* Before the variables of a frame of a loop come the frames so far and, where the function calls itself at several
 * places, which of them it is. */
static uint32_t loop_head(const Instance *n) { return 1 + (n->loops.len > 1); }

/* Below the frames of a loop: there the way back ends. No frames are before it, and its number is that of no loop. */
Expr *first_frame(const Build *b) {
    Expr **items = mem_new_n(Expr *, 2);
    items[0] = b_absent(b, b_some_type("frames"));
    items[1] = expr_int(-1, DT_I32, b->span);
    Expr *frame = b_tuple(b, items, 2);
    frame->type = b_some_type("frames");
    return frame;
}

bool is_first_frame(const Expr *e) {
    if (e->kind != EXPR_TUPLE || e->nargs != 2 || type_resolve(e->type)->tag == TY_TUPLE)
        return false;
    const Expr *number = e->args[1];
    return e->args[0]->kind == EXPR_ZERO && number->kind == EXPR_LIT && !number->is_float &&
           number->i == -1;
}

bool counts_frames(const Instance *n) { return n->loops.len == 1 && !n->loops.data[0]->saved.len; }

Type *chain_type(const Instance *n) {
    return counts_frames(n) ? type_scalar(DT_I64) : b_some_type("frames");
}

/* The number of frames and that number: an operator with the result's type. */
static Expr *count_by(const Build *b, const Op *op, Expr *frames, int64_t number, DType result) {
    Expr **two = mem_new_n(Expr *, 2);
    two[0] = frames;
    two[1] = expr_int(number, DT_I64, b->span);
    return b_op(b, op, two, 2, type_scalar(result));
}

Expr *forward_call(Instance *callee, const Expr *call, Expr *const *mirrors, Expr *chain) {
    Build b = {call->span};
    if (counts_frames(callee) && is_first_frame(chain))
        chain = expr_int(0, DT_I64, b.span);
    Expr **args = mem_new_n(Expr *, call->nargs + callee->nslots + 2);
    uint32_t count = 0;
    if (callee->wants_self)
        args[count++] = call->a;
    for (uint32_t i = 0; i < call->nargs; i++)
        args[count++] = call->args[i];
    for (uint32_t i = 0; mirrors && i < callee->nslots; i++)
        args[count++] = mirrors[i];
    if (callee->loops.len && !callee->own_chain)
        args[count++] = chain;
    Expr *f = expr_global(callee->forward_global, b_some_type("f"), b.span);
    Expr *made = b_call(&b, f, args, count, 0);
    made->inlined = call->inlined;
    return made;
}

static bool is_function(void *none, const Expr *e) {
    (void)none;
    return e->kind == EXPR_FN;
}

/* Whether the function serves for its value as it is: it makes no function that a copy would call by name, and is given none. */
static bool is_as_written(const Instance *callee, const Expr *call) {
    const Expr *f = call->a;
    for (uint32_t i = 0; i < callee->fn->fn->nparams; i++)
        if (callee->known[i])
            return false;
    return !callee->wants_self && !expr_any(callee->fn->fn->body, is_function, NULL) &&
           (f->kind == EXPR_GLOBAL || (f->kind == EXPR_VAR && f->var == callee->program->code->of));
}

Expr *value_call(Instance *callee, Expr *call) {
    if (is_as_written(callee, call))
        return call;
    Expr *made = forward_call(callee, call, NULL, NULL);
    made->type = call->type;
    return made;
}

static Expr *frame_of_loop(Instance *n, const Steps *end) {
    Build b = {end->call->span};
    Expr **mirrors = n->program->mirrors ? mirrors_of_slots(&b, end->branch) : NULL;
    if (counts_frames(n))
        return forward_call(n, end->call, mirrors,
                            count_by(&b, &op_add, b_ref(&b, n->chain), 1, DT_I64));
    if (n->own_chain)
        return forward_call(n, end->call, mirrors, NULL);
    Expr **items = mem_new_n(Expr *, end->saved.len + 2);
    uint32_t count = 0;
    items[count++] = b_ref(&b, n->chain);
    if (n->loops.len > 1)
        items[count++] = expr_int(end->number, DT_I32, b.span);
    add_saved(items, &count, &end->saved, b.span);
    Expr *frame = b_tuple(&b, items, count);
    frame->type = b_some_type("frames");
    return forward_call(n, end->call, mirrors, frame);
}

Expr *expr_with_arms(const Expr *e, Expr *scrutinee, Expr **bodies, Type *type) {
    Expr *copy = expr_copy(e);
    copy->a = scrutinee;
    copy->type = type;
    if (e->kind == EXPR_IF) {
        copy->b = bodies[0];
        copy->c = bodies[1];
        return copy;
    }
    copy->arms = mem_new_n(Arm, e->narms + 1);
    for (uint32_t i = 0; i < e->narms; i++)
        copy->arms[i] = (Arm){e->arms[i].pattern, e->arms[i].guard, bodies[i]};
    return copy;
}

Expr *choices_of(const Step *s, Expr **bodies) {
    return expr_with_arms(s->e, s->scrutinee, bodies, b_some_type("frame"));
}

static Expr *frame_of_choice(const Build *b, const Choice *c, uint32_t number, Expr *result) {
    Expr **items = mem_new_n(Expr *, c->saved.len + 2);
    uint32_t count = 0;
    items[count++] = result;
    items[count++] = expr_int(number, DT_I32, b->span);
    add_saved(items, &count, &c->saved, b->span);
    Expr *frame = b_tuple(b, items, count);
    frame->type = b_some_type("frame");
    return frame;
}

/* value, frame: which of the two is asked for. */
static Expr *forward_inner(Instance *n, const Step *s, const Map *needed, bool value, bool frame) {
    Build b = {s->e->span};
    Expr **bodies = mem_new_n(Expr *, s->nchoices + 1);
    for (uint32_t i = 0; i < s->nchoices; i++) {
        const Choice *c = &s->choices[i];
        Block block = {.b = &b};
        if (n->program->mirrors)
            mirror_enter(c, &block);
        forward_steps(n, c->steps, needed, &block);
        Expr *result = value ? c->steps->result : b_unit(&b);
        if (n->program->mirrors)
            result = mirror_pair(n, &b, result);
        bodies[i] = block_end(&block, frame ? frame_of_choice(&b, c, i, result) : result);
    }
    Expr *made = choices_of(s, bodies);
    made->type = frame ? b_some_type("frame") : s->e->type;
    return made;
}

void emit_let(Block *into, Var *v, Expr *value, bool rec) {
    Expr *link = expr_new(EXPR_LET, NULL, value->span);
    link->var = v;
    link->a = value;
    link->rec = rec;
    vec_push(&into->links, link);
}

bool step_is_identity(Instance *n, const Step *s) {
    return s->e->a->kind == EXPR_OP && n->program->merges &&
           (is_identity(s->e) || shape_keeps(n, s->e));
}

static bool is_needed(const Map *needed, const Var *v) {
    return !needed || (v && map_has(needed, v));
}

void forward_steps(Instance *n, Steps *steps, const Map *needed, Block *into) {
    for (size_t i = 0; i < steps->steps.len; i++) {
        Step *s = steps->steps.data[i];
        Build b = {s->e->span};
        bool value = is_needed(needed, s->var);
        bool keeps = needed ? is_needed(needed, s->frame) : s->kind == STEP_CALL || !n->replays;
        if (!value && !keeps)
            continue;
        if (s->kind == STEP_PLAIN || s->kind == STEP_OPERATOR || s->kind == STEP_BUILTIN) {
            bool identity = s->e->kind == EXPR_CALL && step_is_identity(n, s);
            mirror_before_step(n, s, into);
            emit_let(into, s->var, identity ? s->e->args[0] : s->e, s->rec);
            mirror_step(n, s, into);
            continue;
        }
        Expr *frame;
        if (s->kind == STEP_CALL && (!s->instance || s->runs_again || s->instance->replays)) {
            /* no cotangent comes back to it, or it keeps nothing for that */
            bool replays = s->instance && s->instance->replays;
            if (value)
                emit_let(into, s->var, replays ? value_call(s->instance, s->e) : s->e, false);
            mirror_step(n, s, into);
            continue;
        }
        if (s->kind == STEP_CALL)
            frame = forward_call(s->instance, s->e,
                                 n->program->mirrors ? mirrors_of_slots(&b, s) : NULL,
                                 first_frame(&b));
        else
            frame = forward_inner(n, s, needed, value, keeps);
        emit_let(into, keeps ? s->frame : s->var, frame, false);
        if (n->program->mirrors) {
            mirror_take(s, expr_proj(b_ref(&b, s->frame), 0, b_some_type("pair"), b.span), into);
            continue;
        }
        if (value && keeps)
            emit_let(into, s->var, expr_proj(b_ref(&b, s->frame), 0, s->var->type, b.span), false);
    }
}

/* replay: the way back that goes on from each return in place of a frame; or NULL. */
static Expr *forward_end(Instance *n, Steps *steps, Back *replay) {
    Build b = {n->fn->span};
    Block block = {.b = &b};
    if (n->program->mirrors && steps->choice)
        mirror_enter(steps->choice, &block);
    forward_steps(n, steps, replay ? &n->needed : NULL, &block);
    Type *type = replay ? back_type(replay) : b_some_type("frame");
    Expr *value = NULL;
    switch (steps->end) {
    case END_RETURN:
        if (replay) {
            Subst copy = {0}; /* what an arm saved has the same name on both ways */
            return block_end(&block, expr_substitute(&copy, replay->ways[steps->number]));
        }
        if (n->replays)
            return block_end(&block, steps->result);
        value = frame_of_return(n, steps);
        break;
    case END_LOOP: value = frame_of_loop(n, steps); break;
    case END_BRANCH: {
        Step *s = steps->branch;
        Expr **bodies = mem_new_n(Expr *, s->nchoices + 1);
        for (uint32_t i = 0; i < s->nchoices; i++)
            bodies[i] = forward_end(n, s->choices[i].steps, replay);
        value = choices_of(s, bodies);
        if (n->replays && !replay)
            type = s->e->type;
        break;
    }
    }
    value->type = type;
    return block_end(&block, value);
}

/* Binds what the function captured, from the closure. */
static void bind_captured(const Instance *n, const Build *b, Expr *self, Block *into) {
    for (uint32_t i = 0; i < n->self->captured.len; i++) {
        Var *v = n->self->captured.data[i];
        Expr *number = expr_int(i, DT_I32, b->span);
        Expr *value = n->self->known[i] == n->self
                          ? self
                          : b_builtin(b, "ad.captured", self, number, NULL);
        emit_let(into, v, value, false);
    }
}

Var **forward_params(Instance *n, const Build *b, Block *into, uint32_t *count) {
    const Fn *f = n->fn->fn;
    Var **params = mem_new_n(Var *, f->nparams + n->nslots + 2);
    *count = 0;
    if (n->wants_self) {
        Var *self = params[(*count)++] = b_var(b, "self", b_some_type("f"));
        bind_captured(n, b, b_ref(b, self), into);
    }
    for (uint32_t i = 0; i < f->nparams; i++)
        params[(*count)++] = f->params[i];
    return params;
}

static Expr *make_forward(Instance *n) {
    Build b = {n->fn->span};
    Block block = {.b = &b};
    uint32_t count;
    Var **params = forward_params(n, &b, &block, &count);
    for (uint32_t i = 0; n->program->mirrors && i < n->nslots; i++) {
        params[count++] = n->slots[i]->mirror;
        mirror_bind_parts(n->slots[i], &block);
    }
    if (n->loops.len && !n->own_chain)
        params[count++] = n->chain = b_var(&b, "k", chain_type(n));
    Expr *fn = b_fn(&b, "fwd", params, count, block_end(&block, forward_end(n, n->body, NULL)));
    fn->fn->name = n->fn->fn->name;
    Subst copy = {0};
    return expr_substitute(&copy, fn);
}

/* ---- back ------------------------------------------------------------------------------------ */

/* The way back from one end, which takes what it reads out of its frame. s: of what a loop keeps beside the frames. */
static Expr *open_frame(const Build *b, const Steps *end, Expr *back, Expr *frame, uint32_t head,
                        Subst s) {
    Block block = {.b = b};
    for (size_t i = 0; i < end->saved.len; i++) {
        Var *v = end->saved.data[i];
        Expr *from = expr_proj(frame, (int32_t)(head + i), v->type, b->span);
        map_set(&s.vars, v, block_let(&block, v->name->text, from));
    }
    return block_end(&block, expr_substitute(&s, back));
}

static Expr *choose(const Build *b, Type *type, Expr *test, Expr *it, Expr *others) {
    if (!others)
        return it;
    Expr *e = b_if(b, test, it, others);
    e->type = type;
    return e;
}

static Expr *is_end(const Build *b, Expr *tag, int64_t number) {
    Expr **two = mem_new_n(Expr *, 2);
    two[0] = tag;
    two[1] = expr_int(number, DT_I32, b->span);
    return b_op(b, &op_equal, two, 2, type_scalar(DT_BOOL));
}

/* The function itself up to each return, as far as the way back from there reads it, and then that way. */
static Expr *make_replay(Back *k) {
    Instance *n = k->of;
    Build b = {n->fn->span};
    Block block = {.b = &b};
    Var **params = mem_new_n(Var *, k->nparams + n->kept.len + 1);
    uint32_t count = 0;
    for (uint32_t i = 1; i < k->nparams; i++)
        params[count++] = k->params[i];
    if (replay_needs_self(n)) {
        Var *self = params[count++] = b_var(&b, "self", b_some_type("f"));
        bind_captured(n, &b, b_ref(&b, self), &block);
    }
    for (size_t i = 0; i < n->kept.len; i++)
        params[count++] = n->kept.data[i];
    Expr *fn = b_fn(&b, "bwd", params, count, block_end(&block, forward_end(n, n->body, k)));
    Subst copy = {0};
    return expr_substitute(&copy, fn);
}

/* Gives the calls of loops that a way back ends in their type, which is known when all are made. */
static void type_loop_calls(Expr *e, Type *type) {
    for (; e->kind == EXPR_LET; e = e->body)
        e->type = type;
    if (e->kind == EXPR_IF) {
        type_loop_calls(e->b, type);
        type_loop_calls(e->c, type);
    }
    if (e->kind == EXPR_IF || e->kind == EXPR_CALL)
        e->type = type;
}

static Expr *make_back(Back *k) {
    Instance *n = k->of;
    Build b = {n->fn->span};
    Block block = {.b = &b};
    Expr *frame = b_ref(&b, k->params[0]), *tag = NULL, *body = NULL;
    uint32_t nparams = k->nparams, nkept = k->is_loop || !n->loops.len ? (uint32_t)n->kept.len : 0;
    Var **params = mem_new_n(Var *, nparams + nkept);
    memcpy(params, k->params, nparams * sizeof *params);
    for (uint32_t i = 0; i < nkept; i++)
        params[nparams++] = b_var(&b, n->kept.data[i]->name->text, n->kept.data[i]->type);
    uint32_t head = k->is_loop ? loop_head(n) : frame_head(n);
    Type *type = back_type(k);
    if (k->is_loop)
        k->before->type = chain_type(n);
    size_t nends = k->is_loop ? n->loops.len : n->returns.len;
    if (nends > 1)
        tag = block_let(&block, "end",
                        expr_proj(frame, (int32_t)head - 1, type_scalar(DT_I32), b.span));
    for (size_t i = nends; i-- > 0;) {
        const Steps *end = k->is_loop ? n->loops.data[i] : n->returns.data[i];
        Map kept = {0};
        for (uint32_t v = 0; v < nkept; v++)
            map_set(&kept, n->kept.data[v], b_ref(&b, params[k->nparams + v]));
        if (k->before) {
            Expr *before = k->is_loop ? b_ref(&b, k->before)
                                      : expr_proj(frame, 1, chain_type(n), b.span);
            map_set(&kept, k->before, before);
            type_loop_calls(k->ways[i], type);
        }
        body = choose(&b, type, tag ? is_end(&b, tag, (int64_t)i) : NULL,
                      open_frame(&b, end, k->ways[i], frame, head, (Subst){.vars = kept}), body);
    }
    if (k->is_loop && counts_frames(n)) {
        frame->type = params[0]->type = type_scalar(DT_I64);
        body = expr_let(k->before, count_by(&b, &op_subtract, frame, 1, DT_I64), body);
        body = choose(&b, type, count_by(&b, &op_equal, frame, 0, DT_BOOL), back_give_entry(&b, k),
                      body);
    } else if (k->is_loop) {
        Expr *before = b_ref(&b, k->before);
        Expr *test = tag ? is_end(&b, tag, -1) : b_builtin(&b, "ad.is_zero", before, NULL);
        emit_let(&block, k->before, expr_proj(frame, 0, before->type, b.span), false);
        body = choose(&b, type, test, back_give_entry(&b, k), body);
    }
    if (!body)
        body = b_unit(&b); /* the function never returns */
    Expr *fn = b_fn(&b, "bwd", params, nparams, block_end(&block, body));
    if (n->program->merges && !(k->is_loop && counts_frames(n)))
        vec_push(&fn->fn->frames, params[0]);
    return fn;
}

void instance_finish(Instance *n) {
    if (n->forward) {
        Subst copy = {0};
        n->forward_global->value = without_unused(n->program->ctx,
                                                  expr_substitute(&copy, n->forward_fn));
        pass_check(n->program->ctx, n->forward_global->value, NULL, "a function with tangents");
        return;
    }
    Expr *forward = make_forward(n);
    pass_check(n->program->ctx, forward, NULL, "the forward function of a derivative");
    n->forward_global->value = without_unused(n->program->ctx, forward);
    for (size_t i = 0; i < n->backs.len; i++) {
        Back *k = n->backs.data[i];
        if (k->state == BACK_UNREACHED)
            continue;
        Expr *back = n->replays ? make_replay(k) : make_back(k);
        pass_check(n->program->ctx, back, NULL, "the way back of a derivative");
        k->global->value = without_unused(n->program->ctx, back);
    }
}
