/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as terminals of DEC's kind take them: sixels, six rows of pixels a line. */
#ifndef REPL_PLOT_SIXEL_H
#define REPL_PLOT_SIXEL_H

#include "base/str.h"
#include "repl/plot/cairo.h"

/* Adds the picture in at most 256 colours of its own, and a line end. Two colours that differ in the lower two
 * bits of their parts only may become one. */
void plot_add_sixel(Str *out, const PlotPixels *p);

#endif
