/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of derivatives as code: reading a function into steps (read.c), its places and their accumulators
 * (place.c), the way back (back.c), which ways back there are (backs.c) and what they hand over (outline.c), tangents
 * (tangent.c) and which of them are read (demand.c), rules of operators (rule.c), the functions made (make.c), which of
 * them need no frames (replay.c) or make those anyway (chain.c), those whose accumulators are cells (mirror.c), what stands
 * beside cells and references (beside.c, cellwise.c), and what is made of all of them (derive.c). */
#ifndef PASSES_REVERSE_INTERNAL_H
#define PASSES_REVERSE_INTERNAL_H

#include "passes/build.h"
#include "passes/grad_internal.h"
#include "passes/reverse/reverse.h"

/* A function that is known where it is called. */
typedef struct Known {
    Expr *fn;                  /* EXPR_FN, after the passes where those ran */
    Expr *original;            /* before them: of which the closure is made */
    VarVec captured;           /* in the order of its closure */
    struct Known **known;      /* what each captured variable is known to be, or NULL */
    bool *active;              /* of each captured variable */
    const HeldFunctions *held; /* of what is differentiated: in data that it captured; or NULL */
    struct Sizes *sizes; /* in the types of its code: Note [Sizes of a call] in rows.c; or NULL */
    Global *plain;       /* by which it is called where nothing is active, if it captured nothing */
} Known;

/* Whether an accumulator is there, as far as that is known before running. A tangent that is PRESENT is there with all
 * its parts. UNKNOWN is what a tangent starts from while the results of recursive calls are being found. */
typedef enum Presence { ABSENT, PRESENT, PERHAPS, UNKNOWN } Presence;

typedef enum PlaceForm { PLACE_LEAF, PLACE_TUPLE, PLACE_DATA, PLACE_CLOSURE } PlaceForm;

typedef struct Steps Steps;
typedef struct Functions Functions; /* functions.c */

/* Where what leaves an arm or a function may have two names itself: the variable that tells which value it is, of those that the
 * frame saves, and what it says. */
typedef struct Whose {
    Var *var; /* NULL: the number of the arm or return tells all */
    uint32_t number;
    VarVec *saved; /* by the arm or return */
    uint32_t head; /* what is before these in the frame */
} Whose;

/* A result of a branch or call that is another name of `place` where the frame says so: Note [Results with two names]
 * in alias.c. */
typedef struct Alias {
    Var *frame;
    uint32_t index;  /* of the part of the frame that is a number */
    uint32_t number; /* that it is then; ALWAYS: the result is nothing else */
    struct Place *place;
    Whose whose;
} Alias;
enum { ALWAYS = UINT32_MAX };

/* A part that was read of a value before it was known to be a tuple, by a step of its own. */
typedef struct PartRead {
    uint32_t index;
    struct Step *step;
} PartRead;

/* One active value under all its names: Note [Places]. */
typedef struct Place {
    PlaceForm form;
    Type *type;
    uint32_t id;    /* numbered in order of making; a part has the number of its whole */
    uint32_t depth; /* how many wholes it is a part of */
    bool shared;    /* of a slot: its accumulator came from the caller */
    bool partial;   /* an inactive part of it may hold floats */
    bool lacks;     /* a part of it is an absent cotangent, which other ends may give: `((), ct)` */
    bool is_empty;  /* it has no parts, and no code reads one: its tangent counts as there */
    Ctor *ctor;     /* DATA */
    uint32_t nparts;
    struct Place **parts; /* NULL where a part is inactive */
    struct Place *arm; /* LEAF: its form in the arm of a match that is read or gone back through */
    Steps *home;       /* where it got its first name */
    VEC(Alias) aliases;
    VEC(PartRead) reads; /* of what is no tuple as far as is known: of a frame */
    bool is_own;         /* LEAF: it is no other name in the code that is being made */
    bool is_tensor;      /* LEAF: an operator gives it, whose type may say less */
    uint32_t leaf;       /* it is the one before this of its instance's leaves; 0: of none */
    Presence presence;   /* LEAF: of the accumulator, while the way back is made: acc_put */
    Expr *acc;
    Var *mirror; /* that holds its cell, or cells: Note [Mirrors] in mirror.c; or NULL */
} Place;

/* p in the form that it has in the arm that is being read or gone back through; NULL of NULL. */
static inline Place *place_here(const Place *p) {
    while (p && p->arm)
        p = p->arm;
    return (Place *)p;
}

/* What the accumulator of a leaf was, or became. */
typedef struct AccChange {
    Place *place;
    Presence presence;
    Expr *acc;
} AccChange;

typedef struct Instance Instance;
typedef struct Shape Shape; /* shape.c */

/* What was known of the result of a function with tangents when code that calls it was made. */
typedef struct OutRead {
    Instance *of;
    Presence out;
} OutRead;

/* Which slot each active argument, and each active variable that a known function captured, has. Two that are one value
 * have one slot. */
typedef struct SlotMap {
    uint32_t n;
    uint32_t *slot;
} SlotMap;

