/* SPDX-License-Identifier: Apache-2.0 */
/* Facts: the relations of a declared `where`, which hold for the rigid parameters while the body is inferred.
 *
 * A relation of the body follows from a fact only where the two are the same relation as a whole: the
 * same RelDef, the same constants (the field that Field reads, the position of Proj and Index), the same
 * attributes and equal arguments. Whatever compares two relations asks relation_asks_same.
 *
 * Note [One fact, one part]. How many elements `labels[yes]` has follows from the bools in `yes`, not from its type.
 * So `(labels[yes], labels[logical_not(yes)])` asks two relations of equal arguments, whose results are different
 * sizes, and its `where` declares both. Each such fact answers one relation of the body. Of several facts a relation
 * takes the one that has its result. Where none has when the body is known, the relations take them in order. */
#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

void solver_set_infer_where(Solver *s, bool on) { s->infer_where = on; }

size_t solver_count_facts(const Solver *s) { return s->facts.len; }

void solver_forget_facts(Solver *s, size_t mark) { s->facts.len = mark; }

void solver_assume_fact(Solver *s, const RelDef *def, Type **args, uint32_t nargs,
                        const Attrs *attrs, const void *data, Span span) {
    DTypeSet set = rel_dtype_class(def);
    Type *first = nargs ? type_resolve(args[0]) : NULL;
    if (set && first && first->tag == TY_PARAM) {
        first->param.dtypes &= set;
        return;
    }
    if (set) {
        solver_restrict(s, first, set);
        return;
    }
    Relation *fact = relation_new(def, args, nargs, attrs, span);
    fact->data = data;
    vec_push(&s->facts, fact);
}

const Relation *solver_next_fact(const Solver *s, bool (*is)(const RelDef *def), size_t *at) {
    while (*at < s->facts.len) {
        const Relation *fact = s->facts.data[(*at)++];
        if (is(fact->def))
            return fact;
    }
    return NULL;
}

/* Whether two relations of one RelDef read the same field or position. Other relations have a place as their data, or
 * dtypes that each of them restricts by itself. */
static bool reads_same(const RelDef *def, const void *a, const void *b) {
    if (def == &rel_field || def == &rel_use)
        return a == b;
    if (def != &rel_proj && def != &rel_index)
        return true;
    return a == b || (a && b && *(const int64_t *)a == *(const int64_t *)b);
}

bool relation_asks_same(const Relation *a, const Relation *b) {
    return a->def == b->def && reads_same(a->def, a->data, b->data) &&
           attrs_equal_values(a->attrs, b->attrs);
}

static bool is_scalar_shape(Type *t) {
    uint32_t rank;
    Type **dims;
    return type_get_rank(t, &rank, &dims) && rank == 0;
}

/* The comparison of a fact with a relation of the body. `?` in a fact stands for an unknown size of the body, the
 * same one at all of its places. */
typedef struct Fit {
    Map unknowns; /* unknown of the fact -> size of the body */
} Fit;

static bool fits_size(void *ctx, Type *fact, Type *t) {
    Fit *fit = ctx;
    fact = type_resolve(fact);
    t = type_resolve(t);
    if (fact->tag != TY_ANY || !(t->flags & TYPE_HAS_ANY))
        return type_equal(fact, t);
    Type *before = map_find(&fit->unknowns, fact);
    if (!before)
        map_set(&fit->unknowns, fact, t);
    return !before || type_equal(before, t);
}

static bool fits_type(Fit *fit, Type *fact, Type *t) {
    fact = type_resolve(fact);
    t = type_resolve(t);
    uint32_t n, m;
    Type **a, **b;
    if (fact->tag != TY_TENSOR || t->tag != TY_TENSOR || !(fact->flags & TYPE_HAS_ANY) ||
        !type_get_rank(fact, &n, &a) || !type_get_rank(t, &m, &b))
        return type_equal(fact, t);
    bool fits = n == m && type_equal(fact->tensor.dtype, t->tensor.dtype);
    for (uint32_t i = 0; fits && i < n; i++)
        fits = fits_size(fit, a[i], b[i]);
    return fits;
}

/* Whether two sets have the same inputs, apart from scalars. The last argument of each is its result. */
static bool fits_set(Fit *fit, const Relation *fact, const Relation *r) {
    bool *met = mem_new_n(bool, r->nargs + 1);
    for (uint32_t i = 0; i + 1 < fact->nargs; i++) {
        bool there = is_scalar_shape(fact->args[i]);
        for (uint32_t k = 0; k + 1 < r->nargs; k++) {
            bool fits = fits_type(fit, fact->args[i], r->args[k]);
            met[k] = met[k] || fits;
            there = there || fits;
        }
        if (!there)
            return false;
    }
    for (uint32_t k = 0; k + 1 < r->nargs; k++)
        if (!met[k] && !is_scalar_shape(r->args[k]))
            return false;
    return true;
}

/* Whether the inputs of r are those of the fact. */
static bool fits_inputs(Fit *fit, const Relation *fact, const Relation *r) {
    if (is_broadcast(fact->def))
        return fits_set(fit, fact, r);
    uint32_t k = 0;
    while (k + 1 < fact->nargs && k + 1 < r->nargs && fits_type(fit, fact->args[k], r->args[k]))
        k++;
    return fact->nargs == r->nargs && k + 1 >= fact->nargs;
}

