/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in attributes become blocks of Relay; sequences are Lists. */
#include <string.h>

#include "interchange/ops_impl.h"

static OnnxGraph *graph_attr(Node *n, const char *name) {
    const OnnxAttr *a = node_attr(n, name);
    if (!a || !a->graph)
        node_refuse(n, "it has no graph `%s`", name);
    return a ? a->graph : NULL;
}

/* A condition or a count that may have one axis of size 1. */
static const char *scalar_text(Node *n, uint32_t i) {
    const Val *v = node_in(n, i);
    return v->rank == 1 ? fmt_text("%s[0]", v->text) : v->text;
}

static Val *part(const Val *like, const char *text) { return val_like(like, text); }

/* Sizes that two values do not share are not known of what may be either. */
static void join(Val *a, const Val *b) {
    if (a->kind != b->kind)
        return;
    if (a->kind != KIND_OF_TENSOR)
        return;
    Num *dims = mem_new_n(Num, (a->rank < 0 ? 0 : a->rank) + 1);
    for (int i = 0; i < a->rank && a->rank == b->rank; i++) {
        dims[i] = num_is(a->dims[i], b->dims[i]) ? a->dims[i] : num_unknown();
    }
    if (a->rank != b->rank)
        a->rank = -1;
    a->dims = dims;
    a->has_nums = false;
    a->constant = NULL;
}

void onnx_if(Node *n) {
    OnnxGraph *yes = graph_attr(n, "then_branch"), *no = graph_attr(n, "else_branch");
    const Val *condition = node_in(n, 0);
    Vals a = {0}, b = {0};
    if (n->failed)
        return;
    /* Of a constant condition one branch is all there is. */
    const char *then = node_graph(n, yes, NULL, 0, &a), *otherwise = node_graph(n, no, NULL, 0, &b);
    if (!then || !otherwise)
        return;
    if (a.len != b.len || a.len != n->node->outputs.len) {
        node_refuse(n, "its branches give %zu and %zu values", a.len, b.len);
        return;
    }
    (void)condition;
    const char *result = node_let(n, a.len == 1 ? n->node->outputs.data[0] : "chosen",
                                  "if (%s) {\n%s} else {\n%s}", scalar_text(n, 0), then, otherwise);
    for (size_t i = 0; i < a.len; i++) {
        Val *v = part(a.data[i], a.len == 1 ? result : fmt_text("%s.%zu", result, i));
        join(v, b.data[i]);
        if (a.len == 1)
            node_alias(n, 0, v);
        else
            node_bind(n, (uint32_t)i, v);
    }
}

/* What is carried through a loop keeps dtype and rank; its sizes may change. */
static Val *carried(const Val *from, const char *name, bool fixed) {
    Val *v = val_like(from, name);
    if (v->kind == KIND_OF_TENSOR && !fixed) {
        v->dims = mem_new_n(Num, (v->rank < 0 ? 0 : v->rank) + 1);
    }
    return v;
}

static const char *joined(const OnnxNames *names) {
    Str out = {0};
    for (size_t i = 0; i < names->len; i++)
        str_printf(&out, "%s%s", i ? ", " : "", names->data[i]);
    return str_text(&out);
}