typedef enum StepKind {
    STEP_PLAIN,
    STEP_OPERATOR,
    STEP_BUILTIN, /* what code of a derivative does with accumulators: Note [Derivatives inside] in nested.c */
    STEP_CALL,
    STEP_BRANCH
} StepKind;

/* Of a value the whole (n is 0), or a part of a part …: which one, of how many, and of which constructor (NULL: a tuple). */
enum { MAX_PATH = 4 };
typedef struct Path {
    uint32_t n;
    uint32_t part[MAX_PATH], of[MAX_PATH];
    Ctor *ctor[MAX_PATH];
} Path;

/* Which value a part of a result is, where that is open: a number of these, found on the way forth by a step. */
typedef struct Naming {
    Path path;
    struct Step *step;
    VEC(Place *) places;
} Naming;

typedef struct Choice { /* an arm of a match or a side of an `if` */
    Pattern *pattern;
    Expr *guard;
    Place *whole; /* what the pattern takes apart for the first time, and its parts; or NULL */
    VEC(Place *) wholes, splits;
    Steps *steps;
    VarVec saved; /* of the variables defined in it, those that its way back reads */
} Choice;

typedef struct Apart Apart; /* twice.h */

typedef struct Step {
    StepKind kind;
    Var *var; /* the value; NULL: a statement */
    bool rec;
    Expr *
        e; /* PLAIN: what is bound; OPERATOR, CALL: the call, of atoms; BRANCH: the whole `if` or `match` */
    Place *place; /* of the value; NULL: inactive */
    Var *frame;   /* CALL, BRANCH */
    /* CALL */
    Known *callee;
    Known **known;  /* of each argument */
    bool *active;   /* of each argument */
    Place **places; /* one a slot of the callee */
    bool *shared;   /* one a slot */
    uint32_t nslots;
    SlotMap slots;
    Instance *instance;
    Instance *named_by; /* whose results with two names were taken, and how many: alias_take */
    size_t nnamed;
    bool runs_again; /* of checkpoint: callee is the function that it was given */
    bool is_custom;  /* of custom_grad: there is no callee */
    const Apart *apart;
    /* BRANCH */
    const Apart *asks; /* the first choice is where these are one; or NULL */
    Expr *scrutinee;   /* an atom: the condition, or what is matched */
    uint32_t limit;    /* places with a lower number were there before */
    uint32_t nchoices;
    Choice *choices;
} Step;

typedef enum EndKind { END_RETURN, END_LOOP, END_BRANCH } EndKind;

struct Steps {
    VEC(Step *) steps;
    Map defines; /* variables bound by the steps, or by the pattern around them */
    Map merged; /* number of an operator and its arguments -> the steps that apply it: Note [Merging] */
    Steps *around; /* in whose scope these stand; NULL for the body */
    EndKind end;
    Expr *result; /* RETURN: an atom */
    Expr *call;   /* LOOP: the self call, of atoms */
    Step *branch; /* BRANCH */
    Steps *outer; /* the steps that end in this arm, and the arm; NULL for the body */
    Choice *choice;
    uint32_t number;     /* RETURN, LOOP: which of its kind */
    VarVec saved;        /* RETURN, LOOP: what the way back from here reads */
    VEC(Naming) namings; /* of the result */
};

/* What has been learnt of what a way back gives, and whether code was made by it in this round. */
typedef struct Outline {
    const char *text; /* NULL: nothing */
    bool is_read;
} Outline;

/* A way back of an instance: Note [Ways back for what is known] in backs.c. */
typedef enum BackState { BACK_UNREACHED, BACK_WAITS, BACK_MADE } BackState;
typedef struct Back {
    Instance *of;
    bool is_loop; /* it pops frames; else it takes a frame and the cotangent of its result */
    const char
        *known;      /* the outline of the cotangent, which a loop has not, and the accumulators */
    Outline out;     /* of the result: back_out */
    Expr *ct;        /* made of parameters */
    Presence *entry; /* of the accumulator of each slot, before a frame */
    Expr **accs;     /* these, made of parameters */
    Var **params;    /* the frame or frames, the cotangent, and what of the accumulators is there */
    uint32_t nparams;
    Var *before; /* where the function is a loop: the frames before the one that it takes */
    Global *global;
    BackState state; /* in this round */
    Expr **ways;     /* for each return or loop of the function: what follows its frame */
} Back;

/* A return of which the result, or that part of it, is the part at `first` of a slot, or of the result itself. */
typedef struct Return {
    uint32_t number, slot; /* or IN_RESULT */
    Path path, first;
    Whose whose;
} Return;
enum { IN_RESULT = UINT32_MAX };

