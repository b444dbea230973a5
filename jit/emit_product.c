/* SPDX-License-Identifier: Apache-2.0 */
/* FORM_TILE: rows × cols vectors of outputs in registers, one step of the reduction at a time, so
 * that each output's fused multiply-adds run in order. Rows are along the last but one parallel
 * axis, lanes along the last. What does not depend on the row is computed once a column, what does
 * not depend on the lane once a row: for a matrix product one vector load a column, one broadcast a
 * row and rows × cols fma a step. Rows beyond the edge repeat the last one and are not stored.
 *
 * FORM_TURN: the vector operand lies along the last reduction axis (a row of weights an output).
 * Squares of it are read by rows and turned in registers, lanes steps at a time; what is left over
 * is gathered.
 *
 * SIG_CUT: where what a row of tiles reads does not stay in the nearest cache, all tiles do some steps of the reduction
 * before any does the next ones. Their sums wait in the output, so each is made of the same operations in the same order.
 *
 * Where the output, and what the epilogue reads, lies along the rows, squares of it are turned on the way, too:
 * results of a convolution, whose lanes are channels. */
#include "jit/emit.h"

#include <string.h>

enum { MAX_ROWS = 16, MAX_COLS = 12 };

typedef struct Tile {
    int rows, cols, lanes, v, w; /* v: lanes' axis; w: rows' axis or -1 */
    bool masked;
    LLVMValueRef from, to;         /* of the last reduction axis */
    Frame par[MAX_ROWS][MAX_COLS]; /* before the reduction */
} Tile;

/* Evaluates code[0, n) in all frames, sharing what does not differ; not what depends on the axes
 * `but` (before the loops of a reduction: its own). */
static void tile_code(Emit *e, Tile *t, Frame (*f)[MAX_COLS], int n, uint32_t but) {
    const Recipe *r = e->r;
    for (int i = 0; i < n; i++) {
        if (e->body_dep[i] & but)
            continue;
        bool by_row = t->w >= 0 && e->body_dep[i] >> t->w & 1, by_col = e->body_dep[i] >> t->v & 1;
        for (int y = 0; y < t->rows; y++)
            for (int x = 0; x < t->cols; x++) {
                if (!by_row && y > 0)
                    f[y][x].vals[i] = f[0][x].vals[i];
                else if (!by_col && x > 0)
                    f[y][x].vals[i] = f[y][0].vals[i];
                else
                    emit_instr(e, &f[y][x], r->body, e->body_dep, i);
            }
    }
}

static LLVMValueRef multiply_add(Emit *e, DType t, LLVMValueRef x, LLVMValueRef y,
                                 LLVMValueRef acc) {
    if (!emit_is_float(t))
        return LLVMBuildAdd(e->b, acc, LLVMBuildMul(e->b, x, y, ""), "");
    LLVMValueRef args[3] = {x, y, acc};
    LLVMTypeRef ft = LLVMTypeOf(acc);
    return emit_intrinsic(e, "llvm.fma", &ft, 1, args, 3);
}

/* One step of the reduction for the whole tile. */
static void tile_step(Emit *e, Tile *t, Frame (*f)[MAX_COLS], LLVMValueRef *acc) {
    const Recipe *r = e->r;
    const Scalar *mul = &r->body[r->results[0]];
    tile_code(e, t, f, r->results[0], 0);
    /* A row's scalar is spread once, for all columns. */
    for (int y = 0; y < t->rows; y++)
        for (int k = 0; k < 2; k++) {
            int id = k ? mul->b : mul->a;
            Val *v = &f[y][0].vals[id];
            if (v->v && !v->vec && !v->splat)
                v->splat = emit_splat(e, v->v, t->lanes);
            for (int x = 1; x < t->cols; x++)
                if (f[y][x].vals[id].v == v->v)
                    f[y][x].vals[id] = *v;
        }
    for (int y = 0; y < t->rows; y++)
        for (int x = 0; x < t->cols; x++) {
            LLVMValueRef a = emit_vector_of(e, &f[y][x], f[y][x].vals[mul->a]);
            LLVMValueRef b = emit_vector_of(e, &f[y][x], f[y][x].vals[mul->b]);
            LLVMValueRef *to = &acc[y * t->cols + x];
            *to = multiply_add(e, r->acc_type, a, b, *to);
        }
}

static Frame (*tile_copy(Emit *e, Tile *t, Frame (*from)[MAX_COLS]))[MAX_COLS] {
    Frame(*f)[MAX_COLS] = emit_alloc(e, sizeof(Frame[MAX_ROWS][MAX_COLS]));
    for (int y = 0; y < t->rows; y++)
        for (int x = 0; x < t->cols; x++)
            emit_frame_copy(e, &f[y][x], &from[y][x]);
    return f;
}

