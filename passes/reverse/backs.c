/* SPDX-License-Identifier: Apache-2.0 */
/* The ways back of an instance: which there are, what they take, and what they give.
 *
 * Note [Ways back for what is known]. An instance has one forward function, and a way back for each outline (outline.c) of
 * the cotangent of its result and the accumulators that it shares with its callers. Where it is a loop, another function
 * pops the frames, and again there is one for each outline of the accumulators: before the first frame most of them are absent,
 * before the second one they are there. So nothing is asked while the code runs, no record is taken apart and made again in
 * each step, and a product is added to an accumulator in the product's own kernel.
 *
 *   run.pop(k, acc)   with the gradient `P(w, b)` becomes   run.pop(k, w, b)
 *
 * Where it is not known whether an accumulator is there, a test before the loop, and in each step that cannot tell, goes on
 * with the function for those that are.
 *
 * What a way back gives has an outline too, in which the accumulators at all its ends agree. All ways back of a loop have the
 * same one, since they call each other in tail position. It is found in rounds: a call of a way back none of whose ends has
 * been reached yet tells nothing, and what would follow the call is left out in that round (Way.is_dead). A way back is made where it
 * is first called, and its ends without calls before the others, so what it gives is mostly known before anything reads that,
 * and one round is enough: there is another where something is learnt that code was made by before. Those that pop frames are
 * made before anything is made by what the way back gives that calls them. */
#include "passes/reverse/internal.h"

#include <string.h>

/* ---- which there are ------------------------------------------------------------------------- */

static Back *find_back(const Instance *n, bool is_loop, const char *known, uint32_t *reached) {
    *reached = 0;
    for (size_t i = 0; i < n->backs.len; i++) {
        Back *k = n->backs.data[i];
        if (k->is_loop != is_loop)
            continue;
        if (strcmp(k->known, known) == 0)
            return k;
        *reached += k->state != BACK_UNREACHED;
    }
    return NULL;
}

static void take_accs(Back *k, const Build *b, const char *text, Exprs *params) {
    Instance *n = k->of;
    k->entry = mem_new_n(Presence, n->nslots + 1);
    k->accs = mem_new_n(Expr *, n->nslots + 1);
    for (uint32_t i = 0; i < n->nslots; i++) {
        if (!k->is_loop && !n->slots[i]->shared) {
            k->accs[i] = b_absent(b, b_some_type("ct"));
            continue;
        }
        k->entry[i] = outline_presence(text);
        k->accs[i] = outline_take_acc(b, &text, n->slots[i], params);
    }
}

static Back *add_back(Instance *n, bool is_loop, const char *known) {
    Build b = {n->fn->span};
    Back *k = mem_new(Back);
    Exprs params = {0};
    *k = (Back){.of = n, .is_loop = is_loop, .known = known};
    if (is_loop) {
        vec_push(&params, b_ref(&b, b_var(&b, "k", b_some_type("frames"))));
        take_accs(k, &b, known, &params);
    } else {
        Type *result = type_resolve(n->fn->fn->body->type);
        const char *text = known;
        vec_push(&params, b_ref(&b, b_var(&b, "T", b_some_type("frame"))));
        k->ct = outline_take_ct(&b, &text, result, &params);
        if (k->ct->kind == EXPR_VAR && result->tag == TY_TENSOR)
            k->ct->var->type = k->ct->type = result;
        take_accs(k, &b, text, &params);
    }
    k->nparams = (uint32_t)params.len;
    k->params = mem_new_n(Var *, params.len + 1);
    for (size_t i = 0; i < params.len; i++)
        k->params[i] = params.data[i]->var;
    const char *name = n->fn->fn->name ? n->fn->fn->name->text : "fn";
    k->global = instance_global(fmt_text(is_loop ? "%s.pop" : "%s.bwd", name));
    vec_push(&n->backs, k);
    return k;
}

Back *back_get(Instance *n, bool is_loop, const char *known) {
    uint32_t reached;
    Back *k = find_back(n, is_loop, known, &reached);
    if (!k)
        k = add_back(n, is_loop, known);
    if (k->state == BACK_UNREACHED) {
        k->state = BACK_WAITS;
        vec_push(&n->program->waiting, k);
    }
    return k;
}

