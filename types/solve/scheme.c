/* SPDX-License-Identifier: Apache-2.0 */
/* Generalisation over variables and over the relations between them.
 *
 * Note [What is generalised]. Variables of the current level that the type or a relation mentions are generalised.
 * A relation whose arguments are all of an outer level is not generalised, nor is its result, which follows from
 * them: in `fn (x, y) { let a = x + y; … }`, a has one type, that of x + y.
 *
 * A generalised variable is linked to its parameter, so the core of the definition mentions the
 * scheme's own parameters. */
#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

Scheme *scheme_mono(Type *t) {
    Scheme *scheme = mem_new(Scheme);
    scheme->type = t;
    return scheme;
}

/* ---- weak literals --------------------------------------------------------------------------- */

/* Collects the variables in the parts that every value of a parameter has: tensors, elements of tuples, and types
 * that are not known yet. A list may be empty and a function may not be called, so these supply no dtype. */
static void collect_supplies(Type *t, Map *tied, TypeVec *out) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR || t->tag == TY_VAR)
        type_collect(t, TY_VAR, tied, out);
    for (uint32_t i = 0; t->tag == TY_TUPLE && i < t->nargs; i++)
        collect_supplies(t->args[i], tied, out);
}

/* Whether r may still make dtypes equal. The relation of an operator over tensors has done so before their shapes
 * are known. Its other arguments, such as indices or the off value of one_hot, supply no dtype. */
static bool ties_dtypes(const Relation *r) {
    bool ties = r->def != &rel_use &&
                (!r->op || r->op->relation != r->def || (r->attrs && attrs_have_refs(r->attrs)));
    for (uint32_t i = 0; i + 1 < r->nargs && !ties; i++)
        ties = type_resolve(r->args[i])->tag == TY_VAR;
    return ties;
}

static void collect_shapes(Type *t, Map *tied, TypeVec *out) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        t = type_resolve(t->tensor.shape);
    if (t->tag == TY_TUPLE)
        for (uint32_t i = 0; i < t->nargs; i++)
            collect_shapes(t->args[i], tied, out);
    else
        type_collect(t, TY_VAR, tied, out);
}

/* Finds the variables that the parameters of a function type decide, directly or through relations over their
 * parts. */
static void find_tied(Type *t, Map *tied) {
    t = type_resolve(t);
    if (t->tag != TY_FN)
        return;
    TypeVec found = {0};
    Map relations = {0};
    for (uint32_t i = 0; i < t->nargs; i++)
        collect_supplies(t->args[i], tied, &found);
    for (size_t i = 0; i < found.len; i++) {
        if (found.data[i]->kind == KIND_EFFECT)
            continue;
        const TypeVar *v = &found.data[i]->var;
        for (uint32_t k = 0; k < v->nwatchers; k++) {
            Relation *r = v->watchers[k];
            if (r->status != REL_WAIT || map_has(&relations, r))
                continue;
            map_set(&relations, r, r);
            bool dtypes = ties_dtypes(r);
            for (uint32_t a = 0; a < r->nargs; a++)
                if (dtypes)
                    collect_supplies(r->args[a], tied, &found);
                else
                    collect_shapes(r->args[a], tied, &found);
        }
    }
}

static void default_untied_literals(Solver *s, Type *t) {
    Map tied = {0};
    bool any = false;
    size_t begin = s->marks.len ? vec_last(&s->marks).weak : 0;
    for (size_t i = begin; i < s->weak.len && !any; i++) {
        Type *v = type_resolve(s->weak.data[i]);
        any = v->tag == TY_VAR && v->var.level >= s->level;
    }
    if (!any)
        return;
    find_tied(t, &tied);
    TypeVec all = {0}, kept = {0};
    for (size_t i = begin; i < s->weak.len; i++)
        vec_push(&all, s->weak.data[i]);
    s->weak.len = begin;
    for (size_t i = 0; i < all.len; i++) {
        Type *v = type_resolve(all.data[i]);
        if (v->tag != TY_VAR)
            continue;
        if (map_has(&tied, v))
            vec_push(&kept, v);
        else
            vec_push(&s->weak, v);
    }
    solver_default_weak(s);
    for (size_t i = 0; i < kept.len; i++)
        vec_push(&s->weak, kept.data[i]);
}

