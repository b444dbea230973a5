/* SPDX-License-Identifier: Apache-2.0 */
/* `t[0, 1:, ..., None]`: NumPy's basic indexing, with integers known only when running. The
 * attribute `spec` says what stands between the brackets, one letter an index (types/core/core.h): 'i'
 * an integer, ':' and a digit a slice with the bounds that the digit's bits name, '.' the ellipsis,
 * 'n' a new axis. The integers follow the tensor as arguments. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/structured.h"
#include "ops/slice.h"

/* How many integers, and how many axes of the tensor, the spec takes; false when it is no spec. */
static bool spec_count(const char *spec, int *integers, int *axes, int *results, bool *ellipsis) {
    *integers = *axes = *results = 0;
    *ellipsis = false;
    for (const char *p = spec; *p; p++) {
        switch (*p) {
        case 'i':
            *integers += 1;
            *axes += 1;
            break;
        case ':':
            p++;
            if (*p < '0' || *p > '7')
                return false;
            *integers += (*p & 1) + (*p >> 1 & 1) + (*p >> 2 & 1);
            *axes += 1;
            *results += 1;
            break;
        case '.':
            if (*ellipsis)
                return false;
            *ellipsis = true;
            break;
        case 'n': *results += 1; break;
        default: return false;
        }
    }
    return true;
}

/* Where the indexed part of x lies. The integers are arguments first, first + 1, … of the call. */
static bool index_view(const OpCall *call, const Tensor *x, uint32_t first, SliceView *v) {
    const char *spec = attrs_text(call->attrs, "spec");
    int integers, axes, results;
    bool ellipsis;
    if (!spec_count(spec, &integers, &axes, &results, &ellipsis)) {
        shape_error(call, DIAG_R0316, "\"%s\" is not an index spec", spec);
        return false;
    }
    if (axes > x->rank) {
        shape_error(call, DIAG_R0313, "%d indices for a tensor with %d %s", axes, x->rank,
                    x->rank == 1 ? "axis" : "axes");
        return false;
    }
    if (results + x->rank - axes > TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0313, "the result would have more than %d axes", TENSOR_MAX_RANK);
        return false;
    }
    if ((uint32_t)integers != call->nin - first) {
        shape_error(call, DIAG_R0316, "spec \"%s\" takes %d integers and gets %u", spec, integers,
                    call->nin - first);
        return false;
    }
    int64_t values[3 * TENSOR_MAX_RANK + 3];
    for (int i = 0; i < integers; i++) {
        const Tensor *t = call->in[first + (uint32_t)i];
        if (!shape_check_dtype(call, (int)first + i, DTS_INT) ||
            !shape_check_rank(call, (int)first + i, 0))
            return false;
        values[i] = elem_get_int(tensor_data(t), t->dtype);
    }
    *v = (SliceView){0};
    int axis = 0, used = 0, rest = x->rank - axes;
    for (const char *p = spec; *p || rest; p++) {
        if (*p == 0 || *p == '.') { /* without an ellipsis the axes left over come last */
            for (; rest; rest--, axis++) {
                v->shape[v->rank] = x->shape[axis];
                v->strides[v->rank++] = x->strides[axis];
            }
            if (*p == 0)
                break;
        } else if (*p == 'n') {
            v->shape[v->rank] = 1;
            v->strides[v->rank++] = 0;
        } else if (*p == 'i') {
            int64_t size = x->shape[axis], i = values[used++], at = i < 0 ? i + size : i;
            if (at < 0 || at >= size) {
                shape_error(call, DIAG_R0602, "index %lld is out of range for axis %d of size %lld",
                            (long long)i, axis, (long long)size);
                return false;
            }
            v->offset += at * x->strides[axis++];
        } else {
            p++;
            SliceRange r = {.has_begin = *p & 1, .has_end = *p >> 1 & 1, .step = 1};
            if (r.has_begin)
                r.begin = values[used++];
            if (r.has_end)
                r.end = values[used++];
            if (*p >> 2 & 1)
                r.step = values[used++];
            if (r.step == 0) {
                shape_error(call, DIAG_R0316, "the step of a slice is 0");
                return false;
            }
            int64_t from, count;
            slice_resolve(&r, x->shape[axis], &from, &count);
            if (count)
                v->offset += from * x->strides[axis];
            v->shape[v->rank] = count;
            v->strides[v->rank++] = x->strides[axis++] * r.step;
        }
    }
    return true;
}

