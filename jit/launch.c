/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: plan, kernel, threads.
 *
 * Note [Packed operands]. A product whose vector operand is read against its grain, or by short
 * rows of a large matrix, gets it copied, a panel of a tile's width at a time: contiguous along the
 * panel, one row a step of the reduction. The copy is itself a compiled MAP. The kernel is the one
 * for contiguous operands, launched once a panel. Accumulation over the reduction is not cut, so
 * the bits are the same.
 *
 * Where the same elements are read again and again, the weights of a network, all panels are kept beside
 * them (tensor/packed.h) and no launch copies any more. A product of one row by 2048 x 512 weights that lie
 * along the reduction takes 250 us when it turns them in registers, and 60 when it reads panels. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "jit/internal.h"

#include "base/mem.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARALLEL_NS = 50000, SLICE_NS = 20000, PACK_ALIGN = 64 };

Jit *jit_open(const JitOptions *options, const char **why_not) {
    Str tried = {0};
    char *path = jit_library_find(options->library, &tried);
    if (!path) {
        *why_not = fmt_text("librelayjit.so is not at %s", str_text(&tried));
        return NULL;
    }
    Jit *jit = calloc(1, sizeof *jit);
    if (!jit) {
        free(path);
        *why_not = "out of memory";
        return NULL;
    }
    jit->options = *options;
    jit->library = path;
    jit->cpu = *jit_cpu();
    if (options->vector_bytes && options->vector_bytes < jit->cpu.vector_bytes) {
        jit->cpu.vector_bytes = options->vector_bytes;
        jit->cpu.masks = false;
        jit->cpu.registers = 16;
    }
    struct stat st;
    if (stat(path, &st) == 0)
        snprintf(jit->library_id, sizeof jit->library_id, "%lld %lld.%09ld", (long long)st.st_size,
                 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    jit->threads = options->threads;
    if (jit->threads <= 0)
        jit->threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (jit->threads < 1)
        jit->threads = 1;
    if (jit->threads > 64)
        jit->threads = 64;
    jit_cache_init(&jit->cache, options->cache_dir);
    return jit;
}

void jit_close(Jit *jit) {
    if (!jit)
        return;
    jit_pool_free(jit->pool);
    jit_table_fini(jit);
    jit_cache_fini(&jit->cache);
    free((char *)jit->api_why);
    free(jit->library);
    free(jit->pack);
    free(jit->tables);
    free(jit);
}

/* ---- one launch ------------------------------------------------------------------------------ */

typedef struct Run {
    Jit *jit;
    const JitPlan *plan;
    KernelLaunch *launch;
    const KernelSlice *whole;
    KernelCode code;
    int axis; /* split among threads */
    int64_t grain;
    int n; /* pieces */
    int32_t status[64];
    /* Note [Packed operands] */
    KernelCode pack;
    const KernelLaunch *pack_launch;
    int64_t panel_bytes, width;
    const char *kept; /* all panels, one after the other; NULL: each is copied where it is needed */
} Run;

static void piece(const Run *run, int i, int64_t *begin, int64_t *end) {
    int64_t extent = run->plan->extent[run->axis];
    int64_t blocks = (extent + run->grain - 1) / run->grain;
    *begin = blocks * i / run->n * run->grain;
    *end = blocks * (i + 1) / run->n * run->grain;
    if (*end > extent)
        *end = extent;
}

static void narrow(const JitPlan *plan, KernelSlice *s, int axis, int64_t begin, int64_t end) {
    for (int p = 0; p < plan->nptr; p++)
        s->ptr[p] = (const char *)s->ptr[p] + begin * plan->stride[p][axis];
    if (plan->sig.tabled && axis == plan->sig.npar - 2)
        s->rows += begin;
    s->origin[axis] += begin;
    s->extent[axis] = end - begin;
}

static void copy_slice(const JitPlan *plan, KernelSlice *to, const KernelSlice *from) {
    memcpy(to->ptr, from->ptr, sizeof to->ptr[0] * (size_t)plan->nptr);
    memcpy(to->extent, from->extent, sizeof to->extent[0] * (size_t)plan->naxes);
    memcpy(to->origin, from->origin, sizeof to->origin[0] * (size_t)plan->naxes);
    to->rows = from->rows;
    to->steps = from->steps;
}

static void run_piece(void *arg, int i) {
    Run *run = arg;
    int64_t begin, end;
    piece(run, i, &begin, &end);
    KernelSlice slice;
    copy_slice(run->plan, &slice, run->whole);
    if (begin < end) {
        narrow(run->plan, &slice, run->axis, begin, end);
        run->status[i] = run->code(run->launch, &slice);
    } else {
        run->status[i] = KERNEL_DONE;
    }
}

/* A thread's panels of a packed product: see Note [Packed operands]. */
static void run_panels(void *arg, int i) {
    Run *run = arg;
    const JitPlan *plan = run->plan;
    int npar = plan->sig.npar, nred = plan->source.n, v = npar - 1, p = plan->packed;
    int64_t begin = 0, end = plan->extent[v], first, last;
    piece(run, i, &first, &last);
    KernelSlice whole;
    copy_slice(plan, &whole, run->whole);
    if (run->axis == v)
        begin = first, end = last;
    else
        narrow(plan, &whole, run->axis, first, last);
    char *buffer = run->jit->pack + (size_t)i * (size_t)run->panel_bytes;
    run->status[i] = KERNEL_DONE;
    if (first >= last)
        return;
    /* The axes along which the panels differ; the kernel runs over the others. */
    int moves[RECIPE_MAX_AXES], outer = 0;
    for (int a = 0; a < npar - 2; a++)
        if (plan->stride[p][a] != 0)
            moves[outer++] = a;
    int64_t at[RECIPE_MAX_AXES] = {0};
    for (;;) {
        KernelSlice base;
        copy_slice(plan, &base, &whole);
        for (int a = 0; a < outer; a++)
            narrow(plan, &base, moves[a], at[a], at[a] + 1);
        for (int64_t c = begin; c < end; c += run->width) {
            int64_t stop = c + run->width < end ? c + run->width : end;
            KernelSlice slice, copy;
            copy_slice(plan, &slice, &base);
            narrow(plan, &slice, v, c, stop);
            copy.ptr[0] = slice.ptr[p];
            copy.ptr[1] = buffer;
            if (run->kept)
                copy.ptr[1] = run->kept + c / run->width * run->panel_bytes;
            for (int a = 0; a < nred; a++) {
                copy.extent[a] = plan->source.extent[a];
                copy.origin[a] = 0;
            }
            copy.extent[nred] = stop - c;
            copy.origin[nred] = 0;
            int32_t status = run->kept ? KERNEL_DONE : run->pack(run->pack_launch, &copy);
            slice.ptr[p] = copy.ptr[1];
            if (status == KERNEL_DONE)
                status = run->code(run->launch, &slice);
            if (status != KERNEL_DONE) {
                run->status[i] = status;
                return;
            }
        }
        int a = outer - 1;
        while (a >= 0 && ++at[a] == whole.extent[moves[a]])
            at[a--] = 0;
        if (a < 0)
            return;
    }
}

static int32_t run_all(Run *run, void (*fn)(void *, int)) {
    Jit *jit = run->jit;
    if (run->n > 1 && !jit->pool)
        jit->pool = jit_pool_new(jit->threads);
    jit_pool_run(jit->pool, run->n, fn, run);
    for (int i = 0; i < run->n; i++)
        if (run->status[i] != KERNEL_DONE)
            return run->status[i];
    return KERNEL_DONE;
}

/* Into how many pieces, along which axis. */
static void split(Run *run, double ns) {
    const JitPlan *plan = run->plan;
    const KernelSig *sig = &plan->sig;
    int npar = sig->npar;
    int pieces = ns < PARALLEL_NS                    ? 1
                 : ns / SLICE_NS < run->jit->threads ? (int)(ns / SLICE_NS)
                                                     : run->jit->threads;
    run->axis = 0;
    run->grain = 1;
    run->n = 1;
    bool in_order = plan->kind == RECIPE_SCATTER ||
                    (plan->kind == RECIPE_SCAN && sig->form == FORM_SCALAR);
    if (pieces < 2 || in_order)
        return;
    int end = sig->form == FORM_LANES ? npar - 1 : npar;
    bool map_few = sig->form == FORM_FEW && plan->kind == RECIPE_MAP;
    int64_t most = 1;
    for (int a = 0; a < end; a++) {
        if (map_few && a == npar - 2) /* it is written out */
            continue;
        int64_t grain = 1;
        bool tile = sig->form == FORM_TILE || sig->form == FORM_TURN;
        if (a == npar - 1 && sig->form != FORM_SCALAR && sig->form != FORM_INNER &&
            sig->form != FORM_ROWS)
            grain = tile ? plan->wide : 64;
        if (a == npar - 2 && tile)
            grain = sig->rows;
        if ((a == npar - 2 && sig->form == FORM_SWAP) || sig->form == FORM_LANES)
            grain = 16;
        int64_t blocks = (plan->extent[a] + grain - 1) / grain;
        /* The outermost that gives everyone the same is best; else the one with most. */
        if (blocks > most) {
            most = blocks;
            run->axis = a;
            run->grain = grain;
            if (blocks >= 8 * pieces)
                break;
        }
    }
    run->n = most < pieces ? (int)most : pieces;
}

/* The MAP that copies panels, of the operand's element size. */
static const Recipe *copy_recipe(Jit *jit, int bytes, int rank) {
    static const DType types[4] = {DT_U8, DT_U16, DT_U32, DT_U64};
    int i = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
    Recipe *r = &jit->copies[i][rank];
    if (!r->body) {
        jit->copy_body[i] = (Scalar){.op = SC_LOAD, .type = (uint8_t)types[i]};
        *r = (Recipe){.kind = RECIPE_MAP,
                      .rank = (uint8_t)rank,
                      .noperands = 1,
                      .noutputs = 1,
                      .acc_type = (uint8_t)types[i],
                      .nbody = 1};
        r->in_types[0] = r->out_types[0] = (uint8_t)types[i];
        r->body = &jit->copy_body[i];
    }
    return r;
}

static bool grow_pack(Jit *jit, size_t bytes) {
    if (bytes <= jit->pack_bytes)
        return true;
    free(jit->pack);
    jit->pack_bytes = 0;
    jit->pack = aligned_alloc(PACK_ALIGN, (bytes + PACK_ALIGN - 1) & ~(size_t)(PACK_ALIGN - 1));
    if (jit->pack)
        jit->pack_bytes = bytes;
    return jit->pack != NULL;
}

/* The kernel that copies rows of the reduction to a panel: axes are the reduction's, then the panel's. */
static bool prepare_copy(Run *run, const JitPlan *plan, const JitRecipe *jr,
                         const KernelLaunch *launch, KernelLaunch *pack_launch) {
    Jit *jit = run->jit;
    const KernelSig *sig = &plan->sig;
    const JitWalk *source = &plan->source;
    int p = plan->packed, nred = source->n, v = sig->npar - 1;
    int bytes = (int)dtype_size(jr->recipe.in_types[p]);
    KernelSig copy;
    memset(&copy, 0, sizeof copy);
    /* The copy's slices name the axes in their order: no merging, no permutation. */
    memset(copy.axis_of, JIT_NO_AXIS, sizeof copy.axis_of);
    for (int a = 0; a <= nred; a++)
        copy.axis_of[a] = (uint8_t)a;
    copy.vbytes = sig->vbytes;
    copy.flags = sig->flags;
    copy.level = sig->level;
    copy.npar = (uint8_t)(nred + 1);
    bool along = plan->stride[p][v] == bytes;
    bool turned = !along && source->stride[nred - 1] == bytes && source->extent[nred - 1] >= 8;
    copy.form = turned ? FORM_SWAP : FORM_MAP;
    uint16_t last = (uint16_t)(1u << nred), before = (uint16_t)(1u << (nred - 1));
    copy.unit[1] = last;
    copy.unit[0] = along ? last : turned ? before : 0;
    run->pack = jit_kernel_get(jit, jit_recipe_get(jit, copy_recipe(jit, bytes, nred + 1)), &copy);
    int64_t step = run->width * bytes;
    for (int a = nred; a-- > 0;) {
        pack_launch->stride[0][a] = source->stride[a];
        pack_launch->stride[1][a] = step;
        step *= source->extent[a];
    }
    pack_launch->stride[0][nred] = plan->stride[p][v];
    pack_launch->stride[1][nred] = bytes;
    pack_launch->interrupt = launch->interrupt;
    run->pack_launch = pack_launch;
    return run->pack != NULL;
}

/* From here on the launch reads the operand from panels. */
static void read_panels(const Run *run, JitPlan *plan, const JitRecipe *jr, KernelLaunch *launch) {
    KernelSig *sig = &plan->sig;
    int p = plan->packed, npar = sig->npar, nred = sig->nred, v = npar - 1;
    int64_t bytes = (int64_t)dtype_size(jr->recipe.in_types[p]), step = run->width * bytes;
    for (int a = nred; a-- > 0;) {
        launch->stride[p][npar + a] = step;
        step *= plan->extent[npar + a];
        sig->zero[p] &= (uint16_t) ~(1u << (npar + a));
    }
    launch->stride[p][v] = bytes;
    sig->unit[p] = (uint16_t)(1u << v);
    if (!(sig->flags & SIG_WHOLE))
        sig->flags &= (uint8_t)~SIG_EDGE; /* panels are whole but for the last */
}

static int64_t count_steps(const JitPlan *plan) {
    int64_t k = 1;
    for (int a = 0; a < plan->sig.nred; a++)
        k *= plan->extent[plan->sig.npar + a];
    return k;
}

/* Writes where a walk leads, step by step. */
static void write_walk(const JitWalk *w, int32_t *to) {
    int64_t n = 1, done = 1;
    to[0] = 0;
    for (int a = w->n; a-- > 0; done = n) {
        n *= w->extent[a];
        for (int64_t i = done; i < n; i++)
            to[i] = to[i - done] + (int32_t)w->stride[a];
    }
}

/* See Note [Products through tables] in jit/shape.c; false: no memory. */
static bool prepare_tables(Jit *jit, const JitPlan *plan, KernelSlice *slice) {
    if (!plan->sig.tabled)
        return true;
    int64_t rows = plan->extent[plan->sig.npar - 2], steps = count_steps(plan);
    size_t n = (size_t)(rows + steps);
    if (n > jit->table_entries) {
        free(jit->tables);
        jit->tables = malloc(n * sizeof *jit->tables);
        jit->table_entries = jit->tables ? n : 0;
        if (!jit->tables)
            return false;
    }
    write_walk(&plan->rows, jit->tables);
    write_walk(&plan->steps, jit->tables + rows);
    slice->rows = jit->tables;
    slice->steps = jit->tables + rows;
    return true;
}

/* How the panels are shared out among threads. */
static void split_panels(Run *run, double ns) {
    const JitPlan *plan = run->plan;
    int v = plan->sig.npar - 1;
    run->axis = v;
    run->grain = run->width;
    int64_t most = (plan->extent[v] + run->width - 1) / run->width;
    int pieces = ns < PARALLEL_NS ? 1 : run->jit->threads;
    /* Where there are too few, each thread has its own copy of them. */
    for (int a = 0; plan->sig.tabled && a < v; a++) {
        int64_t grain = a == v - 1 ? plan->sig.rows : 1;
        int64_t blocks = (plan->extent[a] + grain - 1) / grain;
        if (most < pieces && blocks > most) {
            run->axis = a;
            run->grain = grain;
            most = blocks;
        }
    }
    run->n = most < pieces ? (int)most : pieces;
    if (run->n < 1)
        run->n = 1;
}

/* Prepares the packed launch; false: run it as it is. */
static bool prepare_panels(Run *run, JitPlan *plan, JitRecipe *jr, KernelLaunch *launch,
                           KernelLaunch *pack_launch, double ns) {
    Jit *jit = run->jit;
    int v = plan->sig.npar - 1;
    int64_t bytes = (int64_t)dtype_size(jr->recipe.in_types[plan->packed]), k = count_steps(plan);
    run->width = plan->wide;
    /* Several tiles a panel where they fit the cache. */
    int64_t tiles = jit->cpu.l2_bytes / 4 / (k * run->width * bytes);
    if (tiles > 1)
        run->width *= tiles < 4 ? tiles : 4;
    if (run->width > plan->extent[v])
        run->width = (plan->extent[v] + 15) / 16 * 16;
    run->panel_bytes = (k * run->width * bytes + PACK_ALIGN - 1) / PACK_ALIGN * PACK_ALIGN;
    split_panels(run, ns);
    if (!grow_pack(jit, (size_t)run->panel_bytes * (size_t)run->n) ||
        !prepare_copy(run, plan, jr, launch, pack_launch))
        return false;
    read_panels(run, plan, jr, launch);
    return true;
}

static int32_t reference(Jit *jit, const Recipe *r, const KernelArgs *args) {
    jit->stats.reference++;
    KernelArgs *alone = malloc(sizeof *alone);
    if (!alone)
        return KERNEL_MEMORY;
    *alone = *args;
    alone->thread = 0;
    alone->nthreads = 1;
    int32_t status = recipe_run(r, alone);
    free(alone);
    return status;
}

static void fill(const JitPlan *plan, const Recipe *r, const KernelArgs *args, KernelLaunch *launch,
                 KernelSlice *slice) {
    static const int never;
    memcpy(launch->iparams, args->iparams, sizeof launch->iparams);
    memcpy(launch->fparams, args->fparams, sizeof launch->fparams);
    launch->interrupt = args->interrupt ? args->interrupt : &never;
    for (int p = 0; p < plan->nptr; p++) {
        slice->ptr[p] = p < r->noperands ? args->in[p] : args->out[p - r->noperands];
        memcpy(launch->stride[p], plan->stride[p], sizeof(int64_t) * (size_t)plan->naxes);
    }
    memcpy(slice->extent, plan->extent, sizeof(int64_t) * (size_t)plan->naxes);
    memset(slice->origin, 0, sizeof slice->origin);
    slice->rows = slice->steps = NULL;
}

static double launch_ns(const JitRecipe *jr, const JitPlan *plan) {
    double ns = jr->cost * (double)plan->elements;
    return plan->sig.form == FORM_SCALAR ? ns * 10 : ns;
}

int32_t jit_run(Jit *jit, const Recipe *r, const KernelArgs *args) {
    JitRecipe *jr = jit_recipe_get(jit, r);
    JitPlan plan;
    jit_plan(jit, jr, args, false, &plan);
    if (plan.empty)
        return KERNEL_DONE;
    KernelLaunch launch;
    KernelSlice slice;
    fill(&plan, r, args, &launch, &slice);
    Run run;
    run.jit = jit;
    run.plan = &plan;
    run.launch = &launch;
    run.whole = &slice;
    run.kept = NULL;
    double ns = launch_ns(jr, &plan);
    bool packed = false;
    KernelLaunch pack_launch;
    if (plan.packed >= 0) {
        packed = prepare_tables(jit, &plan, &slice) &&
                 prepare_panels(&run, &plan, jr, &launch, &pack_launch, ns);
        if (!packed) {
            jit->stats.reference++; /* not reached but when memory has run out */
            return recipe_run(r, args);
        }
    }
    run.code = jit_kernel_get(jit, jr, &plan.sig);
    if (!run.code)
        return reference(jit, r, args);
    jit->stats.launches++;
    jr->spent += ns;
    if (packed)
        return run_all(&run, run_panels);
    split(&run, ns);
    if (run.n == 1)
        return run.code(&launch, &slice);
    return run_all(&run, run_piece);
}

/* ---- panels that are kept -------------------------------------------------------------------- */

static void lay_kept(Run *run, const JitRecipe *jr) {
    const JitPlan *plan = run->plan;
    int64_t bytes = (int64_t)dtype_size(jr->recipe.in_types[plan->packed]);
    run->width = plan->wide;
    run->panel_bytes = (count_steps(plan) * run->width * bytes + PACK_ALIGN - 1) / PACK_ALIGN *
                       PACK_ALIGN;
}

bool jit_find_packing(Jit *jit, const Recipe *r, const KernelArgs *args, JitPacking *packing) {
    if (r->kind != RECIPE_PRODUCT)
        return false;
    JitRecipe *jr = jit_recipe_get(jit, r);
    JitPlan plan;
    jit_plan(jit, jr, args, true, &plan);
    if (plan.empty || plan.keeps < 0 || plan.source.n >= PACKED_AXES)
        return false;
    Run run = {.jit = jit, .plan = &plan};
    lay_kept(&run, jr);
    int p = plan.keeps, nred = plan.source.n, v = plan.sig.npar - 1;
    PackedKey *key = &packing->key;
    memset(key, 0, sizeof *key);
    for (int a = 0; a < nred; a++) {
        key->extent[a] = plan.source.extent[a];
        key->stride[a] = plan.source.stride[a];
    }
    key->extent[nred] = plan.extent[v];
    key->stride[nred] = plan.stride[p][v];
    key->width = run.width;
    key->element = (int64_t)dtype_size(r->in_types[p]);
    packing->operand = p;
    packing->bytes = (size_t)((plan.extent[v] + run.width - 1) / run.width * run.panel_bytes);
    return true;
}

int32_t jit_pack(Jit *jit, const Recipe *r, const KernelArgs *args, void *panels) {
    JitRecipe *jr = jit_recipe_get(jit, r);
    JitPlan plan;
    KernelLaunch launch, pack_launch;
    KernelSlice whole, slice;
    jit_plan(jit, jr, args, true, &plan);
    fill(&plan, r, args, &launch, &whole);
    Run run = {.jit = jit, .plan = &plan};
    lay_kept(&run, jr);
    if (!prepare_copy(&run, &plan, jr, &launch, &pack_launch))
        return KERNEL_MEMORY;
    int p = plan.packed, npar = plan.sig.npar, nred = plan.source.n;
    int64_t n = plan.extent[npar - 1], step = plan.stride[p][npar - 1];
    for (int64_t c = 0; c < n; c += run.width) {
        slice.ptr[0] = (const char *)args->in[p] + c * step;
        slice.ptr[1] = (char *)panels + c / run.width * run.panel_bytes;
        for (int a = 0; a <= nred; a++)
            slice.origin[a] = 0;
        for (int a = 0; a < nred; a++)
            slice.extent[a] = plan.source.extent[a];
        slice.extent[nred] = run.width < n - c ? run.width : n - c;
        int32_t status = run.pack(&pack_launch, &slice);
        if (status != KERNEL_DONE)
            return status;
    }
    return KERNEL_DONE;
}

int32_t jit_run_packed(Jit *jit, const Recipe *r, const KernelArgs *args, const void *panels) {
    JitRecipe *jr = jit_recipe_get(jit, r);
    JitPlan plan;
    KernelLaunch launch;
    KernelSlice slice;
    jit_plan(jit, jr, args, true, &plan);
    fill(&plan, r, args, &launch, &slice);
    Run run;
    run.jit = jit;
    run.plan = &plan;
    run.launch = &launch;
    run.whole = &slice;
    run.kept = panels;
    lay_kept(&run, jr);
    double ns = launch_ns(jr, &plan);
    split_panels(&run, ns);
    read_panels(&run, &plan, jr, &launch);
    run.code = jit_kernel_get(jit, jr, &plan.sig);
    if (!run.code || !prepare_tables(jit, &plan, &slice))
        return reference(jit, r, args);
    jit->stats.launches++;
    jr->spent += ns;
    return run_all(&run, run_panels);
}

/* ---- launches made ready --------------------------------------------------------------------- */

struct JitLaunch {
    JitRecipe *recipe;
    KernelCode code;
    double ns;   /* rough cost of one run */
    double most; /* jr->spent from which there is better code */
    int nptr;
    bool empty;
    KernelSlice slice;   /* its pointers are those of the last run */
    KernelLaunch launch; /* with as many rows of strides as there are operands */
};

JitLaunch *jit_launch_new(Jit *jit, const Recipe *r, const KernelArgs *args) {
    JitRecipe *jr = jit_recipe_get(jit, r);
    JitPlan plan;
    jit_plan(jit, jr, args, false, &plan);
    double ns = launch_ns(jr, &plan);
    Run run = {.jit = jit, .plan = &plan};
    if (plan.packed >= 0)
        return NULL;
    if (!plan.empty) {
        split(&run, ns);
        run.code = jit_kernel_get(jit, jr, &plan.sig);
        if (run.n > 1 || !run.code)
            return NULL;
    }
    size_t rows = (size_t)plan.nptr * sizeof plan.stride[0];
    /* not scanned: nothing in it is collected but elements, which the run's caller holds */
    JitLaunch *l = mem_bytes(offsetof(JitLaunch, launch.stride) + rows);
    l->recipe = jr;
    l->code = run.code;
    l->ns = ns;
    l->most = plan.sig.level ? INFINITY : jit_hot_after(r);
    l->nptr = plan.nptr;
    l->empty = plan.empty;
    if (!plan.empty)
        fill(&plan, r, args, &l->launch, &l->slice);
    return l;
}

void jit_expect_often(Jit *jit, const Recipe *r) {
    jit_recipe_get(jit, r)->spent += jit_hot_after(r);
}

bool jit_launch_is_outgrown(const JitLaunch *l) { return l->recipe->spent + l->ns > l->most; }

int32_t jit_launch_run(Jit *jit, JitLaunch *l, char *const *at, const uint32_t *slot,
                       const int64_t *offset) {
    if (l->empty)
        return KERNEL_DONE;
    for (int p = 0; p < l->nptr; p++)
        l->slice.ptr[p] = at[slot[p]] + offset[p];
    jit->stats.launches++;
    l->recipe->spent += l->ns;
    return l->code(&l->launch, &l->slice);
}

int32_t jit_run_step(void *jit, const Recipe *r, const KernelArgs *args) {
    return jit_run(jit, r, args);
}

/* ---- questions ------------------------------------------------------------------------------- */

JitStats jit_stats(const Jit *jit) { return jit->stats; }

const char *jit_why_reference(Jit *jit, const Recipe *r) { return jit_recipe_get(jit, r)->why; }

void jit_describe(Jit *jit, Str *out) {
    const char *why = "";
    const JitApi *api = jit_api_get(jit, &why);
    if (!api) {
        str_printf(out, "no compiler: %s", why);
        return;
    }
    str_printf(out, "LLVM %s, %s, %d-bit vectors, %d thread%s, cache %s", api->llvm_version,
               api->cpu, jit->cpu.vector_bytes * 8, jit->threads, jit->threads == 1 ? "" : "s",
               jit->cache.dir ? jit->cache.dir : "in memory");
    if (jit->cache.refused)
        str_printf(out, " (not used: %s)", jit->cache.refused);
}

bool jit_text(Jit *jit, const Recipe *r, const KernelArgs *args, JitText what, Str *out,
              const char **why) {
    const JitApi *api = jit_api_get(jit, why);
    if (!api)
        return false;
    JitRecipe *jr = jit_recipe_get(jit, r);
    JitPlan plan;
    jit_plan(jit, jr, args, false, &plan);
    if (plan.empty) {
        *why = "there is nothing to compute";
        return false;
    }
    if (plan.packed >= 0) {
        KernelLaunch launch, pack_launch;
        KernelSlice slice;
        fill(&plan, r, args, &launch, &slice);
        Run run = {.jit = jit, .plan = &plan};
        prepare_panels(&run, &plan, jr, &launch, &pack_launch, 0);
    }
    char *text = NULL, reason[256];
    size_t n;
    JitFormat format = what == JIT_TEXT_IR ? JIT_IR : JIT_ASSEMBLY;
    if (!api->compile(&jr->recipe, &plan.sig, format, &text, &n, reason)) {
        *why = fmt_text("%s", reason);
        return false;
    }
    str_add_n(out, text, n);
    free(text);
    return true;
}
