/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator's part of derivatives that are code: their accumulators (passes/reverse/reverse.h). */
#include "eval/ad.h"
#include "eval/fuse_impl.h"
#include "eval/index_part.h"
#include "eval/leaf_map.h"
#include "eval/waiting.h"
#include "ops/ops.h"
#include "ops/slice.h"

#include <string.h>

static bool is_unit(Value v) { return v.tag == VAL_TUPLE && !v.p; }

/* ---- adding in place (eval/waiting.h) ------------------------------------------------------- */

static bool settle(Interp *in, Value v) {
    if (v.tag != VAL_TENSOR)
        return true;
    Tensor *t = v.p;
    if (t->waiting && !waiting_add_all(in, t))
        return false;
    t->accumulates = (uint8_t)((t->accumulates & WITHOUT_NEGATIVE_ZERO) |
                               (is_sum(t) ? WAS_SUM : 0));
    return true;
}

bool ad_settle(const BuiltinCall *call, Value *out) {
    *out = call->args[0];
    return settle(call->in, *out);
}

static Value leaf_settle(LeafMap *m, Value x, Value y) {
    (void)y;
    m->failed |= !settle(m->call->in, x);
    return x;
}

/* The same of all tensors in a value. */
bool ad_settle_parts(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .leaf = leaf_settle};
    *out = call->args[0];
    return leaf_map_visit(&m, *out, value_unit());
}

/* The accumulator as a tensor to whose parts may be added. Adding a tensor that is zero elsewhere would make 0.0 of each
 * -0.0 in it, and so does this. dying: nothing else reads it. added: what is added, which may be the accumulator itself. */
static Tensor *own_tensor(Value acc, const Tensor *data, bool dying, Value added) {
    const Tensor *part = added.tag == VAL_TENSOR ? added.p : NULL;
    if (acc.tag == VAL_TENSOR) {
        Tensor *t = acc.p;
        bool is_added = part && part->buffer == t->buffer;
        bool own = !is_added &&
                   (is_sum(t) || (dying && t->buffer->owners == 1 && tensor_is_contiguous(t)));
        if (own && t->accumulates & WITHOUT_NEGATIVE_ZERO) {
            t->accumulates = SUM | WITHOUT_NEGATIVE_ZERO;
            return t;
        }
    }
    Tensor *made = tensor_new_zero(data->dtype, data->rank, data->shape);
    made->accumulates = SUM | WITHOUT_NEGATIVE_ZERO;
    if (acc.tag != VAL_TENSOR)
        return made;
    const Tensor *from = tensor_contiguous(acc.p);
    if (data->dtype == DT_F32) {
        const float *x = tensor_data(from);
        float *y = tensor_data(made);
        for (int64_t i = 0; i < made->count; i++)
            y[i] = x[i] + 0.0f;
    } else if (data->dtype == DT_F64) {
        const double *x = tensor_data(from);
        double *y = tensor_data(made);
        for (int64_t i = 0; i < made->count; i++)
            y[i] = x[i] + 0.0;
    } else {
        memcpy(tensor_data(made), tensor_data(from), (size_t)made->count * dtype_size(made->dtype));
    }
    return made;
}

#define UNROLL _Pragma("GCC unroll 4")

/* y[i] += x[i], or the one number where there is no x. */
#define ADD_ELEMENTS(type)                                                                         \
    do {                                                                                           \
        type *y = (type *)(void *)index_part_data(t, part), one = (type)ct.f;                      \
        const type *x = from ? tensor_data(from) : NULL;                                           \
        if (x) {                                                                                   \
            UNROLL for (int64_t i = 0; i < count; i++) y[i] += x[i];                               \
        } else {                                                                                   \
            UNROLL for (int64_t i = 0; i < count; i++) y[i] += one;                                \
        }                                                                                          \
    } while (0)

