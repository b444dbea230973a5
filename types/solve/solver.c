/* SPDX-License-Identifier: Apache-2.0 */
/* The worklist. Variables hold their watchers, and relations hold their variables. A relation runs when it is
 * posted, and then only when a variable that it watches learned something (thesis §3.3). */
#include "types/solve/solver_impl.h"

#include <stdarg.h>
#include <string.h>

#include "base/mem.h"
#include "types/op.h"

Solver *solver_new(Diags *diags) {
    Solver *s = mem_new(Solver);
    s->diags = diags;
    s->mismatch.path = "";
    s->arg = NO_ARGUMENT;
    s->axis = -1;
    return s;
}

void solver_set_records(Solver *s, FindRecord find, void *ctx) {
    s->find_record = find;
    s->find_record_ctx = ctx;
}

Diags *solver_diags(Solver *s) { return s->diags; }

/* ---- variables and levels -------------------------------------------------------------------- */

Type *solver_var(Solver *s, Kind kind) { return type_var(kind, s->level, NULL); }

Type *solver_var_named(Solver *s, Kind kind, const Symbol *hint) {
    return type_var(kind, s->level, hint);
}

Type *solver_tensor_var(Solver *s) {
    return type_tensor(solver_var(s, KIND_SHAPE), solver_var(s, KIND_DTYPE));
}

Type *solver_weak_dtype(Solver *s, bool is_float, Span span) {
    (void)span;
    Type *t = solver_var(s, KIND_DTYPE);
    t->var.weak = true;
    t->var.dtypes = is_float ? DTS_FLOAT : DTS_NUM;
    vec_push(&s->weak, t);
    return t;
}

Type *solver_rigid(Solver *s, Kind kind, const Symbol *name) {
    Type *t = type_param(name, kind);
    t->param.level = s->level;
    return t;
}

int solver_level(const Solver *s) { return s->level; }

void solver_enter(Solver *s) {
    s->level++;
    Mark m = {.id = type_next_id(),
              .waiting = s->waiting.len,
              .weak = s->weak.len,
              .inside = s->inside.len,
              .settled = s->settled.len,
              .early = s->early.len};
    vec_push(&s->marks, m);
}

void solver_leave(Solver *s) {
    if (s->level == 0)
        BUG("solver_leave without solver_enter");
    s->level--;
    (void)vec_pop(&s->marks);
}

void solver_enter_body(Solver *s, uint32_t params, uint32_t mark) {
    vec_push(&s->bodies, ((Body){params, mark, ++s->nbodies}));
}

void solver_set_recursive(Solver *s, bool on) { s->recursive = on; }

void solver_set_given(Solver *s, Type *fn) { s->given = fn; }

void solver_leave_body(Solver *s) { (void)vec_pop(&s->bodies); }

void solver_default_weak(Solver *s) {
    static const Map none;
    solver_default_weak_but(s, &none);
}

/* Whether a relation waits for a variable of an outer binding, which decides t: `let s = stack((p[0], 1.0))` in a
 * function of p. */
static bool waits_for_outer(const Solver *s, const Type *t) {
    for (uint32_t i = 0; i < t->var.nwatchers; i++) {
        const Relation *r = t->var.watchers[i];
        for (uint32_t k = 0; r->status == REL_WAIT && k + 1 < r->nargs; k++) {
            Type *arg = type_resolve(r->args[k]);
            if (arg->tag == TY_VAR && arg->var.level < s->level)
                return true;
        }
    }
    return false;
}

