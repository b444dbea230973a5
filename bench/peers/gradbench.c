/* SPDX-License-Identifier: Apache-2.0 */
/* GradBench's gmm, lse, llsq, ode and det as one would write them by hand, with their gradients by hand: what the table of
 * bench/gradbench/run.py holds Relay against. One thread; compiled with -O3 -march=native by that script.
 *
 *     gradbench SECONDS EVALUATION SIZE... < input
 *
 * The input is float64 in the order of GradBench's own input. Printed are the value, the sum of the absolute gradient,
 * and the median milliseconds of processor time of the value and of the gradient over about SECONDS each. */
#include "bench/peers/timed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lse ---- */

static double lse(Work *w) {
    double top = w->x[0], sum = 0.0;
    for (size_t i = 1; i < w->n; i++)
        top = w->x[i] > top ? w->x[i] : top;
    for (size_t i = 0; i < w->n; i++)
        sum += exp(w->x[i] - top);
    return top + log(sum);
}

static void lse_gradient(Work *w) {
    double top = w->x[0], sum = 0.0;
    for (size_t i = 1; i < w->n; i++)
        top = w->x[i] > top ? w->x[i] : top;
    for (size_t i = 0; i < w->n; i++)
        sum += w->g[i] = exp(w->x[i] - top);
    for (size_t i = 0; i < w->n; i++)
        w->g[i] /= sum;
}

/* A gradient by all of the input; lse, llsq and det. */
static void begin(Work *w) {
    w->n = w->have;
    w->own = room(w->n);
}

/* ---- llsq ---- */

static double sign(double t) { return (t > 0.0) - (t < 0.0); }

static double llsq(Work *w) {
    long points = w->size[0];
    double total = 0.0;
    for (long k = 0; k < points; k++) {
        double t = -1.0 + 2.0 * (double)k / (double)(points - 1), far = sign(t), power = 1.0;
        for (size_t i = 0; i < w->n; i++, power *= t)
            far -= w->x[i] * power;
        total += far * far;
    }
    return 0.5 * total;
}

static void llsq_gradient(Work *w) {
    long points = w->size[0];
    memset(w->g, 0, w->n * sizeof *w->g);
    for (long k = 0; k < points; k++) {
        double t = -1.0 + 2.0 * (double)k / (double)(points - 1), far = sign(t), power = 1.0;
        for (size_t i = 0; i < w->n; i++, power *= t)
            far -= w->x[i] * (w->own[i] = power);
        for (size_t i = 0; i < w->n; i++)
            w->g[i] -= far * w->own[i];
    }
}

/* ---- ode: Runge and Kutta's method; the slope of place i reads y[i - 1] ---- */

static void slope(const double *x, const double *y, double *out, size_t n) {
    out[0] = x[0];
    for (size_t i = 1; i < n; i++)
        out[i] = x[i] * y[i - 1];
}

/* One step from y; k: the four slopes, at: where they are taken, the first one being y itself. */
static void ode_step(const Work *w, double h, const double *y, double *k, double *at,
                     double *next) {
    static const double by[] = {0.5, 0.5, 1.0};
    size_t n = w->n;
    slope(w->x, y, k, n);
    for (int s = 0; s < 3; s++) {
        for (size_t i = 0; i < n; i++)
            at[(size_t)s * n + i] = y[i] + by[s] * h * k[(size_t)s * n + i];
        slope(w->x, at + (size_t)s * n, k + (size_t)(s + 1) * n, n);
    }
    for (size_t i = 0; i < n; i++)
        next[i] = y[i] + h / 6.0 * (k[i] + 2.0 * k[n + i] + 2.0 * k[2 * n + i] + k[3 * n + i]);
}

static void ode_begin(Work *w) {
    w->n = w->have;
    w->own = room(((size_t)w->size[0] + 14) * w->n);
}

static double ode(Work *w) {
    long steps = w->size[0];
    size_t n = w->n;
    double *y = w->own, *next = y + n, *k = next + n, *at = k + 4 * n;
    memset(y, 0, n * sizeof *y);
    for (long s = 0; s < steps; s++) {
        ode_step(w, 2.0 / (double)steps, y, k, at, next);
        memcpy(y, next, n * sizeof *y);
    }
    return y[n - 1];
}

/* The way back of one slope: dy and dx have added what the cotangent d of its result gives. */
static void slope_back(const double *x, const double *y, const double *d, double *dx, double *dy,
                       size_t n) {
    dx[0] += d[0];
    for (size_t i = 1; i < n; i++) {
        dx[i] += d[i] * y[i - 1];
        dy[i - 1] += d[i] * x[i];
    }
}

