/* SPDX-License-Identifier: Apache-2.0 */
/* dft and stft: Fourier transforms as sums of products with a table of cosines and sines, which a step of its
 * own makes in float64. Complex numbers are two tensors, or a last axis of two. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ops/relate/signature.h"

/* cos and sin of 2 pi m / n, for m below n, in the last axis. */
static Tensor *plan_circle(Plan *plan, int64_t n, DType type) {
    int64_t shape[] = {n, 2};
    Tensor *table = plan_temp(plan, type, 2, shape);
    StepBuilder s;
    for (int part = 0; part < 2; part++) {
        step_begin(&s, plan, RECIPE_MAP, 1, &n);
        ScalarBuilder *b = &s.body;
        Sc angle = sc_mul(b, sc_cast(b, sc_iota(b, 0), DT_F64), sc_float(b, DT_F64, 2 * M_PI));
        angle = sc_div(b, angle, step_fparam(&s, b, DT_F64, (double)n));
        sc_cast(b, part ? sc_sin(b, angle) : sc_cos(b, angle), type);
        step_out_strided(&s, table, table->strides, part);
        step_end(&s);
    }
    return table;
}

/* In the body of a step: part 0 (cosine) or 1 (sine) of the circle at product k * i of n. */
static Sc on_circle(StepBuilder *s, const Tensor *table, int part, Sc k, Sc i, int64_t n) {
    ScalarBuilder *b = &s->body;
    int64_t none[RECIPE_MAX_AXES] = {0};
    Sc m = sc_rem(b, sc_mul(b, k, i), step_iparam(s, b, DT_I64, n > 0 ? n : 1));
    int in = step_in_strided(s, table, none, part);
    return sc_load_at(b, in, table->dtype, sc_mul(b, m, sc_i64(b, 2)));
}

/* ---- dft -------------------------------------------------------------------------------------- */

/* out[part] = sum i  re[i] c(i k) - im[i] s(i k), or re[i] s(i k) + im[i] c(i k), along the last axis. */
static bool lower_dft(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *re = call->in[0], *im = call->in[1];
    int last = re->rank - 1;
    int64_t n = re->shape[last];
    bool inverse = attrs_bool(call->attrs, "inverse");
    DType t = sc_type_of(re->dtype);
    Tensor *table = plan_circle(plan, n, t);
    for (int part = 0; part < 2; part++) {
        int64_t strides[2][RECIPE_MAX_AXES] = {{0}};
        for (int k = 0; k < 2; k++) {
            memcpy(strides[k], call->in[k]->strides, sizeof(int64_t) * (size_t)last);
            strides[k][last] = 0;
            strides[k][re->rank] = call->in[k]->strides[last];
        }
        StepBuilder s;
        step_begin(&s, plan, RECIPE_REDUCE, re->rank, re->shape);
        step_reduce_over(&s, 1, &n);
        step_combine(&s, COMBINE_SUM, t);
        ScalarBuilder *b = &s.body;
        Sc k = sc_iota(b, last), i = sc_iota(b, re->rank);
        Sc c = on_circle(&s, table, 0, k, i, n), sine = on_circle(&s, table, 1, k, i, n);
        if (!inverse)
            sine = sc_neg(b, sine);
        Sc x = sc_load(b, step_in_strided(&s, re, strides[0], 0), re->dtype);
        Sc y = sc_load(b, step_in_strided(&s, im, strides[1], 0), im->dtype);
        step_result(&s, part ? sc_add(b, sc_mul(b, x, sine), sc_mul(b, y, c))
                             : sc_sub(b, sc_mul(b, x, c), sc_mul(b, y, sine)));
        if (inverse) {
            ScalarBuilder *e = &s.epilogue;
            sc_div(e, sc_acc(e, t), step_fparam(&s, e, t, (double)n));
        }
        step_out(&s, out[part]);
        step_end(&s);
    }
    return true;
}

static const AttrSpec dft_attrs[] = {
    {"inverse", AT_BOOL, "False", "the transform back, which divides by the number of elements"},
};
SIGNATURE_OP(
    dft, "DFT", "dft", "re_data, im_data", 2,
    (.text = "float(..., n), =0(..., n) -> =0(..., n), =0(..., n)"), .attrs = dft_attrs,
    .nattrs = 1, .dtypes = DTS_FLOAT, .tuple = true, .pattern = OP_TUPLE, .lower = lower_dft,
    .doc = "The discrete Fourier transform along the last axis of complex numbers, given as\n"
           "their real and their imaginary parts, and returned so.",
    .example = "dft([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]).0",
    .example_result = "[1.0, 1.0, 1.0, 1.0] : Tensor[(4,), float32]", .see_also = "stft")

/* ---- stft ------------------------------------------------------------------------------------- */

typedef struct Frames {
    int64_t size, hop, window, bins;
} Frames;

