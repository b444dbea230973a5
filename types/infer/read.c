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

/* ---- headers --------------------------------------------------------------------------------- */

static const FileHeader *find_header(Infer *I, const Expr *call) {
    const EnvHooks *hooks = &I->env->hooks;
    const Symbol *path = sym_intern(call->args[0]->text);
    FileHeader *h = map_find(&I->headers, path);
    if (!h && hooks->read_header) {
        h = mem_new(FileHeader);
        if (!hooks->read_header(hooks->ctx, call->span.source, path->text, h))
            h->rank = -1;
        map_set(&I->headers, path, h);
    }
    return h && h->rank >= 0 ? h : NULL;
}

static Type *size_from_file(const Expr *call, int64_t n) {
    Origin *o = mem_new(Origin);
    *o = (Origin){.kind = ORIGIN_FILE,
                  .span = call->span,
                  .place = {.kind = PLACE_NAME, .name = call->args[0]->text}};
    return n < 0 ? type_any(KIND_DIM, o) : type_dim_int(n, o);
}

/* Whether this is a variable of the scope that is being closed. */
static bool is_open_here(const Infer *I, const Type *t) {
    return t->tag == TY_VAR && t->var.level >= solver_level(I->s);
}

static bool take_shape(Infer *I, const Expr *call, Type *shape, const FileHeader *h) {
    uint32_t rank;
    Type **dims;
    Type *sizes[TENSOR_MAX_RANK];
    if (is_open_here(I, shape)) {
        for (int i = 0; i < h->rank; i++)
            sizes[i] = size_from_file(call, h->shape[i]);
        return solver_unify(I->s, shape, type_shape(sizes, (uint32_t)h->rank));
    }
    bool took = false;
    if (!type_get_rank(shape, &rank, &dims) || (int)rank != h->rank)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        Type *d = type_resolve(dims[i]);
        if (is_open_here(I, d) && h->shape[i] >= 0)
            took |= solver_unify(I->s, d, size_from_file(call, h->shape[i]));
    }
    return took;
}

/* Takes what is open in the type of a call from the header of the file. What contradicts it stays: it is
 * compared when the file is read. */
static bool take_header(Infer *I, const Expr *call) {
    Type *t = type_resolve(call->type);
    if (!call->nargs || call->args[0]->kind != EXPR_STRING || !type_has_vars(t) ||
        (t->tag != TY_TENSOR && !is_open_here(I, t)))
        return false;
    const FileHeader *h = find_header(I, call);
    if (!h)
        return false;
    bool took = false;
    if (t->tag == TY_VAR) {
        Type *tensor = type_tensor(solver_var(I->s, KIND_SHAPE), solver_var(I->s, KIND_DTYPE));
        took = solver_unify(I->s, t, tensor);
        t = type_resolve(t);
    }
    if (t->tag != TY_TENSOR)
        return took;
    Type *dtype = type_resolve(t->tensor.dtype);
    if (is_open_here(I, dtype) && h->has_dtype && (dtype->var.dtypes & DT_BIT(h->dtype)))
        took |= solver_unify(I->s, dtype, type_dtype(h->dtype));
    return take_shape(I, call, type_resolve(t->tensor.shape), h) || took;
}

void infer_read_headers(Infer *I) {
    const void *use;
    void *call;
    bool took = false;
    for (size_t i = 0; !infer_failed(I) && map_next(&I->reads, &i, &use, &call);)
        took |= take_header(I, call);
    if (took)
        solver_run(I->s);
}

/* ---- where the item ends --------------------------------------------------------------------- */

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

/* A type that would have come from a file which is not there. False where that is not the reason. */
static bool report_missing(Infer *I, const Expr *call) {
    const Expr *path = call && call->nargs ? call->args[0] : NULL;
    if (!path || path->kind != EXPR_STRING)
        return false;
    const FileHeader *h = map_find(&I->headers, sym_intern(path->text));
    bool text = strcmp(call->a->global->symbol, "data.json") == 0; /* it names no file */
    if (!h || !h->missing || text)
        return false;
    Diag *d = infer_error(I, DIAG_R0501, path->span, "there is no file `%s`", path->text);
    if (d)
        diag_add_fact(d, "its type is taken from the file, since nothing else says it");
    return true;
}

void settle_read(Infer *I, Expr *use) {
    Type *fn = type_resolve(use->type);
    const Expr *call = map_find(&I->reads, use);
    if (!reads_file(use) || fn->tag != TY_FN)
        return;
    const char *name = use->global->name->text;
    Type *result = call ? call->type : fn->fn.result;
    if (is_open(I, result) || is_open(I, fn->fn.result)) {
        if (report_missing(I, call))
            return;
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
