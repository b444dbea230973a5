/* SPDX-License-Identifier: Apache-2.0 */
/* How a launch's loops are laid out: axes of extent 1 dropped, neighbours merged where every
 * operand allows, parallel axes permuted so that lanes run along the best one; then the form, its
 * tile, and what the signature may promise about strides. Parallel axes may come in any order, the
 * results do not depend on it; reduction axes keep theirs, scans their last, scatters all. */
#include "jit/internal.h"

#include <string.h>

enum {
    HOT_NS = 4000000,
    HOT_PRODUCT_NS = 500000,
    MOST_UNROLLED = 512,
    SHORT = 8,  /* an axis of fewer elements leaves most of a vector's lanes empty */
    CHAIN = 16, /* a formula of so many instructions is one chain of them, most often */
    CHAIN_MOST = 128,
};

typedef struct Shape {
    const Jit *jit;
    const JitRecipe *jr;
    const Recipe *r;
    JitPlan *plan;
    bool kept; /* the vector operand of a product is read from panels that are there */
    int nptr, nin, npar, nred;
} Shape;

static int elem_size(const Recipe *r, int p) {
    return (int)dtype_size(p < r->noperands ? r->in_types[p] : r->out_types[p - r->noperands]);
}

/* Appends recipe axes [from, to) as loop axes. */
static void add_axes(Shape *s, const KernelArgs *args, int from, int to, bool par) {
    JitPlan *plan = s->plan;
    const Recipe *r = s->r;
    int first = plan->naxes, group[RECIPE_MAX_AXES];
    AxisRange range = {from, to, 0, s->jr->iota_axes};
    if (r->kind == RECIPE_SCAN)
        range.pinned = 1u << (r->rank - 1);
    int n = kernel_group_axes(args, r->noperands, par ? r->noutputs : 0, range, group);
    if (!par && n == 0 && to > from) /* a reduction has an axis */
        group[to - 1] = 0;
    for (int a = from; a < to; a++) {
        plan->sig.axis_of[a] = JIT_NO_AXIS;
        if (group[a] < 0)
            continue;
        int at = first + group[a];
        if (at == plan->naxes) {
            plan->sig.axis_of[a] = (uint8_t)at;
            plan->extent[plan->naxes++] = 1;
        }
        plan->extent[at] *= args->extents[a];
        for (int p = 0; p < s->nptr; p++) {
            bool in = p < r->noperands;
            int64_t stride = in ? args->in_strides[p][a]
                             : par || r->kind == RECIPE_ROWS
                                 ? args->out_strides[p - r->noperands][a]
                                 : 0;
            plan->stride[p][at] = stride * elem_size(r, p);
        }
    }
}

static void swap_axes(Shape *s, int a, int b) {
    JitPlan *plan = s->plan;
    if (a == b)
        return;
    int64_t n = plan->extent[a];
    plan->extent[a] = plan->extent[b];
    plan->extent[b] = n;
    for (int p = 0; p < s->nptr; p++) {
        int64_t t = plan->stride[p][a];
        plan->stride[p][a] = plan->stride[p][b];
        plan->stride[p][b] = t;
    }
    for (int i = 0; i < RECIPE_MAX_AXES; i++) {
        uint8_t *x = &plan->sig.axis_of[i];
        *x = *x == a ? (uint8_t)b : *x == b ? (uint8_t)a : *x;
    }
}

static bool is_unit(const Shape *s, int p, int axis) {
    return s->plan->stride[p][axis] == elem_size(s->r, p);
}
static bool is_loaded(const Shape *s, int p) { return p >= s->nin || s->jr->loads >> p & 1; }

/* How well lanes would run along a parallel axis. Where the last reduction axis is written out, what lies along it is
 * turned. */
static double lane_score(const Shape *s, int axis) {
    double score = 0;
    int in = s->plan->sig.few[0] ? s->npar + s->nred - 1 : axis;
    for (int p = 0; p < s->nptr; p++) {
        if (!is_loaded(s, p))
            continue;
        double weight = p >= s->nin ? 1.5 : 1;
        if (is_unit(s, p, axis))
            score += weight;
        else if (s->plan->stride[p][axis] == 0)
            score += weight * 0.9;
        else if (is_unit(s, p, in))
            score += weight * 0.7;
    }
    /* Short axes fill few lanes. */
    int64_t n = s->plan->extent[axis];
    double lanes = s->plan->sig.vbytes / 4.0;
    double used = (double)n / (lanes * (double)((n + (int64_t)lanes - 1) / (int64_t)lanes));
    return score * used;
}

