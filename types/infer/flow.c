/* SPDX-License-Identifier: Apache-2.0 */
/* Types meeting: a value flowing to where a type is expected, arms joining; and the words for it
 * when they do not meet. */
#include <string.h>

#include "types/infer/state.h"

DiagCode mismatch_code(const Mismatch *m, DiagCode otherwise) {
    switch (m->kind) {
    case MISMATCH_RANK: return DIAG_R0302;
    case MISMATCH_DIM: return DIAG_R0301;
    case MISMATCH_OCCURS: return DIAG_R0217;
    case MISMATCH_RIGID: return DIAG_R0218;
    case MISMATCH_DEPTH: return DIAG_R0009;
    case MISMATCH_HEAD:
    case MISMATCH_DTYPE:
    case MISMATCH_ARITY:
    case MISMATCH_KIND: break;
    }
    return otherwise;
}

/* Whether a type can be shown: an open variable says nothing to a reader. */
static bool has_words(Type *t) { return t && type_resolve(t)->tag != TY_VAR; }

static void add_ranks(Diag *d, const Mismatch *m, bool at) {
    uint32_t a, b;
    Type **dims;
    if (m->a && m->b && type_get_rank(m->a, &a, &dims) && type_get_rank(m->b, &b, &dims))
        diag_add_fact(d, "%s%s%u %s here and %u there", at ? m->path : "", at ? " has " : "", a,
                      a == 1 ? "axis" : "axes", b);
}

/* The declaration of what the program wrote: of rows that of a row; NULL of other types. */
static const TypeDecl *declaration_of(Type *t) {
    t = t ? type_resolve(t) : NULL;
    if (!t || t->tag != TY_DATA)
        return NULL;
    return t->decl->row ? t->decl->row : t->decl;
}

/* Explains two types of one name: T#1 beside T, which was declared anew, or a List of the program beside that of the prelude. */
static void add_namesakes(Diag *d, const TypeDecl *one, const TypeDecl *other) {
    if (!one || !other || one == other || one->name != other->name)
        return;
    const TypeDecl *old = one->superseded ? one : other;
    if (one->superseded != other->superseded)
        diag_add_fact(d, "%s#%u is what `%s` was before it was declared anew", old->name->text,
                      old->version, old->name->text);
    else if (!one->superseded)
        diag_add_fact(
            d,
            "these are two types of the name `%s`: that of the prelude or of another file, "
            "and that of the program",
            one->name->text);
}

/* Explains rows beside what they are rows of, alone or in a List. */
static void add_rows(Diag *d, Type *want, Type *from) {
    want = type_resolve(want);
    from = type_resolve(from);
    if (from->tag == TY_DATA && type_is_list(from))
        from = type_resolve(from->args[0]);
    if (want->tag != TY_DATA || from->tag != TY_DATA || want->decl->row != from->decl)
        return;
    diag_add_fact(
        d, "`Rows[n, T]` is n values of T in one, stacked: `build(n, fn (i) { ... })` makes it "
           "of a function that gives one");
}

/* Explains a dtype that is not in the class that is asked for. */
static void add_class(Diag *d, const Mismatch *m, TypeNamer *namer) {
    Type *a = m->a ? type_resolve(m->a) : NULL, *b = m->b ? type_resolve(m->b) : NULL;
    Type *declared = a && a->tag == TY_PARAM ? a : b && b->tag == TY_PARAM ? b : NULL;
    if (declared) {
        const RelDef *class = rel_of_dtypes(m->dtypes);
        bool exact = class && rel_dtype_class(class) == m->dtypes;
        const char *name = type_text_with(namer, declared);
        diag_add_fact(d, "`%s` is declared and not known to be %s%s", name,
                      dtype_class_name(m->dtypes),
                      exact ? fmt_text(": `where %s(%s)` says so", class->name, name) : "");
        return;
    }
    /* Blame the side that is not a literal. */
    bool literal_a = a && a->tag == TY_VAR && a->var.weak;
    bool literal_b = b && b->tag == TY_VAR && b->var.weak;
    Type *other = literal_a ? b : a;
    if (literal_a != literal_b && other && other->tag == TY_DTYPE)
        return;
    bool asks = literal_a != literal_b && other && other->tag == TY_VAR;
    diag_add_fact(d, "the elements must be %s",
                  dtype_class_words(asks ? type_dtype_set(other) : m->dtypes));
}

