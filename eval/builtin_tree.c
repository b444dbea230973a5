/* SPDX-License-Identifier: Apache-2.0 */
/* Data made of float tensors as one vector, and back: what optimisers and gradient checks need of
 * parameters in any data structure. The leaves are the float tensors, in order of their fields. */
#include <string.h>

#include "eval/builtin_all.h"

typedef struct Walk {
    const BuiltinCall *call;
    DType dtype;        /* the vector's */
    bool exact;         /* other dtypes among the leaves are an error */
    int64_t count;      /* elements visited so far */
    char *data;         /* the vector's elements; NULL while only counting */
    const Tensor *from; /* unflatten: the vector, which is contiguous */
} Walk;

static bool fail(const Walk *w, const char *what) {
    builtin_fail(w->call, DIAG_R0506, "%s", what);
    return false;
}

static DType leaf_dtype(Value v) {
    return v.tag == VAL_SCALAR ? (DType)v.aux : ((Tensor *)v.p)->dtype;
}

static int64_t leaf_count(Value v) { return v.tag == VAL_SCALAR ? 1 : ((Tensor *)v.p)->count; }

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
static void gather_leaf(Walk *w, Value v) {
    char *to = w->data + (size_t)w->count * dtype_size(w->dtype);
    if (v.tag == VAL_SCALAR) {
        elem_set_float(to, w->dtype, v.f);
    } else if (leaf_count(v)) {
        const Tensor *t = tensor_contiguous(v.p);
        copy_elements(to, w->dtype, tensor_data(t), t->dtype, t->count);
    }
}

static Value scatter_leaf(const Walk *w, Value v) {
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

/* Visits the leaves of v. When unflattening, *out is v with new leaves. */
static bool visit_leaves(Walk *w, Value v, Value *out) {
    Value *hole = out;
    for (;;) { /* along the last field of data in a loop: lists are long */
        *hole = v;
        switch ((ValueTag)v.tag) {
        case VAL_DUAL:
            return fail(w, "a value that `grad` differentiates cannot be made a vector: take the "
                           "gradient first");
        case VAL_SCALAR:
        case VAL_TENSOR:
            if (!value_is_float_tensor(v))
                return true;
            if (w->exact && leaf_dtype(v) != w->dtype)
                return fail(w, "every float in here must be float32");
            if (w->data)
                gather_leaf(w, v);
            if (w->from) {
                if (w->count + leaf_count(v) > w->from->count)
                    return fail(w, "the vector is shorter than the data it is to fill");
                *hole = scatter_leaf(w, v);
            }
            w->count += leaf_count(v);
            return true;
        case VAL_TUPLE: {
            Tuple *from = v.p;
            if (!from)
                return true;
            Tuple *to = mem_alloc(sizeof *to + from->n * sizeof(Value));
            to->n = from->n;
            *hole = (Value){.tag = VAL_TUPLE, .p = to};
            for (uint32_t i = 0; i < from->n; i++)
                if (!visit_leaves(w, from->items[i], &to->items[i]))
                    return false;
            return true;
        }
        case VAL_CTOR: {
            if (!v.aux)
                return true;
            if (mem_stack_left() < 64 * 1024)
                return fail(w, "this data is nested too deeply");
            Data *from = v.p, *to = mem_alloc(sizeof *to + v.aux * sizeof(Value));
            to->ctor = from->ctor;
            *hole = (Value){.tag = VAL_CTOR, .aux = v.aux, .p = to};
            for (uint32_t i = 0; i + 1 < v.aux; i++)
                if (!visit_leaves(w, from->fields[i], &to->fields[i]))
                    return false;
            hole = &to->fields[v.aux - 1];
            v = from->fields[v.aux - 1];
            break;
        }
        case VAL_CLOSURE:
        case VAL_REF:
        case VAL_STRING:
        case VAL_BUILTIN:
        case VAL_ABSENT: return true;
        }
    }
}

static bool flatten(const BuiltinCall *call, DType dtype, bool exact, Value *out) {
    Walk count = {.call = call, .dtype = dtype, .exact = exact};
    Value ignored;
    if (!visit_leaves(&count, call->args[0], &ignored))
        return false;
    Tensor *vector = tensor_new(dtype, 1, &count.count);
    Walk fill = {.call = call, .dtype = dtype, .data = tensor_data(vector)};
    visit_leaves(&fill, call->args[0], &ignored);
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
        return fail(&(Walk){.call = call},
                    "a value that `grad` differentiates cannot be taken apart");
    Walk w = {.call = call, .dtype = vector->dtype, .from = tensor_contiguous(vector)};
    if (!visit_leaves(&w, call->args[0], out))
        return false;
    return w.count == vector->count || fail(&w, "the vector is longer than the data it is to fill");
}

/* ---- where an element of the vector stands --------------------------------------------------- */

typedef struct Place {
    int64_t left; /* elements still to skip */
    bool deep;    /* the data is nested too deeply to find the place */
    char *path;   /* the place, once it was found */
} Place;

static bool place_leaf(Place *p, Value v, const char *path) {
    int64_t n = leaf_count(v);
    if (p->left >= n) {
        p->left -= n;
        return false;
    }
    Str at = {0};
    str_add(&at, path);
    const Tensor *t = v.tag == VAL_TENSOR ? v.p : NULL;
    int64_t below = n;
    for (int i = 0; t && i < t->rank; i++) {
        below /= t->shape[i];
        str_printf(&at, "%s%lld", i ? ", " : "[", (long long)(p->left / below));
        p->left %= below;
    }
    if (t && t->rank)
        str_add_char(&at, ']');
    p->path = fmt_text("%s", str_text(&at));
    return true;
}

/* Finds the place below `path`. An element of a list is written `nth(path, i)`, other parts by their
 * field's name or number. */
static bool find_place(Place *p, Value v, const char *path) {
    const char *list = path;
    for (int64_t i = 0;; i++) {
        bool cons = v.tag == VAL_CTOR && v.aux == 2 &&
                    !strcmp(((Data *)v.p)->ctor->name->text, "Cons");
        if (!cons)
            break;
        const Data *d = v.p;
        if (find_place(p, d->fields[0], fmt_text("nth(%s, %lld)", list, (long long)i)))
            return true;
        v = d->fields[1];
    }
    if (mem_stack_left() < 64 * 1024) {
        p->deep = true;
        return true;
    }
    const Value *items = NULL;
    uint32_t n = 0;
    const Symbol **names = NULL;
    if (v.tag == VAL_TUPLE && v.p) {
        items = ((Tuple *)v.p)->items;
        n = ((Tuple *)v.p)->n;
    } else if (v.tag == VAL_CTOR && v.aux) {
        items = ((Data *)v.p)->fields;
        n = v.aux;
        names = ((Data *)v.p)->ctor->field_names;
    } else if ((v.tag == VAL_SCALAR || v.tag == VAL_TENSOR) && value_is_float_tensor(v)) {
        return place_leaf(p, v, path);
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *field = names ? fmt_text("%s.%s", path, names[i]->text)
                                  : fmt_text("%s.%u", path, i);
        if (find_place(p, items[i], field))
            return true;
    }
    return false;
}

bool builtin_tree_place(const BuiltinCall *call, Value *out) {
    Place p = {.left = call->args[1].i};
    if (p.left < 0 || !find_place(&p, call->args[0], "x") || p.deep)
        return fail(&(Walk){.call = call}, "there is no such place in this data");
    *out = value_string(p.path, strlen(p.path));
    return true;
}
