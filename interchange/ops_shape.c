/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: what an ONNX graph computes about sizes becomes attributes. */
#include <string.h>

#include "interchange/ops_impl.h"

#define MOST_SIZE                                                                                  \
    ((int64_t)1 << 40) /* of numbers that a file may hold: sums of a few do not overflow */

static bool is_moderate(int64_t n) { return n >= -MOST_SIZE && n <= MOST_SIZE; }

void onnx_constant(Node *n) {
    for (size_t i = 0; i < n->node->attrs.len; i++) {
        OnnxAttr *a = n->node->attrs.data[i];
        OnnxTensor *t = mem_new(OnnxTensor);
        *t = (OnnxTensor){.name = n->node->outputs.len ? n->node->outputs.data[0] : "",
                          .length = -1};
        int64_t *dims = mem_new_n(int64_t, 1);
        t->dims = dims;
        a->used = true;
        if (a->tensor) {
            node_constant(n, a->tensor);
            return;
        }
        if (strcmp(a->name, "value_float") == 0 || strcmp(a->name, "value_floats") == 0) {
            bool one = a->name[11] == '\0';
            t->type = ONNX_FLOAT;
            t->rank = !one;
            t->count = dims[0] = one ? 1 : (int64_t)a->floats.len;
            t->data = one ? (const void *)&a->f : a->floats.data;
            t->bytes = (size_t)t->count * sizeof(float);
        } else if (strcmp(a->name, "value_int") == 0 || strcmp(a->name, "value_ints") == 0) {
            bool one = a->name[9] == '\0';
            t->type = ONNX_INT64;
            t->rank = !one;
            t->count = dims[0] = one ? 1 : (int64_t)a->ints.len;
            t->data = one ? (const void *)&a->i : (const void *)a->ints.data;
            t->bytes = (size_t)t->count * sizeof(int64_t);
        } else {
            node_refuse(n, "its attribute `%s` is of a kind Relay has no values for", a->name);
            return;
        }
        if (!t->data)
            t->data = (const unsigned char *)"";
        node_constant(n, t);
        return;
    }
    node_refuse(n, "it has no value");
}

/* ---- what sizes are -------------------------------------------------------------------------- */

void onnx_shape(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    int64_t begin = attr_int(n, "start", 0), end = attr_int(n, "end", rank);
    begin = begin < 0 ? begin + rank : begin;
    end = end < 0 ? end + rank : end;
    begin = begin < 0 ? 0 : begin > rank ? rank : begin;
    end = end < begin ? begin : end > rank ? rank : end;
    const char *part = begin == 0 && end == rank
                           ? ""
                           : fmt_text("[%lld:%lld]", (long long)begin, (long long)end);
    Num len = num_int(end - begin);
    Val *v = val_tensor(fmt_text("shape_of(%s, dtype=int64)%s", in->text, part), DT_I64, 1, &len);
    v->has_nums = in->rank >= 0;
    for (int64_t i = begin; i < end; i++)
        vec_push(&v->nums, val_dim(in, (int)i));
    node_bind(n, 0, v);
}

void onnx_size(Node *n) {
    Val *in = node_in(n, 0);
    Val *v = val_tensor(fmt_text("ndarray_size(%s, dtype=int64)", in->text), DT_I64, 0, NULL);
    int64_t count = 1;
    bool known = in->rank >= 0;
    for (int i = 0; known && i < in->rank; i++)
        known = in->dims[i].known && !__builtin_mul_overflow(count, in->dims[i].n, &count);
    if (known) {
        v->has_nums = true;
        vec_push(&v->nums, num_int(count));
    }
    node_bind(n, 0, v);
}

/* ---- the same elements in another shape ------------------------------------------------------ */

static int64_t known_count(const Val *v) {
    int64_t count = 1;
    for (int i = 0; i < v->rank; i++)
        if (!v->dims[i].known || __builtin_mul_overflow(count, v->dims[i].n, &count))
            return -1;
    return v->rank < 0 ? -1 : count;
}

