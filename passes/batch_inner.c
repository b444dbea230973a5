/* SPDX-License-Identifier: Apache-2.0 */
/* A `vmap` inside of a function at all rows: its own function at its rows first, which the rows outside then go through.
 *
 *   vmap(fn (x) { vmap(f)(p, x) })(xs)     f at all rows p.w, p.b of p and x, as code  g(p.w, p.b, x);
 *                                          then g at all rows of xs */
#include "passes/batch_internal.h"
#include "passes/subst.h"
#include "passes/vmap.h"

/* The arguments, down to tensors and tuples of them. */
typedef struct Inner {
    Batch *m;
    Span span;
    VEC(Expr *) args; /* variables that stand for them where the inner rows are all there, */
    VarVec params;    /* and those of one row */
    Type *count;      /* the size of their first axes; NULL: no tensor was met */
} Inner;

static Expr *refuse(const Inner *in) {
    (void)batch_give_up(in->m, "`vmap` of an argument that is no tensor", in->span);
    return NULL;
}

/* One row of a tensor, or of a tuple of tensors. */
static Expr *take_leaf(Inner *in, Row *r, Type *row) {
    uint32_t rank;
    Type **dims;
    Expr *all = expr_var(var_new(sym_intern("x"), r->type, in->span), in->span);
    map_set(&in->m->rows, all->var, batch_name_row(in->m, r, all));
    Type *t = vmap_tensor_in(r->type);
    in->count = t && type_get_rank(t, &rank, &dims) && rank ? dims[0] : in->count;
    vec_push(&in->args, all);
    Expr *one = expr_var(var_new(sym_intern("x"), row, in->span), in->span);
    vec_push(&in->params, one->var);
    return one;
}

/* One row of an argument; NULL where it has none. */
static Expr *take_row(Inner *in, Row *r) {
    Type *t = type_resolve(r->type), *row = vmap_type_of_row(t);
    if (row)
        return take_leaf(in, r, row);
    if (t->tag == TY_STRING || t->tag == TY_FN || t->tag == TY_REF)
        return row_depends(r) ? refuse(in) : r->e;
    const Row *open = row_open(in->m, r);
    if (!open)
        return refuse(in);
    Expr **parts = mem_new_n(Expr *, (size_t)open->nparts + 1);
    for (uint32_t i = 0; i < open->nparts; i++)
        if (!(parts[i] = take_row(in, open->parts[i])))
            return NULL;
    return open->ctor ? batch_construct(open->ctor, parts, type_row(t), in->span)
                      : expr_tuple(parts, open->nparts, in->span);
}

Row *batch_inner(Batch *m, Expr *e) {
    int64_t count;
    uint32_t n = e->nargs;
    Expr *fn = batch_known_function(m, e->a->a);
    Row **rows = batch_all(m, e->args, n);
    if (!rows)
        return NULL;
    if (!fn || fn->fn->nparams != n)
        return batch_give_up(m, "`vmap` of a function that is not known", e->span);
    Inner in = {.m = m, .span = e->span};
    Build b = {e->span};
    Block block = {.b = &b};
    Expr **args = mem_new_n(Expr *, (size_t)n + 1);
    Subst s = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (!(args[i] = take_row(&in, rows[i])))
            return NULL;
        args[i] = block_atom(&block, "x", args[i]);
        map_set(&s.vars, fn->fn->params[i], args[i]);
    }
    if (!in.count || !type_get_int(in.count, &count) || count < 1)
        return batch_give_up(m, "`vmap` of rows that may be none", e->span);
    s.mono = mono_of_rows(fn->fn->params, args, n);
    Expr *body = block_end(&block, expr_substitute(&s, fn->fn->body));
    Expr *literal = b_fn(&m->b, "vmap", in.params.data, (uint32_t)in.params.len, body);
    Expr *all = batch_rows_within(m, literal, in.args.data, in.count, e->span);
    return all ? batch_expr(m, all) : NULL;
}
