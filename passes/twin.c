/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of the derivative transformation over all forms of the core. Note [Twins] in grad.h
 * states it; thesis figure 4.1 is its source, with activity decided by the values (a float that
 * depends on no parameter of the running grad stays plain). */
#include <string.h>

#include "passes/cells.h"
#include "passes/grad_internal.h"

static Expr **twin_args(Twin *t, Expr **args, uint32_t n) {
    Expr **out = mem_new_n(Expr *, n ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = twin_expr(t, args[i]);
    return out;
}

/* Puts the tape of this transformation before the arguments. */
static Expr **with_tape(Twin *t, Expr **args, uint32_t n) {
    Expr **out = mem_new_n(Expr *, n + 1);
    out[0] = t->tape;
    for (uint32_t i = 0; i < n; i++)
        out[i + 1] = args[i];
    return out;
}

static Expr *twin_op(Twin *t, Expr *call, Expr **args) {
    switch (t->mode) {
    case AD_REVERSE: return grad_op_call(t, call, args);
    case AD_FORWARD: return jvp_op_call(t, call, args);
    case AD_MODES: break;
    }
    BUG("no such mode of differentiation");
}

static Expr *twin_own(Twin *t, Expr *e) {
    Expr *x = twin_expr(t, e->args[0]);
    return t->mode == AD_REVERSE ? grad_own(t, e, x) : jvp_own(t, e, x);
}

static Expr *twin_call(Twin *t, Expr *e) {
    if (cells_is_own(e))
        return twin_own(t, e);
    Expr *callee = e->a;
    Expr *copy = expr_copy(e);
    switch (callee->kind) {
    case EXPR_OP: return twin_op(t, e, twin_args(t, e->args, e->nargs));
    case EXPR_CTOR:
    case EXPR_BUILTIN: copy->args = twin_args(t, e->args, e->nargs); return copy;
    case EXPR_GLOBAL:
        if (callee->global->kind == GLOBAL_BUILTIN) {
            copy->args = twin_args(t, e->args, e->nargs);
            return copy;
        }
        break;
    default: /* any other callee is a function value, and is called by its twin */ break;
    }
    copy->a = twin_expr(t, callee);
    copy->args = with_tape(t, twin_args(t, e->args, e->nargs), e->nargs);
    copy->nargs = e->nargs + 1;
    return copy;
}

/* `[a, b]` becomes the operator `stack` of the tuple of its elements. */
static Expr *twin_tensor(Twin *t, Expr *e) {
    Expr *tuple = expr_tuple(e->args, e->nargs, e->span);
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = tuple;
    Expr *call = expr_call_op(&op_stack, args, 1, attrs_defaults(&op_stack), e->type, e->span);
    return twin_expr(t, call);
}

/* `a[i]` where a's type is open: the operator if a is a tensor, a projection if it is a tuple. */
static Expr *twin_index(Twin *t, Expr *e) {
    Build b = {e->span};
    Block block = {.b = &b};
    Expr *project = expr_copy(e);
    project->a = block_atom(&block, "a", twin_expr(t, e->a));
    project->args = mem_new_n(Expr *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++)
        project->args[i] = block_atom(&block, "i", twin_expr(t, e->args[i]));
    Expr *call = index_as_call(project);
    call->args[1] = block_atom(&block, "at", call->args[1]);
    Expr *is_tensor = b_builtin(&b, "ad.is_tensor", project->a, NULL);
    return block_end(&block, b_if(&b, is_tensor, twin_op(t, call, call->args), project));
}

static Expr *twin_match(Twin *t, Expr *e) {
    Expr *copy = expr_copy(e);
    copy->a = twin_expr(t, e->a);
    copy->arms = mem_new_n(Arm, e->narms ? e->narms : 1);
    for (uint32_t i = 0; i < e->narms; i++) {
        copy->arms[i].pattern = e->arms[i].pattern;
        copy->arms[i].guard = e->arms[i].guard ? twin_expr(t, e->arms[i].guard) : NULL;
        copy->arms[i].body = twin_expr(t, e->arms[i].body);
    }
    return copy;
}

static Expr *twin_chain(Twin *t, Expr *e) {
    Build b = {e->span};
    Block block = {.b = &b};
    for (; e->kind == EXPR_LET; e = e->body)
        block_bind(&block, e, twin_expr(t, e->a));
    return block_end(&block, twin_expr(t, e));
}

static Expr *twin_children(Twin *t, Expr *e) {
    Expr *copy = expr_copy(e);
    copy->a = e->a ? twin_expr(t, e->a) : NULL;
    copy->b = e->b ? twin_expr(t, e->b) : NULL;
    if (e->kind == EXPR_IF)
        copy->c = twin_expr(t, e->c);
    if (e->nargs)
        copy->args = twin_args(t, e->args, e->nargs);
    return copy;
}

/* A literal takes its dtype from a dual as from its primal; what is computed for that meets duals. */
static Expr *twin_literal(Twin *t, Expr *e) {
    if (!e->like || e->like->kind == EXPR_VAR)
        return e;
    Expr *copy = expr_copy(e);
    copy->like = twin_expr(t, e->like);
    return copy;
}

static Expr *twin_form(Twin *t, Expr *e) {
    e = cells_of_parts(e);
    switch (e->kind) {
    case EXPR_LIT: return twin_literal(t, e);
    case EXPR_CONST:
    case EXPR_STRING:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_BUILTIN:
    case EXPR_ZERO:
    case EXPR_ERROR: return e;
    case EXPR_CALL: return twin_call(t, e);
    case EXPR_FN: {
        Expr *twin = grad_twin(t->ctx, e, t->mode);
        t->failed |= !twin;
        return twin ? twin : e;
    }
    case EXPR_LET: return twin_chain(t, e);
    case EXPR_MATCH: return twin_match(t, e);
    case EXPR_TENSOR: return twin_tensor(t, e);
    case EXPR_INDEX: return twin_index(t, e);
    case EXPR_IF:
    case EXPR_TUPLE:
    case EXPR_PROJ:
    case EXPR_FIELD:
    case EXPR_UPDATE:
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_WRITE:
    case EXPR_BANG:
    case EXPR_EQUAL:
    case EXPR_DIM_OF:
    case EXPR_CHECK:
    case EXPR_GRAD: return twin_children(t, e);
    }
    BUG("no such form of expression: %d", (int)e->kind);
}

Expr *twin_expr(Twin *t, Expr *e) {
    Expr *known = map_find(&t->done, e);
    if (known)
        return known;
    Expr *result = twin_form(t, e);
    map_set(&t->done, e, result);
    return result;
}

/* ---- functions ------------------------------------------------------------------------------- */

static const char mode_letter[AD_MODES] = {[AD_REVERSE] = 'r', [AD_FORWARD] = 'f'};

static const char *fn_path(const Expr *fn) { return fn->fn->path ? fn->fn->path->text : ""; }

Expr *grad_twin(PassCtx *ctx, Expr *fn, AdMode mode) {
    WeakMap *made = &grad_state(ctx)->twins[mode];
    Expr *known = fn->fn->own_twins[mode] ? fn->fn->own_twins[mode] : weak_find(made, fn);
    if (known)
        return known;
    const char *path = fn_path(fn);
    size_t depth = strlen(path);
    Build b = {fn->span};
    Var *tape = b_var(&b, mode == AD_REVERSE ? "tape" : "level", type_tape());

    Expr *twin = expr_copy(fn);
    twin->fn = mem_new(Fn);
    *twin->fn = *fn->fn;
    twin->fn->base = fn->fn->base ? fn->fn->base : fn;
    twin->fn->of = fn; /* the entry in `made` lasts as long as both live */
    twin->fn->path = sym_intern(fmt_text("%s%c", path, mode_letter[mode]));
    memset(twin->fn->own_twins, 0, sizeof twin->fn->own_twins);
    twin->fn->nparams = fn->fn->nparams + 1;
    twin->fn->params = mem_new_n(Var *, twin->fn->nparams);
    twin->fn->params[0] = tape;
    twin->type = b_twin_type(fn->type);
    for (uint32_t i = 0; i < fn->fn->nparams; i++)
        twin->fn->params[i + 1] = fn->fn->params[i];
    Twin t = {.ctx = ctx, .mode = mode, .tape = b_ref(&b, tape), .drop = (unsigned)depth + 1};
    twin->fn->body = twin_expr(&t, fn->fn->body);
    if (t.failed)
        return NULL;
    if (ctx->check) {
        VarVec captured = {0};
        expr_free_vars(twin->fn->base, &captured);
        pass_check(ctx, twin, &captured, "a derivative");
    }
    weak_set(made, fn, twin);
    return twin;
}

Expr *grad_twin_at(PassCtx *ctx, Expr *fn, const Symbol *path) {
    Expr *at = fn->fn->base ? fn->fn->base : fn;
    for (const char *p = path->text; at && *p; p++)
        at = grad_twin(ctx, at, *p == 'r' ? AD_REVERSE : AD_FORWARD);
    return at;
}