/* ---- finding relations ----------------------------------------------------------------------- */

static bool is_deep(Solver *s, Type *t) {
    TypeVec vars = {0};
    Map seen = {0};
    type_collect(t, TY_VAR, &seen, &vars);
    for (size_t i = 0; i < vars.len; i++)
        if (vars.data[i]->kind != KIND_EFFECT && vars.data[i]->var.level >= s->level)
            return true;
    return false;
}

static bool relation_mentions(const Relation *r, Type *const *params, uint32_t n) {
    for (uint32_t i = 0; i < r->nargs; i++)
        if (n && type_mentions(r->args[i], params, n))
            return true;
    return false;
}

/* Finds the relations to generalise with a type. Relations of outer levels are moved to the level outside. */
static void find_candidates(Solver *s, Type *type, Type **declared, uint32_t ndeclared,
                            RelationVec *out) {
    bool function = type_resolve(type)->tag == TY_FN;
    size_t begin = s->marks.len ? vec_last(&s->marks).waiting : 0;
    RelationVec open = {0};
    for (size_t i = begin; i < s->waiting.len; i++)
        if (s->waiting.data[i]->status == REL_WAIT)
            vec_push(&open, s->waiting.data[i]);
    bool changed = true;
    s->counts.steps += s->waiting.len - begin;
    while (changed) {
        changed = false;
        size_t kept = 0;
        s->counts.steps += open.len;
        for (size_t i = 0; i < open.len; i++) {
            Relation *r = open.data[i];
            bool deep = relation_mentions(r, declared, ndeclared);
            uint32_t ninputs = r->nargs > 1 && r->def != &rel_same ? r->nargs - 1 : r->nargs;
            /* Each call of a function reads values of its own (Note [One fact, one part] in fact.c). */
            if (function && relation_reads_values(r) && !solver_is_around(s, r->body))
                ninputs = r->nargs;
            for (uint32_t k = 0; k < ninputs && !deep; k++)
                deep = is_deep(s, r->args[k]);
            if (deep) {
                open.data[kept++] = r;
                continue;
            }
            for (uint32_t k = 0; k < r->nargs; k++)
                solver_lower_levels(s, r->args[k], s->level - 1);
            r->level = s->level - 1;
            changed = true;
        }
        open.len = kept;
    }
    *out = open;
}

/* ---- effects --------------------------------------------------------------------------------- */

typedef struct Effects {
    Solver *s;
    Map params; /* the effect variables of the type */
    Map seen;
    bool allocates;
    TypeVec lower; /* parameters and outer effects that the variable at hand includes */
} Effects;

static void find_lower(Effects *e, Type *t, bool top) {
    t = type_resolve(t);
    if (t->tag == TY_ALLOCATES)
        e->allocates = true;
    if (t->tag == TY_PARAM)
        vec_push(&e->lower, t);
    if (t->tag != TY_VAR || map_has(&e->seen, t))
        return;
    map_set(&e->seen, t, t);
    if (!top && (t->var.level < e->s->level || map_has(&e->params, t))) {
        vec_push(&e->lower, t);
        return;
    }
    for (uint32_t i = 0; i < t->var.nwatchers; i++)
        find_lower(e, t->var.subs[i], false);
}

