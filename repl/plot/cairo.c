/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/plot/cairo.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

/* ---- the library ----------------------------------------------------------------------------- */

/* What of cairo.h is needed: the program is built without cairo, and asks for it when it draws. */
typedef struct Surface Surface;
typedef struct Pen Pen;
typedef struct Pattern Pattern;
typedef int WriteFn(void *ctx, const unsigned char *bytes, unsigned n);
typedef struct TextExtents {
    double x_bearing, y_bearing, width, height, x_advance, y_advance;
} TextExtents;

#define CAIRO_FUNCTIONS(F)                                                                         \
    F(Surface *, svg_surface_create_for_stream, (WriteFn *, void *, double, double))               \
    F(Surface *, pdf_surface_create_for_stream, (WriteFn *, void *, double, double))               \
    F(Surface *, image_surface_create, (int format, int width, int height))                        \
    F(Surface *, image_surface_create_for_data, (unsigned char *, int, int, int, int stride))      \
    F(unsigned char *, image_surface_get_data, (Surface *))                                        \
    F(int, surface_write_to_png_stream, (Surface *, WriteFn *, void *))                            \
    F(int, surface_status, (Surface *))                                                            \
    F(void, surface_flush, (Surface *))                                                            \
    F(void, surface_finish, (Surface *))                                                           \
    F(void, surface_destroy, (Surface *))                                                          \
    F(Pen *, create, (Surface *))                                                                  \
    F(void, destroy, (Pen *))                                                                      \
    F(int, status, (Pen *))                                                                        \
    F(void, save, (Pen *))                                                                         \
    F(void, restore, (Pen *))                                                                      \
    F(void, translate, (Pen *, double, double))                                                    \
    F(void, scale, (Pen *, double, double))                                                        \
    F(void, rotate, (Pen *, double))                                                               \
    F(void, set_source_rgb, (Pen *, double, double, double))                                       \
    F(void, set_source_rgba, (Pen *, double, double, double, double))                              \
    F(void, set_source_surface, (Pen *, Surface *, double, double))                                \
    F(Pattern *, get_source, (Pen *))                                                              \
    F(void, pattern_set_filter, (Pattern *, int))                                                  \
    F(void, set_line_width, (Pen *, double))                                                       \
    F(void, set_line_join, (Pen *, int))                                                           \
    F(void, move_to, (Pen *, double, double))                                                      \
    F(void, line_to, (Pen *, double, double))                                                      \
    F(void, arc, (Pen *, double, double, double, double, double))                                  \
    F(void, rectangle, (Pen *, double, double, double, double))                                    \
    F(void, clip, (Pen *))                                                                         \
    F(void, stroke, (Pen *))                                                                       \
    F(void, fill, (Pen *))                                                                         \
    F(void, paint, (Pen *))                                                                        \
    F(void, select_font_face, (Pen *, const char *, int, int))                                     \
    F(void, set_font_size, (Pen *, double))                                                        \
    F(void, text_extents, (Pen *, const char *, TextExtents *))                                    \
    F(void, show_text, (Pen *, const char *))

typedef struct Cairo {
#define F(result, name, arguments) result(*name) arguments;
    CAIRO_FUNCTIONS(F)
#undef F
} Cairo;

enum { FORMAT_ARGB32 = 0, FILTER_NEAREST = 3, LINE_JOIN_ROUND = 1 };

/* The whole process has one: a library is opened once. */
static Cairo cairo;
static bool is_open;

