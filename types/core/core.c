/* SPDX-License-Identifier: Apache-2.0 */
/* Construction and traversal of core expressions. Let-spines are loops: programs of 90,000 bindings
 * are ordinary. */
#include "types/core/core.h"

#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "types/op.h"
#include "types/type/dim.h"

/* ---- construction ---------------------------------------------------------------------------- */

Var *var_new(const Symbol *name, Type *type, Span span) {
    static void *cells;
    Var *v = mem_cell(&cells, sizeof *v);
    v->name = name;
    v->type = type;
    v->span = span;
    v->id = type_next_id();
    return v;
}

static Expr *expr_room(void) {
    static void *cells;
    return mem_cell(&cells, sizeof(Expr));
}

Expr *expr_new(ExprKind kind, Type *type, Span span) {
    Expr *e = expr_room();
    e->kind = kind;
    e->type = type;
    e->span = span_inside(span);
    return e;
}

/* Arithmetic of sizes, and what computes it without wrapping. */
static const Op *const size_ops[][2] = {{&op_add, &op_checked_add},
                                        {&op_subtract, &op_checked_subtract},
                                        {&op_multiply, &op_checked_multiply}};

/* The row of size_ops that e calls, or -1. */
static int size_op_of(const Expr *e) {
    bool of_op = e->kind == EXPR_CALL && e->a->kind == EXPR_OP && e->nargs == 2;
    for (int i = 0; of_op && i < 3; i++)
        if (e->a->op == size_ops[i][0] || e->a->op == size_ops[i][1])
            return i;
    return -1;
}

bool expr_is_integer(const Expr *e) {
    Type *t = type_resolve(e->type);
    uint32_t rank;
    Type **dims;
    return t->tag == TY_TENSOR && type_get_rank(t, &rank, &dims) && rank == 0 &&
           !(type_dtype_set(t->tensor.dtype) & ~DTS_INT);
}

Type *var_size(Var *v) {
    if (!v->size)
        v->size = type_any_value(v->name, v->id, NULL);
    return v->size;
}

/* floor_divide, minimum and maximum of sizes. */
static Type *size_of_call(const Op *op, Type *a, Type *b) {
    int64_t n;
    if (op == &op_floor_divide)
        return type_get_int(b, &n) && n > 0 ? dim_floordiv(a, b) : NULL;
    return op == &op_minimum ? dim_min(a, b) : op == &op_maximum ? dim_max(a, b) : NULL;
}

Type *expr_size(const Expr *e) {
    if (e->kind == EXPR_LIT)
        return e->is_float ? NULL : type_dim_int(e->i, NULL);
    if (e->kind == EXPR_DIM_OF)
        return e->zero_type;
    if (e->kind == EXPR_VAR)
        return expr_is_integer(e) ? var_size(e->var) : NULL;
    if (e->kind == EXPR_GLOBAL)
        return expr_is_integer(e) ? e->global->size : NULL;
    bool of_op = e->kind == EXPR_CALL && e->a->kind == EXPR_OP && e->nargs == 2;
    Type *a = of_op ? expr_size(e->args[0]) : NULL, *b = a ? expr_size(e->args[1]) : NULL;
    if (!b)
        return NULL;
    switch (size_op_of(e)) {
    case 0: return dim_add(a, b);
    case 1: return dim_sub(a, b);
    case 2: return dim_mul(a, b);
    }
    return size_of_call(e->a->op, a, b);
}

void expr_check_size(Expr *e) {
    int op = size_op_of(e);
    if (op < 0)
        return;
    e->a->op = size_ops[op][1];
    for (uint32_t i = 0; i < e->nargs; i++)
        expr_check_size(e->args[i]);
}

Expr *expr_var(Var *v, Span span) {
    Expr *e = expr_new(EXPR_VAR, v->type, span);
    e->var = v;
    return e;
}

Expr *expr_global(Global *g, Type *type, Span span) {
    Expr *e = expr_new(EXPR_GLOBAL, type, span);
    e->global = g;
    return e;
}

