/* SPDX-License-Identifier: Apache-2.0 */
/* The operators that derivatives are made of, as ONNX nodes: what undoes a broadcast, a sum, a product, an index. */
#include <string.h>

#include "interchange/export_ops.h"
#include "ops/ops.h"

static Traced *reshaped_like(Export *ex, Traced *x, Traced *like) {
    return emit_reshape(ex, x, emit_shape(ex, like), like->rank);
}

static Traced *flattened(Export *ex, Traced *x) {
    int64_t all = -1;
    return x->rank == 1 ? x : emit_reshape(ex, x, traced_ints(&all, 1), 1);
}

static Traced *joined(Export *ex, Traced *const *parts, uint32_t n) {
    Str attrs = {0};
    onnx_add_int(&attrs, "axis", 0);
    return export_node(ex, "Concat", parts, n, &attrs, parts[0]->dtype, parts[0]->rank);
}

/* ---- products of cotangents ------------------------------------------------------------------ */

static bool is_finite_constant(const Traced *t) {
    if (!t->constant || !dtype_is_float(t->dtype))
        return false;
    for (int64_t i = 0; i < t->constant->count; i++) {
        double v;
        elem_cast(&v, DT_F64, tensor_at(t->constant, i), t->dtype);
        if (v - v != 0.0 || v == 0.0)
            return false;
    }
    return true;
}

/* A cotangent that is zero stays so, whatever it meets. */
Traced *export_strong(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *y = c->args[1];
    if (!share_dtype(c->args, 2))
        return call_refuse(ex, c, "of two dtypes");
    Traced *product = emit_binary(ex, c->op == &op_strong_multiply ? "Mul" : "Div", x, y);
    if (is_finite_constant(y))
        return product;
    Traced *pair[] = {x, traced_int(ex, x->dtype, 0)};
    Traced *in[] = {export_node(ex, "Equal", pair, 2, NULL, DT_BOOL, x->rank), x, product};
    return export_node(ex, "Where", in, 3, NULL, x->dtype, product->rank);
}

/* ---- broadcasts and sums --------------------------------------------------------------------- */

static Traced *sum_over(Export *ex, Traced *x, Traced *axes, int rank, bool keep) {
    Traced *in[] = {x, axes};
    Str attrs = {0};
    onnx_add_int(&attrs, "keepdims", keep);
    onnx_add_int(&attrs, "noop_with_empty_axes", 1);
    return export_node(ex, "ReduceSum", in, 2, &attrs, x->dtype, rank);
}

/* x summed to the shape of `like`, which broadcasts to that of x. Where sizes are not known before the model runs, it
 * finds the axes itself: those of which `like` has another size. */
static Traced *sum_to(Export *ex, Traced *x, Traced *like) {
    int more = x->rank - like->rank;
    int64_t axes[TENSOR_MAX_RANK];
    uint32_t n = 0;
    if (x->shape && like->shape) {
        for (int i = 0; i < x->rank; i++)
            if (i < more || like->shape[i - more] != x->shape[i])
                axes[n++] = i;
        Traced *sum = n ? sum_over(ex, x, traced_ints(axes, n), x->rank, true) : x;
        return more ? reshaped_like(ex, sum, like) : sum;
    }
    Traced *parts[2];
    for (int i = 0; i < more; i++)
        axes[n++] = 1;
    if (n)
        parts[0] = traced_ints(axes, n);
    parts[n ? 1 : 0] = emit_shape(ex, like);
    Traced *padded = n ? joined(ex, parts, 2) : parts[0];
    Traced *pair[] = {emit_shape(ex, x), padded};
    Traced *same = export_node(ex, "Equal", pair, 2, NULL, DT_BOOL, 1);
    Traced *differs = emit_unary(ex, "Not", same);
    Traced *places = export_node(ex, "NonZero", &differs, 1, NULL, DT_I64, 2);
    Traced *sum = sum_over(ex, x, flattened(ex, places), x->rank, true);
    return reshaped_like(ex, sum, like);
}

