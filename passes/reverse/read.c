/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a function into steps whose operands are names, and finding what is active and which names are one value
 * (Note [Places]). What no active value reaches stays one plain step, whatever it is. */
#include "passes/cells.h"
#include "passes/reverse/beside.h"
#include "passes/vmap.h"

static void refuse(Reader *r, const char *why) { reverse_refuse(r->p, why); }

Place *place_of(const Instance *n, const Expr *atom) {
    return atom->kind == EXPR_VAR ? map_find(&n->places, atom->var) : NULL;
}

/* ---- steps ----------------------------------------------------------------------------------- */

Step *add_step(Reader *r, StepKind kind, Var *var, Expr *e) {
    Step *s = mem_new(Step);
    s->kind = kind;
    s->var = var;
    s->e = e;
    vec_push(&r->steps->steps, s);
    if (var) {
        map_set(&r->steps->defines, var, var);
        map_set(&r->n->made_by, var, s);
        shape_note(r->n, var, e);
    }
    pass_visit(r->p->ctx);
    if (++r->p->work > r->p->most_work)
        reverse_outgrow(r->p, "the program is too large");
    return s;
}

Expr *add_plain(Reader *r, const char *name, Expr *e) {
    Var *v = var_new(sym_intern(name), e->type, e->span);
    add_step(r, STEP_PLAIN, v, e);
    return expr_var(v, e->span);
}

bool is_atom(const Expr *e) {
    switch (e->kind) {
    case EXPR_LIT: return !e->like;
    case EXPR_CONST:
    case EXPR_STRING:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_CTOR:
    case EXPR_BUILTIN:
    case EXPR_ZERO: return true;
    default: return false; /* all other forms are run, and bound to a name */
    }
}

void name_place(Reader *r, Var *v, Place *p, Known *k) {
    if (p)
        map_set(&r->n->places, v, p);
    if (p && !p->home)
        p->home = r->steps;
    if (k)
        map_set(&r->n->knowns, v, k);
}

Expr **read_args(Reader *r, Expr **args, uint32_t count, bool *active) {
    Expr **atoms = mem_new_n(Expr *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        atoms[i] = read_value(r, args[i]);
        *active |= place_of(r->n, atoms[i]) != NULL;
    }
    return atoms;
}

/* Binds the value of e, which an active value reaches but does not leave. */
static Expr *read_inert(Reader *r, Expr *e) {
    bool first = !r->p->why;
    if (!is_tame(r, e)) {
        reverse_lack(r->p, "an active value reaches what may write it or has no derivative");
        r->p->tries_again |= first && meets_references(r, e);
    }
    return add_plain(r, "v", e);
}

/* The same of an operator whose operands need care, as a comparison of derivatives: these are read like any other value. */
static Expr *read_inert_parts(Reader *r, Expr *e) {
    if (e->kind != EXPR_CALL || e->a->kind != EXPR_OP || e->nsizes)
        return read_inert(r, e);
    bool active = false;
    Expr *copy = expr_copy(e);
    copy->args = read_args(r, e->args, e->nargs, &active);
    return read_inert(r, copy);
}

/* ---- data and tuples ------------------------------------------------------------------------- */

static void take_parts(Reader *r, Place *p, Expr **atoms) {
    for (uint32_t i = 0; i < p->nparts; i++) {
        p->parts[i] = place_of(r->n, atoms[i]);
        bool empty = atoms[i]->kind == EXPR_CTOR || atoms[i]->kind == EXPR_ZERO;
        p->partial |= !p->parts[i] && !empty && type_may_hold_float(atoms[i]->type);
        p->lacks |= atoms[i]->kind == EXPR_ZERO && !p->is_empty;
    }
}

