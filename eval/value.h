/* SPDX-License-Identifier: Apache-2.0 */
/* Values: 16 bytes that describe themselves, so that polymorphic code needs no types at run time,
 * printing never guesses, and `?` sizes are checked where they are met. A scalar stands in place;
 * everything else is a pointer, which the conservative collector sees without a map. */
#ifndef EVAL_VALUE_H
#define EVAL_VALUE_H

#include "tensor/tensor.h"
#include "types/core/core.h"

typedef enum ValueTag {
    VAL_SCALAR,  /* rank 0: aux is its DType; i (bool, integers; uint64 by its bits) or f (floats,
                    float16 and bfloat16 as the double they equal) */
    VAL_TENSOR,  /* Tensor *, rank 1 and more (rank 0 is always VAL_SCALAR) */
    VAL_TUPLE,   /* Tuple *; () has p NULL */
    VAL_CTOR,    /* nullary: p is the Ctor itself and aux 0; else Data *, aux its nfields */
    VAL_CLOSURE, /* Closure * */
    VAL_REF,     /* Ref * */
    VAL_STRING,  /* String * */
    VAL_BUILTIN, /* const Builtin *: a builtin as a value */
    VAL_DUAL,    /* Dual *: an active float tensor of a running derivative (passes/grad.h) */
    VAL_ABSENT,  /* of an uninitialised slot; never seen by a program */
} ValueTag;

typedef struct Value {
    uint32_t tag, aux;
    union {
        int64_t i;
        double f;
        void *p;
    };
} Value;

typedef struct Tuple {
    uint32_t n;
    Value items[];
} Tuple;

typedef struct Data {
    Ctor *ctor;
    Value fields[]; /* ctor->nfields */
} Data;

typedef struct Ref {
    Value value;
    uint64_t epoch;   /* how many derivatives had begun when it was made: an outer reference of grad
                       number n has epoch < n */
    uint64_t written; /* how many had begun when it was last written as an outer reference; or 0 */
} Ref;

/* Note [Parts of Strings]. A String that is taken apart from the front shares its text with what is left: the end of a
 * text is NUL-terminated like the whole. Where the last position that was looked up lies is kept, so that a loop over
 * positions takes linear time although characters differ in length. */
typedef struct String {
    size_t len;
    const char
        *text;     /* NUL-terminated; bytes, UTF-8 by convention. In `own`, or in that of `base` */
    int64_t chars; /* how many characters, or -1 where nobody has counted them */
    int64_t at_char; /* a position that was looked up, and where it lies */
    size_t at_byte;
    const struct String
        *base; /* whose text it shares, or NULL; then the collector looks into this block */
    char own[];
} String;

struct Code;
typedef struct Closure {
    Expr *fn;          /* EXPR_FN (its base or a twin) */
    struct Code *code; /* compiled form of fn */
    uint32_t ncaptured;
    Value captured[];
} Closure;

/* level: the number of the grad or jvp this is active in (1, 2, … in order of beginning). In
 * reverse mode `other` is the cell, a VAL_REF holding () for zero or the cotangent so far; in
 * forward mode the tangent. */
typedef struct Dual {
    Value primal;
    Value other;
    uint64_t level;
} Dual;

static inline Value value_unit(void) { return (Value){.tag = VAL_TUPLE}; }
static inline Value value_bool(bool b) {
    return (Value){.tag = VAL_SCALAR, .aux = DT_BOOL, .i = b};
}
static inline Value value_int(DType t, int64_t i) {
    return (Value){.tag = VAL_SCALAR, .aux = (uint32_t)t, .i = i};
}
static inline Value value_float(DType t, double f) {
    return (Value){.tag = VAL_SCALAR, .aux = (uint32_t)t, .f = f};
}
Value value_tensor(Tensor *t);    /* rank 0 becomes a scalar */
Tensor *value_to_tensor(Value v); /* a scalar becomes a rank-0 tensor; NULL when it is neither */
Value value_tuple(const Value *items, uint32_t n);
Value value_string(const char *text, size_t len);
/* Of `len` bytes, to be written to `own`. */
String *string_new(size_t len);
/* What stands behind the first `from` bytes: so many characters, or -1. Shares the text. */
const String *string_end(const String *s, size_t from, int64_t chars);
Value value_data(Ctor *ctor, const Value *fields);
Value value_primal(Value v);         /* through all duals */
bool value_is_float_tensor(Value v); /* duals included */

/* LANGUAGE §6: `value` alone, as it is printed before ` : type`. Iterative over lists. width: of
 * the terminal, 0 for 80. Data that is wider is laid out as a tree, a field a line (one_line: data
 * stays on one line, however wide). digits: floats are rounded to so many significant digits, 0 for
 * the shortest text that reads back. An interrupt leaves a text that is cut short: the caller asks
 * the flag. */
typedef struct ValuePrintOptions {
    int width;
    int edge;
    int digits;
    bool one_line;
    int64_t max_elements;          /* and rows */
    const volatile int *interrupt; /* NULL: never */
    bool nested;                   /* as a part of other data: on one line, and so is a tensor */
} ValuePrintOptions;
void value_print(Str *out, Value v, const ValuePrintOptions *options);

/* Structural equality (`==` on tuples, data, Strings; tensors inside as a whole; refs by identity).
 * -1: a function was met. */
int value_equal(Value a, Value b);

#endif
