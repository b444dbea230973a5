/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes: polynomials with integer coefficients, in normal form, over atoms: dim variables and
 * parameters, unknowns (`?`), and floordiv / min / max of polynomials (LANGUAGE §4). */
#ifndef TYPES_TYPE_DIM_H
#define TYPES_TYPE_DIM_H

#include "types/type/type.h"

typedef enum DimAtomKind {
    DIM_ATOM_TYPE /* TY_VAR, TY_PARAM, TY_ANY */,
    DIM_ATOM_FLOORDIV,
    DIM_ATOM_MIN,
    DIM_ATOM_MAX
} DimAtomKind;
typedef struct DimAtom {
    DimAtomKind kind;
    Type *type;  /* DIM_ATOM_TYPE */
    Type *a, *b; /* the others: two dims */
} DimAtom;

typedef struct DimMonomial {
    int64_t coef;
    uint32_t natoms;
    const DimAtom **atoms; /* sorted; a power repeats its atom */
} DimMonomial;

struct Dim {
    int64_t constant;
    uint32_t nterms;
    const DimMonomial *terms; /* sorted, no zero coefficients */
};

/* Arithmetic; operands and results are types of KIND_DIM (a lone variable stays a TY_VAR). All of
 * them normalise. Overflow of int64 gives an unknown. */
Type *dim_add(Type *a, Type *b);
Type *dim_sub(Type *a, Type *b);
Type *dim_mul(Type *a, Type *b);
Type *dim_floordiv(Type *a, Type *b);
Type *dim_min(Type *a, Type *b);
Type *dim_max(Type *a, Type *b);
Type *dim_add_int(Type *a, int64_t n);

/* Looks through links and renormalises. */
Type *dim_normal(Type *d);

/* Different: by a non-zero constant, or whatever the sizes in them are (2 * n and 2 * m + 1). */
typedef enum DimCompare { DIM_EQUAL, DIM_DIFFERENT, DIM_UNDECIDED } DimCompare;
DimCompare dim_compare(Type *a, Type *b);
bool dim_is_size(Type *d); /* never negative, whatever its variables are */

/* The number a size is when `of` tells what its atoms are. DIM_NO_SIZE: beyond int64. */
typedef enum DimKnown { DIM_KNOWN, DIM_NOT_KNOWN, DIM_NO_SIZE } DimKnown;
typedef DimKnown (*DimOf)(void *ctx, Type *atom, int64_t *out);
DimKnown dim_evaluate(Type *d, DimOf of, void *ctx, int64_t *out);
DimKnown dim_evaluate_term(const DimMonomial *term, DimOf of, void *ctx, int64_t *out);

void dim_print(Str *out, Type *d, TypeNamer *namer);

#endif
