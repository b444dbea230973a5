/* SPDX-License-Identifier: Apache-2.0 */
/* GradBench's ba and ht as one would write them by hand, with their Jacobians by hand: how few times its own function a
 * Jacobian can cost. One thread; compiled with -O3 -march=native by bench/gradbench/run.py. Used and answering as
 * gradbench.c beside it:
 *
 *     jacobians SECONDS ba CAMERAS POINTS OBSERVATIONS < camera (11), point (3), weight, place (2)
 *     jacobians SECONDS ht COUNT VERTICES BONES        < theta (26), is mirrored, parents, relative transforms (4, 4),
 *         inverse absolute transforms (4, 4), positions (4), weights by vertex, triangles (3), vertex of each of
 *         COUNT points, the points (3), places on triangles (2) if these are given */
#include "bench/peers/timed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The turn about the axis k by an angle of that sine and cosine (Rodrigues). */
static void rotate(const double *k, double s, double c, double (*r)[3]) {
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            r[a][b] = (a == b) * c + k[a] * k[b] * (1.0 - c);
    r[0][1] -= k[2] * s;
    r[0][2] += k[1] * s;
    r[1][0] += k[2] * s;
    r[1][2] -= k[0] * s;
    r[2][0] -= k[1] * s;
    r[2][1] += k[0] * s;
}

/* ---- ba ---- */

/* One observation: its two errors; with j != NULL how they change by the camera's rotation, centre, focal length,
 * principal point and distortion, by the point and by the weight: two rows of 15. */
static void observe(const double *cam, const double *x, double w, const double *feat, double *e,
                    double *j) {
    double m[3], k[3], p[3], angle = sqrt(cam[0] * cam[0] + cam[1] * cam[1] + cam[2] * cam[2]);
    double s = sin(angle), c = cos(angle), along = 0.0;
    for (int a = 0; a < 3; a++) {
        m[a] = x[a] - cam[3 + a];
        k[a] = cam[a] / angle;
        along += k[a] * m[a];
    }
    double turned[3] = {k[1] * m[2] - k[2] * m[1], k[2] * m[0] - k[0] * m[2],
                        k[0] * m[1] - k[1] * m[0]};
    for (int a = 0; a < 3; a++)
        p[a] = m[a] * c + turned[a] * s + k[a] * along * (1.0 - c);
    double u[2] = {p[0] / p[2], p[1] / p[2]}, far = u[0] * u[0] + u[1] * u[1];
    double bend = 1.0 + cam[9] * far + cam[10] * far * far, f = cam[6];
    for (int a = 0; a < 2; a++)
        e[a] = w * (u[a] * bend * f + cam[7 + a] - feat[a]);
    if (!j)
        return;
    double dp[3][3], r[3][3], steep = 2.0 * (cam[9] + 2.0 * cam[10] * far);
    for (int b = 0; b < 3; b++) { /* of p: by the rotation's part b, and by the moved point's */
        double dk[3], dalong = 0.0;
        for (int a = 0; a < 3; a++) {
            dk[a] = ((a == b) - k[a] * k[b]) / angle;
            dalong += dk[a] * m[a];
        }
        double dturned[3] = {dk[1] * m[2] - dk[2] * m[1], dk[2] * m[0] - dk[0] * m[2],
                             dk[0] * m[1] - dk[1] * m[0]};
        for (int a = 0; a < 3; a++) {
            dp[a][b] = (turned[a] * c - m[a] * s + k[a] * along * s) * k[b] + dturned[a] * s +
                       (dk[a] * along + k[a] * dalong) * (1.0 - c);
        }
    }
    rotate(k, s, c, r);
    for (int a = 0; a < 2; a++, j += 15) {
        double by[2] = {u[a] * steep * u[0], u[a] * steep * u[1]}, wf = w * f / p[2];
        by[a] += bend;
        double g[3] = {wf * by[0], wf * by[1], -wf * (by[0] * u[0] + by[1] * u[1])};
        for (int b = 0; b < 3; b++) {
            j[b] = g[0] * dp[0][b] + g[1] * dp[1][b] + g[2] * dp[2][b];
            j[11 + b] = g[0] * r[0][b] + g[1] * r[1][b] + g[2] * r[2][b];
            j[3 + b] = -j[11 + b];
        }
        j[6] = w * u[a] * bend;
        j[7] = a == 0 ? w : 0.0;
        j[8] = a == 1 ? w : 0.0;
        j[9] = w * f * u[a] * far;
        j[10] = j[9] * far;
        j[14] = u[a] * bend * f + cam[7 + a] - feat[a];
    }
}