/* Adds to a small part without a kernel; false where it is another case. */
static bool add_small(Tensor *t, Value ct, const SliceView *part) {
    const Tensor *from = ct.tag == VAL_TENSOR ? ct.p : NULL;
    int64_t count;
    if (!index_part_is_small(part, t->dtype, &count) || (from && !tensor_is_contiguous(from)))
        return false;
    if (t->dtype == DT_F32)
        ADD_ELEMENTS(float);
    else
        ADD_ELEMENTS(double);
    return true;
}

/* Adds to the part of a float32 or float64 that integers and ranges name; false where it is another case. */
static bool add_part(Interp *in, Tensor *t, Value ct, const char *spec, const Value *at,
                     uint32_t n) {
    SliceView part;
    if ((t->dtype != DT_F32 && t->dtype != DT_F64) || !index_part_find(t, spec, at, n, &part) ||
        !index_part_fits(&part, t->dtype, ct))
        return false;
    return add_small(t, ct, &part) || index_part_put(in, t, &part, ct, true) == KERNEL_DONE;
}

/* (accumulator, data, cotangent of data[at] or the number that it is everywhere, spec, at …) */
bool ad_add_index(const BuiltinCall *call, Value *out) {
    if (call->args[1].tag != VAL_TENSOR)
        BUG("a cotangent is added into a value with tag %u", call->args[1].tag);
    if (!waiting_add_of(call->in, call->args[0]) || !waiting_add_of(call->in, call->args[2]))
        return false;
    Tensor *data = call->args[1].p,
           *t = own_tensor(call->args[0], data, call->dying & 1, call->args[2]);
    if (call->dying >> 1 & 1 && data != t && data != call->args[2].p) /* only its shape was read */
        tensor_drop(data);
    const char *spec = ((const String *)call->args[3].p)->text;
    *out = (Value){.tag = VAL_TENSOR, .p = t};
    const Value *at = call->args + 4;
    uint32_t n = call->n - 4;
    if (n == 1 && at->tag == VAL_TUPLE) { /* the integers as one argument */
        const Tuple *all = at->p;
        n = all ? all->n : 0;
        at = all ? all->items : NULL;
    }
    if (add_part(call->in, t, call->args[2], spec, at, n)) {
        if (call->dying >> 2 & 1 && call->args[2].tag == VAL_TENSOR)
            tensor_drop(call->args[2].p);
        return true;
    }
    Attrs *attrs = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, op_index.nattrs);
    values[op_attr_index(&op_index, "spec")] = (AttrValue){.kind = ATTR_STRING, .text = spec};
    attrs->op = &op_index;
    attrs->values = values;
    Tensor **in = mem_new_n(Tensor *, n + 2);
    in[0] = t;
    in[1] = value_to_tensor(call->args[2]);
    for (uint32_t i = 0; i < n; i++)
        in[i + 2] = value_to_tensor(at[i]);
    OpCall op = {&op_index, attrs, n + 2, in, call->in->diags, call->span, NULL, false};
    int32_t status = index_add_into(&op, call->in->runner, call->in->runner_ctx,
                                    &call->in->interrupt);
    if (status == KERNEL_INTERRUPTED)
        call->in->interrupt = 1;
    return status == KERNEL_DONE;
}

/* ---- accumulators ---------------------------------------------------------------------------- */

static Value leaf_dense(LeafMap *m, Value x, Value y) {
    m->failed |= !settle(m->call->in, y);
    return is_unit(y) ? value_filled_like(m, x, 0.0) : y;
}

/* Whether the stack has come to `bottom`. */
static bool passes(const char *bottom) {
    return (uintptr_t)__builtin_frame_address(0) <= (uintptr_t)bottom;
}

/* Whether the accumulator y of x has a part for each leaf, nothing else, and no tensor that is added to in place. The
 * last part is looked at in a loop; what is nested so deeply that the stack passes `bottom` is said to be different. */