static void choose_lanes(Shape *s, int first, int end) {
    int best = end - 1;
    double most = lane_score(s, best) * 1.001;
    for (int a = first; a < end - 1; a++) {
        double score = lane_score(s, a);
        if (score > most) {
            most = score;
            best = a;
        }
    }
    swap_axes(s, best, end - 1);
}

/* ---- forms ----------------------------------------------------------------------------------- */

/* Whether so many copies of the body are little code. A function that is called, as that of a power, is much by itself:
 * sixteen of it take as long to compile as all else. */
static bool may_write_out(const Shape *s, int64_t copies) {
    return copies * s->r->nbody <= (s->jr->has_calls ? MOST_UNROLLED / 8 : MOST_UNROLLED);
}

/* Outputs that lie along a short axis, which fills no vector of its own, while others are long: points of three
 * coordinates, say, with a scale for each coordinate. The code is larger, and made for the one extent, so this is for
 * recipes that are run often. */
static bool shape_map_few(Shape *s) {
    JitPlan *plan = s->plan;
    int v = s->npar - 1, w = -1, lanes = -1;
    if (!plan->sig.level || s->npar < 2 || (is_unit(s, s->nin, v) && plan->extent[v] >= SHORT))
        return false;
    for (int a = 0; a < s->npar; a++) {
        if (plan->extent[a] < SHORT)
            w = is_unit(s, s->nin, a) ? a : w;
        else if (lanes < 0 || lane_score(s, a) > lane_score(s, lanes))
            lanes = a;
    }
    if (w < 0 || lanes < 0 || !may_write_out(s, plan->extent[w]))
        return false;
    swap_axes(s, lanes, v);
    swap_axes(s, w == v ? lanes : w, v - 1);
    plan->sig.few[0] = (uint8_t)plan->extent[v - 1];
    plan->sig.form = FORM_FEW;
    return true;
}

/* Whether the outputs lie one element apart, as the columns that `stack` puts together do. Tensors of their own never
 * lie in each other's rows, so those are parts of one, and lie so in each launch of a plan. */
static bool lie_beside(const Shape *s, const KernelArgs *args) {
    const JitPlan *plan = s->plan;
    int v = s->npar - 1, first = s->nin;
    int64_t size = elem_size(s->r, first);
    if (s->r->noutputs < 2 || plan->extent[v] < 2 || plan->stride[first][v] < s->r->noutputs * size)
        return false;
    for (int k = 1; k < s->r->noutputs; k++) {
        if (s->r->out_types[k] != s->r->out_types[0] ||
            (uintptr_t)args->out[k] - (uintptr_t)args->out[0] != (uintptr_t)(k * size))
            return false;
        for (int a = 0; a < s->npar; a++)
            if (plan->stride[first + k][a] != plan->stride[first][a])
                return false;
    }
    return true;
}

static void shape_map(Shape *s, const KernelArgs *args) {
    JitPlan *plan = s->plan;
    if (s->npar == 0)
        return;
    choose_lanes(s, 0, s->npar);
    if (shape_map_few(s))
        return;
    plan->sig.form = FORM_MAP;
    if (lie_beside(s, args))
        plan->sig.flags |= SIG_BESIDE;
    /* A formula as tanh or exp is a chain of instructions that wait for each other. A processor looks ahead as far as the
     * next two vectors, which does not keep its units busy: several are computed side by side. */
    if (plan->sig.level && !s->jr->has_calls && s->r->nbody >= CHAIN && s->r->nbody <= CHAIN_MOST)
        plan->sig.flags |= SIG_UNROLL;
    int v = s->npar - 1, turned = -1, n = 0;
    if (s->npar < 2 || s->jr->has_calls || s->r->nbody > 12 || plan->extent[v] < SHORT)
        return;
    /* All operands that do not lie along v must lie along one other axis. */
    for (int p = 0; p < s->nptr; p++) {
        if (!is_loaded(s, p) || is_unit(s, p, v) || plan->stride[p][v] == 0)
            continue;
        int w = -1;
        for (int a = 0; a < v; a++)
            if (is_unit(s, p, a) && plan->extent[a] >= SHORT)
                w = a;
        if (w < 0 || p >= s->nin || !(s->jr->plain_loads >> p & 1) || (turned >= 0 && turned != w))
            return;
        turned = w;
        n++;
    }
    if (n == 0 || n > 2)
        return;
    swap_axes(s, turned, v - 1);
    plan->sig.form = FORM_SWAP;
}

