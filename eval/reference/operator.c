/* SPDX-License-Identifier: Apache-2.0 */
/* Operators: values become tensors, the operator's shape function and reference recipe run, the
 * results become values. A scalar goes the same way as a tensor of rank 0. */
#include "eval/reference/internal.h"
#include "ops/ops.h"
#include "types/op.h"

#include <string.h>

/* ---- attributes ------------------------------------------------------------------------------ */

/* Sizes stand in the order of the ATTR_DIM they are for. */
static AttrValue fill_value(const AttrValue *v, const Value **next, const Value *end) {
    AttrValue filled = *v;
    if (v->kind == ATTR_DIM && *next < end) {
        filled = attr_computed_size((*next)++->i);
    } else if (v->kind == ATTR_LIST) {
        AttrValue *items = mem_new_n(AttrValue, v->list.n + 1);
        for (uint32_t i = 0; i < v->list.n; i++)
            items[i] = fill_value(&v->list.items[i], next, end);
        filled.list.items = items;
    }
    return filled;
}

const Attrs *ref_attrs_with_sizes(const Attrs *attrs, const Value *sizes, uint32_t n) {
    Attrs *filled = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, attrs->op->nattrs + 1);
    const Value *next = sizes;
    for (int i = 0; i < attrs->op->nattrs; i++)
        values[i] = fill_value(&attrs->values[i], &next, sizes + n);
    *filled = (Attrs){.op = attrs->op, .values = values};
    return filled;
}

/* ---- plain values ---------------------------------------------------------------------------- */

static uint32_t count_tensors(const Value *args, uint32_t n) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += args[i].tag != VAL_TUPLE ? 1 : args[i].p ? ((Tuple *)args[i].p)->n : 0;
    return count;
}

static Tensor *tensor_of(const Op *op, Value v) {
    Tensor *t = value_to_tensor(v);
    if (!t)
        BUG("operator `%s` met a value with tag %u", op->name, v.tag);
    return t;
}

bool ref_operator_plain(Reference *r, const Expr *call, const Op *op, const Attrs *attrs,
                        const Value *args, uint32_t n, Value *out) {
    Interp *in = r->in;
    uint32_t count = count_tensors(args, n), at = 0;
    Tensor **operands = mem_new_n(Tensor *, count + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (args[i].tag != VAL_TUPLE) {
            operands[at++] = tensor_of(op, args[i]);
            continue;
        }
        const Tuple *t = args[i].p;
        for (uint32_t k = 0; t && k < t->n; k++)
            operands[at++] = tensor_of(op, t->items[k]);
    }
    Site site = {.op = op, .attrs = attrs, .nargs = n, .call = call};
    OpCall c = {
        op, attrs, count, operands, in->diags, reference_span(r), NULL, clash_is_told(&site)};
    Tensor *outs[OP_MAX_OUTPUTS] = {0}; /* in sight of the collector */
    size_t said = in->diags->list.len;
    in->stats.ops_reference++;
    int made = op_run_interruptible(&c, outs, r->serves_machine ? in->runner : NULL, in->runner_ctx,
                                    &in->interrupt);
    if (made == OP_INTERRUPTED)
        in->interrupt = 1;
    else if (made < 0)
        clash_explain(in, &site, &c, args, said);
    if (made < 0)
        return false;
    if (made == 1 && !op->tuple) {
        *out = value_tensor(outs[0]);
    } else {
        Value *items = mem_new_n(Value, made + 1);
        for (int i = 0; i < made; i++)
            items[i] = value_tensor(outs[i]);
        *out = value_tuple(items, (uint32_t)made);
    }
    return !r->hunts_nan || ref_stays_finite(r, call, op, args, n, *out);
}

/* ---- in the world there is ------------------------------------------------------------------- */

static bool some_active(const Value *args, uint32_t n, uint64_t level) {
    for (uint32_t i = 0; i < n; i++)
        if (ref_is_active(args[i], level))
            return true;
    return false;
}

bool ref_operator(Reference *r, const Expr *call, const Op *op, const Attrs *attrs,
                  const Value *args, uint32_t n, Value *out) {
    World *inner = r->world;
    while (r->world && !some_active(args, n, r->world->level))
        r->world = r->world->outer;
    uint64_t level = r->world ? r->world->level : 0;
    r->unwatched++;
    bool ok = r->world ? ref_differentiate(r, call, op, attrs, args, n, out)
                       : ref_operator_plain(r, call, op, attrs, args, n, out);
    r->unwatched--;
    r->world = inner;
    return ok && ref_tell(r, (WatchEvent){.kind = WATCH_VALUE,
                                          .what = op->name,
                                          .span = call ? call->span : span_none(),
                                          .n = n,
                                          .args = args,
                                          .value = *out,
                                          .level = level});
}

/* ---- comparisons of what may be no tensor ----------------------------------------------------- */

bool ref_compare_strings(const Op *op, const Value *args, Value *out) {
    if (args[0].tag != VAL_STRING || args[1].tag != VAL_STRING)
        return false;
    const String *s = args[0].p, *t = args[1].p;
    int order = memcmp(s->text, t->text, s->len < t->len ? s->len : t->len);
    order = order ? order : s->len < t->len ? -1 : s->len > t->len;
    *out = value_bool(op == &op_less         ? order < 0
                      : op == &op_less_equal ? order <= 0
                      : op == &op_greater    ? order > 0
                                             : order >= 0);
    return true;
}

bool ref_compare_equal(Reference *r, const Expr *e, Value a, Value b, bool negate, Value *out) {
    a = value_primal(a);
    b = value_primal(b);
    if (value_to_tensor(a) && value_to_tensor(b)) {
        const Op *op = negate ? &op_not_equal : &op_equal;
        Value args[2] = {a, b};
        return ref_operator_plain(r, e, op, attrs_defaults(op), args, 2, out);
    }
    int equal = value_equal(a, b);
    if (equal < 0) {
        ref_fail(r, e->span, DIAG_R0610, "functions cannot be compared");
        return false;
    }
    *out = value_bool((equal == 1) != negate);
    return true;
}
