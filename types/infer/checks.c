/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time checks of sizes, made where a value flows to a type whose sizes inference could not compare with its own:
 * the end of Note [Settling] in infer/state.h. */
#include "types/infer/state.h"

/* Tuples inside of tuples are looked into as deep as this: their types may be DAGs. */
enum { TUPLES_DEEP = 8 };

typedef struct Checks {
    Infer *I;
    const Pending *p;
    const Expr *callee; /* of the call, or NULL */
    Expr *const *args;  /* the arguments of the call, in variables */
    uint32_t nargs;
    Map taken; /* Note [One unknown, one size] in flow.c: unknown -> the size it took */
    VEC(Check) list;
    VEC(TypePlace) elements; /* of checks that no relation has listed: sizes of elements */
} Checks;

/* The type `want` with the sizes that its unknowns took where they stood first. */
static Type *size_taken(const Checks *c, Type *want) {
    TypeVec from = {0}, to = {0};
    Map seen = {0};
    type_collect(want, TY_ANY, &seen, &from);
    size_t kept = 0;
    for (size_t i = 0; i < from.len; i++) {
        Type *size = map_find(&c->taken, from.data[i]);
        if (!size)
            continue;
        from.data[kept++] = from.data[i];
        vec_push(&to, size);
    }
    return kept ? type_resolve(type_substitute(want, from.data, to.data, (uint32_t)kept)) : want;
}

/* Whether values that have this size in their types may differ in it: Note [Sizes of elements] in unknown.c. */
static bool is_of_several(Type *size) {
    TypeVec params = {0};
    Map seen = {0};
    type_collect(size, TY_PARAM, &seen, &params);
    for (size_t i = 0; i < params.len; i++)
        if (params.data[i]->param.each)
            return true;
    return solver_has_each(size);
}

/* Adds the check of one axis. False where the expected size is read from that axis itself. */
static bool add_size_check(Checks *c, Expr *at, uint32_t axis, Expr *expected) {
    Expr *found = expr_new(EXPR_DIM_OF, type_scalar(DT_I64), at->span);
    found->a = at;
    found->index = (int32_t)axis;
    if (expected->kind == EXPR_DIM_OF && expected->a->kind == EXPR_VAR && at->kind == EXPR_VAR &&
        expected->a->var == at->var && expected->index == found->index)
        return false;
    Check k = {CHECK_SIZE, found, expected, place_of_axis((int)axis, c->p->place), c->p->span};
    vec_push(&c->list, k);
    return true;
}

static Expr *find_in_param(Type *param, Expr *arg, const Type *asked, bool shape, int axis,
                           int depth) {
    Type *t = type_resolve(param);
    for (uint32_t i = 0; depth > 0 && t->tag == TY_TUPLE && i < t->nargs; i++) {
        Expr *part = find_in_param(t->args[i], expr_proj(arg, i, t->args[i], arg->span), asked,
                                   shape, axis, depth - 1);
        if (part)
            return part;
    }
    uint32_t rank;
    Type **dims;
    if (t->tag != TY_TENSOR || (shape && t->tensor.shape != asked))
        return NULL;
    if (shape && axis < 0)
        return arg;
    bool ranked = type_get_rank(t, &rank, &dims);
    for (uint32_t i = 0; ranked && i < rank; i++) {
        if (shape ? i != (uint32_t)axis : dims[i] != asked)
            continue;
        Expr *size = expr_new(EXPR_DIM_OF, type_scalar(DT_I64), arg->span);
        size->a = arg;
        size->index = (int32_t)i;
        return size;
    }
    return NULL;
}

/* The first of the call's arguments of which the callee asks the same: the size variable `asked`, or an axis (-1: all)
 * of the shape variable. Or NULL. */
static Expr *find_asked(const Checks *c, const Type *asked, bool shape, int axis) {
    Type *fn = c->callee ? type_resolve(c->callee->type) : NULL;
    Expr *found = NULL;
    for (uint32_t i = 0; fn && fn->tag == TY_FN && i < fn->nargs && i < c->nargs && !found; i++)
        found = find_in_param(fn->args[i], c->args[i], asked, shape, axis, TUPLES_DEEP);
    return found;
}

static void check_dim(Checks *c, Expr *at, uint32_t axis, Type *from, Type *to, bool exact,
                      Type *shape) {
    bool one = shape && shape->tag == TY_VAR; /* what was found for it is asked of each axis */
    bool linked = exact || to->tag == TY_VAR;
    Type *want = type_resolve(to);
    bool each = solver_has_each(want);
    if ((one || to->tag == TY_VAR) && is_of_several(from) && dim_compare(from, want) == DIM_EQUAL) {
        Expr *other = find_asked(c, one ? shape : to, one, (int)axis);
        if (other && add_size_check(c, at, axis, other))
            vec_push(&c->elements, vec_last(&c->list).place);
        return;
    }
    if (want->tag == TY_ANY && (!linked || each) && !map_has(&c->taken, want)) {
        map_set(&c->taken, want, from); /* an unknown that the program wrote takes any size */
        return;
    }
    if (!linked || each)
        want = size_taken(c, want);
    if (dim_compare(from, want) == DIM_EQUAL)
        return;
    Expr *expected = supply_dim(c->I, c->p, want, c->args, c->nargs);
    if (expected)
        add_size_check(c, at, axis, expected);
}

