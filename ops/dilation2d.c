/* SPDX-License-Identifier: Apache-2.0 */
/* image.dilation2d, the largest sum of a window of data and a weight, and its derivatives. As a pool of the largest,
 * each window passes its cotangent to the first of its largest sums: dilation2d_pick reads there, dilation2d_data and
 * dilation2d_weight add there. Around data lie zeros, which count as its elements do (TVM). */
#include <string.h>

#include "ops/window.h"

#include "ops/relate/signature.h"

enum { DIL_N, DIL_C, DIL_SIDE, DIL_RANK = 4, SIDES = 2 };

typedef struct Dilation {
    Window w;
    int data[DIL_RANK], kernel[DIL_RANK]; /* where the letters stand; kernel has no DIL_N */
    int64_t size[SIDES], count[SIDES];    /* of data and of the result */
} Dilation;

static const char *read_dilation(const Attrs *attrs, Dilation *d) {
    *d = (Dilation){.w = {.sides = SIDES}};
    if (!layout_read(attrs_text(attrs, "data_layout"), "NCHW", d->data) ||
        !layout_read(attrs_text(attrs, "kernel_layout"), "IHW", d->kernel + DIL_C))
        return "the layouts have different axes";
    return window_attrs_named(attrs, "dilations", &d->w);
}

static const char *refuse_dilation(const Attrs *attrs, const int *ranks) {
    Dilation d;
    (void)ranks;
    return read_dilation(attrs, &d);
}

/* The sizes of a call where argument `data` is data and `weight` the weight; or reports. */
static bool size_dilation(const OpCall *call, int data, int weight, Dilation *d) {
    read_dilation(call->attrs, d);
    for (int j = 0; j < SIDES; j++) {
        d->size[j] = call->in[data]->shape[d->data[DIL_SIDE + j]];
        d->w.kernel[j] = call->in[weight]->shape[d->kernel[DIL_SIDE + j]];
        d->count[j] = window_count(&d->w, j, d->size[j], false);
        if (d->w.kernel[j] >= 1 && d->count[j] >= 0)
            continue;
        const char *side = side_name(SIDES, j);
        shape_error(call, DIAG_R0316, "a kernel of %s %lld does not fit a %s of %lld", side,
                    (long long)d->w.kernel[j], side, (long long)d->size[j]);
        return false;
    }
    return true;
}

/* ---- steps ------------------------------------------------------------------------------------ */

/* Along each side the place of data that window place k[j] of the current window reads: its offset in t, and
 * whether it is one of data. */
static Sc data_offset(StepBuilder *s, const Dilation *d, const Tensor *t, const Sc *k, Sc *inside) {
    ScalarBuilder *b = &s->body;
    Sc offset = -1;
    for (int j = 0; j < SIDES; j++) {
        int axis = d->data[DIL_SIDE + j];
        Sc at = sc_mul(b, sc_iota(b, axis), step_iparam(s, b, DT_I64, d->w.stride[j]));
        at = sc_add(b, at, sc_mul(b, k[j], step_iparam(s, b, DT_I64, d->w.dilation[j])));
        at = sc_sub(b, at, step_iparam(s, b, DT_I64, d->w.before[j]));
        Sc in = sc_in_range(b, at, step_iparam(s, b, DT_I64, d->size[j]));
        Sc skip = sc_mul(b, at, step_iparam(s, b, DT_I64, t->strides[axis]));
        *inside = j ? sc_and(b, *inside, in) : in;
        offset = j ? sc_add(b, offset, skip) : skip;
    }
    return offset;
}

static Sc weight_offset(StepBuilder *s, const Dilation *d, const Tensor *w, const Sc *k) {
    ScalarBuilder *b = &s->body;
    Sc offset = -1;
    for (int j = 0; j < SIDES; j++) {
        Sc skip = sc_mul(b, k[j], step_iparam(s, b, DT_I64, w->strides[d->kernel[DIL_SIDE + j]]));
        offset = j ? sc_add(b, offset, skip) : skip;
    }
    return offset;
}

