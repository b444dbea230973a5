/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/vmap.h"

#include "passes/batch.h"
#include "passes/effects.h"
#include "passes/grad_internal.h"
#include "passes/subst.h"

#include <string.h>

enum { MOST_NESTED = 4 }; /* derivatives of derivatives of functions that `let`s bind */

typedef struct Loop {
    PassCtx *ctx;
    Build b;
    Expr *f;       /* an atom */
    uint32_t n;    /* parameters */
    Var **params;  /* x1, …, xn */
    Type **rows;   /* what f takes */
    Type *row;     /* what f gives */
    Type *as_told; /* the type of vmap(f) where it was written, or NULL */
    Type *result;
    Expr *body;     /* of the loop that was made */
    Expr *in_order; /* in it: one row after the other */
} Loop;

/* ---- parts ----------------------------------------------------------------------------------- */

static Expr *call_prelude(const Loop *l, const char *name, Expr **args, uint32_t n, Type *result) {
    Global *g = env_prelude_global(l->ctx->env, sym_intern(name));
    if (!g)
        BUG("the prelude has no `%s`", name);
    Type **types = mem_new_n(Type *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = args[i]->type;
    Expr *callee = expr_global(g, type_fn(types, n, result, type_allocates()), l->b.span);
    return b_call(&l->b, callee, args, n, 0);
}

static Expr **args_of(Expr *a, Expr *b, Expr *c) {
    Expr **args = mem_new_n(Expr *, 4);
    args[0] = a;
    args[1] = b;
    args[2] = c;
    return args;
}

static Expr *call_builtin(const Loop *l, const char *name, Expr **args, uint32_t n, Type *type) {
    return expr_call_builtin(name, args, n, type, l->b.span);
}

static Type *list_of(const Loop *l, Type *elem) {
    return type_data(env_prelude_type(l->ctx->env, "List"), &elem, 1);
}

static Expr *tuple_of_params(const Loop *l) {
    Expr **xs = mem_new_n(Expr *, (size_t)l->n + 1);
    for (uint32_t i = 0; i < l->n; i++)
        xs[i] = b_ref(&l->b, l->params[i]);
    return b_tuple(&l->b, xs, l->n);
}

/* Whether the type is a tensor, or a tuple of such. */
static bool is_flat(Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        return true;
    if (t->tag != TY_TUPLE)
        return false;
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!is_flat(t->args[i]))
            return false;
    return true;
}

/* ---- a result without rows ------------------------------------------------------------------- */

/* The size `dim`, known here or read from the value x of type t; NULL where it is not found. */
static Expr *find_size(const Loop *l, Type *dim, Expr *x, Type *t) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    if (t->tag == TY_TUPLE) {
        Expr *found = NULL;
        for (uint32_t i = 0; i < t->nargs && !found; i++)
            found = find_size(l, dim, b_proj(&l->b, x, i), t->args[i]);
        return found;
    }
    if (t->tag != TY_TENSOR || !type_get_rank(t, &rank, &dims))
        return NULL;
    for (uint32_t i = 0; i < rank; i++) {
        if (type_resolve(dims[i]) != dim)
            continue;
        Expr *size = expr_new(EXPR_DIM_OF, type_scalar(DT_I64), l->b.span);
        size->a = x;
        size->index = (int32_t)i;
        return size;
    }
    return NULL;
}

static Expr *size_of_empty(const Loop *l, Type *dim) {
    int64_t n;
    Type *told = type_resolve(l->as_told);
    dim = type_resolve(dim);
    if (type_get_int(dim, &n))
        return expr_int(n, DT_I64, l->b.span);
    for (uint32_t i = 0; i < l->n && i < told->nargs; i++) {
        Expr *found = find_size(l, dim, b_ref(&l->b, l->params[i]), told->args[i]);
        if (found)
            return found;
    }
    return expr_int(0, DT_I64, l->b.span);
}

static Expr *empty_of(const Loop *l, Type *told, Type *type);

