/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of large schemes, each kept as one relation until something is known of it.
 *
 * Note [Whole uses]. No law joins the products of a chain, so the i-th definition below asks for i of them:
 *
 *     def f1(x, w) { x @@ w }    def f2(x, w) { f1(x, w) @@ w }    …    def f400(x, w) { f399(x, w) @@ w }
 *
 * A copy of all of them at each use would make the file's cost quadratic. A scheme of at least MANY such
 * relations is therefore used as one relation over the tensors that its type shows,
 *
 *     f400 : fn(Tensor[s, b], Tensor[t, b]) -> Tensor[u, b]
 *            where Use of f399(Tensor[s, b], Tensor[t, b], Tensor[v, b]),
 *                  MatMul(Tensor[v, b], Tensor[t, b], Tensor[u, b])
 *
 * The relations inside wait, for nothing is known of their arguments; they would learn nothing from distinct
 * variables. As soon as one of the variables becomes something else, or two become one, the use is opened:
 * its relations are posted as if they had stood there from the beginning, with fresh variables for the
 * parameters that the type does not show. So whatever is called with known types is checked as before.
 *
 * Like every relation a use is a function: its last argument follows from the others, so the laws make one of
 * two equal uses. They do not look inside of it. Schemes are shown and compared with their uses opened. */
#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

enum { MANY = 16 };

static RelStatus relate_use(Solver *s, Relation *r) {
    (void)s;
    (void)r;
    BUG("the use of a scheme is opened, not related");
}

const RelDef rel_use = {.name = "Use", .relate = relate_use, .nargs = -1};

/* ---- which schemes --------------------------------------------------------------------------- */

/* The relation of an operator over tensors that no law touches but that of equal arguments. */
static bool is_plain(const Relation *r) {
    if (r->def == &rel_use)
        return true;
    if (!r->op || r->def != r->op->relation || is_broadcast(r->def) ||
        r->def == &rel_broadcast_compare || relation_reads_values(r) || r->shared ||
        r->takes_several || r->data ||
        (r->attrs && (attrs_have_sizes(r->attrs) || attrs_have_refs(r->attrs))))
        return false;
    for (uint32_t i = 0; i < r->nargs; i++)
        if (type_resolve(r->args[i])->tag != TY_TENSOR)
            return false;
    return true;
}

static void add_shape_params(const Type *tensor, TypeVec *out) {
    Map seen = {0};
    type_collect(tensor->tensor.shape, TY_PARAM, &seen, out);
}

/* Whether the relations mention nothing but parameters of the scheme, each has a part in what is made of the
 * tensors shown, and the last of these is the result of one. */
static bool is_closed(const Scheme *scheme, const TypeVec *shown) {
    Map own = {0}, reached = {0};
    TypeVec first = {0};
    Type *result = type_resolve(type_resolve(vec_last(shown))->tensor.shape);
    bool made = false;
    for (uint32_t i = 0; i < scheme->nparams; i++)
        map_set(&own, scheme->params[i], scheme->params[i]);
    map_set(&reached, result, result);
    uint32_t nreached = 0;
    bool *is_reached = mem_new_n(bool, scheme->nrelations + 1);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < scheme->nrelations; i++) {
            const Relation *r = scheme->relations[i];
            TypeVec all = {0}, parts = {0};
            Map seen = {0};
            bool touches = false;
            if (is_reached[i])
                continue;
            made = made ||
                   type_resolve(type_resolve(r->args[r->nargs - 1])->tensor.shape) == result;
            for (uint32_t k = 0; k < r->nargs; k++) {
                if (type_has_vars(r->args[k]) || type_has(r->args[k], TY_ANY))
                    return false;
                type_collect(r->args[k], TY_PARAM, &seen, &all);
                add_shape_params(type_resolve(r->args[k]), &parts);
            }
            for (size_t k = 0; k < all.len; k++)
                if (!map_has(&own, all.data[k]))
                    return false;
            for (size_t k = 0; k < parts.len; k++)
                touches = touches || map_has(&reached, parts.data[k]);
            if (!touches)
                continue;
            for (size_t k = 0; k < parts.len; k++)
                map_set(&reached, parts.data[k], parts.data[k]);
            is_reached[i] = more = true;
            nreached++;
        }
    }
    for (size_t i = 0; i < shown->len; i++)
        add_shape_params(type_resolve(shown->data[i]), &first);
    for (size_t i = 0; i < first.len; i++)
        if (!map_has(&reached, first.data[i]))
            return false;
    return made && nreached == scheme->nrelations;
}

