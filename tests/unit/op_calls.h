/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of operators over small shapes, for the tests that walk over all operators: attributes from a
 * table of values that matter, shapes of ranks 0 to 4 and sizes 0 to 3, of which the later ones often fit
 * the first, dtypes. `seed` decides which. */
#ifndef TESTS_UNIT_OP_CALLS_H
#define TESTS_UNIT_OP_CALLS_H

#include <string.h>

#include "base/diag.h"
#include "ops/recipe/plan.h"
#include "ops/recipe/template.h"
#include "ops/relate/signature.h"
#include "types/solve/solver.h"

enum { MAX_IN = 8, MAX_CHOICES = 12, MAX_ATTRS = 12 };

static uint32_t seed = 5;
static uint32_t below(uint32_t n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % n;
}

/* Floats around 0; of other dtypes the least, and the two numbers behind it. */
static inline void fill_elements(Tensor *t, int64_t least) {
    for (int64_t i = 0; i < t->count; i++) {
        void *p = tensor_at(t, i);
        if (dtype_is_float(t->dtype))
            elem_set_float(p, t->dtype, ((double)below(4001) - 2000) / 300);
        else
            elem_set_int(p, t->dtype, least + (int64_t)below(3));
    }
}

/* Runs a step of a template by the reference of its recipe. */
static inline int32_t run_step(void *ctx, TemplateStep *step, char *const *at,
                               const volatile int *interrupt) {
    (void)ctx;
    KernelArgs args;
    template_bind(step, at, interrupt, &args);
    return recipe_run(step->recipe, &args);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Values tried for an attribute, of one operator or (NULL) of all that have it; else its default. */
static const struct {
    const char *op, *attr, *values;
} choices[] = {
    {"reverse", "axis", "None;0;1;-1;3"},
    {"take", "axis", "None;0;1;-1;3"},
    {"take_add", "axis", "None;0;1;-1"},
    {"cumsum", "axis", "None;0;1;-1"},
    {"cumprod", "axis", "None;0;1;-1"},
    {"repeat", "axis", "None;0;1;-1"},
    {"repeat_sum", "axis", "None;0;1;-1"},
    {"squeeze", "axis", "None;[0];[1, 2];[-1];[0, 0]"},
    {"cast", "dtype", "float32;int8"},
    {"random.uniform", "out_dtype", "None;float64"},
    {"image.grid_sample", "layout", "\"NCHW\";\"NCDHW\""},
    {"image.sample", "layout", "\"NCHW\";\"NCDHW\""},
    {"image.sample_add", "layout", "\"NCHW\";\"NCDHW\""},
    {NULL, "src_layout", "\"NCHW\";\"NC2c\";\"NC\""},
    {NULL, "dst_layout", "\"NCHW\";\"NC2c\";\"CN\";\"NCHW2c\""},
    {"reinterpret", "dtype", "int32;float32;int64"},
    {"stft", "n_fft", "1;2"},
    {NULL, "hop_length", "1;2"},
    {NULL, "sparse_lhs", "False;True"},
    {NULL, "num_samples", "1;0;3"},
    {NULL, "target_shape", "[1, 2];[0, 3]"},
    {NULL, "pooled_size", "[1, 1];[2, 1]"},
    {"vision.get_valid_counts", "score_index", "1;0;-1"},
    {"vision.non_max_suppression", "score_index", "1;0"},
    {"vision.non_max_suppression", "coord_start", "0;-1"},
    {NULL, "return_indices", "True;False"},
    {NULL, "output_format", "\"onnx\";\"tensorflow\""},
    {"fixed_point_multiply_per_axis", "axes", "[-1];[0];[1]"},
    {NULL, "axis", "None;0;1;-1;-2;[0];[0, 1];[-1];[];[1, 1];[3];4"},
    {NULL, "axes", "None;[0];[1, 0];[0, 2, 1];[2, 0, 1];[0, 1, 2, 3];[-1];[0, 0]"},
    {NULL, "keepdims", "False;True"},
    {NULL, "exclude", "False;True"},
    {"strided_slice", "strides", "None;[1];[2];[1, -1];[-2];[0]"},
    {"strided_slice_add", "strides", "None;[1];[2];[1, -1]"},
    {"strided_slice", "begin", "None;[0];[1];[-1, 1];[0, 0, 2]"},
    {"strided_slice_add", "begin", "None;[0];[1];[-1, 1]"},
    {NULL, "end", "None;[2];[-1];[3, 1];[9, 9, 9]"},
    {"strided_slice", "slice_mode", "\"end\";\"size\""},
    {"strided_slice", "axes", "None;[1];[-1];[0, 1]"},
    {"strided_slice_add", "axes", "None;[1];[-1]"},
    {"strided_slice_add", "slice_mode", "\"end\""},
    {"nn.conv1d", "strides", "[1];[2]"},
    {"nn.conv1d", "padding", "[0];[1];[1, 0]"},
    {"nn.conv1d", "dilation", "[1];[2]"},
    {"nn.conv1d", "data_layout", "\"NCW\";\"NWC\""},
    {"nn.conv1d", "kernel_layout", "\"OIW\";\"WIO\""},
    {"nn.conv1d", "kernel_size", "None;[1];[2]"},
    {"nn.conv1d_transpose", "strides", "[1];[2]"},
    {"nn.conv1d_transpose", "padding", "[0];[1];[1, 0]"},
    {"nn.conv1d_transpose", "dilation", "[1];[2]"},
    {"nn.conv1d_transpose", "data_layout", "\"NCW\";\"NWC\""},
    {"nn.conv1d_transpose", "kernel_layout", "\"OIW\";\"WIO\""},
    {"nn.conv1d_transpose", "kernel_size", "None;[1];[2]"},
    {"nn.max_pool1d", "strides", "[1];[2]"},
    {"nn.max_pool1d", "padding", "[0];[1];[1, 0]"},
    {"nn.max_pool1d", "dilation", "[1];[2]"},
    {"nn.max_pool1d", "pool_size", "[1];[2];[3]"},
    {"nn.max_pool1d", "layout", "\"NCW\";\"NWC\""},
    {"nn.avg_pool1d", "strides", "[1];[2]"},
    {"nn.avg_pool1d", "padding", "[0];[1];[1, 0]"},
    {"nn.avg_pool1d", "dilation", "[1];[2]"},
    {"nn.avg_pool1d", "pool_size", "[1];[2];[3]"},
    {"nn.avg_pool1d", "layout", "\"NCW\";\"NWC\""},
    {"nn.conv3d", "strides", "[1, 1, 1];[2];[1, 2, 1]"},
    {"nn.conv3d", "padding", "[0, 0, 0];[1];[0, 1, 0, 1, 0, 0]"},
    {"nn.conv3d", "dilation", "[1, 1, 1];[2];[1, 2, 1]"},
    {"nn.conv3d", "data_layout", "\"NCDHW\""},
    {"nn.conv3d", "kernel_layout", "\"OIDHW\""},
    {"nn.conv3d", "kernel_size", "None;[1, 1, 1]"},
    {"nn.conv3d_transpose", "strides", "[1, 1, 1];[2];[1, 2, 1]"},
    {"nn.conv3d_transpose", "padding", "[0, 0, 0];[1];[0, 1, 0, 1, 0, 0]"},
    {"nn.conv3d_transpose", "dilation", "[1, 1, 1];[2];[1, 2, 1]"},
    {"nn.conv3d_transpose", "data_layout", "\"NCDHW\""},
    {"nn.conv3d_transpose", "kernel_layout", "\"OIDHW\""},
    {"nn.conv3d_transpose", "kernel_size", "None;[1, 1, 1]"},
    {"nn.max_pool3d", "strides", "[1, 1, 1];[2];[1, 2, 1]"},
    {"nn.max_pool3d", "padding", "[0, 0, 0];[1];[0, 1, 0, 1, 0, 0]"},
    {"nn.max_pool3d", "dilation", "[1, 1, 1];[2];[1, 2, 1]"},
    {"nn.max_pool3d", "pool_size", "[2];[1, 2, 1]"},
    {"nn.max_pool3d", "layout", "\"NCDHW\""},
    {"nn.avg_pool3d", "strides", "[1, 1, 1];[2];[1, 2, 1]"},
    {"nn.avg_pool3d", "padding", "[0, 0, 0];[1];[0, 1, 0, 1, 0, 0]"},
    {"nn.avg_pool3d", "dilation", "[1, 1, 1];[2];[1, 2, 1]"},
    {"nn.avg_pool3d", "pool_size", "[2];[1, 2, 1]"},
    {"nn.avg_pool3d", "layout", "\"NCDHW\""},
    {"nn.adaptive_avg_pool1d", "layout", "\"NCW\";\"NWC\""},
    {"nn.adaptive_avg_pool3d", "layout", "\"NCDHW\""},
    {"nn.adaptive_max_pool1d", "layout", "\"NCW\";\"NWC\""},
    {"nn.adaptive_max_pool3d", "layout", "\"NCDHW\""},
    {"nn.space_to_batch_nd", "paddings", "[[0, 1]];[[1, 0], [0, 1]];[[0, 0]]"},
    {"nn.space_to_batch_nd", "block_shape", "[2];[1, 2];[1]"},
    {"nn.batch_to_space_nd", "crops", "[[0, 1]];[[0, 0], [0, 1]];[[0, 0]]"},
    {"nn.batch_to_space_nd", "block_shape", "[2];[1, 2];[1]"},
    {NULL, "block_size", "1;2"},
    {"nn.depth_to_space", "mode", "\"DCR\";\"CRD\""},
    {"nn.space_to_depth", "mode", "\"DCR\";\"CRD\""},
    {"nn.dilate", "strides", "[2];[1, 2];[1, 3, 1];[]"},
    {NULL, "window_shape", "[2];[1, 2];[1]"},
    {"sliding_window", "strides", "[1];[1, 2];[2]"},
    {"sliding_window_add", "strides", "[1];[1, 2];[2]"},
    {"sliding_window", "axis", "0;1;-1;2"},
    {"sliding_window_add", "axis", "0;1;-1"},
    {NULL, "num_groups", "0;1;2"},
    {"image.resize1d", "size", "[2];[0];[5]"},
    {"image.resize1d", "layout", "\"NCW\";\"NWC\""},
    {"image.resize2d", "size", "[2];[3, 1];[0]"},
    {"image.resize3d", "size", "[2];[1, 3, 2]"},
    {"image.resize3d", "layout", "\"NCDHW\""},
    {"nn.upsampling", "scale_h", "1.0;2.0;0.5"},
    {"nn.upsampling3d", "scale_d", "1.0;2.0;0.5"},
    {"nn.upsampling3d", "layout", "\"NCDHW\""},
    {NULL, "size", "1;3"},
    {NULL, "output_size", "[];[1];[2];[3]"},
    {NULL, "output_padding", "[0];[1]"},
    {"image.dilation2d", "kernel_layout", "\"IHW\";\"HWI\""},
    {"image.dilation2d_data", "kernel_layout", "\"IHW\";\"HWI\""},
    {"image.dilation2d_pick", "kernel_layout", "\"IHW\";\"HWI\""},
    {"image.dilation2d_weight", "kernel_layout", "\"IHW\";\"HWI\""},
    {"nn.correlation_grad", "max_displacement", "0"},
    {"vision.proposal", "ratios", "[1.0]"},
    {"vision.proposal", "scales", "[1.0];[1.0, 2.0]"},
    {NULL, "strides", "[1, 1];[2];[1, 2];[2, 2];[3, 1]"},
    {NULL, "padding", "[0, 0];[1];[1, 0];[0, 1, 1, 2]"},
    {NULL, "dilation", "[1, 1];[2];[1, 2]"},
    {NULL, "groups", "1;2;3"},
    {NULL, "channels", "None;2;3"},
    {"nn.sparse_conv2d", "kernel_size", "[1, 1];[3, 3]"},
    {NULL, "kernel_size", "None;[1, 1];[2, 2]"},
    {NULL, "pool_size", "[1, 1];[2];[2, 1];[3, 3]"},
    {NULL, "ceil_mode", "False;True"},
    {NULL, "count_include_pad", "False;True"},
    {NULL, "data_layout", "\"NCHW\";\"NHWC\""},
    {NULL, "kernel_layout", "\"OIHW\";\"HWIO\""},
    {NULL, "layout", "\"NCHW\";\"NHWC\""},
    {NULL, "newshape",
     "[-1];[0, -1];[2, -1];[-2];[-3, -2];[-4, 1, -1, -2];[3, 2];[-4, -1, 2];[0];[-1, 0, 3];[2, "
     "-2];[-1, -1]"},
    {NULL, "allowzero", "False;True"},
    {NULL, "lhs_begin", "0;1"},
    {NULL, "lhs_end", "None;1;-1"},
    {NULL, "rhs_begin", "0;1"},
    {NULL, "rhs_end", "None;1"},
    {NULL, "num_newaxis", "1;2;0"},
    {NULL, "indices_or_sections", "1;2;3;[1];[1, 2];[0, 3];[]"},
    {NULL, "reps", "[2];[1, 2];[3, 1, 1, 1, 2];[0];[]"},
    {NULL, "repeats", "0;1;3"},
    {NULL, "pad_width",
     "[[1, 0]];[[0, 0], [1, 2]];[[1, 1], [0, 0], [0, 1], [0, 0]];[[1, 1], [2, 0], [0, 1]]"},
    {"nn.pad", "pad_mode", "\"constant\";\"edge\";\"reflect\""},
    {"nn.pad_sum", "pad_mode", "\"edge\";\"reflect\";\"constant\""},
    {"nn.mirror_pad", "mode", "\"SYMMETRIC\";\"REFLECT\""},
    {"nn.mirror_pad_sum", "mode", "\"SYMMETRIC\";\"REFLECT\""},
    {"scatter_nd", "mode", "\"update\";\"add\""},
    {"sparse_to_dense", "output_shape", "[4];[2, 3];[1];[2, 2, 2]"},
    {NULL, "mode", "\"clip\""},
    {NULL, "batch_dims", "0;1;2"},
    {NULL, "index_rank", "None;1;2"},
    {NULL, "reduction", "\"update\";\"add\""},
    {NULL, "depth", "0;3"},
    {NULL, "units", "None;2"},
    {NULL, "transpose_a", "False;True"},
    {NULL, "transpose_b", "False;True"},
    {NULL, "center", "True;False"},
    {"searchsorted", "dtype", "int32;int64"},
    {"sequence_mask", "axis", "0;1;-1;2"},
    {NULL, "seq_axis", "1;0;-1"},
    {NULL, "batch_axis", "0;1"},
    {NULL, "k1", "0;-1"},
    {NULL, "k2", "0;1"},
    {NULL, "k", "None;1;2;0"},
    {NULL, "ret_type", "\"both\";\"values\";\"indices\""},
    {NULL, "indexing", "\"ij\";\"xy\""},
    {NULL, "return_counts", "False;True"},
    {"index", "spec", "\"i\";\"ii\";\".i\";\":0i\";\"n.\";\"i.:0\";\"iiiii\""},
    {"index_add", "spec", "\"i\";\"ii\";\".i\";\":0i\";\"n.\""},
    {"index_last", "spec", "\"i\";\"ii\";\".i\";\":0i\";\"n.\""},
    {"index_set", "spec", "\"i\";\"ii\";\".i\";\":0i\";\"n.\""},
    {"broadcast_to", "shape", "[];[2, 3];[1, 2, 2];[3]"},
    {NULL, "shape", "[];[3];[2, 0];[1, 2, 3, 1]"},
    {NULL, "out_shape", "[];[3];[2, 0]"},
    {"einsum", "equation",
     "\"ij,jk->ik\";\"ii->i\";\"i,i->\";\"ij->ji\";\"...i,...i->...\";\"ij\""},
    {"einsum_pairs", "equation", "\"ij,jk->ik\";\"i,i->\""},
    {NULL, "equation", "\"ij,jk->ik\";\"i,i->\";\"ij->ji\""},
};

/* What an attribute is in the documented example; NULL when it is not there. */
static const char *documented_value(const Op *op, const AttrSpec *spec) {
    const char *p = strstr(op->example, fmt_text(" %s=", spec->name));
    if (!p)
        return NULL;
    p += strlen(spec->name) + 2;
    size_t n = 0;
    for (int depth = 0; p[n] && (depth || (p[n] != ',' && p[n] != ')')); n++)
        depth += (p[n] == '[') - (p[n] == ']');
    return mem_strndup(p, n);
}

static const char *choices_of(const Op *op, const AttrSpec *spec) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(choices[i].attr, spec->name) == 0 &&
            (!choices[i].op || strcmp(choices[i].op, op->name) == 0))
            return choices[i].values;
    const char *value = spec->initial ? spec->initial : documented_value(op, spec);
    if (value)
        return value;
    return spec->type == AT_INT ? "0;1" : spec->type == AT_FLOAT ? "0.5" : NULL;
}

