/* SPDX-License-Identifier: Apache-2.0 */
/* Typed holes: `_` in an expression asks what could stand there.
 *
 *     def k(n: int32, y: String) { n + _ }     a hole of type int32; `n` fits: int32
 *
 * All holes of an item are answered, and nothing else is said of it. What fits is found by trying: the
 * item is checked again with the name in the hole's place. Near things come first: locals from the
 * innermost, the user's definitions, constructors, calls of the user's definitions (their arguments are
 * holes again), the prelude, operators. */
#include <string.h>

#include "types/infer/state.h"
#include "types/type/dim.h"

enum {
    MAX_SHOWN = 8,
    MAX_CALLS = 3,    /* of these, calls `f(_)`; and operators */
    MAX_TRIALS = 150, /* for an item of up to SMALL_ITEM bytes, else a tenth */
    SMALL_ITEM = 4000,
};

typedef struct Holes {
    Infer *I;
    const Pending *p; /* the hole asked about */
    Type *want;
    Diag *d;
    bool alone; /* no other holes: what fits is a change that makes a program that checks */
    bool can_try;
    int trials, shown, calls;
    TypeNamer namer;
    Map seen; /* Symbol: nearer names hide others */
} Holes;

/* ---- a first look, by heads ------------------------------------------------------------------ */

/* Whether a value of type `t` could stand where `want` is wanted, as far as heads tell. */
static bool could_fit(Type *t, Type *want, int depth) {
    t = type_resolve(t);
    want = type_resolve(want);
    if (t->tag == TY_VAR || want->tag == TY_VAR || depth == 0)
        return true;
    if (t->tag == TY_PARAM || want->tag == TY_PARAM)
        return true;
    if (t->tag == TY_ANY || want->tag == TY_ANY)
        return true;
    if (t->tag != want->tag)
        return false;
    switch (t->tag) {
    case TY_TENSOR:
        return could_fit(t->tensor.shape, want->tensor.shape, depth - 1) &&
               could_fit(t->tensor.dtype, want->tensor.dtype, depth - 1);
    case TY_DTYPE: return t->dtype_value == want->dtype_value;
    case TY_DATA:
        if (t->decl != want->decl)
            return false;
        break;
    case TY_REF:
    case TY_DERIV: return could_fit(t->elem, want->elem, depth - 1);
    case TY_DIM: return dim_compare(t, want) != DIM_DIFFERENT;
    case TY_FN:
        if (!could_fit(t->fn.result, want->fn.result, depth - 1))
            return false;
        break;
    case TY_VAR:
    case TY_PARAM:
    case TY_TUPLE:
    case TY_STRING:
    case TY_ERROR:
    case TY_SHAPE:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: break;
    }
    if (t->nargs != want->nargs)
        return false;
    for (uint32_t i = 0; i < t->nargs; i++) {
        if (!could_fit(t->args[i], want->args[i], depth - 1))
            return false;
    }
    return true;
}

/* ---- trying ---------------------------------------------------------------------------------- */

static bool is_own(const Infer *I, const Global *g) {
    for (uint32_t k = 0; k < I->checked.n && I->checked.globals; k++) {
        if (I->checked.globals[k] == g)
            return true;
    }
    return false;
}

/* A definition before that is not generalised: a trial would settle its type. */
static bool uses_open_type(const Infer *I) {
    const void *key;
    void *value;
    for (size_t i = 0; I->used && map_next(I->used, &i, &key, &value);) {
        const Global *g = value;
        if (!is_own(I, g) && g->scheme && !g->scheme->nparams && type_has_vars(g->scheme->type))
            return true;
    }
    return false;
}

static bool check_again(Infer *J, const Checked *c) {
    Item *item = c->items[0];
    if (item->kind == ITEM_DEF)
        return infer_defs(J, c->items, c->globals, c->n);
    if (item->kind != ITEM_EXPR)
        return infer_let_item(J, item, c->globals[0]);
    CoreItem out;
    return infer_expr_item(J, item, &out);
}

