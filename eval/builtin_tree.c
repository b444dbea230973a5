/* SPDX-License-Identifier: Apache-2.0 */
/* The float tensors of data, its leaves, in order of their fields: as a List, whose tensors are not
 * copied (what optimisers update), or as one vector (what checks of derivatives step through). */
#include <string.h>

#include "eval/builtin_all.h"
#include "eval/leaf_map.h"

static bool fail(const BuiltinCall *call, const char *what) {
    builtin_fail(call, DIAG_R0506, "%s", what);
    return false;
}

static DType leaf_dtype(Value v) {
    v = value_primal(v);
    return v.tag == VAL_SCALAR ? (DType)v.aux : ((Tensor *)v.p)->dtype;
}

static int64_t leaf_count(Value v) { return v.tag == VAL_SCALAR ? 1 : ((Tensor *)v.p)->count; }

/* ---- leaves as a list ------------------------------------------------------------------------ */

typedef struct LeafList {
    LeafVec leaves;
    Value rest; /* refill: the new leaves that have no place yet */
} LeafList;

bool builtin_tree_leaves(const BuiltinCall *call, Value *out) {
    LeafVec leaves = {0};
    if (!leaf_map_list(call, call->args[0], false, &leaves))
        return false;
    *out = builtin_list(call, leaves.data, leaves.len);
    return true;
}

static bool have_one_shape(Value a, Value b) {
    a = value_primal(a);
    b = value_primal(b);
    if (a.tag != b.tag || a.tag == VAL_SCALAR)
        return a.tag == b.tag;
    const Tensor *s = a.p, *t = b.p;
    return s->rank == t->rank && !memcmp(s->shape, t->shape, (size_t)s->rank * sizeof *s->shape);
}

static Value take_leaf_beside(LeafMap *m, Value x, Value y) {
    LeafList *l = m->ctx;
    if (!m->failed && (!value_is_float_tensor(y) || !have_one_shape(x, y))) {
        fail(m->call, "a part of the gradient has not the shape of its parameter");
        m->failed = true;
    }
    vec_push(&l->leaves, y);
    return x;
}

/* tree.leaves_like(x, y): the leaves of y, each of which stands beside one of x and has its shape. */
bool builtin_tree_leaves_like(const BuiltinCall *call, Value *out) {
    LeafList l = {0};
    LeafMap m = {.call = call,
                 .leaf = take_leaf_beside,
                 .ctx = &l,
                 .keep_other = true,
                 .paired = true,
                 .role = "gradient"};
    if (!leaf_map_run(&m, call->args[0], call->args[1], out))
        return false;
    *out = builtin_list(call, l.leaves.data, l.leaves.len);
    return true;
}

static Value put_leaf(LeafMap *m, Value x, Value y) {
    LeafList *l = m->ctx;
    if (m->failed)
        return x;
    const char *wrong = NULL;
    if (!builtin_list_next(&l->rest, &y))
        wrong = "the list has fewer tensors than the data that it is to fill";
    else if (!have_one_shape(x, y) || leaf_dtype(x) != leaf_dtype(y))
        wrong = "a tensor of the list has not the shape of the one whose place it takes";
    if (wrong)
        m->failed = !fail(m->call, wrong);
    return y;
}

bool builtin_tree_refill(const BuiltinCall *call, Value *out) {
    LeafList l = {.rest = call->args[1]};
    LeafMap m = {.call = call, .leaf = put_leaf, .ctx = &l, .keep_other = true};
    Value more;
    return leaf_map_run(&m, call->args[0], value_unit(), out) &&
           (!builtin_list_next(&l.rest, &more) ||
            fail(call, "the list has more tensors than the data that it is to fill"));
}

/* ---- leaves as one vector -------------------------------------------------------------------- */

typedef struct Vector {
    DType dtype;
    bool exact;         /* other dtypes among the leaves are an error */
    int64_t count;      /* elements visited so far */
    char *data;         /* the elements to fill; NULL while only counting */
    const Tensor *from; /* unflatten: the vector, which is contiguous */
} Vector;

