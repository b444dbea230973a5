/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of the core. Forms whose value is that of a part (`let`, `if`, `match`, a call in tail
 * position) go round the loop of ref_eval, so a loop written as a tail call uses no stack. */
#include "eval/reference/internal.h"

#include <string.h>

#include "types/op.h"

enum { SPARE = 256 << 10, LARGE_STACK = 1 << 30, FEW = 3 };

const Local *local_new(const Var *v, Value value, const Local *outer) {
    Local *l = mem_new(Local);
    *l = (Local){v, value, outer};
    return l;
}

static Value value_of_var(const Local *env, const Var *v) {
    for (; env; env = env->outer)
        if (env->var == v)
            return env->value;
    BUG("variable `%s` is not in scope", v->name->text);
}

/* ---- messages -------------------------------------------------------------------------------- */

Span reference_span(const Reference *r) { return r->at ? r->at->span : span_none(); }

Diag *ref_fail(Reference *r, Span span, DiagCode code, const char *fmt, ...) {
    va_list ap;
    Str text = {0};
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    return diag_error(r->in->diags, code, span, "%s", str_text(&text));
}

static bool is_internal(Span s) { return !s.source || (s.source->flags & SOURCE_INTERNAL); }

/* The calls that led to an error, told once: while the innermost activation still stands. */
static void trace(Reference *r) {
    if (r->traced)
        return;
    r->traced = true;
    VEC(TraceStep) steps = {0};
    for (const Activation *a = r->top; a; a = a->caller) {
        const Expr *call = a->tail ? a->tail : a->call;
        TraceStep step = {.name = a->fn ? a->fn->fn->name : NULL,
                          .call = call ? call->span : span_none(),
                          .internal = a->fn && is_internal(a->fn->span),
                          .item = !a->fn,
                          .by_tail = a->tail != NULL};
        vec_push(&steps, step);
    }
    trace_errors(r->in, r->since, steps.data, steps.len);
}

/* ---- functions ------------------------------------------------------------------------------- */

static const VarVec *captured_by(Reference *r, Expr *fn) {
    VarVec *known = weak_find(&r->captures, fn);
    if (known)
        return known;
    known = mem_new(VarVec);
    expr_free_vars(fn, known);
    weak_set_owned(&r->captures, fn, known);
    return known;
}

/* rec: a variable that names the function itself, or NULL. */
static Value closure_of(Reference *r, Expr *fn, const Local *env, const Var *rec) {
    const VarVec *vars = captured_by(r, fn);
    Closure *c = r->serves_machine ? closure_alloc(code_of_fn(r->in, fn))
                                   : mem_alloc(sizeof *c + vars->len * sizeof(Value));
    Value v = {.tag = VAL_CLOSURE, .p = c};
    c->fn = fn;
    c->ncaptured = (uint32_t)vars->len;
    for (size_t i = 0; i < vars->len; i++)
        c->captured[i] = vars->data[i] == rec ? v : value_of_var(env, vars->data[i]);
    return v;
}

Value reference_function(Reference *r, Expr *fn) { return closure_of(r, fn, NULL, NULL); }

static Closure *function_in(Value f) {
    if (f.tag != VAL_CLOSURE)
        BUG("calling a value that is no function (tag %u)", f.tag);
    return f.p;
}

/* The function that was written: the machine's closure may be one of a twin of it. */
static Expr *written_function(const Closure *c) {
    return c->fn->fn->base ? c->fn->fn->base : c->fn;
}

/* The environment in which the body runs. */
static const Local *enter(Reference *r, const Closure *c, const Value *args, uint32_t n) {
    const Fn *fn = written_function(c)->fn;
    if (fn->nparams != n)
        BUG("`%s` takes %u arguments, its call has %u", fn->name ? fn->name->text : "fn",
            fn->nparams, n);
    const VarVec *vars = captured_by(r, written_function(c));
    const Local *env = NULL;
    for (size_t i = 0; i < vars->len; i++)
        env = local_new(vars->data[i], c->captured[i], env);
    for (uint32_t i = 0; i < n; i++)
        env = local_new(fn->params[i], args[i], env);
    return env;
}

