/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the solver share: unify.c, flow.c, solver.c, scheme.c, laws.c and the relations.
 * Nobody else includes it.
 *
 * Invariants: a variable at level L is linked only to types whose variables are at level L or less
 * (lower_levels sees to it). A relation that waits is in s->waiting, and is a watcher of each
 * undetermined variable in its arguments. Linking or restricting a variable queues its watchers. */
#ifndef TYPES_SOLVE_SOLVER_IMPL_H
#define TYPES_SOLVE_SOLVER_IMPL_H

#include "types/solve/solver.h"

typedef VEC(Relation *) RelationVec;

/* What may refuse sizes that are not known yet (early.c): an operator whose relation is done, or the use of
 * a definition that has such operators inside. */
typedef struct Early {
    Relation *op;         /* the operator, or NULL */
    const Scheme *scheme; /* the definition that is used, or NULL */
    Type **to;            /* the types for the scheme's params at this use */
    Span span;
    bool checked; /* all of its sizes have been checked */
} Early;

typedef VEC(Early) EarlyVec;

/* The next id and the lengths of the solver's lists at a solver_enter. What comes later belongs to the new level. */
typedef struct Mark {
    uint32_t id;
    size_t waiting;
    size_t weak;
    size_t inside, settled, early;
} Mark;

/* A function that is being inferred. The types of its parameters have ids from `params` to `mark`, and what its
 * body makes has later ids. */
typedef struct Body {
    uint32_t params, mark, number;
} Body;

struct Solver {
    Diags *diags;
    int level;
    VEC(Mark) marks;    /* one for each level */
    VEC(Body) bodies;   /* the functions around, from the outermost */
    uint32_t nbodies;   /* functions entered so far */
    bool recursive;     /* what flows is an argument of a function that is being inferred */
    Type *given;        /* solver_set_given */
    Type ***take_sizes; /* solver_take_sizes */
    RelationVec queue;  /* first in, first out, from qhead */
    size_t qhead;
    RelationVec waiting; /* posted relations, in order; done ones are dropped now and then */
    VEC(Type *) weak;    /* dtype variables of weak literals */
    VEC(Residual) residuals;
    RelationVec facts; /* the relations of the declared `where`s (fact.c) */
    Map taken; /* fact -> the relation of the body that it answers (Note [One fact, one part]) */
    bool infer_where;
    FindRecord find_record;
    void *find_record_ctx;
    SolverCounts counts;
    Budget *budget; /* solver_set_budget */
    bool bounded;
    uint64_t drawn; /* the part of the counts that was drawn from the budget */
    /* While a relation runs for the first time, it watches nothing yet: `learned` notes that it found something
     * of a variable older than first_id. Otherwise first_id is 0. */
    uint32_t first_id;
    bool learned;
    Mismatch mismatch;
    SizeClash clash;
    Span span; /* for residual checks and equations that unification makes */
    TypePlace place;
    const Relation *running; /* the relation that runs, or NULL */
    int arg;                 /* its argument at hand; -1 for the result, or NO_ARGUMENT */
    int axis;                /* the axis at hand, or -1 */
    bool listing;            /* operators are recorded for the list of checks */
    RelationVec settled;     /* while listing: operators whose relation is done */
    RelationVec inside;      /* while listing: operators of definitions (inside.c) */
    EarlyVec early;          /* operators whose sizes are still to be checked (early.c) */
    bool gradual;            /* a size that is not known to equal `?` gives a residual check */
};

enum { NO_ARGUMENT = -2 };

