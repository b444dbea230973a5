/* SPDX-License-Identifier: Apache-2.0 */
/* From recipes to LLVM IR: vectors by hand, no IR passes. Inside librelayjit.so only.
 *
 * An Emit is one kernel under construction. A Frame is a place in its loop nest: which element (or
 * run of lanes along one axis) the body is evaluated for, and what has been evaluated there. Values
 * that do not depend on a loop are evaluated before it (emit_hoist), those that do not depend on
 * the lanes' axis are scalars until a vector needs them.
 *
 * The code generator runs without passes that would clean up, so phis are built by hand (Loop). */
#ifndef JIT_EMIT_H
#define JIT_EMIT_H

#include "jit/abi.h"
#include "jit/llvm_memory.h"

#include <llvm-c/Core.h>

enum { LOOP_MAX_CARRIED = 64, MAX_BODY = 4096 };

typedef struct Emit {
    LLVMContextRef ctx;
    LLVMModuleRef mod;
    LLVMBuilderRef b;
    LLVMValueRef fn, launch, slice;
    LLVMBasicBlockRef entry;
    const Recipe *r; /* of a ROWS the part that is being written */
    const KernelSig *sig;
    int nptr, naxes; /* operands with outputs; loop axes */
    int nin, out;    /* operands; the first output of r */
    DType types[JIT_MAX_PTRS];
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr;
    LLVMValueRef base[JIT_MAX_PTRS];
    LLVMValueRef stride[JIT_MAX_PTRS][RECIPE_MAX_AXES]; /* bytes; constants where the sig says */
    LLVMValueRef extent[RECIPE_MAX_AXES], origin[RECIPE_MAX_AXES];
    LLVMValueRef rows, steps;          /* of the tabled operand */
    uint32_t *body_dep, *epilogue_dep; /* loop axes each value depends on */
    void *chunks;                      /* of emit_alloc */
    char *why;                         /* set by emit_unsupported */
    bool failed;
} Emit;

typedef struct Val {
    LLVMValueRef v;
    LLVMValueRef splat; /* of a scalar, where it was made before the loop */
    bool vec;
} Val;

typedef struct Frame {
    int lanes, vaxis;                    /* vaxis -1: scalar */
    LLVMValueRef mask;                   /* of lanes; NULL: all */
    LLVMValueRef index[RECIPE_MAX_AXES]; /* of lane 0, without origin */
    LLVMValueRef at[JIT_MAX_PTRS];       /* addresses of lane 0 */
    LLVMValueRef acc;                    /* epilogues */
    bool acc_vec;
    Val *vals;
    /* Loads already made some other way (turned blocks): by operand, or NULL. */
    LLVMValueRef loaded[JIT_MAX_PTRS];
} Frame;

typedef struct Loop {
    LLVMBasicBlockRef pre, body, exit;
    LLVMValueRef i, end;
    int64_t step;
    bool nonempty;
    int n;
    LLVMValueRef phi[LOOP_MAX_CARRIED], init[LOOP_MAX_CARRIED];
} Loop;

/* ---- emit_base.c ----------------------------------------------------------------------------- */

