/* SPDX-License-Identifier: Apache-2.0 */
/* A node is entered once. Where a shared node is met again, only its free variables are looked up in the scope.
 * Blocks are walked in loops; other nesting recurses, as inference did when it made the node. */
#include "types/core/check.h"

#include "base/mem.h"
#include "types/op.h"

typedef struct Checker {
    Map done;  /* Expr entered -> its VarVec of free variables once that was asked for, or itself */
    Map bound; /* Var that has a binder */
    Map scope; /* Var that is bound here */
    Map types; /* the types that hold no error type */
    Map pairs; /* the pairs of types that fit, by a hash of both */
    const char *wrong;
} Checker;

static void check(Checker *c, Expr *e);

#define BROKEN(c, ...) ((c)->wrong = (c)->wrong ? (c)->wrong : fmt_text(__VA_ARGS__))

/* ---- types ----------------------------------------------------------------------------------- */

typedef struct Search {
    Checker *c;
    bool found;
} Search;

static void find_error_type(void *ctx, Type *t) {
    Search *s = ctx;
    t = type_resolve(t);
    s->found |= t->tag == TY_ERROR;
    if (s->found || t->tag == TY_DTYPE || !map_enter(&s->c->types, t))
        return;
    type_each_part(t, find_error_type, s);
}

static bool is_sound(Checker *c, Type *t) {
    Search s = {c, !t};
    if (t)
        find_error_type(&s, t);
    return !s.found;
}

static bool is_open(const Type *t) {
    return t->tag == TY_VAR || t->tag == TY_PARAM || t->tag == TY_ANY || t->tag == TY_DERIV;
}

static bool fits(Checker *c, Type *a, Type *b);

static bool fits_all(Checker *c, Type **a, Type **b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!fits(c, a[i], b[i]))
            return false;
    return true;
}

/* Where a derivative calls, its tapes stand before the parameters (Note [Twins] in passes/grad.h). */
static uint32_t ntapes(Type *const *types, uint32_t n) {
    uint32_t i = 0;
    while (i < n && type_is_tape(types[i]))
        i++;
    return i;
}

static bool functions_fit(Checker *c, const Type *a, const Type *b) {
    uint32_t i = ntapes(a->args, a->nargs), j = ntapes(b->args, b->nargs);
    return a->nargs - i == b->nargs - j && fits_all(c, a->args + i, b->args + j, a->nargs - i) &&
           fits(c, a->fn.result, b->fn.result);
}

static bool parts_fit(Checker *c, Type *a, Type *b) {
    int64_t m, n;
    switch (a->tag) {
    case TY_TENSOR:
        return fits(c, a->tensor.shape, b->tensor.shape) &&
               fits(c, a->tensor.dtype, b->tensor.dtype);
    case TY_TUPLE:
    case TY_SHAPE: return a->nargs == b->nargs && fits_all(c, a->args, b->args, a->nargs);
    case TY_FN: return functions_fit(c, a, b);
    case TY_REF: return fits(c, a->elem, b->elem);
    case TY_DATA:
        return a->decl->name == b->decl->name && a->nargs == b->nargs &&
               fits_all(c, a->args, b->args, a->nargs);
    case TY_DTYPE: return a->dtype_value == b->dtype_value;
    case TY_DIM: return !type_get_int(a, &m) || !type_get_int(b, &n) || m == n;
    case TY_STRING:
    case TY_PURE:
    case TY_ALLOCATES: return true;
    case TY_VAR:
    case TY_PARAM:
    case TY_ANY:
    case TY_DERIV:
    case TY_ERROR: break;
    }
    return true;
}

/* Whether the type holds nothing, as () does. The cotangent of a tuple of integers is such. */
static bool is_nothing(Type *t) {
    t = type_resolve(t);
    if (t->tag != TY_TUPLE)
        return false;
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!is_nothing(t->args[i]))
            return false;
    return true;
}

