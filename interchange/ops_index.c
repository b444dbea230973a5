/* SPDX-License-Identifier: Apache-2.0 */
/* Picking and placing elements, order, and running sums. */
#include <string.h>

#include "interchange/ops_impl.h"

void onnx_gather(Node *n) {
    Val *in = node_in(n, 0), *at = node_in(n, 1);
    int rank = node_rank(n, 0), k = node_rank(n, 1);
    int64_t axis = node_axis(n, attr_int(n, "axis", 0), rank);
    Num dims[2 * ONNX_MAX_RANK];
    if (n->failed || rank + k - 1 > ONNX_MAX_RANK)
        return;
    for (int i = 0; i < rank + k - 1; i++)
        dims[i] = i < axis ? in->dims[i] : i < axis + k ? at->dims[i - axis] : in->dims[i - k + 1];
    Val *v = val_tensor(NULL, node_dtype(n, 0), rank + k - 1, dims);
    bool one = k == 0 && at->has_nums && at->nums.len && at->nums.data[0].known;
    if (one) {
        Str places = {0};
        for (int64_t i = 0; i < axis; i++)
            str_add(&places, ":, ");
        v->text = fmt_text("%s[%s%lld]", in->text, str_text(&places),
                           (long long)at->nums.data[0].n);
    } else
        v->text = fmt_text("take(%s, %s, axis=%lld, mode=\"fast\")", in->text, at->text,
                           (long long)axis);
    if (in->has_nums && at->has_nums && rank == 1) {
        v->has_nums = true;
        for (size_t i = 0; i < at->nums.len; i++) {
            Num m = at->nums.data[i];
            int64_t place = m.n < 0 ? m.n + (int64_t)in->nums.len : m.n;
            if (!m.known || place < 0 || place >= (int64_t)in->nums.len) {
                v->has_nums = false;
                break;
            }
            vec_push(&v->nums, in->nums.data[place]);
        }
    }
    node_bind(n, 0, v);
}

void onnx_gather_elements(Node *n) {
    Val *at = node_in(n, 1);
    int64_t axis = node_axis(n, attr_int(n, "axis", 0), node_rank(n, 0));
    node_bind(n, 0,
              val_tensor(
                  fmt_text("gather(%s, %s, axis=%lld)", node_text(n, 0), at->text, (long long)axis),
                  node_dtype(n, 0), at->rank, at->dims));
}

/* ONNX has coordinates along the last axis of the indices, Relay along the first. */
static const char *coordinates_first(const Val *at) {
    OnnxInts axes = {0};
    if (at->rank < 2)
        return at->text;
    vec_push(&axes, at->rank - 1);
    for (int i = 0; i + 1 < at->rank; i++)
        vec_push(&axes, i);
    return at->rank == 2
               ? fmt_text("transpose(%s)", at->text)
               : fmt_text("transpose(%s, axes=%s)", at->text, ints_print(axes.data, axes.len));
}

void onnx_gather_nd(Node *n) {
    Val *in = node_in(n, 0), *at = node_in(n, 1);
    int64_t batch = attr_int(n, "batch_dims", 0);
    int rank = node_rank(n, 0), k = node_rank(n, 1);
    if (k < 1 || !at->dims[k - 1].known) {
        node_refuse(n, "how many coordinates its indices have is not known");
        return;
    }
    int64_t c = at->dims[k - 1].n, total = k - 1 + rank - c - batch;
    if (total < 0 || total > ONNX_MAX_RANK || batch < 0 || batch + c > rank) {
        node_refuse(n, "its indices have %lld coordinates for %d axes", (long long)c, rank);
        return;
    }
    Num dims[ONNX_MAX_RANK];
    for (int i = 0; i < total; i++)
        dims[i] = i < k - 1 ? at->dims[i] : in->dims[i - (k - 1) + c + batch];
    node_bind(n, 0,
              val_tensor(fmt_text("gather_nd(%s, %s, batch_dims=%lld, index_rank=%lld)", in->text,
                                  coordinates_first(at), (long long)batch, (long long)c),
                         node_dtype(n, 0), (int)total, dims));
}

/* none is "update". */
static const char *reduction_of(Node *n) {
    const char *r = attr_text(n, "reduction", "none");
    return strcmp(r, "none") == 0 ? "update" : r;
}

