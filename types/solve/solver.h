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
#include "types/type/place.h"
#include "types/type/type.h"

typedef struct Solver Solver;

typedef enum RelStatus {
    REL_WAIT, /* too little is known; the relation has unified what it could, and runs again */
    REL_DONE, /* the relation holds, and can determine nothing more */
    REL_FAIL, /* the relation cannot hold, and has reported a diagnostic */
} RelStatus;

typedef struct RelDef {
    const char *name; /* "Broadcast", "Dense"; as it is written in a `where` */
    RelStatus (*relate)(Solver *s, Relation *r);
    /* The number of arguments, the last of which is the result; -1 where the number varies. */
    int nargs;
    bool implicit; /* a printed scheme leaves the relation out, as it does Num */
} RelDef;

struct Relation {
    const RelDef *def;
    uint32_t nargs;
    Type **args;
    const Attrs *attrs;         /* or NULL */
    const struct Op *op;        /* the operator it checks, or NULL */
    Span span;                  /* the span of the call */
    const Span *arg_spans;      /* nargs - 1 of them, or NULL */
    const struct Expr *expr;    /* the call in the core, or NULL */
    const struct Var *read_var; /* Field: the variable whose field is read, or NULL */
    struct FnCtx *fn;           /* of a call: the function that it stands in, or NULL, */
    uint32_t time;              /* and when it was made (infer/state.h) */
    struct Expr *instance; /* the use of the definition whose scheme gave this relation, or NULL */
    int level;
    uint32_t body; /* the Body.number of the function in which it was posted, or 0 */
    RelStatus status;
    bool queued;
    bool from_call;     /* comes of a call of a definition whose operators are listed (inside.c) */
    bool takes_several; /* an argument stands for several values, as in map(f, xs) */
    bool probed;        /* solver_probe_ranks has asked about its ranks */
    bool shared;        /* a Field or Bang for several reads (Note [One read, one size]) */
    uint32_t made; /* for a use kept whole, the id that was next when it was posted (whole.c) */
    uint32_t runs; /* tests check that the work is linear */
    /* The Symbol of Field, the index of Proj and Index, the Scheme of a use kept whole. An instance has the same data; nobody changes it. */
    const void *data;
    Span inner;               /* where in the generalised definition the relation arose, or none */
    const Span *inner_spans;  /* the spans of the arguments in that definition, or NULL */
    const Symbol *inner_name; /* the name of that definition, or NULL */
    Type **watched;           /* the variables that have this relation as a watcher */
    uint32_t nwatched, cap_watched;
};

/* Which elements of data a check compares. */
typedef enum Elements {
    ELEMENTS_NONE,
    ELEMENTS_ALL, /* one size may be asked of several of them */
    ELEMENTS_TWO, /* one size is asked of two */
} Elements;

/* A check at run time of two sizes that unification cannot compare (LANGUAGE §4 "Any", DESIGN-AD A.2). */
typedef struct Residual {
    Type *a, *b; /* dims or shapes that must be equal at run time */
    Span span;
    TypePlace place;   /* axis 1 of argument `weight` of nn.dense */
    Elements elements; /* not ELEMENTS_NONE: of elements of data. Then a and b are NULL */
    /* The words of another check that is no equation, or NULL. With words, a and b are NULL. */
    const char *text;
    const struct Op *op; /* the operator whose relation needs the check, or NULL */
    const char *arg;     /* the name of the operator's argument, or NULL */
    int axis;            /* the axis, or -1 where the check is not of one axis */
    /* The call or function whose result must have the size, or NULL. Such a check is made by comparing that
     * result with its type (infer/settle.c). */
    struct Expr *of_result;
    struct FnCtx *fn;         /* where that call stands, */
    uint32_t time;            /* as its relation has it */
    Span inner;               /* where in a generalised definition the check arose, or none */
    const Symbol *inner_name; /* the name of that definition, or NULL */
    bool unlisted;            /* the list has this check operator by operator (inside.c) */
} Residual;

Solver *solver_new(Diags *diags);

/* Finds the only declared type in scope whose values all have these fields (Note [A field decides] in
 * scheme.c). NULL where there is none, or several. */
typedef TypeDecl *(*FindRecord)(void *ctx, const Symbol *const *fields, uint32_t nfields);
void solver_set_records(Solver *s, FindRecord find, void *ctx);
/* Whether the fields that are read of this open type decide its record now, and it is that. */
bool solver_decide_record(Solver *s, Type *value);
Diags *solver_diags(Solver *s);