static bool tell_call(Reference *r, const Closure *c, const Value *args, uint32_t n) {
    const Fn *fn = c->fn->fn;
    if (!r->watch || is_internal(c->fn->span))
        return true;
    return ref_tell(r, (WatchEvent){.kind = WATCH_CALL,
                                    .what = fn->name ? fn->name->text : NULL,
                                    .span = c->fn->span,
                                    .n = n,
                                    .args = args});
}

/* The derivative `kind` of f at args, or f itself where that is a plain call. */
static bool apply_derivative(Reference *r, const Expr *call, GradKind kind, Value f,
                             const Value *args, uint32_t n, Value *out) {
    if (!ref_is_plain_call(r, kind))
        return ref_derivative(r, kind, f, args, n, out);
    return ref_apply(r, call, kind == GRAD_CUSTOM ? ((Tuple *)f.p)->items[0] : f, args, n, out);
}

bool ref_apply(Reference *r, const Expr *call, Value f, const Value *args, uint32_t n, Value *out) {
    const Closure *c = function_in(f);
    Activation own = {.caller = r->top, .fn = c->fn, .call = call};
    GradKind kind;
    Value of;
    r->top = &own;
    r->in->stats.calls++;
    bool ok = ref_find_derivative(r, c, &kind, &of)
                  ? apply_derivative(r, call, kind, of, args, n, out)
                  : tell_call(r, c, args, n) &&
                        ref_eval(r, written_function(c)->fn->body, enter(r, c, args, n), &own, out);
    if (!ok)
        trace(r);
    r->top = own.caller;
    return ok;
}

/* fn (x1, …, xn) { callee(x1, …, xn) } for what is named without being called. */
static Value value_of_callee(Reference *r, Map *known, const void *key, Expr *callee, uint32_t n,
                             const Attrs *attrs, const Symbol *name) {
    Expr *fn = map_find(known, key);
    if (!fn) {
        fn = eta_expand(callee, n, attrs, NULL, name);
        map_set(known, key, fn);
    }
    return reference_function(r, fn);
}

/* The derivative of a function as a value: fn (x1, …) { grad(f)(x1, …) }, where this call, marked by
 * `drop`, is run by ref_derivative. */
static bool derivative_of(Reference *r, GradKind kind, Value f, Value *out) {
    if (r->serves_machine)
        return grad_of(r->in, kind, false, f, out);
    Value run = kind == GRAD_CUSTOM && f.tag == VAL_TUPLE ? ((Tuple *)f.p)->items[0] : f;
    uint32_t n = function_in(run)->fn->fn->nparams;
    uint32_t nparams = kind == GRAD_VJP ? n + 1 : kind == GRAD_JVP ? 2 * n : n;
    const void *key = (const void *)(uintptr_t)(n + 1);
    Expr *fn = map_find(&r->derivatives[kind], key);
    if (!fn) {
        Var *v = var_new(sym_intern("f"), NULL, span_none());
        Expr *grad = expr_new(EXPR_GRAD, NULL, span_none());
        grad->mode = (uint8_t)kind;
        grad->a = expr_var(v, span_none());
        fn = eta_expand(grad, nparams, NULL, NULL, sym_intern(grad_kind_name(kind)));
        fn->fn->body->drop = 1;
        map_set(&r->derivatives[kind], key, fn);
    }
    Closure *c = mem_alloc(sizeof *c + sizeof(Value));
    c->fn = fn;
    c->ncaptured = 1;
    c->captured[0] = f;
    *out = (Value){.tag = VAL_CLOSURE, .p = c};
    return true;
}

/* ---- literals and sizes ---------------------------------------------------------------------- */

