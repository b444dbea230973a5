/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of the core that TVM's graphs have not, as calls of operators that they have:
 *
 *     x[i, 1:]                  strided_slice(take(x, i, axis=0, mode="wrap"), begin=[1], …, axes=[0])
 *     x[i:]                     dyn.strided_slice(x, [(int64) i], …)
 *     n, a size of x            take(shape_of(x), 0, axis=0, mode="wrap")
 *     { r with w = e }          match (r) { Net(_, b) => Net(e, b) }
 *     reshape(x, newshape=[n])  dyn.reshape(x, [(int64) n])
 *
 * `wrap` counts negative places from the end, as Relay does; what lies outside is an error in Relay alone. */
#include <string.h>

#include "interchange/tvm_writer.h"
#include "ops/table.h"
#include "types/infer/infer.h"

enum { FAR = INT32_MAX }; /* a bound behind the last place of any axis */

/* ---- pieces of core -------------------------------------------------------------------------- */

static AttrValue int_value(int64_t i) { return (AttrValue){.kind = ATTR_INT, .i = i}; }

static AttrValue list_value(int64_t i) {
    AttrValue *item = mem_new(AttrValue);
    *item = int_value(i);
    return (AttrValue){.kind = ATTR_LIST, .list = {item, 1}};
}

/* A call of an operator with its default attributes, which set_attr changes. */
static Expr *new_call(const Op *op, Expr *const *args, uint32_t n, Span span) {
    Expr *call = expr_new(EXPR_CALL, type_error(), span);
    AttrValue *values = mem_new_n(AttrValue, op->nattrs);
    Attrs *attrs = mem_new(Attrs);
    call->a = expr_new(EXPR_OP, type_error(), span);
    call->a->op = op;
    call->args = mem_new_n(Expr *, n);
    for (uint32_t i = 0; i < n; i++)
        call->args[i] = args[i];
    call->nargs = n;
    for (int i = 0; i < op->nattrs; i++)
        values[i] = op->attrs[i].initial ? attr_parse(op->attrs[i].initial)
                                         : (AttrValue){.kind = ATTR_NONE};
    *attrs = (Attrs){op, values};
    call->attrs = attrs;
    return call;
}

static void set_attr(Expr *call, const char *name, AttrValue value) {
    ((AttrValue *)call->attrs->values)[op_attr_index(call->a->op, name)] = value;
}

static Expr *constant(Tensor *tensor, Span span) {
    Expr *e = expr_new(EXPR_CONST, type_error(), span);
    e->tensor = tensor;
    return e;
}

static Expr *int_constant(int64_t i, Span span) {
    return constant(tensor_scalar_int(DT_I64, i), span);
}

static bool get_int(const Expr *e, int64_t *out) {
    if (e->kind == EXPR_LIT && !e->is_float)
        *out = e->i;
    else if (e->kind == EXPR_CONST && !e->tensor->rank && dtype_is_int(e->tensor->dtype))
        *out = elem_get_int(tensor_data(e->tensor), e->tensor->dtype);
    else
        return false;
    return true;
}

static Expr *as_int64(Expr *e) {
    DType dtype;
    int64_t i;
    if (get_int(e, &i))
        return int_constant(i, e->span);
    if (type_get_dtype(e->type, &dtype) && dtype == DT_I64)
        return e;
    Expr *call = new_call(&op_cast, &e, 1, e->span);
    set_attr(call, "dtype", (AttrValue){.kind = ATTR_DTYPE, .dtype = DT_I64});
    return call;
}

/* ---- indices --------------------------------------------------------------------------------- */

static Expr *take(Expr *x, Expr *at, int axis, Span span) {
    Expr *call = new_call(&op_take, (Expr *[]){x, at}, 2, span);
    set_attr(call, "axis", int_value(axis));
    set_attr(call, "mode", (AttrValue){.kind = ATTR_STRING, .text = "wrap"});
    return call;
}

