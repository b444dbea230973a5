/* SPDX-License-Identifier: Apache-2.0 */
/* `--verify-types`: while a program runs, every value is compared with the type that inference gave
 * its place. What differs is a mistake of ours, since a program that checks cannot make one: it is
 * reported as a bug and ends the process with BUG_STATUS_MISMATCH.
 *
 * Compared are parameters and captured variables when a function begins, variables of `let` and of
 * patterns, the values of all expressions and so the results of calls and operators, and globals when
 * they are set. Without the option no such instruction is made, and nothing else costs anything. The
 * reference evaluator (eval/reference/) compares nothing.
 *
 * Of one value VERIFY_PARTS parts are compared, those nearest to its root first (a tensor is one
 * part); a reference is looked into once. What lies deeper is compared when the program takes it
 * apart. Fused operators are run one by one, so that each has a value.
 *
 * Note [Open types when running]. The type of a place may have variables, declared parameters and
 * unknown sizes in it. What they are in one activation is noted when a value first tells, and each
 * later value must agree: a dim variable has one size, a dtype variable one dtype, a shape variable
 * one shape, and a type variable tensors of one dtype, or data of one declaration, tuples of one
 * length, functions … Those of an enclosing function are noted in its activation, which a closure
 * captures as its last variable. Not compared are
 *
 *     sizes that are open in elements of data, which may be `?`, each its own (Note [Each its own size]
 *     in types/solve/unknown.c), and for the same reason sizes inside of what a type variable stands for
 *     functions, beyond the number of their parameters
 *     D(T) while T is open
 *     open parts in the code of derivatives, into which a rule is expanded once for each call with the
 *     one set of variables that it was checked with; nor the rank of a shape that begins with one */
#ifndef EVAL_VERIFY_H
#define EVAL_VERIFY_H

#include "eval/resolve.h"

enum { VERIFY_PARTS = 16 };

/* While code is made; all do nothing without the option. Begins a function: its parameters and what it
 * captures are bound. */
void verify_begin(Resolver *r);
/* The value of operand `at` is compared with a type, for a variable called `name` (NULL: the value of
 * `origin`). */
void verify_operand(Resolver *r, Expr *origin, int32_t at, Type *type, const Symbol *name);
/* Whether the sizes of a `let`'s variable are checked at once: its type is not known to hold before. */
bool verify_waits_for_checks(const Expr *let);
/* What a closure made here captures beside its variables. */
int32_t verify_activation(const Resolver *r);

/* While it runs: the instruction pc, whose activation's notes are at `notes`. */
void verify_run(const Code *code, const Instr *pc, Value *notes, Value v);
/* The value of a global. */
void verify_global(Interp *in, const Global *g, Value v);

#endif