static DType dtype_of(Value v) {
    v = value_primal(v);
    if (v.tag == VAL_SCALAR)
        return (DType)v.aux;
    if (v.tag == VAL_TENSOR)
        return ((Tensor *)v.p)->dtype;
    BUG("a literal takes its dtype from a value with tag %u", v.tag);
}

static DType dtype_of_literal(const Expr *lit) {
    DType t;
    if (lit->type && type_get_dtype(lit->type, &t))
        return t;
    return lit->is_float ? DT_F32 : DT_I32;
}

static bool size_of_axis(Reference *r, const Expr *e, Value v, Value *out) {
    v = value_primal(v);
    const Tensor *t = v.tag == VAL_TENSOR ? v.p : NULL;
    int axis = t && e->index < 0 ? e->index + t->rank : e->index;
    if (!t || axis < 0 || axis >= t->rank)
        BUG("no axis %d to take the size of", e->index);
    Expr lit = {.kind = EXPR_LIT, .i = t->shape[axis]};
    DType d = DT_I32;
    if (e->type)
        (void)type_get_dtype(e->type, &d);
    *out = value_of_literal(&lit, d);
    if (dtype_is_float(d) || dtype_holds_int(d, lit.i, false))
        return true;
    ref_fail(r, e->span, DIAG_R0614, "a size is %lld, which %s does not hold", (long long)lit.i,
             dtype_info[d].name);
    return false;
}

static bool run_check(Reference *r, const Check *check, const Local *env) {
    Value found, expected;
    if (!ref_eval(r, check->found, env, NULL, &found) ||
        !ref_eval(r, check->expected, env, NULL, &expected))
        return false;
    if (check->kind != CHECK_SIZE)
        return clash_check_shape(r->in, check, found, expected);
    if (found.i == expected.i)
        return true;
    Diag *d = ref_fail(r, check->span, DIAG_R0604, "%s is %lld, not %lld",
                       type_place_text(&check->place), (long long)found.i, (long long)expected.i);
    diag_add_fact(d, "this size was not known before running");
    clash_explain_size(d, check->found, found.i);
    clash_explain_size(d, check->expected, expected.i);
    return false;
}

/* ---- patterns -------------------------------------------------------------------------------- */

static bool equals_literal(Value v, const Expr *lit) {
    v = value_primal(v);
    if (v.tag != VAL_SCALAR)
        return false;
    Value wanted = value_of_literal(lit, (DType)v.aux);
    return dtype_is_float((DType)v.aux) ? v.f == wanted.f : v.i == wanted.i;
}

static bool equals_text(Value v, const Pattern *p) {
    const String *s = v.p;
    return v.tag == VAL_STRING && s->len == p->text_len && !memcmp(s->text, p->text, s->len);
}

/* Whether v is of the pattern's form; binds what the pattern names. */
static bool matches(const Pattern *p, Value v, const Local **env) {
    switch (p->kind) {
    case PAT_WILDCARD: return true;
    case PAT_VAR: *env = local_new(p->var, v, *env); return true;
    case PAT_LIT: return equals_literal(v, p->lit);
    case PAT_STRING: return equals_text(v, p);
    case PAT_CTOR:
        if (data_ctor(v) != p->ctor)
            return false;
        break;
    case PAT_TUPLE: break;
    }
    for (uint32_t i = 0; i < p->nargs; i++)
        if (!matches(p->args[i], value_part(v, i), env))
            return false;
    return true;
}

/* The body of the first arm that matches v, in *env; NULL where there is none, or one fails. */
static Expr *arm_for(Reference *r, Expr *e, Value v, const Local **env) {
    for (uint32_t i = 0; i < e->narms; i++) {
        const Local *inner = *env;
        if (!matches(e->arms[i].pattern, v, &inner))
            continue;
        if (e->arms[i].guard) {
            Value holds;
            if (!ref_eval(r, e->arms[i].guard, inner, NULL, &holds))
                return NULL;
            if (!holds.i)
                continue;
        }
        *env = inner;
        return e->arms[i].body;
    }
    r->at = e;
    fail_no_match(r->in, v);
    return NULL;
}

