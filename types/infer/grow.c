/* SPDX-License-Identifier: Apache-2.0 */
/* Growing accumulators (LANGUAGE §4): a call whose function argument gives the next value of a state.
 *
 *     foldl(fn (t, r) { concatenate((t, r)) }, zeros(shape=[0, 2]), rows)      Tensor[(?, 2), float32]
 *
 * The callee is fn(…, fn(…, a, …) -> a, …, a, …) -> …, where a stands nowhere else but in parameters of functions and
 * in the result. For such a call the function's result and the state that is given have types of their own, `next` and
 * `first`, until all arguments are seen. Then a takes the form of `first` with open sizes, which shows what `next` is of
 * them. A size of `next` that is not its own size again, with those of `first` for the open ones, grows: there a has an
 * unknown. All others are the sizes of `first`, as they are where nothing grows. */
#include "types/infer/state.h"

bool growing_find(Type *fn, Growing *g) {
    *g = (Growing){0};
    for (uint32_t i = 0; i < fn->nargs && !g->state; i++) {
        Type *f = type_resolve(fn->args[i]);
        Type *a = f->tag == TY_FN ? type_resolve(f->fn.result) : NULL;
        if (!a || a->tag != TY_VAR || a->kind != KIND_TYPE || a->var.nwatchers)
            continue;
        for (uint32_t k = 0; k < f->nargs; k++)
            if (type_resolve(f->args[k]) == a) {
                g->function = i;
                g->at = k;
                g->state = a;
                g->age = a->var.age;
            }
    }
    bool given = false;
    for (uint32_t i = 0; g->state && i < fn->nargs; i++) {
        Type *p = type_resolve(fn->args[i]);
        if (p == g->state) {
            if (given || i < g->function)
                return false;
            given = true;
            g->value = i;
        } else if (i != g->function && p->tag != TY_FN) {
            Map seen = {0};
            TypeVec vars = {0};
            type_collect(p, TY_VAR, &seen, &vars);
            if (map_has(&seen, g->state))
                return false;
        }
    }
    return g->state && given;
}

/* ---- the arguments --------------------------------------------------------------------------- */

/* Whether a value of this type has sizes that could grow. */
static bool has_sizes(Type *t) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    bool any = type_has_unknown_rank(t) ||
               (t->tag == TY_TENSOR && type_get_rank(t, &rank, &dims) && rank);
    for (uint32_t i = 0; t->tag == TY_TUPLE && i < t->nargs && !any; i++)
        any = has_sizes(t->args[i]);
    return any;
}

/* The arguments have one type after all. */
static void stop(Infer *I, Growing *g) {
    if (g->next)
        solver_unify(I->s, g->next, g->state);
    g->stopped = true;
}

Type *growing_want(Infer *I, Growing *g, uint32_t i, const Expr *arg, Type *want, TypePlace place) {
    const Type *t = type_resolve(arg->type);
    bool open = t->tag == TY_VAR ||
                (t->tag == TY_TENSOR && type_resolve(t->tensor.shape)->tag == TY_VAR);
    I->open_state |= open && i == g->value;
    if (g->stopped || (i != g->function && i != g->value))
        return want;
    if (i == g->value) {
        if (!g->next || !has_sizes(arg->type) || !type_has_open_sizes(g->state) ||
            !type_has_open_sizes(g->next)) {
            stop(I, g);
            return want;
        }
        g->first = arg->type;
        return arg->type;
    }
    Type *f = type_resolve(arg->type);
    Type *result = f->tag == TY_FN ? type_resolve(f->fn.result) : NULL;
    want = type_resolve(want);
    if (!result || g->at >= f->nargs || f->nargs != want->nargs || !type_has_open_sizes(result) ||
        !type_has_open_sizes(f->args[g->at]) || type_equal(f->args[g->at], result)) {
        stop(I, g);
        return want;
    }
    g->next = solver_var(I->s, KIND_TYPE);
    g->wanted = want;
    g->place = place;
    return type_fn(want->args, want->nargs, g->next, want->fn.effect);
}

/* ---- when all are seen ----------------------------------------------------------------------- */

/* The sizes of the state: open[i] stands for first[i]. A tensor of unknown rank has one entry, of its shape. */
typedef struct Sizes {
    TypeVec open, first;
} Sizes;

