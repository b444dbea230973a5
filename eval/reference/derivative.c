/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives, as thesis figure 4.1 has them, taken while the program runs.
 *
 * Reverse mode: an active float tensor is a dual, its primal and a reference that holds (), for zero,
 * or its cotangent so far. An operator that meets a dual of the innermost derivative's level is applied to
 * the primals in the world outside; its result is a dual too, and a step on the tape remembers what the
 * rule needs. Going back, the last step first, the rule is evaluated in the world outside, where an
 * enclosing derivative sees it as it sees any code: that is how derivatives nest.
 *
 * Forward mode: the other half of a dual is its tangent. An operator's tangent is its `tangent` rule;
 * where it has none, h(ct), the derivative's rule, is linear in ct, and its transpose at the tangents
 * is vjp(h)(0, t). An inactive argument has the tangent (): with zeros, x ** 3 at a negative x would
 * give 0 * log(x). Where the derivative gives () for all active arguments, the result has none. */
#include "eval/ad.h"
#include "eval/reference/internal.h"
#include "types/op.h"

#include <string.h>

/* ---- duals ----------------------------------------------------------------------------------- */

static bool is_unit(Value v) { return v.tag == VAL_TUPLE && !v.p; }
static bool is_dual_of(Value v, uint64_t level) {
    return v.tag == VAL_DUAL && ((Dual *)v.p)->level == level;
}

static Value dual_new(Value primal, Value other, uint64_t level) {
    Dual *d = mem_new(Dual);
    *d = (Dual){primal, other, level};
    return (Value){.tag = VAL_DUAL, .p = d};
}

static Value cell_new(void) {
    Ref *cell = mem_new(Ref);
    cell->value = value_unit();
    return (Value){.tag = VAL_REF, .p = cell};
}

static Value *cell_of(Value dual) { return &((Ref *)((Dual *)dual.p)->other.p)->value; }

static Value filled_like(Value v, double fill) {
    v = value_primal(v);
    if (v.tag == VAL_SCALAR)
        return value_float((DType)v.aux, fill);
    const Tensor *like = v.p;
    Tensor *t = tensor_new(like->dtype, like->rank, like->shape);
    for (int64_t i = 0; i < t->count; i++)
        elem_set_float(tensor_at(t, i), t->dtype, fill);
    return value_tensor(t);
}

static bool same_shape(Value a, Value b) {
    a = value_primal(a);
    b = value_primal(b);
    if (a.tag != b.tag || a.tag == VAL_SCALAR)
        return a.tag == b.tag && a.aux == b.aux;
    const Tensor *s = a.p, *t = b.p;
    return s->dtype == t->dtype && s->rank == t->rank &&
           (!s->rank || !memcmp(s->shape, t->shape, (size_t)s->rank * sizeof *s->shape));
}

/* ---- the parts of a value -------------------------------------------------------------------- */

static Value part_or_unit(Value v, uint32_t i) {
    return i < value_count(v) ? value_part(v, i) : value_unit();
}

/* A tuple or data of the constructor that v has. */
static Value of_form(Value v, const Value *parts, uint32_t n) {
    return v.tag == VAL_TUPLE ? value_tuple(parts, n) : value_data(data_ctor(v), parts);
}

bool ref_is_active(Value v, uint64_t level) {
    for (;;) { /* along the last part in a loop: lists are long */
        uint32_t n = value_count(v);
        if (!n)
            return is_dual_of(v, level);
        for (uint32_t i = 0; i + 1 < n; i++)
            if (ref_is_active(value_part(v, i), level))
                return true;
        v = value_part(v, n - 1);
    }
}

/* What becomes of the float tensors in a value, y being what stands beside x. */
typedef struct Mapper {
    Reference *r;
    uint64_t level;
    Value (*leaf)(struct Mapper *m, Value x, Value y);
    bool keep;         /* other leaves stay as they are; else they become () */
    const char *other; /* y's form must be x's, or (): what y is called; NULL: there is no y */
    bool failed;
} Mapper;

