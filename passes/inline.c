/* SPDX-License-Identifier: Apache-2.0 */
/* inline: `let x = y; e` where y is a name or a literal becomes e with y for x, and a call of a function literal
 * or of a small definition becomes lets.
 *
 *   let x = y; (fn (a) { f(a, x) })(g(z))              becomes   let a = g(z); f(a, y)
 *   let a = f(x); (x, a)                               becomes   (x, f(x))
 *   def twice(x) { x * 2 }   … twice(f(y)) + 1         becomes   let x = f(y); x * 2 + 1
 *
 * It runs nothing twice, leaves nothing out and keeps the order: a call moves into the tuple behind it
 * only past names and literals, which have no effect and none on them. A global that is bound by `let` stays
 * where it is read, since it may be given another value at the prompt.
 *
 * Note [Calls that stay]. Errors are told as if the call were still there (Note [Inlined calls] in core.h). Where
 * that cannot be had, the call stays: in the last field of data, whose evaluation keeps other activations; where a
 * tail call leads from the user's code into the library and from there on to a function that may be the user's, since the
 * activation remembers that call while it lasts; for the same reason where the body of the user's function ends in a tail
 * call into the library, or in one of which it is not known where it leads.
 * What function literals do that are not called here is left alone: they may run as part of a derivative,
 * whose code is made of the function as it was written.
 *
 * Every variable is bound once (core_check), so one map from variables to what stands for them serves the
 * whole expression, and a node is walked once. A literal that stands at several places gives its binders to
 * the first; the others get copies. */
#include "passes/inline.h"

#include "passes/cells.h"
#include "types/core/check.h"

Expr *pass_inline(PassCtx *ctx, Expr *e);

static Expr *inline_child(void *ctx, Expr *child) { return inline_expr(ctx, child); }

static bool is_atom(const Expr *e) {
    if (e->kind == EXPR_GLOBAL)
        return e->global->kind == GLOBAL_DEF || e->global->kind == GLOBAL_BUILTIN;
    return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like) || e->kind == EXPR_CONST ||
           e->kind == EXPR_OP;
}

/* The literal itself the first time, and later copies with binders of their own. */
static Expr *take_literal(Inliner *in, Expr *fn) {
    if (map_has(&in->taken, fn)) {
        Subst s = {.renames = true};
        fn = expr_substitute(&s, fn);
    }
    map_set(&in->taken, fn, fn);
    return fn;
}

static bool is_call_of_literal(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_FN && !e->mode && !e->drop &&
           !e->a->fn->path && e->a->fn->nparams == e->nargs;
}

/* How often v stands in e, if e is made of names and tuples only; otherwise many times. A name that a tuple in a function
 * literal gives a cell of its own (passes/cells.h) stays behind what was computed before. */
static uint32_t uses_in_tuple(const Inliner *in, const Expr *e, const Var *v) {
    enum { MANY = 1000 };
    if (is_atom(e))
        return e->kind == EXPR_VAR && e->var == v;
    if (e->kind != EXPR_TUPLE)
        return MANY;
    uint32_t uses = 0;
    bool keeps_order = in->nested && e->own_cells;
    for (uint32_t i = 0; i < e->nargs && uses < MANY; i++) {
        const Expr *part = e->args[i];
        uses += uses_in_tuple(in, part, v);
        if (keeps_order && !uses && !cells_are_new(part))
            uses = MANY;
    }
    return uses;
}

static Expr *put_into_tuple(const Expr *e, const Var *v, Expr *value) {
    if (e->kind == EXPR_VAR && e->var == v)
        return value;
    if (e->kind != EXPR_TUPLE)
        return (Expr *)(uintptr_t)e;
    Expr **args = mem_new_n(Expr *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++)
        args[i] = put_into_tuple(e->args[i], v, value);
    Expr *copy = expr_copy(e);
    copy->args = args;
    return copy;
}

static uint32_t uses_of(const Inliner *in, const Var *v) {
    return (uint32_t)(uintptr_t)map_find(&in->uses, v);
}

static void add_one(Map *counts, const Var *v) {
    void **count = map_at(counts, v);
    *count = (void *)((uintptr_t)*count + 1);
}

static void count_here(Inliner *in, Expr *e);

