/* SPDX-License-Identifier: Apache-2.0 */
/* Types, loops, frames: see jit/emit.h. */
#include "jit/emit.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void emit_unsupported(Emit *e, const char *fmt, ...) {
    if (e->failed)
        return;
    e->failed = true;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->why, 256, fmt, ap);
    va_end(ap);
}

typedef struct Chunk {
    struct Chunk *next;
    max_align_t data[];
} Chunk;

void *emit_alloc(Emit *e, size_t bytes) {
    Chunk *c = calloc(1, sizeof *c + bytes);
    if (!c)
        emit_out_of_memory();
    c->next = e->chunks;
    e->chunks = c;
    return c->data;
}

void emit_free_all(Emit *e) {
    for (Chunk *c = e->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    e->chunks = NULL;
}

/* ---- types ----------------------------------------------------------------------------------- */

static const struct {
    uint8_t bytes, bits, cls;
} dtypes[DTYPE_COUNT] = {
#define X(e, name, bytes, cls, bits) {bytes, bits, DTC_##cls},
    DTYPES(X)
#undef X
};

int emit_bytes(DType t) { return dtypes[t].bytes; }
bool emit_is_float(DType t) { return dtypes[t].cls == DTC_FLOAT; }
bool emit_is_signed(DType t) { return dtypes[t].cls == DTC_INT; }

LLVMTypeRef emit_stored_type(Emit *e, DType t) {
    switch (t) {
    case DT_F32: return e->f32;
    case DT_F64: return e->f64;
    case DT_BOOL:
    case DT_I8:
    case DT_U8: return e->i8;
    case DT_I16:
    case DT_U16:
    case DT_F16:
    case DT_BF16: return e->i16;
    case DT_I32:
    case DT_U32: return e->i32;
    case DT_I64:
    case DT_U64: return e->i64;
    case DTYPE_COUNT: break;
    }
    return e->i64;
}

LLVMTypeRef emit_value_type(Emit *e, DType t) {
    if (t == DT_BOOL)
        return e->i1;
    if (t == DT_F16 || t == DT_BF16)
        return e->f32;
    return emit_stored_type(e, t);
}

LLVMTypeRef emit_vec(LLVMTypeRef t, int lanes) {
    return lanes == 1 ? t : LLVMVectorType(t, (unsigned)lanes);
}

int emit_lanes_of(LLVMValueRef v) {
    LLVMTypeRef t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t) : 1;
}

LLVMValueRef emit_splat(Emit *e, LLVMValueRef scalar, int lanes) {
    if (lanes == 1)
        return scalar;
    if (LLVMIsConstant(scalar)) {
        LLVMValueRef all[64];
        for (int i = 0; i < lanes; i++)
            all[i] = scalar;
        return LLVMConstVector(all, (unsigned)lanes);
    }
    LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)lanes);
    LLVMValueRef zero = LLVMConstInt(e->i64, 0, 0);
    LLVMValueRef one = LLVMBuildInsertElement(e->b, LLVMGetPoison(t), scalar, zero, "");
    LLVMValueRef mask = LLVMConstNull(LLVMVectorType(e->i32, (unsigned)lanes));
    return LLVMBuildShuffleVector(e->b, one, LLVMGetPoison(t), mask, "");
}

LLVMValueRef emit_iota(Emit *e, LLVMTypeRef t, int lanes) {
    (void)e;
    LLVMValueRef all[64];
    if (lanes == 1)
        return LLVMConstInt(t, 0, 0);
    for (int i = 0; i < lanes; i++)
        all[i] = LLVMConstInt(t, (unsigned long long)i, 0);
    return LLVMConstVector(all, (unsigned)lanes);
}

LLVMValueRef emit_intrinsic(Emit *e, const char *name, LLVMTypeRef *types, int ntypes,
                            LLVMValueRef *args, int nargs) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(e->mod, id, types, (size_t)ntypes);
    LLVMTypeRef ft = LLVMIntrinsicGetType(e->ctx, id, types, (size_t)ntypes);
    return LLVMBuildCall2(e->b, ft, fn, args, (unsigned)nargs, "");
}

/* ---- control --------------------------------------------------------------------------------- */

LLVMBasicBlockRef emit_block(Emit *e, const char *name) {
    return LLVMAppendBasicBlockInContext(e->ctx, e->fn, name);
}

