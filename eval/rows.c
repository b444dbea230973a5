/* SPDX-License-Identifier: Apache-2.0 */
/* `vmap.rows(f, (x, …))`: f at all rows at once, where there is code for that (Note [All rows at once] in passes/vmap.h);
 * and `vmap.plan(f, (x, …))`, which gives that code as a function, for a derivative to follow (Note [Loops of vmap]).
 * `vmap.has_value(all, (x, …))` is asked of such code that a derivative knows by itself.
 *
 * The code is made for one function, what it captures, and the constructors, dtypes and sizes of a row; not for the number of rows. A
 * captured function belongs to it, and what that captures likewise; a captured tensor is a parameter of the code, so
 * another one of its sizes takes the same code. Where something stands in the way, that is kept too.
 *
 * The code does all rows step by step. So it may meet an error that is not the first in the order of rows, or one that is
 * none for the loop: in a branch that no row takes. Whatever it ends with but a value is therefore forgotten, and the loop
 * runs. A function that fails often is not tried any more, unless a derivative follows: what that adds up in which order would
 * depend on what ran before. */
#include "eval/ad.h"
#include "eval/builtin_all.h"
#include "eval/leaf_map.h"
#include "eval/machine.h"
#include "eval/reference/reference.h"
#include "passes/build.h"
#include "passes/grad.h"
#include "passes/reverse/reverse.h"
#include "passes/subst.h"
#include "passes/vmap.h"

#include <string.h>

enum {
    MOST = 24, /* codes of one function: then the oldest makes room */
    MADE =
        100, /* codes made of one function: a program that meets ever new sizes runs loops from then on */
    FAILURES = 3,     /* after which vmap.rows does not try code again */
    MOST_PARTS = 512, /* of the data in one argument: the code has a variable for each tensor */
};

typedef struct RowsCode {
    const char *key;
    VEC(const Expr *) literals; /* whose addresses stand in the key */
    Code *code;                 /* NULL: the loop runs */
    uint32_t ngiven;            /* of its first parameters: captured by `open`, */
    Expr *open;                 /* the same function, of the rows alone; made when asked for */
    RowForm **forms;            /* of the arguments, whose constructors stand in the key */
    DependencyVec deps;
    int failures;
} RowsCode;

struct RowsFamily {
    VEC(RowsCode *) members;
    size_t oldest, made;
};

/* ---- what a function captures ------------------------------------------------------------------ */

/* A walk over a closure and the closures that it captures, always in the same order. */
typedef struct Walk {
    Interp *in;
    bool makes;   /* the source is made, too */
    bool follows; /* derivatives follow what is captured */
    Str key;
    VEC(const Expr *) literals;
    VEC(Value) given; /* what the code takes before the rows */
    VmapSource source;
    bool failed;
} Walk;

static Type *type_of_value(Value v, int from_axis) {
    v = value_primal(v);
    if (v.tag == VAL_SCALAR)
        return from_axis ? NULL : type_scalar((DType)v.aux);
    if (v.tag == VAL_TENSOR) {
        const Tensor *t = v.p;
        uint32_t rank = (uint32_t)(t->rank - from_axis);
        Type **dims = mem_new_n(Type *, rank + 1);
        for (uint32_t i = 0; i < rank; i++)
            dims[i] = type_dim_int(t->shape[i + (uint32_t)from_axis], NULL);
        return type_tensor(type_shape(dims, rank), type_dtype(t->dtype));
    }
    if (v.tag != VAL_TUPLE)
        return NULL;
    const Tuple *t = v.p;
    uint32_t n = t ? t->n : 0;
    Type **parts = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (!(parts[i] = type_of_value(t->items[i], from_axis)))
            return NULL;
    return type_tuple(parts, n);
}