static void map_fail(Mapper *m, const char *what) {
    if (!m->failed)
        ref_fail(m->r, reference_span(m->r), DIAG_R0405, "%s", what);
    m->failed = true;
}

static void check_form(Mapper *m, Value x, Value y) {
    bool same = true;
    if (!m->other || is_unit(y))
        return;
    if (x.tag == VAL_TUPLE && x.p)
        same = y.tag == VAL_TUPLE && ((Tuple *)y.p)->n == ((Tuple *)x.p)->n;
    else if (x.tag == VAL_CTOR)
        same = y.tag == VAL_CTOR && data_ctor(x) == data_ctor(y);
    if (!same)
        map_fail(m, "the cotangent or tangent has not the form of its value: other "
                    "constructors or another length");
}

static Value map_leaves(Mapper *m, Value x, Value y) {
    ValueChain chain = {0};
    for (;;) { /* along the last part in a loop: lists are long */
        check_form(m, x, y);
        if (m->failed)
            return value_chain_end(&chain, x);
        uint32_t n = value_count(x);
        if (!n) {
            bool has_form = x.tag == VAL_TUPLE || x.tag == VAL_CTOR; /* (), or no fields */
            return value_chain_end(&chain, value_is_float_tensor(x) ? m->leaf(m, x, y)
                                           : m->keep || has_form    ? x
                                                                    : value_unit());
        }
        Value *parts = mem_new_n(Value, n);
        for (uint32_t i = 0; i + 1 < n; i++)
            parts[i] = map_leaves(m, value_part(x, i), part_or_unit(y, i));
        y = part_or_unit(y, n - 1);
        Value last = value_part(x, n - 1);
        parts[n - 1] = last; /* until its own is there */
        value_chain_add(&chain, of_form(x, parts, n));
        x = last;
    }
}

static Value map_value(Reference *r, uint64_t level, Value (*leaf)(Mapper *, Value, Value),
                       bool keep, Value x) {
    Mapper m = {.r = r, .level = level, .leaf = leaf, .keep = keep};
    return map_leaves(&m, x, value_unit());
}

static Value lift_leaf(Mapper *m, Value x, Value y) {
    (void)y;
    return dual_new(x, cell_new(), m->level);
}
static Value lift(Reference *r, uint64_t level, Value x) {
    return map_value(r, level, lift_leaf, true, x);
}

static Value strip_leaf(Mapper *m, Value x, Value y) {
    (void)y;
    return is_dual_of(x, m->level) ? ((Dual *)x.p)->primal : x;
}
static Value strip(Reference *r, uint64_t level, Value x) {
    return map_value(r, level, strip_leaf, true, x);
}

static Value cotangent_leaf(Mapper *m, Value x, Value y) {
    (void)y;
    return is_dual_of(x, m->level) && !is_unit(*cell_of(x)) ? *cell_of(x) : filled_like(x, 0.0);
}
static Value cotangent(Reference *r, uint64_t level, Value x) {
    return map_value(r, level, cotangent_leaf, false, x);
}

/* The same, `()` for what nothing was added to. */
static Value added_leaf(Mapper *m, Value x, Value y) {
    (void)y;
    return is_dual_of(x, m->level) ? *cell_of(x) : value_unit();
}
static Value added(Reference *r, uint64_t level, Value x) {
    return map_value(r, level, added_leaf, false, x);
}

static Value tangent_leaf(Mapper *m, Value x, Value y) {
    (void)y;
    return is_dual_of(x, m->level) ? ((Dual *)x.p)->other : filled_like(x, 0.0);
}
static Value tangent(Reference *r, uint64_t level, Value x) {
    return map_value(r, level, tangent_leaf, false, x);
}

static Value ones_leaf(Mapper *m, Value x, Value y) {
    (void)m, (void)y;
    return filled_like(x, 1.0);
}
static Value zeros_leaf(Mapper *m, Value x, Value y) {
    (void)m, (void)y;
    return filled_like(x, 0.0);
}