/* Enters an axis in all frames: operands that do not move with row or column share addresses. */
static void tile_enter(Emit *e, Tile *t, Frame (*f)[MAX_COLS], int axis, LLVMValueRef index) {
    const Recipe *r = e->r;
    for (int y = 0; y < t->rows; y++)
        for (int x = 0; x < t->cols; x++)
            f[y][x].index[axis] = index;
    for (int p = 0; p < r->noperands; p++) {
        if (e->sig->zero[p] >> axis & 1)
            continue;
        LLVMValueRef by = emit_is_tabled(e, p, axis)
                              ? emit_table_entry(e, axis, index)
                              : LLVMBuildMul(e->b, index, e->stride[p][axis], "");
        for (int y = 0; y < t->rows; y++)
            for (int x = 0; x < t->cols; x++) {
                Frame *g = &f[y][x];
                LLVMValueRef old = g->at[p];
                int sy = y, sx = x;
                /* The same address was moved already in the frame above or to the left. */
                if (y > 0 && (t->w < 0 || e->sig->zero[p] >> t->w & 1))
                    sy = 0;
                if (x > 0 && e->sig->zero[p] >> t->v & 1)
                    sx = 0;
                if (sy != y || sx != x)
                    g->at[p] = f[sy][sx].at[p];
                else
                    g->at[p] = LLVMBuildGEP2(e->b, e->i8, old, &by, 1, "");
            }
    }
}

static bool is_turned(Emit *e, Tile *t, int p) {
    int in = e->sig->npar + e->sig->nred - 1;
    if (e->sig->form != FORM_TURN || !emit_lies_along(e, p, in, t->v))
        return false;
    /* Only where all of it may be read. */
    bool plain = false;
    for (int i = 0; i < e->r->nbody; i++) {
        const Scalar *s = &e->r->body[i];
        if ((s->op == SC_LOAD_AT || s->op == SC_LOAD_IF) && s->a == p)
            return false;
        plain |= s->op == SC_LOAD && s->a == p;
    }
    return plain;
}

/* A square of operand p: lanes outputs by lanes steps from `step` on, one vector a step. */
static LLVMValueRef *turn(Emit *e, Tile *t, Frame *f, int p, LLVMValueRef step) {
    DType type = e->r->in_types[p];
    LLVMTypeRef st = emit_stored_type(e, type);
    LLVMValueRef *rows = emit_alloc(e, sizeof *rows * (size_t)t->lanes);
    LLVMValueRef last = LLVMBuildSub(e->b, e->extent[t->v], f->index[t->v], "");
    last = LLVMBuildSub(e->b, last, emit_int(e, 1), "");
    for (int l = 0; l < t->lanes; l++) {
        LLVMValueRef by = emit_int(e, l); /* a lane beyond the edge repeats the last */
        if (t->masked)
            by = emit_min(e, by, last);
        by = LLVMBuildMul(e->b, by, e->stride[p][t->v], "");
        LLVMValueRef q = LLVMBuildGEP2(e->b, e->i8, f->at[p], &by, 1, "");
        q = LLVMBuildGEP2(e->b, st, q, &step, 1, "");
        rows[l] = LLVMBuildLoad2(e->b, emit_vec(st, t->lanes), q, "");
        LLVMSetAlignment(rows[l], (unsigned)emit_bytes(type));
    }
    emit_transpose(e, rows, t->lanes);
    return rows;
}

/* The last reduction axis in blocks of `lanes` steps, turned operands by squares. */
static void turned_blocks(Emit *e, Tile *t, Frame (*outer)[MAX_COLS], LLVMValueRef *acc, int nacc) {
    const Recipe *r = e->r;
    int in = e->sig->npar + e->sig->nred - 1, lanes = t->lanes;
    LLVMValueRef n = e->extent[in];
    LLVMValueRef full = LLVMBuildAnd(e->b, n, emit_int(e, -lanes), "");
    Loop blocks, tail;
    emit_loop_begin(e, &blocks, emit_int(e, 0), full, lanes, false, acc, nacc);
    LLVMValueRef *(*square)[MAX_ROWS][MAX_COLS] = emit_alloc(e, sizeof *square * JIT_MAX_PTRS);
    for (int p = 0; p < r->noperands; p++)
        for (int y = 0; y < t->rows && is_turned(e, t, p); y++)
            for (int x = 0; x < t->cols; x++) {
                bool again = y > 0 && e->sig->zero[p] >> t->w & 1;
                square[p][y][x] = again ? square[p][0][x] : turn(e, t, &outer[y][x], p, blocks.i);
            }
    for (int l = 0; l < lanes; l++) {
        Frame(*f)[MAX_COLS] = tile_copy(e, t, outer);
        tile_enter(e, t, f, in, LLVMBuildAdd(e->b, blocks.i, emit_int(e, l), ""));
        for (int p = 0; p < r->noperands; p++)
            if (is_turned(e, t, p))
                for (int y = 0; y < t->rows; y++)
                    for (int x = 0; x < t->cols; x++)
                        f[y][x].loaded[p] = square[p][y][x][l];
        tile_step(e, t, f, acc);
    }
    emit_loop_end(e, &blocks, acc);
    emit_loop_begin(e, &tail, full, n, 1, false, acc, nacc);
    Frame(*f)[MAX_COLS] = tile_copy(e, t, outer);
    tile_enter(e, t, f, in, tail.i);
    tile_step(e, t, f, acc);
    emit_loop_end(e, &tail, acc);
}