/* The window of a pool, or the coordinates of points: a loop over them would end as soon as it has begun. */
static bool shape_few(Shape *s) {
    JitPlan *plan = s->plan;
    int64_t k = 1;
    if (s->nred > JIT_FEW_AXES)
        return false;
    for (int a = 0; a < s->nred; a++) {
        if (plan->extent[s->npar + a] > JIT_FEW)
            return false;
        k *= plan->extent[s->npar + a];
    }
    if (k > JIT_FEW || !may_write_out(s, k))
        return false;
    for (int a = 0; a < s->nred; a++)
        plan->sig.few[a] = (uint8_t)plan->extent[s->npar + a];
    choose_lanes(s, 0, s->npar);
    plan->sig.form = FORM_FEW;
    return true;
}

static void shape_reduce(Shape *s) {
    JitPlan *plan = s->plan;
    int in = s->npar + s->nred - 1;
    if (s->nred == 0)
        return;
    plan->sig.form = FORM_INNER;
    if (s->npar == 0)
        return;
    double inner = 0;
    for (int p = 0; p < s->nin; p++)
        if (is_loaded(s, p))
            inner += is_unit(s, p, in) ? 1 : plan->stride[p][in] == 0 ? 0.9 : 0;
    int64_t n = plan->extent[in];
    double lanes = 16;
    inner *= (double)n / (lanes * (double)((n + 15) / 16));
    int best = -1;
    double most = inner;
    for (int a = 0; a < s->npar; a++) {
        double score = 0;
        for (int p = 0; p < s->nin; p++)
            if (is_loaded(s, p))
                score += is_unit(s, p, a) ? 1 : plan->stride[p][a] == 0 ? 0.9 : 0;
        int64_t e = plan->extent[a];
        int64_t w = plan->sig.vbytes / 4;
        score *= (double)e / (double)(w * ((e + w - 1) / w));
        if (score > most) {
            most = score;
            best = a;
        }
    }
    if (best < 0 && n >= SHORT)
        return;
    if (shape_few(s) || best < 0)
        return;
    swap_axes(s, best, s->npar - 1);
    plan->sig.form = FORM_OUTER;
    int64_t vectors = (plan->extent[s->npar - 1] * 4 + plan->sig.vbytes - 1) / plan->sig.vbytes;
    bool arg = s->r->combine == COMBINE_ARGMAX || s->r->combine == COMBINE_ARGMIN;
    plan->sig.cols = vectors >= 4 && s->r->nbody <= 12   ? 4
                     : vectors >= 2 && s->r->nbody <= 40 ? 2
                                                         : 1;
    if (arg)
        plan->sig.cols = 1;
}

static void shape_scan(Shape *s) {
    JitPlan *plan = s->plan;
    int scan = s->npar - 1;
    if (scan < 1)
        return;
    choose_lanes(s, 0, scan);
    if (plan->extent[scan - 1] >= 8)
        plan->sig.form = FORM_LANES;
}

/* What choose_tile has to fill: m × n outputs, n along the lanes, each of so many steps. */
typedef struct TileTask {
    int64_t m, n, steps;
    int lanes, size; /* size: of an element of the vector operand */
    bool in_panels;  /* … which lies in panels */
} TileTask;

enum { L1_BYTES = 1 << 15 };

/* Cycles for a tile's loads of vectors in one step, where each row of tiles reads all their steps again from a farther
 * cache; 0: they stay in the nearest one. The second cache gives 32 bytes a cycle, what lies behind it ten, which matters
 * for panels alone: other reductions that long are cut. */
static double count_far_loads(const Jit *jit, const TileTask *task, int rows, int cols) {
    double bytes = (double)cols * task->lanes * task->size, all = bytes * (double)task->steps;
    if (task->m <= rows || all <= L1_BYTES)
        return 0;
    bool beyond = task->in_panels && all > (double)jit->cpu.l2_bytes * 0.75;
    return bytes / (beyond ? 10 : 32);
}

