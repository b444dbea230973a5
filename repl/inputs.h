/* SPDX-License-Identifier: Apache-2.0 */
/* Values from outside: parameters of @main and free_vars. */
#ifndef REPL_INPUTS_H
#define REPL_INPUTS_H

#include "repl/session_internal.h"

/* Calls @main with its inputs and shows the value; a @main with parameters and no --input is left
 * alone. */
SessionStatus inputs_run_main(Session *s, Global *main_fn, Diags *diags);

/* Gives the free variables that an item mentions their values. */
bool inputs_fill(Session *s, const CoreItem *item, Diags *diags);

#endif