/* Data of one constructor, of whose fields each type says what it is. */
static Expr *empty_data(const Loop *l, Type *told) {
    const TypeDecl *decl = told->decl;
    if (decl->nctors != 1 || decl->nparams != told->nargs)
        return NULL;
    const Ctor *ctor = decl->ctors[0];
    Expr **fields = mem_new_n(Expr *, (size_t)ctor->nfields + 1);
    for (uint32_t i = 0; i < ctor->nfields; i++) {
        Type *type = type_substitute(ctor->fields[i], decl->params, told->args, decl->nparams);
        fields[i] = empty_of(l, type, type);
        if (!fields[i])
            return NULL;
    }
    return batch_construct(ctor_of_values(ctor), fields, told, l->b.span);
}

/* NULL where the type does not say what it is. */
static Expr *empty_of(const Loop *l, Type *told, Type *type) {
    uint32_t rank;
    Type **dims;
    DType dtype;
    told = type_resolve(told);
    type = type_resolve(type);
    if (told->tag == TY_TUPLE) {
        Expr **parts = mem_new_n(Expr *, (size_t)told->nargs + 1);
        for (uint32_t i = 0; i < told->nargs; i++) {
            Type *part = type->tag == TY_TUPLE && i < type->nargs ? type->args[i] : told->args[i];
            parts[i] = empty_of(l, told->args[i], part);
            if (!parts[i])
                return NULL;
        }
        return b_tuple(&l->b, parts, told->nargs);
    }
    if (told->tag == TY_DATA)
        return empty_data(l, told);
    if (told->tag != TY_TENSOR || !type_get_rank(told, &rank, &dims) || rank == 0 ||
        !type_get_dtype(told, &dtype))
        return NULL;
    Expr **sizes = mem_new_n(Expr *, rank);
    sizes[0] = expr_int(0, DT_I64, l->b.span);
    for (uint32_t i = 1; i < rank; i++)
        sizes[i] = size_of_empty(l, dims[i]);
    return call_builtin(l, "vmap.zeros", sizes, rank, type);
}

static Expr *make_empty(const Loop *l) {
    Type *told = l->as_told ? type_resolve(l->as_told) : NULL;
    Expr *made = told && told->tag == TY_FN ? empty_of(l, told->fn.result, l->result) : NULL;
    return made ? made
                : call_builtin(l, "vmap.empty", args_of(l->f, tuple_of_params(l), NULL), 2,
                               l->result);
}

/* ---- rows of tensors and tuples -------------------------------------------------------------- */

static Expr *index_row(const Loop *l, Expr *x, Expr *i, Type *row) {
    row = type_resolve(row);
    if (row->tag == TY_TUPLE) {
        Expr **parts = mem_new_n(Expr *, (size_t)row->nargs + 1);
        for (uint32_t k = 0; k < row->nargs; k++)
            parts[k] = index_row(l, b_proj(&l->b, x, k), i, row->args[k]);
        return b_tuple(&l->b, parts, row->nargs);
    }
    Attrs *attrs = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, op_index.nattrs);
    values[op_attr_index(&op_index, "spec")] = (AttrValue){.kind = ATTR_STRING, .text = "i"};
    attrs->op = &op_index;
    attrs->values = values;
    Expr *at = b_tuple(&l->b, args_of(i, NULL, NULL), 1);
    return expr_call_op(&op_index, args_of(x, at, NULL), 2, attrs, row, l->b.span);
}

/* f of a row. The place of an error in it is the call of the loop, whatever calls there are between. */
static Expr *call_of_row(const Loop *l, Expr **args) {
    Expr *call = b_call(&l->b, l->f, args, l->n, 0);
    call->type = l->row;
    if (l->f->kind == EXPR_VAR)
        call->span = span_none();
    return call;
}

/* map(fn (i) { f(x1[i], …) }, range(n)) */
static Expr *make_rows(const Loop *l, Expr *n) {
    Var *i = b_var(&l->b, "i", type_scalar(DT_I32));
    Expr **args = mem_new_n(Expr *, (size_t)l->n + 1);
    for (uint32_t k = 0; k < l->n; k++)
        args[k] = index_row(l, b_ref(&l->b, l->params[k]), b_ref(&l->b, i), l->rows[k]);
    Expr *call = call_of_row(l, args);
    Expr *range = call_prelude(l, "range", args_of(n, NULL, NULL), 1,
                               list_of(l, type_scalar(DT_I32)));
    return call_prelude(l, "map", args_of(b_fn(&l->b, "vmap", &i, 1, call), range, NULL), 2,
                        list_of(l, l->row));
}