/* One of several texts with `;` between them, as this attribute takes it; false: it does not. */
static bool choose(const AttrSpec *spec, const char *values, uint32_t which, AttrValue *out) {
    uint32_t n = 1;
    for (const char *p = values; *p; p++)
        n += *p == ';';
    const char *p = values;
    for (which %= n; which; which--)
        p = strchr(p, ';') + 1;
    *out = attr_parse(fmt_text("%.*s", (int)strcspn(p, ";"), p));
    switch (spec->type) {
    case AT_INT: return out->kind == ATTR_INT;
    case AT_DIM: /* the checker puts the default for None */
        return out->kind == ATTR_INT ||
               (out->kind == ATTR_NONE && spec->initial && strcmp(spec->initial, "None") == 0);
    case AT_INT_OPT: return out->kind == ATTR_INT || out->kind == ATTR_NONE;
    case AT_INTS:
    case AT_DIMS: return out->kind == ATTR_LIST;
    case AT_INTS_OPT:
    case AT_DIMS_OPT: return out->kind == ATTR_LIST || out->kind == ATTR_NONE;
    case AT_FLOAT:
    case AT_BOOL:
    case AT_STRING:
    case AT_DTYPE:
    case AT_DIM_LISTS:
    case AT_INT_OR_DIMS:
    case AT_FLOATS: return true;
    }
    return false;
}

