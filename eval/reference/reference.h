/* SPDX-License-Identifier: Apache-2.0 */
/* The reference evaluator: the meaning of the typed core, written as plainly as it can be, and the
 * oracle that every faster engine is tested against, bit for bit (`--engine=reference`).
 *
 * A walk over the expression: an environment is a list of variables, each form of the core has its
 * case, an operator runs its reference recipe, and nothing is optimised, planned or kept. Derivatives
 * are those of thesis figure 4.1, taken while running: a float tensor that is active is paired with a
 * reference that accumulates its cotangent, each operator adds a step to a tape, and the tape runs
 * backwards (derivative.c). It shares values, their printing, messages, builtins and recipes with
 * the machine, and neither its code nor the passes; but where a derivative follows the rows of a `vmap`, it runs the code
 * for all rows at once that the machine would run (passes/vmap.h). */
#ifndef EVAL_REFERENCE_REFERENCE_H
#define EVAL_REFERENCE_REFERENCE_H

#include "eval/interp.h"

typedef struct Reference Reference;

Reference *reference_new(Interp *in);

/* The value of a closed expression, as interp_eval gives it. */
EvalStatus reference_eval(Reference *r, Expr *e, Value *out);
/* Calls a function value that this evaluator made. */
EvalStatus reference_call(Reference *r, Value fn, const Value *args, uint32_t n, Value *out);
/* The same while it runs, outside of all derivatives; the caller hears what fails. */
bool reference_try(Reference *r, Value fn, const Value *args, uint32_t n, Value *out);
/* While it runs: the value of what a `let` of the session is bound to. */
bool reference_eval_global(Reference *r, Expr *e, Value *out);
/* The value of a function literal without free variables: what a `def` is bound to. */
Value reference_function(Reference *r, Expr *fn);

/* What happens while it runs, told one by one to whoever asked: `:step` and `:graph` show it. Inside of a
 * derivative values may be duals (eval/value.h). */
typedef enum WatchKind {
    WATCH_CALL,  /* a function is entered: what it is called, its arguments */
    WATCH_VALUE, /* an operator gave a value */
    WATCH_BEGIN, /* a derivative in reverse mode begins: its arguments, lifted */
    WATCH_SEED,  /* its way back begins: the value of its function, lifted */
    WATCH_STORE, /* the value of the only argument was put into data, where it has a cell of its own */
    WATCH_BACK, /* a step back has been taken: the value of the step forward, its cotangent, and what each argument
                    got, () for nothing */
} WatchKind;

typedef struct WatchEvent {
    WatchKind kind;
    const char *what; /* the operator or function, or NULL */
    Span span;
    uint32_t n;
    const Value *args;
    Value value;
    Value cotangent;   /* WATCH_BACK */
    const Value *gave; /* WATCH_BACK: n, or NULL where it is not known */
    uint64_t level;    /* of the derivative; 0 outside of all */
    int depth;         /* of calls */
    bool is_inner;     /* a part of another operator or of a step back: what a rule computes */
    const struct Local *scope;
} WatchEvent;

/* False ends the evaluation, as an interrupt does. */
typedef bool (*WatchFn)(void *ctx, const WatchEvent *event);

/* The value of a closed expression, with what happens on the way. The session's functions run too, whichever engine it
 * has. */
EvalStatus reference_watch(Interp *in, Expr *e, WatchFn watch, void *ctx, Value *out);

/* The value of a closed expression; it fails where a NaN or an infinity is born, and says by what. The session may
 * have the other engine: hunter is NULL at first, and kept for the next time. */
EvalStatus reference_hunt(Interp *in, Reference **hunter, Expr *e, Value *out);

/* What tells one active value of a derivative from another, or NULL for others; and its cotangent so far. */
const void *watch_identity(Value v, uint64_t level);
Value watch_cotangent(Value v, uint64_t level);
/* The variable number i from the innermost, false behind the last. */
bool watch_variable(const struct Local *scope, size_t i, const char **name, Value *value);

/* While it runs: the place of what is being evaluated, for messages. */
Span reference_span(const Reference *r);

#endif
