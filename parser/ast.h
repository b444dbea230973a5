/* SPDX-License-Identifier: Apache-2.0 */
/* The abstract syntax: what the reader hands to inference, and what `relay fmt` prints.
 *
 * Sugar is kept (the printer prints it back); inference removes it. Long chains (`let`, `;`,
 * graph bindings) are nested in `body`, so every traversal walks them in a loop. Nodes never
 * change after construction. Every node has the span of its whole text. */
#ifndef PARSER_AST_H
#define PARSER_AST_H

#include "base/map.h"
#include "base/span.h"
#include "base/symbol.h"
#include "base/vec.h"
#include "parser/infix.h"

typedef struct Ast Ast;
typedef struct AstType AstType;
typedef struct AstPattern AstPattern;

/* How a name was written. `%x` and `x` are the same local, `@f` and `f` the same global; what was
 * BOUND with a sigil is reached bare only if nothing else has that name (LANGUAGE §1). */
typedef enum Sigil { SIGIL_NONE, SIGIL_LOCAL /* %x */, SIGIL_GLOBAL /* @f */ } Sigil;

typedef struct Name {
    const Symbol *sym; /* without its sigil; may hold `.`, `::`, `/` */
    Sigil sigil;
    Span span;
} Name;

/* Whether the name is that of a value which a pattern takes apart, `(a, b)`: nobody can write it. */
static inline bool symbol_is_hidden(const Symbol *sym) { return sym->text[0] == '('; }

typedef VEC(Ast *) AstVec;
typedef VEC(AstType *) AstTypeVec;
typedef VEC(AstPattern *) AstPatternVec;
typedef VEC(Name) NameVec;
typedef VEC(const Symbol *) SymbolVec;

/* ---- types (LANGUAGE §4) --------------------------------------------------------------------- */

typedef enum AstTypeKind {
    AST_TYPE_NAME, /* float32, String, List[T, …], a parameter, Layer[2, 3]; args may be empty */
    AST_TYPE_TENSOR, /* Tensor[shape, dtype] */
    AST_TYPE_SHAPE,  /* (2, n, ?) where a shape stands */
    AST_TYPE_DIM,    /* arithmetic over dims: op and two args; or an integer; or `?`, `?1` */
    AST_TYPE_FN,     /* fn [A](T, …) -> T where R(T, …) */
    AST_TYPE_TUPLE,  /* (T, U), (T,), () */
    AST_TYPE_REF,    /* ref(T), Ref[T], RefType(T) */
    AST_TYPE_DERIV,  /* D(T): what grad gives for a T, as types print it */
    AST_TYPE_FORALL, /* forall (A : K), T where R(T, …) */
    AST_TYPE_HOLE,   /* _ */
} AstTypeKind;

typedef enum DimOp {
    DIM_INT,
    DIM_ANY,
    DIM_ADD,
    DIM_SUB,
    DIM_MUL,
    DIM_FLOORDIV,
    DIM_MIN,
    DIM_MAX
} DimOp;

/* A type parameter as declared: `A`, `n: Dim`. kind NULL: inferred from use. */
typedef struct AstTypeParam {
    const Symbol *name;
    const Symbol *kind; /* "Type", "Shape", "BaseType", "Dim" or NULL */
    Span span;
} AstTypeParam;
typedef VEC(AstTypeParam) AstTypeParamVec;

/* One entry of a `where`: `Broadcast(a, b, c)`; attributes may follow as keyword = value. */
typedef struct AstAttr AstAttr;
typedef VEC(AstAttr) AstAttrVec;
typedef struct AstConstraint {
    const Symbol *name;
    AstTypeVec args;
    AstAttrVec *attrs; /* NULL when none */
    Span span;
} AstConstraint;
typedef VEC(AstConstraint) AstConstraintVec;

