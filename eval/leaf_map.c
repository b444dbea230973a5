/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/leaf_map.h"

Value leaf_map_item(Value v, uint32_t i) {
    if (v.tag == VAL_TUPLE && v.p && i < ((Tuple *)v.p)->n)
        return ((Tuple *)v.p)->items[i];
    if (v.tag == VAL_CTOR && i < v.aux)
        return ((Data *)v.p)->fields[i];
    return value_unit();
}

static Value map_value(LeafMap *m, Value x, Value y);

static const Ctor *ctor_in(Value v) { return v.aux ? ((Data *)v.p)->ctor : v.p; }

/* Whether y can stand beside x. () stands for a part without cotangent or tangent. */
static bool same_form(Value x, Value y) {
    if (y.tag == VAL_TUPLE && !y.p)
        return true;
    if (x.tag == VAL_TUPLE && x.p)
        return y.tag == VAL_TUPLE && ((Tuple *)y.p)->n == ((Tuple *)x.p)->n;
    if (x.tag == VAL_CTOR)
        return y.tag == VAL_CTOR && ctor_in(y) == ctor_in(x);
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

/* Maps data. The last field is followed in a loop, so that long lists need no stack. */
static Value map_data(LeafMap *m, Value x, Value y) {
    Value result = value_unit(), *hole = &result;
    while (x.tag == VAL_CTOR && x.aux > 0 && !m->failed) {
        check_form(m, x, y);
        Data *from = x.p;
        Data *to = mem_alloc(sizeof *to + x.aux * sizeof(Value));
        to->ctor = from->ctor;
        for (uint32_t i = 0; i + 1 < x.aux; i++)
            to->fields[i] = map_value(m, from->fields[i], leaf_map_item(y, i));
        *hole = (Value){.tag = VAL_CTOR, .aux = x.aux, .p = to};
        hole = &to->fields[x.aux - 1];
        y = leaf_map_item(y, x.aux - 1);
        x = from->fields[x.aux - 1];
    }
    *hole = map_value(m, x, y);
    return result;
}

static Value map_value(LeafMap *m, Value x, Value y) {
    if (mem_stack_left() < 64 * 1024 && !m->failed) {
        builtin_fail(m->call, DIAG_R0605, "this data is nested too deeply");
        m->failed = true;
    }
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
    case VAL_CTOR: return x.aux ? map_data(m, x, y) : x;
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

static Value take_leaf(LeafMap *m, Value x, Value y) {
    (void)y;
    vec_push((LeafVec *)m->ctx, x);
    return x;
}

bool leaf_map_list(const BuiltinCall *call, Value x, bool all_tensors, LeafVec *out) {
    LeafMap m = {.call = call,
                 .leaf = take_leaf,
                 .ctx = out,
                 .all_tensors = all_tensors,
                 .keep_other = true};
    Value same;
    return leaf_map_run(&m, x, value_unit(), &same);
}