static Type *open_form(Infer *I, Sizes *z, Type *t) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    if (t->tag == TY_TENSOR && type_get_rank(t, &rank, &dims)) {
        Type **open = mem_new_n(Type *, rank + 1);
        for (uint32_t i = 0; i < rank; i++) {
            open[i] = solver_var(I->s, KIND_DIM);
            vec_push(&z->open, open[i]);
            vec_push(&z->first, dims[i]);
        }
        return type_tensor(type_shape(open, rank), t->tensor.dtype);
    }
    if (type_has_unknown_rank(t)) {
        vec_push(&z->open, solver_var(I->s, KIND_SHAPE));
        vec_push(&z->first, type_resolve(t->tensor.shape));
        return type_tensor(vec_last(&z->open), t->tensor.dtype);
    }
    if (t->tag != TY_TUPLE)
        return t;
    Type **args = mem_new_n(Type *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        args[i] = open_form(I, z, t->args[i]);
    return type_tuple(args, t->nargs);
}

/* The sizes of `next`, in the order of those of `form`; NULL where its form is another or not known. */
static void find_next(Type *form, Type *next, TypeVec *out) {
    uint32_t n, m;
    Type **dims, **now;
    form = type_resolve(form);
    next = type_resolve(next);
    bool open = form->tag == TY_TENSOR && type_resolve(form->tensor.shape)->tag == TY_VAR;
    if (open) {
        vec_push(out, next->tag == TY_TENSOR ? next->tensor.shape : NULL);
    } else if (form->tag == TY_TENSOR && type_get_rank(form, &n, &dims)) {
        bool known = next->tag == TY_TENSOR && type_get_rank(next, &m, &now) && m == n;
        for (uint32_t i = 0; i < n; i++)
            vec_push(out, known ? now[i] : NULL);
    }
    bool tuple = next->tag == TY_TUPLE && next->nargs == form->nargs;
    for (uint32_t i = 0; form->tag == TY_TUPLE && i < form->nargs; i++)
        find_next(form->args[i], tuple ? next->args[i] : next, out);
}

static bool mentions(Type *t, Type *var) {
    Map seen = {0};
    TypeVec vars = {0};
    type_collect(t, TY_VAR, &seen, &vars);
    return map_has(&seen, var);
}

/* Whether the size that follows open[i] is another one, whatever follows it. */
static bool grows(const Sizes *z, size_t i, Type *next, uint32_t age) {
    Type *open = type_resolve(z->open.data[i]);
    if (!next || open->tag != TY_VAR || open->var.age < age)
        return false;
    if (open->kind == KIND_SHAPE) /* it still waits for the rank, or is another by now */
        return type_resolve(next) != open;
    TypeVec from = {0}, to = {0};
    for (size_t k = 0; k < z->open.len; k++) {
        Type *v = type_resolve(z->open.data[k]);
        if (v->tag != TY_VAR)
            continue;
        vec_push(&from, v);
        vec_push(&to, z->first.data[k]);
    }
    Type *second = type_resolve(type_substitute(next, from.data, to.data, (uint32_t)from.len));
    if (dim_compare(second, z->first.data[i]) == DIM_EQUAL)
        return false;
    int64_t n; /* a size of 1 broadcasts; another that must be a certain size is an error */
    return mentions(next, open) ||
           (type_get_int(z->first.data[i], &n) && n == 1 && type_get_int(second, &n));
}

static Type *with_unknowns(const TypeVec *grown, Type *t) {
    TypeVec each = {0};
    for (size_t i = 0; i < grown->len; i++)
        vec_push(&each, type_any_each(grown->data[i]->kind, grown->data[i]->origin));
    return type_substitute(t, grown->data, each.data, (uint32_t)grown->len);
}

/* A size that the body takes from another value, as a matrix gives its rows to `x @@ l.w`, is the parameter's where its
 * type is left out. Written with `?`, the parameter takes what comes, and the body compares. */
