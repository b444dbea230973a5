/* SPDX-License-Identifier: Apache-2.0 */
/* What stdlib/plot.rly's `plot(x)` shall draw of a value, by what the value is: one of `_Look`'s constructors. */
#include "eval/builtin.h"

#include <string.h>

#include "eval/builtin_all.h"
#include "eval/machine.h"
#include "types/core/env.h"

/* The constructors of _Look, in their order. */
enum { LOOK_POINTS, LOOK_MATRIX, LOOK_IMAGE, LOOK_FUNCTIONS, LOOK_SURFACE, LOOK_PLOTS };

typedef struct Look {
    const BuiltinCall *call;
    Ctor **ctors;
    Value *out;
} Look;

static bool give(const Look *l, int ctor, Value a, Value b, Value c) {
    Value fields[3] = {a, b, c};
    *l->out = value_data(l->ctors[ctor], fields);
    return true;
}

static Value text(const char *s) { return value_string(s, strlen(s)); }

/* The numbers as float64, of the same shape. */
static Value floats_of(const Tensor *t) {
    Tensor *made = tensor_new(DT_F64, t->rank, t->shape);
    double *to = tensor_data(made);
    for (int64_t i = 0; i < t->count; i++) {
        const void *p = tensor_at(t, i);
        to[i] = dtype_is_float(t->dtype) ? elem_get_float(p, t->dtype)
                                         : (double)elem_get_int(p, t->dtype);
    }
    return value_tensor(made);
}

static Value places(int64_t n) {
    Tensor *t = tensor_new(DT_F64, 1, &n);
    for (int64_t i = 0; i < n; i++)
        ((double *)tensor_data(t))[i] = (double)i;
    return value_tensor(t);
}

static Tensor *vector_in(Value v) {
    v = value_primal(v);
    Tensor *t = v.tag == VAL_TENSOR ? v.p : NULL;
    return t && t->rank == 1 ? t : NULL;
}

static bool ascends(const Tensor *t) {
    for (int64_t i = 1; i < t->count; i++)
        if (dtype_is_float(t->dtype) ? elem_get_float(tensor_at(t, i), t->dtype) <
                                           elem_get_float(tensor_at(t, i - 1), t->dtype)
                                     : elem_get_int(tensor_at(t, i), t->dtype) <
                                           elem_get_int(tensor_at(t, i - 1), t->dtype))
            return false;
    return true;
}

/* The number of parameters of a function of float32 numbers to such a number, as far as its type says; -1: it is none. */
static int numeric_parameters(Value v) {
    if (v.tag != VAL_CLOSURE)
        return -1;
    const Expr *fn = ((Closure *)v.p)->fn;
    Type *t = fn->type ? type_resolve(fn->type) : NULL;
    if (!t || t->tag != TY_FN)
        return (int)fn->fn->nparams;
    for (uint32_t i = 0; i <= t->nargs; i++) {
        Type *part = type_resolve(i < t->nargs ? t->args[i] : t->fn.result);
        DType dtype;
        bool is_open = part->tag == TY_VAR || part->tag == TY_PARAM || part->tag == TY_DERIV;
        if (!is_open && part->tag != TY_TENSOR)
            return -1;
        if (part->tag == TY_TENSOR && type_get_dtype(part, &dtype) && dtype != DT_F32)
            return -1;
        Type *shape = part->tag == TY_TENSOR ? type_resolve(part->tensor.shape) : NULL;
        if (shape && shape->tag == TY_SHAPE && shape->nargs)
            return -1;
    }
    return (int)t->nargs;
}

static bool read_number(Value v, double *out) {
    v = value_primal(v);
    if (v.tag != VAL_SCALAR || v.aux == DT_BOOL)
        return false;
    *out = dtype_is_float((DType)v.aux) ? v.f : (double)v.i;
    return true;
}

static bool is_list(Value v) {
    return v.tag == VAL_CTOR && strcmp(data_ctor(v)->decl->name->text, "List") == 0;
}

static bool is_plot(Value v) {
    return v.tag == VAL_CTOR && data_size(v) && strcmp(data_ctor(v)->name->text, "Plot") == 0;
}

