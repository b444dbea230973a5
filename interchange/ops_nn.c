/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, pools, normalisations, losses. */
#include <string.h>

#include "interchange/ops_impl.h"

enum { MAX_SIDES = 3, MOST_PADDING = 1 << 30 };

/* How a window lies over the sides of a picture. */
typedef struct Window {
    int sides;
    int64_t size[MAX_SIDES], strides[MAX_SIDES], dilation[MAX_SIDES];
    int64_t before[MAX_SIDES], after[MAX_SIDES];
    bool same_upper, same_lower, ceil;
} Window;

static bool read_sides(Node *n, const char *name, int sides, int64_t *out) {
    OnnxInts v = {0};
    if (!attr_ints(n, name, &v))
        return false;
    if ((int)v.len != sides) {
        node_refuse(n, "its attribute `%s` has %zu numbers for %d sides", name, v.len, sides);
        return false;
    }
    for (int i = 0; i < sides; i++) {
        out[i] = v.data[i];
        if (out[i] < 1 || out[i] > 1 << 20)
            node_refuse(n, "its attribute `%s` has the number %lld", name, (long long)v.data[i]);
    }
    return true;
}

static bool read_window(Node *n, const Val *in, const Val *weight, Window *w) {
    OnnxInts pads = {0};
    int rank = node_rank(n, 0);
    *w = (Window){.sides = rank - 2};
    if (w->sides < 1 || w->sides > MAX_SIDES)
        return node_refuse(n, "of %d axes", rank);
    for (int i = 0; i < w->sides; i++) {
        w->strides[i] = w->dilation[i] = 1;
        if (weight && weight->rank == rank && weight->dims[i + 2].known)
            w->size[i] = weight->dims[i + 2].n;
    }
    bool sized = read_sides(n, "kernel_shape", w->sides, w->size);
    for (int i = 0; i < w->sides && !sized; i++)
        sized = w->size[i] > 0;
    if (!sized)
        node_refuse(n, "the sides of its window are not known");
    (void)read_sides(n, "strides", w->sides, w->strides);
    (void)read_sides(n, "dilations", w->sides, w->dilation);
    const char *pad = attr_text(n, "auto_pad", "NOTSET");
    w->same_upper = strcmp(pad, "SAME_UPPER") == 0;
    w->same_lower = strcmp(pad, "SAME_LOWER") == 0;
    w->ceil = attr_int(n, "ceil_mode", 0) != 0;
    if (attr_ints(n, "pads", &pads) && strcmp(pad, "NOTSET") == 0) {
        if ((int)pads.len != 2 * w->sides)
            return node_refuse(n, "it pads %zu sides", pads.len);
        for (int i = 0; i < w->sides; i++) {
            w->before[i] = pads.data[i];
            w->after[i] = pads.data[i + w->sides];
            if (w->before[i] < 0 || w->after[i] < 0)
                return node_refuse(n, "it pads by a negative number");
            if (w->before[i] > MOST_PADDING || w->after[i] > MOST_PADDING)
                return node_refuse(n, "it pads by %lld and %lld", (long long)w->before[i],
                                   (long long)w->after[i]);
        }
    }
    for (int i = 0; i < w->sides && !n->failed && (w->same_upper || w->same_lower); i++) {
        if (!in->dims[i + 2].known)
            return node_refuse(n, "how much it pads depends on a size that is not known");
        int64_t size = in->dims[i + 2].n, reach = (w->size[i] - 1) * w->dilation[i] + 1;
        int64_t places = (size + w->strides[i] - 1) / w->strides[i];
        int64_t total = (places - 1) * w->strides[i] + reach - size;
        total = total < 0 ? 0 : total;
        w->before[i] = w->same_upper ? total / 2 : total - total / 2;
        w->after[i] = total - w->before[i];
    }
    return !n->failed;
}

