/* SPDX-License-Identifier: Apache-2.0 */
/* FORM_SCALAR: one element at a time, for every kind of recipe; what the other forms do not do
 * ends here. FORM_LANES: scans whose lanes run along another axis than the scan. */
#include "jit/emit.h"

Val emit_epilogue(Emit *e, Frame *f, LLVMValueRef acc, bool vec, DType *type) {
    const Recipe *r = e->r;
    if (!r->nepilogue)
        return (Val){.v = acc, .vec = vec};
    Frame g = *f;
    g.acc = acc;
    g.acc_vec = vec;
    g.vals = emit_alloc(e, (size_t)r->nepilogue * sizeof *g.vals);
    emit_code(e, &g, r->epilogue, e->epilogue_dep, r->nepilogue);
    int last = r->nepilogue - 1;
    *type = scalar_result(&r->epilogue[last]);
    return g.vals[last];
}

void emit_finish(Emit *e, Frame *f, LLVMValueRef acc, bool vec, DType type) {
    for (int p = 0; p < e->nptr; p++)
        f->loaded[p] = NULL; /* squares of a turned operand belong to the body */
    Val v = emit_epilogue(e, f, acc, vec, &type);
    emit_store(e, f, e->out, v, type);
}

static bool is_arg(const Recipe *r) {
    return r->combine == COMBINE_ARGMAX || r->combine == COMBINE_ARGMIN;
}

/* Stored in an accumulator's memory: bool as a byte. */
static LLVMValueRef acc_to_memory(Emit *e, LLVMValueRef v, DType t) {
    return t == DT_BOOL ? LLVMBuildZExt(e->b, v, e->i8, "") : v;
}
static LLVMValueRef acc_from_memory(Emit *e, LLVMValueRef v, DType t) {
    return t == DT_BOOL ? LLVMBuildTrunc(e->b, v, e->i1, "") : v;
}

/* Folds all reduction axes of the frame's output into one value. */
static LLVMValueRef fold(Emit *e, Frame *par) {
    const Recipe *r = e->r;
    DType t = r->acc_type;
    bool arg = is_arg(r), product = r->kind == RECIPE_PRODUCT;
    int npar = e->sig->npar, nred = e->sig->nred, naccs = product || arg ? 1 : 16;
    LLVMTypeRef at = t == DT_BOOL ? e->i8 : emit_value_type(e, t);
    LLVMValueRef accs = NULL;
    LLVMValueRef unit = product ? LLVMConstNull(emit_value_type(e, t))
                                : emit_unit(e, r->combine, t);
    /* Carried: the accumulator or flat index into the table of sixteen; ARG…: index and flat. */
    LLVMValueRef state[3] = {emit_int(e, 0), NULL, NULL};
    int nstate = 1;
    if (naccs == 16) {
        accs = emit_alloca(e, at, 16);
        for (int i = 0; i < 16; i++) {
            LLVMValueRef k = emit_int(e, i);
            LLVMBuildStore(e->b, acc_to_memory(e, unit, t),
                           LLVMBuildGEP2(e->b, at, accs, &k, 1, ""));
        }
    } else {
        state[0] = unit;
    }
    if (arg) {
        state[1] = emit_int(e, r->last ? -1 : INT64_MAX);
        state[2] = emit_int(e, 0);
        nstate = 3;
    }
    Frame f;
    emit_frame_copy(e, &f, par);
    Loop loops[RECIPE_MAX_AXES];
    Strips strips;
    for (int k = 0; k < nred; k++) {
        int a = npar + k;
        if (k < nred - 1) {
            emit_loop_begin(e, &loops[k], emit_int(e, 0), e->extent[a], 1, false, state, nstate);
            emit_frame_enter(e, &f, a, loops[k].i);
        } else {
            emit_strips_begin(e, &strips, e->extent[a], 1, false, state, nstate);
            emit_frame_enter(e, &f, a, strips.inner.i);
        }
    }
    if (product) {
        const Scalar *mul = &r->body[r->results[0]];
        emit_code(e, &f, r->body, e->body_dep, r->results[0]);
        LLVMValueRef args[3] = {f.vals[mul->a].v, f.vals[mul->b].v, state[0]};
        if (emit_is_float(t)) {
            LLVMTypeRef ft = LLVMTypeOf(args[0]);
            state[0] = emit_intrinsic(e, "llvm.fma", &ft, 1, args, 3);
        } else {
            state[0] = LLVMBuildAdd(e->b, state[0], LLVMBuildMul(e->b, args[0], args[1], ""), "");
        }
    } else {
        emit_code(e, &f, r->body, e->body_dep, r->nbody);
        LLVMValueRef v = f.vals[r->results[0]].v, flat = state[nstate - 1];
        if (arg) {
            LLVMValueRef better = emit_arg_beats(e, v, flat, state[0], state[1], t);
            state[0] = LLVMBuildSelect(e->b, better, v, state[0], "");
            state[1] = LLVMBuildSelect(e->b, better, flat, state[1], "");
        } else {
            LLVMValueRef k = LLVMBuildAnd(e->b, flat, emit_int(e, 15), "");
            LLVMValueRef p = LLVMBuildGEP2(e->b, at, accs, &k, 1, "");
            LLVMValueRef acc = acc_from_memory(e, LLVMBuildLoad2(e->b, at, p, ""), t);
            acc = emit_combine(e, r->combine, t, acc, v);
            LLVMBuildStore(e->b, acc_to_memory(e, acc, t), p);
        }
        state[nstate - 1] = LLVMBuildAdd(e->b, flat, emit_int(e, 1), "");
    }
    for (int k = nred; k-- > 0;) {
        if (k < nred - 1)
            emit_loop_end(e, &loops[k], state);
        else
            emit_strips_end(e, &strips, state);
    }
    if (naccs == 1)
        return arg ? state[1] : state[0];
    LLVMValueRef a[16];
    for (int i = 0; i < 16; i++) {
        LLVMValueRef k = emit_int(e, i);
        a[i] = LLVMBuildLoad2(e->b, at, LLVMBuildGEP2(e->b, at, accs, &k, 1, ""), "");
        a[i] = acc_from_memory(e, a[i], t);
    }
    for (int s = 8; s > 0; s /= 2)
        for (int i = 0; i < s; i++)
            a[i] = emit_combine(e, r->combine, t, a[i], a[i + s]);
    return a[0];
}