/* The bound of the sliced axis behind those of all before it, which are whole. */
static Expr *bounds(int64_t whole, Expr *bound, int axis, Span span) {
    Expr *all = expr_new(EXPR_TENSOR, type_error(), span);
    all->nargs = (uint32_t)axis + 1;
    all->args = mem_new_n(Expr *, all->nargs);
    for (int i = 0; i < axis; i++)
        all->args[i] = int_constant(whole, span);
    all->args[axis] = as_int64(bound);
    return all;
}

static Expr *slice(Expr *x, Expr *begin, Expr *end, Expr *step, int axis, Span span) {
    int64_t from = 0, to = FAR, by = 1;
    if (step && !get_int(step, &by))
        by = 0;
    if (by < 0) {
        from = FAR;
        to = INT32_MIN;
    }
    bool known = by && (!begin || get_int(begin, &from)) && (!end || get_int(end, &to));
    if (known) {
        Expr *call = new_call(&op_strided_slice, &x, 1, span);
        set_attr(call, "begin", list_value(from));
        set_attr(call, "end", list_value(to));
        set_attr(call, "strides", list_value(by));
        set_attr(call, "axes", list_value(axis));
        return call;
    }
    if (!by && (!begin || !end)) /* which end it begins at is not known */
        return NULL;
    Expr *args[] = {x, bounds(0, begin ? begin : int_constant(from, span), axis, span),
                    bounds(FAR, end ? end : int_constant(to, span), axis, span),
                    bounds(1, step ? step : int_constant(1, span), axis, span)};
    return new_call(&op_dyn_strided_slice, args, 4, span);
}

/* Axes that the letters say something of, besides those that an ellipsis stands for. */
static int count_axes(const char *spec) {
    int n = 0;
    for (; *spec; spec++)
        n += *spec == 'i' || *spec == ':' || *spec == 'v' || *spec == 'o';
    return n;
}

static bool is_number_type(const Expr *e) {
    uint32_t rank;
    Type **dims;
    return type_get_rank(type_resolve(e->type), &rank, &dims) && rank == 0;
}

Expr *tvm_lower_index(Expr *x, const char *spec, Expr *const *args, uint32_t nargs, Span span) {
    uint32_t rank = 0, next = 0;
    Type **dims;
    int axis = 0, letters = 0;
    bool has_rank = type_get_rank(type_resolve(x->type), &rank, &dims);
    Expr *out = x;
    for (const char *p = spec; *p; p++)
        letters += *p == 'i' || *p == ':' || *p == 'n' || *p == '.' || *p == 'v' || *p == 'o';
    for (const char *p = spec; *p && out; p++) {
        Expr *at = NULL;
        DType dtype;
        switch (*p) {
        case 'i':
        case 'v':
        case 'o':
            at = next < nargs ? args[next++] : NULL;
            if (!at || (type_get_dtype(at->type, &dtype) && dtype == DT_BOOL) ||
                (*p != 'i' && !is_number_type(at) && letters > 1))
                return NULL;
            out = take(out, at, axis, span);
            axis += *p == 'v' || (*p == 'o' && !is_number_type(at));
            break;
        case ':': {
            int bits = *++p - '0';
            Expr *part[3] = {NULL, NULL, NULL};
            for (int i = 0; i < 3; i++)
                if (bits >> i & 1)
                    part[i] = next < nargs ? args[next++] : NULL;
            if (bits)
                out = slice(out, part[0], part[1], part[2], axis, span);
            axis++;
            break;
        }
        case 'n':
            out = new_call(&op_expand_dims, &out, 1, span);
            set_attr(out, "axis", int_value(axis++));
            break;
        case '.':
            if (!has_rank)
                return NULL;
            axis += (int)rank - count_axes(spec);
            break;
        default: return NULL;
        }
    }
    return out;
}

Expr *tvm_lower_size(const Expr *e) {
    Expr *shape = new_call(&op_shape_of, &e->a, 1, e->span);
    DType dtype = DT_I32;
    (void)type_get_dtype(e->type, &dtype);
    set_attr(shape, "dtype", (AttrValue){.kind = ATTR_DTYPE, .dtype = dtype});
    return take(shape, int_constant(e->index, e->span), 0, e->span);
}

