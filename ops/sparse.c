/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices in rows: the elements that are there, their columns, and where each row begins among them
 * (indptr, one more than there are rows). What they say of rows and columns is read and checked when a call is planned,
 * which writes the row of each element down; the sums are a scatter of what each element contributes. */
#include "base/mem.h"
#include "ops/relate/signature.h"
#include "ops/window.h"

#include <string.h>

static void *at2(const Tensor *t, int64_t a, int64_t b) {
    int64_t offset = a * t->strides[0] + (t->rank > 1 ? b * t->strides[1] : 0);
    return (char *)tensor_data(t) + offset * (int64_t)dtype_size(t->dtype);
}

static int64_t index_at(const Tensor *t, int64_t i) { return elem_get_int(at2(t, i, 0), t->dtype); }

/* A sparse matrix among the arguments of a call, from argument `first` on. */
typedef struct Sparse {
    const Tensor *values, *columns, *starts;
    int64_t rows;
} Sparse;

/* Checks all rows and columns, of which there are this many; false after a report. */
static bool read_sparse(const OpCall *call, int first, int64_t columns, Sparse *m) {
    *m = (Sparse){call->in[first], call->in[first + 1], call->in[first + 2], 0};
    int64_t n = m->values->shape[0], last = 0;
    m->rows = m->starts->shape[0] - 1;
    for (int64_t i = 0; i <= m->rows; i++) {
        int64_t start = index_at(m->starts, i);
        if (start < last || start > n || (i == 0 && start != 0)) {
            shape_error(call, DIAG_R0602, "row %lld begins at %lld, and there are %lld elements",
                        (long long)i, (long long)start, (long long)n);
            return false;
        }
        last = start;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t column = index_at(m->columns, i);
        if (column < 0 || column >= columns) {
            shape_error(call, DIAG_R0602, "column %lld is not one of %lld", (long long)column,
                        (long long)columns);
            return false;
        }
    }
    return true;
}

/* The row of each element that is in one: the first places of a vector with one for each element. */
static Tensor *plan_rows(Plan *plan, const Sparse *m) {
    Tensor *rows = plan_temp(plan, DT_I64, 1, m->values->shape);
    int64_t *at = tensor_data(rows);
    for (int64_t row = 0; row < m->rows; row++)
        for (int64_t i = index_at(m->starts, row); i < index_at(m->starts, row + 1); i++)
            at[i] = row;
    return rows;
}

/* How many elements are in rows. */
static int64_t count_elements(const Sparse *m) {
    return m->rows > 0 ? index_at(m->starts, m->rows) : 0;
}

/* The tensor to add to: out itself, or of halves one of float32, so that a sum is rounded once. */
static Tensor *plan_sums(Plan *plan, Tensor *out, const Tensor *start) {
    DType acc = reduce_acc_type(out->dtype);
    Tensor *sums = acc == out->dtype ? out : plan_temp(plan, acc, out->rank, out->shape);
    if (start)
        plan_copy(plan, sums, start);
    else
        plan_fill_int(plan, sums, 0);
    return sums;
}

static void plan_round(Plan *plan, Tensor *out, const Tensor *sums) {
    if (sums != out)
        plan_copy(plan, out, sums);
}

/* An element of a vector at the place along `axis`, as int64. */
static Sc load_along(StepBuilder *s, const Tensor *t, int axis) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    strides[axis] = t->strides[0];
    return sc_index_load(&s->body, step_in_strided(s, t, strides, 0), t->dtype);
}

static Sc times(StepBuilder *s, Sc index, int64_t stride) {
    return sc_mul(&s->body, index, step_iparam(s, &s->body, DT_I64, stride));
}

/* ---- nn.sparse_dense -------------------------------------------------------------------------- */

static bool is_left(const Attrs *attrs) { return attrs_bool(attrs, "sparse_lhs"); }
static int form_of_side(const Attrs *attrs) { return is_left(attrs); }

static bool measure_rows(const OpCall *call, OutSpec *out) {
    int64_t n = call->in[3]->shape[0];
    if (n < 1) {
        shape_error(call, DIAG_R0318, "`sparse_indptr` has no elements");
        return false;
    }
    out[0].shape[is_left(call->attrs) ? 0 : 1] = n - 1;
    return true;
}