static void count_use(void *ctx, Expr *e) {
    Inliner *in = ctx;
    for (; (e->kind != EXPR_VAR && expr_is_leaf(e)) || map_enter(&in->visited, e); e = e->body) {
        pass_visit(in->ctx);
        if (e->kind != EXPR_LET) {
            count_here(in, e);
            return;
        }
        if (e->rec)
            map_set(&in->literals, e->var, e->a);
        count_use(in, e->a);
    }
}

/* Of an expression that is no block. */
static void count_here(Inliner *in, Expr *e) {
    if (e->kind == EXPR_VAR)
        add_one(&in->uses, e->var);
    if (e->kind == EXPR_CALL && e->a->kind == EXPR_VAR && !e->mode && !e->drop &&
        (!in->counted || in->counted == map_find(&in->literals, e->a->var)))
        add_one(&in->calls, e->a->var);
    const Expr *outer = in->counted;
    if (e->kind == EXPR_FN && e != in->root)
        in->counted = e;
    expr_each_child(e, count_use, in);
    in->counted = outer;
}

void inline_count_uses(Inliner *in, Expr *e) { count_use(in, e); }

/* ---- what is called -------------------------------------------------------------------------- */

Expr *inline_atom(Inliner *in, Expr *e) {
    Expr *atom = e->kind == EXPR_VAR ? map_find(&in->atoms, e->var) : NULL;
    return atom ? atom : e;
}

/* Nothing is won by the first step of a recursion alone. */
static bool mentions_itself(const Global *g) {
    for (size_t i = 0; i < g->uses.len; i++)
        if (g->uses.data[i] == g)
            return true;
    return false;
}

static Expr *function_of_global(const Global *g) {
    return g->kind == GLOBAL_DEF && !g->broken && !g->by_types && g->value &&
                   g->value->kind == EXPR_FN
               ? g->value
               : NULL;
}

Expr *inline_known_function(Inliner *in, Expr *e) {
    e = inline_atom(in, e);
    if (e->kind == EXPR_VAR)
        return map_find(&in->known, e->var);
    return e->kind == EXPR_FN ? e : e->kind == EXPR_GLOBAL ? function_of_global(e->global) : NULL;
}

Expr *inline_known_literal(Inliner *in, Expr *e) {
    Expr *fn = inline_known_function(in, e);
    e = inline_atom(in, e);
    return fn || e->kind != EXPR_VAR ? fn : map_find(&in->literals, e->var);
}

typedef struct Count {
    uint32_t n, most;
    bool parts_are_names; /* a part that is read counts as one node */
} Count;

static void count_node(void *ctx, Expr *e) {
    Count *c = ctx;
    for (; e->kind == EXPR_LET && c->n <= c->most; e = e->body) {
        c->n++;
        count_node(c, e->a);
    }
    bool is_name = c->parts_are_names && (e->kind == EXPR_FIELD || e->kind == EXPR_PROJ);
    if (c->n++ < c->most && !is_name)
        expr_each_child(e, count_node, c);
}

uint32_t expr_count(Expr *e, uint32_t most) {
    Count c = {.most = most};
    count_node(&c, e);
    return c.n < most ? c.n : most;
}

const Fn *fn_written(const Expr *fn) { return fn->fn->written ? fn->fn->written : fn->fn; }

void fn_note_written(Expr *after, const Expr *before) {
    if (after != before && after->kind == EXPR_FN && before->kind == EXPR_FN)
        after->fn->written = fn_written(before);
}

bool fn_is_straight(const Expr *fn) { return fn->fn->is_straight || fn_written(fn)->is_straight; }

/* Whether the call stands in the body of fn, itself inlined or not. */
static bool is_within(const Inliner *in, const Expr *call, const Expr *fn) {
    int depth = 0;
    for (const Inlined *i = call->inlined; i; i = i->outer, depth++)
        if (fn_written(i->fn) == fn_written(fn))
            return true;
    return depth >= INLINED_MOST / 2 ||
           (in->root->kind == EXPR_FN && fn_written(in->root) == fn_written(fn));
}