/* Rows and columns of the register tile with the least cost. */
static void choose_tile(const Jit *jit, JitRecipe *jr, const TileTask *task, int *rows, int *cols) {
    static const int sizes[] = {1, 2, 3, 4, 6, 7, 8, 10};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    if (jr->tile.m == task->m && jr->tile.n == task->n && jr->tile.steps == task->steps &&
        jr->tile.in_panels == task->in_panels) {
        *rows = jr->tile.rows;
        *cols = jr->tile.cols;
        return;
    }
    int64_t m = task->m, n = task->n, lanes = task->lanes;
    int registers = jit->cpu.registers;
    int most = registers == 32 ? 24 : 12;
    int64_t vectors = (n + lanes - 1) / lanes;
    double best = 1e300;
    *rows = *cols = 1;
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < SIZES; k++) {
            int r = sizes[i], c = sizes[k], accs = r * c;
            if (accs > most || accs + c + 2 > registers || (r > 1 && r > m) || c > vectors)
                continue;
            double tiles = (double)((m + r - 1) / r) * (double)((vectors + c - 1) / c);
            /* Two fma or loads a cycle; an accumulator is free again after four. */
            double step = accs / 2.0, loads = (r + c * 1.5) / 2.0;
            step = step < loads ? loads : step;
            step = step < 4 ? 4 : step;
            double far = count_far_loads(jit, task, r, c);
            step = step < far ? far : step;
            double cost = tiles * (step + 0.5);
            if (cost < best) {
                best = cost;
                *rows = r;
                *cols = c;
            }
        }
    jr->tile.m = m;
    jr->tile.n = n;
    jr->tile.steps = task->steps;
    jr->tile.in_panels = task->in_panels;
    jr->tile.rows = (uint8_t)*rows;
    jr->tile.cols = (uint8_t)*cols;
}

static void set_tile(Shape *s, int64_t n, int lanes, int rows, int cols) {
    JitPlan *plan = s->plan;
    plan->sig.rows = (uint8_t)rows;
    plan->sig.cols = (uint8_t)cols;
    plan->sig.lanes = (uint8_t)lanes;
    plan->wide = lanes * cols;
    if (n % (lanes * cols) == 0)
        plan->sig.flags |= SIG_WHOLE;
    else if (n < lanes * cols)
        plan->sig.flags |= SIG_EDGE;
}

/* ---- products through tables ------------------------------------------------------------------ */

/* Note [Products through tables]. In a convolution the data is read through windows: neither the places of the
 * result nor those of the window are one axis of it, so loops over them would be short and nested, and lanes
 * along a side of the image would not fill vectors. But one operand, here the weight, does not move with the
 * places. It goes to panels (jit/launch.c, Note [Packed operands]), lanes along the axis that only it has,
 * here the channels of the result, and the reduction is one loop over its rows. All places of the result are
 * one axis, the tile's rows. Of the other operand one element is broadcast a row and step; where it is, two
 * tables say: rows[place] + steps[step]. So a convolution runs like a product of matrices, whatever its
 * strides, sides and paddings, and no window is copied; its partial derivatives do, too. */

/* The parallel axes: those of the tabled operand alone, merged into one, end as rows, of the packed operand's the
 * longest as lanes. */
typedef struct Windows {
    int tabled, packed, v;
    uint32_t rows; /* axes that are merged */
    int order[RECIPE_MAX_AXES], nrows;
    int64_t m;
    double cost;
} Windows;

static bool walks_on(const Shape *s, int outer, int inner, int64_t n, int tabled, int packed) {
    for (int p = 0; p < s->nptr; p++)
        if (p != tabled && p != packed &&
            s->plan->stride[p][outer] != s->plan->stride[p][inner] * n)
            return false;
    return true;
}

