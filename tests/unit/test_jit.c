/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels against recipe_run, bit for bit (nans are equal): random recipes of every kind,
 * over every dtype, with broadcast, transposed, reversed and gapped operands, at every vector width
 * this processor can pretend to have, on one thread and on three. */
#include "jit/internal.h"
#include "jit/jit.h"
#include "ops/recipe/scalar.h"
#include "tests/unit/check.h"
#include "tests/unit/launches.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static bool same(const char *a, const char *b, DType t) {
    if (memcmp(a, b, dtype_size(t)) == 0)
        return true;
    return dtype_is_float(t) && isnan(elem_get_float(a, t)) && isnan(elem_get_float(b, t));
}

static int packed, tabled, few, few_maps, cut, cut_rows, unrolled, together, beside, squares;

static void count_forms(Jit *jit, const Launch *l) {
    JitPlan plan;
    jit_plan(jit, jit_recipe_get(jit, &l->r), &l->args, false, &plan);
    tabled += plan.sig.tabled > 0;
    few += plan.sig.form == FORM_FEW && l->r.kind == RECIPE_REDUCE;
    few_maps += plan.sig.form == FORM_FEW && l->r.kind == RECIPE_MAP;
    bool is_cut = plan.sig.flags & SIG_CUT;
    cut += is_cut;
    cut_rows += is_cut && plan.sig.rows == 1;
    bool is_unrolled = plan.sig.flags & SIG_UNROLL;
    unrolled += is_unrolled && plan.sig.form == FORM_TILE;
    together += is_unrolled && plan.sig.form == FORM_MAP &&
                plan.extent[plan.naxes - 1] >= plan.sig.vbytes;
    beside += (plan.sig.flags & SIG_BESIDE) != 0;
    int scan = plan.naxes - 1;
    squares += plan.sig.form == FORM_LANES && plan.extent[scan] >= 16 &&
               plan.sig.unit[l->r.noperands] >> scan & 1;
}

/* As jit_run, by panels made before where the recipe reads an operand in panels. */
static int32_t run_in_panels(Jit *jit, const Recipe *r, const KernelArgs *args) {
    JitPacking packing;
    if (!jit_find_packing(jit, r, args, &packing))
        return jit_run(jit, r, args);
    packed++;
    char *panels = aligned_alloc(64, packing.bytes + 64);
    int32_t status = jit_pack(jit, r, args, panels);
    CHECK(status == KERNEL_DONE);
    status = jit_run_packed(jit, r, args, panels);
    free(panels);
    return status;
}

/* Runs both; a text about the first difference, or NULL. */
static const char *differs(Jit *jit, Launch *l, bool in_panels) {
    int32_t want = recipe_run(&l->r, &l->args);
    KernelArgs args = l->args;
    for (int k = 0; k < l->r.noutputs; k++) {
        int block = l->beside ? 0 : k;
        args.out[k] = l->out2[block] + ((char *)l->args.out[k] - l->out[block]);
    }
    for (int k = 0; k < l->r.noperands; k++)
        if (l->handed[k])
            args.in[k] = args.out[l->handed[k] - 1];
    uint64_t before = jit_stats(jit).reference;
    int32_t got = (in_panels ? run_in_panels : jit_run)(jit, &l->r, &args);
    if (jit_stats(jit).reference != before)
        return fmt_text("not compiled: %s", jit_why_reference(jit, &l->r));
    if ((got != 0) != (want != 0))
        return fmt_text("status %d, expected %d", got, want);
    for (int k = 0; want == 0 && k < l->r.noutputs; k++) {
        DType t = (DType)l->r.out_types[k];
        size_t size = dtype_size(t);
        for (size_t i = 0; i < l->out_bytes[k]; i += size) {
            if (same(l->out2[k] + i, l->out[k] + i, t))
                continue;
            Str s = {0};
            if (dtype_is_float(t))
                str_printf(&s, "output %d at %zu: %.9g, expected %.9g", k, i / size,
                           elem_get_float(l->out2[k] + i, t), elem_get_float(l->out[k] + i, t));
            else
                str_printf(&s, "output %d at %zu: %lld, expected %lld", k, i / size,
                           (long long)elem_get_int(l->out2[k] + i, t),
                           (long long)elem_get_int(l->out[k] + i, t));
            return str_text(&s);
        }
        if (l->out[k])
            memcpy(l->out2[k], l->out[k], l->out_bytes[k]);
    }
    return NULL;
}

