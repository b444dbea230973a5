/* SPDX-License-Identifier: Apache-2.0 */
/* Casts `(float64) e`, `(Tensor[(3,), float32]) e`, and `Zero T`. A dtype that is a type parameter
 * is taken, when running, from a tensor among the parameters: infer_settle. */
#include <string.h>

#include "types/infer/state.h"

static bool is_tensor_type(Infer *I, const AstType *t) {
    if (t->kind == AST_TYPE_TENSOR)
        return true;
    if (t->kind != AST_TYPE_NAME)
        return false;
    DType dtype;
    if (dtype_find(t->name->text, t->name->len, &dtype))
        return true;
    TypeParam *p = type_scope_find(I, t->name);
    return p && (!p->kind_known || p->kind == KIND_DTYPE);
}

/* Whether a number converts to each integer dtype of the set alike from float32 and from float64. */
static bool is_same_of_both(double number, DTypeSet set) {
    float narrow = (float)number;
    for (int t = 0; t < DTYPE_COUNT; t++) {
        unsigned char a[8] = {0}, b[8] = {0};
        if (!(set & DT_BIT(t) & ~DTS_FLOAT))
            continue;
        elem_cast(a, (DType)t, &number, DT_F64);
        elem_cast(b, (DType)t, &narrow, DT_F32);
        if (memcmp(a, b, sizeof a) != 0)
            return false;
    }
    return true;
}

void solver_round_once(Solver *s, const Expr *e, Type *dtype) {
    Type *t = e && (e->kind == EXPR_LIT || e->kind == EXPR_CONST) ? type_resolve(e->type) : NULL;
    Type *own = t && t->tag == TY_TENSOR ? type_resolve(t->tensor.dtype) : NULL;
    bool weak = own && own->tag == TY_VAR && own->var.weak && !(own->var.dtypes & ~DTS_FLOAT);
    dtype = type_resolve(dtype);
    DTypeSet set = dtype->tag == TY_VAR ? 0 : type_dtype_set(dtype);
    if (!weak || !(set & DTS_FLOAT))
        return;
    if (!(set & ~DTS_FLOAT))
        solver_unify(s, own, dtype);
    else if (e->kind == EXPR_LIT &&
             is_same_of_both(
                 e->f, set)) /* the dtype is a declared parameter, which may be any of the set */
        solver_unify(s, own, type_dtype(DT_F64));
}

Expr *infer_cast(Infer *I, Ast *e) {
    Expr *a = infer_expr(I, e->a, NULL);
    if (type_resolve(a->type)->tag == TY_ERROR)
        return infer_error_expr(e->span);
    if (!is_tensor_type(I, e->type)) {
        infer_error(I, DIAG_R0107, e->type->span, "a cast is to a dtype or a tensor type");
        return infer_error_expr(e->span);
    }
    Type *want = NULL, *dtype;
    if (e->type->kind == AST_TYPE_TENSOR) {
        want = infer_ast_type(I, e->type, KIND_TYPE);
        if (want->tag != TY_TENSOR)
            return infer_error_expr(e->span);
        dtype = want->tensor.dtype;
    } else {
        dtype = infer_ast_type(I, e->type, KIND_DTYPE);
    }
    /* from Tensor[s, b] to Tensor[s, dtype] */
    Type *shape = solver_var(I->s, KIND_SHAPE);
    solver_at(I->s, a->span, "the value cast");
    if (!solver_unify(I->s, a->type, type_tensor(shape, solver_var(I->s, KIND_DTYPE)))) {
        Diag *d = infer_error(I, DIAG_R0201, a->span, "only tensors are cast, found %s",
                              type_text(a->type));
        if (d)
            diag_set_label(d, "%s", type_text(a->type));
        return infer_error_expr(e->span);
    }
    solver_round_once(I->s, a, dtype);
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = a;
    Expr *call = expr_call_op(&op_cast, args, 1, NULL, type_tensor(shape, dtype), e->span);
    infer_note(I, PENDING_CAST, call);
    if (want)
        return infer_flow(I, call, want, "the value cast", e->type->span);
    return call;
}

Expr *infer_zero(Infer *I, Ast *e) {
    Type *t = infer_ast_type(I, e->type, KIND_TYPE);
    Expr *z = expr_new(EXPR_ZERO, t, e->span);
    z->zero_type = t;
    infer_note(I, PENDING_ZERO, z);
    return z;
}