static uint64_t count_relations(const Scheme *scheme) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < scheme->nrelations && n < UINT32_MAX; i++) {
        const Relation *r = scheme->relations[i];
        n += r->def == &rel_use ? ((const Scheme *)r->data)->nopened : 1;
    }
    return n;
}

/* Tensor[s, b] of parameters s and b. */
static bool is_simple(Type *t) {
    t = type_resolve(t);
    return t->tag == TY_TENSOR && type_resolve(t->tensor.shape)->tag == TY_PARAM &&
           type_resolve(t->tensor.dtype)->tag == TY_PARAM;
}

void scheme_note_whole(Scheme *scheme) {
    uint64_t n = count_relations(scheme);
    scheme->nopened = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    Type *fn = type_resolve(scheme->type);
    if (n < MANY || fn->tag != TY_FN || scheme->nunknowns || scheme->nouter || scheme->nweak ||
        scheme->ndeclared || scheme->early_count || scheme->ninside)
        return;
    TypeVec shown = {0};
    for (uint32_t i = 0; i < fn->nargs; i++)
        vec_push(&shown, fn->args[i]);
    vec_push(&shown, fn->fn.result);
    for (size_t i = 0; i < shown.len; i++)
        if (!is_simple(shown.data[i]))
            return;
    Type *made = type_resolve(type_resolve(fn->fn.result)->tensor.shape);
    for (uint32_t i = 0; i < fn->nargs; i++)
        if (type_mentions(fn->args[i], &made, 1))
            return;
    for (uint32_t i = 0; i < scheme->nrelations; i++)
        if (!is_plain(scheme->relations[i]))
            return;
    if (!is_closed(scheme, &shown))
        return;
    scheme->nshown = (uint32_t)shown.len;
    scheme->shown = shown.data;
}

/* ---- uses ------------------------------------------------------------------------------------ */

void use_post(Solver *s, const Scheme *scheme, Span span, Substitution *by) {
    Relation *use = relation_new(&rel_use, scheme->shown, scheme->nshown, NULL, span);
    for (uint32_t i = 0; i < scheme->nshown; i++)
        use->args[i] = type_substitute_by(by, scheme->shown[i]);
    use->data = scheme;
    use->made = type_next_id();
    relation_set_place(s, use);
    solver_add(s, use);
}

/* The parameters that the scheme shows, each once, and what stands for them here. */
typedef struct Shown {
    TypeVec params, types;
    bool several; /* one parameter has come to stand for two types */
} Shown;

static void add_shown(Shown *shown, Type *param, Type *type) {
    param = type_resolve(param);
    type = type_resolve(type);
    for (size_t i = 0; i < shown->params.len; i++)
        if (shown->params.data[i] == param) {
            shown->several = shown->several || shown->types.data[i] != type;
            return;
        }
    vec_push(&shown->params, param);
    vec_push(&shown->types, type);
}

static Shown find_shown(const Relation *use) {
    const Scheme *scheme = use->data;
    Shown out = {0};
    for (uint32_t i = 0; i < use->nargs; i++) {
        Type *param = type_resolve(scheme->shown[i]), *t = type_resolve(use->args[i]);
        if (t->tag != TY_TENSOR)
            BUG("an argument of a whole use is no tensor");
        add_shown(&out, param->tensor.shape, t->tensor.shape);
        add_shown(&out, param->tensor.dtype, t->tensor.dtype);
    }
    return out;
}

bool use_may_wait(const Relation *use) {
    Shown shown = find_shown(use);
    bool open = !shown.several;
    for (size_t i = 0; i < shown.types.len && open; i++) {
        Type *t = shown.types.data[i];
        open = t->tag == TY_VAR &&
               (t->kind != KIND_DTYPE || t->var.dtypes == shown.params.data[i]->param.dtypes);
        for (size_t k = 0; k < i && open; k++)
            open = shown.types.data[k] != t;
    }
    return open;
}

static Relation *inside_of(Solver *s, const Relation *use, const Relation *r, Substitution *by) {
    Relation *copy = relation_instance(s, use->data, r, use->span, by);
    copy->level = use->level;
    copy->body = use->body;
    copy->instance = use->instance;
    copy->from_call = use->from_call;
    copy->made = use->made;
    return copy;
}