/* Takes one step and gives its result. */
static LLVMValueRef scan_value(Emit *e, Frame *f, LLVMValueRef *acc, bool vec) {
    const Recipe *r = e->r;
    emit_code(e, f, r->body, e->body_dep, r->nbody);
    Val v = f->vals[r->results[0]];
    LLVMValueRef x = vec ? emit_vector_of(e, f, v) : v.v, before = *acc;
    *acc = emit_combine(e, r->combine, r->acc_type, before, x);
    return r->last ? before : *acc;
}

static void scan_step(Emit *e, Frame *f, LLVMValueRef *acc, bool vec) {
    LLVMValueRef v = scan_value(e, f, acc, vec);
    emit_store(e, f, e->r->noperands, (Val){.v = v, .vec = vec}, e->r->acc_type);
}

/* out[offset] = combine(out[offset], value) */
static void scatter(Emit *e, Frame *f) {
    const Recipe *r = e->r;
    DType to = r->out_types[0], t = emit_result_type(e, 0);
    emit_code(e, f, r->body, e->body_dep, r->nbody);
    LLVMValueRef v = f->vals[r->results[0]].v, at = f->vals[r->results[1]].v;
    int out = r->noperands;
    at = LLVMBuildMul(e->b, at, emit_int(e, emit_bytes(to)), "");
    Frame g = *f;
    g.at[out] = LLVMBuildGEP2(e->b, e->i8, f->at[out], &at, 1, "");
    if (r->combine != COMBINE_NONE) {
        LLVMValueRef old = LLVMBuildLoad2(e->b, emit_stored_type(e, to), g.at[out], "");
        LLVMSetAlignment(old, (unsigned)emit_bytes(to));
        old = emit_widen(e, old, to);
        if (LLVMTypeOf(old) != LLVMTypeOf(v)) {
            emit_unsupported(e, "scatter of another dtype than the output's");
            return;
        }
        v = emit_combine(e, r->combine, t, old, v);
    }
    emit_store(e, &g, out, (Val){.v = v}, t);
}

void emit_scalar_form(Emit *e) {
    const Recipe *r = e->r;
    bool folds = r->kind == RECIPE_REDUCE || r->kind == RECIPE_PRODUCT;
    int npar = e->sig->npar, last = npar - 1;
    Frame f;
    emit_frame_init(e, &f);
    Loop loops[RECIPE_MAX_AXES];
    Strips strips;
    LLVMValueRef acc = NULL;
    bool scan = r->kind == RECIPE_SCAN;
    for (int a = 0; a < npar; a++) {
        if (a < last || folds) {
            emit_loop_begin(e, &loops[a], emit_int(e, 0), e->extent[a], 1, true, NULL, 0);
            emit_frame_enter(e, &f, a, loops[a].i);
        } else {
            acc = scan ? emit_unit(e, r->combine, r->acc_type) : NULL;
            emit_strips_begin(e, &strips, e->extent[a], 1, true, &acc, scan);
            emit_frame_enter(e, &f, a, strips.inner.i);
        }
    }
    switch (r->kind) {
    case RECIPE_MAP:
        emit_code(e, &f, r->body, e->body_dep, r->nbody);
        for (int k = 0; k < r->noutputs; k++)
            emit_store(e, &f, r->noperands + k, f.vals[r->results[k]], emit_result_type(e, k));
        break;
    case RECIPE_REDUCE:
    case RECIPE_PRODUCT:
        emit_finish(e, &f, fold(e, &f), false, is_arg(r) ? DT_I64 : r->acc_type);
        break;
    case RECIPE_SCAN:
        if (npar == 0)
            acc = emit_unit(e, r->combine, r->acc_type);
        scan_step(e, &f, &acc, false);
        break;
    case RECIPE_SCATTER: scatter(e, &f); break;
    case RECIPE_ROWS: break; /* has a form of its own */
    }
    for (int a = npar; a-- > 0;) {
        if (a < last || folds)
            emit_loop_end(e, &loops[a], NULL);
        else
            emit_strips_end(e, &strips, &acc);
    }
}

