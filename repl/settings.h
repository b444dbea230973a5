/* SPDX-License-Identifier: Apache-2.0 */
/* `:set NAME VALUE` and `:unset NAME`: how values are shown, and other habits of a session. */
#ifndef REPL_SETTINGS_H
#define REPL_SETTINGS_H

#include "repl/session.h"

/* The names, with what each takes and does. */
size_t settings_count(void);
const char *settings_name(size_t i);

/* "NAME VALUE", or "" to list them all. What is wrong is complained of. */
void settings_change(Session *s, const char *text);

/* Gives a setting the value that it had when the session began. */
void settings_reset(Session *s, const char *name);

#endif
