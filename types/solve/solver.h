/* SPDX-License-Identifier: Apache-2.0 */
/* Unification, and type relations solved by propagation to a fixed point.
 *
 * A relation is data: a RelDef with its argument types, attributes and place. It is posted to the
 * solver, runs once, and runs again only when one of the variables it watches learned something
 * (the bipartite graph of thesis §3.3: variables hold their watchers, relations their variables). */
#ifndef TYPES_SOLVE_SOLVER_H
#define TYPES_SOLVE_SOLVER_H

#include "types/solve/attrs.h"
#include "types/type/dim.h"
#include "types/type/type.h"

typedef struct Solver Solver;

typedef enum RelStatus {
    REL_WAIT, /* not enough known (whatever it could determine has been unified); run me again */
    REL_DONE, /* determined; nothing more can come of it */
    REL_FAIL, /* cannot hold; a diagnostic was reported */
} RelStatus;

typedef struct RelDef {
    const char *name; /* "Broadcast", "Dense"; as it is written in a `where` */
    RelStatus (*relate)(Solver *s, Relation *r);
    /* How many arguments; -1 when it varies. The last is the result. */
    int nargs;
    bool implicit; /* left out when a scheme is printed: Num */
} RelDef;

struct Relation {
    const RelDef *def;
    uint32_t nargs;
    Type **args;
    const Attrs *attrs;         /* NULL when it has none */
    const struct Op *op;        /* the operator it checks, or NULL */
    Span span;                  /* the call */
    const Span *arg_spans;      /* nargs - 1 of them, or NULL */
    const struct Expr *expr;    /* the call in the core, or NULL */
    const struct Var *read_var; /* Field: the variable whose field is read, or NULL */
    struct Expr *instance; /* of an instantiated scheme's: the use of the definition, or NULL */
    int level;
    uint32_t body; /* the function in which it was posted, or 0: Body.number */
    RelStatus status;
    bool queued;
    bool called;      /* made by a scheme whose operators are listed by themselves (inside.c) */
    bool several;     /* of arguments that several values have the type of, as in map(f, xs) */
    bool probed;      /* solver_probe has seen its ranks */
    bool shared;      /* Field, Bang: stands for several reads (Note [One read, one size]) */
    uint32_t runs;    /* for tests: work is linear */
    const void *data; /* never changed; kept when a scheme is instantiated: the Symbol of
                                 Field, the index of Proj and Index */
    Span inner;       /* of an instantiated scheme's: where in the definition it arose */
    const Span *inner_spans;  /* arg_spans there, or NULL */
    const Symbol *inner_name; /* the definition, or NULL */
    Type **watched;           /* the solver's: variables that have it as a watcher */
    uint32_t nwatched, cap_watched;
};

/* How two sizes not known equal are treated by unification: LANGUAGE §4 "Any" and DESIGN-AD A.2.
 * A residual check is added to the solver's list and becomes a run-time check. */
typedef struct Residual {
    Type *a, *b; /* dims or shapes that must be equal when running */
    Span span;
    const char *what; /* "axis 1 of argument `weight` of nn.dense" */
    const char *text; /* what is asked, where it is not that a equals b: then a, b, what are NULL */
    const struct Op *op;    /* whose relation asks, or NULL */
    const char *arg;        /* of its arguments, by name; NULL when it is none */
    int axis;               /* -1: none alone */
    struct Expr *of_result; /* the size asked of the result of this call or function is what a or b
                          must be: nobody else compares it (infer/settle.c); else NULL */
    Span inner; /* of a relation of a generalised definition: where in it; span is the call */
    const Symbol *inner_name; /* the definition, or NULL */
    bool unlisted;            /* said otherwise, operator by operator */
} Residual;

Solver *solver_new(Diags *diags);

/* The declared type whose values all have these fields, when it is the only one in sight: what is
 * read by these names, and of which nothing else is known when it would be generalised, is of it
 * (Note [A field decides] in scheme.c). NULL: none, or several. */
typedef TypeDecl *(*FindRecord)(void *ctx, const Symbol *const *fields, uint32_t nfields);
void solver_set_records(Solver *s, FindRecord find, void *ctx);
Diags *solver_diags(Solver *s);