/* dims may hold one -1; what it stands for is found where all else is known. */
static void bind_reshaped(Node *n, Val *in, Nums *shape) {
    Num dims[ONNX_MAX_RANK];
    int64_t rest = 1, count = known_count(in);
    int hole = -1;
    bool known = count >= 0;
    if (shape->len > ONNX_MAX_RANK) {
        node_refuse(n, "its result has %zu axes", shape->len);
        return;
    }
    bool zero = false;
    for (size_t i = 0; i < shape->len; i++) {
        dims[i] = shape->data[i];
        if (dims[i].known && dims[i].n == -1) {
            hole = (int)i;
            dims[i] = num_unknown();
            continue;
        }
        zero |= dims[i].known && dims[i].n == 0;
        known &= dims[i].known && !__builtin_mul_overflow(rest, dims[i].n, &rest);
    }
    if (hole >= 0 && known && rest > 0)
        dims[hole] = num_int(count / rest);
    for (size_t i = 0; i < shape->len; i++)
        if (hole == (int)i && dims[i].known)
            shape->data[i] = dims[i];
    const char *text = nums_print(shape->data, shape->len);
    if (!text) {
        node_refuse(n, "one of the sizes of its result is not known");
        return;
    }
    Val *v = val_like(
        in, fmt_text("reshape(%s, newshape=%s%s)", in->text, text, zero ? ", allowzero=True" : ""));
    v->rank = (int)shape->len;
    v->dims = mem_new_n(Num, shape->len + 1);
    for (size_t i = 0; i < shape->len; i++)
        v->dims[i] = dims[i];
    nums_take_all(v, in);
    v->constant = NULL;
    node_bind(n, 0, v);
}

void onnx_reshape(Node *n) {
    Nums shape = {0}, out = {0};
    Val *in = node_in(n, 0);
    bool zero = attr_int(n, "allowzero", 0) != 0;
    if (!node_nums(n, 1, "its shape", &shape))
        return;
    for (size_t i = 0; i < shape.len; i++) {
        Num d = shape.data[i];
        if (d.known && d.n == 0 && !zero) {
            if (in->rank <= (int)i) {
                node_refuse(n, "its shape copies axis %zu, which the input has not", i);
                return;
            }
            d = val_dim(in, (int)i);
        }
        vec_push(&out, d);
    }
    bind_reshaped(n, in, &out);
}

void onnx_flatten(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    int64_t axis = attr_int(n, "axis", 1);
    Nums shape = {0};
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis > rank) {
        node_refuse(n, "axis %lld of a tensor of %d axes", (long long)axis, rank);
        return;
    }
    int64_t before = 1, after = 1;
    bool known_before = true, known_after = true;
    for (int i = 0; i < rank; i++) {
        bool *known = i < axis ? &known_before : &known_after;
        int64_t *p = i < axis ? &before : &after;
        *known = *known && in->dims[i].known && !__builtin_mul_overflow(*p, in->dims[i].n, p);
    }
    if (!known_before && !known_after && axis != 1) {
        node_refuse(n, "too few sizes of its input are known");
        return;
    }
    vec_push(&shape, known_before ? num_int(before) : !known_after ? val_dim(in, 0) : num_int(-1));
    vec_push(&shape, known_after ? num_int(after) : num_int(-1));
    bind_reshaped(n, in, &shape);
}

/* Axes from an attribute, or since opset 13 from input 1. False: there are none given. */
static bool read_axes(Node *n, OnnxInts *out) {
    if (attr_ints(n, "axes", out))
        return true;
    return node_has(n, 1) && node_ints(n, 1, "its axes", out);
}

void onnx_squeeze(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    OnnxInts axes = {0};
    Nums left = {0};
    bool drop[ONNX_MAX_RANK + 1] = {false};
    bool given = read_axes(n, &axes);
    if (n->failed)
        return;
    for (int i = 0; !given && i < rank; i++) {
        if (!in->dims[i].known) {
            node_refuse(n, "no axes are given, and not all sizes are known");
            return;
        }
        drop[i] = in->dims[i].n == 1;
    }
    for (size_t i = 0; i < axes.len; i++)
        drop[node_axis(n, axes.data[i], rank)] = true;
    OnnxInts sorted = {0};
    for (int i = 0; i < rank; i++) {
        if (drop[i])
            vec_push(&sorted, i);
        else
            vec_push(&left, in->dims[i]);
    }
    Val *v = val_tensor(
        fmt_text("squeeze(%s, axis=%s)", in->text, ints_print(sorted.data, sorted.len)),
        node_dtype(n, 0), (int)left.len, left.data);
    if (sorted.len == 0)
        v->text = fmt_text("copy(%s)", in->text);
    nums_take_all(v, in);
    node_bind(n, 0, v);
}