/* The domain is (m, the elements): each row of the dense matrix on its own. */
static bool lower_sparse_dense(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    Sparse m;
    if (!read_sparse(call, 1, x->shape[1], &m))
        return false;
    Tensor *sums = plan_sums(plan, out[0], NULL);
    int64_t extents[] = {x->shape[0], count_elements(&m)};
    int row_axis = is_left(call->attrs) ? 0 : 1;
    int64_t from[RECIPE_MAX_AXES] = {x->strides[0]}, to[RECIPE_MAX_AXES] = {0};
    int64_t along[RECIPE_MAX_AXES] = {0, m.values->strides[0]};
    to[0] = sums->strides[1 - row_axis];
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, 2, extents);
    step_combine(&s, COMBINE_SUM, sums->dtype);
    ScalarBuilder *b = &s.body;
    Sc row = load_along(&s, plan_rows(plan, &m), 1), column = load_along(&s, m.columns, 1);
    Sc v = sc_load_at(b, step_in_strided(&s, x, from, 0), x->dtype,
                      times(&s, column, x->strides[1]));
    step_result(&s, sc_mul(b, v, sc_load(b, step_in_strided(&s, m.values, along, 0), x->dtype)));
    step_result(&s, times(&s, row, sums->strides[row_axis]));
    step_out_strided(&s, sums, to, 0);
    step_end(&s);
    plan_round(plan, out[0], sums);
    return true;
}

static const AttrSpec side_attrs[] = {
    {"sparse_lhs", AT_BOOL, "False", "the sparse matrix times the transposed dense one"},
};
#define SPARSE_DENSE(symbol, rel, op_name, words)                                                  \
    SIGNATURE_OP(symbol, rel, op_name, "dense_data, sparse_data, sparse_indices, sparse_indptr",   \
                 4,                                                                                \
                 (.text = "num(m, k), =0(z), int(z), =2(p) -> =0(m, ?)|"                           \
                          "num(m, k), =0(z), int(z), =2(p) -> =0(?, m)",                           \
                  .measure = measure_rows, .form = form_of_side),                                  \
                 .attrs = side_attrs, .nattrs = 1, .dtypes = DTS_NUM, .pattern = OP_OPAQUE,        \
                 .lower = lower_sparse_dense, .lower_reads = true, .doc = words,                   \
                 .example = op_name "([[1.0, 2.0]], [3.0, 4.0], [1, 0], [0, 1, 2])",               \
                 .example_result = "[[6.0, 4.0]] : Tensor[(1, 2), float32]",                       \
                 .see_also = "nn.dense, nn.sparse_add")
SPARSE_DENSE(
    nn_sparse_dense, "SparseDense", "nn.sparse_dense",
    "dense_data (m, k) times the transpose of a sparse matrix (n, k): (m, n). The matrix is\n"
    "given by its elements, their columns, and where each row begins among them.")
SPARSE_DENSE(nn_internal_sparse_dense_padded, "SparseDensePadded",
             "nn.internal.sparse_dense_padded",
             "The same as nn.sparse_dense: TVM's name for one whose rows are padded for a GPU.")

/* ---- nn.sparse_conv2d ------------------------------------------------------------------------- */

/* The weight is a matrix of blocks (r, c), one row of blocks behind another: its rows are the output channels, its columns
 * the places of the window and the input channels, numbered as data has them: channels last (NHWC) or first (NCHW). */
typedef struct SparseConv {
    int channel; /* data's axis; the sides follow each other from `side` on */
    int side;
    int64_t window, width; /* of the square window; of a block */
} SparseConv;

static SparseConv read_sparse_conv(const OpCall *call) {
    bool last = attrs_text(call->attrs, "layout")[1] == 'H';
    const Tensor *blocks = call->in[1];
    int64_t size[2];
    window_list(call->attrs, "kernel_size", 2, 1, size);
    return (SparseConv){last ? 3 : 1, last ? 1 : 2, size[0],
                        blocks->rank == 3 ? blocks->shape[2] : 1};
}