static int shape_index(const OpCall *call, OutSpec *out) {
    SliceView v;
    if (!index_view(call, call->in[0], 1, &v))
        return -1;
    return shape_set(call, out, call->in[0]->dtype, v.rank, v.shape) ? 1 : -1;
}

/* Of the integers of a slice those that inference knows: a number or a size, else NULL. */
static Type *known_integer(const Attrs *attrs, int i) {
    const AttrValue *v = attrs_get(attrs, "sizes");
    if (v->kind != ATTR_LIST || i >= (int)v->list.n)
        return NULL;
    Type *t = type_resolve(rel_attr_dim(&v->list.items[i]));
    int64_t n;
    return t->flags & TYPE_HAS_ANY || !(type_get_int(t, &n) || dim_is_size(t)) ? NULL : t;
}

/* The size of the slice whose bounds the digit names; its integers are `first`, first + 1, … */
static Type *index_slice(Relation *r, char digit, int first, Type *d) {
    Type *bound[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        if (!(digit >> i & 1))
            continue;
        bound[i] = known_integer(r->attrs, first++);
        if (!bound[i])
            return rel_unknown_dim(r);
    }
    int64_t step = 1, b = 0, e = 0, n, from, count;
    if (bound[2] && (!type_get_int(bound[2], &step) || step == 0))
        return rel_unknown_dim(r);
    bool numbers = (!bound[0] || type_get_int(bound[0], &b)) &&
                   (!bound[1] || type_get_int(bound[1], &e));
    if (!numbers || !type_get_int(type_resolve(d), &n))
        return rel_slice_size(r, d, bound[0], bound[1], step);
    SliceRange g = {.begin = b, .end = e, .step = step, .has_begin = bound[0], .has_end = bound[1]};
    slice_resolve(&g, n, &from, &count);
    return rel_int_dim(r, count);
}

/* The rank follows from the spec, the size of a slice from what is known of its bounds. */
static Type **index_dims(Relation *r, const char *spec, uint32_t rank, Type **dims,
                         uint32_t *nout) {
    int integers, axes, results, used = 0;
    bool ellipsis;
    if (!spec_count(spec, &integers, &axes, &results, &ellipsis) || axes > (int)rank)
        return NULL;
    Type **out = mem_new_n(Type *, results + (int)rank - axes + 1);
    uint32_t n = 0, axis = 0, rest = rank - (uint32_t)axes;
    for (const char *p = spec; *p || rest; p++) {
        if (*p == 0 || *p == '.') {
            for (; rest; rest--)
                out[n++] = dims[axis++];
            if (*p == 0)
                break;
        } else if (*p == 'n') {
            out[n++] = rel_int_dim(r, 1);
        } else if (*p == 'i') {
            axis++;
            used++;
        } else {
            char digit = (char)(*++p - '0');
            out[n++] = digit == 0 ? dims[axis] : index_slice(r, digit, used, dims[axis]);
            used += (digit & 1) + (digit >> 1 & 1) + (digit >> 2 & 1);
            axis++;
        }
    }
    *nout = n;
    return out;
}