/* Whether the tail call e, in the body of the user's function fn that `call` calls, leads to a function of the user. */
static bool leads_to_user(Inliner *in, const Expr *e, const Expr *fn, const Expr *call) {
    Expr *callee = inline_atom(in, e->a);
    if (callee->kind == EXPR_OP || callee->kind == EXPR_BUILTIN ||
        (callee->kind == EXPR_GLOBAL && callee->global->kind == GLOBAL_BUILTIN))
        return true;
    for (uint32_t i = 0; i < call->nargs && callee->kind == EXPR_VAR; i++)
        if (fn->fn->params[i] == callee->var)
            callee = inline_atom(in, call->args[i]);
    const Expr *known = inline_known_function(in, callee);
    return known && !expr_is_internal(known);
}

/* Calls visit with each expression that the result of a function's body is, blocks, arms and calls of literals left out.
 * False where it once was. */
static bool each_result(const Expr *fn, bool (*visit)(void *ctx, Expr *e), void *ctx) {
    Links pending = {0};
    vec_push(&pending, fn->fn->body);
    while (pending.len) {
        Expr *e = vec_pop(&pending);
        while (e->kind == EXPR_LET || e->kind == EXPR_CHECK)
            e = e->kind == EXPR_LET ? e->body : e->a;
        if (e->kind == EXPR_IF) {
            vec_push(&pending, e->b);
            vec_push(&pending, e->c);
        } else if (e->kind == EXPR_MATCH) {
            for (uint32_t i = 0; i < e->narms; i++)
                vec_push(&pending, e->arms[i].body);
        } else if (is_call_of_literal(e)) {
            vec_push(&pending, e->a->fn->body);
        } else if (!visit(ctx, e)) {
            return false;
        }
    }
    return true;
}

/* Whether the result e of the body of a function is no call but of a function of the library. */
static bool stays_in_library(void *ctx, Expr *e) {
    Inliner *in = ctx;
    if (e->kind != EXPR_CALL || e->a->kind == EXPR_OP || e->a->kind == EXPR_BUILTIN ||
        e->a->kind == EXPR_CTOR ||
        (e->a->kind == EXPR_GLOBAL && e->a->global->kind == GLOBAL_BUILTIN))
        return true;
    const Expr *known = e->a->kind == EXPR_GLOBAL ? inline_known_function(in, e->a) : NULL;
    return known && expr_is_internal(known);
}

/* The same of the functions of the library that it calls, too. */
typedef struct LibraryWalk {
    Inliner *in;
    int depth;
} LibraryWalk;

static bool ends_in_library(void *ctx, Expr *e) {
    enum { DEEPEST = 4 };
    LibraryWalk *w = ctx;
    if (!stays_in_library(w->in, e))
        return false;
    if (e->kind != EXPR_CALL || e->a->kind != EXPR_GLOBAL || e->a->global->kind != GLOBAL_DEF)
        return true;
    LibraryWalk below = {w->in, w->depth + 1};
    return w->depth < DEEPEST && !mentions_itself(e->a->global) &&
           each_result(inline_known_function(w->in, e->a), ends_in_library, &below);
}

typedef struct Ending {
    Inliner *in;
    const Expr *fn, *call;
} Ending;

/* Note [Calls that stay]: whether the result e of the body of a function leaves the activations that there would be. */
static bool ends_well(void *ctx, Expr *e) {
    Ending *at = ctx;
    if (e->kind != EXPR_CALL)
        return true;
    if (e->a->kind != EXPR_CTOR)
        return expr_is_internal(at->fn) || leads_to_user(at->in, e, at->fn, at->call) ||
               ends_in_library(&(LibraryWalk){at->in, 0}, e);
    while (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR && e->nargs)
        e = e->args[e->nargs - 1];
    return e->kind != EXPR_CALL || e->tail != TAIL_IN_FIELD || e->a->kind == EXPR_OP ||
           e->a->kind == EXPR_BUILTIN;
}

/* Whether a tail call leads from the program's code into the library, itself or as the last act of inlined ones. */
static bool leaves_program(const Inliner *in, const Expr *call, const Expr *fn) {
    if (call->tail != TAIL_CALL || !expr_is_internal(fn))
        return false;
    const Inlined *i = call->inlined;
    for (; i; i = i->outer)
        if (!i->internal || !i->tail)
            return !i->internal;
    return !expr_is_internal(in->root);
}

enum {
    SMALL = 30,   /* nodes of a function that is copied wherever it is called */
    LOCAL = 100,  /* of a local one that is only called: then no closure of it is made */
    ONCE = 400,   /* of one that is called once */
    FRAME = 1000, /* of one that takes apart a frame which is made here: then no frame is made */
    GROWN = 4000, /* by how many nodes a function grows */
};

