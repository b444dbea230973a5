/* SPDX-License-Identifier: Apache-2.0 */
/* `:step e`: an evaluation one step at a time, also the way back of a gradient. A step shows the source, the value made,
 * and going back the cotangent and where it goes. It is the reference evaluator that runs (repl/graph.h says why). */
#ifndef REPL_STEP_H
#define REPL_STEP_H

#include "repl/session.h"

/* Asks `step> ` after each step where standard input is a terminal, else shows the first 200. */
void step_run(Session *s, const char *expr, bool asks);

#endif
