/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/plot/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* ---- reading the value ----------------------------------------------------------------------- */

/* Fields as stdlib/plot.rly declares them. */
enum { MARK_KIND, MARK_NAME, MARK_X, MARK_Y, MARK_Z, MARK_CHANNELS, NMARK_FIELDS };
enum {
    PLOT_MARKS,
    PLOT_TITLE,
    PLOT_ACROSS,
    PLOT_UP,
    PLOT_LOG_X,
    PLOT_LOG_Y,
    PLOT_PANELS,
    NPLOT_FIELDS
};

static bool is_data_of(Value v, const char *name, uint32_t nfields) {
    return v.tag == VAL_CTOR && data_size(v) == nfields &&
           strcmp(data_ctor(v)->name->text, name) == 0;
}

bool plot_is(Value v) {
    if (!is_data_of(v, "Plot", NPLOT_FIELDS))
        return false;
    const Symbol **names = data_ctor(v)->field_names;
    return names && strcmp(names[0]->text, "marks") == 0 &&
           strcmp(names[NPLOT_FIELDS - 1]->text, "panels") == 0;
}

static bool next_of(Value *list, Value *item) {
    if (list->tag != VAL_CTOR || data_size(*list) != 2)
        return false;
    *item = data_get(*list, 0);
    *list = data_get(*list, 1);
    return true;
}

static const char *text_of(Value v) {
    return v.tag == VAL_STRING ? ((const String *)v.p)->text : "";
}

/* The numbers of a float64 tensor, contiguous. */
static const double *numbers_of(Value v, size_t *n) {
    Tensor *t = value_to_tensor(v);
    *n = t && t->dtype == DT_F64 ? (size_t)t->count : 0;
    return *n ? tensor_data(tensor_contiguous(t)) : NULL;
}

static PlotKind kind_of(const char *kind) {
    static const struct {
        const char *name;
        PlotKind kind;
    } kinds[] = {{"line", PLOT_LINE},  {"contour", PLOT_LINE}, {"scatter", PLOT_SCATTER},
                 {"bars", PLOT_BARS},  {"hist", PLOT_BARS},    {"heat", PLOT_HEAT},
                 {"image", PLOT_IMAGE}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, kind) == 0)
            return kinds[i].kind;
    return PLOT_LINE;
}

/* ---- histograms and contours ----------------------------------------------------------------- */

static void range_of(const double *x, size_t n, bool positive, double *low, double *high) {
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]) && (!positive || x[i] > 0)) {
            *low = fmin(*low, x[i]);
            *high = fmax(*high, x[i]);
        }
}

/* Sturges' rule for the number of intervals, at most 50. */
static void count_into_bars(PlotMark *m) {
    double low = INFINITY, high = -INFINITY;
    range_of(m->x, m->n, false, &low, &high);
    if (!(low <= high)) {
        m->n = 0;
        return;
    }
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    size_t n = (size_t)fmin(50, ceil(log2((double)m->n + 1)) + 1);
    double *x = mem_bytes(n * sizeof *x), *y = mem_bytes(n * sizeof *y);
    m->width = (high - low) / (double)n;
    for (size_t i = 0; i < n; i++) {
        x[i] = low + ((double)i + 0.5) * m->width;
        y[i] = 0;
    }
    for (size_t i = 0; i < m->n; i++)
        if (isfinite(m->x[i])) {
            size_t at = (size_t)((m->x[i] - low) / m->width);
            y[at < n ? at : n - 1]++;
        }
    m->n = n;
    m->x = x;
    m->y = y;
}

typedef VEC(double) Doubles;

static void add_point(Doubles *x, Doubles *y, double px, double py) {
    vec_push(x, px);
    vec_push(y, py);
}

