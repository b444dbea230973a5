/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes for x86-64 processors with AVX2 and fused multiply-add. */
#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "ops/recipe/lanes.h"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#endif
#define LANE_TABLE lanes_fma
#include "ops/recipe/lanes_impl.h"
#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute pop
#endif