/* Steps of the scan, as many as there are lanes, of which results lie one after the other: squares are turned in
 * registers on their way from and to memory, since gathering and scattering elements took twenty times as long. */
static void scan_square(Emit *e, const Frame *block, int scan, LLVMValueRef first,
                        LLVMValueRef *acc) {
    const Recipe *r = e->r;
    int lanes = block->lanes, out = r->noperands;
    Frame *f = emit_alloc(e, sizeof *f * (size_t)lanes);
    Val *vals = emit_alloc(e, sizeof *vals * (size_t)lanes);
    LLVMValueRef *vectors = emit_alloc(e, sizeof *vectors * (size_t)lanes);
    for (int k = 0; k < lanes; k++) {
        emit_frame_copy(e, &f[k], block);
        emit_frame_enter(e, &f[k], scan, LLVMBuildAdd(e->b, first, emit_int(e, k), ""));
    }
    for (int i = 0; i < r->nbody; i++) {
        int p = r->body[i].a;
        if (r->body[i].op != SC_LOAD || f[0].loaded[p] ||
            !emit_lies_along(e, p, scan, block->vaxis))
            continue;
        emit_load_turned(e, f, lanes, p, NULL, NULL, vectors);
        for (int k = 0; k < lanes; k++)
            f[k].loaded[p] = vectors[k];
    }
    for (int k = 0; k < lanes; k++)
        vals[k] = (Val){.v = scan_value(e, &f[k], acc, true), .vec = true};
    emit_store_turned(e, f, lanes, out, vals, r->acc_type, NULL);
}

/* The scans of one vector of places. */
static void scan_block(Emit *e, Frame *f, int scan) {
    const Recipe *r = e->r;
    LLVMValueRef acc = emit_splat(e, emit_unit(e, r->combine, r->acc_type), f->lanes);
    LLVMValueRef n = e->extent[scan], full = emit_int(e, 0);
    Loop rest;
    Frame g;
    emit_hoist(e, f, r->body, e->body_dep, r->nbody, 1u << scan);
    if (emit_lies_along(e, r->noperands, scan, f->vaxis)) {
        Strips squares;
        full = LLVMBuildAnd(e->b, n, emit_int(e, -f->lanes), "");
        emit_strips_begin(e, &squares, full, f->lanes, false, &acc, 1);
        scan_square(e, f, scan, squares.inner.i, &acc);
        emit_strips_end(e, &squares, &acc);
        emit_loop_begin(e, &rest, full, n, 1, false, &acc, 1);
        emit_frame_copy(e, &g, f);
        emit_frame_enter(e, &g, scan, rest.i);
        scan_step(e, &g, &acc, true);
        emit_loop_end(e, &rest, &acc);
        return;
    }
    Strips strips;
    emit_strips_begin(e, &strips, n, 1, true, &acc, 1);
    emit_frame_copy(e, &g, f);
    emit_frame_enter(e, &g, scan, strips.inner.i);
    scan_step(e, &g, &acc, true);
    emit_strips_end(e, &strips, &acc);
}

/* Lanes along the last but one axis; the scan along the last is a loop with a vector carried. */
void emit_scan_lanes(Emit *e) {
    int scan = e->sig->npar - 1, v = scan - 1, lanes = emit_pick_lanes(e, v);
    if (lanes > 16)
        lanes = 16;
    LLVMValueRef n = e->extent[v], full = LLVMBuildAnd(e->b, n, emit_int(e, -lanes), "");
    Frame root, f;
    emit_frame_init(e, &root);
    Loop loops[RECIPE_MAX_AXES], blocks;
    for (int a = 0; a < v; a++) {
        emit_loop_begin(e, &loops[a], emit_int(e, 0), e->extent[a], 1, true, NULL, 0);
        emit_frame_enter(e, &root, a, loops[a].i);
    }
    root.vaxis = v;
    root.lanes = lanes;
    for (int edge = 0; edge < 2; edge++) {
        LLVMValueRef zero = emit_int(e, 0);
        emit_loop_begin(e, &blocks, edge ? full : zero, edge ? n : full, lanes, false, NULL, 0);
        emit_frame_copy(e, &f, &root);
        emit_frame_enter(e, &f, v, blocks.i);
        if (edge)
            f.mask = emit_mask(e, LLVMBuildSub(e->b, n, blocks.i, ""), lanes);
        scan_block(e, &f, scan);
        emit_loop_end(e, &blocks, NULL);
    }
    for (int a = v; a-- > 0;)
        emit_loop_end(e, &loops[a], NULL);
}
