/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, products, and what is made of them. */
#include <math.h>
#include <string.h>

#include "interchange/ops_impl.h"

static Val *reduced(Node *n, const char *text, const bool *gone, bool keep, DType d) {
    Val *in = node_in(n, 0);
    Num dims[ONNX_MAX_RANK + 1];
    int rank = 0;
    for (int i = 0; i < in->rank; i++)
        if (!gone[i] || keep)
            dims[rank++] = gone[i] ? num_int(1) : in->dims[i];
    return val_tensor(text, d, rank, dims);
}

void onnx_reduce(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    bool keep = attr_int(n, "keepdims", 1) != 0, noop = attr_int(n, "noop_with_empty_axes", 0) != 0;
    bool gone[ONNX_MAX_RANK + 1] = {false};
    OnnxInts axes = {0}, sorted = {0};
    bool given = attr_ints(n, "axes", &axes) ||
                 (node_has(n, 1) && node_ints(n, 1, "its axes", &axes));
    if (n->failed)
        return;
    given = given && axes.len;
    for (size_t i = 0; i < axes.len; i++)
        gone[node_axis(n, axes.data[i], rank)] = true;
    for (int i = 0; i < rank; i++) {
        gone[i] |= !given && !noop;
        if (gone[i])
            vec_push(&sorted, i);
    }
    Str text = {0};
    const char *form = node_fill(n, n->op->form);
    int open = 0;
    for (const char *p = form; *p; p++)
        open += *p == '(' ? 1 : *p == ')' ? -1 : 0;
    str_add(&text, form);
    if (!sorted.len && rank > 0)
        str_add(&text, ", axis=[]");
    else if ((int)sorted.len < rank)
        str_printf(&text, ", axis=%s", ints_print(sorted.data, sorted.len));
    if (keep && rank > 0)
        str_add(&text, ", keepdims=True");
    while (open-- > 0)
        str_add(&text, ")");
    bool nothing = false;
    for (size_t i = 0; i < sorted.len; i++)
        nothing |= in->dims[sorted.data[i]].known && in->dims[sorted.data[i]].n == 0;
    if (nothing && n->op->form[0] == 'm' &&
        n->op->form[1] != 'e') { /* max and min: the least and the greatest */
        DType d = node_dtype(n, 0);
        Val *v = reduced(n, "", gone, keep, d);
        const char *shape = nums_print(v->dims, (size_t)v->rank);
        bool least = n->op->form[1] == 'a';
        if (!shape || dtype_is_int(d))
            node_refuse(n, "of no elements");
        v->text = fmt_text("full(%s, shape=%s, dtype=%s)",
                           d == DT_BOOL ? (least ? "False" : "True")
                                        : float_text(least ? -INFINITY : INFINITY, d),
                           shape, dtype_info[d].name);
        node_bind(n, 0, v);
        return;
    }
    node_bind(n, 0, reduced(n, str_text(&text), gone, keep, node_dtype(n, 0)));
}

void onnx_arg_reduce(Node *n) {
    int rank = node_rank(n, 0);
    bool keep = attr_int(n, "keepdims", 1) != 0, last = attr_int(n, "select_last_index", 0) != 0;
    int64_t axis = node_axis(n, attr_int(n, "axis", 0), rank);
    bool gone[ONNX_MAX_RANK + 1] = {false};
    gone[axis] = true;
    node_bind(n, 0,
              reduced(n,
                      fmt_text("cast(%s(%s, axis=[%lld], keepdims=%s%s), dtype=int64)", n->op->form,
                               node_text(n, 0), (long long)axis, keep ? "True" : "False",
                               last ? ", select_last_index=True" : ""),
                      gone, keep, DT_I64));
}

/* Before opset 13 softmax was over all axes from `axis` on. */
void onnx_softmax(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    bool old = node_opset(n) < 13;
    int64_t axis = node_axis(n, attr_int(n, "axis", old ? 1 : -1), rank ? rank : 1);
    if (!old || axis == rank - 1) {
        node_bind_like(n, "%s(%s, axis=%lld)", n->op->form, in->text, (long long)axis);
        return;
    }
    int64_t rest = 1;
    for (int i = (int)axis; i < rank; i++) {
        if (!in->dims[i].known || __builtin_mul_overflow(rest, in->dims[i].n, &rest)) {
            node_refuse(n, "the sizes of the axes it is over are not known");
            return;
        }
    }
    const char *flat = node_let(n, "flat", "reshape(%s, newshape=[-1, %lld])", in->text,
                                (long long)rest);
    node_bind_like(n, "reshape_like(%s(%s, axis=1), %s)", n->op->form, flat, in->text);
}

void onnx_hardmax(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    bool old = node_opset(n) < 13;
    int64_t axis = node_axis(n, attr_int(n, "axis", old ? 1 : -1), rank);
    if (n->failed || (old && axis != rank - 1) || !in->dims[axis].known) {
        node_refuse(n, "the size of its axis is not known, or it is over several");
        return;
    }
    DType d = node_dtype(n, 0);
    node_bind_like(n, "one_hot(argmax(%s, axis=[%lld]), %s, %s, depth=%s, axis=%lld)", in->text,
                   (long long)axis, float_text(1.0, d), float_text(0.0, d),
                   num_print(in->dims[axis]), (long long)axis);
}

