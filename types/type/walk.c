/* SPDX-License-Identifier: Apache-2.0 */
/* Traversals of types: substitution, following links everywhere, comparison. Types are DAGs, so each
 * is memoised by node; parts in which nothing can change are shared, not copied. */
#include "base/mem.h"
#include "types/type/dim.h"
#include "types/type/type.h"

typedef struct Walk {
    uint32_t mask;      /* flags of the parts to enter */
    Map done;           /* Type* -> Type* */
    const Map *tensors; /* type_replace_tensors */
    Map *shared;        /* type_share: hash -> Bucket */
} Walk;

static Type *rebuild(Walk *w, Type *t);

static Type *rebuild_dim(Walk *w, Type *t);

static Type *rebuild_atom(Walk *w, const DimAtom *a) {
    switch (a->kind) {
    case DIM_ATOM_TYPE: return rebuild(w, a->type);
    case DIM_ATOM_FLOORDIV: return dim_floordiv(rebuild(w, a->a), rebuild(w, a->b));
    case DIM_ATOM_MIN: return dim_min(rebuild(w, a->a), rebuild(w, a->b));
    case DIM_ATOM_MAX: return dim_max(rebuild(w, a->a), rebuild(w, a->b));
    }
    BUG("an unknown kind of atom in a size");
}

static Type *rebuild_dim(Walk *w, Type *t) {
    Type *sum = type_dim_int(t->dim->constant, t->origin);
    for (uint32_t i = 0; i < t->dim->nterms; i++) {
        const DimMonomial *m = &t->dim->terms[i];
        Type *product = type_dim_int(m->coef, NULL);
        for (uint32_t k = 0; k < m->natoms; k++)
            product = dim_mul(product, rebuild_atom(w, m->atoms[k]));
        sum = dim_add(sum, product);
    }
    return sum;
}

/* The arguments after the walk; NULL when none changed. */
static Type **rebuild_args(Walk *w, Type *t) {
    Type **out = NULL;
    for (uint32_t i = 0; i < t->nargs; i++) {
        Type *arg = rebuild(w, t->args[i]);
        if (arg != t->args[i] && !out) {
            out = mem_new_n(Type *, t->nargs);
            for (uint32_t k = 0; k < i; k++)
                out[k] = t->args[k];
        }
        if (out)
            out[i] = arg;
    }
    return out;
}

/* The names of a function's parameters after the walk. What a name became that is no name ends it. */
static Type **rebuild_names(Walk *w, const Type *fn) {
    if (!fn->fn.named)
        return NULL;
    Type **out = mem_new_n(Type *, fn->nargs);
    for (uint32_t i = 0; i < fn->nargs; i++) {
        Type *now = fn->fn.named[i] ? rebuild(w, fn->fn.named[i]) : NULL;
        out[i] = now && now->tag == TY_ANY && now->param.each ? now : NULL;
    }
    return out;
}

/* Nodes with equal heads and equal parts. */
typedef struct Bucket Bucket;
struct Bucket {
    Type *type;
    Bucket *next;
};

static bool is_alike(const Type *a, const Type *b) {
    if (a->tag != b->tag || a->nargs != b->nargs)
        return false;
    for (uint32_t i = 0; i < a->nargs; i++)
        if (a->args[i] != b->args[i])
            return false;
    switch (a->tag) {
    case TY_TENSOR: return a->tensor.shape == b->tensor.shape && a->tensor.dtype == b->tensor.dtype;
    case TY_FN:
        for (uint32_t i = 0; i < a->nargs && (a->fn.named || b->fn.named); i++)
            if (type_fn_names(a, i) != type_fn_names(b, i) ||
                (type_fn_names(a, i) && a->fn.named[i] != b->fn.named[i]))
                return false;
        return a->fn.result == b->fn.result && a->fn.effect == b->fn.effect;
    case TY_REF:
    case TY_DERIV: return a->elem == b->elem;
    case TY_DATA: return a->decl == b->decl;
    case TY_TUPLE:
    case TY_SHAPE: return true;
    case TY_DIM: return dim_compare((Type *)a, (Type *)b) == DIM_EQUAL;
    case TY_VAR:
    case TY_PARAM:
    case TY_STRING:
    case TY_ERROR:
    case TY_DTYPE:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return a == b;
    }
    return false;
}