static bool open_cairo(void) {
    if (is_open)
        return true;
    void *library = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    bool all = true;
#define F(result, name, arguments)                                                                 \
    *(void **)&cairo.name = dlsym(library, "cairo_" #name);                                        \
    all &= cairo.name != NULL;
    CAIRO_FUNCTIONS(F)
#undef F
    is_open = all;
    return all;
}

/* ---- colours --------------------------------------------------------------------------------- */

typedef struct Rgb {
    double r, g, b;
} Rgb;

/* Okabe and Ito's, which the colour-blind can tell apart. */
static const Rgb series_colors[] = {{0.00, 0.45, 0.70}, {0.84, 0.37, 0.00}, {0.00, 0.62, 0.45},
                                    {0.80, 0.47, 0.65}, {0.34, 0.71, 0.91}, {0.90, 0.62, 0.00}};
enum { NCOLORS = sizeof series_colors / sizeof *series_colors };

/* Viridis, by nine of its colours. */
static Rgb heat_color(double t) {
    static const Rgb stops[] = {
        {0.267, 0.005, 0.329}, {0.279, 0.175, 0.483}, {0.230, 0.322, 0.546},
        {0.173, 0.449, 0.558}, {0.128, 0.567, 0.551}, {0.158, 0.684, 0.502},
        {0.369, 0.789, 0.383}, {0.678, 0.864, 0.190}, {0.993, 0.906, 0.144}};
    enum { LAST = sizeof stops / sizeof *stops - 1 };
    double at = fmin(fmax(t, 0), 1) * LAST;
    int i = (int)at < LAST ? (int)at : LAST - 1;
    double f = at - i;
    const Rgb *a = &stops[i], *b = &stops[i + 1];
    return (Rgb){a->r + f * (b->r - a->r), a->g + f * (b->g - a->g), a->b + f * (b->b - a->b)};
}

static Rgb color_of(const PlotMark *m) {
    return m->by_height ? heat_color(m->height) : series_colors[m->series % NCOLORS];
}

static uint32_t pixel_of(Rgb c) {
    uint32_t r = (uint32_t)lround(fmin(fmax(c.r, 0), 1) * 255),
             g = (uint32_t)lround(fmin(fmax(c.g, 0), 1) * 255),
             b = (uint32_t)lround(fmin(fmax(c.b, 0), 1) * 255);
    return 0xFF000000u | r << 16 | g << 8 | b;
}

static uint32_t pixel_of_mark(const PlotMark *m, int64_t row, int64_t column) {
    if (m->kind == PLOT_HEAT) {
        double z = m->z[row * m->columns + column];
        if (!isfinite(z))
            return 0xFFCCCCCCu;
        return pixel_of(heat_color(m->high > m->low ? (z - m->low) / (m->high - m->low) : 0.5));
    }
    const double *p = m->z + (row * m->columns + column) * m->channels;
    double alpha = m->channels == 2 || m->channels == 4 ? p[m->channels - 1] : 1;
    Rgb c = m->channels >= 3 ? (Rgb){p[0], p[1], p[2]} : (Rgb){p[0], p[0], p[0]};
    return pixel_of(
        (Rgb){c.r * alpha + 1 - alpha, c.g * alpha + 1 - alpha, c.b * alpha + 1 - alpha});
}

/* ---- one plot -------------------------------------------------------------------------------- */

enum { WIDTH = 640, HEIGHT = 420, RIGHT = 18, BOTTOM = 46, TOP = 34, LETTER = 13, MANY = 20000 };
static const double POINT_RADIUS = 2.6;

typedef struct Box {
    double x, y, width, height; /* of the area between the axes */
} Box;

static TextExtents extents_of(Pen *pen, const char *text) {
    TextExtents e;
    cairo.text_extents(pen, text, &e);
    return e;
}

/* Anchored at a part of its width: 0 left, 0.5 in the middle, 1 right. */
static void draw_text(Pen *pen, const char *text, double x, double y, double anchor) {
    if (!*text || !text_is_utf8(text, strlen(text), NULL))
        return;
    cairo.move_to(pen, x - anchor * extents_of(pen, text).x_advance, y);
    cairo.show_text(pen, text);
}

static double place_of(const PlotAxis *axis, double at) {
    return (at - axis->low) / (axis->high - axis->low);
}

static void draw_axes(Pen *pen, const PlotModel *p, const Box *b, bool is_picture) {
    cairo.set_line_width(pen, 1);
    for (int i = 0; i < p->x.nticks && !is_picture; i++) {
        double x = floor(b->x + place_of(&p->x, p->x.ticks[i]) * b->width) + 0.5;
        cairo.set_source_rgb(pen, 0.9, 0.9, 0.9);
        cairo.move_to(pen, x, b->y);
        cairo.line_to(pen, x, b->y + b->height);
        cairo.stroke(pen);
        cairo.set_source_rgb(pen, 0.2, 0.2, 0.2);
        draw_text(pen, p->x.labels[i], x, b->y + b->height + LETTER + 4, 0.5);
    }
    for (int i = 0; i < p->y.nticks && !is_picture; i++) {
        double y = floor(b->y + (1 - place_of(&p->y, p->y.ticks[i])) * b->height) + 0.5;
        cairo.set_source_rgb(pen, 0.9, 0.9, 0.9);
        cairo.move_to(pen, b->x, y);
        cairo.line_to(pen, b->x + b->width, y);
        cairo.stroke(pen);
        cairo.set_source_rgb(pen, 0.2, 0.2, 0.2);
        draw_text(pen, p->y.labels[i], b->x - 7, y + 4, 1);
    }
    cairo.set_source_rgb(pen, 0.2, 0.2, 0.2);
    draw_text(pen, p->x.text, b->x + b->width / 2, b->y + b->height + BOTTOM - 8, 0.5);
    cairo.save(pen);
    cairo.translate(pen, 15, b->y + b->height / 2);
    cairo.rotate(pen, -M_PI / 2);
    draw_text(pen, p->y.text, 0, 0, 0.5);
    cairo.restore(pen);
    cairo.set_font_size(pen, 15);
    draw_text(pen, p->title, b->x + b->width / 2, 21, 0.5);
    cairo.set_font_size(pen, LETTER);
    if (p->is_empty)
        draw_text(pen, "no finite point", b->x + b->width / 2, b->y + b->height / 2, 0.5);
}

static void draw_frame(Pen *pen, const Box *b) {
    cairo.set_source_rgb(pen, 0.2, 0.2, 0.2);
    cairo.set_line_width(pen, 1);
    cairo.rectangle(pen, floor(b->x) + 0.5, floor(b->y) + 0.5, floor(b->width), floor(b->height));
    cairo.stroke(pen);
}

/* The point in the drawing; false where it has none. Far outside it is drawn no further. */
static bool find_point(const PlotModel *p, const Box *b, double x, double y, double *px,
                       double *py) {
    double u = plot_place(&p->x, x), v = plot_place(&p->y, y);
    if (!isfinite(u) || !isfinite(v))
        return false;
    *px = b->x + fmin(fmax(u, -10), 10) * b->width;
    *py = b->y + (1 - fmin(fmax(v, -10), 10)) * b->height;
    return true;
}

/* Points of a line that follow each other in one column of pixels: of many, the first, the lowest, the highest and
 * the last draw the same line (Jugel and others, "M4", 2014). */
typedef struct Run {
    double x, first, low, high, last;
    bool is_begun;
} Run;

static void draw_run(Pen *pen, const Run *r, bool joined) {
    (joined ? cairo.line_to : cairo.move_to)(pen, r->x, r->first);
    if (r->low != r->first || r->high != r->first) {
        cairo.line_to(pen, r->x, r->low);
        cairo.line_to(pen, r->x, r->high);
        cairo.line_to(pen, r->x, r->last);
    }
}

static void draw_long_line(Pen *pen, const PlotModel *p, const Box *b, const PlotMark *m) {
    Run run = {0};
    bool joined = false;
    for (size_t i = 0; i <= m->n; i++) {
        double x = 0, y = 0;
        bool is_point = i < m->n && find_point(p, b, m->x[i], m->y[i], &x, &y);
        if (is_point && run.is_begun && floor(x) == floor(run.x)) {
            run.low = fmin(run.low, y);
            run.high = fmax(run.high, y);
            run.last = y;
            continue;
        }
        if (run.is_begun) {
            draw_run(pen, &run, joined);
            joined = true;
        }
        if (!is_point && joined) {
            cairo.stroke(pen);
            joined = false;
        }
        run = (Run){x, y, y, y, y, is_point};
    }
}

static void draw_line(Pen *pen, const PlotModel *p, const Box *b, const PlotMark *m) {
    bool joined = false;
    if (m->n > MANY) {
        draw_long_line(pen, p, b, m);
        return;
    }
    for (size_t i = 0; i < m->n; i++) {
        double x, y;
        bool is_point = find_point(p, b, m->x[i], m->y[i], &x, &y);
        if (is_point)
            (joined ? cairo.line_to : cairo.move_to)(pen, x, y);
        joined = is_point;
    }
    cairo.stroke(pen);
}

/* Of the points that fall on one pixel one is drawn; where there are many, on one of two by two. */
static void draw_points(Pen *pen, const PlotModel *p, const Box *b, const PlotMark *m) {
    int side = m->n > MANY ? 2 : 1;
    int width = (int)b->width / side + 1, height = (int)b->height / side + 1;
    unsigned char *drawn = mem_bytes((size_t)width * (size_t)height);
    memset(drawn, 0, (size_t)width * (size_t)height);
    for (size_t i = 0; i < m->n; i++) {
        double x, y;
        if (!find_point(p, b, m->x[i], m->y[i], &x, &y))
            continue;
        int column = (int)(x - b->x) / side, row = (int)(y - b->y) / side;
        if (column < 0 || row < 0 || column >= width || row >= height ||
            drawn[row * width + column])
            continue;
        drawn[row * width + column] = 1;
        if (side > 1)
            cairo.rectangle(pen, b->x + column * side, b->y + row * side, side, side);
        else
            cairo.arc(pen, x, y, POINT_RADIUS, 0, 2 * M_PI);
        cairo.fill(pen);
    }
}

static void draw_bars(Pen *pen, const PlotModel *p, const Box *b, const PlotMark *m) {
    double base = p->y.log ? pow(10, p->y.low) : 0;
    for (size_t i = 0; i < m->n; i++) {
        double x0, y0, x1, y1;
        if (!find_point(p, b, m->x[i] - m->width / 2, base, &x0, &y0) ||
            !find_point(p, b, m->x[i] + m->width / 2, m->y[i], &x1, &y1))
            continue;
        cairo.rectangle(pen, x0 + 0.5, y1, fmax(x1 - x0 - 1, 0.5), y0 - y1);
        cairo.fill(pen);
    }
}

/* At most MOST pixels a side are made; of a larger one every nth. A small one is made larger: who shows an SVG or a PDF
 * mixes the colours of neighbouring pixels. */
static void draw_picture(Pen *pen, const Box *b, const PlotMark *m) {
    enum { MOST = 2048, SHARP = 1024 };
    if (!m->rows || !m->columns)
        return;
    int64_t longer = m->rows > m->columns ? m->rows : m->columns,
            times = longer < SHARP ? SHARP / longer : 1;
    int width = (int)(m->columns < MOST ? m->columns * times : MOST),
        height = (int)(m->rows < MOST ? m->rows * times : MOST);
    uint32_t *pixels = mem_bytes((size_t)width * (size_t)height * sizeof *pixels);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            pixels[y * width + x] = pixel_of_mark(m, (int64_t)y * m->rows / height,
                                                  (int64_t)x * m->columns / width);
    Surface *image = cairo.image_surface_create_for_data((unsigned char *)pixels, FORMAT_ARGB32,
                                                         width, height, width * 4);
    cairo.save(pen);
    cairo.translate(pen, b->x, b->y);
    cairo.scale(pen, b->width / width, b->height / height);
    cairo.set_source_surface(pen, image, 0, 0);
    cairo.pattern_set_filter(cairo.get_source(pen), FILTER_NEAREST);
    cairo.paint(pen);
    cairo.restore(pen);
    cairo.surface_destroy(image);
}

/* The colours of a heat map with their numbers, to the right. */
static void draw_scale(Pen *pen, const Box *b, const PlotMark *m) {
    double x = b->x + b->width + 14;
    for (int i = 0; i < 64; i++) {
        Rgb c = heat_color((63 - i) / 63.0);
        cairo.set_source_rgb(pen, c.r, c.g, c.b);
        cairo.rectangle(pen, x, b->y + b->height * i / 64, 14, b->height / 64 + 1);
        cairo.fill(pen);
    }
    cairo.set_source_rgb(pen, 0.2, 0.2, 0.2);
    if (m->low <= m->high) {
        draw_text(pen, fmt_text("%.4g", m->high), x + 19, b->y + 10, 0);
        draw_text(pen, fmt_text("%.4g", m->low), x + 19, b->y + b->height, 0);
    }
}

/* ---- the legend ------------------------------------------------------------------------------ */

static bool are_apart(const Box *a, const Box *b) {
    return a->x + a->width <= b->x || b->x + b->width <= a->x || a->y + a->height <= b->y ||
           b->y + b->height <= a->y;
}

/* Whether a line from one point to another meets the box (Liang and Barsky 1984). */
static bool segment_meets(const Box *b, double x0, double y0, double x1, double y1) {
    double from = 0, to = 1, dx = x1 - x0, dy = y1 - y0;
    const double way[] = {-dx, dx, -dy, dy};
    const double room[] = {x0 - b->x, b->x + b->width - x0, y0 - b->y, b->y + b->height - y0};
    for (int i = 0; i < 4; i++) {
        if (way[i] == 0 && room[i] < 0)
            return false;
        if (way[i] < 0)
            from = fmax(from, room[i] / way[i]);
        if (way[i] > 0)
            to = fmin(to, room[i] / way[i]);
    }
    return from <= to;
}

/* Whether something is drawn where the legend would stand. */
static bool is_covered(const PlotModel *p, const Box *b, const Box *legend) {
    for (size_t i = 0; i < p->marks.len; i++) {
        const PlotMark *m = &p->marks.data[i];
        double x, y, before_x = 0, before_y = 0;
        bool joined = false;
        for (size_t k = 0; k < m->n; k++) {
            bool is_point = find_point(p, b, m->x[k], m->y[k], &x, &y);
            bool from_before = m->kind == PLOT_LINE && joined;
            if (is_point && m->kind == PLOT_BARS) {
                double end = x, ground = b->y + b->height;
                find_point(p, b, m->x[k] - m->width / 2, m->y[k], &x, &y);
                find_point(p, b, m->x[k] + m->width / 2, m->y[k], &end, &y);
                if (!are_apart(legend, &(Box){x, y, end - x, ground - y}))
                    return true;
            } else if (is_point && segment_meets(legend, from_before ? before_x : x,
                                                 from_before ? before_y : y, x, y)) {
                return true;
            }
            joined = is_point;
            before_x = x;
            before_y = y;
        }
    }
    return false;
}

/* A free corner for the legend. Where each has something drawn in it, the plot *b gives room at its right. A legend
 * without entries has no height. */
static Box place_legend(Pen *pen, const PlotModel *p, Box *b) {
    enum { MARGIN = 8, SAMPLE = 36, ROW = 18 };
    Box legend = {0, 0, 0, MARGIN};
    for (size_t i = 0; i < p->marks.len; i++)
        if (*p->marks.data[i].name) {
            legend.width = fmax(legend.width,
                                extents_of(pen, p->marks.data[i].name).x_advance + SAMPLE);
            legend.height += ROW;
        }
    if (!legend.width)
        return (Box){0};
    for (int corner = 0; corner < 4; corner++) { /* the right before the left, above before below */
        bool left = corner & 1, below = corner & 2;
        legend.x = left ? b->x + MARGIN : b->x + b->width - legend.width - MARGIN;
        legend.y = below ? b->y + b->height - legend.height - MARGIN : b->y + MARGIN;
        if (!is_covered(p, b, &legend))
            return legend;
    }
    b->width -= fmin(legend.width + MARGIN, b->width / 2);
    legend.x = b->x + b->width + MARGIN;
    legend.y = b->y;
    return legend;
}

static void draw_legend(Pen *pen, const PlotModel *p, const Box *legend) {
    double x = legend->x, y = legend->y;
    cairo.set_source_rgba(pen, 1, 1, 1, 0.85);
    cairo.rectangle(pen, x, y, legend->width, legend->height);
    cairo.fill(pen);
    for (size_t i = 0; i < p->marks.len; i++) {
        const PlotMark *m = &p->marks.data[i];
        Rgb c = color_of(m);
        if (!*m->name)
            continue;
        y += 18;
        cairo.set_source_rgb(pen, c.r, c.g, c.b);
        if (m->kind == PLOT_SCATTER)
            cairo.arc(pen, x + 15, y - 4.5, POINT_RADIUS, 0, 2 * M_PI);
        else if (m->kind == PLOT_BARS)
            cairo.rectangle(pen, x + 10, y - 10, 10, 10);
        else
            cairo.rectangle(pen, x + 6, y - 6, 18, 3);
        cairo.fill(pen);
        cairo.set_source_rgb(pen, 0.2, 0.2, 0.2);
        draw_text(pen, m->name, x + 30, y, 0);
    }
}

/* ---- one plot -------------------------------------------------------------------------------- */

static double margin_left(Pen *pen, const PlotModel *p) {
    double width = 0;
    for (int i = 0; i < p->y.nticks; i++)
        width = fmax(width, extents_of(pen, p->y.labels[i]).x_advance);
    return width + 16 + (*p->y.text ? 18 : 0);
}

static void draw_one(Pen *pen, const PlotModel *p) {
    const PlotMark *first = p->marks.len ? &p->marks.data[0] : NULL;
    bool is_picture = first && (first->kind == PLOT_HEAT || first->kind == PLOT_IMAGE);
    cairo.select_font_face(pen, "sans-serif", 0, 0);
    cairo.set_font_size(pen, LETTER);
    double left = margin_left(pen, p);
    Box b = {left, TOP, WIDTH - left - RIGHT, HEIGHT - TOP - BOTTOM};
    if (is_picture && first->rows) { /* its cells are square */
        b.x = RIGHT + (*p->y.text ? 18 : 0);
        b.width = WIDTH - 2 * RIGHT - 60;
        double ratio = (double)first->columns / (double)first->rows;
        double width = fmin(b.width, b.height * ratio), height = width / ratio;
        b = (Box){b.x + (b.width - width) / 2, b.y + (b.height - height) / 2, width, height};
    }
    Box legend = place_legend(pen, p, &b);
    draw_axes(pen, p, &b, is_picture);
    cairo.save(pen);
    cairo.rectangle(pen, b.x, b.y, b.width, b.height);
    cairo.clip(pen);
    cairo.set_line_join(pen, LINE_JOIN_ROUND);
    for (size_t i = 0; i < p->marks.len; i++) {
        const PlotMark *m = &p->marks.data[i];
        Rgb c = color_of(m);
        cairo.set_source_rgb(pen, c.r, c.g, c.b);
        cairo.set_line_width(pen, 1.8);
        switch (m->kind) {
        case PLOT_LINE: draw_line(pen, p, &b, m); break;
        case PLOT_SCATTER: draw_points(pen, p, &b, m); break;
        case PLOT_BARS: draw_bars(pen, p, &b, m); break;
        case PLOT_HEAT:
        case PLOT_IMAGE: draw_picture(pen, &b, m); break;
        }
    }
    cairo.restore(pen);
    draw_frame(pen, &b);
    if (first && first->kind == PLOT_HEAT)
        draw_scale(pen, &b, first);
    if (legend.height)
        draw_legend(pen, p, &legend);
}

/* ---- panels ---------------------------------------------------------------------------------- */

static int columns_of(const PlotModel *p) {
    return p->panels.len ? (int)ceil(sqrt((double)p->panels.len)) : 1;
}

static int rows_of(const PlotModel *p) {
    int columns = columns_of(p);
    return p->panels.len ? ((int)p->panels.len + columns - 1) / columns : 1;
}

/* Above the panels stands the title of the whole. */
static int head_of(const PlotModel *p) { return p->panels.len && *p->title ? 34 : 0; }

static int width_of(const PlotModel *p) { return WIDTH * columns_of(p); }

static int height_of(const PlotModel *p) { return HEIGHT * rows_of(p) + head_of(p); }

static void draw_all(Pen *pen, const PlotModel *p) {
    int columns = columns_of(p);
    if (!p->panels.len) {
        draw_one(pen, p);
        return;
    }
    if (head_of(p)) {
        cairo.select_font_face(pen, "sans-serif", 0, 0);
        cairo.set_font_size(pen, 18);
        cairo.set_source_rgb(pen, 0.2, 0.2, 0.2);
        draw_text(pen, p->title, width_of(p) / 2.0, 25, 0.5);
        cairo.translate(pen, 0, head_of(p));
    }
    for (size_t i = 0; i < p->panels.len; i++) {
        const PlotModel *panel = p->panels.data[i];
        cairo.save(pen);
        cairo.translate(pen, (double)((int)i % columns) * WIDTH,
                        (double)((int)i / columns) * HEIGHT);
        double scale = fmin((double)WIDTH / width_of(panel), (double)HEIGHT / height_of(panel));
        cairo.scale(pen, scale, scale);
        draw_all(pen, panel);
        cairo.restore(pen);
    }
}

static int add_bytes(void *ctx, const unsigned char *bytes, unsigned n) {
    str_add_n(ctx, (const char *)bytes, n);
    return 0;
}

static const char *draw_on(Surface *surface, const PlotModel *p) {
    Pen *pen = cairo.create(surface);
    cairo.set_source_rgb(pen, 1, 1, 1);
    cairo.paint(pen);
    draw_all(pen, p);
    bool failed = cairo.status(pen) != 0;
    cairo.destroy(pen);
    cairo.surface_flush(surface);
    return failed || cairo.surface_status(surface) != 0 ? "cairo could not draw it" : NULL;
}

static const char no_cairo[] = "libcairo.so.2 is not installed, which draws plots "
                               "(Debian: libcairo2)";
enum { MOST_PANELS = 64 };

const char *plot_draw(Str *out, const PlotModel *p, PlotFormat format) {
    if (!open_cairo())
        return no_cairo;
    if (p->panels.len > MOST_PANELS)
        return "a figure has at most 64 plots";
    int width = width_of(p), height = height_of(p);
    Surface *surface = NULL;
    switch (format) {
    case PLOT_SVG:
        surface = cairo.svg_surface_create_for_stream(add_bytes, out, width, height);
        break;
    case PLOT_PDF:
        surface = cairo.pdf_surface_create_for_stream(add_bytes, out, width, height);
        break;
    case PLOT_PNG: surface = cairo.image_surface_create(FORMAT_ARGB32, width, height); break;
    }
    const char *why = draw_on(surface, p);
    if (!why && format == PLOT_PNG &&
        cairo.surface_write_to_png_stream(surface, add_bytes, out) != 0)
        why = "cairo could not write it";
    cairo.surface_finish(surface);
    cairo.surface_destroy(surface);
    return why;
}

const char *plot_draw_pixels(const PlotModel *p, PlotPixels *out) {
    if (!open_cairo())
        return no_cairo;
    if (p->panels.len > MOST_PANELS)
        return "a figure has at most 64 plots";
    int width = width_of(p), height = height_of(p);
    Surface *surface = cairo.image_surface_create(FORMAT_ARGB32, width, height);
    const char *why = draw_on(surface, p);
    if (!why) {
        size_t n = (size_t)width * (size_t)height * sizeof *out->pixels;
        uint32_t *pixels = mem_bytes(n);
        memcpy(pixels, cairo.image_surface_get_data(surface), n);
        *out = (PlotPixels){width, height, pixels};
    }
    cairo.surface_destroy(surface);
    return why;
}
