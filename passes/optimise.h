/* SPDX-License-Identifier: Apache-2.0 */
/* The passes that code goes through before it is made into instructions: which, in which order, and how far.
 *
 * The evaluator asks for one function, or for the expression of one item, at a time (eval/function.c), and
 * keeps the answer. Passes that a test names run as they are named; otherwise the level says which run:
 *
 *   0   none: code is made of the core as inference left it
 *   1   those that cost little
 *   2   all, and the default
 *   3   all, more than once where that finds more
 *
 * One application of one pass to one function or item is counted, so that `--opt-bisect=N` can find the
 * application that breaks a program: it is the last that runs. */
#ifndef PASSES_OPTIMISE_H
#define PASSES_OPTIMISE_H

#include "types/core/core.h"

struct PassCtx;
struct Pass;
typedef VEC(const struct Pass *) PassVec;

typedef struct OptOptions {
    int level;
    bool at_once;    /* before code first runs; otherwise when it has run often enough to pay */
    bool as_written; /* only what the prelude and the library hold */
    const char *const *passes; /* exactly these, in this order; NULL: those of the level */
    uint32_t npasses;
    const char *const *without; /* never these */
    uint32_t nwithout;
    const char *print_after; /* the pass after which each function or item is printed, or NULL */
    bool bisects;
    uint64_t bisect; /* bisects: the number of the last application that runs */
} OptOptions;

/* The default: all passes, when code has run hot. */
void opt_options_init(OptOptions *options);
/* The first name among those of the options that no pass has, or NULL. */
const char *opt_unknown_pass(const OptOptions *options);
/* Whether any pass would run. */
bool opt_is_on(const OptOptions *options);

/* Adds the passes that code goes through, in their order: those that are named, or those of the level. */
void opt_passes(const OptOptions *options, PassVec *out);

/* What the code of an optimised function was made of besides itself: when one of these has another value,
 * the code is no longer right. */
typedef struct Dependency {
    Global *global;
    const Expr *value;
    uint32_t values; /* of a `let`: Global.values */
} Dependency;
typedef VEC(Dependency) DependencyVec;
bool dependencies_hold(const DependencyVec *deps);

/* e after the passes. name: of the function, for messages; may be NULL. given: variables that are bound
 * around e, or NULL. deps: gets what the result depends on. */
Expr *optimise(struct PassCtx *ctx, Expr *e, const Symbol *name, const VarVec *given,
               DependencyVec *deps);
/* The same by these passes in the place of those that the options ask for. */
Expr *optimise_by(struct PassCtx *ctx, const PassVec *passes, Expr *e, const Symbol *name,
                  const VarVec *given, DependencyVec *deps);
/* As optimise, of what is to be differentiated: without passes that make one value of several, since cotangents are added
 * up for each. derives: derivatives in it become code. */
Expr *optimise_source(struct PassCtx *ctx, Expr *e, const Symbol *name, const VarVec *given,
                      DependencyVec *deps, bool derives);

#endif
