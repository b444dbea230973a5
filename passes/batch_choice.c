/* SPDX-License-Identifier: Apache-2.0 */
/* `if` at all rows. Where the condition is the same for all rows, one branch runs. Where it differs, both are computed, and where
 * their values are tensors of one type, one is taken for each row. Values of other forms stay what each branch gave: what a
 * derivative keeps of an `if` says by a number which branch it was, the way back asks for that number, and in the branch
 * that this decides the values are those of the same branch (Batch.assumed). */
#include "passes/batch_internal.h"

Row *batch_assume(const Batch *m, const Row *r) {
    for (size_t i = 0; r->when && i < m->assumed.len; i++)
        if (m->assumed.data[i].condition == r->when)
            return batch_assume(m, m->assumed.data[i].holds ? r->yes : r->no);
    return (Row *)r;
}

/* Whether both are tuples of as many parts, or made by one constructor. */
static bool have_one_form(const Row *a, const Row *b) {
    return a && b && a->ctor == b->ctor && a->nparts == b->nparts;
}

static Row *row_of_two(const Row *c, Row *a, Row *b) {
    Row *r = mem_new(Row);
    *r = (Row){.when = c, .yes = a, .no = b, .type = row_is_unit(a) ? b->type : a->type};
    return r;
}

Row *batch_choose(Batch *m, const Row *c, Row *a, Row *b, Span span) {
    a = batch_assume(m, a);
    b = batch_assume(m, b);
    if (row_is_literal(a) && row_is_literal(b) && !a->e->is_float && !b->e->is_float)
        return a->e->i == b->e->i && type_equal(a->type, b->type) ? a : row_of_two(c, a, b);
    const Row *x = a->when ? NULL : row_open(m, a), *y = b->when ? NULL : row_open(m, b);
    if (have_one_form(x, y)) {
        Row **parts = mem_new_n(Row *, (size_t)x->nparts + 1);
        for (uint32_t i = 0; i < x->nparts; i++)
            parts[i] = batch_choose(m, c, x->parts[i], y->parts[i], span);
        return row_like(m, x, parts, x->nparts);
    }
    Type *t = type_resolve(a->type);
    bool are_tensors = t->tag == TY_TENSOR && a->e && b->e && type_is_closed(a->type) &&
                       type_equal(t, type_resolve(b->type));
    if (!are_tensors)
        return row_of_two(c, a, b);
    Row **in = mem_new_n(Row *, 3);
    in[0] = (Row *)c;
    in[1] = a;
    in[2] = b;
    Row *made = batch_call(m, &op_where, in, 3, attrs_defaults(&op_where), a->type, span);
    return made ? made : row_of_two(c, a, b);
}

Row *batch_decide(Batch *m, Row *r) {
    r = batch_assume(m, r);
    if (!r->when)
        return r;
    Row *yes = batch_decide(m, r->yes), *no = yes ? batch_decide(m, r->no) : NULL;
    Type *t = yes ? type_resolve(yes->type) : NULL;
    if (!no || t->tag != TY_TENSOR || !yes->e || !no->e || !type_is_closed(t) ||
        !type_equal(t, type_resolve(no->type)))
        return NULL;
    Row **in = mem_new_n(Row *, 3);
    in[0] = (Row *)r->when;
    in[1] = yes;
    in[2] = no;
    return batch_call(m, &op_where, in, 3, attrs_defaults(&op_where), t, m->b.span);
}

/* r by its parts, as far as it has them: what this takes is computed in the block of r. */
static Row *open_wholly(Batch *m, Row *r) {
    Row *open = row_open(m, r);
    if (!open)
        return r;
    Row **parts = mem_new_n(Row *, (size_t)open->nparts + 1);
    for (uint32_t i = 0; i < open->nparts; i++)
        parts[i] = open_wholly(m, open->parts[i]);
    return row_like(m, open, parts, open->nparts);
}

/* What all rows have in common, with the rows where one of them has; NULL where they have not one form. */
static Row *common_form(Batch *m, Row *const *open, uint32_t n) {
    const Row *first = open[0];
    if (first->parts) {
        Row **parts = mem_new_n(Row *, (size_t)first->nparts + 1), **column = mem_new_n(Row *, n);
        for (uint32_t k = 0; k < n; k++)
            if (!open[k]->parts || !have_one_form(first, open[k]))
                return NULL;
        for (uint32_t i = 0; i < first->nparts; i++) {
            for (uint32_t k = 0; k < n; k++)
                column[k] = open[k]->parts[i];
            if (!(parts[i] = common_form(m, column, n)))
                return NULL;
        }
        return row_like(m, first, parts, first->nparts);
    }
    Row *common = row_same(first->e, first->type);
    for (uint32_t k = 0; k < n; k++) {
        common->has_rows |= open[k]->has_rows;
        if (!open[k]->e || open[k]->fn || open[k]->parts)
            return NULL;
    }
    return common;
}