/* As an attribute; pads: those before, then those after. */
static const char *window_text(const Window *w, bool weights) {
    Str out = {0};
    int64_t pads[2 * MAX_SIDES];
    bool strided = false, dilated = false, padded = false;
    for (int i = 0; i < w->sides; i++) {
        strided |= w->strides[i] != 1;
        dilated |= w->dilation[i] != 1;
        padded |= w->before[i] || w->after[i];
        pads[i] = w->before[i];
        pads[i + w->sides] = w->after[i];
    }
    if (!weights)
        str_printf(&out, ", pool_size=%s", ints_print(w->size, (size_t)w->sides));
    if (strided)
        str_printf(&out, ", strides=%s", ints_print(w->strides, (size_t)w->sides));
    if (padded)
        str_printf(&out, ", padding=%s", ints_print(pads, 2 * (size_t)w->sides));
    if (dilated)
        str_printf(&out, ", dilation=%s", ints_print(w->dilation, (size_t)w->sides));
    if (w->ceil)
        str_add(&out, ", ceil_mode=True");
    return str_text(&out);
}

static void window_dims(const Window *w, const Val *in, Num *dims) {
    for (int i = 0; i < w->sides; i++) {
        Num d = in->dims[i + 2];
        int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1;
        dims[i + 2] = d.known && !w->ceil
                          ? num_int((d.n + w->before[i] + w->after[i] - reach) / w->strides[i] + 1)
                          : num_unknown();
    }
}

static const char *with_bias(Node *n, const char *text) {
    return node_has(n, 2) ? fmt_text("nn.bias_add(%s, %s)", text, node_text(n, 2)) : text;
}

/* A convolution of input 0, written x, by the weight in input `at`, written w; NULL after a refusal. */
static Val *convolve(Node *n, uint32_t at, const char *x, const char *w, DType d) {
    Val *in = node_in(n, 0), *weight = node_in(n, at);
    int64_t groups = attr_int(n, "group", 1);
    Window window;
    Num dims[2 + MAX_SIDES];
    if (!read_window(n, in, weight, &window))
        return NULL;
    dims[0] = in->dims[0];
    dims[1] = weight->rank > 0 ? weight->dims[0] : num_unknown();
    window_dims(&window, in, dims);
    const char *text = fmt_text("nn.conv%dd(%s, %s%s%s)", window.sides, x, w,
                                window_text(&window, true),
                                groups == 1 ? "" : fmt_text(", groups=%lld", (long long)groups));
    return val_tensor(text, d, in->rank, dims);
}

void onnx_conv(Node *n) {
    Val *v = convolve(n, 1, node_text(n, 0), node_text(n, 1), node_dtype(n, 0));
    if (!v)
        return;
    v->text = with_bias(n, v->text);
    node_bind(n, 0, v);
}

/* Input i as int32 without its zero point: one, or one of each place of axis 0. */
static const char *widened(Node *n, uint32_t i, uint32_t zero) {
    const char *x = fmt_text("cast(%s, dtype=int32)", node_text(n, i));
    if (!node_has(n, zero))
        return x;
    const char *z = fmt_text("cast(%s, dtype=int32)", node_text(n, zero));
    if (node_rank(n, zero) == 1)
        z = fmt_text("expand_dims(%s, axis=1, num_newaxis=%d)", z, node_rank(n, i) - 1);
    return fmt_text("%s - %s", x, z);
}

void onnx_conv_integer(Node *n) {
    Val *v = convolve(n, 1, widened(n, 0, 2), widened(n, 1, 3), DT_I32);
    if (v)
        node_bind(n, 0, v);
}

