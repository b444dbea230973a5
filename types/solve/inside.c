/* SPDX-License-Identifier: Apache-2.0 */
/* The list of checks inside of a definition for the sizes of a call, for `relay check --residual`.
 *
 * The laws merge several operators into one Broadcast, which no longer tells the checks of each. And the checks of
 * an operator in the prelude or the library concern the program that calls it. So while checks are listed, a scheme
 * keeps the operators of its definition as they were before the laws. A call makes instances of them, and when its
 * types are known, their checks are listed one by one:
 *
 *     def three(x, y, z) { x + y * z }         Broadcast(x, y, z, r) of `+`; kept are
 *                                              Broadcast(y, z, t) of `*`, Broadcast(x, t, r) of `+`
 *     three(a, b, c)                           both with the sizes of a, b, c, from which that of t follows
 *
 * Other commands do not keep the operators, since the lists grow with the depth of calls. */
#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

enum { MOST = 4096, AXES = TENSOR_MAX_RANK };

static bool is_internal(Span s) { return s.source && (s.source->flags & SOURCE_INTERNAL); }

/* ---- kept ------------------------------------------------------------------------------------ */

static Relation *copy_relation(const Relation *r) {
    Relation *copy = mem_new(Relation);
    *copy = *r;
    copy->args = mem_new_n(Type *, r->nargs + 1);
    for (uint32_t i = 0; i < r->nargs; i++)
        copy->args[i] = r->args[i];
    return copy;
}

void inside_record_operator(Solver *s, const Relation *r) {
    bool written = r->expr || r->inner.source; /* a relation of a `where` is not in the text */
    if (s->listing && written && r->op && !r->from_call && is_broadcast(r->def) &&
        s->inside.len < MOST)
        vec_push(&s->inside, copy_relation(r));
}

/* The node that stands for the unknown shape of a type, or NULL where the shape is known. */
static Type *find_identity(Type *t) {
    t = type_resolve(t);
    Type *shape = t->tag == TY_TENSOR ? type_resolve(t->tensor.shape) : t;
    return shape->tag == TY_SHAPE ? NULL : shape;
}

/* Whether the calls of the definition decide the operator's arguments: a parameter is in them, or the result of
 * another such operator. `decided` holds the identities of these results. Other operators are listed here. */
static bool is_decided_by_calls(const Relation *r, Map *decided) {
    bool by_calls = false;
    for (uint32_t i = 0; i + 1 < r->nargs && !by_calls; i++) {
        Type *id = find_identity(r->args[i]);
        by_calls = type_has(r->args[i], TY_PARAM) || (id && map_has(decided, id));
    }
    Type *result = by_calls ? find_identity(r->args[r->nargs - 1]) : NULL;
    if (result)
        map_set(decided, result, result);
    return by_calls;
}

/* Whether an operator of the library is listed at the calls: some of its types are open. */
static bool is_told_at_calls(const Relation *r) {
    bool open = false;
    for (uint32_t i = 0; i < r->nargs && is_internal(r->span) && !open; i++)
        open = type_has(r->args[i], TY_PARAM) || type_has(r->args[i], TY_VAR) ||
               type_has(r->args[i], TY_ANY);
    return open;
}

void inside_replace_tensors(Solver *s, const Map *tensors) {
    size_t own = s->marks.len ? vec_last(&s->marks).inside : s->inside.len;
    for (size_t i = own; tensors->len && i < s->inside.len; i++) {
        Relation *r = s->inside.data[i];
        for (uint32_t k = 0; k < r->nargs; k++)
            r->args[k] = type_replace_tensors(r->args[k], tensors);
    }
}

void inside_move_to_scheme(Solver *s, Scheme *scheme) {
    if (!s->listing || !s->marks.len || type_resolve(scheme->type)->tag != TY_FN)
        return;
    Mark mark = vec_last(&s->marks);
    RelationVec kept = {0};
    Map decided = {0};
    size_t left = mark.inside;
    for (size_t i = mark.inside; i < s->inside.len; i++) {
        Relation *r = s->inside.data[i];
        bool by_calls = is_decided_by_calls(r, &decided);
        if (is_told_at_calls(r) || (by_calls && is_broadcast(r->def))) {
            vec_push(&kept, r);
        } else {
            s->inside.data[left++] = r;
        }
    }
    s->inside.len = left;
    left = mark.settled;
    for (size_t i = mark.settled; i < s->settled.len; i++) {
        Relation *r = s->settled.data[i];
        if (is_internal(r->span) && !is_broadcast(r->def)) {
            if (is_told_at_calls(r) &&
                !(r->attrs && (attrs_have_sizes(r->attrs) || attrs_have_refs(r->attrs))))
                vec_push(&kept, copy_relation(r));
        } else {
            s->settled.data[left++] = r;
        }
    }
    s->settled.len = left;
    scheme->ninside = (uint32_t)kept.len;
    scheme->inside = kept.data;
}

