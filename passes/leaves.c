/* SPDX-License-Identifier: Apache-2.0 */
/* `tree.map` and `tree.map2` over data whose form types say:
 *
 *   type Layer { Layer { w: Tensor[(4, 3), float32], b: Tensor[(3,), float32] } }
 *   tree.map2(fn (p, g) { p - 0.1 * g }, net, d)      becomes   the body of
 *   fn (f, x, y) { let a = f(x.w, y.w); let b = f(x.b, y.b); Layer { w: a, b: b } }
 *
 * It is what these definitions do, in their order, where they find no mistake: each leaf is a tensor of known sizes, of the
 * same ones in both, and what f gives has them, too. Elsewhere the definition of the library stands, which looks at values. */
#include "passes/build.h"
#include "passes/inline.h"
#include "passes/known_type.h"

#include <string.h>

enum { MOST_LEAVES = 40 };

/* Data that is taken apart by its constructor, since its fields have no names. */
typedef struct Opened {
    Expr *data;
    Pattern *pattern;
} Opened;

typedef struct LeafWalk {
    Inliner *in;
    const Expr *call;
    Build b;
    Block block;
    VEC(Opened) opened;
    Expr *f; /* what the leaves are given to: a parameter */
    bool is_paired;
    TypeVec results; /* types of leaves of which f is known to keep them */
    uint32_t nleaves;
} LeafWalk;

/* Whether f, a literal, gives a leaf of that type where it is given one, or two. */
static bool keeps_leaf(LeafWalk *w, const Expr *fn, Type *leaf) {
    for (size_t i = 0; i < w->results.len; i++)
        if (type_equal(w->results.data[i], leaf))
            return true;
    Subst s = {.renames = true};
    for (uint32_t i = 0; i < fn->fn->nparams; i++) {
        const Var *param = fn->fn->params[i];
        map_set(&s.vars, param, expr_var(var_new(param->name, leaf, param->span), param->span));
    }
    Expr *body = expr_substitute(&s, fn->fn->body);
    KnownTypes types = {.ctx = w->in->ctx};
    for (; body->kind == EXPR_LET; body = body->body)
        if (body->var && !body->rec && !body->var->scheme)
            known_types_bind(&types, body->var, body->a);
    Type *result = known_type(&types, body);
    if (!result || !type_equal(result, leaf))
        return false;
    vec_push(&w->results, leaf);
    return true;
}

static Expr *map_leaves(LeafWalk *w, Expr *x, Expr *y);

/* Field i of a value of type t, a record or a tuple. */
static Expr *read_field(const LeafWalk *w, Expr *data, Type *t, uint32_t i, Type *type) {
    if (t->tag == TY_TUPLE)
        return expr_proj(data, i, type, w->b.span);
    Expr *e = expr_new(EXPR_FIELD, type, w->b.span);
    e->a = data;
    e->field = t->decl->ctors[0]->field_names[i];
    e->index = (int32_t)i;
    return e;
}

/* Names for the fields of data that has none; NULL where the fields have names, or a tuple is read by position. */
static Expr **open_data(LeafWalk *w, Expr *data, Type *t, Type *const *fields, uint32_t n) {
    if (t->tag == TY_TUPLE || t->decl->ctors[0]->field_names)
        return NULL;
    Expr **names = mem_new_n(Expr *, n + 1);
    Pattern *p = b_pattern(&w->b, PAT_CTOR, t);
    p->ctor = ctor_of_values(t->decl->ctors[0]);
    p->nargs = n;
    p->args = mem_new_n(Pattern *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Var *v = b_var(&w->b, "part", fields[i]);
        p->args[i] = b_pattern(&w->b, PAT_VAR, fields[i]);
        p->args[i]->var = v;
        names[i] = b_ref(&w->b, v);
    }
    vec_push(&w->opened, ((Opened){data, p}));
    return names;
}

