/* SPDX-License-Identifier: Apache-2.0 */
/* How operator steps run: compiled kernels (jit/jit.h) or their reference evaluation. Kernels are
 * opened on first use; without them (or with --jit=off) everything still runs. */
#ifndef EVAL_LAUNCH_H
#define EVAL_LAUNCH_H

#include "eval/interp.h"
#include "ops/recipe/template.h"

/* From now on steps run as kernels; the library with LLVM is opened by the first of them. threads:
 * 0 as many as cores. cache: kernels are kept on disk. */
void launch_use_jit(Interp *in, int threads, bool cache);

/* Runs the one step of a template on single elements, in the better code at once. False: there is no kernel for it. */
bool launch_element(Interp *in, Template *t, char *const *at);

/* Kernels compiled, loaded from disk, and operators run by reference: lines for `:info session`. */
void launch_print_stats(Interp *in, Str *out);

/* Milliseconds spent so far on compiling kernels and loading them, with LLVM itself. */
double launch_compile_ms(Interp *in);

/* While on, each kernel that runs for the first time is written to `out` as LLVM IR or assembly. */
typedef enum LaunchTrace { LAUNCH_TRACE_NONE, LAUNCH_TRACE_LLVM, LAUNCH_TRACE_ASM } LaunchTrace;
void launch_trace_kernels(Interp *in, LaunchTrace trace, Str *out);

#endif