Expr *expr_op(const struct Op *op, Type *type, Span span) {
    Expr *e = expr_new(EXPR_OP, type, span);
    e->op = op;
    return e;
}

Expr *expr_int(int64_t i, DType dtype, Span span) {
    Expr *e = expr_new(EXPR_LIT, type_scalar(dtype), span);
    e->i = i;
    return e;
}

Expr *expr_float(double f, DType dtype, Span span) {
    Expr *e = expr_new(EXPR_LIT, type_scalar(dtype), span);
    e->f = f;
    e->is_float = true;
    return e;
}

Expr *expr_bool(bool b, Span span) { return expr_int(b, DT_BOOL, span); }

Expr *expr_unit(Span span) { return expr_new(EXPR_TUPLE, type_unit(), span); }

static void set_args(Expr *e, Expr **args, uint32_t n) {
    e->nargs = n;
    e->args = n ? mem_new_n(Expr *, n) : NULL;
    for (uint32_t i = 0; i < n; i++)
        e->args[i] = args[i];
}

Expr *expr_call(Expr *callee, Expr **args, uint32_t n, const Attrs *attrs, Type *type, Span span) {
    Expr *e = expr_new(EXPR_CALL, type, span);
    e->a = callee;
    e->attrs = attrs;
    set_args(e, args, n);
    return e;
}

/* The type of a callee that takes these arguments. */
static Type *type_of_callee(Expr **args, uint32_t n, Type *result) {
    Type **params = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        params[i] = args[i]->type;
    return type_fn(params, n, result, type_allocates());
}

Expr *expr_call_builtin(const char *name, Expr **args, uint32_t n, Type *type, Span span) {
    Expr *callee = expr_new(EXPR_BUILTIN, type_of_callee(args, n, type), span);
    callee->symbol = sym_intern(name);
    return expr_call(callee, args, n, NULL, type, span);
}

Expr *expr_call_op(const struct Op *op, Expr **args, uint32_t n, const Attrs *attrs, Type *type,
                   Span span) {
    return expr_call(expr_op(op, type_of_callee(args, n, type), span), args, n, attrs, type, span);
}

Expr *expr_fn(Var **params, uint32_t n, Expr *body, Type *type, Span span) {
    Expr *e = expr_new(EXPR_FN, type, span);
    e->fn = mem_new(Fn);
    e->fn->nparams = n;
    e->fn->params = n ? mem_new_n(Var *, n) : NULL;
    for (uint32_t i = 0; i < n; i++)
        e->fn->params[i] = params[i];
    e->fn->body = body;
    return e;
}

Expr *expr_let(Var *v, Expr *value, Expr *body) {
    Expr *e = expr_new(EXPR_LET, body->type, span_join(value->span, body->span));
    e->var = v;
    e->a = value;
    e->body = body;
    return e;
}

Expr *expr_if(Expr *c, Expr *t, Expr *f, Type *type, Span span) {
    Expr *e = expr_new(EXPR_IF, type, span);
    e->a = c;
    e->b = t;
    e->c = f;
    return e;
}

Expr *expr_tuple(Expr **args, uint32_t n, Span span) {
    Type **types = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = args[i]->type;
    Expr *e = expr_new(EXPR_TUPLE, type_tuple(types, n), span);
    set_args(e, args, n);
    return e;
}

Expr *expr_proj(Expr *tuple, uint32_t index, Type *type, Span span) {
    Expr *e = expr_new(EXPR_PROJ, type, span);
    e->a = tuple;
    e->index = (int32_t)index;
    return e;
}

Expr *expr_copy(const Expr *e) {
    Expr *copy = expr_room();
    *copy = *e;
    return copy;
}

/* ---- children -------------------------------------------------------------------------------- */

