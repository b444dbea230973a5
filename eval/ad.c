/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/ad.h"

#include "eval/leaf_map.h"

#include <string.h>

enum { AD_EPOCH_INTERNAL = -1 }; /* cells and chains: writes to them are never scanned */

/* ---- tapes ----------------------------------------------------------------------------------- */

Value ad_new_ref(Value v) {
    Ref *r = mem_new(Ref);
    r->value = v;
    r->epoch = (uint64_t)AD_EPOCH_INTERNAL;
    return (Value){.tag = VAL_REF, .p = r};
}

static Value new_tape(Interp *in, Value chain) {
    Value items[] = {value_int(DT_I64, (int64_t)interp_begin_level(in)), ad_new_ref(chain)};
    return value_tuple(items, 2);
}

bool ad_tape(const BuiltinCall *call, Value *out) {
    *out = new_tape(call->in, call->args[0]);
    return true;
}

bool ad_level(const BuiltinCall *call, Value *out) {
    *out = new_tape(call->in, value_unit());
    return true;
}

static uint64_t tape_level(Value tape) { return (uint64_t)((Tuple *)tape.p)->items[0].i; }

bool ad_chain(const BuiltinCall *call, Value *out) {
    *out = ((Tuple *)call->args[0].p)->items[1];
    return true;
}

bool ad_end(const BuiltinCall *call, Value *out) {
    interp_end_level(call->in, tape_level(call->args[0]));
    *out = value_unit();
    return true;
}

/* ---- duals ----------------------------------------------------------------------------------- */

static bool is_unit(Value v) { return v.tag == VAL_TUPLE && !v.p; }

static bool is_dual_of(Value v, uint64_t level) {
    return v.tag == VAL_DUAL && ((Dual *)v.p)->level == level;
}

static Value new_dual(Value primal, Value other, uint64_t level) {
    Dual *d = mem_new(Dual);
    *d = (Dual){primal, other, level};
    return (Value){.tag = VAL_DUAL, .p = d};
}

Value value_filled_like(LeafMap *m, Value v, double fill) {
    v = value_primal(v);
    if (v.tag == VAL_SCALAR)
        return value_float((DType)v.aux, fill);
    const Tensor *like = v.p;
    Tensor *made = m->filled;
    if (made && made->dtype == like->dtype && made->count >= like->count) {
        int64_t strides[TENSOR_MAX_RANK], stride = 1;
        for (int axis = like->rank; axis-- > 0; stride *= like->shape[axis])
            strides[axis] = stride;
        return value_tensor(tensor_view(made, like->rank, like->shape, strides, 0));
    }
    made = tensor_new(like->dtype, like->rank, like->shape);
    char one[8], *to = tensor_data(made);
    size_t size = dtype_size(like->dtype);
    elem_set_float(one, like->dtype, fill);
    if (fill == 0.0)
        memset(to, 0, (size_t)made->count * size);
    else
        for (int64_t i = 0; i < made->count; i++)
            memcpy(to + (size_t)i * size, one, size);
    m->filled = made;
    return value_tensor(made);
}

/* ---- maps of the leaves ---------------------------------------------------------------------- */

static Value leaf_lift(LeafMap *m, Value x, Value y) {
    (void)y;
    return new_dual(x, ad_new_ref(value_unit()), m->level);
}

bool ad_lift(const BuiltinCall *call, Value *out) {
    LeafMap m = {
        .call = call, .level = tape_level(call->args[0]), .leaf = leaf_lift, .keep_other = true};
    return leaf_map_run(&m, call->args[1], value_unit(), out);
}

static Value leaf_added(LeafMap *m, Value x, Value y) {
    (void)y;
    return is_dual_of(x, m->level) ? ((Ref *)((Dual *)x.p)->other.p)->value : value_unit();
}

static Value leaf_cotangent(LeafMap *m, Value x, Value y) {
    Value ct = leaf_added(m, x, y), primal = is_dual_of(x, m->level) ? ((Dual *)x.p)->primal : x;
    return is_unit(ct) ? value_filled_like(m, primal, 0.0) : ct;
}

bool ad_cotangent(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .level = tape_level(call->args[0]), .leaf = leaf_cotangent};
    return leaf_map_run(&m, call->args[1], value_unit(), out);
}

bool ad_added(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .level = tape_level(call->args[0]), .leaf = leaf_added};
    return leaf_map_run(&m, call->args[1], value_unit(), out);
}

