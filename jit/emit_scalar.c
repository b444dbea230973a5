/* SPDX-License-Identifier: Apache-2.0 */
/* One case a scalar instruction, for scalars and lanes alike. The meanings are those of
 * ops/recipe/recipe.h; no fast-math flag anywhere, so that each result has the reference's bits. */
#include "jit/emit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

LLVMValueRef emit_vector_of(Emit *e, Frame *f, Val v) {
    if (v.vec || f->lanes == 1)
        return v.v;
    return v.splat ? v.splat : emit_splat(e, v.v, f->lanes);
}

static LLVMValueRef konst(Emit *e, DType t, const Scalar *s) {
    if (t == DT_BOOL)
        return LLVMConstInt(e->i1, s->imm.i != 0, 0);
    if (emit_is_float(t)) {
        /* NaN and float32 go through their bits: LLVMConstReal takes a double. */
        if (t == DT_F64)
            return LLVMConstReal(e->f64, s->imm.f);
        return LLVMConstReal(e->f32, (double)(float)s->imm.f);
    }
    return LLVMConstInt(emit_value_type(e, t), (unsigned long long)s->imm.i, 1);
}

static LLVMValueRef int_like(Emit *e, LLVMValueRef v, int64_t k) {
    int n = emit_lanes_of(v);
    LLVMTypeRef t = LLVMTypeOf(v);
    return emit_splat(e, LLVMConstInt(n > 1 ? LLVMGetElementType(t) : t, (unsigned long long)k, 1),
                      n);
}

/* Ends the kernel when cond holds in a lane that counts. */
static void fail_if(Emit *e, Frame *f, LLVMValueRef cond, int status) {
    int n = emit_lanes_of(cond);
    if (LLVMIsConstant(cond) && LLVMIsNull(cond))
        return;
    if (n > 1) {
        if (f->mask)
            cond = LLVMBuildAnd(e->b, cond, f->mask, "");
        LLVMTypeRef t = LLVMTypeOf(cond);
        cond = emit_intrinsic(e, "llvm.vector.reduce.or", &t, 1, &cond, 1);
    }
    emit_return_if(e, cond, status);
}

static LLVMValueRef unary(Emit *e, const char *name, LLVMValueRef x) {
    LLVMTypeRef t = LLVMTypeOf(x);
    return emit_intrinsic(e, name, &t, 1, &x, 1);
}

/* A constant, in all lanes, that is a number. */
static bool is_number(LLVMValueRef v) {
    if (!LLVMIsConstant(v))
        return false;
    if (emit_lanes_of(v) > 1)
        v = LLVMGetAggregateElement(v, 0);
    LLVMBool inexact;
    return v && LLVMIsAConstantFP(v) && !isnan(LLVMConstRealGetDouble(v, &inexact));
}

/* `a p b || a is nan ? a : b`, in fewer instructions where one of them is known. */
static LLVMValueRef float_pick(Emit *e, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b) {
    if (is_number(b))
        p = p == LLVMRealOGT ? LLVMRealUGT : LLVMRealULT;
    if (is_number(a) || is_number(b))
        return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, p, a, b, ""), a, b, "");
    LLVMValueRef pick = LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, p, a, b, ""), a, b, "");
    return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealUNO, a, a, ""), a, pick, "");
}

static LLVMValueRef min_max(Emit *e, bool max, DType t, LLVMValueRef a, LLVMValueRef b) {
    if (emit_is_float(t))
        return float_pick(e, max ? LLVMRealOGT : LLVMRealOLT, a, b);
    if (t == DT_BOOL)
        return max ? LLVMBuildOr(e->b, a, b, "") : LLVMBuildAnd(e->b, a, b, "");
    LLVMIntPredicate p = emit_is_signed(t) ? (max ? LLVMIntSGT : LLVMIntSLT)
                                           : (max ? LLVMIntUGT : LLVMIntULT);
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, p, a, b, ""), a, b, "");
}

