/* SPDX-License-Identifier: Apache-2.0 */
/* What the program and librelayjit.so share: the one symbol, the signature a kernel is compiled
 * for, and the memory it is launched with.
 *
 * The program decides how a launch runs (axes merged and ordered, form, tile); the library turns
 * (recipe, signature) into an object file and knows nothing of sizes, threads or caches. Neither
 * keeps a pointer of the other's: objects are malloc'd bytes, loaded by jit/load.c. */
#ifndef JIT_ABI_H
#define JIT_ABI_H

#include "ops/recipe/recipe.h"

enum {
    JIT_ABI = 16,      /* changes with anything in this file and with generated code */
    JIT_MAX_PTRS = 64, /* inputs, then outputs */
    JIT_NO_AXIS = 0xff,
    JIT_POLL = 4096, /* elements between looks at the interrupt flag */
    JIT_FEW = 16,    /* most elements that FORM_FEW writes out */
    JIT_FEW_AXES = 4,
};

/* How the loops of a kernel are laid out. The bits computed are those of the recipe in each. */
typedef enum KernelForm {
    FORM_SCALAR, /* one element at a time, any kind of recipe and any extents, 0 included */
    FORM_MAP,    /* lanes along the last parallel axis */
    FORM_INNER,  /* REDUCE: sixteen lanes along the last reduction axis */
    FORM_OUTER,  /* REDUCE: lanes along the last parallel axis, accumulators in memory */
    FORM_TILE,   /* PRODUCT: rows (the last but one parallel axis) by cols vectors (the last) */
    FORM_TURN,   /* PRODUCT: as TILE, the vector operand is contiguous along the last reduction
                    axis and turned in registers, a square block at a time */
    FORM_SWAP,   /* MAP: operands contiguous along the last or the last but one parallel axis;
                    square blocks of the latter are turned in registers */
    FORM_LANES,  /* SCAN: lanes along the last but one parallel axis */
    FORM_FEW,  /* MAP, REDUCE: lanes along the last parallel axis; of a MAP the parallel axis before
                    it, of a REDUCE all reduction axes are short, and written out */
    FORM_ROWS, /* ROWS: on each row, lanes along it, a REDUCE as INNER and a MAP as MAP */
} KernelForm;

enum {
    SIG_MASKS = 1, /* the CPU has masked loads and stores of any type */
    SIG_WHOLE = 2, /* TILE, TURN: the lanes' extent is a multiple of the tile's */
    SIG_EDGE = 4,  /* … is less than one tile */
    SIG_CUT =
        8, /* TILE: the reduction is done in parts of JIT_CUT steps, the sums kept in the output */
    SIG_UNROLL = 16, /* its loop takes JIT_UNROLL steps (TILE) or vectors (MAP) a turn */
    SIG_BESIDE = 32, /* MAP: each output lies one element behind the one before it */
};
enum { JIT_CUT = 64, JIT_CUT_ROW = 16, JIT_UNROLL = 4 }; /* JIT_CUT_ROW: of tiles of one row */

/* What a kernel is compiled for beside its recipe. Loop axes are the recipe's, merged and permuted;
 * reduction axes keep their order. */
typedef struct KernelSig {
    uint8_t form, flags;
    uint8_t vbytes;            /* of a vector: 16, 32, 64 */
    uint8_t level;             /* of LLVM's code generator: 0 … 3 */
    uint8_t rows, cols, lanes; /* TILE, TURN; OUTER: cols; ROWS: rows */
    uint8_t npar, nred;        /* loop axes */
    uint8_t tabled;            /* TILE: 1 + the operand that is read through tables; 0: none */
    uint8_t few[JIT_FEW_AXES]; /* FEW: extents of the axes written out */
    uint8_t axis_of[RECIPE_MAX_AXES]; /* recipe axis → loop axis; JIT_NO_AXIS: extent 1 */
    uint16_t zero[JIT_MAX_PTRS];      /* loop axes along which the operand's stride is known 0 */
    uint16_t unit[JIT_MAX_PTRS];      /* … known to be one element */
} KernelSig;

/* A launch over loop axes: what all threads share … */
typedef struct KernelLaunch {
    int64_t iparams[RECIPE_MAX_PARAMS];
    double fparams[RECIPE_MAX_PARAMS];
    const volatile int *interrupt;
    int64_t stride[JIT_MAX_PTRS][RECIPE_MAX_AXES]; /* in bytes */
} KernelLaunch;

/* … and each thread's part. */
typedef struct KernelSlice {
    const void *ptr[JIT_MAX_PTRS];
    int64_t extent[RECIPE_MAX_AXES];
    int64_t origin[RECIPE_MAX_AXES]; /* of this part: what SC_IOTA counts from */
    /* Where the tabled operand is, in bytes: along the last but one parallel axis, from ptr, and along the
     * reduction, from there. */
    const int32_t *rows, *steps;
} KernelSlice;

/* A compiled kernel. Returns a kernel status. */
typedef int32_t (*KernelCode)(const KernelLaunch *launch, const KernelSlice *slice);

typedef enum JitFormat { JIT_OBJECT, JIT_ASSEMBLY, JIT_IR } JitFormat;

/* Ends the program with a message: LLVM cannot be unwound. */
typedef void (*JitOutOfMemory)(const char *who);

typedef struct JitHost {
    uint32_t abi;
    JitOutOfMemory out_of_memory;
} JitHost;

typedef struct JitApi {
    uint32_t abi;
    const char *llvm_version;
    const char *cpu; /* as LLVM calls it */
    /* Compiles; *bytes is malloc'd (texts are NUL-terminated, not counted in *n). False: `why`
     * says what is not supported. One thread at a time. */
    bool (*compile)(const Recipe *r, const KernelSig *sig, JitFormat format, char **bytes,
                    size_t *n, char why[256]);
} JitApi;

#define JIT_ENTRY "relay_jit_open"
typedef const JitApi *(*JitEntry)(const JitHost *host);
/* NULL when the host's ABI is not ours. */
__attribute__((visibility("default"))) const JitApi *relay_jit_open(const JitHost *host);

#endif
