/* SPDX-License-Identifier: Apache-2.0 */
/* e[…] and e.0. What is indexed may turn out to be a tensor or a tuple; the node is made specific
 * in infer_settle. */
#include <string.h>

#include "types/infer/state.h"

static bool is_error(const Expr *e) { return type_resolve(e->type)->tag == TY_ERROR; }

/* Infers one integer of an index: a scalar of any integer dtype. */
static Expr *integer(Infer *I, Ast *e) {
    Expr *x = infer_expr(I, e, NULL);
    if (is_error(x))
        return x;
    if (x->kind == EXPR_LIT && !x->is_float) { /* a literal needs no dtype, whatever is indexed */
        Type *b = type_resolve(type_resolve(x->type)->tensor.dtype);
        if (b->tag == TY_VAR)
            solver_unify(I->s, b,
                         type_dtype(dtype_holds_int(DT_I32, x->i, false) ? DT_I32 : DT_I64));
    }
    Type *dtype = solver_var(I->s, KIND_DTYPE);
    Type *want = type_tensor(type_shape(NULL, 0), dtype);
    bool ok = solver_restrict(I->s, dtype, DTS_INT) && solver_unify(I->s, x->type, want);
    if (!ok) {
        Diag *d = infer_error(I, DIAG_R0201, x->span, "an index is one integer, found %s",
                              type_text(x->type));
        if (d)
            diag_set_label(d, "%s", type_text(x->type));
    }
    return x;
}

static void add_integer(Infer *I, Ast *e, Expr **args, uint32_t *n) {
    args[(*n)++] = integer(I, e);
}

static const int64_t *constant_of(const Expr *e) {
    if (e->kind != EXPR_LIT || e->is_float)
        return NULL;
    int64_t *k = mem_new(int64_t);
    *k = e->i;
    return k;
}

/* An integer between brackets as the relation sees it: a number, a size, or `?`. */
static AttrValue known_integer(Expr *e) {
    Type *size = expr_size(e);
    int64_t n;
    if (size)
        expr_check_size(e);
    if (size && type_get_int(size, &n))
        return (AttrValue){.kind = ATTR_INT, .i = n};
    return (AttrValue){.kind = ATTR_DIM, .dim = size ? size : type_any(KIND_DIM, NULL)};
}

/* The attributes for the relation, with the integers of slices. The call's own attributes do not hold them. */
static const Attrs *with_sizes(const Attrs *attrs, Expr **args, uint32_t n) {
    AttrValue *values = mem_new_n(AttrValue, attrs->op->nattrs),
              *items = mem_new_n(AttrValue, n + 1);
    for (uint32_t i = 0; i < n; i++)
        items[i] = known_integer(args[i]);
    for (int i = 0; i < attrs->op->nattrs; i++)
        values[i] = attrs->values[i];
    AttrValue *sizes = &values[op_attr_index(attrs->op, "sizes")];
    sizes->kind = ATTR_LIST;
    sizes->list.items = items;
    sizes->list.n = n;
    Attrs *out = mem_new(Attrs);
    out->op = attrs->op;
    out->values = values;
    return out;
}

Expr *infer_index(Infer *I, Ast *e) {
    Expr *a = infer_expr(I, e->a, NULL);
    Str spec = {0};
    Expr **args = mem_new_n(Expr *, 3 * e->indices.len + 1);
    uint32_t n = 0, ellipses = 0;
    for (size_t i = 0; i < e->indices.len; i++) {
        const AstIndex *x = &e->indices.data[i];
        switch (x->kind) {
        case INDEX_AT:
            str_add_char(&spec, 'i');
            add_integer(I, x->at, args, &n);
            break;
        case INDEX_SLICE:
            str_printf(&spec, ":%d", (x->begin ? 1 : 0) + (x->end ? 2 : 0) + (x->step ? 4 : 0));
            if (x->begin)
                add_integer(I, x->begin, args, &n);
            if (x->end)
                add_integer(I, x->end, args, &n);
            if (x->step)
                add_integer(I, x->step, args, &n);
            break;
        case INDEX_ELLIPSIS:
            str_add_char(&spec, '.');
            if (++ellipses > 1)
                infer_error(I, DIAG_R0201, x->span, "an index has at most one `...`");
            break;
        case INDEX_NEW_AXIS: str_add_char(&spec, 'n'); break;
        }
    }
    if (is_error(a) || infer_failed(I))
        return infer_error_expr(e->span);
    bool lone = e->indices.len == 1 && e->indices.data[0].kind == INDEX_AT;
    const Op *op = &op_index;
    Attrs *attrs = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    values[op_attr_index(op, "spec")] = (AttrValue){.kind = ATTR_STRING, .text = str_text(&spec)};
    attrs->op = op;
    attrs->values = values;
    Expr *x = expr_new(EXPR_INDEX, solver_var(I->s, KIND_TYPE), e->span);
    x->a = a;
    x->args = args;
    x->nargs = n;
    x->attrs = attrs;
    /* the operator takes the integers as one tuple */
    Type **ints = mem_new_n(Type *, n + 1), **types = mem_new_n(Type *, 3);
    Span *spans = mem_new_n(Span, 2);
    for (uint32_t i = 0; i < n; i++)
        ints[i] = args[i]->type;
    types[0] = a->type;
    types[1] = type_tuple(ints, n);
    types[2] = x->type;
    spans[0] = a->span;
    spans[1] = n ? span_join(args[0]->span, args[n - 1]->span) : e->span;
    const Attrs *known = n && strchr(str_text(&spec), ':') ? with_sizes(attrs, args, n) : attrs;
    Relation *r = solver_post_index(I->s, types, 3, known, lone ? constant_of(args[0]) : NULL,
                                    e->span);
    r->arg_spans = spans;
    r->expr = x;
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    infer_note(I, PENDING_INDEX, x);
    return x;
}

/* Γ ⊢ e : (T0, …, Tn)   ⟹   e.i : Ti */
Expr *infer_proj(Infer *I, Ast *e) {
    Expr *a = infer_expr(I, e->a, NULL);
    if (is_error(a))
        return infer_error_expr(e->span);
    Type *t = type_resolve(a->type);
    if (t->tag == TY_TUPLE && e->i >= 0 && e->i < t->nargs)
        return expr_proj(a, (uint32_t)e->i, t->args[e->i], e->span);
    Type *result = solver_var(I->s, KIND_TYPE);
    Relation *r = solver_post_proj(I->s, a->type, e->i, result, e->span);
    Expr *p = expr_proj(a, (uint32_t)e->i, result, e->span);
    Span *spans = mem_new(Span);
    *spans = a->span;
    r->arg_spans = spans;
    r->expr = p;
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    return p;
}