/* Loop: M, condition, carried…; its body: iteration, condition, carried… -> condition, carried…, scanned…. */
void onnx_loop(Node *n) {
    OnnxGraph *body = graph_attr(n, "body");
    uint32_t inputs = node_inputs(n), ncarried = inputs > 2 ? inputs - 2 : 0;
    if (n->failed)
        return;
    if (n->node->inputs.len > inputs)
        ncarried = (uint32_t)n->node->inputs.len - 2;
    if (body->outputs.len < 1 + ncarried || n->node->outputs.len < ncarried) {
        node_refuse(n, "its body gives %zu values", body->outputs.len);
        return;
    }
    size_t nscanned = body->outputs.len - 1 - ncarried;
    OnnxNames state = {0}, init = {0}, next = {0};
    Vals args = {0}, out = {0};
    const char *i = node_name(n, "i"), *go = node_name(n, "go");
    vec_push(&state, i);
    vec_push(&state, go);
    vec_push(&init, "0i64");
    vec_push(&init, node_has(n, 1) ? scalar_text(n, 1) : "True");
    vec_push(&args, val_tensor(i, DT_I64, 0, NULL));
    vec_push(&args, val_tensor(go, DT_BOOL, 0, NULL));
    for (uint32_t k = 0; k < ncarried; k++) {
        const char *name = node_name(n, body->inputs.len > k + 2 ? body->inputs.data[k + 2]->name
                                                                 : "state");
        vec_push(&state, name);
        vec_push(&init, node_text(n, k + 2));
        vec_push(&args, carried(node_in(n, k + 2), name, false));
    }
    const char *text = node_graph(n, body, args.data, args.len, &out);
    if (!text)
        return;
    /* The block of the body ends in its tuple of results, which has a name here. */
    const char *step = node_name(n, "step");
    vec_push(&next, fmt_text("%s + 1i64", i));
    for (size_t k = 0; k < 1 + ncarried; k++)
        vec_push(&next, out.len == 1 ? step : fmt_text("%s.%zu", step, k));
    if (out.data[0]->rank == 1)
        next.data[1] = fmt_text("%s[0]", next.data[1]);
    for (size_t k = 0; k < nscanned; k++) {
        const char *name = node_name(n, "scanned");
        vec_push(&state, name);
        vec_push(&init, "Nil");
        vec_push(&next, fmt_text("Cons(%s.%zu, %s)", step, k + 1 + ncarried, name));
    }
    const char *names = joined(&state);
    const char *test = node_has(n, 0) ? fmt_text("%s && %s < %s", go, i, scalar_text(n, 0)) : go;
    const char *last = node_let(
        n, "last", "while(fn ((%s)) { %s }, fn ((%s)) { let %s = {\n%s}; (%s) }, (%s))", names,
        test, names, step, text, joined(&next), joined(&init));
    for (size_t k = 0; k < n->node->outputs.len; k++) {
        bool scans = k >= ncarried;
        Val *v = k + 1 < out.len ? carried(out.data[k + 1], "", false) : NULL;
        if (!v) {
            node_refuse(n, "its body gives less than its outputs");
            return;
        }
        v->text = fmt_text(scans ? "tensor.of(rev(%s.%zu))" : "%s.%zu", last, k + 2);
        if (scans) {
            v->rank += v->rank >= 0;
            v->dims = mem_new_n(Num, v->rank + 1);
        }
        node_bind(n, (uint32_t)k, v);
    }
}