Traced *export_collapse_sum_like(Export *ex, const ExportCall *c) {
    return sum_to(ex, c->args[0], c->args[1]);
}

Traced *export_collapse_sum_to(Export *ex, const ExportCall *c) {
    const Tensor *sizes = c->args[1]->constant;
    Traced like = {.kind = TRACED_TENSOR, .dtype = c->args[0]->dtype};
    if (!sizes || sizes->rank != 1 || !c->args[0]->shape || sizes->count > TENSOR_MAX_RANK)
        return call_refuse(ex, c, "to sizes that are not known");
    int64_t *shape = mem_bytes(sizeof *shape * TENSOR_MAX_RANK);
    for (int64_t i = 0; i < sizes->count; i++)
        elem_cast(&shape[i], DT_I64, tensor_at(sizes, i), sizes->dtype);
    like.rank = (int)sizes->count;
    like.shape = shape;
    return sum_to(ex, c->args[0], &like);
}

/* The result of a reduction repeated over the axes that it reduced, and divided by their size for a mean. */
Traced *export_expand_like(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *data = c->args[1];
    int64_t axes[TENSOR_MAX_RANK], count = 1;
    uint32_t n;
    if (!axes_of_reduction(c->attrs, data->rank, axes, &n))
        return call_refuse(ex, c, "over axes that are not known");
    if (attrs_bool(c->attrs, "average") && n) {
        Traced *by;
        for (uint32_t i = 0; data->shape && i < n; i++)
            count *= data->shape[axes[i]];
        if (data->shape)
            by = traced_int(ex, x->dtype, count);
        else {
            Traced *sizes = emit_gather(ex, emit_shape(ex, data), traced_ints(axes, n), 0);
            Str attrs = {0};
            onnx_add_int(&attrs, "keepdims", 0);
            by = export_cast(ex, export_node(ex, "ReduceProd", &sizes, 1, &attrs, DT_I64, 0),
                             x->dtype);
        }
        x = emit_binary(ex, "Div", x, by);
    }
    if (!attrs_bool(c->attrs, "keepdims"))
        x = emit_unsqueeze(ex, x, axes, n);
    return emit_expand(ex, x, emit_shape(ex, data), data->rank);
}

/* Each element replaced by the mean of its group of channels. */
Traced *export_group_mean(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0];
    int64_t axis = axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    int64_t groups = attrs_int(c->attrs, "num_groups");
    Str attrs = {0};
    if (!x->shape || axis != 1)
        return call_refuse(ex, c, "of sizes that are not known, or along another axis than 1");
    groups = groups ? groups : x->shape[1];
    int64_t in_groups[] = {x->shape[0], groups, -1}, last = 2;
    onnx_add_ints(&attrs, "axes", &last, 1);
    onnx_add_int(&attrs, "keepdims", 1);
    Traced *grouped = emit_reshape(ex, x, traced_ints(in_groups, 3), 3);
    Traced *mean = export_node(ex, "ReduceMean", &grouped, 1, &attrs, x->dtype, 3);
    Traced *shape = emit_shape(ex, grouped);
    return reshaped_like(ex, emit_expand(ex, mean, shape, 3), x);
}

/* ---- products of matrices -------------------------------------------------------------------- */

/* x with all axes but the last as one. */
static Traced *as_rows(Export *ex, Traced *x) {
    int64_t rows = -1, begin = x->rank - 1, end = INT64_MAX, axis = 0, step = 1;
    if (x->rank == 2)
        return x;
    if (x->shape) {
        int64_t sizes[] = {-1, x->shape[x->rank - 1]};
        return emit_reshape(ex, x, traced_ints(sizes, 2), 2);
    }
    Traced *last = emit_slice(ex, emit_shape(ex, x), &begin, &end, &axis, &step, 1);
    Traced *parts[] = {traced_ints(&rows, 1), last};
    return emit_reshape(ex, x, joined(ex, parts, 2), 2);
}