/* Links the effects that certainly allocate, and collects what the others include. */
static void generalise_effects(Solver *s, TypeVec *vars, TypeVec *includes) {
    Effects e = {.s = s};
    for (size_t i = 0; i < vars->len; i++)
        map_set(&e.params, vars->data[i], vars->data[i]);
    TypeVec allocating = {0};
    for (size_t i = 0; i < vars->len; i++) {
        map_clear(&e.seen);
        vec_clear(&e.lower);
        e.allocates = false;
        find_lower(&e, vars->data[i], true);
        if (e.allocates) {
            vec_push(&allocating, vars->data[i]);
            continue;
        }
        for (size_t k = 0; k < e.lower.len; k++) {
            vec_push(includes, e.lower.data[k]);
            vec_push(includes, vars->data[i]);
        }
    }
    for (size_t i = 0; i < allocating.len; i++)
        solver_link(s, allocating.data[i], type_allocates());
}

/* ---- generalise ------------------------------------------------------------------------------ */

typedef struct Build {
    Solver *s;
    Type *t;
    Type **declared;
    uint32_t ndeclared;
    RelationVec relations; /* the relations to generalise */
    /* The first nown of `declared` are the user's parameters. The others stand in the types these are known to
     * be. */
    uint32_t nown;
    Map folded;   /* shape of a declared tensor -> its parameter */
    TypeVec vars; /* variables to generalise, in order of appearance */
    TypeVec effects;
    Map order; /* variables of the type -> 1 + position */
} Build;

static void add_vars(Build *b, Type *t, Map *seen) {
    TypeVec found = {0};
    type_collect(t, TY_VAR, seen, &found);
    for (size_t i = 0; i < found.len; i++) {
        Type *v = found.data[i];
        if (v->var.level < b->s->level)
            continue;
        if (v->kind == KIND_EFFECT)
            vec_push(&b->effects, v);
        else
            vec_push(&b->vars, v);
    }
}

static void number_vars(Build *b) {
    map_clear(&b->order);
    TypeVec found = {0};
    Map seen = {0};
    type_collect(b->t, TY_VAR, &seen, &found);
    for (size_t i = 0; i < found.len; i++)
        map_set(&b->order, found.data[i], (void *)(uintptr_t)(i + 1));
}

/* Adds outer variables to the order, so that the laws do not take them for intermediate ones. */
static void protect_outer(Build *b) {
    for (size_t i = 0; i < b->relations.len; i++)
        for (uint32_t k = 0; k < b->relations.data[i]->nargs; k++) {
            TypeVec found = {0};
            Map seen = {0};
            type_collect(b->relations.data[i]->args[k], TY_VAR, &seen, &found);
            for (size_t v = 0; v < found.len; v++)
                if (found.data[v]->var.level < b->s->level && !map_has(&b->order, found.data[v]))
                    map_set(&b->order, found.data[v], (void *)(uintptr_t)UINT32_MAX);
        }
}

/* Note [A field decides]. Where only one declared type has the fields w and b, `fn (p) { p.w + p.b }` takes that
 * type, as an ML programmer expects. Where several have them, or none, p stays open: `where Field(a, w, c)`. This
 * is decided when p would be generalised, so that other uses of p decide first. */
typedef struct Read {
    Type *value; /* the type variable of the value that is read */
    VEC(const Symbol *) fields;
} Read;

/* The variable that stands for the record of a Field, alone or in D(a). */
static Type *find_record_var(const Relation *r) {
    Type *t = type_resolve(r->args[0]);
    if (t->tag == TY_DERIV)
        t = type_resolve(t->elem);
    return t->tag == TY_VAR ? t : NULL;
}

static Type *make_instance_of(Solver *s, TypeDecl *decl) {
    Type **args = mem_new_n(Type *, decl->nparams + 1);
    for (uint32_t i = 0; i < decl->nparams; i++)
        args[i] = solver_var(s, decl->params[i]->kind);
    return type_data(decl, args, decl->nparams);
}

