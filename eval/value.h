/* SPDX-License-Identifier: Apache-2.0 */
/* Values: 16 bytes that describe themselves, so that polymorphic code needs no types at run time,
 * printing never guesses, and `?` sizes are checked where they are met. A scalar stands in place;
 * everything else is a pointer, which the conservative collector sees without a map. */
#ifndef EVAL_VALUE_H
#define EVAL_VALUE_H

#include "tensor/tensor.h"
#include "types/core/core.h"

#include <string.h>

typedef enum ValueTag {
    VAL_SCALAR, /* rank 0: aux is its DType; i (bool, integers; uint64 by its bits) or f (floats,
                    float16 and bfloat16 as the double they equal) */
    VAL_TENSOR, /* Tensor *, rank 1 and more (rank 0 is always VAL_SCALAR) */
    VAL_TUPLE,  /* Tuple *; () has p NULL */
    VAL_CTOR, /* Data *; of a constructor without fields p is the Ctor itself, which begins alike */
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
    uint32_t
        owned; /* a bit for each item from 1 on: a tensor that nothing else refers to (eval/own.h) */
    Value items[];
} Tuple;

/* Note [Cells]. A field of data takes one word: what the value holds. Its first word (tag and aux) stands in the layout,
 * which most data of a constructor shares: so a tree's node of three fields takes 32 bytes, two to a line of the cache,
 * where three values would take 64, and an insertion into a tree waits half as long for memory. A layout says what the
 * fields are, not what the declaration allows: a dual, an absent cotangent or either of the types that a generic
 * constructor is used at only make another layout. All values of constructors have one tag and aux, whichever they are
 * of, lest a tree have a layout for each way in which subtrees may be empty. The cell is made for the layout that the
 * same instruction found last, and the layout is looked up only where a first word differs. After C. Chambers,
 * D. Ungar and E. Lee, "An Efficient Implementation of SELF", OOPSLA 1989, section 3 (maps). */
typedef struct DataLayout {
    Ctor *ctor;
    const struct DataLayout *next; /* others of the constructor: eval/data_layout.c */
    uint32_t n;                    /* fields */
    uint64_t heads[];              /* tag, and aux above it, of each */
} DataLayout;

typedef struct Data {
    const DataLayout *layout; /* of its constructor */
    uint64_t words[];         /* what follows tag and aux */
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

/* Tag and aux as one word. */
static inline uint64_t value_head(const Value *v) {
    uint64_t head;
    memcpy(&head, v, sizeof head);
    return head;
}
static inline Value value_of_words(uint64_t head, uint64_t word) {
    Value v;
    memcpy(&v, &head, sizeof head);
    memcpy(&v.i, &word, sizeof word);
    return v;
}

/* ---- data: eval/data_layout.c ---- */
Value value_data(Ctor *ctor, const Value *fields);
static inline Ctor *data_ctor(Value data) { return ((const Data *)data.p)->layout->ctor; }
static inline uint32_t data_size(Value data) { return ((const Data *)data.p)->layout->n; }
static inline Value data_get(Value data, uint32_t i) {
    const Data *d = data.p;
    return value_of_words(d->layout->heads[i], d->words[i]);
}
/* Of data that nothing else has seen yet. */
void data_set(Value data, uint32_t i, Value field);
/* The layout of data with these fields. */
const DataLayout *data_layout(Ctor *ctor, const Value *fields);
/* A layout of the constructor to try first; there need not be data of it. */
const DataLayout *data_layout_first(Ctor *ctor);
/* What a field whose value is not there yet holds: likely of the same layout as a value of the type. */
Value data_hole(Type *type);

/* The items of a tuple or the fields of data; no others have parts. */
static inline uint32_t value_count(Value v) {
    if (v.tag == VAL_CTOR)
        return data_size(v);
    return v.tag == VAL_TUPLE && v.p ? ((const Tuple *)v.p)->n : 0;
}
static inline Value value_part(Value v, uint32_t i) {
    return v.tag == VAL_CTOR ? data_get(v, i) : ((const Tuple *)v.p)->items[i];
}
/* Of a tuple or data that nothing else has seen yet. */
void value_set_part(Value whole, uint32_t i, Value part);
Value value_primal(Value v);         /* through all duals */
bool value_is_float_tensor(Value v); /* duals included */

/* Tuples and data that are nested in their last parts, made from the outside in a loop: a list takes no stack. */
typedef struct ValueChain {
    Value whole, inner;
    bool begun;
} ValueChain;
/* Adds a tuple or data that stands in the last part of the one before; its own last part comes later. */
void value_chain_add(ValueChain *c, Value next);
/* Puts the innermost last part in its place; all of it. */
Value value_chain_end(ValueChain *c, Value last);

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
