/* SPDX-License-Identifier: Apache-2.0 */
/* What a terminal pastes, as Relay's text. */
#ifndef REPL_LINE_PASTE_H
#define REPL_LINE_PASTE_H

#include "base/str.h"

/* Line breaks become '\n'. A paste that begins with the prompt is taken for a piece of a session: of its
 * lines those with a prompt are kept, without it, and what was answered is left out. */
void paste_clean(const char *text, size_t len, Str *out);

#endif
