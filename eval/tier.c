/* SPDX-License-Identifier: Apache-2.0 */
/* Note [Tiers]. A function runs at first as the core stands, which costs nothing to prepare. Its code begins
 * with an instruction that counts how often it is entered, by calls and by its own tail calls; when that has
 * happened HOT times, the passes run over the function (passes/optimise.h), and what they make becomes a second Code,
 * which is entered instead from then on. Activations of the first one go on in it. With --opt=N or --pass the
 * passes run before a function first runs, and there is one Code only.
 *
 * Both have the same parameters and captured variables, and the twins of a derivative are made of the function as it
 * stood (Note [Twins] in passes/grad.h), so a closure may be entered through either.
 *
 * Optimised code depends on the definitions that were built into it. An evaluation that follows a definition
 * looks whether they are still the same; where one is not, the code is made anew when it is next entered. */
#include "eval/machine.h"
#include "passes/effects.h"

static const Instr resolve_first[1] = {{CODE_RESOLVE, 0, 0, 0, 0}};

enum { HOT = 64 };

void code_begin(Code *code) {
    code->instrs = resolve_first;
    code->heat = HOT;
}

static bool may_optimise(Interp *in, const Code *code) {
    return !code->path && !code->base && opt_is_on(&in->options.opt) && !in->options.verify_types;
}

bool code_counts(Interp *in, const Code *code) {
    return may_optimise(in, code) && !in->options.opt.at_once && !code->item && !code->is_better;
}

Expr *code_source(Interp *in, Code *code) {
    bool now = code->is_better || (may_optimise(in, code) && in->options.opt.at_once);
    if (!now)
        return code->fn;
    VarVec given = {0};
    for (uint32_t i = 0; i < code->ncaptured; i++)
        if (code->captured[i])
            vec_push(&given, code->captured[i]);
    const Symbol *name = code->item ? NULL : code->fn->fn->name;
    vec_clear(&code->deps);
    in->passes.diags = in->diags;
    Expr *source = optimise(&in->passes, code->fn, name, &given, &code->deps);
    if (!code->watched)
        vec_push(&in->optimised, mem_watch(code));
    code->watched = true;
    in->stats.optimised++;
    return source;
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