static void ode_gradient(Work *w) {
    static const double by[] = {0.0, 0.5, 0.5, 1.0}, part[] = {1.0, 2.0, 2.0, 1.0};
    long steps = w->size[0];
    size_t n = w->n;
    double h = 2.0 / (double)steps, *k = w->own, *at = k + 4 * n, *dk = at + 3 * n, *d = dk + n,
           *dat = d + n, *dy = dat + n, *pass = dy + n, *y = pass + n; /* steps + 1 rows */
    memset(y, 0, n * sizeof *y);
    for (long s = 0; s < steps; s++)
        ode_step(w, h, y + (size_t)s * n, k, at, y + (size_t)(s + 1) * n);
    memset(w->g, 0, n * sizeof *w->g);
    memset(d, 0, n * sizeof *d);
    d[n - 1] = 1.0;
    for (long s = steps; s-- > 0;) {
        const double *from = y + (size_t)s * n;
        ode_step(w, h, from, k, at, pass);
        memcpy(dy, d, n * sizeof *dy);
        memset(dat, 0, n * sizeof *dat);
        for (int stage = 4; stage-- > 0;) {
            for (size_t i = 0; i < n; i++)
                dk[i] = h / 6.0 * part[stage] * d[i] +
                        (stage < 3 ? by[stage + 1] * h * dat[i] : 0.0);
            memset(dat, 0, n * sizeof *dat);
            slope_back(w->x, stage ? at + (size_t)(stage - 1) * n : from, dk, w->g, dat, n);
            for (size_t i = 0; i < n; i++)
                dy[i] += dat[i];
        }
        memcpy(d, dy, n * sizeof *d);
    }
}

/* ---- det: expanded by minors along the first row ---- */

static double minor(const double *a, size_t ell, size_t row, const int *columns, size_t n) {
    if (n == 1)
        return a[row * ell + (size_t)columns[0]];
    int others[16];
    double total = 0.0, sign_of = 1.0;
    for (size_t j = 0; j < n; j++, sign_of = -sign_of) {
        memcpy(others, columns, j * sizeof *others);
        memcpy(others + j, columns + j + 1, (n - j - 1) * sizeof *others);
        total += sign_of * a[row * ell + (size_t)columns[j]] *
                 minor(a, ell, row + 1, others, n - 1);
    }
    return total;
}

/* Adds what the cotangent ct of this minor gives, and returns the minor. */
static double minor_back(const double *a, double *g, size_t ell, size_t row, const int *columns,
                         size_t n, double ct) {
    if (n == 1) {
        g[row * ell + (size_t)columns[0]] += ct;
        return a[row * ell + (size_t)columns[0]];
    }
    int others[16];
    double total = 0.0, sign_of = 1.0;
    for (size_t j = 0; j < n; j++, sign_of = -sign_of) {
        memcpy(others, columns, j * sizeof *others);
        memcpy(others + j, columns + j + 1, (n - j - 1) * sizeof *others);
        size_t at = row * ell + (size_t)columns[j];
        double below = minor_back(a, g, ell, row + 1, others, n - 1, ct * sign_of * a[at]);
        g[at] += ct * sign_of * below;
        total += sign_of * a[at] * below;
    }
    return total;
}

