/* SPDX-License-Identifier: Apache-2.0 */
/* Windows, and Fourier transforms. */
#include <math.h>
#include <string.h>

#include "interchange/ops_impl.h"

/* a + b cos(2 pi i / N) + c cos(4 pi i / N), which the form has: a, b, c. */
void onnx_window(Node *n) {
    static const struct {
        const char *name;
        double a, b, c;
    } kinds[] = {{"Hann", 0.5, -0.5, 0},
                 {"Hamming", 25.0 / 46, -21.0 / 46, 0},
                 {"Blackman", 0.42, -0.5, 0.08}};
    OnnxInts size = {0};
    bool periodic = attr_int(n, "periodic", 1) != 0;
    int64_t type = attr_int(n, "output_datatype", 1);
    DType d = DT_F32;
    if (!node_ints(n, 0, "its size", &size))
        return;
    if (size.len != 1 || size.data[0] < 0 || size.data[0] > 1 << 30 || !onnx_find_dtype(type, &d)) {
        node_refuse(n, "of such a size, or of %s", onnx_dtype_name(type));
        return;
    }
    int k = 0;
    while (strcmp(kinds[k].name, n->op->form) != 0)
        k++;
    int64_t count = size.data[0], over = periodic ? count : count - 1;
    if (over < 1) {
        node_refuse(n, "of %lld places", (long long)count);
        return;
    }
    Num dim = num_int(count);
    const char *angle = node_let(n, "angle",
                                 "arange(0.0f64, %lld.0f64, 1.0f64, dtype=float64) * %s",
                                 (long long)count, float_text(2 * M_PI / (double)over, DT_F64));
    const char *text = fmt_text("%s + %s * cos(%s)", float_text(kinds[k].a, DT_F64),
                                float_text(kinds[k].b, DT_F64), angle);
    if (kinds[k].c != 0)
        text = fmt_text("%s + %s * cos(2.0f64 * %s)", text, float_text(kinds[k].c, DT_F64), angle);
    node_bind(n, 0,
              val_tensor(fmt_text("cast(%s, dtype=%s)", text, dtype_info[d].name), d, 1, &dim));
}

/* ---- DFT -------------------------------------------------------------------------------------- */

/* Which axis it goes along, and how many elements it has there; the last axis holds the parts of a number. */
typedef struct Signal {
    int rank, axis;
    int64_t length, given; /* of the transform; of the input */
    bool inverse, onesided;
} Signal;

static bool read_signal(Node *n, Signal *s) {
    const Val *in = node_in(n, 0);
    OnnxInts length = {0}, axis = {0};
    *s = (Signal){.rank = node_rank(n, 0),
                  .inverse = attr_int(n, "inverse", 0) != 0,
                  .onesided = attr_int(n, "onesided", 0) != 0};
    int64_t along = node_opset(n) < 20 ? attr_int(n, "axis", 1) : -2;
    if (node_has(n, 2) && !node_ints(n, 2, "its axis", &axis))
        return false;
    if (node_has(n, 1) && !node_ints(n, 1, "its length", &length))
        return false;
    s->axis = (int)node_axis(n, axis.len ? axis.data[0] : along, s->rank);
    if (n->failed)
        return false;
    Num own = in->dims[s->axis], parts = in->dims[s->rank - 1];
    if (s->axis == s->rank - 1 || !own.known || !parts.known || parts.n < 1 || parts.n > 2 ||
        own.n > 1 << 30)
        return node_refuse(n, "along an axis of a size that is not known");
    s->given = own.n;
    s->length = length.len ? length.data[0] : s->inverse && s->onesided ? 2 * (own.n - 1) : own.n;
    return (s->length >= 1 && s->length <= 1 << 30) ||
           node_refuse(n, "of %lld elements", (long long)s->length);
}

/* Axis s->axis of the parts, and their last one, in each other's place. */
static const char *swapped(const Signal *s, const char *x) {
    int64_t axes[ONNX_MAX_RANK];
    int rank = s->rank - 1;
    for (int i = 0; i < rank; i++)
        axes[i] = i == s->axis ? rank - 1 : i == rank - 1 ? s->axis : i;
    return s->axis == rank - 1
               ? x
               : fmt_text("transpose(%s, axes=%s)", x, ints_print(axes, (size_t)rank));
}

/* The real or the imaginary parts, with the axis last, cut or with zeros up to `size` of them. */
static const char *part_of(Node *n, const Signal *s, int64_t part, int64_t size, const char *hint) {
    Str text = {0};
    str_printf(&text, "%s[", node_text(n, 0));
    for (int i = 0; i < s->rank - 1; i++)
        str_add(&text, ":, ");
    str_printf(&text, "%lld]", (long long)part);
    const char *x = swapped(s, str_text(&text));
    if (size < s->given)
        x = fmt_text("take(%s, arange(%lld), axis=-1)", x, (long long)size);
    Str widths = {0};
    for (int i = 0; i < s->rank - 2; i++)
        str_add(&widths, "[0, 0], ");
    if (size > s->given)
        x = fmt_text("nn.pad(%s, %s, pad_width=[%s[0, %lld]])", x,
                     float_text(0.0, node_dtype(n, 0)), str_text(&widths),
                     (long long)(size - s->given));
    return node_let(n, hint, "%s", x);
}

/* Those behind the first half, of numbers whose transform is real, are those before, backwards and conjugate. */
static const char *mirrored(Node *n, const Signal *s, const char *x, bool negated) {
    int64_t last = (s->length + 1) / 2 - 1;
    if (last < 1)
        return x;
    const char *rest = fmt_text("take(%s, arange(%lld, 0, -1), axis=-1)", x, (long long)last);
    rest = negated ? fmt_text("negative(%s)", rest) : rest;
    return node_let(n, "whole", "concatenate((%s, %s), axis=-1)", x, rest);
}

void onnx_dft(Node *n) {
    Signal s;
    const Val *in = node_in(n, 0);
    DType d = node_dtype(n, 0);
    if (!read_signal(n, &s))
        return;
    bool is_real = s.inverse && s.onesided;
    int64_t size = is_real ? s.length / 2 + 1 : s.length;
    int64_t count = s.onesided && !s.inverse ? s.length / 2 + 1 : s.length;
    const char *re = part_of(n, &s, 0, size, "re");
    const char *im = in->dims[s.rank - 1].n == 2 ? part_of(n, &s, 1, size, "im")
                                                 : fmt_text("zeros_like(%s)", re);
    if (is_real) {
        re = mirrored(n, &s, re, false);
        im = mirrored(n, &s, im, true);
    }
    const char *all = node_let(n, "transformed", "dft(%s, %s%s)", re, im,
                               s.inverse ? ", inverse=True" : "");
    const char *parts[2];
    for (int i = 0; i < 2; i++) {
        const char *x = fmt_text("%s.%d", all, i);
        if (count < s.length)
            x = fmt_text("take(%s, arange(%lld), axis=-1)", x, (long long)count);
        parts[i] = swapped(&s, x);
    }
    const char *text = is_real ? fmt_text("expand_dims(%s, axis=-1)", parts[0])
                               : fmt_text("stack((%s, %s), axis=-1)", parts[0], parts[1]);
    Val *v = val_tensor(text, d, s.rank, in->dims);
    v->dims[s.axis] = num_int(count);
    v->dims[s.rank - 1] = num_int(is_real ? 1 : 2);
    node_bind(n, 0, v);
}
