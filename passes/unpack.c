/* SPDX-License-Identifier: Apache-2.0 */
/* unpack: a definition that hands itself records made anew hands round their parts.
 *
 *   def steps(n, p: Line) { if (n == 0) { p } else { steps(n - 1, Line { w: p.w - 0.1 * x, b: p.b * 0.5 }) } }
 *
 *   becomes   def steps(n, p) { steps__parts(n, p.w, p.b) }   where
 *
 *   def steps__parts(n, w, b) {
 *     if (n == 0) { Line { w: w, b: b } } else { steps__parts(n - 1, w - 0.1 * x, b * 0.5) }
 *   }
 *
 * A tensor in a record belongs to whoever has the record; as an argument of its own that nobody else has, it may be
 * written over (Note [Owners] in eval/own.h), so a training loop updates its weights where they stand. Records are made
 * where the whole is asked for.
 *
 * A parameter is taken apart where its type is known whole, all the way down to what is no record and no tuple, there is a
 * tensor with axes in it, and each call of the definition by itself gives it data that is made there, or itself. It does
 * not look at local functions. */
#include "passes/inline.h"

Expr *pass_unpack(PassCtx *ctx, Expr *e);

enum { MOST_PARTS = 24, DEEPEST = 6 };

/* A parameter, or what stands in it at some place. */
typedef struct Part {
    Type *type;
    Var *var;   /* of what is handed round as it is; else NULL */
    Ctor *ctor; /* of a record; NULL for a tuple */
    uint32_t n;
    struct Part **parts;
} Part;

typedef struct Unpacker {
    PassCtx *ctx;
    Expr *root;
    const Fn *written;
    Part **params; /* of the root: NULL where one stays */
    Global *made;
    Type *type; /* of that */
    Map data;   /* Var -> the data that a `let` binds it to */
    Map parts;  /* Var that names a part -> that */
    Map done;
    uint64_t walk; /* that of survey */
    bool *fits;    /* by parameter: all calls give data */
    bool *pays;
    bool calls_itself, gives_up;
    uint32_t nparts;
} Unpacker;

/* ---- parts of types --------------------------------------------------------------------------- */

static Part *part_new(Unpacker *u, const Symbol *name, Type *type, Span span, int depth) {
    Part *p = mem_new(Part);
    Type *t = p->type = type_resolve(type);
    const TypeDecl *decl = t->tag == TY_DATA ? t->decl : NULL;
    bool is_record = decl && decl->nctors == 1 && !decl->nexists && !decl->is_extern &&
                     decl->nparams == t->nargs && decl->ctors[0]->nfields;
    if (depth < DEEPEST && (is_record || (t->tag == TY_TUPLE && t->nargs))) {
        p->ctor = decl ? ctor_of_values(decl->ctors[0]) : NULL;
        p->n = decl ? p->ctor->nfields : t->nargs;
        p->parts = mem_new_n(Part *, p->n);
        for (uint32_t i = 0; i < p->n; i++) {
            bool is_named = decl && p->ctor->field_names;
            Type *field = decl ? type_substitute(decl->ctors[0]->fields[i], decl->params, t->args,
                                                 t->nargs)
                               : t->args[i];
            p->parts[i] = part_new(u, is_named ? p->ctor->field_names[i] : name, field, span,
                                   depth + 1);
        }
        return p;
    }
    u->nparts++;
    p->var = var_new(name, type, span);
    return p;
}

static bool holds_tensor(const Part *p) {
    uint32_t rank;
    Type **dims;
    if (p->var)
        return p->type->tag == TY_TENSOR && (!type_get_rank(p->type, &rank, &dims) || rank > 0);
    for (uint32_t i = 0; i < p->n; i++)
        if (holds_tensor(p->parts[i]))
            return true;
    return false;
}

/* ---- which parameters ------------------------------------------------------------------------- */

static bool is_self(const Unpacker *u, const Expr *e) {
    const Global *g = e->kind == EXPR_GLOBAL && e->global->kind == GLOBAL_DEF ? e->global : NULL;
    return g && g->value && g->value->kind == EXPR_FN && fn_written(g->value) == u->written;
}