void emit_return_if(Emit *e, LLVMValueRef cond, int status) {
    LLVMBasicBlockRef yes = emit_block(e, "fail"), no = emit_block(e, "");
    LLVMBuildCondBr(e->b, cond, yes, no);
    LLVMPositionBuilderAtEnd(e->b, yes);
    LLVMBuildRet(e->b, LLVMConstInt(e->i32, (unsigned long long)status, 0));
    LLVMPositionBuilderAtEnd(e->b, no);
}

static LLVMValueRef field(Emit *e, LLVMValueRef base, LLVMTypeRef type, size_t offset) {
    LLVMValueRef at = emit_int(e, (int64_t)offset);
    LLVMValueRef p = LLVMBuildGEP2(e->b, e->i8, base, &at, 1, "");
    return LLVMBuildLoad2(e->b, type, p, "");
}

void emit_poll(Emit *e) {
    LLVMValueRef flag = field(e, e->launch, e->ptr, offsetof(KernelLaunch, interrupt));
    LLVMValueRef v = LLVMBuildLoad2(e->b, e->i32, flag, "");
    LLVMSetVolatile(v, 1);
    emit_return_if(e, LLVMBuildICmp(e->b, LLVMIntNE, v, LLVMConstInt(e->i32, 0, 0), ""),
                   KERNEL_INTERRUPTED);
}

LLVMValueRef emit_min(Emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, a, b, ""), a, b, "");
}

LLVMValueRef emit_mask(Emit *e, LLVMValueRef count, int lanes) {
    LLVMValueRef most = emit_int(e, lanes), none = emit_int(e, 0);
    count = emit_min(e, count, most);
    count = LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, count, none, ""), none, count,
                            "");
    LLVMTypeRef t = lanes > 16 ? e->i8 : e->i32;
    LLVMValueRef n = emit_splat(e, LLVMBuildTrunc(e->b, count, t, ""), lanes);
    return LLVMBuildICmp(e->b, LLVMIntSLT, emit_iota(e, t, lanes), n, "");
}

LLVMValueRef emit_alloca(Emit *e, LLVMTypeRef t, int n) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    LLVMValueRef first = LLVMGetFirstInstruction(e->entry);
    if (first)
        LLVMPositionBuilderBefore(e->b, first);
    else
        LLVMPositionBuilderAtEnd(e->b, e->entry);
    LLVMValueRef p = LLVMBuildAlloca(e->b, LLVMArrayType2(t, (uint64_t)n), "");
    LLVMSetAlignment(p, 64);
    LLVMPositionBuilderAtEnd(e->b, here);
    return p;
}

/* A loop with its test at the bottom, guarded unless it is known to run. carried[n] are replaced by
 * their phis; emit_loop_end takes the next values and leaves the final ones. */
void emit_loop_begin(Emit *e, Loop *l, LLVMValueRef begin, LLVMValueRef end, int64_t step,
                     bool nonempty, LLVMValueRef *carried, int n) {
    l->end = end;
    l->step = step;
    l->n = n;
    l->nonempty = nonempty;
    l->pre = LLVMGetInsertBlock(e->b);
    l->body = emit_block(e, "loop");
    l->exit = emit_block(e, "done");
    if (nonempty)
        LLVMBuildBr(e->b, l->body);
    else
        LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, begin, end, ""), l->body, l->exit);
    LLVMPositionBuilderAtEnd(e->b, l->body);
    l->i = LLVMBuildPhi(e->b, e->i64, "");
    LLVMAddIncoming(l->i, &begin, &l->pre, 1);
    for (int i = 0; i < n; i++) {
        l->init[i] = carried[i];
        l->phi[i] = LLVMBuildPhi(e->b, LLVMTypeOf(carried[i]), "");
        LLVMAddIncoming(l->phi[i], &carried[i], &l->pre, 1);
        carried[i] = l->phi[i];
    }
}

void emit_loop_end(Emit *e, Loop *l, LLVMValueRef *carried) {
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    LLVMValueRef next = LLVMBuildNSWAdd(e->b, l->i, emit_int(e, l->step), "");
    LLVMAddIncoming(l->i, &next, &latch, 1);
    for (int i = 0; i < l->n; i++)
        LLVMAddIncoming(l->phi[i], &carried[i], &latch, 1);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, next, l->end, ""), l->body, l->exit);
    LLVMMoveBasicBlockAfter(l->exit, latch);
    LLVMPositionBuilderAtEnd(e->b, l->exit);
    if (l->nonempty)
        return;
    for (int i = 0; i < l->n; i++) {
        LLVMValueRef out = LLVMBuildPhi(e->b, LLVMTypeOf(carried[i]), "");
        LLVMAddIncoming(out, &l->init[i], &l->pre, 1);
        LLVMAddIncoming(out, &carried[i], &latch, 1);
        carried[i] = out;
    }
}