static LLVMValueRef divide(Emit *e, Frame *f, bool rem, DType t, LLVMValueRef a, LLVMValueRef b) {
    if (emit_is_float(t))
        return rem ? LLVMBuildFRem(e->b, a, b, "") : LLVMBuildFDiv(e->b, a, b, "");
    if (t == DT_BOOL) {
        emit_unsupported(e, "division of bools");
        return a;
    }
    LLVMValueRef zero = LLVMBuildICmp(e->b, LLVMIntEQ, b, int_like(e, b, 0), "");
    fail_if(e, f, zero, KERNEL_DIVIDE);
    LLVMValueRef one = int_like(e, b, 1);
    if (!emit_is_signed(t)) {
        LLVMValueRef d = LLVMBuildSelect(e->b, zero, one, b, "");
        return rem ? LLVMBuildURem(e->b, a, d, "") : LLVMBuildUDiv(e->b, a, d, "");
    }
    LLVMValueRef minus = LLVMBuildICmp(e->b, LLVMIntEQ, b, int_like(e, b, -1), "");
    LLVMValueRef d = LLVMBuildSelect(e->b, LLVMBuildOr(e->b, zero, minus, ""), one, b, "");
    if (rem)
        return LLVMBuildSRem(e->b, a, d, "");
    LLVMValueRef q = LLVMBuildSDiv(e->b, a, d, "");
    return LLVMBuildSelect(e->b, minus, LLVMBuildNeg(e->b, a, ""), q, "");
}

static LLVMValueRef shift(Emit *e, Frame *f, bool left, DType t, LLVMValueRef a, LLVMValueRef b) {
    int bits = emit_bytes(t) * 8;
    bool sign = emit_is_signed(t);
    if (sign)
        fail_if(e, f, LLVMBuildICmp(e->b, LLVMIntSLT, b, int_like(e, b, 0), ""), KERNEL_SHIFT);
    LLVMValueRef in = LLVMBuildICmp(e->b, LLVMIntULT, b, int_like(e, b, bits), "");
    if (!left && sign) {
        LLVMValueRef by = LLVMBuildSelect(e->b, in, b, int_like(e, b, bits - 1), "");
        return LLVMBuildAShr(e->b, a, by, "");
    }
    LLVMValueRef by = LLVMBuildSelect(e->b, in, b, int_like(e, b, 0), "");
    LLVMValueRef r = left ? LLVMBuildShl(e->b, a, by, "") : LLVMBuildLShr(e->b, a, by, "");
    return LLVMBuildSelect(e->b, in, r, int_like(e, b, 0), "");
}