static void explain_state(Infer *I, const Growing *g, const Expr *fn, Type *form, const Sizes *z,
                          const TypeVec *next) {
    TypeVec taken = {0}, each = {0};
    for (size_t i = 0; i < z->open.len; i++) {
        Type *size = type_resolve(z->open.data[i]);
        if (size->tag != TY_ANY || !next->data[i] || dim_compare(next->data[i], size) == DIM_EQUAL)
            continue;
        vec_push(&taken, size);
        vec_push(&each, type_any(KIND_DIM, NULL));
    }
    const AstFn *def = fn->kind == EXPR_GLOBAL && fn->global->item ? fn->global->item->fn : NULL;
    const Type *t = type_resolve(fn->type);
    if (!taken.len || t->tag != TY_FN ||
        (fn->kind != EXPR_FN && (!def || def->params.len != t->nargs)))
        return;
    Type *state = type_substitute(type_zonk(form), taken.data, each.data, (uint32_t)taken.len);
    AstFn *literal = g->source && g->source->kind == AST_FN ? g->source->fn : NULL;
    for (uint32_t i = 0; literal && i < t->nargs && i < literal->params.len; i++)
        infer_note_widening(I, &literal->params.data[i], i == g->at ? state : t->args[i]);
    Str head = {0};
    for (uint32_t i = 0; i < t->nargs; i++) {
        const Symbol *name = def ? def->params.data[i].name.sym : fn->fn->params[i]->name;
        if (symbol_is_hidden(name))
            return;
        str_printf(&head, "%s%s: %s", i ? ", " : "", name->text,
                   type_text(i == g->at ? state : t->args[i]));
    }
    diag_add_help(vec_last(&I->diags->list),
                  "a size that changes from step to step is written `?`: `(%s)`", str_text(&head));
}

/* What the state grows by is read from a record, as in `h @@ l.w`: its fields say which, where nothing else does. */
static void decide_records(Infer *I, const Expr *fn) {
    Type *t = type_resolve(fn->type);
    bool any = false;
    for (uint32_t i = 0; t->tag == TY_FN && i < t->nargs; i++)
        any |= solver_decide_record(I->s, t->args[i]);
    if (any)
        solver_run(I->s);
}

Expr *growing_close(Infer *I, Growing *g, Expr *arg, Expr *fn, TypePlace place, Type **result) {
    Sizes z = {0};
    TypeVec next = {0}, grown = {0};
    Type *form = open_form(I, &z, g->first);
    if (!solver_unify(I->s, g->state, form)) {
        stop(I, g);
        return infer_flow(I, arg, g->state, place, span_none());
    }
    if (!solver_run(I->s))
        return arg;
    if (type_resolve(g->next)->tag != TY_TENSOR || !has_sizes(g->next))
        decide_records(I, fn);
    find_next(form, g->next, &next);
    for (size_t i = 0; i < z.open.len; i++)
        if (grows(&z, i, next.data[i], g->age)) {
            Origin *o = mem_new(Origin);
            *o = (Origin){.kind = ORIGIN_ARGUMENT, .span = fn->span};
            vec_push(&grown, type_any(type_resolve(z.open.data[i])->kind, o));
            solver_unify(I->s, type_resolve(z.open.data[i]), vec_last(&grown));
        }
    g->stopped = true;
    for (size_t i = 0; i < z.open.len && !grown.len; i++) { /* as 2 * n is n where n is 0 */
        Type *open = type_resolve(z.open.data[i]);
        if (open->tag == TY_VAR && next.data[i] && mentions(next.data[i], open))
            solver_unify(I->s, open, z.first.data[i]);
    }
    if (!grown.len) {
        size_t said = I->diags->list.len;
        if (!solver_unify(I->s, g->next, g->state))
            (void)infer_flow(I, fn, g->wanted, g->place, span_none()); /* says what differs */
        if (I->diags->list.len > said)
            explain_state(I, g, fn, form, &z, &next);
        return infer_flow(I, arg, g->state, place, span_none());
    }
    Type *takes = with_unknowns(&grown, type_zonk(g->state));
    Expr *flowed = infer_flow(I, arg, takes, place, span_none());
    Type *of_fn = type_resolve(g->wanted);
    (void)infer_flow(I, fn, type_fn(of_fn->args, of_fn->nargs, takes, of_fn->fn.effect), g->place,
                     span_none());
    *result = with_unknowns(&grown, type_zonk(*result));
    solver_run(I->s);
    return flowed;
}
