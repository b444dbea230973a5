/* SPDX-License-Identifier: Apache-2.0 */
/* Simplification of the relations a definition is generalised over, by their laws.
 *
 * Every relation is a function: equal arguments have equal results, unless a size follows from the values of the
 * arguments (Note [One fact, one part] in fact.c). The arguments of a Broadcast are a set: it is
 * associative, commutative and idempotent, with the unit (). So x + y = t and t + z = u become Broadcast(x, y, z, u)
 * where nothing else mentions t: the constraint on {x, y} follows from that on {x, y, z}. And a result absorbs its
 * own arguments: x + y = t and t + x = u give u = t. A set is no larger than the number of variables, so thirty
 * definitions that each apply the one before twice stay small. */
#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

/* ---- equal relations ------------------------------------------------------------------------- */

static bool is_rank0(Type *t) {
    uint32_t rank;
    Type **dims;
    return type_get_rank(t, &rank, &dims) && rank == 0;
}

static bool has_input(const Relation *r, Type *t) {
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        if (type_equal(r->args[i], t))
            return true;
    return false;
}

static bool has_inputs_inside(const Relation *small, const Relation *large) {
    for (uint32_t i = 0; i + 1 < small->nargs; i++)
        if (!has_input(large, small->args[i]))
            return false;
    return true;
}

/* `==` and `<` have the same result for equal arguments: a tensor of bools, and one bool for Strings. */
static bool is_comparison(const RelDef *def) {
    return def == &rel_broadcast_compare || def == &rel_equal;
}

static DTypeSet comparison_dtypes(const Relation *r) {
    return r->op && r->op->dtypes ? r->op->dtypes : DTS_ALL;
}

static bool has_same_inputs(const Relation *a, const Relation *b) {
    if (a->nargs != b->nargs ||
        (a->def != b->def && !(is_comparison(a->def) && is_comparison(b->def))))
        return false;
    if (is_broadcast(a->def))
        return has_inputs_inside(a, b);
    if (is_comparison(a->def) && comparison_dtypes(a) == comparison_dtypes(b))
        return has_inputs_inside(a, b) && has_inputs_inside(b, a);
    if (a->op != b->op || !relation_asks_same(a, b))
        return false;
    for (uint32_t i = 0; i + 1 < a->nargs; i++)
        if (!type_equal(a->args[i], b->args[i]))
            return false;
    return true;
}

/* The node that stands for a type: the variable itself, or the shape variable of Tensor[s, b]. */
static Type *get_identity(Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR) {
        Type *shape = type_resolve(t->tensor.shape);
        return shape->tag == TY_VAR || shape->tag == TY_PARAM ? shape : t;
    }
    return t;
}

static uintptr_t get_id(const Type *identity) {
    return identity->tag == TY_VAR     ? identity->var.id
           : identity->tag == TY_PARAM ? identity->param.id
                                       : 0;
}

static uintptr_t hash_input(Type *input) {
    Type *t = get_identity(input);
    uintptr_t h = get_id(t);
    for (uint32_t i = 0; i < t->nargs && t->tag == TY_TUPLE; i++)
        h += (i + 3) * get_id(get_identity(t->args[i]));
    return h * (uintptr_t)2654435761u;
}

/* A hash that is equal for relations that has_same_inputs may find equal. */
static uintptr_t hash_inputs(const Relation *r) {
    uintptr_t h = (uintptr_t)(is_comparison(r->def) ? &rel_broadcast_compare : r->def) >> 4;
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        h += hash_input(r->args[i]);
    if (r->data && (r->def == &rel_proj || r->def == &rel_index))
        h += (uintptr_t) * (const int64_t *)r->data * (uintptr_t)40503u;
    else if (r->def == &rel_field || r->def == &rel_use)
        h += (uintptr_t)r->data >> 4;
    return h | 1;
}

/* ---- occurrences ----------------------------------------------------------------------------- */

typedef struct Laws {
    Solver *s;
    RelationVec *relations;
    Map *order;
    Map elsewhere;  /* variables that are more than an argument or a result of a Broadcast */
    Map makers;     /* identity -> the Broadcast whose result it is */
    Map made_twice; /* identities that are the results of several */
    bool unified;
} Laws;

static void note_elsewhere(Laws *l, Type *t) {
    TypeVec vars = {0};
    Map seen = {0};
    type_collect(t, TY_VAR, &seen, &vars);
    for (size_t i = 0; i < vars.len; i++)
        map_set(&l->elsewhere, vars.data[i], t);
}

