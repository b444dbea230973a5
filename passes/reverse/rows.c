/* SPDX-License-Identifier: Apache-2.0 */
/* `vmap` inside of what is differentiated.
 *
 * Note [Rows of known functions]. Where a derivative follows a value into `vmap(f)`, every engine asks `vmap.plan` for code
 * of all rows (Note [Loops of vmap] in passes/vmap.h), and runs that if it has a value. Where f and the types of all that
 * goes in are known, that code is known here, and if it cannot fail, so is the answer:
 *
 *   let plan = vmap.plan(f, (x, y));      reads    let rows = fn (x, y) { <f at all rows> };
 *   if plan.0 { plan.1(x, y) } …                   rows(x, y)
 *
 * The code is that of the run: made of the function as it was written, and of the types that the run finds. Where it may
 * fail, as `t[i]` does, the run asks whether it has a value, and both that and the loop are read:
 *
 *   if vmap.has_value(rows, (x, y)) { rows(x, y) } …
 *
 * Where there is none, the loop is read. Elsewhere the run decides, and a tape follows it.
 *
 * Note [Sizes of a call]. `def loss(w, xs) { mean(vmap(fn (x) { … })(xs)) }` serves tensors of all sizes, and the code of all
 * rows is that for the sizes which the run meets. Where a definition leads to a vmap, and the arguments of a call tell the
 * sizes in its types, it is read for these (Known.sizes): its code stays as it was written, of which the run makes code of all rows,
 * and the types of what goes into the vmap are closed by them. */
#include "passes/effects.h"
#include "passes/inline.h"
#include "passes/known_type.h"
#include "passes/reverse/internal.h"
#include "passes/subst.h"
#include "passes/vmap.h"

typedef struct Walk {
    Reader *r;
    VmapSource source;
    VEC(Expr *) given; /* atoms: what source.given are */
    Str key;           /* which functions these are, and of which types what they captured is */
} Walk;

/* ---- what was made ----------------------------------------------------------------------------- */

/* Code that is made while a program is read, of names for what it captures. When the program is read again, the literals in
 * it are met again (Note [Functions as data] in functions.c); in one function it is read once, and next time another. */
typedef struct Made {
    Expr *e;            /* NULL: there is none */
    bool never;         /* whatever is known */
    bool may_fail;      /* it is code of all rows, and may have no value */
    VarVec given;       /* what it captures */
    Expr *values;       /* of a loop: the function with values in place of references, or NULL */
    const Instance *in; /* the function that read it last */
    struct Made *next;
} Made;

/* What was made under that name, and is not yet read in this function; *is_new: it is to be made. */
static Made *find_made(Reader *r, const void *name, bool *is_new) {
    Made *first = map_find(&r->p->made, name), *m = first;
    while (m && m->in == r->n)
        m = m->next;
    *is_new = !m;
    if (!m) {
        m = mem_new(Made);
        m->next = first;
        map_set(&r->p->made, name, m);
    }
    m->in = r->n;
    return m;
}

/* It, where these atoms are what it captures. */
static Expr *made_of(const Made *m, Expr *const *atoms) {
    Expr *e = m->e;
    for (size_t i = m->given.len; e && i-- > 0;)
        e = expr_let(m->given.data[i], atoms[i], e);
    return e;
}

/* vmap(f) as a loop that captured f. Code of all rows is made of f as it was written; what the loop calls is read with values in
 * place of references. */
Expr *read_vmap(Reader *r, Expr *e) {
    bool is_new;
    Expr *copy = expr_copy(e), *f = read_value(r, e->a);
    if (r->p->why)
        return e;
    Made *m = find_made(r, e, &is_new);
    Known *k = expr_is_vmap_of_literal(e) ? known_of(r, f) : NULL;
    if (is_new) {
        Build b = {e->span};
        vec_push(&m->given, b_var(&b, "f", f->type));
        copy->a = b_ref(&b, m->given.data[0]);
        Expr *loop = vmap_to_run(r->p->ctx, copy);
        m->e = loop == copy ? NULL : loop;
        m->values = k ? references_as_values(r->p, k->fn) : NULL;
    }
    if (k)
        k->fn = m->values;
    copy->a = f;
    return m->e ? made_of(m, &f) : copy;
}

/* Names a type: where its text leaves something open, by what that is. */
static void add_type(Str *key, Type *t) {
    Map seen[2] = {0};
    TypeVec names = {0};
    str_printf(key, "%s,", type_text(t));
    type_collect_names(t, seen, &names);
    for (size_t i = 0; i < names.len; i++)
        str_printf(key, "%p,", (void *)names.data[i]);
}

/* ---- sizes of a call --------------------------------------------------------------------------- */

static bool asks_plan(void *ctx, const Expr *e) {
    (void)ctx;
    return expr_calls_builtin(e, "vmap.plan");
}