static bool lies_along_rows(const Emit *e, const Tile *t, int p) {
    return t->w >= 0 && emit_lies_along(e, p, t->w, t->v);
}

static void load_turned(Emit *e, Frame *f, int n, int p, LLVMValueRef mask) {
    LLVMValueRef vectors[MAX_ROWS];
    emit_load_turned(e, f, n, p, NULL, mask, vectors);
    for (int i = 0; i < n; i++)
        f[i].loaded[p] = vectors[i];
}

/* The epilogue and the output of all rows from `row` on, those that there are by `edge`. */
static void finish_turned(Emit *e, Tile *t, LLVMValueRef *acc, LLVMValueRef row, bool edge) {
    const Recipe *r = e->r;
    Frame *f = emit_alloc(e, sizeof *f * MAX_ROWS);
    Val vals[MAX_ROWS];
    for (int x = 0; x < t->cols; x++)
        for (int y = 0; y < t->rows; y += t->lanes) {
            int n = t->rows - y < t->lanes ? t->rows - y : t->lanes;
            DType type = r->acc_type;
            LLVMValueRef mask = NULL;
            if (edge) {
                LLVMValueRef at = LLVMBuildAdd(e->b, row, emit_int(e, y), "");
                mask = emit_mask(e, LLVMBuildSub(e->b, e->extent[t->w], at, ""), t->lanes);
            }
            for (int i = 0; i < n; i++) {
                f[i] = t->par[y + i][x];
                memset(f[i].loaded, 0, sizeof f[i].loaded);
            }
            for (int i = 0; i < r->nepilogue; i++) {
                int p = r->epilogue[i].a;
                if (r->epilogue[i].op == SC_LOAD && lies_along_rows(e, t, p) && !f[0].loaded[p])
                    load_turned(e, f, n, p, mask);
            }
            for (int i = 0; i < n; i++) {
                type = r->acc_type;
                vals[i] = emit_epilogue(e, &f[i], acc[(y + i) * t->cols + x], true, &type);
            }
            emit_store_turned(e, f, n, r->noperands, vals, type, mask);
        }
}

/* Stores the tile, but for rows beyond the edge. */
static void finish_tile(Emit *e, Tile *t, LLVMValueRef *acc, LLVMValueRef row, LLVMValueRef *rows) {
    LLVMBasicBlockRef end = emit_block(e, "");
    bool turned = lies_along_rows(e, t, e->r->noperands);
    if (turned) {
        LLVMBasicBlockRef whole = emit_block(e, ""), edge = emit_block(e, "");
        LLVMValueRef last = rows[t->rows - 1];
        LLVMValueRef inside = LLVMBuildICmp(e->b, LLVMIntSLT, last, e->extent[t->w], "");
        LLVMBuildCondBr(e->b, inside, whole, edge);
        LLVMPositionBuilderAtEnd(e->b, whole);
        finish_turned(e, t, acc, row, false);
        LLVMBuildBr(e->b, end);
        LLVMMoveBasicBlockAfter(edge, LLVMGetInsertBlock(e->b));
        LLVMPositionBuilderAtEnd(e->b, edge);
        finish_turned(e, t, acc, row, true);
    }
    for (int y = 0; y < t->rows && !turned; y++) {
        if (y > 0) {
            LLVMBasicBlockRef next = emit_block(e, "");
            LLVMValueRef inside = LLVMBuildICmp(e->b, LLVMIntSLT, rows[y], e->extent[t->w], "");
            LLVMBuildCondBr(e->b, inside, next, end);
            LLVMPositionBuilderAtEnd(e->b, next);
        }
        for (int x = 0; x < t->cols; x++)
            emit_finish(e, &t->par[y][x], acc[y * t->cols + x], true, e->r->acc_type);
    }
    LLVMBuildBr(e->b, end);
    LLVMMoveBasicBlockAfter(end, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, end);
}