void onnx_lp_normalization(Node *n) {
    const char *x = node_text(n, 0);
    int64_t axis = node_axis(n, attr_int(n, "axis", -1), node_rank(n, 0)), p = attr_int(n, "p", 2);
    const char *norm = p == 1
                           ? node_let(n, "norm", "sum(abs(%s), axis=[%lld], keepdims=True)", x,
                                      (long long)axis)
                           : node_let(n, "norm", "sqrt(sum(%s * %s, axis=[%lld], keepdims=True))",
                                      x, x, (long long)axis);
    node_bind_like(n, "where(%s == 0.0, 0.0, %s / %s)", norm, x, norm);
}

void onnx_mean_variance(Node *n) {
    const char *x = node_text(n, 0);
    OnnxInts axes = {0};
    if (!attr_ints(n, "axes", &axes)) {
        vec_push(&axes, 0);
        vec_push(&axes, 2);
        vec_push(&axes, 3);
    }
    const char *over = ints_print(axes.data, axes.len);
    const char *centred = node_let(n, "centred", "%s - mean(%s, axis=%s, keepdims=True)", x, x,
                                   over);
    node_bind_like(n, "%s / (sqrt(mean(%s * %s, axis=%s, keepdims=True)) + 1e-9)", centred, centred,
                   centred, over);
}

/* ---- products -------------------------------------------------------------------------------- */