/* By these a step over the result's axes lies at its batch and channel of t, which is data or the weight. */
static void corner_strides(const Dilation *d, const Tensor *t, bool weight, int64_t *strides) {
    memset(strides, 0, sizeof *strides * RECIPE_MAX_AXES);
    if (!weight)
        strides[d->data[DIL_N]] = t->strides[d->data[DIL_N]];
    strides[d->data[DIL_C]] = t->strides[(weight ? d->kernel : d->data)[DIL_C]];
}

/* out = the largest sums, or (COMBINE_ARGMAX) the numbers of their first places in the window. */
static void plan_largest(Plan *plan, const Dilation *d, Tensor *out, DType t, const Tensor *data,
                         const Tensor *weight, Combine combine) {
    int64_t strides[RECIPE_MAX_AXES];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, DIL_RANK, out->shape);
    step_reduce_over(&s, SIDES, d->w.kernel);
    step_combine(&s, combine, t);
    ScalarBuilder *b = &s.body;
    Sc k[] = {sc_iota(b, DIL_RANK), sc_iota(b, DIL_RANK + 1)}, inside;
    Sc from = data_offset(&s, d, data, k, &inside);
    corner_strides(d, data, false, strides);
    Sc x = sc_load_if(b, step_in_strided(&s, data, strides, 0), data->dtype, from, inside, 0);
    corner_strides(d, weight, true, strides);
    for (int j = 0; j < SIDES; j++)
        strides[DIL_RANK + j] = weight->strides[d->kernel[DIL_SIDE + j]];
    Sc w = sc_load(b, step_in_strided(&s, weight, strides, 0), weight->dtype);
    sc_add(b, sc_cast(b, x, t), sc_cast(b, w, t));
    if (combine == COMBINE_ARGMAX)
        sc_acc(&s.epilogue, DT_I64);
    step_out(&s, out);
    step_end(&s);
}

/* For each window the number of its first largest sum. */
static Tensor *plan_places(Plan *plan, const Dilation *d, const Tensor *data,
                           const Tensor *weight) {
    int64_t shape[DIL_RANK];
    shape[d->data[DIL_N]] = data->shape[d->data[DIL_N]];
    shape[d->data[DIL_C]] = data->shape[d->data[DIL_C]];
    for (int j = 0; j < SIDES; j++)
        shape[d->data[DIL_SIDE + j]] = d->count[j];
    Tensor *at = plan_temp(plan, DT_I64, DIL_RANK, shape);
    plan_largest(plan, d, at, sc_type_of(data->dtype), data, weight, COMBINE_ARGMAX);
    return at;
}

/* The window place that `at` names, along each side. */
static void load_place(StepBuilder *s, const Dilation *d, const Tensor *at, Sc *k) {
    ScalarBuilder *b = &s->body;
    Sc number = sc_load(b, step_in(s, at), DT_I64),
       n = step_iparam(s, b, DT_I64, d->w.kernel[SIDES - 1]);
    k[0] = sc_div(b, number, n);
    k[1] = sc_rem(b, number, n);
}

static bool lower_dilation(const OpCall *call, Tensor *const *out, Plan *plan) {
    Dilation d;
    if (!size_dilation(call, 0, 1, &d))
        return false;
    plan_largest(plan, &d, out[0], sc_type_of(out[0]->dtype), call->in[0], call->in[1],
                 COMBINE_MAX);
    return true;
}

/* (by_data, by_weight, data, weight) */
static bool lower_dilation_pick(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *by_data = call->in[0], *by_weight = call->in[1];
    int64_t strides[RECIPE_MAX_AXES];
    Dilation d;
    if (!size_dilation(call, 2, 3, &d))
        return false;
    Tensor *at = plan_places(plan, &d, call->in[2], call->in[3]);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, DIL_RANK, out[0]->shape);
    ScalarBuilder *b = &s.body;
    Sc k[SIDES], inside;
    load_place(&s, &d, at, k);
    Sc from = data_offset(&s, &d, by_data, k, &inside);
    corner_strides(&d, by_data, false, strides);
    Sc x = sc_load_if(b, step_in_strided(&s, by_data, strides, 0), by_data->dtype, from, inside, 0);
    from = weight_offset(&s, &d, by_weight, k);
    corner_strides(&d, by_weight, true, strides);
    sc_add(b, x, sc_load_at(b, step_in_strided(&s, by_weight, strides, 0), by_weight->dtype, from));
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