Traced *export_dense_weight(Export *ex, const ExportCall *c) {
    Str attrs = {0};
    if (!share_dtype(c->args, 2) || !dtype_is_float(c->args[0]->dtype))
        return call_refuse(ex, c, "of these dtypes");
    Traced *in[] = {as_rows(ex, c->args[0]), as_rows(ex, c->args[1])};
    onnx_add_int(&attrs, "transA", 1);
    return export_node(ex, "Gemm", in, 2, &attrs, in[0]->dtype, 2);
}

/* The sizes of a side as a matrix, and of its derivative before that is summed over the axes of the batch. */
static void note_product(const Traced *grad, const Traced *side, bool left, Traced *matrix,
                         Traced *product) {
    int64_t *whole = mem_bytes(sizeof *whole * (2 * TENSOR_MAX_RANK));
    int64_t *own = mem_bytes(sizeof *own * 2 * TENSOR_MAX_RANK);
    if (!grad->shape || !side->shape)
        return;
    for (int i = 0; i < side->rank; i++)
        own[side->rank == 1 && left ? 1 : i] = side->shape[i];
    if (side->rank == 1)
        own[left ? 0 : 1] = 1;
    if (side->rank == 1)
        matrix->shape = own;
    for (int i = 0; i + 2 < product->rank; i++)
        whole[i] = grad->shape[i];
    for (int i = 0; i < 2; i++)
        whole[product->rank - 2 + i] = own[matrix->rank - 2 + i];
    product->shape = whole;
}

/* The derivative of a product by one of its sides, of which a vector is a matrix with one row (the left side) or one column. */
Traced *export_matmul_side(Export *ex, const ExportCall *c) {
    bool left = c->op == &op_matmul_lhs;
    Traced *grad = c->args[0], *other = c->args[1], *side = c->args[2];
    int64_t row = -2, column = -1;
    if (!share_dtype(c->args, 3) || !dtype_is_float(grad->dtype))
        return call_refuse(ex, c, "of these dtypes");
    if ((left ? side : other)->rank == 1)
        grad = emit_unsqueeze(ex, grad, (left ? other : side)->rank == 1 ? &column : &row, 1);
    if ((left ? other : side)->rank == 1)
        grad = emit_unsqueeze(ex, grad, &column, 1);
    Traced *matrix = side->rank == 1 ? emit_unsqueeze(ex, side, left ? &row : &column, 1) : side;
    if (other->rank == 1)
        other = emit_unsqueeze(ex, other, left ? &column : &row, 1);
    Traced *in[] = {left ? grad : emit_flip(ex, other), left ? emit_flip(ex, other) : grad};
    Traced *product = export_node(ex, "MatMul", in, 2, NULL, grad->dtype, highest_rank(in, 2));
    note_product(c->args[0], side, left, matrix, product);
    Traced *sum = product->rank == matrix->rank && product->rank == 2 ? product
                                                                      : sum_to(ex, product, matrix);
    return side->rank == 1 ? reshaped_like(ex, sum, side) : sum;
}

/* ---- what reads is undone by what adds ------------------------------------------------------- */

/* The number of each element of x, in its shape. */
static Traced *numbered(Export *ex, Traced *x) {
    if (x->shape) {
        Tensor *t = tensor_new(DT_I64, x->rank, x->shape);
        for (int64_t i = 0; i < t->count; i++)
            ((int64_t *)tensor_data(t))[i] = i;
        return traced_constant(t);
    }
    Traced *in[] = {traced_int(ex, DT_I64, 0), export_node(ex, "Size", &x, 1, NULL, DT_I64, 0),
                    traced_int(ex, DT_I64, 1)};
    return reshaped_like(ex, export_node(ex, "Range", in, 3, NULL, DT_I64, 1), x);
}

