/* SPDX-License-Identifier: Apache-2.0 */
/* Note [Tiers]. A function runs at first as the core stands, which costs nothing to prepare. Its code begins
 * with an instruction that counts how often it is entered, by calls and by its own tail calls. When that has
 * happened HOT times, or kernels were launched HOT_LAUNCHES times since it was first entered, because an entry may be a
 * step that trains a network, the passes run over the function (passes/optimise.h), and what they make becomes a second
 * Code, which is entered instead from then on. Activations of the first one go on in it. With --opt=N or --pass the
 * passes run before a function first runs, and there is one Code only. So they do without these, where a function or item
 * gives a definition a function by name or as a literal: `map(fn (x) { … }, xs)` may run long, and what runs then is
 * a copy of `map` that passes make.
 *
 * Both have the same parameters and captured variables, and the twins of a derivative are made of the function as it
 * stood (Note [Twins] in passes/grad.h), so a closure may be entered through either.
 *
 * Optimised code depends on the definitions that were built into it. An evaluation that follows a definition
 * looks whether they are still the same; where one is not, the code is made anew when it is next entered. */
#include "eval/machine.h"
#include "passes/effects.h"
#include "passes/vmap.h"

static const Instr resolve_first[1] = {{CODE_RESOLVE, 0, 0, 0, 0}};

enum {
    HOT = 64, /* entries */
    HOT_LAUNCHES = 64,
    LARGEST = 20000, /* nodes of a function that the passes look at */
};

void code_begin(Code *code) {
    code->instrs = resolve_first;
    code->heat = HOT;
}

static bool may_optimise(Interp *in, const Code *code) {
    return !code->path && !code->base && opt_is_on(&in->options.opt) && !in->options.verify_types;
}

typedef struct Survey {
    uint64_t walk;
    uint32_t nodes;
    bool gives_function;
} Survey;

static bool is_given_function(const Expr *call) {
    if (call->a->kind != EXPR_GLOBAL || call->a->global->kind != GLOBAL_DEF)
        return false;
    for (uint32_t i = 0; i < call->nargs; i++) {
        const Expr *arg = call->args[i];
        if (arg->kind == EXPR_FN || arg->kind == EXPR_OP ||
            (arg->kind == EXPR_GLOBAL && arg->global->kind == GLOBAL_DEF))
            return true;
    }
    return false;
}

static void survey(void *ctx, Expr *e) {
    Survey *s = ctx;
    for (;; e = e->body) {
        if (s->nodes > LARGEST || !walk_enter(s->walk, e))
            return;
        s->nodes++;
        if (e->kind != EXPR_LET)
            break;
        survey(s, e->a);
    }
    if (e->kind == EXPR_CALL)
        s->gives_function |= is_given_function(e);
    expr_each_child(e, survey, s);
}

bool code_is_left(Expr *e, int *most) {
    Survey s = {.walk = walk_new()};
    survey(&s, e);
    *most = LARGEST;
    return s.nodes > LARGEST;
}

typedef struct Optimisation {
    Interp *in;
    Code *code;
    Expr *source;
} Optimisation;

static void optimise_code(void *arg) {
    Optimisation *o = arg;
    Interp *in = o->in;
    Code *code = o->code;
    Survey s = {.walk = walk_new()};
    survey(&s, code->fn);
    bool instance = !code->item && code->fn->fn->is_instance;
    vec_clear(&code->deps);
    in->passes.diags = in->diags;
    Expr *rows = code->item ? NULL : vmap_batched(&in->passes, code->fn);
    if (s.nodes > LARGEST) {
        pass_note(&in->passes, "the passes left a function of more than %d nodes as it is",
                  LARGEST);
        return;
    }
    /* An item that is a function runs nothing: the function is made better where it runs, and differentiated as it was written. */
    if (code->item && code->fn->kind == EXPR_FN)
        return;
    if (!rows && !code->is_better && !in->options.opt.at_once && !instance && !s.gives_function)
        return;
    VarVec given = {0};
    for (uint32_t i = 0; i < code->ncaptured; i++)
        if (code->captured[i])
            vec_push(&given, code->captured[i]);
    if (rows)
        o->source = rows;
    else if (!in->options.opt.as_written || code->internal)
        o->source = optimise(&in->passes, code->fn, code->item ? NULL : code->fn->fn->name, &given,
                             &code->deps);
    if (!code->watched)
        vec_push(&in->optimised, mem_watch(code));
    code->watched = true;
    code->is_optimised = true;
    in->stats.optimised++;
}

Expr *code_source(Interp *in, Code *code) {
    enum { SPARE = 1 << 20 };
    Optimisation o = {in, code, code->fn};
    if (!may_optimise(in, code) && !code->is_better)
        return code->fn;
    if (mem_stack_left() > SPARE)
        optimise_code(&o);
    else
        call_on_large_stack(in, optimise_code, &o);
    return o.source;
}

bool code_counts(Interp *in, Code *code) {
    code->hot_at = in->stats.launches + HOT_LAUNCHES;
    return may_optimise(in, code) && !in->options.opt.at_once && !code->item && !code->is_optimised;
}

Code *code_heated(Code *code) {
    code->heat = 1; /* whoever still enters this code is led on at once */
    if (!code->better) {
        Code *better = mem_new(Code);
        *better = *code;
        better->base = code;
        better->is_better = true;
        better->instrs = resolve_first;
        better->nslots = code->nparams;
        better->twins.len = better->twins.cap = 0;
        better->twins.data = NULL;
        code->better = better;
    }
    return code->better;
}

void code_drop_outdated(Interp *in) {
    passes_trim(&in->passes);
    InferCounts now = env_counts(in->env);
    uint64_t inferred = now.definitions + now.runs;
    if (inferred == in->inferred)
        return;
    in->inferred = inferred;
    size_t kept = 0;
    for (size_t i = 0; i < in->optimised.len; i++) {
        Code *code = *in->optimised.data[i];
        if (!code)
            continue;
        in->optimised.data[kept++] = in->optimised.data[i];
        if (code->instrs != resolve_first && !dependencies_hold(&code->deps)) {
            code->instrs = resolve_first;
            in->stats.dropped++;
            passes_forget(&in->passes);
        }
    }
    in->optimised.len = kept;
}