void diag_add_mismatch(Infer *I, Diag *d, TypeNamer *namer) {
    const Mismatch *m = solver_mismatch(I->s);
    bool at = m->path && m->path[0];
    diag_note_type(d, m->a);
    diag_note_type(d, m->b);
    if (m->kind == MISMATCH_DIM)
        d->axis = m->axis;
    const char *a = m->a ? type_text_with(namer, m->a) : "";
    const char *b = m->b ? type_text_with(namer, m->b) : "";
    switch (m->kind) {
    case MISMATCH_DIM:
        if (m->axis < 0 && at) /* an argument of a data type */
            diag_add_fact(d, "%s is %s here and %s there", m->path, a, b);
        else
            diag_add_fact(d, "axis %d%s%s is %s here and %s there", m->axis, at ? " of " : "",
                          at ? m->path : "", a, b);
        diag_add_origin(d, m->a, a);
        diag_add_origin(d, m->b, b);
        if (m->a && solver_has_each(m->a))
            diag_add_fact(d,
                          "each value has its own size where `?` is: a function that takes one of "
                          "them as `?` has it checked when running");
        return;
    case MISMATCH_OCCURS:
        if (m->a && (m->a->kind == KIND_DIM || m->a->kind == KIND_SHAPE)) {
            diag_add_fact(d, "%s would have to equal %s: write `?` for a size that changes", a, b);
        } else {
            diag_add_fact(d, "%s would have to equal %s, which contains it", a, b);
        }
        return;
    case MISMATCH_RIGID:
        diag_add_fact(d, "`%s` is declared and stands for any, and would have to be %s",
                      has_words(m->a) && type_resolve(m->a)->tag == TY_PARAM ? a : b,
                      has_words(m->a) && type_resolve(m->a)->tag == TY_PARAM ? b : a);
        return;
    case MISMATCH_RANK: add_ranks(d, m, at); return;
    case MISMATCH_DEPTH:
        diag_add_fact(d, "the types of a program nest at most %d deep", TYPE_MAX_DEPTH);
        return;
    case MISMATCH_DTYPE:
        if (m->dtypes) {
            add_class(d, m, namer);
            return;
        }
        goto differ;
    case MISMATCH_HEAD: add_namesakes(d, declaration_of(m->a), declaration_of(m->b)); goto differ;
    case MISMATCH_ARITY:
    case MISMATCH_KIND:
    differ:
        if (at && has_words(m->a) && has_words(m->b))
            diag_add_fact(d, "they differ at %s: %s here and %s there", m->path, a, b);
        if (m->a && m->b && m->a->kind == KIND_TYPE && m->b->kind == KIND_TYPE &&
            type_differs_by_comma(m->a, m->b))
            diag_add_fact(d, TYPE_COMMA_FACT);
        return;
    }
}

Expr *infer_error_expr(Span span) { return expr_new(EXPR_ERROR, type_error(), span); }

static bool is_error(Type *t) { return type_resolve(t)->tag == TY_ERROR; }

static DiagCode flow_code(Infer *I, Type *from, Type *want) {
    if (type_resolve(want)->tag == TY_REF && type_resolve(from)->tag != TY_REF)
        return DIAG_R0201;
    return mismatch_code(solver_mismatch(I->s), DIAG_R0201);
}

