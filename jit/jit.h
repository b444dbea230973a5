/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels. jit_run takes the place of recipe_run: the same bits, by machine code made at
 * first use. All of LLVM lives in librelayjit.so, opened when a kernel has to be compiled that is
 * not in the cache on disk; a kernel from there runs without it.
 *
 *     Jit *jit = jit_open(&(JitOptions){.threads = 2}, &why);   // NULL: say why, use recipe_run
 *     int32_t status = jit_run(jit, recipe, &args);
 *
 * A Jit belongs to one session and is called from one thread at a time; it starts threads of its
 * own for large launches. It holds no collected memory: tensors stay alive through the caller. */
#ifndef JIT_JIT_H
#define JIT_JIT_H

#include "base/str.h"
#include "ops/recipe/recipe.h"
#include "tensor/packed.h"

typedef struct Jit Jit;

typedef struct JitOptions {
    const char *library; /* librelayjit.so; NULL: $RELAY_JIT, beside the program, …, pkglibdir */
    const char *cache_dir; /* NULL: $XDG_CACHE_HOME/relay or ~/.cache/relay; "": memory only */
    int threads;           /* 0: as many as processors */
    int vector_bytes;      /* 16, 32, 64; 0: the processor's (tests use less) */
    bool hot;              /* the best code at once, not only for what runs often */
    bool scalar;           /* everything by the plainest loops (tests) */
} JitOptions;

/* NULL when there is no library; *why_not says where it was looked for (collected text). */
Jit *jit_open(const JitOptions *options, const char **why_not);
void jit_close(Jit *jit); /* NULL does nothing */

/* Runs a launch, compiled if at all possible, else by recipe_run; args->thread and nthreads are
 * not looked at. Returns a kernel status. */
int32_t jit_run(Jit *jit, const Recipe *r, const KernelArgs *args);
/* The same as a StepRunner of ops/recipe/plan.h: ctx is the Jit. */
int32_t jit_run_step(void *jit, const Recipe *r, const KernelArgs *args);

/* A launch made ready for arguments of one layout: only the elements' addresses are left to give. `r` and
 * args are as for jit_run. NULL where such launches are large enough for threads or for packing, or not
 * compiled: jit_run is for them. Collected; it lives no longer than the Jit. */
typedef struct JitLaunch JitLaunch;
JitLaunch *jit_launch_new(Jit *jit, const Recipe *r, const KernelArgs *args);
/* The recipe will run so often that the next launch made is to be the better code at once. */
void jit_expect_often(Jit *jit, const Recipe *r);
/* Whether the recipe has by now run often enough for better code: then make another. */
bool jit_launch_is_outgrown(const JitLaunch *launch);
/* The elements of operand p, inputs first, begin offset[p] bytes after at[slot[p]]. Returns a kernel status. */
int32_t jit_launch_run(Jit *jit, JitLaunch *launch, char *const *at, const uint32_t *slot,
                       const int64_t *offset);

/* The operand of a product that launches of one layout would rather read in panels, and how these lie: the key,
 * but for its offset, and the bytes of all panels. See Note [Packed operands] in jit/launch.c. */
typedef struct JitPacking {
    int operand;
    size_t bytes;
    PackedKey key;
} JitPacking;
/* False: there is none. */
bool jit_find_packing(Jit *jit, const Recipe *r, const KernelArgs *args, JitPacking *packing);
/* Copies the operand to its panels. Returns a kernel status. */
int32_t jit_pack(Jit *jit, const Recipe *r, const KernelArgs *args, void *panels);
/* As jit_run, the operand read from its panels. */
int32_t jit_run_packed(Jit *jit, const Recipe *r, const KernelArgs *args, const void *panels);

typedef struct JitStats {
    uint64_t compiled;  /* kernels made by LLVM */
    uint64_t loaded;    /* kernels from the cache on disk */
    uint64_t launches;  /* run compiled */
    uint64_t reference; /* run by recipe_run for want of a kernel */
    double seconds;     /* spent compiling and loading */
} JitStats;
JitStats jit_stats(const Jit *jit);
/* Why the last launch of this recipe was run by the reference; NULL when it was compiled. */
const char *jit_why_reference(Jit *jit, const Recipe *r);
/* "LLVM 19.1.7, sapphirerapids, 512-bit vectors, 2 threads, cache /home/…"; opens the library. */
void jit_describe(Jit *jit, Str *out);

/* What a launch of r with these args would run: LLVM's IR or assembly. False: *why. */
typedef enum JitText { JIT_TEXT_IR, JIT_TEXT_ASSEMBLY } JitText;
bool jit_text(Jit *jit, const Recipe *r, const KernelArgs *args, JitText what, Str *out,
              const char **why);

#endif
