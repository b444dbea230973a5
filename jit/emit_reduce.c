/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions. The bits are those of sixteen accumulators, fed round robin and combined as a fixed
 * tree (ops/recipe/recipe.h), in all forms:
 *
 *  FORM_INNER  lane l of one vector of sixteen is accumulator l. When the reduction has several
 *              axes and a row is no multiple of sixteen, the next row starts at another lane: its
 *              first vector begins that many elements before the row, masked.
 *  FORM_OUTER  lanes are outputs; the sixteen accumulators of each are rows of a small table.
 *  FORM_FEW    lanes are outputs; the reduction is written out (jit/emit_few.c). */
#include "jit/emit.h"

enum { ACCUMULATORS = 16 };

static LLVMValueRef first_lanes(Emit *e, LLVMValueRef v, int begin, int n) {
    LLVMValueRef index[ACCUMULATORS];
    for (int i = 0; i < n; i++)
        index[i] = LLVMConstInt(e->i32, (unsigned)(begin + i), 0);
    return LLVMBuildShuffleVector(e->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(index, (unsigned)n), "");
}

void emit_join(Emit *e, LLVMValueRef *acc, LLVMValueRef v, LLVMValueRef flat) {
    const Recipe *r = e->r;
    DType t = r->acc_type;
    if (!emit_is_arg(r)) {
        acc[0] = emit_combine(e, r->combine, t, acc[0], v);
        return;
    }
    LLVMValueRef better = emit_arg_beats(e, v, flat, acc[0], acc[1], t);
    acc[0] = LLVMBuildSelect(e->b, better, v, acc[0], "");
    acc[1] = LLVMBuildSelect(e->b, better, flat, acc[1], "");
}

/* One vector of elements into the accumulators. state: acc, its index (ARG…), flat. */
static void step(Emit *e, Frame *f, LLVMValueRef *state, LLVMValueRef flat) {
    const Recipe *r = e->r;
    int nacc = 1 + emit_is_arg(r);
    emit_code(e, f, r->body, e->body_dep, r->nbody);
    LLVMValueRef v = emit_vector_of(e, f, f->vals[r->results[0]]), at = NULL, next[2];
    if (emit_is_arg(r))
        at = LLVMBuildAdd(e->b, emit_splat(e, flat, ACCUMULATORS),
                          emit_iota(e, e->i64, ACCUMULATORS), "");
    for (int i = 0; i < nacc; i++)
        next[i] = state[i];
    emit_join(e, next, v, at);
    for (int i = 0; i < nacc; i++)
        state[i] = f->mask ? LLVMBuildSelect(e->b, f->mask, next[i], state[i], "") : next[i];
}

static LLVMValueRef fold_lanes(Emit *e, const Frame *par) {
    const Recipe *r = e->r;
    int npar = e->sig->npar, nred = e->sig->nred, in = npar + nred - 1, nacc = 1 + emit_is_arg(r);
    LLVMValueRef state[3], n = e->extent[in], zero = emit_int(e, 0);
    state[0] = emit_splat(e, emit_unit(e, r->combine, r->acc_type), ACCUMULATORS);
    if (emit_is_arg(r))
        state[1] = emit_splat(e, emit_int(e, r->last ? -1 : INT64_MAX), ACCUMULATORS);
    state[nacc] = zero;
    Frame row, f;
    emit_frame_copy(e, &row, par);
    Loop loops[RECIPE_MAX_AXES], blocks;
    for (int a = npar; a < in; a++) {
        emit_loop_begin(e, &loops[a], zero, e->extent[a], 1, true, state, nacc + 1);
        emit_frame_enter(e, &row, a, loops[a].i);
    }
    row.lanes = ACCUMULATORS;
    row.vaxis = in;
    emit_hoist(e, &row, r->body, e->body_dep, r->nbody, 1u << in);
    if (nred == 1) {
        LLVMValueRef full = LLVMBuildAnd(e->b, n, emit_int(e, -ACCUMULATORS), "");
        Strips strips;
        emit_strips_begin(e, &strips, full, ACCUMULATORS, false, state, nacc);
        emit_frame_copy(e, &f, &row);
        emit_frame_enter(e, &f, in, strips.inner.i);
        step(e, &f, state, strips.inner.i);
        emit_strips_end(e, &strips, state);
        emit_loop_begin(e, &blocks, full, n, ACCUMULATORS, false, state, nacc);
        emit_frame_copy(e, &f, &row);
        emit_frame_enter(e, &f, in, blocks.i);
        f.mask = emit_mask(e, LLVMBuildSub(e->b, n, blocks.i, ""), ACCUMULATORS);
        step(e, &f, state, blocks.i);
        emit_loop_end(e, &blocks, state);
    } else {
        LLVMValueRef flat = state[nacc];
        emit_poll(e);
        LLVMValueRef phase = LLVMBuildAnd(e->b, flat, emit_int(e, ACCUMULATORS - 1), "");
        LLVMValueRef begin = LLVMBuildNeg(e->b, phase, "");
        emit_loop_begin(e, &blocks, begin, n, ACCUMULATORS, true, state, nacc);
        emit_frame_copy(e, &f, &row);
        emit_frame_enter(e, &f, in, blocks.i);
        LLVMValueRef below = emit_mask(e, LLVMBuildNeg(e->b, blocks.i, ""), ACCUMULATORS);
        f.mask = emit_mask(e, LLVMBuildSub(e->b, n, blocks.i, ""), ACCUMULATORS);
        f.mask = LLVMBuildAnd(e->b, f.mask, LLVMBuildNot(e->b, below, ""), "");
        step(e, &f, state, LLVMBuildAdd(e->b, flat, blocks.i, ""));
        emit_loop_end(e, &blocks, state);
        state[nacc] = LLVMBuildAdd(e->b, flat, n, "");
    }
    for (int a = in; a-- > npar;)
        emit_loop_end(e, &loops[a], state);
    for (int s = ACCUMULATORS / 2; s > 0; s /= 2) {
        LLVMValueRef low[2], high[2] = {NULL, NULL};
        for (int i = 0; i < nacc; i++) {
            low[i] = first_lanes(e, state[i], 0, s);
            high[i] = first_lanes(e, state[i], s, s);
        }
        emit_join(e, low, high[0], high[1]);
        for (int i = 0; i < nacc; i++)
            state[i] = low[i];
    }
    return LLVMBuildExtractElement(e->b, state[nacc - 1], zero, "");
}