/* Whether the item checks with `with` in the hole's place. */
static bool tries(Holes *h, const Ast *with) {
    if (!h->can_try)
        return true;
    if (h->trials-- <= 0)
        return false;
    Infer *I = h->I, J;
    const Checked *c = &I->checked;
    Diags diags = {0};
    infer_init(&J, I->env, I->module, I->mode, &diags);
    J.trial = true;
    J.names = I->names;
    J.position = I->position;
    J.has_graph = I->has_graph;
    Ast *hole = h->p->hole, was = *hole;
    *hole = *with;
    hole->span = hole->op_span = was.span;
    Global *saved = mem_new_n(Global, c->n);
    for (uint32_t i = 0; i < c->n && c->globals; i++)
        saved[i] = *c->globals[i];
    bool ok = check_again(&J, c) && diags.errors == 0;
    for (uint32_t i = 0; i < c->n && c->globals; i++)
        *c->globals[i] = saved[i];
    *hole = was;
    return ok;
}

static Ast *name_ast(const Holes *h, const Symbol *name, Sigil sigil) {
    Ast *a = mem_new(Ast);
    a->kind = AST_NAME;
    a->span = h->p->hole->span;
    a->name = (Name){.sym = name, .sigil = sigil, .span = a->span};
    return a;
}

/* name(_, …) */
static Ast *call_ast(const Holes *h, const Symbol *name, Sigil sigil, uint32_t nargs) {
    Ast *a = mem_new(Ast);
    a->kind = AST_CALL;
    a->span = a->op_span = h->p->hole->span;
    a->a = name_ast(h, name, sigil);
    for (uint32_t i = 0; i < nargs; i++) {
        Ast *hole = mem_new(Ast);
        hole->kind = AST_HOLE;
        hole->span = a->span;
        vec_push(&a->args, hole);
    }
    return a;
}

static const char *name_text(const Symbol *name, Sigil sigil) {
    return fmt_text("%s%s",
                    sigil == SIGIL_LOCAL    ? "%"
                    : sigil == SIGIL_GLOBAL ? "@"
                                            : "",
                    name->text);
}

static void show(Holes *h, const char *text, const char *type, bool complete) {
    if (complete && h->alone && h->can_try)
        diag_add_fix(h->d, h->p->hole->span, text, type, "`%s` fits: %s", text, type);
    else
        diag_add_help(h->d, "`%s` fits: %s", text, type);
    h->shown++;
}

static const char *scheme_text(const Scheme *s) {
    Str out = {0};
    TypeNamer namer = {0};
    scheme_print(&out, s, &namer);
    return str_text(&out);
}

/* ---- who is asked, in this order ------------------------------------------------------------- */

static void ask_locals(Holes *h) {
    Infer *I = h->I;
    for (size_t i = I->all.len; i-- > 0 && h->shown < MAX_SHOWN;) {
        const Local *l = I->all.data[i];
        if (l->enter > h->p->time || l->leave <= h->p->time || map_has(&h->seen, l->name))
            continue;
        map_set(&h->seen, l->name, (void *)l);
        if (l->name->text[0] == '_' || l->lazy || !could_fit(l->var->type, h->want, 6))
            continue;
        Sigil sigil = l->sigil ? SIGIL_LOCAL : SIGIL_NONE;
        if (!tries(h, name_ast(h, l->name, sigil)))
            continue;
        const char *type = l->var->scheme ? scheme_text(l->var->scheme)
                                          : type_text_with(&h->namer, l->var->type);
        show(h, name_text(l->name, sigil), type, true);
    }
}

/* The head is wanted; where anything is, nothing of the global names is offered. */
static bool fits_exactly(Type *t, Type *want) {
    t = type_resolve(t);
    return t->tag == want->tag && could_fit(t, want, 6);
}

static void ask_global(Holes *h, const Global *g) {
    if (!g->scheme || g->broken || map_has(&h->seen, g->name))
        return;
    if (is_own(h->I, g) && h->want->tag != TY_FN)
        return;
    map_set(&h->seen, g->name, (void *)g);
    Sigil sigil = g->sigil ? g->kind == GLOBAL_DEF ? SIGIL_GLOBAL : SIGIL_LOCAL : SIGIL_NONE;
    if (!fits_exactly(g->scheme->type, h->want) || !tries(h, name_ast(h, g->name, sigil)))
        return;
    show(h, name_text(g->name, sigil), scheme_text(g->scheme), true);
}

typedef VEC(const Global *) Globals;