enum { BY_DATA, BY_WEIGHT }; /* Op.variant */

/* (grad, data, weight) */
static bool lower_dilation_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *grad = call->in[0];
    bool weight = call->op->variant == BY_WEIGHT;
    int64_t strides[RECIPE_MAX_AXES], none[RECIPE_MAX_AXES] = {0};
    Dilation d;
    if (!size_dilation(call, 1, 2, &d))
        return false;
    plan_fill_int(plan, out[0], 0);
    if (out[0]->count == 0)
        return true;
    Tensor *at = plan_places(plan, &d, call->in[1], call->in[2]);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, DIL_RANK, grad->shape);
    step_combine(&s, COMBINE_SUM, sc_type_of(grad->dtype));
    ScalarBuilder *b = &s.body;
    Sc k[SIDES], inside = -1, g = sc_load(b, step_in(&s, grad), grad->dtype), to;
    load_place(&s, &d, at, k);
    to = weight ? weight_offset(&s, &d, out[0], k) : data_offset(&s, &d, out[0], k, &inside);
    corner_strides(&d, out[0], weight, strides);
    for (int i = 0; i < DIL_RANK; i++)
        if (strides[i])
            to = sc_add(b, to, sc_mul(b, sc_iota(b, i), step_iparam(&s, b, DT_I64, strides[i])));
    if (!weight) { /* what the zeros around were largest for goes nowhere */
        DType t = sc_type(b, g);
        Sc zero = dtype_is_float(t) ? sc_float(b, t, 0) : sc_int(b, t, 0);
        g = sc_select(b, inside, g, zero);
        to = sc_select(b, inside, to, sc_i64(b, 0));
    }
    step_result(&s, g);
    step_result(&s, to);
    step_out_strided(&s, out[0], none, 0);
    step_end(&s);
    return true;
}

/* ---- the operators ---------------------------------------------------------------------------- */

static int form_of_layouts(const Attrs *attrs) {
    return 2 * !strcmp(attrs_text(attrs, "data_layout"), "NHWC") +
           !strcmp(attrs_text(attrs, "kernel_layout"), "HWI");
}

/* Of data and the weight, which are the last two arguments. */
static bool measure_dilation(const OpCall *call, OutSpec *out) {
    Dilation d;
    if (!size_dilation(call, (int)call->nin - 2, (int)call->nin - 1, &d))
        return false;
    for (int j = 0; j < SIDES; j++)
        out[0].shape[d.data[DIL_SIDE + j]] = d.count[j];
    return true;
}

/* grad has the sizes of the result. */
static bool measure_dilation_add(const OpCall *call, OutSpec *out) {
    Dilation d;
    (void)out;
    if (!size_dilation(call, 1, 2, &d))
        return false;
    for (int j = 0; j < SIDES; j++) {
        int axis = d.data[DIL_SIDE + j];
        if (call->in[0]->shape[axis] == d.count[j])
            continue;
        shape_error(call, DIAG_R0314, "axis %d of `grad` is %lld, and %lld windows lie there", axis,
                    (long long)call->in[0]->shape[axis], (long long)d.count[j]);
        return false;
    }
    return true;
}

static const AttrSpec dilation_attrs[] = {
    {"strides", AT_DIMS, "[1, 1]", "steps of the window, one a side"},
    {"padding", AT_DIMS, "[0, 0]",
     "zeros around: one number; one a side; or those before each side, then those after"},
    {"dilations", AT_DIMS, "[1, 1]", "steps within the window"},
    {"data_layout", AT_STRING, "\"NCHW\"", "what data's axes are"},
    {"kernel_layout", AT_STRING, "\"IHW\"", "what the weight's axes are"},
    {"out_dtype", AT_DTYPE, "None", "of the result; None: that of the arguments"},
};
#define DILATION(symbol, rel, op_name, names, count, sig, op_lower, kind, words, shown, value,     \
                 see)                                                                              \
    SIGNATURE_OP(symbol, rel, op_name, names, count, (SIGNATURE_UNPACK sig),                       \
                 .attrs = dilation_attrs, .nattrs = 6,                                             \
                 .choices = "data_layout: NCHW NHWC; kernel_layout: IHW HWI", .dtypes = DTS_NUM,   \
                 .pattern = OP_OPAQUE, .variant = kind, .lower = op_lower, .doc = words,           \
                 .example = shown, .example_result = value, .see_also = see)
