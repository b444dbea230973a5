/* SPDX-License-Identifier: Apache-2.0 */
/* Types, shapes, dtypes and dims: one representation for all four kinds, so that substitution,
 * unification, generalisation and printing are each written once.
 *
 * Types never change after construction, but for variables, which are linked. They are DAGs: every
 * traversal is memoised by node. Always look through type_resolve before reading the tag. */
#ifndef TYPES_TYPE_TYPE_H
#define TYPES_TYPE_TYPE_H

#include "base/diag.h"
#include "base/map.h"
#include "base/symbol.h"
#include "base/vec.h"
#include "tensor/dtype.h"
#include "types/type/place.h"

typedef enum Kind { KIND_TYPE, KIND_SHAPE, KIND_DTYPE /* BaseType */, KIND_DIM, KIND_EFFECT } Kind;

typedef enum TypeTag {
    TY_VAR,   /* to be inferred; any kind */
    TY_PARAM, /* rigid: a declared or generalised parameter; any kind */
    /* KIND_TYPE */
    TY_TENSOR, /* shape, dtype */
    TY_TUPLE,  /* args */
    TY_FN,     /* args = parameters, result, effect */
    TY_REF,    /* elem */
    TY_DATA,   /* decl, args of the kinds of decl's parameters */
    TY_STRING,
    TY_DERIV, /* D(elem) while elem's head is not known; reduced as soon as it is */
    TY_ERROR, /* the type of an expression that was reported already; unifies with anything */
    /* KIND_SHAPE */
    TY_SHAPE, /* args = dims: a shape of known rank */
    /* KIND_DTYPE */
    TY_DTYPE, /* dtype_value */
    /* KIND_DIM: a polynomial in normal form over atoms (see dim.h), or an unknown */
    TY_DIM, /* dim */
    /* KIND_DIM, KIND_SHAPE */
    TY_ANY, /* an unknown size, or a shape of unknown rank, written `?`: equal only to itself (id) */
    /* KIND_EFFECT */
    TY_PURE, /* makes no reference when called */
    TY_ALLOCATES,
} TypeTag;

typedef struct Type Type;
typedef struct TypeDecl TypeDecl;
typedef struct Dim Dim;
typedef struct Origin Origin;
typedef struct Relation Relation;

/* Where a size (or any part of a type) came from, for diagnostics: "784 from this literal". */
typedef enum OriginKind {
    ORIGIN_LITERAL,
    ORIGIN_ARGUMENT,
    ORIGIN_ANNOTATION,
    ORIGIN_OPERATOR,
    ORIGIN_FILE
} OriginKind;
struct Origin {
    OriginKind kind;
    Span span;
    TypePlace place; /* `zeros`, `shape`, `digits.csv`, the field `w` of `P`; may be PLACE_NONE */
    /* ARGUMENT: of "zeros", of whose attribute `place` it is an element. Or NULL: it entered a call by
     * the argument at span, and that had it from there (or NULL).
     * OPERATOR: of "layer", a definition called, in which the operator stands; or NULL. */
    const char *of;
    Span call;
    const Origin *from;
};

typedef struct TypeVar {
    Type *link; /* what it was found to be, or NULL */
    uint32_t id;
    uint32_t
        age;   /* the id of the oldest variable of which this one is a part: Note [Open values] */
    int level; /* how deeply the `let` that made it is nested */
    const Symbol *hint; /* a name to print it by, or NULL */
    DTypeSet dtypes;    /* KIND_DTYPE: what it may be (the dtype classes); DTS_ALL at first */
    bool
        weak; /* KIND_DTYPE: the dtype of a weak literal, which is defaulted when nothing settles it */
    bool
        asked; /* KIND_DIM, KIND_SHAPE: one size is asked of several values: Note [Sizes of elements] */
    bool each;   /* of a parameter that is `each`: Note [Sizes of elements] */
    bool made;   /* KIND_DIM: an operator makes it once a dtype is known: Note [Open values] */
    bool widens; /* stands where a function takes `?`, and may become an unknown itself (flow.c) */
    bool
        joins; /* KIND_TYPE: a parameter of a constructor: the types that flow to it are joined (flow.c) */
    union {
        Relation **watchers; /* relations to run again when this variable learns something */
        Type **subs;         /* KIND_EFFECT: effects it includes */
    };
    uint32_t nwatchers, cap_watchers;
} TypeVar;