/* The user's: of this file from the nearest above, then of the session from the latest. */
static void collect_globals(const Infer *I, Globals *out) {
    const void *key;
    void *value;
    Globals in_file = {0};
    for (size_t i = 0; map_next(&I->names, &i, &key, &value);) {
        for (const FileName *f = value; f; f = f->earlier) {
            if (f->global && (f->position <= I->position || f->global->kind == GLOBAL_DEF)) {
                vec_push(&in_file, f->global);
                break;
            }
        }
    }
    for (size_t i = in_file.len; i-- > 0;)
        vec_push(out, in_file.data[i]);
    Globals in_session = {0};
    if (I->env->here != I->env->prelude) {
        for (size_t i = 0; map_next(&I->env->here->globals, &i, &key, &value);)
            vec_push(&in_session, value);
    }
    for (size_t i = in_session.len; i-- > 0;)
        vec_push(out, in_session.data[i]);
}

static void ask_ctors(Holes *h) {
    if (h->want->tag != TY_DATA)
        return;
    const TypeDecl *decl = h->want->decl;
    for (uint32_t i = 0; i < decl->nctors && h->shown < MAX_SHOWN; i++) {
        const Ctor *c = decl->ctors[i];
        bool in_prelude;
        if (env_find_ctor(h->I->env, c->name, &in_prelude) != c || map_has(&h->seen, c->name))
            continue;
        Str text = {0};
        str_add(&text, c->name->text);
        for (uint32_t f = 0; f < c->nfields; f++) {
            str_add(&text, f ? ", " : c->field_names ? " { " : "(");
            if (c->field_names)
                str_printf(&text, "%s: ", c->field_names[f]->text);
            str_add(&text, "_");
        }
        if (c->nfields)
            str_add(&text, c->field_names ? " }" : ")");
        Ast *with = c->nfields ? call_ast(h, c->name, SIGIL_NONE, c->nfields)
                               : name_ast(h, c->name, SIGIL_NONE);
        if (tries(h, with))
            show(h, str_text(&text), type_text_with(&h->namer, h->want), c->nfields == 0);
    }
}

static bool is_open(Type *t) {
    t = type_resolve(t);
    return t->tag == TY_VAR ||
           (t->tag == TY_PARAM && !t->param.name); /* one that was generalised */
}

static void ask_call(Holes *h, const Global *g, Type *fn) {
    Sigil sigil = g->sigil ? SIGIL_GLOBAL : SIGIL_NONE;
    if (!tries(h, call_ast(h, g->name, sigil, fn->nargs)))
        return;
    Str text = {0};
    str_printf(&text, "%s(", name_text(g->name, sigil));
    for (uint32_t a = 0; a < fn->nargs; a++)
        str_add(&text, a ? ", _" : "_");
    str_add(&text, ")");
    bool varies = type_resolve(fn->fn.result)->flags & TYPE_HAS_PARAMS;
    show(h, str_text(&text), varies ? type_text_with(&h->namer, h->want) : type_text(fn->fn.result),
         false);
    h->calls++;
}

/* f(_, …) of the user's functions whose result is wanted: of one type, then of one that varies. Not where
 * nothing is known of the result: `id(_)` is a hole again. */
static void ask_calls(Holes *h, const Globals *globals) {
    for (int varies = 0; varies < 2; varies++) {
        for (size_t i = 0; i < globals->len && h->shown < MAX_SHOWN && h->calls < MAX_CALLS; i++) {
            const Global *g = globals->data[i];
            if (!g->scheme || g->broken || is_own(h->I, g) || map_find(&h->seen, g->name) != g)
                continue;
            Type *t = type_resolve(g->scheme->type);
            if (t->tag != TY_FN || is_open(t->fn.result) || !fits_exactly(t->fn.result, h->want))
                continue;
            if (varies == !!(type_resolve(t->fn.result)->flags & TYPE_HAS_PARAMS))
                ask_call(h, g, t);
        }
    }
}

/* Whether something is known of what a function takes or gives: else anything would do. */
static bool says_something(Type *fn) {
    if (!is_open(fn->fn.result))
        return true;
    for (uint32_t i = 0; i < fn->nargs; i++) {
        if (!is_open(fn->args[i]))
            return true;
    }
    return false;
}