static bool is_self_call(const Unpacker *u, const Expr *e) {
    return e->kind == EXPR_CALL && is_self(u, e->a) && !e->mode && !e->drop &&
           e->nargs == u->root->fn->nparams;
}

static bool is_data(const Expr *e) {
    return (e->kind == EXPR_TUPLE && e->nargs) ||
           (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR && e->nargs);
}

/* `{ p with w = e }` of a parameter. */
static bool is_update(const Unpacker *u, const Expr *e) {
    for (uint32_t i = 0; e->kind == EXPR_UPDATE && i < u->root->fn->nparams; i++)
        if (e->a->kind == EXPR_VAR && e->a->var == u->root->fn->params[i])
            return true;
    return false;
}

static const Expr *value_of_block(const Expr *e) {
    while (e->kind == EXPR_LET)
        e = e->body;
    return e;
}

/* Part `index` of what the expression is a part of; NULL where that is no part of a parameter. */
static Part *find_part(const Unpacker *u, const Expr *e) {
    if (e->kind == EXPR_VAR)
        return map_find(&u->parts, e->var);
    if (e->kind != EXPR_PROJ && e->kind != EXPR_FIELD)
        return NULL;
    Part *whole = find_part(u, e->a);
    bool fits = whole && !whole->var && e->index >= 0 && (uint32_t)e->index < whole->n &&
                (e->kind == EXPR_PROJ) == !whole->ctor;
    return fits ? whole->parts[e->index] : NULL;
}

static void look_at_argument(Unpacker *u, uint32_t i, const Expr *arg) {
    const Expr *value = value_of_block(arg);
    if (value->kind == EXPR_VAR && value->var == u->root->fn->params[i])
        return;
    bool is_made = is_data(value) || is_update(u, value) ||
                   (value->kind == EXPR_VAR && map_has(&u->data, value->var));
    u->fits[i] &= is_made;
    u->pays[i] |= is_made;
}

static void survey(void *ctx, Expr *e) {
    Unpacker *u = ctx;
    for (; walk_enter(u->walk, e); e = e->body) {
        pass_visit(u->ctx);
        if (e->kind != EXPR_LET)
            break;
        if (e->var && !e->rec && is_data(value_of_block(e->a)))
            map_set(&u->data, e->var, e->a);
        survey(u, e->a);
        if (e->body->walk == u->walk)
            return;
    }
    if (is_self_call(u, e)) {
        u->calls_itself = true;
        for (uint32_t i = 0; i < e->nargs; i++)
            look_at_argument(u, i, e->args[i]);
    }
    u->gives_up |= e->kind == EXPR_FN && e->fn->keeps_captured;
    expr_each_child(e, survey, u);
}

/* ---- the copy --------------------------------------------------------------------------------- */

static Expr *rewrite(Unpacker *u, Expr *e);

static Expr *rewrite_child(void *ctx, Expr *child) { return rewrite(ctx, child); }

static Expr *part_at(const Part *p, const Expr *use);

/* A record or tuple of the given parts. */
static Expr *data_of(const Part *p, Expr **args, const Expr *use) {
    Expr *made;
    if (p->ctor) {
        Type **types = mem_new_n(Type *, p->n);
        for (uint32_t i = 0; i < p->n; i++)
            types[i] = p->parts[i]->type;
        Type *type = type_fn(types, p->n, p->type, type_allocates());
        Expr *ctor = expr_new(EXPR_CTOR, type, use->span);
        ctor->ctor = p->ctor;
        made = expr_call(ctor, args, p->n, NULL, p->type, use->span);
    } else {
        made = expr_tuple(args, p->n, use->span);
    }
    made->inlined = use->inlined;
    return made;
}

static Expr **parts_at(const Part *p, const Expr *use) {
    Expr **args = mem_new_n(Expr *, p->n);
    for (uint32_t i = 0; i < p->n; i++)
        args[i] = part_at(p->parts[i], use);
    return args;
}

/* The part as an expression: a name, or the data of the parts in it. */
static Expr *part_at(const Part *p, const Expr *use) {
    if (!p->var)
        return data_of(p, parts_at(p, use), use);
    Expr *name = expr_var(p->var, use->span);
    name->inlined = use->inlined;
    return name;
}