/* The sum of int32, times the scales, rounded: what the result's numbers stand for. */
void onnx_qlinear_conv(Node *n) {
    Val *v = convolve(n, 3, widened(n, 0, 2), widened(n, 3, 5), DT_I32);
    DType d = node_dtype(n, 7);
    if (!v || n->failed)
        return;
    if (node_has(n, 8))
        v->text = fmt_text("nn.bias_add(%s, %s)", v->text, node_text(n, 8));
    const char *sum = node_let(n, "sum", "%s", v->text), *scale = node_text(n, 4);
    if (node_rank(n, 4) == 1)
        scale = fmt_text("expand_dims(%s, axis=1, num_newaxis=%d)", scale, v->rank - 2);
    int64_t most = d == DT_U8 ? 255 : 127, least = d == DT_U8 ? 0 : -128;
    v->text = fmt_text("cast(clip(round(cast(%s, dtype=float32) * (%s * %s / %s)) + "
                       "cast(%s, dtype=float32), a_min=%lld.0, a_max=%lld.0), dtype=%s)",
                       sum, node_text(n, 1), scale, node_text(n, 6), node_text(n, 7),
                       (long long)least, (long long)most, dtype_info[d].name);
    v->dtype = d;
    node_bind(n, 0, v);
}

void onnx_conv_transpose(Node *n) {
    Val *in = node_in(n, 0), *weight = node_in(n, 1);
    int64_t groups = attr_int(n, "group", 1), more[MAX_SIDES] = {0};
    OnnxInts shape = {0}, added = {0};
    Window w;
    Num dims[2 + MAX_SIDES];
    bool shaped = attr_ints(n, "output_shape", &shape);
    const char *pad = attr_text(n, "auto_pad", "NOTSET");
    bool same = strncmp(pad, "SAME", 4) == 0, cut = false;
    if (attr_ints(n, "output_padding", &added))
        for (size_t i = 0; i < added.len && i < MAX_SIDES; i++) {
            more[i] = added.data[i];
            if (more[i] < 0 || more[i] > MOST_PADDING)
                node_refuse(n, "its result is padded by %lld", (long long)more[i]);
        }
    if (!read_window(n, in, weight, &w))
        return;
    dims[0] = in->dims[0];
    dims[1] = weight->rank > 1 && weight->dims[1].known ? num_times(weight->dims[1].n, groups)
                                                        : num_unknown();
    for (int i = 0; i < w.sides; i++) {
        int64_t reach = (w.size[i] - 1) * w.dilation[i] + 1;
        Num d = in->dims[i + 2];
        if (shaped || same) {
            if (!d.known || (shaped && (int)shape.len != w.sides && (int)shape.len != in->rank)) {
                node_refuse(n, "a size that its padding depends on is not known");
                return;
            }
            int64_t wanted = shaped ? shape.data[shape.len - (size_t)w.sides + (size_t)i]
                                    : d.n * w.strides[i];
            if (wanted < 0 || wanted > ONNX_MOST_SIZE) {
                node_refuse(n, "its result has a size of %lld", (long long)wanted);
                return;
            }
            int64_t total = w.strides[i] * (d.n - 1) + more[i] + reach - wanted;
            /* A result larger than the windows reach has zeros at its end. */
            if (total < 0) {
                more[i] -= total;
                total = 0;
            }
            w.before[i] = w.same_upper ? total / 2 : total - total / 2;
            w.after[i] = total - w.before[i];
        }
        dims[i + 2] = d.known ? num_int((d.n - 1) * w.strides[i] + reach + more[i] - w.before[i] -
                                        w.after[i])
                              : num_unknown();
        cut |= more[i] >= w.strides[i];
    }
    Str text = {0};
    str_printf(&text, "nn.conv%dd_transpose(%s, %s%s", w.sides, in->text, weight->text,
               window_text(&w, true));
    if (groups != 1)
        str_printf(&text, ", groups=%lld", (long long)groups);
    bool any = false;
    for (int i = 0; i < w.sides; i++)
        any |= more[i] != 0;
    if (any && !cut)
        str_printf(&text, ", output_padding=%s", ints_print(more, (size_t)w.sides));
    str_add(&text, ")");
    const char *result = str_text(&text);
    if (any && cut) {
        Str pads = {0};
        str_add(&pads, "[0, 0], [0, 0]");
        for (int i = 0; i < w.sides; i++)
            str_printf(&pads, ", [0, %lld]", (long long)more[i]);
        result = fmt_text("nn.pad(%s, %s, pad_width=[%s])", result,
                          float_text(0.0, node_dtype(n, 0)), str_text(&pads));
    }
    node_bind(n, 0, val_tensor(with_bias(n, result), node_dtype(n, 0), in->rank, dims));
}

