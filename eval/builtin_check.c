/* SPDX-License-Identifier: Apache-2.0 */
/* What `check_grad` asks besides its arithmetic, which is Relay (prelude/prelude.rly): whether a function
 * can be differentiated in float64, and how an element of its argument is called. */
#include <ctype.h>
#include <string.h>

#include "eval/builtin_all.h"
#include "eval/leaf_map.h"

/* ---- whether a function takes any dtype --------------------------------------------------------- */

/* The dtypes of the floats in the type of a parameter. */
typedef struct FloatDTypes {
    bool any_open; /* a dtype that calls choose, which may be float64 */
    bool
        any_fixed; /* a dtype that is written or was inferred, or a part of which too little is known */
    Map seen;      /* declarations */
} FloatDTypes;

static void note_dtypes(void *ctx, Type *t) {
    FloatDTypes *found = ctx;
    t = type_resolve(t);
    switch (t->tag) {
    case TY_VAR:
    case TY_PARAM: found->any_open |= t->kind == KIND_TYPE; return;
    case TY_TENSOR: {
        DTypeSet set = type_dtype_set(t->tensor.dtype);
        if (type_resolve(t->tensor.dtype)->tag == TY_DTYPE)
            found->any_fixed |= (set & DTS_FLOAT) != 0;
        else if (set & DT_BIT(DT_F64))
            found->any_open = true;
        return;
    }
    case TY_DATA:
        type_each_part(t, note_dtypes, found);
        if (map_find(&found->seen, t->decl))
            return;
        map_set(&found->seen, t->decl, t->decl);
        for (uint32_t i = 0; i < t->decl->nctors; i++)
            for (uint32_t k = 0; k < t->decl->ctors[i]->nfields; k++) {
                FloatDTypes field = {.seen = found->seen};
                note_dtypes(&field, t->decl->ctors[i]->fields[k]);
                found->any_fixed |= field.any_fixed;
                found->seen = field.seen;
            }
        return;
    case TY_TUPLE: type_each_part(t, note_dtypes, found); return;
    case TY_FN:
    case TY_REF:
    case TY_DERIV:
    case TY_ERROR: found->any_fixed = true; return;
    case TY_STRING:
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return;
    }
}

static const Fn *find_fn(Value f) { return f.tag == VAL_CLOSURE ? ((Closure *)f.p)->fn->fn : NULL; }

/* Whether f may be called with float64 whatever it was written for: its type leaves the dtype open, and it
 * captures nothing that has one. */
static bool takes_any_dtype(Value f) {
    const Fn *fn = find_fn(f);
    if (!fn || fn->nparams != 1 || !fn->params[0]->type)
        return false;
    const Closure *c = f.p;
    for (uint32_t i = 0; i < c->ncaptured; i++) {
        Value v = c->captured[i];
        bool harmless = v.tag == VAL_STRING || v.tag == VAL_ABSENT ||
                        (v.tag == VAL_SCALAR && !dtype_is_float((DType)v.aux));
        if (!harmless)
            return false;
    }
    FloatDTypes found = {0};
    note_dtypes(&found, fn->params[0]->type);
    return found.any_open && !found.any_fixed;
}

static Value widen_leaf(LeafMap *m, Value x, Value y) {
    (void)m, (void)y;
    if (x.tag == VAL_DUAL) /* which `tree.flatten64` refuses */
        return x;
    if (x.tag == VAL_SCALAR)
        return value_float(DT_F64, x.f);
    const Tensor *from = tensor_contiguous(x.p);
    Tensor *to = tensor_new(DT_F64, from->rank, from->shape);
    for (int64_t i = 0; i < to->count; i++)
        elem_set_float(
            (char *)tensor_data(to) + (size_t)i * dtype_size(DT_F64), DT_F64,
            elem_get_float((const char *)tensor_data(from) + (size_t)i * dtype_size(from->dtype),
                           from->dtype));
    return value_tensor(to);
}

/* check.widen(f, df, x): the pair of f and x, the floats of x as float64 where f takes them. */
bool builtin_check_widen(const BuiltinCall *call, Value *out) {
    Value pair[] = {call->args[0], call->args[2]};
    LeafMap m = {.call = call, .leaf = widen_leaf, .keep_other = true};
    if (takes_any_dtype(pair[0]) && !leaf_map_run(&m, call->args[2], value_unit(), &pair[1]))
        return false;
    *out = value_tuple(pair, 2);
    return true;
}

/* ---- where an element stands ------------------------------------------------------------------ */

static int64_t leaf_count(Value v) { return v.tag == VAL_SCALAR ? 1 : ((Tensor *)v.p)->count; }

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
        bool cons = v.tag == VAL_CTOR && data_size(v) == 2 &&
                    !strcmp(data_ctor(v)->name->text, "Cons");
        if (!cons)
            break;
        if (find_place(p, data_get(v, 0), fmt_text("nth(%s, %lld)", list, (long long)i)))
            return true;
        v = data_get(v, 1);
    }
    if (mem_stack_left() < 64 * 1024) {
        p->deep = true;
        return true;
    }
    const Symbol **names = v.tag == VAL_CTOR ? data_ctor(v)->field_names : NULL;
    if ((v.tag == VAL_SCALAR || v.tag == VAL_TENSOR) && value_is_float_tensor(v))
        return place_leaf(p, v, path);
    for (uint32_t i = 0, n = value_count(v); i < n; i++) {
        const char *field = names ? fmt_text("%s.%s", path, names[i]->text)
                                  : fmt_text("%s.%u", path, i);
        if (find_place(p, value_part(v, i), field))
            return true;
    }
    return false;
}

/* What f calls its parameter: x where a pattern takes it apart or `custom_grad` stands around it. */
static const char *parameter_name(Value f) {
    const Fn *fn = find_fn(f);
    bool named = fn && fn->nparams == 1 && !fn->own_twins[AD_REVERSE];
    const Symbol *name = named ? fn->params[0]->name : NULL;
    return name && isalpha((unsigned char)name->text[0]) ? name->text : "x";
}

/* check.place(f, x, i): where element i of the floats in x stands; in data that is nested too deeply, x alone. */
bool builtin_check_place(const BuiltinCall *call, Value *out) {
    Place p = {.left = call->args[2].i};
    const char *name = parameter_name(call->args[0]);
    const char *path = find_place(&p, call->args[1], name) && !p.deep ? p.path : name;
    *out = value_string(path, strlen(path));
    return true;
}