void solver_default_weak_but(Solver *s, const Map *but) {
    size_t kept = s->marks.len ? vec_last(&s->marks).weak : 0;
    for (size_t i = kept; i < s->weak.len; i++) {
        Type *t = type_resolve(s->weak.data[i]);
        if (t->tag != TY_VAR || !t->var.weak)
            continue;
        if (t->var.level < s->level || map_has(but, t) || waits_for_outer(s, t)) {
            s->weak.data[kept++] = t;
            continue;
        }
        DTypeSet set = t->var.dtypes;
        DType to = !(set & ~DTS_FLOAT) ? DT_F32 : DT_I32;
        if (!(set & DT_BIT(to)))
            for (to = 0; !(set & DT_BIT(to)); to++) {
            }
        solver_link(s, t, type_dtype(to));
    }
    s->weak.len = kept;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static void watch_var(Relation *r, Type *var) {
    for (uint32_t i = 0; i < r->nwatched; i++)
        if (r->watched[i] == var)
            return;
    if (r->nwatched == r->cap_watched) {
        r->cap_watched = r->cap_watched ? 2 * r->cap_watched : 4;
        r->watched = mem_realloc(r->watched, r->cap_watched * sizeof *r->watched);
    }
    r->watched[r->nwatched++] = var;
    TypeVar *v = &var->var;
    if (v->nwatchers == v->cap_watchers) {
        v->cap_watchers = v->cap_watchers ? 2 * v->cap_watchers : 4;
        v->watchers = mem_realloc(v->watchers, v->cap_watchers * sizeof *v->watchers);
    }
    v->watchers[v->nwatchers++] = r;
}

/* Lets r watch the variables of t, so that it runs again when one of them learns something. */
static void watch_vars(Solver *s, Relation *r, Type *t) {
    TypeVec vars = {0};
    Map seen = {0};
    type_collect(t, TY_VAR, &seen, &vars);
    s->counts.steps += seen.len;
    for (size_t i = 0; i < vars.len; i++)
        if (vars.data[i]->kind != KIND_EFFECT)
            watch_var(r, vars.data[i]);
}

static void watch_args(Solver *s, Relation *r) {
    uint32_t kept = 0; /* keep only the variables that are not linked yet */
    for (uint32_t i = 0; i < r->nwatched; i++)
        if (!r->watched[i]->var.link)
            r->watched[kept++] = r->watched[i];
    r->nwatched = kept;
    for (uint32_t i = 0; i < r->nargs; i++)
        watch_vars(s, r, r->args[i]);
}

void solver_queue(Solver *s, Relation *r) {
    if (r->queued || r->status != REL_WAIT)
        return;
    r->queued = true;
    vec_push(&s->queue, r);
}

/* Queues the watchers of a variable that learned something. A linked variable drops them: when they have run, they
 * watch what it was linked to. */
void solver_wake(Solver *s, TypeVar *v) {
    s->counts.steps += v->nwatchers;
    for (uint32_t i = 0; i < v->nwatchers; i++)
        solver_queue(s, v->watchers[i]);
    if (v->link) {
        v->watchers = NULL;
        v->nwatchers = v->cap_watchers = 0;
    }
}

Relation *relation_new(const RelDef *def, Type **args, uint32_t nargs, const Attrs *attrs,
                       Span span) {
    Relation *r = mem_new(Relation);
    r->def = def;
    r->nargs = nargs;
    r->args = mem_new_n(Type *, nargs);
    for (uint32_t i = 0; i < nargs; i++)
        r->args[i] = args[i];
    r->attrs = attrs;
    r->op = attrs ? attrs->op : NULL;
    r->span = span;
    r->status = REL_WAIT;
    return r;
}

void relation_set_place(const Solver *s, Relation *r) {
    r->level = s->level;
    r->body = s->bodies.len ? vec_last(&s->bodies).number : 0;
}

void solver_add(Solver *s, Relation *r) {
    s->counts.posted++;
    vec_push(&s->waiting, r);
    solver_queue(s, r);
}

Relation *solver_post(Solver *s, const RelDef *def, Type **args, uint32_t nargs, const Attrs *attrs,
                      Span span) {
    Relation *r = relation_new(def, args, nargs, attrs, span);
    relation_set_place(s, r);
    solver_add(s, r);
    return r;
}

static Relation *post_with_data(Solver *s, const RelDef *def, Type **args, uint32_t nargs,
                                const void *data, Span span) {
    Relation *r = solver_post(s, def, args, nargs, NULL, span);
    r->data = data;
    return r;
}

Relation *solver_post_field(Solver *s, Type *record, const Symbol *field, Type *result, Span span) {
    Type *args[] = {record, result};
    return post_with_data(s, &rel_field, args, 2, field, span);
}

static const int64_t *copy_int(int64_t n) {
    int64_t *p = mem_bytes(sizeof *p);
    *p = n;
    return p;
}

Relation *solver_post_proj(Solver *s, Type *tuple, int64_t index, Type *result, Span span) {
    Type *args[] = {tuple, result};
    return post_with_data(s, &rel_proj, args, 2, copy_int(index), span);
}

Relation *solver_post_index(Solver *s, Type **args, uint32_t nargs, const Attrs *attrs,
                            const int64_t *index, Span span) {
    Relation *r = solver_post(s, &rel_index, args, nargs, attrs, span);
    r->data = index ? copy_int(*index) : NULL;
    return r;
}

/* One mistake gives one message. A relation over an error type is not run, and the result of a relation that failed
 * is the error type. */
static bool has_error(Relation *r) {
    for (uint32_t i = 0; i < r->nargs; i++)
        if (type_resolve(r->args[i])->tag == TY_ERROR)
            return true;
    return false;
}

static void set_error_result(Solver *s, Relation *r) {
    Type *result = type_resolve(r->args[r->nargs - 1]);
    if (result->kind == KIND_TYPE)
        solver_unify(s, result, type_error());
}

/* Whether r follows from a declared fact, whose result it then takes. */
static bool take_fact(Solver *s, Relation *r) {
    const Relation *f = s->facts.len ? solver_find_fact(s, r) : NULL;
    return f && (f->nargs == 1 || rel_unify(s, r, -1, f->args[f->nargs - 1]));
}

/* Records an operator whose relation is done, so that its sizes are tried when all types are known. */
static void record_operator(Solver *s, Relation *r) {
    if (s->listing && r->op && (r->def == r->op->relation || r->def == &rel_index))
        vec_push(&s->settled, r);
}

bool solver_is_around(const Solver *s, uint32_t body) {
    bool found = body == 0;
    for (size_t k = s->bodies.len; k-- > 0 && !found && s->bodies.data[k].number >= body;)
        found = s->bodies.data[k].number == body;
    return found;
}

/* Opens the types of the arguments, which are values with sizes of their own (Note [Each its own size] in
 * unknown.c). One variable that is given twice is one value: it has one node. */
static void open_arguments(Relation *r) {
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        Type *t = r->args[i], *opened = t->kind == KIND_TYPE ? solver_open_each(t) : t;
        for (uint32_t k = i; k + 1 < r->nargs && opened != t; k++)
            if (r->args[k] == t)
                r->args[k] = opened;
        r->takes_several = r->takes_several || opened != t;
    }
}