static void report(const Launch *l, uint64_t seed, const char *what) {
    Str s = {0};
    recipe_print(&s, &l->r);
    str_add(&s, "extents");
    int naxes = l->r.rank + l->r.nreduce;
    for (int a = 0; a < naxes; a++)
        str_printf(&s, " %lld", (long long)l->args.extents[a]);
    for (int k = 0; k < l->r.noperands + l->r.noutputs; k++) {
        bool in = k < l->r.noperands;
        str_printf(&s, "\n%s %d by", in ? "in" : "out", in ? k : k - l->r.noperands);
        for (int a = 0; a < (in ? naxes : l->r.rank); a++)
            str_printf(&s, " %lld",
                       (long long)(in ? l->args.in_strides[k][a]
                                      : l->args.out_strides[k - l->r.noperands][a]));
    }
    check_fail(__FILE__, __LINE__, "seed %llu: %s\n%s", (unsigned long long)seed, what,
               str_text(&s));
}

static Jit *open_jit(int bytes, int threads, bool scalar, bool hot) {
    const char *why = NULL;
    Jit *jit = jit_open(&(JitOptions){.cache_dir = "",
                                      .vector_bytes = bytes,
                                      .threads = threads,
                                      .scalar = scalar,
                                      .hot = hot},
                        &why);
    if (!jit)
        printf("no compiler: %s\n", why);
    return jit;
}

typedef enum Draw { ANY, WINDOWS, LONG, ROWS, BESIDE } Draw;

static void rounds(RecipeKind kind, Draw draw, int n) {
    uint64_t first = check_seed();
    n = (int)check_share(n);
    Jit *jits[6] = {open_jit(0, 1, false, true),  open_jit(0, 3, false, true),
                    open_jit(32, 1, false, true), open_jit(16, 1, false, true),
                    open_jit(0, 1, true, true),   open_jit(0, 1, false, false)};
    if (!jits[0])
        check_skip();
    for (int j = 0; j < 6 && draw == LONG && jits[j]; j++)
        jits[j]->cpu.l2_bytes = 1 << 14; /* so that reductions of one row are cut */
    for (int i = 0; jits[0] && i < n && !check_failures; i++) {
        uint64_t seed = first + (uint64_t)i;
        rng_state = seed * 0x9e3779b97f4a7c15u + (uint64_t)kind;
        for (int k = 0; k < 8; k++)
            rng();
        Launch l;
        switch (draw) {
        case ANY: make(&l, kind); break;
        case WINDOWS: make_windows(&l); break;
        case LONG: make_long(&l); break;
        case ROWS: make_rows(&l); break;
        case BESIDE: make_beside(&l); break;
        }
        l.r.body = l.body.code.data;
        l.r.nbody = (uint16_t)l.body.code.len;
        l.r.epilogue = l.epilogue.code.data;
        l.r.nepilogue = (uint16_t)l.epilogue.code.len;
        count_forms(jits[0], &l);
        /* Each width at every third recipe: compiling is what takes the time. */
        for (int j = 0; j < 6 && !check_failures; j++) {
            if (j > 0 && (first + (uint64_t)i + (uint64_t)j) % 5 != 0)
                continue;
            const char *what = differs(jits[j], &l, false);
            if (!what && kind == RECIPE_PRODUCT)
                what = differs(jits[j], &l, true);
            check_tried();
            if (what)
                report(&l, seed, fmt_text("compiler %d: %s", j, what));
        }
        drop(&l);
    }
    for (int j = 0; j < 6; j++)
        jit_close(jits[j]);
}

