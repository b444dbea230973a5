/* SPDX-License-Identifier: Apache-2.0 */
/* Values carry their types when running; here an expression is found that has a given dtype or
 * size: a tensor reached from a parameter through tuples and fields (LANGUAGE §4 Run-time types). */
#include "types/infer/state.h"

typedef struct Wanted {
    Type *dtype; /* one of the four */
    Type *dim;
    Type *tensor;
    Type *shape;
} Wanted;

enum { SUPPLY_DEPTH = 6 };

static Expr *dim_of(Expr *tensor, uint32_t axis) {
    Expr *d = expr_new(EXPR_DIM_OF, type_scalar(DT_I64), tensor->span);
    d->a = tensor;
    d->index = (int32_t)axis;
    return d;
}

static Expr *in_tensor(Type *t, Expr *at, const Wanted *w) {
    if (w->dtype)
        return type_equal(t->tensor.dtype, w->dtype) ? at : NULL;
    if (w->tensor)
        return type_equal(t, w->tensor) ? at : NULL;
    if (w->shape)
        return type_equal(t->tensor.shape, w->shape) ? at : NULL;
    uint32_t rank;
    Type **dims;
    if (!type_get_rank(t, &rank, &dims))
        return NULL;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t n;
        if (!type_get_int(dims[i], &n) && dim_compare(dims[i], w->dim) == DIM_EQUAL)
            return dim_of(at, i);
    }
    return NULL;
}

static Expr *in_value(Infer *I, Type *type, Expr *at, const Wanted *w, int depth);

/* What has the dtype of at[i] and of its parts, for an `at` that is a tuple or a tensor: `at[i:]` is element i of a
 * tuple, and of a tensor a part that is there however short it is. */
static Expr *index_part(Expr *at, const Relation *r) {
    Type *t = type_resolve(r->args[2]);
    if (t->tag == TY_TENSOR)
        t = type_tensor(type_any(KIND_SHAPE, NULL), t->tensor.dtype);
    Expr *part = expr_new(EXPR_INDEX, t, at->span);
    Attrs *attrs = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, op_index.nattrs + 1);
    values[op_attr_index(&op_index, "spec")] = (AttrValue){.kind = ATTR_STRING, .text = ":1"};
    attrs->op = &op_index;
    attrs->values = values;
    part->a = at;
    part->args = mem_new_n(Expr *, 1);
    part->args[0] = expr_int(*(const int64_t *)r->data, DT_I32, at->span);
    part->nargs = 1;
    part->attrs = attrs;
    return part;
}

/* Looks in a value of open type, by the relations of its scheme that read it: `Field(a, w, Tensor[s, b])`. */
static Expr *in_open(Infer *I, Type *t, Expr *at, const Wanted *w, int depth) {
    for (size_t k = I->schemes.len; k-- > 0;) {
        for (uint32_t i = 0; i < I->schemes.data[k]->nrelations; i++) {
            const Relation *r = I->schemes.data[k]->relations[i];
            bool field = r->def == &rel_field, proj = r->def == &rel_proj;
            bool index = r->def == &rel_index && r->nargs == 3 && r->data && w->dtype;
            if ((!field && !proj && !index) || type_resolve(r->args[0]) != t)
                continue;
            Expr *part;
            if (index) {
                part = index_part(at, r);
            } else if (field) {
                part = expr_new(EXPR_FIELD, r->args[1], at->span);
                part->a = at;
                part->field = r->data;
                part->index = -1;
            } else {
                part = expr_proj(at, (uint32_t) * (const int64_t *)r->data, r->args[1], at->span);
            }
            Expr *e = in_value(I, r->args[index ? 2 : 1], part, w, depth - 1);
            if (e)
                return e;
        }
    }
    return NULL;
}

