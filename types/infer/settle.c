/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an item: its types are known, or stay open because they were generalised. Nodes noted
 * on the way are completed in place: Note [Settling] in infer/state.h. */
#include <math.h>
#include <string.h>

#include "types/infer/state.h"

/* ---- dtypes ---------------------------------------------------------------------------------- */

static bool get_param(Type *dtype) { return type_resolve(dtype)->tag == TY_PARAM; }

/* A declared parameter of the definition being checked that nothing supplies: the definition runs
 * only as a copy for explicit type arguments (infer_specialised). */
static bool leave_to_types(Infer *I, Type *t) {
    t = type_resolve(t);
    if (!I->current || !I->current->item || !I->current->item->fn || t->tag != TY_PARAM)
        return false;
    const AstTypeParamVec *declared = &I->current->item->fn->type_params;
    for (size_t i = 0; i < declared->len; i++) {
        if (declared->data[i].name == t->param.name) {
            I->current->by_types = true;
            return true;
        }
    }
    return false;
}

static void no_supply(Infer *I, Type *t, Span span, const char *what) {
    if (I->uses_failed || leave_to_types(I, t))
        return;
    Diag *d = infer_error(I, DIAG_R0214, span, "nothing supplies %s when running", what);
    if (d) {
        diag_set_label(d, "%s is %s", what, type_text(t));
        diag_add_fact(d,
                      "a tensor among the parameters must have it; `zeros_like(x)`, `ones_like(x)` "
                      "and `cast_like(e, x)` take it from a value");
    }
}

static const char *dtype_range(DType t) {
    switch (dtype_info[t].cls) {
    case DTC_INT: {
        uint32_t bits = dtype_info[t].bits;
        int64_t max = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
        return fmt_text("%s holds %lld to %lld", dtype_info[t].name, (long long)(-max - 1),
                        (long long)max);
    }
    case DTC_UINT: {
        uint32_t bits = dtype_info[t].bits;
        uint64_t max = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
        return fmt_text("%s holds 0 to %llu", dtype_info[t].name, (unsigned long long)max);
    }
    case DTC_BOOL:
    case DTC_FLOAT: break;
    }
    return fmt_text("%s holds no such value", dtype_info[t].name);
}

/* A literal above the range of int64, which its suffix says is uint64: the reader has checked it. */
static bool is_large_unsigned(Span span) {
    const char *text = span.source ? span.source->text : "";
    uint32_t begin = span.begin, end = span.end; /* leave its parentheses out */
    while (span.source && begin < end && strchr("( \t\r\n", text[begin]))
        begin++;
    while (span.source && begin < end && strchr(") \t\r\n", text[end - 1]))
        end--;
    return end >= begin + 4 && text[begin] >= '0' && text[begin] <= '9' &&
           memcmp(text + end - 3, "u64", 3) == 0;
}

/* A literal of a float dtype that is too large for it. Infinity is written `inf`. */
static bool check_range(Infer *I, double f, DType dtype, Span span) {
    union {
        char bytes[8];
        double aligned;
    } at = {{0}};
    elem_set_float(at.bytes, dtype, f);
    if (!isfinite(f) || isfinite(elem_get_float(at.bytes, dtype)))
        return true;
    Diag *d = infer_error(I, DIAG_R0211, span, "%s cannot represent this literal",
                          dtype_info[dtype].name);
    if (d) {
        diag_set_label(d, "%s here", dtype_info[dtype].name);
        diag_add_fact(d, "%s holds numbers up to %s; `inf` is infinity", dtype_info[dtype].name,
                      dtype == DT_F16    ? "65504"
                      : dtype == DT_BF16 ? "3.38e38"
                                         : "3.4e38");
        if (dtype == DT_F32)
            diag_add_help(d, "the suffix `f64` makes it a float64");
    }
    return false;
}

static bool check_number(Infer *I, bool is_float, int64_t i, DType dtype, Span span) {
    bool ok = is_float ? dtype_is_float(dtype)
                       : dtype_is_float(dtype) || dtype_holds_int(dtype, i, false) ||
                             (dtype == DT_U64 && i < 0 && is_large_unsigned(span));
    if (ok)
        return true;
    Diag *d = infer_error(I, DIAG_R0211, span, "%s cannot represent this literal",
                          dtype_info[dtype].name);
    if (d) {
        diag_set_label(d, "%s here", dtype_info[dtype].name);
        if (!is_float)
            diag_add_fact(d, "%s", dtype_range(dtype));
    }
    return false;
}