static Value pair_leaf(Mapper *m, Value x, Value y) {
    if (is_unit(y)) /* it has no tangent: it is inactive */
        return x;
    if (!value_is_float_tensor(y) || !same_shape(x, y)) {
        map_fail(m, "the tangent has not the shape and dtype of its argument");
        return x;
    }
    return dual_new(x, y, m->level);
}
static bool pair(Reference *r, uint64_t level, Value x, Value dx, Value *out) {
    Mapper m = {.r = r, .level = level, .leaf = pair_leaf, .keep = true, .other = "tangent"};
    *out = map_leaves(&m, x, dx);
    return !m.failed;
}

static Value seed_leaf(Mapper *m, Value x, Value y) {
    if (!is_unit(y) && !(value_is_float_tensor(y) && same_shape(x, y)))
        map_fail(m, "the cotangent has not the shape and dtype of the result");
    return x;
}
static bool check_seed(Reference *r, Value x, Value seed) {
    Mapper m = {.r = r, .leaf = seed_leaf, .keep = true, .other = "cotangent"};
    map_leaves(&m, x, seed);
    return !m.failed;
}

static bool has_cotangent(Value v, uint64_t level) {
    for (;;) {
        uint32_t n = value_count(v);
        if (!n)
            return is_dual_of(v, level) && !is_unit(*cell_of(v));
        for (uint32_t i = 0; i + 1 < n; i++)
            if (has_cotangent(value_part(v, i), level))
                return true;
        v = value_part(v, n - 1);
    }
}

/* ---- the tape -------------------------------------------------------------------------------- */

/* Adds ct to the cotangents of x. */
static bool accumulate(Reference *r, uint64_t level, Value x, Value ct) {
    while (!is_unit(ct)) {
        if (is_dual_of(x, level)) {
            Value sum = ct, operands[2] = {*cell_of(x), ct};
            if (!is_unit(operands[0]) &&
                !ref_operator(r, NULL, &op_add, attrs_defaults(&op_add), operands, 2, &sum))
                return false;
            *cell_of(x) = sum;
            return true;
        }
        uint32_t n = value_count(x);
        if (!n)
            return true;
        for (uint32_t i = 0; i + 1 < n; i++)
            if (!accumulate(r, level, value_part(x, i), part_or_unit(ct, i)))
                return false;
        x = value_part(x, n - 1);
        ct = part_or_unit(ct, n - 1);
    }
    return true;
}

static void record(World *w, TapeStep step) {
    TapeStep *made = mem_new(TapeStep);
    *made = step;
    made->before = *w->tape;
    *w->tape = made;
}

static bool own_back(Reference *r, uint64_t level, const TapeStep *s, Value ct) {
    return accumulate(r, level, s->args[0], ct);
}

static bool step_back(Reference *r, uint64_t level, const TapeStep *s) {
    const TapeStep *rule_of = r->rule_of;
    Value ct = cotangent(r, level, s->result), *outer = r->gave;
    Value *gave = r->watch ? mem_new_n(Value, s->n + 1) : NULL;
    for (uint32_t i = 0; gave && i < s->n; i++)
        gave[i] = value_unit();
    r->gave = gave;
    r->rule_of = s;
    r->unwatched++;
    bool ok = s->back(r, level, s, ct);
    r->unwatched--;
    r->rule_of = rule_of;
    r->gave = outer;
    if (ok && s->back == own_back)
        return true;
    return ok && ref_tell(r, (WatchEvent){.kind = WATCH_BACK,
                                          .what = s->rule ? s->rule->op->name : NULL,
                                          .span = s->span,
                                          .n = s->n,
                                          .args = s->args,
                                          .value = s->result,
                                          .cotangent = ct,
                                          .gave = s->rule ? gave : NULL,
                                          .level = level});
}

