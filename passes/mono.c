/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/mono.h"

#include "passes/build.h"
#include "passes/known_type.h"
#include "types/core/check.h"
#include "types/infer/infer.h"

enum { MOST_PARAMS = 24, DEEPEST = 16 };

static bool is_bound(const Mono *m, const Type *param) {
    for (uint32_t i = 0; i < m->n; i++)
        if (m->from[i] == param)
            return true;
    return false;
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
        Kind kind = from.data[i]->kind;
        if (kind != KIND_DIM && kind != KIND_SHAPE)
            return NULL;
        vec_push(&to, type_any(kind, NULL));
    }
    Substitution by = substitution_new(from.data, to.data, (uint32_t)from.len);
    return type_substitute_by(&by, t);
}

static void bind_param(Mono *m, Type *param, Type *is) {
    if (m->n == MOST_PARAMS || is_bound(m, param))
        return;
    Type *known = core_is_closed(is) ? type_zonk(is) : m->opens ? with_unknown_sizes(is) : NULL;
    if (!known)
        return;
    m->from[m->n] = param;
    m->to[m->n++] = known;
}

/* Notes what the parameters in `of` are where a value of type `is` stands in its place. */
static void learn(Mono *m, Type *of, Type *is, int depth) {
    of = type_resolve(of);
    is = type_resolve(is);
    if (depth > DEEPEST || of == is || of->kind != is->kind)
        return;
    if (of->tag == TY_PARAM) {
        uint32_t rank;
        Type **dims;
        bool whole = of->kind == KIND_TYPE || of->kind == KIND_DTYPE;
        if (of->kind == KIND_SHAPE)
            whole = type_get_rank(is, &rank, &dims) && (rank == 0 || m->has_sizes);
        if (of->kind == KIND_DIM)
            whole = m->has_sizes;
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
    bool is_shape = of->tag == TY_SHAPE && m->has_sizes;
    if (of->tag != TY_DATA && of->tag != TY_TUPLE && of->tag != TY_FN && of->tag != TY_REF &&
        !is_shape)
        return;
    for (uint32_t i = 0; i < of->nargs; i++)
        learn(m, of->args[i], is->args[i], depth + 1);
    if (of->tag == TY_FN)
        learn(m, of->fn.result, is->fn.result, depth + 1);
}

static Mono *mono_new(Var *const *params, Expr *const *args, uint32_t n, bool has_sizes) {
    Mono *m = mem_new(Mono);
    m->has_sizes = has_sizes;
    m->from = mem_new_n(Type *, MOST_PARAMS);
    m->to = mem_new_n(Type *, MOST_PARAMS);
    for (uint32_t i = 0; i < n; i++)
        if (args[i]->type)
            learn(m, params[i]->type, args[i]->type, 0);
    if (!m->n)
        return NULL;
    m->by = substitution_new(m->from, m->to, m->n);
    return m;
}

Mono *mono_of_nothing(void) {
    Mono *m = mem_new(Mono);
    m->has_sizes = true;
    return m;
}

Mono *mono_of_call(const Expr *fn, Expr *const *args, uint32_t nargs) {
    uint32_t n = nargs < fn->fn->nparams ? nargs : fn->fn->nparams;
    return mono_new(fn->fn->params, args, n, false);
}

Mono *mono_apart(const Mono *known, const Expr *fn) {
    Mono *m = mem_new(Mono);
    if (known)
        *m = *known;
    TypeVec params = {0}, from = {0}, to = {0};
    Map seen = {0};
    for (uint32_t i = 0; i < m->n; i++) {
        vec_push(&from, m->from[i]);
        vec_push(&to, m->to[i]);
    }
    for (uint32_t i = 0; i < fn->fn->nparams; i++)
        type_collect(fn->fn->params[i]->type, TY_PARAM, &seen, &params);
    type_collect(fn->fn->body->type, TY_PARAM, &seen, &params);
    for (size_t i = 0; i < params.len; i++) {
        Type *param = params.data[i];
        if (is_bound(m, param))
            continue;
        Type *fresh = type_param(param->param.name, param->kind);
        fresh->param.dtypes = param->param.dtypes;
        vec_push(&from, param);
        vec_push(&to, fresh);
    }
    m->from = from.data;
    m->to = to.data;
    m->n = (uint32_t)from.len;
    m->by = substitution_new(m->from, m->to, m->n);
    return m->n ? m : NULL;
}

Mono *mono_of_rows(Var *const *params, Expr *const *args, uint32_t n) {
    return mono_new(params, args, n, true);
}

Mono *mono_of_derivative(const Expr *fn, Expr *const *args, uint32_t nargs) {
    Mono *m = mem_new(Mono);
    m->opens = true;
    m->from = mem_new_n(Type *, MOST_PARAMS);
    m->to = mem_new_n(Type *, MOST_PARAMS);
    for (uint32_t i = 0; i < nargs && i < fn->fn->nparams; i++)
        if (args[i]->type)
            learn(m, fn->fn->params[i]->type, args[i]->type, 0);
    if (!m->n)
        return NULL;
    m->by = substitution_new(m->from, m->to, m->n);
    return m;
}

Type *mono_type(Mono *m, Type *t) { return m && t ? type_substitute_by(&m->by, t) : t; }

/* The type of an operator's result, where those of its arguments say it. */
static void settle_operator(Expr *e) {
    if (core_is_closed(e->type))
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
        if (!core_is_closed(e->type) && (m->opens || core_is_closed(type)))
            e->type = type_zonk(type);
        return;
    }
}

/* An index into what the copy says is a tensor. */
static void settle_index(Expr *e) {
    if (type_resolve(e->a->type)->tag != TY_TENSOR || core_is_closed(e->type))
        return;
    Expr *call = index_as_call(e);
    settle_operator(call);
    e->type = call->type;
}

/* A constant stands where a variable of open sizes stood. */
static void settle_constant(Expr *e) {
    if (core_is_closed(e->type))
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