static void find_occurrences(Laws *l) {
    l->s->counts.steps += l->relations->len;
    map_clear(&l->elsewhere);
    map_clear(&l->makers);
    map_clear(&l->made_twice);
    for (size_t i = 0; i < l->relations->len; i++) {
        Relation *r = l->relations->data[i];
        if (r->status != REL_WAIT)
            continue;
        if (!is_broadcast(r->def)) {
            for (uint32_t k = 0; k < r->nargs; k++)
                note_elsewhere(l, r->args[k]);
            continue;
        }
        for (uint32_t k = 0; k < r->nargs; k++) {
            Type *t = type_resolve(r->args[k]);
            if (t->tag == TY_TENSOR && get_identity(t) == t)
                note_elsewhere(l, t->tensor.shape); /* sizes */
        }
        Type *result = get_identity(r->args[r->nargs - 1]);
        if (map_has(&l->makers, result))
            map_set(&l->made_twice, result, r);
        map_set(&l->makers, result, r);
    }
}

/* Whether t is nothing but the result of one Broadcast and an argument of others. */
static bool is_intermediate(const Laws *l, Type *t) {
    Type *id = get_identity(t);
    return id->tag == TY_VAR && !map_has(l->order, id) && !map_has(&l->elsewhere, id) &&
           !map_has(&l->made_twice, id);
}

/* Whether, without the tensor t, another tensor of the set still tells the dtype. */
static bool keeps_dtype_without(const Laws *l, const Relation *r, Type *t) {
    t = type_resolve(t);
    if (t->tag != TY_TENSOR)
        return true;
    Type *dtype = type_resolve(t->tensor.dtype);
    for (uint32_t i = 0; i < r->nargs; i++) {
        Type *other = type_resolve(r->args[i]);
        if (other->tag == TY_TENSOR && get_identity(other) != get_identity(t) &&
            type_resolve(other->tensor.dtype) == dtype)
            return true;
    }
    return dtype->tag == TY_VAR && !map_has(l->order, dtype) && !map_has(&l->elsewhere, dtype);
}

/* ---- one relation ---------------------------------------------------------------------------- */

typedef VEC(Span) SpanVec;

/* Where argument i of r stands in the definition that root came from, or nowhere. */
static Span find_place(const Relation *root, const Relation *r, uint32_t i) {
    bool inside = root->inner.source != NULL;
    const Span *spans = inside ? r->inner_spans : r->arg_spans;
    return spans && r->inner.source == root->inner.source && r->inner_name == root->inner_name
               ? spans[i]
               : span_none();
}

static void set_places(Relation *r, const Span *places) {
    if (r->inner.source)
        r->inner_spans = places;
    else
        r->arg_spans = places;
}

static void set_inputs(Relation *r, TypeVec *inputs, SpanVec *places) {
    Type *result = r->args[r->nargs - 1];
    r->args = mem_new_n(Type *, inputs->len + 1);
    for (size_t i = 0; i < inputs->len; i++)
        r->args[i] = inputs->data[i];
    r->args[inputs->len] = result;
    r->nargs = (uint32_t)inputs->len + 1;
    set_places(r, places->data);
}

/* The inputs of a set that were found so far. */
typedef struct Leaves {
    TypeVec inputs;
    SpanVec places;
    Map seen;      /* identities that are variables or parameters */
    size_t others; /* the number of other inputs */
} Leaves;

static void add_input(Leaves *v, Type *t, Span place) {
    Type *id = get_identity(t);
    bool named = id->tag == TY_VAR || id->tag == TY_PARAM;
    if (is_rank0(t) || (named && map_has(&v->seen, id)))
        return;
    for (size_t i = 0; !named && v->others && i < v->inputs.len; i++)
        if (type_equal(v->inputs.data[i], t))
            return;
    if (named)
        map_set(&v->seen, id, t);
    else
        v->others++;
    vec_push(&v->inputs, t);
    vec_push(&v->places, place);
}

static bool has_dtype(Type *t, Type *dtype) {
    t = type_resolve(t);
    return t->tag == TY_TENSOR && type_resolve(t->tensor.dtype) == dtype;
}