/* Finds the axes and what they would cost, in steps of one vector. */
static bool find_windows(const Shape *s, int lanes, int tabled, int packed, int64_t k, Windows *w) {
    const JitPlan *plan = s->plan;
    *w = (Windows){.tabled = tabled, .packed = packed, .v = -1, .m = 1};
    double copied = (double)k, all = (double)k;
    int only[RECIPE_MAX_AXES], nonly = 0, out = s->nin;
    for (int a = 0; a < s->npar; a++) {
        bool t = plan->stride[tabled][a] != 0, p = plan->stride[packed][a] != 0;
        all *= (double)plan->extent[a];
        if (p)
            copied *= (double)plan->extent[a];
        if (!t && !p)
            return false;
        if (t && !p)
            only[nonly++] = a;
        if (p && !t && (w->v < 0 || plan->extent[a] > plan->extent[w->v]))
            w->v = a;
    }
    if (w->v < 0 || nonly == 0)
        return false;
    /* Those that lie closest in the result, as long as each continues the one before. */
    for (int i = 1; i < nonly; i++)
        for (int j = i; j > 0 && plan->stride[out][only[j - 1]] > plan->stride[out][only[j]]; j--) {
            int t = only[j];
            only[j] = only[j - 1];
            only[j - 1] = t;
        }
    for (int i = 0; i < nonly; i++) {
        if (i > 0 && !walks_on(s, only[i], only[0], w->m, tabled, packed))
            break;
        w->order[w->nrows++] = only[i];
        w->rows |= 1u << only[i];
        w->m *= plan->extent[only[i]];
    }
    int64_t n = plan->extent[w->v], vectors = (n + lanes - 1) / lanes;
    /* A copied element costs what two multiplications of vectors do, 0.3 ns, and 1.2 ns through masks. */
    double compute = all / (double)n * (double)vectors, copy = (n < lanes ? 6 : 2) * copied;
    w->cost = compute + copy;
    return w->m >= 4 && (w->nrows > 1 || s->nred > 1) && n * 2 > lanes && copy <= compute;
}

/* The next axis, which the last one does not go on with. */
static void add_walk(JitWalk *w, int64_t extent, int64_t stride) {
    w->extent[w->n] = extent;
    w->stride[w->n++] = stride;
}

/* The least and the most that a walk adds are within what a table holds. */
static bool fits_table(const JitWalk *w) {
    int64_t lo = 0, hi = 0;
    for (int i = 0; i < w->n; i++) {
        int64_t d;
        if (__builtin_mul_overflow(w->extent[i] - 1, w->stride[i], &d))
            return false;
        *(d < 0 ? &lo : &hi) += d;
    }
    return lo >= INT32_MIN && hi <= INT32_MAX;
}

/* See Note [Products through tables]; false: it is not one of them. */
static bool shape_windows(Shape *s, int lanes) {
    JitPlan *plan = s->plan;
    const Recipe *r = s->r;
    int end = s->npar + s->nred, x = -1, y = -1;
    if (s->npar < 2 || s->jr->iota_axes || s->jr->loads != s->jr->plain_loads)
        return false;
    for (int p = 0; p < s->nin; p++)
        if (is_loaded(s, p)) {
            if (y >= 0)
                return false;
            *(x < 0 ? &x : &y) = p;
        }
    if (y < 0)
        return false;
    for (int i = 0; i < r->nepilogue; i++)
        if (r->epilogue[i].op == SC_LOAD && (r->epilogue[i].a == x || r->epilogue[i].a == y))
            return false;
    int64_t k = 1;
    for (int a = s->npar; a < end; a++)
        k *= plan->extent[a];
    Windows w, other;
    bool found = find_windows(s, lanes, x, y, k, &w);
    if (find_windows(s, lanes, y, x, k, &other) && (!found || other.cost < w.cost)) {
        found = true;
        w = other;
    }
    if (!found || k < 8 || (double)k * (double)w.m * (double)plan->extent[w.v] < 1 << 14)
        return false;
    JitWalk rows = {0}, steps = {0}, source = {0};
    for (int i = w.nrows; i-- > 0;)
        add_walk(&rows, plan->extent[w.order[i]], plan->stride[w.tabled][w.order[i]]);
    for (int a = s->npar; a < end; a++) {
        int64_t n = plan->extent[a], by = plan->stride[w.packed][a];
        add_walk(&steps, n, plan->stride[w.tabled][a]);
        int last = source.n - 1;
        if (last >= 0 && source.stride[last] == by * n) {
            source.extent[last] *= n;
            source.stride[last] = by;
        } else {
            add_walk(&source, n, by);
        }
    }
    if (!fits_table(&rows) || !fits_table(&steps) || source.n >= PACKED_AXES)
        return false;

    /* The loops: other axes, rows, lanes; one reduction. */
    int64_t extent[RECIPE_MAX_AXES], stride[JIT_MAX_PTRS][RECIPE_MAX_AXES];
    int n = 0;
    for (int a = 0; a < s->npar; a++) {
        if (a == w.v || w.rows >> a & 1)
            continue;
        extent[n] = plan->extent[a];
        for (int p = 0; p < s->nptr; p++)
            stride[p][n] = plan->stride[p][a];
        n++;
    }
    for (int i = 0; i < 3; i++) {
        int from = i == 0 ? w.order[0] : w.v;
        extent[n] = i == 0 ? w.m : i == 1 ? plan->extent[w.v] : k;
        for (int p = 0; p < s->nptr; p++)
            stride[p][n] = i == 2 ? 0 : plan->stride[p][from];
        n++;
    }
    for (int p = 0; p < s->nptr; p++)
        memcpy(plan->stride[p], stride[p], sizeof stride[p][0] * (size_t)n);
    memcpy(plan->extent, extent, sizeof extent[0] * (size_t)n);
    memset(plan->sig.axis_of, JIT_NO_AXIS, sizeof plan->sig.axis_of);
    plan->naxes = n;
    s->npar = n - 1;
    s->nred = 1;
    plan->sig.npar = (uint8_t)s->npar;
    plan->sig.nred = 1;
    plan->stride[w.tabled][n - 3] = 0;                               /* the tables say */
    plan->stride[w.packed][n - 1] = (int64_t)elem_size(r, w.packed); /* until it lies in panels */
    plan->sig.tabled = (uint8_t)(w.tabled + 1);
    plan->rows = rows;
    plan->steps = steps;
    plan->source = source;
    plan->packed = plan->keeps = w.packed;
    for (int a = 0; a < s->npar - 1; a++)
        if (plan->stride[w.packed][a] != 0)
            plan->keeps = -1;
    plan->sig.form = FORM_TILE;
    int tile_rows, tile_cols;
    int64_t lane_extent = plan->extent[s->npar - 1];
    TileTask task = {w.m, lane_extent, k, lanes, elem_size(r, w.packed), true};
    choose_tile(s->jit, (JitRecipe *)s->jr, &task, &tile_rows, &tile_cols);
    set_tile(s, lane_extent, lanes, tile_rows, tile_cols);
    return true;
}