/* The part of r, a row, to which `path` leads from its variable. */
static Expr *same_part(const Loop *l, Var *r, const Expr *path) {
    return path->kind == EXPR_PROJ ? b_proj(&l->b, same_part(l, r, path->a), (uint32_t)path->index)
                                   : b_ref(&l->b, r);
}

/* Stacks the parts of all rows to which `path`, projections of a variable, leads. Their type is `row`. */
static Expr *stack_part(const Loop *l, Expr *rows, Expr *n, Expr *path, Type *row, Type *result) {
    row = type_resolve(row);
    result = type_resolve(result);
    if (row->tag == TY_TUPLE) {
        Expr **parts = mem_new_n(Expr *, (size_t)row->nargs + 1);
        for (uint32_t k = 0; k < row->nargs; k++) {
            Type *type = result->tag == TY_TUPLE && k < result->nargs ? result->args[k]
                                                                      : b_some_type("part");
            parts[k] = stack_part(l, rows, n, b_proj(&l->b, path, k), row->args[k], type);
        }
        return b_tuple(&l->b, parts, row->nargs);
    }
    Expr *column = rows;
    if (path->kind != EXPR_VAR) {
        Var *r = b_var(&l->b, "r", l->row);
        Expr *part = b_fn(&l->b, "part", &r, 1, same_part(l, r, path));
        column = call_prelude(l, "map", args_of(part, rows, NULL), 2, list_of(l, row));
    }
    return call_prelude(l, "_vmap_stack", args_of(column, NULL, NULL), 1, result);
}

static Expr *flat_body(const Loop *l, Expr *n) {
    Block block = {.b = &l->b};
    Expr *rows = block_let(&block, "rows", make_rows(l, n));
    block_do(&block, call_builtin(l, "vmap.check", args_of(rows, NULL, NULL), 1, type_unit()));
    Expr *whole = b_ref(&l->b, b_var(&l->b, "r", l->row));
    return block_end(&block, stack_part(l, rows, n, whole, l->row, l->result));
}

/* ---- rows of data, found when running -------------------------------------------------------- */

/* _vmap_run(fn (t) { f(t.0, …) }, (x1, …), vmap.leaves((x1, …)), n) */
static Expr *data_body(const Loop *l, Expr *n) {
    Var *t = b_var(&l->b, "t", type_tuple(l->rows, l->n));
    Expr **args = mem_new_n(Expr *, (size_t)l->n + 1);
    for (uint32_t k = 0; k < l->n; k++)
        args[k] = b_proj(&l->b, b_ref(&l->b, t), k);
    Expr *call = call_of_row(l, args);
    Expr **parts = mem_new_n(Expr *, 4);
    Type *leaf = type_data(env_prelude_type(l->ctx->env, "_Leaf"), NULL, 0);
    parts[0] = b_fn(&l->b, "vmap", &t, 1, call);
    parts[1] = tuple_of_params(l);
    parts[2] = call_builtin(l, "vmap.leaves", args_of(tuple_of_params(l), NULL, NULL), 1,
                            list_of(l, leaf));
    parts[3] = n;
    return call_prelude(l, "_vmap_run", parts, 4, l->result);
}

/* let plan = vmap.plan(f, (x, y)); if plan.0 { plan.1(x, y) } else { <the loop> } */
static Expr *with_plan(const Loop *l, Expr *loop) {
    Block block = {.b = &l->b};
    Type **both = mem_new_n(Type *, 2);
    Expr **args = mem_new_n(Expr *, (size_t)l->n + 1);
    for (uint32_t i = 0; i < l->n; i++)
        args[i] = b_ref(&l->b, l->params[i]);
    both[0] = type_scalar(DT_BOOL);
    both[1] = b_some_type("rows");
    Expr *plan = block_let(&block, "plan",
                           call_builtin(l, "vmap.plan", args_of(l->f, tuple_of_params(l), NULL), 2,
                                        type_tuple(both, 2)));
    Expr *call = b_call(&l->b, b_proj(&l->b, plan, 1), args, l->n, 0);
    call->type = l->result;
    return block_end(&block, expr_if(b_proj(&l->b, plan, 0), call, loop, l->result, l->b.span));
}