void emit_reduce_row(Emit *e, const Frame *f) {
    const Recipe *r = e->r;
    LLVMValueRef acc = fold_lanes(e, f);
    Frame out;
    emit_frame_copy(e, &out, f);
    emit_finish(e, &out, acc, false, emit_is_arg(r) ? DT_I64 : r->acc_type);
}

void emit_reduce_inner(Emit *e) {
    int npar = e->sig->npar;
    Frame f;
    emit_frame_init(e, &f);
    Loop loops[RECIPE_MAX_AXES];
    for (int a = 0; a < npar; a++) {
        emit_loop_begin(e, &loops[a], emit_int(e, 0), e->extent[a], 1, true, NULL, 0);
        emit_frame_enter(e, &f, a, loops[a].i);
    }
    emit_poll(e);
    emit_reduce_row(e, &f);
    for (int a = npar; a-- > 0;)
        emit_loop_end(e, &loops[a], NULL);
}

/* ---- FORM_OUTER ------------------------------------------------------------------------------ */

enum { MAX_COLS = 8 };

static LLVMValueRef table_at(Emit *e, LLVMTypeRef vt, LLVMValueRef table, LLVMValueRef j, int cols,
                             int c) {
    LLVMValueRef k = LLVMBuildMul(e->b, j, emit_int(e, cols), "");
    k = LLVMBuildAdd(e->b, k, emit_int(e, c), "");
    return LLVMBuildGEP2(e->b, vt, table, &k, 1, "");
}