static Expr *read_parts(Reader *r, Expr *e) {
    bool active = false;
    e = cells_of_parts(e);
    Expr *copy = expr_copy(e);
    copy->args = read_args(r, e->args, e->nargs, &active);
    for (uint32_t i = 0; i < e->nargs; i++)
        copy->args[i] = function_as_data(r, copy->args[i]);
    Expr *v = add_plain(r, e->kind == EXPR_TUPLE ? "t" : "d", copy);
    if (e->kind == EXPR_TUPLE)
        map_set(&r->n->tuples, v->var, copy);
    bool empty = is_first_frame(e);
    if (!active && !empty)
        return v;
    Place *p = mem_new(Place);
    p->is_empty = empty;
    p->type = e->type;
    p->id = ++r->n->nplaces;
    p->form = e->kind == EXPR_TUPLE ? PLACE_TUPLE : PLACE_DATA;
    p->ctor = e->kind == EXPR_TUPLE ? NULL : e->a->ctor;
    p->nparts = e->nargs;
    p->parts = mem_new_n(Place *, e->nargs + 1);
    take_parts(r, p, copy->args);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (p->parts[i] && p->parts[i]->form == PLACE_CLOSURE) {
            reverse_lack_data(r->p, "an active closure is stored in data");
            return v;
        }
    name_place(r, v->var, p, NULL);
    return v;
}

static Expr *read_part(Reader *r, Expr *e);

/* { r with w = e } of a known record, as the constructor of the fields of r and of e. */
static Expr *read_update(Reader *r, Expr *e) {
    e = cells_of_parts(e);
    Expr *old = read_value(r, e->a), **fields;
    const Type *t = type_resolve(old->type);
    if (t->tag != TY_DATA || t->decl->nctors != 1 || t->decl->nexists) {
        refuse(r, "a field of a record that is not known");
        return e;
    }
    const Ctor *ctor = t->decl->ctors[0];
    fields = mem_new_n(Expr *, ctor->nfields + 1);
    for (uint32_t i = 0; i < e->nargs; i++) {
        Expr *value = read_value(r, e->args[i]);
        for (uint32_t k = 0; k < ctor->nfields; k++)
            if (ctor->field_names[k] == e->field_names[i])
                fields[k] = value;
    }
    for (uint32_t k = 0; k < ctor->nfields; k++) {
        if (fields[k])
            continue;
        Expr *kept = expr_new(EXPR_FIELD,
                              type_substitute(ctor->fields[k], t->decl->params, t->args, t->nargs),
                              e->span);
        kept->a = old;
        kept->field = ctor->field_names[k];
        kept->index = (int32_t)k;
        fields[k] = read_part(r, kept);
    }
    Expr *callee = expr_new(EXPR_CTOR, type_fn(ctor->fields, ctor->nfields, e->type, type_pure()),
                            e->span);
    callee->ctor = ctor_of_values(ctor);
    return read_parts(r, expr_call(callee, fields, ctor->nfields, NULL, e->type, e->span));
}