static bool look_at_functions(const Look *l, Value fs, double from, double to) {
    Value rest = fs, f, one = fs;
    int nparams = -1;
    if (!is_list(fs)) {
        nparams = numeric_parameters(fs);
        fs = builtin_list(l->call, &one, 1);
    } else {
        bool all = true, some = false;
        for (; builtin_list_next(&rest, &f); some = true)
            all = all && numeric_parameters(f) == 1;
        nparams = all && some ? 1 : -1;
    }
    if (nparams != 1 && nparams != 2)
        return false;
    Value a = value_float(DT_F32, (float)from), b = value_float(DT_F32, (float)to);
    return nparams == 1 ? give(l, LOOK_FUNCTIONS, fs, a, b) : give(l, LOOK_SURFACE, one, a, b);
}

static bool look_at_tensor(const Look *l, const Tensor *t) {
    Value none = value_unit();
    if (t->rank == 1)
        return give(l, LOOK_POINTS, text(dtype_is_float(t->dtype) ? "line" : "bars"),
                    places(t->count), floats_of(t));
    if (t->rank == 2)
        return give(l, LOOK_MATRIX, floats_of(t), none, none);
    int64_t channels = t->rank == 3 ? t->shape[2] : 0;
    return (channels == 1 || channels == 3 || channels == 4) &&
           give(l, LOOK_IMAGE, floats_of(t), none, none);
}

static bool look_at_tuple(const Look *l, const Tuple *t) {
    double from, to;
    if (t->n == 3 && read_number(t->items[1], &from) && read_number(t->items[2], &to))
        return look_at_functions(l, t->items[0], from, to);
    Tensor *x = t->n == 2 ? vector_in(t->items[0]) : NULL,
           *y = t->n == 2 ? vector_in(t->items[1]) : NULL;
    return x && y && x->count == y->count &&
           give(l, LOOK_POINTS, text(ascends(x) ? "line" : "scatter"), floats_of(x), floats_of(y));
}

/* Numbers, functions, or plots. */
static bool look_at_list(const Look *l, Value list) {
    VEC(double) numbers = {0};
    Value rest = list, item;
    bool plots = true, are_numbers = true;
    size_t n = 0;
    for (double x; builtin_list_next(&rest, &item); n++) {
        plots = plots && is_plot(item);
        are_numbers = are_numbers && read_number(item, &x);
        if (are_numbers)
            vec_push(&numbers, x);
    }
    if (!n || !(plots || are_numbers))
        return look_at_functions(l, list, -5, 5);
    if (plots)
        return give(l, LOOK_PLOTS, list, value_unit(), value_unit());
    int64_t count = (int64_t)n;
    Tensor *t = tensor_new(DT_F64, 1, &count);
    memcpy(tensor_data(t), numbers.data, n * sizeof(double));
    return give(l, LOOK_POINTS, text("line"), places(count), value_tensor(t));
}

bool builtin_plot_look(const BuiltinCall *call, Value *out) {
    Type *type = type_resolve(call->type);
    Look l = {call, type->decl->ctors, out};
    Value v = value_primal(call->args[0]);
    bool done = false;
    if (v.tag == VAL_TENSOR)
        done = look_at_tensor(&l, v.p);
    else if (v.tag == VAL_TUPLE && v.p)
        done = look_at_tuple(&l, v.p);
    else if (is_plot(v))
        done = give(&l, LOOK_PLOTS, builtin_list(call, &v, 1), value_unit(), value_unit());
    else if (is_list(v))
        done = look_at_list(&l, v);
    else if (v.tag == VAL_CLOSURE)
        done = look_at_functions(&l, v, -5, 5);
    if (done)
        return true;
    Diag *d = builtin_fail(call, DIAG_R0613, "there is no obvious plot of this value");
    diag_add_fact(d, "it draws a vector, two vectors (x, y), a matrix, an image of 1, 3 or 4 "
                     "channels, a list of "
                     "numbers or plots, and functions of float32 numbers: `plot(sin)`, "
                     "`plot((list[f, g], -2.0, 2.0))`");
    return false;
}