/* Data of one constructor, or a tuple, made again of its fields. NULL where the form of one is not known. */
static Expr *map_fields(LeafWalk *w, Expr *x, Expr *y, Type *t, Type *const *fields, uint32_t n) {
    Expr **parts = mem_new_n(Expr *, n + 1);
    Type **given = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        given[i] = type_deriv(fields[i]);
    Expr **xs = open_data(w, x, t, fields, n);
    Expr **ys = y ? open_data(w, y, t, given, n) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        Expr *of_y = !y ? NULL : ys ? ys[i] : read_field(w, y, t, i, given[i]);
        parts[i] = map_leaves(w, xs ? xs[i] : read_field(w, x, t, i, fields[i]), of_y);
        if (!parts[i])
            return NULL;
    }
    Expr *made;
    if (t->tag == TY_TUPLE) {
        made = expr_tuple(parts, n, w->b.span);
    } else {
        Type *type = type_fn((Type **)(uintptr_t)fields, n, t, type_allocates());
        Expr *ctor = expr_new(EXPR_CTOR, type, w->b.span);
        ctor->ctor = ctor_of_values(t->decl->ctors[0]);
        made = expr_call(ctor, parts, n, NULL, t, w->b.span);
    }
    made->own_cells = true;
    return made;
}

/* x with its leaves mapped, those of y beside them where y is there; NULL where types do not say enough. */
static Expr *map_leaves(LeafWalk *w, Expr *x, Expr *y) {
    Type *t = type_resolve(x->type), *u = type_resolve(type_deriv(t));
    if (!type_is_closed(t) || mem_stack_left() < 64 * 1024)
        return NULL;
    if (type_holds_float(t) == HOLDS_NO)
        return x;
    if (t->tag == TY_TENSOR) {
        const Expr *fn = inline_known_function(w->in, w->call->args[0]);
        if (++w->nleaves > MOST_LEAVES || !keeps_leaf(w, fn, t))
            return NULL;
        Expr *args[] = {x, y};
        Expr *leaf = b_call(&w->b, w->f, args, 1 + w->is_paired, 0);
        leaf->type = t;
        return block_let(&w->block, "leaf", leaf);
    }
    if (t->tag == TY_TUPLE)
        return map_fields(w, x, y, t, t->args, t->nargs);
    const TypeDecl *decl = t->tag == TY_DATA ? t->decl : NULL;
    if (!decl || decl->nctors != 1 || decl->nexists || decl->nparams != t->nargs ||
        decl->is_extern || (y && u->tag != TY_DATA))
        return NULL;
    const Ctor *ctor = decl->ctors[0];
    Type **fields = mem_new_n(Type *, ctor->nfields + 1);
    for (uint32_t i = 0; i < ctor->nfields; i++)
        fields[i] = type_substitute(ctor->fields[i], decl->params, t->args, t->nargs);
    return map_fields(w, x, y, t, fields, ctor->nfields);
}

static bool has_form(const Type *given, Type *wanted) {
    return type_equal(type_resolve((Type *)(uintptr_t)given), type_resolve(type_deriv(wanted)));
}

Expr *leaves_function(Inliner *in, const Expr *call, const Global *g) {
    const Expr *fn = call->nargs ? inline_known_function(in, call->args[0]) : NULL;
    bool is_map2 = g->internal && strcmp(g->name->text, "tree.map2") == 0;
    bool is_map = g->internal && strcmp(g->name->text, "tree.map") == 0;
    if (!(is_map || is_map2) || !fn || fn->fn->path || call->nargs != 2u + is_map2 ||
        fn->fn->nparams != 1u + is_map2 || !g->value || g->value->kind != EXPR_FN ||
        (is_map2 && !has_form(call->args[2]->type, call->args[1]->type)))
        return NULL;
    LeafWalk w = {
        .in = in, .call = call, .b = {.span = g->value->fn->body->span}, .is_paired = is_map2};
    w.block.b = &w.b;
    Var **params = mem_new_n(Var *, 3);
    for (uint32_t i = 0; i < call->nargs; i++)
        params[i] = var_new(g->value->fn->params[i]->name, call->args[i]->type, w.b.span);
    w.f = b_ref(&w.b, params[0]);
    Expr *result = map_leaves(&w, b_ref(&w.b, params[1]), is_map2 ? b_ref(&w.b, params[2]) : NULL);
    if (!result)
        return NULL;
    result = block_end(&w.block, result);
    while (w.opened.len) {
        Opened o = vec_pop(&w.opened);
        result = b_match(&w.b, o.data, o.pattern, result);
    }
    Expr *made = b_fn(&w.b, g->name->text, params, call->nargs, result);
    made->fn->name = g->value->fn->name;
    return made;
}
