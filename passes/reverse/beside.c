/* SPDX-License-Identifier: Apache-2.0 */
/* Cells and references where a derivative follows them: what stands beside each.
 *
 * Note [Mirrors of mirrors]. What is made writes to cells, and a derivative follows that, too. Beside each cell stands one for what
 * belongs to its content: its tangent, or its mirror. It is made, read and put to by the builtin that does so with the cell,
 *
 *   let m = ad.mirror(v)         let mm = ad.mirror(v)           since both have the form of v
 *   ad.mirror_put(m, ct)         ad.mirror_put(mm, mct)
 *   let s = ad.mirror_sum(v, m)  let ms = ad.mirror_sum(v, mm)   and there is no way back
 *
 * A tangent is added as its value is, so that forwards all builtins are followed by themselves. Backwards an addition is a step of
 * its own, for each cell: Note [Cells one by one] in cellwise.c. A call or branch that does nothing but write is read, too: it has the
 * type of a cotangent, though it gives (). What is made of it are the same builtins, for derivatives of any depth.
 *
 * Note [References beside references]. Where references.c has not made a value of a reference, one stands beside it that holds the
 * mirror of what it holds, or its tangent:
 *
 *   let r = ref(x)    let m = ref(mx)
 *   r := v            ad.mirror_write(m, mv)
 *   let v = !r        let mv = ad.mirror_sum((), m)
 *
 * so that what is read has the cell of what was written, whichever reference it is. Nothing stands beside one that was made
 * outside. That is no reference to write an active value to, and a program that hands one on is left to the twins, since then the
 * run decides which one is written. */
#include "passes/reverse/beside.h"

#include <string.h>

/* ---- which expressions are ones of cells ------------------------------------------------------- */

static bool is_of_mirrors(const Expr *e) {
    static const char name[] = "ad.mirror";
    return e->kind == EXPR_CALL && e->a->kind == EXPR_BUILTIN &&
           strncmp(e->a->symbol->text, name, sizeof name - 1) == 0;
}

static bool is_of_reference(const Expr *e) {
    return e->kind == EXPR_REF || e->kind == EXPR_READ || e->kind == EXPR_WRITE;
}

bool is_of_cells(const Expr *e) { return is_of_mirrors(e) || is_of_reference(e); }

static bool (*cells_of(const Program *p))(const Expr *e) {
    return p->follows_refs ? is_of_cells : is_of_mirrors;
}

void note_cells(Program *p, Expr *fn) {
    p->has_cells = p->has_cells || code_leads_to(&p->cells, fn, cells_of(p));
}

static bool is_followed(void *p, const Expr *e) { return cells_of(p)(e); }

bool makes_cells(const Program *p, Expr *e) {
    return p->has_cells && expr_any(e, is_followed, (void *)p);
}

typedef struct Touch {
    Reader *r;
    bool (*is)(const Expr *e);
} Touch;

static bool code_has(Program *p, Expr *fn, bool (*is)(const Expr *e)) {
    Map seen = {0};
    return code_leads_to(is == cells_of(p) ? &p->cells : &seen, fn, is);
}

/* Whether a function has such an expression, or one that it calls or captured. */
static bool function_has(Program *p, const Known *k, bool (*is)(const Expr *e), int depth) {
    enum { DEEPEST = 8 };
    if (depth > DEEPEST || code_has(p, k->fn, is))
        return true;
    for (uint32_t i = 0; i < k->captured.len; i++)
        if (k->known[i] && k->known[i] != k && function_has(p, k->known[i], is, depth + 1))
            return true;
    return false;
}

static bool touches(void *ctx, const Expr *e) {
    const Touch *t = ctx;
    Program *p = t->r->p;
    if (e->kind == EXPR_VAR) {
        const Known *k = map_find(&t->r->n->knowns, e->var);
        return k && function_has(p, k, t->is, 0);
    }
    bool is_def = e->kind == EXPR_GLOBAL && e->global->kind == GLOBAL_DEF && e->global->value;
    return t->is(e) ||
           (is_def && e->global->value->kind == EXPR_FN && code_has(p, e->global->value, t->is));
}

bool touches_cells(Reader *r, Expr *e) {
    return r->p->has_cells && expr_any(e, touches, &(Touch){r, cells_of(r->p)});
}

static bool holds_reference(Type *t) { return type_resolve(t)->tag != TY_FN && type_holds_code(t); }