static bool decide_records(Build *b) {
    Solver *s = b->s;
    VEC(Read) reads = {0};
    Map index = {0}; /* variable -> 1 + position in reads */
    for (size_t i = 0; s->find_record && i < b->relations.len; i++) {
        const Relation *r = b->relations.data[i];
        Type *t = r->def == &rel_field && r->status == REL_WAIT ? find_record_var(r) : NULL;
        if (!t || t->var.level < s->level)
            continue;
        size_t at = (size_t)(uintptr_t)map_find(&index, t);
        if (!at) {
            Read read = {.value = t};
            vec_push(&reads, read);
            at = reads.len;
            map_set(&index, t, (void *)(uintptr_t)at);
        }
        vec_push(&reads.data[at - 1].fields, r->data);
    }
    bool any = false;
    for (size_t i = 0; i < reads.len; i++) {
        const Read *read = &reads.data[i];
        TypeDecl *decl = s->find_record(s->find_record_ctx, read->fields.data,
                                        (uint32_t)read->fields.len);
        if (decl && solver_unify(s, read->value, make_instance_of(s, decl)))
            any = true;
    }
    return any;
}

bool solver_decide_record(Solver *s, Type *value) {
    VEC(const Symbol *) fields = {0};
    value = type_resolve(value);
    for (size_t i = 0; s->find_record && value->tag == TY_VAR && i < s->waiting.len; i++) {
        const Relation *r = s->waiting.data[i];
        if (r->def == &rel_field && r->status == REL_WAIT && find_record_var(r) == value)
            vec_push(&fields, r->data);
    }
    TypeDecl *decl = fields.len
                         ? s->find_record(s->find_record_ctx, fields.data, (uint32_t)fields.len)
                         : NULL;
    return decl && solver_unify(s, value, make_instance_of(s, decl));
}

/* Drops `==` over variables that neither the type nor another relation mentions, as of the elements of a list that
 * is always empty. No value has such a type. */
static void drop_unreachable(Build *b) {
    Map reached = {0}, again = {0};
    TypeVec vars = {0};
    type_collect(b->t, TY_VAR, &reached, &vars);
    for (size_t i = 0; i < b->relations.len; i++)
        for (uint32_t k = 0; k < b->relations.data[i]->nargs; k++)
            if (b->relations.data[i]->def != &rel_equal)
                type_collect(b->relations.data[i]->args[k], TY_VAR, &reached, &vars);
    for (size_t i = 0; i < b->relations.len; i++) {
        Relation *r = b->relations.data[i];
        bool touched = r->def != &rel_equal;
        for (uint32_t k = 0; k < r->nargs && !touched; k++) {
            TypeVec own = {0};
            map_clear(&again);
            type_collect(r->args[k], TY_PARAM, &again, &own);
            map_clear(&again);
            type_collect(r->args[k], TY_VAR, &again, &own);
            for (size_t v = 0; v < own.len && !touched; v++)
                touched = own.data[v]->tag == TY_PARAM || map_has(&reached, own.data[v]) ||
                          own.data[v]->var.level < b->s->level;
        }
        if (!touched)
            r->status = REL_DONE;
    }
}

static void solve_relations(Build *b) {
    Solver *s = b->s;
    for (bool again = true; again;) {
        solver_run(s);
        find_candidates(s, b->t, b->declared, b->ndeclared, &b->relations);
        number_vars(b);
        protect_outer(b);
        again = b->relations.len > 0 &&
                (laws_simplify(s, &b->relations, &b->order) || decide_records(b));
    }
    drop_unreachable(b);
}

bool solver_learn_relations(Solver *s) {
    bool ok = true;
    for (bool again = true; again && ok;) {
        ok = solver_run(s);
        RelationVec open = {0};
        Map order = {0}, seen = {0};
        TypeVec vars = {0};
        for (size_t i = vec_last(&s->marks).waiting; i < s->waiting.len; i++) {
            Relation *r = s->waiting.data[i];
            if (r->status != REL_WAIT || r->level < s->level)
                continue;
            vec_push(&open, r);
            for (uint32_t k = 0; k < r->nargs; k++)
                type_collect(r->args[k], TY_VAR, &seen, &vars);
        }
        for (size_t i = 0; i < vars.len; i++) /* no variable is intermediate */
            map_set(&order, vars.data[i], (void *)(uintptr_t)(i + 1));
        again = ok && open.len && laws_simplify(s, &open, &order);
    }
    for (size_t i = vec_last(&s->marks).waiting; i < s->waiting.len; i++)
        if (s->waiting.data[i]->level >= s->level) /* and not of a use around that was opened */
            s->waiting.data[i]->status = REL_DONE;
    return ok;
}

