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
    Relation *op;         /* or NULL: */
    const Scheme *scheme; /* its params are `to` here */
    Type **to;
    Span span;
    bool held; /* against all sizes */
} Early;

typedef VEC(Early) EarlyVec;

/* What was there at a solver_enter: later unknowns and relations are the level's own. */
typedef struct Mark {
    uint32_t id;
    size_t waiting;
    size_t weak; /* s->weak.len: what is before it belongs to outer levels */
    size_t inside, settled, early;
} Mark;

/* A function that is being inferred: which ids are of its parameters' types, and from where on what comes
 * to be in it. */
typedef struct Body {
    uint32_t params, mark, number;
} Body;

struct Solver {
    Diags *diags;
    int level;
    VEC(Mark) marks;   /* one a solver_enter */
    VEC(Body) bodies;  /* the functions around, from the outermost */
    uint32_t nbodies;  /* entered so far */
    bool recursive;    /* what flows is an argument of a function that is being inferred */
    RelationVec queue; /* first in, first out, from qhead */
    size_t qhead;
    RelationVec waiting; /* posted and not done, in order; done ones are dropped now and then */
    VEC(Type *) weak;    /* dtype variables of weak literals */
    VEC(Residual) residuals;
    RelationVec facts; /* fact.c */
    bool infer_where;
    FindRecord find_record;
    void *find_record_ctx;
    SolverCounts counts;
    Budget *budget; /* solver_set_budget */
    bool bounded;
    uint64_t drawn;    /* from the budget so far, of the counts */
    uint32_t first_id; /* of a relation's first run: older variables it found something of are */
    bool learned;      /* noted, since it watches nothing yet */
    Mismatch mismatch;
    SizeClash clash;
    Span span; /* for residual checks and equations that unification makes */
    const char *what;
    const Relation
        *running;  /* the relation that runs, or NULL: residual checks are its operator's */
    int arg, axis; /* of which argument (-1: the result, or NO_ARGUMENT) and axis (or -1) */
    bool listing;  /* operators whose relation is done are kept: solver_try_operators */
    RelationVec settled;
    RelationVec inside; /* while listing: inside.c */
    EarlyVec early;     /* early.c */
    bool gradual;       /* sizes not known equal, one of them `?`: a residual check */
};

enum { NO_ARGUMENT = -2 };

/* unify.c */
void solver_link(Solver *s, Type *var, Type *to);                 /* no checks; wakes watchers */
bool solver_fail(Solver *s, MismatchKind kind, Type *a, Type *b); /* records; returns false */
void solver_path(Solver *s, const char *fmt, ...)
    __attribute__((format(printf, 2,
                          3))); /* puts a step before the mismatch's path; no-op when ok */
bool unify_dims(Solver *s, Type *a, Type *b, bool gradual);
bool dims_wait(Type *a, Type *b); /* unify_dims could only post the equation */
/* Two dims or two shapes; gradual: what is not known equal becomes a residual check. */
bool unify_sizes(Solver *s, Type *a, Type *b, bool gradual);
bool unify_gradual(Solver *s, Type *a, Type *b); /* solver_unify, with residual checks for `?` */
void solver_lower(Solver *s, Type *t,
                  int level);                  /* its variables belong to `level` or further out */
bool bind_var(Solver *s, Type *var, Type *to); /* with occurs check and levels */

/* variance.c */
enum { UNUSED = 0, COVARIANT = 1, CONTRAVARIANT = 2, INVARIANT = 3 };
const uint8_t *variance_of(TypeDecl *decl); /* of each parameter */

/* unknown.c */
void unknowns_in(Type *t, TypeVec *out); /* each once */
/* t with what `by` gives for its unknowns; for those that stay it gives them. */
typedef Type *(*UnknownMap)(void *ctx, Type *unknown);
Type *unknowns_map(Type *t, UnknownMap by, void *ctx);
/* One value whose type has unknowns that each value has its own of: a size or shape of it. */
typedef struct OpenValue {
    Solver *open; /* its own are undetermined sizes, or (NULL) unknowns */
    Map own;      /* unknown -> the value's own */
} OpenValue;
Type *unknowns_of_value(OpenValue *o, Type *size);
Type *unknowns_replaced(Solver *s, Type *t,
                        bool vars); /* by fresh ones, or by undetermined sizes */
/* Note [Open values]: whether t has unknowns that var cannot be; and t with undetermined sizes for those
 * (open), or with unknowns that each has its own of. */
bool unknowns_are_apart(const Solver *s, const Type *var, Type *t, bool around);
Type *unknowns_kept_apart(Solver *s, const Type *var, Type *t, bool around, bool open);
void unknowns_asked(Type *t);                  /* its open sizes are those of several values */
void unknowns_mark_each(Type *t, uint32_t id); /* those made since */