/* Turns the node e into cast_like(value, like). */
static void become_cast_like(Expr *e, Expr *value, Expr *like) {
    const Op *op = &op_cast_like;
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = value;
    args[1] = like;
    *e = *expr_call_op(op, args, 2, attrs_defaults(op), e->type, e->span);
}

static Tensor *numbers_tensor(Infer *I, const Numbers *n, DType dtype) {
    Tensor *t = tensor_new(dtype, (int)n->rank, n->shape);
    char *at = tensor_data(t);
    size_t step = dtype_size(dtype);
    bool as_float = dtype_is_float(dtype);
    for (size_t i = 0; i < n->n; i++, at += step) {
        if (!check_number(I, n->is_float && n->floats[i] != (double)n->ints[i], n->ints[i], dtype,
                          n->spans[i]))
            return NULL;
        if (as_float && n->is_float) {
            if (!check_range(I, n->floats[i], dtype, n->spans[i]))
                return NULL;
            elem_set_float(at, dtype, n->floats[i]);
        } else if (as_float) {
            DType from = DT_I64;
            elem_cast(at, dtype, &n->ints[i], from);
        } else {
            elem_set_int(at, dtype, n->ints[i]);
        }
    }
    return t;
}

static void settle_numbers(Infer *I, Pending *p, Type *dtype) {
    Expr *e = p->expr;
    const Numbers *n = p->numbers;
    DType t;
    if (type_get_dtype(dtype, &t)) {
        if (!(t == DT_BOOL && n->is_bool)) {
            for (size_t i = 0; i < n->n && !infer_failed(I) && n->is_float && !dtype_is_float(t);
                 i++)
                check_number(I, true, 0, t, n->spans[i]);
        }
        if (!infer_failed(I))
            e->tensor = numbers_tensor(I, n, t);
        return;
    }
    Expr *like = supply_dtype(I, p, dtype);
    like = like ? like : supply_beside(I, e, dtype);
    if (!like) {
        e->kind = EXPR_ERROR;
        no_supply(I, dtype, p->span, "the dtype of this literal");
        return;
    }
    DType wide = n->is_float ? DT_F64 : DT_I64;
    Expr *wide_const = expr_new(
        EXPR_CONST, type_tensor(type_resolve(e->type)->tensor.shape, type_dtype(wide)), e->span);
    wide_const->tensor = numbers_tensor(I, n, wide);
    become_cast_like(e, wide_const, like);
}

static void settle_lit(Infer *I, Pending *p) {
    Expr *e = p->expr;
    Type *tensor = type_resolve(e->type);
    if (tensor->tag != TY_TENSOR)
        return;
    Type *dtype = type_resolve(tensor->tensor.dtype);
    if (dtype->tag == TY_VAR) {
        bool is_float = p->numbers ? p->numbers->is_float : e->is_float;
        solver_unify(I->s, dtype, type_dtype(is_float ? DT_F32 : DT_I32));
        dtype = type_resolve(dtype);
    }
    if (p->numbers) {
        settle_numbers(I, p, dtype);
        return;
    }
    DType t;
    if (type_get_dtype(dtype, &t)) {
        if (check_number(I, e->is_float, e->i, t, e->span) && dtype_is_float(t))
            check_range(I, e->is_float ? e->f : (double)e->i, t, e->span);
        return;
    }
    e->like = supply_dtype(I, p, dtype);
    e->like = e->like ? e->like : supply_beside(I, e, dtype);
    if (!e->like)
        no_supply(I, dtype, e->span, "the dtype of this literal");
}

const Attrs *attrs_with_dtype(const Op *op, DType t) {
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    for (int i = 0; i < op->nattrs; i++)
        if (op->attrs[i].initial)
            values[i] = attr_parse(op->attrs[i].initial);
    values[op_attr_index(op, "dtype")] = (AttrValue){.kind = ATTR_DTYPE, .dtype = t};
    Attrs *attrs = mem_new(Attrs);
    attrs->op = op;
    attrs->values = values;
    return attrs;
}

static void settle_cast(Infer *I, Pending *p) {
    Expr *e = p->expr;
    Type *t = type_resolve(e->type);
    if (t->tag != TY_TENSOR)
        return;
    DType dtype;
    if (type_get_dtype(t, &dtype)) {
        e->attrs = attrs_with_dtype(e->a->op, dtype);
        return;
    }
    Expr *like = supply_dtype(I, p, t->tensor.dtype);
    if (like) {
        become_cast_like(e, e->args[0], like);
    } else if (get_param(t->tensor.dtype)) {
        no_supply(I, t->tensor.dtype, e->span, "the dtype of this cast");
    } else {
        infer_error(I, DIAG_R0220, e->span, "the dtype of this cast is not known");
    }
}