/* Scan: carried…, scanned inputs…; its body takes an element of each. */
void onnx_scan(Node *n) {
    OnnxGraph *body = graph_attr(n, "body");
    int64_t nscan = attr_int(n, "num_scan_inputs", 0);
    uint32_t inputs = node_inputs(n);
    OnnxInts in_axes = {0}, out_axes = {0}, in_back = {0}, out_back = {0};
    (void)attr_ints(n, "scan_input_axes", &in_axes);
    (void)attr_ints(n, "scan_output_axes", &out_axes);
    (void)attr_ints(n, "scan_input_directions", &in_back);
    (void)attr_ints(n, "scan_output_directions", &out_back);
    if (n->failed)
        return;
    if (nscan < 1 || nscan > inputs || body->inputs.len != inputs ||
        body->outputs.len < inputs - (size_t)nscan) {
        node_refuse(n, "its body takes %zu values of %u", body->inputs.len, inputs);
        return;
    }
    uint32_t ncarried = inputs - (uint32_t)nscan;
    OnnxNames state = {0}, init = {0}, next = {0};
    Vals args = {0}, out = {0};
    const char *i = node_name(n, "i");
    vec_push(&state, i);
    vec_push(&init, "0");
    for (uint32_t k = 0; k < ncarried; k++) {
        const char *name = node_name(n, body->inputs.data[k]->name);
        vec_push(&state, name);
        vec_push(&init, node_text(n, k));
        vec_push(&args, carried(node_in(n, k), name, true));
    }
    Str elements = {0};
    const char *count = NULL;
    for (uint32_t k = 0; k < (uint32_t)nscan; k++) {
        Val *v = node_in(n, ncarried + k);
        int rank = node_rank(n, ncarried + k);
        int64_t axis = node_axis(n, k < in_axes.len ? in_axes.data[k] : 0, rank);
        if (n->failed)
            return;
        count = num_print(val_dim(v, (int)axis));
        Str at = {0};
        for (int64_t m = 0; m < axis; m++)
            str_add(&at, ":, ");
        bool back = k < in_back.len && in_back.data[k];
        const char *name = node_name(n, body->inputs.data[ncarried + k]->name);
        str_printf(&elements, "let %s = %s[%s%s]; ", name, v->text, str_text(&at),
                   back ? fmt_text("-1 - %s", i) : i);
        Num dims[ONNX_MAX_RANK];
        for (int m = 0; m + 1 < rank; m++)
            dims[m] = v->dims[m < axis ? m : m + 1];
        vec_push(&args, val_tensor(name, v->dtype, rank - 1, dims));
    }
    const char *text = node_graph(n, body, args.data, args.len, &out);
    if (!text)
        return;
    const char *step = node_name(n, "step");
    vec_push(&next, fmt_text("%s + 1", i));
    for (size_t k = 0; k < ncarried; k++)
        vec_push(&next, out.len == 1 ? step : fmt_text("%s.%zu", step, k));
    for (size_t k = ncarried; k < out.len; k++) {
        const char *name = node_name(n, "scanned");
        vec_push(&state, name);
        vec_push(&init, "Nil");
        vec_push(&next,
                 fmt_text("Cons(%s, %s)", out.len == 1 ? step : fmt_text("%s.%zu", step, k), name));
    }
    const char *names = joined(&state);
    const char *last = node_let(
        n, "last", "while(fn ((%s)) { %s < %s }, fn ((%s)) { %slet %s = {\n%s}; (%s) }, (%s))",
        names, i, count, names, str_text(&elements), step, text, joined(&next), joined(&init));
    for (size_t k = 0; k < n->node->outputs.len && k < out.len; k++) {
        Val *v = carried(out.data[k], "", k < ncarried);
        v->text = fmt_text("%s.%zu", last, k + 1);
        if (k >= ncarried) {
            size_t m = k - ncarried;
            bool back = m < out_back.len && out_back.data[m];
            v->rank += v->rank >= 0;
            int64_t axis = v->rank > 0
                               ? node_axis(n, m < out_axes.len ? out_axes.data[m] : 0, v->rank)
                               : 0;
            v->dims = mem_new_n(Num, v->rank + 1);
            v->text = back ? fmt_text("tensor.of(%s)", v->text)
                           : fmt_text("tensor.of(rev(%s))", v->text);
            if (axis) {
                OnnxInts perm = {0};
                for (int x = 0; x < v->rank; x++)
                    vec_push(&perm, x < axis ? x + 1 : x == axis ? 0 : x);
                v->text = fmt_text("transpose(%s, axes=%s)", v->text,
                                   ints_print(perm.data, perm.len));
            }
        }
        node_bind(n, (uint32_t)k, v);
    }
}

/* ---- sequences ------------------------------------------------------------------------------- */

static Val *sequence(const char *text, const Val *of) {
    Val *v = mem_new(Val);
    *v = (Val){.kind = KIND_OF_SEQUENCE, .text = text};
    if (of) {
        v->of = val_like(of, "");
        if (v->of->kind == KIND_OF_TENSOR)
            v->of->dims = mem_new_n(Num, (of->rank < 0 ? 0 : of->rank) + 1);
    }
    return v;
}

static const Val *sequence_in(Node *n, uint32_t i) {
    const Val *v = node_in(n, i);
    if (v->kind != KIND_OF_SEQUENCE)
        node_refuse(n, "input %u is no sequence", i);
    return v;
}

/* A place, counted from the end when it is negative. */
static const char *place_text(Node *n, uint32_t i) {
    const Val *v = node_in(n, i);
    if (v->has_nums && v->nums.len && v->nums.data[0].known && v->nums.data[0].n >= 0)
        return num_print(v->nums.data[0]);
    return node_dtype(n, i) == DT_I32 ? v->text : fmt_text("cast(%s, dtype=int32)", v->text);
}

void onnx_sequence_empty(Node *n) {
    DType d = DT_F32;
    int64_t type = attr_int(n, "dtype", ONNX_FLOAT);
    if (!onnx_find_dtype(type, &d))
        node_refuse(n, "of %s, which Relay has not", onnx_dtype_name(type));
    node_alias(n, 0, sequence("list[]", NULL));
}

void onnx_sequence_construct(Node *n) {
    Str items = {0};
    uint32_t k = node_inputs(n);
    for (uint32_t i = 0; i < k; i++)
        str_printf(&items, "%s%s", i ? ", " : "", node_text(n, i));
    node_bind(n, 0, sequence(fmt_text("list[%s]", str_text(&items)), node_in(n, 0)));
}

