/* SPDX-License-Identifier: Apache-2.0 */
/* Unknown sizes and whose they are.
 *
 * Note [Each its own size]. An unknown, as of `arange(n)` or of a parameter annotated `?`, is one size for as long
 * as the function runs that made it. In a type that several values have, an unknown is `each`: every value has
 * its own size there.
 *
 *     List[Tensor[(?,), int32]]            its elements
 *     fn(int32) -> Tensor[(?,), int32]     the results of its calls
 *     def go(x, i) { … go(arange(i), i - 1) … }   x in the calls of go
 *
 * An `each` unknown takes any size that flows to it. Reading a value (a variable, the result of a call, an argument
 * of an operator) opens its type: the unknown is replaced by one of the value's own, which is one size from there
 * on. A type as it is written is of one value: opened, (Tensor[(?1,), b], Tensor[(?1,), b]) has two equal sizes.
 * But (a, a), where the type variable a was found to be Tensor[(?,), b], has two sizes of their own.
 *
 * Note [Open values]. A value that enters a function with an open size existed before the function's body ran. So
 * its size is no unknown that the body makes: it keeps its own size, and the two are compared when running.
 *
 *     fn (y) { pair(arange(i), y) }      pair : fn [n](Tensor[(n,), int32], Tensor[(n,), int32]) -> …
 *
 * A result whose size is only known with a dtype, as that of `arange(4 + 1)`, is not made to fit an unknown either
 * (`made`): it was 5 all along, and what asks for the unknown compares the two.
 *
 * Note [Sizes of elements]. A size parameter of a definition may stand inside of data or functions, and so be asked of
 * several values:
 *
 *     def f[n](xs: List[Tensor[(n,), b]]) { … }     every element has n elements
 *     def g(xs) { … sum(x) … }                      g : fn [s](List[Tensor[s, b]]) -> …
 *
 * A declared size, and one that also stands in a tensor among the parameters, is one size for the call. It is `asked`:
 * an `each` unknown is no such size, and the call is refused. An inferred size that stands inside only says that g
 * does not care. There g takes elements of several sizes, and the parameter itself is `each`: what has it as its size
 * is known to have some size, so that where two such values are given to a function that takes one size, the two are
 * compared when running.
 *
 * Ids count up. The age of a variable is the id of the oldest variable that it is a part of. */
#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

/* ---- all of them ----------------------------------------------------------------------------- */

Type *unknown_copy(const Type *u, const Origin *origin) {
    Type *copy = u->param.each ? type_any_each(u->kind, origin) : type_any(u->kind, origin);
    copy->param.name = u->param.each ? u->param.name : NULL;
    copy->param.value = u->param.value;
    return copy;
}

void unknowns_collect(Type *t, TypeVec *out) {
    Map seen = {0};
    if (t->flags & (TYPE_HAS_ANY | TYPE_HAS_VARS))
        type_collect(t, TY_ANY, &seen, out);
}

Type *unknowns_map(Type *t, UnknownMap by, void *ctx) {
    TypeVec found = {0}, from = {0}, to = {0};
    unknowns_collect(t, &found);
    for (size_t i = 0; i < found.len; i++) {
        Type *u = found.data[i], *now = by(ctx, u);
        if (now == u)
            continue;
        vec_push(&from, u);
        vec_push(&to, now);
    }
    return from.len ? type_substitute(t, from.data, to.data, (uint32_t)from.len) : t;
}

typedef struct Replacing {
    Solver *s;
    bool vars;
} Replacing;

static Type *replace_unknown(void *ctx, Type *u) {
    const Replacing *r = ctx;
    if (!r->vars || u->param.each)
        return unknown_copy(u, u->origin);
    Type *var = solver_var(r->s, u->kind);
    var->var.widens = true;
    return var;
}

Type *unknowns_replace(Solver *s, Type *t, bool vars) {
    Replacing r = {s, vars};
    return unknowns_map(t, replace_unknown, &r);
}

Type *solver_open_unknowns(Solver *s, Type *t) {
    return solver_open_each(unknowns_replace(s, t, false));
}

/* How often each unknown is a size or the shape of a tensor, alone or in a tuple. Unknowns that also stand
 * elsewhere are in `barred`. */
typedef struct Places {
    Map count, barred;
    TypeVec all;
} Places;

