/* SPDX-License-Identifier: Apache-2.0 */
/* Where sizes flow (LANGUAGE §4): sub-shaping between what is given and what is expected, and the
 * join of what comes from several places.
 *
 * A known size goes into `?` silently: covariantly in tuples, immutable data and results,
 * contravariantly in parameters, never under Ref. `?` goes into a known size by a check when
 * running, for tensors and tuples of them only.
 *
 * An unknown that stands in the expected type itself accepts any size. An unknown that a variable of the
 * expected type was found to be (`met`) is one particular size: another size must equal it, which is checked
 * when running. `each` unknowns accept any size in both cases (unknown.c). */
#include "base/mem.h"
#include "types/solve/solver_impl.h"

typedef struct Pairs {
    Map met[2];      /* by `met`: from -> to */
    Map taken;       /* unknown -> the size it took: Note [One unknown, one size] */
    OpenValue value; /* the value that flows */
    uint32_t count;
} Pairs;

typedef struct Flow {
    Solver *s;
    bool checkable; /* outside functions, data and references, where `?` may be checked */
    bool result;    /* what flows is the result of a function */
    bool parameter; /* it is the argument of a function, which compares it with its names */
    Pairs *pairs;
} Flow;

/* Types are DAGs. In small ones each occurrence of a node is compared, with its own checks. In large ones each
 * pair of nodes is compared once. */
enum { SMALL_TYPE = 64 };

static bool is_known_pair(Pairs *p, Type *from, Type *to, bool met) {
    if (++p->count <= SMALL_TYPE)
        return false;
    bool known = map_find(&p->met[met], from) == to;
    map_set(&p->met[met], from, to);
    return known;
}

/* ---- flow ------------------------------------------------------------------------------------ */

static bool flow(const Flow *f, Type *from, Type *to, bool met);

/* Note [One unknown, one size]. An unknown that the expected type has in several places takes any
 * size at the first of them, and that size at the others: ([1.0], [1.0, 2.0]) is no
 * (Tensor[(?1,), float32], Tensor[(?1,), float32]). `taken` holds the size that each unknown took, or a
 * variable where arithmetic over the unknown comes before its first size. */
static Type *find_taken(void *flow, Type *unknown) {
    const Flow *f = flow;
    Type *size = map_find(&f->pairs->taken, unknown);
    if (!size) {
        size = solver_var(f->s, KIND_DIM);
        map_set(&f->pairs->taken, unknown, size);
    }
    return size;
}

static Type *find_taken_each(void *flow, Type *unknown) {
    return unknown->param.each ? find_taken(flow, unknown) : unknown;
}

/* A size such as max(?1 - 1, 0), with the size that ?1 took in the place of ?1. */
static Type *substitute_taken(const Flow *f, Type *dim, bool met) {
    return type_resolve(unknowns_map(dim, met ? find_taken_each : find_taken, (void *)f));
}

static bool is_linked(const Type *t) { return t->tag == TY_VAR && t->var.link; }

/* A type flows to itself, so its unknowns take their own sizes. */
static bool flow_to_itself(const Flow *f, Type *t, bool met) {
    if (met || !(t->flags & TYPE_HAS_ANY))
        return true;
    TypeVec unknowns = {0};
    unknowns_collect(t, &unknowns);
    for (size_t i = 0; i < unknowns.len; i++) {
        Type *u = unknowns.data[i], *size = map_find(&f->pairs->taken, u);
        if (!size)
            map_set(&f->pairs->taken, u, u);
        else if (!unify_sizes(f->s, u, size, f->checkable))
            return false;
    }
    return true;
}

/* Adds a check instead of unifying an open size with a size that has later unknowns (Note [Open values] in
 * unknown.c). False where nothing keeps the two apart. */
static bool check_apart(const Flow *f, Type *from, Type *to) {
    if (!f->checkable || from->tag != TY_VAR || !unknowns_are_apart(f->s, from, to, true))
        return false;
    solver_add_residual(f->s, from, to, f->s->span, f->s->place);
    return true;
}

/* An open type flowing into a form with sizes that it cannot have takes that form with fresh sizes. */
static Type *take_form(const Flow *f, Type *from, Type *to) {
    if (from->tag != TY_VAR || to->tag == TY_VAR || to->tag == TY_ANY || to->tag == TY_FN ||
        !unknowns_are_apart(f->s, from, to, f->checkable))
        return from;
    solver_unify(f->s, from, unknowns_keep_apart(f->s, from, to, f->checkable, true));
    return type_resolve(from);
}

