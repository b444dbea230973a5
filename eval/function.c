/* SPDX-License-Identifier: Apache-2.0 */
/* Functions as values: closures, the twins of their code, and what stands for an operator, a
 * constructor or a builtin where it is not called but named.
 *
 * Those become ordinary function literals, `fn (x1, …, xn) { op(x1, …, xn) }`, so that they have
 * twins as any function (Note [Twins] in passes/grad.h).
 *
 * Retargeting: a closure made by code of one path may be called by code of another. Its captured
 * variables serve both; only the code differs, so the twin's code is found from the closure's, and
 * remembered there. */
#include "eval/held.h"
#include "eval/machine.h"
#include "passes/grad.h"
#include "passes/reverse/reverse.h"

#include <string.h>

const Symbol *path_of_fn(const Expr *fn) {
    const Symbol *path = fn->fn->path;
    return path && path->len ? path : NULL;
}

static Code *code_new(Expr *fn) {
    Code *code = mem_new(Code);
    code->fn = fn;
    code_begin(code);
    code->internal = expr_is_internal(fn);
    return code;
}

Code *code_of_fn(Interp *in, Expr *fn) {
    Fn *f = fn->fn;
    Code *known = weak_find(&in->codes, fn);
    if (known)
        return known;
    Code *code = code_new(fn);
    code->nparams = f->nparams;
    code->nslots = f->nparams; /* the arguments are roots while the body is being resolved */
    code->path = path_of_fn(fn);
    if (f->base && f->base != fn) {
        code->base = code_of_fn(in, f->base);
        code->captured = code->base->captured;
        code->ncaptured = code->base->ncaptured;
        vec_push(&code->base->twins, code);
    } else {
        VarVec free = {0};
        expr_free_vars(fn, &free);
        if (in->options.verify_types)
            vec_push(&free, NULL);
        code->captured = free.data;
        code->ncaptured = (uint32_t)free.len;
    }
    weak_set(&in->codes, fn, code);
    return code;
}

Code *code_of_expr(Interp *in, Expr *e) {
    (void)in;
    Code *code = code_new(e);
    code->item = true;
    return code;
}

Closure *closure_alloc(Code *code) {
    Closure *c = mem_alloc(sizeof(Closure) + code->ncaptured * sizeof(Value));
    c->fn = code->fn;
    c->code = code;
    c->ncaptured = code->ncaptured;
    return c;
}

Value closure_new(Code *code) { return (Value){.tag = VAL_CLOSURE, .p = closure_alloc(code)}; }

/* ---- twins ----------------------------------------------------------------------------------- */

Code *code_twin(Interp *in, Code *code, const Symbol *path) {
    if (code->path == path)
        return code;
    if (code->made && !path && reverse_is_current(code->from))
        return code->made;
    if (code->twin && code->twin->path == path)
        return code->twin;
    Code *base = code->base ? code->base : code, *twin = path ? NULL : base;
    for (size_t i = 0; i < base->twins.len && !twin; i++)
        if (base->twins.data[i]->path == path)
            twin = base->twins.data[i];
    if (!twin) {
        in->passes.diags = in->diags;
        Expr *fn = grad_twin_at(&in->passes, base->fn, path);
        if (!fn)
            return NULL;
        twin = code_of_fn(in, fn);
    }
    code->twin = twin;
    return twin;
}

const Symbol *call_path(const Code *code, const Expr *call) {
    if (!call->mode && !call->drop)
        return code->path;
    const char *path = code->path ? code->path->text : "";
    size_t drop = call->drop, len = strlen(path);
    path += drop < len ? drop : len;
    static const char letters[AD_MODES] = {[AD_REVERSE] = 'r', [AD_FORWARD] = 'f'};
    if (call->mode)
        path = fmt_text("%c%s", letters[call->mode - 1], path);
    return *path ? sym_intern(path) : NULL;
}

/* ---- derivatives ----------------------------------------------------------------------------- */

enum {
    CAPTURED_DEPTH =
        6, /* of closures that captured closures, of which it is looked at which they are */
    CAPTURED_KINDS = 16 /* sets of captured functions, for each of which a derivative is made */
};

