/* SPDX-License-Identifier: Apache-2.0 */
/* What code of derivatives and optimisers call besides operators, when it becomes ONNX nodes: accumulators (eval/accumulate.c is what
 * they mean, passes/reverse/reverse.h where they come from). Which parts of one are there is known while the code is
 * followed, so only the additions become nodes. */
#include <string.h>

#include "interchange/export_ops.h"
#include "ops/ops.h"
#include "types/type/dim.h"

static bool is_unit(const Traced *t) { return t->kind == TRACED_TUPLE && !t->nparts; }

static Traced *unit(void) { return traced_tuple(NULL, 0); }

static Traced *truth(Export *ex, bool b) { return traced_int(ex, DT_BOOL, b); }

static Traced *part_of(const Traced *t, uint32_t i) { return i < t->nparts ? t->parts[i] : unit(); }

/* A value in the form of `like` with these parts. */
static Traced *with_parts(const Traced *like, Traced **parts, uint32_t n) {
    Traced *t = traced_tuple(parts, n);
    t->kind = like->kind;
    t->ctor = like->ctor;
    return t;
}

static Traced *filled(Export *ex, Span span, Traced *like, bool ones) {
    if (!dtype_is_float(like->dtype))
        return unit();
    return export_default(ex, ones ? &op_ones_like : &op_zeros_like, span, &like, 1);
}

/* A number for each float of x: those of y where it has some, otherwise zeros, or ones. */
static Traced *dense(Export *ex, Span span, Traced *x, Traced *y, bool ones) {
    if (x->kind == TRACED_BAD || y->kind == TRACED_BAD)
        return &ex->bad;
    if (x->kind == TRACED_TENSOR)
        return is_unit(y) ? filled(ex, span, x, ones) : y;
    if (x->kind == TRACED_FN)
        return unit();
    Traced **parts = mem_new_n(Traced *, x->nparts);
    for (uint32_t i = 0; i < x->nparts; i++)
        parts[i] = dense(ex, span, x->parts[i], part_of(y, i), ones);
    return with_parts(x, parts, x->nparts);
}

static Traced *add(Export *ex, Span span, Traced *a, Traced *b) {
    if (a->kind == TRACED_BAD || b->kind == TRACED_BAD)
        return &ex->bad;
    if (is_unit(a) || is_unit(b))
        return is_unit(a) ? b : a;
    if (a->kind == TRACED_TENSOR && b->kind == TRACED_TENSOR) {
        Traced *in[] = {a, b};
        return export_default(ex, &op_add, span, in, 2);
    }
    uint32_t n = a->nparts > b->nparts ? a->nparts : b->nparts;
    Traced **parts = mem_new_n(Traced *, n);
    for (uint32_t i = 0; i < n; i++)
        parts[i] = add(ex, span, part_of(a, i), part_of(b, i));
    return with_parts(a->kind == TRACED_DATA ? a : b, parts, n);
}

/* A part of a tuple whose length is not known may lie behind what was added so far. */
static Traced *add_part(Export *ex, Span span, Traced *acc, uint32_t at, Traced *ct) {
    uint32_t n = at < acc->nparts ? acc->nparts : at + 1;
    Traced **parts = mem_new_n(Traced *, n);
    for (uint32_t i = 0; i < n; i++)
        parts[i] = part_of(acc, i);
    parts[at] = add(ex, span, parts[at], ct);
    return with_parts(acc, parts, n);
}

static bool holds_tensor(const Traced *t) {
    bool any = t->kind == TRACED_TENSOR && dtype_is_float(t->dtype);
    for (uint32_t i = 0; i < t->nparts && !any; i++)
        any = holds_tensor(t->parts[i]);
    return any;
}

/* (accumulator, data, cotangent of data[at], spec, at …) */
static Traced *add_index(Export *ex, const Expr *e, Traced **args) {
    Traced **at = args + 4;
    uint32_t n = e->nargs - 4;
    if (n == 1 && at[0]->kind == TRACED_TUPLE) { /* the integers as one argument */
        n = at[0]->nparts;
        at = at[0]->parts;
    }
    Traced *into = is_unit(args[0]) ? export_default(ex, &op_zeros_like, e->span, &args[1], 1)
                                    : args[0];
    return export_index_add(ex, e->span, e->args[3]->text, into, args[2], at, n);
}

static bool is_named(const Expr *e, const char *name) {
    return strcmp(e->a->symbol->text, name) == 0;
}

static uint32_t place(const Traced *t) {
    int64_t at = 0;
    if (t->kind == TRACED_TENSOR && t->constant)
        elem_cast(&at, DT_I64, tensor_data(t->constant), t->dtype);
    return (uint32_t)at;
}