void infer_add_classes(Diag *d, Type *want, Type *from) {
    uint32_t rank, wanted;
    Type **dims, **asked;
    if (type_resolve(want)->tag != TY_TENSOR || type_resolve(from)->tag != TY_TENSOR)
        return;
    bool numbers = type_get_rank(from, &rank, &dims) && rank == 1 &&
                   !(type_dtype_set(type_resolve(from)->tensor.dtype) & ~DTS_INT);
    if (!numbers || !type_get_rank(want, &wanted, &asked) || wanted != 2 ||
        (type_dtype_set(type_resolve(want)->tensor.dtype) & ~DTS_FLOAT))
        return;
    int64_t depth;
    const char *classes = type_get_int(asked[1], &depth) ? fmt_text("%lld", (long long)depth) : "n";
    diag_add_fact(d,
                  "`one_hot(y, 1.0, 0.0, depth=%s, axis=-1, dtype=float32)` has a row for each "
                  "number of a class",
                  classes);
}

Expr *infer_flow(Infer *I, Expr *e, Type *want, TypePlace place, Span want_span) {
    if (is_error(e->type) || is_error(want))
        return e;
    if (e->type == want && !(want->flags & TYPE_HAS_VARS))
        return e;
    Type *from = e->type;
    size_t errors = I->diags->errors;
    solver_set_place(I->s, e->span, place);
    if (!solver_flow(I->s, from, want, e->span, place)) {
        if (I->diags->errors > errors)
            return infer_error_expr(e->span);
        if (solver_mismatch(I->s)->kind == MISMATCH_DEPTH) {
            infer_error(I, DIAG_R0009, e->span, "%s: a type nests more than %d deep",
                        type_place_text(&place), TYPE_MAX_DEPTH);
            return infer_error_expr(e->span);
        }
        TypeNamer namer = {0};
        type_namer_reserve(&namer, from);
        type_namer_reserve(&namer, want);
        const char *expected = type_text_with(&namer, want), *found = type_text_with(&namer, from);
        if (strcmp(expected, found) == 0) { /* two types with one text: number their unknowns */
            expected = type_text_with(&namer, want);
            found = type_text_with(&namer, from);
        }
        Diag *d = infer_error(I, flow_code(I, from, want), e->span, "%s: expected %s, found %s",
                              type_place_text(&place), expected, found);
        if (d) {
            d->expected = diag_type(want);
            d->found = diag_type(from);
            diag_note_type(d, want);
            diag_note_type(d, from);
            diag_set_label(d, "%s", found);
            if (want_span.source && !(want_span.source->flags & SOURCE_INTERNAL))
                diag_add_label(d, want_span, "%s is asked for here", expected);
            diag_add_mismatch(I, d, &namer);
            add_rows(d, want, from);
            infer_add_classes(d, want, from);
            if (type_is_list(want) && type_resolve(from)->tag == TY_TENSOR && !type_has_rank0(from))
                diag_add_fact(d, "operators and `vmap(f)` take a tensor whole; `list.rows(x)` "
                                 "makes a List of it");
        }
        return infer_error_expr(e->span);
    }
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    /* Sizes may have to be compared when running: see infer_settle. */
    Pending *p = infer_note(I, PENDING_FLOW, e);
    p->from = from;
    p->to = want;
    p->place = place;
    return e;
}

size_t infer_last_flow(const Infer *I, const Expr *e) {
    const Pending *p = I->pending.len ? &vec_last(&I->pending) : NULL;
    return p && p->kind == PENDING_FLOW && p->expr == e ? I->pending.len : 0;
}

void infer_tie_flows(Infer *I, Expr *call, const size_t *flows) {
    for (uint32_t i = 0; i < call->nargs; i++) {
        if (!flows[i])
            continue;
        I->pending.data[flows[i] - 1].call = call;
        I->pending.data[flows[i] - 1].arg = i;
    }
}

Expr *infer_check(Infer *I, Ast *e, Type *want, TypePlace place, Span want_span) {
    return infer_flow(I, infer_expr(I, e, want), want, place, want_span);
}

/* The type of an arm in words: a scalar whose dtype is open is "a number". */
static const char *arm_text(TypeNamer *namer, Type *t) {
    Type *type = type_resolve(t),
         *dtype = type->tag == TY_TENSOR ? type_resolve(type->tensor.dtype) : NULL;
    if (dtype && dtype->tag == TY_VAR && dtype->var.weak && type_has_rank0(type))
        return dtype->var.dtypes & DT_BIT(DT_I32) ? "a number" : "a float";
    return type_text_with(namer, t);
}

