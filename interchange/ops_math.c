/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element. */
#include <string.h>

#include "interchange/ops_impl.h"

#define OP(name, since, translator, form, note) {#name, since, onnx_##translator, form, note},
const OnnxOp onnx_ops[] = {
#include "interchange/ops.def"
    {NULL, 0, NULL, NULL, NULL},
};
#undef OP

const OnnxOp *onnx_op_find(const char *name) {
    for (const OnnxOp *entry = onnx_ops; entry->name; entry++)
        if (strcmp(entry->name, name) == 0)
            return entry;
    return NULL;
}

const char *node_fill(Node *n, const char *form) {
    Str out = {0};
    for (const char *p = form; *p; p++) {
        if (*p == '$')
            str_add(&out, node_text(n, (uint32_t)(*++p - '0')));
        else
            str_add_char(&out, *p);
    }
    return str_text(&out);
}

void onnx_element(Node *n) {
    attr_ignore(n, "consumed_inputs");
    (void)node_dtype(n, 0);
    Val *in = node_in(n, 0), *out = val_like(in, node_fill(n, n->op->form));
    nums_fold(n, out, &in, 1);
    node_bind(n, 0, out);
}

void onnx_identity(Node *n) { node_alias(n, 0, node_in(n, 0)); }

void onnx_arithmetic(Node *n) {
    Val *v[] = {node_in(n, 0), node_in(n, 1)};
    attr_ignore(n, "consumed_inputs");
    Val *out = val_broadcast(node_fill(n, n->op->form), node_dtype(n, 0), v, 2);
    nums_fold(n, out, v, 2);
    node_bind(n, 0, out);
}

void onnx_compare(Node *n) {
    uint32_t k = node_inputs(n) < 2 ? 1 : 2;
    Val *v[] = {node_in(n, 0), k == 2 ? node_in(n, 1) : NULL};
    (void)node_dtype(n, 0);
    Val *out = val_broadcast(node_fill(n, n->op->form), DT_BOOL, v, k);
    nums_fold(n, out, v, k);
    node_bind(n, 0, out);
}

void onnx_logic(Node *n) { onnx_compare(n); }

void onnx_pow(Node *n) {
    Val *v[] = {node_in(n, 0), node_in(n, 1)};
    DType a = node_dtype(n, 0), b = node_dtype(n, 1);
    const char *base = v[0]->text, *power = v[1]->text;
    if (a != b && dtype_is_float(a))
        power = fmt_text("cast(%s, dtype=%s)", power, dtype_info[a].name);
    else if (a != b && dtype_is_float(b)) {
        node_bind(
            n, 0,
            val_broadcast(
                fmt_text("cast(power(cast(%s, dtype=float64), cast(%s, dtype=float64)), dtype=%s)",
                         base, power, dtype_info[a].name),
                a, v, 2));
        return;
    } else if (a != b)
        power = fmt_text("cast(%s, dtype=%s)", power, dtype_info[a].name);
    node_bind(n, 0, val_broadcast(fmt_text("power(%s, %s)", base, power), a, v, 2));
}

void onnx_mod(Node *n) {
    Val *v[] = {node_in(n, 0), node_in(n, 1)};
    bool c = attr_int(n, "fmod", 0) != 0;
    DType d = node_dtype(n, 0);
    Val *out = val_broadcast(
        fmt_text("%s(%s, %s)", c ? "trunc_mod" : "floor_mod", v[0]->text, v[1]->text), d, v, 2);
    if (!c)
        nums_fold(n, out, v, 2);
    node_bind(n, 0, out);
}

void onnx_bit_shift(Node *n) {
    Val *v[] = {node_in(n, 0), node_in(n, 1)};
    bool left = strcmp(attr_text(n, "direction", ""), "LEFT") == 0;
    node_bind(
        n, 0,
        val_broadcast(fmt_text("%s_shift(%s, %s)", left ? "left" : "right", v[0]->text, v[1]->text),
                      node_dtype(n, 0), v, 2));
}

