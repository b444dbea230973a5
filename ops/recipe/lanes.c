/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes for any processor; and the choice. */
#define LANE_TABLE lanes_plain
#include "ops/recipe/lanes_impl.h"

const LaneTable *lanes_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &lanes_fma;
#endif
    return &lanes_plain;
}