/* ---- operators ------------------------------------------------------------------------------- */

static Value *values_new(uint32_t n) { return mem_new_n(Value, n + 1); }

/* Room for n values, on the stack where they are few. */
#define VALUES(name, n) Value name##_few[FEW], *name = (n) > FEW ? values_new(n) : name##_few

static bool eval_all(Reference *r, Expr **es, uint32_t n, const Local *env, Value *out) {
    for (uint32_t i = 0; i < n; i++)
        if (!ref_eval(r, es[i], env, NULL, &out[i]))
            return false;
    return true;
}

/* The first n parts of a tuple or data. */
static bool eval_parts(Reference *r, Expr *e, uint32_t n, const Local *env, Value *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (!ref_eval(r, e->args[i], env, NULL, &out[i]))
            return false;
        if (e->own_cells && !ref_own(r, &out[i]))
            return false;
    }
    return true;
}

static bool call_operator(Reference *r, Expr *e, const Local *env, Value *out) {
    const Op *op = e->a->op;
    VALUES(args, e->nargs + e->nsizes);
    if (!eval_all(r, e->args, e->nargs, env, args) ||
        !eval_all(r, e->sizes, e->nsizes, env, args + e->nargs))
        return false;
    r->at = e;
    r->scope = env;
    if (op == &op_equal || op == &op_not_equal)
        return ref_compare_equal(r, e, args[0], args[1], op == &op_not_equal, out);
    if (e->nargs == 2 && ref_compare_strings(op, args, out))
        return true;
    const Attrs *attrs = e->attrs ? e->attrs : attrs_defaults(op);
    if (e->nsizes)
        attrs = ref_attrs_with_sizes(attrs, args + e->nargs, e->nsizes);
    if (r->rule_attrs && attrs && attrs_have_refs(attrs))
        attrs = attrs_substitute(attrs, r->rule_attrs);
    return ref_operator(r, e, op, attrs, args, e->nargs, out);
}

/* [a, b, …]: the elements stacked on a new first axis. */
static bool make_tensor(Reference *r, Expr *e, const Value *items, Value *out) {
    r->at = e;
    if (e->nargs == 0) {
        DType t;
        int64_t shape[1] = {0};
        if (!e->type || !type_get_dtype(e->type, &t))
            t = DT_F32;
        *out = value_tensor(tensor_new(t, 1, shape));
        return true;
    }
    for (uint32_t i = 1; i < e->nargs; i++)
        if (!clash_check_element(r->in, items[0], items[i], i))
            return false;
    Value tuple = value_tuple(items, e->nargs);
    return ref_operator(r, NULL, &op_stack, attrs_defaults(&op_stack), &tuple, 1, out);
}

static bool index_value(Reference *r, Expr *e, const Value *values, Value *out) {
    r->at = e;
    if (values[0].tag == VAL_TUPLE) {
        const Tuple *t = values[0].p;
        int64_t n = t ? t->n : 0, i = e->nargs == 1 ? values[1].i : -1;
        i += i < 0 ? n : 0;
        if (i < 0 || i >= n)
            BUG("element %lld of a tuple of %lld", (long long)i, (long long)n);
        *out = t->items[i];
        return true;
    }
    Attrs *attrs = mem_new(Attrs);
    *attrs = *e->attrs;
    attrs->op = &op_index;
    return ref_operator(r, NULL, &op_index, attrs, values, e->nargs + 1, out);
}

/* ---- builtins -------------------------------------------------------------------------------- */

/* What the library's function is told of its result's type: the declared one where data is made. */
static Type *builtin_type(const Expr *call) {
    DType known;
    Type *t = call->type;
    if (call->a->kind != EXPR_GLOBAL || !call->a->global->scheme)
        return t;
    Type *declared = type_resolve(call->a->global->scheme->type);
    bool data = declared->tag == TY_FN && type_resolve(declared->fn.result)->tag == TY_DATA;
    return data && (!t || !type_get_dtype(t, &known)) ? declared->fn.result : t;
}