/* ---- variables and levels -------------------------------------------------------------------- */

Type *solver_var(Solver *s, Kind kind); /* at the current level */
Type *solver_var_named(Solver *s, Kind kind, const Symbol *hint);
Type *solver_tensor_var(Solver *s);                           /* Tensor[s, b] of fresh s and b */
Type *solver_rigid(Solver *s, Kind kind, const Symbol *name); /* a declared parameter */
int solver_level(const Solver *s);
/* Around the right side of a `let`: its variables are one level deeper. */
void solver_enter(Solver *s);
void solver_leave(Solver *s);
/* Around the body of a function. The types of its parameters have ids from `params` to `mark`. */
void solver_enter_body(Solver *s, uint32_t params, uint32_t mark);
void solver_leave_body(Solver *s);

/* ---- unification ----------------------------------------------------------------------------- */

/* Makes a and b equal. False after a mismatch, which solver_mismatch describes and the caller reports.
 * Links that were made before the mismatch stay. */
bool solver_unify(Solver *s, Type *a, Type *b);

/* Lets a value of type `from` flow to where `to` is expected (sub-shaping). A known size may flow into `?`.
 * `?` may flow into a known size with a residual check, in tensors and tuples of them only. */
bool solver_flow(Solver *s, Type *from, Type *to, Span span, TypePlace place);

/* Says whether what flows from here on is an argument of a function that is called in its own body. */
void solver_set_recursive(Solver *s, bool on);
/* What flows from here on is the result of this function, NULL: of none. An unknown that its written type has in a
 * parameter and in the result is the size that it is given, which another size must equal. */
void solver_set_given(Solver *s, Type *fn);

/* The type of a value that is either of type a or of type b, as for the arms of `if` and `match` and the
 * elements of a list. It has `?` where one of them has an unknown; elsewhere the two are unified. each: every
 * value has its own unknown there, as the elements of a list do. NULL after a mismatch. */
Type *type_join(Solver *s, Type *a, Type *b, bool each);

/* Makes a variable for a parameter of a data type of which a value is built. The types that its fields are
 * given are joined, as those of the elements of a list are. */
Type *solver_var_of_data(Solver *s, TypeDecl *decl, uint32_t param);

/* Replaces each unknown by a fresh one, in the type of what is read from a reference or a field, and in the
 * type of a monomorphic function at each call. scheme_instantiate does so itself. (unknown.c) */
Type *solver_open_unknowns(Solver *s, Type *t);

/* The same, where the names of the function's parameters stay (Note [Named parameters]). */
Type *solver_open_each_of(const Type *fn, Type *t);
/* The type with unknowns of its own in place of those that each value has its own of. */
Type *unknowns_rename(Type *t);
/* The type of a value that is read: its `each` unknowns become unknowns of its own (Note [Each its own size]
 * in unknown.c). */
Type *solver_open_each(Type *t);
bool solver_has_each(Type *t);
/* The parameter's type of a function of unknown type, where this argument is given to it. */
Type *solver_make_parameter(Solver *s, const Type *fn, Type *arg);
/* The type of a function whose `each` unknowns in parameters have become undetermined sizes, as if the function
 * were generalised over them. */
Type *solver_open_parameters(Solver *s, Type *fn);
/* The type of a function's results. Unknowns made since `id` arose in its body, so each result has its own. */
Type *solver_make_each_since(Type *t, uint32_t id);

/* A function's type for one call. An unknown that stands in several places of the parameters, as in
 * fn(Tensor[(?1,), b], Tensor[(?1,), b]), becomes an undetermined size that the arguments decide. */
Type *solver_open_call(Solver *s, Type *fn);

/* Sets where the residual checks and equations that unification makes arise. */
void solver_set_place(Solver *s, Span span, TypePlace place);

/* Restricts a dtype to a set. False where no dtype is left, or a declared parameter lacks that class. */
bool solver_restrict(Solver *s, Type *dtype, DTypeSet set);

void solver_add_residual(Solver *s, Type *a, Type *b, Span span, TypePlace place);
/* Adds a check of elements of data, which is no equation of types. */
void solver_list_elements(Solver *s, Elements elements, Span span, TypePlace place);
void solver_drop_residuals(Solver *s, size_t keep); /* drops all after the first `keep` */

/* ---- effects: sub ≤ sup; unifying effects never fails ---------------------------------------- */