/* Steps from `from` to `to` of the last reduction axis, so many a turn of the loop. */
static void tile_steps(Emit *e, Tile *t, Frame (*outer)[MAX_COLS], LLVMValueRef from,
                       LLVMValueRef to, int turn, bool nonempty, LLVMValueRef *acc) {
    int in = e->sig->npar + e->sig->nred - 1, nacc = t->rows * t->cols;
    Loop loop;
    emit_loop_begin(e, &loop, from, to, turn, nonempty, acc, nacc);
    for (int i = 0; i < turn; i++) {
        Frame(*f)[MAX_COLS] = tile_copy(e, t, outer);
        tile_enter(e, t, f, in, i ? LLVMBuildAdd(e->b, loop.i, emit_int(e, i), "") : loop.i);
        tile_step(e, t, f, acc);
    }
    emit_loop_end(e, &loop, acc);
}

/* All of them. A loop of few instructions does not keep the units busy: of two by four vectors and 17 instructions a
 * step it took 5.0 ms where four steps a turn take 4.3 (50 products of 32 by 1,000 by 32, AVX2). */
static void tile_loop(Emit *e, Tile *t, Frame (*f)[MAX_COLS], LLVMValueRef *acc) {
    if (!(e->sig->flags & SIG_UNROLL)) {
        tile_steps(e, t, f, t->from, t->to, 1, true, acc);
        return;
    }
    LLVMValueRef n = LLVMBuildSub(e->b, t->to, t->from, "");
    LLVMValueRef whole = LLVMBuildAnd(e->b, n, emit_int(e, -JIT_UNROLL), "");
    LLVMValueRef last = LLVMBuildAdd(e->b, t->from, whole, "");
    tile_steps(e, t, f, t->from, last, JIT_UNROLL, false, acc);
    tile_steps(e, t, f, last, t->to, 1, false, acc);
}

/* The tile whose first row and column are given. */
static void tile_body(Emit *e, Tile *t, const Frame *root, LLVMValueRef row, LLVMValueRef col) {
    const Recipe *r = e->r;
    int npar = e->sig->npar, nred = e->sig->nred, in = npar + nred - 1;
    int nacc = t->rows * t->cols;
    emit_poll(e);
    LLVMValueRef last_row = NULL, rows[MAX_ROWS];
    if (t->w >= 0)
        last_row = LLVMBuildSub(e->b, e->extent[t->w], emit_int(e, 1), "");
    LLVMValueRef masks[MAX_COLS] = {NULL}, cols[MAX_COLS];
    for (int x = 0; x < t->cols; x++) {
        cols[x] = LLVMBuildAdd(e->b, col, emit_int(e, x * t->lanes), "");
        if (t->masked)
            masks[x] = emit_mask(e, LLVMBuildSub(e->b, e->extent[t->v], cols[x], ""), t->lanes);
    }
    for (int y = 0; y < t->rows; y++) {
        Frame base;
        emit_frame_copy(e, &base, root);
        if (t->w >= 0) {
            rows[y] = LLVMBuildAdd(e->b, row, emit_int(e, y), "");
            emit_frame_enter(e, &base, t->w, y ? emit_min(e, rows[y], last_row) : rows[y]);
        }
        for (int x = 0; x < t->cols; x++) {
            emit_frame_copy(e, &t->par[y][x], &base);
            /* In a turned tile, columns wholly beyond the edge read the last one. */
            LLVMValueRef c = cols[x];
            if (t->masked && e->sig->form == FORM_TURN) {
                LLVMValueRef last = LLVMBuildSub(e->b, e->extent[t->v], emit_int(e, 1), "");
                c = emit_min(e, c, last);
            }
            emit_frame_enter(e, &t->par[y][x], t->v, c);
            t->par[y][x].vaxis = t->v;
            t->par[y][x].lanes = t->lanes;
            t->par[y][x].mask = masks[x];
        }
    }
    /* Addresses that do not differ are one value. */
    for (int p = 0; p < r->noperands; p++)
        for (int y = 0; y < t->rows; y++)
            for (int x = 0; x < t->cols; x++) {
                int sy = t->w < 0 || e->sig->zero[p] >> t->w & 1 ? 0 : y;
                int sx = e->sig->zero[p] >> t->v & 1 ? 0 : x;
                t->par[y][x].at[p] = t->par[sy][sx].at[p];
            }
    LLVMValueRef acc[MAX_ROWS * MAX_COLS];
    LLVMValueRef zero = LLVMConstNull(emit_vec(emit_value_type(e, r->acc_type), t->lanes));
    for (int i = 0; i < nacc; i++)
        acc[i] = zero;
    if (e->sig->flags & SIG_CUT) {
        LLVMValueRef first = LLVMBuildICmp(e->b, LLVMIntEQ, t->from, emit_int(e, 0), "");
        for (int i = 0; i < nacc; i++) {
            LLVMValueRef sum = emit_load_result(e, &t->par[i / t->cols][i % t->cols]);
            acc[i] = LLVMBuildSelect(e->b, first, zero, sum, "");
        }
    }
    Frame(*f)[MAX_COLS] = tile_copy(e, t, t->par);
    Loop loops[RECIPE_MAX_AXES];
    uint32_t inner = ((1u << nred) - 1) << npar;
    for (int a = npar; a <= in; a++) {
        tile_code(e, t, f, r->results[0], inner);
        inner &= ~(1u << a);
        if (a < in) {
            emit_loop_begin(e, &loops[a], emit_int(e, 0), e->extent[a], 1, true, acc, nacc);
            f = tile_copy(e, t, f);
            tile_enter(e, t, f, a, loops[a].i);
        }
    }
    if (e->sig->form == FORM_TURN)
        turned_blocks(e, t, f, acc, nacc);
    else
        tile_loop(e, t, f, acc);
    for (int a = in; a-- > npar;)
        emit_loop_end(e, &loops[a], acc);

    finish_tile(e, t, acc, row, rows);
}