static const char *refuse_sparse_conv(const Attrs *attrs, const int *ranks) {
    int64_t size[2];
    if (!window_list(attrs, "kernel_size", 2, 1, size) || size[0] != size[1] ||
        (size[0] != 1 && size[0] != 3))
        return "kernel_size is [1, 1] or [3, 3]";
    return ranks[1] == -1 || ranks[1] == 2 || ranks[1] == 3 ? NULL
                                                            : "`sparse_data` has 2 or 3 axes";
}

static bool measure_sparse_conv(const OpCall *call, OutSpec *out) {
    SparseConv v = read_sparse_conv(call);
    int64_t n = call->in[3]->shape[0];
    if (n < 1 || v.width < 1) {
        shape_error(call, DIAG_R0318,
                    n < 1 ? "`sparse_indptr` has no elements" : "the blocks are empty");
        return false;
    }
    out[0].shape[v.channel] = size_multiply(n - 1, call->in[1]->shape[1]);
    return true;
}

/* The domain is (n, h, w, the blocks, r, k): what each element of the weight adds to each place of its channel. */
static bool lower_sparse_conv(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    SparseConv v = read_sparse_conv(call);
    Sparse m;
    int64_t places = v.window * v.window, c = x->shape[v.channel];
    if (!read_sparse(call, 1, size_multiply(places, c) / v.width, &m))
        return false;
    Tensor *sums = plan_sums(plan, out[0], NULL);
    if (c == 0)
        return plan_round(plan, out[0], sums), true;
    bool last = v.channel == 3;
    int64_t height = m.values->shape[1], channel_step = sums->strides[v.channel];
    int64_t extents[] = {x->shape[0],        x->shape[v.side], x->shape[v.side + 1],
                         count_elements(&m), height,           v.width};
    int64_t from[RECIPE_MAX_AXES] = {x->strides[0], x->strides[v.side], x->strides[v.side + 1]};
    int64_t to[RECIPE_MAX_AXES] = {sums->strides[0], sums->strides[v.side],
                                   sums->strides[v.side + 1], 0, channel_step};
    int64_t of_weight[RECIPE_MAX_AXES] = {0,
                                          0,
                                          0,
                                          m.values->strides[0],
                                          m.values->strides[1],
                                          m.values->rank == 3 ? m.values->strides[2] : 0};
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, 6, extents);
    step_combine(&s, COMBINE_SUM, sums->dtype);
    ScalarBuilder *b = &s.body;
    Sc row = load_along(&s, plan_rows(plan, &m), 3);
    Sc column = sc_add(b, times(&s, load_along(&s, m.columns, 3), v.width), sc_iota(b, 5));
    Sc by = step_iparam(&s, b, DT_I64, last ? c : places), window = sc_i64(b, v.window);
    Sc place = last ? sc_div(b, column, by) : sc_rem(b, column, by);
    Sc offset = times(&s, last ? sc_rem(b, column, by) : sc_div(b, column, by),
                      x->strides[v.channel]);
    Sc moves[] = {sc_div(b, place, window), sc_rem(b, place, window)}, inside = 0;
    for (int j = 0; j < 2; j++) {
        Sc move = sc_sub(b, moves[j], sc_i64(b, v.window / 2));
        Sc at = sc_add(b, sc_iota(b, 1 + j), move);
        Sc within = sc_in_range(b, at, step_iparam(&s, b, DT_I64, x->shape[v.side + j]));
        inside = j ? sc_and(b, inside, within) : within;
        offset = sc_add(b, offset, times(&s, move, x->strides[v.side + j]));
    }
    Sc read = sc_load_if(b, step_in_strided(&s, x, from, 0), x->dtype, offset, inside, 0);
    Sc weight = sc_load(b, step_in_strided(&s, m.values, of_weight, 0), x->dtype);
    step_result(&s, sc_mul(b, read, weight));
    step_result(&s, times(&s, row, size_multiply(height, channel_step)));
    step_out_strided(&s, sums, to, 0);
    step_end(&s);
    plan_round(plan, out[0], sums);
    return true;
}

static int form_of_channels(const Attrs *attrs) { return attrs_text(attrs, "layout")[1] == 'C'; }

