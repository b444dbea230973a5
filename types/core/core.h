/* SPDX-License-Identifier: Apache-2.0 */
/* The typed core: what inference makes of syntax, passes rewrite, and the evaluator runs. A DAG of
 * expressions, each with its type and span; no sugar left. Nodes never change after construction
 * (their types may still contain variables while inference of their item runs).
 *
 * Values describe themselves at run time, so polymorphic code needs no type arguments; the few
 * places that need a dtype or size of a type parameter carry the expression that supplies it
 * (`like`, EXPR_DIM_OF). `a && b` is `if a then b else False`. Application of an operator is an
 * EXPR_CALL whose callee is EXPR_OP, with attrs. */
#ifndef TYPES_CORE_CORE_H
#define TYPES_CORE_CORE_H

#include "parser/ast.h"
#include "tensor/tensor.h"
#include "types/solve/solver.h"

typedef struct Expr Expr;
typedef struct Pattern Pattern;

typedef struct Var {
    const Symbol *name; /* never NULL; "_" for what has no name */
    Type *type;
    Span span;
    uint32_t id;        /* unique in the process */
    uint32_t open : 31; /* binders of it that are open in a walk that looks for free variables */
    uint32_t is_found : 1;
    uint64_t walk;  /* Note [Marks of walks] */
    Scheme *scheme; /* of a generalised let; NULL: monomorphic */
    Type *size;     /* what it is as a size: a number, or an unknown; NULL until asked (var_size) */
} Var;

/* A slot for each global name and type (LANGUAGE §7): a redefinition at another type is another
 * Global. */
typedef enum GlobalKind {
    GLOBAL_DEF,      /* value is an EXPR_FN */
    GLOBAL_LET,      /* value is any expression, run once */
    GLOBAL_BUILTIN,  /* `operator … from "builtin"`: a C function of builtin.def */
    GLOBAL_FREE_VAR, /* its value is supplied from outside */
} GlobalKind;
typedef struct Global {
    GlobalKind kind;
    const Symbol *name; /* as bound: "map", "nn.linear" */
    bool sigil;         /* bound with `@` or `%` */
    Scheme *scheme;
    Expr *value;        /* NULL for BUILTIN, FREE_VAR */
    Type *size;         /* of a LET of one integer: what it is as a size; else NULL */
    uint32_t values;    /* of a LET: how many were computed for it so far */
    const char *symbol; /* BUILTIN */
    Span span;
    const char *doc;
    bool internal;             /* of the prelude or stdlib */
    bool is_made;              /* by a pass: no program can name it */
    bool versioned;            /* its bare names are operators and constructors only */
    bool by_types;             /* runs only as a copy made for explicit type arguments: nothing else
                             supplies a dtype or size its body names */
    bool broken;               /* its re-check failed after a redefinition: refuses to run */
    VEC(struct Global *) uses; /* globals its value mentions */
    struct Item *item;         /* its syntax, to be checked again */
    struct Namespace *home;    /* where it was bound: the names its syntax speaks of */
} Global;

typedef enum ExprKind {
    EXPR_LIT,     /* a scalar literal; its dtype is that of `type`, or of the value of `like` */
    EXPR_CONST,   /* tensor */
    EXPR_STRING,  /* text, text_len */
    EXPR_VAR,     /* var */
    EXPR_GLOBAL,  /* global */
    EXPR_OP,      /* op as a value (with its default attributes), or the callee of a call */
    EXPR_CTOR,    /* ctor as a value: nullary, a function, or the callee of a call */
    EXPR_BUILTIN, /* symbol: a C function of builtin.def; only as a callee */
    EXPR_CALL,    /* a(args; attrs) */
    EXPR_FN,      /* fn: parameters, body; free variables are captured */
    EXPR_LET,    /* var = a; body. var NULL: `a; body`. rec: a is an EXPR_FN that may mention var */
    EXPR_IF,     /* a, b, c */
    EXPR_MATCH,  /* a, arms */
    EXPR_TUPLE,  /* args */
    EXPR_PROJ,   /* a.index */
    EXPR_FIELD,  /* a.field, by name when running (index once the declaration is known, else -1) */
    EXPR_UPDATE, /* { a with field_names = args } */
    EXPR_REF,    /* ref(a) */
    EXPR_READ,   /* !a of a reference */
    EXPR_WRITE,  /* a := b */
    EXPR_BANG,   /* !a where a's type is open: not, or a read, by the value */
    EXPR_EQUAL,  /* a == b (negate: !=): element-wise on tensors, structural else, by the value */
    EXPR_TENSOR, /* [args]: stacked on a new first axis */
    EXPR_INDEX,  /* a[…]: op `index` on tensors, projection on tuples, by the value */
    EXPR_DIM_OF, /* the size of axis `index` of tensor a, as dtype of `type` (weak integer) */
    EXPR_ZERO,   /* the zero of `zero_type`, closed (else inference expanded it by `like`) */
    EXPR_CHECK,  /* a, after the residual checks in `checks` */
    EXPR_GRAD,   /* a derivative of the function a: mode */
    EXPR_ERROR,  /* already reported; the item is not run */
} ExprKind;