/* With ceil_mode a last window hangs over the edge, but none begins behind it. The window then has padding of its own
 * instead, which holds nothing; padding that counts (counted) becomes elements before. Gives what is pooled. */
static const char *pad_for_ceil(Node *n, const Val *in, Window *w, bool counted) {
    Str widths = {0};
    bool hangs = false;
    str_add(&widths, "[0, 0], [0, 0]");
    for (int i = 0; i < w->sides; i++) {
        if (!in->dims[i + 2].known) {
            node_refuse(n, "ceil_mode over a size that is not known");
            return NULL;
        }
        int64_t size = in->dims[i + 2].n, reach = (w->size[i] - 1) * w->dilation[i] + 1,
                step = w->strides[i];
        int64_t over = size + w->before[i] + w->after[i] - reach,
                places = (over + step - 1) / step + 1;
        if (over < 0) {
            node_refuse(n, "its window does not fit");
            return NULL;
        }
        if ((places - 1) * step >= size + w->before[i])
            places--;
        int64_t after = (places - 1) * step + reach - size - w->before[i];
        str_printf(&widths, ", [%lld, %lld]", (long long)w->before[i], (long long)w->after[i]);
        hangs |= after > w->after[i];
        w->after[i] = after < 0 ? 0 : after;
    }
    w->ceil = false;
    if (!counted || !hangs)
        return in->text;
    OnnxInts given = {0};
    (void)attr_ints(n, "pads", &given);
    for (int i = 0; i < w->sides; i++) {
        int64_t elements = given.len ? given.data[i + w->sides] : 0;
        w->after[i] = w->after[i] > elements ? w->after[i] - elements : 0;
        w->before[i] = 0;
    }
    return node_let(n, "padded", "nn.pad(%s, 0.0, pad_width=[%s])", in->text, str_text(&widths));
}

void onnx_pool(Node *n) {
    Val *in = node_in(n, 0);
    Window w;
    Num dims[2 + MAX_SIDES];
    bool average = n->op->form[0] == 'a', whole = attr_int(n, "count_include_pad", 0) != 0;
    bool by_columns = attr_int(n, "storage_order", 0) != 0; /* of the places alone */
    if (!read_window(n, in, NULL, &w))
        return;
    if (node_wants(n, 1) && (by_columns || w.ceil)) {
        node_refuse(n, "its second output, the places, in this order or with `ceil_mode`");
        return;
    }
    dims[0] = in->dims[0];
    dims[1] = in->dims[1];
    const char *x = w.ceil ? pad_for_ceil(n, in, &w, average && whole) : in->text;
    if (!x)
        return;
    whole &= x == in->text;
    window_dims(&w, in, dims);
    node_bind(n, 0,
              val_tensor(fmt_text("nn.%s_pool%dd(%s%s%s)", n->op->form, w.sides, x,
                                  window_text(&w, false),
                                  average && whole ? ", count_include_pad=True" : ""),
                         node_dtype(n, 0), in->rank, dims));
    if (!node_wants(n, 1))
        return;
    /* Each element's number, as a float that holds it, taken where the element is largest. */
    static const char *const layouts[] = {"NCW", "NCHW", "NCDHW"};
    const char *numbers = node_let(n, "numbers",
                                   "reshape_like(arange(0.0f64, cast(ndarray_size(%s), "
                                   "dtype=float64), 1.0f64, dtype=float64), %s)",
                                   x, x);
    node_bind(n, 1,
              val_tensor(fmt_text("cast(nn.max_pool_pick(%s, cast(%s, dtype=float64)%s, "
                                  "layout=\"%s\"), dtype=int64)",
                                  numbers, x, window_text(&w, false), layouts[w.sides - 1]),
                         DT_I64, in->rank, dims));
}

