/* SPDX-License-Identifier: Apache-2.0 */
/* How operators go along with the rows. Element-wise operators and reductions have their rule by what they are, others by
 * batch.def: these make calls of operators that fusion and the library of products know. A rule gives NULL where it does
 * not fit a call. All others take the general way: the same operator at all rows (ops/rows.h), which is one call,
 * but is fused with nothing. */
#include "ops/index_view.h"
#include "ops/rows.h"
#include "passes/batch_internal.h"
#include "passes/grad_internal.h"
#include "passes/vmap.h"

#include <string.h>

#define OP(symbol) extern const Op op_##symbol;
#define INTERNAL(symbol) extern const Op op_##symbol;
#include "ops/ops.def"
#undef INTERNAL
#undef OP

static uint32_t rank_of(const Expr *e) {
    uint32_t rank = 0;
    Type **dims;
    (void)type_get_rank(e->type, &rank, &dims);
    return rank;
}

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
Expr *batch_insert_axes(Batch *m, Expr *x, int64_t at, int64_t axes) {
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
        m->block, "v",
        call_op(m, &op_expand_dims, x, NULL, attrs_with(&op_expand_dims, values), type));
}

/* x without these axes of size 1; its type is then that of the rows of `row`. */
static Row *remove_axes(Batch *m, Expr *x, const int64_t *axes, uint32_t n, Type *row) {
    AttrValue *values = mem_new_n(AttrValue, 1);
    if (n == 0)
        return batch_bind(m, x, row);
    values[0] = list_value(axes, n);
    return batch_bind(
        m, call_op(m, &op_squeeze, x, NULL, attrs_with(&op_squeeze, values), batch_type(m, row)),
        row);
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* The type of all rows of a result, a tensor or a tuple of them; NULL where a rank is not known. */
static Type *type_of_results(const Batch *m, Type *t) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    if (t->tag != TY_TUPLE)
        return t->tag == TY_TENSOR && type_get_rank(t, &rank, &dims) && rank < TENSOR_MAX_RANK
                   ? batch_type(m, t)
                   : NULL;
    Type **parts = mem_new_n(Type *, (size_t)t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!(parts[i] = type_of_results(m, t->args[i])))
            return NULL;
    return type_tuple(parts, t->nargs);
}