/* The i-th place of a child of e, in order of evaluation, which may hold NULL; NULL past the last. */
static Expr **find_slot(Expr *e, uint32_t i) {
    switch (e->kind) {
    case EXPR_LIT:
    case EXPR_ZERO: return i == 0 ? &e->like : NULL;
    case EXPR_CONST:
    case EXPR_STRING:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_BUILTIN:
    case EXPR_ERROR: return NULL;
    case EXPR_CALL:
        if (i == 0)
            return &e->a;
        return i <= e->nargs               ? &e->args[i - 1]
               : i <= e->nargs + e->nsizes ? &e->sizes[i - e->nargs - 1]
                                           : NULL;
    case EXPR_FN: return i == 0 ? &e->fn->body : NULL;
    case EXPR_LET: return i == 0 ? &e->a : i == 1 ? &e->body : NULL;
    case EXPR_IF: return i == 0 ? &e->a : i == 1 ? &e->b : i == 2 ? &e->c : NULL;
    case EXPR_WRITE:
    case EXPR_EQUAL: return i == 0 ? &e->a : i == 1 ? &e->b : NULL;
    case EXPR_MATCH:
        if (i == 0)
            return &e->a;
        if ((i - 1) / 2 >= e->narms)
            return NULL;
        return i % 2 ? &e->arms[(i - 1) / 2].guard : &e->arms[(i - 1) / 2].body;
    case EXPR_TUPLE:
    case EXPR_TENSOR: return i < e->nargs ? &e->args[i] : NULL;
    case EXPR_UPDATE:
    case EXPR_INDEX: return i == 0 ? &e->a : i <= e->nargs ? &e->args[i - 1] : NULL;
    case EXPR_PROJ:
    case EXPR_FIELD:
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_BANG:
    case EXPR_DIM_OF:
    case EXPR_GRAD: return i == 0 ? &e->a : NULL;
    case EXPR_CHECK:
        if (i / 2 < e->nchecks)
            return i % 2 ? &e->checks[i / 2].expected : &e->checks[i / 2].found;
        return i == 2 * e->nchecks ? &e->a : NULL;
    }
    return NULL;
}

void expr_each_child(Expr *e, void (*fn)(void *ctx, Expr *child), void *ctx) {
    Expr **slot;
    if (e->kind == EXPR_CALL && !e->nsizes) { /* as most are */
        fn(ctx, e->a);
        for (uint32_t i = 0; i < e->nargs; i++)
            fn(ctx, e->args[i]);
        return;
    }
    for (uint32_t i = 0; (slot = find_slot(e, i)); i++)
        if (*slot)
            fn(ctx, *slot);
}

bool expr_is_leaf(const Expr *e) {
    Expr **slot;
    if (e->kind == EXPR_VAR || e->kind == EXPR_CALL || e->kind == EXPR_LET) /* as most are */
        return e->kind == EXPR_VAR;
    for (uint32_t i = 0; (slot = find_slot((Expr *)(uintptr_t)e, i)); i++)
        if (*slot)
            return false;
    return true;
}

uint64_t walk_new(void) {
    static uint64_t last;
    return ++last;
}

typedef struct Any {
    bool (*holds)(void *ctx, const Expr *node);
    void *ctx;
    uint64_t walk;
    bool found;
} Any;

static void find_any(void *ctx, Expr *e) {
    Any *any = ctx;
    for (; !any->found && walk_enter(any->walk, e); e = e->body) {
        any->found = any->holds(any->ctx, e);
        if (e->kind != EXPR_LET) {
            expr_each_child(e, find_any, any);
            return;
        }
        find_any(any, e->a);
    }
}

bool expr_any(Expr *e, bool (*holds)(void *ctx, const Expr *node), void *ctx) {
    Any any = {.holds = holds, .ctx = ctx, .walk = walk_new()};
    find_any(&any, e);
    return any.found;
}

typedef struct Handed {
    Map *vars;
    uint64_t walk;
} Handed;

