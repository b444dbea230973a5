/* SPDX-License-Identifier: Apache-2.0 */
/* Effects of expressions and definitions.
 *
 *   let a = 1.0 / x; let b = 1 / n; f(a)      a: none   b: fails   f(a): what f's body may do
 *
 * The effects of a call are those of the callee's body where the callee is known: a function literal, a
 * variable that a `let` binds to one, a definition. Any other callee may do everything. Bodies that
 * call each other are computed together: all begin with no effect, and are computed again until none
 * learns anything, which takes a few rounds since there are eight effects. Whoever can reach itself
 * may not end.
 *
 * An operator does not fail where its scalar program cannot (no division of integers) and its shapes
 * are known to fit. It does not look at values: `1 / 2` counts as one that may fail. */
#include "passes/effects.h"

#include "base/weak.h"
#include "ops/elementwise.h"
#include "ops/relate/relations.h"
#include "types/core/builtin.h"

/* What is known of a definition, as long as that lives: it keeps neither the definition nor its value. */
typedef struct Definition {
    void **value; /* watched: the value for which `latent` was found */
    unsigned latent;
    bool open;
} Definition;

typedef struct EffectState {
    WeakMap definitions; /* Global -> Definition */
    PassCtx *ctx;        /* where the work is counted */
} EffectState;

/* One round over one expression or group of definitions. */
typedef struct Round {
    EffectState *state;
    Map nodes;   /* Expr -> effects + 1 */
    Map *latent; /* Var bound to a function -> effects of calling it + 1 */
    bool learned;
    bool is_part;     /* of an expression by itself: Note [Effects of parts] */
    bool needs_whole; /* what it found is not all */
} Round;

static EffectState *state_of(PassCtx *ctx) {
    if (!ctx->effects)
        ctx->effects = mem_new(EffectState);
    ctx->effects->ctx = ctx;
    return ctx->effects;
}

void passes_forget(PassCtx *ctx) { ctx->effects = NULL; }

size_t effects_known(const PassCtx *ctx) {
    return ctx->effects ? weak_size(&ctx->effects->definitions) : 0;
}

const char *effects_text(unsigned effects) {
    static const char *const names[] = {"fails", "loops",   "reads",   "writes",
                                        "makes", "outside", "foreign", "misfits"};
    Str out = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (effects & 1u << i)
            str_printf(&out, "%s%s", out.len ? ", " : "", names[i]);
    return out.len ? str_text(&out) : "none";
}

/* ---- operators and builtins ------------------------------------------------------------------ */

/* Whether the value at a position of the program is a constant above 0: nothing fails that divides or
 * shifts by it. */
static bool is_positive(const ScalarProgram *p, int32_t at) {
    const Scalar *c = &p->code[at];
    return c->op == SC_CONST && !dtype_is_float((DType)c->type) && c->imm.i > 0;
}

static bool program_fails(const Op *op, DType t) {
    const ScalarProgram *p = scalar_program_find(op, t);
    if (!p)
        return true;
    for (int i = 0; i < p->n; i++) {
        ScalarOp code = (ScalarOp)p->code[i].op;
        bool divides = code == SC_DIV || code == SC_REM || code == SC_SHL || code == SC_SHR;
        if (code == SC_CHECK ||
            (divides && !dtype_is_float((DType)p->code[i].type) && !is_positive(p, p->code[i].b)))
            return true;
    }
    return false;
}

bool op_elements_fail(const Op *op, Type *arg) {
    DTypeSet set = arg->tag == TY_TENSOR ? type_dtype_set(arg->tensor.dtype) : DTS_ALL;
    set &= op->dtypes;
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (set >> t & 1 && program_fails(op, (DType)t))
            return true;
    return !set;
}

/* The sizes of a tensor as numbers; false where one is not known, unless 1 stands for it. */
static bool find_shape(Type *t, bool any_size, int64_t *sizes, uint32_t *rank) {
    Type **dims;
    if (type_resolve(t)->tag != TY_TENSOR || !type_get_rank(t, rank, &dims) ||
        *rank > TENSOR_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < *rank; i++)
        if (!type_get_int(dims[i], &sizes[i])) {
            if (!any_size)
                return false;
            sizes[i] = 1;
        }
    return true;
}

