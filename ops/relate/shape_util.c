/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of one operator call. */
#include "ops/relate/shape_util.h"

#include <stdarg.h>
#include <string.h>

static void add_sizes(Diag *d, const OpCall *call) {
    Type **types = mem_new_n(Type *, call->nin + 1);
    for (uint32_t i = 0; i < call->nin; i++) {
        const Tensor *t = call->in[i];
        Type **dims = mem_new_n(Type *, t->rank + 1);
        for (int k = 0; k < t->rank; k++)
            dims[k] = type_dim_int(t->shape[k], NULL);
        types[i] = type_tensor(type_shape(dims, (uint32_t)t->rank), type_dtype(t->dtype));
    }
    bool tuple = call->op->args && call->op->args[0] == '(';
    Type *whole = tuple ? type_tuple(types, call->nin) : NULL;
    SizeClash clash;
    op_add_sizes(d, call->op, call->attrs, tuple ? 1 : call->nin, tuple ? &whole : types, &clash);
}

static Diag *report(const OpCall *call, DiagCode code, const Str *text) {
    Diag *d = diag_error(call->diags, code, call->span, "%s", str_text(text));
    if (!call->places && diag_is_of_sizes(code))
        add_sizes(d, call);
    return d;
}

Diag *shape_error(const OpCall *call, DiagCode code, const char *fmt, ...) {
    Str s = {0};
    str_printf(&s, "`%s`: ", op_subject(call->op));
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return report(call, code, &s);
}

Diag *shape_mistake(const OpCall *call, DiagCode code, const char *fmt, ...) {
    Str s = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return report(call, code, &s);
}

const char *shape_arg_name(const OpCall *call, int arg) {
    OpArg first = op_arg(call->op, 0);
    if (first.tuple)
        return fmt_text("%s.%d", first.name, arg);
    const char *name = op_arg(call->op, arg).name;
    return name ? name : fmt_text("argument %d", arg + 1);
}

const char *shape_text(int rank, const int64_t *shape) {
    Str s = {0};
    str_add_char(&s, '(');
    for (int i = 0; i < rank; i++)
        str_printf(&s, "%s%lld", i ? ", " : "", (long long)shape[i]);
    str_add(&s, rank == 1 ? ",)" : ")");
    return str_text(&s);
}

/* The types of some arguments, where nothing else tells their sizes. */
static void add_types(const OpCall *call, Diag *d, int narg, const int *arg) {
    if (call->places || d->facts.len)
        return;
    for (int i = 0; i < narg; i++) {
        const Tensor *t = call->in[arg[i]];
        diag_add_fact(d, "`%s` is Tensor[%s, %s]", shape_arg_name(call, arg[i]),
                      shape_text(t->rank, t->shape), dtype_info[t->dtype].name);
    }
}

bool shape_check_dtype(const OpCall *call, int arg, DTypeSet set) {
    DType t = call->in[arg]->dtype;
    if (set & DT_BIT(t))
        return true;
    Diag *d = shape_error(call, DIAG_R0310, "`%s` cannot have elements of type %s",
                          shape_arg_name(call, arg), dtype_info[t].name);
    Str s = {0};
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (set & DT_BIT(i))
            str_printf(&s, "%s%s", s.len ? ", " : "", dtype_info[i].name);
    diag_add_fact(d, "it takes %s", str_text(&s));
    return false;
}

bool shape_check_same_dtype(const OpCall *call, int a, int b) {
    if (call->in[a]->dtype == call->in[b]->dtype)
        return true;
    shape_error(call, DIAG_R0311, "`%s` has elements of type %s, `%s` of type %s",
                shape_arg_name(call, a), dtype_info[call->in[a]->dtype].name,
                shape_arg_name(call, b), dtype_info[call->in[b]->dtype].name);
    return false;
}

bool shape_check_rank(const OpCall *call, int arg, int rank) {
    if (call->in[arg]->rank == rank)
        return true;
    Diag *d = shape_error(call, DIAG_R0313, "`%s` has %d %s, not %d", shape_arg_name(call, arg),
                          call->in[arg]->rank, call->in[arg]->rank == 1 ? "axis" : "axes", rank);
    add_types(call, d, 1, &arg);
    return false;
}

bool shape_check_min_rank(const OpCall *call, int arg, int rank) {
    if (call->in[arg]->rank >= rank)
        return true;
    Diag *d = shape_error(call, DIAG_R0313, "`%s` has %d %s, at least %d %s needed",
                          shape_arg_name(call, arg), call->in[arg]->rank,
                          call->in[arg]->rank == 1 ? "axis" : "axes", rank,
                          rank == 1 ? "is" : "are");
    add_types(call, d, 1, &arg);
    return false;
}