struct AstType {
    AstTypeKind kind;
    Span span;
    const Symbol *name;     /* NAME */
    AstTypeVec args;        /* NAME: type arguments; SHAPE: dims; DIM: operands; FN: parameters;
                                TUPLE: elements */
    SymbolVec arg_names;    /* FN: the name of each parameter or NULL; empty where none has one */
    AstType *shape, *dtype; /* TENSOR: shape is SHAPE, NAME or HOLE; dtype is NAME or HOLE */
    AstType *result;        /* FN: result; REF, DERIV, FORALL: the one inside */
    AstTypeParamVec params; /* FN, FORALL */
    AstConstraintVec where; /* FN, FORALL */
    DimOp op;               /* DIM */
    int64_t value;          /* DIM_INT; DIM_ANY: its number, or 0 */
};

/* ---- attributes ------------------------------------------------------------------------------ */

typedef enum AstAttrKind {
    AST_ATTR_INT,
    AST_ATTR_FLOAT,
    AST_ATTR_BOOL,
    AST_ATTR_STRING,
    AST_ATTR_NONE,
    AST_ATTR_LIST, /* [a, b] or (a, b) */
    AST_ATTR_NAME, /* a dtype, a dim in scope, an attribute of the operator of a derivative rule */
    AST_ATTR_META, /* meta[Key][N] */
    AST_ATTR_DIM,  /* in a `where`: dim arithmetic, `?` */
    AST_ATTR_EXPR, /* in a call: a size that is computed */
} AstAttrKind;

typedef struct AstAttrValue AstAttrValue;
struct AstAttrValue {
    AstAttrKind kind;
    Span span;
    int64_t i;        /* INT, BOOL, META index */
    double f;         /* FLOAT */
    const char *text; /* STRING (NUL-terminated), META key */
    size_t text_len;
    const Symbol *name;        /* NAME */
    AstType *dim;              /* DIM */
    Ast *expr;                 /* EXPR; INT, FLOAT, STRING: the literal, NULL where none was read */
    VEC(AstAttrValue *) items; /* LIST */
};

struct AstAttr {
    const Symbol *name;
    AstAttrValue *value;
    Span span;
};

/* Visits the expressions among the values of attributes. A bare name is none: it may be a dtype. */
void ast_attrs_each(const AstAttrVec *attrs, void (*visit)(void *ctx, Ast *e), void *ctx);

/* ---- patterns -------------------------------------------------------------------------------- */

typedef enum AstPatternKind {
    AST_PAT_WILDCARD,
    AST_PAT_NAME, /* a variable, or a constructor if one is declared (decided by inference) */
    AST_PAT_INT,
    AST_PAT_FLOAT,
    AST_PAT_BOOL,
    AST_PAT_STRING,
    AST_PAT_CTOR,   /* C(p, …) by position */
    AST_PAT_RECORD, /* C { w, b: p } */
    AST_PAT_TUPLE,
    AST_PAT_PAREN, /* (p): p itself, or the 1-tuple pattern against a 1-tuple */
    AST_PAT_CONS,  /* p :: ps */
    AST_PAT_LIST,  /* list[p, q] */
} AstPatternKind;

struct AstPattern {
    AstPatternKind kind;
    Span span;
    Name name;           /* NAME, CTOR, RECORD */
    AstType *type;       /* annotation, or NULL */
    AstPatternVec args;  /* CTOR, TUPLE, PAREN, CONS (2), LIST; RECORD: one a field */
    NameVec fields;      /* RECORD: names beside args (an abbreviated `w` has a NAME pattern) */
    struct Ast *literal; /* INT … STRING: an AST_INT … AST_STRING node (negative folded in) */
};

/* ---- expressions ----------------------------------------------------------------------------- */