static RelStatus relate_index(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT}, &status))
        return status;
    uint32_t rank, n = 0;
    Type **dims;
    if (!rel_rank_in(r->args[0], &rank, &dims)) {
        int integers, axes, results, data;
        bool ellipsis;
        if (!rel_rank_in(rel_result_arg(r), &rank, &dims) ||
            !spec_count(attrs_text(r->attrs, "spec"), &integers, &axes, &results, &ellipsis))
            return rel_wait(s, r, rel_dtype_in(r->args[0]));
        data = (int)rank - results + axes; /* as many axes as the result tells */
        if (!rel_make_rank(s, r, 0, data < axes ? (uint32_t)axes : (uint32_t)data) ||
            !rel_rank_in(r->args[0], &rank, &dims))
            return REL_FAIL;
    }
    Type **out = index_dims(r, attrs_text(r->attrs, "spec"), rank, dims, &n);
    if (!out) {
        int indices = 0;
        for (const char *c = attrs_text(r->attrs, "spec"); *c; c++)
            indices += *c == 'i' || *c == ':';
        rel_error(s, r, DIAG_R0313, "%d %s for a tensor with %u %s", indices,
                  indices == 1 ? "index" : "indices", rank, rank == 1 ? "axis" : "axes");
        return REL_FAIL;
    }
    status = rel_result(s, r, out, n, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static bool lower_index(const OpCall *call, Tensor *const *out, Plan *plan) {
    SliceView v;
    if (!index_view(call, call->in[0], 1, &v))
        return false;
    plan_gather_strided(plan, out[0], call->in[0], v.strides, v.offset);
    return true;
}

static const RelDef rel_op_index = {"IndexAt", relate_index, 3, false};
static const AttrSpec index_attrs[] = {
    {"spec", AT_STRING, NULL, "what stands between the brackets, one letter an index"},
    {"sizes", AT_DIMS_OPT, "None", "the integers as far as they are constants, `?` for the others"},
};
const Op op_index = {
    .name = "index",
    .args = "data, (at)",
    .nargs = 2,
    .attrs = index_attrs,
    .nattrs = 2,
    .relation = &rel_op_index,
    .dtypes = DTS_ALL,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_INJECTIVE,
    .untried = true,
    .shape = shape_index,
    .lower = lower_index,
    .doc =
        "What `data[…]` means: integers take one place (negative: from the end, an error "
        "outside),\n"
        "slices a range (cut off at the edges), `...` all other axes, None a new axis of size 1.",
    .example = "[1, 2, 3, 4][-2]",
    .example_result = "3 : int32",
    .see_also = "strided_slice, take",
};

static int shape_index_add(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *u = call->in[1];
    SliceView v;
    if (!shape_check_same_dtype(call, 0, 1) || !index_view(call, x, 2, &v))
        return -1;
    bool fits = u->rank == v.rank;
    for (int i = 0; i < v.rank && fits; i++)
        fits = u->shape[i] == v.shape[i];
    if (!fits) {
        shape_error(call, DIAG_R0314, "`update` has shape %s and the indexed part %s",
                    shape_text(u->rank, u->shape), shape_text(v.rank, v.shape));
        return -1;
    }
    return shape_set(call, out, x->dtype, x->rank, x->shape) ? 1 : -1;
}

static RelStatus relate_index_add(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM, DTS_INT}, &status))
        return status;
    Type *u = type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0]));
    if (!rel_unify(s, r, 1, u))
        return REL_FAIL;
    return rel_result_type(s, r, r->args[0]) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_index_add(const OpCall *call, Tensor *const *out, Plan *plan) {
    SliceView v;
    if (!index_view(call, out[0], 2, &v))
        return false;
    plan_copy(plan, out[0], call->in[0]);
    plan_slice_set(plan, out[0], &v, call->in[1], true);
    return true;
}

int32_t index_add_into(const OpCall *call, StepRunner runner, void *ctx,
                       const volatile int *interrupt) {
    SliceView v;
    Plan plan = {0};
    if (!index_view(call, call->in[0], 2, &v))
        return KERNEL_INDEX;
    plan_slice_set(&plan, call->in[0], &v, call->in[1], true);
    return plan_run(&plan, runner, ctx, interrupt);
}

static const RelDef rel_op_index_add = {"IndexAdd", relate_index_add, 4, false};
const Op op_index_add = {
    .name = "index_add",
    .args = "data, update, (at)",
    .nargs = 3,
    .attrs = index_attrs,
    .nattrs = 2,
    .relation = &rel_op_index_add,
    .dtypes = DTS_NUM,
    .shape_mode = SHAPE_OF_DATA,
    .pattern = OP_INJECTIVE,
    .shape = shape_index_add,
    .lower = lower_index_add,
    .doc =
        "data with update added to the part that `index` with the same spec takes: with zeros as\n"
        "data, the derivative of indexing.",
    .example = "index_add([1, 2, 3], 10, (1,), spec=\"i\")",
    .example_result = "[1, 12, 3] : Tensor[(3,), int32]",
    .see_also = "index",
};
