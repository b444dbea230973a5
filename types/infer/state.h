/* SPDX-License-Identifier: Apache-2.0 */
/* Inference at work: its state, and what its files offer one another. Private to
 * types/infer and types/mend.
 *
 * Note [Settling]. A node whose final form depends on types that may become known later (a literal,
 * an index, `!`, `==`, a cast, a flow that may need a run-time check, a match to be proved
 * exhaustive) is made in its general form and noted in `pending`; infer_settle visits the notes at
 * the end of the item, in order, and completes the nodes in place.
 *
 * Note [Effects]. `effect` is the accumulated effect of the function body or let being inferred, a
 * KIND_EFFECT type. Calls join the effect of their callee's arrow into it. An arrow of a function
 * literal has an effect variable of its own: left open, it is pure. A let generalises when its
 * right side's effect is open, made inside it, and watched by no relation.
 *
 * Note [Time]. `time` counts bindings. A variable is in scope from `enter` up to `leave`; a pending
 * node knows when it was made, so that settling finds variables that may supply a size or a dtype. */
#ifndef TYPES_INFER_STATE_H
#define TYPES_INFER_STATE_H

#include "types/core/env_impl.h"
#include "types/infer/infer.h"

typedef struct Infer Infer;

/* ---- scopes ---------------------------------------------------------------------------------- */

/* A function body being inferred; the parameters of enclosing ones supply dtypes and sizes. */
typedef struct FnCtx FnCtx;
struct FnCtx {
    FnCtx *outer;
    Var **params;
    uint32_t nparams;
    const Symbol *name;
};

/* A `let` of a block whose value is being inferred, and those around it. */
typedef struct OpenBinding OpenBinding;
struct OpenBinding {
    const Ast *let;
    const OpenBinding *outer;
};

typedef struct Local Local;
typedef struct Slot Slot; /* infer/memory.c */
struct Local {
    const Symbol *name;
    Var *var;
    Expr *lazy; /* a graph binding that is evaluated on demand: the expression of its cell */
    Slot *slot; /* a tensor that was allocated, a storage or a tuple that holds one; else NULL */
    bool sigil; /* bound with `%` */
    bool used;
    uint32_t enter, leave;
    Local *shadowed;
    Map *opened; /* TypeDecl -> the unknowns as which the own dims of its value were opened */
};

/* A type parameter in scope. Its Type is made at its first use, when its kind is known. */
typedef struct TypeParam TypeParam;
struct TypeParam {
    const Symbol *name;
    Kind kind;
    bool kind_known;
    bool open; /* a `where` is being read that may show what the parameter is */
    Type *type;
    Type *rigid; /* the TY_PARAM, where `type` is what the `where` shows it to be; else NULL */
    Span span;   /* the place of its declaration */
    Span use;    /* the use that settled its kind */
    TypeParam *shadowed;
};

/* A signature or function type that is being read: types after a parameter may have its name (infer/named.c). */
typedef struct NamedScope NamedScope;
struct NamedScope {
    NamedScope *outer;
    uint32_t n; /* parameters read so far */
    const Symbol **names;
    Type **types;
    Type **named; /* the unknown that each is in the types, where one mentions it; else NULL */
    bool any;
};

/* ---- notes ----------------------------------------------------------------------------------- */

typedef enum PendingKind {
    PENDING_LIT, /* expr LIT or CONST: its dtype; numbers */
    PENDING_INDEX,
    PENDING_BANG,
    PENDING_EQUAL,
    PENDING_FIELD,
    PENDING_CAST, /* expr CALL of cast; type: the dtype */
    PENDING_ZERO,
    PENDING_DIM,   /* expr: a dim parameter as a value; type: the dim */
    PENDING_SIZES, /* expr CALL: attrs hold sizes */
    PENDING_READ,  /* expr GLOBAL: a use of what reads a file (read.c) */
    PENDING_TYPED, /* expr GLOBAL: a use of what has a form for known types (redefine.c) */
    PENDING_COPY, /* expr GLOBAL: a use of what runs as copies; from: the tuple of its type arguments */
    PENDING_FLOW,    /* expr: value node to be checked; from, to */
    PENDING_MATCH,   /* expr MATCH: is it exhaustive */
    PENDING_DISCARD, /* expr: a value that is thrown away must be () */
    PENDING_HOLE,
} PendingKind;

/* The numbers of a tensor literal as its text has them, row-major. */
typedef struct Numbers {
    uint32_t rank;
    int64_t shape[TENSOR_MAX_RANK];
    size_t n;
    bool is_float, is_bool;
    const int64_t *ints; /* when no element has a dot */
    const double *floats;
    const Span *spans;
} Numbers;