/* EXPR_GRAD, and the calls that the transformation emits (passes/grad.h). */
typedef enum AdMode { AD_REVERSE, AD_FORWARD, AD_MODES } AdMode;
typedef enum GradKind {
    GRAD_GRAD,
    GRAD_VJP,
    GRAD_JVP,
    GRAD_DERIV,
    GRAD_CUSTOM,     /* of a pair (f, df): f with the derivative df */
    GRAD_CHECKPOINT, /* f, run again when going backwards */
    GRAD_VMAP, /* no derivative: f at each index (passes/vmap.h). zero_type: its type as inferred */
    GRAD_KINDS
} GradKind;
const char *grad_kind_name(GradKind kind); /* "grad", as the prelude declares it */
bool grad_kind_find(const char *name, GradKind *kind);

typedef struct Param {
    Var *var;
} Param;

typedef struct Fn {
    const Symbol *name; /* for messages and traces; may be NULL */
    uint32_t nparams;
    Var **params;
    Expr *body;
    uint32_t ntype_params; /* as declared, for printing */
    Type **type_params;
    uint32_t nattrs; /* Primitive=1 … kept for printing */
    AstAttr *attrs;
    /* Differentiation (passes/grad.h). base: the function this is a twin of; path: the
     * transformations applied, "" for base; own_twins: where the derivative is not that of the body
     * (passes/custom.c), the twins that are taken as they stand. */
    struct Expr *own_twins[AD_MODES];
    struct Expr *base;
    struct Expr *of;    /* the function of which this twin was made, one transformation before */
    const Symbol *path; /* NULL is "" */
    bool tails_marked;  /* expr_mark_tails */
    bool is_instance;   /* made by specialise: it is optimised before it first runs */
    uint8_t
        depth; /* in instances, each made while the one around it was optimised (passes/specialise.c) */
    bool
        is_straight; /* made for a derivative, and calls no function in a circle: it may stand where it is called */
    /* Parameters: a frame or those of a loop, which nobody else reads (passes/reverse/reverse.h). */
    VEC(const Var *) frames;
    bool
        is_remade; /* written otherwise for a derivative: code of all its rows is not that of the run */
    bool keeps_captured; /* code of a derivative reads by number what its closures captured */
    struct Ctor *
        as_data; /* that by which a match of such code knows its closures: passes/reverse/functions.c; or NULL */
    const struct Fn
        *written; /* of a copy that differs in its variables only: what was copied first; or NULL */
} Fn;

typedef enum PatternKind {
    PAT_WILDCARD,
    PAT_VAR,
    PAT_LIT,
    PAT_STRING,
    PAT_CTOR,
    PAT_TUPLE
} PatternKind;
struct Pattern {
    PatternKind kind;
    Span span;
    Var *var;         /* VAR */
    Expr *lit;        /* LIT: EXPR_LIT */
    const char *text; /* STRING */
    size_t text_len;
    Ctor *ctor;  /* CTOR */
    bool listed; /* CTOR: written as `list[…]` or `::` */
    uint32_t nargs;
    Pattern **args; /* CTOR, TUPLE */
    Type *type;
};

typedef struct Arm {
    Pattern *pattern;
    Expr *guard; /* or NULL */
    Expr *body;
} Arm;

typedef enum CheckKind {
    CHECK_SIZE,  /* two integers are equal (EXPR_DIM_OF, EXPR_LIT) */
    CHECK_RANK,  /* the tensor `found` has `expected` axes */
    CHECK_SHAPE, /* two tensors have the same sizes */
} CheckKind;

/* One run-time check, over variables in scope: `found` is as `expected`, or the two are refused with
 * `place` and `span`. */
typedef struct Check {
    CheckKind kind;
    Expr *found, *expected;
    TypePlace place;
    Span span;
} Check;

/* Note [Inlined calls]. Errors are told as if no pass had run (eval/trace.c). A node that a pass brought in by
 * replacing a call by the callee's body says which call that was, and in what: the innermost first. A call also knows
 * whether it was in tail position of the function it was written in, for then that function's activation had
 * ended when the callee's began. */