static Expr *in_value(Infer *I, Type *type, Expr *at, const Wanted *w, int depth) {
    Type *t = type_resolve(type);
    if (t->tag == TY_TENSOR)
        return in_tensor(t, at, w);
    if (depth == 0)
        return NULL;
    if (t->tag == TY_PARAM && I->schemes.len)
        return in_open(I, t, at, w, depth);
    if (t->tag == TY_REF) { /* the contents of a reference change, but not their type */
        Expr *read = expr_new(EXPR_READ, t->elem, at->span);
        read->a = at;
        return in_value(I, t->elem, read, w, depth - 1);
    }
    if (t->tag == TY_TUPLE) {
        for (uint32_t i = 0; i < t->nargs; i++) {
            Expr *e = in_value(I, t->args[i], expr_proj(at, i, t->args[i], at->span), w, depth - 1);
            if (e)
                return e;
        }
    }
    if (t->tag == TY_DATA && t->decl->nctors == 1 && t->decl->ctors[0]->field_names &&
        t->decl->nexists == 0) {
        const Ctor *c = t->decl->ctors[0];
        for (uint32_t i = 0; i < c->nfields; i++) {
            Type *field = type_substitute(c->fields[i], t->decl->params, t->args, t->nargs);
            Expr *f = expr_new(EXPR_FIELD, field, at->span);
            f->a = at;
            f->field = c->field_names[i];
            f->index = (int32_t)i;
            Expr *e = in_value(I, field, f, w, depth - 1);
            if (e)
                return e;
        }
    }
    return NULL;
}

/* Looks in a value whose own sizes were opened as unknowns for this variable. */
static Expr *in_opened(Infer *I, const Local *l, Expr *at, const Wanted *w) {
    Type *t = type_resolve(l->var->type);
    Type **own = l->opened && t->tag == TY_DATA ? map_find(l->opened, t->decl) : NULL;
    if (!own || t->decl->nctors != 1 || !t->decl->ctors[0]->field_names)
        return NULL;
    const Ctor *c = t->decl->ctors[0];
    for (uint32_t i = 0; i < c->nfields; i++) {
        Type *field = type_substitute(c->fields[i], t->decl->params, t->args, t->nargs);
        field = type_substitute(field, t->decl->exists, own, t->decl->nexists);
        Expr *f = expr_new(EXPR_FIELD, field, at->span);
        f->a = at;
        f->field = c->field_names[i];
        f->index = (int32_t)i;
        Expr *e = in_value(I, field, f, w, SUPPLY_DEPTH);
        if (e)
            return e;
    }
    return NULL;
}

/* Looks for an unknown size in the value of a global. */
static Expr *in_global(Infer *I, const Pending *p, const Global *g, const Wanted *w) {
    if (g && g->size && w->dim && g->size == w->dim)
        return infer_as_int64(expr_global((Global *)g, g->scheme->type, p->span));
    bool is_value = g && g->kind == GLOBAL_LET && g->scheme && !g->scheme->nparams && !g->broken;
    if (!is_value || !(type_resolve(g->scheme->type)->flags & TYPE_HAS_ANY))
        return NULL;
    return in_value(I, g->scheme->type, expr_global((Global *)g, g->scheme->type, p->span), w,
                    SUPPLY_DEPTH);
}

static Expr *in_globals(Infer *I, const Pending *p, const Wanted *w) {
    const void *key;
    void *value;
    Expr *e = NULL;
    for (size_t i = 0; !e && map_next(&I->names, &i, &key, &value);)
        for (const FileName *f = value; f && !e; f = f->earlier)
            if (f->position < I->position)
                e = in_global(I, p, f->global, w);
    for (size_t i = 0; !e && map_next(&I->env->here->globals, &i, &key, &value);)
        e = in_global(I, p, value, w);
    return e;
}