static Expr *read_part(Reader *r, Expr *e) {
    Expr *copy = expr_copy(e);
    copy->a = read_value(r, e->a);
    const Expr *tuple = copy->a->kind == EXPR_VAR ? map_find(&r->n->tuples, copy->a->var) : NULL;
    if (tuple && e->kind == EXPR_PROJ && (uint32_t)e->index < tuple->nargs)
        return tuple->args[e->index];
    Expr *v = add_plain(r, "p", copy);
    Place *whole = place_of(r->n, copy->a);
    if (!whole)
        return v;
    Type *t = type_resolve(copy->a->type);
    if (e->kind == EXPR_PROJ) {
        if (whole->form == PLACE_LEAF && t->tag != TY_TUPLE)
            return read_unknown_part(r, v, whole, (uint32_t)e->index);
        place_make_tuple(r->n, whole, t->nargs);
    } else {
        bool split;
        if (t->tag != TY_DATA || t->decl->nctors != 1 || e->index < 0 ||
            !place_as_data(r->n, whole, ctor_of_values(t->decl->ctors[0]), &split)) {
            refuse(r, "a field of a record that is not known");
            return v;
        }
    }
    if (whole->form != PLACE_CLOSURE && (uint32_t)e->index < whole->nparts)
        name_place(r, v->var, whole->parts[e->index], NULL);
    return v;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Of the arguments of an operator, or of what stands for one, a tuple of literals is an atom: the place of an index, which
 * no frame need hold. */
static Expr **read_operands(Reader *r, Expr **args, uint32_t count, bool *active) {
    Expr **atoms = mem_new_n(Expr *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        bool constant = args[i]->kind == EXPR_TUPLE && args[i]->nargs;
        for (uint32_t k = 0; constant && k < args[i]->nargs; k++)
            constant = args[i]->args[k]->kind == EXPR_LIT && !args[i]->args[k]->like;
        atoms[i] = constant ? args[i] : *read_args(r, args + i, 1, active);
    }
    return atoms;
}

static Expr *read_operator(Reader *r, Expr *e) {
    bool active = false;
    Expr *copy = expr_copy(e);
    copy->args = read_operands(r, e->args, e->nargs, &active);
    Expr *same = merge_operator(r, copy);
    if (same)
        return same;
    const Op *op = e->a->op;
    const Rule *rule = env_find_rule(r->p->ctx->env, op, RULE_DERIVATIVE);
    bool flows = active && type_may_hold_float(e->type) && !(rule && rule_is_zero(rule));
    Expr *v = add_plain(r, "v", copy);
    merge_step(r, vec_last(&r->steps->steps));
    if (!flows)
        return v;
    if (!rule) {
        refuse(r, "an operator without derivative");
        return v;
    }
    Step *s = vec_last(&r->steps->steps);
    s->kind = STEP_OPERATOR;
    s->place = place_new(r->n, e->type);
    s->place->is_tensor = op->pattern < OP_TUPLE && !op->tuple && !op->by_attr;
    name_place(r, v->var, s->place, NULL);
    return v;
}

static Expr *read_stack(Reader *r, Expr *e) {
    Expr *tuple = expr_tuple(e->args, e->nargs, e->span);
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = tuple;
    return read_operator(
        r, expr_call_op(&op_stack, args, 1, attrs_defaults(&op_stack), e->type, e->span));
}

static Expr *read_index(Reader *r, Expr *e) {
    if (type_resolve(e->a->type)->tag != TY_TENSOR) {
        refuse(r, "an index into what may be a tuple");
        return e;
    }
    return read_operator(r, index_as_call(e));
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Gives what is one value one slot. */
static void number_slots(Step *s, uint32_t n) {
    s->slots = slots_apart(n);
    s->nslots = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < s->nslots && s->places[k] != s->places[i])
            k++;
        if (k == s->nslots)
            s->places[s->nslots++] = s->places[i];
        s->slots.slot[i] = k;
    }
}

/* A call of what custom_grad gave: its arguments are read, and nothing that it was given is differentiated. */
static bool settle_custom(Reader *r, Step *s) {
    s->is_custom = true;
    s->nslots = 0;
    s->places = mem_new_n(Place *, s->e->nargs + 1);
    for (uint32_t i = 0; i < s->e->nargs; i++) {
        Place *p = place_of(r->n, s->e->args[i]);
        if (p && (p->form == PLACE_CLOSURE || (p->ctor && p->ctor->is_function))) {
            refuse(r, "an active closure is given to a function with a derivative of its own");
            return false;
        }
        if (p)
            s->places[s->nslots++] = p;
    }
    return true;
}

/* How many functions are known one in the other. */
static uint32_t known_depth(const Known *k) {
    uint32_t most = 0;
    for (uint32_t i = 0; k && i < k->captured.len; i++) {
        uint32_t depth = k->known[i] && k->known[i] != k ? known_depth(k->known[i]) : 0;
        most = depth > most ? depth : most;
    }
    return k ? most + 1 : 0;
}

/* The function that an argument is known to be. One that a recursion makes longer and longer becomes data. */
static Known *known_arg(Reader *r, Expr **arg) {
    enum { DEEPEST = 4 };
    Known *k = known_of(r, *arg);
    if (!functions_are_data(r->p) || known_depth(k) <= DEEPEST)
        return k;
    *arg = function_as_data(r, *arg);
    return NULL;
}

