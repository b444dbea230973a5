/* SPDX-License-Identifier: Apache-2.0 */
/* simplify: replaces expressions by cheaper ones that have the same value, to the bit.
 *
 *   let a = -x; -a                                      becomes   let a = -x; x
 *   nn.relu(nn.relu(x / 2.0)) * 1.0                     becomes   nn.relu(x * 0.5)
 *
 * The rules are Relay text, prelude/simplify.rly, read operator by operator when the pass first meets one. A rule is
 * checked like any definition; its value is the pair of what is replaced and what takes its place. A name in it that
 * is a parameter stands for an expression, of which nothing may be evaluated twice, or not at all. Where the second side
 * has the only parameter twice, the expression gets a name; where it has one less often, or the first side has one twice,
 * only a name or a literal will do. What a `let` binds to an operator on names is seen through its name.
 *
 *   f(x) ** 2                                           becomes   let t = f(x); t * t
 *
 * It does not look into function literals, which are simplified when they run, and it does not run on what is yet to be
 * differentiated: the derivatives of both sides need not have the same bits. Where a rule has several parameters, one
 * could be broadcast to the other, so all sizes must be known. */
#include "passes/known_type.h"
#include "passes/pass.h"
#include "types/op.h"

#include <ctype.h>

Expr *pass_simplify(PassCtx *ctx, Expr *e);

enum { MOST_PARAMS = 4, MOST_AT_ONE = 16 /* rules at one place, one after the other */ };

typedef struct Rewrite {
    Expr *pattern, *result;
    Var **params;
    uint32_t nparams;
    struct Rewrite *next; /* of the same operator */
} Rewrite;

typedef struct Simplifier {
    PassCtx *ctx;
    Map done;   /* Expr -> what became of it */
    Map values; /* Var -> the operator on names and literals that it is bound to */
    const Expr *root;
} Simplifier;

typedef struct Match {
    const Rewrite *rule;
    Expr *values[MOST_PARAMS]; /* of the parameters */
} Match;

/* ---- rules ----------------------------------------------------------------------------------- */

static const Symbol *rule_name(const Op *op, int number) {
    char *name = (char *)(uintptr_t)fmt_text("_simplify_%s_%d", op->name, number);
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    return sym_intern(name);
}

static Rewrite *rule_new(const Global *g, const Op *op) {
    const Fn *fn = g->value->fn;
    const Expr *pair = fn->body;
    if (pair->kind != EXPR_TUPLE || pair->nargs != 2 || fn->nparams > MOST_PARAMS ||
        pair->args[0]->kind != EXPR_CALL || pair->args[0]->a->kind != EXPR_OP ||
        pair->args[0]->a->op != op)
        BUG("`%s` is no pair that begins with `%s`", g->name->text, op->name);
    Rewrite *rule = mem_new(Rewrite);
    *rule = (Rewrite){pair->args[0], pair->args[1], fn->params, fn->nparams, NULL};
    return rule;
}

/* The rules of an operator, in their order; NULL: there are none. */
static const Rewrite *find_rules(PassCtx *ctx, const Op *op) {
    if (map_has(&ctx->rewrites, op))
        return map_find(&ctx->rewrites, op);
    Rewrite *first = NULL, **last = &first;
    for (int i = 1;; i++) {
        const Global *g = env_prelude_global(ctx->env, rule_name(op, i));
        if (!g || !g->value)
            break;
        *last = rule_new(g, op);
        last = &(*last)->next;
    }
    map_set(&ctx->rewrites, op, first);
    return first;
}

/* ---- matching -------------------------------------------------------------------------------- */

static bool is_atom(const Expr *e) {
    return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like);
}

static bool same_atom(const Expr *a, const Expr *b) {
    return a->kind == EXPR_VAR && b->kind == EXPR_VAR && a->var == b->var;
}

static bool is_operator(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_OP && !e->mode && !e->drop && !e->nsizes;
}