static bool is_rank_0(Type *t) {
    uint32_t rank;
    Type **dims;
    return type_resolve(t)->tag == TY_TENSOR && type_get_rank(t, &rank, &dims) && rank == 0;
}

/* Whether two tensors broadcast for certain. */
static bool shapes_fit(Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    if (is_rank_0(a) || is_rank_0(b))
        return true;
    if (a->tag != TY_TENSOR || b->tag != TY_TENSOR)
        return false;
    if (type_equal(a->tensor.shape, b->tensor.shape) && !type_has(a, TY_ANY))
        return true;
    int64_t m[TENSOR_MAX_RANK], n[TENSOR_MAX_RANK];
    uint32_t ra, rb;
    if (!find_shape(a, false, m, &ra) || !find_shape(b, false, n, &rb))
        return false;
    for (uint32_t i = 1; i <= ra && i <= rb; i++)
        if (m[ra - i] != n[rb - i] && m[ra - i] != 1 && n[rb - i] != 1)
            return false;
    return true;
}

/* Passes find out more about variables than where these are read says (passes/known_type.h). */
static Type *type_of(const Expr *e) { return e->kind == EXPR_VAR ? e->var->type : e->type; }

enum { MOST_TENSORS = 16 /* of one call */ };

/* What a call takes, tensors without elements, those of tuples one by one. */
typedef struct Blanks {
    Tensor *in[MOST_TENSORS];
    uint32_t n;
} Blanks;

/* Whether the call reduces numbers of which there may be none: then no size matters to it. */
static bool reduces_any_sizes(const Expr *call) {
    const Op *op = call->a->op;
    Type *t = op->relation == &rel_reduce ? type_resolve(type_of(call->args[0])) : NULL;
    return t && t->tag == TY_TENSOR && !(type_dtype_set(t->tensor.dtype) & op->needs_elements);
}

/* Adds the tensors of a type where all sizes are known and not 0; false where one is not, or holds no floats. any_size: 1
 * stands for a size that is not known. */
static bool add_blanks(Blanks *b, Type *t, bool floats, bool any_size) {
    int64_t sizes[TENSOR_MAX_RANK];
    uint32_t rank;
    DType dtype;
    t = t ? type_resolve(t) : NULL;
    for (uint32_t i = 0; t && t->tag == TY_TUPLE && i < t->nargs; i++)
        if (!add_blanks(b, t->args[i], floats, any_size))
            return false;
    if (t && t->tag == TY_TUPLE)
        return true;
    if (!t || b->n == MOST_TENSORS || !find_shape(t, any_size, sizes, &rank) ||
        !type_get_dtype(t->tensor.dtype, &dtype) || (floats && !dtype_is_float(dtype)))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (sizes[i] <= 0)
            return false;
    b->in[b->n++] = tensor_blank(dtype, (int)rank, sizes);
    return true;
}

/* Whether the call folds, multiplies, moves or cuts float tensors of known sizes, or chooses among any, and its shape
 * function takes these; some reductions take any sizes. */
static bool fits_for_certain(const Expr *call) {
    const Op *op = call->a->op;
    bool folds = op->pattern == OP_REDUCE || op->pattern == OP_INJECTIVE;
    bool cuts = op->pattern == OP_TUPLE && op->refuses_sizes;
    bool selects = op->scalar == OP_SCALAR_SELECT;
    bool takes = op->pattern == OP_PRODUCT || op->like_last || (folds && call->nargs == 1);
    if (!(takes || cuts || selects) || op->shape_mode != SHAPE_OF_SHAPES || op->cut ||
        (op->tuple && !cuts))
        return false;
    bool any_size = reduces_any_sizes(call);
    if (any_size && (!call->attrs || attrs_is_none(call->attrs, "axis")))
        return true; /* all of it, of whatever rank */
    Blanks blanks = {.n = 0};
    for (uint32_t i = 0; i < call->nargs; i++)
        if (!add_blanks(&blanks, type_of(call->args[i]), !selects, any_size))
            return false;
    Diags unheard = {0};
    OutSpec out[OP_MAX_OUTPUTS];
    OpCall checked = {.op = op,
                      .attrs = call->attrs ? call->attrs : attrs_defaults(op),
                      .nin = blanks.n,
                      .in = blanks.in,
                      .diags = &unheard};
    return op->shape(&checked, out) >= 1;
}

