/* SPDX-License-Identifier: Apache-2.0 */
/* A plot as a terminal can show it: as a picture where it takes one, else as text. */
#ifndef REPL_PLOT_SCREEN_H
#define REPL_PLOT_SCREEN_H

#include "repl/plot/text.h"

typedef enum PlotScreen {
    SCREEN_AUTO, /* asks the environment */
    SCREEN_KITTY,
    SCREEN_ITERM,
    SCREEN_SIXEL,
    SCREEN_BRAILLE,
    SCREEN_ASCII,
    NSCREENS
} PlotScreen;
extern const char *const plot_screen_names[NSCREENS];

/* What the environment says of the terminal: pictures only where standard output is one and no multiplexer
 * stands between; braille where the locale is UTF-8. */
PlotScreen plot_screen_find(bool is_terminal);

/* Asks the terminal of a prompt that plot_screen_find knows nothing of: whether it takes pictures. One that does not answer
 * within 100 ms takes none. */
PlotScreen plot_screen_ask(void);

/* Without cairo a picture is text. */
void plot_show(Str *out, const PlotModel *p, PlotScreen screen, const PlotLook *look);

#endif