/* Writes what type_of_value gives; false where that is NULL. */
static bool write_type(Str *out, Value v, int from_axis) {
    v = value_primal(v);
    if (v.tag == VAL_SCALAR) {
        str_printf(out, "s%u ", v.aux);
        return !from_axis;
    }
    if (v.tag == VAL_TENSOR) {
        const Tensor *t = v.p;
        str_printf(out, "t%d", (int)t->dtype);
        for (int i = from_axis; i < t->rank; i++)
            str_printf(out, ",%lld", (long long)t->shape[i]);
        str_add_char(out, ' ');
        return true;
    }
    if (v.tag != VAL_TUPLE)
        return false;
    const Tuple *t = v.p;
    str_printf(out, "(%u ", t ? t->n : 0);
    for (uint32_t i = 0; t && i < t->n; i++)
        if (!write_type(out, t->items[i], from_axis))
            return false;
    return true;
}

/* What a row of an argument is made of; NULL where a tensor in it has no first axis, or there are too many parts. Its types
 * are found by row_forms_settle. */
static RowForm *form_of_value(Value v, uint32_t *parts) {
    Type *type = type_of_value(v, 1);
    if (type || ++*parts > MOST_PARTS)
        return type ? row_form_leaf(type, false) : NULL;
    v = value_primal(v);
    switch ((ValueTag)v.tag) {
    case VAL_STRING: return row_form_leaf(type_string(), true);
    case VAL_CLOSURE:
    case VAL_REF:
    case VAL_BUILTIN: return row_form_leaf(NULL, true);
    case VAL_TUPLE:
    case VAL_CTOR: break;
    case VAL_SCALAR:
    case VAL_TENSOR:
    case VAL_DUAL:
    case VAL_ABSENT: return NULL;
    }
    uint32_t n = value_count(v);
    RowForm **forms = mem_new_n(RowForm *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (!(forms[i] = form_of_value(value_part(v, i), parts)))
            return NULL;
    return row_form_parts(v.tag == VAL_CTOR ? data_ctor(v) : NULL, forms, n);
}

/* Writes what form_of_value gives of it. */
static bool write_form(Str *out, Value v, uint32_t *parts) {
    size_t before = out->len;
    if (write_type(out, v, 1))
        return true;
    out->len = before;
    v = value_primal(v);
    if (++*parts > MOST_PARTS || v.tag == VAL_SCALAR || v.tag == VAL_TENSOR || v.tag == VAL_ABSENT)
        return false;
    if (v.tag == VAL_CTOR)
        str_printf(out, "c%p ", (const void *)data_ctor(v));
    else
        str_printf(out, "%s%u ", v.tag == VAL_TUPLE ? "(" : "w", value_count(v));
    for (uint32_t i = 0, n = value_count(v); i < n; i++)
        if (!write_form(out, value_part(v, i), parts))
            return false;
    return true;
}

static bool write_forms(Str *out, const Tuple *xs) {
    for (uint32_t i = 0; i < xs->n; i++) {
        uint32_t parts = 0;
        if (!write_form(out, xs->items[i], &parts))
            return false;
    }
    return true;
}

static Expr *walk_closure(Walk *w, const Closure *c, RowForm *const *rows, uint32_t n, int depth);
static Expr *walk_captured(Walk *w, Value v, const Var *var, int depth);

/* Whether the value is a record whose fields are worth captures of their own: the sizes of tensors in it are then known. */
static bool is_record_of_parts(const Walk *w, Value v, const Var *var, int depth) {
    enum { MOST_FIELDS = 16 };
    const Type *t = type_resolve(var->type);
    if (v.tag != VAL_CTOR || w->follows || depth >= VMAP_DEEPEST)
        return false;
    const Ctor *ctor = data_ctor(v);
    const TypeDecl *decl = ctor->decl;
    return decl->nctors == 1 && data_size(v) > 0 && data_size(v) <= MOST_FIELDS &&
           t->tag == TY_DATA && t->decl == decl && t->nargs == decl->nparams;
}

/* `let i = I(a, b)` for a captured record, with what it holds captured in its place. */
static Expr *walk_record(Walk *w, Value v, const Var *var, int depth) {
    Ctor *ctor = data_ctor(v);
    const Type *t = type_resolve(var->type);
    Expr **fields = mem_new_n(Expr *, data_size(v) + 1);
    Expr *of = expr_new(EXPR_CTOR, var->type, var->span);
    of->ctor = ctor;
    str_printf(&w->key, "c%p ", (const void *)ctor);
    vec_push(&w->literals, of); /* it keeps the constructor, whose address stands in the key */
    for (uint32_t i = 0; i < data_size(v) && !w->failed; i++) {
        Type *type = type_substitute(ctor->fields[i], ctor->decl->params, t->args, t->nargs);
        const Symbol *name = ctor->field_names ? ctor->field_names[i] : sym_intern("part");
        fields[i] = walk_captured(w, data_get(v, i), var_new(name, type, var->span), depth + 1);
    }
    if (w->failed || !w->makes)
        return NULL;
    return vmap_source_link(&w->source, var, batch_construct(ctor, fields, var->type, var->span));
}

/* What stands for a captured variable in the code. */
static Expr *walk_captured(Walk *w, Value v, const Var *var, int depth) {
    if (v.tag == VAL_CLOSURE) {
        Expr *fn = walk_closure(w, v.p, NULL, 0, depth + 1);
        return fn && w->makes ? vmap_source_link(&w->source, var, fn) : fn;
    }
    if (is_record_of_parts(w, v, var, depth))
        return walk_record(w, v, var, depth);
    size_t before = w->key.len;
    bool known = (v.tag != VAL_DUAL || w->follows) && v.tag != VAL_ABSENT;
    if (known && !write_type(&w->key, v, 0)) {
        w->key.len = before;
        str_printf(&w->key, "o%u ", v.tag);
    }
    w->failed |= !known;
    vec_push(&w->given, v);
    if (!w->makes)
        return NULL;
    Type *type = type_of_value(v, 0);
    Var *given = var_new(var->name, type ? type : var->type, var->span);
    vec_push(&w->source.given, given);
    return expr_var(given, var->span);
}

static Expr *derivative_of(Walk *w, GradKind kind, const Closure *c, RowForm *const *rows,
                           uint32_t n, int depth) {
    uint32_t at = 0;
    while (at < c->ncaptured && !c->code->captured[at])
        at++;
    if (at == c->ncaptured || c->captured[at].tag != VAL_CLOSURE || kind == GRAD_CUSTOM ||
        kind == GRAD_CHECKPOINT) {
        w->failed = true;
        return NULL;
    }
    str_printf(&w->key, "d%d ", (int)kind);
    Expr *fn = walk_closure(w, c->captured[at].p, rows, n, depth + 1);
    if (!fn || !w->makes)
        return fn;
    return vmap_source_derivative(kind, fn);
}

/* Whether a function is one that the reference evaluator made of a derivative. */
static bool is_marked(const Expr *fn) {
    const Expr *body = fn->fn->body;
    return body->kind == EXPR_CALL && body->drop;
}

static Expr *walk_closure(Walk *w, const Closure *c, RowForm *const *rows, uint32_t n, int depth) {
    Expr *fn = c->fn->fn->base ? c->fn->fn->base : c->fn;
    const Code *code = code_of_fn(w->in, fn); /* a closure of the reference evaluator has none */
    GradKind kind;
    bool derives = grad_is_template(&w->in->passes, fn, &kind);
    if (c->code && c->code->from) {
        derives = true;
        kind = c->code->from->kind;
    }
    if (depth > VMAP_DEEPEST || (w->follows && (derives || is_marked(fn)))) {
        w->failed = true;
        return NULL;
    }
    if (derives)
        return derivative_of(w, kind, c, rows, n, depth);
    str_printf(&w->key, "f%p ", (const void *)fn);
    vec_push(&w->literals, fn);
    VarVec captured = {0};
    VEC(Expr *) are = {0};
    for (uint32_t i = 0; i < c->ncaptured && !w->failed; i++) {
        Var *var = code->captured[i];
        if (!var)
            continue;
        w->failed |= c->captured[i].tag == VAL_CLOSURE && c->captured[i].p == c;
        Expr *is = w->failed ? NULL : walk_captured(w, c->captured[i], var, depth);
        if (w->makes && is) {
            vec_push(&captured, var);
            vec_push(&are, is);
        }
    }
    str_add_char(&w->key, ')');
    if (w->failed || !w->makes)
        return w->failed ? NULL : fn;
    return vmap_source_literal(&w->in->passes, fn, &captured, are.data, rows, n);
}

/* ---- codes ------------------------------------------------------------------------------------- */

typedef struct Making {
    Interp *in;
    const BuiltinCall *call;
    const Closure *f;
    RowsCode *made;
    uint32_t n;
    bool follows;
} Making;

static void make_code(void *arg) {
    Making *m = arg;
    Walk w = {.in = m->in, .makes = true, .follows = m->follows};
    BatchRefusal refusal;
    m->in->passes.diags = m->in->diags;
    w.source.fn = walk_closure(&w, m->f, m->made->forms, m->n, 0);
    if (!w.source.fn || w.failed)
        return;
    w.source.rows = m->made->forms;
    w.source.follows = m->follows;
    w.source.n = m->n;
    w.source.span = m->call->span;
    Expr *fn = vmap_at_all_rows(&m->in->passes, &w.source, &m->made->deps, &refusal);
    m->made->ngiven = (uint32_t)w.source.given.len;
    if (fn)
        m->made->code = code_of_fn(m->in, fn);
}

static RowsCode *find_code(struct RowsFamily *family, const char *key) {
    for (size_t i = 0; i < family->members.len; i++) {
        RowsCode *c = family->members.data[i];
        if (strcmp(c->key, key) == 0 && dependencies_hold(&c->deps))
            return c;
    }
    return NULL;
}

static RowsCode *code_for(const BuiltinCall *call, const Closure *f, const Tuple *xs, Walk *w) {
    enum { SPARE = 1 << 20 };
    Interp *in = call->in;
    Code *base = code_of_fn(in, f->fn->fn->base ? f->fn->fn->base : f->fn);
    if (!base->rows)
        base->rows = mem_new(struct RowsFamily);
    RowsCode *code = find_code(base->rows, str_text(&w->key));
    if (code || base->rows->made == MADE)
        return code;
    base->rows->made++;
    code = mem_new(RowsCode);
    code->key = str_text(&w->key);
    for (size_t i = 0; i < w->literals.len; i++)
        vec_push(&code->literals, w->literals.data[i]);
    Making m = {in, call, f, code, xs->n, w->follows};
    code->forms = mem_new_n(RowForm *, xs->n + 1);
    for (uint32_t i = 0; i < xs->n; i++) {
        uint32_t parts = 0;
        code->forms[i] = form_of_value(xs->items[i], &parts);
    }
    bool fits = row_forms_settle(code->forms, xs->n);
    if (fits && mem_stack_left() > SPARE)
        make_code(&m);
    else if (fits)
        call_on_large_stack(in, make_code, &m);
    if (base->rows->members.len < MOST)
        vec_push(&base->rows->members, code);
    else
        base->rows->members.data[base->rows->oldest++ % MOST] = code;
    return code;
}

/* ---- running ----------------------------------------------------------------------------------- */

/* Runs the code of the closure, and says nothing of errors. */
static EvalStatus run_unheard(Interp *in, Closure *c, Code *of, const Value *args, uint32_t n,
                              Value *out) {
    Diags *heard = in->diags, unheard = {0};
    Code *code = in->code;
    const Instr *pc = in->pc;
    interp_set_diags(in, &unheard);
    EvalStatus status = machine_run(in, c, of, args, n, out);
    interp_set_diags(in, heard);
    in->code = code;
    in->pc = pc;
    return status;
}

/* False: it has no value. */
static bool run_code(Interp *in, RowsCode *rows, const Value *args, uint32_t n, Value *out) {
    EvalStatus status = run_unheard(in, closure_alloc(rows->code), rows->code, args, n, out);
    rows->failures += status == EVAL_FAILED;
    return status == EVAL_OK;
}

/* vmap.rows(f, (x1, …)): (True, what f gives at all rows), or (False, ()): the loop is to run. */
bool builtin_vmap_rows(const BuiltinCall *call, Value *out) {
    enum { SPARE = 512 << 10 };
    Interp *in = call->in;
    Value answer[2] = {value_bool(false), value_unit()};
    const Tuple *xs = call->args[1].p;
    const Closure *f = call->args[0].p;
    *out = value_tuple(answer, 2);
    if (call->args[0].tag != VAL_CLOSURE || !xs || mem_stack_left() < SPARE)
        return true;
    Walk w = {.in = in};
    if (!write_forms(&w.key, xs))
        return true;
    (void)walk_closure(&w, f, NULL, 0, 0);
    if (w.failed)
        return true;
    RowsCode *code = code_for(call, f, xs, &w);
    if (!code || !code->code || code->failures >= FAILURES)
        return true;
    for (uint32_t i = 0; i < xs->n; i++)
        vec_push(&w.given, xs->items[i]);
    if (run_code(in, code, w.given.data, (uint32_t)w.given.len, &answer[1]))
        answer[0] = value_bool(true);
    else
        answer[1] = value_unit();
    *out = value_tuple(answer, 2);
    return !in->interrupt;
}

/* ---- where a derivative follows ------------------------------------------------------------------ */

static Value primal_of(LeafMap *m, Value x, Value y) {
    (void)m, (void)y;
    return value_primal(x);
}

/* The values as they are outside of all derivatives; false where one cannot be told from them. */
static bool strip_all(const BuiltinCall *call, const Value *from, uint32_t n, Value *to) {
    for (uint32_t i = 0; i < n; i++) {
        LeafMap m = {.call = call, .leaf = primal_of, .keep_other = true};
        if (!leaf_map_run(&m, from[i], value_unit(), &to[i]) ||
            value_holds_dual(to[i], 0, UINT64_MAX))
            return false;
    }
    return true;
}

/* Whether the code has a value for these, so that it has one where a derivative follows it, too. */
static bool code_has_value(Interp *in, RowsCode *code, const Value *args, uint32_t n) {
    Value ignored;
    if (!in->reference)
        return run_unheard(in, closure_alloc(code->code), code->code, args, n, &ignored) == EVAL_OK;
    Diags *heard = in->diags, unheard = {0};
    interp_set_diags(in, &unheard);
    bool ok = reference_try(in->reference, reference_function(in->reference, code->code->fn), args,
                            n, &ignored);
    interp_set_diags(in, heard);
    return ok;
}

/* The code as a function of the rows, which captures the other values that it reads. */
static Code *open_code(Interp *in, RowsCode *code) {
    const Fn *whole = code->code->fn->fn;
    if (!code->open) {
        Build b = {code->code->fn->span};
        code->open = b_fn(&b, "vmap", whole->params + code->ngiven, whole->nparams - code->ngiven,
                          whole->body);
    }
    return code_of_fn(in, code->open);
}

/* Which of these values the code captures as number i. */
static uint32_t given_of(const RowsCode *code, const Code *open, uint32_t i) {
    uint32_t k = 0;
    while (k < code->ngiven && code->code->fn->fn->params[k] != open->captured[i])
        k++;
    return k;
}

static Value open_function(const RowsCode *code, Code *open, const Value *given) {
    Closure *c = closure_alloc(open);
    for (uint32_t i = 0; i < open->ncaptured; i++) {
        uint32_t k = given_of(code, open, i);
        if (k < code->ngiven)
            c->captured[i] = given[k];
    }
    return (Value){.tag = VAL_CLOSURE, .p = c};
}

/* The values as the code takes them outside of all derivatives: strip_all, but for those that it does not read. Such a one,
 * as a reference that is only named, may hold what a derivative follows. */
static bool strip_given(const BuiltinCall *call, const RowsCode *code, const Code *open,
                        const Value *given, Value *to) {
    for (uint32_t k = 0; k < code->ngiven; k++)
        to[k] = given[k];
    for (uint32_t i = 0; i < open->ncaptured; i++) {
        uint32_t k = given_of(code, open, i);
        if (k < code->ngiven && !strip_all(call, given + k, 1, to + k))
            return false;
    }
    return true;
}

/* vmap.plan(f, (x1, …)): (True, f at all rows, a function of these) where a derivative follows a value in them and there
 * is such code; or (False, ()): the loop is to run. Both engines ask here, so the derivative is of the same code. */
bool builtin_vmap_plan(const BuiltinCall *call, Value *out) {
    enum { SPARE = 512 << 10 };
    Interp *in = call->in;
    Value answer[2] = {value_bool(false), value_unit()};
    const Tuple *xs = call->args[1].p;
    *out = value_tuple(answer, 2);
    bool follows = in->running && (value_holds_dual(call->args[0], 0, UINT64_MAX) ||
                                   value_holds_dual(call->args[1], 0, UINT64_MAX));
    if (!follows || call->args[0].tag != VAL_CLOSURE || !xs || mem_stack_left() < SPARE)
        return true;
    Walk w = {.in = in, .follows = true};
    str_add(&w.key, "followed ");
    if (!write_forms(&w.key, xs))
        return true;
    (void)walk_closure(&w, call->args[0].p, NULL, 0, 0);
    if (w.failed)
        return true;
    RowsCode *code = code_for(call, call->args[0].p, xs, &w);
    if (!code || !code->code)
        return true;
    uint32_t n = code->ngiven + xs->n;
    Value *plain = mem_new_n(Value, n + 1);
    Code *open = open_code(in, code);
    if (strip_given(call, code, open, w.given.data, plain) &&
        strip_all(call, xs->items, xs->n, plain + code->ngiven) &&
        code_has_value(in, code, plain, n)) {
        answer[0] = value_bool(true);
        answer[1] = open_function(code, open, w.given.data);
        *out = value_tuple(answer, 2);
    }
    return !in->interrupt;
}

/* The function as it is outside of all derivatives; NULL where that cannot be told. */
static Closure *primal_function(const BuiltinCall *call, const Closure *c) {
    Expr *fn = c->fn->fn->base ? c->fn->fn->base : c->fn;
    Code *code = code_of_fn(call->in, fn);
    Closure *made = closure_alloc(code);
    for (uint32_t i = 0; i < code->ncaptured; i++)
        if (code->captured[i] && !strip_all(call, c->captured + i, 1, made->captured + i))
            return NULL;
    return made;
}

/* vmap.has_value(all, (x1, …)): whether the function, f at all rows, has a value for these. */
bool builtin_vmap_has_value(const BuiltinCall *call, Value *out) {
    enum { SPARE = 512 << 10 };
    Interp *in = call->in;
    const Tuple *xs = call->args[1].p;
    Closure *all = primal_function(call, call->args[0].p);
    Value *plain = mem_new_n(Value, xs->n + 1), ignored;
    bool ok = all && mem_stack_left() >= SPARE && strip_all(call, xs->items, xs->n, plain) &&
              run_unheard(in, all, all->code, plain, xs->n, &ignored) == EVAL_OK;
    *out = value_bool(ok);
    return !in->interrupt;
}
