/* SPDX-License-Identifier: Apache-2.0 */
/* What `vmap` does with data when running (passes/vmap.h): the tensors in it, of any dtype, are its leaves, in order of
 * their fields. What a derivative follows is a leaf too. */
#include <string.h>

#include "eval/builtin_all.h"
#include "eval/leaf_map.h"
#include "ops/relate/shape_util.h"

static bool fail(const BuiltinCall *call, const char *words) {
    builtin_fail(call, DIAG_R0616, "%s", words);
    return false;
}

static bool is_leaf(Value v) {
    v = value_primal(v);
    return v.tag == VAL_SCALAR || v.tag == VAL_TENSOR;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

bool builtin_vmap_leaves(const BuiltinCall *call, Value *out) {
    LeafVec leaves = {0};
    if (!leaf_map_list(call, call->args[0], true, &leaves))
        return false;
    for (size_t i = 0; i < leaves.len; i++)
        leaves.data[i] = value_data(builtin_ctor(call, "_Leaf"), &leaves.data[i]);
    *out = builtin_list(call, leaves.data, leaves.len);
    return true;
}

static Value put_leaf(LeafMap *m, Value x, Value y) {
    (void)x;
    if (!builtin_list_next(m->ctx, &y))
        BUG("vmap: fewer tensors than there were");
    return data_get(y, 0);
}

bool builtin_vmap_refill(const BuiltinCall *call, Value *out) {
    Value rest = call->args[1];
    LeafMap m = {
        .call = call, .leaf = put_leaf, .ctx = &rest, .all_tensors = true, .keep_other = true};
    return leaf_map_run(&m, call->args[0], value_unit(), out);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

bool builtin_vmap_size(const BuiltinCall *call, Value *out) {
    LeafVec leaves = {0};
    if (!leaf_map_list(call, call->args[0], true, &leaves))
        return false;
    if (!leaves.len)
        return fail(call, "no argument of `vmap` holds a tensor that it could take apart");
    int64_t n = -1;
    for (size_t i = 0; i < leaves.len; i++) {
        Value v = value_primal(leaves.data[i]);
        const Tensor *t = v.tag == VAL_TENSOR ? v.p : NULL;
        if (!t || t->rank == 0)
            return fail(
                call, "`vmap` takes its arguments apart along their first axis; a scalar has none");
        if (n >= 0 && t->shape[0] != n) {
            Diag *d = builtin_fail(
                call, DIAG_R0616, "the first axes of the arguments of `vmap` differ: %lld and %lld",
                (long long)n, (long long)t->shape[0]);
            diag_add_fact(d, "the function is called once for each index of them");
            return false;
        }
        n = t->shape[0];
    }
    if (n > INT32_MAX)
        return fail(call, "`vmap` takes at most 2147483647 rows");
    *out = value_int(DT_I32, n);
    return true;
}

/* The numbers from 0 to n - 1: what `build` calls its function with. */
bool builtin_vmap_indices(const BuiltinCall *call, Value *out) {
    int64_t n = call->args[0].i;
    if (n < 0) {
        builtin_fail(call, DIAG_R0616, "`build` makes a tensor of no rows or more, not of %lld",
                     (long long)n);
        return false;
    }
    Tensor *t = tensor_new(DT_I32, 1, &n);
    int32_t *to = tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        to[i] = (int32_t)i;
    *out = value_tensor(t);
    return true;
}

/* ---- results --------------------------------------------------------------------------------- */

static const char *shape_words(Value v) {
    v = value_primal(v);
    return v.tag == VAL_TENSOR ? shape_text(((Tensor *)v.p)->rank, ((Tensor *)v.p)->shape) : "()";
}

static bool same_shape(Value a, Value b) {
    a = value_primal(a);
    b = value_primal(b);
    if (a.tag == VAL_SCALAR || b.tag == VAL_SCALAR)
        return a.tag == b.tag;
    const Tensor *s = a.p, *t = b.p;
    return s->rank == t->rank && !memcmp(s->shape, t->shape, (size_t)s->rank * sizeof *s->shape);
}

/* Whether row i has the constructors of row 0. Reports where it has not. */
static bool check_row(const BuiltinCall *call, Value first, Value row, size_t i) {
    uint32_t n = 0;
    for (;; first = leaf_map_item(first, n - 1), row = leaf_map_item(row, n - 1)) {
        if (is_leaf(first)) {
            if (same_shape(first, row))
                return true;
            builtin_fail(call, DIAG_R0616,
                         "rows of different shapes cannot be stacked: row %zu has %s, row "
                         "0 has %s",
                         i, shape_words(row), shape_words(first));
            return false;
        }
        if (first.tag == VAL_CTOR && data_ctor(first) != data_ctor(row)) {
            builtin_fail(
                call, DIAG_R0616,
                "rows of different constructors cannot be stacked: row %zu has `%s`, row 0 "
                "has `%s`",
                i, data_ctor(row)->name->text, data_ctor(first)->name->text);
            return false;
        }
        n = value_count(first);
        for (uint32_t k = 0; k + 1 < n; k++)
            if (!check_row(call, leaf_map_item(first, k), leaf_map_item(row, k), i))
                return false;
        if (n == 0)
            return true;
    }
}

static bool check_rows(const BuiltinCall *call, Value rows) {
    Value first, row;
    if (!builtin_list_next(&rows, &first))
        return true;
    for (size_t i = 1; builtin_list_next(&rows, &row); i++)
        if (!check_row(call, first, row, i))
            return false;
    return true;
}

bool builtin_vmap_check(const BuiltinCall *call, Value *out) {
    *out = value_unit();
    return check_rows(call, call->args[0]);
}

/* For each leaf of a row the list of what stands in its place in all rows. */
bool builtin_vmap_columns(const BuiltinCall *call, Value *out) {
    Value rows = call->args[0], row;
    VEC(LeafVec) all = {0};
    if (!check_rows(call, rows))
        return false;
    while (builtin_list_next(&rows, &row)) {
        LeafVec l = {0};
        if (!leaf_map_list(call, row, true, &l))
            return false;
        vec_push(&all, l);
    }
    VEC(Value) columns = {0};
    for (size_t k = 0; all.len && k < all.data[0].len; k++) {
        VEC(Value) column = {0};
        for (size_t i = 0; i < all.len; i++)
            vec_push(&column, all.data[i].data[k]);
        Value list = builtin_list(call, column.data, column.len);
        vec_push(&columns, value_data(builtin_ctor(call, "_Column"), &list));
    }
    *out = builtin_list(call, columns.data, columns.len);
    return true;
}

/* ---- results without rows -------------------------------------------------------------------- */

/* What stands for the parameters in a function's type where it takes these arguments. */
typedef struct Given {
    Map shapes; /* shape parameter -> the argument's Tensor, of whose shape it is all but the first axis */
    Map dtypes; /* dtype parameter -> 1 + DType */
    Map sizes;  /* size -> 1 + int64_t, as far as a pointer holds it */
} Given;

static void learn(Given *g, Type *t, Value v) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    v = value_primal(v);
    for (uint32_t i = 0; t->tag == TY_TUPLE && i < t->nargs; i++)
        learn(g, t->args[i], leaf_map_item(v, i));
    if (t->tag != TY_TENSOR || v.tag != VAL_TENSOR)
        return;
    const Tensor *x = v.p;
    map_set(&g->dtypes, type_resolve(t->tensor.dtype), (void *)((uintptr_t)x->dtype + 1));
    map_set(&g->shapes, type_resolve(t->tensor.shape), v.p);
    if (type_get_rank(t, &rank, &dims) && (int)rank == x->rank - 1)
        for (uint32_t i = 0; i < rank; i++)
            map_set(&g->sizes, type_resolve(dims[i]), (void *)(uintptr_t)(x->shape[i + 1] + 1));
}

static bool empty_tensor(const Given *g, Type *t, Value *out) {
    int64_t shape[TENSOR_MAX_RANK + 1] = {0};
    uint32_t rank;
    Type **dims;
    DType dtype;
    if (!type_get_dtype(t, &dtype)) {
        uintptr_t known = (uintptr_t)map_find(&g->dtypes, type_resolve(t->tensor.dtype));
        if (!known)
            return false;
        dtype = (DType)(known - 1);
    }
    const Tensor *like = map_find(&g->shapes, type_resolve(t->tensor.shape));
    if (like) {
        *out = value_tensor(tensor_new(dtype, like->rank, like->shape));
        return true;
    }
    if (!type_get_rank(t, &rank, &dims) || rank + 1 > TENSOR_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        uintptr_t known = (uintptr_t)map_find(&g->sizes, type_resolve(dims[i]));
        if (!type_get_int(dims[i], &shape[i + 1]))
            shape[i + 1] = known ? (int64_t)(known - 1) : 0;
    }
    *out = value_tensor(tensor_new(dtype, (int)rank + 1, shape));
    return true;
}

/* A value of type t without rows; false where the type does not say it. */
static bool empty_value(const Given *g, Type *t, Value *out) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        return empty_tensor(g, t, out);
    if (t->tag != TY_TUPLE)
        return false;
    Value *parts = mem_new_n(Value, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!empty_value(g, t->args[i], &parts[i]))
            return false;
    *out = value_tuple(parts, t->nargs);
    return true;
}