/* Whether a call of `broadcast_to` repeats along axes of size 1 alone, to literal sizes, and has the others already. */
static bool repeats_for_certain(const Expr *call) {
    Type **from, **to;
    uint32_t m, n;
    int64_t size;
    if (!type_get_rank(type_of(call->args[0]), &m, &from) || !type_get_rank(call->type, &n, &to) ||
        m > n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        Type *was = i + m < n ? NULL : from[i + m - n];
        bool has = was && type_equal(was, to[i]) && !type_has(was, TY_ANY);
        bool is_one = !was || (type_get_int(was, &size) && size == 1);
        if (!has && !(is_one && type_get_int(to[i], &size)))
            return false;
    }
    return true;
}

static bool op_fails(const Expr *call) {
    const Op *op = call->a->op;
    if (op == &op_broadcast_to && repeats_for_certain(call))
        return false;
    if (call->nsizes || op->foreign || !op->lower || call->nargs == 0)
        return true;
    if (fits_for_certain(call))
        return false;
    bool plain = op == &op_zeros_like || op == &op_ones_like;
    if (!plain && op_elements_fail(op, type_resolve(type_of(call->args[0]))))
        return true;
    const Expr *x = call->args[0], *y = call->args[call->nargs - 1];
    bool same = x->kind == EXPR_VAR && y->kind == EXPR_VAR && x->var == y->var;
    return call->nargs > 2 || (call->nargs == 2 && !same && !shapes_fit(type_of(x), type_of(y)));
}

static unsigned effects_of_builtin(const char *name) {
    static const unsigned table[] = {
#define BUILTIN(name, nargs, fn, effects) effects,
#define AD(name, nargs, fn, effects, gives) effects,
#include "types/core/ad.def"
#include "types/core/builtin.def"
#undef AD
#undef BUILTIN
    };
    int number = builtin_number(name);
    return number < 0 ? EFFECT_ALL : table[number];
}

/* ---- expressions ----------------------------------------------------------------------------- */

static unsigned effects_in(Round *r, Expr *e);

static Definition *definition_of(EffectState *state, Global *g) {
    return weak_find(&state->definitions, g);
}

static Expr *function_of(const Global *g) {
    return !g->broken && g->value && g->value->kind == EXPR_FN ? g->value : NULL;
}

static unsigned latent_of_global(Round *r, Global *g) {
    if (g->kind == GLOBAL_BUILTIN)
        return effects_of_builtin(g->symbol);
    r->needs_whole |= r->is_part;
    Definition *d = definition_of(r->state, g);
    return function_of(g) && d ? d->latent : EFFECT_ALL;
}

/* The effects of calling the value of e. */
static unsigned latent_in(Round *r, Expr *e) {
    switch (e->kind) {
    case EXPR_FN: return effects_in(r, e->fn->body);
    case EXPR_CTOR: return 0;
    case EXPR_GLOBAL: return latent_of_global(r, e->global);
    case EXPR_BUILTIN: return effects_of_builtin(e->symbol->text);
    case EXPR_VAR: {
        r->needs_whole |= r->is_part;
        uintptr_t known = (uintptr_t)map_find(r->latent, e->var);
        return known ? (unsigned)known - 1 : EFFECT_ALL;
    }
    default: return EFFECT_ALL; /* any other value may be any function */
    }
}

static bool is_function(const Round *r, const Expr *e) {
    return e->kind == EXPR_FN || e->kind == EXPR_GLOBAL || e->kind == EXPR_CTOR ||
           (e->kind == EXPR_VAR && map_has(r->latent, e->var));
}

/* Notes what calling the variable of a `let` does, which may be more than it was in the last round. */
static void note_latent(Round *r, const Var *v, unsigned latent) {
    r->needs_whole |= r->is_part;
    unsigned known = (unsigned)(uintptr_t)map_find(r->latent, v);
    if (known && !(latent & ~(known - 1)))
        return;
    latent |= known ? known - 1 : 0;
    map_set(r->latent, v, (void *)(uintptr_t)(latent + 1));
    r->learned = true;
}

static unsigned effects_of_chain(Round *r, Expr *e) {
    unsigned all = 0;
    for (; e->kind == EXPR_LET; e = e->body) {
        if (e->var && e->rec)
            note_latent(r, e->var, EFFECT_LOOPS);
        all |= effects_in(r, e->a);
        if (e->var && is_function(r, e->a))
            note_latent(r, e->var, latent_in(r, e->a));
    }
    return all | effects_in(r, e);
}

