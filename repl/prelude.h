/* SPDX-License-Identifier: Apache-2.0 */
/* The prelude of a session: bound item by item, on first use. The functions with a `void *ctx` are
 * the hooks of types/infer/infer.h; ctx is the Session. */
#ifndef REPL_PRELUDE_H
#define REPL_PRELUDE_H

#include "repl/session_internal.h"

typedef struct Prelude Prelude;

/* Scans the embedded texts and binds the types. False: printed. */
bool prelude_open(Session *s);
void prelude_load_global(void *ctx, const Symbol *name);
void prelude_load_rules(void *ctx, const Symbol *op);
void prelude_each_name(void *ctx, SymbolVec *out);
/* For the reader: whether the prelude binds a name, without loading it. */
KnownName prelude_find_known(Session *s, const Symbol *name);
/* Every item, for tests. False when one does not check. */
bool prelude_load_all(Session *s);

#endif
