/* SPDX-License-Identifier: Apache-2.0 */
/* `:graph e`: the values of a derivative in reverse mode, each with its cotangent, and where that came from. What is
 * shown is the outermost derivative of e, or e itself as a function of its arguments where it has none.
 *
 * It is taken from the reference evaluator while it runs (eval/reference/reference.h): every engine gives the same
 * values, and this one has a step forward and a step back for each operator. */
#ifndef REPL_GRAPH_H
#define REPL_GRAPH_H

#include "repl/session.h"

typedef enum GraphForm { GRAPH_TEXT, GRAPH_DOT, GRAPH_SVG } GraphForm;

/* False after a diagnostic or complaint. */
bool graph_print(Session *s, const char *expr, GraphForm form, Str *out);

#endif