void onnx_variadic(Node *n) {
    const char *form = n->op->form;
    uint32_t k = node_inputs(n);
    bool call = form[1] == 'a' || form[1] == 'i'; /* maximum, minimum */
    Vals v = {0};
    const char *text = node_text(n, 0);
    for (uint32_t i = 0; i < k; i++) {
        vec_push(&v, node_in(n, i));
        if (i)
            text = call ? fmt_text("%s(%s, %s)", form, text, node_text(n, i))
                        : fmt_text("%s + %s", text, node_text(n, i));
    }
    if (strcmp(form, "mean") == 0)
        text = fmt_text("(%s) / %u.0", text, k);
    else if (k == 1)
        text = fmt_text("copy(%s)", text);
    Val *out = val_broadcast(text, node_dtype(n, 0), v.data, v.len);
    nums_fold(n, out, v.data, (uint32_t)v.len);
    node_bind(n, 0, out);
}

static const char *attr_literal(Node *n, const char *name, double otherwise) {
    return float_text(attr_float(n, name, otherwise), DT_F32);
}

void onnx_elu(Node *n) {
    const char *x = node_text(n, 0), *a = attr_literal(n, "alpha", 1.0);
    node_bind_like(n, "where(%s < 0.0, %s * (exp(minimum(%s, 0.0)) - 1.0), %s)", x, a, x, x);
}

void onnx_celu(Node *n) {
    const char *x = node_text(n, 0), *a = attr_literal(n, "alpha", 1.0);
    node_bind_like(n, "maximum(%s, 0.0) + minimum(%s * (exp(minimum(%s, 0.0) / %s) - 1.0), 0.0)", x,
                   a, x, a);
}

void onnx_selu(Node *n) {
    const char *x = node_text(n, 0), *a = attr_literal(n, "alpha", 1.67326319217681884765625),
               *g = attr_literal(n, "gamma", 1.05070102214813232421875);
    node_bind_like(n, "%s * where(%s > 0.0, %s, %s * (exp(minimum(%s, 0.0)) - 1.0))", g, x, x, a,
                   x);
}

void onnx_leaky_relu(Node *n) {
    node_bind_like(n, "nn.leaky_relu(%s, alpha=%s)", node_text(n, 0),
                   attr_literal(n, "alpha", 0.01f));
}

void onnx_thresholded_relu(Node *n) {
    const char *x = node_text(n, 0);
    node_bind_like(n, "where(%s > %s, %s, 0.0)", x, attr_literal(n, "alpha", 1.0), x);
}

void onnx_hard_sigmoid(Node *n) {
    const char *a = attr_literal(n, "alpha", 0.2f), *b = attr_literal(n, "beta", 0.5);
    node_bind_like(n, "clip(%s * %s + %s, a_min=0.0, a_max=1.0)", a, node_text(n, 0), b);
}

void onnx_shrink(Node *n) {
    const char *x = node_text(n, 0), *l = attr_literal(n, "lambd", 0.5),
               *b = attr_literal(n, "bias", 0.0);
    if (!dtype_is_float(node_dtype(n, 0))) {
        node_refuse(n, "of integers");
        return;
    }
    node_bind_like(n, "where(%s < -%s, %s + %s, where(%s > %s, %s - %s, 0.0))", x, l, x, b, x, l, x,
                   b);
}

void onnx_swish(Node *n) {
    const char *x = node_text(n, 0);
    node_bind_like(n, "%s * sigmoid(%s * %s)", x, attr_literal(n, "alpha", 1.0), x);
}

void onnx_swiglu(Node *n) {
    const char *x = node_text(n, 0);
    node_bind_like(n, "%s * sigmoid(%s * %s) * %s", x,
                   float_text(attr_float(n, "alpha", 1.0), node_dtype(n, 0)), x, node_text(n, 1));
}

void onnx_bit_cast(Node *n) {
    DType from = node_dtype(n, 0), to = from;
    int64_t type = attr_int(n, "to", 0);
    if (!onnx_find_dtype(type, &to) || dtype_size(from) != dtype_size(to)) {
        node_refuse(n, "to %s", onnx_dtype_name(type));
        return;
    }
    Val *v = val_like(node_in(n, 0),
                      fmt_text("reinterpret(%s, dtype=%s)", node_text(n, 0), dtype_info[to].name));
    v->dtype = to;
    node_bind(n, 0, v);
}

