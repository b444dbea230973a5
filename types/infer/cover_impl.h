/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of cover.c that cover_show.c needs: what the analysis knows of a value. Private to cover*.c. */
#ifndef TYPES_INFER_COVER_IMPL_H
#define TYPES_INFER_COVER_IMPL_H

#include "types/infer/cover.h"

/* A pattern that tests something, each made once: equal patterns are one Node. NULL is a pattern
 * that takes every value (`_`, a variable, a tuple of such, the only constructor of such). */
typedef struct Node Node;
struct Node {
    PatternKind kind;
    const void *key; /* equal for equal heads: the constructor, the node of the literal, … */
    const Pattern *pattern;
    uint32_t nargs;
    Node **args;
    uint64_t hash;
    Node *next;
};

typedef VEC(uint32_t) RowList;

/* A test of a column, and the rows that may match under it. */
typedef struct Head {
    Node *node;
    RowList rows;
} Head;

/* A part of the value, and what the branch being looked at says of it. */
typedef struct Place Place;
struct Place {
    Type *type;              /* NULL: not known */
    const Pattern *head;     /* CTOR, TUPLE, LIT, STRING; NULL: anything */
    const Ctor *absent_ctor; /* or some constructor that the column does not name, */
    bool several;            /* which is one of several such */
    const Head *others;      /* or a literal that is none of these */
    uint32_t nothers;
    Place **kids; /* the parts of a CTOR or TUPLE */
};

bool node_has_float(const Pattern *p);

/* The values a branch came to, as a pattern; a long one is cut, `…` for what is left out. list: the
 * type List, to be written as `list[…]`, or NULL. all: every value of the branch, or NULL where that is
 * long; else a literal stands for those that no arm has. */
const char *place_text(const Place *root, const TypeDecl *list, bool all);

/* Fields of a constructor at a type (NULL: not known); NULL when not known. */
Type *cover_field_type(Type *data, const Ctor *ctor, uint32_t field);
bool cover_ctor_is_inhabited(Type *data, const Ctor *ctor);

#endif