/* The variable whose value the size is. */
static Expr *in_variables(Infer *I, const Pending *p, const Type *size) {
    for (const FnCtx *fn = p->fn; fn; fn = fn->outer)
        for (uint32_t i = 0; i < fn->nparams; i++)
            if (fn->params[i]->size == size)
                return infer_as_int64(expr_var(fn->params[i], p->span));
    for (size_t i = I->all.len; i-- > 0;) {
        const Local *l = I->all.data[i];
        if (l->var->size == size && l->enter <= p->time && l->leave > p->time && !l->lazy)
            return infer_as_int64(expr_var(l->var, p->span));
    }
    return NULL;
}

static Expr *in_scope(Infer *I, const Pending *p, const Wanted *w) {
    if (w->dim && w->dim->tag == TY_ANY && w->dim->param.value) {
        Expr *e = in_variables(I, p, w->dim);
        if (e)
            return e;
    }
    for (const FnCtx *fn = p->fn; fn; fn = fn->outer) {
        for (uint32_t i = 0; i < fn->nparams; i++) {
            Expr *e = in_value(I, fn->params[i]->type, expr_var(fn->params[i], p->span), w,
                               SUPPLY_DEPTH);
            if (e)
                return e;
        }
    }
    for (size_t i = I->all.len; i-- > 0;) {
        const Local *l = I->all.data[i];
        if (l->enter > p->time || l->leave <= p->time || l->lazy || l->var->scheme)
            continue;
        Expr *e = in_value(I, l->var->type, expr_var(l->var, p->span), w, SUPPLY_DEPTH);
        if (!e && w->dim)
            e = in_opened(I, l, expr_var(l->var, p->span), w);
        if (e)
            return e;
    }
    return w->dim && (w->dim->flags & TYPE_HAS_ANY) ? in_globals(I, p, w) : NULL;
}

Expr *supply_dtype(Infer *I, const Pending *p, Type *dtype) {
    Wanted w = {.dtype = type_resolve(dtype)};
    Expr *e = in_scope(I, p, &w);
    if (e || !I->rule_op || !p->fn || !p->fn->nparams)
        return e;
    /* The relations of a derivative rule may stay open. There a literal takes the dtype of the cotangent. */
    const FnCtx *rule = p->fn;
    while (rule->outer)
        rule = rule->outer;
    Var *ct = rule->params[rule->nparams - 1];
    return type_resolve(ct->type)->tag == TY_TENSOR ? expr_var(ct, p->span) : NULL;
}

static bool is_literal(const Expr *e) { return e->kind == EXPR_LIT || e->kind == EXPR_CONST; }

/* Turns x[0] * 2.0 into let arg = x[0]; arg * 2.0, where `arg` supplies the dtype. */
Expr *supply_beside(Infer *I, Expr *literal, Type *dtype) {
    Expr *call = map_find(&I->beside, literal);
    uint32_t i = 0;
    for (; call && i < call->nargs; i++) {
        Type *t = type_resolve(call->args[i]->type);
        if (!is_literal(call->args[i]) && t->tag == TY_TENSOR && type_equal(t->tensor.dtype, dtype))
            break;
    }
    if (!call || i == call->nargs || (call->attrs && attrs_have_sizes(call->attrs)))
        return NULL;
    if (call->args[i]->kind != EXPR_VAR) {
        LetStack lets = {0};
        Expr *inner = expr_copy(call);
        inner->args = mem_new_n(Expr *, call->nargs);
        for (uint32_t k = 0; k < call->nargs; k++) { /* the arguments keep their order */
            Expr *arg = call->args[k];
            inner->args[k] = is_literal(arg) ? arg : let_stack_add(&lets, arg, "arg");
            if (is_literal(arg))
                map_set(&I->beside, arg, inner);
        }
        *call = *let_stack_wrap(&lets, inner);
        call = inner;
    }
    Expr *like = call->args[i];
    return like->kind == EXPR_VAR ? expr_var(like->var, literal->span) : NULL;
}

Expr *supply_type(Infer *I, const Pending *p, Type *tensor) {
    Wanted w = {.tensor = type_resolve(tensor)};
    return in_scope(I, p, &w);
}