TEST(map) {
    rounds(RECIPE_MAP, ANY, 480);
    CHECK(few_maps > 0 || check_share(480) < 100);
    CHECK(together > 0 || check_share(480) < 100);
}
TEST(beside) {
    rounds(RECIPE_MAP, BESIDE, 240);
    CHECK(beside > 0 || check_share(240) < 20);
}
TEST(reduce) {
    rounds(RECIPE_REDUCE, ANY, 480);
    CHECK(few > 0 || check_share(480) < 100);
}
TEST(product) {
    rounds(RECIPE_PRODUCT, ANY, 480);
    CHECK(packed > 0 || check_share(480) < 100);
    CHECK(unrolled > 0 || check_share(480) < 100);
}
TEST(windows) {
    tabled = 0;
    rounds(RECIPE_PRODUCT, WINDOWS, 480);
    CHECK(tabled > 0 || check_share(480) < 100);
}
TEST(long_products) {
    rounds(RECIPE_PRODUCT, LONG, 36);
    CHECK(cut > cut_rows || check_share(36) < 10);
    CHECK(cut_rows > 0 || check_share(36) < 20);
}
TEST(rows) { rounds(RECIPE_ROWS, ROWS, 240); }
TEST(scan) {
    rounds(RECIPE_SCAN, ANY, 200);
    CHECK(squares > 0 || check_share(200) < 100);
}
TEST(scatter) { rounds(RECIPE_SCATTER, ANY, 200); }

/* ---- the cache, interrupts, threads ---------------------------------------------------------- */

enum { N = 100000 };
static float input[N], output[N], expected[N];

static Recipe doubled(ScalarBuilder *b, double by) {
    Sc x = sc_load(b, 0, DT_F32);
    Recipe r = {.kind = RECIPE_MAP, .rank = 1, .noperands = 1, .noutputs = 1};
    r.results[0] = sc_mul(b, x, sc_float(b, DT_F32, by));
    r.in_types[0] = r.out_types[0] = DT_F32;
    r.body = b->code.data;
    r.nbody = (uint16_t)b->code.len;
    return r;
}

static KernelArgs over(int64_t n) {
    KernelArgs args = {.extents = {n}};
    args.in[0] = input;
    args.out[0] = output;
    args.in_strides[0][0] = args.out_strides[0][0] = 1;
    return args;
}

static char cache_dir[64];

static JitStats run_once(const char *dir, double by, bool *ok) {
    const char *why = NULL;
    ScalarBuilder b = {0};
    Recipe r = doubled(&b, by);
    KernelArgs args = over(1000);
    JitStats stats = {0};
    Jit *jit = jit_open(&(JitOptions){.cache_dir = dir, .threads = 1}, &why);
    if (!jit) {
        *ok = true;
        stats.compiled = stats.loaded = UINT64_MAX;
        return stats;
    }
    for (int i = 0; i < 1000; i++)
        input[i] = (float)i;
    *ok = jit_run(jit, &r, &args) == KERNEL_DONE;
    for (int i = 0; i < 1000; i++)
        *ok = *ok && output[i] == (float)i * (float)by;
    stats = jit_stats(jit);
    jit_close(jit);
    return stats;
}

TEST(disk_cache) {
    strcpy(cache_dir, "/tmp/relay-jit-XXXXXX");
    CHECK(mkdtemp(cache_dir) != NULL);
    const char *dir = fmt_text("%s/a/b", cache_dir);
    bool ok;
    JitStats s = run_once(dir, 3, &ok);
    CHECK(ok);
    if (s.compiled == UINT64_MAX)
        return;
    CHECK_INT(s.compiled, 1);
    s = run_once(dir, 3, &ok);
    CHECK(ok);
    CHECK_INT(s.compiled, 0);
    CHECK_INT(s.loaded, 1);
    /* Another recipe has another entry. */
    s = run_once(dir, 5, &ok);
    CHECK(ok);
    CHECK_INT(s.compiled, 1);
    /* Every entry damaged, in four ways: ignored and made again. */
    for (int how = 0; how < 4; how++) {
        const char *script =
            how == 0 ? "for f in %s/*.o; do head -c 100 \"$f\" >\"$f.x\"; mv \"$f.x\" \"$f\"; done"
            : how == 1 ? "for f in %s/*.o; do : >\"$f\"; done"
            : how == 2 ? "for f in %s/*.o; do printf XXXX | dd of=\"$f\" bs=1 seek=700 "
                         "conv=notrunc 2>/dev/null; done"
                       : "for f in %s/*.o; do printf XXXX | dd of=\"$f\" bs=1 seek=20 conv=notrunc "
                         "2>/dev/null; done";
        CHECK_INT(system(fmt_text(script, dir)), 0);
        s = run_once(dir, 3, &ok);
        CHECK(ok);
        CHECK_INT(s.compiled, 1);
        s = run_once(dir, 3, &ok);
        CHECK(ok);
        CHECK_INT(s.loaded, 1);
    }
    /* No folder can be made there: memory only. */
    s = run_once("/proc/relay/cache", 3, &ok);
    CHECK(ok);
    CHECK_INT(s.compiled, 1);
    CHECK_INT(system(fmt_text("rm -rf %s", cache_dir)), 0);
}