/* Includes the effect `sub` in `sup`, as the effect of a call in that of the function around it. */
void solver_effect_include(Solver *s, Type *sub, Type *sup);
/* Whether running this may make a reference. Then a `let` of it does not generalise. An effect of an outer level
 * is not known yet, and is taken to allocate. */
bool solver_effect_allocates(Solver *s, Type *effect);

typedef enum MismatchKind {
    MISMATCH_HEAD, /* types of different forms: a function and a tensor */
    MISMATCH_DTYPE,
    MISMATCH_RANK,
    MISMATCH_DIM, /* the sizes of Mismatch.axis differ */
    MISMATCH_ARITY,
    MISMATCH_OCCURS,
    MISMATCH_RIGID, /* a declared parameter against something else */
    MISMATCH_KIND,
    MISMATCH_DEPTH, /* the type nests more than TYPE_MAX_DEPTH deep; nothing differs */
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
    bool or_one; /* a size of 1 is allowed too */
} SizeClash;
const SizeClash *solver_clash(const Solver *s); /* the last that was reported */

/* ---- relations ------------------------------------------------------------------------------- */

Relation *solver_post(Solver *s, const RelDef *def, Type **args, uint32_t nargs, const Attrs *attrs,
                      Span span);
/* Scalars of one known or open dtype need no relation: the result is one of them, or a bool. False where the
 * operator's relation has to decide, or to say what is wrong. */
bool solver_relate_scalars(Solver *s, const struct Op *op, Type *const *args, uint32_t n,
                           Type **result);
/* The number of posted relations that may still wait, and which use of a scheme those from the from-th on
 * come from. */
size_t solver_nposted(const Solver *s);
void solver_set_instance(Solver *s, size_t from, struct Expr *use);
/* Runs the queued relations to a fixed point. False when a relation failed, which it has reported. */
bool solver_run(Solver *s);
/* Post relations over types that are not known yet. For Index, args are the tensor or tuple, the integers and
 * the result; attrs are those of the operator `index`; index is the integer where it is a constant, or NULL. */
Relation *solver_post_field(Solver *s, Type *record, const Symbol *field, Type *result, Span span);
Relation *solver_post_proj(Solver *s, Type *tuple, int64_t index, Type *result, Span span);
Relation *solver_post_index(Solver *s, Type **args, uint32_t nargs, const Attrs *attrs,
                            const int64_t *index, Span span);
/* Whether t is the result of `==` or `!=` between values of which nothing is known yet: a tensor of bools, or one bool. */
bool solver_is_equality(Type *t);
/* Says whether classes of declared parameters are inferred, as for a signature without `where`. Num always is. */
void solver_set_infer_where(Solver *s, bool on);
/* The work done so far, for tests: it is linear. */
typedef struct SolverCounts {
    uint64_t posted; /* relations that were posted */
    uint64_t runs;   /* runs of relations */
    uint64_t steps;  /* nodes of types, and edges of the graph, that were looked at */
} SolverCounts;
SolverCounts solver_counts(const Solver *s);
/* Sets the budget that suggestions in messages draw from. bounded: the solver's steps draw from it too, as in
 * the check of an edited text. When it is spent, every step fails without a message, and the caller discards
 * what was inferred so far. */
void solver_set_budget(Solver *s, Budget *budget, bool bounded);
bool solver_is_spent(Solver *s);
size_t solver_nwaiting(const Solver *s);

/* Reports under the operator's name, with the places of its arguments. The caller may still add facts and
 * labels to the result. */
