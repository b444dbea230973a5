/* SPDX-License-Identifier: Apache-2.0 */
/* What the translators of operators share (export_ops.c, export_shape.c, export_nn.c). */
#ifndef INTERCHANGE_EXPORT_OPS_H
#define INTERCHANGE_EXPORT_OPS_H

#include "interchange/export_impl.h"
#include "ops/table.h"

/* What a call becomes. It refuses what ONNX would take for something else. */
typedef Traced *ExportOp(Export *ex, const ExportCall *c);
ExportOp export_reshape, export_transpose, export_expand_dims, export_squeeze, export_broadcast_to,
    export_broadcast_to_like, export_reshape_like, export_shape_op, export_filled, export_tile,
    export_joined, export_split, export_strided_slice, export_take, export_index_op;
ExportOp export_softmax, export_convolution, export_pool, export_global_pool, export_batch_norm,
    export_layer_norm, export_flatten, export_dropout, export_pad;

Traced *call_refuse(Export *ex, const ExportCall *c,
                    const char *why); /* why: behind the operator's name */
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
Traced *emit_expand(Export *ex, Traced *x, Traced *shape, int rank);
Traced *emit_shape(Export *ex, Traced *x); /* a vector of int64 */

#endif