/* Fills a new folder, runs a command on it, and says whether the kernel was taken from there after. */
static JitStats run_after(const char *command, bool *ok) {
    const char *dir = fmt_text("%s/whose", cache_dir);
    CHECK_INT(system(fmt_text("rm -rf %s", dir)), 0);
    JitStats s = run_once(dir, 3, ok);
    CHECK(*ok && s.compiled == 1);
    CHECK_INT(system(fmt_text("cd %s && %s", dir, command)), 0);
    s = run_once(dir, 3, ok);
    CHECK(*ok);
    return s;
}

/* What others could have written is not run: Note [Whose cache] of jit/cache.c. */
TEST(disk_cache_of_others) {
    bool ok;
    strcpy(cache_dir, "/tmp/relay-jit-XXXXXX");
    CHECK(mkdtemp(cache_dir) != NULL);
    if (run_once("", 3, &ok).compiled == UINT64_MAX)
        return;
    CHECK_INT(run_after("true", &ok).loaded, 1);
    CHECK_INT(run_after("test $(stat -c %a .) = 700 && test $(stat -c %a secret) = 600 && "
                        "test $(stat -c %s secret) = 16",
                        &ok)
                  .loaded,
              1);
    static const char *const commands[] = {
        "chmod 666 *.o",
        "chmod 620 *.o",
        "chmod 777 .",
        "chmod 770 .",
        "for f in *.o; do rm $f; mkfifo -m 600 $f; done",
        "for f in *.o; do mv $f real; ln -s real $f; done",
        "for f in *.o; do rm $f; ln -s /dev/zero $f; done",
        "for f in *.o; do rm $f; mkdir $f; done",
        "for f in *.o; do truncate -s 100G $f; done",
        "rm secret",
        "chmod 644 secret",
        "rm secret; mkfifo -m 600 secret",
        "rm secret; head -c 16 /dev/zero >secret; chmod 600 secret",
        "head -c 3 /dev/zero >secret",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        CHECK_INT(run_after(commands[i], &ok).compiled, 1);
    if (geteuid() == 0) {
        CHECK_INT(run_after("chown 65534 *.o", &ok).compiled, 1);
        CHECK_INT(run_after("chown 65534 secret", &ok).compiled, 1);
        CHECK_INT(run_after("chown 65534 .", &ok).compiled, 1);
    }
    /* After a bad secret or entry the folder serves again; one that others may write is left alone. */
    const char *dir = fmt_text("%s/whose", cache_dir);
    run_after("rm secret; mkfifo secret", &ok);
    CHECK_INT(run_once(dir, 3, &ok).loaded, 1);
    run_after("rm -rf *; chmod 777 .", &ok);
    CHECK_INT(system(fmt_text("test -z \"$(ls -A %s)\"", dir)), 0);
    /* A stranger's link leads nowhere. */
    if (geteuid() == 0) {
        run_after("mkdir real && chmod 700 real && ln -s real link && chown -h 65534 link", &ok);
        CHECK_INT(run_once(fmt_text("%s/link", dir), 3, &ok).compiled, 1);
        CHECK_INT(system(fmt_text("test -z \"$(ls -A %s/real)\"", dir)), 0);
    }
    CHECK_INT(system(fmt_text("rm -rf %s", cache_dir)), 0);
}

/* XDG_CACHE_HOME counts when it is absolute; else the home folder. */
TEST(disk_cache_of_the_environment) {
    bool ok;
    strcpy(cache_dir, "/tmp/relay-jit-XXXXXX");
    CHECK(mkdtemp(cache_dir) != NULL);
    if (run_once("", 3, &ok).compiled == UINT64_MAX)
        return;
    setenv("HOME", cache_dir, 1);
    static const char *const odd[] = {"", "relative", "./relative"};
    for (int i = 0; i < 3; i++) {
        setenv("XDG_CACHE_HOME", odd[i], 1);
        CHECK_INT(run_once(NULL, 3, &ok).compiled, i == 0);
        CHECK_INT(system("test ! -e relative && test ! -e relay/secret"), 0);
    }
    CHECK_INT(system(fmt_text("test -f %s/.cache/relay/secret", cache_dir)), 0);
    setenv("XDG_CACHE_HOME", fmt_text("%s/xdg", cache_dir), 1);
    CHECK_INT(run_once(NULL, 3, &ok).compiled, 1);
    CHECK_INT(run_once(NULL, 3, &ok).loaded, 1);
    setenv("HOME", "relative", 1);
    unsetenv("XDG_CACHE_HOME");
    CHECK_INT(run_once(NULL, 3, &ok).compiled, 1);
    CHECK_INT(system(fmt_text("rm -rf %s", cache_dir)), 0);
}

/* Processes that fill one new folder at the same time: each computes, and what is left is whole. */
TEST(disk_cache_of_several_processes) {
    bool ok;
    strcpy(cache_dir, "/tmp/relay-jit-XXXXXX");
    CHECK(mkdtemp(cache_dir) != NULL);
    if (run_once("", 3, &ok).compiled == UINT64_MAX)
        return;
    const char *dir = fmt_text("%s/shared", cache_dir);
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            run_once(dir, 3, &ok);
            _exit(!ok);
        }
    for (int i = 0; i < 4; i++) {
        int status = 1;
        CHECK(wait(&status) > 0 && status == 0);
    }
    CHECK_INT(run_once(dir, 3, &ok).loaded, 1);
    CHECK_INT(system(fmt_text("test -z \"$(ls -A %s | grep tmp)\"", dir)), 0);
    CHECK_INT(system(fmt_text("rm -rf %s", cache_dir)), 0);
}