/* Whether an older variable is given a type with later unknowns. It may be given others too, so each value has its
 * own unknowns there. A size of the callee that was already found (met) stays that size, except where a function
 * calls itself. */
static bool takes_later(const Flow *f, Type *from, Type *to, bool met) {
    const Solver *s = f->s;
    if (to->tag != TY_VAR || from->tag == TY_VAR || !s->bodies.len)
        return false;
    bool before = !met && to->var.id < vec_last(&s->bodies).mark;
    return (before || s->recursive) && unknowns_are_apart(s, to, from, false);
}

/* Whether `to` is an unknown that takes whatever flows there. */
static bool takes_any(const Type *to, bool met) {
    return to->tag == TY_ANY && (!met || to->param.each);
}

/* Whether a forgotten name of a parameter is in the size of another: Note [Named parameters]. */
static bool is_compared_inside(const Flow *f, Type *to) {
    TypeVec found = {0};
    if (f->parameter && to->tag == TY_DIM)
        unknowns_collect(to, &found);
    for (size_t i = 0; i < found.len; i++)
        if (found.data[i]->param.each && found.data[i]->param.value)
            return true;
    return false;
}

static bool take_size(const Flow *f, Type *unknown, Type *size) {
    Type *before = map_find(&f->pairs->taken, unknown);
    if (!before)
        map_set(&f->pairs->taken, unknown, size);
    return !before || unify_sizes(f->s, size, before, f->checkable);
}

/* A size or shape of the value that flows, with its own sizes for `each` unknowns. */
static Type *open_size(const Flow *f, Type *from) {
    return f->checkable ? type_resolve(unknowns_open_value(&f->pairs->value, from)) : from;
}

/* Lets elements of data that each have their own size flow to where no one size is asked of all. False where this is
 * not the case. */
static bool flow_elements(const Flow *f, Type *from, Type *to) {
    if (f->checkable || to->tag != TY_VAR || to->var.asked || !solver_has_each(from))
        return false;
    if (to->var.each)
        solver_list_elements(f->s, ELEMENTS_ALL, f->s->span, f->s->place);
    solver_link(f->s, to, to->var.nwatchers ? from : unknowns_replace(f->s, from, false));
    return true;
}

/* A function that takes `?` and gives another size, where both have one type, as in iterate(f, n): each value has its
 * own size there. False where this is not the case. */
static bool widen_result(const Flow *f, Type *from, Type *to) {
    if (!f->result || to->tag != TY_VAR || !to->var.widens ||
        (from->kind == KIND_DIM && dim_compare(from, to) == DIM_EQUAL))
        return false;
    solver_link(f->s, to, type_any_each(to->kind, from->origin));
    return true;
}

static bool flow_dim(const Flow *f, Type *from, Type *to, bool met) {
    met = met || is_linked(to);
    from = type_resolve(from);
    to = type_resolve(to);
    if (from == to)
        return flow_to_itself(f, to, met);
    if (takes_any(to, met))
        return take_size(f, to, from);
    if (is_compared_inside(f, to))
        return true;
    if ((to->flags & TYPE_HAS_ANY) && (!met || solver_has_each(to)) && !type_equal(from, to))
        to = substitute_taken(f, to, met);
    from = open_size(f, from);
    if (widen_result(f, from, to))
        return true;
    if (takes_later(f, from, to, met))
        return unify_dims(f->s, unknowns_keep_apart(f->s, to, from, false, false), to, false);
    return flow_elements(f, from, to) || check_apart(f, from, to) ||
           unify_dims(f->s, from, to, f->checkable);
}

