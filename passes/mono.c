/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/mono.h"

#include "passes/build.h"
#include "passes/known_type.h"
#include "types/infer/infer.h"

enum { MOST_PARAMS = 24, DEEPEST = 16 };

static bool is_bound(const Mono *m, const Type *param) { return map_has(&m->by.done, param); }

/* From now on param is `to` in the copy. */
static void bind(Mono *m, Type *param, Type *to) {
    vec_push(&m->from, param);
    vec_push(&m->to, to);
    map_set(&m->by.done, param, to);
    m->by.mask |= param->flags;
}

/* A parameter or unknown that is another than `of`, of the same kind. */
static Type *fresh_like(Type *of) {
    if (of->tag == TY_ANY)
        return type_any(of->kind, of->origin);
    Type *fresh = type_param(of->param.name, of->kind);
    fresh->param.dtypes = of->param.dtypes;
    fresh->param.each = of->param.each;
    return fresh;
}

/* A type of data, a tuple or a tensor with unknowns for the sizes that are parameters or undetermined; NULL where more
 * than sizes is open. */
static Type *with_unknown_sizes(Type *t) {
    static const TypeTag open[] = {TY_PARAM, TY_VAR};
    TypeVec from = {0}, to = {0};
    t = type_resolve(t);
    if (t->tag != TY_DATA && t->tag != TY_TUPLE && t->tag != TY_TENSOR)
        return NULL;
    for (int k = 0; k < 2; k++) {
        Map seen = {0};
        type_collect(t, open[k], &seen, &from);
    }
    for (size_t i = 0; i < from.len; i++) {
        Type *size = from.data[i];
        if (size->kind != KIND_DIM && size->kind != KIND_SHAPE)
            return NULL;
        bool is_one = size->tag == TY_PARAM && !size->param.each;
        vec_push(&to, is_one ? type_any(size->kind, NULL) : type_any_each(size->kind, NULL));
    }
    Substitution by = substitution_new(from.data, to.data, (uint32_t)from.len);
    return type_substitute_by(&by, t);
}

static void bind_param(Mono *m, Type *param, Type *is) {
    if (m->from.len == MOST_PARAMS || is_bound(m, param))
        return;
    Type *known = type_is_closed(is) || (m->in_scope && !type_has_vars(is)) ? type_zonk(is)
                  : m->opens                                                ? with_unknown_sizes(is)
                                                                            : NULL;
    if (known)
        bind(m, param, known);
}

/* Notes what the parameters in `of` are where a value of type `is` stands in its place. A size that is a number there stays a
 * name in a body that comes in the place of a call: what is wrong about it fails when it runs, where the body was written. */
static void learn(Mono *m, Type *of, Type *is, int depth) {
    of = type_resolve(of);
    is = type_resolve(is);
    if (depth > DEEPEST || of == is || of->kind != is->kind)
        return;
    bool is_name = of->tag == TY_PARAM || (of->tag == TY_ANY && m->in_scope);
    if (is_name && !(m->in_scope && of->param.each)) {
        uint32_t rank;
        Type **dims;
        bool whole = of->kind == KIND_TYPE || of->kind == KIND_DTYPE;
        bool named = m->in_scope && !type_is_closed(is);
        if (of->kind == KIND_SHAPE)
            whole = named || (type_get_rank(is, &rank, &dims) && (rank == 0 || m->has_sizes));
        if (of->kind == KIND_DIM)
            whole = named || m->has_sizes;
        if (whole)
            bind_param(m, of, is);
        return;
    }
    if (of->tag != is->tag || of->nargs != is->nargs)
        return;
    if (of->tag == TY_TENSOR) {
        learn(m, of->tensor.shape, is->tensor.shape, depth + 1);
        learn(m, of->tensor.dtype, is->tensor.dtype, depth + 1);
        return;
    }
    if (of->tag == TY_DATA && of->decl != is->decl)
        return;
    bool is_shape = of->tag == TY_SHAPE && (m->in_scope || m->has_sizes);
    if (of->tag != TY_DATA && of->tag != TY_TUPLE && of->tag != TY_FN && of->tag != TY_REF &&
        !is_shape)
        return;
    bool in_scope = m->in_scope;
    m->in_scope &= of->tag != TY_FN; /* each call of a function has sizes of its own */
    for (uint32_t i = 0; i < of->nargs; i++)
        learn(m, of->args[i], is->args[i], depth + 1);
    if (of->tag == TY_FN)
        learn(m, of->fn.result, is->fn.result, depth + 1);
    m->in_scope = in_scope;
}

static Mono *mono_new(Var *const *params, Expr *const *args, uint32_t n, Mono like) {
    Mono *m = mem_new(Mono);
    *m = like;
    m->by = substitution_new(NULL, NULL, 0);
    for (uint32_t i = 0; i < n; i++)
        if (args[i]->type)
            learn(m, params[i]->type, args[i]->type, 0);
    return m;
}

static Mono *or_null(Mono *m) { return m->from.len ? m : NULL; }

Mono *mono_of_nothing(void) {
    Mono *m = mem_new(Mono);
    m->has_sizes = true;
    return m;
}