struct Instance {
    struct Program *program;
    bool forward;          /* its values come with tangents; otherwise there is a way back */
    Presence *given;       /* forward: of the tangent of each slot */
    Presence out;          /* forward: of the tangent of the result */
    VEC(OutRead) outs;     /* forward: those by which the function was made */
    bool is_made;          /* forward: the function is there, and not outdated: tangent_holds */
    bool is_rule;          /* the derivative of one operator: its body is read as a value */
    VEC(Instance *) calls; /* forward: what the function that was made calls */
    Map read;              /* forward: Place, of which something reads the tangent */
    Expr *fn;
    Known *self;
    Known **known; /* of each parameter */
    bool *active;  /* of each parameter */
    bool *shared;  /* of each slot */
    uint32_t nslots;
    SlotMap numbers;
    Place *
        *slots; /* of each active parameter, and of each variable that a known function captured */
    VEC(Return) named; /* returns whose result is another name of a shared slot */
    VEC(Place *) leaves;
    uint32_t nchoices;    /* that are being gone back through, one in the other */
    VEC(AccChange) trail; /* what accumulators were before they were changed in these */
    uint32_t nplaces;
    Map places;  /* Var -> Place */
    Map knowns;  /* Var -> Known */
    Map tuples;  /* Var -> the tuple of atoms that it is */
    Map aliases; /* Var -> the atom it names */
    Map made_by; /* Var -> the step that binds it */
    Map shapes;  /* Var -> Shape */
    Map *sizes;  /* in the types of its parameters: Note [Shapes by name]; NULL: nobody asked */
    struct NamedShape *named_shapes;
    Map given_shapes; /* number of an operator and its arguments' shapes -> Given, of shape.c */
    Instance *around; /* of a rule: where it is applied */
    Steps *body;
    VEC(Steps *) returns, loops;
    bool wants_self, straight;
    Var *self_var, *chain;
    Var *
        own_chain; /* the parameter that holds the frames, which the function makes anyway: chain.c; or NULL */
    Global *forward_global;
    Expr *forward_fn;
    VEC(Back *) backs;
    Outline back_out;   /* of a function with loops: of what all its ways back give */
    bool is_being_made; /* one of its ways back is */
    VarVec
        kept; /* by the loops that pop frames, or where there are none by the ways back, beside these: keep_constants */
    bool runs_again; /* for a checkpoint */
    bool replays; /* its ways back take `kept` in place of a frame: Note [Replays] in reverse.h */
    Map needed;   /* where it replays: Var, those of its variables that a way back reads */
    bool reached;
};

typedef struct Program {
    PassCtx *ctx;
    ReverseCode *code;
    VEC(Instance *) instances;
    VEC(Instance *) seen; /* that were read for what they do alone: no code is made of them */
    Map tame;             /* Global -> what plain calls of it need: find_care_of */
    Map sizes;            /* Expr -> nodes in it */
    Map used;             /* Global that was noted */
    Map prepared;         /* EXPR_FN -> the same after the passes */
    Map typed;            /* Symbol -> EXPR_FN: Note [Functions of any record] in known.c */
    Map made;             /* what was made while reading: rows.c */
    Map rows;             /* EXPR_FN -> whether it leads to a vmap */
    Map cells;            /* EXPR_FN -> whether it leads to code with mirrors */
    bool has_cells;       /* and whether one was read that does */
    bool follows_refs;    /* references have such cells, too */
    Functions *functions;
    bool prepares;
    bool mirrors;        /* accumulators are cells: Note [Mirrors] in mirror.c */
    bool splits;         /* what follows a choice between data stands in its arms (split.c) */
    bool grows;          /* some accumulator is a tuple that grows */
    bool merges;         /* Note [Merging]: values that are equal may become one */
    bool changed;        /* something was learnt: make the ways back again */
    VEC(Back *) waiting; /* the ways back that this round reached */
    uint32_t work, most_work;
    uint32_t names;      /* of values with several names: pieces of code made in this round */
    const char *why;     /* the program is left to the twins; NULL: it is not */
    bool tries_again;    /* why: it may be taken where it is prepared otherwise */
    bool is_too_large;   /* why: and that lies in how much there is of it */
    bool lacks_function; /* why: it may be taken where more functions are known, */
    bool lacks_data;     /* or where functions are data */
} Program;

enum { SPARE_STACK = 256 << 10 }; /* of the C stack, before a form is taken apart */
enum {
    MAX_INSTANCES = 64,
    MAX_LEAVES = 24,
    MAX_WORK = 40000,
    MORE_WORK = 1000, /* where choices are split */
    MAX_ROUNDS = 24,
    MAX_NAMES = 2000,
    MAX_BACKS = 6
};

/* Leaves the whole program to the twins: it holds a form that is not taken, however it is prepared. */
void reverse_refuse(Program *p, const char *why);
/* The same where that lies in a function that is not known here. */
void reverse_lack(Program *p, const char *why);
/* The same where functions that are data make a difference. */
void reverse_lack_data(Program *p, const char *why);
/* The same where that lies in which values have two names, and where choices stand makes a difference. */
void reverse_give_up(Program *p, const char *why);
/* The same where that lies in how much there is of it, and what is inlined makes a difference, too. */
void reverse_outgrow(Program *p, const char *why);

