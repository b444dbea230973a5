/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes from values (docs/sizes.md): integer expressions among the attributes of operators. */
#include <string.h>

#include "types/infer/state.h"

void infer_note_constant(const Expr *value, Type **size) {
    int64_t n;
    Type *t = expr_is_integer(value) && value->kind != EXPR_VAR ? expr_size(value) : NULL;
    if (value->kind == EXPR_VAR && value->var->size)
        t = value->var->size;
    if (t && type_get_int(t, &n))
        *size = t;
}

/* What arithmetic of dims is as an expression, where one of these names is called with two arguments. */
static const char *operator_of(const char *name) {
    static const char *const names[][2] = {
        {"floordiv", "floor_divide"}, {"min", "minimum"}, {"max", "maximum"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* The expression with the dims' floordiv, min and max as operators. */
static Ast *with_operators(Infer *I, Ast *e) {
    bool call = e->kind == AST_CALL && e->a->kind == AST_NAME && e->args.len == 2 && !e->attrs.len;
    const char *op = call && !map_has(&I->locals, e->a->name.sym)
                         ? operator_of(e->a->name.sym->text)
                         : NULL;
    if (!op && e->kind != AST_BINARY)
        return e;
    Ast *copy = mem_new(Ast);
    *copy = *e;
    if (op) {
        copy->a = mem_new(Ast);
        *copy->a = *e->a;
        copy->a->name.sym = sym_intern(op);
        copy->args = (AstVec){0};
        for (size_t i = 0; i < e->args.len; i++)
            vec_push(&copy->args, with_operators(I, e->args.data[i]));
    } else {
        copy->a = with_operators(I, e->a);
        copy->b = with_operators(I, e->b);
    }
    return copy;
}

/* A size is one integer of any dtype, and int32 where nothing else says what it is. */
static bool make_integer(Infer *I, Expr *e) {
    Type *dtype = solver_var(I->s, KIND_DTYPE);
    if (!solver_restrict(I->s, dtype, DTS_INT) ||
        !solver_unify(I->s, e->type, type_tensor(type_shape(NULL, 0), dtype))) {
        Diag *d = infer_error(I, DIAG_R0201, e->span, "a size is one integer, found %s",
                              type_text(e->type));
        if (d)
            diag_set_label(d, "%s", type_text(e->type));
        return false;
    }
    dtype = type_resolve(dtype);
    if (dtype->tag == TY_VAR && e->kind == EXPR_LIT && !dtype_holds_int(DT_I32, e->i, false))
        solver_unify(I->s, dtype, type_dtype(DT_I64));
    else if (dtype->tag == TY_VAR) {
        Fallback f = {dtype, DT_I32};
        vec_push(&I->fallbacks, f);
    }
    return true;
}

Expr *infer_as_int64(Expr *e) {
    DType t;
    if (type_get_dtype(e->type, &t) && t == DT_I64)
        return e;
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = e;
    return expr_call_op(&op_cast, args, 1, attrs_with_dtype(&op_cast, DT_I64), type_scalar(DT_I64),
                        e->span);
}

Type *infer_size(Infer *I, Ast *ast) {
    Expr *e = infer_expr(I, with_operators(I, ast), NULL);
    if (type_resolve(e->type)->tag == TY_ERROR || !make_integer(I, e))
        return NULL;
    Type *size = expr_size(e);
    if (!size) {
        Origin *origin = mem_new(Origin);
        *origin = (Origin){.kind = ORIGIN_OPERATOR, .span = e->span};
        size = type_any(KIND_DIM, NULL);
        map_set(&I->sizes, size, e);
    }
    return size;
}