static bool fits(Checker *c, Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    if (is_nothing(a) && is_nothing(b))
        return true;
    if (a == b || is_open(a) || is_open(b) || a->kind == KIND_EFFECT)
        return true;
    if (a->tag != b->tag)
        return false;
    const void *pair = (const void *)((uintptr_t)a * 31 ^ (uintptr_t)b);
    if (map_has(&c->pairs, pair))
        return true;
    map_set(&c->pairs, pair, a);
    return parts_fit(c, a, b);
}

/* Notes that `what`, which has the type of e, stands where `to` is wanted. */
static void want(Checker *c, const Expr *e, Type *found, Type *to, const char *what) {
    if (!c->wrong && found && to && !fits(c, found, to))
        BROKEN(c, "%s has the type %s, not %s", what, type_text(found), type_text(to));
    (void)e;
}

bool core_types_fit(Type *a, Type *b) {
    Checker c = {0};
    return fits(&c, a, b);
}

/* ---- scope ----------------------------------------------------------------------------------- */

static void open_var(Checker *c, Var *v) {
    if (!v)
        return;
    if (map_has(&c->bound, v))
        BROKEN(c, "the variable `%s` is bound twice", v->name->text);
    if (!is_sound(c, v->type))
        BROKEN(c, "the variable `%s` has no type", v->name->text);
    map_set(&c->bound, v, v);
    map_set(&c->scope, v, v);
}

static void close_var(Checker *c, const Var *v) {
    if (v)
        map_remove(&c->scope, v);
}

static void use_var(Checker *c, const Var *v) {
    if (!map_has(&c->scope, v))
        BROKEN(c, "the variable `%s` is used where it is not bound", v->name->text);
}

