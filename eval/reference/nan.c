/* SPDX-License-Identifier: Apache-2.0 */
/* Where a NaN or an infinity is born (`:nan on`, `--nan`): the operator that makes one of finite numbers fails, in
 * the program, or in a rule on the way back or forward of a derivative. All numbers are made by operators on plain
 * values (operator.c), so that is the one place to look; Reference.rule_of says whose rule runs there.
 *
 * Note [Two engines]. The session may run the machine. Then this evaluator runs beside it, on the values it has and for
 * values that it keeps, so functions are the only difficulty. A closure made here gets the machine's code too; both
 * capture the same variables in the same order (expr_free_vars). A closure made there is entered by the function
 * it was made of. A derivative becomes what it is there, a function from a template; that is known by its template, and is
 * taken here as figure 4.1 has it. */
#include "eval/reference/internal.h"
#include "passes/grad.h"

#include <math.h>

static bool is_internal(Span s) { return !s.source || (s.source->flags & SOURCE_INTERNAL); }

/* ---- looking at numbers ---------------------------------------------------------------------- */

/* The first element that is not finite, or -1. */
static int64_t find_bad(const Tensor *t) {
    if (!dtype_is_float(t->dtype))
        return -1;
    for (int64_t i = 0; i < t->count; i++)
        if (!isfinite(elem_get_float(tensor_at(t, i), t->dtype)))
            return i;
    return -1;
}

/* The first tensor in v with such an element, and which it is; NULL where there is none. */
static Tensor *find_bad_tensor(Value v, int64_t *at) {
    v = value_primal(v);
    if (v.tag == VAL_SCALAR && !(dtype_is_float((DType)v.aux) && !isfinite(v.f)))
        return NULL;
    if (v.tag == VAL_SCALAR || v.tag == VAL_TENSOR) {
        Tensor *t = value_to_tensor(v);
        *at = find_bad(t);
        return *at < 0 ? NULL : t;
    }
    const Tuple *tuple = v.tag == VAL_TUPLE ? v.p : NULL;
    Tensor *found = NULL;
    for (uint32_t i = 0; tuple && i < tuple->n && !found; i++)
        found = find_bad_tensor(tuple->items[i], at);
    return found;
}

/* ---- words ----------------------------------------------------------------------------------- */

static const char *value_text(Value v) {
    Str out = {0};
    ValuePrintOptions options = {
        .one_line = true, .nested = true, .digits = 6, .max_elements = 8, .edge = 3, .width = 60};
    value_print(&out, value_primal(v), &options);
    return out.len > 60 ? fmt_text("%.56s ...", str_text(&out)) : str_text(&out);
}

static const char *element_text(const Tensor *t, int64_t i) {
    return value_text(value_float(t->dtype, elem_get_float(tensor_at(t, i), t->dtype)));
}

/* "[1, 0]": the place of element i. */
static const char *place_text(const Tensor *t, int64_t i) {
    Str out = {0};
    int64_t size = t->count;
    for (int axis = 0; axis < t->rank; axis++) {
        size /= t->shape[axis];
        str_printf(&out, "%s%lld", axis ? ", " : "[", (long long)(i / size % t->shape[axis]));
    }
    str_add_char(&out, ']');
    return str_text(&out);
}

/* The number from which element i of `like` is made, where that is an element of v; else v. */
static const char *operand_text(Value v, const Tensor *like, int64_t i) {
    v = value_primal(v);
    const Tensor *t = v.tag == VAL_TENSOR ? v.p : NULL;
    bool same = t && t->rank == like->rank && dtype_is_float(t->dtype);
    for (int axis = 0; same && axis < t->rank; axis++)
        same = t->shape[axis] == like->shape[axis];
    return same ? element_text(t, i) : value_text(v);
}

static const char *operands_text(const Value *args, uint32_t n, const Tensor *like, int64_t at) {
    Str out = {0};
    for (uint32_t i = 0; i < n; i++)
        str_printf(&out, "%s%s",
                   !i           ? ""
                   : i + 1 == n ? " and "
                                : ", ",
                   operand_text(args[i], like, at));
    return str_text(&out);
}

Span ref_place_in_program(const Reference *r, Span at) {
    for (const Activation *a = r->top; a && is_internal(at); a = a->caller)
        at = a->tail ? a->tail->span : a->call ? a->call->span : span_none();
    return at;
}

/* The step whose derivative is being taken: of a derivative of a derivative, the operator that the program or the
 * library called. NULL where there is none. */
static const TapeStep *step_of_program(const Reference *r) {
    const TapeStep *s = r->rule_of;
    while (s && s->within)
        s = s->within;
    return s;
}

bool ref_stays_finite(Reference *r, const Expr *call, const Op *op, const Value *args, uint32_t n,
                      Value out) {
    int64_t at = 0, ignored;
    const Tensor *bad = find_bad_tensor(out, &at);
    for (uint32_t i = 0; bad && i < n; i++)
        if (find_bad_tensor(args[i], &ignored))
            return true; /* it was born before, or is meant */
    if (!bad)
        return true;
    const char *what = element_text(bad, at);
    bool by_program = call && !is_internal(call->span);
    const TapeStep *step = by_program ? NULL : step_of_program(r);
    Diag *d;
    if (step && step->op)
        d = ref_fail(r, step->place, DIAG_R0615, "%s made going %s by the derivative of `%s` at %s",
                     what, step->is_forward ? "forwards" : "backwards", step->op->name,
                     operands_text(step->primals, step->n, bad, at));
    else
        d = ref_fail(r, call ? call->span : reference_span(r), DIAG_R0615, "%s made by `%s` of %s",
                     what, op->name, operands_text(args, n, bad, at));
    if (bad->rank)
        diag_add_fact(d, "this is element %s of a result", place_text(bad, at));
    if (step && step->op)
        diag_add_fact(d, "there `%s` is taken of %s", op->name, operands_text(args, n, bad, at));
    return false;
}

/* ---- beside the machine ---------------------------------------------------------------------- */

bool ref_find_derivative(Reference *r, const Closure *c, GradKind *kind, Value *of) {
    if (!r->serves_machine || c->fn->span.source || !grad_is_template(&r->in->passes, c->fn, kind))
        return false;
    *of = c->captured[0]; /* the function is all that a template captures */
    return true;
}

EvalStatus reference_hunt(Interp *in, Reference **hunter, Expr *e, Value *out) {
    Reference *engine = in->reference;
    if (!*hunter) {
        *hunter = engine ? engine : reference_new(in);
        (*hunter)->serves_machine = !engine;
    }
    Reference *r = *hunter;
    r->hunts_nan = true;
    r->rule_of = NULL;
    in->reference = r;
    EvalStatus status = reference_eval(r, e, out);
    in->reference = engine;
    r->hunts_nan = false;
    return status;
}