/* Copies n elements of float dtypes, each rounded once. */
static void copy_elements(void *to, DType to_type, const void *from, DType from_type, int64_t n) {
    size_t to_size = dtype_size(to_type), from_size = dtype_size(from_type);
    if (to_type == from_type) {
        memcpy(to, from, (size_t)n * to_size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        elem_set_float((char *)to + (size_t)i * to_size, to_type,
                       elem_get_float((const char *)from + (size_t)i * from_size, from_type));
}

/* Copies one leaf's elements into the vector. */
static void gather_leaf(const Vector *w, Value v) {
    char *to = w->data + (size_t)w->count * dtype_size(w->dtype);
    if (v.tag == VAL_SCALAR) {
        elem_set_float(to, w->dtype, v.f);
    } else if (leaf_count(v)) {
        const Tensor *t = tensor_contiguous(v.p);
        copy_elements(to, w->dtype, tensor_data(t), t->dtype, t->count);
    }
}

static Value scatter_leaf(const Vector *w, Value v) {
    DType t = leaf_dtype(v);
    const char *from = (const char *)tensor_data(w->from) + (size_t)w->count * dtype_size(w->dtype);
    if (v.tag == VAL_SCALAR) {
        unsigned char rounded[8];
        copy_elements(rounded, t, from, w->dtype, 1);
        return value_float(t, elem_get_float(rounded, t));
    }
    Tensor *like = v.p, *out = tensor_new(t, like->rank, like->shape);
    if (out->count)
        copy_elements(tensor_data(out), t, from, w->dtype, out->count);
    return value_tensor(out);
}

static Value visit_leaf(LeafMap *m, Value x, Value y) {
    Vector *w = m->ctx;
    const char *wrong = NULL;
    (void)y;
    if (m->failed)
        return x;
    if (x.tag == VAL_DUAL)
        wrong = "a value that `grad` differentiates cannot be made a vector: take the gradient "
                "first";
    else if (w->exact && leaf_dtype(x) != w->dtype)
        wrong = "every float in here must be float32";
    else if (w->from && w->count + leaf_count(x) > w->from->count)
        wrong = "the vector is shorter than the data it is to fill";
    if (wrong) {
        m->failed = !fail(m->call, wrong);
        return x;
    }
    if (w->data)
        gather_leaf(w, x);
    Value leaf = w->from ? scatter_leaf(w, x) : x;
    w->count += leaf_count(x);
    return leaf;
}

static bool flatten(const BuiltinCall *call, DType dtype, bool exact, Value *out) {
    Vector w = {.dtype = dtype, .exact = exact};
    LeafMap m = {.call = call, .leaf = visit_leaf, .ctx = &w};
    if (!leaf_map_visit(&m, call->args[0], value_unit()))
        return false;
    Tensor *vector = tensor_new(dtype, 1, &w.count);
    w = (Vector){.dtype = dtype, .data = tensor_data(vector)};
    (void)leaf_map_visit(&m, call->args[0], value_unit());
    *out = value_tensor(vector);
    return true;
}

bool builtin_tree_flatten(const BuiltinCall *call, Value *out) {
    return flatten(call, DT_F32, true, out);
}

bool builtin_tree_flatten64(const BuiltinCall *call, Value *out) {
    return flatten(call, DT_F64, false, out);
}

bool builtin_tree_unflatten(const BuiltinCall *call, Value *out) {
    Tensor *vector = value_to_tensor(value_primal(call->args[1]));
    if (call->args[1].tag == VAL_DUAL)
        return fail(call, "a value that `grad` differentiates cannot be taken apart");
    Vector w = {.dtype = vector->dtype, .from = tensor_contiguous(vector)};
    LeafMap m = {.call = call, .leaf = visit_leaf, .ctx = &w, .keep_other = true};
    return leaf_map_run(&m, call->args[0], value_unit(), out) &&
           (w.count == vector->count ||
            fail(call, "the vector is longer than the data it is to fill"));
}