/* The function of a closure with those that it captured, itself or in data; NULL where it captured none. base: its function literal. */
static struct Known *known_of_closure(Interp *in, const Closure *c, Expr *base, int depth) {
    if (depth == CAPTURED_DEPTH || (c->code->made && !reverse_is_current(c->code->from)))
        return NULL;
    uint32_t n = c->ncaptured, self = n;
    bool any = depth > 0;
    struct Known **captured = mem_new_n(struct Known *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const Closure *inner = c->captured[i].p;
        if (c->captured[i].tag != VAL_CLOSURE)
            continue;
        any = true;
        if (inner == c) {
            self = i;
            continue;
        }
        Expr *fn = inner->fn->fn->base ? inner->fn->fn->base : inner->fn;
        fn = inner->code->made ? inner->code->made->fn : fn;
        captured[i] = known_of_closure(in, inner, fn, depth + 1);
    }
    const HeldFunctions *held = depth ? NULL : held_by_closure(in, c, code_of_fn(in, base));
    if (!any && !held)
        return NULL;
    struct Known *k = reverse_known(base, captured, self);
    reverse_known_hold(k, held);
    return k;
}

static Code *derive_for(Interp *in, GradKind kind, Expr *base, struct Known *given, Code *code) {
    Code *derived = mem_new(Code);
    *derived = *code;
    derived->base = code;
    derived->twins.data = NULL;
    derived->twins.len = derived->twins.cap = 0;
    derived->twin = NULL;
    derived->path = sym_intern("derived");
    ReverseCode *from = reverse_get(&in->passes, kind, true, base, given);
    derived->from = from;
    derived->made = from->fn ? code_of_fn(in, from->fn) : NULL;
    in->stats.derived += derived->made != NULL;
    return derived;
}

/* What stands for a derivative as code of the closure `run` of the function `base`, with the template `code` behind
 * it. NULL where the derivative is not taken as code. Where no one code serves all that the closure may capture, there
 * is one for each set of functions that it did. */
static Code *code_derived(Interp *in, GradKind kind, Expr *base, const Closure *run, Code *code) {
    if (kind == GRAD_CUSTOM || kind == GRAD_CHECKPOINT || kind == GRAD_VMAP)
        return NULL;
    Code *of = code_of_fn(in, base), *any = of->derived[kind];
    if (!any || !reverse_is_current(any->from))
        any = of->derived[kind] = derive_for(in, kind, base, NULL, code);
    struct Known *given = any->from->lacks_function ? known_of_closure(in, run, base, 0) : NULL;
    if (any->made || !given)
        return any->made ? any : NULL;
    Code **at = &any->next;
    for (int i = 0; *at && i < CAPTURED_KINDS; i++) {
        Code *known = *at;
        if (!reverse_is_current(known->from)) {
            *at = known->next;
            continue;
        }
        if (reverse_known_is(known->from->given, given))
            return known->made ? known : NULL;
        at = &known->next;
    }
    if (*at)
        return NULL;
    *at = derive_for(in, kind, base, given, code);
    return (*at)->made ? *at : NULL;
}

/* The function that a derivative became, for a derivative of it. */
static Expr *derivative_to_differentiate(Interp *in, GradKind kind, Code *derived) {
    const ReverseCode *from = derived->from;
    if (kind == GRAD_JVP || !from->merges)
        return derived->made->fn;
    if (!derived->unmerged)
        derived->unmerged = reverse_get(&in->passes, from->kind, false, from->source, from->given);
    return derived->unmerged->fn;
}

/* The template is `fn (f) { fn (x1, …, xn) { … } }`; what it gives is the inner function, whose
 * only free variable is f. For custom_grad f is a pair of functions. */
bool grad_of(Interp *in, GradKind kind, bool is_left, Value f, Value *out) {
    Value run = kind == GRAD_CUSTOM && f.tag == VAL_TUPLE ? ((Tuple *)f.p)->items[0] : f;
    if (run.tag != VAL_CLOSURE)
        BUG("the derivative of a value that is no function (tag %u)", run.tag);
    Expr *fn = ((Closure *)run.p)->fn;
    Expr *base = fn->fn->base ? fn->fn->base : fn;
    in->passes.diags = in->diags;
    Expr *template = grad_template(&in->passes, kind, base->fn->nparams);
    if (!template)
        return false;
    Expr *inner = template->fn->body;
    if (inner->kind != EXPR_FN)
        BUG("the template of a derivative gives no function");
    Code *code = code_of_fn(in, inner);
    /* The code of a derivative holds rules with the types of their definitions, of which one function has several. */
    bool twins = is_left || in->options.twins || in->options.verify_types;
    Code *of = ((Closure *)run.p)->code;
    if (of->made &&
        reverse_is_current(of->from)) /* a derivative that is code is differentiated as that code */
        base = derivative_to_differentiate(in, kind, of);
    Code *derived = twins || !base ? NULL : code_derived(in, kind, base, run.p, code);
    Closure *c = closure_alloc(derived ? derived : code);
    for (uint32_t i = 0; i < c->ncaptured; i++) {
        if (!code->captured[i])
            continue;
        if (code->captured[i] != template->fn->params[0])
            BUG("the template of a derivative captures `%s`", code->captured[i]->name->text);
        c->captured[i] = f;
    }
    *out = (Value){.tag = VAL_CLOSURE, .p = c};
    return true;
}

