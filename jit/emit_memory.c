/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of lanes, and the half-width formats.
 *
 * Note [Halves]. float16 and bfloat16 live in memory only. They are widened and rounded here by
 * integer instructions, which give the same bits as tensor/dtype.c on every CPU; nan payloads alone
 * may differ. A float64 is first rounded to odd at float32, so that the second rounding is right
 * (Boldo and Melquiond, "When double rounding is odd"). */
#include "jit/emit.h"

#include <string.h>

static LLVMValueRef konst(Emit *e, LLVMValueRef like, uint64_t v) {
    LLVMTypeRef t = LLVMTypeOf(like);
    int lanes = emit_lanes_of(like);
    if (lanes > 1)
        t = LLVMGetElementType(t);
    return emit_splat(e, LLVMConstInt(t, v, 0), lanes);
}
static LLVMValueRef and_(Emit *e, LLVMValueRef a, uint64_t v) {
    return LLVMBuildAnd(e->b, a, konst(e, a, v), "");
}
static LLVMValueRef add_(Emit *e, LLVMValueRef a, uint64_t v) {
    return LLVMBuildAdd(e->b, a, konst(e, a, v), "");
}
static LLVMValueRef shl_(Emit *e, LLVMValueRef a, uint64_t v) {
    return LLVMBuildShl(e->b, a, konst(e, a, v), "");
}
static LLVMValueRef shr_(Emit *e, LLVMValueRef a, uint64_t v) {
    return LLVMBuildLShr(e->b, a, konst(e, a, v), "");
}
static LLVMValueRef cmp_(Emit *e, LLVMIntPredicate p, LLVMValueRef a, uint64_t v) {
    return LLVMBuildICmp(e->b, p, a, konst(e, a, v), "");
}
static LLVMValueRef select_(Emit *e, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(e->b, c, a, b, "");
}

LLVMValueRef emit_widen(Emit *e, LLVMValueRef v, DType t) {
    int n = emit_lanes_of(v);
    LLVMTypeRef i32 = emit_vec(e->i32, n), f32 = emit_vec(e->f32, n);
    if (t == DT_BOOL)
        return cmp_(e, LLVMIntNE, v, 0);
    if (t == DT_BF16)
        return LLVMBuildBitCast(e->b, shl_(e, LLVMBuildZExt(e->b, v, i32, ""), 16), f32, "");
    if (t != DT_F16)
        return v;
    /* Exponent and fraction moved into place and rescaled by 2^112; infinities keep all ones. */
    LLVMValueRef h = LLVMBuildZExt(e->b, v, i32, "");
    LLVMValueRef em = shl_(e, and_(e, h, 0x7fff), 13);
    LLVMValueRef scale = emit_splat(e, LLVMConstReal(e->f32, 0x1p112), n);
    LLVMValueRef finite = LLVMBuildBitCast(
        e->b, LLVMBuildFMul(e->b, LLVMBuildBitCast(e->b, em, f32, ""), scale, ""), i32, "");
    LLVMValueRef special = LLVMBuildOr(e->b, em, konst(e, em, 0x7f800000), "");
    LLVMValueRef bits = select_(e, cmp_(e, LLVMIntUGE, em, 0x0f800000), special, finite);
    bits = LLVMBuildOr(e->b, bits, shl_(e, and_(e, h, 0x8000), 16), "");
    return LLVMBuildBitCast(e->b, bits, f32, "");
}

/* float32's bits, already rounded or to be rounded once. */
static LLVMValueRef narrow_bf16(Emit *e, LLVMValueRef bits) {
    LLVMValueRef lsb = and_(e, shr_(e, bits, 16), 1);
    LLVMValueRef up = shr_(e, LLVMBuildAdd(e->b, add_(e, bits, 0x7fff), lsb, ""), 16);
    LLVMValueRef nan = LLVMBuildOr(e->b, shr_(e, bits, 16), konst(e, bits, 0x40), "");
    LLVMValueRef is_nan = cmp_(e, LLVMIntUGT, and_(e, bits, 0x7fffffff), 0x7f800000);
    return select_(e, is_nan, nan, up);
}

