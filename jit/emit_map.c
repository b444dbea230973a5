/* SPDX-License-Identifier: Apache-2.0 */
/* FORM_MAP: lanes along the last parallel axis. With masked memory (AVX-512) a long body is one
 * masked loop, unless it runs often; a short one, whose mask would cost, is a plain loop and a masked tail; without, the
 * tail is a loop of single elements. FORM_SWAP: see Note [Turned operands]. */
#include "jit/emit.h"

enum { SHORT_BODY = 64 };

/* Outputs that lie beside each other are turned in registers, as many as a vector has lanes at a time: elements stored
 * one by one take thrice as long. */
static void body_and_stores(Emit *e, Frame *f) {
    const Recipe *r = e->r;
    emit_code(e, f, r->body, e->body_dep, r->nbody);
    Val vals[JIT_MAX_PTRS];
    for (int k = 0; k < r->noutputs; k++)
        vals[k] = f->vals[r->results[k]];
    for (int k = 0, n; k < r->noutputs; k += n) {
        DType type = emit_result_type(e, k);
        for (n = 1; k + n < r->noutputs && n < f->lanes && emit_result_type(e, k + n) == type;)
            n++;
        if (e->sig->flags & SIG_BESIDE && n > 1)
            emit_store_turned(e, f, n, e->out + k, vals + k, type, NULL);
        else
            for (int i = k; i < k + n; i++)
                emit_store(e, f, e->out + i, vals[i], type);
    }
}

/* So many whole vectors from place `first` on, which take each instruction together. */
static void several_vectors(Emit *e, const Frame *row, int v, LLVMValueRef first, int turn) {
    const Recipe *r = e->r;
    Frame *f = emit_alloc(e, sizeof *f * (size_t)turn);
    for (int k = 0; k < turn; k++) {
        LLVMValueRef by = emit_int(e, k * row->lanes);
        emit_frame_copy(e, &f[k], row);
        emit_frame_enter(e, &f[k], v, LLVMBuildAdd(e->b, first, by, ""));
    }
    for (int i = 0; i < r->nbody; i++)
        for (int k = 0; k < turn; k++)
            emit_instr(e, &f[k], r->body, e->body_dep, i);
    for (int k = 0; k < turn; k++)
        body_and_stores(e, &f[k]);
}

void emit_map_row(Emit *e, Frame *row, int v) {
    const Recipe *r = e->r;
    int lanes = emit_pick_lanes(e, v);
    bool masks = e->sig->flags & SIG_MASKS;
    LLVMValueRef n = e->extent[v];
    Frame f;
    row->vaxis = v;
    row->lanes = lanes;
    emit_hoist(e, row, r->body, e->body_dep, r->nbody, 1u << v);

    Strips strips;
    bool several = e->sig->flags & SIG_UNROLL;
    if (masks && r->nbody > SHORT_BODY && !several) {
        emit_strips_begin(e, &strips, n, lanes, true, NULL, 0);
        emit_frame_copy(e, &f, row);
        emit_frame_enter(e, &f, v, strips.inner.i);
        f.mask = emit_mask(e, LLVMBuildSub(e->b, n, strips.inner.i, ""), lanes);
        body_and_stores(e, &f);
        emit_strips_end(e, &strips, NULL);
    } else {
        int turn = several ? JIT_UNROLL : 1, wide = turn * lanes;
        LLVMValueRef full = LLVMBuildAnd(e->b, n, emit_int(e, -wide), "");
        emit_strips_begin(e, &strips, full, wide, false, NULL, 0);
        several_vectors(e, row, v, strips.inner.i, turn);
        emit_strips_end(e, &strips, NULL);
        if (turn > 1 && !masks) {
            Loop whole;
            LLVMValueRef begin = full;
            full = LLVMBuildAnd(e->b, n, emit_int(e, -lanes), "");
            emit_loop_begin(e, &whole, begin, full, lanes, false, NULL, 0);
            several_vectors(e, row, v, whole.i, 1);
            emit_loop_end(e, &whole, NULL);
        }
        Loop tail;
        emit_loop_begin(e, &tail, full, n, masks ? lanes : 1, false, NULL, 0);
        emit_frame_copy(e, &f, row);
        emit_frame_enter(e, &f, v, tail.i);
        if (masks)
            f.mask = emit_mask(e, LLVMBuildSub(e->b, n, tail.i, ""), lanes);
        else
            f.lanes = 1;
        body_and_stores(e, &f);
        emit_loop_end(e, &tail, NULL);
    }
}

void emit_map(Emit *e) {
    int v = e->sig->npar - 1;
    Frame row;
    emit_frame_init(e, &row);
    Loop loops[RECIPE_MAX_AXES];
    for (int a = 0; a < v; a++) {
        emit_loop_begin(e, &loops[a], emit_int(e, 0), e->extent[a], 1, true, NULL, 0);
        emit_frame_enter(e, &row, a, loops[a].i);
    }
    emit_map_row(e, &row, v);
    for (int a = v; a-- > 0;)
        emit_loop_end(e, &loops[a], NULL);
}

/* Note [Turned operands]. A transposed operand is contiguous along another parallel axis, w, than
 * the output. A square of lanes × lanes elements is read by rows along w and turned in registers,
 * so that memory is only touched in whole vectors. Edges that fill no square go element by element
 * through the masks: the row loads are masked along w, the stores along v. */

