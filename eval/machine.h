/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's inside, shared by the files of eval/: its stacks and what runs on them. */
#ifndef EVAL_MACHINE_H
#define EVAL_MACHINE_H

#include <setjmp.h>

#include "base/weak.h"
#include "eval/code.h"
#include "types/core/env.h"

/* How the caller of an activation resumes. pc is the instruction after its call. */
typedef struct Frame {
    Closure *closure;
    Code *code;
    const Instr *pc;
    Expr *tail; /* the user's call that was in tail position and led into internal code, or NULL */
} Frame;

/* The value of a global. */
typedef struct Cell {
    Value value;
    const Expr *source; /* the function it was made of; NULL: not of a GLOBAL_DEF */
    bool set;
} Cell;

enum { CELL_SIZES = 36 };

struct Interp {
    Env *env;
    Diags *diags;
    InterpOptions options;
    InterpStats stats;
    uint64_t *counts; /* how often each opcode ran, where that is asked for; or NULL */
    Map elements;     /* what eval/element.c knows of an operator in a dtype, by its program */
    PassCtx passes;

    /* The stacks: [stack, top) and [frames, fp) are live. */
    Value *stack, *top, *stack_soft, *stack_end;
    Frame *frames, *fp, *frames_soft, *frames_end;
    ptrdiff_t step_values, step_frames; /* by how much they grow */

    /* The code and instruction being run, for messages. */
    Code *code;
    const Instr *pc;

    StepRunner runner;
    TemplateRunner kept_runner;
    void *runner_ctx;
    void (*runner_fini)(void *ctx); /* or NULL */
    uint64_t owned;       /* parameters and last result that were given to it: eval/own.h */
    uint32_t owned_items; /* of the frame that OWNED saw last: Tuple.owned */
    uint64_t dying;       /* arguments that the next operator may take over */
    struct Plans *plans;  /* those kept: eval/plans.c */
    StepVec spare_steps;  /* of groups that were planned, for the next one */
    struct { /* where code was put together, for the next: Note [Room for code] in room.c */
        InstrVec instrs;
        OriginVec origin;
        SiteVec sites;
        struct Node *nodes; /* of a row (fuse_let.c), or NULL */
    } spare;
    Value more[16];                /* results of the last group besides its first, for CODE_MORE */
    const struct Operands *inputs; /* of the plan being run */
    volatile int interrupt;
    size_t tensors_shared; /* bytes of tensors when the limit was last shared out */
    uint64_t level;        /* derivatives begun */
    uint64_t running;      /* of them, those that have not ended */
    uint64_t sealed;       /* references of an earlier epoch cannot be written */
    uint64_t again;        /* those written since that epoch cannot be read; or 0 */

    /* Where running out of memory resumes; see Note [Out of memory] in stack.c. */
    jmp_buf *escape;
    size_t escape_wanted;
    bool escape_is_interrupt; /* it was Ctrl-C that left the passes, and not that memory ran out */

    void (*write)(void *ctx, const char *text, size_t n);
    void *write_ctx;
    DrawFn draw; /* NULL: nothing is a drawing */
    int digits;  /* floats that `print` and `show` write are rounded to so many, 0: not at all */
    int argc;
    char **argv;

    WeakMap codes;          /* EXPR_FN -> its Code */
    VEC(void **) optimised; /* watched: each Code that was optimised (tier.c) */
    uint64_t inferred;      /* of the definitions, when these were last looked at */
    WeakMap *watched;       /* the cells of the session while an evaluation is watched, or NULL */
    WeakMap cells;          /* Global -> its Cell, which lives as long as the global */
    void *free_cells[CELL_SIZES]; /* lists of free cells, by their words (run_parts.h) */
    Map op_values, ctor_values;   /* Op, Ctor -> Closure */
    Closure *idle_closure;        /* of the frame below the first activation */
    Code *idle_code;
    Code *fill;                /* see Note [Calls in a last field] */
    Str last_trace;            /* of the last error: interp_last_trace */
    bool hides_progress;       /* interp_hide_progress */
    struct Progress *progress; /* of the loop that `progress` runs (builtin_progress.c), or NULL */

    struct Reference *reference; /* the evaluator that runs instead of the machine, or NULL */
    struct Reference
        *hunter; /* the one that looks for NaN and infinities (reference_hunt), or NULL */
};