bool makes_references(Reader *r, Expr *e) {
    bool may = r->p->follows_refs && (holds_reference(e->type) || type_is_open(e->type, false));
    return may && touches_cells(r, e);
}

bool meets_references(Reader *r, Expr *e) {
    return expr_any(e, touches, &(Touch){r, is_of_reference});
}

/* ---- reading ------------------------------------------------------------------------------------ */

void references_check_source(Program *p, const Expr *fn) {
    for (uint32_t i = 0; p->follows_refs && i < fn->fn->nparams; i++)
        if (holds_reference(fn->fn->params[i]->type))
            reverse_refuse(p, "a reference comes from outside");
}

void references_check_atom(Reader *r, const Expr *atom) {
    bool named = atom->kind == EXPR_VAR || atom->kind == EXPR_GLOBAL;
    if (r->p->follows_refs && named && holds_reference(atom->type) && !place_of(r->n, atom))
        reverse_refuse(r->p, "a reference comes from outside");
}

/* A reference that is not followed: one that was made here holds no active value, since making one of it and writing it are
 * refused. One that came with active values, from a call or in data, may. */
static Expr *read_other_reference(Reader *r, Expr *e) {
    if (e->kind != EXPR_READ) {
        reverse_give_up(r->p, "an active value meets a reference that is not followed");
        return e;
    }
    Expr *copy = expr_copy(e);
    copy->a = read_value(r, e->a);
    if (place_of(r->n, copy->a))
        reverse_give_up(r->p, "an active value reaches what holds a reference");
    return add_plain(r, "v", copy);
}

/* A function is not told apart from others by what a reference holds. */
static Expr *read_content(Reader *r, Expr *e) {
    Expr *atom = read_value(r, e);
    if (known_of(r, atom) || type_resolve(e->type)->tag == TY_FN)
        reverse_refuse(r->p, "a reference holds a function");
    return atom;
}

Expr *read_of_reference(Reader *r, Expr *e) {
    bool is_code = r->p->follows_refs ? type_resolve(e->type)->tag == TY_FN
                                      : type_holds_code(e->type);
    if (functions_are_data(r->p) && e->kind == EXPR_READ && is_code)
        reverse_lack(r->p, "a function comes from outside");
    if (!r->p->follows_refs)
        return read_other_reference(r, e);
    Expr *copy = expr_copy(e);
    bool makes = e->kind == EXPR_REF, writes = e->kind == EXPR_WRITE;
    copy->a = makes           ? read_content(r, e->a)
              : is_atom(e->a) ? merge_atom(r, e->a)
                              : read_value(r, e->a);
    if (writes)
        copy->b = read_content(r, e->b);
    bool follows = makes ? type_may_hold_float(e->a->type) : place_of(r->n, copy->a) != NULL;
    if (writes && !follows && place_of(r->n, copy->b))
        reverse_refuse(r->p, "an active value meets a reference that is not followed");
    if (writes) {
        add_step(r, follows ? STEP_BUILTIN : STEP_PLAIN, NULL, copy);
        return expr_unit(e->span);
    }
    return follows && type_may_hold_float(e->type) ? add_linear(r, copy) : add_plain(r, "v", copy);
}

Expr *read_mirror_call(Reader *r, Expr *call) {
    if (!r->n->forward && !r->p->mirrors) {
        reverse_give_up(r->p, "data with two names is differentiated again");
        return call;
    }
    Expr *by_cells = r->n->forward ? NULL : cellwise(r->p->ctx, call);
    if (by_cells) {
        (void)read_value(r, by_cells);
        return expr_unit(call->span);
    }
    if (!type_is_unit(call->type))
        return add_linear(r, call);
    add_step(r, STEP_BUILTIN, NULL, call);
    return expr_unit(call->span);
}

/* ---- what stands beside ------------------------------------------------------------------------ */

uint32_t args_of_cells(const Expr *e, Expr **args) {
    uint32_t n = e->kind == EXPR_CALL ? e->nargs : e->kind == EXPR_WRITE ? 2 : 1;
    args[0] = e->kind == EXPR_CALL && n ? e->args[0] : e->a;
    args[1] = e->b;
    for (uint32_t i = 1; e->kind == EXPR_CALL && i < n; i++)
        args[i] = e->args[i];
    return n;
}

