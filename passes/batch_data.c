/* SPDX-License-Identifier: Apache-2.0 */
/* Data at all rows. What a constructor made of rows is known by its parts; data that is the same for all rows stays a value,
 * and is taken apart where a part of it is asked for. A `match` is decided here where the constructor is known; of a value
 * that is the same for all rows it runs, and its arms are blocks for all rows. */
#include "passes/batch_internal.h"

#include <string.h>

Expr *batch_construct(Ctor *ctor, Expr **fields, Type *type, Span span) {
    Expr *e = expr_new(EXPR_CTOR, type, span);
    e->ctor = ctor;
    if (!ctor->nfields)
        return e;
    Type **types = mem_new_n(Type *, (size_t)ctor->nfields + 1);
    for (uint32_t i = 0; i < ctor->nfields; i++)
        types[i] = fields[i]->type;
    e->type = type_fn(types, ctor->nfields, type, type_allocates());
    return expr_call(e, fields, ctor->nfields, NULL, type, span);
}

Row *batch_data(Batch *m, Ctor *ctor, Row **parts, Type *type, Span span) {
    Expr **same = mem_new_n(Expr *, (size_t)ctor->nfields + 1);
    bool depends = false;
    for (uint32_t i = 0; i < ctor->nfields; i++) {
        bool has_name = !parts[i]->e || parts[i]->e->kind == EXPR_VAR ||
                        parts[i]->e->kind == EXPR_LIT;
        if (!has_name)
            parts[i] = row_of_name(m, parts[i], block_let(m->block, "part", parts[i]->e));
        same[i] = parts[i]->e;
        depends |= row_depends(parts[i]);
    }
    Row *r = row_tuple(parts, ctor->nfields);
    r->ctor = ctor;
    r->type = type;
    if (!depends)
        r->e = batch_construct(ctor, same, type, span);
    return r;
}

Row *batch_constructor(Batch *m, Expr *e, Ctor *ctor) {
    Row **parts = batch_all(m, e->args, ctor->nfields);
    return parts ? batch_data(m, ctor, parts, e->type, e->span) : NULL;
}

static Type *type_of_field(Type *data, const Ctor *ctor, uint32_t i) {
    const TypeDecl *decl = data->decl;
    ctor = ctor_of_type(ctor, data);
    return type_substitute(ctor->fields[i], decl->params, data->args, decl->nparams);
}

/* The fields of data of the only constructor of its type: `match (e) { P(a, b) => (a, b) }`. */
static Row *open_data(Batch *m, const Row *r, Type *t) {
    Ctor *ctor = ctor_of_values(t->decl->ctors[0]);
    uint32_t n = ctor->nfields;
    Pattern *made = b_pattern(&m->b, PAT_CTOR, t);
    Row **parts = mem_new_n(Row *, (size_t)n + 1);
    Expr **fields = mem_new_n(Expr *, (size_t)n + 1);
    made->ctor = ctor;
    made->nargs = n;
    made->args = mem_new_n(Pattern *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Type *type = type_of_field(t, ctor, i);
        made->args[i] = b_pattern(&m->b, PAT_VAR, type);
        made->args[i]->var = b_var(&m->b, "part", type);
        fields[i] = b_ref(&m->b, made->args[i]->var);
    }
    Expr *all = block_let(m->block, "v", b_match(&m->b, r->e, made, b_tuple(&m->b, fields, n)));
    for (uint32_t i = 0; i < n; i++)
        parts[i] = row_same(b_proj(&m->b, all, i), fields[i]->type);
    Row *open = row_tuple(parts, n);
    open->ctor = ctor;
    open->type = r->type;
    open->e = r->e;
    return open;
}