/* Whether one more would be too many, and the one that takes everything serves. */
static bool is_one_too_many(const Instance *n, bool is_loop, const char *known) {
    uint32_t reached;
    return !find_back(n, is_loop, known, &reached) && reached >= MAX_BACKS;
}

/* ---- what they give -------------------------------------------------------------------------- */

static Outline *out_of(Back *k) { return k->of->loops.len ? &k->of->back_out : &k->out; }

const char *back_out(Back *k) {
    Outline *out = out_of(k);
    out->is_read = true;
    return out->text;
}

void back_begin_round(Back *k) {
    k->state = BACK_UNREACHED;
    out_of(k)->is_read = false;
}

static void learn_out(Back *k, const char *found) {
    Outline *out = out_of(k);
    const char *joined = out->text ? outline_join(out->text, found) : found;
    if (out->text && strcmp(out->text, joined) == 0)
        return;
    out->text = joined;
    k->of->program->changed |= out->is_read;
}

void back_learn_nothing(Back *k) {
    Str text = {0};
    for (uint32_t i = 0; i < k->of->nslots; i++)
        str_add(&text, "?");
    learn_out(k, str_text(&text));
}

static Expr *tuple_of(const Build *b, const Exprs *parts) {
    if (!parts->len)
        return b_unit(b);
    return parts->len == 1 ? parts->data[0] : b_tuple(b, parts->data, (uint32_t)parts->len);
}

/* The accumulators of all slots in the outline of the result. */
static Expr *result_of(const Build *b, Back *k, Expr **accs) {
    Exprs flat = {0};
    const char *text = back_out(k);
    for (uint32_t i = 0; i < k->of->nslots; i++)
        outline_flatten(&text, accs[i], &flat);
    return tuple_of(b, &flat);
}

Expr *back_give(Way *w) {
    Instance *n = w->n;
    Str text = {0};
    Expr **accs = mem_new_n(Expr *, n->nslots + 1);
    for (uint32_t i = 0; i < n->nslots; i++)
        accs[i] = outline_add_acc(w, &text, n->slots[i], n->slots[i]);
    learn_out(w->back, str_text(&text));
    return result_of(&w->build, w->back, accs);
}

Expr *back_give_entry(const Build *b, Back *loop) {
    learn_out(loop, loop->known);
    return result_of(b, loop, loop->accs);
}

Type *outline_type(const Instance *n, const char *text, Type *const *slots) {
    Types types = {0};
    for (uint32_t i = 0; i < n->nslots; i++)
        outline_add_types(&text, n->slots[i], slots ? slots[i] : n->slots[i]->type, &types);
    if (!types.len)
        return type_unit();
    return types.len == 1 ? types.data[0] : type_tuple(types.data, (uint32_t)types.len);
}

/* What adds to cells is read again as if it gave something, where a derivative follows it. */
Type *back_type(Back *k) {
    return k->of->program->mirrors ? b_some_type("ct") : outline_type(k->of, back_out(k), NULL);
}

Results back_results(Block *block, const char *out, Expr *value) {
    return (Results){block, out, value, outline_count(out), 0};
}

/* ---- what is the same in each step ------------------------------------------------------------ */

static const Var *named_by(const Instance *n, const Expr *atom) {
    const Expr *other = atom->kind == EXPR_VAR ? map_find(&n->aliases, atom->var) : NULL;
    atom = other ? other : atom;
    return atom->kind == EXPR_VAR ? atom->var : NULL;
}

static bool calls_itself(const Instance *n, const Expr *call) {
    for (uint32_t i = 0; i < n->self->captured.len; i++)
        if (n->self->known[i] == n->self && named_by(n, call->a) == n->self->captured.data[i])
            return true;
    return false;
}

static uint32_t param_number(const Instance *n, const Var *v) {
    uint32_t i = 0;
    while (i < n->fn->fn->nparams && n->fn->fn->params[i] != v)
        i++;
    return i;
}