/* Replaces tensors that only a Broadcast shows to be tensors by type variables. */
static void abstract_tensors(Build *b) {
    if (b->relations.len == 0)
        return;
    Abstraction a = {0};
    laws_abstract(b->s, b->t, &b->relations, &a);
    if (a.shapes.len == 0)
        return;
    Map of = {0};
    for (size_t i = 0; i < a.shapes.len; i++)
        map_set(&of, a.shapes.data[i], a.vars.data[i]);
    b->t = type_replace_tensors(b->t, &of);
    for (size_t i = 0; i < b->relations.len; i++)
        for (uint32_t k = 0; k < b->relations.data[i]->nargs; k++) {
            Relation *r = b->relations.data[i];
            r->args[k] = type_replace_tensors(r->args[k], &of);
        }
    inside_replace_tensors(b->s, &of);
}

static Type *link_to_param(TypeVec *weak, Type *v) {
    Type *p = type_param(v->var.hint, v->kind);
    p->param.dtypes = v->var.dtypes;
    p->param.asked = v->var.asked;
    if (v->var.weak)
        vec_push(weak, p);
    v->var.link = p;
    return p;
}

static Type **vec_copy(const TypeVec *v) {
    Type **out = v->len ? mem_new_n(Type *, v->len) : NULL;
    for (size_t i = 0; i < v->len; i++)
        out[i] = v->data[i];
    return out;
}

/* ---- declared tensors: Note [Declared tensors] in ast_type.c --------------------------------- */