/* What is known of the types of a function, and of those around it where it was written. */
typedef struct Sizes {
    Mono *own;
    struct Sizes *around;
} Sizes;

static bool is_rows(const Expr *e) {
    return (e->kind == EXPR_GRAD && e->mode == GRAD_VMAP) || asks_plan(NULL, e);
}

bool leads_to_rows(Map *known, Expr *fn) { return code_leads_to(known, fn, is_rows); }

/* The type of a value in code of that function. */
static Type *type_at(const Known *k, Type *t) {
    for (const Sizes *at = k->sizes; at; at = at->around)
        t = mono_type(at->own, t);
    return t;
}

/* Types that are one, an open and a closed one. */
typedef struct Pairs {
    const Known *of;
    KnownTypes types; /* that follow from those of the parts */
    VarVec open;
    VEC(Expr *) closed; /* of these types */
} Pairs;

static void add_pair(Pairs *p, Type *open, Type *closed) {
    TypeVec names = {0};
    closed = closed ? type_at(p->of, closed) : NULL;
    if (!open || !closed || type_is_closed(open) || !type_is_closed(closed))
        return;
    type_collect_names(open, (Map[2]){0}, &names);
    for (size_t i = 0; i < names.len; i++)
        if (names.data[i]->param.each)
            return;
    Var *to = var_new(sym_intern("x"), closed, span_none());
    vec_push(&p->open, var_new(sym_intern("x"), open, span_none()));
    vec_push(&p->closed, expr_var(to, span_none()));
}

/* A body that came in the place of a call has names of its own for sizes: what they are follows from values that it names. */
static bool add_pairs(void *ctx, const Expr *e) {
    Pairs *p = ctx;
    const Scheme *scheme = e->kind == EXPR_GLOBAL ? e->global->scheme : NULL;
    if (e->kind == EXPR_LET && e->var) {
        map_set(&p->types.values, e->var, e->a);
        add_pair(p, e->var->type, known_type(&p->types, expr_var(e->var, e->span)));
    } else if (e->kind == EXPR_VAR) {
        add_pair(p, e->type, e->var->type);
    } else if (scheme && e->global->kind == GLOBAL_LET) {
        add_pair(p, e->type, scheme->type);
    }
    return false;
}

/* Whether all of that is known already. */
static bool is_known_at(const Known *k, const Mono *sizes) {
    for (size_t i = 0; i < sizes->from.len; i++)
        if (!type_equal(type_at(k, sizes->from.data[i]), sizes->to.data[i]))
            return false;
    return true;
}

static Known *with_sizes(const Known *k, Sizes *sizes) {
    Known *made = mem_new(Known);
    *made = *k;
    made->sizes = sizes;
    made->known = mem_new_n(Known *, k->captured.len + 1);
    for (uint32_t i = 0; i < k->captured.len; i++)
        made->known[i] = k->known[i] == k ? made : k->known[i];
    return made;
}

Known *known_at_sizes(Reader *r, Known *k, Expr *const *args, uint32_t nargs) {
    if (!leads_to_rows(&r->p->rows, k->original))
        return k;
    Pairs pairs = {.of = k, .types = {.ctx = r->p->ctx}};
    for (uint32_t i = 0; i < nargs; i++) {
        Var *param = k->fn->fn->params[i];
        Type *type = type_at(r->n->self, args[i]->type);
        add_pair(&pairs, param->type, type);
        if (type_is_closed(type))
            map_set(&pairs.types.types, param, type_resolve(type));
    }
    expr_any(k->fn, add_pairs, &pairs);
    Mono *own = mono_of_rows(pairs.open.data, pairs.closed.data, (uint32_t)pairs.open.len);
    if (!own || is_known_at(k, own))
        return k;
    Str key = {0};
    str_printf(&key, "sizes in %p", (void *)k->sizes);
    for (size_t i = 0; i < own->from.len; i++)
        str_printf(&key, ", %p is %s", (const void *)own->from.data[i], type_text(own->to.data[i]));
    const Symbol *name = sym_intern(str_text(&key));
    Sizes *sizes = map_find(&r->p->typed, name);
    if (!sizes) {
        sizes = mem_new(Sizes);
        *sizes = (Sizes){own, k->sizes};
        map_set(&r->p->typed, name, sizes);
    }
    return with_sizes(k, sizes);
}

/* ---- the function ------------------------------------------------------------------------------ */

/* What a function captured as number i. */
static Expr *captured_part(Walk *w, Expr *f, const Known *k, uint32_t i) {
    Build b = {f->span};
    Expr *number = expr_int(i, DT_I32, b.span), *part;
    k->original->fn->keeps_captured = true;
    if (!read_builtin(w->r, b_builtin(&b, "ad.captured", f, number, NULL), true, &part))
        return NULL;
    part->type = part->var->type = k->captured.data[i]->type;
    return part;
}