/* Fills in the callee of a call step, whose parts are atoms; false where it is not known. */
static bool settle_call(Reader *r, Step *s) {
    Expr *call = s->e;
    Known *k = function_callee(r, call->a);
    if (!k)
        k = known_of(r, call->a);
    if (!k && function_apply(r, call))
        k = function_callee(r, call->a);
    if (r->p->why)
        return false;
    Known *callee = k;
    if (k && functions_are_data(r->p) && !fn_has_own_code(k->fn) &&
        type_may_be_function(call->type)) {
        reverse_lack(r->p, "a function comes from outside");
        return false;
    }
    if (k && own_is(r->p->ctx, k->fn, GRAD_CUSTOM) && !place_of(r->n, call->a))
        return settle_custom(r, s);
    if (k && own_is(r->p->ctx, k->fn, GRAD_CHECKPOINT)) {
        callee = k->known[0];
        s->runs_again = true;
        if (callee && own_meets_references(r, callee))
            callee = NULL;
    }
    if (!callee || call->mode || call->drop || callee->fn->fn->nparams != call->nargs ||
        !fn_has_own_code(callee->fn)) {
        reverse_lack_data(r->p, "an active value reaches a function that is not known");
        return false;
    }
    if (callee == k && !function_callee(r, call->a))
        callee = k = known_at_sizes(r, known_at_types(r->p, callee, call->args, call->nargs),
                                    call->args, call->nargs);
    s->callee = callee;
    s->known = mem_new_n(Known *, call->nargs + 1);
    s->active = mem_new_n(bool, call->nargs + 1);
    uint32_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        n = 0;
        for (uint32_t i = 0; i < call->nargs; i++) {
            s->known[i] = known_arg(r, &call->args[i]);
            Place *p = place_of(r->n, call->args[i]);
            s->active[i] = p != NULL;
            if (p)
                place_add_slots(p, s->known[i], s->places, &n);
        }
        place_add_slots(place_of(r->n, call->a), k, s->places, &n);
        if (!pass)
            s->places = mem_new_n(Place *, n + 1);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!s->places[i]) {
            refuse(r, "a closure that captures itself");
            return false;
        }
    number_slots(s, n);
    s->shared = mem_new_n(bool, n + 1);
    return true;
}

static bool is_self_call(const Instance *n, const Step *s) {
    if (s->is_custom || s->runs_again || s->callee->fn != n->fn ||
        !known_equal(s->callee, n->self) || !slots_equal(&s->slots, &n->numbers))
        return false;
    for (uint32_t i = 0; i < s->e->nargs; i++)
        if (s->active[i] != n->active[i] || !known_equal(s->known[i], n->known[i]))
            return false;
    return true;
}

/* Whether each shared accumulator is handed to the slot that it came from. */
static bool hands_on_shared(const Instance *n, const Step *s) {
    for (uint32_t i = 0; i < n->nslots; i++)
        if (n->slots[i]->shared && s->places[i] != n->slots[i])
            return false;
    return true;
}

/* A call of atoms, which is no step yet; NULL where it was plain, and *v its value. */
static Expr *read_call_parts(Reader *r, Expr *e, Expr **v) {
    bool active = false;
    Expr *copy = expr_copy(e);
    bool is_name = e->a->kind == EXPR_BUILTIN || e->a->kind == EXPR_GLOBAL;
    copy->a = is_name ? e->a : read_value(r, e->a);
    active |= place_of(r->n, copy->a) != NULL;
    copy->args = read_args(r, e->args, e->nargs, &active);
    if (copy->a->kind == EXPR_BUILTIN && read_builtin(r, copy, active, v))
        return NULL;
    active = active || makes_references(r, copy);
    bool is_builtin = copy->a->kind == EXPR_BUILTIN ||
                      (copy->a->kind == EXPR_GLOBAL && copy->a->global->kind == GLOBAL_BUILTIN);
    bool gives_function = functions_are_data(r->p) && type_may_be_function(e->type);
    bool is_read = (active && (type_may_hold_float(e->type) || touches_cells(r, copy))) ||
                   gives_function || call_makes_function(copy);
    if (is_read && !is_builtin)
        return copy;
    if (gives_function && type_holds_code(e->type))
        reverse_lack(r->p, "a function comes from outside");
    if (active && type_may_hold_float(e->type))
        refuse(r, "an active value reaches a builtin");
    copy->a = plain_callee(r, copy->a);
    *v = active ? read_inert(r, copy) : add_plain(r, "v", copy);
    return NULL;
}

