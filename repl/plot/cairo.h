/* SPDX-License-Identifier: Apache-2.0 */
/* A plot as SVG, PNG or PDF, by cairo, which is opened when the first one is drawn. */
#ifndef REPL_PLOT_CAIRO_H
#define REPL_PLOT_CAIRO_H

#include "repl/plot/model.h"

typedef enum PlotFormat { PLOT_SVG, PLOT_PNG, PLOT_PDF } PlotFormat;

/* Adds the file's bytes; NULL, or why there are none. */
const char *plot_draw(Str *out, const PlotModel *p, PlotFormat format);

typedef struct PlotPixels {
    int width, height;
    const uint32_t *pixels; /* 0xffRRGGBB, rows from above */
} PlotPixels;
const char *plot_draw_pixels(const PlotModel *p, PlotPixels *out);

#endif