/* into with the elements of update added at the places that `at` has. */
static Traced *added_at(Export *ex, Traced *into, Traced *at, Traced *update) {
    Str attrs = {0};
    onnx_add_text(&attrs, "reduction", "add");
    Traced *in[] = {flattened(ex, into), flattened(ex, at), flattened(ex, update)};
    Traced *sum = export_node(ex, "ScatterElements", in, 3, &attrs, into->dtype, 1);
    return into->rank == 1 ? sum : reshaped_like(ex, sum, into);
}

Traced *export_index_add(Export *ex, Span span, const char *spec, Traced *into, Traced *update,
                         Traced **at, uint32_t n) {
    if (into->kind != TRACED_TENSOR || update->kind != TRACED_TENSOR)
        return &ex->bad;
    Traced *places = export_index(ex, span, spec, numbered(ex, into), at, n);
    if (places->kind == TRACED_TENSOR && update->rank == 0 && places->rank > 0) {
        Traced *in[] = {update, places};
        update = export_default(ex, &op_broadcast_to_like, span, in, 2);
    }
    Traced *sum = places->kind == TRACED_BAD ? places : added_at(ex, into, places, update);
    if (sum != &ex->bad)
        sum->shape = into->shape;
    return sum;
}

/* (data, update, (at)) */
Traced *export_index_add_op(Export *ex, const ExportCall *c) {
    const Traced *at = c->args[2];
    return export_index_add(ex, c->span, attrs_text(c->attrs, "spec"), c->args[0], c->args[1],
                            at->parts, at->nparts);
}

/* An operator with the attributes of the call that it has too. */
static Traced *call_with(Export *ex, const ExportCall *c, const Op *reader, Traced *first,
                         Traced *second) {
    Attrs *attrs = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, reader->nattrs);
    for (int i = 0; i < reader->nattrs; i++) {
        const AttrValue *same = attrs_find(c->attrs, reader->attrs[i].name);
        values[i] = same ? *same : attrs_defaults(reader)->values[i];
    }
    *attrs = (Attrs){reader, values};
    Traced **in = mem_new_n(Traced *, 2);
    in[0] = first;
    in[1] = second;
    return export_operator(ex, (ExportCall){reader, attrs, c->span, in, second ? 2 : 1, NULL, 0});
}

/* (update, indices, data) or (update, data): zeros in data's shape, with update added where the reader would look. */
Traced *export_added(Export *ex, const ExportCall *c) {
    const Op *reader = c->op == &op_take_add            ? &op_take
                       : c->op == &op_gather_nd_add     ? &op_gather_nd
                       : c->op == &op_strided_slice_add ? &op_strided_slice
                       : c->op == &op_tile_sum          ? &op_tile
                                                        : &op_repeat;
    Traced *update = c->args[0], *data = c->args[c->nargs - 1];
    Traced *at = call_with(ex, c, reader, numbered(ex, data), c->nargs == 3 ? c->args[1] : NULL);
    if (at->kind != TRACED_TENSOR)
        return at;
    Traced *like[] = {data}, *zeros = export_default(ex, &op_zeros_like, c->span, like, 1);
    zeros = zeros->kind == TRACED_BAD ? zeros : export_cast(ex, zeros, update->dtype);
    return zeros->kind == TRACED_BAD ? zeros : added_at(ex, zeros, at, update);
}

/* (data, keys): moved as sort moves the keys, or back. */
Traced *export_sorted_by(Export *ex, const ExportCall *c) {
    Traced *data = c->args[0], *places = call_with(ex, c, &op_argsort, c->args[1], NULL);
    Str attrs = {0};
    if (places->kind != TRACED_TENSOR)
        return places;
    places = export_cast(ex, places, DT_I64);
    onnx_add_int(&attrs, "axis", axis_from_front(attrs_int(c->attrs, "axis"), data->rank));
    Traced *in[] = {data, places, data};
    bool back = c->op == &op_unsort_by;
    return export_node(ex, back ? "ScatterElements" : "GatherElements", in, back ? 3 : 2, &attrs,
                       data->dtype, data->rank);
}

