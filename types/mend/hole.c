/* SPDX-License-Identifier: Apache-2.0 */
/* Typed holes: `_` in an expression asks what fits there.
 *
 *     def k(n: int32, y: String) { n + _ }     a hole of type int32; `n` fits: int32
 *
 * Inference says what is wanted in each hole of an item, and nothing else of that item. What fits is found
 * here by trying: the item is checked again with the name in the hole's place. Near things come first: locals from the
 * innermost, the user's definitions, constructors, calls of the user's definitions (their arguments are
 * holes again), the prelude, operators. */
#include <string.h>

#include "types/mend/mend.h"

enum {
    MAX_SHOWN = 8,
    MAX_CALLS = 3, /* at most so many are calls `f(_)`, and at most so many operators */
};

typedef struct Holes {
    Infer *I;
    const Hole *hole;
    const Pending *p; /* the note that inference made of it */
    Type *want;
    Diag *d;
    bool can_try;
    int shown, calls;
    TypeNamer namer;
    Map seen; /* names that were asked already: nearer ones hide others */
} Holes;

/* ---- a first look, by heads ------------------------------------------------------------------ */

/* Whether a value of type `t` may fit where `want` is wanted, judged without unification. */
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

static bool is_own(const Holes *h, const Global *g) {
    const Checked *c = &h->hole->checked;
    for (uint32_t k = 0; k < c->n && c->globals; k++) {
        if (c->globals[k] == g)
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
    Infer *I = h->I, J;
    const Checked *c = &h->hole->checked;
    Span item = c->items[0]->span;
    if (!budget_draw(&I->env->budget, BUDGET_CHECK_BYTE * (item.end - item.begin) + BUDGET_TRIAL))
        return false;
    Diags diags = {0};
    infer_init(&J, I->env, I->module, I->mode, &diags);
    infer_begin_trial(&J);
    J.trial = true;
    J.names = I->names;
    J.position = h->hole->position;
    J.has_graph = I->has_graph;
    Ast *hole = h->p->hole, was = *hole;
    *hole = *with;
    hole->span = hole->op_span = was.span;
    Global *saved = mem_new_n(Global, c->n);
    for (uint32_t i = 0; i < c->n && c->globals; i++)
        saved[i] = *c->globals[i];
    bool ok = check_again(&J, c) && diags.errors == 0 && !solver_is_spent(J.s);
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

/* The call `name(_, …)` with nargs holes. */
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
    if (complete && h->hole->alone && h->can_try)
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
    const LocalVec *locals = &h->hole->locals;
    for (size_t i = locals->len; i-- > 0 && h->shown < MAX_SHOWN;) {
        const Local *l = locals->data[i];
        if (l->enter > h->p->time || l->leave <= h->p->time || map_has(&h->seen, l->name))
            continue;
        map_set(&h->seen, l->name, (void *)l);
        if (l->name->text[0] == '_' || l->lazy || l->slot || !could_fit(l->var->type, h->want, 6))
            continue;
        Sigil sigil = l->sigil ? SIGIL_LOCAL : SIGIL_NONE;
        if (!tries(h, name_ast(h, l->name, sigil)))
            continue;
        const char *type = l->var->scheme ? scheme_text(l->var->scheme)
                                          : type_text_with(&h->namer, l->var->type);
        show(h, name_text(l->name, sigil), type, true);
    }
}

/* Whether t has the same head as `want`. Where anything would fit, no global name is offered. */
static bool fits_exactly(Type *t, Type *want) {
    t = type_resolve(t);
    return t->tag == want->tag && could_fit(t, want, 6);
}

static void ask_global(Holes *h, const Global *g) {
    if (!g->scheme || g->broken || map_has(&h->seen, g->name))
        return;
    if (is_own(h, g) && h->want->tag != TY_FN)
        return;
    map_set(&h->seen, g->name, (void *)g);
    Sigil sigil = g->sigil ? g->kind == GLOBAL_DEF ? SIGIL_GLOBAL : SIGIL_LOCAL : SIGIL_NONE;
    if (!fits_exactly(g->scheme->type, h->want) || !tries(h, name_ast(h, g->name, sigil)))
        return;
    show(h, name_text(g->name, sigil), scheme_text(g->scheme), true);
}

typedef VEC(const Global *) Globals;

/* Collects the user's globals: those of this file from the nearest above, then the session's from the latest. */
static void collect_globals(const Infer *I, uint32_t position, Globals *out) {
    const void *key;
    void *value;
    Globals in_file = {0};
    for (size_t i = 0; map_next(&I->names, &i, &key, &value);) {
        for (const FileName *f = value; f; f = f->earlier) {
            if (f->global && (f->position <= position || f->global->kind == GLOBAL_DEF)) {
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
            show(h, str_text(&text), h->hole->want, c->nfields == 0);
    }
}

static bool is_open(Type *t) {
    t = type_resolve(t);
    return t->tag == TY_VAR ||
           (t->tag == TY_PARAM && !t->param.name); /* a variable that was generalised */
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
    show(h, str_text(&text), varies ? h->hole->want : type_text(fn->fn.result), false);
    h->calls++;
}

/* Offers calls `f(_, …)` of the user's functions whose result fits: first those with one type of result, then
 * those whose result varies. Nothing is offered where nothing is known of the result, as of `id(_)`. */
static void ask_calls(Holes *h, const Globals *globals) {
    for (int varies = 0; varies < 2; varies++) {
        for (size_t i = 0; i < globals->len && h->shown < MAX_SHOWN && h->calls < MAX_CALLS; i++) {
            const Global *g = globals->data[i];
            if (!g->scheme || g->broken || is_own(h, g) || map_find(&h->seen, g->name) != g)
                continue;
            Type *t = type_resolve(g->scheme->type);
            if (t->tag != TY_FN || is_open(t->fn.result) || !fits_exactly(t->fn.result, h->want))
                continue;
            if (varies == !!(type_resolve(t->fn.result)->flags & TYPE_HAS_PARAMS))
                ask_call(h, g, t);
        }
    }
}

/* Whether something is known of what the function takes or gives; otherwise any function would fit. */
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

/* Offers operators: the usual ones first, then the others. */
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
        show(h, op->name, h->hole->want, true);
        found++;
    }
}

/* Exchanges the globals of the item as they were when it was checked with what they are now. */
static void swap_globals(const Hole *hole) {
    for (uint32_t i = 0; i < hole->checked.n && hole->globals; i++) {
        Global now = *hole->checked.globals[i];
        *hole->checked.globals[i] = hole->globals[i];
        hole->globals[i] = now;
    }
}

static void ask_all(Holes *h) {
    const Checked *c = &h->hole->checked;
    h->can_try = c->n && !h->hole->uses_open;
    h->can_try = h->can_try && tries(h, h->p->hole); /* the item checks with the hole as it is */
    bool open = h->want->tag == TY_VAR;
    if (budget_is_spent(&h->I->env->budget) || (open && (!h->want->var.nwatchers || !h->can_try)))
        return;
    ask_locals(h);
    if (open)
        return;
    Globals globals = {0};
    collect_globals(h->I, h->hole->position, &globals);
    for (size_t i = 0; i < globals.len && h->shown < MAX_SHOWN; i++)
        ask_global(h, globals.data[i]);
    ask_ctors(h);
    ask_calls(h, &globals);
    if (h->want->tag != TY_FN || !says_something(h->want))
        return;
    ask_prelude(h);
    if (h->can_try)
        ask_operators(h);
}

void mend_holes(ModuleCheck *c) {
    if (!c->I || c->env->no_mending)
        return;
    for (size_t i = 0; i < c->I->holes.len; i++) {
        const Hole *hole = &c->I->holes.data[i];
        Holes h = {.I = c->I,
                   .hole = hole,
                   .p = &hole->note,
                   .want = type_resolve(hole->note.expr->type),
                   .d = hole->diag,
                   .namer = hole->namer};
        if (i == 0 || hole->position != hole[-1].position)
            budget_begin_item(&c->env->budget);
        swap_globals(hole);
        ask_all(&h);
        swap_globals(hole);
    }
    budget_end_item(&c->env->budget);
}