typedef VEC(Expr *) ArgVec;

/* Reads the parts of a value that has a name. */
static void read_parts(const Part *p, Expr *value, ArgVec *out) {
    if (p->var) {
        vec_push(out, value);
        return;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        Expr *e = expr_new(p->ctor ? EXPR_FIELD : EXPR_PROJ, p->parts[i]->type, value->span);
        e->a = value;
        e->index = (int32_t)i;
        if (p->ctor)
            e->field = p->ctor->field_names[i];
        e->inlined = value->inlined;
        read_parts(p->parts[i], e, out);
    }
}

/* Whether all parts of records have names. */
static bool has_field_names(const Part *p) {
    bool has = p->var || !p->ctor || p->ctor->field_names;
    for (uint32_t i = 0; i < p->n && has; i++)
        has = has_field_names(p->parts[i]);
    return has;
}

static Expr *bind(Links *links, Expr *value) {
    Expr *link = expr_new(EXPR_LET, value->type, value->span);
    link->var = var_new(sym_intern("t"), value->type, value->span);
    link->a = value;
    vec_push(links, link);
    Expr *name = expr_var(link->var, value->span);
    name->inlined = value->inlined;
    return name;
}

static bool is_simple(const Expr *e) {
    return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like);
}

/* Adds the parts of an argument. What is computed for them goes to links, in its order. */
static void give_parts(const Part *p, Expr *arg, Links *links, ArgVec *out) {
    arg = open_links(links, arg);
    if (p->var) {
        vec_push(out, is_simple(arg) ? arg : bind(links, arg));
        return;
    }
    bool fits = is_data(arg) && arg->nargs == p->n &&
                (p->ctor ? arg->kind == EXPR_CALL && arg->a->ctor == p->ctor
                         : arg->kind == EXPR_TUPLE);
    if (!fits) {
        read_parts(p, arg->kind == EXPR_VAR ? arg : bind(links, arg), out);
        return;
    }
    for (uint32_t i = 0; i < p->n; i++)
        give_parts(p->parts[i], arg->args[i], links, out);
}

static Expr *rewrite_call(Unpacker *u, Expr *e) {
    Links links = {0};
    ArgVec args = {0};
    for (uint32_t i = 0; i < e->nargs; i++)
        give_parts(u->params[i], rewrite(u, e->args[i]), &links, &args);
    Expr *call = expr_copy(e);
    call->a = expr_global(u->made, u->type, e->a->span);
    call->args = args.data;
    call->nargs = (uint32_t)args.len;
    return close_links(&links, call);
}

/* `{ p with w = e }` as the data that it makes. */
static Expr *rewrite_update(Unpacker *u, const Part *p, Expr *e) {
    Links links = {0};
    Expr **args = parts_at(p, e);
    for (uint32_t i = 0; i < e->nargs; i++) {
        Expr *arg = open_links(&links, rewrite(u, e->args[i]));
        arg = is_simple(arg) ? arg : bind(&links, arg);
        for (uint32_t k = 0; k < p->n; k++)
            if (p->ctor->field_names[k] == e->field_names[i])
                args[k] = arg;
    }
    return close_links(&links, data_of(p, args, e));
}

static Expr *rewrite_block(Unpacker *u, Expr *e) {
    Links links = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        pass_visit(u->ctx);
        Part *part = e->var && !e->rec ? find_part(u, e->a) : NULL;
        if (part) {
            map_set(&u->parts, e->var, part);
            continue;
        }
        Expr *link = expr_copy(e);
        link->a = rewrite(u, e->a);
        vec_push(&links, link);
    }
    return close_links(&links, rewrite(u, e));
}

static Expr *rewrite(Unpacker *u, Expr *e) {
    Part *part = find_part(u, e);
    if (part)
        return part_at(part, e);
    Expr *known = map_find(&u->done, e);
    if (known)
        return known;
    pass_visit(u->ctx);
    const Part *updated = e->kind == EXPR_UPDATE ? find_part(u, e->a) : NULL;
    Expr *result;
    if (updated && !updated->var && updated->ctor)
        result = rewrite_update(u, updated, e);
    else if (is_self_call(u, e))
        result = rewrite_call(u, e);
    else if (e->kind == EXPR_LET)
        result = rewrite_block(u, e);
    else
        result = expr_map_children(e, rewrite_child, u);
    map_set(&u->done, e, result);
    return result;
}