static uintptr_t mix(uintptr_t h, uintptr_t x) {
    return (h ^ x >> 4) * (uintptr_t)0x9E3779B97F4A7C15u + (h >> 29);
}

static Type *share(Map *shared, Type *t) {
    if (t->tag == TY_VAR || t->tag == TY_PARAM || t->tag == TY_ANY)
        return t; /* equal types are already one node */
    uintptr_t h = mix(t->tag, t->nargs);
    for (uint32_t i = 0; i < t->nargs; i++)
        h = mix(h, (uintptr_t)t->args[i]);
    if (t->tag == TY_TENSOR)
        h = mix(mix(h, (uintptr_t)t->tensor.shape), (uintptr_t)t->tensor.dtype);
    if (t->tag == TY_FN)
        h = mix(mix(h, (uintptr_t)t->fn.result), (uintptr_t)t->fn.effect);
    if (t->tag == TY_REF || t->tag == TY_DERIV)
        h = mix(h, (uintptr_t)t->elem);
    const void *key = (const void *)(h | 1);
    Bucket *first = map_find(shared, key);
    for (Bucket *b = first; b; b = b->next)
        if (is_alike(b->type, t))
            return b->type;
    Bucket *b = mem_new(Bucket);
    *b = (Bucket){.type = t, .next = first};
    map_set(shared, key, b);
    return t;
}

static Type *rebuild(Walk *w, Type *t) {
    t = type_resolve(t);
    if (!(t->flags & w->mask))
        return t;
    Type *known = map_find(&w->done, t);
    if (known)
        return known;
    Type *out = t;
    Type **args = NULL;
    switch (t->tag) {
    case TY_TENSOR: {
        Type *shape = rebuild(w, t->tensor.shape), *dtype = rebuild(w, t->tensor.dtype);
        Type *whole = w->tensors ? map_find(w->tensors, shape) : NULL;
        if (whole &&
            (whole->tag != TY_PARAM || type_resolve(whole->param.known->tensor.dtype) == dtype))
            out = whole;
        else if (shape != t->tensor.shape || dtype != t->tensor.dtype)
            out = type_tensor(shape, dtype);
        break;
    }
    case TY_TUPLE:
        if ((args = rebuild_args(w, t)))
            out = type_tuple(args, t->nargs);
        break;
    case TY_SHAPE:
        if ((args = rebuild_args(w, t)))
            out = type_shape(args, t->nargs);
        break;
    case TY_DATA:
        if ((args = rebuild_args(w, t)))
            out = type_data(t->decl, args, t->nargs);
        break;
    case TY_FN: {
        args = rebuild_args(w, t);
        Type *result = rebuild(w, t->fn.result), *effect = rebuild(w, t->fn.effect);
        if (args || result != t->fn.result || effect != t->fn.effect)
            out = type_fn_named(args ? args : t->args, t->nargs, result, effect,
                                rebuild_names(w, t));
        break;
    }
    case TY_REF: {
        Type *elem = rebuild(w, t->elem);
        if (elem != t->elem)
            out = type_ref(elem);
        break;
    }
    case TY_DERIV: {
        Type *elem = rebuild(w, t->elem);
        if (elem != t->elem)
            out = type_deriv(elem);
        break;
    }
    case TY_DIM: out = rebuild_dim(w, t); break;
    case TY_VAR:
    case TY_PARAM:
    case TY_ANY:
    case TY_STRING:
    case TY_ERROR:
    case TY_DTYPE:
    case TY_PURE:
    case TY_ALLOCATES: break;
    }
    if (w->shared)
        out = share(w->shared, out);
    if (out != t && !out->origin && t->origin && t->tag != TY_DIM)
        out->origin = t->origin;
    map_set(&w->done, t, out);
    return out;
}

Substitution substitution_new(Type *const *from, Type *const *to, uint32_t n) {
    Substitution by = {.mask = TYPE_HAS_VARS};
    for (uint32_t i = 0; i < n; i++) {
        map_set(&by.done, from[i], to[i]);
        by.mask |= from[i]->flags;
    }
    return by;
}

