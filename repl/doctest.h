/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that run: what a page types at `relay> ` is entered, and the answers are compared with those
 * that the page shows.
 *
 * In Markdown, blocks fenced as ```relay are looked at, and in a manual page (`.1` to `.9`) blocks
 * between `.nf` or `.EX` and `.fi` or `.EE`, their escapes undone. An entry goes on in lines behind
 * `  ...> `; what follows up to the next entry, or the end of the block, is the answer, diagnostics
 * included. Blanks at the end of a line do not count, and `{*}` stands for any text within a line. All
 * blocks of a page are one session; `relay> ^D` ends it. */
#ifndef REPL_DOCTEST_H
#define REPL_DOCTEST_H

#include "base/str.h"
#include "repl/session.h"

enum { DOCTEST_WIDTH = 100 }; /* columns to which values and diagnostics are laid out */

typedef struct DoctestCount {
    size_t passed, failed; /* entries */
} DoctestCount;

/* The same for a lesson of `:tutor` (a file `.tut`), which is played with right and wrong answers. */
void doctest_play(Session *s, const char *path, bool shows, DoctestCount *count, Str *out);
/* Adds what differs to `out`. A page that cannot be read, or that types nothing, is a failure. */
void doctest_run(Session *s, const char *path, DoctestCount *count, Str *out);

#endif