static Step *new_call(Reader *r, Expr *call) {
    Step *s = mem_new(Step);
    s->kind = STEP_CALL;
    s->e = call;
    return settle_call(r, s) ? s : NULL;
}

static Expr *add_call(Reader *r, Step *made) {
    Expr *call = made->e;
    Var *v = var_new(sym_intern("v"), call->type, call->span);
    Step *s = add_step(r, STEP_CALL, v, call);
    *s = *made;
    s->var = v;
    s->frame = var_new(sym_intern("F"), b_some_type("frame"), call->span);
    map_set(&r->steps->defines, s->frame, s->frame);
    if (function_is_given(r->p, s)) /* for the functions that it may give */
        instance_see(r->p, s);
    s->place = place_new(r->n, call->type);
    bool active = s->nslots || s->is_custom || makes_references(r, call);
    name_place(r, v, active ? s->place : NULL, NULL);
    return expr_var(v, call->span);
}

/* What the program puts into data: Note [Own cells] in passes/cells.h. */
static Expr *read_stored(Reader *r, Expr *call) {
    Expr *atom = read_value(r, call->args[0]);
    TypeTag tag = type_resolve(call->type)->tag;
    if (tag == TY_FN || known_of(r, atom))
        return function_stored(r, atom, call->type);
    if (!place_of(r->n, atom) || (tag != TY_TENSOR && tag != TY_PARAM && tag != TY_VAR))
        return atom;
    Expr *copy = expr_copy(call), *v;
    copy->args = mem_new_n(Expr *, 1);
    copy->args[0] = atom;
    if (!read_builtin(r, copy, true, &v))
        BUG("ad.own is linear");
    return v;
}

static Expr *read_call(Reader *r, Expr *e) {
    if (cells_is_own(e))
        return read_stored(r, e);
    if (e->a->kind == EXPR_OP)
        return read_operator(r, e);
    if (e->a->kind == EXPR_CTOR)
        return read_parts(r, e);
    Expr *v, *call = read_call_parts(r, e, &v), *body;
    if (!call)
        return v;
    if ((body = inline_made(r, call)))
        return read_value(r, body);
    Step *s = new_call(r, call);
    return s ? add_call(r, s) : call;
}

/* ---- functions ------------------------------------------------------------------------------- */

static Known *read_known(Reader *r, Expr *fn, Var *self) {
    Known *k = known_new(fn);
    k->sizes = r->n->self->sizes;
    for (uint32_t i = 0; i < k->captured.len; i++) {
        Var *v = k->captured.data[i];
        k->known[i] = v == self ? k : map_find(&r->n->knowns, v);
        k->active[i] = v != self && map_has(&r->n->places, v);
    }
    return k;
}

static Place *place_of_literal(Reader *r, const Known *k) {
    Place *p = place_of_closure(r->n, k);
    bool any = false;
    for (uint32_t i = 0; i < p->nparts; i++) {
        if (k->active[i])
            p->parts[i] = map_find(&r->n->places, k->captured.data[i]);
        any |= k->active[i];
    }
    return any ? p : NULL;
}

