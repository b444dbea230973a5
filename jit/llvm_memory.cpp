/* SPDX-License-Identifier: Apache-2.0 */
/* The one file in C++: these handlers have no C interface. Without them a failed `new` ends in abort,
 * since LLVM is built without exceptions. LLVM's state is lost then, and no frame of it may be jumped
 * over, so the program ends with a message and status 1. */
#include "jit/llvm_memory.h"

#include <llvm/Support/ErrorHandling.h>
#include <new>

static void end_new() { emit_out_of_memory(); }

static void end_llvm(void *, const char *, bool) { emit_out_of_memory(); }

/* LLVM's static objects, made when the library is opened, allocate too: this one is made before. */
struct Watch {
    Watch() { std::set_new_handler(end_new); }
};
static Watch watch __attribute__((init_priority(101)));

void llvm_watch_memory(void) {
    llvm::install_bad_alloc_error_handler(end_llvm, nullptr);
}