/* Whether root still tells the dtype of the intermediate tensor t when the inputs of its maker replace t. */
static bool keeps_dtype_flattened(const Laws *l, const Relation *root, const Relation *maker,
                                  Type *t) {
    t = type_resolve(t);
    if (t->tag != TY_TENSOR)
        return true;
    Type *dtype = type_resolve(t->tensor.dtype);
    if (dtype->tag == TY_VAR && !map_has(l->order, dtype) && !map_has(&l->elsewhere, dtype))
        return true;
    if (has_dtype(root->args[root->nargs - 1], dtype))
        return true;
    for (uint32_t i = 0; i + 1 < root->nargs; i++)
        if (has_dtype(root->args[i], dtype) && !is_intermediate(l, root->args[i]))
            return true;
    for (uint32_t i = 0; i + 1 < maker->nargs; i++)
        if (has_dtype(maker->args[i], dtype) && !is_intermediate(l, maker->args[i]))
            return true;
    return false;
}

/* A step of the way through nested sets. */
typedef struct Step {
    Relation *r;
    uint32_t at; /* the next input of r */
} Step;

/* Replaces intermediate arguments by what they are made of, all the way down. The makers are collected in `inside`,
 * since what they say follows from the root. Makers that must stay are added to `roots`. */
static bool flatten_set(Laws *l, Relation *root, Map *inside, RelationVec *roots) {
    Leaves leaves = {0};
    VEC(Step) way = {0};
    Map seen = {0};
    Step first = {root, 0};
    vec_push(&way, first);
    map_set(&seen, root, root);
    bool changed = false;
    DTypeSet dtypes = broadcast_dtypes(root);
    while (way.len) {
        Step *step = &vec_last(&way);
        if (step->at + 1 >= step->r->nargs) {
            (void)vec_pop(&way);
            continue;
        }
        Relation *r = step->r;
        uint32_t i = step->at++;
        Type *t = r->args[i];
        Relation *maker = map_find(&l->makers, get_identity(t));
        l->s->counts.steps++;
        if (!maker || maker == root || maker->status != REL_WAIT || !is_intermediate(l, t)) {
            add_input(&leaves, t, find_place(root, r, i));
        } else if (!keeps_dtype_flattened(l, root, maker, t)) {
            add_input(&leaves, t, find_place(root, r, i));
            vec_push(roots, maker);
        } else {
            changed = true;
            if (map_has(&seen, maker))
                continue;
            map_set(&seen, maker, maker);
            map_set(inside, maker, root);
            dtypes &= broadcast_dtypes(maker) ? broadcast_dtypes(maker) : dtypes;
            Step next = {maker, 0};
            vec_push(&way, next);
        }
    }
    root->data = changed && dtypes ? (const void *)(uintptr_t)dtypes : root->data;
    if (changed || leaves.inputs.len + 1 < root->nargs)
        set_inputs(root, &leaves.inputs, &leaves.places);
    return changed;
}

/* Flattens every set whose result is more than an argument of others. */
static bool flatten_sets(Laws *l) {
    Map used = {0}, inside = {0}, kept = {0};
    RelationVec roots = {0};
    bool changed = false;
    for (size_t i = 0; i < l->relations->len; i++) {
        Relation *r = l->relations->data[i];
        for (uint32_t k = 0; r->status == REL_WAIT && is_broadcast(r->def) && k + 1 < r->nargs; k++)
            map_set(&used, get_identity(r->args[k]), r);
    }
    for (size_t i = 0; i < l->relations->len; i++) {
        Relation *r = l->relations->data[i];
        Type *result = r->args[r->nargs - 1];
        if (r->status == REL_WAIT && is_broadcast(r->def) &&
            (!is_intermediate(l, result) || !map_has(&used, get_identity(result))))
            vec_push(&roots, r);
    }
    for (size_t i = 0; i < roots.len; i++) {
        Relation *r = roots.data[i];
        if (map_has(&kept, r))
            continue;
        map_set(&kept, r, r);
        changed |= flatten_set(l, r, &inside, &roots);
    }
    const void *key;
    void *value;
    for (size_t i = 0; map_next(&inside, &i, &key, &value);)
        if (!map_has(&kept, key))
            ((Relation *)key)->status = REL_DONE;
    return changed;
}