/* vmap.empty(f, (x1, …)): what f gives, as far as its type says, without rows. */
bool builtin_vmap_empty(const BuiltinCall *call, Value *out) {
    const Expr *fn = call->args[0].tag == VAL_CLOSURE ? ((Closure *)call->args[0].p)->fn : NULL;
    fn = fn && fn->fn->base ? fn->fn->base : fn;
    Type *t = fn && fn->type ? type_resolve(fn->type) : NULL;
    Given given = {0};
    if (t && t->tag == TY_FN) {
        for (uint32_t i = 0; i < t->nargs; i++)
            learn(&given, t->args[i], leaf_map_item(call->args[1], i));
        if (empty_value(&given, t->fn.result, out))
            return true;
    }
    Diag *d = builtin_fail(call, DIAG_R0616, "there are no rows, and nothing says what a row is");
    diag_add_fact(
        d, "where the dtype and the number of axes of a row are known before running, there may "
           "be no rows");
    return false;
}

/* vmap.zeros(0, sizes…): a tensor without elements, of the dtype of its type. */
bool builtin_vmap_zeros(const BuiltinCall *call, Value *out) {
    int64_t shape[TENSOR_MAX_RANK];
    DType dtype;
    if (!call->type || !type_get_dtype(call->type, &dtype) || call->n > TENSOR_MAX_RANK)
        BUG("a tensor without rows whose type is not known");
    for (uint32_t i = 0; i < call->n; i++)
        shape[i] = call->args[i].i;
    *out = value_tensor(tensor_new(dtype, (int)call->n, shape));
    return true;
}
