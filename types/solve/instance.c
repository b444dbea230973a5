/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of schemes at the uses of definitions: fresh variables for the parameters, and the relations over
 * these. */
#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

/* Sizes in attributes are types too, as in `reshape(x, newshape=[n, 2])`. A size that was found to be a number counts
 * here, and becomes that number. (attrs_have_sizes asks only for sizes that are not known.) */
static bool value_has_dims(const AttrValue *v) {
    if (v->kind == ATTR_DIM)
        return true;
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n; i++)
        if (value_has_dims(&v->list.items[i]))
            return true;
    return false;
}

static AttrValue zonk_value(const AttrValue *v, Substitution *by) {
    AttrValue out = *v;
    int64_t size;
    if (v->kind == ATTR_DIM) {
        out.dim = type_resolve(type_substitute_by(by, v->dim));
        if (type_get_int(out.dim, &size))
            out = attr_size(size);
    } else if (v->kind == ATTR_LIST) {
        AttrValue *items = mem_new_n(AttrValue, v->list.n);
        for (uint32_t i = 0; i < v->list.n; i++)
            items[i] = zonk_value(&v->list.items[i], by);
        out.list.items = items;
    }
    return out;
}

static const Attrs *zonk_attrs(const Attrs *attrs, Substitution *by) {
    bool any = false;
    for (int i = 0; attrs && i < attrs->op->nattrs && !any; i++)
        any = value_has_dims(&attrs->values[i]);
    if (!any)
        return attrs;
    Attrs *out = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, attrs->op->nattrs);
    for (int i = 0; i < attrs->op->nattrs; i++)
        values[i] = zonk_value(&attrs->values[i], by);
    out->op = attrs->op;
    out->values = values;
    return out;
}

Relation *relation_copy(const Relation *r, Substitution *by) {
    Relation *copy = relation_new(r->def, r->args, r->nargs, r->attrs, r->span);
    for (uint32_t i = 0; i < r->nargs; i++)
        copy->args[i] = type_substitute_by(by, r->args[i]);
    copy->attrs = zonk_attrs(r->attrs, by);
    copy->op = r->op;
    copy->data = r->data;
    copy->shared = r->shared;
    copy->takes_several = r->takes_several;
    copy->arg_spans = r->arg_spans;
    copy->inner = r->inner;
    copy->inner_spans = r->inner_spans;
    copy->inner_name = r->inner_name;
    return copy;
}

/* The unknown u as one particular size. Sub-shaping takes any size for a plain `?`, but not for a linked variable. */
static Type *make_linked(Solver *s, Type *u) {
    Type *v = solver_var(s, KIND_DIM);
    v->var.link = u;
    return v;
}

Type *scheme_instance_of(Solver *s, const Scheme *scheme, uint32_t i) {
    Type *p = scheme->params[i];
    Type *v = solver_var_named(s, p->kind, i < scheme->ndeclared ? NULL : p->param.name);
    if (p->kind == KIND_DTYPE)
        v->var.dtypes = p->param.dtypes;
    v->var.asked = p->param.asked;
    v->var.each = p->param.each;
    v->var.joins = p->kind == KIND_TYPE && scheme->joins[i];
    return v;
}

Relation *relation_instance(Solver *s, const Scheme *scheme, const Relation *r, Span span,
                            Substitution *by) {
    Relation *copy = relation_copy(r, by);
    if (!copy->inner.source) {
        copy->inner = r->span;
        copy->inner_spans = r->arg_spans;
        copy->inner_name = scheme->name;
    }
    copy->span = span;
    if (copy->def == &rel_use)
        copy->made = type_next_id();
    copy->arg_spans = NULL;
    relation_set_place(s, copy);
    return copy;
}

void solver_take_sizes(Solver *s, Type ***sizes) { s->take_sizes = sizes; }

void solver_give_size(Solver *s, Type *open, Type *size) {
    int64_t n;
    open = type_resolve(open);
    if (open->tag == TY_VAR && type_get_int(size, &n) && n < 0)
        solver_link(s, open, size);
    else
        solver_unify(s, open, size);
}

/* Replaces the sizes that are arguments by undetermined ones. They are the unknowns from[i]. */
static void open_sizes(Solver *s, const Scheme *scheme, Type *const *from, Type **to, uint32_t n) {
    Type ***taken = s->take_sizes;
    uint32_t nargs = type_resolve(scheme->type)->nargs;
    s->take_sizes = NULL;
    if (!taken || !scheme->sizes)
        return;
    *taken = mem_new_n(Type *, nargs + 1);
    for (uint32_t i = 0; i < nargs; i++)
        for (uint32_t k = 0; scheme->sizes[i] && k < n; k++)
            if (from[k] == scheme->sizes[i])
                (*taken)[i] = to[k] = solver_var(s, KIND_DIM);
}

Type *scheme_instantiate(Solver *s, const Scheme *scheme, Span span, Type **type_args,
                         uint32_t ntype_args, Type ***out_args) {
    uint32_t mine = scheme->nparams + scheme->nunknowns, n = mine + scheme->nouter;
    if (out_args)
        *out_args = NULL;
    if (n == 0 && !scheme->ninside)
        return scheme->type;
    Type **from = mem_new_n(Type *, n), **to = mem_new_n(Type *, n);
    for (uint32_t i = 0; i < scheme->nparams; i++) {
        from[i] = scheme->params[i];
        Type *given = i < ntype_args && type_args ? type_args[i] : NULL;
        to[i] = given ? given : scheme_instance_of(s, scheme, i);
        if (given && from[i]->kind == KIND_DTYPE &&
            !solver_restrict(s, given, from[i]->param.dtypes))
            diag_error(s->diags, DIAG_R0310, span, "the type argument must be %s, it is %s",
                       dtype_class_name(from[i]->param.dtypes), type_text(given));
    }
    for (uint32_t i = 0; i < scheme->nunknowns; i++) {
        from[scheme->nparams + i] = scheme->unknowns[i];
        Type *u = scheme->unknowns[i];
        const Origin *origin = origin_at_call(u->origin, span);
        to[scheme->nparams + i] = unknown_copy(u, origin);
    }
    open_sizes(s, scheme, from + scheme->nparams, to + scheme->nparams, scheme->nunknowns);
    for (uint32_t i = 0; i < scheme->nouter; i++) {
        from[mine + i] = scheme->outer[i];
        to[mine + i] = make_linked(s, scheme->outer[i]);
    }
    Substitution by = substitution_new(from, to, n);
    Type *t = type_substitute_by(&by, scheme->type);
    if (scheme->nshown)
        use_post(s, scheme, span, &by);
    for (uint32_t i = 0; i < scheme->nrelations && !scheme->nshown; i++) {
        Relation *r = relation_instance(s, scheme, scheme->relations[i], span, &by);
        r->from_call = scheme->ninside > 0;
        solver_add(s, r);
    }
    early_record_use(s, scheme, span, to);
    inside_instantiate(s, scheme, span, &by);
    for (uint32_t i = 0; i < scheme->nincludes; i++)
        solver_effect_include(s, type_substitute_by(&by, scheme->includes[2 * i]),
                              type_substitute_by(&by, scheme->includes[2 * i + 1]));
    if (out_args)
        *out_args = to;
    return t;
}