Mono *mono_of_call(const Expr *fn, Expr *const *args, uint32_t nargs) {
    uint32_t n = nargs < fn->fn->nparams ? nargs : fn->fn->nparams;
    return or_null(mono_new(fn->fn->params, args, n, (Mono){0}));
}

Mono *mono_of_inlined(const Expr *fn, Expr *const *args, uint32_t nargs) {
    uint32_t n = nargs < fn->fn->nparams ? nargs : fn->fn->nparams;
    Mono *known = mono_new(fn->fn->params, args, n, (Mono){.in_scope = true});
    return mono_apart(known, fn);
}

Mono *mono_apart(Mono *known, const Expr *fn) {
    Mono *m = known ? known : mono_new(NULL, NULL, 0, (Mono){0});
    TypeVec params = {0};
    Map seen = {0};
    for (uint32_t i = 0; i < fn->fn->nparams; i++)
        type_collect(fn->fn->params[i]->type, TY_PARAM, &seen, &params);
    type_collect(fn->fn->body->type, TY_PARAM, &seen, &params);
    for (size_t i = 0; i < params.len; i++)
        if (!is_bound(m, params.data[i]))
            bind(m, params.data[i], fresh_like(params.data[i]));
    m->is_apart = true;
    return m;
}

Mono *mono_of_rows(Var *const *params, Expr *const *args, uint32_t n) {
    return or_null(mono_new(params, args, n, (Mono){.has_sizes = true}));
}

Mono *mono_of_derivative(const Expr *fn, Expr *const *args, uint32_t nargs) {
    uint32_t n = nargs < fn->fn->nparams ? nargs : fn->fn->nparams;
    return or_null(mono_new(fn->fn->params, args, n, (Mono){.opens = true}));
}

/* Gives sizes in t that nothing is known of names of the copy's own. */
static void set_apart(Mono *m, Type *t) {
    TypeVec found = {0};
    if (!(t->flags & (TYPE_HAS_PARAMS | TYPE_HAS_ANY)))
        return;
    type_collect_names(t, m->met, &found);
    for (size_t i = 0; i < found.len; i++) {
        Type *size = found.data[i];
        bool is_size = size->kind == KIND_DIM || size->kind == KIND_SHAPE;
        if (is_size && !is_bound(m, size) && !(size->tag == TY_ANY && size->param.each))
            bind(m, size, fresh_like(size));
    }
}

Type *mono_type(Mono *m, Type *t) {
    if (m && t && m->is_apart)
        set_apart(m, t);
    return m && t ? type_substitute_by(&m->by, t) : t;
}

/* The type of an operator's result, where those of its arguments say it. */
static void settle_operator(Expr *e) {
    if (type_is_closed(e->type))
        return;
    Expr known = *e; /* where a slice begins and ends, as far as that is written there */
    known.attrs = infer_index_attrs(e);
    Type *result = known_type_of_operator(&known);
    if (result)
        e->type = result;
}

/* A field that was read from any record which has it, where the copy says which record that is. */
static void settle_field(const Mono *m, Expr *e) {
    Type *t = type_resolve(e->a->type);
    if (e->index >= 0 || t->tag != TY_DATA || t->decl->nctors != 1 || t->decl->nexists ||
        t->decl->nparams != t->nargs)
        return;
    const Ctor *ctor = t->decl->ctors[0];
    for (uint32_t i = 0; ctor->field_names && i < ctor->nfields; i++) {
        if (ctor->field_names[i] != e->field)
            continue;
        Type *type = type_substitute(ctor->fields[i], t->decl->params, t->args, t->nargs);
        e->index = (int)i;
        if (!type_is_closed(e->type) && (m->opens || type_is_closed(type)))
            e->type = type_zonk(type);
        return;
    }
}

/* An index into what the copy says is a tensor. */
static void settle_index(Expr *e) {
    if (type_resolve(e->a->type)->tag != TY_TENSOR || type_is_closed(e->type))
        return;
    Expr *call = index_as_call(e);
    settle_operator(call);
    e->type = call->type;
}

/* A constant stands where a variable of open sizes stood. */
static void settle_constant(Expr *e) {
    if (type_is_closed(e->type))
        return;
    uint32_t rank = (uint32_t)e->tensor->rank;
    Type **dims = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = type_dim_int(e->tensor->shape[i], NULL);
    e->type = type_tensor(type_shape(dims, rank), type_dtype(e->tensor->dtype));
}

void mono_settle(Mono *m, Expr *copy) {
    DType t;
    copy->type = mono_type(m, copy->type);
    switch (copy->kind) {
    case EXPR_CALL:
        if (copy->a->kind == EXPR_OP)
            settle_operator(copy);
        break;
    case EXPR_LIT:
        if (copy->like && copy->like->type && type_get_dtype(copy->like->type, &t)) {
            copy->like = NULL;
            copy->type = type_scalar(t);
        }
        break;
    case EXPR_CONST: settle_constant(copy); break;
    case EXPR_FIELD: settle_field(m, copy); break;
    case EXPR_INDEX: settle_index(copy); break;
    case EXPR_ZERO: copy->zero_type = mono_type(m, copy->zero_type); break;
    default: break;
    }
}
