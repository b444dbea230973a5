/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator from outside: making one, running items, the values of globals. */
#include "eval/machine.h"

#include <stdio.h>

#include "eval/foreign.h"
#include "eval/held.h"
#include "eval/reference/reference.h"
#include "eval/verify.h"

static int32_t run_reference(void *ctx, const Recipe *r, const KernelArgs *args) {
    Interp *in = ctx;
    in->stats.launches++;
    in->stats.ops_reference++;
    return recipe_run(r, args);
}

static int32_t run_kept_reference(void *ctx, TemplateStep *step, char *const *at,
                                  const volatile int *interrupt) {
    KernelArgs args;
    template_bind(step, at, interrupt, &args);
    return run_reference(ctx, step->recipe, &args);
}

static void write_stdout(void *ctx, const char *text, size_t n) {
    (void)ctx;
    fwrite(text, 1, n, stdout);
}

Interp *interp_new(Env *env, Diags *diags, const InterpOptions *options) {
    Interp *in = mem_new(Interp);
    mem_pin(in);
    in->env = env;
    in->diags = diags;
    in->options = *options;
    if (!in->options.memory_bytes)
        in->options.memory_bytes = mem_default_limit();
    in->passes = (PassCtx){.env = env,
                           .diags = diags,
                           .check = options->check_core,
                           .opt = &in->options.opt,
                           .keeps_derivatives = options->twins,
                           .poll = interp_poll_passes,
                           .poll_arg = in,
                           .find_held = held_find,
                           .held_by = in};
    in->runner = run_reference;
    in->kept_runner = run_kept_reference;
    in->runner_ctx = in;
    in->write = write_stdout;
    in->idle_code = mem_new(Code);
    in->idle_code->internal = true;
    in->idle_closure = mem_new(Closure);
    in->idle_closure->code = in->idle_code;
    in->fill = fill_code();
    count_init(in);
    if (!stack_init(in))
        mem_out_of_memory(0);
    if (options->engine == ENGINE_REFERENCE)
        in->reference = reference_new(in);
    return in;
}

void interp_fini(Interp *in) {
    if (!in)
        return;
    if (in->runner_fini)
        in->runner_fini(in->runner_ctx);
    stack_fini(in);
    mem_unpin(in);
}

void interp_set_runner(Interp *in, StepRunner runner, TemplateRunner kept, void *ctx) {
    in->runner = runner;
    in->kept_runner = kept;
    in->runner_ctx = ctx;
}

void interp_set_runner_fini(Interp *in, void (*fini)(void *ctx)) { in->runner_fini = fini; }

void interp_interrupt(Interp *in) { in->interrupt = 1; }
void interp_resume(Interp *in) { in->interrupt = 0; }
const volatile int *interp_interrupt_flag(Interp *in) { return &in->interrupt; }
void interp_set_diags(Interp *in, Diags *diags) { in->diags = in->passes.diags = diags; }
Diags *interp_get_diags(Interp *in) { return in->diags; }
const InterpStats *interp_stats(Interp *in) {
    in->stats.applied = in->passes.applied;
    return &in->stats;
}
void interp_set_args(Interp *in, int argc, char **argv) {
    in->argc = argc;
    in->argv = argv;
}

void interp_set_digits(Interp *in, int digits) { in->digits = digits; }

void interp_set_seed(Interp *in, uint64_t seed) { in->options.seed = seed; }

void interp_hunt_nan(Interp *in, bool on) { in->options.hunts_nan = on; }
void interp_hide_progress(Interp *in, bool hidden) { in->hides_progress = hidden; }

void interp_set_output(Interp *in, void (*write)(void *ctx, const char *text, size_t n),
                       void *ctx) {
    in->write = write;
    in->write_ctx = ctx;
}

void interp_set_draw(Interp *in, DrawFn draw) { in->draw = draw; }

static uint64_t begin_level(Interp *in) {
    in->running++;
    return ++in->level;
}

uint64_t interp_begin_level(Interp *in) {
    in->stats.taped++;
    return begin_level(in);
}

void interp_end_level(Interp *in, uint64_t level) {
    (void)level;
    if (in->running)
        in->running--;
}

Seal interp_seal(Interp *in, const Seal *first) {
    Seal seal = {.level = begin_level(in), .sealed = in->sealed, .again = in->again};
    in->sealed = seal.level;
    if (first && (!in->again || first->level < in->again))
        in->again = first->level;
    return seal;
}