/* Reading one function. */
typedef struct Reader {
    Instance *n;
    Program *p;
    Steps *steps; /* being read */
} Reader;

/* ---- known.c ---- */
Known *known_new(Expr *fn);
/* The same of a function that has a closure: what the passes make of it, captured as in the closure. */
Known *known_prepared(Program *p, Expr *fn);
/* The same with all functions that it captured. */
Known *known_prepared_all(Program *p, const Known *k);
/* Whether there is a derivative in it. */
bool takes_derivative(Expr *fn);
/* What the passes make of it, or itself. */
Expr *function_after_passes(Program *p, Expr *fn);
/* The function with values in place of references that are only read and written (references.c), or itself. */
Expr *references_as_values(Program *p, Expr *fn);
/* The function with a body that was written otherwise for a derivative (Fn.is_remade). */
Expr *fn_remade(const Expr *fn, Expr *body);
/* The same function with references by themselves that were put into data, or itself: open.c. */
Expr *open_references(Program *p, Expr *fn);
/* The function with what follows a choice between data in the arms of that, or itself. */
Expr *split_choices(PassCtx *ctx, Expr *fn);
/* The same function, or its copy for the types of these arguments. */
Known *known_at_types(Program *p, Known *k, Expr *const *args, uint32_t nargs);
bool known_equal(const Known *a, const Known *b);
Known *known_inactive(const Known *k);
bool known_captured_any(const Known *k);
/* Notes a definition that the derivative is made from. */
void use_global(Program *p, Global *g);
/* The function that an atom is known to be; NULL when it is not. */
Known *known_of(Reader *r, Expr *atom);
/* Whether a function's derivative is that of its code. */
bool fn_has_own_code(const Expr *fn);
/* A function literal that captured nothing is called as a definition is: no closure is asked for its code. */
Expr *plain_callee(Reader *r, Expr *callee);
/* Whether a plain step may do to active values what it does, with all functions that its variables are. */
bool is_tame(Reader *r, Expr *e);
/* Whether an active value is named in e. */
bool mentions_active(Reader *r, Expr *e);

/* ---- merge.c ---- */
/* The atom that one names: the first name of its value, or a literal where values are merged. */
Expr *merge_atom(Reader *r, Expr *atom);
void merge_alias(Reader *r, Var *v, Expr *atom);
/* An atom with the value of an operator's call, if one is known; else NULL, and the step that is added next has it. */
Expr *merge_operator(Reader *r, Expr *call);
void merge_step(Reader *r, Step *s);

/* ---- functions.c: Note [Functions as data] ---- */
Functions *functions_new(void);
/* Whether they are, in this reading. */
bool functions_are_data(const Program *p);
/* Whether more of them were found in this reading, so that there will be another one. */
bool functions_grew(const Functions *f);
/* Before another reading, in which they are. false: all that is to be known of them was known in the last one. */
bool functions_begin(Functions *f);
/* Leaves a program that was given functions from outside. */
void functions_check_source(Program *p, const Known *source);
/* The same where an atom that is no callee is such a function, or holds one. */
void functions_check_atom(Reader *r, Expr *atom);
/* What the value of a `let` is known to be: a function with those that it captured; or NULL. */
Known *function_of_let(Reader *r, const Expr *atom);
/* Gives a literal that is read its constructor. self: the variable that it is bound to where it may name itself, or NULL. */
void function_note(Reader *r, const Known *k, Var *self);
/* The literal that stands for an operator: of one constructor each time. */
Expr *function_of_value(Reader *r, Expr *op);
/* Gives the literals in a copy of fn's body those of the copies that were made before: a literal is one function in all of
 * them. */
void function_note_copies(Reader *r, const Expr *fn, Expr *body);
/* Gives a function that a derivative was made into one for all the copies that are read of it. */
void function_of_code(Reader *r, Expr *fn);
/* An atom that gets into data, or is a result: where it is a known function, as data of its constructor. */
Expr *function_as_data(Reader *r, Expr *atom);
/* The same where the program stores it as a function of that type: Note [Own cells] in passes/cells.h. */
Expr *function_stored(Reader *r, Expr *atom, Type *type);
/* Makes a call of a function that is not known one of `apply`; false where functions are no data. */
bool function_apply(Reader *r, Expr *call);
/* What `apply` and the like are; NULL of all others. */
Known *function_callee(const Reader *r, const Expr *callee);
/* Reads `let f_1 = f` in an arm of such a function; false of any other binding. */
bool function_arrives(Reader *r, const Expr *let);
/* Whether the call gives what may be a function, and is one of an instance for that. */
bool function_is_given(const Program *p, const Step *s);
/* Finds the instances of all such calls. */
void functions_find_calls(Program *p);

/* ---- nested.c ---- */
/* The body of a function, in place of a call of it. */
Expr *body_of_call(Expr *fn, const Expr *call);
/* The body of a straight function that a derivative was made into, or of a definition that makes a function, in place of a call
 * of it; NULL: the call stays. */
