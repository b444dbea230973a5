/* SPDX-License-Identifier: Apache-2.0 */
/* What a session has bound: globals, types, constructors, derivative rules, modules. Inference binds and
 * finds here; passes and evaluators find. */
#ifndef TYPES_CORE_ENV_H
#define TYPES_CORE_ENV_H

#include "parser/ast.h"
#include "types/core/core.h"
#include "types/op.h"

typedef struct Env Env;

/* A derivative rule as checked: a function of the operator's arguments, then `out`, then the
 * cotangents (or tangents); attributes of the operator stand in it as ATTR_REF. */
typedef enum RuleKind { RULE_DERIVATIVE, RULE_TANGENT, RULE_NONE } RuleKind;
typedef struct Rule {
    RuleKind kind;
    const Op *op;
    Expr *fn; /* EXPR_FN; NULL for RULE_NONE */
    Span span;
} Rule;

/* What is known of the tensor in a file before it is read. A size that is not known is -1, and so is the
 * rank. is_text: its numbers are read as whichever dtype is asked for, and one row or column as a vector. */
typedef struct FileHeader {
    bool has_dtype, is_text, missing; /* missing: there is no file */
    DType dtype;
    int rank;
    int64_t shape[TENSOR_MAX_RANK];
} FileHeader;

/* What inference asks of the session. */
typedef struct EnvHooks {
    void *ctx;
    /* Reads, checks and runs the module of an import item (once a session); its exported names are
     * found by env_find_export. False after a diagnostic. */
    bool (*import)(void *ctx, Env *env, const Item *item, Diags *diags);
    /* The prelude is read item by item, when a name is first asked for (repl/prelude.c): binds what
     * the prelude calls `name` (a global), or the rules of the operator called so. May be NULL. */
    void (*load_global)(void *ctx, const Symbol *name);
    void (*load_rules)(void *ctx, const Symbol *op);
    void (*each_name)(void *ctx, SymbolVec *out); /* of the prelude's globals, loaded or not */
    /* From here on (begin) modules are imported to see whether a text would check: they are not run, and
     * forgotten at the end. May be NULL. */
    void (*trial)(void *ctx, bool begin);
    void (*each_module)(void *ctx,
                        SymbolVec *out); /* that an import without a path finds. May be NULL */
    /* The module of the library that has this name (`optim` for `optim.sgd` and for `sgd`), or NULL. May be
     * NULL itself. */
    const char *(*find_module)(void *ctx, const Symbol *name);
    /* Reads the header of the file that a literal path names, in the program of `source`. False where nothing
     * is known, or the program may not look. May be NULL. */
    bool (*read_header)(void *ctx, const Source *source, const char *path, FileHeader *out);
} EnvHooks;

Env *env_new(const EnvHooks *hooks);
/* While the prelude is read: what is bound goes to the prelude's layer. What was being filled
 * before is given back by env_leave_prelude. */
struct Namespace *env_enter_prelude(Env *env);
void env_leave_prelude(Env *env, struct Namespace *before);
/* The types and constructors that the namespace being filled has, and putting them back: after memory ran out in
 * the middle of a declaration. */
struct Namespace *env_copy_types(const Env *env);
void env_put_types_back(Env *env, const struct Namespace *copy);

/* The work a session's checks did so far: for tests, that it is linear and done once. */
typedef struct InferCounts {
    uint64_t definitions; /* bodies of `def` inferred */
    uint64_t again;       /* of them, for a redefinition */
    uint64_t tried;       /* items checked again to try a change that would mend a mistake */
    uint64_t runs, steps; /* of the solver (SolverCounts) */
} InferCounts;
InferCounts env_counts(const Env *env);
/* What is entered or run from here on has a budget of its own for looking for suggestions
 * (base/budget.h). */
void env_begin_run(Env *env);

/* Names, as LANGUAGE §1 resolves them. */
typedef enum BindingKind {
    BIND_NONE,
    BIND_GLOBAL,
    BIND_CTOR,
    BIND_OP,
    BIND_TYPE,
    BIND_MODULE
} BindingKind;
typedef struct Binding {
    BindingKind kind;
    Global *global;
    Ctor *ctor;
    const Op *op;
    TypeDecl *decl;
} Binding;
Binding env_find(Env *env, const Symbol *name, Sigil sigil);
Global *env_find_loaded(Env *env, const Symbol *name); /* without asking the prelude's hook */
TypeDecl *env_find_type(Env *env, const Symbol *name);
TypeDecl *env_prelude_type(const Env *env, const char *name); /* NULL before it is declared */
Ctor *env_prelude_ctor(const Env *env, const char *name);
/* What the prelude binds, whatever hides it; NULL without a prelude. */
Global *env_prelude_global(Env *env, const Symbol *name);
/* All names visible at the prompt, sorted, for completion and `:browse`. */
void env_each_name(Env *env, SymbolVec *out);
void env_bind_global(Env *env, Global *g);
void env_bind_type(Env *env,
                   TypeDecl *decl); /* with its constructors; supersedes one of its name */
void env_bind_rule(Env *env, const Rule *rule);
/* `import m;` `import m as n;` `import m (a, b);`: what a finished module offers. A module is known
 * by its name, or by the path of its import item (the session gives env_open_module an item whose
 * path is the one it began the module with). Modules nest while they are read. The Env remembers
 * what was begun: `here` is left as found when a module's check failed and env_end_module is
 * called all the same. */
void env_begin_module(Env *env,
                      const Symbol *module); /* names bound from here on are module.name */
void env_end_module(Env *env);
bool env_open_module(Env *env, const Item *import, Diags *diags);

const Rule *env_find_rule(Env *env, const Op *op, RuleKind kind); /* NULL when there is none */

/* The residual run-time checks of what was just inferred, for `relay check --residual`. */
typedef struct ResidualInfo {
    Span span;
    const char *text;
    const char *op, *arg;     /* NULL: none */
    int axis;                 /* -1: none alone */
    Span inner;               /* where in the generalised definition that is called there */
    const Symbol *inner_name; /* the definition; NULL when there is none */
} ResidualInfo;
typedef VEC(ResidualInfo) ResidualVec;
const ResidualVec *env_residuals(Env *env);
void env_list_checks(Env *env, bool on); /* from here on: what operators ask of sizes, too */

#endif