/* Checks a node that was entered before: its variables must be in scope here too. */
static void check_again(Checker *c, Expr *e) {
    VarVec *free = map_find(&c->done, e);
    if ((void *)free == (void *)e) {
        free = mem_new(VarVec);
        expr_free_vars(e, free);
        map_set(&c->done, e, free);
    }
    for (size_t i = 0; i < free->len; i++)
        use_var(c, free->data[i]);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void part(Checker *c, Expr *child, const char *what) {
    if (child)
        check(c, child);
    else
        BROKEN(c, "%s is missing", what);
}

static void parts(Checker *c, Expr **args, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        part(c, args[i], "an argument");
}

static void pattern(Checker *c, const Pattern *p, Type *scrutinee, bool open) {
    if (open)
        want(c, NULL, p->type, scrutinee, "a pattern");
    if (p->kind == PAT_VAR && open)
        open_var(c, p->var);
    if (p->kind == PAT_VAR && !open)
        close_var(c, p->var);
    if (p->kind == PAT_CTOR && p->nargs && p->nargs != p->ctor->nfields)
        BROKEN(c, "a pattern of `%s` has %u parts, not %u", p->ctor->name->text, p->nargs,
               p->ctor->nfields);
    if (p->kind == PAT_CTOR && p->ctor->decl->row)
        BROKEN(c, "a pattern of `%s` is of rows, which have no values", p->ctor->name->text);
    if (p->kind == PAT_CTOR && p->type && type_resolve(p->type)->tag == TY_DATA &&
        type_resolve(p->type)->decl->name != p->ctor->decl->name)
        BROKEN(c, "a pattern of `%s` stands for a %s", p->ctor->name->text, type_text(p->type));
    for (uint32_t i = 0; i < p->nargs; i++)
        pattern(c, p->args[i], p->args[i]->type, open);
}

static void check_match(Checker *c, Expr *e) {
    part(c, e->a, "what is matched");
    for (uint32_t i = 0; i < e->narms && !c->wrong; i++) {
        Arm *arm = &e->arms[i];
        pattern(c, arm->pattern, e->a->type, true);
        if (arm->guard) {
            check(c, arm->guard);
            want(c, e, arm->guard->type, type_scalar(DT_BOOL), "a guard");
        }
        part(c, arm->body, "an arm");
        if (!c->wrong)
            want(c, e, arm->body->type, e->type, "an arm");
        pattern(c, arm->pattern, e->a->type, false);
    }
}

/* Finds whether the body itself makes a reference. What inner functions do is their own effect. */
static void find_makes(void *ctx, Expr *e) {
    Search *s = ctx;
    for (; !s->found; e = e->body) {
        if (e->kind == EXPR_LET) {
            find_makes(ctx, e->a);
            continue;
        }
        s->found = e->kind == EXPR_REF;
        if (e->kind != EXPR_FN)
            expr_each_child(e, find_makes, s);
        return;
    }
}

static void check_fn(Checker *c, Expr *e) {
    const Fn *fn = e->fn;
    for (uint32_t i = 0; i < fn->nparams; i++)
        open_var(c, fn->params[i]);
    part(c, fn->body, "a function's body");
    for (uint32_t i = 0; i < fn->nparams; i++)
        close_var(c, fn->params[i]);
    Type *t = type_resolve(e->type);
    if (c->wrong || is_open(t))
        return;
    if (t->tag != TY_FN || t->nargs != fn->nparams) {
        BROKEN(c, "a function of %u parameters has the type %s", fn->nparams, type_text(t));
        return;
    }
    for (uint32_t i = 0; i < fn->nparams; i++)
        want(c, e, fn->params[i]->type, t->args[i], "a parameter");
    want(c, e, fn->body->type, t->fn.result, "a function's body");
    Search s = {c, false};
    if (type_resolve(t->fn.effect)->tag == TY_PURE)
        find_makes(&s, fn->body);
    if (s.found)
        BROKEN(c, "a function makes a reference, which its type denies");
}

/* ---- calls ----------------------------------------------------------------------------------- */

Type *core_type_of_call(const Expr *call, const char **wrong) {
    const Op *op = call->a->op;
    *wrong = NULL;
    if (!op->relation || op->foreign || call->nsizes ||
        (call->attrs && attrs_have_refs(call->attrs)))
        return NULL;
    for (uint32_t i = 0; i < call->nargs; i++)
        if (!type_is_closed(call->args[i]->type))
            return NULL;
    Diags diags = {0};
    Solver *s = solver_new(&diags);
    Type **types = mem_new_n(Type *, call->nargs + 1);
    for (uint32_t i = 0; i < call->nargs; i++)
        types[i] = call->args[i]->type;
    types[call->nargs] = solver_var(s, KIND_TYPE);
    Relation *r = solver_post(s, op->relation, types, call->nargs + 1, call->attrs, call->span);
    r->op = op;
    if (solver_run(s))
        return types[call->nargs];
    *wrong = diags.list.len ? diags.list.data[0]->message : "its relation fails";
    return NULL;
}

static void check_relation(Checker *c, Expr *e) {
    if (!type_is_closed(e->type))
        return;
    const char *wrong;
    Type *result = core_type_of_call(e, &wrong);
    if (wrong)
        BROKEN(c, "`%s` does not take these: %s", e->a->op->name, wrong);
    else if (result)
        want(c, e, e->type, result, e->a->op->name);
}

static void check_call(Checker *c, Expr *e) {
    part(c, e->a, "what is called");
    parts(c, e->args, e->nargs);
    parts(c, e->sizes, e->nsizes);
    if (c->wrong)
        return;
    if (e->a->kind == EXPR_OP) {
        check_relation(c, e);
        return;
    }
    if (e->a->kind == EXPR_CTOR && e->a->ctor->decl->row)
        BROKEN(c, "`%s` is of rows, which have no values", e->a->ctor->name->text);
    if (e->a->kind == EXPR_CTOR && e->nargs != e->a->ctor->nfields)
        BROKEN(c, "`%s` is given %u fields, not %u", e->a->ctor->name->text, e->nargs,
               e->a->ctor->nfields);
    Type *t = type_resolve(e->a->type);
    if (is_open(t) || c->wrong)
        return;
    if (t->tag != TY_FN) {
        BROKEN(c, "what is called has the type %s", type_text(t));
        return;
    }
    Type **types = mem_new_n(Type *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++)
        types[i] = e->args[i]->type;
    uint32_t skip = ntapes(types, e->nargs), own = ntapes(t->args, t->nargs);
    if (e->nargs - skip != t->nargs - own) {
        BROKEN(c, "a call has %u arguments, its function takes %u", e->nargs, t->nargs);
        return;
    }
    for (uint32_t i = 0; skip + i < e->nargs; i++)
        want(c, e, types[skip + i], t->args[own + i], "an argument");
    want(c, e, e->type, t->fn.result, "a call");
}

/* ---- all forms ------------------------------------------------------------------------------- */

static void check_tuple(Checker *c, Expr *e) {
    parts(c, e->args, e->nargs);
    Type *t = type_resolve(e->type);
    if (c->wrong || is_open(t))
        return;
    if (t->tag != TY_TUPLE || t->nargs != e->nargs) {
        BROKEN(c, "a tuple of %u has the type %s", e->nargs, type_text(t));
        return;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        want(c, e, e->args[i]->type, t->args[i], "a part of a tuple");
}

static void check_proj(Checker *c, Expr *e) {
    part(c, e->a, "a tuple");
    Type *t = c->wrong ? e->type : type_resolve(e->a->type);
    if (c->wrong || is_open(t))
        return;
    if (t->tag != TY_TUPLE || e->index < 0 || (uint32_t)e->index >= t->nargs)
        BROKEN(c, "part %d of a %s", e->index, type_text(t));
    else
        want(c, e, t->args[e->index], e->type, "a part of a tuple");
}

static void check_reference(Checker *c, Expr *e) {
    part(c, e->a, "a reference");
    Type *of = c->wrong ? NULL : e->kind == EXPR_REF ? e->type : e->a->type;
    Type *t = of ? type_resolve(of) : NULL;
    if (e->kind == EXPR_WRITE)
        part(c, e->b, "what is written");
    if (c->wrong || is_open(t))
        return;
    if (t->tag != TY_REF)
        BROKEN(c, "a %s stands for a reference", type_text(t));
    else
        want(c, e,
             e->kind == EXPR_REF     ? e->a->type
             : e->kind == EXPR_WRITE ? e->b->type
                                     : e->type,
             t->elem, "what a reference holds");
}

static void check_literal(Checker *c, Expr *e) {
    Type *t = type_resolve(e->type);
    DType d;
    uint32_t rank;
    Type **dims;
    if (e->like)
        check(c, e->like);
    if (is_open(t))
        return;
    if (t->tag != TY_TENSOR || (type_get_rank(t, &rank, &dims) && rank != 0))
        BROKEN(c, "a literal has the type %s", type_text(t));
    else if (e->is_float && type_get_dtype(t, &d) && !dtype_is_float(d) && !e->like)
        BROKEN(c, "a literal of a float has the type %s", type_text(t));
}

static void check_constant(Checker *c, Expr *e) {
    Type *t = type_resolve(e->type), **dims;
    DType d;
    uint32_t rank;
    int64_t n;
    if (is_open(t))
        return;
    bool right = t->tag == TY_TENSOR && (!type_get_dtype(t, &d) || d == e->tensor->dtype);
    if (right && type_get_rank(t, &rank, &dims)) {
        right = rank == (uint32_t)e->tensor->rank;
        for (uint32_t i = 0; right && i < rank; i++)
            right = !type_get_int(dims[i], &n) || n == e->tensor->shape[i];
    }
    if (!right)
        BROKEN(c, "a constant tensor has the type %s", type_text(t));
}

static void check_choice(Checker *c, Expr *e) {
    part(c, e->a, "a condition");
    part(c, e->b, "a branch");
    part(c, e->c, "a branch");
    if (c->wrong)
        return;
    want(c, e, e->a->type, type_scalar(DT_BOOL), "a condition");
    want(c, e, e->b->type, e->type, "a branch");
    want(c, e, e->c->type, e->type, "a branch");
}

static void check_form(Checker *c, Expr *e) {
    switch (e->kind) {
    case EXPR_LIT: check_literal(c, e); return;
    case EXPR_CONST: check_constant(c, e); return;
    case EXPR_VAR:
        use_var(c, e->var);
        want(c, e, e->type, e->var->type, "a variable");
        return;
    case EXPR_GLOBAL:
        if (e->global->scheme)
            want(c, e, e->type, e->global->scheme->type, "a global");
        return;
    case EXPR_CALL: check_call(c, e); return;
    case EXPR_FN: check_fn(c, e); return;
    case EXPR_IF: check_choice(c, e); return;
    case EXPR_MATCH: check_match(c, e); return;
    case EXPR_TUPLE: check_tuple(c, e); return;
    case EXPR_PROJ: check_proj(c, e); return;
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_WRITE: check_reference(c, e); return;
    case EXPR_UPDATE:
    case EXPR_INDEX:
        part(c, e->a, "what is indexed or changed");
        parts(c, e->args, e->nargs);
        return;
    case EXPR_TENSOR: parts(c, e->args, e->nargs); return;
    case EXPR_GRAD:
        part(c, e->a, "an operand");
        if (!c->wrong && e->a->kind == EXPR_FN && !e->a->fn->base && e->a->fn->nparams &&
            type_is_tape(e->a->fn->params[0]->type))
            BROKEN(c, "a derivative of what is one already");
        return;
    case EXPR_FIELD:
    case EXPR_BANG:
    case EXPR_DIM_OF: part(c, e->a, "an operand"); return;
    case EXPR_EQUAL:
        part(c, e->a, "an operand");
        part(c, e->b, "an operand");
        return;
    case EXPR_CHECK:
        for (uint32_t i = 0; i < e->nchecks; i++) {
            part(c, e->checks[i].found, "what is checked");
            part(c, e->checks[i].expected, "what is checked");
        }
        part(c, e->a, "what is checked");
        if (!c->wrong)
            want(c, e, e->a->type, e->type, "what is checked");
        return;
    case EXPR_ERROR: BROKEN(c, "an expression that was already refused"); return;
    case EXPR_STRING: want(c, e, e->type, type_string(), "a text"); return;
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_BUILTIN:
    case EXPR_ZERO:
    case EXPR_LET: return;
    }
}

static void enter(Checker *c, Expr *e) {
    map_set(&c->done, e, e);
    if (!is_sound(c, e->type))
        BROKEN(c, "a node of kind %d has no type", (int)e->kind);
}

/* Binds in order, checks what follows, and closes all. Returns the value of the block. */
static void check_block(Checker *c, Expr *e) {
    VEC(const Var *) opened = {0};
    Expr *first = e;
    for (; e->kind == EXPR_LET && !c->wrong; e = e->body) {
        if (e != first) {
            if (map_has(&c->done, e))
                break;
            enter(c, e);
        }
        if (e->rec && (!e->a || e->a->kind != EXPR_FN))
            BROKEN(c, "a recursive binding of what is no function");
        if (e->rec)
            open_var(c, e->var);
        part(c, e->a, "a binding's value");
        if (!e->rec)
            open_var(c, e->var);
        if (e->var && !c->wrong)
            want(c, e, e->a->type, e->var->type, "a binding's value");
        vec_push(&opened, e->var);
        if (!e->body) {
            BROKEN(c, "what follows a binding is missing");
            break;
        }
    }
    if (!c->wrong) {
        check(c, e);
        want(c, first, e->type, first->type, "a block");
    }
    for (size_t i = 0; i < opened.len; i++)
        close_var(c, opened.data[i]);
}

static void check(Checker *c, Expr *e) {
    if (c->wrong)
        return;
    if (map_has(&c->done, e)) {
        check_again(c, e);
        return;
    }
    enter(c, e);
    if (c->wrong)
        return;
    if (e->kind == EXPR_LET)
        check_block(c, e);
    else
        check_form(c, e);
}

const char *core_check(Expr *e, const VarVec *given) {
    Checker c = {0};
    Map *const maps[] = {&c.done, &c.bound, &c.scope, &c.types, &c.pairs};
    enum { MAPS = sizeof maps / sizeof *maps };
    MapRoom rooms[MAPS];
    for (int i = 0; i < MAPS; i++)
        map_begin(maps[i], &rooms[i]);
    for (size_t i = 0; given && i < given->len; i++)
        map_set(&c.scope, given->data[i], given->data[i]);
    check(&c, e);
    for (int i = 0; i < MAPS; i++)
        map_end(maps[i]);
    return c.wrong;
}
