/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that arrange elements, as ONNX nodes: shapes, parts, indices. */
#include <string.h>

#include "interchange/export_ops.h"

enum { MOST_PIECES = 64 };

/* ---- axes and shapes ------------------------------------------------------------------------- */

/* Room for the sizes of a result. */
static int64_t *new_shape(int rank) { return mem_bytes(sizeof(int64_t) * (size_t)(rank + 1)); }

Traced *emit_unsqueeze(Export *ex, Traced *x, const int64_t *axes, uint32_t n) {
    Traced *in[] = {x, traced_ints(axes, n)};
    int rank = x->rank + (int)n;
    bool added[TENSOR_MAX_RANK + 1] = {false};
    if (!n)
        return x;
    Traced *out = export_node(ex, "Unsqueeze", in, 2, NULL, x->dtype, rank);
    int64_t *shape = new_shape(rank);
    for (uint32_t i = 0; i < n; i++)
        added[axis_from_front(axes[i], rank)] = true;
    for (int i = 0, from = 0; x->shape && i < rank; i++)
        shape[i] = added[i] ? 1 : x->shape[from++];
    out->shape = x->shape ? shape : NULL;
    return out;
}

Traced *emit_permuted(Export *ex, Traced *x, const int64_t *perm) {
    Str attrs = {0};
    onnx_add_ints(&attrs, "perm", perm, (uint32_t)x->rank);
    Traced *out = export_node(ex, "Transpose", &x, 1, &attrs, x->dtype, x->rank);
    int64_t *shape = new_shape(x->rank);
    for (int i = 0; x->shape && i < x->rank; i++)
        shape[i] = x->shape[perm[i]];
    out->shape = x->shape ? shape : NULL;
    return out;
}