typedef struct Union {
    Round *r;
    unsigned effects;
} Union;

static void add_child(void *ctx, Expr *child) {
    Union *u = ctx;
    u->effects |= effects_in(u->r, child);
}

static unsigned effects_of_children(Round *r, Expr *e) {
    Union u = {r, 0};
    expr_each_child(e, add_child, &u);
    return u.effects;
}

static unsigned effects_of_call(Round *r, Expr *e) {
    unsigned effects = effects_of_children(r, e);
    if (e->mode) /* the derivative of an unknown function */
        return EFFECT_ALL;
    if (e->a->kind == EXPR_OP)
        return effects | (e->a->op->foreign ? EFFECT_ALL
                          : !op_fails(e)    ? 0
                          : e->follows      ? EFFECT_MISFITS
                                            : EFFECT_FAILS);
    return effects | latent_in(r, e->a);
}

static bool equality_fails(const Expr *e) {
    Type *a = type_resolve(e->a->type), *b = type_resolve(e->b->type);
    return !(a->tag == TY_STRING && b->tag == TY_STRING) && !shapes_fit(a, b);
}

static unsigned effects_of_form(Round *r, Expr *e) {
    switch (e->kind) {
    case EXPR_FN:
        (void)effects_in(r, e->fn->body);
        return 0; /* so that effects_at knows its parts */
    case EXPR_CALL: return effects_of_call(r, e);
    case EXPR_LET: return effects_of_chain(r, e);
    case EXPR_GLOBAL: /* a value that is not there yet, or whose definition no longer checks */
        return e->global->kind == GLOBAL_DEF || e->global->kind == GLOBAL_BUILTIN
                   ? e->global->broken ? EFFECT_FAILS : 0
                   : EFFECT_FAILS;
    case EXPR_MATCH: return effects_of_children(r, e) | (e->partial ? EFFECT_FAILS : 0);
    case EXPR_REF: return effects_of_children(r, e) | EFFECT_MAKES;
    case EXPR_READ:
    case EXPR_BANG: return effects_of_children(r, e) | EFFECT_READS;
    case EXPR_WRITE: return effects_of_children(r, e) | EFFECT_WRITES | EFFECT_FAILS;
    case EXPR_EQUAL: return effects_of_children(r, e) | (equality_fails(e) ? EFFECT_FAILS : 0);
    case EXPR_TENSOR:
    case EXPR_INDEX:
    case EXPR_CHECK: return effects_of_children(r, e) | EFFECT_FAILS;
    case EXPR_ERROR: return EFFECT_ALL;
    case EXPR_LIT:
    case EXPR_CONST:
    case EXPR_STRING:
    case EXPR_VAR:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_BUILTIN:
    case EXPR_IF:
    case EXPR_TUPLE:
    case EXPR_PROJ:
    case EXPR_FIELD:
    case EXPR_UPDATE:
    case EXPR_DIM_OF:
    case EXPR_ZERO:
    case EXPR_GRAD: return effects_of_children(r, e);
    }
    BUG("no such form of expression: %d", (int)e->kind);
}

static unsigned effects_in(Round *r, Expr *e) {
    if (expr_is_leaf(e))
        return effects_of_form(r, e);
    uintptr_t known = (uintptr_t)map_find(&r->nodes, e);
    if (known)
        return (unsigned)known - 1;
    pass_visit(r->state->ctx);
    unsigned effects = effects_of_form(r, e);
    map_set(&r->nodes, e, (void *)(uintptr_t)(effects + 1));
    return effects;
}

/* ---- definitions ----------------------------------------------------------------------------- */

typedef struct Found {
    Definition *definition;
    Expr *body;
} Found;

typedef struct Reached {
    EffectState *state;
    VEC(Found) found;
    VEC(Global *) pending;
    uint64_t walk; /* over the expressions of one definition */
} Reached;

static void reach_mentions(void *ctx, Expr *e) {
    Reached *reached = ctx;
    for (;; e = e->body) {
        if (e->kind != EXPR_GLOBAL && (expr_is_leaf(e) || !walk_enter(reached->walk, e)))
            return;
        pass_visit(reached->state->ctx);
        if (e->kind != EXPR_LET)
            break;
        reach_mentions(ctx, e->a);
    }
    if (e->kind == EXPR_GLOBAL)
        vec_push(&reached->pending, e->global);
    expr_each_child(e, reach_mentions, ctx);
}