static bool is_unknown(Type *t) { return type_resolve(t)->tag == TY_ANY; }

/* Adds checks of a tensor of unknown rank that must have these sizes. */
static void check_rank(Checks *c, Expr *at, uint32_t rank, Type **dims, bool exact) {
    Expr *expected = expr_int(rank, DT_I64, at->span);
    vec_push(&c->list, ((Check){CHECK_RANK, at, expected, c->p->place, c->p->span}));
    for (uint32_t i = 0; i < rank; i++) {
        bool own = is_unknown(dims[i]) && !exact && dims[i]->tag != TY_VAR;
        check_dim(c, at, i, own ? dims[i] : type_any(KIND_DIM, NULL), dims[i], exact, NULL);
    }
}

static bool add_shape_check(Checks *c, Expr *at, Expr *expected) {
    if (expected->kind == EXPR_VAR && at->kind == EXPR_VAR && expected->var == at->var)
        return false;
    vec_push(&c->list, ((Check){CHECK_SHAPE, at, expected, c->p->place, c->p->span}));
    return true;
}

/* Adds a check of two shapes, of which one has no known rank. */
static void check_shape(Checks *c, Expr *at, Type *from, Type *to, bool exact) {
    Type *want = type_resolve(to), *taken = map_find(&c->taken, want);
    uint32_t rank;
    Type **dims;
    if (to->tag == TY_VAR && is_of_several(from) && type_equal(from, want)) {
        Expr *other = find_asked(c, to, true, -1);
        if (other && add_shape_check(c, at, other))
            vec_push(&c->elements, c->p->place);
        return;
    }
    exact = exact && !solver_has_each(want);
    if (want->tag == TY_ANY && !exact && !taken) {
        map_set(&c->taken, want, from); /* an unknown that the program wrote takes any shape */
        return;
    }
    if (!exact && taken)
        want = type_resolve(taken);
    if (type_equal(from, want))
        return;
    if (type_get_rank(want, &rank, &dims)) {
        if (is_unknown(from))
            check_rank(c, at, rank, dims, exact);
        return;
    }
    Expr *expected = supply_shape(c->I, c->p, want, c->args, c->nargs);
    if (expected)
        add_shape_check(c, at, expected);
}

/* Collects the comparisons of sizes of `from` with those of `to` that are left for the run. exact: `to` was found
 * through a variable, so that an unknown in it is one particular size. */
static void collect_checks(Checks *c, Expr *at, Type *from, Type *to, bool exact, int depth) {
    exact |= to->tag == TY_VAR;
    from = type_resolve(from);
    to = type_resolve(to);
    if (depth == 0 || (from == to && !(to->flags & (TYPE_HAS_ANY | TYPE_HAS_VARS))))
        return;
    if (from->tag == TY_TUPLE && to->tag == TY_TUPLE && from->nargs == to->nargs) {
        for (uint32_t i = 0; i < to->nargs; i++)
            collect_checks(c, expr_proj(at, i, from->args[i], at->span), from->args[i], to->args[i],
                           exact, depth - 1);
        return;
    }
    if (from->tag != TY_TENSOR || to->tag != TY_TENSOR)
        return;
    exact |= to->tensor.shape->tag == TY_VAR;
    uint32_t n = 0, m = 0;
    Type **a, **b;
    if (!type_get_rank(from, &n, &a) || !type_get_rank(to, &m, &b))
        check_shape(c, at, from->tensor.shape, to->tensor.shape, exact);
    for (uint32_t i = 0; n == m && i < n; i++)
        check_dim(c, at, i, a[i], b[i], exact, to->tensor.shape);
}

static bool may_need_checks(Type *from, Type *to) {
    from = type_resolve(from);
    to = type_resolve(to);
    return (from != to || (to->flags & (TYPE_HAS_ANY | TYPE_HAS_VARS))) &&
           (from->tag == TY_TENSOR || from->tag == TY_TUPLE) && from->tag == to->tag;
}

/* Turns f(e0, e1) into let a0 = e0; let a1 = e1; f(a0, a1), because sizes of one argument may have to equal those of
 * another. */
static Expr *spread_call(Infer *I, Expr *call, Var ***vars) {
    uint32_t n = call->nargs;
    LetStack lets = {0};
    Expr *inner = expr_copy(call);
    inner->a = let_stack_add(&lets, call->a, "f");
    inner->args = mem_new_n(Expr *, n + 1);
    *vars = mem_new_n(Var *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Var *v = var_new(sym_intern("arg"), call->args[i]->type, call->args[i]->span);
        v->size = map_find(&I->argument_sizes, call->args[i]);
        vec_push(&lets.vars, v);
        vec_push(&lets.values, call->args[i]);
        inner->args[i] = expr_var(v, v->span);
        (*vars)[i] = v;
    }
    Expr *check = expr_new(EXPR_CHECK, call->type, call->span);
    check->a = inner;
    *call = *let_stack_wrap(&lets, check);
    return check;
}