/* Runs a tape of `level` backwards, in the current world. */
static bool go_back(Reference *r, uint64_t level, const TapeStep *last) {
    for (const TapeStep *s = last; s; s = s->before) {
        if (r->in->interrupt)
            return false;
        if (has_cotangent(s->result, level) && !step_back(r, level, s))
            return false;
    }
    return true;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const Local *bind_rule(const Rule *rule, const Value *values, uint32_t n) {
    const Fn *fn = rule->fn->fn;
    const Local *env = NULL;
    if (fn->nparams != n)
        BUG("the rule of `%s` takes %u values, its call has %u", rule->op->name, fn->nparams, n);
    for (uint32_t i = 0; i < n; i++)
        env = local_new(fn->params[i], values[i], env);
    return env;
}

/* The arguments of a derivative rule: the operator's, its result, the cotangent. */
static const Local *bind_derivative(const TapeStep *s, Value ct) {
    Value *values = mem_new_n(Value, s->n + 2);
    memcpy(values, s->primals, s->n * sizeof *values);
    values[s->n] = s->out;
    values[s->n + 1] = ct;
    return bind_rule(s->rule, values, s->n + 2);
}

/* Evaluates the bindings a rule begins with; what is left is its value. */
static bool eval_bindings(Reference *r, Expr **e, const Local **env) {
    for (; (*e)->kind == EXPR_LET; *e = (*e)->body) {
        Value v;
        if (!ref_eval(r, (*e)->a, *env, NULL, &v))
            return false;
        if ((*e)->var)
            *env = local_new((*e)->var, v, *env);
    }
    return true;
}

static bool is_unit_literal(const Expr *e) { return e->kind == EXPR_TUPLE && e->nargs == 0; }

static Expr *value_of_rule(const Rule *rule) {
    Expr *e = rule->fn->fn->body;
    while (e->kind == EXPR_LET)
        e = e->body;
    return e;
}

/* Whether the rule's value is a tuple of cotangents: that of one argument may stand by itself. */
static bool gives_tuple(const Rule *rule, uint32_t n) {
    const Expr *e = value_of_rule(rule);
    Type *t = type_resolve(e->type);
    return n > 1 || e->kind == EXPR_TUPLE || (t->tag == TY_TUPLE && t->nargs > 0);
}

/* Nothing flows back, whatever the arguments: floor, argmax. */
static bool gives_nothing(const Rule *rule) {
    const Expr *e = value_of_rule(rule);
    if (e->kind != EXPR_TUPLE)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_unit_literal(e->args[i]))
            return false;
    return true;
}

/* Whether nothing flows between argument i and the result: the rule gives () for it. */
static bool ignores(const Rule *rule, uint32_t i) {
    const Type *t = type_resolve(value_of_rule(rule)->type);
    return t->tag == TY_TUPLE && i < t->nargs && type_is_unit(t->args[i]);
}

static bool operator_back(Reference *r, uint64_t level, const TapeStep *s, Value ct) {
    const Attrs *outer = r->rule_attrs;
    const Local *env = bind_derivative(s, ct);
    Value *gave = r->gave;
    Expr *e = s->rule->fn->fn->body;
    r->rule_attrs = s->attrs;
    bool ok = eval_bindings(r, &e, &env);
    bool apart = e->kind == EXPR_TUPLE && e->nargs == s->n && s->n > 0;
    Value whole = value_unit();
    if (ok && !apart)
        ok = ref_eval(r, e, env, NULL, &whole);
    for (uint32_t i = 0; ok && i < s->n; i++) {
        Value part = gives_tuple(s->rule, s->n) ? part_or_unit(whole, i) : whole;
        if (!ref_is_active(s->args[i], level) || (apart && is_unit_literal(e->args[i])))
            continue;
        if (apart)
            ok = ref_eval(r, e->args[i], env, NULL, &part);
        if (gave)
            gave[i] = part;
        ok = ok && accumulate(r, level, s->args[i], part);
    }
    r->rule_attrs = outer;
    return ok;
}

/* ---- the transpose of a rule ----------------------------------------------------------------- */

typedef bool (*CFunction)(Reference *r, const TapeStep *s, Value x, Value *out);