typedef enum TailKind {
    TAIL_NOT,
    TAIL_CALL,
    TAIL_IN_FIELD, /* the last field of data that is the function's result */
} TailKind;
enum { INLINED_MOST = 16 }; /* calls within each other */
typedef struct Inlined {
    const Symbol *name; /* of the callee, or NULL */
    const Expr *fn;     /* the callee */
    Span call;
    bool internal; /* the callee's place is in the prelude or the library */
    bool tail;     /* the call was in tail position */
    const struct Inlined *outer;
} Inlined;

/* Note [Marks of walks]. What a walk has met is marked with the number of that walk, which no other has: nothing is
 * allocated for it, and nothing is to be taken back. A walk that begins before another has ended takes its marks away, so
 * only those use them that call nothing which may walk. A mark says nothing of the program: a copy may have one. */
struct Expr {
    ExprKind kind;
    bool rec : 1;      /* LET */
    bool partial : 1;  /* MATCH: `match?` */
    bool negate : 1;   /* EQUAL */
    bool is_float : 1; /* LIT: written as a float */
    bool
        own_cells : 1; /* TUPLE, UPDATE, CALL of a constructor: Note [Own cells] in passes/cells.h */
    bool is_left : 1;  /* GRAD: `derive` has tried all ways to make code of it, in vain */
    bool follows : 1;  /* CALL of an operator: of a derivative's rule; it fits what ran before */
    uint8_t tail;      /* CALL: TailKind, where expr_mark_tails saw its function */
    uint8_t mode;      /* GRAD: GradKind; CALL: 0, or 1 + AdMode: call the callee's twin */
    uint8_t drop; /* CALL: how many leading letters of the calling code's path the callee's path
                            leaves out (Note [Twins] in passes/grad.h) */
    union {
        int32_t index;     /* PROJ, FIELD, DIM_OF */
        uint32_t text_len; /* STRING */
    };
    uint32_t nargs, nsizes;
    union {
        uint32_t narms, nchecks;
    };
    uint64_t walk; /* Note [Marks of walks] */
    Span span;
    Type *type;
    union {
        int64_t i; /* LIT */
        double f;
        Tensor *tensor;   /* CONST */
        const char *text; /* STRING */
        Var *var;         /* VAR, LET */
        Global *global;
        const struct Op *op;
        Ctor *ctor;
        const Symbol *symbol; /* BUILTIN */
        Fn *fn;
        const Symbol *field; /* FIELD */
        Type
            *zero_type; /* ZERO; DIM_OF: until inference settles it, the declared size; GRAD_VMAP */
    };
    Expr *a; /* children as each kind says; CALL: a is the callee */
    union {
        Expr *b;
        Expr *body; /* LET */
    };
    union {          /* read only where the kind, or a number, says that it is there */
        Expr **args; /* CALL, TUPLE, TENSOR, UPDATE; INDEX: the integers, in order */
        Expr *c;     /* IF */
        Expr *like;  /* LIT, ZERO: NULL, or a tensor expression whose dtype it takes */
    };
    union { /* likewise */
        /* CALL of an operator whose attrs hold sizes (ATTR_DIM) that are no constants: one int64 expression for each, in
         * order; evaluated after the arguments, and put in their place as ATTR_INT */
        Expr **sizes;
        const Symbol **field_names; /* UPDATE: nargs of them */
        Arm *arms;                  /* MATCH */
        Check *checks;              /* CHECK */
    };
    const Attrs *attrs;     /* CALL of an operator; INDEX: one string attribute `spec` */
    const Inlined *inlined; /* NULL: it stands where it was written */
};

/* `a ++ b` is a call of EXPR_BUILTIN `str.append`; `x |> f`, `f >> g`, `::`, `list[…]`, records and
 * `&&` are made of the nodes above. A declared dim parameter as an expression is an EXPR_DIM_OF. */

/* The INDEX spec: one letter an index in order: 'i' an integer (one arg), ':' a slice, followed by
 * a digit 0-7 whose bits say which of begin (1), end (2), step (4) are given as args, '.' an
 * ellipsis, 'n' None, 'v' one vector of integers or bools (one arg), 'o' an integer or a vector where the type of the arg
 * is open (one arg). `t[0, 1:, ..., None]` is "i:1.n" with args 0, 1. The operator `index` (ops/) takes the tensor and a tuple of those args, and the attribute spec. */

/* ---- construction: all set span and type ----------------------------------------------------- */

Var *var_new(const Symbol *name, Type *type, Span span);
Expr *expr_new(ExprKind kind, Type *type, Span span);
/* An integer as a size (a negative number too): literals, declared sizes, their sums and multiples.
 * NULL where it is not known before running. */