static void find_places(Places *p, Type *t) {
    t = type_resolve(t);
    if (!(t->flags & (TYPE_HAS_ANY | TYPE_HAS_VARS)))
        return;
    uint32_t rank;
    Type **dims;
    if (t->tag == TY_TUPLE)
        for (uint32_t i = 0; i < t->nargs; i++)
            find_places(p, t->args[i]);
    TypeVec found = {0};
    Map seen = {0};
    bool tensor = t->tag == TY_TENSOR;
    bool ranked = tensor && type_get_rank(t, &rank, &dims);
    for (uint32_t i = 0; ranked && i < rank; i++) {
        Map in_size = {0};
        type_collect(dims[i], TY_ANY, &in_size, &found);
    }
    if (!ranked && t->tag != TY_TUPLE)
        type_collect(t, TY_ANY, &seen, &found);
    for (size_t i = 0; i < found.len; i++) {
        uintptr_t n = (uintptr_t)map_find(&p->count, found.data[i]);
        map_set(&p->count, found.data[i], (void *)(n + 1));
        if (n == 0)
            vec_push(&p->all, found.data[i]);
        if (!tensor)
            map_set(&p->barred, found.data[i], t);
    }
}

Type *solver_open_call(Solver *s, Type *fn) {
    if (!(fn->flags & TYPE_HAS_ANY))
        return fn;
    Places places = {0};
    TypeVec from = {0}, to = {0};
    for (uint32_t i = 0; i < fn->nargs; i++)
        find_places(&places, fn->args[i]);
    for (size_t i = 0; i < places.all.len; i++) {
        Type *u = places.all.data[i];
        if ((uintptr_t)map_find(&places.count, u) < 2 || map_has(&places.barred, u) ||
            u->param.each)
            continue;
        vec_push(&from, u);
        vec_push(&to, solver_var(s, u->kind));
    }
    return from.len ? type_substitute(fn, from.data, to.data, (uint32_t)from.len) : fn;
}

/* ---- each its own ---------------------------------------------------------------------------- */

bool solver_has_each(Type *t) {
    TypeVec found = {0};
    unknowns_collect(t, &found);
    for (size_t i = 0; i < found.len; i++)
        if (found.data[i]->param.each)
            return true;
    return false;
}

/* Types are DAGs. In a large one only so many nodes are opened, and the rest stays `each`. */
enum { OPENED_NODES = 256 };

static bool names_parameter(const Type *fn, const Type *u) {
    for (uint32_t i = 0; fn->fn.named && i < fn->nargs; i++)
        if (fn->fn.named[i] == u)
            return true;
    return false;
}

static Type *find_own(void *ctx, Type *u) {
    OpenValue *o = ctx;
    if (!u->param.each || (o->fn && names_parameter(o->fn, u)))
        return u;
    Type *own = map_find(&o->own, u);
    if (!own) {
        own = o->open ? solver_var(o->open, u->kind) : type_any(u->kind, u->origin);
        if (!o->open)
            own->param.value = u->param.value;
        map_set(&o->own, u, own);
    }
    return own;
}

Type *unknowns_open_value(OpenValue *o, Type *size) { return unknowns_map(size, find_own, o); }