static bool is_dense(Value x, Value y, const char *bottom) {
    for (;;) {
        if (x.tag == VAL_SCALAR)
            return dtype_is_float((DType)x.aux) ? y.tag == VAL_SCALAR && y.aux == x.aux
                                                : is_unit(y);
        if (x.tag == VAL_TENSOR)
            return dtype_is_float(((Tensor *)x.p)->dtype) ? y.tag == VAL_TENSOR && !is_sum(y.p)
                                                          : is_unit(y);
        uint32_t n = value_count(x);
        if (x.tag != VAL_CTOR && !n)
            return x.tag == VAL_TUPLE && is_unit(y);
        if (y.tag != x.tag || value_count(y) != n ||
            (x.tag == VAL_CTOR && data_ctor(y) != data_ctor(x)))
            return false;
        if (!n)
            return true;
        Value last = value_part(x, n - 1), last_of_y = value_part(y, n - 1);
        for (uint32_t i = 0; i + 1 < n; i++) {
            Value part = value_part(x, i), part_of_y = value_part(y, i);
            if (part.tag == VAL_SCALAR && dtype_is_float((DType)part.aux)) {
                if (value_head(&part) != value_head(&part_of_y))
                    return false;
            } else if (passes(bottom) || !is_dense(part, part_of_y, bottom)) {
                return false;
            }
        }
        x = last;
        y = last_of_y;
    }
}

/* Whether an accumulator holds nothing but data and numbers that are settled. Data alone has no part that nothing was
 * added to, so then it is dense, and what it is of need not be fetched from memory. */
static bool is_whole(Value y, const char *bottom) {
    for (;;) {
        if (y.tag == VAL_SCALAR)
            return true;
        if (y.tag != VAL_CTOR)
            return y.tag == VAL_TENSOR && !is_sum(y.p);
        const Data *d = y.p;
        const DataLayout *layout = d->layout;
        if (!layout->n)
            return true;
        uint32_t last = layout->n - 1;
        y = value_of_words(layout->heads[last], d->words[last]);
        if (y.tag == VAL_CTOR && last)
            __builtin_prefetch(y.p); /* it is read last */
        for (uint32_t i = 0; i < last; i++) {
            Value part = value_of_words(layout->heads[i], d->words[i]);
            if (part.tag != VAL_SCALAR && (passes(bottom) || !is_whole(part, bottom)))
                return false;
        }
    }
}

/* An accumulator in the form of its value, with zeros where nothing was added. */
bool ad_dense(const BuiltinCall *call, Value *out) {
    enum { SPARE = 64 << 10 }; /* bytes of the stack */
    const char *bottom = (const char *)__builtin_frame_address(0) - mem_stack_left() + SPARE;
    if (is_whole(call->args[1], bottom) || is_dense(call->args[0], call->args[1], bottom)) {
        *out = call->args[1];
        return true;
    }
    LeafMap m = {.call = call, .leaf = leaf_dense};
    return leaf_map_run(&m, call->args[0], call->args[1], out);
}

static Value leaf_fit(LeafMap *m, Value x, Value y) {
    if (is_unit(y))
        return value_filled_like(m, x, 0.0);
    if (!value_is_float_tensor(y) || !value_has_form(x, y)) {
        builtin_fail(m->call, DIAG_R0405,
                     "the tangent has not the shape and dtype of its argument");
        m->failed = true;
    }
    return y;
}

/* A tangent of x, which has x's form and a tensor wherever x has a float tensor. */
bool ad_fit(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .leaf = leaf_fit, .paired = true};
    return leaf_map_run(&m, call->args[0], call->args[1], out);
}

/* Whether some part of a tangent is there, or with `cells` of a mirror. */
static bool holds_some(Value v, bool cells) {
    for (;;) { /* along the last part in a loop: lists are long */
        uint32_t n = value_count(v);
        if (!n)
            return value_is_float_tensor(v) || (cells && v.tag == VAL_REF);
        for (uint32_t i = 0; i + 1 < n; i++)
            if (holds_some(value_part(v, i), cells))
                return true;
        v = value_part(v, n - 1);
    }
}

