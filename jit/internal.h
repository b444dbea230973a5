/* SPDX-License-Identifier: Apache-2.0 */
/* The program's side of the compiler, inside: what jit_run is made of. Everything here is malloc'd:
 * worker threads see it, and the collector has no business with it. */
#ifndef JIT_INTERNAL_H
#define JIT_INTERNAL_H

#include "jit/abi.h"
#include "jit/jit.h"

#include <pthread.h>

/* ---- cpu.c ----------------------------------------------------------------------------------- */

typedef struct JitCpu {
    int vector_bytes, registers; /* vector registers */
    bool masks;                  /* masked loads and stores of any element */
    int64_t l2_bytes;            /* of one core */
    char id[96];                 /* model and features: part of the cache key */
} JitCpu;
const JitCpu *jit_cpu(void);

/* ---- load.c ---------------------------------------------------------------------------------- */

/* An object file in executable memory. */
typedef struct JitCode {
    void *memory;
    size_t bytes;
    KernelCode entry;
} JitCode;
bool jit_code_load(JitCode *code, const void *object, size_t n, const char **why);
void jit_code_fini(JitCode *code);

/* ---- cache.c --------------------------------------------------------------------------------- */

typedef struct JitCache {
    char *dir;                /* NULL: none */
    int folder;               /* open; -1: not yet */
    const char *refused;      /* why the folder is not used; NULL: it may be */
    unsigned char secret[16]; /* read once the folder is open */
    bool broken, trimmed;
} JitCache;
void jit_cache_init(JitCache *c, const char *dir);
void jit_cache_fini(JitCache *c);
/* The object kept under a key, malloc'd; NULL when there is none, or it is damaged or not ours. */
void *jit_cache_find(JitCache *c, const void *key, size_t nkey, size_t *n);
void jit_cache_put(JitCache *c, const void *key, size_t nkey, const void *object, size_t n);

/* ---- pool.c ---------------------------------------------------------------------------------- */

typedef struct JitPool JitPool;
JitPool *jit_pool_new(int threads);
void jit_pool_free(JitPool *pool);
/* fn(arg, i) for each i in [0, n), n at most 65,535; returns when all are done. */
void jit_pool_run(JitPool *pool, int n, void (*fn)(void *arg, int i), void *arg);
/* Whether the next job is the caller's alone, since the machine was found busy. */
bool jit_pool_is_alone(const JitPool *pool);

/* ---- open.c ---------------------------------------------------------------------------------- */

char *jit_library_find(const char *given, Str *tried); /* malloc'd path; NULL: none */
const JitApi *jit_library_open(const char *path, const char **why);

/* ---- table.c --------------------------------------------------------------------------------- */

typedef struct JitKernel {
    struct JitKernel *next;
    KernelSig sig;
    JitCode code; /* entry NULL: could not be made */
} JitKernel;

/* A recipe met, with what launches ask about it again and again. */
typedef struct JitRecipe {
    struct JitRecipe *next;
    uint64_t hash;
    Recipe recipe; /* a copy */
    Scalar *code;
    uint16_t iota_axes;   /* recipe axes whose index is used */
    uint32_t plain_loads; /* operands read by SC_LOAD alone */
    uint32_t loads;       /* … by any load of the body */
    bool has_calls;
    double cost;  /* rough ns an element of the domain */
    double spent; /* rough ns run so far */
    JitKernel *kernels;
    const char *why; /* malloc'd; the last reason for the reference */
    struct {         /* the last tile chosen */
        int64_t m, n, steps;
        bool in_panels;
        uint8_t rows, cols;
    } tile;
} JitRecipe;

enum { JIT_BUCKETS = 1024, JIT_RECENT = 256 };

struct Jit {
    JitOptions options;
    JitCpu cpu;
    char *library;
    char library_id[64]; /* size and time of the library: part of the cache key */
    const JitApi *api;   /* NULL until something is compiled */
    bool api_failed;
    const char *api_why;
    JitCache cache;
    Recipe copies[4][RECIPE_MAX_AXES + 1]; /* of panels, by the size of an element and by rank */
    Scalar copy_body[4];
    JitPool *pool; /* NULL until used */
    int threads;
    JitStats stats;
    JitRecipe *buckets[JIT_BUCKETS];
    JitRecipe *recent[JIT_RECENT]; /* by the address of the code, to be checked */
    char *pack;                    /* scratch of packed operands, one piece a thread */
    size_t pack_bytes;
    int32_t *tables; /* scratch */
    size_t table_entries;
};

JitRecipe *jit_recipe_get(Jit *jit, const Recipe *r);
/* NULL: r->why says why there is none. */
KernelCode jit_kernel_get(Jit *jit, JitRecipe *r, const KernelSig *sig);
const JitApi *jit_api_get(Jit *jit, const char **why);
void jit_table_fini(Jit *jit);

/* ---- shape.c --------------------------------------------------------------------------------- */

/* How an operand is walked along some axes, the last one fastest. */
typedef struct JitWalk {
    int n;
    int64_t extent[RECIPE_MAX_AXES], stride[RECIPE_MAX_AXES]; /* strides in bytes */
} JitWalk;

/* A launch ready to run: how loops lie, which form. */
typedef struct JitPlan {
    KernelSig sig;
    int naxes;
    int nptr;
    int64_t extent[RECIPE_MAX_AXES];
    int64_t stride[JIT_MAX_PTRS][RECIPE_MAX_AXES]; /* bytes */
    RecipeKind kind;
    bool empty;          /* nothing to do */
    int packed;          /* the operand to be packed by column panels; -1: none */
    int keeps;           /* the operand whose panels serve later launches too; -1: none */
    JitWalk source;      /* of the operand that is packed or kept: the reduction */
    JitWalk rows, steps; /* PRODUCT with sig.tabled: what the tables say */
    int64_t elements;    /* of the whole domain */
    int64_t wide;        /* PRODUCT: lanes' extent of a tile */
} JitPlan;
/* After how many nanoseconds, spent as jr->spent counts them, a recipe is worth the better code. */
double jit_hot_after(const Recipe *r);
/* kept: panels of plan->keeps are there already, so the launch reads these. */
void jit_plan(const Jit *jit, JitRecipe *jr, const KernelArgs *args, bool kept, JitPlan *plan);

#endif
