/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that turn out not to fit when running. What inference knew of them, above all where they came
 * from (a file, a literal), stands in the types of the core; what they are, in the values.
 *
 *     x @@ w      x : Tensor[(?, ?), float32], read from `x.npy`, is Tensor[(100, 64), float32] */
#include "eval/machine.h"
#include "ops/relate/shape_util.h"
#include "types/op.h"

#include <string.h>

/* Only where the operands stand in the program, inside of the call, can their types be shown. */
bool clash_is_told(const Site *site) {
    const Expr *e = site->call;
    if (!e || e->kind != EXPR_CALL || e->nargs != site->nargs || !e->nargs || !e->span.source ||
        (e->span.source->flags & SOURCE_INTERNAL) || site->op->foreign || site->op->rows)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        Span s = e->args[i]->span;
        if (s.source != e->span.source || s.begin < e->span.begin || s.end > e->span.end ||
            (s.begin == e->span.begin && s.end == e->span.end))
            return false;
    }
    return true;
}

/* Where the size came from. An annotation `?` gave no size, so it is not told. */
static const Origin *origin_of(Type *size) {
    size = type_resolve(size);
    const Origin *o = size->origin;
    return o && size->tag == TY_ANY && o->kind == ORIGIN_ANNOTATION ? NULL : o;
}

/* The type of a tensor, its sizes with the origins that inference knew. */
static Type *type_of(const Tensor *t, Type *known) {
    uint32_t rank;
    Type **own;
    bool ranked = type_get_rank(type_resolve(known), &rank, &own) && rank == (uint32_t)t->rank;
    Type **dims = mem_new_n(Type *, t->rank + 1);
    for (int i = 0; i < t->rank; i++)
        dims[i] = type_dim_int(t->shape[i], ranked ? origin_of(own[i]) : NULL);
    return type_tensor(type_shape(dims, (uint32_t)t->rank), type_dtype(t->dtype));
}

/* The place that inference marks: the sign of `a @@ b`, or the name before a call's arguments. */
static Span operator_span(const Expr *e, const Span *at) {
    Span s = e->span;
    if (at[0].begin != s.begin) {
        size_t n = strcspn(s.source->text + s.begin, "( ");
        return s.begin + n < at[0].begin ? (Span){s.source, s.begin, s.begin + (uint32_t)n} : s;
    }
    if (e->nargs != 2 || at[0].end >= at[1].begin)
        return s;
    s = (Span){s.source, at[0].end, at[1].begin};
    while (s.begin < s.end && strchr(" \t\n()", s.source->text[s.begin]))
        s.begin++;
    while (s.end > s.begin && strchr(" \t\n()", s.source->text[s.end - 1]))
        s.end--;
    return s.begin < s.end ? s : e->span;
}

void clash_explain(Interp *in, const Site *site, const OpCall *call, const Value *args,
                   size_t since) {
    if (!call->places)
        return;
    const Expr *e = site->call;
    Type **types = mem_new_n(Type *, e->nargs + 1);
    Span *spans = mem_new_n(Span, e->nargs + 1);
    for (uint32_t i = 0, at = 0; i < e->nargs; i++) {
        Type *known = type_resolve(e->args[i]->type);
        const Tuple *t = args && args[i].tag == VAL_TUPLE ? args[i].p : NULL;
        spans[i] = e->args[i]->span;
        if (!args || args[i].tag != VAL_TUPLE) {
            types[i] = type_of(call->in[at++], known);
            continue;
        }
        uint32_t n = t ? t->n : 0;
        Type **parts = mem_new_n(Type *, n + 1);
        for (uint32_t k = 0; k < n; k++) {
            bool same = known->tag == TY_TUPLE && k < known->nargs;
            parts[k] = type_of(call->in[at++], same ? known->args[k] : known);
        }
        types[i] = type_tuple(parts, n);
    }
    types[e->nargs] = type_unit();
    Relation r = {.def = call->op->relation,
                  .op = call->op,
                  .attrs = call->attrs,
                  .args = types,
                  .nargs = e->nargs + 1,
                  .span = call->span,
                  .arg_spans = spans};
    for (size_t i = since; i < in->diags->list.len; i++) {
        Diag *d = in->diags->list.data[i];
        if (diag_is_of_sizes(d->code) || d->code == DIAG_R0316) {
            d->primary.span = operator_span(e, spans);
            rel_add_places(d, &r);
        }
        rel_add_sizes(NULL, d, &r);
    }
}

void clash_explain_size(Diag *d, const Expr *size, int64_t n) {
    uint32_t rank;
    Type **dims;
    if (size->kind != EXPR_DIM_OF || !type_get_rank(type_resolve(size->a->type), &rank, &dims) ||
        size->index < 0 || (uint32_t)size->index >= rank)
        return;
    const Origin *o = origin_of(dims[size->index]);
    if (o)
        diag_add_origin(d, type_dim_int(n, o), fmt_text("%lld", (long long)n));
}

static const int64_t *sizes_of(Value v, int *rank) {
    v = value_primal(v);
    const Tensor *t = v.tag == VAL_TENSOR ? v.p : NULL;
    *rank = t ? t->rank : 0;
    return t ? t->shape : NULL;
}

static const char *axes_text(int64_t n) {
    return fmt_text("%lld %s", (long long)n, n == 1 ? "axis" : "axes");
}

bool clash_check_shape(Interp *in, const Check *check, Value found, Value expected) {
    int rank, wanted;
    const int64_t *have = sizes_of(found, &rank), *want = sizes_of(expected, &wanted);
    Diag *d = NULL;
    if (check->kind == CHECK_RANK && rank != expected.i) {
        d = machine_fail_at(in, check->span, DIAG_R0604, "%s has %s, not %lld",
                            type_place_text(&check->place), axes_text(rank), (long long)expected.i);
    } else if (check->kind == CHECK_SHAPE &&
               (rank != wanted || (rank && memcmp(have, want, (size_t)rank * sizeof *have) != 0))) {
        d = machine_fail_at(in, check->span, DIAG_R0604, "%s has shape %s, not %s",
                            type_place_text(&check->place), shape_text(rank, have),
                            shape_text(wanted, want));
    }
    if (d)
        diag_add_fact(d, "its rank was not known before running");
    return !d;
}

bool clash_check_element(Interp *in, Value first, Value element, uint32_t i) {
    int rank, wanted, axis = 0;
    const int64_t *have = sizes_of(element, &rank), *want = sizes_of(first, &wanted);
    if (rank != wanted)
        BUG("element %u of a tensor literal has %d axes, the first %d", i, rank, wanted);
    while (axis < rank && have[axis] == want[axis])
        axis++;
    if (axis == rank)
        return true;
    Diag *d = machine_fail(in, DIAG_R0314, "axis %d of element %u is %lld, of the first it is %lld",
                           axis, i, (long long)have[axis], (long long)want[axis]);
    diag_add_fact(d, "the elements of a tensor literal have one shape");
    return false;
}