/* own: the cameras, points, weights and places, all alike, then the errors. */
static void ba_begin(Work *w) {
    size_t n = (size_t)w->size[0], m = (size_t)w->size[1], p = (size_t)w->size[2];
    double *to = w->own = room(11 * n + 3 * m + 6 * p);
    w->n = 31 * p;
    for (size_t i = 0; i < n; i++, to += 11)
        memcpy(to, w->x, 11 * sizeof *to);
    for (size_t i = 0; i < m; i++, to += 3)
        memcpy(to, w->x + 11, 3 * sizeof *to);
    for (size_t i = 0; i < p; i++)
        *to++ = w->x[14];
    for (size_t i = 0; i < p; i++, to += 2)
        memcpy(to, w->x + 15, 2 * sizeof *to);
}

static double ba_both(Work *w, double *g) {
    size_t n = (size_t)w->size[0], m = (size_t)w->size[1], p = (size_t)w->size[2];
    double *cams = w->own, *points = cams + 11 * n, *weights = points + 3 * m, *feats = weights + p,
           *e = feats + 2 * p, total = 0.0;
    for (size_t i = 0; i < p; i++) {
        observe(cams + 11 * (i % n), points + 3 * (i % m), weights[i], feats + 2 * i, e + 3 * i,
                g ? g + 30 * i : NULL);
        e[3 * i + 2] = 1.0 - weights[i] * weights[i];
        total += e[3 * i] + e[3 * i + 1] + e[3 * i + 2];
        if (g)
            g[30 * p + i] = -2.0 * weights[i];
    }
    return total;
}
static double ba(Work *w) { return ba_both(w, NULL); }
static void ba_jacobian(Work *w) { ba_both(w, w->g); }

/* ---- ht ---- */

enum { PARAMS = 26, FINGER = 20, MOST_BONES = 32 };

/* A transform: three rows of four; the fourth is 0 0 0 1. With last = 0 a derivative of one. */
typedef double Move[12];

static void multiply(const double *a, const double *b, double last, double *out) {
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            out[4 * r + c] = a[4 * r] * b[c] + a[4 * r + 1] * b[4 + c] + a[4 * r + 2] * b[8 + c] +
                             (c == 3 ? a[4 * r + 3] * last : 0.0);
}

/* The turn about z by z after that about x by x; by = 1 or 2: its derivative by x or z. */
static void euler(double x, double z, int by, double *out) {
    double sx = sin(x), cx = cos(x), sz = sin(z), cz = cos(z);
    double dcx = by == 1 ? -sx : cx, dsx = by == 1 ? cx : sx;
    double dcz = by == 2 ? -sz : cz, dsz = by == 2 ? cz : sz, one = by == 1 ? 0.0 : 1.0;
    const Move m = {dcz * one, -dsz * dcx,          dsz * dsx,           0.0,
                    dsz * one, dcz * dcx,           -dcz * dsx,          0.0,
                    0.0,       by == 2 ? 0.0 : dsx, by == 2 ? 0.0 : dcx, 0.0};
    memcpy(out, m, sizeof m);
}

typedef struct Hand {
    const double *theta, *parents, *relatives, *inverses, *positions, *weights, *triangles, *at,
        *points, *us;
    size_t count, vertices, bones;
    double side;
} Hand;