static void find_handed(void *ctx, Expr *e) {
    Handed *h = ctx;
    for (; e->kind == EXPR_LET && walk_enter(h->walk, e); e = e->body)
        find_handed(h, e->a);
    if (e->kind == EXPR_VAR)
        map_enter(h->vars, e->var);
    if (expr_is_leaf(e) || !walk_enter(h->walk, e))
        return;
    bool is_call = e->kind == EXPR_CALL && e->a->kind == EXPR_VAR && !e->mode && !e->drop;
    for (uint32_t i = 0; is_call && i < e->nargs; i++)
        find_handed(h, e->args[i]);
    if (!is_call)
        expr_each_child(e, find_handed, h);
}

void expr_find_handed(Expr *e, Map *handed) {
    Handed h = {handed, walk_new()};
    find_handed(&h, e);
}

bool expr_mentions(Expr *e, const Var *v) {
    VarVec free = {0};
    expr_free_vars(e, &free);
    for (size_t i = 0; i < free.len; i++)
        if (free.data[i] == v)
            return true;
    return false;
}

bool expr_calls_builtin(const Expr *e, const char *name) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_BUILTIN &&
           strcmp(e->a->symbol->text, name) == 0;
}

bool expr_is_vmap_of_literal(const Expr *e) {
    return e->kind == EXPR_GRAD && e->mode == GRAD_VMAP && e->a->kind == EXPR_FN;
}

Expr *expr_fn_with_body(const Expr *fn, Expr *body) {
    Expr *copy = expr_copy(fn);
    copy->fn = mem_new(Fn);
    *copy->fn = *fn->fn;
    copy->fn->body = body;
    return copy;
}

/* A copy whose slots are its own. A changed function is another function: it has no twins. */
static Expr *copy_with_slots(const Expr *e) {
    Expr *copy = expr_copy(e);
    if (e->nargs)
        set_args(copy, e->args, e->nargs);
    if (e->nsizes) {
        copy->sizes = mem_new_n(Expr *, e->nsizes);
        for (uint32_t i = 0; i < e->nsizes; i++)
            copy->sizes[i] = e->sizes[i];
    }
    if (e->kind == EXPR_FN) {
        copy->fn = mem_new(Fn);
        *copy->fn = *e->fn;
        for (int mode = 0; mode < AD_MODES; mode++)
            copy->fn->own_twins[mode] = NULL;
        copy->fn->base = copy->fn->of = NULL;
        copy->fn->written = NULL;
        copy->fn->path = NULL;
    }
    if (e->kind == EXPR_MATCH) {
        copy->arms = mem_new_n(Arm, e->narms);
        for (uint32_t i = 0; i < e->narms; i++)
            copy->arms[i] = e->arms[i];
    }
    if (e->kind == EXPR_CHECK) {
        copy->checks = mem_new_n(Check, e->nchecks);
        for (uint32_t i = 0; i < e->nchecks; i++)
            copy->checks[i] = e->checks[i];
    }
    return copy;
}

Expr *expr_map_children(Expr *e, Expr *(*fn)(void *ctx, Expr *child), void *ctx) {
    Expr *copy = NULL, **slot;
    for (uint32_t i = 0; (slot = find_slot(e, i)); i++) {
        Expr *child = *slot ? fn(ctx, *slot) : NULL;
        if (child != *slot && !copy)
            copy = copy_with_slots(e);
        if (copy)
            *find_slot(copy, i) = child;
    }
    return copy ? copy : e;
}

Expr *expr_map_block(Expr *e, Expr *(*fn)(void *ctx, Expr *child), void *ctx) {
    VEC(Expr *) links = {0};
    VEC(Expr *) values = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        vec_push(&links, e);
        vec_push(&values, fn(ctx, e->a));
    }
    Expr *result = fn(ctx, e);
    while (links.len) {
        Expr *link = vec_pop(&links), *value = vec_pop(&values);
        VEC(Expr *) before = {0};
        for (; link->rec && value->kind == EXPR_LET; value = value->body)
            vec_push(&before, expr_copy(value));
        if (value != link->a || result != link->body) {
            link = expr_copy(link);
            link->a = value;
            link->body = result;
        }
        for (result = link; before.len; result = link) {
            link = vec_pop(&before);
            link->body = result;
            link->type = result->type;
        }
    }
    return result;
}

