/* SPDX-License-Identifier: Apache-2.0 */
/* y = tanh(a * b + c) * a as one would write it by hand: a rational tanh, one pass, compiled with
 * -O3 -march=native. The figure a compiled kernel is held against. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* the build's own level comes after -O3 on the command line */
#endif
#include "bench/peers/fused.h"

void peer_tanh_fused(float *restrict y, const float *restrict a, const float *restrict b,
                     const float *restrict c, size_t n) {
    for (size_t k = 0; k < n; k++) {
        float z = a[k] * b[k] + c[k];
        z = z < -7.9f ? -7.9f : z > 7.9f ? 7.9f : z;
        float w = z * z;
        float p = z * (4.89352455891786e-03f +
                       w * (6.37261928875436e-04f +
                            w * (1.48572235717979e-05f +
                                 w * (5.12229709037114e-08f +
                                      w * (-8.60467152213735e-11f +
                                           w * (2.00018790482477e-13f +
                                                w * -2.76076847742355e-16f))))));
        float d = 4.89352518554385e-03f +
                  w * (2.26843463243900e-03f +
                       w * (1.18534705686654e-04f + w * 1.19825839466702e-06f));
        y[k] = p / d * a[k];
    }
}

void peer_add(float *restrict y, const float *restrict a, const float *restrict b, size_t n) {
    for (size_t k = 0; k < n; k++)
        y[k] = a[k] + b[k];
}

float peer_sum(const float *a, size_t n) {
    float s[64] = {0};
    size_t k = 0;
    for (; k + 64 <= n; k += 64)
        for (int i = 0; i < 64; i++)
            s[i] += a[k + (size_t)i];
    for (; k < n; k++)
        s[0] += a[k];
    for (int i = 1; i < 64; i++)
        s[0] += s[i];
    return s[0];
}