static bool call_builtin(Reference *r, Expr *e, const Symbol *name, const Local *env, Value *out) {
    const Builtin *b = builtin_find(name);
    VALUES(args, e->nargs);
    if (!b || (b->nargs >= 0 && (uint32_t)b->nargs != e->nargs))
        BUG("no builtin `%s` of %u arguments", name->text, e->nargs);
    if (!eval_all(r, e->args, e->nargs, env, args))
        return false;
    r->at = e;
    BuiltinCall call = {r->in, e->span, args, e->nargs, builtin_type(e), 0};
    return b->fn(&call, out);
}

static Value value_of_attr(const AttrValue *v) {
    switch (v->kind) {
    case ATTR_NONE: return value_unit();
    case ATTR_INT: return value_int(DT_I32, v->i);
    case ATTR_BOOL: return value_bool(v->i != 0);
    case ATTR_FLOAT: return value_float(DT_F64, v->f);
    case ATTR_STRING: return value_string(v->text, strlen(v->text));
    case ATTR_LIST: {
        Value *items = values_new(v->list.n);
        for (uint32_t i = 0; i < v->list.n; i++)
            items[i] = value_of_attr(&v->list.items[i]);
        return value_tuple(items, v->list.n);
    }
    case ATTR_DTYPE:
    case ATTR_DIM:
    case ATTR_REF: break;
    }
    BUG("an attribute that is no constant stands in an expression of a derivative rule");
}

/* The value of an attribute that a derivative rule names. */
static bool rule_attribute(Reference *r, const Expr *e, Value *out) {
    int i = r->rule_attrs ? op_attr_index(r->rule_attrs->op, e->args[0]->text) : -1;
    if (i < 0)
        BUG("attribute `%s` outside of a rule of its operator", e->args[0]->text);
    *out = value_of_attr(&r->rule_attrs->values[i]);
    return true;
}

/* ---- references ------------------------------------------------------------------------------ */

static bool write_reference(Reference *r, const Expr *e, Value to, Value v, Value *out) {
    Interp *in = r->in;
    Ref *ref = to.p;
    *out = value_unit();
    r->at = e;
    if (in->running && ref->epoch < in->level)
        return ref_write(in, ref, v);
    ref->value = v;
    return true;
}

static bool read_reference(Reference *r, const Expr *e, const Ref *ref, Value *out) {
    r->at = e;
    if (r->in->again && !ref_may_be_read(r->in, ref))
        return false;
    *out = ref->value;
    return true;
}

/* ---- forms ----------------------------------------------------------------------------------- */