struct Type {
    TypeTag tag;
    Kind kind;
    uint32_t nargs;
    uint32_t flags; /* TYPE_HAS_…: what may occur inside; set by the constructors */
    Type **args;
    const Origin *origin; /* of a dim or dtype; may be NULL */
    union {
        TypeVar var; /* VAR */
        struct {
            const Symbol *name; /* may be NULL */
            uint32_t id;
            int level; /* PARAM: that of solver_rigid. A variable of an outer level cannot become this parameter */
            bool
                each; /* ANY: Note [Each its own size]; PARAM: Note [Sizes of elements]; in unknown.c */
            bool declared; /* ANY: a written signature names it, so that no other size is it */
            bool
                value; /* ANY: the value of an integer variable, which may be negative (docs/sizes.md) */
            bool asked;      /* PARAM: so are its instances: Note [Sizes of elements] */
            DTypeSet dtypes; /* PARAM of KIND_DTYPE: its class (`where Float(b)`); DTS_ALL: any */
            Type *known; /* PARAM: Note [Declared tensors] in ast_type.c; or NULL. Of a type: what
                                   stands for it; of a shape: the parameter whose tensor has it */
        } param;         /* PARAM, ANY */
        struct {
            Type *shape, *dtype;
        } tensor;
        struct {
            Type *result, *effect;
            Type **named; /* by parameter, or NULL: Note [Named parameters] in named.c */
        } fn;
        struct {
            Type *elem, *reduced;
        };              /* REF, DERIV; reduced: for type_resolve */
        TypeDecl *decl; /* DATA */
        DType dtype_value;
        struct {
            const Dim *dim;
            Type *normal;
        }; /* DIM; normal: for type_resolve */
    };
};

enum {
    TYPE_HAS_VARS = 1,   /* a TY_VAR, linked or not: traversals skip parts without */
    TYPE_HAS_PARAMS = 2, /* a TY_PARAM */
    TYPE_HAS_ANY = 4,    /* a TY_ANY */
};

/* ---- construction ---------------------------------------------------------------------------- */

Type *type_tensor(Type *shape, Type *dtype);
Type *type_scalar(DType dtype);            /* Tensor[(), dtype] */
Type *type_tuple(Type **args, uint32_t n); /* n may be 0: () */
Type *type_unit(void);
Type *type_fn(Type **params, uint32_t n, Type *result, Type *effect);
/* The same with names for parameters, each an `each` unknown or NULL: Note [Named parameters] in named.c. */
Type *type_fn_named(Type **params, uint32_t n, Type *result, Type *effect, Type **named);
/* The unknown by which a function's type names a parameter. */
Type *type_any_named(const Symbol *name);
Type *type_ref(Type *elem);
Type *type_data(TypeDecl *decl, Type **args, uint32_t n);
Type *type_string(void);
Type *type_deriv(Type *elem); /* reduces at once where elem's head is known */
Type *type_error(void);
Type *type_shape(Type **dims, uint32_t rank);
Type *type_dtype(DType t);
Type *type_dim_int(int64_t n, const Origin *origin);
Type *type_any(Kind kind, const Origin *origin); /* a fresh unknown: KIND_DIM or KIND_SHAPE */
Type *type_any_each(Kind kind,
                    const Origin *origin); /* an unknown of which each value has its own */
/* The unknown that an integer variable is as a size. id: that of the variable. */
Type *type_any_value(const Symbol *name, uint32_t id, const Origin *origin);
Type *type_dim_made(Type *dim, const Origin *origin); /* the same size with another origin */
Type *type_param(const Symbol *name, Kind kind);
Type *type_var(Kind kind, int level, const Symbol *hint); /* inference uses solver_var */
Type *type_pure(void);
Type *type_allocates(void);

/* ---- reading --------------------------------------------------------------------------------- */

/* Through links (with path compression); a D(T) whose T became known is reduced, a dim whose
 * variables were found is in normal form again. The parts of the result are not resolved. */
Type *type_resolve_link(Type *t);
/* It is asked at each step, and most types stand for themselves. */
static inline Type *type_resolve(Type *t) {
    return t->tag == TY_VAR || t->tag == TY_DERIV || t->tag == TY_DIM ? type_resolve_link(t) : t;
}
bool type_is_scalar(Type *t, DType dtype);
bool type_has_rank0(Type *t); /* a tensor without axes, of any dtype */
bool type_is_unit(Type *t);
/* Whether one is a tuple of one entry and the other something else that is known: its comma is easily forgotten. */
bool type_differs_by_comma(Type *a, Type *b);
#define TYPE_COMMA_FACT "`(x,)`, with its comma, is a tuple of one entry; `(x)` is `x` itself"
/* Whether the type is called List and holds one type: for the words of messages. */
bool type_is_list(Type *t);
/* False where the dtype, the number or the rank is not known. */
bool type_get_dtype(Type *t, DType *out);   /* of a TY_TENSOR or of a KIND_DTYPE type */
bool type_get_int(Type *dim, int64_t *out); /* a dim that is a known number */
bool type_get_rank(Type *t, uint32_t *rank, Type ***dims); /* tensor or shape of known rank */
typedef VEC(Type *) TypeVec;

