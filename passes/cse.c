/* SPDX-License-Identifier: Apache-2.0 */
/* cse: what was computed already is not computed again.
 *
 *   let a = x * y; let b = f(x * y); a + b              becomes   let a = x * y; let b = f(a); a + b
 *   let p = t.0; if (c) { t.0 + 1 } else { p }          becomes   let p = t.0; if (c) { p + 1 } else { p }
 *   sin(x) * sin(x)                                     becomes   let t = sin(x); t * t
 *   let b = cast_like(a, x); f(b)                       becomes   f(a), where a and x are of one type
 *
 * Two expressions are the same if they apply the same operator, constructor, projection or field to the
 * same names and literals. The first must have been evaluated wherever the second is: it is bound by a `let`
 * around it. Then the second one gives the same bits, and fails never, since the first did not; so what may fail or not
 * end may be shared, and only what meets references or the world may not. An expression that stands twice within one
 * binding is bound before it only if it has no effect at all (the order of two mistakes stays as it is).
 *
 * It must not run before differentiation: `g'a + g'b` would become `g'(a + b)` (DESIGN-ENGINE, Bits). Function
 * literals that are not called here are left as they stand, but for the names in them.
 *
 * What a shared node is depends on where it stands, so it is walked wherever it stands, up to a limit. One walk in order
 * of evaluation; a table of what is bound so far, from which entries go where their scope ends. */
#include "passes/effects.h"
#include "passes/inline.h"
#include "passes/known_type.h"
#include "types/op.h"

#include <string.h>

Expr *pass_cse(PassCtx *ctx, Expr *e);

typedef struct Bound { /* what a variable is known to be */
    Expr *value;
    Var *var;
    struct Bound *next;
} Bound;

typedef struct Finder {
    PassCtx *ctx;
    Effects *effects;
    Map bound;         /* number of an expression -> Bound, newest first */
    VEC(void *) scope; /* numbers in order of binding, to be undone */
    Map atoms;         /* Var -> the variable that has its value */
    KnownTypes types;
    Map times; /* number of an expression -> how often it stands in the statement being looked at */
    Map done;  /* of what function literals hold */
    Links *before; /* where the statement being looked at may bind names; NULL: nowhere */
    const Expr *root;
    uint32_t nested;
    uint32_t steps;
} Finder;

enum { MOST_STEPS = 200000 /* of a walk over what may be shared many times */ };

static Expr *find(Finder *f, Expr *e);

/* ---- sameness -------------------------------------------------------------------------------- */

static bool is_atom(const Expr *e) {
    return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like) ||
           (e->kind == EXPR_GLOBAL && e->global->kind == GLOBAL_DEF) || e->kind == EXPR_OP ||
           e->kind == EXPR_STRING || (e->kind == EXPR_CTOR && !e->ctor->nfields) ||
           (e->kind == EXPR_TUPLE && !e->nargs);
}

static bool same_atom(const Expr *a, const Expr *b) {
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case EXPR_VAR: return a->var == b->var;
    case EXPR_GLOBAL: return a->global == b->global;
    case EXPR_OP: return a->op == b->op;
    case EXPR_CTOR: return a->ctor == b->ctor;
    case EXPR_LIT:
        return a->is_float == b->is_float && a->i == b->i && type_equal(a->type, b->type);
    case EXPR_STRING:
        return a->text_len == b->text_len && memcmp(a->text, b->text, a->text_len) == 0;
    default: return a->kind == EXPR_TUPLE;
    }
}

/* An operand of such a form: a name, a literal, or a tuple of these. */
static bool is_simple(const Expr *e) {
    if (e->kind != EXPR_TUPLE)
        return is_atom(e);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_simple(e->args[i]))
            return false;
    return true;
}

static bool same_simple(const Expr *a, const Expr *b) {
    if (a->kind != EXPR_TUPLE || b->kind != EXPR_TUPLE)
        return same_atom(a, b);
    if (a->nargs != b->nargs)
        return false;
    for (uint32_t i = 0; i < a->nargs; i++)
        if (!same_simple(a->args[i], b->args[i]))
            return false;
    return true;
}

