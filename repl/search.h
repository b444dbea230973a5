/* SPDX-License-Identifier: Apache-2.0 */
/* `:search TYPE`: what may stand where a value of the type is wanted. */
#ifndef REPL_SEARCH_H
#define REPL_SEARCH_H

#include "repl/session.h"

/* A name of one small letter stands for any type, the same one wherever it stands; `_` for any at each place. What is
 * least general comes first. False after a diagnostic about the type. */
bool search_type(Session *s, const char *type, Str *out);

#endif
