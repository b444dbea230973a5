/* SPDX-License-Identifier: Apache-2.0 */
/* A plot as text: in dots of braille, two by four a character, or in ASCII. */
#ifndef REPL_PLOT_TEXT_H
#define REPL_PLOT_TEXT_H

#include "repl/plot/model.h"

typedef struct PlotLook {
    int width, height; /* columns and rows, the texts at the axes included */
    bool ascii;
    bool color; /* a colour of the terminal for each mark */
} PlotLook;

void plot_print(Str *out, const PlotModel *p, const PlotLook *look);

#endif