/* A matrix, or each of a batch, transposed. */
Traced *emit_flip(Export *ex, Traced *x) {
    int64_t perm[TENSOR_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        perm[i] = i < x->rank - 2 ? i : 2 * x->rank - 3 - i;
    return emit_permuted(ex, x, perm);
}

Traced *emit_shape(Export *ex, Traced *x) {
    return x->shape ? traced_ints(x->shape, (uint32_t)x->rank)
                    : export_node(ex, "Shape", &x, 1, NULL, DT_I64, 1);
}

Traced *export_cast(Export *ex, Traced *x, DType dtype) {
    Str attrs = {0};
    if (x->dtype == dtype)
        return x;
    if (x->constant) {
        Tensor *out = tensor_new(dtype, x->rank, x->shape);
        for (int64_t i = 0; i < out->count; i++)
            elem_cast(tensor_at(out, i), dtype, tensor_at(x->constant, i), x->dtype);
        return traced_constant(out);
    }
    onnx_add_int(&attrs, "to", onnx_dtype_of(dtype));
    return export_node(ex, "Cast", &x, 1, &attrs, dtype, x->rank);
}

Traced *emit_gather(Export *ex, Traced *x, Traced *places, int64_t axis) {
    Str attrs = {0};
    bool is_index = places->dtype == DT_I32 || places->dtype == DT_I64;
    Traced *in[] = {x, is_index ? places : export_cast(ex, places, DT_I64)};
    onnx_add_int(&attrs, "axis", axis);
    Traced *out = export_node(ex, "Gather", in, 2, &attrs, x->dtype, x->rank - 1 + places->rank);
    int64_t *shape = new_shape(out->rank);
    axis = axis_from_front(axis, x->rank);
    if (!x->shape || (places->rank && !places->shape))
        return out;
    for (int i = 0; i < out->rank; i++)
        shape[i] = i < axis                  ? x->shape[i]
                   : i < axis + places->rank ? places->shape[i - axis]
                                             : x->shape[i + 1 - places->rank];
    out->shape = shape;
    return out;
}

Traced *export_size(Export *ex, Traced *x, int axis, DType dtype) {
    if (x->shape)
        return traced_int(ex, dtype, x->shape[axis]);
    Traced *size = emit_gather(ex, emit_shape(ex, x), traced_int(ex, DT_I64, axis), 0);
    return export_cast(ex, size, dtype);
}

/* As ONNX counts: from the end where negative, cut off at the ends. */
static int64_t sliced_size(int64_t n, int64_t begin, int64_t end, int64_t step) {
    int64_t least = step < 0 ? -1 : 0, most = step < 0 ? n - 1 : n;
    begin = begin < 0 && begin >= -n ? begin + n : begin < 0 ? least : begin;
    end = end < 0 && end >= -n ? end + n : end < 0 ? least : end;
    begin = begin < least ? least : begin > most ? most : begin;
    end = end < least ? least : end > most ? most : end;
    int64_t size = step < 0 ? (begin - end - step - 1) / -step : (end - begin + step - 1) / step;
    return size < 0 ? 0 : size;
}

Traced *emit_slice(Export *ex, Traced *x, const int64_t *begin, const int64_t *end,
                   const int64_t *axes, const int64_t *steps, uint32_t n) {
    Traced *in[] = {x, traced_ints(begin, n), traced_ints(end, n), traced_ints(axes, n),
                    traced_ints(steps, n)};
    if (!n)
        return x;
    Traced *out = export_node(ex, "Slice", in, 5, NULL, x->dtype, x->rank);
    int64_t *shape = new_shape(x->rank);
    if (!x->shape)
        return out;
    memcpy(shape, x->shape, sizeof *shape * (size_t)x->rank);
    for (uint32_t i = 0; i < n; i++) {
        int axis = (int)axis_from_front(axes[i], x->rank);
        shape[axis] = sliced_size(x->shape[axis], begin[i], end[i], steps[i]);
    }
    out->shape = shape;
    return out;
}

/* An attribute that is a list of sizes, some of which may be computed while the model runs, as a vector of
 * int64. The call's own sizes are taken in order from *next. NULL after a refusal. */
static Traced *sizes_of(Export *ex, const ExportCall *c, const char *name, uint32_t *next) {
    const AttrValue *v = attrs_get(c->attrs, name);
    int64_t known[TENSOR_MAX_RANK];
    Traced *parts[TENSOR_MAX_RANK];
    bool all = true;
    if (v->kind != ATTR_LIST || v->list.n > TENSOR_MAX_RANK)
        return NULL;
    for (uint32_t i = 0; i < v->list.n; i++) {
        const AttrValue *item = &v->list.items[i];
        all &= item->kind == ATTR_INT;
        if (item->kind == ATTR_INT) {
            known[i] = item->i;
            parts[i] = traced_ints(&item->i, 1);
        } else if (*next < c->nsizes && c->sizes[*next]->kind == TRACED_TENSOR) {
            Traced *size = export_cast(ex, c->sizes[(*next)++], DT_I64);
            parts[i] = emit_unsqueeze(ex, size, (int64_t[]){0}, 1);
        } else
            return NULL;
    }
    Str attrs = {0};
    onnx_add_int(&attrs, "axis", 0);
    return all ? traced_ints(known, v->list.n)
               : export_node(ex, "Concat", parts, v->list.n, &attrs, DT_I64, 1);
}

Traced *emit_expand(Export *ex, Traced *x, Traced *shape, int rank) {
    Traced *in[] = {x, shape};
    Traced *out = export_node(ex, "Expand", in, 2, NULL, x->dtype, rank);
    if (shape->constant && shape->dtype == DT_I64 && shape->constant->count == rank)
        out->shape = tensor_data(tensor_contiguous(shape->constant));
    return out;
}

Traced *emit_reshape(Export *ex, Traced *x, Traced *shape, int rank) {
    Traced *in[] = {x, shape};
    Traced *out = export_node(ex, "Reshape", in, 2, NULL, x->dtype, rank);
    int64_t *sizes = new_shape(rank), count = 1, rest = 1;
    int open = -1;
    if (!x->shape || !shape->constant || shape->dtype != DT_I64 || shape->constant->count != rank)
        return out;
    memcpy(sizes, tensor_data(tensor_contiguous(shape->constant)), sizeof *sizes * (size_t)rank);
    for (int i = 0; i < x->rank; i++)
        count *= x->shape[i];
    for (int i = 0; i < rank; i++) {
        if (sizes[i] == -1)
            open = i;
        else
            rest *= sizes[i];
    }
    if (open >= 0 && !rest)
        return out;
    if (open >= 0)
        sizes[open] = count / rest;
    out->shape = sizes;
    return out;
}

Traced *export_reshape(Export *ex, const ExportCall *c) {
    const AttrValue *v = attrs_get(c->attrs, "newshape");
    bool copies = false, sizes = c->nsizes > 0;
    uint32_t next = 0;
    Str attrs = {0};
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n; i++) {
        const AttrValue *item = &v->list.items[i];
        if (item->kind == ATTR_INT && item->i < -1)
            return call_refuse(ex, c, "with a code other than -1 and 0");
        copies |= item->kind == ATTR_INT && item->i == 0 && !item->is_size;
        sizes |= item->kind == ATTR_INT && item->i == 0 && item->is_size;
    }
    if (attrs_bool(c->attrs, "allowzero") || (copies && sizes))
        return call_refuse(ex, c, "with both a size of 0 and a code");
    Traced *in[] = {c->args[0], sizes_of(ex, c, "newshape", &next)};
    if (!in[1])
        return call_refuse(ex, c, "to sizes that are not known");
    if (sizes)
        onnx_add_int(&attrs, "allowzero", 1);
    return export_node(ex, "Reshape", in, 2, &attrs, in[0]->dtype, (int)v->list.n);
}