/* residual.c */
void solver_list(Solver *s,
                 const char *text); /* a check that operators make, here in the program */
const char *relation_argument(const Relation *r, int arg); /* "weight", or NULL */
/* An operator's arguments are of known rank: what its shape function says of ranks and axes (R0313,
 * R0315) holds whatever the sizes are. False after a report. */
bool solver_probe(Solver *s, Relation *r);

/* early.c */
bool early_is(const Relation *r); /* its shape function may say more, and could not be asked yet */
void early_note(Solver *s, Relation *r);                        /* which was so, and is done */
void early_keep(Solver *s, Scheme *scheme, Substitution *zonk); /* that was generalised */
void early_use(Solver *s, const Scheme *scheme, Span span, Type **to);

/* residual.c: whether relating an operator of known sizes may fail, at less cost. */
bool residual_may_refuse(Solver *s, Relation *r);

/* narrow.c: what waits has instances, and fixes none of the parameters. False after a report. */
bool declared_stay_open(Solver *s, const RelationVec *relations, Type **params, uint32_t n);
/* solver.c: the argument (-1: the result) is, or has, a declared parameter that must be something else. */
void rel_refuse_rigid(Solver *s, Relation *r, int arg, Type *param, Type *must);

/* inside.c: the checks inside of definitions, for the list of a program that calls them */
void inside_note(Solver *s, const Relation *r);     /* that runs for the first time */
void inside_replace(Solver *s, const Map *tensors); /* by their shapes: type_replace_tensors */
void inside_keep(Solver *s, Scheme *scheme);        /* of the definition that was generalised */
void inside_call(Solver *s, const Scheme *scheme, Span span, Substitution *by);
void inside_list(Solver *s); /* all is known that will be */

/* residual.c: lists the operator where its shape function refuses some of the sizes that are possible */
void residual_try_sizes(Solver *s, Relation *r);

/* rel_layout.c */
const char *rel_operand_label(const Diag *d, const Relation *r, uint32_t i, TypeNamer *names);

/* solver.c */
void solver_wake(Solver *s, TypeVar *v);
Relation *relation_new(const RelDef *def, Type **args, uint32_t nargs, const Attrs *attrs,
                       Span span);
void relation_stands(const Solver *s, Relation *r); /* where inference is */
void solver_queue(Solver *s, Relation *r);
void solver_add(Solver *s, Relation *r); /* posted: waits, and is to run */

/* fact.c. Whether a and b ask the same of equal arguments: one RelDef, one field or position that is read,
 * one set of attributes. */
bool relation_asks_same(const Relation *a, const Relation *b);
/* The fact that asks the same of the same inputs, or NULL: its result is the relation's. */
const Relation *solver_find_fact(Solver *s, const Relation *r);
/* Unifies r with a fact where they differ by variables alone that are not in order (those of the type): as
 * of the elements of an empty list, which nothing else determines. False when there is none. */
bool solver_adopt_fact(Solver *s, const Relation *r, const Map *order);

void relation_print(Str *out, const Relation *r,
                    TypeNamer *namer); /* scheme_print.c: as in `where` */

/* laws.c. order: variables of the type to generalise, Type* -> 1 + position; these stay. Merges and
 * simplifies Broadcast sets in place, unifies results that must be the same; true when something
 * was unified, so that relations are to be run again. What says nothing any more is REL_DONE. */
bool laws_simplify(Solver *s, RelationVec *relations, Map *order);
/* Tensor[s, b] known to be a tensor by its Broadcast alone, as the type variable it stands for:
 * from[i] (a shape variable) becomes to[i]. */
typedef struct Abstraction {
    TypeVec shapes, vars;
} Abstraction;
void laws_abstract(Solver *s, Type *t, RelationVec *relations, Abstraction *out);
bool is_broadcast(const RelDef *def);
/* The dtypes that a Broadcast relation allows. */
DTypeSet broadcast_dtypes(const Relation *r);
/* Restricts its arguments to them, where one is a tensor; false after a report. */
bool broadcast_restrict(Solver *s, Relation *r);

/* instance.c: with other types in the place of some; at a use of the definition it is of. */
Relation *relation_copy(const Relation *r, Substitution *by);
Relation *relation_instance(Solver *s, const Scheme *scheme, const Relation *r, Span span,
                            Substitution *by);

/* rel_broadcast.c */
RelStatus relate_compare(Solver *s, Relation *r);

extern const RelDef rel_differentiable; /* (T1, …, Tn): some parameter holds a float */

#endif