static RelStatus run_relation(Solver *s, Relation *r) {
    Span span = s->span;
    TypePlace place = s->place;
    s->span = r->span;
    s->place = place_of_words(relation_subject(r));
    s->running = r;
    s->arg = NO_ARGUMENT;
    s->axis = -1;
    if (r->runs++ == 0)
        inside_record_operator(s, r);
    s->counts.runs++;
    /* Facts come first for a broadcast, since a declared one gives its result a name, and for an equation, since
     * unifying declared parameters would fail. */
    uint32_t made = type_next_id();
    open_arguments(r);
    bool by_fact = is_broadcast(r->def) || r->def == &rel_same, early = relation_awaits_sizes(r);
    RelStatus status = !by_fact || !take_fact(s, r)                        ? r->def->relate(s, r)
                       : is_broadcast(r->def) && !broadcast_restrict(s, r) ? REL_FAIL
                                                                           : REL_DONE;
    if (status == REL_WAIT && take_fact(s, r))
        status = REL_DONE;
    if (status != REL_FAIL && !solver_probe_ranks(s, r))
        status = REL_FAIL;
    if (r->takes_several || !solver_is_around(s, r->body))
        unknowns_mark_each(r->args[r->nargs - 1], made);
    s->span = span;
    s->place = place;
    s->running = NULL;
    s->axis = -1;
    if (status == REL_DONE && early)
        early_record_operator(s, r);
    if (status == REL_DONE)
        record_operator(s, r);
    return status;
}

/* ---- Note [Unknown ranks] --------------------------------------------------------------------
 *
 * The rank of `squeeze(x)` depends on the sizes of x. Where these are not known, its shape is `?`, an unknown of
 * kind shape. An operator whose result has the rank of such an operand has a result of unknown shape again. A result
 * with a rank of its own (`reshape` to written sizes, `sum` over all axes) keeps that rank. The operator checks its
 * operands when it runs. Where a known rank is needed of an unknown shape, that is checked at run time. */