/* Whether all tensors in the type have as many rows, a number that is known; *n is -1 before the first. */
static bool find_rows(Type *t, int64_t *n) {
    uint32_t rank;
    Type **dims;
    int64_t rows;
    t = type_resolve(t);
    if (t->tag == TY_TUPLE) {
        for (uint32_t i = 0; i < t->nargs; i++)
            if (!find_rows(t->args[i], n))
                return false;
        return true;
    }
    if (t->tag != TY_TENSOR || !type_get_rank(t, &rank, &dims) || !rank ||
        !type_get_int(dims[0], &rows) || rows > INT32_MAX || (*n >= 0 && *n != rows))
        return false;
    *n = rows;
    return true;
}

static Expr *number_of_rows(const Loop *l) {
    int64_t n = -1;
    bool known = true;
    for (uint32_t i = 0; i < l->n && known; i++)
        known = find_rows(l->params[i]->type, &n);
    return known && n >= 0 ? expr_int(n, DT_I32, l->b.span)
                           : call_builtin(l, "vmap.size", args_of(tuple_of_params(l), NULL, NULL),
                                          1, type_scalar(DT_I32));
}

static Expr *make_loop(Loop *l) {
    Block block = {.b = &l->b};
    Expr *n = block_let(&block, "n", number_of_rows(l));
    bool flat = is_flat(l->row);
    for (uint32_t i = 0; i < l->n; i++)
        flat &= is_flat(l->rows[i]);
    Expr **sides = args_of(n, expr_int(0, DT_I32, l->b.span), NULL);
    Expr *none = b_op(&l->b, &op_equal, sides, 2, type_scalar(DT_BOOL));
    l->in_order = flat ? flat_body(l, n) : data_body(l, n);
    Expr *loop = with_plan(l, l->in_order);
    Expr *body = block_end(&block, expr_if(none, make_empty(l), loop, l->result, l->b.span));
    l->body = body;
    return b_fn(&l->b, "vmap", l->params, l->n, body);
}

/* ---- what stands for vmap(f) ----------------------------------------------------------------- */

Expr *vmap_to_run(PassCtx *ctx, Expr *e) {
    Type *f = type_resolve(e->a->type), *g = type_resolve(e->type);
    if (e->mode != GRAD_VMAP || f->tag != TY_FN || g->tag != TY_FN || f->nargs < g->nargs)
        return e;
    Loop *made = mem_new(Loop), l = {.ctx = ctx, .b = {e->span}, .n = g->nargs};
    l.row = f->fn.result;
    l.rows = f->args + (f->nargs - g->nargs); /* in a twin its tapes stand before them */
    l.as_told = e->zero_type;
    l.result = g->fn.result;
    l.params = mem_new_n(Var *, (size_t)l.n + 1);
    for (uint32_t i = 0; i < l.n; i++)
        l.params[i] = b_var(&l.b, fmt_text("x%u", i + 1), g->args[i]);
    Block block = {.b = &l.b};
    bool literal = e->a->kind == EXPR_FN && !e->a->fn->base && e->a->fn->nparams == l.n;
    l.f = literal ? e->a : block_atom(&block, "f", e->a);
    Expr *loop = make_loop(&l);
    *made = l;
    /* The loop keeps it, and it refers to parts of the loop alone. */
    weak_set_owned(&grad_state(ctx)->loops, loop, made);
    return block_end(&block, loop);
}

/* ---- all rows at once ------------------------------------------------------------------------ */

Type *vmap_tensor_in(Type *t) {
    t = type_resolve(t);
    while (t->tag == TY_TUPLE && t->nargs)
        t = type_resolve(t->args[0]);
    return t->tag == TY_TENSOR ? t : NULL;
}

