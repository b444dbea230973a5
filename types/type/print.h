/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a text that holds several types under one set of names: a scheme with its relations
 * (solve/scheme_print.c). type.h has what prints one type. */
#ifndef TYPES_TYPE_PRINT_H
#define TYPES_TYPE_PRINT_H

#include "types/type/type.h"

enum { TYPE_PRINT_LIMIT = 2000 }; /* bytes of one type */

/* The name of a variable or parameter: the one it has in the program, or the next that is free. */
const Symbol *namer_name(TypeNamer *namer, Type *t);
const Symbol *namer_take(TypeNamer *namer, Type *t, const Symbol *name); /* gives t this name */
/* To be called with all types of a text before the first is printed: an unknown that they hold twice gets
 * a number. */
void namer_count_unknowns(TypeNamer *namer, Type *const *types, size_t n);

void type_print_part(Str *out, Type *t, TypeNamer *namer);       /* after namer_count_unknowns */
void type_print_signature(Str *out, Type *fn, TypeNamer *namer); /* (a, b) -> c */
/* Adds what was printed into a Str of its own, so that the limit counts this type alone. */
void type_print_append(Str *out, Str *part);

#endif