/* Makes the open shapes of a result unknown, and adds checks for the known ones. False where it is no tensor yet. */
static bool give_unknowns(Solver *s, Type *t) {
    t = type_resolve(t);
    for (uint32_t i = 0; t->tag == TY_TUPLE && i < t->nargs; i++)
        if (!give_unknowns(s, t->args[i]))
            return false;
    if (t->tag == TY_TUPLE)
        return true;
    if (t->tag != TY_TENSOR)
        return false;
    Type *shape = type_resolve(t->tensor.shape), *unknown = type_any(KIND_SHAPE, NULL);
    if (shape->tag == TY_VAR)
        solver_link(s, shape, unknown);
    else
        unify_sizes(s, unknown, shape, true);
    return true;
}

/* Gives an unknown shape to the result of an operator that waits for the rank of an operand of unknown rank. False
 * where r is no such operator. */
static bool solve_unknown_rank(Solver *s, Relation *r) {
    bool unknown = false;
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        unknown = unknown || type_has_unknown_rank(r->args[i]);
    for (uint32_t i = 0; unknown && i + 1 < r->nargs; i++)
        if (type_has_open_sizes(r->args[i]))
            return false;
    if (!unknown || !r->op)
        return false;
    s->running = r;
    s->arg = -1;
    bool given = give_unknowns(s, r->args[r->nargs - 1]);
    s->arg = NO_ARGUMENT;
    s->running = NULL;
    if (given)
        record_operator(s, r);
    return given;
}

static void drop_done(Solver *s) {
    size_t kept = 0, mark = 0;
    s->counts.steps += s->waiting.len;
    for (size_t i = 0; i < s->waiting.len; i++) {
        for (; mark < s->marks.len && s->marks.data[mark].waiting <= i; mark++)
            s->marks.data[mark].waiting = kept;
        if (s->waiting.data[i]->status == REL_WAIT)
            s->waiting.data[kept++] = s->waiting.data[i];
    }
    for (; mark < s->marks.len; mark++)
        s->marks.data[mark].waiting = kept;
    s->waiting.len = kept;
}

size_t solver_nposted(const Solver *s) { return s->waiting.len; }

void solver_set_instance(Solver *s, size_t from, struct Expr *use) {
    for (size_t i = from; i < s->waiting.len; i++)
        s->waiting.data[i]->instance = use;
}

void solver_set_budget(Solver *s, Budget *budget, bool bounded) {
    s->budget = budget;
    s->bounded = bounded;
}

bool solver_is_spent(Solver *s) {
    if (!s->bounded)
        return false;
    uint64_t work = BUDGET_SOLVER_STEP * s->counts.steps +
                    BUDGET_SOLVER_RUN * (s->counts.runs + s->counts.posted);
    bool goes_on = budget_draw(s->budget, (int64_t)(work - s->drawn));
    s->drawn = work;
    return !goes_on;
}

bool solver_run(Solver *s) {
    bool ok = true;
    size_t done = 0;
    while (s->qhead < s->queue.len) {
        Relation *r = s->queue.data[s->qhead++];
        r->queued = false;
        if (r->status != REL_WAIT)
            continue;
        if (solver_is_spent(s)) {
            ok = false;
            continue;
        }
        if (r->def == &rel_use) {
            s->counts.runs++;
            if (use_may_wait(r))
                watch_args(s, r);
            else
                use_open(s, r);
        } else if (has_error(r)) {
            set_error_result(s, r);
            r->status = REL_DONE;
        } else {
            s->first_id = r->runs == 0 ? type_next_id() : 0;
            s->learned = false;
            r->status = run_relation(s, r);
            s->first_id = 0;
            if (r->status == REL_WAIT && solve_unknown_rank(s, r))
                r->status = REL_DONE;
            if (r->status == REL_FAIL) {
                ok = false;
                set_error_result(s, r);
            } else if (r->status == REL_WAIT) {
                watch_args(s, r);
                if (s->learned)
                    solver_queue(s, r);
            }
        }
        done += r->status != REL_WAIT;
    }
    vec_clear(&s->queue);
    s->qhead = 0;
    if (2 * done > s->waiting.len)
        drop_done(s);
    return ok;
}

