/* SPDX-License-Identifier: Apache-2.0 */
/* FORM_FEW: lanes along the last parallel axis, and what lies along short axes is written out: of a MAP the parallel axis
 * before the lanes' (points of three coordinates, say, which fill no vector of their own), of a REDUCE all reduction
 * axes. There each of the sixteen accumulators (jit/emit_reduce.c) takes one element, and those that take none are left
 * away: combined with the unit, no value changes. Operands and outputs that lie along a short axis are read and
 * written so, and turned in registers; what does not depend on it, as an index does, is found once. */
#include "jit/emit.h"

/* Turning takes a load and log2(lanes) / 2 shuffles a lane, whatever is used of it. What each lane reads somewhere else is
 * gathered as fast where it is fewer than this. */
static int least_turned(int lanes) {
    int least = 1;
    for (int i = 1; i < lanes; i *= 2)
        least++;
    return least;
}

/* Loads what lies along the axis for all of f[n], which follow each other on it. */
static void load_few(Emit *e, Frame *f, int n, int axis) {
    const Recipe *r = e->r;
    if (n < 2)
        return;
    for (int i = 0; i < r->nbody; i++) {
        const Scalar *s = &r->body[i];
        if ((s->op != SC_LOAD && s->op != SC_LOAD_AT) || f->vals[i].v)
            continue;
        const Val *offset = s->op == SC_LOAD_AT ? &f->vals[s->b] : NULL;
        if (!emit_lies_along(e, s->a, axis, f->vaxis) ||
            (offset && !(offset->v && offset->vec && n >= least_turned(f->lanes))))
            continue;
        LLVMValueRef vectors[JIT_FEW];
        emit_load_turned(e, f, n, s->a, offset, NULL, vectors);
        for (int k = 0; k < n; k++)
            f[k].vals[i] = (Val){.v = emit_widen(e, vectors[k], r->in_types[s->a]), .vec = true};
    }
}

/* The results of one vector of outputs. */
static void fold_few(Emit *e, Frame *tile) {
    const Recipe *r = e->r;
    DType t = r->acc_type;
    bool arg = emit_is_arg(r);
    int npar = e->sig->npar, nred = e->sig->nred, lanes = tile->lanes, steps = 1;
    int row = e->sig->few[nred - 1];
    Frame f[JIT_FEW];
    LLVMValueRef a[JIT_FEW], best[2], unit = emit_splat(e, emit_unit(e, r->combine, t), lanes);
    best[0] = unit;
    if (arg)
        best[1] = emit_splat(e, emit_int(e, r->last ? -1 : INT64_MAX), lanes);
    for (int i = 0; i < nred; i++)
        steps *= e->sig->few[i];
    emit_hoist(e, tile, r->body, e->body_dep, r->nbody, ((1u << nred) - 1) << npar);
    for (int k = 0; k < steps; k++) {
        emit_frame_copy(e, &f[k], tile);
        for (int i = nred, rest = k; i-- > 0; rest /= e->sig->few[i])
            emit_frame_enter(e, &f[k], npar + i, emit_int(e, rest % e->sig->few[i]));
    }
    for (int k = 0, n; k < steps; k += n) {
        n = row - k % row < lanes ? row - k % row : lanes;
        load_few(e, &f[k], n, npar + nred - 1);
    }
    for (int k = 0; k < steps; k++) {
        emit_code(e, &f[k], r->body, e->body_dep, r->nbody);
        LLVMValueRef x = emit_vector_of(e, &f[k], f[k].vals[r->results[0]]);
        if (arg)
            emit_join(e, best, x, emit_splat(e, emit_int(e, k), lanes));
        else
            a[k] = emit_combine(e, r->combine, t, unit, x);
    }
    for (int s = JIT_FEW / 2; s > 0; s /= 2)
        for (int k = 0; k < s && k + s < steps && !arg; k++)
            a[k] = emit_combine(e, r->combine, t, a[k], a[k + s]);
    emit_finish(e, tile, arg ? best[1] : a[0], true, arg ? DT_I64 : t);
}

/* All elements of one vector of places. */
static void map_few(Emit *e, Frame *tile) {
    const Recipe *r = e->r;
    int v = tile->vaxis, w = v - 1, lanes = tile->lanes, all = e->sig->few[0];
    emit_hoist(e, tile, r->body, e->body_dep, r->nbody, 1u << w);
    for (int k = 0, n; k < all; k += n) {
        Frame f[JIT_FEW];
        n = all - k < lanes ? all - k : lanes;
        for (int i = 0; i < n; i++) {
            emit_frame_copy(e, &f[i], tile);
            emit_frame_enter(e, &f[i], w, emit_int(e, k + i));
        }
        load_few(e, f, n, w);
        for (int i = 0; i < n; i++)
            emit_code(e, &f[i], r->body, e->body_dep, r->nbody);
        for (int o = 0; o < r->noutputs; o++) {
            DType type = emit_result_type(e, o);
            Val vals[JIT_FEW];
            for (int i = 0; i < n; i++)
                vals[i] = f[i].vals[r->results[o]];
            if (n > 1 && emit_lies_along(e, e->out + o, w, v)) {
                emit_store_turned(e, f, n, e->out + o, vals, type, NULL);
                continue;
            }
            for (int i = 0; i < n; i++)
                emit_store(e, &f[i], e->out + o, vals[i], type);
        }
    }
}

void emit_few(Emit *e) {
    void (*each)(Emit *, Frame *) = e->r->kind == RECIPE_MAP ? map_few : fold_few;
    int v = e->sig->npar - 1, end = e->r->kind == RECIPE_MAP ? v - 1 : v;
    int lanes = emit_pick_lanes(e, v);
    LLVMValueRef n = e->extent[v];
    LLVMValueRef full = LLVMBuildAnd(e->b, n, emit_int(e, -lanes), "");
    Frame root, tile;
    emit_frame_init(e, &root);
    Loop loops[RECIPE_MAX_AXES], rest;
    for (int a = 0; a < end; a++) {
        emit_loop_begin(e, &loops[a], emit_int(e, 0), e->extent[a], 1, true, NULL, 0);
        emit_frame_enter(e, &root, a, loops[a].i);
    }
    root.vaxis = v;
    root.lanes = lanes;
    Strips strips;
    emit_poll(e);
    emit_strips_begin(e, &strips, full, lanes, false, NULL, 0);
    emit_frame_copy(e, &tile, &root);
    emit_frame_enter(e, &tile, v, strips.inner.i);
    each(e, &tile);
    emit_strips_end(e, &strips, NULL);
    emit_loop_begin(e, &rest, full, n, lanes, false, NULL, 0);
    emit_frame_copy(e, &tile, &root);
    emit_frame_enter(e, &tile, v, rest.i);
    tile.mask = emit_mask(e, LLVMBuildSub(e->b, n, rest.i, ""), lanes);
    each(e, &tile);
    emit_loop_end(e, &rest, NULL);
    for (int a = end; a-- > 0;)
        emit_loop_end(e, &loops[a], NULL);
}