void onnx_sequence_length(Node *n) {
    (void)sequence_in(n, 0);
    node_bind(
        n, 0,
        val_tensor(fmt_text("cast(length(%s), dtype=int64)", node_text(n, 0)), DT_I64, 0, NULL));
}

void onnx_sequence_at(Node *n) {
    const Val *s = sequence_in(n, 0);
    if (!s->of) {
        node_refuse(n, "what the sequence holds is not known");
        return;
    }
    node_import(n);
    node_bind(n, 0,
              val_like(s->of, fmt_text("onnx.sequence_at(%s, %s)", s->text, place_text(n, 1))));
}

void onnx_sequence_insert(Node *n) {
    const Val *s = sequence_in(n, 0);
    const Val *of = node_in(n, 1);
    node_import(n);
    const char *text = node_has(n, 2) ? fmt_text("onnx.sequence_insert(%s, %s, %s)", s->text,
                                                 of->text, place_text(n, 2))
                                      : fmt_text("concat(%s, list[%s])", s->text, of->text);
    node_bind(n, 0, sequence(text, of));
}

void onnx_sequence_erase(Node *n) {
    const Val *s = sequence_in(n, 0);
    node_import(n);
    node_bind(n, 0,
              sequence(fmt_text("onnx.sequence_erase(%s, %s)", s->text,
                                node_has(n, 1) ? place_text(n, 1) : "-1"),
                       s->of));
}

void onnx_concat_from_sequence(Node *n) {
    const Val *s = sequence_in(n, 0);
    bool fresh = attr_int(n, "new_axis", 0) != 0;
    int64_t axis = attr_int(n, "axis", 0);
    if (!s->of || s->of->rank < 0) {
        node_refuse(n, "the rank of what the sequence holds is not known");
        return;
    }
    int rank = s->of->rank + fresh;
    axis = node_axis(n, axis, rank);
    const char *text;
    if (fresh && axis == 0)
        text = fmt_text("tensor.of(%s)", s->text);
    else if (fresh)
        text = fmt_text("foldl(fn (all, x) { concatenate((all, expand_dims(x, axis=%lld)), "
                        "axis=%lld) }, expand_dims(hd(%s), axis=%lld), tl(%s))",
                        (long long)axis, (long long)axis, s->text, (long long)axis, s->text);
    else
        text = fmt_text("foldl(fn (all, x) { concatenate((all, x), axis=%lld) }, hd(%s), tl(%s))",
                        (long long)axis, s->text, s->text);
    node_bind(n, 0, val_tensor(text, s->of->dtype, rank, NULL));
}

void onnx_split_to_sequence(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    int64_t axis = node_axis(n, attr_int(n, "axis", 0), rank);
    bool keep = attr_int(n, "keepdims", 1) != 0;
    OnnxInts sizes = {0};
    bool given = node_has(n, 1);
    if (n->failed || (given && !node_ints(n, 1, "its sizes", &sizes)))
        return;
    if (!in->dims[axis].known) {
        node_refuse(n, "the size that it cuts is not known");
        return;
    }
    int64_t total = in->dims[axis].n, each = 1;
    bool one = given && node_rank(n, 1) == 0;
    if (one && sizes.len == 1)
        each = sizes.data[0];
    if (!given || one) {
        sizes = (OnnxInts){0};
        if (each < 1 || total / each > 4096) {
            node_refuse(n, "it cuts into pieces of %lld", (long long)each);
            return;
        }
        for (int64_t left = total; left > 0; left -= each)
            vec_push(&sizes, left < each ? left : each);
    }
    Str items = {0}, before = {0};
    for (int64_t i = 0; i < axis; i++)
        str_add(&before, ":, ");
    int64_t at = 0;
    for (size_t i = 0; i < sizes.len; i++) {
        str_printf(&items, "%s%s[%s", i ? ", " : "", in->text, str_text(&before));
        if (!given && !keep)
            str_printf(&items, "%lld]", (long long)at);
        else
            str_printf(&items, "%lld:%lld]", (long long)at, (long long)(at + sizes.data[i]));
        at += sizes.data[i];
    }
    Val *of = val_tensor("", node_dtype(n, 0), !given && !keep ? rank - 1 : rank, NULL);
    node_bind(n, 0, sequence(fmt_text("list[%s]", str_text(&items)), of));
}