/* ---- products --------------------------------------------------------------------------------- */

enum {
    PANEL_BYTES = 1 << 19, /* an operand of this size that is read by short rows is packed */
    CUT_BYTES = 1 << 17,   /* what a row of tiles reads of a reduction that is cut */
    SMALL_TILE = 12, /* the sums of a tile whose step is too short a loop, where no panel is read */
};

/* Whether the reduction, of k steps, is cut: m rows and n lanes' elements of it do not stay in the nearest cache, and
 * tiles read them again; or they come from behind the second cache, and a tile alone would leap from row to row of the
 * matrix, which no hardware fetches early. */
static bool is_cut(const Shape *s, int64_t m, int64_t n, int64_t k) {
    const JitPlan *plan = s->plan;
    const Recipe *r = s->r;
    int64_t size = (int64_t)dtype_size(r->acc_type), bytes = k * (m + n) * size;
    return plan->sig.form == FORM_TILE && plan->packed < 0 && s->nred == 1 && !r->nepilogue &&
           r->out_types[0] == r->acc_type && is_unit(s, s->nin, s->npar - 1) && k >= 4 * JIT_CUT &&
           bytes >= (m > plan->sig.rows ? CUT_BYTES : s->jit->cpu.l2_bytes) && n > plan->wide;
}

