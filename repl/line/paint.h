/* SPDX-License-Identifier: Apache-2.0 */
/* Colours for an entry, by the reader's own lexer, so that they never tell another story than it.
 * Brackets without a partner of their kind are wrong; the pair at the cursor is marked. */
#ifndef REPL_LINE_PAINT_H
#define REPL_LINE_PAINT_H

#include "repl/line/screen.h"

/* Fills styles[0..len). The cursor counts for the pair of brackets: SIZE_MAX for none. */
void paint_text(const char *text, size_t len, size_t cursor, uint8_t *styles);

/* How deep brackets are open at the end, and where the innermost of them stands; 0 for none. */
size_t paint_count_open(const char *text, size_t len, size_t *innermost);

#endif