Expr *inline_made(Reader *r, Expr *call);
/* Whether a definition is called that gives a function which is written in it, as `def layer(w) { fn (x) { … } }` does, or
 * in another one of these. */
bool call_makes_function(const Expr *call);
/* What an atom is where it was bound to that here, through names and parts of tuples, else the atom. */
const Expr *known_value(const Instance *n, const Expr *atom);
/* The side of an `if` that runs where its condition compares numbers that are known; else NULL. */
Expr *known_arm(const Instance *n, const Expr *e);
/* Whether the function that is differentiated is known. */
bool derivative_is_known(Reader *r, Expr *e);
/* The derivative of a known function as the function it is made into. */
Expr *read_derivative(Reader *r, Expr *e);
/* Reads a call of `ad.…`, whose arguments are atoms; false where it is none that derivatives as code contain. */
bool read_builtin(Reader *r, Expr *call, bool active, Expr **v);
/* A step of its own with the value of e: what made code does with accumulators. */
Expr *add_linear(Reader *r, Expr *e);
/* v is part i of `whole`, a tuple whose length is not known: of a frame. */
Expr *read_unknown_part(Reader *r, Expr *v, Place *whole, uint32_t i);
/* ---- rows.c: Note [Rows of known functions] ---- */
/* vmap(f) as its loop. */
Expr *read_vmap(Reader *r, Expr *e);
/* The same function, where it leads to a vmap with the sizes of these arguments. */
Known *known_at_sizes(Reader *r, Known *k, Expr *const *args, uint32_t nargs);
/* A call of `vmap.plan`, whose arguments are atoms, as the code that it gives; NULL where the run decides. */
Expr *read_plan(Reader *r, Expr *call);

/* ---- read.c ---- */
Step *add_step(Reader *r, StepKind kind, Var *var, Expr *e);
Expr *add_plain(Reader *r, const char *name, Expr *e);
/* Whether e is a name or a constant, for which no step stands. */
bool is_atom(const Expr *e);
void name_place(Reader *r, Var *v, Place *p, Known *k);
/* An atom with the value of e. */
Expr *read_value(Reader *r, Expr *e);
Expr **read_args(Reader *r, Expr **args, uint32_t count, bool *active);
Expr *read_fn(Reader *r, Expr *e, Var *var, bool rec);
/* Reads an expression in tail position. */
void read_end(Reader *r, Expr *e);
/* The instance of a call; NULL when there are too many. */
Instance *instance_get(Program *p, Known *self, Known **known, const bool *active,
                       const bool *shared, uint32_t nslots, const SlotMap *numbers);
Place *place_of(const Instance *n, const Expr *atom);

/* ---- place.c ---- */
Place *place_new(Instance *n, Type *type);
Place *place_part(Instance *n, const Place *whole, Type *type);
/* The type of part i of a value of that type, which has the form of p. */
Type *place_part_type(Type *type, const Place *p, uint32_t i);
/* The type of a field of data that has the type `data`. */
Type *place_field_type(Type *data, const Ctor *ctor, uint32_t i);
void place_make_tuple(Instance *n, Place *p, uint32_t nparts);
/* Step s reads part i of p, a tuple of which nothing is known yet. */
void place_note_read(Place *p, uint32_t i, Step *s);
/* Gives a parameter that is a frame the form of what it is given, where that has accumulators already: false where parts of
 * it would be added up apart. */
bool place_give_form(Instance *callee, Place *slot, Place *given);
/* Whether p is the whole or a part of it, as a frame holds the frame before. */
bool place_is_within(const Place *whole, const Place *p);
/* The form of p when it is data of that constructor: its own, or one for the arm (*split is set). NULL if it is
 * of another constructor. */
Place *place_as_data(Instance *n, Place *p, Ctor *ctor, bool *split);
/* Takes a leaf apart as `like` is, or where that is NULL as its type is; false where the type does not tell its parts. */
enum { DEEPEST_PART = 3 };
bool place_take_apart(Instance *n, Place *p, const Place *like);
Place *place_of_closure(Instance *n, const Known *k);
void place_add_slots(Place *p, const Known *k, Place **slots, uint32_t *nslots);

/* The way back under construction: a block of code. */
typedef struct Way {
    Instance *n;
    Block *block;
    Build build;
    Back *back;   /* the one that is being made; NULL: no way back is */
    Map products; /* Var -> itself: a cotangent that is a product */
    bool is_dead; /* what comes next follows a call of which nothing is known in this round */
} Way;
Expr *way_bind(Way *w, Expr *e, Type *type);
Expr *absent_value(Way *w);
/* A cotangent of data, of those of its fields. */
Expr *ct_of_data(const Build *b, Ctor *of, Expr **parts, uint32_t nparts);
Presence acc_presence(Place *p);
Expr *acc_get(Way *w, Place *p);
void acc_set(Way *w, Place *p, Expr *acc, Presence presence);
/* The same of a leaf, with nothing looked for. All that changes accumulators does it by this one. */
void acc_put(Way *w, Place *leaf, Expr *acc, Presence presence);
/* Adds a cotangent that is there; parts of it may be absent all the same. */
void acc_add(Way *w, Place *p, Expr *ct);
/* The same of one that may be absent. */
void acc_add_perhaps(Way *w, Place *p, Expr *ct);
/* Adds the cotangent of an element or part, `call` being the operator that read it, in place. */
void acc_add_index(Way *w, Place *p, const Expr *call, Expr *ct);
/* A cotangent that is added to no more. */
Expr *acc_settle(Way *w, Type *type, Expr *ct);
/* Whether the whole accumulator is absent: it may be moved to. */
bool acc_is_free(Place *p);
Presence presence_join(Presence a, Presence b);
void places_reset(Instance *n);