/* Forms that are neither a binding, a choice nor a call. */
static bool eval_plain(Reference *r, Expr *e, const Local *env, Value *out) {
    VALUES(v, e->nargs + 1);
    switch (e->kind) {
    case EXPR_LIT:
        if (e->like && !ref_eval(r, e->like, env, NULL, v))
            return false;
        *out = value_of_literal(e, e->like ? dtype_of(*v) : dtype_of_literal(e));
        return true;
    case EXPR_CONST: *out = value_tensor(e->tensor); return true;
    case EXPR_STRING: *out = value_string(e->text, e->text_len); return true;
    case EXPR_VAR: *out = value_of_var(env, e->var); return true;
    case EXPR_GLOBAL: r->at = e; return interp_get_global(r->in, e->global, out);
    case EXPR_OP:
        *out = value_of_callee(r, &r->operators, e->op, expr_op(e->op, NULL, span_none()),
                               (uint32_t)e->op->nargs, attrs_defaults(e->op),
                               sym_intern(e->op->name));
        return true;
    case EXPR_CTOR:
        *out = e->ctor->nfields ? value_of_callee(r, &r->ctors, e->ctor, e, e->ctor->nfields, NULL,
                                                  e->ctor->name)
                                : value_data(e->ctor, NULL);
        return true;
    case EXPR_FN: *out = closure_of(r, e, env, NULL); return true;
    case EXPR_TUPLE:
        if (!eval_parts(r, e, e->nargs, env, v))
            return false;
        *out = value_tuple(v, e->nargs);
        return true;
    case EXPR_TENSOR: return eval_all(r, e->args, e->nargs, env, v) && make_tensor(r, e, v, out);
    case EXPR_ZERO:
        if (!value_zero(e->zero_type, out))
            BUG("Zero of a type that is not known: %s", type_text(e->zero_type));
        return true;
    default: break;
    }
    /* the others begin with the value of e->a */
    if (!ref_eval(r, e->a, env, NULL, v))
        return false;
    switch (e->kind) {
    case EXPR_PROJ:
        if (v->tag != VAL_TUPLE || !v->p || (uint32_t)e->index >= ((Tuple *)v->p)->n)
            BUG("projection %d of a value with tag %u", e->index, v->tag);
        *out = ((Tuple *)v->p)->items[e->index];
        return true;
    case EXPR_FIELD: data_field(e, *v, out); return true;
    case EXPR_UPDATE:
        if (!eval_parts(r, e, e->nargs, env, v + 1))
            return false;
        data_update(e, *v, v + 1, out);
        return true;
    case EXPR_INDEX: return eval_all(r, e->args, e->nargs, env, v + 1) && index_value(r, e, v, out);
    case EXPR_REF: {
        Ref *ref = mem_new(Ref);
        *ref = (Ref){.value = *v, .epoch = r->in->level};
        *out = (Value){.tag = VAL_REF, .p = ref};
        return true;
    }
    case EXPR_READ: return read_reference(r, e, v->p, out);
    case EXPR_WRITE:
        return ref_eval(r, e->b, env, NULL, v + 1) && write_reference(r, e, v[0], v[1], out);
    case EXPR_BANG:
        if (v->tag == VAL_REF)
            return read_reference(r, e, v->p, out);
        *out = value_bool(!v->i);
        return true;
    case EXPR_EQUAL:
        if (!ref_eval(r, e->b, env, NULL, v + 1))
            return false;
        r->at = e;
        return ref_compare_equal(r, e, v[0], v[1], e->negate, out);
    case EXPR_DIM_OF: return size_of_axis(r, e, *v, out);
    case EXPR_GRAD:
        if (e->mode != GRAD_VMAP)
            return derivative_of(r, (GradKind)e->mode, *v, out);
        *out = ref_vmap(r, *v);
        return true;
    default: BUG("form %d cannot be evaluated", (int)e->kind);
    }
}