/* ---- eta expansion --------------------------------------------------------------------------- */

/* A function of n arguments of any types, and of that result where it is known. */
static Type *some_fn_type(uint32_t n, Type *result) {
    Type **params = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        params[i] = type_param(sym_intern("a"), KIND_TYPE);
    return type_fn(params, n, result ? result : type_param(sym_intern("b"), KIND_TYPE),
                   type_allocates());
}

Expr *eta_expand(Expr *callee, uint32_t n, const Attrs *attrs, Type *result, const Symbol *name) {
    Span span = callee->span;
    Type *type = callee->type ? type_resolve(callee->type) : NULL;
    if (!type || type->tag != TY_FN || type->nargs != n) {
        type = some_fn_type(n, result);
        callee = expr_copy(callee);
        callee->type = type;
    }
    Var **params = mem_new_n(Var *, n + 1);
    Expr **args = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        params[i] = var_new(sym_intern("x"), type->args[i], span);
        args[i] = expr_var(params[i], span);
    }
    Expr *body = expr_call(callee, args, n, attrs, type->fn.result, span);
    Expr *fn = expr_fn(params, n, body, type, span);
    fn->fn->name = name;
    return fn;
}

static Value eta(Interp *in, Expr *callee, uint32_t n, const Attrs *attrs, Type *result,
                 const Symbol *name) {
    return closure_new(code_of_fn(in, eta_expand(callee, n, attrs, result, name)));
}

Value value_of_op(Interp *in, const Op *op, Span span) {
    Closure *known = map_find(&in->op_values, op);
    if (known)
        return (Value){.tag = VAL_CLOSURE, .p = known};
    (void)span;
    Value v = eta(in, expr_op(op, NULL, span_none()), (uint32_t)op->nargs, attrs_defaults(op), NULL,
                  sym_intern(op->name));
    map_set(&in->op_values, op, v.p);
    return v;
}

Value value_of_ctor(Interp *in, Ctor *ctor, Span span) {
    if (ctor->nfields == 0)
        return value_data(ctor, NULL);
    Closure *known = map_find(&in->ctor_values, ctor);
    if (known)
        return (Value){.tag = VAL_CLOSURE, .p = known};
    Expr *e = expr_new(EXPR_CTOR, NULL, span);
    e->ctor = ctor;
    Value v = eta(in, e, ctor->nfields, NULL, NULL, ctor->name);
    map_set(&in->ctor_values, ctor, v.p);
    return v;
}

Expr *builtin_function(Global *g) {
    Type *t = g->scheme ? type_resolve(g->scheme->type) : NULL;
    const Builtin *b = builtin_find(sym_intern(g->symbol));
    if (!b)
        BUG("no builtin `%s`", g->symbol);
    uint32_t n = t && t->tag == TY_FN ? t->nargs : b->nargs > 0 ? (uint32_t)b->nargs : 0;
    Type *result = t && t->tag == TY_FN ? t->fn.result : NULL;
    return eta_expand(expr_global(g, NULL, g->span), n, NULL, result, g->name);
}

/* See Note [Calls in a last field]. */
Code *fill_code(void) {
    enum { CALL_AT = FILL_VALUE << 4 };
    static const Instr instrs[] = {
        {CODE_CALL, 0, CALL_AT, 0, CALL_AT},
        {CODE_FILL, 0, 0, 0, 0},
        {CODE_RETURN, 0, 0, FILL_WHOLE << 4 | BASE_SLOT, 0},
    };
    enum { N = sizeof instrs / sizeof *instrs };
    Code *c = mem_new(Code);
    c->instrs = instrs;
    c->ninstrs = N;
    c->nslots = FILL_SLOTS;
    c->internal = true;
    c->origin = mem_new_n(Expr *, N);
    for (int i = 0; i < N; i++)
        c->origin[i] = expr_bool(true, span_none());
    return c;
}