/* ---- Zero, sizes ----------------------------------------------------------------------------- */

static bool is_closed_tensor(Type *t) {
    uint32_t rank;
    Type **dims;
    DType dtype;
    if (!type_get_dtype(t, &dtype) || !type_get_rank(t, &rank, &dims))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t n;
        if (!type_get_int(dims[i], &n))
            return false;
    }
    return true;
}

static Expr *zero_of(Infer *I, const Pending *p, Type *type) {
    Type *t = type_resolve(type);
    if (t->tag == TY_TUPLE) {
        Expr **args = mem_new_n(Expr *, t->nargs + 1);
        for (uint32_t i = 0; i < t->nargs; i++) {
            args[i] = zero_of(I, p, t->args[i]);
            if (!args[i])
                return NULL;
        }
        return expr_tuple(args, t->nargs, p->span);
    }
    if (t->tag == TY_TENSOR && is_closed_tensor(t)) {
        Expr *z = expr_new(EXPR_ZERO, t, p->span);
        z->zero_type = t;
        return z;
    }
    if (t->tag == TY_TENSOR || t->tag == TY_PARAM) {
        if (t->tag == TY_TENSOR) {
            Expr *like = supply_type(I, p, t);
            if (like) {
                Expr **args = mem_new_n(Expr *, 1);
                args[0] = like;
                return expr_call_op(&op_zeros_like, args, 1, attrs_defaults(&op_zeros_like), t,
                                    p->span);
            }
        }
        Type *part = t->tag == TY_TENSOR && get_param(t->tensor.dtype) ? t->tensor.dtype : t;
        uint32_t rank;
        Type **dims;
        if (t->tag == TY_TENSOR && part == t) {
            if (!type_get_rank(t, &rank, &dims)) {
                part = t->tensor.shape;
            } else {
                for (uint32_t i = 0; i < rank; i++)
                    if (type_resolve(dims[i])->tag == TY_PARAM)
                        part = dims[i];
            }
        }
        no_supply(I, part, p->span, "this `Zero`");
        return NULL;
    }
    infer_error(I, DIAG_R0214, p->span, "`Zero` is for tensors and tuples of them, not for %s",
                type_text(t));
    return NULL;
}

static void settle_zero(Infer *I, Pending *p) {
    Expr *z = zero_of(I, p, p->expr->zero_type);
    if (z) {
        *p->expr = *z;
    } else {
        p->expr->kind = EXPR_ERROR;
    }
}

static Expr *with_dtype(Expr *e, Type *type) {
    DType t;
    if (e->kind == EXPR_DIM_OF || e->kind == EXPR_LIT) {
        e->type = type;
        return e;
    }
    const Op *op = &op_cast;
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = e;
    return type_get_dtype(type, &t)
               ? expr_call_op(op, args, 1, attrs_with_dtype(op, t), type, e->span)
               : e;
}

static void settle_dim(Infer *I, Pending *p) {
    Expr *e = p->expr;
    Type *tensor = type_resolve(e->type);
    Type *dtype = tensor->tag == TY_TENSOR ? type_resolve(tensor->tensor.dtype) : tensor;
    if (dtype->tag == TY_VAR)
        solver_unify(I->s, dtype, type_dtype(DT_I32));
    Expr *size = supply_dim(I, p, p->to, NULL, 0);
    if (!size) {
        no_supply(I, p->to, e->span, "this size");
        e->kind = EXPR_ERROR;
        return;
    }
    DType t;
    if (type_get_dtype(dtype, &t)) {
        *e = *with_dtype(size, e->type);
        return;
    }
    Expr *like = supply_dtype(I, p, dtype);
    if (like) {
        become_cast_like(e, size, like);
    } else {
        no_supply(I, dtype, e->span, "the dtype of this size");
    }
}

typedef struct Sizes {
    Infer *I;
    const Pending *p;
    Expr *call; /* a copy of the call */
    VEC(Expr *) found;
    LetStack
        lets;   /* the arguments of the call, then the sizes that are computed besides variables */
    bool bound; /* the arguments are in variables */
} Sizes;

/* Binds a size that is computed after the arguments to a variable, so that derivatives take it as any other value. */
static Expr *bind_size(Sizes *s, Expr *value) {
    Expr *call = s->call;
    if (!s->bound) {
        Expr **args = mem_new_n(Expr *, call->nargs + 1);
        for (uint32_t i = 0; i < call->nargs; i++)
            args[i] = let_stack_add(&s->lets, call->args[i], "arg");
        call->args = args;
        s->bound = true;
    }
    return let_stack_add(&s->lets, infer_as_int64(value), "size");
}