static LLVMValueRef narrow_f16(Emit *e, LLVMValueRef bits) {
    int n = emit_lanes_of(bits);
    LLVMTypeRef i32 = emit_vec(e->i32, n), f32 = emit_vec(e->f32, n);
    LLVMValueRef a = and_(e, bits, 0x7fffffff);
    /* Normal results: rebias and round; a carry runs into the exponent, up to infinity. */
    LLVMValueRef odd = and_(e, shr_(e, a, 13), 1);
    LLVMValueRef normal = add_(e, LLVMBuildAdd(e->b, a, odd, ""), (uint32_t)(0xfff - (112 << 23)));
    normal = shr_(e, normal, 13);
    /* Subnormal ones: adding 0.5 puts the last bit kept at float32's last bit. */
    LLVMValueRef half = emit_splat(e, LLVMConstReal(e->f32, 0.5), n);
    LLVMValueRef sub = LLVMBuildFAdd(e->b, LLVMBuildBitCast(e->b, a, f32, ""), half, "");
    sub = add_(e, LLVMBuildBitCast(e->b, sub, i32, ""), (uint32_t)-0x3f000000);
    LLVMValueRef r = select_(e, cmp_(e, LLVMIntULT, a, 113u << 23), sub, normal);
    r = select_(e, cmp_(e, LLVMIntUGE, a, 0x47800000), konst(e, a, 0x7c00), r);
    r = select_(e, cmp_(e, LLVMIntUGT, a, 0x7f800000), konst(e, a, 0x7e00), r);
    return LLVMBuildOr(e->b, r, shr_(e, and_(e, bits, 0x80000000u), 16), "");
}

/* A float64 as float32, rounded to odd: see Note [Halves]. */
static LLVMValueRef round_to_odd(Emit *e, LLVMValueRef d) {
    int n = emit_lanes_of(d);
    LLVMTypeRef i32 = emit_vec(e->i32, n), f32 = emit_vec(e->f32, n), f64 = emit_vec(e->f64, n);
    LLVMValueRef t = LLVMBuildFPTrunc(e->b, d, f32, "");
    LLVMValueRef back = LLVMBuildFPExt(e->b, t, f64, "");
    LLVMTypeRef types[1] = {f64};
    LLVMValueRef abs_d = emit_intrinsic(e, "llvm.fabs", types, 1, &d, 1);
    LLVMValueRef abs_b = emit_intrinsic(e, "llvm.fabs", types, 1, &back, 1);
    LLVMValueRef bits = LLVMBuildBitCast(e->b, t, i32, "");
    LLVMValueRef above = LLVMBuildFCmp(e->b, LLVMRealOGT, abs_b, abs_d, "");
    LLVMValueRef inexact = LLVMBuildFCmp(e->b, LLVMRealONE, back, d, "");
    LLVMValueRef towards_zero = select_(e, above, add_(e, bits, (uint32_t)-1), bits);
    LLVMValueRef sticky = LLVMBuildOr(e->b, towards_zero, konst(e, bits, 1), "");
    return select_(e, inexact, sticky, bits);
}