static void shape_product(Shape *s) {
    JitPlan *plan = s->plan;
    int in = s->npar + s->nred - 1;
    if (s->npar == 0 || s->nred == 0)
        return;
    int widest = 4, wide_ins = 0, vector = -1, turned = 0;
    for (int i = 0; i < s->r->nbody; i++)
        if (dtype_size(s->r->body[i].type) > 4 && s->r->body[i].op != SC_CONST)
            widest = 8;
    int lanes = plan->sig.vbytes / widest;
    if (shape_windows(s, lanes))
        return;
    choose_lanes(s, 0, s->npar);
    int v = s->npar - 1;
    /* Rows: where what lies along the lanes does not move. */
    int w = -1;
    double most = 0;
    for (int a = 0; a < v; a++) {
        int still = 0, of = 0;
        for (int p = 0; p < s->nin; p++)
            if (is_loaded(s, p) && plan->stride[p][v] != 0) {
                of++;
                still += plan->stride[p][a] == 0;
            }
        double n = plan->extent[a] < 8 ? (double)plan->extent[a] : 8;
        double score = of && still ? n * still / of : 0.1;
        if (score > most) {
            most = score;
            w = a;
        }
    }
    int64_t m = 1, n = plan->extent[v];
    if (w >= 0) {
        swap_axes(s, w, v - 1);
        w = v - 1;
        m = plan->extent[w];
    }
    for (int p = 0; p < s->nin; p++) {
        if (!is_loaded(s, p) || plan->stride[p][v] == 0)
            continue;
        wide_ins++;
        vector = p;
        turned += s->jr->plain_loads >> p & 1 && !is_unit(s, p, v) && is_unit(s, p, in);
    }
    plan->sig.form = FORM_TILE;
    bool still = wide_ins == 1 && (w < 0 || plan->stride[vector][w] == 0) &&
                 s->jr->plain_loads >> vector & 1;
    for (int i = 0; i < s->r->nepilogue; i++) /* it reads the operand where it stands */
        still = still && (s->r->epilogue[i].op != SC_LOAD || s->r->epilogue[i].a != vector);
    int64_t k = 1;
    for (int a = s->npar; a <= in; a++)
        k *= plan->extent[a];
    if (still && !is_unit(s, vector, v) && (m >= 6 || !is_unit(s, vector, in))) {
        if (m >= 3 && k * n >= 256)
            plan->packed = vector;
    } else if (still && is_unit(s, vector, v) && m >= 32 &&
               k * n * elem_size(s->r, vector) >= PANEL_BYTES) {
        plan->packed = vector;
    }
    if (still && (plan->packed >= 0 || (turned == 1 && !is_unit(s, vector, v)))) {
        plan->keeps = vector;
        plan->source.n = 0;
        for (int a = s->npar; a <= in; a++)
            add_walk(&plan->source, plan->extent[a], plan->stride[vector][a]);
        for (int a = 0; a < v; a++)
            if (plan->stride[vector][a] != 0)
                plan->keeps = -1;
        if (s->kept)
            plan->packed = plan->keeps;
    }
    int rows, cols;
    int size = vector >= 0 ? elem_size(s->r, vector) : widest;
    TileTask task = {m, n, k, lanes, size, plan->packed >= 0};
    choose_tile(s->jit, (JitRecipe *)s->jr, &task, &rows, &cols);
    if (plan->packed < 0 && turned && turned <= 2 && plan->extent[in] >= lanes) {
        plan->sig.form = FORM_TURN;
        if (rows > 4)
            rows = 4;
        cols = rows * 2 <= 4 && n > lanes ? 2 : 1;
        if (rows == 1 && n >= 4 * lanes && turned == 1 && s->jit->cpu.registers == 32)
            cols = 2;
    }
    set_tile(s, n, lanes, rows, cols);
    if (is_cut(s, m, n, k))
        plan->sig.flags |= SIG_CUT;
    bool small = rows * cols <= SMALL_TILE && plan->extent[in] >= 2 * JIT_UNROLL;
    if (plan->sig.form == FORM_TILE && plan->sig.level && plan->packed < 0 && small)
        plan->sig.flags |= SIG_UNROLL;
}

/* Rows that go through all parts together: so many elements that they stay in the nearest cache. */
static void shape_rows(Shape *s) {
    enum { ELEMENTS = 2048, MOST = 16 };
    int64_t n = s->plan->extent[s->npar], rows = 1;
    while (rows < MOST && rows * 2 * n <= ELEMENTS)
        rows *= 2;
    s->plan->sig.rows = (uint8_t)rows;
    s->plan->sig.form = FORM_ROWS;
}

/* ---- signatures ------------------------------------------------------------------------------ */

