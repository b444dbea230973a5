/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose relation is done before their sizes are known, and which may refuse some sizes
 * (Op.refuses_sizes). Their shape functions are asked once the sizes are known.
 *
 * The sizes may be known at the end of the item, or only at the calls of the definition around. So a scheme keeps
 * such operators, over its parameters, and each use of the definition checks them against its own sizes:
 *
 *     def p(x) { nn.max_pool2d(x, pool_size=[2, 2]) }   p keeps: nn.max_pool2d over (n, m, k, p)
 *     def q(x) { p(x) + 1.0 }                           q keeps: p at (n, m, k, p)
 *     q(ones(shape=[1, 1, 1, 5]))                       refused here, by what p keeps
 *
 * A definition keeps its own operators and its uses of other definitions, but not the operators inside of these. So
 * it keeps no more than its text is long. Where a use has known sizes, the operators inside are checked too, each
 * definition once for the same sizes, and at most MOST operators. The remaining ones are checked when they run.
 *
 * These entries are no part of the type. They are not shown, and definitions that differ only in them have the same
 * type. */
#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

enum { MOST = 256 };

/* ---- recording ------------------------------------------------------------------------------- */

/* Whether t is a tensor of known sizes, a tuple of such tensors, a known size, or a shape of known sizes. */
static bool is_closed(Type *t) {
    uint32_t rank;
    Type **dims;
    int64_t n;
    bool closed = true;
    t = type_resolve(t);
    if (t->kind == KIND_DIM)
        return type_get_int(t, &n) && n >= 0; /* a negative size is reported elsewhere */
    if (t->tag == TY_TUPLE) {
        for (uint32_t i = 0; i < t->nargs && closed; i++)
            closed = is_closed(t->args[i]);
        return closed;
    }
    if ((t->tag != TY_TENSOR && t->kind != KIND_SHAPE) || !type_get_rank(t, &rank, &dims))
        return false;
    for (uint32_t i = 0; i < rank && closed; i++)
        closed = type_get_int(type_resolve(dims[i]), &n) && n >= 0;
    return closed;
}

static bool has_closed_arguments(const Relation *r) {
    bool closed = true;
    for (uint32_t i = 0; i + 1 < r->nargs && closed; i++)
        closed = is_closed(r->args[i]);
    return closed;
}

bool relation_awaits_sizes(const Relation *r) {
    return r->op && r->op->refuses_sizes && r->def == r->op->relation &&
           !(r->attrs && attrs_have_refs(r->attrs)) && !has_closed_arguments(r);
}

void early_record_operator(Solver *s, Relation *r) {
    vec_push(&s->early, ((Early){.op = r, .span = r->span}));
}

void early_record_use(Solver *s, const Scheme *scheme, Span span, Type **to) {
    if (scheme->early_count)
        vec_push(&s->early, ((Early){.scheme = scheme, .to = to, .span = span}));
}

/* ---- kept by a scheme ------------------------------------------------------------------------ */

/* The types on which a refusal depends. */
static uint32_t get_types(const Early *e, Type ***types) {
    *types = e->op ? e->op->args : e->to;
    return e->op ? e->op->nargs - 1 : e->scheme->nparams;
}

static bool is_of_sizes(const Type *t) { return t->kind != KIND_DTYPE && t->kind != KIND_EFFECT; }

static bool mentions(const Early *e, const Map *params) {
    TypeVec found = {0};
    Map seen = {0};
    Type **types;
    uint32_t n = get_types(e, &types);
    for (uint32_t i = 0; i < n; i++)
        if (is_of_sizes(types[i]))
            type_collect(types[i], TY_PARAM, &seen, &found);
    for (size_t i = 0; i < found.len; i++)
        if (is_of_sizes(found.data[i]) && map_has(params, found.data[i]))
            return true;
    return false;
}

static Type **substitute_all(Type **types, uint32_t n, Substitution *by) {
    Type **out = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = types[i]->kind == KIND_EFFECT ? types[i] : type_substitute_by(by, types[i]);
    return out;
}

void early_move_to_scheme(Solver *s, Scheme *scheme, Substitution *zonk) {
    size_t begin = s->marks.len ? vec_last(&s->marks).early : 0, left = begin;
    if (begin == s->early.len || !scheme->nparams)
        return;
    Map params = {0};
    EarlyVec kept = {0};
    for (uint32_t i = 0; i < scheme->nparams; i++)
        map_set(&params, scheme->params[i], scheme->params[i]);
    for (size_t i = begin; i < s->early.len; i++) {
        Early e = s->early.data[i];
        if (!mentions(&e, &params)) {
            s->early.data[left++] = e;
            continue;
        }
        if (e.op)
            e.op = relation_copy(e.op, zonk);
        else
            e.to = substitute_all(e.to, e.scheme->nparams, zonk);
        vec_push(&kept, e);
    }
    s->early.len = left;
    scheme->early_count = (uint32_t)kept.len;
    scheme->early = kept.data;
}

void scheme_restrict_early(Scheme *scheme, const Map *params) {
    EarlyVec kept = {0};
    for (uint32_t i = 0; i < scheme->early_count; i++)
        if (mentions(&scheme->early[i], params))
            vec_push(&kept, scheme->early[i]);
    scheme->early_count = (uint32_t)kept.len;
    scheme->early = kept.data;
}