Type *type_substitute_by(Substitution *by, Type *t) {
    if (!(t->flags & by->mask))
        return t;
    Walk w = {.mask = by->mask, .done = by->done};
    Type *out = rebuild(&w, t);
    by->done = w.done;
    return out;
}

Type *type_substitute(Type *t, Type *const *from, Type *const *to, uint32_t n) {
    if (n == 0 || !(t->flags & (TYPE_HAS_PARAMS | TYPE_HAS_ANY | TYPE_HAS_VARS)))
        return t;
    Substitution by = substitution_new(from, to, n);
    return type_substitute_by(&by, t);
}

Type *type_zonk(Type *t) {
    Walk w = {.mask = TYPE_HAS_VARS};
    return rebuild(&w, t);
}

Type *type_share(Type *t) {
    Map shared = {0};
    Walk w = {.mask = UINT32_MAX, .shared = &shared};
    return rebuild(&w, t);
}

Type *type_replace_tensors(Type *t, const Map *of) {
    Walk w = {.mask = TYPE_HAS_VARS | TYPE_HAS_PARAMS, .tensors = of};
    return rebuild(&w, t);
}

/* ---- questions ------------------------------------------------------------------------------- */

void type_each_part(const Type *t, void (*visit)(void *ctx, Type *part), void *ctx) {
    for (uint32_t i = 0; i < t->nargs; i++)
        visit(ctx, t->args[i]);
    switch (t->tag) {
    case TY_TENSOR:
        visit(ctx, t->tensor.shape);
        visit(ctx, t->tensor.dtype);
        return;
    case TY_FN:
        visit(ctx, t->fn.result);
        visit(ctx, t->fn.effect);
        return;
    case TY_REF:
    case TY_DERIV: visit(ctx, t->elem); return;
    case TY_DIM:
        for (uint32_t i = 0; i < t->dim->nterms; i++)
            for (uint32_t k = 0; k < t->dim->terms[i].natoms; k++) {
                const DimAtom *a = t->dim->terms[i].atoms[k];
                if (a->kind == DIM_ATOM_TYPE) {
                    visit(ctx, a->type);
                } else {
                    visit(ctx, a->a);
                    visit(ctx, a->b);
                }
            }
        return;
    case TY_VAR:
    case TY_PARAM:
    case TY_TUPLE:
    case TY_DATA:
    case TY_STRING:
    case TY_ERROR:
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return;
    }
}

typedef struct Search {
    Map seen;
    Type *const *params;
    uint32_t n;
    bool found;
} Search;

static void find(void *search, Type *t) {
    Search *q = search;
    t = type_resolve(t);
    if (q->found || !(t->flags & (TYPE_HAS_VARS | TYPE_HAS_PARAMS)))
        return;
    for (uint32_t i = 0; t->tag == TY_PARAM && i < q->n; i++)
        if (q->params[i] == t)
            q->found = true;
    if (map_has(&q->seen, t))
        return;
    map_set(&q->seen, t, t);
    type_each_part(t, find, q);
}

/* The flags of types in which nodes with this tag may occur. */
static uint32_t flags_of(TypeTag tag) {
    return TYPE_HAS_VARS | (tag == TY_PARAM ? TYPE_HAS_PARAMS : tag == TY_ANY ? TYPE_HAS_ANY : 0);
}

typedef struct Collect {
    TypeTag tag;
    uint32_t mask;
    Map *seen;
    TypeVec *out;
} Collect;

static void collect(void *collector, Type *t) {
    Collect *c = collector;
    t = type_resolve(t);
    if (!(t->flags & c->mask) || map_has(c->seen, t))
        return;
    map_set(c->seen, t, t);
    if (t->tag == c->tag)
        vec_push(c->out, t);
    else
        type_each_part(t, collect, c);
}

void type_collect(Type *t, TypeTag tag, Map *seen, TypeVec *out) {
    Collect c = {.tag = tag, .mask = flags_of(tag), .seen = seen, .out = out};
    collect(&c, t);
}

typedef struct Finding {
    Map seen;
    uint32_t tags, mask; /* a bit for each tag; in the flags of which types these may occur */
    bool found;
} Finding;