/* out[i, j] = sum of x[i, l] * y[j, l], or of x[l, i] * y[l, j] where the operands are read against their grain. */
static void make_product(Recipe *r, ScalarBuilder *b, KernelArgs *args, DType t, bool down) {
    int64_t m = args->extents[0], n = args->extents[1], k = args->extents[2];
    Sc x = sc_load(b, 0, t);
    *r = (Recipe){.kind = RECIPE_PRODUCT,
                  .rank = 2,
                  .nreduce = 1,
                  .noperands = 2,
                  .noutputs = 1,
                  .acc_type = (uint8_t)t};
    r->results[0] = sc_mul(b, x, sc_load(b, 1, t));
    r->in_types[0] = r->in_types[1] = r->out_types[0] = (uint8_t)t;
    r->body = b->code.data;
    r->nbody = (uint16_t)b->code.len;
    args->in_strides[0][0] = args->in_strides[1][1] = down ? 1 : k;
    args->in_strides[0][2] = down ? m : 1;
    args->in_strides[1][2] = down ? n : 1;
    args->out_strides[0][0] = n;
    args->out_strides[0][1] = 1;
}

/* Rows of weights that go to panels: whatever the tile, a panel stays in the second cache, since each row of tiles reads
 * it again. Few rows alone would be best served by wide tiles. */