static bool flow_shape(const Flow *f, Type *from, Type *to, bool met) {
    Solver *s = f->s;
    met = met || is_linked(to);
    from = type_resolve(from);
    to = type_resolve(to);
    if (from == to)
        return flow_to_itself(f, to, met);
    if (takes_any(to, met))
        return take_size(f, to, from);
    if (from->tag == TY_ANY)
        from = open_size(f, from);
    if (widen_result(f, from, to))
        return true;
    if (takes_later(f, from, to, met))
        return solver_unify(s, to, unknowns_keep_apart(s, to, from, false, false));
    if (to->tag == TY_ANY && check_apart(f, from, to))
        return true;
    from = take_form(f, from, to);
    if (from->tag == TY_VAR && to->tag == TY_SHAPE) { /* an open shape may have any size for `?` */
        if (!solver_unify(s, from, met ? to : unknowns_replace(s, to, true)))
            return false;
        from = type_resolve(from);
    }
    if (from->tag == TY_ANY && to->tag == TY_SHAPE && !met)
        to = unknowns_replace(s, to, true);
    if (from->tag != TY_SHAPE || to->tag != TY_SHAPE)
        return flow_elements(f, from, to) || unify_sizes(s, from, to, f->checkable);
    if (from->nargs != to->nargs)
        return solver_fail(s, MISMATCH_RANK, from, to);
    for (uint32_t i = 0; i < from->nargs; i++) {
        s->axis = (int)i;
        if (!flow_dim(f, from->args[i], to->args[i], met)) {
            s->mismatch.axis = (int)i;
            return false;
        }
    }
    s->axis = -1;
    return true;
}

/* The unknowns for which a value that is given has sizes: of a function, those of its results, and of what its parameters are
 * given in turn. What it takes itself may have any size. */
static void collect_given(Type *t, bool given, Map *seen, TypeVec *out) {
    t = type_resolve(t);
    if (!(t->flags & TYPE_HAS_ANY))
        return;
    if (t->tag == TY_FN) {
        for (uint32_t i = 0; i < t->nargs; i++)
            collect_given(t->args[i], !given, seen, out);
        collect_given(t->fn.result, given, seen, out);
    } else if (t->tag == TY_TUPLE) {
        for (uint32_t i = 0; i < t->nargs; i++)
            collect_given(t->args[i], given, seen, out);
    } else if (given || type_has(t, TY_FN)) {
        type_collect(t, TY_ANY, seen, out);
    }
}

/* The unknowns of what an expected function is given stand for the sizes that it will be called with, so they take no other
 * size. */
static void fix_unknowns(const Flow *f, Type *fn) {
    TypeVec unknowns = {0};
    Map seen = {0};
    for (uint32_t i = 0; i < fn->nargs; i++)
        collect_given(fn->args[i], true, &seen, &unknowns);
    for (size_t i = 0; i < unknowns.len; i++)
        if (!map_has(&f->pairs->taken, unknowns.data[i]))
            map_set(&f->pairs->taken, unknowns.data[i], unknowns.data[i]);
}

/* The result of a function, with the sizes that the unknowns of its parameters took. */
static Type *substitute_result(const Flow *f, Type *fn) {
    TypeVec from = {0}, to = {0};
    Map seen = {0};
    for (uint32_t i = 0; i < fn->nargs && (fn->flags & TYPE_HAS_ANY); i++)
        type_collect(fn->args[i], TY_ANY, &seen, &from);
    size_t kept = 0;
    for (size_t i = 0; i < from.len; i++) {
        Type *size = map_find(&f->pairs->taken, from.data[i]);
        if (!size || size == from.data[i] || from.data[i]->param.each)
            continue;
        from.data[kept++] = from.data[i];
        vec_push(&to, size);
    }
    return kept ? type_substitute(fn->fn.result, from.data, to.data, (uint32_t)kept)
                : fn->fn.result;
}

void solver_fix_names(const Solver *s, Type **a, Type **b, bool both) {
    for (uint32_t i = 0; (*b)->fn.named && i < (*b)->nargs; i++) {
        if (!type_fn_names(*b, i) || (both && !type_fn_names(*a, i)))
            continue;
        Type *size = type_param((*b)->fn.named[i]->param.name, KIND_DIM);
        size->param.level = s->level + 1;
        *a = type_fn_give(*a, i, size);
        *b = type_fn_give(*b, i, size);
    }
}

/* Flows in the contrary direction, and names the two sides of a mismatch the right way round. */
static bool flow_contravariant(const Flow *f, Type *from, Type *to) {
    Flow back = *f;
    back.parameter = !f->parameter;
    if (flow(&back, to, from, false))
        return true;
    Mismatch *m = &f->s->mismatch;
    Type *a = m->a;
    m->a = m->b;
    m->b = a;
    return false;
}