Type *vmap_type_of_row(Type *t) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    if (t->tag == TY_TENSOR)
        return type_get_rank(t, &rank, &dims) && rank
                   ? type_tensor(type_shape(dims + 1, rank - 1), t->tensor.dtype)
                   : NULL;
    if (t->tag != TY_TUPLE)
        return NULL;
    Type **rows = mem_new_n(Type *, (size_t)t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!(rows[i] = vmap_type_of_row(t->args[i])))
            return NULL;
    return type_tuple(rows, t->nargs);
}

/* What the function gives where it takes these. */
static Expr *body_of_row(const Build *b, Expr *fn, Expr **args, uint32_t n) {
    if (fn->kind == EXPR_GRAD || fn->kind == EXPR_GLOBAL)
        return b_call(b, fn, args, n, 0);
    if (fn->kind == EXPR_OP && (uint32_t)fn->op->nargs == n && attrs_defaults(fn->op))
        return b_op(b, fn->op, args, n, b_some_type("r"));
    if (fn->kind != EXPR_FN || fn->fn->nparams != n || (fn->fn->path && fn->fn->path->len))
        return NULL;
    Subst s = {.mono = mono_of_rows(fn->fn->params, args, n)};
    for (uint32_t i = 0; i < n; i++)
        map_set(&s.vars, fn->fn->params[i], args[i]);
    return expr_substitute(&s, fn->fn->body);
}

/* The arguments of a function at all rows, down to the tensors in them. */
typedef struct RowArgs {
    Var **whole; /* the arguments: what stands for argument i, as often as there are rows */
    VarVec
        all; /* each leaf at all rows; what is whole is bound to this variable in each row, too */
    VarVec rows;      /* each leaf as each row has it */
    VarVec varying;   /* those of them that are no wholes: the parameters of one row, */
    VEC(Expr *) args; /* and what they are at all rows */
    VarVec same;      /* the wholes */
} RowArgs;

/* Makes the variables of one argument. False: a tensor in it has no room for an axis. */
static bool add_row_arg(RowArgs *to, const Build *b, const RowForm *form, const char *name,
                        Type *count, uint32_t at) {
    RowFormVec leaves = {0};
    row_form_leaves(form, &leaves);
    for (size_t i = 0; i < leaves.len; i++) {
        const RowForm *leaf = leaves.data[i];
        Type *type = leaf->is_whole ? leaf->type : type_rows(leaf->type, count);
        if (!type)
            return false;
        Var *all = b_var(b, form->parts ? "part" : name, type);
        Var *row = leaf->is_whole ? all : b_var(b, "x", leaf->type);
        vec_push(&to->all, all);
        vec_push(&to->rows, row);
        vec_push(leaf->is_whole ? &to->same : &to->varying, row);
        if (!leaf->is_whole)
            vec_push(&to->args, b_ref(b, all));
    }
    Type *type = form->parts ? type_rows(form->type, count) : NULL;
    to->whole[at] = form->parts ? b_var(b, name, type ? type : b_some_type("rows"))
                                : to->all.data[to->all.len - 1];
    return true;
}

/* The function as a literal of the tensors in a row. */
static Expr *literal_of_row(const Build *b, Expr *fn, RowForm *const *forms, uint32_t n,
                            const RowArgs *of) {
    Block block = {.b = b};
    uint32_t at = 0;
    Expr **args = mem_new_n(Expr *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Expr *row = row_form_make(b, forms[i], of->rows.data, &at);
        args[i] = forms[i]->parts ? block_let(&block, "x", row) : row;
    }
    Expr *body = body_of_row(b, fn, args, n);
    return body ? b_fn(b, "vmap", of->varying.data, (uint32_t)of->varying.len,
                       block_end(&block, body))
                : NULL;
}

/* The body, where the arguments have been taken apart. */
static Expr *open_rows(const Build *b, RowForm *const *forms, uint32_t n, const RowArgs *of,
                       Expr *body) {
    Pattern **patterns = mem_new_n(Pattern *, (size_t)n + 1);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        patterns[i] = row_form_pattern(b, forms[i], of->whole[i]->type, of->all.data, &at);
    for (uint32_t i = n; i-- > 0;)
        if (forms[i]->parts)
            body = b_match(b, b_ref(b, of->whole[i]), patterns[i], body);
    return body;
}

