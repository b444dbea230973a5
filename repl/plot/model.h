/* SPDX-License-Identifier: Apache-2.0 */
/* A plot as it is drawn: what a value of the library's `plot.Plot` says (stdlib/plot.rly), with histograms
 * counted, contours traced, and the axes laid out. text.c and cairo.c draw it. */
#ifndef REPL_PLOT_MODEL_H
#define REPL_PLOT_MODEL_H

#include "base/str.h"
#include "base/vec.h"
#include "eval/value.h"

typedef enum PlotKind { PLOT_LINE, PLOT_SCATTER, PLOT_BARS, PLOT_HEAT, PLOT_IMAGE } PlotKind;

typedef struct PlotMark {
    PlotKind kind;
    const char *name; /* for the legend; "" for none */
    int series;       /* which colour */
    size_t n;
    const double *x, *y; /* a line breaks where one is not finite */
    double width;        /* of bars, along x */
    int64_t rows, columns;
    int channels;     /* of an image; 0: a heat map */
    const double *z;  /* rows x columns (x channels), the first row above */
    double low, high; /* of a heat map's numbers */
    bool by_height;   /* coloured by `height`, 0 to 1, as a heat map is */
    double height;
} PlotMark;

enum { PLOT_MAX_TICKS = 12 };

typedef struct PlotAxis {
    const char *text;
    bool log;   /* then low, high and positions are logarithms to base 10 */
    bool whole; /* only whole numbers have a tick: those of all bars are */
    double low, high;
    int nticks;
    double ticks[PLOT_MAX_TICKS]; /* positions */
    const char *labels[PLOT_MAX_TICKS];
} PlotAxis;

typedef struct PlotModel {
    VEC(PlotMark) marks;
    const char *title;
    PlotAxis x, y;
    bool is_empty;                  /* nothing finite is there to draw */
    VEC(struct PlotModel *) panels; /* if there are any, nothing else is drawn */
} PlotModel;

bool plot_is(Value v);
/* interrupt: NULL or a flag that cuts the work short. */
PlotModel *plot_read(Value v, const volatile int *interrupt);

/* Where a number lies on an axis, 0 to 1; not finite where it has no place. */
double plot_place(const PlotAxis *axis, double value);

#endif
