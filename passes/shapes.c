/* SPDX-License-Identifier: Apache-2.0 */
/* shapes: takes a shape from a value that is there anyway, and drops conversions to the shape that a value has.
 *
 *   let sq = far * far; let s = sum(sq, axis=[2]); …         becomes   let s = sum(far * far, axis=[2]); …
 *   let ct_1 = expand_like(ct, sq, axis=[2]);                          let ct_1 = expand_like(ct, far, axis=[2]);
 *   collapse_sum_like(strong_multiply(ct_1, far), far)                 strong_multiply(ct_1, far)
 *
 * Code of derivatives mentions values for their shapes. Sizes need not be known for this: an element-wise operator gives the
 * shape of its operands where these have one shape, or are single numbers, and others have a `like` for their result. A value
 * is read in place of another one only where its elements are read there or later, so that nothing is kept longer.
 *
 * A cotangent that is one number everywhere, as that of a mean, is that number where an element-wise operator meets it with
 * a value of its shape:
 *
 *   let ct = expand_like(-1.0, x, average=True);  …  ct * x      becomes   -0.015625 * x      for 64 elements
 *
 * It does not look into function literals, nor at shapes that broadcasting makes. */
#include "ops/ops.h"
#include "passes/known_type.h"

#include <math.h>
#include <string.h>

Expr *pass_shapes(PassCtx *ctx, Expr *e);

enum { DEEPEST = 64, FARTHEST = 16 /* operators back to another value of the shape */ };
static const uintptr_t ALWAYS = UINTPTR_MAX;

typedef struct Shaper {
    PassCtx *ctx;
    Map values;  /* Var -> the call of an operator, or of `ad.settle`, that it is bound to */
    Map origins; /* Var -> the variable whose shape it has, where that is another */
    Map fills;   /* Var -> the literal that all its elements are */
    KnownTypes types;
    Map last;    /* Var -> the number of the last statement that reads its elements, or ALWAYS */
    Map numbers; /* call of an operator with a `like` -> the number of its statement */
    uintptr_t now;
    Map seen, done;
    const Expr *root;
} Shaper;

/* ---- operators ------------------------------------------------------------------------------- */

static bool is_operator(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_OP && !e->mode && !e->drop && !e->nsizes;
}

static bool is_conversion(const Op *op) {
    return op == &op_collapse_sum_like || op == &op_broadcast_to_like;
}

/* Whether the result has the shape of the last argument, of which nothing else matters. */
static bool has_like(const Expr *e) {
    const Op *op = is_operator(e) ? e->a->op : NULL;
    return op && e->nargs == (uint32_t)op->nargs && e->nargs > 1 && op->like_last;
}

static bool is_elementwise(const Expr *e) {
    const Op *op = is_operator(e) ? e->a->op : NULL;
    return op && op->scalar == OP_SCALAR_FORMULA && !op->nattrs &&
           (op->pattern == OP_ELEMWISE || op->pattern == OP_BROADCAST);
}