/* Whether e is of a form that is looked up: of names and literals only, once. */
static bool is_looked_up(const Expr *e) {
    switch (e->kind) {
    case EXPR_CALL:
        if (e->mode || e->drop || e->nsizes || !e->nargs)
            return false;
        if (e->a->kind != EXPR_OP && e->a->kind != EXPR_CTOR && e->a->kind != EXPR_BUILTIN)
            return false;
        break;
    case EXPR_TUPLE: /* a frame, whose type is no tuple's, is given back by who goes back through it: it stays apart */
        if (!e->nargs || !e->type || type_resolve(e->type)->tag != TY_TUPLE)
            return false;
        break;
    case EXPR_PROJ:
    case EXPR_FIELD: return e->a->kind == EXPR_VAR;
    default: return false;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_simple(e->args[i]))
            return false;
    return true;
}

static bool same_callee(const Expr *a, const Expr *b) {
    return a->kind == EXPR_BUILTIN ? b->kind == EXPR_BUILTIN && a->symbol == b->symbol
           : a->kind == EXPR_CTOR  ? b->kind == EXPR_CTOR && a->ctor == b->ctor
                                   : same_atom(a, b);
}

static bool same(const Expr *a, const Expr *b) {
    if (a->kind != b->kind || a->nargs != b->nargs)
        return false;
    if (a->kind == EXPR_PROJ)
        return a->index == b->index && same_atom(a->a, b->a);
    if (a->kind == EXPR_FIELD)
        return a->field == b->field && same_atom(a->a, b->a);
    if (a->kind == EXPR_CALL &&
        (!same_callee(a->a, b->a) ||
         !(a->attrs == b->attrs ||
           (a->attrs && b->attrs && attrs_equal_values(a->attrs, b->attrs)))))
        return false;
    for (uint32_t i = 0; i < a->nargs; i++)
        if (!same_simple(a->args[i], b->args[i]))
            return false;
    return true;
}

static uintptr_t mix(uintptr_t h, uintptr_t x) {
    return (h ^ x ^ (h >> 15)) * (uintptr_t)0x9e3779b97f4a7c15u;
}

static void *number_of(const Expr *e) {
    uintptr_t h = (uintptr_t)e->kind + 1;
    if (e->kind == EXPR_PROJ)
        h = mix(h, (uintptr_t)e->index + ((uintptr_t)e->a->var->id << 8));
    if (e->kind == EXPR_FIELD)
        h = mix(h, (uintptr_t)e->field ^ e->a->var->id);
    if (e->kind == EXPR_CALL)
        h = mix(h, (uintptr_t)e->a->op); /* or the symbol, constructor or global */
    for (uint32_t i = 0; i < e->nargs; i++) {
        const Expr *arg = e->args[i];
        bool is_var = arg->kind == EXPR_VAR, is_lit = arg->kind == EXPR_LIT;
        h = mix(h, is_var ? arg->var->id : is_lit ? (uintptr_t)arg->i : (uintptr_t)arg->kind);
    }
    return (void *)(h | 1);
}

/* ---- what is bound --------------------------------------------------------------------------- */

static Var *find_bound(Finder *f, const Expr *e, void *number) {
    for (const Bound *b = map_find(&f->bound, number); b; b = b->next)
        if (same(b->value, e))
            return b->var;
    return NULL;
}

static void note_bound(Finder *f, Expr *value, Var *v, void *number) {
    Bound *b = mem_new(Bound);
    *b = (Bound){value, v, map_find(&f->bound, number)};
    map_set(&f->bound, number, b);
    vec_push(&f->scope, number);
}

static void leave_scope(Finder *f, size_t mark) {
    while (f->scope.len > mark) {
        void *number = vec_pop(&f->scope);
        const Bound *b = map_find(&f->bound, number);
        map_set(&f->bound, number, b->next);
    }
}

static bool may_share(Finder *f, Expr *e) {
    enum { BAD = EFFECT_READS | EFFECT_WRITES | EFFECT_MAKES | EFFECT_OUTSIDE | EFFECT_FOREIGN };
    return !(effects_at(f->effects, e) & (unsigned)BAD);
}

/* ---- what gives its argument as it is --------------------------------------------------------- */

/* Only a tensor that `ad.add` gave may be one that is still added to in place: what an operator or `ad.settle` gives is settled. */
static bool is_settled(Finder *f, const Expr *e) {
    const Expr *value = map_find(&f->types.values, e->var);
    return value && value->kind == EXPR_CALL && (value->a->kind == EXPR_OP || is_settling(value));
}

