/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives as code (DESIGN-ENGINE, "Derivatives are code"). For reverse mode two ordinary functions are made of a
 * function f:
 *
 *   f_fwd : (args) -> (result, saved …)                the frame: the result and what the way back reads
 *   f_bwd : (frame, cotangent, accumulators) -> accumulators
 *
 * Values stay plain; there are no duals, no references, no closures. For example
 *
 *   def product(t) { match (t) { Leaf(x) => x * x, Node(l, r) => product(l) * product(r) } }
 *
 *   product_fwd(t)       match (t) { Leaf(x) => { let v = x * x; (v, 0, x) },
 *                                    Node(l, r) => { let F = product_fwd(l); let v = F.0;
 *                                                    let G = product_fwd(r); let w = G.0;
 *                                                    (v * w, 1, v, w, F, G) } }
 *   product_bwd(T, ct)   if T.1 == 0 { let x = T.2; Leaf(ct * x + ct * x) }
 *                        else { let r = product_bwd(T.5, ct * T.2);
 *                               let l = product_bwd(T.4, ct * T.3); Node(l, r) }
 *
 * An *accumulator* is the cotangent so far: () while nothing was added (so a part that is never read costs nothing),
 * else a tensor, or a tuple or constructor of accumulators in the form of the value. They are values that are handed
 * on: the way back of a call takes the accumulators of its arguments and gives them back.
 *
 * For forward mode (`jvp`) one function is made, of the same steps: f_fwd takes the tangents of the active arguments
 * behind the arguments and gives (result, its tangent). tangent.c tells of it.
 *
 * Note [Places]. Fig. 4.1 gives each active value one cell, and whoever holds the value adds to it, in reverse order
 * of evaluation. Since addition of floats is not associative, accumulators must be added to in that very order. So
 * variables that name one value share one Place: `let y = x`, a projection of a tuple and the variables of a pattern
 * are found where the function is read (read.c), and using a whole adds to its parts. A tensor that is put into a tuple
 * or data has a cell of its own there, on every engine: Note [Own cells] in passes/cells.h. A
 * value gets a second name in two other ways: as the result of a branch or function, and as the parameter of a call. A
 * result may be a variable only where the accumulator of that variable is still absent (its cotangent is moved there);
 * a parameter is *owned* where that is so, and else *shared*: its accumulator is handed through, once where a call is given
 * one value several times (twice.c). Where neither holds (`if (c) { x } else { y }` and later x again) the frame tells which value
 * the result is: Note [Results with two names] in alias.c. Where no frame can tell it, as of a list and what a recursion finds in
 * it, accumulators are cells: Note [Mirrors] in mirror.c.
 *
 * Note [Loops]. A self call in tail position keeps no frame on a stack: the forward function takes the frames so far
 * (k), a tail call goes on with (k, site, saved …), and the way back pops them in a loop that is a tail call itself. A
 * million iterations take constant stack.
 *
 * Note [Frames]. Who goes back through a function does so once for each time that it went forward, and nothing else reads
 * the frames. So they are given back as they are taken apart (Fn.frames), and the next ones take their place: they
 * stay in the cache, and the collector has no work with them. The value of a call stands first in its frame, where it is
 * read before the way back begins, and no two frames may become one tuple (passes/cse.c). A tangent reads a frame where the
 * way back does, and beside it the tuple of its tangents, which is given back there, too. Not so where the way back is a
 * function that is gone back through once more: there its frames are values like any other. Where nothing is saved, as by
 * `foldl(fn (acc, x) { Cons(x, acc) }, …)`, k is the number of steps. What each step of a loop, or each call of a
 * function by itself, hands on as it is goes beside the frames (keep_constants), which hold no value that is used
 * elsewhere then. A part of a tensor that the way back reads anyway is read again there: it is in no frame. The way forth of
 * a loop that is gone back through in turn takes the frames that it makes for its own (chain.c).
 *
 * Note [Replays]. What the frames of a sum over a tree would hold, the tree tells: which arm was taken, and the variables of
 * its pattern. Such a function is its own way forth, and its way back takes the arguments in place of a frame and runs the
 * function again up to each return, as far as the way back from there reads it:
 *
 *   def total(t, a) { match (t) { Leaf(x) => x * a, Node(l, r) => total(l, a) + total(r, a) } }
 *
 *   total_bwd(ct, acc, t, a)   match (t) { Leaf(x) => { let ct_1 = ct * a; (Leaf(ct_1), acc + ct * x) },
 *                                          Node(l, r) => { … total_bwd(ct, acc, r, a) … } }
 *
 * Frames are made where that is not so: where the value of a call is read, where more than a few operators on scalars would
 * run again, and where the arguments would keep alive what no frame holds: a field that may be large and is not read. What
 * runs again reads no reference, so it gives what it gave and raises no error. Taken are functions that call themselves
 * other than by loops, whose frames tell the way from the end, and of the others, whose frames are gone once they are
 * inlined, those of which nothing runs again. A function that `checkpoint` was given runs again as a whole, and its frames
 * are made then. replay.c tells which instances these are.
 *
 * Note [Instances]. A function is taken with what is known of the call: which of its parameters are active, which are
 * shared, and which function each function parameter is (with what that one captured), so `foldl(fn (a, x) { a * x *
 * w }, …)` is first-order: the accumulator of w goes through foldl to the literal. Instances are found on demand and
 * made again until nothing changes: what is saved, what is shared and which accumulators may be absent. An instance has a
 * way back for each of what is known of cotangents and accumulators: Note [Ways back for what is known] in backs.c.
 *
 * A derivative inside is made first, and what it became is read as any code: Note [Derivatives inside] in nested.c.
 *
 * A call of what `checkpoint` gave runs its function again on the way back, one of what `custom_grad` gave calls the
 * derivative that was written (own.c).
 *
 * A function that is in data, that a branch or call gives, or that is handed on through a recursion is one of those that
 * the program holds, or that are in the value of a top-level `let` or in data that was captured: Note [Functions as data] in
 * functions.c.
 *
 * A reference that is only read and written is the value that it holds: Note [References as values] in references.c.
 *
 * What is not taken keeps the twins (Note [Twins] in passes/grad.h), decided before anything runs: active values in
 * references that are in data, functions that come in through a parameter or in a reference. */