/* ---- tangent.c ---- */
/* The instance of a call whose slots have these tangents; NULL when there are too many. */
Instance *tangent_instance(Program *p, Known *self, Known **known, const bool *active,
                           const Presence *given, uint32_t nslots, const SlotMap *numbers);
/* Makes n->forward_fn: fn (args, tangents) -> (result, its tangent), or the result alone where it has none. */
void instance_make_tangent(Instance *n);
/* A call of that function in code of the caller. */
Expr *tangent_call(Instance *caller, Instance *callee, const Expr *call, Expr *const *tangents);
/* Whether nothing was learnt, since that function was made, of the results that it was made by. */
bool tangent_holds(const Instance *n);
/* Whether a call is in them. */
bool step_calls(const Step *s);
bool steps_call(const Steps *steps);

Presence tangent_presence(Place *p);
/* Whether the tangent of an operator's result does not depend on that of argument i. */
bool tangent_ignores(const Instance *n, const Expr *call, uint32_t i);

/* ---- demand.c ---- */
/* Fills in n->read. */
void tangents_find_read(Instance *n);
/* Whether something reads the tangent of p, or of a part of it. */
bool tangent_is_read(const Map *read, const Place *p);

/* ---- nested.c ---- */
void follow_builtin(Way *w, Step *s);
void way_builtin(Way *w, Step *s, Expr *ct);
/* Hands the cotangent of a part over to the accumulator of the whole, which is put together here and has no such part yet;
 * false where it is to be added. */
bool move_part(Way *w, const Step *s, Presence presence);

/* How the rule of an operator is written out. */
typedef struct RuleUse {
    Instance *n;
    Expr *const *atoms; /* the operator's arguments and its result */
    uint32_t natoms;
    bool follows;    /* Expr.follows, where the rule is the library's */
    Map shapes;      /* Var -> Shape: of cotangents or tangents, and of what the rule binds */
    bool identities; /* operators stay that give their first argument, and operands for shapes */
} RuleUse;

/* ---- shape.c: Note [Known shapes] ---- */
/* The shape of an atom. own: what is known beside what n knows, or NULL. */
const Shape *shape_of_atom(Instance *n, const Map *own, const Expr *atom);
/* That of an operator's result; NULL: nothing is known of it. */
const Shape *shape_of_call(Instance *n, const Expr *call, const Shape *const *args);
/* Notes in `shapes` that v has it. */
void shape_know(Map *shapes, const Var *v, const Shape *s);
/* Notes the shape of v, which is bound to e. */
void shape_note(Instance *n, Var *v, const Expr *e);
/* Whether the operator brings its first argument to a shape that it has. */
bool shape_is_kept(const Expr *call, const Shape *const *args);
bool shape_keeps(Instance *n, const Expr *call);
/* The variable in place of the last argument where that gives its shape only, perhaps one that the rule is given; NULL: it stays. */
Expr *shape_operand(const RuleUse *use, const Expr *call, const Shape *of);
/* The code with one variable for all that are free in it and are read for one shape only: one that is read for its elements
 * where there is such a one. vars: those that are free in it, before and behind. */
Expr *shape_of_kept(Instance *n, Expr *code, VarVec *vars);
/* The type of an operator's result of that shape; NULL: it is not known. */
Type *shape_type(const Expr *call, const Shape *const *args, const Shape *s);
/* The first argument of a call that gives it unchanged, with the type of the result where it says less. */
Expr *shape_kept(const Expr *call);

/* ---- gather.c ---- */
/* The code of a way back with its additions to parts of one accumulator behind each other. */
Expr *gather_additions(Expr *code);

/* ---- rule.c ---- */
/* A derivative rule with the types of its arguments. */
Expr *rule_settle(RuleUse *use, Expr *e);
/* Whether the operator gives its first argument unchanged, since that is like the second one already. */
bool is_identity(const Expr *call);
void way_operator(Way *w, Step *s, Expr *ct);