static Expr *walk_function(Walk *w, Expr *f, const Known *k, RowForm *const *rows, int depth);

/* What stands for a captured variable in the code; NULL where the run may find more than is known of it here. */
static Expr *walk_captured(Walk *w, Expr *f, const Known *k, uint32_t i, int depth) {
    const Var *var = k->captured.data[i];
    Expr *part = k->known[i] != k ? captured_part(w, f, k, i) : NULL;
    if (!part)
        return NULL;
    if (k->known[i]) {
        Expr *fn = walk_function(w, part, k->known[i], NULL, depth + 1);
        return fn ? vmap_source_link(&w->source, var, fn) : NULL;
    }
    Type *type = type_at(k, var->type);
    bool is_same = type_is_closed(var->type) || type_resolve(type)->tag == TY_TENSOR;
    if (!is_same || !type_is_closed(type) || type_holds_code(type) || type_has(type, TY_REF))
        return NULL; /* of data the run knows what is written */
    Var *given = var_new(var->name, type, var->span);
    add_type(&w->key, type);
    vec_push(&w->source.given, given);
    vec_push(&w->given, part);
    return expr_var(given, var->span);
}

/* The literal with other names for what it captured; NULL as above. rows: what its parameters are, or NULL. */
static Expr *walk_function(Walk *w, Expr *f, const Known *k, RowForm *const *rows, int depth) {
    Expr *fn = k->original;
    if (depth > VMAP_DEEPEST || fn->fn->is_remade || !fn_has_own_code(fn) ||
        (rows && fn->fn->nparams != w->source.n))
        return NULL;
    if (!vmap_function(w->r->p->ctx, fn) && expr_any(fn, asks_plan, NULL))
        return NULL;
    VEC(Expr *) are = {0};
    str_printf(&w->key, "%p(", (const void *)fn);
    for (uint32_t i = 0; i < k->captured.len; i++) {
        Expr *is = walk_captured(w, f, k, i, depth);
        if (!is)
            return NULL;
        vec_push(&are, is);
    }
    str_add_char(&w->key, ')');
    return vmap_source_literal(w->r->p->ctx, fn, &k->captured, are.data, rows, w->source.n);
}

/* ---- its code ---------------------------------------------------------------------------------- */

/* Whether the run finds these types, too: it knows all sizes. A function in data is any that is there. */
static bool form_is_known(const RowForm *form) {
    RowFormVec leaves = {0};
    row_form_leaves(form, &leaves);
    for (size_t i = 0; i < leaves.len; i++)
        if (leaves.data[i]->is_whole ? type_resolve(leaves.data[i]->type)->tag != TY_STRING
                                     : !type_is_closed(leaves.data[i]->type))
            return false;
    return true;
}

/* What a row of each argument is; NULL where a type leaves something to the run. */
static RowForm **forms_of_args(Expr *const *args, uint32_t n) {
    RowForm **forms = mem_new_n(RowForm *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        forms[i] = row_form_of_rows(args[i]->type);
        if (!forms[i] || !form_is_known(forms[i]))
            return NULL;
    }
    return row_forms_settle(forms, n) ? forms : NULL;
}

/* A variable for each argument, whose first axis has a size that no other one has where its own is not known. */
static Expr **args_of_some_size(Expr *const *args, uint32_t n, Type *rows) {
    Expr **some = mem_new_n(Expr *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Type *row = vmap_type_of_row(args[i]->type);
        Type *type = type_is_closed(args[i]->type) || !row ? args[i]->type : type_rows(row, rows);
        some[i] = expr_var(var_new(sym_intern("x"), type, args[i]->span), args[i]->span);
    }
    return some;
}

/* What the code may do, given any number of rows: it does with a row what it does with each. */
static unsigned effects_of_rows(PassCtx *ctx, Expr *made, Expr *const *args, uint32_t n) {
    enum { SOME_SIZE = 104729 }; /* a prime, so that no size of a row divides it */
    uint32_t ngiven = made->fn->nparams - n;
    Expr **some = args_of_some_size(args, n, type_dim_int(SOME_SIZE, NULL));
    Subst s = {.mono = mono_of_rows(made->fn->params + ngiven, some, n)};
    Expr *sized = expr_substitute(&s, made);
    Effects *effects = effects_new(ctx, sized);
    unsigned found = effects_at(effects, sized->fn->body);
    effects_end(effects);
    return found & ~(EFFECT_MISFITS | EFFECT_MAKES);
}

