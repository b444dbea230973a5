/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of groups. */
#include "eval/fuse_impl.h"
#include "ops/ops.h"

#include <string.h>

static void note_site(Resolver *r, const Expr *at, const Group *g, const FusedRow *row) {
    GroupSite *site = mem_new(GroupSite);
    *site = (GroupSite){at, g, *row, r->instrs.len};
    vec_push(&r->groups, site);
}

void resolve_check(Resolver *r, Expr *e) {
    uint32_t mark = r->top;
    int32_t to = slot_new(r);
    int32_t first = resolve_args(r, e->args, e->nargs);
    Site s = {.op = e->a->op,
              .attrs = e->attrs ? e->attrs : attrs_defaults(e->a->op),
              .type = e->type,
              .nargs = e->nargs,
              .scalar = e->a->op->scalar,
              .call = e,
              .only_checks = true};
    vec_push(&r->sites, s);
    emit(r, e, CODE_OPERATOR, 0, slot(to), slot(first), (int32_t)r->sites.len - 1);
    r->top = mark;
}

/* Puts the values that a group reads in a row. A part of a tensor that it alone reads, once, is no copy but a view:
 * Note [Parts that one group reads] in eval/index_part.h. */
static int32_t resolve_leaves(Resolver *r, const Group *g, const ExprVec *leaves) {
    size_t begin = r->sites.len;
    int32_t first = resolve_args(r, leaves->data, (uint32_t)leaves->len);
    for (uint32_t i = 0; i < g->nnodes; i++)
        if (reads_again(g->nodes[i].site.call))
            return first;
    for (size_t s = begin; s < r->sites.len; s++)
        for (size_t i = 0; i < leaves->len; i++)
            r->sites.data[s].read_once |= r->sites.data[s].call == leaves->data[i];
    return first;
}

bool resolve_fused(Resolver *r, Expr *e, int32_t dst) {
    ExprVec leaves = {0};
    Group *g = r->code->verify ? NULL : fuse_group(r, e, &leaves);
    if (!g)
        return false;
    uint32_t mark = r->top;
    int32_t to = result_slot(r, dst);
    int32_t first = resolve_leaves(r, g, &leaves);
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
    int32_t first = resolve_leaves(r, g, &row.leaves);
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

/* ---- products that are added ----------------------------------------------------------------- */

bool is_sum_of_cotangents(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_BUILTIN && !e->mode && !e->drop &&
           strcmp(e->a->symbol->text, "ad.add") == 0;
}

/* The product that is added to a cotangent; NULL where e is not that. */
static Expr *find_added(const Resolver *r, const Expr *e) {
    if (!is_sum_of_cotangents(e))
        return NULL;
    Expr *value = e->args[1], *taken = NULL;
    if (value->kind == EXPR_VAR)
        taken = fuse_value_of(r, value->var);
    value = taken ? taken : value;
    return is_product(value) ? value : NULL;
}

/* The product of all leaves but the first, added to that. */
static Group *added_group(const Expr *product) {
    Group *g = mem_alloc(sizeof *g + 2 * sizeof(Node));
    Node *both = g->nodes;
    g->nleaves = product->nargs + 1;
    g->nnodes = 2;
    g->nresults = 1;
    g->results[0] = 1;
    both[0] = (Node){
        .site = {.op = product->a->op,
                 .scalar = product->a->op->scalar,
                 .attrs = product->attrs ? product->attrs : attrs_defaults(product->a->op),
                 .type = product->type,
                 .nargs = product->nargs,
                 .call = product},
        .span = product->span};
    for (uint32_t i = 0; i < product->nargs; i++)
        both[0].args[i] = ~(int32_t)(i + 1);
    both[1] = (Node){.site = {.op = &op_add,
                              .scalar = op_add.scalar,
                              .attrs = attrs_defaults(&op_add),
                              .type = product->type,
                              .nargs = 2,
                              .call = product},
                     .span = product->span,
                     .args = {~0, 0}};
    return g;
}

bool resolve_added_product(Resolver *r, Expr *e, int32_t dst) {
    Expr *product = r->code->verify ? NULL : find_added(r, e);
    if (!product)
        return false;
    uint32_t mark = r->top;
    int32_t to = result_slot(r, dst);
    Expr *leaves[MAX_ARGS + 1] = {e->args[0]};
    memcpy(leaves + 1, product->args, sizeof *leaves * product->nargs);
    int32_t first = resolve_args(r, leaves, product->nargs + 1);
    Site s = {.op = product->a->op,
              .type = e->type,
              .nargs = product->nargs + 1,
              .group = added_group(product)};
    vec_push(&r->sites, s);
    emit(r, e, CODE_ADD_PRODUCT, 0, slot(to), slot(first), (int32_t)r->sites.len - 1);
    finish(r, e, dst, to);
    r->top = mark;
    return true;
}