static int find_param(const Rewrite *rule, const Var *v) {
    for (uint32_t i = 0; i < rule->nparams; i++)
        if (rule->params[i] == v)
            return (int)i;
    return -1;
}

static uint32_t count_uses(const Expr *e, const Var *v) {
    uint32_t n = e->kind == EXPR_VAR && e->var == v;
    for (uint32_t i = 0; e->kind == EXPR_CALL && i < e->nargs; i++)
        n += count_uses(e->args[i], v);
    return n;
}

static bool match_literal(const Expr *pattern, const Expr *e) {
    DType t;
    if (e->kind != EXPR_LIT)
        return false;
    if (pattern->is_float && !(type_get_dtype(e->type, &t) && dtype_is_float(t)))
        return false;
    double p = pattern->is_float ? pattern->f : (double)pattern->i;
    return (e->is_float ? e->f : (double)e->i) == p;
}

static bool match_param(Match *m, int param, Expr *e) {
    const Var *v = m->rule->params[param];
    DType wanted, found;
    if (type_get_dtype(v->type, &wanted) && !(type_get_dtype(e->type, &found) && found == wanted))
        return false;
    if (m->values[param])
        return same_atom(m->values[param], e);
    uint32_t uses = count_uses(m->rule->result, v);
    bool once = count_uses(m->rule->pattern, v) == 1;
    if (!is_atom(e) && !(once && (uses == 1 || (uses > 1 && m->rule->nparams == 1))))
        return false;
    m->values[param] = e;
    return true;
}

static bool match(Simplifier *s, Match *m, const Expr *pattern, Expr *e) {
    if (pattern->kind == EXPR_VAR)
        return match_param(m, find_param(m->rule, pattern->var), e);
    if (pattern->kind == EXPR_LIT)
        return match_literal(pattern, e);
    if (e->kind == EXPR_VAR)
        e = map_find(&s->values, e->var);
    if (!e || !is_operator(e) || e->a->op != pattern->a->op || e->nargs != pattern->nargs ||
        !(e->attrs == pattern->attrs ||
          (e->attrs && pattern->attrs && attrs_equal_values(e->attrs, pattern->attrs))))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!match(s, m, pattern->args[i], e->args[i]))
            return false;
    return true;
}

/* ---- replacing ------------------------------------------------------------------------------- */

/* Whether the two are of one type; where several parameters meet, of one that is wholly known. */
static bool has_type_of(Simplifier *s, const Match *m, const Expr *e) {
    KnownTypes known = {.ctx = s->ctx};
    Type *whole = m->rule->nparams > 1 ? known_type(&known, e) : e->type;
    if (!whole || m->rule->result->kind != EXPR_VAR)
        return whole != NULL;
    const Expr *value = m->values[find_param(m->rule, m->rule->result->var)];
    if (m->rule->nparams > 1) {
        Type *part = known_type(&known, value);
        return part && type_equal(whole, part);
    }
    DType t,
        u; /* code of a derivative may leave the dtype of e open: it is that of the parameter */
    return type_equal(e->type, value->type) ||
           (type_get_dtype(value->type, &u) && (!type_get_dtype(e->type, &t) || t == u));
}

/* An argument of the result: a parameter's value, or a literal of the dtype that e has. NULL: that is not known. */
static Expr *build_argument(const Match *m, const Expr *pattern, const Expr *e) {
    DType t;
    if (pattern->kind == EXPR_VAR)
        return m->values[find_param(m->rule, pattern->var)];
    if (pattern->kind != EXPR_LIT)
        BUG("the second side of a rule of `%s` is more than one operator", e->a->op->name);
    if (!type_get_dtype(e->type, &t) || dtype_is_float(t) != pattern->is_float)
        return NULL;
    return pattern->is_float ? expr_float(pattern->f, t, e->span)
                             : expr_int(pattern->i, t, e->span);
}