void emit_reduce_outer(Emit *e) {
    const Recipe *r = e->r;
    DType t = r->acc_type;
    int npar = e->sig->npar, nred = e->sig->nred, v = npar - 1, cols = e->sig->cols;
    int lanes = emit_pick_lanes(e, v), nacc = 1 + emit_is_arg(r);
    LLVMValueRef zero = emit_int(e, 0), n = e->extent[v];
    Frame root, tile[MAX_COLS], f[MAX_COLS];
    emit_frame_init(e, &root);
    Loop loops[RECIPE_MAX_AXES], blocks;
    for (int a = 0; a < v; a++) {
        emit_loop_begin(e, &loops[a], zero, e->extent[a], 1, true, NULL, 0);
        emit_frame_enter(e, &root, a, loops[a].i);
    }
    emit_loop_begin(e, &blocks, zero, n, lanes * cols, true, NULL, 0);
    for (int c = 0; c < cols; c++) {
        LLVMValueRef i = LLVMBuildAdd(e->b, blocks.i, emit_int(e, c * lanes), "");
        emit_frame_copy(e, &tile[c], &root);
        emit_frame_enter(e, &tile[c], v, i);
        tile[c].vaxis = v;
        tile[c].lanes = lanes;
        tile[c].mask = emit_mask(e, LLVMBuildSub(e->b, n, i, ""), lanes);
    }
    /* Accumulators: rows of a table; an ARG… needs but one, its order does not matter. */
    LLVMTypeRef at = emit_vec(t == DT_BOOL ? e->i8 : emit_value_type(e, t), lanes);
    LLVMTypeRef it = emit_vec(e->i64, lanes);
    int rows = emit_is_arg(r) ? 1 : ACCUMULATORS;
    LLVMValueRef table = emit_alloca(e, at, rows * cols), indices = NULL;
    LLVMValueRef unit = emit_unit(e, r->combine, t);
    if (t == DT_BOOL)
        unit = LLVMConstInt(e->i8, LLVMConstIntGetZExtValue(unit), 0);
    unit = emit_splat(e, unit, lanes);
    if (emit_is_arg(r))
        indices = emit_alloca(e, it, cols);
    for (int k = 0; k < rows * cols; k++) {
        LLVMBuildStore(e->b, unit,
                       LLVMBuildGEP2(e->b, at, table, (LLVMValueRef[]){emit_int(e, k)}, 1, ""));
        if (indices)
            LLVMBuildStore(
                e->b, emit_splat(e, emit_int(e, r->last ? -1 : INT64_MAX), lanes),
                LLVMBuildGEP2(e->b, it, indices, (LLVMValueRef[]){emit_int(e, k)}, 1, ""));
    }
    LLVMValueRef flat = zero;
    Strips strips;
    for (int c = 0; c < cols; c++)
        emit_frame_copy(e, &f[c], &tile[c]);
    for (int a = npar; a < npar + nred; a++) {
        LLVMValueRef i;
        if (a < npar + nred - 1) {
            emit_loop_begin(e, &loops[a], zero, e->extent[a], 1, true, &flat, 1);
            i = loops[a].i;
        } else {
            emit_strips_begin(e, &strips, e->extent[a], 1, true, &flat, 1);
            i = strips.inner.i;
        }
        for (int c = 0; c < cols; c++)
            emit_frame_enter(e, &f[c], a, i);
    }
    LLVMValueRef j = emit_is_arg(r) ? zero : LLVMBuildAnd(e->b, flat, emit_int(e, 15), "");
    for (int c = 0; c < cols; c++) {
        emit_code(e, &f[c], r->body, e->body_dep, r->nbody);
        LLVMValueRef x = emit_vector_of(e, &f[c], f[c].vals[r->results[0]]), acc[2], p[2];
        p[0] = table_at(e, at, table, j, cols, c);
        acc[0] = LLVMBuildLoad2(e->b, at, p[0], "");
        if (t == DT_BOOL)
            acc[0] = LLVMBuildTrunc(e->b, acc[0], emit_vec(e->i1, lanes), "");
        if (emit_is_arg(r)) {
            p[1] = table_at(e, it, indices, zero, cols, c);
            acc[1] = LLVMBuildLoad2(e->b, it, p[1], "");
        }
        emit_join(e, acc, x, emit_is_arg(r) ? emit_splat(e, flat, lanes) : NULL);
        if (t == DT_BOOL)
            acc[0] = LLVMBuildZExt(e->b, acc[0], at, "");
        for (int i = 0; i < nacc; i++)
            LLVMBuildStore(e->b, acc[i], p[i]);
    }
    flat = LLVMBuildAdd(e->b, flat, emit_int(e, 1), "");
    emit_strips_end(e, &strips, &flat);
    for (int a = npar + nred - 1; a-- > npar;)
        emit_loop_end(e, &loops[a], &flat);
    for (int c = 0; c < cols; c++) {
        LLVMValueRef a[ACCUMULATORS];
        for (int k = 0; k < rows; k++) {
            a[k] = LLVMBuildLoad2(e->b, at, table_at(e, at, table, emit_int(e, k), cols, c), "");
            if (t == DT_BOOL)
                a[k] = LLVMBuildTrunc(e->b, a[k], emit_vec(e->i1, lanes), "");
        }
        for (int s = rows / 2; s > 0; s /= 2)
            for (int k = 0; k < s; k++)
                a[k] = emit_combine(e, r->combine, t, a[k], a[k + s]);
        if (emit_is_arg(r))
            a[0] = LLVMBuildLoad2(e->b, it, table_at(e, it, indices, zero, cols, c), "");
        emit_finish(e, &tile[c], a[0], true, emit_is_arg(r) ? DT_I64 : t);
    }
    emit_loop_end(e, &blocks, NULL);
    for (int a = v; a-- > 0;)
        emit_loop_end(e, &loops[a], NULL);
}