Expr *read_fn(Reader *r, Expr *e, Var *var, bool rec) {
    if (!fn_has_own_code(e)) {
        refuse(r, "a function with a derivative of its own");
        return e;
    }
    Known *k = read_known(r, e, rec ? var : NULL);
    function_note(r, k, rec ? var : NULL);
    if (!var)
        var = var_new(sym_intern("f"), e->type, e->span);
    Step *s = add_step(r, STEP_PLAIN, var, e);
    s->rec = rec;
    name_place(r, var, place_of_literal(r, k), k);
    return expr_var(var, e->span);
}

/* ---- branches -------------------------------------------------------------------------------- */

static bool is_other_data(const Place *p, const Ctor *ctor) {
    p = p ? place_here(p) : NULL;
    return p && p->form == PLACE_DATA && p->ctor != ctor;
}

/* false: what has that place is of another constructor, so that no value takes the arm. */
static bool read_pattern(Reader *r, Pattern *pat, Place *p, Choice *c) {
    bool fits = true;
    switch (pat->kind) {
    case PAT_WILDCARD:
    case PAT_LIT:
    case PAT_STRING: return true;
    case PAT_VAR:
        map_set(&c->steps->defines, pat->var, pat->var);
        if (p && type_may_hold_float(pat->var->type))
            name_place(r, pat->var, p, NULL);
        return true;
    case PAT_TUPLE:
        if (p)
            place_make_tuple(r->n, p, pat->nargs);
        break;
    case PAT_CTOR: {
        bool split = false;
        Place *form = p && (pat->nargs || !pat->ctor->nfields)
                          ? place_as_data(r->n, p, pat->ctor, &split)
                          : NULL;
        if (split) {
            vec_push(&c->wholes, p);
            vec_push(&c->splits, form);
            p->arm = form;
        }
        fits = !is_other_data(p, pat->ctor);
        p = form;
        break;
    }
    }
    for (uint32_t i = 0; i < pat->nargs; i++)
        fits &= read_pattern(r, pat->args[i], p && p->parts && i < p->nparts ? p->parts[i] : NULL,
                             c);
    return fits;
}

/* Reads the arm of a branch: in tail position its own end, else its value. */
static void read_choice(Reader *r, Choice *c, Place *matched, Expr *body, bool tail) {
    Steps *outer = r->steps;
    c->steps = mem_new(Steps);
    c->steps->around = outer;
    r->steps = c->steps;
    if (c->pattern && !read_pattern(r, c->pattern, matched, c)) {
        Build b = {body->span};
        body = b_unreachable(&b, "an arm was taken that no value takes", body->type);
    }
    if (c->guard && !is_tame(r, c->guard))
        reverse_lack(r->p, "an active value reaches a guard that may write it");
    if (tail) {
        c->steps->outer = outer;
        c->steps->choice = c;
        read_end(r, body);
    } else {
        c->steps->end = END_RETURN;
        c->steps->result = function_as_data(r, read_value(r, body));
    }
    r->steps = outer;
    for (size_t i = c->wholes.len; i-- > 0;)
        c->wholes.data[i]->arm = NULL;
}

/* Whether a condition is whether an accumulator is absent, which a jump asks. */
static bool is_test(const Reader *r, const Expr *atom) {
    const Step *s = atom->kind == EXPR_VAR ? map_find(&r->n->made_by, atom->var) : NULL;
    const Expr *e = s && s->kind == STEP_PLAIN ? s->e : NULL;
    return e && expr_calls_builtin(e, "ad.is_zero");
}

static void read_branch(Reader *r, Step *s, Expr *e, bool tail) {
    s->kind = STEP_BRANCH;
    s->e = e;
    s->scrutinee = read_value(r, e->a);
    if (is_test(r, s->scrutinee))
        s->scrutinee = ((Step *)map_find(&r->n->made_by, s->scrutinee->var))->e;
    s->limit = r->n->nplaces + 1;
    bool is_if = e->kind == EXPR_IF;
    s->nchoices = is_if ? 2 : e->narms;
    s->choices = mem_new_n(Choice, s->nchoices + 1);
    Place *matched = is_if ? NULL : place_of(r->n, s->scrutinee);
    for (uint32_t i = 0; i < s->nchoices; i++) {
        Choice *c = &s->choices[i];
        c->pattern = is_if ? NULL : e->arms[i].pattern;
        c->guard = is_if ? NULL : e->arms[i].guard;
        read_choice(r, c, matched, is_if ? (i ? e->c : e->b) : e->arms[i].body, tail);
    }
}