static Value leaf_tangent(LeafMap *m, Value x, Value y) {
    (void)y;
    return is_dual_of(x, m->level) ? ((Dual *)x.p)->other : value_filled_like(m, x, 0.0);
}

bool ad_tangent(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .level = tape_level(call->args[0]), .leaf = leaf_tangent};
    return leaf_map_run(&m, call->args[1], value_unit(), out);
}

static Value leaf_zeros(LeafMap *m, Value x, Value y) {
    (void)y;
    return value_filled_like(m, x, 0.0);
}

bool ad_zeros(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .leaf = leaf_zeros};
    return leaf_map_run(&m, call->args[0], value_unit(), out);
}

static Value leaf_ones(LeafMap *m, Value x, Value y) {
    (void)y;
    return value_filled_like(m, x, 1.0);
}

bool ad_ones(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .leaf = leaf_ones};
    return leaf_map_run(&m, call->args[0], value_unit(), out);
}

static Value leaf_strip(LeafMap *m, Value x, Value y) {
    (void)y;
    return is_dual_of(x, m->level) ? ((Dual *)x.p)->primal : x;
}

bool ad_strip(const BuiltinCall *call, Value *out) {
    LeafMap m = {
        .call = call, .level = tape_level(call->args[0]), .leaf = leaf_strip, .keep_other = true};
    return leaf_map_run(&m, call->args[1], value_unit(), out);
}

bool value_has_form(Value a, Value b) {
    a = value_primal(a);
    b = value_primal(b);
    if (a.tag != b.tag)
        return false;
    if (a.tag == VAL_SCALAR)
        return a.aux == b.aux;
    Tensor *s = a.p, *t = b.p;
    return s->dtype == t->dtype && s->rank == t->rank &&
           !memcmp(s->shape, t->shape, (size_t)s->rank * sizeof *s->shape);
}

static Value leaf_pair(LeafMap *m, Value x, Value y) {
    if (is_unit(y)) /* x has no tangent: it stays inactive */
        return x;
    if (!value_is_float_tensor(y) || !value_has_form(x, y)) {
        builtin_fail(m->call, DIAG_R0405,
                     "the tangent has not the shape and dtype of its argument");
        m->failed = true;
        return x;
    }
    return new_dual(x, y, m->level);
}

bool ad_pair(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call,
                 .level = tape_level(call->args[0]),
                 .leaf = leaf_pair,
                 .keep_other = true,
                 .paired = true};
    return leaf_map_run(&m, call->args[1], call->args[2], out);
}

static Value leaf_seed(LeafMap *m, Value x, Value y) {
    if (x.tag == VAL_SCALAR && value_head(&x) == value_head(&y))
        return x;
    if (!is_unit(y) && !(value_is_float_tensor(y) && value_has_form(x, y)) && !m->failed) {
        builtin_fail(m->call, DIAG_R0405,
                     "the cotangent has not the shape and dtype of the result");
        m->failed = true;
    }
    return x;
}

/* Whether all fields but the last are numbers, of which the layout says everything. */
static bool is_of_numbers(const DataLayout *layout) {
    for (uint32_t i = 0; i + 1 < layout->n; i++)
        if ((uint32_t)layout->heads[i] != VAL_SCALAR)
            return false;
    return layout->n > 0;
}

/* Leaves out what is alike in front, as in lists of numbers each cell is (Note [Cells] in eval/value.h). */
static void skip_alike(Value *x, Value *y) {
    while (x->tag == VAL_CTOR && y->tag == VAL_CTOR) {
        const DataLayout *layout = ((const Data *)x->p)->layout;
        if (((const Data *)y->p)->layout != layout || !is_of_numbers(layout))
            return;
        *x = data_get(*x, layout->n - 1);
        *y = data_get(*y, layout->n - 1);
    }
}

bool ad_check_seed(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .leaf = leaf_seed, .paired = true};
    Value x = call->args[0], y = call->args[1];
    *out = value_unit();
    skip_alike(&x, &y);
    return leaf_map_visit(&m, x, y);
}

bool ad_check_result(const BuiltinCall *call, Value *out) {
    *out = value_unit();
    if (value_is_float_tensor(call->args[0]))
        return true;
    BUG("grad of a function whose result is no float tensor"); /* the relation of `grad` refuses such a function */
}

/* ---- operands of one operator ---------------------------------------------------------------- */

