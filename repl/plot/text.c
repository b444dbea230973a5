/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/plot/text.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { DOTS_X = 2, DOTS_Y = 4 }; /* of a character */

typedef struct Canvas {
    int columns, rows;
    unsigned char *dots; /* a bit a dot, as braille counts them */
    signed char *series; /* of the last mark drawn there, -1: none */
    const char **shades; /* of heat maps and images, NULL elsewhere */
} Canvas;

/* ---- dots ------------------------------------------------------------------------------------ */

static void set_dot(Canvas *c, int x, int y, int series) {
    static const unsigned char bits[DOTS_Y][DOTS_X] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    if (x < 0 || y < 0 || x >= c->columns * DOTS_X || y >= c->rows * DOTS_Y)
        return;
    int at = y / DOTS_Y * c->columns + x / DOTS_X;
    c->dots[at] |= bits[y % DOTS_Y][x % DOTS_X];
    c->series[at] = (signed char)series;
}

/* The dot of a place in the plot; false where it has none. */
static bool find_dot(const Canvas *c, const PlotModel *p, double x, double y, int *dx, int *dy) {
    double px = plot_place(&p->x, x), py = plot_place(&p->y, y);
    if (!isfinite(px) || !isfinite(py) || fabs(px) > 1e4 || fabs(py) > 1e4)
        return false;
    *dx = (int)lround(px * (c->columns * DOTS_X - 1));
    *dy = (int)lround((1 - py) * (c->rows * DOTS_Y - 1));
    return true;
}

/* Bresenham's line. */
static void draw_segment(Canvas *c, int x0, int y0, int x1, int y1, int series) {
    int dx = x1 > x0 ? x1 - x0 : x0 - x1, dy = y1 > y0 ? y0 - y1 : y1 - y0;
    int sx = x0 < x1 ? 1 : -1, sy = y0 < y1 ? 1 : -1, error = dx + dy;
    for (;;) {
        set_dot(c, x0, y0, series);
        if (x0 == x1 && y0 == y1)
            return;
        int twice = 2 * error;
        if (twice >= dy) {
            error += dy;
            x0 += sx;
        }
        if (twice <= dx) {
            error += dx;
            y0 += sy;
        }
    }
}

/* Of four dots, so that it is seen. */
static void draw_spot(Canvas *c, int x, int y, int series) {
    int left = x & ~1, above = y & ~1; /* they share a character */
    for (int i = 0; i < 4; i++)
        set_dot(c, left + (i & 1), above + (i >> 1), series);
}

static void draw_points(Canvas *c, const PlotModel *p, const PlotMark *m) {
    bool joined = false;
    int x, y, last_x = 0, last_y = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!find_dot(c, p, m->x[i], m->y[i], &x, &y)) {
            joined = false;
            continue;
        }
        if (m->kind == PLOT_LINE && joined && (x != last_x || y != last_y))
            draw_segment(c, last_x, last_y, x, y, m->series);
        else if (m->kind == PLOT_SCATTER)
            draw_spot(c, x, y, m->series);
        else if (!joined)
            set_dot(c, x, y, m->series);
        joined = true;
        last_x = x;
        last_y = y;
    }
}

static void draw_bars(Canvas *c, const PlotModel *p, const PlotMark *m) {
    double base = p->y.log ? pow(10, p->y.low) : 0;
    for (size_t i = 0; i < m->n; i++) {
        int x0, x1, y0, y1;
        if (!find_dot(c, p, m->x[i] - m->width / 2, base, &x0, &y0) ||
            !find_dot(c, p, m->x[i] + m->width / 2, m->y[i], &x1, &y1))
            continue;
        for (int x = x0; x < x1 || x == x0; x++) /* a bar has a dot at least */
            draw_segment(c, x, y0, x, y1, m->series);
    }
}

static double shade_of(const PlotMark *m, int64_t row, int64_t column) {
    if (m->kind == PLOT_HEAT) {
        double z = m->z[row * m->columns + column];
        return isfinite(z) ? m->high > m->low ? (z - m->low) / (m->high - m->low) : 0.5 : NAN;
    }
    const double *pixel = m->z + (row * m->columns + column) * m->channels;
    double grey = m->channels >= 3 ? 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]
                                   : pixel[0];
    return m->channels == 2 || m->channels == 4 ? grey * pixel[m->channels - 1] : grey;
}

