/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/plot/screen.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/output.h"
#include "repl/line/terminal.h"
#include "repl/plot/cairo.h"
#include "repl/plot/sixel.h"

const char *const plot_screen_names[NSCREENS] = {"auto",  "kitty",   "iterm",
                                                 "sixel", "braille", "ascii"};

/* ---- which ----------------------------------------------------------------------------------- */

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value;
}

static bool starts(const char *name, const char *with) {
    const char *value = getenv(name);
    return value && strncmp(value, with, strlen(with)) == 0;
}

PlotScreen plot_screen_find(bool is_terminal) {
    static const char *const sixel_terms[] = {"foot", "mlterm", "yaft", "contour"};
    bool direct = is_terminal && !is_set("TMUX") && !is_set("STY") && !starts("TERM", "dumb");
    if (direct && (is_set("KITTY_WINDOW_ID") || starts("TERM", "xterm-kitty") ||
                   starts("TERM_PROGRAM", "ghostty")))
        return SCREEN_KITTY;
    if (direct && (starts("TERM_PROGRAM", "iTerm") || starts("TERM_PROGRAM", "WezTerm")))
        return SCREEN_ITERM;
    for (size_t i = 0; direct && i < sizeof sixel_terms / sizeof *sixel_terms; i++)
        if (starts("TERM", sixel_terms[i]))
            return SCREEN_SIXEL;
    return output_is_utf8() && !starts("TERM", "dumb") ? SCREEN_BRAILLE : SCREEN_ASCII;
}

PlotScreen plot_screen_ask(void) {
    enum { PATIENCE = 100 }; /* milliseconds */
    /* kitty's question, of a picture of one pixel; and what every terminal answers: what it is. */
    static const char question[] = "\033_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\033\\\033[c";
    char answers[512];
    PlotScreen screen = plot_screen_find(true);
    bool is_text = screen == SCREEN_BRAILLE || screen == SCREEN_ASCII;
    if (!is_text || is_set("TMUX") || is_set("STY") || starts("TERM", "dumb") ||
        starts("TERM", "screen") || starts("TERM", "tmux") || starts("TERM", "linux") ||
        starts("TERM", "vt") || /* those may write the question down */
        !terminal_ask(question, answers, sizeof answers, PATIENCE))
        return screen;
    if (strstr(answers, "\033_Gi=31;OK"))
        return SCREEN_KITTY;
    const char *what = strstr(answers, "\033[?"); /* ESC [ ? class ; attribute ; … c */
    for (what = what ? strchr(what, ';') : NULL; what; what = strchr(what + 1, ';'))
        if (what[1] == '4' && (what[2] == ';' || what[2] == 'c'))
            return SCREEN_SIXEL;
    return screen;
}

/* ---- pictures -------------------------------------------------------------------------------- */

static void add_base64(Str *out, const char *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned b0 = (unsigned char)bytes[i], b1 = i + 1 < n ? (unsigned char)bytes[i + 1] : 0,
                 b2 = i + 2 < n ? (unsigned char)bytes[i + 2] : 0;
        str_add_char(out, digits[b0 >> 2]);
        str_add_char(out, digits[(b0 & 3) << 4 | b1 >> 4]);
        str_add_char(out, i + 1 < n ? digits[(b1 & 15) << 2 | b2 >> 6] : '=');
        str_add_char(out, i + 2 < n ? digits[b2 & 63] : '=');
    }
}

/* The terminal graphics protocol of kitty: at most 4,096 bytes an escape. */
static void add_kitty(Str *out, const Str *png) {
    enum { CHUNK = 4096 };
    Str text = {0};
    add_base64(&text, png->text, png->len);
    for (size_t at = 0; at < text.len; at += CHUNK) {
        size_t n = text.len - at < CHUNK ? text.len - at : CHUNK;
        str_printf(out, "\033_G%sm=%d;", at ? "" : "a=T,f=100,", at + n < text.len);
        str_add_n(out, text.text + at, n);
        str_add(out, "\033\\");
    }
    str_add_char(out, '\n');
}

static void add_iterm(Str *out, const Str *png) {
    str_printf(out, "\033]1337;File=inline=1;size=%zu:", png->len);
    add_base64(out, png->text, png->len);
    str_add(out, "\a\n");
}

/* False without cairo. */
static bool add_picture(Str *out, const PlotModel *p, PlotScreen screen) {
    PlotPixels pixels;
    Str png = {0};
    if (screen == SCREEN_SIXEL) {
        if (plot_draw_pixels(p, &pixels))
            return false;
        plot_add_sixel(out, &pixels);
        return true;
    }
    if (plot_draw(&png, p, PLOT_PNG))
        return false;
    if (screen == SCREEN_KITTY)
        add_kitty(out, &png);
    else
        add_iterm(out, &png);
    return true;
}

void plot_show(Str *out, const PlotModel *p, PlotScreen screen, const PlotLook *look) {
    PlotLook as_text = *look;
    if ((screen == SCREEN_KITTY || screen == SCREEN_ITERM || screen == SCREEN_SIXEL) &&
        add_picture(out, p, screen))
        return;
    as_text.ascii = screen == SCREEN_ASCII || (screen != SCREEN_BRAILLE && !output_is_utf8());
    plot_print(out, p, &as_text);
}