void onnx_scatter_elements(Node *n) {
    int64_t axis = node_axis(n, attr_int(n, "axis", 0), node_rank(n, 0));
    Val *at = node_in(n, 1);
    const char *places = at->text;
    Num size = node_in(n, 0)->dims[axis];
    if (n->failed)
        return;
    const char *len = num_print(val_dim(node_in(n, 0), (int)axis));
    (void)size;
    places = fmt_text("where(%s < 0, %s + %s, %s)", places, places, len, places);
    node_bind_like(n, "scatter_elements(%s, %s, %s, axis=%lld, reduction=\"%s\")", node_text(n, 0),
                   places, node_text(n, 2), (long long)axis, reduction_of(n));
}

void onnx_scatter_nd(Node *n) {
    Val *at = node_in(n, 1);
    (void)node_rank(n, 1);
    node_bind_like(n, "scatter_nd(%s, %s, %s, mode=\"%s\")", node_text(n, 0), coordinates_first(at),
                   node_text(n, 2), reduction_of(n));
}

void onnx_one_hot(Node *n) {
    Val *at = node_in(n, 0);
    int rank = node_rank(n, 0);
    Nums depth = {0};
    int64_t axis = attr_int(n, "axis", -1);
    DType d = node_dtype(n, 0), type = node_dtype(n, 2);
    if (!node_nums(n, 1, "its depth", &depth) || !depth.len)
        return;
    axis = node_axis(n, axis, rank + 1);
    const char *size = num_print(depth.data[0]);
    const char *places = d == DT_I64 ? at->text : fmt_text("cast(%s, dtype=int64)", at->text);
    if (node_dtype(n, 1) != DT_I64 && !depth.data[0].known)
        size = fmt_text("cast(%s, dtype=int64)", size);
    places = node_let(n, "places", "where(%s < 0, %s + %s, %s)", places, places, size, places);
    Num dims[ONNX_MAX_RANK + 1];
    for (int i = 0; i <= rank && i < ONNX_MAX_RANK; i++)
        dims[i] = i < axis ? at->dims[i] : i == axis ? depth.data[0] : at->dims[i - 1];
    const char *v = node_text(n, 2);
    node_bind(n, 0,
              val_tensor(fmt_text("one_hot(%s, %s[1], %s[0], depth=%s, axis=%lld)", places, v, v,
                                  size, (long long)axis),
                         type, rank + 1, dims));
}

void onnx_topk(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    int64_t axis = node_axis(n, attr_int(n, "axis", -1), rank), k = 0;
    bool largest = attr_int(n, "largest", 1) != 0;
    OnnxInts ks = {0};
    attr_ignore(n, "sorted");
    if (node_opset(n) < 10)
        k = attr_int(n, "k", 0);
    else if (!node_ints(n, 1, "how many it takes", &ks))
        return;
    else if (ks.len)
        k = ks.data[0];
    if (k < 1) {
        node_refuse(n, "it takes %lld elements", (long long)k);
        return;
    }
    const char *both = node_let(n, "top", "topk(%s, k=%lld, axis=%lld, is_ascend=%s, dtype=int64)",
                                in->text, (long long)k, (long long)axis,
                                largest ? "False" : "True");
    for (uint32_t i = 0; i < 2; i++) {
        Val *v = val_tensor(fmt_text("%s.%u", both, i), i ? DT_I64 : node_dtype(n, 0), rank,
                            in->dims);
        if (rank)
            v->dims[axis] = num_int(k);
        node_bind(n, i, v);
    }
}

void onnx_cumulate(Node *n) {
    OnnxInts axes = {0};
    if (!node_ints(n, 1, "its axis", &axes) || axes.len != 1)
        return;
    int64_t axis = node_axis(n, axes.data[0], node_rank(n, 0));
    bool back = attr_int(n, "reverse", 0) != 0, exclusive = attr_int(n, "exclusive", 0) != 0;
    const char *x = node_text(n, 0),
               *from = back ? fmt_text("reverse(%s, axis=%lld)", x, (long long)axis) : x;
    const char *sum = fmt_text("%s(%s, axis=%lld%s)", n->op->form, from, (long long)axis,
                               exclusive ? ", exclusive=True" : "");
    node_bind_like(n, back ? "reverse(%s, axis=%lld)" : "%s", sum, (long long)axis);
}