static void set_inner_place(Relation *r, Span span, const Symbol *name) {
    if (r->inner.source || r->span.source != span.source || r->span.begin < span.begin ||
        r->span.end > span.end)
        return;
    r->inner = r->span;
    r->inner_spans = r->arg_spans;
    r->inner_name = name;
}

void scheme_name_inside(Scheme *scheme, Span span, const Symbol *name) {
    for (uint32_t i = 0; i < scheme->nrelations; i++)
        set_inner_place(scheme->relations[i], span, name);
    for (uint32_t i = 0; i < scheme->early_count; i++)
        if (scheme->early[i].op)
            set_inner_place(scheme->early[i].op, span, name);
}

const char *scheme_early_text(const Scheme *scheme) {
    Str out = {0}, type = {0};
    TypeNamer names = {0};
    type_print(&type, scheme->type, &names); /* gives the parameters their names */
    for (uint32_t i = 0; i < scheme->early_count; i++) {
        const Early *e = &scheme->early[i];
        Type **types;
        uint32_t n = get_types(e, &types);
        if (e->op)
            str_add(&out, e->op->op->name);
        else
            str_printf(&out, "%p", (const void *)e->scheme);
        for (uint32_t k = 0; k < n; k++) {
            if (!is_of_sizes(types[k]))
                continue;
            str_add_char(&out, ' ');
            type_print(&out, types[k], &names);
        }
        if (e->op && e->op->attrs) {
            str_add(&out, "; ");
            attrs_print(&out, e->op->attrs);
        }
        str_add_char(&out, '\n');
    }
    return str_text(&out);
}

/* ---- checking -------------------------------------------------------------------------------- */

typedef struct Seen {
    const Scheme *scheme;
    Type **to;
    struct Seen *next;
} Seen;

typedef struct Checking {
    Solver *s;
    Span span; /* the span of the use */
    Map seen;  /* Scheme -> Seen */
    uint32_t n;
} Checking;

static bool record_seen(Checking *h, const Scheme *scheme, Type **to) {
    Seen *first = map_find(&h->seen, scheme);
    for (const Seen *at = first; at; at = at->next) {
        bool same = true;
        for (uint32_t i = 0; i < scheme->nparams && same; i++)
            same = !is_of_sizes(to[i]) || type_equal(at->to[i], to[i]);
        if (same)
            return true;
    }
    Seen *now = mem_new(Seen);
    *now = (Seen){scheme, to, first};
    map_set(&h->seen, scheme, now);
    return false;
}

/* Whether some parameter is known. Otherwise nothing inside can be checked. */
static bool is_some_known(const Scheme *scheme, Type **to) {
    for (uint32_t i = 0; i < scheme->nparams; i++)
        if (is_of_sizes(to[i]) && is_closed(to[i]))
            return true;
    return false;
}

static void check_inside(Checking *h, const Scheme *scheme, Type **to) {
    if (!is_some_known(scheme, to) || record_seen(h, scheme, to))
        return;
    Substitution by = substitution_new(scheme->params, to, scheme->nparams);
    for (uint32_t i = 0; i < scheme->early_count && h->n++ < MOST; i++) {
        const Early *e = &scheme->early[i];
        h->s->counts.steps++;
        if (!e->op) {
            check_inside(h, e->scheme, substitute_all(e->to, e->scheme->nparams, &by));
            continue;
        }
        Relation *r = relation_instance(h->s, scheme, e->op, h->span, &by);
        r->args[r->nargs - 1] = solver_var(h->s, KIND_TYPE); /* the result is known already */
        if (has_closed_arguments(r) && residual_may_refuse(h->s, r))
            solver_queue(h->s, r);
    }
}

/* Whether all sizes of a use have been found. */
static bool is_ready(const Early *e) {
    Type **types;
    uint32_t n = get_types(e, &types);
    for (uint32_t i = 0; i < n; i++)
        if (is_of_sizes(types[i]) && type_has_vars(types[i]))
            return false;
    return true;
}

static void check_entry(Solver *s, Early *e) {
    if (e->checked)
        return;
    if (e->op) {
        if (e->op->status != REL_DONE || !has_closed_arguments(e->op))
            return;
        e->op->status = REL_WAIT;
        solver_queue(s, e->op);
        e->checked = true;
        return;
    }
    Checking h = {.s = s, .span = e->span};
    check_inside(&h, e->scheme, e->to);
    e->checked = is_ready(e);
}

bool solver_check_early(Solver *s) {
    for (size_t i = 0; i < s->early.len; i++)
        check_entry(s, &s->early.data[i]);
    vec_clear(&s->early);
    return solver_run(s);
}

void solver_drop_early(Solver *s) { vec_clear(&s->early); }

static bool is_of_use(const Early *e, Span use) {
    return (!e->op || e->op->inner.source) && e->span.source == use.source &&
           e->span.begin == use.begin && e->span.end == use.end;
}

EarlyUse solver_find_early(const Solver *s, Span use) {
    EarlyUse e = {s->early.len, s->early.len};
    while (e.begin > 0 && is_of_use(&s->early.data[e.begin - 1], use))
        e.begin--;
    return e;
}

bool solver_check_use(Solver *s, EarlyUse e, bool last) {
    for (size_t i = e.begin; i < e.end; i++)
        if (last || is_ready(&s->early.data[i]))
            check_entry(s, &s->early.data[i]);
    return e.begin == e.end || solver_run(s);
}
