/* SPDX-License-Identifier: Apache-2.0 */
/* What this processor is, without asking LLVM. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "jit/internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

static void detect(JitCpu *c) {
    unsigned a, b, cx, d, b7 = 0, c7 = 0, d7 = 0, model = 0, c1 = 0;
    if (__get_cpuid(1, &a, &b, &cx, &d))
        model = a, c1 = cx;
    if (__get_cpuid_count(7, 0, &a, &b, &cx, &d))
        b7 = b, c7 = cx, d7 = d;
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    c->vector_bytes = avx512 ? 64 : avx2 ? 32 : 16;
    c->registers = avx512 ? 32 : 16;
    c->masks = avx512;
    snprintf(c->id, sizeof c->id, "x86 %08x %08x %08x %08x %08x %d", model, c1, b7, c7, d7,
             c->vector_bytes);
}
#elif defined(__aarch64__)
#include <sys/auxv.h>

static void detect(JitCpu *c) {
    c->vector_bytes = 16;
    c->registers = 32;
    c->masks = false;
    snprintf(c->id, sizeof c->id, "aarch64 %lx %lx", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
}
#else
static void detect(JitCpu *c) {
    c->vector_bytes = 16;
    c->registers = 16;
    c->masks = false;
    snprintf(c->id, sizeof c->id, "other");
}
#endif

const JitCpu *jit_cpu(void) {
    static JitCpu cpu;
    if (!cpu.vector_bytes) {
        JitCpu c = {0};
        long l2 = -1;
#ifdef _SC_LEVEL2_CACHE_SIZE
        l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
        c.l2_bytes = l2 > 0 ? l2 : 1 << 20;
        detect(&c);
        cpu = c;
    }
    return &cpu;
}