static void draw_shades(Canvas *c, const PlotMark *m, bool ascii) {
    static const char *const blocks[] = {" ", "░", "▒", "▓", "█"};
    static const char *const letters[] = {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
    if (!m->rows || !m->columns)
        return;
    for (int y = 0; y < c->rows; y++)
        for (int x = 0; x < c->columns; x++) {
            int64_t row = (int64_t)y * m->rows / c->rows,
                    column = (int64_t)x * m->columns / c->columns;
            double shade = shade_of(m, row, column);
            int n = ascii ? 10 : 5, at = (int)(fmin(fmax(shade, 0), 1) * (n - 1) + 0.5);
            c->shades[y * c->columns + x] = isnan(shade) ? "?" : ascii ? letters[at] : blocks[at];
        }
}

/* ---- characters ------------------------------------------------------------------------------ */

static const char *const color_codes[] = {"34", "31", "32", "35", "36", "33"};
static const char marks_of_series[] = "*+ox#@";
enum { NSERIES = 6 };

static void add_colored(Str *out, const PlotLook *look, int series, const char *text) {
    if (look->color && series >= 0)
        str_printf(out, "\033[%sm%s\033[0m", color_codes[series % NSERIES], text);
    else
        str_add(out, text);
}

static void add_character(Str *out, const Canvas *c, const PlotLook *look, int at) {
    char text[4] = {0};
    unsigned dots = c->dots[at];
    if (c->shades[at] && !dots) {
        str_add(out, c->shades[at]);
        return;
    }
    if (!dots) {
        str_add_char(out, ' ');
        return;
    }
    if (look->ascii) {
        text[0] = marks_of_series[c->series[at] % NSERIES];
    } else {
        text[0] = (char)0xE2;
        text[1] = (char)(0xA0 | dots >> 6);
        text[2] = (char)(0x80 | (dots & 0x3F));
    }
    add_colored(out, look, c->series[at], text);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void trim_line(Str *out) {
    while (out->len && out->text[out->len - 1] == ' ')
        out->text[--out->len] = '\0';
    str_add_char(out, '\n');
}

static size_t label_width(const PlotAxis *axis) {
    size_t width = 0;
    for (int i = 0; i < axis->nticks; i++)
        if (text_width(axis->labels[i], strlen(axis->labels[i])) > width)
            width = text_width(axis->labels[i], strlen(axis->labels[i]));
    return width;
}

/* The label of the tick in a row, or "". */
static const char *label_of_row(const PlotAxis *axis, int row, int rows) {
    for (int i = 0; i < axis->nticks; i++) {
        double place = (axis->ticks[i] - axis->low) / (axis->high - axis->low);
        if (lround((1 - place) * (rows - 1)) == row)
            return axis->labels[i];
    }
    return "";
}

static void add_across_labels(Str *out, const PlotAxis *axis, size_t margin, int columns) {
    Str line = {0};
    str_pad(&line, margin);
    for (int i = 0; i < axis->nticks; i++) {
        double place = (axis->ticks[i] - axis->low) / (axis->high - axis->low);
        size_t n = strlen(axis->labels[i]);
        long at = (long)margin + lround(place * (columns - 1)) - (long)n / 2;
        if (at < (long)margin)
            at = (long)margin;
        if (at > (long)(margin + (size_t)columns) - (long)n)
            at = (long)(margin + (size_t)columns) - (long)n;
        if (line.len > margin && (long)line.len >= at)
            continue;
        str_pad(&line, (size_t)(at > 0 ? at : 0));
        str_add(&line, axis->labels[i]);
    }
    str_add(out, str_text(&line));
    trim_line(out);
}

static void add_legend(Str *out, const PlotModel *p, const PlotLook *look, size_t margin) {
    Str line = {0};
    for (size_t i = 0; i < p->marks.len; i++) {
        const PlotMark *m = &p->marks.data[i];
        if (!*m->name)
            continue;
        char mark[2] = {marks_of_series[m->series % NSERIES], '\0'};
        if (!line.len)
            str_pad(&line, margin);
        add_colored(&line, look, m->series, look->ascii ? mark : "─");
        str_printf(&line, " %s   ", m->name);
    }
    if (!line.len)
        return;
    str_add(out, str_text(&line));
    trim_line(out);
}

static void print_one(Str *out, const PlotModel *p, const PlotLook *look) {
    size_t labels = label_width(&p->y), margin = labels + 3;
    int columns = look->width - (int)margin, rows = look->height - 2 - (*p->title != '\0');
    bool is_picture = p->marks.len &&
                      (p->marks.data[0].kind == PLOT_IMAGE || p->marks.data[0].kind == PLOT_HEAT);
    columns = columns < 8 ? 8 : columns;
    rows = rows < 3 ? 3 : rows;
    if (is_picture && p->marks.data[0].rows) { /* a character is twice as high as wide */
        const PlotMark *m = &p->marks.data[0];
        double ratio = (double)m->columns / (double)m->rows * 2;
        if (rows * ratio < columns)
            columns = (int)fmax(rows * ratio, 8);
        else
            rows = (int)fmax(columns / ratio, 1);
    }
    size_t n = (size_t)columns * (size_t)rows;
    Canvas c = {columns, rows, mem_bytes(n), mem_bytes(n), mem_new_n(const char *, n)};
    memset(c.dots, 0, n);
    memset(c.series, -1, n);
    for (size_t i = 0; i < p->marks.len; i++) {
        const PlotMark *m = &p->marks.data[i];
        switch (m->kind) {
        case PLOT_LINE:
        case PLOT_SCATTER: draw_points(&c, p, m); break;
        case PLOT_BARS: draw_bars(&c, p, m); break;
        case PLOT_HEAT:
        case PLOT_IMAGE: draw_shades(&c, m, look->ascii); break;
        }
    }
    if (*p->title) {
        str_printf(out, "%*s%s", (int)margin, "", p->title);
        trim_line(out);
    }
    if (*p->y.text) {
        str_add(out, p->y.text);
        trim_line(out);
    }
    for (int y = 0; y < rows; y++) {
        const char *label = is_picture ? "" : label_of_row(&p->y, y, rows);
        str_printf(out, "%*s%s ", (int)(labels - strlen(label)), "", label);
        str_add(out, look->ascii ? "|" : *label ? "┤" : "│");
        for (int x = 0; x < columns; x++)
            add_character(out, &c, look, y * columns + x);
        trim_line(out);
    }
    str_printf(out, "%*s%s", (int)labels + 1, "", look->ascii ? "+" : "└");
    for (int x = 0; x < columns; x++)
        str_add(out, look->ascii ? "-" : "─");
    trim_line(out);
    if (is_picture)
        str_printf(out, "%*s%lld x %lld%s\n", (int)margin - 1, "", (long long)p->marks.data[0].rows,
                   (long long)p->marks.data[0].columns,
                   p->marks.data[0].kind == PLOT_HEAT &&
                           p->marks.data[0].low <= p->marks.data[0].high
                       ? fmt_text(", %.4g to %.4g", p->marks.data[0].low, p->marks.data[0].high)
                       : "");
    else
        add_across_labels(out, &p->x, margin - 1, columns);
    if (*p->x.text) {
        size_t width = text_width(p->x.text, strlen(p->x.text));
        str_printf(out, "%*s%s",
                   (int)(margin + (size_t)columns > width ? margin + (size_t)columns - width : 0),
                   "", p->x.text);
        trim_line(out);
    }
    add_legend(out, p, look, margin - 1);
    if (p->is_empty)
        str_printf(out, "%*s(no finite point)\n", (int)margin - 1, "");
}

void plot_print(Str *out, const PlotModel *p, const PlotLook *look) {
    if (!p->panels.len) {
        print_one(out, p, look);
        return;
    }
    if (*p->title)
        str_printf(out, "%s\n", p->title);
    for (size_t i = 0; i < p->panels.len; i++)
        plot_print(out, p->panels.data[i], look);
}