/* ---- variables and levels -------------------------------------------------------------------- */

Type *solver_var(Solver *s, Kind kind); /* at the current level */
Type *solver_var_named(Solver *s, Kind kind, const Symbol *hint);
Type *solver_tensor_var(Solver *s);                           /* Tensor[s, b] of fresh s and b */
Type *solver_rigid(Solver *s, Kind kind, const Symbol *name); /* a declared parameter */
int solver_level(const Solver *s);
void solver_enter(Solver *s); /* into the right side of a let */
void solver_leave(Solver *s);
/* Into the body of a function, the types of whose parameters have ids from `params` to `mark`. */
void solver_enter_body(Solver *s, uint32_t params, uint32_t mark);
void solver_leave_body(Solver *s);

/* ---- unification ----------------------------------------------------------------------------- */

/* Makes a and b equal. False after a mismatch, of which solver_mismatch tells; nothing is reported:
 * the caller knows the words. Partial links stay. */
bool solver_unify(Solver *s, Type *a, Type *b);

/* As solver_unify, but `from` flows to where `to` is expected (sub-shaping): a known size goes into
 * `?`; `?` into a known size adds a residual check, for tensors and tuples of them only. */
bool solver_flow(Solver *s, Type *from, Type *to, Span span, const char *what);

/* What flows from here on is given to a function in its own body, or is not. */
void solver_set_recursive(Solver *s, bool on);

/* The type of what is either a or b: arms of `if` and `match`, elements of a list. `?` where one
 * of them has an unknown (each: elements, which have each their own), else they are unified. NULL
 * after a mismatch. */
Type *type_join(Solver *s, Type *a, Type *b, bool each);

/* A variable for a parameter of a data type, of which a value is made: what its fields are given is
 * joined, as the elements of a list are. */
Type *solver_var_of_data(Solver *s, TypeDecl *decl, uint32_t param);

/* Each unknown replaced by a fresh one: of what is read from a reference or a field, and of the
 * type of a monomorphic function at each call. (scheme_instantiate does so itself.) unknown.c */
Type *solver_open(Solver *s, Type *t);

/* Note [Each its own size] in unknown.c. The type of a value that is read: what is `each` is its own. */
Type *solver_open_each(Type *t);
bool solver_has_each(Type *t);
/* What a function of which nothing is known takes, where it is given this. */
Type *solver_given(Solver *s, const Type *fn, Type *arg);
/* The type of a function that takes any size there, as one that is generalised over it. */
Type *solver_open_parameters(Solver *s, Type *fn);
/* The type of a function's results: the unknowns since `id` came to be in its body. */
Type *solver_each_since(Type *t, uint32_t id);

/* A function's type for one call: an unknown that its parameters have in several places, as in
 * fn(Tensor[(?1,), b], Tensor[(?1,), b]), is an undetermined size that the arguments decide. */
Type *solver_open_call(Solver *s, Type *fn);

/* The place and words used where unification itself must make a residual check or an equation. */
void solver_at(Solver *s, Span span, const char *what);

/* A dtype must be one of a set. False: it cannot be, or is declared without that class. */
bool solver_restrict(Solver *s, Type *dtype, DTypeSet set);

void solver_add_residual(Solver *s, Type *a, Type *b, Span span, const char *what);
void solver_drop_residuals(Solver *s, size_t keep); /* forget all after the first `keep` */

/* ---- effects: sub ≤ sup; unifying effects never fails ---------------------------------------- */

/* Whoever has effect `sup` does at least `sub`: of a body's calls in the effect of its arrow. */
void solver_effect_include(Solver *s, Type *sub, Type *sup);
/* Whether running this may make a reference: then a `let` of it does not generalise. An effect
 * of an outer level is not known yet and counts. */
bool solver_effect_allocates(Solver *s, Type *effect);

