/* SPDX-License-Identifier: Apache-2.0 */
/* librelayjit.so: the one exported symbol and the way from IR to an object file. LLVM is linked
 * statically and hidden; what this file keeps in statics belongs to LLVM alone, no pointer of the
 * collector's is here. No IR passes run: the IR is written as it should be. */
#include "jit/emit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    bool ready;
    LLVMTargetRef target;
    char *triple, *cpu, *features;
    LLVMTargetMachineRef machine[4]; /* by code generator level */
} state;

static JitOutOfMemory end_program; /* NULL while the library is being opened */

void emit_out_of_memory(void) {
    if (end_program)
        end_program("the compiler of kernels");
    static const char text[] = "error[R0606]: out of memory, in the compiler of kernels\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(1);
}

static bool target_init(char why[256]) {
    if (state.ready)
        return true;
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    static const char *const options[] = {"relay", "-disable-lsr"};
    LLVMParseCommandLineOptions(2, options, "");
    /* these are copies, and NULL where there is no memory for one */
    state.triple = LLVMGetDefaultTargetTriple();
    state.cpu = LLVMGetHostCPUName();
    state.features = LLVMGetHostCPUFeatures();
    if (!state.triple || !state.cpu || !state.features)
        emit_out_of_memory();
    char *message = NULL;
    if (LLVMGetTargetFromTriple(state.triple, &state.target, &message)) {
        snprintf(why, 256, "LLVM has no target for %s: %s", state.triple, message ? message : "");
        LLVMDisposeMessage(message);
        return false;
    }
    state.ready = true;
    return true;
}

static LLVMTargetMachineRef machine(int level) {
    static const LLVMCodeGenOptLevel levels[4] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess,
                                                  LLVMCodeGenLevelDefault,
                                                  LLVMCodeGenLevelAggressive};
    if (!state.machine[level])
        state.machine[level] = LLVMCreateTargetMachine(state.target, state.triple, state.cpu,
                                                       state.features, levels[level], LLVMRelocPIC,
                                                       LLVMCodeModelSmall);
    return state.machine[level];
}

static void emit_form(Emit *e) {
    switch ((KernelForm)e->sig->form) {
    case FORM_SCALAR: emit_scalar_form(e); break;
    case FORM_MAP: emit_map(e); break;
    case FORM_INNER: emit_reduce_inner(e); break;
    case FORM_OUTER: emit_reduce_outer(e); break;
    case FORM_FEW: emit_few(e); break;
    case FORM_TILE:
    case FORM_TURN: emit_tile(e); break;
    case FORM_SWAP: emit_swap(e); break;
    case FORM_LANES: emit_scan_lanes(e); break;
    case FORM_ROWS: emit_rows(e); break;
    }
}

static char *copy(const char *text, size_t n) {
    char *p = malloc(n + 1);
    if (!p)
        emit_out_of_memory();
    memcpy(p, text, n);
    p[n] = 0;
    return p;
}

static bool compile(const Recipe *r, const KernelSig *sig, JitFormat format, char **bytes,
                    size_t *n, char why[256]) {
    if (!target_init(why))
        return false;
    if (r->nbody > MAX_BODY || r->nepilogue > MAX_BODY) {
        snprintf(why, 256, "more than %d instructions", MAX_BODY);
        return false;
    }
    Emit emit = {.r = r, .sig = sig, .why = why}, *e = &emit;
    LLVMTargetMachineRef tm = machine(sig->level & 3);
    e->ctx = LLVMContextCreate();
    LLVMContextSetDiscardValueNames(e->ctx, 1);
    e->mod = LLVMModuleCreateWithNameInContext("relay", e->ctx);
    LLVMSetTarget(e->mod, state.triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(tm);
    LLVMSetModuleDataLayout(e->mod, layout);
    LLVMDisposeTargetData(layout);
    e->b = LLVMCreateBuilderInContext(e->ctx);
    emit_start(e);
    emit_form(e);
    LLVMBuildRet(e->b, LLVMConstInt(e->i32, KERNEL_DONE, 0));

    char *message = NULL;
    bool ok = !e->failed;
#ifdef RLY_DEBUG
    if (ok && LLVMVerifyModule(e->mod, LLVMReturnStatusAction, &message)) {
        fprintf(stderr, "kernel does not verify: %s\n", message);
        abort();
    }
    LLVMDisposeMessage(message);
    message = NULL;
#endif
    if (ok && format == JIT_IR) {
        char *text = LLVMPrintModuleToString(e->mod);
        *n = strlen(text);
        *bytes = copy(text, *n);
        LLVMDisposeMessage(text);
    } else if (ok) {
        LLVMMemoryBufferRef buffer = NULL;
        LLVMCodeGenFileType type = format == JIT_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
        if (LLVMTargetMachineEmitToMemoryBuffer(tm, e->mod, type, &message, &buffer)) {
            snprintf(why, 256, "LLVM: %s", message ? message : "no code");
            LLVMDisposeMessage(message);
            ok = false;
        } else {
            *n = LLVMGetBufferSize(buffer);
            *bytes = copy(LLVMGetBufferStart(buffer), *n);
            LLVMDisposeMemoryBuffer(buffer);
        }
    }
    emit_free_all(e);
    LLVMDisposeBuilder(e->b);
    LLVMDisposeModule(e->mod);
    LLVMContextDispose(e->ctx);
    return ok;
}

const JitApi *relay_jit_open(const JitHost *host) {
    static JitApi api;
    char why[256];
    if (host->abi != JIT_ABI)
        return NULL;
    end_program = host->out_of_memory;
    llvm_watch_memory();
    if (!target_init(why))
        return NULL;
    static char version[24];
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    snprintf(version, sizeof version, "%u.%u.%u", major, minor, patch);
    api = (JitApi){.abi = JIT_ABI, .llvm_version = version, .cpu = state.cpu, .compile = compile};
    return &api;
}