/* Promises only what the form makes use of, so that kernels are shared. */
static void promise(Shape *s) {
    JitPlan *plan = s->plan;
    KernelSig *sig = &plan->sig;
    int in = s->npar + s->nred - 1;
    uint16_t want_zero = 0, want_unit = 0;
    switch ((KernelForm)sig->form) {
    case FORM_SCALAR: break;
    case FORM_FEW:
        want_unit = (uint16_t)(1u << (s->npar - 1) | 1u << (s->nred ? in : s->npar - 2));
        want_zero = (uint16_t)(want_unit | ((1u << s->nred) - 1) << s->npar);
        break;
    case FORM_MAP: want_zero = want_unit = (uint16_t)(1u << (s->npar - 1)); break;
    case FORM_SWAP:
    case FORM_LANES: want_zero = want_unit = (uint16_t)(3u << (s->npar - 2)); break;
    case FORM_ROWS:
    case FORM_INNER: want_zero = want_unit = (uint16_t)(1u << in); break;
    case FORM_OUTER:
        want_zero = (uint16_t)(1u << (s->npar - 1) | 1u << in);
        want_unit = (uint16_t)(1u << (s->npar - 1));
        break;
    case FORM_TILE:
    case FORM_TURN:
        want_zero = (uint16_t)(1u << (s->npar - 1) | ((1u << s->nred) - 1) << s->npar);
        if (s->npar > 1)
            want_zero |= (uint16_t)(1u << (s->npar - 2));
        want_unit = (uint16_t)(1u << (s->npar - 1) | 1u << in);
        if (sig->tabled) /* outputs are turned */
            want_unit |= (uint16_t)(1u << (s->npar - 2));
        break;
    }
    for (int p = 0; p < s->nptr; p++) {
        for (int a = 0; a < plan->naxes; a++) {
            uint16_t bit = (uint16_t)(1u << a);
            bool by_table = sig->tabled == p + 1 && (a == s->npar - 2 || a == s->npar);
            if (plan->stride[p][a] == 0 && want_zero & bit && !by_table &&
                (p < s->nin || sig->form == FORM_ROWS))
                sig->zero[p] |= bit;
            if (is_unit(s, p, a) && want_unit & bit && !by_table)
                sig->unit[p] |= bit;
        }
    }
}

double jit_hot_after(const Recipe *r) {
    return r->kind == RECIPE_PRODUCT ? HOT_PRODUCT_NS : HOT_NS;
}

void jit_plan(const Jit *jit, JitRecipe *jr, const KernelArgs *args, bool kept, JitPlan *plan) {
    const Recipe *r = &jr->recipe;
    Shape shape = {.jit = jit,
                   .jr = jr,
                   .r = r,
                   .plan = plan,
                   .kept = kept,
                   .nin = r->noperands,
                   .nptr = r->noperands + r->noutputs},
          *s = &shape;
    memset(&plan->sig, 0, sizeof plan->sig);
    plan->naxes = 0;
    plan->nptr = s->nptr;
    plan->kind = r->kind;
    plan->packed = plan->keeps = -1;
    plan->source.n = 0;
    plan->empty = false;
    plan->elements = 1;
    bool nothing = false; /* to fold */
    for (int a = 0; a < r->rank + r->nreduce; a++) {
        plan->elements *= args->extents[a];
        if (args->extents[a] == 0) {
            if (a < r->rank)
                plan->empty = true;
            else
                nothing = true;
        }
    }
    if (plan->empty)
        return;
    KernelSig *sig = &plan->sig;
    memset(sig->axis_of, JIT_NO_AXIS, sizeof sig->axis_of);
    sig->vbytes = (uint8_t)jit->cpu.vector_bytes;
    sig->flags = jit->cpu.masks ? SIG_MASKS : 0;
    /* Small launches run what is made in less time; past `hot` they are worth the better code. */
    double ns = jr->cost * (double)plan->elements;
    bool hot = jit->options.hot || jr->spent + ns > jit_hot_after(r);
    sig->level = hot;
    sig->form = FORM_SCALAR;
    add_axes(s, args, 0, r->rank, true);
    s->npar = plan->naxes;
    add_axes(s, args, r->rank, r->rank + r->nreduce, false);
    s->nred = plan->naxes - s->npar;
    sig->npar = (uint8_t)s->npar;
    sig->nred = (uint8_t)s->nred;
    if (!nothing && !jit->options.scalar)
        switch (r->kind) {
        case RECIPE_MAP: shape_map(s, args); break;
        case RECIPE_REDUCE: shape_reduce(s); break;
        case RECIPE_PRODUCT: shape_product(s); break;
        case RECIPE_SCAN: shape_scan(s); break;
        case RECIPE_ROWS: /* below: it has but one form */
        case RECIPE_SCATTER: break;
        }
    if (r->kind == RECIPE_ROWS)
        shape_rows(s);
    promise(s);
}