/* Lorensen's marching squares: the pieces of one level in the cell whose corner is (i, j). */
static void trace_cell(const PlotMark *m, const double *place, int64_t i, int64_t j, double level,
                       Doubles *x, Doubles *y) {
    double corner[4] = {m->z[j * m->columns + i], m->z[j * m->columns + i + 1],
                        m->z[(j + 1) * m->columns + i + 1], m->z[(j + 1) * m->columns + i]};
    double cx[4] = {place[i], place[i + 1], place[i + 1], place[i]};
    double cy[4] = {place[j], place[j], place[j + 1], place[j + 1]};
    int found = 0;
    double px[4], py[4];
    for (int k = 0; k < 4; k++) {
        double a = corner[k] - level, b = corner[(k + 1) % 4] - level;
        if (!isfinite(a) || !isfinite(b))
            return;
        if ((a < 0) == (b < 0))
            continue;
        double t = a / (a - b);
        px[found] = cx[k] + t * (cx[(k + 1) % 4] - cx[k]);
        py[found++] = cy[k] + t * (cy[(k + 1) % 4] - cy[k]);
    }
    for (int k = 0; k + 1 < found; k += 2) {
        add_point(x, y, px[k], py[k]);
        add_point(x, y, px[k + 1], py[k + 1]);
        add_point(x, y, NAN, NAN);
    }
}

/* A mark for each of seven levels between the lowest and the highest number. */
static void trace_contours(PlotModel *p, const PlotMark *m) {
    enum { LEVELS = 7 };
    double low = INFINITY, high = -INFINITY;
    size_t n = (size_t)(m->rows * m->columns);
    range_of(m->z, n, false, &low, &high);
    if (!(low < high) || m->rows != m->columns || m->rows < 2 || m->n != 2)
        return;
    double *place = mem_bytes((size_t)m->columns * sizeof *place);
    for (int64_t i = 0; i < m->columns; i++)
        place[i] = m->x[0] + (m->x[1] - m->x[0]) * (double)i / (double)(m->columns - 1);
    for (int k = 1; k <= LEVELS; k++) {
        double level = low + (high - low) * k / (LEVELS + 1);
        Doubles x = {0}, y = {0};
        for (int64_t j = 0; j + 1 < m->rows; j++)
            for (int64_t i = 0; i + 1 < m->columns; i++)
                trace_cell(m, place, i, j, level, &x, &y);
        PlotMark mark = {.kind = PLOT_LINE,
                         .name = fmt_text("%.3g", level),
                         .series = k - 1,
                         .by_height = true,
                         .height = (double)k / (LEVELS + 1),
                         .n = x.len,
                         .x = x.data,
                         .y = y.data};
        vec_push(&p->marks, mark);
    }
}