/* visit(ctx, part) for each direct part of a type: arguments, then shape and dtype, result and effect,
 * element, the atoms of a size. Of t as it stands: links are not followed. */
void type_each_part(const Type *t, void (*visit)(void *ctx, Type *part), void *ctx);
/* Each variable (TY_VAR, undetermined), parameter (TY_PARAM) or unknown (TY_ANY) of t, once, in order,
 * links followed. Every node entered goes into `seen`, and none that is there already is entered. */
void type_collect(Type *t, TypeTag tag, Map *seen, TypeVec *out);
/* The parameters of t, and then its unknowns: all that is named and not known. seen: one map for each. */
void type_collect_names(Type *t, Map seen[2], TypeVec *out);
bool type_has(
    Type *t,
    TypeTag
        tag); /* whether t holds a node with this tag: TY_VAR (undetermined), TY_PARAM or TY_ANY */
bool type_has_vars(Type *t); /* type_has(t, TY_VAR) */
/* Whether nothing of t is left open: no variable, no parameter, no `?`. */
bool type_is_closed(Type *t);
/* Whether a size in t is each value's own: Note [Each its own size] in types/solve/unknown.c. */
bool type_has_each(Type *t);
bool type_has_open_sizes(
    Type *t); /* whether t holds a variable that is neither a dtype nor an effect */
/* A tensor whose shape is `?` as a whole, or a tuple that holds one: Note [Unknown ranks] in solver.c. */
bool type_has_unknown_rank(Type *t);
bool type_equal(Type *a, Type *b); /* equal as they are now; no variable is linked */
/* What a dtype may still be: one bit when it is known. */
DTypeSet type_dtype_set(Type *dtype);
/* Whether a value of it holds a float that could be differentiated. */
typedef enum Holds { HOLDS_NO, HOLDS_YES, HOLDS_UNKNOWN } Holds;
Holds type_holds_float(Type *t);
/* The dtype of each float tensor in a value of this type. False: parts of the type are not known yet. */
bool type_collect_float_dtypes(Type *t, TypeVec *out);
/* Whether a function or a reference is known to be in it. */
bool type_holds_code(Type *t);
/* Note [Named parameters] in named.c. Whether a parameter's name stands in the function's type. */
bool type_fn_names(const Type *fn, uint32_t param);
/* The function's type where that parameter has this size. It is not named any more. */
Type *type_fn_give(Type *fn, uint32_t param, Type *size);
/* b with the names of a, where both are functions of as many parameters. */
Type *type_fn_rename(Type *b, const Type *a);
/* Parameters from[i] replaced by to[i]; parts without them are shared. */
Type *type_substitute(Type *t, Type *const *from, Type *const *to, uint32_t n);
/* The same for several types: what they share stays shared, and the parameters are noted once. */
typedef struct Substitution {
    Map done;
    uint32_t mask;
} Substitution;
Substitution substitution_new(Type *const *from, Type *const *to, uint32_t n);
Type *type_substitute_by(Substitution *by, Type *t);
bool type_mentions(Type *t, Type *const *params,
                   uint32_t n); /* whether t holds one of the parameters */
/* Tensor[s, b] replaced by what the map has for the variable or parameter s; by a parameter only where
 * it is that parameter's own tensor. */
Type *type_replace_tensors(Type *t, const Map *of);
/* Makes equal parts one node, so that types that were built twice do not take twice the room. */
Type *type_share(Type *t);
/* A copy of t without links. */
Type *type_zonk(Type *t);
uint32_t type_next_id(void); /* ids of variables, parameters and unknowns: unique in the process */

/* ---- printing -------------------------------------------------------------------------------- */

/* As LANGUAGE §6: variables as a, b, c … in order of appearance (s a shape, b a dtype, n, m dims).
 * One TypeNamer over several prints keeps names consistent between them. */