static const char *name_of(const Expr *callee, const Expr *fn) {
    if (callee->kind == EXPR_GLOBAL)
        return callee->global->name->text;
    if (fn && fn->fn->name)
        return fn->fn->name->text;
    return callee->kind == EXPR_VAR ? callee->var->name->text : "a function";
}

/* Why the body of fn, of n nodes, cannot stand in place of the call; NULL where it can. */
static const char *find_obstacle(Inliner *in, const Expr *call, const Expr *callee, Expr *fn,
                                 uint32_t n, uint32_t most) {
    if (is_within(in, call, fn) || (callee->kind == EXPR_GLOBAL && mentions_itself(callee->global)))
        return "it calls itself";
    if (n == most)
        return fmt_text("it has %u nodes or more", most);
    if (in->grown + n > GROWN)
        return fmt_text("what it stands in has grown by %d nodes already", GROWN);
    expr_mark_tails(fn);
    Ending ending = {in, fn, call};
    bool stays = leaves_program(in, call, fn) && !fn_is_straight(fn) &&
                 !each_result(fn, stays_in_library, in);
    if (stays || !each_result(fn, ends_well, &ending))
        return "messages of errors would lose a call";
    return NULL;
}

/* The tuple or data, as it is written, that e is known to be, or NULL. An arm that is never taken may read more than a frame
 * has. */
static const Expr *known_data(Inliner *in, Expr *e) {
    e = inline_atom(in, e);
    if (e->kind == EXPR_VAR)
        return map_find(&in->data, e->var);
    if (expr_calls_builtin(e, "ad.dense")) /* which fold takes away where nothing is absent */
        return known_data(in, e->args[1]);
    const Expr *whole = e->kind == EXPR_PROJ ? known_data(in, e->a) : NULL;
    if (whole && (uint32_t)e->index < whole->nargs)
        return known_data(in, whole->args[e->index]);
    bool is_data = e->kind == EXPR_TUPLE || (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR);
    return is_data && e->nargs ? e : NULL;
}

/* Whether fn, the way back of a function, is called where the frame was made that it takes apart. */
static bool takes_known_frame(Inliner *in, const Expr *call, const Expr *fn) {
    for (uint32_t i = 0; i < call->nargs; i++)
        if (fn_has_frames(fn->fn, fn->fn->params[i]) && known_data(in, call->args[i]))
            return true;
    return false;
}

/* Nodes of the body of fn in place of the call. What is read of data that is made here is as good as a name there. */
static uint32_t count_in_place(Inliner *in, const Expr *call, const Expr *fn, uint32_t most) {
    Count c = {.most = most};
    for (uint32_t i = 0; i < call->nargs; i++)
        c.parts_are_names |= known_data(in, call->args[i]) != NULL;
    count_node(&c, fn->fn->body);
    return c.n < most ? c.n : most;
}

/* The function whose body is to stand in place of the call; NULL where the call stays. */
static Expr *function_to_inline(Inliner *in, Expr *call) {
    if (!in->replaces_calls || in->nested || call->kind != EXPR_CALL || call->mode || call->drop ||
        call->tail == TAIL_IN_FIELD || call->a->kind == EXPR_FN)
        return NULL;
    Expr *callee = inline_atom(in, call->a);
    Expr *fn = callee->kind == EXPR_GLOBAL ? leaves_function(in, call, callee->global) : NULL;
    bool is_made = fn != NULL;
    fn = fn ? fn : inline_known_function(in, callee);
    if (!fn && callee->kind == EXPR_VAR)
        pass_tell(in->ctx, TOLD_LEFT, "inline", call->span,
                  "left the call of `%s`: which function it is, the run decides",
                  name_of(callee, NULL));
    if (!fn || fn->fn->nparams != call->nargs || fn->fn->path)
        return NULL;
    bool once = is_made || (callee->kind == EXPR_VAR && uses_of(in, callee->var) == 1) ||
                fn_is_straight(fn);
    bool is_local = callee->kind == EXPR_VAR &&
                    map_find(&in->calls, callee->var) == map_find(&in->uses, callee->var);
    uint32_t most = takes_known_frame(in, call, fn) ? FRAME
                    : once                          ? ONCE
                    : is_local                      ? LOCAL
                                                    : SMALL;
    uint32_t n = count_in_place(in, call, fn, most);
    const char *obstacle = find_obstacle(in, call, callee, fn, n, most);
    if (obstacle) {
        pass_tell(in->ctx, TOLD_LEFT, "inline", call->span, "left the call of `%s`: %s",
                  name_of(callee, fn), obstacle);
        return NULL;
    }
    pass_tell(in->ctx, TOLD_DONE, "inline", call->span, "put `%s` in place of its call",
              name_of(callee, fn));
    if (callee->kind == EXPR_GLOBAL)
        pass_depend(in->ctx, callee->global);
    in->grown += n;
    return fn;
}