static void add_mark(PlotModel *p, Value v) {
    if (!is_data_of(v, "Mark", NMARK_FIELDS))
        return;
    const char *kind = text_of(data_get(v, MARK_KIND));
    size_t nx, ny, nz;
    PlotMark m = {.kind = kind_of(kind),
                  .name = text_of(data_get(v, MARK_NAME)),
                  .series = (int)p->marks.len,
                  .width = 0.8};
    m.x = numbers_of(data_get(v, MARK_X), &nx);
    m.y = numbers_of(data_get(v, MARK_Y), &ny);
    m.n = nx < ny ? nx : ny;
    m.z = numbers_of(data_get(v, MARK_Z), &nz);
    m.channels = m.kind == PLOT_IMAGE ? (int)data_get(v, MARK_CHANNELS).i : 0;
    Tensor *z = value_to_tensor(data_get(v, MARK_Z));
    if (nz && z->rank == 2) {
        m.rows = z->shape[0];
        m.columns = z->shape[1] / (m.channels > 0 ? m.channels : 1);
    }
    m.low = INFINITY;
    m.high = -INFINITY;
    range_of(m.z, nz, false, &m.low, &m.high);
    if (strcmp(kind, "hist") == 0)
        count_into_bars(&m);
    if (strcmp(kind, "contour") == 0)
        trace_contours(p, &m);
    else
        vec_push(&p->marks, m);
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* 1, 2 or 5 times a power of ten, so that about `want` of them make the range. */
static double step_for(double range, int want) {
    double raw = range / want, power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static void add_tick(PlotAxis *axis, double place, const char *label) {
    if (axis->nticks == PLOT_MAX_TICKS)
        return;
    axis->ticks[axis->nticks] = place;
    axis->labels[axis->nticks++] = label;
}

/* Of few powers of ten: 1, 2 and 5 times each. */
static void find_ticks_between_powers(PlotAxis *axis) {
    static const double digits[] = {1, 2, 5};
    double slack = (axis->high - axis->low) * 1e-9;
    for (double power = floor(axis->low); power <= axis->high + slack; power++)
        for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
            double at = power + log10(digits[i]);
            if (axis->low - slack <= at && at <= axis->high + slack)
                add_tick(axis, at, fmt_text("%.6g", digits[i] * pow(10, power)));
        }
}

static void find_ticks(PlotAxis *axis) {
    double range = axis->high - axis->low;
    if (axis->log && range <= 2) {
        find_ticks_between_powers(axis);
        return;
    }
    double step = axis->log ? fmax(1, ceil(range / 8)) : step_for(range, 5);
    double slack = range * 1e-9;
    if (axis->whole && step < 1)
        step = 1;
    for (double at = ceil((axis->low - slack) / step) * step; at <= axis->high + slack;
         at += step) {
        double shown = axis->log ? pow(10, at) : fabs(at) < step * 1e-6 ? 0 : at;
        add_tick(axis, at, fmt_text("%.6g", shown));
        if (at + step == at)
            break;
    }
}

static void lay_out_axis(PlotAxis *axis, double low, double high, bool widens) {
    if (axis->log) {
        low = log10(low);
        high = log10(high);
    }
    if (!(low <= high)) {
        low = 0;
        high = 1;
    }
    if (low == high) {
        double half = low == 0 ? 1 : fabs(low) * 0.1;
        low -= half;
        high += half;
    } else if (widens) {
        double margin = (high - low) * 0.04;
        low -= margin;
        high += margin;
    }
    axis->low = low;
    axis->high = high;
    find_ticks(axis);
}

static void lay_out(PlotModel *p) {
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
    bool points = false, bars = false;
    p->x.whole = p->y.whole = true;
    for (size_t i = 0; i < p->marks.len; i++) {
        const PlotMark *m = &p->marks.data[i];
        if (m->kind != PLOT_BARS)
            p->x.whole = p->y.whole = false;
        switch (m->kind) {
        case PLOT_LINE:
        case PLOT_SCATTER:
            points = true;
            range_of(m->x, m->n, p->x.log, &x0, &x1);
            range_of(m->y, m->n, p->y.log, &y0, &y1);
            break;
        case PLOT_BARS:
            bars = true;
            for (size_t k = 0; k < m->n; k++) {
                p->x.whole &= m->x[k] == floor(m->x[k]);
                p->y.whole &= m->y[k] == floor(m->y[k]);
                double ends[2] = {m->x[k] - m->width / 2, m->x[k] + m->width / 2};
                range_of(ends, 2, p->x.log, &x0, &x1);
            }
            range_of(m->y, m->n, p->y.log, &y0, &y1);
            if (m->n && !p->y.log)
                range_of((double[]){0}, 1, false, &y0, &y1);
            break;
        case PLOT_HEAT:
        case PLOT_IMAGE:
            if (m->rows && m->columns) {
                range_of((double[]){0, (double)m->columns}, 2, p->x.log, &x0, &x1);
                range_of((double[]){0, (double)m->rows}, 2, p->y.log, &y0, &y1);
            }
            break;
        }
    }
    p->is_empty = !(x0 <= x1) || !(y0 <= y1);
    lay_out_axis(&p->x, x0, x1, points || bars);
    lay_out_axis(&p->y, y0, y1, points || bars);
}

double plot_place(const PlotAxis *axis, double value) {
    if (axis->log)
        value = value > 0 ? log10(value) : NAN;
    return (value - axis->low) / (axis->high - axis->low);
}

static PlotModel *read_plot(Value v, const volatile int *interrupt, int depth) {
    enum { MOST_DEPTH = 8 };
    PlotModel *p = mem_new(PlotModel);
    Value marks = data_get(v, PLOT_MARKS), panels = data_get(v, PLOT_PANELS), item;
    p->title = text_of(data_get(v, PLOT_TITLE));
    p->x.text = text_of(data_get(v, PLOT_ACROSS));
    p->y.text = text_of(data_get(v, PLOT_UP));
    p->x.log = data_get(v, PLOT_LOG_X).i != 0;
    p->y.log = data_get(v, PLOT_LOG_Y).i != 0;
    while (!(interrupt && *interrupt) && next_of(&marks, &item))
        add_mark(p, item);
    while (!(interrupt && *interrupt) && depth < MOST_DEPTH && next_of(&panels, &item))
        if (plot_is(item))
            vec_push(&p->panels, read_plot(item, interrupt, depth + 1));
    lay_out(p);
    return p;
}

PlotModel *plot_read(Value v, const volatile int *interrupt) { return read_plot(v, interrupt, 0); }