void onnx_unsqueeze(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    OnnxInts axes = {0};
    bool added[ONNX_MAX_RANK] = {false};
    if (!read_axes(n, &axes)) {
        node_refuse(n, "it has no axes");
        return;
    }
    int total = rank + (int)axes.len;
    if (axes.len > ONNX_MAX_RANK || total > ONNX_MAX_RANK) {
        node_refuse(n, "its result has %d axes", total);
        return;
    }
    for (size_t i = 0; i < axes.len; i++)
        added[node_axis(n, axes.data[i], total)] = true;
    const char *text = in->text;
    Num dims[ONNX_MAX_RANK];
    int from = 0;
    for (int i = 0; i < total; i++) {
        if (added[i])
            text = fmt_text("expand_dims(%s, axis=%d)", text, i);
        dims[i] = added[i] ? num_int(1) : from < rank ? in->dims[from++] : num_int(1);
    }
    Val *v = val_tensor(text, node_dtype(n, 0), total, dims);
    nums_take_all(v, in);
    node_bind(n, 0, v);
}

void onnx_transpose(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    OnnxInts perm = {0};
    Num dims[ONNX_MAX_RANK];
    if (!attr_ints(n, "perm", &perm))
        for (int i = rank; i-- > 0;)
            vec_push(&perm, i);
    if ((int)perm.len != rank) {
        node_refuse(n, "it permutes %zu axes of %d", perm.len, rank);
        return;
    }
    bool is_reverse = true;
    int64_t own[ONNX_MAX_RANK], strides[ONNX_MAX_RANK];
    nums_strides(in, own);
    for (int i = 0; i < rank; i++) {
        perm.data[i] = node_axis(n, perm.data[i], rank);
        dims[i] = in->dims[perm.data[i]];
        strides[i] = own[perm.data[i]];
        is_reverse &= perm.data[i] == rank - 1 - i;
    }
    const char *axes = is_reverse ? "" : fmt_text(", axes=%s", ints_print(perm.data, perm.len));
    Val *v = val_tensor(fmt_text("transpose(%s%s)", in->text, axes), node_dtype(n, 0), rank, dims);
    nums_take_strided(v, in, 0, strides);
    node_bind(n, 0, v);
}

void onnx_expand(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    Nums shape = {0};
    if (!node_nums(n, 1, "its shape", &shape))
        return;
    /* The shape broadcasts with the input's: a size 1 in it asks for nothing. */
    int total = (int)shape.len > rank ? (int)shape.len : rank;
    if (total > ONNX_MAX_RANK) {
        node_refuse(n, "its result has %d axes", total);
        return;
    }
    Num dims[ONNX_MAX_RANK];
    for (int i = 0; i < total; i++) {
        int a = i - (total - rank), b = i - (total - (int)shape.len);
        Num x = a >= 0 ? in->dims[a] : num_int(1), y = b >= 0 ? shape.data[b] : num_int(1);
        if (x.known && x.n == 1)
            dims[i] = y;
        else if ((y.known && y.n == 1) || x.known)
            dims[i] = a >= 0 ? val_dim(in, a) : x;
        else if (y.known)
            dims[i] = y;
        else if (num_is(x, y))
            dims[i] = x;
        else {
            node_refuse(n, "whether axis %d is repeated depends on sizes that are not known", i);
            return;
        }
    }
    const char *text = nums_print(dims, (size_t)total);
    if (!text) {
        node_refuse(n, "the sizes of its result are not known");
        return;
    }
    node_bind(n, 0,
              val_tensor(fmt_text("broadcast_to(%s, shape=%s)", in->text, text), node_dtype(n, 0),
                         total, dims));
}