void onnx_gelu(Node *n) {
    const char *x = node_text(n, 0);
    if (strcmp(attr_text(n, "approximate", "none"), "tanh") == 0)
        node_bind_like(
            n, "0.5 * %s * (1.0 + tanh(0.7978845608028654 * (%s + 0.044715 * %s * %s * %s)))", x, x,
            x, x, x);
    else
        node_bind_like(n, "0.5 * %s * (1.0 + erf(%s * 0.7071067811865476))", x, x);
}

void onnx_is_inf(Node *n) {
    const char *x = node_text(n, 0);
    bool negative = attr_int(n, "detect_negative", 1), positive = attr_int(n, "detect_positive", 1);
    const char *text = negative && positive ? fmt_text("isinf(%s)", x)
                       : negative           ? fmt_text("logical_and(isinf(%s), %s < 0.0)", x, x)
                       : positive           ? fmt_text("logical_and(isinf(%s), %s > 0.0)", x, x)
                                            : fmt_text("zeros_like(isinf(%s))", x);
    Val *v = val_like(node_in(n, 0), text);
    v->dtype = DT_BOOL;
    node_bind(n, 0, v);
}

void onnx_clip(Node *n) {
    const char *x = node_text(n, 0);
    Val *in = node_in(n, 0);
    if (node_opset(n) < 11) {
        const char *a = attr_literal(n, "min", -3.4028234663852886e38),
                   *b = attr_literal(n, "max", 3.4028234663852886e38);
        node_bind_like(n, "minimum(maximum(%s, %s), %s)", x, a, b);
        return;
    }
    if (node_has(n, 1))
        x = fmt_text("maximum(%s, %s)", x, node_text(n, 1));
    if (node_has(n, 2))
        x = fmt_text("minimum(%s, %s)", x, node_text(n, 2));
    if (x == in->text)
        node_alias(n, 0, in);
    else
        node_bind_like(n, "%s", x);
}

void onnx_where(Node *n) {
    Val *v[] = {node_in(n, 0), node_in(n, 1), node_in(n, 2)};
    Val *out = val_broadcast(fmt_text("where(%s, %s, %s)", v[0]->text, v[1]->text, v[2]->text),
                             node_dtype(n, 1), v, 3);
    nums_fold(n, out, v, 3);
    node_bind(n, 0, out);
}

static void cast_to(Node *n, DType d) {
    Val *in = node_in(n, 0);
    DType from = node_dtype(n, 0);
    if (from == d) {
        node_alias(n, 0, in);
        return;
    }
    Val *v = val_like(in, fmt_text("cast(%s, dtype=%s)", in->text, dtype_info[d].name));
    v->dtype = d;
    nums_cast(v, in);
    node_bind(n, 0, v);
}

void onnx_cast(Node *n) {
    DType d;
    int64_t to = attr_int(n, "to", 0);
    attr_ignore(n, "saturate");   /* of 8-bit floats */
    attr_ignore(n, "round_mode"); /* likewise */
    if (onnx_find_dtype(to, &d))
        cast_to(n, d);
    else
        node_refuse(n, "to %s, which Relay has not", onnx_dtype_name(to));
}

void onnx_cast_like(Node *n) {
    attr_ignore(n, "saturate");
    attr_ignore(n, "round_mode");
    cast_to(n, node_dtype(n, 1));
}

void onnx_dropout(Node *n) {
    attr_ignore(n, "ratio");
    attr_ignore(n, "seed");
    Val *in = node_in(n, 0);
    if (node_has(n, 2)) {
        const Val *mode = node_in(n, 2);
        if (!mode->has_nums || !mode->nums.len || !mode->nums.data[0].known ||
            mode->nums.data[0].n) {
            node_refuse(n, "training_mode: its random numbers would be others");
            return;
        }
    }
    if (node_wants(n, 1)) {
        Val *mask = val_like(in, fmt_text("cast(ones_like(%s), dtype=bool)", in->text));
        mask->dtype = DT_BOOL;
        node_bind(n, 1, mask);
    }
    node_alias(n, 0, in);
}
