/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the reference evaluator: forms (eval.c), operators (operator.c), derivatives
 * (derivative.c). Functions that give bool return false after a diagnostic, or when in->interrupt is
 * set. */
#ifndef EVAL_REFERENCE_INTERNAL_H
#define EVAL_REFERENCE_INTERNAL_H

#include "eval/machine.h"
#include "eval/reference/reference.h"

/* An environment: the innermost variable first. */
typedef struct Local {
    const Var *var;
    Value value;
    const struct Local *outer;
} Local;

/* A function that is being run. A call in tail position takes the place of its caller. */
typedef struct Activation {
    const struct Activation *caller;
    const Expr *fn;   /* the function literal; NULL of an item */
    const Expr *call; /* by which it was entered */
    const Expr *tail; /* the program's tail call that led from here into the prelude, or NULL */
    /* Where the last field of a constructor is a call in tail position, the data is made first and
     * the call's value is put into it. */
    ValueChain data;
} Activation;

/* One operator, or a function with a derivative of its own, as the way back needs it. */
typedef struct TapeStep {
    const struct TapeStep *before;
    Value result; /* lifted: its duals' references hold the cotangent */
    bool (*back)(Reference *r, uint64_t level, const struct TapeStep *s, Value ct);
    const Rule *rule;   /* of an operator, */
    const Op *op;       /* which is this one, */
    const Attrs *attrs; /* with these attributes; */
    Value f;            /* of custom_grad its pair of functions, of checkpoint its function */
    const Value *args, *primals;
    Value out; /* the operator's result, of the primals */
    Span span; /* of its call */
    uint32_t n;
    Seal seal;       /* of checkpoint's first run */
    Span place;      /* the same, or of the program's call that led there; where hunts_nan */
    bool is_forward; /* its tangent is computed, on no tape */
    const struct TapeStep *within; /* the step whose rule called the operator, or NULL */
} TapeStep;

/* The derivatives that run, the innermost first. Code inside of it sees the duals of its level; its
 * rules and its way back run in the world outside. */
typedef struct World {
    AdMode mode;
    uint64_t level;
    const TapeStep **tape; /* AD_REVERSE: the last step */
    struct World *outer;
} World;

struct Reference {
    Interp *in;
    World *world;
    WatchFn watch; /* NULL: nobody is told */
    void *watch_ctx;
    int unwatched;  /* > 0: inside of what is not told */
    bool hunts_nan; /* an operator that makes a NaN or an infinity fails (nan.c) */
    bool
        serves_machine; /* its functions are closures of the machine too (Note [Two engines] in nan.c) */
    const TapeStep
        *rule_of;       /* the step whose rule is being evaluated, or NULL; kept where hunts_nan */
    const Local *scope; /* of the last operator that was called by the program */
    Value *gave;        /* where a step back leaves what its arguments get, or NULL */
    const Attrs *rule_attrs; /* of the call whose rule is being evaluated, or NULL */
    const Activation *top;
    const Expr *at;              /* the form being evaluated */
    bool traced;                 /* the calls that led to the error were told */
    size_t since;                /* diagnostics there were before */
    WeakMap captures;            /* EXPR_FN -> the variables it captures */
    WeakMap loops;               /* EXPR_GRAD of GRAD_VMAP -> the loop that it means */
    Map operators;               /* Op -> its function literal */
    Map ctors;                   /* Ctor -> the same */
    Map derivatives[GRAD_KINDS]; /* number of parameters + 1 -> its function literal */
};

/* ---- eval.c ---- */
/* The value of e. `own` is the activation whose result it is, NULL where e is not in tail position. */
bool ref_eval(Reference *r, Expr *e, const Local *env, Activation *own, Value *out);
/* f(args), not in tail position. */
bool ref_apply(Reference *r, const Expr *call, Value f, const Value *args, uint32_t n, Value *out);
const Local *local_new(const Var *v, Value value, const Local *outer);
Diag *ref_fail(Reference *r, Span span, DiagCode code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- derivative.c ---- */
/* Makes of x what is put into a tuple or data: Note [Own cells] in passes/cells.h. */
bool ref_own(Reference *r, Value *x);

/* ---- operator.c ---- */
/* A call of an operator in the current world; call: for messages, or NULL. */
bool ref_operator(Reference *r, const Expr *call, const Op *op, const Attrs *attrs,
                  const Value *args, uint32_t n, Value *out);
/* The same on values that no derivative follows. */
bool ref_operator_plain(Reference *r, const Expr *call, const Op *op, const Attrs *attrs,
                        const Value *args, uint32_t n, Value *out);
/* `<` and its like on Strings, by their bytes; false where they are no Strings. */
bool ref_compare_strings(const Op *op, const Value *args, Value *out);
/* a == b, or != where negate is set. */
bool ref_compare_equal(Reference *r, const Expr *e, Value a, Value b, bool negate, Value *out);
/* Attributes with the sizes that were computed for this call in place. */
const Attrs *ref_attrs_with_sizes(const Attrs *attrs, const Value *sizes, uint32_t n);

/* ---- vmap.c ---- */
/* What e, an EXPR_GRAD, is evaluated as: of a vmap its loop, made once, or e itself. */
Expr *ref_loop(Reference *r, Expr *e);
/* vmap(f) where only the closure f says how many parameters it has. */
Value ref_vmap(Reference *r, Value f);

/* ---- watch.c ---- */
/* Tells it. False where the evaluation is to end. */
bool ref_tell(Reference *r, WatchEvent event);

/* ---- nan.c ---- */
/* Whether an operator may give `out`; false after a diagnostic: there is a NaN or an infinity in it, and none in
 * args. */
bool ref_stays_finite(Reference *r, const Expr *call, const Op *op, const Value *args, uint32_t n,
                      Value out);
/* `at`, or if that is in the prelude or the library, the program's call that led there. */
Span ref_place_in_program(const Reference *r, Span at);
/* Whether the machine made this closure for a derivative, and of which function. */
bool ref_find_derivative(Reference *r, const Closure *c, GradKind *kind, Value *of);

/* ---- derivative.c ---- */
/* An operator of which some argument is a dual of r->world's level. */
bool ref_differentiate(Reference *r, const Expr *call, const Op *op, const Attrs *attrs,
                       const Value *args, uint32_t n, Value *out);
bool ref_is_active(Value v, uint64_t level);
/* The derivative `kind` of f at args. GRAD_CUSTOM and GRAD_CHECKPOINT: inside of a derivative only. */
bool ref_derivative(Reference *r, GradKind kind, Value f, const Value *args, uint32_t n,
                    Value *out);
/* Whether a call of a function with a derivative of its own is a plain call of f here. */
bool ref_is_plain_call(const Reference *r, GradKind kind);

#endif