bool shape_check_dims(const OpCall *call, int a, int axis_a, int b, int axis_b) {
    int64_t m = call->in[a]->shape[axis_a], n = call->in[b]->shape[axis_b];
    if (m == n)
        return true;
    Diag *d = shape_error(call, DIAG_R0314, "axis %d of `%s` is %lld, axis %d of `%s` is %lld",
                          axis_a, shape_arg_name(call, a), (long long)m, axis_b,
                          shape_arg_name(call, b), (long long)n);
    add_types(call, d, 2, (const int[]){a, b});
    return false;
}

bool shape_broadcast_into(const OpCall *call, int arg, OutSpec *out) {
    const Tensor *t = call->in[arg];
    int rank = t->rank > out->rank ? t->rank : out->rank;
    int64_t shape[TENSOR_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int64_t a = i < out->rank ? out->shape[out->rank - 1 - i] : 1;
        int64_t b = i < t->rank ? t->shape[t->rank - 1 - i] : 1;
        if (a != b && a != 1 && b != 1) {
            Diag *d = shape_mistake(call, DIAG_R0312, "these shapes do not broadcast");
            if (!call->places)
                diag_add_fact(d, "the operator is `%s`", op_subject(call->op));
            int *all = mem_bytes((call->nin + 1) * sizeof *all);
            for (uint32_t k = 0; k < call->nin; k++)
                all[k] = (int)k;
            add_types(call, d, (int)call->nin, all);
            bool two = call->nin == 2;
            diag_add_fact(d, "axis %d is %lld %s and %lld %s; broadcasting needs equal sizes or 1",
                          t->rank == out->rank ? rank - 1 - i : -1 - i, (long long)a,
                          two ? "on the left" : "in one", (long long)b,
                          two ? "on the right" : "in another");
            return false;
        }
        shape[rank - 1 - i] = a == 1 ? b : a;
    }
    out->rank = rank;
    if (rank)
        memcpy(out->shape, shape, sizeof(int64_t) * (size_t)rank);
    return true;
}

bool shape_axis(const OpCall *call, const char *attr, int64_t axis, int rank, int *out) {
    if (axis < -rank || axis >= rank) {
        shape_error(call, DIAG_R0315, "%s %lld does not exist: the tensor has %d ax%s", attr,
                    (long long)axis, rank, rank == 1 ? "is" : "es");
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

bool shape_axes(const OpCall *call, const char *attr, bool exclude, int rank, uint32_t *out) {
    uint32_t all = (uint32_t)((1u << rank) - 1), set = 0, n;
    const int64_t *axes;
    if (attrs_is_none(call->attrs, attr)) {
        *out = all; /* of nothing named, exclude has nothing to leave out */
        return true;
    }
    if (!attrs_ints(call->attrs, attr, &axes, &n))
        BUG("attribute `%s` of `%s` is no list of integers", attr, call->op->name);
    for (uint32_t i = 0; i < n; i++) {
        int axis;
        if (!shape_axis(call, attr, axes[i], rank, &axis))
            return false;
        if (set >> axis & 1) {
            shape_error(call, DIAG_R0315, "%s %lld is named twice", attr, (long long)axes[i]);
            return false;
        }
        set |= 1u << axis;
    }
    *out = exclude ? all & ~set : set;
    return true;
}

bool shape_attr_dims(const OpCall *call, const char *attr, int *rank, int64_t *dims) {
    const int64_t *values;
    uint32_t n;
    if (!attrs_ints(call->attrs, attr, &values, &n) || n > TENSOR_MAX_RANK)
        BUG("the relation of `%s` let its attribute `%s` through", call->op->name, attr);
    for (uint32_t i = 0; i < n; i++) {
        if (values[i] < 0) {
            shape_error(call, DIAG_R0316, "`%s` holds the negative size %lld", attr,
                        (long long)values[i]);
            return false;
        }
        dims[i] = values[i];
    }
    *rank = (int)n;
    return true;
}

bool shape_set(const OpCall *call, OutSpec *out, DType dtype, int rank, const int64_t *shape) {
    if (rank > TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0317, "the result would have %d axes; a tensor has at most %d",
                    rank, TENSOR_MAX_RANK);
        return false;
    }
    if (shape_count(rank, shape, dtype) < 0) {
        shape_error(call, DIAG_R0317, "the result would be too large: %s of %s",
                    shape_text(rank, shape), dtype_info[dtype].name);
        return false;
    }
    out->dtype = dtype;
    out->rank = rank;
    if (rank && shape != out->shape)
        memcpy(out->shape, shape, sizeof(int64_t) * (size_t)rank);
    return true;
}

DType shape_attr_dtype(const OpCall *call, const char *attr, DType otherwise) {
    DType t;
    return attrs_dtype(call->attrs, attr, &t) ? t : otherwise;
}

void shape_strides(int rank, const int64_t *shape, int64_t *strides) {
    int64_t n = 1;
    for (int i = rank; i-- > 0;) {
        strides[i] = n;
        n = size_multiply(n, shape[i]);
    }
}
