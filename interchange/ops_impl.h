/* SPDX-License-Identifier: Apache-2.0 */
/* The translators of operators, as ops.def names them. */
#ifndef INTERCHANGE_OPS_IMPL_H
#define INTERCHANGE_OPS_IMPL_H

#include "interchange/translator.h"

/* The form with `$0` … as inputs. */
const char *node_fill(Node *n, const char *form);

void onnx_arg_reduce(Node *n);
void onnx_arithmetic(Node *n);
void onnx_batch_normalization(Node *n);
void onnx_bit_shift(Node *n);
void onnx_cast(Node *n);
void onnx_cast_like(Node *n);
void onnx_celu(Node *n);
void onnx_clip(Node *n);
void onnx_compare(Node *n);
void onnx_compress(Node *n);
void onnx_concat(Node *n);
void onnx_concat_from_sequence(Node *n);
void onnx_constant(Node *n);
void onnx_constant_of_shape(Node *n);
void onnx_conv(Node *n);
void onnx_conv_transpose(Node *n);
void onnx_cumulate(Node *n);
void onnx_depth_to_space(Node *n);
void onnx_dequantize(Node *n);
void onnx_dropout(Node *n);
void onnx_dynamic_quantize(Node *n);
void onnx_einsum(Node *n);
void onnx_element(Node *n);
void onnx_elu(Node *n);
void onnx_expand(Node *n);
void onnx_eye_like(Node *n);
void onnx_flatten(Node *n);
void onnx_gather(Node *n);
void onnx_gather_elements(Node *n);
void onnx_gather_nd(Node *n);
void onnx_gelu(Node *n);
void onnx_gemm(Node *n);
void onnx_global_pool(Node *n);
void onnx_grid_sample(Node *n);
void onnx_group_normalization(Node *n);
void onnx_gru(Node *n);
void onnx_hard_sigmoid(Node *n);
void onnx_hardmax(Node *n);
void onnx_identity(Node *n);
void onnx_if(Node *n);
void onnx_instance_normalization(Node *n);
void onnx_is_inf(Node *n);
void onnx_layer_normalization(Node *n);
void onnx_leaky_relu(Node *n);
void onnx_logic(Node *n);
void onnx_loop(Node *n);
void onnx_lp_normalization(Node *n);
void onnx_lrn(Node *n);
void onnx_lstm(Node *n);
void onnx_matmul(Node *n);
void onnx_matmul_integer(Node *n);
void onnx_mean_variance(Node *n);
void onnx_mod(Node *n);
void onnx_nll_loss(Node *n);
void onnx_non_zero(Node *n);
void onnx_one_hot(Node *n);
void onnx_pad(Node *n);
void onnx_pool(Node *n);
void onnx_pow(Node *n);
void onnx_qlinear_matmul(Node *n);
void onnx_quantize(Node *n);
void onnx_range(Node *n);
void onnx_reduce(Node *n);
void onnx_reshape(Node *n);
void onnx_resize(Node *n);
void onnx_reverse_sequence(Node *n);
void onnx_rms_normalization(Node *n);
void onnx_rnn(Node *n);
void onnx_scan(Node *n);
void onnx_scatter_elements(Node *n);
void onnx_scatter_nd(Node *n);
void onnx_selu(Node *n);
void onnx_sequence_at(Node *n);
void onnx_sequence_construct(Node *n);
void onnx_sequence_empty(Node *n);
void onnx_sequence_erase(Node *n);
void onnx_sequence_insert(Node *n);
void onnx_sequence_length(Node *n);
void onnx_shape(Node *n);
void onnx_shrink(Node *n);
void onnx_size(Node *n);
void onnx_slice(Node *n);
void onnx_softmax(Node *n);
void onnx_softmax_loss(Node *n);
void onnx_space_to_depth(Node *n);
void onnx_split(Node *n);
void onnx_split_to_sequence(Node *n);
void onnx_squeeze(Node *n);
void onnx_swish(Node *n);
void onnx_thresholded_relu(Node *n);
void onnx_tile(Node *n);
void onnx_topk(Node *n);
void onnx_transpose(Node *n);
void onnx_trilu(Node *n);
void onnx_unique(Node *n);
void onnx_unsqueeze(Node *n);
void onnx_variadic(Node *n);
void onnx_where(Node *n);

#endif