/* ---- stack.c --------------------------------------------------------------------------------- */
bool stack_init(Interp *in);
void stack_fini(Interp *in);
/* Makes room for an activation that ends at `top`. False after a diagnostic. */
bool stack_grow(Interp *in, const Value *top, const Frame *fp);
void stack_trim(Interp *in);
/* As trace_since, without a limit to memory. */
void stack_trace(Interp *in, size_t since);
/* The heap's limit follows what tensors take. */
void stack_share(Interp *in);
/* After an evaluation: clears the dead part of the C stack, so that its values can be collected. */
void stack_forget(bool collect);
/* Makes this interpreter the one that the collector's callbacks of this thread serve. */
void machine_enter(Interp *in);
/* After a jump to in->escape: reports where memory ran out, and says which of the two it was. */
EvalStatus stack_escaped(Interp *in);
/* Runs fn(arg) on a large C stack; running out of memory there resumes as it would here. */
void call_on_large_stack(Interp *in, void (*fn)(void *arg), void *arg);

/* ---- run.c ----
 * Note [Calls in a last field]. In `Cons(f(x), map(f, rest))` the call is not in tail position, but
 * all that is left to do after it is to put its value into the cell. So the cell is made first, with
 * a hole, and the call runs as a tail call above an activation of in->fill, whose slots are the whole
 * value so far, its last cell and the value that goes there. The next cell made so fills the hole
 * at once and takes its place: a list of any length is made on the stack of one element (`map` over
 * 300,000 elements: 48 bytes an element instead of 190). Nobody sees a cell before it is whole. After
 * D. Leijen and A. Lorenzen, "Tail recursion modulo context", POPL 2023. */
enum { FILL_WHOLE, FILL_LAST, FILL_VALUE, FILL_SLOTS };
Code *fill_code(void);
EvalStatus machine_run(Interp *in, Closure *closure, Code *code, const Value *args, uint32_t n,
                       Value *out);

/* ---- apply.c: false after a diagnostic, or when in->interrupt is set ------------------------- */
/* The attributes of a call: the sizes that stand after its arguments are filled in. */
const Attrs *site_attrs(const Site *site, const Value *args);
bool apply_op(Interp *in, const Site *site, const Value *args, Span span, Value *out);
/* Applies an operator to scalars without making tensors. False where that is impossible; it reports nothing. */
bool apply_scalar(Interp *in, Site *site, const Value *args, Value *out);
/* The slow half of an arithmetic instruction, the one at in->pc. */
bool apply_arith(Interp *in, Opcode op, Value l, Value r, Value *out);
/* The arguments that an operator may take over, and the parameters that a tail call's callee then owns: a bit each
 * (eval/own.h). */
uint64_t owned_perhaps(const Interp *in, const Owners *o); /* those whose owner is asked */
static inline uint64_t owned_of(const Interp *in, const Owners *o) {
    return !o ? 0 : o->perhaps ? o->always | owned_perhaps(in, o) : o->always;
}
uint64_t dying_operands(const Interp *in, uint32_t owners); /* of two; owners as in Instr.x */
/* What in->owned is in the caller of an activation whose result has this owner. */
uint64_t given_result(const Interp *in, uint32_t owner);
void drop_owned(const Interp *in, Value v, uint32_t owner); /* DROP */
/* Adds two accumulators of a derivative, of which either may be absent (eval/accumulate.c). */
bool apply_add_ct(Interp *in, Span span, Value acc, Value ct, Value *out);
/* The same of a product that is not computed yet. */
bool apply_add_product(Interp *in, const Site *site, const Value *args, Span span, Value *out);
/* The dtype of a tensor. False: v is none. */
bool dtype_of_value(Value v, DType *out);
/* Whether v is the literal, which is first rounded to the dtype of v. */
bool value_is_literal(Value v, Value lit);
bool tensor_axis_size(Value v, int axis, int64_t *out);
/* A size as a value of that type; false where an integer dtype does not hold it. */
bool fits_dtype(int64_t size, Type *type, Value *out);
/* The operator that an instruction of arithmetic stands for. */
extern const Op *const arith_ops[OPCODE_COUNT];
bool stack_tensors(Interp *in, Expr *origin, const Value *items, uint32_t n, Value *out);
bool apply_index(Interp *in, Expr *origin, Value base, const Value *args, Value *out);

