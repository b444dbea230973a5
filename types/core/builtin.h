/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of builtins: first those of ad.def, then those of builtin.def, in their order. What a room knows of each
 * stands in a table of its own that has that order. */
#ifndef TYPES_CORE_BUILTIN_H
#define TYPES_CORE_BUILTIN_H

/* -1 where no builtin is called so. */
int builtin_number(const char *name);

#endif