/* Whether there are calls of the same function in these steps, and all of them hand the parameter on. */
static bool hands_on(const Instance *n, const Steps *steps, uint32_t param, bool *any) {
    for (size_t i = 0; i < steps->steps.len; i++) {
        const Step *s = steps->steps.data[i];
        bool same = s->kind == STEP_CALL && s->callee && s->callee->fn == n->fn;
        *any |= same;
        if (same && named_by(n, s->e->args[param]) != n->fn->fn->params[param])
            return false;
        for (uint32_t k = 0; s->kind == STEP_BRANCH && k < s->nchoices; k++)
            if (!hands_on(n, s->choices[k].steps, param, any))
                return false;
    }
    for (uint32_t k = 0; steps->end == END_BRANCH && k < steps->branch->nchoices; k++)
        if (!hands_on(n, steps->branch->choices[k].steps, param, any))
            return false;
    return true;
}

static bool is_constant(const Instance *n, const Var *v) {
    if (!n->loops.len) {
        uint32_t number = param_number(n, v);
        bool any = false;
        return number < n->fn->fn->nparams && hands_on(n, n->body, number, &any) && any;
    }
    uint32_t param = 0, nparams = n->fn->fn->nparams, captured = 0;
    while (param < nparams && n->fn->fn->params[param] != v)
        param++;
    while (captured < n->self->captured.len && n->self->captured.data[captured] != v)
        captured++;
    if (param == nparams && captured == n->self->captured.len)
        return false;
    for (size_t i = 0; i < n->loops.len; i++) {
        const Expr *call = n->loops.data[i]->call;
        if (param < nparams ? named_by(n, call->args[param]) != v : !calls_itself(n, call))
            return false;
    }
    return true;
}

/* What v is a part or another name of; NULL where it is neither. */
static Var *whole_of(const Instance *n, const Var *v) {
    const Step *s = map_find(&n->made_by, v);
    const Expr *of = NULL;
    if (!s || s->kind != STEP_PLAIN)
        return NULL;
    if (s->e->kind == EXPR_VAR)
        of = s->e;
    else if (s->e->kind == EXPR_PROJ || s->e->kind == EXPR_FIELD)
        of = s->e->a;
    else if (expr_calls_builtin(s->e, "ad.captured"))
        of = s->e->args[0];
    return of && of->kind == EXPR_VAR ? of->var : NULL;
}

static void keep(Instance *n, Var *v) {
    for (size_t i = 0; i < n->kept.len; i++)
        if (n->kept.data[i] == v)
            return;
    vec_push(&n->kept, v);
    n->program->changed = true;
}