Row *row_open(Batch *m, const Row *r) {
    if (r->parts)
        return (Row *)r;
    Type *t = type_resolve(r->type);
    if (!r->e || r->has_rows)
        return NULL;
    if (t->tag == TY_TUPLE) {
        Row **parts = mem_new_n(Row *, (size_t)t->nargs + 1);
        for (uint32_t i = 0; i < t->nargs; i++)
            parts[i] = row_part(m, r, i);
        Row *open = row_tuple(parts, t->nargs);
        open->e = r->e;
        return open;
    }
    bool is_one = t->tag == TY_DATA && t->decl->nctors == 1 && !t->decl->nexists &&
                  t->decl->nparams == t->nargs;
    return is_one ? open_data(m, r, t) : NULL;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int64_t find_field(const Ctor *ctor, const Symbol *name) {
    for (uint32_t i = 0; ctor->field_names && i < ctor->nfields; i++)
        if (ctor->field_names[i] == name)
            return i;
    return -1;
}

static Row *give_up(Batch *m, const Expr *e) {
    return batch_give_up(m, "data that differs from row to row", e->span);
}

Row *batch_field(Batch *m, Expr *e) {
    Row *r = batch_expr(m, e->a);
    if (!r)
        return NULL;
    if (!r->ctor && !row_depends(r)) {
        Expr *same = expr_copy(e);
        same->a = r->e;
        return row_same(same, e->type);
    }
    int64_t at = r->ctor ? find_field(r->ctor, e->field) : -1;
    return at >= 0 ? r->parts[at] : give_up(m, e);
}

Row *batch_update(Batch *m, Expr *e) {
    Row *base = batch_expr(m, e->a), *open = base ? row_open(m, base) : NULL;
    if (!base)
        return NULL;
    if (!open || !open->ctor)
        return give_up(m, e);
    Row **parts = mem_new_n(Row *, (size_t)open->nparts + 1);
    for (uint32_t i = 0; i < open->nparts; i++)
        parts[i] = open->parts[i];
    for (uint32_t i = 0; i < e->nargs; i++) {
        int64_t at = find_field(open->ctor, e->field_names[i]);
        if (at < 0 || !(parts[at] = batch_expr(m, e->args[i])))
            return give_up(m, e);
    }
    Row *r = row_like(m, open, parts, open->nparts);
    r->type = e->type;
    return r;
}

/* ---- match ----------------------------------------------------------------------------------- */

typedef enum Fits { FITS_NOT, FITS, FITS_UNKNOWN } Fits;

/* Whether the value is of the pattern. binds: its variables then stand for its parts. */
static Fits fit_pattern(Batch *m, const Pattern *p, Row *r, bool binds) {
    switch (p->kind) {
    case PAT_WILDCARD: return FITS;
    case PAT_VAR:
        if (!binds)
            return FITS;
        if (!row_depends(r)) {
            Expr *link = expr_new(EXPR_LET, NULL, p->span);
            link->var = p->var;
            block_bind(m->block, link, r->e);
        }
        map_set(&m->rows, p->var, r);
        return FITS;
    case PAT_LIT:
        if (!r->e || r->e->kind != EXPR_LIT || r->e->like || p->lit->is_float || r->e->is_float)
            return FITS_UNKNOWN;
        return r->e->i == p->lit->i ? FITS : FITS_NOT;
    case PAT_STRING: return FITS_UNKNOWN;
    case PAT_CTOR:
    case PAT_TUPLE: break;
    }
    const Row *open = row_open(m, r);
    if (!open || (p->kind == PAT_CTOR && !open->ctor))
        return FITS_UNKNOWN;
    if (p->kind == PAT_CTOR && open->ctor != p->ctor)
        return FITS_NOT;
    Fits all = FITS;
    for (uint32_t i = 0; i < p->nargs && i < open->nparts && all == FITS; i++)
        all = fit_pattern(m, p->args[i], open->parts[i], binds);
    return all;
}

static Expr *make_match(void *ctx, Expr **values) {
    Expr *e = ctx;
    Arm *arms = mem_new_n(Arm, (size_t)e->narms + 1);
    for (uint32_t i = 0; i < e->narms; i++) {
        arms[i] = e->arms[i];
        arms[i].body = values[i];
    }
    e->arms = arms;
    e->type = values[0]->type;
    return e;
}

/* The arm that the value takes is the same for all rows, and found when running. */
static Row *choose_arm(Batch *m, Expr *e, Row *value) {
    Block *blocks = mem_new_n(Block, (size_t)e->narms + 1), *outer = m->block;
    Row **rows = mem_new_n(Row *, (size_t)e->narms + 1);
    for (uint32_t i = 0; i < e->narms; i++) {
        blocks[i].b = &m->b;
        m->block = &blocks[i];
        rows[i] = batch_expr(m, e->arms[i].body);
        m->block = outer;
        if (!rows[i])
            return NULL;
    }
    Expr *made = expr_copy(e);
    made->a = value->e;
    return batch_join(m, rows, blocks, e->narms, e->span, make_match, made);
}

Row *batch_match(Batch *m, Expr *e) {
    Row *value = batch_expr(m, e->a);
    if (!value)
        return NULL;
    for (uint32_t i = 0; i < e->narms; i++) {
        Fits fits = e->arms[i].guard ? FITS_UNKNOWN
                                     : fit_pattern(m, e->arms[i].pattern, value, false);
        if (fits == FITS) {
            (void)fit_pattern(m, e->arms[i].pattern, value, true);
            return batch_expr(m, e->arms[i].body);
        }
        if (fits == FITS_UNKNOWN)
            break;
    }
    for (uint32_t i = 0; i < e->narms; i++)
        if (e->arms[i].guard)
            return batch_give_up(m, "a `match` with a condition", e->span);
    return row_depends(value)
               ? batch_give_up(m, "a `match` of what differs from row to row", e->span)
               : choose_arm(m, e, value);
}