/* ---- free variables -------------------------------------------------------------------------- */

typedef struct FreeVars {
    uint64_t walk;
    VarVec *out;
} FreeVars;

/* The variable with what this walk knows of it. */
static Var *look_at(const FreeVars *f, Var *v) {
    if (v->walk != f->walk) {
        v->walk = f->walk;
        v->open = v->is_found = 0;
    }
    return v;
}

static void bind(const FreeVars *f, Var *v, int by) {
    if (v)
        look_at(f, v)->open += (unsigned)by;
}

static void bind_pattern(const FreeVars *f, const Pattern *p, int by) {
    if (p->kind == PAT_VAR)
        bind(f, p->var, by);
    for (uint32_t i = 0; i < p->nargs; i++)
        bind_pattern(f, p->args[i], by);
}

static void visit(FreeVars *f, Expr *e);

static void visit_child(void *ctx, Expr *e) { visit(ctx, e); }

static void visit_let(FreeVars *f, Expr *first) {
    Expr *e = first;
    do {
        if (e->rec)
            bind(f, e->var, 1);
        visit(f, e->a);
        if (!e->rec)
            bind(f, e->var, 1);
        e = e->body;
    } while (e->kind == EXPR_LET && walk_enter(f->walk, e));
    const Expr *end = e;
    if (e->kind != EXPR_LET)
        visit(f, e);
    for (e = first; e != end; e = e->body)
        bind(f, e->var, -1);
}

static void visit(FreeVars *f, Expr *e) {
    if (e->kind == EXPR_VAR) {
        Var *v = look_at(f, e->var);
        if (!v->open && !v->is_found)
            vec_push(f->out, v);
        v->is_found |= !v->open;
        return;
    }
    if (expr_is_leaf(e) || !walk_enter(f->walk, e))
        return;
    switch (e->kind) {
    case EXPR_FN:
        for (uint32_t i = 0; i < e->fn->nparams; i++)
            bind(f, e->fn->params[i], 1);
        visit(f, e->fn->body);
        for (uint32_t i = 0; i < e->fn->nparams; i++)
            bind(f, e->fn->params[i], -1);
        return;
    case EXPR_LET: visit_let(f, e); return;
    case EXPR_MATCH:
        visit(f, e->a);
        for (uint32_t i = 0; i < e->narms; i++) {
            bind_pattern(f, e->arms[i].pattern, 1);
            if (e->arms[i].guard)
                visit(f, e->arms[i].guard);
            visit(f, e->arms[i].body);
            bind_pattern(f, e->arms[i].pattern, -1);
        }
        return;
    case EXPR_LIT:
    case EXPR_CONST:
    case EXPR_STRING:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_BUILTIN:
    case EXPR_VAR:
    case EXPR_CALL:
    case EXPR_IF:
    case EXPR_TUPLE:
    case EXPR_PROJ:
    case EXPR_FIELD:
    case EXPR_UPDATE:
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_WRITE:
    case EXPR_BANG:
    case EXPR_EQUAL:
    case EXPR_TENSOR:
    case EXPR_INDEX:
    case EXPR_DIM_OF:
    case EXPR_ZERO:
    case EXPR_CHECK:
    case EXPR_GRAD:
    case EXPR_ERROR: expr_each_child(e, visit_child, f); return;
    }
}

void expr_free_vars(Expr *e, VarVec *out) {
    FreeVars f = {walk_new(), out};
    visit(&f, e);
}

/* ---- tail position --------------------------------------------------------------------------- */

typedef VEC(Expr *) ExprList;

static void mark_call(Expr *e, ExprList *pending) {
    if (e->a->kind == EXPR_FN) {
        vec_push(pending, e->a->fn->body);
    } else if (e->a->kind == EXPR_CTOR) {
        while (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR && e->nargs)
            e = e->args[e->nargs - 1];
        if (e->kind == EXPR_CALL)
            e->tail = TAIL_IN_FIELD;
    } else {
        e->tail = TAIL_CALL;
    }
}

