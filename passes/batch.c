/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/batch_internal.h"
#include "passes/subst.h"
#include "passes/vmap.h"
#include "types/core/check.h"
#include "types/infer/infer.h"

#include <string.h>

extern const Op op_equal, op_not_equal;

enum { MOST_CALLS = 400 /* of functions that are taken apart within one */ };

Row *batch_give_up(Batch *m, const char *why, Span span) {
    if (!m->refusal->why)
        *m->refusal = (BatchRefusal){why, span};
    return NULL;
}

bool batch_gave_up(const Batch *m) { return m->refusal->why != NULL; }

/* ---- values ---------------------------------------------------------------------------------- */

Row *row_same(Expr *e, Type *type) {
    Row *r = mem_new(Row);
    *r = (Row){.e = e, .type = type};
    return r;
}

Row *row_tuple(Row **parts, uint32_t n) {
    Row *r = mem_new(Row);
    Type **types = mem_new_n(Type *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = parts[i]->type;
    parts = parts ? parts : mem_new_n(Row *, 1);
    *r = (Row){.parts = parts, .nparts = n, .type = type_tuple(types, n)};
    return r;
}

static Row *row_function(Expr *fn, Expr *e) {
    Row *r = mem_new(Row);
    *r = (Row){.e = e, .fn = fn, .type = fn->type};
    return r;
}

bool row_is_literal(const Row *r) { return r->e && r->e->kind == EXPR_LIT && !r->e->like; }

Row *row_of_name(const Batch *m, const Row *r, Expr *name) {
    Row *named = row_same(row_is_literal(r) ? r->e : name, r->type);
    named->fn = r->fn;
    named->nparts = r->nparts;
    named->ctor = r->ctor;
    named->parts = r->parts ? mem_new_n(Row *, (size_t)r->nparts + 1) : NULL;
    for (uint32_t i = 0; i < r->nparts; i++) /* those of data have names already */
        named->parts[i] = r->ctor ? r->parts[i]
                                  : row_of_name(m, r->parts[i], b_proj(&m->b, name, i));
    return named;
}

bool row_depends(const Row *r) { return r->has_rows || !r->e; }

bool row_is_unit(const Row *r) { return r->parts && !r->nparts && !r->ctor; }

static Row *part_of(Batch *m, const Row *r, uint32_t i);

Row *row_part(Batch *m, const Row *r, uint32_t i) {
    Row *part = part_of(m, batch_assume(m, r), i);
    return part ? batch_assume(m, part) : NULL;
}

static Row *part_of(Batch *m, const Row *r, uint32_t i) {
    if (r->when) {
        Row *yes = row_part(m, r->yes, i), *no = row_part(m, r->no, i);
        return yes && no ? batch_choose(m, r->when, yes, no, m->b.span) : NULL;
    }
    if (r->parts)
        return i < r->nparts ? r->parts[i] : NULL;
    Type *t = type_resolve(r->type);
    if (!r->e || r->has_rows || t->tag != TY_TUPLE || i >= t->nargs)
        return NULL;
    return row_same(expr_proj(r->e, i, t->args[i], m->b.span), t->args[i]);
}

Row *row_like(Batch *m, const Row *like, Row **parts, uint32_t n) {
    if (!like->ctor)
        return batch_tuple_of(m, parts, n);
    Row *r = row_tuple(parts, n);
    r->ctor = like->ctor;
    r->type = like->type;
    return r;
}

Type *batch_type(const Batch *m, Type *t) {
    uint32_t rank;
    Type **dims;
    if (!type_get_rank(t, &rank, &dims))
        BUG("rows of a type that is not known");
    Type **all = mem_new_n(Type *, (size_t)rank + 1);
    all[0] = m->count;
    for (uint32_t i = 0; i < rank; i++)
        all[i + 1] = dims[i];
    return type_tensor(type_shape(all, rank + 1), type_resolve(t)->tensor.dtype);
}

Row *batch_bind(Batch *m, Expr *e, Type *row) {
    Row *r = row_same(e->kind == EXPR_VAR ? e : block_let(m->block, "v", e), row);
    r->has_rows = true;
    return r;
}

/* e broadcast to rows of the type t, whose number is known when running. */
static Expr *repeat_rows(Batch *m, Expr *e, Type *t) {
    uint32_t rank;
    Type **dims;
    if (!type_get_rank(t, &rank, &dims) || rank >= TENSOR_MAX_RANK || !type_is_closed(t))
        return NULL;
    AttrValue *sizes = mem_new_n(AttrValue, (size_t)rank + 1), *values;
    sizes[0] = (AttrValue){.kind = ATTR_DIM, .dim = m->count};
    for (uint32_t i = 0; i < rank; i++) {
        int64_t n = 0;
        if (!type_get_int(dims[i], &n))
            return NULL;
        sizes[i + 1] = attr_size(n);
    }
    const Attrs *given = attrs_defaults(&op_broadcast_to);
    values = mem_new_n(AttrValue, (size_t)op_broadcast_to.nattrs + 1);
    for (int i = 0; given && i < op_broadcast_to.nattrs; i++)
        values[i] = given->values[i];
    AttrValue shape = {.kind = ATTR_LIST};
    shape.list.items = sizes;
    shape.list.n = rank + 1;
    values[op_attr_index(&op_broadcast_to, "shape")] = shape;
    Attrs *attrs = mem_new(Attrs);
    *attrs = (Attrs){&op_broadcast_to, values};
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = e;
    Expr *call = expr_call_op(&op_broadcast_to, args, 1, attrs, batch_type(m, t), m->b.span);
    int64_t known;
    if (type_get_int(m->count, &known)) {
        sizes[0] = attr_size(known);
        return call;
    }
    call->sizes = mem_new_n(Expr *, 1);
    call->nsizes = 1;
    call->sizes[0] = expr_new(EXPR_DIM_OF, type_scalar(DT_I64), m->b.span);
    call->sizes[0]->a = m->has_count;
    return call;
}

Expr *batch_with_rows(Batch *m, const Row *r) {
    if (r->has_rows)
        return r->e;
    if (!r->e || type_resolve(r->type)->tag != TY_TENSOR)
        return NULL;
    Expr *all = repeat_rows(m, r->e, r->type);
    return all ? block_let(m->block, "v", all) : NULL;
}

Row *batch_broadcast(Batch *m, const Row *x, Type *row) {
    uint32_t had, has;
    Type **dims;
    if (!type_get_rank(x->type, &had, &dims) || !type_get_rank(row, &has, &dims) || has < had)
        return NULL;
    Expr *all = repeat_rows(m, batch_insert_axes(m, x->e, 1, has - had), row);
    Row *r = all ? batch_bind(m, all, row) : NULL;
    if (r)
        r->narrow = x;
    return r;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* The call with arguments of the types that they have here. */
/* The tuple of literals that a value is; NULL where it is none. Sizes follow from the integers of a slice. */
static Expr *tuple_of_literals(const Row *r, Span span) {
    if (!r->parts || r->ctor || !r->nparts)
        return NULL;
    Expr **items = mem_new_n(Expr *, (size_t)r->nparts + 1);
    for (uint32_t i = 0; i < r->nparts; i++) {
        if (!row_is_literal(r->parts[i]))
            return NULL;
        items[i] = r->parts[i]->e;
    }
    return expr_tuple(items, r->nparts, span);
}

static Expr *settle_call(const Expr *call, Row **in) {
    Expr *settled = expr_copy(call);
    settled->args = mem_new_n(Expr *, (size_t)call->nargs + 1);
    for (uint32_t i = 0; i < call->nargs; i++) {
        Expr *literals = tuple_of_literals(in[i], call->span);
        settled->args[i] = literals ? literals : expr_copy(call->args[i]);
        settled->args[i]->type = in[i]->type;
    }
    return settled;
}

static Type *type_of_settled(const Expr *settled, const char **wrong) {
    Expr known = *settled; /* as its relation sees it */
    known.attrs = infer_index_attrs(settled);
    return core_type_of_call(&known, wrong);
}

/* A call that is the same for all rows; of literals it is done here, so that loops end that count. */
static Row *operator_of_same(Batch *m, Expr *call, Row **in) {
    bool literal = !call->nsizes;
    for (uint32_t i = 0; i < call->nargs; i++) {
        call->args[i] = in[i]->e;
        literal &= row_is_literal(in[i]);
    }
    Expr *e = literal ? pass_find("fold")->run(m->ctx, call) : call;
    return row_same(e ? e : call, call->type);
}

static Row *operator_of(Batch *m, Expr *e, Row **in);

/* Argument i is one of two values. Of literals the result is, too: so a condition that says by a number which branch was taken
 * is that of the branch. */
static Row *operator_of_two(Batch *m, Expr *e, Row **in, uint32_t i) {
    Row *sides[2] = {in[i]->yes, in[i]->no};
    bool literal = row_is_literal(sides[0]) && row_is_literal(sides[1]);
    for (uint32_t k = 0; k < e->nargs; k++)
        literal &= k == i || row_is_literal(in[k]);
    const Row *when = in[i]->when;
    for (int k = 0; k < 2; k++) {
        Row **all = mem_new_n(Row *, (size_t)e->nargs + 1);
        memcpy(all, in, e->nargs * sizeof *all);
        all[i] = sides[k];
        if (!literal && type_resolve(sides[k]->type)->tag != TY_TENSOR)
            return batch_give_up(m, "a choice between values that have not one form", e->span);
        if (!(sides[k] = operator_of(m, e, all)))
            return NULL;
    }
    return batch_choose(m, when, sides[0], sides[1], e->span);
}

static Row *operator_of(Batch *m, Expr *e, Row **in) {
    bool depends = false, closed = true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (in[i]->when)
            return operator_of_two(m, e, in, i);
    for (uint32_t i = 0; i < e->nargs; i++) {
        depends |= row_depends(in[i]);
        closed &= type_is_closed(in[i]->type);
    }
    Expr *settled = settle_call(e, in);
    const char *wrong = NULL;
    Type *type = closed ? type_of_settled(settled, &wrong) : NULL;
    settled->type = type && type_is_closed(type) ? type_zonk(type) : e->type;
    if (!depends)
        return operator_of_same(m, settled, in);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!type_is_closed(in[i]->type))
            return batch_give_up(
                m, fmt_text("sizes of what `%s` takes are not known", op_subject(e->a->op)),
                e->span);
    if (wrong || !type_is_closed(settled->type))
        return batch_give_up(
            m, fmt_text("sizes of what `%s` gives are not known", op_subject(e->a->op)), e->span);
    Span outer = m->b.span;
    m->b.span = e->span;
    Row *r = batch_operator_rows(m, settled, in);
    m->b.span = outer;
    return r;
}

Row **batch_all(Batch *m, Expr **args, uint32_t n) {
    Row **rows = mem_new_n(Row *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (!(rows[i] = batch_expr(m, args[i])))
            return NULL;
    return rows;
}

Row *batch_call(Batch *m, const Op *op, Row **in, uint32_t n, const Attrs *attrs, Type *type,
                Span span) {
    Expr **args = mem_new_n(Expr *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        args[i] = expr_var(var_new(sym_intern("v"), in[i]->type, span), span);
    return operator_of(m, expr_call_op(op, args, n, attrs, type, span), in);
}

static Row *batch_operator(Batch *m, Expr *e) {
    Row **in = batch_all(m, e->args, e->nargs);
    for (uint32_t i = 0; i < e->nsizes; i++) {
        Row *size = batch_expr(m, e->sizes[i]);
        if (!size || row_depends(size))
            return batch_give_up(m, "a size that differs from row to row", e->span);
    }
    return in ? operator_of(m, e, in) : NULL;
}

/* What something does besides giving a value, in words; NULL where that is nothing. It may fail, or not end, as the loop would. */
static const char *why_not_pure(unsigned effects) {
    if (effects & EFFECT_OUTSIDE)
        return "the function meets the world outside: it prints, reads or writes files";
    if (effects & EFFECT_FOREIGN)
        return "the function calls code that is not Relay";
    if (effects & (EFFECT_WRITES | EFFECT_MAKES))
        return "the function makes or writes a reference";
    return NULL;
}

/* ---- calls of functions ---------------------------------------------------------------------- */

static const Row *find_row(const Batch *m, const Var *v) {
    const Row *r = map_find(&m->rows, v);
    return r || !m->outer ? r : find_row(m->outer, v);
}

static Expr *literal_of_global(Batch *m, Global *g) {
    bool is_code = g->kind == GLOBAL_DEF || g->kind == GLOBAL_LET;
    if (!is_code || g->broken || g->by_types || !g->value || g->value->kind != EXPR_FN)
        return NULL;
    pass_depend(m->ctx, g);
    return g->value;
}

Expr *batch_known_function(Batch *m, Expr *e) {
    if (e->kind == EXPR_FN)
        return e;
    if (e->kind == EXPR_GLOBAL)
        return literal_of_global(m, e->global);
    const Row *r = e->kind == EXPR_VAR ? find_row(m, e->var) : NULL;
    if (r && !r->fn && r->e && r->e->kind == EXPR_GLOBAL)
        return literal_of_global(m, r->e->global);
    return r ? r->fn : NULL;
}

Row *batch_name_row(Batch *m, Row *row, Expr *name) {
    if (row_depends(row))
        return row;
    Expr *link = expr_new(EXPR_LET, NULL, name->span);
    Row *bound = row_of_name(m, row, name);
    link->var = name->var;
    block_bind(m->block, link, row->e);
    if (row->e->kind == EXPR_GLOBAL)
        bound->fn = literal_of_global(m, row->e->global);
    return bound;
}

/* The value of the function's body where its parameters are these. */
static Row *apply_function(Batch *m, Expr *fn, Row **in, uint32_t n, Span span) {
    if (fn->fn->nparams != n || (fn->fn->path && fn->fn->path->len))
        return batch_give_up(m, "a function that is not known", span);
    if (++m->calls > MOST_CALLS || mem_stack_left() < 256 << 10)
        return batch_give_up(m, "a function that calls itself, or many functions", span);
    Var **params = mem_new_n(Var *, (size_t)n + 1);
    Expr **args = mem_new_n(Expr *, (size_t)n + 1);
    Subst s = {0};
    for (uint32_t i = 0; i < n; i++) {
        params[i] = var_new(fn->fn->params[i]->name, in[i]->type, span);
        args[i] = expr_var(params[i], span);
        map_set(&s.vars, fn->fn->params[i], args[i]);
    }
    s.mono = mono_of_rows(fn->fn->params, args, n);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = batch_name_row(m, in[i], args[i]);
        map_set(&m->rows, params[i], in[i]);
    }
    return batch_expr(m, expr_substitute(&s, fn->fn->body));
}

static const char *why_unknown(const Expr *callee) {
    const Symbol *name = callee->kind == EXPR_GLOBAL ? callee->global->name
                         : callee->kind == EXPR_VAR  ? callee->var->name
                                                     : NULL;
    return name ? fmt_text("the call of `%s`, which is not taken apart", name->text)
                : "a call of a function that is not known";
}

/* Whether batch_derivative knows it, whose results have types that follow from those of the arguments. */
static bool is_of_derivatives(const Expr *callee) {
    return callee->kind == EXPR_BUILTIN && strncmp(callee->symbol->text, "ad.", 3) == 0;
}

/* The call with these arguments; NULL where one of them differs from row to row. What made the arguments may have been more
 * than a value, and is in them no longer. */
static Expr *call_of_same(const Expr *e, Row *const *in) {
    Expr *same = expr_copy(e);
    same->args = mem_new_n(Expr *, (size_t)e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (row_depends(in[i]))
            return NULL;
        same->args[i] = in[i]->e;
    }
    return same;
}

static Row *batch_call_form(Batch *m, Expr *e) {
    if (e->mode || e->drop)
        return batch_give_up(m, "a derivative that is taken while running", e->span);
    if (e->a->kind == EXPR_OP)
        return batch_operator(m, e);
    if (e->a->kind == EXPR_GRAD && e->a->mode == GRAD_VMAP)
        return batch_inner(m, e);
    if (is_of_derivatives(e->a)) {
        Row **in = batch_all(m, e->args, e->nargs);
        return in ? batch_derivative(m, e, in) : NULL;
    }
    if (e->a->kind == EXPR_GRAD)
        return batch_give_up(m, "a derivative that is taken while running", e->span);
    if (e->a->kind == EXPR_CTOR)
        return batch_constructor(m, e, e->a->ctor);
    if (batch_is_tree(e->a)) {
        Row **in = batch_all(m, e->args, e->nargs);
        return in ? batch_tree(m, e, in) : NULL;
    }
    Row *callee = batch_expr(m, e->a);
    Expr *fn = callee && callee->fn ? callee->fn : batch_known_function(m, e->a);
    if (!callee)
        return NULL;
    Row **in = batch_all(m, e->args, e->nargs);
    if (!in)
        return NULL;
    if (fn)
        return apply_function(m, fn, in, e->nargs, e->span);
    Expr *same = call_of_same(e, in);
    if (same && !why_not_pure(effects_at(m->effects, same)))
        return row_same(same, e->type);
    const char *why = e->a->kind == EXPR_VAR ? NULL : why_not_pure(effects_at(m->effects, e));
    return batch_give_up(m, why ? why : why_unknown(e->a), e->span);
}

/* ---- other forms ------------------------------------------------------------------------------- */

static Row *batch_tensor(Batch *m, Expr *e) {
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = expr_tuple(e->args, e->nargs, e->span);
    return batch_operator(
        m, expr_call_op(&op_stack, args, 1, attrs_defaults(&op_stack), e->type, e->span));
}

static Row *batch_equal(Batch *m, Expr *e) {
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = e->a;
    args[1] = e->b;
    const Op *op = e->negate ? &op_not_equal : &op_equal;
    Row **in = batch_all(m, args, 2);
    if (!in)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (type_resolve(in[i]->type)->tag != TY_TENSOR)
            return batch_give_up(m, "a comparison of values that are no tensors", e->span);
    return operator_of(m, expr_call_op(op, args, 2, attrs_defaults(op), e->type, e->span), in);
}

static Row *batch_index(Batch *m, Expr *e) {
    Row *base = batch_expr(m, e->a);
    if (!base)
        return NULL;
    int64_t at = -1;
    if (type_resolve(base->type)->tag == TY_TUPLE) {
        if (e->nargs == 1 && e->args[0]->kind == EXPR_LIT)
            at = e->args[0]->i;
        Row *part = row_part(m, base, (uint32_t)(at < 0 ? at + base->nparts : at));
        return part ? part : batch_give_up(m, "a part of a tuple that is not known", e->span);
    }
    AttrValue *values = mem_new_n(AttrValue, op_index.nattrs);
    const char *spec = e->attrs && e->attrs->values ? e->attrs->values[0].text : "i";
    values[op_attr_index(&op_index, "spec")] = (AttrValue){.kind = ATTR_STRING, .text = spec};
    Attrs *attrs = mem_new(Attrs);
    *attrs = (Attrs){&op_index, values};
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = e->a;
    args[1] = expr_tuple(e->args, e->nargs, e->span);
    Row **in = mem_new_n(Row *, 2);
    in[0] = base;
    in[1] = batch_expr(m, args[1]);
    return in[1] ? operator_of(m, expr_call_op(&op_index, args, 2, attrs, e->type, e->span), in)
                 : NULL;
}

/* A size of one row, which all have. */
static Row *batch_size(Batch *m, Expr *e) {
    uint32_t rank;
    Type **dims;
    int64_t n;
    DType t;
    Row *r = batch_expr(m, e->a);
    if (!r)
        return NULL;
    if (!type_get_rank(r->type, &rank, &dims) || e->index < 0 || (uint32_t)e->index >= rank ||
        !type_get_int(dims[e->index], &n) || !type_get_dtype(e->type, &t))
        return batch_give_up(m, "a size that is not known", e->span);
    return row_same(expr_int(n, t, e->span), type_scalar(t));
}

/* Whether the types of one row say that the check holds. */
static bool check_holds(const Check *check, const Row *found, const Row *expected) {
    uint32_t rank;
    Type **dims;
    bool literals = found->e && found->e->kind == EXPR_LIT && expected->e &&
                    expected->e->kind == EXPR_LIT;
    switch (check->kind) {
    case CHECK_SIZE: return literals && found->e->i == expected->e->i;
    case CHECK_RANK:
        return type_get_rank(found->type, &rank, &dims) && expected->e &&
               expected->e->kind == EXPR_LIT && rank == expected->e->i;
    case CHECK_SHAPE: {
        Type *a = type_resolve(found->type), *b = type_resolve(expected->type);
        return a->tag == TY_TENSOR && b->tag == TY_TENSOR && type_is_closed(a) &&
               type_is_closed(b) && type_equal(a->tensor.shape, b->tensor.shape);
    }
    }
    return false;
}

static Row *batch_check(Batch *m, Expr *e) {
    for (uint32_t i = 0; i < e->nchecks; i++) {
        const Check *check = &e->checks[i];
        Row *found = batch_expr(m, check->found);
        Row *expected = found ? batch_expr(m, check->expected) : NULL;
        if (!expected)
            return NULL;
        if (check_holds(check, found, expected))
            continue;
        if (row_depends(found) || row_depends(expected))
            return batch_give_up(m, "a size that is checked while running", e->span);
        Expr *same = expr_copy(e);
        same->a = expr_unit(e->span);
        same->type = same->a->type;
        same->nchecks = 1;
        same->checks = mem_new(Check);
        *same->checks = *check;
        same->checks->found = found->e;
        same->checks->expected = expected->e;
        block_do(m->block, same);
    }
    return batch_expr(m, e->a);
}

Row *batch_tuple_of(Batch *m, Row **parts, uint32_t n) {
    Expr **same = mem_new_n(Expr *, (size_t)n + 1);
    bool depends = false;
    for (uint32_t i = 0; i < n; i++) {
        same[i] = parts[i]->e;
        depends |= row_depends(parts[i]);
    }
    Row *r = row_tuple(parts, n);
    r->e = depends ? NULL : b_tuple(&m->b, same, n);
    return r;
}

static Row *batch_tuple(Batch *m, Expr *e) {
    Row **parts = batch_all(m, e->args, e->nargs);
    return parts ? batch_tuple_of(m, parts, e->nargs) : NULL;
}

/* A literal that takes its dtype from a value, whose dtype is known here. */
static Row *batch_literal(Batch *m, Expr *e) {
    DType t;
    Row *like = batch_expr(m, e->like);
    if (!like)
        return NULL;
    if (!type_get_dtype(like->type, &t))
        return batch_give_up(m, "a literal whose dtype is not known", e->span);
    Expr *made = expr_copy(e);
    made->like = NULL;
    made->type = type_scalar(t);
    return row_same(made, made->type);
}

/* Whether what it is, or a part of it, is known now. */
static bool is_known(const Row *r) { return row_is_literal(r) || r->parts; }

/* Whether a variable that e mentions is of that kind. */
static bool mentions(const Batch *m, Expr *e, bool (*is)(const Row *r)) {
    VarVec vars = {0};
    expr_free_vars(e, &vars);
    for (size_t i = 0; i < vars.len; i++) {
        const Row *r = map_find(&m->rows, vars.data[i]);
        if (r && is(r))
            return true;
    }
    return false;
}

static Row *batch_form(Batch *m, Expr *e) {
    Row *r;
    switch (e->kind) {
    case EXPR_VAR: return map_find(&m->rows, e->var);
    case EXPR_LIT: return batch_literal(m, e);
    case EXPR_TUPLE: return batch_tuple(m, e);
    case EXPR_PROJ:
        r = batch_expr(m, e->a);
        if (!r)
            return NULL;
        r = row_part(m, r, (uint32_t)e->index);
        return r ? r : batch_give_up(m, "a part of a tuple that is not known", e->span);
    case EXPR_CALL: return batch_call_form(m, e);
    case EXPR_FN: return row_function(e, NULL);
    case EXPR_TENSOR: return batch_tensor(m, e);
    case EXPR_INDEX: return batch_index(m, e);
    case EXPR_EQUAL: return batch_equal(m, e);
    case EXPR_DIM_OF: return batch_size(m, e);
    case EXPR_IF: return batch_if(m, e);
    case EXPR_CHECK: return batch_check(m, e);
    case EXPR_MATCH: return batch_match(m, e);
    case EXPR_FIELD: return batch_field(m, e);
    case EXPR_UPDATE: return batch_update(m, e);
    default: return batch_give_up(m, "a form that has no rule for all rows at once", e->span);
    }
}

/* A call whose result is a tensor of open sizes as what the function does, by which they may be found; NULL where it is not:
 * then nothing has been written, and the call stays. */
static Row *try_open_call(Batch *m, Expr *e) {
    Type *t = type_resolve(e->type);
    bool is_call = e->kind == EXPR_CALL && !e->mode && !e->drop && batch_known_function(m, e->a);
    if (!is_call || t->tag != TY_TENSOR || type_is_closed(t))
        return NULL;
    Block *block = m->block;
    size_t links = block->links.len, assumed = m->assumed.len;
    uint32_t calls = m->calls;
    Span span = m->b.span;
    Row *r = batch_form(m, e);
    if (r && type_is_closed(r->type))
        return r;
    m->block = block;
    block->links.len = links;
    m->assumed.len = assumed;
    m->calls = calls;
    m->b.span = span;
    *m->refusal = (BatchRefusal){0};
    return NULL;
}

/* What is the same for all rows, with its type where that is found by its parts. */
static Row *batch_same(Batch *m, Expr *e) {
    if (e->kind == EXPR_FN)
        return row_function(e, e);
    if (e->kind == EXPR_ZERO && type_resolve(e->zero_type)->tag == TY_TUPLE &&
        !type_resolve(e->zero_type)->nargs)
        return row_tuple(NULL, 0);
    if (e->kind == EXPR_TUPLE && e->nargs == 0)
        return row_tuple(NULL, 0);
    if (e->kind == EXPR_VAR) {
        Row *r = map_find(&m->rows, e->var);
        return r ? r : row_same(e, e->var->type);
    }
    if (e->kind == EXPR_LIT && e->like && !type_is_closed(e->type))
        return batch_literal(m, e);
    bool operates = e->kind == EXPR_CALL && !e->nsizes &&
                    (e->a->kind == EXPR_OP || is_of_derivatives(e->a));
    bool has_parts = e->kind == EXPR_TUPLE || e->kind == EXPR_PROJ || e->kind == EXPR_TENSOR ||
                     e->kind == EXPR_INDEX || e->kind == EXPR_EQUAL || e->kind == EXPR_IF ||
                     e->kind == EXPR_FIELD || e->kind == EXPR_MATCH;
    if (e->kind == EXPR_CTOR && e->ctor->nfields == 0)
        return batch_constructor(m, e, e->ctor);
    if (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR)
        return batch_constructor(m, e, e->a->ctor);
    if (e->kind == EXPR_TUPLE)
        return batch_tuple(m, e);
    bool is_open = (operates || has_parts) && !type_is_closed(e->type);
    if (is_open || ((operates || has_parts) && mentions(m, e, is_known)))
        return batch_form(m, e);
    const char *why = why_not_pure(effects_at(m->effects, e));
    Row *opened = why ? NULL : try_open_call(m, e);
    if (opened || !why)
        return opened ? opened : row_same(e, e->type);
    return has_parts || e->kind == EXPR_CALL ? batch_form(m, e) : batch_give_up(m, why, e->span);
}

Row *batch_expr(Batch *m, Expr *e) {
    for (; e->kind == EXPR_LET && !batch_gave_up(m); e = e->body) {
        pass_visit(m->ctx);
        if (e->rec && mentions(m, e->a, row_depends))
            return batch_give_up(m, "a function that calls itself, made for each row", e->span);
        Row *r = e->rec ? row_same(e->a, e->a->type) : batch_expr(m, e->a);
        if (!r)
            return NULL;
        if (e->var && !row_depends(r)) {
            block_bind(m->block, e, r->e);
            r = row_of_name(m, r, expr_var(e->var, e->span));
        }
        if (e->var)
            map_set(&m->rows, e->var, r);
    }
    pass_visit(m->ctx);
    if (batch_gave_up(m))
        return NULL;
    Row *r = mentions(m, e, row_depends) ? batch_form(m, e) : batch_same(m, e);
    return r ? batch_assume(m, r) : NULL;
}

/* ---- a whole function ------------------------------------------------------------------------ */

static Row *row_of_arg(Batch *m, Expr *x, Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR) {
        if (!m->has_count)
            m->has_count = x;
        Row *r = row_same(x, t);
        r->has_rows = true;
        return r;
    }
    if (t->tag != TY_TUPLE)
        return batch_give_up(m, "an argument that is no tensor", m->b.span);
    Row **parts = mem_new_n(Row *, (size_t)t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!(parts[i] = row_of_arg(m, b_proj(&m->b, x, i), t->args[i])))
            return NULL;
    return row_tuple(parts, t->nargs);
}

static Expr *result_of(Batch *m, const Row *r) {
    const Row *decided = batch_decide(m, (Row *)r);
    r = decided ? decided : r;
    const Row *open = row_open(m, r);
    if (open) {
        Expr **parts = mem_new_n(Expr *, (size_t)open->nparts + 1);
        for (uint32_t i = 0; i < open->nparts; i++)
            if (!(parts[i] = result_of(m, open->parts[i])))
                return NULL;
        return open->ctor ? batch_construct(open->ctor, parts, b_some_type("d"), m->b.span)
                          : b_tuple(&m->b, parts, open->nparts);
    }
    Expr *all = batch_with_rows(m, r);
    if (!all)
        batch_give_up(m, "a result that is no tensor of known sizes", m->b.span);
    return all;
}

static Expr *batch_body(Batch *m, Expr *fn, Expr **args) {
    const Fn *f = fn->fn;
    Block block = {.b = &m->b};
    m->block = &block;
    m->effects = effects_new(m->ctx, f->body);
    for (uint32_t i = 0; i < f->nparams; i++) {
        if (!type_is_closed(f->params[i]->type)) {
            batch_give_up(m, "the type of a row is not known", m->b.span);
            return NULL;
        }
        Row *r = row_of_arg(m, args[i], f->params[i]->type);
        if (!r)
            return NULL;
        map_set(&m->rows, f->params[i], r);
    }
    Row *result = batch_expr(m, f->body);
    Expr *e = result ? result_of(m, result) : NULL;
    return e ? block_end(&block, e) : NULL;
}

Expr *batch_rows_within(Batch *outer, Expr *fn, Expr **args, Type *count, Span span) {
    Batch m = {.ctx = outer->ctx,
               .b = {span},
               .count = count,
               .outer = outer,
               .follows = outer->follows,
               .refusal = outer->refusal};
    return batch_body(&m, fn, args);
}

Expr *batch_rows(PassCtx *ctx, Expr *fn, Expr **args, Type *count, Span span, bool follows,
                 BatchRefusal *refusal) {
    Batch m = {.ctx = ctx, .b = {span}, .count = count, .follows = follows, .refusal = refusal};
    *refusal = (BatchRefusal){0};
    Expr *body = batch_body(&m, fn, args);
    return body && !follows ? batch_order(ctx, body, args, fn->fn->nparams) : body;
}
