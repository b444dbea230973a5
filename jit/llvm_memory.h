/* SPDX-License-Identifier: Apache-2.0 */
/* LLVM without memory: its own allocations and those of C++ end in emit_out_of_memory. */
#ifndef JIT_LLVM_MEMORY_H
#define JIT_LLVM_MEMORY_H

#ifdef __cplusplus
extern "C" {
#endif

void llvm_watch_memory(void);
__attribute__((noreturn)) void emit_out_of_memory(void);

#ifdef __cplusplus
}
#endif

#endif