typedef struct TypeNamer {
    Map names;         /* Type* -> const Symbol* */
    Map unknowns;      /* counts of TY_ANY, for `?1` */
    Map taken;         /* const Symbol* given out already */
    bool show_effects; /* :type! */
} TypeNamer;
void type_print(Str *out, Type *t, TypeNamer *namer); /* namer may be NULL */
const char *type_text(Type *t);                       /* collected; cut after 2,000 characters */
const char *type_text_with(TypeNamer *namer, Type *t);
/* Declared parameters in t keep their names, whatever else is printed first. */
void type_namer_reserve(TypeNamer *namer, Type *t);

/* Says of the unknown sizes of a type, which an annotation left open, that they come from this file. path is
 * NULL where it is not known. */
void origin_read(Type *type, Span span, const char *path);
/* The origin of an unknown size in a definition's result, at a call: a file is read there. (origin.c) */
const Origin *origin_at_call(const Origin *origin, Span call);
/* The type of an argument, its sizes marked as entering the call by it. (origin.c) */
Type *origin_enter(Type *argument, Span span, Span call);
/* Says where a size came from, if that is known and d does not show it already: a label there, or a
 * fact for an earlier entry at the prompt. text: the size as d prints it. (origin.c) */
void diag_add_origin(Diag *d, const Type *size, const char *text);
/* "made at prompt 1 by `zeros`", of a tensor whose sizes an earlier entry than `here` made, or NULL. */
const char *origin_words(Type *tensor, const Source *here);
const Source *origin_entry(Type *tensor, const Source *here); /* that entry, or NULL */

/* Note [Diagnostics are data] in base/diag.h. (origin.c) */
DiagType diag_type(Type *t);
void diag_note_type(Diag *d, Type *t); /* the dtypes and sizes in it are spoken of */
void diag_label_type(Diag *d,
                     Type *t); /* and the last label, else the primary one, says its type */

/* ---- declarations ---------------------------------------------------------------------------- */

typedef struct Ctor {
    const struct DataLayout *layout; /* eval/value.h: where it has no fields it is its own value */
    struct DataLayouts *layouts;     /* eval/data_layout.c */
    const Symbol *name;
    TypeDecl *decl;
    uint32_t tag; /* position in decl */
    uint32_t nfields;
    Type **fields;              /* over decl->params */
    const Symbol **field_names; /* or NULL */
    Span span;
    struct Global *hides; /* bound when the type was declared: the bare name is not that any more */
    bool
        is_function; /* in patterns of derivatives: what it takes apart is a closure (passes/reverse/functions.c) */
} Ctor;

struct TypeDecl {
    const Symbol *name;
    uint32_t version; /* 0, or n: printed T#n after it was redefined at the prompt */
    uint32_t nparams;
    Type **params; /* TY_PARAMs with their kinds */
    Type **exists; /* TY_PARAMs, own to each value: dims (LANGUAGE §2), in the prelude dtypes */
    uint32_t nexists;
    uint32_t nctors;
    Ctor **ctors;
    bool is_extern;
    bool superseded;
    struct TypeDecl *earlier; /* the type of the same name that this one replaced, or NULL */
    struct TypeDecl *rows;    /* of stacked values, or NULL until one is asked for; and of such a */
    struct TypeDecl *row;     /* declaration, what is stacked: Note [Rows of data] in rows.c */
    uint8_t *variance;        /* of each parameter; NULL until solver_flow asks for it */
    bool *
        asked; /* of each parameter that is a size: Note [Sizes of elements] in unknown.c; or NULL */
    Span span;
    const char *doc;
    struct Item *item; /* its syntax, to be declared again at the prompt; or NULL */
};

/* Note [Rows of data] in rows.c. Whether its parameters stand wherever a tensor stands, and so take another axis. */
bool type_decl_takes_axis(TypeDecl *decl);
/* The declaration of Rows[n, T], with n before its parameters; NULL where a tensor has all the axes that it may have. */
TypeDecl *type_decl_rows(TypeDecl *decl);
/* n of that type, stacked; NULL where it has no rows, or the type is not known. */
Type *type_rows(Type *row, Type *n);
/* One of what is stacked in that type or shape, as far as it is known. */
Type *type_row(Type *all);
/* A String, function or reference that values of t hold, which cannot be stacked; or NULL. */
Type *type_find_whole(Type *t);
const TypeDecl *type_decl_of_values(const TypeDecl *decl); /* T, of Rows[n, T] and of T */
Ctor *ctor_of_values(const Ctor *ctor);                    /* that constructor of it */
/* That constructor of the type, where the two stack the same; else ctor. */
const Ctor *ctor_of_type(const Ctor *ctor, Type *type);

#endif
