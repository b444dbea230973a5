/* SPDX-License-Identifier: Apache-2.0 */
/* Operator attributes: `axis=[1], keepdims=True`. The table of an operator drives checking,
 * defaults, printing and hashing. */
#ifndef TYPES_SOLVE_ATTRS_H
#define TYPES_SOLVE_ATTRS_H

#include "base/span.h"
#include "base/str.h"
#include "base/symbol.h"
#include "tensor/dtype.h"

typedef enum AttrKind {
    ATTR_NONE, /* None: "not given" */
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_BOOL,
    ATTR_STRING,
    ATTR_DTYPE,
    ATTR_LIST, /* a list of the others */
    ATTR_DIM,  /* a size that is a type: a dim parameter in scope, or `?` */
    ATTR_REF,  /* in a derivative rule, the call's attribute of this name */
} AttrKind;

/* Note [Sizes are no codes]. A written integer may be a code: in `newshape=[0, -1]` the 0 copies an axis and the -1
 * stands for what is left. A size is none, whatever its value is: with an n that is 0, `newshape=[n, -1]` asks for no
 * rows. So the integer that takes the place of an ATTR_DIM remembers that it is a size. */
typedef struct AttrValue AttrValue;
struct AttrValue {
    AttrKind kind;
    union {
        int64_t i; /* INT, BOOL */
        double f;
        const char *text; /* STRING */
        DType dtype;
        struct {
            const AttrValue *items;
            uint32_t n;
        } list;
        struct Type *dim;  /* DIM */
        const Symbol *ref; /* REF */
    };
    bool is_size; /* an INT that was a size before its value was known: Note [Sizes are no codes] */
    bool computed; /* and its value was computed while running; not compared */
    Span span;     /* where an INT is written, or none; not compared */
};

/* Attributes of one call, in the order of the operator's table, defaults filled in. */
typedef struct Attrs {
    const struct Op *op;
    const AttrValue *values; /* op->nattrs of them */
} Attrs;

/* What an attribute takes; the reader's text is converted to exactly this or refused. */
typedef enum AttrType {
    AT_INT,
    AT_INT_OPT /* or None */,
    AT_FLOAT,
    AT_BOOL,
    AT_STRING,
    AT_DTYPE /* or None: as input */,
    AT_INTS /* list; a lone int is a list of one */,
    AT_INTS_OPT,
    AT_DIMS /* list of ints and sizes */,
    AT_DIMS_OPT,
    AT_DIM_LISTS /* [[1, n], [0, 0]] */,
    AT_INT_OR_DIMS,
    AT_FLOATS,
    AT_DIM,
} AttrType;

typedef struct AttrSpec {
    const char *name;
    AttrType type;
    const char *initial; /* default as text ("0", "[1, 1]", "None", "\"NCHW\""), NULL: required */
    const char *doc;
} AttrSpec;

const AttrValue *attrs_find(const Attrs *attrs, const char *name); /* NULL when there is none */
const AttrValue *attrs_get(const Attrs *attrs, const char *name);  /* BUG when there is none */
const char *attr_type_words(AttrType t);                           /* "an integer or None" */
AttrValue attr_size(int64_t size); /* the value of an ATTR_DIM: Note [Sizes are no codes] */
AttrValue attr_computed_size(int64_t size); /* the same, computed while running */
int64_t attrs_int(const Attrs *attrs, const char *name);
double attrs_float(const Attrs *attrs, const char *name);
bool attrs_bool(const Attrs *attrs, const char *name);
const char *attrs_text(const Attrs *attrs, const char *name);
bool attrs_is_none(const Attrs *attrs, const char *name);
/* False when None or not all integers. */
bool attrs_ints(const Attrs *attrs, const char *name, const int64_t **out, uint32_t *n);
bool attrs_dtype(const Attrs *attrs, const char *name, DType *out); /* false when None */

/* Compares attributes by value. Those of two operators with one relation may be equal. */
bool attrs_equal_values(const Attrs *a, const Attrs *b);
/* The same, where `same` says which sizes are equal. */
typedef bool (*SameSize)(void *ctx, struct Type *a, struct Type *b);
bool attrs_equal_by(const Attrs *a, const Attrs *b, SameSize same, void *ctx);
void attrs_print(Str *out, const Attrs *a); /* only what differs from the defaults: `axis=[1]` */
void attr_print(Str *out, const AttrValue *v);
/* Parses a default's text. */
AttrValue attr_parse(const char *text);
const Attrs *attrs_defaults(const struct Op *op); /* NULL if one is required */
bool attrs_have_refs(const Attrs *a);
bool attrs_have_sizes(const Attrs *a); /* a size that is no number yet: a parameter, or `?` */
/* The same with 1 for each size that is no number yet: what does not depend on these is read from it as from the
 * attributes of a call that runs. */
const Attrs *attrs_with_unit_sizes(const Attrs *a);
/* Replaces ATTR_REF values by those of `call`, where a derivative rule is expanded for a call. */
const Attrs *attrs_substitute(const Attrs *a, const Attrs *call);

#endif