static LLVMValueRef emit_narrow(Emit *e, LLVMValueRef v, DType from, DType to) {
    int n = emit_lanes_of(v);
    if (to == DT_BOOL)
        return LLVMBuildZExt(e->b, v, emit_vec(e->i8, n), "");
    if (to != DT_F16 && to != DT_BF16)
        return v;
    LLVMValueRef bits = from == DT_F64 ? round_to_odd(e, v)
                                       : LLVMBuildBitCast(e->b, v, emit_vec(e->i32, n), "");
    LLVMValueRef r = to == DT_F16 ? narrow_f16(e, bits) : narrow_bf16(e, bits);
    return LLVMBuildTrunc(e->b, r, emit_vec(e->i16, n), "");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static LLVMValueRef all_lanes(Emit *e, int n) {
    return emit_splat(e, LLVMConstInt(e->i1, 1, 0), n);
}

static LLVMValueRef first_lanes(Emit *e, int n, int lanes) {
    LLVMValueRef bits[64];
    for (int i = 0; i < lanes; i++)
        bits[i] = LLVMConstInt(e->i1, i < n, 0);
    return LLVMConstVector(bits, (unsigned)lanes);
}

/* Addresses of the lanes. */
static LLVMValueRef lane_addresses(Emit *e, Frame *f, int op, const Val *offset, int bytes) {
    int n = f->lanes;
    LLVMValueRef stride = emit_splat(e, e->stride[op][f->vaxis], n);
    LLVMValueRef by = LLVMBuildMul(e->b, emit_iota(e, e->i64, n), stride, "");
    if (offset) {
        LLVMValueRef o = emit_vector_of(e, f, *offset);
        o = LLVMBuildMul(e->b, o, emit_splat(e, emit_int(e, bytes), n), "");
        by = LLVMBuildAdd(e->b, by, o, "");
    }
    return LLVMBuildGEP2(e->b, e->i8, f->at[op], &by, 1, "");
}

static LLVMValueRef masked_load(Emit *e, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef mask,
                                int align) {
    LLVMTypeRef types[2] = {t, e->ptr};
    LLVMValueRef args[4] = {p, LLVMConstInt(e->i32, (unsigned)align, 0), mask, LLVMConstNull(t)};
    return emit_intrinsic(e, "llvm.masked.load", types, 2, args, 4);
}

/* Element by element: where the CPU has no masks LLVM asks of each lane whether it is there, and branches. A lane
 * that is not there reads the launch itself, which has sixteen readable bytes. */
static LLVMValueRef gather_lanes(Emit *e, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef mask,
                                 int align, int n) {
    LLVMValueRef v = LLVMGetPoison(t);
    if (mask)
        p = select_(e, mask, p, emit_splat(e, e->launch, n));
    for (int l = 0; l < n; l++) {
        LLVMValueRef lane = LLVMConstInt(e->i32, (unsigned)l, 0);
        LLVMValueRef at = LLVMBuildExtractElement(e->b, p, lane, "");
        LLVMValueRef x = LLVMBuildLoad2(e->b, LLVMGetElementType(t), at, "");
        LLVMSetAlignment(x, (unsigned)align);
        v = LLVMBuildInsertElement(e->b, v, x, lane, "");
    }
    return mask ? select_(e, mask, v, LLVMConstNull(t)) : v;
}

static LLVMValueRef gather(Emit *e, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef mask, int align,
                           int n) {
    if (!(e->sig->flags & SIG_MASKS))
        return gather_lanes(e, t, p, mask, align, n);
    if (!mask)
        mask = all_lanes(e, n);
    LLVMTypeRef types[2] = {t, LLVMVectorType(e->ptr, (unsigned)n)};
    LLVMValueRef args[4] = {p, LLVMConstInt(e->i32, (unsigned)align, 0), mask, LLVMConstNull(t)};
    return emit_intrinsic(e, "llvm.masked.gather", types, 2, args, 4);
}

Val emit_load(Emit *e, Frame *f, int op, const Val *offset, const Val *cond) {
    DType t = e->r->in_types[op];
    int bytes = emit_bytes(t), n = f->lanes;
    LLVMTypeRef st = emit_stored_type(e, t);
    LLVMValueRef at = f->at[op];
    if (f->loaded[op] && !offset && !cond)
        return (Val){.v = emit_widen(e, f->loaded[op], t), .vec = true};
    bool moves = n > 1 && !(e->sig->zero[op] >> f->vaxis & 1);
    bool vec = moves || (n > 1 && ((offset && offset->vec) || (cond && cond->vec)));
    if (!vec) {
        if (offset) {
            LLVMValueRef by = LLVMBuildMul(e->b, offset->v, emit_int(e, bytes), "");
            at = LLVMBuildGEP2(e->b, e->i8, at, &by, 1, "");
        }
        if (cond) /* elsewhere the launch itself stands in: sixteen readable bytes */
            at = select_(e, cond->v, at, e->launch);
        LLVMValueRef v = LLVMBuildLoad2(e->b, st, at, "");
        LLVMSetAlignment(v, (unsigned)bytes);
        return (Val){.v = emit_widen(e, v, t)};
    }
    LLVMTypeRef vt = emit_vec(st, n);
    LLVMValueRef mask = f->mask;
    if (cond) {
        LLVMValueRef c = emit_vector_of(e, f, *cond);
        mask = mask ? LLVMBuildAnd(e->b, mask, c, "") : c;
    }
    LLVMValueRef v;
    if (moves && e->sig->unit[op] >> f->vaxis & 1 && !(offset && offset->vec)) {
        if (offset)
            at = LLVMBuildGEP2(e->b, st, at, (LLVMValueRef[]){offset->v}, 1, "");
        if (mask) {
            v = masked_load(e, vt, at, mask, bytes);
        } else {
            v = LLVMBuildLoad2(e->b, vt, at, "");
            LLVMSetAlignment(v, (unsigned)bytes);
        }
    } else {
        LLVMValueRef p = lane_addresses(e, f, op, offset, bytes);
        v = gather(e, vt, p, mask, bytes, n);
    }
    return (Val){.v = emit_widen(e, v, t), .vec = true};
}

void emit_store(Emit *e, Frame *f, int op, Val val, DType from) {
    DType t = e->types[op];
    int bytes = emit_bytes(t), n = f->lanes;
    if (n == 1) {
        LLVMValueRef s = LLVMBuildStore(e->b, emit_narrow(e, val.v, from, t), f->at[op]);
        LLVMSetAlignment(s, (unsigned)bytes);
        return;
    }
    LLVMValueRef v = emit_narrow(e, emit_vector_of(e, f, val), from, t);
    LLVMTypeRef vt = LLVMTypeOf(v);
    LLVMValueRef align = LLVMConstInt(e->i32, (unsigned)bytes, 0);
    if (!(e->sig->unit[op] >> f->vaxis & 1)) {
        LLVMTypeRef types[2] = {vt, LLVMVectorType(e->ptr, (unsigned)n)};
        LLVMValueRef p = lane_addresses(e, f, op, NULL, bytes);
        LLVMValueRef args[4] = {v, p, align, f->mask ? f->mask : all_lanes(e, n)};
        emit_intrinsic(e, "llvm.masked.scatter", types, 2, args, 4);
    } else if (f->mask) {
        LLVMTypeRef types[2] = {vt, e->ptr};
        LLVMValueRef args[4] = {v, f->at[op], align, f->mask};
        emit_intrinsic(e, "llvm.masked.store", types, 2, args, 4);
    } else {
        LLVMSetAlignment(LLVMBuildStore(e->b, v, f->at[op]), (unsigned)bytes);
    }
}

LLVMValueRef emit_load_result(Emit *e, Frame *f) {
    DType t = e->r->out_types[0];
    int op = e->r->noperands, bytes = emit_bytes(t);
    LLVMTypeRef vt = emit_vec(emit_stored_type(e, t), f->lanes);
    if (f->mask)
        return masked_load(e, vt, f->at[op], f->mask, bytes);
    LLVMValueRef v = LLVMBuildLoad2(e->b, vt, f->at[op], "");
    LLVMSetAlignment(v, (unsigned)bytes);
    return v;
}

/* The address of f's lane l, or of the last one where there are fewer. */
static LLVMValueRef lane_address(Emit *e, const Frame *f, int op, int l) {
    LLVMValueRef by = emit_int(e, l);
    if (f->mask) {
        LLVMValueRef left = LLVMBuildSub(e->b, e->extent[f->vaxis], f->index[f->vaxis], "");
        by = emit_min(e, by, LLVMBuildSub(e->b, left, emit_int(e, 1), ""));
    }
    by = LLVMBuildMul(e->b, by, e->stride[op][f->vaxis], "");
    return LLVMBuildGEP2(e->b, e->i8, f->at[op], &by, 1, "");
}

void emit_load_turned(Emit *e, Frame *f, int n, int op, const Val *offset, LLVMValueRef mask,
                      LLVMValueRef *vectors) {
    DType t = e->r->in_types[op];
    int bytes = emit_bytes(t), lanes = f->lanes;
    LLVMTypeRef st = emit_stored_type(e, t), vt = emit_vec(st, lanes);
    LLVMValueRef square[64], p = offset ? lane_addresses(e, f, op, offset, bytes) : NULL, first;
    for (int l = 0; l < lanes; l++) {
        LLVMValueRef at, lane = emit_int(e, l);
        if (offset) {
            at = LLVMBuildExtractElement(e->b, p, lane, "");
            if (l == 0)
                first = at;
            else if (f->mask)
                at = select_(e, LLVMBuildExtractElement(e->b, f->mask, lane, ""), at, first);
        } else {
            at = lane_address(e, f, op, l);
        }
        /* No element is read but the n that there are: they may be the last of their page. */
        square[l] = masked_load(e, vt, at, mask ? mask : first_lanes(e, n, lanes), bytes);
    }
    emit_transpose(e, square, lanes);
    for (int i = 0; i < n; i++)
        vectors[i] = square[i];
}

void emit_store_turned(Emit *e, Frame *f, int n, int op, const Val *v, DType from,
                       LLVMValueRef mask) {
    DType t = e->types[op];
    int bytes = emit_bytes(t), lanes = f->lanes;
    LLVMTypeRef st = emit_stored_type(e, t);
    LLVMValueRef square[64];
    for (int i = 0; i < lanes; i++)
        square[i] = i < n ? emit_narrow(e, emit_vector_of(e, f, v[i]), from, t)
                          : LLVMGetUndef(emit_vec(st, lanes));
    emit_transpose(e, square, lanes);
    LLVMBasicBlockRef end = emit_block(e, "");
    LLVMValueRef left = LLVMBuildSub(e->b, e->extent[f->vaxis], f->index[f->vaxis], "");
    for (int l = 0; l < lanes; l++) {
        if (f->mask) {
            LLVMBasicBlockRef next = emit_block(e, "");
            LLVMValueRef inside = LLVMBuildICmp(e->b, LLVMIntSLT, emit_int(e, l), left, "");
            LLVMBuildCondBr(e->b, inside, next, end);
            LLVMPositionBuilderAtEnd(e->b, next);
        }
        LLVMValueRef by = LLVMBuildMul(e->b, emit_int(e, l), e->stride[op][f->vaxis], "");
        LLVMValueRef at = LLVMBuildGEP2(e->b, e->i8, f->at[op], &by, 1, "");
        if (mask) {
            LLVMTypeRef types[2] = {LLVMTypeOf(square[l]), e->ptr};
            LLVMValueRef align = LLVMConstInt(e->i32, (unsigned)bytes, 0);
            LLVMValueRef args[4] = {square[l], at, align, mask};
            emit_intrinsic(e, "llvm.masked.store", types, 2, args, 4);
            continue;
        }
        /* Whole vectors of two, four, eight: a mask that is known is stored no faster. */
        for (int i = 0, size; i < n; i += size) {
            size = lanes;
            while (size > n - i)
                size /= 2;
            LLVMValueRef part = square[l], to = at, index[64];
            for (int k = 0; k < size; k++)
                index[k] = LLVMConstInt(e->i32, (unsigned)(i + k), 0);
            if (size < lanes && size > 1)
                part = LLVMBuildShuffleVector(e->b, part, part,
                                              LLVMConstVector(index, (unsigned)size), "");
            else if (size == 1)
                part = LLVMBuildExtractElement(e->b, part, index[0], "");
            to = LLVMBuildGEP2(e->b, st, at, (LLVMValueRef[]){emit_int(e, i)}, 1, "");
            LLVMSetAlignment(LLVMBuildStore(e->b, part, to), (unsigned)bytes);
        }
    }
    LLVMBuildBr(e->b, end);
    LLVMMoveBasicBlockAfter(end, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, end);
}

/* log2(n) rounds of swapping blocks off the diagonal (Eklundh). */
void emit_transpose(Emit *e, LLVMValueRef *rows, int n) {
    LLVMValueRef index[64], lo, hi;
    for (int s = 1; s < n; s *= 2) {
        for (int i = 0; i < n; i++)
            index[i] = LLVMConstInt(e->i32, (unsigned)(i & s ? i - s + n : i), 0);
        lo = LLVMConstVector(index, (unsigned)n);
        for (int i = 0; i < n; i++)
            index[i] = LLVMConstInt(e->i32, (unsigned)(i & s ? i + n : i + s), 0);
        hi = LLVMConstVector(index, (unsigned)n);
        for (int i = 0; i < n; i++) {
            if (i & s)
                continue;
            LLVMValueRef a = rows[i], b = rows[i + s];
            rows[i] = LLVMBuildShuffleVector(e->b, a, b, lo, "");
            rows[i + s] = LLVMBuildShuffleVector(e->b, a, b, hi, "");
        }
    }
}