typedef enum MismatchKind {
    MISMATCH_HEAD, /* different kinds of types: a function and a tensor */
    MISMATCH_DTYPE,
    MISMATCH_RANK,
    MISMATCH_DIM /* axis */,
    MISMATCH_ARITY,
    MISMATCH_OCCURS,
    MISMATCH_RIGID, /* a declared parameter against something else */
    MISMATCH_KIND,
    MISMATCH_DEPTH, /* no difference: the type nests more than TYPE_MAX_DEPTH deep */
} MismatchKind;
enum { TYPE_MAX_DEPTH = 1000 };
typedef struct Mismatch {
    MismatchKind kind;
    Type *a, *b;      /* the innermost pair that differs */
    int axis;         /* MISMATCH_DIM */
    const char *path; /* "0.w", "parameter 2", or "" */
    DTypeSet dtypes;  /* MISMATCH_DTYPE: the class the other was restricted to, or 0 */
} Mismatch;
const Mismatch *solver_mismatch(const Solver *s);

/* Two sizes that an operator needs to be equal, as a diagnostic says; diag is NULL for none. */
typedef struct SizeClash {
    const Diag *diag;
    Type *a, *b;
    bool or_one; /* a size of 1 would do too */
} SizeClash;
const SizeClash *solver_clash(const Solver *s); /* the last that was reported */

/* ---- relations ------------------------------------------------------------------------------- */

Relation *solver_post(Solver *s, const RelDef *def, Type **args, uint32_t nargs, const Attrs *attrs,
                      Span span);
/* How many relations were posted; those from the from-th on come from this use of a scheme. */
size_t solver_nposted(const Solver *s);
void solver_claim(Solver *s, size_t from, struct Expr *use);
/* Runs what is queued to a fixed point. False when a relation failed (reported). */
bool solver_run(Solver *s);
/* Relations over types not yet known. The index of Index is the constant it was written as, or
 * NULL; args are the tensor or tuple, the integers, the result; attrs those of operator `index`. */
Relation *solver_post_field(Solver *s, Type *record, const Symbol *field, Type *result, Span span);
Relation *solver_post_proj(Solver *s, Type *tuple, int64_t index, Type *result, Span span);
Relation *solver_post_index(Solver *s, Type **args, uint32_t nargs, const Attrs *attrs,
                            const int64_t *index, Span span);
/* Whether classes of declared parameters are inferred (a signature without `where`; Num always is). */
void solver_set_infer_where(Solver *s, bool on);
/* The work done so far, for tests: it is linear. */
typedef struct SolverCounts {
    uint64_t posted; /* relations */
    uint64_t runs;   /* of relations */
    uint64_t steps;  /* nodes of types and edges of the graph looked at */
} SolverCounts;
SolverCounts solver_counts(const Solver *s);
/* What suggestions in the solver's messages draw from. bounded: the steps of the solver do so too, as in
 * the check of an edited text; when the budget is spent nothing is solved any more, every step fails
 * without a message, and what came out so far is of no use. */
void solver_set_budget(Solver *s, Budget *budget, bool bounded);
bool solver_is_spent(Solver *s);
size_t solver_nwaiting(const Solver *s);

/* For relations: report under the operator's name and argument places. The Diag is already
 * reported; the caller may add facts and labels. */