void onnx_unique(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    if (node_attr(n, "axis") && rank != 1) {
        node_refuse(n, "along an axis");
        return;
    }
    const char *flat = rank == 1 ? in->text : fmt_text("reshape(%s, newshape=[-1])", in->text);
    const char *all = node_let(n, "found", "unique(%s, sorted=%s, return_counts=True)", flat,
                               attr_int(n, "sorted", 1) ? "True" : "False");
    static const int part[] = {0, 1, 2, 4};
    Num dim = num_unknown();
    for (uint32_t i = 0; i < 4; i++) {
        if (!node_wants(n, i))
            continue;
        Val *v = val_tensor(fmt_text(i ? "cast(%s.%d, dtype=int64)" : "%s.%d", all, part[i]),
                            i ? DT_I64 : node_dtype(n, 0), 1, &dim);
        node_bind(n, i, v);
    }
}

void onnx_compress(Node *n) {
    Val *in = node_in(n, 0), *mask = node_in(n, 1);
    int rank = node_rank(n, 0);
    const OnnxAttr *a = node_attr(n, "axis");
    const char *x = in->text;
    int64_t axis = a ? node_axis(n, a->i, rank) : 0;
    if (n->failed)
        return;
    if (!a && rank != 1)
        x = node_let(n, "flat", "reshape(%s, newshape=[-1])", x);
    Str before = {0};
    for (int64_t i = 0; i < axis; i++)
        str_add(&before, ":, ");
    /* A mask may be shorter than the axis: the rest is left out. */
    const char *part = node_let(n, "part", "%s[%s:%s]", x, str_text(&before),
                                num_print(val_dim(mask, 0)));
    Val *v = val_tensor(fmt_text("%s[%s%s]", part, str_text(&before), mask->text), node_dtype(n, 0),
                        a ? rank : 1, in->dims);
    v->dims[axis] = num_unknown();
    node_bind(n, 0, v);
}

void onnx_non_zero(Node *n) {
    Val *in = node_in(n, 0);
    Num dims[2] = {num_int(node_rank(n, 0)), num_unknown()};
    Nums places = {0};
    bool known = in->rank == 1 && val_has_nums(in);
    for (size_t i = 0; known && i < in->nums.len; i++) {
        known = in->nums.data[i].known;
        if (in->nums.data[i].n)
            vec_push(&places, num_int((int64_t)i));
    }
    if (known)
        dims[1] = num_int((int64_t)places.len);
    Val *v = val_tensor(fmt_text("cast(transpose(argwhere(%s)), dtype=int64)", in->text), DT_I64, 2,
                        dims);
    v->nums = places;
    v->has_nums = known;
    node_bind(n, 0, v);
}

void onnx_trilu(Node *n) {
    bool upper = attr_int(n, "upper", 1) != 0;
    const char *k = node_has(n, 1) ? node_text(n, 1) : "0";
    if (node_has(n, 1) && node_rank(n, 1) == 1)
        k = fmt_text("%s[0]", k);
    node_bind_like(n, "trilu(%s, %s, upper=%s)", node_text(n, 0), k, upper ? "True" : "False");
}

void onnx_reverse_sequence(Node *n) {
    node_bind_like(n, "reverse_sequence(%s, %s, seq_axis=%lld, batch_axis=%lld)", node_text(n, 0),
                   node_text(n, 1), (long long)attr_int(n, "time_axis", 0),
                   (long long)attr_int(n, "batch_axis", 1));
}

void onnx_einsum(Node *n) {
    Str args = {0}, quoted = {0};
    const char *equation = attr_text(n, "equation", "");
    uint32_t k = node_inputs(n);
    for (uint32_t i = 0; i < k; i++)
        str_printf(&args, "%s%s", i ? ", " : "", node_text(n, i));
    str_add_quoted(&quoted, equation, strlen(equation));
    /* The rank of the result is the letters behind the arrow; an ellipsis leaves it open. */
    const char *arrow = strstr(equation, "->");
    int rank = -1;
    if (arrow && !strstr(equation, "...")) {
        rank = 0;
        for (const char *p = arrow + 2; *p; p++)
            rank += *p != ' ';
    }
    node_bind(n, 0,
              val_tensor(fmt_text("einsum((%s%s), equation=%s)", str_text(&args), k == 1 ? "," : "",
                                  str_text(&quoted)),
                         node_dtype(n, 0), rank, NULL));
}