static bool flow_fn(const Flow *f, Type *from, Type *to) {
    Solver *s = f->s;
    if (from->nargs != to->nargs)
        return solver_fail(s, MISMATCH_ARITY, from, to);
    solver_fix_names(s, &from, &to, false);
    Flow inner = *f;
    inner.checkable = false;
    fix_unknowns(f, to);
    for (uint32_t i = 0; i < from->nargs; i++)
        if (!flow_contravariant(&inner, from->args[i], to->args[i])) {
            solver_prefix_path(s, "parameter %u", i + 1);
            return false;
        }
    inner.result = true;
    if (!flow(&inner, substitute_result(f, from), to->fn.result, false)) {
        solver_prefix_path(s, "result");
        return false;
    }
    solver_effect_include(s, from->fn.effect, to->fn.effect);
    return true;
}

static bool flow_data(const Flow *f, Type *from, Type *to, bool met) {
    Solver *s = f->s;
    if (from->decl != to->decl)
        return solver_fail(s, MISMATCH_HEAD, from, to);
    const uint8_t *variance = variance_of(from->decl);
    Flow inner = *f;
    inner.checkable = false;
    for (uint32_t i = 0; i < from->nargs; i++) {
        Type *a = from->args[i], *b = to->args[i];
        bool ok = variance[i] == INVARIANT       ? solver_unify(s, a, b)
                  : variance[i] == CONTRAVARIANT ? flow_contravariant(&inner, a, b)
                                                 : flow(&inner, a, b, met);
        if (!ok) {
            const Symbol *name = from->decl->params[i]->param.name;
            solver_prefix_path(s, "%s", name ? name->text : "");
            return false;
        }
    }
    return true;
}

/* Joins the type found for a parameter of data with another that flows to it, as for `a` of Cons(x, xs). */
static bool join_found_type(Type *from, Type *var, Solver *s) {
    Type *joined = type_join(s, var->var.link, from, true);
    if (!joined)
        return false;
    solver_lower_levels(s, joined, var->var.level);
    var->var.link = joined;
    return true;
}

static bool flow(const Flow *f, Type *from, Type *to, bool met) {
    Solver *s = f->s;
    if (from->kind == KIND_DIM)
        return flow_dim(f, from, to, met);
    if (from->kind == KIND_SHAPE)
        return flow_shape(f, from, to, met);
    if (is_linked(to) && to->var.joins && !to->var.nwatchers &&
        (type_has(from, TY_ANY) || type_has(to, TY_ANY)))
        return join_found_type(from, to, s);
    met = met || is_linked(to);
    from = type_resolve(from);
    to = type_resolve(to);
    if (from == to)
        return flow_to_itself(f, to, met);
    from = take_form(f, from, to);
    if (takes_later(f, from, to, met))
        return solver_unify(s, to, unknowns_keep_apart(s, to, from, false, false));
    if (from->tag == TY_VAR && to->tag != TY_VAR && (to->flags & TYPE_HAS_ANY) && !met) {
        bool ok = solver_unify(s, from, unknowns_replace(s, to, true));
        if (!ok || to->tag == TY_FN)
            return ok;
        from = type_resolve(from);
    }
    if (from->tag != to->tag)
        return solver_unify(s, from, to);
    bool composite = from->tag == TY_TUPLE || from->tag == TY_FN || from->tag == TY_DATA;
    if (composite && is_known_pair(f->pairs, from, to, met))
        return true;
    switch (from->tag) {
    case TY_TENSOR:
        return flow_shape(f, from->tensor.shape, to->tensor.shape, met) &&
               solver_unify(s, from->tensor.dtype, to->tensor.dtype);
    case TY_TUPLE:
        if (from->nargs != to->nargs)
            return solver_fail(s, MISMATCH_ARITY, from, to);
        for (uint32_t i = 0; i < from->nargs; i++)
            if (!flow(f, from->args[i], to->args[i], met)) {
                solver_prefix_path(s, "%u", i);
                return false;
            }
        return true;
    case TY_FN: return flow_fn(f, from, to);
    case TY_DATA: return flow_data(f, from, to, met);
    case TY_VAR:
    case TY_PARAM:
    case TY_REF:
    case TY_STRING:
    case TY_DERIV:
    case TY_ERROR:
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return solver_unify(s, from, to);
    }
    return false;
}