static void list_vars(const Part *p, VarVec *out) {
    if (p->var)
        vec_push(out, p->var);
    for (uint32_t i = 0; i < p->n; i++)
        list_vars(p->parts[i], out);
}

/* The definition that takes the parts; its function has variables of its own. */
static void make_definition(Unpacker *u) {
    const Fn *fn = u->root->fn;
    VarVec vars = {0};
    for (uint32_t i = 0; i < fn->nparams; i++)
        list_vars(u->params[i], &vars);
    Type **types = mem_new_n(Type *, vars.len + 1);
    for (size_t i = 0; i < vars.len; i++)
        types[i] = vars.data[i]->type;
    u->type = type_fn(types, (uint32_t)vars.len, fn->body->type, type_allocates());
    u->made = mem_new(Global);
    *u->made = (Global){.kind = GLOBAL_DEF,
                        .name = sym_intern(fmt_text("%s__parts", fn->name ? fn->name->text : "fn")),
                        .span = u->root->span,
                        .internal = true,
                        .is_made = true};
    vec_push(&u->made->uses, u->made);
    Expr *made = expr_fn(vars.data, (uint32_t)vars.len, rewrite(u, fn->body), u->type,
                         u->root->span);
    made->fn->name = fn->name;
    Subst s = {.renames = true};
    made = expr_substitute(&s, made);
    made->fn->is_instance = true;
    made->fn->tails_marked = true;
    u->made->value = made;
}

/* The root as a function that gives the parts of its parameters to the definition. */
static Expr *call_definition(const Unpacker *u) {
    const Fn *fn = u->root->fn;
    ArgVec args = {0};
    for (uint32_t i = 0; i < fn->nparams; i++)
        read_parts(u->params[i], expr_var(fn->params[i], fn->body->span), &args);
    Expr *callee = expr_global(u->made, u->type, fn->body->span);
    Expr *call = expr_call(callee, args.data, (uint32_t)args.len, NULL, fn->body->type,
                           fn->body->span);
    call->tail = TAIL_CALL;
    return expr_fn_with_body(u->root, call);
}

/* Whether some parameter is to be taken apart. */
static bool choose_parameters(Unpacker *u) {
    const Fn *fn = u->root->fn;
    bool chosen = false;
    u->params = mem_new_n(Part *, fn->nparams + 1);
    for (uint32_t i = 0; i < fn->nparams; i++) {
        Var *v = fn->params[i];
        uint32_t before = u->nparts;
        Part *p = u->fits[i] && u->pays[i] && type_is_closed(v->type)
                      ? part_new(u, v->name, v->type, v->span, 0)
                      : NULL;
        if (p && !p->var && holds_tensor(p) && has_field_names(p) && u->nparts <= MOST_PARTS) {
            chosen = true;
            map_set(&u->parts, v, p);
        } else {
            u->nparts = before + 1;
            p = mem_new(Part);
            *p = (Part){.type = v->type, .var = v};
        }
        u->params[i] = p;
    }
    return chosen && u->nparts <= MOST_PARTS;
}

Expr *pass_unpack(PassCtx *ctx, Expr *e) {
    if (e->kind != EXPR_FN || e->fn->path || e->fn->base || e->fn->keeps_captured)
        return e;
    Unpacker u = {.ctx = ctx, .root = e, .written = fn_written(e), .walk = walk_new()};
    u.fits = mem_new_n(bool, e->fn->nparams + 1);
    u.pays = mem_new_n(bool, e->fn->nparams + 1);
    for (uint32_t i = 0; i < e->fn->nparams; i++)
        u.fits[i] = true;
    survey(&u, e->fn->body);
    if (!u.calls_itself || u.gives_up || !choose_parameters(&u))
        return e;
    make_definition(&u);
    pass_tell(ctx, TOLD_DONE, "unpack", e->span, "hands round the parts of records in `%s`",
              u.made->name->text);
    return call_definition(&u);
}