static Expr *with_links(Expr *body, Expr *const *links, size_t n) {
    while (n-- > 0) {
        Expr *link = expr_copy(links[n]);
        link->body = body;
        link->type = body->type;
        body = link;
    }
    return body;
}

Expr *vmap_source_link(VmapSource *source, const Var *var, Expr *value) {
    Expr *link = expr_new(EXPR_LET, value->type, var->span);
    link->var = var_new(var->name, value->type, var->span);
    link->a = value;
    vec_push(&source->links, link);
    return expr_var(link->var, var->span);
}

Expr *vmap_source_derivative(GradKind kind, Expr *f) {
    Expr *e = expr_new(EXPR_GRAD, b_some_type("g"), f->span);
    e->mode = (uint8_t)kind;
    e->a = f;
    if (kind == GRAD_VMAP)
        e->zero_type = e->type;
    return e;
}

Expr *vmap_source_literal(PassCtx *ctx, Expr *fn, const VarVec *captured, Expr *const *are,
                          RowForm *const *rows, uint32_t n) {
    Expr *of = vmap_function(ctx, fn);
    Subst s = {0};
    VarVec vars = {0};
    VEC(Expr *) known = {0};
    for (size_t i = 0; i < captured->len; i++) {
        map_set(&s.vars, captured->data[i], are[i]);
        vec_push(&vars, captured->data[i]);
        vec_push(&known, are[i]);
    }
    if (of)
        return vmap_source_derivative(GRAD_VMAP, expr_substitute(&s, of));
    for (uint32_t i = 0; rows && i < n && i < fn->fn->nparams; i++) {
        Var *param = fn->fn->params[i];
        vec_push(&vars, param);
        vec_push(&known, expr_var(var_new(param->name, rows[i]->type, fn->span), fn->span));
    }
    s.mono = mono_of_rows(vars.data, known.data, (uint32_t)vars.len);
    return expr_substitute(&s, fn);
}

typedef struct Opening {
    PassCtx *ctx;
    Map done; /* Expr -> what became of it */
} Opening;

static Expr *open_let(void *ctx, Expr *e);

/* A function that a `let` of the program binds, as the function itself: that of a derivative, then, is known. */
static Expr *function_of_let(Opening *o, Expr *e) {
    const Global *g = e->global;
    bool is_function = g->kind == GLOBAL_LET && !g->broken && g->value &&
                       (g->value->kind == EXPR_FN || g->value->kind == EXPR_GRAD);
    if (!is_function)
        return e;
    Subst copy = {0};
    pass_depend(o->ctx, e->global);
    return open_let(o, expr_substitute(&copy, g->value));
}

static Expr *open_let(void *ctx, Expr *e) {
    Opening *o = ctx;
    Expr *known = map_find(&o->done, e);
    if (known)
        return known;
    pass_visit(o->ctx);
    if (e->kind == EXPR_FN) { /* a copy: no code of a derivative reads what this one captured */
        e->fn->keeps_captured = false;
        e->fn->as_data = NULL;
    }
    Expr *made = e->kind == EXPR_LET      ? expr_map_block(e, open_let, ctx)
                 : e->kind == EXPR_GLOBAL ? function_of_let(o, e)
                                          : expr_map_children(e, open_let, ctx);
    map_set(&o->done, e, made);
    return made;
}

/* Whether the pass changed the function. */
static bool run_pass(PassCtx *ctx, const char *name, Expr **fn, const VarVec *given) {
    Expr *after = pass_find(name)->run(ctx, *fn);
    bool changed = after && after != *fn;
    *fn = after ? after : *fn;
    pass_check(ctx, *fn, given, name);
    return changed;
}

static bool takes_derivative(void *ctx, const Expr *e) {
    (void)ctx;
    return is_derivative(e);
}

/* What stands where no row comes, or is read by nothing, is gone where passes ran before: a derivative there is in the way of
 * none, on no engine. */