/* The shape of a tensor, opened. What was found for a size variable may be the size of another value, too. */
static Type *open_shape(OpenValue *o, Type *t) {
    OpenValue own = {.open = o->open, .fn = o->fn};
    if (t->tag == TY_VAR)
        return unknowns_open_value(&own, type_resolve(t));
    if (t->tag != TY_SHAPE || !(t->flags & TYPE_HAS_VARS))
        return unknowns_open_value(o, t);
    Type **dims = mem_new_n(Type *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        dims[i] = unknowns_open_value(t->args[i]->flags & TYPE_HAS_VARS ? &own : o, t->args[i]);
    return type_shape(dims, t->nargs);
}

static Type *open_value(OpenValue *o, Type *t, uint32_t *nodes) {
    OpenValue own = {.open = o->open, .fn = o->fn};
    if (t->tag == TY_VAR && t->var.link) /* what was found for a variable is a value of its own */
        o = &own;
    t = type_resolve(t);
    if (++*nodes > OPENED_NODES || !(t->flags & (TYPE_HAS_ANY | TYPE_HAS_VARS)))
        return t;
    if (t->tag == TY_TENSOR) {
        Type *shape = open_shape(o, t->tensor.shape);
        return shape == t->tensor.shape ? t : type_tensor(shape, t->tensor.dtype);
    }
    if (t->tag != TY_TUPLE && t->tag != TY_DATA)
        return t;
    Type **args = mem_new_n(Type *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++) {
        bool size = t->args[i]->kind == KIND_DIM || t->args[i]->kind == KIND_SHAPE;
        args[i] = size                 ? unknowns_open_value(o, t->args[i])
                  : t->tag == TY_TUPLE ? open_value(o, t->args[i], nodes)
                                       : t->args[i]; /* elements stay closed */
    }
    return t->tag == TY_TUPLE ? type_tuple(args, t->nargs) : type_data(t->decl, args, t->nargs);
}

static Type *open_each(Solver *s, const Type *fn, Type *t) {
    uint32_t nodes = 0;
    OpenValue o = {.open = s, .fn = fn};
    return solver_has_each(t) ? open_value(&o, t, &nodes) : t;
}

Type *solver_open_each(Type *t) { return open_each(NULL, NULL, t); }

Type *solver_open_each_of(const Type *fn, Type *t) { return open_each(NULL, fn, t); }

static Type *rename_each(void *ctx, Type *u) {
    (void)ctx;
    return u->param.each ? unknown_copy(u, u->origin) : u;
}

Type *unknowns_rename(Type *t) { return unknowns_map(t, rename_each, NULL); }

Type *solver_open_parameters(Solver *s, Type *fn) {
    fn = type_resolve(fn);
    if (fn->tag != TY_FN || !solver_has_each(fn))
        return fn;
    Type **params = mem_new_n(Type *, fn->nargs + 1);
    for (uint32_t i = 0; i < fn->nargs; i++)
        params[i] = open_each(s, fn, fn->args[i]);
    return type_fn_named(params, fn->nargs, fn->fn.result, fn->fn.effect, fn->fn.named);
}

static Type *make_each_since(void *ctx, Type *u) {
    const uint32_t *id = ctx;
    return u->param.id < *id || u->param.each ? u : type_any_each(u->kind, u->origin);
}

Type *solver_make_each_since(Type *t, uint32_t id) { return unknowns_map(t, make_each_since, &id); }

void unknowns_mark_each(Type *t, uint32_t id) {
    TypeVec found = {0};
    unknowns_collect(t, &found);
    for (size_t i = 0; i < found.len; i++)
        if (found.data[i]->param.id >= id)
            found.data[i]->param.each = true;
}

/* ---- open values ----------------------------------------------------------------------------- */

/* The least id of the unknowns that are later than a variable of this age. They arise in the outermost function that
 * is younger than the variable, or in the body of a function whose parameters have the variable. */
static uint32_t find_later_id(const Solver *s, uint32_t age) {
    for (size_t k = 0; k < s->bodies.len; k++) {
        const Body *b = &s->bodies.data[k];
        if (age < b->params)
            return b->params;
        if (age < b->mark)
            return b->mark;
    }
    return UINT32_MAX;
}

/* Whether var cannot be the unknown, since it is older. around: nor can the variable of a parameter be an unknown of
 * a function around, which is one size for all calls of the inner function. */
static bool is_apart(const Solver *s, const Type *var, const Type *unknown, bool around) {
    uint32_t id = unknown->param.id, age = var->var.age;
    if (s->bodies.len == 0 || unknown->param.each)
        return false;
    const Body *first = s->bodies.data, *last = &vec_last(&s->bodies);
    bool own = age >= last->params && age < last->mark; /* of the innermost function's parameter */
    return id >= find_later_id(s, age) ||
           (around && id < last->params && (own || (age < last->mark && id >= first->params)));
}

Type *solver_make_parameter(Solver *s, const Type *fn, Type *arg) {
    return s->bodies.len ? unknowns_keep_apart(s, fn, arg, false, false) : arg;
}

bool unknowns_are_apart(const Solver *s, const Type *var, Type *t, bool around) {
    TypeVec found = {0};
    if (s->bodies.len)
        unknowns_collect(t, &found);
    for (size_t i = 0; i < found.len; i++)
        if (is_apart(s, var, found.data[i], around))
            return true;
    return false;
}

typedef struct Apart {
    Solver *s;
    const Type *var;
    bool around, open;
} Apart;

static Type *keep_apart(void *ctx, Type *u) {
    const Apart *a = ctx;
    if (!is_apart(a->s, a->var, u, a->around))
        return u;
    return a->open ? solver_var(a->s, u->kind) : type_any_each(u->kind, u->origin);
}

Type *unknowns_keep_apart(Solver *s, const Type *var, Type *t, bool around, bool open) {
    Apart a = {s, var, around, open};
    return unknowns_map(t, keep_apart, &a);
}

/* ---- of a function --------------------------------------------------------------------------- */

/* Where the parameters stand that are sizes: in tensors that are values by themselves, or inside of what holds
 * several values. */
typedef struct SizePlaces {
    Map outside, inside;
    Map seen[2]; /* by inside: the nodes that were visited */
} SizePlaces;

static void note_elements(SizePlaces *e, Type *t, bool inside);

static void note_sizes(SizePlaces *e, Type *size, bool inside) {
    TypeVec params = {0};
    Map seen = {0};
    type_collect(size, TY_PARAM, &seen, &params);
    for (size_t i = 0; i < params.len; i++)
        map_set(inside ? &e->inside : &e->outside, params.data[i], params.data[i]);
}

static void note_all(SizePlaces *e, Type *const *types, uint32_t n, bool inside) {
    for (uint32_t i = 0; i < n; i++)
        note_elements(e, types[i], inside || types[i]->kind == KIND_TYPE);
}

static void note_elements(SizePlaces *e, Type *t, bool inside) {
    t = type_resolve(t);
    if (!(t->flags & TYPE_HAS_PARAMS) || map_has(&e->seen[inside], t))
        return;
    map_set(&e->seen[inside], t, t);
    switch (t->tag) {
    case TY_TENSOR: note_sizes(e, t->tensor.shape, inside); return;
    case TY_SHAPE:
    case TY_DIM: note_sizes(e, t, inside); return;
    case TY_PARAM:
        if (t->kind != KIND_TYPE)
            note_sizes(e, t, inside);
        return;
    case TY_TUPLE:
        for (uint32_t i = 0; i < t->nargs; i++)
            note_elements(e, t->args[i], inside);
        return;
    case TY_DATA: note_all(e, t->args, t->nargs, inside); return;
    case TY_FN:
        note_all(e, t->args, t->nargs, true);
        note_elements(e, t->fn.result, true);
        return;
    case TY_REF:
    case TY_DERIV: note_elements(e, t->elem, inside); return;
    case TY_VAR:
    case TY_STRING:
    case TY_ERROR:
    case TY_DTYPE:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return;
    }
}

const bool *sizes_asked_of(TypeDecl *decl) {
    if (decl->asked)
        return decl->asked;
    SizePlaces e = {0};
    for (uint32_t c = 0; c < decl->nctors; c++)
        for (uint32_t i = 0; i < decl->ctors[c]->nfields; i++)
            note_elements(&e, decl->ctors[c]->fields[i], false);
    decl->asked = mem_new_n(bool, decl->nparams + 1);
    for (uint32_t i = 0; i < decl->nparams; i++)
        decl->asked[i] = map_has(&e.inside, decl->params[i]);
    return decl->asked;
}

void scheme_note_elements(Scheme *scheme) {
    SizePlaces e = {0};
    Type *fn = type_resolve(scheme->type);
    for (; fn->tag == TY_FN; fn = type_resolve(fn->fn.result))
        for (uint32_t i = 0; i < fn->nargs; i++)
            note_elements(&e, fn->args[i], false);
    for (uint32_t i = 0; i < scheme->nrelations;
         i++) { /* what is read of a parameter of open type */
        const Relation *r = scheme->relations[i];
        if (r->def == &rel_field || r->def == &rel_proj || r->def == &rel_index ||
            r->def == &rel_bang)
            note_elements(&e, r->args[r->nargs - 1], false);
    }
    bool each = false;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < scheme->nparams; i++) {
            Type *p = scheme->params[i];
            if (p->kind != KIND_DIM && p->kind != KIND_SHAPE)
                continue;
            bool inside = map_has(&e.inside, p), outside = map_has(&e.outside, p);
            bool one = i < scheme->ndeclared || p->param.asked; /* as by a call in the body */
            each = each || (inside && !outside && !one);
            p->param.each = each && !outside && !one; /* and sizes that follow from it */
            p->param.asked = p->param.asked || (inside && !p->param.each);
        }
}