SolverCounts solver_counts(const Solver *s) { return s->counts; }

size_t solver_nwaiting(const Solver *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->waiting.len; i++)
        n += s->waiting.data[i]->status == REL_WAIT;
    return n;
}

/* ---- for relations --------------------------------------------------------------------------- */

const char *relation_subject(const Relation *r) {
    if (r->def == &rel_equal || r->def == &rel_bang)
        return r->def == &rel_equal ? "==" : "!";
    return r->op ? op_subject(r->op) : r->def->name;
}

/* The label of an argument: its type, and the earlier entry at the prompt that made it. */
static const char *write_argument_label(const Relation *r, uint32_t i, TypeNamer *names) {
    const char *made = origin_words(r->args[i], r->span.source);
    Type *t = type_resolve(r->args[i]);
    if (r->def == &rel_index && i == 1 && t->tag == TY_TUPLE && t->nargs == 1) /* `x[i]` */
        t = t->args[0];
    bool equation = is_broadcast(r->def) && r->op &&
                    r->op->relation != r->def; /* relates shapes only */
    const char *type = type_text_with(names, equation && t->tag == TY_TENSOR ? t->tensor.shape : t);
    return made ? fmt_text("%s, %s", type, made) : type;
}

/* Notes the sizes that an attribute gives, as `pool_size=[2, 2]` does. */
static void note_sizes(Diag *d, const AttrValue *v) {
    if (v->kind == ATTR_INT && v->span.source)
        diag_note_size(d, sym_intern(fmt_text("%lld", (long long)v->i)));
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n; i++)
        note_sizes(d, &v->list.items[i]);
}

Diag *rel_error(Solver *s, Relation *r, DiagCode code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    Str text = {0};
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    Diag *d = diag_new(code, span_inside(r->span), "%s", str_text(&text));
    d->op = r->op ? sym_intern(r->op->name) : NULL;
    d->axis = s->axis;
    if (r->def == &rel_index)
        d->cause = DIAG_CAUSE_INDEX;
    for (int i = 0; r->attrs && i < r->attrs->op->nattrs; i++)
        note_sizes(d, &r->attrs->values[i]);
    rel_add_places(d, r);
    rel_add_sizes(s, d, r);
    diag_report(s->diags, d);
    return d;
}

static void add_argument_label(Diag *d, const Relation *r, uint32_t i, TypeNamer *names) {
    diag_add_label(d, r->arg_spans[i], "%s", write_argument_label(r, i, names));
    diag_label_type(d, r->args[i]);
    vec_last(&d->labels).made = origin_entry(r->args[i], r->span.source);
}

static void add_operand_label(Diag *d, const Relation *r, uint32_t i, TypeNamer *names) {
    diag_add_label(d, r->inner_spans[i], "%s", rel_operand_label(d, r, i, names));
    diag_label_type(d, r->args[i]);
}

void rel_add_places(Diag *d, const Relation *r) {
    TypeNamer names = {0};
    for (uint32_t i = 0; r->arg_spans && i + 1 < r->nargs; i++)
        if (r->arg_spans[i].source)
            add_argument_label(d, r, i, &names);
    bool inside = r->inner.source && r->inner_name && !(r->inner.source->flags & SOURCE_INTERNAL);
    for (uint32_t i = 0; inside && r->inner_spans && i + 1 < r->nargs; i++)
        if (r->inner_spans[i].source == r->inner.source)
            add_operand_label(d, r, i, &names);
    if (inside)
        diag_add_heading(d, r->inner, "in `%s`", r->inner_name->text);
}

static TypePlace relation_place(const Relation *r, int arg) {
    if (arg < 0)
        return (TypePlace){.kind = PLACE_RESULT, .of = relation_subject(r)};
    return (TypePlace){.kind = PLACE_ARGUMENT,
                       .name = relation_argument(r, arg),
                       .of = relation_subject(r),
                       .index = (uint32_t)arg + 1};
}