void emit_strips_begin(Emit *e, Strips *s, LLVMValueRef end, int64_t step, bool nonempty,
                       LLVMValueRef *carried, int n) {
    emit_loop_begin(e, &s->outer, emit_int(e, 0), end, JIT_POLL, nonempty, carried, n);
    emit_poll(e);
    LLVMValueRef stop = LLVMBuildNSWAdd(e->b, s->outer.i, emit_int(e, JIT_POLL), "");
    emit_loop_begin(e, &s->inner, s->outer.i, emit_min(e, stop, end), step, true, carried, n);
}

void emit_strips_end(Emit *e, Strips *s, LLVMValueRef *carried) {
    emit_loop_end(e, &s->inner, carried);
    emit_loop_end(e, &s->outer, carried);
}

/* ---- the launch ------------------------------------------------------------------------------ */

/* Whether pointer p is an output that does not move along the axis, which is one of a reduction. */
static bool stays(const Emit *e, int p, int axis) {
    return p >= e->nin && axis >= e->sig->npar && e->sig->form != FORM_ROWS;
}

/* The loop axes each value of a program depends on. */
static uint32_t *dependencies(Emit *e, const Scalar *code, int n, uint32_t acc) {
    uint32_t *dep = emit_alloc(e, ((size_t)n + 1) * sizeof *dep);
    uint32_t all = (1u << e->naxes) - 1;
    for (int i = 0; i < n; i++) {
        const Scalar *s = &code[i];
        uint32_t d = 0;
        ScalarReads reads = scalar_reads(s);
        for (int k = reads.first; k < reads.end; k++)
            d |= dep[s->at[k]];
        if (s->op == SC_IOTA && e->sig->axis_of[s->a] != JIT_NO_AXIS)
            d = 1u << e->sig->axis_of[s->a];
        if (s->op == SC_LOAD || s->op == SC_LOAD_AT || s->op == SC_LOAD_IF)
            d |= all & ~(uint32_t)e->sig->zero[s->a];
        if (s->op == SC_ACC)
            d = acc;
        dep[i] = d;
    }
    return dep;
}

void emit_set_recipe(Emit *e, const Recipe *r, int out) {
    e->r = r;
    e->out = out;
    e->body_dep = dependencies(e, r->body, r->nbody, 0);
    e->epilogue_dep = dependencies(e, r->epilogue, r->nepilogue, (1u << e->sig->npar) - 1);
}

void emit_start(Emit *e) {
    const Recipe *r = e->r;
    const KernelSig *sig = e->sig;
    e->i1 = LLVMInt1TypeInContext(e->ctx);
    e->i8 = LLVMInt8TypeInContext(e->ctx);
    e->i16 = LLVMInt16TypeInContext(e->ctx);
    e->i32 = LLVMInt32TypeInContext(e->ctx);
    e->i64 = LLVMInt64TypeInContext(e->ctx);
    e->f32 = LLVMFloatTypeInContext(e->ctx);
    e->f64 = LLVMDoubleTypeInContext(e->ctx);
    e->ptr = LLVMPointerTypeInContext(e->ctx, 0);
    e->nin = r->noperands;
    e->nptr = r->noperands + r->noutputs;
    e->naxes = sig->npar + sig->nred;

    LLVMTypeRef params[2] = {e->ptr, e->ptr};
    e->fn = LLVMAddFunction(e->mod, "kernel", LLVMFunctionType(e->i32, params, 2, 0));
    unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(e->fn, (unsigned)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(e->ctx, nounwind, 0));
    LLVMAddTargetDependentFunctionAttr(e->fn, "prefer-vector-width", "512");
    e->launch = LLVMGetParam(e->fn, 0);
    e->slice = LLVMGetParam(e->fn, 1);
    e->entry = emit_block(e, "entry");
    LLVMPositionBuilderAtEnd(e->b, e->entry);

    for (int p = 0; p < e->nptr; p++) {
        DType t = p < r->noperands ? r->in_types[p] : r->out_types[p - r->noperands];
        e->types[p] = t;
        e->base[p] = field(e, e->slice, e->ptr,
                           offsetof(KernelSlice, ptr) + sizeof(void *) * (size_t)p);
        for (int a = 0; a < e->naxes; a++) {
            if (sig->zero[p] >> a & 1 || stays(e, p, a))
                e->stride[p][a] = emit_int(e, 0);
            else if (sig->unit[p] >> a & 1)
                e->stride[p][a] = emit_int(e, emit_bytes(t));
            else
                e->stride[p][a] = field(e, e->launch, e->i64,
                                        offsetof(KernelLaunch, stride) +
                                            sizeof(int64_t) * (size_t)(p * RECIPE_MAX_AXES + a));
        }
    }
    for (int a = 0; a < e->naxes; a++) {
        e->extent[a] = field(e, e->slice, e->i64, offsetof(KernelSlice, extent) + 8 * (size_t)a);
        e->origin[a] = field(e, e->slice, e->i64, offsetof(KernelSlice, origin) + 8 * (size_t)a);
    }
    if (sig->tabled) {
        e->rows = field(e, e->slice, e->ptr, offsetof(KernelSlice, rows));
        e->steps = field(e, e->slice, e->ptr, offsetof(KernelSlice, steps));
    }
    if (r->kind != RECIPE_ROWS)
        emit_set_recipe(e, r, r->noperands);
}