/* ---- data.c: false after a diagnostic -------------------------------------------------------- */
void data_field(Expr *origin, Value v, Value *out);
void data_update(Expr *origin, Value v, const Value *fields, Value *out);
/* Writes to a reference made outside of the running derivative, which may not take an active value. */
bool ref_write(Interp *in, Ref *r, Value v);
/* Where in->again is set: false after a diagnostic. */
bool ref_may_be_read(Interp *in, const Ref *r);
bool equal_values(Interp *in, Expr *origin, Value a, Value b, bool negate, Value *out);
void fail_no_match(Interp *in, Value v);
bool value_zero(Type *t, Value *out); /* false when t is not closed, or holds more than tensors */

/* ---- function.c ------------------------------------------------------------------------------ */
const Symbol *path_of_fn(const Expr *fn); /* NULL for "" */
/* The code of `code`'s base at a path. NULL after a diagnostic. */
Code *code_twin(Interp *in, Code *code, const Symbol *path);
/* The path that a call in `code` asks of its callee. */
const Symbol *call_path(const Code *code, const Expr *call);
/* is_left: no code is to be made of it (Expr.is_left). */
bool grad_of(Interp *in, GradKind kind, bool is_left, Value f, Value *out);
/* fn (x1, …, xn) { callee(x1, …, xn) } */
Expr *eta_expand(Expr *callee, uint32_t n, const Attrs *attrs, Type *result, const Symbol *name);
Expr *builtin_function(Global *g); /* the same of a builtin */

/* ---- tier.c ---------------------------------------------------------------------------------- */
void code_begin(Code *code); /* nothing is resolved yet */
/* Whether the code, which is resolved now, begins by counting its entries. */
bool code_counts(Interp *in, Code *code);
/* What instructions are made of: the function or item itself, or what the passes make of it. */
Expr *code_source(Interp *in, Code *code);
/* The code into which `code`, being hot, leads. */
Code *code_heated(Code *code);
/* Before an evaluation: what depends on a definition that has changed is made anew. */
void code_drop_outdated(Interp *in);

/* ---- count.c ---------------------------------------------------------------------------------- */
void count_init(Interp *in); /* makes room for the counts where they are asked for */

/* ---- trace.c --------------------------------------------------------------------------------- */
/* Reports a run-time error at the instruction being run. */
Diag *machine_fail(Interp *in, DiagCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
Diag *machine_fail_at(Interp *in, Span span, DiagCode code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Errors reported since then are moved to the user's call, and get the calls that led there. */
void trace_since(Interp *in, size_t since);
/* The same of activations that are listed, the innermost first. */
typedef struct TraceStep {
    const Symbol *name; /* of the function, or NULL */
    Span call;          /* the call by which it was entered; none at the bottom */
    bool internal;      /* its place is in the prelude or the library */
    bool item;          /* no function, but the expression of an item */
    bool by_tail;       /* `call` is a tail call that led into internal code */
} TraceStep;
void trace_errors(Interp *in, size_t since, const TraceStep *steps, size_t n);
Span machine_span(const Interp *in);

/* ---- interp.c -------------------------------------------------------------------------------- */
/* The cell of a global. Code that mentions the global has it as a constant. */
Cell *global_cell(Interp *in, const Global *g);
/* cell: that of g. False after a diagnostic. */
bool global_value(Interp *in, Global *g, Cell *cell, Value *out);

/* clash.c: a shape error of an operator, told as inference tells one: the types at their places, the
 * sizes laid out, where they came from. is_told: it will be, so the operator need not. */
bool clash_is_told(const Site *site);
void clash_explain(Interp *in, const Site *site, const OpCall *call, const Value *args,
                   size_t since); /* args: NULL where none is a tuple */
/* Adds where the size `n` came from, if that is known: of an EXPR_CHECK. */
void clash_explain_size(Diag *d, const Expr *size, int64_t n);
/* Makes a CHECK_RANK or CHECK_SHAPE; false after a diagnostic. */
bool clash_check_shape(Interp *in, const Check *check, Value found, Value expected);
/* Checks that element i of a tensor literal has the shape of the first; false after a diagnostic. */
bool clash_check_element(Interp *in, Value first, Value element, uint32_t i);

#endif