/* The root of the sum of powers, the sum being the mean times the elements of a window, its padding zeros. */
void onnx_lp_pool(Node *n) {
    Val *in = node_in(n, 0);
    DType d = node_dtype(n, 0);
    int64_t p = attr_int(n, "p", 2), count = 1;
    Window w;
    Num dims[2 + MAX_SIDES];
    if (!read_window(n, in, NULL, &w))
        return;
    if (w.ceil || p < 1 || !dtype_is_float(d)) {
        node_refuse(n, w.ceil ? "with `ceil_mode`" : "of such a power, or of integers");
        return;
    }
    for (int i = 0; i < w.sides; i++)
        count *= w.size[i];
    dims[0] = in->dims[0];
    dims[1] = in->dims[1];
    window_dims(&w, in, dims);
    const char *powers = fmt_text("power(abs(%s), %s)", in->text, float_text((double)p, d));
    const char *text = fmt_text("nn.avg_pool%dd(%s%s, count_include_pad=True) * %s", w.sides,
                                powers, window_text(&w, false), float_text((double)count, d));
    node_bind(n, 0,
              val_tensor(fmt_text("power(%s, %s)", text, float_text(1.0 / (double)p, d)), d,
                         in->rank, dims));
}

void onnx_global_pool(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    OnnxInts axes = {0};
    Val *v = val_tensor("", node_dtype(n, 0), rank, in->dims);
    for (int i = 2; i < rank; i++) {
        vec_push(&axes, i);
        v->dims[i] = num_int(1);
    }
    v->text = fmt_text("%s(%s, axis=%s, keepdims=True)", n->op->form, in->text,
                       ints_print(axes.data, axes.len));
    node_bind(n, 0, v);
}

/* ---- normalisations -------------------------------------------------------------------------- */

/* A vector along axis 1. */
static const char *per_channel(Node *n, const char *text) {
    int after = node_rank(n, 0) - 2;
    return after > 0 ? fmt_text("expand_dims(%s, axis=1, num_newaxis=%d)", text, after) : text;
}

void onnx_batch_normalization(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    const char *eps = float_text(attr_float(n, "epsilon", 1e-5f), DT_F32);
    double momentum = attr_float(n, "momentum", 0.9f);
    bool training = attr_int(n, "training_mode", 0) != 0;
    const char *mean = node_text(n, 3), *var = node_text(n, 4);
    attr_ignore(n, "spatial");
    if (rank < 2 || (!training && node_outputs(n) > 1)) {
        node_refuse(n, rank < 2 ? "of less than two axes" : "it trains");
        return;
    }
    if (training) {
        OnnxInts axes = {0};
        for (int i = 0; i < rank; i++)
            if (i != 1)
                vec_push(&axes, i);
        const char *over = ints_print(axes.data, axes.len), *old_mean = mean, *old_var = var;
        mean = node_let(n, "mean_now", "mean(%s, axis=%s)", in->text, over);
        const char *centred = node_let(n, "centred", "%s - %s", in->text, per_channel(n, mean));
        var = node_let(n, "var_now", "mean(%s * %s, axis=%s)", centred, centred, over);
        const char *m = float_text(momentum, DT_F32), *rest = float_text(1.0 - momentum, DT_F32);
        node_bind(n, 1,
                  val_like(node_in(n, 3), fmt_text("%s * %s + %s * %s", m, old_mean, rest, mean)));
        node_bind(n, 2,
                  val_like(node_in(n, 4), fmt_text("%s * %s + %s * %s", m, old_var, rest, var)));
    }
    node_bind_like(n, "(%s - %s) / sqrt(%s + %s) * %s + %s", in->text, per_channel(n, mean),
                   per_channel(n, var), eps, per_channel(n, node_text(n, 1)),
                   per_channel(n, node_text(n, 2)));
}