static AttrValue settle_attr(Sizes *s, const AttrValue *v) {
    AttrValue out = *v;
    if (v->kind == ATTR_LIST) {
        AttrValue *items = mem_new_n(AttrValue, v->list.n + 1);
        for (uint32_t i = 0; i < v->list.n; i++)
            items[i] = settle_attr(s, &v->list.items[i]);
        out.list.items = items;
    } else if (v->kind == ATTR_DIM) {
        int64_t n;
        if (type_get_int(v->dim, &n))
            return attr_size(n);
        Expr *value = map_find(&s->I->sizes, type_resolve(v->dim));
        Expr *size = value ? bind_size(s, value) : supply_dim(s->I, s->p, v->dim, NULL, 0);
        if (!size) {
            no_supply(s->I, v->dim, s->p->span, "a size among the attributes");
            return out;
        }
        vec_push(&s->found, size);
    }
    return out;
}

/* The size that -1 stands for in `newshape`, where it is known besides sizes: the type of a Tensor[(n, 3), b] in
 * `newshape=[n, -1]` says 3, and from its elements nobody could tell that when n is 0. -1 stays where a code shifts
 * the axes or nothing supplies the size. */
static AttrValue inferred_size(Sizes *s, const AttrValue *newshape, const Expr *call) {
    uint32_t rank, inferred = 0, n = newshape->list.n;
    bool shifted = newshape->kind != ATTR_LIST, any = false;
    Type **dims;
    for (uint32_t i = 0; !shifted && i < n; i++) {
        const AttrValue *item = &newshape->list.items[i];
        shifted = item->kind == ATTR_INT && item->i < -1;
        if (item->kind == ATTR_INT && item->i == -1) {
            any = true;
            inferred = i;
        }
    }
    if (shifted || !any || !type_get_rank(call->type, &rank, &dims) || rank != n ||
        !supply_dim(s->I, s->p, dims[inferred], NULL, 0))
        return *newshape;
    AttrValue out = *newshape, *items = mem_new_n(AttrValue, n);
    memcpy(items, newshape->list.items, n * sizeof *items);
    items[inferred] = (AttrValue){.kind = ATTR_DIM, .dim = dims[inferred]};
    out.list.items = items;
    return out;
}

static void settle_sizes(Infer *I, Pending *p) {
    Expr *e = p->expr;
    if (e->kind != EXPR_CALL || e->a->kind != EXPR_OP)
        return;
    Sizes s = {.I = I, .p = p, .call = expr_copy(e)};
    const Op *op = e->a->op;
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    bool reshapes = op == &op_reshape || op == &op_contrib_reverse_reshape;
    for (int i = 0; i < op->nattrs; i++) {
        AttrValue given = e->attrs->values[i];
        if (reshapes && strcmp(op->attrs[i].name, "newshape") == 0)
            given = inferred_size(&s, &given, e);
        values[i] = settle_attr(&s, &given);
    }
    Attrs *attrs = mem_new(Attrs);
    attrs->op = op;
    attrs->values = values;
    s.call->attrs = attrs;
    s.call->sizes = s.found.data;
    s.call->nsizes = (uint32_t)s.found.len;
    *e = *let_stack_wrap(&s.lets, s.call);
}

/* ---- what the types decide ------------------------------------------------------------------- */

static void become_op_call(Expr *e, const Op *op, Expr **args, uint32_t n, const Attrs *attrs) {
    *e = *expr_call_op(op, args, n, attrs ? attrs : attrs_defaults(op), e->type, e->span);
}

/* Decides each open index of the spec whose type is known by now. */
static void settle_spec(Expr *e, Expr **indices) {
    const char *spec = attrs_text(e->attrs, "spec");
    if (!strchr(spec, 'o'))
        return;
    Str s = {0};
    uint32_t next = 0;
    for (const char *p = spec; *p; p++) {
        uint32_t rank;
        Type **dims;
        bool open = *p == 'o' && type_get_rank(indices[next]->type, &rank, &dims);
        str_add_char(&s, !open ? *p : rank ? 'v' : 'i');
        if (*p == ':') {
            str_add_char(&s, *++p);
            next += (uint32_t)((*p & 1) + (*p >> 1 & 1) + (*p >> 2 & 1));
        } else {
            next += strchr("iov", *p) != NULL;
        }
    }
    Attrs *attrs = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, e->attrs->op->nattrs);
    for (int i = 0; i < e->attrs->op->nattrs; i++)
        values[i] = e->attrs->values[i];
    values[op_attr_index(e->attrs->op, "spec")] = (AttrValue){.kind = ATTR_STRING,
                                                              .text = str_text(&s)};
    *attrs = (Attrs){e->attrs->op, values};
    e->attrs = attrs;
}