/* The argument that the value of e is, or NULL. */
static Expr *argument_that_is_value(Finder *f, const Expr *e) {
    if (e->kind != EXPR_CALL || e->mode || e->drop || !e->nargs)
        return NULL;
    Expr *x = e->args[0];
    if (e->a->kind == EXPR_BUILTIN)
        return is_settling(e) && x->kind == EXPR_VAR && is_settled(f, x) ? x : NULL;
    if (e->a->kind != EXPR_OP || e->a->op != &op_cast_like || e->nargs != 2)
        return NULL;
    Type *from = known_type(&f->types, x), *to = from ? known_type(&f->types, e->args[1]) : NULL;
    return to && from->tag == TY_TENSOR && type_equal(from, to) ? x : NULL;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static Expr *find_child(void *ctx, Expr *child) { return find(ctx, child); }

/* A tuple that is written as an operator's argument is never made (own_spreads in eval/own.h): it gets no name, so that its
 * items are given back. */
static Expr *find_items(void *ctx, Expr *child) {
    return child->kind == EXPR_TUPLE ? expr_map_children(child, find_child, ctx) : find(ctx, child);
}

static Expr *name_at(Var *v, const Expr *use) {
    Expr *name = expr_var(v, use->span);
    name->type = use->type;
    name->inlined = use->inlined;
    return name;
}

/* Counts the expressions of a statement that is evaluated as a whole. */
static void count_parts(Finder *f, Expr *e) {
    if (e->kind != EXPR_CALL && e->kind != EXPR_TUPLE && e->kind != EXPR_PROJ)
        return;
    if (e->kind == EXPR_PROJ) {
        count_parts(f, e->a);
    } else {
        for (uint32_t i = 0; i < e->nargs; i++)
            count_parts(f, e->args[i]);
    }
    if (is_looked_up(e)) {
        void *number = number_of(e);
        map_set(&f->times, number, (void *)((uintptr_t)map_find(&f->times, number) + 1));
    }
}

/* A statement: what it holds twice may be bound before it. */
static Expr *find_statement(Finder *f, Expr *e, Links *before) {
    bool whole = e->kind == EXPR_CALL || e->kind == EXPR_TUPLE || e->kind == EXPR_PROJ;
    if (f->nested || !whole)
        return find(f, e);
    f->times = (Map){0};
    count_parts(f, e);
    f->before = before;
    Expr *result = find(f, e);
    f->before = NULL;
    return result;
}

static Expr *find_block(Finder *f, Expr *e) {
    Links links = {0};
    size_t mark = f->scope.len;
    for (; e->kind == EXPR_LET; e = e->body) {
        pass_visit(f->ctx);
        Expr *value = find_statement(f, e->a, &links);
        if (e->rec)
            value = open_links(&links, value);
        if (e->var && !e->rec && !f->nested && !e->var->scheme) {
            Expr *argument = argument_that_is_value(f, value);
            value = argument ? argument : value;
            value = known_types_bind(&f->types, e->var, value);
            if (value->kind == EXPR_VAR) {
                map_set(&f->atoms, e->var, value->var);
                continue;
            }
            void *number = is_looked_up(value) && may_share(f, value) ? number_of(value) : NULL;
            if (number)
                note_bound(f, value, e->var, number);
        }
        Expr *link = e;
        if (value != e->a) {
            link = expr_copy(e);
            link->a = value;
        }
        vec_push(&links, link);
    }
    Expr *result = share_links(&links, find_statement(f, e, &links));
    leave_scope(f, mark);
    return result;
}

/* An arm or body of its own. */
static Expr *find_apart(Finder *f, Expr *e) {
    size_t mark = f->scope.len;
    Links *outer = f->before, before = {0};
    f->before = NULL;
    Map times = f->times;
    Expr *result = e->kind == EXPR_LET ? find(f, e) : find_statement(f, e, &before);
    result = share_links(&before, result);
    f->before = outer;
    f->times = times;
    leave_scope(f, mark);
    return result;
}

static Expr *find_branch(Finder *f, Expr *e) {
    Expr *copy = expr_copy(e);
    copy->a = find(f, e->a);
    if (e->kind == EXPR_IF) {
        copy->b = find_apart(f, e->b);
        copy->c = find_apart(f, e->c);
        return copy;
    }
    copy->arms = mem_new_n(Arm, e->narms + 1);
    for (uint32_t i = 0; i < e->narms; i++) {
        copy->arms[i] = e->arms[i];
        if (e->arms[i].guard)
            copy->arms[i].guard = find_apart(f, e->arms[i].guard);
        copy->arms[i].body = find_apart(f, e->arms[i].body);
    }
    return copy;
}

static Expr *find_function(Finder *f, Expr *e) {
    Links *outer = f->before;
    bool inner = e != f->root;
    if (inner && e->fn->keeps_captured)
        return literal_with_names(e, find_child, f);
    f->before = NULL;
    f->nested += inner;
    Expr *result = inner ? expr_map_children(e, find_child, f) : NULL;
    if (!inner) {
        Expr *body = find_apart(f, e->fn->body);
        result = body == e->fn->body ? e : expr_fn_with_body(e, body);
    }
    f->nested -= inner;
    f->before = outer;
    return result;
}

/* An expression of names that stands again: the name it is bound to, perhaps just now. */
static Expr *find_again(Finder *f, Expr *e) {
    void *number = number_of(e);
    Var *known = find_bound(f, e, number);
    if (known)
        return name_at(known, e);
    if (!f->before || (uintptr_t)map_find(&f->times, number) < 2 || effects_at(f->effects, e))
        return e;
    Expr *link = expr_new(EXPR_LET, e->type, e->span);
    link->var = var_new(sym_intern("t"), e->type, e->span);
    link->a = e;
    link->inlined = e->inlined;
    vec_push(f->before, link);
    note_bound(f, e, link->var, number);
    return name_at(link->var, e);
}

static Expr *find_form(Finder *f, Expr *e) {
    switch (e->kind) {
    case EXPR_LET: return f->nested ? expr_map_block(e, find_child, f) : find_block(f, e);
    case EXPR_FN: return find_function(f, e);
    case EXPR_IF:
    case EXPR_MATCH:
        if (!f->nested)
            return find_branch(f, e);
        break;
    default: break;
    }
    if (e->kind == EXPR_CALL && e->a->kind == EXPR_FN && !f->nested) {
        /* called at once: its body is a block of its own */
        Expr *copy = expr_copy(e);
        copy->args = mem_new_n(Expr *, e->nargs + 1);
        for (uint32_t i = 0; i < e->nargs; i++)
            copy->args[i] = find(f, e->args[i]);
        f->nested++;
        copy->a = expr_map_children(e->a, find_child, f);
        f->nested--;
        return copy;
    }
    bool spreads = e->kind == EXPR_CALL && e->a->kind == EXPR_OP && e->nargs == 1;
    Expr *result = expr_map_children(e, spreads ? find_items : find_child, f);
    return !f->nested && is_looked_up(result) && may_share(f, result) ? find_again(f, result)
                                                                      : result;
}

static Expr *find(Finder *f, Expr *e) {
    if (e->kind == EXPR_VAR) {
        Var *v = map_find(&f->atoms, e->var);
        return v ? name_at(v, e) : e;
    }
    Expr *known = f->nested ? map_find(&f->done, e) : NULL;
    if (known)
        return known;
    pass_visit(f->ctx);
    if (f->steps++ >= MOST_STEPS)
        return e;
    Expr *result = find_form(f, e);
    if (f->nested)
        map_set(&f->done, e, result);
    return result;
}

Expr *pass_cse(PassCtx *ctx, Expr *e) {
    Finder f = {.ctx = ctx, .types = {.ctx = ctx}, .effects = effects_new(ctx, e), .root = e};
    Links before = {0};
    size_t mark = f.scope.len;
    Expr *result = e->kind == EXPR_FN || e->kind == EXPR_LET ? find(&f, e)
                                                             : find_statement(&f, e, &before);
    leave_scope(&f, mark);
    effects_end(f.effects);
    if (f.steps >= MOST_STEPS) {
        pass_note(ctx, "cse gave up after %d expressions", MOST_STEPS);
        return e;
    }
    return share_links(&before, result);
}
