/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/batch.h"

#include "passes/build.h"
#include "passes/effects.h"
#include "types/core/check.h"

#include <string.h>

#define OP(symbol) extern const Op op_##symbol;
#define INTERNAL(symbol) extern const Op op_##symbol;
#include "ops/ops.def"
#undef INTERNAL
#undef OP

/* A value of the function. */
typedef struct Row {
    Expr *e;         /* in the batched code; NULL of a tuple of which some part has rows */
    bool has_rows;   /* e has the rows as its first axis */
    uint32_t nparts; /* of such a tuple */
    struct Row **parts;
} Row;

typedef struct Batch {
    PassCtx *ctx;
    Build b;
    Block block;
    Type *count;
    Map rows; /* Var -> Row */
    Effects *effects;
    const char *why;
} Batch;

static Row *batch(Batch *m, Expr *e);

static Row *give_up(Batch *m, const char *why) {
    if (!m->why)
        m->why = why;
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static Row *row_new(Expr *e, bool has_rows) {
    Row *r = mem_new(Row);
    *r = (Row){.e = e, .has_rows = has_rows};
    return r;
}

static bool depends_on_rows(const Row *r) { return r->has_rows || r->parts; }

/* The type of all rows of which one has the type t, a tensor of known sizes. */
static Type *type_of_rows(const Batch *m, Type *t) {
    uint32_t rank;
    Type **dims;
    if (!type_get_rank(t, &rank, &dims))
        BUG("rows of a type that is not known");
    Type **all = mem_new_n(Type *, (size_t)rank + 1);
    all[0] = m->count;
    for (uint32_t i = 0; i < rank; i++)
        all[i + 1] = dims[i];
    return type_tensor(type_shape(all, rank + 1), type_resolve(t)->tensor.dtype);
}

static uint32_t rank_of(const Expr *e) {
    uint32_t rank = 0;
    Type **dims;
    (void)type_get_rank(e->type, &rank, &dims);
    return rank;
}

static Row *add_rows(Batch *m, Expr *e) { return row_new(block_let(&m->block, "v", e), true); }

static Expr *call_op(const Batch *m, const Op *op, Expr *x, Expr *y, const Attrs *attrs,
                     Type *type) {
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = x;
    args[1] = y;
    return expr_call_op(op, args, y ? 2 : 1, attrs, type, m->b.span);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static AttrValue *copy_values(const Attrs *attrs) {
    AttrValue *values = mem_new_n(AttrValue, attrs->op->nattrs + 1);
    for (int i = 0; i < attrs->op->nattrs; i++)
        values[i] = attrs->values[i];
    return values;
}

static const Attrs *attrs_with(const Op *op, AttrValue *values) {
    Attrs *attrs = mem_new(Attrs);
    *attrs = (Attrs){op, values};
    return attrs;
}

static AttrValue int_value(int64_t i) { return (AttrValue){.kind = ATTR_INT, .i = i}; }

static AttrValue list_value(const int64_t *items, uint32_t n) {
    AttrValue *values = mem_new_n(AttrValue, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        values[i] = int_value(items[i]);
    AttrValue v = {.kind = ATTR_LIST};
    v.list.items = values;
    v.list.n = n;
    return v;
}

static const Attrs *with_value(const Attrs *attrs, const char *name, AttrValue v) {
    AttrValue *values = copy_values(attrs);
    values[op_attr_index(attrs->op, name)] = v;
    return attrs_with(attrs->op, values);
}

/* `axes` new axes of size 1 before axis `at` of x. */
static Expr *insert_axes(Batch *m, Expr *x, int64_t at, int64_t axes) {
    uint32_t rank, n = 0;
    Type **dims;
    if (axes == 0 || !type_get_rank(x->type, &rank, &dims))
        return x;
    AttrValue *values = mem_new_n(AttrValue, 2);
    values[op_attr_index(&op_expand_dims, "axis")] = int_value(at);
    values[op_attr_index(&op_expand_dims, "num_newaxis")] = int_value(axes);
    Type **all = mem_new_n(Type *, rank + (size_t)axes);
    for (uint32_t i = 0; i <= rank; i++) {
        for (int64_t k = 0; i == at && k < axes; k++)
            all[n++] = type_dim_int(1, NULL);
        if (i < rank)
            all[n++] = dims[i];
    }
    Type *type = type_tensor(type_shape(all, n), type_resolve(x->type)->tensor.dtype);
    return block_let(
        &m->block, "v",
        call_op(m, &op_expand_dims, x, NULL, attrs_with(&op_expand_dims, values), type));
}

/* x without these axes of size 1; its type is then that of the rows of `row`. */
static Row *remove_axes(Batch *m, Expr *x, const int64_t *axes, uint32_t n, Type *row) {
    AttrValue *values = mem_new_n(AttrValue, 1);
    if (n == 0)
        return row_new(x, true);
    values[0] = list_value(axes, n);
    return add_rows(
        m, call_op(m, &op_squeeze, x, NULL, attrs_with(&op_squeeze, values), type_of_rows(m, row)));
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* The call with these arguments and attributes, at all rows. */
static Row *call_again(Batch *m, const Expr *call, Expr **args, const Attrs *attrs) {
    Expr *copy = expr_copy(call);
    copy->args = args;
    copy->attrs = attrs;
    copy->type = type_of_rows(m, call->type);
    return add_rows(m, copy);
}

/* Axes are matched from the last one, so those of an argument of fewer come behind its rows. */
static Row *rule_elementwise(Batch *m, const Expr *call, Row **in) {
    Expr **args = mem_new_n(Expr *, (size_t)call->nargs + 1);
    for (uint32_t i = 0; i < call->nargs; i++) {
        int64_t missing = (int64_t)rank_of(call) - (int64_t)rank_of(call->args[i]);
        args[i] = in[i]->e;
        if (in[i]->has_rows && missing > 0)
            args[i] = insert_axes(m, in[i]->e, 1, missing);
    }
    return call_again(m, call, args, call->attrs);
}

static Expr **only_arg(Row **in) {
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = in[0]->e;
    return args;
}

static Row *rule_reduce(Batch *m, const Expr *call, Row **in) {
    uint32_t rank = rank_of(call->args[0]), n = 0, named = 0;
    const int64_t *axes = NULL;
    bool is_named[TENSOR_MAX_RANK] = {false}, none = attrs_is_none(call->attrs, "axis");
    bool exclude = attrs_bool(call->attrs, "exclude");
    int64_t out[TENSOR_MAX_RANK];
    if (rank == 0 || (!none && !attrs_ints(call->attrs, "axis", &axes, &named)))
        return give_up(m, "a reduction of scalars");
    for (uint32_t i = 0; i < named; i++)
        is_named[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
    for (uint32_t i = 0; i < rank; i++)
        if (none || is_named[i] != exclude)
            out[n++] = (int64_t)i + 1;
    if (n == 0)
        return give_up(m, "a reduction of no axes");
    AttrValue *values = copy_values(call->attrs);
    values[op_attr_index(call->a->op, "axis")] = list_value(out, n);
    values[op_attr_index(call->a->op, "exclude")] = (AttrValue){.kind = ATTR_BOOL, .i = 0};
    return call_again(m, call, only_arg(in), attrs_with(call->a->op, values));
}

/* An axis that is counted from the front is one further. */
static const Attrs *shift_axis(const Expr *call) {
    int64_t axis = attrs_int(call->attrs, "axis");
    return axis < 0 ? call->attrs : with_value(call->attrs, "axis", int_value(axis + 1));
}

static Row *rule_one_axis(Batch *m, const Expr *call, Row **in) {
    return call_again(m, call, only_arg(in), shift_axis(call));
}

static Row *rule_transpose(Batch *m, const Expr *call, Row **in) {
    uint32_t rank = rank_of(call->args[0]), n;
    const int64_t *axes;
    int64_t out[TENSOR_MAX_RANK + 1] = {0};
    bool none = attrs_is_none(call->attrs, "axes");
    if (!none && !attrs_ints(call->attrs, "axes", &axes, &n))
        return give_up(m, "axes that are not known");
    for (uint32_t i = 0; i < rank; i++)
        out[i + 1] = 1 + (none ? rank - 1 - i : axes[i] < 0 ? axes[i] + rank : axes[i]);
    return call_again(m, call, only_arg(in),
                      with_value(call->attrs, "axes", list_value(out, rank + 1)));
}

static Row *rule_squeeze(Batch *m, const Expr *call, Row **in) {
    uint32_t rank, n = 0, named = 0;
    const int64_t *axes = NULL;
    int64_t out[TENSOR_MAX_RANK], size;
    Type **dims;
    bool none = attrs_is_none(call->attrs, "axis");
    if (!type_get_rank(call->args[0]->type, &rank, &dims) ||
        (!none && !attrs_ints(call->attrs, "axis", &axes, &named)))
        return give_up(m, "axes that are not known");
    for (uint32_t i = 0; none && i < rank; i++)
        if (type_get_int(dims[i], &size) && size == 1)
            out[n++] = (int64_t)i + 1;
    for (uint32_t i = 0; i < named; i++)
        out[n++] = 1 + (axes[i] < 0 ? axes[i] + rank : axes[i]);
    return remove_axes(m, in[0]->e, out, n, call->type);
}

static Row *rule_reshape(Batch *m, const Expr *call, Row **in) {
    uint32_t rank;
    Type **dims;
    int64_t out[TENSOR_MAX_RANK + 1] = {0}; /* a 0 in front takes over the size that is there */
    if (!type_get_rank(call->type, &rank, &dims))
        return give_up(m, "a shape that is not known");
    for (uint32_t i = 0; i < rank; i++)
        if (!type_get_int(dims[i], &out[i + 1]) || out[i + 1] == 0)
            return give_up(m, "a reshape to no elements");
    AttrValue *values = copy_values(call->attrs);
    values[op_attr_index(call->a->op, "newshape")] = list_value(out, rank + 1);
    values[op_attr_index(call->a->op, "allowzero")] = (AttrValue){.kind = ATTR_BOOL, .i = 0};
    return call_again(m, call, only_arg(in), attrs_with(call->a->op, values));
}

static Row *rule_joined(Batch *m, const Expr *call, Row **in) {
    if (!in[0]->parts)
        return give_up(m, "tensors joined with others that are the same for all rows");
    Expr **parts = mem_new_n(Expr *, (size_t)in[0]->nparts + 1);
    for (uint32_t i = 0; i < in[0]->nparts; i++) {
        if (!in[0]->parts[i]->has_rows)
            return give_up(m, "tensors joined with others that are the same for all rows");
        parts[i] = in[0]->parts[i]->e;
    }
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = b_tuple(&m->b, parts, in[0]->nparts);
    return call_again(m, call, args, shift_axis(call));
}

/* x[…] of integers that are written there, and of slices. */
static Row *rule_index(Batch *m, const Expr *call, Row **in) {
    const char *spec = attrs_text(call->attrs, "spec");
    if (!in[0]->has_rows || in[1]->parts || strchr(spec, 'v') || strchr(spec, 'i'))
        return give_up(m, "an index that may be out of range");
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = in[0]->e;
    args[1] = in[1]->e;
    AttrValue v = {.kind = ATTR_STRING, .text = fmt_text(":0%s", spec)};
    return call_again(m, call, args, with_value(call->attrs, "spec", v));
}

/* A vector on a side that has rows is a matrix of one row or column, unless the other side is the same for all rows and
 * takes all rows as one matrix. */
static Row *rule_matmul(Batch *m, const Expr *call, Row **in) {
    uint32_t left = rank_of(call->args[0]), right = rank_of(call->args[1]), n = 0;
    int64_t axes[2];
    Expr *a = in[0]->e, *b = in[1]->e;
    if (left > 2 || right > 2 || left == 0 || right == 0)
        return give_up(m, "a product of tensors of more than two axes");
    bool row = in[0]->has_rows && left == 1 && in[1]->has_rows;
    bool column = in[1]->has_rows && right == 1;
    if (row) {
        a = insert_axes(m, a, 1, 1);
        axes[n++] = 1;
    }
    if (column) {
        b = insert_axes(m, b, 2, 1);
        axes[n] = left == 1 && !row ? 1 : 2;
        n++;
    }
    if (n == 0)
        return add_rows(m, call_op(m, call->a->op, a, b, call->attrs, type_of_rows(m, call->type)));
    uint32_t rank = rank_of(call) + 1 + n, at = 0;
    Type **dims, **all = mem_new_n(Type *, rank), *rows = type_of_rows(m, call->type);
    uint32_t had;
    if (!type_get_rank(rows, &had, &dims))
        BUG("rows without a rank");
    for (uint32_t i = 0; i < rank; i++) {
        bool made = (n > 0 && axes[0] == i) || (n > 1 && axes[1] == i);
        all[i] = made ? type_dim_int(1, NULL) : dims[at++];
    }
    Type *type = type_tensor(type_shape(all, rank), type_resolve(rows)->tensor.dtype);
    Expr *product = block_let(&m->block, "v", call_op(m, call->a->op, a, b, call->attrs, type));
    return remove_axes(m, product, axes, n, call->type);
}

static Row *rule_dense(Batch *m, const Expr *call, Row **in) {
    if (!in[1]->has_rows) {
        Expr **args = mem_new_n(Expr *, 2);
        args[0] = in[0]->e;
        args[1] = in[1]->e;
        return call_again(m, call, args, call->attrs);
    }
    if (!in[0]->has_rows || rank_of(call->args[0]) != 2 || !attrs_is_none(call->attrs, "out_dtype"))
        return give_up(m, "`nn.dense` of weights that differ from row to row");
    const Attrs *attrs = with_value(attrs_defaults(&op_nn_batch_matmul), "transpose_b",
                                    (AttrValue){.kind = ATTR_BOOL, .i = 1});
    return add_rows(
        m, call_op(m, &op_nn_batch_matmul, in[0]->e, in[1]->e, attrs, type_of_rows(m, call->type)));
}

typedef Row *(*BatchRule)(Batch *m, const Expr *call, Row **in);

static BatchRule find_rule(const Op *op) {
#define BATCH(symbol, rule)                                                                        \
    if (op == &op_##symbol)                                                                        \
        return rule;
#include "passes/batch.def"
#undef BATCH
    if (op->elementwise || op->scalar == OP_SCALAR_ZERO || op->scalar == OP_SCALAR_ONE ||
        op->scalar == OP_SCALAR_SELECT)
        return rule_elementwise;
    bool reduces = op->pattern == OP_REDUCE && op->nargs == 1;
    return reduces && op_attr_index(op, "axis") >= 0 && op_attr_index(op, "exclude") >= 0
               ? rule_reduce
               : NULL;
}

/* ---- forms ----------------------------------------------------------------------------------- */

static bool mentions_rows(const Batch *m, Expr *e) {
    VarVec vars = {0};
    expr_free_vars(e, &vars);
    for (size_t i = 0; i < vars.len; i++) {
        const Row *r = map_find(&m->rows, vars.data[i]);
        if (r && depends_on_rows(r))
            return true;
    }
    return false;
}

/* Whether a call of an operator gives a value for all elements of its arguments. */
static bool never_fails(Batch *m, const Expr *e) {
    const Op *op = e->a->op;
    const char *wrong;
    if (!find_rule(op))
        give_up(m, fmt_text("`%s` has no rule for all rows at once", op->name));
    else if (e->nsizes || !core_is_closed(e->type) || !core_type_of_call(e, &wrong))
        give_up(m, fmt_text("sizes of `%s` are not known", op_subject(op)));
    else if (op->elementwise && op_elements_fail(op, type_resolve(e->args[0]->type)))
        give_up(m, fmt_text("`%s` may fail", op_subject(op)));
    return !m->why;
}

static Row *batch_operator(Batch *m, Expr *e) {
    bool any = false;
    if (!never_fails(m, e))
        return NULL;
    Row **in = mem_new_n(Row *, (size_t)e->nargs + 1);
    Expr *same = expr_copy(e);
    same->args = mem_new_n(Expr *, (size_t)e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++) {
        in[i] = batch(m, e->args[i]);
        if (!in[i] || (in[i]->parts && !op_arg(e->a->op, (int)i).tuple))
            return give_up(m, "a tuple where a tensor is expected");
        same->args[i] = in[i]->e;
        any |= depends_on_rows(in[i]);
    }
    return any ? find_rule(e->a->op)(m, e, in) : row_new(same, false);
}

static Row *batch_tuple(Batch *m, Expr *e) {
    Row *r = row_new(NULL, false);
    r->nparts = e->nargs;
    r->parts = mem_new_n(Row *, (size_t)e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!(r->parts[i] = batch(m, e->args[i])))
            return NULL;
    return r;
}

static Row *batch_form(Batch *m, Expr *e) {
    switch (e->kind) {
    case EXPR_VAR: return map_find(&m->rows, e->var);
    case EXPR_TUPLE: return batch_tuple(m, e);
    case EXPR_PROJ: {
        Row *r = batch(m, e->a);
        if (r && (!r->parts || (uint32_t)e->index >= r->nparts))
            return give_up(m, "a part of a tuple that is not known");
        return r ? r->parts[e->index] : NULL;
    }
    case EXPR_CALL:
        if (e->a->kind == EXPR_OP)
            return batch_operator(m, e);
        return give_up(m, "a call of a function that is not built in here");
    case EXPR_TENSOR: {
        Expr **args = mem_new_n(Expr *, 1);
        args[0] = expr_tuple(e->args, e->nargs, e->span);
        return batch_operator(
            m, expr_call_op(&op_stack, args, 1, attrs_defaults(&op_stack), e->type, e->span));
    }
    case EXPR_IF:
    case EXPR_MATCH: return give_up(m, "a choice that differs from row to row");
    default: return give_up(m, "a form that has no rule for all rows at once");
    }
}

/* The value of e at all rows; what binds names goes into the block. */
static Row *batch(Batch *m, Expr *e) {
    for (; e->kind == EXPR_LET && !m->why; e = e->body) {
        Row *r = batch(m, e->a);
        if (!r || e->rec)
            return give_up(m, "a function made for each row");
        if (e->var && !depends_on_rows(r)) {
            block_bind(&m->block, e, r->e);
            r = row_new(expr_var(e->var, e->span), false);
        }
        if (e->var)
            map_set(&m->rows, e->var, r);
    }
    if (m->why)
        return NULL;
    if (mentions_rows(m, e))
        return batch_form(m, e);
    bool fails = effects_at(m->effects, e) & EFFECT_FAILS;
    if (fails && e->kind == EXPR_CALL && e->a->kind == EXPR_OP)
        return batch_operator(m, e);
    if (fails && e->kind != EXPR_GLOBAL)
        return give_up(m, "something that may fail");
    return row_new(e, false);
}

/* ---- a whole function ------------------------------------------------------------------------ */

static Row *row_of_arg(Batch *m, Expr *x, Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        return row_new(x, true);
    if (t->tag != TY_TUPLE)
        return give_up(m, "an argument that is no tensor");
    Row *r = row_new(NULL, false);
    r->nparts = t->nargs;
    r->parts = mem_new_n(Row *, (size_t)t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!(r->parts[i] = row_of_arg(m, b_proj(&m->b, x, i), t->args[i])))
            return NULL;
    return r;
}

static Expr *result_of(Batch *m, const Row *r) {
    if (r->parts) {
        Expr **parts = mem_new_n(Expr *, (size_t)r->nparts + 1);
        for (uint32_t i = 0; i < r->nparts; i++)
            if (!(parts[i] = result_of(m, r->parts[i])))
                return NULL;
        return b_tuple(&m->b, parts, r->nparts);
    }
    if (r->has_rows)
        return r->e;
    give_up(m, "a result that is the same for all rows");
    return NULL;
}

Expr *batch_rows(PassCtx *ctx, Expr *fn, Expr **args, Type *count, Span span, const char **why) {
    const Fn *f = fn->fn;
    Batch m = {.ctx = ctx, .b = {span}, .count = count};
    m.block.b = &m.b;
    m.effects = effects_new(ctx, f->body);
    if (effects_at(m.effects, f->body) & ~(unsigned)(EFFECT_READS | EFFECT_FAILS))
        give_up(&m, "the function does more than give a value");
    for (uint32_t i = 0; i < f->nparams && !m.why; i++) {
        if (!core_is_closed(f->params[i]->type)) {
            give_up(&m, "the type of a row is not known");
            break;
        }
        Row *r = row_of_arg(&m, args[i], f->params[i]->type);
        if (r)
            map_set(&m.rows, f->params[i], r);
    }
    Row *result = m.why ? NULL : batch(&m, f->body);
    Expr *e = result ? result_of(&m, result) : NULL;
    *why = m.why;
    return e ? block_end(&m.block, e) : NULL;
}