/* e: an index, or a call of `index_set`. */
static void settle_index(Pending *p) {
    Expr *e = p->expr;
    settle_spec(e, e->kind == EXPR_INDEX ? e->args : e->args[1]->args);
    if (e->kind != EXPR_INDEX)
        return;
    Type *t = type_resolve(e->a->type);
    if (t->tag == TY_TUPLE && e->nargs == 1 && e->args[0]->kind == EXPR_LIT) {
        *e = *expr_proj(e->a, (uint32_t)e->args[0]->i, e->type, e->span);
    } else if (t->tag == TY_TENSOR) {
        Expr **args = mem_new_n(Expr *, 2);
        args[0] = e->a;
        args[1] = expr_tuple(e->args, e->nargs, e->span);
        become_op_call(e, &op_index, args, 2, e->attrs);
    }
}

static void settle_bang(Pending *p) {
    Expr *e = p->expr;
    Type *t = type_resolve(e->a->type);
    if (t->tag == TY_REF) {
        e->kind = EXPR_READ;
    } else if (t->tag == TY_TENSOR) {
        Expr **args = mem_new_n(Expr *, 1);
        args[0] = e->a;
        become_op_call(e, &op_logical_not, args, 1, NULL);
    }
}

static void settle_equal(Pending *p) {
    Expr *e = p->expr;
    if (type_resolve(e->a->type)->tag != TY_TENSOR || type_resolve(e->b->type)->tag != TY_TENSOR)
        return;
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = e->a;
    args[1] = e->b;
    become_op_call(e, e->negate ? &op_not_equal : &op_equal, args, 2, NULL);
}

static void settle_field(Pending *p) {
    Expr *e = p->expr;
    Type *t = type_resolve(e->a->type);
    if (t->tag == TY_DERIV)
        t = type_resolve(t->elem);
    if (t->tag != TY_DATA)
        return;
    int32_t at = -1;
    for (uint32_t c = 0; c < t->decl->nctors; c++) {
        const Ctor *ctor = t->decl->ctors[c];
        for (uint32_t i = 0; ctor->field_names && i < ctor->nfields; i++) {
            if (ctor->field_names[i] != e->field)
                continue;
            if (c > 0 && at != (int32_t)i)
                return; /* the field is found by its name when running */
            at = (int32_t)i;
        }
    }
    e->index = at;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void settle_discard(Infer *I, Pending *p) {
    Type *t = type_resolve(p->expr->type);
    if (type_is_list(t) && type_is_unit(t->args[0]))
        return; /* `map(print, xs);` prints */
    switch (t->tag) {
    case TY_TENSOR:
    case TY_FN:
    case TY_REF:
    case TY_DATA:
    case TY_STRING: break;
    case TY_TUPLE:
        if (t->nargs)
            break;
        return;
    case TY_VAR:
    case TY_PARAM:
    case TY_DERIV:
    case TY_ERROR:
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return;
    }
    Diag *d = infer_warning(I, DIAG_R0902, p->expr->span, "this value is thrown away");
    if (d) {
        diag_set_label(d, "%s", type_text(t));
        diag_add_fact(d, "`let _ = ...;` says that it is meant");
    }
}

void infer_settle(Infer *I) {
    Map spread = {0};
    if (settle_holes(I))
        return;
    for (size_t i = 0; i < I->pending.len && !infer_failed(I); i++) {
        Pending *p = &I->pending.data[i];
        switch (p->kind) {
        case PENDING_LIT: settle_lit(I, p); break;
        case PENDING_INDEX: settle_index(p); break;
        case PENDING_BANG: settle_bang(p); break;
        case PENDING_EQUAL: settle_equal(p); break;
        case PENDING_FIELD: settle_field(p); break;
        case PENDING_CAST: settle_cast(I, p); break;
        case PENDING_ZERO: settle_zero(I, p); break;
        case PENDING_DIM: settle_dim(I, p); break;
        case PENDING_SIZES: settle_sizes(I, p); break;
        case PENDING_FLOW: settle_flow(I, p, &spread); break;
        case PENDING_MATCH: match_check(I, p->expr); break;
        case PENDING_DISCARD: settle_discard(I, p); break;
        case PENDING_READ: settle_read(I, p->expr); break;
        case PENDING_TYPED: settle_typed(I, p->expr); break;
        case PENDING_COPY: infer_settle_copy(I, p->expr, p->from); break;
        case PENDING_HOLE: break;
        }
    }
    if (!infer_failed(I))
        settle_results(I);
}