static void find_tag(void *finding, Type *t) {
    Finding *q = finding;
    t = type_resolve(t);
    if (q->found || !(t->flags & q->mask))
        return;
    q->found = q->tags >> t->tag & 1;
    if (!q->found && map_enter(&q->seen, t))
        type_each_part(t, find_tag, q);
}

static bool has_any(Type *t, uint32_t tags, uint32_t mask) {
    t = type_resolve(t);
    if (!(t->flags & mask))
        return false;
    Finding q = {.tags = tags, .mask = mask, .found = tags >> t->tag & 1};
    if (q.found)
        return true;
    MapRoom room;
    map_begin(&q.seen, &room);
    find_tag(&q, t);
    map_end(&q.seen);
    return q.found;
}

bool type_has(Type *t, TypeTag tag) { return has_any(t, 1u << tag, flags_of(tag)); }

bool type_is_closed(Type *t) {
    return !has_any(t, 1u << TY_VAR | 1u << TY_PARAM | 1u << TY_ANY,
                    TYPE_HAS_VARS | TYPE_HAS_PARAMS | TYPE_HAS_ANY);
}

bool type_has_vars(Type *t) { return type_has(t, TY_VAR); }

void type_collect_names(Type *t, Map seen[2], TypeVec *out) {
    type_collect(t, TY_PARAM, &seen[0], out);
    type_collect(t, TY_ANY, &seen[1], out);
}

bool type_has_each(Type *t) {
    TypeVec found = {0};
    type_collect_names(t, (Map[2]){0}, &found);
    for (size_t i = 0; i < found.len; i++)
        if (found.data[i]->param.each)
            return true;
    return false;
}

bool type_has_open_sizes(Type *t) {
    TypeVec vars = {0};
    Map seen = {0};
    type_collect(t, TY_VAR, &seen, &vars);
    for (size_t i = 0; i < vars.len; i++)
        if (vars.data[i]->kind != KIND_DTYPE && vars.data[i]->kind != KIND_EFFECT)
            return true;
    return false;
}

bool type_has_unknown_rank(Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        return type_resolve(t->tensor.shape)->tag == TY_ANY;
    for (uint32_t i = 0; t->tag == TY_TUPLE && i < t->nargs; i++)
        if (type_has_unknown_rank(t->args[i]))
            return true;
    return false;
}

bool type_mentions(Type *t, Type *const *params, uint32_t n) {
    Search q = {.params = params, .n = n};
    if (n > 0)
        find(&q, t);
    return q.found;
}

/* `same` remembers which node of b each node of a was found equal to, so each pair is compared once. */
static bool equal(Map *same, Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    if (a == b)
        return true;
    if (a->kind == KIND_DIM && b->kind == KIND_DIM)
        return dim_compare(a, b) == DIM_EQUAL;
    if (a->tag != b->tag || a->nargs != b->nargs)
        return false;
    if (map_find(same, a) == b)
        return true;
    bool yes = false;
    if (a->tag == TY_FN && a->fn.named && b->fn.named)
        b = type_fn_rename(b, a);
    switch (a->tag) {
    case TY_TENSOR:
        yes = equal(same, a->tensor.shape, b->tensor.shape) &&
              equal(same, a->tensor.dtype, b->tensor.dtype);
        break;
    case TY_FN: yes = equal(same, a->fn.result, b->fn.result); break;
    case TY_REF:
    case TY_DERIV: yes = equal(same, a->elem, b->elem); break;
    case TY_DATA: yes = a->decl == b->decl; break;
    case TY_DTYPE: return a->dtype_value == b->dtype_value;
    case TY_TUPLE:
    case TY_SHAPE:
    case TY_STRING:
    case TY_ERROR:
    case TY_PURE:
    case TY_ALLOCATES: yes = true; break;
    case TY_VAR:
    case TY_PARAM:
    case TY_DIM:
    case TY_ANY: return false;
    }
    for (uint32_t i = 0; yes && i < a->nargs; i++)
        yes = equal(same, a->args[i], b->args[i]);
    if (yes)
        map_set(same, a, b);
    return yes;
}

bool type_equal(Type *a, Type *b) {
    Map same = {0};
    return equal(&same, a, b);
}