static const int COLUMNS[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static double det(Work *w) {
    return minor(w->x, (size_t)w->size[0], 0, COLUMNS, (size_t)w->size[0]);
}

static void det_gradient(Work *w) {
    memset(w->g, 0, w->n * sizeof *w->g);
    minor_back(w->x, w->g, (size_t)w->size[0], 0, COLUMNS, (size_t)w->size[0], 1.0);
}

/* ---- gmm: alpha (k), mu (k, d), q (k, d), l (k, d (d - 1) / 2), then the points (n, d) ---- */

/* Each component's triangle, by rows, with exp(q) on its diagonal. */
static void triangles(const Work *w, double *to) {
    size_t d = (size_t)w->size[0], k = (size_t)w->size[1], half = d * (d - 1) / 2;
    const double *q = w->x + k + k * d, *l = q + k * d;
    for (size_t c = 0; c < k; c++, to += d * d)
        for (size_t i = 0; i < d; i++) {
            to[i * d + i] = exp(q[c * d + i]);
            for (size_t j = 0; j < i; j++) /* below the diagonal, column by column */
                to[i * d + j] = l[c * half + j * d - j * (j + 1) / 2 + i - j - 1];
        }
}

/* The value; with g != NULL also what flows back. */
static double gmm_both(Work *w, double *g) {
    size_t d = (size_t)w->size[0], k = (size_t)w->size[1], n = (size_t)w->size[2],
           half = d * (d - 1) / 2;
    const double *alpha = w->x, *mu = alpha + k, *q = mu + k * d, *l = q + k * d, *x = l + k * half;
    double *tri = w->own, *term = tri + k * d * d, *far = term + k, *dtri = far + k * d,
           *base = dtri + k * d * d, total = 0.0;
    triangles(w, tri);
    memset(g ? g : term, 0, (g ? w->n : k) * sizeof *g);
    if (g)
        memset(dtri, 0, k * d * d * sizeof *dtri);
    for (size_t c = 0; c < k; c++) {
        base[c] = alpha[c];
        for (size_t i = 0; i < d; i++)
            base[c] += q[c * d + i];
    }
    for (size_t p = 0; p < n; p++) {
        double top = -INFINITY, sum = 0.0;
        for (size_t c = 0; c < k; c++) {
            const double *t = tri + c * d * d;
            double squares = 0.0, z[128];
            for (size_t j = 0; j < d; j++)
                z[j] = x[p * d + j] - mu[c * d + j];
            for (size_t i = 0; i < d; i++) {
                double y = 0.0;
                for (size_t j = 0; j <= i; j++)
                    y += t[i * d + j] * z[j];
                far[c * d + i] = y;
                squares += y * y;
            }
            term[c] = base[c] - 0.5 * squares;
            top = term[c] > top ? term[c] : top;
        }
        for (size_t c = 0; c < k; c++)
            sum += term[c] = exp(term[c] - top);
        total += top + log(sum);
        for (size_t c = 0; g && c < k; c++) {
            const double *t = tri + c * d * d, *y = far + c * d;
            double weight = term[c] / sum, *dt = dtri + c * d * d, dz[128] = {0}, z[128];
            g[c] += weight;
            for (size_t j = 0; j < d; j++)
                z[j] = x[p * d + j] - mu[c * d + j];
            for (size_t i = 0; i < d; i++) {
                double dy = -weight * y[i];
                for (size_t j = 0; j <= i; j++) {
                    dt[i * d + j] += dy * z[j];
                    dz[j] += dy * t[i * d + j];
                }
            }
            for (size_t j = 0; j < d; j++)
                g[k + c * d + j] -= dz[j];
        }
    }
    double top = -INFINITY, sum = 0.0;
    for (size_t c = 0; c < k; c++)
        top = alpha[c] > top ? alpha[c] : top;
    for (size_t c = 0; c < k; c++)
        sum += exp(alpha[c] - top);
    total -= (double)n * (top + log(sum)) + 0.5 * (double)(n * d) * log(2.0 * 3.141592653589793);
    double dims = (double)d, degrees = dims + 1.0; /* m is 0 and gamma 1 */
    double norm = degrees * dims * -0.5 * log(2.0) -
                  0.25 * dims * (dims - 1.0) * log(3.141592653589793);
    for (size_t j = 0; j < d; j++)
        norm -= lgamma(0.5 * (degrees - (double)j));
    double squares = 0.0;
    for (size_t i = 0; i < k * d; i++)
        squares += exp(2.0 * q[i]);
    for (size_t i = 0; i < k * half; i++)
        squares += l[i] * l[i];
    total += (double)k * norm - 0.5 * squares;
    for (size_t c = 0; g && c < k; c++) {
        double all = g[c], *dq = g + k + k * d + c * d, *dl = g + k + 2 * k * d + c * half;
        g[c] = all - (double)n * exp(alpha[c] - top) / sum;
        for (size_t i = 0; i < d; i++) {
            double e = tri[c * d * d + i * d + i];
            dq[i] = all + dtri[c * d * d + i * d + i] * e - e * e;
            for (size_t j = 0; j < i; j++) {
                size_t at = j * d - j * (j + 1) / 2 + i - j - 1;
                dl[at] = dtri[c * d * d + i * d + j] - l[c * half + at];
            }
        }
    }
    return total;
}

static void gmm_begin(Work *w) {
    size_t d = (size_t)w->size[0], k = (size_t)w->size[1];
    w->n = k + 2 * k * d + k * d * (d - 1) / 2;
    w->own = room(2 * k * d * d + 2 * k + k * d);
}

static double gmm(Work *w) { return gmm_both(w, NULL); }
static void gmm_gradient(Work *w) { gmm_both(w, w->g); }

int main(int argc, char **argv) {
    static const Evaluation all[] = {{"gmm", gmm_begin, gmm, gmm_gradient},
                                     {"lse", begin, lse, lse_gradient},
                                     {"llsq", begin, llsq, llsq_gradient},
                                     {"ode", ode_begin, ode, ode_gradient},
                                     {"det", begin, det, det_gradient}};
    return time_evaluations(all, 5, argc, argv);
}