static Hand hand_of(const Work *w) {
    Hand h = {.theta = w->x,
              .count = (size_t)w->size[0],
              .vertices = (size_t)w->size[1],
              .bones = (size_t)w->size[2]};
    h.side = w->x[26] != 0.0 ? -1.0 : 1.0;
    h.parents = w->x + 27;
    h.relatives = h.parents + h.bones;
    h.inverses = h.relatives + 16 * h.bones;
    h.positions = h.inverses + 16 * h.bones;
    h.weights = h.positions + 4 * h.vertices;
    h.triangles = h.weights + h.bones * h.vertices;
    h.at = h.triangles + 3 * h.vertices;
    h.points = h.at + h.count;
    h.us = h.points + 3 * h.count;
    if (h.us >= w->x + w->have)
        h.us = NULL;
    return h;
}

/* Which bone an angle of the fingers turns, and whether about x (1) or z (2). */
static size_t bone_of(int angle) {
    return 2 + 4 * (size_t)(angle / 4) + (size_t)(angle % 4 > 0 ? angle % 4 - 1 : 0);
}
static int way_of(int angle) { return angle % 4 == 1 ? 2 : 1; }

/* own: the vertices before they are turned and after it, then what the angles change of them. */
static void ht_begin(Work *w) {
    Hand h = hand_of(w);
    w->own = room((6 + 3 * FINGER) * h.vertices + 3 * h.count);
    w->n = 3 * h.count * (PARAMS + (h.us ? 2 : 0));
}

/* A point's place from three of the numbers `from` at its triangle's corners, or at its vertex. */
static double place(const Hand *h, size_t point, const double *from, size_t step) {
    size_t at = (size_t)h->at[point];
    if (!h->us)
        return from[at * step];
    const double *corner = h->triangles + 3 * at, u = h->us[2 * point], v = h->us[2 * point + 1];
    return u * from[(size_t)corner[0] * step] + v * from[(size_t)corner[1] * step] +
           (1.0 - u - v) * from[(size_t)corner[2] * step];
}