Type *expr_size(const Expr *e);
/* What an integer variable is as a size: a number, or an unknown of its own. */
Type *var_size(Var *v);
/* Whether its type is known to be that of one integer. */
bool expr_is_integer(const Expr *e);
/* What a type takes for that size is computed without wrapping: R0614 where its dtype does not hold it. */
void expr_check_size(Expr *e);
Expr *expr_var(Var *v, Span span);
Expr *expr_global(Global *g, Type *type, Span span);
Expr *expr_op(const struct Op *op, Type *type, Span span);
Expr *expr_int(int64_t i, DType dtype, Span span);
Expr *expr_float(double f, DType dtype, Span span);
Expr *expr_bool(bool b, Span span);
Expr *expr_unit(Span span);
Expr *expr_call(Expr *callee, Expr **args, uint32_t n, const Attrs *attrs, Type *type, Span span);
Expr *expr_call_op(const struct Op *op, Expr **args, uint32_t n, const Attrs *attrs, Type *type,
                   Span span);
Expr *expr_call_builtin(const char *name, Expr **args, uint32_t n, Type *type, Span span);
Expr *expr_fn(Var **params, uint32_t n, Expr *body, Type *type, Span span);
Expr *expr_let(Var *v, Expr *value, Expr *body); /* v NULL: value; body */
Expr *expr_if(Expr *c, Expr *t, Expr *e, Type *type, Span span);
Expr *expr_tuple(Expr **args, uint32_t n, Span span);
Expr *expr_proj(Expr *tuple, uint32_t index, Type *type, Span span);
Expr *expr_copy(const Expr *e); /* shallow */
/* The function literal with another body, and all else as it is, twins too. */
Expr *expr_fn_with_body(const Expr *fn, Expr *body);

/* The type of a tape or level: what a derivative keeps while it runs (types/core/ad.def). No program can
 * name it. */
Type *type_tape(void);
bool type_is_tape(Type *t);

/* The number of a walk that begins: Note [Marks of walks]. */
uint64_t walk_new(void);
/* Marks e; whether this walk had not met it. */
static inline bool walk_enter(uint64_t walk, Expr *e) {
    bool is_new = e->walk != walk;
    e->walk = walk;
    return is_new;
}

/* Free variables of an expression, in order of first appearance. */
typedef VEC(Var *) VarVec;
void expr_free_vars(Expr *e, VarVec *out);

/* Marks the calls in tail position of the function literals in e. */
void expr_mark_tails(Expr *e);
/* Whether e is in tail position of the function in whose code it stands now, all inlined calls around it having
 * been in tail position, too. */
bool expr_is_tail(const Expr *e, TailKind kind);
/* Whether e was written in the prelude or the library. */
bool expr_is_internal(const Expr *e);
/* Whether the parameter is one of fn->frames. */
bool fn_has_frames(const Fn *fn, const Var *param);

/* Visits the direct children in order of evaluation; `fn` may replace them in a rebuilt node. */
void expr_each_child(Expr *e, void (*fn)(void *ctx, Expr *child), void *ctx);
/* Notes the variables that e uses other than by calling them. */
void expr_find_handed(Expr *e, Map *handed);
/* Whether v is free in e. */
bool expr_mentions(Expr *e, const Var *v);
/* Whether e is a call of the builtin of that name, as `ad.own`. */
bool expr_calls_builtin(const Expr *e, const char *name);
/* Whether e is `vmap` of a function that is written there. */
bool expr_is_vmap_of_literal(const Expr *e);
/* Whether e has no children: a walk need not remember that it was there. */
bool expr_is_leaf(const Expr *e);
/* Whether one of the nodes of e has a property; each is asked once, where the question walks through none of them. */
bool expr_any(Expr *e, bool (*holds)(void *ctx, const Expr *node), void *ctx);
Expr *expr_map_children(Expr *e, Expr *(*fn)(void *ctx, Expr *child),
                        void *ctx); /* e itself if none changed */

/* Maps the values of a block's bindings in order, then the value of the block, in a loop: blocks are as
 * long as programs. e is an EXPR_LET. What a recursive binding has is a function: bindings that fn puts before it stand
 * before the binding. */
Expr *expr_map_block(Expr *e, Expr *(*fn)(void *ctx, Expr *child), void *ctx);

/* Relay text of a core expression (`:ir`), parsable where the language can say it. */
typedef struct CorePrintOptions {
    bool types;
    bool tvm;
    bool param_types; /* of parameters, where nothing of them is open */
    bool whole;       /* all elements of constants, however many */
    const Map *names; /* Global -> const char *: other names for some; or NULL */
} CorePrintOptions;
/* A name that can be written for a hidden one (symbol_is_hidden): a_b for `(a, b)`. */
const char *core_plain_name(const Symbol *hidden);
void expr_print(Str *out, Expr *e, const CorePrintOptions *options);

#endif