static Value primal_of(Value v, uint64_t level) {
    if (is_dual_of(v, level))
        return ((Dual *)v.p)->primal;
    if (v.tag == VAL_TUPLE && v.p) {
        Tuple *from = v.p;
        Tuple *to = mem_alloc(sizeof *to + from->n * sizeof(Value));
        to->n = from->n;
        for (uint32_t i = 0; i < from->n; i++)
            to->items[i] = primal_of(from->items[i], level);
        return (Value){.tag = VAL_TUPLE, .p = to};
    }
    return v;
}

/* Whether `holds` is true of some leaf of v, through tuples and data. */
static bool some_leaf(Value v, uint64_t level, bool (*holds)(Value v, uint64_t level)) {
    for (;;) { /* along the last field of data in a loop: lists are long */
        uint32_t n = value_count(v);
        if (!n)
            return holds(v, level);
        for (uint32_t i = 0; i + 1 < n; i++)
            if (some_leaf(value_part(v, i), level, holds))
                return true;
        v = value_part(v, n - 1);
    }
}

bool ad_primal(const BuiltinCall *call, Value *out) {
    *out = primal_of(call->args[1], tape_level(call->args[0]));
    return true;
}

bool ad_is_active(const BuiltinCall *call, Value *out) {
    uint64_t level = tape_level(call->args[0]);
    bool active = false;
    for (uint32_t i = 1; i < call->n && !active; i++)
        active = some_leaf(call->args[i], level, is_dual_of);
    *out = value_bool(active);
    return true;
}

bool ad_refuse(const BuiltinCall *call, Value *out) {
    *out = value_unit();
    uint64_t level = tape_level(call->args[0]);
    for (uint32_t i = 2; i < call->n; i++)
        if (some_leaf(call->args[i], level, is_dual_of)) {
            Diag *d = builtin_fail(call, DIAG_R0404,
                                   "`%s` has no derivative, and a value that depends "
                                   "on a parameter of `grad` reaches it",
                                   ((String *)call->args[1].p)->text);
            diag_add_fact(d, "stop_gradient(x) says that x is to count as a constant");
            return false;
        }
    return true;
}

static bool has_cotangent(Value v, uint64_t level) {
    return is_dual_of(v, level) && !is_unit(((Ref *)((Dual *)v.p)->other.p)->value);
}

bool ad_has_cotangent(const BuiltinCall *call, Value *out) {
    *out = value_bool(some_leaf(call->args[1], tape_level(call->args[0]), has_cotangent));
    return true;
}

/* ---- walking a lifted value (ad.accumulate) -------------------------------------------------- */

bool ad_is_dual(const BuiltinCall *call, Value *out) {
    *out = value_bool(is_dual_of(call->args[1], tape_level(call->args[0])));
    return true;
}

bool ad_cell(const BuiltinCall *call, Value *out) {
    *out = ((Dual *)call->args[0].p)->other;
    return true;
}

bool ad_is_zero(const BuiltinCall *call, Value *out) {
    *out = value_bool(is_unit(call->args[0]));
    return true;
}

bool ad_is_tensor(const BuiltinCall *call, Value *out) {
    uint32_t tag = call->args[0].tag;
    *out = value_bool(tag == VAL_SCALAR || tag == VAL_TENSOR || tag == VAL_DUAL);
    return true;
}

bool ad_item(const BuiltinCall *call, Value *out) {
    *out = leaf_map_item(call->args[0], (uint32_t)call->args[1].i);
    return true;
}

bool ad_has_item(const BuiltinCall *call, Value *out) {
    *out = value_bool(call->args[1].i < (int64_t)value_count(call->args[0]));
    return true;
}

/* A value that is followed by no derivative is in no cell. */
bool ad_own(const BuiltinCall *call, Value *out) {
    *out = call->args[0];
    return true;
}

typedef struct Owned {
    uint64_t level;
    Value before, made;
    bool any;
} Owned;

/* v with a new cell of the level, which may be that of a derivative around the one that v is followed by. */
static Value with_own_cell(Owned *o, Value v) {
    if (v.tag != VAL_DUAL)
        return v;
    const Dual *d = v.p;
    if (d->level != o->level)
        return new_dual(with_own_cell(o, d->primal), d->other, d->level);
    o->any = true;
    o->before = v;
    return o->made = new_dual(d->primal, ad_new_ref(value_unit()), d->level);
}

/* Of (D, f): f with new cells of the tensors that it captured, these tensors as they were, and as they are there, the
 * last one first. */