/* Whether the value is a field of what the pattern takes apart, which has that form in the arm alone. */
static bool is_of_arm(const Choice *c, const Place *p) {
    bool found = false;
    for (size_t i = 0; i < c->splits.len && !found; i++)
        found = place_is_within(c->splits.data[i], p);
    return found;
}

/* The value that was there before the branch and that each arm gives, so that the result is a name of it; or NULL. */
static Place *find_same_result(const Instance *n, const Step *branch) {
    Place *same = place_of(n, branch->choices[0].steps->result);
    if (same && is_of_arm(&branch->choices[0], same))
        return NULL;
    for (uint32_t i = 1; i < branch->nchoices && same; i++)
        if (place_of(n, branch->choices[i].steps->result) != same)
            same = NULL;
    return same && same->id < branch->limit && same->form != PLACE_CLOSURE ? same : NULL;
}

static Expr *read_inner_branch(Reader *r, Expr *e) {
    Step *s = mem_new(Step);
    read_branch(r, s, e, false);
    Var *v = var_new(sym_intern("v"), e->type, e->span);
    s->var = v;
    s->frame = var_new(sym_intern("F"), b_some_type("frame"), e->span);
    vec_push(&r->steps->steps, s);
    map_set(&r->steps->defines, v, v);
    map_set(&r->steps->defines, s->frame, s->frame);
    s->place = place_new(r->n, e->type);
    Place *same = r->p->why ? NULL : find_same_result(r->n, s);
    name_place(r, v, same ? same : s->place, NULL);
    return expr_var(v, e->span);
}

/* ---- all forms ------------------------------------------------------------------------------- */

static void read_binding(Reader *r, Expr *let) {
    if (let->var && function_arrives(r, let))
        return;
    if (let->a->kind == EXPR_FN && let->var) {
        read_fn(r, let->a, let->var, let->rec);
        return;
    }
    Expr *atom = read_value(r, let->a);
    if (!let->var)
        return;
    add_step(r, STEP_PLAIN, let->var, atom);
    name_place(r, let->var, place_of(r->n, atom), known_of(r, atom));
    merge_alias(r, let->var, atom);
}

static void read_checks(Reader *r, Expr *e) {
    Expr *check = expr_copy(e);
    check->a = expr_unit(e->span);
    check->type = type_unit();
    add_step(r, STEP_PLAIN, NULL, check);
}

static Expr *read_form(Reader *r, Expr *e) {
    switch (e->kind) {
    case EXPR_CALL: return read_call(r, e);
    case EXPR_IF:
    case EXPR_MATCH: return read_inner_branch(r, e);
    case EXPR_TUPLE: return read_parts(r, e);
    case EXPR_PROJ:
    case EXPR_FIELD: return read_part(r, e);
    case EXPR_TENSOR: return read_stack(r, e);
    case EXPR_INDEX: return read_index(r, e);
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_WRITE: return read_of_reference(r, e);
    case EXPR_UPDATE: return read_update(r, e);
    case EXPR_BANG: refuse(r, "an active value meets a reference that is not followed"); return e;
    case EXPR_GRAD: return read_derivative(r, e);
    case EXPR_LIT: /* with the dtype of an active value */
    case EXPR_EQUAL:
    case EXPR_DIM_OF: return add_plain(r, "v", e);
    case EXPR_OP:
    case EXPR_CONST:
    case EXPR_STRING:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_CTOR:
    case EXPR_BUILTIN:
    case EXPR_FN:
    case EXPR_LET:
    case EXPR_ZERO:
    case EXPR_CHECK:
    case EXPR_ERROR: break;
    }
    refuse(r, "a form that is not known");
    return e;
}