Diag *rel_error(Solver *s, Relation *r, DiagCode code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Labels the arguments with their types, at the call and in the definition that the relation came from. */
void rel_add_places(Diag *d, const Relation *r);
/* Adds a fact that shows the shapes one below the other, with `axis` marked (-1 is the last). (rel_layout.c) */
void rel_add_aligned(Diag *d, const Relation *r, uint32_t n, Type *const *shapes, int axis,
                     TypeNamer *names);
/* Adds what the operator needs of its arguments beside what they are, and where the clashing sizes came from.
 * The diagnostic has its labels already. s is NULL at run time. (rel_layout.c) */
void rel_add_sizes(Solver *s, Diag *d, const Relation *r);
void rel_add_clash(Solver *s, Diag *d, SizeClash clash, TypeNamer *names); /* the origins alone */
/* Unifies an argument (-1: the result) with a type. False after a report, R02 or R03 by the mismatch. */
bool rel_unify(Solver *s, Relation *r, int arg, Type *with);
/* Makes two dims equal, with a residual check where that is not decided. False after a report that names the
 * operator, the argument and the axis. */
bool rel_unify_dim(Solver *s, Relation *r, Type *a, Type *b, int arg, int axis);

/* ---- what inference and the relations agree on ----------------------------------------------- */

/* Gives a float literal that is cast to `dtype` that dtype at once, so that `(float64) 0.1` is rounded once.
 * Cast to a declared dtype, which may be no float, the literal becomes a float64, unless some dtype of the class
 * would show the difference. Does nothing for other expressions, or where the dtype is not known. (infer/literal.c) */
void solver_round_once(Solver *s, const struct Expr *e, Type *dtype);

/* Makes the dtype of a literal without suffix: a weak KIND_DTYPE variable of class Float or Num, which
 * solver_default_weak settles where nothing else did. */
Type *solver_weak_dtype(Solver *s, bool is_float, Span span);

/* The residual checks found so far, in the order in which they were found. */
size_t solver_nresiduals(const Solver *s);
const Residual *solver_residual_at(const Solver *s, size_t i);
const char *residual_text(const Residual *r, TypeNamer *namer); /* "axis 0 of …: ? must equal 4" */
/* While on, operators are recorded when their relation is done, for solver_try_operators. */
void solver_list_operators(Solver *s, bool on);
/* Asks the shape functions of operators whose relation was done before their sizes were known. False after a
 * report. */
bool solver_check_early(Solver *s);
void solver_drop_early(Solver *s); /* forgets these operators, after a mistake in the item */
/* The early entries that the latest instantiation, at this use of a definition, added. They are checked against
 * the sizes of the call as soon as these are known, or after the last argument. */
typedef struct EarlyUse {
    size_t begin, end;
} EarlyUse;
EarlyUse solver_find_early(const Solver *s, Span use);
bool solver_check_use(Solver *s, EarlyUse e, bool last); /* false after a report */
/* When no more will be inferred: adds the recorded operators whose shape functions refuse some of the possible
 * sizes to the residual checks. */
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
/* Assumes a relation of a declared `where` as a fact about the rigid parameters, until solver_forget_facts(mark). A
 * relation that follows from the facts by propagation and the laws is done; one with the arguments of a fact has
 * the fact's result. solver_count_facts gives the number of facts. */
size_t solver_count_facts(const Solver *s);
void solver_assume_fact(Solver *s, const RelDef *def, Type **args, uint32_t nargs,
                        const Attrs *attrs, const void *data, Span span);
void solver_forget_facts(Solver *s, size_t mark);
/* Solves the relations posted since the last solver_enter, by propagation and the laws, and then drops them.
 * False after a report that they cannot hold. */
bool solver_learn_relations(Solver *s);

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
    Type **
        sizes; /* for each parameter of the function, the one of `unknowns` that is its value, or NULL */
    uint32_t nouter; /* unknowns of values further out: each is one size for all calls */
    Type **outer;
    uint32_t nweak;
    Type **weak;        /* dtype params that came of weak literals; their instances are not weak */
    uint32_t ndeclared; /* the number of first params that the user declared, in that order */
    uint32_t nincludes;
    Type **includes;      /* effects: includes[2i] ≤ includes[2i + 1] */
    const Symbol *name;   /* the name of the definition, for messages, or NULL */
    uint32_t early_count; /* operators inside that may refuse sizes that calls decide (early.c) */
    struct Early *early;
    bool *joins;       /* for each parameter, whether what flows to its instances is joined */
    uint32_t ninside;  /* operators inside whose checks are listed at the calls (inside.c) */
    Relation **inside; /* over the params; never run */
    uint32_t nopened;  /* how many relations it has after its uses are opened (whole.c) */
    uint32_t
        nshown;   /* where uses of this scheme are kept whole, the number of tensors in its type */
    Type **shown; /* those tensors, the result last */
} Scheme;

Scheme *scheme_mono(Type *t);
/* Whether this shape, a parameter of the scheme, is that of an argument and of a part of one whose size follows from
 * values, as `x[mask]`; or whether such a part of a tensor of this shape has the shape of an argument. */
bool scheme_mixes_parts(const Scheme *scheme, const Type *shape);
/* Whether this shape, a parameter of the scheme, is that of a tensor and of what joins, slices or padding make of it;
 * `joins`: or joins alone. */