typedef enum AstKind {
    AST_INT,         /* 1, -128i8; i, dtype or NULL when unsuffixed (weak) */
    AST_FLOAT,       /* 1.5f16, inf; f, dtype or NULL (weak) */
    AST_BOOL,        /* i */
    AST_STRING,      /* text, text_len */
    AST_NAME,        /* x %x @f nn.dense Cons: name */
    AST_GRAPH_VAR,   /* %0: i */
    AST_HOLE,        /* _ */
    AST_CALL,        /* a(args; attrs), with type_args for f<T>(a) and f[T](a) */
    AST_INSTANTIATE, /* f<T> or f[T] not followed by a call: a, type_args */
    AST_FN,          /* fn [A](params) -> type where … { a } */
    AST_LET,       /* let name : type = a; body   (body NULL: `let x = e` ends its block, value ()).
                With a pattern: Note [Patterns that bind] in parse_let.c; flag: made by one */
    AST_GRAPH_LET, /* %i = a; body */
    AST_FREE_VAR,  /* free_var name : type; body */
    AST_SEQ,       /* a; body   (body NULL: `a;` ends its block, value ()) */
    AST_IF,        /* if (a) { b } else { c } */
    AST_MATCH,     /* match (a) { arms }; flag: `match?` */
    AST_TUPLE,     /* args */
    AST_PROJ,      /* a.i */
    AST_FIELD,     /* a.field */
    AST_RECORD,    /* name { fields: args } */
    AST_WITH,      /* { a with fields = args } */
    AST_WITH_AT,   /* { a with [indices] = args[0] }; op_span: `with` */
    AST_TENSOR,    /* [args] */
    AST_LIST,      /* list[args] */
    AST_INDEX,     /* a[indices] */
    AST_UNARY,     /* unop a */
    AST_BINARY,    /* a binop b; ref_write(a, b) is BINOP_ASSIGN */
    AST_CAST,      /* (type) a */
    AST_ZERO,      /* Zero type */
    AST_REF,       /* ref(a), Ref a */
    AST_REF_READ,  /* ref_read(a), read(a); `!a` is AST_UNARY UNOP_BANG */
    AST_GRAD,      /* Grad a; `grad(f)` is a call of the name grad */
    AST_META,      /* meta[text][i] */
    AST_ERROR,     /* what recovery left; a diagnostic was reported */
} AstKind;

typedef enum UnOp { UNOP_NEG, UNOP_BANG /* not, or reference read: by type */, UNOP_SQ } UnOp;

typedef struct AstParam {
    Name name;
    AstType *type;       /* or NULL */
    AstPattern *pattern; /* that takes the argument apart, or NULL: then the name is hidden */
} AstParam;

typedef struct AstArm {
    AstPattern *pattern;
    Ast *guard; /* or NULL */
    Ast *body;
} AstArm;

/* One index of a[…]. */
typedef enum IndexKind { INDEX_AT, INDEX_SLICE, INDEX_ELLIPSIS, INDEX_NEW_AXIS } IndexKind;
typedef struct AstIndex {
    IndexKind kind;
    Ast *at;                 /* AT */
    Ast *begin, *end, *step; /* SLICE, each may be NULL */
    Span span;
} AstIndex;

/* What `fn` and `def` share. */
typedef struct AstFn {
    AstTypeParamVec type_params;
    VEC(AstParam) params;
    AstAttrVec attrs; /* Primitive=1, as TVM prints them */
    AstType *result;  /* or NULL */
    AstConstraintVec where;
    bool has_where;
    Ast *body;
} AstFn;

/* What only some kinds have shares its room, since a long line is many nodes: look at the kind before reading
 * a member that names kinds. The children a, b, c, body and args are NULL or empty where a kind has none. */
struct Ast {
    AstKind kind;
    bool flag;  /* MATCH: partial; LET: made by a pattern, not written */
    uint8_t op; /* UnOp, BinOp */
    Span span;
    Span op_span; /* of the operator's own text: `+`, `@@`, `(` of a call is the callee's */
    union {
        Name name;           /* NAME, LET, FREE_VAR, RECORD */
        const Symbol *field; /* FIELD */
        struct {             /* the others */
            union {
                int64_t i;
                double f;
            };
            const Symbol *dtype; /* INT, FLOAT: the suffix as a dtype name, or NULL */
            const char *text;
            size_t text_len;
        };
    };
    Ast *a, *b, *c, *body;
    AstType *type; /* LET, FREE_VAR annotation; CAST; ZERO */
    AstVec args;
    union {
        struct {
            AstAttrVec attrs;     /* CALL */
            AstTypeVec type_args; /* CALL, INSTANTIATE */
        };
        AstPattern *pattern;   /* LET: takes `a` apart, or NULL */
        NameVec fields;        /* RECORD, WITH */
        AstFn *fn;             /* FN */
        VEC(AstArm) arms;      /* MATCH */
        VEC(AstIndex) indices; /* INDEX, WITH_AT */
    };
};

