/* SPDX-License-Identifier: Apache-2.0 */
/* `:kind`: the kind of a type as written. */
#ifndef REPL_KIND_H
#define REPL_KIND_H

#include "repl/session.h"

/* Appends `TEXT : KIND`. False: a diagnostic was printed. */
bool session_kind(Session *s, const char *text, Str *out);

#endif