bool scheme_resizes(const Scheme *scheme, const Type *shape, bool joins);
/* For each parameter, whether the function takes it as values and as parts of immutable data only. */
bool *scheme_joins(const Scheme *scheme);
/* Makes variables of the current level or deeper the parameters of a scheme, unless `mono`. Waiting relations
 * over them go into the scheme, after the laws have simplified them. Weak literals that no parameter of a
 * function type decides are first given their default dtype, float32 or int32. */
Scheme *scheme_generalise(Solver *s, Type *t, bool mono);
/* Generalises a definition with declared parameters (TY_PARAMs of solver_rigid), which come first in the scheme.
 * has_where: what the body needs of them must follow from the facts. Otherwise a diagnostic prints the `where`
 * to add, and the result is NULL. */
Scheme *scheme_generalise_declared(Solver *s, Type *t, Type **declared, uint32_t ndeclared,
                                   bool has_where);
/* Divides the unknowns of a function's type: those made since `mark` (type_next_id) are its own. */
void scheme_note_unknowns(Scheme *scheme, uint32_t mark);
/* The same scheme with the uses among its relations opened, to be shown; its own uses are not kept whole (whole.c). */
const Scheme *scheme_open_uses(const Scheme *scheme);
/* Makes an instance with fresh variables for the parameters, and posts its relations at span. type_args:
 * explicit arguments (NULL entries are inferred), or NULL. out_args, where not NULL, gets the nparams types. */
Type *scheme_instantiate(Solver *s, const Scheme *scheme, Span span, Type **type_args,
                         uint32_t ntype_args, Type ***out_args);
/* Makes the sizes that are arguments undetermined in the next instance, and puts those of Scheme.sizes into *sizes,
 * for the call to decide. NULL: no more. */
void solver_take_sizes(Solver *s, Type ***sizes);
/* What an argument is as a size, for one of those. It may be negative, as a bound of a slice is. */
void solver_give_size(Solver *s, Type *open, Type *size);
/* The early entries as text, which is the same for the same operators. */
const char *scheme_early_text(const Scheme *scheme);
/* Drops the early entries that mention none of these params. */
void scheme_restrict_early(Scheme *scheme, const Map *params);
/* For a group that was generalised as one: names the definition of the relations that arose within `span`. */
void scheme_name_inside(Scheme *scheme, Span span, const Symbol *name);
void scheme_print(Str *out, const Scheme *scheme, TypeNamer *namer);

/* Settles every weak literal variable of the current level or deeper (float32, else int32). */
void solver_default_weak(Solver *s);
void solver_default_weak_but(Solver *s, const Map *kept); /* all but these variables */

extern const RelDef rel_num, rel_float, rel_int,
    rel_bits;                                /* dtype classes: one KIND_DTYPE argument */
DTypeSet rel_dtype_class(const RelDef *def); /* 0 for what is no class */
const RelDef *rel_of_dtypes(DTypeSet set);   /* the least class that has all of them, or NULL */
/* The classes live in the variable or parameter itself (var.dtypes, param.dtypes), so a scheme's
 * relations hold none; printing shows Float(b) and Int(b). */
/* (a, b, …, c): a set of tensors of one dtype (laws.c), where c is the broadcast of all before it. Its dtypes are
 * those that r->op takes, or that all operators take where laws.c merged several. */
extern const RelDef rel_broadcast;
extern const RelDef rel_broadcast_compare; /* the result is bool */
/* Field (a, c), Proj (a, c), Index (a, i…, c): post by solver_post_…. Bang (a, c): `!a`.
 * Eq (a, b, c): `a == b`. Same (a, b): an equation that waits. */
extern const RelDef rel_field, rel_proj, rel_index, rel_bang, rel_equal, rel_same;
extern const RelDef rel_grad, rel_deriv, rel_vjp, rel_jvp; /* (f, g): g is the derivative of f */
extern const RelDef rel_leaves; /* (t, e): the floats of t have the dtype of the scalar e */
extern const RelDef rel_custom_grad, rel_checkpoint; /* (f, d): d its cotangents; (f) */
extern const RelDef rel_vmap; /* (f, g): g is f at each index of its arguments' first axes */

const char *dtype_class_name(DTypeSet set);      /* "a float" */
const char *dtype_class_words(DTypeSet set);     /* "floats", "integers", "one of int8, uint8" */
const char *relation_subject(const Relation *r); /* as the program writes it: "nn.dense", "+" */
const Symbol *rel_find_nearest(const Symbol *name, Budget *budget); /* a similar name, or NULL */
const RelDef *rel_find(const Symbol *name); /* a relation that a `where` may name, or NULL */

#endif
