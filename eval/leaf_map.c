/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/leaf_map.h"

Value leaf_map_item(Value v, uint32_t i) {
    if (v.tag == VAL_CTOR) /* mostly of lists */
        return i < data_size(v) ? data_get(v, i) : value_unit();
    return i < value_count(v) ? value_part(v, i) : value_unit();
}

static Value map_value(LeafMap *m, Value x, Value y);

/* Whether y can stand beside x. () stands for a part without cotangent or tangent. */
static bool same_form(Value x, Value y) {
    if (y.tag == VAL_TUPLE && !y.p)
        return true;
    if (x.tag == VAL_TUPLE && x.p)
        return y.tag == VAL_TUPLE && ((Tuple *)y.p)->n == ((Tuple *)x.p)->n;
    if (x.tag == VAL_CTOR)
        return y.tag == VAL_CTOR && data_ctor(y) == data_ctor(x);
    return true;
}

static void check_form(LeafMap *m, Value x, Value y) {
    if (!m->paired || m->failed || same_form(x, y))
        return;
    builtin_fail(m->call, DIAG_R0405,
                 "the %s has not the form of its value: other constructors or another length",
                 m->role ? m->role : "cotangent or tangent");
    m->failed = true;
}

/* False, and a diagnostic once, where the stack has no room for another part. */
static bool check_depth(LeafMap *m) {
    if (mem_stack_left() < 64 * 1024 && !m->failed) {
        builtin_fail(m->call, DIAG_R0605, "this data is nested too deeply");
        m->failed = true;
    }
    return !m->failed;
}

/* Maps data. The last field is followed in a loop, so that long lists need no stack. */
static Value map_data(LeafMap *m, Value x, Value y) {
    ValueChain chain = {0};
    while (x.tag == VAL_CTOR && data_size(x) && !m->failed) {
        check_form(m, x, y);
        uint32_t last = data_size(x) - 1;
        Value few[8], *parts = last < 8 ? few : mem_new_n(Value, last + 1);
        for (uint32_t i = 0; i < last; i++)
            parts[i] = map_value(m, data_get(x, i), leaf_map_item(y, i));
        parts[last] = data_get(x, last); /* until its own is there: mostly of the same layout */
        value_chain_add(&chain, value_data(data_ctor(x), parts));
        y = leaf_map_item(y, last);
        x = data_get(x, last);
    }
    return value_chain_end(&chain, map_value(m, x, y));
}

static Value map_value(LeafMap *m, Value x, Value y) {
    (void)check_depth(m);
    check_form(m, x, y);
    if (m->failed)
        return x;
    switch ((ValueTag)x.tag) {
    case VAL_SCALAR:
    case VAL_TENSOR:
    case VAL_DUAL:
        return m->all_tensors || value_is_float_tensor(x) ? m->leaf(m, x, y)
               : m->keep_other                            ? x
                                                          : value_unit();
    case VAL_TUPLE: {
        Tuple *from = x.p;
        if (!from)
            return x;
        Tuple *to = mem_alloc(sizeof *to + from->n * sizeof(Value));
        to->n = from->n;
        for (uint32_t i = 0; i < from->n; i++)
            to->items[i] = map_value(m, from->items[i], leaf_map_item(y, i));
        return (Value){.tag = VAL_TUPLE, .p = to};
    }
    case VAL_CTOR: return data_size(x) ? map_data(m, x, y) : x;
    case VAL_CLOSURE:
    case VAL_REF:
    case VAL_STRING:
    case VAL_BUILTIN:
    case VAL_ABSENT: return m->keep_other ? x : value_unit();
    }
    BUG("no such value: tag %u", x.tag);
}

bool leaf_map_run(LeafMap *m, Value x, Value y, Value *out) {
    *out = map_value(m, x, y);
    return !m->failed;
}

/* The last part is followed in a loop, as in map_data. */
static void visit(LeafMap *m, Value x, Value y) {
    for (;;) {
        check_form(m, x, y);
        if (m->failed)
            return;
        uint32_t n = value_count(x);
        if (!n) {
            bool is_number = x.tag == VAL_SCALAR || x.tag == VAL_TENSOR || x.tag == VAL_DUAL;
            if (is_number && (m->all_tensors || value_is_float_tensor(x)))
                (void)m->leaf(m, x, y);
            return;
        }
        for (uint32_t i = 0; i + 1 < n; i++) {
            Value part = value_part(x, i);
            if (value_count(part) && !check_depth(m))
                return;
            visit(m, part, leaf_map_item(y, i));
        }
        x = value_part(x, n - 1);
        y = leaf_map_item(y, n - 1);
    }
}

bool leaf_map_visit(LeafMap *m, Value x, Value y) {
    visit(m, x, y);
    return !m->failed;
}

static Value take_leaf(LeafMap *m, Value x, Value y) {
    (void)y;
    vec_push((LeafVec *)m->ctx, x);
    return x;
}

bool leaf_map_list(const BuiltinCall *call, Value x, bool all_tensors, LeafVec *out) {
    LeafMap m = {.call = call, .leaf = take_leaf, .ctx = out, .all_tensors = all_tensors};
    return leaf_map_visit(&m, x, value_unit());
}