static void ask_prelude(Holes *h) {
    Infer *I = h->I;
    if (!I->env->hooks.each_name || (I->module && I->module->versioned))
        return;
    SymbolVec names = {0};
    I->env->hooks.each_name(I->env->hooks.ctx, &names);
    for (size_t i = 0; i < names.len && h->shown < MAX_SHOWN; i++) {
        bool in_prelude;
        const Symbol *name = names.data[i];
        const Global *g = env_find_global(I->env, name, &in_prelude);
        if (!g || !in_prelude || !g->scheme || name->text[0] == '_' || strchr(name->text, '.') ||
            map_has(&h->seen, name))
            continue;
        map_set(&h->seen, name, (void *)g);
        Sigil sigil = env_find_op(I->env, name) ? SIGIL_GLOBAL : SIGIL_NONE;
        if (!fits_exactly(g->scheme->type, h->want) || !tries(h, name_ast(h, name, sigil)))
            continue;
        show(h, name_text(name, sigil), scheme_text(g->scheme), true);
    }
}

/* Those one thinks of first, then the others. */
static void ask_operators(Holes *h) {
    static const char *const usual[] = {"add",  "multiply", "subtract", "maximum", "minimum",
                                        "less", "negative", "abs",      "exp",     "log",
                                        "sqrt", "tanh",     "sigmoid",  "nn.relu"};
    enum { USUAL = sizeof usual / sizeof *usual };
    int found = 0;
    for (size_t i = 0; i < USUAL + op_count() && found < MAX_CALLS && h->shown < MAX_SHOWN; i++) {
        const Op *op = i < USUAL ? op_find(sym_intern(usual[i])) : op_at(i - USUAL);
        if (!op || op->nargs != (int)h->want->nargs || op->nattrs || op_arg(op, 0).tuple)
            continue;
        const Symbol *name = sym_intern(op->name);
        if (map_has(&h->seen, name))
            continue;
        map_set(&h->seen, name, (void *)op);
        if (!tries(h, name_ast(h, name, SIGIL_NONE)))
            continue;
        show(h, op->name, type_text_with(&h->namer, h->want), true);
        found++;
    }
}

static void answer(Infer *I, const Pending *p, bool alone) {
    Type *want = type_resolve(p->expr->type);
    Holes h = {.I = I, .p = p, .want = want, .alone = alone, .trials = MAX_TRIALS};
    Span item = I->checked.n ? I->checked.items[0]->span : span_none();
    if (item.end - item.begin > SMALL_ITEM)
        h.trials /= 10;
    h.can_try = I->checked.n && !uses_open_type(I);
    h.can_try = h.can_try && tries(&h, p->hole); /* nothing else is wrong with it */
    bool open = want->tag == TY_VAR;
    h.d = diag_new(DIAG_R0110, p->expr->span,
                   open && !want->var.nwatchers ? "a hole that may be anything"
                                                : "a hole of type %s",
                   type_text_with(&h.namer, want));
    diag_report(I->diags, h.d);
    if (open && (!want->var.nwatchers || !h.can_try))
        return;
    ask_locals(&h);
    if (open)
        return;
    Globals globals = {0};
    collect_globals(I, &globals);
    for (size_t i = 0; i < globals.len && h.shown < MAX_SHOWN; i++)
        ask_global(&h, globals.data[i]);
    ask_ctors(&h);
    ask_calls(&h, &globals);
    if (want->tag != TY_FN || !says_something(want))
        return;
    ask_prelude(&h);
    if (h.can_try)
        ask_operators(&h);
}

bool infer_answer_holes(Infer *I) {
    Map seen = {0}; /* Ast: an argument may be looked at twice */
    VEC(Pending) holes = {0};
    for (size_t i = 0; i < I->pending.len; i++) {
        const Pending *p = &I->pending.data[i];
        if (p->kind != PENDING_HOLE || map_has(&seen, p->hole))
            continue;
        map_set(&seen, p->hole, p->hole);
        vec_push(&holes, *p);
    }
    if (!holes.len || I->trial)
        return false;
    /* What the item says besides is of a program that is not there yet. */
    size_t kept = I->item_diags;
    for (size_t i = kept; i < I->diags->list.len; i++) {
        Diag *d = I->diags->list.data[i];
        if (d->code == DIAG_R0905)
            I->diags->warnings--;
        else
            I->diags->list.data[kept++] = d;
    }
    I->diags->list.len = kept;
    for (size_t i = 0; i < holes.len; i++)
        answer(I, &holes.data[i], holes.len == 1);
    return true;
}