/* The cotangent of x where f's result has the cotangent `seed`. */
static bool transpose(Reference *r, CFunction f, const TapeStep *s, Value x, Value seed,
                      Value *out) {
    const TapeStep *tape = NULL;
    World w = {AD_REVERSE, interp_begin_level(r->in), &tape, r->world};
    Value lifted = lift(r, w.level, x), y;
    r->world = &w;
    bool ok = f(r, s, lifted, &y);
    r->world = w.outer;
    ok = ok && check_seed(r, y, seed) && accumulate(r, w.level, y, seed) &&
         go_back(r, w.level, tape);
    *out = ok ? cotangent(r, w.level, lifted) : value_unit();
    interp_end_level(r->in, w.level);
    return ok;
}

static bool eval_rule(Reference *r, const TapeStep *s, Value ct, Value *out) {
    const Attrs *outer = r->rule_attrs;
    r->rule_attrs = s->attrs;
    bool ok = ref_eval(r, s->rule->fn->fn->body, bind_derivative(s, ct), NULL, out);
    r->rule_attrs = outer;
    return ok;
}

/* ---- operators ------------------------------------------------------------------------------- */

static bool eval_tangent(Reference *r, const TapeStep *s, uint64_t level, const Rule *rule,
                         Value *out) {
    if (rule) {
        Value *values = mem_new_n(Value, 2 * s->n + 1);
        memcpy(values, s->primals, s->n * sizeof *values);
        values[s->n] = s->out;
        for (uint32_t i = 0; i < s->n; i++)
            values[s->n + 1 + i] = tangent(r, level, s->args[i]);
        const Attrs *outer = r->rule_attrs;
        r->rule_attrs = s->attrs;
        bool ok = ref_eval(r, rule->fn->fn->body, bind_rule(rule, values, 2 * s->n + 1), NULL, out);
        r->rule_attrs = outer;
        return ok;
    }
    Value *tangents = mem_new_n(Value, s->n + 1);
    for (uint32_t i = 0; i < s->n; i++)
        tangents[i] = ref_is_active(s->args[i], level) ? tangent(r, level, s->args[i])
                                                       : value_unit();
    Value seed = gives_tuple(s->rule, s->n) ? value_tuple(tangents, s->n) : tangents[0];
    return transpose(r, eval_rule, s, map_value(r, 0, zeros_leaf, false, s->out), seed, out);
}

/* The same, which nan.c can tell from the way back. */
static bool tangent_of_step(Reference *r, const TapeStep *s, uint64_t level, const Rule *rule,
                            Value *out) {
    if (!r->hunts_nan)
        return eval_tangent(r, s, level, rule, out);
    const TapeStep *outer = r->rule_of;
    TapeStep *forward = mem_new(TapeStep);
    *forward = *s;
    forward->is_forward = true;
    r->rule_of = forward;
    bool ok = eval_tangent(r, forward, level, rule, out);
    r->rule_of = outer;
    return ok;
}

static bool holds_float(Value v) {
    uint32_t n = value_count(v);
    for (uint32_t i = 0; i < n; i++)
        if (holds_float(value_part(v, i)))
            return true;
    return !n && (v.tag == VAL_SCALAR || v.tag == VAL_TENSOR || v.tag == VAL_DUAL) &&
           value_is_float_tensor(v);
}

static bool refuse(Reference *r, const Op *op) {
    Diag *d = ref_fail(r, reference_span(r), DIAG_R0404,
                       "`%s` has no derivative, and a value that depends on a parameter of `grad` "
                       "reaches it",
                       op->name);
    diag_add_fact(d, "stop_gradient(x) says that x is to count as a constant");
    return false;
}