/* The part of a padded tensor that is not padding. */
Traced *export_pad_sum(Export *ex, const ExportCall *c) {
    const AttrValue *width = attrs_get(c->attrs, "pad_width");
    Traced *data = c->args[1];
    int64_t begin[TENSOR_MAX_RANK], end[TENSOR_MAX_RANK], axes[TENSOR_MAX_RANK],
        steps[TENSOR_MAX_RANK];
    if (strcmp(attrs_text(c->attrs, "pad_mode"), "constant") != 0 || !data->shape)
        return call_refuse(ex, c, "of copies, or of sizes that are not known");
    for (int i = 0; i < data->rank; i++) {
        const AttrValue *sides = &width->list.items[i];
        if (sides->kind != ATTR_LIST || sides->list.items[0].kind != ATTR_INT ||
            sides->list.items[0].i < 0)
            return call_refuse(ex, c, "by widths that are not known, or less than nothing");
        begin[i] = sides->list.items[0].i;
        end[i] = begin[i] + data->shape[i];
        axes[i] = i;
        steps[i] = 1;
    }
    return emit_slice(ex, c->args[0], begin, end, axes, steps, (uint32_t)data->rank);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* (whole, (parts)): cut along an axis as the parts are long, or with a part for each place. */
Traced *export_split_like(Export *ex, const ExportCall *c) {
    Traced *whole = c->args[0];
    const Traced *parts = c->args[1];
    int64_t axis = axis_from_front(attrs_int(c->attrs, "axis"), whole->rank), from = 0, step = 1;
    Traced **out = mem_new_n(Traced *, parts->nparts);
    for (uint32_t i = 0; i < parts->nparts; i++) {
        if (c->op == &op_unstack_like) {
            out[i] = emit_gather(ex, whole, traced_int(ex, DT_I64, i), axis);
            continue;
        }
        if (parts->parts[i]->kind != TRACED_TENSOR || !parts->parts[i]->shape)
            return call_refuse(ex, c, "into sizes that are not known");
        int64_t to = from + parts->parts[i]->shape[axis];
        out[i] = emit_slice(ex, whole, &from, &to, &axis, &step, 1);
        from = to;
    }
    return traced_tuple(out, parts->nparts);
}

/* The axes that `axis` and `exclude` name moved behind the others and merged into one. */
static bool merged_last(const ExportCall *c, int rank, int64_t *perm, uint32_t *kept) {
    int64_t axes[TENSOR_MAX_RANK];
    uint32_t n;
    bool gone[TENSOR_MAX_RANK] = {false};
    if (!axes_of_reduction(c->attrs, rank, axes, &n))
        return false;
    *kept = 0;
    for (uint32_t i = 0; i < n; i++)
        gone[axes[i]] = true;
    for (int i = 0; i < rank; i++)
        if (!gone[i])
            perm[(*kept)++] = i;
    for (uint32_t i = 0; i < n; i++)
        perm[*kept + i] = axes[i];
    return true;
}

Traced *export_flatten_axes(Export *ex, const ExportCall *c) {
    bool undoes = c->op == &op_unflatten_axes;
    Traced *x = c->args[0], *data = c->args[undoes ? 1 : 0];
    int64_t perm[TENSOR_MAX_RANK], back[TENSOR_MAX_RANK], sizes[TENSOR_MAX_RANK];
    uint32_t kept;
    if (!data->shape || !merged_last(c, data->rank, perm, &kept))
        return call_refuse(ex, c, "of sizes that are not known");
    for (int i = 0; i < data->rank; i++) {
        back[perm[i]] = i;
        sizes[i] = data->shape[perm[i]];
    }
    if (undoes)
        return emit_permuted(
            ex, emit_reshape(ex, x, traced_ints(sizes, (uint32_t)data->rank), data->rank), back);
    sizes[kept] = -1;
    return emit_reshape(ex, emit_permuted(ex, x, perm), traced_ints(sizes, kept + 1),
                        (int)kept + 1);
}