static Traced *permute(Export *ex, const ExportCall *c, bool inverse) {
    const int64_t *axes = NULL;
    uint32_t n = 0;
    Traced *x = c->args[0];
    int64_t perm[TENSOR_MAX_RANK];
    if (!attrs_is_none(c->attrs, "axes") && !attrs_ints(c->attrs, "axes", &axes, &n))
        return call_refuse(ex, c, "with axes that are not known");
    for (int i = 0; i < x->rank; i++) {
        int from = n ? axis_from_front(axes[i], x->rank) : x->rank - 1 - i;
        perm[inverse ? from : i] = inverse ? i : from;
    }
    return emit_permuted(ex, x, perm);
}

Traced *export_transpose(Export *ex, const ExportCall *c) { return permute(ex, c, false); }
Traced *export_transpose_inverse(Export *ex, const ExportCall *c) { return permute(ex, c, true); }

Traced *export_expand_dims(Export *ex, const ExportCall *c) {
    int64_t n = attrs_int(c->attrs, "num_newaxis"), axes[TENSOR_MAX_RANK];
    int64_t first = axis_from_front(attrs_int(c->attrs, "axis"), c->args[0]->rank + 1);
    for (int64_t i = 0; i < n && i < TENSOR_MAX_RANK; i++)
        axes[i] = first + i;
    return emit_unsqueeze(ex, c->args[0], axes, (uint32_t)n);
}

Traced *export_squeeze(Export *ex, const ExportCall *c) {
    const int64_t *axes;
    uint32_t n;
    if (!attrs_ints(c->attrs, "axis", &axes, &n))
        return call_refuse(ex, c, "without the axes that go");
    Traced *in[] = {c->args[0], traced_ints(axes, n)};
    return n ? export_node(ex, "Squeeze", in, 2, NULL, in[0]->dtype, in[0]->rank - (int)n) : in[0];
}

Traced *export_broadcast_to(Export *ex, const ExportCall *c) {
    uint32_t next = 0;
    Traced *shape = sizes_of(ex, c, "shape", &next);
    if (!shape)
        return call_refuse(ex, c, "to sizes that are not known");
    return emit_expand(ex, c->args[0], shape, (int)attrs_get(c->attrs, "shape")->list.n);
}

Traced *export_broadcast_to_like(Export *ex, const ExportCall *c) {
    return emit_expand(ex, c->args[0], emit_shape(ex, c->args[1]), c->args[1]->rank);
}

Traced *export_reshape_like(Export *ex, const ExportCall *c) {
    Traced *in[] = {c->args[0], emit_shape(ex, c->args[1])};
    if (attrs_int(c->attrs, "lhs_begin") || attrs_int(c->attrs, "rhs_begin") ||
        !attrs_is_none(c->attrs, "lhs_end") || !attrs_is_none(c->attrs, "rhs_end"))
        return call_refuse(ex, c, "of some axes");
    return export_node(ex, "Reshape", in, 2, NULL, in[0]->dtype, c->args[1]->rank);
}

Traced *export_shape_op(Export *ex, const ExportCall *c) {
    DType dtype = DT_I32;
    (void)attrs_dtype(c->attrs, "dtype", &dtype);
    return export_cast(ex, emit_shape(ex, c->args[0]), dtype);
}

/* zeros, ones and full of sizes that the model computes, and what they are like. */
Traced *export_filled(Export *ex, const ExportCall *c) {
    uint32_t next = 0;
    DType dtype = DT_F32;
    bool like = c->nargs && c->op != &op_full;
    const AttrValue *asked = attrs_find(c->attrs, "dtype");
    if (like)
        dtype = c->args[0]->dtype;
    else if (asked && asked->kind == ATTR_DTYPE)
        dtype = asked->dtype;
    else if (c->op == &op_full)
        dtype = c->args[0]->dtype;
    bool is_zero = c->op == &op_zeros || c->op == &op_zeros_like;
    bool is_one = c->op == &op_ones || c->op == &op_ones_like;
    Traced *value = is_zero  ? traced_int(ex, dtype, 0)
                    : is_one ? traced_int(ex, dtype, 1)
                             : export_cast(ex, c->args[like ? 1 : 0], dtype);
    Traced *shape = like ? emit_shape(ex, c->args[0]) : sizes_of(ex, c, "shape", &next);
    if (!shape)
        return call_refuse(ex, c, "of sizes that are not known");
    return emit_expand(ex, value, shape,
                       like ? c->args[0]->rank : (int)attrs_get(c->attrs, "shape")->list.n);
}

