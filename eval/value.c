/* SPDX-License-Identifier: Apache-2.0 */
/* Making values, and structural equality.
 *
 * Equality walks an explicit list of pairs still to compare, so that long lists and deep data cost
 * heap, not C stack. Data may share (a DAG of 60 doublings has 2^60 paths), so after a while pairs
 * already compared are remembered: the answer is "all pairs are equal", and one visit to each
 * suffices. Shared identity alone proves nothing: nan differs from itself. */
#include "eval/value.h"

#include <string.h>

Value value_tensor(Tensor *t) {
    if (t->rank > 0)
        return (Value){.tag = VAL_TENSOR, .p = t};
    const void *p = tensor_data(t);
    if (dtype_is_float(t->dtype))
        return value_float(t->dtype, elem_get_float(p, t->dtype));
    return value_int(t->dtype, elem_get_int(p, t->dtype));
}

Tensor *value_to_tensor(Value v) {
    if (v.tag == VAL_TENSOR)
        return v.p;
    if (v.tag != VAL_SCALAR)
        return NULL;
    return dtype_is_float((DType)v.aux) ? tensor_scalar_float((DType)v.aux, v.f)
                                        : tensor_scalar_int((DType)v.aux, v.i);
}

Value value_tuple(const Value *items, uint32_t n) {
    if (n == 0)
        return value_unit();
    Tuple *t = mem_alloc(sizeof(Tuple) + n * sizeof(Value));
    t->n = n;
    t->owned = 0;
    memcpy(t->items, items, n * sizeof(Value));
    return (Value){.tag = VAL_TUPLE, .p = t};
}

String *string_new(size_t len) {
    String *s = mem_bytes(sizeof(String) + len + 1);
    *s = (String){.len = len, .text = s->own, .chars = -1};
    s->own[len] = '\0';
    return s;
}

const String *string_end(const String *s, size_t from, int64_t chars) {
    String *end = mem_new(String);
    end->base = s->base ? s->base : s;
    end->text = s->text + from;
    end->len = s->len - from;
    end->chars = chars;
    return end;
}

Value value_string(const char *text, size_t len) {
    String *s = string_new(len);
    if (len)
        memcpy(s->own, text, len);
    return (Value){.tag = VAL_STRING, .p = s};
}

void value_set_part(Value whole, uint32_t i, Value part) {
    if (whole.tag == VAL_CTOR)
        data_set(whole, i, part);
    else
        ((Tuple *)whole.p)->items[i] = part;
}

void value_chain_add(ValueChain *c, Value next) {
    if (c->begun)
        value_set_part(c->inner, value_count(c->inner) - 1, next);
    else
        c->whole = next;
    c->inner = next;
    c->begun = true;
}

Value value_chain_end(ValueChain *c, Value last) {
    value_chain_add(c, last);
    return c->whole;
}

Value value_primal(Value v) {
    while (v.tag == VAL_DUAL)
        v = ((Dual *)v.p)->primal;
    return v;
}

bool value_is_float_tensor(Value v) {
    v = value_primal(v);
    if (v.tag == VAL_SCALAR)
        return dtype_is_float((DType)v.aux);
    return v.tag == VAL_TENSOR && dtype_is_float(((Tensor *)v.p)->dtype);
}

/* ---- equality -------------------------------------------------------------------------------- */

typedef struct Pair {
    Value a, b;
} Pair;

enum { REMEMBER_AFTER = 4096 };

/* Pairs of data or tuples already on the list, by identity. */
typedef struct PairSet {
    const void *(*slots)[2];
    size_t len, cap;
} PairSet;

/* True when the pair was not there yet. */
static bool pairs_add(PairSet *set, const void *a, const void *b) {
    if (set->len * 2 >= set->cap) {
        PairSet bigger = {.cap = set->cap ? set->cap * 2 : 1024};
        bigger.slots = mem_alloc(bigger.cap * sizeof *bigger.slots);
        for (size_t i = 0; i < set->cap; i++)
            if (set->slots[i][0])
                pairs_add(&bigger, set->slots[i][0], set->slots[i][1]);
        *set = bigger;
    }
    const void *key[2] = {a, b};
    size_t i = hash_bytes(key, sizeof key, 0) & (set->cap - 1);
    while (set->slots[i][0]) {
        if (set->slots[i][0] == a && set->slots[i][1] == b)
            return false;
        i = (i + 1) & (set->cap - 1);
    }
    set->slots[i][0] = a;
    set->slots[i][1] = b;
    set->len++;
    return true;
}

static bool tensors_equal(const Tensor *a, const Tensor *b) {
    if (a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    bool is_float = dtype_is_float(a->dtype);
    for (int64_t i = 0; i < a->count; i++) {
        const void *x = tensor_at(a, i), *y = tensor_at(b, i);
        if (is_float ? !(elem_get_float(x, a->dtype) == elem_get_float(y, b->dtype))
                     : elem_get_int(x, a->dtype) != elem_get_int(y, b->dtype))
            return false;
    }
    return true;
}

/* 1, 0 or -1 for what is not a container; containers give 2. */
static int leaves_equal(Value a, Value b) {
    if (a.tag == VAL_CLOSURE || a.tag == VAL_BUILTIN || b.tag == VAL_CLOSURE ||
        b.tag == VAL_BUILTIN)
        return -1;
    if (a.tag != b.tag)
        return 0;
    switch ((ValueTag)a.tag) {
    case VAL_SCALAR:
        if (a.aux != b.aux)
            return 0;
        return dtype_is_float((DType)a.aux) ? a.f == b.f : a.i == b.i;
    case VAL_TENSOR: return tensors_equal(a.p, b.p);
    case VAL_REF: return a.p == b.p;
    case VAL_STRING: {
        const String *s = a.p, *t = b.p;
        return s->len == t->len && memcmp(s->text, t->text, s->len) == 0;
    }
    case VAL_TUPLE:
    case VAL_CTOR: return 2;
    case VAL_CLOSURE:
    case VAL_BUILTIN: return -1;
    case VAL_DUAL:
    case VAL_ABSENT: break;
    }
    return 0;
}

int value_equal(Value a, Value b) {
    VEC(Pair) pending = {0};
    PairSet seen = {0};
    size_t steps = 0;
    for (;;) {
        a = value_primal(a);
        b = value_primal(b);
        int leaf = leaves_equal(a, b);
        if (leaf != 1 && leaf != 2)
            return leaf;
        if (leaf == 2) {
            uint32_t n = value_count(a);
            if (n != value_count(b) || (a.tag == VAL_CTOR && data_ctor(a) != data_ctor(b)))
                return 0;
            if (n && (++steps < REMEMBER_AFTER || pairs_add(&seen, a.p, b.p)))
                for (uint32_t i = n; i-- > 0;) {
                    Pair p = {value_part(a, i), value_part(b, i)};
                    vec_push(&pending, p);
                }
        }
        if (pending.len == 0)
            return 1;
        Pair p = vec_pop(&pending);
        a = p.a;
        b = p.b;
    }
}