bool ad_has_tangent(const BuiltinCall *call, Value *out) {
    *out = value_bool(holds_some(call->args[0], false));
    return true;
}

bool ad_captured(const BuiltinCall *call, Value *out) {
    const Closure *c = call->args[0].p;
    if (call->args[0].tag != VAL_CLOSURE || (uint32_t)call->args[1].i >= c->ncaptured)
        BUG("a derivative reads captured variable %lld of no such closure",
            (long long)call->args[1].i);
    *out = c->captured[call->args[1].i];
    return true;
}

/* dying: as Interp.dying, of the two. */
static bool add_leaves(const BuiltinCall *call, Value acc, Value ct, uint64_t dying, Value *out) {
    static const AttrValue none;
    static const Attrs attrs = {&op_add, &none};
    static const Site site = {
        .op = &op_add, .attrs = &attrs, .nargs = 2, .scalar = OP_SCALAR_FORMULA};
    Site s = site;
    Value args[2] = {acc, ct};
    if (apply_scalar(call->in, &s, args, out))
        return true;
    uint8_t was = acc.tag == VAL_TENSOR ? ((Tensor *)acc.p)->accumulates & ~WAS_SUM : SETTLED;
    call->in->dying = dying | (was & SUM);
    if (!apply_op(call->in, &s, args, call->span, out))
        return false;
    if (out->tag == VAL_TENSOR)
        ((Tensor *)out->p)->accumulates = was | SUM;
    return true;
}

static bool is_number(Value v) { return v.tag == VAL_SCALAR || v.tag == VAL_TENSOR; }

/* An accumulator with parts: data of the constructor that `like` has, or a tuple of n. */
static Value make_parts(Value like, const Value *parts, uint32_t n) {
    return like.tag == VAL_CTOR ? value_data(data_ctor(like), parts) : value_tuple(parts, n);
}

/* Adds two accumulators of one form; that of data may be the tuple of its fields (ad_add_part), and of two tuples one may
 * be longer. The last part is followed in a loop. */
static bool add_accs(const BuiltinCall *call, Value acc, Value ct, Value *out) {
    ValueChain chain = {0};
    for (;;) {
        Value sum = is_unit(acc) ? ct : acc;
        uint32_t n = value_count(acc), most = value_count(ct);
        n = n > most ? n : most;
        bool is_leaf = is_number(acc) && is_number(ct);
        if (is_leaf && !add_leaves(call, acc, ct, 0, &sum))
            return false;
        if (is_leaf || is_unit(acc) || is_unit(ct) || !n) { /* !n: a constructor without fields */
            *out = value_chain_end(&chain, sum);
            return true;
        }
        Value like = acc.tag == VAL_CTOR ? acc : ct;
        if (is_number(acc) || is_number(ct) || (like.tag == VAL_CTOR && data_size(like) != n))
            BUG("accumulators with tags %u and %u are added", acc.tag, ct.tag);
        Value few[8], *parts = n <= 8 ? few : mem_new_n(Value, n);
        for (uint32_t i = 0; i + 1 < n; i++)
            if (!add_accs(call, leaf_map_item(acc, i), leaf_map_item(ct, i), &parts[i]))
                return false;
        acc = leaf_map_item(acc, n - 1);
        ct = leaf_map_item(ct, n - 1);
        parts[n - 1] = is_unit(acc) ? ct : acc; /* until the sum is there: mostly of one layout */
        value_chain_add(&chain, make_parts(like, parts, n));
    }
}

/* An accumulator of a tuple whose length is not known, or of data: parts of a tuple that nothing was added to are missing
 * at its end. */