/* Drops the arguments that another argument is made of. */
static bool absorb_inputs(Laws *l, Relation *r) {
    bool changed = false;
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        Relation *maker = map_find(&l->makers, get_identity(r->args[i]));
        if (!maker || maker == r || maker->status != REL_WAIT)
            continue;
        TypeVec inputs = {0};
        SpanVec places = {0};
        for (uint32_t k = 0; k + 1 < r->nargs; k++)
            if (k == i || !has_input(maker, r->args[k])) {
                vec_push(&inputs, r->args[k]);
                vec_push(&places, find_place(r, r, k));
            }
        if (inputs.len + 1 < r->nargs) {
            set_inputs(r, &inputs, &places);
            changed = true;
            i = UINT32_MAX; /* start again with the first argument */
        }
    }
    return changed;
}

/* Solves a comparison of which one argument is the broadcast of the others: the result has the shape of this
 * argument. */
static bool absorb_comparison(Laws *l, Relation *r) {
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        Type *t = type_resolve(r->args[i]);
        Relation *maker = map_find(&l->makers, get_identity(t));
        bool all = maker && maker->status == REL_WAIT && (t->tag == TY_TENSOR || t->tag == TY_VAR);
        for (uint32_t k = 0; all && k + 1 < r->nargs; k++)
            all = k == i || has_input(maker, r->args[k]);
        if (!all)
            continue;
        if (t->tag == TY_VAR && !solver_unify(l->s, t, solver_tensor_var(l->s)))
            return false;
        t = type_resolve(t); /* the result of a broadcast is a tensor */
        Type *result = type_tensor(t->tensor.shape, type_dtype(DT_BOOL));
        if (!solver_unify(l->s, r->args[r->nargs - 1], result))
            return false; /* the comparison stays, and fails where the definition is used */
        r->status = REL_DONE;
        return true;
    }
    return false;
}

/* Note [One read, one size]. Each read of a field or a reference makes its unknown sizes anew, since two values of
 * one type, or one reference at two times, may differ in them. Reads that were merged into one relation have one
 * result. If this result has unknown sizes in the end, they are listed as checks at run time, unless all reads are
 * of one field of one variable. */
static bool is_same_read(const Relation *a, const Relation *b) {
    return a->def == &rel_field && !a->shared && !b->shared && a->read_var &&
           a->read_var == b->read_var;
}

/* Merges relations with equal arguments: their results are unified, and the later relation is done. */
static void merge_equal(Laws *l) {
    l->s->counts.steps += l->relations->len;
    Map first = {0};
    for (size_t i = 0; i < l->relations->len; i++) {
        Relation *r = l->relations->data[i];
        if (r->status != REL_WAIT || r->nargs < 2 || r->def == &rel_differentiable ||
            relation_reads_values(r))
            continue;
        uintptr_t key = hash_inputs(r);
        Relation *other;
        while ((other = map_find(&first, (const void *)key)) && !has_same_inputs(r, other))
            key += 2; /* look for the next relation of this hash */
        if (!other) {
            map_set(&first, (const void *)key, r);
            continue;
        }
        if (!type_equal(r->args[r->nargs - 1], other->args[other->nargs - 1])) {
            if (!solver_unify(l->s, r->args[r->nargs - 1], other->args[other->nargs - 1]))
                continue; /* both relations stay, and fail where the definition is used */
            l->unified = true;
        }
        if (is_broadcast(r->def)) {
            DTypeSet both = broadcast_dtypes(r) & broadcast_dtypes(other);
            other->data = both ? (const void *)(uintptr_t)both : other->data;
        }
        if (is_comparison(r->def) && other->def == &rel_equal) { /* `<` takes fewer types */
            other->def = r->def;
            other->op = r->op;
        }
        if ((r->def == &rel_field || r->def == &rel_bang) && !is_same_read(r, other))
            other->shared = true;
        r->status = REL_DONE;
    }
}