/* What stands for the i-th parameter, which is not shown. */
typedef Type *Fresh(Solver *s, const Relation *use, const Scheme *scheme, uint32_t i);

/* Adds the use's relations, the last one first. */
static void push_inside(Solver *s, const Relation *use, Fresh *fresh, RelationVec *out) {
    const Scheme *scheme = use->data;
    Type **to = mem_new_n(Type *, scheme->nparams + 1);
    Shown found = find_shown(use);
    Map shown = {0};
    for (size_t i = 0; i < found.params.len; i++)
        map_set(&shown, found.params.data[i], found.types.data[i]);
    for (uint32_t i = 0; i < scheme->nparams; i++) {
        Type *at = map_find(&shown, scheme->params[i]);
        to[i] = at ? at : fresh(s, use, scheme, i);
    }
    Substitution by = substitution_new(scheme->params, to, scheme->nparams);
    for (uint32_t i = scheme->nrelations; i-- > 0;)
        vec_push(out, inside_of(s, use, scheme->relations[i], &by));
}

static Type *fresh_var(Solver *s, const Relation *use, const Scheme *scheme, uint32_t i) {
    int level = s->level;
    s->level = use->level;
    Type *v = scheme_instance_of(s, scheme, i);
    v->var.age = use->made; /* when it would have been made */
    s->level = level;
    return v;
}

void use_open(Solver *s, Relation *use) {
    RelationVec left = {0};
    use->status = REL_DONE;
    push_inside(s, use, fresh_var, &left);
    while (left.len) {
        Relation *r = vec_pop(&left);
        s->counts.steps++;
        if (r->def != &rel_use || use_may_wait(r))
            solver_add(s, r);
        else
            push_inside(s, r, fresh_var, &left);
    }
}

/* ---- schemes as they are shown --------------------------------------------------------------- */

static Type *fresh_param(Solver *s, const Relation *use, const Scheme *scheme, uint32_t i) {
    (void)s;
    (void)use;
    Type *p = scheme->params[i], *copy = type_param(p->param.name, p->kind);
    copy->param.dtypes = p->param.dtypes;
    return copy;
}

/* The parameters in the order in which type and relations mention them; the others come last. */
static void order_params(Scheme *scheme) {
    TypeVec found = {0}, params = {0};
    Map seen = {0}, taken = {0};
    for (uint32_t i = 0; i < scheme->ndeclared; i++)
        vec_push(&params, scheme->params[i]);
    type_collect(scheme->type, TY_PARAM, &seen, &found);
    for (uint32_t i = 0; i < scheme->nrelations; i++)
        for (uint32_t k = 0; k < scheme->relations[i]->nargs; k++)
            type_collect(scheme->relations[i]->args[k], TY_PARAM, &seen, &found);
    for (uint32_t i = 0; i < scheme->ndeclared; i++)
        map_set(&taken, scheme->params[i], scheme->params[i]);
    for (size_t i = 0; i < found.len; i++)
        if (found.data[i]->kind != KIND_EFFECT && !map_has(&taken, found.data[i])) {
            map_set(&taken, found.data[i], found.data[i]);
            vec_push(&params, found.data[i]);
        }
    for (uint32_t i = 0; i < scheme->nparams; i++)
        if (!map_has(&taken, scheme->params[i]))
            vec_push(&params, scheme->params[i]);
    scheme->nparams = (uint32_t)params.len;
    scheme->params = params.data;
    scheme->joins = scheme_joins(scheme);
}

const Scheme *scheme_open_uses(const Scheme *scheme) {
    bool any = false;
    for (uint32_t i = 0; i < scheme->nrelations; i++)
        any = any || scheme->relations[i]->def == &rel_use;
    if (!any && !scheme->nshown)
        return scheme;
    Solver *s = solver_new(NULL);
    RelationVec left = {0}, opened = {0};
    for (uint32_t i = scheme->nrelations; i-- > 0;)
        vec_push(&left, scheme->relations[i]);
    while (left.len) {
        Relation *r = vec_pop(&left);
        if (r->def == &rel_use)
            push_inside(s, r, fresh_param, &left);
        else
            vec_push(&opened, r);
    }
    Scheme *out = mem_new(Scheme);
    *out = *scheme;
    out->relations = opened.data;
    out->nrelations = (uint32_t)opened.len;
    out->nshown = 0;
    out->shown = NULL;
    if (any)
        order_params(out);
    return out;
}