bool ad_add_part(const BuiltinCall *call, Value *out) {
    Value acc = call->args[0];
    uint32_t n = value_count(acc), i = (uint32_t)call->args[1].i, len = i < n ? n : i + 1;
    if (is_number(acc) || (acc.tag == VAL_CTOR && i >= n))
        BUG("a part is added to an accumulator with tag %u", acc.tag);
    Value few[8], *parts = len <= 8 ? few : mem_new_n(Value, len);
    for (uint32_t k = 0; k < len; k++)
        parts[k] = leaf_map_item(acc, k);
    if (!add_accs(call, parts[i], call->args[2], &parts[i]))
        return false;
    *out = make_parts(acc, parts, len);
    return true;
}

bool ad_add(const BuiltinCall *call, Value *out) {
    return apply_add_ct(call->in, call->span, call->args[0], call->args[1], out);
}

bool apply_add_ct(Interp *in, Span span, Value acc, Value ct, Value *out) {
    bool same = acc.tag == VAL_SCALAR && ct.tag == VAL_SCALAR && acc.aux == ct.aux;
    if (same && (acc.aux == DT_F32 || acc.aux == DT_F64)) {
        *out = acc;
        out->f = acc.aux == DT_F32 ? (float)(acc.f + ct.f) : acc.f + ct.f;
        return true;
    }
    BuiltinCall call = {.in = in, .span = span};
    uint64_t dying = in->dying;
    in->dying = 0;
    if (acc.tag == VAL_TENSOR && ct.tag == VAL_TENSOR)
        return add_leaves(&call, acc, ct, dying, out);
    return add_accs(&call, acc, ct, out);
}

/* A product that was not computed is added: the first argument is the accumulator, the others are the product's. */
bool apply_add_product(Interp *in, const Site *site, const Value *args, Span span, Value *out) {
    uint64_t dying = owned_of(in, site->owners);
    const Site *product = &site->group->nodes[0].site;
    Value acc = args[0], ct;
    if (acc.tag == VAL_TENSOR) {
        Tensor *sum = acc.p;
        uint8_t was = sum->accumulates & ~WAS_SUM;
        bool ok;
        *out = acc;
        if (waiting_push(in, sum, product, args, dying, &ok))
            return ok;
        if (!fuse_apply(in, site, args, dying | (was & SUM), out))
            return false;
        if (out->tag == VAL_TENSOR)
            ((Tensor *)out->p)->accumulates = was | SUM;
        return true;
    }
    if (is_unit(acc)) {
        Tensor *sum = waiting_new_sum(product, args + 1, dying >> 1);
        if (sum) {
            *out = value_tensor(sum);
            return true;
        }
    }
    in->dying = dying >> 1;
    if (!apply_op(in, product, args + 1, span, &ct))
        return false;
    if (ct.tag == VAL_TENSOR) /* nobody else knows it */
        ((Tensor *)ct.p)->accumulates = SUM;
    return apply_add_ct(in, span, acc, ct, out);
}

/* ---- mirrors (passes/reverse/mirror.h) -------------------------------------------------------- */

static Value leaf_cell(LeafMap *m, Value x, Value y) {
    (void)m, (void)x, (void)y;
    return ad_new_ref(value_unit());
}

/* A mirror of the value, with new cells. */
bool ad_mirror(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .leaf = leaf_cell};
    if (value_is_float_tensor(call->args[0])) {
        *out = ad_new_ref(value_unit());
        return true;
    }
    return leaf_map_run(&m, call->args[0], value_unit(), out);
}

static bool add_to_cell(const BuiltinCall *call, Value cell, Value ct) {
    if (cell.tag != VAL_REF) /* of what is a constant */
        return true;
    Ref *ref = cell.p;
    return apply_add_ct(call->in, call->span, ref->value, ct, &ref->value);
}

static Value leaf_add(LeafMap *m, Value ct, Value cell) {
    m->failed |= !add_to_cell(m->call, cell, ct);
    return ct;
}

/* Of (mirror, cotangent). */
bool ad_mirror_add(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .leaf = leaf_add};
    *out = value_unit();
    if (call->args[0].tag == VAL_REF)
        return add_to_cell(call, call->args[0], call->args[1]);
    return leaf_map_visit(&m, call->args[1], call->args[0]);
}

