/* SPDX-License-Identifier: Apache-2.0 */
/* A text changed in the user's editor: $VISUAL, else $EDITOR, else vi. */
#ifndef REPL_EDIT_H
#define REPL_EDIT_H

#include "base/str.h"

/* Lets the editor change a file with this text, and reads what it left into out. NULL, or why there is none. */
const char *edit_text(const char *text, Str *out);

#endif
