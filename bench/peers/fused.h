/* SPDX-License-Identifier: Apache-2.0 */
/* Loops written by hand in C, peers of compiled kernels. */
#ifndef BENCH_PEERS_FUSED_H
#define BENCH_PEERS_FUSED_H

#include <stddef.h>

void peer_tanh_fused(float *restrict y, const float *restrict a, const float *restrict b,
                     const float *restrict c, size_t n);
void peer_add(float *restrict y, const float *restrict a, const float *restrict b, size_t n);
float peer_sum(const float *a, size_t n);

#endif
