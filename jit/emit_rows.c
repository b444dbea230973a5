/* SPDX-License-Identifier: Apache-2.0 */
/* FORM_ROWS: some rows go through all parts of a ROWS before the next ones do, so that they are read from the nearest
 * cache but for the first time. What one part hands to a later one goes through memory, as between launches. Several rows,
 * since the parts of one wait for each other: a softmax over rows of 10 takes a sixth longer by single rows. */
#include "jit/emit.h"

/* One part on the rows [begin, end) of the last parallel axis, whose place on the axes before it is `outer`. */
static void emit_part(Emit *e, const Frame *outer, LLVMValueRef begin, LLVMValueRef end) {
    int npar = e->sig->npar;
    Loop rows;
    Frame f = *outer;
    f.vals = emit_alloc(e, ((size_t)e->r->nbody + 1) * sizeof *f.vals);
    if (npar > 0) {
        emit_loop_begin(e, &rows, begin, end, 1, true, NULL, 0);
        emit_frame_enter(e, &f, npar - 1, rows.i);
    }
    if (e->r->kind == RECIPE_MAP)
        emit_map_row(e, &f, npar);
    else
        emit_reduce_row(e, &f);
    if (npar > 0)
        emit_loop_end(e, &rows, NULL);
}

void emit_rows(Emit *e) {
    const Recipe *whole = e->r;
    int npar = e->sig->npar, last = npar - 1, block = e->sig->rows;
    Frame outer;
    emit_frame_init(e, &outer);
    Loop loops[RECIPE_MAX_AXES], blocks;
    for (int a = 0; a < last; a++) {
        emit_loop_begin(e, &loops[a], emit_int(e, 0), e->extent[a], 1, true, NULL, 0);
        emit_frame_enter(e, &outer, a, loops[a].i);
    }
    LLVMValueRef begin = NULL, end = NULL;
    if (npar > 0) {
        emit_loop_begin(e, &blocks, emit_int(e, 0), e->extent[last], block, true, NULL, 0);
        begin = blocks.i;
        end = LLVMBuildAdd(e->b, begin, emit_int(e, block), "");
        end = emit_min(e, end, e->extent[last]);
    }
    emit_poll(e);
    for (int k = 0; k < whole->nparts; k++) {
        Recipe *part = emit_alloc(e, sizeof *part);
        recipe_part(whole, k, part);
        emit_set_recipe(e, part, e->nin + whole->parts[k].out);
        emit_part(e, &outer, begin, end);
    }
    e->r = whole;
    if (npar > 0)
        emit_loop_end(e, &blocks, NULL);
    for (int a = last; a-- > 0;)
        emit_loop_end(e, &loops[a], NULL);
}
