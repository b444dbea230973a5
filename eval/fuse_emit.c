/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of groups. */
#include "eval/fuse.h"

static void note_site(Resolver *r, const Expr *at, const Group *g, const FusedRow *row) {
    GroupSite *site = mem_new(GroupSite);
    *site = (GroupSite){at, g, *row, r->instrs.len};
    vec_push(&r->groups, site);
}

bool resolve_fused(Resolver *r, Expr *e, int32_t dst) {
    ExprVec leaves = {0};
    Group *g = r->code->verify ? NULL : fuse_group(r, e, &leaves);
    if (!g)
        return false;
    uint32_t mark = r->top;
    int32_t to = result_slot(r, dst);
    int32_t first = resolve_args(r, leaves.data, (uint32_t)leaves.len);
    Site s = {.op = e->a->op,
              .attrs = e->attrs,
              .type = e->type,
              .nargs = (uint32_t)leaves.len,
              .group = g};
    vec_push(&r->sites, s);
    note_site(r, e, g, &(FusedRow){.leaves = leaves});
    emit(r, e, CODE_OPERATOR, 0, slot(to), slot(first), (int32_t)r->sites.len - 1);
    finish(r, e, dst, to);
    r->top = mark;
    return true;
}

Expr *resolve_row(Resolver *r, Expr *e) {
    FusedRow row = {.nresults = 0};
    Group *g = r->code->verify ? NULL : fuse_row(r, e, &row);
    if (!g)
        return NULL;
    for (size_t i = 0; i < row.accesses.len; i++)
        resolve_let(r, row.accesses.data[i]);
    int32_t to[GROUP_RESULTS];
    for (uint32_t i = 0; i < row.nresults; i++)
        to[i] = slot_new(r);
    uint32_t mark = r->top;
    int32_t first = resolve_args(r, row.leaves.data, (uint32_t)row.leaves.len);
    Expr *last = row.results[0]->a;
    Site s = {.op = last->a->op,
              .attrs = last->attrs,
              .type = last->type,
              .nargs = (uint32_t)row.leaves.len,
              .group = g};
    vec_push(&r->sites, s);
    note_site(r, e, g, &row);
    emit(r, last, CODE_OPERATOR, 0, slot(to[0]), slot(first), (int32_t)r->sites.len - 1);
    for (uint32_t i = 0; i < row.nresults; i++) {
        if (i > 0)
            emit(r, row.results[i]->a, CODE_MORE, 0, slot(to[i]), 0, (int32_t)i - 1);
        bind(r, row.results[i]->var, slot(to[i]));
    }
    r->top = mark;
    return row.next;
}