static const char *last_axes(int64_t from, int rank) {
    OnnxInts axes = {0};
    for (int i = (int)from; i < rank; i++)
        vec_push(&axes, i);
    return ints_print(axes.data, axes.len);
}

void onnx_layer_normalization(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    int64_t axis = node_axis(n, attr_int(n, "axis", -1), rank);
    const char *eps = float_text(attr_float(n, "epsilon", 1e-5f), DT_F32),
               *over = last_axes(axis, rank);
    DType d = node_dtype(n, 0);
    bool narrow = d == DT_F16 || d == DT_BF16;
    attr_ignore(n, "stash_type");
    const char *x = narrow ? node_let(n, "wide", "cast(%s, dtype=float32)", in->text) : in->text;
    const char *mean = node_let(n, "average", "mean(%s, axis=%s, keepdims=True)", x, over);
    const char *centred = node_let(n, "centred", "%s - %s", x, mean);
    const char *inverse = node_let(n, "inverse",
                                   "1.0 / sqrt(mean(%s * %s, axis=%s, keepdims=True) + %s)",
                                   centred, centred, over, eps);
    const char *text = fmt_text("%s * %s", centred, inverse);
    if (narrow)
        text = fmt_text("cast(%s, dtype=%s)", text, dtype_info[d].name);
    text = fmt_text("%s * %s", text, node_text(n, 1));
    if (node_has(n, 2))
        text = fmt_text("%s + %s", text, node_text(n, 2));
    Val *small = val_like(in, mean);
    small->dtype = narrow ? DT_F32 : d;
    small->dims = mem_new_n(Num, rank + 1);
    for (int i = 0; i < rank; i++)
        small->dims[i] = i < axis ? in->dims[i] : num_int(1);
    node_bind_like(n, "%s", text);
    node_alias(n, 1, small);
    node_alias(n, 2, val_like(small, inverse));
}

void onnx_rms_normalization(Node *n) {
    Val *in = node_in(n, 0);
    int rank = node_rank(n, 0);
    int64_t axis = node_axis(n, attr_int(n, "axis", -1), rank);
    const char *eps = float_text(attr_float(n, "epsilon", 1e-5f), DT_F32), *x = in->text;
    attr_ignore(n, "stash_type");
    node_bind_like(n, "%s / sqrt(mean(%s * %s, axis=%s, keepdims=True) + %s) * %s", x, x, x,
                   last_axes(axis, rank), eps, node_text(n, 1));
}

void onnx_instance_normalization(Node *n) {
    node_bind_like(n, "nn.instance_norm(%s, %s, %s, epsilon=%s)", node_text(n, 0), node_text(n, 1),
                   node_text(n, 2), float_text(attr_float(n, "epsilon", 1e-5f), DT_F32));
}

void onnx_group_normalization(Node *n) {
    attr_ignore(n, "stash_type");
    node_bind_like(n, "nn.group_norm(%s, %s, %s, num_groups=%lld, epsilon=%s)", node_text(n, 0),
                   node_text(n, 1), node_text(n, 2), (long long)attr_int(n, "num_groups", 1),
                   float_text(attr_float(n, "epsilon", 1e-5f), DT_F32));
}