/* Whether the mirror is that of a function, which has the fields of what the function captured. */
static bool is_of_function(Value mirror) {
    return mirror.tag == VAL_CTOR && data_ctor(mirror)->is_function;
}

/* A reference that is stored stays the same one. */
static Value own_cell(Value mirror, Value of) {
    return mirror.tag == VAL_REF && of.tag != VAL_REF ? ad_new_ref(value_unit()) : mirror;
}

/* Of (mirror of x, x), the mirror of `ad.own(x)`: other data has own cells already (Note [Own cells] in passes/cells.h). */
bool ad_mirror_own(const BuiltinCall *call, Value *out) {
    Value mirror = call->args[0], of = call->args[1];
    *out = own_cell(mirror, of);
    if (!is_of_function(mirror))
        return true;
    uint32_t n = data_size(mirror);
    Value few[8], *parts = n <= 8 ? few : mem_new_n(Value, n);
    for (uint32_t i = 0; i < n; i++)
        parts[i] = own_cell(data_get(mirror, i), leaf_map_item(of, i));
    *out = n ? value_data(data_ctor(mirror), parts) : mirror;
    return true;
}

static bool move_cell(const BuiltinCall *call, Value own, Value to) {
    if (own.tag != VAL_REF || (to.tag == VAL_REF && to.p == own.p))
        return true;
    Value sum = ((Ref *)own.p)->value;
    return is_unit(sum) || (settle(call->in, sum) && add_to_cell(call, to, sum));
}

/* Adds what is in the cells that `ad.mirror_own` made to those that it made them of, the last one first. */
bool ad_mirror_move(const BuiltinCall *call, Value *out) {
    Value own = call->args[0], to = call->args[1];
    *out = value_unit();
    if (!is_of_function(own))
        return move_cell(call, own, to);
    for (uint32_t i = data_size(own); i-- > 0;)
        if (!move_cell(call, data_get(own, i), data_get(to, i)))
            return false;
    return true;
}

/* Of (cell, sum that goes there). */
bool ad_mirror_put(const BuiltinCall *call, Value *out) {
    *out = value_unit();
    if (call->args[0].tag == VAL_REF)
        ((Ref *)call->args[0].p)->value = call->args[1];
    return true;
}

static Value leaf_sum(LeafMap *m, Value x, Value y) {
    (void)m, (void)x;
    return y.tag == VAL_REF ? ((Ref *)y.p)->value : value_unit();
}

/* Of (value, mirror): what was added up. The value is not read where the mirror is a cell. */
bool ad_mirror_sum(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .leaf = leaf_sum};
    if (call->args[1].tag != VAL_REF)
        return leaf_map_run(&m, call->args[0], call->args[1], out);
    *out = ((Ref *)call->args[1].p)->value;
    return true;
}

/* Whether it is the same cell, or the same mirror with parts. */
static bool is_same_mirror(Value a, Value b) {
    bool has_cells = a.tag == VAL_REF || a.tag == VAL_TUPLE || a.tag == VAL_CTOR;
    return has_cells && a.tag == b.tag && a.p == b.p;
}

static bool check_depth(const BuiltinCall *call) {
    bool deep = mem_stack_left() < 64 << 10;
    if (deep)
        builtin_fail(call, DIAG_R0605, "this data is nested too deeply");
    return !deep;
}

