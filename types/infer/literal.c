/* SPDX-License-Identifier: Apache-2.0 */
/* Literals and casts. An unsuffixed number is weak (LANGUAGE §1): its dtype is a variable, settled by what it
 * meets; its node is completed in infer_settle. A tensor literal made of numbers alone is one
 * constant; others are stacked when running. */
#include <string.h>

#include "types/infer/state.h"

static const Origin *literal_origin(Span span) {
    Origin *o = mem_new(Origin);
    o->kind = ORIGIN_LITERAL;
    o->span = span;
    return o;
}

/* The dtype of a number: its suffix, or a weak variable. */
static Type *number_dtype(Infer *I, const Ast *e) {
    DType t;
    if (e->dtype && dtype_find(e->dtype->text, e->dtype->len, &t))
        return type_dtype(t);
    bool is_float = e->kind == AST_FLOAT;
    Type *b = solver_weak_dtype(I->s, is_float, e->span);
    if (!is_float && (e->i > INT32_MAX || e->i < INT32_MIN)) {
        Fallback f = {b, DT_I64};
        vec_push(&I->fallbacks, f);
    }
    return b;
}

static Expr *scalar(Infer *I, Type *dtype, Span span) {
    Expr *lit = expr_new(EXPR_LIT, type_tensor(type_shape(NULL, 0), dtype), span);
    infer_note(I, PENDING_LIT, lit);
    return lit;
}

Expr *infer_literal(Infer *I, Ast *e, bool negative) {
    Expr *lit = scalar(I, number_dtype(I, e), e->span);
    lit->is_float = e->kind == AST_FLOAT;
    if (lit->is_float) {
        lit->f = negative ? -e->f : e->f;
    } else {
        lit->i = negative ? (int64_t)(0 - (uint64_t)e->i) : e->i;
    }
    return lit;
}

Expr *infer_literal_beside(Infer *I, Ast *e, Type *operand) {
    if ((e->kind != AST_INT && e->kind != AST_FLOAT) || e->dtype)
        return NULL;
    Type *t = type_resolve(operand);
    uint32_t rank;
    Type **dims;
    if (t->tag != TY_TENSOR || !type_get_rank(t, &rank, &dims) || rank != 0)
        return NULL;
    Type *dtype = type_resolve(t->tensor.dtype);
    bool is_float = e->kind == AST_FLOAT;
    bool known = dtype->tag == TY_DTYPE || (dtype->tag == TY_VAR && dtype->var.weak);
    if (!known || (type_dtype_set(dtype) & ~(is_float ? DTS_FLOAT : DTS_NUM)) ||
        (!is_float && e->i > INT32_MAX))
        return NULL;
    Expr *lit = expr_new(EXPR_LIT, t, e->span);
    infer_note(I, PENDING_LIT, lit);
    lit->is_float = is_float;
    if (is_float)
        lit->f = e->f;
    else
        lit->i = e->i;
    return lit;
}

Expr *infer_int(Infer *I, int64_t n, Span span) {
    Expr *lit = scalar(I, solver_weak_dtype(I->s, false, span), span);
    lit->i = n;
    return lit;
}

/* ---- tensor literals ------------------------------------------------------------------------- */

/* The number that e is, perhaps behind a sign; NULL where it is none. */
static const Ast *number(const Ast *e, bool *negative) {
    *negative = false;
    if (e->kind == AST_UNARY && e->op == UNOP_NEG) {
        *negative = true;
        e = e->a;
    }
    if (e->kind == AST_INT || e->kind == AST_FLOAT)
        return e;
    return e->kind == AST_BOOL && !*negative ? e : NULL;
}

typedef struct Collect {
    Infer *I;
    int64_t shape[TENSOR_MAX_RANK];
    uint32_t rank;
    VEC(const Ast *) items;
    VEC(bool) signs;
    Span ragged;
    bool is_ragged;
} Collect;

/* Collects the numbers of a tensor literal; false where some part is no number. */
static bool collect(Collect *c, const Ast *e, uint32_t depth) {
    if (e->kind != AST_TENSOR) {
        bool negative;
        const Ast *n = number(e, &negative);
        if (!n)
            return false;
        if (depth != c->rank)
            c->is_ragged = true;
        vec_push(&c->items, n);
        vec_push(&c->signs, negative);
        return true;
    }
    if (depth >= TENSOR_MAX_RANK)
        return false;
    if (depth == c->rank) {
        c->shape[c->rank++] = (int64_t)e->args.len;
        if (c->items.len)
            c->is_ragged = true;
    } else if (c->shape[depth] != (int64_t)e->args.len) {
        if (!c->is_ragged)
            c->ragged = e->span;
        c->is_ragged = true;
    }
    for (size_t i = 0; i < e->args.len; i++) {
        if (!collect(c, e->args.data[i], depth + 1))
            return false;
    }
    return true;
}