static void reach_all(Reached *reached, Expr *e);

/* A definition that is not known yet and what it mentions: each is entered once, and one that is met
 * while it is open can reach itself. */
static void reach(Reached *reached, Global *g) {
    Definition *d = definition_of(reached->state, g);
    if (d && d->open)
        d->latent |= EFFECT_LOOPS;
    if ((d && *d->value == g->value) || !function_of(g))
        return;
    d = mem_new(Definition);
    *d = (Definition){.value = mem_watch(g->value), .open = true};
    weak_set_owned(&reached->state->definitions, g, d);
    vec_push(&reached->found, ((Found){d, g->value->fn->body}));
    if (mem_stack_left() < 64 * 1024)
        d->latent = EFFECT_ALL;
    else
        reach_all(reached, g->value->fn->body);
    d->open = false;
}

/* Enters the definitions that an expression mentions. */
static void reach_all(Reached *reached, Expr *e) {
    size_t mark = reached->pending.len;
    reached->walk = walk_new();
    reach_mentions(reached, e);
    while (reached->pending.len > mark)
        reach(reached, vec_pop(&reached->pending));
}

/* Computes the definitions again and again until none changes. */
static void settle(Reached *reached) {
    Map latent;
    map_begin(&latent, NULL);
    for (bool learned = true; learned;) {
        Round r = {.state = reached->state, .latent = &latent};
        map_begin(&r.nodes, NULL);
        for (size_t i = 0; i < reached->found.len; i++) {
            Definition *d = reached->found.data[i].definition;
            unsigned now = d->latent | effects_in(&r, reached->found.data[i].body);
            r.learned |= now != d->latent;
            d->latent = now;
        }
        learned = r.learned;
        map_end(&r.nodes);
    }
    map_end(&latent);
}

unsigned effects_of_calling(PassCtx *ctx, Global *g) {
    Reached reached = {.state = state_of(ctx)};
    reach(&reached, g);
    settle(&reached);
    Round r = {.state = reached.state};
    return latent_of_global(&r, g);
}

/* Note [Effects of parts]. Most of what passes ask about applies operators, and calls no function of the program: that is
 * answered without a look at the rest of the root, which took a twentieth of the time of all passes. */
struct Effects {
    Expr *root;
    Round last;
    Map latent;
};

static void begin_round(Effects *effects, EffectState *state, bool is_part) {
    effects->last = (Round){.state = state, .latent = &effects->latent, .is_part = is_part};
    map_begin(&effects->last.nodes, NULL);
}

Effects *effects_new(PassCtx *ctx, Expr *root) {
    Effects *effects = mem_new(Effects);
    effects->root = root;
    map_begin(&effects->latent, NULL);
    begin_round(effects, state_of(ctx), true);
    return effects;
}

static void look_at_root(Effects *effects) {
    Reached reached = {.state = effects->last.state};
    reach_all(&reached, effects->root);
    settle(&reached);
    map_end(&effects->latent);
    map_begin(&effects->latent, NULL);
    do {
        map_end(&effects->last.nodes);
        begin_round(effects, reached.state, false);
        (void)effects_in(&effects->last, effects->root);
    } while (effects->last.learned);
}

void effects_end(Effects *effects) {
    map_end(&effects->last.nodes);
    map_end(&effects->latent);
}

unsigned effects_at(Effects *effects, Expr *e) {
    unsigned found = effects_in(&effects->last, e);
    if (!effects->last.needs_whole)
        return found;
    look_at_root(effects);
    return effects_in(&effects->last, e);
}

void effects_depend(PassCtx *ctx, Expr *e) {
    if (!ctx->deps)
        return;
    Reached reached = {.state = state_of(ctx), .walk = walk_new()};
    Map met;
    MapRoom room;
    reach_mentions(&reached, e);
    map_begin(&met, &room);
    while (reached.pending.len) {
        Global *g = vec_pop(&reached.pending);
        if (!function_of(g) || !map_enter(&met, g))
            continue;
        pass_depend(ctx, g);
        for (size_t i = 0; i < g->uses.len; i++)
            vec_push(&reached.pending, g->uses.data[i]);
    }
    map_end(&met);
}