static Expr *build(const Match *m, const Expr *e) {
    const Expr *result = m->rule->result;
    if (result->kind != EXPR_CALL)
        return build_argument(m, result, e);
    Expr **args = mem_new_n(Expr *, result->nargs);
    for (uint32_t i = 0; i < result->nargs; i++)
        if (!(args[i] = build_argument(m, result->args[i], e)))
            return NULL;
    Expr *call = expr_call_op(result->a->op, args, result->nargs, result->attrs, e->type, e->span);
    call->inlined = e->inlined;
    return call;
}

static const char *text_of(Expr *e) {
    Str out = {0};
    expr_print(&out, e, &(CorePrintOptions){0});
    return str_text(&out);
}

/* What is built of a match; an expression that stands in it several times is bound to a name before it. */
static Expr *build_named(Match *m, const Expr *e) {
    Expr *value = m->values[0];
    if (m->rule->nparams != 1 || is_atom(value) ||
        count_uses(m->rule->result, m->rule->params[0]) < 2)
        return build(m, e);
    Var *v = var_new(sym_intern("t"), value->type, value->span);
    m->values[0] = expr_var(v, value->span);
    Expr *body = build(m, e);
    if (!body)
        return NULL;
    Expr *let = expr_new(EXPR_LET, e->type, e->span);
    let->var = v;
    let->a = value;
    let->body = body;
    return let;
}

/* What a rule makes of e, whose parts are simplified; NULL where none fits. */
static Expr *rewrite(Simplifier *s, Expr *e) {
    for (const Rewrite *rule = find_rules(s->ctx, e->a->op); rule; rule = rule->next) {
        Match m = {.rule = rule};
        Expr *made = match(s, &m, rule->pattern, e) && has_type_of(s, &m, e) ? build_named(&m, e)
                                                                             : NULL;
        if (!made)
            continue;
        if (s->ctx->tellings)
            pass_tell(s->ctx, TOLD_DONE, "simplify", e->span, "put `%s` in place of `%s`",
                      text_of(made), text_of(e));
        return made;
    }
    return NULL;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static Expr *simplify(Simplifier *s, Expr *e);

static Expr *simplify_child(void *ctx, Expr *child) { return simplify(ctx, child); }

static bool has_atoms_only(const Expr *e) {
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_atom(e->args[i]))
            return false;
    return true;
}

static Expr *simplify_block(Simplifier *s, Expr *e) {
    Links links = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        pass_visit(s->ctx);
        Expr *value = simplify(s, e->a), *link = e;
        if (e->var && !e->rec && is_operator(value) && has_atoms_only(value))
            map_set(&s->values, e->var, value);
        if (value != e->a) {
            link = expr_copy(e);
            link->a = value;
        }
        vec_push(&links, link);
    }
    return share_links(&links, simplify(s, e));
}

static Expr *simplify_form(Simplifier *s, Expr *e) {
    if (e->kind == EXPR_LET)
        return simplify_block(s, e);
    if (e->kind == EXPR_FN && e != s->root)
        return e;
    e = expr_map_children(e, simplify_child, s);
    for (int i = 0; i < MOST_AT_ONE && is_operator(e); i++) {
        Expr *made = rewrite(s, e);
        if (!made)
            break;
        e = made;
    }
    return e;
}

static Expr *simplify(Simplifier *s, Expr *e) {
    if (is_atom(e))
        return e;
    Expr *known = map_find(&s->done, e);
    if (known)
        return known;
    pass_visit(s->ctx);
    Expr *result = simplify_form(s, e);
    map_set(&s->done, e, result);
    return result;
}

Expr *pass_simplify(PassCtx *ctx, Expr *e) {
    Simplifier s = {.ctx = ctx, .root = e};
    MapRoom room;
    map_begin(&s.done, &room);
    e = simplify(&s, e);
    map_end(&s.done);
    return e;
}