TEST(panels_stay_in_the_second_cache) {
    KernelArgs args = {.extents = {49, 512, 4608}};
    ScalarBuilder b = {0};
    Recipe r;
    make_product(&r, &b, &args, DT_F32, false);
    for (int bytes = 16; bytes <= 64; bytes *= 2) {
        Jit *jit = open_jit(bytes, 1, false, true);
        if (!jit)
            return;
        for (int64_t l2 = 1 << 19; l2 <= 1 << 22; l2 *= 2) {
            jit->cpu.l2_bytes = l2;
            JitRecipe *jr = jit_recipe_get(jit, &r);
            jr->tile.m = 0; /* forget the last tile */
            JitPlan plan;
            jit_plan(jit, jr, &args, false, &plan);
            CHECK_INT(plan.packed, 1);
            CHECK(plan.wide * args.extents[2] * (int64_t)sizeof(float) <= l2 / 4 * 3);
        }
        jit_close(jit);
    }
}

/* What a row of tiles reads comes from the second cache, 32 bytes a cycle: it is not more than its multiplications, two a
 * cycle, wait for. */
TEST(tiles_wait_for_no_cache) {
    KernelArgs args = {.extents = {64, 64, 1000}};
    ScalarBuilder b = {0};
    Recipe r;
    make_product(&r, &b, &args, DT_F64, true);
    for (int bytes = 16; bytes <= 64; bytes *= 2) {
        Jit *jit = open_jit(bytes, 1, false, true);
        if (!jit)
            return;
        JitPlan plan;
        jit_plan(jit, jit_recipe_get(jit, &r), &args, false, &plan);
        CHECK_INT(plan.packed, -1);
        int work = plan.sig.rows * plan.sig.cols / 2;
        CHECK(plan.wide * (int64_t)sizeof(double) <= work * 32);
        jit_close(jit);
    }
}

TEST(interrupt) {
    Jit *jit = open_jit(0, 1, false, true);
    if (!jit)
        return;
    ScalarBuilder b = {0};
    Recipe r = doubled(&b, 2);
    KernelArgs args = over(N);
    int flag = 0;
    args.interrupt = &flag;
    CHECK_INT(jit_run(jit, &r, &args), KERNEL_DONE);
    flag = 1;
    CHECK_INT(jit_run(jit, &r, &args), KERNEL_INTERRUPTED);
    flag = 0;
    CHECK_INT(jit_run(jit, &r, &args), KERNEL_DONE);
    jit_close(jit);
}

/* A softmax-like sum of exponentials by rows: the same bits from one, two and five threads. */
TEST(threads) {
    ScalarBuilder b = {0};
    Sc x = sc_load(&b, 0, DT_F32);
    Recipe r = {.kind = RECIPE_REDUCE,
                .combine = COMBINE_SUM,
                .rank = 1,
                .nreduce = 1,
                .noperands = 1,
                .noutputs = 1,
                .acc_type = DT_F32};
    r.results[0] = sc_exp(&b, x);
    r.in_types[0] = r.out_types[0] = DT_F32;
    r.body = b.code.data;
    r.nbody = (uint16_t)b.code.len;
    KernelArgs args = {.extents = {400, 250}};
    args.in[0] = input;
    args.in_strides[0][0] = 250;
    args.in_strides[0][1] = args.out_strides[0][0] = 1;
    for (int i = 0; i < N; i++)
        input[i] = (float)(i * 37 % 1001) / 200 - 2;
    args.out[0] = expected;
    CHECK_INT(recipe_run(&r, &args), KERNEL_DONE);
    args.out[0] = output;
    for (int threads = 1; threads <= 5; threads += threads) {
        Jit *jit = open_jit(0, threads, false, true);
        if (!jit)
            return;
        for (int i = 0; i < 50; i++) {
            memset(output, 0, 400 * sizeof(float));
            CHECK_INT(jit_run(jit, &r, &args), KERNEL_DONE);
            CHECK(memcmp(output, expected, 400 * sizeof(float)) == 0);
        }
        jit_close(jit);
    }
}

int main(void) {
    RUN(map);
    RUN(beside);
    RUN(reduce);
    RUN(product);
    RUN(windows);
    RUN(long_products);
    RUN(rows);
    RUN(scan);
    RUN(scatter);
    RUN(disk_cache);
    RUN(disk_cache_of_others);
    RUN(disk_cache_of_the_environment);
    RUN(disk_cache_of_several_processes);
    RUN(panels_stay_in_the_second_cache);
    RUN(tiles_wait_for_no_cache);
    RUN(interrupt);
    RUN(threads);
    return check_result();
}
