/* SPDX-License-Identifier: Apache-2.0 */
/* e[…] and e.0. What is indexed may turn out to be a tensor or a tuple; the node is made specific
 * in infer_settle. */
#include <string.h>

#include "types/infer/state.h"

static bool is_error(const Expr *e) { return type_resolve(e->type)->tag == TY_ERROR; }

static void refuse_index(Infer *I, const Expr *x, bool bound) {
    const char *found = type_text(x->type);
    Diag *d = bound ? infer_error(I, DIAG_R0201, x->span,
                                  "the bound of a slice is one integer, found %s", found)
                    : infer_error(I, DIAG_R0201, x->span,
                                  "an index is one integer, or one vector of integers or bools, "
                                  "found %s",
                                  found);
    if (!d)
        return;
    diag_set_label(d, "%s", type_text(x->type));
    uint32_t rank;
    Type **dims, *t = type_resolve(x->type);
    if (!bound && t->tag == TY_TENSOR && type_get_rank(t, &rank, &dims) && rank > 1 &&
        type_dtype_set(t->tensor.dtype) == DTS_BOOL)
        diag_add_help(d, "a mask of all axes chooses from the flat tensor: "
                         "`reshape(x, newshape=[-1])[reshape(mask, newshape=[-1])]`");
}

/* The dtypes that an index may still have; its rank is known or 0. */
static bool restrict_index(Infer *I, Expr *x, uint32_t rank, DTypeSet set) {
    Type *dtype = solver_var(I->s, KIND_DTYPE), *size = solver_var(I->s, KIND_DIM);
    Type *want = type_tensor(type_shape(&size, rank), dtype);
    return solver_restrict(I->s, dtype, set) && solver_unify(I->s, x->type, want);
}

/* Whether the rank of an index is still to be told, and its dtype may be one that an index has. */
static bool is_open_index(Type *t) {
    uint32_t rank;
    Type **dims;
    if (t->tag != TY_TENSOR)
        return t->tag == TY_VAR;
    return !type_get_rank(t, &rank, &dims) && type_resolve(t->tensor.shape)->tag != TY_ANY;
}

/* A literal needs no dtype, whatever is indexed: one of integers has that which holds them. */
static void settle_literal(Infer *I, const Expr *x) {
    Type *b = type_resolve(type_resolve(x->type)->tensor.dtype);
    if (b->tag != TY_VAR || !(type_dtype_set(b) & DTS_INT))
        return;
    DType holds = DT_I32;
    for (size_t i = 0; i < I->fallbacks.len; i++)
        if (type_resolve(I->fallbacks.data[i].var) == b && I->fallbacks.data[i].dtype == DT_I64)
            holds = DT_I64;
    solver_unify(I->s, b, type_dtype(holds));
}

/* Infers one integer of an index: a scalar of any integer dtype. letter: NULL, or where a vector may stand too; it
 * becomes the letter of the spec (types/core/core.h). */
static Expr *infer_one_index(Infer *I, Ast *e, char *letter) {
    Expr *x = infer_expr(I, e, NULL);
    uint32_t rank = 0;
    Type **dims, *t = type_resolve(x->type);
    if (t->tag == TY_ERROR)
        return x;
    if (x->kind == EXPR_LIT || x->kind == EXPR_CONST)
        settle_literal(I, x);
    bool shaped = t->tag == TY_TENSOR && type_get_rank(t, &rank, &dims);
    if (t->tag == TY_TENSOR && !shaped && type_dtype_set(t->tensor.dtype) == DTS_BOOL)
        rank = 1; /* one bool is no index */
    if (letter && solver_is_equality(t)) {
        *letter = 'v';
        if (!restrict_index(I, x, 1, DTS_BOOL))
            refuse_index(I, x, false);
        return x;
    }
    if (letter && rank == 0 && is_open_index(t)) {
        *letter = 'o';
        Type *dtype = solver_var(I->s, KIND_DTYPE);
        if (!solver_restrict(I->s, dtype, DTS_INT | DTS_BOOL) ||
            !solver_unify(I->s, x->type, type_tensor(solver_var(I->s, KIND_SHAPE), dtype)))
            refuse_index(I, x, false);
        return x;
    }
    if (letter && rank == 1)
        *letter = 'v';
    bool ok = rank == 0 ? restrict_index(I, x, 0, DTS_INT)
                        : letter && rank == 1 && restrict_index(I, x, 1, DTS_INT | DTS_BOOL);
    if (!ok)
        refuse_index(I, x, !letter);
    return x;
}

/* What stands between brackets. */
typedef struct Indices {
    Str spec;
    Expr **args;
    uint32_t n;
    const Ast *vector; /* where it is written, or NULL */
} Indices;

static void add_integer(Infer *I, Ast *e, Indices *to) {
    to->args[to->n++] = infer_one_index(I, e, NULL);
}

static void add_index(Infer *I, Ast *e, Indices *to) {
    char letter = 'i';
    to->args[to->n++] = infer_one_index(I, e, &letter);
    str_add_char(&to->spec, letter);
    bool vector = letter == 'v';
    if (vector && to->vector) {
        Diag *d = infer_error(I, DIAG_R0201, e->span, "an index has at most one vector");
        if (d) {
            diag_add_label(d, to->vector->span, "one vector");
            diag_add_help(d, "one after the other is `x[rows][:, columns]`");
        }
    } else if (vector) {
        to->vector = e;
    }
}