void inside_instantiate(Solver *s, const Scheme *scheme, Span span, Substitution *by) {
    for (uint32_t i = 0; s->listing && i < scheme->ninside && s->inside.len < MOST; i++) {
        Relation *r = copy_relation(scheme->inside[i]);
        for (uint32_t k = 0; k < r->nargs; k++)
            r->args[k] = type_substitute_by(by, r->args[k]);
        if (!r->inner.source) {
            r->inner = r->span;
            r->inner_name = scheme->name;
        }
        r->span = span;
        r->from_call = true;
        vec_push(&s->inside, r);
    }
}

/* ---- listed ---------------------------------------------------------------------------------- */

static void add_check(Solver *s, const Relation *r, Type *a, Type *b, int axis) {
    Residual check = {.a = a,
                      .b = b,
                      .span = r->span,
                      .axis = axis,
                      .op = r->op,
                      .place = place_of_broadcast(axis, op_subject(r->op)),
                      .inner = r->inner,
                      .inner_name = r->inner_name};
    vec_push(&s->residuals, check);
}

/* Lists the checks between the sizes of one axis of r's arguments. The result is r's size there. */
static Type *list_axis(Solver *s, const Relation *r, Type *const *sizes, uint32_t n, int axis) {
    Type **set = mem_new_n(Type *, n + 1), *known = NULL;
    uint32_t nset = 0;
    int64_t v;
    for (uint32_t i = 0; i < n; i++) {
        Type *d = type_resolve(sizes[i]);
        bool is_number = type_get_int(d, &v), there = is_number && v == 1;
        for (uint32_t k = 0; k < nset && !there; k++)
            there = dim_compare(set[k], d) == DIM_EQUAL;
        if (there)
            continue;
        if (is_number)
            known = d;
        set[nset++] = d;
    }
    Type *first = known ? known : nset ? set[0] : type_dim_int(1, NULL);
    bool listed = false;
    for (uint32_t i = 0; i < nset; i++) {
        bool unknown = (set[i]->flags | first->flags) & TYPE_HAS_ANY;
        if (set[i] == first || !unknown || dim_compare(set[i], first) == DIM_DIFFERENT)
            continue;
        add_check(s, r, set[i], first, axis);
        listed = true;
    }
    return known || !listed ? first : type_any(KIND_DIM, NULL);
}

/* shapes: identity -> TY_SHAPE, the shapes of results that have no type of their own. */
static void list_broadcast(Solver *s, const Relation *r, Map *shapes) {
    uint32_t n = r->nargs - 1, rank = 0, *ranks = mem_bytes((n + 1) * sizeof *ranks);
    Type ***dims = mem_new_n(Type **, n + 1), **sizes = mem_new_n(Type *, n + 1), *out[AXES];
    for (uint32_t i = 0; i < n; i++) {
        Type *t = type_resolve(r->args[i]), *id = find_identity(t);
        Type *shape = id ? map_find(shapes, id) : type_resolve(t->tensor.shape);
        if (!shape || !type_get_rank(shape, &ranks[i], &dims[i]) || ranks[i] > AXES)
            return;
        rank = ranks[i] > rank ? ranks[i] : rank;
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        uint32_t nsizes = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (axis + ranks[i] >= rank)
                sizes[nsizes++] = dims[i][axis + ranks[i] - rank];
        }
        out[axis] = list_axis(s, r, sizes, nsizes, (int)axis);
    }
    Type *result = find_identity(r->args[n]);
    if (result)
        map_set(shapes, result, type_shape(out, rank));
}

void inside_list_checks(Solver *s) {
    Map shapes = {0};
    for (size_t i = 0; i < s->inside.len; i++) {
        Relation *r = s->inside.data[i];
        if (!r->from_call)
            continue;
        if (is_broadcast(r->def))
            list_broadcast(s, r, &shapes);
        else
            residual_try_sizes(s, r);
    }
    vec_clear(&s->inside);
}
