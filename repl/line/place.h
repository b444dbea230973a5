/* SPDX-License-Identifier: Apache-2.0 */
/* Where the prompt keeps its files. */
#ifndef REPL_LINE_PLACE_H
#define REPL_LINE_PLACE_H

#include <stdbool.h>

/* $XDG_STATE_HOME/relay/NAME and $XDG_CONFIG_HOME/relay/NAME, or below ~; NULL without a home. */
const char *place_of_state(const char *name);
const char *place_of_settings(const char *name);
/* Makes the directories on the way to a file. */
bool place_make_parents(const char *path);

#endif