Expr *keep_constants(Instance *n, Expr *back, const VarVec *vars, Map *outside) {
    for (size_t i = 0; i < vars->len; i++) {
        Var *v = vars->data[i];
        VarVec parts = {0}; /* of a constant, each of the next one */
        if (!map_has(outside, v))
            continue;
        for (; v && !is_constant(n, v); v = whole_of(n, v))
            vec_push(&parts, v);
        if (!v)
            continue;
        keep(n, v);
        map_remove(outside, v);
        for (size_t k = 0; k < parts.len; k++) {
            Var *part = parts.data[k];
            map_remove(outside, part);
            const Step *s = map_find(&n->made_by, part);
            back = expr_let(part, s->e, back);
        }
    }
    return back;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static Expr *item_of(Way *w, Expr *ct, uint32_t i) {
    Expr *number = expr_int(i, DT_I32, w->build.span);
    return way_bind(w, b_builtin(&w->build, "ad.item", ct, number, NULL), NULL);
}

static Expr *call_back(Way *w, const Back *k, Exprs *args) {
    Expr *f = expr_global(k->global, b_some_type("f"), w->build.span);
    return b_call(&w->build, f, args->data, (uint32_t)args->len, 0);
}

/* A call of the loop that has this outline. What it gives may not be known yet: type_loop_calls in make.c. */
static Expr *call_loop(Way *w, Expr *chain, Expr **accs, const char *text) {
    Instance *n = w->n;
    Exprs args = {0};
    vec_push(&args, chain);
    Back *k = back_get(n, true, text);
    for (uint32_t i = 0; i < n->nslots; i++)
        outline_flatten(&text, accs[i], &args);
    for (size_t i = 0; i < n->kept.len; i++)
        vec_push(&args, b_ref(&w->build, n->kept.data[i]));
    return call_back(w, k, &args);
}

Expr *back_call_loop(Way *w, Expr *chain) {
    Instance *n = w->n;
    Str known = {0}, any = {0}, there = {0};
    Expr **accs = mem_new_n(Expr *, n->nslots + 1), **present = mem_new_n(Expr *, n->nslots + 1);
    Exprs asked = {0};
    for (uint32_t i = 0; i < n->nslots; i++) {
        size_t begin = known.len;
        accs[i] = present[i] = outline_add_acc(w, &known, n->slots[i], n->slots[i]);
        str_add(&any, "?");
        const char *of = str_text(&known) + begin;
        bool asks = outline_presence(of) == PERHAPS && accs[i]->kind == EXPR_VAR &&
                    type_resolve(n->slots[i]->type)->tag == TY_TENSOR;
        str_add(&there, asks ? "1" : of);
        if (!asks)
            continue;
        vec_push(&asked, accs[i]);
        present[i] = expr_copy(accs[i]);
        present[i]->type = n->slots[i]->type;
    }
    bool too_many = is_one_too_many(n, true, str_text(&known));
    const char *text = str_text(too_many ? &any : &known);
    if (!asked.len || is_one_too_many(n, true, str_text(&there)))
        return call_loop(w, chain, accs, text);
    Expr *call = call_loop(w, chain, present, str_text(&there));
    for (size_t i = asked.len; i-- > 0;) {
        Expr *test = b_builtin(&w->build, "ad.is_zero", asked.data[i], NULL);
        call = b_if(&w->build, test, call_loop(w, chain, accs, text), call);
    }
    return call;
}

void add_kept_args(const Instance *n, const Expr *call, Exprs *args) {
    if (n->replays && replay_needs_self(n))
        vec_push(args, call->a);
    for (size_t i = 0; !n->loops.len && i < n->kept.len; i++)
        vec_push(args, call->args[param_number(n, n->kept.data[i])]);
}

/* The way back of n that has this outline, with what the call hands over; its type in the terms of the caller's slots. */
static Expr *call_known(Way *w, Instance *n, const CallOfBack *c, Expr *ct, const char *text,
                        Back **called) {
    Exprs args = {0};
    Back *k = *called = back_get(n, false, text);
    if (c->frame)
        vec_push(&args, c->frame);
    outline_flatten(&text, ct, &args);
    for (uint32_t i = 0; i < n->nslots; i++)
        if (n->slots[i]->shared)
            outline_flatten(&text, c->accs[i], &args);
    add_kept_args(n, c->call, &args);
    if (!n->is_being_made && k->state == BACK_WAITS && mem_stack_left() > 2 * SPARE_STACK)
        back_make(k);
    Expr *call = call_back(w, k, &args);
    if (back_out(k))
        call->type = outline_type(n, back_out(k), c->types);
    return call;
}

/* What one of two ways back gives, in the outline that both agree in. */
static Expr *give_as(const Build *b, Back *k, Expr *call, const char *joined, Type *const *types) {
    Instance *n = k->of;
    if (strcmp(back_out(k), joined) == 0)
        return call;
    Block block = {.b = b};
    Results given = back_results(&block, back_out(k), block_let(&block, "cts", call));
    Exprs flat = {0};
    for (uint32_t i = 0; i < n->nslots; i++)
        outline_flatten(&joined, outline_take_result(&given, n->slots[i], types[i]), &flat);
    return block_end(&block, tuple_of(b, &flat));
}

/* Whether a value of the type is a few tensors. */
static bool holds_tensors(Type *t, int depth) {
    t = t ? type_resolve(t) : NULL;
    if (!t || t->tag != TY_TUPLE || !t->nargs || depth == DEEPEST_PART)
        return t && t->tag == TY_TENSOR;
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!holds_tensors(t->args[i], depth + 1))
            return false;
    return true;
}

