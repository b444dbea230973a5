/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel recipes: what an operator computes, as data, without LLVM. ops/recipe/reference.c evaluates a
 * recipe plainly; jit/ lowers it. Both give the same bits:
 *
 *  - each scalar function has one definition, a sequence of scalar instructions (ops/recipe/scalar.h),
 *    where multiply-add is SC_FMA and nothing is contracted otherwise;
 *  - a REDUCE sends element j of its reduction domain (row-major over the reduction axes) to
 *    accumulator j mod 16, each started from the combiner's unit, and combines the sixteen as a
 *    fixed tree: a[i] = a[i] ∘ a[i + s] for s = 8, 4, 2, 1;
 *  - a PRODUCT accumulates in order: acc = fma(x, y, acc) over the reduction axes, row-major,
 *    starting from 0;
 *  - SCAN and SCATTER run in order.
 *
 * Exact meanings, where a reader could choose:
 *  - MAX(a, b) is `a > b || a is nan ? a : b`, MIN likewise with `<`; folds call it as
 *    MAX(acc, value). The unit of MAX is -inf or the least integer (False), of MIN the opposite;
 *  - bool values are 0 or 1 (loads test != 0, stores write 0 or 1); AND OR XOR NOT of bools are
 *    logical, of integers bitwise;
 *  - integers wrap; DIV and REM by zero end with KERNEL_DIVIDE; MIN / -1 is MIN, MIN rem -1 is 0;
 *  - a shift by less than 0 ends with KERNEL_SHIFT; by the width or more gives 0 (SHR of a negative
 *    number: -1);
 *  - a value stored: float32 rounds to a half once, float64 stored as a half rounds once from
 *    float64. A body's result has otherwise the dtype of its output, or of acc_type;
 *  - ARGMAX, ARGMIN: a nan beats every number; equals (and two nans) go to the lower index, to the
 *    higher with `last`. The unit is the unit of MAX or MIN with index INT64_MAX (`last`: -1). The
 *    index counts the reduction domain row-major; ACC is it, as int64, and there is an epilogue;
 *  - SCAN folds one element after the other in acc_type, from the unit; with `last` it is exclusive:
 *    out[i] is the fold of what comes before i;
 *  - SCATTER adds the offset (int64, elements) to the output's address at i by its strides; half
 *    outputs are widened, combined in float32 and rounded at each i;
 *  - results[] is always set: SCATTER {value, offset}, else one an output (REDUCE, PRODUCT, SCAN:
 *    the value folded; in a PRODUCT it is the MUL, whose factors are fused into the fma, or
 *    multiplied and added for integers).
 *
 * The iteration domain has `rank` parallel axes (those of the output), then `nreduce` reduction
 * axes. Extents, strides and parameters are given at launch: a recipe is shared by all sizes, and
 * is its own cache key. */
#ifndef OPS_RECIPE_RECIPE_H
#define OPS_RECIPE_RECIPE_H

#include "base/str.h"
#include "tensor/tensor.h"

enum {
    RECIPE_MAX_AXES = 16,
    RECIPE_MAX_OPERANDS = 32,
    RECIPE_MAX_PARAMS = 32,
    RECIPE_MAX_PARTS = 8
};

typedef enum RecipeKind {
    RECIPE_MAP,     /* out[i] = body(i) */
    RECIPE_REDUCE,  /* out[i] = epilogue(fold combine over r of body(i, r)) */
    RECIPE_PRODUCT, /* as REDUCE with sum, in-order fma: the last body instruction is SC_MUL */
    RECIPE_SCAN, /* the last parallel axis runs in order: acc = combine(acc, body(i)); out[i] = acc */
    RECIPE_SCATTER, /* for i in order: out[offset(i)] = combine(out[offset(i)], body(i)); the output
                       is initialised by an earlier step; the offset is body's second result */
    RECIPE_ROWS,    /* MAPs and REDUCEs in order, all on one row before the next: RecipePart */
} RecipeKind;

typedef enum Combine {
    COMBINE_NONE /* SCATTER: overwrite */,
    COMBINE_SUM,
    COMBINE_PROD,
    COMBINE_MAX,
    COMBINE_MIN,
    COMBINE_ALL,
    COMBINE_ANY,
    COMBINE_ARGMAX,
    COMBINE_ARGMIN /* index of the first; of the last with
    SC select_last flag */
} Combine;

/* Scalar instructions in SSA: an instruction's value is named by its position. `type` is the dtype
 * of the result (of the operands for comparisons, whose result is bool). float16 and bfloat16 do
 * not occur: loads widen to float32, the store rounds once. */
