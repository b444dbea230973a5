/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/known_type.h"

#include "ops/elementwise.h"
#include "types/core/check.h"

enum {
    DEEPEST = 100,
    MOST_STEPS = 50000 /* of one walk: expressions may be shared many times */
};

/* That of an element-wise operator on floats of one type, and on scalars beside them, as most in the rule of a derivative
 * are; NULL: it is another one, whose relation is asked. */
static Type *type_of_elementwise(const Expr *e) {
    Type *result = NULL;
    DType first, dtype;
    if (!e->a->op->elementwise || e->a->op->elementwise->compares)
        return NULL;
    for (uint32_t i = 0; i < e->nargs; i++) {
        Type *t = type_resolve(e->args[i]->type);
        if (t->tag != TY_TENSOR || !type_is_closed(t) || !type_get_dtype(t, &dtype) ||
            !dtype_is_float(dtype) || (result && dtype != first))
            return NULL;
        if (!result || type_has_rank0(result))
            result = t;
        else if (!type_has_rank0(t) && !type_equal(t, result))
            return NULL;
        first = dtype;
    }
    return result;
}

Type *known_type_of_operator(const Expr *call) {
    const char *wrong;
    Type *result = type_of_elementwise(call);
    if (result)
        return result;
    result = core_type_of_call(call, &wrong);
    return result && type_is_closed(result) ? type_zonk(result) : NULL;
}

static Type *closed_type(KnownTypes *k, const Expr *e, int depth);

bool is_settling(const Expr *e) { return expr_calls_builtin(e, "ad.settle"); }

static Type *type_of_field(Type *data, const Expr *e) {
    if (e->kind == EXPR_PROJ)
        return data->tag == TY_TUPLE && (uint32_t)e->index < data->nargs
                   ? type_resolve(data->args[e->index])
                   : NULL;
    const TypeDecl *decl = data->tag == TY_DATA ? data->decl : NULL;
    if (!decl || decl->nctors != 1 || decl->nexists || decl->nparams != data->nargs)
        return NULL;
    const Ctor *ctor = decl->ctors[0];
    bool has_field = ctor->field_names && (uint32_t)e->index < ctor->nfields &&
                     ctor->field_names[e->index] == e->field;
    if (!has_field)
        return NULL;
    Type *type = type_substitute(ctor->fields[e->index], decl->params, data->args, data->nargs);
    return type_is_closed(type) ? type_resolve(type) : NULL;
}

static Type *type_of_tuple(KnownTypes *k, const Expr *e, int depth) {
    Type **parts = mem_new_n(Type *, (size_t)e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!(parts[i] = closed_type(k, e->args[i], depth)))
            return NULL;
    return type_tuple(parts, e->nargs);
}

/* The type of what a variable is bound to, worked out from that of its parts: an inlined body has the types of the
 * definition, with sizes that are the definition's parameters. */
static Type *find_type(KnownTypes *k, const Expr *value, int depth) {
    if (value->kind == EXPR_PROJ || value->kind == EXPR_FIELD) {
        Type *data = closed_type(k, value->a, depth);
        return data ? type_of_field(data, value) : NULL;
    }
    if (is_settling(value))
        return closed_type(k, value->args[0], depth);
    if (value->kind == EXPR_TUPLE)
        return type_of_tuple(k, value, depth);
    if (value->kind != EXPR_CALL || value->a->kind != EXPR_OP)
        return NULL;
    Expr *call = expr_copy(value);
    call->args = mem_new_n(Expr *, value->nargs + 1);
    for (uint32_t i = 0; i < value->nargs; i++) {
        Type *type = closed_type(k, value->args[i], depth);
        if (!type)
            return NULL;
        call->args[i] = expr_copy(value->args[i]);
        call->args[i]->type = type;
    }
    return known_type_of_operator(call);
}

/* The type of e if nothing of it is left open, else NULL. */
static Type *closed_type(KnownTypes *k, const Expr *e, int depth) {
    Type *type = e->kind == EXPR_VAR ? e->var->type : e->type;
    if (type && type_is_closed(type))
        return type_resolve(type);
    if (depth > DEEPEST || k->steps++ > MOST_STEPS)
        return NULL;
    pass_visit(k->ctx);
    if (e->kind != EXPR_VAR)
        return find_type(k, e, depth + 1);
    Type *known = map_find(&k->types, e->var);
    const Expr *value = map_find(&k->values, e->var);
    if (known || !value)
        return known;
    type = closed_type(k, value, depth + 1);
    if (type)
        map_set(&k->types, e->var, type);
    return type;
}

Type *known_type(KnownTypes *k, const Expr *e) { return closed_type(k, e, 0); }

/* Operators within operators, the innermost first. */
static Expr *give_types(void *ctx, Expr *e) {
    KnownTypes *k = ctx;
    if (e->kind != EXPR_CALL || e->a->kind != EXPR_OP || k->steps++ > MOST_STEPS ||
        mem_stack_left() < 64 * 1024)
        return e;
    Expr *made = expr_map_children(e, give_types, k);
    Type *type = type_is_closed(made->type) ? NULL : closed_type(k, made, 0);
    if (!type)
        return made;
    made = made == e ? expr_copy(e) : made;
    made->type = type;
    return made;
}

Expr *known_types_bind(KnownTypes *k, Var *v, Expr *value) {
    value = give_types(k, value);
    map_set(&k->values, v, value);
    Type *type = type_is_closed(v->type) ? NULL : closed_type(k, value, 0);
    if (type)
        v->type = type;
    return value;
}