Traced *export_tile(Export *ex, const ExportCall *c) {
    const int64_t *reps;
    uint32_t n;
    int64_t all[TENSOR_MAX_RANK];
    Traced *x = c->args[0];
    if (!attrs_ints(c->attrs, "reps", &reps, &n) || (int)n > x->rank)
        return call_refuse(ex, c, "along new axes, or by numbers that are not known");
    for (int i = 0; i < x->rank; i++)
        all[i] = i < x->rank - (int)n ? 1 : reps[i - x->rank + (int)n];
    Traced *in[] = {x, traced_ints(all, (uint32_t)x->rank)};
    return export_node(ex, "Tile", in, 2, NULL, x->dtype, x->rank);
}

/* ---- parts and pieces ------------------------------------------------------------------------ */

bool share_dtype(Traced *const *args, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (args[i]->kind != TRACED_TENSOR || args[i]->dtype != args[0]->dtype)
            return false;
    return n > 0;
}

Traced *export_joined(Export *ex, const ExportCall *c) {
    Traced *tuple = c->args[0];
    Str attrs = {0};
    if (tuple->kind != TRACED_TUPLE || !share_dtype(tuple->parts, tuple->nparts))
        return call_refuse(ex, c, "of what are no tensors of one dtype");
    bool stacks = c->op == &op_stack;
    Traced **in = mem_new_n(Traced *, tuple->nparts);
    int rank = tuple->parts[0]->rank + stacks;
    int64_t axis = axis_from_front(attrs_int(c->attrs, "axis"), rank);
    for (uint32_t i = 0; i < tuple->nparts; i++)
        in[i] = stacks ? emit_unsqueeze(ex, tuple->parts[i], &axis, 1) : tuple->parts[i];
    onnx_add_int(&attrs, "axis", axis);
    return export_node(ex, "Concat", in, tuple->nparts, &attrs, in[0]->dtype, rank);
}

Traced *export_split(Export *ex, const ExportCall *c) {
    const AttrValue *cut = attrs_get(c->attrs, "indices_or_sections");
    Traced *x = c->args[0];
    int64_t axis = axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    uint32_t n = cut->kind == ATTR_LIST ? cut->list.n + 1 : (uint32_t)cut->i;
    if (n > MOST_PIECES || (cut->kind == ATTR_LIST && n > 1 && cut->list.items[0].kind != ATTR_INT))
        return call_refuse(ex, c, "into many pieces, or at places that are not known");
    Traced **parts = mem_new_n(Traced *, n);
    const char *names[MOST_PIECES];
    Str attrs = {0};
    onnx_add_int(&attrs, "axis", axis);
    for (uint32_t i = 0; i < n; i++) {
        if (cut->kind == ATTR_LIST) {
            int64_t begin = i ? cut->list.items[i - 1].i : 0, step = 1;
            int64_t end = i + 1 < n ? cut->list.items[i].i : INT64_MAX;
            parts[i] = emit_slice(ex, x, &begin, &end, &axis, &step, 1);
        } else {
            names[i] = export_name(ex, NULL);
            parts[i] = traced_named(names[i], x->dtype, x->rank);
        }
    }
    if (cut->kind != ATTR_LIST)
        export_node_outputs(ex, "Split", &x, 1, &attrs, names, n);
    return traced_tuple(parts, n);
}

Traced *export_strided_slice(Export *ex, const ExportCall *c) {
    const int64_t *begin = NULL, *end = NULL, *steps = NULL, *axes = NULL;
    uint32_t nbegin = 0, nend = 0, nsteps = 0, naxes = 0, n;
    Traced *x = c->args[0];
    int64_t from[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], by[TENSOR_MAX_RANK], at[TENSOR_MAX_RANK];
    bool known = (attrs_is_none(c->attrs, "begin") ||
                  attrs_ints(c->attrs, "begin", &begin, &nbegin)) &&
                 (attrs_is_none(c->attrs, "end") || attrs_ints(c->attrs, "end", &end, &nend)) &&
                 (attrs_is_none(c->attrs, "strides") ||
                  attrs_ints(c->attrs, "strides", &steps, &nsteps)) &&
                 (attrs_is_none(c->attrs, "axes") || attrs_ints(c->attrs, "axes", &axes, &naxes));
    if (!known || strcmp(attrs_text(c->attrs, "slice_mode"), "end") != 0)
        return call_refuse(ex, c, "of places that are not known, or by sizes");
    n = naxes ? naxes : (uint32_t)x->rank;
    for (uint32_t i = 0; i < n; i++) {
        by[i] = nsteps ? steps[nsteps == 1 ? 0 : i < nsteps ? i : nsteps - 1] : 1;
        if (nsteps > 1 && i >= nsteps)
            by[i] = 1;
        from[i] = i < nbegin ? begin[i] : by[i] < 0 ? INT64_MAX : 0;
        to[i] = i < nend ? end[i] : by[i] < 0 ? INT64_MIN : INT64_MAX;
        at[i] = naxes ? axes[i] : (int64_t)i;
    }
    return emit_slice(ex, x, from, to, at, by, n);
}