/* Collects the parameters as declared, then those inside of the types that these are known to be. */
static void add_inner_params(Build *b, Type **declared, uint32_t n) {
    TypeVec all = {0};
    Map seen = {0};
    for (uint32_t i = 0; i < n; i++) {
        vec_push(&all, declared[i]);
        map_set(&seen, declared[i], declared[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        Type *known = declared[i]->param.known;
        if (!known)
            continue;
        type_collect(known, TY_PARAM, &seen, &all);
        Type *shape = known->tag == TY_TENSOR ? type_resolve(known->tensor.shape) : NULL;
        if (shape && shape->tag == TY_PARAM && shape->param.known == declared[i])
            map_set(&b->folded, shape, declared[i]);
    }
    b->declared = all.data;
    b->ndeclared = (uint32_t)all.len;
    b->nown = n;
}

/* Replaces each declared tensor by its parameter. */
static Type *fold_tensors(Build *b, Type *t) {
    return b->folded.len ? type_replace_tensors(t, &b->folded) : t;
}

static Relation *fold_relation(Build *b, Relation *r) {
    for (uint32_t i = 0; i < r->nargs && b->folded.len; i++) {
        Type *t = type_resolve(r->args[i]);
        DTypeSet class = t->tag == TY_TENSOR ? type_dtype_set(t->tensor.dtype) : DTS_ALL;
        r->args[i] = fold_tensors(b, t);
        if (is_broadcast(r->def) && r->args[i] != t && class != DTS_ALL)
            r->data = (const void *)(uintptr_t)(class & broadcast_dtypes(r));
    }
    return r;
}

/* Whether a Broadcast of a scheme says which dtypes p has. */
static bool says_dtypes(const RelationVec *relations, const Type *p) {
    for (size_t i = 0; i < relations->len; i++)
        for (uint32_t k = 0; is_broadcast(relations->data[i]->def) && k < relations->data[i]->nargs;
             k++)
            if (type_resolve(relations->data[i]->args[k]) == p)
                return true;
    return false;
}

/* Adds Same(a, Tensor[s, b]) for a parameter that is known to be a tensor, where s or b stands alone in the scheme,
 * or where the parameter would otherwise take dtypes that the body does not. */
static void add_known_types(Build *b, Type *t, RelationVec *relations, TypeVec *params) {
    if (b->ndeclared == b->nown)
        return;
    Map mentioned = {0};
    TypeVec found = {0}, own = {0};
    type_collect(t, TY_PARAM, &mentioned, &found);
    for (size_t i = 0; i < relations->len; i++)
        for (uint32_t k = 0; k < relations->data[i]->nargs; k++)
            type_collect(relations->data[i]->args[k], TY_PARAM, &mentioned, &found);
    for (uint32_t i = 0; i < b->nown; i++) {
        Type *p = b->declared[i], *known = p->param.known;
        if (!known)
            continue;
        TypeVec inner = {0};
        Map seen = {0};
        bool alone = known->tag != TY_TENSOR ||
                     !map_has(&b->folded, type_resolve(known->tensor.shape)) ||
                     (type_dtype_set(known->tensor.dtype) != DTS_ALL && !says_dtypes(relations, p));
        type_collect(known, TY_PARAM, &seen, &inner);
        for (size_t k = 0; k < inner.len; k++)
            alone = alone || (!inner.data[k]->param.name && map_has(&mentioned, inner.data[k]));
        if (!alone)
            continue;
        Type *args[] = {p, known};
        vec_push(relations, relation_new(&rel_same, args, 2, NULL, span_none()));
        for (size_t k = 0; k < inner.len; k++)
            vec_push(&own, inner.data[k]);
    }
    map_clear(&mentioned);
    for (size_t i = 0; i < params->len; i++)
        map_set(&mentioned, params->data[i], params->data[i]);
    for (size_t i = 0; i < own.len; i++)
        if (!map_has(&mentioned, own.data[i])) {
            map_set(&mentioned, own.data[i], own.data[i]);
            vec_push(params, own.data[i]);
        }
}

static Scheme *build_scheme(Build *b) {
    Solver *s = b->s;
    Scheme *scheme = mem_new(Scheme);
    TypeVec params = {0}, weak = {0}, includes = {0};
    RelationVec relations = {0};
    Map seen = {0};
    Substitution zonk = substitution_new(NULL, NULL, 0);
    for (uint32_t i = 0; i < b->ndeclared; i++)
        b->declared[i]->param.level = 0;
    for (uint32_t i = 0; i < b->nown; i++)
        vec_push(&params, b->declared[i]);
    add_vars(b, b->t, &seen);
    for (size_t i = 0; i < b->relations.len; i++)
        for (uint32_t k = 0; k < b->relations.data[i]->nargs; k++)
            if (b->relations.data[i]->status == REL_WAIT)
                add_vars(b, b->relations.data[i]->args[k], &seen);
    generalise_effects(s, &b->effects, &includes);
    for (size_t i = 0; i < b->vars.len; i++)
        vec_push(&params, link_to_param(&weak, b->vars.data[i]));
    for (size_t i = 0; i < b->effects.len; i++)
        if (!b->effects.data[i]->var.link)
            vec_push(&params, link_to_param(&weak, b->effects.data[i]));
    for (size_t i = 0; i < s->facts.len; i++) {
        const Relation *r = s->facts.data[i];
        if (relation_mentions(r, b->declared, b->ndeclared))
            vec_push(&relations, fold_relation(b, relation_copy(r, &zonk)));
    }
    for (size_t i = 0; i < b->relations.len; i++) {
        Relation *r = b->relations.data[i];
        if (r->status != REL_WAIT)
            continue;
        vec_push(&relations, fold_relation(b, relation_copy(r, &zonk)));
        r->status = REL_DONE;
    }
    scheme->type = type_share(fold_tensors(b, type_substitute_by(&zonk, b->t)));
    add_known_types(b, scheme->type, &relations, &params);
    scheme->ndeclared = b->nown;
    scheme->nparams = (uint32_t)params.len;
    scheme->params = vec_copy(&params);
    scheme->nweak = (uint32_t)weak.len;
    scheme->weak = vec_copy(&weak);
    scheme->nrelations = (uint32_t)relations.len;
    scheme->relations = relations.data;
    for (size_t i = 0; i < includes.len; i++)
        includes.data[i] = type_resolve(includes.data[i]);
    scheme->nincludes = (uint32_t)includes.len / 2;
    scheme->includes = vec_copy(&includes);
    scheme_note_unknowns(scheme, s->marks.len ? vec_last(&s->marks).id : 0);
    early_move_to_scheme(s, scheme, &zonk);
    scheme->joins = scheme_joins(scheme);
    scheme_note_elements(scheme);
    inside_replace_tensors(s, &b->folded);
    inside_move_to_scheme(s, scheme);
    scheme_note_whole(scheme);
    return scheme;
}

Scheme *scheme_generalise(Solver *s, Type *t, bool mono) {
    if (!mono) {
        Build b = {.s = s, .t = t};
        solver_run(s);
        default_untied_literals(s, t);
        solve_relations(&b);
        abstract_tensors(&b);
        return build_scheme(&b);
    }
    solver_run(s);
    solver_default_weak(s);
    solver_run(s);
    solver_lower_levels(s, t, s->level - 1);
    size_t begin = s->marks.len ? vec_last(&s->marks).waiting : 0;
    for (size_t i = begin; i < s->waiting.len; i++) {
        Relation *r = s->waiting.data[i];
        if (r->status != REL_WAIT)
            continue;
        for (uint32_t k = 0; k < r->nargs; k++)
            solver_lower_levels(s, r->args[k], s->level - 1);
        r->level = s->level - 1;
    }
    return scheme_mono(t);
}

/* ---- declared -------------------------------------------------------------------------------- */

/* "and `c` to the type parameters": the variables of the relation that nothing declares. */
static const char *unbound_words(const Relation *r, TypeNamer *names) {
    Map seen = {0};
    TypeVec vars = {0};
    Str out = {0};
    for (uint32_t i = 0; i < r->nargs; i++)
        type_collect(r->args[i], TY_VAR, &seen, &vars);
    for (size_t i = 0; i < vars.len; i++)
        if (vars.data[i]->kind != KIND_EFFECT)
            str_printf(&out, "%s`%s`", out.len ? ", " : ", and ",
                       type_text_with(names, vars.data[i]));
    if (out.len)
        str_add(&out, " to the type parameters");
    return str_text(&out);
}

static void report_missing(Solver *s, Relation *r) {
    TypeNamer names = {0};
    Str text = {0};
    relation_print(&text, r, &names);
    Diag *d = rel_error(s, r, DIAG_R0304, "`%s` needs more than the signature declares",
                        relation_subject(r));
    diag_add_fact(d, "add `%s` to the `where`%s", str_text(&text), unbound_words(r, &names));
}

Scheme *scheme_generalise_declared(Solver *s, Type *t, Type **declared, uint32_t ndeclared,
                                   bool has_where) {
    Build b = {.s = s, .t = t};
    add_inner_params(&b, declared, ndeclared);
    declared = b.declared;
    ndeclared = b.ndeclared;
    solver_run(s);
    if (!solver_take_parts(s, s->marks.len ? vec_last(&s->marks).waiting : 0))
        return NULL;
    default_untied_literals(s, t);
    solve_relations(&b);
    if (has_where) {
        for (size_t i = 0; i < b.relations.len; i++) {
            Relation *r = b.relations.data[i];
            if (r->status != REL_WAIT || r->def->implicit ||
                !relation_mentions(r, declared, ndeclared))
                continue;
            if (solver_adopt_fact(s, r, &b.order)) {
                r->status = REL_DONE;
                continue;
            }
            report_missing(s, fold_relation(&b, r));
            r->status = REL_FAIL;
            return NULL;
        }
    } else if (!narrow_check_declared(s, &b.relations, b.declared, b.nown)) {
        return NULL;
    }
    abstract_tensors(&b);
    return build_scheme(&b);
}
