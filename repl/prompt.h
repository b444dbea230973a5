/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt: reads entries until the end of input or `:quit`. The reader decides when an entry is
 * complete; an empty line or Ctrl-C drops one that is not. A mistake never ends it. */
#ifndef REPL_PROMPT_H
#define REPL_PROMPT_H

#include "repl/session.h"

/* The exit status. colors: of what is typed. */
int prompt_run(Session *s, bool colors);

#endif
