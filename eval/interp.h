/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator from outside.
 *
 * Core is resolved to code first (eval/resolve.c: variables to slots), and run on one explicit
 * stack, an mmap'd NORESERVE region of which only [base, sp) is shown to the collector. Tail calls
 * use no stack; other recursion is bounded by the memory limit. The one longjmp is that of
 * the out-of-memory handler (Note [Out of memory] in stack.c). */
#ifndef EVAL_INTERP_H
#define EVAL_INTERP_H

#include "eval/value.h"
#include "ops/recipe/template.h"
#include "passes/optimise.h"
#include "types/infer/infer.h"

typedef struct Interp Interp;

typedef enum Engine {
    ENGINE_VM,        /* the register machine: eval/run.c */
    ENGINE_REFERENCE, /* the oracle: eval/reference/reference.h */
} Engine;

typedef struct InterpOptions {
    Engine engine;
    size_t stack_bytes;  /* 0: 1 GB, or all memory where it is less */
    size_t memory_bytes; /* collected heap, tensors and stack together; 0: mem_default_limit */
    uint64_t seed;
    bool hunts_nan;    /* an operator that makes a NaN or an infinity of finite numbers fails */
    bool no_progress;  /* `progress` says nothing */
    bool verify_types; /* eval/verify.h */
    bool check_core;   /* hold derivatives to the rules of the core */
    OptOptions opt;
    bool counts; /* count the instructions that run (interp_print_counts) */
    bool twins;  /* never make derivatives code (passes/reverse/reverse.h) */
} InterpOptions;

Interp *interp_new(Env *env, Diags *diags, const InterpOptions *options);
/* Gives its stacks and its kernels back, on the thread that it last ran on; nothing runs on it later. NULL does nothing. */
void interp_fini(Interp *in);

/* How operator steps run, those of plans that are kept too; initially the reference. `:info session` counts. */
void interp_set_runner(Interp *in, StepRunner runner, TemplateRunner kept, void *ctx);
/* What becomes of the runner's ctx in interp_fini. */
void interp_set_runner_fini(Interp *in, void (*fini)(void *ctx));

typedef enum EvalStatus { EVAL_OK, EVAL_FAILED /* reported */, EVAL_INTERRUPTED } EvalStatus;

EvalStatus interp_eval(Interp *in, Expr *e, Value *out);
/* Runs one checked item; for CORE_EXPR and CORE_LET, out is its value. */
EvalStatus interp_run_item(Interp *in, CoreItem *item, Value *out);
void interp_set_global(Interp *in, Global *g, Value v);
bool interp_get_global(Interp *in, Global *g, Value *out);

/* Runs fn(arg), which may read, check and evaluate. False when memory ran out, which is then reported
 * to diags; what fn was building is lost, and whatever it had changed by then stays changed. */
bool interp_guard(Interp *in, Diags *diags, void (*fn)(void *arg), void *arg);

/* From a signal handler or another thread: the evaluation in progress ends soon, and so does any
 * later one until interp_resume. */
void interp_interrupt(Interp *in);
void interp_resume(Interp *in);
const volatile int *interp_interrupt_flag(Interp *in);
/* Leaves passes within an evaluation or interp_guard after interp_interrupt: for PassCtx.poll. They hold nothing that has
 * to be released, so this is done as if memory had run out (Note [Out of memory] in eval/stack.c). */
void interp_poll_passes(void *interp);
void interp_set_args(Interp *in, int argc, char **argv); /* `args` */
void interp_set_diags(Interp *in, Diags *diags);
Diags *interp_get_diags(Interp *in);
/* `print` and `show` round floats to so many significant digits; 0, as at first, rounds none. */
void interp_set_digits(Interp *in, int digits);
/* What runs from now on fails where a NaN or an infinity is born, or does not. It is the reference evaluator that
 * looks, with the session's kernels. */
void interp_hunt_nan(Interp *in, bool on);
void interp_hide_progress(Interp *in, bool hidden); /* `progress` says nothing for a while */
/* The calls that led to the last error of a program, each with its place; "" for none. */
const char *interp_last_trace(Interp *in);
void interp_set_seed(Interp *in, uint64_t seed);
/* Where `print` writes; initially stdout. */
void interp_set_output(Interp *in, void (*write)(void *ctx, const char *text, size_t n), void *ctx);

/* What `save` writes of a value that is a drawing, in the format of the path's extension: its bytes, or why there
 * are none. False where the value is none. */
typedef bool (*DrawFn)(Value v, const char *path, Str *bytes, const char **why);
void interp_set_draw(Interp *in, DrawFn draw);

typedef struct InterpStats {
    uint64_t ops_reference, ops_compiled, calls;
    uint64_t optimised, dropped; /* functions and items that passes ran on; that were made anew */
    uint64_t applied;            /* single applications of passes (--opt-bisect) */
    uint64_t plans;              /* made; most calls find theirs */
    uint64_t in_place;           /* results written over an argument (eval/own.h) */
    uint64_t bytes_in_place;     /* of these results */
    uint64_t launches;           /* steps of plans run, compiled or not; scalars need none */
    uint64_t derived;            /* derivatives made into code */
    uint64_t taped;              /* calls of derivatives that are none, and keep a tape */
    size_t stack_peak;
} InterpStats;
const InterpStats *interp_stats(Interp *in);
/* Where InterpOptions.counts asked for it: how many instructions ran, and how many of each kind. */
uint64_t interp_count(const Interp *in);
void interp_print_counts(const Interp *in, Str *out);

#endif