void onnx_lrn(Node *n) {
    node_bind_like(n, "nn.lrn(%s, size=%lld, alpha=%s, beta=%s, bias=%s)", node_text(n, 0),
                   (long long)attr_int(n, "size", 1),
                   float_text(attr_float(n, "alpha", 0.0001f), DT_F32),
                   float_text(attr_float(n, "beta", 0.75), DT_F32),
                   float_text(attr_float(n, "bias", 1.0), DT_F32));
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* scores: log-probabilities with classes along axis 1. */
static void bind_loss(Node *n, const char *scores) {
    Val *labels = node_in(n, 1);
    const char *how = attr_text(n, "reduction", "mean");
    const OnnxAttr *ignored = node_attr(n, "ignore_index");
    DType d = node_dtype(n, 0);
    const char *at = labels->text, *kept = NULL;
    if (ignored) {
        kept = node_let(n, "counted", "not_equal(%s, %lld)", at, (long long)ignored->i);
        at = node_let(n, "labels", "where(%s, %s, 0)", kept, at);
    }
    const char *picked = node_let(
        n, "picked", "squeeze(gather(%s, expand_dims(%s, axis=1), axis=1), axis=[1])", scores, at);
    const char *weight = NULL;
    if (node_has(n, 2))
        weight = node_let(n, "weight",
                          kept ? "where(%s, take(%s, %s, axis=0), 0.0)" : "%stake(%s, %s, axis=0)",
                          kept ? kept : "", node_text(n, 2), at);
    else if (kept)
        weight = node_let(n, "weight", "cast(%s, dtype=%s)", kept, dtype_info[d].name);
    const char *each = node_let(n, "each", weight ? "-%s * %s" : "-%s", picked, weight);
    if (strcmp(how, "none") == 0)
        node_bind(n, 0, val_tensor(fmt_text("copy(%s)", each), d, labels->rank, labels->dims));
    else
        node_bind(n, 0,
                  val_tensor(strcmp(how, "sum") == 0 ? fmt_text("sum(%s)", each)
                             : weight                ? fmt_text("sum(%s) / sum(%s)", each, weight)
                                                     : fmt_text("mean(%s)", each),
                             d, 0, NULL));
}

void onnx_nll_loss(Node *n) { bind_loss(n, node_text(n, 0)); }

void onnx_softmax_loss(Node *n) {
    const char *scores = node_let(n, "scores", "nn.log_softmax(%s, axis=1)", node_text(n, 0));
    bind_loss(n, scores);
    node_alias(n, 1, val_like(node_in(n, 0), scores));
}

/* ---- recurrent cells ------------------------------------------------------------------------- */

typedef struct Cell {
    const char *function;
    int gates;
    bool has_cell; /* a second state */
} Cell;

static bool is_default(const char *const *names, size_t n, const OnnxNames *given) {
    for (size_t i = 0; i < given->len; i++)
        if (strcasecmp(given->data[i], names[i % n]) != 0)
            return false;
    return true;
}

/* Runs over the time, forwards, backwards or both. Biases and states that are not given are zeros. */
static void bind_recurrent(Node *n, const Cell *cell, const char *const *activations,
                           size_t nactivations, bool linear) {
    Val *x = node_in(n, 0), *weight = node_in(n, 1), *again = node_in(n, 2);
    const char *direction = attr_text(n, "direction", "forward");
    bool both = strcmp(direction, "bidirectional") == 0,
         batch_first = attr_int(n, "layout", 0) != 0;
    DType d = node_dtype(n, 0);
    const OnnxAttr *a = node_attr(n, "activations");
    attr_ignore(n, "hidden_size");
    if (node_rank(n, 0) != 3 || node_rank(n, 1) != 3 || node_rank(n, 2) != 3 ||
        !again->dims[2].known) {
        node_refuse(n, "its weights are of a shape that is not known");
        return;
    }
    if (a && !is_default(activations, nactivations, &a->strings)) {
        node_refuse(n, "its activations are not the usual ones");
        return;
    }
    if (node_has(n, 4)) {
        const Val *lengths = node_in(n, 4);
        bool whole = lengths->has_nums && x->dims[batch_first ? 1 : 0].known;
        for (size_t i = 0; whole && i < lengths->nums.len; i++)
            whole = lengths->nums.data[i].known &&
                    lengths->nums.data[i].n == x->dims[batch_first ? 1 : 0].n;
        if (!whole) {
            node_refuse(n, "its sequences have lengths of their own (sequence_lens)");
            return;
        }
    }
    node_import(n);
    int64_t h = again->dims[2].n;
    Num batch = val_dim(x, batch_first ? 0 : 1);
    const char *in = batch_first ? node_let(n, "steps", "transpose(%s, axes=[1, 0, 2])", x->text)
                                 : x->text;
    const char *ys[2], *hs[2], *cs[2];
    uint32_t ndirections = both ? 2 : 1;
    for (uint32_t k = 0; k < ndirections; k++) {
        bool back = both ? k == 1 : strcmp(direction, "reverse") == 0;
        const char *from = back ? node_let(n, "backwards", "reverse(%s, axis=0)", in) : in;
        const char *bias = node_has(n, 3)
                               ? fmt_text("%s[%u]", node_text(n, 3), k)
                               : fmt_text("zeros(shape=[%lld], dtype=%s)",
                                          (long long)(2 * cell->gates * h), dtype_info[d].name);
        const char *zero = fmt_text("zeros(shape=[%s, %lld], dtype=%s)", num_print(batch),
                                    (long long)h, dtype_info[d].name);
        const char *place = batch_first ? ":, " : "";
        const char *state = node_has(n, 5) ? fmt_text("%s[%s%u]", node_text(n, 5), place, k) : zero;
        Str more = {0};
        if (cell->has_cell)
            str_printf(&more, ", %s",
                       node_has(n, 6) ? fmt_text("%s[%s%u]", node_text(n, 6), place, k) : zero);
        bool peeps = cell->has_cell && node_has(n, 7);
        if (peeps)
            str_printf(&more, ", %s[%u]", node_text(n, 7), k);
        const char *out = node_let(n, "states", "onnx.%s%s%s(%s, %s[%u], %s[%u], %s, %s%s)",
                                   cell->function, linear ? "_linear" : "",
                                   peeps ? "_peephole" : "", from, weight->text, k, again->text, k,
                                   bias, state, str_text(&more));
        ys[k] = back ? fmt_text("reverse(%s.0, axis=0)", out) : fmt_text("%s.0", out);
        hs[k] = fmt_text("%s.1", out);
        cs[k] = fmt_text("%s.2", out);
    }
    Num many[4] = {x->dims[0], num_int(ndirections), x->dims[1], num_int(h)};
    Num last[3] = {num_int(ndirections), batch, num_int(h)};
    const char *y = both ? fmt_text("stack((%s, %s), axis=1)", ys[0], ys[1])
                         : fmt_text("expand_dims(%s, axis=1)", ys[0]);
    const char *hn = both ? fmt_text("stack((%s, %s), axis=0)", hs[0], hs[1])
                          : fmt_text("expand_dims(%s, axis=0)", hs[0]);
    const char *cn = both ? fmt_text("stack((%s, %s), axis=0)", cs[0], cs[1])
                          : fmt_text("expand_dims(%s, axis=0)", cs[0]);
    if (batch_first) {
        y = fmt_text("transpose(%s, axes=[2, 0, 1, 3])", y);
        hn = fmt_text("transpose(%s, axes=[1, 0, 2])", hn);
        cn = fmt_text("transpose(%s, axes=[1, 0, 2])", cn);
        many[0] = x->dims[0];
        many[1] = x->dims[1];
        many[2] = num_int(ndirections);
        last[0] = batch;
        last[1] = num_int(ndirections);
    }
    node_bind(n, 0, val_tensor(y, d, 4, many));
    node_bind(n, 1, val_tensor(hn, d, 3, last));
    if (cell->has_cell)
        node_bind(n, 2, val_tensor(cn, d, 3, last));
}

void onnx_lstm(Node *n) {
    static const Cell cell = {"lstm", 4, true};
    static const char *const activations[] = {"Sigmoid", "Tanh", "Tanh"};
    bind_recurrent(n, &cell, activations, 3, false);
}

void onnx_gru(Node *n) {
    static const Cell cell = {"gru", 3, false};
    static const char *const activations[] = {"Sigmoid", "Tanh"};
    bind_recurrent(n, &cell, activations, 2, attr_int(n, "linear_before_reset", 0) != 0);
}

void onnx_rnn(Node *n) {
    static const Cell cell = {"rnn", 1, false};
    static const char *const activations[] = {"Tanh"};
    bind_recurrent(n, &cell, activations, 1, false);
}