/* ---- own.c ---- */
/* Whether fn is what `checkpoint` or `custom_grad` gives. */
bool own_is(PassCtx *ctx, const Expr *fn, GradKind kind);
/* What a global is that checkpoint or custom_grad gave; NULL where it is not known. */
Known *own_of_global(Reader *r, Global *g);
Expr *read_own(Reader *r, Expr *e);
/* A call of the prelude's `custom_grad` as what it does; any other expression as it is. */
Expr *own_unfold(Reader *r, Expr *e);
/* Whether a function that is known may read a reference, or write to one. */
bool own_meets_references(Reader *r, const Known *k);
/* Whether a call of a function that is known may write to a reference. */
bool call_may_write(Instance *n, const Step *call);
/* The function, or functions, that checkpoint or custom_grad was given. */
Expr *own_captured(Way *w, const Step *s);
/* The frame of another run of the function that checkpoint was given. */
Expr *own_run_again(Way *w, const Step *s, Instance *callee);
void way_custom(Way *w, Step *s, Expr *ct);

/* ---- alias.c ---- */
/* Adds a cotangent to the value that p names, which the frame tells, by `add`; false where p is no other name. */
typedef void AddToPlace(Way *w, Place *p, Expr *ct);
bool alias_add(Way *w, Place *p, Expr *ct, AddToPlace *add);
/* Emits `run` once for each value that places in p may name: in it they are those. */
typedef void (*AliasRun)(Way *w, void *ctx);
void alias_each(Way *w, Place *const *places, uint32_t n, AliasRun run, void *ctx);
/* A value that was free, and the part of a result that gave it its cotangent. */
typedef struct PartGiven {
    const Place *place;
    Path path;
} PartGiven;
/* What leaves an arm of a branch, or a function. */
typedef struct Leaving {
    Step *branch; /* NULL: a function */
    uint32_t choice;
    const Steps *end;
    VEC(PartGiven) given;
} Leaving;
/* Gives the result its cotangent. A part of it that is not free is another name of a value from the next round on. */
void alias_leave(Way *w, Leaving *from, Place *result, Expr *ct);
/* Takes the names that the results of the callee have. */
void alias_take(Way *w, Step *s);
/* The value that p is whatever runs, or p. */
Place *alias_settled(const Place *p);
/* Whether two places are one value, asked on the way forth. */
Expr *alias_ask(Program *program, const Build *b, const Place *one, const Place *other);
void alias_forget(Place *p);

/* ---- back.c ---- */
typedef struct Arms {
    uint32_t narms;
    Expr **tests; /* narms - 1: whether it is that arm */
    void (*run)(Way *w, void *ctx, uint32_t arm);
    Expr *(*close)(Way *w, void *ctx, uint32_t arm, Expr *body); /* or NULL */
    void *ctx;
} Arms;
/* Emits the code of all arms; the accumulators that some arm changed are what the choice gives. */
void way_choose(Way *w, const Arms *arms);
/* Makes what follows each frame. */
void back_make(Back *k);
/* Moves a cotangent to a result that is another name of p. */
void acc_move(Way *w, Place *p, Expr *acc, Presence presence);
/* A part of an accumulator of p, as that of a place of its own. */
Place acc_part(Way *w, const Place *p, uint32_t i, Expr *acc, Presence presence);
/* From the place of a result or argument to where it came from. */
void way_steps(Way *w, Steps *steps);
/* Between these two the parts of what an arm takes apart have accumulators of their own. */
void enter_arm(Way *w, const Choice *c);
void leave_arm(Way *w, const Choice *c);

/* ---- outline.c: Note [Outlines] ---- */
typedef VEC(Expr *) Exprs;
/* The outline of a cotangent of which nothing is known. */
#define ANY_SEED "?"
/* Adds the outline of a cotangent. result: the type that the function says of its result. */
void outline_add_ct(Str *text, const Expr *ct, Type *result);
/* Adds the outline of the accumulator of p, and gives that accumulator, both in the form of `like`. */
Expr *outline_add_acc(Way *w, Str *text, Place *like, Place *p);
/* What holds of both. */
const char *outline_join(const char *a, const char *b);
uint32_t outline_count(const char *text); /* of the values that are handed over */
Presence outline_presence(const char *text);
/* Adds those values, and moves the text to the next outline. */
void outline_flatten(const char **text, Expr *value, Exprs *args);
/* The cotangent of a result of that type, or the accumulator of a place, made of new parameters. */
Expr *outline_take_ct(const Build *b, const char **text, Type *result, Exprs *params);
Expr *outline_take_acc(const Build *b, const char **text, const Place *p, Exprs *params);
/* Adds the types of these values, of an accumulator of that type in the form of p. */
typedef VEC(Type *) Types;
void outline_add_types(const char **text, const Place *p, Type *type, Types *types);
/* The accumulators in what a way back gave. */
typedef struct Results {
    Block *block;     /* where parts of the value are bound */
    const char *text; /* outlines of the accumulators to come */
    Expr *value;      /* a variable */
    uint32_t count, next;
} Results;
/* The next one. p: its place in the function called; type: its type where the call is. */
Expr *outline_take_result(Results *r, const Place *p, Type *type);