/* unify.c */
/* Links a variable without any check, and wakes its watchers. */
void solver_link(Solver *s, Type *var, Type *to);
/* Records a mismatch and returns false. */
bool solver_fail(Solver *s, MismatchKind kind, Type *a, Type *b);
/* Puts a step before the mismatch's path. */
void solver_prefix_path(Solver *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool unify_dims(Solver *s, Type *a, Type *b, bool gradual);
/* Whether unify_dims could only post the equation of a and b as a relation. */
bool dims_must_wait(Type *a, Type *b);
/* Unifies two dims or two shapes. gradual: sizes that are not known to be equal give a residual check. */
bool unify_sizes(Solver *s, Type *a, Type *b, bool gradual);
bool unify_gradual(Solver *s, Type *a, Type *b); /* solver_unify, with residual checks for `?` */
/* Moves the variables of t to `level`, where they are deeper. */
void solver_lower_levels(Solver *s, Type *t, int level);
/* Links a variable after the checks of occurrence, level and class. False after a mismatch. */
bool bind_var(Solver *s, Type *var, Type *to);

/* flow.c: puts one rigid size for each name of b in its place, and for that parameter's name in a. Variables cannot become
 * it. both: only for parameters that a names too. */
void solver_fix_names(const Solver *s, Type **a, Type **b, bool both);

/* variance.c */
enum { UNUSED = 0, COVARIANT = 1, CONTRAVARIANT = 2, INVARIANT = 3 };
const uint8_t *variance_of(TypeDecl *decl); /* one for each parameter */

/* unknown.c */
void unknowns_collect(Type *t, TypeVec *out); /* collects each unknown once */
void unknowns_collect_in_attrs(const Attrs *attrs, Map *seen, TypeVec *out); /* those not seen */
Type *unknown_copy(const Type *u, const Origin *origin); /* another of its kind and name */
/* Replaces each unknown of t by what `by` gives for it. */
typedef Type *(*UnknownMap)(void *ctx, Type *unknown);
Type *unknowns_map(Type *t, UnknownMap by, void *ctx);
/* One value, and what stands for the `each` unknowns of its type. */
typedef struct OpenValue {
    Solver *open;   /* makes undetermined sizes for them; NULL makes unknowns */
    const Type *fn; /* the names of its parameters stay, or NULL */
    Map own;        /* `each` unknown -> the value's own size or unknown */
} OpenValue;
/* A size or shape of the value, with its own sizes for `each` unknowns. */
Type *unknowns_open_value(OpenValue *o, Type *size);
/* Replaces unknowns by fresh ones, or (vars) by undetermined sizes. */
Type *unknowns_replace(Solver *s, Type *t, bool vars);
/* Whether t has unknowns that var cannot be (Note [Open values]). around: see is_apart in unknown.c. */
bool unknowns_are_apart(const Solver *s, const Type *var, Type *t, bool around);
/* Replaces those unknowns by undetermined sizes (open) or by `each` unknowns. */
Type *unknowns_keep_apart(Solver *s, const Type *var, Type *t, bool around, bool open);
/* For each parameter of the declaration, whether one size is asked of several values (Note [Sizes of elements]). */
const bool *sizes_asked_of(TypeDecl *decl);
/* Finds which sizes of a new scheme are asked of several values, and of which each value has its own. */
void scheme_note_elements(Scheme *scheme);
/* Marks the unknowns of t that were made since `id` as `each`. */
void unknowns_mark_each(Type *t, uint32_t id);

/* residual.c */
const char *relation_argument(const Relation *r, int arg); /* "weight", or NULL */
/* Asks the shape function of an operator whose arguments have known ranks. What it says of ranks and axes
 * (R0313, R0315) holds whatever the sizes are. False after a report. */
bool solver_probe_ranks(Solver *s, Relation *r);

/* parts.c */
/* Whether a size of r's result follows from the values of its arguments, as of `x[mask]`. Two such relations of equal
 * arguments may have different results. */
bool relation_reads_values(const Relation *r);
/* Whether the function with this number (Body) is still being inferred. */
bool solver_is_around(const Solver *s, uint32_t body);

/* early.c */
/* Whether the operator may refuse sizes of its arguments that are not known yet. */
bool relation_awaits_sizes(const Relation *r);
/* Records such an operator when its relation is done. */
void early_record_operator(Solver *s, Relation *r);
/* Moves the entries of the level that mention the scheme's params into the scheme. */
void early_move_to_scheme(Solver *s, Scheme *scheme, Substitution *zonk);
/* Records a use of the scheme, whose params have the types `to` there. */
void early_record_use(Solver *s, const Scheme *scheme, Span span, Type **to);

/* residual.c: whether the shape function may refuse an operator of known sizes. It costs less than relating. */
bool residual_may_refuse(Solver *s, Relation *r);

/* narrow.c: checks that the waiting relations have an instance, and fix none of the declared params. False after
 * a report. */
bool narrow_check_declared(Solver *s, const RelationVec *relations, Type **params, uint32_t n);
/* solver.c: reports that a declared parameter in the argument (-1: the result) must be something else. */
void rel_refuse_rigid(Solver *s, Relation *r, int arg, Type *param, Type *must);

/* inside.c: the operators inside of definitions, for the list of checks of a program that calls them. */
/* Records an operator that runs for the first time. */
void inside_record_operator(Solver *s, const Relation *r);
/* Replaces tensors of the level's operators by their shapes, as type_replace_tensors does. */
void inside_replace_tensors(Solver *s, const Map *tensors);
/* Moves the operators of the definition that was generalised into its scheme. */
void inside_move_to_scheme(Solver *s, Scheme *scheme);
/* Records instances of the scheme's operators at a call. */
void inside_instantiate(Solver *s, const Scheme *scheme, Span span, Substitution *by);
/* When no more will be inferred: lists the checks of the recorded operators. */
void inside_list_checks(Solver *s);

/* residual.c: lists the operator where its shape function refuses some of the possible sizes. */
void residual_try_sizes(Solver *s, Relation *r);

/* rel_layout.c */
const char *rel_operand_label(const Diag *d, const Relation *r, uint32_t i, TypeNamer *names);

/* solver.c */
void solver_wake(Solver *s, TypeVar *v);
Relation *relation_new(const RelDef *def, Type **args, uint32_t nargs, const Attrs *attrs,
                       Span span);
/* Gives a relation the level and the function at which inference is. */
void relation_set_place(const Solver *s, Relation *r);
void solver_queue(Solver *s, Relation *r);
void solver_add(Solver *s, Relation *r); /* adds a relation that waits, and queues it */

/* fact.c. Whether a and b ask the same of equal arguments: they have one RelDef, read one field or position, and
 * have equal attributes. */
bool relation_asks_same(const Relation *a, const Relation *b);
/* The first fact at place *at or behind it that is of one of those relations; *at is then behind it. NULL: no other. */
const Relation *solver_next_fact(const Solver *s, bool (*is)(const RelDef *def), size_t *at);
/* The fact that asks the same of the same inputs, or NULL. Its result is the relation's. */
const Relation *solver_find_fact(Solver *s, const Relation *r);
/* Gives the relations that wait, from the begin-th on, one each of the facts that are left for them. False after a
 * report (Note [One fact, one part]). */
bool solver_take_parts(Solver *s, size_t begin);
/* Unifies r with a fact from which it differs only by variables that are not in `order`, those of the type. The
 * element of an empty list is such a variable, which nothing else determines. False where there is no such fact. */
bool solver_adopt_fact(Solver *s, const Relation *r, const Map *order);

void relation_print(Str *out, const Relation *r,
                    TypeNamer *namer); /* scheme_print.c: as in `where` */

/* laws.c. Merges and simplifies Broadcast sets in place, and unifies results that must be equal. order: the
 * variables of the type to generalise, Type* -> 1 + position, which stay. True when something was unified, so
 * that relations must run again. Relations that say nothing any more become REL_DONE. */
bool laws_simplify(Solver *s, RelationVec *relations, Map *order);
/* Tensors that only a Broadcast shows to be tensors, and the type variables that replace them: a tensor of the
 * shape variable shapes[i] becomes vars[i]. */
typedef struct Abstraction {
    TypeVec shapes, vars;
} Abstraction;
void laws_abstract(Solver *s, Type *t, RelationVec *relations, Abstraction *out);
bool is_broadcast(const RelDef *def);
/* The dtypes that a Broadcast relation allows. */
DTypeSet broadcast_dtypes(const Relation *r);
/* Restricts the arguments to these dtypes, where one is known to be a tensor. False after a report. */
bool broadcast_restrict(Solver *s, Relation *r);

/* instance.c: a copy with types replaced, and one that stands at a use of the scheme's definition. */
Relation *relation_copy(const Relation *r, Substitution *by);
Relation *relation_instance(Solver *s, const Scheme *scheme, const Relation *r, Span span,
                            Substitution *by);

/* A fresh variable for the i-th parameter. */
Type *scheme_instance_of(Solver *s, const Scheme *scheme, uint32_t i);

/* whole.c: Note [Whole uses]. The relation of a use holds the Scheme in `data`. */
extern const RelDef rel_use;
void scheme_note_whole(
    Scheme *scheme); /* finds whether the uses of a new scheme are to be kept whole */
void use_post(Solver *s, const Scheme *scheme, Span span, Substitution *by);
bool use_may_wait(const Relation *use);  /* nothing is known of its arguments */
void use_open(Solver *s, Relation *use); /* posts the relations inside in its place */

/* rel_broadcast.c */
RelStatus relate_compare(Solver *s, Relation *r);

extern const RelDef rel_differentiable; /* (T1, …, Tn): some Ti holds a float */

#endif