static Val *product(Node *n, const char *text, const Val *a, const Val *b, DType d) {
    Num dims[ONNX_MAX_RANK + 2];
    if (a->rank < 1 || b->rank < 1) {
        node_refuse(n, "of a scalar");
        return val_tensor(text, d, 0, NULL);
    }
    Val x = *a, y = *b;
    x.rank = a->rank > 2 ? a->rank - 2 : 0;
    y.rank = b->rank > 2 ? b->rank - 2 : 0;
    Val *batch[] = {&x, &y};
    Val *front = val_broadcast(text, d, batch, 2);
    int rank = front->rank;
    for (int i = 0; i < rank; i++)
        dims[i] = front->dims[i];
    if (a->rank > 1)
        dims[rank++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[rank++] = b->dims[b->rank - 1];
    return val_tensor(text, d, rank, dims);
}

void onnx_matmul(Node *n) {
    Val *a = node_in(n, 0), *b = node_in(n, 1);
    (void)node_rank(n, 0);
    (void)node_rank(n, 1);
    if (!n->failed)
        node_bind(n, 0, product(n, fmt_text("%s @@ %s", a->text, b->text), a, b, node_dtype(n, 0)));
}

void onnx_gemm(Node *n) {
    Val *a = node_in(n, 0), *b = node_in(n, 1);
    double alpha = attr_float(n, "alpha", 1.0), beta = attr_float(n, "beta", 1.0);
    bool ta = attr_int(n, "transA", 0) != 0, tb = attr_int(n, "transB", 0) != 0;
    if (node_rank(n, 0) != 2 || node_rank(n, 1) != 2) {
        node_refuse(n, "of tensors that are no matrices");
        return;
    }
    DType d = node_dtype(n, 0);
    const char *x = ta ? fmt_text("transpose(%s)", a->text) : a->text;
    const char *text = tb ? fmt_text("nn.dense(%s, %s)", x, b->text)
                          : fmt_text("%s @@ %s", x, b->text);
    if (alpha != 1.0)
        text = fmt_text("%s * %s", float_text(alpha, DT_F32), tb ? text : fmt_text("(%s)", text));
    if (node_has(n, 2) && beta != 0.0)
        text = beta == 1.0
                   ? fmt_text("%s + %s", text, node_text(n, 2))
                   : fmt_text("%s + %s * %s", text, float_text(beta, DT_F32), node_text(n, 2));
    if (!dtype_is_float(d) && (alpha != 1.0 || beta != 1.0))
        node_refuse(n, "of integers with factors");
    Num dims[] = {a->dims[ta ? 1 : 0], b->dims[tb ? 0 : 1]};
    node_bind(n, 0, val_tensor(text, d, 2, dims));
}

/* A zero point of a matrix: one, or one a row. */
static const char *widened(Node *n, uint32_t i, uint32_t zero, bool rows) {
    const char *x = fmt_text("cast(%s, dtype=int32)", node_text(n, i));
    if (!node_has(n, zero))
        return x;
    const char *z = fmt_text("cast(%s, dtype=int32)", node_text(n, zero));
    if (rows && node_rank(n, zero) == 1)
        z = fmt_text("expand_dims(%s, axis=1)", z);
    return fmt_text("(%s - %s)", x, z);
}

void onnx_matmul_integer(Node *n) {
    const char *text = fmt_text("%s @@ %s", widened(n, 0, 2, true), widened(n, 1, 3, false));
    if (node_rank(n, 0) && node_rank(n, 1))
        node_bind(n, 0, product(n, text, node_in(n, 0), node_in(n, 1), DT_I32));
}

void onnx_qlinear_matmul(Node *n) {
    const char *sum = node_let(n, "sum", "%s @@ %s", widened(n, 0, 2, true),
                               widened(n, 3, 5, false));
    const char *as = node_text(n, 1), *bs = node_text(n, 4), *ys = node_text(n, 6),
               *yz = node_text(n, 7);
    DType d = node_dtype(n, 7);
    if (node_rank(n, 1) == 1)
        as = fmt_text("expand_dims(%s, axis=1)", as);
    const char *text = fmt_text(
        "cast(round(cast(%s, dtype=float32) * (cast(%s, dtype=float32) * cast(%s, dtype=float32) / "
        "cast(%s, dtype=float32))) + cast(%s, dtype=float32), dtype=%s)",
        sum, as, bs, ys, yz, dtype_info[d].name);
    if (!n->failed)
        node_bind(n, 0, product(n, text, node_in(n, 0), node_in(n, 3), d));
}

/* ---- quantised numbers ----------------------------------------------------------------------- */

/* A scale or zero point along an axis, so that it broadcasts. */
static const char *along(Node *n, uint32_t i, int64_t axis) {
    int rank = node_rank(n, 0), k = node_rank(n, i);
    const char *text = node_text(n, i);
    if (k == 0)
        return text;
    if (k != 1 || (node_in(n, i)->dims[0].known && node_in(n, i)->dims[0].n == 1 && rank == 0)) {
        node_refuse(n, "its scale has %d axes", k);
        return text;
    }
    if (node_in(n, i)->dims[0].known && node_in(n, i)->dims[0].n == 1)
        return fmt_text("%s[0]", text);
    axis = node_axis(n, axis, rank);
    int after = rank - 1 - (int)axis;
    return after ? fmt_text("expand_dims(%s, axis=1, num_newaxis=%d)", text, after) : text;
}

void onnx_quantize(Node *n) {
    int64_t axis = attr_int(n, "axis", 1);
    DType d = DT_U8;
    int64_t type = attr_int(n, "output_dtype", 0);
    attr_ignore(n, "saturate");
    if (attr_int(n, "block_size", 0) || attr_int(n, "precision", 0))
        node_refuse(n, "in blocks, or of a precision of its own");
    if (node_has(n, 2))
        d = node_dtype(n, 2);
    else if (type && !onnx_find_dtype(type, &d))
        node_refuse(n, "to %s, which Relay has not", onnx_dtype_name(type));
    if (!dtype_is_int(d) || dtype_size(d) > 2)
        node_refuse(n, "to %s", dtype_info[d].name);
    const char *x = fmt_text("cast(%s, dtype=float32)", node_text(n, 0)),
               *scale = fmt_text("cast(%s, dtype=float32)", along(n, 1, axis));
    const char *text = fmt_text("round(%s / %s)", x, scale);
    if (node_has(n, 2))
        text = fmt_text("%s + cast(%s, dtype=float32)", text, along(n, 2, axis));
    Val *v = val_like(node_in(n, 0), fmt_text("cast(%s, dtype=%s)", text, dtype_info[d].name));
    v->dtype = d;
    node_bind(n, 0, v);
}

void onnx_dequantize(Node *n) {
    int64_t axis = attr_int(n, "axis", 1);
    DType d = node_dtype(n, 1), from = node_dtype(n, 0);
    int64_t type = attr_int(n, "output_dtype", 0);
    if (attr_int(n, "block_size", 0) || (type && !onnx_find_dtype(type, &d)))
        node_refuse(n, "in blocks, or to a dtype that Relay has not");
    if (!dtype_is_int(from))
        node_refuse(n, "of %s", dtype_info[from].name);
    const char *x = fmt_text("cast(%s, dtype=%s)", node_text(n, 0), dtype_info[d].name);
    if (node_has(n, 2))
        x = fmt_text("(%s - cast(%s, dtype=%s))", x, along(n, 2, axis), dtype_info[d].name);
    Val *v = val_like(node_in(n, 0), fmt_text("%s * cast(%s, dtype=%s)", x, along(n, 1, axis),
                                              dtype_info[d].name));
    v->dtype = d;
    node_bind(n, 0, v);
}

void onnx_dynamic_quantize(Node *n) {
    const char *x = node_text(n, 0);
    const char *low = node_let(n, "low", "minimum(min(%s), 0.0)", x),
               *high = node_let(n, "high", "maximum(max(%s), 0.0)", x);
    const char *scale = node_let(n, "scale", "(%s - %s) / 255.0", high, low);
    const char *zero = node_let(
        n, "zero", "cast(round(clip(0.0 - %s / %s, a_min=0.0, a_max=255.0)), dtype=uint8)", low,
        scale);
    Val *v = val_like(
        node_in(n, 0),
        fmt_text("cast(round(%s / %s) + cast(%s, dtype=float32), dtype=uint8)", x, scale, zero));
    v->dtype = DT_U8;
    node_bind(n, 0, v);
    node_alias(n, 1, val_tensor(scale, DT_F32, 0, NULL));
    node_alias(n, 2, val_tensor(zero, DT_U8, 0, NULL));
}