Expr *supply_shape(Infer *I, const Pending *p, Type *shape, Expr *const *args, uint32_t nargs) {
    Wanted w = {.shape = type_resolve(shape)};
    for (uint32_t i = 0; i < nargs; i++) {
        Expr *e = in_value(I, args[i]->type, args[i], &w, SUPPLY_DEPTH);
        if (e)
            return e;
    }
    return in_scope(I, p, &w);
}

static Expr *arithmetic(const Op *op, Expr *a, Expr *b) {
    if (!a || !b)
        return NULL;
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = a;
    args[1] = b;
    return expr_call_op(op, args, 2, attrs_defaults(op), type_scalar(DT_I64), a->span);
}

/* floordiv(a, b), which is 0 where b is 0: evaluate_atom in dim.c. No size b is negative. */
static Expr *quotient(Expr *a, Expr *b) {
    if (!a || !b || b->kind == EXPR_LIT)
        return arithmetic(&op_floor_divide, a, b);
    Expr *one = expr_int(1, DT_I64, b->span);
    Expr *whole = arithmetic(&op_floor_divide, a, arithmetic(&op_maximum, b, one));
    return arithmetic(&op_checked_multiply, whole,
                      arithmetic(&op_minimum, expr_copy(b), expr_copy(one)));
}

static Expr *atom(Infer *I, const Pending *p, const DimAtom *a, Expr *const *args, uint32_t n) {
    if (a->kind == DIM_ATOM_TYPE)
        return supply_dim(I, p, a->type, args, n);
    Expr *left = supply_dim(I, p, a->a, args, n), *right = supply_dim(I, p, a->b, args, n);
    return a->kind == DIM_ATOM_FLOORDIV
               ? quotient(left, right)
               : arithmetic(a->kind == DIM_ATOM_MIN ? &op_minimum : &op_maximum, left, right);
}

/* Whether a parameter that a signature names is in the size. */
static bool has_declared(Type *dim) {
    TypeVec unknowns = {0};
    Map seen = {0};
    type_collect(dim, TY_ANY, &seen, &unknowns);
    for (size_t i = 0; i < unknowns.len; i++)
        if (unknowns.data[i]->param.declared)
            return true;
    return false;
}

Expr *supply_dim(Infer *I, const Pending *p, Type *dim, Expr *const *args, uint32_t nargs) {
    Type *d = dim_normal(dim);
    int64_t n;
    if (type_get_int(d, &n))
        return expr_int(n, DT_I64, p->span);
    Wanted w = {.dim = d};
    for (uint32_t i = 0; i < nargs; i++)
        if (args[i]->kind == EXPR_VAR && args[i]->var->size == d)
            return infer_as_int64(args[i]);
    for (uint32_t i = 0; i < nargs; i++) {
        Expr *e = in_value(I, args[i]->type, args[i], &w, SUPPLY_DEPTH);
        if (e)
            return e;
    }
    /* What a signature says of a parameter is not read from that parameter, which is compared with it. */
    Expr *whole = d->tag == TY_DIM && has_declared(d) ? NULL : in_scope(I, p, &w);
    if (whole || d->tag != TY_DIM)
        return whole;
    const Dim *poly = d->dim;
    Expr *sum = poly->constant || !poly->nterms ? expr_int(poly->constant, DT_I64, p->span) : NULL;
    for (uint32_t t = 0; t < poly->nterms; t++) {
        const DimMonomial *m = &poly->terms[t];
        Expr *product = m->coef != 1 ? expr_int(m->coef, DT_I64, p->span) : NULL;
        for (uint32_t k = 0; k < m->natoms; k++) {
            Expr *a = atom(I, p, m->atoms[k], args, nargs);
            if (!a)
                return NULL;
            product = product ? arithmetic(&op_checked_multiply, product, a) : a;
        }
        sum = sum ? arithmetic(&op_checked_add, sum, product) : product;
    }
    return sum;
}