bool ref_differentiate(Reference *r, const Expr *call, const Op *op, const Attrs *attrs,
                       const Value *args, uint32_t n, Value *out) {
    World *w = r->world;
    const Expr *at = r->at;
    Value *kept = mem_new_n(Value, n + 1), *primals = mem_new_n(Value, n + 1), v;
    memcpy(kept, args, n * sizeof *kept);
    for (uint32_t i = 0; i < n; i++)
        primals[i] = strip(r, w->level, args[i]);
    r->world = w->outer;
    bool ok = ref_operator(r, call, op, attrs, primals, n, &v);
    r->at = at;
    const Rule *derivative = env_find_rule(r->in->env, op, RULE_DERIVATIVE);
    const Rule *forward = w->mode == AD_FORWARD ? env_find_rule(r->in->env, op, RULE_TANGENT)
                                                : NULL;
    bool reaches = w->mode == AD_REVERSE || forward || !derivative;
    for (uint32_t i = 0; i < n && !reaches; i++)
        reaches = ref_is_active(args[i], w->level) && !ignores(derivative, i);
    *out = v;
    if (!ok || !reaches || !holds_float(v) ||
        (!forward && derivative && gives_nothing(derivative))) {
        r->world = w;
        return ok;
    }
    TapeStep s = {.back = operator_back,
                  .rule = derivative,
                  .op = op,
                  .attrs = attrs,
                  .args = kept,
                  .primals = primals,
                  .n = n,
                  .out = v,
                  .span = call ? call->span : span_none(),
                  .within = r->rule_of};
    if (r->hunts_nan)
        s.place = ref_place_in_program(r, s.span);
    if (!derivative && !forward) {
        ok = refuse(r, op);
    } else if (w->mode == AD_FORWARD) {
        Value dv;
        ok = tangent_of_step(r, &s, w->level, forward, &dv) && pair(r, w->level, v, dv, out);
    } else {
        *out = s.result = lift(r, w->level, v);
        record(w, s);
    }
    r->world = w;
    return ok;
}

/* Of the derivatives that follow x the outermost comes first: it sees the primal. */
static bool own_in(Reference *r, World *w, Value x, Value *out) {
    *out = x;
    if (!w || x.tag != VAL_DUAL)
        return true;
    if (!is_dual_of(x, w->level))
        return own_in(r, w->outer, x, out);
    const Dual *d = x.p;
    Value primal, *kept = mem_new_n(Value, 1);
    if (!own_in(r, w->outer, d->primal, &primal))
        return false;
    *kept = x;
    bool reverse = w->mode == AD_REVERSE;
    *out = dual_new(primal, reverse ? cell_new() : d->other, w->level);
    if (!reverse)
        return true;
    record(w, (TapeStep){.back = own_back, .args = kept, .n = 1, .result = *out});
    return ref_tell(
        r,
        (WatchEvent){.kind = WATCH_STORE, .n = 1, .args = kept, .value = *out, .level = w->level});
}

/* A function that captured what each tensor is that f captured itself. */
static bool own_captured(Reference *r, Value *f) {
    const Closure *of = f->p;
    size_t size = sizeof *of + of->ncaptured * sizeof(Value);
    Closure *c = memcpy(mem_alloc(size), of, size);
    Value made = {.tag = VAL_CLOSURE, .p = c};
    bool any = false;
    for (uint32_t i = 0; i < c->ncaptured; i++) {
        bool is_dual = c->captured[i].tag == VAL_DUAL;
        if (is_dual && !own_in(r, r->world, c->captured[i], &c->captured[i]))
            return false;
        any |= is_dual;
        if (c->captured[i].tag == VAL_CLOSURE && c->captured[i].p == of)
            c->captured[i] = made;
    }
    if (any)
        *f = made;
    return true;
}

bool ref_own(Reference *r, Value *x) {
    return x->tag == VAL_CLOSURE && r->world ? own_captured(r, x) : own_in(r, r->world, *x, x);
}

/* ---- functions with a derivative of their own ------------------------------------------------ */

bool ref_is_plain_call(const Reference *r, GradKind kind) {
    return (kind == GRAD_CUSTOM && !r->world) ||
           (kind == GRAD_CHECKPOINT && (!r->world || r->world->mode == AD_FORWARD));
}

/* Refuses a closure or reference in v that holds a dual of this level. */
static bool holds_no_dual(Reference *r, uint64_t level, const char *what, Value v) {
    if (!value_holds_dual(v, level, level))
        return true;
    Diag *d = ref_fail(r, reference_span(r), DIAG_R0408, "%s a value being differentiated", what);
    diag_add_help(d, "make it an argument, or take `stop_gradient(x)` if it is to be a constant");
    return false;
}