static const Attrs *make_attrs(const Op *op) {
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    for (int i = 0; i < op->nattrs; i++) {
        const char *texts = choices_of(op, &op->attrs[i]);
        bool plain = op->attrs[i].initial && below(3) != 0 && op->nattrs > 3;
        if (!texts)
            return NULL;
        for (int tries = 0;
             !choose(&op->attrs[i], plain ? op->attrs[i].initial : texts, below(64), &values[i]);)
            if (++tries == 50)
                return NULL;
    }
    Attrs *attrs = mem_new(Attrs);
    attrs->op = op;
    attrs->values = values;
    return attrs;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

typedef struct Shape {
    int rank;
    int64_t dims[5];
} Shape;

static Shape shapes[341];
static int nshapes;

static void list_shapes(void) {
    for (int rank = 0, count = 1; rank <= 4; rank++, count *= 4)
        for (int i = 0; i < count; i++) {
            Shape s = {.rank = rank};
            for (int k = 0, rest = i; k < rank; k++, rest /= 4)
                s.dims[k] = rest % 4;
            shapes[nshapes++] = s;
        }
}

/* A shape that may go with the first: its own, cut, broadcast, a vector of one of its sizes, … */
static Shape shape_after(const Shape *s, uint32_t way) {
    Shape out = *s;
    switch (way % 9) {
    case 8: return (Shape){0};
    case 0:
    case 1: return out;
    case 2: /* some axes 1 */
        for (int k = 0; k < out.rank; k++)
            if (below(2))
                out.dims[k] = 1;
        return out;
    case 3: { /* the last axes */
        int cut = s->rank ? (int)below((uint32_t)s->rank + 1) : 0;
        out.rank -= cut;
        for (int k = 0; k < out.rank; k++)
            out.dims[k] = s->dims[k + cut];
        return out;
    }
    case 4: /* a vector */
        out = (Shape){1, {s->rank ? s->dims[way / 9 % (uint32_t)s->rank] : 1}};
        return out;
    case 5: /* a matrix that begins or ends so */
        out = (Shape){2, {below(4), below(4)}};
        if (s->rank)
            out.dims[below(2)] = s->dims[below(2) ? 0 : s->rank - 1];
        return out;
    case 6: /* one axis another size, or gone */
        if (s->rank && below(2)) {
            out.dims[below((uint32_t)s->rank)] = below(4);
        } else if (s->rank) {
            int gone = (int)below((uint32_t)s->rank);
            out.rank--;
            for (int k = gone; k < out.rank; k++)
                out.dims[k] = out.dims[k + 1];
        }
        return out;
    }
    return shapes[below((uint32_t)nshapes)];
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct Call {
    const Op *op;
    const Attrs *attrs;
    int ntypes;      /* arguments; the tensors of a tuple argument stand in a row */
    uint32_t tuples; /* the arguments that are tuples, one bit each */
    int ntuple;      /* how many tensors each holds */
    int nin;
    Shape shapes[MAX_IN];
    DType dtypes[MAX_IN];
    Tensor *in[MAX_IN];
} Call;

static uint32_t tuple_arguments(const Op *op) {
    uint32_t found = 0;
    for (int i = 0; i < op->nargs; i++)
        found |= (uint32_t)op_arg(op, i).tuple << i;
    return found;
}

/* ---- made ------------------------------------------------------------------------------------ */

/* Dtypes of later arguments: as the first, an index, a condition, a float. */
static DType later_dtype(const Op *op, DType first, uint32_t way) {
    (void)op;
    switch (way % 4) {
    case 0: return first;
    case 1: return DT_I32;
    case 2: return DT_F32;
    }
    return DT_BOOL;
}

static DType first_dtype(const Op *op) {
    static const DType order[] = {DT_F32, DT_I32, DT_F64, DT_U64, DT_I8, DT_BOOL};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (op->dtypes & DT_BIT(order[i]))
            return order[i];
    return DT_F32;
}

static int integers_of(const Attrs *attrs) {
    int n = 0;
    for (const char *p = attrs_text(attrs, "spec"); *p; p++)
        n += *p == 'i';
    return n;
}

/* Half of the sums that undo a padding get a gradient of the padded shape, which is seldom drawn. */
static void fit_padding(Call *c) {
    if (!strstr(c->op->name, "pad_sum") || !below(2))
        return;
    const AttrValue *widths = attrs_get(c->attrs, "pad_width");
    Shape *grad = &c->shapes[0], *data = &c->shapes[1];
    grad->rank = data->rank = (int)widths->list.n;
    for (int k = 0; k < data->rank; k++) {
        const AttrValue *pair = &widths->list.items[k];
        data->dims[k] = 1 + (int64_t)below(3);
        grad->dims[k] = data->dims[k] + pair->list.items[0].i + pair->list.items[1].i;
    }
}

/* Half of the transformed weights get sizes that tiles of 2 places come from, which are seldom drawn. */
static void fit_winograd(Call *c) {
    if (!strstr(c->op->name, "winograd_without") || !below(2))
        return;
    Shape *data = &c->shapes[0], *weight = &c->shapes[1];
    data->rank = weight->rank = strstr(c->op->name, "3d") ? 5 : 4;
    for (int k = 0; k < data->rank; k++) {
        data->dims[k] = k < 2 ? 1 + (int64_t)below(2) : 3 + (int64_t)below(2);
        weight->dims[k] = k < data->rank - 2 ? 4 : 1 + (int64_t)below(2);
    }
    weight->dims[weight->rank - 1] = data->dims[1];
}

/* Scales and zero points behind one or two quantised tensors. */
static void fit_params(Call *c) {
    int n = c->nin % 2 ? 1 : 2;
    c->dtypes[1] = c->dtypes[0];
    for (int i = n; i < c->nin; i++) {
        c->dtypes[i] = (i - n) % 2 ? DT_I32 : DT_F32;
        c->shapes[i] = (Shape){below(4) == 0, {1 + (int64_t)below(2)}};
    }
}

/* Arguments as the signature has them, where the first one is the one drawn. */
static void fit_signature(Call *c) {
    int64_t names[26];
    OutSpec rest = {.rank = c->shapes[0].rank}, fit;
    for (int i = 0; i < 26; i++)
        names[i] = (int64_t)below(below(2) ? 4 : 7);
    memcpy(rest.shape, c->shapes[0].dims, sizeof *rest.shape * (size_t)rest.rank);
    for (int i = 0; i < c->nin; i++) {
        signature_argument(c->op, c->attrs, i, names, &rest, c->dtypes[0], &fit);
        if (fit.rank > 5)
            return;
        c->dtypes[i] = fit.dtype;
        c->shapes[i].rank = fit.rank;
        memcpy(c->shapes[i].dims, fit.shape, sizeof *fit.shape * (size_t)fit.rank);
    }
}

static bool make_call(Call *c, const Op *op, uint32_t number, uint32_t ways) {
    *c = (Call){.op = op, .tuples = tuple_arguments(op), .attrs = make_attrs(op)};
    if (!c->attrs)
        return false;
    c->ntypes = op->nargs;
    bool integers = strncmp(op->name, "index", 5) == 0,
         random = strncmp(op->name, "random.", 7) == 0;
    c->ntuple = integers ? integers_of(c->attrs) : 1 + (int)below(3);
    for (int i = 0; i < c->ntypes; i++)
        c->nin += c->tuples >> i & 1 ? c->ntuple : 1;
    if (c->nin > MAX_IN)
        return false;
    /* Sizes that are often equal; later arguments each in its own way, or all in one. */
    bool narrow = below(2), together = below(2), one_shape = c->tuples && below(3) == 0;
    uint32_t way = below(9 * 16);
    for (int i = 0; i < c->nin; i++) {
        bool index = integers && i >= __builtin_ctz(c->tuples) &&
                     i < __builtin_ctz(c->tuples) + c->ntuple;
        Shape *s = &c->shapes[i];
        *s = i == 0                 ? shapes[number * 89 % (uint32_t)nshapes]
             : one_shape            ? c->shapes[0]
             : together || below(2) ? shape_after(&c->shapes[0], together ? way : below(9 * 16))
                                    : shapes[below((uint32_t)nshapes)];
        if (s->rank == 4 && strstr(op->name, "3d"))
            s->dims[s->rank++] = 1 + (int64_t)below(2);
        for (int k = 0; k < s->rank && narrow; k++)
            s->dims[k] = 1 + s->dims[k] % 2;
        if (random && i == 0 && below(4))
            *s = (Shape){1, {10}};
        if (index)
            s->rank = 0;
        if (i >= 1 + (strcmp(op->name, "strided_set") == 0) && strstr(op->name, "strided_s") &&
            op->shape_mode == SHAPE_OF_DATA && below(2))
            *s = (Shape){1, {1}};
        c->dtypes[i] = i == 0      ? first_dtype(op)
                       : index     ? DT_I32
                       : c->tuples ? c->dtypes[0]
                                   : later_dtype(op, c->dtypes[0], ways >> (2 * (i - 1)));
    }
    if (strcmp(op->name, "where") == 0)
        c->dtypes[0] = DT_BOOL;
    if (strcmp(op->name, "adv_index") == 0)
        for (int i = 1; i < c->nin; i++)
            c->dtypes[i] = DT_I32;
    if (strcmp(op->name, "qnn.concatenate") == 0)
        for (int i = c->ntuple; i < c->nin; i++) {
            bool zero = i < 3 * c->ntuple ? i >= 2 * c->ntuple : i == c->nin - 1;
            c->shapes[i].rank = 0;
            c->dtypes[i] = zero ? DT_I32 : DT_F32;
        }
    else if (strncmp(op->name, "qnn.", 4) == 0 && !op->signature)
        fit_params(c);
    if (op->signature && below(4))
        fit_signature(c);
    fit_padding(c);
    fit_winograd(c);
    return true;
}

#endif