/* The four lines of a signature: data as n, c, h, w or n, h, w, c; the weight as c, i, j or i, j, c. */
#define DIL_LINES(line)                                                                            \
    line("n, c, h, w", "c, i, j", "n, c, ?, ?", "n, c, y, x") "|" line(                            \
        "n, c, h, w", "i, j, c", "n, c, ?, ?",                                                     \
        "n, c, y, x") "|" line("n, h, w, c", "c, i, j", "n, ?, ?, c",                              \
                               "n, y, x, c") "|" line("n, h, w, c", "i, j, c", "n, ?, ?, c",       \
                                                      "n, y, x, c")
#define DIL_LINE(d, w, out, g) "num(" d "), =0(" w ") -> @out_dtype(" out ")"
#define PICK_LINE(d, w, out, g) "num(" d "), =0(" w "), =0(" d "), =0(" w ") -> =0(" out ")"
#define DATA_LINE(d, w, out, g) "num(" g "), =0(" d "), =0(" w ") -> =0(" d ")"
#define WEIGHT_LINE(d, w, out, g) "num(" g "), =0(" d "), =0(" w ") -> =0(" w ")"

DILATION(
    image_dilation2d, "Dilation2D", "image.dilation2d", "data, weight", 2,
    (.text = DIL_LINES(DIL_LINE), .refuse = refuse_dilation, .measure = measure_dilation,
     .form = form_of_layouts),
    lower_dilation, 0,
    "Grey dilation: data (n, c, h, w) and weight (c, i, j) give (n, c, y, x), the largest sum of\n"
    "an element of the window and of the weight.",
    "image.dilation2d([[[[1.0, 4.0, 2.0]]]], [[[0.0, 1.0]]])",
    "[[[[5.0, 4.0]]]] : Tensor[(1, 1, 1, 2), float32]", "nn.max_pool2d, nn.conv2d")
DILATION(image_dilation2d_pick, "Dilation2DPick", "image.dilation2d_pick",
         "by_data, by_weight, data, weight", 4,
         (.text = DIL_LINES(PICK_LINE), .refuse = refuse_dilation, .measure = measure_dilation,
          .form = form_of_layouts),
         lower_dilation_pick, 0,
         "For each window the sum of the elements of by_data and by_weight where that of data and\n"
         "weight is largest.",
         "image.dilation2d_pick([[[[7.0, 8.0]]]], [[[3.0]]], [[[[1.0, 4.0]]]], [[[0.0]]])",
         "[[[[10.0, 11.0]]]] : Tensor[(1, 1, 1, 2), float32]", "image.dilation2d")
DILATION(image_dilation2d_data, "Dilation2DData", "image.dilation2d_data", "grad, data, weight", 3,
         (.text = DIL_LINES(DATA_LINE), .refuse = refuse_dilation, .measure = measure_dilation_add,
          .form = form_of_layouts),
         lower_dilation_add, BY_DATA, "The derivative of image.dilation2d by data.",
         "image.dilation2d_data([[[[5.0]]]], [[[[1.0, 4.0]]]], [[[0.0, 1.0]]])",
         "[[[[0.0, 5.0]]]] : Tensor[(1, 1, 1, 2), float32]", "image.dilation2d")
DILATION(image_dilation2d_weight, "Dilation2DWeight", "image.dilation2d_weight",
         "grad, data, weight", 3,
         (.text = DIL_LINES(WEIGHT_LINE), .refuse = refuse_dilation,
          .measure = measure_dilation_add, .form = form_of_layouts),
         lower_dilation_add, BY_WEIGHT, "The derivative of image.dilation2d by the weight.",
         "image.dilation2d_weight([[[[5.0]]]], [[[[1.0, 4.0]]]], [[[0.0, 1.0]]])",
         "[[[0.0, 5.0]]] : Tensor[(1, 1, 2), float32]", "image.dilation2d")