static bool takes_derivative(void *ctx, const Expr *e) {
    (void)ctx;
    return is_derivative(e);
}

/* The activation that the call of fn begins, of which the parts of a copy in its place are. */
static const Inlined *site_of_call(const Expr *fn, const Expr *call) {
    Inlined *site = mem_new(Inlined);
    *site = (Inlined){.name = fn->fn->name,
                      .fn = fn,
                      .call = call->span,
                      .internal = expr_is_internal(fn),
                      .tail = call->tail == TAIL_CALL,
                      .outer = call->inlined};
    return site;
}

/* A copy of fn to stand in place of the call. */
static Expr *copy_for_call(Inliner *in, Expr *fn, const Expr *call, const Inlined *site) {
    Subst s = {.site = site, .renames = true};
    s.mono = mono_of_inlined(fn, call->args, call->nargs);
    /* the body alone: a function literal's parts would not be its activation's */
    for (uint32_t i = 0; i < fn->fn->nparams; i++) {
        Var *param = fn->fn->params[i];
        Var *fresh = var_new(param->name, mono_type(s.mono, param->type), param->span);
        fresh->scheme = param->scheme;
        map_set(&s.vars, param, expr_var(fresh, param->span));
    }
    Expr *copy = expr_copy(fn);
    copy->fn = mem_new(Fn);
    *copy->fn = (Fn){.name = fn->fn->name, .nparams = fn->fn->nparams};
    copy->fn->params = mem_new_n(Var *, fn->fn->nparams + 1);
    for (uint32_t i = 0; i < fn->fn->nparams; i++)
        copy->fn->params[i] = ((Expr *)map_find(&s.vars, fn->fn->params[i]))->var;
    copy->fn->body = expr_substitute(&s, fn->fn->body);
    in->ctx->brought_derivative |= expr_any(copy->fn->body, takes_derivative, NULL);
    inline_count_uses(in, copy->fn->body);
    return copy;
}

/* The same of a literal that is used here alone: what it captured is used no more often than before. */
static Expr *copy_called(Inliner *in, Expr *fn, const Expr *call, const Inlined *site) {
    VarVec captured = {0};
    expr_free_vars(fn, &captured);
    void **uses = mem_new_n(void *, captured.len + 1);
    void **calls = mem_new_n(void *, captured.len + 1);
    for (size_t i = 0; i < captured.len; i++) {
        uses[i] = map_find(&in->uses, captured.data[i]);
        calls[i] = map_find(&in->calls, captured.data[i]);
    }
    Expr *copy = copy_for_call(in, fn, call, site);
    for (size_t i = 0; i < captured.len; i++) {
        map_set(&in->uses, captured.data[i], uses[i]);
        map_set(&in->calls, captured.data[i], calls[i]);
    }
    return copy;
}

/* The function literal whose body continues the block in place of the call e; NULL where e stays. One that was written
 * where it is called begins no activation: its parts are of that in which it stands. */