/* A cotangent of tensors as it is where those are there of which that is not known: they are asked for. */
static Expr *ask_for(Way *w, Expr *ct, Type *type, Exprs *asked) {
    type = type_resolve(type);
    bool is_open = ct->kind == EXPR_VAR && type_resolve(ct->type)->tag != TY_TENSOR;
    if (is_open && type->tag == TY_TENSOR) {
        vec_push(asked, ct);
        ct = expr_copy(ct);
        ct->type = type;
        return ct;
    }
    if (type->tag != TY_TUPLE || !(is_open || (ct->kind == EXPR_TUPLE && ct->nargs == type->nargs)))
        return ct;
    Expr **parts = mem_new_n(Expr *, type->nargs);
    for (uint32_t i = 0; i < type->nargs; i++) {
        Expr *part = is_open ? acc_settle(w, type->args[i], item_of(w, ct, i)) : ct->args[i];
        parts[i] = ask_for(w, part, type->args[i], asked);
    }
    return b_tuple(&w->build, parts, type->nargs);
}

/* Whether it is known of no part that it is there. */
static bool is_all_open(const Expr *ct) {
    for (uint32_t i = 0; ct->kind == EXPR_TUPLE && i < ct->nargs; i++)
        if (!is_all_open(ct->args[i]))
            return false;
    return ct->kind == EXPR_TUPLE || ct->kind == EXPR_ZERO ||
           type_resolve(ct->type)->tag != TY_TENSOR;
}

/* Note [Cotangents that are asked for]. A cotangent that comes out of a list, or is one of several that a loop hands on, may
 * be absent. The way back that takes everything asks for it again and again, and no two of its operators are one kernel. Where
 * the cotangents of a call are tensors, and it is known of none that it is there, they are asked for once before it; where all
 * are there, as in each step of a loop but the first, the way back for those runs. */
static Expr *ask_before(Way *w, Instance *n, const CallOfBack *c, Expr *ct, const char *accs,
                        Expr *general, Back *k, const char **out) {
    enum { MOST_ASKED = 4 };
    Exprs asked = {0};
    Type *result = n->fn->fn->body->type;
    if (!holds_tensors(result, 0) || !is_all_open(ct))
        return general;
    Expr *there = ask_for(w, ct, result, &asked);
    Str known = {0};
    outline_add_ct(&known, there, result);
    str_add(&known, accs);
    if (!asked.len || asked.len > MOST_ASKED || is_one_too_many(n, false, str_text(&known)))
        return general;
    Back *whole;
    Expr *call = call_known(w, n, c, there, str_text(&known), &whole);
    if (!back_out(whole))
        return general;
    if (!back_out(k)) {
        *out = back_out(whole);
        return call;
    }
    *out = outline_join(back_out(k), back_out(whole));
    call = give_as(&w->build, whole, call, *out, c->types);
    for (size_t i = asked.len; i-- > 0;) {
        Expr *test = b_builtin(&w->build, "ad.is_zero", asked.data[i], NULL);
        Expr *others = give_as(&w->build, k, expr_copy(general), *out, c->types);
        call = b_if(&w->build, test, others, call);
        call->type = outline_type(n, *out, c->types);
    }
    return call;
}

Expr *back_call(Way *w, Instance *n, Place *const *places, const CallOfBack *of, Expr *ct,
                const char **out) {
    Str known = {0}, any = {0};
    CallOfBack c = *of;
    c.accs = mem_new_n(Expr *, n->nslots + 1);
    outline_add_ct(&known, ct, n->fn->fn->body->type);
    str_add(&any, ANY_SEED);
    size_t of_ct = known.len;
    for (uint32_t i = 0; i < n->nslots; i++) {
        if (!n->slots[i]->shared)
            continue;
        c.accs[i] = outline_add_acc(w, &known, n->slots[i], places[i]);
        str_add(&any, "?");
    }
    bool general = is_one_too_many(n, false, str_text(&known));
    Back *k;
    Expr *call = call_known(w, n, &c, ct, str_text(general ? &any : &known), &k);
    *out = back_out(k);
    return general ? call : ask_before(w, n, &c, ct, str_text(&known) + of_ct, call, k, out);
}