void interp_unseal(Interp *in, const Seal *seal) {
    interp_end_level(in, seal->level);
    in->sealed = seal->sealed;
    in->again = seal->again;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

/* Prepares an evaluation that no other one started. */
static void begin(Interp *in) {
    if (in->fp != in->frames)
        return;
    machine_enter(in);
    in->running = 0;
    in->sealed = in->again = 0;
    code_drop_outdated(in);
}

static EvalStatus end(Interp *in, EvalStatus status) {
    if (in->fp == in->frames) {
        stack_trim(in);
        in->code = NULL;
        stack_forget(false);
    }
    return status;
}

EvalStatus interp_eval(Interp *in, Expr *e, Value *out) {
    begin(in);
    if (in->options.hunts_nan)
        return end(in, reference_hunt(in, &in->hunter, e, out));
    if (in->reference)
        return end(in, reference_eval(in->reference, e, out));
    return end(in, machine_run(in, in->idle_closure, code_of_expr(in, e), NULL, 0, out));
}

EvalStatus interp_run_item(Interp *in, CoreItem *item, Value *out) {
    *out = value_unit();
    switch (item->kind) {
    case CORE_DEF:
    case CORE_TYPE:
    case CORE_RULE:
    case CORE_IMPORT: return EVAL_OK;
    case CORE_OPERATOR: return foreign_bind(item->op, in->diags) ? EVAL_OK : EVAL_FAILED;
    case CORE_LET: {
        if (!item->global->value) /* a free_var: its value comes from outside */
            return EVAL_OK;
        EvalStatus status = interp_eval(in, item->global->value, out);
        if (status == EVAL_OK)
            interp_set_global(in, item->global, *out);
        return status;
    }
    case CORE_EXPR: return interp_eval(in, item->expr, out);
    }
    return EVAL_FAILED;
}

/* ---- globals --------------------------------------------------------------------------------- */

Cell *global_cell(Interp *in, const Global *g) {
    Cell *cell = weak_find(&in->cells, g);
    if (!cell) {
        cell = mem_new(Cell);
        if (g->is_made) /* a function that its cell is filled with again where nobody has the cell */
            weak_set(&in->cells, g, cell);
        else
            weak_set_owned(&in->cells, g, cell);
    }
    return cell;
}

void interp_set_global(Interp *in, Global *g, Value v) {
    verify_global(in, g, v);
    Cell *cell = global_cell(in, g);
    cell->value = v;
    cell->set = true;
    g->values++;
}

bool interp_get_global(Interp *in, Global *g, Value *out) {
    return global_value(in, g, global_cell(in, g), out);
}

static Value function_value(Interp *in, Expr *fn) {
    return in->reference ? reference_function(in->reference, fn) : closure_new(code_of_fn(in, fn));
}

static bool builtin_value(Interp *in, Global *g, Cell *cell) {
    Type *t = g->scheme ? type_resolve(g->scheme->type) : NULL;
    if (t && t->tag != TY_FN) { /* no function: computed whenever it is asked for */
        const Builtin *b = builtin_find(sym_intern(g->symbol));
        if (!b)
            BUG("no builtin `%s`", g->symbol);
        BuiltinCall call = {.in = in, .span = g->span, .type = t};
        return b->fn(&call, &cell->value);
    }
    if (!cell->set)
        cell->value = function_value(in, builtin_function(g));
    cell->set = true;
    return true;
}

static void find_function(void *ctx, Type *part) {
    bool *found = ctx;
    part = type_resolve(part);
    *found |= part->tag == TY_FN;
    if (!*found)
        type_each_part(part, find_function, found);
}

/* A `let` in an evaluation that is watched: it has the value that it has, but where that holds a function of another
 * engine it is computed anew. */
static bool watched_value(Interp *in, Global *g, Cell *cell) {
    const Cell *known = weak_find(in->watched, g);
    if (!known || !known->set)
        return true;
    cell->value = known->value;
    bool has_function = false;
    if (g->value && g->scheme)
        find_function(&has_function, g->scheme->type);
    cell->set = !has_function || reference_eval_global(in->reference, g->value, &cell->value);
    return cell->set;
}

bool global_value(Interp *in, Global *g, Cell *cell, Value *out) {
    if (g->broken) {
        machine_fail(in, DIAG_R0608, "`%s` no longer checks, and cannot run until it is mended",
                     g->name->text);
        return false;
    }
    switch (g->kind) {
    case GLOBAL_DEF:
        if (cell->source != g->value) {
            cell->value = function_value(in, g->value);
            cell->source = g->value;
            cell->set = true;
        }
        break;
    case GLOBAL_BUILTIN:
        if (!builtin_value(in, g, cell))
            return false;
        break;
    case GLOBAL_LET:
    case GLOBAL_FREE_VAR:
        if (!cell->set && in->watched && !watched_value(in, g, cell))
            return false;
        if (!cell->set) {
            Diag *d = machine_fail(in, DIAG_R0608, "`%s` has no value yet", g->name->text);
            if (g->kind == GLOBAL_FREE_VAR)
                diag_add_help(d, "`relay run FILE --input %s=FILE.npy` gives it one",
                              g->name->text);
            else
                diag_add_label(d, g->span, "it gets its value here");
            return false;
        }
        break;
    }
    *out = cell->value;
    return true;
}
