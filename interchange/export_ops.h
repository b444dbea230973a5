/* SPDX-License-Identifier: Apache-2.0 */
/* What the translators of operators share (export_ops.c, export_shape.c, export_places.c, export_nn.c,
 * export_adjoint.c, export_adjoint_nn.c). */
#ifndef INTERCHANGE_EXPORT_OPS_H
#define INTERCHANGE_EXPORT_OPS_H

#include "interchange/export_impl.h"
#include "ops/table.h"

/* What a call becomes. It refuses what ONNX would take for something else. */
typedef Traced *ExportOp(Export *ex, const ExportCall *c);
ExportOp export_reshape, export_transpose, export_transpose_inverse, export_expand_dims,
    export_squeeze, export_broadcast_to, export_broadcast_to_like, export_reshape_like,
    export_shape_op, export_filled, export_tile, export_joined, export_split, export_strided_slice,
    export_take, export_index_op;
ExportOp export_softmax, export_convolution, export_pool, export_global_pool, export_batch_norm,
    export_layer_norm, export_flatten, export_dropout, export_pad, export_mirror_pad,
    export_instance_norm, export_group_norm, export_lrn, export_blocks,
    export_transposed_convolution, export_adaptive_pool, export_resize, export_upsampling;
ExportOp export_sort, export_topk, export_reverse, export_gather, export_gather_nd, export_scatter,
    export_one_hot, export_trilu, export_repeat, export_arange, export_count;

ExportOp export_strong, export_collapse_sum_like, export_collapse_sum_to, export_expand_like,
    export_group_mean, export_dense_weight, export_matmul_side, export_index_add_op, export_added,
    export_sorted_by, export_pad_sum, export_split_like, export_flatten_axes;
ExportOp export_conv_data, export_conv_weight, export_max_pool_grad, export_avg_pool_grad;

enum { MOST_COUNTED = 1 << 20 }; /* numbers that are written into the model to count by */

Traced *call_refuse(Export *ex, const ExportCall *c,
                    const char *why); /* why: behind the operator's name */
/* The axes that a reduction takes away, counted from the front; false where they are not known. */
bool axes_of_reduction(const Attrs *attrs, int rank, int64_t *out, uint32_t *nout);
/* The pads before each side, then those after, of what TVM writes: one number, one a side, or all. */
bool export_read_pads(const Attrs *attrs, int sides, int64_t *out);
/* Whether all layouts are TVM's defaults for this number of sides, or left out. */
bool export_has_usual_layouts(const Attrs *attrs, int sides);
int64_t axis_from_front(int64_t axis, int rank);
int highest_rank(Traced *const *args, uint32_t n);
/* Whether they are tensors of one dtype. */
bool share_dtype(Traced *const *args, uint32_t n);

/* Nodes that keep the dtype of x. */
Traced *emit_unary(Export *ex, const char *onnx, Traced *x);
Traced *emit_binary(Export *ex, const char *onnx, Traced *x, Traced *y); /* broadcasts */
Traced *emit_unsqueeze(Export *ex, Traced *x, const int64_t *axes, uint32_t n);
Traced *emit_permuted(Export *ex, Traced *x, const int64_t *perm);
Traced *emit_flip(Export *ex, Traced *x); /* the last two axes exchanged */
/* The part of x at one place of an axis, which goes, or at the places that a vector holds. */
Traced *emit_gather(Export *ex, Traced *x, Traced *places, int64_t axis);
Traced *emit_slice(Export *ex, Traced *x, const int64_t *begin, const int64_t *end,
                   const int64_t *axes, const int64_t *steps, uint32_t n);
Traced *emit_expand(Export *ex, Traced *x, Traced *shape, int rank);
Traced *emit_reshape(Export *ex, Traced *x, Traced *shape, int rank);
Traced *emit_shape(Export *ex, Traced *x); /* a vector of int64 */

#endif