static LLVMValueRef compare(Emit *e, ScalarOp op, DType t, LLVMValueRef a, LLVMValueRef b) {
    static const LLVMRealPredicate real[] = {LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT,
                                             LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
    static const LLVMIntPredicate sint[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntSLT,
                                            LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
    static const LLVMIntPredicate uint[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntULT,
                                            LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
    if (emit_is_float(t))
        return LLVMBuildFCmp(e->b, real[op - SC_EQ], a, b, "");
    return LLVMBuildICmp(e->b, emit_is_signed(t) ? sint[op - SC_EQ] : uint[op - SC_EQ], a, b, "");
}

static LLVMValueRef cast(Emit *e, DType to, DType from, LLVMValueRef x) {
    int n = emit_lanes_of(x);
    LLVMTypeRef t = emit_vec(emit_value_type(e, to), n);
    if (to == from)
        return x;
    if (to == DT_BOOL) {
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(x));
        return emit_is_float(from) ? LLVMBuildFCmp(e->b, LLVMRealUNE, x, zero, "")
                                   : LLVMBuildICmp(e->b, LLVMIntNE, x, zero, "");
    }
    if (emit_is_float(to)) {
        if (!emit_is_float(from))
            return emit_is_signed(from) ? LLVMBuildSIToFP(e->b, x, t, "")
                                        : LLVMBuildUIToFP(e->b, x, t, "");
        return LLVMBuildFPCast(e->b, x, t, "");
    }
    if (emit_is_float(from)) {
        LLVMTypeRef types[2] = {t, LLVMTypeOf(x)};
        const char *fn = emit_is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
        return emit_intrinsic(e, fn, types, 2, &x, 1);
    }
    return LLVMBuildIntCast2(e->b, x, t, emit_is_signed(from), "");
}

/* The C library's function of one or two arguments; with cond, only where it holds, else
 * `otherwise`. */
static LLVMValueRef call(Emit *e, Frame *frame, DType t, MathFn fn, LLVMValueRef *args, int nargs,
                         LLVMValueRef cond, LLVMValueRef otherwise) {
    static const char *const names[] = {
#define X(id, name, n) #name,
        MATH_FNS(X)
#undef X
    };
    char name[24];
    snprintf(name, sizeof name, "%s%s", names[fn], t == DT_F32 ? "f" : "");
    LLVMTypeRef ft = t == DT_F32 ? e->f32 : e->f64, params[2] = {ft, ft};
    LLVMTypeRef type = LLVMFunctionType(ft, params, (unsigned)nargs, 0);
    LLVMValueRef f = LLVMGetNamedFunction(e->mod, name);
    if (!f)
        f = LLVMAddFunction(e->mod, name, type);
    int n = emit_lanes_of(args[0]);
    if (n == 1 && !cond)
        return LLVMBuildCall2(e->b, type, f, args, (unsigned)nargs, "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), slow = NULL, join = NULL;
    if (cond) {
        LLVMValueRef any = cond;
        if (n > 1) {
            if (frame->mask)
                any = cond = LLVMBuildAnd(e->b, cond, frame->mask, "");
            LLVMTypeRef ct = LLVMTypeOf(cond);
            any = emit_intrinsic(e, "llvm.vector.reduce.or", &ct, 1, &cond, 1);
        }
        slow = emit_block(e, "call");
        join = emit_block(e, "");
        LLVMBuildCondBr(e->b, any, slow, join);
        LLVMPositionBuilderAtEnd(e->b, slow);
    }
    LLVMValueRef v;
    if (n == 1) {
        v = LLVMBuildCall2(e->b, type, f, args, (unsigned)nargs, "");
    } else {
        /* Lane by lane through memory: small code, and the call is what costs. */
        LLVMValueRef in[2], out = emit_alloca(e, ft, n), flags = NULL;
        for (int k = 0; k < nargs; k++) {
            in[k] = emit_alloca(e, ft, n);
            LLVMBuildStore(e->b, args[k], in[k]);
        }
        if (otherwise)
            LLVMBuildStore(e->b, otherwise, out);
        if (cond) {
            flags = emit_alloca(e, e->i8, n);
            LLVMBuildStore(e->b, LLVMBuildZExt(e->b, cond, emit_vec(e->i8, n), ""), flags);
        }
        Loop l;
        emit_loop_begin(e, &l, emit_int(e, 0), emit_int(e, n), 1, true, NULL, 0);
        LLVMBasicBlockRef skip = NULL;
        if (cond) {
            LLVMValueRef c = LLVMBuildLoad2(e->b, e->i8,
                                            LLVMBuildGEP2(e->b, e->i8, flags, &l.i, 1, ""), "");
            LLVMBasicBlockRef yes = emit_block(e, "");
            skip = emit_block(e, "");
            LLVMBuildCondBr(e->b, LLVMBuildTrunc(e->b, c, e->i1, ""), yes, skip);
            LLVMPositionBuilderAtEnd(e->b, yes);
        }
        LLVMValueRef lane[2];
        for (int k = 0; k < nargs; k++)
            lane[k] = LLVMBuildLoad2(e->b, ft, LLVMBuildGEP2(e->b, ft, in[k], &l.i, 1, ""), "");
        LLVMValueRef one = LLVMBuildCall2(e->b, type, f, lane, (unsigned)nargs, "");
        LLVMBuildStore(e->b, one, LLVMBuildGEP2(e->b, ft, out, &l.i, 1, ""));
        if (cond) {
            LLVMBuildBr(e->b, skip);
            LLVMPositionBuilderAtEnd(e->b, skip);
        }
        emit_loop_end(e, &l, NULL);
        v = LLVMBuildLoad2(e->b, LLVMTypeOf(args[0]), out, "");
    }
    if (!cond)
        return v;
    slow = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, join);
    LLVMMoveBasicBlockAfter(join, slow);
    LLVMPositionBuilderAtEnd(e->b, join);
    LLVMValueRef both = LLVMBuildPhi(e->b, LLVMTypeOf(v), "");
    LLVMAddIncoming(both, &otherwise, &before, 1);
    LLVMAddIncoming(both, &v, &slow, 1);
    return both;
}

static LLVMValueRef param(Emit *e, DType t, int number) {
    bool fl = emit_is_float(t);
    size_t offset = (fl ? offsetof(KernelLaunch, fparams) : offsetof(KernelLaunch, iparams)) +
                    8 * (size_t)number;
    LLVMValueRef at = emit_int(e, (int64_t)offset);
    LLVMValueRef p = LLVMBuildGEP2(e->b, e->i8, e->launch, &at, 1, "");
    LLVMValueRef v = LLVMBuildLoad2(e->b, fl ? e->f64 : e->i64, p, "");
    if (fl)
        return t == DT_F32 ? LLVMBuildFPTrunc(e->b, v, e->f32, "") : v;
    if (t == DT_BOOL)
        return LLVMBuildICmp(e->b, LLVMIntNE, v, emit_int(e, 0), "");
    return LLVMBuildIntCast2(e->b, v, emit_value_type(e, t), 1, "");
}

static Val iota(Emit *e, Frame *f, int axis) {
    int a = e->sig->axis_of[axis];
    if (a == JIT_NO_AXIS)
        return (Val){.v = emit_int(e, 0)};
    LLVMValueRef i = LLVMBuildAdd(e->b, f->index[a], e->origin[a], "");
    if (a != f->vaxis || f->lanes == 1)
        return (Val){.v = i};
    LLVMValueRef v = emit_splat(e, i, f->lanes);
    return (Val){.v = LLVMBuildAdd(e->b, v, emit_iota(e, e->i64, f->lanes), ""), .vec = true};
}

/* Reads the integer or float immediate of LOAD_IF's `otherwise`. */
static LLVMValueRef otherwise(Emit *e, const Scalar *s) {
    if (emit_is_float(s->type))
        return LLVMConstReal(emit_value_type(e, s->type),
                             s->type == DT_F32 ? (double)(float)s->imm.f : s->imm.f);
    return konst(e, s->type, s);
}

static Val load(Emit *e, Frame *f, const Scalar *code, const Scalar *s) {
    Val *vals = f->vals;
    switch ((int)s->op) {
    case SC_LOAD: return emit_load(e, f, s->a, NULL, NULL);
    case SC_LOAD_AT: return emit_load(e, f, s->a, &vals[s->b], NULL);
    }
    /* A constant 0 is no offset, so that contiguous loads stay contiguous. */
    bool none = code[s->b].op == SC_CONST && code[s->b].imm.i == 0;
    Val v = emit_load(e, f, s->a, none ? NULL : &vals[s->b], &vals[s->c]);
    LLVMValueRef c = v.vec ? emit_vector_of(e, f, vals[s->c]) : vals[s->c].v;
    LLVMValueRef o = otherwise(e, s);
    if (v.vec)
        o = emit_splat(e, o, f->lanes);
    v.v = LLVMBuildSelect(e->b, c, v.v, o, "");
    return v;
}

/* What an instruction computes with; a load sees to its offset itself. */
static int operands(const Scalar *s) {
    bool load = s->op == SC_LOAD_AT || s->op == SC_LOAD_IF;
    return load ? 0 : scalar_reads(s).end;
}

void emit_instr(Emit *e, Frame *f, const Scalar *code, const uint32_t *dep, int i) {
    (void)dep;
    if (f->vals[i].v)
        return;
    const Scalar *s = &code[i];
    DType t = s->type;
    bool fl = emit_is_float(t);
    const int32_t *ids = s->at;
    int n = operands(s);
    LLVMValueRef x[3] = {NULL, NULL, NULL}, v = NULL;
    bool vec = false;
    for (int k = 0; k < n; k++)
        vec |= f->vals[ids[k]].vec;
    for (int k = 0; k < n; k++)
        x[k] = vec ? emit_vector_of(e, f, f->vals[ids[k]]) : f->vals[ids[k]].v;

    switch ((ScalarOp)s->op) {
    case SC_CONST: v = konst(e, t, s); break;
    case SC_PARAM: v = param(e, t, s->a); break;
    case SC_IOTA: f->vals[i] = iota(e, f, s->a); return;
    case SC_LOAD:
    case SC_LOAD_AT:
    case SC_LOAD_IF: f->vals[i] = load(e, f, code, s); return;
    case SC_ACC: f->vals[i] = (Val){.v = f->acc, .vec = f->acc_vec}; return;
    case SC_CHECK:
        fail_if(e, f, LLVMBuildNot(e->b, x[0], ""), (int32_t)s->imm.i);
        v = x[0];
        break;
    case SC_ADD:
        v = fl ? LLVMBuildFAdd(e->b, x[0], x[1], "") : LLVMBuildAdd(e->b, x[0], x[1], "");
        break;
    case SC_SUB:
        v = fl ? LLVMBuildFSub(e->b, x[0], x[1], "") : LLVMBuildSub(e->b, x[0], x[1], "");
        break;
    case SC_MUL:
        v = fl ? LLVMBuildFMul(e->b, x[0], x[1], "") : LLVMBuildMul(e->b, x[0], x[1], "");
        break;
    case SC_FMA: {
        LLVMTypeRef ft = LLVMTypeOf(x[0]);
        v = emit_intrinsic(e, "llvm.fma", &ft, 1, x, 3);
        break;
    }
    case SC_DIV: v = divide(e, f, false, t, x[0], x[1]); break;
    case SC_REM: v = divide(e, f, true, t, x[0], x[1]); break;
    case SC_NEG: v = fl ? LLVMBuildFNeg(e->b, x[0], "") : LLVMBuildNeg(e->b, x[0], ""); break;
    case SC_ABS:
        v = x[0];
        if (fl) {
            v = unary(e, "llvm.fabs", v);
        } else if (emit_is_signed(t)) {
            LLVMValueRef args[2] = {v, LLVMConstInt(e->i1, 0, 0)};
            LLVMTypeRef vt = LLVMTypeOf(v);
            v = emit_intrinsic(e, "llvm.abs", &vt, 1, args, 2);
        }
        break;
    case SC_SQRT: v = unary(e, "llvm.sqrt", x[0]); break;
    case SC_FLOOR: v = fl ? unary(e, "llvm.floor", x[0]) : x[0]; break;
    case SC_CEIL: v = fl ? unary(e, "llvm.ceil", x[0]) : x[0]; break;
    case SC_TRUNC: v = fl ? unary(e, "llvm.trunc", x[0]) : x[0]; break;
    case SC_ROUND: v = fl ? unary(e, "llvm.roundeven", x[0]) : x[0]; break;
    case SC_MIN: v = min_max(e, false, t, x[0], x[1]); break;
    case SC_MAX: v = min_max(e, true, t, x[0], x[1]); break;
    case SC_AND: v = LLVMBuildAnd(e->b, x[0], x[1], ""); break;
    case SC_OR: v = LLVMBuildOr(e->b, x[0], x[1], ""); break;
    case SC_XOR: v = LLVMBuildXor(e->b, x[0], x[1], ""); break;
    case SC_NOT: v = LLVMBuildNot(e->b, x[0], ""); break;
    case SC_SHL: v = shift(e, f, true, t, x[0], x[1]); break;
    case SC_SHR: v = shift(e, f, false, t, x[0], x[1]); break;
    case SC_EQ:
    case SC_NE:
    case SC_LT:
    case SC_LE:
    case SC_GT:
    case SC_GE: v = compare(e, s->op, t, x[0], x[1]); break;
    case SC_SELECT: v = LLVMBuildSelect(e->b, x[0], x[1], x[2], ""); break;
    case SC_CAST: v = cast(e, t, s->from, x[0]); break;
    case SC_BITS:
        v = LLVMBuildBitCast(e->b, x[0], emit_vec(emit_value_type(e, t), emit_lanes_of(x[0])), "");
        break;
    case SC_CALL1: v = call(e, f, t, (MathFn)s->imm.i, x, 1, NULL, NULL); break;
    case SC_CALL2: v = call(e, f, t, (MathFn)s->imm.i, x, 2, NULL, NULL); break;
    case SC_CALL_IF: v = call(e, f, t, (MathFn)s->imm.i, x, 1, x[1], x[2]); break;
    case SCALAR_OP_COUNT: break;
    }
    f->vals[i] = (Val){.v = v, .vec = vec};
}

void emit_code(Emit *e, Frame *f, const Scalar *code, const uint32_t *dep, int n) {
    for (int i = 0; i < n; i++)
        emit_instr(e, f, code, dep, i);
}

void emit_hoist(Emit *e, Frame *f, const Scalar *code, const uint32_t *dep, int n, uint32_t inner) {
    for (int i = 0; i < n; i++)
        if (!(dep[i] & inner))
            emit_instr(e, f, code, dep, i);
    if (f->lanes == 1)
        return;
    /* Scalars that vectors will need are spread here, once. */
    for (int i = 0; i < n; i++) {
        if (!(dep[i] & inner))
            continue;
        int count = operands(&code[i]);
        for (int k = 0; k < count; k++) {
            Val *v = &f->vals[code[i].at[k]];
            if (v->v && !v->vec && !v->splat && !LLVMIsConstant(v->v) && dep[i] >> f->vaxis & 1)
                v->splat = emit_splat(e, v->v, f->lanes);
        }
    }
}

/* ---- folds ----------------------------------------------------------------------------------- */

LLVMValueRef emit_combine(Emit *e, Combine c, DType t, LLVMValueRef acc, LLVMValueRef v) {
    bool fl = emit_is_float(t);
    switch (c) {
    case COMBINE_NONE: return v;
    case COMBINE_SUM:
        if (t == DT_BOOL)
            return LLVMBuildOr(e->b, acc, v, "");
        return fl ? LLVMBuildFAdd(e->b, acc, v, "") : LLVMBuildAdd(e->b, acc, v, "");
    case COMBINE_PROD:
        if (t == DT_BOOL)
            return LLVMBuildAnd(e->b, acc, v, "");
        return fl ? LLVMBuildFMul(e->b, acc, v, "") : LLVMBuildMul(e->b, acc, v, "");
    case COMBINE_MAX: return min_max(e, true, t, acc, v);
    case COMBINE_MIN: return min_max(e, false, t, acc, v);
    case COMBINE_ALL:
    case COMBINE_ANY:
        if (t != DT_BOOL)
            emit_unsupported(e, "`all` and `any` of another dtype than bool");
        return c == COMBINE_ALL ? LLVMBuildAnd(e->b, acc, v, "") : LLVMBuildOr(e->b, acc, v, "");
    case COMBINE_ARGMAX:
    case COMBINE_ARGMIN: break;
    }
    return v;
}

LLVMValueRef emit_unit(Emit *e, Combine c, DType t) {
    LLVMTypeRef vt = emit_value_type(e, t);
    bool fl = emit_is_float(t);
    int bits = emit_bytes(t) * 8;
    switch (c) {
    case COMBINE_NONE:
    case COMBINE_SUM:
    case COMBINE_ANY: return LLVMConstNull(vt);
    case COMBINE_PROD:
    case COMBINE_ALL: return fl ? LLVMConstReal(vt, 1) : LLVMConstInt(vt, 1, 0);
    case COMBINE_MAX:
    case COMBINE_ARGMAX:
        if (fl)
            return LLVMConstReal(vt, -INFINITY);
        return LLVMConstInt(vt, emit_is_signed(t) ? 1ull << (bits - 1) : 0, 0);
    case COMBINE_MIN:
    case COMBINE_ARGMIN:
        if (fl)
            return LLVMConstReal(vt, INFINITY);
        return emit_is_signed(t) ? LLVMConstInt(vt, (1ull << (bits - 1)) - 1, 0)
                                 : LLVMConstAllOnes(vt);
    }
    return LLVMConstNull(vt);
}

LLVMValueRef emit_arg_beats(Emit *e, LLVMValueRef v, LLVMValueRef i, LLVMValueRef acc,
                            LLVMValueRef acc_i, DType t) {
    bool max = e->r->combine == COMBINE_ARGMAX;
    LLVMValueRef index = LLVMBuildICmp(e->b, e->r->last ? LLVMIntSGT : LLVMIntSLT, i, acc_i, "");
    if (!emit_is_float(t)) {
        LLVMValueRef more = compare(e, max ? SC_GT : SC_LT, t, v, acc);
        LLVMValueRef same = LLVMBuildICmp(e->b, LLVMIntEQ, v, acc, "");
        return LLVMBuildOr(e->b, more, LLVMBuildAnd(e->b, same, index, ""), "");
    }
    LLVMValueRef v_nan = LLVMBuildFCmp(e->b, LLVMRealUNO, v, v, "");
    LLVMValueRef acc_nan = LLVMBuildFCmp(e->b, LLVMRealUNO, acc, acc, "");
    LLVMValueRef more = LLVMBuildFCmp(e->b, max ? LLVMRealOGT : LLVMRealOLT, v, acc, "");
    LLVMValueRef same = LLVMBuildFCmp(e->b, LLVMRealOEQ, v, acc, "");
    same = LLVMBuildOr(e->b, same, LLVMBuildAnd(e->b, v_nan, acc_nan, ""), "");
    LLVMValueRef newly = LLVMBuildAnd(e->b, v_nan, LLVMBuildNot(e->b, acc_nan, ""), "");
    more = LLVMBuildOr(e->b, more, newly, "");
    return LLVMBuildOr(e->b, more, LLVMBuildAnd(e->b, same, index, ""), "");
}

DType emit_result_type(Emit *e, int k) { return scalar_result(&e->r->body[e->r->results[k]]); }