static const char *shape_words(uint32_t rank, const int64_t *shape) {
    Str s = {0};
    str_add(&s, "(");
    for (uint32_t i = 0; i < rank; i++)
        str_printf(&s, "%s%lld%s", i ? ", " : "", (long long)shape[i], rank == 1 ? "," : "");
    str_add(&s, ")");
    return str_text(&s);
}

static Expr *constant(Infer *I, Ast *e, Collect *c) {
    if (c->is_ragged) {
        Diag *d = infer_error(I, DIAG_R0215, c->ragged.source ? c->ragged : e->span,
                              "the rows of this tensor literal have different lengths");
        if (d)
            diag_add_fact(d, "by its first rows its shape is %s", shape_words(c->rank, c->shape));
        return infer_error_expr(e->span);
    }
    Numbers *n = mem_new(Numbers);
    n->rank = c->rank;
    memcpy(n->shape, c->shape, sizeof n->shape);
    n->n = c->items.len;
    Type *dtype = NULL;
    Span *spans = mem_new_n(Span, n->n + 1);
    for (size_t i = 0; i < n->n; i++) {
        const Ast *item = c->items.data[i];
        spans[i] = item->span;
        bool is_bool = item->kind == AST_BOOL;
        if (item->kind == AST_FLOAT)
            n->is_float = true;
        if (i == 0)
            n->is_bool = is_bool;
        bool fits = is_bool == n->is_bool;
        if (fits && is_bool) {
            if (!dtype)
                dtype = type_dtype(DT_BOOL);
        } else if (fits && item->dtype) {
            Type *t = number_dtype(I, item);
            fits = !dtype || solver_unify(I->s, dtype, t);
            dtype = dtype ? dtype : t;
        } else if (fits && (!dtype || item->kind == AST_FLOAT || item->i > INT32_MAX)) {
            Type *t = number_dtype(I, item);
            fits = !dtype || solver_unify(I->s, dtype, t);
            dtype = dtype ? dtype : t;
        }
        if (fits)
            continue;
        Diag *d = infer_error(I, DIAG_R0207, item->span,
                              "the elements of this tensor literal have different types");
        if (d)
            diag_add_label(d, c->items.data[0]->span, "the first is %s",
                           c->items.data[0]->dtype ? c->items.data[0]->dtype->text
                           : n->is_bool            ? "bool"
                                                   : "a number");
        return infer_error_expr(e->span);
    }
    if (!dtype) {
        dtype = solver_var(I->s, KIND_DTYPE);
        Fallback f = {dtype, DT_F32};
        vec_push(&I->fallbacks, f);
    }
    int64_t *ints = mem_bytes((n->n + 1) * sizeof *ints);
    double *floats = mem_bytes((n->n + 1) * sizeof *floats);
    for (size_t i = 0; i < n->n; i++) {
        const Ast *item = c->items.data[i];
        bool negative = c->signs.data[i];
        if (item->kind == AST_FLOAT) {
            ints[i] = 0;
            floats[i] = negative ? -item->f : item->f;
        } else {
            ints[i] = negative ? (int64_t)(0 - (uint64_t)item->i) : item->i;
            floats[i] = (double)ints[i];
        }
    }
    n->ints = ints;
    n->floats = floats;
    n->spans = spans;
    Type **dims = mem_new_n(Type *, n->rank + 1);
    const Origin *origin = literal_origin(e->span);
    for (uint32_t i = 0; i < n->rank; i++)
        dims[i] = type_dim_int(n->shape[i], origin);
    Expr *k = expr_new(EXPR_CONST, type_tensor(type_shape(dims, n->rank), dtype), e->span);
    infer_note(I, PENDING_LIT, k)->numbers = n;
    return k;
}

/* Sizes of an element that may differ from the first one's are compared when the literal is built. */
static void check_element(Infer *I, const Expr *first, const Expr *e, uint32_t i) {
    uint32_t n, m;
    Type **a, **b;
    if (!type_get_rank(first->type, &n, &a) || !type_get_rank(e->type, &m, &b) || n != m)
        return;
    for (uint32_t k = 0; k < n; k++) {
        if (dim_compare(a[k], b[k]) == DIM_UNDECIDED)
            solver_add_residual(
                I->s, b[k], a[k], e->span,
                place_of_axis((int)k, (TypePlace){.kind = PLACE_ELEMENT, .index = i}));
    }
}

