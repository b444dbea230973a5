/* SPDX-License-Identifier: Apache-2.0 */
/* Random modules that the reader could have made, drawn from every production of the syntax; what was
 * drawn is counted. They are well-formed, not well-typed. */
#ifndef TESTS_PROPERTY_AST_GEN_H
#define TESTS_PROPERTY_AST_GEN_H

#include "parser/ast.h"

typedef struct Gen {
    uint64_t state;
    int depth; /* how much deeper an expression may go */
    bool versioned;
    bool in_call;    /* sizes among attributes are expressions */
    bool soft;       /* soft words are bound, and their syntax is not drawn */
    VEC(Name) scope; /* bare and sigil locals */
} Gen;

Module *gen_module(uint64_t seed);
/* The productions never drawn so far, one a line. */
const char *gen_missing(void);

#endif
