/* SPDX-License-Identifier: Apache-2.0 */
/* What derivatives are made of, at all rows: cotangents are tensors, tuples of such, or absent, which is known here, so that
 * these functions of the evaluator become operators or nothing. */
#include "passes/batch_internal.h"

#include <string.h>

extern const Op op_add, op_index_add;

static Row *give_up(Batch *m, const Expr *call) {
    const Symbol *name = call->a->kind == EXPR_GLOBAL ? call->a->global->name : call->a->symbol;
    return batch_give_up(m, fmt_text("`%s`, which has no rule for all rows at once", name->text),
                         call->span);
}

static bool is_float_tensor(Type *t) {
    DType dtype;
    return type_resolve(t)->tag == TY_TENSOR && type_get_dtype(t, &dtype) && dtype_is_float(dtype);
}

static Row *absent(void) { return row_tuple(NULL, 0); }

/* Zeros or ones for the float tensors in x. */
static Row *fill(Batch *m, const Row *x, const Op *op, const Expr *call) {
    Type *t = type_resolve(x->type);
    const Row *open = row_open(m, x);
    if (open) {
        Row **parts = mem_new_n(Row *, (size_t)open->nparts + 1);
        for (uint32_t i = 0; i < open->nparts; i++)
            if (!(parts[i] = fill(m, open->parts[i], op, call)))
                return NULL;
        return row_like(m, open, parts, open->nparts);
    }
    if (t->tag != TY_TENSOR && t->tag != TY_STRING)
        return give_up(m, call);
    if (!is_float_tensor(t))
        return absent();
    Row **in = mem_new_n(Row *, 1);
    in[0] = (Row *)x;
    return batch_call(m, op, in, 1, attrs_defaults(op), t, call->span);
}

Row *batch_zeros(Batch *m, const Row *x, const Expr *call) {
    return fill(m, x, &op_zeros_like, call);
}

/* Whether only the run knows if the cotangent, one for all rows, is there: it is what a function gave. */
static bool may_be_absent(const Row *ct) {
    return ct->e && !ct->has_rows && type_resolve(ct->type)->tag == TY_PARAM;
}

/* ct in the form of x, with zeros where it is absent. */
static Row *make_dense(Batch *m, const Row *x, const Row *ct, const Expr *call) {
    Type *t = type_resolve(x->type);
    if (row_is_unit(ct))
        return fill(m, x, &op_zeros_like, call);
    if (may_be_absent(ct))
        return row_depends(x)
                   ? give_up(m, call)
                   : row_same(b_builtin(&m->b, call->a->symbol->text, x->e, ct->e, NULL), x->type);
    if (ct->when) {
        Row *yes = make_dense(m, x, ct->yes, call);
        Row *no = yes ? make_dense(m, x, ct->no, call) : NULL;
        return no ? batch_choose(m, ct->when, yes, no, call->span) : NULL;
    }
    const Row *open = row_open(m, x), *parts_of = open ? row_open(m, ct) : NULL;
    if (!open)
        return t->tag == TY_TENSOR ? (Row *)ct : give_up(m, call);
    if (!parts_of)
        return give_up(m, call);
    Row **parts = mem_new_n(Row *, (size_t)open->nparts + 1);
    for (uint32_t i = 0; i < open->nparts; i++) {
        const Row *of = i < parts_of->nparts ? parts_of->parts[i] : absent();
        if (!(parts[i] = make_dense(m, open->parts[i], of, call)))
            return NULL;
    }
    return row_like(m, open, parts, open->nparts);
}

static Row *add(Batch *m, const Row *a, const Row *b, const Expr *call) {
    if (row_is_unit(a) || row_is_unit(b))
        return (Row *)(row_is_unit(a) ? b : a);
    if (a->when || b->when) {
        const Row *two = a->when ? a : b;
        Row *yes = a->when ? add(m, a->yes, b, call) : add(m, a, b->yes, call);
        Row *no = !yes ? NULL : a->when ? add(m, a->no, b, call) : add(m, a, b->no, call);
        return no ? batch_choose(m, two->when, yes, no, call->span) : NULL;
    }
    Type *t = type_resolve(a->type), *u = type_resolve(b->type);
    const Row *x = row_open(m, a), *y = row_open(m, b);
    if (x && y && x->ctor == y->ctor) {
        uint32_t n = x->nparts > y->nparts ? x->nparts : y->nparts;
        Row **parts = mem_new_n(Row *, (size_t)n + 1);
        for (uint32_t i = 0; i < n; i++) {
            const Row *l = i < x->nparts ? x->parts[i] : absent();
            const Row *r = i < y->nparts ? y->parts[i] : absent();
            if (!(parts[i] = add(m, l, r, call)))
                return NULL;
        }
        return row_like(m, x, parts, n);
    }
    if (t->tag != TY_TENSOR || u->tag != TY_TENSOR)
        return give_up(m, call);
    Row **in = mem_new_n(Row *, 2);
    in[0] = (Row *)a;
    in[1] = (Row *)b;
    return batch_call(m, &op_add, in, 2, attrs_defaults(&op_add), t, call->span);
}

/* An integer that is written there; -1 where it is none. */
static int64_t known_integer(const Row *r) {
    return r->e && r->e->kind == EXPR_LIT && !r->e->is_float ? r->e->i : -1;
}