Diag *rel_error(Solver *s, Relation *r, DiagCode code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Labels: the types of the arguments where they stand, here and in the definition it came from. */
void rel_add_places(Diag *d, const Relation *r);
/* A fact with shapes laid out by their axes, `axis` (from the end: -1 is the last) marked. (rel_layout.c) */
void rel_add_aligned(Diag *d, const Relation *r, uint32_t n, Type *const *shapes, int axis,
                     TypeNamer *names);
/* What the operator says of its arguments and what they are, where they clash; and where the clashing
 * sizes came from. For a diagnostic that has its places. s is NULL when running. (rel_layout.c) */
void rel_add_sizes(Solver *s, Diag *d, const Relation *r);
void rel_add_clash(Solver *s, Diag *d, SizeClash clash, TypeNamer *names); /* the latter alone */
/* Unify with a report (R02 or R03 by the mismatch, naming argument `arg`; -1 the result). */
bool rel_unify(Solver *s, Relation *r, int arg, Type *with);
/* Equal dims, or a report that names operator, argument and axis. Undecided: a residual check. */
bool rel_unify_dim(Solver *s, Relation *r, Type *a, Type *b, int arg, int axis);

/* ---- what inference and the relations agree on ----------------------------------------------- */

/* A float literal that is made a `dtype` is one at once, so that it is rounded once: (float64) 0.1; where
 * that is declared, and a float's or another, it is a float64 first, unless some dtype would tell. Nothing
 * for other expressions, and where the dtype is not known. (infer/literal.c) */
void solver_round_once(Solver *s, const struct Expr *e, Type *dtype);

/* The dtype of an unsuffixed literal: a KIND_DTYPE variable at the current level with Float (float
 * text) or Num posted on it, marked weak: solver_default_weak settles it where nothing else did. */
Type *solver_weak_dtype(Solver *s, bool is_float, Span span);

/* Residual checks so far, in order of discovery. */
size_t solver_nresiduals(const Solver *s);
const Residual *solver_residual_at(const Solver *s, size_t i);
const char *residual_text(const Residual *r, TypeNamer *namer); /* "axis 0 of …: ? must equal 4" */
/* For the whole list: operators whose relation is done from here on are kept, and (at the end, when
 * all is known that will be) those whose shape function refuses some of the sizes that are possible
 * are added to the residual checks. */
void solver_list_operators(Solver *s, bool on);
/* Operators whose relation was done before all sizes were known, and are by now, are held against
 * their shape functions. False after a report. */
bool solver_check_early(Solver *s);
void solver_drop_early(Solver *s); /* forgets them: the item has a mistake */
/* Those of a definition, of this use of it (nothing was inferred since), which are held against the
 * sizes of the call as soon as these are known, or after the last argument. */
typedef struct EarlyUse {
    size_t begin, end;
} EarlyUse;
EarlyUse solver_early_of(const Solver *s, Span use);
bool solver_check_use(Solver *s, EarlyUse e, bool last); /* false after a report */
void solver_try_operators(Solver *s);

/* solver_post only queues (solver_run runs), so the caller may still set r->op, r->expr,
 * r->arg_spans and r->data. Arguments and data of the built-in relations:
 *   Num(b) Float(b) Int(b)
 *   Broadcast(a, b, c)      op: the operator; c has the dtype of a and b (compare: bool)
 *   Field, Proj, Index      through solver_post_field, solver_post_proj, solver_post_index only
 *   Bang(a, c)              a is ref(c), or a and c are rank-0 bool
 *   Eq(a, b, c)
 *   Grad(f, g), Vjp(f, g), Jvp(f, g)
 * Effects never make unification fail: pure against allocates gives true; two variables are
 * linked. Inference gives every arrow it makes an effect variable (TY_PURE or TY_ALLOCATES only
 * where that is certain). */
/* A declared `where`: true of the rigid parameters it mentions, until solver_forget(mark). A
 * relation that follows from the facts by propagation and the laws is done; one with the arguments
 * of a fact has its result. solver_mark says how many facts there are. */
size_t solver_mark(const Solver *s);
void solver_assume(Solver *s, const RelDef *def, Type **args, uint32_t nargs, const Attrs *attrs,
                   const void *data, Span span);
void solver_forget(Solver *s, size_t mark);
/* What the relations posted since the last solver_enter determine, by themselves and the laws; then they
 * say no more. False when they cannot hold (reported). */
bool solver_learn(Solver *s);

/* ---- schemes --------------------------------------------------------------------------------- */

/* forall params. type where relations. params are TY_PARAMs. */
typedef struct Scheme {
    uint32_t nparams;
    Type **params;
    Type *type;
    uint32_t nrelations;
    Relation **relations; /* over the params; never run themselves */
    uint32_t nunknowns;   /* unknown sizes (TY_ANY) made by each call: fresh in each instance */
    Type **unknowns;
    uint32_t nouter; /* those of values further out: each is one size, whoever calls */
    Type **outer;
    uint32_t nweak;
    Type **weak;        /* dtype params that came of weak literals (their instances are not weak:
                             an argument settles them) */
    uint32_t ndeclared; /* the first params, as the user declared them, in that order */
    uint32_t nincludes;
    Type **includes;    /* effects: includes[2i] ≤ includes[2i + 1] */
    const Symbol *name; /* of the definition, for messages; may be NULL */
    uint32_t nearly;    /* what inside may refuse sizes that its calls decide, over the params */
    struct Early *early;
    bool *joins;       /* the parameters to whose instances what flows is joined: scheme_joins */
    uint32_t ninside;  /* where checks are listed: operators inside that may leave some to its */
    Relation **inside; /* calls, over the params; never run */
} Scheme;

Scheme *scheme_mono(Type *t);
/* Those of the parameters that are asked for as values and parts of immutable data alone. */
bool *scheme_joins(const Scheme *scheme);
/* Everything of the current level or deeper becomes a parameter, unless `mono`. Relations still
 * waiting whose variables are all generalised go into the scheme; laws simplify them first.
 * Weak literals not tied to a parameter of a function type are defaulted before (float32/int32). */
Scheme *scheme_generalise(Solver *s, Type *t, bool mono);
/* The same for a definition with declared parameters (TY_PARAMs of solver_rigid), which come first
 * in the scheme. has_where: what the body needs of them must follow from the facts assumed, else
 * a diagnostic prints the `where` to add (and NULL). */
Scheme *scheme_generalise_declared(Solver *s, Type *t, Type **declared, uint32_t ndeclared,
                                   bool has_where);
/* Which unknowns of a function's type are its own: those made since `mark` (type_next_id). */
void scheme_note_unknowns(Scheme *scheme, uint32_t mark);
/* Fresh variables for the parameters, relations posted at span. type_args: explicit arguments
 * (NULL entries are inferred), or NULL. out_args, when not NULL, gets the nparams instances. */
Type *scheme_instantiate(Solver *s, const Scheme *scheme, Span span, Type **type_args,
                         uint32_t ntype_args, Type ***out_args);
/* What inside may refuse sizes, in words that are the same for the same operators. */
const char *scheme_early_text(const Scheme *scheme);
/* Leaves those alone that mention one of these params. */
void scheme_restrict_early(Scheme *scheme, const Map *params);
/* Of a group that was generalised as one: what arose within `span` is of the definition `name`. */
void scheme_name_inside(Scheme *scheme, Span span, const Symbol *name);
void scheme_print(Str *out, const Scheme *scheme, TypeNamer *namer);

/* Settles every weak literal variable of the current level or deeper (float32, else int32). */
void solver_default_weak(Solver *s);
void solver_default_weak_but(Solver *s, const Map *kept); /* those variables aside */

extern const RelDef rel_num, rel_float, rel_int,
    rel_bits;                                /* dtype classes: one KIND_DTYPE argument */
DTypeSet rel_dtype_class(const RelDef *def); /* 0: it is no class */
const RelDef *rel_of_dtypes(DTypeSet set);   /* the least class that has all of them, or NULL */
/* The classes live in the variable or parameter itself (var.dtypes, param.dtypes), so a scheme's
 * relations hold none; printing shows Float(b) and Int(b). */
/* (a, b, …, c): tensors of one dtype, c the broadcast of all before it; a set (laws.c). The dtypes
 * are those of r->op, and of all operators where laws.c made several into one. */
extern const RelDef rel_broadcast;
extern const RelDef rel_broadcast_compare; /* the result is bool */
/* Field (a, c), Proj (a, c), Index (a, i…, c): post by solver_post_…. Bang (a, c): `!a`.
 * Eq (a, b, c): `a == b`. Same (a, b): an equation that waits. */
extern const RelDef rel_field, rel_proj, rel_index, rel_bang, rel_equal, rel_same;
extern const RelDef rel_grad, rel_deriv, rel_vjp, rel_jvp; /* (f, g): g is the derivative of f */
extern const RelDef rel_custom_grad, rel_checkpoint;       /* (f, d): d its cotangents; (f) */

const char *dtype_class_name(DTypeSet set);      /* "a float" */
const char *dtype_class_words(DTypeSet set);     /* "floats", "integers", "one of int8, uint8" */
const char *relation_subject(const Relation *r); /* as the program says it: "nn.dense", "+" */
const Symbol *rel_find_nearest(const Symbol *name, Budget *budget); /* a name like it, or NULL */
const RelDef *rel_find(const Symbol *name); /* of those that a `where` may name; or NULL */

#endif