/* Γ ⊢ ei : Tensor[s, b]   ⟹   [e1, …, en] : Tensor[(n, s…), b] */
static Expr *stacked(Infer *I, Ast *e) {
    uint32_t n = (uint32_t)e->args.len;
    Expr *t = expr_new(EXPR_TENSOR, NULL, e->span);
    t->nargs = n;
    t->args = mem_new_n(Expr *, n + 1);
    Join join = {.noun = "the elements of this tensor literal", .code = DIAG_R0207};
    for (uint32_t i = 0; i < n; i++) {
        t->args[i] = infer_expr(I, e->args.data[i], NULL);
        if (!infer_join(I, &join, t->args[i]))
            return infer_error_expr(e->span);
        if (i)
            check_element(I, t->args[0], t->args[i], i);
    }
    Type *elem = join.type ? type_resolve(join.type) : type_error();
    if (elem->tag == TY_ERROR)
        return infer_error_expr(e->span);
    if (elem->tag == TY_VAR) {
        Type *tensor = solver_tensor_var(I->s);
        solver_unify(I->s, elem, tensor);
        elem = type_resolve(elem);
    }
    if (elem->tag != TY_TENSOR) {
        Diag *d = infer_error(I, DIAG_R0207, t->args[0]->span,
                              "a tensor literal holds tensors, found %s", type_text(elem));
        if (d)
            diag_add_fact(d, "a list of any values is written `list[...]`");
        return infer_error_expr(e->span);
    }
    uint32_t rank;
    Type **dims;
    if (type_get_rank(elem, &rank, &dims)) {
        if (rank == TENSOR_MAX_RANK) {
            infer_error(I, DIAG_R0313, e->span, "a tensor has at most %d axes", TENSOR_MAX_RANK);
            return infer_error_expr(e->span);
        }
        Type **all = mem_new_n(Type *, rank + 2);
        all[0] = type_dim_int(n, literal_origin(e->span));
        for (uint32_t i = 0; i < rank; i++)
            all[i + 1] = dims[i];
        t->type = type_tensor(type_shape(all, rank + 1), elem->tensor.dtype);
        return t;
    }
    /* Where the rank is not known yet, the relation of `stack` waits for it. */
    Type **elems = mem_new_n(Type *, n + 1), **args = mem_new_n(Type *, 2);
    for (uint32_t i = 0; i < n; i++)
        elems[i] = elem;
    const Op *op = &op_stack;
    args[0] = type_tuple(elems, n);
    args[1] = t->type = type_tensor(solver_var(I->s, KIND_SHAPE), elem->tensor.dtype);
    Relation *r = infer_post(I, op->relation, args, 2, attrs_defaults(op), e->span, t, NULL, 0);
    r->op = op;
    r->arg_spans = NULL;
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    return t;
}

Expr *infer_tensor(Infer *I, Ast *e, Type *want) {
    (void)want;
    Collect c = {.I = I};
    if (collect(&c, e, 0))
        return constant(I, e, &c);
    return stacked(I, e);
}

/* ---- meta[relay.Constant][i] ----------------------------------------------------------------- */

static bool meta_dtype(const MetaConstant *m, DType *out) {
    static const char *const kinds[] = {"int", "uint", "float", NULL, "bfloat"};
    if (m->code == 1 && m->bits == 1) {
        *out = DT_BOOL;
        return true;
    }
    if (m->code > 4 || !kinds[m->code])
        return false;
    const char *name = fmt_text("%s%u", kinds[m->code], m->bits);
    return dtype_find(name, strlen(name), out);
}

Expr *infer_meta(Infer *I, Ast *e) {
    const Module *m = I->module;
    if (!e->text || strcmp(e->text, "relay.Constant") != 0) {
        infer_error(I, DIAG_R0115, e->span, "only `meta[relay.Constant][n]` is a value");
        return infer_error_expr(e->span);
    }
    if (e->i < 0 || (size_t)e->i >= m->constants.len) {
        infer_error(I, DIAG_R0115, e->span, "there is no constant %lld: the file has %zu",
                    (long long)e->i, m->constants.len);
        return infer_error_expr(e->span);
    }
    const MetaConstant *c = m->constants.data[e->i];
    DType dtype;
    if (!meta_dtype(c, &dtype) || c->ndim > TENSOR_MAX_RANK) {
        infer_error(I, DIAG_R0115, e->span, "constant %lld has a dtype or rank that Relay lacks",
                    (long long)e->i);
        return infer_error_expr(e->span);
    }
    Type **dims = mem_new_n(Type *, c->ndim + 1);
    const Origin *origin = literal_origin(e->span);
    for (int i = 0; i < c->ndim; i++)
        dims[i] = type_dim_int(c->shape[i], origin);
    Type *type = type_tensor(type_shape(dims, (uint32_t)c->ndim), type_dtype(dtype));
    Expr *k = expr_new(EXPR_CONST, type, e->span);
    k->tensor = tensor_from(dtype, c->ndim, c->shape, c->data);
    return k;
}