typedef struct Pending {
    PendingKind kind;
    Expr *expr;
    Type *from, *to;
    Numbers *numbers;
    FnCtx *fn;
    uint32_t time;
    TypePlace place; /* FLOW: argument `x` of `f` */
    Ast *hole;       /* HOLE */
    Expr *call;      /* FLOW of argument `arg` of this call, or NULL */
    uint32_t arg;
    Type *given; /* FLOW to the written result of this function, or NULL: solver_set_given */
    Span span;
} Pending;

/* A dtype that is `dtype` when nothing settles it: of `[]`, of a literal that no int32 holds. */
typedef struct Fallback {
    Type *var;
    DType dtype;
} Fallback;

/* The item being checked, or a group of definitions. */
typedef struct Checked {
    Item *const *items;
    Global *const *globals; /* NULL: of an expression */
    uint32_t n;             /* 0: none that can be checked again */
} Checked;

typedef VEC(Local *) LocalVec;

/* A hole whose item was checked, with what it takes to try what would fit (mend/hole.c). */
typedef struct Hole {
    Pending note;
    Diag *diag;       /* the message that says what is wanted */
    const char *want; /* the type that is wanted. Later items may tell more of it */
    TypeNamer namer;  /* of the type variables in `want` */
    bool alone;       /* it is the only hole of its item */
    bool uses_open;   /* the item uses a definition whose type is open: a trial would settle that */
    Checked checked;  /* the item */
    Global *
        globals; /* copies of the checked.n globals as they were then; NULL where the item is an expression */
    LocalVec locals;   /* the item's locals, the newest last */
    uint32_t position; /* of the item */
} Hole;

typedef struct NumberedUnknown {
    int64_t number; /* of `?1` */
    Type *unknown;
} NumberedUnknown;

typedef struct Changed {
    const Symbol *name;
    bool same_type; /* and asks the same of its callers: only definitions that no longer checked are
                       checked again */
} Changed;

/* ---- the state ------------------------------------------------------------------------------- */

/* What a name of the file being checked is, before it is bound in the Env. */
typedef struct FileName FileName;
struct FileName {
    Item *item;
    uint32_t position; /* of its item */
    Global *global;    /* def, let, free_var */
    FileName *earlier; /* the item before it that binds the same name */
};

/* The type of a parameter or result that is left out, and the type with which the item would check (infer/widen.c). */
typedef struct Widening {
    AstType **place;
    AstType *type;
    AstType *vector; /* where that has any shape: the type with one axis, or NULL */
} Widening;

struct Infer {
    Env *env;
    Map checked_results; /* a set of Expr: calls and functions whose results are checked (settle_results) */
    Solver *s;
    Diags *diags;
    const Module *module;
    InferMode mode;
    Map locals;     /* Symbol -> Local */
    LocalVec trail; /* the locals in scope, in the order in which they were bound */
    LocalVec all;   /* all locals of this item, for supply.c */
    uint32_t time;
    uint32_t pattern_depth; /* how many patterns are around the one being read */
    bool pattern_binds;     /* it is one of a `let` or parameter, where a bare name is a variable */
    const OpenBinding *binding; /* the innermost one, or NULL */
    Map type_params;            /* Symbol -> TypeParam */
    VEC(TypeParam *) type_trail;
    FnCtx *fn;
    Type *effect;
    VEC(Pending) pending;
    VEC(Hole) holes; /* the holes of all items so far */
    VEC(Fallback) fallbacks;
    VEC(Widening) widenings; /* what would let the item check that is being inferred */
    bool keeps_parts;        /* infer_widen_parts notes nothing */
    bool open_state;         /* the item has a loop whose state has no known rank: infer/grow.c */
    VEC(const Scheme *)
    schemes;           /* made in this item: their relations may say what supplies a dtype */
    const Op *rule_op; /* in a derivative rule: its operator */
    Map names;         /* Symbol -> FileName: items of this file */
    uint32_t position; /* of the item being checked */
    Checked checked;
    bool trial;           /* a name stands in the place of a hole, and other holes may stay */
    bool unread;          /* the text was edited: infer_begin_trial */
    Global *current;      /* the global being checked, whose uses are noted */
    Map *used;            /* its uses so far */
    VEC(Rule *) rules;    /* the rules that were checked, to be bound */
    VEC(Changed) changed; /* names bound anew: redefine.c */
    Map types_anew;       /* Symbol: names of types declared again at the prompt */
    VEC(const char *)
    failed_types;       /* types that mention such a type and could not be declared anew */
    size_t item_errors; /* diags->errors when the item began */
    bool uses_failed; /* the item uses a definition that failed, so less is known than is written */
    size_t item_diags;         /* diags->list.len then */
    VEC(TypeParam *) own_dims; /* in a type declaration: the dims it does not declare */
    Map reads;                 /* use of what reads a file -> its call: read.c */
    Map headers;               /* Symbol of a path -> FileHeader: read.c */
    Map sizes;                 /* unknown size -> the expression it is the value of */
    Map beside;                /* literal -> the operator's call that it is an argument of */
    Map argument_sizes;        /* argument -> the unknown size that it is the value of */
    NamedScope *naming;        /* the innermost function type being read, or NULL */
    bool in_decl;
    int of_several,
        of_calls;        /* the type that is read is of elements, of what calls take and give: Note
                                 [Each its own size] in unknown.c; there `?1` is the same in one call */
    TypePlace annotates; /* what the type being read is for: the field `w` of `P` */
    bool infer_where;    /* the enclosing signature has no `where` */
    uint32_t signature;  /* nesting of types that are read as one: their `?1` is one unknown */
    VEC(NumberedUnknown) numbered; /* the numbered unknowns so far */
    bool builtin;                  /* in an `operator … from "builtin"` item */
    bool has_graph;                /* the source has graph bindings */
    Map graph_sites; /* Ast link -> sites whose cell is made before it: infer/graph.c */
    Map graph_lazy;  /* Ast of a graph binding -> its site, when it is evaluated on demand */
    bool has_slots;  /* a name stands for a slot: infer/memory.c */
};