/* ---- backs.c ---- */
Back *back_get(Instance *n, bool is_loop, const char *known);
/* The outline of what it gives; NULL while none of its ends has been reached. */
const char *back_out(Back *k);
/* It is reached anew, and no code was made by what it gives. */
void back_begin_round(Back *k);
/* Nothing is known of what it gives. */
void back_learn_nothing(Back *k);
/* The accumulators of all slots as the result of the way back that is being made. */
Expr *back_give(Way *w);
/* The same of a loop at its last frame. */
Expr *back_give_entry(const Build *b, Back *loop);
/* The type of what has this outline, its slots being of these types; NULL: of their own. */
Type *outline_type(const Instance *n, const char *text, Type *const *slots);
/* The type of what it gives. */
Type *back_type(Back *k);
/* The accumulators in a value of this outline. */
Results back_results(Block *block, const char *out, Expr *value);
/* Calls the loop that pops the frames of the function itself. */
Expr *back_call_loop(Way *w, Expr *chain);
/* What a call of a way back hands over besides the cotangent. */
typedef struct CallOfBack {
    Expr *frame;        /* NULL where the callee replays */
    const Expr *call;   /* the call on the way forth */
    Type *const *types; /* of the slots where the call is */
    Expr **accs;        /* filled in by back_call: of the slots that are shared */
} CallOfBack;
/* Calls a way back of n, the slots of which are these places. out: the outline of what it gives; NULL while that tells
 * nothing. */
Expr *back_call(Way *w, Instance *n, Place *const *places, const CallOfBack *of, Expr *ct,
                const char **out);
/* Adds those of the arguments of a call of n that its way back takes beside a frame, or in place of it. */
void add_kept_args(const Instance *n, const Expr *call, Exprs *args);

/* What the way back of a loop, or of a function that calls itself, reads and what is the same in each step or call is no part
 * of the frames but goes beside them; parts of it are taken from it again. vars: those that are free in `back`; outside: of these, those
 * that the frame holds. */
Expr *keep_constants(Instance *n, Expr *back, const VarVec *vars, Map *outside);

/* ---- replay.c: Note [Replays] in reverse.h ---- */
/* Finds the instances that are replayed. true: there are some, and all ways back are to be made again. */
bool replay_choose(Program *p);
/* Whether the way back of one reads what the function captured. */
bool replay_needs_self(const Instance *n);
/* Whether the call is of an operator on scalars. */
bool is_scalar_operator(const Expr *call);

/* ---- chain.c ---- */
/* Fills in `own_chain` of the loops that were reached, when all that they save is known. */
void chains_find(Program *p, const Instance *top);

/* ---- derive.c ---- */
/* Whether a part of the type may be anything, or with `dtypes` of any dtype. */
bool type_is_open(Type *t, bool dtypes);
/* Whether a function does not call itself, by whatever way. */
bool instance_is_straight(Instance *n);

/* ---- make.c ---- */
/* Reads the function that a step calls, for what it does. NULL: it was read so before, or there are too many. */
Instance *instance_see(Program *p, const Step *s);
/* Whether there is room for one more beside so many; leaves the program where there is none. */
bool instance_fits(Program *p, size_t count);
/* Reads the function of a new instance. */
void instance_read(Instance *n);
Instance *instance_new(Program *p, Known *self, Known **known, const bool *active, uint32_t nslots,
                       const SlotMap *numbers);
bool instance_is_of(const Instance *n, const Known *self, Known *const *known, const bool *active,
                    const SlotMap *numbers);
/* Each active argument has a slot of its own. */
SlotMap slots_apart(uint32_t n);
bool slots_equal(const SlotMap *a, const SlotMap *b);
/* Before the result of a return come the frames so far, where there are loops, and which return it is. */
uint32_t frame_head(const Instance *n);
/* A call of an instance that is replayed, for its value alone. */
Expr *value_call(Instance *callee, Expr *call);
void instance_finish(Instance *n);
Global *instance_global(const char *name);
/* Whether the call of a step is an operator that gives its first argument, which stands in place of it. */
bool step_is_identity(Instance *n, const Step *s);
/* needed: of the variables that the steps bind those that are, where they run again; NULL: all of them. */
void forward_steps(Instance *n, Steps *steps, const Map *needed, Block *into);
/* The function's own parameters, the closure first where it captured something, whose variables are bound in `into`. */
Var **forward_params(Instance *n, const Build *b, Block *into, uint32_t *count);
/* The `if` or `match` e with these arms. */
Expr *expr_with_arms(const Expr *e, Expr *scrutinee, Expr **bodies, Type *type);
/* The branch of a step with these arms. */
Expr *choices_of(const Step *s, Expr **bodies);
void emit_let(Block *into, Var *v, Expr *value, bool rec);
/* mirrors: of the slots, where accumulators are cells. */
Expr *forward_call(Instance *callee, const Expr *call, Expr *const *mirrors, Expr *chain);
/* Whether the frames of a loop hold nothing, so that their number serves: Note [Frames] in reverse.h. */
bool counts_frames(const Instance *n);
/* The type of these frames, or of their number. */
Type *chain_type(const Instance *n);
Expr *first_frame(const Build *b);
bool is_first_frame(const Expr *e);
#endif