static Frames read_frames(const Attrs *attrs) {
    Frames f = {.size = attrs_int(attrs, "n_fft"),
                .hop = attrs_int(attrs, "hop_length"),
                .window = attrs_int(attrs, "win_length")};
    /* -1 is a code where it is written: Note [Sizes are no codes] */
    f.hop = f.hop < 0 && !attrs_get(attrs, "hop_length")->is_size ? f.size / 4 : f.hop;
    f.window = f.window < 0 && !attrs_get(attrs, "win_length")->is_size ? f.size : f.window;
    f.bins = attrs_bool(attrs, "onesided") ? f.size / 2 + 1 : f.size;
    return f;
}

static const char *refuse_frames(const Attrs *attrs, const int *ranks) {
    Frames f = read_frames(attrs);
    (void)ranks;
    if (f.size < 1 || f.size > INT32_MAX)
        return "n_fft is a number above 0";
    if (f.hop < 1 || f.hop > INT32_MAX)
        return "hop_length is a number above 0";
    return f.window < 0 ? "win_length is not negative" : NULL;
}

static bool measure_frames(const OpCall *call, OutSpec *out) {
    Frames f = read_frames(call->attrs);
    int64_t n = call->in[0]->shape[1];
    if (f.window > f.size) {
        shape_error(call, DIAG_R0316, "win_length is at most n_fft");
        return false;
    }
    if (call->in[1]->shape[0] != f.window) {
        shape_error(call, DIAG_R0316, "win_length=%lld, and the window has %lld elements",
                    (long long)f.window, (long long)call->in[1]->shape[0]);
        return false;
    }
    if (n < f.size) {
        shape_error(call, DIAG_R0316, "n_fft=%lld, and a signal has %lld elements",
                    (long long)f.size, (long long)n);
        return false;
    }
    out[0].shape[1] = f.bins;
    out[0].shape[2] = (n - f.size) / f.hop + 1;
    return true;
}

static bool lower_stft(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0], *window = call->in[1];
    Frames f = read_frames(call->attrs);
    DType t = sc_type_of(x->dtype);
    double scale = attrs_bool(call->attrs, "normalized") ? sqrt((double)f.size) : 1;
    int64_t first = (f.size - f.window) / 2; /* the window stands in the middle of a frame */
    Tensor *table = plan_circle(plan, f.size, t);
    for (int part = 0; part < 2; part++) {
        int64_t signal[RECIPE_MAX_AXES] = {x->strides[0], 0, f.hop * x->strides[1], x->strides[1]};
        int64_t weights[RECIPE_MAX_AXES] = {0, 0, 0, window->strides[0]};
        StepBuilder s;
        step_begin(&s, plan, RECIPE_REDUCE, 3, out[0]->shape);
        step_reduce_over(&s, 1, &f.window);
        step_combine(&s, COMBINE_SUM, t);
        ScalarBuilder *b = &s.body, *e = &s.epilogue;
        Sc i = sc_add(b, sc_iota(b, 3), step_iparam(&s, b, DT_I64, first));
        Sc turn = on_circle(&s, table, part, sc_iota(b, 1), i, f.size);
        Sc v = sc_load(b, step_in_strided(&s, x, signal, first * x->strides[1]), x->dtype);
        v = sc_mul(b, v, sc_load(b, step_in_strided(&s, window, weights, 0), window->dtype));
        step_result(&s, sc_mul(b, v, part ? sc_neg(b, turn) : turn));
        sc_div(e, sc_acc(e, t), step_fparam(&s, e, t, scale));
        step_out_strided(&s, out[0], out[0]->strides, part * out[0]->strides[3]);
        step_end(&s);
    }
    return true;
}

static const AttrSpec stft_attrs[] = {
    {"n_fft", AT_DIM, NULL, "the elements of a frame"},
    {"hop_length", AT_DIM, "-1", "from one frame to the next; -1: a quarter of a frame"},
    {"win_length", AT_DIM, "-1", "the elements of the window; -1: as many as a frame"},
    {"normalized", AT_BOOL, "False", "divide by the square root of n_fft"},
    {"onesided", AT_BOOL, "True", "only the n_fft / 2 + 1 frequencies that real numbers need"},
};
SIGNATURE_OP(
    stft, "STFT", "stft", "data, window", 2,
    (.text = "float(b, n), =0(w) -> =0(b, ?, ?, 2)", .refuse = refuse_frames,
     .measure = measure_frames),
    .attrs = stft_attrs, .nattrs = 5, .dtypes = DTS_FLOAT, .pattern = OP_OPAQUE,
    .lower = lower_stft,
    .doc = "The Fourier transforms of overlapping frames of data (b, n), each times the\n"
           "window: (b, frequency, frame, real and imaginary part).",
    .example = "sum(stft([[1.0, 2.0, 3.0]], [1.0, 1.0], n_fft=2, hop_length=1), axis=[0, 3])",
    .example_result = "[[ 3.0,  5.0],\n [-1.0, -1.0]] : Tensor[(2, 2), float32]", .see_also = "dft")