static double ht_both(Work *w, double *g) {
    Hand h = hand_of(w);
    double *bare = w->own, *skin = bare + 3 * h.vertices, *change = skin + 3 * h.vertices,
           *out = change + 3 * FINGER * h.vertices, total = 0.0;
    Move relative[MOST_BONES], absolute[MOST_BONES], move[MOST_BONES];
    static Move turned[FINGER][MOST_BONES], moved[FINGER][MOST_BONES];
    size_t under[FINGER][MOST_BONES], nunder[FINGER] = {0};
    double x[MOST_BONES] = {0}, z[MOST_BONES] = {0};
    for (int a = 0; a < FINGER; a++)
        *(way_of(a) == 1 ? &x[bone_of(a)] : &z[bone_of(a)]) = h.theta[6 + a];
    for (size_t b = 0; b < h.bones; b++) {
        Move turn;
        euler(x[b], z[b], 0, turn);
        multiply(h.relatives + 16 * b, turn, 1.0, relative[b]);
        if (h.parents[b] < 0.0)
            memcpy(absolute[b], relative[b], sizeof(Move));
        else
            multiply(absolute[(size_t)h.parents[b]], relative[b], 1.0, absolute[b]);
        multiply(absolute[b], h.inverses + 16 * b, 1.0, move[b]);
    }
    for (int a = 0; g && a < FINGER; a++) {
        char is_under[MOST_BONES] = {0};
        for (size_t b = bone_of(a); b < h.bones; b++) {
            if (b == bone_of(a)) {
                Move turn, to;
                euler(x[b], z[b], way_of(a), turn);
                multiply(h.relatives + 16 * b, turn, 0.0, to);
                if (h.parents[b] < 0.0)
                    memcpy(turned[a][b], to, sizeof to);
                else
                    multiply(absolute[(size_t)h.parents[b]], to, 0.0, turned[a][b]);
            } else if (h.parents[b] >= 0.0 && is_under[(size_t)h.parents[b]]) {
                multiply(turned[a][(size_t)h.parents[b]], relative[b], 1.0, turned[a][b]);
            } else {
                continue;
            }
            is_under[b] = 1;
            multiply(turned[a][b], h.inverses + 16 * b, 1.0, moved[a][b]);
            under[a][nunder[a]++] = b;
        }
    }
    double k[3], r[3][3],
        angle = sqrt(h.theta[0] * h.theta[0] + h.theta[1] * h.theta[1] + h.theta[2] * h.theta[2]);
    double s = sin(angle), c = cos(angle);
    for (int a = 0; a < 3; a++)
        k[a] = h.theta[a] / angle;
    rotate(k, s, c, r);
    for (size_t v = 0; v < h.vertices; v++) {
        const double *weight = h.weights + h.bones * v, *p = h.positions + 4 * v;
        for (int q = -1; q < (g ? FINGER : 0); q++) {
            Move blend = {0};
            for (size_t i = 0; i < (q < 0 ? h.bones : nunder[q]); i++) {
                size_t b = q < 0 ? i : under[q][i];
                const double *from = q < 0 ? move[b] : moved[q][b];
                for (int e = 0; e < 12; e++)
                    blend[e] += weight[b] * from[e];
            }
            double at[3], *to = q < 0 ? skin + 3 * v : change + 3 * ((size_t)q * h.vertices + v);
            for (int a = 0; a < 3; a++)
                at[a] = blend[4 * a] * p[0] + blend[4 * a + 1] * p[1] + blend[4 * a + 2] * p[2] +
                        blend[4 * a + 3] * p[3];
            at[0] *= h.side;
            if (q < 0)
                memcpy(bare + 3 * v, at, sizeof at);
            for (int a = 0; a < 3; a++)
                to[a] = r[a][0] * at[0] + r[a][1] * at[1] + r[a][2] * at[2] +
                        (q < 0 ? h.theta[3 + a] : 0.0);
        }
    }
    for (size_t i = 0; i < 3 * h.count; i++) {
        out[i] = h.points[i] - place(&h, i / 3, skin + i % 3, 3);
        total += out[i];
    }
    size_t own = h.us ? 2 : 0, wide = PARAMS + own;
    for (size_t i = 0; g && i < h.count; i++) {
        double m[3], along = 0.0;
        for (int a = 0; a < 3; a++) {
            m[a] = place(&h, i, bare + a, 3);
            along += k[a] * m[a];
        }
        double cross[3] = {k[1] * m[2] - k[2] * m[1], k[2] * m[0] - k[0] * m[2],
                           k[0] * m[1] - k[1] * m[0]};
        for (int a = 0; a < 3; a++) {
            double *row = g + (3 * i + (size_t)a) * wide;
            if (own) {
                const double *corner = h.triangles + 3 * (size_t)h.at[i];
                double last = skin[3 * (size_t)corner[2] + (size_t)a];
                row[0] = last - skin[3 * (size_t)corner[0] + (size_t)a];
                row[1] = last - skin[3 * (size_t)corner[1] + (size_t)a];
                row += 2;
            }
            for (int b = 0; b < 3; b++) {
                double dk[3], dalong = 0.0;
                for (int d = 0; d < 3; d++) {
                    dk[d] = ((d == b) - k[d] * k[b]) / angle;
                    dalong += dk[d] * m[d];
                }
                int one = (a + 1) % 3, two = (a + 2) % 3;
                row[b] = -((cross[a] * c - m[a] * s + k[a] * along * s) * k[b] +
                           (dk[one] * m[two] - dk[two] * m[one]) * s +
                           (dk[a] * along + k[a] * dalong) * (1.0 - c));
                row[3 + b] = a == b ? -1.0 : 0.0;
            }
            for (size_t q = 0; q < FINGER; q++)
                row[6 + q] = -place(&h, i, change + 3 * q * h.vertices + a, 3);
        }
    }
    return total;
}
static double ht(Work *w) { return ht_both(w, NULL); }
static void ht_jacobian(Work *w) { ht_both(w, w->g); }

int main(int argc, char **argv) {
    static const Evaluation all[] = {{"ba", ba_begin, ba, ba_jacobian},
                                     {"ht", ht_begin, ht, ht_jacobian}};
    return time_evaluations(all, 2, argc, argv);
}