bool solver_flow(Solver *s, Type *from, Type *to, Span span, TypePlace place) {
    if (!((from->flags | to->flags) & (TYPE_HAS_ANY | TYPE_HAS_VARS)) && from == to)
        return true;
    Pairs pairs = {0};
    Flow f = {.s = s, .checkable = true, .pairs = &pairs};
    solver_set_place(s, span, place);
    if (s->given)
        fix_unknowns(&f, s->given);
    return flow(&f, from, to, false);
}

/* ---- join ------------------------------------------------------------------------------------ */

/* The result of joining a node with another. Only large types keep these, as in flow. */
typedef struct Joined {
    Type *with, *result;
} Joined;

typedef struct Joins {
    Solver *s;
    bool each;      /* inside data, where each value has its own unknowns */
    Map done[2][2]; /* by each and meet: a -> Joined */
    uint32_t count;
} Joins;

/* meet: in contravariant positions a known size wins over an unknown. */
static Type *join(Joins *j, Type *a, Type *b, bool meet);

static Type *join_unknown(const Joins *j, Kind kind, const Origin *origin) {
    return j->each ? type_any_each(kind, origin) : type_any(kind, origin);
}

static Type *join_dim(Joins *j, Type *a, Type *b, bool meet) {
    Solver *s = j->s;
    a = type_resolve(a);
    b = type_resolve(b);
    if (a == b || dim_compare(a, b) == DIM_EQUAL)
        return a;
    if (a->tag == TY_ANY || b->tag == TY_ANY) {
        if (meet)
            return a->tag == TY_ANY ? b : a;
        return join_unknown(j, KIND_DIM, a->tag == TY_ANY ? a->origin : b->origin);
    }
    if ((a->flags | b->flags) & TYPE_HAS_ANY)
        return meet ? a : join_unknown(j, KIND_DIM, NULL); /* arithmetic over an unknown */
    return unify_dims(s, a, b, false) ? a : NULL;
}

static Type *join_shape(Joins *j, Type *a, Type *b, bool meet) {
    Solver *s = j->s;
    a = type_resolve(a);
    b = type_resolve(b);
    if (a->tag == TY_VAR && b->tag == TY_SHAPE && (b->flags & TYPE_HAS_ANY))
        return solver_unify(s, a, unknowns_replace(s, b, true)) ? (meet ? a : b) : NULL;
    if (b->tag == TY_VAR && a->tag == TY_SHAPE && (a->flags & TYPE_HAS_ANY))
        return join_shape(j, b, a, meet);
    bool vars = a->tag == TY_VAR || b->tag == TY_VAR;
    if (a != b && !vars && (a->tag == TY_ANY || b->tag == TY_ANY)) {
        if (meet)
            return a->tag == TY_ANY ? b : a;
        return join_unknown(j, KIND_SHAPE, a->tag == TY_ANY ? a->origin : b->origin);
    }
    if (a->tag != TY_SHAPE || b->tag != TY_SHAPE)
        return solver_unify(s, a, b) ? a : NULL;
    if (a->nargs != b->nargs) {
        solver_fail(s, MISMATCH_RANK, a, b);
        return NULL;
    }
    Type **dims = mem_new_n(Type *, a->nargs);
    bool same = true;
    for (uint32_t i = 0; i < a->nargs; i++) {
        dims[i] = join_dim(j, a->args[i], b->args[i], meet);
        if (!dims[i]) {
            s->mismatch.axis = (int)i;
            return NULL;
        }
        same = same && dims[i] == a->args[i];
    }
    return same ? a : type_shape(dims, a->nargs);
}

/* Joins the parts of two types one by one. NULL after a mismatch. */
static Type **join_args(Joins *j, Type *a, Type *b, bool meet) {
    Solver *s = j->s;
    Type **out = mem_new_n(Type *, a->nargs);
    for (uint32_t i = 0; i < a->nargs; i++) {
        out[i] = join(j, a->args[i], b->args[i], meet);
        if (!out[i]) {
            solver_prefix_path(s, a->tag == TY_FN ? "parameter %u" : "%u",
                               a->tag == TY_FN ? i + 1 : i);
            return NULL;
        }
    }
    return out;
}