/* Puts checks of ranks first, because others read sizes of those tensors. */
static void add_checks(Expr *check, const Checks *c) {
    uint32_t n = check->nchecks + (uint32_t)c->list.len, k = 0;
    Check *all = mem_new_n(Check, n);
    for (int ranks = 1; ranks >= 0; ranks--) {
        for (uint32_t i = 0; i < n; i++) {
            const Check *one = i < check->nchecks ? &check->checks[i]
                                                  : &c->list.data[i - check->nchecks];
            if ((one->kind == CHECK_RANK) == ranks)
                all[k++] = *one;
        }
    }
    check->checks = all;
    check->nchecks = n;
}

/* The type of an argument after its rank was checked. */
static Type *with_rank(Type *from, Type *to, int depth) {
    from = type_resolve(from);
    to = type_resolve(to);
    if (from->tag == TY_TENSOR && to->tag == TY_TENSOR)
        return is_unknown(from->tensor.shape) ? to : from;
    if (depth == 0 || from == to || from->tag != TY_TUPLE || to->tag != TY_TUPLE ||
        from->nargs != to->nargs)
        return from;
    Type **args = mem_new_n(Type *, from->nargs + 1);
    bool same = true;
    for (uint32_t i = 0; i < from->nargs; i++) {
        args[i] = with_rank(from->args[i], to->args[i], depth - 1);
        same = same && args[i] == type_resolve(from->args[i]);
    }
    return same ? from : type_tuple(args, from->nargs);
}

/* The arguments of a call with their types after checks of rank. */
static Expr *const *with_ranks(const Expr *call, Expr *const *args, uint32_t n) {
    Type *f = type_resolve(call->a->type);
    if (f->tag != TY_FN || f->nargs != n)
        return args;
    Expr **out = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Type *known = with_rank(args[i]->type, f->args[i], TUPLES_DEEP);
        out[i] = args[i];
        if (known != type_resolve(args[i]->type)) {
            out[i] = expr_copy(args[i]);
            out[i]->type = known;
        }
    }
    return out;
}

/* Lists the checks of sizes that two elements of data are asked to share. */
static void list_elements(const Checks *c) {
    for (size_t i = 0; i < c->elements.len; i++)
        solver_list_elements(c->I->s, ELEMENTS_TWO, c->p->span, c->elements.data[i]);
}

/* The unknowns of a function's written parameters are sizes that it is given: none takes another in the result. */
static void take_given(Checks *c, Type *fn) {
    TypeVec unknowns = {0};
    Map seen = {0};
    for (uint32_t i = 0; i < fn->nargs; i++)
        type_collect(fn->args[i], TY_ANY, &seen, &unknowns);
    for (size_t i = 0; i < unknowns.len; i++)
        map_set(&c->taken, unknowns.data[i], unknowns.data[i]);
}

void settle_flow(Infer *I, Pending *p, Map *spread) {
    if (!may_need_checks(p->from, p->to))
        return;
    Checks c = {.I = I, .p = p};
    if (p->given)
        take_given(&c, type_resolve(p->given));
    if (p->call) {
        /* The first pass finds out whether anything is to be checked. */
        Expr *check = map_find(spread, p->call);
        Expr *call = check ? check->a : p->call;
        Expr *const *args = call->args;
        uint32_t n = call->nargs;
        c.callee = call->a;
        c.args = with_ranks(call, args, n);
        c.nargs = n;
        if (p->arg >= n)
            return;
        collect_checks(&c, args[p->arg], p->from, p->to, false, TUPLES_DEEP);
        if (!c.list.len)
            return;
        if (!check) {
            Var **vars;
            check = spread_call(I, p->call, &vars);
            map_set(spread, p->call, check);
            vec_clear(&c.list);
            vec_clear(&c.elements);
            args = check->a->args;
            c.args = with_ranks(check->a, args, n);
            map_clear(&c.taken);
            collect_checks(&c, args[p->arg], p->from, p->to, false, TUPLES_DEEP);
        }
        add_checks(check, &c);
        list_elements(&c);
        return;
    }
    Expr *e = p->expr;
    Var *v = e->kind == EXPR_VAR ? e->var : var_new(sym_intern("value"), e->type, e->span);
    collect_checks(&c, expr_var(v, e->span), p->from, p->to, false, TUPLES_DEEP);
    if (!c.list.len)
        return;
    Expr *check = expr_new(EXPR_CHECK, e->type, e->span);
    check->a = expr_var(v, e->span);
    add_checks(check, &c);
    if (e->kind == EXPR_VAR) {
        *e = *check;
    } else {
        Expr *value = expr_copy(e);
        *e = *expr_let(v, value, check);
    }
}