static const AttrSpec sparse_conv_attrs[] = {
    {"layout", AT_STRING, "\"NHWC\"", "what data's axes are"},
    {"kernel_size", AT_INTS, "[1, 1]", "the sides of the window, [1, 1] or [3, 3]"},
};
SIGNATURE_OP(
    nn_sparse_conv2d, "SparseConv2D", "nn.sparse_conv2d",
    "dense_data, sparse_data, sparse_indices, sparse_indptr", 4,
    (.text = "num(n, h, w, c), =0(z, r, ...), int(z), =2(p) -> =0(n, h, w, ?)|"
             "num(n, c, h, w), =0(z, r, ...), int(z), =2(p) -> =0(n, ?, h, w)",
     .refuse = refuse_sparse_conv, .measure = measure_sparse_conv, .form = form_of_channels),
    .attrs = sparse_conv_attrs, .nattrs = 2, .choices = "layout: NHWC NCHW", .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE, .lower = lower_sparse_conv, .lower_reads = true,
    .doc =
        "A convolution of dense_data (n, h, w, c), with zeros around, by a sparse weight: a matrix "
        "of\n"
        "blocks (r, k), or (r,) of one column, given by its blocks, their columns of blocks, and\n"
        "where each row of blocks begins. Its rows are the output channels; its columns are\n"
        "(i, j, c) for NHWC and (c, i, j) for NCHW.",
    .example = "nn.sparse_conv2d([[[[1.0, 2.0]]]], [[3.0], [4.0]], [1, 0], [0, 1, 2])",
    .example_result = "[[[[6.0, 4.0]]]] : Tensor[(1, 1, 1, 2), float32]",
    .see_also = "nn.conv2d, nn.sparse_dense")

/* ---- nn.sparse_add, nn.sparse_transpose ------------------------------------------------------- */

static bool measure_starts(const OpCall *call, OutSpec *out) {
    int64_t rows = call->in[0]->shape[0], n = call->in[3]->shape[0];
    (void)out;
    if (n == rows + 1)
        return true;
    shape_error(call, DIAG_R0316, "%lld rows begin at %lld places, not %lld", (long long)rows,
                (long long)n, (long long)rows + 1);
    return false;
}

static bool lower_sparse_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    Sparse m;
    if (!read_sparse(call, 1, x->shape[1], &m))
        return false;
    Tensor *sums = plan_sums(plan, out[0], x);
    int64_t n = count_elements(&m), none[RECIPE_MAX_AXES] = {0};
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, 1, &n);
    step_combine(&s, COMBINE_SUM, sums->dtype);
    ScalarBuilder *b = &s.body;
    Sc row = load_along(&s, plan_rows(plan, &m), 0), column = load_along(&s, m.columns, 0);
    int64_t along[RECIPE_MAX_AXES] = {m.values->strides[0]};
    step_result(&s, sc_load(b, step_in_strided(&s, m.values, along, 0), x->dtype));
    step_result(&s,
                sc_add(b, times(&s, row, sums->strides[0]), times(&s, column, sums->strides[1])));
    step_out_strided(&s, sums, none, 0);
    step_end(&s);
    plan_round(plan, out[0], sums);
    return true;
}

SIGNATURE_OP(
    nn_sparse_add, "SparseAdd", "nn.sparse_add",
    "dense_data, sparse_data, sparse_indices, sparse_indptr", 4,
    (.text = "num(m, k), =0(z), int(z), =2(p) -> =0(m, k)", .measure = measure_starts),
    .dtypes = DTS_NUM, .pattern = OP_OPAQUE, .lower = lower_sparse_add, .lower_reads = true,
    .doc = "dense_data (m, k) plus a sparse matrix of the same sizes, given by its elements,\n"
           "their columns, and where each row begins among them.",
    .example = "nn.sparse_add([[1.0, 2.0], [0.0, 0.0]], [3.0], [1], [0, 1, 1])",
    .example_result = "[[1.0, 5.0],\n [0.0, 0.0]] : Tensor[(2, 2), float32]",
    .see_also = "nn.sparse_dense")