static Type *join_data(Joins *j, Type *a, Type *b, bool meet) {
    Solver *s = j->s;
    if (a->decl != b->decl) {
        solver_fail(s, MISMATCH_HEAD, a, b);
        return NULL;
    }
    const uint8_t *variance = variance_of(a->decl);
    Type **out = mem_new_n(Type *, a->nargs);
    bool each = j->each;
    for (uint32_t i = 0; i < a->nargs; i++) {
        j->each = each || a->args[i]->kind == KIND_TYPE;
        if (variance[i] == INVARIANT)
            out[i] = solver_unify(s, a->args[i], b->args[i]) ? a->args[i] : NULL;
        else
            out[i] = join(j, a->args[i], b->args[i], meet != (variance[i] == CONTRAVARIANT));
        j->each = each;
        if (!out[i]) {
            const Symbol *name = a->decl->params[i]->param.name;
            solver_prefix_path(s, "%s", name ? name->text : "");
            return NULL;
        }
    }
    return type_data(a->decl, out, a->nargs);
}

static Type *join_heads(Joins *j, Type *a, Type *b, bool meet) {
    Solver *s = j->s;
    a = type_resolve(a);
    b = type_resolve(b);
    if (a == b)
        return a;
    if (a->kind == KIND_DIM && b->kind == KIND_DIM)
        return join_dim(j, a, b, meet);
    if (a->kind == KIND_SHAPE && b->kind == KIND_SHAPE)
        return join_shape(j, a, b, meet);
    if (a->tag == TY_ERROR || b->tag == TY_ERROR) {
        solver_unify(s, a, b);
        return a->tag == TY_ERROR ? b : a;
    }
    if (a->tag == TY_VAR && b->tag != TY_VAR && (b->flags & TYPE_HAS_ANY))
        return solver_unify(s, a, unknowns_replace(s, b, true)) ? (meet ? a : b) : NULL;
    if (b->tag == TY_VAR && a->tag != TY_VAR && (a->flags & TYPE_HAS_ANY))
        return join(j, b, a, meet);
    bool unknowns = (a->flags | b->flags) & (TYPE_HAS_ANY | TYPE_HAS_VARS);
    if (a->tag != b->tag || !unknowns || a->nargs != b->nargs)
        return solver_unify(s, a, b) ? a : NULL;
    Type **args;
    switch (a->tag) {
    case TY_TENSOR: {
        Type *shape = join_shape(j, a->tensor.shape, b->tensor.shape, meet);
        if (!shape || !solver_unify(s, a->tensor.dtype, b->tensor.dtype))
            return NULL;
        return shape == type_resolve(a->tensor.shape) ? a : type_tensor(shape, a->tensor.dtype);
    }
    case TY_TUPLE: args = join_args(j, a, b, meet); return args ? type_tuple(args, a->nargs) : NULL;
    case TY_FN: {
        bool each = j->each;
        if (a->fn.named && b->fn.named)
            b = type_fn_rename(b, a);
        j->each = true;
        args = join_args(j, a, b, !meet);
        Type *result = args ? join(j, a->fn.result, b->fn.result, meet) : NULL;
        j->each = each;
        if (!result)
            return NULL;
        Type *effect = solver_var(s, KIND_EFFECT);
        solver_effect_include(s, a->fn.effect, effect);
        solver_effect_include(s, b->fn.effect, effect);
        return type_fn_named(args, a->nargs, result, effect, a->fn.named);
    }
    case TY_DATA: return join_data(j, a, b, meet);
    case TY_VAR:
    case TY_PARAM:
    case TY_REF:
    case TY_STRING:
    case TY_DERIV:
    case TY_ERROR:
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: break;
    }
    return solver_unify(s, a, b) ? a : NULL;
}

static Type *join(Joins *j, Type *a, Type *b, bool meet) {
    if (j->count < SMALL_TYPE) {
        j->count++;
        return join_heads(j, a, b, meet);
    }
    a = type_resolve(a);
    b = type_resolve(b);
    Joined *known = map_find(&j->done[j->each][meet], a);
    if (known && known->with == b)
        return known->result;
    Type *result = join_heads(j, a, b, meet);
    Joined *now = mem_new(Joined);
    *now = (Joined){b, result};
    if (result)
        map_set(&j->done[j->each][meet], a, now);
    return result;
}

Type *type_join(Solver *s, Type *a, Type *b, bool each) {
    Joins j = {.s = s, .each = each};
    return join(&j, a, b, false);
}
