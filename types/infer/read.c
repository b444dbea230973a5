/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of what reads a file (`load`, `data.…`), which makes a value of the type that is asked for.
 *
 * The value is compared with its type when it is read, so the type has to be known where the item ends:
 * an open one would let any value pass for any type. A size that nothing says is an unknown. As a value,
 * `load` is the function that calls it: each call has a type of its own to compare with. */
#include <string.h>

#include "types/infer/state.h"

bool builtin_reads_file(const char *symbol) {
    return strcmp(symbol, "load") == 0 || strncmp(symbol, "data.", 5) == 0;
}

static bool reads_file(const Expr *use) {
    return use->kind == EXPR_GLOBAL && use->global->kind == GLOBAL_BUILTIN &&
           builtin_reads_file(use->global->symbol);
}

void infer_note_read(Infer *I, Expr *use) {
    if (reads_file(use))
        infer_note(I, PENDING_READ, use);
}

void infer_note_file(Infer *I, const Expr *call, Type *type) {
    if (call->kind != EXPR_CALL || !reads_file(call->a))
        return;
    const Expr *path = call->nargs ? call->args[0] : NULL;
    origin_read(type, call->span, path && path->kind == EXPR_STRING ? path->text : NULL);
    map_set(&I->reads, call->a, (void *)call);
}

/* Makes sizes that were not found unknowns, and says whether anything else in the type is still open. */
static bool is_open(Infer *I, Type *t) {
    TypeVec found = {0};
    Map vars = {0}, params = {0};
    type_collect(t, TY_VAR, &vars, &found);
    for (size_t i = 0; i < found.len; i++) {
        Type *v = found.data[i];
        if (v->kind == KIND_DIM)
            solver_unify(I->s, v, type_any(KIND_DIM, NULL));
        else if (v->kind != KIND_EFFECT)
            return true;
    }
    found.len = 0;
    type_collect(t, TY_PARAM, &params, &found);
    for (size_t i = 0; i < found.len; i++) {
        if (found.data[i]->kind != KIND_EFFECT)
            return true;
    }
    return false;
}

/* `load` as a value is `fn (path) { load(path) }`. */
static Expr *as_function(const Expr *use, Type *fn) {
    Var **params = mem_new_n(Var *, fn->nargs);
    Expr **args = mem_new_n(Expr *, fn->nargs);
    for (uint32_t i = 0; i < fn->nargs; i++) {
        params[i] = var_new(sym_intern(fmt_text("path%u", i)), fn->args[i], use->span);
        args[i] = expr_var(params[i], use->span);
    }
    Expr *call = expr_call(expr_copy(use), args, fn->nargs, NULL, fn->fn.result, use->span);
    return expr_fn(params, fn->nargs, call, fn, use->span);
}

void settle_read(Infer *I, Expr *use) {
    Type *fn = type_resolve(use->type);
    const Expr *call = map_find(&I->reads, use);
    if (!reads_file(use) || fn->tag != TY_FN)
        return;
    const char *name = use->global->name->text;
    Type *result = call ? call->type : fn->fn.result;
    if (is_open(I, result) || is_open(I, fn->fn.result)) {
        Diag *d = infer_error(I, DIAG_R0220, call ? call->span : use->span,
                              "nothing says the type of what `%s` reads here", name);
        if (d) {
            diag_set_label(d, "%s", type_text(result));
            diag_add_fact(
                d,
                "write it, as in `let x: Tensor[(?, 3), float32] = %s(...)`; `?` is a size "
                "that the file says",
                name);
        }
        return;
    }
    if (!call)
        *use = *as_function(use, fn);
}