/* The value of r as one expression, its parts in a tuple, where `form` says what has rows. */
static Expr *leave_block(Batch *m, const Row *r, const Row *form) {
    if (!form->parts)
        return form->has_rows ? batch_with_rows(m, r) : r->e;
    Expr **parts = mem_new_n(Expr *, (size_t)form->nparts + 1);
    for (uint32_t i = 0; i < form->nparts; i++)
        if (!(parts[i] = leave_block(m, r->parts[i], form->parts[i])))
            return NULL;
    return b_tuple(&m->b, parts, form->nparts);
}

static Row *enter_result(Batch *m, Expr *e, const Row *form) {
    Row **parts = mem_new_n(Row *, (size_t)form->nparts + 1);
    for (uint32_t i = 0; i < form->nparts; i++)
        parts[i] = enter_result(m, b_proj(&m->b, e, i), form->parts[i]);
    if (form->parts)
        return row_like(m, form, parts, form->nparts);
    Row *r = row_same(e, form->type);
    r->has_rows = form->has_rows;
    return r;
}

Row *batch_join(Batch *m, Row *const *rows, Block *blocks, uint32_t n, Span span,
                MadeOfBranches made, void *ctx) {
    Block *outer = m->block;
    Row **open = mem_new_n(Row *, n);
    for (uint32_t i = 0; i < n; i++) {
        m->block = &blocks[i];
        open[i] = open_wholly(m, rows[i]);
    }
    Row *form = common_form(m, open, n);
    Expr **values = mem_new_n(Expr *, n);
    bool ok = form != NULL;
    for (uint32_t i = 0; i < n && ok; i++) {
        m->block = &blocks[i];
        values[i] = leave_block(m, open[i], form);
        ok = values[i] != NULL;
        if (ok)
            values[i] = block_end(&blocks[i], values[i]);
    }
    m->block = outer;
    if (!ok)
        return batch_give_up(m, "a choice between values that have not one form", span);
    return enter_result(m, block_let(m->block, "v", made(ctx, values)), form);
}

typedef struct Branches {
    Expr *condition;
    Span span;
} Branches;

static Expr *make_if(void *ctx, Expr **values) {
    const Branches *b = ctx;
    return expr_if(b->condition, values[0], values[1], values[0]->type, b->span);
}

/* One branch runs, for all rows. */
static Row *choose_branch(Batch *m, Expr *e, Row *c) {
    Block sides[2] = {{.b = &m->b}, {.b = &m->b}}, *outer = m->block;
    Row *rows[2];
    for (int i = 0; i < 2; i++) {
        m->block = &sides[i];
        rows[i] = batch_expr(m, i ? e->c : e->b);
        m->block = outer;
        if (!rows[i])
            return NULL;
    }
    Branches branches = {c->e, e->span};
    return batch_join(m, rows, sides, 2, e->span, make_if, &branches);
}

Row *batch_if(Batch *m, Expr *e) {
    Row *c = batch_expr(m, e->a);
    if (!c)
        return NULL;
    bool negated = c->when && row_is_literal(c->yes) && row_is_literal(c->no) && !c->yes->e->i;
    if (c->when && row_is_literal(c->yes) && row_is_literal(c->no))
        c = (Row *)c->when;
    else if (!(c = batch_decide(m, c)))
        return batch_give_up(m, "a condition that has not one form", e->span);
    if (row_is_literal(c))
        return batch_expr(m, c->e->i ? e->b : e->c);
    if (!row_depends(c))
        return choose_branch(m, e, c);
    Row *sides[2];
    for (int i = 0; i < 2; i++) {
        vec_push(&m->assumed, ((Assumption){c, i == 0}));
        sides[i] = batch_expr(m, (i == 0) != negated ? e->b : e->c);
        m->assumed.len--;
        if (!sides[i])
            return NULL;
    }
    return batch_choose(m, c, sides[0], sides[1], e->span);
}