/* ---- records --------------------------------------------------------------------------------- */

Expr *tvm_lower_update(const Expr *e) {
    Type *t = type_resolve(e->a->type);
    if (t->tag != TY_DATA || t->decl->nctors != 1 || !t->decl->ctors[0]->field_names)
        return NULL;
    Ctor *ctor = ctor_of_values(t->decl->ctors[0]);
    Expr *match = expr_new(EXPR_MATCH, e->type, e->span),
         *made = expr_new(EXPR_CALL, e->type, e->span);
    Pattern *whole = mem_new(Pattern);
    Arm *arm = mem_new(Arm);
    made->a = expr_new(EXPR_CTOR, type_error(), e->span);
    made->a->ctor = ctor;
    made->nargs = whole->nargs = ctor->nfields;
    made->args = mem_new_n(Expr *, ctor->nfields);
    whole->args = mem_new_n(Pattern *, ctor->nfields);
    whole->kind = PAT_CTOR;
    whole->ctor = ctor;
    whole->span = e->span;
    for (uint32_t i = 0; i < ctor->nfields; i++) {
        Pattern *part = whole->args[i] = mem_new(Pattern);
        part->kind = PAT_WILDCARD;
        part->span = e->span;
        for (uint32_t k = 0; k < e->nargs; k++)
            if (e->field_names[k] == ctor->field_names[i])
                made->args[i] = e->args[k];
        if (made->args[i])
            continue;
        part->kind = PAT_VAR;
        part->var = var_new(ctor->field_names[i], type_error(), e->span);
        made->args[i] = expr_new(EXPR_VAR, type_error(), e->span);
        made->args[i]->var = part->var;
    }
    *arm = (Arm){.pattern = whole, .body = made};
    match->a = e->a;
    match->narms = 1;
    match->arms = arm;
    return match;
}

/* ---- sizes that are computed ----------------------------------------------------------------- */

/* A value of an attribute as a tensor of int64. *next: the first of the call's sizes that was not used. NULL: it has
 * another form. */
static Expr *value_tensor(const Expr *call, const AttrValue *v, uint32_t *next) {
    if (v->kind == ATTR_INT)
        return int_constant(v->i, call->span);
    if (v->kind == ATTR_DIM)
        return *next < call->nsizes ? as_int64(call->sizes[(*next)++]) : NULL;
    if (v->kind != ATTR_LIST)
        return NULL;
    Expr *all = expr_new(EXPR_TENSOR, type_error(), call->span);
    all->nargs = v->list.n;
    all->args = mem_new_n(Expr *, v->list.n);
    for (uint32_t i = 0; i < v->list.n; i++)
        if (!(all->args[i] = value_tensor(call, &v->list.items[i], next)))
            return NULL;
    return all;
}

Expr *tvm_lower_sizes(const Expr *call, const char *form) {
    const Op *op = call->a->op;
    uint32_t next_arg = 0, next_size = 0, n = 0;
    Expr *args[8];
    Expr *out = new_call(op, call->args, 0, call->span);
    for (int i = 0; i < op->nattrs; i++)
        set_attr(out, op->attrs[i].name, call->attrs->values[i]);
    while (*form) {
        size_t len = strcspn(form, " ");
        const char *word = fmt_text("%.*s", (int)len, form);
        form += len + (form[len] == ' ');
        if (op_attr_index(op, word) < 0)
            args[n] = next_arg < call->nargs ? call->args[next_arg++] : NULL;
        else {
            args[n] = value_tensor(call, attrs_get(call->attrs, word), &next_size);
            set_attr(out, word, (AttrValue){.kind = ATTR_NONE});
        }
        if (!args[n++])
            return NULL;
    }
    out->args = mem_new_n(Expr *, n);
    memcpy(out->args, args, n * sizeof *args);
    out->nargs = n;
    return next_size == call->nsizes ? out : NULL;
}