/* Reads what comes before the value of e, and gives what is left; NULL where nothing does. */
static Expr *read_before(Reader *r, Expr *e) {
    switch (e->kind) {
    case EXPR_CHECK: read_checks(r, e); return e->a;
    case EXPR_LET: read_binding(r, e); return e->body;
    case EXPR_IF: return known_arm(r->n, e);
    default: return NULL;
    }
}

Expr *read_value(Reader *r, Expr *e) {
    for (Expr *next = e; next; next = read_before(r, e)) {
        e = next->kind == EXPR_GRAD && next->mode == GRAD_VMAP ? read_vmap(r, next) : next;
        if (!r->p->why && is_atom(e)) {
            functions_check_atom(r, e);
            references_check_atom(r, e);
        }
        if (r->p->why || is_atom(e))
            return merge_atom(r, e);
    }
    if (mem_stack_left() < SPARE_STACK) {
        reverse_outgrow(r->p, "forms are nested too deeply");
        return e;
    }
    e = own_unfold(r, e);
    if (e->kind == EXPR_FN)
        return read_fn(r, e, NULL, false);
    if (e->kind == EXPR_OP) {
        Expr *fn = function_of_value(r, e);
        return fn ? read_fn(r, fn, NULL, false) : add_plain(r, "f", e);
    }
    if (e->kind == EXPR_GRAD && derivative_is_known(r, e))
        return read_derivative(r, e);
    if (is_first_frame(e))
        return read_parts(r, e);
    bool gives_function = functions_are_data(r->p) && type_may_be_function(e->type);
    if (!gives_function && !mentions_active(r, e))
        return add_plain(r, "v", e);
    bool known = e->kind == EXPR_CALL && e->a->kind == EXPR_VAR && known_of(r, e->a);
    if (type_may_hold_float(e->type) || known || touches_cells(r, e))
        return read_form(r, e);
    return is_tame(r, e) ? read_inert(r, e) : read_inert_parts(r, e);
}

static void end_return(Reader *r, Expr *atom) {
    r->steps->end = END_RETURN;
    r->steps->result = function_as_data(r, atom);
    r->steps->number = (uint32_t)r->n->returns.len;
    vec_push(&r->n->returns, r->steps);
}

static void end_call(Reader *r, Expr *e) {
    Expr *v, *call = read_call_parts(r, e, &v);
    if (!call) {
        end_return(r, v);
        return;
    }
    Expr *body = inline_made(r, call);
    if (body) {
        read_end(r, body);
        return;
    }
    Step *s = new_call(r, call);
    if (!s)
        return;
    if (!is_self_call(r->n, s) || !hands_on_shared(r->n, s)) {
        end_return(r, add_call(r, s));
        return;
    }
    r->steps->end = END_LOOP;
    r->steps->call = s->e;
    r->steps->branch = s;
    r->steps->number = (uint32_t)r->n->loops.len;
    vec_push(&r->n->loops, r->steps);
}

void read_end(Reader *r, Expr *e) {
    for (Expr *next = e; next; next = read_before(r, e)) {
        e = next;
        if (r->p->why)
            return;
    }
    bool active = mentions_active(r, e) && (type_may_hold_float(e->type) || touches_cells(r, e));
    bool function = e->kind == EXPR_CALL && e->a->kind != EXPR_OP && e->a->kind != EXPR_CTOR &&
                    e->a->kind != EXPR_BUILTIN;
    size_t ends = r->n->returns.len + r->n->loops.len;
    if (active && function) {
        end_call(r, e);
    } else if (active && (e->kind == EXPR_IF || e->kind == EXPR_MATCH) && ends < MAX_LEAVES) {
        Step *s = mem_new(Step);
        r->steps->end = END_BRANCH;
        r->steps->branch = s;
        read_branch(r, s, e, true);
    } else {
        end_return(r, read_value(r, e));
    }
}