void emit_frame_init(Emit *e, Frame *f) {
    memset(f, 0, sizeof *f);
    f->lanes = 1;
    f->vaxis = -1;
    for (int a = 0; a < e->naxes; a++)
        f->index[a] = emit_int(e, 0);
    for (int p = 0; p < e->nptr; p++)
        f->at[p] = e->base[p];
    f->vals = emit_alloc(e, ((size_t)e->r->nbody + 1) * sizeof *f->vals);
}

void emit_frame_copy(Emit *e, Frame *to, const Frame *from) {
    *to = *from;
    size_t n = ((size_t)e->r->nbody + 1) * sizeof *to->vals;
    to->vals = emit_alloc(e, n);
    memcpy(to->vals, from->vals, n);
}

bool emit_is_tabled(const Emit *e, int p, int axis) {
    int npar = e->sig->npar;
    return e->sig->tabled == p + 1 && (axis == npar - 2 || axis == npar);
}

LLVMValueRef emit_table_entry(Emit *e, int axis, LLVMValueRef index) {
    LLVMValueRef table = axis < e->sig->npar ? e->rows : e->steps;
    LLVMValueRef at = LLVMBuildGEP2(e->b, e->i32, table, &index, 1, "");
    return LLVMBuildSExt(e->b, LLVMBuildLoad2(e->b, e->i32, at, ""), e->i64, "");
}

void emit_frame_enter(Emit *e, Frame *f, int axis, LLVMValueRef index) {
    f->index[axis] = index;
    int tabled = e->sig->tabled - 1;
    if (tabled >= 0 && emit_is_tabled(e, tabled, axis)) {
        LLVMValueRef by = emit_table_entry(e, axis, index);
        f->at[tabled] = LLVMBuildGEP2(e->b, e->i8, f->at[tabled], &by, 1, "");
    }
    if (LLVMIsAConstantInt(index) && LLVMConstIntGetZExtValue(index) == 0)
        return;
    for (int p = 0; p < e->nptr; p++) {
        if (e->sig->zero[p] >> axis & 1 || stays(e, p, axis) || emit_is_tabled(e, p, axis))
            continue;
        if (e->sig->unit[p] >> axis & 1) {
            LLVMTypeRef t = emit_stored_type(e, e->types[p]);
            f->at[p] = LLVMBuildGEP2(e->b, t, f->at[p], &index, 1, "");
        } else {
            LLVMValueRef by = LLVMBuildMul(e->b, index, e->stride[p][axis], "");
            f->at[p] = LLVMBuildGEP2(e->b, e->i8, f->at[p], &by, 1, "");
        }
    }
}

/* Lanes that fill a vector register with the widest type there is; sixteen at most. */
int emit_pick_lanes(Emit *e, int axis) {
    const Recipe *r = e->r;
    int widest = 1;
    for (int i = 0; i < r->nbody; i++) {
        int bytes = emit_bytes(r->body[i].type);
        if (bytes > widest && e->body_dep[i] >> axis & 1)
            widest = bytes;
    }
    for (int p = 0; p < e->nptr; p++)
        if (emit_bytes(e->types[p]) > widest)
            widest = emit_bytes(e->types[p]);
    int lanes = e->sig->vbytes / widest, most = e->sig->vbytes == 64 ? 64 : 16;
    return lanes > most ? most : lanes;
}