static bool condition(Reference *r, Expr *e, const Local *env, bool *out) {
    Value v;
    if (!ref_eval(r, e, env, NULL, &v))
        return false;
    if (v.tag != VAL_SCALAR)
        BUG("a condition that is no bool");
    *out = v.i != 0;
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The part of a call that is left to do. */
typedef struct Next {
    Expr *e; /* NULL: the value is there */
    const Local *env;
} Next;

/* Whether the last field of data may be a tensor that a derivative follows. */
static bool owns_last(const Reference *r, const Expr *e) {
    return r->world && e->own_cells && type_resolve(e->args[e->nargs - 1]->type)->tag != TY_DATA;
}

/* C(a, …, z) in tail position: its cell is made first, and z is evaluated in its place. */
static bool begin_data(Reference *r, Expr *e, Next *next, Activation *own) {
    uint32_t n = e->nargs;
    VALUES(fields, n);
    if (!eval_parts(r, e, n - 1, next->env, fields))
        return false;
    fields[n - 1] = data_hole(e->args[n - 1]->type);
    value_chain_add(&own->data, value_data(e->a->ctor, fields));
    next->e = e->args[n - 1];
    return true;
}

/* f(args), taking the place of `own` where there is one. */
static bool call_function(Reference *r, const Expr *call, Value f, const Value *args, uint32_t n,
                          Activation *own, Next *next, Value *out) {
    next->e = NULL;
    if (!own)
        return ref_apply(r, call, f, args, n, out);
    const Closure *c = function_in(f);
    GradKind kind;
    Value of;
    if (ref_find_derivative(r, c, &kind, &of))
        return ref_apply(r, call, f, args, n, out);
    r->in->stats.calls++;
    if (is_internal(c->fn->span) && own->fn && !is_internal(own->fn->span))
        own->tail = call;
    own->fn = c->fn;
    if (!tell_call(r, c, args, n))
        return false;
    next->env = enter(r, c, args, n);
    next->e = written_function(c)->fn->body;
    return true;
}

/* The body of what derivative_of makes. */
static bool call_derivative(Reference *r, Expr *e, Activation *own, Next *next, Value *out) {
    GradKind kind = (GradKind)e->a->mode;
    Value f, *args = values_new(e->nargs);
    if (!ref_eval(r, e->a->a, next->env, NULL, &f) ||
        !eval_all(r, e->args, e->nargs, next->env, args))
        return false;
    if (ref_is_plain_call(r, kind)) {
        if (kind == GRAD_CUSTOM)
            f = ((Tuple *)f.p)->items[0];
        return call_function(r, e, f, args, e->nargs, own, next, out);
    }
    next->e = NULL;
    return ref_derivative(r, kind, f, args, e->nargs, out);
}

static bool eval_call(Reference *r, Expr *e, Activation *own, Next *next, Value *out) {
    const Local *env = next->env;
    next->e = NULL;
    switch (e->a->kind) {
    case EXPR_OP: return call_operator(r, e, env, out);
    case EXPR_BUILTIN:
        if (r->rule_attrs && !strcmp(e->a->symbol->text, "ad.attr"))
            return rule_attribute(r, e, out);
        return call_builtin(r, e, e->a->symbol, env, out);
    case EXPR_CTOR: {
        if (own && e->nargs && !owns_last(r, e))
            return begin_data(r, e, next, own);
        Value *fields = values_new(e->nargs);
        if (!eval_parts(r, e, e->nargs, env, fields))
            return false;
        *out = value_data(e->a->ctor, fields);
        return true;
    }
    case EXPR_GLOBAL:
        if (e->a->global->kind == GLOBAL_BUILTIN)
            return call_builtin(r, e, sym_intern(e->a->global->symbol), env, out);
        break;
    case EXPR_GRAD:
        if (e->drop)
            return call_derivative(r, e, own, next, out);
        break;
    default: break;
    }
    Value f = value_unit();
    VALUES(args, e->nargs);
    bool inline_literal = e->a->kind == EXPR_FN; /* a `let` of its parameters */
    if ((!inline_literal && !ref_eval(r, e->a, env, NULL, &f)) ||
        !eval_all(r, e->args, e->nargs, env, args))
        return false;
    r->at = e;
    if (!inline_literal)
        return call_function(r, e, f, args, e->nargs, own, next, out);
    for (uint32_t i = 0; i < e->nargs; i++)
        next->env = local_new(e->a->fn->params[i], args[i], next->env);
    next->e = e->a->fn->body;
    return true;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* One step: gives the value, or leaves in *next what has it. */
static bool step(Reference *r, Next *next, Activation *own, Value *out) {
    Expr *e = next->e;
    switch (e->kind) {
    case EXPR_LET: {
        Value v;
        if (e->rec)
            v = closure_of(r, e->a, next->env, e->var);
        else if (!ref_eval(r, e->a, next->env, NULL, &v))
            return false;
        if (e->var)
            next->env = local_new(e->var, v, next->env);
        next->e = e->body;
        return true;
    }
    case EXPR_IF: {
        bool holds;
        if (!condition(r, e->a, next->env, &holds))
            return false;
        next->e = holds ? e->b : e->c;
        return true;
    }
    case EXPR_MATCH: {
        Value v;
        if (!ref_eval(r, e->a, next->env, NULL, &v))
            return false;
        next->e = arm_for(r, e, v, &next->env);
        return next->e != NULL;
    }
    case EXPR_CHECK:
        for (uint32_t i = 0; i < e->nchecks; i++)
            if (!run_check(r, &e->checks[i], next->env))
                return false;
        next->e = e->a;
        return true;
    case EXPR_CALL: return eval_call(r, e, own, next, out);
    case EXPR_GRAD:
        next->e = ref_loop(r, e);
        if (next->e != e)
            return true;
        next->e = NULL;
        return eval_plain(r, e, next->env, out);
    default: next->e = NULL; return eval_plain(r, e, next->env, out);
    }
}

bool ref_eval(Reference *r, Expr *e, const Local *env, Activation *own, Value *out) {
    if (mem_stack_left() < SPARE) {
        Diag *d = ref_fail(r, e->span, DIAG_R0605,
                           "the recursion is too deep: its stack takes %d MB", LARGE_STACK >> 20);
        diag_add_fact(d,
                      "a call in tail position, whose value is the function's own, uses no stack");
        return false;
    }
    Next next = {e, env};
    while (next.e) {
        if (r->in->interrupt || !step(r, &next, own, out))
            return false;
    }
    if (own)
        *out = value_chain_end(&own->data, *out);
    return true;
}

/* ---- from outside ---------------------------------------------------------------------------- */

Reference *reference_new(Interp *in) {
    Reference *r = mem_new(Reference);
    r->in = in;
    return r;
}

typedef struct Run {
    Reference *r;
    Expr *e;
    Value f, *out;
    const Value *args;
    uint32_t n;
    bool ok;
} Run;

static void run(void *arg) {
    Run *run = arg;
    Reference *r = run->r;
    Activation item = {.caller = NULL};
    r->top = &item;
    run->ok = run->e ? ref_eval(r, run->e, NULL, NULL, run->out)
                     : ref_apply(r, NULL, run->f, run->args, run->n, run->out);
    if (!run->ok)
        trace(r);
    r->top = NULL;
}

/* Everything runs on one large stack; running out of memory resumes here. */
static EvalStatus run_guarded(Reference *r, Run *what) {
    Interp *in = r->in;
    jmp_buf *outer = in->escape, here;
    what->r = r;
    r->world = NULL;
    r->rule_attrs = NULL;
    r->at = NULL;
    r->traced = false;
    r->since = in->diags->list.len;
    in->escape = &here;
    if (setjmp(here) == 0)
        call_on_large_stack(in, run, what);
    else
        (void)stack_escaped(in);
    in->escape = outer;
    r->top = NULL;
    r->at = NULL;
    r->world = NULL;
    return what->ok ? EVAL_OK : in->interrupt ? EVAL_INTERRUPTED : EVAL_FAILED;
}

EvalStatus reference_eval(Reference *r, Expr *e, Value *out) {
    return run_guarded(r, &(Run){.e = e, .out = out});
}

EvalStatus reference_call(Reference *r, Value fn, const Value *args, uint32_t n, Value *out) {
    return run_guarded(r, &(Run){.f = fn, .args = args, .n = n, .out = out});
}

bool reference_try(Reference *r, Value fn, const Value *args, uint32_t n, Value *out) {
    Reference outer = *r;
    r->world = NULL;
    r->rule_attrs = NULL;
    r->unwatched++;
    r->since = r->in->diags->list.len;
    bool ok = ref_apply(r, NULL, fn, args, n, out);
    r->world = outer.world;
    r->rule_attrs = outer.rule_attrs;
    r->unwatched = outer.unwatched;
    r->since = outer.since;
    r->traced = outer.traced;
    r->top = outer.top;
    r->at = outer.at;
    return ok;
}