static inline LLVMValueRef emit_int(Emit *e, int64_t v) {
    return LLVMConstInt(e->i64, (unsigned long long)v, 1);
}
void *emit_alloc(Emit *e, size_t bytes); /* zeroed; given back with the Emit */
void emit_free_all(Emit *e);
void emit_unsupported(Emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
LLVMTypeRef emit_stored_type(Emit *e, DType t); /* bool: i8, halves: i16 */
LLVMTypeRef emit_value_type(Emit *e, DType t);  /* bool: i1, halves: float */
LLVMTypeRef emit_vec(LLVMTypeRef t, int lanes); /* t itself for one lane */
int emit_bytes(DType t);
bool emit_is_float(DType t);
bool emit_is_signed(DType t);
int emit_lanes_of(LLVMValueRef v);
LLVMValueRef emit_splat(Emit *e, LLVMValueRef scalar, int lanes);
LLVMValueRef emit_iota(Emit *e, LLVMTypeRef t, int lanes); /* <0, 1, 2 …> */
LLVMValueRef emit_intrinsic(Emit *e, const char *name, LLVMTypeRef *types, int ntypes,
                            LLVMValueRef *args, int nargs);
LLVMBasicBlockRef emit_block(Emit *e, const char *name);
void emit_return_if(Emit *e, LLVMValueRef cond, int status);
void emit_poll(Emit *e); /* returns KERNEL_INTERRUPTED when the flag is set */
LLVMValueRef emit_min(Emit *e, LLVMValueRef a, LLVMValueRef b); /* signed i64 */
/* Lanes below `count` (i64, may be negative or above). */
LLVMValueRef emit_mask(Emit *e, LLVMValueRef count, int lanes);
LLVMValueRef emit_alloca(Emit *e, LLVMTypeRef t, int n); /* in the entry block */

void emit_loop_begin(Emit *e, Loop *l, LLVMValueRef begin, LLVMValueRef end, int64_t step,
                     bool nonempty, LLVMValueRef *carried, int n);
void emit_loop_end(Emit *e, Loop *l, LLVMValueRef *carried);

/* A loop with a look at the interrupt flag every JIT_POLL elements. */
typedef struct Strips {
    Loop outer, inner;
} Strips;
void emit_strips_begin(Emit *e, Strips *s, LLVMValueRef end, int64_t step, bool nonempty,
                       LLVMValueRef *carried, int n);
void emit_strips_end(Emit *e, Strips *s, LLVMValueRef *carried);

/* Whether operand or output p is contiguous along the axis, and neither contiguous nor still along that of the lanes. */
static inline bool emit_lies_along(const Emit *e, int p, int axis, int vaxis) {
    return e->sig->unit[p] >> axis & 1 && !((e->sig->unit[p] | e->sig->zero[p]) >> vaxis & 1);
}

/* Starts the function, loads what the launch says. */
void emit_start(Emit *e);
/* What follows is written for this recipe, a part of the launch's, whose outputs begin at `out`. */
void emit_set_recipe(Emit *e, const Recipe *r, int out);
/* The frame of no loop at all. */
void emit_frame_init(Emit *e, Frame *f);
/* A copy that has its own values. */
void emit_frame_copy(Emit *e, Frame *to, const Frame *from);
/* Lanes of an axis that fill a vector register. */
int emit_pick_lanes(Emit *e, int axis);
/* Whether operand p is read through a table along the axis, and how many bytes that says at the index. */
bool emit_is_tabled(const Emit *e, int p, int axis);
LLVMValueRef emit_table_entry(Emit *e, int axis, LLVMValueRef index);
/* Moves along an axis. */
void emit_frame_enter(Emit *e, Frame *f, int axis, LLVMValueRef index);

/* ---- emit_memory.c --------------------------------------------------------------------------- */

/* Operand `op` at the frame plus `offset` elements (NULL: none), where cond (NULL: always, in the
 * mask's lanes) holds, else 0. Widened. */
Val emit_load(Emit *e, Frame *f, int op, const Val *offset, const Val *cond);
/* An output at the frame, narrowed once from a value of dtype `from`. */
void emit_store(Emit *e, Frame *f, int op, Val v, DType from);
/* What the first output holds, which is of the accumulator's dtype and lies along the lanes. */
LLVMValueRef emit_load_result(Emit *e, Frame *f);
LLVMValueRef emit_widen(Emit *e, LLVMValueRef stored, DType t);
/* An operand or output that lies along `axis`, not along the lanes: elements of the n frames, one after the other
 * on that axis from f on. offset: of each lane, the same in all frames; NULL: none. mask: which of the frames there are;
 * NULL: all. Loads leave a vector a frame, as stored. */
void emit_load_turned(Emit *e, Frame *f, int n, int op, const Val *offset, LLVMValueRef mask,
                      LLVMValueRef *vectors);
void emit_store_turned(Emit *e, Frame *f, int n, int op, const Val *v, DType from,
                       LLVMValueRef mask);
/* The square of vectors rows[n] with n lanes, turned in place. */
void emit_transpose(Emit *e, LLVMValueRef *rows, int n);

/* ---- emit_scalar.c --------------------------------------------------------------------------- */

LLVMValueRef emit_vector_of(Emit *e, Frame *f, Val v);
/* Evaluates code[i] in the frame, unless it was. */
void emit_instr(Emit *e, Frame *f, const Scalar *code, const uint32_t *dep, int i);
void emit_code(Emit *e, Frame *f, const Scalar *code, const uint32_t *dep, int n);
/* Evaluates what does not depend on `inner` loop axes. */
void emit_hoist(Emit *e, Frame *f, const Scalar *code, const uint32_t *dep, int n, uint32_t inner);
LLVMValueRef emit_combine(Emit *e, Combine c, DType t, LLVMValueRef acc, LLVMValueRef v);
LLVMValueRef emit_unit(Emit *e, Combine c, DType t);
/* ARGMAX, ARGMIN: whether (v, i) beats (acc, acc_i). */
LLVMValueRef emit_arg_beats(Emit *e, LLVMValueRef v, LLVMValueRef i, LLVMValueRef acc,
                            LLVMValueRef acc_i, DType t);
/* The dtype of results[k]'s value. */
DType emit_result_type(Emit *e, int k);

/* ---- forms ----------------------------------------------------------------------------------- */

void emit_scalar_form(Emit *e); /* emit_plain.c */
/* The folded value through the epilogue; *type is the dtype of both. */
Val emit_epilogue(Emit *e, Frame *f, LLVMValueRef acc, bool vec, DType *type);
void emit_finish(Emit *e, Frame *f, LLVMValueRef acc, bool vec, DType type); /* to the output */
void emit_map(Emit *e);                                                      /* emit_map.c */
/* The elements along axis v of a MAP, all other axes of which the frame has entered. */
void emit_map_row(Emit *e, Frame *row, int v);
void emit_swap(Emit *e);
void emit_reduce_inner(Emit *e); /* emit_reduce.c */
/* The one result of a REDUCE at the frame, which has entered all parallel axes. */
void emit_reduce_row(Emit *e, const Frame *f);
void emit_reduce_outer(Emit *e);
static inline bool emit_is_arg(const Recipe *r) {
    return r->combine == COMBINE_ARGMAX || r->combine == COMBINE_ARGMIN;
}
/* acc[0] ∘ v; of an ARG… acc[1] is the index, and `flat` that of v. */
void emit_join(Emit *e, LLVMValueRef *acc, LLVMValueRef v, LLVMValueRef flat);
void emit_few(Emit *e);        /* emit_few.c */
void emit_tile(Emit *e);       /* emit_product.c */
void emit_scan_lanes(Emit *e); /* emit_plain.c */
void emit_rows(Emit *e);       /* emit_rows.c */

#endif