bool ad_own_captured(const BuiltinCall *call, Value *out) {
    uint64_t level = tape_level(call->args[0]);
    Value f = call->args[1];
    const Closure *of = f.tag == VAL_CLOSURE ? f.p : NULL;
    uint32_t n = of ? of->ncaptured : 0, count = 0;
    size_t size = sizeof *of + n * sizeof(Value);
    Closure *c = n ? memcpy(mem_alloc(size), of, size) : NULL;
    Value *before = mem_new_n(Value, n + 1), *made = mem_new_n(Value, n + 1);
    for (uint32_t i = n; i-- > 0;) {
        Owned o = {.level = level};
        Value v = with_own_cell(&o, c->captured[i]);
        if (v.tag == VAL_CLOSURE && v.p == of)
            c->captured[i].p = c;
        if (!o.any)
            continue;
        c->captured[i] = v;
        before[count] = o.before;
        made[count++] = o.made;
    }
    if (count)
        f.p = c;
    Value items[] = {f, value_tuple(before, count), value_tuple(made, count)};
    *out = value_tuple(items, 3);
    return true;
}

bool ad_next(const BuiltinCall *call, Value *out) {
    *out = value_int(DT_I32, call->args[0].i + 1);
    return true;
}

/* ---- what may not be written to an outer reference ------------------------------------------- */

typedef struct Scan {
    Map seen;
    VEC(Value) pending;
} Scan;

static void scan_push(Scan *s, const Value *items, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        vec_push(&s->pending, items[i]);
}

bool value_holds_dual(Value v, uint64_t least, uint64_t most) {
    Scan s = {0};
    vec_push(&s.pending, v);
    while (s.pending.len) {
        Value x = vec_pop(&s.pending);
        if (x.tag == VAL_SCALAR || x.tag == VAL_TENSOR || !x.p || map_has(&s.seen, x.p))
            continue;
        switch ((ValueTag)x.tag) {
        case VAL_DUAL: {
            Dual *d = x.p;
            if (d->level >= least && d->level <= most)
                return true;
            vec_push(&s.pending, d->primal);
            break;
        }
        case VAL_TUPLE:
        case VAL_CTOR:
            for (uint32_t i = 0, n = value_count(x); i < n; i++)
                vec_push(&s.pending, value_part(x, i));
            break;
        case VAL_CLOSURE:
            scan_push(&s, ((Closure *)x.p)->captured, ((Closure *)x.p)->ncaptured);
            break;
        case VAL_REF: vec_push(&s.pending, ((Ref *)x.p)->value); break;
        case VAL_SCALAR:
        case VAL_TENSOR:
        case VAL_STRING:
        case VAL_BUILTIN:
        case VAL_ABSENT: break;
        }
        map_set(&s.seen, x.p, x.p);
    }
    return false;
}

bool value_is_active_above(Value v, uint64_t epoch) {
    return value_holds_dual(v, epoch + 1, UINT64_MAX);
}

/* ---- functions with a derivative of their own (passes/custom.c) ------------------------------ */

bool ad_no_dual(const BuiltinCall *call, Value *out) {
    *out = value_unit();
    uint64_t level = tape_level(call->args[0]);
    if (!value_holds_dual(call->args[2], level, level))
        return true;
    Diag *d = builtin_fail(call, DIAG_R0408, "%s a value being differentiated",
                           ((String *)call->args[1].p)->text);
    diag_add_help(d, "make it an argument, or take `stop_gradient(x)` if it is to be a constant");
    return false;
}

bool ad_fork(const BuiltinCall *call, Value *out) {
    Value items[] = {((Tuple *)call->args[0].p)->items[0], ad_new_ref(call->args[1])};
    *out = value_tuple(items, 2);
    return true;
}

static Seal seal_of(Value v) {
    const Value *items = ((Tuple *)v.p)->items;
    return (Seal){(uint64_t)items[0].i, (uint64_t)items[1].i, (uint64_t)items[2].i};
}

/* The argument is the seal of the first run, or (). */
bool ad_seal(const BuiltinCall *call, Value *out) {
    Seal first = {0}, seal;
    if (!is_unit(call->args[0]))
        first = seal_of(call->args[0]);
    seal = interp_seal(call->in, first.level ? &first : NULL);
    Value items[] = {value_int(DT_I64, (int64_t)seal.level),
                     value_int(DT_I64, (int64_t)seal.sealed),
                     value_int(DT_I64, (int64_t)seal.again)};
    *out = value_tuple(items, 3);
    return true;
}

bool ad_unseal(const BuiltinCall *call, Value *out) {
    Seal seal = seal_of(call->args[0]);
    interp_unseal(call->in, &seal);
    *out = value_unit();
    return true;
}