static void drop_derivatives(PassCtx *ctx, Expr **fn, const VarVec *given) {
    static const char *const names[] = {"inline", "fold", "dce"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (expr_any(*fn, takes_derivative, NULL))
            run_pass(ctx, names[i], fn, given);
}

/* Operators that batch.c made of others for all rows have no derivative. */
static bool lacks_derivative(void *ctx, const Expr *e) {
    if (e->kind != EXPR_CALL || e->a->kind != EXPR_OP || !type_may_hold_float(e->type))
        return false;
    return !env_find_rule(ctx, e->a->op, RULE_DERIVATIVE);
}

Expr *vmap_at_all_rows(PassCtx *ctx, const VmapSource *source, DependencyVec *deps,
                       BatchRefusal *refusal) {
    Build b = {source->span};
    uint32_t n = source->n;
    Type *count = type_param(sym_intern("rows"), KIND_DIM);
    DependencyVec *outer = ctx->deps;
    *refusal = (BatchRefusal){"the function is not known before running", source->span};
    Var **params = mem_new_n(Var *, source->given.len + n + 1);
    VarVec given = {0};
    for (size_t i = 0; i < source->given.len; i++) {
        params[i] = source->given.data[i];
        vec_push(&given, params[i]);
    }
    RowArgs rows = {.whole = params + source->given.len};
    for (uint32_t i = 0; i < n; i++)
        if (!add_row_arg(&rows, &b, source->rows[i], fmt_text("x%u", i + 1), count, i))
            return NULL;
    for (size_t i = 0; i < rows.same.len; i++)
        vec_push(&given, rows.same.data[i]);
    Expr *fn = literal_of_row(&b, source->fn, source->rows, n, &rows);
    if (!fn)
        return NULL;
    ctx->deps = deps;
    fn = b_fn(&b, "vmap", fn->fn->params, fn->fn->nparams,
              with_links(fn->fn->body, source->links.data, source->links.len));
    Opening opening = {.ctx = ctx};
    fn = open_let(&opening, fn);
    expr_mark_tails(fn);
    drop_derivatives(ctx, &fn, &given);
    bool derives = false, outer_derives = ctx->derives_values;
    ctx->derives_values = true; /* where a derivative is left, the loop runs */
    /* Of a derivative of a derivative the inner one is a literal first. */
    for (int i = 0; i < MOST_NESTED && run_pass(ctx, "derive", &fn, &given); i++)
        derives = true;
    ctx->derives_values = outer_derives;
    run_pass(ctx, "inline", &fn, &given);
    run_pass(ctx, "fold", &fn, &given);
    /* What nothing reads is gone where the passes have run, as a reference or a value of a row; it is to go on every engine, so that
       all have the same code. */
    run_pass(ctx, "partial_eval", &fn, &given);
    run_pass(ctx, "dce", &fn, &given);
    Subst retyped = {.mono = mono_of_nothing(), .renames = true};
    fn = expr_substitute(&retyped, fn); /* what was inlined has the types of its definition */
    effects_depend(ctx, fn);
    Expr *body = batch_rows(ctx, fn, rows.args.data, count, source->span, source->follows, refusal);
    ctx->deps = outer;
    if (body && source->follows && (derives || expr_any(body, lacks_derivative, ctx->env))) {
        *refusal = (BatchRefusal){"a derivative cannot follow it", source->span};
        return NULL;
    }
    if (!body)
        return NULL;
    body = open_rows(&b, source->rows, n, &rows, body);
    Expr *made = b_fn(&b, "vmap", params, (uint32_t)source->given.len + n, body);
    made->fn->is_instance = true;
    pass_check(ctx, made, NULL, "vmap");
    return made;
}

Expr *vmap_function(PassCtx *ctx, const Expr *loop) {
    const Loop *l = weak_find(&grad_state(ctx)->loops, loop);
    return l ? l->f : NULL;
}

Expr *vmap_batched(PassCtx *ctx, Expr *fn) {
    const Loop *l = fn->kind == EXPR_FN ? weak_find(&grad_state(ctx)->loops, fn) : NULL;
    if (!l)
        return NULL;
    Block block = {.b = &l->b};
    Type *types[2] = {type_scalar(DT_BOOL), l->result};
    Expr *tried = block_let(&block, "all",
                            call_builtin(l, "vmap.rows", args_of(l->f, tuple_of_params(l), NULL), 2,
                                         type_tuple(types, 2)));
    Expr *let = expr_copy(l->body), *choice = expr_copy(l->body->body);
    choice->c = block_end(&block, expr_if(b_proj(&l->b, tried, 0), b_proj(&l->b, tried, 1),
                                          l->in_order, l->result, l->b.span));
    let->body = choice;
    return b_fn(&l->b, "vmap", l->params, l->n, let);
}

/* ---- for `:why` ------------------------------------------------------------------------------ */

typedef struct Teller {
    PassCtx *ctx;
    Map seen;
    Map literals; /* Var of a `let` -> the function it is bound to */
    DependencyVec deps;
} Teller;

/* Whether the run adds nothing to what is known of the function: it captures nothing, and its types are closed. */
static bool is_settled(Expr *fn, Type *const *rows, uint32_t n) {
    VarVec captured = {0};
    expr_free_vars(fn, &captured);
    for (uint32_t i = 0; i < n; i++)
        if (!type_is_closed(rows[i]))
            return false;
    return !captured.len;
}

/* What each row is; NULL where types do not say of which constructors data is. */
static RowForm **forms_of_rows(Type *const *rows, uint32_t n) {
    RowForm **forms = mem_new_n(RowForm *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (!(forms[i] = row_form_of_type(rows[i])))
            return NULL;
    return row_forms_settle(forms, n) ? forms : NULL;
}

static void tell_vmap(Teller *t, Expr *e) {
    Expr *fn = e->a->kind == EXPR_VAR ? map_find(&t->literals, e->a->var) : e->a;
    Type *f = type_resolve(e->a->type);
    BatchRefusal refusal = {0};
    bool settled = fn && f->tag == TY_FN && is_settled(fn, f->args, f->nargs);
    RowForm **rows = settled ? forms_of_rows(f->args, f->nargs) : NULL;
    if (!rows) {
        pass_tell(t->ctx, TOLD_LEFT, "vmap", e->span,
                  "tries all rows at once when it runs: %s are known then",
                  settled ? "the constructors of its data" : "the function and sizes");
        return;
    }
    VmapSource source = {.fn = fn, .rows = rows, .n = f->nargs, .span = e->span};
    if (vmap_at_all_rows(t->ctx, &source, &t->deps, &refusal)) {
        pass_tell(t->ctx, TOLD_DONE, "vmap", e->span, "runs all rows at once");
        return;
    }
    bool is_place = refusal.span.source && !(refusal.span.source->flags & SOURCE_INTERNAL);
    pass_tell(t->ctx, TOLD_LEFT, "vmap", is_place ? refusal.span : e->span,
              "runs its function once for each row: %s", refusal.why);
}

static void tell_part(void *ctx, Expr *e) {
    Teller *t = ctx;
    for (; e->kind == EXPR_LET; e = e->body) {
        if (e->var && (e->a->kind == EXPR_FN || e->a->kind == EXPR_GRAD))
            map_set(&t->literals, e->var, e->a);
        tell_part(t, e->a);
    }
    if (map_has(&t->seen, e))
        return;
    map_set(&t->seen, e, e);
    if (e->kind == EXPR_GRAD && e->mode == GRAD_VMAP)
        tell_vmap(t, e);
    if (e->kind == EXPR_GLOBAL && !e->global->internal && e->global->value)
        tell_part(t, e->global->value);
    expr_each_child(e, tell_part, t);
}

void vmap_tell(PassCtx *ctx, Expr *e) {
    Teller t = {.ctx = ctx};
    tell_part(&t, e);
}

Expr *vmap_template(PassCtx *ctx, uint32_t n) {
    Loop l = {.ctx = ctx, .b = {span_none()}, .n = n, .row = b_some_type("r")};
    l.result = b_some_type("y");
    l.params = mem_new_n(Var *, (size_t)n + 1);
    l.rows = mem_new_n(Type *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        l.rows[i] = b_some_type("a");
        l.params[i] = b_var(&l.b, fmt_text("x%u", i + 1), b_some_type("x"));
    }
    Var *f = b_var(&l.b, "f", type_fn(l.rows, n, l.row, type_allocates()));
    l.f = b_ref(&l.b, f);
    return b_fn(&l.b, "vmap", &f, 1, make_loop(&l));
}
