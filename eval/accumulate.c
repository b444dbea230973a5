/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator's part of derivatives that are code: their accumulators (passes/reverse/reverse.h). */
#include "eval/ad.h"
#include "eval/leaf_map.h"
#include "eval/machine.h"

static bool is_unit(Value v) { return v.tag == VAL_TUPLE && !v.p; }

static Value leaf_dense(LeafMap *m, Value x, Value y) {
    (void)m;
    return is_unit(y) ? value_filled_like(x, 0.0) : y;
}

/* An accumulator in the form of its value, with zeros where nothing was added. */
bool ad_dense(const BuiltinCall *call, Value *out) {
    LeafMap m = {.call = call, .leaf = leaf_dense};
    return leaf_map_run(&m, call->args[0], call->args[1], out);
}

bool ad_captured(const BuiltinCall *call, Value *out) {
    const Closure *c = call->args[0].p;
    if (call->args[0].tag != VAL_CLOSURE || (uint32_t)call->args[1].i >= c->ncaptured)
        BUG("a derivative reads captured variable %lld of no such closure",
            (long long)call->args[1].i);
    *out = c->captured[call->args[1].i];
    return true;
}

static bool add_leaves(const BuiltinCall *call, Value acc, Value ct, Value *out) {
    static const Site site = {.op = &op_add, .nargs = 2, .scalar = OP_SCALAR_FORMULA};
    Site s = site;
    s.attrs = attrs_defaults(&op_add);
    Value args[2] = {acc, ct};
    return apply_scalar(call->in, &s, args, out) || apply_op(call->in, &s, args, call->span, out);
}

/* Adds two accumulators of one form. The last field of data is followed in a loop. */
static bool add_accs(const BuiltinCall *call, Value acc, Value ct, Value *out) {
    for (;;) {
        if (is_unit(acc) || is_unit(ct)) {
            *out = is_unit(acc) ? ct : acc;
            return true;
        }
        if (acc.tag == VAL_CTOR && acc.aux) {
            Data *x = acc.p, *y = ct.p;
            Data *sum = mem_alloc(sizeof *sum + acc.aux * sizeof(Value));
            sum->ctor = x->ctor;
            *out = (Value){.tag = VAL_CTOR, .aux = acc.aux, .p = sum};
            for (uint32_t i = 0; i + 1 < acc.aux; i++)
                if (!add_accs(call, x->fields[i], y->fields[i], &sum->fields[i]))
                    return false;
            out = &sum->fields[acc.aux - 1];
            ct = y->fields[acc.aux - 1];
            acc = x->fields[acc.aux - 1];
            continue;
        }
        if (acc.tag != VAL_TUPLE) {
            bool number = acc.tag == VAL_SCALAR || acc.tag == VAL_TENSOR;
            if (number)
                return add_leaves(call, acc, ct, out);
            *out = acc;
            return true;
        }
        const Tuple *x = acc.p, *y = ct.p;
        Tuple *sum = mem_alloc(sizeof *sum + x->n * sizeof(Value));
        sum->n = x->n;
        *out = (Value){.tag = VAL_TUPLE, .p = sum};
        for (uint32_t i = 0; i < x->n; i++)
            if (!add_accs(call, x->items[i], y->items[i], &sum->items[i]))
                return false;
        return true;
    }
}

bool ad_add(const BuiltinCall *call, Value *out) {
    return add_accs(call, call->args[0], call->args[1], out);
}
