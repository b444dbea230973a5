/* SPDX-License-Identifier: Apache-2.0 */
/* Relay-to-Relay passes: pure functions on the typed core, one file each, listed in passes.def.
 * Programs are DAGs: every traversal is memoised by node; let chains are loops. */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "passes/optimise.h"
#include "types/infer/infer.h"

/* What a pass did with a part of the program, or why it left it as it was: for `:why`. */
typedef enum TellingKind { TOLD_DONE, TOLD_LEFT } TellingKind;
typedef struct Telling {
    TellingKind kind;
    const char *pass; /* or another stage: "vmap", "fuse" */
    Span span;        /* the part of the program */
    const char *text; /* "put `f` in place of its call" */
} Telling;
typedef VEC(Telling) TellingVec;

struct HeldFunctions;
typedef struct PassCtx {
    Env *env;
    Diags *diags;
    struct GradState *grad; /* the helper functions and templates of differentiation, made once */
    struct EffectState *effects; /* of definitions (effects.h) */
    bool check;                  /* run core_check on what passes and derivatives make */
    bool keeps_derivatives;      /* `derive` leaves them to the run: --twins */
    bool derives_source; /* what `derive` makes is differentiated, so that it merges nothing */
    bool
        derives_values; /* it makes derivatives that are no callees code, too: nothing else keeps a tape of that */
    uint32_t fuel;           /* steps that partial_eval takes for a derivative; 0: its own number */
    VEC(const char *) notes; /* where a pass gave up: pass_note */
    uint64_t work;           /* nodes that passes visited so far: for tests, that they are linear */
    TellingVec *tellings;    /* what pass_tell adds to, or NULL: nobody asks */
    void (*poll)(
        void *arg); /* is called while passes work, and may not come back: Ctrl-C; or NULL */
    void *poll_arg;
    /* Which functions the value of a `let` holds (reverse/reverse.h); or NULL: nobody knows. */
    bool (*find_held)(void *held_by, const Global *g, Type *type, struct HeldFunctions *out);
    void *held_by;
    const OptOptions *opt;       /* of the passes that code goes through (optimise.h) */
    uint64_t applied;            /* applications of passes to code so far */
    bool brought_derivative;     /* what was inlined since it was last cleared takes derivatives */
    DependencyVec *deps;         /* what the code being optimised depends on, or NULL */
    struct Instances *instances; /* copies of functions made so far (specialise.c) */
    Map rewrites;                /* Op -> its rules, as far as they were asked for (simplify.c) */
} PassCtx;

typedef struct Pass {
    const char *name;
    Expr *(*run)(PassCtx *ctx, Expr *e);
    int level; /* the least at which it runs on code; 0: only where it is named */
    const char *doc;
} Pass;

/* The pass of the table that stands in a room above this one. */
Expr *pass_derive(PassCtx *ctx, Expr *e);

const Pass *pass_find(const char *name); /* NULL when there is none */
size_t pass_count(void);
const Pass *pass_at(size_t i);
/* Says that a pass left something as it was because its fuel ran out. */
void pass_note(PassCtx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Tells `:why` what became of a part of the program, where somebody asks. */
void pass_tell(PassCtx *ctx, TellingKind kind, const char *pass, Span span, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Counts the visit of a node. Each pass calls it at each node, so that Ctrl-C is seen in every one. */
static inline void pass_visit(PassCtx *ctx) {
    enum { BETWEEN_POLLS = 1024 };
    if (++ctx->work % BETWEEN_POLLS == 0 && ctx->poll)
        ctx->poll(ctx->poll_arg);
}
/* Puts the state in order after passes were left by a jump: an interrupt, or no memory. */
void passes_abandon(PassCtx *ctx);

/* Notes that the code being optimised is right as long as g has the value it has. */
void pass_depend(PassCtx *ctx, Global *g);

/* Whether e is a derivative of which `derive` makes code, where it can. */
static inline bool is_derivative(const Expr *e) {
    return e->kind == EXPR_GRAD && e->mode <= GRAD_DERIV;
}

/* Forgets what was found about definitions, because they may have changed. */
void passes_forget(PassCtx *ctx);
/* Drops what passes keep of definitions where that is much: after many redefinitions most of it is of old ones.
 * To be called between the parts of a program. */
void passes_trim(PassCtx *ctx);
/* Ends the program with a BUG where ctx->check is set and e breaks a rule (types/core/check.h). after: what
 * made e. */
void pass_check(const PassCtx *ctx, Expr *e, const VarVec *given, const char *after);
/* With --print-after: writes what a pass made of a function or item to the standard error. */
void pass_print_after(const PassCtx *ctx, const Pass *pass, const Symbol *name, Expr *e);
Expr *pass_run(PassCtx *ctx, const Pass *pass, Expr *e);

/* Bindings (EXPR_LET) of a block that a pass makes, in their order; their bodies are set when it is closed. */
typedef VEC(Expr *) Links;
/* Adds copies of a block's bindings, and gives what the block ends in. Of the value of a recursive binding these are
 * the names of what its function captured (literal_with_names in inline.h), which go before the binding. */
Expr *open_links(Links *links, Expr *block);
/* The block of all bindings that ends in the result. The bindings are written to, and taken out of links. */
Expr *close_links(Links *links, Expr *result);
/* As close_links, with each binding that is as it was shared with the old block, and none written to. */
Expr *share_links(Links *links, Expr *result);

#endif