/* (accumulator, number of the part, cotangent) */
static Row *add_part(Batch *m, Row **in, const Expr *call) {
    int64_t at = known_integer(in[1]);
    uint32_t n = type_resolve(in[0]->type)->tag == TY_TUPLE ? type_resolve(in[0]->type)->nargs : 0;
    if (at < 0 || at > 1 << 16)
        return give_up(m, call);
    uint32_t len = (uint32_t)at < n ? n : (uint32_t)at + 1;
    Row **parts = mem_new_n(Row *, (size_t)len + 1);
    for (uint32_t i = 0; i < len; i++) {
        parts[i] = i < n ? row_part(m, in[0], i) : absent();
        if (!parts[i])
            return give_up(m, call);
    }
    parts[at] = add(m, parts[at], in[2], call);
    return parts[at] ? batch_tuple_of(m, parts, len) : NULL;
}

/* The same of all rows, which changes the accumulator in place where that ends here; NULL where that is not what it does of
 * one row. The sum is settled at once, since what reads it next may be any operator. */
static Row *add_index_in_place(Batch *m, Row **in, const Expr *call) {
    const char *spec = in[3]->e->text;
    Type *t = type_resolve(in[1]->type);
    if (m->follows || !is_float_tensor(t) || in[0]->when ||
        !batch_is_whole_part(spec, t, in[2]->type))
        return NULL;
    Expr **args = mem_new_n(Expr *, call->nargs);
    args[0] = row_is_unit(in[0]) ? expr_tuple(NULL, 0, call->span) : batch_with_rows(m, in[0]);
    for (uint32_t i = 1; i < call->nargs; i++) {
        if (!in[i]->e || (i > 3 && in[i]->has_rows))
            return NULL;
        args[i] = i < 3 ? batch_with_rows(m, in[i]) : in[i]->e;
        if (!args[i])
            return NULL;
    }
    if (!args[0])
        return NULL;
    args[3] = expr_copy(in[3]->e);
    args[3]->text = fmt_text(":0%s", spec);
    args[3]->text_len = strlen(args[3]->text);
    Expr *made = b_builtin_n(&m->b, "ad.add_index", args, call->nargs);
    made->type = batch_type(m, t);
    Expr *settled = b_builtin(&m->b, "ad.settle", batch_bind(m, made, t)->e, NULL);
    settled->type = made->type;
    return batch_bind(m, settled, t);
}

/* (accumulator, data, cotangent of data[at], spec, at …) */
static Row *add_index(Batch *m, Row **in, const Expr *call) {
    if (!in[3]->e || in[3]->e->kind != EXPR_STRING)
        return give_up(m, call);
    Row *added = add_index_in_place(m, in, call);
    if (added)
        return added;
    Row *zero = fill(m, in[1], &op_zeros_like, call);
    bool joins = strpbrk(in[3]->e->text, "vo"); /* what goes to one place is added together first */
    Row *to = zero && !row_is_unit(in[0]) && !joins ? add(m, in[0], zero, call) : zero;
    if (!to)
        return NULL;
    AttrValue *values = mem_new_n(AttrValue, (size_t)op_index_add.nattrs);
    values[op_attr_index(&op_index_add, "spec")] = (AttrValue){.kind = ATTR_STRING,
                                                               .text = in[3]->e->text};
    Attrs *attrs = mem_new(Attrs);
    *attrs = (Attrs){&op_index_add, values};
    Row **args = mem_new_n(Row *, 3);
    args[0] = to;
    args[1] = in[2];
    bool is_tuple = call->nargs == 5 && type_resolve(in[4]->type)->tag == TY_TUPLE;
    args[2] = is_tuple ? in[4] : batch_tuple_of(m, in + 4, call->nargs - 4);
    Row *sum = batch_call(m, &op_index_add, args, 3, attrs, in[1]->type, call->span);
    return sum && joins && !row_is_unit(in[0]) ? add(m, in[0], sum, call) : sum;
}

Row *batch_derivative(Batch *m, const Expr *call, Row **in) {
    const char *name = call->a->symbol->text;
    if (strcmp(name, "ad.own") == 0 || strcmp(name, "ad.settle") == 0 ||
        strcmp(name, "ad.settle_parts") == 0)
        return in[0];
    if (strcmp(name, "ad.dense") == 0 || strcmp(name, "ad.fit") == 0)
        return make_dense(m, in[0], in[1], call);
    if (strcmp(name, "ad.zeros") == 0)
        return fill(m, in[0], &op_zeros_like, call);
    if (strcmp(name, "ad.ones") == 0)
        return fill(m, in[0], &op_ones_like, call);
    if (strcmp(name, "ad.add") == 0)
        return add(m, in[0], in[1], call);
    if (strcmp(name, "ad.add_part") == 0)
        return add_part(m, in, call);
    if (strcmp(name, "ad.add_index") == 0)
        return add_index(m, in, call);
    if (strcmp(name, "ad.check_seed") == 0 && type_is_closed(in[0]->type) &&
        type_equal(type_resolve(in[0]->type), type_resolve(in[1]->type)))
        return absent();
    if (strcmp(name, "ad.is_zero") == 0 && !in[0]->when)
        return row_same(expr_bool(row_is_unit(in[0]), call->span), type_scalar(DT_BOOL));
    if (strcmp(name, "ad.item") == 0) {
        int64_t at = known_integer(in[1]);
        if (row_is_unit(in[0]))
            return absent();
        Row *part = at >= 0 ? row_part(m, in[0], (uint32_t)at) : NULL;
        bool missing = at >= 0 && in[0]->parts && at >= in[0]->nparts;
        return part ? part : missing ? absent() : give_up(m, call);
    }
    return give_up(m, call);
}
