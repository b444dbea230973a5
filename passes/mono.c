/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/mono.h"

#include "types/core/check.h"

enum { MOST_PARAMS = 24, DEEPEST = 16 };

static bool is_bound(const Mono *m, const Type *param) {
    for (uint32_t i = 0; i < m->n; i++)
        if (m->from[i] == param)
            return true;
    return false;
}

static void bind_param(Mono *m, Type *param, Type *is) {
    if (m->n == MOST_PARAMS || is_bound(m, param) || !core_is_closed(is))
        return;
    m->from[m->n] = param;
    m->to[m->n++] = type_zonk(is);
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

Mono *mono_of_call(const Expr *fn, Expr *const *args, uint32_t nargs) {
    uint32_t n = nargs < fn->fn->nparams ? nargs : fn->fn->nparams;
    return mono_new(fn->fn->params, args, n, false);
}

Mono *mono_of_rows(Var *const *params, Expr *const *args, uint32_t n) {
    return mono_new(params, args, n, true);
}

Type *mono_type(Mono *m, Type *t) { return m && t ? type_substitute_by(&m->by, t) : t; }

/* The type of an operator's result, where those of its arguments say it. */
static void settle_operator(Expr *e) {
    const char *wrong;
    if (core_is_closed(e->type))
        return;
    Type *result = core_type_of_call(e, &wrong);
    if (result && core_is_closed(result))
        e->type = type_zonk(result);
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
    case EXPR_ZERO: copy->zero_type = mono_type(m, copy->zero_type); break;
    default: break;
    }
}
