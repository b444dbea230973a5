/* SPDX-License-Identifier: Apache-2.0 */
/* What TVM's operators take besides: calls whose types say so are made calls that Relay's operators take.
 *
 *     nn.dense(x, w, out_dtype="int32")      x of uint8, w of int8     nn.dense(cast(x), cast(w))     of int32
 *     where(c, x, y)                         c of int32                where(cast(c), x, y)           of bool
 *     sum(m)                                 m of bool                 sum(cast(m))                  of int32
 *     sum(m)                                 the same in TVM's text    any(m)                         as TVM sums bools
 *     nn.matmul(x, y, transpose_a=True)      x of three axes           nn.matmul(transpose(x), y)
 *     collapse_sum_to(x, [2, 1])             a shape that is written   the same, with these sizes in its type
 *
 * A type that is not known yet leaves the call as it is, and the operator's relation says what it takes. */
#include <string.h>

#include "types/infer/state.h"

static Expr *cast_to(Expr *e, DType to) {
    Type *t = type_resolve(e->type);
    DType from;
    if (type_get_dtype(t, &from) && from == to)
        return e;
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = e;
    return expr_call_op(&op_cast, args, 1, attrs_with_dtype(&op_cast, to),
                        type_tensor(t->tensor.shape, type_dtype(to)), e->span);
}

/* Products of two dtypes are those of the elements as the result has them. */
static void mix_dtypes(Expr **args, const Attrs *attrs) {
    DType a, b, out;
    if (!type_get_dtype(args[0]->type, &a) || !type_get_dtype(args[1]->type, &b) || a == b ||
        !attrs_dtype(attrs, "out_dtype", &out))
        return;
    args[0] = cast_to(args[0], out);
    args[1] = cast_to(args[1], out);
}

/* The last two axes of a batch of matrices, swapped. */
static Expr *swap_axes(Infer *I, Expr *x, uint32_t rank) {
    AttrValue *values = mem_new_n(AttrValue, op_transpose.nattrs),
              *axes = mem_new_n(AttrValue, rank);
    Attrs *attrs = mem_new(Attrs);
    *attrs = (Attrs){&op_transpose, values};
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = (AttrValue){.kind = ATTR_INT, .i = i + 2 < rank ? i : 2 * rank - 3 - i};
    AttrValue *list = &values[op_attr_index(&op_transpose, "axes")];
    list->kind = ATTR_LIST;
    list->list.items = axes;
    list->list.n = rank;
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = x;
    return infer_op_call(I, &op_transpose, NULL, args, 1, attrs, x->span, x->span);
}

static const Attrs *transpose_batches(Infer *I, Expr **args, const Attrs *attrs) {
    uint32_t rank;
    Type **dims;
    if (!attrs_bool(attrs, "transpose_a") || !type_get_rank(args[0]->type, &rank, &dims) ||
        rank < 3)
        return attrs;
    AttrValue *values = mem_new_n(AttrValue, op_nn_matmul.nattrs);
    memcpy(values, attrs->values, sizeof *values * (size_t)op_nn_matmul.nattrs);
    values[op_attr_index(&op_nn_matmul, "transpose_a")] = (AttrValue){.kind = ATTR_BOOL};
    Attrs *out = mem_new(Attrs);
    *out = (Attrs){&op_nn_matmul, values};
    args[0] = swap_axes(I, args[0], rank);
    return out;
}

/* A tensor that cannot be one of bools, though its dtype may be open as that of `[1, 0]`. */
static bool is_no_bool(const Expr *e) {
    Type *t = type_resolve(e->type);
    return t->tag == TY_TENSOR && !(type_dtype_set(t->tensor.dtype) & DTS_BOOL);
}

/* Size i of a shape that is written or a constant of the module; NULL where it is neither. */
static Type *written_size(const Ast *written, const Expr *e, uint32_t i) {
    int64_t n = -1;
    if (written->kind == AST_TENSOR && written->args.data[i]->kind == AST_INT)
        n = written->args.data[i]->i;
    else if (e->kind == EXPR_CONST && e->tensor)
        n = elem_get_int(tensor_at(e->tensor, i), e->tensor->dtype);
    return n >= 0 ? type_dim_int(n, NULL) : NULL;
}

Type *infer_written_sizes(const Op *op, const Ast *call, Expr *const *args) {
    uint32_t rank;
    Type **dims;
    int64_t size;
    if (op != &op_collapse_sum_to || call->args.len != 2 ||
        !type_get_rank(args[1]->type, &rank, &dims) || rank != 1 || !type_get_int(dims[0], &size) ||
        size > TENSOR_MAX_RANK || type_resolve(args[0]->type)->tag != TY_TENSOR)
        return NULL;
    Type **sizes = mem_new_n(Type *, (size_t)size + 1);
    for (uint32_t i = 0; i < size; i++)
        if (!(sizes[i] = written_size(call->args.data[1], args[1], i)))
            return NULL;
    return type_tensor(type_shape(sizes, (uint32_t)size),
                       type_resolve(args[0]->type)->tensor.dtype);
}

const Op *infer_accept(Infer *I, const Op *op, Expr **args, uint32_t n, const Attrs **attrs) {
    DType t;
    bool packs = op_attr_index(op, "pack_dtype") >= 0; /* words of bits have a dtype of their own */
    if (n == 2 && op->nargs == 2 && op_attr_index(op, "out_dtype") >= 0 && !packs)
        mix_dtypes(args, *attrs);
    if (op == &op_nn_matmul && n == 2)
        *attrs = transpose_batches(I, args, *attrs);
    if (op == &op_where && n == 3 && is_no_bool(args[0]))
        args[0] = cast_to(args[0], DT_BOOL);
    if (op != &op_sum || n != 1 || !type_get_dtype(args[0]->type, &t) || t != DT_BOOL)
        return op;
    if (!I->module->versioned) {
        args[0] = cast_to(args[0], DT_I32);
        return op;
    }
    Attrs *same = mem_new(Attrs);
    *same = (Attrs){&op_any, (*attrs)->values};
    *attrs = same;
    return &op_any;
}