#ifndef PASSES_REVERSE_H
#define PASSES_REVERSE_H

#include "passes/pass.h"

/* A function in the value of a `let`: Note [Functions of values] in functions.c. */
typedef struct HeldFunction {
    Expr *literal; /* of its closure, which captured what is free in it, in that order */
    uint32_t
        self; /* the number of the captured variable that is the function itself, or as many as there are */
    const Op *op; /* it stands for this operator, and the literal is of any type; or NULL */
    Type *type;   /* where it is in the value, as far as that is known; or NULL */
    uint32_t ncaptured;
    bool is_known; /* it is the value, or one that such a function captured */
} HeldFunction;
typedef struct HeldFunctions {
    VEC(HeldFunction) all;
    struct Known *
        whole; /* the value, where that is a function which is known with those that it captured; or NULL */
} HeldFunctions;

typedef struct ReverseFamily ReverseFamily;
typedef struct ReverseCode {
    Expr *
        fn; /* fn (x1, …, xn) { … }, of vjp with the cotangent last, of jvp with the tangents last; free: `of`.
                        NULL: not taken */
    Var *of;             /* the function that is differentiated, a closure of `source` */
    struct Known *given; /* which functions that closure captured; NULL: any */
    const char *why;     /* it was not taken, in words */
    bool
        lacks_function; /* why: it may be taken where it is known which functions the closure captured */
    bool tried_all; /* why: in each way that a function is prepared */
    bool merges;
    uint32_t rounds; /* in which its functions were made */
    GradKind kind;
    Expr *source;
    DependencyVec uses;    /* what it was made from */
    ReverseFamily *family; /* this one keeps the others that were made of `source` */
} ReverseCode;

/* Whether a value of that type may be a function, or hold one. */
bool type_may_be_function(Type *t);
/* fn (x1, …) { op(x1, …) } of an operator that is given as a value; NULL where its arguments are no fixed number. */
Expr *function_of_op(Expr *e);
/* Whether a function, or a definition that it mentions, and so on, holds such an expression. known: EXPR_FN -> what was found of
 * it. */
bool code_leads_to(Map *known, Expr *fn, bool (*is)(const Expr *e));
/* Whether a function may call what `vmap` gives, by whatever way. */
bool leads_to_rows(Map *known, Expr *fn);
/* A function literal of which it is known which functions its closure captured. captured has one entry for each of its
 * free variables, in their order (expr_free_vars): NULL where the value is no function that was written down. self: the
 * number of the variable that is the function itself, or one that none has. */
struct Known *reverse_known(Expr *fn, struct Known *const *captured, uint32_t self);
/* Adds what the data holds that the closure captured. */
void reverse_known_hold(struct Known *k, const HeldFunctions *held);
/* Whether two such literals are the same with the same functions captured. NULL: nothing is known. */
bool reverse_known_is(const struct Known *a, const struct Known *b);
/* The derivative (GRAD_GRAD, GRAD_VJP, GRAD_JVP or GRAD_DERIV) of a function literal, whose captured variables are
 * constants. merges: what is made is not differentiated backwards (Note [Merging] in merge.c). given: the functions
 * that the closure of `source` captured, where the derivative is made for them alone; or NULL. */
ReverseCode *reverse_derive(PassCtx *ctx, GradKind kind, bool merges, Expr *source,
                            struct Known *given);
/* The same, made once as long as nothing it was made from changes, for the run and for the passes, and while somebody holds one
 * of its family. */
ReverseCode *reverse_get(PassCtx *ctx, GradKind kind, bool merges, Expr *source,
                         struct Known *given);
/* Whether no definition that it was made from has changed since. */
bool reverse_is_current(const ReverseCode *code);

#endif