/* Places beyond the ends are those that `mode` says. */
Traced *export_take(Export *ex, const ExportCall *c) {
    Traced *x = c->args[0], *places = c->args[1];
    const char *mode = attrs_text(c->attrs, "mode");
    if (attrs_is_none(c->attrs, "axis") || attrs_int(c->attrs, "batch_dims"))
        return call_refuse(ex, c, "without an axis, or within batches");
    int64_t axis = axis_from_front(attrs_int(c->attrs, "axis"), x->rank);
    places = export_cast(ex, places, DT_I64);
    if (strcmp(mode, "clip") == 0) {
        Traced *last = emit_binary(ex, "Sub", export_size(ex, x, (int)axis, DT_I64),
                                   traced_int(ex, DT_I64, 1));
        Traced *in[] = {places, traced_int(ex, DT_I64, 0), last};
        places = export_node(ex, "Clip", in, 3, NULL, DT_I64, places->rank);
    } else if (strcmp(mode, "wrap") == 0)
        places = emit_binary(ex, "Mod", places, export_size(ex, x, (int)axis, DT_I64));
    return emit_gather(ex, x, places, axis);
}

/* The integers of a slice that are given; false where one is not known. */
static bool read_bound(Traced *const *args, uint32_t nargs, uint32_t *next, int64_t *out) {
    Traced *t = *next < nargs ? args[(*next)++] : NULL;
    if (!t || !t->constant || t->rank)
        return false;
    elem_cast(out, DT_I64, tensor_data(t->constant), t->dtype);
    return true;
}

/* Axes that x[spec] says something of, besides those that an ellipsis stands for. */
static int count_axes(const char *spec) {
    int n = 0;
    for (; *spec; spec++)
        n += *spec == 'i' || *spec == ':' || *spec == 'v' || *spec == 'o';
    return n;
}

Traced *export_index(Export *ex, Span span, const char *spec, Traced *x, Traced **args,
                     uint32_t nargs) {
    int axis = 0, rest = x->rank - count_axes(spec);
    bool has_vector = strchr(spec, 'v') != NULL;
    uint32_t next = 0;
    for (const char *p = spec; *p; p++) {
        Traced *at = NULL;
        int64_t here = axis;
        switch (*p) {
        case 'o':
        case 'i':
        case 'v':
            at = next < nargs ? args[next++] : NULL;
            if (!at || at->kind != TRACED_TENSOR || at->rank > 1 || at->dtype == DT_BOOL ||
                ((has_vector || at->rank) && strlen(spec) > 1))
                return export_refuse(ex, span, "an index by a mask or by several vectors");
            x = emit_gather(ex, x, at, axis);
            axis += at->rank;
            break;
        case ':': {
            int bits = p[1] - '0';
            int64_t begin = 0, end = INT64_MAX, step = 1;
            bool known = (!(bits & 1) || read_bound(args, nargs, &next, &begin)) &&
                         (!(bits & 2) || read_bound(args, nargs, &next, &end)) &&
                         (!(bits & 4) || read_bound(args, nargs, &next, &step));
            p++;
            if (!known)
                return export_refuse(ex, span, "a slice whose ends are not known");
            if (step < 0) {
                begin = bits & 1 ? begin : INT64_MAX;
                end = bits & 2 ? end : INT64_MIN;
            }
            if (bits)
                x = emit_slice(ex, x, &begin, &end, &here, &step, 1);
            axis++;
            break;
        }
        case 'n':
            x = emit_unsqueeze(ex, x, &here, 1);
            axis++;
            break;
        case '.': axis += rest; break;
        default: return export_refuse(ex, span, "an index of this form");
        }
    }
    return x;
}

Traced *export_index_op(Export *ex, const ExportCall *c) {
    const Traced *places = c->args[1];
    return export_index(ex, c->span, attrs_text(c->attrs, "spec"), c->args[0], places->parts,
                        places->nparts);
}
