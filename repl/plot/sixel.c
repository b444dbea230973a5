/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/plot/sixel.h"

#include <stdlib.h>

#include "base/mem.h"

/* ---- the palette ----------------------------------------------------------------------------- */

enum { NCOLORS = 256, NSHADES = 1 << 18 };

/* The pixels whose red, green and blue begin with the same six bits. */
typedef struct Shade {
    int64_t count, sum[3];
    int color;
} Shade;

/* Shades that get one color: `n` of them from `first`. */
typedef struct Box {
    Shade **first;
    int n, axis; /* the part that varies most: 0 red, 1 green, 2 blue */
    int64_t weight;
} Box;

static int part(uint32_t pixel, int axis) { return (int)(pixel >> (16 - 8 * axis) & 255); }

static int shade_of(uint32_t pixel) {
    return part(pixel, 0) >> 2 << 12 | part(pixel, 1) >> 2 << 6 | part(pixel, 2) >> 2;
}

static int mean(const Shade *s, int axis) { return (int)(s->sum[axis] / s->count); }

static int by_axis(const Shade *a, const Shade *b, int axis) {
    int x = mean(a, axis), y = mean(b, axis);
    return x != y ? (x > y) - (x < y) : (a > b) - (a < b);
}

#define COMPARE(name, axis)                                                                        \
    static int name(const void *a, const void *b) {                                                \
        return by_axis(*(Shade *const *)a, *(Shade *const *)b, axis);                              \
    }
COMPARE(by_red, 0)
COMPARE(by_green, 1)
COMPARE(by_blue, 2)

/* What a box would lose as one color: its pixels, each with how far its parts lie from one another. */
static Box measure(Shade **first, int n) {
    Box box = {.first = first, .n = n};
    int64_t pixels = 0, widest = 0;
    for (int axis = 0; axis < 3; axis++) {
        int low = 255, high = 0;
        for (int i = 0; i < n; i++) {
            int at = mean(first[i], axis);
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
        if (high - low > widest) {
            widest = high - low;
            box.axis = axis;
        }
    }
    for (int i = 0; i < n; i++)
        pixels += first[i]->count;
    box.weight = n < 2 ? 0 : pixels * widest * widest;
    return box;
}

/* In two, with half of the pixels in each as nearly as shades allow. */
static void cut(Box *box, Box *second) {
    static int (*const compare[])(const void *, const void *) = {by_red, by_green, by_blue};
    Shade **first = box->first;
    int64_t half = 0, seen = 0;
    int n = box->n, at = 0;
    qsort(first, (size_t)n, sizeof *first, compare[box->axis]);
    for (int i = 0; i < n; i++)
        half += first[i]->count;
    half /= 2;
    for (; at < n - 1 && seen + first[at]->count <= half; at++)
        seen += first[at]->count;
    at = at ? at : 1;
    *box = measure(first, at);
    *second = measure(first + at, n - at);
}

/* Median cut (Heckbert, "Color image quantization for frame buffer display", 1982): the box that loses most is cut
 * until the colors are used up or every shade has its own. Gives each shade its color and says the palette. */
static void choose_colors(Str *out, Shade *shades) {
    Shade **used = mem_new_n(Shade *, NSHADES);
    Box boxes[NCOLORS];
    int nused = 0, nboxes = 1;
    for (int i = 0; i < NSHADES; i++)
        if (shades[i].count)
            used[nused++] = &shades[i];
    boxes[0] = measure(used, nused);
    while (nboxes < NCOLORS) {
        int most = 0;
        for (int i = 1; i < nboxes; i++)
            most = boxes[i].weight > boxes[most].weight ? i : most;
        if (!boxes[most].weight)
            break;
        cut(&boxes[most], &boxes[nboxes++]);
    }
    for (int color = 0; color < nboxes; color++) {
        int64_t count = 0, percent[3] = {0};
        for (int i = 0; i < boxes[color].n; i++) {
            Shade *s = boxes[color].first[i];
            s->color = color;
            count += s->count;
            for (int axis = 0; axis < 3; axis++)
                percent[axis] += s->sum[axis];
        }
        for (int axis = 0; axis < 3 && count; axis++)
            percent[axis] = (percent[axis] * 100 + count * 255 / 2) / (count * 255);
        str_printf(out, "#%d;2;%d;%d;%d", color, (int)percent[0], (int)percent[1], (int)percent[2]);
    }
}

/* The color of each pixel. */
static const unsigned char *paint(Str *out, const PlotPixels *p) {
    int n = p->width * p->height;
    Shade *shades = mem_bytes(NSHADES * sizeof *shades);
    unsigned char *colors = mem_bytes((size_t)n);
    for (int i = 0; i < NSHADES; i++)
        shades[i] = (Shade){0};
    for (int i = 0; i < n; i++) {
        Shade *s = &shades[shade_of(p->pixels[i])];
        s->count++;
        for (int axis = 0; axis < 3; axis++)
            s->sum[axis] += part(p->pixels[i], axis);
    }
    choose_colors(out, shades);
    for (int i = 0; i < n; i++)
        colors[i] = (unsigned char)shades[shade_of(p->pixels[i])].color;
    return colors;
}

/* ---- sixels ---------------------------------------------------------------------------------- */

/* A run of one character. */
static void add_run(Str *out, int n, int bits) {
    if (n > 3)
        str_printf(out, "!%d%c", n, bits + '?');
    for (; n > 0 && n <= 3; n--)
        str_add_char(out, (char)(bits + '?'));
}

/* One color's pixels in `rows` rows. */
static void add_line(Str *out, const unsigned char *colors, int width, int rows, int color) {
    int run = 0, before = -1;
    str_printf(out, "#%d", color);
    for (int x = 0; x < width; x++) {
        int bits = 0;
        for (int y = 0; y < rows; y++)
            bits |= (colors[y * width + x] == color) << y;
        if (bits != before && run) {
            add_run(out, run, before);
            run = 0;
        }
        before = bits;
        run++;
    }
    add_run(out, run, before);
    str_add_char(out, '$');
}

/* Bands of six rows, in each band a line of characters for each of its colors. */
void plot_add_sixel(Str *out, const PlotPixels *p) {
    str_printf(out, "\033Pq\"1;1;%d;%d", p->width, p->height);
    const unsigned char *colors = paint(out, p);
    for (int band = 0; band < p->height; band += 6) {
        const unsigned char *at = colors + (size_t)band * (size_t)p->width;
        int rows = p->height - band < 6 ? p->height - band : 6;
        bool used[NCOLORS] = {false};
        for (int i = 0; i < rows * p->width; i++)
            used[at[i]] = true;
        for (int color = 0; color < NCOLORS; color++)
            if (used[color])
                add_line(out, at, p->width, rows, color);
        str_add_char(out, '-');
    }
    str_add(out, "\033\\\n");
}