/* One block of lanes by lanes elements, the first at (wi, vi). Whole: none of them is beyond an edge. */
static void swap_block(Emit *e, const Frame *root, LLVMValueRef wi, LLVMValueRef vi, int lanes,
                       bool whole) {
    const Recipe *r = e->r;
    int v = e->sig->npar - 1, w = v - 1;
    LLVMValueRef mask_w = NULL, mask_v = NULL, last_v = NULL;
    if (!whole) {
        mask_w = emit_mask(e, LLVMBuildSub(e->b, e->extent[w], wi, ""), lanes);
        mask_v = emit_mask(e, LLVMBuildSub(e->b, e->extent[v], vi, ""), lanes);
        last_v = LLVMBuildSub(e->b, e->extent[v], emit_int(e, 1), "");
    }
    /* Rows of the turned operands: row k is at v + k (kept inside), lanes along w. */
    LLVMValueRef *blocks[JIT_MAX_PTRS] = {NULL};
    for (int p = 0; p < r->noperands; p++) {
        if (!emit_lies_along(e, p, w, v))
            continue;
        blocks[p] = emit_alloc(e, sizeof(LLVMValueRef) * 16);
        LLVMTypeRef st = emit_stored_type(e, r->in_types[p]), vt = emit_vec(st, lanes);
        unsigned align = (unsigned)emit_bytes(r->in_types[p]);
        for (int k = 0; k < lanes; k++) {
            LLVMValueRef at = LLVMBuildAdd(e->b, vi, emit_int(e, k), "");
            if (!whole)
                at = emit_min(e, at, last_v);
            LLVMValueRef by = LLVMBuildMul(e->b, at, e->stride[p][v], "");
            LLVMValueRef q = LLVMBuildGEP2(e->b, e->i8, root->at[p], &by, 1, "");
            q = LLVMBuildGEP2(e->b, st, q, &wi, 1, "");
            if (whole) {
                blocks[p][k] = LLVMBuildLoad2(e->b, vt, q, "");
                LLVMSetAlignment(blocks[p][k], align);
                continue;
            }
            LLVMTypeRef types[2] = {vt, e->ptr};
            LLVMValueRef args[4] = {q, LLVMConstInt(e->i32, align, 0), mask_w, LLVMConstNull(vt)};
            blocks[p][k] = emit_intrinsic(e, "llvm.masked.load", types, 2, args, 4);
        }
        emit_transpose(e, blocks[p], lanes);
    }
    LLVMBasicBlockRef end = emit_block(e, "");
    for (int k = 0; k < lanes; k++) {
        LLVMValueRef i = LLVMBuildAdd(e->b, wi, emit_int(e, k), "");
        if (k > 0 && !whole) {
            LLVMBasicBlockRef next = emit_block(e, "");
            LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, i, e->extent[w], ""), next, end);
            LLVMPositionBuilderAtEnd(e->b, next);
        }
        Frame f;
        emit_frame_copy(e, &f, root);
        emit_frame_enter(e, &f, w, i);
        emit_frame_enter(e, &f, v, vi);
        f.vaxis = v;
        f.lanes = lanes;
        f.mask = mask_v;
        for (int p = 0; p < r->noperands; p++)
            if (blocks[p])
                f.loaded[p] = blocks[p][k];
        body_and_stores(e, &f);
    }
    LLVMBuildBr(e->b, end);
    LLVMMoveBasicBlockAfter(end, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, end);
}

void emit_swap(Emit *e) {
    int v = e->sig->npar - 1, w = v - 1, lanes = emit_pick_lanes(e, v);
    if (lanes > 16)
        lanes = 16;
    LLVMValueRef zero = emit_int(e, 0);
    Frame root;
    emit_frame_init(e, &root);
    Loop loops[RECIPE_MAX_AXES], ws, vs;
    for (int a = 0; a < w; a++) {
        emit_loop_begin(e, &loops[a], zero, e->extent[a], 1, true, NULL, 0);
        emit_frame_enter(e, &root, a, loops[a].i);
    }
    emit_loop_begin(e, &ws, zero, e->extent[w], lanes, true, NULL, 0);
    emit_poll(e);
    emit_loop_begin(e, &vs, zero, e->extent[v], lanes, true, NULL, 0);
    if (e->sig->flags & SIG_MASKS) {
        swap_block(e, &root, ws.i, vs.i, lanes, false);
    } else {
        /* Elsewhere a masked store takes as long as the rest of a row: whole blocks go without. */
        LLVMBasicBlockRef whole = emit_block(e, ""), edge = emit_block(e, "");
        LLVMBasicBlockRef next = emit_block(e, "");
        LLVMValueRef most = emit_int(e, lanes);
        LLVMValueRef w_in = LLVMBuildICmp(e->b, LLVMIntSGE,
                                          LLVMBuildSub(e->b, e->extent[w], ws.i, ""), most, "");
        LLVMValueRef v_in = LLVMBuildICmp(e->b, LLVMIntSGE,
                                          LLVMBuildSub(e->b, e->extent[v], vs.i, ""), most, "");
        LLVMBuildCondBr(e->b, LLVMBuildAnd(e->b, w_in, v_in, ""), whole, edge);
        for (int k = 0; k < 2; k++) {
            LLVMPositionBuilderAtEnd(e->b, k ? edge : whole);
            swap_block(e, &root, ws.i, vs.i, lanes, !k);
            LLVMBuildBr(e->b, next);
        }
        LLVMMoveBasicBlockAfter(next, LLVMGetInsertBlock(e->b));
        LLVMPositionBuilderAtEnd(e->b, next);
    }
    emit_loop_end(e, &vs, NULL);
    emit_loop_end(e, &ws, NULL);
    for (int a = w; a-- > 0;)
        emit_loop_end(e, &loops[a], NULL);
}