/* clang-format off */
#define SCALAR_OPS(X)                                                                              \
    X(CONST)   /* imm */                                                                           \
    X(PARAM)   /* run-time scalar number a: KernelArgs.iparams[a] or fparams[a] by type class */   \
    X(IOTA)    /* index along axis a (parallel, then reduction), int64 */                          \
    X(LOAD)    /* operand a at the current index (its strides) */                                  \
    X(LOAD_AT) /* operand a at the current index plus b elements (int64 value) */                  \
    X(LOAD_IF) /* operand a at the current index plus b elements if c (bool), else imm */          \
    X(ACC)     /* epilogue: the folded value */                                                    \
    X(CHECK)   /* a (bool) must hold, else the kernel ends with the status imm.i */                \
    X(ADD) X(SUB) X(MUL) X(FMA) /* a * b + c rounded once; floats */                               \
    X(DIV)     /* floats IEEE; integers truncate, MIN / -1 is MIN; by zero: KERNEL_DIVIDE */       \
    X(REM)     /* truncated remainder; floats fmod */                                              \
    X(NEG) X(ABS) X(SQRT) X(FLOOR) X(CEIL) X(TRUNC) X(ROUND /* half to even */)                    \
    X(MIN) X(MAX) /* floats: nan if either is */                                                   \
    X(AND) X(OR) X(XOR) X(NOT) X(SHL) X(SHR /* arithmetic when signed */)                          \
    X(EQ) X(NE) X(LT) X(LE) X(GT) X(GE)                                                            \
    X(SELECT)  /* a ? b : c */                                                                     \
    X(CAST)    /* a from dtype `from` (LANGUAGE §3 rules) */                                       \
    X(BITS)    /* a's bits as an equally wide type (`from` to `type`) */                           \
    X(CALL1) X(CALL2) /* imm.i = MathFn: the C library's function, one call an element */           \
    X(CALL_IF) /* b (bool) ? imm.i = MathFn of a : c; called only where b holds (rare: arguments    \
                  beyond a range reduction) */
/* clang-format on */

typedef enum ScalarOp {
#define X(name) SC_##name,
    SCALAR_OPS(X)
#undef X
        SCALAR_OP_COUNT
} ScalarOp;

typedef struct Scalar {
    uint8_t op;   /* ScalarOp */
    uint8_t type; /* DType */
    uint8_t from; /* CAST, BITS */
    uint8_t pad;
    union { /* positions of operands, or numbers as the op says */
        struct {
            int32_t a, b, c;
        };
        int32_t at[3];
    };
    union {
        int64_t i;
        double f;
    } imm;
} Scalar;

/* The positions of values that an instruction reads: at[first] … at[end - 1]. */
typedef struct ScalarReads {
    int first, end;
} ScalarReads;
static inline ScalarReads scalar_reads(const Scalar *s) {
    switch ((ScalarOp)s->op) {
    case SC_CONST:
    case SC_PARAM:
    case SC_IOTA:
    case SC_LOAD:
    case SC_ACC:
    case SCALAR_OP_COUNT: break;
    case SC_LOAD_AT: return (ScalarReads){1, 2};
    case SC_LOAD_IF: return (ScalarReads){1, 3};
    case SC_CHECK:
    case SC_NEG:
    case SC_ABS:
    case SC_SQRT:
    case SC_FLOOR:
    case SC_CEIL:
    case SC_TRUNC:
    case SC_ROUND:
    case SC_NOT:
    case SC_CAST:
    case SC_BITS:
    case SC_CALL1: return (ScalarReads){0, 1};
    case SC_ADD:
    case SC_SUB:
    case SC_MUL:
    case SC_DIV:
    case SC_REM:
    case SC_MIN:
    case SC_MAX:
    case SC_AND:
    case SC_OR:
    case SC_XOR:
    case SC_SHL:
    case SC_SHR:
    case SC_EQ:
    case SC_NE:
    case SC_LT:
    case SC_LE:
    case SC_GT:
    case SC_GE:
    case SC_CALL2: return (ScalarReads){0, 2};
    case SC_FMA:
    case SC_SELECT:
    case SC_CALL_IF: return (ScalarReads){0, 3};
    }
    return (ScalarReads){0, 0};
}

/* The dtype of its value: bool for comparisons and checks. */
static inline DType scalar_result(const Scalar *s) {
    bool truth = s->op == SC_CHECK || (s->op >= SC_EQ && s->op <= SC_GE);
    return truth ? DT_BOOL : (DType)s->type;
}

/* C library functions that both engines call, one element at a time; float64 and float32 forms. */
/* clang-format off */
#define MATH_FNS(X)                                                                                \
    X(ACOS, acos, 1) X(ACOSH, acosh, 1) X(ASIN, asin, 1) X(ASINH, asinh, 1) X(ATAN, atan, 1)       \
    X(ATAN2, atan2, 2) X(ATANH, atanh, 1) X(COS, cos, 1) X(COSH, cosh, 1) X(ERF, erf, 1)           \
    X(EXP, exp, 1) X(LOG, log, 1) X(LOG10, log10, 1) X(LOG2, log2, 1) X(POW, pow, 2)               \
    X(SIN, sin, 1) X(SINH, sinh, 1) X(TAN, tan, 1) X(TANH, tanh, 1)