static void collect_in_attr(const AttrValue *v, Map *seen, TypeVec *out) {
    if (v->kind == ATTR_DIM)
        type_collect(v->dim, TY_ANY, seen, out);
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n; i++)
        collect_in_attr(&v->list.items[i], seen, out);
}

void unknowns_collect_in_attrs(const Attrs *attrs, Map *seen, TypeVec *out) {
    for (int i = 0; attrs && i < attrs->op->nattrs; i++)
        collect_in_attr(&attrs->values[i], seen, out);
}

void scheme_note_unknowns(Scheme *scheme, uint32_t mark) {
    if (scheme->type->tag != TY_FN)
        return;
    TypeVec all = {0}, own = {0}, outer = {0};
    Map any = {0};
    type_collect(scheme->type, TY_ANY, &any, &all);
    for (uint32_t i = 0; i < scheme->nrelations; i++) {
        const Relation *r = scheme->relations[i];
        for (uint32_t k = 0; k < r->nargs; k++)
            type_collect(r->args[k], TY_ANY, &any, &all);
        unknowns_collect_in_attrs(r->attrs, &any, &all);
    }
    for (size_t i = 0; i < all.len; i++)
        if (all.data[i]->param.id > mark)
            vec_push(&own, all.data[i]);
        else
            vec_push(&outer, all.data[i]);
    scheme->nunknowns = (uint32_t)own.len;
    scheme->unknowns = own.data;
    scheme->nouter = (uint32_t)outer.len;
    scheme->outer = outer.data;
}