uint32_t beside_args(const Expr *call) {
    static const struct {
        const char *name;
        uint32_t args;
    } table[] = {{"ad.mirror", 0},       {"ad.mirror_add", 3}, {"ad.mirror_join", 10},
                 {"ad.mirror_move", 3},  {"ad.mirror_own", 1}, {"ad.mirror_put", 3},
                 {"ad.mirror_split", 7}, {"ad.mirror_sum", 2}, {"ad.mirror_with_part", 5},
                 {"ad.mirror_write", 3}};
    if (is_of_reference(call))
        return call->kind == EXPR_WRITE ? 3 : 1;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (expr_calls_builtin(call, table[i].name))
            return table[i].args;
    BUG("no derivative follows `%s`", call->a->symbol->text);
}

/* Beside a reference stands one that holds what stands beside its value. */
static Expr *beside_reference(const Build *b, const Expr *e, Expr *const *of) {
    if (e->kind == EXPR_WRITE)
        return b_builtin(b, "ad.mirror_write", of[0], of[1], NULL);
    if (e->kind == EXPR_READ)
        return b_builtin(b, "ad.mirror_sum", b_unit(b), of[0], NULL);
    Expr *ref = expr_new(EXPR_REF, type_ref(b_some_type("mirror")), b->span);
    ref->a = of[0];
    return ref;
}

Expr *beside(const Build *b, const Expr *e, Expr *const *of) {
    if (is_of_reference(e))
        return beside_reference(b, e, of);
    Expr **args = mem_new_n(Expr *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++)
        args[i] = beside_args(e) >> i & 1 ? of[i] : e->args[i];
    return b_builtin_n(b, e->a->symbol->text, args, e->nargs);
}

void follow_cells(Way *w, const Step *s) {
    const Expr *e = s->e;
    bool there = !beside_args(e) || e->kind == EXPR_REF, unknown = false; /* it makes cells */
    emit_let(w->block, s->var, s->e, false);
    if (s->place && !tangent_is_read(&w->n->read, s->place))
        return;
    Expr *args[MOST_CELL_ARGS], *tangents[MOST_CELL_ARGS];
    uint32_t n = args_of_cells(e, args);
    for (uint32_t i = 0; i < n; i++) {
        Place *p = place_of(w->n, args[i]);
        Presence presence = beside_args(e) >> i & 1 ? tangent_presence(p) : ABSENT;
        bool has = presence == PRESENT || presence == PERHAPS;
        tangents[i] = has ? acc_get(w, p) : absent_value(w);
        there |= has;
        unknown |= presence == UNKNOWN;
    }
    Expr *same = there ? beside(&w->build, e, tangents) : NULL;
    if (!s->place && same)
        block_do(w->block, same);
    else if (s->place)
        acc_set(w, s->place, same ? way_bind(w, same, NULL) : NULL,
                same      ? PERHAPS
                : unknown ? UNKNOWN
                          : ABSENT);
}

/* ---- steps ------------------------------------------------------------------------------------ */

static bool choices_touch_cells(Instance *n, const Step *s);

static bool steps_touch_cells(Instance *n, const Steps *steps) {
    for (size_t i = 0; i < steps->steps.len; i++)
        if (step_touches_cells(n, steps->steps.data[i]))
            return true;
    return steps->end == END_BRANCH && choices_touch_cells(n, steps->branch);
}

static bool choices_touch_cells(Instance *n, const Step *s) {
    for (uint32_t i = 0; i < s->nchoices; i++)
        if (steps_touch_cells(n, s->choices[i].steps))
            return true;
    return false;
}

/* Functions in data may be any. */
static bool call_touches_cells(Program *p, const Step *s) {
    bool touches = s->callee && function_has(p, s->callee, cells_of(p), 0);
    for (uint32_t i = 0; i < s->e->nargs && !touches; i++) {
        const Known *k = s->known ? s->known[i] : NULL;
        touches = k ? function_has(p, k, cells_of(p), 0)
                    : p->follows_refs && type_holds_code(s->e->args[i]->type);
    }
    return touches;
}

bool step_touches_cells(Instance *n, const Step *s) {
    Program *p = n->program;
    if (!p->has_cells)
        return false;
    switch (s->kind) {
    case STEP_PLAIN:
    case STEP_OPERATOR: return false;
    case STEP_BUILTIN: return !s->place;
    case STEP_CALL: return call_touches_cells(p, s);
    case STEP_BRANCH: return choices_touch_cells(n, s);
    }
    return false;
}