static bool custom_rule(Reference *r, const TapeStep *s, Value ct, Value *out) {
    Value *values = mem_new_n(Value, s->n + 1);
    memcpy(values, s->primals, s->n * sizeof *values);
    values[s->n] = ct;
    return ref_apply(r, NULL, ((Tuple *)s->f.p)->items[1], values, s->n + 1, out);
}

static bool custom_back(Reference *r, uint64_t level, const TapeStep *s, Value ct) {
    Value cts;
    if (!custom_rule(r, s, ct, &cts))
        return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (!check_seed(r, s->primals[i], part_or_unit(cts, i)) ||
            !accumulate(r, level, s->args[i], part_or_unit(cts, i)))
            return false;
    return true;
}

static bool some_active(const Value *args, uint32_t n, uint64_t level) {
    for (uint32_t i = 0; i < n; i++)
        if (ref_is_active(args[i], level))
            return true;
    return false;
}

/* f runs in the world outside, and df gives the cotangents. */
static bool run_custom(Reference *r, World *w, Value fs, const Value *args, uint32_t n,
                       Value *out) {
    Value *primals = mem_new_n(Value, n + 1), *kept = mem_new_n(Value, n + 1), v;
    memcpy(kept, args, n * sizeof *kept);
    if (!holds_no_dual(r, w->level, "a function that `custom_grad` is given captures", fs))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        primals[i] = strip(r, w->level, args[i]);
        if (!holds_no_dual(r, w->level,
                           "a function or reference among the arguments of `custom_grad` holds",
                           primals[i]))
            return false;
    }
    if (!ref_apply(r, NULL, ((Tuple *)fs.p)->items[0], primals, n, &v))
        return false;
    *out = v;
    if (!some_active(args, n, w->level))
        return true;
    TapeStep s = {.back = custom_back, .f = fs, .args = kept, .primals = primals, .n = n};
    if (w->mode == AD_FORWARD) {
        Value *tangents = mem_new_n(Value, n + 1), dv;
        for (uint32_t i = 0; i < n; i++)
            tangents[i] = tangent(r, w->level, args[i]);
        return transpose(r, custom_rule, &s, map_value(r, 0, zeros_leaf, false, v),
                         value_tuple(tangents, n), &dv) &&
               pair(r, w->level, v, dv, out);
    }
    *out = s.result = lift(r, w->level, v);
    record(w, s);
    return true;
}

/* Runs f for a derivative of `level`, on a tape of its own, where no outer reference is written. *first is the seal of the
 * first run, which fills it in; the second one reads none that was written since. */
static bool run_sealed(Reference *r, uint64_t level, Seal *first, Value f, const Value *args,
                       uint32_t n, const TapeStep **tape, Value *out) {
    World w = {AD_REVERSE, level, tape, r->world};
    Seal seal = interp_seal(r->in, first->level ? first : NULL);
    if (!first->level)
        *first = seal;
    r->world = &w;
    bool ok = ref_apply(r, NULL, f, args, n, out);
    r->world = w.outer;
    interp_unseal(r->in, &seal);
    return ok;
}

/* A part of the result that has no cotangent gets none: a zero makes NaN of what is infinite in f. */
static bool checkpoint_back(Reference *r, uint64_t level, const TapeStep *s, Value ct) {
    (void)ct;
    const TapeStep *tape = NULL;
    Value again;
    Seal first = s->seal;
    return run_sealed(r, level, &first, s->f, s->args, s->n, &tape, &again) &&
           accumulate(r, level, again, added(r, level, s->result)) && go_back(r, level, tape);
}