void onnx_tile(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    OnnxInts reps = {0};
    Num dims[ONNX_MAX_RANK];
    if (!node_ints(n, 1, "how often it repeats", &reps))
        return;
    if ((int)reps.len != rank) {
        node_refuse(n, "it repeats %zu axes of %d", reps.len, rank);
        return;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = in->dims[i].known ? num_times(in->dims[i].n, reps.data[i])
                                    : num_text(fmt_text("(%s * %lld)", num_print(val_dim(in, i)),
                                                        (long long)reps.data[i]));
    const char *text = rank ? fmt_text("tile(%s, reps=%s)", in->text,
                                       ints_print(reps.data, reps.len))
                            : fmt_text("copy(%s)", in->text);
    node_bind(n, 0, val_tensor(text, node_dtype(n, 0), rank, dims));
}

/* ---- joining and cutting --------------------------------------------------------------------- */

void onnx_concat(Node *n) {
    uint32_t k = node_inputs(n);
    int rank = node_rank(n, 0);
    int64_t axis = node_axis(n, attr_int(n, "axis", 0), rank);
    if (n->failed)
        return;
    Val *first = node_in(n, 0);
    Val *v = val_tensor("", node_dtype(n, 0), rank, first->dims);
    Str text = {0};
    Val **parts = mem_new_n(Val *, k);
    Num size = num_int(0);
    for (uint32_t i = 0; i < k; i++) {
        Val *in = node_in(n, i);
        str_printf(&text, "%s%s", i ? ", " : "", in->text);
        if (node_rank(n, i) != rank) {
            node_refuse(n, "input %u has %d axes, the first has %d", i, in->rank, rank);
            return;
        }
        parts[i] = in;
        size = size.known && in->dims[axis].known ? num_plus(size.n, in->dims[axis].n)
                                                  : num_unknown();
    }
    v->dims[axis] = size;
    nums_concatenate(v, parts, k, axis);
    v->text = fmt_text("concatenate((%s%s), axis=%lld)", str_text(&text), k == 1 ? "," : "",
                       (long long)axis);
    node_bind(n, 0, v);
}

void onnx_split(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    int64_t axis = node_axis(n, attr_int(n, "axis", 0), rank);
    uint32_t parts = (uint32_t)n->node->outputs.len;
    int64_t wanted = attr_int(n, "num_outputs", parts);
    OnnxInts sizes = {0};
    bool given = attr_ints(n, "split", &sizes) ||
                 (node_has(n, 1) && node_ints(n, 1, "its sizes", &sizes));
    if (n->failed || rank == 0)
        return;
    if (!given) {
        if (!in->dims[axis].known || wanted < 1) {
            node_refuse(n, "the size that it cuts is not known");
            return;
        }
        int64_t left = in->dims[axis].n, each = (left + wanted - 1) / wanted;
        for (uint32_t i = 0; i < parts; i++, left -= each)
            vec_push(&sizes, left < each ? (left < 0 ? 0 : left) : each);
    }
    if (sizes.len != parts) {
        node_refuse(n, "it has %u outputs and %zu sizes", parts, sizes.len);
        return;
    }
    OnnxInts cuts = {0};
    int64_t at = 0;
    for (uint32_t i = 0; i + 1 < parts; i++) {
        at += sizes.data[i];
        vec_push(&cuts, at);
    }
    if (parts == 1) {
        node_alias(n, 0, in);
        return;
    }
    const char *tuple = node_let(n, "parts", "split(%s, indices_or_sections=%s, axis=%lld)",
                                 in->text, ints_print(cuts.data, cuts.len), (long long)axis);
    at = 0;
    for (uint32_t i = 0; i < parts; i++) {
        Val *v = val_like(in, fmt_text("%s.%u", tuple, i));
        v->dims = mem_new_n(Num, rank);
        for (int k = 0; k < rank; k++)
            v->dims[k] = in->dims[k];
        v->dims[axis] = num_int(sizes.data[i]);
        if (in->has_nums && rank == 1) {
            v->has_nums = true;
            memset(&v->nums, 0, sizeof v->nums);
            for (int64_t k = at; k < at + sizes.data[i] && k < (int64_t)in->nums.len; k++)
                vec_push(&v->nums, in->nums.data[k]);
        }
        at += sizes.data[i];
        node_bind(n, i, v);
    }
}

/* How many places a slice has, and the first of them; -1 where the size is not known. As ONNX clamps. */
static int64_t slice_size(Num size, int64_t begin, int64_t end, int64_t step, int64_t *first) {
    if (!size.known || size.n < 0 || size.n > MOST_SIZE)
        return -1;
    int64_t n = size.n, b = begin, e = end;
    step = step > n ? n + 1 : step < -n ? -n - 1 : step; /* of one place all the same */
    b = b < 0 ? b + n : b;
    e = e < 0 && e >= -n ? e + n : e;
    if (step > 0) {
        b = b < 0 ? 0 : b > n ? n : b;
        e = e < 0 ? 0 : e > n ? n : e;
        *first = b;
        return e > b ? (e - b + step - 1) / step : 0;
    }
    b = b < 0 ? 0 : b > n - 1 ? n - 1 : b;
    e = e < -1 ? -1 : e > n - 1 ? n - 1 : e;
    *first = b;
    return b > e ? (b - e - step - 1) / -step : 0;
}

static const char *bound_text(int64_t v, int64_t step, bool begin) {
    const int64_t far = (int64_t)1 << 30;
    if (begin ? (step > 0 && v == 0) || (step < 0 && v >= far)
              : (step > 0 && v >= far) || (step < 0 && v <= -far))
        return "";
    return fmt_text("%lld", (long long)v);
}

void onnx_slice(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    OnnxInts axes = {0}, steps = {0};
    Nums begins = {0}, ends = {0};
    if (node_opset(n) < 10) {
        OnnxInts b = {0}, e = {0};
        if (!attr_ints(n, "starts", &b) || !attr_ints(n, "ends", &e)) {
            node_refuse(n, "it has no starts or no ends");
            return;
        }
        (void)attr_ints(n, "axes", &axes);
        for (size_t i = 0; i < b.len; i++)
            vec_push(&begins, num_int(b.data[i]));
        for (size_t i = 0; i < e.len; i++)
            vec_push(&ends, num_int(e.data[i]));
    } else if (!node_nums(n, 1, "where it begins", &begins) ||
               !node_nums(n, 2, "where it ends", &ends) ||
               (node_has(n, 3) && !node_ints(n, 3, "its axes", &axes)) ||
               (node_has(n, 4) && !node_ints(n, 4, "its steps", &steps)))
        return;
    if (!axes.len)
        for (size_t i = 0; i < begins.len; i++)
            vec_push(&axes, (int64_t)i);
    if (begins.len != ends.len || begins.len != axes.len || (steps.len && steps.len != axes.len)) {
        node_refuse(n, "its starts, ends, axes and steps are not equally many");
        return;
    }
    Val *v = val_tensor("", node_dtype(n, 0), rank, in->dims);
    const char *ranges[ONNX_MAX_RANK + 1];
    int64_t strides[ONNX_MAX_RANK], offset = 0;
    bool bounds_known = true;
    nums_strides(in, strides);
    for (int i = 0; i < rank; i++)
        ranges[i] = ":";
    for (size_t i = 0; i < axes.len; i++) {
        int64_t axis = node_axis(n, axes.data[i], rank), step = steps.len ? steps.data[i] : 1;
        Num b = begins.data[i], e = ends.data[i];
        if (n->failed)
            return;
        if (step == 0) {
            node_refuse(n, "a step of 0");
            return;
        }
        const char *by = step == 1 ? "" : fmt_text(":%lld", (long long)step);
        if (b.known && e.known) {
            int64_t first = 0, size = slice_size(in->dims[axis], b.n, e.n, step, &first);
            v->dims[axis] = size >= 0 ? num_int(size) : num_unknown();
            offset += first * strides[axis];
            strides[axis] *= size > 1 ? step : 0;
            ranges[axis] = fmt_text("%s:%s%s", bound_text(b.n, step, true),
                                    bound_text(e.n, step, false), by);
            /* Backwards from before the beginning NumPy gives nothing, ONNX the first place. */
            if (step < 0 && (!in->dims[axis].known || b.n < -in->dims[axis].n)) {
                if (b.n < 0 || !in->dims[axis].known)
                    ranges[axis] = b.n < 0 && in->dims[axis].known
                                       ? fmt_text("0:%s%s", bound_text(e.n, step, false), by)
                                       : ranges[axis];
            }
        } else {
            bounds_known = false;
            const char *from = b.known && b.n == 0 ? "" : num_print(b), *to = num_print(e);
            if (!from || !to) {
                node_refuse(n, "where it begins or ends is not known");
                return;
            }
            ranges[axis] = fmt_text("%s:%s%s", from, to, by);
            v->dims[axis] = num_unknown();
            /* The first n of an axis that has n is all of it. */
            if (in->dims[axis].text && step == 1 && !*from && strcmp(in->dims[axis].text, to) == 0)
                v->dims[axis] = in->dims[axis];
        }
    }
    Str text = {0};
    int last = rank;
    while (last > 1 && strcmp(ranges[last - 1], ":") == 0)
        last--;
    for (int i = 0; i < last; i++)
        str_printf(&text, "%s%s", i ? ", " : "", ranges[i]);
    v->text = rank ? fmt_text("%s[%s]", in->text, str_text(&text)) : fmt_text("copy(%s)", in->text);
    if (bounds_known && val_has_nums(in))
        nums_take_strided(v, in, offset, strides);
    node_bind(n, 0, v);
}

void onnx_pad(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    OnnxInts pads = {0}, axes = {0};
    const char *mode = attr_text(n, "mode", "constant"), *value;
    DType d = node_dtype(n, 0);
    if (node_opset(n) < 11) {
        (void)attr_ints(n, "pads", &pads);
        value = float_text(attr_float(n, "value", 0.0), d);
    } else {
        if (!node_ints(n, 1, "how much it pads", &pads) ||
            (node_has(n, 3) && !node_ints(n, 3, "its axes", &axes)))
            return;
        value = node_has(n, 2)      ? node_text(n, 2)
                : dtype_is_float(d) ? float_text(0.0, d)
                : d == DT_BOOL      ? "False"
                                    : int_text(0, d);
        if (node_has(n, 2) && node_rank(n, 2) == 1)
            value = fmt_text("%s[0]", value);
    }
    if (!axes.len && !node_has(n, 3))
        for (int i = 0; i < rank; i++)
            vec_push(&axes, i);
    if (pads.len != 2 * axes.len) {
        node_refuse(n, "it pads %zu sides of %zu axes", pads.len, axes.len);
        return;
    }
    int64_t before[ONNX_MAX_RANK + 1] = {0}, after[ONNX_MAX_RANK + 1] = {0};
    bool cut = false;
    for (size_t i = 0; i < axes.len; i++) {
        int64_t axis = node_axis(n, axes.data[i], rank);
        before[axis] = pads.data[i];
        after[axis] = pads.data[i + axes.len];
        cut |= before[axis] < 0 || after[axis] < 0;
    }
    Val *v = val_tensor("", d, rank, in->dims);
    Str widths = {0}, ranges = {0};
    for (int i = 0; i < rank; i++) {
        str_printf(&widths, "%s[%lld, %lld]", i ? ", " : "",
                   (long long)(before[i] > 0 ? before[i] : 0),
                   (long long)(after[i] > 0 ? after[i] : 0));
        str_printf(&ranges, "%s%s:%s", i ? ", " : "",
                   before[i] < 0 ? fmt_text("%lld", (long long)-before[i]) : "",
                   after[i] < 0 ? fmt_text("%lld", (long long)after[i]) : "");
        Num longer = in->dims[i].known ? num_plus(in->dims[i].n, before[i]) : num_unknown();
        v->dims[i] = longer.known ? num_plus(longer.n, after[i]) : longer;
        if (strcmp(mode, "wrap") == 0 && in->dims[i].known &&
            (before[i] > in->dims[i].n || after[i] > in->dims[i].n))
            node_refuse(n, "it wraps around more than once");
    }
    const char *x = cut ? node_let(n, "cut", "%s[%s]", in->text, str_text(&ranges)) : in->text;
    if (strcmp(mode, "wrap") == 0) {
        for (int i = 0; i < rank; i++) {
            Str at = {0};
            for (int k = 0; k < i; k++)
                str_add(&at, ":, ");
            if (before[i] > 0 && after[i] > 0)
                x = node_let(n, "wrapped", "concatenate((%s[%s%lld:], %s, %s[%s:%lld]), axis=%d)",
                             x, str_text(&at), (long long)-before[i], x, x, str_text(&at),
                             (long long)after[i], i);
            else if (before[i] > 0)
                x = node_let(n, "wrapped", "concatenate((%s[%s%lld:], %s), axis=%d)", x,
                             str_text(&at), (long long)-before[i], x, i);
            else if (after[i] > 0)
                x = node_let(n, "wrapped", "concatenate((%s, %s[%s:%lld]), axis=%d)", x, x,
                             str_text(&at), (long long)after[i], i);
        }
        v->text = fmt_text("copy(%s)", x);
    } else if (rank == 0)
        v->text = fmt_text("copy(%s)", x);
    else
        v->text = fmt_text("nn.pad(%s, %s, pad_width=[%s]%s)", x, value, str_text(&widths),
                           strcmp(mode, "constant") == 0 ? ""
                                                         : fmt_text(", pad_mode=\"%s\"", mode));
    if (strcmp(mode, "constant") && strcmp(mode, "edge") && strcmp(mode, "reflect") &&
        strcmp(mode, "wrap"))
        node_refuse(n, "its mode is `%s`", mode);
    node_bind(n, 0, v);
}

enum { MOST_BLOCK = 1 << 20 };

void onnx_depth_to_space(Node *n) {
    Val *in = node_in(n, 0);
    int64_t b = attr_int(n, "blocksize", 1);
    const char *mode = attr_text(n, "mode", "DCR");
    if (node_rank(n, 0) != 4 || b < 1 || b > MOST_BLOCK) {
        node_refuse(n, "of %d axes, in blocks of %lld", in->rank, (long long)b);
        return;
    }
    Num dims[4];
    for (int i = 0; i < 4; i++)
        dims[i] = !in->dims[i].known ? num_unknown()
                  : i == 0           ? in->dims[i]
                  : i == 1           ? num_int(in->dims[i].n / (b * b))
                                     : num_times(in->dims[i].n, b);
    node_bind(n, 0,
              val_tensor(fmt_text("nn.depth_to_space(%s, block_size=%lld, mode=\"%s\")", in->text,
                                  (long long)b, mode),
                         node_dtype(n, 0), 4, dims));
}

void onnx_space_to_depth(Node *n) {
    Val *in = node_in(n, 0);
    int64_t b = attr_int(n, "blocksize", 1);
    const char *mode = attr_text(n, "mode", "DCR");
    if (node_rank(n, 0) != 4 || b < 1 || b > MOST_BLOCK) {
        node_refuse(n, "of %d axes, in blocks of %lld", in->rank, (long long)b);
        return;
    }
    Num dims[4];
    for (int i = 0; i < 4; i++)
        dims[i] = !in->dims[i].known ? num_unknown()
                  : i == 0           ? in->dims[i]
                  : i == 1           ? num_times(in->dims[i].n, b * b)
                                     : num_int(in->dims[i].n / b);
    node_bind(n, 0,
              val_tensor(fmt_text("nn.space_to_depth(%s, block_size=%lld, mode=\"%s\")", in->text,
                                  (long long)b, mode),
                         node_dtype(n, 0), 4, dims));
}

/* ---- tensors from sizes ---------------------------------------------------------------------- */

void onnx_constant_of_shape(Node *n) {
    Nums shape = {0};
    if (!node_nums(n, 0, "its shape", &shape))
        return;
    OnnxAttr *a = node_attr(n, "value");
    DType d = DT_F32;
    const char *fill = "0.0";
    int64_t number = 0;
    if (a && a->tensor) {
        Val *v = node_tensor(n, a->tensor);
        if (v->bad || a->tensor->count != 1 || !a->tensor->data) {
            node_refuse(n, "its value is no single number");
            return;
        }
        d = v->dtype;
        fill = v->rank == 0 ? v->text : fmt_text("%s[0]", v->text);
        number = v->has_nums ? v->nums.data[0].n : 0;
        /* the element itself, which reads better than an index into a literal */
        if (v->rank == 1 && v->text[0] == '[')
            fill = mem_strndup(v->text + 1, strlen(v->text) - 2);
    }
    const char *text = nums_print(shape.data, shape.len);
    if (!text || shape.len > ONNX_MAX_RANK) {
        node_refuse(n, "the sizes of its result are not known");
        return;
    }
    Val *v = val_tensor(fmt_text("full(%s, shape=%s, dtype=%s)", fill, text, dtype_info[d].name), d,
                        (int)shape.len, shape.data);
    if (dtype_is_int(d) || d == DT_BOOL) {
        Val *one = val_tensor(fill, d, 0, NULL);
        one->has_nums = true;
        vec_push(&one->nums, num_int(number));
        nums_take_strided(v, one, 0, (int64_t[ONNX_MAX_RANK]){0});
    }
    node_bind(n, 0, v);
}

void onnx_range(Node *n) {
    const Val *b = node_in(n, 0), *e = node_in(n, 1), *s = node_in(n, 2);
    DType d = node_dtype(n, 0);
    if (n->failed)
        return;
    Num size = num_unknown();
    Nums elements = {0};
    bool ints = b->has_nums && e->has_nums && s->has_nums && b->nums.len == 1 && e->nums.len == 1 &&
                s->nums.len == 1;
    const char *at[3];
    for (uint32_t i = 0; i < 3; i++) {
        const Val *v = node_in(n, i);
        bool one = v->has_nums && v->nums.len == 1;
        at[i] = one && num_print(v->nums.data[0]) ? num_print(v->nums.data[0]) : v->text;
        if (v->rank == 1)
            at[i] = one ? at[i] : fmt_text("%s[0]", v->text);
    }
    if (ints && b->nums.data[0].known && e->nums.data[0].known && s->nums.data[0].known &&
        s->nums.data[0].n && is_moderate(b->nums.data[0].n) && is_moderate(e->nums.data[0].n) &&
        is_moderate(s->nums.data[0].n)) {
        int64_t from = b->nums.data[0].n, to = e->nums.data[0].n, step = s->nums.data[0].n;
        int64_t len = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
        size = num_int(len < 0 ? 0 : len);
        for (int64_t i = 0; dtype_is_int(d) && i < len && i < MOST_NUMS; i++)
            vec_push(&elements, num_int(from + i * step));
    } else if (ints && b->nums.data[0].known && b->nums.data[0].n == 0 && s->nums.data[0].known &&
               s->nums.data[0].n == 1)
        size = e->nums.data[0];
    Val *v = val_tensor(
        fmt_text("arange(%s, %s, %s, dtype=%s)", at[0], at[1], at[2], dtype_info[d].name), d, 1,
        &size);
    v->nums = elements;
    v->has_nums = size.known && size.n == (int64_t)elements.len;
    node_bind(n, 0, v);
}

void onnx_eye_like(Node *n) {
    Val *in = node_in(n, 0);
    int64_t k = attr_int(n, "k", 0);
    DType d = node_dtype(n, 0);
    const OnnxAttr *a = node_attr(n, "dtype");
    if (a && !onnx_find_dtype(a->i, &d)) {
        node_refuse(n, "of %s", onnx_dtype_name(a->i));
        return;
    }
    if (node_rank(n, 0) != 2)
        node_refuse(n, "of %d axes", in->rank);
    if (n->failed)
        return;
    Val *v = val_like(in, fmt_text("cast(equal(expand_dims(arange(%s), axis=1) + %lld, "
                                   "expand_dims(arange(%s), axis=0)), dtype=%s)",
                                   num_print(val_dim(in, 0)), (long long)k,
                                   num_print(val_dim(in, 1)), dtype_info[d].name));
    v->dtype = d;
    node_bind(n, 0, v);
}