static bool is_tensor(Type *t) { return type_resolve(t)->tag == TY_TENSOR; }

/* Whether the fact says more than r asks. `<` takes fewer types than `==`, with the same result; of tensors both ask
 * the same. An index by any value takes only tensors, whose positions all have one type. */
static bool is_stronger(Fit *fit, const Relation *fact, const Relation *r) {
    if (fact->def == &rel_broadcast_compare)
        return r->def == &rel_equal;
    if (fact->def == &rel_equal)
        return r->def == &rel_broadcast_compare && is_tensor(fact->args[0]) &&
               is_tensor(fact->args[1]);
    return fact->def == &rel_index && r->def == &rel_index && !fact->data && r->data &&
           attrs_equal_by(fact->attrs, r->attrs, fits_size, fit);
}

/* Whether the result of the fact is that of r, where their inputs fit. */
static bool answers(Fit *fit, const Relation *fact, const Relation *r) {
    return (fact->def == r->def && reads_same(fact->def, fact->data, r->data) &&
            attrs_equal_by(fact->attrs, r->attrs, fits_size, fit)) ||
           is_stronger(fit, fact, r);
}

/* Whether an attribute of the fact is `?`, so that relations of different values fit it. */
static bool has_unknown_attr(const Relation *fact) {
    Map seen = {0};
    TypeVec found = {0};
    unknowns_collect_in_attrs(fact->attrs, &seen, &found);
    return found.len > 0;
}

/* Whether the fact is one part of one value (Note [One fact, one part]). */
static bool is_one_part(const Relation *fact) {
    return relation_reads_values(fact) || has_unknown_attr(fact);
}

static bool has_equal_args(const Relation *a, const Relation *b) {
    uint32_t k = 0;
    while (k + 1 < a->nargs && k + 1 < b->nargs && type_equal(a->args[k], b->args[k]))
        k++;
    return a->nargs == b->nargs && k + 1 >= a->nargs;
}

/* Whether the fact may still answer r: it has answered no other relation, or one that asks for the same part. */
static bool is_left(Solver *s, const Relation *fact, const Relation *r) {
    const Relation *taker = map_find(&s->taken, fact);
    return !taker || taker == r ||
           (!relation_reads_values(r) && relation_asks_same(taker, r) && has_equal_args(taker, r));
}

static Type *result_of(const Relation *r) { return r->args[r->nargs - 1]; }

static const Relation *find_fact(Solver *s, const Relation *r, bool any_part) {
    const Relation *part = NULL; /* the first part that is left */
    size_t nparts = 0;
    for (size_t i = 0; i < s->facts.len; i++) {
        const Relation *fact = s->facts.data[i];
        s->counts.steps++;
        Fit fit = {0};
        if (!answers(&fit, fact, r) || !fits_inputs(&fit, fact, r))
            continue;
        if (!is_one_part(fact))
            return fact;
        if (!is_left(s, fact, r))
            continue;
        nparts++;
        part = part ? part : fact;
        if (type_equal(result_of(fact), result_of(r))) {
            part = fact;
            nparts = 1;
            break;
        }
    }
    if (nparts > 1 && !any_part)
        return NULL;
    if (part)
        map_set(&s->taken, part, (void *)r);
    return part;
}

const Relation *solver_find_fact(Solver *s, const Relation *r) { return find_fact(s, r, false); }

bool solver_take_parts(Solver *s, size_t begin) {
    bool ok = true;
    for (size_t i = begin; i < s->waiting.len && ok && s->facts.len; i++) {
        Relation *r = s->waiting.data[i];
        const Relation *fact = r->status == REL_WAIT ? find_fact(s, r, true) : NULL;
        if (!fact || !is_one_part(fact))
            continue;
        ok = rel_unify(s, r, -1, result_of(fact));
        r->status = ok ? REL_DONE : REL_FAIL;
        ok = ok && solver_run(s);
    }
    return ok;
}

/* Whether t equals the argument of a fact, or is a variable that the type does not mention, so that any type may be
 * chosen for it. */
static bool may_become(Type *fact, Type *t, const Map *order) {
    t = type_resolve(t);
    Type *free = t->tag == TY_TENSOR ? type_resolve(t->tensor.shape) : t;
    return type_equal(fact, t) || (free->tag == TY_VAR && !map_has(order, free));
}

bool solver_adopt_fact(Solver *s, const Relation *r, const Map *order) {
    for (size_t i = 0; i < s->facts.len; i++) {
        const Relation *fact = s->facts.data[i];
        Fit fit = {0};
        bool one = is_one_part(fact);
        bool ok = answers(&fit, fact, r) && fact->nargs == r->nargs &&
                  (!one || is_left(s, fact, r));
        for (uint32_t k = 0; ok && k < r->nargs; k++)
            ok = may_become(fact->args[k], r->args[k], order);
        for (uint32_t k = 0; ok && k < r->nargs; k++)
            ok = solver_unify(s, r->args[k], fact->args[k]);
        if (!ok)
            continue;
        if (one)
            map_set(&s->taken, fact, (void *)r);
        return true;
    }
    return false;
}