/* ---- casts ----------------------------------------------------------------------------------- */

/* Casts `(float64) e`, `(Tensor[(3,), float32]) e`, and `Zero T`. A dtype that is a type parameter
 * is taken, when running, from a tensor among the parameters: infer_settle. */

static bool is_tensor_type(Infer *I, const AstType *t) {
    if (t->kind == AST_TYPE_TENSOR)
        return true;
    if (t->kind != AST_TYPE_NAME)
        return false;
    DType dtype;
    if (dtype_find(t->name->text, t->name->len, &dtype))
        return true;
    TypeParam *p = type_scope_find(I, t->name);
    return p && (!p->kind_known || p->kind == KIND_DTYPE);
}

/* Whether a number converts to each integer dtype of the set alike from float32 and from float64. */
static bool is_same_of_both(double number, DTypeSet set) {
    float narrow = (float)number;
    for (int t = 0; t < DTYPE_COUNT; t++) {
        unsigned char a[8] = {0}, b[8] = {0};
        if (!(set & DT_BIT(t) & ~DTS_FLOAT))
            continue;
        elem_cast(a, (DType)t, &number, DT_F64);
        elem_cast(b, (DType)t, &narrow, DT_F32);
        if (memcmp(a, b, sizeof a) != 0)
            return false;
    }
    return true;
}

void solver_round_once(Solver *s, const Expr *e, Type *dtype) {
    Type *t = e && (e->kind == EXPR_LIT || e->kind == EXPR_CONST) ? type_resolve(e->type) : NULL;
    Type *own = t && t->tag == TY_TENSOR ? type_resolve(t->tensor.dtype) : NULL;
    bool weak = own && own->tag == TY_VAR && own->var.weak && !(own->var.dtypes & ~DTS_FLOAT);
    dtype = type_resolve(dtype);
    DTypeSet set = dtype->tag == TY_VAR ? 0 : type_dtype_set(dtype);
    if (!weak || !(set & DTS_FLOAT))
        return;
    if (!(set & ~DTS_FLOAT))
        solver_unify(s, own, dtype);
    else if (e->kind == EXPR_LIT &&
             is_same_of_both(
                 e->f, set)) /* the dtype is a declared parameter, which may be any of the set */
        solver_unify(s, own, type_dtype(DT_F64));
}

Expr *infer_cast(Infer *I, Ast *e) {
    Expr *a = infer_expr(I, e->a, NULL);
    if (type_resolve(a->type)->tag == TY_ERROR)
        return infer_error_expr(e->span);
    if (!is_tensor_type(I, e->type)) {
        infer_error(I, DIAG_R0107, e->type->span, "a cast is to a dtype or a tensor type");
        return infer_error_expr(e->span);
    }
    Type *want = NULL, *dtype;
    if (e->type->kind == AST_TYPE_TENSOR) {
        want = infer_ast_type(I, e->type, KIND_TYPE);
        if (want->tag != TY_TENSOR)
            return infer_error_expr(e->span);
        dtype = want->tensor.dtype;
    } else {
        dtype = infer_ast_type(I, e->type, KIND_DTYPE);
    }
    /* from Tensor[s, b] to Tensor[s, dtype] */
    Type *shape = solver_var(I->s, KIND_SHAPE);
    solver_set_place(I->s, a->span, place_of_words("the value cast"));
    if (!solver_unify(I->s, a->type, type_tensor(shape, solver_var(I->s, KIND_DTYPE)))) {
        Diag *d = infer_error(I, DIAG_R0201, a->span, "only tensors are cast, found %s",
                              type_text(a->type));
        if (d) {
            d->found = diag_type(a->type);
            diag_set_label(d, "%s", type_text(a->type));
        }
        return infer_error_expr(e->span);
    }
    solver_round_once(I->s, a, dtype);
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = a;
    Expr *call = expr_call_op(&op_cast, args, 1, NULL, type_tensor(shape, dtype), e->span);
    infer_note(I, PENDING_CAST, call);
    if (want)
        return infer_flow(I, call, want, place_of_words("the value cast"), e->type->span);
    return call;
}

Expr *infer_zero(Infer *I, Ast *e) {
    Type *t = infer_ast_type(I, e->type, KIND_TYPE);
    Expr *z = expr_new(EXPR_ZERO, t, e->span);
    z->zero_type = t;
    infer_note(I, PENDING_ZERO, z);
    return z;
}