static bool is_number(const Expr *e) {
    uint32_t rank;
    Type **dims, *t = e->kind == EXPR_VAR ? e->var->type : e->type;
    return t && type_get_rank(t, &rank, &dims) && rank == 0;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static Var *find_origin(Shaper *s, const Expr *e, int depth);

static Var *origin_of_var(Shaper *s, Var *v, int depth) {
    Var *known = map_find(&s->origins, v);
    const Expr *value = known ? NULL : map_find(&s->values, v);
    if (!value)
        return known ? known : v;
    Var *origin = find_origin(s, value, depth + 1);
    origin = origin ? origin : v;
    map_set(&s->origins, v, origin);
    return origin;
}

/* The variable that stands for all of this shape; NULL where none is known. */
static Var *find_origin(Shaper *s, const Expr *e, int depth) {
    pass_visit(s->ctx);
    if (e->kind == EXPR_VAR)
        return is_number(e) ? NULL : origin_of_var(s, e->var, depth);
    if (depth > DEEPEST)
        return NULL;
    if (has_like(e))
        return find_origin(s, e->args[e->nargs - 1], depth + 1);
    if (is_settling(e))
        return find_origin(s, e->args[0], depth + 1);
    Var *all = NULL;
    for (uint32_t i = 0; is_elementwise(e) && i < e->nargs; i++) {
        if (is_number(e->args[i]))
            continue;
        Var *one = find_origin(s, e->args[i], depth + 1);
        if (!one || (all && all != one))
            return NULL;
        all = one;
    }
    return all;
}

static bool have_one_dtype(const Var *v, const Var *w) {
    DType t, u;
    return type_get_dtype(v->type, &t) && type_get_dtype(w->type, &u) && t == u;
}

/* A variable of that shape among those that element-wise operators made `value` of, whose elements are read in that
 * statement or later. */
static Var *find_live(Shaper *s, const Expr *value, const Var *like, uintptr_t statement,
                      int *left) {
    if (!value || !is_elementwise(value) || --*left < 0)
        return NULL;
    const Var *origin = origin_of_var(s, (Var *)(uintptr_t)like, 0);
    for (uint32_t i = 0; i < value->nargs; i++) {
        const Expr *arg = value->args[i];
        Var *found = NULL;
        if (is_number(arg) || find_origin(s, arg, 0) != origin)
            continue;
        if (arg->kind != EXPR_VAR)
            found = find_live(s, arg, like, statement, left);
        else if ((uintptr_t)map_find(&s->last, arg->var) >= statement)
            found = have_one_dtype(arg->var, like) ? arg->var : NULL;
        else
            found = find_live(s, map_find(&s->values, arg->var), like, statement, left);
        if (found)
            return found;
    }
    return NULL;
}

/* ---- which elements are read when ------------------------------------------------------------ */

static void note_all(Shaper *s, const Expr *e, uintptr_t when) {
    VarVec free = {0};
    expr_free_vars((Expr *)(uintptr_t)e, &free);
    for (size_t i = 0; i < free.len; i++)
        map_set(&s->last, free.data[i], (void *)when);
}

static void note(void *ctx, Expr *e) {
    Shaper *s = ctx;
    if (e->kind == EXPR_VAR) {
        if ((uintptr_t)map_find(&s->last, e->var) < s->now)
            map_set(&s->last, e->var, (void *)s->now);
        return;
    }
    if (expr_is_leaf(e)) {
        s->now++;
        return;
    }
    if (map_has(&s->seen, e) || (e->kind == EXPR_FN && e != s->root)) {
        note_all(s, e, ALWAYS);
        return;
    }
    for (; e->kind == EXPR_LET; e = e->body) {
        map_set(&s->seen, e, e);
        pass_visit(s->ctx);
        s->now++;
        note(s, e->a);
    }
    s->now++;
    if (e->kind == EXPR_VAR) {
        note(s, e);
        return;
    }
    map_set(&s->seen, e, e);
    if (!has_like(e)) {
        expr_each_child(e, note, s);
        return;
    }
    map_set(&s->numbers, e, (void *)s->now);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (i + 1 < e->nargs || e->args[i]->kind != EXPR_VAR)
            note(s, e->args[i]);
}

/* ---- one number everywhere ------------------------------------------------------------------- */

/* The literal that e is, or all elements of it; NULL: they differ, or that is not known. */
static const Expr *find_fill(const Shaper *s, const Expr *e) {
    if (e->kind == EXPR_VAR)
        return map_find(&s->fills, e->var);
    return e->kind == EXPR_LIT && !e->like && e->is_float ? e : NULL;
}

/* How many elements e has; 0: not known, or none. */
static int64_t count_elements(Shaper *s, const Expr *e) {
    uint32_t rank;
    Type **dims, *type = known_type(&s->types, e);
    int64_t count = 1, n;
    if (!type || !type_get_rank(type, &rank, &dims))
        return 0;
    for (uint32_t i = 0; i < rank; i++)
        if (!type_get_int(dims[i], &n) || n <= 0 || __builtin_mul_overflow(count, n, &count))
            return 0;
    return count;
}

/* The literal that all elements of `expand_like` are, divided as its kernel divides. */
static Expr *fill_of_expansion(Shaper *s, const Expr *e) {
    const Expr *of = find_fill(s, e->args[0]);
    Type *like = of ? known_type(&s->types, e->args[1]) : NULL;
    DType t;
    if (!like || !type_get_dtype(like, &t) || (t != DT_F32 && t != DT_F64))
        return NULL;
    double f = t == DT_F32 ? (float)of->f : of->f;
    if (attrs_bool(e->attrs, "average")) {
        int64_t n = e->args[0]->kind == EXPR_LIT ? count_elements(s, e->args[1]) : 0;
        if (!n)
            return NULL;
        f = t == DT_F32 ? (float)f / (float)n : f / (double)n;
    }
    return f != 0 && isfinite(f) ? expr_float(f, t, e->span) : NULL;
}

static void note_fill(Shaper *s, const Var *v, const Expr *value) {
    const Expr *fill = NULL;
    if (is_settling(value))
        fill = find_fill(s, value->args[0]);
    else if (is_operator(value) && value->a->op == &op_expand_like && value->attrs)
        fill = fill_of_expansion(s, value);
    if (fill)
        map_set(&s->fills, v, (Expr *)(uintptr_t)fill);
}

static bool have_one_shape(Shaper *s, const Expr *x, const Expr *y) {
    Var *origin = find_origin(s, x, 0);
    if (origin && origin == find_origin(s, y, 0))
        return true;
    Type *t = known_type(&s->types, x), *u = t ? known_type(&s->types, y) : NULL;
    return u && type_equal(t, u);
}

/* An element-wise operator with the number in place of an operand that is that everywhere; e where neither is. */
static Expr *use_fill(Shaper *s, Expr *e) {
    for (uint32_t i = 0; i < 2 && e->nargs == 2; i++) {
        Expr *x = e->args[i], *y = e->args[1 - i];
        const Expr *fill = x->kind == EXPR_VAR ? find_fill(s, x) : NULL;
        if (!fill || y->kind == EXPR_LIT || !have_one_shape(s, x, y))
            continue;
        if (fill->f == 1 && (e->a->op == &op_multiply || e->a->op == &op_strong_multiply))
            return y;
        Expr *made = expr_copy(e);
        made->args = mem_new_n(Expr *, 2);
        made->args[1 - i] = y;
        made->args[i] = expr_copy(fill);
        made->args[i]->span = x->span;
        made->args[i]->inlined = x->inlined;
        return made;
    }
    return e;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static Expr *rewrite(Shaper *s, Expr *e);

static Expr *rewrite_child(void *ctx, Expr *child) { return rewrite(ctx, child); }

/* e with another `like`, or e. was: e before its parts were rewritten. */
static Expr *choose_like(Shaper *s, Expr *e, const Expr *was) {
    const Expr *like = e->args[e->nargs - 1];
    uintptr_t statement = (uintptr_t)map_find(&s->numbers, was);
    int left = FARTHEST;
    if (!statement || like->kind != EXPR_VAR ||
        (uintptr_t)map_find(&s->last, like->var) >= statement)
        return e;
    Var *other = find_live(s, map_find(&s->values, like->var), like->var, statement, &left);
    if (!other)
        return e;
    Expr *made = expr_copy(e);
    made->args = mem_new_n(Expr *, e->nargs);
    for (uint32_t i = 0; i < e->nargs; i++)
        made->args[i] = e->args[i];
    made->args[e->nargs - 1] = expr_var(other, like->span);
    made->args[e->nargs - 1]->inlined = like->inlined;
    return made;
}

static Expr *rewrite_like(Shaper *s, Expr *e, const Expr *was) {
    bool same = is_conversion(e->a->op) && have_one_shape(s, e->args[0], e->args[1]);
    return same ? e->args[0] : choose_like(s, e, was);
}

static Expr *rewrite_block(Shaper *s, Expr *e) {
    Links links = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        pass_visit(s->ctx);
        Expr *value = rewrite(s, e->a), *link = e;
        if (e->var && !e->rec && !e->var->scheme) {
            value = known_types_bind(&s->types, e->var, value);
            note_fill(s, e->var, value);
        }
        if (e->var && !e->rec && (is_operator(value) || is_settling(value)))
            map_set(&s->values, e->var, value);
        else if (e->var && !e->rec && value->kind == EXPR_VAR)
            map_set(&s->origins, e->var, origin_of_var(s, value->var, 0));
        if (value != e->a) {
            link = expr_copy(e);
            link->a = value;
        }
        vec_push(&links, link);
    }
    return share_links(&links, rewrite(s, e));
}

static Expr *rewrite(Shaper *s, Expr *e) {
    if (expr_is_leaf(e) || (e->kind == EXPR_FN && e != s->root))
        return e;
    Expr *known = map_find(&s->done, e);
    if (known)
        return known;
    pass_visit(s->ctx);
    Expr *result = e->kind == EXPR_LET ? rewrite_block(s, e)
                                       : expr_map_children(e, rewrite_child, s);
    if (has_like(result))
        result = rewrite_like(s, result, e);
    else if (is_elementwise(result))
        result = use_fill(s, result);
    map_set(&s->done, e, result);
    return result;
}

Expr *pass_shapes(PassCtx *ctx, Expr *e) {
    Shaper s = {.ctx = ctx, .types = {.ctx = ctx}, .root = e};
    MapRoom last, seen, done;
    map_begin(&s.last, &last);
    map_begin(&s.seen, &seen);
    map_begin(&s.done, &done);
    note(&s, e);
    e = rewrite(&s, e);
    map_end(&s.last);
    map_end(&s.seen);
    map_end(&s.done);
    return e;
}