/* The checker recurses over nesting, which may be 100,000 deep: the stack it asks for. */
enum { CHECK_STACK = 1 << 30 };

/* Whether the item being checked has had its error, so that others stay unsaid. */
bool infer_failed(const Infer *I);
bool infer_too_deep(Infer *I, const char *what,
                    Span span); /* whether the nesting has too many levels of generalisation */
/* Reports unless the item already had its error; NULL then. `d` may get more labels and facts. */
Diag *infer_error(Infer *I, DiagCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
Diag *infer_warning(Infer *I, DiagCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- infer.c: state -------------------------------------------------------------------------- */

void infer_init(Infer *I, Env *env, const Module *module, InferMode mode, Diags *diags);
/* What is checked from here on is an edited text: its work is drawn from the budget, and no suggestions are
 * looked for in its messages. */
void infer_begin_trial(Infer *I);
void infer_count(const Infer *I); /* adds the work of its solver to the Env's counts, at the end */
void infer_begin_item(Infer *I);
/* Solves, settles; false when the item had an error. */
bool infer_finish_item(Infer *I);

/* ---- infer/widen.c --------------------------------------------------------------------------- */

/* The item being inferred failed, and would not with this type of the parameter. */
void infer_note_widening(Infer *I, AstParam *param, Type *type);
/* Notes a widening for each parameter of the definition whose shape would have to be that of a part chosen by a mask
 * (Note [Parts of a parameter]). */
void infer_widen_parts(Infer *I, AstFn *fn, const Scheme *scheme, bool recursive);
/* Notes one for the result of a definition of this type that calls itself, where each call has its own size:
 * Note [Results of a recursion]. */
void infer_widen_result(Infer *I, AstFn *fn, const Type *type);
/* Notes one for each parameter of a definition that failed, whose size would have to contain itself. */
void infer_widen_sizes(Infer *I, AstFn *fn, const Type *type);
/* Infers an item, and where it noted a widening, once more with it. */
bool infer_widening(Infer *I, bool (*infer)(Infer *I, void *item), void *item);

/* ---- infer/scope.c --------------------------------------------------------------------------- */

size_t scope_mark(const Infer *I);
Local *scope_bind(Infer *I, const Symbol *name, bool sigil, Var *var);
void scope_warn_hidden(Infer *I,
                       const Name *name); /* warns if the name hides a constructor (R0904) */
void scope_hide_ctor(Infer *I, const Name *name); /* an item hides it, from here on */
void scope_restore(Infer *I, size_t mark);
size_t type_scope_mark(const Infer *I);
TypeParam *type_scope_bind(Infer *I, const AstTypeParam *declared);
void type_scope_enter(Infer *I, TypeParam *p); /* one that was bound before, in another scope */
TypeParam *type_scope_bind_to(Infer *I, const Symbol *name, Type *type);
void type_scope_restore(Infer *I, size_t mark);
TypeParam *type_scope_find(const Infer *I, const Symbol *name);

typedef enum NameKind {
    NAME_NONE,
    NAME_LOCAL,
    NAME_GLOBAL,
    NAME_CTOR,
    NAME_OP,
    NAME_DIM,
    NAME_ATTR,
} NameKind;
typedef struct Resolved {
    NameKind kind;
    Local *local;
    Global *global;
    Ctor *ctor;
    const Op *op;
    TypeParam *param;
} Resolved;
/* LANGUAGE §1. Marks locals used; notes uses of globals. Reports nothing. */
Resolved scope_resolve(Infer *I, const Name *name);
Ctor *scope_find_ctor(Infer *I, const Symbol *name);

/* ---- infer/suggest.c ------------------------------------------------------------------------- */

void scope_report_unknown(Infer *I, const Name *name); /* R0101, with the nearest name */
/* Where a `let` around binds the name, and a line break in its value was to end it, adds that to the message. */
bool scope_report_open_binding(Infer *I, Diag *d, const Name *name);
/* What a name of another language is in Relay, in words, or NULL. */
const char *infer_habit_of(const Symbol *name);
/* What to write where a function of the library is given that many arguments, as elsewhere, or NULL. */
const char *infer_arity_habit(const Global *callee, uint32_t nargs);
/* The nearest of all visible names, or NULL; `types`: among types. */
const Symbol *env_suggest(Env *env, const Symbol *name, bool types);

/* ---- ast_type.c ------------------------------------------------------------------------------ */

/* Whether the declaration, and all that it leads to, is read to its end. */
bool ast_type_is_declared(TypeDecl *decl);
/* Never NULL: the error type (or an unknown) after a diagnostic. */
Type *infer_ast_type(Infer *I, const AstType *t, Kind kind);
/* The types of a signature, read between these, are one type: `?1` is one unknown in all of them. */
void signature_enter(Infer *I);
void signature_leave(Infer *I);
/* Whether no part is left to inference: no `_`. */
bool ast_type_is_full(const AstType *t);
/* `where`: its relations are facts from here on. The parameters are opened before the types are read
 * that use them, and are known (TypeParam.type is set) afterwards. False after a diagnostic. */
void where_open(Infer *I, TypeParam *const *declared, size_t n, const AstConstraintVec *where);
bool where_assume(Infer *I, TypeParam *const *declared, size_t n, const AstConstraintVec *where);
/* The TY_PARAM of a declared parameter. */
Type *type_param_rigid(Infer *I, TypeParam *p);
/* fn [A](…) -> … where …, quantified at its head: the scheme. */
Scheme *infer_ast_scheme(Infer *I, const AstType *t);
/* The same before what it annotates is checked: the effect of calling it is not known yet. */
Scheme *annotation_announce(Infer *I, const AstType *t);
/* The annotation of a value to be checked: its parameters are rigid at the current level, its
 * `where` are facts until annotation_end. */
typedef struct AnnotationHead {
    Type **declared;
    uint32_t ndeclared;
    bool has_where;
    size_t facts;
    bool infer_where; /* of the enclosing signature */
} AnnotationHead;
Type *annotation_begin(Infer *I, const AstType *t, AnnotationHead *head);
void annotation_end(Infer *I, const AnnotationHead *head);
const char *kind_name(Kind kind);
bool kind_find(const Symbol *name, Kind *out);

/* ---- decl.c ---------------------------------------------------------------------------------- */

/* Declares all types of a module's items (mutually recursive as they like) in the Env. False after
 * a diagnostic. decls[i] belongs to items.data[i], NULL where that is no type. */
bool infer_type_decls(Infer *I, Item *const *items, size_t n, TypeDecl **decls);
/* Instance of a declaration: fresh variables for its parameters; own dims as `exists` says. */
typedef struct CtorInstance {
    Type *data; /* the type built */
    Type **fields;
    Type **exists; /* what stands for the declaration's own dims */
} CtorInstance;
typedef enum Opening {
    OPEN_FLEXIBLE /* a value is built */,
    OPEN_UNKNOWN /* a value is taken apart */
} Opening;
/* args: the declaration's parameters, NULL for fresh variables; exists: its own dims, NULL for new
 * ones as `opening` says. */
CtorInstance ctor_instantiate(Infer *I, const Ctor *ctor, Type **args, Opening opening,
                              Type **exists);
/* What stands for one of a declaration's own dims where a value is taken apart. */
Type *ctor_open_own(Infer *I, Type *own);

/* ---- infer/flow.c: types meeting ------------------------------------------------------------- */

/* The type flows to where `want` is expected: unified with sub-shaping; a note for run-time checks.
 * Reports R02xx/R03xx in terms of `place`. Returns the expression to use (checks around it). */
/* Helps where a row of floats for each class is asked for, and the number of the class is there. */
void infer_add_classes(Diag *d, Type *want, Type *from);
Expr *infer_flow(Infer *I, Expr *e, Type *want, TypePlace place, Span want_span);
/* 1 + the index of the pending flow of e, if that is the last; else 0. */
size_t infer_last_flow(const Infer *I, const Expr *e);
/* The arguments of one call may have to agree in size: notes whose pending flows (0: none) they are. */
void infer_tie_flows(Infer *I, Expr *call, const size_t *flows);
/* What differs of two types that did not meet, as facts of d: the path, the sizes, their origin. */
void diag_add_mismatch(Infer *I, Diag *d, TypeNamer *namer);
/* R02… or R03… for the solver's last mismatch. */
DiagCode mismatch_code(const Mismatch *m, DiagCode otherwise);
/* Settles fallbacks of the current level or deeper; before a scheme is made. */
void infer_fall_back(Infer *I);
Scheme *infer_generalise(Infer *I, Type *t, bool mono);
/* Joins the types of arms one after the other; both places are shown when they differ. */
typedef struct Join {
    Type *type;
    Span span;
    const char *noun;
    DiagCode code;
    bool elements; /* the elements of data: each may have its own size */
} Join;
bool infer_join(Infer *I, Join *join, const Expr *arm);

/* ---- infer/expr.c and friends ---------------------------------------------------------------- */

/* want: what is expected there, as a hint (may be NULL); the caller flows the result. */
Expr *infer_expr(Infer *I, Ast *e, Type *want);
/* infer_expr, then infer_flow to `want`. */
Expr *infer_check(Infer *I, Ast *e, Type *want, TypePlace place, Span want_span);
Expr *infer_error_expr(Span span);
Type **infer_type_args(Infer *I, const Ast *e);
/* The copy of a definition made for explicit type arguments that nothing else supplies at run time;
 * g itself when its parameters supply them. */
Global *infer_specialised(Infer *I, Global *g, Type **type_args, uint32_t n, Span span);
/* A use of a definition NAME of the prelude that has a form `_typed.NAME`, which names the types it is used at: it
 * stands for that form where those are known when the item ends, as `list.sum` does, whose form has the zero. */
void infer_note_typed(Infer *I, Expr *use);
/* Where a value has been inferred that is no function: what is still open of such uses is an int32. The value's
 * own are pending[from..]; those before it belong to scopes that are not at their end. */
void infer_default_typed(Infer *I, size_t from);
void settle_typed(Infer *I, Expr *use);
/* Binds e to a fresh variable unless it is trivial; *slot gets what stands for it. */
typedef struct LetStack {
    VEC(Var *) vars;
    VEC(Expr *) values;
} LetStack;
Expr *let_stack_add(LetStack *lets, Expr *e, const char *name);
Expr *let_stack_wrap(LetStack *lets, Expr *body);

Expr *infer_chain(Infer *I, Ast *e, Type *want); /* infer/chain.c */
/* The right side of a let (name NULL: `_`): a level of its own, generalised as far as may be. */
typedef struct LetValue {
    Expr *value;
    Scheme *scheme;
    bool rec;
} LetValue;
/* global: of an item, or NULL. pattern: takes the value apart, or NULL. */
LetValue infer_let_value(Infer *I, const Name *name, const AstType *annotation,
                         const AstPattern *pattern, Ast *e, Var *var, Global *global);
Relation *infer_post(Infer *I, const RelDef *def, Type **args, uint32_t n, const Attrs *attrs,
                     Span span, const Expr *call, Expr *const *operands, uint32_t noperands);
Expr *infer_fn(Infer *I, Ast *e, const Symbol *name, Type *want); /* infer/fn.c */
/* A function's signature: declared parameters are in scope until fn_end. */
typedef struct FnHead {
    const AstFn *fn;
    Type *type;   /* the function's type; its result may be a variable */
    Type *result; /* that variable, where the caller of fn_begin made it; else NULL */
    VEC(TypeParam *) declared;
    size_t type_mark, facts;
    Type **named; /* the names of its parameters in its types as written, or NULL: infer/named.c */
    uint32_t params,
        mark;       /* type variables with ids between these are in the types of its parameters */
    const Fn *made; /* what fn_body made */
    struct Global *global; /* by which its own body calls it, if it has a name: a global, or */
    struct Local *self;
    bool recursive;   /* its body calls it */
    bool infer_where; /* of the enclosing function */
} FnHead;
void fn_begin(Infer *I, const AstFn *fn, FnHead *head);
/* infer/named.c: Note [Named parameters]. A function type is read between named_open and named_close, which gives the
 * names that were mentioned, or NULL. scope->n parameters have been read. */
void named_open(Infer *I, NamedScope *scope, const Symbol **names, Type **types, uint32_t n);
Type **named_close(Infer *I);
/* The size of that name: of a parameter read before, or of a function around. NULL where there is none. */
Type *named_find(Infer *I, const Symbol *name, Span span);
/* Refuses a parameter's type in which a name stands where no call could compare it. */
void named_check_places(Infer *I, const NamedScope *scope, Type *type, Span span);
/* In the body: a parameter's type, the type that the result must have; the body after arguments were compared. */
Type *named_of_param(const Fn *f, Type *const *named, Type *t);
Type *named_of_result(Infer *I, const Fn *f, Type *const *named, Type *t);
Expr *named_compare_arguments(Infer *I, Fn *f, const Type *type, Expr *body);
/* The result's type with names for the sizes that parameters are. `named` gets those and the written ones. */
Type *named_result(const Fn *f, Type *const *written, Type ***named, Type *result);
/* The sizes among the unknowns of a definition's scheme that are arguments: Scheme.sizes. */
void named_note_sizes(const Fn *f, Scheme *scheme);
/* The callee's type after its argument i. sizes: those that solver_take_sizes gave for the callee, or NULL. */
Type *named_give(Infer *I, Type *fn, Type *const *sizes, uint32_t i, const Expr *arg);
void fn_use_hint(Infer *I, FnHead *head, Type *want); /* before the body */
Expr *fn_body(Infer *I, FnHead *head, const Symbol *name, Span span);
/* False, or the definition is refused. */
bool fn_has_many_unknowns(Infer *I, const Scheme *scheme, const Symbol *name, Span span);
/* The scheme (at the current level, entered before fn_begin), and the end of the signature. */
Scheme *fn_end(Infer *I, FnHead *head, Type *type, const Symbol *name);
void fn_close(Infer *I, FnHead *head); /* ends the signature alone, and keeps its facts */
void fn_reopen(Infer *I,
               FnHead *head); /* after fn_close: the declared parameters are in scope again */
void fn_drop(Infer *I, FnHead *head); /* ends it without making a scheme */
bool ast_fn_is_annotated(const AstFn *fn);
Expr *infer_call(Infer *I, Ast *e, Type *want); /* infer/call.c */
Expr *infer_named_op(Infer *I, const Op *op,
                     Ast *call); /* the call of an operator as it is written */
/* infer/accept.c: the operator that a call means, whose arguments and attributes become what it takes; and the type of
 * a result whose sizes are written among the arguments, or NULL. */
const Op *infer_accept(Infer *I, const Op *op, Expr **args, uint32_t n, const Attrs **attrs);
Type *infer_written_sizes(const Op *op, const Ast *call, Expr *const *args);
/* What a call of a definition NAME of the prelude is a call of, where it gives an argument KEY that NAME has no
 * parameter for: `_KEY.NAME`, as `loop(n, f, x, checkpoint=k)` is one of `_checkpoint.loop`. NULL where there is none. */
Global *infer_find_form(Infer *I, const Global *g, const AstAttrVec *given);
/* Its name as a program writes it: of such a form that is NAME. */
const char *infer_name_shown(const Global *g);
/* The call with its arguments by name (`name=value`) at the places of their parameters, or NULL after an
 * error. who: the callee. */
Ast *infer_place_arguments(Infer *I, const Ast *call, const AstFn *fn, const char *who);
/* The same for an operator, whose attributes stay attributes; the call itself where it names no argument. */
Ast *infer_place_operands(Infer *I, const Op *op, Ast *call);

/* The call of the operator that infer_find_dyn found. */
Expr *infer_dyn_call(Infer *I, const Op *op, Ast *e);
/* load, data.csv and their like, if this is a call of one: the unknown sizes of its type come from the file. */
void infer_note_file(Infer *I, const Expr *call, Type *type);
/* read.c: a use of a global; the call of one, which the type comes from; what is to hold of both. */
bool builtin_reads_file(const char *symbol);
void infer_note_read(Infer *I, Expr *use);
void settle_read(Infer *I, Expr *use);
/* Replaces each `import_onnx("…")` by the model of that file. False after a diagnostic. */
bool infer_import_models(Infer *I);

/* Where a scope closes: what is open in the types of files is taken from their headers. */
void infer_read_headers(Infer *I);
/* infer/grow.c: a call that gives a state and a function to what makes the next state of it. */
typedef struct Growing {
    Type *state;              /* the type variable of the callee */
    uint32_t age;             /* its age: what is older is no part of this call alone */
    uint32_t function, value; /* the arguments: what makes the next state, the first state */
    uint32_t at;              /* the function's parameter that is the state */
    Type *next, *first; /* the types of the next and the first state, once they are inferred */
    Type *wanted;       /* the type that the callee asks of the function, and its place */
    TypePlace place;
    const Ast *source; /* of the function, or NULL */
    bool stopped;      /* one type is asked of all, as of other arguments */
} Growing;
/* Whether a function of this type is such a callee. */
bool growing_find(Type *fn, Growing *g);
/* What is asked of argument i, of which `want` is asked otherwise. */
Type *growing_want(Infer *I, Growing *g, uint32_t i, const Expr *arg, Type *want, TypePlace place);
/* When all arguments are seen: decides what grows. arg, fn: the first state and the function, as given. *result: the
 * type of the call's result, with unknowns where it grows. Returns arg as it flows. */
Expr *growing_close(Infer *I, Growing *g, Expr *arg, Expr *fn, TypePlace place, Type **result);
Expr *infer_apply(Infer *I, Expr *callee, Expr **args, uint32_t n, Span span, const char *who);
Expr *infer_op_call(Infer *I, const Op *op, Ast *call, Expr **args, uint32_t n, const Attrs *attrs,
                    Span span, Span op_span);
/* A call that the language itself makes of an operator, with its default attributes. */
Expr *infer_known_op(Infer *I, const Op *op, Expr **args, uint32_t n, Span span, Span op_span);
Expr *infer_ctor_call(Infer *I, const Ctor *ctor, Expr **args, uint32_t n, Ast *const *sources,
                      Type **type_args, uint32_t ntype_args, Span span);
/* Chooses the copy that runs for a use without written type arguments, by the types that inference found for them. */
void infer_settle_copy(Infer *I, Expr *use, Type *args);
Expr *infer_name(Infer *I, Ast *e, Type **type_args, uint32_t ntype_args, Type *want);
Expr *infer_local(Infer *I, Local *l, Span span);
bool callee_name(Infer *I, const Ast *e, Name *out); /* also of `nn.dense` read as a field of nn */
const Attrs *infer_attrs(Infer *I, const Op *op, const AstAttrVec *attrs,
                         Span span); /* infer/attrs.c */
/* infer/size.c: docs/sizes.md. What an expression is as a size: a dim, or NULL after a report. An unknown that no
 * variable is gets the expression as its value (Infer.sizes). */
Type *infer_size(Infer *I, Ast *e);
/* The size that a `let` of this value is: *size is set where that is a number. */
void infer_note_constant(const Expr *value, Type **size);
/* The size that stands for a value of one integer, as int64. */
Expr *infer_as_int64(Expr *e);
Expr *infer_binary(Infer *I, Ast *e, Type *want); /* infer/binary.c */
Expr *infer_unary(Infer *I, Ast *e, Type *want);
Expr *infer_literal(Infer *I, Ast *e, bool negative); /* infer/literal.c */
/* The literal e at the type of a scalar operand that it stands beside; NULL where its own dtype says more. */
Expr *infer_literal_beside(Infer *I, Ast *e, Type *operand);
Expr *infer_int(Infer *I, int64_t n, Span span); /* an integer literal that was left out */
Expr *infer_tensor(Infer *I, Ast *e, Type *want);
Expr *infer_meta(Infer *I, Ast *e);
Expr *infer_index(Infer *I, Ast *e); /* infer/index.c */
Expr *infer_with_at(Infer *I, Ast *e);
Expr *infer_proj(Infer *I, Ast *e);
Expr *infer_field(Infer *I, Ast *e); /* infer/record.c */
Expr *infer_record(Infer *I, Ast *e, Type *want);
Expr *infer_with(Infer *I, Ast *e, Type *want);
void infer_know_records(Infer *I);              /* a field name may decide which type is meant */
Expr *infer_list(Infer *I, Ast *e, Type *want); /* infer/record.c */
Expr *infer_cons_chain(Infer *I, Ast *e, Type *want);
Expr *infer_ref_write(Infer *I, Ast *e);
Expr *infer_cast(Infer *I, Ast *e);
Expr *infer_zero(Infer *I, Ast *e);
/* The named data of a variable's own dims, opened once (LANGUAGE §2). */
Type **infer_opened(Infer *I, const Expr *value, const Ctor *ctor);
Pattern *infer_pattern(Infer *I, const AstPattern *p, Type *type, const Expr *value);
/* A value of the type is taken apart by a pattern that binds: its form is settled by that, and the pattern has to
 * take every value. Binds nothing. */
void infer_take_apart(Infer *I, const AstPattern *p, Type *type);

/* Graph bindings used outside the block that makes them (infer/graph.c): evaluated on first demand,
 * through a cell made before the link of the innermost block around all uses. */
void infer_graph_plan(Infer *I, Ast *body);
bool infer_graph_is_lazy(const Infer *I, const Ast *link);
void infer_graph_enter_link(Infer *I, const Ast *link, void *links);
void infer_chain_emit(void *links, Var *var, Expr *value);
/* Adds a link that binds the value of an expression, which is in scope under a name of its own. */
Local *infer_chain_bind(Infer *I, void *links, const Name *name, const Symbol *bound,
                        const AstType *annotation, Ast *value);

/* ---- infer/memory.c -------------------------------------------------------------------------- */

/* A link of a chain as it is checked: with `()` for its value where that writes to memory of TVM's, which is done here, and
 * NULL where it binds such memory. */
Ast *infer_memory_link(Infer *I, void *links, Ast *link);
Expr *infer_slot_read(Infer *I, const Slot *slot, Span span);
/* An element of a tuple that holds slots; NULL where e is of another. */
Expr *infer_slot_proj(Infer *I, const Ast *e);
/* Reports that a form of TVM's memory dialect stands inside of an expression. */
Expr *infer_memory_form(Infer *I, const Symbol *name, Span span);

/* ---- infer/settle.c -------------------------------------------------------------------------- */

/* The default attributes with this dtype. */
const Attrs *attrs_with_dtype(const Op *op, DType t);
Pending *infer_note(Infer *I, PendingKind kind, Expr *expr);
void infer_settle(Infer *I);
void settle_flow(Infer *I, Pending *p, Map *spread); /* infer/checks.c */
void settle_results(Infer *I);                       /* infer/flow.c: its last part */
/* Expressions over variables in scope at the note, from the innermost function's parameters
 * outwards, then other variables. NULL when nothing supplies it. infer/supply.c */
Expr *supply_dtype(Infer *I, const Pending *p, Type *dtype); /* a tensor of it */
/* For a literal: another argument of the same operator, which is bound to a variable. */
Expr *supply_beside(Infer *I, Expr *literal, Type *dtype);
Expr *supply_type(Infer *I, const Pending *p, Type *tensor); /* a tensor of just this type */
/* An int64 expression; args: variables that hold the arguments of a call, asked first. */
Expr *supply_dim(Infer *I, const Pending *p, Type *dim, Expr *const *args, uint32_t nargs);
/* A tensor of that shape. */
Expr *supply_shape(Infer *I, const Pending *p, Type *shape, Expr *const *args, uint32_t nargs);
void match_check(Infer *I, Expr *match); /* infer/pattern.c */
/* Says of each hole of the item what is wanted there, and keeps it in `holes`. False: it has none. */
bool settle_holes(Infer *I); /* infer/expr.c */

/* ---- infer/deps.c ---------------------------------------------------------------------------- */

/* The items of the file an item mentions, each once. */
typedef VEC(uint32_t) IndexVec;
void ast_item_mentions(Infer *I, const Item *item, uint32_t position, IndexVec *out);
/* Groups in order of dependency. */
typedef VEC(IndexVec) GroupVec;
void item_groups(size_t n, const IndexVec *edges, const bool *skip_target, GroupVec *out);
FileName *file_name_at(const Infer *I, const Symbol *name, uint32_t position, bool def_only);

/* ---- infer.c: the items of a module ---------------------------------------------------------- */

const Symbol *infer_item_symbol(const Item *item); /* what it binds */
Global *infer_make_global(Infer *I, Item *item);
bool infer_in_groups(const Item *item); /* is checked in order of dependency */
/* A strongly connected group; core[i] is what becomes of item i. */
bool infer_component(Infer *I, const IndexVec *group, const IndexVec *edges, Global **globals,
                     CoreItem *core);
/* Whether a `let` is in the group, after a diagnostic: only definitions can be checked together, and its value would
 * depend on itself. */
bool infer_needs_itself(Infer *I, const IndexVec *group, const IndexVec *edges);
/* Items run in order: a `let` or expression must not need a `let` further down. */
bool infer_order(Infer *I, const GroupVec *groups, const IndexVec *edges, bool *failed);

/* A chain's links wrapped around the root of a body, where its sites ask for it. */
Expr *infer_root(Infer *I, Ast *e, Type *want);

/* ---- infer/items.c, infer/redefine.c --------------------------------------------------------- */

bool infer_defs(Infer *I, Item *const *items, Global *const *globals, uint32_t n);
/* A fully annotated def gets its scheme before its body is checked. */
void infer_announce_def(Infer *I, Item *item, Global *g);
bool infer_let_item(Infer *I, Item *item, Global *g);
bool infer_expr_item(Infer *I, Item *item, CoreItem *out);
bool infer_operator_item(Infer *I, Item *item, CoreItem *out);
bool infer_rule_item(Infer *I, Item *item);
/* The slot of a checked global (redefine.c): itself, bound in the Env, or, when the same name was
 * bound at the same or a less general type at the prompt, that one with the new code. */
Global *env_slot(Infer *I, Global *g);
/* Definitions that mention a name bound anew at another type, or a type declared anew, are checked
 * again. */
void env_recheck(Infer *I);
bool scheme_same(const Scheme *a, const Scheme *b); /* whether both print alike */
/* Whether it mentions a type of one of the names as it was before it was declared anew. */
bool type_is_superseded(Type *t, const Map *names);

#endif