/* The elements sorted by their columns, those of one column in the order of the rows: counted, then put in place. */
static bool eval_sparse_transpose(const OpCall *call, Tensor *const *out) {
    Sparse m;
    int64_t n = call->in[0]->shape[0], size = call->in[2]->shape[0] - 1;
    if (!read_sparse(call, 0, size, &m))
        return false;
    size_t width = dtype_size(m.values->dtype);
    int64_t inside = count_elements(&m), next = 0;
    int64_t *begins = mem_bytes(sizeof *begins * (size_t)(size > 0 ? size : 1));
    memset(begins, 0, sizeof *begins * (size_t)(size > 0 ? size : 1));
    for (int64_t i = 0; i < inside; i++)
        begins[index_at(m.columns, i)]++;
    for (int64_t column = 0; column <= size; column++) {
        elem_set_int(at2(out[2], column, 0), out[2]->dtype, next);
        if (column == size)
            break;
        int64_t of_column = begins[column];
        begins[column] = next;
        next += of_column;
    }
    for (int64_t row = 0; row < size && !op_interrupted(call); row++)
        for (int64_t i = index_at(m.starts, row); i < index_at(m.starts, row + 1); i++) {
            int64_t to = begins[index_at(m.columns, i)]++;
            memcpy(at2(out[0], to, 0), at2(m.values, i, 0), width);
            elem_set_int(at2(out[1], to, 0), out[1]->dtype, row);
        }
    for (int64_t i = inside; i < n; i++) { /* elements behind the last row stay where they are */
        memcpy(at2(out[0], i, 0), at2(m.values, i, 0), width);
        elem_set_int(at2(out[1], i, 0), out[1]->dtype, index_at(m.columns, i));
    }
    return true;
}

SIGNATURE_OP(nn_sparse_transpose, "SparseTranspose", "nn.sparse_transpose",
             "sparse_data, sparse_indices, sparse_indptr", 3,
             (.text = "all(z), int(z), =1(p) -> =0(z), =1(z), =1(p)"), .dtypes = DTS_ALL,
             .tuple = true, .pattern = OP_TUPLE, .eval = eval_sparse_transpose,
             .reference_only = "it sorts elements by their columns",
             .doc =
                 "The transpose of a square sparse matrix: its elements, their columns, and where\n"
                 "each row begins among them.",
             .example = "nn.sparse_transpose([5, 6], [1, 1], [0, 1, 2])",
             .example_result = "([5, 6], [0, 1], [0, 0, 2]) : "
                               "(Tensor[(2,), int32], Tensor[(2,), int32], Tensor[(3,), int32])",
             .see_also = "nn.sparse_dense, transpose")

/* ---- sparse_reshape, sparse_fill_empty_rows --------------------------------------------------- */

/* How many elements a tensor has whose sizes are the elements of a vector; a -1 among them is left out, and where it
 * stands goes into *open (-1: there is none). False after a report. */
static bool count_sizes(const OpCall *call, int arg, int64_t *count, int64_t *open) {
    const Tensor *t = call->in[arg];
    *count = 1;
    *open = -1;
    for (int64_t i = 0; i < t->shape[0]; i++) {
        int64_t n = index_at(t, i);
        if (n >= 0) {
            *count = size_multiply(*count, n);
        } else if (arg == 2 && n == -1 && *open < 0) {
            *open = i;
        } else {
            shape_error(call, DIAG_R0613, "`%s` has the size %lld", shape_arg_name(call, arg),
                        (long long)n);
            return false;
        }
    }
    return true;
}

/* sizes[] becomes what new_shape says, its -1 the size that is left; false after a report. */
static bool resolve_sizes(const OpCall *call, int64_t *sizes) {
    const Tensor *to = call->in[2];
    int64_t have, want, none, open;
    if (!count_sizes(call, 1, &have, &none) || !count_sizes(call, 2, &want, &open))
        return false;
    int64_t left = open < 0 ? 1 : want ? have / want : 0;
    if (size_multiply(want, left) != have) {
        shape_error(call, DIAG_R0613, "%lld elements do not fill the sizes of `new_shape`",
                    (long long)have);
        return false;
    }
    for (int64_t i = 0; i < to->shape[0]; i++)
        sizes[i] = i == open ? left : index_at(to, i);
    return true;
}