Traced *export_ad(Export *ex, const Expr *e, Traced **args) {
    for (uint32_t i = 0; i < e->nargs; i++)
        if (args[i]->kind == TRACED_BAD && e->args[i]->kind != EXPR_STRING)
            return &ex->bad;
    if (is_named(e, "ad.settle") || is_named(e, "ad.settle_parts") || is_named(e, "ad.own"))
        return args[0];
    if (is_named(e, "ad.check_seed"))
        return unit();
    if (is_named(e, "ad.is_zero"))
        return truth(ex, is_unit(args[0]));
    if (is_named(e, "ad.has_tangent"))
        return truth(ex, holds_tensor(args[0]));
    if (is_named(e, "ad.is_tensor"))
        return truth(ex, args[0]->kind == TRACED_TENSOR);
    if (is_named(e, "ad.item"))
        return part_of(args[0], place(args[1]));
    if (is_named(e, "ad.has_item"))
        return truth(ex, place(args[1]) < args[0]->nparts);
    if (is_named(e, "ad.add"))
        return add(ex, e->span, args[0], args[1]);
    if (is_named(e, "ad.add_part"))
        return add_part(ex, e->span, args[0], place(args[1]), args[2]);
    if (is_named(e, "ad.add_index"))
        return add_index(ex, e, args);
    if (is_named(e, "ad.dense") || is_named(e, "ad.fit"))
        return dense(ex, e->span, args[0], args[1], false);
    if (is_named(e, "ad.zeros") || is_named(e, "ad.ones"))
        return dense(ex, e->span, args[0], unit(), is_named(e, "ad.ones"));
    if (strncmp(e->a->symbol->text, "ad.mirror", 9) == 0)
        return export_refuse(ex, e->span,
                             "a derivative that writes to cells, as one through references does, "
                             "or through data with two names");
    return export_refuse(ex, e->span, fmt_text("`%s` has no counterpart", e->a->symbol->text));
}

/* ---- data as a list of its tensors ----------------------------------------------------------- */

typedef VEC(Traced *) Leaves;

static bool is_leaf(const Traced *t) {
    return t->kind == TRACED_TENSOR && dtype_is_float(t->dtype);
}

/* The float tensors of y, each beside one of x, in order. */
static void add_leaves(const Traced *x, Traced *y, Leaves *out) {
    if (is_leaf(x))
        vec_push(out, y);
    for (uint32_t i = 0; i < x->nparts; i++)
        add_leaves(x->parts[i], part_of(y, i), out);
}

static Traced *refilled(Traced *x, const Leaves *leaves, size_t *next) {
    if (is_leaf(x))
        return *next < leaves->len ? leaves->data[(*next)++] : unit();
    if (!x->nparts)
        return x;
    Traced **parts = mem_new_n(Traced *, x->nparts);
    for (uint32_t i = 0; i < x->nparts; i++)
        parts[i] = refilled(x->parts[i], leaves, next);
    return with_parts(x, parts, x->nparts);
}

/* The list of these values, whose type says which constructors make it. */
static Traced *list_of(Export *ex, const Expr *e, const Leaves *leaves) {
    Type *type = type_resolve(e->type);
    const Ctor *nil = NULL, *cons = NULL;
    for (uint32_t i = 0; type->tag == TY_DATA && i < type->decl->nctors; i++)
        *(type->decl->ctors[i]->nfields ? &cons : &nil) = type->decl->ctors[i];
    if (!nil || !cons || cons->nfields != 2)
        return export_refuse(ex, e->span, "a list whose type is not known");
    Traced *list = traced_tuple(NULL, 0);
    list->kind = TRACED_DATA;
    list->ctor = nil;
    for (size_t i = leaves->len; i-- > 0;) {
        Traced **parts = mem_new_n(Traced *, 2);
        parts[0] = leaves->data[i];
        parts[1] = list;
        list = traced_tuple(parts, 2);
        list->kind = TRACED_DATA;
        list->ctor = cons;
    }
    return list;
}

Traced *export_tree(Export *ex, const Expr *e, const char *name, Traced **args) {
    Leaves leaves = {0};
    for (uint32_t i = 0; i < e->nargs; i++)
        if (args[i]->kind == TRACED_BAD)
            return &ex->bad;
    if (strcmp(name, "tree.zeros") == 0)
        return dense(ex, e->span, args[0], unit(), false);
    if (strcmp(name, "tree.leaves") == 0)
        add_leaves(args[0], args[0], &leaves);
    else if (strcmp(name, "tree.leaves_like") == 0)
        add_leaves(args[0], args[1], &leaves);
    else if (strcmp(name, "tree.refill") == 0) {
        size_t next = 0;
        for (Traced *rest = args[1]; rest->nparts == 2; rest = rest->parts[1])
            vec_push(&leaves, rest->parts[0]);
        return refilled(args[0], &leaves, &next);
    } else
        return export_refuse(ex, e->span, fmt_text("`%s` has no counterpart", name));
    return list_of(ex, e, &leaves);
}

Traced *export_zero(Export *ex, Span span, Type *type) {
    Type *t = type_resolve(type);
    uint32_t rank;
    Type **dims;
    DType dtype;
    int64_t shape[TENSOR_MAX_RANK];
    if (t->tag == TY_TUPLE) {
        Traced **parts = mem_new_n(Traced *, t->nargs);
        for (uint32_t i = 0; i < t->nargs; i++)
            parts[i] = export_zero(ex, span, t->args[i]);
        return traced_tuple(parts, t->nargs);
    }
    if (t->tag != TY_TENSOR || !type_get_dtype(t, &dtype) || !type_get_rank(t, &rank, &dims) ||
        rank > TENSOR_MAX_RANK)
        return export_refuse(ex, span, "a zero of a type that is not known");
    for (uint32_t i = 0; i < rank; i++)
        if (!type_get_int(dims[i], &shape[i]))
            return export_refuse(ex, span, "a zero of sizes that are not known");
    return traced_constant(tensor_new_zero(dtype, (int)rank, shape));
}