/* All rows of one column of tiles. */
static void tile_rows(Emit *e, Tile *t, const Frame *root, LLVMValueRef col) {
    if (t->w < 0) {
        tile_body(e, t, root, NULL, col);
        return;
    }
    Loop rows;
    emit_loop_begin(e, &rows, emit_int(e, 0), e->extent[t->w], t->rows, true, NULL, 0);
    tile_body(e, t, root, rows.i, col);
    emit_loop_end(e, &rows, NULL);
}

void emit_tile(Emit *e) {
    int npar = e->sig->npar;
    Tile *t = emit_alloc(e, sizeof *t);
    t->v = npar - 1;
    t->rows = e->sig->rows;
    t->cols = e->sig->cols;
    t->w = t->rows > 1 ? npar - 2 : -1;
    t->lanes = e->sig->lanes;
    int wide = t->lanes * t->cols, outer = t->w >= 0 ? npar - 2 : npar - 1;
    LLVMValueRef zero = emit_int(e, 0), n = e->extent[t->v];
    Frame root;
    emit_frame_init(e, &root);
    Loop loops[RECIPE_MAX_AXES], cols, cut;
    int in = npar + e->sig->nred - 1;
    for (int a = 0; a < outer; a++) {
        emit_loop_begin(e, &loops[a], zero, e->extent[a], 1, true, NULL, 0);
        emit_frame_enter(e, &root, a, loops[a].i);
    }
    t->from = zero;
    t->to = e->extent[in];
    if (e->sig->flags & SIG_CUT) {
        int steps = t->rows == 1 ? JIT_CUT_ROW : JIT_CUT;
        emit_loop_begin(e, &cut, zero, e->extent[in], steps, true, NULL, 0);
        t->from = cut.i;
        t->to = emit_min(e, LLVMBuildAdd(e->b, cut.i, emit_int(e, steps), ""), t->to);
    }
    /* Masks cost, even where the processor has them: whole tiles go without. */
    LLVMValueRef full = zero;
    if (!(e->sig->flags & SIG_EDGE)) {
        full = n;
        if (!(e->sig->flags & SIG_WHOLE))
            full = LLVMBuildSub(e->b, n, LLVMBuildSRem(e->b, n, emit_int(e, wide), ""), "");
        emit_loop_begin(e, &cols, zero, full, wide, false, NULL, 0);
        tile_rows(e, t, &root, cols.i);
        emit_loop_end(e, &cols, NULL);
    }
    if (!(e->sig->flags & SIG_WHOLE)) {
        t->masked = true;
        emit_loop_begin(e, &cols, full, n, wide, false, NULL, 0);
        tile_rows(e, t, &root, cols.i);
        emit_loop_end(e, &cols, NULL);
    }
    if (e->sig->flags & SIG_CUT)
        emit_loop_end(e, &cut, NULL);
    for (int a = outer; a-- > 0;)
        emit_loop_end(e, &loops[a], NULL);
}