bool infer_join(Infer *I, Join *join, const Expr *arm) {
    if (!join->type ||
        is_error(join->type)) { /* the first arm, or one that replaces an arm with an error */
        join->type = arm->type;
        join->span = arm->span;
        return true;
    }
    if (is_error(arm->type))
        return true;
    solver_set_place(I->s, arm->span, place_of_words(join->noun));
    Type *t = type_join(I->s, join->type, arm->type, join->elements);
    if (t) {
        join->type = t;
        return solver_run(I->s);
    }
    TypeNamer namer = {0};
    type_namer_reserve(&namer, join->type);
    type_namer_reserve(&namer, arm->type);
    const char *first = arm_text(&namer, join->type), *second = arm_text(&namer, arm->type);
    Diag *d = infer_error(I, join->code, arm->span, "%s have different types", join->noun);
    if (d) {
        diag_set_label(d, "%s", second);
        diag_label_type(d, arm->type);
        diag_add_label(d, join->span, "%s", first);
        diag_label_type(d, join->type);
        diag_add_mismatch(I, d, &namer);
        diag_add_fact(d, join->code == DIAG_R0207 ? "the elements have one type"
                         : join->code == DIAG_R0205
                             ? "an `if` has one type, whichever branch is taken"
                             : "a `match` has one type, whichever arm is taken");
    }
    join->type = type_error();
    return false;
}

void infer_fall_back(Infer *I) {
    size_t kept = 0;
    infer_read_headers(I);
    for (size_t i = 0; i < I->fallbacks.len; i++) {
        Fallback f = I->fallbacks.data[i];
        Type *t = type_resolve(f.var);
        if (t->tag != TY_VAR)
            continue;
        if (t->var.level < solver_level(I->s)) {
            I->fallbacks.data[kept++] = f;
        } else {
            solver_unify(I->s, t, type_dtype(f.dtype));
        }
    }
    I->fallbacks.len = kept;
}

Scheme *infer_generalise(Infer *I, Type *t, bool mono) {
    infer_fall_back(I);
    solver_run(I->s);
    Scheme *scheme = scheme_generalise(I->s, t, mono);
    if (scheme && scheme->nrelations)
        vec_push(&I->schemes, scheme);
    return scheme;
}

/* ---- sizes of results ------------------------------------------------------------------------ */

/* Sizes of results that something else asked for. Where a type was expected of a call before its
 * arguments were known, and they turn out to have unknown sizes, the relation takes the expected sizes
 * for the result's: nobody compares them but the check made here.
 *
 *     foldl(plus, [0.0], xs)    xs : List[Tensor[(?,), float32]], so plus gives a Tensor[(1,), float32]
 *     foldl(fn (a, x) { let result = plus(a, x); <axis 0 of result is 1> result }, [0.0], xs)
 */

typedef struct Asked {
    Infer *I;
    Expr *const *args; /* variables from which sizes may be read */
    uint32_t nargs;
    Pending at_call; /* where the call stands, whose variables supply sizes too */
    Span span;
    TypePlace place;
    bool ranks; /* not even the rank is known */
    VEC(Check) list;
} Asked;

/* Adds a check for each size of the result's type that can be computed. */
static void ask(Asked *a, Expr *at, Type *type, int depth) {
    Type *t = type_resolve(type);
    for (uint32_t i = 0; t->tag == TY_TUPLE && i < t->nargs && depth; i++)
        ask(a, expr_proj(at, i, t->args[i], at->span), t->args[i], depth - 1);
    uint32_t rank;
    Type **dims;
    if (t->tag != TY_TENSOR)
        return;
    if (!type_get_rank(t, &rank, &dims)) {
        Expr *like = a->ranks ? supply_shape(a->I, &a->at_call, t->tensor.shape, a->args, a->nargs)
                              : NULL;
        if (like)
            vec_push(&a->list, ((Check){CHECK_SHAPE, at, like, a->place, a->span}));
        return;
    }
    if (a->ranks) {
        Expr *expected = expr_int(rank, DT_I64, at->span);
        vec_push(&a->list, ((Check){CHECK_RANK, at, expected, a->place, a->span}));
    }
    for (uint32_t k = 0; k < rank; k++) {
        Expr *expected = supply_dim(a->I, &a->at_call, dims[k], a->args, a->nargs);
        if (!expected)
            continue;
        Expr *found = expr_new(EXPR_DIM_OF, type_scalar(DT_I64), at->span);
        found->a = at;
        found->index = (int32_t)k;
        Check check = {CHECK_SIZE, found, expected, place_of_axis((int)k, a->place), a->span};
        vec_push(&a->list, check);
    }
}