static const char *describe_place(const Relation *r, int arg) {
    TypePlace place = relation_place(r, arg);
    return type_place_text(&place);
}

const char *dtype_class_words(DTypeSet set) {
    if (set == DTS_FLOAT || set == DTS_INT || set == DTS_NUM || set == DTS_BITS || set == DTS_BOOL)
        return set == DTS_FLOAT  ? "floats"
               : set == DTS_INT  ? "integers"
               : set == DTS_NUM  ? "numbers"
               : set == DTS_BITS ? "integers or bools"
                                 : "bools";
    Str s = {0};
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (set & DT_BIT(t))
            str_printf(&s, "%s%s", s.len ? ", " : "one of ", dtype_info[t].name);
    return str_text(&s);
}

const char *dtype_class_name(DTypeSet set) {
    return !(set & ~DTS_FLOAT) ? "a float"
           : !(set & ~DTS_INT) ? "an integer"
           : !(set & ~DTS_NUM) ? "a number"
           : set == DTS_BOOL   ? "bool"
           : set == DTS_BITS   ? "an integer or a bool"
                               : dtype_class_words(set);
}

static bool is_open_dtype(Type *tensor) {
    Type *t = type_resolve(tensor);
    return t->tag == TY_TENSOR && type_resolve(t->tensor.dtype)->tag == TY_VAR;
}

void rel_refuse_rigid(Solver *s, Relation *r, int arg, Type *param, Type *must) {
    TypeNamer names = {0};
    Str a = {0}, b = {0};
    type_print(&a, param, &names);
    type_print(&b, must, &names);
    rel_error(s, r, DIAG_R0218, "%s is `%s`, which the signature leaves open, and must be %s",
              describe_place(r, arg), str_text(&a), str_text(&b));
}

static void report_mismatch(Solver *s, Relation *r, int arg, Type *with) {
    const Mismatch *m = &s->mismatch;
    Type *have = arg < 0 ? r->args[r->nargs - 1] : r->args[arg];
    const char *place = describe_place(r, arg);
    if (m->kind == MISMATCH_DEPTH) {
        rel_error(s, r, DIAG_R0009, "the type of %s nests more than %d deep", place,
                  TYPE_MAX_DEPTH);
        return;
    }
    TypeNamer names = {0};
    Str a = {0}, b = {0}, whole = {0}, wanted = {0};
    type_print(&a, m->a, &names);
    type_print(&b, m->b, &names);
    type_print(&whole, have, &names);
    type_print(&wanted, with, &names);
    const char *found = str_text(&whole), *asked = str_text(&wanted);
    Diag *d = NULL;
    switch (m->kind) {
    case MISMATCH_DTYPE:
        if (m->dtypes && is_open_dtype(have)) { /* m->dtypes is the class of the argument */
            rel_error(s, r, DIAG_R0311, "%s must be %s, it is %s", place, asked,
                      dtype_class_name(m->dtypes));
            return;
        }
        d = m->dtypes ? rel_error(s, r, DIAG_R0310, "%s must be %s, it is %s", place,
                                  dtype_class_name(m->dtypes), found)
                      : rel_error(s, r, DIAG_R0311, "%s must be %s, it is %s", place, asked, found);
        diag_note_type(d, with);
        diag_note_type(d, have);
        return;
    case MISMATCH_RANK:
        d = rel_error(s, r, DIAG_R0313, "%s must have %u %s, it has %u", place, m->b->nargs,
                      m->b->nargs == 1 ? "axis" : "axes", m->a->nargs);
        break;
    case MISMATCH_DIM:
        if (m->axis >= 0)
            d = rel_error(s, r, DIAG_R0314, "axis %d of %s must be %s, it is %s", m->axis, place,
                          str_text(&b), str_text(&a));
        else
            d = rel_error(s, r, DIAG_R0314, "a size of %s must be %s, it is %s", place,
                          str_text(&b), str_text(&a));
        break;
    case MISMATCH_OCCURS:
        d = rel_error(s, r, DIAG_R0217, "%s would have to contain itself: %s is %s", place,
                      str_text(&a), str_text(&b));
        if (m->a->kind == KIND_DIM || m->a->kind == KIND_SHAPE)
            diag_add_fact(d, "a size that changes as the program runs is written `?`");
        return;
    case MISMATCH_RIGID:
        if (type_resolve(m->b)->tag == TY_PARAM)
            rel_error(s, r, DIAG_R0218,
                      "%s is %s, and must be `%s`, which the signature leaves open", place,
                      str_text(&a), str_text(&b));
        else
            rel_refuse_rigid(s, r, arg, m->a, m->b);
        return;
    case MISMATCH_HEAD:
    case MISMATCH_ARITY:
    case MISMATCH_KIND:
    case MISMATCH_DEPTH:
        if (type_resolve(with)->tag == TY_TENSOR && arg >= 0)
            asked = "a tensor";
        d = rel_error(s, r, DIAG_R0201, "%s must be %s, it is %s", place, asked, found);
        d->expected = diag_type(with);
        d->found = diag_type(have);
        diag_note_type(d, with);
        if (r->op && type_is_list(have))
            diag_add_fact(d, "a List has functions of its own, such as `map`, `foldl`, `list.sum`");
        return;
    }
    diag_note_type(d, with);
    diag_note_type(d, have);
    diag_add_fact(d, "expected %s, found %s", asked, found);
}