/* False after a diagnostic. */
static bool infer_indices(Infer *I, const Ast *e, Indices *to) {
    uint32_t ellipses = 0;
    *to = (Indices){.args = mem_new_n(Expr *, 3 * e->indices.len + 1)};
    for (size_t i = 0; i < e->indices.len; i++) {
        const AstIndex *x = &e->indices.data[i];
        switch (x->kind) {
        case INDEX_AT: add_index(I, x->at, to); break;
        case INDEX_SLICE:
            str_printf(&to->spec, ":%d", (x->begin ? 1 : 0) + (x->end ? 2 : 0) + (x->step ? 4 : 0));
            if (x->begin)
                add_integer(I, x->begin, to);
            if (x->end)
                add_integer(I, x->end, to);
            if (x->step)
                add_integer(I, x->step, to);
            break;
        case INDEX_ELLIPSIS:
            str_add_char(&to->spec, '.');
            if (++ellipses > 1)
                infer_error(I, DIAG_R0201, x->span, "an index has at most one `...`");
            break;
        case INDEX_NEW_AXIS: str_add_char(&to->spec, 'n'); break;
        }
    }
    return !infer_failed(I);
}

static const Attrs *attrs_of_spec(const Op *op, const Indices *indices) {
    Attrs *attrs = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    values[op_attr_index(op, "spec")] = (AttrValue){.kind = ATTR_STRING,
                                                    .text = str_text(&indices->spec)};
    attrs->op = op;
    attrs->values = values;
    return attrs;
}

/* The operator takes the indices as one tuple. */
static Type *tuple_of_indices(const Indices *indices) {
    Type **types = mem_new_n(Type *, indices->n + 1);
    for (uint32_t i = 0; i < indices->n; i++)
        types[i] = indices->args[i]->type;
    return type_tuple(types, indices->n);
}

static Span span_of_indices(const Indices *indices, Span otherwise) {
    uint32_t n = indices->n;
    return n ? span_join(indices->args[0]->span, indices->args[n - 1]->span) : otherwise;
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

/* The attributes as the relation of the operator sees them. */
static const Attrs *known_attrs(const Attrs *attrs, const Indices *indices) {
    bool slices = indices->n && strchr(attrs_text(attrs, "spec"), ':');
    return slices ? with_sizes(attrs, indices->args, indices->n) : attrs;
}

const Attrs *infer_index_attrs(const Expr *call) {
    const Op *op = call->a->op;
    if ((op != &op_index && op != &op_index_set) || call->args[1]->kind != EXPR_TUPLE)
        return call->attrs;
    const Indices at = {.args = call->args[1]->args, .n = call->args[1]->nargs};
    return known_attrs(call->attrs, &at);
}

Expr *infer_index(Infer *I, Ast *e) {
    Expr *a = infer_expr(I, e->a, NULL);
    Indices at;
    if (!infer_indices(I, e, &at) || is_error(a))
        return infer_error_expr(e->span);
    bool lone = e->indices.len == 1 && e->indices.data[0].kind == INDEX_AT;
    Expr *x = expr_new(EXPR_INDEX, solver_var(I->s, KIND_TYPE), e->span);
    x->a = a;
    x->args = at.args;
    x->nargs = at.n;
    x->attrs = attrs_of_spec(&op_index, &at);
    Type **types = mem_new_n(Type *, 3);
    Span *spans = mem_new_n(Span, 2);
    types[0] = a->type;
    types[1] = tuple_of_indices(&at);
    types[2] = x->type;
    spans[0] = a->span;
    spans[1] = span_of_indices(&at, e->span);
    Relation *r = solver_post_index(I->s, types, 3, known_attrs(x->attrs, &at),
                                    lone ? constant_of(at.args[0]) : NULL, e->span);
    r->arg_spans = spans;
    r->expr = x;
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    infer_note(I, PENDING_INDEX, x);
    return x;
}

/* { t with [i, 1:3] = v }: t, the indices, v. */
Expr *infer_with_at(Infer *I, Ast *e) {
    Expr *a = infer_expr(I, e->a, NULL);
    Indices at;
    bool ok = infer_indices(I, e, &at);
    Expr *part = infer_expr(I, e->args.data[0], NULL);
    if (!ok || is_error(a) || is_error(part))
        return infer_error_expr(e->span);
    Type *t = type_resolve(a->type);
    if (t->tag != TY_VAR && t->tag != TY_PARAM && t->tag != TY_TENSOR) {
        Diag *d = infer_error(I, DIAG_R0212, a->span,
                              "`with [...]` changes a part of a tensor, found %s", type_text(t));
        if (d)
            diag_set_label(d, "%s", type_text(t));
        return infer_error_expr(e->span);
    }
    Expr **args = mem_new_n(Expr *, 3);
    Type **types = mem_new_n(Type *, 4);
    args[0] = a;
    args[1] = expr_tuple(at.args, at.n, span_of_indices(&at, e->span));
    args[2] = part;
    types[0] = a->type;
    types[1] = args[1]->type = tuple_of_indices(&at);
    types[2] = part->type;
    types[3] = solver_var(I->s, KIND_TYPE);
    const Attrs *attrs = attrs_of_spec(&op_index_set, &at);
    Expr *x = expr_call_op(&op_index_set, args, 3, attrs, types[3], e->span);
    if (part->kind == EXPR_LIT || part->kind == EXPR_CONST)
        map_set(&I->beside, part, x);
    Relation *r = infer_post(I, op_index_set.relation, types, 4, known_attrs(attrs, &at),
                             e->op_span, x, args, 3);
    r->op = &op_index_set;
    ((Span *)r->arg_spans)[1] = span_none();
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    infer_note(I, PENDING_INDEX, x);
    return x;
}

/* Γ ⊢ e : (T0, …, Tn)   ⟹   e.i : Ti */
Expr *infer_proj(Infer *I, Ast *e) {
    Expr *item = infer_slot_proj(I, e);
    if (item)
        return item;
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