static const char *blame_place(const OpCall *call) {
    const Tensor *at = call->in[0];
    for (int64_t row = 0; row < at->shape[0]; row++)
        for (int64_t i = 0; i < at->shape[1]; i++) {
            int64_t place = elem_get_int(at2(at, row, i), at->dtype), n = index_at(call->in[1], i);
            if (place < 0 || place >= n)
                return fmt_text("row %lld names place %lld of %lld", (long long)row,
                                (long long)place, (long long)n);
        }
    return NULL;
}

/* A vector that the plan owns: for each of n sizes how many elements one step along it is. */
static Tensor *plan_step_sizes(Plan *plan, int64_t n, const int64_t *sizes) {
    Tensor *t = plan_temp(plan, DT_I64, 1, &n);
    int64_t *steps = tensor_data(t), step = 1;
    for (int64_t i = n; i-- > 0; step = size_multiply(step, sizes[i]))
        steps[i] = step;
    return t;
}

static Tensor *plan_sizes(Plan *plan, int64_t n, const int64_t *sizes) {
    Tensor *t = plan_temp(plan, DT_I64, 1, &n);
    if (n)
        memcpy(tensor_data(t), sizes, sizeof *sizes * (size_t)n);
    return t;
}

static bool lower_sparse_reshape(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *at = call->in[0];
    int64_t nfrom = call->in[1]->shape[0], nto = call->in[2]->shape[0], rows = at->shape[0];
    int64_t *from = mem_bytes(sizeof *from * (size_t)(nfrom + nto + 1)), *to = from + nfrom;
    if (!resolve_sizes(call, to))
        return false;
    for (int64_t i = 0; i < nfrom; i++)
        from[i] = index_at(call->in[1], i);
    Tensor *sizes = plan_sizes(plan, nto, to), *numbers = plan_temp(plan, DT_I64, 1, &rows);
    plan_copy(plan, out[1], sizes);

    StepBuilder s;
    step_begin(&s, plan, RECIPE_REDUCE, 1, &rows);
    step_reduce_over(&s, 1, &nfrom);
    step_combine(&s, COMBINE_SUM, DT_I64);
    ScalarBuilder *b = &s.body;
    int64_t strides[RECIPE_MAX_AXES] = {at->strides[0], at->strides[1]};
    Sc place = sc_index_load(b, step_in_strided(&s, at, strides, 0), at->dtype);
    Sc n = load_along(&s, plan_sizes(plan, nfrom, from), 1);
    sc_check(b, sc_in_range(b, place, n), KERNEL_INDEX);
    sc_mul(b, place, load_along(&s, plan_step_sizes(plan, nfrom, from), 1));
    step_out(&s, numbers);
    step_end(&s);

    int64_t extents[] = {rows, nto}, along[RECIPE_MAX_AXES] = {1};
    step_begin(&s, plan, RECIPE_MAP, 2, extents);
    b = &s.body;
    Sc one = sc_i64(b, 1);
    Sc number = sc_load(b, step_in_strided(&s, numbers, along, 0), DT_I64);
    Sc step = sc_max(b, load_along(&s, plan_step_sizes(plan, nto, to), 1), one);
    Sc size = sc_max(b, load_along(&s, sizes, 1), one);
    sc_cast(b, sc_rem(b, sc_div(b, number, step), size), out[0]->dtype);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

SIGNATURE_OP(
    sparse_reshape, "sparse_reshape", "sparse_reshape", "sparse_indices, prev_shape, new_shape", 3,
    (.text = "int(n, d), =0(d), =0(e) -> =0(n, e), =0(e)"), .dtypes = DTS_INT, .tuple = true,
    .untried = true, .pattern = OP_OPAQUE, .lower = lower_sparse_reshape, .lower_reads = true,
    .blame_index = blame_place,
    .doc = "The places, one a row, of elements of a tensor of the sizes prev_shape in the same "
           "tensor\n"
           "reshaped to new_shape, and these sizes, of which one may be -1: what is left.",
    .example = "sparse_reshape([[0, 1], [1, 2]], [2, 3], [3, 2])",
    .example_result = "([[0, 1], [2, 1]], [3, 2]) : (Tensor[(2, 2), int32], Tensor[(2,), int32])",
    .see_also = "sparse_fill_empty_rows, sparse_to_dense, reshape")

/* How many elements each row has; NULL after a report. */
static int64_t *count_rows(const OpCall *call, int64_t *rows) {
    const Tensor *at = call->in[0], *sizes = call->in[2], *value = call->in[3];
    if (sizes->shape[0] < 1 || value->count != 1) {
        shape_error(call, DIAG_R0316, "rows are the first of the sizes, and one value fills them");
        return NULL;
    }
    *rows = index_at(sizes, 0);
    if (*rows < 0 || *rows > INT32_MAX) {
        shape_error(call, DIAG_R0316, "`dense_shape` has the size %lld", (long long)*rows);
        return NULL;
    }
    int64_t *counts = mem_bytes(sizeof *counts * (size_t)(*rows + 1));
    memset(counts, 0, sizeof *counts * (size_t)*rows);
    for (int64_t i = 0; i < at->shape[0]; i++) {
        int64_t row = elem_get_int(at2(at, i, 0), at->dtype);
        if (row < 0 || row >= *rows) {
            shape_error(call, DIAG_R0602, "row %lld is not one of %lld", (long long)row,
                        (long long)*rows);
            return NULL;
        }
        counts[row]++;
    }
    return counts;
}

static bool measure_filled(const OpCall *call, OutSpec *out) {
    int64_t rows, *counts = count_rows(call, &rows);
    if (!counts)
        return false;
    out[0].shape[0] = call->in[0]->shape[0];
    for (int64_t i = 0; i < rows; i++)
        out[0].shape[0] += counts[i] == 0;
    out[1].shape[0] = out[0].shape[0];
    out[2].shape[0] = rows;
    return true;
}

static bool eval_filled(const OpCall *call, Tensor *const *out) {
    const Tensor *at = call->in[0], *values = call->in[1];
    int64_t rows, *counts = count_rows(call, &rows), next = 0;
    size_t size = dtype_size(values->dtype);
    if (!counts)
        return false;
    for (int64_t i = 0; i < rows; i++) { /* counts become where rows begin */
        int64_t n = counts[i];
        elem_set_int(at2(out[2], i, 0), DT_BOOL, n == 0);
        if (n == 0) {
            for (int64_t k = 0; k < at->shape[1]; k++)
                elem_set_int(at2(out[0], next, k), DT_I64, k ? 0 : i);
            memcpy(at2(out[1], next, 0), tensor_data(call->in[3]), size);
        }
        counts[i] = next;
        next += n ? n : 1;
    }
    for (int64_t i = 0; i < at->shape[0]; i++) {
        int64_t to = counts[elem_get_int(at2(at, i, 0), at->dtype)]++;
        for (int64_t k = 0; k < at->shape[1]; k++)
            elem_set_int(at2(out[0], to, k), DT_I64, elem_get_int(at2(at, i, k), at->dtype));
        memcpy(at2(out[1], to, 0), at2(values, i, 0), size);
    }
    return true;
}

SIGNATURE_OP(
    sparse_fill_empty_rows, "sparse_fill_empty_rows", "sparse_fill_empty_rows",
    "sparse_indices, sparse_values, dense_shape, default_value", 4,
    (.text = "int(n, d), all(n), =0(d), =1~ -> int64(?, d), =1(?), bool(?)",
     .measure = measure_filled),
    .dtypes = DTS_INT, .shape_mode = SHAPE_OF_DATA, .tuple = true, .pattern = OP_OPAQUE,
    .eval = eval_filled, .reference_only = "it sorts elements by their rows",
    .doc = "The places and values of a sparse tensor, row by row, where each row without any gets\n"
           "default_value in its first place; and which rows these were.",
    .example = "sparse_fill_empty_rows([[0, 1], [2, 0]], [5, 6], [3, 2], 9)",
    .example_result = "([[0, 1], [1, 0], [2, 0]], [5, 9, 6], [False, True, False]) : "
                      "(Tensor[(?, 2), int64], Tensor[(?,), int32], Tensor[(?,), bool])",
    .see_also = "sparse_reshape, sparse_to_dense")