/* f at all rows of the arguments, a function of these. */
static void make_code(Walk *w, Made *m, Expr *const *args) {
    PassCtx *ctx = w->r->p->ctx;
    uint32_t n = w->source.n;
    DependencyVec deps = {0};
    BatchRefusal refusal;
    Expr *fn = vmap_at_all_rows(ctx, &w->source, &deps, &refusal);
    for (size_t i = 0; i < deps.len; i++)
        use_global(w->r->p, deps.data[i].global);
    m->never = !fn;
    unsigned effects = fn ? effects_of_rows(ctx, fn, args, n) : 0;
    if (!fn || effects & ~(EFFECT_FAILS | EFFECT_LOOPS))
        return;
    m->may_fail = effects != 0;
    uint32_t ngiven = fn->fn->nparams - n;
    Build b = {w->source.span};
    Subst s = {0};
    VEC(Expr *) are = {0};
    for (uint32_t i = 0; i < ngiven; i++) {
        const Var *param = fn->fn->params[i];
        vec_push(&m->given, var_new(param->name, param->type, param->span));
        vec_push(&are, b_ref(&b, m->given.data[i]));
        map_set(&s.vars, param, are.data[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        vec_push(&are, (Expr *)args[i]);
    s.mono = mono_of_inlined(fn, are.data, ngiven + n);
    m->e = expr_substitute(&s, b_fn(&b, "vmap", fn->fn->params + ngiven, n, fn->fn->body));
}

typedef struct Search {
    Map seen;
    bool found;
} Search;

static void find_derivative(void *ctx, Expr *e) {
    Search *s = ctx;
    if (s->found || e->kind == EXPR_FN || expr_is_leaf(e) || !map_enter(&s->seen, e))
        return;
    s->found = is_derivative(e);
    expr_each_child(e, find_derivative, s);
}

/* Whether f is a derivative, or takes one whatever it is given, so that there is no code of all rows that a derivative follows. A
 * derivative in a function that is written in f may be in an arm that no row takes. */
static bool derives(const Known *k) {
    Search s = {0};
    if (k)
        find_derivative(&s, k->original->fn->body);
    return k && (fn_is_straight(k->original) || s.found);
}

/* f at all rows of the arguments, a function of these; NULL where the run decides, or there is *none. tuple: of atoms, or NULL
 * where it is not known. */
static Expr *code_of_rows(Reader *r, Expr *f, const Expr *tuple, bool *none, bool *may_fail) {
    const Known *k = known_of(r, f);
    uint32_t n = tuple ? tuple->nargs : 0;
    Expr **args = mem_new_n(Expr *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        args[i] = expr_copy(tuple->args[i]);
        args[i]->type = type_at(r->n->self, args[i]->type);
    }
    RowForm **forms = k && tuple ? forms_of_args(args, n) : NULL;
    Walk w = {.r = r, .source = {.rows = forms, .n = n, .span = f->span, .follows = true}};
    if (!forms || !(w.source.fn = walk_function(&w, f, k, forms, 0)) || r->p->why) {
        *none = derives(k);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        add_type(&w.key, args[i]->type);
    bool is_new;
    Made *m = find_made(r, sym_intern(str_text(&w.key)), &is_new);
    if (is_new)
        make_code(&w, m, args);
    *none = m->never;
    *may_fail = m->may_fail;
    return made_of(m, w.given.data);
}

/* The tuple that an atom is, of atoms; NULL where it is none. */
static const Expr *find_tuple(const Reader *r, const Expr *atom) {
    const Expr *e = known_value(r->n, atom);
    bool found = e->kind == EXPR_TUPLE;
    for (uint32_t i = 0; found && i < e->nargs; i++)
        found = is_atom(e->args[i]);
    return found ? e : NULL;
}

Expr *read_plan(Reader *r, Expr *call) {
    bool none = false, may_fail = false;
    Expr *rows = code_of_rows(r, call->args[0], find_tuple(r, call->args[1]), &none, &may_fail);
    if (!rows && !none)
        return NULL;
    Expr **parts = mem_new_n(Expr *, 2);
    parts[0] = expr_bool(!none, call->span);
    parts[1] = none ? expr_unit(call->span) : read_value(r, rows);
    if (rows && may_fail) {
        Expr **asked = mem_new_n(Expr *, 2);
        asked[0] = parts[1];
        asked[1] = call->args[1];
        parts[0] = add_plain(
            r, "ok",
            expr_call_builtin("vmap.has_value", asked, 2, type_scalar(DT_BOOL), call->span));
    }
    Expr *tuple = expr_tuple(parts, 2, call->span);
    Expr *plan = add_plain(r, "plan", tuple);
    map_set(&r->n->tuples, plan->var, tuple);
    Place *p = place_new(r->n, tuple->type); /* its parts are read, and nothing else */
    place_make_tuple(r->n, p, 2);
    p->parts[0] = NULL;
    p->parts[1] = place_of(r->n, parts[1]);
    name_place(r, plan->var, p, NULL);
    return plan;
}