static void mark_function(Expr *fn) {
    ExprList pending = {0};
    Map seen;
    MapRoom room;
    map_begin(&seen, &room);
    vec_push(&pending, fn->fn->body);
    while (pending.len) {
        Expr *e = vec_pop(&pending);
        if (expr_is_leaf(e) || !map_enter(&seen, e))
            continue;
        if (e->kind == EXPR_LET) {
            vec_push(&pending, e->body);
        } else if (e->kind == EXPR_CHECK) {
            vec_push(&pending, e->a);
        } else if (e->kind == EXPR_IF) {
            vec_push(&pending, e->b);
            vec_push(&pending, e->c);
        } else if (e->kind == EXPR_MATCH) {
            for (uint32_t i = 0; i < e->narms; i++)
                vec_push(&pending, e->arms[i].body);
        } else if (e->kind == EXPR_CALL) {
            mark_call(e, &pending);
        }
    }
    map_end(&seen);
}

static void mark_all(void *ctx, Expr *e) {
    Map *seen = ctx;
    for (;; e = e->body) {
        if (expr_is_leaf(e) || !map_enter(seen, e))
            return;
        if (e->kind != EXPR_LET)
            break;
        mark_all(seen, e->a);
    }
    if (e->kind == EXPR_FN) {
        if (e->fn->tails_marked) /* and all within */
            return;
        e->fn->tails_marked = true;
        mark_function(e);
    }
    if (e->kind == EXPR_CALL && e->a->kind == EXPR_FN) {
        /* called at once, it is no function of its own: its calls end what is around it, if anything */
        mark_all(seen, e->a->fn->body);
        for (uint32_t i = 0; i < e->nargs; i++)
            mark_all(seen, e->args[i]);
        return;
    }
    expr_each_child(e, mark_all, ctx);
}

bool fn_has_frames(const Fn *fn, const Var *param) {
    for (size_t i = 0; i < fn->frames.len; i++)
        if (fn->frames.data[i] == param)
            return true;
    return false;
}

void expr_mark_tails(Expr *e) {
    Map seen;
    MapRoom room;
    map_begin(&seen, &room);
    mark_all(&seen, e);
    map_end(&seen);
}

bool expr_is_tail(const Expr *e, TailKind kind) {
    bool tail = e->tail == kind;
    for (const Inlined *i = e->inlined; i && tail; i = i->outer)
        tail = i->tail;
    return tail;
}

bool expr_is_internal(const Expr *e) {
    return !e->span.source || (e->span.source->flags & SOURCE_INTERNAL);
}

/* ---- derivatives ----------------------------------------------------------------------------- */

static const char *const grad_names[GRAD_KINDS] = {[GRAD_GRAD] = "grad",
                                                   [GRAD_VJP] = "vjp",
                                                   [GRAD_JVP] = "jvp",
                                                   [GRAD_DERIV] = "deriv",
                                                   [GRAD_CUSTOM] = "custom_grad",
                                                   [GRAD_CHECKPOINT] = "checkpoint",
                                                   [GRAD_VMAP] = "vmap"};

static const Symbol *tape_name(void) { return sym_intern("<tape>"); }

Type *type_tape(void) {
    TypeDecl *decl = mem_new(TypeDecl);
    decl->name = tape_name();
    decl->is_extern = true;
    return type_data(decl, NULL, 0);
}

bool type_is_tape(Type *t) {
    t = type_resolve(t);
    return t->tag == TY_DATA && t->decl->name == tape_name();
}

const char *grad_kind_name(GradKind kind) { return grad_names[kind]; }

bool grad_kind_find(const char *name, GradKind *kind) {
    for (int k = 0; k < GRAD_KINDS; k++) {
        if (strcmp(name, grad_names[k]) == 0) {
            *kind = (GradKind)k;
            return true;
        }
    }
    return false;
}