static inline bool ast_has_indices(const Ast *e) {
    return e->kind == AST_INDEX || e->kind == AST_WITH_AT;
}

/* ---- items ----------------------------------------------------------------------------------- */

typedef enum ItemKind {
    ITEM_DEF,         /* def @f … { … } */
    ITEM_TYPE,        /* type T[…] { … } */
    ITEM_EXTERN_TYPE, /* extern type T */
    ITEM_OPERATOR,    /* operator @f : T = "symbol" from "library" */
    ITEM_DERIVATIVE,  /* derivative op(args; out, ct) { … } */
    ITEM_TANGENT,     /* tangent op(args; out, dargs…) { … } */
    ITEM_NO_DERIVATIVE,
    ITEM_LET,       /* let x : T = e */
    ITEM_GRAPH_LET, /* %0 = e */
    ITEM_FREE_VAR,
    ITEM_IMPORT,
    ITEM_EXPR,  /* e (shown) or e; (not shown) */
    ITEM_ERROR, /* skipped by recovery */
} ItemKind;

typedef struct AstField {
    const Symbol *name; /* NULL in a constructor by position */
    AstType *type;
    Span span;
} AstField;

typedef struct AstCtor {
    Name name;
    VEC(AstField) fields;
    bool named; /* written C { w: T } */
} AstCtor;

typedef struct Item {
    ItemKind kind;
    Span span;
    Name name;                   /* DEF, TYPE, OPERATOR, DERIVATIVE…, LET, FREE_VAR */
    AstFn *fn;                   /* DEF; DERIVATIVE, TANGENT: params are the names before `;` */
    NameVec extra;               /* DERIVATIVE, TANGENT: the names after `;` */
    AstTypeParamVec type_params; /* TYPE, EXTERN_TYPE */
    VEC(AstCtor) ctors;          /* TYPE */
    AstType *type;               /* LET, FREE_VAR, OPERATOR */
    Ast *value;                  /* LET, GRAPH_LET, EXPR */
    AstPattern *pattern;         /* LET: takes the value apart, or NULL */
    bool derived;                /* LET: made by the pattern of an item before, not written */
    int64_t index;               /* GRAPH_LET */
    bool shown;                  /* EXPR: no `;` after it */
    const char *path;            /* IMPORT "path"; OPERATOR: library */
    const char *symbol;          /* OPERATOR: the C symbol */
    const Symbol *as;            /* IMPORT nn as m */
    NameVec names;               /* IMPORT nn (linear, sgd); IMPORT nn: name */
    bool has_names;
    const char *doc; /* the `///` lines before it, or NULL */
} Item;

/* A constant of a #[metadata] section, decoded. */
typedef struct MetaConstant {
    uint8_t code, bits; /* DLPack: 0 int, 1 uint, 2 float, 4 bfloat; bool is uint 1 */
    int ndim;
    int64_t *shape;
    const void *data; /* little-endian, contiguous, unscanned memory */
    size_t bytes;
} MetaConstant;

typedef struct Comment {
    Span span;     /* of the text with its delimiters */
    bool own_line; /* nothing but blanks before it on its line */
} Comment;

/* What one source reads as. */
typedef struct Module {
    const Source *source;
    VEC(Item *) items;
    bool versioned; /* #[version = "0.0.5"]: bare names are operators and
                                        constructors only, backslashes are themselves */
    const char *version;
    VEC(MetaConstant *) constants; /* meta[relay.Constant][i] */
    VEC(Comment) comments;         /* in source order, for the printer */
    Map heads;                     /* what its items bind, for the reader */
} Module;

#endif