/* The rows that a call gives whose result has that type in one row. */
static Row *bind_results(Batch *m, Expr *call, Type *row) {
    Type *t = type_resolve(row);
    if (t->tag == TY_TENSOR)
        return batch_bind(m, call, t);
    Expr *all = block_let(m->block, "v", call);
    Row **parts = mem_new_n(Row *, (size_t)t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        parts[i] = batch_bind(m, b_proj(&m->b, all, i), t->args[i]);
    return row_tuple(parts, t->nargs);
}

/* The call with these arguments and attributes, at all rows. */
static Row *call_again(Batch *m, const Expr *call, Expr **args, const Attrs *attrs) {
    Expr *copy = expr_copy(call);
    copy->args = args;
    copy->attrs = attrs;
    copy->type = type_of_results(m, call->type);
    return copy->type ? bind_results(m, copy, call->type) : NULL;
}

/* Whether an argument other than number i has all sizes that the result has in one row. */
static bool other_is_whole(const Expr *call, Row **in, uint32_t i) {
    for (uint32_t k = 0; k < call->nargs; k++)
        if (k != i && !in[k]->narrow &&
            type_equal(type_resolve(in[k]->type)->tensor.shape,
                       type_resolve(call->type)->tensor.shape))
            return true;
    return false;
}

/* Axes are matched from the last one, so those of an argument of fewer come behind its rows. What is broadcast is read as
 * it was before where another argument has the sizes of the result. */
static Row *rule_elementwise(Batch *m, const Expr *call, Row **in) {
    Expr **args = mem_new_n(Expr *, (size_t)call->nargs + 1);
    for (uint32_t i = 0; i < call->nargs; i++) {
        const Row *x = in[i]->narrow && other_is_whole(call, in, i) ? in[i]->narrow : in[i];
        uint32_t rank = 0;
        Type **dims;
        (void)type_get_rank(x->type, &rank, &dims);
        args[i] = x->e;
        if (x->has_rows && rank < rank_of(call))
            args[i] = batch_insert_axes(m, x->e, 1, rank_of(call) - rank);
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
        return NULL;
    for (uint32_t i = 0; i < named; i++)
        is_named[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
    for (uint32_t i = 0; i < rank; i++)
        if (none || is_named[i] != exclude)
            out[n++] = (int64_t)i + 1;
    if (n == 0)
        return NULL;
    AttrValue *values = copy_values(call->attrs);
    values[op_attr_index(call->a->op, "axis")] = list_value(out, n);
    values[op_attr_index(call->a->op, "exclude")] = (AttrValue){.kind = ATTR_BOOL, .i = 0};
    return call_again(m, call, only_arg(in), attrs_with(call->a->op, values));
}

/* An axis that is counted from the front is one further. NULL where there is none, and more than one axis. */
static const Attrs *shift_axis(const Expr *call) {
    if (attrs_is_none(call->attrs, "axis"))
        return rank_of(call->args[0]) == 1 ? with_value(call->attrs, "axis", int_value(1)) : NULL;
    int64_t axis = attrs_int(call->attrs, "axis");
    return axis < 0 ? call->attrs : with_value(call->attrs, "axis", int_value(axis + 1));
}

static Row *rule_one_axis(Batch *m, const Expr *call, Row **in) {
    const Attrs *attrs = shift_axis(call);
    return attrs ? call_again(m, call, only_arg(in), attrs) : NULL;
}

/* The axes of a list, counted from the front, are one further. */
static Row *rule_axes(Batch *m, const Expr *call, Row **in) {
    const int64_t *axes;
    int64_t out[TENSOR_MAX_RANK];
    uint32_t n, rank = rank_of(call->args[0]);
    if (attrs_is_none(call->attrs, "axis") || !attrs_ints(call->attrs, "axis", &axes, &n) ||
        n > rank)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        out[i] = 1 + (axes[i] < 0 ? axes[i] + rank : axes[i]);
    return call_again(m, call, only_arg(in), with_value(call->attrs, "axis", list_value(out, n)));
}

/* Rows of data that share their scales and shifts. */
static Row *rule_layer_norm(Batch *m, const Expr *call, Row **in) {
    if (in[1]->has_rows || in[2]->has_rows)
        return NULL;
    Expr **args = mem_new_n(Expr *, 3);
    for (uint32_t i = 0; i < 3; i++)
        args[i] = in[i]->e;
    return call_again(m, call, args, shift_axis(call));
}

/* Counts are matched with axes from the last one. */
static Row *rule_tile(Batch *m, const Expr *call, Row **in) {
    const int64_t *reps;
    uint32_t n;
    if (!attrs_ints(call->attrs, "reps", &reps, &n) || n > rank_of(call->args[0]))
        return NULL;
    return call_again(m, call, only_arg(in), call->attrs);
}

/* The parts that the same indices name in each row, or each row's own of what is the same for all. */
static Row *rule_take(Batch *m, const Expr *call, Row **in) {
    Expr **args = mem_new_n(Expr *, 2);
    const Attrs *attrs = shift_axis(call);
    int64_t batch = attrs_int(call->attrs, "batch_dims");
    bool none = attrs_is_none(call->attrs, "axis");
    args[0] = in[0]->e;
    args[1] = in[1]->e;
    if (!in[0]->has_rows) {
        bool first = batch == 0 && !none && attrs_int(call->attrs, "axis") == 0;
        return first ? call_again(m, call, args, call->attrs) : NULL;
    }
    if (!attrs || (!in[1]->has_rows && batch != 0))
        return NULL;
    if (in[1]->has_rows)
        attrs = with_value(attrs, "batch_dims", int_value(batch < 0 ? batch : batch + 1));
    return call_again(m, call, args, attrs);
}

static Row *rule_transpose(Batch *m, const Expr *call, Row **in) {
    uint32_t rank = rank_of(call->args[0]), n;
    const int64_t *axes;
    int64_t out[TENSOR_MAX_RANK + 1] = {0};
    bool none = attrs_is_none(call->attrs, "axes");
    if (!none && !attrs_ints(call->attrs, "axes", &axes, &n))
        return NULL;
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
        return NULL;
    for (uint32_t i = 0; none && i < rank; i++)
        if (type_get_int(dims[i], &size) && size == 1)
            out[n++] = (int64_t)i + 1;
    for (uint32_t i = 0; i < named; i++)
        out[n++] = 1 + (axes[i] < 0 ? axes[i] + rank : axes[i]);
    return remove_axes(m, in[0]->e, out, n, call->type);
}

/* x, which has rows, with rows of the type `row`; NULL where that has no elements. */
static Row *reshape_rows(Batch *m, const Row *x, Type *row) {
    uint32_t rank;
    Type **dims;
    int64_t out[TENSOR_MAX_RANK + 1] = {0}; /* a 0 in front takes over the size that is there */
    if (!type_get_rank(row, &rank, &dims))
        return NULL;
    for (uint32_t i = 0; i < rank; i++)
        if (!type_get_int(dims[i], &out[i + 1]) || out[i + 1] == 0)
            return NULL;
    AttrValue *values = mem_new_n(AttrValue, (size_t)op_reshape.nattrs + 1);
    values[op_attr_index(&op_reshape, "newshape")] = list_value(out, rank + 1);
    values[op_attr_index(&op_reshape, "allowzero")] = (AttrValue){.kind = ATTR_BOOL, .i = 0};
    const Attrs *attrs = attrs_with(&op_reshape, values);
    return batch_bind(m, call_op(m, &op_reshape, x->e, NULL, attrs, batch_type(m, row)), row);
}

static Row *rule_reshape(Batch *m, const Expr *call, Row **in) {
    return reshape_rows(m, in[0], call->type);
}

/* x in the shape of another value: sizes of a row are known here, so the other value is not read. Derivatives ask for shapes
 * that are there already. */
static Row *rule_like(Batch *m, const Expr *call, Row **in) {
    if (type_equal(in[0]->type, call->type))
        return in[0];
    if (!in[0]->has_rows)
        return NULL;
    if (call->a->op == &op_reshape_like)
        return reshape_rows(m, in[0], call->type);
    return call->a->op == &op_broadcast_to_like ? batch_broadcast(m, in[0], call->type) : NULL;
}

static Row *rule_joined(Batch *m, const Expr *call, Row **in) {
    if (!in[0]->parts)
        return NULL;
    Expr **parts = mem_new_n(Expr *, (size_t)in[0]->nparts + 1);
    for (uint32_t i = 0; i < in[0]->nparts; i++) {
        if (!in[0]->parts[i]->has_rows)
            return NULL;
        parts[i] = in[0]->parts[i]->e;
    }
    Expr **args = mem_new_n(Expr *, 1);
    const Attrs *attrs = shift_axis(call);
    args[0] = b_tuple(&m->b, parts, in[0]->nparts);
    return attrs ? call_again(m, call, args, attrs) : NULL;
}

static Row *index_with(Batch *m, const Expr *call, Expr *x, Expr *at, const char *spec, Type *row) {
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = x;
    args[1] = at;
    AttrValue v = {.kind = ATTR_STRING, .text = spec};
    Expr *copy = expr_copy(call);
    copy->args = args;
    copy->attrs = with_value(call->attrs, "spec", v);
    copy->type = batch_type(m, row);
    return batch_bind(m, copy, row);
}

/* x[i] of one integer, where x has rows. */
static Row *index_one(Batch *m, const Expr *call, const Row *x, Row *i) {
    Type *row = vmap_type_of_row(x->type);
    if (!row)
        return NULL;
    if (!i->has_rows)
        return index_with(m, call, x->e, b_tuple(&m->b, &i->e, 1), ":0i", row);
    const Attrs *attrs = attrs_defaults(&op_take);
    attrs = with_value(attrs, "batch_dims", int_value(1));
    attrs = with_value(attrs, "axis", int_value(1));
    attrs = with_value(attrs, "mode", (AttrValue){.kind = ATTR_STRING, .text = "fast"});
    return batch_bind(m, call_op(m, &op_take, x->e, i->e, attrs, batch_type(m, row)), row);
}

/* A type without its first n axes; NULL where it has none. */
static Type *without_axes(Type *t, uint32_t n) {
    while (n-- > 0 && t)
        t = vmap_type_of_row(t);
    return t;
}

/* x[i, j, …] where integers differ from row to row that only integers come before: one after the other. The first one that
 * differs takes with it those before it, where x is the same for all rows. */
static Row *index_by_rows(Batch *m, const Expr *call, Row **in, const char *spec) {
    uint32_t n = in[1]->nparts, begin = n, end = 0;
    Expr **at = mem_new_n(Expr *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (!(at[i] = in[1]->parts[i]->e))
            return NULL;
        if (!in[1]->parts[i]->has_rows)
            continue;
        begin = begin == n ? i : begin;
        end = i + 1;
    }
    if (!end || strspn(spec, "i") < end)
        return NULL;
    Row *x = in[0];
    if (!x->has_rows) {
        bool all = begin + 1 == end;
        uint32_t taken = all ? n : begin + 1;
        Type *row = all ? call->type : without_axes(x->type, taken);
        const char *first = fmt_text("%.*sv%s", (int)begin, spec, all ? spec + begin + 1 : "");
        x = row ? index_with(m, call, x->e, b_tuple(&m->b, at, taken), first, row) : NULL;
        if (all || !x)
            return x;
        begin++;
    } else {
        begin = 0;
    }
    for (uint32_t i = begin; x && i < end; i++)
        x = index_one(m, call, x, in[1]->parts[i]);
    return !x || !spec[end] ? x
                            : index_with(m, call, x->e, b_tuple(&m->b, at + end, n - end),
                                         fmt_text(":0%s", spec + end), call->type);
}

/* x[…] of integers and slices. */
static Row *rule_index(Batch *m, const Expr *call, Row **in) {
    const char *spec = attrs_text(call->attrs, "spec");
    if (!in[0]->e || strpbrk(spec, "vo"))
        return NULL;
    if (!in[1]->e)
        return in[1]->parts ? index_by_rows(m, call, in, spec) : NULL;
    return in[0]->has_rows
               ? index_with(m, call, in[0]->e, in[1]->e, fmt_text(":0%s", spec), call->type)
               : NULL;
}

bool batch_is_whole_part(const char *spec, Type *data, Type *update) {
    uint32_t rank, has;
    Type **dims;
    IndexCount count;
    return type_get_rank(data, &rank, &dims) && type_get_rank(update, &has, &dims) &&
           !strpbrk(spec, "vo") && index_count(spec, &count) &&
           (int)rank - count.axes + count.results == (int)has;
}

/* What is added to the same part of each row. */
static Row *rule_index_add(Batch *m, const Expr *call, Row **in) {
    const char *spec = attrs_text(call->attrs, "spec");
    if (!in[2]->e || !batch_is_whole_part(spec, in[0]->type, in[1]->type))
        return NULL;
    Expr **args = mem_new_n(Expr *, 3);
    args[0] = batch_with_rows(m, in[0]);
    args[1] = batch_with_rows(m, in[1]);
    args[2] = in[2]->e;
    AttrValue v = {.kind = ATTR_STRING, .text = fmt_text(":0%s", spec)};
    return args[0] && args[1] ? call_again(m, call, args, with_value(call->attrs, "spec", v))
                              : NULL;
}

/* A vector on a side that has rows is a matrix of one row or column, unless the other side is the same for all rows and
 * takes all rows as one matrix. */
static Row *rule_matmul(Batch *m, const Expr *call, Row **in) {
    uint32_t left = rank_of(call->args[0]), right = rank_of(call->args[1]), n = 0;
    int64_t axes[2];
    Expr *a = in[0]->e, *b = in[1]->e;
    if (left > 2 || right > 2 || left == 0 || right == 0)
        return NULL;
    bool row = in[0]->has_rows && left == 1 && in[1]->has_rows;
    bool column = in[1]->has_rows && right == 1;
    if (row) {
        a = batch_insert_axes(m, a, 1, 1);
        axes[n++] = 1;
    }
    if (column) {
        b = batch_insert_axes(m, b, 2, 1);
        axes[n] = left == 1 && !row ? 1 : 2;
        n++;
    }
    if (n == 0)
        return batch_bind(m, call_op(m, call->a->op, a, b, call->attrs, batch_type(m, call->type)),
                          call->type);
    uint32_t rank = rank_of(call) + 1 + n, at = 0;
    Type **dims, **all = mem_new_n(Type *, rank), *rows = batch_type(m, call->type);
    uint32_t had;
    if (!type_get_rank(rows, &had, &dims))
        BUG("rows without a rank");
    for (uint32_t i = 0; i < rank; i++) {
        bool made = (n > 0 && axes[0] == i) || (n > 1 && axes[1] == i);
        all[i] = made ? type_dim_int(1, NULL) : dims[at++];
    }
    Type *type = type_tensor(type_shape(all, rank), type_resolve(rows)->tensor.dtype);
    Expr *product = block_let(m->block, "v", call_op(m, call->a->op, a, b, call->attrs, type));
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
        return NULL;
    const Attrs *attrs = with_value(attrs_defaults(&op_nn_batch_matmul), "transpose_b",
                                    (AttrValue){.kind = ATTR_BOOL, .i = 1});
    return batch_bind(
        m, call_op(m, &op_nn_batch_matmul, in[0]->e, in[1]->e, attrs, batch_type(m, call->type)),
        call->type);
}

/* Images, whose axis in front has one of each row: that axis is the rows', where all share the filters. Only for a
 * derivative: without one the general way takes a launch less. */
static Row *rule_images(Batch *m, const Expr *call, Row **in) {
    uint32_t rank;
    Type **dims;
    int64_t images, first = 1;
    if (!m->follows || !type_get_rank(call->args[0]->type, &rank, &dims) || rank == 0 ||
        !type_get_int(dims[0], &images) || images != 1 || !in[0]->has_rows)
        return NULL;
    Expr **args = mem_new_n(Expr *, (size_t)call->nargs + 1), *copy = expr_copy(call);
    for (uint32_t i = 1; i < call->nargs; i++) {
        if (in[i]->has_rows)
            return NULL;
        args[i] = in[i]->e;
    }
    args[0] = remove_axes(m, in[0]->e, &first, 1, vmap_type_of_row(call->args[0]->type))->e;
    copy->args = args;
    copy->type = batch_type(m, vmap_type_of_row(call->type));
    return batch_bind(m, batch_insert_axes(m, block_let(m->block, "v", copy), 1, 1), call->type);
}

/* Slices of all axes, or of some of them. */
static Row *rule_strided_slice(Batch *m, const Expr *call, Row **in) {
    const int64_t *axes = NULL, *begin;
    int64_t out[TENSOR_MAX_RANK];
    uint32_t n, rank = rank_of(call->args[0]);
    bool none = attrs_is_none(call->attrs, "axes");
    if (call->nargs != 1 ||
        !attrs_ints(call->attrs, none ? "begin" : "axes", none ? &begin : &axes, &n) || n > rank)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        out[i] = 1 + (none ? i : axes[i] < 0 ? axes[i] + rank : axes[i]);
    return call_again(m, call, only_arg(in), with_value(call->attrs, "axes", list_value(out, n)));
}

typedef Row *(*BatchRule)(Batch *m, const Expr *call, Row **in);

static BatchRule find_rule(const Op *op) {
#define BATCH(symbol, rule)                                                                        \
    if (op == &op_##symbol)                                                                        \
        return rule;
#define LOOPS(symbol, why)
#include "passes/batch.def"
#undef LOOPS
#undef BATCH
    if (op->rows)
        return NULL;
    if (op->elementwise || op->scalar == OP_SCALAR_ZERO || op->scalar == OP_SCALAR_ONE ||
        op->scalar == OP_SCALAR_SELECT)
        return rule_elementwise;
    bool reduces = op->pattern == OP_REDUCE && op->nargs == 1;
    return reduces && op_attr_index(op, "axis") >= 0 && op_attr_index(op, "exclude") >= 0
               ? rule_reduce
               : NULL;
}

/* Why an operator runs for each row alone, or NULL. */
static const char *find_reason(const Op *op) {
#define BATCH(symbol, rule)
#define LOOPS(symbol, why)                                                                         \
    if (op == &op_##symbol)                                                                        \
        return why;
#include "passes/batch.def"
#undef LOOPS
#undef BATCH
    return op->foreign ? "it is foreign code" : NULL;
}

const char *batch_way(const Op *op, const char **why) {
    *why = find_reason(op);
    return *why ? NULL : find_rule(op) ? "by a rule of its own" : "as itself at all rows";
}

/* ---- the general way --------------------------------------------------------------------------- */

/* There is one operator for each that is made of, and each set of arguments that have rows. */
static const Op *operator_over_rows(const Batch *m, const Op *of, const bool *has_rows,
                                    uint32_t n) {
    GradState *state = grad_state(m->ctx);
    for (size_t i = 0; i < state->row_ops.len; i++) {
        const Op *known = state->row_ops.data[i];
        if (known->rows->of == of && known->rows->n == n &&
            memcmp(known->rows->has_rows, has_rows, n * sizeof *has_rows) == 0)
            return known;
    }
    const Op *made = op_over_rows(of, has_rows, n);
    vec_push(&state->row_ops, made);
    return made;
}

typedef VEC(bool) Flags;

/* The argument r as the operator takes it, and which of its tensors have rows; NULL where it holds other things. */
static Expr *flatten(Batch *m, const Row *r, Flags *has_rows) {
    Type *t = type_resolve(r->type);
    if (t->tag == TY_TENSOR && !r->when) {
        vec_push(has_rows, r->has_rows);
        return r->e;
    }
    if (t->tag != TY_TUPLE)
        return NULL;
    Expr **parts = mem_new_n(Expr *, (size_t)t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++) {
        const Row *part = row_part(m, r, i);
        if (!part || type_resolve(part->type)->tag != TY_TENSOR ||
            !(parts[i] = flatten(m, part, has_rows)))
            return NULL;
    }
    return r->parts ? b_tuple(&m->b, parts, t->nargs) : r->e;
}

static Row *rule_rows(Batch *m, const Expr *call, Row **in) {
    Flags has_rows = {0};
    Expr *copy = expr_copy(call);
    copy->args = mem_new_n(Expr *, (size_t)call->nargs + 1);
    copy->type = type_of_results(m, call->type);
    if (!copy->type)
        return batch_give_up(m, "a result whose sizes are not known", call->span);
    for (uint32_t i = 0; i < call->nargs; i++)
        if (!(copy->args[i] = flatten(m, in[i], &has_rows)))
            return batch_give_up(m, "an argument that is no tensor", call->span);
    const Op *op = operator_over_rows(m, call->a->op, has_rows.data, (uint32_t)has_rows.len);
    copy->a = expr_op(op, call->a->type, call->a->span);
    return bind_results(m, copy, call->type);
}

Row *batch_operator_rows(Batch *m, const Expr *call, Row **in) {
    const Op *op = call->a->op;
    const char *why = find_reason(op);
    if (why)
        return batch_give_up(m, fmt_text("`%s`: %s", op_subject(op), why), call->span);
    BatchRule rule = call->nsizes ? NULL : find_rule(op);
    Row *r = rule ? rule(m, call, in) : NULL;
    return r || batch_gave_up(m) ? r : rule_rows(m, call, in);
}