/* Turns value into let result = value; <checks> result. */
static Expr *checked(Asked *a, Expr *value) {
    Var *v = var_new(sym_intern("result"), value->type, value->span);
    ask(a, expr_var(v, value->span), value->type, 4);
    if (!a->list.len)
        return value;
    Expr *check = expr_new(EXPR_CHECK, value->type, value->span);
    check->a = expr_var(v, value->span);
    check->checks = a->list.data;
    check->nchecks = (uint32_t)a->list.len;
    return expr_let(v, value, check);
}

/* Compares the sizes that the operators inside of f assume equal before the call, as far as its arguments supply them:
 * f may write its result to a reference, whose type nothing compares afterwards. */
static Expr *compared(Asked *a, const Expr *f, Expr *call) {
    for (size_t i = 0; i < solver_nresiduals(a->I->s); i++) {
        const Residual *r = solver_residual_at(a->I->s, i);
        if (r->of_result != f || r->a->kind != KIND_DIM)
            continue;
        Expr *found = supply_dim(a->I, &a->at_call, r->b, a->args, a->nargs);
        Expr *expected = found ? supply_dim(a->I, &a->at_call, r->a, a->args, a->nargs) : NULL;
        if (expected)
            vec_push(&a->list,
                     ((Check){CHECK_SIZE, found, expected,
                              r->axis < 0 ? r->place : place_of_axis(r->axis, r->place), r->span}));
    }
    if (!a->list.len)
        return call;
    Expr *check = expr_new(EXPR_CHECK, call->type, call->span);
    check->a = call;
    check->checks = a->list.data;
    check->nchecks = (uint32_t)a->list.len;
    return check;
}

/* Turns f into fn (x1, …, xn) { let result = f(x1, …, xn); <checks> result }. */
static Expr *checked_function(Asked *a, Expr *f) {
    Type *t = type_resolve(f->type);
    Var **params = mem_new_n(Var *, t->nargs + 1);
    Expr **args = mem_new_n(Expr *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++) {
        params[i] = var_new(sym_intern("arg"), t->args[i], f->span);
        args[i] = expr_var(params[i], f->span);
    }
    a->args = args;
    a->nargs = t->nargs;
    Expr *call = expr_call(expr_copy(f), args, t->nargs, f->kind == EXPR_OP ? f->attrs : NULL,
                           t->fn.result, f->span);
    Expr *body = checked(a, call);
    if (body == call)
        body = compared(a, f, call);
    return body == call ? f : expr_fn(params, t->nargs, body, f->type, f->span);
}

void settle_results(Infer *I) {
    for (size_t i = 0; i < solver_nresiduals(I->s); i++) {
        const Residual *r = solver_residual_at(I->s, i);
        Expr *e = r->of_result;
        if (!e || map_has(&I->checked_results, e))
            continue;
        map_set(&I->checked_results, e, e);
        Asked a = {.I = I, .span = e->span, .place = r->place, .ranks = r->a->kind == KIND_SHAPE};
        a.at_call = (Pending){.kind = PENDING_FLOW, .span = e->span, .fn = r->fn, .time = r->time};
        a.place.has_axis = false; /* each axis of it is checked */
        Expr *now = type_resolve(e->type)->tag == TY_FN ? checked_function(&a, e)
                                                        : checked(&a, expr_copy(e));
        if (a.list.len)
            *e = *now;
    }
}