bool rel_unify(Solver *s, Relation *r, int arg, Type *with) {
    Type *have = arg < 0 ? r->args[r->nargs - 1] : r->args[arg];
    s->place = relation_place(r, arg);
    s->arg = arg;
    s->axis = -1;
    bool ok = unify_gradual(s, have, with);
    s->arg = NO_ARGUMENT;
    if (!ok)
        report_mismatch(s, r, arg, with);
    return ok;
}

bool rel_unify_dim(Solver *s, Relation *r, Type *a, Type *b, int arg, int axis) {
    TypePlace place = place_of_axis(axis, relation_place(r, arg));
    s->place = place;
    s->arg = arg;
    s->axis = axis;
    bool ok = unify_dims(s, a, b, true);
    s->arg = NO_ARGUMENT;
    if (ok)
        return true;
    const char *what = type_place_text(&place);
    TypeNamer names = {0};
    Str left = {0}, right = {0};
    type_print(&left, a, &names);
    type_print(&right, b, &names);
    if (s->mismatch.kind == MISMATCH_RIGID)
        rel_error(s, r, DIAG_R0303, "%s is %s, which is not known to equal %s", what,
                  str_text(&left), str_text(&right));
    else if (s->mismatch.kind == MISMATCH_OCCURS)
        diag_add_fact(rel_error(s, r, DIAG_R0217, "%s would have to contain itself: %s is %s", what,
                                str_text(&left), str_text(&right)),
                      "a size that changes as the program runs is written `?`");
    else
        rel_error(s, r, DIAG_R0314, "%s is %s, it must be %s", what, str_text(&left),
                  str_text(&right));
    return false;
}

/* ---- names that a `where` may use ------------------------------------------------------------ */

static const RelDef *const generic[] = {
    &rel_num,    &rel_float, &rel_int,   &rel_bits, &rel_broadcast,   &rel_broadcast_compare,
    &rel_field,  &rel_proj,  &rel_index, &rel_bang, &rel_equal,       &rel_same,
    &rel_grad,   &rel_deriv, &rel_vjp,   &rel_jvp,  &rel_custom_grad, &rel_checkpoint,
    &rel_leaves, &rel_vmap,
};

const RelDef *rel_find(const Symbol *name) {
    for (size_t i = 0; i < sizeof generic / sizeof *generic; i++)
        if (strcmp(generic[i]->name, name->text) == 0)
            return generic[i];
    for (size_t i = 0; i < op_count(); i++)
        if (strcmp(op_at(i)->relation->name, name->text) == 0)
            return op_at(i)->relation;
    return NULL;
}

const Symbol *rel_find_nearest(const Symbol *name, Budget *budget) {
    VEC(const Symbol *) names = {0};
    for (size_t i = 0; i < sizeof generic / sizeof *generic; i++)
        vec_push(&names, sym_intern(generic[i]->name));
    for (size_t i = 0; i < op_count(); i++)
        vec_push(&names, sym_intern(op_at(i)->relation->name));
    return sym_find_nearest(name, names.data, names.len, budget);
}
