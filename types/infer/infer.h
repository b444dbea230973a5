/* SPDX-License-Identifier: Apache-2.0 */
/* Inference: syntax to typed core.
 *
 * infer_module checks the items of one source in order of dependency (mutually recursive defs
 * together; a fully annotated def is used at its annotated type everywhere) and returns them as
 * core items in source order, ready to run. Nothing is bound in the Env when there was an error,
 * except that at the prompt, item by item, what checked is kept. A definition is inferred once. */
#ifndef TYPES_INFER_INFER_H
#define TYPES_INFER_INFER_H

#include "types/core/env.h"

typedef enum CoreItemKind {
    CORE_DEF,      /* global: nothing to run; its value is an EXPR_FN */
    CORE_LET,      /* run global->value, store it in the global; if that fails, env_restore */
    CORE_EXPR,     /* run expr; show it when `shown` */
    CORE_TYPE,     /* decl */
    CORE_OPERATOR, /* op: bind the foreign symbol now */
    CORE_RULE,     /* a derivative, tangent or no_derivative: already in the Env */
    CORE_IMPORT,   /* the caller already ran it through env hooks; nothing to do */
} CoreItemKind;

typedef struct CoreItem {
    CoreItemKind kind;
    Item *item;
    Global *global;
    Global *before; /* LET: what the name meant until now, if it was another */
    Global *was;    /* LET: a copy of what `global` was until now, if it took the same slot */
    Expr *expr;
    TypeDecl *decl;
    const Op *op;
    Scheme *scheme; /* EXPR: the type of the value, for showing */
    bool shown;
} CoreItem;
typedef VEC(CoreItem) CoreItemVec;

typedef enum InferMode { INFER_FILE, INFER_PROMPT, INFER_CHECK_ONLY } InferMode;
bool infer_module(Env *env, const Module *module, InferMode mode, Diags *diags, CoreItemVec *out);

/* The operator of which TVM's dyn.NAME is the form with attributes among its arguments, or NULL (infer/dyn.c). */
const Op *infer_find_dyn(const Symbol *name);
/* The arguments of dyn.OP in TVM's order, those that are attributes by the attribute's name: "data newshape"; or NULL. */
const char *infer_dyn_form(const char *op);

/* The parameters of a definition, or of a function that a `let` of a file binds; else NULL. */
const AstFn *infer_parameters(const Global *global);

/* `who(x, rate)`: the parameters as a call gives them, `_` for one that a pattern takes apart. */
const char *infer_call_text(const AstFn *fn, const char *who);

/* `:type e`: the scheme without evaluating; NULL after diagnostics. */
Scheme *infer_type_of(Env *env, Ast *expr, Diags *diags);

/* The attributes of an operator's call for its relation: those of `index(x, (1, 3), spec=":3")` with the integers. */
const Attrs *infer_index_attrs(const Expr *call);

/* Items to run again-check after a redefinition are handled inside infer_module; the globals whose
 * re-check failed are reported there and marked broken. */

/* The name of a CORE_LET that has not run means what it meant before, and what mentions it is checked
 * again. */
void env_restore(Env *env, const CoreItem *item, Diags *diags);

#endif