/* Drops sets that follow from a larger set, and whose results nothing mentions. */
static void drop_implied(Laws *l) {
    Map used = {0};
    for (size_t i = 0; i < l->relations->len; i++) {
        Relation *r = l->relations->data[i];
        for (uint32_t k = 0; r->status == REL_WAIT && k + 1 < r->nargs; k++)
            map_set(&used, get_identity(r->args[k]), r);
    }
    for (size_t i = 0; i < l->relations->len; i++) {
        Relation *r = l->relations->data[i];
        if (solver_is_spent(l->s))
            return;
        if (r->status != REL_WAIT || !is_broadcast(r->def))
            continue;
        Type *result = r->args[r->nargs - 1];
        if (!is_intermediate(l, result) || map_has(&used, get_identity(result)) ||
            !keeps_dtype_without(l, r, result))
            continue;
        for (size_t k = 0; k < l->relations->len; k++) {
            Relation *other = l->relations->data[k];
            l->s->counts.steps++;
            if (other != r && other->status == REL_WAIT && is_broadcast(other->def) &&
                has_inputs_inside(r, other)) {
                r->status = REL_DONE;
                break;
            }
        }
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The sort key of an input: where the first of its variables stands in the type. Inputs that are not in the type
 * come last. Of tensors of one dtype, one whose shape is not in the type comes first. */
static size_t find_position(Map *order, Type *t) {
    TypeVec vars = {0};
    Map seen = {0};
    size_t first = SIZE_MAX;
    bool shape = false;
    type_collect(t, TY_VAR, &seen, &vars);
    for (size_t i = 0; i < vars.len; i++) {
        size_t at = 2 * (size_t)(uintptr_t)map_find(order, vars.data[i]);
        if (at && at < first)
            first = at;
        shape = shape || (at && vars.data[i]->kind != KIND_DTYPE);
    }
    return vars.len == 0 ? 0 : first == SIZE_MAX ? first : first + shape;
}

static void sort_inputs(Laws *l, Relation *r) {
    SpanVec places = {0};
    VEC(size_t) at = {0};
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        vec_push(&places, find_place(r, r, i));
        vec_push(&at, find_position(l->order, r->args[i]));
    }
    for (uint32_t i = 1; i + 1 < r->nargs; i++) {
        Type *t = r->args[i];
        Span place = places.data[i];
        size_t here = at.data[i];
        uint32_t k = i;
        for (; k > 0 && at.data[k - 1] > here; k--) {
            r->args[k] = r->args[k - 1];
            places.data[k] = places.data[k - 1];
            at.data[k] = at.data[k - 1];
        }
        r->args[k] = t;
        places.data[k] = place;
        at.data[k] = here;
    }
    set_places(r, places.data);
}

bool laws_simplify(Solver *s, RelationVec *relations, Map *order) {
    Laws l = {.s = s, .relations = relations, .order = order};
    merge_equal(&l);
    if (l.unified)
        return true;
    for (bool changed = true; changed;) {
        if (solver_is_spent(s))
            return false;
        find_occurrences(&l);
        changed = flatten_sets(&l);
        for (size_t i = 0; i < relations->len; i++) {
            Relation *r = relations->data[i];
            if (r->status == REL_WAIT && is_broadcast(r->def))
                changed |= absorb_inputs(&l, r);
            else if (r->status == REL_WAIT && r->def == &rel_broadcast_compare)
                l.unified |= absorb_comparison(&l, r);
        }
        merge_equal(&l);
        if (l.unified)
            return true;
    }
    drop_implied(&l);
    for (size_t i = 0; i < relations->len; i++) {
        Relation *r = relations->data[i];
        if (r->status != REL_WAIT || !is_broadcast(r->def))
            continue;
        TypeTag tag = type_resolve(r->args[0])->tag;
        if (r->nargs == 2 && tag != TY_PARAM && tag != TY_DERIV) {
            /* Run it again: the only argument left is the result. */
            solver_queue(s, r);
            l.unified = true;
        }
        sort_inputs(&l, r);
    }
    return l.unified;
}

static bool is_any_broadcast(const RelDef *def) {
    return is_broadcast(def) || def == &rel_broadcast_compare;
}

/* ---- Tensor[s, b] as a variable -------------------------------------------------------------- */

typedef struct Uses {
    Map seen;
    Map dtypes; /* shape variable -> the dtype of its tensors */
    Map barred; /* shape variables outside of tensors, or with two dtypes */
    Map others; /* dtypes that stand alone, or in a tensor whose shape is no variable */
    Map counts; /* dtype -> how many shape variables have it */
} Uses;

static void find_uses(Uses *u, Type *t) {
    t = type_resolve(t);
    if (!(t->flags & TYPE_HAS_VARS))
        return;
    switch (t->tag) {
    case TY_TENSOR: {
        Type *shape = type_resolve(t->tensor.shape), *dtype = type_resolve(t->tensor.dtype);
        if (shape->tag != TY_VAR) {
            map_set(&u->others, dtype, t);
            find_uses(u, shape);
            return;
        }
        Type *with = map_find(&u->dtypes, shape);
        if (with && with != dtype)
            map_set(&u->barred, shape, t);
        if (!with)
            map_set(&u->counts, dtype, (void *)((uintptr_t)map_find(&u->counts, dtype) + 1));
        map_set(&u->dtypes, shape, dtype);
        return;
    }
    case TY_VAR:
        if (t->kind == KIND_SHAPE)
            map_set(&u->barred, t, t);
        if (t->kind == KIND_DTYPE)
            map_set(&u->others, t, t);
        return;
    case TY_TUPLE:
    case TY_FN:
    case TY_DATA:
    case TY_SHAPE:
        if (map_has(&u->seen, t))
            return;
        map_set(&u->seen, t, t);
        for (uint32_t i = 0; i < t->nargs; i++)
            find_uses(u, t->args[i]);
        if (t->tag == TY_FN)
            find_uses(u, t->fn.result);
        return;
    case TY_REF:
    case TY_DERIV: find_uses(u, t->elem); return;
    case TY_PARAM:
    case TY_STRING:
    case TY_ERROR:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return;
    }
}

/* Whether the Broadcast r shows that what has this shape is a tensor, and of which dtype: another tensor in r stays
 * a tensor, or no tensor outside r has that dtype. */
static bool pins_tensor(Solver *s, const Uses *u, const Relation *r, Type *shape) {
    Type *dtype = map_find(&u->dtypes, shape);
    bool here = false, stays = false, compare = r->def == &rel_broadcast_compare;
    uint32_t n = compare ? r->nargs - 1 : r->nargs; /* a comparison's result is of dtype bool */
    Type *result = type_resolve(r->args[r->nargs - 1]);
    if (compare && result->tag == TY_TENSOR && type_resolve(result->tensor.shape) == shape)
        return true;
    for (uint32_t i = 0; i < n; i++) {
        Type *t = type_resolve(r->args[i]);
        if (t->tag != TY_TENSOR)
            continue;
        here = here || type_resolve(t->tensor.shape) == shape;
        stays = stays || type_resolve(t->tensor.shape)->tag != TY_VAR;
    }
    if (!here || stays)
        return here && stays;
    if (dtype->tag != TY_VAR || dtype->var.level < s->level || map_has(&u->others, dtype) ||
        (type_dtype_set(dtype) & DTS_NUM) != DTS_NUM)
        return false;
    Map inside = {0}; /* the shapes of r's tensors of this dtype */
    for (uint32_t i = 0; i < n; i++) {
        Type *t = type_resolve(r->args[i]);
        Type *own = t->tag == TY_TENSOR ? type_resolve(t->tensor.shape) : NULL;
        if (own && map_find(&u->dtypes, own) == dtype) {
            if (map_has(&u->barred, own))
                return false;
            map_set(&inside, own, own);
        }
    }
    return inside.len == (uintptr_t)map_find(&u->counts, dtype);
}

void laws_abstract(Solver *s, Type *t, RelationVec *relations, Abstraction *out) {
    Uses u = {0};
    Map done = {0};
    for (size_t i = 0; i < s->weak.len; i++) { /* a literal has this dtype, so calls must say it */
        Type *dtype = type_resolve(s->weak.data[i]);
        map_set(&u.others, dtype, dtype);
    }
    find_uses(&u, t);
    for (size_t i = 0; i < relations->len; i++) {
        Relation *r = relations->data[i];
        for (uint32_t k = 0; r->status == REL_WAIT && k < r->nargs; k++) {
            if (!is_any_broadcast(r->def)) {
                TypeVec vars = {0};
                Map seen = {0};
                type_collect(r->args[k], TY_VAR, &seen, &vars);
                for (size_t v = 0; v < vars.len; v++)
                    map_set(vars.data[v]->kind == KIND_SHAPE ? &u.barred : &u.others, vars.data[v],
                            r);
            } else {
                find_uses(&u, r->args[k]);
            }
        }
    }
    for (size_t i = 0; i < relations->len; i++) {
        Relation *r = relations->data[i];
        for (uint32_t k = 0; r->status == REL_WAIT && is_any_broadcast(r->def) && k < r->nargs;
             k++) {
            Type *arg = type_resolve(r->args[k]);
            Type *shape = arg->tag == TY_TENSOR ? type_resolve(arg->tensor.shape) : NULL;
            if (!shape || shape->tag != TY_VAR || shape->var.level < s->level ||
                map_has(&u.barred, shape) || map_has(&done, shape) || !pins_tensor(s, &u, r, shape))
                continue;
            map_set(&done, shape, shape);
            vec_push(&out->shapes, shape);
            vec_push(&out->vars, solver_var(s, KIND_TYPE));
        }
    }
}