/* Nothing of f's run is kept: it runs again on the way back. */
static bool run_checkpoint(Reference *r, World *w, Value f, const Value *args, uint32_t n,
                           Value *out) {
    const TapeStep *dropped = NULL;
    Value y, *kept = mem_new_n(Value, n + 1);
    Seal seal = {0};
    memcpy(kept, args, n * sizeof *kept);
    if (!run_sealed(r, w->level, &seal, f, args, n, &dropped, &y))
        return false;
    Value v = strip(r, w->level, y);
    if (!holds_no_dual(r, w->level, "a function or reference in the result of `checkpoint` holds",
                       v))
        return false;
    *out = v;
    if (ref_is_active(y, w->level)) {
        *out = lift(r, w->level, v);
        record(w, (TapeStep){.back = checkpoint_back,
                             .f = f,
                             .args = kept,
                             .n = n,
                             .result = *out,
                             .seal = seal});
    }
    return true;
}

/* ---- derivatives of functions ---------------------------------------------------------------- */

static bool run_reverse(Reference *r, Value f, const Value *args, uint32_t n, const Value *seed,
                        Value *out) {
    const TapeStep *tape = NULL;
    World w = {AD_REVERSE, interp_begin_level(r->in), &tape, r->world};
    Value *lifted = mem_new_n(Value, n + 1), *partials = mem_new_n(Value, n + 1), y;
    for (uint32_t i = 0; i < n; i++)
        lifted[i] = lift(r, w.level, args[i]);
    r->world = &w;
    bool ok = ref_tell(
                  r,
                  (WatchEvent){
                      .kind = WATCH_BEGIN, .n = n, .args = lifted, .value = f, .level = w.level}) &&
              ref_apply(r, NULL, f, lifted, n, &y);
    r->world = w.outer;
    ok = ok && ref_tell(r, (WatchEvent){.kind = WATCH_SEED, .value = y, .level = w.level});
    if (ok && seed)
        ok = check_seed(r, y, *seed);
    ok = ok && accumulate(r, w.level, y, seed ? *seed : map_value(r, 0, ones_leaf, false, y)) &&
         go_back(r, w.level, tape);
    if (ok) {
        for (uint32_t i = 0; i < n; i++)
            partials[i] = cotangent(r, w.level, lifted[i]);
        Value both[2] = {strip(r, w.level, y), value_tuple(partials, n)};
        *out = value_tuple(both, 2);
    }
    interp_end_level(r->in, w.level);
    return ok;
}

static bool run_forward(Reference *r, Value f, const Value *args, uint32_t n, Value *out) {
    World w = {AD_FORWARD, interp_begin_level(r->in), NULL, r->world};
    Value *pairs = mem_new_n(Value, n + 1), y;
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = pair(r, w.level, args[i], args[n + i], &pairs[i]);
    r->world = &w;
    ok = ok && ref_apply(r, NULL, f, pairs, n, &y);
    r->world = w.outer;
    if (ok) {
        Value both[2] = {strip(r, w.level, y), tangent(r, w.level, y)};
        *out = value_tuple(both, 2);
    }
    interp_end_level(r->in, w.level);
    return ok;
}

bool ref_derivative(Reference *r, GradKind kind, Value f, const Value *args, uint32_t n,
                    Value *out) {
    World *w = r->world;
    switch (kind) {
    case GRAD_GRAD: return run_reverse(r, f, args, n, NULL, out);
    case GRAD_VJP: return run_reverse(r, f, args, n - 1, &args[n - 1], out);
    case GRAD_JVP: return run_forward(r, f, args, n / 2, out);
    case GRAD_DERIV: {
        Value both;
        if (!run_reverse(r, f, args, n, NULL, &both))
            return false;
        Value partials = ((Tuple *)both.p)->items[1];
        *out = n == 1 ? ((Tuple *)partials.p)->items[0] : partials;
        return true;
    }
    case GRAD_CUSTOM:
    case GRAD_CHECKPOINT: {
        r->world = w->outer;
        bool ok = kind == GRAD_CUSTOM ? run_custom(r, w, f, args, n, out)
                                      : run_checkpoint(r, w, f, args, n, out);
        r->world = w;
        return ok;
    }
    case GRAD_VMAP: /* the loop is differentiated as what it is */
    case GRAD_KINDS: break;
    }
    BUG("no such kind of derivative");
}
