/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the evaluator that the prelude declares (`operator @show : … from "builtin"`) or the
 * derivative transformation emits (EXPR_BUILTIN `ad.…`). One line each in types/core/builtin.def
 * and ad.def. */
#ifndef EVAL_BUILTIN_H
#define EVAL_BUILTIN_H

#include "eval/interp.h"

typedef struct BuiltinCall {
    Interp *in;
    Span span;
    const Value *args;
    uint32_t n;
    Type *type;     /* of the result, as inferred; may be open, or NULL */
    uint64_t dying; /* its arguments that nothing else reads: eval/own.h */
} BuiltinCall;

/* False after a diagnostic (builtin_fail) or when interrupted. A builtin does not call back into the program, but for
 * vmap.rows, vmap.plan and vmap.has_value (eval/rows.c). */
typedef bool (*BuiltinFn)(const BuiltinCall *call, Value *out);
typedef struct Builtin {
    const char *name;
    int nargs; /* -1: any */
    BuiltinFn fn;
} Builtin;

/* Ctrl-C came: the builtin ends soon and returns false, without a diagnostic. */
static inline bool builtin_interrupted(const BuiltinCall *call) {
    return *interp_interrupt_flag(call->in);
}

const Builtin *builtin_find(const Symbol *name);
Diag *builtin_fail(const BuiltinCall *call, DiagCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
uint64_t interp_begin_level(Interp *in); /* begins a derivative and gives its number */
/* A run of what `checkpoint` was given, and what held before it. */
typedef struct Seal {
    uint64_t level, sealed, again;
} Seal;
/* From here on references made before cannot be written. first: of the run of which this is a repetition, which cannot
 * read those that were written since; or NULL. */
Seal interp_seal(Interp *in, const Seal *first);
void interp_unseal(Interp *in, const Seal *seal);
void interp_end_level(Interp *in, uint64_t level); /* that grad has its result. Writes are scanned
                                                      for active values only while one runs; a new
                                                      top-level evaluation ends all */

#endif