static bool join(const BuiltinCall *call, Value a, Value of_a, Value b, Value of_b, Value *out) {
    ValueChain chain = {0};
    for (;;) {
        uint32_t n = value_count(a), most = value_count(b);
        n = n > most ? n : most;
        if (is_unit(a) || is_unit(b) || !n) {
            bool is_sum = is_number(a) && is_number(b) && !(is_unit(of_a) && is_unit(of_b));
            *out = value_chain_end(&chain, is_sum       ? ad_new_ref(value_unit())
                                           : is_unit(a) ? of_b
                                                        : of_a);
            return true;
        }
        if (!check_depth(call))
            return false;
        Value like = a.tag == VAL_CTOR ? a : b, few[8], *parts = n <= 8 ? few : mem_new_n(Value, n);
        for (uint32_t i = 0; i + 1 < n; i++)
            if (!join(call, leaf_map_item(a, i), leaf_map_item(of_a, i), leaf_map_item(b, i),
                      leaf_map_item(of_b, i), &parts[i]))
                return false;
        a = leaf_map_item(a, n - 1);
        b = leaf_map_item(b, n - 1);
        of_a = leaf_map_item(of_a, n - 1);
        of_b = leaf_map_item(of_b, n - 1);
        parts[n - 1] = value_unit(); /* until its own is there */
        value_chain_add(&chain, make_parts(like, parts, n));
    }
}

/* Of two accumulators, each with its mirror, that of their sum: a new cell where both are there, else the cell of the one
 * that is. */
bool ad_mirror_join(const BuiltinCall *call, Value *out) {
    const Value *args = call->args;
    return join(call, args[0], args[1], args[2], args[3], out);
}

static bool split(const BuiltinCall *call, Value sum, Value a, Value b) {
    for (;;) {
        uint32_t n = value_count(sum);
        if (is_same_mirror(sum, a) || is_same_mirror(sum, b))
            return true;
        if (sum.tag == VAL_REF)
            return move_cell(call, sum, a) && move_cell(call, sum, b);
        if (!n)
            return true;
        if (!check_depth(call))
            return false;
        for (uint32_t i = 0; i + 1 < n; i++)
            if (!split(call, leaf_map_item(sum, i), leaf_map_item(a, i), leaf_map_item(b, i)))
                return false;
        sum = leaf_map_item(sum, n - 1);
        a = leaf_map_item(a, n - 1);
        b = leaf_map_item(b, n - 1);
    }
}

/* Adds what is in the new cells of `ad.mirror_join`, the first argument, to those of the two others. */
bool ad_mirror_split(const BuiltinCall *call, Value *out) {
    *out = value_unit();
    return split(call, call->args[0], call->args[1], call->args[2]);
}

/* Of (mirror of an accumulator, i, mirror of part i): the first one with that part, which may stand behind all others. */
bool ad_mirror_with_part(const BuiltinCall *call, Value *out) {
    Value of = call->args[0];
    uint32_t n = value_count(of), i = (uint32_t)call->args[1].i, len = i < n ? n : i + 1;
    Value few[8], *parts = len <= 8 ? few : mem_new_n(Value, len);
    for (uint32_t k = 0; k < len; k++)
        parts[k] = k == i ? call->args[2] : leaf_map_item(of, k);
    *out = make_parts(of, parts, len);
    return true;
}

/* Whether a mirror is one cell. */
bool ad_is_cell(const BuiltinCall *call, Value *out) {
    *out = value_bool(call->args[0].tag == VAL_REF);
    return true;
}

/* Whether two mirrors are the same cell, or the same ones. */
bool ad_is_same(const BuiltinCall *call, Value *out) {
    *out = value_bool(is_same_mirror(call->args[0], call->args[1]));
    return true;
}

/* Of what stands beside a reference, and what stands beside the value that is written to it. Nothing stands beside a reference
 * that was made outside. */
bool ad_mirror_write(const BuiltinCall *call, Value *out) {
    Value beside = call->args[0];
    *out = value_unit();
    if (beside.tag == VAL_REF) {
        ((Ref *)beside.p)->value = call->args[1];
        return true;
    }
    if (!holds_some(call->args[1], true))
        return true;
    Diag *d = builtin_fail(call, DIAG_R0407,
                           "an outer reference cannot hold a value being differentiated");
    diag_add_fact(d, "the reference was made outside of the running `grad`");
    diag_add_help(d, "`stop_gradient(x)` is the value without its derivative");
    return false;
}