static Expr *literal_for_call(Inliner *in, Expr *e) {
    if (is_call_of_literal(e) && e->a->fn->is_straight)
        return copy_for_call(in, e->a, e, site_of_call(e->a, e));
    if (is_call_of_literal(e))
        return e->inlined ? copy_called(in, e->a, e, e->inlined) : take_literal(in, e->a);
    Expr *fn = function_to_inline(in, e);
    return fn ? copy_for_call(in, fn, e, site_of_call(fn, e)) : NULL;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

Expr *inline_open_block(Inliner *in, Links *links, Expr *block) {
    while (block->kind == EXPR_LET) {
        if (map_has(&in->taken, block)) {
            Subst s = {.renames = true};
            block = expr_substitute(&s, block);
        }
        map_set(&in->taken, block, block);
        vec_push(links, expr_copy(block));
        block = block->body;
    }
    return block;
}

/* Binds v to value before what follows, unless value is a name or literal that can replace v. A block that is
 * the value comes before it. before: the value as it was before it was visited: a function literal is known by that, with
 * all the variables it captures. */
static void bind(Inliner *in, Links *links, Expr *let, Var *v, Expr *value, Expr *before) {
    if (in->replaces_calls || let->rec)
        value = inline_open_block(in, links, value);
    if (v && !let->rec && is_atom(value)) {
        map_set(&in->atoms, v, value);
        return;
    }
    const Expr *data = v && !let->rec ? known_data(in, value) : NULL;
    if (data)
        map_set(&in->data, v, (void *)(uintptr_t)data);
    if (v && !let->rec && value->kind == EXPR_FN)
        map_set(&in->known, v, before->kind == EXPR_FN ? before : value);
    let->var = v;
    let->a = value;
    vec_push(links, let);
}

/* Inlines in a block: in its bindings, and in calls whose bodies continue the block. fn: of the call that e is, or
 * NULL. */
static Expr *inline_block(Inliner *in, Expr *e, Expr *fn) {
    Links links = {0};
    for (;;) {
        pass_visit(in->ctx);
        if (e->kind == EXPR_LET) {
            if (specialise_local(in, e))
                map_set(&in->locals, e->var, e);
            bind(in, &links, expr_copy(e), e->var, inline_expr(in, e->a), e->a);
            e = e->body;
        } else if (fn) {
            for (uint32_t i = 0; i < e->nargs; i++)
                bind(in, &links, expr_new(EXPR_LET, e->type, e->span), fn->fn->params[i],
                     inline_expr(in, e->args[i]), e->args[i]);
            e = fn->fn->body;
        } else {
            break;
        }
        fn = e->kind == EXPR_CALL ? literal_for_call(in, e) : NULL;
    }
    Expr *result = inline_expr(in, e);
    Expr *last = links.len ? vec_last(&links) : NULL;
    if (last && last->var && !last->rec && last->a->kind == EXPR_CALL &&
        uses_in_tuple(in, result, last->var) == 1) {
        result = put_into_tuple(result, last->var, last->a);
        links.len--;
    }
    return close_links(&links, result);
}

/* What stands for a variable, with the place and type of this use of it: messages speak of the operand that is there,
 * and of what was known of it. A literal keeps its type, which says its dtype. */
static Expr *atom_at(Inliner *in, Expr *use) {
    Expr *atom = map_find(&in->atoms, use->var);
    if (!atom)
        return use;
    atom = expr_copy(atom);
    atom->span = use->span;
    if (atom->kind != EXPR_LIT)
        atom->type = use->type;
    atom->inlined = use->inlined;
    return atom;
}

/* A name of its own for the captured variable v of fn, which is bound to `now`. */
static void add_name(Links *links, Subst *s, const Expr *fn, const Var *v, Expr *now) {
    Expr *link = expr_new(EXPR_LET, fn->type, fn->span);
    link->var = var_new(v->name, v->type, v->span);
    link->var->scheme = v->scheme;
    link->a = now;
    vec_push(links, link);
    map_set(&s->vars, v, expr_var(link->var, v->span));
}

Expr *literal_with_names(Expr *fn, Expr *(*name)(void *ctx, Expr *use), void *ctx) {
    VarVec captured = {0};
    Links links = {0};
    Subst s = {.renames = true};
    expr_free_vars(fn, &captured);
    for (size_t i = 0; i < captured.len; i++) {
        Var *v = captured.data[i];
        Expr *now = name(ctx, expr_var(v, fn->span));
        if (now->kind == EXPR_VAR && now->var == v)
            continue;
        add_name(&links, &s, fn, v, now);
    }
    return close_links(&links, links.len ? expr_substitute(&s, fn) : fn);
}

Expr *literal_with_own_names(Expr *fn, Expr *(*name)(void *ctx, Expr *use), void *ctx,
                             Links *links) {
    VarVec captured = {0};
    Map names = {0};
    Subst s = {.renames = true};
    size_t before = links->len;
    expr_free_vars(fn, &captured);
    for (size_t i = 0; i < captured.len; i++) {
        Var *v = captured.data[i];
        Expr *now = cells_in_type(v->type) ? name(ctx, expr_var(v, fn->span)) : NULL;
        if (!now || now->kind != EXPR_VAR || map_enter(&names, now->var))
            continue;
        add_name(links, &s, fn, v, now);
    }
    return links->len > before ? expr_substitute(&s, fn) : fn;
}

static Expr *inline_name(void *ctx, Expr *use) { return atom_at(ctx, use); }

static Expr *inline_function(Inliner *in, Expr *e) {
    bool inner = e != in->root;
    if (inner && e->fn->keeps_captured)
        return literal_with_names(take_literal(in, e), inline_name, in);
    in->nested += inner;
    Expr *result = expr_map_children(take_literal(in, e), inline_child, in);
    in->nested -= inner;
    return result;
}

/* A literal of which closures are made. */
static Expr *inline_closure(Inliner *in, Expr *e) {
    Links links = {0};
    bool renames = in->atoms.len && e != in->root && !e->fn->keeps_captured;
    Expr *fn = renames ? literal_with_own_names(e, inline_name, in, &links) : e;
    return close_links(&links, inline_function(in, fn));
}

/* Of a derivative or vmap, which no cell of a closure is seen in. */
static Expr *inline_operand(void *ctx, Expr *e) {
    return e->kind == EXPR_FN ? inline_function(ctx, e) : inline_expr(ctx, e);
}

static bool takes_known_types(const Expr *fn) {
    for (uint32_t i = 0; i < fn->fn->nparams; i++)
        if (!type_is_closed(fn->fn->params[i]->type))
            return false;
    return type_is_closed(fn->fn->body->type);
}

/* `vmap(f)` of a variable that is bound to a function literal, as `vmap` of a copy of it: all rows at once are made of
 * a literal alone (passes/vmap.h). NULL where e is something else. The copy is made of the literal as it was before it was
 * visited, so it is visited itself. */
static Expr *vmap_of_literal(Inliner *in, Expr *e) {
    if (e->kind != EXPR_GRAD || e->mode != GRAD_VMAP || e->a->kind != EXPR_VAR ||
        !in->replaces_calls)
        return NULL;
    Expr *fn = inline_known_function(in, e->a);
    if (!fn || fn->fn->path || fn->fn->base || fn->fn->keeps_captured || !takes_known_types(fn) ||
        expr_count(fn->fn->body, ONCE) == ONCE)
        return NULL;
    Subst s = {.renames = true};
    Expr *result = expr_copy(e), *copy = expr_substitute(&s, fn);
    inline_count_uses(in, copy);
    result->a = inline_function(in, copy);
    return result;
}

/* The variable that code of a derivative reads by its number in the closure of a literal that is known; e where it is
 * no such read. */
static Expr *captured_variable(Inliner *in, Expr *e) {
    if (!expr_calls_builtin(e, "ad.captured"))
        return e;
    Expr *closure = inline_atom(in, e->args[0]);
    Expr *fn = closure->kind == EXPR_VAR ? inline_known_literal(in, closure) : NULL;
    VarVec captured = {0};
    if (!fn)
        return e;
    expr_free_vars(fn, &captured);
    size_t at = (size_t)e->args[1]->i;
    if (at >= captured.len)
        return e; /* in the arm of another function, which never runs */
    Expr *v = expr_var(captured.data[at], e->span);
    v->inlined = e->inlined;
    return v;
}

/* The arm of a `match` that asks which function a literal is (passes/reverse/functions.c); e where it is no such match. */
static Expr *arm_of_literal(Inliner *in, Expr *e) {
    if (e->kind != EXPR_MATCH || e->a->kind != EXPR_VAR || !e->narms ||
        e->arms->pattern->kind != PAT_CTOR || !e->arms->pattern->ctor->is_function)
        return e;
    Expr *fn = inline_known_literal(in, e->a);
    uint32_t i = 0;
    while (fn && i < e->narms && e->arms[i].pattern->ctor != fn->fn->as_data)
        i++;
    if (!fn || i == e->narms)
        return e;
    const Pattern *p = e->arms[i].pattern;
    VarVec captured = {0};
    expr_free_vars(fn, &captured);
    Expr *result = e->arms[i].body;
    for (uint32_t k = p->nargs; k-- > 0;)
        if (p->args[k]->kind == PAT_VAR)
            result = expr_let(p->args[k]->var, expr_var(captured.data[k], e->span), result);
    return result;
}

/* The call e by a name that the literal gets: one that is called where it stands begins no activation. */
static Expr *call_by_name(Inliner *in, Links *links, const Expr *e, Expr *literal) {
    Expr *let = expr_new(EXPR_LET, literal->type, e->span), *call = expr_copy(e);
    let->var = var_new(sym_intern("f"), literal->type, e->a->span);
    let->a = literal;
    vec_push(links, let);
    call->a = expr_var(let->var, e->a->span);
    call->args = mem_new_n(Expr *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++)
        call->args[i] = inline_expr(in, e->args[i]);
    return call;
}

/* `flip(f)(x, y)` or `{ …; fn (x, y) { … } }(x, y)`, whose callee became a function literal: the body of that, or a call of it
 * by a name. NULL where the callee became something else. */
static Expr *inline_made_literal(Inliner *in, Expr *e) {
    if (!in->replaces_calls || e->kind != EXPR_CALL || e->mode || e->drop ||
        (e->a->kind != EXPR_CALL && e->a->kind != EXPR_LET))
        return NULL;
    Links links = {0};
    Expr *fn = inline_expr(in, e->a);
    if (fn == e->a && fn->kind != EXPR_LET)
        return NULL;
    fn = inline_open_block(in, &links, fn);
    if (fn->kind != EXPR_FN || fn->fn->path || fn->fn->nparams != e->nargs)
        return NULL;
    uint32_t n = expr_count(fn->fn->body, ONCE);
    bool is_own = !in->nested && e->tail != TAIL_IN_FIELD;
    const char *obstacle = is_own ? find_obstacle(in, e, fn, fn, n, ONCE) : NULL;
    if (obstacle)
        pass_tell(in->ctx, TOLD_LEFT, "inline", e->span, "left the call of `%s`: %s",
                  name_of(fn, fn), obstacle);
    if (is_own && !obstacle) {
        in->grown += n;
        Expr *copy = copy_called(in, fn, e, site_of_call(fn, e));
        return close_links(&links, inline_block(in, e, copy));
    }
    return close_links(&links, call_by_name(in, &links, e, fn));
}

Expr *inline_expr(Inliner *in, Expr *e) {
    e = arm_of_literal(in, captured_variable(in, e));
    if (e->kind == EXPR_VAR)
        return atom_at(in, e);
    if (expr_is_leaf(e))
        return e;
    Expr *known = map_find(&in->done, e);
    if (known)
        return known;
    pass_visit(in->ctx);
    Expr *result, *fn = e->kind == EXPR_CALL ? literal_for_call(in, e) : NULL;
    Expr *instance = e->kind == EXPR_CALL && !fn ? specialise_call(in, e) : NULL;
    Expr *other = vmap_of_literal(in, e);
    other = other || fn || instance ? other : inline_made_literal(in, e);
    if (other)
        result = other;
    else if (fn || e->kind == EXPR_LET)
        result = inline_block(in, e, fn);
    else if (e->kind == EXPR_FN)
        result = inline_closure(in, e);
    else if (e->kind == EXPR_GRAD)
        result = expr_map_children(e, inline_operand, in);
    else
        result = expr_map_children(instance ? instance : e, inline_child, in);
    if (in->replaces_calls)
        result = lift_blocks(in, result);
    map_set(&in->done, e, result);
    return result;
}

Expr *inline_root(Inliner *in, Expr *e) {
    MapRoom done, uses, visited;
    map_begin(&in->done, &done);
    map_begin(&in->uses, &uses);
    map_begin(&in->visited, &visited);
    in->root = e;
    if (in->replaces_calls)
        inline_count_uses(in, e);
    Expr *result = inline_expr(in, e);
    map_end(&in->done);
    map_end(&in->uses);
    map_end(&in->visited);
    return result;
}

Expr *pass_inline(PassCtx *ctx, Expr *e) {
    Inliner in = {.ctx = ctx, .replaces_calls = ctx->deps != NULL};
    return inline_root(&in, e);
}
