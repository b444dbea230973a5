/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices in rows: the elements that are there, their columns, and where each row begins among them
 * (indptr, one more than there are rows). How long a row is stands in the data, so there are no recipes. */
#include "base/mem.h"
#include "ops/relate/signature.h"

#include <string.h>

#define ROWS "where rows begin stands in the data"

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

/* to += x * y, in float64 or wrapping 64 bits; y NULL: 1. */
static void add_product(void *to, DType t, const void *x, const void *y) {
    if (dtype_is_float(t))
        elem_set_float(
            to, t, elem_get_float(to, t) + elem_get_float(x, t) * (y ? elem_get_float(y, t) : 1));
    else
        elem_set_int(
            to, t,
            (int64_t)((uint64_t)elem_get_int(to, t) +
                      (uint64_t)elem_get_int(x, t) * (y ? (uint64_t)elem_get_int(y, t) : 1)));
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

static bool eval_sparse_dense(const OpCall *call, Tensor *const *out) {
    const Tensor *x = call->in[0];
    Sparse m;
    memset(tensor_data(out[0]), 0, (size_t)out[0]->count * dtype_size(out[0]->dtype));
    if (!read_sparse(call, 1, x->shape[1], &m))
        return false;
    for (int64_t row = 0; row < m.rows && !op_interrupted(call); row++)
        for (int64_t i = index_at(m.starts, row); i < index_at(m.starts, row + 1); i++)
            for (int64_t k = 0; k < x->shape[0]; k++)
                add_product(is_left(call->attrs) ? at2(out[0], row, k) : at2(out[0], k, row),
                            x->dtype, at2(x, k, index_at(m.columns, i)), at2(m.values, i, 0));
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
                 .eval = eval_sparse_dense, .reference_only = ROWS, .doc = words,                  \
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

static bool eval_sparse_add(const OpCall *call, Tensor *const *out) {
    const Tensor *x = call->in[0];
    Sparse m;
    if (!read_sparse(call, 1, x->shape[1], &m))
        return false;
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t k = 0; k < x->shape[1]; k++)
            memcpy(at2(out[0], i, k), at2(x, i, k), dtype_size(x->dtype));
    for (int64_t row = 0; row < m.rows && !op_interrupted(call); row++)
        for (int64_t i = index_at(m.starts, row); i < index_at(m.starts, row + 1); i++)
            add_product(at2(out[0], row, index_at(m.columns, i)), x->dtype, at2(m.values, i, 0),
                        NULL);
    return true;
}

SIGNATURE_OP(
    nn_sparse_add, "SparseAdd", "nn.sparse_add",
    "dense_data, sparse_data, sparse_indices, sparse_indptr", 4,
    (.text = "num(m, k), =0(z), int(z), =2(p) -> =0(m, k)", .measure = measure_starts),
    .dtypes = DTS_NUM, .pattern = OP_OPAQUE, .eval = eval_sparse_add, .reference_only = ROWS,
    .doc = "dense_data (m, k) plus a sparse matrix of the same sizes, given by its elements,\n"
           "their columns, and where each row begins among them.",
    .example = "nn.sparse_add([[1.0, 2.0], [0.0, 0.0]], [3.0], [1], [0, 1, 1])",
    .example_result = "[[1.0, 5.0],\n [0.0, 0.0]] : Tensor[(2, 2), float32]",
    .see_also = "nn.sparse_dense")

static bool eval_sparse_transpose(const OpCall *call, Tensor *const *out) {
    Sparse m;
    int64_t n = call->in[0]->shape[0], size = call->in[2]->shape[0] - 1, at = 0;
    if (!read_sparse(call, 0, size, &m))
        return false;
    for (int64_t column = 0; column < size && !op_interrupted(call); column++) {
        elem_set_int(at2(out[2], column, 0), out[2]->dtype, at);
        for (int64_t row = 0; row < size; row++)
            for (int64_t i = index_at(m.starts, row); i < index_at(m.starts, row + 1); i++) {
                if (index_at(m.columns, i) != column || at == n)
                    continue;
                memcpy(at2(out[0], at, 0), at2(m.values, i, 0), dtype_size(m.values->dtype));
                elem_set_int(at2(out[1], at++, 0), out[1]->dtype, row);
            }
    }
    if (size >= 0)
        elem_set_int(at2(out[2], size, 0), out[2]->dtype, at);
    for (; at < n; at++) { /* elements behind the last row stay where they are */
        memcpy(at2(out[0], at, 0), at2(m.values, at, 0), dtype_size(m.values->dtype));
        elem_set_int(at2(out[1], at, 0), out[1]->dtype, index_at(m.columns, at));
    }
    return true;
}

SIGNATURE_OP(
    nn_sparse_transpose, "SparseTranspose", "nn.sparse_transpose",
    "sparse_data, sparse_indices, sparse_indptr", 3,
    (.text = "all(z), int(z), =1(p) -> =0(z), =1(z), =1(p)"), .dtypes = DTS_ALL, .tuple = true,
    .pattern = OP_TUPLE, .eval = eval_sparse_transpose, .reference_only = ROWS,
    .doc = "The transpose of a square sparse matrix: its elements, their columns, and where\n"
           "each row begins among them.",
    .example = "nn.sparse_transpose([5, 6], [1, 1], [0, 1, 2])",
    .example_result = "([5, 6], [0, 1], [0, 0, 2]) : "
                      "(Tensor[(2,), int32], Tensor[(2,), int32], Tensor[(3,), int32])",
    .see_also = "nn.sparse_dense, transpose")