/* clang-format on */
typedef enum MathFn {
#define X(e, name, n) MATH_##e,
    MATH_FNS(X)
#undef X
        MATH_FN_COUNT
} MathFn;

/* One MAP or REDUCE of a ROWS. The domain of all of them is `rank` parallel axes, and one reduction axis along which a row
 * lies: a REDUCE gives one element a row, a MAP one a place of it. A part reads what earlier parts wrote in the same row
 * through an operand that lies where their output does, so that running each part over all rows in turn gives the same
 * bits. Operands and parameters are numbered for all parts together, outputs by part, and the code of a part follows that
 * of the one before it, with positions that count from its own beginning. */
typedef struct RecipePart {
    uint8_t kind, combine, last, acc_type;
    uint8_t out, noutputs; /* the first of its outputs, and how many */
    uint16_t nbody, nepilogue;
} RecipePart;

typedef struct Recipe {
    RecipeKind kind;
    Combine combine;
    bool last; /* ARGMAX, ARGMIN: the last of equals; SCAN: exclusive */
    uint8_t rank, nreduce;
    uint8_t noperands; /* inputs */
    uint8_t noutputs;  /* 1, but for fused maps */
    uint8_t acc_type;  /* DType folded in: float32 for float16 sums */
    uint8_t in_types[RECIPE_MAX_OPERANDS];
    uint8_t out_types[RECIPE_MAX_OPERANDS];
    uint16_t nbody, nepilogue;
    const Scalar
        *body; /* MAP: the last noutputs results; others: as kind says; all else the last */
    const Scalar *epilogue; /* REDUCE, PRODUCT: over ACC, LOADs on parallel axes, PARAMs; its last
                                 is the result. nepilogue 0: the folded value itself */
    int32_t results[RECIPE_MAX_OPERANDS]; /* positions in body (MAP: one an output; SCATTER: value,
                                             offset; ARG…: value) */
    uint8_t nparts;                       /* ROWS */
    RecipePart parts[RECIPE_MAX_PARTS];
} Recipe;

/* A kernel's status. */
enum {
    KERNEL_DONE = 0,
    KERNEL_INTERRUPTED = 1,
    KERNEL_INDEX = 2,
    KERNEL_DIVIDE = 3,
    KERNEL_SHIFT = 4,
    KERNEL_SIZE = 5,  /* a size that its dtype does not hold */
    KERNEL_MEMORY = 6 /* of the reference: no room for its blocks; plan_run reports it */
};

/* One launch: int32_t kernel(const KernelArgs *). Pointers are to the first element (offset
 * applied); strides in elements, one row of RECIPE_MAX_AXES an operand, over all axes of the
 * domain; outputs use the parallel axes, those of a ROWS all. Threads split the outermost parallel axis that is large. */
typedef struct KernelArgs {
    const void *in[RECIPE_MAX_OPERANDS];
    void *out[RECIPE_MAX_OPERANDS];
    int64_t extents[RECIPE_MAX_AXES];
    int64_t in_strides[RECIPE_MAX_OPERANDS][RECIPE_MAX_AXES];
    int64_t out_strides[RECIPE_MAX_OPERANDS][RECIPE_MAX_AXES];
    int64_t iparams[RECIPE_MAX_PARAMS];
    double fparams[RECIPE_MAX_PARAMS];
    const volatile int *interrupt; /* polled; non-zero: end with KERNEL_INTERRUPTED */
    int32_t thread, nthreads;
} KernelArgs;
typedef int32_t (*KernelFn)(const KernelArgs *args);

/* Structural: the cache key of a recipe (not of its sizes). */
uint64_t recipe_hash(const Recipe *r);
bool recipe_equal(const Recipe *a, const Recipe *b);
/* Part k of a ROWS as a recipe of its own, whose outputs are those from parts[k].out on. Of any other recipe the only part
 * is itself. */
void recipe_part(const Recipe *r, int k, Recipe *part);
static inline int recipe_count_parts(const Recipe *r) {
    return r->kind == RECIPE_ROWS ? r->nparts : 1;
}
/* Whether it gives elements as it has read them, at other places. */
bool recipe_only_moves(const Recipe *r);
void recipe_print(Str *out, const Recipe *r); /* readable, for tests and `:llvm` */

/* Evaluates a launch plainly. Returns a kernel status. */
int32_t recipe_run(const Recipe *r, const KernelArgs *args);

/* Which axes of [begin, end) are walked as one loop. */
typedef struct AxisRange {
    int begin, end;
    uint32_t pinned;  /* these stay as they are, even of extent 1 */
    uint32_t indexed; /* the index along these is used: they are merged with no other */
} AxisRange;
/* group[axis]: the loop it belongs to, counted from 0, or -1 where its extent is 1 and it is dropped. An
 * axis joins the one before it where every operand walks that as its continuation. Gives the number of loops.
 * nout is 0 for the axes of a reduction, along which outputs do not move. */
int kernel_group_axes(const KernelArgs *args, int nin, int nout, AxisRange range, int *group);

#endif
